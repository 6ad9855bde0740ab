"""A record as it was found, with all its copies, before it is judged."""

from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Replica
from kforensics.formats.log.records import Record
from kforensics.reconcile.trace.model import CopyKind
from kforensics.reconcile.trace.removal_time import NO_HORIZON


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CopyFile:
    """One file of a copy of the log; there is one object of each."""

    replica: Replica
    path: str
    suffix: str
    """Of the file's name: `deleted`, `swap` or none."""
    kind: CopyKind


class FoundCopy(NamedTuple):
    """One copy of a record."""

    file: CopyFile
    position: int
    """Of its batch in the file, in bytes."""
    delete_horizon_ms: int = NO_HORIZON

    @property
    def replica(self) -> Replica:
        """The directory."""
        return self.file.replica

    @property
    def kind(self) -> CopyKind:
        """What the copy is in."""
        return self.file.kind

    @property
    def path(self) -> str:
        """The path of its file in the input."""
        return self.file.path


class LaterRecord(NamedTuple):
    """A record of a key, with one of its copies."""

    record: Record
    citation: Citation
    is_live: bool
    """Whether a live replica holds it."""


class FoundRecord(NamedTuple):
    """One record with all its copies."""

    record: Record
    topic_id: str | Absent
    copies: tuple[FoundCopy, ...]
    outcome: bool | Absent | None
    """Whether the transaction was aborted, None where no marker follows, absent for records of none."""
