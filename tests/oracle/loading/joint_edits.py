"""Edits by which two things go wrong at once, and rarer states of disks: of one disk of several, of logs on the way to or from another disk, of gaps in the metadata log."""

import shutil
import struct
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.protocol.loading.disk import EPOCH_FILE
from tests.builders.metadata_logs import metadata_batch, metadata_record
from tests.oracle.loading.node_edits import (
    OTHER_ID,
    Edit,
    append,
    flip,
    history_of_node,
    log_of,
    newest_snapshot,
    place_of,
    quorum_of,
    recorded,
    set_meta,
    write_text,
)

if TYPE_CHECKING:
    from tests.oracle.loading.brokers import Node

_LOG, _INDEX, _TIMES = f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex"
_MARKER = ".kafka_cleanshutdown"
_POINTS, _STARTS = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"


def joint_edits(*, is_kraft: bool = True) -> Mapping[str, Edit]:
    """Edits by name; those of logs and checkpoints alone where the node needs ZooKeeper."""
    of_node = {**_of_disks(), **_of_metadata()} if is_kraft else {}
    return {**_of_logs(), **_of_moves(), **of_node}


def both(*edits: Edit) -> Edit:
    """Return the edits one after the other."""

    def edit(node: "Node") -> None:
        for one in edits:
            one(node)

    return edit


def _on(name: str, change: Callable[[Path], object]) -> Edit:
    """Change the directory of a log."""

    def edit(node: "Node") -> None:
        change(place_of(node, name))

    return edit


def _filed(name: str, data: bytes, log: str = "orders0-0") -> Edit:
    return _on(log, lambda place: (place / name).write_bytes(data))


def _cut(share: float) -> Edit:
    def change(place: Path) -> None:
        data = (place / _LOG).read_bytes()
        (place / _LOG).write_bytes(data[: int(len(data) * share)])

    return _on("orders0-0", change)


def _without(pattern: str) -> Edit:
    def change(place: Path) -> None:
        for path in place.glob(pattern):
            path.unlink()

    return _on("orders0-0", change)


def _unmarked(*places: int) -> Edit:
    def edit(node: "Node") -> None:
        for place in places or (0, 1):
            (node.log_dirs[place] / _MARKER).unlink()

    return edit


def _in_disk(name: str, text: str, *places: int) -> Edit:
    def edit(node: "Node") -> None:
        for place in places or (0, 1):
            write_text(node.log_dirs[place] / name, text)

    return edit


def _flipped(name: str, share: float = 0.5) -> Edit:
    return _on(name, lambda place: flip(place / _LOG, share))


def _zeros(name: str) -> Edit:
    def change(place: Path) -> None:
        with (place / _LOG).open("ab") as file:
            file.write(bytes(200))

    return _on(name, change)


def _epochs(text: str) -> Edit:
    return _on("orders0-0", lambda place: write_text(place / EPOCH_FILE, text))


def _of_logs() -> Mapping[str, Edit]:
    above = "0\n2\norders0 0 900\norders1 0 900\n"
    last_cut, no_snapshots = _cut(0.95), _without("*.snapshot")
    return {
        "a last batch cut short, no producer snapshot, later epochs": both(
            last_cut, no_snapshots, _epochs("0\n2\n0 0\n5 9\n")
        ),
        "a last batch cut short, no producer snapshot, later epochs, without marker": both(
            last_cut, no_snapshots, _epochs("0\n2\n0 0\n5 9\n"), _unmarked()
        ),
        "a last batch cut short, no epochs, without marker": both(last_cut, _epochs(""), _unmarked()),
        "a last batch cut short, a snapshot of producers of noise": both(
            last_cut, _filed(f"{9:020d}.snapshot", bytes(range(80)))
        ),
        "no snapshot of producers, without marker": both(no_snapshots, _unmarked()),
        "a snapshot of producers above the end": _filed(f"{900:020d}.snapshot", bytes(14)),
        "a flipped bit, recovery points above the ends, without marker": both(
            _flipped("orders0-0"), _in_disk(_POINTS, above), _unmarked()
        ),
        "a flipped bit, no index": both(_flipped("orders0-0"), _without("*.index")),
        "a flipped bit, no index, without marker": both(_flipped("orders0-0"), _without("*.index"), _unmarked()),
        "zeros behind a log, recovery points above the ends, without marker": both(
            _zeros("orders0-0"), _in_disk(_POINTS, above), _unmarked()
        ),
        "zeros behind a log, no index": both(_zeros("orders0-0"), _without("*.index")),
        "log starts above the ends, malformed recovery points": both(
            _in_disk(_STARTS, above), _in_disk(_POINTS, "0\n3\norders0 0 5\n", 1)
        ),
        "malformed recovery points of both disks": _in_disk(_POINTS, "0\n3\norders0 0 5\n"),
        "malformed recovery points of one disk, malformed log starts of the other": both(
            _in_disk(_POINTS, "0\n3\norders0 0 5\n", 1), _in_disk(_STARTS, "0\n3\norders0 0 5\n", 0)
        ),
        "malformed epochs beside lost+found": both(
            _epochs("0\n2\n0 0\n"), lambda node: (node.log_dirs[1] / "lost+found").mkdir()
        ),
        "malformed epochs beside zeros behind a log": both(_epochs("0\n2\n0 0\n"), _zeros("orders1-0")),
        "an index beyond its segment": _filed(_INDEX, struct.pack(">ii", 5, 100_000)),
        "an index beyond its segment, without marker": both(
            _filed(_INDEX, struct.pack(">ii", 5, 100_000)), _unmarked()
        ),
        "a time index of odd length": _filed(_TIMES, bytes(13)),
        "a time index of odd length, without marker": both(_filed(_TIMES, bytes(13)), _unmarked()),
        "an index of transactions of odd length": _filed(f"{0:020d}.txnindex", bytes(20)),
        "an index of transactions of version 1": _filed(f"{0:020d}.txnindex", b"\0\1" + bytes(32)),
        "an index of transactions below its segment": _filed(
            f"{0:020d}.txnindex", struct.pack(">hqqqq", 0, 1, -9, -5, 0)
        ),
        "an empty segment far above": _filed(f"{1 << 40:020d}.log", b""),
        "an empty segment far above, without marker": both(_filed(f"{1 << 40:020d}.log", b""), _unmarked()),
        "a segment of zeros": _on("orders0-0", lambda place: (place / _LOG).write_bytes(bytes(500))),
        "a segment of zeros, without marker": both(
            _on("orders0-0", lambda place: (place / _LOG).write_bytes(bytes(500))), _unmarked()
        ),
        "a marker in one disk, a flipped bit in each": both(_flipped("orders0-0"), _flipped("orders1-0"), _unmarked(1)),
        "a segment to be swapped in beside a cleaned one": _on(
            "orders0-0",
            lambda place: (
                shutil.copy(place / _LOG, place / f"{_LOG}.cleaned"),
                (place / _LOG).rename(place / f"{_LOG}.swap"),
            ),
        ),
    }


def _ended(ending: str, *, is_copy: bool = False, to_other: bool = False) -> Edit:
    """Give the directory of a log an ending, or a copy of it."""

    def edit(node: "Node") -> None:
        mine = place_of(node, "orders0-0")
        other = next(one for one in node.log_dirs if one != mine.parent) if to_other else mine.parent
        goal = other / (f"{mine.name}.{'a' * 32}-{ending}" if ending else mine.name)
        (shutil.copytree if is_copy else shutil.move)(mine, goal)

    return edit


def _with_ending(change: Callable[[Path], object]) -> Edit:
    """Change the directory that has an ending, or the copy on the other disk."""

    def edit(node: "Node") -> None:
        found = [path for one in node.log_dirs for path in one.glob("orders0-0.*")]
        mine = place_of(node, "orders0-0").parent if not found else node.home
        change(found[0] if found else next(one / "orders0-0" for one in node.log_dirs if one != mine))

    return edit


def _of_moves() -> Mapping[str, Edit]:
    future = _ended("future", is_copy=True, to_other=True)
    stray, deleted = _ended("stray", is_copy=True, to_other=True), _ended("delete", is_copy=True, to_other=True)
    twice = _ended("", is_copy=True, to_other=True)

    def changed(name: str, data: bytes) -> Edit:
        return _with_ending(lambda place: (place / name).write_bytes(data))

    def longer(place: Path) -> None:
        with (place / _LOG).open("ab") as file:
            file.write(bytes(200))

    def empty(place: Path) -> None:
        for path in place.iterdir():
            if path.name != "partition.metadata":
                path.unlink()

    other_id = f"version: 0\ntopic_id: {OTHER_ID}".encode()
    return {
        "a future log with zeros behind it": both(future, _with_ending(longer)),
        "a future log with zeros behind it, without marker": both(future, _with_ending(longer), _unmarked()),
        "a future log of another topic": both(future, changed("partition.metadata", other_id)),
        "a future log with an empty partition.metadata": both(future, changed("partition.metadata", b"")),
        "a future log without partition.metadata": both(
            future, _with_ending(lambda place: (place / "partition.metadata").unlink())
        ),
        "a future log with malformed epochs": both(future, changed(EPOCH_FILE, b"0\n2\n0 0\n")),
        "a future log that is empty": both(future, _with_ending(empty)),
        "a stray with malformed epochs": both(stray, changed(EPOCH_FILE, b"0\n2\n0 0\n")),
        "a stray with zeros behind it": both(stray, _with_ending(longer)),
        "a stray with an empty partition.metadata": both(stray, changed("partition.metadata", b"")),
        "a stray with a segment of a name that is no number": both(stray, changed("copy.log", b"")),
        "a deleted log with zeros behind it": both(deleted, _with_ending(longer)),
        "a deleted log with malformed epochs": both(deleted, changed(EPOCH_FILE, b"0\n2\n0 0\n")),
        "a deleted log with an empty partition.metadata": both(deleted, changed("partition.metadata", b"")),
        "a deleted log with a segment of a name that is no number": both(deleted, changed("copy.log", b"")),
        "a deleted log and a future log": both(future, _ended("delete")),
        "a stray and a future log": both(future, _ended("stray")),
        "a partition twice, one of another topic id": both(twice, changed("partition.metadata", other_id)),
        "a partition twice, one without partition.metadata": both(
            twice, _with_ending(lambda place: (place / "partition.metadata").unlink())
        ),
        "a partition twice, one with malformed epochs": both(twice, changed(EPOCH_FILE, b"0\n2\n0 0\n")),
        "a partition twice, one empty": both(twice, _with_ending(empty)),
        "a file in place of a future log": lambda node: write_text(
            node.log_dirs[1] / f"orders0-0.{'a' * 32}-future", ""
        ),
    }


def _of_disks() -> Mapping[str, Edit]:
    def meta(key: str, value: str | None, *places: int) -> Edit:
        return lambda node: set_meta(node, key, value, places=places or (1,))

    def copied(key: str | None, value: str | None = None) -> Edit:
        def edit(node: "Node") -> None:
            third = node.home / "data-2"
            shutil.copytree(node.log_dirs[1], third)
            if key is not None:
                lines = [one for one in (third / "meta.properties").read_text().splitlines() if key not in one]
                more = [] if value is None else [f"{key}={value}"]
                (third / "meta.properties").write_text("\n".join([*lines, *more]) + "\n")
            node.settings["log.dirs"] = ",".join(map(str, [*node.log_dirs, third]))

        return edit

    def reversed_dirs(node: "Node") -> None:
        node.settings["log.dirs"] = ",".join(map(str, reversed(node.log_dirs)))

    def metadata_dir(node: "Node") -> None:
        node.settings["metadata.log.dir"] = node.log_dirs[0]

    def emptied(node: "Node") -> None:
        shutil.rmtree(node.log_dirs[1])
        node.log_dirs[1].mkdir()

    def as_file(node: "Node") -> None:
        shutil.rmtree(node.log_dirs[1])
        write_text(node.log_dirs[1], "")

    def noise(node: "Node") -> None:
        (node.log_dirs[1] / "meta.properties").write_bytes(b"\\u12\n" * 4)

    def cleared(place: int) -> Edit:
        def edit(node: "Node") -> None:
            for path in node.log_dirs[place].iterdir():
                if path.name not in {"meta.properties", "__cluster_metadata-0", "bootstrap.checkpoint"}:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

        return edit

    return {
        "meta.properties of version 2 in one directory": meta("version", "2"),
        "meta.properties of version 2 in the metadata disk": meta("version", "2", 0),
        "no directory.id in any directory": meta("directory.id", None, 0, 1),
        "another node.id in the metadata disk": meta("node.id", "7", 0),
        "another cluster.id in the metadata disk": meta("cluster.id", OTHER_ID, 0),
        "a third disk that is a copy": copied(None),
        "a third disk that is a copy without directory.id": copied("directory.id"),
        "a third disk that is a copy with another directory.id": copied("directory.id", "B" * 21 + "A"),
        "the other order of disks, metadata.log.dir named, without one marker": both(
            reversed_dirs, metadata_dir, _unmarked(1)
        ),
        "the other order of disks, without marker": both(reversed_dirs, _unmarked()),
        "an empty disk, metadata.log.dir named": both(emptied, metadata_dir),
        "a file in place of a disk, a flipped bit in the other, without marker": both(
            _unmarked(), as_file, _flipped("orders0-0")
        ),
        "unreadable meta.properties beside lost+found": both(
            noise, lambda node: (node.log_dirs[1] / "lost+found").mkdir()
        ),
        "unreadable meta.properties, another cluster.id in the metadata disk": both(
            noise, meta("cluster.id", OTHER_ID, 0)
        ),
        "a metadata disk that lost its logs": cleared(0),
        "both disks lost their logs": both(cleared(0), cleared(1)),
        "another directory.id, without marker": both(meta("directory.id", "B" * 21 + "A"), _unmarked()),
    }


def _batches(data: bytes) -> list[bytes]:
    """Return the batches of a segment or a snapshot."""
    places = [0]
    while places[-1] < len(data):
        places.append(places[-1] + 12 + struct.unpack_from(">i", data, places[-1] + 8)[0])
    return [data[one:other] for one, other in pairwise(places)]


def _of_metadata() -> Mapping[str, Edit]:
    def without_batch(share: float) -> Edit:
        def edit(node: "Node") -> None:
            found = _batches(log_of(node).read_bytes())
            del found[int(len(found) * share)]
            log_of(node).write_bytes(b"".join(found))

        return edit

    def beyond(gap: int) -> Edit:
        def edit(node: "Node") -> None:
            history = history_of_node(node)
            record = metadata_record("NoOpRecord", {})
            append(node, metadata_batch(history.end_offset + gap, [record], epoch=history.last_epoch))

        return edit

    def of_epoch(more: int) -> Edit:
        def edit(node: "Node") -> None:
            history = history_of_node(node)
            record = metadata_record("NoOpRecord", {})
            append(node, metadata_batch(history.end_offset, [record], epoch=history.last_epoch + more))

        return edit

    def in_snapshot(record: bytes) -> Edit:
        def edit(node: "Node") -> None:
            path = newest_snapshot(node)
            *before, last = _batches(path.read_bytes())
            at = struct.unpack_from(">q", last)[0]
            epoch = history_of_node(node).last_epoch
            path.write_bytes(
                b"".join([*before, metadata_batch(at, [record], epoch=epoch), struct.pack(">q", at + 1), last[8:]])
            )

        return edit

    def without_footer(node: "Node") -> None:
        path = newest_snapshot(node)
        path.write_bytes(b"".join(_batches(path.read_bytes())[:-1]))

    def first_snapshot(change: Callable[[Path], object]) -> Edit:
        def edit(node: "Node") -> None:
            change(min(quorum_of(node).glob("*.checkpoint")))

        return edit

    def without_snapshots(node: "Node") -> None:
        for path in quorum_of(node).glob("*.checkpoint"):
            path.unlink()

    def level(value: int) -> bytes:
        return metadata_record("FeatureLevelRecord", {"name": "metadata.version", "feature_level": value})

    def bootstrap(*levels: int) -> Edit:
        def edit(node: "Node") -> None:
            data = b"".join(metadata_batch(at, [level(one)]) for at, one in enumerate(levels))
            (node.log_dirs[0] / "bootstrap.checkpoint").write_bytes(data)

        return edit

    def setting(name: str, value: object) -> Edit:
        def edit(node: "Node") -> None:
            node.settings[name] = value

        return edit

    def without_state(node: "Node") -> None:
        (quorum_of(node) / "quorum-state").unlink()

    def without_log(node: "Node") -> None:
        log_of(node).unlink()

    def feature(name: str, value: int) -> Edit:
        return recorded("FeatureLevelRecord", {"name": name, "feature_level": value})

    unstable = setting("unstable.feature.versions.enable", "true")
    return {
        "the metadata log without its second batch": without_batch(0.1),
        "the metadata log without a batch": without_batch(0.6),
        "the metadata log without its last batch but one": without_batch(0.98),
        "a gap at the end of the metadata log": beyond(50),
        "a batch of the metadata log of the next leader epoch": of_epoch(1),
        "a batch of the metadata log of an earlier leader epoch": of_epoch(-1),
        "a batch of the metadata log of a far leader epoch": of_epoch(500),
        "a record that nobody knows in the newest snapshot": in_snapshot(bytes([1, 99, 0, 0])),
        "a metadata.version of a later release in the newest snapshot": in_snapshot(level(60)),
        "a frame that nobody knows in the newest snapshot": in_snapshot(bytes([2, 12, 0, 0])),
        "the newest snapshot without its footer": without_footer,
        "the first snapshot empty": first_snapshot(lambda path: path.write_bytes(b"")),
        "the first snapshot damaged": first_snapshot(lambda path: flip(path, 0.5)),
        "the first snapshot is gone": first_snapshot(Path.unlink),
        "bootstrap.checkpoint of a later release": bootstrap(60),
        "bootstrap.checkpoint of an old level": bootstrap(1),
        "bootstrap.checkpoint of two levels": bootstrap(7, 20),
        "no quorum-state, no segment of the metadata log": both(without_state, without_log),
        "no quorum-state, a flipped bit in the metadata log": both(without_state, lambda node: flip(log_of(node), 0.6)),
        "no snapshots, no quorum-state": both(without_state, without_snapshots),
        "metadata.version 34 where unstable levels are let": both(feature("metadata.version", 34), unstable),
        "metadata.version 26": feature("metadata.version", 26),
        "transaction.version 2": feature("transaction.version", 2),
        "eligible.leader.replicas.version 9": feature("eligible.leader.replicas.version", 9),
        "a negative group.version": feature("group.version", -1),
        "group.version 0": feature("group.version", 0),
    }
