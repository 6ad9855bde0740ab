#!/usr/bin/env python3
"""Build kforensics.pyz: one file that runs on CPython 3.11 to 3.14, x86_64 and aarch64, with glibc 2.28 or later, without anything installed.

    .venv/bin/python .ci/pyz.py dist/kforensics-1.2.3-py3-none-any.whl dist/kforensics.pyz
    .venv/bin/python .ci/pyz.py --check dist/kforensics.pyz python3.11 python3.12

Wheels are fetched by pip at the versions of constraints.txt. What is pure is in the file once; what is compiled, once for each interpreter and machine. Only what
the interpreter needs is unpacked when it runs (pyz_main.py). `--check` runs the file without an environment, without site-packages and without a home, on a copy of a
recorded cluster: captures each broker, and holds what commands say of captures and of directories against what they say by the first interpreter. An
interpreter may be a command, such as `qemu-aarch64-static -L ROOT ROOT/usr/bin/python3.13`.
"""

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
GLIBC = ("2_28", "2_27", "2_17", "2_12", "2_5")
OLD_NAMES = ("manylinux2014", "manylinux2010", "manylinux1")
SHEBANG = b"#!/usr/bin/env python3\n"
_TIME = (1980, 1, 1, 0, 0, 0)
_UNNEEDED = ("*/tests/*", "*.pyi", "*.a", "*.h", "numpy/f2py/*", "numpy/_core/include/*", "*.data/data/*")
"""Of packages: what nothing of kforensics runs."""


def main() -> int:
    """Build or check, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=Path, metavar="PYZ")
    parser.add_argument("arguments", nargs="+")
    options = parser.parse_args()
    if options.check:
        return check(options.check.resolve(), options.arguments)
    wheel, out = map(Path, options.arguments)
    build(wheel.resolve(), out)
    sys.stdout.write(f"{out}: {out.stat().st_size / 1e6:.0f} MB\n")
    return 0


def build(wheel: Path, out: Path) -> None:
    """Fetch the wheels of every interpreter and machine, and pack them."""
    with TemporaryDirectory() as work, out.open("wb") as file:
        file.write(SHEBANG)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            digest, seen = hashlib.sha256(), set()
            for version in VERSIONS:
                for machine in MACHINES:
                    tag = f"cp{version.replace('.', '')}-{machine}"
                    for one in fetch(wheel, Path(work) / tag, version, machine):
                        is_pure = one.stem.endswith("-none-any")
                        place = "site/any" if is_pure else f"site/{tag}"
                        if (place, one.name) not in seen:
                            seen.add((place, one.name))
                            for name, data in content(one):
                                digest.update(f"{place}/{name}".encode() + data)
                                add(packed, f"{place}/{name}", data)
            add(packed, "build-id", digest.hexdigest().encode())
            add(packed, "__main__.py", (Path(__file__).parent / "pyz_main.py").read_bytes())
    out.chmod(0o755)


def fetch(wheel: Path, folder: Path, version: str, machine: str) -> list[Path]:
    """Return the wheels that the interpreter needs on the machine."""
    names = [*(f"manylinux_{one}_{machine}" for one in GLIBC), *(f"{one}_{machine}" for one in OLD_NAMES)]
    tag = f"cp{version.replace('.', '')}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(folder)]
    command += ["--implementation", "cp", "--python-version", version, "--abi", tag, "--abi", "abi3", "--abi", "none"]
    command += [word for name in names for word in ("--platform", name)]
    command += ["--constraint", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(command, check=True)  # noqa: S603 - pip, with names of this file
    return sorted(folder.glob("*.whl"))


def content(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Return the files of a wheel that are needed."""
    with zipfile.ZipFile(wheel) as packed:
        for name in sorted(packed.namelist()):
            if not name.endswith("/") and not any(fnmatch(name, one) for one in _UNNEEDED):
                yield name, packed.read(name)


def add(packed: zipfile.ZipFile, name: str, data: bytes) -> None:
    """One member, the same in every build."""
    info = zipfile.ZipInfo(name, _TIME)
    info.external_attr = 0o644 << 16
    packed.writestr(info, data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)


def check(pyz: Path, interpreters: list[str]) -> int:
    """Run the file by each interpreter in an empty environment, and hold what it prints against the first one's; 1 where one can't, or differs."""
    complaints: list[str] = []
    expected: dict[str, str] = {}
    for interpreter in interpreters:
        with TemporaryDirectory() as work:
            # It is run from another directory.
            words = [str(Path(one).absolute()) if "/" in one else one for one in shlex.split(interpreter)]
            shown, failed = outputs(pyz, words, Path(work))
        complaints += [f"{interpreter}: {words}" for words in failed]
        expected = expected or shown
        complaints += [
            f"{interpreter}: {name} is not as by {interpreters[0]}: {text!r}"
            for name, text in shown.items()
            if text != expected.get(name)
        ]
        sys.stdout.write(f"{interpreter}: {len(shown)} commands, {len(failed)} failed\n")
    sys.stdout.writelines(f"{words}\n" for words in complaints or [f"it runs by {', '.join(interpreters)}"])
    return 1 if complaints else 0


def outputs(pyz: Path, interpreter: list[str], work: Path) -> tuple[dict[str, str], list[str]]:
    """Return what commands print, by name, and those that fail: a capture of each broker of a recording, what is said of the captures and of the directories."""
    brokers = [ROOT / "fixtures" / "unclean-election" / f"broker-{number}" for number in (1, 2, 3)]
    captures = [work / f"{broker.name}.kfc" for broker in brokers]
    runs: list[tuple[str, dict[str, str], list[str]]] = [("version", {"XDG_CACHE_HOME": "/dev/null"}, ["--version"])]
    kept = {"KFORENSICS_UNPACKED": f"{work}/unpacked"}
    for broker, out in zip(brokers, captures, strict=True):
        runs.append((f"capture of {broker.name}", kept, ["capture", str(broker), "-o", str(out), "--quiet"]))
    runs += [
        (f"{command} of {kind}", kept, [command, *map(str, inputs)])
        for kind, inputs in (("captures", captures), ("directories", brokers))
        for command in ("diff", "explain", "ls", "verify")
    ]
    runs.append(("seal", kept, ["seal", "--check", str(captures[0])]))
    shown: dict[str, str] = {}
    failed: list[str] = []
    for name, environment, arguments in runs:
        done = subprocess.run(  # noqa: S603 - what whoever runs this file names
            [*interpreter, "-I", "-S", str(pyz), *arguments],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        text = done.stdout.replace(f"{work}/", "")
        shown[name] = f"{done.returncode} {SECONDS.sub('', text)}"
        if done.returncode not in FOUND or not text:
            failed.append(f"{name}: exit code {done.returncode}: {done.stderr}")
    return shown, failed


FOUND = (0, 1, 3)
"""Exit codes of commands that came to an answer: the recording has an unclean leader election in it."""

SECONDS = re.compile(r"\b[0-9.,]+ (?:s|seconds?|ms|[kMG]B/s)\b|(?<=Sealed )\S+")
"""What the speed of a machine and the time of the run show in."""


if __name__ == "__main__":
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    sys.exit(main())
