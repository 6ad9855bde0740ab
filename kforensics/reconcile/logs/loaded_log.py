"""A replica after its broker has loaded the log: the offsets, leader epochs and high watermark that the protocol uses.

The records of a producer up to its next marker share the marker's outcome (KIP-98); records that no marker follows are of a transaction that is undecided in
this log. Markers of one outcome that follow each other count as one, so that a log of commits alone needs one number a producer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.model import CheckpointValue, Citation, Replica, Segment
from kforensics.evidence.replica.segments import NO_END_OF_RECOVERY, add_digests, digest_batches
from kforensics.evidence.replica.unaccounted import Sign, Unaccounted, missing_offsets
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.primitives.numbers import distinct
from kforensics.protocol.loading.load import KnownLoad, KnownSegment, load_known_log
from kforensics.protocol.truncation import LogState, loaded_high_watermark
from kforensics.units import METADATA_TOPICS, EpochEntry, OffsetRange
from kforensics.words import counted

_OUT_OF_ORDER = frozenset({DamageKind.ORDER, DamageKind.EPOCH})
"""Damage of what the checksum of a batch does not cover: its base offset and its leader epoch."""


class DamagedRange(NamedTuple):
    """Offsets that a replica can no longer serve, and the bytes that held them."""

    offsets: OffsetRange
    citation: Citation


class LeftBytes(NamedTuple):
    """Bytes behind the last batch of a log."""

    are_zeros: bool
    citation: Citation

    @property
    def words(self) -> str:
        """How many they are, in words."""
        span = self.citation.span
        count = counted(span.length if isinstance(span, Span) else 0, "byte")
        return f"{count} of zeros" if self.are_zeros else f"{count} that are no batch"


@dataclass(frozen=True, kw_only=True)
class LoadedLog:
    """A replica after its broker's start: the log that recovery leaves, and the content of the leader epoch cache."""

    replica: Replica
    log_start_offset: int
    content_start_offset: int
    """The first offset on local disk; it is above `log_start_offset` if older segments are in remote storage."""
    log_end_offset: int
    truncated_by_recovery: Citation | None
    """The offset to which recovery truncates the log at the start, if it does."""
    segments: tuple[Segment, ...]
    """The segments that recovery keeps."""
    epochs: tuple[EpochEntry, ...]
    """The leader epoch cache that the broker will act on."""
    batch_epochs: tuple[EpochEntry, ...]
    """The leader epochs by the batches."""
    epochs_from: str
    """`checkpoint`, or `batches` if there is no usable checkpoint file."""
    scanned_epochs: tuple[EpochEntry, ...]
    """The leader epoch cache as the broker builds it without the file, from what recovery scans alone."""
    high_watermark: int
    """The checkpointed value, limited to the log as brokers do when they load it; the log start offset if none is recorded."""
    cleaned_below: int
    damaged: tuple[DamagedRange, ...]
    oldest_magic: int | Absent

    @cached_property
    def state(self) -> LogState:
        """The state of the log for the truncation rules."""
        return LogState(
            epochs=self.epochs,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=self.high_watermark,
        )

    @cached_property
    def state_without_high_watermark(self) -> LogState:
        """The same of a log that others fetch from: equal logs have equal states, whatever high watermark their brokers know."""
        return self.state._replace(high_watermark=Absent.NOT_APPLICABLE)

    @property
    def sound_records_dropped(self) -> int:
        """How many sound records recovery discards, behind the first batch that fails."""
        if self.truncated_by_recovery is None:
            return 0
        return sum(one.record_count for one in self.replica.segments) - sum(one.record_count for one in self.segments)

    @cached_property
    def missing(self) -> tuple[Unaccounted, ...]:
        """The offsets that the replica should hold and does not, as far as its own files show it."""
        return missing_offsets(self.replica)

    @cached_property
    def left_behind(self) -> LeftBytes | None:
        """The bytes behind the last batch of a log that was stopped cleanly, which no recovery truncates; those of a batch that is damaged are told by its offsets."""
        replica = self.replica
        if not replica.clean_shutdown or not replica.segments or replica.topic_partition.topic in METADATA_TOPICS:
            return None
        last = replica.segments[-1]
        behind = (one for one in last.damage if one.span.position + one.span.length == last.length)
        found = next((one for one in behind if isinstance(one.offsets_lost, Absent)), None)
        name = last.path.rpartition("/")[2]
        return None if found is None else LeftBytes(found.kind is DamageKind.ZEROS, replica.cite(name, found.span))

    @cached_property
    def digests(self) -> NDArray[np.void]:
        """One digest per bucket over all segments that are kept."""
        return add_digests([segment.digests for segment in self.segments])

    @cached_property
    def digest_bytes(self) -> bytes:
        """The same as bytes: those of logs that hold the same batches are equal."""
        return self.digests.tobytes()

    @cached_property
    def last_epoch(self) -> int | Absent:
        """The newest leader epoch that the replica knows, from its cache or its batches; absent where it knows none."""
        # An epoch that began at the log end is not in the loaded cache any more, but it shows which broker led last.
        claimed = self.replica.checkpoint_epochs
        cache = self.epochs if isinstance(claimed, Absent) else claimed or self.epochs
        known = [entries[-1].leader_epoch for entries in (cache, self.batch_epochs) if entries]
        return max(known) if known else Absent.NOT_APPLICABLE

    @property
    def written_epochs(self) -> tuple[EpochEntry, ...]:
        """The leader epochs by which its broker reads remote storage: those of `leader-epoch-checkpoint`, none without it."""
        epochs = self.replica.checkpoint_epochs
        return () if isinstance(epochs, Absent) else epochs

    @cached_property
    def left_out(self) -> tuple[Unaccounted, ...]:
        """The offsets of segments whose indexes are here: they were removed, or left out of the copy."""
        return tuple(one for one in self.missing if one.sign is Sign.INDEX)

    @cached_property
    def lost_ranges(self) -> tuple[OffsetRange, ...]:
        """The offsets below its end that the log can't give: their bytes are damaged, or their segment is missing."""
        missing = (
            OffsetRange(one.first, one.last)
            for one in self.missing
            if isinstance(one.last, int) and self.content_start_offset <= one.first and one.last < self.log_end_offset
        )
        return (*(lost.offsets for lost in self.damaged), *missing)

    def is_left_out(self, offset: int) -> bool:
        """Whether an offset is of a segment that was removed or left out of the copy, so that what it holds is unknown."""
        return any(
            one.first <= offset and (isinstance(one.last, Absent) or offset <= one.last) for one in self.left_out
        )

    def damage_before(self, offset: int) -> str:
        """Return in words what is damaged at or before the offset of a record, or in its segment where no offset is known of the damage; empty where nothing is."""
        lost = next((one for one in self.lost_ranges if one.first <= offset), None)
        if lost is not None:
            return f"its log can't give offsets {lost.first} to {lost.last}"
        for segment in self.segments:
            place = next((one for one in segment.damage if one.kind in _OUT_OF_ORDER), None)
            if place is not None and segment.base_offset <= offset:
                return f"its log is damaged: expected {place.expected}, found {place.found}"
        return ""

    @property
    def is_intact(self) -> bool:
        """Whether all of it was read, and nothing of it is damaged or missing."""
        return self.replica.is_read_whole and not self.left_out and not self.damage_before(self.log_end_offset)


def load_log(replica: Replica, *, is_recovered: bool = True) -> LoadedLog:
    """Return the replica after its broker has loaded it, by the rules of `protocol.loading`, or before a recovery that it is due."""
    has_file = not isinstance(replica.checkpoint_epochs, Absent)
    loaded = load_replica(replica, is_recovered=is_recovered)
    segments, truncation = _kept(replica, loaded)
    batch_epochs = epochs_of(segments)
    state = loaded.state
    first_base = replica.segments[0].base_offset if replica.segments else state.log_start_offset
    return LoadedLog(
        replica=replica,
        log_start_offset=state.log_start_offset,
        content_start_offset=max(state.log_start_offset, first_base),
        log_end_offset=state.log_end_offset,
        truncated_by_recovery=truncation,
        segments=segments,
        epochs=state.epochs if has_file else batch_epochs,
        batch_epochs=batch_epochs,
        epochs_from="checkpoint" if has_file else "batches",
        scanned_epochs=state.epochs,
        high_watermark=loaded_high_watermark(
            _value_of(replica.high_watermark), state.log_start_offset, state.log_end_offset
        ),
        cleaned_below=_cleaned_below(replica, segments),
        damaged=tuple(
            DamagedRange(
                offsets=damage.offsets_lost, citation=Citation(input=replica.input, path=segment.path, span=damage.span)
            )
            for segment in segments
            for damage in segment.damage
            if damage.gravity is not Gravity.UNREAD and isinstance(damage.offsets_lost, OffsetRange)
        ),
        oldest_magic=min((m for s in segments for m in s.magics), default=Absent.NOT_APPLICABLE),
    )


def log_as_it_lies(view: LoadedLog) -> LoadedLog:
    """Return a log as it is before the start of its broker, up to its last sound batch, with what recovery will discard."""
    return load_log(replace(view.replica, clean_shutdown=True), is_recovered=False)


def load_logs(replicas: Sequence[Replica]) -> list[LoadedLog]:
    """Return replicas of one partition after their brokers have loaded them; what their files say alike is worked out once."""
    loaded: list[LoadedLog] = []
    for replica in replicas:
        loaded.append(load_beside(replica, loaded[0] if loaded else None))
    return loaded


_KEPT = 16
_loaded_last: dict[tuple[int, int], tuple[LoadedLog, LoadedLog | None]] = {}
"""What was loaded last, by the objects that it was made of, which are held with it."""


def load_beside(replica: Replica, other: LoadedLog | None) -> LoadedLog:
    """Return a replica after its broker has loaded it, as another one of its partition was where their files say the same; once for all who ask one behind the other."""
    key = id(replica), id(other)
    if key not in _loaded_last:
        like = None if other is None else _like(other, replica)
        while len(_loaded_last) >= _KEPT:
            del _loaded_last[next(iter(_loaded_last))]
        _loaded_last[key] = load_log(replica) if like is None else like, other
    return _loaded_last[key][0]


_SHARED = ("state_without_high_watermark", "missing", "digests", "digest_bytes", "last_epoch", "lost_ranges")
"""Properties that are the same of logs that are loaded alike."""

_OF_LOG = attrgetter("remote_start", "clean_shutdown", "checkpoint_epochs", "state", "is_read_whole", "has_records")
_OF_SEGMENT = attrgetter(
    "base_offset",
    "first_offset",
    "last_offset",
    "batch_count",
    "record_count",
    "epochs",
    "magics",
    "is_thinned",
    "thinned_below",
    "longest_batch",
    "batches_from",
    "unread_below",
)


def are_loaded_alike(logs: Sequence[LoadedLog]) -> bool:
    """Whether `load_logs` found logs to be alike, so that nothing but their high watermarks differs."""
    first = logs[0].digest_bytes
    # Only logs that are loaded alike share one object.
    return all(vars(one).get("digest_bytes") is first for one in logs)


def _like(log: LoadedLog, replica: Replica) -> LoadedLog | None:
    """Return a replica as another one of its partition was loaded, none where anything that loading looks at differs, or is damaged."""
    other = log.replica
    if (
        len(other.segments) != len(replica.segments)
        or _OF_LOG(other) != _OF_LOG(replica)
        or log.missing
        or other.orphan_indexes
        or replica.orphan_indexes
        or _value_of(other.recovery_point) != _value_of(replica.recovery_point)
        or _value_of(other.log_start) != _value_of(replica.log_start)
        or _value_of(other.cleaner_point) != _value_of(replica.cleaner_point)
    ):
        return None
    for mine, its in zip(other.segments, replica.segments, strict=True):
        is_odd = mine.damage or its.damage or mine.changed or its.changed
        if is_odd or _OF_SEGMENT(mine) != _OF_SEGMENT(its):
            return None
        if mine.digests is not its.digests and mine.digests.tobytes() != its.digests.tobytes():
            return None
    recorded = _value_of(replica.high_watermark)
    if not isinstance(recorded, Absent) and recorded > log.log_end_offset:
        return None
    for name in _SHARED:
        getattr(log, name)
    like = object.__new__(LoadedLog)  # as `replace` does it, with the properties that are known
    values = vars(like)
    values.update(vars(log))
    values.pop("state", None)  # it has the high watermark
    values["replica"] = replica
    values["segments"] = replica.segments
    values["high_watermark"] = loaded_high_watermark(recorded, log.log_start_offset, log.log_end_offset)
    return like


def load_replica(replica: Replica, *, is_recovered: bool = True) -> KnownLoad:
    """Return what the start of its broker makes of a replica's log.

    The metadata log is opened as after a crash at every start, with a recovery point of 0.
    """
    is_metadata = is_recovered and replica.topic_partition.topic in METADATA_TOPICS
    return load_known_log(
        [_known_segment(segment) for segment in replica.segments],
        clean_shutdown=replica.clean_shutdown and not is_metadata,
        recovery_point=0 if is_metadata or isinstance(point := replica.recovery_point, Absent) else point.value,
        log_start_offset=_claimed_start(replica, 0),
        checkpoint_epochs=() if isinstance(replica.checkpoint_epochs, Absent) else replica.checkpoint_epochs,
        has_remote_storage=_has_remote_storage(replica),
    )


def _value_of(checkpoint: CheckpointValue | Absent) -> int | Absent:
    return checkpoint if isinstance(checkpoint, Absent) else checkpoint.value


def _known_segment(segment: Segment) -> KnownSegment:
    last, base = segment.last_offset, segment.base_offset
    recovered = base if isinstance(segment.recovered_end_offset, Absent) else max(segment.recovered_end_offset, base)
    if _first_fatal(segment) is None:
        # The last batch of the file ends it, though one before it has a later offset.
        return KnownSegment(
            base_offset=base, end_offset=recovered, recovered_end_offset=recovered, epochs=segment.epochs
        )
    end = base if isinstance(last, Absent) else max(last + 1, base)
    return KnownSegment(
        base_offset=base, end_offset=end, recovered_end_offset=recovered, is_torn=True, epochs=segment.epochs
    )


def _first_fatal(segment: Segment) -> Damage | None:
    fatal = [damage for damage in segment.damage if damage.kind not in NO_END_OF_RECOVERY]
    return min(fatal, key=lambda damage: damage.span.position, default=None)


def _has_remote_storage(replica: Replica) -> bool:
    """Return whether the topic keeps older segments in remote storage, by the record of copies, or by the traces that only remote storage leaves.

    The log start and the leader epochs lie below the first segment on disk: without remote storage both rise with it.
    """
    if not replica.segments:
        return False
    first_base = replica.segments[0].base_offset
    epochs_from = replica.epochs_from
    has_epochs_below = (
        epochs_from < first_base if isinstance(epochs_from, int) else isinstance(replica.remote_start, int)
    )
    return has_epochs_below and _claimed_start(replica, first_base) < first_base


def _claimed_start(replica: Replica, unknown: int) -> int:
    """Return where the log starts by its checkpoint, else where its copies in remote storage begin."""
    if not isinstance(replica.log_start, Absent):
        return replica.log_start.value
    return unknown if isinstance(replica.remote_start, Absent) else replica.remote_start


def epochs_of(segments: tuple[Segment, ...]) -> tuple[EpochEntry, ...]:
    """Return the start of each leader epoch by the batches: one entry for each change of the epoch along the log."""
    out: list[EpochEntry] = []
    for segment in segments:
        for entry in segment.epochs:
            if not out or out[-1].leader_epoch != entry.leader_epoch:
                out.append(entry)
    return tuple(out)


def _kept(replica: Replica, loaded: KnownLoad) -> tuple[tuple[Segment, ...], Citation | None]:
    """Return the segments that loading keeps, the truncated one shortened, and the target of the truncation."""
    kept = replica.segments[: loaded.kept_count]
    if isinstance(loaded.truncated, Absent):
        return kept, None
    at = next(at for at, one in enumerate(replica.segments) if _is_truncated(one, loaded))
    segment = replica.segments[at]
    first = _first_fatal(segment)
    assert first is not None
    where = Citation(input=replica.input, path=segment.path, span=first.span)
    return (*kept[:at], truncate_segment(segment, first.span.position)) if kept else (), where


def _is_truncated(segment: Segment, loaded: KnownLoad) -> bool:
    return segment.base_offset == loaded.truncated and _first_fatal(segment) is not None


def truncate_segment(segment: Segment, position: int) -> Segment:
    """Return the segment as if its file ended at a position."""
    if isinstance(segment.batches, Absent):
        return _truncate_summary(segment, position)
    rows = segment.batches[segment.batches["position"] < position]
    end = int(rows["last_offset"][-1]) + 1 if len(rows) else segment.base_offset
    return replace(
        segment,
        length=position,
        valid_length=position,
        first_offset=int(rows["base_offset"][0]) if len(rows) else Absent.NOT_APPLICABLE,
        last_offset=end - 1 if len(rows) else Absent.NOT_APPLICABLE,
        batch_count=len(rows),
        record_count=int(rows["count"].sum()),
        epochs=tuple(e for e in segment.epochs if e.start_offset < end),
        digests=digest_batches(rows),
        batches=rows,
        damage=(),
    )


def _truncate_summary(segment: Segment, position: int) -> Segment:
    """Truncate a segment without a batch table at a position, by the counts up to its first invalid batch."""
    end = segment.recovered_end_offset
    is_empty = isinstance(end, Absent)
    last = segment.base_offset if isinstance(end, Absent) else end
    # The digest of the bucket that holds the target can't be split: the records of the bucket are read instead.
    kept = segment.digests[segment.digests["position"] < position][:-1]
    return replace(
        segment,
        length=position,
        valid_length=position,
        first_offset=Absent.NOT_APPLICABLE if is_empty else segment.first_offset,
        last_offset=Absent.NOT_APPLICABLE if is_empty else last - 1,
        batch_count=segment.recovered_batch_count,
        record_count=segment.recovered_record_count,
        epochs=tuple(e for e in segment.epochs if e.start_offset < last),
        digests=kept,
        damage=(),
    )


def _cleaned_below(replica: Replica, segments: tuple[Segment, ...]) -> int:
    """Return the offset below which the log may be compacted: the cleaner's checkpoint, the end of a closed segment with a trace of a cleaner, or the last trace in the active one."""
    point = replica.cleaner_point.value if not isinstance(replica.cleaner_point, Absent) else 0
    for segment in segments[:-1]:
        if segment.is_thinned:
            point = max(
                point, segment.base_offset if isinstance(segment.last_offset, Absent) else segment.last_offset + 1
            )
    # A cleaner leaves the active segment alone, but a replica whose disk was emptied fetches cleaned batches into it.
    active = segments[-1] if segments else None
    if (
        active is not None
        and not isinstance(active.thinned_below, Absent)
        and not isinstance(active.last_offset, Absent)
    ):
        point = max(point, min(active.thinned_below, active.last_offset + 1))
    return point


class Marker(NamedTuple):
    """The end of a transaction in a log."""

    producer_id: int
    offset: int
    is_abort: bool


class Outcomes:
    """The outcomes of the transactions of a log, which say which records are of aborted ones.

    Args:
        markers: of the log, by rising offset.
    """

    def __init__(self, markers: Iterable[Marker] = ()) -> None:
        self._ends: dict[int, list[tuple[int, bool]]] = {}
        self._arrays: dict[int, tuple[NDArray[np.int64], NDArray[np.bool_]]] = {}
        self.has_aborted = False
        for marker in markers:
            self.add(marker)

    def add(self, marker: Marker) -> None:
        """Add the next marker of the log, at a higher offset than those before."""
        ends = self._ends.setdefault(marker.producer_id, [])
        self._arrays.pop(marker.producer_id, None)
        self.has_aborted |= marker.is_abort
        if ends and ends[-1][1] is marker.is_abort:
            ends[-1] = (max(ends[-1][0], marker.offset), marker.is_abort)
        else:
            ends.append((marker.offset, marker.is_abort))

    def are_aborted(self, rows: BatchTable) -> NDArray[np.bool_]:
        """Return whether each batch is of an aborted transaction; one that no marker follows is not."""
        out = np.zeros(len(rows), dtype=np.bool_)
        if not self.has_aborted:
            return out
        candidates = are_transactional(rows)
        for producer in distinct(rows["producer_id"][candidates]).tolist():
            if producer not in self._ends:
                continue
            offsets, aborts = self._of(producer)
            mine = candidates & (rows["producer_id"] == producer)
            at = np.searchsorted(offsets, rows["last_offset"][mine], side="right")
            out[mine] = np.append(aborts, False)[at]
        return out

    def _of(self, producer: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if producer not in self._arrays:
            ends = self._ends[producer]
            self._arrays[producer] = (
                np.array([offset for offset, _ in ends], dtype=np.int64),
                np.array([is_abort for _, is_abort in ends], dtype=np.bool_),
            )
        return self._arrays[producer]


def are_transactional(rows: BatchTable) -> NDArray[np.bool_]:
    """Return whether each batch holds data of a transaction."""
    kinds = rows["attributes"] & (TRANSACTIONAL_BIT | CONTROL_BIT)
    found: NDArray[np.bool_] = (rows["magic"] == 2) & (kinds == TRANSACTIONAL_BIT)
    return found


def are_markers(rows: BatchTable) -> NDArray[np.bool_]:
    """Return whether each batch is a control batch of a producer: the end of a transaction."""
    found: NDArray[np.bool_] = (
        (rows["magic"] == 2) & (rows["attributes"] & CONTROL_BIT > 0) & (rows["producer_id"] >= 0)
    )
    return found
