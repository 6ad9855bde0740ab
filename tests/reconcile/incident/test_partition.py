"""The incident of one partition, from logs in memory."""

from dataclasses import dataclass, field, replace

import pytest

from kforensics.case.account import with_returned_doubts
from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.findings.answers.conclusion import set_aside_place
from kforensics.findings.answers.explain import incident_state
from kforensics.findings.answers.model import State
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.topic_incarnations import Incarnation
from kforensics.reconcile.incident.doubts import DoubtKind, Moments
from kforensics.reconcile.incident.logs_over_time import LogsOverTime
from kforensics.reconcile.incident.model import IncidentEvidence
from kforensics.reconcile.incident.operations import operations
from kforensics.reconcile.incident.partition import explain_partition
from kforensics.reconcile.observed.facts import ClusterFacts, LoggedEnd, Restart
from kforensics.reconcile.timeline.events import WHOLE_TOPIC, TimelineEntry
from kforensics.units import TopicPartition
from kforensics.words import utc_words
from tests.builders.history import leadership, logged_truncation
from tests.builders.logs import HERE, MemoryReader, batch, record, replica


def explained(*final, before=(), records=None, made=Incarnation(), facts=ClusterFacts(), logged=(), **more):  # noqa: B008
    return explain_partition(
        LogsOverTime(
            TopicPartition("t", 0),
            final,
            [(0, one) for one in before],
            final_rank=1,
            evidence=IncidentEvidence(
                facts=facts,
                logged=logged,
                incarnation=made,
                last_logged_ms=Absent.UNKNOWN,
                protocol_hints={},
                commits=(),
                **more,
            ),
            reader=MemoryReader(records or {}),
        )
    )


ONLY, KEPT, LATER = record(0, b"only"), record(2, b"a"), record(5, b"only")
WHOLE = [batch(0, 4, 0, 50), batch(5, 9, 0)]
CLEANED = [batch(2, 4, 0, 51, count=1), batch(5, 9, 0)]


def test_what_compaction_may_have_removed_is_a_question_and_no_divergence():
    one = replica(1, WHOLE, cleaned=5)
    other = replica(2, CLEANED, cleaned=5, base=0)
    asked = explained(one, other, records={"b1/t-0": [ONLY, KEPT], "b2/t-0": [KEPT]})
    shown = explained(one, other, records={"b1/t-0": [ONLY, KEPT, LATER], "b2/t-0": [KEPT, LATER]})

    assert () == asked.residuals
    assert State.UNKNOWN is incident_state(asked)
    assert [DoubtKind.COMPACTION] == [one.kind for one in asked.doubts if one.kind is DoubtKind.COMPACTION]
    assert () == shown.residuals
    assert not [one for one in shown.doubts if one.kind is DoubtKind.COMPACTION]


def test_compaction_since_an_earlier_snapshot_is_no_truncation():
    now = replica(1, CLEANED, cleaned=5, base=0, checkpoint=[(0, 0)])
    earlier = replica(1, WHOLE, name="b1-before")

    found = explained(now, before=[earlier], records={"b1/t-0": [KEPT], "b1-before/t-0": [ONLY, KEPT]})

    assert () == found.truncations
    assert () == found.losses


@pytest.mark.parametrize(
    ("epochs", "to_offset"),
    [
        ([(0, 0), (4, 10)], 10),
        # The cache is not of this log: its batches say otherwise.
        ([(0, 0), (3, 10)], 20),
    ],
)
def test_a_cleaner_leaves_of_a_truncation_what_leader_epochs_say(epochs, to_offset):
    earlier = replica(
        1, [batch(0, 9, 0), batch(15, 24, 2, count=10)], cleaned=20, name="b1-before", checkpoint=[(0, 0), (2, 10)]
    )
    now = replica(1, [batch(0, 9, 0), batch(20, 29, 4)], cleaned=20, checkpoint=epochs)
    kept = [record(at, b"%d" % at) for at in range(10)]
    old, new = ([record(at, b"%d" % at, value) for at in range(20, 30)] for value in (b"old", b"new"))
    found = explained(now, before=[earlier], records={"b1/t-0": [*kept, *new], "b1-before/t-0": [*kept, *old[:5]]})

    assert [(25, to_offset)] == [(one.from_offset, one.to_offset) for one in found.truncations]


def test_replicas_that_differ_where_no_cleaner_passed_stay_different():
    one, other = replica(1, [batch(0, 9, 0), batch(10, 19, 0, 7)]), replica(2, [batch(0, 9, 0), batch(10, 19, 0, 8)])

    assert [10] == [one.offset for one in explained(one, other).residuals]


def test_a_file_older_than_its_topic_is_of_the_topic_whose_batches_it_holds():
    """The clock of its broker was behind."""
    leader = replica(2, [batch(0, 9, 0), batch(10, 14, 2, 8)])
    same, other = ([batch(0, 9, 0), batch(10, 19, 1)], [batch(0, 9, 0, 3), batch(10, 19, 1, 4)])

    made = Incarnation(created_ms=10**13, is_after_deletion=True)
    lost = [explained(replica(1, one), leader, made=made).losses for one in (same, other)]

    assert [[(10, 14), (15, 19)], []] == [[(loss.offsets.first, loss.offsets.last) for loss in found] for found in lost]


class Led(ClusterFacts):
    """Broker 1 leads, by the metadata log."""

    def leaderships(self, partition, topic_id):
        return (leadership(1, 0), leadership(1, 2))

    def is_newest_metadata(self):
        return True


@pytest.mark.parametrize(
    ("in_doubt", "certainty", "state"), [(False, "certain", State.LOST), (True, "possible", State.MAYBE_LOST)]
)
def test_nothing_is_certain_where_the_order_of_the_snapshots_is_in_doubt(in_doubt, certainty, state):
    one, other = (replica(broker, [batch(0, 9, 0), batch(10, 14, 2, 8)]) for broker in (1, 2))
    before = replica(1, [batch(0, 19, 0)], high_watermark=20, name="b1-before")
    before = replace(before, segments=(replace(before.segments[0], path="b1-before/0.log"),))

    found = explained(one, other, before=[before], facts=Led(), is_order_in_doubt=in_doubt)

    assert {certainty} == {loss.was_committed for loss in found.losses}
    assert state is incident_state(found)
    assert in_doubt is any(one.kind is DoubtKind.ORDER for one in found.doubts)


@pytest.mark.parametrize("is_logged", [False, True])
def test_directories_that_wait_for_their_removal_do_not_show_that_the_topic_was_deleted(is_logged):
    """A replica that was moved to another broker leaves one as well."""
    found = explained(replica(1, WHOLE, state="deleted", topic_id="a"), is_deletion_logged=is_logged)

    assert is_logged is not any(one.kind is DoubtKind.LEADER for one in found.doubts)


class FailedOver(ClusterFacts):
    """Broker 1 led, and broker 2 leads since, by the metadata log."""

    def leaderships(self, partition, topic_id):
        return (leadership(1, 0), leadership(2, 1))

    def is_newest_metadata(self):
        return True


LONGER, SHORTER = [batch(0, 9, 0), batch(10, 19, 0)], [batch(0, 9, 0)]


@pytest.mark.parametrize(
    ("checkpoint", "clean", "other", "is_older"),
    [
        ([(0, 0)], False, LONGER, True),
        ([(0, 0), (1, 10)], False, LONGER, False),
        # It may have stopped before it took up its role; but what another holds it had held when it was elected.
        ([(0, 0)], True, SHORTER, False),
        ([(0, 0)], True, LONGER, True),
        ([(0, 0), (1, 10)], True, LONGER, False),
    ],
)
def test_a_directory_without_the_epoch_in_which_its_broker_leads_was_copied_before(checkpoint, clean, other, is_older):
    leader = replica(2, SHORTER, checkpoint=checkpoint, clean=clean)
    found = explained(replica(1, other, high_watermark=20), leader, facts=FailedOver())

    asked = [one.settled_by for one in found.doubts if one.kind is DoubtKind.ACCOUNT]
    assert is_older is ("the directory of broker 2 as it is now" in asked)
    assert is_older is not found.is_leader_known


@pytest.mark.parametrize(("naming", "committed"), [(frozenset({1}), "possible"), (frozenset(), "certain")])
def test_a_replica_that_only_a_checkpoint_names_may_hold_what_is_lost(naming, committed):
    leader = replica(2, SHORTER, checkpoint=[(0, 0), (1, 10)])
    earlier = replica(1, LONGER, name="b1-before", high_watermark=20)
    moments = Moments(brokers=frozenset({1, 2}), without_directory={TopicPartition("t", 0): naming})
    found = explained(leader, before=[earlier], facts=FailedOver(), moments=moments)

    assert {committed} == {one.committed for one in found.losses}
    assert tuple(naming) == found.missing_replicas


class Forced(ClusterFacts):
    """Broker 1 led in epochs 0 and 1; broker 2 was elected in epoch 2 without being in sync, and again in epoch 3."""

    def leaderships(self, partition, topic_id):
        return (leadership(1, 0), leadership(1, 1), leadership(2, 2, {2}, unclean=True), leadership(2, 3, {2, 3}))


def test_the_leader_of_a_truncation_is_who_led_in_the_epoch_that_its_line_names():
    """The cleaner has removed what took the place of the records on the broker itself."""
    before = replica(3, [batch(0, 9, 0)])
    before = replace(before, segments=(replace(before.segments[0], path="b3-before/0.log", mtime_ns=10_000_000_000),))
    leader = replica(2, [batch(0, 4, 0), batch(5, 19, 2)])
    cleaned = replica(3, [batch(0, 4, 0), batch(15, 19, 2)], checkpoint=[(0, 0), (2, 15)], cleaned=15)
    line = logged_truncation(10, 5, broker=3, time_ms=60_000, leader_epoch=2)
    (found,) = explained(leader, cleaned, before=[before], facts=Forced(), logged=[line]).truncations

    assert (2, 2, "unclean-election") == (found.leader, found.leader_epoch, found.cause.name)
    assert found.agrees is True


@dataclass(frozen=True)
class Grown(ClusterFacts):
    """Broker 1 leads, and lines say how far logs had grown."""

    ends: dict = field(default_factory=dict)
    later: tuple = ()
    since_ms: int | Absent = Absent.UNKNOWN

    def leaderships(self, partition, topic_id):
        return (leadership(1, 0, {1, 2}, 10), *self.later)

    def logged_ends(self, partition):
        return {broker: LoggedEnd(offset, 50, HERE) for broker, offset in self.ends.items()}

    def exists_since_ms(self, topic):
        return self.since_ms


def of_ends(found):
    return [one for one in found.doubts if one.kind is DoubtKind.LOGGED_END]


def test_a_log_that_ends_before_offsets_that_its_broker_logged_is_not_whole():
    one, other = replica(1, WHOLE), replica(2, WHOLE)
    whole, short = (explained(one, other, facts=Grown(ends={2: end})) for end in (10, 32))

    assert [] == of_ends(whole)
    assert ["what offsets 10 to 31 held"] == [doubt.words.partition(",")[0] for doubt in of_ends(short)]
    assert "the log of broker 2 had reached offset 32 by line" in of_ends(short)[0].words
    assert State.UNKNOWN is incident_state(short)
    assert {(1, 2)} == short.shortened


def test_offsets_that_any_copy_holds_or_that_an_earlier_topic_had_are_not_missing():
    one, other = replica(1, WHOLE), replica(2, WHOLE)
    earlier = replica(1, [*WHOLE, batch(10, 31, 0)], name="b1-before")

    assert [] == of_ends(explained(one, other, before=[earlier], facts=Grown(ends={1: 32})))
    assert [] == of_ends(explained(one, other, made=Incarnation(created_ms=60), facts=Grown(ends={1: 32})))
    assert [] == of_ends(explained(one, other, facts=Grown(ends={3: 32})))


@pytest.mark.parametrize(("since_ms", "is_open"), [(Absent.UNKNOWN, True), (51, True), (50, False)])
def test_a_line_is_surely_of_a_topic_that_was_there_at_its_time(since_ms, is_open):
    found = explained(replica(1, WHOLE), replica(2, WHOLE), facts=Grown(ends={2: 32}, since_ms=since_ms))

    assert is_open is of_ends(found)[0].words.endswith(", unless that line is of an earlier topic of the name")


def test_a_longer_log_that_parted_from_the_leaders_does_not_hold_what_that_had_grown_to():
    led = [*WHOLE, batch(10, 14, 1)]
    parted = replica(3, [*WHOLE, batch(10, 29, 0, 7)])
    facts = Grown(ends={1: 25}, later=(leadership(1, 1, {1, 2}, 20),))

    (lost,) = of_ends(explained(replica(1, led), replica(2, led), parted, facts=facts))

    assert lost.words.startswith(
        "what offsets 15 to 24 held, which no log given that holds what the leader does reaches"
    )
    again = replica(2, [*led, batch(15, 29, 1)])
    assert [] == of_ends(explained(replica(1, led), again, parted, facts=facts))
    assert [] == of_ends(explained(replica(1, led), replica(2, led), parted, facts=replace(facts, ends={3: 25})))


@pytest.mark.parametrize(("broker", "is_open"), [(1, True), (2, True), (3, False)])
def test_another_log_that_ends_too_early_leaves_open_where_the_logs_of_the_same_brokers_ended(broker, is_open):
    found = explained(replica(1, WHOLE), replica(2, WHOLE), replica(3, WHOLE[:1]), facts=Grown())
    other = replace(found, dispelled=(), shortened=frozenset({(1, broker)}))

    back = of_ends(next(iter(with_returned_doubts([found, other]))))

    assert is_open is bool(back)
    assert not back or back[0].words.startswith(
        "whether the log ended at offset 10; another log of one of brokers 1 and 2 "
    )


class Removed(ClusterFacts):
    """The metadata log knows that the topic of id `a` was removed."""

    def is_deleted(self, topic, topic_id):
        return topic_id == "a"


OTHER = [batch(0, 4, 0, 70), batch(5, 9, 0, 71)]


@pytest.mark.parametrize(
    ("before_id", "now_id", "facts", "more"),
    [
        (Absent.NOT_WRITTEN, Absent.NOT_WRITTEN, ClusterFacts(), {}),
        ("a", "b", ClusterFacts(), {}),
        ("c", "b", Removed(), {}),
        (Absent.NOT_WRITTEN, "b", ClusterFacts(), {}),
        (Absent.NOT_WRITTEN, Absent.NOT_WRITTEN, ClusterFacts(), {"made": Incarnation(created_ms=10**13)}),
    ],
)
def test_a_log_that_began_anew_without_a_deletion_on_record_may_have_lost_what_it_held(before_id, now_id, facts, more):
    now = replica(1, [batch(0, 2, 0, 60)], topic_id=now_id)
    earlier = replica(1, OTHER, topic_id=before_id, name="b1-before", high_watermark=10)
    # What two copies hold is counted once.
    behind = replica(2, OTHER[:1], topic_id=before_id, name="b2-before")
    found = explained(now, before=[earlier, behind], facts=facts, **more)

    assert 10 == sum(loss.records for loss in found.losses)
    assert [(0, 2)] == [(loss.offsets.first, loss.offsets.last) for loss in found.losses if loss.is_replaced]
    assert {"possible"} == {loss.was_committed for loss in found.losses}
    assert not any(loss.in_use for loss in found.losses)
    assert all(loss.citations for loss in found.losses)
    assert State.MAYBE_LOST is incident_state(found)
    assert () == found.truncations == operations((), [found])


def test_a_topic_of_which_a_record_says_that_it_was_removed_lost_nothing():
    now = replica(1, [batch(0, 2, 0, 60)], topic_id="b")
    found = explained(now, before=[replica(1, OTHER, topic_id="a", name="b1-before")], facts=Removed())

    assert () == found.losses
    assert ["recreated-topic"] == [one.kind for one in operations((), [found])]


@pytest.mark.parametrize(("has_zookeeper", "lost"), [(True, 0), (False, 10)])
def test_a_broker_with_zookeeper_put_the_log_of_a_deleted_topic_aside(has_zookeeper, lost):
    """KRaft brokers before 3.7 do the same with what their metadata does not name."""
    now = replica(1, [batch(0, 2, 0, 60)])
    aside = replica(1, OTHER, state="deleted", name="b1-aside")
    found = explained(now, aside, before=[replica(1, OTHER, name="b1-before")], has_zookeeper=has_zookeeper)

    assert lost == sum(loss.records for loss in found.losses)
    assert (["recreated-topic"] if has_zookeeper else []) == [one.kind for one in operations((), [found])]


class Unnamed(Removed):
    """The newest metadata knows no topic, and that the one of id `a` was removed."""

    def has_metadata_log(self):
        return True

    def is_newest_metadata(self):
        return True

    def knows_every_deletion(self):
        return True


class Compacted(Unnamed):
    """A snapshot took the place of the records that would say which topics were removed."""

    def knows_every_deletion(self):
        return False


@pytest.mark.parametrize(("state", "lost"), [("stray", 10), ("deleted", 0)])
def test_a_compacted_metadata_log_names_no_topic_that_was_deleted(state, lost):
    found = explained(replica(1, OTHER, topic_id="b", state=state), facts=Compacted())

    assert lost == sum(loss.records for loss in found.losses)


@pytest.mark.parametrize("state", ["stray", "deleted"])
def test_what_no_broker_serves_is_lost_unless_a_record_says_that_its_topic_was_removed(state):
    """The controllers came back empty: brokers set aside what their metadata does not name."""
    found = {
        topic_id: explained(
            replica(1, OTHER, topic_id=topic_id, state=state),
            replica(2, OTHER[:1], topic_id=topic_id, state=state),
            facts=Unnamed(),
        )
        for topic_id in ("a", "b")
    }

    assert () == found["a"].losses
    assert State.NOTHING_LOST is incident_state(found["a"])
    assert 10 == sum(loss.records for loss in found["b"].losses)
    assert {"possible"} == {loss.was_committed for loss in found["b"].losses}
    assert State.MAYBE_LOST is incident_state(found["b"])
    assert (state == "stray") is ("-stray" in set_aside_place(found["b"].losses))


def test_what_is_set_aside_is_not_lost_where_no_metadata_shows_that_its_topic_is_gone():
    found = explained(replica(1, OTHER, topic_id="b", state="stray"))

    assert () == found.losses
    assert State.UNKNOWN is incident_state(found)


@dataclass(frozen=True)
class Emptied(ClusterFacts):
    """Broker 1 led, came back with an emptied disk, and led again."""

    states: tuple = (leadership(1, 0, (1, 2)), leadership(1, 1, (1,), unclean=True))

    def leaderships(self, partition, topic_id):
        return self.states

    def restarts(self, broker_id):
        return (Restart(recorded_at=1, time_ms=1, is_clean=True, other_disk=True),) if broker_id == 1 else ()


@pytest.mark.parametrize("ended", [4, 30])
def test_a_leader_that_led_again_with_an_emptied_disk_truncated_nothing(ended):
    old, new = [batch(0, 29, 0)], [batch(0, ended, 1)]
    found = explained(replica(1, new), replica(2, new), before=(replica(1, old), replica(2, old)), facts=Emptied())

    assert [(2, 0)] == [(one.broker_id, one.to_offset) for one in found.truncations]
    assert [CauseName.DISK_REPLACED] == [one.cause.name for one in found.truncations]
    assert (0, 29) == (found.losses[0].offsets.first, found.losses[-1].offsets.last)
    assert {CauseName.DISK_REPLACED} == {one.cause for one in found.losses}


def test_no_protocol_is_recomputed_for_a_leader_that_lost_the_end_of_its_log():
    old, new = [batch(0, 29, 0)], [batch(0, 19, 0), batch(20, 25, 1)]
    facts = Emptied(states=(leadership(1, 0, (1, 2)), leadership(1, 1, (1,))))
    found = explained(replica(1, new), replica(2, new), before=(replica(1, old),), facts=replace(facts))

    assert [] == [one for one in found.truncations if one.agrees is True]


@dataclass(frozen=True)
class LedAgain(ClusterFacts):
    """Broker 1 leads the topic of now in its second leader epoch."""

    def leaderships(self, partition, topic_id):
        return (leadership(1, 1, (1, 2)),)


@pytest.mark.parametrize(("created", "lost"), [(Incarnation(created_ms=1), None), (Incarnation(), (0, 26))])
def test_a_topic_without_an_id_that_was_deleted_and_made_again_was_not_truncated(created, lost):
    """Its `-delete` directory holds all; the file times say nothing, and the new topic elected a leader before its first record."""
    old, new = [batch(0, 26, 0, 5)], [batch(0, 9, 1, 6)]
    gone = replace(replica(1, old, state="deleted"), path="b1/t-0.abc-delete")
    found = explained(
        replica(1, new),
        replica(2, new),
        gone,
        before=(replica(1, old),),
        facts=LedAgain(),
        made=created,
        has_zookeeper=True,
    )

    assert () == found.truncations
    assert lost == ((found.losses[0].offsets.first, found.losses[-1].offsets.last) if found.losses else None)


def test_a_log_that_is_in_no_deleted_directory_was_truncated_for_all_that_is_known():
    old, new = [batch(0, 26, 0, 5)], [batch(0, 9, 1, 6)]
    gone = replace(replica(2, [batch(0, 20, 0, 5)], state="deleted"), path="b2/t-0.abc-delete")
    found = explained(replica(1, new), replica(2, new), gone, before=(replica(2, old),), facts=LedAgain())

    assert [(2, 27, 0)] == [(one.broker_id, one.from_offset, one.to_offset) for one in found.truncations]


@pytest.mark.parametrize(("topic_id", "others"), [("a", 0), (Absent.NOT_WRITTEN, 1)])
def test_a_topic_with_one_id_in_every_snapshot_was_not_created_again_whatever_the_clocks_say(topic_id, others):
    """Its log began again since; the clock of the broker was behind that of the controller."""
    held = replica(1, [batch(0, 9, 0)], topic_id=topic_id)
    held = replace(held, segments=(replace(held.segments[0], mtime_ns=10**15),))
    anew = replica(1, [batch(0, 1, 1, 9)], topic_id=topic_id)
    found = explained(
        anew, before=(held,), facts=LedAgain(), made=Incarnation(created_ms=10**13), is_deletion_logged=True
    )

    assert others == len(found.other_topics)


class LeftBehind(ClusterFacts):
    """Broker 1 led, the ISR became empty in epoch 1, and broker 2 was elected in epoch 3 without being in sync."""

    def leaderships(self, partition, topic_id):
        return (
            leadership(1, 0, {1}),
            leadership(Absent.NOT_APPLICABLE, 1, set()),
            leadership(2, 3, {2}, unclean=True),
        )

    def is_newest_metadata(self):
        return True


@pytest.mark.parametrize(("leads_on_from", "cause"), [(3, CauseName.UNCLEAN_ELECTION), (1, CauseName.UNKNOWN)])
def test_an_unclean_election_that_the_leader_goes_on_from_left_a_set_aside_log_behind(leads_on_from, cause):
    """An ISR that becomes empty raises the leader epoch, too; an unclean election after the leader went on took nothing of the other log."""
    aside = replica(1, [batch(0, 9, 0)], state="stray", checkpoint=[(0, 0)])
    short = replica(2, [batch(0, 4, 0), batch(5, 6, leads_on_from)], checkpoint=[(0, 0), (leads_on_from, 5)])

    found = explained(aside, short, facts=LeftBehind())

    assert {one.cause for one in found.losses} == {cause}


@pytest.mark.parametrize(
    ("of", "name", "minutes", "own", "is_told"),
    [
        (TopicPartition("t", WHOLE_TOPIC), "retention.ms", 1, Absent.NOT_APPLICABLE, True),
        (Absent.NOT_APPLICABLE, "log.retention.ms", 1, Absent.NOT_APPLICABLE, True),
        (Absent.NOT_APPLICABLE, "log.retention.ms", 1, "9", False),
        (Absent.NOT_APPLICABLE, "log.retention.ms", 60, Absent.NOT_APPLICABLE, False),
        (Absent.NOT_APPLICABLE, "min.insync.replicas", 1, Absent.NOT_APPLICABLE, False),
    ],
)
def test_what_retention_took_as_soon_as_a_setting_was_changed_is_told(of, name, minutes, own, is_told):
    partition = TopicPartition("t", 0)
    found = replace(explained(replica(1, [batch(60, 62, 0, 60)])), partition=partition, log_start_offset=60)
    timeline = [
        TimelineEntry(kind=EventKind(kind), time_ms=time_ms, topic_partition=where, detail=detail, citations=(HERE,))
        for kind, time_ms, where, detail in (
            ("config-change", -36_000_000, TopicPartition("t", WHOLE_TOPIC), {"name": "retention.ms", "value": own}),
            ("config-change", 0, of, {"name": name, "value": "2000"}),
            ("retention", minutes * 60_000, partition, {}),
        )
    ]
    words = [one.meaning for one in operations(timeline, [found]) if one.kind == "setting-changed"]

    assert (
        words == [f"since {name} was set to 2000 at {utc_words(0)}, retention has deleted what t-0 held below 60"]
    ) is is_told
    assert bool(words) is is_told


def test_a_setting_that_was_removed_may_let_retention_take_records_too():
    partition, topic = TopicPartition("t", 0), TopicPartition("t", WHOLE_TOPIC)
    found = replace(explained(replica(1, [batch(60, 62, 0, 60)])), partition=partition, log_start_offset=60)
    timeline = [
        TimelineEntry(kind=EventKind(kind), time_ms=time_ms, topic_partition=where, detail=detail, citations=(HERE,))
        for kind, time_ms, where, detail in (
            ("config-change", -36_000_000, topic, {"name": "retention.ms", "value": "-1"}),
            ("config-change", 0, topic, {"name": "retention.ms", "value": Absent.NOT_APPLICABLE}),
            ("retention", 60_000, partition, {}),
        )
    ]

    (told,) = [one.meaning for one in operations(timeline, [found]) if one.kind == "setting-changed"]

    assert told == f"since retention.ms was removed at {utc_words(0)}, retention has deleted what t-0 held below 60"
