"""What `verify` does: every file checked, damage looked up on the other replicas, and the findings of both."""

from collections.abc import Callable
from dataclasses import dataclass

from kforensics.commands.processes import default_jobs
from kforensics.evidence.checks.consistency import Verification, verify_inputs
from kforensics.evidence.checks.context import CheckedPartition, FileReport
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.model import Input, Problem
from kforensics.findings.model import Finding
from kforensics.findings.verify import verify_findings
from kforensics.formats.segment.walk import Level
from kforensics.reconcile.replicas.intact import IntactReplicas


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """All files of all inputs, checked, with what follows."""

    inputs: tuple[Input, ...]
    verification: Verification
    intact: IntactReplicas
    """Which replicas hold a damaged range intact."""
    findings: tuple[Finding, ...]
    """The gravest first."""

    @property
    def files(self) -> tuple[FileReport, ...]:
        """Every file, by input and path."""
        return self.verification.files

    @property
    def partitions(self) -> tuple[CheckedPartition, ...]:
        """Every partition directory with the checks of its files."""
        return self.verification.partitions

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What could not be read; any problem makes the result incomplete."""
        return self.verification.problems


def verify_evidence(
    inputs: Inputs, *, level: Level, jobs: int | None = None, progress: Callable[[int], None] = lambda _: None
) -> VerifyResult:
    """Check every file of the inputs.

    Args:
        inputs: as found.
        level: how deep segments are looked into.
        jobs: the most processes to use; one for each core where not given.
        progress: called with the bytes of segments that were walked.

    Returns:
        Files, findings and problems.
    """
    verification = verify_inputs(inputs, level=level, jobs=jobs or default_jobs(), progress=progress)
    intact = IntactReplicas(verification.partitions, inputs.described)
    return VerifyResult(
        inputs=inputs.described,
        verification=verification,
        intact=intact,
        findings=verify_findings(verification, intact, inputs.described),
    )
