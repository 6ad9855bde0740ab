"""The result of `fleet scan` as text and as JSON."""

from collections.abc import Iterator

from rich.text import Text

from kforensics.commands.fleet_summary import ScanResult
from kforensics.findings.model import Severity
from kforensics.render.escape import escape_text
from kforensics.render.json.document import document
from kforensics.render.text.screen import INDENT, Style, byte_count, counted, wrapped


def scan_screen(result: ScanResult, width: int) -> Iterator[Text | str]:
    """Yield the answer, the findings about single logs, and the next step."""
    grave = [one for one in result.findings if one.severity.rank >= Severity.WARNING.rank]
    style = Style.ANSWER_WARNING if grave or result.problems else Style.ANSWER_GOOD
    reused = f", {counted(result.reused_segments, 'segment')} unchanged" if result.reused_segments else ""
    yield from wrapped(
        f"{counted(result.replicas, 'replica')} with {counted(result.segments, 'segment')} extracted: "
        f"{byte_count(result.read_bytes)} read{reused}, {byte_count(result.evidence_bytes)} written.",
        width=width,
        style=style,
    )
    yield from wrapped(
        f"Collect {escape_text(result.evidence)} with the evidence of the other brokers and pass all of it to `kforensics fleet audit`.",
        width=width,
    )
    for item in grave:
        yield from wrapped(
            f"{item.code} {item.severity}: {escape_text(item.statement)}", width=width, indent=INDENT * 2, first=INDENT
        )
    for problem in result.problems:
        where = result.inputs[problem.input].path if problem.input < len(result.inputs) else ""
        path = "" if problem.path == "." else f"/{problem.path}"
        yield from wrapped(
            f"not read: {escape_text(where + path)}: {escape_text(problem.message)}",
            width=width,
            indent=INDENT * 2,
            first=INDENT,
        )


def scan_document(result: ScanResult, exit_code: int) -> str:
    """Return the document of `--format json`."""
    return document(
        "fleet-scan",
        inputs=result.inputs,
        findings=result.findings,
        problems=result.problems,
        exit_code=exit_code,
        replicas=result.replicas,
        segments=result.segments,
        read_bytes=result.read_bytes,
        reused_segments=result.reused_segments,
        evidence=result.evidence,
        evidence_bytes=result.evidence_bytes,
    )
