"""What `diff` and `explain` say at depth tails, held against what they say of the same directories at depth content.

`python -m tests.depths RECORDINGS...` does so for every snapshot of every recording below the directories, `--made N` for N clusters of random histories. All that is counted or proven has to be equal; what
content alone can show (replicas that differ within a leader epoch, damaged and missing batches below the ends of logs) may be absent at depth tails, where
the document says below which offsets nothing was looked at.
"""

import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.broker_files import write_cluster
from kforensics.simulation.cluster import random_cluster
from tests.captures import differences, document

CONTENT_ALONE = frozenset({"KF204", "KF205", "KF206", "KF208"})
"""Codes of findings about content: it differs, it differs by compaction, it is damaged, its offsets do not rise."""

WORDS = frozenset(
    {"answer", "depth", "exit_code", "not_compared_below", "open_questions", "unread_below", "conclusion"}
)
"""Fields that say what was looked at, or sum up what others say."""

CALM = {"agree": "same-ends"}


def comparable(value: Any) -> Any:
    """A document without the fields in which depths differ on purpose."""
    if isinstance(value, dict):
        return {
            name: CALM.get(item, item) if name == "state" and isinstance(item, str) else comparable(item)
            for name, item in value.items()
            if name not in WORDS
        }
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value


def differ(command: str, paths: Sequence[Path], options: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Where the two depths contradict each other, and the partitions of which content alone shows something.

    Args:
        command: `diff` or `explain`.
        paths: the inputs.
        options: of both.
    """
    ends, _ = document(command, paths, *options, "--depth", "tails")
    content, _ = document(command, paths, *options, "--depth", "content")
    found = {"depth": ends.get("depth"), "content": content.get("depth")}
    wrong = [] if found == {"depth": "tails", "content": "content"} or "error" in content else [f"depths {found}"]
    excepted = shown_by_content(content)
    for part in ("partitions", "truncations", "losses"):
        mine, its = (_by_partition(one.get(part, ()), excepted) for one in (ends, content))
        wrong += differences(mine, its, f"$.{part}")
    left, right = (
        [one for one in document_of.get("findings", ()) if not _is_excepted(one, excepted)]
        for document_of in (ends, content)
    )
    wrong += differences(comparable(left), comparable(right), "$.findings")
    wrong += _not_said(ends, excepted)
    return wrong, sorted(excepted)


def shown_by_content(content: dict[str, Any]) -> frozenset[str]:
    """The partitions of a document at depth content of which it says what the ends of logs do not show."""
    by_finding = {
        f"{one['topic']}-{one['partition']}" for one in content.get("findings", ()) if one["code"] in CONTENT_ALONE
    }
    by_divergence = {
        f"{one['topic']}-{one['partition']}"
        for one in content.get("partitions", ())
        for replica in one.get("replicas", ())
        if (replica["first_divergence"] or {"kind": "epoch"})["kind"] != "epoch"
    }
    parted = {
        f"{one['topic']}-{one['partition']}" for one in content.get("partitions", ()) if one.get("stays_different")
    }
    return frozenset(by_finding | by_divergence | parted)


def _by_partition(items: Sequence[dict[str, Any]], excepted: frozenset[str]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for item in items:
        name = f"{item['topic']}-{item['partition']}"
        if name not in excepted:
            out.setdefault(name, []).append(comparable(item))
    return out


def _is_excepted(one: dict[str, Any], excepted: frozenset[str]) -> bool:
    return f"{one['topic']}-{one['partition']}" in excepted


def _not_said(ends: dict[str, Any], excepted: frozenset[str]) -> Iterator[str]:
    """Partitions of which the ends were read alone, and the answer does not say so."""
    said = " ".join((ends["answer"]["headline"], *ends["answer"]["unknown"])) if "answer" in ends else ""
    unread = [one for one in ends.get("partitions", ()) if one.get("not_compared_below") or one.get("unread_below")]
    if unread and "content" not in said.lower():
        yield f"the answer does not say that content was not looked at: {said}"


def compare_recording(recording: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each comparison of a recording: its name, what contradicts, and the partitions of which content alone shows something."""
    *earlier, final = sorted(one for one in (recording / "snapshots").iterdir() if one.is_dir())
    logs = [recording / "logs"] if (recording / "logs").is_dir() else []
    for snapshot in (*earlier, final):
        yield f"{snapshot.name}: diff", *differ("diff", [snapshot])
        yield f"{snapshot.name}: explain", *differ("explain", [snapshot])
    before = [word for one in earlier for word in ("--before", str(one))]
    yield "all: explain", *differ("explain", [final, *logs], before)


def compare_made(seed: int, directory: Path) -> tuple[list[str], list[str]]:
    """The same of a cluster of a random history, whose brokers stopped cleanly and whose epoch checkpoints may be missing, empty or wrong.

    Args:
        seed: of the history, and of what becomes of the small files.
        directory: a new one, to write to.
    """
    choice = random.Random(seed)
    protocol = choice.choice(list(ProtocolName))
    cluster = random_cluster(seed, protocol=protocol, brokers=3, partitions=2, most_steps=choice.choice([60, 200]))
    with patch("kforensics.simulation.broker_files.INDEX_INTERVAL_LENGTH", choice.choice([0, 300, 4_096])):
        write_cluster(cluster, directory, segment_length=choice.choice([700, 3_000, 50_000]))
    for node in sorted(directory.glob("broker-*")):
        if choice.random() < 0.8:
            (node / ".kafka_cleanshutdown").write_bytes(b"")
        for checkpoint in sorted(node.glob("*/leader-epoch-checkpoint")):
            match choice.choice(["kept", "kept", "kept", "missing", "empty", "other"]):
                case "missing":
                    checkpoint.unlink()
                case "empty":
                    checkpoint.write_bytes(b"0\n0\n")
                case "other":
                    checkpoint.write_bytes(b"0\n1\n0 0\n")
        for index in sorted(node.glob("*/*.index")):
            if choice.random() < 0.05:
                index.unlink()
    told = [] if protocol is ProtocolName.KIP_595 else ["--protocol", protocol.value]
    return differ("diff", [directory], [*told, "--replicas", "1,2,3"])


def main(places: Sequence[str]) -> int:
    """Compare all recordings; 1 where anything contradicts."""
    failed = compared = 0
    if places[:1] == ["--made"]:
        for seed in range(int(places[1])):
            with tempfile.TemporaryDirectory() as work:
                wrong, _ = compare_made(seed, Path(work) / "made")
            compared, failed = compared + 1, failed + bool(wrong)
            for line in wrong[:6]:
                print(f"seed {seed}: {line[:600]}", flush=True)
        places = ()
    for place in places:
        recordings = [Path(place)] if (Path(place) / "snapshots").is_dir() else sorted(Path(place).iterdir())
        for recording in (one for one in recordings if (one / "snapshots").is_dir()):
            for name, wrong, excepted in compare_recording(recording):
                compared += 1
                failed += bool(wrong)
                words = f"{len(wrong)} differences" if wrong else "equal"
                also = f"; by content alone: {', '.join(excepted)}" if excepted else ""
                print(f"{recording.name}: {name}: {words}{also}", flush=True)
                for line in wrong[:12]:
                    print(f"    {line[:600]}")
    print(f"{compared} comparisons, {failed} with differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
