"""Records back out of everything that the inputs hold: the lost ones, those that will be discarded, or all, with a manifest of where each came from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kforensics.ask.model import Ask, What
from kforensics.case.cluster import cluster_of
from kforensics.case.model import Case, now_of
from kforensics.case.opening import open_case
from kforensics.case.processes import spread
from kforensics.case.wanted import is_wanted
from kforensics.commands.graver import no_calmer, no_calmer_than_order, no_calmer_than_tiers
from kforensics.commands.result import Conclusion, Result
from kforensics.commands.salvaging.carving import Carved, carve, carved_copies, carved_plans
from kforensics.commands.salvaging.folder import OutFolder, WriteFailed, WrittenFile, check_folder
from kforensics.commands.salvaging.manifest import CARVED, write_manifest, write_readme
from kforensics.commands.salvaging.model import Filters, PartitionPlan, SavedPartition
from kforensics.commands.salvaging.outputs import FormName, HoldsDelimiter, NotRebased, require_form
from kforensics.commands.salvaging.plans import Task, Tasks, all_tasks, at_risk_tasks, lost_tasks, plans_of
from kforensics.commands.salvaging.saving import DEFAULT_WRITERS, save_partition
from kforensics.commands.salvaging.segments import SegmentLog
from kforensics.errors import UsageError
from kforensics.evidence.carving import CarvedReader
from kforensics.evidence.discovery.inputs import Inputs, find_inputs
from kforensics.evidence.model import BatchReader, Input, Problem
from kforensics.evidence.replica.batch_reader import FileBatchReader, RowSpool
from kforensics.findings.answers.model import Answer
from kforensics.findings.answers.salvage import (
    CarvedFigures,
    Salvaged,
    carved_answer,
    carved_unknown,
    salvage_answer,
)
from kforensics.findings.rules.quorum import with_quorum
from kforensics.formats.checkpoint.properties import is_uuid
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.salvage import GapReason
from kforensics.units import OffsetRange, TopicPartition

SMALL_WORK = 64 << 20
"""Bytes below which starting processes costs more than it saves."""

LARGEST_OFFSET = (1 << 63) - 1
"""Asked for where no end is."""

LARGE = 256 << 20
"""Bytes of a partition that is worth all processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SalvageReport:
    """The report of what was saved, what was not, and where it is."""

    what: str
    form: str
    out: str
    partitions: tuple[SavedPartition, ...]
    files: tuple[WrittenFile, ...]
    """The manifest, the README and the script; those of the partitions are with them."""
    failure: str = ""
    """Why the output is incomplete, if it is."""
    carved: CarvedFigures | None = None
    """What was found in disk images."""
    is_plan: bool = False
    """Whether nothing was written, as only a plan was asked for."""

    @property
    def records(self) -> int:
        """All records that were saved."""
        return sum(one.records for one in self.partitions)


def run(request: Ask) -> Result[SalvageReport]:
    """Write what is wanted to the directory, or only say what would be written.

    Raises:
        EvidenceError: a path can't be used.
        MissingExtra: the form needs a package that is not installed.
        UsageError: the directory can't be used, a filter matches nothing, or the form can't hold the records.
    """
    form, out = FormName(request.form), request.out
    require_form(form)
    _check_options(request, form)
    if out is not None:
        check_folder(out, (*request.paths, *request.before, *request.images))
    if request.images and request.what is None:
        return _run_carving(request, out)
    what = request.what or What.LOST
    case = open_case(request, again="salvage")
    for one in case.inputs.found:
        if not one.store.is_here:
            raise UsageError(f"{one.described.path} is not on this machine: salvage reads files and captures")
    jobs = case.jobs
    found = _tasks(what, case)
    image_problems: list[Problem] = []
    carved = carve(request.images, case.inputs, image_problems) if request.images else None
    inputs = case.inputs.described if carved is None else carved.inputs
    folder = OutFolder(None if request.plan else request.out)
    shared = _Shared(case, found.facts, folder, carved=carved)
    partitions, problems, failure = _save_all(
        shared, found.tasks, 1 if form in {FormName.KCAT, FormName.CONSOLE} else jobs
    )
    files: tuple[WrittenFile, ...] = ()
    try:
        if carved is not None and what is What.ALL and not failure and not request.topics and not request.partitions:
            partitions = (*partitions, *_save_carved(shared, carved, with_named=False))
        if partitions and not failure and not request.plan:
            files = _write_papers(folder, request, what.value, inputs, partitions)
    except WriteFailed as error:
        failure = str(error)
    report = SalvageReport(
        what=what.value,
        form=form.value,
        out=str(out or ""),
        partitions=partitions,
        files=files,
        failure=failure,
        carved=None if carved is None else _figures_of(carved),
        is_plan=request.plan,
    )
    problems = (*found.problems, *image_problems, *problems)
    answer = salvage_answer(
        [_figures(one) for one in partitions],
        what=what.value,
        out=None if request.plan else str(out),
        failure=failure,
        premise=found.answer,
        problems=[one for one in problems if not one.is_foreign],
        looked_at=found.partitions,
        unsettled=found.unsettled,
        not_all_given=found.not_all_given,
        counts_at_least=found.counts_at_least,
        is_uncommitted=found.is_uncommitted,
        chosen=_chosen(request),
        of_images=() if report.carved is None else carved_unknown(report.carved),
    )
    if what is What.LOST and not partitions:
        answer = no_calmer("salvage", _concluded(answer, problems), case).answer
    elif what is What.LOST and (quorum := cluster_of(case).quorum) is not None:
        answer = with_quorum(answer, quorum)
    found_now = no_calmer_than_tiers(_concluded(answer, problems), now_of(case))
    return _result(inputs, report, found_now._replace(answer=no_calmer_than_order(found_now.answer, case)))


def _run_carving(request: Ask, out: Path | None) -> Result[SalvageReport]:
    """Save what disk images hold and no given replica does."""
    problems: list[Problem] = []
    inputs = (
        find_inputs(request.paths, keep_going=request.keep_going, cluster=request.cluster)
        if request.paths
        else Inputs(found=())
    )
    problems += inputs.problems
    carved = carve(request.images, inputs, problems)
    folder = OutFolder(None if request.plan else request.out)
    partitions: list[SavedPartition] = []
    failure = ""
    files: tuple[WrittenFile, ...] = ()
    shared = _Shared(Case(ask=request, inputs=inputs), None, folder, carved=carved)
    try:
        partitions = _save_carved(shared, carved)
        problems += [problem for saved in partitions for problem in saved.problems]
        if not request.plan:
            files = _write_papers(folder, request, CARVED, carved.inputs, partitions)
    except WriteFailed as error:
        failure = str(error)
    figures = _figures_of(carved)
    report = SalvageReport(
        what=CARVED,
        form=request.form,
        out=str(out or ""),
        partitions=tuple(partitions),
        files=files,
        failure=failure,
        carved=figures,
        is_plan=request.plan,
    )
    answer = carved_answer(
        figures,
        saved=report.records,
        missing=sum(one.missing for one in partitions),
        out=None if request.plan else str(out),
        failure=failure,
        has_replicas=bool(request.paths),
        is_incomplete=bool(problems),
    )
    return _result(carved.inputs, report, _concluded(answer, problems))


def _concluded(answer: Answer, problems: Iterable[Problem]) -> Conclusion:
    return Conclusion(answer=answer, problems=tuple(dict.fromkeys(problems)))


def _result(inputs: tuple[Input, ...], report: SalvageReport, concluded: Conclusion) -> Result[SalvageReport]:
    return Result(command="salvage", inputs=inputs, body=report, concluded=concluded)


def _figures_of(carved: Carved) -> CarvedFigures:
    return CarvedFigures(
        bytes_read=carved.bytes_read,
        batches=carved.batches,
        records=carved.records,
        bytes=carved.length,
        old_batches=carved.old_batches,
        logs=len(carved.logs),
        named_logs=sum(log.partition is not None for log in carved.logs),
    )


def _chosen(request: Ask) -> str:
    words = ""
    if request.offsets is not None:
        first, last = request.offsets
        if last == LARGEST_OFFSET:
            words += f" from offset {first:,} on"
        else:
            words += f" at offset {first:,}" if first == last else f" at offsets {first:,} to {last:,}"
    return f"{words} with timestamps in --time" if request.time_ms is not None else words


def _check_options(request: Ask, form: FormName) -> None:
    if form is FormName.SEGMENTS:
        if request.time_ms is not None:
            raise UsageError("--time chooses single records: it does not go with --form segments")
        if request.topic_id is not None and not is_uuid(request.topic_id):
            raise UsageError(
                f"--topic-id {request.topic_id}: expected 22 characters, as kafka-topics.sh --describe shows it"
            )
    elif request.topic_id is not None or request.from_zero:
        raise UsageError("--topic-id and --from-zero are for --form segments")


def _tasks(what: What, case: Case) -> Tasks:
    match what:
        case What.LOST:
            return lost_tasks(case)
        case What.AT_RISK:
            return at_risk_tasks(case)
        case What.ALL:
            return all_tasks(case)


@dataclass(frozen=True, slots=True)
class _Shared:
    case: Case
    facts: ClusterFacts | None
    folder: OutFolder
    jobs: int = 1
    """The processes that may read one partition."""
    writers: int = 1
    """The processes that may write it."""
    carved: Carved | None = None

    @property
    def roots(self) -> Sequence[Path]:
        return self.carved.roots if self.carved else [one.root for one in self.case.inputs.found]

    def batch_writer(self, stem: str, plan: PartitionPlan) -> SegmentLog:
        topic_id = self.case.ask.topic_id or plan.topic_id
        return SegmentLog(self.folder, stem, plan.partition, topic_id=topic_id, from_zero=self.case.ask.from_zero)


@dataclass(frozen=True, slots=True)
class _Done:
    partitions: tuple[SavedPartition, ...]
    problems: tuple[Problem, ...]
    failure: str = ""
    refusal: str = ""


def _save_all(
    shared: _Shared, tasks: Sequence[Task], jobs: int
) -> tuple[tuple[SavedPartition, ...], tuple[Problem, ...], str]:
    if tasks:
        shared.folder.make()
    weights = [sum(place.length for place in task.places) for task in tasks]
    # A large partition is done by all processes together, so that none of them is left alone with it at the end.
    together = replace(shared, jobs=jobs, writers=shared.case.ask.jobs or min(jobs, DEFAULT_WRITERS))
    large = {at: _save_one(together, tasks[at]) for at, one in enumerate(weights) if one >= LARGE}
    small = [at for at in range(len(tasks)) if at not in large]
    if sum(weights[at] for at in small) < SMALL_WORK:
        jobs = 1
    spread_over: list[_Done] = spread(
        _save_one, shared, [tasks[at] for at in small], jobs=jobs, weights=[weights[at] for at in small]
    )
    by_task = {**large, **dict(zip(small, spread_over, strict=True))}
    done = [by_task[at] for at in range(len(tasks))]
    refusal = next((one.refusal for one in done if one.refusal), "")
    if refusal:
        saved = (label for one in done for partition in one.partitions for label in partition.labels)
        shared.folder.discard(file.path for label in saved for file in label.files)
        raise UsageError(refusal)
    partitions = tuple(partition for one in done for partition in one.partitions)
    problems = tuple(
        problem
        for one in done
        for problem in (*one.problems, *(problem for partition in one.partitions for problem in partition.problems))
    )
    return partitions, problems, next((one.failure for one in done if one.failure), "")


def _save_one(shared: _Shared, task: Task) -> _Done:
    """One partition; what goes wrong with the output is a value, so that it comes back from another process."""
    problems: list[Problem] = []
    out: list[SavedPartition] = []
    spool = _spool(shared, task)
    files = FileBatchReader(shared.roots, spool=spool)
    copies, starts = carved_copies(shared.carved, task.partition) if shared.carved else ([], {})
    reader = CarvedReader(files, shared.carved.images if shared.carved else {}, starts)
    try:
        plans = plans_of(
            task,
            shared.case,
            shared.facts,
            problems,
            carved=copies,
            reader=reader,
            jobs=shared.jobs,
            spool=spool,
        )
        out.extend(_save(shared, plan, reader) for plan in plans)
    except WriteFailed as error:
        return _Done(tuple(out), tuple(problems), failure=str(error))
    except MemoryError:
        return _Done(tuple(out), tuple(problems), failure=f"{task.partition} takes more memory than there is")
    except (HoldsDelimiter, NotRebased) as error:
        shared.folder.discard()  # of another process this one alone knows the files that are not finished
        return _Done(tuple(out), tuple(problems), refusal=str(error))
    finally:
        reader.close()
        if spool is not None:
            spool.close()
    return _Done(tuple(out), (*problems, *files.take_lacks()))


def _spool(shared: _Shared, task: Task) -> RowSpool | None:
    """Return where rows of batches wait, for a partition that has many; none where no file can or may be made, so that they are read again."""
    if shared.folder.is_plan or sum(place.length for place in task.places) < LARGE:
        return None
    try:
        return RowSpool(shared.folder.root)
    except OSError:
        return None


def _save(shared: _Shared, plan: PartitionPlan, reader: BatchReader) -> SavedPartition:
    return save_partition(
        plan,
        folder=shared.folder,
        form=None if shared.folder.is_plan else FormName(shared.case.ask.form),
        filters=Filters(
            offsets=OffsetRange(*shared.case.ask.offsets) if shared.case.ask.offsets else None,
            time_ms=shared.case.ask.time_ms,
            with_aborted=shared.case.ask.with_aborted,
        ),
        roots=shared.roots,
        reader=reader,
        batch_writer=shared.batch_writer,
        jobs=shared.writers,
    )


def _save_carved(shared: _Shared, carved: Carved, *, with_named: bool = True) -> list[SavedPartition]:
    """Save what images hold of each log and no given replica does."""
    partitions = []
    try:
        shared.folder.make()
        for plan, reader in carved_plans(carved, FileBatchReader(shared.roots), with_named=with_named):
            if plan.is_named and not is_wanted(plan.partition, shared.case.ask):
                continue
            saved = _save(shared, plan, reader)
            reader.close()
            if saved.records or saved.gaps:
                partitions.append(saved)
    except (HoldsDelimiter, NotRebased) as error:
        shared.folder.discard()
        raise UsageError(str(error)) from error
    return partitions


def _write_papers(
    folder: OutFolder, request: Ask, what: str, inputs: Sequence[Input], partitions: Sequence[SavedPartition]
) -> tuple[WrittenFile, ...]:
    manifest = write_manifest(
        folder, inputs=inputs, partitions=partitions, what=what, form=request.form, filters=_plain(request)
    )
    return (manifest, *write_readme(folder, partitions, what=what, form=request.form))


def _plain(request: Ask) -> dict[str, object]:
    return {
        "topics": sorted(request.topics),
        "partitions": sorted(request.partitions),
        "offsets": None if request.offsets is None else {"first": request.offsets[0], "last": request.offsets[1]},
        "time_ms": None if request.time_ms is None else {"from": request.time_ms[0], "before": request.time_ms[1]},
        "leader": request.leader,
        "with_aborted": request.with_aborted,
        "from_zero": request.from_zero,
    }


def _figures(one: SavedPartition) -> Salvaged:
    partition: TopicPartition = one.partition
    return Salvaged(
        partition=partition,
        records=one.records - one.of_leader,
        of_leader=one.of_leader,
        certain=sum(label.certain for label in one.labels if not label.is_of_leader),
        missing=one.missing,
        in_remote_storage=sum(gap.count for gap in one.gaps if gap.reason is GapReason.IN_REMOTE),
        reasons=tuple(sorted({gap.reason.value for gap in one.gaps if gap.is_loss})),
        is_guessed=one.leader_source in {"guessed", "inferred"},
        unread_ends=tuple(end.words for end in one.unread_ends),
    )
