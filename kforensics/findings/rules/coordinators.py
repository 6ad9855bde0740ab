"""The findings of `transactions` and `groups`."""

from collections.abc import Iterator, Sequence
from itertools import islice

from kforensics.damage import Absent
from kforensics.findings.answers.groups import SHARES_GO_ON, below_words, epoch_words
from kforensics.findings.model import Confidence, Finding, Weight, by_gravity
from kforensics.findings.rule import Rule, ToldApartBy
from kforensics.formats.messages.control import ControlType
from kforensics.reconcile.groups.replay import Change
from kforensics.reconcile.groups.views import GroupView
from kforensics.reconcile.transactions.partition import JudgedTransaction, PartitionTransactions, TornTransaction
from kforensics.reconcile.transactions.verdicts import TransactionVerdict
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import counted, name_text

MOST_FINDINGS = 1_000
"""Findings of one run; the document has every transaction and position."""

HANGING = Rule(
    "KF601",
    Weight.DAMAGE,
    title="a transaction that no coordinator ends",
    meaning="Consumers with read_committed get nothing from its first offset on, and a cleaner does not get past it.",
    advice="End it with the abort line that `kforensics transactions` shows, once no producer of it writes any more.",
    references=("KIP-664", "KIP-890"),
    told_apart_by=ToldApartBy.PLACE,
)

LOST_MARKER = Rule(
    "KF602",
    Weight.DAMAGE,
    title="a transaction whose marker is lost",
    meaning="It was ended, and its records are open here: consumers with read_committed get nothing from its first offset on.",
    advice="Where it was committed, copy its records before anybody ends it: an abort marker hides what was acknowledged.",
    references=("KIP-98",),
    told_apart_by=ToldApartBy.PLACE,
)

MARKER_TO_BE_WRITTEN = Rule(
    "KF604",
    Weight.DECIDE,
    title="a decided transaction whose marker is still to be written",
    meaning="Its coordinator writes the marker as soon as it and the leader of the partition run; until then consumers with read_committed wait.",
    advice="Start the brokers that lead both partitions, and end the transaction by no other way.",
    references=("KIP-98",),
    told_apart_by=ToldApartBy.PLACE,
)


_OF_VERDICTS = {
    TransactionVerdict.HANGING: HANGING,
    TransactionVerdict.TORN: LOST_MARKER,
    TransactionVerdict.PREPARED: MARKER_TO_BE_WRITTEN,
}


def transaction_findings(judged: Sequence[PartitionTransactions]) -> tuple[Finding, ...]:
    """Return a finding for each transaction that hangs, is torn or waits for its marker, of the replicas that speak for their partitions."""
    return by_gravity(tuple(islice(_of_transactions(judged), MOST_FINDINGS)))


def _of_transactions(judged: Sequence[PartitionTransactions]) -> Iterator[Finding]:
    named: set[tuple[TopicPartition, int, int]] = set()
    for one in sorted(judged, key=lambda each: each.leads is not True):
        if not one.counts or one.absent_leader is not None:
            continue
        for each in one.open:
            key = (one.topic_partition, each.open.producer_id, each.open.first_offset)
            if each.judgement.verdict in _OF_VERDICTS and key not in named:
                named.add(key)
                yield _open(one, each)
        for torn in one.torn:
            key = (one.topic_partition, torn.producer_id, torn.marker.offset)
            if key not in named:
                named.add(key)
                yield _torn(one, torn)


def _open(partition: PartitionTransactions, one: JudgedTransaction) -> Finding:
    rule = _OF_VERDICTS[one.judgement.verdict]
    opened = one.open
    count = "" if isinstance(opened.records, Absent) else f" with {counted(opened.records, 'record')}"
    return rule.states(
        confidence=Confidence(one.judgement.confidence),
        statement=f"{partition.topic_partition} has a transaction of producer {opened.producer_id} open from offset {opened.first_offset:,}{count}: {one.judgement.reason}",
        topic_partition=partition.topic_partition,
        broker_id=partition.replica.place.state.broker_id,
        offsets=OffsetRange(opened.first_offset, opened.last_offset),
        citations=one.judgement.citations,
    )


LOST_RECORDS_OF_A_TRANSACTION = Rule(
    "KF603",
    Weight.DAMAGE,
    title="a transaction whose records are lost and whose marker is kept",
    meaning="A truncation took records of a transaction that was ended; of a committed one they were acknowledged.",
    advice="Look for them in the copies that are cited before these are started or deleted.",
    references=("KIP-98",),
    told_apart_by=ToldApartBy.PLACE,
)

COMMITTED_AND_ABORTED = Rule(
    "KF605",
    Weight.DAMAGE,
    title="a transaction that was committed in one partition and aborted in another",
    meaning="Its coordinator lost the decision to commit in an unclean election and aborted the rest: consumers with read_committed never get records that were acknowledged.",
    advice="Copy the aborted records (`kforensics dump`) before retention takes them, and produce them again.",
    references=("KIP-98",),
    told_apart_by=ToldApartBy.PLACE,
)


def _torn(partition: PartitionTransactions, one: TornTransaction) -> Finding:
    first, last = one.first_offset, one.last_offset
    marker = f"{'an' if one.marker.kind is ControlType.ABORT else 'a'} {one.marker.kind.value} marker of producer {one.producer_id} at offset {one.marker.offset:,}"
    is_split = one.committed_in is not None
    rule = COMMITTED_AND_ABORTED if is_split else LOST_RECORDS_OF_A_TRANSACTION
    return rule.states(
        confidence=Confidence(one.confidence),
        statement=f"{partition.topic_partition} has {marker}, {'which aborts a committed transaction' if is_split else 'without its records'}: {one.reason}",
        topic_partition=partition.topic_partition,
        broker_id=partition.replica.place.state.broker_id,
        offsets=Absent.UNKNOWN if isinstance(first, Absent) or isinstance(last, Absent) else OffsetRange(first, last),
        citations=one.citations,
    )


def group_findings(groups: Sequence[GroupView], setbacks: Sequence[Change]) -> tuple[Finding, ...]:
    """Return a finding for each position past the end of a log or below its start, and for each set-back."""
    return by_gravity(tuple(islice(_of_groups(groups, setbacks), MOST_FINDINGS)))


PAST_THE_END = Rule(
    "KF611",
    Weight.DAMAGE,
    title="a consumer group past the end of a log",
    meaning="It has read records that are not in the log any more, and auto.offset.reset decides what it reads next.",
    advice="Set its position by hand before it consumes again.",
    told_apart_by=ToldApartBy.PLACE,
)

SET_BACK = Rule(
    "KF612",
    Weight.DECIDE,
    title="a consumer group that was set back",
    meaning="The records between the two positions are read again.",
    advice="Find out who set it back, and whether its consumers tolerate records that are read twice.",
    told_apart_by=ToldApartBy.PLACE,
)

BELOW_THE_START = Rule(
    "KF613",
    Weight.DECIDE,
    title="a consumer group below a log start",
    meaning="The records between its position and the log start were deleted before it read them.",
    advice="auto.offset.reset decides what it reads next; find out what deleted the records, and whether another copy holds them.",
    told_apart_by=ToldApartBy.PLACE,
)


WRONG_EPOCH = Rule(
    "KF614",
    Weight.DECIDE,
    title="a consumer group at a position that the log contradicts",
    meaning="A consumer that checks its position by the leader epoch finds the log truncated: it goes back to the end of that epoch, or auto.offset.reset decides. Without an epoch, or in a topic that was created anew, it goes on where it is, and has never read what was written in front of that.",
    advice="Set its position by hand, to the first offset that was not read as it is now, and commit with the epoch of the last record that was read.",
    references=("KIP-320", "KAFKA-19902"),
    told_apart_by=ToldApartBy.PLACE,
)


def _of_groups(groups: Sequence[GroupView], setbacks: Sequence[Change]) -> Iterator[Finding]:
    for group in groups:
        for one in group.positions:
            if one.is_past_the_end is True:
                yield PAST_THE_END.states(
                    f"{name_text(group.name)} {'starts at' if one.share else 'committed'} {one.position.offset:,} in {name_text(one.topic)}-{one.partition}, and the log ends at {one.log_end_offset:,}",
                    topic_partition=TopicPartition(name_text(one.topic), one.partition),
                    citations=(one.position.at.cite(one.position.place),),
                )
            if one.deleted_unread:
                removed = () if one.removal is None else one.removal.citations
                yield BELOW_THE_START.states(
                    f"{name_text(group.name)} is below the log start of {below_words(one)}".removesuffix("."),
                    advice="" if one.share is None else f"{SHARES_GO_ON} Find out what deleted the records.",
                    topic_partition=TopicPartition(name_text(one.topic), one.partition),
                    citations=(one.position.at.cite(one.position.place), *removed),
                )
            if one.has_wrong_epoch:
                yield WRONG_EPOCH.states(
                    f"{name_text(group.name)}: {epoch_words(one)}".removesuffix("."),
                    confidence=Confidence.PROVEN if one.had_others else Confidence.LIKELY,
                    topic_partition=TopicPartition(name_text(one.topic), one.partition),
                    citations=(one.position.at.cite(one.position.place),),
                )
    for change in setbacks:
        key = change.key
        where = f"{name_text(key.topic)}-{key.partition}"
        is_past = change.caught_up_ms is not None
        moved = (
            f"lost its position {change.previous:,} in {where}"
            if change.offset is None
            else f"was set back in {where} from {change.previous:,} to {change.offset:,}"
        )
        back = (
            "; it was put forward again by hand"
            if change.is_put_back
            else "; it has caught up again"
            if is_past
            else ""
        )
        yield SET_BACK.states(
            weight=Weight.NOTE if is_past else Weight.DECIDE,
            statement=f"{name_text(key.group)} {moved}: {change.reason}{back}",
            topic_partition=TopicPartition(name_text(key.topic), key.partition),
            citations=change.citations,
        )
