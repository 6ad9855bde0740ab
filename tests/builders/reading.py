"""Files of recordings that many tests read, each read once by a test process: these tests are about what is concluded, not about the reading."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kforensics.evidence.metadata import log
from kforensics.evidence.replica import collect, progress
from kforensics.evidence.replica.batch_reader import FileBatchReader, _touches
from kforensics.evidence.replica.ends import read_log_tail

_known: dict[Any, Any] = {}


def read_once(patch: pytest.MonkeyPatch) -> None:
    """Have what was read of segments, ends of logs and metadata logs given again, as long as the file is the same by inode, size and times; captures are read each time."""
    patch.setattr(collect, "_scan", _of_file(collect._scan))
    patch.setattr(progress, "read_log_tail", _tail(read_log_tail))
    patch.setattr(log, "read_metadata_log", _metadata(log.read_metadata_log))
    patch.setattr(FileBatchReader, "records", _records(FileBatchReader.records))


def _identity(root: Any, path: str) -> tuple[str, int, int, int, int] | None:
    """What changes with a file's content; none of a capture, and of a file that is not there."""
    try:
        status = (root / path).stat() if isinstance(root, Path) else None
    except OSError:
        return None
    return status and (f"{root}/{path}", status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _of_file(scan: Callable[..., Any]) -> Callable[..., Any]:
    def once(place: Any, path: str, base_offset: int, lacking: Any = None) -> Any:
        file = _identity(place.state.root, path)
        if file is None:
            return scan(place, path, base_offset, lacking)
        key = (file, path)
        if key not in _known:
            _known[key] = scan(place, path, base_offset)
        return _known[key]

    return once


def _tail(read: Callable[..., Any]) -> Callable[..., Any]:
    def once(found: Any, segments: Any, indexes: Any) -> Any:
        files = tuple(_identity(found.root, path) for _, path in segments)
        if None in files:
            return read(found, segments, indexes)
        key = (files, tuple(_identity(found.root, path) for path in indexes.values()))
        if key not in _known:
            _known[key] = read(found, segments, indexes)
        return _known[key]

    return once


def _metadata(read: Callable[..., Any]) -> Callable[..., Any]:
    def once(files: Any) -> Any:
        states = tuple(_identity(files.root, path) for path in (*files.segments, *(one[2] for one in files.snapshots)))
        if None in states:
            return read(files)
        key = (files, states)
        if key not in _known:
            _known[key] = read(files)
        return _known[key]

    return once


class _Kept:
    """What an iterator gives, read as far as anybody has asked for it."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source, self._items = source, list[Any]()

    def __iter__(self) -> Iterator[Any]:
        for at in count():
            if at == len(self._items):
                try:
                    self._items.append(next(self._source))
                except StopIteration:
                    return
            yield self._items[at]


def _records(records: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def once(self: FileBatchReader, replica: Any, first_offset: int, last_offset: int) -> Iterator[Any]:
        touched = (one for one in replica.segments if _touches(one, first_offset, last_offset))
        files = tuple(_identity(self._roots[replica.input], one.path) for one in touched)
        if self._has_captures or None in files:
            return records(self, replica, first_offset, last_offset)
        key = (files, first_offset, last_offset)
        if key not in _known:
            _known[key] = _Kept(records(self, replica, first_offset, last_offset))
        return iter(_known[key])

    return once
