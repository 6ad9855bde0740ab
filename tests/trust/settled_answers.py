"""How often an answer is not `unknown`, by command and by what is missing of the evidence: a table in Markdown over the recordings.

    python -m tests.trust.settled_answers [RECORDING …] [--command diff --command explain]

Without recordings those of `fixtures/incidents` are taken. Each row counts runs on the last snapshot of a recording; where one broker is taken away, each in turn.
"""

import argparse
import json
import shutil
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kforensics.ask.model import Ask
from kforensics.commands import diff, explain
from kforensics.findings.answers.model import State
from tests.builders.directories import copied
from tests.conftest import ROOT

RECORDINGS = ROOT / "fixtures" / "incidents"


class Run(NamedTuple):
    """One run, and what it is without."""

    missing: str
    paths: tuple[Path, ...]
    before: tuple[Path, ...] = ()


def diffs(root: Path, snapshot: str, copy: Path) -> Iterator[Run]:
    """The comparisons of the last snapshot, each with less of it."""
    nodes = _nodes(root / "snapshots" / snapshot)
    brokers = [node for node in nodes if node.name.startswith("broker")]
    logs = _nodes(root / "logs")
    yield Run("nothing", (*nodes, *logs))
    yield Run("log files of brokers", tuple(nodes))
    if len(brokers) < len(nodes):
        yield Run("log files and controllers", tuple(brokers))
    if len(brokers) > 1:
        yield from (Run("one broker", tuple(one for one in (*nodes, *logs) if one is not gone)) for gone in brokers)
    for node in nodes:
        copied(node, copy / node.name)
    for checkpoint in copy.rglob("*-checkpoint"):
        checkpoint.unlink()
    yield Run("checkpoints", (*_nodes(copy), *logs))
    for metadata in (*copy.rglob("__cluster_metadata-0"), *copy.rglob("@metadata-0")):
        shutil.rmtree(metadata)
    yield Run("checkpoints, log files and metadata", tuple(_nodes(copy)))


def explanations(root: Path, snapshot: str, earlier: Sequence[str]) -> Iterator[Run]:
    """The explanations of the last snapshot, each with less of what there is."""
    nodes, logs = tuple(_nodes(root / "snapshots" / snapshot)), tuple(_nodes(root / "logs"))
    before = tuple(root / "snapshots" / name for name in earlier)
    yield Run("nothing", (*nodes, *logs), before)
    yield Run("log files of brokers", nodes, before)
    yield Run("earlier snapshots", (*nodes, *logs))
    yield Run("log files and earlier snapshots", nodes)
    if len(nodes) > 1:
        yield from (Run("one node", tuple(one for one in (*nodes, *logs) if one is not gone), before) for gone in nodes)
    if logs:
        yield Run("all directories", logs)


def _nodes(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def state_of(command: str, run: Run) -> State:
    """The state of the answer; a refusal is none."""
    if command == "diff":
        return diff.run(Ask(paths=run.paths, jobs=1)).body.answer.state
    answer = explain.run(Ask(paths=run.paths, before=run.before, jobs=1)).answer
    assert answer is not None
    return answer.state


def count(recordings: Sequence[Path], commands: Sequence[str]) -> dict[tuple[str, str], Counter[State]]:
    """The states of all runs, by command and by what was missing."""
    states: dict[tuple[str, str], Counter[State]] = {}
    for recording in recordings:
        with tempfile.TemporaryDirectory() as work, tarfile.open(recording) as bundle:
            bundle.extractall(work, filter="data")
            root = Path(work) / recording.name.removesuffix(".tar.xz")
            checks = json.loads((root / "checks.json").read_text())
            wanted = checks.get("explain") or {}
            snapshot = wanted.get("snapshot") or max(one.name for one in (root / "snapshots").iterdir())
            runs = [("diff", run) for run in diffs(root, snapshot, Path(work) / "copy")] if "diff" in commands else []
            if "explain" in commands and wanted:
                runs += [("explain", run) for run in explanations(root, snapshot, wanted.get("before", []))]
            for command, run in runs:
                states.setdefault((command, run.missing), Counter())[state_of(command, run)] += 1
    return states


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recordings", nargs="*", type=Path, default=sorted(RECORDINGS.glob("*.tar.xz")))
    parser.add_argument("--command", action="append", choices=["diff", "explain"])
    options = parser.parse_args()
    states = count(options.recordings, options.command or ["diff", "explain"])
    print("| command | missing | runs | not `unknown` | states |\n|---|---|---|---|---|")
    for (command, missing), found in states.items():
        total = found.total()
        settled = total - found[State.UNKNOWN]
        words = ", ".join(f"{state} {number}" for state, number in found.most_common())
        print(f"| `{command}` | {missing} | {total} | {settled / total:.0%} | {words} |")


if __name__ == "__main__":
    main()
