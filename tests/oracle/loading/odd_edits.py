"""Edits of a node without ZooKeeper that files get by hand, by tools and by other file systems: syntax, names, links, folders in place of files, and records that are rare."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.protocol.loading.disk import EPOCH_FILE
from tests.oracle.loading.node_edits import (
    OTHER_ID,
    append,
    epoch_of,
    flip,
    history_of_node,
    log_of,
    meta_of,
    newest_snapshot,
    place_of,
    quorum_of,
    recorded,
    set_meta,
    topic_id_of,
)

if TYPE_CHECKING:
    from tests.oracle.loading.brokers import Node

Edit = Callable[["Node"], object]
_BOTH = ("A" * 21 + "Q", "A" * 21 + "Q")
"""Directories of two replicas that are not assigned to any."""
_SEGMENT = f"{0:020d}"


def odd_edits() -> Mapping[str, Edit]:
    """Edits by name."""
    of_node = {**_of_metadata_disk(), **_of_records(), **_of_quorum(), **_of_voters(), **_of_owners()}
    return {**of_node, **_of_small_files(), **_of_properties(), **_of_names()}


def _of_properties() -> Mapping[str, Edit]:
    def text(change: Callable[[str], str], *places: int) -> Edit:
        def edit(node: "Node") -> None:
            for place in places or (1,):
                path = node.log_dirs[place] / "meta.properties"
                path.write_bytes(change(path.read_text()).encode("latin-1"))

        return edit

    def noise(node: "Node") -> None:
        (node.log_dirs[1] / "meta.properties").write_bytes(bytes(range(256)) * 4)

    def folder(node: "Node") -> None:
        path = node.log_dirs[1] / "meta.properties"
        path.unlink()
        path.mkdir()

    def linked(node: "Node") -> None:
        path = node.log_dirs[1] / "meta.properties"
        path.rename(node.home / "meta")
        path.symlink_to(node.home / "meta")

    def dangling(node: "Node") -> None:
        path = node.log_dirs[1] / "meta.properties"
        path.unlink()
        path.symlink_to(node.home / "gone")

    def being_written(node: "Node") -> None:
        path = node.log_dirs[1] / "meta.properties.tmp"
        path.mkdir()
        (path / "a").touch()

    def with_setting(key: str, value: Callable[["Node"], object]) -> Edit:
        def edit(node: "Node") -> None:
            node.settings[key] = value(node)

        return edit

    def inner(node: "Node") -> None:
        path = node.log_dirs[1] / "inner"
        path.mkdir()
        shutil.copy(node.log_dirs[1] / "meta.properties", path)
        lines = [one for one in (path / "meta.properties").read_text().splitlines() if "directory.id" not in one]
        (path / "meta.properties").write_text("\n".join(lines))
        node.settings["log.dirs"] = ",".join(map(str, (*node.log_dirs, path)))

    def same(node: "Node") -> None:
        (node.home / "other").symlink_to(node.log_dirs[1])
        node.settings["log.dirs"] = ",".join(map(str, (*node.log_dirs, node.home / "other")))

    def disk_linked(node: "Node") -> None:
        node.log_dirs[1].rename(node.home / "disk")
        node.log_dirs[1].symlink_to(node.home / "disk")

    def disk_dangling(node: "Node") -> None:
        shutil.rmtree(node.log_dirs[1])
        node.log_dirs[1].symlink_to(node.home / "gone")

    return {
        "meta.properties with line ends of Windows": text(lambda old: old.replace("\n", "\r\n")),
        "meta.properties with a byte order mark": text(lambda old: "\xef\xbb\xbf" + old),
        "meta.properties with colons": text(lambda old: old.replace("=", " : ")),
        "meta.properties with a key twice": text(lambda old: f"{old}node.id=7\n"),
        "meta.properties with a key twice, the right one last": text(lambda old: f"node.id=7\n{old}"),
        "meta.properties with a misspelt key": text(lambda old: old.replace("cluster.id", "cluster_id")),
        "meta.properties with a key in capitals": text(lambda old: old.replace("node.id", "Node.id")),
        "meta.properties with a key that nobody knows": text(lambda old: f"{old}rack=eu\n"),
        "meta.properties with broker.id beside node.id": text(lambda old: f"{old}broker.id=7\n"),
        "meta.properties with blanks behind the id": text(lambda old: old.replace("node.id=1", "node.id=1  ")),
        "meta.properties with a plus": text(lambda old: old.replace("node.id=1", "node.id=+1")),
        "meta.properties with zeros before the id": text(lambda old: old.replace("node.id=1", "node.id=001")),
        "meta.properties with a negative id": text(lambda old: old.replace("node.id=1", "node.id=-1")),
        "meta.properties with an id that is too large": text(
            lambda old: old.replace("node.id=1", "node.id=4294967297")
        ),
        "meta.properties with a version in words": text(lambda old: old.replace("version=1", "version=one")),
        "meta.properties without a version": text(lambda old: old.replace("version=1\n", "")),
        "meta.properties of version 0 with node.id": text(lambda old: old.replace("version=1", "version=0")),
        "meta.properties with a wrong escape": text(lambda old: f"{old}note=\\u12\n"),
        "meta.properties with escapes": text(lambda old: old.replace("cluster", "\\u0063luster")),
        "meta.properties with an empty cluster.id": text(lambda old: f"{old}cluster.id=\n"),
        "meta.properties with an empty directory.id": text(lambda old: f"{old}directory.id=\n"),
        "meta.properties with a directory.id of 23 characters": text(lambda old: f"{old}directory.id={'B' * 23}\n"),
        "meta.properties with a directory.id of odd bits": text(lambda old: f"{old}directory.id={'B' * 22}\n"),
        "meta.properties cut short": text(lambda old: old[: len(old) * 2 // 3]),
        "meta.properties of noise": noise,
        "meta.properties of zeros": text(lambda old: "\0" * len(old)),
        "meta.properties of zeros in the metadata disk": text(lambda old: "\0" * len(old), 0),
        "a folder in place of meta.properties": folder,
        "a link in place of meta.properties": linked,
        "a link to nothing in place of meta.properties": dangling,
        "a folder in place of meta.properties.tmp": being_written,
        "a log directory within another": inner,
        "a log directory by two names": same,
        "a link in place of a disk": disk_linked,
        "a link to nothing in place of a disk": disk_dangling,
        "log.dirs with a comma at the end": with_setting(
            "log.dirs", lambda node: ",".join(map(str, node.log_dirs)) + ","
        ),
        "log.dir beside log.dirs": with_setting("log.dir", lambda node: node.home / "data-9"),
        "log.dirs that are relative": with_setting("log.dirs", lambda _: "data-0,data-1"),
        "a misspelt log.dirs": with_setting("log_dirs", lambda _: "/nowhere"),
        "broker.id in place of node.id": with_setting("broker.id", lambda _: 1),
        "a node.id with blanks": with_setting("node.id", lambda _: "1  "),
        "a negative node.id": with_setting("node.id", lambda _: -1),
        "metadata.log.dir that is empty": with_setting("metadata.log.dir", lambda _: ""),
        "metadata.log.dir with a slash at the end": with_setting(
            "metadata.log.dir", lambda node: f"{node.log_dirs[0]}/"
        ),
    }


def _of_names() -> Mapping[str, Edit]:
    def folder(name: str, *, filled: bool = False) -> Edit:
        def edit(node: "Node") -> None:
            if filled:
                shutil.copytree(place_of(node, "orders0-0"), node.log_dirs[1] / name)
            else:
                (node.log_dirs[1] / name).mkdir()

        return edit

    def file(name: str) -> Edit:
        return lambda node: (node.log_dirs[1] / name).write_text("text")

    def link(name: str, target: str) -> Edit:
        return lambda node: (node.log_dirs[1] / name).symlink_to(target)

    return {
        "a folder of partition -1": folder("orders0--1"),
        "a folder of partition +5": folder("orders0-+5"),
        "a folder of partition 00": folder("orders0-00"),
        "a folder of a large partition": folder("orders0-99999999999"),
        "a folder of Arabic digits": folder("orders0-\u0661"),
        "a folder without topic": folder("-0"),
        "a folder without partition": folder("orders0-"),
        "a folder with blanks": folder("orders 0-0"),
        "a folder of dots": folder("..-0"),
        "a folder of a bin": folder(".Trash-0"),
        "a folder of a copy": folder("orders0-0 (copy)"),
        "a folder of lost+found with a number": folder("lost+found-1"),
        "a folder with a long name": folder(f"{'a' * 253}-0"),
        "a log with a long name": folder(f"{'a' * 250}-0", filled=True),
        "a folder of an early deletion": folder("orders0-0-delete"),
        "a folder of a deletion without id": folder("orders0-0.-delete"),
        "a folder of a deletion with another id": folder("orders0-0.abc-delete"),
        "a folder of a future log without id": folder("orders0-0-future"),
        "a folder of a future log with another id": folder("orders0-0.abc-future"),
        "a log of a future log with another id": folder("orders1-0.abc-future", filled=True),
        "a folder of a stray without id": folder("orders0-0-stray"),
        "a folder of two endings": folder(f"orders0-0.{'a' * 32}-stray.{'b' * 32}-delete"),
        "a folder in capitals": folder("ORDERS0-0", filled=True),
        "a folder of the metadata": folder("__cluster_metadata"),
        "an empty folder of the metadata log": folder("__cluster_metadata-0"),
        "a folder of another partition of the metadata": folder("__cluster_metadata-1"),
        "a folder of the metadata log to be deleted": folder(f"__cluster_metadata-0.{'a' * 32}-delete"),
        "a folder of the metadata log with an ending": folder("__cluster_metadata-0.bak"),
        "a file with the name of the metadata log": file("__cluster_metadata-0"),
        "a file with the name of lost+found": file("lost+found"),
        "a segment beside the logs": file(f"{_SEGMENT}.log"),
        "a link to a folder without number": link("backup", "/tmp"),
        "a link to nothing": link("gone", "/nowhere"),
        "a link to nothing with the name of a partition": link("gone-0", "/nowhere"),
        "a link to its own disk": link("loop-0", "."),
    }


def _of_small_files() -> Mapping[str, Edit]:
    def in_log(name: str, change: Callable[[Path], object]) -> Edit:
        return lambda node: change(place_of(node, "orders0-0") / name)

    def in_disk(name: str, change: Callable[[Path], object]) -> Edit:
        return lambda node: change(node.log_dirs[1] / name)

    def as_folder(path: Path, *, is_filled: bool = False) -> None:
        path.unlink(missing_ok=True)
        path.mkdir()
        if is_filled:
            (path / "a").touch()

    def dangling(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.symlink_to("/nowhere")

    def linked(path: Path) -> None:
        path.rename(path.parent.parent / f"moved-{path.name}.txt")
        path.symlink_to(path.parent.parent / f"moved-{path.name}.txt")

    def written(data: str) -> Callable[[Path], object]:
        return lambda path: path.write_bytes(data.encode("latin-1"))

    def changed(change: Callable[[str], str]) -> Callable[[Path], object]:
        return lambda path: path.write_text(change(path.read_text()), newline="")

    filled = partial(as_folder, is_filled=True)
    points, starts, marks = (
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    )
    found: dict[str, Edit] = {
        "a folder in place of partition.metadata": in_log("partition.metadata", as_folder),
        "a folder in place of partition.metadata.tmp": in_log("partition.metadata.tmp", filled),
        "a link to nothing in place of partition.metadata": in_log("partition.metadata", dangling),
        "partition.metadata with line ends of Windows": in_log(
            "partition.metadata", changed(lambda old: old.replace("\n", "\r\n"))
        ),
        "partition.metadata with an empty line": in_log(
            "partition.metadata", changed(lambda old: old.replace("\n", "\n\n"))
        ),
        "partition.metadata of version 1": in_log(
            "partition.metadata", changed(lambda old: old.replace("version: 0", "version: 1"))
        ),
        "partition.metadata without version": in_log("partition.metadata", changed(lambda old: old.partition("\n")[2])),
        "partition.metadata in the other order": in_log(
            "partition.metadata", changed(lambda old: "\n".join(reversed(old.strip().splitlines())))
        ),
        "partition.metadata of zeros": in_log("partition.metadata", changed(lambda old: "\0" * len(old))),
        "partition.metadata cut short": in_log("partition.metadata", changed(lambda old: old.strip()[:-4])),
        "partition.metadata with a blank behind": in_log("partition.metadata", changed(lambda old: old.strip() + " ")),
        "a folder in place of an epoch file": in_log(EPOCH_FILE, as_folder),
        "a folder in place of an epoch file that is written": in_log(f"{EPOCH_FILE}.tmp", filled),
        "a link in place of an epoch file": in_log(EPOCH_FILE, linked),
        "a link to nothing in place of an epoch file": in_log(EPOCH_FILE, dangling),
        "an epoch file with line ends of Windows": in_log(EPOCH_FILE, changed(lambda old: old.replace("\n", "\r\n"))),
        "an epoch file with tabs": in_log(EPOCH_FILE, written("0\n1\n0\t0\n")),
        "an epoch file with blanks": in_log(EPOCH_FILE, written("0\n1\n 0 0 \n")),
        "an epoch file with more lines": in_log(EPOCH_FILE, written("0\n1\n0 0\n0 0\n")),
        "a link in place of a segment": in_log(f"{_SEGMENT}.log", linked),
        "a link to nothing in place of a segment": in_log(f"{_SEGMENT}.log", dangling),
        "a link to nothing in place of an index": in_log(f"{_SEGMENT}.index", dangling),
        "a folder in place of a segment": in_log(f"{_SEGMENT}.log", as_folder),
        "a folder in place of a time index": in_log(f"{_SEGMENT}.timeindex", as_folder),
        "a folder in a log": in_log("backup", filled),
        "a folder of a later segment": in_log(f"{50:020d}.log", as_folder),
        "a folder in place of a marker": in_disk(".kafka_cleanshutdown", as_folder),
        "a filled folder in place of a marker": in_disk(".kafka_cleanshutdown", filled),
        "a marker that is a list": in_disk(".kafka_cleanshutdown", written("[]")),
        "a marker with an epoch in words": in_disk(".kafka_cleanshutdown", written('{"version":0,"brokerEpoch":"9"}')),
        "a marker of zeros": in_disk(".kafka_cleanshutdown", written("\0" * 33)),
        "a folder in place of a lock": in_disk(".lock", as_folder),
        "a link to nothing in place of a lock": in_disk(".lock", dangling),
    }
    for words, name in (("recovery points", points), ("log starts", starts), ("high watermarks", marks)):
        found |= {
            f"a folder in place of {words}": in_disk(name, as_folder),
            f"a folder in place of {words} that are written": in_disk(f"{name}.tmp", filled),
            f"a link to nothing in place of {words}": in_disk(name, dangling),
            f"{words} of a partition twice": in_disk(name, written("0\n2\norders0 0 4\norders0 0 5\n")),
            f"{words} with tabs": in_disk(name, written("0\n1\norders0\t0\t5\n")),
            f"{words} with line ends of Windows": in_disk(name, written("0\r\n1\r\norders0 0 5\r\n")),
            f"{words} with an empty line at the end": in_disk(name, written("0\n1\norders0 0 5\n\n")),
            f"{words} with an offset that is too large": in_disk(
                name, written("0\n1\norders0 0 99999999999999999999\n")
            ),
            f"{words} with a negative count": in_disk(name, written("0\n-1\n")),
            f"{words} with a count of none": in_disk(name, written("0\n0\norders0 0 5\n")),
            f"{words} of noise": in_disk(name, written("".join(map(chr, range(256))))),
            f"{words} of partitions that are not there": in_disk(name, written("0\n1\nnobody 7 5\n")),
        }
    return found


NOBODY = 65534


def _of_owners() -> Mapping[str, Edit]:
    """Edits of a node that runs as another user than the one that some of its files are of."""

    def owned(find: Callable[["Node"], Path], mode: int, *, is_own: bool = False) -> Edit:
        def edit(node: "Node") -> None:
            node.runs_as = NOBODY
            for above in (node.home.parent, node.home):
                above.chmod(0o755)
            for path in (node.home, *node.home.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
            found = find(node)
            os.chown(found, NOBODY if is_own else 0, NOBODY if is_own else 0)
            found.chmod(mode)

        return edit

    def in_log(name: str) -> Callable[["Node"], Path]:
        return lambda node: place_of(node, "orders0-0") / name

    def in_disk(name: str) -> Callable[["Node"], Path]:
        return lambda node: node.log_dirs[1] / name

    def in_quorum(name: str) -> Callable[["Node"], Path]:
        return lambda node: next(quorum_of(node).glob(name))

    return {
        "as another user": owned(in_disk("meta.properties"), 0o644, is_own=True),
        "a segment of root": owned(in_log(f"{_SEGMENT}.log"), 0o600),
        "a segment of root that can be read": owned(in_log(f"{_SEGMENT}.log"), 0o644),
        "a segment of its own without rights": owned(in_log(f"{_SEGMENT}.log"), 0, is_own=True),
        "an offset index of root": owned(in_log(f"{_SEGMENT}.index"), 0o600),
        "a time index of root that can be read": owned(in_log(f"{_SEGMENT}.timeindex"), 0o644),
        "an epoch file of root": owned(in_log(EPOCH_FILE), 0o600),
        "an epoch file of root that can be read": owned(in_log(EPOCH_FILE), 0o644),
        "partition.metadata of root": owned(in_log("partition.metadata"), 0o600),
        "partition.metadata of root that can be read": owned(in_log("partition.metadata"), 0o644),
        "a snapshot of producers of root": owned(in_log(f"{9:020d}.snapshot"), 0o600),
        "a log of root": owned(in_log(""), 0o700),
        "a log of root that can be read": owned(in_log(""), 0o755),
        "a disk of root": owned(in_disk(""), 0o700),
        "a disk of root that can be read": owned(in_disk(""), 0o755),
        "meta.properties of root": owned(in_disk("meta.properties"), 0o600),
        "meta.properties of root that can be read": owned(in_disk("meta.properties"), 0o644),
        "recovery points of root": owned(in_disk("recovery-point-offset-checkpoint"), 0o600),
        "log starts of root": owned(in_disk("log-start-offset-checkpoint"), 0o600),
        "high watermarks of root": owned(in_disk("replication-offset-checkpoint"), 0o600),
        "a marker of root": owned(in_disk(".kafka_cleanshutdown"), 0o600),
        "quorum-state of root": owned(in_quorum("quorum-state"), 0o600),
        "a metadata log of root that can be read": owned(in_quorum("*.log"), 0o644),
        "a snapshot of the metadata of root": owned(newest_snapshot, 0o600),
        "the metadata disk of root that can be read": owned(lambda node: node.log_dirs[0], 0o755),
        "bootstrap.checkpoint of root": owned(lambda node: node.log_dirs[0] / "bootstrap.checkpoint", 0o600),
    }


def _of_voters() -> Mapping[str, Edit]:
    """Edits of voters that the metadata log may name (KIP-853, 3.9)."""
    first = f"{0:020d}-{0:010d}.checkpoint"

    def identity(value: str | None) -> Edit:
        return lambda node: set_meta(node, "directory.id", value, places=(0,))

    def setting(name: str, value: Callable[["Node"], object]) -> Edit:
        def edit(node: "Node") -> None:
            node.settings[name] = value(node)

        return edit

    def controls(kind: ControlType, fields: Callable[["Node"], Mapping[str, object]]) -> Edit:
        def edit(node: "Node") -> None:
            history = history_of_node(node)
            key, value = encode_control_record(kind, fields(node))
            batch = build_record_batch(
                history.end_offset, [(1_000, key, value)], partition_leader_epoch=history.last_epoch, attributes=0x20
            )
            append(node, encode_record_batch(batch))

        return edit

    def voters(*ids: int, directory: str = OTHER_ID) -> Edit:
        def fields(node: "Node") -> Mapping[str, object]:
            # At its own address a node would take itself for the other voter.
            endpoints = [[{"name": "CONTROLLER", "host": "127.0.0.1", "port": port}] for port in (node.ports[1], 1)]
            versions = {"min_supported_version": 0, "max_supported_version": 1}
            own = directory or meta_of(node, 0)["directory.id"]
            return {
                "voters": [
                    {
                        "voter_id": one or node.node_id,
                        "voter_directory_id": OTHER_ID if one else own,
                        "endpoints": endpoints[bool(one)],
                        "k_raft_version_feature": versions,
                    }
                    for one in ids
                ]
            }

        return controls(ControlType.KRAFT_VOTERS, fields)

    def without_history(node: "Node") -> None:
        for one in quorum_of(node).glob("*.checkpoint"):
            one.unlink()

    return {
        "another directory.id of the metadata disk": identity("B" * 21 + "A"),
        "no directory.id of the metadata disk": identity(None),
        "the first snapshot removed": lambda node: (quorum_of(node) / first).unlink(),
        "the first snapshot empty": lambda node: (quorum_of(node) / first).write_text(""),
        "all snapshots removed": without_history,
        "voters by the settings": setting(
            "controller.quorum.voters", lambda node: f"{node.node_id}@127.0.0.1:{node.ports[1]}"
        ),
        "other voters by the settings": setting("controller.quorum.voters", lambda _: "9@127.0.0.1:1"),
        "further voters by the settings": setting(
            "controller.quorum.voters", lambda node: f"{node.node_id}@127.0.0.1:{node.ports[1]},9@127.0.0.1:1"
        ),
        "no bootstrap servers": setting("controller.quorum.bootstrap.servers", lambda _: ""),
        "bootstrap servers that nobody is": setting("controller.quorum.bootstrap.servers", lambda _: "127.0.0.1:1"),
        "the voter by another directory": voters(0),
        "the voter as it is": voters(0, directory=""),
        "another voter alone": voters(9),
        "another voter beside it": voters(0, 9, directory=""),
        "no voter": voters(),
        "kraft.version 0": controls(ControlType.KRAFT_VERSION, lambda _: {"k_raft_version": 0}),
        "kraft.version 1": controls(ControlType.KRAFT_VERSION, lambda _: {"k_raft_version": 1}),
        "kraft.version 7": controls(ControlType.KRAFT_VERSION, lambda _: {"k_raft_version": 7}),
    }


def _of_quorum() -> Mapping[str, Edit]:
    def named(name: str, change: Callable[[Path], object]) -> Edit:
        return lambda node: change(quorum_of(node) / name)

    def state(change: Callable[[dict[str, object]], object]) -> Edit:
        def edit(node: "Node") -> None:
            path = quorum_of(node) / "quorum-state"
            path.write_text(json.dumps(change(json.loads(path.read_text()))))

        return edit

    def filled(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.mkdir()
        (path / "a").touch()

    def dangling(path: Path) -> None:
        path.unlink()
        path.symlink_to("/nowhere")

    def linked(node: "Node") -> None:
        mine = quorum_of(node)
        shutil.move(mine, node.home / "metadata")
        mine.symlink_to(node.home / "metadata")

    def copied(name: str) -> Edit:
        return lambda node: shutil.copy(log_of(node), quorum_of(node) / name)

    def of_zeros(node: "Node") -> None:
        path = newest_snapshot(node)
        path.write_bytes(bytes(path.stat().st_size))

    def without_newest(node: "Node") -> None:
        newest_snapshot(node).unlink()

    def with_line(text: str) -> Edit:
        def edit(node: "Node") -> None:
            path = quorum_of(node) / "quorum-state"
            path.write_text(path.read_text() + text)

        return edit

    def emptied(node: "Node") -> None:
        log_of(node).write_bytes(b"")

    def bytes_of(size: int) -> Edit:
        def edit(node: "Node") -> None:
            path = log_of(node)
            path.write_bytes(path.read_bytes()[:size])

        return edit

    def as_file(node: "Node") -> None:
        mine = quorum_of(node)
        shutil.rmtree(mine)
        mine.write_text("")

    return {
        "a file in place of the metadata log": as_file,
        "a folder in place of quorum-state": named("quorum-state", filled),
        "a folder in place of quorum-state.tmp": named("quorum-state.tmp", filled),
        "a link to nothing in place of quorum-state": named("quorum-state", dangling),
        "quorum-state of no epoch": state(
            lambda old: {key: value for key, value in old.items() if key != "leaderEpoch"}
        ),
        "quorum-state of no leader": state(lambda old: {key: value for key, value in old.items() if key != "leaderId"}),
        "quorum-state of no voters": state(
            lambda old: {key: value for key, value in old.items() if key != "currentVoters"}
        ),
        "quorum-state of a negative epoch": state(lambda old: {**old, "leaderEpoch": -1}),
        "quorum-state of an epoch in words": state(lambda old: {**old, "leaderEpoch": "one"}),
        "quorum-state of an epoch as a text": state(lambda old: {**old, "leaderEpoch": "1"}),
        "quorum-state of an epoch that is too large": state(lambda old: {**old, "leaderEpoch": 1 << 40}),
        "quorum-state of an epoch with a fraction": state(lambda old: {**old, "leaderEpoch": 1.5}),
        "quorum-state with a field that nobody knows": state(lambda old: {**old, "note": 1}),
        "quorum-state of data_version as a text": state(lambda old: {**old, "data_version": f"{old['data_version']}"}),
        "quorum-state of a negative data_version": state(lambda old: {**old, "data_version": -1}),
        "quorum-state of the other data_version": state(
            lambda old: {**old, "data_version": 1 - int(f"{old['data_version']}")}
        ),
        "quorum-state that is a list": state(lambda _: []),
        "quorum-state that is null": state(lambda _: None),
        "quorum-state with more behind it": with_line("more"),
        "quorum-state with a second line": with_line("\n{}"),
        "quorum-state of a vote for itself in a later epoch": state(
            lambda old: {**old, "leaderEpoch": 30, "leaderId": -1, "votedId": 1}
        ),
        "quorum-state of a vote with a directory": state(
            lambda old: {**old, "votedId": 1, "votedDirectoryId": OTHER_ID}
        ),
        "a link in place of the metadata log": linked,
        "a snapshot of zeros": of_zeros,
        "the newest snapshot removed": without_newest,
        "a folder with the name of a snapshot": named(f"{900:020d}-{9:010d}.checkpoint", lambda path: path.mkdir()),
        "a snapshot of a name that is none": named("backup.checkpoint", lambda path: path.touch()),
        "a snapshot of an unpadded name": named("5-1.checkpoint", lambda path: path.touch()),
        "a snapshot that was deleted": named(f"{5:020d}-{1:010d}.checkpoint.deleted", lambda path: path.touch()),
        "an older snapshot that is empty": named(f"{1:020d}-{1:010d}.checkpoint", lambda path: path.touch()),
        "a metadata log of no bytes": emptied,
        "a metadata log of half a batch": bytes_of(30),
        "a segment of the metadata log twice": copied(f"{500:020d}.log"),
        "a copy of the metadata log with an ending": copied(f"{_SEGMENT}.log.bak"),
        "a cleaned segment of the metadata log": copied(f"{_SEGMENT}.log.cleaned"),
        "an index of noise of the metadata log": named(
            f"{_SEGMENT}.index", lambda path: path.write_bytes(bytes(range(1, 81)))
        ),
        "a snapshot of producers of noise in the metadata log": named(
            f"{9:020d}.snapshot", lambda path: path.write_bytes(bytes(range(80)))
        ),
        "the topic id of another in the metadata log": named(
            "partition.metadata", lambda path: path.write_text(f"version: 0\ntopic_id: {OTHER_ID}")
        ),
        "an epoch above the end of the metadata log": named(
            EPOCH_FILE, lambda path: path.write_text("0\n2\n1 0\n7 5000\n")
        ),
        "a folder in the metadata log": named("backup", filled),
        "a flipped bit in an older batch of the metadata log": lambda node: flip(log_of(node), 0.1),
    }


def _of_records() -> Mapping[str, Edit]:
    def of_topic(**fields: object) -> Callable[["Node"], Mapping[str, object]]:
        return lambda node: {"partition_id": 0, "topic_id": topic_id_of(node, "orders0-0"), **fields}

    def setting(kind: int, resource: str, name: str, value: str | None) -> Edit:
        return recorded(
            "ConfigRecord", {"resource_type": kind, "resource_name": resource, "name": name, "value": value}
        )

    def again(node: "Node") -> None:
        recorded("RemoveTopicRecord", {"topic_id": topic_id_of(node, "orders0-0")})(node)
        recorded("TopicRecord", {"name": "orders0", "topic_id": OTHER_ID})(node)
        replicas = {"replicas": (1,), "isr": (1,), "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
        recorded("PartitionRecord", {"partition_id": 0, "topic_id": OTHER_ID, **replicas})(node)

    return {
        "a topic made again": again,
        "a topic without partitions": recorded("TopicRecord", {"name": "fresh", "topic_id": OTHER_ID}),
        "a topic twice": recorded(
            "TopicRecord", lambda node: {"name": "orders0", "topic_id": topic_id_of(node, "orders0-0")}
        ),
        "a topic of a name that is taken": recorded("TopicRecord", {"name": "orders0", "topic_id": OTHER_ID}),
        "a partition of no topic": recorded(
            "PartitionRecord", {"partition_id": 0, "topic_id": OTHER_ID, "replicas": (1,), "isr": (1,), "leader": 1}
        ),
        "a change of a partition of no topic": recorded(
            "PartitionChangeRecord", {"partition_id": 0, "topic_id": OTHER_ID, "leader": 1}
        ),
        "a change of a partition that is not there": recorded(
            "PartitionChangeRecord", lambda node: {**of_topic(leader=1)(node), "partition_id": 7}
        ),
        "a topic of nobody deleted": recorded("RemoveTopicRecord", {"topic_id": OTHER_ID}),
        "a partition of no leader": recorded("PartitionChangeRecord", of_topic(leader=-1)),
        "a partition of no in-sync replica": recorded("PartitionChangeRecord", of_topic(isr=(), leader=-1)),
        "a partition of which another is in sync": recorded(
            "PartitionChangeRecord", of_topic(replicas=(1, 9), directories=_BOTH, isr=(9,), leader=9)
        ),
        "a partition that is moved away": recorded(
            "PartitionChangeRecord",
            of_topic(replicas=(1, 9), directories=_BOTH, removing_replicas=(1,), adding_replicas=(9,)),
        ),
        "a partition in recovery": recorded("PartitionChangeRecord", of_topic(leader_recovery_state=1)),
        "a policy of a topic that nobody knows": setting(2, "orders0", "cleanup.policy", "compress"),
        "a retention of a topic that is no number": setting(2, "orders0", "retention.ms", "many"),
        "a setting of a topic that nobody knows": setting(2, "orders0", "wish", "1"),
        "a setting of no topic": setting(2, "nobody", "retention.ms", "1"),
        "a setting of all brokers that is no number": setting(4, "", "log.retention.ms", "many"),
        "a setting of a kind that nobody knows": setting(99, "1", "a", "b"),
        "a large largest message": setting(2, "orders0", "max.message.bytes", "-1"),
        "an index of a topic that is too small": setting(2, "orders0", "segment.index.bytes", "1"),
        "metadata.version of zero": recorded("FeatureLevelRecord", {"name": "metadata.version", "feature_level": 0}),
        "a negative metadata.version": recorded(
            "FeatureLevelRecord", {"name": "metadata.version", "feature_level": -1}
        ),
        "a transaction begun": recorded("BeginTransactionRecord", {"name": "open"}),
        "a transaction ended that none began": recorded("EndTransactionRecord", {}),
        "a record of nothing": recorded("NoOpRecord", {}),
        "the broker fenced": recorded(
            "BrokerRegistrationChangeRecord", lambda node: {"broker_id": 1, "broker_epoch": epoch_of(node), "fenced": 1}
        ),
        "the broker fenced with another epoch": recorded(
            "BrokerRegistrationChangeRecord", {"broker_id": 1, "broker_epoch": 99_999, "fenced": 1}
        ),
        "a broker that nobody knows unregistered": recorded(
            "UnregisterBrokerRecord", {"broker_id": 77, "broker_epoch": 5}
        ),
        "the migration from ZooKeeper begun": recorded("ZkMigrationStateRecord", {"zk_migration_state": 2}),
        "the migration from ZooKeeper under way": recorded("ZkMigrationStateRecord", {"zk_migration_state": 1}),
        "a migration from ZooKeeper of a state that nobody knows": recorded(
            "ZkMigrationStateRecord", {"zk_migration_state": 9}
        ),
    }


def _of_metadata_disk() -> Mapping[str, Edit]:
    """Edits of a node whose metadata log is in a directory of its own."""

    def apart(node: "Node") -> Path:
        place = node.home / "metadata"
        place.mkdir()
        shutil.move(quorum_of(node), place / "__cluster_metadata-0")
        lines = [
            one for one in (node.log_dirs[0] / "meta.properties").read_text().splitlines() if "directory.id" not in one
        ]
        (place / "meta.properties").write_text("\n".join(lines) + "\n")
        if (node.log_dirs[0] / "bootstrap.checkpoint").exists():
            shutil.move(node.log_dirs[0] / "bootstrap.checkpoint", place)
        node.settings["metadata.log.dir"] = place
        return place

    def then(change: Callable[["Node", Path], object]) -> Edit:
        def edit(node: "Node") -> None:
            change(node, apart(node))

        return edit

    def alone(change: Callable[[Path], object]) -> Edit:
        return then(lambda _, place: change(place))

    def disks(change: Callable[[Path], object]) -> Edit:
        return then(lambda node, _: [*map(change, node.log_dirs)])

    def replaced(place: Path) -> None:
        shutil.rmtree(place)
        place.write_text("")

    def emptied(place: Path) -> None:
        shutil.rmtree(place)
        place.mkdir()

    def with_id(node: "Node", place: Path, key: str, value: str) -> None:
        lines = [one for one in (place / "meta.properties").read_text().splitlines() if not one.startswith(f"{key}=")]
        (place / "meta.properties").write_text("\n".join([*lines, f"{key}={value}"]) + "\n")

    return {
        "metadata apart": then(lambda *_: None),
        "metadata apart with an id": then(lambda node, place: with_id(node, place, "directory.id", "C" * 21 + "A")),
        "metadata apart with the id of a log directory": then(
            lambda node, place: shutil.copy(node.log_dirs[1] / "meta.properties", place / "meta.properties")
        ),
        "metadata apart of another node": then(lambda node, place: with_id(node, place, "node.id", "7")),
        "metadata apart of another cluster": then(lambda node, place: with_id(node, place, "cluster.id", OTHER_ID)),
        "metadata apart without meta.properties": then(lambda _, place: (place / "meta.properties").unlink()),
        "metadata apart with an empty meta.properties": then(
            lambda _, place: (place / "meta.properties").write_text("")
        ),
        "metadata apart without its log": then(lambda _, place: shutil.rmtree(place / "__cluster_metadata-0")),
        "metadata apart on an empty disk": alone(emptied),
        "metadata apart on a disk that is not there": then(lambda _, place: shutil.rmtree(place)),
        "metadata apart in a file": alone(replaced),
        "metadata apart beside lost+found": then(lambda _, place: (place / "lost+found").mkdir()),
        "metadata apart beside a log": then(
            lambda node, place: shutil.copytree(place_of(node, "orders0-0"), place / "orders0-0")
        ),
        "metadata apart, all log directories empty": disks(emptied),
        "metadata apart, a log directory in a file": then(lambda node, _: replaced(node.log_dirs[1])),
        "metadata apart, all log directories in files": disks(replaced),
        "metadata apart, a log directory not there": then(lambda node, _: shutil.rmtree(node.log_dirs[1])),
        "metadata apart with an empty folder of its log in a log directory": then(
            lambda node, _: (node.log_dirs[0] / "__cluster_metadata-0").mkdir()
        ),
    }
