"""What an audit says, held against what `diff` says of the same directories.

`python -m tests.audits RECORDINGS...` does so for every snapshot of every recording below the directories: its directories, captures of its nodes, and the
captures of all their batches; then beside another cluster in one audit, against each in an audit of its own; then for the last snapshot with its files damaged in each way of `BREAKS`, `--breaks N` times with other random choices; `--only TEXT` chooses among them.
`--made N` compares N clusters of random histories. One Spark session runs all audits; with `--here` none does, and each task and group is worked on in this process.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from kforensics.ask.model import Ask
from kforensics.commands.capture import run as capture
from kforensics.commands.comparing import DiffResult, compare
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.plain import to_plain
from kforensics.findings.answers.fleet import fleet_answer
from kforensics.fleet import auditing, stages
from kforensics.fleet.audit_tables import AuditTables
from kforensics.fleet.auditing import audit
from kforensics.fleet.session import open_session
from kforensics.fleet.sources import read_sources
from kforensics.fleet.summary import summarise
from kforensics.protocol.truncation import ProtocolName
from kforensics.render.json.replicas import plain_report
from kforensics.simulation.broker_files import write_cluster
from kforensics.simulation.cluster import random_cluster
from tests.builders.cases import case_of

Comparison = Callable[[], list[str]]

Break = Callable[[random.Random, list[Path]], str | None]
"""Damages the copied directories of the nodes of a cluster, and says where; None where there is no place for such damage."""


def compared(*places: Path, options: Ask | None = None) -> DiffResult:
    """What a comparison says of all partitions of the places."""
    found = find_inputs(list(places), with_server_logs=True)
    return compare(case_of(found, options), keep_quiet=True)


def differences(expected: DiffResult, tables: AuditTables) -> Iterator[str]:
    """Where the tables of an audit do not say what a comparison says: states, verdicts, concerns, reports, findings, problems and the answer."""
    rows = {(row["topic"], row["partition"]): row for row in tables.rows("partitions")}
    theirs = {(one.partition.topic, one.partition.partition): one for one in expected.partitions}
    for name in sorted(rows.keys() ^ theirs.keys()):
        yield f"{name}: only {'the audit' if name in rows else 'diff'} has it"
    for name in sorted(rows.keys() & theirs.keys()):
        row, one = rows[name], theirs[name]
        assert one.report is not None
        for what, mine, its in (
            ("state", row["state"], one.state.value),
            ("verdict", row["verdict"], one.verdict.value),
            ("concerns", json.loads(row["concerns"] or "[]"), json.loads(plain(one.judged.concerns))),
        ):
            if mine != its:
                yield f"{name}: {what} {mine} instead of {its}"
        report = json.loads(plain(plain_report(one.report, one.state)))
        if row["report"] is not None and json.loads(row["report"]) != report:
            yield f"{name}: report {_first_difference(json.loads(row['report']), report)}"
    summary = summarise(tables, most=0)
    # Findings about the inventory and the fleet as a whole have no counterpart in a comparison.
    found = [plain(one) for one in summary.findings if not one.code.startswith("KF4")]
    yield from _unequal("finding", found, [plain(one) for one in expected.findings if not one.code.startswith("KF4")])
    yield from _unequal("problem", map(plain, summary.problems), map(plain, expected.problems))
    state = fleet_answer(replace(summary, damage_by_disk=())).state
    if state is not expected.answer.state:
        yield f"answer: {state.value} instead of {expected.answer.state.value}"


def _unequal(what: str, mine: Any, its: Any) -> Iterator[str]:
    left, right = Counter(mine), Counter(its)
    yield from (f"{what} of the audit alone: {one}" for one in sorted((left - right).elements()))
    yield from (f"{what} of diff alone: {one}" for one in sorted((right - left).elements()))


def _first_difference(mine: Any, its: Any, place: str = "$") -> str:
    if isinstance(mine, dict) and isinstance(its, dict):
        names = [name for name in sorted(mine.keys() | its.keys()) if mine.get(name) != its.get(name)]
        return _first_difference(mine.get(names[0]), its.get(names[0]), f"{place}.{names[0]}")
    if isinstance(mine, list) and isinstance(its, list) and len(mine) == len(its):
        at = next(at for at in range(len(mine)) if mine[at] != its[at])
        return _first_difference(mine[at], its[at], f"{place}[{at}]")
    return f"{place}: {json.dumps(mine)[:200]} instead of {json.dumps(its)[:200]}"


def plain(value: Any) -> str:
    """A value as the JSON document has it, in a form that can be sorted and compared."""
    return json.dumps(to_plain(value), sort_keys=True)


class Audits:
    """Audits on one Spark session, each compared with `diff`.

    Args:
        session: of Spark.
        work: a directory for tables, captures and evidence.
    """

    def __init__(self, session: Any, work: Path) -> None:
        self._session = session
        self._work = work
        self._numbers = count()

    def differences(
        self, places: Sequence[Path], sources: Sequence[Path] = (), options: Ask | None = None
    ) -> list[str]:
        """Where an audit does not say what `diff` says of the places.

        Args:
            places: what `diff` compares.
            sources: what is audited, where it is not the same.
            options: of both.
        """
        out = self._work / f"tables-{next(self._numbers)}"
        given = read_sources([str(one) for one in sources or places])
        tables = audit(lambda: self._session, given, out, options=options or Ask())
        found = list(differences(compared(*places, options=options), tables))
        shutil.rmtree(out)
        return found

    def of_captures(self, place: Path) -> list[str]:
        """Where an audit of captures, one of each node, does not say what `diff` says of the same captures."""
        folder = self._work / f"captures-{next(self._numbers)}"
        folder.mkdir()
        for node in nodes_of(place):
            capture(Ask(paths=(node,), out=folder / f"{node.name}.kfc"))
        found = self.differences([folder])
        shutil.rmtree(folder)
        return found

    def beside(self, place: Path, other: Path) -> list[str]:
        """Where an audit of two clusters says of a partition what an audit of its cluster does not."""
        both, *alone = (self._judged(places) for places in ([place, other], [place], [other]))
        return list(_unequal("judgement", both, [one for found in alone for one in found]))

    def _judged(self, places: Sequence[Path]) -> list[str]:
        """What an audit says of partitions and findings, without the numbers of inputs."""
        out = self._work / f"tables-{next(self._numbers)}"
        tables = audit(lambda: self._session, read_sources([str(one) for one in places]), out, options=Ask())
        columns = {
            "partitions": ("state", "verdict", "leader", "holders", "isr", "missing", "lost_certain", "lost_possible"),
            "findings": ("finding_id", "severity", "statement"),
        }
        found = [
            plain({name: row[name] for name in ("cluster_id", "topic", "partition", *names)})
            for table, names in columns.items()
            for row in tables.rows(table)
        ]
        shutil.rmtree(out)
        return found

    def of_all_batches(self, place: Path) -> list[str]:
        """Where an audit of captures with all batches does not say what `diff` says of the directories."""
        folder = self._work / f"captures-{next(self._numbers)}"
        folder.mkdir()
        for node in nodes_of(place):
            capture(Ask(paths=(node,), out=folder / f"{node.name}.kfc", all_batches=True))
        found = self.differences(nodes_of(place), [folder])
        shutil.rmtree(folder)
        return found


def clusters_of(snapshot: Path) -> set[str]:
    """x."""
    found = (line for path in snapshot.rglob("meta.properties") for line in path.read_text().splitlines())
    return {line for line in found if line.startswith("cluster.id=")} or {""}


def nodes_of(snapshot: Path) -> list[Path]:
    """The directories of nodes in a snapshot of a recording."""
    return sorted(one for one in snapshot.iterdir() if one.is_dir())


# ---------------------------------------------------------------- broken fleets


def _segments(nodes: Sequence[Path]) -> list[Path]:
    """Segments with content, but for those of the metadata log."""
    every = (path for node in nodes for path in sorted(node.rglob("*.log")) if path.stem.isdigit())
    return [path for path in every if path.stat().st_size and not path.parent.name.startswith("__cluster_metadata")]


def _chosen(choice: random.Random, found: Sequence[Path]) -> Path | None:
    return choice.choice(found) if found else None


def _log_deleted(choice: random.Random, nodes: list[Path]) -> str | None:
    path = _chosen(choice, _segments(nodes))
    if path is not None:
        path.unlink()
    return None if path is None else str(path)


def _log_emptied(choice: random.Random, nodes: list[Path]) -> str | None:
    path = _chosen(choice, _segments(nodes))
    if path is not None:
        path.write_bytes(b"")
    return None if path is None else str(path)


def _log_truncated(choice: random.Random, nodes: list[Path]) -> str | None:
    path = _chosen(choice, _segments(nodes))
    if path is not None:
        os.truncate(path, choice.randrange(path.stat().st_size))
    return None if path is None else str(path)


def _bit_flipped(choice: random.Random, nodes: list[Path]) -> str | None:
    path = _chosen(choice, _segments(nodes))
    if path is not None:
        content = bytearray(path.read_bytes())
        content[choice.randrange(len(content))] ^= 1 << choice.randrange(8)
        path.write_bytes(content)
    return None if path is None else str(path)


def _directory_missing(choice: random.Random, nodes: list[Path]) -> str | None:
    path = _chosen(choice, sorted({one.parent for one in _segments(nodes)}))
    if path is not None:
        shutil.rmtree(path)
    return None if path is None else str(path)


def _partition_missing(choice: random.Random, nodes: list[Path]) -> str | None:
    path = _chosen(choice, sorted({one.parent for one in _segments(nodes)}))
    for one in sorted(other for node in nodes for other in node.rglob(path.name)) if path else ():
        shutil.rmtree(one)
    return None if path is None else str(path)


def _directories_exchanged(choice: random.Random, nodes: list[Path]) -> str | None:
    node = choice.choice(nodes)
    held = sorted({one.parent for one in _segments([node])})
    if len(held) < 2:
        return None
    one, two = choice.sample(held, 2)
    spare = one.with_name("spare")
    for source, target in ((one, spare), (two, one), (spare, two)):
        source.rename(target)
    return f"{one} and {two}"


def _checkpoint_missing(choice: random.Random, nodes: list[Path]) -> str | None:
    path = _chosen(choice, sorted(one for node in nodes for one in node.rglob("*-checkpoint")))
    if path is not None:
        path.unlink()
    return None if path is None else str(path)


def _checkpoint_garbled(choice: random.Random, nodes: list[Path]) -> str | None:
    path = _chosen(choice, sorted(one for node in nodes for one in node.rglob("*-checkpoint")))
    if path is not None:
        path.write_bytes(choice.randbytes(40))
    return None if path is None else str(path)


def _logs_left_out(choice: random.Random, nodes: list[Path]) -> str | None:
    """Take away all logs but that of the metadata, as a copy of small files does."""
    path = choice.choice(nodes)
    for one in _segments([path]):
        one.unlink()
    return str(path)


def _metadata_missing(choice: random.Random, nodes: list[Path]) -> str | None:
    path = _chosen(choice, sorted(one for node in nodes for one in node.rglob("__cluster_metadata-0")))
    if path is not None:
        shutil.rmtree(path)
    return None if path is None else str(path)


def _directory_doubled(choice: random.Random, nodes: list[Path]) -> str | None:
    """Copy a partition directory into another log directory of its node, or make one there for a move that begins anew."""
    disks = {one.parent.parent.parent for one in _segments(nodes) if len(_disks(one.parent.parent.parent)) > 1}
    path = _chosen(choice, sorted(one.parent for node in disks for one in _segments([node])))
    if path is None:
        return None
    other = choice.choice([one for one in _disks(path.parent.parent) if one != path.parent])
    name = path.name if choice.random() < 0.5 else f"{path.name}.{'0' * 32}-future"
    shutil.copytree(path, other / name, dirs_exist_ok=True)
    if name != path.name:
        for one in _segments([other / name]):
            one.unlink()
        (other / name / f"{0:020}.log").write_bytes(b"")
    return str(other / name)


def _disks(node: Path) -> list[Path]:
    return sorted(one.parent for one in node.glob("*/meta.properties"))


def _node_missing(choice: random.Random, nodes: list[Path]) -> str | None:
    if len(nodes) < 2:
        return None
    path = choice.choice(nodes)
    shutil.rmtree(path)
    return str(path)


BREAKS: dict[str, Break] = {
    "a log deleted": _log_deleted,
    "a log emptied": _log_emptied,
    "a log cut": _log_truncated,
    "a bit flipped": _bit_flipped,
    "a directory missing": _directory_missing,
    "a partition missing everywhere": _partition_missing,
    "two directories exchanged": _directories_exchanged,
    "a checkpoint missing": _checkpoint_missing,
    "a checkpoint of random bytes": _checkpoint_garbled,
    "a node missing": _node_missing,
    "logs left out": _logs_left_out,
    "a metadata log missing": _metadata_missing,
    "a directory doubled": _directory_doubled,
}


def broken(place: Path, target: Path, name: str, seed: int) -> str | None:
    """Copy a snapshot and damage it; says where, or None where there is no place for such damage."""
    shutil.copytree(place, target, symlinks=True)
    return BREAKS[name](random.Random(f"{name} {seed}"), nodes_of(target))


# ---------------------------------------------------------------- the command


def comparisons(
    audits: Audits, recording: Path, work: Path, breaks: int, other: Path | None
) -> Iterator[tuple[str, Comparison]]:
    """Each comparison of a recording, by a name, which says where an audit says something else."""
    snapshots = sorted(one for one in (recording / "snapshots").iterdir() if one.is_dir())
    for snapshot in snapshots:
        yield f"{snapshot.name}: directories", partial(audits.differences, [snapshot])
        yield f"{snapshot.name}: captures", partial(audits.of_captures, snapshot)
        yield f"{snapshot.name}: all batches", partial(audits.of_all_batches, snapshot)
    if other is not None and not clusters_of(snapshots[-1]) & {"", *clusters_of(other)}:
        yield f"{snapshots[-1].name}: a second cluster beside", partial(audits.beside, snapshots[-1], other)
    for seed in range(breaks):
        for name in BREAKS:
            yield f"{snapshots[-1].name}: {name}", partial(compare_broken, audits, snapshots[-1], work, name, seed)


def compare_broken(audits: Audits, snapshot: Path, work: Path, name: str, seed: int) -> list[str]:
    """Where an audit says something else of a snapshot that is damaged in one way."""
    target = work / f"broken-{name.replace(' ', '-')}-{seed}"
    where = broken(snapshot, target, name, seed)
    found = [] if where is None else audits.differences([target])
    shutil.rmtree(target)
    return [f"({where})", *found] if found else []


def compare_made(audits: Audits, seed: int, directory: Path) -> list[str]:
    """Where an audit says something else of a cluster of a random history."""
    choice = random.Random(seed)
    protocol = choice.choice(list(ProtocolName))
    cluster = random_cluster(seed, protocol=protocol, brokers=3, partitions=4, most_steps=choice.choice([60, 200]))
    write_cluster(cluster, directory, segment_length=choice.choice([700, 3_000, 50_000]))
    stated = None if protocol is ProtocolName.KIP_595 else protocol
    return audits.differences([directory], options=Ask(protocol=stated, replicas=(1, 2, 3)))


def main() -> int:
    """Compare all; 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", type=Path)
    parser.add_argument("--breaks", type=int, default=1)
    parser.add_argument("--made", type=int, default=0)
    parser.add_argument("--only", default="", help="comparisons whose name has this in it")
    parser.add_argument("--here", action="store_true", help="without Spark")
    arguments = parser.parse_args()
    done: Counter[bool] = Counter()

    def show(name: str, found: list[str]) -> None:
        done[bool(found)] += 1
        print(f"{name}: {f'{len(found)} differences' if found else 'equal'}", flush=True)
        for line in found[:12]:
            print(f"    {line[:600]}", flush=True)

    if arguments.here:
        stages._run = lambda _session, scan, *_: stages.scan_here(scan)
        auditing.__dict__["cores_of"] = lambda _: 2
    opened = nullcontext() if arguments.here else open_session("local[2]", {"spark.driver.memory": "1g"})
    with opened as session, tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        audits = Audits(session, work)
        for seed in range(arguments.made):
            show(f"seed {seed}", compare_made(audits, seed, work / f"made-{seed}"))
            shutil.rmtree(work / f"made-{seed}")
        other: Path | None = None
        for place in arguments.recordings:
            recordings = [place] if (place / "snapshots").is_dir() else sorted(place.iterdir())
            for recording in (one for one in recordings if (one / "snapshots").is_dir()):
                for name, compare_one in comparisons(audits, recording, work, arguments.breaks, other):
                    if arguments.only in name:
                        show(f"{recording.name}: {name}", compare_one())
                final = max((recording / "snapshots").iterdir())
                other = other if "" in clusters_of(final) else final
    print(f"{done.total()} comparisons, {done[True]} with differences")
    return 1 if done[True] else 0


if __name__ == "__main__":
    sys.exit(main())
