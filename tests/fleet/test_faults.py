"""What goes wrong while an audit runs is named, and everything else is judged."""

import errno
import os
import pickle
import shutil
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from kforensics.ask.model import Ask
from kforensics.damage import Absent
from kforensics.errors import EvidenceUnreadable, InputsRefused
from kforensics.evidence.replica.collect import CHANGED_MEANWHILE
from kforensics.findings.answers.fleet import fleet_answer
from kforensics.findings.answers.model import State
from kforensics.fleet import stages
from kforensics.fleet.pieces import scan_piece
from kforensics.fleet.plan import LogDirLister, log_dir_tasks
from kforensics.fleet.sources import Source, find_sources
from kforensics.fleet.stages import errors_of_tasks
from kforensics.fleet.summary import summarise
from kforensics.fleet.tables import WorkTables
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.store import Entry, ForeignPath
from kforensics.units import Depth
from tests.builders.directories import copied
from tests.fleet.test_identity import node

SNAPSHOT = "03-old-leader-down-live"


class DeadlyPath(ForeignPath):
    """A local path with one file that ends the process that opens it."""

    def _local(self):
        return os.fspath(self)

    def open_as_evidence(self):
        if str(self).endswith("payments-0/00000000000000000000.log") and "pyspark" in " ".join(sys.argv):
            os.kill(os.getpid(), signal.SIGKILL)
        return open_evidence(self._local())

    def entries(self):
        for item in os.scandir(self._local()):
            status = item.stat(follow_symlinks=False)
            yield Entry(item.name, status.st_mode, status.st_size, status.st_mtime_ns)

    def mode(self):
        return stat.S_IFDIR if Path(self._local()).is_dir() else os.lstat(self._local()).st_mode


@pytest.fixture
def broker(incident, tmp_path):
    target = tmp_path / "broker-2"
    copied(incident("unclean-election-4.x") / "snapshots" / SNAPSHOT / "broker-2", target)
    return target


def first_task(place):
    return log_dir_tasks(find_sources([Source(location=place)]).inputs)[0]


def scanned(task, rows):
    return scan_piece(task, rows)


def test_a_file_that_vanishes_is_named(broker):
    task = first_task(broker)
    rows = LogDirLister(task, Ask()).rows()
    (broker / "orders-0" / "00000000000000000000.log").unlink()

    read = scanned(task, rows)

    assert [("orders-0/00000000000000000000.log", "there is no such file")] == [
        (one["path"], one["message"]) for one in read.problems
    ]
    assert (7, 6) == (len(read.replicas), len(read.segments))


def test_a_directory_that_vanishes_is_named(broker):
    task = first_task(broker)
    rows = LogDirLister(task, Ask()).rows()
    shutil.rmtree(broker / "orders-0")

    read = scanned(pickle.loads(pickle.dumps(task)), rows)  # another process scans

    assert {"orders-0", "orders-0/00000000000000000000.log"} == {one["path"] for one in read.problems}
    assert 6 == len(read.segments)


def test_a_file_that_changes_while_it_is_read_is_named(broker, monkeypatch):
    task = first_task(broker)
    rows = LogDirLister(task, Ask()).rows()

    def open_and_append(path: Path) -> EvidenceFile:
        file = open_evidence(path)
        if "orders-1" in str(path) and path.suffix == ".log":
            with Path(path).open("ab") as target:
                target.write(bytes(61))
        return file

    monkeypatch.setattr("kforensics.fleet.pieces.open_evidence", open_and_append)
    read = scanned(task, rows)

    assert [("orders-1/00000000000000000000.log", CHANGED_MEANWHILE)] == [
        (one["path"], one["message"]) for one in read.problems
    ]
    assert [True] == [one["changed"] for one in read.segments if one["directory"] == "orders-1"]
    assert 7 == len(read.segments)


def test_a_source_that_is_not_there_stands_beside_the_others(broker, tmp_path):
    sources = [Source(location=broker), Source(location=tmp_path / "none", node_id=9)]
    with pytest.raises(InputsRefused, match="none: there is no such file"):
        find_sources(sources)
    found = find_sources(sources, keep_going=True)

    assert ["broker", "unreadable"] == [one.found.described.kind for one in found.inputs]
    assert [1] == [one.input for one in found.problems]
    assert 9 == found.inputs[1].found.described.broker_id
    assert isinstance(found.inputs[1].found.shape, Absent)


@pytest.mark.parametrize("depth", Depth)
def test_a_broker_that_vanishes_after_the_listing_is_one_problem(audit_here, tmp_path, depth):
    for number in (1, 2, 3):
        node(tmp_path / f"broker-{number}", number)

    def vanish(stage):
        if stage.name == "plan" and stage.seconds is not None:
            shutil.rmtree(tmp_path / "broker-2")

    options = Ask(replicas=(1, 2, 3), depth=depth)
    tables = audit_here(*(tmp_path / f"broker-{number}" for number in (1, 2, 3)), options=options, progress=vanish)

    summary = summarise(tables, most=9)
    assert [(1, "it vanished while the audit ran: what it holds is not judged")] == [
        (one.input, one.message) for one in summary.problems
    ]
    answer = fleet_answer(summary)
    assert State.UNKNOWN is answer.state
    assert "alone" not in " ".join((answer.headline, *answer.unknown, *(one.statement for one in summary.findings)))


@pytest.mark.spark
def test_a_node_that_cant_be_read_makes_the_audit_incomplete(run_audit, broker, tmp_path):
    (tmp_path / "empty").mkdir()

    summary, _ = run_audit(broker, tmp_path / "empty", keep_going=True)

    assert [(1, "an empty directory; likely the volume is not mounted or the broker never started here")] == [
        (one.input, one.message) for one in summary.problems
    ]
    assert ["sound", "unreadable"] == sorted(
        "sound" if one.health == "findings" else one.health for one in summary.brokers
    )
    assert 7 == summary.partition_count


@pytest.mark.spark
@pytest.mark.slow
def test_a_piece_that_kills_every_worker_is_left_out_and_named(spark, broker, tmp_path):
    from pyspark import cloudpickle

    from kforensics.fleet.audit_tables import open_audit
    from kforensics.fleet.auditing import audit

    other = tmp_path / "broker-3"
    copied(broker, other)
    (other / "meta.properties").write_text((broker / "meta.properties").read_text().replace("node.id=2", "node.id=3"))
    module = sys.modules[DeadlyPath.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        audit(
            lambda: spark,
            [Source(location=DeadlyPath(broker)), Source(location=other)],
            tmp_path / "tables",
            options=Ask(),
        )
    finally:
        cloudpickle.unregister_pickle_by_value(module)

    summary = summarise(open_audit(tmp_path / "tables"), most=10)
    assert summary.problems
    assert all("workers that tried were lost" in one.message for one in summary.problems)
    assert {0} <= {one.input for one in summary.problems}


def test_two_attempts_of_a_task_write_under_names_of_their_own(tmp_path):
    tables = WorkTables(tmp_path)
    tables.create(["state"])

    with tables.stream("state", "task") as first, tables.stream("state", "task") as second:
        first.write(b"first, and longer")
        second.write(b"second")
    assert b"first, and longer" == tables.read_bytes("state/task")

    nothing: Any = None
    with pytest.raises(TypeError):
        tables.write_bytes("state/task", nothing)
    assert b"first, and longer" == tables.read_bytes("state/task")
    assert ["task"] == [one.name for one in (tmp_path / "state").iterdir()]


def test_a_write_error_names_the_file(tmp_path):
    tables = WorkTables(tmp_path)

    with pytest.raises(OSError, match="No such file") as failed:
        tables.write("segments", "part", [])
    assert str(tmp_path / "segments" / "part.arrow") == failed.value.filename


@pytest.mark.spark
def test_a_task_that_cant_write_is_named_and_a_defect_stays_one(spark, tmp_path):
    from pyspark.errors import PythonException

    work = WorkTables(tmp_path)

    def full_disk(number):
        raise OSError(errno.ENOSPC, "No space left on device", f"/out/part-{number}.arrow")

    def defect(number):
        raise KeyError(number)

    def run(work):
        spark.range(3, 4).select(stages._on_workers(work, "string")("id").alias("one")).collect()

    with pytest.raises(EvidenceUnreadable, match="by task 3: No space left on device") as failed, errors_of_tasks(work):
        run(full_disk)
    assert "/out/part-3.arrow" == failed.value.path
    with pytest.raises(PythonException, match="KeyError"), errors_of_tasks(work):
        run(defect)
