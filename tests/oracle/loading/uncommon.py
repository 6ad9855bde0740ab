"""Made partition directories of what brokers seldom leave: magic 0 and 1, compacted logs, wide gaps of offsets, odd producers, unfinished cleanings.

Batches are written out as bytes, so that a description needs nothing but edits.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from kforensics.formats.checkpoint.lines import encode_frame
from kforensics.formats.index import ProducerEntry, encode_producers
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT
from kforensics.formats.log.batches import Message, build_record_batch, encode_message_set, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.simulation.broker_files import SegmentFiles
from tests.oracle.loading.made import DAY_MS, EDITS, EPOCH_FILE, METADATA_FILE, NOW_MS, TOPIC_ID, Case, apply, files_of

GZIP = 1
DELETE_HORIZON_BIT = 0x40
MOVED_DIRECTORY = "orders-0.0a1b2c3d4e5f60718293a4b5c6d7e8f9-{}"
WIDE = (1 << 31) - 1


@dataclass(slots=True)
class _Batch:
    data: bytes
    base: int
    last: int
    timestamp: int
    epoch: int


@dataclass(slots=True)
class _Log:
    """A log while it is made up."""

    random: Random
    epoch: int = 0
    offset: int = 0

    def legacy(self, magic: int) -> _Batch:
        count, base, now = self.random.choice([1, 1, 2, 4]), self.offset, self.timestamp()
        stamp = now if magic else -1
        value = b"v" * self.random.choice([3, 40, 2000])
        messages = [Message(base + at, magic, 0, stamp, b"k", value) for at in range(count)]
        if self.random.random() < 0.4:
            data = encode_message_set(messages, codec=GZIP)
        else:
            count = 1
            data = encode_message_set(messages[:1])
        self.offset = base + count
        return _Batch(data, base, base + count - 1, stamp, -1)

    def timestamp(self) -> int:
        return self.random.choice([NOW_MS - 1000, NOW_MS - 3 * DAY_MS, NOW_MS - DAY_MS - 5, NOW_MS + DAY_MS, -1, 0])

    def sound(self, kind: str) -> _Batch:
        random, base, now = self.random, self.offset, self.timestamp()
        producer = random.choice([-1, -1, 1000, 1001, 1002])
        attributes = random.choice([0, 0, 0, GZIP, DELETE_HORIZON_BIT])
        more: dict[str, Any] = {}
        records = [(now + at, b"k", b"v" * random.choice([3, 40, 2000])) for at in range(random.choice([1, 1, 2, 5]))]
        if kind == "control":
            producer = random.choice([1000, 1000, 1001, 1002, -1])
            type_ = random.choice([ControlType.COMMIT, ControlType.ABORT])
            fields = {"version": 0, "coordinator_epoch": random.choice([0, 3, 3, 7])}
            key, value = encode_control_record(type_, fields)
            if random.random() < 0.1:
                key = random.choice([b"\0\0\0\x02", b"\0\0\0\x05", b"\0\0\0\x07", b"\0\0", b"", b"\0\x05\0\x01"])
            if random.random() < 0.1:
                value = random.choice([b"", b"\0\0", b"\0\x07\0\0\0\x09", b"\0\0\0\0\0\x09\0\0"])
            records = [(now, key, value)]
            attributes = CONTROL_BIT | random.choice([TRANSACTIONAL_BIT] * 5 + [0])
        elif kind == "txn" and producer >= 0:
            attributes |= TRANSACTIONAL_BIT
        if producer >= 0:
            more = {"producer_id": producer, "producer_epoch": random.choice([0, 1, 1, 2, 5])}
            more["base_sequence"] = random.choice([0, 1, 7, WIDE, -1])
        batch = build_record_batch(base, records, partition_leader_epoch=self.epoch, attributes=attributes, **more)
        last = base + batch.last_offset_delta
        if random.random() < 0.25:
            # Compaction keeps the last offset of a batch, and sometimes a batch without records.
            kept = tuple(one for one in batch.records if random.random() < 0.5)
            extra = random.choice([0, 0, 3])
            batch = replace(batch, records=kept, last_offset_delta=batch.last_offset_delta + extra)
            last += extra
        self.offset = last + 1
        return _Batch(encode_record_batch(batch), base, last, batch.max_timestamp, self.epoch)


def uncommon_case(random: Random) -> Case:
    """A directory that `random_case` does not make, with no to two edits."""
    log = _Log(random, epoch=random.choice([0, 0, 3]), offset=random.choice([0, 0, 0, 7, 1 << 33]))
    name = "orders-0"
    if random.random() < 0.12:
        name = MOVED_DIRECTORY.format(random.choice(["delete", "future", "stray"]))
    first = log.offset
    segments, epochs = _segments(log)
    case = Case(name=name, clean=random.random() < 0.5)
    files = _files(segments, is_clean=case.clean)
    files[EPOCH_FILE] = encode_frame(f"{epoch} {start}" for epoch, start in epochs)
    files[METADATA_FILE] = f"version: 0\ntopic_id: {TOPIC_ID}".encode()
    for offset in {log.offset, random.choice([base for base, _ in segments]), random.randint(first, log.offset)}:
        if offset and random.random() < 0.6:
            files[f"{offset:020d}.snapshot"] = _snapshot(random, log.offset)
    if random.random() < 0.3:
        _clean_up(random, files, segments)
    case.edits = [["write", at, data.hex()] for at, data in sorted(files.items())]
    case.recovery_point = log.offset if case.clean else random.choice([0, 0, random.randint(0, log.offset), log.offset])
    if random.random() < 0.2:
        case.log_start = random.choice([random.randint(0, log.offset), log.offset, log.offset + 10, 1])
    case.edits += [["remove", one] for one in sorted(files_of(Case()).keys() - files.keys())]
    for _ in range(random.choice([0, 0, 0, 1, 1, 2])):
        for edit in random.choice(list(EDITS.values()))(random, files, case):
            case.edits.append(edit)
            apply(files, edit)
    if random.random() < 0.1:
        case.edits.append(["folder", random.choice(_FOLDERS).format(log.offset, segments[-1][0])])
    return case


_FOLDERS = (
    "{0:020d}.snapshot",
    "{1:020d}.snapshot",
    "{1:020d}.txnindex",
    "{1:020d}.log",
    "leader-epoch-checkpoint",
    "partition.metadata",
    "x.log",
    "7.log.deleted",
)


def _segments(log: _Log) -> tuple[list[tuple[int, list[_Batch]]], list[tuple[int, int]]]:
    random = log.random
    is_legacy = random.random() < 0.35
    magic, wide = random.choice([0, 1]), random.random() < 0.2
    segments: list[tuple[int, list[_Batch]]] = [(log.offset, [])]
    epochs: list[tuple[int, int]] = []
    for _ in range(random.choice([0, 1, 3, 6, 12, 20])):
        if is_legacy and random.random() < 0.2:
            magic = min(magic + 1, 2)
            is_legacy = magic < 2
        if random.random() < 0.2:
            log.offset += random.choice([1, 2, 30])
        if wide and random.random() < 0.2:
            log.offset += random.choice([WIDE - 3, WIDE, WIDE + 1, 1 << 32])
        if segments[-1][1] and random.random() < 0.25:
            segments.append((log.offset - random.choice([0, 0, 0, 0, 1]), []))
        if random.random() < 0.15:
            log.epoch += random.choice([1, 1, 2, -1])
        batch = log.legacy(magic) if is_legacy else log.sound(random.choice(["plain", "txn", "control"]))
        segments[-1][1].append(batch)
        if batch.epoch >= 0 and (not epochs or epochs[-1][0] < batch.epoch):
            epochs.append((batch.epoch, batch.base))
    return segments, epochs


def _files(segments: list[tuple[int, list[_Batch]]], *, is_clean: bool) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for at, (base, batches) in enumerate(segments):
        made = SegmentFiles(base)
        for batch in batches:
            if batch.last - base <= WIDE:
                made.append(batch.data, last_offset=batch.last, timestamp_ms=batch.timestamp)
            else:
                made.log += batch.data
        with TemporaryDirectory() as folder:
            made.write(Path(folder), is_closed=is_clean or at + 1 < len(segments))
            files |= {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    return files


def _snapshot(random: Random, end: int) -> bytes:
    entries = [
        ProducerEntry(
            1000 + at,
            random.choice([0, 1, 1, 2]),
            random.choice([-1, 0, 9]),
            random.randint(-1, min(end, 1 << 20)),
            random.choice([0, 2]),
            random.choice([NOW_MS - 1000, NOW_MS - 3 * DAY_MS, NOW_MS - 8 * DAY_MS, -1]),
            random.choice([-1, 0, 3]),
            random.choice([-1, -1, -1, random.randint(0, end)]),
        )
        for at in range(random.choice([0, 1, 3]))
    ]
    return encode_producers(entries)


def _clean_up(random: Random, files: dict[str, bytes], segments: list[tuple[int, list[_Batch]]]) -> None:
    """Leave what the cleaner leaves when it is stopped: a group of segments written anew, the old ones deleted in part."""
    first = random.randrange(len(segments))
    group = segments[first : first + random.choice([1, 2, 3])]
    batches = [one for _, each in group for one in each if random.random() < 0.7]
    made = _files([(group[0][0], batches)], is_clean=True)
    ending = random.choice([".cleaned", ".swap", ".swap"])
    left = sorted(made)
    if random.random() < 0.3:
        left = [one for one in left if random.random() < 0.7]
    for name in left:
        files[name + (random.choice([".cleaned", ".swap"]) if random.random() < 0.1 else ending)] = made[name]
    if ending == ".swap":
        for base, _ in group:
            if random.random() < 0.6:
                for name in [
                    one for one in files if one.startswith(f"{base:020d}.") and one.endswith(("log", "index"))
                ]:
                    if random.random() < 0.8:
                        files[f"{name}.deleted"] = files.pop(name)
