#!/usr/bin/env python3
"""The beginning of kforensics.pyz: unpacks what this interpreter needs, once, and runs the command line."""

import os
import platform
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

FOLDER = "KFORENSICS_UNPACKED"
"""Names a directory to unpack to; else it is one in the cache directory of the user, or a temporary one that is removed at the end."""

LIBRARY = "libstdc++.so.6"
"""What numpy needs of the system besides glibc; a package of its own in small images."""


def main() -> None:
    """Find or make the unpacked packages, and run."""
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}-{platform.machine()}"
    with zipfile.ZipFile(Path(__file__).resolve().parent) as packed:
        names = packed.namelist()
        if not any(name.startswith(f"site/{tag}/") for name in names):
            there = ", ".join(sorted({name.split("/")[1] for name in names if name.startswith("site/cp")}))
            sys.exit(f"kforensics.pyz: nothing in it is for {tag}; it has {there}, all for glibc 2.28 and later")
        wanted = [name for name in names if name.startswith(("site/any/", f"site/{tag}/"))]
        build = packed.read("build-id").decode()
        folder, is_temporary = unpacked(packed, wanted, f"{build[:16]}-{tag}")
    require_libraries()
    sys.path[:0] = [f"{folder}/site/{tag}", f"{folder}/site/any"]
    try:
        from kforensics.__main__ import main as run  # noqa: PLC0415 - it was not there before

        run()
    finally:
        if is_temporary:
            shutil.rmtree(folder, ignore_errors=True)


def require_libraries() -> None:
    """Say which library of the system is missing that the compiled parts need and that is no part of glibc."""
    with suppress(ImportError):  # an interpreter without ctypes
        import ctypes  # noqa: PLC0415 - only here

        try:
            ctypes.CDLL(LIBRARY)
        except OSError as error:
            sys.exit(f"kforensics.pyz: the compiled parts need {LIBRARY}, which this host does not have: {error}")


def unpacked(packed: zipfile.ZipFile, wanted: Sequence[str], name: str) -> tuple[Path, bool]:
    """Return the directory with the files, and whether it is to be removed at the end."""
    for parent in parents():
        target = parent / name
        if is_own(target):
            return target, False
        part = parent / f"{name}.{os.getpid()}.part"
        with suppress(OSError):  # no room, not writable, or another process was first
            part.mkdir(parents=True, mode=0o700)
            packed.extractall(part, wanted)
            part.rename(target)
        shutil.rmtree(part, ignore_errors=True)
        if is_own(target):
            return target, False
    folder = Path(tempfile.mkdtemp(prefix="kforensics-"))
    packed.extractall(folder, wanted)
    return folder, True


def is_own(folder: Path) -> bool:
    """Whether a directory is there that nobody else can have made."""
    try:
        return folder.is_dir() and folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def parents() -> Iterator[Path]:
    """Where it may be unpacked to."""
    if os.environ.get(FOLDER):
        yield Path(os.environ[FOLDER])
        return
    with suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kforensics"


main()
