"""What `trace` says held against what was produced and what lies on the disks, read by an independent decoder.

    python -m tests.traced DIR... [--keys N]

Each DIR is an unpacked recording, or holds several. Of each, keys are traced that are on every live replica, on none, produced and nowhere, and never produced:

- the copies of each record are those that kafka-python finds, file by file;
- a record that lies in a live directory of the newest snapshot is never called lost, and one that lies in none is never called present;
- `never-here` is never said of a key that was produced, nor by the newest snapshot alone, nor by that and the logs;
- nothing of a key or a value is in the output.
"""

import base64
import hashlib
import io
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from kforensics.cli.app import run
from kforensics.source.naming import FileKind, parse_file_name, parse_partition_directory
from tests.salvaged import READ, _records, arguments_of

Place = tuple[int, int, str]
"""Partition, offset and path of a copy."""


def on_disk(root: Path, topic: str | None = None) -> dict[str, dict[bytes, set[Place]]]:
    """By topic and key every copy of a record, of one topic or of all."""
    found: dict[str, dict[bytes, set[Place]]] = defaultdict(lambda: defaultdict(set))
    for path, of, partition in _segments(root):
        if topic in {None, of}:
            for content, _, marker in _records(path, of, partition):
                if marker is None and content.key is not None:
                    found[of][content.key].add((partition, content.offset, str(path.resolve())))
    return found


def broken_files(root: Path) -> set[str]:
    """The segments that end before their end, of which the rest was not read."""
    return {str(path.resolve()) for path, _, _ in _segments(root) if _is_broken(path)}


def _segments(root: Path) -> Iterator[tuple[Path, str, int]]:
    for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
        name = parse_partition_directory(folder.name)
        if name is None or name.topic.startswith(("__", "@")):
            continue
        for path in sorted(folder.iterdir()):
            parsed = parse_file_name(path.name)
            if parsed.kind is FileKind.SEGMENT and parsed.suffix.value in READ and path.is_file():
                yield path, name.topic, name.partition


def _is_broken(path: Path) -> bool:
    """Whether the file has anything that is no sound batch."""
    out = io.StringIO()
    with redirect_stdout(out):
        return run(["verify", str(path), "--format", "json"]) != 0


def produced(root: Path) -> dict[str, set[bytes]]:
    """Keys by topic, of records that were acknowledged."""
    found: dict[str, set[bytes]] = defaultdict(set)
    for line in (root / "produced.jsonl").read_text().splitlines():
        row = json.loads(line)
        if not row.get("acked_at") and not row.get("acked_t"):
            continue
        if row.get("key") is not None:
            found[row["topic"]].add(_key(row["key"]))
        elif row.get("key_hex"):
            found[row["topic"]].add(bytes.fromhex(row["key_hex"]))
    return found


def _key(text: str) -> bytes:
    """The key of a row; one that is not UTF-8 is marked."""
    marked = text.removeprefix("base64:")
    return base64.b64decode(marked) if marked != text else text.encode()


def trace(root: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """The document of a run with all snapshots and logs."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = run(["trace", *arguments_of(root), *options, "--format", "json"])
    text = out.getvalue()
    return code, json.loads(text), text


def check(root: Path, count: int) -> Iterator[str]:
    """What is wrong, in words; the last line counts the states."""
    final = str(max((root / "snapshots").iterdir()).resolve())
    disks, broken = on_disk(root / "snapshots"), broken_files(root / "snapshots")
    states: Counter[str] = Counter()
    for topic, keys in sorted(produced(root).items()):
        if topic not in disks:
            continue
        found = disks[topic]
        live = {key for key, places in found.items() if any(_is_live(place, final) for place in places)}
        groups = {
            "live": live,
            "elsewhere": found.keys() - live,
            "nowhere": keys - found.keys(),
            "never": {b"never-produced-key"},
        }
        for kind, group in groups.items():
            for key in random.Random(topic).sample(sorted(group), min(count, len(group))):
                code, document, text = trace(root, "--topic", topic, "--key-sha256", _sha256(key))
                state = document["answer"]["state"]
                states[f"{kind}: {state}"] += 1
                yield from _wrong(topic, key, kind, code, document, found.get(key, set()), final, broken)
                if kind == "elsewhere":
                    yield from _calm_without(root, topic, key)
                if len(key) > 4 and key.decode("utf-8", "replace") in text:
                    yield f"{topic} {key!r}: the key is in the output"
    print(f"{root.name}: {dict(sorted(states.items()))}", flush=True)


def _calm_without(root: Path, topic: str, key: bytes) -> Iterator[str]:
    """A key that was produced and lies in no live directory is not called absent by less evidence either."""
    final, logs = max((root / "snapshots").iterdir()), root / "logs"
    for inputs in ([final], [final, logs]):
        given = [str(path) for path in inputs if path.exists()]
        out = io.StringIO()
        with redirect_stdout(out):
            run(["trace", *given, "--topic", topic, "--key-sha256", _sha256(key), "--format", "json"])
        if not out.getvalue():
            continue  # the topic is not among these inputs
        document = json.loads(out.getvalue())
        if "answer" in document and document["answer"]["state"] == "never-here":
            yield f"{topic} {key!r}: never-here by {len(given)} inputs, and it was produced"


def _wrong(
    topic: str,
    key: bytes,
    kind: str,
    code: int,
    document: dict[str, Any],
    places: set[Place],
    final: str,
    broken: set[str],
) -> Iterator[str]:
    state = document["answer"]["state"]
    inputs = [one["path"] for one in document["inputs"]]
    shown = {
        (record["partition"], record["offset"], str(_whole(inputs[copy["input"]], copy["path"])))
        for record in document["records"]
        for copy in record["copies"]
    }
    name = f"{topic} {key!r} ({kind}): {state}"
    if places - shown:
        yield f"{name}: {len(places - shown)} of {len(places)} copies not found: {sorted(places - shown)[:2]}"
    more = {one for one in shown - places if one[2] not in broken}
    if more:
        yield f"{name}: copies that the other decoder does not find: {sorted(more)[:2]}"
    if kind == "nowhere" and state in {"never-here", "present"}:
        yield f"{name}: it was produced and acknowledged"
    if kind == "never" and state not in {"never-here", "unknown"}:
        yield f"{name}: it was never produced"
    if (state == "unknown") is not (code == 3) and not document["problems"]:
        yield f"{name}: exit code {code}"
    for record in document["records"]:
        its = {
            (record["partition"], record["offset"], str(_whole(inputs[c["input"]], c["path"])))
            for c in record["copies"]
        }
        is_live = any(_is_live(place, final) for place in its)
        if is_live is (record["state"] == "lost") and record["state"] in {"lost", "present"}:
            yield f"{name}: offset {record['offset']} is {record['state']}, and {'one' if is_live else 'no'} live directory holds it"
        if not is_live and record["state"] == "present":
            yield f"{name}: offset {record['offset']} is present, and no live directory holds it"


def _is_live(place: Place, final: str) -> bool:
    path = Path(place[2])
    name = parse_partition_directory(path.parent.name)
    return (
        place[2].startswith(final + "/") and path.suffix == ".log" and name is not None and name.state.value == "live"
    )


def _whole(given: str, path: str) -> Path:
    return (Path(given) / path).resolve()


def _sha256(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


def main(arguments: list[str]) -> int:
    """Check all recordings; 1 where anything is wrong."""
    count = 3
    if "--keys" in arguments:
        at = arguments.index("--keys")
        count = int(arguments[at + 1])
        del arguments[at : at + 2]
    wrong = 0
    for argument in arguments:
        folder = Path(argument)
        for root in [folder] if (folder / "snapshots").exists() else sorted(folder.iterdir()):
            if (root / "produced.jsonl").exists() and (root / "snapshots").exists():
                for words in check(root, count):
                    wrong += 1
                    print(f"WRONG {root.name}: {words}", flush=True)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
