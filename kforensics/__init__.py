"""Read-only log forensics over Kafka broker data directories: what was lost, was it committed, and who still has it.

The functions here are the commands without a command line. They take paths, never write, and give immutable values; what can't be read
stands in `problems`; a path that can't be used at all raises an `EvidenceError` before anything is analysed.

    result = kforensics.diff("broker-1", "broker-2", "broker-3")
    for finding in result.findings:
        print(finding.code, finding.statement, finding.citations)
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kforensics.commands.diff import DiffResult
    from kforensics.commands.explain import Explanation
    from kforensics.evidence.checks.consistency import Verification

__version__ = "0.1.0"
__all__ = ["__version__", "diff", "explain", "verify"]

AnyPath = str | PathLike[str]

# What each function needs is loaded when it is called: `kforensics --help` imports this module too.


def diff(
    *paths: AnyPath, leader: int | None = None, protocol: str | None = None, jobs: int | None = None
) -> "DiffResult":
    """Compare the replicas of every partition below the paths.

    Args:
        paths: data directories, parents of several, partition directories, directories of broker logs.
        leader: the broker to take as leader of every partition it holds.
        protocol: `hw`, `kip-101`, `kip-279` or `kip-595`; from the evidence where not given.
        jobs: processes; one for each core where not given.

    Raises:
        EvidenceError: a path can't be used, or they are not of one cluster.
        ValueError: no such protocol.
    """
    from kforensics.commands.diff import DiffOptions, compare  # noqa: PLC0415
    from kforensics.evidence.discovery.inputs import find_inputs, why_not_compared  # noqa: PLC0415
    from kforensics.protocol.truncation import ProtocolName  # noqa: PLC0415

    options = DiffOptions(leader=leader, protocol=ProtocolName(protocol) if protocol else None)
    inputs = find_inputs(_paths(paths), with_server_logs=True, why_not=why_not_compared, one_cluster=True)
    return compare(inputs, options, jobs=jobs, keep_quiet=True)


def verify(*paths: AnyPath, level: str = "records", jobs: int | None = None) -> "Verification":
    """Check every file below the paths against its format and its neighbours.

    Args:
        paths: as for `diff`, or single files.
        level: `headers`, `crc` or `records`.
        jobs: processes; one for each core where not given.

    Raises:
        EvidenceError: a path can't be used.
        ValueError: no such level.
    """
    from kforensics.commands.processes import default_jobs  # noqa: PLC0415
    from kforensics.evidence.checks.consistency import verify_inputs  # noqa: PLC0415
    from kforensics.evidence.discovery.inputs import find_inputs, why_not_checked  # noqa: PLC0415
    from kforensics.formats.segment.walk import Level  # noqa: PLC0415

    return verify_inputs(
        find_inputs(_paths(paths), why_not=why_not_checked), level=Level(level), jobs=jobs or default_jobs()
    )


def explain(*paths: AnyPath, before: Sequence[AnyPath] = (), jobs: int | None = None) -> "Explanation":
    """Tell what was truncated, why, and which committed records are gone.

    Args:
        paths: data directories as they are now, and broker logs.
        before: earlier snapshots of the same nodes.
        jobs: processes; one for each core where not given.

    Raises:
        EvidenceError: a path can't be used, or they are not of one cluster.
    """
    from kforensics.commands.explain import ExplainOptions  # noqa: PLC0415
    from kforensics.commands.explain import explain as explain_evidence  # noqa: PLC0415
    from kforensics.commands.snapshots import gather_evidence  # noqa: PLC0415

    return explain_evidence(gather_evidence(_paths(paths), _paths(before)), ExplainOptions(), jobs=jobs)


def _paths(paths: Sequence[AnyPath]) -> list[Path]:
    return [Path(path) for path in paths]
