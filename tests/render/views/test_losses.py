"""What a page says of losses: bars by topic, a card for each cause, the order of starts; and what it must not say."""

from dataclasses import replace

from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.logs.predicted_load import FirstStart, StartOrder
from kforensics.render.blocks import Cell, Chain, Prose, Section, Table, Tone, plain
from kforensics.render.frame import References
from kforensics.render.views import predict
from kforensics.render.views.incident import by_cause, by_topic, worst_over_time
from kforensics.units import TopicPartition
from tests.builders.incidents import explanation


def incident_of(name, partition=0, **loss):
    (one,) = explanation("").incidents
    tp = TopicPartition(name, partition)
    return replace(one, partition=tp, losses=(replace(one.losses[0], topic_partition=tp, **loss),))


def all_of(blocks):
    return list(blocks)


def test_losses_of_each_topic_are_bars_of_one_scale():
    incidents = [
        incident_of("orders", records=60),
        incident_of("orders", 1, records=20, was_committed="possible"),
        incident_of("audit", records=40, was_committed="no"),
        incident_of("__cluster_metadata", records=7),
    ]

    _, table = all_of(by_topic(incidents))

    rows = [(row[0].text, *row[1:4], row[4].shares) for row in table.rows]
    assert [
        ("orders", 60, 20, 0, ((0.75, "certain"), (0.25, "possible"))),
        ("audit", 0, 0, 40, ((0.5, "no"),)),
    ] == rows
    assert [] == list(by_topic([]))


def test_a_topic_of_which_more_may_be_lost_says_so():
    (one,) = explanation("").incidents
    (_, table) = all_of(by_topic([replace(one, past_end=(object(),))]))

    assert "at least: more may be lost" == table.rows[0][0].below


def test_each_cause_is_a_card_with_its_partitions_below():
    body = explanation("")
    incidents = [
        incident_of("orders", records=60),
        incident_of("orders", 1, records=5, confidence="possible"),
        incident_of("audit", records=90, cause=CauseName.POWER_LOSS),
    ]

    shown = all_of(by_cause(incidents, References(body.inputs), {incidents[0].partition: "partition-orders-0"}))

    cards = [one for one in shown if isinstance(one, Section) and one.level == 3]
    assert [
        ("cause-power-loss", "90 records"),
        ("cause-unclean-election", "60 records"),
        ("cause-unknown", "5 records"),
    ] == [(one.anchor, one.aside) for one in cards]
    tables = [[row[0] for row in one.rows] for one in shown if type(one) is Table]
    assert [["audit-0"], ["orders-0"], ["orders-1"]] == [[plain(cell) for cell in some] for some in tables]
    assert Cell(text="orders-0", link="partition-orders-0") == tables[1][0]
    # Of a cause that is only possible nothing is told as if it were one.
    after = shown[shown.index(cards[2]) + 1]
    assert not isinstance(after, Prose)


def test_partitions_over_time_are_those_that_something_happened_to():
    body = explanation("")
    (one,) = body.incidents
    calm = replace(one, partition=TopicPartition("calm", 0), losses=(), truncations=())

    titles = [
        each.title
        for each in worst_over_time(replace(body, incidents=(one, calm)), References(body.inputs))
        if isinstance(each, Section)
    ]

    assert ["Partitions over time", "topic-0"] == titles


def test_the_order_of_starts_says_what_each_discards():
    order = StartOrder(
        brokers=(2, 1),
        wait_for=(1,),
        firsts=(FirstStart(2, 0, 0), FirstStart(1, 12, 3)),
        elections=(),
        missing=(3,),
    )

    _, chain, missing = all_of(predict._order(order))

    assert isinstance(chain, Chain)
    assert [("broker 2", Tone.PLAIN), ("broker 1", Tone.BAD)] == [(name, tone) for name, _, tone in chain.links]
    assert "discard nothing" in chain.links[0][1]
    assert "12 committed and 3 possibly committed records; be sure that it is there" in chain.links[1][1]
    assert "Not among the inputs: broker 3." == missing.text
