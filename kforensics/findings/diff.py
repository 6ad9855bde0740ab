"""Findings about replicas: expected truncations, divergence that no rule repairs, lost records, and what makes a comparison impossible."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from kforensics.damage import Absent, DamageKind
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, Inputs
from kforensics.evidence.model import Citation
from kforensics.evidence.replica.unaccounted import Sign
from kforensics.findings.missing import lost_directory_finding, missing_finding
from kforensics.findings.model import Confidence, Finding, Severity, finding
from kforensics.reconcile.logs.divergence import damage_at
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.replicas.report import PartitionReport, ReplicaReport, Verdict
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import form


class RefusedStart(NamedTuple):
    """A broker that does not start as it is, or takes a log directory offline."""

    broker_id: int
    input: int
    path: str
    """The directory whose load fails; empty where none does."""
    exception: str
    reason: str
    is_whole: bool
    """It does not start at all."""
    kafka: str
    """The version that is started."""

    @property
    def words(self) -> str:
        """What becomes of its start, as a sentence without its end."""
        does = "does not start as it is" if self.is_whole else "starts without one of its log directories"
        where = f"{self.path}: " if self.path else ""
        return f"broker {self.broker_id} {does} (Kafka {self.kafka}, {self.exception}: {where}{self.reason.strip().rstrip(':.')})"


_OF_TRUNCATIONS = frozenset({"KF201", "KF202", "KF203", "KF205"})


def with_refused_starts(findings: Iterable[Finding], refused: Sequence[RefusedStart]) -> Iterator[Finding]:
    """Yield findings, of which none promises the truncation of a broker that does not start, and those refusals.

    Args:
        refused: the brokers that do not start as they are.
    """
    whole = {one.broker_id for one in refused if one.is_whole}
    for item in findings:
        if item.code in _OF_TRUNCATIONS and item.broker_id in whole:
            yield replace(item, statement=f"{item.statement}; once the broker starts, which it does not as it is")
        else:
            yield item
    for one in refused:
        yield finding(
            "KF219",
            severity=Severity.ERROR,
            confidence=Confidence.LIKELY,
            statement=one.words,
            broker_id=one.broker_id,
            citations=(Citation(input=one.input, path=one.path or WHOLE_INPUT),),
        )


def partition_findings(report: PartitionReport) -> Iterator[Finding]:
    """Yield the findings of one partition.

    Args:
        report: its replicas, compared; replicas of brokers whose directories are set aside are not called missing.
    """
    for replica in report.replicas:
        yield from _replica_findings(report, replica)
        yield from _missing_findings(report, replica)
    yield from _lost_directories(report)
    for directory in report.set_aside:
        yield finding(
            "KF505" if directory.state == "stray" else "KF214",
            severity=Severity.NOTE,
            statement=f"{directory.path} of {directory.owner} is a {directory.state} directory of {report.partition}: left out of the comparison",
            topic_partition=report.partition,
            broker_id=directory.broker_id,
            citations=(directory.cite(),),
        )
    aside = set() if report.replicas else {directory.broker_id for directory in report.set_aside}
    missing = [str(broker) for broker in report.missing_replicas if broker not in aside]
    if missing and not any(one.view.replica.is_unnamed for one in report.replicas):
        yield finding(
            "KF213",
            severity=Severity.NOTE,
            statement=f"{report.partition} also belongs to {form(len(missing), 'broker')} {', '.join(missing)}: no live directory of it on {form(len(missing), 'that broker', 'those brokers')} is among the inputs",
            topic_partition=report.partition,
        )


def _missing_findings(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    """Offsets for which there is no segment; those above every log end have a finding of their own."""
    directory = replica.view.replica
    for one in replica.view.missing:
        if one.sign is not Sign.ABOVE_END or replica.past_end is None:
            yield missing_finding(one, report.partition, directory.cite(), directory.broker_id)


def _lost_directories(report: PartitionReport) -> Iterator[Finding]:
    for one in report.emptied:
        if one.named is not None:
            yield lost_directory_finding(report.partition, one.named, one.broker_id)


def missing_isr_findings(
    partition: TopicPartition, newest: Leadership, held_by: frozenset[int], given: frozenset[int]
) -> Iterator[Finding]:
    """Yield a partition whose whole ISR has lost it, by the disks of just those brokers.

    Args:
        held_by: brokers among the inputs with a live directory of it.
        given: brokers whose log directories are among the inputs.
    """
    if isinstance(newest.isr, Absent) or not newest.isr or newest.isr & held_by or not newest.isr <= given:
        return
    members = sorted(newest.isr)
    names = f"broker {members[0]} alone" if len(members) == 1 else f"brokers {', '.join(map(str, members))}"
    yield finding(
        "KF216",
        severity=Severity.ERROR,
        confidence=Confidence.LIKELY,
        statement=f"{partition}: the ISR is {names}, and no log directory of {form(len(members), 'it', 'theirs')} among the inputs holds the partition",
        topic_partition=partition,
        broker_id=members[0] if len(members) == 1 else Absent.NOT_APPLICABLE,
        citations=(newest.citation,),
    )


def _replica_findings(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    if replica.verdict is Verdict.DIFFERENT_TOPIC:
        directory = replica.view.replica
        yield finding(
            "KF504",
            severity=Severity.WARNING,
            statement=f"{directory.path} of {directory.owner} has topic id {directory.topic_id}, {report.partition} now has {report.topic_id}",
            topic_partition=report.partition,
            broker_id=directory.broker_id,
            citations=(directory.cite("partition.metadata"),),
        )
        return
    if replica.truncation is not None:
        yield _truncation_finding(report, replica)
        yield from _below_high_watermark(report, replica)
    if replica.verdict is Verdict.SILENT_DIVERGENCE or (
        replica.past_end and replica.divergence and _is_silent(replica)
    ):
        yield _silent_divergence(report, replica)
    if replica.past_end is not None:
        end = max(r.view.log_end_offset for r in report.replicas)
        is_sure = replica.view.replica.clean_shutdown or report.is_stopped
        yield finding(
            "KF207",
            severity=Severity.CRITICAL if is_sure else Severity.WARNING,
            confidence=Confidence.PROVEN if is_sure else Confidence.POSSIBLE,
            statement=f"{report.partition}: {report.owner_of(replica.view)} recorded high watermark {replica.past_end.value}, but every log ends at or below {end}{'' if is_sure else ': copied while it ran, or after a power loss'}",
            topic_partition=report.partition,
            broker_id=replica.view.replica.broker_id,
            offsets=OffsetRange(end, replica.past_end.value - 1),
            citations=(replica.past_end.citation,),
        )
    if replica.outcome is not None and replica.outcome.endless:
        yield finding(
            "KF209",
            severity=Severity.ERROR,
            confidence=Confidence.LIKELY,
            statement=f"{report.partition}: {report.owner_of(replica.view)} never finishes its truncation against this leader",
            topic_partition=report.partition,
            broker_id=replica.view.replica.broker_id,
        )
    if replica.outcome is not None and replica.outcome.halts:
        end = replica.outcome.after.log_end_offset
        yield finding(
            "KF218",
            severity=Severity.ERROR,
            confidence=Confidence.LIKELY,
            statement=f"{report.partition}: {report.owner_of(replica.view)} halts when it fetches at {end}, above the end of the log of this leader",
            topic_partition=report.partition,
            broker_id=replica.view.replica.broker_id,
        )
    if replica.divergence is not None and replica.divergence.is_open:
        yield _open_question(report, replica)
    yield from _own_log(report, replica)


def _open_question(report: PartitionReport, replica: ReplicaReport) -> Finding:
    asked = replica.divergence
    assert asked is not None
    return finding(
        "KF204",
        severity=Severity.NOTE,
        confidence=Confidence.POSSIBLE,
        statement=f"{report.partition}: {report.owner_of(replica.view)} and the replica it follows may differ at offset {asked.offset}, or compaction removed what would show that they do not: {asked.detail}",
        topic_partition=report.partition,
        broker_id=replica.view.replica.broker_id,
        offsets=OffsetRange(asked.offset, asked.offset),
        citations=asked.citations,
    )


def _is_silent(replica: ReplicaReport) -> bool:
    expected = replica.truncation
    parted = replica.divergence
    if parted is None or parted.is_open:
        return False
    return expected is None or parted.offset < expected.offset


def _truncation_finding(report: PartitionReport, replica: ReplicaReport) -> Finding:
    expected = replica.truncation
    assert expected is not None
    broker = replica.view.replica.broker_id
    lost, counts = expected.lost, expected.counts
    records = f"{counts.records} records" if counts.records != 1 else "1 record"
    if counts.markers:
        records += f" and {counts.markers} transaction markers" if counts.markers > 1 else " and 1 transaction marker"
    is_open = bool(replica.by_other_protocols) or replica.is_tail_of_a_copy
    is_led = report.leader is None or report.leader.is_known
    verb = "may" if is_open else "will"
    head = f"{report.partition}: {_if_led(report)}{report.owner_of(replica.view)} {verb} truncate its log from {replica.view.log_end_offset} to {expected.offset}: {records}"
    if report.is_observer(replica.view):
        # What an observer holds has no part in what the quorum commits.
        code, severity, tail = "KF203", Severity.NOTE, ", a copy of what the voters may not have committed"
    elif lost.certain and not is_open and is_led:
        code, severity, tail = (
            "KF201",
            Severity.CRITICAL,
            f", {_of_them(lost.certain, counts.records)}certainly committed and not on the leader",
        )
    elif lost.certain:
        code, severity, tail = (
            "KF202",
            Severity.ERROR,
            f", {_of_them(lost.certain, counts.records)}committed and not in the log of {'the leader' if is_led else 'that leader'} as it was copied",
        )
    elif lost.possible:
        code, severity, tail = (
            "KF202",
            Severity.ERROR,
            f", {_of_them(lost.possible, counts.records)}possibly committed and not on the leader",
        )
    else:
        code, severity = "KF203", Severity.WARNING
        tail = (
            (", not committed" if counts.records == 1 else ", none of them committed")
            if counts.no == counts.records
            else (", which the leader holds" if counts.records == 1 else ", all of which the leader holds")
            if not lost.records
            else ""
        )
    return finding(
        code,
        severity=severity,
        confidence=_confidence(report, is_open=is_open),
        statement=head + tail + _hedge(replica),
        topic_partition=report.partition,
        broker_id=broker,
        offsets=expected.dropped,
        citations=tuple(c for run in expected.runs for c in run.citations) or (replica.view.replica.cite(),),
    )


def _of_them(count: int, records: int) -> str:
    return "" if records == 1 else f"{count} of them "


def _if_led(report: PartitionReport) -> str:
    """Return the beginning of a sentence that is only true if a guessed leader leads."""
    leader = report.leader
    return "" if leader is None or leader.is_known else f"if {report.owner_of(leader.view)} leads (guessed), "


def _confidence(report: PartitionReport, *, is_open: bool) -> Confidence:
    if is_open:
        return Confidence.POSSIBLE
    return Confidence.PROVEN if report.leader is None or report.leader.is_known else Confidence.LIKELY


def _hedge(replica: ReplicaReport) -> str:
    if replica.by_other_protocols:
        return "; which Kafka version it runs is not known, and other versions would truncate to another offset"
    if replica.is_tail_of_a_copy:
        return ", unless the leader's directory was copied earlier while it ran"
    return ""


def _below_high_watermark(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    expected = replica.truncation
    recorded = replica.view.replica.high_watermark
    if (
        expected is None
        or report.is_observer(replica.view)
        or isinstance(recorded, Absent)
        or expected.offset >= min(recorded.value, replica.view.log_end_offset)
    ):
        return
    yield finding(
        "KF205",
        severity=Severity.ERROR,
        statement=f"{report.partition}: the truncation of {report.owner_of(replica.view)} to {expected.offset} is below its own high watermark {recorded.value}",
        topic_partition=report.partition,
        broker_id=replica.view.replica.broker_id,
        offsets=OffsetRange(expected.offset, min(recorded.value, replica.view.log_end_offset) - 1),
        citations=(recorded.citation,),
    )


def _silent_divergence(report: PartitionReport, replica: ReplicaReport) -> Finding:
    parted = replica.divergence
    assert parted is not None
    end = min(
        replica.view.log_end_offset,
        replica.compared_with.log_end_offset if replica.compared_with else parted.offset + 1,
    )
    leader = replica.compared_with
    # Where both are damaged, it is the one that can't give the offset at which they differ.
    is_leader_odd = (
        leader is not None
        and any(one.view is leader for one in report.odd_ones)
        and damage_at(parted.offset, replica.view) is None
    )
    who, other = report.owner_of(replica.view), "the leader"
    if is_leader_odd and leader is not None:
        # Who leads is no measure of who is right.
        who, other = f"the leader {report.owner_of(leader)}", who
    return finding(
        "KF204",
        severity=Severity.CRITICAL,
        statement=f"{report.partition}: {who} differs from {other} from offset {parted.offset} on, and no rule will repair it: {parted.detail}",
        topic_partition=report.partition,
        broker_id=(leader if is_leader_odd and leader is not None else replica.view).replica.broker_id,
        offsets=OffsetRange(parted.offset, max(end - 1, parted.offset)),
        citations=parted.citations,
    )


def _own_log(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    view = replica.view
    broker = view.replica.broker_id
    if view.truncated_by_recovery is not None:
        dropped = sum(s.record_count for s in view.replica.segments) - sum(s.record_count for s in view.segments)
        what = (
            "an unfinished batch at its end"
            if not dropped
            else f"{dropped} sound records behind the first batch that fails"
        )
        yield finding(
            "KF210" if dropped else "KF211",
            severity=Severity.ERROR if dropped else Severity.NOTE,
            statement=f"{report.partition}: start-up recovery of {report.owner_of(view)} will discard {what}; its log then ends at {view.log_end_offset}",
            topic_partition=report.partition,
            broker_id=broker,
            citations=(view.truncated_by_recovery,),
        )
    for segment in view.segments:
        doubled = next((d for d in segment.damage if d.kind is DamageKind.ORDER), None)
        if doubled is not None:
            yield finding(
                "KF208",
                severity=Severity.ERROR,
                statement=f"{report.partition}: the offsets of the log of {report.owner_of(view)} do not always rise: expected {doubled.expected}, found {doubled.found}",
                topic_partition=report.partition,
                broker_id=broker,
                citations=(view.replica.cite(segment.path.rsplit("/", 1)[-1], doubled.span),),
            )
    for lost in view.damaged:
        yield finding(
            "KF206",
            severity=Severity.ERROR,
            statement=f"{report.partition}: {report.owner_of(view)} can't give offsets {lost.offsets.first} to {lost.offsets.last}, their bytes are damaged",
            topic_partition=report.partition,
            broker_id=broker,
            offsets=lost.offsets,
            citations=(lost.citation,),
        )
    if view.left_behind is not None:
        yield finding(
            "KF217",
            severity=Severity.WARNING,
            statement=f"{report.partition}: the log of {report.owner_of(view)} was stopped cleanly, and behind its last batch are {view.left_behind.words}",
            topic_partition=report.partition,
            broker_id=broker,
            citations=(view.left_behind.citation,),
        )
    if view.epochs_from == "batches" and view.batch_epochs:
        unreadable = view.replica.checkpoint_epochs is Absent.UNREADABLE
        yield finding(
            "KF212",
            severity=Severity.WARNING if unreadable else Severity.NOTE,
            statement=(
                f"{report.partition}: leader-epoch-checkpoint of {report.owner_of(view)} is {'unreadable' if unreadable else 'missing'}; "
                f"its batches show epochs up to {view.batch_epochs[-1].leader_epoch}"
            ),
            topic_partition=report.partition,
            broker_id=broker,
            citations=(view.replica.cite("leader-epoch-checkpoint"),),
        )
    if (
        isinstance(view.replica.topic_id, Absent)
        and view.replica.is_log_known
        and not isinstance(report.topic_id, Absent)
    ):
        yield finding(
            "KF215",
            severity=Severity.NOTE,
            statement=f"{report.partition}: {report.owner_of(view)} has no partition.metadata yet; compared as the same topic",
            topic_partition=report.partition,
            broker_id=broker,
            citations=(view.replica.cite(),),
        )


def identity_findings(inputs: Inputs, in_parts: Collection[int] = ()) -> Iterator[Finding]:
    """Yield contradictions among the inputs as a whole: several clusters, or one node given twice.

    Args:
        in_parts: nodes of which the inputs are different log directories of one moment.
    """
    clusters = sorted({str(i.cluster_id) for i in inputs.described if not isinstance(i.cluster_id, Absent)})
    if len(clusters) > 1:
        yield finding(
            "KF507",
            severity=Severity.ERROR,
            statement=f"the inputs belong to {len(clusters)} clusters: {', '.join(clusters)}",
        )
    seen: dict[int, list[str]] = {}
    for one in inputs.found:
        if one.log_dirs and isinstance(one.described.broker_id, int):
            seen.setdefault(one.described.broker_id, []).append(one.described.path)
    for node_id, places in sorted(seen.items()):
        if len(places) > 1 and node_id not in in_parts:
            yield finding(
                "KF508",
                severity=Severity.ERROR,
                statement=f"node {node_id} is given {len(places)} times, as it was at different times or under a wrong id: {', '.join(places)}",
                broker_id=node_id,
            )
