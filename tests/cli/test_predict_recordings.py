"""Starts that lie in recordings: predicted from the snapshot before, and held against what the brokers logged and left."""

from pathlib import Path

import pytest

from kforensics.commands.predict import PredictRequest, run
from kforensics.commands.predicting import node_starts
from kforensics.commands.processes import spread
from tests.builders.directories import copied
from tests.started import compare


def check(root, starts, equal, unknown=0):
    compared = compare(root)
    assert compared.different == []
    assert (compared.starts, compared.total("equal"), compared.total("unknown")) == (starts, equal, unknown)
    return compared


def test_a_start_after_a_power_cut_does_what_was_predicted(incident):
    compared = check(incident("power-cut-2.8"), 1, 43)

    assert compared.counts["truncated"]["equal"] == 7


def test_strays_of_a_start_are_those_predicted(incident):
    check(incident("recreated-topic-4.x"), 1, 21)


def test_logs_that_other_processes_look_at_are_predicted_as_here(incident, tmp_path, monkeypatch):
    found: list[object] = []

    def counted(*given, **options):
        found.extend(one for ahead in spread(*given, **options) for one in ahead)
        return spread(*given, **options)

    broker = tmp_path / "broker-1"
    copied(incident("silent-divergence-4.x") / "snapshots" / "99-final" / "broker-1", broker)
    next(broker.glob("*/*.timeindex")).unlink()
    request = PredictRequest(paths=(Path(broker),), kafka="4.1.0", now_ms=1_790_000_000_000)
    here = run(request)
    for name, value in {
        "WORTH_A_PROCESS": 1,
        "LOGS_OF_A_TASK": 2,
        "default_jobs": lambda: 2,
        "spread": counted,
    }.items():
        monkeypatch.setattr(node_starts, name, value)

    assert run(request) == here
    assert None in found
    assert sum(one is not None for one in found) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "starts", "equal", "unknown"),
    [
        ("power-loss-4.x", 2, 82, 4),
        ("unclean-election-2.8", 6, 404, 34),
        ("silent-divergence-4.x", 1, 19, 0),
        ("reassignment-jbod-2.8", 1, 71, 2),
        ("disk-replaced-4.x", 3, 43, 20),
        ("fast-failover-1.1", 3, 73, 2),
        ("kip101-saves-0.11", 2, 14, 0),
    ],
)
def test_every_start_does_what_was_predicted(incident, name, starts, equal, unknown):
    check(incident(name), starts, equal, unknown)
