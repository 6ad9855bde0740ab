"""The rows of `diff`: every replica is there, in whatever way the comparison was made."""

import csv
import io
import json

import pytest

import kforensics
from kforensics.ask.model import Ask
from kforensics.cli.app import run
from kforensics.commands import diff
from kforensics.render.emit import OutputFormat, emit, flattener
from kforensics.render.view import View
from tests.conftest import FIXTURES

PATHS = [FIXTURES / "unclean-election" / name for name in ("broker-1", "broker-2", "broker-3", "controller-100")]


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def replicas(document):
    return sorted(
        (f"{one['topic']}-{one['partition']}", one["state"], replica["broker_id"], replica["verdict"])
        for one in document["partitions"]
        for replica in one["replicas"]
    )


@pytest.mark.parametrize("paths", [PATHS, PATHS[1:], PATHS[:1]], ids=["all", "without one", "one alone"])
@pytest.mark.parametrize("depth", ["content", "tails"])
@pytest.mark.some(2)
def test_every_replica_of_every_partition_is_a_row(paths, depth, capsys):
    given = [*map(str, paths), "--depth", depth]
    run(["diff", *given, "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    run(["diff", *given, "--format", "csv"])
    rows = rows_of(capsys.readouterr().out)

    found = sorted(
        (f"{one['topic']}-{one['partition']}", one["partition_state"], int(one["broker_id"]), one["verdict"])
        for one in rows
    )
    assert replicas(document) == found
    assert len(found) > 4
    assert {path.name for path in PATHS} >= {one["input"].rpartition("/")[2] for one in rows}


def test_rows_are_the_same_where_reports_are_kept_and_where_they_are_not():
    kept = "".join(emit(kforensics.diff(*PATHS, jobs=1), OutputFormat.CSV, View()))
    flat = diff.run(Ask(paths=tuple(PATHS), jobs=1), flatten=flattener(OutputFormat.CSV), keep_quiet=False)

    assert kept == "".join(emit(flat, OutputFormat.CSV, View()))
