"""The option --seal: what each report does with it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

    from kforensics.commands.sealing.report import CheckedSeal
    from kforensics.evidence.model import Input
    from kforensics.findings.model import Finding


def checked_seal(
    manifest: Path | None, paths: Sequence[Path], inputs: "Sequence[Input]", jobs: int | None
) -> "CheckedSeal | None":
    """The seal, checked, where one is named."""
    if manifest is None:
        return None
    from kforensics.commands.processes import default_jobs
    from kforensics.commands.sealing.report import check_sealed_inputs

    return check_sealed_inputs(manifest, paths, inputs, jobs=jobs or default_jobs())


def add_seal(findings: "tuple[Finding, ...]", seal: "CheckedSeal | None") -> "tuple[Finding, ...]":
    """The findings of a report and of its seal."""
    if seal is None:
        return findings
    from kforensics.commands.sealing.report import with_seal

    return with_seal(findings, seal)


def seal_part(seal: "CheckedSeal | None") -> Mapping[str, Any]:
    """The field of a document, where there is a seal."""
    if seal is None:
        return {}
    from kforensics.render.text.seal import plain_seal

    return {"seal": plain_seal(seal)}


def with_seal_lines(lines: "Iterable[Text | str]", seal: "CheckedSeal | None", width: int) -> "Iterator[Text | str]":
    """A screen with its seal: at the end, and where it does not hold, also before all that rests on it."""
    if seal is None:
        yield from lines
        return
    from kforensics.render.text.seal import broken_seal_lines, sealed_lines

    if not seal.holds:
        yield from broken_seal_lines(width)
    yield from lines
    yield from sealed_lines(seal, width=width)
