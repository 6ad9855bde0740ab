"""One declaration of a fixed layout with three readers: construct's own, and a `struct.Struct` and a numpy dtype for what is read often.

construct is the reference: it costs 17 µs a header, and 12 ms when it is loaded, so everything but a comparison with it uses the other readers. Tests
hold them against each other on every recording.
"""

from functools import cached_property
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import construct

INT8, INT16, INT32, UINT32, INT64 = "b", "h", "l", "L", "q"
"""Integers of fixed length, by their codes in `struct`."""


class FixedLayout:
    """A layout of fixed length: big-endian integers in order, without gaps."""

    def __init__(self, **fields: str) -> None:
        self._fields = fields
        self.names = tuple(fields)
        self.struct = Struct(">" + "".join(fields.values()))
        self.dtype: np.dtype[Any] = np.dtype([(name, _NUMPY_CODES[code]) for name, code in fields.items()])
        self.length: int = self.struct.size

    @cached_property
    def declaration(self) -> "construct.Struct":
        """The layout as construct declares it."""
        import construct  # noqa: PLC0415 - it loads a debugger and OpenSSL

        return construct.Struct(*(name / construct.FormatField(">", code) for name, code in self._fields.items()))

    def position_of(self, name: str) -> int:
        """Return the position of a field from the start of the layout, in bytes.

        Args:
            name: a field that the layout declares.
        """
        field = self.dtype.fields[name] if self.dtype.fields is not None else None
        assert field is not None
        return int(field[1])


_NUMPY_CODES = {INT8: "i1", INT16: ">i2", INT32: ">i4", UINT32: ">u4", INT64: ">i8"}
