r"""Records as text for `kcat` and Kafka's console producer, only where nothing in them looks like what separates them.

    kcat      key TAB value LF, as `kcat -P -K '\t' -Z` reads it: an empty key or value is null there
    console   key TAB value LF, as `kafka-console-producer --property parse.key=true --property null.marker=NULL` reads it

Neither holds timestamps or headers, so records that have headers are refused too.
"""

import numpy as np

from kforensics.commands.salvaging.folder import OutFolder, WrittenFile
from kforensics.commands.salvaging.forms import FormName, Given, HoldsDelimiter
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.records import slice_nullable
from kforensics.units import TopicPartition

MOST_NAMED = 20
"""Offsets that are named where a form can't hold a partition."""

SEPARATOR = b"\t"
END = b"\n"
NULL_MARKER = b"NULL"


class DelimitedRecords:
    """One text file a partition and label."""

    def __init__(self, folder: OutFolder, stem: str, partition: TopicPartition, form: FormName) -> None:
        self._partition = partition
        self._form = form
        self._refused: list[int] = []
        self.file = folder.open(f"{stem}.{form.value}.txt")

    def add(self, chunk: RecordChunk, given: Given) -> None:  # noqa: ARG002 - as every form
        """Add records in order of offset; those that the form can't hold are remembered.

        Args:
            chunk: valid until this returns.

        Raises:
            HoldsDelimiter: as many records as are named can't be held.
        """
        null = b"" if self._form is FormName.KCAT else NULL_MARKER
        lines = []
        columns = (chunk.offset, chunk.key_position, chunk.key_length, chunk.value_position, chunk.value_length)
        counts = chunk.header_count.tolist()
        for (offset, key_at, key_length, value_at, value_length), headers in zip(
            zip(*(np.asarray(column).tolist() for column in columns), strict=True), counts, strict=True
        ):
            key = slice_nullable(chunk.view, key_at, key_length)
            value = slice_nullable(chunk.view, value_at, value_length)
            if headers or not self._fits(key, is_key=True) or not self._fits(value, is_key=False):
                self._refused.append(offset)
                if len(self._refused) >= MOST_NAMED:
                    self._refuse()
                continue
            lines.append((null if key is None else key) + SEPARATOR + (null if value is None else value) + END)
        if not self._refused:
            self.file.write_lines(lines)

    def _fits(self, payload: bytes | None, *, is_key: bool) -> bool:
        if payload is None:
            return True
        if END in payload or (is_key and SEPARATOR in payload):
            return False
        if self._form is FormName.KCAT:
            return bool(payload)  # an empty one would be read as null
        return payload != NULL_MARKER and b"\r" not in payload and _is_text(payload)

    def _refuse(self) -> None:
        what = "headers, or a delimiter, a null marker or an empty value inside a key or value"
        raise HoldsDelimiter(self._partition, tuple(self._refused), self._form.value, what)

    def finish(self) -> tuple[WrittenFile, ...]:
        """End the file.

        Raises:
            HoldsDelimiter: records that the form can't hold are among them.
        """
        if self._refused:
            self._refuse()
        return (self.file.finish(),)

    def close(self) -> None:
        """Give the file back."""
        self.file.close()


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True
