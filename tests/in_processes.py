"""Starts that are predicted in one process, and in several with segments in parts of a few batches: the same, byte for byte.

    python -m tests.in_processes DIR...

Each DIR is an unpacked recording, or holds several. Of every snapshot the directory of each broker is predicted as it is, as if its clean-shutdown marker were not there, likewise its offset indexes, and
with a byte changed in the middle of each segment, as `predict --jobs 1` and `predict --jobs 2` do. Exit code 1 where one differs, or where no segment was scanned in parts.
"""

import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kforensics.cli.app import run
from kforensics.commands.predicting import log_starts
from kforensics.evidence import parallel, segment_parts
from kforensics.evidence.replica import loader_scan
from tests.builders.directories import copied

NOW_MS = "1800000000000"
SMALLEST = 2048
MARKER = ".kafka_cleanshutdown"


class Count:
    """The parts that were scanned."""

    parts = 0


@contextlib.contextmanager
def small_parts() -> Iterator[type[Count]]:
    """Parts of a few batches, and logs of any size, are worth a process."""

    def counted(work: Any, tasks: Any, **options: Any) -> Any:
        Count.parts += len(tasks)
        return parallel.spread(work, tasks, **options)

    with contextlib.ExitStack() as stack:
        for module, name, value in (
            (segment_parts, "SMALLEST_PART", SMALLEST),
            (log_starts, "SMALLEST_PART", SMALLEST),
            (log_starts, "WORTH_COLUMNS", 0),
            (log_starts, "WORTH_A_PROCESS", 1),
            (log_starts, "WEIGHT_OF_A_TASK", 1),
            (loader_scan, "WORTH_COLUMNS", 0),
            (loader_scan, "WORTH_A_PROCESS", 1),
            (loader_scan, "spread", counted),
            (parallel, "WORTH_A_PROCESS", 1),
        ):
            stack.enter_context(patch.object(module, name, value))
        yield Count


def printed(broker: Path, *options: str) -> tuple[int, str, str]:
    """The exit code of a prediction, and what it prints."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = run(["predict", str(broker), "--now", NOW_MS, "--format", "json", *options])
    return code, out.getvalue(), errors.getvalue()


def variants(broker: Path, work: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """What is predicted of a broker: a name for it, the directory, and options."""
    yield "as it is", broker, []
    for name, pattern in (("unclean", MARKER), ("without indexes", "*/*.index")):
        found = sorted(broker.rglob(pattern))
        if found:
            yield name, broker, [word for path in found for word in ("--without", str(path))]
    copy = copied(broker, work / broker.name)
    for path in copy.rglob("*.log"):
        if path.parent != copy and (length := path.stat().st_size):
            with path.open("r+b") as file:
                file.seek(length // 2)
                byte = file.read(1)
                file.seek(length // 2)
                file.write(bytes([byte[0] ^ 8]))
    markers = sorted(copy.rglob(MARKER))
    yield "damaged", copy, [word for path in markers for word in ("--without", str(path))]


def main() -> int:
    """Compare all recordings below the directories named, and print what differs."""
    count = different = 0
    for place in map(Path, sys.argv[1:]):
        recordings = [place] if (place / "snapshots").is_dir() else sorted(place.iterdir())
        for broker in (one for recording in recordings for one in sorted(recording.glob("snapshots/*/*/"))):
            with tempfile.TemporaryDirectory() as work:
                for name, path, options in variants(broker, Path(work)):
                    one = printed(path, *options, "--jobs", "1")
                    with small_parts():
                        other = printed(path, *options, "--jobs", "2")
                    count += 1
                    if one != other:
                        different += 1
                        print(f"{broker}: {name}: differs", flush=True)
    print(f"{count} predictions, {different} different, {Count.parts} parts of segments")
    return int(different > 0 or not Count.parts)


if __name__ == "__main__":
    sys.exit(main())
