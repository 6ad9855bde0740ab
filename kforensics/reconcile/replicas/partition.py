"""The reconciler: the replicas of one partition in, verdicts, expected truncations and what-ifs out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, CheckpointValue, Replica
from kforensics.protocol.truncation import ProtocolName, TruncationOutcome
from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts
from kforensics.reconcile.logs.divergence import Divergence, agreed_until, first_divergence
from kforensics.reconcile.logs.loaded_log import LoadedLog, load_log
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.replicas.expected_truncation import (
    ExpectedTruncation,
    expected_truncation,
    follower_outcome,
    next_epoch,
)
from kforensics.reconcile.replicas.leader import LeaderChoice, ProtocolChoice, choose_leader, choose_protocol
from kforensics.units import METADATA_TOPICS, TopicPartition


class Verdict(StrEnum):
    """What is true of a replica against the leader; of a partition, the worst of its replicas."""

    LEADER = "leader"
    CONSISTENT = "consistent"
    BEHIND = "behind"
    DIFFERENT_TOPIC = "different-topic"
    UNREADABLE = "unreadable"
    WILL_TRUNCATE = "will-truncate"
    LOST = "lost"
    SILENT_DIVERGENCE = "silent-divergence"


_WORST = {verdict: rank for rank, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaReport:
    """One replica judged."""

    view: LoadedLog
    verdict: Verdict
    protocol: ProtocolChoice | Absent
    truncation: ExpectedTruncation | None
    divergence: Divergence | None
    outcome: TruncationOutcome | None
    compared_with: LoadedLog | None
    without_file: TruncationOutcome | None = None
    """What the broker does if it finds no epoch checkpoint, where `outcome` rests on epochs rebuilt from batches."""
    past_end: CheckpointValue | None = None
    """A high watermark on record that lies past every log end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What every other replica would cut if one replica led."""

    leader: LoadedLog
    truncations: tuple[tuple[LoadedLog, ExpectedTruncation], ...]
    lost_certain: int
    lost_possible: int
    kept_divergent: int
    """Replicas that would keep content that differs from this leader's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """One partition judged."""

    partition: TopicPartition
    topic_id: str | Absent
    leader: LeaderChoice | None
    verdict: Verdict
    replicas: tuple[ReplicaReport, ...]
    what_if: tuple[WhatIf, ...]
    missing_replicas: tuple[int, ...]
    """Brokers that the metadata assigns the partition to, of which no live directory of it is among the inputs."""
    set_aside: tuple[Replica, ...] = ()
    """Directories of the partition that are no replica of it any more: deleted and stray ones."""


def reconcile_partition(
    replicas: Sequence[Replica],
    *,
    reader: BatchReader,
    facts: ClusterFacts,
    wanted_leader: int | None = None,
    wanted_protocol: ProtocolName | None = None,
    protocol_hints: Mapping[int, ProtocolName] | None = None,
) -> PartitionReport:
    """Judge all replicas of one topic name and partition against its leader.

    Args:
        replicas: every directory of that name, of all nodes and log dirs.
        reader: gives batches and records where digests differ or records have to be counted.
        facts: what the metadata log and the consumer groups say.
        wanted_leader: `--leader`.
        wanted_protocol: `--protocol`.
        protocol_hints: by broker, from versions in log files.
    """
    session = _Session(replicas, reader, facts, wanted_protocol, protocol_hints or {})
    return session.report(wanted_leader)


class _Session:
    def __init__(
        self,
        replicas: Sequence[Replica],
        reader: BatchReader,
        facts: ClusterFacts,
        wanted_protocol: ProtocolName | None,
        protocol_hints: Mapping[int, ProtocolName],
    ) -> None:
        self.partition = replicas[0].topic_partition
        self.reader = reader
        self.facts = facts
        self.wanted_protocol = wanted_protocol
        self.protocol_hints = protocol_hints
        self.set_aside = tuple(r for r in replicas if r.state in {"deleted", "stray"})
        kept = [r for r in replicas if r.state not in {"deleted", "stray"}]
        self.topic_id = self._current_topic_id(kept)
        self.strangers = [r for r in kept if not self._is_same_topic(r)]
        views = [self._without_stale_high_watermark(load_log(r)) for r in kept if self._is_same_topic(r)]
        self.live = [v for v in views if v.replica.state == "live"]
        self.future = [v for v in views if v.replica.state == "future"]
        self._divergences: dict[tuple[int, int], Divergence | None] = {}
        self.is_quorum = self.partition.topic in METADATA_TOPICS
        self.leaderships = facts.leaderships(self.partition, self.topic_id)

    def _current_topic_id(self, kept: Sequence[Replica]) -> str | Absent:
        """The id that the metadata knows now, else the one most replicas hold, the newest data breaking a tie."""
        known = self.facts.topic_id(self.partition.topic)
        ids = [r.topic_id for r in kept if not isinstance(r.topic_id, Absent)]
        if not isinstance(known, Absent) and known in ids:
            return known
        newest = {i: max((s.mtime_ns for r in kept if r.topic_id == i for s in r.segments), default=0) for i in ids}
        return max(sorted(set(ids)), key=lambda i: (ids.count(i), newest[i]), default=Absent.UNKNOWN)

    def _is_same_topic(self, replica: Replica) -> bool:
        return (
            isinstance(replica.topic_id, Absent)
            or isinstance(self.topic_id, Absent)
            or replica.topic_id == self.topic_id
        )

    def _without_stale_high_watermark(self, view: LoadedLog) -> LoadedLog:
        """A checkpoint keeps the line of a deleted topic until it is written again: past the log end it is no mark of a new topic of that name."""
        recorded = view.replica.high_watermark
        recreated = bool(self.set_aside or self.strangers)
        if not recreated or isinstance(recorded, Absent) or recorded.value <= view.log_end_offset:
            return view
        return replace(
            view, replica=replace(view.replica, high_watermark=Absent.UNKNOWN), high_watermark=view.log_start_offset
        )

    def divergence(self, one: LoadedLog, other: LoadedLog) -> Divergence | None:
        key = (id(one), id(other))
        if key not in self._divergences:
            found = first_divergence(one, other, self.reader)
            self._divergences[key] = self._divergences[(id(other), id(one))] = found
        return self._divergences[key]

    def agree_until(self, one: LoadedLog, other: LoadedLog) -> int:
        found = self.divergence(one, other)
        return agreed_until(one, other, found.offset if found is not None else None)

    def report(self, wanted_leader: int | None) -> PartitionReport:
        voters = self._voters()
        electable = [v for v in self.live if not voters or v.replica.broker_id in voters]
        leader = choose_leader(
            electable or self.live or self.future, wanted=wanted_leader, leaderships=self.leaderships
        )
        judge = (
            CommitJudge(
                [*self.live, *self.future],
                self.agree_until,
                self.facts,
                self.reader,
                is_quorum=self.is_quorum,
                is_recreated=bool(self.set_aside or self.strangers),
            )
            if leader
            else None
        )
        reports: list[ReplicaReport] = []
        if leader is not None and judge is not None:
            epoch = next_epoch([*self.live, *self.future], leader.leader_epoch)
            reports = [self._judge_replica(v, leader.view, epoch, judge) for v in self.live]
            reports += [self._judge_future(v, leader.view, epoch, judge) for v in self.future]
            reports = self._high_watermark_lost(reports)
            reports.sort(key=lambda r: (r.view.replica.state != "live", _order(r.view.replica)))
        reports += [self._stranger(r) for r in self.strangers]
        what_if = self._what_if(judge, leader) if judge is not None and leader is not None else ()
        return PartitionReport(
            partition=self.partition,
            topic_id=self.topic_id,
            leader=leader,
            verdict=max((r.verdict for r in reports), key=_WORST.__getitem__, default=Verdict.UNREADABLE),
            replicas=tuple(reports),
            what_if=what_if,
            missing_replicas=self._missing(),
            set_aside=self.set_aside,
        )

    def _missing(self) -> tuple[int, ...]:
        newest = self.leaderships[-1] if self.leaderships else None
        if newest is None or isinstance(newest.replicas, Absent):
            return ()
        here = {v.replica.broker_id for v in (*self.live, *self.future)}
        return tuple(sorted(set(newest.replicas) - here))

    def _protocol(self, follower: LoadedLog) -> ProtocolChoice:
        broker = follower.replica.broker_id
        return choose_protocol(
            follower,
            wanted=self.wanted_protocol,
            is_kraft=self.facts.has_metadata_log(),
            hint=None if isinstance(broker, Absent) else self.protocol_hints.get(broker),
        )

    def _judge_replica(self, view: LoadedLog, leader: LoadedLog, epoch: int, judge: CommitJudge) -> ReplicaReport:
        if view is leader:
            return ReplicaReport(
                view=view,
                verdict=Verdict.LEADER,
                protocol=Absent.NOT_APPLICABLE,
                truncation=None,
                divergence=None,
                outcome=None,
                compared_with=None,
            )
        protocol = self._protocol(view)
        outcome = follower_outcome(view, leader, protocol=protocol, new_epoch=epoch, is_quorum=self.is_quorum)
        divergence = self.divergence(view, leader)
        truncation = expected_truncation(
            view,
            leader,
            outcome,
            protocol=protocol,
            divergence_offset=divergence.offset if divergence else None,
            judge=judge,
            reader=self.reader,
        )
        return ReplicaReport(
            view=view,
            verdict=_verdict(view, leader, divergence, truncation),
            protocol=protocol,
            truncation=truncation,
            divergence=divergence,
            outcome=outcome,
            compared_with=leader,
            without_file=self._without_file(view, leader, protocol, epoch),
        )

    def _without_file(
        self, view: LoadedLog, leader: LoadedLog, protocol: ProtocolChoice, epoch: int
    ) -> TruncationOutcome | None:
        if view.epochs_from != "batches" or not view.epochs or self.is_quorum:
            return None
        return follower_outcome(replace(view, epochs=view.scanned_epochs), leader, protocol=protocol, new_epoch=epoch)

    def _judge_future(self, view: LoadedLog, leader: LoadedLog, epoch: int, judge: CommitJudge) -> ReplicaReport:
        """A future replica follows its own broker's current replica (KIP-113), or the leader where that one is not here."""
        current = next((v for v in self.live if v.replica.broker_id == view.replica.broker_id), leader)
        return self._judge_replica(view, current, epoch, judge)

    def _stranger(self, replica: Replica) -> ReplicaReport:
        return ReplicaReport(
            view=load_log(replica),
            verdict=Verdict.DIFFERENT_TOPIC,
            protocol=Absent.NOT_APPLICABLE,
            truncation=None,
            divergence=None,
            outcome=None,
            compared_with=None,
        )

    def _high_watermark_lost(self, reports: list[ReplicaReport]) -> list[ReplicaReport]:
        """A high watermark on record past every log end proves that committed records are on no disk here."""
        if self._missing():
            return reports
        end = max(r.view.log_end_offset for r in reports)
        out = []
        for report in reports:
            recorded = report.view.replica.high_watermark
            past = not isinstance(recorded, Absent) and recorded.value > end
            if past and not isinstance(recorded, Absent):
                verdict = max(report.verdict, Verdict.LOST, key=_WORST.__getitem__)
                report = replace(report, verdict=verdict, past_end=recorded)  # noqa: PLW2901
            out.append(report)
        return out

    def _what_if(self, judge: CommitJudge, leader: LeaderChoice) -> tuple[WhatIf, ...]:
        if len(self.live) < 2:
            return ()
        epoch = next_epoch([*self.live, *self.future], leader.leader_epoch)
        voters = self._voters()
        return tuple(
            self._if_led_by(candidate, judge, epoch)
            for candidate in sorted(self.live, key=lambda v: _order(v.replica))
            if not voters or candidate.replica.broker_id in voters
        )

    def _voters(self) -> frozenset[int]:
        """Of the metadata quorum, the members that can lead it; empty where any replica can, or they are not known."""
        newest = self.leaderships[-1] if self.is_quorum and self.leaderships else None
        return frozenset() if newest is None or isinstance(newest.replicas, Absent) else frozenset(newest.replicas)

    def _if_led_by(self, candidate: LoadedLog, judge: CommitJudge, epoch: int) -> WhatIf:
        truncations: list[tuple[LoadedLog, ExpectedTruncation]] = []
        kept = 0
        for view in self.live:
            if view is candidate:
                continue
            report = self._judge_replica(view, candidate, epoch, judge)
            if report.truncation is not None:
                truncations.append((view, report.truncation))
            kept += report.verdict is Verdict.SILENT_DIVERGENCE
        lost = self._lost_once(truncations)
        return WhatIf(
            leader=candidate,
            truncations=tuple(sorted(truncations, key=lambda item: _order(item[0].replica))),
            lost_certain=lost.certain,
            lost_possible=lost.possible,
            kept_divergent=kept,
        )

    def _lost_once(self, truncations: Sequence[tuple[LoadedLog, ExpectedTruncation]]) -> CommittedCounts:
        """What goes for good, the same records on several followers counted once: by the longest of the logs that agree."""
        certain = possible = 0
        counted: list[LoadedLog] = []
        for view, truncation in sorted(truncations, key=lambda item: -item[1].lost.records):
            if any(self.agree_until(view, other) >= view.log_end_offset for other in counted):
                continue
            counted.append(view)
            certain += truncation.lost.certain
            possible += truncation.lost.possible
        return CommittedCounts(certain=certain, possible=possible)


def _order(replica: Replica) -> tuple[int, str]:
    return (-1 if isinstance(replica.broker_id, Absent) else replica.broker_id, replica.path)


def _verdict(
    view: LoadedLog, leader: LoadedLog, divergence: Divergence | None, truncation: ExpectedTruncation | None
) -> Verdict:
    if divergence is not None and (truncation is None or divergence.offset < truncation.offset):
        return Verdict.SILENT_DIVERGENCE
    if truncation is not None:
        return Verdict.WILL_TRUNCATE
    return Verdict.BEHIND if view.log_end_offset < leader.log_end_offset else Verdict.CONSISTENT
