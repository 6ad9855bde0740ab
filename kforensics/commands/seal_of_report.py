"""A seal that is checked before a report is made of what it covers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from kforensics.case.model import Case, fact
from kforensics.evidence.model import Citation, Input, Problem

if TYPE_CHECKING:
    from kforensics.findings.model import Finding
    from kforensics.findings.rules.seal import CheckedSeal


@fact
def seal_of(case: Case) -> "CheckedSeal | None":
    """Return the seal that the inputs were checked against, where a manifest is named.

    Either all that was sealed is among the paths by the same names, or they are as many, in the same order.
    """
    manifest = case.ask.seal
    if manifest is None:
        return None
    from kforensics.commands.sealing import check_seal  # noqa: PLC0415 - OpenSSL: few reports name a seal
    from kforensics.findings.rules.seal import CheckedSeal, seal_findings  # noqa: PLC0415
    from kforensics.source.mapped import open_named  # noqa: PLC0415

    paths, inputs = (*case.ask.paths, *case.ask.before), case.inputs.described
    with open_named(manifest) as file:
        result = check_seal(file, paths, jobs=case.jobs, is_part=True)
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


def _renumbered(one: "Finding", shown: Sequence[str], inputs: Sequence[Input]) -> "Finding":
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
