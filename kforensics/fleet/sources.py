"""The sources of an audit: directories, globs, inventories of nodes, and evidence that brokers extracted themselves."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kforensics.commands.outside import check_outside
from kforensics.damage import Span
from kforensics.errors import EvidenceError, EvidenceNotFound, EvidenceUnreadable, FormatError
from kforensics.fleet.secrets import redacted
from kforensics.fleet.storage import Options, StoragePath, expand_glob, parse_location
from kforensics.source.mapped import open_named

INVENTORY_SUFFIXES = frozenset({".yaml", ".yml", ".csv", ".parquet"})
INVENTORY_LIMIT = 64 << 20
"""Bytes of an inventory that are read."""

EVIDENCE_MARKER = "evidence.json"
"""The file that marks a directory as written by `fleet scan`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One place to look at, and what the inventory says of it."""

    location: Path
    is_evidence: bool = False
    node_id: int | None = None
    rack: str | None = None
    cluster: str | None = None
    has_assignments: bool = False
    """It is a file that says which brokers partitions are assigned to."""


def read_sources(given: Sequence[str], storage: Options = MappingProxyType({})) -> tuple[Source, ...]:
    """Resolve the sources of a command line to places, in their order.

    Args:
        storage: options of storage that is not of this machine.

    Raises:
        EvidenceError: an inventory can't be read, or a pattern matches nothing.
        FormatError: an inventory is no list of nodes and locations.
    """
    return tuple(one for text in given for one in _read_source(text, storage))


def _read_source(text: str, storage: Options) -> Iterator[Source]:
    location = parse_location(text, storage)
    if location.suffix.lower() in INVENTORY_SUFFIXES and not _is_directory(location):
        yield from _read_inventory(location, storage)
        return
    places = expand_glob(location)
    if not places:
        raise EvidenceNotFound(
            redacted(text), "nothing matches this pattern", ("a mistyped path", "the volume is not mounted")
        )
    for place in places:
        yield Source(location=place, is_evidence=_is_evidence(place))


def _is_directory(location: Path) -> bool:
    if isinstance(location, StoragePath):
        return False
    return location.is_dir()


def _is_evidence(location: Path) -> bool:
    try:
        return (location / EVIDENCE_MARKER).exists()
    except (OSError, EvidenceError):
        return False


def _read_inventory(location: Path, storage: Options = MappingProxyType({})) -> tuple[Source, ...]:
    """Return the nodes of an inventory: rows of `location`, and where known `node`, `rack` and `cluster`; or of `assignments`, a file."""
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
    if not isinstance(row, Mapping) or not row.get("location"):
        raise FormatError(Span(0, 0), expected=f"a location in entry {number} of {inventory}", found="none")
    node = row.get("node")
    try:
        node_id = None if node in {None, ""} else int(str(node))
    except ValueError as error:
        found = repr(str(node))
        raise FormatError(
            Span(0, 0), expected=f"a node id as number in entry {number} of {inventory}", found=found
        ) from error
    locations = row["location"] if isinstance(row["location"], list) else [row["location"]]
    for text in locations:
        place = _place_of(inventory, str(text), storage)
        for one in expand_glob(place) or [place]:
            yield Source(
                location=one,
                is_evidence=_is_evidence(one),
                node_id=node_id,
                rack=_text(row.get("rack")),
                cluster=_text(row.get("cluster")),
            )


def _place_of(inventory: Path, text: str, storage: Options) -> Path:
    """Return a place that an inventory names; a relative path is one beside it."""
    is_beside = "://" not in text and not isinstance(inventory, StoragePath)
    return inventory.parent / text if is_beside else parse_location(text, storage)


def _text(value: Any) -> str | None:
    return None if value in {None, ""} else str(value)


def check_output(out: Path, sources: Sequence[Source]) -> None:
    """Refuse an output directory that would lie inside the evidence.

    Raises:
        UsageError: the output would lie inside of an input.
    """
    check_outside(out, [source.location for source in sources])
