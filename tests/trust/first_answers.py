"""What `triage` says first of each recording, held against what happened: a table in Markdown over the recordings.

    python -m tests.trust.first_answers [RECORDING …]

Without recordings those of `fixtures/incidents` are taken. Each is asked about three times by its last snapshot: with log files, with the directories alone, and with log files and the first snapshot before it.
A cell has the state, whether it is right of what was lost, what the advice got back (the commands of `salvage` are run), whether the advice was right, and the lines of the screen at 80 columns.
"""

import argparse
import json
import os
import shlex
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from kforensics.cli.app import run
from tests.conftest import ROOT

RECORDINGS = ROOT / "fixtures" / "incidents"
WARNED = frozenset({"maybe-lost", "at-risk", "maybe-at-risk", "past-the-end", "will-not-start", "loses"})


def variants(snapshots: Sequence[str], *, logs: bool) -> Iterator[list[str]]:
    """The arguments of the three questions."""
    last, with_logs = [f"snapshots/{snapshots[-1]}"], ["logs"] * logs
    yield [*last, *with_logs]
    yield last
    yield [*last, *with_logs, "--before", f"snapshots/{snapshots[0]}"]


def said(*words: str) -> tuple[str, int]:
    """What a command prints, and its exit code."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()):
        try:
            code = run([*words])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return out.getvalue(), code


def verdict(lost: int, answer: dict[str, Any], certain: int) -> str:
    """Whether what is said of losses is right: `open` where it is not known, `warned` where it is feared, and false calm or alarm in capitals."""
    state = answer["state"]
    if state == "unknown":
        return "open"
    if state == "lost" or certain:
        return "right" if lost else "FALSE ALARM"
    if state in WARNED:
        return "warned"
    if lost and any(one["command"] == "explain" and one["answer"]["state"] == "unknown" for one in answer["questions"]):
        return "open"
    return "FALSE CALM" if lost else "right"


def saved(words: Sequence[str], out: Path) -> int:
    """How many records a command of `salvage` writes."""
    said(*words, "-o", str(out))
    return sum(len(one.read_text(errors="replace").splitlines()) for one in out.rglob("*.jsonl"))


def cell(arguments: Sequence[str], lost: int, work: Path, judged: Counter[str]) -> str:
    """What one question gets, in few words."""
    screen, code = said("triage", *arguments)
    document = json.loads(said("triage", *arguments, "--format", "json")[0])
    answer = document["answer"]
    certain = sum(topic["lost"] for topic in document["topics"])
    right = verdict(lost, {**answer, "questions": document["questions"]}, certain)
    commands = [
        shlex.split(line.strip().removeprefix("$ ")) for line in screen.splitlines() if line.startswith(" " * 13 + "$ ")
    ]
    salvages = [words[1 : words.index("-o")] for words in commands if words[:2] == ["kforensics", "salvage"]]
    back = sum(saved(words, work / f"saved-{at}") for at, words in enumerate(salvages))
    is_kept = salvages or any("Don't delete" in one for one in answer["now"])
    left = 0 if is_kept or not lost else saved(["salvage", "--what", "lost", *arguments], work / "left")
    action = "right" if (back or not salvages) and not left and (answer["now"] or not (lost and code)) else "WRONG"
    judged.update((f"verdict {right}", f"action {action}"))
    lines = len(screen.splitlines())
    judged["screens over 30 lines"] += lines > 30
    got = f", {back:,} back" if salvages else ""
    return f"{answer['state']}: {right}{got}; action {action}; {lines}"


def main() -> None:
    """Print the table, and how many cells are of which kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recordings", nargs="*", type=Path, default=sorted(RECORDINGS.glob("*.tar.xz")))
    options = parser.parse_args()
    os.environ["COLUMNS"] = "80"
    judged: Counter[str] = Counter()
    print(
        "| recording | lost | directories and logs | directories alone | logs and the first snapshot |\n|---|---|---|---|---|"
    )
    for recording in map(Path.absolute, options.recordings):
        with tempfile.TemporaryDirectory() as made, tarfile.open(recording) as bundle:
            bundle.extractall(made, filter="data")
            root = Path(made) / recording.name.removesuffix(".tar.xz")
            found = json.loads((root / "checks.json").read_text()).get("explain") or {}
            lost = sum(len(one["offsets"]) for one in found.get("lost", ()))
            snapshots = sorted(one.name for one in (root / "snapshots").iterdir())
            cells = []
            with chdir(root):
                for at, arguments in enumerate(variants(snapshots, logs=(root / "logs").is_dir())):
                    (work := Path(made) / f"work-{at}").mkdir()
                    cells.append(cell(arguments, lost, work, judged))
            print(f"| {root.name} | {lost:,} | {' | '.join(cells)} |", flush=True)
    print("\n" + "; ".join(f"{name}: {count}" for name, count in sorted(judged.items())) + ".")


if __name__ == "__main__":
    main()
