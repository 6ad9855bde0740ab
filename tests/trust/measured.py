"""A command in a process of its own, with the time and memory it took."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple


class Measured(NamedTuple):
    """What a process said and what it cost; seconds are of the processor, since others use the machine too."""

    code: int
    out: str
    err: str
    seconds: float
    peak_mebibytes: float


def measured(*arguments: object, environment: dict[str, str] | None = None, output: Path | None = None) -> Measured:
    """Run kforensics and wait for it; with `output` its standard output goes there and is not read."""
    command = [sys.executable, "-m", "kforensics", *map(str, arguments)]
    with TemporaryFile() as kept, TemporaryFile() as err, output.open("wb") if output else nullcontext(kept) as out:
        process = subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, **(environment or {})})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        kept.seek(0)
        err.seek(0)
        return Measured(
            process.returncode,
            kept.read().decode("utf-8", "surrogateescape"),
            err.read().decode("utf-8", "surrogateescape"),
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss / 1024,
        )
