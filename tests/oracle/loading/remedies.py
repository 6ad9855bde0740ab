"""Rows of `predict --ways-out` carried out on copies: a real broker is started on each, and consumers read what was predicted.

Run by hand: `python -m tests.oracle.loading.remedies --kafka 4.1.0` (Java 17, kafka-python, jars by Maven or `--jars`). One node with two log directories
is written to and stopped; each scenario damages a copy, and rows that are predicted for it are carried out on copies of that copy: the start as it is, the best,
a pair, and each kind of change that no scenario before had (`judge --ways-out` carries all of them out on the loader). Held against the row and against the start that is predicted of the changed copy: the outcome of each start, log starts and log ends, last stable offsets, and each record with
its offset and value, as consumers with read_uncommitted and read_committed are given them.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kforensics.ask.model import Ask
from kforensics.commands.predict import Prediction, run
from kforensics.damage import Absent
from kforensics.protocol.loading.node import Fate
from kforensics.reconcile.logs.predicted_load import ChangeKind, PredictedLog, VirtualChange, WayOut
from tests.oracle.client import create_topic
from tests.oracle.cluster import free_ports, wait_until
from tests.oracle.loading.brokers import START_SECONDS, STARTED, Node, jars_of, leads
from tests.oracle.loading.node_edits import write_text

DAY_MS = 86_400_000
TOPICS = ("plain", "txn", "aged", "whole")
SETTINGS = {"log.retention.ms": -1, "transaction.max.timeout.ms": 7 * DAY_MS, "log.retention.check.interval.ms": 3_000}
LEADER_SECONDS = 30
RETENTION_SECONDS = 45
"""Until retention has run, whose first run is 30 seconds after the start."""
Record = tuple[int, bytes]


@dataclass
class Read:
    """What is read of one partition."""

    start: int = 0
    end: int = 0
    stable: int = 0
    records: list[Record] = field(default_factory=list)
    committed: list[Record] = field(default_factory=list)


@dataclass
class Batch:
    """A batch by kafka-python."""

    file: str
    position: int
    base_offset: int
    last_offset: int
    producer_id: int
    is_control: bool
    is_transactional: bool
    is_abort: bool
    is_sound: bool
    records: list[Record]


def prepare(node: Node) -> None:
    """Write to a new node, in two leader epochs, and stop it cleanly with a transaction open."""
    from kafka import KafkaProducer  # type: ignore[import-untyped]

    node.home.mkdir(parents=True)
    node.format()
    now = time.time_ns() // 1_000_000
    for number in range(2):
        process = node.start()
        try:
            wait_until(lambda: STARTED.search(node.console()) is not None, "the start", START_SECONDS)
            if number == 0:
                for topic in TOPICS:
                    config = {"segment.ms": "1000", "segment.jitter.ms": "0"}
                    create_topic(node.ports[0], topic, (1,), config, has_v2=True)
            for topic in TOPICS:
                wait_until(lambda: leads(node.ports[0], topic), f"a leader of {topic}", START_SECONDS)  # noqa: B023
            common = {"bootstrap_servers": f"127.0.0.1:{node.ports[0]}", "acks": "all"}
            plain = KafkaProducer(**common)
            for at in range(6):
                for topic, behind in (("plain", 0), ("aged", 10 * DAY_MS), ("whole", 0), ("txn", 0)):
                    stamp = now - behind + (6 * number + at) * 500
                    _send(plain, topic, (number, at), stamp)
            transactional = KafkaProducer(
                **common, transactional_id=f"t{number}", transaction_timeout_ms=7 * DAY_MS - 1
            )
            transactional.init_transactions()
            for at, end in enumerate((transactional.commit_transaction, transactional.abort_transaction, None)):
                if end is None and number == 0:
                    break
                transactional.begin_transaction()
                for part in range(2):
                    _send(transactional, "txn", ("t", number, at, part), now + (12 * number + 3 * at + part) * 500)
                if end is not None:
                    end()
                _send(plain, "txn", ("behind", number, at), now + (12 * number + 3 * at + 2) * 500)
            plain.close()
        finally:
            node.end(process, cleanly=True)


def _send(producer: Any, topic: str, name: object, timestamp_ms: int) -> None:
    """One batch of two records."""
    sent = [
        producer.send(topic, key=f"k{part}".encode(), value=f"{topic}{name}{part}".encode(), timestamp_ms=timestamp_ms)
        for part in range(2)
    ]
    producer.flush()
    for one in sent:
        one.get(30)


def scenarios() -> dict[str, Callable[[Node], None]]:
    """Damage of a node that was stopped cleanly, by name."""

    def log(node: Node, topic: str) -> Path:
        return next(one / f"{topic}-0" for one in node.log_dirs if (one / f"{topic}-0").is_dir())

    def segments(node: Node, topic: str, ending: str = ".log") -> list[Path]:
        return sorted(log(node, topic).glob(f"*{ending}"))

    def killed(node: Node) -> None:
        for one in node.log_dirs:
            (one / ".kafka_cleanshutdown").unlink()
            (one / "recovery-point-offset-checkpoint").write_text("0\n0\n")

    def flip(path: Path, at: float) -> None:
        data = bytearray(path.read_bytes())
        data[int(len(data) * at)] ^= 4
        path.write_bytes(data)

    def zeros(node: Node) -> None:
        with segments(node, "plain")[-1].open("ab") as file:
            file.write(bytes(200))

    def flipped(node: Node) -> None:
        killed(node)
        flip(segments(node, "plain")[1], 0.7)

    def flipped_transaction(node: Node) -> None:
        killed(node)
        flip(segments(node, "txn")[-2], 0.7)

    def hole(node: Node) -> None:
        path = segments(node, "plain")[1]
        flip(path, 0.7)
        path.with_suffix(".index").unlink()

    def snapshots(node: Node) -> None:
        killed(node)
        flip(segments(node, "txn", ".snapshot")[-1], 0.5)
        with segments(node, "txn")[-1].open("ab") as file:
            file.write(bytes(200))

    def aborted(node: Node) -> None:
        path = next(one for one in segments(node, "txn", ".txnindex") if one.stat().st_size)
        data = bytearray(path.read_bytes())
        data[0] = 1
        path.write_bytes(data)

    def names(node: Node) -> None:
        (log(node, "plain") / "abc.log").write_bytes(b"")

    def twice(node: Node) -> None:
        source = log(node, "whole")
        other = next(one for one in node.log_dirs if one != source.parent)
        shutil.copytree(source, other / source.name)

    def log_start(node: Node) -> None:
        folder = log(node, "plain")
        (folder.parent / "log-start-offset-checkpoint").write_text("0\n1\nplain 0 5000\n")

    def aged(node: Node) -> None:
        node.settings["log.retention.ms"] = 7 * DAY_MS

    return {
        "zeros behind a log": zeros,
        "a flipped bit, killed": flipped,
        "a flipped bit in a transaction, killed": flipped_transaction,
        "a flipped bit and no index": hole,
        "a damaged snapshot, killed": snapshots,
        "a transaction index of another version": aborted,
        "a malformed epoch file": lambda node: write_text(
            log(node, "plain") / "leader-epoch-checkpoint", "0\n2\n0 0\n"
        ),
        "an empty partition.metadata": lambda node: write_text(log(node, "plain") / "partition.metadata", ""),
        "a name that is no offset": names,
        "a directory that is no log": lambda node: (node.log_dirs[1] / "lost+found").mkdir(),
        "a partition twice": twice,
        "malformed recovery points": lambda node: write_text(
            node.log_dirs[1] / "recovery-point-offset-checkpoint", "0\n3\nplain 0 5\n"
        ),
        "a log start beyond the log": log_start,
        "records older than retention": aged,
    }


def batches_of(folder: Path) -> Iterator[Batch]:
    """The batches of a directory, by kafka-python."""
    from kafka.record import MemoryRecords  # type: ignore[import-untyped]

    for path in sorted(folder.glob("*.log*")):
        data = path.read_bytes()
        at = 0
        while at + 61 <= len(data):
            length = 12 + int.from_bytes(data[at + 8 : at + 12])
            if length < 61 or at + length > len(data):
                break
            batch = MemoryRecords(data[at : at + length]).next_batch()
            is_sound = batch.validate_crc()
            records = [(one.offset, one.value, one.key) for one in batch] if is_sound else []
            is_abort = batch.is_control_batch and any(key[2:4] == b"\0\0" for _, _, key in records)
            yield Batch(
                file=path.name,
                position=at,
                base_offset=batch.base_offset,
                last_offset=batch.base_offset + batch.last_offset_delta,
                producer_id=batch.producer_id,
                is_control=batch.is_control_batch,
                is_transactional=batch.is_transactional,
                is_abort=is_abort,
                is_sound=is_sound,
                records=[] if batch.is_control_batch else [(offset, value) for offset, value, _ in records],
            )
            at += length


def expected(node: Node, body: Prediction, topic: str) -> Read | None:
    """What consumers are to read of a topic; none where no log of it is served."""
    name = f"{topic}-0"
    logs = [log for log in body.logs if Path(log.path).name == name and log.is_reached and log.fate is Fate.KEPT]
    last = body.starts[-1].number
    final = next((log for log in logs if log.start == last), None)
    if final is None:
        return Read()  # made anew, empty
    if isinstance(final.after, Absent):
        return None
    after = final.after
    assert isinstance(after.log_start_offset, int)
    assert isinstance(after.log_end_offset, int)
    read = Read(after.log_start_offset, after.log_end_offset)
    mine = [log for log in logs if (log.input, log.path) == (final.input, final.path)]
    stable = after.last_stable_offset
    read.stable = stable if isinstance(stable, int) else read.end
    if not isinstance(final.due, Absent):
        # Retention raises the log start to the base of what it leaves.
        left = [base for base, _ in after.segments if base not in final.due.base_offsets]
        read.start = min(left, default=read.end)
        read.stable = max(read.start, read.stable)
    kept = [one for one in _kept(_folder(node, name, final), mine) if one.last_offset < read.end]
    aborted = _aborted(kept, _files_after(_folder(node, name, final), mine))
    for one in sorted(kept, key=lambda batch: batch.base_offset):
        readable = [record for record in one.records if record[0] >= read.start]
        read.records += readable
        if (one.file, one.position) not in aborted:
            read.committed += [record for record in readable if record[0] < read.stable]
    return read


def _folder(node: Node, name: str, log: PredictedLog) -> Path:
    del log
    return next(one / name for one in node.log_dirs if (one / name).is_dir())


def _kept(folder: Path, logs: Sequence[PredictedLog]) -> Iterator[Batch]:
    """The batches that no start discards."""
    removed = {change.name for log in logs for change in log.files if change.action == "delete"}
    removed |= {change.name for log in logs for change in log.files if str(change.to_name).endswith(".deleted")}
    pieces = [piece for log in logs for piece in log.lost.pieces]
    for batch in batches_of(folder):
        is_lost = any(
            piece.file == batch.file
            and piece.position <= batch.position < piece.end
            and batch.last_offset >= piece.first_offset
            for piece in pieces
        )
        if not is_lost and batch.file not in removed:
            yield batch


def _files_after(folder: Path, logs: Sequence[PredictedLog]) -> set[str]:
    names = {path.name for path in folder.iterdir()}
    for log in logs:
        for change in log.files:
            if change.action in {"delete", "rename"}:
                names.discard(change.name)
            if change.action == "rename":
                names.add(str(change.to_name))
            if change.action in {"create", "rebuild"}:
                names.add(change.name)
    return names


def _aborted(batches: Sequence[Batch], names: set[str]) -> set[tuple[str, int]]:
    """The batches of aborted transactions that a transaction index names."""
    found: set[tuple[str, int]] = set()
    open_: dict[int, list[Batch]] = {}
    for batch in sorted(batches, key=lambda one: one.base_offset):
        if batch.is_control:
            begun = open_.pop(batch.producer_id, [])
            if batch.is_abort and f"{batch.file.partition('.')[0]}.txnindex" in names:
                found |= {(one.file, one.position) for one in begun}
        elif batch.is_transactional:
            open_.setdefault(batch.producer_id, []).append(batch)
    return found


def consumed(node: Node, corrupt: Mapping[str, Mapping[int, int]]) -> dict[str, Read | None]:
    """What consumers read of each topic; none where it has no leader.

    Args:
        node: that runs.
        corrupt: by topic: last offsets of batches that consumers refuse, by base offset: these are passed over.
    """
    from kafka import KafkaConsumer, TopicPartition
    from kafka.errors import CorruptRecordError  # type: ignore[import-untyped]

    end = time.monotonic() + LEADER_SECONDS
    reads = {topic: Read() for topic in TOPICS}
    led: list[str] = []
    while len(led) < len(TOPICS) and time.monotonic() < end:
        led = [topic for topic in TOPICS if leads(node.ports[0], topic)]
        time.sleep(0.3)
    places = [TopicPartition(topic, 0) for topic in led]
    for level in ("read_uncommitted", "read_committed"):
        consumer = KafkaConsumer(
            bootstrap_servers=f"127.0.0.1:{node.ports[0]}",
            group_id=None,
            isolation_level=level,
            enable_auto_commit=False,
            auto_offset_reset="none",
        )
        try:
            starts, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
            for place in places:
                read, found = reads[place.topic], list[Record]()
                read.start = starts[place]
                consumer.assign([place])
                consumer.seek(place, read.start)
                end = time.monotonic() + LEADER_SECONDS
                while consumer.position(place) < ends[place] and time.monotonic() < end:
                    try:
                        for records in consumer.poll(timeout_ms=500).values():
                            found += [(one.offset, one.value) for one in records]
                    except CorruptRecordError:
                        position = consumer.position(place)
                        consumer.seek(
                            place, min(last for last in corrupt[place.topic].values() if last >= position) + 1
                        )
                if level == "read_uncommitted":
                    read.end, read.records = ends[place], found
                else:
                    read.stable, read.committed = ends[place], found
        finally:
            consumer.close()
    return {topic: reads[topic] if topic in led else None for topic in TOPICS}


def differences(told: Read | None, seen: Read | None, topic: str) -> list[str]:
    """How what was read differs from what was predicted."""
    if told is None or seen is None:
        return [] if told is seen else [f"{topic}: {'not ' if told is None else ''}predicted to be served"]
    return [
        f"{topic} {name}: {_short(getattr(told, name))} predicted, {_short(getattr(seen, name))} read"
        for name in ("start", "end", "stable", "records", "committed")
        if getattr(told, name) != getattr(seen, name)
    ]


def _short(value: object) -> str:
    return f"{len(value)} records ({[one[0] for one in value]})" if isinstance(value, list) else str(value)


def carry_out(node: Node, change: VirtualChange, inputs: Sequence[Path]) -> Node:
    """Make a change that a row assumes; the node, which is of another version where that is the change."""
    match change.kind:
        case ChangeKind.MARKER_THERE:
            for one in node.log_dirs:
                (one / ".kafka_cleanshutdown").touch()
        case ChangeKind.RETENTION_OFF:
            node.settings |= {"log.retention.ms": -1, "log.retention.bytes": -1}
        case ChangeKind.SPACE_FREED:
            pass
        case ChangeKind.OTHER_VERSION:
            node = Node(change.value, jars_of(change.value), node.home, node.ports, node.settings)
        case _:
            for path in change.paths:
                found = inputs[change.input] / path
                if found.is_dir():
                    shutil.rmtree(found)
                else:
                    found.unlink()
    return node


def predict(node: Node, *, ways_out: bool = False) -> Prediction:
    """What `predict` says of a node."""
    request = Ask(paths=tuple(_inputs(node)), kafka=node.kafka, now_ms=time.time_ns() // 1_000_000, ways_out=ways_out)
    return run(request).body


def _inputs(node: Node) -> list[Path]:
    return [*node.log_dirs, node.properties()]


def contradicts(way: WayOut, body: Prediction) -> list[str]:
    """Where a row says something else than the prediction of the copy on which it was carried out."""
    last = body.starts[-1]
    moved = any(change.kind is ChangeKind.DIRECTORY_AWAY for change in way.changes)
    lost = sum(log.lost.records for log in body.logs if log.is_reached)
    pairs: list[tuple[str, object, object]] = [
        ("outcome", way.result, last.result),
        ("exception", way.exception, last.exception),
        ("starts", way.start_count, len(body.starts)),
        ("bytes scanned", way.bytes_scanned, sum(start.bytes_scanned for start in body.starts)),
    ]
    if not moved and not any(log.fate is Fate.STRAY for log in body.logs):
        pairs.append(("records lost", way.records, lost))
    return [f"the row says {what} {row}, its copy {real}" for what, row, real in pairs if row != real]


def executed(node: Node, body: Prediction) -> list[str]:
    """Start a node as often as was predicted, read all topics, and say what differs."""
    odd: list[str] = []
    told = {topic: expected(node, body, topic) for topic in TOPICS}
    corrupt = {
        topic: {one.base_offset: one.last_offset for one in batches_of(folder) if not one.is_sound}
        for topic in TOPICS
        for folder in [next((one / f"{topic}-0" for one in node.log_dirs if (one / f"{topic}-0").is_dir()), Path("/"))]
    }
    is_aged = any(not isinstance(log.due, Absent) for log in body.logs)
    for start in body.starts:
        process = node.start()
        try:
            end = time.monotonic() + START_SECONDS
            while process.poll() is None and not STARTED.search(node.console()) and time.monotonic() < end:
                time.sleep(0.3)
            if process.poll() is None:
                time.sleep(RETENTION_SECONDS if is_aged else 2)
            is_offline = "Stopping serving replicas in dir" in node.console()
            outcome = "exits" if process.poll() is not None else "dir-offline" if is_offline else "starts"
            if outcome != str(start.result):
                return [f"start {start.number}: {start.result} predicted, {outcome} seen"]
            if outcome == "exits":
                continue
            for topic, seen in consumed(node, corrupt).items():
                is_off = outcome == "dir-offline" and _is_offline(node, body, topic)
                odd += differences(None if is_off else told[topic], seen, topic)
        finally:
            node.end(process)
    return odd


def _is_offline(node: Node, body: Prediction, topic: str) -> bool:
    """Whether the log directory of a topic failed: that of a log which fails, or whose checkpoint is malformed."""
    folder = next(one for one in node.log_dirs if (one / f"{topic}-0").is_dir())
    failed = {log.input for log in body.logs if log.outcome == "fails" and log.start == body.starts[-1].number}
    by_input = _inputs(node)
    malformed = {
        one for one in node.log_dirs if (one / "recovery-point-offset-checkpoint").read_text().startswith("0\n3\n")
    }
    return folder in malformed or any(by_input[number] == folder for number in failed)


def main() -> int:
    """Carry every row out and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.1.0")
    parser.add_argument("--jars", default=None)
    parser.add_argument("--only", default="", help="part of the name of a scenario")
    parser.add_argument(
        "--best", type=int, default=3, help="rows of a scenario that are carried out whatever their kind"
    )
    parser.add_argument("--versions", nargs="*", default=[], help="other versions that are started, in one scenario")
    parser.add_argument("--at-once", type=int, default=1, help="brokers that run at the same time")
    parser.add_argument(
        "--skip", type=int, default=0, help="so many rows of all scenarios are chosen and not carried out"
    )
    parser.add_argument("--rows", type=int, default=None, help="rows that are carried out behind those")
    given = parser.parse_args()
    behind = sys.maxsize if given.rows is None else given.skip + given.rows
    row = 0
    tally: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(given.at_once) as pool:
        base = Node(given.kafka, given.jars or jars_of(given.kafka), Path(work) / "base", free_ports(2), SETTINGS)
        prepare(base)

        def tried(name: str, damaged: Node, number: int, way: WayOut) -> None:
            node = damaged.copied_to(damaged.home.with_name(f"{damaged.home.name}-{number}"), free_ports(2))
            for change in way.changes:
                node = carry_out(node, change, _inputs(node))
            changed = predict(node)
            odd = [*contradicts(way, changed), *executed(node, changed)]
            tally["different" if odd else "as predicted"] += 1
            words = " and ".join(f"{one.kind} {', '.join(one.paths)}{one.value}" for one in way.changes) or "as it is"
            result = f"{way.result}, {way.records} lost"
            print(f"{name} | {words} | {result} | {'; '.join(odd) or 'as predicted'}", flush=True)
            shutil.rmtree(node.home)

        for at, (name, edit) in enumerate(scenarios().items()):
            if given.only not in name or row >= behind:
                continue
            damaged = base.copied_to(Path(work) / str(at))
            edit(damaged)
            chosen = list(_chosen(predict(damaged, ways_out=True).ways_out, kinds, given.best, given.versions))
            wanted = [each for each in enumerate(chosen) if given.skip <= row + each[0] < behind]
            row += len(chosen)
            list(pool.map(lambda each: tried(name, damaged, *each), wanted))  # noqa: B023
    print(dict(tally), dict(kinds))
    return tally["different"]


def _chosen(ways: Sequence[WayOut], kinds: Counter[str], best: int, versions: Sequence[str]) -> Iterator[WayOut]:
    """Yield the start as it is, the best rows, the best pair, and what no scenario has carried out yet."""
    count = pairs = 0
    for way in ways:
        names = {change.kind.value for change in way.changes} or {"as it is"}
        other = [change.value for change in way.changes if change.kind is ChangeKind.OTHER_VERSION]
        if other:
            names = {f"Kafka {value}" for value in other}
            if not set(other) <= set(versions):
                continue
        is_first_pair = len(way.changes) > 1 and not pairs
        is_best = len(way.changes) == 1 and not other and count < best
        if not way.changes or is_best or is_first_pair or not names <= kinds.keys():
            count += is_best
            pairs += is_first_pair
            kinds.update(names)
            yield way


if __name__ == "__main__":
    sys.exit(main())
