"""Findings about the replicas of a partition: expected truncations, divergence that no rule repairs, lost records, and what a start discards."""

from collections.abc import Iterator

from kforensics.damage import Absent, DamageKind
from kforensics.evidence.model import Citation
from kforensics.evidence.replica.unaccounted import Sign
from kforensics.findings.model import Confidence, Finding, Weight
from kforensics.findings.rule import Rule, RulesOf, ToldApartBy
from kforensics.findings.rules.directories import (
    OTHER_TOPIC,
    STRAY,
    VANISHING_DIRECTORY,
    lost_directory_finding,
    missing_finding,
)
from kforensics.reconcile.logs.divergence import damage_at
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.own_evidence import LackedEpoch, held_epochs, lacked_epoch
from kforensics.reconcile.replicas.report import PartitionReport, ReplicaReport, Verdict
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import form

OF_PARTITION: RulesOf[[PartitionReport], Finding] = RulesOf()
OF_REPLICA: RulesOf[[PartitionReport, ReplicaReport], Finding] = RulesOf()
"""Of a replica of the same topic."""


def partition_findings(report: PartitionReport) -> Iterator[Finding]:
    """Yield the findings of one partition, whose replicas were compared."""
    for replica in report.replicas:
        if replica.verdict is not Verdict.DIFFERENT_TOPIC:
            yield from OF_REPLICA.of(report, replica)
    yield from OF_PARTITION.of(report)


def _of(
    rule: Rule,
    report: PartitionReport,
    log: LoadedLog,
    words: str,
    *,
    weight: Weight | None = None,
    confidence: Confidence = Confidence.PROVEN,
    offsets: OffsetRange | Absent = Absent.NOT_APPLICABLE,
    citations: tuple[Citation, ...] = (),
) -> Finding:
    """Return what a rule states of one log of the partition."""
    return rule.states(
        f"{report.partition}: {words}",
        weight=weight,
        confidence=confidence,
        topic_partition=report.partition,
        broker_id=log.replica.broker_id,
        offsets=offsets,
        citations=citations,
    )


DISCARDS_COMMITTED = Rule(
    "KF201",
    Weight.LOSS,
    title="a replica will discard committed records",
    meaning="Consumers could read these records and producers with acks=all got acknowledgements for them. After the truncation no replica of the comparison holds them.",
    advice="Do not start this broker before its directory is copied. Export the records from the copy, or choose a leader that loses less.",
    references=("KIP-101", "KIP-279", "KIP-595"),
)

MAY_DISCARD_COMMITTED = Rule(
    "KF202",
    Weight.DAMAGE,
    title="a replica will discard possibly committed records",
    meaning="These disks do not prove that committed records will be discarded, and nothing contradicts it.",
    advice="Copy the directory before the broker is started; client logs or another replica can show more.",
    references=("KIP-101", "KIP-279", "KIP-595"),
)

TRUNCATES = Rule(
    "KF203",
    Weight.NOTE,
    title="a replica will truncate its log, and discards nothing committed",
    meaning="The ordinary end of a fail-over: the tail was never committed, or the leader holds it and it is copied again.",
    advice="Nothing to do. Keep a copy if acks=1 records of the tail matter.",
    references=("KIP-101", "KIP-279", "KIP-595"),
)


@OF_REPLICA
def _truncation(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    expected = replica.truncation
    if expected is None:
        return
    lost, counts = expected.lost, expected.counts
    records = f"{counts.records} {form(counts.records, 'record')}"
    if counts.markers:
        records += f" and {counts.markers} {form(counts.markers, 'transaction marker')}"
    is_open = bool(replica.by_other_protocols) or replica.is_tail_of_a_copy
    is_led = report.leader is None or report.leader.is_known
    weight: Weight | None = None
    if report.is_observer(replica.view):
        # What an observer holds has no part in what the quorum commits.
        rule, tail = TRUNCATES, ", a copy of what the voters may not have committed"
    elif lost.certain and not is_open and is_led:
        rule = DISCARDS_COMMITTED
        tail = f", {_of_them(lost.certain, counts.records)}committed and not on the leader"
    elif lost.certain:
        whose = "the leader" if is_led else "that leader"
        rule = MAY_DISCARD_COMMITTED
        tail = f", {_of_them(lost.certain, counts.records)}committed and not in the log of {whose} as it was copied"
    elif lost.possible:
        rule = MAY_DISCARD_COMMITTED
        tail = f", {_of_them(lost.possible, counts.records)}possibly committed and not on the leader"
    else:
        rule, weight, tail = TRUNCATES, Weight.DECIDE, ""
        if counts.no == counts.records:
            tail = form(counts.records, ", not committed", ", none of them committed")
        elif not lost.records:
            tail = form(counts.records, ", which the leader holds", ", all of which the leader holds")
    verb = "may" if is_open else "will"
    yield _of(
        rule,
        report,
        replica.view,
        f"{_if_led(report)}{report.owner_of(replica.view)} {verb} truncate its log from {replica.view.log_end_offset} to {expected.offset}: {records}{tail}{_hedge(replica)}",
        weight=weight,
        confidence=_confidence(report, is_open=is_open),
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


BELOW_HIGH_WATERMARK = Rule(
    "KF205",
    Weight.DAMAGE,
    title="a truncation below the replica's own high watermark",
    meaning="This never happens in a fenced history with clean elections: there was an unclean election, a lost disk tail, or a bug.",
    advice="Copy this replica before it starts: below its high watermark it holds committed records.",
    references=("KIP-320", "KIP-966"),
)

OF_TRUNCATIONS = frozenset(
    one.code for one in (DISCARDS_COMMITTED, MAY_DISCARD_COMMITTED, TRUNCATES, BELOW_HIGH_WATERMARK)
)


@OF_REPLICA
def _below_high_watermark(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    expected = replica.truncation
    recorded = replica.view.replica.high_watermark
    if expected is None or report.is_observer(replica.view) or isinstance(recorded, Absent):
        return
    end = min(recorded.value, replica.view.log_end_offset)
    if expected.offset < end:
        yield _of(
            BELOW_HIGH_WATERMARK,
            report,
            replica.view,
            f"the truncation of {report.owner_of(replica.view)} to {expected.offset} is below its own high watermark {recorded.value}",
            offsets=OffsetRange(expected.offset, end - 1),
            citations=(recorded.citation,),
        )


DIFFERENT_CONTENT = Rule(
    "KF204",
    Weight.LOSS,
    title="replicas hold different content at the same offset, and no rule will repair it",
    meaning="Consumers read different records depending on which replica leads. The brokers notice nothing.",
    advice="Find out which content is right (other replicas, producers), then let the wrong replica copy its log again into an empty directory, only from one that holds all of it intact; keep the old directory.",
    references=("KIP-101", "KIP-279"),
)


@OF_REPLICA
def _silent_divergence(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    parted, leader, log = replica.divergence, replica.compared_with, replica.view
    if parted is None or not (
        replica.verdict is Verdict.SILENT_DIVERGENCE or (replica.past_end and _is_silent(replica))
    ):
        return
    end = min(log.log_end_offset, leader.log_end_offset if leader else parted.offset + 1)
    who, other = report.owner_of(log), "the leader"
    # Where both are damaged, it is the one that can't give the offset at which they differ.
    if leader and any(one.view is leader for one in report.odd_ones) and damage_at(parted.offset, log) is None:
        # Who leads is no measure of who is right.
        who, other, log = f"the leader {report.owner_of(leader)}", who, leader
    yield _of(
        DIFFERENT_CONTENT,
        report,
        log,
        f"{who} differs from {other} from offset {parted.offset} on, and no rule will repair it: {parted.detail}",
        offsets=OffsetRange(parted.offset, max(end - 1, parted.offset)),
        citations=parted.citations,
    )


def _is_silent(replica: ReplicaReport) -> bool:
    expected, parted = replica.truncation, replica.divergence
    if parted is None or parted.is_open:
        return False
    return expected is None or parted.offset < expected.offset


PAST_EVERY_END = Rule(
    "KF207",
    Weight.LOSS,
    title="committed records are on no disk of the comparison",
    meaning="A replica recorded a high watermark past the end of every log here: what was below it was committed and is not on these disks.",
    advice="Look for a replica or a snapshot that is not among the inputs before anything is started.",
    references=("KIP-966",),
)


@OF_REPLICA
def _past_every_end(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    if replica.past_end is None:
        return
    end = max(r.view.log_end_offset for r in report.replicas)
    is_sure = replica.view.replica.clean_shutdown or report.is_stopped
    unless = "" if is_sure else ": copied while it ran, or after a power loss"
    yield _of(
        PAST_EVERY_END,
        report,
        replica.view,
        f"{report.owner_of(replica.view)} recorded high watermark {replica.past_end.value}, but every log ends at or below {end}{unless}",
        weight=Weight.LOSS if is_sure else Weight.DECIDE,
        confidence=Confidence.PROVEN if is_sure else Confidence.POSSIBLE,
        offsets=OffsetRange(end, replica.past_end.value - 1),
        citations=(replica.past_end.citation,),
    )


ENDLESS_TRUNCATION = Rule(
    "KF209",
    Weight.DAMAGE,
    title="a truncation that never ends",
    meaning="The follower asks the same question for ever and stays out of the ISR.",
    advice="Upgrade the broker; removing the last line of its leader-epoch-checkpoint while it is stopped ends the loop.",
    references=("KAFKA-10706",),
)

HALTS = Rule(
    "KF218",
    Weight.DAMAGE,
    title="the broker of a replica halts rather than truncate it",
    meaning="Up to 1.0 a broker with unclean.leader.election.enable=false halts when it fetches above the end of its leader's log, and so at each start.",
    advice="Keep its directory: it may alone hold the records. Let it lead again, or accept their loss and set unclean.leader.election.enable=true for the topic.",
)


@OF_REPLICA
def _never_follows(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    outcome, owner = replica.outcome, report.owner_of(replica.view)
    if outcome is not None and outcome.endless:
        words = f"{owner} never finishes its truncation against this leader"
        yield _of(ENDLESS_TRUNCATION, report, replica.view, words, confidence=Confidence.LIKELY)
    if outcome is not None and outcome.halts:
        end = outcome.after.log_end_offset
        words = f"{owner} halts when it fetches at {end}, above the end of the log of this leader"
        yield _of(HALTS, report, replica.view, words, confidence=Confidence.LIKELY)


@OF_REPLICA
def _may_differ(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    asked = replica.divergence
    if asked is not None and asked.is_open:
        yield _of(
            DIFFERENT_CONTENT,
            report,
            replica.view,
            f"{report.owner_of(replica.view)} and the replica it follows may differ at offset {asked.offset}, or compaction removed what would show that they do not: {asked.detail}",
            weight=Weight.NOTE,
            confidence=Confidence.POSSIBLE,
            offsets=OffsetRange(asked.offset, asked.offset),
            citations=asked.citations,
        )


RECOVERY_DISCARDS = Rule(
    "KF210",
    Weight.DAMAGE,
    title="start-up recovery will discard sound records behind a damaged batch",
    meaning="The broker truncates the log at the first batch that fails and deletes the segments behind it, however sound they are.",
    advice="Copy the directory before the broker is started; the records behind the damage can be read from the copy.",
)

RECOVERY_OF_A_TAIL = Rule(
    "KF211",
    Weight.NOTE,
    title="start-up recovery will discard an unfinished tail",
    meaning="Normal after a kill or a power loss: the last write did not get to the end.",
    advice="Nothing to do.",
)


@OF_REPLICA
def _recovery(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    log = replica.view
    if log.truncated_by_recovery is None:
        return
    dropped, weight = log.sound_records_dropped, None
    if dropped and report.is_quorum:
        # What a majority of the voters holds, a voter or a broker copies again from their leader.
        is_kept = report.leader_log is not None and all(
            one.view.replica.owner != log.replica.owner for one in report.recovered
        )
        weight = Weight.NOTE if is_kept else Weight.DECIDE
    what = f"{dropped} sound records behind the first batch that fails" if dropped else "an unfinished batch at its end"
    yield _of(
        RECOVERY_DISCARDS if dropped else RECOVERY_OF_A_TAIL,
        report,
        log,
        f"start-up recovery of {report.owner_of(log)} will discard {what}; its log then ends at {log.log_end_offset}",
        weight=weight,
        citations=(log.truncated_by_recovery,),
    )


FALLING_OFFSETS = Rule(
    "KF208",
    Weight.DAMAGE,
    title="a log whose offsets do not always rise",
    meaning="The log holds some offsets twice, as old brokers could write it after a truncation to the high watermark.",
    advice="Do not trust offsets alone here: compare records before one copy is taken.",
    references=("KAFKA-3919", "KIP-101"),
    told_apart_by=ToldApartBy.FILE,
)


@OF_REPLICA
def _falling_offsets(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    log = replica.view
    for segment in log.segments:
        doubled = next((d for d in segment.damage if d.kind is DamageKind.ORDER), None)
        if doubled is not None:
            yield _of(
                FALLING_OFFSETS,
                report,
                log,
                f"the offsets of the log of {report.owner_of(log)} do not always rise: expected {doubled.expected}, found {doubled.found}",
                citations=(log.replica.cite(segment.path.rsplit("/", 1)[-1], doubled.span),),
            )


@OF_PARTITION
def _lacked_epoch(report: PartitionReport) -> Iterator[Finding]:
    held = [
        held_epochs(one.view)
        for one in report.replicas
        if one.view.replica.is_live and one.verdict is not Verdict.DIFFERENT_TOPIC
    ]
    lacked = None if report.account is None else lacked_epoch(report.account, held)
    if lacked is not None:
        yield lacked_epoch_finding(lacked, report.partition)


UNREADABLE_RANGE = Rule(
    "KF206",
    Weight.DAMAGE,
    title="a replica holds a range that can't be read",
    meaning="Consumers that check checksums stop there, and the broker does not repair it.",
    advice="See `kforensics verify` for the bytes and for replicas that hold the range intact.",
    told_apart_by=ToldApartBy.PLACE,
)


@OF_REPLICA
def _unreadable_ranges(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    for lost in replica.view.damaged:
        words = f"{report.owner_of(replica.view)} can't give offsets {lost.offsets.first} to {lost.offsets.last}, their bytes are damaged"
        yield _of(UNREADABLE_RANGE, report, replica.view, words, offsets=lost.offsets, citations=(lost.citation,))


LEFT_BYTES = Rule(
    "KF217",
    Weight.DECIDE,
    title="bytes behind the last batch of a log that was stopped cleanly",
    meaning="A start recovers nothing beside the marker of a clean stop. Zeros are read as a batch of size 0: the broker stops with a CorruptRecordException. "
    "Other bytes stay, and new records are appended behind them.",
    advice="Copy the directory before the broker starts; `kforensics predict` shows what its start does, and `kforensics verify` where the bytes are.",
)


@OF_REPLICA
def _left_bytes(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    left = replica.view.left_behind
    if left is not None:
        words = f"the log of {report.owner_of(replica.view)} was stopped cleanly, and behind its last batch are {left.words}"
        yield _of(LEFT_BYTES, report, replica.view, words, citations=(left.citation,))


NO_EPOCH_CHECKPOINT = Rule(
    "KF212",
    Weight.NOTE,
    title="no usable leader-epoch-checkpoint",
    meaning="The comparison uses the epochs of the batches. A broker that finds no file falls back to its high watermark; one that finds a malformed file takes the log dir offline.",
    advice="Keep the file as it is for evidence; it can be written again from the epochs shown.",
    references=("KIP-101", "KAFKA-16541"),
)


@OF_REPLICA
def _no_epoch_checkpoint(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    log = replica.view
    if log.epochs_from != "batches" or not log.batch_epochs:
        return
    is_unreadable = log.replica.checkpoint_epochs is Absent.UNREADABLE
    lack = "unreadable" if is_unreadable else "missing"
    yield _of(
        NO_EPOCH_CHECKPOINT,
        report,
        log,
        f"leader-epoch-checkpoint of {report.owner_of(log)} is {lack}; its batches show epochs up to {log.batch_epochs[-1].leader_epoch}",
        weight=Weight.DECIDE if is_unreadable else Weight.NOTE,
        citations=(log.replica.cite("leader-epoch-checkpoint"),),
    )


NO_TOPIC_ID = Rule(
    "KF215",
    Weight.NOTE,
    title="a replica without a topic id",
    meaning="partition.metadata is written with the first flush, and not at all before 2.8.",
    advice="Nothing to do where the broker runs, or with ZooKeeper. A start of a KRaft broker since 3.7.1 renames a directory without this file to -stray, and begins an empty log: `kforensics predict` says which.",
    references=("KIP-516",),
)


@OF_REPLICA
def _no_topic_id(report: PartitionReport, replica: ReplicaReport) -> Iterator[Finding]:
    own = replica.view.replica
    if isinstance(own.topic_id, Absent) and own.is_log_known and not isinstance(report.topic_id, Absent):
        words = f"{report.owner_of(replica.view)} has no partition.metadata yet; compared as the same topic"
        yield _of(NO_TOPIC_ID, report, replica.view, words, citations=(own.cite(),))


@OF_PARTITION
def _other_topics(report: PartitionReport) -> Iterator[Finding]:
    for replica in report.replicas:
        directory = replica.view.replica
        if replica.verdict is Verdict.DIFFERENT_TOPIC:
            yield OTHER_TOPIC.states(
                f"{directory.path} of {directory.owner} has topic id {directory.topic_id}, {report.partition} now has {report.topic_id}",
                topic_partition=report.partition,
                broker_id=directory.broker_id,
                citations=(directory.cite("partition.metadata"),),
            )


@OF_PARTITION
def _missing(report: PartitionReport) -> Iterator[Finding]:
    for replica in report.replicas:
        directory = replica.view.replica
        for one in replica.view.missing:
            # Those above every log end have a finding of their own.
            if one.sign is not Sign.ABOVE_END or replica.past_end is None:
                yield missing_finding(one, report.partition, directory.cite(), directory.broker_id)
    for emptied in report.emptied:
        if emptied.named is not None:
            yield lost_directory_finding(report.partition, emptied.named, emptied.broker_id)


@OF_PARTITION
def _set_aside(report: PartitionReport) -> Iterator[Finding]:
    for directory in report.set_aside:
        rule = STRAY if directory.state == "stray" else VANISHING_DIRECTORY
        yield rule.states(
            f"{directory.path} of {directory.owner} is a {directory.state} directory of {report.partition}: left out of the comparison",
            topic_partition=report.partition,
            broker_id=directory.broker_id,
            citations=(directory.cite(),),
        )


REPLICAS_NOT_GIVEN = Rule(
    "KF213",
    Weight.NOTE,
    title="replicas of a partition are not among the inputs",
    meaning="What they hold can change every conclusion: they may be longer, or hold what is called lost here.",
    advice="Add their data directories.",
)


@OF_PARTITION
def _replicas_not_given(report: PartitionReport) -> Iterator[Finding]:
    # Replicas of brokers whose directories are set aside are not called missing.
    aside = set() if report.replicas else {directory.broker_id for directory in report.set_aside}
    missing = [str(broker) for broker in report.missing_replicas if broker not in aside]
    if missing and not any(one.view.replica.is_unnamed for one in report.replicas):
        brokers, those = form(len(missing), "broker"), form(len(missing), "that broker", "those brokers")
        yield REPLICAS_NOT_GIVEN.states(
            f"{report.partition} also belongs to {brokers} {', '.join(missing)}: no live directory of it on {those} is among the inputs",
            topic_partition=report.partition,
        )


ISR_LOST = Rule(
    "KF216",
    Weight.DAMAGE,
    title="no member of the ISR holds the partition any more",
    meaning="Disks of these brokers are among the inputs and lack the partition: a disk was replaced, emptied, is not mounted or was not given. Only members of the ISR are known to hold every committed record; what the other replicas lack may be lost.",
    advice="Give all log directories of these brokers. Else find the old disk or a snapshot of it before these brokers are started: one that starts with an empty log leads, and the others truncate their logs to it.",
    references=("KIP-858", "KIP-966"),
)


def missing_isr_findings(
    partition: TopicPartition, newest: Leadership, held_by: frozenset[int], given: frozenset[int]
) -> Iterator[Finding]:
    """Yield a partition whose whole ISR has lost it, by the disks of just those brokers."""
    if isinstance(newest.isr, Absent) or not newest.isr or newest.isr & held_by or not newest.isr <= given:
        return
    members = sorted(newest.isr)
    names = f"broker {members[0]} alone" if len(members) == 1 else f"brokers {', '.join(map(str, members))}"
    yield ISR_LOST.states(
        confidence=Confidence.LIKELY,
        statement=f"{partition}: the ISR is {names}, and no log directory of {form(len(members), 'it', 'theirs')} among the inputs holds the partition",
        topic_partition=partition,
        broker_id=members[0] if len(members) == 1 else Absent.NOT_APPLICABLE,
        citations=(newest.citation,),
    )


EPOCH_LACKED = Rule(
    "KF220",
    Weight.DECIDE,
    title="a leader whose leader-epoch-checkpoint lacks its own epoch",
    meaning="It answers followers that fetch in this epoch with OFFSET_OUT_OF_RANGE: they start over again and again, none joins the ISR, and the leader stays alone in it. A move between its log directories without a write in between leaves it so.",
    advice="Write a record to the partition, or have a leader elected anew (kafka-leader-election.sh): either enters an epoch in the file. Do not edit the file, and do not elect uncleanly.",
    references=("KAFKA-15608",),
)


def lacked_epoch_finding(lacked: LackedEpoch, partition: TopicPartition) -> Finding:
    """Return the finding."""
    alone = ", and is alone in the ISR" if lacked.is_alone else ""
    return EPOCH_LACKED.states(
        f"{partition}: broker {lacked.leader} leads in leader epoch {lacked.leader_epoch}{alone}, but its leader-epoch-checkpoint ends with epoch {lacked.written}."
        f" Followers that fetch in epoch {lacked.leader_epoch} get OFFSET_OUT_OF_RANGE until a record is written in it",
        confidence=Confidence.LIKELY,
        topic_partition=partition,
        broker_id=lacked.leader,
        citations=lacked.citations,
    )
