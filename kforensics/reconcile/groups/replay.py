"""A partition of `__consumer_offsets` played in log order: each commit that took effect, what it replaced, and who made it.

A commit inside a transaction takes effect with the transaction's COMMIT marker, unless a later record of the same key did before
(`GroupMetadata.completePendingTxnOffsetCommit`, KIP-98, KIP-447). A tombstone removes the position.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import (
    Commit,
    CommitKey,
    CommitRun,
    GroupChange,
    GroupEvent,
    Name,
    Place,
    TransactionEnd,
)
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Citation
from kforensics.formats.log.batch_table import NO_PRODUCER
from kforensics.reconcile.groups.state import GroupState, GroupType, changed
from kforensics.reconcile.history.log_starts import LogStart
from kforensics.words import counted, utc_words

By = Literal["member", "administrator", "expiry", "deletion", "truncation", "unknown"]
Confidence = Literal["proven", "likely", "possible"]

MINUTE_MS = 60_000

SHORTEST_RETENTION_MS = MINUTE_MS
"""`offsets.retention.minutes` is at least 1."""

DEFAULT_RETENTIONS_MS = (1_440 * MINUTE_MS, 10_080 * MINUTE_MS)
"""The defaults of `offsets.retention.minutes` before 2.0 and since."""

CHECK_INTERVAL_MS = 10 * MINUTE_MS
"""The default of `offsets.retention.check.interval.ms`: expired offsets are removed so much later at most."""

MOST_UNEXPLAINED = 10_000

TOPIC_DELETED = "the topic was deleted"


def infer_retention(unexplained: Sequence[tuple[Name, int]]) -> int | None:
    """Return what `offsets.retention.minutes` must be, where the removals of several groups came within a tenth of the same whole minutes after they were left.

    Args:
        unexplained: groups, and the milliseconds after which a position of theirs was removed.

    Returns:
        Milliseconds; none where fewer than two groups agree, or one disagrees.
    """
    shortest: dict[Name, int] = {}
    for group, elapsed in unexplained:
        shortest[group] = min(elapsed, shortest.get(group, elapsed))
    minutes = {elapsed // MINUTE_MS for elapsed in shortest.values()}
    if len(shortest) < 2 or len(minutes) != 1:
        return None
    retention = minutes.pop() * MINUTE_MS
    return (
        retention
        if all(elapsed - retention <= max(retention, MINUTE_MS) // 10 for elapsed in shortest.values())
        else None
    )


class Position(NamedTuple):
    """A committed offset that is in force."""

    offset: int
    committed_ms: int
    expire_ms: int
    leader_epoch: int
    """That of the last consumed record, -1 where the client did not send it."""
    at: Place
    place: PartitionPlace
    expires_with_members: bool = False
    by: By = "unknown"
    """Who committed it."""
    by_hand_in: int | None = None
    """The generation of its group, whose members had left it: none of them committed it. None where it had members, or never had any."""


class Former(NamedTuple):
    """A committed offset that was in force, and what removed it."""

    offset: int
    removed_by: "By"
    at_offset: int
    """Of its record."""
    removal: "Change"


class Change(NamedTuple):
    """A change of a position that took effect."""

    key: CommitKey
    offset: int | None
    """None where the position was removed."""
    previous: int | None
    """None where there was none."""
    time_ms: int
    """When it took effect."""
    by: By
    confidence: Confidence
    reason: str
    citations: tuple[Citation, ...]
    had_members: bool
    """The group had members before, as far as the log shows."""
    is_transactional: bool = False
    is_share: bool = False
    """It is the start offset of a share group."""
    removed_by: By | None = None
    """What had removed the previous position, where it was not in force any more."""
    is_lost: bool = False
    """The position is gone, and no tombstone removed it."""
    recreated: str = ""
    """How the group itself began anew since the previous position, in words; empty where no record says that it did."""
    caught_up_ms: int | None = None
    """Of a set-back behind which the position stands no more: when it was committed that is in force; None where it is still behind."""
    by_hand_in: int | None = None
    """As that of a position."""
    log_start: int | None = None
    """Of a move ahead: where the log began by then, above the previous position. That the group had not read up to there is proven, likely, or no more than possible."""
    is_put_back: bool = False
    """The group had no member from the set-back on until the position was set by hand to where it had been: none of it was read again by one."""

    @property
    def set_back(self) -> int:
        """By how many offsets the position moved back; all of them where it is lost."""
        if self.previous is None or (self.offset is None and not self.is_lost):
            return 0
        if self.offset is None:
            return self.previous
        return max(self.previous - self.offset, 0)

    @property
    def past(self) -> int:
        """How many offsets the position moved ahead."""
        return 0 if self.previous is None or self.offset is None else max(self.offset - self.previous, 0)


def with_return(change: Change, position: Position | None, of_key: Iterable[Change] = ()) -> Change:
    """Return a set-back with the time by which the group was again where it had been, where it was.

    Args:
        of_key: the set-backs of the same position: a later one that began at or above it shows that the group had caught up.
    """
    if change.previous is None:
        return change
    again = [(one.time_ms, one.previous) for one in of_key if one is not change and one.time_ms > change.time_ms]
    if position is not None:
        again.append((position.committed_ms, position.offset))
    back = [time for time, offset in again if offset is not None and offset >= change.previous]
    if not back:
        return change
    is_put_back = position is not None and change.by_hand_in is not None and position.by_hand_in == change.by_hand_in
    return change._replace(caught_up_ms=min(back), is_put_back=is_put_back)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detour:
    """Records that a copy holds and the log does not any more: a truncation took them."""

    from_offset: int
    """The first offset that differs."""
    place: PartitionPlace
    """The directory that holds them."""
    is_deleted: bool
    leader_epoch: int
    """The highest leader epoch of the records that were lost."""
    elected_in: int | None = None
    """The leader epoch of the unclean election that discarded them, where no later record replaced them."""
    discarded_ms: int = -1
    """The time of that election, or of the first record that replaced them; -1 where it is not known."""
    is_unexplained: bool = False
    """An earlier copy holds them, and neither a later leader epoch nor an election shows what became of them."""
    exchanged: int | None = None
    """The broker whose log lacks them and that came back with another disk, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The times after which the coordinator lets committed offsets expire."""

    retention_ms: int | None
    """`offsets.retention.minutes` by the configuration among the inputs; None where none says it."""
    inferred_ms: int | None = None
    """What the removals of several groups have in common, where no configuration says it."""
    removed_topics: Callable[[Name, int, int], bool]
    """Whether the metadata log records that a topic was deleted after a time, and shortly before a second one."""
    expired_by_line: Callable[[int], Citation | None] = lambda _time_ms: None
    """The line of a coordinator that says that it removed expired offsets at a time."""


@dataclass(slots=True)
class Replay:
    """The positions and groups of one partition while its log is played.

    Args:
        place: the replica that speaks for the partition.
        known_from: the offset from which the absence of a record about a group shows that there is no such group; None where nothing shows it.
        until_ms: what took effect later is left out.
    """

    place: PartitionPlace
    known_from: int | None
    retention: Retention
    until_ms: int | None = None
    positions: dict[CommitKey, Position] = field(default_factory=dict)
    groups: dict[Name, GroupState] = field(default_factory=dict)
    pending: dict[int, dict[CommitKey, Commit]] = field(default_factory=dict)
    last_epoch: int = -1
    unexplained: list[tuple[Name, int]] = field(default_factory=list)
    """Groups whose position was removed by expiry or deletion, no input shows which, and after how many milliseconds; some of them."""
    former: dict[CommitKey, Former] = field(default_factory=dict)
    """The last positions of keys that have none any more."""
    lost: dict[CommitKey, Change] = field(default_factory=dict)
    """The positions that a truncation, or something unknown, took without leaving an earlier one."""
    begun_anew: dict[Name, tuple[int, str, tuple[Citation, ...], bool]] = field(default_factory=dict)
    """Groups that were removed, or whose generation went back: at which offset, how in words, the records that say it, and whether a record removed them."""
    ahead: dict[CommitKey, Change] = field(default_factory=dict)
    """The last move of a position past offsets of which nothing shows that the group read them: by hand, or after its position was gone."""
    start_of: Callable[[CommitKey], LogStart | None] = lambda _key: None
    """Where the log begins that a position is of; none where it is not known."""
    returned: dict[Name, tuple[int, int]] = field(default_factory=dict)
    """Where, and when, a group last had members again after it had none: they go on from its positions."""
    _saved: dict[CommitKey, Position | None] | None = None
    """While records of a detour are played: the positions before them."""

    def play(
        self,
        events: Iterable[GroupEvent],
        detours: Sequence[Detour] = (),
        read: Callable[[Detour], Iterable[GroupEvent]] | None = None,
    ) -> Iterator[Change]:
        """Play records, and what truncations took before those that replaced it."""
        left = list(detours)
        for event in events:
            while left and read is not None and event.at.offset >= left[0].from_offset:
                yield from self._detour(left.pop(0), read, event.at)
            if self.until_ms is not None and event.at.time_ms > self.until_ms:
                continue
            yield from self._take(event, self.place)
        for detour in left:
            assert read is not None
            yield from self._detour(detour, read, None)

    def settle(
        self,
        parts: Iterable[CommitRun | GroupEvent],
        detours: Sequence[Detour] = (),
        read: Callable[[Detour], Iterable[GroupEvent]] | None = None,
    ) -> Iterator[Change]:
        """Play records for the positions at the end, and give only changes that set a position back."""
        left = list(detours)
        for part in parts:
            at = part.last if isinstance(part, CommitRun) else part.at
            if left and read is not None and at.offset >= left[0].from_offset:
                # Close to a truncation every commit counts.
                events = part.decode(range(len(part.ids))) if isinstance(part, CommitRun) else iter((part,))
                for event in events:
                    while left and event.at.offset >= left[0].from_offset:
                        yield from _only_setbacks(self._detour(left.pop(0), read, event.at))
                    yield from _only_setbacks(self._take(event, self.place))
            elif isinstance(part, CommitRun):
                yield from self._settle_run(part)
            else:
                yield from _only_setbacks(self._take(part, self.place))
        for detour in left:
            assert read is not None
            yield from _only_setbacks(self._detour(detour, read, None))
        yield from (change for key, change in self.lost.items() if key not in self.positions)

    def _settle_run(self, run: CommitRun) -> Iterator[Change]:
        # Numbers of 16 bits are sorted in one pass.
        numbers = run.ids.astype(np.uint16) if len(run.keys) <= 1 << 16 else run.ids
        order = np.argsort(numbers, kind="stable")
        ids, offsets = run.ids[order], run.offsets[order]
        is_first = np.concatenate(([True], ids[1:] != ids[:-1]))
        falls = np.concatenate(([False], offsets[1:] < offsets[:-1])) & ~is_first
        starts = np.flatnonzero(is_first)
        ends = [*starts[1:].tolist(), len(ids)]
        has_falls = np.logical_or.reduceat(falls, starts).tolist()
        first_offsets, rows = offsets[starts].tolist(), order.tolist()
        for start, end, first, fell, number in zip(
            starts.tolist(), ends, first_offsets, has_falls, ids[starts].tolist(), strict=True
        ):
            key = run.keys[number]
            known = self.positions.get(key) or self.former.pop(key, None)
            if known is not None and first < known.offset:
                if isinstance(known, Former):
                    self.former[key] = known
                yield from _only_setbacks(self._take(next(run.decode([rows[start]])), self.place))
            # Of several commits without a member a consumer makes them, which reads.
            elif known is not None and first > known.offset:
                begins = None if isinstance(known, Former) else self.start_of(key)
                is_passed = begins is not None and known.offset < begins.offset
                if isinstance(known, Former) or end - start == 1 or is_passed:
                    self._go_ahead(next(run.decode([rows[start]])), known)
            if fell:
                for at in (np.flatnonzero(falls[start:end]) + start).tolist():
                    before, after = run.decode(rows[at - 1 : at + 1])
                    self._put(before, self._author(before)[0], self.place)
                    yield from _only_setbacks(self._take(after, self.place))
            if end - start > 1 and not self._is_left(key.group):
                self._pass_in(run, rows[start:end], offsets[start:end], key)
        for commit in run.decode(sorted(rows[end - 1] for end in ends)):
            self._put(commit, self._author(commit)[0], self.place)
        self.last_epoch = max(self.last_epoch, run.last.leader_epoch)

    def _pass_in(self, run: CommitRun, rows: Sequence[int], offsets: NDArray[np.int64], key: CommitKey) -> None:
        """Note the moves past a log start among the commits of a position in a run, behind its last set-back."""
        begins = self.start_of(key)
        if begins is None or int(offsets.min()) >= begins.offset:
            return
        steps = np.diff(np.searchsorted(begins.marks, offsets, "right"))
        last_fall = int(max(np.flatnonzero(np.diff(offsets) < 0), default=-1))
        for at in np.flatnonzero(steps > 0).tolist():
            if at > last_fall:
                before, after = run.decode(rows[at : at + 2])
                self._pass(after, int(offsets[at]), before.committed_ms, before.at.offset)

    def _pass(self, commit: Commit, offset: int, committed_ms: int, at_offset: int) -> None:
        """Note a commit of a group whose position before the log start had passed, or may have: its offset, its time and where its record is."""
        begins = self.start_of(commit.key)
        if begins is None or offset >= begins.offset:
            return
        assert commit.offset is not None
        returned_at, returned_ms = self.returned.get(commit.key.group, (-1, -1))
        confidence: Confidence = "proven" if returned_at > at_offset else "likely"
        start = begins.by(returned_ms if returned_at > at_offset else committed_ms, offset)
        if isinstance(start, Absent):
            # Every group has passed the log start of now once: only a gap in its membership makes that doubtful.
            if returned_at <= at_offset or commit.offset < begins.offset:
                return
            start, confidence = begins.offset, "possible"
        elif start == offset:
            later = begins.by(commit.at.time_ms, offset)
            if later == offset:
                return
            start, confidence = (later if isinstance(later, int) else begins.offset), "possible"
        if confidence != "possible" or commit.key not in self.ahead:
            self._note_ahead(commit, offset, start, confidence=confidence)

    def _put(self, commit: Commit, by: By, place: PartitionPlace) -> None:
        assert commit.offset is not None
        self.positions[commit.key] = Position(
            commit.offset,
            commit.committed_ms,
            commit.expire_ms,
            commit.leader_epoch,
            commit.at,
            place,
            commit.expires_with_members,
            by,
            self._by_hand_in(commit),
        )

    def _is_left(self, name: Name) -> bool:
        """Whether the group had members, and all of them have left it."""
        group = self.groups.get(name)
        # Of a group that never had members the commits are those of consumers without a membership, who read.
        return group is not None and group.had_members and not group.member_count

    def _go_ahead(self, commit: Commit, before: Position | Former) -> None:
        """Note a commit behind what was committed before; what members commit one behind the other they read."""
        assert commit.offset is not None
        if isinstance(before, Former):
            # A consumer without a membership goes on from where it is, whatever became of its position.
            is_seen = before.removed_by in {"deletion", "expiry"} or self._author(commit)[0] == "member"
            if before.removal.reason == TOPIC_DELETED or not is_seen:
                return
        elif not self._is_left(commit.key.group) or commit.producer_id != NO_PRODUCER:
            self._pass(commit, before.offset, before.committed_ms, before.at.offset)
            return
        elif before.by_hand_in == self._by_hand_in(commit):
            # A consumer without a membership commits again and again what it read.
            self.ahead.pop(commit.key, None)
            return
        begins = self.start_of(commit.key)
        returned_at, returned_ms = self.returned.get(commit.key.group, (-1, -1))
        is_back = isinstance(before, Former) and returned_at > before.at_offset
        start = None if begins is None else begins.by(returned_ms if is_back else commit.at.time_ms, before.offset)
        self._note_ahead(
            commit,
            before.offset,
            start if isinstance(start, int) and start > before.offset else None,
            by=self._author(commit)[0],
            removed_by=before.removed_by if isinstance(before, Former) else None,
            confidence="proven" if is_back else "likely",
        )

    def _note_ahead(
        self,
        commit: Commit,
        offset: int,
        log_start: int | None,
        *,
        by: By = "member",
        removed_by: By | None = None,
        confidence: Confidence = "likely",
    ) -> None:
        """Note a move ahead of an offset, and what had deleted the records up to the log start of then."""
        begins = None if log_start is None else self.start_of(commit.key)
        removal = None if begins is None else begins.removal(offset)
        assert commit.offset is not None
        self.ahead[commit.key] = Change(
            key=commit.key,
            offset=commit.offset,
            previous=offset,
            time_ms=commit.at.time_ms,
            by=by,
            confidence=confidence,
            reason="" if removal is None else removal.sentence,
            citations=(commit.at.cite(self.place), *(() if removal is None else removal.citations)),
            had_members=True,
            removed_by=removed_by,
            log_start=None if log_start is None else min(log_start, commit.offset),
        )

    def _take(self, event: GroupEvent, place: PartitionPlace) -> Iterator[Change]:
        moved = 0 <= self.last_epoch < event.at.leader_epoch
        self.last_epoch = max(self.last_epoch, event.at.leader_epoch)
        match event:
            case Commit() if event.producer_id != NO_PRODUCER:
                self.pending.setdefault(event.producer_id, {})[event.key] = event
            case Commit():
                change = self._apply(event, event.at, place, moved=moved)
                if change is not None:
                    yield change
            case TransactionEnd():
                pending = self.pending.pop(event.producer_id, {})
                for commit in pending.values() if event.is_commit else ():
                    known = self.positions.get(commit.key)
                    if known is None or known.at.offset < commit.at.offset:
                        change = self._apply(commit, event.at, place, moved=moved)
                        if change is not None:
                            yield change
            case GroupChange():
                self._change(event, place)

    def _change(self, event: GroupChange, place: PartitionPlace) -> None:
        """Take a record about a group, and note where the group began anew."""
        group = self.groups.get(event.group)
        was_there, generation = group is not None, -1 if group is None else group.generation
        had_none = group is None or not group.member_count
        after = changed(group, event)
        words = ""
        if after is None:
            self.groups.pop(event.group, None)
            if was_there:
                words = f"the group itself was removed at {utc_words(event.at.time_ms)}, and created again since"
        else:
            self.groups[event.group] = after
            if had_none and after.member_count:
                self.returned[event.group] = event.at.offset, event.at.time_ms
            if 0 <= after.generation < generation:
                words = (
                    f"the generation of the group went back from {generation:,} to {after.generation:,} at {utc_words(event.at.time_ms)},"
                    " and no record removed it: it was created again, or its coordinator went on from an older state"
                )
        if words:
            self.begun_anew[event.group] = event.at.offset, words, (event.at.cite(place),), after is None

    def _apply(self, commit: Commit, at: Place, place: PartitionPlace, *, moved: bool) -> Change | None:
        known = self.positions.get(commit.key)
        if self._saved is not None:
            self._saved.setdefault(commit.key, known)
        line: Citation | None = None
        if commit.offset is None:
            if known is None:
                return None
            del self.positions[commit.key]
            by, confidence, reason = self._remover(commit.key, known, at)
            # Up to 2.0 coordinators log the same of what is deleted: what is proven stays.
            line = None if confidence == "proven" else self.retention.expired_by_line(at.time_ms)
            if line is not None:
                by, confidence = "expiry", "likely"
                reason = "its coordinator logged then that it removed expired offsets"
            former = None
        else:
            by, confidence, reason = self._author(commit)
            self._put(commit, by, place)
            former = self.former.pop(commit.key, None)
            earlier = known or former
            if earlier is not None and commit.offset > earlier.offset:
                self._go_ahead(commit, earlier)
        before: Position | Former | None = known
        if before is None and former is not None and former.removal.reason != TOPIC_DELETED:
            before = former if commit.offset is not None and commit.offset < former.offset else None
        moved_back = commit.offset is not None and before is not None and commit.offset < before.offset
        if moved_back or commit.offset is None:
            self.ahead.pop(commit.key, None)
        removed_by = before.removed_by if isinstance(before, Former) else None
        if removed_by is not None:
            reason += f"; its position before was gone, by {removed_by}"
        began, recreated, cited_anew, is_removal = self.begun_anew.get(commit.key.group, (-1, "", (), False))
        since = known.at.offset if known is not None else before.at_offset if isinstance(before, Former) else began
        # A group that is deleted loses its positions: where one is in force it went on in another protocol.
        if not moved_back or began <= since or (known is not None and is_removal):
            recreated, cited_anew = "", ()
        if recreated:
            reason += f"; {recreated}"
        if moved and moved_back:
            reason += f"; the coordinator had moved, to leader epoch {at.leader_epoch}"
        cited = (commit.at.cite(place),) if at is commit.at else (commit.at.cite(place), at.cite(place))
        group = self.groups.get(commit.key.group)
        change = Change(
            key=commit.key,
            offset=commit.offset,
            previous=None if before is None else before.offset,
            time_ms=at.time_ms,
            by=by,
            confidence=confidence,
            reason=reason,
            citations=(*cited, *cited_anew) if line is None else (*cited, *cited_anew, line),
            had_members=group is not None and group.had_members,
            is_transactional=commit.producer_id != NO_PRODUCER,
            removed_by=removed_by,
            recreated=recreated,
            by_hand_in=self._by_hand_in(commit),
        )
        if commit.offset is None and known is not None:
            self.former[commit.key] = Former(known.offset, by, known.at.offset, change)
        return change

    def _by_hand_in(self, commit: Commit) -> int | None:
        is_by_hand = self._is_left(commit.key.group) and commit.producer_id == NO_PRODUCER
        return self.groups[commit.key.group].generation if is_by_hand else None

    def _is_empty(self, name: Name, at: Place) -> bool | None:
        group = self.groups.get(name)
        if group is not None:
            return not group.member_count
        if self.known_from is None or at.offset < self.known_from:
            return None
        return True

    def _author(self, commit: Commit) -> tuple[By, Confidence, str]:
        if commit.producer_id != NO_PRODUCER:
            words = f"in a transaction of producer {commit.producer_id}, as no administrator commits"
            return "member", "possible", words
        empty = self._is_empty(commit.key.group, commit.at)
        if empty is None:
            return "unknown", "possible", "the records that tell whether the group had members were removed"
        if not empty:
            return "member", "possible", "the group had members; the record names none"
        group = self.groups.get(commit.key.group)
        if group is not None and group.had_members:
            return "administrator", "proven", "the group was empty: a reset, or a consumer without a membership"
        return "administrator", "proven", "the group had no members: a reset, or a consumer without a membership"

    def _remover(self, key: CommitKey, known: Position, at: Place) -> tuple[By, Confidence, str]:
        if self.retention.removed_topics(key.topic, known.committed_ms, at.time_ms):
            return "deletion", "proven", TOPIC_DELETED
        group = self.groups.get(key.group)
        since = known.committed_ms
        if group is not None and group.type is GroupType.CLASSIC and group.protocol_type:
            since = max(since, group.emptied_ms)
        elapsed = at.time_ms - since
        has_members = group is not None and bool(group.member_count)
        retention = self.retention.retention_ms
        if known.expire_ms >= 0:
            if at.time_ms >= known.expire_ms:
                return "expiry", "proven", "the expiry time of the commit had passed"
            return "deletion", "proven", "before the expiry time of the commit"
        if known.expires_with_members:
            # With an older inter.broker.protocol.version brokers from 2.1 on let them expire as soon as they have loaded them (KAFKA-8069).
            return "unknown", "possible", "expired or deleted: offsets of value version 0 or 1 may expire at any time"
        if elapsed < SHORTEST_RETENTION_MS:
            return "deletion", "proven", "within the shortest offsets.retention.minutes that there is"
        if retention is not None:
            if elapsed < retention:
                return "deletion", "proven", f"before offsets.retention.minutes ({retention // 60_000}) had passed"
            return "expiry", "likely", f"offsets.retention.minutes ({retention // 60_000}) had passed"
        if has_members:
            return "deletion", "likely", "the group had members: its offsets expire only for topics that it left"
        if any(0 <= elapsed - default <= CHECK_INTERVAL_MS + MINUTE_MS for default in DEFAULT_RETENTIONS_MS):
            return "expiry", "likely", "the default of offsets.retention.minutes had just passed"
        if self.retention.inferred_ms is not None and elapsed >= self.retention.inferred_ms:
            minutes = self.retention.inferred_ms // MINUTE_MS
            words = f"the positions of several groups were removed {counted(minutes, 'minute')} after they were left"
            return "expiry", "possible", words
        if len(self.unexplained) < MOST_UNEXPLAINED:
            self.unexplained.append((key.group, elapsed))
        return "unknown", "possible", "expired or deleted: no input shows offsets.retention.minutes"

    def _detour(
        self, detour: Detour, read: Callable[[Detour], Iterable[GroupEvent]], replaced_by: Place | None
    ) -> Iterator[Change]:
        """Play records that a truncation took, then go back to what was before them."""
        pending = {producer: dict(commits) for producer, commits in self.pending.items()}
        epoch, newest_ms, former, ahead = self.last_epoch, -1, dict(self.former), dict(self.ahead)
        self._saved, saved_groups = {}, {}
        for event in read(detour):
            if self.until_ms is not None and event.at.time_ms > self.until_ms:
                continue
            newest_ms = max(newest_ms, event.at.time_ms)
            if isinstance(event, GroupChange) and event.group not in saved_groups:
                group = self.groups.get(event.group)
                saved_groups[event.group] = None if group is None else group.copied()
            yield from self._take(event, detour.place)
        saved, self._saved = self._saved, None
        self.former, self.ahead = former, ahead
        when = max(newest_ms, detour.discarded_ms) if replaced_by is None else replaced_by.time_ms
        if self.until_ms is not None and when > self.until_ms:
            return  # at that time the truncation was still to come
        for key, before in saved.items():
            yield from self._undo(key, before, detour, when)
        for name, group in saved_groups.items():
            if group is None:
                self.groups.pop(name, None)
            else:
                self.groups[name] = group
        self.pending, self.last_epoch = pending, epoch

    def _undo(self, key: CommitKey, before: Position | None, detour: Detour, when: int) -> Iterator[Change]:
        lost = self.positions.pop(key, None)
        if before is not None:
            self.positions[key] = before
        if (None if lost is None else lost.offset) == (None if before is None else before.offset):
            return
        place = detour.place.topic_partition
        reason = f"a truncation of {place} at offset {detour.from_offset} took the commits behind it"
        if detour.elected_in is not None:
            reason = f"the unclean election in leader epoch {detour.elected_in} discarded the commits of {place} from offset {detour.from_offset} on"
        if detour.is_unexplained:
            reason = f"an earlier copy of {place} holds the commit, and the log of now does not go on from it; no tombstone, leader epoch or election says why"
        is_likely = detour.elected_in is not None or detour.exchanged is not None
        if detour.exchanged is not None:
            reason = f"broker {detour.exchanged} came back with another or an emptied disk, as the leader of {place}"
        is_open = detour.is_unexplained and not is_likely
        change = Change(
            key=key,
            offset=None if before is None else before.offset,
            previous=None if lost is None else lost.offset,
            time_ms=when,
            by="unknown" if is_open else "truncation",
            confidence="possible" if is_open else "likely" if is_likely else "proven",
            reason=reason,
            citations=() if lost is None else (lost.at.cite(lost.place),),
            had_members=False,
            is_lost=before is None,
        )
        if before is None and lost is not None:
            self.former[key] = Former(lost.offset, change.by, lost.at.offset, change)
            self.lost[key] = change
        yield change


def _only_setbacks(changes: Iterable[Change]) -> Iterator[Change]:
    return (change for change in changes if change.set_back and not change.is_lost)
