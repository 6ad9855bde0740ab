"""The corpus in fixtures/fuzz: small inputs of each target, taken from the recordings by `python -m tests.fuzz.corpus`."""

import hashlib
import struct
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from kforensics.damage import Damage
from kforensics.formats.primitives.compression import compress
from kforensics.formats.primitives.numbers import Codec
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, iter_records, walk_segment

FIXTURES = Path(__file__).parents[2] / "fixtures"
CORPUS = FIXTURES / "fuzz"
LARGEST_SEED = 3_000
MOST_SEEDS = 12

BY_ENDING = {
    ".index": "offset-index",
    ".timeindex": "time-index",
    ".txnindex": "txn-index",
    ".snapshot": "producer-snapshot",
    "leader-epoch-checkpoint": "leader-epoch-checkpoint",
    "-offset-checkpoint": "checkpoint",
    "meta.properties": "meta-properties",
    "partition.metadata": "partition-metadata",
    "quorum-state": "quorum-state",
    ".kafka_cleanshutdown": "clean-shutdown",
    "server.log": "server-log",
    "controller.log": "server-log",
    "state-change.log": "server-log",
}
BY_TOPIC = {
    "__consumer_offsets": "group-record",
    "__transaction_state": "txn-record",
    "__share_group_state": "share-record",
}
NAMES = (
    "orders-0", "orders-0.0123456789abcdef0123456789abcdef-delete", "00000000000000000000.log", "00000000000000000042.snapshot",
    "00000000000000000042.log.deleted", "00000000000000000080-0000000005.checkpoint", "a.b_c-1.0123456789abcdef0123456789abcdef-future",
    "replication-offset-checkpoint", "42_lZ6vvmajTWKDBUTV6SQAtQ.timeindex", "server.log.2026-11-21-06.gz",
)  # fmt: skip


def seeds(target: str) -> list[bytes]:
    """The corpus of a target, in an order that does not depend on the file system."""
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def _recorded_files() -> Iterator[tuple[str, bytes]]:
    for archive in sorted((FIXTURES / "incidents").glob("*.tar.xz")):
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and 0 < member.size < 4_000_000 and "/oracle/" not in member.name:
                    file = tar.extractfile(member)
                    assert file is not None
                    yield member.name, file.read()


def _inputs(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    target = next((target for ending, target in BY_ENDING.items() if name.endswith(ending)), None)
    if target == "server-log":
        for at in range(0, min(len(data), 200_000), 20_000):
            yield target, data[at : at + 2_000]
    elif target is not None:
        yield target, data.rstrip(b"\0") + bytes(24) if target.endswith("index") else data
    elif name.endswith((".log", ".checkpoint")) and "/snapshots/" in name:
        yield from _segment_inputs(name, data)


def _segment_inputs(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    source = MemoryBytes(data)
    for window in walk_segment(source, level=Level.CRC):
        for row in window.batches[:40]:
            position, length = int(row["position"]), int(row["length"])
            entry = data[position : position + length]
            if length > LARGEST_SEED or not row["crc_valid"]:
                continue
            yield "segment", data[position : position + LARGEST_SEED]
            if row["magic"] == 2:
                yield "segment-repaired", data[position : position + LARGEST_SEED]
                yield "record-batch", entry
                if not row["attributes"] & 7:
                    yield "records", struct.pack(">i", int(row["count"])) + entry[61:]
                else:
                    yield Codec(int(row["attributes"]) & 7).name.lower(), entry[61:]
            else:
                yield "message-set", data[position : position + LARGEST_SEED]
        break
    topic = Path(name).parent.name.rpartition("-")[0]
    for _, item in zip(range(60), iter_records(source), strict=False):
        if isinstance(item, Damage):
            continue
        if topic in {"__cluster_metadata", "@metadata"} and item.value:
            yield "metadata-record", item.value
        elif topic == "__remote_log_metadata" and item.value:
            yield "remote-log-record", item.value
        elif (item.is_control or topic in BY_TOPIC) and item.key is not None:
            target = "control-record" if item.is_control else BY_TOPIC[topic]
            yield target, struct.pack(">h", len(item.key)) + item.key + (item.value or b"")
            if topic == "__consumer_offsets" and item.value:
                at = item.value.find(b"\x00\x08consumer")
                if at >= 0:
                    yield "consumer-protocol", item.value[-120:]


def _made() -> Iterator[tuple[str, bytes]]:
    for number, text in enumerate((b"", b"\x00", b"\x01", b"\x80\x01", b"\xff" * 9 + b"\x01", b"\xff" * 5)):
        yield "varint", text + bytes([number])
    for name in NAMES:
        yield "name", name.encode()
    body = b"".join(b"some words, %d times said. " % number for number in range(40))
    for one in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        yield one.name.lower(), compress(one, body)
    yield "consumer-protocol", struct.pack(">hi", 1, 1) + b"\x00\x06orders" + struct.pack(">ii", -1, 0)
    yield "consumer-protocol", struct.pack(">hi", 0, 1) + b"\x00\x06orders" + struct.pack(">iiii", 1, 0, 0, 0)[:12]
    yield "seal-manifest", _manifest()
    yield "signature", _signature()
    yield "share-record", struct.pack(">h", 4) + bytes(4) + bytes(40)
    yield "remote-log-record", bytes(60)


def _manifest() -> bytes:
    from kforensics.damage import Absent
    from kforensics.evidence.seal import EntryKind, Envelope, ManifestHead, SealCounts, SealEntry, manifest_pieces

    head = ManifestHead(
        tool_version="0.1.0", envelope=Envelope(sealed_ms=0, sealed_utc="1970-01-01T00:00:00.000Z"), inputs=("a",)
    )
    entries = [
        SealEntry(0, name, EntryKind.FILE, 1, "1970-01-01T00:00:00.000000000Z", Absent.UNKNOWN, "0644", "0" * 64)
        for name in ("b", "c\udcff")
    ]
    return "".join(manifest_pieces(head, entries, SealCounts())).encode()


def _signature() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from kforensics.commands.sealing import sign

    return sign(Ed25519PrivateKey.from_private_bytes(bytes(32)), name="m", sha256="0" * 64, tool_version="0.1.0")


def main() -> None:
    """Gather a few small and different inputs for each target."""
    found: dict[str, dict[object, bytes]] = {}
    for source in (_made(), (one for name, data in _recorded_files() for one in _inputs(name, data))):
        for target, data in source:
            if len(data) <= LARGEST_SEED:
                # Inputs of one shape teach the same: length and first bytes stand for the shape.
                found.setdefault(target, {}).setdefault((len(data).bit_length(), data[:2], data[16:17]), data)
    for target, by_shape in sorted(found.items()):
        chosen = list(by_shape.values())
        step = max(len(chosen) / MOST_SEEDS, 1)
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(min(len(chosen), MOST_SEEDS)):
            data = chosen[int(index * step)]
            (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
        sys.stdout.write(f"{target}: {len(list(folder.iterdir()))} seeds\n")


if __name__ == "__main__":
    main()
