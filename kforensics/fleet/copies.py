"""The files that a scan copies unchanged: the metadata log and the broker's own log files, which show leaders and hold no records."""

from collections.abc import Iterator

from kforensics.case.broker_logs import read_logs
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.model import Problem
from kforensics.fleet.places import copied_root
from kforensics.fleet.tables import Tables
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind, parse_partition_directory
from kforensics.source.walk import FoundFile, join, walk_partition

COPY_LIMIT = 1 << 30
"""The most bytes of a file that are copied; brokers roll the segments of a metadata log at 1 GiB."""

_COPIED = frozenset({FileKind.SEGMENT, FileKind.METADATA_SNAPSHOT})


def copy_facts(number: int, found: FoundInput, tables: Tables) -> list[Problem]:
    """Copy the files about the cluster into the evidence, and return the problems of reading them."""
    problems = []
    for path in (*_metadata_files(found), *_log_files(found)):
        location = found.root if path == WHOLE_INPUT else found.root / path
        try:
            with open_evidence(location) as file:
                tables.copy(_copy_of(number, found, path), file.read_all(COPY_LIMIT), file.mtime_ns)
        except EvidenceError as error:
            problems.append(Problem(input=number, path=path, message=error.problem))
    return problems


def _copy_of(number: int, found: FoundInput, path: str) -> str:
    root = copied_root(number, found.described.path)
    return root if path == WHOLE_INPUT else f"{root}/{path}"


def _metadata_files(found: FoundInput) -> Iterator[str]:
    for log_dir in found.log_dirs:
        if not log_dir.is_metadata_dir:
            continue
        for entry in found.listings.of(log_dir.path).entries:
            name = parse_partition_directory(entry.name) if entry.is_directory else None
            if name is None or not name.is_metadata:
                continue
            for item in walk_partition(found.listings, join(log_dir.path, entry.name), name=entry.name):
                if isinstance(item, FoundFile) and item.name.kind in _COPIED:
                    yield item.path


def _log_files(found: FoundInput) -> Iterator[str]:
    for log_file in read_logs(Inputs(found=(found,)))[0]:
        yield log_file.path
