#!/usr/bin/env python3
"""Put the records that `kforensics salvage --form jsonl` wrote back into their topics.

    pip install confluent-kafka
    python put_back.py --bootstrap HOST:9092 --dry-run
    python put_back.py --bootstrap HOST:9092 [--config client.properties] [--alternates]

Keeps partition, key, value, nulls, headers and timestamp. Every record gets a header `kforensics-salvage` of the form
`PARTITION:OFFSET:EPOCH:DIGEST`; what the topic holds already with the same header is skipped, so running it twice doubles nothing. Works with acks=all and an
idempotent producer. Topics whose names begin with `__` are left alone.
"""

import argparse
import base64
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEADER = "kforensics-salvage"
MOST_WAITING = 10_000


def records_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of one file, in its order.

    Args:
        path: of the file, in ASCII, a record a line.
    """
    with path.open(encoding="ascii") as lines:
        for line in lines:
            yield json.loads(line)


def payload(value: Any) -> bytes | None:
    """Return the bytes of a key, a value or a header; None for null."""
    return None if value is None else base64.b64decode(value["base64"], validate=True)


def name_of(value: Any) -> str:
    """Return the name of a header."""
    return value if isinstance(value, str) else base64.b64decode(value["base64"]).decode()


def number(value: Any, otherwise: int) -> int:
    """Return a number, or what stands for one that is absent."""
    return value if isinstance(value, int) else otherwise


def mark_of(record: dict[str, Any]) -> bytes:
    """Return where a record was, and its content: `PARTITION:OFFSET:EPOCH:DIGEST`, the value of the header `kforensics-salvage`."""
    content = json.dumps([record["key"], record["value"], record["headers"], record["timestamp_ms"]], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return f"{record['partition']}:{record['offset']}:{number(record['leader_epoch'], -1)}:{digest}".encode()


def files_of(manifest: dict[str, Any], *, with_alternates: bool) -> Iterator[tuple[str, int, str, str]]:
    """Yield topic, partition, path and SHA-256 of every file."""
    for one in manifest["partitions"]:
        if one["is_other_topic"] or not isinstance(one["topic"], str):
            continue  # of another topic, or of one that is not known
        groups = [one["files"], *([alternate["files"] for alternate in one["alternates"]] if with_alternates else [])]
        for files in groups:
            for file in files:
                yield one["topic"], one["partition"], file["path"], file["sha256"]


def is_unchanged(path: Path, sha256: str) -> bool:
    """Whether a file is as it was written."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest() == sha256


def marks_in(config: dict[str, str], topic: str, partition: int) -> set[bytes]:
    """Return the header of every record of the partition that was put back before."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition  # noqa: PLC0415 - a dry run needs no client

    consumer = Consumer(
        {
            **config,
            "group.id": "kforensics-put-back",
            "enable.auto.commit": "false",
            "enable.partition.eof": "false",
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "earliest",
        }
    )
    found: set[bytes] = set()
    try:
        place = TopicPartition(topic, partition, OFFSET_BEGINNING)
        _, end = consumer.get_watermark_offsets(place, timeout=30)
        consumer.assign([place])
        position = 0
        while position < end:
            message = consumer.poll(10)
            if message is None:
                position = max(position, consumer.position([TopicPartition(topic, partition)])[0].offset)
                continue
            if message.error():
                raise KafkaException(message.error())
            position = message.offset() + 1
            found.update(value for name, value in message.headers() or () if name == HEADER and value is not None)
    finally:
        consumer.close()
    return found


class Putter:
    """Produces records and counts what became of them."""

    def __init__(self, config: dict[str, str]) -> None:
        from confluent_kafka import Producer  # noqa: PLC0415 - a dry run needs no client

        self.producer = Producer({**config, "acks": "all", "enable.idempotence": "true", "linger.ms": "20"})
        self.sent = self.acknowledged = 0
        self.errors: list[str] = []

    def put(self, topic: str, record: dict[str, Any]) -> None:
        """Produce one record."""
        try:
            headers = [(name_of(name), payload(value)) for name, value in record["headers"]]
        except UnicodeDecodeError:
            place = f"{topic}-{record['partition']}, offset {record['offset']}"
            self.errors.append(f"{place}: the name of a header is not UTF-8, which this client can't send")
            return
        options: dict[str, Any] = {}
        if isinstance(record["timestamp_ms"], int) and record["timestamp_ms"] >= 0:
            options["timestamp"] = record["timestamp_ms"]
        while True:
            try:
                self.producer.produce(
                    topic,
                    partition=record["partition"],
                    key=payload(record["key"]),
                    value=payload(record["value"]),
                    headers=[*headers, (HEADER, mark_of(record))],
                    on_delivery=self.delivered,
                    **options,
                )
            except BufferError:
                self.producer.poll(1)
                continue
            break
        self.sent += 1
        self.producer.poll(0)

    def delivered(self, error: Any, _message: Any) -> None:
        """Note the cluster's answer for one record."""
        if error is None:
            self.acknowledged += 1
        else:
            self.errors.append(str(error))

    def finish(self) -> None:
        """Wait for every answer."""
        self.producer.flush()


def read_config(path: Path | None) -> dict[str, str]:
    """Return the settings of the client, one `name=value` a line."""
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None else []
    pairs = (line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def main() -> int:
    """Put everything back that the manifest names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", required=True, help="brokers, HOST:PORT[,HOST:PORT...]")
    parser.add_argument("--config", type=Path, help="further settings of the client, name=value a line")
    parser.add_argument("--dry-run", action="store_true", help="read and check everything, send nothing")
    parser.add_argument("--alternates", action="store_true", help="also other content that some offsets had")
    parser.add_argument("--aborted", action="store_true", help="also records of aborted transactions")
    options = parser.parse_args()
    here = Path(__file__).resolve().parent
    manifest = json.loads((here / "manifest.json").read_text(encoding="utf-8"))
    if manifest["form"] != "jsonl":
        parser.error(f"the form is {manifest['form']}, not jsonl")
    config = {**read_config(options.config), "bootstrap.servers": options.bootstrap}
    putter = None if options.dry_run else Putter(config)
    total = skipped = left = 0
    known: dict[tuple[str, int], set[bytes]] = {}
    for topic, partition, name, sha256 in files_of(manifest, with_alternates=options.alternates):
        if topic.startswith(("__", "@")):
            print(f"{name}: left alone, {topic} is a topic of Kafka itself")  # noqa: T201 - its output
            continue
        path = here / name
        if not is_unchanged(path, sha256):
            print(f"{name}: it is not as it was written (its SHA-256 differs): nothing of it is sent", file=sys.stderr)  # noqa: T201
            return 3
        if putter is not None and (topic, partition) not in known:
            known[topic, partition] = marks_in(config, topic, partition)
        count = 0
        for record in records_of(path):
            if record.get("aborted") and not options.aborted:
                left += 1
                continue
            total += 1
            if mark_of(record) in known.get((topic, partition), ()):
                skipped += 1
                continue
            if putter is not None:
                putter.put(topic, record)
                known[topic, partition].add(mark_of(record))
            count += 1
        print(f"{name}: {count} records {'would be ' if putter is None else ''}sent to {topic}-{partition}")  # noqa: T201
    if putter is None:
        print(f"dry run: {total} records read, nothing was sent")  # noqa: T201
        return 0
    putter.finish()
    print(f"{putter.acknowledged} of {total} records sent and acknowledged, {skipped} were there already")  # noqa: T201
    if left:
        print(f"{left} records of aborted transactions were left out (--aborted)")  # noqa: T201
    for error in sorted(set(putter.errors))[:20]:
        print(f"not acknowledged: {error}", file=sys.stderr)  # noqa: T201
    return 1 if putter.errors or putter.acknowledged + skipped < total else 0


if __name__ == "__main__":
    sys.exit(main())
