"""`salvage` over damaged data directories: `python -m tests.fuzz.salvage --runs 1000`.

Every form and every kind of wish, over trees of which files were mutated, renamed, removed or replaced by links, pipes and directories. No defect, no
traceback, nothing written outside of OUT, nothing named by what a disk says, and of what is written as JSON lines no record twice in a file.
"""

import argparse
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.fuzz.commands import ALLOWED_CODES, FORBIDDEN, CommandDefect, damage_tree, invoke, small_tree

WISHES: Sequence[Sequence[str]] = (
    ("--what", "all"),
    ("--what", "all", "--with-aborted"),
    ("--what", "at-risk"),
    ("--what", "lost"),
    ("--what", "all", "--form", "segments"),
    ("--what", "all", "--form", "segments", "--from-zero"),
    ("--what", "all", "--form", "console"),
)
NAME = re.compile(r"[A-Za-z0-9._%-]+")


def check(seed: int, tree: Path, work: Path) -> None:
    """One wish over a tree.

    Raises:
        CommandDefect: what may never be.
    """
    out = work / "out"
    inputs = sorted(str(path) for path in tree.iterdir() if path.is_dir())
    arguments = ["salvage", *inputs, "--keep-going", *WISHES[seed % len(WISHES)], "--jobs", "1", "-o", str(out)]
    if seed % 11 == 0:
        largest = max((path for path in tree.rglob("*.log") if path.is_file()), key=os.path.getsize, default=None)
        arguments = ["salvage", "--carve", str(largest), inputs[0], "--keep-going", "-o", str(out)]
    code, printed, err = invoke([*arguments, "--format", "json"])
    if code not in ALLOWED_CODES or "Traceback" in err:
        raise CommandDefect(f"seed {seed}: {' '.join(arguments)}: exit code {code}: {err[-1500:]}")
    if FORBIDDEN & (set(printed) | set(err)):
        raise CommandDefect(f"seed {seed}: wrote what steers a terminal")
    written = sorted(path for path in work.rglob("*") if path != out)
    for path in written:
        if out not in path.parents or not all(NAME.fullmatch(part) for part in path.relative_to(work).parts):
            raise CommandDefect(f"seed {seed}: wrote {path}")
        if path.is_symlink() or (code in {0, 1} and path.suffix == ".partial"):
            raise CommandDefect(f"seed {seed}: left {path}")
    for path in out.rglob("*.jsonl"):
        seen = set()
        for line in path.read_text(encoding="ascii").splitlines():
            record = json.loads(line)
            place = json.dumps([record[name] for name in ("offset", "key", "value", "headers", "timestamp_ms")])
            if place in seen:
                raise CommandDefect(f"seed {seed}: {path.name} has offset {record['offset']} twice")
            seen.add(place)


def run_seed(seed: int, sound: Path, work: Path) -> None:
    """Damage a copy of a tree and check it."""
    import shutil

    tree = work / "tree"
    shutil.copytree(sound, tree)
    damage_tree(Random(seed), tree)
    results = work / "results"
    results.mkdir()
    try:
        check(seed, tree, results)
    finally:
        shutil.rmtree(results)
        shutil.rmtree(tree)


def main() -> None:
    """Run as many seeds as were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        sound = small_tree(Path(folder, "sound"))
        for seed in range(options.seed, options.seed + options.runs):
            run_seed(seed, sound, Path(folder))
    print(f"{options.runs} damaged trees, no defect")


if __name__ == "__main__":
    main()
