"""A command in a process of its own, with the time and memory it took."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import NamedTuple

from tests.conftest import ROOT

_PROGRAM = """
import sys
from tests.peak import own_peak_mebibytes
from kforensics.cli.app import main
place, sys.argv = sys.argv[1], ["kforensics", *sys.argv[2:]]
try:
    main()
finally:
    with open(place, "w") as peak:
        peak.write(str(own_peak_mebibytes()))
"""


class Measured(NamedTuple):
    """What a process said and what it cost; seconds are of the processor, since others use the machine too."""

    code: int
    out: str
    err: str
    seconds: float
    peak_mebibytes: float


def measured(*arguments: object, environment: dict[str, str] | None = None, output: Path | None = None) -> Measured:
    """Run kforensics and wait for it; with `output` its standard output goes there and is not read."""
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    with (
        TemporaryFile() as kept,
        TemporaryFile() as err,
        NamedTemporaryFile("r") as peak,
        output.open("wb") if output else nullcontext(kept) as out,
    ):
        command = [sys.executable, "-c", _PROGRAM, peak.name, *map(str, arguments)]
        process = subprocess.Popen(command, stdout=out, stderr=err, env=surroundings)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        kept.seek(0)
        err.seek(0)
        return Measured(
            process.returncode,
            kept.read().decode("utf-8", "surrogateescape"),
            err.read().decode("utf-8", "surrogateescape"),
            usage.ru_utime + usage.ru_stime,
            float(peak.read() or "inf"),
        )
