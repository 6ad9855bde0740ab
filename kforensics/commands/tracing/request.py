"""What `trace` is asked for."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """The request to trace records; those that match everything that is given are found."""

    paths: tuple[Path, ...]
    """The inputs as they are now, with broker logs."""
    topic: str
    before: tuple[Path, ...] = ()
    """Earlier snapshots."""
    partitions: frozenset[int] = frozenset()
    key: bytes | None = None
    key_sha256: bytes | None = None
    offset: int | None = None
    header: tuple[bytes, bytes | None] | None = None
    """The name of a header, and its value unless any will do."""
    value: bytes | None = None
    """Bytes that the value holds somewhere."""
    value_regex: str | None = None
    """A pattern of RE2 that the value matches somewhere."""
    time_ms: tuple[int, int] | None = None
    """From the first on, and before the second."""
    erasure: bool = False
    """Answer whether any bytes of the key are left, and hash the files that were searched."""
    leader: int | None = None
    cluster: str | None = None
    keep_going: bool = False
    is_stopped: bool = False
    jobs: int | None = None

    @property
    def topics(self) -> frozenset[str]:
        """Its topic, as the filters of partitions have it."""
        return frozenset({self.topic})

    @property
    def by(self) -> tuple[str, ...]:
        """What is searched by."""
        given = {
            "key": self.key,
            "key-sha256": self.key_sha256,
            "offset": self.offset,
            "header": self.header,
            "value": self.value,
            "value-regex": self.value_regex,
            "time": self.time_ms,
        }
        return tuple(name for name, value in given.items() if value is not None)
