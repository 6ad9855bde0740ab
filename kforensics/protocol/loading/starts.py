"""What becomes of a node when the logs of its log directories load.

`LogManager.loadLogs`, `LogManager.handleLogDirFailure` (3.3 to 4.4).
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.log.loader_values import LoadFailure
from kforensics.protocol.loading.disk import LoadOutcome, Unpredictable, partition_of_directory
from kforensics.protocol.loading.versions import LoadingRules
from kforensics.units import METADATA_TOPIC

REMOTE_INDEX_CACHE = "remote-log-index-cache"

DUPLICATE = "Duplicate log directories for "
"""What a broker says first that ends on a partition of which two log directories hold a log."""


class StartResult(StrEnum):
    """The end of a start."""

    STARTS = "starts"
    EXITS = "exits"
    DIRECTORY_OFFLINE = "dir-offline"


class StartWord(StrEnum):
    """What a start does to one directory, in one word."""

    KEPT = "kept"
    """Loaded as it is, but for derived files."""
    SCANNED = "scanned"
    STRAY = "stray"
    DELETED = "deleted"
    EXITS = "exits"
    """It ends the start."""


def start_word_by_name(
    name: str, *, is_clean: bool, has_segments: bool, lacks_index: bool, is_twice: bool
) -> StartWord:
    """Return what a start does to a partition directory, by names alone: what the content of its files causes is not in it."""
    partition = partition_of_directory(name)
    is_metadata = partition is not None and partition[0] == METADATA_TOPIC
    if partition is None or (is_twice and not is_metadata):
        return StartWord.EXITS
    if name.endswith(("-delete", "-stray")):
        return StartWord.DELETED if name.endswith("-delete") else StartWord.STRAY
    is_scanned = has_segments and (not is_clean or lacks_index or is_metadata)
    return StartWord.SCANNED if is_scanned else StartWord.KEPT


class LoadedLogDir(NamedTuple):
    """One log directory as its logs begin to load."""

    path: str
    clean: bool
    """Whether it holds `.kafka_cleanshutdown`; loading removes it before the first log (2.8, KAFKA-10471)."""
    malformed_checkpoint: LoadFailure | Absent = Absent.NOT_APPLICABLE
    """What reading an offset checkpoint throws where its lines are malformed: offsets are 0, and the directory goes offline once its logs are loaded."""
    has_metadata_log: bool = False
    """It holds the metadata log of the node."""
    is_read_later: bool = False
    """Whether the malformed checkpoint is read once the logs are loaded: high watermarks for the first that leads or follows, the positions of the cleaner by its threads."""


class LogLoad(NamedTuple):
    """The load of one directory."""

    log_dir: str
    name: str
    outcome: LoadOutcome | Unpredictable


class Start(NamedTuple):
    """The end of one start, and its reason."""

    result: StartResult
    exception: str | Absent
    reason: str
    offline: tuple[str, ...] = ()
    """Paths of the log directories that go offline."""


def is_loaded(name: str, rules: LoadingRules | None = None) -> bool:
    """Return whether loading looks at a directory: not at the metadata log's, nor at the index cache of remote storage (3.5).

    A name that does not parse ends the start, so it is looked at.
    """
    rules = rules or LoadingRules()
    partition = partition_of_directory(name, rules)
    is_cache = name == REMOTE_INDEX_CACHE and rules.ignores_remote_index_cache
    return not is_cache and (partition is None or partition[0] != METADATA_TOPIC)


def start_of(
    log_dirs: Sequence[LoadedLogDir],
    loads: Sequence[LogLoad],
    live: Iterable[tuple[str, str]] | None = None,
    rules: LoadingRules | None = None,
) -> Start | Unpredictable:
    """Derive the end of a start from how each log loads.

    Args:
        loads: of every directory that `is_loaded` names; those that load unscanned and have no open transaction may be left out.
        live: log directory and name of each directory that counts when duplicates are looked for; those of the loads where none are given.

    Returns:
        The start; what an unpredictable load could change is unpredictable.
    """
    rules = rules or LoadingRules()
    offline: dict[str, LoadFailure] = {}
    unknown: Unpredictable | None = None
    for load in loads:
        if isinstance(load.outcome, Unpredictable):
            unknown = unknown or load.outcome
            continue
        failure = load.outcome.failure
        if isinstance(failure, Absent):
            continue
        is_fatal = rules.io_errors_end_start or (
            rules.storage_exceptions_end_start and failure.exception == "KafkaStorageException"
        )
        if not failure.is_io or is_fatal:
            return Start(StartResult.EXITS, failure.exception, f"{load.name}: {failure.message}")
        offline.setdefault(load.log_dir, failure)
    for log_dir in log_dirs:
        failure = log_dir.malformed_checkpoint
        if not isinstance(failure, Absent):
            reader = next(
                (load.name for load in loads if load.log_dir == log_dir.path and _has_open_transaction(load)), None
            )
            reader = None if log_dir.is_read_later else reader
            if reader is not None:
                return Start(StartResult.EXITS, failure.exception, f"{reader}: the log directory is already offline")
            offline.setdefault(log_dir.path, failure)
    if unknown is not None:
        return unknown
    twice = _duplicate([(load.log_dir, load.name) for load in loads] if live is None else live, offline)
    if twice is not None:
        return Start(StartResult.EXITS, "IllegalStateException", f"{DUPLICATE}{twice}")
    if not offline:
        return Start(StartResult.STARTS, Absent.NOT_APPLICABLE, "")
    first = next(iter(offline.values()))
    metadata_dir = next((one.path for one in log_dirs if one.has_metadata_log and one.path in offline), None)
    if metadata_dir is not None and not rules.survives_metadata_dir:
        reason = f"the log directory with the metadata log has failed: {first.message}"
        return Start(StartResult.EXITS, first.exception, reason, tuple(offline))
    result = StartResult.EXITS if len(offline) == len(log_dirs) else StartResult.DIRECTORY_OFFLINE
    reason = "all log directories have failed" if result is StartResult.EXITS else "a log directory has failed"
    return Start(result, first.exception, f"{reason}: {first.message}", tuple(offline))


def _has_open_transaction(load: LogLoad) -> bool:
    """Whether loading looks up a first unstable offset, which a directory that is offline refuses."""
    outcome = load.outcome
    if isinstance(outcome, Unpredictable) or isinstance(outcome.state, Absent):
        return False
    return outcome.state.last_stable_offset != outcome.state.log_end_offset


def _duplicate(live: Iterable[tuple[str, str]], offline: dict[str, LoadFailure]) -> str | None:
    """Return a partition with two live directories, or with two future ones."""
    seen: set[str] = set()
    for log_dir, found in live:
        if log_dir in offline or found.endswith(("-delete", "-stray")):
            continue
        name = f"{found.rpartition('.')[0]}-future" if found.endswith("-future") else found
        if name in seen:
            return name
        seen.add(name)
    return None
