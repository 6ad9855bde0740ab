"""The history of metadata as text: a long one says what a short one says."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.events import change_events
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.render import metadata_history
from kforensics.render.metadata_history import history_pieces

Incident = Callable[[str], Path]


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", ["unclean-election-4.x", "kraft-quorum-3x"])
@pytest.mark.some(4)
def test_long_as_short(
    incident: Incident, name: str, jobs: int, verbose: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = incident(name) / "snapshots/99-final"
    history = read_metadata_log(find_metadata_logs(find_inputs([root]))[0])
    events = change_events(history)
    short = "".join(history_pieces(events, verbose=verbose))
    monkeypatch.setattr(metadata_history, "ROWS_AT_ONCE", 7)
    long = "".join(history_pieces(events, verbose=verbose, jobs=jobs))
    monkeypatch.setattr(metadata_history, "MOST_KINDS", 1)
    forgetful = "".join(history_pieces(events, verbose=verbose, jobs=jobs))

    assert [line.split() for line in long.splitlines()] == [line.split() for line in short.splitlines()]
    assert forgetful == long
    assert not any(line != line.rstrip() for line in long.splitlines())
    times = [re.search(r"\d{4}-\d\d-\d\dT", line) for line in long.splitlines()]
    assert len({found.start() for found in times if found}) == 1
