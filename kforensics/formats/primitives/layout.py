"""One declaration of a fixed layout with three readers: construct's own, and a `struct.Struct` and a numpy dtype derived from it.

construct is the reference and names the field that fails; it costs 17 µs a header, so hot paths use the derived readers. Tests hold them against
each other on every recording.
"""

from struct import Struct
from typing import Any

import construct
import numpy as np


class FixedLayout:
    """A layout of fixed length: integers and byte runs in order, without gaps."""

    def __init__(self, declaration: construct.Struct) -> None:
        fields = [_fixed_field(field) for field in declaration.subcons]
        self.declaration = declaration
        self.names: tuple[str, ...] = tuple(name for name, _, _ in fields)
        self.struct = Struct(">" + "".join(code for _, code, _ in fields))
        self.dtype: np.dtype[Any] = np.dtype([(name, dtype) for name, _, dtype in fields])
        self.length: int = self.struct.size

    def position_of(self, name: str) -> int:
        """Return the position of a field from the start of the layout, in bytes.

        Args:
            name: a field that the layout declares.
        """
        field = self.dtype.fields[name] if self.dtype.fields is not None else None
        assert field is not None
        return int(field[1])


def _fixed_field(field: Any) -> tuple[str, str, str]:
    """Return the name, struct code and numpy type of a declared field."""
    inner = field.subcon
    if isinstance(inner, construct.FormatField):
        return field.name, inner.fmtstr[-1], _NUMPY_CODES[inner.fmtstr[-1]]
    raise TypeError(f"{field.name} is no integer of fixed length")


_NUMPY_CODES = {"b": "i1", "B": "u1", "h": ">i2", "H": ">u2", "l": ">i4", "L": ">u4", "q": ">i8", "Q": ">u8"}
