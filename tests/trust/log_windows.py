"""Whether `explain` stays right where `--since` leaves log files out: a line for each recording with a metadata log.

    python -m tests.trust.log_windows [RECORDING …]

Each log file of a recording is cut in three, as if it had been rotated twice, and the window begins two days after the last line: the older thirds are left out, but for those in which a
broker started last. Exit code 1 where the state of the answer is calmer than with all log files. Without recordings those of `fixtures/incidents` are taken.
"""

import argparse
import datetime as dt
import json
import re
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.commands.explain import run
from kforensics.commands.explanation import Explanation
from tests.conftest import ROOT

RECORDINGS = ROOT / "fixtures" / "incidents"
CALM = {"nothing-lost", "uncommitted-lost"}
LINE = re.compile(rb"^\[(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)


def rotated(logs: Path) -> int | None:
    """Cut each log file in three; return the time of the last line of all in milliseconds."""
    last = b""
    for path in sorted(logs.rglob("*.log")):
        data = path.read_bytes()
        lines = list(LINE.finditer(data))
        if not lines:
            continue
        last = max(last, lines[-1][1])
        one, two = lines[len(lines) // 3].start(), lines[2 * len(lines) // 3].start()
        for part, name in ((data[:one], ".2"), (data[one:two], ".1"), (data[two:], "")):
            path.with_name(path.name + name).write_bytes(part)
    return int(dt.datetime.fromisoformat(f"{last.decode()}+00:00").timestamp() * 1000) if last else None


def explained(root: Path, since_ms: int | None) -> Explanation:
    """The explanation of a recording as its `checks.json` names the inputs."""
    checks = json.loads((root / "checks.json").read_text())["explain"]
    before = tuple(root / "snapshots" / name for name in checks.get("before", []))
    paths = (root / "snapshots" / checks["snapshot"], root / "logs")
    return run(Ask(paths=paths, before=before, since_ms=since_ms)).body


def main(arguments: Sequence[str]) -> int:
    """Print both states of each recording, and how many log files were not read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", type=Path)
    calmer = 0
    for archive in parser.parse_args(arguments).recordings or sorted(RECORDINGS.glob("*.tar.xz")):
        with tempfile.TemporaryDirectory() as scratch, tarfile.open(archive) as tar:
            tar.extractall(scratch, filter="data")
            root = next(Path(scratch).rglob("checks.json")).parent
            last = rotated(root / "logs")
            if last is None or not any(root.rglob("__cluster_metadata-0")):
                continue
            whole, windowed = explained(root, None), explained(root, last + 2 * 86_400_000)
        states = whole.answer.state.value, windowed.answer.state.value
        left_out = len(whole.clocks) - len(windowed.clocks)
        is_calmer = states[1] in CALM and states[0] not in CALM
        calmer += is_calmer
        print(
            f"{archive.name.split('.tar')[0]:28} {left_out:3} of {len(whole.clocks):3} log files left out: {states[0]} -> {states[1]}{'   CALMER' if is_calmer else ''}",
            flush=True,
        )
    return int(calmer > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
