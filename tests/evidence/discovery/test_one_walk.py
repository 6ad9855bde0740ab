"""A command lists each directory of its inputs once, whatever it asks of them."""

import os
from collections import Counter
from pathlib import Path

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied
from tests.opened import opened_path

INCIDENT = "unclean-election"


@pytest.fixture
def listed(monkeypatch):
    """How often each directory was listed."""
    counts: Counter[str] = Counter()
    real = os.scandir

    def scandir(path="."):
        counts[opened_path(path)] += 1
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return counts


def directories_below(root: Path) -> set[str]:
    return {os.path.realpath(folder) for folder, _, _ in os.walk(root)}


@pytest.mark.parametrize("command", ["ls", "verify", "diff", "explain", "metadata"])
@pytest.mark.some(2)
def test_every_directory_is_listed_once(command, fixtures, listed, capsys):
    incident = fixtures / INCIDENT
    below = directories_below(incident)
    listed.clear()

    run([command, str(incident), "--format", "json", *(["--jobs", "1"] if command in {"diff", "verify"} else [])])

    listed_once = {folder: count for folder, count in listed.items() if folder in below}
    assert {folder: count for folder, count in listed_once.items() if count != 1} == {}
    assert below <= set(listed_once)


def test_snapshots_are_listed_once_each(tmp_path, fixtures, listed, capsys):
    now, before = fixtures / INCIDENT, tmp_path / "before"
    copied(now, before)
    below = directories_below(now) | directories_below(before)
    listed.clear()

    run(["explain", str(now), "--before", str(before), "--format", "json"])

    assert {folder: count for folder, count in listed.items() if folder in below and count != 1} == {}
