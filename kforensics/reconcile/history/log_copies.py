"""Every copy of a partition's log that any input holds: as it is now, as it was in earlier snapshots, and what renamed files still keep."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, CheckpointValue, Replica
from kforensics.protocol.epochs import epoch_at
from kforensics.reconcile.committed.proofs import FILE_TIME_SLACK_MS
from kforensics.reconcile.logs.divergence import Divergence, agreed_until, common_range, first_divergence
from kforensics.reconcile.logs.loaded_log import LoadedLog, load_beside, load_log, log_as_it_lies
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation
from kforensics.reconcile.replicas.leader import choose_leader
from kforensics.units import METADATA_TOPICS, EpochEntry, OffsetRange

MOST_OFFSETS_COMPARED = 100_000
"""Offsets from the first common one in which a batch that is shared is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogCopy:
    """One log of one replica at one moment."""

    view: LoadedLog
    rank: int
    """Snapshots count up with time; copies of one moment have the same rank, the newest the highest."""
    is_final: bool
    """Whether it is the log as it is now, not out of an earlier snapshot."""
    is_remnant: bool = False
    """Whether no broker will serve it: it has only segments that were renamed for deletion, or `is_unstarted`."""
    is_unstarted: bool = False
    """Whether it is a log as it lies before the start of its broker, which discards sound batches of it."""
    has_times: bool = True
    """The times of its files are those of writing; a plain copy has the time of the copying."""

    is_outdated: bool = False
    """Whether lines show that its broker truncated the log since the directory was copied, though it is the newest one given."""

    @property
    def broker_id(self) -> int | Absent:
        """The node that holds or held it."""
        return self.view.replica.broker_id

    @property
    def is_live(self) -> bool:
        """Whether it is, or was then, the log of a replica: no remnant, and in no directory that is set aside."""
        return not self.is_remnant and self.view.replica.is_live

    @property
    def is_in_use(self) -> bool:
        """Whether a broker that starts serves it as a replica, which may lead then."""
        return self.is_final and self.is_live

    @property
    def taken_ms(self) -> int | Absent:
        """The time at which its newest segment was last written, in UTC; the log was so no earlier."""
        newest = max((segment.mtime_ns for segment in self.view.replica.segments), default=0)
        return newest // 1_000_000 if newest and self.has_times else Absent.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCopies:
    """The copies of one incarnation of a partition, and those of others that had its name."""

    copies: tuple[LogCopy, ...]
    others: tuple[LogCopy, ...]
    """The logs of other topics that had the name, by their ids."""
    topic_id: str | Absent
    unread: tuple[LogCopy, ...] = ()
    """Copies that could not be read, or whose log is not here: what they hold, and where they end, is unknown."""
    deleted: tuple[LoadedLog, ...] = ()
    """Directories without a topic id that wait for their deletion: of this topic, or of an earlier one of the name."""

    @property
    def other_topics(self) -> tuple[Replica, ...]:
        """The directories of other topics that had the name."""
        return tuple(copy.view.replica for copy in self.others)

    def with_alike(self, leader: LogCopy, agreement: "Agreement") -> "LogCopies":
        """Return the same, with the logs of other ids that share batches with the leader's among its copies: the topic was given another id, and no broker serves them (KAFKA-14190)."""
        alike = [copy for copy in self.others if agreement.share_batches(copy.view, leader.view)]
        others = tuple(copy for copy in self.others if copy not in alike)
        return replace(self, copies=(*self.copies, *(replace(copy, is_remnant=True) for copy in alike)), others=others)

    @property
    def live(self) -> tuple[LogCopy, ...]:
        """Logs of replicas in use now; of a partition that is only being moved here, those that are to be used."""
        now = [copy for copy in self.copies if copy.is_final and not copy.is_remnant]
        live = tuple(copy for copy in now if copy.view.replica.is_live)
        return live or tuple(copy for copy in now if copy.view.replica.state == "future")


def copies_of(
    final: Sequence[Replica], before: Sequence[tuple[int, Replica]], *, topic_id: str | Absent, final_rank: int
) -> LogCopies:
    """Group the replicas of one name and partition by incarnation of the topic."""
    everything = [*((final_rank, replica) for replica in final), *before]
    current = _current_id(final, topic_id)
    copies: list[LogCopy] = []
    unread: list[LogCopy] = []
    others: list[LogCopy] = []
    for rank, replica in everything:
        is_final = rank == final_rank
        if _is_of_other_topic(replica, current):
            others.append(LogCopy(view=load_log(replica), rank=rank, is_final=is_final))
            continue
        if replica.state != "deleted" or not isinstance(replica.topic_id, Absent):
            known = copies if replica.is_log_known else unread
            view = load_beside(replica, copies[0].view if copies else None)
            known.append(LogCopy(view=view, rank=rank, is_final=is_final))
            # What is discarded of a metadata log is no record of a partition that was lost.
            is_cut = view.truncated_by_recovery is not None and replica.topic_partition.topic not in METADATA_TOPICS
            whole = log_as_it_lies(view) if is_cut else view
            if whole.log_end_offset > view.log_end_offset and replica.is_log_known:
                copies.append(LogCopy(view=whole, rank=rank, is_final=is_final, is_remnant=True, is_unstarted=True))
        if replica.deleted_segments:
            # The checkpointed high watermark is of the log as it is now and says nothing of what was discarded before.
            remnant = replace(
                replica, segments=replica.deleted_segments, deleted_segments=(), high_watermark=Absent.NOT_APPLICABLE
            )
            copies.append(LogCopy(view=load_log(remnant), rank=rank, is_final=is_final, is_remnant=True))
    deleted = [one for _, one in everything if one.state == "deleted" and isinstance(one.topic_id, Absent)]
    return LogCopies(
        copies=tuple(copies),
        others=tuple(others),
        topic_id=current,
        unread=tuple(unread),
        deleted=tuple(map(load_log, deleted)),
    )


def _current_id(final: Sequence[Replica], known: str | Absent) -> str | Absent:
    live = [replica for replica in final if replica.is_live and not isinstance(replica.topic_id, Absent)]
    ids = [replica.topic_id for replica in live]
    if not isinstance(known, Absent):
        return known
    return max(sorted({str(one) for one in ids}), key=ids.count, default=Absent.UNKNOWN)


def _is_of_other_topic(replica: Replica, current: str | Absent) -> bool:
    if isinstance(replica.topic_id, Absent) or isinstance(current, Absent):
        return False
    return replica.topic_id != current


def judge_times(copies: Sequence[LogCopy], last_logged_ms: int | Absent) -> tuple[LogCopy, ...]:
    """Return the copies with their file times put aside where an earlier snapshot would be younger than the last log line.

    Args:
        last_logged_ms: the UTC time of the last line of all brokers; absent where there are none, and all times stay.
    """
    if not isinstance(last_logged_ms, int):
        return tuple(copies)
    return tuple(
        replace(copy, has_times=False)
        if not copy.is_final and isinstance(copy.taken_ms, int) and copy.taken_ms > last_logged_ms
        else copy
        for copy in copies
    )


def taken_before_their_lines(copies: Sequence[LogCopy], logged: Sequence[LoggedTruncation]) -> tuple[LogCopy, ...]:
    """Return the copies with those as earlier snapshots whose broker truncated the log, by its lines, after the directory was copied."""
    return tuple(
        replace(copy, is_final=False, is_outdated=True)
        if copy.is_final and not copy.is_remnant and any(_is_truncated_later(copy, line) for line in logged)
        else copy
        for copy in copies
    )


def _is_truncated_later(copy: LogCopy, line: LoggedTruncation) -> bool:
    """Whether the copy ends where the log ended before the truncation, and was last written before it, in an earlier leader epoch."""
    view, taken = copy.view, copy.taken_ms
    if line.broker_id != copy.broker_id or not line.is_exact or line.from_offset != view.log_end_offset:
        return False
    is_older = isinstance(taken, int) and isinstance(line.time_ms, int) and taken + FILE_TIME_SLACK_MS < line.time_ms
    newest = view.batch_epochs[-1].leader_epoch if view.batch_epochs else Absent.UNKNOWN
    in_order = not isinstance(newest, int) or not isinstance(line.leader_epoch, int) or newest < line.leader_epoch
    return is_older and in_order and line.to_offset < view.log_end_offset


def final_leader(
    copies: Sequence[LogCopy],
    leaderships: Sequence[Leadership],
    *,
    wanted: int | None = None,
    unread: Collection[int | Absent] = (),
) -> LogCopy | None:
    """Return the log that decides what is lost: of the last leader on record, else, where it is not in use here, of the strongest.

    A cluster that was stopped ends without a leader; then the last one before counts. A broker that is asked for comes before all.

    Args:
        unread: brokers that hold one whose log is not known: it decides where such a broker led last, or may have.
    """
    by_broker = {copy.broker_id: copy for copy in copies}
    if wanted in by_broker:
        return by_broker[wanted]
    last = next((state.leader for state in reversed(leaderships) if isinstance(state.leader, int)), None)
    # Of logs whose broker is not known, none is that of a leader who is not known.
    if last in by_broker:
        return by_broker[last]
    if unread:
        return None
    choice = choose_leader([copy.view for copy in copies], wanted=None, leaderships=())
    return next((copy for copy in copies if choice is not None and copy.view is choice.view), None)


class Agreement:
    """The offset up to which two copies hold the same content; each pair is compared once.

    Args:
        reader: gives batches and records.
        witnesses: every log of the partition: one of them may hold what superseded a record that a cleaner removed from another.
    """

    def __init__(self, reader: BatchReader, witnesses: Sequence[LoadedLog] = ()) -> None:
        self._reader = reader
        self._witnesses = witnesses
        self._found: dict[tuple[int, int], Divergence | None] = {}

    def divergence(self, one: LoadedLog, other: LoadedLog) -> Divergence | None:
        """Return the first difference in the range that both hold, be it an open question, none where they do not differ."""
        key = (id(one), id(other))
        if key not in self._found:
            found = first_divergence(one, other, self._reader, witnesses=self._witnesses)
            self._found[key] = self._found[(id(other), id(one))] = found
        return self._found[key]

    def parted_at(self, one: LoadedLog, other: LoadedLog) -> int | None:
        """Return the first offset at which they are shown to differ in the range that both hold, none where they do not: compaction is no difference."""
        found = self.divergence(one, other)
        return None if found is None or found.is_open else found.offset

    def batch_start(self, view: LoadedLog, offset: int) -> int:
        """Return the base offset of the batch that holds the offset, the offset itself where none does."""
        rows = self._reader.batches(view.replica, offset, offset)
        return min((int(base) for base in rows["base_offset"]), default=offset)

    def shares_nothing(self, one: LoadedLog, other: LoadedLog) -> bool:
        """Whether both hold batches at the same offsets and not one of them is the same, as far as the first `MOST_OFFSETS_COMPARED` offsets show."""
        common = common_range(one, other)
        parted = self.parted_at(one, other)
        if common is None or parted is None or parted > common.first:
            return False
        mine, its = (self._first_batches(view, common) for view in (one, other))
        return bool(mine) and bool(its) and not mine & its

    def share_batches(self, one: LoadedLog, other: LoadedLog) -> bool:
        """Whether both hold one batch among the first offsets of the range that both hold, and none there is shown to differ."""
        common = common_range(one, other)
        if common is None or not self.begin_alike(one, other):
            return False
        return bool(self._first_batches(one, common) & self._first_batches(other, common))

    def _first_batches(self, view: LoadedLog, common: OffsetRange) -> set[tuple[int, int]]:
        last = min(common.last, common.first + MOST_OFFSETS_COMPARED)
        rows = self._reader.batches(view.replica, common.first, last)
        return {(int(row["base_offset"]), int(row["crc"])) for row in rows}

    def begin_alike(self, one: LoadedLog, other: LoadedLog) -> bool:
        """Return whether the range that both hold begins with the same records."""
        common = common_range(one, other)
        return common is not None and self.until(one, other) > common.first

    def until(self, one: LoadedLog, other: LoadedLog) -> int:
        """Return the exclusive offset up to which they hold the same; 0 where they have no offset in common."""
        return agreed_until(one, other, self.parted_at(one, other))


def is_recreated(copy: LoadedLog, leader: LoadedLog, parted_at: int | None, *, shares_nothing: bool = False) -> bool:
    """Whether nothing is shared, no two ids say that the topic is the same, and the leader's log begins in no higher leader epoch than the other.

    A leader that was elected without any of the log begins in a higher epoch than the log it replaced. Before 2.8 no topic has an id: then not one batch may be shared.
    """
    first = max(copy.content_start_offset, leader.content_start_offset)
    if parted_at is None or parted_at > first:
        return False
    has_id = not isinstance(copy.replica.topic_id, Absent)
    if has_id == (not isinstance(leader.replica.topic_id, Absent)) and (has_id or not shares_nothing):
        return False
    mine, its = epoch_at(copy.batch_epochs, first), epoch_at(leader.batch_epochs, first)
    return not isinstance(mine, Absent) and not isinstance(its, Absent) and its <= mine


def of_one_incarnation(
    copies: Iterable[LogCopy],
    leader: LogCopy,
    agreement: Agreement,
    *,
    created_ms: int | Absent,
    deleted: Sequence[LoadedLog] = (),
) -> tuple[LogCopy, ...]:
    """Return the copies of the leader's topic rather than of an earlier one of that name.

    Args:
        created_ms: when the partition was created, where a log line says it; what was last written before is of another topic.
    """
    every = tuple(copies)
    own = [
        copy
        for copy in every
        if copy is leader
        or not (
            _is_of_earlier(copy, leader, agreement, created_ms)
            or (isinstance(created_ms, int) and was_set_aside(copy, leader, deleted, agreement))
        )
    ]
    # A log that now goes on as the leader's does may still begin as its earlier copies did.
    now = [copy for copy in own if copy.is_in_use and copy is not leader]
    return tuple(
        copy for copy in every if copy in own or any(agreement.begin_alike(copy.view, one.view) for one in now)
    )


def was_set_aside(earlier: LogCopy, now: LogCopy, deleted: Iterable[LoadedLog], agreement: Agreement) -> bool:
    """Return whether a log was put aside whole, in a directory of its broker that waits for its deletion, and the log of now shares nothing with it: no truncation."""
    own = [one for one in deleted if one.replica.broker_id == earlier.broker_id]
    if not any(agreement.until(earlier.view, one) >= earlier.view.log_end_offset for one in own):
        return False
    return agreement.shares_nothing(earlier.view, now.view) or common_range(earlier.view, now.view) is None


def _is_of_earlier(copy: LogCopy, leader: LogCopy, agreement: Agreement, created_ms: int | Absent) -> bool:
    its, own = copy.view.replica.topic_id, leader.view.replica.topic_id
    if not isinstance(its, Absent) and its == own:
        return False
    taken = copy.taken_ms
    is_older = isinstance(created_ms, int) and isinstance(taken, int) and taken + FILE_TIME_SLACK_MS < created_ms
    parted = agreement.parted_at(copy.view, leader.view)
    if parted is None and not is_older:
        return False
    shares_nothing = agreement.shares_nothing(copy.view, leader.view)
    if is_older or parted is None:
        # A clock that is behind makes a file older than its topic: its batches show whose it is.
        return is_older and (shares_nothing or common_range(copy.view, leader.view) is None)
    if isinstance(created_ms, int) and not copy.has_times and shares_nothing:
        newest = [one.max_timestamp_ms for one in copy.view.segments if isinstance(one.max_timestamp_ms, int)]
        return bool(newest) and max(newest) < created_ms
    return is_recreated(copy.view, leader.view, parted, shares_nothing=shares_nothing)


class LogOutline(NamedTuple):
    """One copy of a partition's log: where it is, of which moment it is, and its first and last offsets."""

    input: int
    path: str
    broker_id: int | Absent
    rank: int
    """Snapshots count up with time; what is now has the highest."""
    is_final: bool
    """Whether it is the log as it is now, not out of an earlier snapshot."""
    is_remnant: bool
    """Whether no broker will serve it, as of `LogCopy`."""
    state: str
    """`live`, `future`, `stray` or `deleted`, from the directory's name."""
    log_start_offset: int
    log_end_offset: int
    epochs: tuple[EpochEntry, ...]
    high_watermark: int | Absent
    """The checkpointed value; absent where no checkpoint has one."""
    first_base_offset: int | Absent = Absent.UNKNOWN
    """The base offset of the oldest segment on disk."""
    log_start: CheckpointValue | Absent = Absent.NOT_WRITTEN
    """The checkpointed log start: brokers write it down only where the log does not begin with its oldest segment."""
    newest_ms: int | Absent = Absent.UNKNOWN
    """The newest time of its records; unknown where it holds none."""
    is_unstarted: bool = False

    @property
    def is_live(self) -> bool:
        """Whether it is, or was then, the log of a replica."""
        return self.state == "live" and not self.is_remnant


def outline_of(copy: LogCopy) -> LogOutline:
    """Return the outline that a picture of the copy shows."""
    view = copy.view
    replica = view.replica
    recorded = replica.high_watermark
    return LogOutline(
        input=replica.input,
        path=replica.path,
        broker_id=replica.broker_id,
        rank=copy.rank,
        is_final=copy.is_final,
        is_remnant=copy.is_remnant,
        is_unstarted=copy.is_unstarted,
        state=replica.state,
        log_start_offset=view.log_start_offset,
        log_end_offset=view.log_end_offset,
        epochs=view.epochs or view.batch_epochs,
        high_watermark=recorded if isinstance(recorded, Absent) else recorded.value,
        first_base_offset=replica.segments[0].base_offset if replica.segments else Absent.NOT_APPLICABLE,
        log_start=replica.log_start,
        newest_ms=max(
            (one.max_timestamp_ms for one in view.segments if isinstance(one.max_timestamp_ms, int)),
            default=Absent.UNKNOWN,
        ),
    )
