"""Small files of properties: meta.properties of a log directory, and partition.metadata of a partition directory."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kforensics.damage import Absent, Damage, DamageKind, Span
from kforensics.errors import FormatError, require_known
from kforensics.formats.primitives.numbers import uuid_bytes, uuid_text
from kforensics.formats.primitives.text_lines import (
    DamageList,
    TextLine,
    beyond_limit,
    parse_integer,
    shown,
    walk_lines,
)

# `meta.properties` of a log directory: which node and cluster it belongs to.
#
#     A java.util.Properties text: `key=value` lines, `#` and `!` comments, ISO 8859-1 with `\uXXXX` escapes.
#     version 0 (0.8.2 and later, ZooKeeper): broker.id, since 0.10.1 cluster.id
#     version 1 (KRaft, 2.8 and later): node.id, cluster.id, since 3.7 directory.id
#     Without a version it is 0. No checksum.
#
# Kafka: `MetaProperties`, `BrokerMetadataCheckpoint`, `PropertiesUtils`.


WHAT, NEWEST_VERSION = "meta.properties version", 1

LOST_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAg"
RESERVED_DIRECTORY_IDS = {
    "AAAAAAAAAAAAAAAAAAAAAA": "MIGRATING",
    "AAAAAAAAAAAAAAAAAAAAAQ": "UNASSIGNED",
    LOST_DIRECTORY: "LOST",
}
"""What the metadata say of a replica that is in no directory."""
REFUSED_DIRECTORY_IDS = {
    **{uuid_text(bytes([*[0] * 15, number])): "one below 100" for number in range(100)},
    **RESERVED_DIRECTORY_IDS,
}
"""The ids that `DirectoryId` reserves, which no directory may have."""

UUID_PATTERN = re.compile(r"[A-Za-z0-9_-]{22}")
"""A `Uuid` as Kafka writes it: 16 bytes in URL-safe base64 without padding."""

ESCAPE = "four hexadecimal digits behind \\u"
"""What damage expects of an escape that `java.util.Properties` refuses, and the whole file with it."""
_MALFORMED_ESCAPE = re.compile(rb"(?:[^\\]|\\[^u])*+\\u(?![0-9A-Fa-f]{4})", re.DOTALL)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
TRIMMED = "".join(map(chr, range(33)))
"""What `String.trim` takes off, as `MetaPropertiesVersion` does of the version alone."""
_KEYS = {"version", "broker.id", "node.id", "cluster.id", "directory.id"}


class Property(NamedTuple):
    """One key and its value, with the line that holds them."""

    key: str
    value: str
    line: int = 0
    position: int = 0
    length: int = 0


class MetaProperties(NamedTuple):
    """The node and cluster to which a log directory belongs; `entries` are all properties in the order of the file."""

    version: int
    node_id: int | Absent
    cluster_id: str | Absent
    directory_id: str | Absent
    entries: tuple[Property, ...] = ()
    damage: tuple[Damage, ...] = ()


def parse_meta_properties(data: bytes | memoryview) -> MetaProperties:
    """Parse `meta.properties`, the identity of a log directory.

    Args:
        data: the whole file; what lies behind `TEXT_FILE_LIMIT` is reported as damage.

    Returns:
        The identity as the file claims it; a value that can't be read, or that no broker writes, is damage. A version above `NEWEST_VERSION` is
        none: `parse_known_meta_properties` refuses it.
    """
    entries = tuple(parse_properties(data))
    values = {entry.key: entry for entry in entries}
    malformed = [line for line in _logical_lines(data) if _MALFORMED_ESCAPE.match(line.content)]
    if not _KEYS & values.keys():
        expected = ESCAPE if malformed else "properties such as version, node.id and cluster.id"
        raise FormatError(Span(0, len(data)), expected=expected, found=shown(data))
    damage = DamageList()
    for line in malformed:
        damage.add_line(line, ESCAPE)
    named = values.get("version")
    version = _integer(named and named._replace(value=named.value.strip(TRIMMED)), damage)
    node_key = "broker.id" if "broker.id" in values and not (version == 1 and "node.id" in values) else "node.id"
    if isinstance(version, int) and version < 0:
        _add(damage, values["version"], "version 0 or 1", kind=DamageKind.VERSION)
    node_id = _integer(values.get(node_key), damage)
    cluster_id = _text(values.get("cluster.id"))
    directory_id = _text(values.get("directory.id"))
    if version == 1:
        _require(data, damage, node_id, "node.id")
        _require(data, damage, cluster_id, "cluster.id")
    if isinstance(node_id, int) and node_id < 0:
        _add(damage, values[node_key], "a node id of 0 or more")
    if isinstance(directory_id, str) and not isinstance(directory_id, Absent):
        if not UUID_PATTERN.fullmatch(directory_id):
            _add(damage, values["directory.id"], "22 characters of URL-safe base64")
        if UUID_PATTERN.fullmatch(unpadded := directory_id.removesuffix("==")):
            directory_id = uuid_text(uuid_bytes(unpadded))  # as `Uuid.fromString` reads it
        if directory_id in REFUSED_DIRECTORY_IDS:
            reserved = f"an id of its own, not the reserved {REFUSED_DIRECTORY_IDS[directory_id]}"
            _add(damage, values["directory.id"], reserved)
    return MetaProperties(
        version=version if not isinstance(version, Absent) else 0,
        node_id=node_id,
        cluster_id=cluster_id,
        directory_id=directory_id,
        entries=entries,
        damage=(*damage.as_tuple(), *beyond_limit(len(data))),
    )


def parse_known_meta_properties(data: bytes | memoryview) -> MetaProperties:
    """Parse `meta.properties` of a version that is known.

    Raises:
        FormatError: as `parse_meta_properties` does; `NewerThanKnown` where the version is above `NEWEST_VERSION`.
    """
    properties = parse_meta_properties(data)
    where = next((one for one in properties.entries if one.key == "version"), Property("", ""))
    require_known(Span(where.position, where.length), WHAT, found=max(properties.version, 0), newest=NEWEST_VERSION)
    return properties


def encode_meta_properties(properties: MetaProperties) -> bytes:
    """Encode the `entries` of properties in their order, without the comment with the date that a broker writes above them."""
    lines = [f"{_escape(entry.key, key=True)}={_escape(entry.value, key=False)}\n" for entry in properties.entries]
    return "".join(lines).encode("ascii")


def meta_properties(
    *, version: int, node_id: int, cluster_id: str | Absent, directory_id: str | Absent = Absent.NOT_WRITTEN
) -> MetaProperties:
    """Build the properties of a log directory of this node: version 0 has `broker.id` (ZooKeeper), 1 `node.id` (KRaft)."""
    pairs = {"version": str(version), "node.id" if version else "broker.id": str(node_id)}
    if not isinstance(cluster_id, Absent):
        pairs["cluster.id"] = cluster_id
    if not isinstance(directory_id, Absent):
        pairs["directory.id"] = directory_id
    entries = tuple(Property(key, value) for key, value in pairs.items())
    return MetaProperties(
        version=version, node_id=node_id, cluster_id=cluster_id, directory_id=directory_id, entries=entries
    )


def parse_properties(data: bytes | memoryview) -> Iterator[Property]:
    """Yield the keys and values of a `java.util.Properties` text in ISO 8859-1, of its first `TEXT_FILE_LIMIT` bytes, with the line on which each begins."""
    for line in _logical_lines(data):
        text = line.content.decode("latin-1")
        at = 0
        while at < len(text) and text[at] not in "=: \t\f":
            at += 2 if text[at] == "\\" else 1
        rest = text[at:].lstrip(" \t\f")
        if rest[:1] in {"=", ":"}:
            rest = rest[1:].lstrip(" \t\f")
        yield Property(_unescape(text[:at]), _unescape(rest), line.number, line.position, len(line.content))


def _logical_lines(data: bytes | memoryview) -> Iterator[TextLine]:
    pending: list[bytes] = []
    start: TextLine | None = None
    for line in walk_lines(data):
        content = line.content.lstrip(b" \t\f")
        if start is None and (not content or content[:1] in {b"#", b"!"}):
            continue
        start = start or line
        if (len(content) - len(content.rstrip(b"\\"))) % 2:
            pending.append(content[:-1])
            continue
        yield start._replace(content=b"".join((*pending, content)))
        pending, start = [], None
    if start is not None:
        yield start._replace(content=b"".join(pending))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    units = re.sub(r"\\(u[0-9a-fA-F]{4}|.|$)", _unescape_one, text, flags=re.DOTALL)
    # A character above U+FFFF is escaped as two units; one of them alone is no character, and in no path.
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape_one(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _ESCAPES.get(escaped, escaped)


def _escape(text: str, *, key: bool) -> str:
    escaped = []
    for at, character in enumerate(text):
        if character in "\t\n\r\f":
            escaped.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[character])
        elif character in "=:#!\\" or (character == " " and (key or at == 0)):
            escaped.append("\\" + character)
        elif " " <= character <= "~":
            escaped.append(character)
        else:
            units = character.encode("utf-16-be", errors="surrogatepass")
            escaped.extend(f"\\u{units[i] << 8 | units[i + 1]:04X}" for i in range(0, len(units), 2))
    return "".join(escaped)


def _integer(entry: Property | None, damage: DamageList) -> int | Absent:
    if entry is None:
        return Absent.NOT_WRITTEN
    value = parse_integer(entry.value.encode("utf-8", errors="replace"), bits=32)
    if value is None:
        _add(damage, entry, "a number")
        return Absent.UNREADABLE
    return value


def _text(entry: Property | None) -> str | Absent:
    return Absent.NOT_WRITTEN if entry is None else entry.value


def _require(data: bytes | memoryview, damage: DamageList, value: int | str | Absent, key: str) -> None:
    if value is Absent.NOT_WRITTEN:
        damage.add(
            Span(0, len(data)), DamageKind.TEXT, expected=f"{key}, which version 1 requires", found="no such line"
        )


def _add(damage: DamageList, entry: Property, expected: str, *, kind: DamageKind = DamageKind.TEXT) -> None:
    found = shown(f"{entry.key}={entry.value}".encode("utf-8", errors="replace"))
    damage.add(Span(entry.position, entry.length), kind, expected=expected, found=found, line=entry.line)


# `partition.metadata` of a partition directory: the id of the topic (KIP-516).
#
#     version: 0 LF topic_id: <16 bytes in URL-safe base64, 22 characters> [LF]
#     No checksum. Written lazily, so it may be missing; the zero id is never written.
#
# Kafka: `PartitionMetadataFile` (2.8 and later).


ZERO_UUID = "A" * 22

MOST_LINES = 16
"""The most lines of the file that are read; a broker writes two."""

_LINE = re.compile(rb"\s*([A-Za-z_]+)\s*:\s*(\S*)\s*")


class PartitionMetadata(NamedTuple):
    """The topic id with the number of its line."""

    version: int
    topic_id: str | Absent
    damage: tuple[Damage, ...] = ()


def parse_partition_metadata(data: bytes | memoryview) -> PartitionMetadata:
    """Parse `partition.metadata`, the topic id of a partition directory (`PartitionMetadataFile`, KIP-516).

    Returns:
        The topic id, `UNREADABLE` where the line is missing or holds no id that a topic can have; damage says why.

    Raises:
        FormatError: the file holds no line that a broker writes; `UnsupportedFormat` where the version is not 0.
    """
    damage = DamageList()
    values: dict[str, tuple[TextLine, bytes]] = {}
    for line in walk_lines(data):
        match = _LINE.fullmatch(line.content)
        if line.number > MOST_LINES or match is None:
            damage.add_line(line, "version: 0 and topic_id: <id>")
            continue
        values[match[1].decode("ascii")] = (line, match[2])
    if "version" not in values and "topic_id" not in values:
        raise FormatError(
            Span(0, len(data)),
            expected="lines of version: 0 and topic_id: <id>",
            found=shown(data) if len(data) else "an empty file",
        )
    _check_version(values.get("version"), data, damage)
    topic_id = _topic_id(values.get("topic_id"), data, damage)
    return PartitionMetadata(version=0, topic_id=topic_id, damage=(*damage.as_tuple(), *beyond_limit(len(data))))


def encode_partition_metadata(metadata: PartitionMetadata) -> bytes:
    """Encode the file as a broker writes it, without a line break at the end, with a topic id, which must not be absent (`PartitionMetadataFile`)."""
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}".encode()


def configured_voters(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the address of each voter that `controller.quorum.voters` of a `server.properties` names, by id; both as they are written."""
    named = (one.strip().partition("@") for one in settings.get("controller.quorum.voters", "").split(","))
    return {voter.strip(): address for voter, _, address in named if voter}


def is_uuid(text: str) -> bool:
    """Whether the text is a Kafka `Uuid` of 22 characters that a topic can have."""
    return UUID_PATTERN.fullmatch(text) is not None and text != ZERO_UUID


def _check_version(value: tuple[TextLine, bytes] | None, data: bytes | memoryview, damage: DamageList) -> None:
    if value is None:
        damage.add(Span(0, len(data)), DamageKind.VERSION, expected="a line version: 0", found="no such line")
        return
    line, text = value
    version = parse_integer(text, bits=32)
    if version is None:
        damage.add_line(line, "version: 0", DamageKind.VERSION)
    else:
        require_known(line.span, "partition.metadata version", found=version, newest=0)


def _topic_id(value: tuple[TextLine, bytes] | None, data: bytes | memoryview, damage: DamageList) -> str | Absent:
    if value is None:
        damage.add(Span(0, len(data)), DamageKind.TEXT, expected="a line topic_id: <id>", found="no such line")
        return Absent.UNREADABLE
    line, raw = value
    text = raw.decode("ascii", errors="replace")
    if not UUID_PATTERN.fullmatch(text) or uuid_text(uuid_bytes(text)) != text:
        damage.add_line(line, "22 characters of URL-safe base64")
        return Absent.UNREADABLE
    if text == ZERO_UUID:
        damage.add_line(line, "an id other than zero")
        return Absent.UNREADABLE
    return text
