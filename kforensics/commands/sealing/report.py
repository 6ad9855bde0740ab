"""A seal that is checked before a report is made of what it covers, and shown in that report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from kforensics.commands.sealing.seal import check_seal
from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.evidence.seal.manifest import Envelope
from kforensics.evidence.seal.state import Change
from kforensics.findings.model import Finding
from kforensics.findings.rules.seal import seal_findings
from kforensics.source.mapped import open_named


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSeal:
    """The contents of a manifest, and how much of it holds now."""

    manifest_sha256: str
    """The sha256 of the stored bytes of the manifest: what its maker wrote down or signed."""
    tool_version: str
    envelope: Envelope
    sealed: int
    """Entries of the manifest."""
    held: int
    changes: Mapping[Change, int]
    uncovered: tuple[str, ...]
    """Inputs of the report that the manifest does not seal."""
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]

    @property
    def holds(self) -> bool:
        """Whether all that was sealed is here with the same content, and nothing beside it."""
        altered = (Change.CONTENT, Change.MISSING, Change.ADDED, Change.UNREADABLE, Change.NOT_SEALED)
        return not self.problems and not any(self.changes[change] for change in altered)


def check_sealed_inputs(manifest: Path, paths: Sequence[Path], inputs: Sequence[Input], *, jobs: int) -> CheckedSeal:
    """Compare what a manifest seals with what is there now.

    Args:
        manifest: as `kforensics seal` wrote it.
        paths: what the report is made of, as named. Either all that was sealed is among them by the same names, or they are as many, in the same order.
        inputs: the same as the report numbers them, for citations.
        jobs: the most processes to hash with.

    Raises:
        UsageError: the paths are others than the sealed ones.
        FormatError: the file is no manifest, or is incomplete.
    """
    with open_named(manifest) as file:
        result = check_seal(file, paths, jobs=jobs, is_part=True)
        for _ in result.differences():
            pass
    given = {str(path) for path in paths}
    total = result.sealed.files + result.sealed.directories + result.sealed.others
    found = seal_findings(result.counts, result.named, sealed=total, broken_signature="")
    return CheckedSeal(
        manifest_sha256=result.manifest_sha256,
        tool_version=result.head.tool_version,
        envelope=result.head.envelope,
        sealed=total,
        held=result.held,
        changes=dict(result.counts),
        uncovered=tuple(str(path) for path in paths if str(path) in given - set(result.shown)),
        findings=tuple(_renumbered(one, result.shown, inputs) for one in found),
        problems=tuple(_in_report(one, result.shown, inputs) for one in result.problems),
    )


def _renumbered(one: Finding, shown: Sequence[str], inputs: Sequence[Input]) -> Finding:
    placed = (_placed(shown[cited.input], cited.path, inputs) for cited in one.citations)
    return replace(one, citations=tuple(Citation(input=where[0], path=where[1]) for where in placed if where))


def _in_report(one: Problem, shown: Sequence[str], inputs: Sequence[Input]) -> Problem:
    where = _placed(shown[one.input], one.path, inputs)
    return replace(one, input=where[0], path=where[1]) if where else one


def _placed(root: str, path: str, inputs: Sequence[Input]) -> tuple[int, str] | None:
    """Input and path of a report for a path below something that was sealed; a sealed directory may be several inputs."""
    whole = PurePath(root, path)
    for number, one in enumerate(inputs):
        if whole.is_relative_to(one.path):
            return number, str(whole.relative_to(one.path))
    return None


def seal_sentence(seal: CheckedSeal) -> str:
    """Return what a report says of its seal; names in it are as the manifest has them, not yet made safe to show."""
    envelope = seal.envelope
    case = "" if isinstance(envelope.case_id, Absent) else f" for case {envelope.case_id}"
    by = "" if isinstance(envelope.operator, Absent) else f" by {envelope.operator}"
    said = f"Sealed {envelope.sealed_utc}{case}{by}; the manifest's sha256 is {seal.manifest_sha256}."
    if seal.holds:
        state = f" All {seal.sealed:,} entries hold."
    else:
        state = f" {seal.held:,} of {seal.sealed:,} entries hold: this is not what was sealed."
    if seal.uncovered:
        state += f" It does not cover {len(seal.uncovered)} of the inputs."
    return said + state
