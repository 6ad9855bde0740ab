"""Evidence with names replaced while it is captured: the metadata log record by record, broker logs line by line, names of directories and of groups, small files from what was understood of them alone."""

import binascii
import contextlib
import hmac
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kforensics.commands.capturing.container import CannotRedact
from kforensics.commands.redaction.names import Names, redact_message
from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.discovery.log_spans import is_log_file
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.metadata.history import MetadataHistory, listening_hosts
from kforensics.evidence.replica.collect import segment_paths
from kforensics.formats.checkpoint.json_files import (
    encode_clean_shutdown,
    encode_quorum_state,
    parse_clean_shutdown,
    parse_quorum_state,
)
from kforensics.formats.index import (
    encode_aborted_transactions,
    encode_producers,
    parse_offset_index,
    parse_producer_snapshot,
    parse_time_index,
    parse_txn_index,
)
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.batches import RecordBatch, encode_record_batch, parse_record_batch
from kforensics.formats.log.records import BodyRecord, Record
from kforensics.formats.log_lines.unwrap import is_log_line
from kforensics.formats.messages.control import ControlType, encode_control_record, parse_control_record
from kforensics.formats.messages.coordinators import parse_group_record, parse_share_record, parse_txn_record
from kforensics.formats.messages.frame import bare_frame
from kforensics.formats.messages.metadata import encode_metadata_record, parse_metadata_record
from kforensics.formats.messages.schema import Decoded
from kforensics.formats.primitives.compression import GZIP_FORMAT
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.source.mapped import WINDOW_LENGTH, EvidenceFile, open_evidence
from kforensics.source.naming import (
    LOST_AND_FOUND,
    REMOTE_INDEX_CACHE,
    FileKind,
    parse_file_name,
    parse_partition_directory,
)
from kforensics.source.packed import LONGEST_MAGIC, packing_of, unpacked
from kforensics.units import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC

LINE_LIMIT = 1 << 20
"""Bytes of a line that are looked at; what is longer is left out."""

LARGEST_LOG = 4 << 30
"""Bytes that a log file may inflate to."""

_TOPIC_RESOURCE = 2
_TOPIC_FIELDS = frozenset({"topic_name", "topic"})
_PARSERS = {
    OFFSETS_TOPIC: parse_group_record,
    TRANSACTIONS_TOPIC: parse_txn_record,
    SHARE_TOPIC: parse_share_record,
}
_KINDS_OF_NAMES = {"group": "group", "group_id": "group", "transactional_id": "transactional-id"}
_BAD_ENCODING = (ValueError, TypeError, KeyError, AttributeError, struct.error, binascii.Error, OverflowError)
LARGEST_REWRITTEN = 256 << 20
"""Bytes of a small file that is written again; Kafka's own are far smaller."""

_OWN_DIRECTORIES = frozenset({"", ".", "..", "~", REMOTE_INDEX_CACHE, LOST_AND_FOUND})
_SHORTENED = re.compile(r"(?P<topic>.+)(?P<rest>\.[0-9a-f]{32}-(?:delete|stray))")
_PLAIN_LOG = re.compile(
    r"(?:server|state-change|controller|log-cleaner|broker(?:-?\d+)?|kafkaServer|kafka-(?:authorizer|request|gc))\.(?:log|out)(?:[.-]\d[\d-]*)*(?:\.gz)?",
    re.ASCII,
)
_PLAIN_SETTINGS = re.compile(r"(?:server|broker|controller|kraft|kafka|log4j2?)(?:-?\d+)?\.properties", re.ASCII)
_COUNT = re.compile(rb"\d{1,19}")
_CHECKPOINT_LINE = re.compile(rb"(?P<topic>[A-Za-z0-9._-]{1,249}|@metadata)(?P<rest> \d{1,10} -?\d{1,19})")
_SETTING = re.compile(
    rb"(?:listeners|port|(?:advertised|allow|alter|authorizer|auto|background|broker|client|cluster|compression|config|connections?|control|controlled|controller|create|default|delegation"
    rb"|delete|early|eligible|enable|fetch|follower|group|heartbeat|host|initial|inter|internal|kafka|leader|listener|log|log4j|max|message|metadata|metrics?|min|node|num|offsets?"
    rb"|password|principal|process|producer|queued|quota|quorum|remote|replica|replication|request|reserved|rlmm|rootLogger|sasl|security|server|share|socket|ssl|streams|super|telemetry"
    rb"|transaction|transactional|unclean|unstable|zookeeper)(?:\.[a-z0-9_-]+)+)",
)
_CONTINUATION = re.compile(
    rb"\s+at [\w.$<>/]+\(|\s*\.\.\. \d+ more$|(?:Caused by: |\s*Suppressed: )?[\w$]+(?:\.[\w$]+)+(?:Exception|Error|Throwable)\b|\t[a-z][\w-]*(?:\.[\w-]+)* = |\s*$"
)
"""A line without a time that belongs to the one before: of a stack trace, or a value of the settings."""
_UNREADABLE = b"\xff"
"""In the place of bytes that are no sound batch, so that they are no batch in the capture, either."""


@dataclass(slots=True, kw_only=True)
class CaptureRedaction:
    """Replaces names in what a capture takes along, the same in each under one key."""

    pseudonyms: Pseudonyms
    names: Names
    blanked: Counter[str] = field(default_factory=Counter)
    """Records that could not be written again without a name in it, by the reason."""
    left_out: list[str] = field(default_factory=list)
    """Files that can't be redacted."""
    directories: frozenset[str] = frozenset()
    """Parts of the paths that were named and of log directories, which stay but for the hosts in them."""

    @property
    def digest_key(self) -> bytes:
        """The key of the digests of records, without which a guess of a name can't be confirmed."""
        return hmac.digest(self.pseudonyms.key, b"kforensics digests of records", "sha256")

    def described(self) -> dict[str, Any]:
        """Return what the manifest says of the redaction."""
        key_id = hmac.digest(self.pseudonyms.key, b"kforensics key of a redaction", "sha256").hex()[:16]
        return {
            "key_id": key_id,
            "topics": self.names.with_topics,
            "blanked_records": dict(self.blanked),
            "left_out": self.left_out,
        }

    # ------------------------------------------------------------ names

    def path(self, path: str) -> str:
        """Return a path of a directory or file, as it is called in the capture."""
        return "/".join(self._part(part) for part in path.split("/"))

    def _part(self, part: str) -> str:
        if part in self.directories or part in _OWN_DIRECTORIES:
            return self.names.part(part)
        if parse_partition_directory(part) is not None:
            return self.names.directory(part)
        shortened = _SHORTENED.fullmatch(part)
        if shortened is not None:  # of a topic whose whole name is longer
            return f"{self.names.topic(shortened['topic'])}{shortened['rest']}"
        return self._file_name(part)

    def _file_name(self, name: str) -> str:
        match parse_file_name(name).kind:
            case FileKind.LOG_FILE if not _PLAIN_LOG.fullmatch(name):
                return self.log_name(name)
            case FileKind.SERVER_PROPERTIES if not _PLAIN_SETTINGS.fullmatch(name):
                return f"{self.pseudonyms.name('server', name)}.properties"
            case FileKind.UNKNOWN | FileKind.SYMBOLIC_LINK | FileKind.SPECIAL:
                return self.pseudonyms.name("file", name)
        return name

    def log_name(self, name: str) -> str:
        """Return a name for a file that is a log by its content, under which it is taken for one."""
        return f"{self.pseudonyms.name('kafka', name)}.log{'.gz' if name.endswith('.gz') else ''}"

    def entry(self, name: str, *, is_directory: bool, is_taken: bool) -> str:
        """Return the name of an entry of a directory."""
        if is_directory:
            return self._part(name)
        is_log = is_taken and parse_file_name(name).kind is FileKind.UNKNOWN
        return self.log_name(name) if is_log else self._file_name(name)

    def message(self, words: str) -> str:
        """Return the words of a problem, without what they quote of a file."""
        return self.names.line(self.pseudonyms.without_quoted(words))

    def commits(self, rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return the commits of a segment, as a capture has them."""
        return [
            [self.names.topic(topic), partition, self.pseudonyms.group(group), *rest]
            for topic, partition, group, *rest in rows
        ]

    # ------------------------------------------------------------ files

    def pieces(self, file: EvidenceFile, name: str, *, is_metadata: bool) -> Iterator[bytes]:
        """Return the content of a file with names replaced, piece by piece."""
        kind = parse_file_name(name).kind
        match kind:
            case FileKind.METADATA_SNAPSHOT:
                return self._metadata(file)
            case FileKind.SEGMENT if is_metadata:
                return self._metadata(file)
            case FileKind.SERVER_PROPERTIES:
                return self._settings(file)
            case FileKind.LOG_FILE:
                return self._log(file)
            case FileKind.UNKNOWN if is_log_file(file):
                return self._log(file)
        rewrite = self.checkpoint if kind is FileKind.OFFSET_CHECKPOINT else REWRITTEN.get(kind)
        if rewrite is None or file.size > LARGEST_REWRITTEN:
            raise CannotRedact(NO_RULE)
        data = file.read(0, file.size)
        return iter([rewrite(data) if data else data])

    def checkpoint(self, data: bytes) -> bytes:
        """Return a checkpoint of offsets by partition; a line that is none becomes one of the letter x."""
        return b"".join(map(self._checkpoint_line, data.splitlines(keepends=True)))

    def _checkpoint_line(self, line: bytes) -> bytes:
        text = line.rstrip(b"\r\n")
        if not text or _COUNT.fullmatch(text):
            return line
        found = _CHECKPOINT_LINE.fullmatch(text)
        if found is None:
            return blanked(line)
        return self.names.topic(found["topic"].decode()).encode() + found["rest"] + line[len(text) :]

    def _settings(self, file: EvidenceFile) -> Iterator[bytes]:
        for line in _lines(file.windows(WINDOW_LENGTH)):
            text = line.rstrip(b"\r\n")
            end = line[len(text) :]
            plain = text.lstrip()
            if plain.startswith((b"#", b"!")):
                yield b"#" + end
                continue
            name, sign, value = plain.partition(b"=")
            if not sign or not _SETTING.fullmatch(name.strip()):
                yield blanked(line)
                continue
            shown = self.names.setting(_text(name).strip(), _text(value).strip())
            yield name + sign + shown.encode("utf-8", errors="surrogateescape") + end

    def _log(self, file: EvidenceFile) -> Iterator[bytes]:
        packing = packing_of(file.read(0, LONGEST_MAGIC))
        lines = map(self._log_line, _lines(_up_to(LARGEST_LOG, unpacked(file))))
        if packing != "gzip":  # what else is compressed is written as a text: a log is told by what it holds
            yield from lines
            return
        deflater = zlib.compressobj(wbits=GZIP_FORMAT)
        for line in lines:
            if data := deflater.compress(line):
                yield data
        yield deflater.flush()

    def _log_line(self, line: bytes) -> bytes:
        text = line.rstrip(b"\r\n")
        if len(text) > LINE_LIMIT:
            self.blanked["a line of a log of more than 1 MiB"] += 1
            return line[len(text) :]
        if not is_log_line(text) and not _CONTINUATION.match(text):
            return blanked(line)
        return self.names.line(_text(text)).encode("utf-8", errors="surrogateescape") + line[len(text) :]

    # ------------------------------------------------------------ the metadata log

    def _metadata(self, file: EvidenceFile) -> Iterator[bytes]:
        position = 0
        for window in walk_segment(file, level=Level.CRC):
            rows = window.batches[window.batches["crc_valid"]]
            for start, length in zip(rows["position"].tolist(), rows["length"].tolist(), strict=True):
                if start < position:
                    continue
                yield from self._no_batch(file, position, start)
                yield self._batch(file.read(start, length))
                position = start + length
        yield from self._no_batch(file, position, file.size)

    def _no_batch(self, file: EvidenceFile, start: int, end: int) -> Iterator[bytes]:
        """Yield what lies between batches: zeros of a preallocated file, or damage, which may hold names."""
        for data in file.windows(WINDOW_LENGTH, start, end):
            if data.count(0) == len(data):
                yield data
            else:
                self.blanked["bytes of a metadata log that are no sound batch"] += 1
                yield _UNREADABLE * len(data)

    def _batch(self, data: bytes) -> bytes:
        try:
            batch = parse_record_batch(data)
            return encode_record_batch(self._redacted_batch(batch))
        except (FormatError, *_BAD_ENCODING):
            self.blanked["a batch of a metadata log that can't be read"] += 1
            return _UNREADABLE * len(data)

    def _redacted_batch(self, batch: RecordBatch) -> RecordBatch:
        redact = self._control if batch.attributes & CONTROL_BIT else self._record
        return replace(batch, records=tuple(map(redact, batch.records)))

    def _record(self, record: BodyRecord) -> BodyRecord:
        value = None if record.value is None else self._message(record.value)
        return record._replace(key=None if record.key is None else b"", value=value, headers=())

    def _message(self, value: bytes) -> bytes:
        """Return a record of the metadata log written again; of one that is not written as it was read its type is left, so that it is not understood."""
        decoded = parse_metadata_record(value)
        reason = "a record that is not known"
        if isinstance(decoded, Decoded) and decoded.api_key is not None:
            reason = decoded.name
            with contextlib.suppress(*_BAD_ENCODING):
                if _encoded(decoded, value[0]) == value:
                    return _encoded(self._redacted(decoded), value[0])
        self.blanked[reason] += 1
        return bare_frame(value)

    def _redacted(self, decoded: Decoded) -> Decoded:
        message = redact_message(decoded, self.pseudonyms)
        return message._replace(fields=self._with_topics(message.fields, decoded.fields, decoded.name))

    def _with_topics(self, fields: Mapping[str, Any], before: Mapping[str, Any], message: str) -> dict[str, Any]:
        out = dict(fields)
        if self.names.with_topics:
            for name, value in before.items():
                is_topic = (
                    name in _TOPIC_FIELDS
                    or (name == "name" and message == "TopicRecord")
                    or (name == "resource_name" and before.get("resource_type") == _TOPIC_RESOURCE)
                )
                if is_topic and isinstance(value, str):
                    out[name] = self.names.topic(value)
        return out

    def _control(self, record: BodyRecord) -> BodyRecord:
        found = parse_control_record(record.key, record.value)
        with contextlib.suppress(*_BAD_ENCODING):
            if isinstance(found.value, Decoded) and not found.value.trailing:
                again = encode_control_record(found.type, found.value.fields)
                if again == (record.key, record.value):
                    if found.type is not ControlType.KRAFT_VOTERS:
                        return record._replace(headers=())
                    fields = redact_message(found.value, self.pseudonyms).fields
                    return record._replace(value=encode_control_record(found.type, fields)[1], headers=())
        self.blanked["a control record that can't be read"] += 1
        return record._replace(value=b"", headers=())


def _encoded(decoded: Decoded, frame_version: int) -> bytes:
    assert decoded.api_key is not None
    return encode_metadata_record(decoded.api_key, decoded.version, decoded.fields, frame_version=frame_version)


def redaction_of(
    pseudonyms: Pseudonyms,
    *,
    with_topics: bool,
    histories: Sequence[MetadataHistory],
    places: Sequence[PartitionPlace],
    paths: Iterable[str],
    is_asked_to_stop: Callable[[], bool],
) -> CaptureRedaction:
    """Return the redaction of a capture, with all names that the evidence shows to be hosts, topics, groups or transactional ids."""
    topics = {place.topic_partition.topic for place in places}
    topics |= {name for one in histories for name in one.topic_ids}
    known: dict[str, str] = {}
    for place in places:
        if place.topic_partition.topic in _PARSERS and not is_asked_to_stop():
            known |= dict(_names_in(place))
    known_pseudonyms = pseudonyms.knowing(
        hosts=listening_hosts(histories), topics=() if with_topics else (*topics, *(_dotted_directories(places)))
    )
    names = Names(pseudonyms=known_pseudonyms, with_topics=with_topics, topics=frozenset(topics), known=known)
    directories = frozenset(part for path in paths for part in path.split("/"))
    return CaptureRedaction(pseudonyms=known_pseudonyms, names=names, directories=directories)


def _dotted_directories(places: Sequence[PartitionPlace]) -> Iterator[str]:
    for place in places:
        yield place.path.rpartition("/")[2]


def _names_in(place: PartitionPlace) -> Iterator[tuple[str, str]]:
    """Yield the groups and transactional ids in a partition of one of Kafka's own topics."""
    parse = _PARSERS[place.topic_partition.topic]
    for path in segment_paths(place):
        with contextlib.suppress(EvidenceError), open_evidence(place.state.root / path) as file:
            for record in iter_records(file):
                if not isinstance(record, Record) or record.is_control or record.key is None:
                    continue
                parsed = parse(record.key, record.value)
                for message in (parsed.key, parsed.value):
                    if isinstance(message, Decoded):
                        yield from _names_of(message.fields)


def _names_of(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        if name in _KINDS_OF_NAMES and isinstance(value, str) and value:
            yield value, _KINDS_OF_NAMES[name]


# ---------------------------------------------------------------- reading


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="surrogateescape")


def _up_to(most: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > most:
            return
        yield piece


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text with their ends; a line without an end is split where it is longer than is looked at."""
    rest = b""
    for chunk in chunks:
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        yield from (line + b"\n" for line in lines)
        if len(rest) > 2 * LINE_LIMIT:
            yield b" " * (LINE_LIMIT + 1)  # longer than any line that is looked at: left out
            rest = b""
    if rest:
        yield rest


NOT_UNDERSTOOD = "it is left out: what is not understood of it may hold a name"
NO_RULE = "it is left out: no names in it can be told from the rest"

Rewrite = Callable[[bytes], bytes]

_SMALLEST_TEXT = 0x20 << 24
"""The least number of four bytes that are four characters; offsets and positions in indexes are smaller."""

_UUID = rb"[A-Za-z0-9_-]{22}"
_ID = rb"[A-Za-z0-9_-]{1,64}"
_NUMBER = rb"-?\d{1,19}"
_PROPERTIES = re.compile(
    rb"(?:version|broker\.id|node\.id)=" + _NUMBER + rb"|cluster\.id=" + _ID + rb"|directory\.id=" + _UUID + rb"|#"
    rb"|#[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [A-Z]{1,5} \d{4}"
)
_EPOCHS = re.compile(_NUMBER + rb"(?: " + _NUMBER + rb")?")
_TOPIC_ID = re.compile(rb"version: \d{1,9}|topic_id: " + _UUID)
_CLUSTER_ID = re.compile(_ID)


def blanked(line: bytes) -> bytes:
    """Return a line of as many letters x, with its end."""
    text = line.rstrip(b"\r\n")
    return b"x" * len(text) + line[len(text) :]


def _offset_lines(form: re.Pattern[bytes]) -> Rewrite:
    def rewrite(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        return b"".join(one if form.fullmatch(one.rstrip(b"\r\n")) else blanked(one) for one in lines)

    return rewrite


def _sound(parse: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        value = parse(data)
    except FormatError as error:
        raise CannotRedact(NOT_UNDERSTOOD) from error
    if value.damage:
        raise CannotRedact(NOT_UNDERSTOOD)
    return value


def _parsed(parse: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> Rewrite:
    return lambda data: encode(_sound(parse, data))


def _quorum_state(data: bytes) -> bytes:
    state = _sound(parse_quorum_state, data)
    if isinstance(state.cluster_id, str) and state.cluster_id and not _CLUSTER_ID.fullmatch(state.cluster_id.encode()):
        raise CannotRedact(NOT_UNDERSTOOD)
    return encode_quorum_state(state)


def _index(parse: Callable[[bytes], Any]) -> Rewrite:
    def rewrite(data: bytes) -> bytes:
        _sound(parse, data)
        small = np.frombuffer(data, ">u4")
        if parse is parse_time_index:
            small = small.reshape(-1, 3)[:, [0, 2]]  # the high half of a timestamp, and the relative offset
        if len(small) and small.max() >= _SMALLEST_TEXT:
            raise CannotRedact(NOT_UNDERSTOOD)
        return data

    return rewrite


REWRITTEN: Mapping[FileKind, Rewrite] = {
    FileKind.OFFSET_INDEX: _index(parse_offset_index),
    FileKind.TIME_INDEX: _index(parse_time_index),
    FileKind.TXN_INDEX: _parsed(parse_txn_index, lambda index: encode_aborted_transactions(index.entries)),
    FileKind.PRODUCER_SNAPSHOT: _parsed(parse_producer_snapshot, lambda one: encode_producers(one.entries)),
    FileKind.LEADER_EPOCH_CHECKPOINT: _offset_lines(_EPOCHS),
    FileKind.META_PROPERTIES: _offset_lines(_PROPERTIES),
    FileKind.PARTITION_METADATA: _offset_lines(_TOPIC_ID),
    FileKind.QUORUM_STATE: _quorum_state,
    FileKind.CLEAN_SHUTDOWN: _parsed(parse_clean_shutdown, encode_clean_shutdown),
}
"""The kinds that have no names where they are sound; a kind that is neither here nor read by the redaction itself is left out."""


_SECRET = re.compile(
    rb"(?im)^([^\S\n]*[^#!\s=:]*(?:password|secret|jaas|credential|token|\.key\b|private)[^\s=:]*[^\S\n]*[=:]?[^\S\n]*)((?:\\\r?\n|[^\n])*)"
)


def without_secrets(data: bytes) -> bytes:
    """Return properties with asterisks in the place of values that may be secret, so that every line stays where it was."""
    return _SECRET.sub(lambda match: match[1] + re.sub(rb"[^\\\r\n]", b"*", match[2]), data)
