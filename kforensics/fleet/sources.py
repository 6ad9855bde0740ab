"""The sources of an audit: directories, captures, globs of them, and inventories of nodes; the nodes that are found there; and who is assigned what by a file of the inventory."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kforensics.commands.outside import check_outside
from kforensics.damage import Absent, Span
from kforensics.errors import EvidenceError, EvidenceNotFound, EvidenceUnreadable, FormatError, refuse
from kforensics.evidence.discovery.inputs import (
    WHOLE_INPUT,
    FoundInput,
    find_inputs,
    problem_words,
    why_not_compared,
)
from kforensics.evidence.model import Input, Problem
from kforensics.fleet.file_systems import redacted
from kforensics.fleet.storage import Options, StoragePath, expand_glob, parse_location
from kforensics.source.mapped import open_named
from kforensics.source.walk import Listings, PackedNames
from kforensics.units import TopicPartition

INVENTORY_SUFFIXES = frozenset({".yaml", ".yml", ".csv", ".parquet"})
INVENTORY_LIMIT = 64 << 20
"""Bytes of an inventory that are read."""

Assignments = Mapping[TopicPartition, tuple[int, ...]]
"""The brokers that each partition is assigned to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One place to look at, and what the inventory says of it."""

    location: Path
    node_id: int | None = None
    rack: str | None = None
    cluster: str | None = None
    has_assignments: bool = False
    """It is a file that says which brokers partitions are assigned to."""
    is_expected: bool = True
    """A node that the inventory expects no longer is gone for good: it is not looked for, and what only it showed is over."""


def read_sources(given: Sequence[str], storage: Options = MappingProxyType({})) -> tuple[Source, ...]:
    """Resolve the sources of a command line to places, in their order."""
    return tuple(one for text in given for one in _read_source(text, storage))


def _read_source(text: str, storage: Options) -> Iterator[Source]:
    location = parse_location(text, storage)
    if location.suffix.lower() in INVENTORY_SUFFIXES and (isinstance(location, StoragePath) or not location.is_dir()):
        yield from _read_inventory(location, storage)
        return
    places = expand_glob(location)
    if not places:
        raise EvidenceNotFound(
            redacted(text), "nothing matches this pattern", ("a mistyped path", "the volume is not mounted")
        )
    for place in places:
        yield Source(location=place)


def _read_inventory(location: Path, storage: Options = MappingProxyType({})) -> tuple[Source, ...]:
    """Return the nodes of an inventory: rows of `location`, and where known `node`, `rack`, `cluster` and `expected`; or of `assignments`, a file."""
    with open_named(location) as file:
        data = file.read_all(INVENTORY_LIMIT)
    try:
        rows = list(_rows(location.suffix.lower(), data))
    except (ValueError, TypeError, KeyError, UnicodeDecodeError) as error:
        raise EvidenceUnreadable(str(location), f"not an inventory of nodes: {error}") from error
    return tuple(source for number, row in enumerate(rows, 1) for source in _sources_of(location, number, row, storage))


def _rows(suffix: str, data: bytes) -> Iterable[Any]:
    if suffix == ".csv":
        return csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    if suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows: list[Any] = pq.read_table(pa.BufferReader(data)).to_pylist()
        return rows
    import yaml

    try:
        return _yaml_rows(yaml.safe_load(data))
    except yaml.YAMLError as error:
        raise ValueError(str(error).replace("\n", " ")) from error


def _yaml_rows(document: Any) -> Iterator[Any]:
    if isinstance(document, Mapping) and "nodes" in document:
        named = document.get("assignments") or []
        for one in named if isinstance(named, list) else [named]:
            yield one if isinstance(one, Mapping) else {"assignments": one}
        document = document["nodes"]
    if isinstance(document, Mapping):
        for node, value in document.items():
            if isinstance(value, Mapping):
                yield {"node": node, **value}
            else:
                for location in value if isinstance(value, list) else [value]:
                    yield {"node": node, "location": location}
        return
    if not isinstance(document, list):
        raise TypeError("expected a list of nodes")
    yield from document


def _sources_of(inventory: Path, number: int, row: Any, storage: Options) -> Iterator[Source]:
    if isinstance(row, str):
        row = {"location": row}
    if isinstance(row, Mapping) and row.get("assignments") and not row.get("location"):
        place = _place_of(inventory, str(row["assignments"]), storage)
        yield Source(location=place, cluster=_text(row.get("cluster")), has_assignments=True)
        return
    is_expected = _is_expected(row) if isinstance(row, Mapping) else True
    if not isinstance(row, Mapping) or (is_expected and not row.get("location")):
        raise _refused(f"a location in entry {number} of {inventory}")
    node = row.get("node")
    try:
        node_id = None if node in {None, ""} else int(str(node))
    except ValueError as error:
        raise _refused(f"a node id as number in entry {number} of {inventory}", repr(str(node))) from error
    if not is_expected:
        if node_id is None:
            raise _refused(f"the node that entry {number} of {inventory} expects no longer")
        yield Source(location=inventory, node_id=node_id, cluster=_text(row.get("cluster")), is_expected=False)
        return
    locations = row["location"] if isinstance(row["location"], list) else [row["location"]]
    for text in locations:
        place = _place_of(inventory, str(text), storage)
        for one in expand_glob(place) or [place]:
            yield Source(
                location=one,
                node_id=node_id,
                rack=_text(row.get("rack")),
                cluster=_text(row.get("cluster")),
            )


def _refused(expected: str, found: str = "none") -> FormatError:
    return FormatError(Span(0, 0), expected=expected, found=found)


def _is_expected(row: Mapping[str, Any]) -> bool:
    """Return what the column `expected` says: true where it is empty."""
    word = str(row.get("expected") if row.get("expected") is not None else "").strip().lower()
    if word not in {"", "true", "yes", "1", "false", "no", "0"}:
        raise _refused("true or false in the column `expected` of an inventory", repr(word))
    return word not in {"false", "no", "0"}


def _place_of(inventory: Path, text: str, storage: Options) -> Path:
    """Return a place that an inventory names; a relative path is one beside it."""
    is_beside = "://" not in text and not isinstance(inventory, StoragePath)
    return inventory.parent / text if is_beside else parse_location(text, storage)


def _text(value: Any) -> str | None:
    return None if value in {None, ""} else str(value)


def check_output(out: Path, sources: Sequence[Source]) -> None:
    """Refuse an output directory that would lie inside the evidence."""
    check_outside(out, [source.location for source in sources])


# ---------------------------------------------------------------- the nodes that are found there

LISTERS = 32
"""The number of sources that are read at the same time: most of the time is spent waiting for storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInput:
    """One node or loose directory."""

    found: FoundInput
    sources: tuple[str, ...]
    """A key for each log directory, the same in every audit of the same place."""
    rack: str | None = None
    partition_count: int = 0
    """Live partition directories, as far as they were counted on the way."""


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
    retired: tuple[tuple[str | None, int], ...] = ()
    """Nodes that the inventory expects no longer, each with its cluster where it names one."""


def find_sources(sources: Sequence[Source], *, keep_going: bool = False) -> FoundSources:
    """Return the inputs that sources name, in their order."""
    assignments: dict[str | None, Assignments] = {}
    for one in sources:
        if one.has_assignments:
            assignments[one.cluster] = {**assignments.get(one.cluster, {}), **read_assignments(one.location)}
    retired = tuple((one.cluster, one.node_id) for one in sources if not one.is_expected and one.node_id is not None)
    sources = [one for one in sources if not one.has_assignments and one.is_expected]
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
            inputs.append(replace(planned, rack=source.rack, found=replace(planned.found, described=described)))
    return FoundSources(
        inputs=tuple(inputs),
        problems=tuple(problems),
        disagreements=tuple(disagreements),
        assignments=assignments,
        retired=retired,
    )


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


# ---------------------------------------------------------------- which brokers each partition is assigned to

ASSIGNMENTS_LIMIT = 1 << 30
"""Bytes of a file of assignments that are read."""

_EXPECTED = "expected what kafka-topics --describe prints, a reassignment in JSON, or znodes below /brokers/topics, each with its path"

_DESCRIBED = re.compile(
    r"Topic:\s*(\S+)\s+(?:TopicId:\s*\S+\s+)?Partition:\s*(\d{1,9})\s[^\n]*?Replicas:[ \t]*([\d,]+)"
)
_ZNODE = re.compile(r"/brokers/topics/([^/\s\"']+)[\"']?[\s:=]*(?=[{\"])")
_OBJECT = re.compile(r"^\s*(?=\{)", re.MULTILINE)


def read_assignments(location: Path) -> Assignments:
    """Return the assignment of each partition in a file, where no metadata log says it, as in a cluster with ZooKeeper.

    Three kinds of text are understood: what `kafka-topics --describe` prints; JSON as `kafka-reassign-partitions` takes and prints it; and znodes below
    `/brokers/topics`, as paths with their JSON behind them or as one JSON object by path.
    """
    with open_named(location) as file:
        text = file.read_all(ASSIGNMENTS_LIMIT).decode("utf-8", "replace")
    out: dict[TopicPartition, tuple[int, ...]] = {}
    try:
        for partition, brokers in _assigned(text):
            if not brokers or out.setdefault(partition, brokers) != brokers:
                words = f"brokers {', '.join(map(str, brokers)) or 'none'}, and {', '.join(map(str, out.get(partition, ())))}"
                raise EvidenceUnreadable(str(location), f"{partition} is assigned to {words}")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise EvidenceUnreadable(str(location), f"it is not understood: {_EXPECTED}") from error
    if not out:
        raise EvidenceUnreadable(str(location), f"no partition is assigned here: {_EXPECTED}")
    return out


def _assigned(text: str) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
    decoder = json.JSONDecoder()
    for topic, number, brokers in _DESCRIBED.findall(text):
        yield TopicPartition(topic, int(number)), tuple(int(one) for one in brokers.split(",") if one)
    znodes = list(_ZNODE.finditer(text))
    for found in znodes:
        content = decoder.raw_decode(text, found.end())[0]
        yield from _of_znode(found[1], json.loads(content) if isinstance(content, str) else content)
    first = None if znodes else _OBJECT.search(text)
    if first is not None:
        # Of what --generate prints the first is the assignment of now, the second a proposal.
        document = decoder.raw_decode(text, first.end())[0]
        for row in document["partitions"]:
            yield TopicPartition(str(row["topic"]), int(row["partition"])), tuple(map(int, row["replicas"]))


def _of_znode(topic: str, content: Any) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
    for number, brokers in content["partitions"].items():
        yield TopicPartition(topic, int(number)), tuple(map(int, brokers))
