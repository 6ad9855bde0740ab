"""An audit as metrics in the text format of Prometheus, for the textfile collector of its node exporter."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from kforensics import __version__
from kforensics.commands.result import Result
from kforensics.errors import UsageError
from kforensics.findings.answers.model import STATES
from kforensics.findings.changes import Change
from kforensics.findings.fleet_summary import AGES, FleetSummary
from kforensics.findings.model import Severity

FIRST_WORDS = "# HELP kforensics_"
"""The beginning of every file of metrics."""

_Samples = Iterator[tuple[Mapping[str, str], float]]


def metrics_text(result: Result[FleetSummary]) -> str:
    """Return the metrics of an audit or of a report of one.

    Source: https://prometheus.io/docs/instrumenting/exposition_formats/ (text format 0.0.4).
    """
    return "".join(line for one in _families(result) for line in _lines(*one))


def _families(result: Result[FleetSummary]) -> Iterator[tuple[str, str, _Samples]]:
    summary = result.body
    yield (
        "audit_info",
        "The audit that the other metrics are of.",
        _one(1, audit_id=summary.audit_id, version=__version__),
    )
    yield "audit_started_timestamp_seconds", "When the audit began.", _one(summary.audited_ms / 1000)
    yield "audit_exit_code", "The exit code of the audit.", _one(result.exit_code)
    yield (
        "audit_state",
        "The state of the answer, 1 for the one that it is.",
        (({"state": one.value}, float(one is result.answer.state)) for one in STATES[result.command]),
    )
    yield "audit_stage_seconds", "The time that each stage took.", _by("stage", summary.seconds)
    yield "audit_read_bytes", "Bytes of evidence that the audit read.", _one(summary.read_bytes)
    yield "audit_reused_segments", "Segments taken over from an earlier audit.", _one(summary.reused_segments)
    yield "nodes", "Nodes that were read, or could not be.", _one(summary.nodes)
    yield "partitions", "Partitions by state.", _by("state", summary.states)
    yield "under_replicated_partitions", "Partitions that lack replicas in sync.", _one(summary.under_replicated)
    yield "offline_partitions", "Partitions without a leader.", _one(summary.offline)
    yield (
        "records_at_risk",
        "Records that truncations would discard, by whether they were committed.",
        _by("committed", {"certain": summary.lost_certain, "possible": summary.lost_possible}),
    )
    yield "problems", "What could not be read.", _one(summary.problem_count)
    yield (
        "findings",
        "Findings by cluster and severity.",
        (
            ({"cluster": cluster, "severity": one.value}, float(counts.get(one.value, 0)))
            for cluster, counts in (summary.findings_by_cluster or {"": {}}).items()
            for one in Severity
        ),
    )
    known = {one[:4]: one for one in summary.open_findings}
    clusters = [*summary.findings_by_cluster] or [""]
    clusters = sorted({*clusters, *(one.cluster for one in summary.open_findings)})
    names = [(one, severity.value, state) for one in clusters for severity in Severity for state in _STATES]
    yield (
        "open_findings",
        "Findings that are not closed by cluster, severity, state and the time since they were first seen.",
        (
            ({**_labels(one), "age": age}, known[(*one, age)].findings if (*one, age) in known else 0)
            for one in names
            for age in AGES
        ),
    )
    yield (
        "oldest_open_finding_timestamp_seconds",
        "When the oldest finding that is not closed was first seen.",
        (
            (_labels(one), min(first) / 1000)
            for one in names
            if (first := [known[(*one, age)].first_seen_ms for age in AGES if (*one, age) in known])
        ),
    )
    if summary.comparison is not None:
        yield (
            "findings_by_change",
            "Findings by what became of them since the earlier audit.",
            _by("change", {one.value: summary.comparison.count(one) for one in Change}),
        )
    if summary.gate is not None:
        yield "gate_failing_findings", "Findings that fail the rules of the schedule.", _one(summary.gate.failing)
        yield "gate_accepted_findings", "Findings that would fail them and are accepted.", _one(summary.gate.accepted)
        yield "gate_expired_acceptances", "Acceptances that ended.", _one(len(summary.gate.expired))


_STATES = ("open", "not-checked")


def _labels(one: tuple[str, str, str]) -> dict[str, str]:
    return dict(zip(("cluster", "severity", "state"), one, strict=True))


def _one(value: float, **labels: str) -> _Samples:
    yield labels, value


def _by(label: str, values: Mapping[str, float]) -> _Samples:
    for name, value in values.items():
        yield {label: name}, value


def _lines(name: str, words: str, samples: _Samples) -> Iterator[str]:
    yield f"# HELP kforensics_{name} {words}\n# TYPE kforensics_{name} gauge\n"
    for labels, value in samples:
        named = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        number = str(int(value)) if value == int(value) else repr(value)
        yield f"kforensics_{name}{f'{{{named}}}' if named else ''} {number}\n"


def _escaped(text: str) -> str:
    return (
        text.encode("utf-8", "backslashreplace").decode().replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    )


# ---------------------------------------------------------------- the file, which a collector may read at any moment


def check_metrics(path: Path | None) -> None:
    """Refuse, before the work, a file that holds something other than metrics, or whose directory is missing."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise UsageError(f"--metrics {path}: {path.parent} is no directory")
    try:
        with path.open("rb") as file:
            begin = file.read(len(FIRST_WORDS))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"--metrics {path} can't be read: {error.strerror}") from error
    if begin != FIRST_WORDS.encode():
        raise UsageError(
            f"--metrics {path} holds something else than metrics of kforensics, which are all that it replaces"
        )


def write_metrics(path: Path | None, result: Result[FleetSummary]) -> None:
    """Write the metrics of an audit, whole or not at all."""
    if path is None:
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_text(metrics_text(result), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"--metrics {path} can't be written: {error.strerror}") from error
