"""What a search of a partition holds of the records that match."""

import pytest

from kforensics.commands.tracing import scan
from kforensics.commands.tracing.scan import scan_partitions
from kforensics.evidence.content import RecordSearch
from tests.builders.coordinators import batch, write_log

ALL = RecordSearch(time_ms=(0, 1 << 62))


@pytest.fixture
def places(tmp_path):
    """Two partitions of three segments of 1 KB."""
    segments = [(at, batch(at, [(b"k", b"v" * 1_000)])) for at in range(3)]
    return [write_log(tmp_path / str(number), f"orders-{number}", *segments) for number in range(2)]


@pytest.mark.parametrize(
    ("room", "are_held"), [(10_000, [True, True]), (5_000, [True, False]), (2_500, [False, False])]
)
def test_the_bytes_of_all_files_that_are_held_at_once_are_limited(places, room, are_held, monkeypatch):
    monkeypatch.setattr(scan, "MOST_BYTES_HELD", room)

    found = list(scan_partitions([[place] for place in places], {}, ALL, jobs=1, problems=[]))

    assert [one.hits is not None for one in found] == are_held
    assert [one.found for one in found] == [3, 3]
    assert [len(one.hits or ()) for one in found] == [3 * is_held for is_held in are_held]
