"""`<offset>.snapshot`: the state of every idempotent producer after all records below that offset (KIP-98).

    header := version int16 (1), crc uint32, count int32                                              10 bytes
    entry  := producer_id int64, producer_epoch int16, last_sequence int32, last_offset int64, offset_delta int32,
              timestamp int64, coordinator_epoch int32, current_transaction_first_offset int64        46 bytes
    The CRC-32C covers everything behind itself: the count and the entries.

A log without such producers still has empty ones, of 10 bytes. Kafka: `ProducerStateManager` (0.11 and later, version
1 throughout). Its -1 in
`last_offset` (no batch, only markers), `last_sequence`, `coordinator_epoch` and `current_transaction_first_offset`
(none open) is kept in the entry:
replaying a log compares them as they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import UnexpectedEnd, require_known
from kforensics.formats.primitives.checksum import crc32c
from kforensics.formats.primitives.numbers import INT16, INT32, INT64, UINT32, FixedLayout
from kforensics.formats.primitives.text_lines import DamageList

HEADER_LAYOUT = FixedLayout(version=INT16, crc=UINT32, count=INT32)
ENTRY_LAYOUT = FixedLayout(
    producer_id=INT64,
    producer_epoch=INT16,
    last_sequence=INT32,
    last_offset=INT64,
    offset_delta=INT32,
    timestamp=INT64,
    coordinator_epoch=INT32,
    current_transaction_first_offset=INT64,
)
SNAPSHOT_HEADER_LENGTH = HEADER_LAYOUT.length
SNAPSHOT_ENTRY_LENGTH = ENTRY_LAYOUT.length
PRODUCER_SNAPSHOT_VERSION = 1
_CRC_COVERS_FROM = HEADER_LAYOUT.position_of("count")
NONE = -1


class ProducerEntry(NamedTuple):
    """The last batch of one producer, and its open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSnapshot:
    """The producers in the order of the file, and whether the checksum is right."""

    entries: tuple[ProducerEntry, ...] = ()
    crc: int | Absent = Absent.NOT_WRITTEN
    crc_valid: bool = True
    damage: tuple[Damage, ...] = field(default=())


def parse_producer_snapshot(data: bytes | memoryview) -> ProducerSnapshot:
    """Parse a producer snapshot (`ProducerStateManager.readSnapshot`); with a wrong checksum the entries are decoded all the same.

    Returns:
        As many whole entries as the file holds, whatever its count claims; a wrong count or checksum is damage.

    Raises:
        UnexpectedEnd: the file is shorter than its header (brokers up to 2.7 could leave it empty, KAFKA-9892).
        UnsupportedFormat: the version is not 1.
    """
    length = len(data)
    if length < SNAPSHOT_HEADER_LENGTH:
        raise UnexpectedEnd(
            Span(0, length), expected=f"a header of {SNAPSHOT_HEADER_LENGTH} bytes", found=f"{length} bytes"
        )
    version, stored, count = HEADER_LAYOUT.struct.unpack_from(data)
    known = PRODUCER_SNAPSHOT_VERSION
    require_known(Span(0, 2), "producer snapshot version", found=version, newest=known, oldest=known)
    damage = DamageList()
    computed = crc32c(data[_CRC_COVERS_FROM:])
    if computed != stored:
        damage.add(
            Span(0, length), DamageKind.CRC, expected=f"checksum {stored:08x}, as stored", found=f"{computed:08x}"
        )
    room = (length - SNAPSHOT_HEADER_LENGTH) // SNAPSHOT_ENTRY_LENGTH
    if length != SNAPSHOT_HEADER_LENGTH + count * SNAPSHOT_ENTRY_LENGTH:
        where = Span(_CRC_COVERS_FROM, 4)
        damage.add(
            where,
            DamageKind.COUNT,
            expected=f"a count for {length - SNAPSHOT_HEADER_LENGTH} bytes of entries",
            found=f"a count of {count}",
        )
    body = data[SNAPSHOT_HEADER_LENGTH : SNAPSHOT_HEADER_LENGTH + room * SNAPSHOT_ENTRY_LENGTH]
    entries = tuple(ProducerEntry(*values) for values in ENTRY_LAYOUT.struct.iter_unpack(body))
    return ProducerSnapshot(entries=entries, crc=stored, crc_valid=computed == stored, damage=damage.as_tuple())


def encode_producers(entries: Iterable[ProducerEntry]) -> bytes:
    """Encode a snapshot of these producers with its checksum (`ProducerStateManager.writeSnapshot`, version 1).

    Args:
        entries: written in their order, with Kafka's -1 for what a producer does not have.
    """
    body = [ENTRY_LAYOUT.struct.pack(*entry) for entry in entries]
    covered = HEADER_LAYOUT.struct.pack(PRODUCER_SNAPSHOT_VERSION, 0, len(body))[_CRC_COVERS_FROM:] + b"".join(body)
    return HEADER_LAYOUT.struct.pack(PRODUCER_SNAPSHOT_VERSION, crc32c(covered), len(body))[:_CRC_COVERS_FROM] + covered


def empty_file_damage() -> Damage:
    """Return the damage of a snapshot of 0 bytes, which a broker deletes when it loads the log to use an older one."""
    return Damage(
        span=Span(0, 0),
        kind=DamageKind.LENGTH,
        expected=f"a header of {SNAPSHOT_HEADER_LENGTH} bytes",
        found="an empty file",
        gravity=Gravity.REBUILDABLE,
    )
