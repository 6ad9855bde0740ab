"""Findings of an audit by cause, each with the command that shows more of it."""

from dataclasses import replace

import pytest

from kforensics.evidence.model import Citation, Input
from kforensics.findings.model import Severity
from kforensics.findings.rule import all_rules
from kforensics.render.html.fleet_page import cause_groups, next_command, trend_line
from kforensics.units import TopicPartition
from tests.builders.findings import finding
from tests.builders.fleet import fleet_summary


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


def test_a_cause_has_its_places_with_what_is_at_stake_and_what_is_new():
    grave, damage = cause_groups(fleet_summary())

    assert ("KF301", "critical", "1 finding in 1 partition") == (grave.code, grave.severity, grave.words)
    assert "1 finding in 1 partition on broker 1" == damage.words
    assert (all_rules()["KF101"].title, 0) == (damage.title, damage.more)
    (row,) = damage.rows
    assert ("topic-0", "1", "1,000 to 1,049", "new", "advice") == (
        row.place,
        row.brokers,
        row.offsets,
        row.change,
        row.advice,
    )
    assert "56 committed records, 3 possibly committed" == row.stake
    assert "" == grave.rows[0].change


def test_of_a_name_in_two_clusters_nothing_is_said_to_be_at_stake():
    summary = fleet_summary()
    twice = replace(summary, worst=(*summary.worst, replace(summary.worst[0], cluster_id="other")))

    assert {""} == {row.stake for group in cause_groups(twice) for row in group.rows}


def test_the_trend_is_a_line_where_there_is_a_history():
    line = trend_line(replace(fleet_summary(), counts=((0, 4), (86_400_000, 0), (172_800_000, 8))))

    assert line is not None
    assert "0.0,20.0 120.0,40.0 240.0,0.0" == line.points
    assert line.words.endswith(": 4, 0, 8")
    assert trend_line(replace(fleet_summary(), counts=((0, 4),))) is None
