"""`kforensics explain`: what was truncated, why, and which committed records are gone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kforensics.cli.options import (
    JobsOption,
    OutOption,
    OutputFormat,
    PartitionsOption,
    ReportFormatOption,
    SealOption,
    TopicsOption,
    VerboseOption,
    parse_time,
    require_format,
)
from kforensics.cli.redaction import RedactKeyOption, RedactOption, pseudonyms_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kforensics.commands.cited import CitedFile
    from kforensics.commands.explain import Explanation
    from kforensics.commands.sealing.report import CheckedSeal


def explain(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Data directories as they are now, parents of several, and broker logs, in any mixture: server.log, state-change.log, "
            "controller.log, rotated and gzipped ones too.",
            show_default=False,
            readable=False,
        ),
    ],
    *,
    before: Annotated[
        list[Path] | None,
        typer.Option(
            "--before",
            metavar="PATH",
            help="Data directories as they were at an earlier time; repeatable.",
            show_default=False,
        ),
    ] = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Timeline from this time on: ISO 8601, UTC where it names no zone, or milliseconds.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Timeline up to this time.", show_default=False),
    ] = None,
    log_timezone: Annotated[
        str | None,
        typer.Option(
            "--log-timezone",
            metavar="ZONE",
            help="Zone of the times in the logs, as +02:00 or Europe/Berlin; where it is not given, the evidence decides.",
            show_default=False,
        ),
    ] = None,
    redact: RedactOption = False,
    redact_key: RedactKeyOption = None,
    output_format: ReportFormatOption = OutputFormat.TEXT,
    out: OutOption = None,
    jobs: JobsOption = None,
    seal: SealOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Tell what happened after an incident: every truncation with its cause, and every record that is gone.

    Works on one broker's directory alone and gets better with every other replica, metadata log, log file and earlier snapshot;
    it says what is missing. `--format html -o report.html` makes a page for the post-mortem. Exit code 1 means that records are gone that were or may have been committed.
    """
    from dataclasses import replace

    from kforensics.cli.output import check_out, write_result
    from kforensics.cli.sealed import add_seal, checked_seal
    from kforensics.commands.cited import cited_files
    from kforensics.commands.explain import ExplainOptions
    from kforensics.commands.explain import explain as tell
    from kforensics.commands.snapshots import gather_evidence
    from kforensics.errors import UsageError
    from kforensics.findings.answers.model import exit_code
    from kforensics.reconcile.observed.time_zones import parse_zone

    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.HTML)
    check_out(out, [*paths, *(before or ())])
    pseudonyms = pseudonyms_of(redact, redact_key)
    if output_format is OutputFormat.HTML:
        from kforensics.render.html.pages import require_engine

        require_engine()
    options = ExplainOptions(
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        since_ms=parse_time(since, "--since") if since is not None else None,
        until_ms=parse_time(until, "--until") if until is not None else None,
        log_zone=parse_zone(log_timezone) if log_timezone else None,
        rename_group=pseudonyms.group if pseudonyms else str,
    )
    if options.since_ms is not None and options.until_ms is not None and options.since_ms > options.until_ms:
        raise UsageError("--since is later than --until")
    evidence = gather_evidence(paths, before or ())
    sealed = checked_seal(seal, [*paths, *(before or ())], evidence.inputs.described, jobs)
    result = tell(evidence, options, jobs=jobs)
    if sealed:
        result = replace(
            result, findings=add_seal(result.findings, sealed), problems=(*result.problems, *sealed.problems)
        )
    files = cited_files(result, evidence.inputs) if output_format is OutputFormat.HTML else ()
    if pseudonyms:
        from kforensics.commands.redaction.explanation import redact_cited_files, redact_explanation

        files = redact_cited_files(files, result, pseudonyms)
        result = redact_explanation(result, pseudonyms)
    code = exit_code("explain", result.answer, result.findings, result.problems)
    if output_format is OutputFormat.HTML:
        write_result(_page(result, files, sealed, code, is_redacted=pseudonyms is not None), out)
    else:
        write_result(_pieces(result, sealed, output_format, code, verbose=verbose, coloured=out is None), out)
    raise typer.Exit(code)


def _page(
    result: "Explanation",
    files: "tuple[CitedFile, ...]",
    sealed: "CheckedSeal | None",
    code: int,
    *,
    is_redacted: bool,
) -> str:
    from kforensics.render.html.explain_page import explain_html

    return explain_html(result, files, exit_code=code, seal=sealed, is_redacted=is_redacted)


def _pieces(
    result: "Explanation",
    sealed: "CheckedSeal | None",
    output_format: OutputFormat,
    code: int,
    *,
    verbose: bool,
    coloured: bool,
) -> "str | Iterator[str]":
    import sys

    from kforensics.cli.sealed import seal_part, with_seal_lines
    from kforensics.render.json.document import document, json_line
    from kforensics.render.json.explain import explanation_lines, plain_explanation
    from kforensics.render.text.explain import explain_screen
    from kforensics.render.text.screen import render_screen, screen_width, speaks_unicode, wants_colour

    if output_format is OutputFormat.JSON:
        return document(
            "explain",
            inputs=result.inputs,
            findings=result.findings,
            problems=result.problems,
            exit_code=code,
            **plain_explanation(result),
            **seal_part(sealed),
        )
    if output_format is OutputFormat.JSONL:
        items = (*explanation_lines(result), *seal_part(sealed).values(), *result.findings, *result.problems)
        return (json_line(item) for item in items)
    lines = explain_screen(result, verbose=verbose, width=screen_width(), unicode=speaks_unicode())
    whole = with_seal_lines(lines, sealed, screen_width())
    return render_screen(whole, colour=coloured and wants_colour(sys.stdout))
