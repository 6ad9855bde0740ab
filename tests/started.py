"""Starts that lie in recordings, predicted from the snapshot before, and held against the brokers' own lines and the snapshot after.

    python -m tests.started DIR...

Each DIR is an unpacked recording with its truth and logs, or holds several. Every start of a broker that was down in a snapshot is predicted from that snapshot, by the version that the
recording names and the settings in its logs. It is the first start behind the snapshot: later ones find what this one left. Then are compared:

- whether the broker came up;
- log start and log end of each log, by its line `Completed load`;
- the segments that were scanned, by `Recovering unflushed segment`;
- those that were truncated, and to which offset, by `Corruption found`;
- directories that became strays or were deleted, and those that stayed, by the next snapshot;
- the bytes of each log and its leader epochs in the next snapshot, where no line says that the log was truncated, cleaned or shortened in between.

A comparison is equal, different, or unknown where the prediction says so or the recording can't show it. What becomes of a directory follows from the metadata at the moment of the start:
where it is otherwise than predicted, the same directories are predicted with the controllers' metadata of the next snapshot, and what is so by these is unknown.
"""

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kforensics.ask.model import Ask
from kforensics.commands.predict import run as predict
from kforensics.damage import Absent
from kforensics.errors import KforensicsError, UsageError
from kforensics.protocol.loading.node import Fate
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.logs.predicted_load import PredictedLog, PredictedStart
from kforensics.source.naming import parse_partition_directory

LINE = re.compile(r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (?P<level>[A-Z]+) (?P<words>.*)")
BEGINS = re.compile(r"\b[sS]tarting( broker)? \(kafka\.server\.")
UP = re.compile(r"\[Kafka ?Server.*\],? (Kafka Server )?started \(|Kafka Server started \(")
LOADED_ALL = re.compile(r"Logs loading complete|Loaded \d+ logs")
LOADED = (
    re.compile(
        r"Completed load of Log\(dir=(?P<dir>[^,]+),.*logStartOffset=(?P<start>\d+), logEndOffset=(?P<end>\d+)\)"
    ),
    re.compile(
        r"\[Log partition=(?P<name>[^,]+), dir=(?P<dir>[^]]+)\] Completed load of log with .*log start offset (?P<start>\d+) and log end offset (?P<end>\d+)"
    ),
    re.compile(
        r"Completed load of log (?P<name>\S+) with \d+ log segments(, log start offset (?P<start>\d+))? and log end offset (?P<end>\d+)"
    ),
)
ABOUT = r"(\[\w+ partition=(?P<name>[^,\]]+)(, dir=(?P<dir>[^]]+))?\] )?"
SCANNED = re.compile(rf"{ABOUT}Recovering unflushed segment (?P<base>\d+)( in log (?P<old>\S+)\. )?")
CORRUPT = re.compile(
    rf"{ABOUT}Corruption found in segment (?P<base>\d+)( of log (?P<old>\S+))?, truncating to offset (?P<end>\d+)"
)
CHANGED_LATER = re.compile(
    r"(partition=|partition |in log |Log |for )(?P<name>[\w.-]+-\d+)\b.*?(Truncating to offset|Truncate and start|Truncating fully|Deleting segment|Scheduling|Incremented log start offset|Cleaning|is marked for deletion|is renamed to|Replacing)"
    r"|(Truncating log|Cleaner \d+: (Cleaning|Beginning cleaning of) log|Deleting segment \d+ from log) (?P<other>[\w.-]+-\d+)\b"
)
STRAY = re.compile(r"Log in \S*?(?P<name>[^/ ]+) marked stray and renamed to ")
NEW_NAME = re.compile(r"\.[0-9a-f]{32}-stray(?=[,\]])")
"""A directory is renamed while it loads, and its line has the new name."""
NO_EFFECT = "has no effect"
KINDS = ("outcome", "log", "scanned", "truncated", "directory", "bytes", "epochs")


@dataclass
class Compared:
    """Comparisons of one recording."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    starts: int = 0
    not_predicted: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)

    def take(self, kind: str, where: str, predicted: object, found: object) -> None:
        """Count a comparison."""
        is_equal = predicted == found
        self.counts[kind]["equal" if is_equal else "different"] += 1
        if not is_equal:
            self.different.append(f"{where}: {kind} {predicted}, and it was {found}")

    def leave(self, kind: str, count: int = 1) -> None:
        """Count what can't be compared."""
        self.counts[kind]["unknown"] += count

    def total(self, word: str) -> int:
        """Comparisons that came out so."""
        return sum(counts[word] for counts in self.counts.values())


@dataclass(frozen=True)
class Begun:
    """A start in a recording."""

    broker: int
    time: datetime
    before: str
    """The snapshot in which the broker is down."""
    after: str | None
    """The next one with its directories."""
    until: datetime
    """The time of that snapshot, or of the next start."""


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def starts_of(root: Path, compared: Compared) -> Iterator[Begun]:
    """Yield the starts that a snapshot lies before."""
    timeline = json.loads((root / "incident.json").read_text())["timeline"]
    last_snapshot: dict[int, str] = {}
    is_up: dict[int, bool] = {}
    is_fresh: set[int] = set()
    for at, event in enumerate(timeline):
        words = event["event"]
        if words.startswith("snapshot "):
            for one in _brokers_in(root / "snapshots" / words.split()[1]):
                last_snapshot[one] = words.split()[1]
                state = event.get("data", {}).get("node_states", {}).get(f"broker-{one}")
                running = event.get("data", {}).get("running")
                is_down = not is_up.get(one) if running is None else one not in running
                is_down = state in {"killed", "down"} if state else is_down
                (is_fresh.add if is_down else is_fresh.discard)(one)
            continue
        broker = _broker_of(event)
        if words.startswith(("kill -9", "SIGTERM", "stop ")):
            for one in [broker] if broker is not None else map(int, re.findall(r"\d+(?=[,\]])", words)):
                is_up[one] = False
        if (changed := re.search(r"(?:power loss: .* on broker |disk of broker-)(\d+)", words)) and int(
            changed[1]
        ) in is_fresh:
            is_fresh.discard(int(changed[1]))
            compared.not_predicted["files of the broker were changed after the snapshot before"] += 1
            del last_snapshot[int(changed[1])]
        if broker is None or not words.startswith("start "):
            continue
        is_up[broker] = True
        if broker in is_fresh:
            is_fresh.discard(broker)
            behind = timeline[at + 1 :]
            after = next((one for one in behind if _is_snapshot_of(root, one, broker)), None)
            again = next(
                (one for one in behind if one["event"].startswith("start ") and _broker_of(one) == broker), None
            )
            ends = [one for one in (after, again) if one is not None]
            first = min(ends, key=lambda one: _time(one["t"])) if ends else timeline[-1]
            name = after["event"].split()[1] if after is not None and first is after else None
            yield Begun(broker, _time(event["t"]), last_snapshot[broker], name, _time(first["t"]))
        elif broker in last_snapshot:
            compared.not_predicted["the broker ran on after the snapshot before"] += 1


def _broker_of(event: dict[str, Any]) -> int | None:
    """The broker that an event names, in a field of its own or in words."""
    named = re.match(r"\S+( -9)? broker-(\d+)", event["event"])
    return event.get("broker", int(named[2]) if named else None)


def _brokers_in(snapshot: Path) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in snapshot.glob("broker-*")}


def _is_snapshot_of(root: Path, event: dict[str, Any], broker: int) -> bool:
    words = event["event"]
    return words.startswith("snapshot ") and broker in _brokers_in(root / "snapshots" / words.split()[1])


@dataclass
class Said:
    """What the lines of one run of a broker say."""

    has_begun: bool = False
    is_up: bool = False
    has_loaded: bool = False
    ends: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    """Log start and log end, by the end of a directory's path."""
    scanned: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    truncated: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    strays: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    """Logs that were truncated, cleaned or shortened once all were loaded."""


def said_in(folder: Path, begun: Begun) -> Said:
    """Read the lines of a start."""
    lines = [
        (datetime.strptime(match["time"], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC), match["words"])
        for path in sorted(folder.glob("*.log*"))
        for line in path.read_text(errors="replace").splitlines()
        if (match := LINE.match(line))
    ]
    said = Said()
    for time, words in sorted(lines, key=lambda one: one[0]):
        if begun.time <= time <= begun.until:
            said.has_begun = said.has_begun or BEGINS.search(words) is not None
            _take_line(said, words)
    return said


def _take_line(said: Said, words: str) -> None:
    said.is_up = said.is_up or UP.search(words) is not None
    if LOADED_ALL.search(words):
        said.has_loaded = True
    if not said.has_loaded:
        if match := STRAY.search(words):
            said.strays.add(match["name"])
        words = NEW_NAME.sub("", words)
        for pattern in LOADED:
            if match := pattern.search(words):
                groups = match.groupdict()
                start = groups["start"]
                said.ends[_end_of(groups)] = (None if start is None else int(start), int(groups["end"]))
                break
        if match := SCANNED.search(words):
            said.scanned[_end_of(match.groupdict())].add(int(match["base"]))
        if match := CORRUPT.search(words):
            said.truncated[_end_of(match.groupdict())][int(match["base"])] = int(match["end"])
    elif NO_EFFECT not in words and (match := CHANGED_LATER.search(words)):
        said.changed.add(match["name"] or match["other"])


def _end_of(groups: dict[str, str | None]) -> str:
    """Log directory and partition directory, or the partition directory alone where the line names no more."""
    folder, name = groups.get("dir"), groups.get("name") or groups.get("old")
    if folder is None:
        return str(name)
    path = Path(folder)
    return f"{path.name}/{name}" if name is not None and path.name != name else f"{path.parent.name}/{path.name}"


def _of(found: dict[str, Any], source: Path, default: Any) -> Any:
    """What lines say of a directory: by its log directory where that has the name it had, else by its own name where no other has it."""
    for name in (source.name, _partition_of(source.name)):
        if f"{source.parent.name}/{name}" in found:
            return found[f"{source.parent.name}/{name}"]
        alike = [said for key, said in found.items() if key.rpartition("/")[2] == name]
        if len(alike) == 1 and source.name == name:
            return alike[0]
    return default


def _partition_of(name: str) -> str:
    parsed = parse_partition_directory(name)
    return name if parsed is None else f"{parsed.topic}-{parsed.partition}"


def _predicted(begun: Begun, version: str, *paths: Path) -> tuple[PredictedStart, dict[Path, PredictedLog]]:
    """The first start of a broker, and what it makes of each directory."""
    now_ms = int(begun.time.timestamp() * 1000)
    result = predict(Ask(paths=paths, keep_going=True, kafka=version, now_ms=now_ms))
    mine = (one for one in result.body.starts if one.number == 1 and result.inputs[one.input].broker_id == begun.broker)
    start = next(mine, None)
    if start is None:
        raise UsageError("no log directory of the broker is in the snapshot")
    logs = [log for log in result.body.logs if log.start == 1 and log.node == start.input]
    return start, {(Path(result.inputs[log.input].path) / log.path).resolve(): log for log in logs}


def _is_other(log: PredictedLog, source: Path, said: Said) -> bool:
    """Whether a directory became a stray and was not predicted to, or the other way."""
    return log.fate in {Fate.KEPT, Fate.STRAY} and (log.fate is Fate.STRAY) is not (source.name in said.strays)


def compare(root: Path) -> Compared:
    """Predict the starts of a recording, and compare."""
    compared = Compared()
    version = json.loads((root / "incident.json").read_text())["kafka_version"]
    for begun in starts_of(root, compared):
        snapshots = root / "snapshots"
        try:
            start, logs = _predicted(begun, version, snapshots / begun.before, root / "logs")
        except KforensicsError as error:
            compared.not_predicted[str(error)] += 1
            continue
        said = said_in(root / "logs" / f"broker-{begun.broker}", begun)
        if not said.has_begun:
            compared.not_predicted["no line of the start has its time"] += 1
            continue
        compared.starts += 1
        if begun.after is not None and any(_is_other(log, source, said) for source, log in logs.items()):
            controllers = sorted((snapshots / begun.after).glob("controller-*"))
            broker = snapshots / begun.before / f"broker-{begun.broker}"
            _, later = _predicted(begun, version, broker, *controllers, root / "logs")
            for source in [source for source, log in logs.items() if later[source].fate is not log.fate]:
                del logs[source]
                for kind in ("log", "directory"):
                    compared.leave(kind)
        _compare_start(compared, begun, start, logs, said)
        for source, log in logs.items():
            _compare_after(compared, root, begun, log, source, said)
    return compared


def _compare_start(
    compared: Compared, begun: Begun, start: PredictedStart, logs: Mapping[Path, PredictedLog], said: Said
) -> None:
    where = f"{begun.before} broker {begun.broker}"
    if isinstance(start.result, Absent):
        compared.leave("outcome")
    else:
        compared.take("outcome", where, start.result is not StartResult.EXITS, said.is_up)
    for source, log in logs.items():
        place = f"{where} {log.path}"
        if isinstance(log.after, Absent):
            compared.leave("log")
            continue
        found = _of(said.ends, source, None)
        after = (log.after.log_start_offset, log.after.log_end_offset)
        if log.fate is Fate.UNKNOWN or (found is None and not said.ends):
            compared.leave("log")  # 2.8 without ZooKeeper and 1.0 log no end of what they load
        elif found is None or found[0] is not None:
            compared.take("log", place, after, found)
        else:
            compared.take("log", place, after[1], found[1])
        compared.take("scanned", place, {base for base, _, _ in log.scanned}, _of(said.scanned, source, set()))
        ends = {base: after[1] for base, before, kept in log.scanned if kept < before}
        compared.take("truncated", place, ends, _of(said.truncated, source, {}))


def _compare_after(compared: Compared, root: Path, begun: Begun, log: PredictedLog, source: Path, said: Said) -> None:
    if begun.after is None:
        compared.leave("directory")
        return
    where = f"{begun.before} broker {begun.broker} {log.path}"
    snapshot = root / "snapshots"
    folder = snapshot / begun.after / source.relative_to((snapshot / begun.before).resolve())
    name = source.name
    if log.fate is Fate.UNKNOWN:
        compared.leave("directory")
        return
    if log.fate is not Fate.KEPT:
        compared.take("directory", where, False, folder.is_dir() and log.fate is not Fate.DELETED)
        return
    if not folder.is_dir():
        if _partition_of(name) in said.changed:
            compared.leave("directory")
        else:
            compared.take("directory", where, True, False)
        return
    compared.take("directory", where, True, True)
    if isinstance(log.after, Absent) or _partition_of(name) in said.changed:
        compared.leave("bytes")
        compared.leave("epochs")
        return
    compared.take("bytes", where, [], list(_unlike(log, source, folder)))
    if isinstance(log.after.epochs, Absent) or not (folder / "leader-epoch-checkpoint").is_file():
        compared.leave("epochs")
        return
    lines = (folder / "leader-epoch-checkpoint").read_text().split("\n")[2:]
    epochs = [tuple(map(int, line.split())) for line in lines if line]
    predicted = [tuple(entry) for entry in log.after.epochs]
    compared.take("epochs", where, predicted, epochs[: len(predicted)])


def _unlike(log: PredictedLog, source: Path, folder: Path) -> Iterator[str]:
    """Yield where the segments in a later snapshot do not begin with what the start was to leave."""
    assert not isinstance(log.after, Absent)
    segments = log.after.segments
    for at, (base, length) in enumerate(segments):
        name = f"{base:020d}.log"
        if not (folder / name).is_file():
            yield f"{name} is missing"
            continue
        data = (folder / name).read_bytes()
        if len(data) < length or (at < len(segments) - 1 and len(data) != length):
            yield f"{name} has {len(data)} bytes and not {length}"
        before = (source / name).read_bytes()[:length] if (source / name).is_file() else b""
        if data[: len(before)] != before:
            yield f"{name} has other bytes"
    known = {base for base, _ in segments}
    end = log.after.log_end_offset
    for path in sorted(folder.glob("*.log")):
        if int(path.stem) not in known and not isinstance(end, Absent) and int(path.stem) < end:
            yield f"{path.name} is there"


def main(arguments: Sequence[str]) -> int:
    """Compare all recordings; 1 where anything is different."""
    different = 0
    for argument in arguments:
        folder = Path(argument)
        for root in [folder] if (folder / "snapshots").exists() else sorted(folder.iterdir()):
            if not (root / "incident.json").exists() or not (root / "snapshots").exists():
                continue
            compared = compare(root)
            sums = ", ".join(f"{compared.total(word)} {word}" for word in ("equal", "different", "unknown"))
            print(f"{root.name}: {compared.starts} starts, {sums} {dict(compared.not_predicted) or ''}", flush=True)
            print("   ", {kind: dict(compared.counts[kind]) for kind in KINDS if compared.counts[kind]}, flush=True)
            for words in compared.different:
                print(f"DIFFERENT {root.name}: {words}", flush=True)
            different += len(compared.different)
    print(f"{different} different")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
