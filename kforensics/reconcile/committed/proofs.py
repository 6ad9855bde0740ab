"""The rules that prove that records were committed, or that they were not: each gives an offset, why, and where that can be checked.

Certain: below a high watermark that a replica recorded while it held the same records; below an offset that a consumer group committed in that
leader epoch; before the commit marker of a transaction that wrote there; in the log of a leader that was its own whole ISR, where one in sync was enough.
No: beyond the end of a replica that was in the ISR, or eligible, and took over cleanly with a log that was still whole.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.metadata.state import majority, reached_by_majority
from kforensics.evidence.model import BatchReader, CheckpointValue, Citation
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT
from kforensics.formats.primitives.numbers import first_of_each
from kforensics.protocol.epochs import epoch_at
from kforensics.reconcile.logs.divergence import common_range, damage_at, same_batches_from
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership
from kforensics.reconcile.observed.leadership import led_on, unproven_after
from kforensics.units import OffsetRange

MARK_INTERVAL_MS = 5_000
"""`replica.high.watermark.checkpoint.interval.ms`, Kafka's default."""


def high_watermark_reach(view: LoadedLog, facts: ClusterFacts, leaderships: Sequence[Leadership]) -> int:
    """Return the offset below which the high watermark recorded for a log proves its records committed; 0 where none is recorded.

    Args:
        leaderships: the recorded states of the partition, the oldest first; without any, only the records below the log's newest epoch count
            after an unclean shutdown.
    """
    recorded = view.replica.high_watermark
    if isinstance(recorded, Absent):
        return 0
    if not leaderships and not view.replica.clean_shutdown:
        # It is up to 5 s old: where no input shows when the log was written, the log may have been truncated and written again since.
        return min(recorded.value, view.batch_epochs[-1].start_offset if view.batch_epochs else 0)
    reach = min(recorded.value, view.log_end_offset)
    if recorded.value > view.log_end_offset and view.batch_epochs:
        # The high watermark is older than the log's tail: it only covers what was below the newest term.
        reach = min(reach, view.batch_epochs[-1].start_offset)
    return min(reach, start_of_unmarked_term(view, facts, leaderships, reach))


def start_of_unmarked_term(
    view: LoadedLog, facts: ClusterFacts, leaderships: Sequence[Leadership], otherwise: int
) -> int:
    """Return where the log was written again since its broker came back from a crash so lately that the high watermark may be from before.

    A crash can take the end of a log while the high watermark stays, and the next leader writes other records there.
    """
    broker = view.replica.broker_id
    restarts = facts.unclean_restarts(broker) if isinstance(broker, int) else ()
    if not restarts:
        return otherwise
    began: dict[int, Leadership] = {}
    for state in leaderships:
        began.setdefault(state.leader_epoch, state)
    newest_ms = max(
        (s.max_timestamp_ms for s in view.segments if isinstance(s.max_timestamp_ms, int)), default=Absent.UNKNOWN
    )
    behind: list[tuple[int, Leadership]] = []
    """The terms that began after a restart of the broker which no earlier of the terms came after."""
    before = -1
    for entry in view.batch_epochs:
        first = began.get(entry.leader_epoch)
        if first is None or not isinstance(first.recorded_at, int):
            continue
        if any(before < restart < first.recorded_at for restart in restarts):
            behind.append((entry.start_offset, first))
        before = first.recorded_at
    ends = [*(state.time_ms for _, state in behind[1:]), newest_ms]
    for (start_offset, first), end_ms in zip(behind, ends, strict=False):
        is_marked_since = (
            isinstance(first.time_ms, int) and isinstance(end_ms, int) and end_ms - first.time_ms > 2 * MARK_INTERVAL_MS
        )
        if not is_marked_since:
            return start_offset
    return otherwise


FILE_TIME_SLACK_MS = 1_500
"""Archives keep the times of files to the second."""
_NO_OFFSETS = np.zeros(0, dtype=np.int64)


class Bound(NamedTuple):
    """An offset up to which, or from which on, something is proven."""

    offset: int
    reason: str
    citations: tuple[Citation, ...]


class Moment(NamedTuple):
    """The logs of a partition in one snapshot."""

    metadata_end: int
    """The end offset of the metadata log in that snapshot."""
    views: tuple[LoadedLog, ...]


@dataclass(frozen=True)
class CommitProofs:
    """The evidence about what was committed in one partition, and the rules that draw on it."""

    views: Sequence[LoadedLog]
    """Every replica of the partition that may be compared."""
    agree_until: Callable[[LoadedLog, LoadedLog], int]
    """For two replicas, the offset up to which they hold the same content."""
    facts: ClusterFacts
    """The metadata and the consumer groups."""
    reader: BatchReader
    """For transactions, which need batch rows."""
    is_quorum: bool = False
    """The partition is the KRaft metadata log, where a majority of voters commits."""
    is_recreated: bool = False
    """The topic's name was in use before, so a group's offset may be one of the former topic."""
    doubted: Mapping[int, int] = field(default_factory=dict)
    """By broker, the offset from which its recorded high watermark proves nothing."""
    weakened: frozenset[int] = frozenset()
    """Brokers whose log was shortened by anything but a leader epoch: what they lack proves nothing."""
    logged: Sequence[tuple[LoadedLog, CheckpointValue]] = ()
    """High watermarks that log lines state of logs among `views`."""
    moments: Sequence[Moment] = ()
    """Earlier snapshots, with who was in sync by the metadata log of then."""
    written_ms: Mapping[int, int] = field(default_factory=dict)
    """When the file of a log was last written to, in UTC ms, by the identity of the log; those without a time of their own are left out."""

    @cached_property
    def leaderships(self) -> Sequence[Leadership]:
        """Who led, as far as that is on record."""
        known = (one.replica.topic_id for one in self.views if not isinstance(one.replica.topic_id, Absent))
        return self.facts.leaderships(self.views[0].replica.topic_partition, next(known, Absent.UNKNOWN))

    def certain_below(self, view: LoadedLog, offsets: OffsetRange) -> Bound | None:
        """Return the highest offset below which everything in the log is proven to be committed, or None without a proof."""
        bounds = [
            *self._by_high_watermarks(view),
            *self._by_logged_high_watermarks(view),
            *self._by_groups(view),
            *self._by_sole_isr(view),
            *self._by_isr_copies(view),
            *self._by_isr_of_snapshots(view),
            *self._by_terms_of_others(view, offsets),
            *self._by_commit_markers(view, offsets),
        ]
        return max(bounds, key=lambda bound: bound.offset, default=None)

    def is_above_all(self, offset: int) -> bool:
        """Whether no high watermark that any of the logs' brokers wrote down reaches beyond an offset."""
        recorded = [view.replica.high_watermark for view in self.views]
        return all(isinstance(one, Absent) or one.value <= offset for one in recorded)

    def _by_high_watermarks(self, view: LoadedLog) -> list[Bound]:
        bounds = []
        for other in self.views:
            recorded = other.replica.high_watermark
            if isinstance(recorded, Absent):
                continue
            same_until = view.log_end_offset if other is view else self.agree_until(view, other)
            reach = min(high_watermark_reach(other, self.facts, self.leaderships), same_until)
            reach = min(reach, self._rejoined_at(other, reach))
            broker = other.replica.broker_id
            if isinstance(broker, int):
                # Its broker raised the high watermark over records that it then truncated.
                reach = min(reach, self.doubted.get(broker, reach))
            who = "its own" if other is view else f"{other.replica.owner}'s"
            bounds.append(Bound(reach, f"below {who} high watermark {recorded.value}", (recorded.citation,)))
        return bounds

    def _rejoined_at(self, view: LoadedLog, reach: int) -> int:
        """Where a log begins to differ from another one that holds the same again behind that: one of both was written with the other's records since.

        A follower's high watermark is its leader's, so from there on it may speak of what the leader holds; that of the last leader on record is its own. Where no
        leader is on record, a follower up to 2.7 may have kept other records below the high watermark that its leader sent (KIP-279).
        """
        broker = view.replica.broker_id
        if any(state.leader == broker for state in self._last_led()):
            return reach
        may_keep = not self.leaderships and isinstance(view.replica.topic_id, Absent)
        for other in self.views:
            if other.replica.broker_id == broker:
                continue
            end = min(view.log_end_offset, other.log_end_offset)
            parted = self.agree_until(view, other)
            if common_range(view, other) is None or not parted < min(reach, end):
                continue
            is_same_again = may_keep or same_batches_from(view, other, end - 1, self.reader) < end
            if is_same_again and damage_at(parted, view, other) is None:
                reach = parted
        return reach

    def _last_led(self) -> Sequence[Leadership]:
        """Return the newest state that names a leader, if any does."""
        return [state for state in self.leaderships if isinstance(state.leader, int)][-1:]

    def _by_logged_high_watermarks(self, view: LoadedLog) -> list[Bound]:
        bounds = []
        for of, logged in self.logged:
            same_until = view.log_end_offset if of is view else self.agree_until(view, of)
            bounds.append(
                Bound(
                    min(
                        start_of_unmarked_term(of, self.facts, self.leaderships, logged.value),
                        of.log_end_offset,
                        same_until,
                    ),
                    f"below high watermark {logged.value}, with which {of.replica.owner} took up its role",
                    (logged.citation,),
                )
            )
        return bounds

    def _by_groups(self, view: LoadedLog) -> list[Bound]:
        bounds: list[Bound] = []
        if self.is_recreated:
            return bounds
        for commit in self.facts.commits(view.replica.topic_partition):
            if isinstance(commit.leader_epoch, Absent) or commit.offset > view.log_end_offset:
                continue
            # The commit carries the epoch of the last record read; it proves this log only where that record has that epoch here.
            if epoch_at(view.batch_epochs, commit.offset - 1) == commit.leader_epoch:
                reason = f"consumer group {commit.group} committed offset {commit.offset} in leader epoch {commit.leader_epoch}"
                bounds.append(Bound(commit.offset, reason, (commit.citation,)))
        return bounds

    def _by_sole_isr(self, view: LoadedLog) -> list[Bound]:
        """Return a leader that is its own whole ISR commits what it appends, where one in sync is enough; unless that is known nothing is proven."""
        if self.facts.needed_in_sync(view.replica.topic_partition.topic) != 1:
            return []
        broker = view.replica.broker_id
        bounds = []
        for state, following in zip_longest(self.leaderships, self.leaderships[1:]):
            if state.leader != broker or state.isr != frozenset({broker}):
                continue
            is_followed = following is not None and following.leader_epoch == state.leader_epoch
            if is_followed and following.isr != state.isr and not self._is_from_alone(view, state, following):
                continue
            end = self._end_of_term(view, state)
            if end is None:
                continue
            recorded = "" if isinstance(state.recorded_at, Absent) else f" from metadata offset {state.recorded_at}"
            bounds.append(
                Bound(
                    end,
                    f"the ISR was [{broker}] alone{recorded} in leader epoch {state.leader_epoch}",
                    (state.citation,),
                )
            )
        return bounds

    def _is_from_alone(self, view: LoadedLog, state: Leadership, following: Leadership) -> bool:
        """Whether the log was last written to while its broker was its own whole ISR, by the time of its file and the broker's lines, from the begin of the term on."""
        written = self.written_ms.get(id(view))
        times = state.time_ms, following.time_ms
        if written is None or not isinstance(times[0], int) or not isinstance(times[1], int):
            return False
        first = next(one for one in self.leaderships if one.leader_epoch == state.leader_epoch)
        is_by_lines = isinstance(state.recorded_at, Absent) and isinstance(following.recorded_at, Absent)
        is_within = times[0] - FILE_TIME_SLACK_MS <= written < times[1] - FILE_TIME_SLACK_MS
        return first is state and is_by_lines and is_within

    def _by_isr_copies(self, view: LoadedLog) -> list[Bound]:
        """Return what every member of the ISR that ended a leader's term holds was committed in that term."""
        by_broker = {other.replica.broker_id: other for other in self.views if other.replica.is_live}
        bounds = []
        for state, following in zip_longest(self.leaderships, self.leaderships[1:]):
            ends_term = following is None or following.leader_epoch != state.leader_epoch
            if not ends_term or state.leader != view.replica.broker_id or isinstance(state.isr, Absent):
                continue
            members = [by_broker.get(member) for member in sorted(state.isr) if member != state.leader]
            if not members or None in members:
                continue
            if not self._are_enough(state):
                continue
            # What a later term wrote says nothing of this one.
            later = (e.start_offset for e in view.batch_epochs if e.leader_epoch > state.leader_epoch)
            term_end = next(later, view.log_end_offset)
            reach = min(term_end, *(self.agree_until(view, member) for member in members if member is not None))
            names = ", ".join(str(member) for member in sorted(state.isr))
            reason = f"all of the ISR [{names}] of leader epoch {state.leader_epoch} hold it"
            bounds.append(Bound(reach, reason, (state.citation,)))
        return bounds

    def _by_isr_of_snapshots(self, view: LoadedLog) -> Iterator[Bound]:
        """Yield what every member of the ISR of an earlier snapshot held then, where no other broker joined in the rest of the term."""
        for moment in self.moments:
            known = [one for one in self.leaderships if isinstance(one.recorded_at, int)]
            before = [one for one in known if int(str(one.recorded_at)) < moment.metadata_end]
            state = before[-1] if before else None
            if state is None or not isinstance(state.leader, int) or not isinstance(state.isr, frozenset):
                continue
            rest = [one.isr for one in known[len(before) :] if one.leader_epoch == state.leader_epoch]
            held = {other.replica.broker_id: other for other in moment.views}
            is_whole = len(held) == len(moment.views)
            is_whole &= all(isinstance(isr, frozenset) and isr <= state.isr for isr in rest)
            # Where no later term is on record, a broker may have joined after the end of the metadata log.
            is_whole &= any(one.leader_epoch > state.leader_epoch for one in known[len(before) :])
            if not is_whole or not state.isr <= held.keys() or not self._are_enough(state):
                continue
            # Directories may have been copied earlier than the metadata log, too: other brokers were in sync then.
            if state.leader not in held or not _has_led(held[state.leader], state.leader_epoch):
                continue
            reach = min(
                view.log_end_offset if held[member] is view else self.agree_until(view, held[member])
                for member in state.isr
            )
            # Directories may have been copied later than the metadata log: who was in sync with a later leader is not known then.
            later = (entry.start_offset for entry in view.batch_epochs if entry.leader_epoch > state.leader_epoch)
            reach = min(reach, next(later, reach))
            names = ", ".join(map(str, sorted(state.isr)))
            reason = f"all of the ISR [{names}] of leader epoch {state.leader_epoch} held it in an earlier snapshot"
            yield Bound(offset=reach, reason=reason, citations=(state.citation,))

    def _by_terms_of_others(self, view: LoadedLog, offsets: OffsetRange) -> Iterator[Bound]:
        """Yield what is proven of the log of the leader that wrote the records is proven of every log that holds the same."""
        for other in self.views:
            if other is view or (until := self.agree_until(view, other)) <= offsets.first:
                continue
            for bound in (*self._by_sole_isr(other), *self._by_isr_copies(other)):
                yield bound._replace(offset=min(bound.offset, until))

    def _are_enough(self, state: Leadership) -> bool:
        """Whether those in sync could commit; where no setting is known, only all replicas together are enough for sure."""
        assert isinstance(state.isr, frozenset)
        needed = self.facts.needed_in_sync(self.views[0].replica.topic_partition.topic)
        if isinstance(needed, int):
            return len(state.isr) >= needed
        return isinstance(state.replicas, tuple) and state.isr >= frozenset(state.replicas)

    @staticmethod
    def _end_of_term(view: LoadedLog, state: Leadership) -> int | None:
        """Return where the leader's term that `state` belongs to ends in its log: epochs rise with every leader, ISR changes keep them."""
        claimed = view.replica.checkpoint_epochs
        entries = () if isinstance(claimed, Absent) else claimed
        if state.leader_epoch not in {entry.leader_epoch for entry in (*view.batch_epochs, *entries)}:
            return None
        began = next((entry.start_offset for entry in entries if entry.leader_epoch == state.leader_epoch), None)
        if began is not None and began < view.log_end_offset:
            there = epoch_at(view.batch_epochs, max(began, view.content_start_offset))
            if isinstance(there, int) and there < state.leader_epoch:
                # Segments that were put aside before that term, beside a checkpoint of now.
                return None
        return next(
            (e.start_offset for e in view.batch_epochs if e.leader_epoch > state.leader_epoch), view.log_end_offset
        )

    def _by_commit_markers(self, view: LoadedLog, offsets: OffsetRange) -> list[Bound]:
        rows = self.reader.batches(view.replica, offsets.first, offsets.last)
        rows = rows[(rows["attributes"] & TRANSACTIONAL_BIT) != 0]
        is_marker = (rows["attributes"] & CONTROL_BIT) != 0
        markers = rows[is_marker]
        written = _last_offsets_by_producer(rows[~is_marker])
        bounds: list[Bound] = []
        for marker in markers[::-1]:
            if bounds and int(marker["base_offset"]) <= max(bound.offset for bound in bounds):
                break
            ends = written.get(int(marker["producer_id"]), _NO_OFFSETS)
            before = int(np.searchsorted(ends, marker["base_offset"]))
            if not before or not self._is_commit(view, int(marker["base_offset"])):
                continue
            segment = view.replica.segments[int(marker["segment"])]
            citation = Citation(input=view.replica.input, path=segment.path)
            reason = f"before the commit marker of producer {marker['producer_id']} at offset {marker['base_offset']}"
            bounds.append(Bound(int(ends[before - 1]) + 1, reason, (citation,)))
        return bounds

    def _is_commit(self, view: LoadedLog, offset: int) -> bool:
        record = next(iter(self.reader.records(view.replica, offset, offset)), None)
        return record is not None and record.key is not None and record.key[2:4] == b"\x00\x01"

    def by_majority(self, view: LoadedLog) -> tuple[Bound | None, Bound | None]:
        """Return what voters prove of a log of the metadata quorum: a record that a majority holds is committed, and with all voters here no other is (KIP-595).

        Returns:
            The bound below which all is committed, and the one from which nothing is; each None without a proof.
        """
        newest = self.leaderships[-1] if self.leaderships else None
        if newest is None or isinstance(newest.replicas, Absent) or not newest.replicas:
            return None, None
        voters = frozenset(newest.replicas)
        # Of several copies of a voter's log the last one is that of now.
        here = list(
            {other.replica.broker_id: other for other in self.views if other.replica.broker_id in voters}.values()
        )
        reach = [view.log_end_offset if v is view else self.agree_until(view, v) for v in here]
        held = reached_by_majority(reach, len(voters))
        if held is None:
            return None, None
        is_whole = all(v is view or common_range(view, v) is not None for v in here)
        who = f"{majority(len(voters))} of the {len(voters)} voters"
        newest_epoch = max((v.batch_epochs[-1].leader_epoch for v in here if v.batch_epochs), default=-1)
        certain, never = None, None
        if epoch_at(view.batch_epochs, held - 1) == newest_epoch:
            # A leader commits what former ones wrote only with an entry of its own epoch (KIP-595, as Raft).
            certain = Bound(held, f"held by at least {who}", (newest.citation,))
        furthest = max(reach)
        beyond = epoch_at(view.batch_epochs, furthest) if furthest < view.log_end_offset else Absent.NOT_APPLICABLE
        # What no voter holds of that epoch, an observer fetched from its leader, whose directory was copied before or lost its end.
        is_later = view not in here and isinstance(beyond, int) and beyond >= newest_epoch
        # An emptied voter held what it voted for, and a leader's log that ends before another one of its epoch was copied earlier.
        is_of_now = all(v.batch_epochs for v in here) and not any(
            v.replica.broker_id == newest.leader
            and v.batch_epochs[-1].leader_epoch == newest_epoch
            and v.log_end_offset
            < max(o.log_end_offset for o in here if o.batch_epochs[-1].leader_epoch == newest_epoch)
            for v in here
        )
        if len(here) == len(voters) and is_whole and is_of_now and not is_later:
            # A log that begins behind this one's end was truncated at a snapshot, which holds committed records only.
            never = Bound(held, f"fewer than {who} hold it", (newest.citation,))
        return certain, never

    def never_from(self, view: LoadedLog, offsets: OffsetRange) -> Bound | None:
        """Return the offset from which nothing was committed: the end of a replica that was in the ISR, or eligible (KIP-966), and took over cleanly.

        Its log had to hold all that was committed before, and the start of its term says where its log ended then.

        Returns:
            The bound, or None without a proof.
        """
        first = epoch_at(view.batch_epochs, offsets.first)
        last = epoch_at(view.batch_epochs, offsets.last)
        if isinstance(first, Absent) or isinstance(last, Absent):
            return None
        return self.never_after(first, last, view.replica.broker_id)

    def never_after(
        self,
        first_epoch: int,
        last_epoch: int,
        holder: int | Absent,
        *,
        until: int | None = None,
        by_ms: int | Absent = Absent.UNKNOWN,
    ) -> Bound | None:
        """Return the records that a clean election proves not committed, by the leader epochs in which they were written.

        An election proves it only of records that the elected replica never had: it did not lead when they were written, its log was never shortened, and since
        then it has not restarted without joining the ISR again. Every leader in between must be on record.

        Args:
            holder: the broker whose log they are in; its own election proves nothing of them.
            until: the leader epoch up to which every election must be clean, where some of the records may be of later epochs than that of the last.
            by_ms: the UTC time until which the leaders must be on record; absent where a leader epoch says that they are.

        Returns:
            The offset from which on nothing of these epochs was committed, none where nothing proves it.
        """
        if self.facts.ends_before(by_ms):
            return None
        by_broker = {other.replica.broker_id: other for other in self.views if other.replica.is_live}
        terms = [state for state in self.leaderships if state.leader_epoch >= first_epoch]
        if not terms or terms[0].leader_epoch != first_epoch or not self._is_known_from(terms[0]):
            return None
        bounds = []
        led = {state.leader for state in terms if state.leader_epoch == first_epoch}
        came_back = self._led_on(terms)
        reached = terms[0].leader_epoch
        for at, (before, state) in enumerate(pairwise(terms), start=1):
            if state.leader_epoch > before.leader_epoch + 1 or state.unclean:
                # What was committed until then may be missing from every later leader.
                break
            leader, is_new = state.leader, state.leader_epoch != before.leader_epoch
            if is_new and before.leader_epoch in came_back:
                # Its leader had come back during that term, perhaps without what was committed.
                break
            if not is_new or not isinstance(leader, int):
                continue
            was_leader = leader in led
            led.add(leader)
            # The last ISR that lines name is not always the one at the election.
            is_in_sync = (
                state.is_next(before) and isinstance(before.isr, frozenset) and leader in before.isr | before.eligible
            )
            if not is_in_sync or leader in self.weakened or not self._is_whole(leader, terms[: at + 1]):
                # It may have lost what was committed until then, and every later leader follows it.
                break
            reached = state.leader_epoch
            successor = by_broker.get(leader)
            if state.leader_epoch <= last_epoch or was_leader or leader == holder or successor is None:
                continue
            if state.leader_epoch in came_back:
                # Its epoch may begin where its log ended when it came back, not where it ended at the election.
                continue
            start = next((e.start_offset for e in successor.epochs if e.leader_epoch == state.leader_epoch), None)
            if start is None:
                continue
            standing = (
                "in the ISR" if isinstance(before.isr, frozenset) and leader in before.isr else "eligible to lead"
            )
            reason = f"broker {leader} was {standing} and its log ended at {start} when it took over in leader epoch {state.leader_epoch}"
            bounds.append(Bound(start, reason, (state.citation,)))
        bound = min(bounds, key=lambda bound: bound.offset, default=None)
        if until is not None and reached < until:
            return None
        if bound is None or any(self._may_commit(state, bound.offset, by_broker) for state in terms if state.unclean):
            return None
        return bound

    def _led_on(self, terms: Sequence[Leadership]) -> frozenset[int]:
        """Return the leader epochs in which a leader came back and led on, and may have lost the end of its log."""
        partition = self.views[0].replica.topic_partition
        brokers = {state.leader for state in terms if isinstance(state.leader, int)}
        restarts = {broker: self.facts.restarts(broker) for broker in brokers}
        loads = {broker: self.facts.loads(broker, partition) for broker in brokers}
        return frozenset(one.state.leader_epoch for one in led_on(terms, restarts, loads))

    @staticmethod
    def _may_commit(state: Leadership, offset: int, by_broker: Mapping[int | Absent, LoadedLog]) -> bool:
        """Whether a leader that was elected uncleanly may have held records from an offset on: with those in sync with it, it committed what it held."""
        log = by_broker.get(state.leader)
        start = (
            next((e.start_offset for e in log.epochs if e.leader_epoch == state.leader_epoch), None) if log else None
        )
        return isinstance(state.leader, int) and (start is None or start > offset)

    def _is_known_from(self, state: Leadership) -> bool:
        """Whether the account misses nothing from this state on: the metadata log is whole, or the leader's own lines reach back before it."""
        if isinstance(state.recorded_at, int):
            return not self.facts.metadata_gaps()
        if not isinstance(state.leader, int) or not isinstance(state.time_ms, int):
            return False
        return self.facts.is_unbroken(state.leader, state.time_ms, state.time_ms)

    def _is_whole(self, broker: int, terms: Sequence[Leadership]) -> bool:
        """Whether the elected broker's log still held what it had confirmed: every restart since was followed by joining the ISR again."""
        if not isinstance(terms[0].recorded_at, int):
            since, end = terms[0].time_ms, terms[-1].time_ms
            if not isinstance(since, int) or not isinstance(end, int):
                return False
            if not self.facts.is_unbroken(broker, since, since):
                return False
            # What is behind the last line of a broker may be a start, or a change of the ISR by the leader.
            behind = {state.leader for state in terms} | {broker}
            if behind & self.facts.logs_without_newest().keys():
                return False
            # Only the leader's own log lines report every change of the ISR.
            if any(
                isinstance(state.leader, int) and state.leader not in self.facts.first_line_times() for state in terms
            ):
                return False
        return not any(unproven_after(restart, terms, broker) for restart in self.facts.restarts(broker))


def _has_led(view: LoadedLog, leader_epoch: int) -> bool:
    """Whether a leader had begun its term when its log was copied: it writes the epoch to leader-epoch-checkpoint before anything else (KIP-101)."""
    claimed = view.replica.checkpoint_epochs
    entries = view.batch_epochs if isinstance(claimed, Absent) else (*claimed, *view.batch_epochs)
    return any(entry.leader_epoch == leader_epoch for entry in entries)


def _last_offsets_by_producer(data: NDArray[np.void]) -> dict[int, NDArray[np.int64]]:
    if not len(data):
        return {}
    data = data[np.lexsort((data["last_offset"], data["producer_id"]))]
    producers, firsts = first_of_each(data["producer_id"])
    return dict(zip(producers.tolist(), np.split(data["last_offset"], firsts[1:]), strict=True))
