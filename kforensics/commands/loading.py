"""The rules of loading asked of a partition directory on disk: what they need is read, and nothing else."""

from collections.abc import Mapping
from pathlib import Path

from kforensics.errors import EvidenceError
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.evidence.replica.loader_values import Need
from kforensics.protocol.loading.partition import load_partition
from kforensics.protocol.loading.values import LoadedDirectory, LoadOutcome, LoadSettings, Unpredictable
from kforensics.protocol.loading.versions import LoadingRules


def load_directory(
    folder: Path,
    files: Mapping[str, int],
    *,
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    settings: LoadSettings,
    rules: LoadingRules,
    unreadable: frozenset[str] = frozenset(),
) -> LoadOutcome | Unpredictable:
    """What loading makes of a directory; its files are read as the rules ask for them.

    Args:
        folder: the partition directory.
        files: names and sizes of its plain files.
        clean_shutdown: whether the log directory holds the marker when loading begins.
        recovery_point: as checkpointed, 0 where it is not.
        log_start_offset: as checkpointed, 0 where it is not.
        settings: of topic and broker.
        rules: of the version.
        unreadable: files that can't be opened.
    """
    contents: dict[Need, object] = {}
    directory = LoadedDirectory(name=folder.name, files=files, unreadable=unreadable, contents=contents)
    while True:
        outcome = load_partition(
            directory,
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            settings=settings,
            rules=rules,
        )
        if not isinstance(outcome, Need):
            return outcome
        try:
            contents[outcome] = read_needed(folder, outcome)
        except EvidenceError as error:
            return Unpredictable(str(error))
