"""The file of metrics: replaced as a whole, since a collector may read it at any moment."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kforensics.errors import UsageError

if TYPE_CHECKING:
    from kforensics.commands.result import Result


def check_metrics(path: Path | None) -> None:
    """Refuse, before the work, a file that holds something other than metrics, or whose directory is missing.

    Args:
        path: as `--metrics` names it; None for none.

    Raises:
        UsageError: one of these, or the file can't be read.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        raise UsageError(f"--metrics {path}: {path.parent} is no directory")
    from kforensics.render.metrics import FIRST_WORDS

    try:
        with path.open("rb") as file:
            begin = file.read(len(FIRST_WORDS))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"--metrics {path} can't be read: {error.strerror}") from error
    if begin != FIRST_WORDS.encode():
        raise UsageError(
            f"--metrics {path} holds something else than metrics of kforensics, which are all that it replaces"
        )


def write_metrics(path: Path, result: "Result[Any]") -> None:
    """Write the metrics of an audit, whole or not at all.

    Args:
        path: of the file, which is replaced.

    Raises:
        UsageError: the file can't be written.
    """
    from kforensics.render.metrics import metrics_text

    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_text(metrics_text(result), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"--metrics {path} can't be written: {error.strerror}") from error
