"""What became of a finding: by its id, its gravity, its offsets, and by what was read again."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent, Span
from kforensics.evidence.model import Citation
from kforensics.findings.changes import Change, changed_rows, finding_ids
from kforensics.findings.model import Confidence, Severity
from kforensics.findings.rule import all_rules
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.findings import finding

ORDERS = TopicPartition("orders", 3)


def one(code="KF201", **changed):
    values: dict[str, Any] = {
        "severity": Severity.CRITICAL,
        "statement": "orders-3: …",
        "topic_partition": ORDERS,
        "broker_id": 2,
        "offsets": OffsetRange(10, 20),
    } | changed
    return finding(code, **values)


def rows(*findings, cluster="c"):
    ids = finding_ids(findings, cluster, ["/mnt/a", "/mnt/b"])
    return [
        {
            "finding_id": own,
            "cluster_id": cluster,
            "code": item.code,
            "severity": item.severity.value,
            "severity_rank": item.severity.rank,
            "confidence_rank": item.confidence.rank,
            "topic": None if isinstance(item.topic, Absent) else item.topic,
            "partition": None if isinstance(item.partition, Absent) else item.partition,
            "node_id": None if isinstance(item.broker_id, Absent) else item.broker_id,
            "first_offset": None if isinstance(item.offsets, Absent) else item.offsets.first,
            "last_offset": None if isinstance(item.offsets, Absent) else item.offsets.last,
            "statement": item.statement,
        }
        for own, item in zip(ids, findings, strict=True)
    ]


def node(number, cluster="c"):
    return {"audit_id": "a", "input": number, "cluster_id": cluster, "node_id": number}


def replica(number, topic="orders", partition=3, cluster="c"):
    return {"cluster_id": cluster, "topic": topic, "partition": partition, "node_id": number}


def changes(before, after, *, nodes=(1, 2), nodes_after=(1, 2), problems=(), replicas=(1, 2)):
    found = changed_rows(
        before,
        after,
        earlier_nodes=[node(number) for number in nodes],
        later_nodes=[node(number) for number in nodes_after],
        later_problems=problems,
        earlier_replicas=[replica(number) for number in replicas],
    )
    return {row.finding_id: row.change for row in found}


def change_of(before, after, **more):
    (change,) = changes(rows(before), rows(after), **more).values()
    return change


@pytest.mark.parametrize(
    ("after", "change"),
    [
        ({}, Change.UNCHANGED),
        ({"offsets": OffsetRange(10, 21)}, Change.WORSE),
        ({"offsets": OffsetRange(9, 20)}, Change.WORSE),
        ({"offsets": OffsetRange(30, 31)}, Change.WORSE),
        ({"offsets": OffsetRange(11, 20)}, Change.BETTER),
        ({"offsets": OffsetRange(10, 19)}, Change.BETTER),
        ({"offsets": Absent.UNKNOWN}, Change.WORSE),
        ({"severity": Severity.ERROR, "offsets": OffsetRange(0, 90)}, Change.BETTER),
        ({"statement": "other words"}, Change.CHANGED),
        ({"confidence": Confidence.POSSIBLE}, Change.CHANGED),
    ],
)
def test_the_change_of_a_finding(after, change):
    assert change is change_of(one(), one(**after))


def test_a_finding_that_is_more_certain_or_graver_is_worse():
    assert Change.WORSE is change_of(one(confidence=Confidence.LIKELY), one())
    assert Change.WORSE is change_of(one(severity=Severity.WARNING), one(offsets=OffsetRange(11, 12)))


def test_findings_are_new_and_gone():
    old, new = one(broker_id=1), one(broker_id=2)

    assert {"KF201/c/orders-3/1": Change.GONE, "KF201/c/orders-3/2": Change.NEW} == changes(rows(old), rows(new))


@pytest.mark.parametrize(
    "lacking",
    [
        {"nodes_after": (1,)},
        {"nodes_after": ()},
        {"problems": [{"audit_id": "a", "input": 1, "topic": None, "partition": None}]},
        {"problems": [{"audit_id": "a", "input": 2, "topic": "orders", "partition": 3}]},
        # No partition that is known: a log directory may well be called data-0.
        {"problems": [{"audit_id": "a", "input": 2, "topic": "data", "partition": 0}]},
        {"nodes": (1, 2, None)},
        {"replicas": (1, 2, None)},
    ],
)
def test_what_was_not_read_again_ends_no_finding(lacking):
    of_nobody = one("KF402", broker_id=Absent.NOT_APPLICABLE, offsets=Absent.NOT_APPLICABLE)
    found = changes(rows(one(), of_nobody), [], **lacking)

    if "nodes" in lacking:  # a node without an id that held no replica of it
        assert {Change.GONE} == set(found.values())
    else:
        assert {Change.UNCHECKED} == set(found.values())


def test_a_problem_of_another_partition_or_node_ends_nothing_else():
    other = [{"audit_id": "a", "input": 2, "topic": "orders", "partition": 4}]
    found = changed_rows(
        rows(one()),
        [],
        earlier_nodes=[node(1), node(2)],
        later_nodes=[node(1), node(2), node(3)],
        later_problems=[*other, {"audit_id": "a", "input": 3, "topic": None, "partition": None}],
        earlier_replicas=[replica(1), replica(2), replica(2, partition=4)],
    )

    assert [Change.GONE] == [row.change for row in found]


def test_findings_of_a_cluster_and_of_a_node_need_those_that_showed_them():
    of_cluster = one("KF507", topic_partition=Absent.NOT_APPLICABLE, broker_id=Absent.NOT_APPLICABLE)
    of_node = one("KF508", topic_partition=Absent.NOT_APPLICABLE, broker_id=1)

    found = changes(rows(of_cluster, of_node), [], nodes_after=(1,))

    assert {"KF507/c/-/-": Change.GONE, "KF508/c/-/1": Change.GONE} == changes(rows(of_cluster, of_node), [])
    assert {"KF507/c/-/-": Change.UNCHECKED, "KF508/c/-/1": Change.GONE} == found


def test_two_clusters_do_not_mix():
    before = [*rows(one(), cluster="a"), *rows(one(), cluster="b")]
    found = changed_rows(
        before,
        rows(one(), cluster="a"),
        earlier_nodes=[node(2, "a"), node(2, "b")],
        later_nodes=[node(2, "a")],
        later_problems=[],
        earlier_replicas=[replica(2, cluster="a"), replica(2, cluster="b")],
    )

    assert {"KF201/a/orders-3/2": Change.UNCHANGED, "KF201/b/orders-3/2": Change.UNCHECKED} == {
        row.finding_id: row.change for row in found
    }


def test_a_partition_of_which_no_replica_was_found_needs_the_whole_cluster():
    nowhere = one("KF216", broker_id=Absent.NOT_APPLICABLE)

    assert Change.UNCHECKED is change_of_missing(nowhere, replicas=(), nodes_after=(1,))
    assert Change.GONE is change_of_missing(nowhere, replicas=())


def change_of_missing(before, **more):
    (change,) = changes(rows(before), [], **more).values()
    return change


def test_the_id_is_of_code_cluster_partition_broker_and_of_what_it_is_about():
    cited = Citation(input=1, path="data-0/orders-3/00000000000000000000.log", span=Span(4096, 10))
    placed = one("KF206", citations=(cited,))
    moved = replace(placed, offsets=OffsetRange(7, 8), citations=(replace(cited, path=cited.path[len("data-0/") :]),))

    assert (
        ("KF206/c/orders-3/2/orders-3/00000000000000000000.log@4096",)
        == finding_ids([placed], "c", [])
        == finding_ids([moved], "c", [])
    )
    nameless = one(broker_id=Absent.UNKNOWN, citations=(cited,))
    assert ("KF201/-/orders-3/%2Fmnt%2Fb",) == finding_ids([nameless], None, ["/mnt/a", "/mnt/b"])
    assert ("KF201/c/or%2Fd-0/2",) == finding_ids([one(topic_partition=TopicPartition("or/d", 0))], "c", [])


texts = st.sampled_from(["a", "b"])
found = st.builds(
    one,
    code=st.sampled_from(sorted(all_rules())),
    severity=st.sampled_from(Severity),
    confidence=st.sampled_from(Confidence),
    statement=texts,
    topic_partition=st.sampled_from([ORDERS, TopicPartition("orders", 4), Absent.NOT_APPLICABLE]),
    broker_id=st.sampled_from([1, 2, Absent.UNKNOWN, Absent.NOT_APPLICABLE]),
    offsets=st.builds(lambda first, more: OffsetRange(first, first + more), st.integers(0, 9), st.integers(0, 9))
    | st.just(Absent.NOT_APPLICABLE),
    citations=st.lists(
        st.builds(Citation, input=st.integers(0, 1), path=texts, span=st.builds(Span, st.integers(0, 2), st.just(1))),
        max_size=2,
    ).map(tuple),
)


@given(st.lists(found, max_size=6))
def test_an_audit_compared_with_itself_shows_nothing(findings):
    given_rows = rows(*findings)
    result = changes(given_rows, given_rows, nodes_after=())

    assert len(findings) == len(result)
    assert set(result.values()) <= {Change.UNCHANGED}


@given(st.lists(found, min_size=1, max_size=6), st.integers(-5, 5), st.integers(-5, 5))
def test_moved_offsets_are_worse_or_better_and_nothing_else(findings, first, last):
    before = rows(*findings)
    after = [
        row
        | (
            {}
            if row["first_offset"] is None
            else {"first_offset": row["first_offset"] + first, "last_offset": row["last_offset"] + last}
        )
        for row in before
    ]

    result = changes(before, after)

    for row in before:
        if row["first_offset"] is None or not (first or last):
            assert Change.UNCHANGED is result[row["finding_id"]]
        elif first >= 0 >= last:
            assert Change.BETTER is result[row["finding_id"]]
        else:
            assert Change.WORSE is result[row["finding_id"]]


@given(st.lists(found, max_size=6), st.lists(found, max_size=6))
def test_every_finding_has_one_change_and_only_what_was_there_can_end(before, after):
    earlier, later = rows(*before), rows(*after)
    result = changes(earlier, later)

    ids_before, ids_after = ({row["finding_id"] for row in one} for one in (earlier, later))
    assert ids_before | ids_after == set(result)
    assert {own for own, change in result.items() if change is Change.NEW} == ids_after - ids_before
    ended = {own for own, change in result.items() if change in {Change.GONE, Change.UNCHECKED}}
    assert ended == ids_before - ids_after
