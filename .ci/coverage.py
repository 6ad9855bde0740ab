#!/usr/bin/env python3
"""Run the tests that need no Spark under coverage, with the cases that are left to the night, and fail where a part of the package is covered less than its floor.

    .ci/coverage.py              runs the tests, then judges
    .ci/coverage.py REPORT.json  judges the report of a run with `--cov --cov-report=json:REPORT.json`

By night: tracing every line takes as long again as the tests.
Lines and branches count alike. Of fleets most runs in Spark's own processes, so their modules are left out.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

FLOORS = {
    "kforensics/formats/log_lines/": 90.0,  # text of people and collectors, in more forms than any test has
    "kforensics/formats/": 100.0,
    "kforensics/protocol/": 100.0,
    "kforensics/": 95.0,
}
"""Percent, by the beginning of a path; what has a floor of its own counts for that and for the whole."""

WHOLE = "kforensics/"

NEEDS_SPARK = "fleet"
"""Modules with this word in their path are judged by the tests marked `spark`."""

Files = Mapping[str, Mapping[str, Any]]


def is_judged(path: str, beginning: str) -> bool:
    """Whether a file counts for a floor."""
    is_apart = beginning != WHOLE and any(
        path.startswith(other) for other in FLOORS if len(other) > len(beginning) and other.startswith(beginning)
    )
    return path.startswith(beginning) and NEEDS_SPARK not in path and not is_apart


def percent(files: Files, beginning: str) -> float:
    """Of the lines and branches of all files whose paths begin so, those that were run."""
    summaries = [file["summary"] for path, file in files.items() if is_judged(path, beginning)]
    there = sum(one["num_statements"] + one["num_branches"] for one in summaries)
    run = sum(one["covered_lines"] + one["covered_branches"] for one in summaries)
    return 100.0 * run / there if there else 0.0


def complaints(files: Files) -> Iterable[str]:
    """Return a line for each floor that is not reached, and below it what was not run."""
    for beginning, floor in FLOORS.items():
        reached = percent(files, beginning)
        if reached >= floor:
            continue
        yield f"{beginning}: {reached:.2f} % of lines and branches are covered, {floor:g} % is the floor"
        for path, file in sorted(files.items()):
            if is_judged(path, beginning) and file["summary"]["percent_covered"] < floor:
                yield f"  {path}: lines {file['missing_lines']}, branches {file['missing_branches']}"


def measure(report: Path) -> None:
    """Run the tests in as many processes as there are cores, and write the report."""
    tests = ["-n", "auto", "-m", "(some or not slow) and not oracle and not spark"]
    coverage = ["--cov", "--cov-report=", f"--cov-report=json:{report}"]
    subprocess.run([sys.executable, "-m", "pytest", *tests, *coverage], cwd=ROOT, check=True)  # noqa: S603 - no argument comes from outside


def main(arguments: list[str]) -> int:
    """Judge a report that is given, or one of a run made now."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(arguments[0]) if arguments else Path(folder, "coverage.json")
        if not arguments:
            measure(report)
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    found = list(complaints(files))
    sys.stdout.writelines(f"{line}\n" for line in found)
    for beginning in FLOORS:
        sys.stdout.write(f"{beginning} {percent(files, beginning):.2f} %\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
