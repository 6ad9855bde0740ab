"""Runs every command over a tree in one process and prints what came of it: `python -m tests.trust.all_commands TREE [--as-nobody]`."""

import hashlib
import json
import os
import sys
from pathlib import Path

from tests.fuzz.commands import INVOCATIONS, available, invoke

NOBODY = 65534


def outcomes(tree: Path) -> dict[str, tuple[int, str, str]]:
    """By command: exit code, hash of its output (`seal` without its time), and what it said."""
    inputs = [str(path) for path in sorted(tree.iterdir()) if path.is_dir()]
    found = {}
    for name in available():
        for arguments in INVOCATIONS[name]:
            code, out, err = invoke([*arguments, *inputs])
            found[" ".join(arguments)] = (code, hashlib.sha256(out.encode()).hexdigest(), err)
    return found


def main() -> None:
    """Once as who started this, so that all modules are loaded, and then as nobody where that is asked for."""
    tree = Path(sys.argv[1])
    found = outcomes(tree)
    if "--as-nobody" in sys.argv:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        found = outcomes(tree)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
