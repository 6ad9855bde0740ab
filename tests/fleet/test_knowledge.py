"""What is known of the clusters beside their replicas: it travels as data, and no task reads it again."""

import pytest

import kforensics.fleet
from kforensics.ask.model import Ask
from kforensics.commands.diff import compare
from kforensics.evidence import group_commits
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet.rows import finding_of
from kforensics.fleet.tables import Tables
from kforensics.source.mapped import open_evidence
from kforensics.units import Depth
from tests.builders.cases import case_of
from tests.builders.coordinators import batch, commit, write_log
from tests.builders.directories import log_dir

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
        kforensics.fleet.scan(
            cluster / f"broker-{number}", out=tmp_path / "evidence" / str(number), normal_priority=True
        )
    opened.clear()

    options = Ask(leader=2)
    tables = audit_here(tmp_path / "evidence" / "*", groups=7, options=options)

    assert {0, 1, 2, 3} == proven(tables)
    assert of_diff(cluster, options, plain) == of_audit(tables, plain)


def test_knowledge_is_read_once_by_a_process(audit_here, cluster, monkeypatch):
    read = []
    read_as_before = Tables.read_bytes

    def reading(self, folder, name):
        read.extend([name] if name.startswith("knowledge-") else [])
        return read_as_before(self, folder, name)

    monkeypatch.setattr(Tables, "read_bytes", reading)
    audit_here(cluster, groups=7)

    assert 1 == len(read)
