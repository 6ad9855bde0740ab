"""The files of a partition: one output for its best copy and one for each alternate, with the runs of bytes that each was made of and their SHA-256."""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kforensics.commands.salvaging.folder import (
    MANY_WAITING,
    Background,
    Foreground,
    OutFile,
    OutFolder,
    WrittenFile,
    safe_name,
)
from kforensics.commands.salvaging.model import Filters, PartitionPlan, SavedLabel, SavedRun
from kforensics.commands.salvaging.reading import BECAME_SHORTER, CopyFiles, Run
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, EvidenceUnreadable, KforensicsError, MissingExtra
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import NO_EPOCH, BatchTable
from kforensics.formats.primitives.word_buffer import SegmentBytes
from kforensics.reconcile.salvage import MAIN, Label
from kforensics.units import OffsetRange, TopicPartition


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
        """Add records in order of offset, out of a chunk whose bytes hold until this returns."""

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


_PIECE = 256 << 10


@dataclass(slots=True)
class Output:
    """One output: its writer, and what was written to it."""

    saved: SavedLabel
    records: RecordWriter | None
    batches: BatchWriter | None
    digest: Any = None
    """Of the bytes of the last run; a file where they are all that is in it so far."""


class Outputs:
    """The outputs of a partition, by the number of their label.

    Args:
        plan: what is wanted, and of which copies.
        folder: where files are made.
        labels: by number, as they are found.
        batch_writer: makes the writer of a form of whole batches, by the stem of its files.
        report: is given what can't be read.
        part: the number of this file among those of the best copy, None where it is the only one.
        beside: whether threads may do what can be done beside the decoding of records.
    """

    def __init__(
        self,
        plan: PartitionPlan,
        *,
        folder: OutFolder,
        form: FormName | None,
        filters: Filters,
        files: CopyFiles,
        labels: Sequence[Label],
        batch_writer: "Callable[[str, PartitionPlan], BatchWriter] | None",
        report: Callable[[Run, EvidenceError], None],
        part: int | None = None,
        beside: bool = True,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._form = form
        self._filters = filters
        self._files = files
        self._labels = labels
        self._batch_writer = batch_writer
        self._report = report
        self._part = part
        self._beside = beside
        self._unhashed: list[tuple[Any, Run, EvidenceError]] = []
        """Digests that lack bytes, with the runs of which they could not be read again."""
        self.by_number: dict[int, Output] = {}
        self.background: Background | Foreground = Background(MANY_WAITING) if beside else Foreground()
        """Hashes what is read."""
        self.use()

    def use(self) -> None:
        """Have files closed only once all that is to be hashed of them has been hashed."""
        self._files.before_close = self.background.wait

    def finish(self) -> list[SavedLabel]:
        """End all files, and return what they hold; a file without a record is removed."""
        for number in sorted(self.by_number):
            output = self.by_number[number]
            writer = output.records or output.batches
            assert writer is not None
            if output.records is not None and not output.saved.records:
                output.records.close()
                if self._form is not None:
                    output.records.file.discard()
                continue
            output.saved.files = writer.finish()
            self.seal(output)
        written = (self.by_number[number].saved for number in sorted(self.by_number))
        return [one for one in written if one.files or (self._form is None and one.records)]

    def close(self) -> None:
        """Give everything back; files that were not finished keep their names ending in `.partial`."""
        self.background.close()
        for output in self.by_number.values():
            for writer in (output.records, output.batches):
                if writer is not None:
                    writer.close()

    def of(self, number: int) -> Output:
        """Return the output of a label, which is opened where it is not."""
        if number in self.by_number:
            return self.by_number[number]
        label = self._labels[number]
        stem = self.stem(label if number != MAIN else None)
        saved = SavedLabel.of_best_copy()
        if number != MAIN:
            epoch = Absent.NOT_APPLICABLE if label.leader_epoch == NO_EPOCH else label.leader_epoch
            saved = SavedLabel(leader_epoch=epoch, owner=label.owner, is_of_leader=label.is_of_leader)
        if self._form is FormName.SEGMENTS:
            assert self._batch_writer is not None
            output = Output(saved, None, self._batch_writer(stem, self._plan))
        else:
            output = Output(
                saved, record_writer(self._form, self._folder, stem, self._plan.partition, beside=self._beside), None
            )
        self.by_number[number] = output
        return output

    def stem(self, label: Label | None) -> str:
        """Return what the names of files begin with."""
        partition = self._plan.partition
        name = self._plan.name or f"{safe_name(partition.topic)}-{partition.partition}"
        folder = ""
        if self._plan.is_other_topic:
            topic_id = self._plan.topic_id
            folder = f"other-topics/{safe_name(topic_id) if not isinstance(topic_id, Absent) else 'unknown'}/"
        if label is None:
            return folder + name if self._part is None else f"{folder}{name}/part-{self._part:05d}"
        # Without a number they are of several epochs, or of none.
        epoch = "" if label.leader_epoch == NO_EPOCH else f"epoch-{label.leader_epoch}."
        # Before there were leader epochs, what an earlier copy of the leader's log holds is told apart by no number.
        is_twice = label.is_of_leader and label._replace(is_of_leader=False) in self._labels
        owner = safe_name(label.owner.replace(" ", "-")) + ("-now" if is_twice else "")
        # A directory of its own for each: the loader of a broker takes only the name of the partition.
        return f"{folder}alternates/{name}/{epoch}{owner}/{name}"

    def note(self, run: Run, output: Output, records: int) -> None:
        """Remember where records came from, with the SHA-256 of the bytes; runs that continue each other are one."""
        if not records and (output.batches is None or not output.batches.copied):
            return
        replica = self._plan.copies[run.copy].view.replica
        path = replica.segments[run.segment].path
        first_offset, last_offset = int(run.rows["base_offset"].min()), int(run.rows["last_offset"].max())
        if self._filters.offsets is not None and output.batches is None:
            first_offset = max(first_offset, self._filters.offsets.first)
            last_offset = min(last_offset, self._filters.offsets.last)
        epochs = run.rows["partition_leader_epoch"]
        if self.continues(run, output):
            last = output.saved.runs[-1]
            last.offsets = OffsetRange(min(last.offsets.first, first_offset), max(last.offsets.last, last_offset))
            last.records += records
            last.length += run.end - run.start
            last.leader_epochs = OffsetRange(
                min(last.leader_epochs.first, int(epochs.min())), max(last.leader_epochs.last, int(epochs.max()))
            )
        else:
            self.seal(output)
            output.saved.runs.append(
                SavedRun(
                    offsets=OffsetRange(first_offset, last_offset),
                    records=records,
                    input=replica.input,
                    path=path,
                    position=run.start,
                    length=run.end - run.start,
                    sha256="",
                    leader_epochs=OffsetRange(int(epochs.min()), int(epochs.max())),
                )
            )
        self._hash(run, output)

    def continues(self, run: Run, output: Output) -> bool:
        """Return whether this run of bytes continues the last one."""
        if output.digest is None:
            return False
        last = output.saved.runs[-1]
        replica = self._plan.copies[run.copy].view.replica
        place = (replica.input, replica.segments[run.segment].path, run.start)
        return (last.input, last.path, last.position + last.length) == place

    def _hash(self, run: Run, output: Output) -> None:
        """Hash the bytes of a run beside the main thread; what is copied to a file that holds nothing else is hashed once, with the file."""
        position = run.start
        if output.digest is None or isinstance(output.digest, OutFile):
            position = self._hashed_with_file(run, output)
        if position == run.end:
            return
        try:
            source = self._files.source(run)
        except EvidenceError as error:
            self._unhashed.append((output.digest, run, error))
            return
        self.background.do(partial(self._update, output.digest, run, source, position))

    def _update(self, digest: Any, run: Run, source: SegmentBytes, position: int) -> None:
        try:
            _hash_range(digest, source, position, run.end)
        except EvidenceError as error:
            self._unhashed.append((digest, run, error))

    def _hashed_with_file(self, run: Run, output: Output) -> int:
        """Return the position up to which the digest of the run is that of the file that it is copied to."""
        begin, position = output.saved.runs[-1].position, run.start
        copied = output.batches.copied if output.batches is not None else []
        target = output.digest or (copied[0][0] if copied else None)
        there = [one for one in copied if one[0] is target]
        if len(there) == 1 and there[0][1:3] == (run.start - begin, run.start):
            output.digest, position = target, there[0][3]
        elif there:  # it holds something else, too, or not all of the run
            output.digest, position = None, begin
        if position < run.end:
            output.digest = output.digest.digest() if output.digest is not None else hashlib.sha256()
        return position

    def seal(self, output: Output) -> None:
        """Note the SHA-256 of the last run: no other continues it."""
        if output.digest is not None:
            self.background.wait()
            digest = output.digest.digest() if isinstance(output.digest, OutFile) else output.digest
            unhashed = [(run, error) for lacking, run, error in self._unhashed if lacking is output.digest]
            for run, error in unhashed[:1]:
                self._report(run, error)
            self._unhashed = [one for one in self._unhashed if one[0] is not output.digest]
            output.saved.runs[-1].sha256 = Absent.UNREADABLE if unhashed else digest.hexdigest()
            output.digest = None


def _hash_range(digest: Any, file: SegmentBytes, start: int, end: int) -> None:
    position = start
    buffer = memoryview(bytearray(min(_PIECE, end - start)))
    while position < end:
        count = file.read_into(position, buffer[: min(len(buffer), end - position)])
        if not count:
            raise EvidenceUnreadable("", BECAME_SHORTER)
        digest.update(buffer[:count])
        position += count
