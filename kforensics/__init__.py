"""Read-only log forensics over Kafka broker data directories: what was lost, was it committed, and who still has it.

The functions here are the commands without a command line. They take paths, never write, and give immutable values; what can't be read
stands in `problems`, and only paths that can't be used at all raise an `EvidenceError`.

    result = kforensics.diff("broker-1", "broker-2", "broker-3")
    for finding in result.findings:
        print(finding.code, finding.statement, finding.citations)
"""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kforensics.commands.diff import DiffResult
    from kforensics.commands.explain import Explanation
    from kforensics.commands.verify import VerifyResult

__version__ = "0.1.0"
__all__ = ["__version__", "diff", "explain", "verify"]

AnyPath = str | PathLike[str]
AnyPaths = AnyPath | Iterable[AnyPath]


def __dir__() -> list[str]:
    """The names that are meant to be used."""
    return sorted(__all__)


# What each function needs is loaded when it is called: `kforensics --help` imports this module too.


def diff(
    *paths: AnyPaths, leader: int | None = None, protocol: str | None = None, jobs: int | None = None
) -> "DiffResult":
    """Compare the replicas of every partition below the paths.

    Args:
        paths: data directories, parents of several, partition directories, directories of broker logs; one by one or in a list.
        leader: the broker to take as leader of every partition it holds.
        protocol: `hw`, `kip-101`, `kip-279` or `kip-595`; from the evidence where not given.
        jobs: processes; one for each core where not given.

    Returns:
        `reports` by partition, `findings` with the gravest first, `problems`.

    Raises:
        EvidenceError: none of the paths can be used.
        TypeError: something given is no path.
        ValueError: no path at all, or no such protocol.
    """
    from kforensics.commands.diff import DiffOptions, compare  # noqa: PLC0415
    from kforensics.evidence.discovery.inputs import find_inputs  # noqa: PLC0415
    from kforensics.protocol.truncation import ProtocolName  # noqa: PLC0415

    options = DiffOptions(leader=leader, protocol=ProtocolName(protocol) if protocol else None)
    return compare(find_inputs(_given(paths), with_server_logs=True), options, jobs=jobs, keep_quiet=True)


def verify(*paths: AnyPaths, level: str = "records", jobs: int | None = None) -> "VerifyResult":
    """Check every file below the paths against its format and its neighbours.

    Args:
        paths: as for `diff`, or single files.
        level: `headers`, `crc` or `records`.
        jobs: processes; one for each core where not given.

    Returns:
        `files` by input and path, `findings` with the gravest first, `problems`.

    Raises:
        EvidenceError: none of the paths can be used.
        TypeError: something given is no path.
        ValueError: no path at all, or no such level.
    """
    from kforensics.commands.verify import verify_evidence  # noqa: PLC0415
    from kforensics.evidence.discovery.inputs import find_inputs  # noqa: PLC0415
    from kforensics.formats.segment.walk import Level  # noqa: PLC0415

    return verify_evidence(find_inputs(_given(paths)), level=Level(level), jobs=jobs)


def explain(*paths: AnyPaths, before: AnyPaths = (), jobs: int | None = None) -> "Explanation":
    """Say what was truncated, why, and which committed records were lost.

    Args:
        paths: data directories as they are now, and broker logs; one by one or in a list.
        before: earlier snapshots of the same nodes.
        jobs: processes; one for each core where not given.

    Returns:
        `timeline`, `conclusion`, `findings`, `problems` and what they rest on.

    Raises:
        EvidenceError: none of the paths can be used.
        TypeError: something given is no path.
        ValueError: no path at all.
    """
    from kforensics.commands.explain import ExplainOptions  # noqa: PLC0415
    from kforensics.commands.explain import explain as explain_evidence  # noqa: PLC0415
    from kforensics.commands.snapshots import gather_evidence  # noqa: PLC0415

    return explain_evidence(gather_evidence(_given(paths), _paths((before,))), ExplainOptions(), jobs=jobs)


def _given(paths: Iterable[AnyPaths]) -> list[Path]:
    found = _paths(paths)
    if not found:
        raise ValueError("no path is given")
    return found


def _paths(paths: Iterable[AnyPaths]) -> list[Path]:
    """Paths one by one, whether each was given by itself or in a list."""
    found: list[Path] = []
    for given in paths:
        several = (given,) if isinstance(given, (str, PathLike)) or not isinstance(given, Iterable) else given
        for one in several:
            if not isinstance(one, (str, PathLike)):
                raise TypeError(f"a path is a str or os.PathLike, not {type(one).__name__}")
            found.append(Path(one))
    return found
