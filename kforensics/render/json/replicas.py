"""The comparison of replicas: the document of `diff`, and the partitions in that of an audit."""

import json
import zlib
from collections.abc import Iterator
from typing import Any

from kforensics.commands.comparing import DiffResult
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.evidence.plain import to_plain
from kforensics.findings.answers.diff import partition_state
from kforensics.findings.answers.model import State
from kforensics.findings.concern import ConcernKind
from kforensics.protocol.truncation import TruncationStep
from kforensics.reconcile.committed.judge import CommittedCounts, CommittedRun
from kforensics.reconcile.logs.divergence import Divergence
from kforensics.reconcile.observed.leadership import Election, Gap, LeadershipAccount
from kforensics.reconcile.replicas.leader import ExpectedTruncation, LeaderChoice
from kforensics.reconcile.replicas.report import (
    EmptiedReplica,
    OddOne,
    PartitionReport,
    ReplicaReport,
    SoleHolder,
    WhatIf,
)
from kforensics.render.json.document import LAST_LINES, write_document
from kforensics.render.json.shape import Document, Each, Field, own, shape
from kforensics.render.view import View


def write(result: Result[DiffResult], _view: View) -> Iterator[str]:
    """Return the document, piece by piece: the reports of partitions are made while they are written."""
    return write_document(DIFF, result, partitions=_flat_reports(result.body))


def flatten(report: PartitionReport, state: State) -> bytes:
    """Return a report with the state of its partition as it is written, compressed by zlib: small enough to be kept for each of a million partitions."""
    return zlib.compress(json.dumps(plain_report(report, state)).encode(), 1)


def _flat_reports(result: DiffResult) -> Iterator[str]:
    for one in result.partitions:
        if one.plain is not None:
            text = zlib.decompress(one.plain).decode()
            if any(concern.kind is ConcernKind.SAME_DISK for concern in one.judged.concerns):
                # Only the other partitions show it, and the report was made before they were compared.
                text = json.dumps(json.loads(text) | {"state": one.state.value})
            yield text
        elif one.report is not None:
            yield json.dumps(plain_report(one.report, one.state))


def plain_report(report: PartitionReport, state: State | None = None) -> dict[str, Any]:
    """Return one partition as it is written."""
    plain: dict[str, Any] = to_plain(report)
    return {**plain, "state": (state or partition_state(report)).value}


def _end_of(report: ReplicaReport) -> int | Absent:
    replica = report.view.replica
    if replica.is_log_known:
        return report.view.log_end_offset
    return Absent.UNREADABLE if replica.unread_files else Absent.UNKNOWN


shape(
    CommittedCounts,
    "Records by whether they were committed: proven, possible, or proven not to be.",
    own("certain possible no"),
)
shape(
    Election,
    "An election that may have lost committed records.",
    {
        "leader": "state.leader",
        "leader_epoch": "state.leader_epoch",
        "previous_leader": ("previous", "Who led before."),
        "risk": ("", "What makes it one."),
        "citations": Field(lambda one: (one.state.citation,), "", tuple[Citation, ...]),
    },
)
shape(
    Gap,
    "A gap that no input fills.",
    {"kind": "", "unknown": ("words", "What is not known, in words."), "settled_by": ""},
)
shape(
    LeadershipAccount,
    "Who led, and how: the same account as in `explain`.",
    {
        "source": ("", "`metadata-log`, `log-lines` or `none`."),
        "last_leader": "",
        "risky_elections": ("risky", "Elections that may have lost committed records."),
        "gaps": "",
    },
)
shape(
    LeaderChoice,
    "The replica that the others follow.",
    own("broker_id leader_epoch source reason is_known tied_with citations"),
)
shape(
    SoleHolder,
    "A replica that holds the end of its log alone among those given.",
    {
        "broker_id": "view.replica.broker_id",
        "first_offset": "offsets.first",
        "last_offset": "offsets.last",
        "records": "counts.records",
        "committed": "counts",
        "is_tail_of_a_copy": "",
    },
)
shape(
    CommittedRun,
    "A run of offsets that are equally certain.",
    {
        "first_offset": "offsets.first",
        "last_offset": "offsets.last",
        "records": "",
        "committed": "certainty",
        **own("reason citations"),
    },
)
shape(
    TruncationStep,
    "A question of the follower, the leader's answer, and what follows.",
    {
        **own("kind fetch_offset requested_epoch answer_epoch answer_offset own_epoch own_offset log_end_offset"),
        **own("truncate_to rule"),
        "sentence": ("sentence()", "The step in words."),
    },
)
shape(
    ExpectedTruncation,
    "What the protocol will truncate.",
    {
        **own("offset target_offset"),
        "rule": "outcome.rule",
        "steps": ("outcome.steps", "What leads to it."),
        "records": ("counts.records", "How many are discarded."),
        "markers": ("counts.markers", "Control markers that are discarded."),
        "committed": ("counts", "The discarded records by certainty."),
        "lost": "",
        "below_high_watermark": "outcome.below_high_watermark",
        "full_restart": "outcome.full_restart",
        "runs": "",
    },
)
shape(
    Divergence,
    "The first offset, in the range that both logs hold, where the content differs from the leader's. A replica that is only longer or shorter has none.",
    own("offset kind detail is_open citations"),
)
shape(
    ReplicaReport,
    "One replica of a partition.",
    {
        "broker_id": "view.replica.broker_id",
        "input": "view.replica.input",
        "path": "view.replica.path",
        "state": "view.replica.state",
        "topic_id": "view.replica.topic_id",
        "log_start_offset": "view.log_start_offset",
        "local_log_start_offset": (
            "view.content_start_offset",
            "Higher than the log start where older segments are in remote storage.",
        ),
        "log_end_offset": (_end_of, "Where a start would recover the log, the end that recovery leaves."),
        "high_watermark": ("view.replica.high_watermark.value", "What the checkpoint claims."),
        "recovery_point": ("view.replica.recovery_point.value", "What the checkpoint claims."),
        "epochs": ("view.batch_epochs", "The leader epochs of the batches."),
        "checkpoint_epochs": "view.replica.checkpoint_epochs",
        "verdict": "",
        "protocol": "protocol.name",
        "protocol_reason": "protocol.reason",
        "by_other_protocols": Field(
            "by_other_protocols",
            "Where the protocol is assumed, and another that it can be truncates elsewhere.",
            Each({"protocol": "0", "truncates_to": "1"}),
        ),
        "expected_truncation": ("truncation", "Null where nothing is truncated."),
        "truncation_without_epoch_checkpoint": Field(
            "without_file",
            "What a broker truncates that finds no epoch checkpoint, where the expected truncation rests on epochs rebuilt from batches.",
            own("offset rule"),
        ),
        "first_divergence": "divergence",
    },
)
shape(
    WhatIf,
    "What becomes of the others if one replica leads.",
    {
        "leader": "leader.replica.broker_id",
        "truncations": Field(
            "truncations",
            "",
            Each(
                {
                    "broker_id": "0.replica.broker_id",
                    "offset": "1.offset",
                    "rule": "1.outcome.rule",
                    "records": "1.counts.records",
                    "committed": "1.counts",
                }
            ),
        ),
        "discarded": ("", "Distinct records that truncations discard and this leader does not hold."),
        **own("lost_certain lost_possible kept_divergent is_emptied"),
    },
)
shape(
    OddOne,
    "A replica that is wrong by its checksums or by what most others hold.",
    {"broker_id": "view.replica.broker_id", "reason": ""},
)
shape(
    EmptiedReplica,
    "An assigned broker that is given and holds nothing of the partition.",
    own("broker_id is_certain is_electable reason"),
)
shape(
    PartitionReport,
    "One topic name and partition, all replicas compared with the leader.",
    {
        "topic": "partition.topic",
        "partition": "partition.partition",
        "topic_id": "",
        "leader": Field(lambda one: one.leader or Absent.UNKNOWN, "", LeaderChoice | Absent),
        "verdict": "",
        "state": Field(lambda _: None, "Of the partition, by the words of `answer.state`.", State),
        "replicas": "",
        "not_compared_below": "",
        "what_if": "",
        "missing_replicas": "",
        "assigned_replicas": "assigned",
        **own("isr electable sole_holders unassigned_holders"),
        "leadership": "account",
        "odd_ones_out": "odd_ones",
        "emptied_replicas": "emptied",
    },
)

DIFF = Document(
    "diff",
    DiffResult,
    {
        "depth": "",
        "partitions": ("reports", "One for each topic name and partition."),
    },
    streamed=("partitions",),
    lines={"partition": Field(lambda result: _flat_reports(result.body), "", PartitionReport), **LAST_LINES},
)
