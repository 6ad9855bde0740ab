"""Verdicts are kept where neither the directories of a partition changed nor what is known of it, and nowhere else."""

import errno
import os

import pyarrow.dataset as pd
import pytest

from kforensics.ask.model import Ask
from kforensics.errors import EvidenceUnreadable
from kforensics.evidence.group_commits import commits_in_log
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.segments import read_segment
from kforensics.fleet import auditing, knowledge, pieces, stages
from kforensics.fleet.audit_tables import open_audits
from kforensics.fleet.judge import JudgedRows
from kforensics.fleet.plan import LogDirLister
from kforensics.fleet.publishing import part_stem
from kforensics.fleet.rows import problem_row
from kforensics.fleet.tables import Tables
from kforensics.fleet.views import view_statements
from kforensics.units import Depth
from tests.builders.coordinators import batch, commit, marker, write_log
from tests.builders.directories import copied, log_dir

LONG_AGO = (1_700_000_000, 1_700_000_000)
OWN = {"audit_id", "audited_at", "verdict_id", "scanned_ns", "chain"}
TABLES = ("nodes", "replicas", "segments", "digests", "lineage", "partitions", "findings", "problems", "commits")


def settled(place, time=LONG_AGO):
    for path in place.rglob("*"):
        os.utime(path, time)


@pytest.fixture
def cluster(tmp_path):
    """Two brokers with four partitions, the second of shorter logs, and one with what a group committed."""
    for number, ends in ((1, 10), (2, 5), (3, 0)):
        place = log_dir(tmp_path / "cluster" / f"broker-{number}", number, partitions=())
        (place / "replication-offset-checkpoint").unlink()
        for partition in range(4) if ends else ():
            write_log(place, f"orders-{partition}", (0, b"".join(batch(at, [(b"k", b"v")]) for at in range(ends))))
    for partition in range(2):
        commits = [commit("g", "orders", 2 * at + partition, 8, leader_epoch=0) for at in range(2)]
        write_log(place, f"__consumer_offsets-{partition}", (0, batch(0, commits)))
    settled(tmp_path / "cluster")
    return tmp_path / "cluster"


@pytest.fixture
def judged(monkeypatch):
    """The partitions that were judged."""
    found = []
    judge = JudgedRows.judge

    def judging(self, key, *values, **more):
        found.append(f"{key[1]}-{key[2]}")
        return judge(self, key, *values, **more)

    monkeypatch.setattr(JudgedRows, "judge", judging)
    return found


def content(tables):
    """All rows, but for what tells audits apart."""
    return {
        table: sorted(
            repr({name: value for name, value in row.items() if name not in OWN}) for row in tables.rows(table)
        )
        for table in TABLES
    }


@pytest.fixture
def night(audit_here, judged, cluster, tmp_path):
    """Audits into a history, holds the rows against those of an audit that knows no other, and gives the partitions that were judged."""
    options = Ask(leader=2)

    def run(*places, options=options, groups=3):
        judged.clear()
        places = places or (cluster,)
        tables = audit_here(*places, out=tmp_path / "history", is_history=True, options=options, groups=groups)
        found = sorted(judged)
        assert content(audit_here(*places, options=options)) == content(tables)
        return found

    return run


EVERY = ["__consumer_offsets-0", "__consumer_offsets-1", "orders-0", "orders-1", "orders-2", "orders-3"]


@pytest.mark.parametrize("depth", Depth)
@pytest.mark.some(1)
def test_only_what_changed_is_judged(night, cluster, depth):
    options = Ask(leader=2, depth=depth)
    assert EVERY == night(options=options)
    assert [] == night(options=options)

    log = cluster / "broker-2" / "orders-2" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + batch(5, [(b"k", b"w")]))
    os.utime(log, (LONG_AGO[0] + 9,) * 2)

    assert ["orders-2"] == night(options=options)
    assert [] == night(options=options)


def test_where_nothing_changed_names_and_times_are_all_that_is_looked_at(night, cluster, monkeypatch):
    night()
    rows, made = LogDirLister.rows, []

    def listed(self):
        made.append(self)
        return rows(self)

    monkeypatch.setattr(LogDirLister, "rows", listed)
    assert [] == night()
    assert 3 == len(made), "of the audit that knows no other"

    (cluster / "broker-1" / "orders-9").mkdir()
    os.utime(cluster / "broker-1" / "orders-9", LONG_AGO)
    assert ["orders-9"] == night()


def append(cluster, partition, at, broker=2):
    log = cluster / f"broker-{broker}" / f"orders-{partition}" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + batch(at, [(b"k", b"w")]))
    os.utime(log, (LONG_AGO[0] + at,) * 2)


def test_where_little_changed_the_listing_of_a_log_directory_is_read_once(audit_here, cluster, tmp_path, monkeypatch):
    history, read = tmp_path / "history", []
    audit_here(cluster, out=history, is_history=True)
    append(cluster, 1, 5)
    read_part = Tables.read_part

    def reading(self, table, part, **more):
        read.append((table, part))
        return read_part(self, table, part, **more)

    monkeypatch.setattr(Tables, "read_part", reading)
    audit_here(cluster, out=history, is_history=True)
    plans = [part for table, part in read if table == "plan"]
    assert len(plans) == len(set(plans)) == 3


@pytest.fixture
def asked(monkeypatch):
    """Gives what counts the audits that ask for a session from then on."""

    def counting():
        found, run = [], stages._run

        def counted(*given):
            found.append(1)
            return run(*given)

        monkeypatch.setattr(stages, "_run", counted)
        return found

    return counting


def test_little_that_changed_is_read_without_a_session(night, cluster, monkeypatch, asked):
    night()
    sessions = asked()
    in_tasks = []

    def counted(_asked, fleet, values, work):
        in_tasks.append(len(fleet.bases))
        return [work(fleet, value) for value in values]

    monkeypatch.setattr(stages, "_each_on_workers", counted)
    # The offsets of groups are more than what is read here, and are as they were.
    monkeypatch.setattr(stages, "READ_HERE", 0)
    append(cluster, 2, 5)
    assert ["orders-2"] == night()
    assert [1] == sessions, "of an audit that has nothing to keep"
    assert [0] == in_tasks, "likewise"

    monkeypatch.setattr(auditing, "SCANNED_HERE", 0)
    append(cluster, 2, 6)
    assert ["orders-2"] == night()
    assert [1, 1, 1] == sessions


def test_what_ended_an_attempt_is_not_tried_again_in_the_process_of_the_audit(
    audit_here, judged, cluster, tmp_path, monkeypatch, asked
):
    more = {"out": tmp_path / "history", "is_history": True, "options": Ask(leader=2)}
    audit_here(cluster, **more)
    append(cluster, 2, 5)
    scan = stages.scan_task

    def refused(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "/mnt/audits/segments")

    monkeypatch.setattr(stages, "scan_task", refused)
    with pytest.raises(
        EvidenceUnreadable, match=r"/mnt/audits/segments: can't be .* by task 0: No space left on device"
    ):
        audit_here(cluster, **more)
    monkeypatch.setattr(stages, "scan_task", scan)
    sessions = asked()
    judged.clear()

    audit_here(cluster, **more)

    assert ["orders-2"] == judged
    assert sessions


def parts_of(history, audit):
    return {
        (one.parent.parent.parent.name, one.name) for one in history.rglob(f"{part_stem(audit.audit_id)}-*.parquet")
    }


@pytest.mark.slow
def test_only_rows_of_what_changed_are_written_with_what_they_replace(night, cluster, tmp_path):
    history = tmp_path / "history"
    night()
    night()
    append(cluster, 2, 5)
    night()
    first, second, third = open_audits(history)

    # Findings about the whole cluster have no verdict to be kept by.
    assert not OF_VERDICTS_ALONE & {table for table, _ in parts_of(history, second)}
    assert {0, 1} == {second.row_count("replaced"), third.row_count("replaced") - second.row_count("replaced")}
    own = list(Tables.rows(third, "partitions", where=pd.field("audit_id") == third.audit_id))
    assert [("orders", 2)] == [(row["topic"], row["partition"]) for row in own]
    assert [first.audit_id, second.audit_id] == list(third.kept_from)
    assert len(EVERY) == third.row_count("partitions") == len(list(third.rows("partitions")))
    third.check_parts()


OF_VERDICTS_ALONE = {"commits", "partitions", "replicas", "segments", "digests", "lineage", "replaced"}


@pytest.mark.slow
def test_a_chain_that_is_long_is_written_again_as_a_whole(night, cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(auditing, "MOST_CHAINED", 2)
    for at in range(5, 9):
        night()
        append(cluster, 2, at)

    assert [0, 1, 2, 0] == [len(one.kept_from) for one in open_audits(tmp_path / "history")]


@pytest.mark.slow
def test_where_most_is_other_all_is_written_again(night, cluster, tmp_path):
    night()
    for partition in range(4):
        append(cluster, partition, 5 if partition else 10, broker=2 if partition else 1)
    night()

    assert () == open_audits(tmp_path / "history")[-1].kept_from


@pytest.mark.slow
def test_what_was_read_of_a_partition_that_could_not_be_judged_is_not_kept(audit_here, cluster, tmp_path, monkeypatch):
    judge, refused = JudgedRows.judge, ["orders-1"]

    def judging(self, key, *values, **more):
        if f"{key[1]}-{key[2]}" in refused:
            raise ValueError("no")
        return judge(self, key, *values, **more)

    monkeypatch.setattr(JudgedRows, "judge", judging)
    more = {"out": tmp_path / "history", "is_history": True, "options": Ask(leader=2)}
    audit_here(cluster, **more)
    refused.clear()
    later = [audit_here(cluster, **more) for _ in range(2)]

    expected = content(audit_here(cluster, options=Ask(leader=2)))
    assert [expected] * 2 == [content(one) for one in later]
    assert [0, 1] == [len(one.kept_from) > 0 for one in later] or [1, 2] == [len(one.kept_from) for one in later]


@pytest.mark.slow
def test_an_audit_of_fewer_clusters_is_no_part_of_a_chain(audit_here, cluster, tmp_path):
    other = log_dir(tmp_path / "other" / "broker-1", 1, partitions=())
    (other / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=other\n")
    write_log(other, "orders-0", (0, batch(0, [(b"k", b"v")])))
    settled(tmp_path / "other")
    both, one = (cluster, tmp_path / "other"), (tmp_path / "other",)
    more = {"out": tmp_path / "history", "is_history": True}

    nights = [audit_here(*places, **more) for places in (both, both, one, both, both)]

    assert [0, 1, 0, 0, 1] == [len(night.kept_from) for night in nights]
    assert content(nights[1]) == content(nights[3]) == content(nights[4]) == content(audit_here(*both))
    assert content(nights[2]) == content(audit_here(*one))


@pytest.mark.spark
@pytest.mark.slow
def test_views_in_sql_show_the_rows_that_hold(spark, night, cluster, tmp_path):
    history = tmp_path / "history"
    night()
    for at in (5, 6):
        append(cluster, 2, at)
        night()
        night(options=Ask(leader=2, depth=Depth.TAILS))
    wanted = {"partitions", "replaced", "nodes", "audits", "partitions_now", "partitions_before"}
    for statement in view_statements(str(history)):
        if statement.split()[5] in wanted:
            spark.sql(statement)

    *_, before, now = open_audits(history)
    assert before.kept_from
    assert now.kept_from
    for view, audit in (("now", now), ("before", before)):
        found = spark.sql(f"select verdict_id from partitions_{view} order by 1").collect()
        assert sorted(row["verdict_id"] for row in audit.rows("partitions")) == [row.verdict_id for row in found]


@pytest.mark.slow
def test_offsets_are_read_again_only_of_partitions_that_changed(night, cluster, monkeypatch):
    read: list[str] = []
    real = commits_in_log

    def reading(place, paths, unread):
        read.extend(path.split("/")[0] for path in paths)
        return real(place, paths, unread)

    monkeypatch.setattr(knowledge, "commits_in_log", reading)
    log = cluster / "broker-3" / "__consumer_offsets-1" / f"{0:020}.log"
    for at in range(2):
        log.write_bytes(log.read_bytes() + batch(2 + at, [commit("g", "orders", 3, 9 + at, leader_epoch=0)]))
        os.utime(log, (LONG_AGO[0] + at,) * 2)
        read.clear()
        night()
    # Once by the audit into the history, and twice by the one that knows no other.
    assert ["__consumer_offsets-0", "__consumer_offsets-1", "__consumer_offsets-1"] == sorted(read)

    append(cluster, 2, 5)
    read.clear()
    assert ["orders-2"] == night()
    assert ["__consumer_offsets-0", "__consumer_offsets-1"] == sorted(read)


@pytest.mark.slow
def test_offsets_of_a_file_that_could_not_be_read_are_read_again(audit_here, cluster, tmp_path, monkeypatch):
    read, real = read_segment, commits_in_log

    def refusing(file, *, path, base_offset):
        if "__consumer_offsets-1" in path:
            raise EvidenceUnreadable(path, "Input/output error")
        return read(file, path=path, base_offset=base_offset)

    def nothing(_place, paths, unread):
        unread += paths
        return ()

    more = {"out": tmp_path / "history", "is_history": True, "options": Ask(leader=2)}
    monkeypatch.setattr(pieces, "read_segment", refusing)
    monkeypatch.setattr(knowledge, "commits_in_log", nothing)
    assert [None] * 2 == [row["group_id"] for row in audit_here(cluster, **more).rows("commits")]
    monkeypatch.setattr(pieces, "read_segment", read)
    monkeypatch.setattr(knowledge, "commits_in_log", real)
    later = audit_here(cluster, **more)

    assert None not in [row["group_id"] for row in later.rows("commits")]
    assert content(audit_here(cluster, options=Ask(leader=2))) == content(later)


def test_a_transaction_that_ends_in_the_next_segment_is_committed_as_in_diff(audit_here, cluster):
    first = batch(0, [commit("g", "orders", 1, 7)], producer=5, transactional=True)
    write_log(cluster / "broker-3", "__consumer_offsets-2", (0, first), (1, marker(1, 5, commits=True)))

    rows = audit_here(cluster, options=Ask(leader=2)).rows("commits", where=pd.field("log") == 2)

    assert [("orders", 1, 7)] == [(row["topic"], row["partition"], row["committed_offset"]) for row in rows]


@pytest.mark.slow
def test_a_new_partition_and_one_that_is_gone(night, cluster):
    night()
    copied(cluster / "broker-1" / "orders-0", cluster / "broker-1" / "orders-4")
    for path in (cluster / "broker-1" / "orders-3").iterdir():
        path.unlink()
    (cluster / "broker-1" / "orders-3").rmdir()

    assert ["orders-3", "orders-4"] == night()


@pytest.mark.slow
def test_what_is_known_of_a_partition_is_a_part_of_its_verdict(night, cluster):
    night()
    log = cluster / "broker-3" / "__consumer_offsets-1" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + batch(2, [commit("g", "orders", 3, 9, leader_epoch=0)]))
    os.utime(log, (LONG_AGO[0] + 9,) * 2)

    assert ["__consumer_offsets-1", "orders-3"] == night()


def test_what_is_asked_is_a_part_of_each_verdict(night):
    night()

    assert EVERY == night(options=Ask(leader=1))


@pytest.mark.slow
def test_a_node_more_is_a_part_of_each_verdict(night, cluster):
    assert EVERY[2:] == night(cluster / "broker-1", cluster / "broker-2")

    assert EVERY == night()


@pytest.mark.slow
def test_a_change_that_may_have_gone_on_while_it_was_read_is_read_again(night, cluster):
    now = cluster.stat().st_mtime
    settled(cluster / "broker-2" / "orders-1", (now, now))
    night()

    assert ["orders-1"] == night()


@pytest.mark.slow
def test_a_partition_that_could_not_be_read_is_judged_again(night, cluster, monkeypatch):
    log = cluster / "broker-2" / "orders-1" / f"{0:020}.log"
    log.unlink()
    log.symlink_to(cluster / "nowhere")
    night()

    assert "orders-1" in night()


@pytest.mark.slow
def test_what_is_left_to_read_may_hold_no_segment(audit_here, cluster, tmp_path):
    places = [cluster / f"broker-{number}" for number in (1, 2, 3)]
    audit_here(*places, out=tmp_path / "history", is_history=True, audit_id="1")
    for place in places[:2]:
        for path in (place / "orders-1").iterdir():
            path.unlink()

    second = audit_here(*places, out=tmp_path / "history", is_history=True, audit_id="2")

    assert second.manifest["kept_verdicts"] > 0
    assert content(second) == content(audit_here(*places))


@pytest.mark.slow
def test_a_checkpoint_that_says_something_else_in_as_many_bytes_is_a_change(audit_here, cluster, tmp_path):
    places = [cluster / f"broker-{number}" for number in (1, 2, 3)]
    checkpoint = places[1] / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 0 5\n")
    settled(cluster)
    audit_here(*places, out=tmp_path / "history", is_history=True, audit_id="1")
    checkpoint.write_text("0\n1\norders 0 3\n")
    settled(cluster)

    second = audit_here(*places, out=tmp_path / "history", is_history=True, audit_id="2")

    assert content(second) == content(audit_here(*places))


def test_a_worker_that_is_lost_between_two_directories_takes_its_rows_along(audit_here, cluster, tmp_path, monkeypatch):
    real = pieces.scan_piece

    def scan(task, listing, *, earlier):
        if task.number == 1:
            raise MemoryError
        return real(task, listing, earlier=earlier)

    def blamed(scan):
        return frozenset(at for at, group in enumerate(scan.pieces) if any(one.number == 1 for one in group))

    monkeypatch.setattr(stages, "scan_piece", scan)
    monkeypatch.setattr(stages, "_blamed", blamed)

    tables = audit_here(cluster / "broker-1", cluster / "broker-2", out=tmp_path / "out")

    assert [row["message"] for row in tables.rows("problems")] == [
        "not read: the workers that tried were lost (MemoryError)"
    ] * 2


def test_a_problem_of_an_attempt_that_was_made_again_is_gone(audit_here, cluster, tmp_path, monkeypatch):
    real, tried = stages.scan_task, set()

    def scan(context, number):
        if number < len(context.pieces) and number not in tried:
            tried.add(number)
            row = problem_row(Problem(input=0, path="x", message="changed while it was read"))
            context.tables.write("problems", f"run-{context.run:04d}-task-{number:06d}", [row])
        return real(context, number)

    monkeypatch.setattr(stages, "scan_task", scan)

    tables = audit_here(cluster / "broker-1", cluster / "broker-2", out=tmp_path / "out")

    assert tried
    assert list(tables.rows("problems")) == []
