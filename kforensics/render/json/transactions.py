"""Open and torn transactions as plain JSON values."""

from collections.abc import Iterator
from typing import Any

from kforensics.commands.result import Result
from kforensics.commands.transactions import Transactions
from kforensics.damage import Absent
from kforensics.evidence.coordinators.transaction_log import TransactionState
from kforensics.reconcile.transactions.coordinators import status_name
from kforensics.reconcile.transactions.partition import JudgedTransaction, PartitionTransactions, TornTransaction
from kforensics.render.json.document import document, fields_of, to_plain, typed_lines
from kforensics.render.view import View


def write(result: Result[Transactions], _view: View) -> Iterator[str]:
    """Return the fields that `docs/json.md` promises."""
    body = result.body
    fields = {
        "now_ms": _time(body.now_ms),
        "skipped_records": body.skipped_records,
        "history": [_state(state, body) for state in body.history],
    }
    return document(result, "transactions", fields, streams={"partitions": _partitions(body)})


def write_lines(result: Result[Transactions], _view: View) -> Iterator[str]:
    """Return a replica a line."""
    return typed_lines(("partition", _partitions(result.body)))


def _partitions(body: Transactions) -> Iterator[dict[str, Any]]:
    return (_partition(body, one) for one in body.partitions)


def _partition(body: Transactions, one: PartitionTransactions) -> dict[str, Any]:
    place = one.replica.place
    watermark = one.replica.high_watermark
    return {
        "topic": one.topic_partition.topic,
        "partition": one.topic_partition.partition,
        "broker_id": place.state.broker_id,
        "input": place.state.input,
        "path": place.path or ".",
        "leads": one.leads,
        "log_end_offset": one.replica.log_end_offset,
        "high_watermark": watermark if isinstance(watermark, Absent) else watermark.value,
        "last_stable_offset": one.last_stable_offset,
        "last_stable_offset_after_start": body.after_start.get((place.state.input, place.path), Absent.NOT_APPLICABLE),
        "open": [_open(body, one, each) for each in one.open],
        "torn": [_torn(each) for each in one.torn],
    }


def _open(body: Transactions, partition: PartitionTransactions, one: JudgedTransaction) -> dict[str, Any]:
    ending = body.ending(partition, one)
    judged = one.judgement
    return {
        **fields_of(one.open, "producer_id", "producer_epoch", "first_offset", "last_offset", "records"),
        "first_time_ms": _time(one.open.first_time_ms),
        "last_time_ms": _time(one.open.last_time_ms),
        **fields_of(judged, "transactional_id", "coordinator_state", "verdict", "confidence", "reason"),
        "to_end_it": ending.to_end_it,
        "blocks": {"records": ending.blocked_records, "groups": list(ending.blocked_groups)},
        "citations": judged.citations,
    }


def _torn(one: TornTransaction) -> dict[str, Any]:
    return {
        **fields_of(one, "producer_id", "producer_epoch", "first_offset", "last_offset", "records"),
        "marker": one.marker.kind,
        "marker_offset": one.marker.offset,
        "committed_in": Absent.NOT_APPLICABLE
        if one.committed_in is None
        else {
            "topic": one.committed_in.topic,
            "partition": one.committed_in.partition,
            "offset": one.commit_offset,
        },
        **fields_of(one, "transactional_id", "coordinator_state", "confidence", "reason", "citations"),
    }


def _state(state: TransactionState, body: Transactions) -> dict[str, Any]:
    removed = state.is_removed
    return {
        "transactional_id": to_plain(state.transactional_id),
        "partition": body.coordinators.topic.partition_of(state.transactional_id),
        "offset": state.offset,
        "leader_epoch": state.leader_epoch,
        "time_ms": _time(state.time_ms),
        "state": Absent.NOT_APPLICABLE if removed else status_name(state.status),
        "producer_id": Absent.NOT_APPLICABLE if removed else state.producer_id,
        "producer_epoch": Absent.NOT_APPLICABLE if removed else state.producer_epoch,
        "timeout_ms": Absent.NOT_APPLICABLE if removed else state.timeout_ms,
        "partitions": [{"topic": one.topic, "partition": one.partition} for one in state.partitions],
        "citations": () if state.citation is None else (state.citation,),
    }


def _time(value: int) -> int | Absent:
    return value if value >= 0 else Absent.UNKNOWN
