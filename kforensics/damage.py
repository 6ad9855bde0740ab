"""Damage as a value beside the parsed data, and the four reasons why a value can be absent."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kforensics.units import OffsetRange


class Absent(StrEnum):
    """The reason for which a value is absent; JSON has null, and all but `not-applicable` in `absent` beside it."""

    NOT_WRITTEN = "not-written"
    UNREADABLE = "unreadable"
    NOT_APPLICABLE = "not-applicable"
    UNKNOWN = "unknown"

    __hash__ = str.__hash__


class Span(NamedTuple):
    """A run of bytes in one file: where it starts and how long it is."""

    position: int
    length: int

    @property
    def end(self) -> int:
        """Return the position behind the last byte."""
        return self.position + self.length


class DamageKind(StrEnum):
    """The defect of a run of bytes."""

    CRC = "crc"
    LENGTH = "length"
    ZEROS = "zeros"
    TORN = "torn"
    ORDER = "order"
    EPOCH = "epoch"
    MAGIC = "magic"
    ATTRIBUTES = "attributes"
    COUNT = "count"
    RECORD = "record"
    COMPRESSION = "compression"
    TOO_LARGE = "too-large"
    UNSUPPORTED = "unsupported"
    VERSION = "version"
    TEXT = "text"
    INDEX = "index"
    MISMATCH = "mismatch"
    NAME = "name"
    MISSING = "missing"
    """A segment that other files speak of is not there."""


class Gravity(StrEnum):
    """The weight of a departure from the format for the log."""

    DAMAGE = "damage"
    """Data or state is wrong, and no broker repairs it by itself."""
    TORN_TAIL = "torn-tail"
    """The unfinished end of a file of a running or killed broker: recovery truncates it."""
    REBUILDABLE = "rebuildable"
    """Derived from the log: the broker rebuilds it when it loads."""
    STALE = "stale"
    """Behind the log by design, repaired when the broker loads it."""
    UNREAD = "unread"
    """Beyond a limit of kforensics, which Kafka does not have: not read, and nothing shows that it is wrong."""


class BitFlip(NamedTuple):
    """One flipped bit that explains a checksum: the byte, the bit (0 is the lowest), and the byte as found and as it was."""

    position: int
    bit: int
    found: int
    expected: int


class DamageCause(NamedTuple):
    """The cause of damage, where it can be shown.

    The kind is `bit-flip`, `zero-page`, `torn-write`, `shift`, `foreign-page` and the like.
    """

    kind: str
    detail: str
    flip: BitFlip | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One place where a file is not as its format says; `expected` and `found` are words for people."""

    span: Span
    kind: DamageKind
    expected: str
    found: str
    gravity: Gravity = Gravity.DAMAGE
    offsets_lost: OffsetRange | Absent = Absent.NOT_APPLICABLE
    next_good: tuple[int, int] | Absent = Absent.NOT_APPLICABLE
    """The offset and position of the next sound batch."""
    cause: DamageCause | Absent = Absent.UNKNOWN
    checksums: tuple[int, int] | Absent = field(default=Absent.NOT_APPLICABLE)
    """The stored and the computed checksum."""

    @property
    def hides_content(self) -> bool:
        """Return whether what lies there stays unknown, and no broker repairs it by itself."""
        return self.gravity in {Gravity.DAMAGE, Gravity.UNREAD}

    @property
    def limit_words(self) -> str:
        """Return the words for a place of gravity `unread`."""
        return f"kforensics reads {self.expected}, and found {self.found} at byte {self.span.position}: not read, and nothing shows that it is damaged"
