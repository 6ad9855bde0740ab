"""Evidence, inputs, findings and problems as rows of tables and back, so that what was read in one place can be judged or shown in another."""

from collections.abc import Mapping, Sequence
from typing import Any

from kforensics.damage import Absent, Span
from kforensics.evidence.captured.columns import (
    Row,
    damage_rows,
    known,
    known_or,
)
from kforensics.evidence.discovery.partition_dirs import CHECKPOINTS
from kforensics.evidence.model import CheckpointValue, Citation, Input, Problem, Replica
from kforensics.findings.changes import finding_ids
from kforensics.findings.model import Confidence, Finding, Severity
from kforensics.source.naming import parse_partition_directory
from kforensics.units import OffsetRange


def _reasons(absent: Mapping[str, Absent]) -> list[str]:
    return [f"{name}={why.value}" for name, why in sorted(absent.items())]


def _reasons_in(row: Mapping[str, Any]) -> dict[str, Absent]:
    return {name: Absent(why) for name, _, why in (one.partition("=") for one in row["absent"] or ())}


# ---------------------------------------------------------------- replicas


def replica_row(replica: Replica, listed: Row) -> Row:
    """Return the facts of a partition directory without its segments, with what who listed it knows."""
    checkpoints = {name: getattr(replica, name) for name in CHECKPOINTS}
    absent = {
        name: value
        for name in ("broker_id", "topic_id", "checkpoint_epochs", *CHECKPOINTS)
        if isinstance(value := getattr(replica, name), Absent)
    }
    epochs = replica.checkpoint_epochs
    return {
        "input": replica.input,
        "node_id": known(replica.broker_id),
        "source": listed["source"],
        "sequence": listed["sequence"],
        "topic": replica.topic_partition.topic,
        "partition": replica.topic_partition.partition,
        "state": replica.state,
        "path": replica.path,
        "log_dir": replica.log_dir,
        "topic_id": known(replica.topic_id),
        "checkpoint_epochs": None
        if isinstance(epochs, Absent)
        else [{"leader_epoch": epoch, "start_offset": start} for epoch, start in epochs],
        **{name: None if isinstance(one, Absent) else one.value for name, one in checkpoints.items()},
        "checkpoint_lines": [_line(one) for one in checkpoints.values()],
        "clean_shutdown": replica.clean_shutdown,
        "producer_snapshots": list(replica.producer_snapshots),
        "orphan_indexes": [{"base_offset": base, "path": path} for base, path in replica.orphan_indexes],
        "segment_files": listed.get("segment_files"),
        "damage": [row for path, damage in sorted(replica.damage.items()) for row in damage_rows(path, damage)],
        "absent": _reasons(absent),
        "fingerprint": listed.get("fingerprint"),
    }


def _line(checkpoint: CheckpointValue | Absent) -> int | None:
    if isinstance(checkpoint, Absent) or isinstance(checkpoint.citation.line, Absent):
        return None
    return checkpoint.citation.line


# ---------------------------------------------------------------- inputs, findings and problems


def input_row(number: int, described: Input) -> Row:
    """Return an input as a row of the table `nodes`."""
    values = {
        "node_id": described.broker_id,
        "cluster_id": described.cluster_id,
        "kafka_version_hint": described.kafka_version_hint,
    }
    return {
        "input": number,
        "path": described.path,
        "kind": described.kind,
        **{name: known(value) for name, value in values.items()},
        "absent": [f"{name}={value.value}" for name, value in values.items() if isinstance(value, Absent)],
    }


def input_of(row: Mapping[str, Any]) -> Input:
    """Return the input of a row of the table `nodes`."""
    absent = _reasons_in(row)

    def value(name: str) -> Any:
        return known_or(row[name], absent.get(name, Absent.UNKNOWN))

    return Input(
        path=row["path"],
        kind=row["kind"],
        broker_id=value("node_id"),
        cluster_id=value("cluster_id"),
        kafka_version_hint=value("kafka_version_hint"),
    )


def finding_rows(findings: Sequence[Finding], cluster_id: str | None, roots: Sequence[object]) -> list[Row]:
    """Return findings with all of their words."""
    ids = finding_ids(findings, cluster_id, roots)
    return [_finding_row(one, own, cluster_id) for one, own in zip(findings, ids, strict=True)]


def _finding_row(item: Finding, own_id: str, cluster_id: str | None) -> Row:
    offsets = item.offsets
    absent = {
        name: value
        for name in ("topic", "partition", "broker_id", "offsets")
        if isinstance(value := getattr(item, name), Absent) and value is not Absent.NOT_APPLICABLE
    }
    return {
        "finding_id": own_id,
        "code": item.code,
        "severity": item.severity.value,
        "severity_rank": item.severity.rank,
        "confidence": item.confidence.value,
        "confidence_rank": item.confidence.rank,
        "statement": item.statement,
        "meaning": item.meaning,
        "advice": item.advice,
        "cluster_id": cluster_id,
        "topic": known(item.topic),
        "partition": known(item.partition),
        "node_id": known(item.broker_id),
        "first_offset": None if isinstance(offsets, Absent) else offsets.first,
        "last_offset": None if isinstance(offsets, Absent) else offsets.last,
        "citations": [
            {
                "input": one.input,
                "path": one.path,
                "position": one.span.position if isinstance(one.span, Span) else None,
                "length": one.span.length if isinstance(one.span, Span) else None,
                "line": known(one.line),
            }
            for one in item.citations
        ],
        "reference_ids": list(item.references),
        "absent": _reasons(absent),
    }


def finding_of(row: Mapping[str, Any]) -> Finding:
    """Return the finding of a row."""
    absent = _reasons_in(row)

    def value(column: str, name: str) -> Any:
        return known_or(row[column], absent.get(name, Absent.NOT_APPLICABLE))

    return Finding(
        code=row["code"],
        severity=Severity(row["severity"]),
        confidence=Confidence(row["confidence"]),
        statement=row["statement"],
        meaning=row["meaning"],
        advice=row["advice"],
        topic=value("topic", "topic"),
        partition=value("partition", "partition"),
        broker_id=value("node_id", "broker_id"),
        offsets=absent.get("offsets", Absent.NOT_APPLICABLE)
        if row["first_offset"] is None
        else OffsetRange(row["first_offset"], row["last_offset"]),
        citations=tuple(
            Citation(
                input=one["input"],
                path=one["path"],
                span=Absent.NOT_APPLICABLE if one["position"] is None else Span(one["position"], one["length"]),
                line=known_or(one["line"], Absent.NOT_APPLICABLE),
            )
            for one in row["citations"] or ()
        ),
        references=tuple(row["reference_ids"] or ()),
    )


def problem_row(problem: Problem) -> Row:
    """Return something that could not be read as a row, with the partition whose directory its path names."""
    names = (parse_partition_directory(part) for part in reversed(problem.path.split("/")))
    partition = next((name.topic_partition for name in names if name is not None), None)
    return {
        "input": problem.input,
        "path": problem.path,
        "topic": None if partition is None else partition.topic,
        "partition": None if partition is None else partition.partition,
        "position": known(problem.position),
        "message": problem.message,
    }


def problem_of(row: Mapping[str, Any]) -> Problem:
    """Return the problem of a row."""
    return Problem(
        input=row["input"],
        path=row["path"],
        message=row["message"],
        position=known_or(row["position"], Absent.NOT_APPLICABLE),
    )
