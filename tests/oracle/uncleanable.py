"""Record a real broker whose cleaner sets one log aside, and an idempotent producer that writes twice and with a gap.

Run as `python -m tests.oracle.uncleanable`: it writes `fixtures/compaction/uncleanable-4.1.tar.xz`, with what the broker answered beside its directories.
"""

import io
import json
import shutil
import signal
import struct
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.conftest import ROOT
from tests.oracle.client import RefusedError, ask_metadata, create_topic, produce_batch
from tests.oracle.cluster import BROKER_OPTIONS, LOG4J_2, free_ports, wait_until
from tests.oracle.jars import RELEASES, Release, class_path

OUT = ROOT / "fixtures" / "compaction" / "uncleanable-4.1.tar.xz"
RELEASE = next(one for one in RELEASES if one.version == "4.1.0")
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
LAG = {"min.compaction.lag.ms": "3000"}
PRODUCER = 4711


def batch(count: int, sequence: int, epoch: int, time_ms: int) -> bytes:
    """A batch of the producer."""
    records = [(time_ms, b"key", b"value") for _ in range(count)]
    return encode_record_batch(
        build_record_batch(
            0, records, partition_leader_epoch=-1, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence
        )
    )


def plain(*keys: bytes) -> bytes:
    """A batch of no idempotent producer."""
    now_ms = time.time_ns() // 1_000_000
    return encode_record_batch(build_record_batch(0, [(now_ms, key, b"") for key in keys], partition_leader_epoch=-1))


def drive(port: int, data: Path) -> list[dict[str, object]]:
    """Write, and return what was sent and answered."""
    told: list[dict[str, object]] = []

    def send(topic: str, what: str, content: bytes) -> None:
        error, offset = produce_batch(port, topic, content)
        told.append({"topic": topic, "what": what, "error": error, "offset": offset})

    now_ms = time.time_ns() // 1_000_000
    send("orders", "sequences 0 to 4 of epoch 0", batch(5, 0, 0, now_ms))
    send("orders", "the same again, which the broker knows", batch(5, 0, 0, now_ms))
    send("orders", "the same records in epoch 1", batch(5, 0, 1, now_ms))
    send("orders", "sequences 7 to 9 of epoch 1, which the broker refuses", batch(3, 7, 1, now_ms))
    time.sleep(4)
    send("orders", "the same, once the broker has forgotten the producer", batch(3, 7, 1, now_ms))
    checkpoint = data / "cleaner-offset-checkpoint"
    for _ in range(20):
        time.sleep(1.2)
        for topic in ("state", "other"):
            send(topic, "two keys", plain(b"a", b"b"))
        if checkpoint.exists() and "\nstate 0 " in checkpoint.read_text():
            break
    for number in range(6):
        for topic in ("state", "other"):
            send(topic, "two keys", plain(b"a", b"b"))
        time.sleep(1.2)
        if number == 0:
            send("state", "two keys", plain(b"a", b"b"))
            closed = sorted((data / "state-0").glob("*.log"))[-2]
            with closed.open("r+b") as file:  # the length of the batch, while the cleaner waits for its lag
                file.seek(8)
                file.write(struct.pack(">i", 1 << 30))
            told.append({"topic": "state", "what": f"damaged: the length of the first batch of {closed.name}"})
    time.sleep(6)
    return told


@contextmanager
def running(
    home: Path, topics: Mapping[str, Mapping[str, str]], release: Release = RELEASE, /, **more: object
) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """A broker with topics of one partition each: its port and its process, which is stopped when the block ends.

    Args:
        topics: the settings of each.
        release: what runs.
        more: settings of the broker, with `_` for `.`.
    """
    data, port, controller = home / "data", *free_ports(2)
    settings = {
        "node.id": 1,
        "process.roles": "broker,controller",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": data,
        "log.cleaner.backoff.ms": 500,
        "log.cleaner.dedupe.buffer.size": 2 << 20,
        "log.index.size.max.bytes": 65_536,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    (home / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    (home / "log4j.properties").write_text(LOG4J_2.format(file=home / "server.log"))
    java = ["java", *BROKER_OPTIONS, f"-Dlog4j2.configurationFile=file:{home / 'log4j.properties'}"]
    java += ["-cp", class_path(release)]
    form = ["kafka.tools.StorageTool", "format", "-t", "unCleanAbleRecording0g", "-c", str(home / "server.properties")]
    if not data.exists():
        subprocess.run([*java, *form], check=True, stdout=subprocess.DEVNULL)
    broker = subprocess.Popen([*java, "kafka.Kafka", str(home / "server.properties")], stdout=subprocess.DEVNULL)
    try:
        for topic, configs in topics.items():
            if not (data / f"{topic}-0").exists():
                wait_until(partial(_is_done, create_topic, port, topic, [1], configs, has_v2=True), f"topic {topic}")
            wait_until(partial(_is_done, ask_metadata, port, topic), f"a leader of {topic}")
        yield port, broker
    finally:
        broker.send_signal(signal.SIGTERM)
        broker.wait(60)


def record(home: Path) -> None:
    """Run the broker and write the archive."""
    topics = {"orders": {}, "state": COMPACTED | LAG, "other": COMPACTED}
    producers = {"producer_id_expiration_ms": 2_000, "producer_id_expiration_check_interval_ms": 500}
    with running(home, topics, **producers) as (port, _):
        told = drive(port, home / "data")
    _archive(home, told)


def _is_done(act: Callable[..., object], *what: object, **named: object) -> bool:
    try:
        act(*what, **named)
    except (OSError, RefusedError):
        return False
    return True


def _archive(home: Path, told: Sequence[dict[str, object]]) -> None:
    kept = lines_of(home)
    first = next(at for at, line in enumerate(kept) if "as uncleanable" in line)
    wanted = [line for line in kept[:first] if "Kafka Server started" in line or "for partition" in line]
    shutil.rmtree(home / "data" / "__cluster_metadata-0")
    write_archive(OUT, home / "data", (*wanted, *kept[first : first + 20]), told)


def lines_of(home: Path) -> list[str]:
    """The lines of the broker's log, without the path of this machine."""
    return [line.replace(str(home), "/kafka") for line in (home / "server.log").read_text().splitlines(keepends=True)]


def write_archive(out: Path, data: Path, lines: Sequence[str], told: object, inside: str = "broker-1") -> None:
    """Write a recording, with the data in a folder of a name."""
    (data / ".lock").unlink(missing_ok=True)
    name = out.name.removesuffix(".tar.xz")
    with tarfile.open(out, "w:xz", preset=9) as archive:
        archive.add(data, f"{name}/{inside}")
        for path, text in (("logs/broker-1/server.log", "".join(lines)), ("told.json", json.dumps(told, indent=1))):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mtime = len(text.encode()), time.time()
            archive.addfile(entry, io.BytesIO(text.encode()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))
