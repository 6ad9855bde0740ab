"""The findings of `transactions` and `groups`."""

from collections.abc import Iterator, Sequence
from itertools import islice

from kforensics.damage import Absent
from kforensics.findings.model import Confidence, Finding, Severity, by_gravity, finding
from kforensics.formats.messages.control import ControlType
from kforensics.reconcile.groups.replay import Change
from kforensics.reconcile.groups.views import GroupView
from kforensics.reconcile.transactions.partition import JudgedTransaction, PartitionTransactions, TornTransaction
from kforensics.reconcile.transactions.verdicts import TransactionVerdict
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import counted, form, name_text

MOST_FINDINGS = 1_000
"""Findings of one run; the document has every transaction and position."""

_CODES = {
    TransactionVerdict.HANGING: ("KF601", Severity.ERROR),
    TransactionVerdict.TORN: ("KF602", Severity.ERROR),
    TransactionVerdict.PREPARED: ("KF604", Severity.WARNING),
}


def transaction_findings(judged: Sequence[PartitionTransactions]) -> tuple[Finding, ...]:
    """Return a finding for each transaction that hangs, is torn or waits for its marker, of the replicas that speak for their partitions.

    Args:
        judged: every replica that was asked for.
    """
    return by_gravity(tuple(islice(_of_transactions(judged), MOST_FINDINGS)))


def _of_transactions(judged: Sequence[PartitionTransactions]) -> Iterator[Finding]:
    named: set[tuple[TopicPartition, int, int]] = set()
    for one in sorted(judged, key=lambda each: each.leads is not True):
        if not one.counts or one.absent_leader is not None:
            continue
        for each in one.open:
            key = (one.topic_partition, each.open.producer_id, each.open.first_offset)
            if each.judgement.verdict in _CODES and key not in named:
                named.add(key)
                yield _open(one, each)
        for torn in one.torn:
            key = (one.topic_partition, torn.producer_id, torn.marker.offset)
            if key not in named:
                named.add(key)
                yield _torn(one, torn)


def _open(partition: PartitionTransactions, one: JudgedTransaction) -> Finding:
    code, severity = _CODES[one.judgement.verdict]
    opened = one.open
    count = "" if isinstance(opened.records, Absent) else f" with {counted(opened.records, 'record')}"
    return finding(
        code,
        severity=severity,
        confidence=Confidence(one.judgement.confidence),
        statement=f"{partition.topic_partition} has a transaction of producer {opened.producer_id} open from offset {opened.first_offset:,}{count}: {one.judgement.reason}",
        topic_partition=partition.topic_partition,
        broker_id=partition.replica.place.state.broker_id,
        offsets=OffsetRange(opened.first_offset, opened.last_offset),
        citations=one.judgement.citations,
    )


def _torn(partition: PartitionTransactions, one: TornTransaction) -> Finding:
    first, last = one.first_offset, one.last_offset
    marker = f"{'an' if one.marker.kind is ControlType.ABORT else 'a'} {one.marker.kind.value} marker of producer {one.producer_id} at offset {one.marker.offset:,}"
    is_split = one.committed_in is not None
    return finding(
        "KF605" if is_split else "KF603",
        severity=Severity.ERROR,
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


def _of_groups(groups: Sequence[GroupView], setbacks: Sequence[Change]) -> Iterator[Finding]:
    for group in groups:
        for one in group.positions:
            if one.is_past_the_end is True:
                yield finding(
                    "KF611",
                    severity=Severity.ERROR,
                    statement=f"{name_text(group.name)} {'starts at' if one.share else 'committed'} {one.position.offset:,} in {name_text(one.topic)}-{one.partition}, and the log ends at {one.log_end_offset:,}",
                    topic_partition=TopicPartition(name_text(one.topic), one.partition),
                    citations=(one.position.at.cite(one.position.place),),
                )
            if one.deleted_unread:
                yield finding(
                    "KF613",
                    severity=Severity.WARNING,
                    statement=f"{name_text(group.name)} committed {one.position.offset:,} in {name_text(one.topic)}-{one.partition}, and the log starts at {one.log_start_offset:,}: {counted(one.deleted_unread, 'offset')} {form(one.deleted_unread, 'was', 'were')} deleted before it read them",
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
        back = "; it has caught up again" if is_past else ""
        yield finding(
            "KF612",
            severity=Severity.NOTE if is_past else Severity.WARNING,
            statement=f"{name_text(key.group)} {moved}: {change.reason}{back}",
            topic_partition=TopicPartition(name_text(key.topic), key.partition),
            citations=change.citations,
        )
