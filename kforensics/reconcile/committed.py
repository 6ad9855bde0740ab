"""Was it committed? Certain, possible or no, with the reason, for any run of offsets in one replica's log.

Certain: below a high watermark that a replica recorded while it held the same records; below an offset that a consumer group committed in that
leader epoch; before the commit marker of a transaction that wrote there; in the log of a leader that was its own whole ISR. No: beyond the end
of a replica that was in the ISR and took over cleanly. Possible: all else. Acknowledgements are never guessed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

import numpy as np

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, Citation
from kforensics.formats.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.protocol.epochs import epoch_at
from kforensics.reconcile.divergence import common_range
from kforensics.reconcile.facts import ClusterFacts, Leadership
from kforensics.reconcile.lineage import LogView
from kforensics.units import OffsetRange

Certainty = Literal["certain", "possible", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRun:
    """A run of offsets of one certainty, why, and where that can be checked."""

    offsets: OffsetRange
    certainty: Certainty
    reason: str
    citations: tuple[Citation, ...] = ()
    records: int = 0
    markers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedCounts:
    """Records by certainty; control markers are counted apart."""

    certain: int = 0
    possible: int = 0
    no: int = 0
    markers: int = 0

    @property
    def records(self) -> int:
        """All of them."""
        return self.certain + self.possible + self.no

    @classmethod
    def of(cls, runs: Sequence[CommittedRun]) -> "CommittedCounts":
        """The counts of several runs."""
        by_certainty = {"certain": 0, "possible": 0, "no": 0}
        for run in runs:
            by_certainty[run.certainty] += run.records
        return cls(**by_certainty, markers=sum(run.markers for run in runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    offset: int
    reason: str
    citations: tuple[Citation, ...]


class CommitJudge:
    """Judges offsets of one partition's replicas by all evidence there is.

    Args:
        views: every replica of the partition that may be compared.
        agree_until: for two replicas, the offset up to which they hold the same content.
        facts: metadata and consumer groups.
        reader: for transactions, which need batch rows.
        is_quorum: the partition is the KRaft metadata log, where a majority of voters commits.
        is_recreated: the topic's name was in use before, so a group's offset may be one of the former topic.
        doubted: by broker, the offset from which its recorded high watermark proves nothing.
    """

    def __init__(
        self,
        views: Sequence[LogView],
        agree_until: Callable[[LogView, LogView], int],
        facts: ClusterFacts,
        reader: BatchReader,
        *,
        is_quorum: bool = False,
        is_recreated: bool = False,
        doubted: Mapping[int, int] | None = None,
    ) -> None:
        self._views = views
        self._agree_until = agree_until
        self._facts = facts
        self._reader = reader
        partition = views[0].replica.topic_partition
        topic_id = next(
            (v.replica.topic_id for v in views if not isinstance(v.replica.topic_id, Absent)), Absent.UNKNOWN
        )
        self._leaderships = facts.leaderships(partition, topic_id)
        self._is_recreated = is_recreated
        self._is_quorum = is_quorum
        self._doubted = doubted or {}

    def runs(self, view: LogView, offsets: OffsetRange) -> tuple[CommittedRun, ...]:
        """The offsets in runs of one certainty, in order."""
        if offsets.count <= 0:
            return ()
        if self._is_quorum:
            certain, never = self._by_majority(view)
        else:
            certain, never = self._certain_below(view, offsets), self._never_from(view, offsets)
        split = min(max(certain.offset if certain else offsets.first, offsets.first), offsets.last + 1)
        end = min(max(never.offset if never else offsets.last + 1, split), offsets.last + 1)
        out: list[CommittedRun] = []
        if certain and split > offsets.first:
            out.append(_run(offsets.first, split - 1, "certain", certain))
        if end > split:
            out.append(
                _run(split, end - 1, "possible", _Bound(offset=split, reason=self._why_possible(view), citations=()))
            )
        if never and end <= offsets.last:
            out.append(_run(end, offsets.last, "no", never))
        return tuple(out)

    def _certain_below(self, view: LogView, offsets: OffsetRange) -> _Bound | None:
        bounds = [
            *self._by_high_watermarks(view),
            *self._by_groups(view),
            *self._by_sole_isr(view),
            *self._by_isr_copies(view),
            *self._by_commit_markers(view, offsets),
        ]
        return max(bounds, key=lambda bound: bound.offset, default=None)

    def _by_high_watermarks(self, view: LogView) -> list[_Bound]:
        bounds = []
        for other in self._views:
            recorded = other.replica.high_watermark
            if isinstance(recorded, Absent):
                continue
            same_until = view.log_end_offset if other is view else self._agree_until(view, other)
            reach = min(recorded.value, same_until)
            if recorded.value > other.log_end_offset and other.batch_epochs:
                # The mark is older than the log's tail: it speaks of what lay below the newest term only.
                reach = min(reach, other.batch_epochs[-1].start_offset)
            broker = other.replica.broker_id
            if isinstance(broker, int):
                # Its broker raised the mark over records that it then cut.
                reach = min(reach, self._doubted.get(broker, reach))
            who = "its own" if other is view else f"{other.replica.owner}'s"
            bounds.append(
                _Bound(
                    offset=reach, reason=f"below {who} high watermark {recorded.value}", citations=(recorded.citation,)
                )
            )
        return bounds

    def _by_groups(self, view: LogView) -> list[_Bound]:
        bounds: list[_Bound] = []
        if self._is_recreated:
            return bounds
        for commit in self._facts.commits(view.replica.topic_partition):
            if isinstance(commit.leader_epoch, Absent) or commit.offset > view.log_end_offset:
                continue
            # The commit carries the epoch of the last record read; it proves this log only where that record has that epoch here.
            if epoch_at(view.batch_epochs, commit.offset - 1) == commit.leader_epoch:
                reason = f"consumer group {commit.group} committed offset {commit.offset} in leader epoch {commit.leader_epoch}"
                bounds.append(_Bound(offset=commit.offset, reason=reason, citations=(commit.citation,)))
        return bounds

    def _by_sole_isr(self, view: LogView) -> list[_Bound]:
        """A leader that is its own whole ISR commits what it appends; before 3.7 whatever min.insync.replicas says."""
        broker = view.replica.broker_id
        bounds = []
        for state, following in zip_longest(self._leaderships, self._leaderships[1:]):
            if state.leader != broker or state.isr != frozenset({broker}):
                continue
            if following is not None and following.leader_epoch == state.leader_epoch and following.isr != state.isr:
                continue
            end = self._end_of_term(view, state)
            # Since 3.7 a leader with fewer replicas in sync than min.insync.replicas does not advance its high watermark (KIP-966).
            if end is None or self._facts.min_insync_replicas(view.replica.topic_partition.topic) > 1:
                continue
            recorded = "" if isinstance(state.recorded_at, Absent) else f" from metadata offset {state.recorded_at}"
            bounds.append(
                _Bound(
                    offset=end,
                    reason=f"the ISR was [{broker}] alone{recorded} in leader epoch {state.leader_epoch}",
                    citations=(state.citation,),
                )
            )
        return bounds

    def _by_isr_copies(self, view: LogView) -> list[_Bound]:
        """What every member of the ISR that ended a leader's term holds was committed in that term."""
        by_broker = {other.replica.broker_id: other for other in self._views if other.replica.state == "live"}
        bounds = []
        for state, following in zip_longest(self._leaderships, self._leaderships[1:]):
            ends_term = following is None or following.leader_epoch != state.leader_epoch
            if not ends_term or state.leader != view.replica.broker_id or isinstance(state.isr, Absent):
                continue
            members = [by_broker.get(member) for member in sorted(state.isr) if member != state.leader]
            if not members or None in members:
                continue
            # Since 3.7 too small an ISR commits nothing (KIP-966), and what a later term wrote says nothing of this one.
            if len(state.isr) < self._facts.min_insync_replicas(view.replica.topic_partition.topic):
                continue
            later = (e.start_offset for e in view.batch_epochs if e.leader_epoch > state.leader_epoch)
            term_end = next(later, view.log_end_offset)
            reach = min(term_end, *(self._agree_until(view, member) for member in members if member is not None))
            names = ", ".join(str(member) for member in sorted(state.isr))
            reason = f"all of the ISR [{names}] of leader epoch {state.leader_epoch} hold it"
            bounds.append(_Bound(offset=reach, reason=reason, citations=(state.citation,)))
        return bounds

    @staticmethod
    def _end_of_term(view: LogView, state: Leadership) -> int | None:
        """Where the leader's term that `state` belongs to ends in its log: epochs rise with every leader, ISR changes keep them."""
        claimed = view.replica.checkpoint_epochs
        if state.leader_epoch not in {
            e.leader_epoch for e in (*view.batch_epochs, *(() if isinstance(claimed, Absent) else claimed))
        }:
            return None
        return next(
            (e.start_offset for e in view.batch_epochs if e.leader_epoch > state.leader_epoch), view.log_end_offset
        )

    def _by_commit_markers(self, view: LogView, offsets: OffsetRange) -> list[_Bound]:
        rows = self._reader.batches(view.replica, offsets.first, offsets.last)
        rows = rows[(rows["attributes"] & TRANSACTIONAL_BIT) != 0]
        markers = rows[(rows["attributes"] & CONTROL_BIT) != 0]
        bounds: list[_Bound] = []
        for marker in markers[::-1]:
            if bounds and int(marker["base_offset"]) <= max(bound.offset for bound in bounds):
                break
            data = rows[
                (rows["producer_id"] == marker["producer_id"])
                & ((rows["attributes"] & CONTROL_BIT) == 0)
                & (rows["last_offset"] < marker["base_offset"])
            ]
            if not len(data) or not self._is_commit(view, int(marker["base_offset"])):
                continue
            segment = view.replica.segments[int(marker["segment"])]
            citation = Citation(input=view.replica.input, path=segment.path)
            reason = f"before the commit marker of producer {marker['producer_id']} at offset {marker['base_offset']}"
            bounds.append(_Bound(offset=int(data["last_offset"][-1]) + 1, reason=reason, citations=(citation,)))
        return bounds

    def _is_commit(self, view: LogView, offset: int) -> bool:
        record = next(iter(self._reader.records(view.replica, offset, offset)), None)
        return record is not None and record.key is not None and record.key[2:4] == b"\x00\x01"

    def _by_majority(self, view: LogView) -> tuple[_Bound | None, _Bound | None]:
        """What a majority of the voters holds is committed, and with all voters here nothing else is (KIP-595)."""
        newest = self._leaderships[-1] if self._leaderships else None
        if newest is None or isinstance(newest.replicas, Absent) or not newest.replicas:
            return None, None
        voters = frozenset(newest.replicas)
        here = [other for other in self._views if other.replica.broker_id in voters]
        reach = sorted((view.log_end_offset if v is view else self._agree_until(view, v) for v in here), reverse=True)
        needed = len(voters) // 2 + 1
        if len(reach) < needed:
            return None, None
        held = reach[needed - 1]
        is_whole = all(v is view or common_range(view, v) is not None for v in here)
        who = f"{needed} of the {len(voters)} voters"
        certain = _Bound(offset=held, reason=f"held by at least {who}", citations=(newest.citation,))
        if len(here) < len(voters) or not is_whole:
            # A log that begins behind this one's end was cut at a snapshot, which holds committed records only.
            return certain, None
        return certain, _Bound(offset=held, reason=f"fewer than {who} hold it", citations=(newest.citation,))

    def _never_from(self, view: LogView, offsets: OffsetRange) -> _Bound | None:
        """Beyond the log of a replica that was in the ISR and took over cleanly, nothing was committed.

        Its log had to hold all that was committed before, and the start of its term says where its log ended then. A replica that came back from
        an unclean stop in between may have lost records that it had once confirmed, so it proves nothing.
        """
        by_broker = {other.replica.broker_id: other for other in self._views}
        epoch = epoch_at(view.batch_epochs, offsets.last)
        if isinstance(epoch, Absent):
            return None
        bounds = []
        for before, state in zip(self._leaderships, self._leaderships[1:], strict=False):
            successor = by_broker.get(state.leader) if not isinstance(state.leader, Absent) else None
            if state.leader_epoch <= epoch:
                continue
            if state.unclean:
                # What was committed until then may be gone from every later leader.
                break
            if successor is None or successor is view or self._restarted_uncleanly(state.leader, state, epoch):
                continue
            if isinstance(before.isr, Absent) or state.leader not in before.isr:
                continue
            start = next((e.start_offset for e in successor.epochs if e.leader_epoch == state.leader_epoch), None)
            if start is None:
                continue
            reason = f"broker {state.leader} was in the ISR and its log ended at {start} when it took over in leader epoch {state.leader_epoch}"
            bounds.append(_Bound(offset=start, reason=reason, citations=(state.citation,)))
        return min(bounds, key=lambda bound: bound.offset, default=None)

    def _restarted_uncleanly(self, broker: int | Absent, until: Leadership, epoch: int) -> bool:
        if isinstance(broker, Absent):
            return True
        if isinstance(until.recorded_at, Absent):
            return not self._is_unbroken_by_lines(broker, until, epoch)
        return any(at <= until.recorded_at for at in self._facts.unclean_restarts(broker))

    def _is_unbroken_by_lines(self, successor: int, until: Leadership, epoch: int) -> bool:
        """Lines of the old leader and of its successor reach back before the term, so no change of the ISR and no crash is unheard of."""
        term = [state for state in self._leaderships if state.leader_epoch == epoch]
        since, end = (term[0].time_ms if term else Absent.UNKNOWN), until.time_ms
        if not isinstance(since, int) or not isinstance(end, int) or not isinstance(term[0].leader, int):
            return False
        if any(state.unclean for state in self._leaderships if epoch < state.leader_epoch <= until.leader_epoch):
            return False
        heard = self._facts.is_unbroken(term[0].leader, since, since)
        return heard and self._facts.is_unbroken(successor, since, end)

    def _why_possible(self, view: LogView) -> str:
        if not self._leaderships:
            return "above every recorded high watermark; no metadata tells who was in sync"
        recorded = view.replica.high_watermark
        known = (
            "no high watermark is recorded"
            if isinstance(recorded, Absent)
            else f"above the recorded high watermark {recorded.value}"
        )
        return f"{known}, which is written every 5 s; nothing speaks against it"


def _run(first: int, last: int, certainty: Certainty, bound: _Bound) -> CommittedRun:
    return CommittedRun(
        offsets=OffsetRange(first, last), certainty=certainty, reason=bound.reason, citations=bound.citations
    )


def count_runs(runs: Sequence[CommittedRun], view: LogView, reader: BatchReader) -> tuple[CommittedRun, ...]:
    """The runs with their records counted from the batches of the replica's log."""
    if not runs:
        return ()
    rows = reader.batches(view.replica, runs[0].offsets.first, runs[-1].offsets.last)
    out = []
    for run in runs:
        records, markers = count_records(rows, run.offsets)
        out.append(
            CommittedRun(
                offsets=run.offsets,
                certainty=run.certainty,
                reason=run.reason,
                citations=run.citations,
                records=records,
                markers=markers,
            )
        )
    return tuple(out)


def count_records(rows: BatchTable, offsets: OffsetRange) -> tuple[int, int]:
    """Data records and control markers at the offsets; a batch that compaction thinned out counts what it still holds at most."""
    first = np.maximum(rows["base_offset"], offsets.first)
    last = np.minimum(rows["last_offset"], offsets.last)
    inside = np.minimum(np.maximum(last - first + 1, 0), rows["count"])
    control = (rows["attributes"] & CONTROL_BIT) != 0
    magic2 = rows["magic"] == 2
    markers = int(inside[control & magic2].sum())
    return int(inside.sum()) - markers, markers
