"""`__consumer_offsets` of the inputs: the replica by which each of its partitions is judged, and the positions that its log ends with."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter

from kforensics.case.leaders import Leaders, UncleanElection, weight_of
from kforensics.case.share_log import SharePositions, commit_of
from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import CommitKey, GroupEvent, GroupLogReader, Name, outline
from kforensics.evidence.coordinators.replica_log import batch_outline, first_difference, list_log
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.model import Citation, GroupCommit, Problem
from kforensics.evidence.replica.loader_reader import known_epochs
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.reconcile.groups.replay import (
    DEFAULT_RETENTIONS_MS,
    MINUTE_MS,
    Change,
    Detour,
    Position,
    Replay,
    Retention,
)
from kforensics.reconcile.observed.leadership import LeadershipAccount
from kforensics.reconcile.observed.logged_events import of_kinds
from kforensics.units import OFFSETS_TOPIC, TopicPartition

TOPIC_REMOVAL_MS = 5 * 60 * 1000
"""How long after the deletion of a topic a coordinator may remove the offsets committed in it."""


LOGGED_WITHIN_MS = 2_000
"""A coordinator logs the removal of expired offsets so long after their tombstones, or since 3.6 before them, at most."""


class OffsetsLog:
    """One partition of `__consumer_offsets`: the replica that speaks for it, and what truncations took from it.

    Args:
        retention_ms: `offsets.retention.minutes` where the inputs agree on it.
        until_ms: records that are newer are left out.
        with_lost: look in the other copies for records that truncations took.
    """

    def __init__(
        self,
        given: Leaders,
        partition: TopicPartition,
        places: Sequence[PartitionPlace],
        *,
        retention_ms: int | None,
        until_ms: int | None,
        with_lost: bool,
    ) -> None:
        self._given, self.partition, self._places = given, partition, places
        self._retention_ms, self._until_ms = retention_ms, until_ms
        outlines = [(place, outline(list_log(place), _cleaner_point(place))) for place in places]
        self._epochs = {place.state.broker_id: found.last_epoch for place, found in outlines}
        newest = max(found.last_epoch for _, found in outlines)
        self._leader = leader = given.leader(partition, newest_epoch=newest)
        self._unclean = given.last_unclean_election(partition)
        self.place, self.outline = max(
            outlines, key=lambda one: weight_of(leader, one[0], one[1].last_epoch, one[1].end)
        )
        self._alike = tuple(place for place, found in outlines if found.end == self.outline.end)
        """The replicas whose logs end as that one does."""
        self.skipped, self.why_skipped = 0, ""
        self.groups: set[Name] = set()
        self.keys: set[CommitKey] = set()
        self.inferred_ms: int | None = None
        self._detours = self._find_detours() if with_lost else ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The places of its log that can't be read, once it was played."""
        return tuple(dict.fromkeys(self.outline.log.problems))

    @property
    def unread(self) -> str | None:
        """A clause that says why its log is here in part, once it was played; none where it is here as a whole."""
        is_damaged = bool(self.problems or self.skipped)
        reason = self._given.unread(
            self.partition,
            self._leader,
            end=self.outline.end,
            promised_end=self._given.promised_end_of_leader(self.partition, self._leader, self._epochs),
            is_damaged=is_damaged,
        )
        if reason is not None:
            return reason
        # One that came after the time that is asked about may have discarded what was committed before it.
        election = self._last_unclean
        if election is None:
            return self._unshown_elections()
        if self._is_cleaned_since(election) or self._holds_discarded(election):
            return None
        return f"commits may have been discarded by the unclean election in leader epoch {election.leader_epoch}"

    @cached_property
    def _last_unclean(self) -> UncleanElection | None:
        return self._given.last_unclean_election(self.partition, until_now=True)

    @cached_property
    def newest_epoch(self) -> int:
        """The newest leader epoch that its replicas know; -1 where none can be read."""
        return max(*self._epochs.values(), *(_last_epoch(place) for place in self._places))

    @cached_property
    def _first_epoch(self) -> int:
        return self.outline.epoch_at(self.outline.cleaned_until) if self.outline.epochs else 0

    @cached_property
    def _leadership(self) -> LeadershipAccount:
        return self._given.leadership(self.partition, newest_epoch=self.newest_epoch)

    @property
    def is_shown_from_its_creation(self) -> bool:
        """Whether inputs show every leader since the partition was created, none of which can have lost anything, and several replicas: logs that are empty always were."""
        account = self._leadership
        return (
            len(self._places) > 1
            and bool(account.states)
            and account.states[0].leader_epoch == 0
            and not account.risky
            and next(iter(account.gaps_since(0)), None) is None
        )

    def _unshown_elections(self) -> str | None:
        """Return a clause that says which elections since the history begins no input shows: one may have been unclean; none where all are shown or there was none."""
        if 0 <= self.newest_epoch <= self._first_epoch:
            return None
        gap = next(iter(self._leadership.gaps_since(self._first_epoch)), None)
        if gap is None:
            return None
        return (
            f"commits may have been discarded by an unclean election: no input shows {gap.words}. Give {gap.settled_by}"
        )

    @property
    def doubtful_epochs(self) -> frozenset[int]:
        """The leader epochs, since its history begins, whose leader may have come back with less than it had; that of the unclean election on record is told of as `unread`."""
        told = -1 if self._last_unclean is None else self._last_unclean.leader_epoch
        epochs = (one.state.leader_epoch for one in self._leadership.risky)
        return frozenset(one for one in epochs if one >= self._first_epoch and one != told)

    @property
    def _exchanged(self) -> int | None:
        """The broker of its log, where that is known to have come back with another disk."""
        broker = self.place.state.broker_id
        restarts = self._leadership.restarts.get(broker, ()) if isinstance(broker, int) else ()
        return broker if isinstance(broker, int) and any(one.other_disk for one in restarts) else None

    def _holds_discarded(self, election: UncleanElection) -> bool:
        """Whether the log of the leader before an election is here as it was after that election, before it was truncated: another copy of its moment knows the new epoch."""
        epochs: dict[tuple[int | None, bool], list[int]] = defaultdict(list)
        for place in self._given.copies(self.partition):
            if place.is_live:
                moment = self._given.case.ranks.get(place.state.input)
                epochs[moment, place.state.broker_id == election.leader_before].append(_last_epoch(place))
        return any(
            is_leader_before
            and any(0 <= one < election.leader_epoch for one in known)
            and max(epochs.get((moment, False), ()), default=-1) >= election.leader_epoch
            for (moment, is_leader_before), known in epochs.items()
        )

    def _is_cleaned_since(self, election: UncleanElection) -> bool:
        """Whether the cleaner has come so far that the history is claimed from a time after an election only."""
        return bool(self.outline.cleaned_until) and 0 <= election.time_ms < self.outline.first_ms

    def replay(self) -> Replay:
        """Return an empty state to play the log with."""
        return Replay(
            place=self.place,
            known_from=self.outline.cleaned_until if self.outline.is_whole else None,
            retention=Retention(
                retention_ms=self._retention_ms,
                inferred_ms=self.inferred_ms,
                removed_topics=self._is_removed,
                expired_by_line=self._line_of_expiry,
            ),
            until_ms=self._until_ms,
        )

    def play(self, replay: Replay) -> Iterator[Change]:
        """Yield the changes of a replay of the log from its beginning."""
        reader = GroupLogReader(self.outline.log)
        yield from replay.play(reader.events(), self._detours, self._read)
        self.skipped, self.why_skipped = reader.skipped, reader.why_skipped

    def settle(self, replay: Replay) -> Iterator[Change]:
        """Yield the changes that set a position back, of a replay of the log for the positions at its end."""
        reader = GroupLogReader(self.outline.log)
        yield from replay.settle(reader.parts(until_ms=self._until_ms), self._detours, self._read)
        self.skipped, self.why_skipped = reader.skipped, reader.why_skipped
        self.groups, self.keys = reader.names()

    def gone_since_earlier(self, replay: Replay) -> Iterator[Change]:
        """Yield what became of the positions that the newest earlier copy ends with and that are in force no more, once this log was settled: the records that removed them; as lost those of which it has no record though a cleaner alone took its beginning, unless they may have expired."""
        earlier = [one for one in self._given.copies(self.partition) if one.is_live and not self._given.is_now(one)]
        if not earlier or self._until_ms is not None:
            return
        ranks = self._given.case.ranks
        newest = max(ranks[one.state.input] for one in earlier)
        # Brokers of KRaft are later than 2.0, up to which offsets were kept for a day.
        usual_ms = DEFAULT_RETENTIONS_MS[0 if self._given.history is None else -1]
        kept_ms = usual_ms if self._retention_ms is None else self._retention_ms
        reason = "an earlier copy of {} holds the commit, and the log of now has no record of it: a cleaner has been there since, and took the record that removed it, if there was one; it is too young to have expired"
        for one in lost_with_log(
            self._given, self.partition, [one for one in earlier if ranks[one.state.input] == newest], reason
        ):
            former = replay.former.get(one.key)
            is_young = 0 <= self.outline.newest_ms - one.time_ms <= kept_ms
            is_cleaned = self.outline.cleaned_until and one.key not in self.keys
            if former is not None:
                if not former.removal.is_lost:
                    yield former.removal
            elif is_cleaned and is_young and not self._deletions.get(one.key.topic):
                yield one

    @cached_property
    def _deletions(self) -> dict[Name, list[int]]:
        """Return the times at which each topic was deleted, by the metadata log, or lines where there is none."""
        found: dict[Name, list[int]] = defaultdict(list)
        if (history := self._given.history) is not None:
            for one in history.topics.values():
                if not isinstance(one.removed, Absent):
                    found[one.name].append(one.removed.timestamp_ms)
            return found
        for item in of_kinds(self._given.cluster.events, (LogEventKind.TOPIC_DELETED,)):
            if isinstance(item.time_ms, int) and isinstance(name := item.event.fields.get("topic_name"), str):
                found[name].append(item.time_ms)
        return found

    def _read(self, detour: Detour) -> Iterator[GroupEvent]:
        reader = GroupLogReader(list_log(detour.place), deleted=detour.is_deleted)
        return reader.events(from_offset=detour.from_offset)

    def _is_removed(self, topic: Name, since_ms: int, time_ms: int) -> bool:
        # A controller's line says that all brokers have deleted their replicas.
        last_ms = time_ms + LOGGED_WITHIN_MS * (self._given.history is None)
        first_ms = max(since_ms, time_ms - TOPIC_REMOVAL_MS)
        return any(first_ms <= one <= last_ms for one in self._deletions.get(topic, ()))

    def _line_of_expiry(self, time_ms: int) -> Citation | None:
        """Return the line with which a broker of the partition said, as it appended the tombstones, that it removed expired offsets."""
        times, lines = self._expiries
        at = bisect_left(times, time_ms - LOGGED_WITHIN_MS)
        return lines[at] if at < len(times) and times[at] - time_ms <= LOGGED_WITHIN_MS else None

    @cached_property
    def _expiries(self) -> tuple[list[int], list[Citation]]:
        """Return the times of such lines, the earliest first, and the lines: there may be thousands, and as many tombstones."""
        brokers = {place.state.broker_id for place in self._places}
        found = [
            (item.time_ms, item.citation)
            for item in of_kinds(self._given.cluster.events, (LogEventKind.OFFSETS_EXPIRED,))
            if (item.node_id in brokers or isinstance(item.node_id, Absent)) and isinstance(item.time_ms, int)
        ]
        found.sort(key=itemgetter(0))
        return [time for time, _ in found], [line for _, line in found]

    def _is_elected_without(self, leader_epoch: int) -> bool:
        """Whether the log that speaks for the partition is that of an unclean election after an epoch: what it lacks of that epoch is discarded."""
        election = self._unclean
        if election is None or election.leader_epoch <= leader_epoch:
            return False
        return self.place.state.broker_id == self._leader or any(
            _last_epoch(place) >= election.leader_epoch for place in self._alike
        )

    def _find_detours(self) -> tuple[Detour, ...]:
        """Return records in other copies that later leader epochs replaced in this log, each once."""
        copies = [
            (place, deleted)
            for place in self._given.copies(self.partition)
            for deleted in (False, True)
            if deleted or place is not self.place
        ]
        own = None
        found: dict[tuple[int, int], Detour] = {}
        for place, deleted in copies:
            log = list_log(place)
            if not (log.deleted if deleted else log.segments):
                continue
            cleaned = max(self.outline.cleaned_until, _cleaner_point(place))
            theirs = batch_outline(log, deleted=deleted, from_offset=cleaned)
            if not len(theirs):
                continue
            own = batch_outline(self.outline.log) if own is None else own
            differs = first_difference(own, theirs, from_offset=cleaned)
            if differs is None:
                continue
            lost = theirs[theirs["base_offset"] >= differs]
            epoch = int(lost["partition_leader_epoch"].max())
            replaced = own[own["base_offset"] >= differs]
            # What this log does not have yet was not truncated: only later leader epochs at those offsets show that it was, or the election of its broker.
            first_epoch = int(lost["partition_leader_epoch"][0])
            is_by_epoch = (
                int(replaced["partition_leader_epoch"].min()) > first_epoch
                if len(replaced)
                else self._is_elected_without(epoch)
            )
            if not is_by_epoch and (self._given.is_now(place) or not _began_anew(own, theirs, self.outline.end)):
                continue
            detour = Detour(
                from_offset=differs,
                place=place,
                is_deleted=deleted,
                leader_epoch=epoch,
                discarded_ms=int(replaced["max_timestamp"][0]) if len(replaced) else -1,
                is_unexplained=not is_by_epoch,
                exchanged=None if is_by_epoch else self._exchanged,
            )
            if is_by_epoch and not len(replaced) and self._unclean is not None:
                detour = replace(detour, elected_in=self._unclean.leader_epoch, discarded_ms=self._unclean.time_ms)
            known = found.get((differs, epoch))
            if known is None or len(lost) > len(
                batch_outline(list_log(known.place), deleted=known.is_deleted, from_offset=differs)
            ):
                found[differs, epoch] = detour
        return tuple(found[key] for key in sorted(found))


def _began_anew(own: BatchTable, earlier: BatchTable, end: int) -> bool:
    """Whether a log is shown not to go on from an earlier copy of it: it ends before that, or all it has at those offsets is younger than the copy. A cleaner leaves the times of what it keeps."""
    last = int(earlier["last_offset"].max())
    if end <= last:
        return True
    there = own[own["base_offset"] <= last]
    return bool(len(there)) and int(there["max_timestamp"].min()) > int(earlier["max_timestamp"].max())


def _cleaner_point(place: PartitionPlace) -> int:
    found = checkpoint_value(place.state, "cleaner_point", place.topic_partition)
    return 0 if isinstance(found, Absent) else found.value


def _last_epoch(place: PartitionPlace) -> int:
    """Return the last leader epoch that a directory knows, -1 where none can be read."""
    return max((one.leader_epoch for one in known_epochs(place)), default=-1)


def offsets_logs(given: Leaders, *, until_ms: int | None = None, with_lost: bool = True) -> dict[int, OffsetsLog]:
    """Return the partitions of `__consumer_offsets` that are among the inputs, by number."""
    minutes = frozenset(given.settings("offsets.retention.minutes"))
    retention_ms = min(minutes) * MINUTE_MS if len(minutes) == 1 else None
    return {
        tp.partition: OffsetsLog(given, tp, places, retention_ms=retention_ms, until_ms=until_ms, with_lost=with_lost)
        for tp, places in given.live(OFFSETS_TOPIC).items()
    }


def lost_with_log(
    given: Leaders,
    partition: TopicPartition,
    places: Sequence[PartitionPlace],
    reason: str = "an earlier copy of {} holds the commit, and its brokers have no log of it now",
) -> Iterator[Change]:
    """Yield the positions of a partition that earlier copies end with, as lost."""
    log = OffsetsLog(given, partition, places, retention_ms=None, until_ms=None, with_lost=False)
    replay = log.replay()
    for _ in log.settle(replay):
        pass
    for key, position in replay.positions.items():
        yield Change(
            key=key,
            offset=None,
            previous=position.offset,
            time_ms=position.committed_ms,
            by="unknown",
            confidence="possible",
            reason=reason.format(partition),
            citations=(position.at.cite(position.place),),
            had_members=False,
            is_lost=True,
        )


def positions_now(given: Leaders) -> dict[CommitKey, Position]:
    """Return the positions of all groups at the end of the logs."""
    found: dict[CommitKey, Position] = {}
    for log in offsets_logs(given, with_lost=False).values():
        replay = log.replay()
        for _ in log.settle(replay):
            pass
        found |= replay.positions
    return found


class PositionsNow:
    """The positions of groups by partition, read when the first partition is asked for.

    Args:
        rename_group: what groups are called.
    """

    def __init__(self, given: Leaders, rename_group: Callable[[str], str] = str) -> None:
        self._given, self._rename = given, rename_group
        self._known: dict[TopicPartition, list[GroupCommit]] | None = None

    def __call__(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:
        """Return the position of each group in a partition."""
        if self._known is None:
            self._known = defaultdict(list)
            positions = positions_now(self._given).items()
            shares = SharePositions(self._given, until_ms=None).commits(self._rename)
            for commit in (*(commit_of(key, one, self._rename) for key, one in positions), *shares):
                self._known[commit.partition].append(commit)
        return tuple(self._known.get(partition, ()))
