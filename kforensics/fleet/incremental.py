"""Whether a fleet is as an earlier audit saw it: then what that audit wrote still holds, and nothing need be judged again."""

import hashlib
from collections.abc import Sequence

from kforensics import __version__
from kforensics.ask.model import Ask
from kforensics.fleet.audit_tables import AuditTables
from kforensics.fleet.places import FoundSources
from kforensics.fleet.plan import LogDirTask, LogDirTotals, file_fingerprint
from kforensics.source.walk import SETTLED_NS, FoundFile
from kforensics.units import Depth

TAKEN_OVER = ("nodes", "replicas", "segments", "digests", "lineage", "partitions", "findings", "problems")
"""The tables that are the same where nothing has changed."""


def fingerprint_of(
    found: FoundSources, tasks: Sequence[LogDirTask], totals: Sequence[LogDirTotals], options: Ask
) -> str:
    """Return a digest of all that a verdict depends on: every file's name, length and time of change, the options, and this program.

    Args:
        totals: of each of them, with the digests of their listings.
        options: what was asked for.
    """
    out = hashlib.sha256(f"{__version__}\0{_options(options)}\n".encode())
    for number, one in enumerate(found.inputs):
        described = one.found.described
        out.update(f"{number}\0{described}\0{one.rack}\n".encode(errors="surrogateescape"))
        if not one.found.log_dirs and described.kind != "partition":
            for item in one.found.walk():
                if isinstance(item, FoundFile):
                    out.update(file_fingerprint(item))
    for cluster, assignments in found.assignments.items():
        out.update(f"{cluster}\0{sorted(assignments.items())}\n".encode())
    for task, total in zip(tasks, totals, strict=True):
        out.update(f"{task.source}\0{total.fingerprint}\n".encode())
    return out.hexdigest()


def _options(options: Ask) -> str:
    chosen = (options.leader, options.protocol)
    stated = (options.replicas, options.is_stopped, (options.depth or Depth.CONTENT).value)
    return f"{chosen} {stated} {sorted(options.topics)} {sorted(options.partitions)}"


def is_unchanged(fingerprint: str, totals: Sequence[LogDirTotals], earlier: AuditTables) -> bool:
    """Return whether an earlier audit saw the same, read everything, and began when the last change had settled."""
    if earlier.manifest.get("fingerprint") != fingerprint:
        return False
    newest = max((one.newest_ns for one in totals), default=0)
    if int(earlier.manifest.get("started_ns", 0)) - newest <= SETTLED_NS or any(one.problems for one in totals):
        return False
    return earlier.row_count("problems") == 0
