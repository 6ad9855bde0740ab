#!/usr/bin/env python3
"""Compare constraints.txt with requirements.lock, or with `--write` make the one from the other.

The lock has every package with the hashes of its files, for all Python versions that are supported; constraints.txt has the same versions for
`pip install -c`, which takes no hashes for a package that is installed from its sources. `nox -s lock` renews both.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
CONSTRAINTS = ROOT / "constraints.txt"
HEAD = "# Every package that users, development and CI install, pinned: pip install -c constraints.txt. Made by `nox -s lock`.\n"

PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
HASH = re.compile(r"^ +--hash=sha256:[0-9a-f]{64}(?: \\)?$")
ADDRESS = re.compile(r"://| @ |--(?:index|extra-index|find-links|trusted-host)|(?:^|\s)/")


def pins(path: Path) -> set[tuple[str, str]]:
    """Each package of the file by its normal name, with its version."""
    text = path.read_text(encoding="utf-8")
    return {(re.sub(r"[-_.]+", "-", found["name"]).lower(), found["version"]) for found in PIN.finditer(text)}


def complaints() -> list[str]:
    """Return what is wrong with the two files, a sentence each."""
    locked, pinned = pins(LOCK), pins(CONSTRAINTS)
    wrong = [f"{name} {version} is in constraints.txt only" for name, version in sorted(pinned - locked)]
    wrong += [f"{name} {version} is in requirements.lock only" for name, version in sorted(locked - pinned)]
    names = [name for name, _ in sorted(locked)]
    wrong += [
        f"{name} is locked in several versions" for name in sorted({name for name in names if names.count(name) > 1})
    ]
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True), start=1):
        if PIN.match(line) and not HASH.match(following):
            wrong.append(f"requirements.lock:{number}: no hash follows")
        if ADDRESS.search(line):
            wrong.append(f"requirements.lock:{number}: names an address or a path")
    return wrong


def main(arguments: list[str]) -> int:
    """Write constraints.txt, or print what does not agree and exit with 1."""
    if "--write" in arguments:
        CONSTRAINTS.write_text(HEAD + "".join(f"{name}=={version}\n" for name, version in sorted(pins(LOCK))), "utf-8")
    wrong = complaints()
    for sentence in wrong:
        sys.stderr.write(f"{sentence}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
