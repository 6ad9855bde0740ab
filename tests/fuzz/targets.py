"""One harness a decoder: bytes in, nothing out; only errors of kforensics' own tree may leave a decoder, and those end here."""

import struct
from collections.abc import Callable
from itertools import islice

from kforensics.commands.sealing import check_signature
from kforensics.errors import KforensicsError
from kforensics.evidence.plain import to_plain
from kforensics.evidence.seal import ManifestReader
from kforensics.formats.checkpoint.json_files import parse_clean_shutdown, parse_quorum_state
from kforensics.formats.checkpoint.lines import parse_checkpoint, parse_leader_epoch_checkpoint
from kforensics.formats.checkpoint.properties import parse_meta_properties, parse_partition_metadata
from kforensics.formats.index import parse_offset_index, parse_producer_snapshot, parse_time_index, parse_txn_index
from kforensics.formats.log.batches import iter_batch_records, iter_message_records, with_right_crc
from kforensics.formats.log.records import parse_body_records
from kforensics.formats.log_lines.scan import scan_log
from kforensics.formats.log_lines.unwrap import looks_like_broker_log
from kforensics.formats.messages.control import parse_control_record
from kforensics.formats.messages.coordinators import (
    parse_assignment,
    parse_group_record,
    parse_share_record,
    parse_subscription,
    parse_txn_record,
)
from kforensics.formats.messages.metadata import parse_metadata_record
from kforensics.formats.messages.remote_log import parse_remote_log_record
from kforensics.formats.primitives.compression import decompress
from kforensics.formats.primitives.numbers import read_uvarint, read_varint, read_varlong
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.render.escape import escape_text
from kforensics.source.naming import parse_file_name, parse_partition_directory

HEADER_LENGTH = 61
DECOMPRESSED_LIMIT = 1 << 20


def segment(data: bytes) -> None:
    """As it lies on disk: most mutations fail the checksum, and resynchronisation is what is tried.

    The length of the input chooses one of the ways to read, since each costs a walk.
    """
    source = MemoryBytes(data)
    way = len(data) % 4
    if way == 3:
        for record in iter_records(source):
            to_plain(record)
        return
    end = 0
    for window in walk_segment(source, level=list(Level)[way]):
        assert window.span.position >= end, "windows overlap"
        end = window.span.end
        for damage in window.damage:
            assert 0 <= damage.span.position <= damage.span.end <= len(data), "damage outside of the file"
    assert end >= len(data), "bytes were skipped in silence"


def segment_repaired(data: bytes) -> None:
    """With checksums made right again, so that mutations get to the records."""
    segment(repaired(data))


def record_batch(data: bytes) -> None:
    if len(data) >= HEADER_LENGTH:
        for _ in iter_batch_records(with_right_crc(data), 0, DECOMPRESSED_LIMIT):
            pass


def message_set(data: bytes) -> None:
    for _ in iter_message_records(data, 0, DECOMPRESSED_LIMIT):
        pass


def records(data: bytes) -> None:
    count = int.from_bytes(data[:4], "big", signed=True)
    for _ in parse_body_records(data[4:], count):
        pass


def varint(data: bytes) -> None:
    for read in (read_uvarint, read_varint, read_varlong):
        read(data, 0, len(data))


def codec(number: int) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        decompress(number, data, DECOMPRESSED_LIMIT)

    return run


def key_and_value(parse: Callable[[bytes | None, bytes | None], object]) -> Callable[[bytes], None]:
    """The first two bytes split the input into key and value."""

    def run(data: bytes) -> None:
        if len(data) < 2:
            return
        (length,) = struct.unpack_from(">h", data)
        key = data[2 : 2 + max(length, 0)]
        value = data[2 + len(key) :]
        to_plain(parse(key, None if length < 0 else value))

    return run


def plain(parse: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """The value must also have a form in JSON."""

    def run(data: bytes) -> None:
        to_plain(parse(data))

    return run


def consumer_protocol(data: bytes) -> None:
    to_plain(parse_subscription(data))
    to_plain(parse_assignment(data))


def server_log(data: bytes) -> None:
    looks_like_broker_log(data)
    chunk = 1 + 8 * data[0] if data else 1
    pieces = (data[at : at + chunk] for at in range(0, len(data), chunk))
    # Repeated lines are folded within a window, so events are counted with what they stand for.
    whole, cut = (
        sum(1 + event.repeats for window in scan_log(one) for event in window.events) for one in ([data], pieces)
    )
    assert whole == cut, "the cut of the windows decides what is found"


def name(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    to_plain(parse_file_name(text))
    to_plain(parse_partition_directory(text))
    assert escape_text(text).isprintable()


def seal_manifest(data: bytes) -> None:
    for entry in islice(ManifestReader(iter(data.splitlines(keepends=True))).entries(), 10_000):
        to_plain(entry)


def signature(data: bytes) -> None:
    check_signature(data, _public_key(), sha256="0" * 64)


def _public_key():
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()


def repaired(data: bytes) -> bytes:
    """The segment with the checksum of each magic 2 batch of its length chain made right."""
    whole = bytearray(data)
    position = 0
    while position + HEADER_LENGTH <= len(whole):
        length = int.from_bytes(whole[position + 8 : position + 12], "big", signed=True) + 12
        if whole[position + 16] != 2 or length < HEADER_LENGTH or position + length > len(whole):
            break
        whole[position : position + length] = with_right_crc(bytes(whole[position : position + length]))
        position += length
    return bytes(whole)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "segment": segment,
    "segment-repaired": segment_repaired,
    "record-batch": record_batch,
    "message-set": message_set,
    "records": records,
    "varint": varint,
    "gzip": codec(1),
    "snappy": codec(2),
    "lz4": codec(3),
    "zstd": codec(4),
    "offset-index": plain(parse_offset_index),
    "time-index": plain(parse_time_index),
    "txn-index": plain(parse_txn_index),
    "producer-snapshot": plain(parse_producer_snapshot),
    "checkpoint": plain(parse_checkpoint),
    "leader-epoch-checkpoint": plain(parse_leader_epoch_checkpoint),
    "meta-properties": plain(parse_meta_properties),
    "partition-metadata": plain(parse_partition_metadata),
    "quorum-state": plain(parse_quorum_state),
    "clean-shutdown": plain(parse_clean_shutdown),
    "control-record": key_and_value(parse_control_record),
    "group-record": key_and_value(parse_group_record),
    "txn-record": key_and_value(parse_txn_record),
    "share-record": key_and_value(parse_share_record),
    "metadata-record": plain(parse_metadata_record),
    "remote-log-record": plain(parse_remote_log_record),
    "consumer-protocol": consumer_protocol,
    "server-log": server_log,
    "name": name,
    "seal-manifest": seal_manifest,
    "signature": signature,
}


def attempt(target: str, data: bytes) -> bool:
    """Run a target; whether the decoder took the input. Anything but an error of the tree is a defect and goes on up."""
    try:
        TARGETS[target](data)
    except KforensicsError:
        return False
    return True
