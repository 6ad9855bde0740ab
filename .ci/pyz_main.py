"""The beginning of kforensics.pyz: unpacks what this interpreter needs, once, and runs the command line."""

import os
import platform
import shutil
import sys
import tempfile
import zipfile

FOLDER = "KFORENSICS_UNPACKED"
"""A directory to unpack to; else one in the cache directory of the user, or a temporary one that is removed at the end."""


def main():
    """Find or make the unpacked packages, and run."""
    archive = os.path.dirname(os.path.abspath(__file__))
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}-{platform.machine()}"
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
        wanted = [name for name in names if name.startswith(("site/any/", f"site/{tag}/")) and not name.endswith("/")]
        if not any(name.startswith(f"site/{tag}/") for name in wanted):
            there = sorted({name.split("/")[1] for name in names if name.startswith("site/cp")})
            libc = "-".join(platform.libc_ver()) or "another C library"
            sys.exit(f"kforensics.pyz: nothing in it is for {tag} ({libc}); it has {', '.join(there)}, all for glibc 2.28 and later")
        build = packed.read("build-id").decode()
        folder, is_temporary = unpacked(packed, wanted, f"{build[:16]}-{tag}")
    sys.path[:0] = [os.path.join(folder, "site", tag), os.path.join(folder, "site", "any")]
    try:
        from kforensics.cli.app import main as run

        run()
    finally:
        if is_temporary:
            shutil.rmtree(folder, ignore_errors=True)


def unpacked(packed, wanted, name):
    """The directory with the files, and whether it is to be removed."""
    for parent in parents():
        target = os.path.join(parent, name)
        if os.path.isdir(target) and os.stat(target).st_uid == os.getuid():
            return target, False
        part = f"{target}.{os.getpid()}.part"
        try:
            os.makedirs(part, mode=0o700)
            unpack(packed, wanted, part)
            os.rename(part, target)
        except OSError:  # no room, not writable, or another process was first
            shutil.rmtree(part, ignore_errors=True)
            if os.path.isdir(target) and os.stat(target).st_uid == os.getuid():
                return target, False
            continue
        return target, False
    folder = tempfile.mkdtemp(prefix="kforensics-")
    unpack(packed, wanted, folder)
    return folder, True


def parents():
    """Where it may be unpacked to, the best first."""
    if os.environ.get(FOLDER):
        yield os.environ[FOLDER]
        return
    home = os.path.expanduser("~")
    cache = os.environ.get("XDG_CACHE_HOME") or (os.path.join(home, ".cache") if os.path.isabs(home) and home != "/" else "")
    if cache:
        yield os.path.join(cache, "kforensics")


def unpack(packed, wanted, folder):
    """Write the files below the directory; the names are those of this file's own build."""
    for name in wanted:
        packed.extract(name, folder)


main()
