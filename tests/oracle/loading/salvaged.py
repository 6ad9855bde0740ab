"""What `salvage --form segments` writes, loaded by Kafka's own loader: nothing may change but the preallocation of the active indexes.

Run by hand: `python -m tests.oracle.loading.salvaged --cases 1000` (Java 17, Maven or `--jars`). The sources are the made directories, damaged and edited, that
`predict` is judged by; half of the logs are written with `--from-zero`, and every fifth in segments of a few kilobytes.
"""

import argparse
import io
import json
import os
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from kforensics.cli.app import run
from kforensics.commands.salvaging import segments
from tests.oracle.jars import RELEASES, class_path
from tests.oracle.loading.judge import Judge
from tests.oracle.loading.made import TOPIC_ID, Case, edited_files, random_case, write_files

SMALL_SEGMENT = 6_000
CLUSTER = "6It1kTHbTjKY3LNflMZizQ"


def write_sources(folder: Path, seeds: range) -> None:
    """Made directories as the partitions of one broker."""
    folder.mkdir(parents=True)
    lines = ("version=1", "node.id=1", f"cluster.id={CLUSTER}", f"directory.id={TOPIC_ID}")
    (folder / "meta.properties").write_text("\n".join(lines) + "\n")
    for number, seed in enumerate(seeds):
        files = {name: data for name, data in edited_files(random_case(Random(seed))).items() if "/" not in name}
        write_files(files, folder / f"made-{number}")


def salvage(source: Path, out: Path, *options: str, small: bool = False) -> dict[str, Any]:
    """Everything as segments; the document of the command."""
    text = io.StringIO()
    length = SMALL_SEGMENT if small else segments.SEGMENT_LENGTH
    with_length = partial(segments.SegmentLog, segment_length=length)

    arguments = ["salvage", str(source), "--what", "all", "--form", "segments", "-o", str(out), "--format", "json"]
    with (
        redirect_stdout(text),
        redirect_stderr(io.StringIO()),
        mock.patch("kforensics.commands.salvage.SegmentLog", with_length),
    ):
        run([*arguments, "--jobs", "1", *options])
    document: dict[str, Any] = json.loads(text.getvalue())
    return document


def tree_of(folder: Path) -> dict[str, int]:
    """Names and sizes."""
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def changes(before: dict[str, int], after: dict[str, int]) -> dict[str, tuple[int | None, int | None]]:
    """What loading changed, the preallocation of the active indexes apart."""
    logs = sorted(name for name in before if name.endswith(".log"))
    active = {logs[-1].replace(".log", ending) for ending in (".index", ".timeindex")} if logs else set()
    return {
        name: (before.get(name), after.get(name))
        for name in {*before, *after} - active
        if before.get(name) != after.get(name)
    }


def logs_in(out: Path) -> list[Path]:
    """Every directory of a log in the output, alternates included."""
    return sorted({path.parent for path in out.rglob("*.log")})


def judge_logs(judge: Judge, out: Path) -> list[str]:
    """What is wrong with the logs of an output; nothing where all load as they are."""
    wrong = []
    for folder in logs_in(out):
        before = tree_of(folder)
        end = max(int(name.split(".")[0]) for name in before if name.endswith(".snapshot"))
        start = min(int(name.split(".")[0]) for name in before if name.endswith(".log"))
        answer = judge.load(folder, Case(clean=True, recovery_point=end, log_start=start))
        found = changes(before, answer["tree"])
        if answer["exception"] or found or (answer["start"], answer["end"]) != (start, end):
            wrong.append(
                f"{folder}: {start} to {end}, {answer['exception']} {answer['message']} {answer['end']} {found}"
            )
    return wrong


def main() -> int:
    """Judge as many made logs as were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kafka", default="4.1.0")
    parser.add_argument("--jars", help="the class path; fetched by Maven where it is not given")
    options = parser.parse_args()
    jars = options.jars or class_path(next(one for one in RELEASES if one.version == options.kafka))
    loaded, wrong, at = 0, [], options.seed
    with Judge(options.kafka, jars) as judge:
        while loaded < options.cases:
            seeds = range(at, at + 50)
            at += 50
            with tempfile.TemporaryDirectory() as work:
                write_sources(Path(work, "broker-1"), seeds)
                more = ("--from-zero",) if (at // 50) % 2 else ()
                salvage(Path(work, "broker-1"), Path(work, "out"), *more, small=(at // 50) % 5 == 0)
                loaded += len(logs_in(Path(work, "out")))
                wrong += judge_logs(judge, Path(work, "out"))
    print(f"{loaded} logs loaded by Kafka {options.kafka}, {len(wrong)} not as they were written")
    for words in wrong[:10]:
        print(f"  {words}")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
