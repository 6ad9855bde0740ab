"""What was read once is not read again: in a later audit, or after an interruption."""

import json
import os
import shutil
from pathlib import Path

import pytest

from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.fleet.audit_tables import open_audit, open_audits
from kforensics.fleet.comparison import compare_audits
from kforensics.fleet.lock import LOCK
from kforensics.fleet.schemas import AUDIT_TABLES
from kforensics.fleet.summary import summarise
from kforensics.fleet.tables import AUDIT_MANIFEST, WORK, Tables
from tests.builders.directories import copied

pytestmark = pytest.mark.spark

AHEAD = 4_102_444_800
"""The year 2100: however long the audit takes, this file was written to after it."""

INCIDENT, SNAPSHOT = "unclean-election-4.x", "03-old-leader-down-live"


@pytest.fixture
def fleet(incident, tmp_path):
    """A fleet that may change, last written to long ago."""
    target = tmp_path / "fleet"
    copied(incident(INCIDENT) / "snapshots" / SNAPSHOT, target)
    for folder, _, names in os.walk(target):
        for name in names:
            os.utime(Path(folder, name), (1_700_000_000, 1_700_000_000))
    return target


def test_a_second_audit_reads_only_what_changed(run_audit, fleet, plain):
    first, tables = run_audit(fleet)
    changed = fleet / "broker-2" / "orders-0" / "00000000000000000000.log"
    data = bytearray(changed.read_bytes())
    data[-30] ^= 4
    changed.write_bytes(data)

    second, later = run_audit(fleet, since=tables)

    assert first.segments == second.segments
    assert (first.segments - 1, len(data)) == (second.reused_segments, second.read_bytes)
    assert second.brokers != first.brokers
    comparison = compare_audits(open_audit(tables), open_audit(later))
    assert comparison.new_findings
    assert {"orders"} == {one.topic for one in comparison.new_findings}


@pytest.mark.slow
def test_an_unchanged_fleet_is_judged_the_same_without_reading_it(run_audit, fleet, plain):
    first, tables = run_audit(fleet)

    second, later = run_audit(fleet, since=tables)

    assert (first.segments, 0) == (second.reused_segments, second.read_bytes)
    assert list(map(plain, first.findings)) == list(map(plain, second.findings))
    assert first.worst == second.worst
    comparison = compare_audits(open_audit(tables), open_audit(later))
    assert ((), (), ()) == (comparison.new_findings, comparison.gone_findings, comparison.changes)


@pytest.mark.slow
def test_a_file_that_may_still_change_is_read_again(run_audit, fleet):
    recent = fleet / "broker-2" / "orders-0" / "00000000000000000000.log"
    os.utime(recent, (AHEAD, AHEAD))
    first, tables = run_audit(fleet)

    second, _ = run_audit(fleet, since=tables)

    assert first.segments - 1 == second.reused_segments


class Interrupted(BaseException):
    """What ends an audit from outside."""


def interrupt_at(name):
    """A function that ends an audit when the stage is over."""

    def progress(stage):
        if stage.name == name and stage.seconds is not None:
            raise Interrupted

    return progress


def test_an_interrupted_audit_goes_on(run_audit, fleet, tmp_path):
    first, _ = run_audit(fleet)
    tables = tmp_path / "interrupted"
    with pytest.raises(Interrupted):
        run_audit(fleet, out=tables, progress=interrupt_at("scan and reconcile"))
    with pytest.raises(EvidenceUnreadable, match="did not finish"):
        summarise(open_audit(tables), most=1)

    second, _ = run_audit(fleet, out=tables)

    assert (first.segments, 0) == (second.reused_segments, second.read_bytes)
    assert (first.verdicts, first.finding_count, first.replicas) == (
        second.verdicts,
        second.finding_count,
        second.replicas,
    )
    assert 2 == (Tables(tables).read_manifest(AUDIT_MANIFEST) or {})["run"]
    assert sorted([*AUDIT_TABLES, AUDIT_MANIFEST]) == sorted(one.name for one in tables.iterdir() if one.name != LOCK)


def test_a_second_audit_at_the_same_time_is_refused_and_leaves_the_first_alone(run_audit, fleet, tmp_path):
    refused: list[object] = []

    def second(stage):
        if stage.name == "facts" and not refused:
            with pytest.raises(UsageError, match="is being written by another audit: process") as caught:
                run_audit(fleet, out=tmp_path / "both")
            refused.append(caught)

    summary, tables = run_audit(fleet, out=tmp_path / "both", progress=second)

    assert refused
    assert 22 == summary.replicas == open_audit(tables).row_count("replicas")


@pytest.mark.slow
def test_rows_that_vanish_while_the_audit_works_leave_it_incomplete(run_audit, fleet, tmp_path):
    def remove(stage):
        if stage.name == "scan and reconcile":
            work = tmp_path / "out" / WORK / "partitions"
            next(work.glob("*.arrow")).unlink()

    with pytest.raises(EvidenceUnreadable, match=r"the table partitions has \d+ rows where .* wrote \d+"):
        run_audit(fleet, out=tmp_path / "out", progress=remove)

    with pytest.raises(EvidenceUnreadable, match="did not finish"):
        open_audit(tmp_path / "out")
    again, _ = run_audit(fleet, out=tmp_path / "out")
    assert (7, 0) == (again.partition_count, again.read_bytes)


@pytest.mark.slow
def test_a_history_is_built_on_its_latest_audit_and_told_apart_by_id(run_audit, fleet, tmp_path):
    place = tmp_path / "history"
    first, _ = run_audit(fleet, out=place, is_history=True, audit_id="monday")
    second, _ = run_audit(fleet, out=place, is_history=True, audit_id="tuesday")
    again, _ = run_audit(fleet, out=place, is_history=True, audit_id="monday")

    assert (first.segments, 0) == (second.reused_segments, second.read_bytes)
    assert (first.findings, first.finding_ids, first.brokers) == (second.findings, second.finding_ids, second.brokers)
    assert ("monday", first.audited_ms, first.findings) == (again.audit_id, again.audited_ms, again.findings)
    assert ["monday", "tuesday"] == [one.audit_id for one in open_audits(place)]
    monday, tuesday = open_audits(place)
    compared = compare_audits(monday, tuesday)
    assert {"unchanged": first.finding_count} == compared.findings_by_change
    with pytest.raises(Interrupted):
        run_audit(fleet, out=place, is_history=True, progress=interrupt_at("write"))
    third, _ = run_audit(fleet, out=place, is_history=True, audit_id="wednesday")
    assert first.findings == third.findings
    assert ["monday", "tuesday", "wednesday"] == [one.audit_id for one in open_audits(place)]
    parts = [one.name for one in place.glob("findings/**/*.parquet")]
    # Of those after it nothing changed: their rows are in its parts.
    assert ["monday-00000.parquet"] == parts


def test_tables_that_are_not_those_that_were_written_are_refused(run_audit, fleet):
    _, tables = run_audit(fleet)
    part = tables / "findings" / "part-00000.parquet"
    whole = part.read_bytes()
    part.unlink()
    with pytest.raises(EvidenceUnreadable, match="the part is not there"):
        summarise(open_audit(tables), most=1)
    shutil.copy(tables / "problems" / "part-00000.parquet", part)
    with pytest.raises(EvidenceUnreadable, match="the part has 0 rows"):
        summarise(open_audit(tables), most=1)
    part.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EvidenceUnreadable, match="the part can't be read"):
        summarise(open_audit(tables), most=1)
    part.write_bytes(whole)
    shutil.copy(part, part.with_name("somebody-elses.parquet"))
    assert 1 <= len(summarise(open_audit(tables), most=1).findings)


def test_a_finished_audit_is_not_written_over(run_audit, fleet):
    _, tables = run_audit(fleet)

    with pytest.raises(UsageError, match="finished audit"):
        run_audit(fleet, out=tables)


def test_tables_never_lie_inside_the_evidence_nor_among_other_files(run_audit, fleet, tmp_path):
    with pytest.raises(UsageError, match="inside the evidence"):
        run_audit(fleet, out=fleet / "broker-1" / "tables")
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="overwrites nothing"):
        run_audit(fleet, out=other)
    with pytest.raises(EvidenceUnreadable, match="no tables"):
        run_audit(fleet, since=other)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / AUDIT_MANIFEST).write_text(json.dumps([1]))
    with pytest.raises(EvidenceUnreadable, match="no manifest"):
        run_audit(fleet, out=tmp_path / "broken")
