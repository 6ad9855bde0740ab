"""`fleet scan`: the evidence of brokers' own disks as captures, in a directory that an audit takes, without Spark."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kforensics.ask.fleet import FleetAsk
from kforensics.case.processes import Progress, paced
from kforensics.commands.capture import CaptureReport
from kforensics.commands.capture import run as capture
from kforensics.commands.outside import check_outside
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, find_inputs, why_not_compared
from kforensics.evidence.model import Problem
from kforensics.findings.fleet_summary import ScanResult
from kforensics.fleet.storage import StoragePath
from kforensics.fleet.tables import Tables


def scan_nodes(request: FleetAsk, place: Path, progress: Progress | None = None) -> ScanResult:
    """Take a capture of each node; what did not change since the one that is there is not read again."""
    check_outside(place, request.paths)
    nodes, loose = _nodes(request)
    taken = [_taken(request, paths, place, name, progress) for name, paths in sorted(nodes.items())]
    problems: list[Problem] = []
    first = 0
    for one in taken:
        problems += [replace(problem, input=problem.input + first) for problem in one.problems]
        first += len(one.inputs)
    words = "nothing says of which node it is: name it with the directories of its node alone"
    problems += [Problem(input=0, path=WHOLE_INPUT, message=f"{path}: {words}") for path in loose]
    written = [one.body.capture for one in taken]
    known = [one for one in written if not isinstance(one, Absent)]
    return ScanResult(
        inputs=tuple(described for one in taken for described in one.inputs),
        findings=(),
        problems=tuple(problems),
        replicas=sum(one.replicas for one in known),
        segments=sum(one.segments for one in known),
        read_bytes=sum(one.read_bytes for one in known),
        reused_segments=sum(one.reused_segments for one in known),
        evidence=str(place),
        evidence_bytes=sum(one.bytes for one in known),
    )


def _nodes(request: FleetAsk) -> tuple[dict[str, tuple[Path, ...]], tuple[Path, ...]]:
    """Return the paths of each node by the name of its capture, and those of which no node is known beside several."""
    found = find_inputs(request.paths, with_server_logs=True, why_not=why_not_compared, keep_going=request.keep_going)
    nodes: dict[str, tuple[Path, ...]] = {}
    loose: list[Path] = []
    for one in found.found:
        number = one.described.broker_id
        if isinstance(number, Absent):
            loose.append(one.root)
        else:
            nodes[f"node-{number}.kfc"] = (*nodes.get(f"node-{number}.kfc", ()), one.root)
    if len(nodes) < 2:  # what is of no node is of the only one
        return {next(iter(nodes), "node.kfc"): request.paths}, ()
    return nodes, tuple(loose)


def _taken(
    request: FleetAsk, paths: Sequence[Path], place: Path, name: str, progress: Progress | None
) -> Result[CaptureReport]:
    def taken(out: Path, earlier: Path) -> Result[CaptureReport]:
        asked = replace(
            request,
            paths=tuple(paths),
            out=out,
            earlier_captures=(earlier,) if earlier.exists() else (),
            all_batches=not request.digests_only,
        )
        return capture(paced(asked), progress, lowest_priority=not request.normal_priority)

    if isinstance(place, StoragePath):
        with TemporaryDirectory(prefix="kforensics-scan-") as scratch:
            local = Path(scratch, name)
            result = taken(local, Path(scratch, "none"))
            tables = Tables(place)
            tables.create(["."])
            with tables.stream(name) as target, local.open("rb") as source:
                shutil.copyfileobj(source, target)
        return result
    place.mkdir(parents=True, exist_ok=True)
    final, partial = place / name, place / f".{name}"
    partial.unlink(missing_ok=True)
    result = taken(partial, final)
    partial.replace(final)
    return result
