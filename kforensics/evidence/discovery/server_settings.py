"""Settings in the `server.properties` files among the inputs: what a broker is to be started with next, and was most likely started with."""

from collections.abc import Iterator

from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.discovery.log_dirs import SMALL_FILE_LIMIT
from kforensics.formats.checkpoint.meta_properties import parse_properties
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind
from kforensics.source.walk import FoundFile


def read_settings(inputs: Inputs, name: str) -> tuple[int, ...]:
    """Every whole number that a setting has in some file; files that can't be read add nothing."""
    values = (value for found in inputs.found for value in _values(found, name))
    return tuple(int(value) for value in values if value.isdecimal() and len(value) < 10)


def read_flags(inputs: Inputs, name: str) -> tuple[bool, ...]:
    """Every truth value that a setting has in some file."""
    values = (value.lower() for found in inputs.found for value in _values(found, name))
    return tuple(value == "true" for value in values if value in {"true", "false"})


def _values(found: FoundInput, name: str) -> Iterator[str]:
    for item in found.walk():
        if not isinstance(item, FoundFile) or item.name.kind is not FileKind.SERVER_PROPERTIES:
            continue
        path = found.root if item.path == WHOLE_INPUT else found.root / item.path
        try:
            with open_evidence(path) as file:
                text = file.read_all(SMALL_FILE_LIMIT)
        except EvidenceError:
            continue
        yield from [entry.value.strip() for entry in parse_properties(text) if entry.key == name][-1:]
