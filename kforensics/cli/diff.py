"""`kforensics diff`: the replicas of every partition, compared."""

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kforensics.cli.options import (
    ClusterOption,
    JobsOption,
    KeepGoingOption,
    LeaderOption,
    LinesFormatOption,
    OutOption,
    OutputFormat,
    PartitionsOption,
    PathsArgument,
    ReadRateOption,
    SealOption,
    StoppedOption,
    TopicsOption,
    VerboseOption,
    apply_read_rate,
    require_format,
)
from kforensics.cli.redaction import RedactKeyOption, RedactOption, pseudonyms_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kforensics.commands.diff import DiffResult
    from kforensics.commands.redaction.pseudonyms import Pseudonyms
    from kforensics.commands.sealing.report import CheckedSeal
    from kforensics.evidence.discovery.inputs import Inputs


class Protocol(StrEnum):
    """The truncation protocol that followers speak."""

    HW = "hw"
    KIP_101 = "kip-101"
    KIP_279 = "kip-279"
    KIP_595 = "kip-595"


def diff(
    paths: PathsArgument,
    *,
    leader: LeaderOption = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            "--protocol",
            help="The truncation protocol of the followers: hw up to 0.10, kip-101 for 0.11 to 1.1, kip-279 for 2.0 to 2.7, kip-595 since 2.8. "
            "Where it is not given, message formats and cluster metadata decide, and kip-595 is assumed where nothing tells.",
            show_default=False,
        ),
    ] = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    stopped: StoppedOption = False,
    cluster: ClusterOption = None,
    keep_going: KeepGoingOption = False,
    only_findings: Annotated[
        bool, typer.Option("--only-findings", help="One line a finding, without the blocks.")
    ] = False,
    explain_steps: Annotated[
        bool, typer.Option("--explain-steps", help="Show each request and answer of the truncation protocol.")
    ] = False,
    show_records: Annotated[
        bool, typer.Option("--show-records", help="List the offsets and keys of the records that would go.")
    ] = False,
    show_payload: Annotated[
        bool,
        typer.Option(
            "--show-payload", help="With --show-records, their values too. Payloads are private: mind where this goes."
        ),
    ] = False,
    redact: RedactOption = False,
    redact_key: RedactKeyOption = None,
    output_format: LinesFormatOption = OutputFormat.TEXT,
    out: OutOption = None,
    jobs: JobsOption = None,
    read_rate: ReadRateOption = None,
    seal: SealOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Compare the replicas of every partition: where each will truncate, what differs, and what each possible leader would lose.

    Give the data directories of the brokers of one cluster, and of its controllers where it has them. The first line says what
    is at risk. Exit code 1 means that something will be cut, differs for good, or is missing.
    """
    import sys
    from dataclasses import replace

    from kforensics.cli.exits import ExitCode, exit_code_of
    from kforensics.cli.output import check_out, write_result
    from kforensics.cli.progress import byte_progress
    from kforensics.cli.sealed import add_seal, checked_seal
    from kforensics.commands.diff import DiffOptions, compare
    from kforensics.errors import UsageError
    from kforensics.evidence.discovery.inputs import find_inputs, why_not_compared
    from kforensics.protocol.truncation import ProtocolName

    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.JSONL)
    if show_payload and not show_records:
        raise UsageError("--show-payload goes with --show-records")
    check_out(out, paths)
    pseudonyms = pseudonyms_of(redact, redact_key)
    jobs = apply_read_rate(read_rate, jobs)
    inputs = find_inputs(
        paths,
        with_server_logs=True,
        why_not=why_not_compared,
        keep_going=keep_going,
        one_cluster=True,
        cluster=cluster,
    )
    sealed = checked_seal(seal, paths, inputs.described, jobs)
    options = DiffOptions(
        leader=leader,
        protocol=ProtocolName(protocol.value) if protocol else None,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        is_stopped=stopped,
        rename_group=pseudonyms.group if pseudonyms else str,
    )
    as_text = output_format is OutputFormat.TEXT
    with byte_progress(quiet=not sys.stderr.isatty()) as progress:
        result = compare(
            inputs,
            options,
            jobs=jobs,
            flatten=None if as_text else _flatten,
            keep_quiet=as_text and verbose,
            progress=progress,
        )
    if sealed:
        result = replace(
            result, findings=add_seal(result.findings, sealed), problems=(*result.problems, *sealed.problems)
        )
    code = exit_code_of(result.findings, result.problems) if result.partitions else ExitCode.INCOMPLETE
    pieces: str | Iterator[str]
    if as_text:
        pieces = _text(
            result,
            inputs,
            only_findings,
            explain_steps,
            show_records,
            show_payload,
            pseudonyms,
            sealed,
            verbose,
            coloured=out is None,
        )
    else:
        pieces = _json(result, sealed, int(code), lines=output_format is OutputFormat.JSONL)
    write_result(pieces, out)
    raise typer.Exit(code)


def _flatten(report: object) -> bytes:
    import json
    import zlib

    from kforensics.reconcile.replicas.partition import PartitionReport
    from kforensics.render.json.diff import plain_report
    from kforensics.render.json.document import to_plain

    assert isinstance(report, PartitionReport)
    return zlib.compress(json.dumps(to_plain(plain_report(report))).encode(), 1)


def _json(result: "DiffResult", sealed: "CheckedSeal | None", code: int, *, lines: bool) -> "Iterator[str]":
    import zlib

    from kforensics.cli.sealed import seal_part
    from kforensics.render.json.document import document_pieces, json_line

    items = (zlib.decompress(one.plain).decode() for one in result.partitions if one.plain is not None)
    if not lines:
        yield from document_pieces(
            "diff",
            inputs=result.inputs,
            findings=result.findings,
            problems=result.problems,
            exit_code=code,
            **seal_part(sealed),
            streams={"partitions": items},
        )
        return
    for item in items:
        yield item + "\n"
    for value in seal_part(sealed).values():
        yield json_line(value)
    for finding in result.findings:
        yield json_line(finding)
    for problem in result.problems:
        yield json_line(problem)


def _text(
    result: "DiffResult",
    inputs: "Inputs",
    only_findings: bool,
    explain_steps: bool,
    show_records: bool,
    show_payload: bool,
    pseudonyms: "Pseudonyms | None",
    sealed: "CheckedSeal | None",
    verbose: bool,
    *,
    coloured: bool,
) -> str:
    import sys

    from kforensics.cli.sealed import with_seal_lines
    from kforensics.commands.diff import records_to_go
    from kforensics.render.text.diff import diff_screen, finding_lines, problem_lines, record_lines
    from kforensics.render.text.screen import render_screen, screen_width, speaks_unicode, wants_colour

    width = screen_width()
    if only_findings:
        lines = list(finding_lines(result, width))
    else:
        lines = list(diff_screen(result, verbose=verbose, steps=explain_steps, width=width, unicode=speaks_unicode()))
    if show_records:
        goners = records_to_go(result, inputs)
        if pseudonyms:
            from kforensics.commands.redaction.records import redact_record

            hide = partial(redact_record, pseudonyms=pseudonyms)
            goners = ((partition, owner, map(hide, records)) for partition, owner, records in goners)
        lines += record_lines(goners, show_payload=show_payload)
    lines += problem_lines(result.problems, result.inputs, width)
    return render_screen(with_seal_lines(lines, sealed, width), colour=coloured and wants_colour(sys.stdout))
