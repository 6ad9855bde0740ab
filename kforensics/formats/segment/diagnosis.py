"""Describe a damaged place as a `Damage`: the batch or the run of bytes, the lost offsets, and the cause if it can be shown."""

from functools import cache
from typing import NamedTuple

from kforensics.damage import Absent, BitFlip, Damage, DamageCause, DamageKind, Gravity, Span
from kforensics.errors import EvidenceUnreadable, newer_than_known
from kforensics.formats.log.batch_table import (
    BATCH_HEADER,
    CODEC_MASK,
    CRC_COVERED_POSITION,
    CRC_POSITION,
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MESSAGE_CRC_COVERED,
    NEWEST_MAGIC,
)
from kforensics.formats.primitives.word_buffer import SegmentBytes, first_nonzero, read_exactly
from kforensics.formats.segment.entries import SMALLEST_LENGTH
from kforensics.formats.segment.order import flip_between
from kforensics.formats.segment.resync import OFFSET_REACH, Expectation, SoundBatch, checksums_of, find_sound_batch
from kforensics.units import OffsetRange

# Locate a single flipped bit from a checksum alone.
#
# A CRC is linear: flipping the bit at distance m from the end of the data changes the checksum by a value that depends on m only, x^m in the CRC's own
# arithmetic. The difference of stored and computed checksum is therefore a discrete logarithm away from the place. Baby steps and giant steps find it: a
# table of the first 2^16 powers, and one multiplication by x^-65536 for every 8 KiB of the batch.


_BABY_STEPS = 1 << 16

CRC32C_REFLECTED = 0x82F63B78
CRC32_REFLECTED = 0xEDB88320


def locate_flipped_bit(syndrome: int, length: int, polynomial: int = CRC32C_REFLECTED) -> tuple[int, int] | None:
    """Find the one bit whose flip explains a wrong checksum: its byte among those covered and the bit in it, 0 the lowest; None if none does."""
    if syndrome == 0:
        return None
    powers = _powers(polynomial)
    tables = _giant_step(polynomial)
    for giant in range(length * 8 // _BABY_STEPS + 1):
        baby = powers.get(syndrome)
        if baby is not None:
            distance = giant * _BABY_STEPS + baby
            behind, bit = divmod(distance - 1, 8)
            if 0 <= behind < length:
                return length - 1 - behind, 7 - bit
        syndrome = (
            tables[0][syndrome & 0xFF]
            ^ tables[1][syndrome >> 8 & 0xFF]
            ^ tables[2][syndrome >> 16 & 0xFF]
            ^ tables[3][syndrome >> 24]
        )
    return None


@cache
def _powers(polynomial: int) -> dict[int, int]:
    """Exponents of the first powers of x, from 1 on: what one bit becomes after so many steps of the shift register."""
    powers = {}
    value = 1
    for exponent in range(1, _BABY_STEPS + 1):
        value = value >> 1 ^ (polynomial if value & 1 else 0)
        powers[value] = exponent
    return powers


@cache
def _giant_step(polynomial: int) -> tuple[list[int], ...]:
    """Multiplication by x to the power of minus the baby steps, as one table for each byte of the value."""
    images = [_step_back(1 << bit, polynomial) for bit in range(32)]
    for _ in range(_BABY_STEPS.bit_length() - 1):
        images = [_combined(images, image) for image in images]
    return tuple([_combined(images[8 * byte : 8 * byte + 8], value) for value in range(256)] for byte in range(4))


def _step_back(value: int, polynomial: int) -> int:
    """Undo one step of the shift register: the highest bit shows whether the step mixed in the polynomial."""
    return (value ^ polynomial) << 1 & 0xFFFFFFFF | 1 if value & 0x80000000 else value << 1


def _combined(images: list[int], value: int) -> int:
    """Return a linear map, given as the images of the bits, applied to a value."""
    combined = 0
    for bit, image in enumerate(images):
        if value >> bit & 1:
            combined ^= image
    return combined


PAGE_LENGTH = 4096
SECTOR_LENGTH = 512
_SHORTEST_ZEROS = 16
_MESSAGE_ATTRIBUTES = 0x0F
_ENOUGH_BATCHES = 2
"""Batches of a magic that is not known, one behind the other, which no damage makes."""
_LOOKED_INTO = 1 << 20
"""The most bytes of a damaged run that are searched for a cause."""


class Neighbours(NamedTuple):
    """The sound batches around a damaged place."""

    last_offset: int
    """The last offset of the sound batches before it, -1 for none."""
    next_good: SoundBatch | None
    next_base_offset: int | None


class Header(NamedTuple):
    """The bytes at a position, read as the header of an entry."""

    base_offset: int
    length: int
    """The length of the whole entry, with its offset and length fields."""
    magic: int
    last_offset: int
    attributes: int

    @property
    def is_message(self) -> bool:
        """Return whether it is plausible as a message of magic 0 or 1, whatever its length says."""
        return self.magic in (0, 1) and self.base_offset >= 0 and 0 <= self.attributes <= _MESSAGE_ATTRIBUTES

    @property
    def is_wrapper(self) -> bool:
        """Return whether it names a codec when it is read as a message."""
        return self.attributes & CODEC_MASK > 0


def read_header(source: SegmentBytes, position: int) -> Header | None:
    """Read the header of an entry at a position without checking it; None if the file ends before its magic."""
    head = read_exactly(source, position, BATCH_HEADER.length)
    if len(head) < HEADER_UP_TO_MAGIC:
        return None
    base_offset = int.from_bytes(head[:8], signed=True)
    length = int.from_bytes(head[8:12], signed=True) + LOG_OVERHEAD
    magic = int.from_bytes(head[16:17], signed=True)
    last_offset = base_offset
    attributes = int.from_bytes(head[HEADER_UP_TO_MAGIC : HEADER_UP_TO_MAGIC + 1], signed=True)
    if magic not in (0, 1) and len(head) == BATCH_HEADER.length:
        fields = BATCH_HEADER.struct.unpack(head)
        attributes, last_offset = fields[5], base_offset + fields[6]
    return Header(base_offset, length, magic, last_offset, attributes)


def is_likely(header: Header, near_offset: int) -> bool:
    """Return whether the offsets of a header could follow those known before.

    Args:
        near_offset: the last offset of the sound batches before it; a negative one asks only that the header agrees with itself.
    """
    near = near_offset if near_offset >= 0 else header.base_offset
    return (
        0 <= header.base_offset <= header.last_offset
        and abs(header.base_offset - near) < OFFSET_REACH > header.last_offset - header.base_offset
    )


def batch_damage(
    source: SegmentBytes, position: int, header: Header, stored: int, computed: int, around: Neighbours
) -> Damage:
    """Describe a batch whose extent is known and whose checksum is wrong.

    Args:
        around: the sound batches around it; without one behind it, and without a flipped bit that explains it, it is a torn tail.
    """
    span = Span(position, header.length)
    if (wrong_magic := _wrong_magic(source, span, header, around)) is not None:
        return wrong_magic
    cause = _flip_in_batch(source, position, header, stored, computed) or zero_page(source, span) or Absent.UNKNOWN
    return Damage(
        span=span,
        kind=DamageKind.CRC,
        expected=f"crc {stored:#010x}, as stored",
        found=f"crc {computed:#010x}",
        gravity=_tail_gravity(around, cause),
        offsets_lost=_offsets_lost(header, around),
        next_good=_next_good(around),
        cause=cause,
        checksums=(stored, computed),
    )


def run_damage(source: SegmentBytes, position: int, end: int, around: Neighbours) -> Damage:
    """Describe a run of bytes without a sound batch: one batch with a wrong header, a hole, a shifted or foreign write, or the torn tail of the file.

    Args:
        end: the position behind the run: that of the next sound batch, or the end of the file.

    Raises:
        EvidenceUnreadable: batches of a magic that is newer than known follow, up to the end.
    """
    if around.next_good is None:
        _require_known_magic(source, position, around)
    header = read_header(source, position)
    span = Span(position, end - position)
    if header is not None and (wrong_field := _wrong_header(source, span, header, around)) is not None:
        return wrong_field
    if around.next_good is None:
        return _tail(source, span, header, around)
    cause = _shift(span, header, around) or zero_page(source, span) or _foreign_page(source, span) or Absent.UNKNOWN
    kind, expected, found = _misfit(source, span, header)
    return Damage(
        span=span,
        kind=kind,
        expected=expected,
        found=found,
        offsets_lost=_offsets_lost(None, around),
        next_good=_next_good(around),
        cause=cause,
    )


def _require_known_magic(source: SegmentBytes, position: int, around: Neighbours) -> None:
    """Refuse a run of batches, one behind the other, whose magic is above 2: one alone behind sound batches is rather a flipped bit.

    Raises:
        EvidenceUnreadable: they are newer than known, so where the log ends is not known.
    """
    at, magic, count = position, 0, 0
    while count < _ENOUGH_BATCHES and (header := read_header(source, at)) is not None:
        if header.magic <= NEWEST_MAGIC or not HEADER_UP_TO_MAGIC <= header.length <= source.size - at:
            break
        at, magic, count = at + header.length, max(magic, header.magic), count + 1
    if count == _ENOUGH_BATCHES or (count == 1 and at == source.size and around.last_offset < 0):
        problem = f"at byte {position}: {newer_than_known('batch magic', magic, NEWEST_MAGIC)}"
        # What is walked need not be a file: bytes of a capture have no path.
        raise EvidenceUnreadable(str(getattr(source, "path", "")), problem)


def _misfit(source: SegmentBytes, span: Span, header: Header | None) -> tuple[DamageKind, str, str]:
    if header is None or not any(read_exactly(source, span.position, HEADER_UP_TO_MAGIC)):
        return DamageKind.ZEROS, "a batch", f"zeros at the start of {span.length} bytes without a sound batch"
    if header.magic not in SMALLEST_LENGTH:
        return DamageKind.MAGIC, "magic 0, 1 or 2", f"magic {header.magic}, and no sound batch in {span.length} bytes"
    smallest = SMALLEST_LENGTH[header.magic] + LOG_OVERHEAD
    if not smallest <= header.length <= source.size - span.position:
        room = source.size - span.position - LOG_OVERHEAD
        return DamageKind.LENGTH, f"a length of {smallest - LOG_OVERHEAD} to {room}", str(header.length - LOG_OVERHEAD)
    return DamageKind.CRC, "a sound batch", f"none in {span.length} bytes"


def _tail(source: SegmentBytes, span: Span, header: Header | None, around: Neighbours) -> Damage:
    """Return the end of a file behind its last sound batch."""
    lost: OffsetRange | Absent = Absent.UNKNOWN
    expected = "a batch or the end of the file"
    ends_within_batch = False
    gravity = Gravity.TORN_TAIL
    if first_nonzero(source, span.position, span.end) == span.end:
        kind, found, lost = (
            DamageKind.ZEROS,
            f"{span.length} zero bytes up to the end of the file",
            Absent.NOT_APPLICABLE,
        )
    elif (
        header is not None
        and header.magic in SMALLEST_LENGTH
        and header.length > span.length
        and is_likely(header, around.last_offset)
    ):
        kind, expected, found = DamageKind.TORN, f"a batch of {header.length} bytes", f"its first {span.length} bytes"
        ends_within_batch = True
        is_rising = around.last_offset < header.base_offset <= header.last_offset
        if is_rising and (header.magic < 2 or span.length >= BATCH_HEADER.length):
            lost = OffsetRange(header.base_offset, header.last_offset)
    elif header is None:
        kind, found = DamageKind.TORN, f"{span.length} bytes, too few for a batch"
        ends_within_batch = True
    else:
        kind, found = DamageKind.TORN, f"{span.length} bytes that are no batch, up to the end of the file"
        if (
            not span.position
            and header.magic not in SMALLEST_LENGTH
            and any(read_exactly(source, 0, HEADER_UP_TO_MAGIC))
        ):
            # A file that does not even begin like a batch is not what an append left unfinished.
            kind, gravity = DamageKind.MAGIC, Gravity.DAMAGE
    cause = (
        DamageCause(kind="torn-write", detail="the file ends within a batch")
        if ends_within_batch
        else zero_page(source, span)
    )
    return Damage(
        span=span,
        kind=kind,
        expected=expected,
        found=found,
        gravity=gravity,
        offsets_lost=lost,
        cause=cause or Absent.UNKNOWN,
    )


def _wrong_header(source: SegmentBytes, span: Span, header: Header, around: Neighbours) -> Damage | None:
    """One batch whose length or magic is wrong and whose checksum proves all the rest."""
    if header.length == span.length:
        return _wrong_magic(source, span, header, around)
    if header.magic not in SMALLEST_LENGTH or not is_likely(header, around.last_offset):
        return None
    if span.length < SMALLEST_LENGTH[header.magic] + LOG_OVERHEAD:
        return None
    if first_nonzero(source, span.position, span.end) == span.end:
        return None  # no checksum of zeros is zero
    stored, computed = checksums_of(source, span.position, span.length)
    if stored != computed:
        return None
    found, wanted = header.length - LOG_OVERHEAD, span.length - LOG_OVERHEAD
    flip = flip_between(span.position + 8, 4, found, wanted)
    return _header_damage(DamageKind.LENGTH, span, header, around, (found, wanted), flip)


def _wrong_magic(source: SegmentBytes, span: Span, header: Header, around: Neighbours) -> Damage | None:
    """Return a batch or message of right length whose checksum holds for another magic: that of a message covers it, that of a batch does not."""
    position = span.position + MESSAGE_CRC_COVERED
    if header.magic != 2 and span.length >= BATCH_HEADER.length:
        stored, computed = checksums_of(source, span.position, span.length, magic=2)
        if stored == computed:
            flip = flip_between(position, 1, header.magic, 2)
            return _header_damage(DamageKind.MAGIC, span, header, around, (header.magic, 2), flip)
    if header.magic not in (0, 1):
        stored, computed = checksums_of(source, span.position, span.length, magic=1)
        flipped = locate_flipped_bit(stored ^ computed, span.length - MESSAGE_CRC_COVERED, CRC32_REFLECTED)
        if flipped is not None and flipped[0] == 0:
            wanted = header.magic ^ 1 << flipped[1]
            return _header_damage(
                DamageKind.MAGIC,
                span,
                header,
                around,
                (header.magic, wanted),
                flip_between(position, 1, header.magic, wanted),
            )
    return None


def _header_damage(
    kind: DamageKind, span: Span, header: Header, around: Neighbours, values: tuple[int, int], flip: BitFlip | None
) -> Damage:
    found, wanted = values
    detail = f"the checksum holds with the {kind} {wanted}"
    return Damage(
        span=span,
        kind=kind,
        expected=f"{kind} {wanted}",
        found=f"{kind} {found}",
        offsets_lost=_offsets_lost(header, around),
        next_good=_next_good(around),
        cause=DamageCause(kind="bit-flip" if flip is not None else "header", detail=detail, flip=flip),
    )


def _flip_in_batch(
    source: SegmentBytes, position: int, header: Header, stored: int, computed: int
) -> DamageCause | None:
    """Return the single flipped bit that explains a checksum: in the covered bytes, or in the checksum itself."""
    is_batch = header.magic == 2
    covered = CRC_COVERED_POSITION if is_batch else MESSAGE_CRC_COVERED
    if (stored ^ computed).bit_count() == 1:
        flip = flip_between(position + (CRC_POSITION if is_batch else LOG_OVERHEAD), 4, stored, computed)
        return DamageCause(
            kind="bit-flip", detail="one flipped bit in the checksum itself; the rest is whole", flip=flip
        )
    polynomial = CRC32C_REFLECTED if is_batch else CRC32_REFLECTED
    flipped = locate_flipped_bit(stored ^ computed, header.length - covered, polynomial)
    if flipped is None:
        return None
    place, bit = flipped
    where = position + covered + place
    byte = read_exactly(source, where, 1)[0]
    flip = BitFlip(where, bit, byte, byte ^ 1 << bit)
    return DamageCause(
        kind="bit-flip",
        detail=f"one flipped bit explains the checksum: byte {flip.expected:#04x} became {byte:#04x}",
        flip=flip,
    )


def zero_page(source: SegmentBytes, span: Span) -> DamageCause | None:
    """Return the cause `zero-page` where zeros reach from one sector boundary of the file to another, or from one to the end of the run."""
    data = read_exactly(source, span.position, min(span.length, _LOOKED_INTO))
    for unit in (PAGE_LENGTH, SECTOR_LENGTH):
        first = -span.position % unit
        for start in range(first, len(data), unit):
            if start + unit <= len(data) and not any(data[start : start + unit]):
                end = start + unit
                while end + unit <= len(data) and not any(data[end : end + unit]):
                    end += unit
                name = "page" if unit == PAGE_LENGTH else "sector"
                detail = (
                    f"{end - start} zero bytes from byte {span.position + start} on, aligned to {name}s of {unit} bytes"
                )
                return DamageCause(kind="zero-page", detail=detail)
    last_boundary = (span.end - 1) // SECTOR_LENGTH * SECTOR_LENGTH - span.position
    if len(data) == span.length and 0 <= last_boundary <= len(data) - _SHORTEST_ZEROS and not any(data[last_boundary:]):
        detail = f"zeros from byte {span.position + last_boundary} on, where a sector of {SECTOR_LENGTH} bytes begins"
        return DamageCause(kind="zero-page", detail=detail)
    return None


def _foreign_page(source: SegmentBytes, span: Span) -> DamageCause | None:
    """Return a sound batch of magic 2 within a run that offers none to this log: its offsets are out of reach, so it was written for another."""
    batch = find_sound_batch(source, span.position + 1, span.end, Expectation(plain_from=source.size))
    if batch is None or batch.position + batch.length > span.end:
        return None
    page = batch.position // SECTOR_LENGTH * SECTOR_LENGTH
    detail = (
        f"a sound batch of another log, from offset {batch.base_offset} on, is at byte {batch.position}, "
        f"in what was written from byte {page} on or before"
    )
    return DamageCause(kind="foreign-page", detail=detail)


def _shift(span: Span, header: Header | None, around: Neighbours) -> DamageCause | None:
    """Return the cause `shift` if the next batch follows in offsets, but lies whole sectors away from the end of this one."""
    if header is None or around.next_good is None or header.last_offset + 1 != around.next_base_offset:
        return None
    moved = span.length - header.length
    if moved == 0 or moved % SECTOR_LENGTH:
        return None
    direction = "later" if moved > 0 else "earlier"
    return DamageCause(
        kind="shift", detail=f"the next batch begins {abs(moved)} bytes {direction} than the length of this one says"
    )


def _offsets_lost(header: Header | None, around: Neighbours) -> OffsetRange | Absent:
    """Return what the header claims, where it fits between the neighbours; else all that lies between them."""
    behind = around.next_base_offset
    if header is not None and around.last_offset < header.base_offset <= header.last_offset:
        fits = is_likely(header, around.last_offset) if behind is None else header.last_offset < behind
        if fits:
            return OffsetRange(header.base_offset, header.last_offset)
    if behind is None:
        return Absent.UNKNOWN
    return OffsetRange(around.last_offset + 1, behind - 1) if behind > around.last_offset + 1 else Absent.NOT_APPLICABLE


def _next_good(around: Neighbours) -> tuple[int, int] | Absent:
    if around.next_good is None or around.next_base_offset is None:
        return Absent.NOT_APPLICABLE
    return around.next_base_offset, around.next_good.position


def _tail_gravity(around: Neighbours, cause: DamageCause | Absent) -> Gravity:
    """Return the gravity: recovery truncates a place that no sound batch follows, but a single flipped bit is no unfinished write anywhere."""
    is_flip = isinstance(cause, DamageCause) and cause.flip is not None
    return Gravity.DAMAGE if around.next_good is not None or is_flip else Gravity.TORN_TAIL
