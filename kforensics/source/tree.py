"""Walk everything below a path for a seal, which must miss nothing and follow no link.

The order is that of path components, so that two walks over the same tree can be merged without holding either.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kforensics.source.mapped import scan_directory, status_of
from kforensics.source.walk import Obstacle, join, may_vanish

ITSELF = "."
"""The relative path of a root that is no directory."""


class TreeEntry(NamedTuple):
    """One file, directory or link below a root; `status` is its own, never that of a link's target."""

    path: str
    status: os.stat_result


def walk_tree(root: Path) -> Iterator[TreeEntry | Obstacle]:
    """Yield everything below the root in the order of path components, or the root itself if it is no directory.

    Args:
        root: a local path; no link below it, nor itself, is followed.

    Yields:
        Entries with paths relative to the root, and an obstacle for each that can't be looked at; a file that a broker deletes as a matter
        of course may vanish unmentioned.
    """
    try:
        status = status_of(root)
    except OSError as error:
        yield Obstacle(ITSELF, f"it can't be looked at: {error.strerror}")
        return
    if not stat.S_ISDIR(status.st_mode):
        yield TreeEntry(ITSELF, status)
        return
    names: list[Iterator[str]] = []
    folders: list[str] = []

    def enter(folder: str) -> Iterator[Obstacle]:
        try:
            with scan_directory(root / folder) as scan:
                listed = sorted(item.name for item in scan)
        except OSError as error:
            yield Obstacle(folder or ITSELF, f"the directory can't be listed: {error.strerror}")
        else:
            names.append(iter(listed))
            folders.append(folder)

    yield from enter("")
    while names:
        name = next(names[-1], None)
        if name is None:
            names.pop()
            folders.pop()
            continue
        path = join(folders[-1], name)
        try:
            status = status_of(root / path)
        except FileNotFoundError:
            if not may_vanish(name):
                yield Obstacle(path, "it vanished while its directory was read")
            continue
        except OSError as error:
            yield Obstacle(path, f"it can't be looked at: {error.strerror}")
            continue
        yield TreeEntry(path, status)
        if stat.S_ISDIR(status.st_mode):
            yield from enter(path)
