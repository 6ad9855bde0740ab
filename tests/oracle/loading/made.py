"""Made partition directories: a description that fits in a line of JSON, the files that it stands for, and random descriptions.

A description has batches, where segments begin, how the broker was stopped, and edits of files. Its files are written by the project's encoders.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kforensics.formats.checkpoint.lines import encode_frame
from kforensics.formats.index import AbortedTransaction, ProducerEntry, encode_aborted_transactions, encode_producers
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT
from kforensics.formats.log.batches import Message, build_record_batch, encode_message_set, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.simulation.broker_files import SegmentFiles

NOW_MS = 1_790_000_000_000
DAY_MS = 86_400_000
FOLDER = bytes(bytearray(b"a directory"))
"""Stands for a directory of that name; told from bytes by identity."""
TOPIC_ID = "Zn7nXw1aQ6uO0t0zMfDkyw"
EPOCH_FILE, METADATA_FILE = "leader-epoch-checkpoint", "partition.metadata"


@dataclass
class Case:
    """One directory and how it is loaded; `edits` are applied in their order."""

    batches: list[list[Any]] = field(default_factory=list)
    """Records, bytes of each value, leader epoch, producer (-1: none), kind (plain, txn, commit, abort), milliseconds ago."""
    rolls: list[int] = field(default_factory=list)
    """Indices of batches that begin a segment."""
    clean: bool = True
    recovery_point: int = 0
    log_start: int = 0
    name: str = "orders-0"
    magic: int = 2
    """Of the batches; below 2 a batch of a transaction stands for a compressed message."""
    edits: list[list[Any]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        plain = asdict(self)
        if self.magic == 2:
            del plain["magic"]
        return plain


def files_of(case: Case) -> dict[str, bytes]:
    """The files before any edit."""
    return _Maker(case).make()


def edited_files(case: Case) -> dict[str, bytes]:
    files = files_of(case)
    for edit in case.edits:
        apply(files, edit)
    return files


def write_files(files: dict[str, bytes], folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, data in files.items():
        if data is FOLDER:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(data)


class _Maker:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.files: dict[str, bytes] = {}
        self.segments: list[SegmentFiles] = [SegmentFiles(0)]
        self.aborted: dict[int, list[AbortedTransaction]] = {}
        self.producers: dict[int, list[int]] = {}

    def make(self) -> dict[str, bytes]:
        offset = 0
        epochs: list[tuple[int, int]] = []
        for at, (count, size, epoch, producer, kind, age) in enumerate(self.case.batches):
            if at in self.case.rolls and self.segments[-1].log:
                self.segments.append(SegmentFiles(offset))
                self._snapshot(offset)
            if not epochs or epochs[-1][0] != epoch:
                epochs.append((epoch, offset))
            data, last = self._batch(offset, count, size, epoch, producer, kind, NOW_MS - age)
            self.segments[-1].append(data, last_offset=last, timestamp_ms=NOW_MS - age)
            offset = last + 1
        self.end = offset
        if self.case.clean:
            self._snapshot(offset)
        self.files[EPOCH_FILE] = encode_frame(f"{epoch} {start}" for epoch, start in epochs)
        self.files[METADATA_FILE] = f"version: 0\ntopic_id: {TOPIC_ID}".encode()
        self._write_segments()
        return self.files

    def _batch(
        self, offset: int, count: int, size: int, epoch: int, producer: int, kind: str, now: int
    ) -> tuple[bytes, int]:
        if self.case.magic < 2:
            timestamp = now if self.case.magic else -1
            messages = [Message(offset + at, self.case.magic, 0, timestamp, b"k", b"v" * size) for at in range(count)]
            return encode_message_set(messages, codec=int(kind != "plain")), offset + count - 1
        state = self.producers.setdefault(producer, [-1, -1, 0, 0, -1, -1]) if producer >= 0 else None
        if kind in ("commit", "abort"):
            assert state is not None
            key, value = encode_control_record(ControlType(kind), {"version": 0, "coordinator_epoch": 3})
            batch = build_record_batch(
                offset,
                [(now, key, value)],
                partition_leader_epoch=epoch,
                attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
                producer_id=1000 + producer,
                producer_epoch=1,
            )
            if state[5] >= 0 and kind == "abort":
                self.aborted.setdefault(self.segments[-1].base_offset, []).append(
                    AbortedTransaction(0, 1000 + producer, state[5], offset, offset + 1)
                )
            state[3], state[4], state[5] = now, 3, -1
            return encode_record_batch(batch), offset
        records = [(now, b"k", b"v" * size) for _ in range(count)]
        extra: dict[str, Any] = {}
        if state is not None:
            extra = {"producer_id": 1000 + producer, "producer_epoch": 1, "base_sequence": state[0] + 1}
            state[0] += count
            state[1], state[2], state[3] = offset + count - 1, count - 1, now
            if kind == "txn":
                extra["attributes"] = TRANSACTIONAL_BIT
                state[5] = offset if state[5] < 0 else state[5]
        return encode_record_batch(
            build_record_batch(offset, records, partition_leader_epoch=epoch, **extra)
        ), offset + count - 1

    def _snapshot(self, offset: int) -> None:
        if offset:
            entries = [
                ProducerEntry(1000 + at, 1, last, end, delta, now, coordinator, start)
                for at, (last, end, delta, now, coordinator, start) in self.producers.items()
            ]
            self.files[f"{offset:020d}.snapshot"] = encode_producers(entries)

    def _write_segments(self) -> None:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            for segment in self.segments:
                segment.write(Path(folder), is_closed=self.case.clean or segment is not self.segments[-1])
            for path in Path(folder).iterdir():
                self.files[path.name] = path.read_bytes()
        for base, entries in self.aborted.items():
            self.files[f"{base:020d}.txnindex"] = encode_aborted_transactions(entries)


def apply(files: dict[str, bytes], edit: list[Any]) -> None:
    """One edit of the files; an edit of a file that is not there changes nothing."""
    kind, name, *rest = edit
    data = files.get(name)
    match kind:
        case "write":
            files[name] = bytes.fromhex(rest[0])
            return
        case "folder":
            files[name] = FOLDER
            return
        case _ if data is None:
            return
    match kind:
        case "flip":
            at, bit = rest
            if at < len(data):
                files[name] = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
        case "cut":
            files[name] = data[: rest[0]]
        case "append":
            files[name] = data + bytes.fromhex(rest[0])
        case "zeros":
            files[name] = data + bytes(rest[0])
        case "blank":
            at, length = rest
            files[name] = data[:at] + bytes(len(data[at : at + length])) + data[at + length :]
        case "insert":
            at, text = rest
            files[name] = data[:at] + bytes.fromhex(text) + data[at:]
        case "drop":
            at, length = rest
            files[name] = data[:at] + data[at + length :]
        case "remove":
            del files[name]
        case "rename":
            files[rest[0]] = files.pop(name)
        case "copy":
            files[rest[0]] = data
        case "exchange":
            first, second, length = rest
            a, b = data[first : first + length], data[second : second + length]
            files[name] = data[:first] + b + data[first + length : second] + a + data[second + length :]
        case _:
            raise AssertionError(kind)


def _lines(count: int, *, size: int = 3000) -> list[list[Any]]:
    return [[1, size, 0, -1, "plain", 1000 - at] for at in range(count)]


def _length(case: Case, name: str = f"{0:020d}.log") -> int:
    return len(files_of(case)[name])


def targeted_cases() -> list[Case]:
    """Directories for what chance seldom finds."""
    log, index = f"{0:020d}.log", f"{0:020d}.index"
    one = len(files_of(Case(batches=_lines(1)))[log])
    six = _lines(6)
    open_then_plain = [[1, 5, 0, 1, "txn", 900], [1, 5, 0, 1, "plain", 800]]
    transactions = [
        [2, 5, 0, 1, "txn", 900],
        [1, 5, 0, 2, "txn", 800],
        [1, 5, 0, 1, "abort", 700],
        [1, 5, 1, 2, "abort", 600],
    ]
    past_end = encode_producers([ProducerEntry(1001, 1, 0, 5, 0, NOW_MS, -1, 900)]).hex()
    return [
        # A batch that belongs further back in a segment whose name is so far above its offsets that relative ones wrap: before 1.1 its index stays.
        Case(
            batches=six,
            clean=False,
            edits=[
                ["exchange", log, one, 4 * one, one],
                ["rename", log, f"{1 << 40:020d}.log"],
                ["write", f"{1 << 40:020d}.index", "0000000500000000"],
            ],
        ),
        # A batch that belongs further back, two index entries apart: the segment is emptied.
        Case(batches=six, clean=False, edits=[["exchange", log, one, 4 * one, one]]),
        Case(batches=six, clean=False, edits=[["exchange", log, 0, 4 * one, one]]),
        Case(batches=_lines(9), rolls=[6], clean=False, edits=[["exchange", log, one, 4 * one, one]]),
        Case(
            batches=six,
            rolls=[3],
            clean=False,
            recovery_point=3,
            edits=[["exchange", log, 0, one, one], ["remove", index]],
        ),
        # The same where the missing index calls for the scan: it ends the start.
        Case(batches=six, edits=[["exchange", log, one, 4 * one, one], ["remove", index]]),
        Case(batches=open_then_plain, clean=False),
        Case(batches=open_then_plain, clean=True, edits=[["remove", f"{2:020d}.snapshot"]]),
        Case(
            batches=[*open_then_plain, *_lines(2)],
            rolls=[2],
            clean=True,
            edits=[["remove", f"{4:020d}.snapshot"], ["flip", f"{2:020d}.snapshot", 3, 1]],
        ),
        Case(batches=transactions, clean=False),
        Case(batches=transactions, rolls=[2], clean=False, recovery_point=5),
        Case(batches=transactions, rolls=[3], clean=True, edits=[["remove", f"{3:020d}.index"]]),
        # An open transaction that begins past the log end, of a snapshot.
        Case(batches=_lines(3, size=5), edits=[["write", f"{3:020d}.snapshot", past_end]]),
        # Epochs that can't be entered, and a half-written file of them.
        Case(
            batches=[[1, 5, 2, -1, "plain", 10]],
            clean=False,
            edits=[["write", EPOCH_FILE + ".tmp", "00"], ["remove", EPOCH_FILE]],
        ),
        Case(batches=_lines(4, size=5), clean=False, log_start=2, edits=[["write", EPOCH_FILE + ".tmp", "00"]]),
        Case(batches=_lines(4, size=5), clean=False, edits=[["flip", log, 0, 7]]),
        # Offsets that lie below the name of their segment, with and without an index entry.
        Case(batches=six, clean=False, edits=[["rename", log, f"{4:020d}.log"]]),
        Case(batches=_lines(3, size=5), clean=False, edits=[["copy", log, f"{2:020d}.log"]]),
        # Both names of one snapshot, the later one too long.
        Case(batches=[[2, 5, 0, 0, "plain", 10]], name="orders", edits=[]),
        Case(batches=_lines(2), name="-0"),
        Case(batches=_lines(2), name="orders-x"),
        Case(batches=_lines(2), name="orders-0.x-future"),
        Case(batches=_lines(2), name="orders-0-stray"),
        Case(batches=[], clean=True),
        Case(batches=[], clean=False, log_start=7),
        Case(batches=six, clean=True, edits=[["append", log, "00" * 30]]),
        Case(batches=six, clean=True, edits=[["write", index, "0000000100000bb9"]]),
        Case(
            batches=six,
            rolls=[3],
            clean=True,
            edits=[
                ["remove", f"{3:020d}.snapshot"],
                ["remove", f"{6:020d}.snapshot"],
                ["write", index, "0000000200000bb9"],
            ],
        ),
        Case(
            batches=[[1, 3000, 0, 0, "plain", 9], *six],
            rolls=[4],
            clean=False,
            recovery_point=5,
            edits=[["remove", f"{4:020d}.snapshot"], ["write", index, "0000000200000bb9"]],
        ),
        Case(
            batches=[[1, 3000, 0, 0, "plain", 9], *six],
            rolls=[4],
            clean=False,
            recovery_point=5,
            edits=[["remove", f"{4:020d}.snapshot"], ["write", index, "0000000400002bb9"]],
        ),
    ]


def random_case(random: Random) -> Case:
    """A directory with no to four edits."""
    case = _history(random)
    files = files_of(case)
    end = _end(case)
    case.clean = random.random() < 0.5
    if case.clean:
        case.recovery_point = end
    else:
        case.recovery_point = random.choice([0, 0, random.randint(0, end), end, end + 5])
    if random.random() < 0.2:
        case.log_start = random.choice([random.randint(0, end), end, end + 10, 1])
    files = files_of(case)
    for _ in range(random.choice([0, 1, 1, 1, 1, 2, 2, 3, 4])):
        kind = random.choice(list(EDITS.values()))
        for edit in kind(random, files, case):
            case.edits.append(edit)
            apply(files, edit)
    return case


def _end(case: Case) -> int:
    return sum(count for count, *_ in case.batches)


def _history(random: Random) -> Case:
    case = Case(name=random.choice(["orders-0"] * 9 + ["orders-0.0a1b2c3d4e5f60718293a4b5c6d7e8f9-delete"]))
    epoch, open_producers = 0, set()
    size = random.choice([5, 5, 40, 900, 3000])
    age = random.choice([1000, 3 * DAY_MS, DAY_MS + 5])
    for at in range(random.choice([0, 1, 2, 5, 8, 12, 20])):
        if random.random() < 0.15:
            epoch += random.randint(1, 3)
        if at and random.random() < 0.3:
            case.rolls.append(at)
        producer = random.choice([-1, -1, 0, 1, 2])
        kind = "plain"
        if producer >= 1:
            kind = "txn"
            if producer in open_producers and random.random() < 0.5:
                kind = random.choice(["commit", "abort"])
                open_producers.discard(producer)
            else:
                open_producers.add(producer)
        count = 1 if kind in ("commit", "abort") else random.choice([1, 1, 2, 5])
        case.batches.append([count, random.choice([size, size, 10]), epoch, producer, kind, age])
        age = max(age - random.randint(0, 1000), 0)
    return case


def _named(files: dict[str, bytes], *endings: str) -> list[str]:
    return sorted(name for name in files if name.endswith(endings))


def _pick(random: Random, files: dict[str, bytes], *endings: str) -> str | None:
    names = _named(files, *endings)
    return random.choice(names) if names else None


def _last(files: dict[str, bytes], ending: str) -> str | None:
    names = _named(files, ending)
    return names[-1] if names else None


def _starts(data: bytes) -> list[int]:
    """Where batches begin."""
    out, at = [], 0
    while at + 12 <= len(data):
        length = int.from_bytes(data[at + 8 : at + 12])
        if not 14 <= length <= len(data):
            break
        out.append(at)
        at += 12 + length
    return out


def _flip_log(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    return [["flip", name, random.randrange(len(files[name])), random.randrange(8)]] if name and files[name] else []


def _flip_header(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    starts = _starts(files[name]) if name else []
    return [["flip", name, random.choice(starts) + random.randrange(61), random.randrange(8)]] if starts else []


def _flip_offset(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    starts = _starts(files[name]) if name else []
    return [["flip", name, random.choice(starts) + random.choice([4, 5, 6, 7]), random.randrange(8)]] if starts else []


def _flip_epoch(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    starts = _starts(files[name]) if name else []
    return (
        [["flip", name, random.choice(starts) + random.choice([12, 14, 15, 15]), random.randrange(8)]] if starts else []
    )


def _cut_log(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    return [["cut", name, random.randrange(len(files[name]) + 1)]] if name else []


def _cut_last(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _last(files, ".log")
    return [["cut", name, random.randrange(len(files[name]) + 1)]] if name else []


def _zeros(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _last(files, ".log") if random.random() < 0.7 else _pick(random, files, ".log")
    return [["zeros", name, random.choice([1, 5, 16, 17, 18, 30, 100, 4096])]] if name else []


def _garbage(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _last(files, ".log") if random.random() < 0.7 else _pick(random, files, ".log")
    return [["append", name, random.randbytes(random.choice([3, 17, 18, 40, 100])).hex()]] if name else []


def _half_batch(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _last(files, ".log")
    if not name or not files[name]:
        return []
    start = _starts(files[name])[-1:] or [0]
    batch = files[name][start[0] :]
    return [["append", name, batch[: random.randrange(len(batch) + 1)].hex()]]


def _blank(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    if not name or not files[name]:
        return []
    at = random.randrange(len(files[name]))
    return [["blank", name, at, random.choice([8, 64, 512, 1 << 20])]]


def _drop_batch(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log") or ""
    starts = _starts(files.get(name, b""))
    if not starts:
        return []
    at = random.randrange(len(starts))
    end = starts[at + 1] if at + 1 < len(starts) else len(files[name])
    return [["drop", name, starts[at], end - starts[at]]]


def _exchange(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    starts = _starts(files[name]) if name else []
    ends = [*starts[1:], len(files[name])] if name else []
    pairs = [(a, b) for i, a in enumerate(starts) for j, b in enumerate(starts) if i < j and ends[i] - a == ends[j] - b]
    if not pairs:
        return []
    first, second = random.choice(pairs)
    return [["exchange", name, first, second, ends[starts.index(first)] - first]]


def _remove(*endings: str):
    def kind(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
        name = _pick(random, files, *endings)
        return [["remove", name]] if name else []

    return kind


def _remove_all(*endings: str):
    def kind(_r: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
        return [["remove", name] for name in _named(files, *endings)]

    return kind


def _empty(*endings: str):
    def kind(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
        name = _pick(random, files, *endings)
        return [["cut", name, 0]] if name else []

    return kind


def _flip(*endings: str):
    def kind(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
        name = _pick(random, files, *endings)
        return [["flip", name, random.randrange(len(files[name])), random.randrange(8)]] if name and files[name] else []

    return kind


def _cut(*endings: str):
    def kind(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
        name = _pick(random, files, *endings)
        return [["cut", name, random.randrange(len(files[name]) + 1)]] if name else []

    return kind


def _extend(*endings: str):
    def kind(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
        name = _pick(random, files, *endings)
        return [["zeros", name, random.choice([1, 8, 12, 34, 100, 4096])]] if name else []

    return kind


def _epoch_text(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    texts = [
        "0\n2\n0 0\n",
        "0\n1\n0 0",
        "",
        "0\n",
        "1\n1\n0 0\n",
        "0\nx\n0 0\n",
        "0\n-1\n",
        "0\n1\nx y\n",
        "0\n1\n0 0 0\n",
        "0\n1\n-1 0\n",
        "0\n1\n0 -4\n",
        "0\n2\n1 6\n0 0\n",
        "0\n2\n0 3\n1 3\n",
        "0\n1\n99999999999 6\n",
        "0\n0\n",
        "0\n1\n\n",
        "0\n3\n0 0\n4 2\n9 900\n",
        "0\r\n1\r\n0 1\r\n",
        "\x00\x00\x00",
        "0\n1\n7 0\n",
        "0\n1\n 0 0\n",
        "0\n1\n0 0 \n",
        "0\n1\n+1 1\n",
    ]
    return [["write", EPOCH_FILE, random.choice(texts).encode("latin-1").hex()]]


def _metadata_text(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    texts = [
        "",
        "version: 0",
        "version: 0\n",
        "version: 1\ntopic_id: " + TOPIC_ID,
        "version: 0\ntopic_id: garbage",
        "version: 0\ntopic_id: " + "A" * 22,
        "topic_id: " + TOPIC_ID + "\nversion: 0",
        "version:0\ntopic_id: " + TOPIC_ID,
        "version: -1\ntopic_id: " + TOPIC_ID,
        "version: x\n",
        "version: 0\ntopic_id: " + TOPIC_ID + "\nmore: 1\n",
        "version: 0\ntopic_id:\n",
        "\x00" * 40,
        "version: 0\ntopic_id: " + TOPIC_ID + "==",
        "version: 0\ntopic_id: " + "B" * 40,
    ]
    return [["write", METADATA_FILE, random.choice(texts).encode().hex()]]


def _suffix(ending: str):
    def kind(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
        name = _pick(random, files, ".log", ".index", ".timeindex", ".snapshot")
        if not name or name.endswith((".swap", ".cleaned", ".deleted")):
            return []
        return [[random.choice(["copy", "rename"]), name, name + ending]]

    return kind


def _suffix_segment(ending: str):
    def kind(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
        name = _pick(random, files, ".log")
        if not name:
            return []
        how = random.choice(["copy", "rename"])
        stem = name.removesuffix(".log")
        return [
            [how, one, one + ending] for one in (f"{stem}.log", f"{stem}.index", f"{stem}.timeindex") if one in files
        ]

    return kind


def _odd_name(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    names = [
        "abc.log",
        "x.index",
        "x.timeindex",
        "x.txnindex",
        "x.snapshot",
        "x.swap",
        "x.cleaned",
        "x.deleted",
        "notes.txt",
        ".log",
        "partition.metadata.tmp",
        "20.log",
        "5.log",
        "5.index",
        "5.snapshot",
        "00000000000000000099.log",
        "00000000000000000001.checkpoint.deleted",
        "remote_log_snapshot",
        "00000000000000000004.snapshot",
        "00000000000000000400.snapshot",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000000.log.swap",
        "99999999999999999999.index",
        "00000000000000000003.timeindex",
    ]
    return [["write", random.choice(names), random.choice(["", "00" * 8, "00" * 46])]]


def _extra_segment(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    if not name:
        return []
    base = int(name.split(".")[0]) if name.split(".")[0].isdigit() else 0
    return [["copy", name, f"{base + random.choice([1, 2, 3, 100]):020d}.log"]]


def _move_segment(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    if not name:
        return []
    base = int(name.split(".")[0]) if name.split(".")[0].isdigit() else 0
    return [["rename", name, f"{max(base + random.choice([1, 2, -1, 50]), 0):020d}.log"]]


def _remove_segment(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    if not name:
        return []
    stem = name.removesuffix(".log")
    return [
        ["remove", f"{stem}{ending}"]
        for ending in (".log", ".index", ".timeindex", ".txnindex")
        if f"{stem}{ending}" in files
    ]


def _old_snapshot(random: Random, files: dict[str, bytes], case: Case) -> list[list[Any]]:
    name = _pick(random, files, ".snapshot")
    return [["copy", name, f"{random.randint(0, _end(case) + 3):020d}.snapshot"]] if name else []


def _txn_index(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".log")
    if not name:
        return []
    entry = AbortedTransaction(random.choice([0, 0, 0, 256, 1, -1]), 1001, 0, random.choice([-1, 0, 3, 1000]), 0)
    return [
        [
            "write",
            name.removesuffix(".log") + ".txnindex",
            encode_aborted_transactions([entry]).hex() + random.choice(["", "00" * 5]),
        ]
    ]


def _wrong_point(random: Random, files: dict[str, bytes], case: Case) -> list[list[Any]]:
    case.recovery_point = random.randint(0, _end(case) + 20)
    return []


def _wrong_start(random: Random, files: dict[str, bytes], case: Case) -> list[list[Any]]:
    case.log_start = random.randint(0, _end(case) + 20)
    return []


def _bad_index(random: Random, files: dict[str, bytes], _: Case) -> list[list[Any]]:
    name = _pick(random, files, ".index") or ""
    log = name.removesuffix(".index") + ".log"
    if not name or log not in files:
        return []
    position = random.choice([0, random.randrange(len(files[log]) + 1), len(files[log]), 1 << 20])
    return [["write", name, (random.choice([0, 1, 3, 50]).to_bytes(4) + position.to_bytes(4)).hex()]]


EDITS = {
    "flip-log": _flip_log,
    "flip-header": _flip_header,
    "flip-offset": _flip_offset,
    "flip-epoch": _flip_epoch,
    "cut-log": _cut_log,
    "cut-last": _cut_last,
    "zeros": _zeros,
    "garbage": _garbage,
    "half-batch": _half_batch,
    "blank": _blank,
    "drop-batch": _drop_batch,
    "exchange": _exchange,
    "remove-log": _remove(".log"),
    "remove-index": _remove(".index"),
    "remove-time-index": _remove(".timeindex"),
    "remove-txn-index": _remove(".txnindex"),
    "remove-all-indexes": _remove_all(".index"),
    "remove-every-index": _remove_all(".index", ".timeindex", ".txnindex"),
    "remove-snapshot": _remove(".snapshot"),
    "remove-all-snapshots": _remove_all(".snapshot"),
    "remove-epochs": _remove(EPOCH_FILE),
    "remove-metadata": _remove(METADATA_FILE),
    "empty-log": _empty(".log"),
    "empty-index": _empty(".index"),
    "empty-time-index": _empty(".timeindex"),
    "empty-snapshot": _empty(".snapshot"),
    "empty-epochs": _empty(EPOCH_FILE),
    "flip-index": _flip(".index"),
    "flip-time-index": _flip(".timeindex"),
    "flip-snapshot": _flip(".snapshot"),
    "flip-txn-index": _flip(".txnindex"),
    "cut-index": _cut(".index", ".timeindex"),
    "cut-snapshot": _cut(".snapshot"),
    "cut-txn-index": _cut(".txnindex"),
    "extend-index": _extend(".index", ".timeindex"),
    "extend-snapshot": _extend(".snapshot", ".txnindex"),
    "epoch-text": _epoch_text,
    "metadata-text": _metadata_text,
    "swap": _suffix(".swap"),
    "cleaned": _suffix(".cleaned"),
    "deleted": _suffix(".deleted"),
    "swap-segment": _suffix_segment(".swap"),
    "clean-segment": _suffix_segment(".cleaned"),
    "delete-segment": _suffix_segment(".deleted"),
    "odd-name": _odd_name,
    "extra-segment": _extra_segment,
    "move-segment": _move_segment,
    "remove-segment": _remove_segment,
    "old-snapshot": _old_snapshot,
    "txn-index": _txn_index,
    "wrong-point": _wrong_point,
    "wrong-start": _wrong_start,
    "bad-index": _bad_index,
}
