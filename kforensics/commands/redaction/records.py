"""Records with their payloads replaced, and what Kafka's own records say with every name of a client, host or principal replaced.

What stays is listed here, field by field; a text that is not listed is replaced, so that a field of a newer Kafka can't slip through.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.damage import Damage
from kforensics.evidence.content.items import BatchItem, DumpItem, MemberBlob, Message, RecordMeaning
from kforensics.evidence.file_kinds import FileEntry
from kforensics.formats.messages.schema import Decoded, Undecoded

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
