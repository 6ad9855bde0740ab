"""Break one rule at a time and show that tables, random histories, or logs and states spelled out one by one notice.

    python -m tests.mutants.run            all mutants, two at a time
    python -m tests.mutants.run epochs     those whose file or name holds the words

Exit code 1 where a mutant survives, or where nothing but examples of the rules notices it. The package is copied for each
mutant; the working tree is not touched.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.catalogue import EPOCHS, MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]

KILLERS = (
    (
        "scenarios",
        ("tests/simulation/test_scenarios.py", "tests/protocol/test_truncation.py::test_the_seven_worked_cases"),
    ),
    ("spelled-out logs", ("tests/protocol/test_properties.py",)),
    ("every election", ("tests/protocol/test_election_properties.py",)),
    ("histories", ("tests/simulation/test_promises.py",)),
    ("histories on disk", ("tests/simulation/test_joined.py",)),
    ("models", ("tests/simulation/test_explore.py", "-k", "not 3222")),
    ("examples", ("tests/protocol",)),
)
"""Quickest first. Examples of the rules alone are not enough."""
NOT_ENOUGH = "examples"


def main(words: list[str]) -> int:
    """Run the mutants and print a line for each."""
    unbroken = judge(Mutant("nothing is broken", EPOCHS, "def assign(", "def assign("))
    if unbroken is not None:
        print(f"{unbroken} fail without any mutant: nothing can be said")
        return 1
    chosen = [mutant for mutant in MUTANTS if all(word in f"{mutant.file} {mutant.name}" for word in words)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(judge, chosen))
    killed = Counter(killer for killer in results if killer is not None)
    by_killer = ", ".join(f"{killed[name]} by {name}" for name, _arguments in KILLERS if killed[name])
    print(f"{killed.total()} of {len(results)} mutants killed: {by_killer}")
    return 0 if results and killed.total() - killed[NOT_ENOUGH] == len(results) else 1


def judge(mutant: Mutant) -> str | None:
    """Which tests kill the mutant, none where it survives."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        ignored = shutil.ignore_patterns("__pycache__", "mutants", "incidents")
        for name in ("kforensics", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", copy)
        file = copy / "kforensics" / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            print(
                f"{'stale':<28} {mutant.file}: {mutant.name}: the text occurs {text.count(mutant.old)} times",
                flush=True,
            )
            return None
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        killer = next((name for name, arguments in KILLERS if fails(copy, arguments)), None)
    seconds = time.monotonic() - started
    verdict = "survives" if killer is None else f"killed by {killer}"
    print(f"{verdict:<28} {mutant.file}: {mutant.name} ({seconds:.0f} s)", flush=True)
    return killer


def fails(copy: Path, arguments: tuple[str, ...]) -> bool:
    """Whether the tests fail on the copy."""
    environment = os.environ | {"PYTHONPATH": str(copy), "KFORENSICS_SEEDS": "40", "PYTHONDONTWRITEBYTECODE": "1"}
    marks = "(some or not slow) and not oracle"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", marks, *arguments]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False)
    if done.returncode not in {0, 1}:
        message = f"pytest could not run {arguments}: {done.stdout.decode()[-500:]}"
        raise RuntimeError(message)
    return done.returncode == 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
