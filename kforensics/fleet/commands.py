"""The commands for fleets: what each takes and gives back, as those of `kforensics.commands` do for one machine."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import cache, wraps
from pathlib import Path
from typing import Any

from pyarrow.lib import ArrowException

from kforensics.ask.fleet import FleetAsk
from kforensics.ask.model import Ask
from kforensics.case.wanted import not_there
from kforensics.commands.outside import check_new_file
from kforensics.commands.result import Body, Conclusion, Result, now_ms
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, EvidenceUnreadable, KforensicsError, UsageError
from kforensics.exits import ExitCode
from kforensics.findings.answers.fleet import comparison_answer, fleet_answer, history_answer, trend_answer
from kforensics.findings.answers.model import exit_code
from kforensics.findings.fleet_summary import AuditComparison, AuditTrend, FleetSummary, TrimmedHistory
from kforensics.findings.gate import Acceptance, FailOn, decide, parse_acceptances
from kforensics.findings.model import Severity
from kforensics.findings.rule import all_rules
from kforensics.fleet.audit_tables import (
    PREVIOUS,
    AuditTables,
    Filters,
    earlier_audit,
    is_in,
    looked_again,
    open_audit,
    open_audits,
    previous_audit,
    trim_history,
)
from kforensics.fleet.auditing import audit
from kforensics.fleet.comparison import compare_audits, gated_findings, trend_of
from kforensics.fleet.file_systems import check_options, redacted
from kforensics.fleet.lock import require_free
from kforensics.fleet.output import open_output
from kforensics.fleet.session import CONNECT, configured, open_session
from kforensics.fleet.sources import check_output, read_sources
from kforensics.fleet.storage import StoragePath, parse_location
from kforensics.fleet.summary import summarise
from kforensics.fleet.tables import Tables
from kforensics.fleet.watch import Progress
from kforensics.reconcile.replicas.report import Verdict
from kforensics.render.metrics import check_metrics, write_metrics

UNKNOWN_CLUSTER = "unknown"
"""The name of what is of no known cluster."""


def _steadily(run: Callable[[FleetAsk], Result[Body]]) -> Callable[[FleetAsk], Result[Body]]:
    """Make a command that reads a history look again where it was trimmed meanwhile."""

    @wraps(run)
    def reading(request: FleetAsk) -> Result[Body]:

        text = request.tables or next(iter(request.several_tables), "")
        check_options(request.storage)
        place = parse_location(str(text), request.storage)
        with _named_errors(place):
            return looked_again(Tables(place), lambda: run(request))

    return reading


def run_audit(request: FleetAsk, progress: Progress | None = None, session: Any = None) -> Result[FleetSummary]:
    """Judge every partition of the sources on Spark, and write tables."""
    check_metrics(request.metrics)
    check_options(request.storage)
    found = read_sources(list(request.sources), request.storage)
    rules = _gate_rules(request)
    is_history = request.history_tables is not None
    target = parse_location(str(request.new_tables or request.history_tables), request.storage)
    for out in (target, request.metrics, Path(os.environ.get("TMPDIR", "/tmp"))):  # noqa: S108 - where Spark writes
        if out is not None:
            check_output(out, found)
    options = Ask(**{one.name: getattr(request, one.name) for one in fields(Ask)})
    since = parse_location(request.since, request.storage) if request.since else None
    if request.save_to is not None:
        from kforensics.fleet.frames import check_schema, check_schema_name, save_tables

        own = session is None and not (request.master or "").startswith(CONNECT)
        check_schema_name(request.save_to, configured() | dict(request.spark_conf) if own else None)

    open_here = ExitStack()

    @cache
    def opened() -> Any:
        own = open_session(request.master, dict(request.spark_conf)) if session is None else nullcontext(session)
        spark = open_here.enter_context(own)
        if request.save_to is not None:
            check_schema(spark, request.save_to)  # before anything is read
        return spark

    with _named_errors(target), open_here:
        # What is refused, or there already, needs no Spark.
        output = open_output(target, is_history=is_history, audit_id=request.audit_id)
        tables = output.finished
        if tables is None:
            require_free(output.tables, take_over=request.take_over)
            tables = audit(
                opened,
                found,
                target,
                options=options,
                since=since,
                take_over=request.take_over,
                is_history=is_history,
                audit_id=request.audit_id,
                keep_going=request.keep_going,
                progress=progress,
            )
        earlier = _compared_with(tables, request.since, request.storage)
        result = _summary("fleet audit", tables, earlier, most=request.most, filters=Filters(), rules=rules)
        try:
            if request.save_to is not None:
                save_tables(opened(), tables, request.save_to)
        except KforensicsError as error:
            # The audit is complete all the same.
            failed = ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.INCOMPLETE
            write_metrics(request.metrics, replace(result, concluded=result.conclusion._replace(exit_code=failed)))
            raise
    write_metrics(request.metrics, result)
    return result


@_steadily
def run_report(request: FleetAsk) -> Result[FleetSummary]:
    """Summarise tables of an audit, or a part of them."""
    check_metrics(request.metrics)
    rules = _gate_rules(request)
    place = parse_location(str(request.tables), request.storage)
    if request.pages is not None:
        check_new_file(request.pages, () if isinstance(place, StoragePath) else (place,))
    with _named_errors(place):
        tables = open_audit(place, request.shown_audit)
        filters = _filters(request, tables)
        earlier = _compared_with(tables, None, request.storage)

        def report(of: Filters) -> Result[FleetSummary]:
            return _summary("fleet report", tables, earlier, most=request.most, filters=of, rules=rules)

        result = report(filters)
        if request.pages is not None:
            _write_pages(request.pages, result, lambda one: report(replace(filters, clusters=frozenset({one}))))
    write_metrics(request.metrics, result)
    return result


def _write_pages(folder: Path, result: Result[FleetSummary], of_cluster: Callable[[str], Result[FleetSummary]]) -> None:
    """Write the page of an audit, and those of its clusters one by one."""
    from kforensics.render.emit import OutputFormat, emit
    from kforensics.render.view import View
    from kforensics.render.views.fleet import page_name

    view = View(made_ms=now_ms())
    try:
        folder.mkdir()
        for one in result.body.states_by_cluster:
            page = "".join(emit(of_cluster(one), OutputFormat.HTML, view))
            Path(folder, page_name(one)).write_text(page, encoding="utf-8")
        index = "".join(emit(result, OutputFormat.HTML, view._replace(has_pages=True)))
        Path(folder, "index.html").write_text(index, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--pages {folder} can't be written: {error.strerror}") from error


@contextmanager
def _named_errors(place: Path) -> Iterator[None]:
    """Turn what storage refuses while tables are read or written into an error that names them and shows no credential."""
    try:
        yield
    except EvidenceError:
        raise
    except (OSError, ArrowException) as error:
        if not isinstance(error, OSError) and type(error) is not ArrowException:
            raise  # of the classes below it a defect has one, too
        words = redacted(getattr(error, "strerror", None) or str(error) or type(error).__name__)
        raise EvidenceUnreadable(str(place), f"can't be read or written: {words}") from None


def _compared_with(tables: AuditTables, since: str | None, storage: Mapping[str, str]) -> AuditTables | None:
    """Return the audit that an audit is compared with without being asked: what it was built on, or the one before it in its history."""
    return previous_audit(tables) if since is None or since == PREVIOUS else earlier_audit(tables, since, storage)


def _gate_rules(request: FleetAsk) -> "tuple[tuple[FailOn, ...], tuple[Acceptance, ...]] | None":
    if not request.fail_on and request.accept is None:
        return None
    accepted: tuple[Acceptance, ...] = ()
    if request.accept is not None:
        try:
            accepted = parse_acceptances(request.accept.read_text(encoding="utf-8"), str(request.accept))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--accept {request.accept} can't be read: {error}") from error
    return tuple(map(FailOn, request.fail_on)) or (FailOn.WARNING,), accepted


def _filters(request: FleetAsk, *audits: AuditTables) -> Filters:
    """Return the filters of a report.

    Raises:
        UsageError: one matches nothing in any of the audits: an answer about nothing would be calm.
    """

    def known(column: str, *names: str, where: Any = None) -> set[Any]:
        return {one for tables in audits for name in names for one in tables.distinct(name, column, where)}

    if request.topics:
        _require(
            "no partition of topic {} is in the audit (--topic)",
            request.topics,
            known("topic", "partitions", "findings"),
        )
    if request.partitions:
        words = "no partition {} of the wanted topics is in the audit (--partition)"
        of_topics = is_in("topic", request.topics)
        _require(words, request.partitions, known("partition", "partitions", "findings", where=of_topics))
    if request.cluster is not None:
        every = {one or UNKNOWN_CLUSTER for tables in audits for one in tables.manifest["clusters"]}
        _require("cluster {} is not in the audit (--cluster)", [request.cluster], every)
    if request.nodes:
        _require("node {} is not in the audit (--node)", request.nodes, known("node_id", "nodes", "findings"))
    _require("no finding has the code {} (--code)", request.codes, all_rules())
    _require("there is no verdict {} (--verdict)", request.verdicts, Verdict)
    return Filters(
        topics=request.topics,
        partitions=request.partitions,
        nodes=request.nodes,
        clusters=frozenset()
        if request.cluster is None
        else frozenset({"" if request.cluster == UNKNOWN_CLUSTER else request.cluster}),
        verdicts=request.verdicts,
        codes=request.codes,
        least_severity=Severity(request.severity),
    )


def _require(words: str, wanted: Iterable[str | int], known: Iterable[str | int]) -> None:
    names = frozenset(map(str, known))
    for one in sorted(map(str, wanted)):
        if one not in names:
            raise not_there(words.format(one), one, names)


@_steadily
def run_comparison(request: FleetAsk) -> Result[AuditComparison]:
    """Say what changed between two audits."""
    storage = request.storage
    place = parse_location(str(request.tables), storage)
    with _named_errors(place):
        later = open_audit(place, request.shown_audit)
        earlier = earlier_audit(later, str(request.since), storage)
        if earlier.audit_id == later.audit_id or earlier.audited_ns > later.audited_ns:
            what = "this audit itself" if earlier.audit_id == later.audit_id else "a later audit"
            raise UsageError(f"--since {request.since} is {what}: name one that was made before {later.audit_id}")
        comparison = compare_audits(earlier, later, _filters(request, earlier, later))
    return Result(
        command="fleet comparison", body=comparison, concluded=Conclusion(answer=comparison_answer(comparison))
    )


@_steadily
def run_trend(request: FleetAsk) -> Result[AuditTrend]:
    """Count the findings of audits one after the other."""
    storage = request.storage
    audits = []
    for place in (parse_location(text, storage) for text in request.several_tables):
        with _named_errors(place):
            audits += open_audits(place)
    audits.sort(key=lambda one: one.age)
    trend = trend_of(audits, request.last, _filters(request, *audits))
    return Result(command="fleet trend", body=trend, concluded=Conclusion(answer=trend_answer(trend)))


def run_history(request: FleetAsk) -> Result[TrimmedHistory]:
    """Remove old audits of a history."""
    check_options(request.storage)
    place = parse_location(str(request.tables), request.storage)
    with _named_errors(place):
        found = trim_history(Tables(place), request.keep_days, take_over=request.take_over)
    return Result(command="fleet history", body=found, concluded=Conclusion(answer=history_answer(found)))


def _summary(
    command: str,
    tables: AuditTables,
    earlier: AuditTables | None,
    *,
    most: int,
    filters: Filters,
    rules: "tuple[tuple[FailOn, ...], tuple[Acceptance, ...]] | None",
) -> Result[FleetSummary]:

    summary = summarise(tables, most=most, filters=filters)
    comparison = None if earlier is None else compare_audits(earlier, tables, filters)
    answer = fleet_answer(summary)
    concluded = Conclusion(answer=answer, findings=summary.findings, problems=summary.problems)
    gate = None
    if rules is not None:
        fail_on, accepted = rules
        by_change = comparison is not None and {FailOn.NEW, FailOn.WORSE} & set(fail_on)
        is_unknown = exit_code(command, answer, (), summary.problems) == ExitCode.INCOMPLETE or (
            by_change and comparison is not None and bool(comparison_answer(comparison).unknown)
        )
        gate = decide(
            gated_findings(tables, earlier, filters),
            fail_on,
            accepted,
            today=datetime.now(UTC).date(),
            is_incomplete=bool(is_unknown or summary.problem_count),
            compared_with=Absent.NOT_APPLICABLE if earlier is None else earlier.audit_id,
        )
        concluded = concluded._replace(exit_code=gate.exit_code)
    body = replace(summary, comparison=comparison, gate=gate)
    return Result(command=command, inputs=summary.inputs, body=body, concluded=concluded)
