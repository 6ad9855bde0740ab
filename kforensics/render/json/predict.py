"""The document of `predict`: `kforensics/predict/1`."""

from collections.abc import Iterable, Iterator
from typing import Any

from kforensics.commands.predict import Prediction
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.reconcile.logs.predicted_load import (
    Election,
    LogAtStart,
    LostRecords,
    PredictedLog,
    StartOrder,
    WayOut,
)
from kforensics.render.json.document import document, fields_of
from kforensics.render.view import View


def write(result: Result[Prediction], _view: View) -> Iterator[str]:
    """Return the fields that `docs/json.md` promises."""
    body = result.body
    fields: dict[str, Any] = {
        "depth": body.depth,
        "kafka": body.kafka,
        "kafka_source": body.kafka_source,
        "starts": [
            {
                "number": start.number,
                "input": start.input,
                "outcome": start.result,
                **fields_of(
                    start, "exception", "reason", "clean", "bytes_scanned", "logs_scanned", "kafka", "loads_logs"
                ),
            }
            for start in body.starts
        ],
        "metadata_logs": [
            {
                **fields_of(one, "input", "path", "log_end_offset", "snapshot_end"),
                "records_lost": one.lost.records,
                "held_by": _holders(one.lost),
            }
            for one in body.metadata_logs
        ],
        "versions": [
            {**fields_of(one, "input", "kafka"), "outcome": one.result, **fields_of(one, "exception", "reason")}
            for one in body.versions
        ],
    }
    if body.ways_out:
        fields["ways_out"] = [_way_out(way, rank) for rank, way in enumerate(body.ways_out, 1)]
    if body.order is not None:
        fields["order"] = _order(body.order)
    return document(result, "predict", fields, streams={"logs": map(_log, body.logs)})


def _order(order: StartOrder) -> dict[str, Any]:
    unclean = [one for one in order.elections if one.is_unclean is not False]
    leaders = [broker for broker in order.brokers if any(one.leader == broker for one in unclean)]
    return {
        "brokers": order.brokers,
        "wait_for": order.wait_for,
        "firsts": [
            {"broker_id": one.broker_id, "committed": {"certain": one.certain, "possible": one.possible}}
            for one in order.firsts
        ],
        "elections": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "leader": one.leader,
                "unclean": one.is_unclean,
                "committed": {"certain": one.lost_certain, "possible": one.lost_possible},
            }
            for one in order.elections
        ],
        "elections_json": _elections(unclean),
        "elections_by_leader": [
            {"broker_id": leader, "elections_json": _elections(one for one in unclean if one.leader == leader)}
            for leader in leaders
        ],
        "missing": order.missing,
    }


def _elections(elections: Iterable[Election]) -> dict[str, Any]:
    """Return what `kafka-leader-election.sh --path-to-json-file` takes."""
    return {"partitions": [{"topic": one.topic, "partition": one.partition} for one in elections]}


def _way_out(way: WayOut, rank: int) -> dict[str, Any]:
    return {
        "rank": rank,
        "input": way.node,
        "changes": [
            {**fields_of(change, "kind", "input", "paths"), "kafka": change.value or Absent.NOT_APPLICABLE}
            for change in way.changes
        ],
        "outcome": way.result,
        "exception": way.exception,
        "reason": way.reason,
        "starts": way.start_count,
        "records_lost": way.records,
        "committed": {"certain": way.certain, "possible": way.possible},
        **fields_of(
            way, "only_here", "holes", "epochs_wrong", "transactions_forgotten", "bytes_scanned", "bytes_due", "assumed"
        ),
    }


def _log(log: PredictedLog) -> dict[str, Any]:
    return {
        **fields_of(log, "start", "input", "path", "topic", "partition", "outcome"),
        "becomes": log.fate,
        "exception": log.exception,
        "message": log.message,
        "before": _state(log.before),
        "after": log.after if isinstance(log.after, Absent) else _state(log.after),
        "files": [
            {
                "name": change.name,
                "action": change.action,
                "to_name": change.to_name,
                "to_bytes": change.to_length,
                "rule": change.rule,
            }
            for change in log.files
        ],
        "records_lost": log.lost.records,
        "committed": {"certain": log.lost.certain, "possible": log.lost.possible},
        "held_by": _holders(log.lost),
        "retention": log.due
        if isinstance(log.due, Absent)
        else {
            "segments": log.due.base_offsets,
            "bytes": log.due.bytes,
            "rule": log.due.rule,
            "known": log.due.is_setting_known,
            "whole_log": log.due.is_whole_log,
            "misdated": log.due.misdated,
        },
    }


def _holders(lost: LostRecords) -> list[dict[str, Any]]:
    return [fields_of(holder, "input", "broker_id", "records") for holder in lost.held_by]


def _state(state: LogAtStart) -> dict[str, Any]:
    return {
        **fields_of(state, "log_start_offset", "log_end_offset", "recovery_point", "last_stable_offset", "epochs"),
        "segments": [list(segment) for segment in state.segments],
    }
