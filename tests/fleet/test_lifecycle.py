"""The life of findings over many nights: a source that is away, two schedules in one history, and what the tables say of it."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from kforensics.ask.fleet import FleetAsk
from kforensics.ask.model import Ask
from kforensics.cli.app import run
from kforensics.damage import Absent
from kforensics.errors import FormatError
from kforensics.findings.model import Severity
from kforensics.fleet.audit_tables import history_of, open_audits
from kforensics.fleet.commands import run_report
from kforensics.fleet.comparison import compare_audits
from kforensics.fleet.lifecycle import open_findings
from kforensics.fleet.tables import Tables
from kforensics.units import Depth
from tests.builders.audits import CLUSTER, one_finding, write_audit
from tests.builders.coordinators import batch
from tests.builders.directories import CLUSTER as OWN_CLUSTER
from tests.fleet.nights import expected, run_nights, shown
from tests.fleet.test_identity import node


@pytest.fixture
def history(tmp_path):
    return tmp_path / "history"


@pytest.fixture
def night(history):
    """Writes the audit of a night: partitions that have a finding, and the nodes that could be read."""

    def audited(name, *partitions, **more):
        findings = [one_finding("KF202", Severity.ERROR, partition=number) for number in partitions]
        return write_audit(history, findings, audit_id=name, is_history=True, **more)

    return audited


def life(audit):
    return {row["partition"]: (row["state"], row["change"]) for row in audit.rows("changes")}


def seen(audit, partition):
    row = next(row for row in audit.rows("changes") if row["partition"] == partition)
    return [row[name] for name in ("first_seen", "last_seen", "last_checked")]


def at(audit):
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=audit.audited_ns // 1_000)


def test_a_night_without_a_source_makes_no_old_finding_new(night, history):
    first = night("1", *range(20))
    without = night("2", nodes=(1,))
    again = night("3", *range(20))

    assert {("open", "new")} == set(life(first).values())
    assert {("not-checked", "unchecked")} == set(life(without).values())
    assert {("open", "unchanged")} == set(life(again).values())
    assert [at(first), at(again), at(again)] == seen(again, 7)
    assert [at(first)] * 3 == seen(without, 7)
    assert {"unchanged": 20} == compare_audits(without, again).findings_by_change
    assert 0 == run(["fleet", "report", str(history), "--fail-on", "new", "--fail-on", "worse"])


def test_what_is_over_is_closed_once_and_new_when_it_comes_back(night, history):
    nights = [night("1", 3), night("2"), night("3"), night("4", 3)]

    assert [
        {3: ("open", "new")},
        {3: ("closed", "gone")},
        {},
        {3: ("open", "new")},
    ] == [life(one) for one in nights]
    assert [at(nights[0]), at(nights[0]), at(nights[1])] == seen(nights[1], 3)
    assert at(nights[3]) == seen(nights[3], 3)[0]
    assert 1 == run(["fleet", "report", str(history), "--fail-on", "new"])


def test_what_was_not_checked_for_nights_is_closed_only_by_all_that_showed_it(night):
    night("1", 3)
    away = [night("2", nodes=(1,)), night("3", nodes=(2,))]
    troubled = night(
        "4", problems=[{"input": 1, "path": "orders-3", "topic": "orders", "partition": 3, "message": "…"}]
    )

    assert [{3: ("not-checked", "unchecked")}] * 3 == [life(one) for one in (*away, troubled)]
    assert {3: ("closed", "gone")} == life(night("5"))


@pytest.mark.slow
def test_audits_of_the_ends_and_of_the_content_share_a_history(night, history):
    night("content-1", 3, 4)
    hours = [night(f"ends-{hour}", 3, depth=Depth.TAILS) for hour in range(3)]
    content = night("content-2", 3, 4)

    assert [{3: ("open", "unchanged"), 4: ("not-checked", "unchecked")}] * 3 == [life(one) for one in hours]
    assert {3: ("open", "unchanged"), 4: ("open", "unchanged")} == life(content)
    assert {3: ("not-checked", "unchecked"), 4: ("not-checked", "unchecked")} == life(
        night("ends-4", depth=Depth.TAILS)
    )
    assert {3: ("closed", "gone"), 4: ("closed", "gone")} == life(night("content-3"))


def test_each_cluster_has_its_own_nights(night):
    night("a-1", 3, cluster="a")
    night("b-1", 3, cluster="b")
    assert {3: ("open", "unchanged")} == life(night("a-2", 3, cluster="a"))
    assert {3: ("closed", "gone")} == life(night("b-2", cluster="b"))


def test_an_audit_of_other_topics_closes_nothing(night):
    night("1", 3)
    assert {3: ("not-checked", "unchecked")} == life(night("2", scope={"topics": ["payments"], "partitions": []}))
    assert {3: ("closed", "gone")} == life(night("3"))


@pytest.mark.slow
def test_thirty_nights_with_flaps_have_no_false_new(night, history):
    """Two nodes come and go, one finding ends in the tenth night and another begins in the twentieth."""
    for number in range(30):
        nodes = (1,) if number % 4 == 1 else (2,) if number % 7 == 3 else (1, 2)
        there = [3] * (number < 10) + [4] + [5] * (number >= 20)
        depth = Depth.TAILS if number % 5 == 4 and len(nodes) == 2 else Depth.CONTENT
        night(f"{number:02}", *(there if len(nodes) == 2 else ()), nodes=nodes, depth=depth)

    audits = history_of(Tables(history))
    new = [(one.audit_id, number) for one in audits for number, (_, change) in life(one).items() if change == "new"]
    closed = [number for one in audits for number, (state, _) in life(one).items() if state == "closed"]
    first = next(number for number in range(20, 30) if number % 4 != 1 and number % 7 != 3)
    assert [("00", 3), ("00", 4), (f"{first:02}", 5)] == new
    assert [3] == closed
    assert {4, 5} == {row["partition"] for row in open_findings(audits[-1])}


@pytest.mark.slow
def test_what_another_replica_shows_while_one_is_away_is_not_new_until_all_are_read(history):
    """Broker 2 differs from its leader, 1; without that one 3 is said to differ from 2."""

    def audited(name, *brokers, nodes=(1, 2, 3)):
        findings = [one_finding("KF204", broker=broker, partition=0) for broker in brokers]
        audit = write_audit(history, findings, audit_id=name, is_history=True, nodes=nodes)
        return {row["node_id"]: (row["state"], row["change"]) for row in audit.rows("changes")}

    assert {2: ("open", "new")} == audited("1", 2)
    elsewhere = {2: ("not-checked", "unchecked"), 3: ("open", "changed")}
    assert elsewhere == audited("2", 3, nodes=(2, 3))
    first, second = history_of(Tables(history))
    assert {at(first)} == {row["first_seen"] for row in second.rows("changes")}
    assert elsewhere == audited("3", 3, nodes=(2, 3))
    assert {2: ("open", "unchanged")} == audited("4", 2)
    assert elsewhere == audited("5", 3, nodes=(2, 3))
    # Both differ: what broker 3 has is new once there is a leader that shows it.
    assert {2: ("open", "unchanged"), 3: ("open", "new")} == audited("6", 2, 3)
    assert {2: ("not-checked", "unchecked"), 3: ("open", "unchanged")} == audited("7", 3, nodes=(1, 3))


def test_what_differs_while_the_broker_that_differed_is_away_is_new(history, night):
    night("1", 0)
    other = [one_finding("KF202", Severity.ERROR, broker=1, partition=0)]
    audit = write_audit(history, other, audit_id="2", is_history=True, nodes=(1,))

    assert {1: "new", 2: "unchecked"} == {row["node_id"]: row["change"] for row in audit.rows("changes")}


@pytest.mark.slow
def test_a_finding_that_weighs_less_without_a_broker_is_no_better_and_not_worse_the_night_after(history):
    def audited(name, severity, nodes=(1, 2), offsets=(10, 20)):
        findings = [one_finding("KF206", severity, partition=0, offsets=offsets)]
        audit = write_audit(history, findings, audit_id=name, is_history=True, nodes=nodes)
        (row,) = audit.rows("changes")
        return row["change"], row["severity"], row["last_offset"]

    assert ("new", "error", 20) == audited("1", Severity.ERROR)
    assert ("unchanged", "error", 20) == audited("2", Severity.WARNING, nodes=(2,))
    assert ("unchanged", "error", 20) == audited("3", Severity.ERROR, nodes=(2,), offsets=(10, 15))
    assert ("unchanged", "error", 20) == audited("4", Severity.ERROR)
    assert ("better", "warning", 15) == audited("5", Severity.WARNING, offsets=(10, 15))
    assert ("worse", "critical", 15) == audited("6", Severity.CRITICAL, nodes=(2,), offsets=(10, 15))


def test_that_a_broker_is_not_given_is_never_new(history):
    def audited(name, *findings, nodes=(1, 2)):
        audit = write_audit(history, findings, audit_id=name, is_history=True, nodes=nodes)
        return [row["change"] for row in audit.rows("changes") if row["code"] == "KF213"]

    absent = one_finding("KF213", Severity.NOTE, broker=Absent.NOT_APPLICABLE, partition=0)
    nights = [
        audited("0", one_finding(partition=1)),
        audited("1", absent, nodes=(1,)),
        audited("2", absent, nodes=(1,)),
    ]
    assert [[], ["changed"], ["unchanged"], ["gone"], ["changed"]] == [*nights, audited("3"), audited("4", absent)]


@pytest.mark.slow
def test_nights_of_three_clusters_with_brokers_that_come_and_go(audit_here, tmp_path):
    """Two schedules and two clusters in one history, and a third with ZooKeeper, whose nights are green."""

    def audited(inventories, history, name, options):
        more = {"options": options, "is_history": True, "audit_id": name, "keep_going": True}
        return audit_here(*inventories, out=history, **more)

    told = run_nights(tmp_path, 8, audited)

    new, closed = expected(8)
    assert (new, closed, []) == (told.new, told.closed, told.not_green)
    table = "\n".join(shown(told, 8))
    assert "3 began: 0 false new, 0 missed" in table
    assert "KF204/b/orders-3/2" in table


def test_an_audit_of_its_own_has_the_changes_since_the_one_that_it_is_built_on(tmp_path):
    first = write_audit(tmp_path / "first", [one_finding(partition=3)])
    (own,) = open_audits(tmp_path / "first")
    assert {3: ("open", "new")} == life(own)
    assert first.audit_id == own.audit_id
    body = run_report(FleetAsk(tables=str(tmp_path / "first"))).body
    assert body.comparison is None


@pytest.mark.slow
def test_each_cluster_builds_on_its_own_latest_audit(audit_here, tmp_path):
    """Two schedules in one history: what the other one read in between is no base."""
    places = {}
    for name in ("a", "b"):
        places[name] = node(tmp_path / name, 1, cluster=False)
        (places[name] / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={name}\n")
        for path in places[name].rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))

    def night(name):
        return audit_here(places[name], out=tmp_path / "history", is_history=True).manifest["reused_segments"]

    assert [0, 0, 2, 2] == [night(name) for name in "abab"]
    (places["a"] / "orders-1" / f"{0:020}.log").write_bytes(batch(0, [(b"k", b"w")]))
    assert [1, 2] == [night(name) for name in "ab"]


def test_a_disk_that_is_away_leaves_its_findings_unchecked(audit_here, tmp_path):
    for number in (1, 2):
        for disk in (0, 1):
            node(tmp_path / f"b{number}d{disk}", number, partitions=(f"orders-{disk}",))
    log = next((tmp_path / "b1d1" / "orders-1").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0x40
    log.write_bytes(data)
    inventory = tmp_path / "inventory.yaml"
    own = "6It1kTHbTjKY3LNflMZizQ"
    inventory.write_text(
        json.dumps(
            [{"location": [f"b{number}d0", f"b{number}d1"], "node": number, "cluster": own} for number in (1, 2)]
        )
    )

    def night(name):
        tables = audit_here(
            inventory,
            out=tmp_path / "history",
            is_history=True,
            audit_id=name,
            keep_going=True,
            options=Ask(is_stopped=True),
        )
        return [(row["state"], row["change"]) for row in tables.rows("changes") if row["code"] == "KF210"]

    found = [night("1")]
    (tmp_path / "b1d1").rename(tmp_path / "away")
    (tmp_path / "b1d1").mkdir()
    found.append(night("2"))
    (tmp_path / "b1d1").rmdir()
    (tmp_path / "away").rename(tmp_path / "b1d1")
    found.append(night("3"))

    assert found == [[("open", "new")], [("not-checked", "unchecked")], [("open", "unchanged")]]


def test_a_disk_that_is_gone_below_a_given_parent_leaves_its_findings_unchecked(history, night):
    """Only the number of log directories says it: what is below a parent directory nobody names."""
    night("1", 3, log_dirs=2, problems=())
    without = [night(name, log_dirs=1, held=()) for name in ("2", "3")]
    assert [{3: ("not-checked", "unchecked")}] * 2 == [life(one) for one in without]
    # On another disk of the node the partition is there again.
    assert {3: ("closed", "gone")} == life(night("4", log_dirs=1, held=(3,)))


def test_a_node_of_another_cluster_holds_nothing_of_a_disk_that_is_gone(night):
    night("1", 3, log_dirs=2, nodes=((1, "a"), (1, "b")), cluster="a")
    (one,) = life(night("2", log_dirs=1, nodes=((1, "a"), (1, "b")), cluster="a", held=(3,), held_by=("b",))).values()
    assert ("not-checked", "unchecked") == one


def test_a_partition_that_was_reassigned_from_a_smaller_node_is_looked_at(night):
    night("1", 3, log_dirs=2)
    assert {3: ("closed", "gone")} == life(night("2", log_dirs=1, held=(), assigned=[7]))


def test_damage_of_files_is_over_where_its_own_broker_was_read_whoever_is_away(history):
    def audited(name, *brokers, nodes=(1, 2, 3), code="KF101"):
        findings = [one_finding(code, broker=broker, partition=0) for broker in brokers]
        audit = write_audit(history, findings, audit_id=name, is_history=True, nodes=nodes)
        return {row["node_id"]: (row["state"], row["change"]) for row in audit.rows("changes")}

    audited("1", 2)
    # Broker 3 is damaged itself: that is new, not what broker 2 had.
    assert {2: ("closed", "gone"), 3: ("open", "new")} == audited("2", 3, nodes=(2, 3))
    assert {3: ("not-checked", "unchecked")} == audited("3", nodes=(1, 2))


def test_what_comes_while_a_broker_is_gone_for_good_is_new_the_night_after(history):
    def audited(name, *brokers, nodes=(2, 3, 4), retired=()):
        findings = [one_finding("KF204", broker=broker, partition=0) for broker in brokers]
        audit = write_audit(history, findings, audit_id=name, is_history=True, nodes=nodes, retired=retired)
        return {row["node_id"]: (row["state"], row["change"]) for row in audit.rows("changes")}

    audited("1", 2, nodes=(1, 2, 3, 4))
    assert {2: ("not-checked", "unchecked"), 3: ("open", "changed")} == audited("2", 3)
    assert ("open", "new") == audited("3", 3, 4)[4]
    assert {2: ("closed", "gone"), 4: ("open", "unchanged")}.items() <= audited("4", 4, retired=[[None, 1]]).items()


@pytest.mark.parametrize(("of", "change"), [("other", "unchecked"), (CLUSTER, "gone"), (None, "gone")])
@pytest.mark.some(2)
def test_a_node_that_is_gone_for_good_is_that_of_its_own_cluster(history, of, change):
    """Broker 3, which a finding is about, is not given; brokers 2 and 4 have shown it."""
    more = {"is_history": True, "nodes": (2, 4)}
    write_audit(history, [one_finding(broker=3)], audit_id="1", **more)
    later = write_audit(history, audit_id="2", retired=[[of, 3]], **more)

    assert [change] == [row["change"] for row in later.rows("changes")]


def test_an_inventory_names_nodes_that_it_expects_no_longer(audit_here, tmp_path):
    node(tmp_path / "b1", 1)
    inventory = tmp_path / "fleet.csv"
    inventory.write_text("location,node,expected\nb1,1,\n,2,false\n")

    assert [[None, 2]] == audit_here(inventory).manifest["retired"]
    inventory.write_text("location,node,expected\nb1,1,maybe\n")
    with pytest.raises(FormatError, match="true or false in the column `expected`"):
        audit_here(inventory)
    inventory.write_text("location,node,expected\nb1,1,\n,,no\n")
    with pytest.raises(FormatError, match="the node that entry 2"):
        audit_here(inventory)


def test_a_wrong_node_in_the_inventory_is_new_once(audit_here, tmp_path):
    place = node(tmp_path / "b1", 1)
    (tmp_path / "fleet.yaml").write_text(json.dumps([{"location": str(place), "node": 2}]))

    def night(name):
        audit = audit_here(tmp_path / "fleet.yaml", out=tmp_path / "history", is_history=True, audit_id=name)
        rows = [row for row in audit.rows("changes") if row["code"] == "KF407"]
        return [(row["change"], row["cluster_id"]) for row in rows]

    assert [[("new", OWN_CLUSTER)], [("unchanged", OWN_CLUSTER)]] == [night("1"), night("2")]
