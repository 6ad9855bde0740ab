"""Every file against its format and its neighbours; damage is looked up on the other replicas."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from kforensics.ask.model import Ask
from kforensics.case.model import Case
from kforensics.case.processes import Progress
from kforensics.case.wanted import wanted_of
from kforensics.commands.graver import no_calmer, no_calmer_than_metadata
from kforensics.commands.result import Conclusion, Result
from kforensics.commands.seal_of_report import seal_of
from kforensics.damage import Absent
from kforensics.errors import InputsRefused
from kforensics.evidence.checks.consistency import Verification, segment_bytes, verify_inputs
from kforensics.evidence.checks.context import CheckedPartition, FileKind, FileReport, FileState, base_offset_of
from kforensics.evidence.discovery.inputs import find_inputs, why_not_listed
from kforensics.evidence.metadata.files import unexplained
from kforensics.findings.answers.verify import verify_answer
from kforensics.findings.model import by_gravity
from kforensics.findings.rules.files import epochs_by_partition, verify_findings
from kforensics.findings.rules.tiers import not_shown
from kforensics.formats.segment.walk import Level
from kforensics.reconcile.logs.compacted_keys import CompactedLog
from kforensics.reconcile.logs.tiers import Tiers
from kforensics.reconcile.replicas.report import IntactReplicas
from kforensics.units import METADATA_TOPICS, Depth, OffsetRange, TopicPartition

if TYPE_CHECKING:
    from kforensics.reconcile.observed.leadership import LeadershipAccount


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """The reports on all files of all inputs."""

    level: Level
    verification: Verification
    intact: IntactReplicas
    """The replicas that hold a damaged range intact."""
    tiers: tuple[Tiers, ...] = ()
    """The partitions that are partly in remote storage."""
    compacted: tuple[CompactedLog, ...] = ()
    """Logs that are compacted, where every record is looked at."""
    uncounted: int = 0
    """The number of such logs that are too long for their keys to be counted."""

    @property
    def files(self) -> tuple[FileReport, ...]:
        """Every file, by input and path."""
        return self.verification.files

    @property
    def partitions(self) -> tuple[CheckedPartition, ...]:
        """Every partition directory with the checks of its files."""
        return self.verification.partitions


def run(request: Ask, progress: Progress | None = None) -> Result[VerifyResult]:
    """Check every file below the paths."""
    level = Level(request.level)
    inputs = find_inputs(
        request.paths,
        with_server_logs=True,
        why_not=why_not_listed,
        keep_going=request.keep_going,
        cluster=request.cluster,
    )
    wants = wanted_of(request, inputs)
    # Beside headers alone no content is compared.
    case = Case(ask=replace(request, depth=None if level is Level.RECORDS else Depth.TAILS), inputs=inputs)
    seal = seal_of(case)
    if progress is not None:
        progress.expect(segment_bytes(inputs, wants))
    if level is Level.RECORDS:
        # Processes are forked that share what is loaded.
        import kforensics.formats.columns.record_stream  # noqa: F401, PLC0415
    verification = verify_inputs(
        inputs,
        level=level,
        jobs=case.jobs,
        progress=progress or (lambda _: None),
        unexplained=partial(unexplained, inputs=inputs),
        wants=wants,
    )
    intact = IntactReplicas(verification.partitions, inputs.described)
    from kforensics.case.tiers import tiers_up_to  # noqa: PLC0415 - what reads metadata

    # Logs end where they were read to.
    read = (one for one in verification.partitions if one.context.of_kind(FileKind.SEGMENT))
    tiers = tuple(tiers_up_to(case, {(one.context.input, one.context.path): _held_by(one) for one in read}))
    findings = verify_findings(verification, intact, inputs.described, _leaders(case, verification), tiers)
    if any(
        one.cleaner_lag is not None or len(one.context.of_kind(FileKind.SEGMENT)) > 3 for one in verification.partitions
    ):
        from kforensics.commands.cleaning import standing_cleaners, with_causes  # noqa: PLC0415 - of long logs alone

        reads = level is Level.RECORDS
        unseen = standing_cleaners(case, by_path=True, told=findings, reads_records=reads)
        findings = by_gravity((*with_causes(case, findings, reads_records=reads), *unseen))
    compacted: tuple[CompactedLog, ...] = ()
    uncounted = 0
    if level is Level.RECORDS:
        from kforensics.commands.cleaning import compacted_logs, twice_findings  # noqa: PLC0415 - of records alone

        compacted, uncounted = compacted_logs(case)
        findings = by_gravity((*findings, *twice_findings(compacted)))
    answer = verify_answer(verification, findings, level=level)
    answer = replace(answer, unknown=(*answer.unknown, *(one for each in tiers for one in not_shown(each))))
    concluded = Conclusion(answer=answer, findings=findings, problems=tuple(verification.problems))
    return Result(
        command="verify",
        inputs=inputs.described,
        body=VerifyResult(
            level=level,
            verification=verification,
            intact=intact,
            tiers=tiers,
            compacted=compacted,
            uncounted=uncounted,
        ),
        concluded=no_calmer_than_metadata(no_calmer("verify", concluded, case), case),
        seal=seal,
    )


def _held_by(one: CheckedPartition) -> Sequence[OffsetRange]:
    """Return the offsets that a log has, by segment where each was read; an empty one behind the others, and what is damaged, count as its own."""
    bases = [base_offset_of(file) for file in one.context.of_kind(FileKind.SEGMENT)]
    lasts = [max(part.last_offset, *(last for _, last in part.lost), -1) for part in one.coverage]
    if one.problems or not 0 <= len(bases) - len(lasts) <= 1:
        return [OffsetRange(bases[0], max(bases[-1] - 1, *lasts, -1))]
    return [OffsetRange(base, last) for base, last in zip(bases, [*lasts, bases[-1] - 1], strict=False)]


def _leaders(case: Case, verification: Verification) -> "dict[TopicPartition, LeadershipAccount]":
    """Who led the partitions with damaged segments, or whose files differ in their last leader epoch, by the metadata logs and broker logs among the inputs, which are read only then."""
    damaged = {
        one.context.topic_partition
        for one in verification.partitions
        if isinstance(one.context.topic_partition, TopicPartition)
        and any(report.state is FileState.DAMAGED for report in one.reports)
    }
    clusters = {one.cluster_id for one in case.inputs.described if not isinstance(one.cluster_id, Absent)}
    damaged |= {
        partition
        for partition, held in epochs_by_partition(verification, case.inputs.described).items()
        if len({one.written for one in held}) > 1
    }
    if not damaged or len(clusters) > 1:
        return {}
    from kforensics.case.cluster import cluster_of  # noqa: PLC0415 - what reads metadata and broker logs
    from kforensics.reconcile.observed.leadership import account_of  # noqa: PLC0415 - only where something is damaged

    try:
        facts = cluster_of(case).facts
    except InputsRefused:
        return {}  # log files of another cluster say nothing of these
    return {tp: account_of(tp, facts.topic_id(tp.topic), facts) for tp in damaged if tp.topic not in METADATA_TOPICS}
