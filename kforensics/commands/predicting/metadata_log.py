"""What the start of a node without ZooKeeper makes of its metadata log, which it opens as after a crash whatever the marker says.

Kafka: `KafkaMetadataLog.apply` (3.3), `KafkaRaftLog.createLog` (4.3), `FileQuorumStateStore`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.commands.loading import DirectoryOnDisk
from kforensics.commands.lost_records import lost_pieces
from kforensics.commands.predicting.directories import topic_id_of
from kforensics.commands.predicting.log_starts import newer_file
from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.metadata.state import METADATA_VERSION
from kforensics.evidence.replica.loader_reader import DirectoryContent, FoundLogs
from kforensics.evidence.replica.loader_scan import ScansAhead
from kforensics.evidence.replica.unaccounted import lost_metadata, lost_metadata_log, orphan_indexes
from kforensics.formats.checkpoint.json_files import NO_ID, QuorumState, parse_quorum_state
from kforensics.formats.log.batch_table import (
    BATCH_HEADER,
    CODEC_MASK,
    CRC_COVERED_POSITION,
    HEADER_UP_TO_MAGIC,
    NEWEST_MAGIC,
)
from kforensics.formats.log.batches import iter_batch_records
from kforensics.formats.log.loader_values import Need
from kforensics.formats.messages.control import ControlType, parse_control_record
from kforensics.formats.messages.frame import FRAME_VERSION
from kforensics.formats.messages.metadata import METADATA_TABLES, parse_metadata_record
from kforensics.formats.messages.schema import Undecoded
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.protocol.loading.disk import LoadOutcome, LoadSettings, Unpredictable
from kforensics.protocol.loading.node import (
    FIRST_OF_QUORUM_STATE_1,
    FIRST_WITH_VOTERS_IN_LOG,
    Refusal,
    refuse_bootstrap,
    refuse_quorum_state,
)
from kforensics.protocol.loading.versions import loading_rules
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.logs.predicted_load import LostRecords, MetadataLoad
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileKind, FileSuffix, parse_file_name
from kforensics.source.walk import join
from kforensics.units import METADATA_TOPIC

_SNAPSHOT_NAME = len(f"{0:020d}-{0:010d}")
_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The id of the metadata log (`Uuid.METADATA_TOPIC_ID`)."""
METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
_FIRST_WITH_BOOTSTRAP = KafkaVersion(3, 3)
_FIRST_WITHOUT_BOOTSTRAP = KafkaVersion(4, 4)
"""`bootstrap.checkpoint` is no longer written; each start still reads it, and the controller that begins an empty metadata log takes its levels."""
_MAGIC = BATCH_HEADER.position_of("magic")
_LEAST_BATCH = 14
"""The least size of a batch behind its length that Kafka does not take for damage (`LegacyRecord.RECORD_OVERHEAD_V0`)."""
_FRAME = bytes([FRAME_VERSION])
_FEATURE_LEVEL = next(key for key, table in METADATA_TABLES.items() if table.name == "FeatureLevelRecord")
_FIRST_THAT_READS_ALL = KafkaVersion(3, 7)
"""A release whose controllers end on a snapshot with a wrong checksum, or without a batch; 3.3 does not check it, and between is not known."""


class MetadataStart(NamedTuple):
    """A metadata log once it is opened, and why the node does not start where opening it throws."""

    load: MetadataLoad
    refusal: Refusal | None
    snapshot_level: int | Absent = Absent.UNKNOWN
    """The metadata.version of its newest snapshot, which counts before the log is read."""


def start_metadata_log(
    node: int,
    number: int,
    one: FoundInput,
    log_dirs: Sequence[tuple[int, FoundLogs]],
    version: KafkaVersion,
    reads: dict[Path, dict[Need, object]],
    scans: ScansAhead,
    *,
    is_inferred: bool = False,
    is_controller: bool,
    node_id: int | Absent,
    configured_voters: Mapping[str, str],
) -> MetadataStart | None:
    """Open the metadata log of an input.

    Args:
        node_id: the id with which the node is started.
        is_inferred: the version is that of the evidence: where a file is newer than known, nothing is said of the log.
    """
    found = [
        (log_dir, directory)
        for at, log_dir in log_dirs
        if at == number
        for directory in log_dir.directories
        if directory.name == METADATA_DIRECTORY
    ]
    if not found:
        return None
    log_dir, directory = found[0]
    path = join(log_dir.path, directory.name)
    folder = one.root / path
    content = directory.content()
    disk = DirectoryOnDisk(folder, content.files, content.folders, read=reads.setdefault(folder, {}), scans=scans)
    rules = loading_rules(version)
    outcome = disk.load(
        clean_shutdown=False, recovery_point=0, log_start_offset=0, settings=LoadSettings(), rules=rules
    )
    load = MetadataLoad(
        node=node,
        input=number,
        path=path,
        log_end_offset=Absent.UNKNOWN,
        snapshot_end=Absent.NOT_APPLICABLE,
        lost=LostRecords(),
    )
    if is_inferred and (newer := newer_file(disk)):
        outcome = Unpredictable(newer)
    try:
        refusal, quorum = _quorum_refusal(one, join(path, "quorum-state"), content, version)
    except EvidenceError as error:
        return MetadataStart(replace(load, unknown=f"quorum-state: {error.problem}"), None)
    if isinstance(outcome, Unpredictable):
        return MetadataStart(replace(load, unknown=outcome.reason), refusal)
    if disk.unreadable and not isinstance(outcome.failure, Absent):
        name, why = min(disk.unreadable.items())
        return MetadataStart(replace(load, unknown=f"{name}: {why}"), refusal)
    if not isinstance(outcome.failure, Absent):
        failure = outcome.failure
        return MetadataStart(load, refusal or Refusal(failure.exception, f"{path}: {failure.message}"))
    opened, inconsistent, _ = _opened(load, disk, content, outcome)
    topic_id = topic_id_of(disk)
    if isinstance(topic_id, str) and not isinstance(topic_id, Absent) and topic_id != _TOPIC_ID:
        words = f"{path}: its partition.metadata names topic id {topic_id}, and that of the metadata log is {_TOPIC_ID}"
        refusal = refusal or Refusal("InconsistentTopicIdException", words)
    if quorum is not None and refusal is None:
        own = () if isinstance(outcome.state, Absent) else outcome.state.epochs
        led = (*(epoch for _, epoch in _snapshots(content.files)), *(one.leader_epoch for one in own))
        refusal = refuse_quorum_state(
            quorum,
            configured_voters,
            version,
            node_id=node_id,
            is_controller=is_controller,
            last_epoch=max((one for one in led if isinstance(one, int)), default=0),
        )
    try:
        unread, words, level = _unread_snapshot(
            folder, content, version, is_controller=is_controller, names_voters=not configured_voters
        )
    except EvidenceError as error:
        unread, words, level = None, error.problem, Absent.UNKNOWN
    bootstrap, unread_bootstrap = None, ""
    if version >= _FIRST_WITH_BOOTSTRAP:
        is_applied = version < _FIRST_WITHOUT_BOOTSTRAP or not opened.log_end_offset
        bootstrap, unread_bootstrap = _bootstrap_refusal(one, log_dir.path, version, is_applied=is_applied)
    opened, refusal = replace(opened, unknown=words or unread_bootstrap), bootstrap or refusal or unread
    epochs = [each.broker_epoch for each in one.log_dirs]
    lost_before = _lost_before(opened, content, epochs)
    return MetadataStart(replace(opened, lost_before=lost_before), refusal or inconsistent, level)


def _bootstrap_refusal(
    one: FoundInput, path: str, version: KafkaVersion, *, is_applied: bool
) -> tuple[Refusal | None, str]:
    """Return why `bootstrap.checkpoint` ends the start, and what of it can't be read, in words.

    Args:
        is_applied: the start takes its levels for those of the cluster, and does not only read them.
    """
    name = join(path, "bootstrap.checkpoint")
    if "bootstrap.checkpoint" not in {each.name for each in one.listings.of(path).entries}:
        return None, ""
    try:
        levels, refusal, strange = _bootstrap_levels(one.read_small(name))
    except EvidenceError as error:
        return None, f"{name}: {error.problem}"
    if refusal is None and not strange and (is_applied or not levels):
        refusal = refuse_bootstrap(levels, version)
    return refusal, f"{name}, which each start reads, {strange}" if strange else ""


def _bootstrap_levels(data: bytes) -> tuple[list[int], Refusal | None, str]:
    """Return the levels of metadata.version in `bootstrap.checkpoint` as a start reads them (`BatchFileReader`), what that throws, and what leaves it open, in words.

    It compares no checksum, and a batch that is cut short ends the file.
    """
    levels: list[int] = []
    position = 0
    while len(data) - position > _MAGIC:
        size = int.from_bytes(data[position + 8 : position + 12], signed=True)
        if size < _LEAST_BATCH:
            words = f"Found record size {size} smaller than minimum record overhead ({_LEAST_BATCH}) in file bootstrap.checkpoint"
            return levels, Refusal("CorruptRecordException", words), ""
        batch = data[position : position + 12 + size]
        if len(batch) < 12 + size:
            break
        if size < BATCH_HEADER.length - 12 or not 2 <= batch[_MAGIC] < 128:
            return levels, None, f"has a batch at byte {position} that is none of a metadata log"
        try:
            for record in iter_batch_records(batch, position):
                message = parse_metadata_record(record.value or b"")
                if record.is_control:
                    continue
                if isinstance(message, Undecoded):
                    words = f"unable to deserialize record at offset {record.offset} of bootstrap.checkpoint: {message.reason}"
                    return levels, Refusal("RuntimeException", words), ""
                if message.fields.get("name") == METADATA_VERSION:
                    levels.append(message.fields["feature_level"])
        except FormatError as error:
            is_compressed = batch[CRC_COVERED_POSITION + 1] & CODEC_MASK
            exception = "KafkaException" if is_compressed else "InvalidRecordException"
            return levels, Refusal(exception, f"bootstrap.checkpoint: {error}"), ""
        position += len(batch)
    return levels, None, ""


_NO_HEADER = "begins with no header"


def _read_levels(file: EvidenceFile) -> tuple[list[int], str, str]:
    """Return the levels of metadata.version in a snapshot, why its first record that nobody knows is not understood, and how it is not as a controller writes it, in words."""
    levels: list[int] = []
    strange, at, header, footers = "", 0, -1, []
    for at, record in enumerate(one for one in iter_records(file) if not isinstance(one, Damage)):
        if record.is_control:
            kind = parse_control_record(record.key, record.value).type
            header = at if kind is ControlType.SNAPSHOT_HEADER and header < 0 else header
            footers += [at] if kind is ControlType.SNAPSHOT_FOOTER else []
            continue
        value = record.value or b""
        if value[:1] == _FRAME and len(value) > 1 and value[1] in METADATA_TABLES and value[1] != _FEATURE_LEVEL:
            continue  # by far the most are of partitions
        message = parse_metadata_record(value)
        if isinstance(message, Undecoded):
            strange = strange or message.reason
        elif message.fields.get("name") == METADATA_VERSION:
            levels.append(message.fields["feature_level"])
    if header != 0:
        return levels, strange, _NO_HEADER
    return levels, strange, "" if footers == [at] else "does not end with its only footer"


def _lost_before(opened: MetadataLoad, content: DirectoryContent, broker_epochs: Sequence[int | Absent]) -> str:
    """Return what shows that records were missing before the start, in words; empty where nothing does."""
    files = [(parse_file_name(name), length, name) for name, length in content.files.items()]
    names = [(name, path) for name, _, path in files]
    if orphans := orphan_indexes(names):
        return f"{orphans[min(orphans)]} is there, and its segment is not"
    if none := lost_metadata_log(files):
        return f"{none.path} is there, and no segment"
    end = opened.log_end_offset
    cut = None if isinstance(end, Absent) else lost_metadata(end, broker_epochs)
    return f".kafka_cleanshutdown names the broker epoch {cut.last}, and it ends at {end}" if cut else ""


def _opened(
    load: MetadataLoad, disk: DirectoryOnDisk, content: DirectoryContent, outcome: LoadOutcome
) -> MetadataStart:
    """Return the log behind its recovery: dropped for a newer snapshot, or refused where it begins above every snapshot (KAFKA-14240)."""
    state = outcome.state
    assert not isinstance(state, Absent)
    snapshots = _snapshots(content.files)
    first = state.log_start_offset
    refusal = None
    if first > 0 and not any(end >= first for end, _ in snapshots):
        words = "Inconsistent snapshot state: there must be a snapshot at an offset larger then the current log start offset"
        refusal = Refusal("IllegalStateException", f"{words} {first}")
    last_epoch = state.epochs[-1].leader_epoch if state.epochs else 0
    newest_epoch, newest_end = max(((epoch, end) for end, epoch in snapshots), default=(-1, -1))
    if (newest_epoch, newest_end) > (last_epoch, state.log_end_offset):
        return MetadataStart(replace(load, log_end_offset=newest_end, snapshot_end=newest_end), refusal)
    pieces = lost_pieces(outcome, disk, log_start_offset=first, log_end_offset=Absent.UNKNOWN)
    return MetadataStart(replace(load, log_end_offset=state.log_end_offset, lost=LostRecords(pieces=pieces)), refusal)


def _unread_snapshot(
    folder: Path, content: DirectoryContent, version: KafkaVersion, *, is_controller: bool, names_voters: bool
) -> tuple[Refusal | None, str, int | Absent]:
    """Return why the newest snapshot, with which each node begins to read the metadata, ends the start; what makes it unknown, in words; and its metadata.version.

    Args:
        names_voters: the voters stand in it, and not in the settings: with an empty one a controller stays up and none leads.
    """
    level: int | Absent = Absent.UNKNOWN
    if misnamed := _refuse_snapshot_names((*content.files, *content.folders)):
        return misnamed, "", level
    snapshots = _snapshots((*content.files, *content.folders))
    if not snapshots:
        return None, "", level
    epoch, end = max((epoch, end) for end, epoch in snapshots)
    name = f"{end:020d}-{epoch:010d}.checkpoint"
    if name in content.folders:
        return Refusal("UncheckedIOException", f"{name} is a directory: Failed to read records into memory"), "", level
    with open_evidence(folder / name) as file:
        whole, thrown = _end_of_batches(file)
        is_checked = is_controller and version >= _FIRST_THAT_READS_ALL
        if thrown and (is_checked or version >= FIRST_WITH_VOTERS_IN_LOG):
            return Refusal(thrown, f"{name}: its batch at byte {whole} is corrupt"), "", level
        if not whole and not thrown and is_checked and not names_voters:
            return Refusal("NoSuchElementException", f"{name} has no batch: No value present"), "", level
        if whole != file.size or not file.size:
            return None, f"{name}, with which it begins to read the metadata, is damaged or cut short", level
        levels, strange, shape = _read_levels(file)
    words = f"{name}, with which it begins to read the metadata, has a record that is not understood: {strange}"
    # One thread reads all of it before any other starts (`KRaftControlRecordStateMachine`).
    is_refused = bool(strange) and (is_checked or version >= FIRST_WITH_VOTERS_IN_LOG)
    refusal = Refusal("MetadataParseException", words) if is_refused else None
    if shape == _NO_HEADER and version >= _FIRST_THAT_READS_ALL:
        refusal = Refusal(
            "IllegalStateException", f"{name}: First batch is not a control batch with at least one record"
        )
    elif shape and not strange:
        return refusal, f"{name}, with which it begins to read the metadata, {shape}", next(reversed(levels), level)
    return refusal, words if strange and not is_refused else "", next(reversed(levels), level)


def _end_of_batches(file: EvidenceFile) -> tuple[int, str]:
    """Return where the batches of a snapshot end for its reader (`RecordsIterator`), and the exception that it throws there; none where it takes it for the end."""
    whole = 0
    for window in walk_segment(file, level=Level.CRC):
        for position, length, is_sound in window.batches[["position", "length", "crc_valid"]].tolist():
            if position != whole or not is_sound:
                break
            whole += length
    header = file.read(whole, HEADER_UP_TO_MAGIC)
    size, magic = int.from_bytes(header[8:12], signed=True), header[-1:]
    is_frame = size >= _LEAST_BATCH and magic <= bytes([NEWEST_MAGIC])
    if len(header) < HEADER_UP_TO_MAGIC or (is_frame and whole + 12 + size > file.size):
        return whole, ""
    return whole, "IllegalStateException" if is_frame and magic < bytes([NEWEST_MAGIC]) else "CorruptRecordException"


def _refuse_snapshot_names(names: Sequence[str]) -> Refusal | None:
    """Return why a name that ends like a snapshot's, and does not begin like one, ends the start (`Snapshots.parse`)."""
    for name in sorted(names):
        if not name.endswith((".checkpoint", ".checkpoint.part", ".checkpoint.deleted")):
            continue
        words = f"{name} in __cluster_metadata-0 is no name of a snapshot"
        if len(name) < _SNAPSHOT_NAME:
            return Refusal("StringIndexOutOfBoundsException", words)
        if not all(map(str.isdecimal, (name[:20], name[21:_SNAPSHOT_NAME]))):
            return Refusal("NumberFormatException", words)
    return None


def _snapshots(names: Iterable[str]) -> list[tuple[int, int]]:
    """End offset and epoch of each snapshot that is whole by its name."""
    parsed = [parse_file_name(name) for name in names]
    return [
        (one.base_offset, one.leader_epoch)
        for one in parsed
        if one.kind is FileKind.METADATA_SNAPSHOT
        and one.suffix is FileSuffix.NONE
        and isinstance(one.base_offset, int)
        and isinstance(one.leader_epoch, int)
    ]


_STATE_FIELDS: Mapping[int, Mapping[str, type]] = {
    0: {
        "clusterId": str,
        "leaderId": int,
        "leaderEpoch": int,
        "votedId": int,
        "appliedOffset": int,
        "currentVoters": list,
    },
    1: {"leaderId": int, "leaderEpoch": int, "votedId": int, "votedDirectoryId": str},
}
"""What `quorum-state` of each version has to have (`QuorumStateData`)."""


def _quorum_refusal(
    one: FoundInput, path: str, content: DirectoryContent, version: KafkaVersion
) -> tuple[Refusal | None, QuorumState | None]:
    """Return why a `quorum-state` that can't be read ends the start, or what it says; raise `EvidenceError` where it can't be read here."""
    for name in ("quorum-state.tmp", "quorum-state"):
        if name in content.folders:
            is_filled = bool(one.listings.of(path.removesuffix("quorum-state") + name).entries)
            is_refused = is_filled or (name == "quorum-state" and version >= FIRST_OF_QUORUM_STATE_1)
            if is_refused:
                return Refusal(
                    "UncheckedIOException", f"{path.removesuffix('quorum-state')}{name} is a directory"
                ), None
    if "quorum-state" not in content.files:
        return None, None
    try:
        fields = _first_object(one.read_small(path))
    except ValueError as error:
        # Before, what could not be read was removed, and the node began without (`QuorumState.initialize`).
        is_refused = version >= FIRST_OF_QUORUM_STATE_1
        return Refusal("UncheckedIOException", f"{path}: {error}") if is_refused else None, None
    written = fields["data_version"]
    number = int(written) if isinstance(written, int | float) and not isinstance(written, bool) else 0
    newest = 1 if version >= FIRST_OF_QUORUM_STATE_1 else 0
    if not 0 <= number <= newest:
        words = f"{path}: data_version {number} is newer than Kafka {version} reads"
        # Between, no number is looked at but by the fields, and what those of a later one are is not known here.
        if version < (3, 7):
            return Refusal("RuntimeException", words) if number == 1 else None, None
        return Refusal("IllegalStateException" if newest else "UnsupportedVersionException", words), None
    for name, kind in _STATE_FIELDS[number].items():
        if problem := _state_problem(fields, name, kind):
            return Refusal(problem, f"{path}: {name} is missing, or not what it has to be"), None
    if number and fields.get("currentVoters"):
        return Refusal("UnsupportedVersionException", f"{path}: version {number} has no currentVoters"), None
    state = parse_quorum_state(json.dumps({**fields, "data_version": number}).encode())
    return None, replace(state, leader_id=fields["leaderId"]) if fields["leaderId"] < NO_ID else state


def _first_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object of the first line, whatever is behind it; raise `ValueError` where there is none with a data_version."""
    line = data.splitlines()[0] if data else b""
    try:
        fields, _ = json.JSONDecoder().raw_decode(line.decode().strip())
    except RecursionError as error:
        raise ValueError(error) from error
    if not isinstance(fields, dict) or "data_version" not in fields:
        raise ValueError("expected a JSON object with data_version")
    return fields


def _state_problem(fields: Mapping[str, object], name: str, kind: type) -> str:
    """Return what reading a field throws; empty where it is taken."""
    if name not in fields:
        return "RuntimeException"
    value = fields[name]
    if kind is int:
        bits = 63 if name == "appliedOffset" else 31
        is_number = isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits
        return "" if is_number else "NumberFormatException"
    if value is None and kind is list:
        return "NullPointerException"
    if not isinstance(value, kind):
        return "RuntimeException"
    voters = value if isinstance(value, list) else []
    problems = (_state_problem(one if isinstance(one, dict) else {}, "voterId", int) for one in voters)
    return next(filter(None, problems), "")
