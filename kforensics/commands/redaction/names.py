"""Records with their payloads replaced; names of topics and groups in lines of text, replaced as well as hosts and principals; for evidence that is copied, not reported."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.damage import Damage
from kforensics.evidence.content import BatchItem, DumpItem, MemberBlob, Message, RecordMeaning
from kforensics.evidence.file_kinds import FileEntry
from kforensics.formats.messages.schema import Decoded, Undecoded
from kforensics.units import METADATA_TOPICS, OFFSETS_TOPIC, REMOTE_LOG_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC

INTERNAL = METADATA_TOPICS | {OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_TOPIC, REMOTE_LOG_TOPIC}
"""Names of Kafka's own topics, which say nothing about their owner."""

_TOKEN = re.compile(r"[\w.-]+")
_DIRECTORY = re.compile(r"(?P<topic>[\w.-]+?)-(?P<rest>\d{1,10}(?:\.[0-9a-f]{32}-(?:delete|future|stray))?)")
_SHORTENED = re.compile(r"(?P<topic>[\w.-]+?)(?P<rest>\.[0-9a-f]{32}-(?:delete|stray))")

# After these words comes a name that an owner chose; words that Kafka itself has there are no names.
_LABELLED = re.compile(
    r"(?P<label>\b(?:(?P<group>group(?:[ ._-]?id)?)|(?P<transaction>transactional[ ._-]?id)|(?P<member>(?:member|consumer)(?:[ ._-]?id)?|(?:group[ ._-]?)?instance[ ._-]?id)"
    r"|(?P<client>client[ ._-]?id)|(?P<user>user[ ._-]?name|username))(?:[=:]\s*|\s+)[\"'(\[]?)(?P<name>[^\s,;()\[\]{}'\"=]+)",
    re.IGNORECASE | re.ASCII,
)
_LABELLED_TOPIC = re.compile(
    r"(?P<label>\b(?P<kind>[Tt]opic(?:[ ._-]?(?:[Nn]ame|[Pp]artition))?|[Pp]artition|tp)(?:[=:]\s*|\s+)[\"'(\[]?)(?P<name>[A-Za-z0-9._][\w.-]*)(?!\()"
    r"|(?P<labels>\b(?P<kinds>[Tt]opics|[Pp]artitions)[=:]\s*[\"'(\[]?)(?P<named>[A-Za-z0-9._][\w.-]*)(?![\w.-]*\()"
)
_IN_LIST = re.compile(r"(?<=[(\[{, ])(?P<topic>[A-Za-z0-9._][\w.-]*?)-(?P<rest>\d{1,9})(?=[)\]}, :])")
_VERSION = re.compile(r"\b[Vv]ersion\s*[:=]?\s*(?P<version>\d+(?:\.\d+){1,3}[\w-]*)")
_DATE = re.compile(r"\d{1,4}(?:-\d{1,2})?")
_LISTS = re.compile(r"\b(?:partitions?|topics?|fetchers?|replicas?)\b", re.IGNORECASE)
_EMBEDDING = ("consumer-", "producer-", "adminclient-", "connector-consumer-", "connector-producer-")
_WORDS = frozenset(
    [
        "and", "as", "at", "authorizer", "by", "cache", "change", "changes", "config", "configs", "coordinator", "coordinators", "count", "creation", "data",
        "dead", "deletion", "directory", "does", "due", "empty", "epoch", "epochs", "for", "from", "generation", "group", "groups", "has", "id", "ids", "in",
        "info", "instances", "is", "joins", "leader", "list", "manager", "member", "members", "metadata", "name", "names", "no", "not", "null", "none", "of",
        "offset", "offsets", "on", "or", "partition", "partitions", "rebalance", "record", "records", "request", "size", "state", "states", "store", "that", "the", "to",
        "topic", "topics", "type", "unknown", "update", "updates", "was", "were", "with",
        "broker", "brokers", "client", "consumer", "controller", "dir", "error", "fetch", "fetcher", "file", "index", "isr", "log", "logs", "producer", "replica",
        "replicas", "response", "segment", "server", "session", "snapshot", "time", "version",
    ]
)  # fmt: skip
_PROPERTY = re.compile(
    r"(?P<before>^\s*|\benvironment:)(?P<name>[A-Za-z][\w-]*(?:\.[\w-]+)+)(?P<sign>\s*[=:]\s*)(?P<value>.*?)(?P<after>\s*(?:\([\w.$]+\))?\s*)$"
)
_DISCONNECTED = re.compile(r"Connection to \d+ was disconnected before the response was read")
"""An exception's words that tell of an event of their own, and name no one."""
_KNOWN_SETTINGS = frozenset(
    [
        "advertised.listeners", "broker.rack", "cleanup.policy", "compression.type", "control.plane.listener.name", "controller.listener.names",
        "controller.quorum.bootstrap.servers", "controller.quorum.voters", "inter.broker.listener.name", "inter.broker.protocol.version", "listener.security.protocol.map",
        "listeners", "log.cleanup.policy", "log.dir", "log.dirs", "log.message.format.version", "log.message.timestamp.type", "metadata.log.dir", "process.roles",
        "replica.selector.class", "security.inter.broker.protocol", "cluster.id",
    ]
)  # fmt: skip
_ENDPOINT = re.compile(r"(?P<before>://|\d@)(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/,\s\]]+)(?=:\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Replaces names in text; what is no name that it knows, or is where names are, stays."""

    pseudonyms: Pseudonyms
    with_topics: bool
    """Names of topics become pseudonyms, too."""
    topics: frozenset[str] = frozenset()
    """All names of topics that the evidence has."""
    known: Mapping[str, str] = field(default_factory=dict)
    """All names of groups and transactional ids that the evidence has, each with what it is."""
    _odd: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        odd = sorted((name for name in self.known if not _TOKEN.fullmatch(name)), key=len, reverse=True)
        object.__setattr__(self, "_odd", tuple(name for name in odd if name))

    def topic(self, name: str) -> str:
        """Return what a topic is called: its pseudonym where topics have them, the name itself for Kafka's own and for what has the form of a pseudonym."""
        if not self.with_topics or not name or name == "*" or name in INTERNAL or _is_pseudonym(name):
            return name
        return self.pseudonyms.name("topic", name)

    def directory(self, name: str) -> str:
        """Return the name of a partition directory, the name of its topic replaced."""
        found = _DIRECTORY.fullmatch(name) or _SHORTENED.fullmatch(name)
        if found is None or not self.with_topics:
            return name
        return f"{self.topic(found['topic'])}{'-' if found['rest'][0].isdigit() else ''}{found['rest']}"

    def part(self, part: str) -> str:
        """Return a part of a path with hosts, and where they are replaced topics, replaced."""
        found = _DIRECTORY.fullmatch(part) or _SHORTENED.fullmatch(part)
        if found is not None and (found["topic"] in self.topics or found["topic"] in INTERNAL):
            return self.directory(part)
        return self.line(part)

    def line(self, text: str) -> str:
        """Return a line of a log with names replaced."""
        found = _PROPERTY.search(text)
        if found is not None and _DISCONNECTED.fullmatch(found["value"]) is None:
            value = self.setting(found["name"], found["value"])
            return f"{text[: found.start('value')]}{value}{found['after']}"
        version = _VERSION.search(text)
        if version is not None:  # which would look like an address
            start, end = version.span("version")
            return f"{self._words(text[:start])}{version['version']}{self._words(text[end:])}"
        return self._words(text)

    def _words(self, text: str) -> str:
        for name in self._odd:
            text = text.replace(name, self.pseudonyms.name(self.known[name], name))
        text = _LABELLED.sub(self._labelled, text)
        if self.with_topics:
            text = _LABELLED_TOPIC.sub(self._labelled_topic, text)
            if _LISTS.search(text):
                text = _IN_LIST.sub(self._in_list, text)
        text = _TOKEN.sub(self._token, text)
        return self.pseudonyms.text(_ENDPOINT.sub(self._endpoint, text))

    def setting(self, name: str, value: str) -> str:
        """Return the value of a setting: numbers, switches and settings that hold no secret stay, all but the hosts in them."""
        if identifies_no_one(value) or value in {"null", "[hidden]", "[]"} or not value.strip("*"):
            return value
        if name in _KNOWN_SETTINGS:
            return self.pseudonyms.text(_ENDPOINT.sub(self._endpoint, value))
        return self.pseudonyms.name("value", value)

    def _endpoint(self, found: re.Match[str]) -> str:
        return found["before"] + self.pseudonyms.host(found["host"])

    def _labelled(self, found: re.Match[str]) -> str:
        whole = found["name"]
        name = whole.rstrip(".:!?")
        rest = whole[len(name) :]
        if not name or name.lower() in _WORDS or name.isdecimal() or _is_pseudonym(name):
            return found[0]
        if name in self.topics and not self.with_topics and found["group"] is None:
            return found[0]
        kind = next(
            kind
            for label, kind in (
                ("group", "group"),
                ("transaction", "transactional-id"),
                ("member", "member"),
                ("client", "client"),
                ("user", "principal"),
            )
            if found[label]
        )
        return f"{found['label']}{self.pseudonyms.name(kind, name)}{rest}"

    def _labelled_topic(self, found: re.Match[str]) -> str:
        whole, label, kind = (
            found[one] or found[other] for one, other in (("name", "named"), ("label", "labels"), ("kind", "kinds"))
        )
        name = whole.rstrip(".-_")
        rest = whole[len(name) :]
        if not name or name.lower() in _WORDS or name.isdecimal() or _is_pseudonym(name):
            return found[0]
        parts = _DIRECTORY.fullmatch(name)
        if parts is not None:
            return f"{label}{self.topic(parts['topic'])}-{parts['rest']}{rest}"
        if kind.lower().startswith("partition"):
            return found[0]
        return f"{label}{self.topic(name)}{rest}"

    def _in_list(self, found: re.Match[str]) -> str:
        if _DATE.fullmatch(found["topic"]) or found["topic"] in _WORDS:
            return found[0]
        return f"{self.topic(found['topic'])}-{found['rest']}"

    def _token(self, found: re.Match[str]) -> str:
        word = found[0]
        name = word.strip(".-")
        if name != word:
            at = word.index(name) if name else 0
            return word[:at] + self._token_name(name) + word[at + len(name) :] if name else word
        return self._token_name(word)

    def _token_name(self, word: str) -> str:
        if word in self.topics:
            return word if word in _WORDS else self.topic(word)
        if word in self.known and word not in _WORDS:
            return self.pseudonyms.name(self.known[word], word)
        if word.startswith(_EMBEDDING):
            return self.pseudonyms.name("client", word)
        if self.with_topics:
            parts = _DIRECTORY.fullmatch(word) or _SHORTENED.fullmatch(word)
            if parts is not None and parts["topic"] in self.topics:
                return self.directory(word)
        return word


def _is_pseudonym(name: str) -> bool:
    return re.fullmatch(r"[a-z-]+-[0-9a-f]{24}(?:-\d+)?", name) is not None


_UUIDS = frozenset(
    [
        "cordoned_log_dirs",
        "directories",
        "id",
        "incarnation_id",
        "log_dirs",
        "segment_id",
        "topic_id",
        "voter_directory_id",
    ]
)
_TOPICS = frozenset(
    [
        "topic",
        "topics",
        "topic_name",
        "subscribed_topic_names",
        "source_topics",
        "repartition_sink_topics",
        "source_topic_regex",
        "subscribed_topic_regex",
    ]
)
_WORDS_OF_KAFKA = frozenset(["protocol_type", "protocol", "server_assignor", "entity_type", "subtopology_id"])
_PLACES = frozenset(["rack", "rack_id", "racks"])
_KEPT = _UUIDS | _TOPICS | _WORDS_OF_KAFKA | _PLACES
_HOSTS = frozenset({"host", "client_host"})
_PRINCIPALS = frozenset({"principal", "owner", "requester", "renewers", "entity_name"})
_KINDS = {
    "group": "group",
    "group_id": "group",
    "member_id": "member",
    "leader": "member",
    "group_instance_id": "instance",
    "instance_id": "instance",
    "client_id": "client",
    "transactional_id": "transactional-id",
    "process_id": "process",
    "token_id": "token",
}
_PROPERTIES = frozenset({"version", "broker.id", "node.id", "cluster.id", "directory.id"})
_NAMES_OF_USERS = frozenset({"UserScramCredentialRecord", "RemoveUserScramCredentialRecord"})
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_HARMLESS_VALUES = frozenset({"true", "false", "delete", "compact", "compact,delete", "delete,compact", "*", ""})


def redact_item(item: DumpItem, pseudonyms: Pseudonyms) -> DumpItem:
    """Return the item with payloads and names replaced, and of small files what is quoted because it is not understood."""
    match item:
        case Damage():
            return replace(item, found=pseudonyms.without_quoted(item.found))
        case FileEntry():
            properties = item.fields.get("properties")
            if isinstance(properties, Mapping):
                known = {name: value for name, value in properties.items() if name in _PROPERTIES}
                others = {
                    pseudonyms.name("value", name): pseudonyms.name("value", str(value))
                    for name, value in properties.items()
                    if name not in _PROPERTIES
                }
                return item._replace(fields={**item.fields, "properties": known | others})
            return item
        case BatchItem():
            return item
    meaning = item.meaning
    return item._replace(
        record=item.record if item.record.is_control else pseudonyms.record(item.record),
        meaning=None
        if meaning is None
        else RecordMeaning(_message(meaning.key, pseudonyms), _message(meaning.value, pseudonyms)),
    )


def redact_message(message: Decoded, pseudonyms: Pseudonyms) -> Decoded:
    """Return a message of one of Kafka's own logs with every private field replaced."""
    return message._replace(fields=_fields(message.fields, message.name, pseudonyms))


def _message(message: Message | None, pseudonyms: Pseudonyms) -> Message | None:
    match message:
        case Decoded():
            return redact_message(message, pseudonyms)
        case Undecoded():
            return message._replace(reason=pseudonyms.text(message.reason))
    return None


def _fields(fields: Mapping[str, Any], message: str, pseudonyms: Pseudonyms) -> dict[str, Any]:
    return {name: _value(name, value, fields, message, pseudonyms) for name, value in fields.items()}


def _value(name: str, value: Any, around: Mapping[str, Any], message: str, pseudonyms: Pseudonyms) -> Any:
    match value:
        case MemberBlob():
            inner = _message(value.message, pseudonyms)
            assert inner is not None
            return MemberBlob(pseudonyms.name("value", value.raw).encode(), inner)
        case Mapping():
            return _fields(value, message, pseudonyms)
        case list() | tuple():
            return type(value)(_value(name, item, around, message, pseudonyms) for item in value)
        case str():
            return _text(name, value, around, message, pseudonyms)
        case bytes() | bytearray() | memoryview():
            return pseudonyms.payload("value", bytes(value))
    return value


def _text(name: str, text: str, around: Mapping[str, Any], message: str, pseudonyms: Pseudonyms) -> str:
    if not text or name in _KEPT:
        return text
    if name in _HOSTS:
        return pseudonyms.host(text)
    if name in _PRINCIPALS:
        return pseudonyms.principal(text)
    if name == "name":
        return pseudonyms.name("principal", text) if message in _NAMES_OF_USERS else text
    if name == "key" and message == "ClientQuotaRecord":
        return text
    if name == "resource_name":
        is_public = text == "*" or around.get("resource_type") in {_TOPIC_RESOURCE, _BROKER_RESOURCE}
        return text if is_public else pseudonyms.name("group", text)
    if name == "value" and identifies_no_one(text):
        return text
    return pseudonyms.name(_KINDS.get(name, "value"), text)


def identifies_no_one(text: str) -> bool:
    """Return whether a setting is a number, a switch or another word that identifies no one."""
    return text.lower() in _HARMLESS_VALUES or text.removeprefix("-").replace(".", "", 1).isdecimal()
