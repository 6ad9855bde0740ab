"""Histories in a table format: what its own readers see is what the manifests say."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from kforensics.cli.app import run
from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.fleet.audit_tables import AUDIT_SCHEMA, WORK, open_audits
from kforensics.fleet.output import open_output
from kforensics.fleet.publishing import is_part_of, part_stem
from kforensics.fleet.storage import parse_location
from kforensics.fleet.table_formats import TableFormat
from kforensics.fleet.tables import AUDIT_MANIFEST, Tables
from tests.builders.audits import one_finding, write_audit

PACKAGES = {TableFormat.DELTA: "deltalake"}


@pytest.fixture(params=PACKAGES)
def table_format(request):
    if find_spec(PACKAGES[request.param]) is None:
        pytest.skip(f"needs the extra {request.param}")
    return request.param


@pytest.fixture
def history(tmp_path):
    return tmp_path / "history"


@pytest.fixture
def append(history, table_format):
    def appended(name, *findings, **more):
        return write_audit(history, findings, audit_id=name, is_history=True, table_format=table_format, **more)

    return appended


@pytest.fixture
def rows_of(history):
    """What a reader of the format sees of the findings."""

    def read():
        from deltalake import DeltaTable

        found = DeltaTable(str(history / "findings")).to_pyarrow_table()
        return sorted((row["audit_id"], row["cluster_id"] or "", row["partition"]) for row in found.to_pylist())

    return read


def test_the_format_shows_the_rows_of_finished_audits(history, table_format, append, rows_of):
    append("scheduled__2026-11-22T02:00:00+00:00", one_finding(partition=0))
    append("night", one_finding(partition=1), cluster=None)
    append("night-1", one_finding(partition=2))

    own = [
        (one.audit_id, row["cluster_id"] or "", row["partition"])
        for one in open_audits(history)
        for row in one.rows("findings")
    ]
    assert 3 == len(own)
    assert sorted(own) == rows_of()
    with pytest.raises(UsageError, match=f"is a history in the format {table_format}, not parquet"):
        open_output(history, is_history=True, audit_id=None, table_format=TableFormat.PARQUET)
    assert table_format is open_output(history, is_history=True, audit_id=None).table_format


def test_what_an_interrupted_audit_committed_is_taken_back(history, append, rows_of):
    append("night-1", one_finding(partition=0))
    append("night", one_finding(partition=1))
    manifest = history / "_audits" / "night.json"
    Tables(history / WORK).create(["segments"])
    Tables(history / WORK).write_manifest(AUDIT_MANIFEST, json.loads(manifest.read_text()))
    manifest.unlink()

    append("night-2", one_finding(partition=2))

    assert ["night-1", "night-2"] == [name for name, _, _ in rows_of()]
    assert ["night-1", "night-2"] == [one.audit_id for one in open_audits(history)]


def test_a_history_in_a_format_that_is_gone_is_refused(history):
    write_audit(history, [one_finding()], audit_id="one", is_history=True)
    manifest = history / "_audits" / "one.json"
    manifest.write_text(manifest.read_text().replace('"parquet"', '"iceberg"'))

    with pytest.raises(UsageError, match=r"in the format iceberg, which there is no longer: .* --save-to"):
        write_audit(history, [one_finding()], audit_id="two", is_history=True)


LOGS = {
    TableFormat.DELTA: (Path("findings", "_delta_log"), "*.json", "no log of a Delta table"),
}


@pytest.mark.parametrize("data", [b"{", b"\xff", b'{"format-version": 2}', b""])
def test_a_damaged_log_is_refused_and_written_again_where_it_was_moved_away(
    history, table_format, append, rows_of, data
):
    append("one", one_finding(partition=1))
    append("two", one_finding(partition=2))
    folder, names, words = LOGS[table_format]
    for path in (history / folder).glob(names):
        path.write_bytes(data)

    with pytest.raises(EvidenceUnreadable, match=rf"{words}: .*move .*away, and the next audit writes") as refused:
        append("three", one_finding(partition=3))
    assert not {"\n", "\x1b"} & set(str(refused.value))
    assert ["one", "two"] == [one.audit_id for one in open_audits(history)]

    shutil.rmtree(history / folder)
    append("three", one_finding(partition=3))
    assert [("one", 1), ("three", 3), ("two", 2)] == [(name, partition) for name, _, partition in rows_of()]


def test_options_of_storage_have_the_names_of_deltas_library(monkeypatch):
    pytest.importorskip("deltalake")
    from kforensics.fleet.delta_log import object_store_options

    def named(place, **options):
        found = object_store_options(parse_location(place, options))
        return {name: found[name] for name in found.keys() - {"max_retries", "connect_timeout", "timeout"}}

    for variable in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_ACCOUNT"):
        monkeypatch.delenv(variable, raising=False)
    assert {} == object_store_options(Path("/mnt/history"))
    keys = {"region": "eu-west-1", "access_key": "AKIA", "secret_key": "a secret"}
    assert {
        "aws_region": "eu-west-1",
        "aws_access_key_id": "AKIA",
        "aws_secret_access_key": "a secret",
        "aws_endpoint": "http://minio:9000",
        "allow_http": "true",
    } == named("s3a://audits/kafka", **keys, scheme="http", endpoint_override="minio:9000")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://minio")
    assert {"aws_endpoint": "https://minio", "allow_http": "false"}.items() <= named("s3://audits", **keys).items()
    monkeypatch.setenv("AZURE_STORAGE_KEY", "a key")
    azure = {"azure_storage_account_name": "account", "azure_storage_account_key": "a key"}
    container = "abfss://audits@account.dfs.core.windows.net/kafka"
    assert azure == named(container)
    assert {**azure, "azure_endpoint": "http://127.0.0.1:1/account", "allow_http": "true"} == named(
        container, blob_storage_authority="127.0.0.1:1", blob_storage_scheme="http"
    )
    wanted = object_store_options(parse_location("gs://audits", {"retry_limit_seconds": "1"}))
    assert {"max_retries": "5", "connect_timeout": "10000ms", "timeout": "60000ms"} == wanted
    with pytest.raises(UsageError, match=r"--storage-option role_arn: Delta's library has no such option for s3://"):
        named("s3://audits", **keys, role_arn="arn:aws:iam::1:role/audits")


def test_an_interrupted_first_audit_is_begun_again_in_its_format(history):
    Tables(history / WORK).create(["segments"])
    begun = {"schema": AUDIT_SCHEMA, "audit_id": "night", "run": 1, "table_format": "delta"}
    Tables(history / WORK).write_manifest(AUDIT_MANIFEST, begun)

    with pytest.raises(UsageError, match="is a history in the format delta, not parquet"):
        open_output(history, is_history=True, audit_id="night", table_format=TableFormat.PARQUET)


def test_what_is_not_there_is_said_before_the_work(tmp_path, capsys, monkeypatch):
    audit = ["fleet", "audit", str(tmp_path), "--table-format"]
    assert 2 == run([*audit, "delta", "--out", str(tmp_path / "o")])
    assert "--table-format needs --history" in capsys.readouterr().err
    monkeypatch.setattr("kforensics.fleet.table_formats.find_spec", lambda name: None)
    for name in PACKAGES:
        assert 2 == run([*audit, name, "--history", str(tmp_path / "h")])
        assert f"pip install 'kforensics[{name}]'" in capsys.readouterr().err


def test_names_of_audits_become_names_of_files_that_are_told_apart():
    ids = ["night", "night-1", "night/1", "night 1", "..", "a" * 9, "ä"]
    assert len(ids) == len({part_stem(one) for one in ids})
    assert is_part_of("cluster_id=x/audit_date=2026-11-22/night-00000.parquet", "night")
    assert not is_part_of("night-1-00000.parquet", "night")
    assert not any("/" in part_stem(one) or part_stem(one).startswith((".", "_")) for one in ids)
