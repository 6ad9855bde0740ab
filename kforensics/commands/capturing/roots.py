"""What lies below the paths that a capture is asked for: log directories, partition directories, directories of log files."""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from kforensics.commands.capturing.folders import FolderPlan, LogDirPlan, RootPlan, add_folders
from kforensics.errors import NotADataDir, UsageError
from kforensics.evidence.discovery.inputs import FoundInput, Inputs, find_inputs, why_not_compared
from kforensics.evidence.discovery.log_heads import begins_like_a_log
from kforensics.evidence.model import Input
from kforensics.source.discover import Shape
from kforensics.source.foreign import Entry
from kforensics.source.naming import FileKind, parse_file_name
from kforensics.source.walk import DEEPEST, Listings


def find_root(given: Path) -> Inputs:
    """Return the inputs below a path that a capture is asked for.

    Args:
        given: a data directory, a parent of some, or a directory of log files, whatever they are called.

    Raises:
        EvidenceError: it is none of these.
    """
    try:
        return find_inputs([given], with_server_logs=True, why_not=why_not_compared)
    except NotADataDir:
        if not given.is_dir() or not any(begins_like_a_log(one) for one in given.iterdir() if one.is_file()):
            raise
        # Its files may be logs by their content; `explain` takes such a directory, too.
        described = Input(path=str(given), kind="log-files")
        return Inputs(found=(FoundInput(described=described, listings=Listings(given.resolve()), shape=Shape.FILES),))


def new_name(name: str, roots: Sequence[RootPlan]) -> str:
    """Return a name that no other root has in the capture."""
    taken, number, found = {root.name for root in roots}, 2, name
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def require_one_node(inputs: Sequence[FoundInput]) -> None:
    """Refuse directories of more than one node.

    Raises:
        UsageError: they name several nodes.
    """
    nodes = {
        (one.described.cluster_id, one.described.broker_id): one.described.path
        for one in inputs
        if isinstance(one.described.broker_id, int)
    }
    if len(nodes) > 1:
        named = ", ".join(f"node {node} in {path}" for (_, node), path in sorted(nodes.items(), key=str))
        raise UsageError(f"a capture is of one node, and there are {len(nodes)}: {named}; capture each by itself")


def plan_root(root: RootPlan, found: Sequence[FoundInput]) -> None:
    """Plan the directories below a root, all but the partition directories of its log directories.

    Args:
        root: that the plans are added to.
    """
    planned: dict[str, FolderPlan] = {}
    for one in found:
        prefix = str(one.root.relative_to(root.real)) if one.root != root.real else ""
        match one.shape:
            case Shape.FILE:
                root.file = one.root
            case Shape.PARTITION:
                add_folders(planned, _inner(root, prefix), one, "", DEEPEST)
            case Shape.FILES:
                levels = DEEPEST if one.root == root.real else 0
                add_folders(planned, _inner(root, prefix), one, "", levels, holds_logs=True)
            case Shape.LOG_DIR | Shape.PARENT:
                for path in one.log_dir_paths:
                    log_dir = LogDirPlan(found=one, path=path, inner=_inner(root, prefix, path))
                    log_dir.list_names()
                    if log_dir.inner not in {other.inner for other in root.log_dirs}:
                        root.log_dirs.append(log_dir)
                    add_folders(planned, log_dir.inner, one, path, DEEPEST, without_partitions=True)
    _add_parents(planned, root)
    root.folders = [planned[inner] for inner in sorted(planned)]


def _inner(root: RootPlan, *below: str) -> str:
    return "/".join(part for part in (root.name, *below) if part)


def _add_parents(planned: dict[str, FolderPlan], root: RootPlan) -> None:
    """Add the directories between the path that was named and what was found below it, with nothing else that is in them."""
    if root.file is not None:
        return
    for inner in sorted(planned):
        parent = inner.rpartition("/")[0]
        while parent:
            child = inner[len(parent) + 1 :].partition("/")[0]
            if parent not in planned:
                relative = parent[len(root.name) + 1 :]
                planned[parent] = FolderPlan(root=root.real, relative=relative, inner=parent)
            known = planned[parent]
            if known.listings is None or not known.with_directories:
                known.children = known.children or {}
                known.children[child] = Entry(child, stat.S_IFDIR | 0o755, 0, 0)
            parent = parent.rpartition("/")[0]


def lock_files(roots: Sequence[RootPlan]) -> Iterator[Path]:
    """Yield the files that a running broker holds locks on."""
    for root in roots:
        for folder in root.folders:
            if folder.place is None:
                for entry in folder.each():
                    if not entry.is_directory and parse_file_name(entry.name).kind is FileKind.LOCK:
                        yield folder.path / entry.name
