"""File names as loading reads them (`LogFileUtils`, `LocalLog.parseTopicPartitionName`, 4.1.0; the same since 0.10)."""

import re
import sys

from kforensics.protocol.loading.values import LARGEST_INT32, LARGEST_INT64, LoadingError, thrown
from kforensics.protocol.loading.versions import LoadingRules

LOG, INDEX, TIME_INDEX, TXN_INDEX = ".log", ".index", ".timeindex", ".txnindex"
SNAPSHOT, DELETED, CLEANED, SWAP = ".snapshot", ".deleted", ".cleaned", ".swap"
INDEXES = (INDEX, TIME_INDEX, TXN_INDEX)
QUORUM_SNAPSHOT_DELETED = ".checkpoint.deleted"
EPOCH_FILE = "leader-epoch-checkpoint"
EPOCH_FILE_BEING_WRITTEN = f"{EPOCH_FILE}.tmp"
METADATA_FILE = "partition.metadata"

NEWEST_RULES = LoadingRules()
_NUMBER = re.compile(r"[+-]?[0-9]+")
_MOVED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)")


def padded(offset: int) -> str:
    """Return an offset as file names have it: 20 digits."""
    return f"{offset:020d}" if offset >= 0 else f"-{-offset:020d}"


def known_indexes(rules: LoadingRules) -> tuple[str, ...]:
    """Return the endings of the indexes that a version has."""
    if rules.knows_magic_2:
        return INDEXES
    return (INDEX, TIME_INDEX) if rules.has_time_indexes else (INDEX,)


def offset_of(name: str) -> int:
    """Return the offset in a file name: the number before its first dot, padded or not.

    Args:
        name: of a segment, index or snapshot file, with any suffix.

    Raises:
        LoadingError: NumberFormatException.
    """
    text = name.partition(".")[0]
    value = int(text) if (text.isascii() and text.isdecimal()) or _NUMBER.fullmatch(text) else None
    if value is None or not -LARGEST_INT64 - 1 <= value <= LARGEST_INT64:
        raise thrown("NumberFormatException", f'For input string: "{text}"')
    return value


def partition_of_directory(name: str, rules: LoadingRules = NEWEST_RULES) -> tuple[str, int] | None:
    """Return topic and partition of a directory name; None where it does not parse, which ends the start.

    Args:
        name: of the directory; `-delete`, `-future` and `-stray` stand behind a dot and an id.
        rules: of the version, which may not know all of these.
    """
    if name.endswith(("-delete", "-future", "-stray")):  # few do
        endings = (("-delete", rules.knows_deletions), ("-future", rules.knows_futures), ("-stray", rules.knows_strays))
        for ending, is_known in endings:
            if is_known and name.endswith(ending):
                if _MOVED.fullmatch(name) is None:
                    return None
                name = name[: name.rindex(".")]
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or _NUMBER.fullmatch(number) is None or int(number) > LARGEST_INT32:
        return None
    return sys.intern(topic), int(number)  # most topics have many partitions


def refused_name(name: str, rules: LoadingRules) -> LoadingError:
    """Return what the name of a directory that does not parse throws (`Log.parseTopicPartitionName`)."""
    topic, _, number = name.rpartition("-")
    if topic and number and not rules.wraps_bad_partitions:
        return thrown("NumberFormatException", f'For input string: "{number}"')
    return thrown("KafkaException", f"Found directory '{name}' is not in the form of topic-partition")
