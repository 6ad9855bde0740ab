"""`README` of the output: what lies there and how to put it back; with `--form jsonl` also the script that does it."""

from collections.abc import Sequence
from importlib import resources

from kforensics.commands.salvaging.folder import OutFolder, WrittenFile
from kforensics.commands.salvaging.forms import FormName
from kforensics.commands.salvaging.model import SavedPartition
from kforensics.reconcile.salvage.gaps import GapReason
from kforensics.words import counted

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
    """Write the README, and the script where the form has one.

    Args:
        what: was wanted, or `CARVED`.
    """
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
