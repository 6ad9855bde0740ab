"""A paced reader keeps its rate, and never waits for what it has not read."""

import pytest

from kforensics.ask.model import Ask
from kforensics.ask.option import parse_rate
from kforensics.case.processes import paced
from kforensics.cli.app import run
from kforensics.errors import UsageError
from kforensics.source import mapped
from kforensics.source.beside_broker import Pace
from kforensics.source.mapped import open_evidence


class Clock:
    def __init__(self):
        self.now = 100.0
        self.slept = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.slept += seconds


def test_a_rate_is_kept_over_any_stretch():
    clock = Clock()
    pace = Pace(1_000, clock=clock, sleep=clock.sleep)

    for _ in range(10):
        pace.spent(100)
    clock.now += 60  # nothing is saved up meanwhile
    pace.spent(500)

    assert clock.slept == pytest.approx(1.5)


def test_files_are_read_in_pieces_at_the_rate(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(mapped, "_pace", Pace(1_000_000, clock=clock, sleep=clock.sleep))
    path = tmp_path / "file"
    path.write_bytes(bytes(3_000_000))

    with open_evidence(path) as file:
        assert file.read(0, 3_000_000) == bytes(3_000_000)

    assert clock.slept == pytest.approx(3.0)


@pytest.mark.parametrize("rate", ["", "x", "50MB/h", "-1MB/s", "0", "0.1", "1.5.5MB/s"])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(UsageError):
        parse_rate(rate, "--read-rate")


def test_a_rate_is_for_one_process(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    try:
        assert paced(Ask(read_rate=50_000_000)).jobs == 1
        with pytest.raises(UsageError):
            paced(Ask(read_rate=50_000_000, jobs=2))
    finally:
        assert paced(Ask(jobs=7)).jobs == 7

    assert run(["seal", str(tmp_path), "--read-rate", "50MB/s"]) == 0
    assert run(["seal", str(tmp_path)]) == 0
