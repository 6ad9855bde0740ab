"""Let `KafkaConfig` of real releases define settings and judge their values.

Run as `python -m tests.oracle.loading.settings FOLDER…`, folders of jars in directories that are called by their versions: writes the definitions, which the
package has, and what they threw, which tests have.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kforensics.protocol.loading import settings
from kforensics.protocol.versions import KafkaVersion, parse_version

JUDGED = Path(__file__).parents[2] / "protocol" / "loading" / "judged-settings.json"
JUDGED_NODES = JUDGED.with_name("judged-nodes.json")
"""Settings that nodes without ZooKeeper are given beside `OF_A_NODE`, and by version the class of what was thrown; null takes a setting out."""
OF_A_NODE = {
    "process.roles": "broker,controller",
    "controller.quorum.voters": "1@localhost:9093",
    "controller.listener.names": "C",
    "listeners": "P://:9092,C://:9093",
    "listener.security.protocol.map": "P:PLAINTEXT,C:PLAINTEXT",
    "inter.broker.listener.name": "P",
    "node.id": "1",
    "broker.id": "1",
}
"""What `Settings.java` gives each of them."""
DEFINED = Path(settings.__file__).with_name("settings.tsv")
Values = Mapping[str, str]
SOURCE = Path(__file__).with_name("Settings.java")
LEVELS = ("group.consumer", "group.share", "group.streams")
"""Kinds of groups, whose intervals and timeouts have a least and a largest value each."""
RELATIONS = (
    ("1", "<=", "log.roll.ms", ""),
    ("0", "<=", "log.roll.jitter.ms", ""),
    ("-1", "<=", "offsets.commit.required.acks", ""),
    ("offsets.commit.required.acks", "<=", "offsets.topic.replication.factor", ""),
    ("replica.fetch.wait.max.ms", "<=", "replica.socket.timeout.ms", ""),
    ("replica.fetch.wait.max.ms", "<=", "replica.lag.time.max.ms", ""),
    ("socket.request.max.bytes", "<=", "queued.max.request.bytes", "1"),
    ("connection.failed.authentication.delay.ms", "<", "connections.max.idle.ms", "0"),
    *(
        pair
        for level in LEVELS
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
        for pair in (
            (f"{level}.min.{what}", "<=", f"{level}.max.{what}", ""),
            (f"{level}.min.{what}", "<=", f"{level}.{what}", ""),
            (f"{level}.{what}", "<=", f"{level}.max.{what}", ""),
        )
    ),
    *((f"{level}.heartbeat.interval.ms", "<", f"{level}.session.timeout.ms", "") for level in LEVELS),
    ("group.share.delivery.count.limit", "<=", "group.share.max.delivery.count.limit", ""),
    ("group.share.min.delivery.count.limit", "<=", "group.share.delivery.count.limit", ""),
    ("group.share.partition.max.record.locks", "<=", "group.share.max.partition.max.record.locks", ""),
    ("group.share.min.partition.max.record.locks", "<=", "group.share.partition.max.record.locks", ""),
    ("group.share.min.record.lock.duration.ms", "<=", "group.share.record.lock.duration.ms", ""),
    ("group.share.record.lock.duration.ms", "<=", "group.share.max.record.lock.duration.ms", ""),
    ("group.share.max.size", "<=", "group.share.max.share.sessions", ""),
    ("group.streams.num.warmup.replicas", "<=", "group.streams.max.warmup.replicas", ""),
    ("group.streams.min.task.offset.interval.ms", "<=", "group.streams.task.offset.interval.ms", ""),
    *(
        (lesser, "<=", greater, "")
        for name, most in (
            ("offsets.topic.compression.codec", "4"),
            ("share.coordinator.state.topic.compression.codec", "4"),
            ("share.coordinator.snapshot.update.records.per.snapshot", "500"),
        )
        for lesser, greater in (("0", name), (name, most))
    ),
    ("group.streams.num.standby.replicas", "<=", "group.streams.max.standby.replicas", ""),
)
"""What `KafkaConfig` may hold against each other, and from which value of the second on."""
NUMBERS = ("", "-2", "-1", "0", "+5000000", "5000000", "2147483648", "9223372036854775808", "5.0", "4k", "${env:SIZE}")
POLICIES = ("", "delete", "compact", "compact, delete", "compact,delete,", ",", "none")
NAMES = (
    "log.segment.bytes",
    "log.retention.ms",
    "log.retention.minutes",
    "log.retention.hours",
    "log.retention.bytes",
    "log.index.size.max.bytes",
    "log.index.interval.bytes",
    "log.cleaner.delete.retention.ms",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleaner.max.compaction.lag.ms",
    "log.cleanup.policy",
    "producer.id.expiration.ms",
    "transactional.id.expiration.ms",
)


def values_of(name: str) -> tuple[str, ...]:
    """The values that are tried of a setting."""
    return POLICIES if name == "log.cleanup.policy" else NUMBERS


_COPIERS = (
    "The default value of -1 means that this will be set to the configured value of remote.log.manager.thread.pool.size,"
    " if available; otherwise, it defaults to 10."
)
CLASSES = Path(tempfile.gettempdir()) / "kforensics-settings"
"""Where the class is that asks `KafkaConfig`, compiled by the first release that is asked."""


def asked(folder: Path, what: str, lines: str = "") -> list[str]:
    """What a release answers to lines."""
    if not CLASSES.is_dir():
        subprocess.run(["javac", "-nowarn", "-d", str(CLASSES), "-cp", f"{folder}/*", str(SOURCE)], check=True)
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}/*:{CLASSES}", "Settings", what]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith("[main] ")]


def defined(folder: Path) -> list[list[str]]:
    """The definitions of a release: scope, name, type, rule and default."""
    defined_as = ("\n".join(asked(folder, "define"))).replace(_COPIERS, "[1,...] or -1").splitlines()
    lines = (line.split("\t") for line in defined_as if line.startswith(("broker\t", "topic\t")))
    return [one for one in lines if not (one[0] == "topic" and version_of(folder) < (3, 0))]


def thrown(
    folder: Path, given: Sequence[Mapping[str, str | None]], *, has_zookeeper: bool | None = None
) -> list[list[str]]:
    """What a release throws of settings: the class and the message, or nothing."""
    is_old = version_of(folder) < (4, 0)
    mode = str(is_old if has_zookeeper is None else has_zookeeper).lower()
    lines = "".join(
        "\t".join("\0" if part is None else part for pair in one.items() for part in pair) + "\n" for one in given
    )
    answers = asked(folder, mode, lines)
    assert len(answers) == len(given)
    return [answer.split("\t") if answer else [] for answer in answers]


def version_of(folder: Path) -> KafkaVersion:
    """The version of the jars in a folder, by the name of the directory that it is in."""
    return parse_version(folder.parent.name if folder.name == "libs" else folder.name)


def related(folder: Path, definitions: Iterable[Sequence[str]]) -> list[list[str]]:
    """Those of `RELATIONS` that a release holds: it refuses what contradicts them and takes what does not."""
    numbers = {one[1]: one[4] for one in definitions if one[0] == "broker"}
    known = [
        one for one in RELATIONS if all(part in numbers or part.lstrip("-").isdecimal() for part in (one[0], one[2]))
    ]
    answers = thrown(folder, [one for row in known for one in _contradicting(*row[:3], numbers)])
    ways = zip(answers[::2], answers[1::2], strict=True)
    return [
        [sign, lesser, greater, "", least]
        for (lesser, sign, greater, least), both in zip(known, ways, strict=True)
        if any(answer and answer[0] == "IllegalArgumentException" for answer in both)
    ]


def _contradicting(lesser: str, sign: str, greater: str, numbers: Values) -> tuple[Values, Values]:
    """Two ways to contradict a relation by settings that no other relation forbids."""
    level = lesser.removesuffix(".heartbeat.interval.ms")
    if sign == "<" and level in LEVELS:
        most = numbers[f"{level}.max.heartbeat.interval.ms"]
        equal = {lesser: most, greater: most, f"{level}.min.session.timeout.ms": most}
        return equal, equal
    if greater not in numbers:
        above = {lesser: f"{int(greater) + 1}"}
        return above, above
    if lesser not in numbers:
        below = {greater: f"{int(lesser) - 1}"}
        return below, below
    least = {greater: f"{int(numbers[lesser]) - 1}"}
    if numbers[greater] in {"", "-1"}:
        return least, least
    return least, {lesser: numbers[greater], greater: f"{int(numbers[greater]) - 1}"}


def table(folders: Iterable[Path]) -> list[list[str]]:
    """The rows of all releases, each with the first and the last that has it; the last is empty for one that the newest has."""
    spans: dict[tuple[str, ...], list[list[int]]] = {}
    ordered = sorted(folders, key=version_of)
    for at, folder in enumerate(ordered):
        rows = defined(folder)
        for row in [*rows, *related(folder, rows)]:
            found = spans.setdefault(tuple(row), [])
            if found and found[-1][1] == at - 1:
                found[-1][1] = at
            else:
                found.append([at, at])
    names = [f"{version.major}.{version.minor}" for version in map(version_of, ordered)]
    last = len(ordered) - 1
    return sorted(
        [*row, names[first], "" if end == last else names[end]]
        for row, found in spans.items()
        for first, end in found
        if row[3] or row[0] in {"<=", "<"} or row[2] in {"BOOLEAN", "INT", "SHORT", "LONG", "DOUBLE", "CLASS"}
    )


def judged(folders: Iterable[Path]) -> Mapping[str, Mapping[str, Mapping[str, list[str]]]]:
    """The versions that throw, by setting, value and `CLASS: message`; values that a release takes are left out."""
    pairs = [(name, value) for name in NAMES for value in values_of(name)]
    out: dict[str, dict[str, dict[str, list[str]]]] = {}
    for folder in sorted(folders, key=version_of):
        for (name, value), found in zip(pairs, thrown(folder, [{name: value} for name, value in pairs]), strict=True):
            if found:
                out.setdefault(name, {}).setdefault(value, {}).setdefault(": ".join(found), []).append(
                    f"{version_of(folder)}"
                )
    return out


def judged_nodes(folders: Iterable[Path]) -> list[dict[str, dict[str, str]]]:
    """The cases of `JUDGED_NODES`, with what the releases of 3.3 and later throw."""
    cases: list[dict[str, dict[str, str]]] = json.loads(JUDGED_NODES.read_text())
    for folder in sorted((one for one in folders if version_of(one) >= (3, 3)), key=version_of):
        answers = thrown(folder, [case["given"] for case in cases], has_zookeeper=False)
        for case, answer in zip(cases, answers, strict=True):
            case["thrown"][f"{version_of(folder)}"] = answer[0] if answer else ""
    return cases


def main() -> None:
    folders = [Path(one) for one in sys.argv[1:]]
    by_hand = [line for line in DEFINED.read_text().splitlines() if line.startswith("refusal\t")]
    rows = ["\t".join(row) for row in table(folders)]
    DEFINED.write_text("".join(f"{row}\n" for row in (*rows, *by_hand)))
    lines = (f'"{name}": {json.dumps(values)}' for name, values in judged(folders).items())
    cases = (json.dumps(one) for one in judged_nodes(folders))
    JUDGED_NODES.write_text("[\n" + ",\n".join(cases) + "\n]\n")
    JUDGED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
