"""Record a real broker that is killed while its cleaner writes a segment.

Run as `python -m tests.oracle.killed_cleaner`: it writes `fixtures/compaction/killed-cleaner-4.1.tar.xz`, with what the next start left of the files in `told.json`.
"""

import shutil
import signal
import tempfile
import time
from pathlib import Path

from tests.conftest import ROOT
from tests.oracle.client import produce
from tests.oracle.uncleanable import COMPACTED, lines_of, running, write_archive

OUT = ROOT / "fixtures" / "compaction" / "killed-cleaner-4.1.tar.xz"
SEGMENTS, KEYS = 6, 100
IN_SMALL_PIECES = {"log_cleaner_io_buffer_size": 4_000}
LONGEST_WAIT = 60


def names(data: Path, *suffixes: str) -> list[str]:
    """The files of `state-0` with one of these ends."""
    return sorted(path.name for path in (data / "state-0").iterdir() if path.name.endswith(suffixes))


def fill(port: int) -> None:
    """Write segments of the same keys."""
    for number in range(SEGMENTS):
        produce(port, "state", [(b"%d" % key, b"%d" % number * 4000) for key in range(KEYS)], has_v3=True)
        time.sleep(1.2)
    produce(port, "state", [(b"last", None)], has_v3=True)


def record(home: Path) -> None:
    """Run the broker, kill it, copy what it left, start it again, and write the archive."""
    data, kept = home / "data", home / "kept"
    with running(home, {"state": COMPACTED | {"min.compaction.lag.ms": "8000"}}, **IN_SMALL_PIECES) as (port, broker):
        fill(port)
        until = time.monotonic() + LONGEST_WAIT
        while not names(data, ".log.cleaned") and time.monotonic() < until:
            time.sleep(0.0005)  # it takes a few milliseconds
        broker.send_signal(signal.SIGKILL)
        broker.wait(60)
    shutil.copytree(data, kept)
    lines = [
        one
        for one in lines_of(home)
        if one.startswith("[") and ("Kafka Server started" in one or "leaner" in one) and "Growing" not in one
    ]
    told = {"left": names(kept, ".cleaned", ".swap"), "segments": names(kept, ".log")}
    with running(home, {"state": {}}, log_cleaner_enable="false"):
        told |= {"left_after_start": names(data, ".cleaned", ".swap"), "segments_after_start": names(data, ".log")}
    for path in kept.glob("__cluster_metadata-0/*index"):
        path.unlink()  # two of 10 MB
    write_archive(OUT, kept, lines, told)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))
