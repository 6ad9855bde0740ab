"""The nodes of an audit: found in data directories, or in what `fleet scan` extracted from them."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, EvidenceUnreadable, refuse
from kforensics.evidence.discovery.inputs import (
    WHOLE_INPUT,
    FoundInput,
    find_inputs,
    problem_words,
    why_not_compared,
)
from kforensics.evidence.discovery.log_dirs import FoundLogDir
from kforensics.evidence.model import Input, Problem
from kforensics.fleet.assignments import Assignments, read_assignments
from kforensics.fleet.report_rows import problem_of
from kforensics.fleet.sources import Source
from kforensics.fleet.tables import SCAN_MANIFEST, Tables
from kforensics.formats.checkpoint.properties import MetaProperties
from kforensics.source.discover import Shape
from kforensics.source.store import ForeignPath
from kforensics.source.walk import Listings, PackedNames

LISTERS = 32
"""The number of sources that are read at the same time: most of the time is spent waiting for storage."""

SCAN_SCHEMA = "kforensics/fleet-evidence/1"
COPIES = "copies"
"""The folder in the evidence of a scan with copies of the metadata logs and log files, which show leaders and in-sync replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInput:
    """One node or loose directory: where it is, and where its evidence comes from."""

    found: FoundInput
    sources: tuple[str, ...]
    """A key for each log directory, the same in every audit of the same place."""
    evidence: Path | None = None
    """The directory of what `fleet scan` extracted, if the bytes are not to be read here."""
    rack: str | None = None
    partition_count: int = 0
    """Live partition directories, as far as they were counted on the way."""
    problems: tuple[Problem, ...] = ()
    """The problems of the scan that extracted the evidence; their input is not yet this one's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """What the inventory gives for an input, and its own file says otherwise, both in words."""

    input: int
    given: str
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSources:
    """The inputs of an audit in their order."""

    inputs: tuple[PlannedInput, ...]
    problems: tuple[Problem, ...]
    disagreements: tuple[Disagreement, ...] = field(default=())
    assignments: Mapping[str | None, Assignments] = field(default_factory=dict)
    """By cluster, the brokers that partitions are assigned to, by the inventory; of a cluster that is not named where there is one only."""


def find_sources(sources: Sequence[Source], *, keep_going: bool = False) -> FoundSources:
    """Return the inputs that sources name, in their order.

    Args:
        sources: where to look.
        keep_going: a source that can't be used is a problem in the report, and the others are read.

    Raises:
        EvidenceError: a source can't be used, or with `keep_going` none can.
    """
    assignments = _assignments([one for one in sources if one.has_assignments])
    sources = [one for one in sources if not one.has_assignments]
    with ThreadPoolExecutor(min(LISTERS, max(len(sources), 1))) as pool:
        looks = list(pool.map(_look, sources))
    inputs: list[PlannedInput] = []
    problems: list[Problem] = []
    disagreements: list[Disagreement] = []
    seen: set[tuple[Path, tuple[str, ...]]] = set()
    errors = [look for look in looks if isinstance(look, EvidenceError)]
    refuse(errors, named=len(looks), keep_going=keep_going and len(errors) < len(looks))
    for source, look in zip(sources, looks, strict=True):
        if isinstance(look, EvidenceError):
            problems.append(Problem(input=len(inputs), path=WHOLE_INPUT, message=problem_words(look)))
            described = Input(
                path=str(source.location),
                kind="unreadable",
                broker_id=Absent.UNKNOWN if source.node_id is None else source.node_id,
                cluster_id=source.cluster or Absent.UNKNOWN,
            )
            found = FoundInput(described=described, listings=Listings(source.location), shape=Absent.UNREADABLE)
            inputs.append(PlannedInput(found=found, sources=(), rack=source.rack))
            continue
        for planned in look:
            key = (planned.found.root, planned.found.log_dir_paths)
            if key in seen:
                continue
            seen.add(key)
            described, others = _identified(planned.found, source, len(inputs))
            disagreements += others
            problems += [replace(one, input=len(inputs)) for one in planned.problems]
            inputs.append(replace(planned, rack=source.rack, found=replace(planned.found, described=described)))
    return FoundSources(
        inputs=tuple(inputs), problems=tuple(problems), disagreements=tuple(disagreements), assignments=assignments
    )


def _assignments(sources: Sequence[Source]) -> dict[str | None, Assignments]:
    out: dict[str | None, Assignments] = {}
    for one in sources:
        out[one.cluster] = {**out.get(one.cluster, {}), **read_assignments(one.location)}
    return out


def _identified(found: FoundInput, source: Source, number: int) -> tuple[Input, list[Disagreement]]:
    """Return an input with what the inventory says of it and itself does not, and where they disagree."""
    described = found.described
    disagreements = []
    for name, what, given in (("broker_id", "node", source.node_id), ("cluster_id", "cluster", source.cluster)):
        written = getattr(described, name)
        if given is None or given == written:
            continue
        if isinstance(written, Absent):
            own: dict[str, Any] = {name: given}
            described = replace(described, **own)
        elif found.log_dirs:
            disagreements.append(Disagreement(input=number, given=f"{what} {given}", written=str(written)))
    return described, disagreements


def _look(source: Source) -> "list[PlannedInput] | EvidenceError":
    try:
        if source.is_evidence:
            return _read_scan_inputs(source.location)
        inputs = find_inputs([source.location], with_server_logs=True, why_not=why_not_compared)
    except EvidenceError as error:
        return error
    return [
        PlannedInput(
            partition_count=sum(len(one.partitions) for one in found.log_dirs),
            found=light(found),
            sources=tuple(_source_key(found, path) for path in found.log_dir_paths or ("",)),
        )
        for found in inputs.found
    ]


def light(found: FoundInput) -> FoundInput:
    """Return the input with the name of one partition of each log directory, to show that there are some; all are listed where they lie."""
    return replace(
        found,
        log_dirs=tuple(one._replace(partitions=PackedNames.of(sorted(one.partitions)[:1])) for one in found.log_dirs),
    )


def _source_key(found: FoundInput, log_dir: str) -> str:
    """Return a name for a log directory that is the same in every audit, and safe as a part of a file name."""
    return hashlib.sha256(f"{found.root}\0{log_dir}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _read_scan_inputs(location: Path) -> list[PlannedInput]:
    """Return the inputs whose evidence `fleet scan` wrote to a directory."""
    tables = Tables(location)
    inputs = _inputs_of_manifest(location, tables.read_manifest(SCAN_MANIFEST))
    problems = [problem_of(row) for row in tables.rows("problems")]
    return [
        replace(one, problems=tuple(problem for problem in problems if problem.input == number))
        for number, one in enumerate(inputs)
    ]


# ---------------------------------------------------------------- what a scan extracted


Named = tuple[str, int, str, int, int]
"""A partition that a checkpoint names and that has no directory beside it: topic, partition, which checkpoint, offset, line."""


def scan_manifest(
    planned: Sequence[PlannedInput], *, is_complete: bool, named: Mapping[str, Sequence[Named]] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the contents of `evidence.json`.

    Args:
        is_complete: they were read to the end.
        named: by the key of each log directory, the partitions that its checkpoints name and that have no directory in it.
    """
    return {
        "schema": SCAN_SCHEMA,
        "is_complete": is_complete,
        "named": {source: [list(one) for one in found] for source, found in named.items() if found},
        "inputs": [
            {
                "path": one.found.described.path,
                "kind": one.found.described.kind,
                "node_id": _plain(one.found.described.broker_id),
                "cluster_id": _plain(one.found.described.cluster_id),
                "kafka_version_hint": _plain(one.found.described.kafka_version_hint),
                "log_dirs": [
                    {
                        "path": log_dir.path,
                        "clean_shutdown": log_dir.clean_shutdown,
                        "is_metadata_dir": log_dir.is_metadata_dir,
                        "has_broker_files": log_dir.has_broker_files,
                        "broker_epoch": _plain(log_dir.broker_epoch),
                        "meta": _meta_row(log_dir.meta),
                        "partitions": sorted(log_dir.partitions)[:1],
                        "version_floor": [list(log_dir.version_floor[0]), log_dir.version_floor[1]],
                    }
                    for log_dir in one.found.log_dirs
                ],
                "sources": list(one.sources),
                "shape": _plain(one.found.shape),
                "copies": copied_root(number, one.found.described.path),
            }
            for number, one in enumerate(planned)
        ],
    }


def copied_root(number: int, path: str) -> str:
    """Return the folder of an input's copies in the evidence; it has the name of the input, which distinguishes the nodes of log files.

    Args:
        number: of the input, from 0.
    """
    return f"{COPIES}/{number}/{'/'.join(Path(path).resolve().parts[-2:]).lstrip('/')}"


def _inputs_of_manifest(location: Path, manifest: Mapping[str, Any] | None) -> list[PlannedInput]:
    """Return the inputs of a manifest."""
    if manifest is None or manifest.get("schema") != SCAN_SCHEMA:
        raise EvidenceUnreadable(str(location), "no evidence that this version of kforensics extracted")
    if not manifest.get("is_complete"):
        causes = ("it was interrupted: the same `fleet scan` continues where it stopped",)
        raise EvidenceUnreadable(str(location), "the scan that extracted this evidence did not finish", causes)
    try:
        return [_planned(location, one) for one in manifest["inputs"]]
    except (KeyError, TypeError, ValueError) as error:
        raise EvidenceUnreadable(str(location), f"its manifest is damaged: {error}") from error


def _planned(location: Path, one: Mapping[str, Any]) -> PlannedInput:
    log_dirs = tuple(
        FoundLogDir(
            path=str(log_dir["path"]),
            meta=_meta_of(log_dir.get("meta")),
            clean_shutdown=bool(log_dir["clean_shutdown"]),
            broker_epoch=_value(log_dir.get("broker_epoch", _plain(Absent.UNKNOWN))),
            # Evidence of earlier versions does not say whether a disk is empty.
            partitions=PackedNames.of(map(str, log_dir.get("partitions", ["?"]))),
            is_metadata_dir=bool(log_dir["is_metadata_dir"]),
            has_broker_files=bool(log_dir.get("has_broker_files", True)),
            quorum=Absent.UNKNOWN,
            voters=Absent.UNKNOWN,
            version_floor=_floor_of(log_dir.get("version_floor", [[], ""])),
        )
        for log_dir in one["log_dirs"]
    )
    found = FoundInput(
        described=Input(
            path=str(one["path"]),
            kind=str(one["kind"]),
            broker_id=_value(one["node_id"]),
            cluster_id=_value(one["cluster_id"]),
            kafka_version_hint=_value(one["kafka_version_hint"]),
        ),
        listings=Listings(_below_copies(location, str(one["copies"]))),
        shape=_value(one["shape"]) if isinstance(one["shape"], dict) else Shape(one["shape"]),
        log_dirs=log_dirs,
        log_dir_paths=tuple(one.path for one in log_dirs),
    )
    return PlannedInput(found=found, sources=tuple(map(str, one["sources"])), evidence=location)


def _below_copies(location: Path, name: str) -> Path:
    """Return the place of a copy by its name in a manifest, which comes from elsewhere and must not lead out of the evidence."""
    first, *rest = name.split("/")
    if first != COPIES or ".." in rest:
        raise ValueError(f"copies in {name}")
    real = location if isinstance(location, ForeignPath) else Path(os.path.realpath(location))
    return real / name


_IDENTITY = ("version", "node_id", "cluster_id", "directory_id")
"""What the manifest has of `meta.properties`."""


def _meta_row(meta: MetaProperties | Absent) -> Any:
    return _plain(meta) if isinstance(meta, Absent) else {name: _plain(getattr(meta, name)) for name in _IDENTITY}


def _meta_of(row: Any) -> MetaProperties | Absent:
    if row is None or "absent" in row:
        return Absent.UNKNOWN if row is None else Absent(row["absent"])
    return MetaProperties(**{name: _value(row[name]) for name in _IDENTITY})


def _floor_of(row: Sequence[Any]) -> tuple[tuple[int, ...], str]:
    version, sign = row
    return tuple(map(int, version)), str(sign)


def _plain(value: Any) -> Any:
    return {"absent": value.value} if isinstance(value, Absent) else value


def _value(plain: Any) -> Any:
    return Absent(plain["absent"]) if isinstance(plain, dict) else plain
