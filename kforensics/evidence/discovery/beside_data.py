"""What lies beside the data of brokers among the inputs: their settings, and the places of their log files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.discovery.log_dirs import SMALL_FILE_LIMIT
from kforensics.formats.checkpoint.properties import parse_properties
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind, parse_partition_directory
from kforensics.source.packed import members_of
from kforensics.source.walk import FoundFile


def read_server_properties(found: FoundInput) -> Iterator[tuple[str, Mapping[str, str] | EvidenceError]]:
    """Yield each `server.properties` of an input: its path, and its settings or why it can't be read."""
    for item in found.walk(within=lambda name: parse_partition_directory(name) is None):
        if not isinstance(item, FoundFile) or item.name.kind is not FileKind.SERVER_PROPERTIES:
            continue
        path = found.root if item.path == WHOLE_INPUT else found.root / item.path
        try:
            with open_evidence(path) as file:
                text = file.read_all(SMALL_FILE_LIMIT)
        except EvidenceError as error:
            yield item.path, error
        else:
            yield item.path, {entry.key: entry.value.strip() for entry in parse_properties(text)}


class ServerSettings:
    """The settings of all `server.properties` among some inputs, which are read once; files that can't be read add nothing."""

    def __init__(self, inputs: Inputs) -> None:
        read = (settings for _, found in inputs.numbered for _, settings in read_server_properties(found))
        self._files = tuple(settings for settings in read if not isinstance(settings, EvidenceError))

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return every whole number that a setting has in some file; one of more than nine digits, or with a sign, is left out."""
        return tuple(int(value) for value in self._values(name) if value.isdecimal() and len(value) < 10)

    def flags(self, name: str) -> tuple[bool, ...]:
        """Return every truth value that a setting has in some file; one that is neither `true` nor `false` is left out."""
        return tuple(value.lower() == "true" for value in self._values(name) if value.lower() in {"true", "false"})

    def of_node(self, node: int) -> Mapping[str, str]:
        """Return the settings of a node, as far as a file names it; those of its last file count."""
        mine = (one for one in self._files if one.get("node.id", one.get("broker.id")) == str(node))
        return {name: value for one in mine for name, value in one.items()}

    def _values(self, name: str) -> Iterator[str]:
        return (settings[name] for settings in self._files if name in settings)


class LogPlace(NamedTuple):
    """A file that may be a broker's log."""

    root: Path
    """The real path of the input."""
    path: str
    """The path relative to the input; `.` where the input is the file."""
    input: int
    member: str = ""
    """The file in it that is meant, where it is a zip of several."""

    @property
    def name(self) -> str:
        """The path with that of the file in it."""
        return "/".join(one for one in (self.path, self.member) if one not in {"", "."}) or self.path

    @property
    def location(self) -> Path:
        """The real path of the file."""
        return self.root if self.path == "." else self.root / self.path


def find_logs(inputs: Inputs) -> list[LogPlace]:
    """Return the files among the inputs that may be broker logs."""
    places = [
        LogPlace(found.root, item.path, index)
        for index, found in inputs.numbered
        if found.described.kind in {"log-files", FileKind.LOG_FILE.value}
        for item in found.walk()
        if isinstance(item, FoundFile) and item.name.kind in {FileKind.LOG_FILE, FileKind.UNKNOWN}
    ]
    return [one for place in places for one in _in_archive(place)]


def _in_archive(place: LogPlace) -> list[LogPlace]:
    """Return the files in a zip, where it has several; else the file."""
    if place.location.suffix.lower() != ".zip":
        return [place]
    try:
        with open_evidence(place.location) as file:
            members = members_of(file)
    except EvidenceError:
        return [place]  # who reads it says why it can't be read
    return [place._replace(member=one) for one in members] if len(members) > 1 else [place]
