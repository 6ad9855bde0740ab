"""The logs of a partition over time, as far as the evidence shows them: what every conclusion about its incident rests on."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, CheckpointValue, Replica
from kforensics.protocol.retention import RetentionTimes
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import NEWEST_PROTOCOL, PROTOCOL_RULES
from kforensics.reconcile.bugs.traces import doubted_high_watermarks
from kforensics.reconcile.committed.judge import CommitJudge
from kforensics.reconcile.committed.proofs import FILE_TIME_SLACK_MS, Bound, Moment
from kforensics.reconcile.history.causes import election_behind
from kforensics.reconcile.history.log_copies import (
    Agreement,
    LogCopy,
    copies_of,
    final_leader,
    judge_times,
    of_one_incarnation,
    taken_before_their_lines,
)
from kforensics.reconcile.history.log_starts import LogStart
from kforensics.reconcile.history.truncations import ObservedTruncation, find_truncations
from kforensics.reconcile.incident.logged_losses import DeletedRecords, is_by_epoch, uncommitted_from, unrecorded_time
from kforensics.reconcile.incident.model import IncidentEvidence, LeaderBasis
from kforensics.reconcile.logs.loaded_log import LoadedLog, load_log
from kforensics.reconcile.observed.broker_lives import LINES_OF_A_START_MS
from kforensics.reconcile.observed.facts import BrokerVersions, ClusterFacts, Leadership, LoggedEnd
from kforensics.reconcile.observed.leadership import Gap, GapKind, LeadershipAccount, account_of
from kforensics.reconcile.observed.own_evidence import held_epochs, states_of, term_after_copying
from kforensics.reconcile.replicas.leader import ProtocolChoice, choose_protocol
from kforensics.units import METADATA_TOPICS, EpochEntry, TopicPartition

MOST_UNCLEAN_STARTS = 2


def with_trusted_high_watermarks(
    observed: Sequence[ObservedTruncation], facts: ClusterFacts, doubted: Mapping[int, int]
) -> tuple[ObservedTruncation, ...]:
    """Return the truncations, without the high watermarks of their lines that may be of other records."""
    return tuple(_with_trusted_high_watermark(one, observed, facts, doubted) for one in observed)


def _with_trusted_high_watermark(
    truncation: ObservedTruncation,
    observed: Iterable[ObservedTruncation],
    facts: ClusterFacts,
    doubted: Mapping[int, int],
) -> ObservedTruncation:
    """Return the truncation without the high watermark of its line where that may speak of other records than those truncated.

    No log has a high watermark above its end: where the line's is, it is of another moment. A checkpoint that an unclean stop left is up to 5 s old. Where the log had been shortened or truncated, and written again, before that stop, it may be older than the records.
    """
    if isinstance(truncation.high_watermark, Absent):
        return truncation
    broker, time_ms = truncation.broker_id, truncation.time_ms
    is_trusted = isinstance(broker, int) and isinstance(time_ms, int) and broker not in doubted
    is_trusted &= truncation.high_watermark.value <= truncation.from_offset
    if isinstance(broker, int) and isinstance(time_ms, int):
        stops = [
            restart.time_ms
            for restart in facts.restarts(broker)
            if not restart.is_clean and isinstance(restart.time_ms, int) and restart.time_ms <= time_ms
        ]
        earlier = [
            other
            for other in observed
            if other.broker_id == broker and isinstance(other.time_ms, int) and other.time_ms < min(stops, default=0)
        ]
        is_trusted &= len(_apart(stops)) < MOST_UNCLEAN_STARTS and not earlier
    return truncation if is_trusted else replace(truncation, high_watermark=Absent.UNKNOWN)


def logged_high_watermarks(
    observed: Iterable[ObservedTruncation], copies: Collection[LogCopy]
) -> list[tuple[LoadedLog, CheckpointValue]]:
    """Return the high watermarks that lines state of logs before a truncation, where a copy shows that log."""
    found = []
    for one in observed:
        before, known = one.before, one.high_watermark
        if before is None or before not in copies or isinstance(known, Absent):
            continue
        # Without its time a copy may be of before an earlier truncation, and hold other records at these offsets.
        if before.view.log_end_offset == one.from_offset and isinstance(before.taken_ms, int):
            found.append((before.view, known))
    return found


def _apart(times_ms: Iterable[int]) -> list[int]:
    """Return the starts, of whose several lines only the first counts."""
    found: list[int] = []
    for time_ms in sorted(times_ms):
        if not found or time_ms - found[-1] > LINES_OF_A_START_MS:
            found.append(time_ms)
    return found


def outside_metadata(
    partition: TopicPartition,
    account: LeadershipAccount,
    observed: Iterable[ObservedTruncation],
    facts: ClusterFacts,
) -> Iterator[Gap]:
    """Yield what the metadata log can't show: who led when a follower truncated its log, after its last record or, by a wrong clock, before an election on record."""
    states = account.states
    is_quorum = partition.topic in METADATA_TOPICS
    if is_quorum or account.source != "metadata-log" or not account.reaches_now:
        return
    elected = next((one.time_ms for one in states if one.leader_epoch > states[0].leader_epoch), None)
    for one in observed:
        time_ms = unrecorded_time(one, states)
        if one.rule == "recovery" or not isinstance(time_ms, int):
            continue
        is_before = elected is None or (isinstance(elected, int) and time_ms + FILE_TIME_SLACK_MS < elected)
        if is_before or facts.ends_before(time_ms):
            yield Gap(
                GapKind.END,
                f"who led when broker {one.broker_id} truncated its log, of which the metadata log shows no election before",
                "a newer metadata log",
            )
            return


def before_its_term(
    account: LeadershipAccount, leader: LogCopy | None, versions: BrokerVersions, copies: Iterable[LogCopy]
) -> Iterator[Gap]:
    """Yield a gap where the leader's directory was copied before it led: from its election on it would hold the epoch."""
    broker = account.last_leader
    if leader is None or not isinstance(broker, int) or leader.broker_id != broker:
        return
    epoch = term_after_copying(
        account.states,
        leader.view,
        (one.view for one in copies if one.is_in_use),
        keeps_epoch=versions.keeps_epoch_of_election(broker),
    )
    if epoch is not None:
        yield Gap(
            GapKind.END,
            f"what broker {broker} wrote as the leader from leader epoch {epoch} on, of which its directory holds nothing",
            f"the directory of broker {broker} as it is now",
        )


def recorded_epochs(copy: LogCopy) -> Iterator[Sequence[EpochEntry]]:
    """Yield the leader epochs of a log by its batches, and by leader-epoch-checkpoint, which names a leader that has written nothing too."""
    yield copy.view.batch_epochs
    if not isinstance(copy.view.replica.checkpoint_epochs, Absent):
        yield copy.view.replica.checkpoint_epochs


@dataclass(eq=False)
class LogsOverTime:
    """The logs of one partition, now and earlier: which one leads, who led, what was truncated, and what was committed.

    Args:
        before: its replicas in earlier snapshots, each with the rank of the snapshot.
        final_rank: the rank of now, above those of all snapshots.
        evidence: log lines, metadata and versions of the whole cluster.
    """

    partition: TopicPartition
    final: Sequence[Replica]
    before: Sequence[tuple[int, Replica]]
    final_rank: int
    evidence: IncidentEvidence
    reader: BatchReader

    def __post_init__(self) -> None:
        partition, evidence = self.partition, self.evidence
        topic_id = evidence.facts.topic_id(partition.topic)
        found = copies_of(self.final, self.before, topic_id=topic_id, final_rank=self.final_rank)
        timed = judge_times(found.copies, evidence.last_logged_ms)
        found = replace(found, copies=taken_before_their_lines(timed, evidence.logged))
        self.agreement = Agreement(self.reader, [copy.view for copy in found.copies])
        self.held_epochs = tuple(map(held_epochs, (copy.view for copy in found.live)))
        self.leaderships = states_of(partition, found.topic_id, evidence.facts, self.held_epochs)
        self.elected_before = self._elected_before(found.topic_id)
        self.unread = found.unread
        unread = {copy.broker_id for copy in found.unread if copy.is_in_use}
        self.leader = final_leader(found.live, self.leaderships, wanted=evidence.wanted_leader, unread=unread)
        if self.leader is not None:
            found = found.with_alike(self.leader, self.agreement)
        self.newest_topic_id = topic_id
        self.copies: tuple[LogCopy, ...] = found.copies
        self.others: tuple[LogCopy, ...] = ()
        if self.leader is not None:
            self.copies = of_one_incarnation(
                found.copies,
                self.leader,
                self.agreement,
                created_ms=evidence.incarnation.created_ms,
                deleted=found.deleted,
            )
            self.others = tuple(copy for copy in found.copies if copy not in self.copies)
        self.other_topics = found.other_topics
        self.earlier = (*found.others, *self.others)
        self.unrequested = tuple(copy for copy in self.earlier if not self._was_requested(copy))
        self.waiting = [log.replica for log in found.deleted]
        observed = find_truncations(
            partition, evidence.logged, self.copies, self.agreement, others=self.others, deleted=found.deleted
        )
        self.deleted = DeletedRecords(evidence.deletions, self.leaderships, observed)
        self.ordinary = _ordinary_truncations(observed, self.leaderships)
        self.doubted = doubted_high_watermarks(evidence.logged, evidence.versions, self.ordinary)
        self.observed = with_trusted_high_watermarks(observed, evidence.facts, self.doubted)
        self.weakened = frozenset(
            one.broker_id
            for one in self.observed
            if isinstance(one.broker_id, int) and (one.rule in {"recovery", "high-watermark"} or not one.is_logged)
        )
        """Brokers whose logs were shortened by recovery, to a high watermark, or in a way that no log line reports."""
        self.judge = self._judge()
        account = self._account(found.topic_id)
        before_term = tuple(before_its_term(account, self.leader, evidence.versions, self.copies))
        outside = outside_metadata(partition, account, self.observed, evidence.facts)
        self.account = account._replace(gaps=(*account.gaps, *outside, *before_term))
        self.is_leader_known = (
            self.leader is not None
            and self.leader.broker_id == self.account.last_leader
            and self.account.reaches_now
            and not self._is_from_before(self.leader)
        )
        self.furthest_end = max((copy.view.log_end_offset for copy in self.copies), default=0)
        self.logged_past_end = self._logged_past_end()
        self.whole_account = self._whole_account()
        self.leader_basis = self._leader_basis(is_before_its_term=bool(before_term))
        held = {copy.broker_id for copy in self.copies if copy.is_final and not copy.is_remnant}
        here = evidence.moments.brokers - evidence.moments.without_directory.get(partition, frozenset())
        unknown = {copy.broker_id for copy in self.unread if copy.is_final and isinstance(copy.broker_id, int)}
        self.missing_replicas = tuple(sorted((self.account.replicas - held - here) | unknown))

    def _judge(self) -> CommitJudge | None:
        # The newest last: of a broker's logs the judge takes the last one for what it led with.
        logs = [copy.view for copy in sorted(self.copies, key=lambda copy: copy.rank) if not copy.is_remnant]
        if not logs:
            return None
        return CommitJudge(
            logs,
            self.agreement.until,
            self.evidence.facts,
            self.reader,
            doubted=self.doubted,
            weakened=self.weakened,
            logged=logged_high_watermarks(self.observed, self.copies),
            moments=[
                Moment(
                    end,
                    tuple(copy.view for copy in self.copies if copy.rank == rank and copy.is_live),
                )
                for rank, end in self.evidence.moments.metadata_ends.items()
                if not self.evidence.is_order_in_doubt
            ],
            is_quorum=self.partition.topic in METADATA_TOPICS,
            written_ms={id(copy.view): copy.taken_ms for copy in self.copies if isinstance(copy.taken_ms, int)},
        )

    def _account(self, topic_id: str | Absent) -> LeadershipAccount:
        return account_of(
            self.partition,
            topic_id,
            self.evidence.facts,
            states=self.leaderships,
            newest_epoch=max(
                (entries[-1].leader_epoch for copy in self.copies for entries in recorded_epochs(copy) if entries),
                default=Absent.UNKNOWN,
            ),
            given=self.evidence.moments.brokers,
            by_high_watermark=any(self._truncates_to_high_watermark(copy) for copy in self.copies),
            keeps_epoch=self.evidence.versions.keeps_epoch_of_election,
        )

    def _elected_before(self, topic_id: str | Absent) -> tuple[Leadership, ...]:
        """Return unclean elections from before the first state of a compacted metadata log, by lines of the controller: they explain what was truncated."""
        if not self.leaderships or not isinstance(self.leaderships[0].recorded_at, int):
            return ()
        return self.evidence.facts.unclean_elections_before(self.leaderships[0], self.partition, topic_id)

    def _leader_basis(self, *, is_before_its_term: bool) -> LeaderBasis:
        if self.leader is None:
            return LeaderBasis.LOG
        broker = self.leader.broker_id
        if not isinstance(broker, int) or broker != self.account.last_leader:
            return LeaderBasis.OPTION if broker == self.evidence.wanted_leader else LeaderBasis.LOG
        is_older = is_before_its_term or self._is_from_before(self.leader)
        return LeaderBasis.OLDER_LOG if is_older else LeaderBasis.RECORD

    def _is_from_before(self, leader: LogCopy) -> bool:
        """Whether the directories are older than the log lines, and the leader's log is not in the leader epoch that these name last."""
        newest = leader.view.last_epoch
        is_older = isinstance(newest, Absent) or newest < self.account.states[-1].leader_epoch
        return is_older and any(copy.is_outdated for copy in self.copies)

    def _truncates_to_high_watermark(self, copy: LogCopy) -> bool:
        magic = copy.view.oldest_magic
        return (isinstance(magic, int) and magic < 2) or not PROTOCOL_RULES[self.protocol_of(copy).name].keeps_epochs

    def _whole_account(self) -> Bound | None:
        """Return the account of leadership as a proof that nothing that was committed was truncated by leader epoch since the partition was created."""
        states = self.account.states
        if not self.account.is_whole or not self.is_leader_known or states[0].leader_epoch:
            return None
        if any(one.rule == "recovery" and _led_since(one, states) for one in self.observed):
            return None
        led = next((state for state in reversed(states) if isinstance(state.leader, int)), states[0])
        newest = self.leader.view.last_epoch if self.leader is not None else Absent.UNKNOWN
        if isinstance(newest, Absent) or newest < led.leader_epoch or self.logged_past_end:
            # It is not the log with which the broker led: its disk was exchanged, or put back, since.
            return None
        if self.leader is not None and (self.leader.view.lost_ranges or self.leader.view.missing):
            # It held what is missing now: its files were damaged or taken away, which is no truncation.
            return None
        return Bound(
            0,
            f"every leader up to leader epoch {states[-1].leader_epoch} was in sync when it was elected, and so held all that was committed",
            (states[-1].citation,),
        )

    def _logged_past_end(self) -> dict[int, LoggedEnd]:
        """Return by broker how far its log had grown by its own lines, where no copy of its log, nor of one that goes on as the leader's does, reaches that offset."""
        created = self.evidence.incarnation.created_ms
        # Lines of a broker that holds no log of this topic may be about an earlier one of the name.
        holders = {copy.broker_id for copy in self.copies if not copy.is_remnant}
        return {
            broker: end
            for broker, end in self.evidence.facts.logged_ends(self.partition).items()
            if broker in holders
            and end.offset > self.held_until(broker)
            and not (isinstance(created, int) and isinstance(end.time_ms, int) and end.time_ms < created)
        }

    def held_until(self, broker_id: int) -> int:
        """Return the highest end of the copies of a broker's log, and of all copies that hold what the leader does: others end where they parted from it."""
        if self.leader is None:
            return self.furthest_end
        own = self.leader.view
        ends = (
            copy.view.log_end_offset
            for copy in self.copies
            if copy.view.log_end_offset <= own.log_end_offset
            or copy.broker_id == broker_id
            or self.agreement.until(copy.view, own) >= own.log_end_offset
        )
        return max(ends, default=0)

    def is_uncommitted(self, truncation: ObservedTruncation) -> bool:
        """Whether a clean election proves that nothing of what a line says was truncated had been committed."""
        if self.leader is None or self.judge is None or not is_by_epoch(truncation, self.protocol_behind(truncation)):
            return False
        epochs = self.leader.view.epochs or self.leader.view.batch_epochs
        bound = uncommitted_from(truncation, self.leaderships, epochs, self.judge, by_epoch=True)
        return bound is not None and bound.offset <= truncation.to_offset

    @cached_property
    def log_start(self) -> LogStart | None:
        """Where the leader's log starts now; retention moves a start from segment to segment, only a request puts it inside of one."""
        if self.leader is None:
            return None
        start, recorded = self.leader.view.log_start_offset, self.leader.view.replica.log_start
        now = [copy for copy in self.copies if copy.is_final and not copy.is_remnant]
        bases = {segment.base_offset for copy in now for segment in copy.view.replica.segments}
        return LogStart(
            offset=start,
            moves=self.evidence.log_starts,
            is_inside=bool(bases) and min(bases) < start and start not in bases,
            citation=None if isinstance(recorded, Absent) else recorded.citation,
            times=self.evidence.retention(self.leader.broker_id) if start else RetentionTimes(),
            epochs_from=self.leader.view.replica.epochs_from,
        )

    def is_deleted(self) -> bool:
        """Return whether a record says that the topic was deleted, or a line, where only directories that wait for their removal, or are set aside, are left."""
        now = [copy for copy in self.copies if copy.is_final and not copy.is_remnant]
        facts = self.evidence.facts
        if not (now or self.account.states):
            return False
        if facts.has_metadata_log():
            is_on_record = (
                all(map(self._is_removal_on_record, now))
                if now
                else facts.is_deleted(self.partition.topic, Absent.UNKNOWN)
            )
            return facts.is_newest_metadata() and is_on_record
        # A directory waits for its removal where its replica was moved to another broker, too.
        is_in_use = any(copy.view.replica.state in {"live", "future"} for copy in now)
        return not is_in_use and self.evidence.is_deletion_logged

    def _is_removal_on_record(self, copy: LogCopy) -> bool:
        """Return whether the metadata log says that the topic of a directory was deleted; once it was compacted, a directory that waits for its removal says so."""
        facts = self.evidence.facts
        if facts.is_deleted(self.partition.topic, copy.view.replica.topic_id):
            return True
        is_compacted = facts.has_metadata_log() and not facts.knows_every_deletion()
        return (
            is_compacted and copy.view.replica.state == "deleted" and copy.view.replica.topic_id != self.newest_topic_id
        )

    def _was_requested(self, copy: LogCopy) -> bool:
        """Return whether it is on record that the topic of another log of the name was deleted: else its disk may have been emptied, or its cluster formatted."""
        evidence = self.evidence
        if self._is_removal_on_record(copy):
            return True
        if evidence.incarnation.is_after_deletion or evidence.is_deletion_logged:
            return True
        # KRaft brokers up to 3.6 put strays aside in the same way.
        return evidence.has_zookeeper and any(
            self.agreement.begin_alike(load_log(replica), copy.view)
            for replica in (*self.final, *(one for _, one in self.before))
            if replica.state == "deleted"
        )

    def abandoned(self) -> tuple[LogCopy, ...]:
        """Return the logs in directories that no broker serves: the newest metadata does not name their topic, and no record says that it was deleted."""
        if self.leader is not None or not self.evidence.facts.is_newest_metadata():
            return ()
        return tuple(
            copy
            for copy in dict.fromkeys((*self.copies, *self.unrequested))
            if copy.is_final
            and copy.view.replica.state in {"stray", "deleted"}
            and copy.view.replica.topic_id != self.newest_topic_id
            and not self._was_requested(copy)
        )

    def is_same_log(self, copy: LogCopy) -> bool:
        """Whether the copy is shown to be of the log that the leader holds now: it begins with the same records, or its topic has the same id."""
        if self.leader is None:
            return False
        its, own = copy.view.replica.topic_id, self.leader.view.replica.topic_id
        is_same_topic = not isinstance(its, Absent) and its == own
        return is_same_topic or self.agreement.begin_alike(copy.view, self.leader.view)

    def is_every_node_given(self) -> bool:
        """Whether every node of the earlier snapshots, and every replica, is among the inputs as it is now: else the newest commit may be on one that is not."""
        moments = self.evidence.moments
        return (
            bool(moments.brokers) and self.account.replicas | {node for _, node in moments.logs_held} <= moments.brokers
        )

    def replicas_of_other_topics(self) -> list[Replica]:
        """Return the directories of earlier topics of the name, by their ids or by a deletion on record."""
        return [*self.other_topics, *_directories(copy for copy in self.others if copy not in self.unrequested)]

    def replicas_of_deleted_topics(self) -> list[Replica]:
        """Return the directories of earlier topics of the name whose deletion is on record."""
        is_logged = self.evidence.incarnation.is_after_deletion or self.evidence.is_deletion_logged
        waiting = self.waiting if is_logged else []
        return [*_directories(copy for copy in self.earlier if copy not in self.unrequested), *waiting]

    def protocol_behind(self, truncation: ObservedTruncation) -> ProtocolName:
        """Return the protocol by which the broker of a truncation truncates."""
        own = next(
            (c for c in self.copies if c.broker_id == truncation.broker_id and not c.is_remnant), truncation.before
        )
        if own is None:
            broker = truncation.broker_id if isinstance(truncation.broker_id, int) else -1
            return self.evidence.protocol_hints.get(broker) or NEWEST_PROTOCOL
        return self.protocol_of(own).name

    def protocol_of(self, copy: LogCopy) -> ProtocolChoice:
        """Return the protocol by which a log is truncated."""
        broker = copy.broker_id if isinstance(copy.broker_id, int) else -1
        return choose_protocol(
            copy.view,
            wanted=None,
            is_kraft=self.evidence.facts.has_metadata_log(),
            hint=self.evidence.protocol_hints.get(broker),
        )


def _directories(copies: Iterable[LogCopy]) -> list[Replica]:
    return [copy.view.replica for copy in copies if not copy.is_remnant]


def _led_since(truncation: ObservedTruncation, states: Sequence[Leadership]) -> bool:
    """Whether a broker may have led since its log was shortened."""
    since = truncation.time_ms
    return any(
        state.leader == truncation.broker_id
        and not (isinstance(since, int) and isinstance(state.time_ms, int) and state.time_ms < since)
        for state in states
    )


def _ordinary_truncations(observed: Iterable[ObservedTruncation], leaderships: Sequence[Leadership]) -> frozenset[int]:
    """Return the targets of truncations that an unclean election or a leader's own loss explains."""
    lost: set[int] = set()
    for truncation in observed:
        election = election_behind(truncation, leaderships)
        is_own_loss = truncation.rule == "recovery" or not truncation.is_logged
        if is_own_loss or (election is not None and election.unclean):
            lost.add(truncation.to_offset)
    return frozenset(lost)
