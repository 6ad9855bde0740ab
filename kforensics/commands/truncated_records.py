"""The records that expected truncations would discard, as far as their bytes are among the inputs."""

from collections.abc import Iterable, Iterator

from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.model import Problem, Replica
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.formats.log.records import Record
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.units import TopicPartition


def truncated_records(
    reports: Iterable[PartitionReport], inputs: Inputs
) -> Iterator[tuple[TopicPartition, str, Iterator[Record]]]:
    """Yield for each expected truncation the partition, the owner of the replica, and the records that it would discard, where their bytes can be read.

    Args:
        inputs: of the comparison; captures give those records whose bytes they hold.
    """
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
