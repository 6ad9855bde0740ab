"""The inputs of `predict`: as every command finds them, and empty log directories, on which a broker with ZooKeeper starts."""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from kforensics.commands.predicting.settings import log_dirs_of
from kforensics.commands.predicting.surroundings import server_properties
from kforensics.evidence.discovery.inputs import Inputs, empty_log_dir, find_inputs, why_not_compared
from kforensics.source.foreign import ForeignPath


def find_start_inputs(paths: Sequence[Path], *, keep_going: bool) -> Inputs:
    """Return the inputs that paths name; an empty directory is one where a `server.properties` among them names it.

    Args:
        paths: as named by a person.
        keep_going: a path that can't be used is a problem in the report, and the others are read.

    Raises:
        EvidenceError: a path can't be used, or with `keep_going` none can.
    """
    find = partial(
        find_inputs, with_server_logs=True, why_not=why_not_compared, keep_going=keep_going, with_emptied=False
    )
    empty = [path for path in paths if _is_empty(path)]
    others = [path for path in paths if path not in empty]
    if not empty or not others:
        return find(paths)
    named = {path for one in configured_log_dirs(find(others)) for path in one}
    blank = [path for path in dict.fromkeys(empty) if path.resolve() in named]
    inputs = find([path for path in paths if path not in blank])
    return replace(inputs, found=(*inputs.found, *map(empty_log_dir, blank)))


def configured_log_dirs(inputs: Inputs) -> list[Collection[Path]]:
    """Return the log directories that each `server.properties` among the inputs names.

    Args:
        inputs: all.
    """
    return [
        {Path(os.path.realpath(path)) for path in log_dirs_of(settings)} for settings in server_properties(inputs, [])
    ]


def _is_empty(path: Path) -> bool:
    try:
        return not isinstance(path, ForeignPath) and path.is_dir() and not any(path.iterdir())
    except OSError:
        return False
