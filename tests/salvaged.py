"""What `salvage` writes held against what was produced and what lies on the disks, read by an independent decoder.

    python -m tests.salvaged DIR...

Each DIR is an unpacked recording, or holds several. Of each, the lost records are saved and then everything; then

- every record that the recording's truth calls lost and some disk holds has come out, with key, value, headers and timestamp as on the disk, and with the key
  and value that were produced;
- with `--what all` every record of every sound batch on any disk has come out once, those of aborted transactions apart;
- no record came out that is not on a disk.
"""

import base64
import hashlib
import io
import json
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.cli.app import run
from kforensics.source.naming import FileKind, parse_file_name, parse_partition_directory

READ = {"", "deleted", "swap"}


class Content(NamedTuple):
    """One record, by what a consumer gets of it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def on_disk(root: Path) -> tuple[set[Content], set[Content]]:
    """Records of every segment below the snapshots up to the first batch that fails, and those of aborted transactions."""
    found: set[Content] = set()
    aborted: set[Content] = set()
    for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
        name = parse_partition_directory(folder.name)
        if name is None:
            continue
        records: list[tuple[Content, int, bool]] = []
        ends: list[tuple[int, int, bool]] = []
        for path in sorted(folder.iterdir()):
            parsed = parse_file_name(path.name)
            if parsed.kind is FileKind.SEGMENT and parsed.suffix.value in READ and path.is_file():
                for content, producer, marker in _records(path, name.topic, name.partition):
                    if marker is None:
                        records.append((content, producer, True))
                    else:
                        ends.append((producer, content.offset, marker))
        for content, producer, _ in records:
            ends_of = [
                (offset, is_abort) for who, offset, is_abort in ends if who == producer and offset > content.offset
            ]
            (aborted if producer >= 0 and ends_of and min(ends_of)[1] else found).add(content)
    return found - aborted, aborted


def _records(path: Path, topic: str, partition: int) -> Iterator[tuple[Content, int, bool | None]]:
    """Records, their transactional producers, and for control records whether they end a transaction by aborting it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the other package does is not ours
        from kafka.record import MemoryRecords  # type: ignore[import-untyped]
    records = MemoryRecords(_sound_bytes(path))
    while records.has_next():
        batch = records.next_batch()
        if batch is None or not batch.validate_crc():
            return
        is_modern = getattr(batch, "magic", 0) == 2
        producer = batch.producer_id if is_modern and batch.is_transactional else -1
        for record in batch:
            content = Content(
                topic,
                partition,
                record.offset,
                -1 if record.timestamp is None else record.timestamp,
                None if record.key is None else bytes(record.key),
                None if record.value is None else bytes(record.value),
                tuple((key, value) for key, value in (record.headers or ())),
            )
            is_control = is_modern and batch.is_control_batch
            marker = int.from_bytes(content.key[2:4]) == 0 if is_control and content.key else None
            if is_control and producer < 0:
                continue
            yield content, producer, marker


def _sound_bytes(path: Path) -> bytes:
    """The file up to the first entry whose length is none."""
    data = path.read_bytes()
    position = 0
    while position + 17 <= len(data):
        length = int.from_bytes(data[position + 8 : position + 12], signed=True)
        if length < 14 or position + 12 + length > len(data):
            break
        position += 12 + length
    return data[:position]


def saved(out: Path, *, with_other_topics: bool = True) -> list[tuple[Content, dict[str, Any]]]:
    """Every record in the output, alternates included, with its line."""
    if not (out / "manifest.json").exists():
        return []  # nothing was to be saved
    manifest = json.loads((out / "manifest.json").read_text())
    found = []
    for one in manifest["partitions"]:
        if one["is_other_topic"] and not with_other_topics:
            continue
        for files in (one["files"], *(other["files"] for other in one["alternates"])):
            for file in files:
                data = (out / file["path"]).read_bytes()
                assert hashlib.sha256(data).hexdigest() == file["sha256"], file
                found += [
                    (_content(line), {**line, "file": file["path"]}) for line in map(json.loads, data.splitlines())
                ]
    return found


def _content(line: dict[str, Any]) -> Content:
    return Content(
        line["topic"],
        line["partition"],
        line["offset"],
        line["timestamp_ms"] if isinstance(line["timestamp_ms"], int) else -1,
        _payload(line["key"]),
        _payload(line["value"]),
        tuple((name, _payload(value)) for name, value in line["headers"]),
    )


def _payload(value: dict[str, str] | None) -> bytes | None:
    return None if value is None else base64.b64decode(value["base64"])


def arguments_of(root: Path) -> list[str]:
    """The newest snapshot, the logs, and earlier snapshots."""
    *before, final = sorted((root / "snapshots").iterdir())
    logs = [str(root / "logs")] if (root / "logs").exists() else []
    return [str(final), *logs, *(word for path in before for word in ("--before", str(path)))]


def salvage(root: Path, out: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Run the command on the newest snapshot, the logs and all earlier snapshots; its exit code and its document."""
    text = io.StringIO()
    with redirect_stdout(text):
        code = run(["salvage", *arguments_of(root), "-o", str(out), "--format", "json", *options])
    return code, json.loads(text.getvalue())


def explained(root: Path) -> dict[str, Any]:
    """What `explain` says of the same inputs."""
    text = io.StringIO()
    with redirect_stdout(text):
        run(["explain", *arguments_of(root), "--format", "json"])
    document: dict[str, Any] = json.loads(text.getvalue())
    return document


def lost(root: Path) -> list[tuple[str, int, int, str | None]]:
    """Topic, partition, offset and SHA-256 of the value of every record that the truth calls lost."""
    truth = json.loads((root / "incident.json").read_text()).get("truth", {}).get("lost_acked", [])
    produced: dict[tuple[str, int, int, str], list[str | None]] = {}
    sent = root / "produced.jsonl"
    for text in sent.read_text().splitlines() if sent.exists() else ():
        line = json.loads(text)
        if line.get("acked_at") or line.get("acked_t"):
            place = (line["topic"], line["partition"], line["offset"], json.dumps(_key_of(line)))
            produced.setdefault(place, []).append(line.get("value_sha256"))
    out = []
    for one in truth:
        place = (one["topic"], one["partition"], one["offset"], json.dumps(_key_of(one)))
        hashes = [one["value_sha256"]] if one.get("value_sha256") else produced.get(place, [])
        out += [(one["topic"], one["partition"], one["offset"], value) for value in hashes]
    return out


def _key_of(line: dict[str, Any]) -> str | None:
    key: Any = line.get("key")
    if isinstance(key, dict):
        return f"hex:{key['hex']}"
    if line.get("key_hex"):
        return f"hex:{line['key_hex']}"
    return None if key is None else str(key)


def check_lost(root: Path, out: Path) -> list[str]:
    """What is wrong with the lost records that were saved; nothing where all is well."""
    code, document = salvage(root, out)
    disk, aborted = on_disk(root / "snapshots")
    lines = saved(out)
    contents = {content for content, _ in lines}
    wrong = _twice(lines)
    wrong += [f"invented: {content[:4]}" for content in contents if content not in disk | aborted]
    hashes = {(c.topic, c.partition, c.offset, _sha256(c.value)) for c in disk | aborted}
    came_out = {(c.topic, c.partition, c.offset, _sha256(c.value)) for c in contents}
    wrong += [f"lost, on a disk, and not saved: {one}" for one in lost(root) if one in hashes and one not in came_out]
    told = sum(one["records"] for one in explained(root)["losses"] if one["held_by"])
    left_out = sum(one["aborted_records"] for one in document["partitions"])
    headline = int(re.sub(r"(?s)(?![0-9,]).*", "", document["answer"]["headline"]).replace(",", "") or 0)
    if told != headline + left_out:
        wrong.append(f"explain counts {told} lost records that are held, the headline says {headline}")
    if document["records"] != len(lines):
        wrong.append(f"{document['records']} records are said to be saved, {len(lines)} are")
    expected = {"saved": 0, "gaps": 1, "unknown": 3}[document["answer"]["state"]]
    if code != expected:
        wrong.append(f"exit code {code} with state {document['answer']['state']}")
    return wrong


def _twice(lines: list[tuple[Content, dict[str, Any]]]) -> list[str]:
    """Records that are in one file more than once; an alternate batch may hold some records of the best copy too."""
    counts = Counter((content, line["file"]) for content, line in lines)
    return [f"came out {count} times: {content[:3]}" for (content, _), count in counts.items() if count > 1]


def _sha256(value: bytes | None) -> str | None:
    return None if value is None else hashlib.sha256(value).hexdigest()


def check_all(root: Path, out: Path) -> list[str]:
    """What is wrong where everything was saved."""
    salvage(root, out, "--what", "all")
    disk, aborted = on_disk(root / "snapshots")
    lines = saved(out)
    contents = {content for content, _ in lines}
    wrong = _twice(lines)
    wrong += [f"invented: {content[:4]}" for content in contents if content not in disk]
    wrong += [f"not saved: {content[:4]}" for content in sorted(disk - contents - aborted, key=lambda one: one[:4])]
    return wrong


def main(folders: list[str]) -> int:
    """Check every recording below the folders."""
    roots = sorted({path.parent for folder in folders for path in Path(folder).glob("**/incident.json")})
    failed = 0
    for root in roots:
        with tempfile.TemporaryDirectory() as work:
            wrong = check_lost(root, Path(work, "lost"))
            wrong_of_all = check_all(root, Path(work, "all"))
            lines = len(saved(Path(work, "lost"))), len(saved(Path(work, "all")))
        failed += bool(wrong or wrong_of_all)
        print(f"{root.name}: {len(lost(root))} lost by the truth, {lines[0]} saved as lost, {lines[1]} saved of all")
        for words in (*wrong[:5], *wrong_of_all[:5]):
            print(f"  {words}")
        if len(wrong) + len(wrong_of_all) > 10:
            print(f"  {len(wrong)} and {len(wrong_of_all)} in all")
    return 1 if failed or not roots else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
