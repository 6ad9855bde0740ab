"""What became of a record, by the copies of its partition, the truncations and losses that `explain` finds, and those that `diff` expects.

A record that a live replica holds is present. One that none holds is lost where `explain` shows a truncation that took it, and removed on purpose where the log start
rose above it, a later record of its key lets a cleaner remove it, or its topic was deleted. Where nothing shows why it is not there, nothing is said.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Citation, Replica, Segment
from kforensics.formats.log.records import Record
from kforensics.protocol.epochs import epoch_at
from kforensics.protocol.retention import RetentionTimes
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.log_starts import LogStart, LogStartMove, Remover
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.logs.tiers import RemoteCopies
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.reconcile.salvage import remote_parts
from kforensics.reconcile.trace.found_record import CopyFile, FoundCopy, FoundRecord, LaterRecord, displaced_from
from kforensics.reconcile.trace.model import (
    Commitment,
    CopyKind,
    Fate,
    FateKind,
    TracedCopy,
    TracedRecord,
    Until,
    Visibility,
)
from kforensics.reconcile.trace.removal_time import Bytes, RemovalSettings, until
from kforensics.units import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from kforensics.reconcile.history.losses import Loss
    from kforensics.reconcile.incident.model import ExplainedTruncation, PartitionIncident

_WITH_EPOCHS = 2
"""The magic from which on batches have the leader epoch in which they were written."""

_ORDER: tuple[Commitment, ...] = ("certain", "possible", "no", "unknown")


class _KnownUntil(NamedTuple):
    """Until when the records of a file stay that are no newer than its newest, from a log start offset up to a log end offset."""

    until: Until
    newest_ms: int
    start: int
    end: int


class FateJudge:
    """Judges the records of one partition.

    Args:
        report: what `diff` says of it, None where no replica is given.
        incident: what `explain` says of it, None where nothing happened.
        views: the live replicas of the topic as it is now.
        is_compacted: a cleaner is shown to work on it.
        successors: by key, records of that key, of no aborted or open transaction.
    """

    def __init__(
        self,
        partition: TopicPartition,
        *,
        report: PartitionReport | None,
        incident: "PartitionIncident | None",
        views: Sequence[LoadedLog],
        is_compacted: bool,
        successors: Mapping[bytes, Sequence[LaterRecord]],
        topic_ids: frozenset[str],
        settings: Callable[[int | Absent], RemovalSettings],
        remote: RemoteCopies | None = None,
        log_starts: Sequence[LogStartMove] = (),
        retention: Callable[[int | Absent], RetentionTimes] = lambda _broker: RetentionTimes(),
    ) -> None:
        self._partition = partition
        self._report = report
        self._losses = incident.losses if incident is not None else ()
        self._doubts = incident.doubts if incident is not None else ()
        self._account = incident.account if incident is not None else None
        self._truncations = incident.truncations if incident is not None else ()
        # Where `explain` does not know whether anything is lost, one record of it is not called lost either.
        self._lost = "unknown" if incident is not None and incident.state == "unknown" else "lost"
        self._views = {(view.replica.input, view.replica.path): view for view in views}
        self._is_compacted = is_compacted
        self._successors = successors
        self._topic_ids = topic_ids
        self._settings = settings
        self._retention = retention
        self._remote = remote or RemoteCopies()
        self._log_starts = log_starts
        self._until: dict[CopyFile, _KnownUntil] = {}
        self._segments: dict[tuple[int, str], Segment] = {
            (view.replica.input, segment.path): segment for view in views for segment in view.replica.segments
        }
        choice = report.leader if report is not None else None
        self._leader = report.leader_log if report is not None else None
        self.is_leader_known = choice is not None and choice.is_known
        self._edges = sorted(set(self._turning_points()))
        self._plain: dict[tuple[object, ...], Commitment] = {}
        """How sure it is that records were committed that are present and of which there is no more to say, by all that decides it."""

    def _turning_points(self) -> Iterator[int]:
        """Yield the offsets at which what is said of a record of the same copies changes."""
        for view in self._views.values():
            yield from (view.log_start_offset, view.content_start_offset, view.log_end_offset, _high_watermark(view))
        yield from (move.offset for move in self._log_starts)
        for loss in self._losses:
            yield from (loss.offsets.first, loss.offsets.last + 1)
        for one in self._report.replicas if self._report is not None else ():
            if one.truncation is not None:
                yield one.truncation.offset
                for run in one.truncation.runs:
                    yield from (run.offsets.first, run.offsets.last + 1)

    def judge(self, found: FoundRecord) -> TracedRecord:
        """Return a record with its state, certainty and fate.

        Args:
            found: the record and the copies of the log that hold it; those in which it has the same position among known edges share one judgement.
        """
        if self._is_compacted or found.outcome is not Absent.NOT_APPLICABLE:
            return self._judged(found)
        record = found.record
        files = tuple([copy.file for copy in found.copies])
        key = (files, found.topic_id, record.partition_leader_epoch, bisect_right(self._edges, record.offset))
        committed = self._plain.get(key)
        if committed is None:
            judged = self._judged(found)
            if judged.state == "present" and not judged.fate:
                self._plain[key] = judged.committed
            return judged
        epoch = record.partition_leader_epoch
        return TracedRecord(
            self._partition,
            found.topic_id,
            record.offset,
            record,
            epoch if epoch >= 0 else Absent.NOT_WRITTEN,
            committed,
            "visible",
            "present",
            (),
            tuple([self._copy(record, copy, None) for copy in found.copies]),
        )

    def _judged(self, found: FoundRecord) -> TracedRecord:
        record = found.record
        live = [view for copy in found.copies if copy.kind is CopyKind.LIVE for view in self._view_of(copy.replica)]
        assigned = [view for view in live if self._is_replica(view)]
        kept = [view for view in assigned if record.offset < view.log_end_offset]
        fate: list[Fate] = []
        successor = self._successor(record, is_live=True) if self._is_compacted else None
        was_cleaned = self._is_compacted and self._was_cleaned(found)
        if live and not kept:
            fate += [_outside(view) if view in assigned else _unassigned(view) for view in live]
        elif kept and not self._leads(kept):
            is_explained = successor is not None or record.value is None or found.outcome is True
            fate += list(self._expected(record, kept)) or [
                self._cleaned_by_leader(kept) if was_cleaned and is_explained else self._elsewhere(record, kept)
            ]
        fate += self._set_aside(kept)
        segments = [self._segments.get((copy.replica.input, copy.path)) for copy in found.copies]
        is_misplaced = all(one is not None and found.record.offset < one.base_offset for one in segments)
        is_deleted_by_leader = self.is_leader_known and any(one.kind is FateKind.BELOW_LOG_START for one in fate)
        is_of_other_topic = self._is_of_other_topic(found)
        losses = self._losses_of(found) if not kept else []
        if is_misplaced:
            state, kept, losses = "unknown", [], []
            words = "its batch lies in a segment that begins at a later offset: the offset is damaged, which no checksum covers"
            fate = [Fate(FateKind.UNEXPLAINED, words, _places(found))]
        elif is_deleted_by_leader and not is_of_other_topic:
            state = "deleted-on-purpose"
        elif kept and not is_of_other_topic and self._is_below_start(record.offset):
            state = "deleted-on-purpose"
            fate.append(self._below_start(record.offset, "; its bytes are left until a broker deletes their segment"))
        elif kept and not is_of_other_topic:
            state = "present"
        elif losses:
            state = self._lost
            fate += self._fate_of(losses, record.offset)
        elif is_of_other_topic:
            state = "deleted-on-purpose"
            fate.append(
                Fate(
                    FateKind.TOPIC_DELETED,
                    f"topic {self._partition.topic} of id {found.topic_id} was deleted",
                    _places(found),
                )
            )
        elif self._is_below_start(record.offset):
            fate.append(self._below_start(record.offset))
            state = self._state_below(fate[-1])
        elif successor is not None:
            state = "superseded"
        elif was_cleaned and (record.key is not None or found.outcome is True):
            state = "deleted-on-purpose"
            fate.append(self._cleaned(found))
        elif (below := self._below_disks(record.offset)) is not None:
            state = below[0]
            fate.append(below[1])
        else:
            state = "unknown"
            fate.append(Fate(FateKind.UNEXPLAINED, self._unexplained(record), _places(found)))
        if state in {"present", "superseded"} and successor is not None:
            state = "deleted-on-purpose" if successor.record.value is None else "superseded"
            fate.append(_superseded(successor))
        elif state == "present" and self._is_compacted and record.value is None and record.key is not None:
            state = "deleted-on-purpose"
            fate.append(
                Fate(
                    FateKind.TOMBSTONE,
                    "it is a tombstone, and no later record of its key is in the log",
                    _places(found),
                )
            )
        fate += _transactional(found)
        return TracedRecord(
            partition=self._partition,
            topic_id=found.topic_id,
            offset=record.offset,
            record=record,
            leader_epoch=record.partition_leader_epoch if record.partition_leader_epoch >= 0 else Absent.NOT_WRITTEN,
            committed=self._committed(record, kept, losses, is_deleted_on_purpose=state == "deleted-on-purpose"),
            read_committed=_visibility(found),
            state=state,
            fate=tuple(fate),
            copies=tuple(self._copy(record, copy, successor) for copy in found.copies),
        )

    def _below_disks(self, offset: int) -> tuple[str, Fate] | None:
        """Return the state and fate of an offset below the first segment on disk, None where it is not below."""
        leader = self._leader
        if leader is None or offset >= (start := leader.content_start_offset):
            return None
        # What was deleted is known of offsets that were deleted from the start of the log on.
        below = OffsetRange(min(leader.log_start_offset, offset), start - 1)
        part = next(one for one in remote_parts(below, leader, self._remote) if offset <= one.offsets.last)
        unread = "deleted-on-purpose" if part.is_deleted else "unknown"
        words = f"the log on local disks begins at offset {start:,}, and this one is {part.words}"
        fate = Fate(FateKind.REMOTE, words, (leader.replica.cite(),))
        return unread if part.segment is None else "in-remote-storage", fate

    def _unexplained(self, record: Record) -> str:
        words = "no live replica holds it, and no input shows whether truncation, deletion or a cleaner took it"
        if record.magic < _WITH_EPOCHS and self._leader is not None and record.offset < self._leader.cleaned_below:
            # Followers of that time truncated to their high watermarks, so that equal records behind it don't show that the leader had it (KIP-101).
            return f"{words}: a cleaner of the leader has passed its offset, but records of magic {record.magic} have no leader epoch that would show that the leader's log had it"
        return words

    def _copy(self, record: Record, copy: FoundCopy, successor: LaterRecord | None) -> TracedCopy:
        file = copy.file
        known = None if self._is_compacted else self._until.get(file)
        if known is not None and record.timestamp_ms <= known.newest_ms and known.start <= record.offset < known.end:
            return TracedCopy(
                file.replica.broker_id, file.replica.input, file.path, copy.position, file.kind, known.until
            )
        replica = file.replica
        log = self._views.get((replica.input, replica.path))
        is_below = log is not None and record.offset < log.log_start_offset
        place = Bytes(
            kind=copy.kind,
            suffix=file.suffix,
            segment=self._segments.get((replica.input, copy.path)),
            log=log,
            delete_horizon_ms=copy.delete_horizon_ms,
        )
        settings = self._settings(replica.broker_id)
        found = until(record, place, settings, successor.record if successor is not None else None)
        newest = place.segment.max_timestamp_ms if place.segment is not None else Absent.UNKNOWN
        if log is not None and not is_below and isinstance(newest, int) and record.offset < log.log_end_offset:
            # Of a log that is not compacted it is the same for all records of a file that are part of it.
            self._until[file] = _KnownUntil(found, newest, log.log_start_offset, log.log_end_offset)
        return TracedCopy(replica.broker_id, replica.input, file.path, copy.position, file.kind, found)

    def not_held(self, offset: int) -> TracedRecord | None:
        """Return the record at an offset that no copy holds, where something shows what became of it."""
        losses = [one for one in self._losses if one.offsets.first <= offset <= one.offsets.last]
        if any(one.in_use for one in losses):
            # A replica in use holds the offset, and its bytes were not read, as of a capture: nothing is lost yet.
            return None
        if losses:
            committed = min((loss.was_committed for loss in losses), key=_ORDER.index)
            return self._without_copy(offset, self._lost, committed, tuple(self._fate_of(losses, offset)))
        if self._is_below_start(offset):
            fate = self._below_start(offset)
            return self._without_copy(offset, self._state_below(fate), "possible", (fate,))
        below, leader = self._below_disks(offset), self._leader
        if below is not None and below[0] == "deleted-on-purpose":
            return self._without_copy(offset, below[0], "possible", below[1:])
        is_inside = leader is not None and leader.content_start_offset <= offset < leader.log_end_offset
        if leader is not None and is_inside and offset < leader.cleaned_below:
            if any(one.offsets.first <= offset <= one.offsets.last for one in leader.damaged):
                return None
            fate_of_hole = Fate(
                FateKind.CLEANED,
                "a cleaner has passed this offset and no copy holds it: a later record of its key superseded it, or it was a tombstone, a marker, or of an aborted transaction",
                (leader.replica.cite(),),
            )
            return self._without_copy(offset, "superseded", "possible", (fate_of_hole,))
        return None

    def replaced(self, offset: int) -> TracedRecord | None:
        """Return the lost record at an offset that holds another record now, where no input holds a copy of the lost one."""
        losses = [one for one in self._losses if one.offsets.first <= offset <= one.offsets.last and not one.held_by]
        if not losses:
            return None
        committed = min((loss.was_committed for loss in losses), key=_ORDER.index)
        return self._without_copy(offset, self._lost, committed, tuple(self._fate_of(losses, offset)))

    def displaced(self, offset: int) -> Iterator[str]:
        """Yield why another record may have had an offset that the log of the leader holds, as parts of sentences."""
        leader = self._leader
        if leader is not None and offset < leader.log_start_offset:
            return
        for doubt in self._doubts:
            is_inside = isinstance(doubt.offsets, OffsetRange) and doubt.offsets.first <= offset <= doubt.offsets.last
            if isinstance(doubt.leader_epoch, int):
                account = self._account
                start = (
                    displaced_from(doubt.leader_epoch, account, leader.epochs)
                    if leader is not None and account is not None
                    else 0
                )
                is_inside = start is not None and offset >= start
            if is_inside:
                yield doubt.words

    def _without_copy(self, offset: int, state: str, committed: Commitment, fate: tuple[Fate, ...]) -> TracedRecord:
        epoch = (
            epoch_at(self._leader.epochs, offset)
            if state not in {"lost", "unknown"} and self._leader is not None
            else Absent.UNKNOWN
        )
        return TracedRecord(
            partition=self._partition,
            topic_id=self._report.topic_id if self._report is not None else Absent.UNKNOWN,
            offset=offset,
            record=None,
            leader_epoch=epoch,
            committed=committed,
            read_committed="unknown",
            state=state,
            fate=fate,
            copies=(),
        )

    # ---- parts ----

    def _view_of(self, replica: Replica) -> Iterator[LoadedLog]:
        view = self._views.get((replica.input, replica.path))
        if view is not None:
            yield view

    def _is_replica(self, view: LoadedLog) -> bool:
        """Whether the partition is assigned to the broker of a live directory, as far as both are known."""
        assigned = self._report.assigned if self._report is not None else Absent.UNKNOWN
        broker = view.replica.broker_id
        return isinstance(assigned, Absent) or isinstance(broker, Absent) or broker in assigned

    def _leads(self, views: Sequence[LoadedLog]) -> bool:
        return self._leader is None or any(_is_same(view, self._leader) for view in views)

    def _losses_of(self, found: FoundRecord) -> "list[Loss]":
        record = found.record
        places = {(copy.replica.input, copy.replica.path) for copy in found.copies}
        return [
            one
            for one in self._losses
            if one.offsets.first <= record.offset <= one.offsets.last
            and (not isinstance(one.leader_epoch, int) or one.leader_epoch == record.partition_leader_epoch)
            and (not one.held_by or any((holder.input, holder.path) in places for holder in one.held_by))
        ]

    def _fate_of(self, losses: "Sequence[Loss]", offset: int) -> Iterator[Fate]:
        yield from (fate_of_loss(loss) for loss in losses)
        yield from (fate_of_truncation(one) for one in self._truncations if one.to_offset <= offset < one.from_offset)

    def _is_of_other_topic(self, found: FoundRecord) -> bool:
        ids = {copy.replica.topic_id for copy in found.copies}
        if any(isinstance(one, Absent) for one in ids):
            return False
        is_deleted = self._report is not None and self._report.is_deleted
        return is_deleted or (bool(self._topic_ids) and not ids & self._topic_ids)

    def _is_below_start(self, offset: int) -> bool:
        if self._leader is not None and self.is_leader_known:
            return offset < self._leader.log_start_offset
        return bool(self._views) and all(offset < view.log_start_offset for view in self._views.values())

    def _below_start(self, offset: int, left: str = "") -> Fate:
        views = [self._leader] if self._leader is not None else list(self._views.values())
        start = min(view.log_start_offset for view in views)
        citations = tuple(
            view.replica.log_start.citation
            if isinstance(view.replica.log_start, CheckpointValue)
            else view.replica.cite()
            for view in views
        )
        bases = {one.base_offset for view in self._views.values() for one in view.segments}
        known = LogStart(
            offset=start,
            moves=self._log_starts,
            is_inside=bool(bases) and min(bases) < start and start not in bases,
            # What is in remote storage counts for its retention, too.
            times=RetentionTimes()
            if self._partition in self._remote.segments
            else self._retention(views[0].replica.broker_id),
            epochs_from=views[0].replica.epochs_from,
        )
        removal = known.removal(offset)
        by = "retention or DeleteRecords removed it" if removal is None else f"it was removed {removal.sentence}"
        cited = () if removal is None else removal.citations
        kinds = {Remover.EARLY: FateKind.DELETED_EARLY, Remover.NONE: FateKind.UNEXPLAINED}
        return Fate(
            FateKind.BELOW_LOG_START if removal is None else kinds.get(removal.by, FateKind.BELOW_LOG_START),
            f"the log starts at offset {start:,} now: {by}{left}",
            tuple(dict.fromkeys((*cited, *citations))),
        )

    def _state_below(self, fate: Fate) -> str:
        states = {FateKind.DELETED_EARLY: self._lost, FateKind.UNEXPLAINED: "unknown"}
        return states.get(fate.kind, "deleted-on-purpose")

    def _successor(self, record: Record, *, is_live: bool) -> LaterRecord | None:
        if record.key is None:
            return None
        later = [
            one
            for one in self._successors.get(record.key, ())
            if one.record.offset > record.offset and one.is_live is is_live
        ]
        return max(later, key=lambda one: one.record.offset, default=None)

    def _was_cleaned(self, found: FoundRecord) -> bool:
        """Whether the leader's log had the record, as its leader epochs show, and a cleaner has passed its offset; any log, where no input shows who leads."""
        record, leader = found.record, self._leader
        if leader is None:
            return False
        logs = [leader] if self.is_leader_known else list(self._views.values())
        is_passed = [self._is_of_lineage(record, view) for view in logs]
        return all(is_passed) and leader.log_start_offset <= record.offset < leader.cleaned_below

    @staticmethod
    def _is_of_lineage(record: Record, view: LoadedLog) -> bool:
        if record.offset >= view.log_end_offset:
            return False
        return epoch_at(view.epochs, record.offset) == record.partition_leader_epoch

    def _cleaned_by_leader(self, kept: Sequence[LoadedLog]) -> Fate:
        assert self._leader is not None
        who = ", ".join(sorted({view.replica.owner for view in kept}))
        return Fate(
            FateKind.CLEANED,
            f"the cleaner of the leader, {self._leader.replica.owner}, has removed it there; {who} still holds it",
            (self._leader.replica.cite(), *(view.replica.cite() for view in kept)),
        )

    def _cleaned(self, found: FoundRecord) -> Fate:
        """Return what let a cleaner remove a record that no live replica holds, and no later record of its key either."""
        assert self._leader is not None
        former = self._successor(found.record, is_live=False)
        citations: tuple[Citation, ...] = (self._leader.replica.cite(),)
        if found.outcome is True:
            words = "a cleaner removed it, as all records of aborted transactions"
        elif former is not None and former.record.value is None:
            words = f"the tombstone at offset {former.record.offset:,} removed its key; a cleaner removed both, the tombstone once delete.retention.ms had passed"
            citations = (former.citation, *citations)
        elif found.record.value is None:
            words = "it was a tombstone: a cleaner removed it once delete.retention.ms had passed, or a later record of its key superseded it"
        else:
            words = "a cleaner removed it: a later record of its key superseded it, of which no live replica holds any, as after a tombstone that was removed in its turn"
        return Fate(FateKind.CLEANED, words, citations)

    def _expected(self, record: Record, kept: Sequence[LoadedLog]) -> Iterator[Fate]:
        for one in self._report.replicas if self._report is not None else ():
            truncation = one.truncation
            if (
                truncation is None
                or record.offset < truncation.offset
                or not any(one.view is view or _is_same(one.view, view) for view in kept)
            ):
                continue
            leader = "the leader" if self._leader is None else self._leader.replica.owner
            guessed = "" if self.is_leader_known else " if it leads (no input shows the leader)"
            yield Fate(
                FateKind.WILL_BE_TRUNCATED,
                f"{one.view.replica.owner} will truncate its log to offset {truncation.offset:,} when it follows {leader}{guessed}",
                (one.view.replica.cite(),),
            )

    def _set_aside(self, kept: Sequence[LoadedLog]) -> Iterator[Fate]:
        """Yield which start sets a directory aside that holds the record, where no other replica keeps it, or the empty log that the broker then begins can lead."""
        strays = self._report.strays if self._report is not None else ()
        at = {one.place: one for one in strays}
        held = [at.get((view.replica.input, view.replica.path)) for view in kept]
        for view, one in zip(kept, held, strict=True):
            if one is not None and (one.is_electable or None not in held):
                sets = "sets its directory aside" if one.is_certain else "may set its directory aside"
                words = f"the start of {view.replica.owner} {sets} and begins an empty log: {one.reason}"
                yield Fate(FateKind.OUTSIDE, words, (view.replica.cite(),))

    def _elsewhere(self, record: Record, kept: Sequence[LoadedLog]) -> Fate:
        """Return what keeps a record from readers that other replicas than the leader hold."""
        assert self._leader is not None
        leader, end = self._leader.replica.owner, self._leader.log_end_offset
        guessed = "" if self.is_leader_known else f" (no input shows that {leader} leads)"
        who = ", ".join(sorted({view.replica.owner for view in kept}))
        if record.offset < self._leader.log_start_offset:
            return Fate(
                FateKind.BELOW_LOG_START,
                f"the log of the leader, {leader}, starts at offset {self._leader.log_start_offset:,} now{guessed}; {who} still holds it",
                tuple(view.replica.cite() for view in (self._leader, *kept)),
            )
        is_past_end = record.offset >= end
        words = (
            f"the log of the leader, {leader}, ends at offset {end:,}"
            if is_past_end
            else f"the leader, {leader}, does not"
        )
        return Fate(
            FateKind.OUTSIDE if is_past_end else FateKind.DIVERGED,
            f"{who} holds it, and {words}{guessed}",
            tuple(view.replica.cite() for view in (*kept, self._leader)),
        )

    def _committed(
        self, record: Record, kept: Sequence[LoadedLog], losses: "Sequence[Loss]", *, is_deleted_on_purpose: bool
    ) -> Commitment:
        offset = record.offset
        if losses:
            return min((loss.was_committed for loss in losses), key=_ORDER.index)
        if kept and not self._leads(kept) and self._report is not None:
            found: list[Commitment] = [
                run.certainty
                for one in self._report.replicas
                if one.truncation is not None and any(_is_same(one.view, view) for view in kept)
                for run in one.truncation.runs
                if run.offsets.first <= offset <= run.offsets.last
            ]
            return min(found, key=_ORDER.index, default="unknown")
        committed_in = [view for view in kept if _high_watermark(view) > offset]
        if kept and self.is_leader_known:
            return "certain" if any(self._leads([view]) for view in committed_in) else "possible"
        if kept:
            replicas = [view for view in self._views.values() if self._is_replica(view)]
            is_everywhere = len(kept) == len(replicas) and len(kept) > 1
            return "certain" if is_everywhere and committed_in else "possible"
        if is_deleted_on_purpose and self._leader is not None and self.is_leader_known:
            epoch = epoch_at(self._leader.epochs, offset)
            is_of_lineage = epoch == record.partition_leader_epoch
            return "certain" if is_of_lineage and _high_watermark(self._leader) > offset else "possible"
        return "unknown"


def fate_of_loss(loss: "Loss") -> Fate:
    """Return the entry of `explain` that says that a record is lost, as the fate of the record."""
    cause = str(loss.cause.value).replace("-", " ")
    kind = FateKind.DELETED_EARLY if loss.cause is CauseName.RETENTION else FateKind.TRUNCATED
    return Fate(kind, f"{loss.reason}; cause: {cause} ({loss.confidence})", loss.citations)


def fate_of_truncation(one: "ExplainedTruncation") -> Fate:
    """Return a truncation that took a record, as the fate of the record."""
    who = "a replica" if isinstance(one.broker_id, Absent) else f"broker {one.broker_id}"
    leader = "" if isinstance(one.leader, Absent) else f" by leader {one.leader}"
    return Fate(
        FateKind.TRUNCATED,
        f"{who} truncated its log from offset {one.from_offset:,} to {one.to_offset:,}{leader} ({one.protocol})",
        one.citations,
    )


def _is_same(one: LoadedLog, other: LoadedLog) -> bool:
    return (one.replica.input, one.replica.path) == (other.replica.input, other.replica.path)


def _high_watermark(view: LoadedLog) -> int:
    return view.high_watermark if isinstance(view.replica.high_watermark, CheckpointValue) else 0


def _places(found: FoundRecord) -> tuple[Citation, ...]:
    return tuple(Citation(input=copy.replica.input, path=copy.path) for copy in found.copies)


def _outside(view: LoadedLog) -> Fate:
    where = view.truncated_by_recovery
    return Fate(
        FateKind.OUTSIDE,
        f"it lies behind damage in the log of {view.replica.owner}, which the start of its broker truncates to offset {view.log_end_offset:,}",
        (where,) if where is not None else (view.replica.cite(),),
    )


def _unassigned(view: LoadedLog) -> Fate:
    return Fate(
        FateKind.OUTSIDE,
        f"{view.replica.owner} holds it and is no replica of the partition: its directory becomes a stray one",
        (view.replica.cite(),),
    )


def _superseded(successor: LaterRecord) -> Fate:
    record, citation = successor.record, successor.citation
    if record.value is None:
        words = f"the tombstone at offset {record.offset:,} removes its key"
        return Fate(FateKind.TOMBSTONED, words, (citation,))
    return Fate(FateKind.SUPERSEDED, f"offset {record.offset:,} holds a later record of its key", (citation,))


def _transactional(found: FoundRecord) -> Iterator[Fate]:
    if found.outcome is True:
        yield Fate(FateKind.ABORTED, "its transaction was aborted: read_committed never gives it", _places(found))
    elif found.outcome is None:
        yield Fate(FateKind.UNDECIDED, "no copy that holds it has the marker of its transaction", _places(found))


def _visibility(found: FoundRecord) -> Visibility:
    if found.outcome is True:
        return "aborted"
    return "undecided" if found.outcome is None else "visible"
