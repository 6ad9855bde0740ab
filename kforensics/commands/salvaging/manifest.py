"""The papers of a rescue: the manifest of what was saved and the README that says how to put it back."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from kforensics import __version__
from kforensics.commands.salvaging.folder import OutFolder, WrittenFile
from kforensics.commands.salvaging.model import SavedLabel, SavedPartition, SavedRun, UnreadEnd
from kforensics.commands.salvaging.outputs import FormName
from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.evidence.plain import fields_of, to_plain
from kforensics.reconcile.salvage import Gap, GapReason
from kforensics.words import counted

MANIFEST = "manifest.json"
PRIVATE = "keys, values and headers are written as they were produced: private data"


def write_manifest(
    folder: OutFolder,
    *,
    inputs: Sequence[Input],
    partitions: Sequence[SavedPartition],
    what: str,
    form: str,
    filters: Mapping[str, Any],
) -> WrittenFile:
    """Write the manifest; nothing in it depends on when or where it is written."""
    with folder.open(MANIFEST) as file:
        head = {
            "schema": "kforensics/salvage-manifest/2",
            "tool_version": __version__,
            "warning": PRIVATE,
            "what": what,
            "form": form,
            "filters": filters,
            "inputs": [fields_of(one, "path", "kind", "broker_id", "cluster_id") for one in inputs],
        }
        file.write(json.dumps(to_plain(head), indent=1)[:-2].encode() + b',\n "partitions": [')
        for at, one in enumerate(partitions):
            file.write(b",\n  " if at else b"\n  ")
            for piece in _partition(one):
                file.write(piece)
        file.write(b"\n ]\n}\n")
        return file.finish()


def _partition(one: SavedPartition) -> Iterator[bytes]:
    best = next((label for label in one.labels if not label.owner), None)
    head = {
        "topic": one.partition.topic if one.is_named else Absent.UNKNOWN,
        "partition": one.partition.partition if one.is_named else Absent.UNKNOWN,
        **({} if one.is_named else {"name": one.name}),
        **({"likely": one.likely} if one.likely else {}),
        "topic_id": one.topic_id,
        "is_other_topic": one.is_other_topic,
        "leader": {"broker_id": one.leader, "source": one.leader_source or "unknown"},
        "records": one.records,
        "aborted_records": one.aborted_records,
        "markers": one.markers,
        "gaps": [plain_gap(gap) for gap in one.gaps],
        "unread_ends": [plain_end(end) for end in one.unread_ends],
        "files": [] if best is None else best.files,
    }
    yield json.dumps(to_plain(head))[:-1].encode()
    yield b', "runs": ['
    yield from _runs(best)
    yield b'], "alternates": ['
    for at, label in enumerate(label for label in one.labels if label.owner):
        described = {
            "leader_epoch": label.leader_epoch,
            "owner": label.owner,
            "records": label.records,
            "files": label.files,
        }
        yield (b", " if at else b"") + json.dumps(to_plain(described))[:-1].encode() + b', "runs": ['
        yield from _runs(label)
        yield b"]}"
    yield b"]}"


def _runs(label: SavedLabel | None) -> Iterator[bytes]:
    for at, one in enumerate(label.runs if label is not None else ()):
        yield (b",\n   " if at else b"\n   ") + json.dumps(to_plain(_run(one))).encode()


def _run(one: SavedRun) -> dict[str, Any]:
    return {
        "offsets": one.offsets,
        "records": one.records,
        "leader_epochs": one.leader_epochs if one.leader_epochs.last >= 0 else None,
        "source": fields_of(one, "input", "path", "position", "length"),
        "sha256": one.sha256,
    }


def plain_gap(gap: Gap) -> dict[str, Any]:
    """Return a gap as the manifest and the result show it."""
    return fields_of(gap, "offsets", "count", "reason", *(["detail"] if gap.detail else []))


def plain_end(end: UnreadEnd) -> dict[str, Any]:
    """Return an end of a log that can't be read as the manifest and the result show it."""
    return {"source": fields_of(end, "input", "path", "position", "length"), "offsets": Absent.UNKNOWN}


README = "README"
SCRIPT = "put_back.py"
CARVED = "carved"
"""Wanted where only images are carved: what they hold and the given replicas do not."""
MOST_LISTED = 200

_HEAD = """\
Records that `{command} --form {form}` found.

PRIVATE DATA: keys, values and headers are here as they were produced. All files are readable by their owner alone.

manifest.json   where each run of records came from (file, byte position, SHA-256), every gap with its reason,
                and the ends of logs that can't be read, of which the offsets are unknown
{listed}

"""

_NOTHING = """\
`{command}` saved no record. manifest.json lists every gap with its reason, and the ends of logs that can't be read.
"""

_PUT_BACK = {
    FormName.JSONL: """\
HOW TO PUT THEM BACK
  pip install confluent-kafka
  python put_back.py --bootstrap HOST:9092 --dry-run     reads everything, sends nothing
  python put_back.py --bootstrap HOST:9092               produces with acks=all, idempotent, into the same partitions
  python put_back.py … --alternates                      produces what is in alternates/ too: other records for offsets of the files above
It keeps partitions, keys, values, nulls, headers and timestamps. Records get new offsets at the end of the log. Each gets a header
`kforensics-salvage` with the partition, offset and epoch that it had; records whose header is in the topic already are skipped, so that it may be run again.
Nothing is put into topics whose names begin with `__`.
""",
    FormName.PARQUET: """\
HOW TO USE THEM
  Any reader of Parquet takes the files: pyarrow, DuckDB, pandas, Spark. To put records back into a cluster, run salvage again with --form jsonl,
  which writes put_back.py too.
""",
    FormName.SEGMENTS: """\
HOW TO USE THEM
  Each directory is a log that a broker loads as it is: whole batches byte for byte, with indexes and the leader epochs. With the broker STOPPED, and
  only where no directory of that partition is there, copy it into a log directory. KRaft brokers take a directory only if its partition.metadata has the
  topic id of the cluster (--topic-id). Followers truncate to what the leader has: make sure that this broker leads, or that all replicas are alike.
""",
    FormName.KCAT: """\
HOW TO PUT THEM BACK
  kcat -P -b HOST:9092 -t TOPIC -p PARTITION -K '\\t' -Z -l FILE
  An empty key or value is null. Timestamps are not in this form: records get the time at which they are produced.
""",
    FormName.CONSOLE: """\
HOW TO PUT THEM BACK
  kafka-console-producer.sh --bootstrap-server HOST:9092 --topic TOPIC --property parse.key=true --property null.marker=NULL < FILE
  The producer chooses the partition by the key. Timestamps are not in this form: records get the time at which they are produced.
""",
}

_TAIL = """
BEFORE YOU PUT ANYTHING BACK
  Retention looks at timestamps: a topic with retention.ms deletes records with old timestamps at once, together with the segment that they are in. Raise
  retention.ms first, or set it to -1.
  A topic with message.timestamp.type=LogAppendTime gives records the time at which they are appended.
  A topic with message.timestamp.before.max.ms (or message.timestamp.difference.max.ms) refuses timestamps that are older.
  In a compacted topic a record that is put back becomes the newest of its key: do not put back what a later record superseded.
"""


def write_readme(
    folder: OutFolder, partitions: Sequence[SavedPartition], *, what: str, form: str
) -> tuple[WrittenFile, ...]:
    """Write the README, and the script where the form has one."""
    name = FormName(form)
    command = f"kforensics salvage {'--carve IMAGE' if what == CARVED else f'--what {what}'}"
    if not any(one.records for one in partitions):
        return (folder.write(README, _NOTHING.format(command=command).encode()),)
    words = _HEAD.format(command=command, form=form, listed="\n".join(_listed(partitions)))
    readme = folder.write(README, (words + _PUT_BACK[name] + _TAIL).encode())
    if name is not FormName.JSONL:
        return (readme,)
    script = resources.files("kforensics.commands.salvaging").joinpath("put_back_script.py").read_bytes()
    return readme, folder.write(SCRIPT, script)


def _listed(partitions: Sequence[SavedPartition]) -> list[str]:
    lines = []
    for one in partitions[:MOST_LISTED]:
        for label in one.labels:
            names = ", ".join(file.path for file in label.files[:1])
            kind = f"other content, {label.owner}" if label.owner else "the best copy"
            lines.append(f"{names}   {counted(label.records, 'record')}, {kind}")
        losses = [gap for gap in one.gaps if gap.reason is not GapReason.ABORTED and gap.is_loss]
        if losses:
            lines.append(f"  {one.name}: {counted(len(losses), 'gap')}, see manifest.json")
        lines += [f"  {one.name}: {end.words} can't be read; their offsets are unknown" for end in one.unread_ends]
    if len(partitions) > MOST_LISTED:
        lines.append(f"and {counted(len(partitions) - MOST_LISTED, 'more partition')}, see manifest.json")
    return lines
