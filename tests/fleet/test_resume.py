"""What was read once is not read again: in a later audit, or after an interruption."""

import json
import os
import shutil
from pathlib import Path

import pytest

from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.fleet.comparison import compare_audits
from kforensics.fleet.summary import summarise
from kforensics.fleet.tables import AUDIT_MANIFEST, Tables

pytestmark = pytest.mark.spark

AHEAD = 4_102_444_800
"""The year 2100: however long the audit takes, this file was written to after it."""

INCIDENT, SNAPSHOT = "unclean-election-4.x", "03-old-leader-down-live"


@pytest.fixture
def fleet(incident, tmp_path):
    """A fleet that may change, last written to long ago."""
    target = tmp_path / "fleet"
    shutil.copytree(incident(INCIDENT) / "snapshots" / SNAPSHOT, target)
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
    comparison = compare_audits(tables, later)
    assert comparison.new_findings
    assert {"orders"} == {one.topic for one in comparison.new_findings}


def test_an_unchanged_fleet_is_judged_the_same_without_reading_it(run_audit, fleet, plain):
    first, tables = run_audit(fleet)

    second, later = run_audit(fleet, since=tables)

    assert (first.segments, 0) == (second.reused_segments, second.read_bytes)
    assert list(map(plain, first.findings)) == list(map(plain, second.findings))
    assert first.worst == second.worst
    comparison = compare_audits(tables, later)
    assert ((), (), ()) == (comparison.new_findings, comparison.gone_findings, comparison.changes)


def test_a_file_that_may_still_change_is_read_again(run_audit, fleet):
    recent = fleet / "broker-2" / "orders-0" / "00000000000000000000.log"
    os.utime(recent, (AHEAD, AHEAD))
    first, tables = run_audit(fleet)

    second, _ = run_audit(fleet, since=tables)

    assert first.segments - 1 == second.reused_segments


def test_an_interrupted_audit_goes_on(run_audit, fleet):
    first, tables = run_audit(fleet)
    manifest = Tables(tables).read_manifest(AUDIT_MANIFEST) or {}
    Tables(tables).write_manifest(AUDIT_MANIFEST, {**manifest, "is_complete": False})
    with pytest.raises(EvidenceUnreadable, match="did not finish"):
        summarise(tables, most=1)

    second, _ = run_audit(fleet, out=tables)

    assert (first.segments, 0) == (second.reused_segments, second.read_bytes)
    assert (first.verdicts, first.finding_count, first.replicas) == (
        second.verdicts,
        second.finding_count,
        second.replicas,
    )
    assert 2 == (Tables(tables).read_manifest(AUDIT_MANIFEST) or {})["run"]


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
