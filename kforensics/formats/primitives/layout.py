"""One declaration of a fixed layout with two readers: a `struct.Struct` and a numpy dtype. Tests hold both against construct on every recording."""

from struct import Struct
from typing import Any, Literal

import numpy as np

FieldKind = Literal["int8", "int16", "int32", "uint32", "int64"]
"""A big-endian integer, in two's complement where it has a sign."""

_CODES: dict[FieldKind, tuple[str, str]] = {
    "int8": ("b", "i1"),
    "int16": ("h", ">i2"),
    "int32": ("i", ">i4"),
    "uint32": ("I", ">u4"),
    "int64": ("q", ">i8"),
}


class FixedLayout:
    """A layout of fixed length: integers in order, without gaps.

    Args:
        fields: what each is, by its name.
    """

    def __init__(self, **fields: FieldKind) -> None:
        self.fields = fields
        self.names = tuple(fields)
        self.struct = Struct(">" + "".join(_CODES[kind][0] for kind in fields.values()))
        self.dtype: np.dtype[Any] = np.dtype([(name, _CODES[kind][1]) for name, kind in fields.items()])
        self.length: int = self.struct.size

    def position_of(self, name: str) -> int:
        """Return the position of a field from the start of the layout, in bytes."""
        field = self.dtype.fields[name] if self.dtype.fields is not None else None
        assert field is not None
        return int(field[1])
