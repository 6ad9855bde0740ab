"""What `diff` gives: the comparison of all partitions, no calmer than what is known of them, with the records that truncations would discard."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kforensics.ask.model import Ask
from kforensics.case.cluster import unread_commits
from kforensics.case.comparison import Flatten
from kforensics.case.model import Case
from kforensics.case.processes import Progress
from kforensics.commands.comparing import DiffResult, case_of, compare
from kforensics.commands.graver import no_calmer_than_before, no_calmer_than_cleaners, no_calmer_than_tiers
from kforensics.commands.redaction.pseudonyms import pseudonyms_of
from kforensics.commands.result import Conclusion, Result
from kforensics.commands.seal_of_report import seal_of
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.model import Problem, Replica
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.findings.answers.graver import with_findings
from kforensics.findings.rules.replicas import EPOCH_LACKED, FALLING_OFFSETS, LEFT_BYTES
from kforensics.findings.rules.upkeep import CLEANING_UNFINISHED
from kforensics.formats.log.records import Record
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.units import TopicPartition

if TYPE_CHECKING:
    from kforensics.commands.redaction.pseudonyms import Pseudonyms

_TOLD = frozenset(one.code for one in (CLEANING_UNFINISHED, EPOCH_LACKED, FALLING_OFFSETS, LEFT_BYTES))
"""What the headline or the screen says in other words."""


def run(
    request: Ask,
    progress: Progress | None = None,
    *,
    case: Case | None = None,
    flatten: Flatten | None = None,
    keep_quiet: bool = True,
) -> Result[DiffResult]:
    """Compare the replicas of every partition below the paths; `flatten` makes of each report what is written out where it was computed, which keeps memory small."""
    pseudonyms = pseudonyms_of(request)
    if case is None:
        case = case_of(request, rename_group=pseudonyms.group if pseudonyms else str)
        seal_of(case)
    else:
        case = case.asked(request)
    compared = compare(case, flatten=flatten, keep_quiet=keep_quiet, progress=progress)
    compared = replace(
        compared,
        answer=no_calmer_than_before(compared.answer, [one.judged for one in compared.partitions], case),
        dropped=partial(_dropped, compared, case.inputs, pseudonyms),
        not_captured=tuple(lacking_records(compared.reports, case.inputs)),
    )
    concluded = no_calmer_than_tiers(
        Conclusion(answer=compared.answer, findings=compared.findings, problems=compared.problems), case
    )
    answer = replace(concluded.answer, unknown=(*concluded.answer.unknown, *unread_commits(case)))
    concluded = concluded._replace(answer=answer)
    concluded = no_calmer_than_cleaners(concluded, case)
    concluded = concluded._replace(answer=with_findings("diff", concluded.answer, concluded.findings, _TOLD))
    return Result(
        command="diff",
        inputs=compared.inputs,
        body=replace(compared, answer=concluded.answer, findings=concluded.findings),
        concluded=concluded,
        seal=seal_of(case),
        case=case,
    )


def _dropped(
    compared: DiffResult, inputs: Inputs, pseudonyms: "Pseudonyms | None"
) -> Iterator[tuple[TopicPartition, str, Iterator[Record]]]:
    for partition, owner, records in truncated_records(compared.reports, inputs):
        yield partition, owner, map(pseudonyms.record, records) if pseudonyms else records


def truncated_records(
    reports: Iterable[PartitionReport], inputs: Inputs
) -> Iterator[tuple[TopicPartition, str, Iterator[Record]]]:
    """Yield for each expected truncation the partition, the owner of the replica, and the records that it would discard, where their bytes can be read."""
    reader = _content_reader(inputs)
    for report, directory, (first, last) in _truncations(reports):
        if reader.lack_of_content(directory, first, last) is None:
            yield report.partition, directory.owner, reader.records(directory, first, last)


def lacking_records(reports: Iterable[PartitionReport], inputs: Inputs) -> Iterator[Problem]:
    """Yield a problem for each replica whose records an expected truncation would discard, and whose capture does not hold their bytes."""
    reader = _content_reader(inputs)
    for _, directory, (first, last) in _truncations(reports):
        if (lack := reader.lack_of_content(directory, first, last)) is not None:
            words = f"the records that would be truncated can't be listed: {lack}"
            yield Problem(input=directory.input, path=directory.path, message=words)


def _content_reader(inputs: Inputs) -> FileBatchReader:
    return FileBatchReader([one.root for one in inputs.found], with_content=True)


def _truncations(reports: Iterable[PartitionReport]) -> Iterator[tuple[PartitionReport, Replica, tuple[int, int]]]:
    """Yield each replica that is expected to truncate, and the first and the last offset that it would discard."""
    for report in reports:
        for replica in report.replicas:
            if replica.truncation is not None:
                yield report, replica.view.replica, replica.truncation.dropped
