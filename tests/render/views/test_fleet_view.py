"""Findings of an audit by cause, each with the command that shows more of it."""

import re
from dataclasses import replace

import pytest

from kforensics.commands.result import Conclusion, Result
from kforensics.evidence.model import Citation, Input
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.model import Severity
from kforensics.findings.rule import all_rules
from kforensics.render.blocks import Bars, Cell, Section, Table
from kforensics.render.formats.lane_picture import draw_bars
from kforensics.render.view import View
from kforensics.render.views.fleet import audit, next_command, page_name
from kforensics.units import TopicPartition
from tests.builders.findings import finding
from tests.builders.fleet import fleet_summary

CONCLUDED = Conclusion(Answer(state=State.UNKNOWN, headline="It is so."))


def cited(*places):
    return finding(
        "KF101",
        severity=Severity.ERROR,
        statement="s",
        topic_partition=TopicPartition("orders", 3),
        citations=tuple(Citation(input=number, path=path) for number, path in places),
    )


def inputs(*paths):
    return [Input(path=path, kind="broker", broker_id=number + 1) for number, path in enumerate(paths)]


@pytest.mark.parametrize(
    ("places", "paths", "command"),
    [
        ([(0, "orders-3/0.log")], ["/data/b 1"], "kforensics verify '/data/b 1/orders-3'"),
        ([(0, "meta.properties")], ["/data/b1"], "kforensics verify /data/b1"),
        ([(0, "d/orders-3/0.log")], ["/c/b1.kfc"], "kforensics verify /c/b1.kfc"),
        (
            [(0, "orders-3/0.log"), (1, "orders-3/0.log"), (0, "x")],
            ["/data/b1", "/data/b2"],
            "kforensics diff /data/b1 /data/b2 --topic orders --partition 3",
        ),
        (
            [(0, "orders-3/0.log")],
            ["s3://bucket/b1"],
            "kforensics fleet report /audits/monday --topic orders --partition 3 --code KF101",
        ),
        ([], ["/data/b1"], "kforensics fleet report /audits/monday --topic orders --partition 3 --code KF101"),
    ],
)
def test_the_next_command_reads_the_files_where_they_are(places, paths, command):
    assert command == next_command(cited(*places), inputs(*paths), "/audits/monday")


def blocks_of(summary, *, page=True):
    return list(audit(Result(command="fleet audit", body=summary, concluded=CONCLUDED), View(page=page)))


def causes_of(summary):
    """The rows of each cause, by its heading."""
    blocks = blocks_of(summary)
    return {
        one.title: (one, next(table for table in blocks[at:] if isinstance(table, Table)))
        for at, one in enumerate(blocks)
        if isinstance(one, Section) and one.title.startswith("KF")
    }


def test_a_cause_has_its_places_with_what_is_at_stake_and_what_is_new():
    (grave, of_grave), (damage, of_damage) = causes_of(fleet_summary()).values()

    assert ("KF301", "critical") == (grave.anchor, grave.mark)
    assert grave.lead.startswith("1 finding in 1 partition. ")
    assert damage.lead.startswith("1 finding in 1 partition on broker 1. ")
    assert damage.title.endswith(all_rules()["KF101"].title)
    (row,) = of_damage.rows
    assert ("topic-0", "new", "1", "1,000 to 1,049") == (row[0].text, row[0].badge, *row[1:3])
    assert "56 committed records, 3 possibly committed" == row[3]
    assert "advice" == row[4].below
    assert "" == of_grave.rows[0][0].badge


def test_of_a_name_in_two_clusters_nothing_is_said_to_be_at_stake():
    summary = fleet_summary()
    twice = replace(summary, worst=(*summary.worst, replace(summary.worst[0], cluster_id="other")))

    assert {""} == {row[3] for _, table in causes_of(twice).values() for row in table.rows}


def test_the_trend_is_a_picture_where_there_is_a_history():
    summary = replace(fleet_summary(), counts=((0, 4), (86_400_000, 0), (172_800_000, 8)))
    (bars,) = [one for one in blocks_of(summary) if isinstance(one, Bars)]

    assert [(4,), (0,), (8,)] == [counts for _, counts in bars.moments]
    assert not [one for one in blocks_of(replace(summary, counts=((0, 4),))) if isinstance(one, Bars)]


def test_bars_have_their_numbers_in_words():
    drawn = draw_bars(Bars(name="n", kinds=("error", "note"), moments=(("monday", (4, 0)), ("tuesday", (1, 1)))), str)

    assert drawn.count("<rect") == 3 + 2  # those of the legend, too
    assert "<li>monday: 4 error, 0 note</li><li>tuesday: 1 error, 1 note</li>" in drawn
    assert 'height="120.0"' in drawn  # the highest


def test_partitions_are_grouped_by_their_states_the_worst_first():
    summary = fleet_summary()
    (one,) = summary.worst
    worst = (one, replace(one, partition=1), replace(one, partition=2, state="behind", verdict="behind"))
    titles = [
        block.title
        for block in blocks_of(replace(summary, worst=worst, not_consistent=3), page=False)
        if isinstance(block, Section) and block.title.startswith("Worst first")
    ]

    assert ["Worst first: at-risk", "Worst first: behind"] == titles


def test_clusters_have_pages_of_their_own_where_they_are_written():
    summary = replace(fleet_summary(), states_by_cluster={"b": {"at-risk": 1}, "a/1": {"agree": 1}, "": {"agree": 2}})
    result = Result(command="fleet report", body=summary, concluded=CONCLUDED)

    def links(view):
        (table,) = [one for one in audit(result, view) if isinstance(one, Table) and one.name.startswith("Clusters")]
        names = [row[0] for row in table.rows]
        cells = [one for one in names if isinstance(one, Cell)]
        return [(one.text, one.link, *row[1:3]) for one, row in zip(cells, table.rows, strict=True)]

    first, second, third = links(View(page=True, has_pages=True))
    assert ("b", "cluster-b.html", "at-risk", 1) == first
    assert re.fullmatch(r"cluster-a_1-[0-9a-f]{8}\.html", second[1])
    assert ("unknown", "agree", 2) == (third[0], *third[2:])
    assert page_name("unknown") != third[1] != page_name("a_1")
    assert {""} == {link for _, link, *_ in links(View(page=True))}
