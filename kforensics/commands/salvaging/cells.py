"""The cells of lines, a column at a time: what a form of lines is made of, without its names and order."""

from binascii import b2a_base64
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Column = Any
"""The bytes of each record's cell: a list, or an array of Arrow's."""


class Cells(Protocol):
    """Makes the columns of some records, and lines of them."""

    def digits(self, values: NDArray[np.int64], codes: NDArray[np.int8], words: Sequence[bytes]) -> Column:
        """Return whole numbers, or the word of a code where it is 0 or more.

        Args:
            codes: one a record, negative where the number counts.
        """

    def words(self, codes: NDArray[np.int8], words: Sequence[bytes]) -> Column:
        """Return the word of each code.

        Args:
            codes: one a record, of 0 or more.
        """

    def base64(self, view: memoryview, positions: NDArray[np.int64], lengths: NDArray[np.int64]) -> Column:
        """Return bytes of a buffer as base64, nothing where a length is below 0.

        Args:
            lengths: in bytes, one a record.
        """

    def texts(self, texts: list[bytes]) -> Column:
        """Return texts as a column."""

    def joined(self, constants: Sequence[bytes], columns: Sequence[Column]) -> "bytes | memoryview":
        """Return each record's cells behind each other in one buffer: a constant before each, and one behind the last.

        Args:
            constants: one more than there are columns.
            columns: with a cell for each record.
        """


class PlainCells(Cells):
    """Columns as lists, an object for each cell."""

    def digits(self, values: NDArray[np.int64], codes: NDArray[np.int8], words: Sequence[bytes]) -> list[bytes]:
        """Return whole numbers, or the word of a code where it is 0 or more."""
        if (codes < 0).all():
            return [b"%d" % value for value in values.tolist()]
        pairs = zip(values.tolist(), codes.tolist(), strict=True)
        return [b"%d" % value if code < 0 else words[code] for value, code in pairs]

    def words(self, codes: NDArray[np.int8], words: Sequence[bytes]) -> list[bytes]:
        """Return the word of each code."""
        return [words[code] for code in codes.tolist()]

    def base64(self, view: memoryview, positions: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[bytes]:
        """Return bytes of a buffer as base64, nothing where a length is below 0."""
        places = zip(positions.tolist(), (positions + np.maximum(lengths, 0)).tolist(), strict=True)
        return [b2a_base64(view[start:end], newline=False) for start, end in places]

    def texts(self, texts: list[bytes]) -> list[bytes]:
        """Return these."""
        return texts

    def joined(self, constants: Sequence[bytes], columns: Sequence[list[bytes]]) -> bytes:
        """Return each record's cells behind each other in one buffer: a constant before each, and one behind the last."""
        count = len(columns[0])
        width = 2 * len(columns)
        # Between records the end of one and the beginning of the next are one piece.
        pieces = [constants[-1] + constants[0]] * (width * count + 1)
        for at, values in enumerate(columns):
            if at:
                pieces[2 * at :: width] = [constants[at]] * count
            pieces[2 * at + 1 :: width] = values
        pieces[0], pieces[-1] = constants[0], constants[-1]
        return b"".join(pieces)
