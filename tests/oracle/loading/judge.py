"""Cases through Kafka's loader and through the rules, and how the two differ.

Run by hand: `python -m tests.oracle.loading.judge --kafka 4.1.0 --cases 2000 --seed 1` (Java 17, Maven or `--jars`).
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from kforensics.commands.loading import DirectoryOnDisk
from kforensics.commands.predicting.ways_out import removable_files
from kforensics.damage import Absent
from kforensics.protocol.loading.disk import LoadSettings, Unpredictable, partition_of_directory
from kforensics.protocol.loading.versions import loading_rules
from kforensics.protocol.versions import parse_version
from tests.oracle.loading.made import NOW_MS, Case, edited_files, random_case, targeted_cases, write_files
from tests.oracle.loading.uncommon import uncommon_case

FIRST_OF_MAGIC_2 = (0, 11)
HERE = Path(__file__).parent
OPEN_MODULES = [
    argument
    for package in ("java.lang", "java.nio", "sun.nio.ch", "jdk.internal.ref")
    for argument in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")
]
COMPARED = ("exception", "start", "end", "recovery_point", "last_stable_offset", "epochs", "tree", "active_producers")


class Judge:
    """One JVM with Kafka's loader."""

    def __init__(self, kafka: str, jars: str) -> None:
        source = "Loader.java" if parse_version(kafka) >= (4, 0) else "Loader39.java"
        command = ["nice", "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g"]
        command += [
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
            *OPEN_MODULES,
            "-cp",
            jars,
            str(HERE / source),
            f"now={NOW_MS}",
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait()

    def load(self, folder: Path, case: Case) -> dict[str, Any]:
        """What the loader makes of a directory, which changes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        fields = (str(folder), str(case.log_start), str(case.recovery_point), str(case.clean).lower())
        self._process.stdin.write("\t".join(fields) + "\n")
        self._process.stdin.flush()
        # Between the answers stand lines of the loader's own log, where the jars send it to standard output.
        line = self._process.stdout.readline()
        while line and not line.startswith("{"):
            line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line)
        return answer


def predicted(folder: Path, case: Case, kafka: str, without: Collection[str] = ()) -> dict[str, Any]:
    """The same fields by the rules, as if some files were not there."""
    rules = loading_rules(parse_version(kafka))
    settings = LoadSettings(now_ms=NOW_MS, producer_expiration_ms=rules.default_producer_expiration_ms)
    entries = [path for path in folder.iterdir() if path.name not in without]
    outcome = DirectoryOnDisk(
        folder,
        {path.name: path.stat().st_size for path in entries if path.is_file()},
        frozenset(path.name for path in entries if not path.is_file()),
    ).load(
        clean_shutdown=case.clean,
        recovery_point=case.recovery_point,
        log_start_offset=case.log_start,
        settings=settings,
        rules=rules,
    )
    if isinstance(outcome, Unpredictable):
        return {"unpredictable": outcome.reason}
    state = outcome.state
    told: dict[str, Any] = dict.fromkeys(COMPARED)
    told["tree"] = dict(outcome.tree)
    if not isinstance(outcome.failure, Absent):
        told["exception"] = outcome.failure.exception
    if not isinstance(state, Absent):
        told |= {
            "start": state.log_start_offset,
            "end": state.log_end_offset,
            "recovery_point": state.recovery_point,
            "last_stable_offset": state.last_stable_offset,
            "epochs": [list(entry) for entry in state.epochs],
            "active_producers": state.producer_count if rules.knows_magic_2 else None,
        }
    return told


def differences(told: dict[str, Any], judged: dict[str, Any]) -> dict[str, Any]:
    """Fields in which the rules and the loader differ."""
    out: dict[str, Any] = {}
    for key in COMPARED:
        if key == "tree":
            ours, theirs = told["tree"], {at: size for at, size in judged["tree"].items() if size is not None}
            if judged["exception"] == "NumberFormatException":
                # What is gone before a bad name is met depends on the order of the file system: files marked as deleted, and before 3.0 indexes beside a swapped file.
                loose = (".deleted", ".index", ".timeindex", ".txnindex") if _has_swap(ours) else (".deleted",)
                ours, theirs = (
                    {at: size for at, size in tree.items() if not at.endswith(loose)} for tree in (ours, theirs)
                )
            odd = {
                name: (ours.get(name), theirs.get(name))
                for name in {*ours, *theirs}
                if ours.get(name) != theirs.get(name)
            }
            if odd:
                out["tree"] = odd
        elif told[key] != judged[key] and not isinstance(told[key], Absent):
            out[key] = (told[key], judged[key])
    return out


def _has_swap(tree: Mapping[str, object]) -> bool:
    return any(name.endswith(".swap") for name in tree)


def judge_case(
    judge: Judge, case: Case, kafka: str, work: Path, *, change: Random | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the rules say and what the loader does.

    Args:
        judge: the loader.
        case: the directory.
        kafka: the version.
        work: where the directory is made.
        change: chooses a change of the ways out, which is assumed before the rules and made before the loader.
    """
    folder = work / case.name
    shutil.rmtree(folder, ignore_errors=True)
    write_files(edited_files(case), folder)
    without: list[str] = []
    if change is not None:
        ways = [files for _, files in removable_files([path.name for path in folder.iterdir() if path.is_file()])]
        marker, checkpoints = replace(case, clean=not case.clean), replace(case, recovery_point=0, log_start=0)
        without = change.choice([[], *ways])
        case = case if without else change.choice([marker, checkpoints])
    told = predicted(folder, case, kafka, without)
    for name in without:
        (folder / name).unlink()
    judged = judge.load(folder, case)
    is_name = told.get("exception") == judged["exception"] == "NumberFormatException"
    if is_name and parse_version(kafka) < FIRST_OF_MAGIC_2:
        told["tree"] = judged[
            "tree"
        ]  # segments load in the order of the file system, up to the name that holds no number
    shutil.rmtree(folder)
    return told, judged


def _of_0_10(case: Case, dice: Random, kafka: str) -> Case:
    """The case with messages of 0.10, or some that it can't read. A broker parses the name before it loads the log, this loader behind it: one that does not parse is replaced."""
    parses = partition_of_directory(case.name, loading_rules(parse_version(kafka))) is not None
    return replace(case, magic=dice.choice([0, 1, 1, 1, 2]), name=case.name if parses else "orders-0")


def main() -> None:
    """Compare many cases and print how they differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", default="4.1.0")
    parser.add_argument("--jars", default=None)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--targeted", action="store_true")
    parser.add_argument("--uncommon", action="store_true")
    parser.add_argument("--ways-out", action="store_true", help="a change of the ways out, assumed and made")
    parser.add_argument("--write", default=None)
    given = parser.parse_args()
    jars = given.jars or str(Path.home() / ".cache/kforensics-oracle" / given.kafka)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    kept = []
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as work,
        Judge(given.kafka, f"{jars}/*") as judge,
    ):
        seeds = range(given.seed, given.seed + given.cases)
        make = uncommon_case if given.uncommon else random_case
        cases = enumerate(targeted_cases()) if given.targeted else ((seed, make(Random(seed))) for seed in seeds)
        for seed, made in cases:
            is_old = parse_version(given.kafka) < FIRST_OF_MAGIC_2
            case = _of_0_10(made, Random(seed), given.kafka) if is_old else made
            change = Random(seed) if given.ways_out else None
            told, judged = judge_case(judge, case, given.kafka, Path(work), change=change)
            if "unpredictable" in told:
                counts["unpredictable"] += 1
                print(seed, told, judged["exception"])
                continue
            differs = differences(told, judged)
            counts["differ" if differs else "same"] += 1
            counts["failed" if judged["exception"] else "loaded"] += 1
            kinds[str(judged["exception"])] += 1
            if given.write:
                kept.append(
                    {"kafka": given.kafka, "case": case.plain(), "loaded": {key: judged[key] for key in COMPARED}}
                )
            if differs and counts["differ"] <= given.show:
                plain = case.plain()
                plain["edits"] = [
                    [part if len(str(part)) < 120 else str(part)[:60] + "…" for part in edit] for edit in plain["edits"]
                ]
                print(seed, json.dumps(plain), "\n   ", differs, judged.get("message"))
    print(dict(counts), dict(kinds))
    if given.write:
        Path(given.write).write_text("".join(json.dumps(one) + "\n" for one in kept))


if __name__ == "__main__":
    main()
