"""The reconciler: the replicas of one partition in, verdicts, expected truncations and what-ifs out."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

from kforensics.ask.model import Ask
from kforensics.damage import Absent
from kforensics.evidence.metadata.state import majority
from kforensics.evidence.model import BatchReader, Replica
from kforensics.protocol.epochs import epoch_at
from kforensics.protocol.truncation import ProtocolName, TruncationOutcome
from kforensics.protocol.versions import PROTOCOL_RULES
from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts
from kforensics.reconcile.logs.divergence import (
    Divergence,
    damage_at,
)
from kforensics.reconcile.logs.loaded_log import LoadedLog, load_log, load_logs, log_as_it_lies
from kforensics.reconcile.logs.log_pairs import LogPairs
from kforensics.reconcile.observed.facts import ClusterFacts, Given, Leadership, electable_of
from kforensics.reconcile.observed.leadership import account_of
from kforensics.reconcile.observed.own_evidence import held_epochs, states_of, term_after_copying
from kforensics.reconcile.replicas.leader import (
    ExpectedTruncation,
    ProtocolChoice,
    choose_leader,
    choose_protocol,
    expected_truncation,
    follower_outcome,
    is_current,
    next_epoch,
)
from kforensics.reconcile.replicas.placement import becoming_strays, directories_of, displaced_on, possibly_emptied
from kforensics.reconcile.replicas.report import (
    WORST,
    EmptiedReplica,
    OddOne,
    PartitionReport,
    PastEnd,
    ReplicaReport,
    SoleHolder,
    Verdict,
    WhatIf,
    distinct_counts,
    sole_runs,
)
from kforensics.reconcile.replicas.what_if import LeaderChoices, order_of
from kforensics.units import METADATA_TOPICS, Depth


@dataclass(eq=False)
class PartitionJudge:
    """The replicas of one topic name and partition, loaded, and what is known of it: `report` judges them against its leader."""

    replicas: Sequence[Replica]
    """Every directory of that name, of all nodes and log directories."""
    reader: BatchReader
    """It gives batches and records where digests differ or records have to be counted."""
    facts: ClusterFacts
    _: KW_ONLY
    ask: Ask = field(default_factory=Ask)
    """What is said of it: the protocol, the leader, the replicas where no metadata says them, that no broker ran, and how much of it was read."""
    protocol_hints: Mapping[int, ProtocolName] = field(default_factory=dict)
    """The protocols by versions in log files, by broker."""
    possible_protocols: Mapping[int, Sequence[ProtocolName]] = field(default_factory=dict)
    """The protocols that the files of a broker's log directories leave possible, the likeliest first."""
    given: Given = field(default_factory=dict)
    """Brokers whose log directories are among the inputs."""

    def __post_init__(self) -> None:
        replicas, facts = self.replicas, self.facts
        self.wanted_protocol = ProtocolName(self.ask.protocol) if self.ask.protocol else None
        self.partition = replicas[0].topic_partition
        self.set_aside = tuple(r for r in replicas if r.state in {"deleted", "stray"})
        self.kept = kept = [r for r in replicas if r.state not in {"deleted", "stray"}]
        self.topic_id = self._current_topic_id(kept)
        self.of_other_topics = [r for r in kept if not self._is_same_topic(r)]
        views = list(map(self._without_stale_high_watermark, load_logs([r for r in kept if self._is_same_topic(r)])))
        every = [v for v in views if v.replica.is_live]
        self.is_quorum = self.partition.topic in METADATA_TOPICS
        known_epochs = [epoch for view in every if isinstance(epoch := view.last_epoch, int)]
        held = [held_epochs(view) for view in every]
        self.account = account_of(
            self.partition,
            self.topic_id,
            facts,
            states=states_of(self.partition, self.topic_id, facts, held),
            newest_epoch=max(known_epochs, default=Absent.UNKNOWN),
            given=frozenset(self.given),
            by_high_watermark=(
                self.wanted_protocol is not None and not PROTOCOL_RULES[self.wanted_protocol].keeps_epochs
            )
            or any(isinstance(v.oldest_magic, int) and v.oldest_magic < 2 for v in every),
        )
        self.leaderships = self.account.states
        newest = self.leaderships[-1] if self.leaderships else None
        self.is_deleted = not self.is_quorum and (
            facts.is_deleted(self.partition.topic, self.topic_id) or self._is_forgotten()
        )
        is_known = newest is not None and is_current(newest, every) and not self.is_deleted
        # Lines of some brokers only, or lines that are younger than the directories, say nothing about leader and ISR of these directories; what was recorded with them does.
        self.later_epoch = Absent.NOT_APPLICABLE if self.is_quorum else self._later_epoch(every)
        by_lines = newest is not None and isinstance(newest.recorded_at, Absent) and not self.is_quorum
        self.is_of_another_time = isinstance(self.later_epoch, int) or (by_lines and not self.account.reaches_now)
        self.current = newest if is_known and not (by_lines and self.is_of_another_time) else None
        self.assigned = self._assigned(newest)
        # Every broker keeps a copy of the metadata log, whoever its voters are.
        known = (
            ()
            if self.is_quorum
            or self.current is None
            or isinstance(self.current.replicas, Absent)
            # Log lines need not report the last reassignment.
            or isinstance(self.current.recorded_at, Absent)
            else self.current.replicas
        )
        brokers = {v.replica.broker_id for v in every}
        outside = {b for b in brokers if isinstance(b, int) and known and b not in known}
        # Of a deleted topic no directory is a replica any more: nothing is truncated there.
        assigned = [v for v in every if v.replica.broker_id not in outside and not self.is_deleted]
        self.live = [v for v in assigned if v.replica.is_log_known]
        self.outside = [v for v in every if v.replica.broker_id in outside or self.is_deleted]
        future = [v for v in views if v.replica.state == "future"]
        self.future = [v for v in future if v.replica.is_log_known]
        self.unread = [v for v in (*assigned, *future) if not v.replica.is_log_known]
        """Replicas whose log could not be read, or is not here: where it ends is unknown, so that none is compared with it."""
        self.compared = LogPairs(self.reader, [*self.live, *self.outside, *self.future])
        self._reports: dict[tuple[int, int], ReplicaReport] = {}

    def _is_forgotten(self) -> bool:
        """Whether only directories that wait for their removal are given, and log lines say that the topic was deleted, or a voter's metadata log as it is now does not know it: of one that was compacted no record says so."""
        facts, topic = self.facts, self.partition.topic
        if not self.kept and facts.is_deletion_logged(topic):
            return True
        is_left = bool(self.set_aside) and all(
            one.state == "deleted" and not isinstance(one.topic_id, Absent) for one in self.set_aside
        )
        is_current = facts.has_metadata_log() and facts.is_newest_metadata() and not facts.knows_every_deletion()
        return is_left and not self.kept and is_current and isinstance(facts.topic_id(topic), Absent)

    def _is_unknown_topic(self) -> bool:
        """Whether a metadata log is given that has neither the topic of these directories nor a record of its end."""
        facts, is_known = self.facts, self.is_quorum or self.is_deleted or bool(self.leaderships)
        return facts.has_metadata_log() and not is_known and not isinstance(self.topic_id, Absent)

    def _assigned(self, newest: Leadership | None) -> tuple[int, ...] | Absent:
        if newest is not None and isinstance(newest.replicas, tuple) and newest.replicas and not self.is_deleted:
            self.is_assignment_stated = False
            in_sync = () if isinstance(newest.isr, Absent) else newest.isr
            return *newest.replicas, *sorted({*in_sync} - {*newest.replicas})
        self.is_assignment_stated = bool(self.ask.replicas) and not self.is_quorum
        return tuple(self.ask.replicas) if self.is_assignment_stated else Absent.UNKNOWN

    def _current_topic_id(self, kept: Sequence[Replica]) -> str | Absent:
        """Return the id that the metadata knows now, where a replica has it or that of a topic of another name; else the one most replicas hold, the newest data breaking a tie."""
        facts, topic = self.facts, self.partition.topic
        known = facts.topic_id(topic)
        ids = [r.topic_id for r in kept if not isinstance(r.topic_id, Absent)]
        if not isinstance(known, Absent) and any(one == known or facts.is_of_another(topic, one) for one in ids):
            return known
        if len(set(ids)) < 2:
            return ids[0] if ids else Absent.UNKNOWN
        newest = {i: max((s.mtime_ns for r in kept if r.topic_id == i for s in r.segments), default=0) for i in ids}
        return max(sorted(set(ids)), key=lambda i: (ids.count(i), newest[i]), default=Absent.UNKNOWN)

    def _is_same_topic(self, replica: Replica) -> bool:
        return (
            isinstance(replica.topic_id, Absent)
            or isinstance(self.topic_id, Absent)
            or replica.topic_id == self.topic_id
        )

    def _without_stale_high_watermark(self, view: LoadedLog) -> LoadedLog:
        """Leave out a high watermark past the log end of a recreated topic: a checkpoint keeps the line of a deleted one until it is written again, as by a clean stop."""
        recorded = view.replica.high_watermark
        is_written_again = view.replica.clean_shutdown or not (self.set_aside or self.of_other_topics)
        if is_written_again or isinstance(recorded, Absent) or recorded.value <= view.log_end_offset:
            return view
        return replace(
            view, replica=replace(view.replica, high_watermark=Absent.UNKNOWN), high_watermark=view.log_start_offset
        )

    def report(self) -> PartitionReport:
        """Return the verdict on each replica.

        Raises:
            EndsDoNotDecideError: the ends of logs were read, and the batches where they part contradict what is known of the rest.
        """
        electable = self.electable()
        unread = [v for v in self.unread if v.replica.is_live]
        live = [*self.live, *unread]
        eligible = [v for v in live if isinstance(electable, Absent) or v.replica.broker_id in electable]
        # Only a voter of the metadata log can lead it; of other partitions the newest record decides.
        candidates = eligible if self.is_quorum else live
        leader = choose_leader(
            candidates or live or self.future or self.outside,
            wanted=self.ask.leader,
            leaderships=self.leaderships,
            is_stopped=self.ask.is_stopped and not self.is_quorum,
            has_newest=self.facts.is_newest_metadata(),
            outvoted={v.replica.broker_id for v in self.live} - {v.replica.broker_id for v in candidates},
        )
        if leader is not None and leader.source != "option" and self.is_of_another_time:
            why = (
                f"records or log lines name leader epoch {self.later_epoch}, later than the directories"
                if isinstance(self.later_epoch, int)
                else "log files of other brokers, which are not given, may name a later leader"
            )
            leader = leader._replace(is_known=False, reason=f"{leader.reason}; {why}")
        if leader is not None and unread and not leader.is_known:
            leader = None  # the one whose log is not known may lead
        is_leader_read = leader is not None and leader.view not in unread
        judge = (
            CommitJudge(
                [*self.live, *self.outside, *self.future],
                self.compared.agree_until,
                self.facts,
                self.reader,
                is_quorum=self.is_quorum,
                is_recreated=bool(self.set_aside or self.of_other_topics),
            )
            if is_leader_read
            else None
        )
        emptied, missing = self._directories()
        strays = (
            () if self.current is None or self.is_quorum else tuple(becoming_strays(live, self.current, self.given))
        )
        odd_ones: tuple[OddOne, ...] = ()
        sole: tuple[SoleHolder, ...] = ()
        what_if: tuple[WhatIf, ...] = ()
        reports: list[ReplicaReport] = []
        if leader is not None and judge is not None:
            epoch = next_epoch([*self.live, *self.future], leader.leader_epoch)
            reports = [self.judge_replica(v, leader.view, epoch, judge) for v in self.live]
            reports += [self._judge_future(v, leader.view, epoch, judge) for v in self.future]
            reports += [
                ReplicaReport(view=v, verdict=Verdict.NOT_ASSIGNED)
                for v in self.outside
                if self.is_deleted or v is not leader.view
            ]
            reports = self._high_watermark_lost(reports, is_whole=not missing and not unread)
            odd_ones = self._odd_ones(reports)
            choices = LeaderChoices(self, judge, epoch, (*emptied, *strays))
            sole, what_if = choices.nothing_to_lose() or (self._sole_holders(judge), choices.what_if())
            if unread:
                # They may hold what of those read one alone does: only what follows this very leader is sure.
                sole, what_if = (), tuple(one for one in what_if if one.leader is leader.view)
        not_judged = self.unread if judge is not None else [*self.live, *self.future, *self.unread]
        reports += [ReplicaReport(view=v, verdict=Verdict.UNREADABLE) for v in not_judged]
        reports.sort(key=lambda r: (not r.view.replica.is_live, order_of(r.view.replica)))
        reports += [ReplicaReport(view=load_log(r), verdict=Verdict.DIFFERENT_TOPIC) for r in self.of_other_topics]
        unassigned = self._unassigned_holders(judge) if judge is not None and not unread else ()
        recovered = self._recovered(judge) if judge is not None and (self.is_quorum or not unread) else ()
        return PartitionReport(
            partition=self.partition,
            topic_id=self.topic_id,
            leader=leader,
            verdict=max((r.verdict for r in reports), key=WORST.__getitem__, default=Verdict.UNREADABLE),
            replicas=tuple(reports),
            what_if=what_if,
            missing_replicas=missing,
            without_disk=frozenset(self.given) & frozenset(missing),
            set_aside=self.set_aside,
            assigned=self.assigned,
            is_assignment_stated=self.is_assignment_stated,
            isr=Absent.UNKNOWN if self.current is None else self.current.isr,
            electable=electable,
            sole_holders=sole,
            unassigned_holders=unassigned,
            unassigned_counts=self._distinct_counts(unassigned, judge),
            recovered=recovered,
            recovered_counts=self._distinct_counts(recovered, judge),
            odd_ones=odd_ones,
            emptied=emptied,
            strays=strays,
            displaced=() if self.current is None else displaced_on(live, self.current, self.given),
            is_deleted=self.is_deleted,
            is_replaced=self.is_deleted and not isinstance(self.facts.topic_id(self.partition.topic), Absent),
            is_unknown_topic=self._is_unknown_topic(),
            is_quorum=self.is_quorum,
            is_stopped=self.ask.is_stopped,
            account=None if self.is_quorum else self.account,
            depth=self.ask.depth or Depth.CONTENT,
            not_compared_below=self._not_compared_below(),
            later_epoch=self.later_epoch,
            logged_past_end=self._logged_past_end(leader.view if leader is not None and leader.is_known else None),
        )

    def _not_compared_below(self) -> int:
        """Return the offset below which content was not compared; a replica that nothing is compared with is read at its end alone."""
        unread = max((view.replica.unread_below for view in (*self.live, *self.future)), default=0)
        return max((one.last + 1 for one in self.compared.undecided), default=unread) if unread else 0

    def _logged_past_end(self, leader: LoadedLog | None) -> tuple[PastEnd, ...]:
        """Return the logs that had grown past the end of every log that holds what the leader does, by lines of their brokers, the longest first."""
        ends = self.facts.logged_ends(self.partition)
        logs, since = [*self.live, *self.future], self.facts.exists_since_ms(self.partition.topic)
        past = []
        for view in self.live:
            broker = view.replica.broker_id
            end = ends.get(broker) if isinstance(broker, int) else None
            if end is None or end.offset <= view.log_end_offset:
                continue
            held = max(one.log_end_offset for one in logs if one is view or self._goes_on_as(one, leader))
            if end.offset > held:
                is_furthest = held == max(one.log_end_offset for one in logs)
                is_same = isinstance(since, int) and isinstance(end.time_ms, int) and since <= end.time_ms
                past.append(PastEnd(view, end, held, is_furthest, is_same))
        return tuple(sorted(past, key=lambda one: -one.end.offset))

    def _goes_on_as(self, view: LoadedLog, leader: LoadedLog | None) -> bool:
        """Whether a log ends no later than that of the leader, or holds what that one does."""
        if leader is None or view.log_end_offset <= leader.log_end_offset:
            return True
        return self.compared.agree_until(view, leader) >= leader.log_end_offset

    def _later_epoch(self, live: Sequence[LoadedLog]) -> int | Absent:
        """Return the leader epoch that records or log lines name and the directory of its leader does not know; a leader of 2.0.1 and later enters it in its checkpoint at once (KAFKA-7415)."""
        known = max((epoch for view in live if isinstance(epoch := view.last_epoch, int)), default=-1)
        newest = next((state for state in reversed(self.leaderships) if isinstance(state.leader, int)), None)
        if newest is None:
            return Absent.NOT_APPLICABLE
        later = self.facts.later_epoch(self.partition)
        if isinstance(later, int) and later > max(newest.leader_epoch, known):
            return later
        own = next((view for view in live if view.replica.broker_id == newest.leader), None)
        if own is None:
            return Absent.NOT_APPLICABLE
        named = self.protocol_hints.get(int(str(newest.leader)))
        hints = {named} if named is not None else set(self.protocol_hints.values())
        term = term_after_copying(
            self.leaderships,
            own,
            live,
            keeps_epoch=bool(hints) and all(PROTOCOL_RULES[one].is_after_2_0_1 for one in hints),
        )
        return Absent.NOT_APPLICABLE if term is None else term

    def _directories(self) -> tuple[tuple[EmptiedReplica, ...], tuple[int, ...]]:
        """Return assigned brokers that are given and hold nothing of it, and those of which no directory of it is given."""
        unread = [v for v in self.unread if v.replica.is_live]
        holders = {v.replica.broker_id for v in (*self.live, *unread, *self.outside)}
        if self.is_quorum:
            # Observers may hold a copy, and need not.
            return (), () if isinstance(self.assigned, Absent) else tuple(sorted(set(self.assigned) - holders))
        if self.current is None:
            emptied = () if self.is_deleted else possibly_emptied(self.partition, holders, self.given)
            missing = set(() if isinstance(self.assigned, Absent) else self.assigned) - holders
            return emptied, tuple(sorted(missing - {one.broker_id for one in emptied}))
        emptied, elsewhere = directories_of(self.partition, self.current, holders, self.given, self.facts)
        return tuple(map(self._with_what_is_left, emptied)), elsewhere

    def _with_what_is_left(self, emptied: EmptiedReplica) -> EmptiedReplica:
        """Name the directory that its broker holds in place of a live one of the topic."""
        other = next((r for r in self.of_other_topics if r.broker_id == emptied.broker_id), None)
        if other is not None:
            reason = f"its directory has topic id {other.topic_id} (the topic has {self.topic_id})"
            return emptied._replace(reason=reason)
        left = [v.replica.state for v in (*self.future, *self.unread) if v.replica.broker_id == emptied.broker_id]
        left += [one.state for one in self.set_aside if one.broker_id == emptied.broker_id]
        if not left or emptied.is_certain:
            return emptied
        return emptied._replace(reason=f"it holds a {left[0]} directory of it alone")

    def electable(self) -> frozenset[int] | Absent:
        """Return the brokers that can be elected without an operator's doing."""
        if self.is_quorum:
            return self.assigned if isinstance(self.assigned, Absent) else self._winners(self.assigned)
        if self.current is None or isinstance(self.current.isr, Absent):
            return Absent.UNKNOWN
        return electable_of(self.current)

    def _winners(self, voters: Sequence[int]) -> frozenset[int]:
        """Voters that a majority can elect: a voter gives no vote to one with a shorter log than its own (KIP-595)."""
        logs = {
            v.replica.broker_id: (-1 if isinstance(epoch := v.last_epoch, Absent) else epoch, v.log_end_offset)
            for v in self.live
            if v.replica.broker_id in voters
        }
        needed = majority(len(voters))
        return frozenset(
            broker
            for broker, log in logs.items()
            if isinstance(broker, int) and sum(other not in logs or logs[other] <= log for other in voters) >= needed
        )

    def _is_lagging_copy(self, view: LoadedLog) -> bool:
        """Whether the end of a log may be missing only because it was copied earlier than others, or lost power.

        A member of the ISR holds all that is committed; one that was stopped cleanly, or fell out of the ISR, lacks what it lacks. A log that its recovery cuts, though
        sound records follow, had been written further.
        """
        if self.ask.is_stopped or view.replica.clean_shutdown or view.sound_records_dropped:
            return False
        if self.is_quorum or self.current is None or isinstance(self.current.isr, Absent):
            return True
        return view.replica.broker_id in self.current.isr

    def _sole_holders(self, judge: CommitJudge) -> tuple[SoleHolder, ...]:
        # Of the metadata log only the voters count: what others hold makes nothing committed.
        counted = [
            v
            for v in self.live
            if not self.is_quorum or isinstance(self.assigned, Absent) or v.replica.broker_id in self.assigned
        ]
        if len(counted) < 2 or any(v.left_out for v in counted):
            return ()  # what a segment held that is not here may be on its broker still
        found = (self._sole_holder(view, [other for other in counted if other is not view], judge) for view in counted)
        return tuple(one for one in found if one is not None)

    def _aside(self) -> list[LoadedLog]:
        """Return renamed directories of the topic as it is now: what a broker puts aside can be the last copy."""
        return [
            # The line of a checkpoint means the replica that bears the name.
            load_log(replace(one, high_watermark=Absent.UNKNOWN, recovery_point=Absent.UNKNOWN))
            for one in self.set_aside
            if not self.is_deleted and not isinstance(one.topic_id, Absent) and one.topic_id == self.topic_id
        ]

    def _unassigned_holders(self, judge: CommitJudge) -> tuple[SoleHolder, ...]:
        views = (*self.outside, *self._aside()) if self.live else ()
        found = (self._sole_holder(view, self.live, judge) for view in views)
        return tuple(one for one in found if one is not None)

    def _recovered(self, judge: CommitJudge) -> tuple[SoleHolder, ...]:
        """Return the logs, as they lie, of which start-up recovery will discard sound records that no log holds then; of the metadata log what no majority of the voters is shown to hold."""
        recovering = (one for one in self.live if one.truncated_by_recovery)
        found = (
            self._sole_holder(lies, self._keepers(lies, one), judge)
            for one in recovering
            for lies in [log_as_it_lies(one)]
        )
        return tuple(one for one in found if one is not None and one.counts.records)

    def _keepers(self, lies: LoadedLog, recovered: LoadedLog) -> Sequence[LoadedLog]:
        """Return the logs of which one that holds what recovery discards shows that it is kept."""
        if not self.is_quorum:
            return self.live
        voters = () if isinstance(self.assigned, Absent) else self.assigned
        held = [one for one in self.live if one.replica.broker_id in voters]
        held.sort(key=lambda one: -self.compared.held_until(lies, one))
        # A majority holds what the shortest of its longest logs does.
        return [*held[majority(len(voters)) - 1 :], recovered]

    def _distinct_counts(self, holders: Sequence[SoleHolder], judge: CommitJudge | None) -> CommittedCounts | None:
        if judge is None or not holders:
            return None
        losses = [(one.view, one.offsets.first, one.offsets.last + 1) for one in holders]
        return distinct_counts(losses, self.compared, judge)

    def _sole_holder(self, view: LoadedLog, others: Sequence[LoadedLog], judge: CommitJudge) -> SoleHolder | None:
        found = sole_runs(view, others, self.compared, judge)
        if found is None:
            return None
        offsets, runs = found
        return SoleHolder(
            view=view,
            offsets=offsets,
            runs=runs,
            counts=CommittedCounts.of(runs),
            is_tail_of_a_copy=any(
                self._is_lagging_copy(other) and self.compared.agree_until(view, other) == other.log_end_offset
                for other in others
            ),
            is_other_content=any(other.log_end_offset > offsets.first for other in others),
        )

    def protocol_of(self, follower: LoadedLog) -> ProtocolChoice:
        """Return the truncation protocol of a follower."""
        broker = follower.replica.broker_id
        chosen = choose_protocol(
            follower,
            wanted=self.wanted_protocol,
            is_kraft=self.facts.has_metadata_log(),
            hint=None if isinstance(broker, Absent) else self.protocol_hints.get(broker),
            possible=() if isinstance(broker, Absent) else self.possible_protocols.get(broker, ()),
        )
        if PROTOCOL_RULES[chosen.name].may_halt_out_of_range:
            return chosen._replace(
                halts_out_of_range=self.facts.halts_out_of_range(follower.replica.topic_partition.topic)
            )
        return chosen

    def judge_replica(self, view: LoadedLog, leader: LoadedLog, epoch: int, judge: CommitJudge) -> ReplicaReport:
        """Return the verdict on a replica against the log that it follows."""
        if view is leader:
            return ReplicaReport(view=view, verdict=Verdict.LEADER)
        # A report holds both of its logs, so that no later one takes the id of one of them.
        at = (id(view), id(leader))
        if at not in self._reports:
            self._reports[at] = self._judged(view, leader, epoch, judge)
        return self._reports[at]

    def _judged(self, view: LoadedLog, leader: LoadedLog, epoch: int, judge: CommitJudge) -> ReplicaReport:
        protocol = self.protocol_of(view)
        outcome = follower_outcome(view, leader, protocol=protocol, new_epoch=epoch, is_quorum=self.is_quorum)
        if view.replica.high_watermark is Absent.UNREADABLE:
            # From where on it may truncate to its high watermark is not known where that makes a difference.
            at_end = replace(view, high_watermark=view.log_end_offset)
            other = follower_outcome(at_end, leader, protocol=protocol, new_epoch=epoch, is_quorum=self.is_quorum)
            if other.offset != outcome.offset:
                return ReplicaReport(view=view, verdict=Verdict.UNREADABLE, protocol=protocol, compared_with=leader)
        divergence = self.compared.divergence(view, leader)
        truncation = expected_truncation(
            view,
            leader,
            outcome,
            protocol=protocol,
            same_until=self._held_by_leader_until(view, leader, divergence),
            judge=judge,
            reader=self.reader,
        )
        is_gap = divergence is not None and any(one.is_left_out(divergence.offset) for one in (view, leader))
        shown = self.compared.past_damage(view, leader) if is_gap else divergence
        return ReplicaReport(
            view=view,
            verdict=_verdict(view, leader, shown, truncation),
            protocol=protocol,
            truncation=truncation,
            divergence=shown,
            outcome=outcome,
            compared_with=leader,
            without_file=self._without_file(view, leader, protocol, epoch),
            by_other_protocols=self._by_other_protocols(view, leader, protocol, outcome, epoch),
            is_tail_of_a_copy=truncation is not None and self._is_tail(view, leader),
        )

    def _held_by_leader_until(self, view: LoadedLog, leader: LoadedLog, divergence: Divergence | None) -> int:
        if divergence is None:
            return leader.log_end_offset
        if divergence.is_open:
            return divergence.offset
        until = self.compared.same_records_until(view, leader)
        # What a leader's damage took it can't give back.
        return min([until, *(lost.first for lost in leader.lost_ranges)])

    def _is_tail(self, view: LoadedLog, leader: LoadedLog) -> bool:
        """Whether a log continues where the leader's ends, in the same leader epoch, and the leader's copy may be the older one."""
        if self.compared.agree_until(view, leader) != leader.log_end_offset or not self._is_lagging_copy(leader):
            return False
        began, newest = epoch_at(view.batch_epochs, leader.log_end_offset), leader.last_epoch
        # A leader that entered a newer epoch there had no more when it was elected.
        return isinstance(began, Absent) or isinstance(newest, Absent) or began >= newest

    def _by_other_protocols(
        self, view: LoadedLog, leader: LoadedLog, protocol: ProtocolChoice, outcome: TruncationOutcome, epoch: int
    ) -> tuple[tuple[ProtocolName, int | Absent], ...]:
        others = (
            (name, follower_outcome(view, leader, protocol=protocol._replace(name=name), new_epoch=epoch).offset)
            for name in protocol.alternatives
        )
        return tuple((name, offset) for name, offset in others if offset != outcome.offset)

    def _without_file(
        self, view: LoadedLog, leader: LoadedLog, protocol: ProtocolChoice, epoch: int
    ) -> TruncationOutcome | None:
        if view.epochs_from != "batches" or not view.epochs or self.is_quorum:
            return None
        return follower_outcome(replace(view, epochs=view.scanned_epochs), leader, protocol=protocol, new_epoch=epoch)

    def _judge_future(self, view: LoadedLog, leader: LoadedLog, epoch: int, judge: CommitJudge) -> ReplicaReport:
        """Judge a future replica against its own broker's current replica (KIP-113), or the leader where that one is not here."""
        current = next((v for v in self.live if v.replica.broker_id == view.replica.broker_id), leader)
        return self.judge_replica(view, current, epoch, judge)

    def _high_watermark_lost(self, reports: list[ReplicaReport], *, is_whole: bool) -> list[ReplicaReport]:
        """Mark the replica whose high watermark is past every log end: it proves that committed records are on no disk here."""
        if not is_whole or not reports:
            return reports
        end = max(r.view.log_end_offset for r in reports)
        out = []
        for report in reports:
            recorded = report.view.replica.high_watermark
            if not isinstance(recorded, Absent) and recorded.value > end:
                # A copy of a running broker ends so as well: nothing shows that anything is lost.
                is_sure = self.ask.is_stopped or report.view.replica.clean_shutdown
                verdict = max(report.verdict, Verdict.LOST, key=WORST.__getitem__) if is_sure else report.verdict
                report = replace(report, verdict=verdict, past_end=recorded)  # noqa: PLW2901
            out.append(report)
        return out

    def _odd_ones(self, reports: Sequence[ReplicaReport]) -> tuple[OddOne, ...]:
        """Return the replicas that are wrong where others differ for good: by their checksums, else by the majority of those given."""
        parted = [
            r.divergence.offset for r in reports if r.verdict is Verdict.SILENT_DIVERGENCE and r.divergence is not None
        ]
        if not parted:
            return ()
        if any(damage_at(offset, v) is not None for offset in parted for v in self.live):
            # Only the first difference of each is known; a replica with damage elsewhere is no measure for the others either.
            return tuple(
                OddOne(view=v, reason=f"its log can't give offsets {lost[0].first} to {lost[0].last}")
                for v in self.live
                if (lost := v.lost_ranges)
            )
        offset = min(parted)
        holders = [v for v in self.live if v.content_start_offset <= offset < v.log_end_offset]
        damaged = {id(v): where for v in holders if (where := v.damage_before(offset))}
        sound = [v for v in holders if id(v) not in damaged]
        groups: list[list[LoadedLog]] = []
        for view in sound:
            group = next((g for g in groups if self.compared.agree_until(g[0], view) > offset), None)
            if group is None:
                groups.append([view])
            else:
                group.append(view)
        groups.sort(key=len, reverse=True)
        if not groups or len(groups[0]) * 2 <= len(sound):
            return ()
        intact = " intact" if damaged else ""
        reason = f"{len(groups[0])} of the {len(sound)} replicas given{intact} hold the same there"
        odd = [OddOne(view=view, reason=reason) for group in groups[1:] for view in group]
        # However many replicas are damaged, they are no measure for one that is not.
        odd += [
            OddOne(view=view, reason=damaged[id(view)])
            for view in holders
            if id(view) in damaged and self.compared.agree_until(groups[0][0], view) <= offset
        ]
        return tuple(odd)


def _verdict(
    view: LoadedLog, leader: LoadedLog, divergence: Divergence | None, truncation: ExpectedTruncation | None
) -> Verdict:
    is_parted = divergence is not None and not divergence.is_open
    if is_parted and divergence is not None and (truncation is None or divergence.offset < truncation.offset):
        return Verdict.SILENT_DIVERGENCE
    if truncation is not None:
        return Verdict.WILL_TRUNCATE
    return Verdict.BEHIND if view.log_end_offset < leader.log_end_offset else Verdict.CONSISTENT
