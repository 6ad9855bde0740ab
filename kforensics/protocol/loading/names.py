"""File names as loading reads them (`LogFileUtils`, `LocalLog.parseTopicPartitionName`, 4.1.0; the same since 0.10)."""

import re

from kforensics.protocol.loading.values import LARGEST_INT32, LARGEST_INT64, thrown

LOG, INDEX, TIME_INDEX, TXN_INDEX = ".log", ".index", ".timeindex", ".txnindex"
SNAPSHOT, DELETED, CLEANED, SWAP = ".snapshot", ".deleted", ".cleaned", ".swap"
INDEXES = (INDEX, TIME_INDEX, TXN_INDEX)
LEGACY_INDEXES = (INDEX, TIME_INDEX)
"""Those that Kafka before 0.11 knows."""
QUORUM_SNAPSHOT_DELETED = ".checkpoint.deleted"
EPOCH_FILE = "leader-epoch-checkpoint"
EPOCH_FILE_BEING_WRITTEN = f"{EPOCH_FILE}.tmp"
METADATA_FILE = "partition.metadata"

_NUMBER = re.compile(r"[+-]?[0-9]+")
_MOVED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)")


def padded(offset: int) -> str:
    """Return an offset as file names have it: 20 digits."""
    return f"{offset:020d}" if offset >= 0 else f"-{-offset:020d}"


def offset_of(name: str) -> int:
    """Return the offset in a file name: the number before its first dot, padded or not.

    Args:
        name: of a segment, index or snapshot file, with any suffix.

    Raises:
        LoadingError: NumberFormatException.
    """
    text = name.partition(".")[0]
    value = int(text) if _NUMBER.fullmatch(text) else None
    if value is None or not -LARGEST_INT64 - 1 <= value <= LARGEST_INT64:
        raise thrown("NumberFormatException", f'For input string: "{text}"')
    return value


def partition_of_directory(
    name: str, *, knows_strays: bool = True, knows_futures: bool = True
) -> tuple[str, int] | None:
    """Return topic and partition of a directory name; None where it does not parse, which ends the start.

    Args:
        name: of the directory; `-delete`, `-future` and `-stray` stand behind a dot and an id.
        knows_strays: the version knows `-stray` (3.6).
        knows_futures: the version knows `-future` (1.1).
    """
    for ending, is_known in (("-delete", True), ("-future", knows_futures), ("-stray", knows_strays)):
        if is_known and name.endswith(ending):
            if _MOVED.fullmatch(name) is None:
                return None
            name = name[: name.rindex(".")]
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or _NUMBER.fullmatch(number) is None or int(number) > LARGEST_INT32:
        return None
    return topic, int(number)
