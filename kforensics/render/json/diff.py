"""The comparison of replicas as JSON: the `partitions` of the document that `docs/json.md` promises."""

import json
import zlib
from collections.abc import Iterator
from typing import Any

from kforensics.commands.diff import DiffResult
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.findings.answers.diff import partition_state
from kforensics.findings.answers.model import State
from kforensics.findings.concern import ConcernKind
from kforensics.protocol.truncation import TruncationStep
from kforensics.reconcile.committed.judge import CommittedCounts
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.leadership import LeadershipAccount
from kforensics.reconcile.replicas.holders import SoleHolder
from kforensics.reconcile.replicas.leader import ExpectedTruncation
from kforensics.reconcile.replicas.report import PartitionReport, ReplicaReport, WhatIf
from kforensics.render.json.document import document, fields_of, json_line, seal_objects, to_plain
from kforensics.render.view import View


def write(result: Result[DiffResult], _view: View) -> Iterator[str]:
    """Return the document, piece by piece.

    Args:
        result: of `diff`; the reports of its partitions are made while they are written.
    """
    return document(result, "diff", {"depth": result.body.depth}, streams={"partitions": _flat_reports(result.body)})


def write_lines(result: Result[DiffResult], _view: View) -> Iterator[str]:
    """Yield an object a line: partitions, seal, findings, problems."""
    for report in _flat_reports(result.body):
        yield report + "\n"
    for value in (*seal_objects(result), *result.findings, *result.problems):
        yield json_line(value)


def flatten(report: PartitionReport, state: State) -> bytes:
    """Return a report with the state of its partition as it is written, small enough to be kept for each of a million partitions.

    Returns:
        JSON, compressed by zlib.
    """
    return zlib.compress(json.dumps(to_plain(plain_report(report, state))).encode(), 1)


def _flat_reports(result: DiffResult) -> Iterator[str]:
    for one in result.partitions:
        if one.plain is not None:
            text = zlib.decompress(one.plain).decode()
            if any(concern.kind is ConcernKind.SAME_DISK for concern in one.judged.concerns):
                # Only the other partitions show it, and the report was made before they were compared.
                text = json.dumps(json.loads(text) | {"state": one.state.value})
            yield text
        elif one.report is not None:
            yield json.dumps(to_plain(plain_report(one.report, one.state)))


def plain_report(report: PartitionReport, state: State | None = None) -> dict[str, Any]:
    """Return one partition as the promise of `docs/json.md` has it.

    Args:
        state: where more is known than the report shows, such as files that could not be read.
    """
    leader = report.leader
    return {
        "topic": report.partition.topic,
        "partition": report.partition.partition,
        "topic_id": report.topic_id,
        "leader": Absent.UNKNOWN
        if leader is None
        else fields_of(leader, "broker_id", "leader_epoch", "source", "reason", "is_known", "tied_with", "citations"),
        "verdict": report.verdict,
        "state": (state or partition_state(report)).value,
        "replicas": [_plain_replica(replica) for replica in report.replicas],
        "not_compared_below": report.not_compared_below,
        "what_if": [_plain_what_if(choice) for choice in report.what_if],
        "missing_replicas": report.missing_replicas,
        "assigned_replicas": report.assigned,
        "isr": _sorted(report.isr),
        "electable": _sorted(report.electable),
        "sole_holders": [_plain_holder(holder) for holder in report.sole_holders],
        "unassigned_holders": [_plain_holder(holder) for holder in report.unassigned_holders],
        "leadership": Absent.NOT_APPLICABLE if report.account is None else _plain_account(report.account),
        "odd_ones_out": [{"broker_id": one.view.replica.broker_id, "reason": one.reason} for one in report.odd_ones],
        "emptied_replicas": [
            fields_of(one, "broker_id", "is_certain", "is_electable", "reason") for one in report.emptied
        ],
    }


def _plain_account(account: LeadershipAccount) -> dict[str, Any]:
    return {
        "source": account.source,
        "last_leader": account.last_leader,
        "risky_elections": [
            {
                "leader": one.state.leader,
                "leader_epoch": one.state.leader_epoch,
                "previous_leader": one.previous,
                "risk": one.risk,
                "citations": (one.state.citation,),
            }
            for one in account.risky
        ],
        "gaps": [{"kind": one.kind, "unknown": one.words, "settled_by": one.settled_by} for one in account.gaps],
    }


def _plain_replica(report: ReplicaReport) -> dict[str, Any]:
    view, replica = report.view, report.view.replica
    protocol = report.protocol
    return {
        **fields_of(replica, "broker_id", "input", "path", "state", "topic_id"),
        "log_start_offset": view.log_start_offset,
        "local_log_start_offset": view.content_start_offset,
        "log_end_offset": _end_of(view),
        "high_watermark": _number(replica.high_watermark),
        "recovery_point": _number(replica.recovery_point),
        "epochs": view.batch_epochs,
        "checkpoint_epochs": replica.checkpoint_epochs,
        "verdict": report.verdict,
        "protocol": protocol if isinstance(protocol, Absent) else protocol.name,
        "protocol_reason": protocol if isinstance(protocol, Absent) else protocol.reason,
        "by_other_protocols": [
            {"protocol": name, "truncates_to": offset} for name, offset in report.by_other_protocols
        ],
        "expected_truncation": _plain_truncation(report.truncation),
        "truncation_without_epoch_checkpoint": Absent.NOT_APPLICABLE
        if report.without_file is None
        else {"offset": report.without_file.offset, "rule": report.without_file.rule},
        "first_divergence": Absent.NOT_APPLICABLE
        if report.divergence is None
        else fields_of(report.divergence, "offset", "kind", "detail", "is_open", "citations"),
    }


def _end_of(view: LoadedLog) -> int | Absent:
    replica = view.replica
    if replica.is_log_known:
        return view.log_end_offset
    return Absent.UNREADABLE if replica.unread_files else Absent.UNKNOWN


def _sorted(brokers: frozenset[int] | Absent) -> Any:
    return brokers if isinstance(brokers, Absent) else sorted(brokers)


def _plain_holder(holder: SoleHolder) -> dict[str, Any]:
    return {
        "broker_id": holder.view.replica.broker_id,
        "first_offset": holder.offsets.first,
        "last_offset": holder.offsets.last,
        "records": holder.counts.records,
        "committed": _plain_counts(holder.counts),
        "is_tail_of_a_copy": holder.is_tail_of_a_copy,
    }


def _number(value: Any) -> Any:
    return value if isinstance(value, Absent) else value.value


def _plain_truncation(expected: ExpectedTruncation | None) -> Any:
    if expected is None:
        return Absent.NOT_APPLICABLE
    return {
        "offset": expected.offset,
        "target_offset": expected.target_offset,
        "rule": expected.outcome.rule,
        "steps": [_plain_step(step) for step in expected.outcome.steps],
        "records": expected.counts.records,
        "markers": expected.counts.markers,
        "committed": _plain_counts(expected.counts),
        "lost": _plain_counts(expected.lost),
        "below_high_watermark": expected.outcome.below_high_watermark,
        "full_restart": expected.outcome.full_restart,
        "runs": [
            {
                "first_offset": run.offsets.first,
                "last_offset": run.offsets.last,
                "records": run.records,
                "committed": run.certainty,
                "reason": run.reason,
                "citations": run.citations,
            }
            for run in expected.runs
        ],
    }


def _plain_step(step: TruncationStep) -> dict[str, Any]:
    asked = fields_of(step, "kind", "fetch_offset", "requested_epoch", "answer_epoch", "answer_offset")
    done = fields_of(step, "own_epoch", "own_offset", "log_end_offset", "truncate_to", "rule")
    return {**asked, **done, "sentence": step.sentence()}


def _plain_counts(counts: CommittedCounts) -> dict[str, Any]:
    return fields_of(counts, "certain", "possible", "no")


def _plain_what_if(choice: WhatIf) -> dict[str, Any]:
    return {
        "leader": choice.leader.replica.broker_id,
        "truncations": [
            {
                "broker_id": view.replica.broker_id,
                "offset": expected.offset,
                "rule": expected.outcome.rule,
                "records": expected.counts.records,
                "committed": _plain_counts(expected.counts),
            }
            for view, expected in choice.truncations
        ],
        "discarded": _plain_counts(choice.discarded),
        **fields_of(choice, "lost_certain", "lost_possible", "kept_divergent", "is_emptied"),
    }
