"""What is known of the clusters beside their replicas: it travels as data, and no task reads it again."""

import re
import sys
from collections import Counter

import pytest

from kforensics.ask.model import Ask
from kforensics.commands.capture import run as capture
from kforensics.commands.comparing import compare
from kforensics.evidence import group_commits
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet import plan, stages
from kforensics.fleet.pieces import bring_facts
from kforensics.fleet.rows import finding_of
from kforensics.source.mapped import open_evidence
from kforensics.units import Depth
from tests.builders.cases import case_of
from tests.builders.coordinators import batch, commit, write_log
from tests.builders.directories import copied, log_dir

PROOF = "consumer group g committed offset 8 in leader epoch 0"


@pytest.fixture
def cluster(tmp_path):
    """Two brokers of different ends, of whose records only a commit, on the third, shows that they were committed."""
    for number, ends in ((1, 10), (2, 5), (3, 0)):
        place = log_dir(tmp_path / "cluster" / f"broker-{number}", number, partitions=())
        (place / "replication-offset-checkpoint").unlink()
        for partition in range(4) if ends else ():
            records = [batch(at, [(b"k", b"v")]) for at in range(ends)]
            write_log(place, f"orders-{partition}", (0, b"".join(records)))
    for partition in range(2):
        commits = [commit("g", "orders", 2 * at + partition, 8, leader_epoch=0) for at in range(2)]
        write_log(place, f"__consumer_offsets-{partition}", (0, batch(0, commits)))
    return tmp_path / "cluster"


@pytest.fixture
def opened(monkeypatch):
    """The segments of consumers' offsets that were opened for what they say."""
    found = []

    def opening(path):
        found.append(str(path))
        return open_evidence(path)

    monkeypatch.setattr(group_commits, "open_evidence", opening)
    return found


def of_diff(place, options, plain):
    found = compare(case_of(find_inputs([place], with_server_logs=True), options), keep_quiet=True)
    return sorted(map(plain, found.findings))


def of_audit(tables, plain):
    rows = (finding_of(row) for row in tables.rows("findings"))
    return sorted(plain(one) for one in rows if not one.code.startswith("KF4"))


def proven(tables):
    rows = tables.rows("partitions", columns=["topic", "partition", "report"])
    return {row["partition"] for row in rows if row["topic"] == "orders" and PROOF in (row["report"] or "")}


@pytest.mark.parametrize("depth", Depth)
@pytest.mark.some(1)
def test_commits_of_groups_are_read_once_whatever_the_number_of_tasks(audit_here, cluster, plain, opened, depth):
    options = Ask(depth=depth, leader=2)
    expected = of_diff(cluster, options, plain)
    read_by_diff = sorted(opened)
    assert read_by_diff
    opened.clear()

    for groups in (1, 7):
        tables = audit_here(cluster, groups=groups, options=options)
        assert {0, 1, 2, 3} == proven(tables)
        assert expected == of_audit(tables, plain)
        assert read_by_diff == sorted(opened)
        opened.clear()


def test_commits_in_captures_are_known_to_every_group(audit_here, cluster, plain, tmp_path, opened):
    for number in (1, 2, 3):
        capture(Ask(paths=(cluster / f"broker-{number}",), out=tmp_path / f"{number}.kfc"))
    opened.clear()

    options = Ask(leader=2)
    tables = audit_here(tmp_path / "*.kfc", groups=7, options=options)

    assert {0, 1, 2, 3} == proven(tables)
    assert of_diff(cluster, options, plain) == of_audit(tables, plain)


@pytest.fixture
def opens():
    """The names of files that are opened below open directories, as all evidence is, while the test runs."""
    found = []
    is_wanted = [True]

    def note(event, values):
        if is_wanted and event == "open" and re.fullmatch(r"[^/]+(\.[a-z]+|-checkpoint)", str(values[0])):
            found.append(str(values[0]))

    sys.addaudithook(note)
    yield found
    is_wanted.clear()


@pytest.mark.parametrize("depth", Depth)
@pytest.mark.some(1)
def test_opens_of_files_do_not_depend_on_the_number_of_tasks(
    audit_here, incident, cluster, plain, opens, monkeypatch, depth, tmp_path
):
    snapshot = incident("unclean-election-4.x") / "snapshots" / "03-old-leader-down-live"
    for number in (1, 2, 3):
        copied(snapshot / f"broker-{number}", tmp_path / "cluster" / "kraft" / f"broker-{number}")
    brought = []
    counted = []

    def bringing(tables, part):
        brought.append(part)
        return bring_facts(tables, part)

    monkeypatch.setattr("kforensics.fleet.stages.bring_facts", bringing)

    for wanted in (2, 16):

        def divided(totals, wanted=wanted, **more):
            weight = sum(one.weight for one in totals)
            for name in ("LEAST_TASK", "LARGEST_TASK"):
                monkeypatch.setattr(plan, name, -(-weight // wanted))
            return plan.divide(totals, **more)

        monkeypatch.setattr("kforensics.fleet.auditing.divide", divided)
        opens.clear()
        brought.clear()
        audit_here(*sorted((tmp_path / "cluster").glob("**/broker-*")), groups=wanted, options=Ask(depth=depth))
        counted.append((Counter(opens), Counter(brought)))

    assert counted[0][0]
    assert 1 == len(counted[0][1])
    assert counted[0] == counted[1]


@pytest.mark.slow
def test_a_session_sees_the_captures_that_took_the_place_of_others(audit_here, cluster, plain, tmp_path):
    """The process lives on from one night to the next, with all that it knows."""
    night = [copied(cluster, tmp_path / f"night-{number}") for number in (1, 2)]
    log = night[1] / "broker-2" / "orders-0" / f"{0:020}.log"
    log.write_bytes(b"".join(batch(at, [(b"k", b"w")]) for at in range(7)))
    found = []
    for own in night:
        for number in (1, 2, 3):
            capture(Ask(paths=(own / f"broker-{number}",), out=tmp_path / f"new-{number}.kfc"))
            (tmp_path / f"new-{number}.kfc").replace(tmp_path / f"{number}.kfc")
        places = [tmp_path / f"{number}.kfc" for number in (1, 2, 3)]
        tables = audit_here(*places, options=Ask(leader=2))
        expected = compare(case_of(find_inputs(places), Ask(leader=2)), keep_quiet=True)
        assert sorted(map(plain, expected.findings)) == of_audit(tables, plain)
        found.append({row["node_id"]: row["log_end_offset"] for row in tables.rows("replicas") if _is_first(row)})

    assert [{1: 10, 2: 5}, {1: 10, 2: 7}] == found


def _is_first(row):
    return (row["topic"], row["partition"]) == ("orders", 0)


def test_offsets_that_tasks_read_have_a_session_before_anything_is_made_of_it(monkeypatch, audit_here, cluster):
    def no_session():
        raise InterruptedError

    monkeypatch.setattr(stages, "READ_HERE", -1)
    monkeypatch.setattr(stages, "_on_workers", lambda *_: pytest.fail("a column is made before there is a session"))
    gather = stages.gather_fleet
    monkeypatch.setattr("kforensics.fleet.auditing.gather_fleet", lambda _, fleet: gather(no_session, fleet))

    with pytest.raises(InterruptedError):
        audit_here(cluster)
