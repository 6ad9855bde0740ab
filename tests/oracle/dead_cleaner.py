"""Record a real broker whose cleaner thread dies: it makes room for a batch of 1 GiB, which is what the batch's damaged length claims.

Run as `python -m tests.oracle.dead_cleaner`: it writes `fixtures/compaction/dead-cleaner-4.1.tar.xz`, with the times of what was done in `told.json`.
"""

import struct
import tempfile
import time
from pathlib import Path

from tests.conftest import ROOT
from tests.oracle.client import produce_batch
from tests.oracle.uncleanable import COMPACTED, LAG, lines_of, plain, running, write_archive

OUT = ROOT / "fixtures" / "compaction" / "dead-cleaner-4.1.tar.xz"
TOPICS = {
    "other": COMPACTED,
    # The cleaner of a topic with smaller batches refuses such a length, and sets the log aside.
    "state": {**COMPACTED, **LAG, "max.message.bytes": "2000000000"},
}
DIED = "kafka-log-cleaner-thread-0]: Error due to"


def drive(home: Path, port: int) -> list[dict[str, object]]:
    """Write, let the cleaner run over both logs, damage one, and go on for a while."""
    told: list[dict[str, object]] = []
    checkpoint = home / "data" / "cleaner-offset-checkpoint"

    def write() -> None:
        for topic in TOPICS:
            produce_batch(port, topic, plain(b"a", b"b"))
        time.sleep(1.2)

    def tell(what: str) -> None:
        told.append({"at": time.time(), "what": what, "checkpoint": checkpoint.read_text().split("\n")[2:-1]})

    while not (checkpoint.exists() and all(f"\n{topic} 0 " in checkpoint.read_text() for topic in TOPICS)):
        write()
    tell("both logs have been cleaned")
    write()
    write()
    closed = sorted((home / "data/state-0").glob("*.log"))[-2]
    with closed.open("r+b") as file:
        file.seek(8)
        file.write(struct.pack(">i", 1 << 30))
    tell(f"damaged: the length of the first batch of {closed.name} of state")
    while DIED not in (home / "server.log").read_text():
        write()
    tell("the thread is dead")
    for _ in range(8):
        write()
    tell("the end")
    return told


def record(home: Path) -> None:
    """Run the broker and write the archive."""
    with running(home, TOPICS) as (port, _):
        told = drive(home, port)
    lines = lines_of(home)
    died = next(at for at, line in enumerate(lines) if DIED in line)
    wanted = [line for line in lines[:died] if "Kafka Server started" in line]
    for path in (home / "data/__cluster_metadata-0").glob("*index"):
        path.unlink()  # two of 10 MB
    write_archive(OUT, home / "data", (*wanted, *lines[died : died + 12]), told)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))
