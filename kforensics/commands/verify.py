"""Every file against its format and its neighbours; damage is looked up on the other replicas."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kforensics.commands.processes import default_jobs
from kforensics.commands.result import Conclusion, Progress, Result, check_seal_of
from kforensics.evidence.checks.consistency import Verification, segment_bytes, verify_inputs
from kforensics.evidence.checks.context import CheckedPartition, FileReport
from kforensics.evidence.discovery.inputs import find_inputs, why_not_checked
from kforensics.evidence.metadata.lost_directories import unexplained
from kforensics.findings.answers.verify import verify_answer
from kforensics.findings.verify import verify_findings
from kforensics.formats.segment.walk import Level
from kforensics.reconcile.replicas.intact import IntactReplicas


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """The request to check files, and how deep."""

    paths: tuple[Path, ...]
    level: str = Level.RECORDS.value
    """`headers`, `crc` or `records`."""
    seal: Path | None = None
    """A manifest to check the inputs against first."""
    jobs: int | None = None
    """Processes; one for each core where not given."""
    keep_going: bool = False
    """A path that can't be used is a problem beside the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """The reports on all files of all inputs."""

    level: Level
    verification: Verification
    intact: IntactReplicas
    """The replicas that hold a damaged range intact."""

    @property
    def files(self) -> tuple[FileReport, ...]:
        """Every file, by input and path."""
        return self.verification.files

    @property
    def partitions(self) -> tuple[CheckedPartition, ...]:
        """Every partition directory with the checks of its files."""
        return self.verification.partitions


def run(request: VerifyRequest, progress: Progress | None = None) -> Result[VerifyResult]:
    """Check every file below the paths.

    Args:
        request: paths, level and seal.
        progress: called with the bytes of segments as they are read.

    Returns:
        The checked files, with a finding for each kind of damage in each file.

    Raises:
        EvidenceError: a path can't be used.
        UsageError: the seal is of other paths.
        ValueError: no such level.
    """
    level = Level(request.level)
    inputs = find_inputs(request.paths, why_not=why_not_checked, keep_going=request.keep_going)
    seal = check_seal_of(request.seal, request.paths, inputs.described, request.jobs)
    if progress is not None:
        progress.expect(segment_bytes(inputs))
    verification = verify_inputs(
        inputs,
        level=level,
        jobs=request.jobs or default_jobs(),
        progress=progress or (lambda _: None),
        unexplained=partial(unexplained, inputs=inputs),
    )
    intact = IntactReplicas(verification.partitions, inputs.described)
    findings = verify_findings(verification, intact, inputs.described)
    return Result(
        command="verify",
        inputs=inputs.described,
        body=VerifyResult(level=level, verification=verification, intact=intact),
        concluded=Conclusion(
            answer=verify_answer(verification, findings, level=level),
            findings=findings,
            problems=tuple(verification.problems),
        ),
        seal=seal,
    )
