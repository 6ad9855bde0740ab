"""Runs every command over a tree in one process and prints what came of it.

python -m tests.trust.all_commands TREE [--and-as-nobody] [--jobs N] [--shuffle SEED]
"""

import argparse
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from kforensics.evidence import parallel
from tests.fuzz.commands import INVOCATIONS, available, invoke

NOBODY = 65534


def outcomes(tree: Path, jobs: int) -> dict[str, tuple[int, str, str]]:
    """By command: exit code, hash of its output, and what it said."""
    inputs = [str(path) for path in sorted(tree.iterdir()) if path.is_dir()]
    found = {}
    for name in available():
        for arguments in INVOCATIONS[name]:
            chosen = [
                str(jobs) if before == "--jobs" else word
                for before, word in zip(["", *arguments], arguments, strict=False)
            ]
            code, out, err = invoke([*chosen, *inputs])
            found[" ".join(arguments)] = (code, hashlib.sha256(out.encode()).hexdigest(), err)
    return found


@contextmanager
def shuffled_directories(seed: int | None) -> Iterator[None]:
    """Directories that list their entries in another order than the file system's."""
    real = os.scandir
    random = Random(seed)

    @contextmanager
    def scandir(path: Any = ".") -> Iterator[Any]:
        with real(path) as scan:
            entries = list(scan)
        random.shuffle(entries)
        yield iter(entries)

    if seed is None:
        yield
        return
    os.scandir = scandir  # type: ignore[assignment]
    try:
        yield
    finally:
        os.scandir = real


def main() -> None:
    """As who started this; where that is asked for also as nobody, who then finds all modules loaded."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=Path)
    parser.add_argument("--and-as-nobody", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shuffle", type=int)
    options = parser.parse_args()
    if options.jobs > 1:
        parallel.WORTH_A_PROCESS = 1  # small trees too are to be read by several
    with shuffled_directories(options.shuffle):
        found = outcomes(options.tree, options.jobs)
    print(json.dumps(found))
    if options.and_as_nobody:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        print(json.dumps(outcomes(options.tree, 1)))


if __name__ == "__main__":
    main()
