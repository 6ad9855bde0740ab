"""Read-only log forensics over Kafka broker data directories: what was lost, was it committed, and who still has it.

The functions here are the commands without a command line. They take paths and keywords, never write below an input, and each gives a
`kforensics.commands.result.Result`: `answer` with its `state` and `headline`, `findings` with the gravest first, `problems` for what could not be read,
`exit_code`, and in `body` the command's own value. Only paths that can't be used at all raise an `EvidenceError`.

    result = kforensics.diff("broker-1", "broker-2", "broker-3")
    for finding in result.findings:
        print(finding.code, finding.statement, finding.citations)
"""

from collections.abc import Iterable
from os import PathLike

TYPE_CHECKING = (
    False  # `typing` and `pathlib` take longer to load than all that the program needs until it takes an interrupt
)
if TYPE_CHECKING:
    from pathlib import Path

    from kforensics.commands.diff import DiffResult
    from kforensics.commands.dump import DumpContent
    from kforensics.commands.explanation import Explanation
    from kforensics.commands.ls import Listing
    from kforensics.commands.metadata import MetadataView
    from kforensics.commands.result import Result
    from kforensics.commands.seal import CheckedManifest, NewSeal
    from kforensics.commands.verify import VerifyResult

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "check_seal",
    "diff",
    "dump",
    "explain",
    "ls",
    "metadata",
    "seal",
    "verify",
]

AnyPath = str | PathLike[str]
AnyPaths = AnyPath | Iterable[AnyPath]


def __dir__() -> list[str]:
    """Return the names that are meant to be used."""
    return sorted(__all__)


# What each function needs is loaded when it is called: `kforensics --help` imports this module too.


def ls(*paths: AnyPaths) -> "Result[Listing]":
    """List what is below the paths: nodes, log directories, partitions with their offsets, files by kind.

    Args:
        paths: data directories, parents of several, partition directories or single files; one by one or in a list.

    Returns:
        The inventory in `body.inventory`; `body.files()` iterates over every file.

    Raises:
        EvidenceError: none of the paths can be used.
        TypeError: something given is no path.
        ValueError: no path at all.
    """
    from kforensics.commands.ls import LsRequest, run  # noqa: PLC0415 - `import kforensics` loads no command

    return run(LsRequest(paths=_given(paths)))


def dump(*paths: AnyPaths, records: bool = False) -> "Result[DumpContent]":
    """Decode files below the paths.

    Args:
        paths: as for `ls`.
        records: decode to records, not only to batches.

    Returns:
        Content that is read while it is iterated: `for file in result.body.files(): for item in file.items(): ...`.

    Raises:
        EvidenceError: none of the paths can be used.
        TypeError: something given is no path.
        ValueError: no path at all.
    """
    from kforensics.commands.dump import DumpRequest, run  # noqa: PLC0415 - `import kforensics` loads no command

    return run(DumpRequest(paths=_given(paths), records=records))


def diff(
    *paths: AnyPaths,
    leader: int | None = None,
    protocol: str | None = None,
    topics: Iterable[str] = (),
    partitions: Iterable[int] = (),
    jobs: int | None = None,
    depth: str = "content",
) -> "Result[DiffResult]":
    """Compare the replicas of every partition below the paths.

    Args:
        paths: data directories, parents of several, partition directories, directories of broker logs; one by one or in a list.
        leader: the broker to take as leader of every partition it holds.
        protocol: `hw`, `kip-101`, `kip-279` or `kip-595`; from the evidence where not given.
        topics: only these; all where none is named.
        partitions: only partitions of these numbers.
        jobs: processes; one for each core where not given.
        depth: `tails` for the ends of logs alone, `content` for every batch.

    Returns:
        A report for each partition in `body.reports`.

    Raises:
        EvidenceError: none of the paths can be used.
        TypeError: something given is no path.
        ValueError: no path at all, no such protocol, or no such depth.
    """
    from kforensics.commands.diff import DiffRequest, run  # noqa: PLC0415 - `import kforensics` loads no command
    from kforensics.units import Depth  # noqa: PLC0415 - `import kforensics` loads no command

    return run(
        DiffRequest(
            paths=_given(paths),
            leader=leader,
            protocol=protocol,
            topics=frozenset(topics),
            partitions=frozenset(partitions),
            jobs=jobs,
            depth=Depth(depth),
        )
    )


def verify(*paths: AnyPaths, level: str = "records", jobs: int | None = None) -> "Result[VerifyResult]":
    """Check every file below the paths against its format and its neighbours.

    Args:
        paths: as for `ls`.
        level: `headers`, `crc` or `records`.
        jobs: processes; one for each core where not given.

    Returns:
        Every file by input and path in `body.files`.

    Raises:
        EvidenceError: none of the paths can be used.
        TypeError: something given is no path.
        ValueError: no path at all, or no such level.
    """
    from kforensics.commands.verify import VerifyRequest, run  # noqa: PLC0415 - `import kforensics` loads no command

    return run(VerifyRequest(paths=_given(paths), level=level, jobs=jobs))


def explain(
    *paths: AnyPaths,
    before: AnyPaths = (),
    topics: Iterable[str] = (),
    partitions: Iterable[int] = (),
    jobs: int | None = None,
    depth: str = "content",
) -> "Result[Explanation]":
    """Say what was truncated, why, and which committed records were lost.

    Args:
        paths: data directories as they are now, and broker logs; one by one or in a list.
        before: earlier snapshots of the same nodes.
        topics: only these; all where none is named.
        partitions: only partitions of these numbers.
        jobs: processes; one for each core where not given.
        depth: `tails` for the ends of logs alone, `content` for every batch.

    Returns:
        `timeline`, `incidents`, `conclusion` and what they rest on in `body`.

    Raises:
        EvidenceError: none of the paths can be used.
        TypeError: something given is no path.
        ValueError: no path at all, or no such depth.
    """
    from kforensics.commands.explain import ExplainRequest, run  # noqa: PLC0415 - `import kforensics` loads no command
    from kforensics.units import Depth  # noqa: PLC0415 - `import kforensics` loads no command

    return run(
        ExplainRequest(
            paths=_given(paths),
            before=tuple(_paths((before,))),
            topics=frozenset(topics),
            partitions=frozenset(partitions),
            jobs=jobs,
            depth=Depth(depth),
        )
    )


def metadata(
    *paths: AnyPaths,
    topic: str | None = None,
    partition: int | None = None,
    broker: int | None = None,
    at: int | None = None,
) -> "Result[MetadataView]":
    """Give the history of partitions, topics and brokers by the KRaft metadata log.

    Args:
        paths: as for `ls`.
        topic: only of this topic.
        partition: with a topic, only of this partition.
        broker: only of this broker.
        at: the state at this offset of the metadata log; at its end where not given.

    Returns:
        `body.events` in order, `body.state`, and how the logs compare in `body.comparison`.

    Raises:
        EvidenceError: none of the paths can be used, or no metadata log is below them.
        TypeError: something given is no path.
        UsageError: the log does not know what was asked for.
        ValueError: no path at all.
    """
    from kforensics.commands.metadata import MetadataRequest, run  # noqa: PLC0415 - `import kforensics` loads no command

    return run(MetadataRequest(paths=_given(paths), topic=topic, partition=partition, broker=broker, at=at))


def seal(
    *paths: AnyPaths, case_id: str | None = None, operator: str | None = None, jobs: int | None = None
) -> "Result[NewSeal]":
    """Seal everything below the paths.

    Args:
        paths: directories or files; one by one or in a list.
        case_id: written into the manifest.
        operator: written into the manifest.
        jobs: processes; one for each core where not given.

    Returns:
        The manifest in `body.pieces`, which is made while it is iterated, once; `body.sha256` afterwards.

    Raises:
        EvidenceError: a path can't be looked at.
        TypeError: something given is no path.
        ValueError: no path at all.
    """
    from kforensics.commands.seal import SealRequest, run  # noqa: PLC0415 - `import kforensics` loads no command

    return run(SealRequest(paths=_given(paths), case_id=case_id, operator=operator, jobs=jobs))


def check_seal(manifest: AnyPath, *paths: AnyPaths, jobs: int | None = None) -> "Result[CheckedManifest]":
    """Compare what is there now with a manifest.

    Args:
        manifest: that `seal` made, in a file.
        paths: those that were sealed, in the same order; none to look where they were sealed.
        jobs: processes; one for each core where not given.

    Returns:
        The differences in `body.differences`, which can be iterated once.

    Raises:
        EvidenceError: the manifest or a path can't be read.
        TypeError: something given is no path.
        UsageError: other paths than those that were sealed.
    """
    from kforensics.commands.seal import SealCheckRequest, check  # noqa: PLC0415 - `import kforensics` loads no command

    return check(SealCheckRequest(manifest=_paths((manifest,))[0], paths=tuple(_paths(paths)), jobs=jobs))


def _given(paths: Iterable[AnyPaths]) -> "tuple[Path, ...]":
    found = _paths(paths)
    if not found:
        raise ValueError("no path is given")
    return tuple(found)


def _paths(paths: Iterable[AnyPaths]) -> "list[Path]":
    """Paths one by one, whether each was given by itself or in a list."""
    from pathlib import Path  # noqa: PLC0415 - as above, with `typing`

    found: list[Path] = []
    for given in paths:
        several = (given,) if isinstance(given, (str, PathLike)) or not isinstance(given, Iterable) else given
        for one in several:
            if not isinstance(one, (str, PathLike)):
                raise TypeError(f"a path is a str or os.PathLike, not {type(one).__name__}")
            found.append(Path(one))
    return found
