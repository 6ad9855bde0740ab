"""The forms in which records are written, and what a form gets to know of the records that it is given."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kforensics.commands.salvaging.folder import OutFile, OutFolder, WrittenFile
from kforensics.commands.salvaging.reading import CopyFiles, Run
from kforensics.errors import KforensicsError, MissingExtra
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import BatchTable
from kforensics.units import TopicPartition


class FormName(StrEnum):
    """The forms of the output."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    SEGMENTS = "segments"
    KCAT = "kcat"
    CONSOLE = "console"


class HoldsDelimiter(KforensicsError):  # noqa: N818 - named like its siblings
    """Keys or values hold the bytes that separate them in a text form; `offsets` are the first ones."""

    def __init__(self, partition: TopicPartition, offsets: Sequence[int], form: str, what: str) -> None:
        super().__init__(partition, offsets, form, what)
        self.partition = partition
        self.offsets = offsets
        self.form = form
        self.what = what

    def __str__(self) -> str:
        named = ", ".join(map(str, self.offsets))
        return f"--form {self.form} can't hold {self.partition}: {self.what} at offset {named}; use --form jsonl"


class NotRebased(KforensicsError):  # noqa: N818 - named like its siblings
    """Batches can't be copied with other offsets."""

    def __init__(
        self, partition: TopicPartition, offset: int, why: str = "compressed messages of magic 0 hold absolute offsets"
    ) -> None:
        super().__init__(partition, offset, why)
        self.partition = partition
        self.offset = offset
        self.why = why

    def __str__(self) -> str:
        return f"--form segments can't hold {self.partition}: {self.why}, at offset {self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The facts about the records of a chunk beside the chunk."""

    input: int
    path: str
    committed: NDArray[np.int8]
    """Index in `CERTAINTIES` of each record."""
    aborted: NDArray[np.bool_]
    """Whether each record is of an aborted transaction; such are here only if they were asked for."""


class RecordWriter(Protocol):
    """Writes the records of one partition and label."""

    file: OutFile

    def add(self, chunk: RecordChunk, given: Given) -> None:
        """Add records in order of offset.

        Args:
            chunk: whose bytes hold until this returns.
        """

    def finish(self) -> tuple[WrittenFile, ...]:
        """End the files and give them their names."""

    def close(self) -> None:
        """Give everything back; files that were not finished keep their names ending in `.partial`."""


class BatchWriter(Protocol):
    """Writes whole batches of one partition and label, byte for byte."""

    copied: list[tuple[OutFile, int, int, int]]
    """The bytes that were added last as they were: to which file and position, and from which position up to which."""

    def add(self, run: Run, files: CopyFiles) -> BatchTable:
        """Add batches in order of offset, and return those that were not taken over."""

    def finish(self) -> tuple[WrittenFile, ...]:
        """End the files and give them their names."""

    def close(self) -> None:
        """Give everything back; files that were not finished keep their names ending in `.partial`."""


class Unwritten:
    """Takes the records of one partition and label, and writes none."""

    file: OutFile

    def add(self, chunk: RecordChunk, given: Given) -> None:
        """Leave records where they are."""

    def finish(self) -> tuple[WrittenFile, ...]:
        """Return no file."""
        return ()

    def close(self) -> None:
        """Give nothing back: nothing was taken."""


def require_form(form: FormName) -> None:
    """Refuse a form that needs a package that is not installed."""
    if form is not FormName.PARQUET:
        return
    if sys.platform == "linux":
        # Arrow's own choice keeps three times what is in use, in each of several processes.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    try:
        import pyarrow.parquet  # noqa: F401, PLC0415 - before processes are forked that all need it
    except ImportError:
        raise MissingExtra("salvage", "--form parquet") from None


def record_writer(
    form: FormName | None, folder: OutFolder, stem: str, partition: TopicPartition, *, beside: bool = True
) -> RecordWriter:
    """Return the writer of a form that holds records."""
    if form is None:
        return Unwritten()
    if form is FormName.PARQUET:
        from kforensics.commands.salvaging.parquet import ParquetRecords  # noqa: PLC0415 - loads pyarrow

        return ParquetRecords(folder, stem, partition, beside=beside)
    if form is FormName.JSONL:
        from kforensics.commands.salvaging.jsonl import JsonRecords  # noqa: PLC0415 - for this form alone

        return JsonRecords(folder, stem, partition)
    from kforensics.commands.salvaging.jsonl import DelimitedRecords  # noqa: PLC0415 - for this form alone

    return DelimitedRecords(folder, stem, partition, form)
