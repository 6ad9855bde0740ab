"""Let `KafkaConfig` of real releases judge values of `server.properties`; run as `python -m tests.oracle.loading.settings`, which writes what they threw."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.oracle.jars import RELEASES, Release, class_path

JUDGED = Path(__file__).parents[2] / "protocol" / "loading" / "judged-settings.json"
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
NUMBERS = ("", "-2", "-1", "0", "+5000000", "5000000", "2147483648", "9223372036854775808", "5.0", "4k", "${env:SIZE}")
POLICIES = ("", "delete", "compact", "compact, delete", "compact,delete,", ",", "none")


def values_of(name: str) -> tuple[str, ...]:
    """The values that are tried of a setting."""
    return POLICIES if name == "log.cleanup.policy" else NUMBERS


def thrown(release: Release, pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """What a release throws of each setting: the class and the message, or nothing."""
    has_zookeeper = not release.has_log4j_2  # 4.0 is the first with log4j 2, and the first without ZooKeeper
    source = Path(__file__).with_name("Settings.java")
    command = ["java", "-cp", class_path(release), str(source), str(has_zookeeper).lower()]
    lines = "".join(f"{name}\t{value}\n" for name, value in pairs)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(pairs), done.stderr
    return [answer.split("\t") if answer else [] for answer in answers]


def judged() -> Mapping[str, Mapping[str, Mapping[str, list[str]]]]:
    """The versions that throw, by setting, value and `CLASS: message`; values that a release takes are left out."""
    pairs = [(name, value) for name in NAMES for value in values_of(name)]
    out: dict[str, dict[str, dict[str, list[str]]]] = {}
    for release in RELEASES:
        for (name, value), found in zip(pairs, thrown(release, pairs), strict=True):
            if found:
                out.setdefault(name, {}).setdefault(value, {}).setdefault(": ".join(found), []).append(release.version)
    return out


def main() -> None:
    lines = (f'"{name}": {json.dumps(values)}' for name, values in judged().items())
    JUDGED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
