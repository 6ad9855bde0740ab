"""Histories in a table format: what its own readers see is what the manifests say."""

import json
from importlib.util import find_spec

import pytest

from kforensics.cli.app import run
from kforensics.errors import UsageError
from kforensics.fleet.audit_tables import AUDIT_SCHEMA, WORK, open_audits
from kforensics.fleet.output import open_output
from kforensics.fleet.publishing import is_part_of, part_stem
from kforensics.fleet.table_formats import TableFormat
from kforensics.fleet.tables import AUDIT_MANIFEST, Tables
from tests.builders.audits import one_finding, write_audit

needs_delta = pytest.mark.skipif(find_spec("deltalake") is None, reason="needs the extra delta")


@pytest.fixture
def history(tmp_path):
    return tmp_path / "history"


def append(place, name, *findings, **more):
    return write_audit(place, findings, audit_id=name, is_history=True, table_format=TableFormat.DELTA, **more)


def rows_of(history, table="findings"):
    from deltalake import DeltaTable

    found = DeltaTable(str(history / table)).to_pyarrow_table()
    return sorted((row["audit_id"], row["cluster_id"] or "", row["partition"]) for row in found.to_pylist())


@needs_delta
def test_delta_sees_the_rows_of_finished_audits(history):
    append(history, "scheduled__2026-11-22T02:00:00+00:00", one_finding(partition=0))
    append(history, "night", one_finding(partition=1), cluster=None)
    append(history, "night-1", one_finding(partition=2))

    own = [
        (one.audit_id, row["cluster_id"] or "", row["partition"])
        for one in open_audits(history)
        for row in one.rows("findings")
    ]
    assert 3 == len(own)
    assert sorted(own) == rows_of(history)
    with pytest.raises(UsageError, match="is a history in the format delta, not parquet"):
        open_output(history, is_history=True, audit_id=None, table_format=TableFormat.PARQUET)
    assert TableFormat.DELTA is open_output(history, is_history=True, audit_id=None).table_format


@needs_delta
def test_what_an_interrupted_audit_committed_is_taken_back(history):
    append(history, "night-1", one_finding(partition=0))
    append(history, "night", one_finding(partition=1))
    manifest = history / "_audits" / "night.json"
    Tables(history / WORK).create(["segments"])
    Tables(history / WORK).write_manifest(AUDIT_MANIFEST, json.loads(manifest.read_text()))
    manifest.unlink()

    append(history, "night-2", one_finding(partition=2))

    assert ["night-1", "night-2"] == [name for name, _, _ in rows_of(history)]
    assert ["night-1", "night-2"] == [one.audit_id for one in open_audits(history)]


def test_an_interrupted_first_audit_is_begun_again_in_its_format(history):
    Tables(history / WORK).create(["segments"])
    begun = {"schema": AUDIT_SCHEMA, "audit_id": "night", "run": 1, "table_format": "delta"}
    Tables(history / WORK).write_manifest(AUDIT_MANIFEST, begun)

    with pytest.raises(UsageError, match="is a history in the format delta, not parquet"):
        open_output(history, is_history=True, audit_id="night", table_format=TableFormat.PARQUET)


def test_what_is_not_there_is_said_before_the_work(tmp_path, capsys, monkeypatch):
    audit = ["fleet", "audit", str(tmp_path), "--table-format"]
    assert 2 == run([*audit, "iceberg", "--history", str(tmp_path / "h")])
    assert "an Iceberg table belongs to a catalog" in capsys.readouterr().err
    assert 2 == run([*audit, "delta", "--out", str(tmp_path / "o")])
    assert "--table-format needs --history" in capsys.readouterr().err
    monkeypatch.setattr("kforensics.fleet.table_formats.find_spec", lambda name: None)
    assert 2 == run([*audit, "delta", "--history", str(tmp_path / "h")])
    assert "pip install 'kforensics[delta]'" in capsys.readouterr().err


def test_names_of_audits_become_names_of_files_that_are_told_apart():
    ids = ["night", "night-1", "night/1", "night 1", "..", "a" * 9, "ä"]
    assert len(ids) == len({part_stem(one) for one in ids})
    assert is_part_of("cluster_id=x/audit_date=2026-11-22/night-00000.parquet", "night")
    assert not is_part_of("night-1-00000.parquet", "night")
    assert not any("/" in part_stem(one) or part_stem(one).startswith((".", "_")) for one in ids)
