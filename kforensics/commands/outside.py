"""The rule that nothing is written inside the evidence."""

import os
from collections.abc import Iterable
from pathlib import Path

from kforensics.errors import UsageError
from kforensics.source.foreign import ForeignPath


def check_outside(out: Path, evidence: Iterable[Path]) -> None:
    """Refuse an output that would lie inside the evidence.

    Args:
        out: a file or directory, which need not exist.
        evidence: the inputs as they were given.

    Raises:
        UsageError: the output would be an input, or lie inside of one.
    """
    target = _resolved(out)
    for given in evidence:
        place = _resolved(given)
        if target == place or place in target.parents:
            raise UsageError(f"{out} would lie inside the evidence {given}, where kforensics writes nothing")


def _resolved(path: Path) -> Path:
    return path if isinstance(path, ForeignPath) else Path(os.path.realpath(path))  # of links in a circle, too
