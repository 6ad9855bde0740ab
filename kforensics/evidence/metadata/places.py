"""The numbered places in the files that hold the records of a metadata log: a batch of a segment or a snapshot is one place."""

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Span
from kforensics.evidence.metadata.state import When
from kforensics.evidence.model import Citation
from kforensics.formats.log.batch_table import BatchTable

PLACE_DTYPE = np.dtype(
    [("path", "<i4"), ("raft_epoch", "<i4"), ("position", "<i8"), ("length", "<i8"), ("from_snapshot", "?")]
)


class RecordPlaces:
    """The places met so far; a log of a million batches has a million of them, so they are rows of a table."""

    def __init__(self, input_index: int) -> None:
        self._input = input_index
        self._paths: list[str] = []
        self._blocks: list[NDArray[np.void]] = []
        self._count = 0
        self._last: tuple[int, Citation] | None = None

    def add_batches(self, path: str, batches: BatchTable) -> int:
        """Add the batches of a segment, and return the number of the first; the others follow.

        Args:
            path: of the segment, relative to the input.
            batches: in file order.
        """
        block = np.zeros(len(batches), PLACE_DTYPE)
        block["path"] = self._path(path)
        block["raft_epoch"] = batches["partition_leader_epoch"]
        block["position"] = batches["position"]
        block["length"] = batches["length"]
        return self._add(block)

    def add_snapshot(self, path: str, length: int, raft_epoch: int) -> int:
        """Add a snapshot, and return its number.

        Args:
            path: of the snapshot, relative to the input.
            length: of the file in bytes.
        """
        row = (self._path(path), raft_epoch, 0, length, True)
        return self._add(np.array([row], PLACE_DTYPE))

    def when(self, place: int, offset: int, timestamp_ms: int) -> When:
        """Return the offset and time that a state gives of its record, with the place where that is.

        Args:
            place: the number of the batch or snapshot.
            timestamp_ms: of the record, by the controller's clock.
        """
        path, raft_epoch, position, length, from_snapshot = self._row(place).item()
        if self._last is None or self._last[0] != place:
            self._last = place, Citation(input=self._input, path=self._paths[path], span=Span(position, length))
        return When(offset, raft_epoch, timestamp_ms, self._last[1], bool(from_snapshot))

    def are_snapshots(self, places: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return whether each place is in a snapshot."""
        self._table()
        return self._blocks[0]["from_snapshot"][places] if self._count else np.zeros(len(places), np.bool_)

    def _path(self, path: str) -> int:
        if not self._paths or self._paths[-1] != path:
            self._paths.append(path)
        return len(self._paths) - 1

    def _add(self, block: NDArray[np.void]) -> int:
        self._blocks.append(block)
        self._count += len(block)
        return self._count - len(block)

    def _row(self, place: int) -> np.void:
        before = self._count - len(self._blocks[-1])
        # While a log is read, places are asked for in the order in which they come.
        if place >= before:
            row: np.void = self._blocks[-1][place - before]
            return row
        table: NDArray[np.void] = self._table()
        found: np.void = table[place]
        return found

    def _table(self) -> NDArray[np.void]:
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0] if self._blocks else np.zeros(0, PLACE_DTYPE)
