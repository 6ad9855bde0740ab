"""What a start finds in one directory of a log directory, what that says of its log before it is loaded, and what retention takes of it once it is."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

from kforensics.case.settings import Policy
from kforensics.commands.loading import DirectoryOnDisk
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.replica.ends import read_log_tail
from kforensics.evidence.replica.loader_reader import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    FoundDirectory,
    FoundLogs,
    read_needed,
)
from kforensics.evidence.replica.loader_scan import ScansAhead
from kforensics.formats.index import TIME_ENTRY_LENGTH, TimeEnds
from kforensics.formats.log.batch_table import BATCH_HEADER, NEWEST_MAGIC, NO_TIMESTAMP
from kforensics.formats.log.loader_values import Batches, Content, LoadFailure, Need, TopicIdFile
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.protocol.loading.disk import (
    ENDINGS,
    EPOCH_FILE,
    LOG,
    METADATA_FILE,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    LoadingError,
    LoadOutcome,
    Unpredictable,
    offset_of,
    padded,
    partition_of_directory,
)
from kforensics.protocol.loading.versions import loading_rules
from kforensics.protocol.retention import AgedSegment, RetentionRule, aged_out_at, due_segments, is_aged
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.logs.predicted_load import DueSegments, FurtherEnd, LogAtStart, PinnedRetention
from kforensics.source.mapped import open_evidence
from kforensics.source.store import ForeignPath
from kforensics.source.walk import Obstacle, join
from kforensics.units import EpochEntry, TopicPartition

Reads = dict[Path, dict[Need, object]]
"""What has been read, by directory: starts of other versions and under other conditions need not read it again."""


class StartedLogDir(NamedTuple):
    """A log directory of a node that is started."""

    input: int
    one: FoundInput
    logs: FoundLogs
    directory_id: str | Absent
    reads: Reads
    """What has been read, of all directories."""
    keeps_reads: bool
    """What is read of a directory is asked for again."""
    scans: ScansAhead
    """The segments of the node that are scanned by several processes."""


@dataclass(slots=True)
class StartedDirectory:
    """A directory of a log directory, as the starts so far have left it; of one that none has changed little is held."""

    within: StartedLogDir
    found: FoundDirectory
    opened: DirectoryOnDisk | None = None
    """None where it is as it was found, and nothing of it is held."""
    links: tuple[str, ...] = ()
    """Files of it that are symbolic links, as they were when it was opened."""
    obstacles: tuple[Obstacle, ...] = ()
    """What could not be read of it when it was opened."""
    end: int | Absent | None = None
    """Where its log ends; None until it is known."""
    partition: TopicPartition | None = field(init=False)
    """The partition that its name says; none where it says none."""

    def __post_init__(self) -> None:
        """Read its name once."""
        self.partition = partition_of_directory(self.found.name)

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.found.name

    @property
    def disk(self) -> DirectoryOnDisk:
        """Its files as the starts so far have left them."""
        if self.opened is None:
            within = self.within
            folder = within.one.root / self.found.path
            content = self.found.content(once=not within.keeps_reads)
            self.links, self.obstacles = content.links, content.obstacles
            read = within.reads.setdefault(folder, {}) if within.keeps_reads else {}
            self.opened = DirectoryOnDisk(folder, content.files, content.folders, read=read, scans=within.scans)
        return self.opened

    @property
    def why_not_listed(self) -> str:
        """Why its files are not known; empty where they are."""
        _ = self.disk  # obstacles are known once it is opened
        return next((one.message for one in self.obstacles if one.path == self.found.path), "")

    def release(self) -> None:
        """Forget what was read of a directory that no start has changed yet, where it is not asked for again."""
        disk = self.opened
        if not self.within.keeps_reads and disk is not None and not disk.unreadable and not disk.is_advanced:
            self.forget()

    def forget(self) -> None:
        """Forget what was read of it, which can be read again."""
        self.opened = None
        self.found.forget()

    @property
    def place(self) -> tuple[int, str]:
        """The log directory that it is in."""
        return self.within.input, self.within.logs.path


def topic_id_of(disk: DirectoryOnDisk) -> str | Absent:
    """Return the topic id in `partition.metadata`."""
    if METADATA_FILE not in disk.files:
        return Absent.NOT_WRITTEN
    need = Need(METADATA_FILE, Content.PARTITION_METADATA)
    if need not in disk.read:
        try:
            disk.read[need] = read_needed(disk.folder, need)
        except EvidenceError as error:
            disk.unreadable[METADATA_FILE] = error.problem
            return Absent.UNREADABLE
    found = disk.read[need]
    return found.topic_id if isinstance(found, TopicIdFile) else Absent.UNREADABLE


def end_before(directory: StartedDirectory, logs: Sequence[tuple[int, str]]) -> int | Absent:
    """Return where the log of segments, given by base offset and name, ends by its last sound batch."""
    disk = directory.disk
    if not logs:
        return Absent.NOT_APPLICABLE
    need = Need(logs[-1][1], Content.LOG_END, len(logs))
    if need not in disk.read:
        scanned = _scanned_end(disk, logs)
        disk.read[need] = _read_end(directory, logs) if scanned is None else scanned
    return cast("int | Absent", disk.read[need])


def _scanned_end(disk: DirectoryOnDisk, logs: Sequence[tuple[int, str]]) -> int | None:
    """Return where a log ends whose last segment a load has scanned and found sound to its end; none where it has to be read."""
    base, name = logs[-1]
    found = disk.read.get(Need(name, Content.CHECKED_BATCHES))
    if not isinstance(found, Batches) or not found.batches or found.end != disk.files[name]:
        return None
    lasts = [one.last_offset for one in found.batches]
    if not found.are_sound or lasts != sorted(lasts):
        return None
    return max(lasts[-1] + 1, base)


def _read_end(directory: StartedDirectory, logs: Sequence[tuple[int, str]]) -> int | Absent:
    folder = directory.found.path
    indexes = {base: join(folder, name) for base, name in named_offsets(directory.disk.files, ".index")}
    try:
        tail = read_log_tail(directory.within.one, [(base, join(folder, name)) for base, name in logs], indexes)
    except EvidenceError:
        return Absent.UNREADABLE
    return tail if isinstance(tail, Absent) else tail.log_end_offset


def further_end(directory: StartedDirectory, before: LogAtStart) -> FurtherEnd | Absent:
    """Return the furthest end that checkpoints, epochs and snapshots name above the end of the log."""
    end, found = before.log_end_offset if before.segments else 0, directory.within.logs
    if isinstance(end, Absent) or directory.partition is None or directory.name.endswith(ENDINGS):
        return Absent.NOT_APPLICABLE
    named = [
        FurtherEnd(file, offset)
        for file, offset in (
            (RECOVERY_POINTS, before.recovery_point),
            (HIGH_WATERMARKS, checkpointed(found.high_watermarks, directory.partition)),
            (LOG_STARTS, checkpointed(found.log_starts, directory.partition)),
        )
        if not isinstance(offset, Absent) and offset > end
    ]
    if not isinstance(before.epochs, Absent):
        named += [FurtherEnd(EPOCH_FILE, one.start_offset) for one in before.epochs if one.start_offset > end]
    snapshots = named_offsets(directory.disk.files, SNAPSHOT)
    named += [FurtherEnd(name, offset) for offset, name in snapshots if offset > end]
    return max(named, key=lambda one: one.offset, default=Absent.NOT_APPLICABLE)


def unchanged_end(
    directory: StartedDirectory, logs: Sequence[tuple[int, str]], outcome: LoadOutcome | Unpredictable
) -> int | None:
    """Return where a log ends that loads unscanned and keeps all of its segments: the load has read it; none where it has to be looked for."""
    if isinstance(outcome, Unpredictable) or isinstance(outcome.state, Absent) or outcome.scanned:
        return None
    is_plain = all(name == f"{padded(base)}{LOG}" for base, name in logs)
    if not logs or not is_plain or not directory.disk.files[logs[-1][1]]:
        return None
    if any(change.name.endswith((LOG, SWAP)) for change in outcome.changes):
        return None
    end = outcome.state.log_end_offset
    # Where no batch is at the last entry of the index, the load takes the base offset for the end, whatever lies before (`readNextOffset`).
    return None if end == logs[-1][0] else end


def checkpointed(read: Mapping[TopicPartition, int] | LoadFailure, partition: TopicPartition | None) -> int | Absent:
    """Return the offset that a checkpoint has for a partition."""
    if isinstance(read, LoadFailure):
        return Absent.UNREADABLE
    return Absent.NOT_WRITTEN if partition is None else read.get(partition, Absent.NOT_WRITTEN)


def offset_or_zero(read: Mapping[TopicPartition, int] | LoadFailure, partition: TopicPartition | None) -> int:
    """Return the offset that a start takes from a checkpoint for a partition, 0 where it has none."""
    value = checkpointed(read, partition)
    return 0 if isinstance(value, Absent) else value


def named_offsets(files: Iterable[str], ending: str) -> list[tuple[int, str]]:
    """Return offset and name of each file of a kind, sorted by name; those whose names hold no number are left out."""
    out = []
    for name in sorted([one for one in files if one.endswith(ending)]):
        try:
            out.append((offset_of(name), name))
        except LoadingError:
            continue
    return out


def segments_of(files: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """Return base offset and length of each segment."""
    return tuple((base, files[name]) for base, name in named_offsets(files, LOG))


def epochs_of(disk: DirectoryOnDisk) -> tuple[EpochEntry, ...] | Absent:
    """Return what the epoch file says before the load, which has read it."""
    need = Need(EPOCH_FILE, Content.EPOCHS)
    found = disk.written.get(need, disk.read.get(need, Absent.NOT_WRITTEN))
    if isinstance(found, LoadFailure):
        return Absent.UNREADABLE
    return found if isinstance(found, Absent) else tuple(found)  # type: ignore[arg-type]


_BEGINNING = 1 << 16
"""Bytes of a segment whose batches are held against its time index."""
_MAGIC_POSITION, _TIMESTAMP_POSITION = BATCH_HEADER.position_of("magic"), BATCH_HEADER.position_of("max_timestamp")
_TIMESTAMP = struct.Struct(">q")


def find_due_segments(
    disk: DirectoryOnDisk,
    outcome: LoadOutcome,
    segments: Sequence[tuple[int, int]],
    policy: Policy,
    *,
    now_ms: int,
    version: KafkaVersion,
) -> DueSegments | Absent:
    """Return the segments that retention deletes once the high watermark has reached the log end.

    Args:
        segments: base offset and length of each that it leaves.

    Returns:
        Which ones; not applicable where none are due, unreadable where their age can't be read.
    """
    state = outcome.state
    if isinstance(state, Absent):
        return Absent.NOT_APPLICABLE
    bases = sorted({base for base, _ in segments if f"{padded(base)}{LOG}" in outcome.tree})
    ends = [*bases[1:], state.log_end_offset]
    rules = policy.policy
    asks_age = rules.by_time
    aged: list[AgedSegment] = []
    indexed: set[int] = set()
    for base, end in zip(bases, ends, strict=True):
        length = outcome.tree[f"{padded(base)}{LOG}"]
        try:
            timestamp, is_indexed = now_ms, False
            if length and asks_age:
                timestamp, is_indexed = _timestamp(disk, outcome, base, now_ms=now_ms, version=version)
        except EvidenceError:
            return Absent.UNREADABLE
        by_time = asks_age and is_aged(timestamp, now_ms, rules.retention_ms)
        is_kept = not by_time and not rules.by_size and end > state.log_start_offset
        if is_kept and not aged:
            return Absent.NOT_APPLICABLE
        aged.append(AgedSegment(base, end, length, timestamp))
        indexed |= {base} if is_indexed else set()
        if is_kept:
            break  # the walk ends at the first segment that is kept: later ones are not read
    due = due_segments(
        aged,
        rules,
        log_start_offset=state.log_start_offset,
        high_watermark=state.log_end_offset,
        now_ms=now_ms,
        version=version,
    )
    if not due:
        return Absent.NOT_APPLICABLE
    lengths = {one.base_offset: one.length for one in aged}
    aged_out = (base for base, rule in due if rule is RetentionRule.TIME and base in indexed)
    misdated = tuple(base for base in aged_out if _begins_after(disk, outcome, base, now_ms - rules.retention_ms))
    return DueSegments(
        base_offsets=tuple(base for base, _ in due),
        bytes=sum(lengths[base] for base, _ in due),
        rule=due[-1][1],
        is_setting_known=policy.is_known,
        is_whole_log=len(due) == len(bases),
        misdated=misdated,
    )


_AHEAD_MS = 86_400_000
"""Timestamps this far ahead are no matter of clocks or time zones."""


def find_pinned_retention(
    disk: DirectoryOnDisk,
    outcome: LoadOutcome,
    segments: Sequence[tuple[int, int]],
    due: DueSegments | Absent,
    policy: Policy,
    *,
    now_ms: int,
    version: KafkaVersion,
) -> PinnedRetention | None:
    """Return the first of the segments that the load leaves, by base offset and length, where its timestamp is of the future and others are behind it: retention leaves it."""
    rules, gone = policy.policy, due.base_offsets if isinstance(due, DueSegments) else ()
    bases = sorted({base for base, _ in segments if f"{padded(base)}{LOG}" in outcome.tree} - {*gone})
    if len(bases) < 2 or not policy.is_known or not rules.by_time:
        return None
    try:
        timestamp, _ = _timestamp(disk, outcome, bases[0], now_ms=now_ms, version=version)
    except EvidenceError:
        return None
    if timestamp <= now_ms + _AHEAD_MS:
        return None
    return PinnedRetention(bases[0], timestamp, aged_out_at([timestamp], rules.retention_ms)[0])


def _begins_after(disk: DirectoryOnDisk, outcome: LoadOutcome, base: int, time_ms: int) -> bool:
    """Whether batches at the beginning of a segment are of a time or later; the header of the first says at once where it is not."""
    name = f"{padded(base)}{LOG}"
    before = outcome.origins.get(name, name)
    with suppress(EvidenceError), open_evidence(f"{disk.folder}/{disk.origins.get(before, before)}") as file:
        header = file.read(0, min(file.size, BATCH_HEADER.length))
        if len(header) == BATCH_HEADER.length and header[_MAGIC_POSITION] == NEWEST_MAGIC:
            (newest,) = _TIMESTAMP.unpack_from(header, _TIMESTAMP_POSITION)
            if 0 <= newest < time_ms:
                return False
        for window in walk_segment(file, level=Level.CRC, end=min(file.size, _BEGINNING)):
            sound = window.batches[window.batches["crc_valid"]]
            if len(sound):
                return int(sound["max_timestamp"].max()) >= time_ms
    return False


def _timestamp(
    disk: DirectoryOnDisk, outcome: LoadOutcome, base: int, *, now_ms: int, version: KafkaVersion
) -> tuple[int, bool]:
    """Return the largest timestamp of a segment as its broker knows it, and whether its time index says it; that of its last change where it knows none, as before 0.10.1 (KIP-33)."""
    name = f"{padded(base)}{LOG}"
    before = outcome.origins.get(name, name)
    origin = disk.origins.get(before, before)
    scanned = next((one for one in outcome.scanned if one.base_offset == base), None)
    largest = NO_TIMESTAMP
    if not loading_rules(version).has_time_indexes:
        is_truncated = outcome.tree[name] != disk.files.get(before)
        return now_ms if is_truncated else cast("int", _read(disk, Need(origin, Content.CHANGED))), False
    if scanned is not None:
        found = cast("Batches | None", disk.read.get(Need(origin, Content.CHECKED_BATCHES)))
        largest = max(
            (one.max_timestamp for one in (found.batches if found else ()) if one.position < scanned.kept_length),
            default=NO_TIMESTAMP,
        )
    else:
        largest = _indexed_timestamp(disk, outcome, base)
    if largest < 0:
        return cast("int", _read(disk, Need(origin, Content.CHANGED))), False
    return largest, scanned is None


def _indexed_timestamp(disk: DirectoryOnDisk, outcome: LoadOutcome, base: int) -> int:
    """Return the last timestamp of the time index of a segment, -1 where it has none."""
    index = outcome.origins.get(f"{padded(base)}{TIME_INDEX}")
    if index is None or disk.files.get(index, 0) < TIME_ENTRY_LENGTH:
        return NO_TIMESTAMP
    origin = disk.origins.get(index, index)
    if isinstance(disk.folder, ForeignPath):
        return cast("int", _read(disk, Need(origin, Content.LAST_TIMESTAMP)))
    # Versions before 2.3 look at both ends of it.
    return cast("TimeEnds", _read(disk, Need(origin, Content.TIME_INDEX))).last_timestamp


def _read(disk: DirectoryOnDisk, need: Need) -> object:
    if need not in disk.read:
        disk.read[need] = read_needed(disk.folder, need)
    return disk.read[need]
