"""Names of directories, packed: a log directory may have a million."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

NAMES_AT_ONCE = 1_024
"""Names of a group, and so partition directories that one process looks at before it hands over what it found."""


@dataclass(frozen=True, slots=True)
class PackedNames:
    """Names of directories in groups, each group in one text, which takes a fifth of the room of its names."""

    groups: tuple[str, ...] = ()
    """Names divided by slashes."""

    @classmethod
    def of(cls, names: Iterable[str]) -> "PackedNames":
        """Return names packed.

        Args:
            names: in order; none is empty.
        """
        each = iter(names)
        return cls(tuple(iter(lambda: "/".join(islice(each, NAMES_AT_ONCE)), "")))

    def __iter__(self) -> Iterator[str]:
        for group in self.groups:
            yield from names_of(group)

    def __len__(self) -> int:
        return sum(group.count("/") + 1 for group in self.groups)


def names_of(group: str) -> list[str]:
    """Return the names of a group, in order.

    Args:
        group: one of `PackedNames`.
    """
    return group.split("/")
