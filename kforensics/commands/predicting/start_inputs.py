"""The inputs of `predict`: as every command finds them, and empty log directories, on which a broker with ZooKeeper starts."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from kforensics.commands.predicting.nodes import ConfiguredNode
from kforensics.commands.predicting.settings import log_dirs_of
from kforensics.commands.predicting.surroundings import node_id_of, server_properties
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import Inputs, empty_log_dir, find_inputs, why_not_compared
from kforensics.source.foreign import ForeignPath


def find_start_inputs(paths: Sequence[Path], *, keep_going: bool) -> Inputs:
    """Return the inputs that paths name; an empty directory, named or below one that is, is one where a `server.properties` among them names it.

    Args:
        keep_going: a path that can't be used is a problem in the report, and the others are read.

    Raises:
        EvidenceError: a path can't be used, or with `keep_going` none can.
    """
    find = partial(find_inputs, with_server_logs=True, why_not=why_not_compared, with_emptied=False)
    empty = [path for path in dict.fromkeys(paths) if _is_empty(path)]
    others = [path for path in paths if path not in empty]
    if not others:
        return find(paths, keep_going=keep_going)
    inputs = find(others, keep_going=True)
    named = set(chain.from_iterable(node.log_dirs for node in configured_nodes(inputs)))
    blank = [path for path in empty if path.resolve() in named]
    inside = {one: _empty_below(one, named) for one in others if not isinstance(one, ForeignPath)}
    if len(blank) < len(empty) or inputs.problems:
        unusable = {one.described.path for one in inputs.found if one.described.kind == "unreadable"}
        alone = [path for path, found in inside.items() if found and str(path) in unusable]
        inputs = find([path for path in paths if path not in blank and path not in alone], keep_going=keep_going)
    log_dirs = {path.resolve(): path for path in chain(blank, *inside.values())}
    return replace(inputs, found=(*inputs.found, *map(empty_log_dir, log_dirs.values())))


def configured_nodes(inputs: Inputs) -> list[ConfiguredNode]:
    """Return the node that each `server.properties` among the inputs is of."""
    return [
        ConfiguredNode(
            log_dirs=frozenset(Path(os.path.realpath(path)) for path in log_dirs_of(settings)),
            node_id=_number(node_id_of(settings)),
            has_roles=bool(settings.get("process.roles")),
            has_zookeeper=bool(settings.get("zookeeper.connect")),
        )
        for settings in server_properties(inputs, [])
    ]


def _number(text: str) -> int | Absent:
    return int(text) if text.isdecimal() and len(text) < 10 else Absent.UNKNOWN


def _empty_below(given: Path, named: set[Path]) -> list[Path]:
    """Return the empty directories below a path that settings name as log directories."""
    real = given.resolve()
    return [
        given / path.relative_to(real)
        for path in sorted(named)
        if path != real and path.is_relative_to(real) and _is_empty(path)
    ]


def _is_empty(path: Path) -> bool:
    try:
        return not isinstance(path, ForeignPath) and path.is_dir() and not any(path.iterdir())
    except OSError:
        return False
