"""Edits of what a node without ZooKeeper is started with beside its logs: identity, settings, metadata log, quorum, disks."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.protocol.loading.disk import EPOCH_FILE
from kforensics.protocol.versions import parse_version
from tests.builders.metadata_logs import metadata_batch, metadata_record

if TYPE_CHECKING:
    from tests.oracle.loading.brokers import Node

Edit = Callable[["Node"], None]
_META = "meta.properties"
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAw"


def write_text(path: Path, text: str) -> None:
    """Write a file over."""
    path.write_text(text)


def set_meta(node: "Node", key: str, value: str | None, *, places: tuple[int, ...] = (1,)) -> None:
    """Change a line of `meta.properties` in log directories of a node; without a value it is removed."""
    for place in places:
        path = node.log_dirs[place] / _META
        lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{key}=")]
        path.write_text("\n".join([*lines, *([] if value is None else [f"{key}={value}"])]) + "\n")


def meta_of(node: "Node", place: int) -> dict[str, str]:
    """What `meta.properties` of a log directory names."""
    lines = (line.partition("=") for line in (node.log_dirs[place] / _META).read_text().splitlines())
    return {key: value for key, _, value in lines}


def node_edits() -> Mapping[str, Edit]:
    """Edits by name."""
    return {**_of_quorum(), **_of_metadata(), **_of_identity(), **_of_disks()}


def further_edits() -> Mapping[str, Edit]:
    """Edits by name that a broker with ZooKeeper is started on as well: files of logs, checkpoints, and settings."""
    return {**_of_logs(), **_of_checkpoints(), **_of_settings()}


def quorum_of(node: "Node") -> Path:
    return next(one / "__cluster_metadata-0" for one in node.log_dirs if (one / "__cluster_metadata-0").is_dir())


def flip(path: Path, share: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 4
    path.write_bytes(data)


def newest_snapshot(node: "Node") -> Path:
    return max(quorum_of(node).glob("*.checkpoint"))


def _setting(name: str, value: Callable[["Node"], object]) -> Edit:
    def edit(node: "Node") -> None:
        node.settings[name] = value(node)

    return edit


def _of_quorum() -> Mapping[str, Edit]:
    def state(node: "Node") -> Path:
        return quorum_of(node) / "quorum-state"

    def with_state(key: str, value: object) -> Edit:
        def edit(node: "Node") -> None:
            found = json.loads(state(node).read_text())
            state(node).write_text(json.dumps({**found, key: value}))

        return edit

    def without_version(node: "Node") -> None:
        found = json.loads(state(node).read_text())
        del found["data_version"]
        state(node).write_text(json.dumps(found))

    def without_snapshots(node: "Node") -> None:
        for one in quorum_of(node).glob("*.checkpoint"):
            one.unlink()

    def without_log(node: "Node") -> None:
        next(iter(quorum_of(node).glob("*.log"))).unlink()

    def renamed(node: "Node") -> None:
        end, _, epoch = newest_snapshot(node).stem.partition("-")
        newest_snapshot(node).rename(quorum_of(node) / f"{int(end) + 500:020d}-{int(epoch) + 1:010d}.checkpoint")

    def named(name: str, text: str = "") -> Edit:
        return lambda node: write_text(quorum_of(node) / name, text)

    return {
        "a damaged snapshot": lambda node: flip(newest_snapshot(node), 0.5),
        "an empty snapshot": lambda node: write_text(newest_snapshot(node), ""),
        "a snapshot cut short": lambda node: os.truncate(
            newest_snapshot(node), newest_snapshot(node).stat().st_size - 100
        ),
        "no snapshots": without_snapshots,
        "a snapshot above the log": renamed,
        "a snapshot that was being written": named("00000000000000000900-0000000009.checkpoint.part"),
        "an empty quorum-state": lambda node: write_text(state(node), ""),
        "quorum-state of other voters": with_state("currentVoters", [{"voterId": 9}]),
        "quorum-state without data_version": without_version,
        "quorum-state of data_version 9": with_state("data_version", 9),
        "quorum-state of a later epoch": with_state("leaderEpoch", 900),
        "quorum-state of another leader": with_state("leaderId", 9),
        "quorum-state of another vote": with_state("votedId", 9),
        "quorum-state of another cluster": with_state("clusterId", OTHER_ID),
        "quorum-state that is no JSON": lambda node: write_text(state(node), "{"),
        "a quorum-state that was being written": named("quorum-state.tmp", "{"),
        "no quorum-state": lambda node: state(node).unlink(),
        "a flipped bit in the metadata log": lambda node: flip(next(quorum_of(node).glob("*.log")), 0.6),
        "zeros behind the metadata log": lambda node: append(node, bytes(200)),
        "the metadata log cut short": lambda node: os.truncate(log_of(node), log_of(node).stat().st_size * 2 // 3),
        "no metadata log": lambda node: shutil.rmtree(quorum_of(node)),
        "no segment of the metadata log": without_log,
        "a file of another name in the metadata log": named("abc.log"),
        "a malformed epoch file of the metadata log": named(EPOCH_FILE, "0\n2\n0 0\n"),
        "no epoch file of the metadata log": lambda node: (quorum_of(node) / EPOCH_FILE).unlink(),
        "an empty partition.metadata of the metadata log": named("partition.metadata"),
        "voters by the settings without it": _setting("controller.quorum.voters", lambda _: "9@127.0.0.1:1"),
    }


def log_of(node: "Node") -> Path:
    return max(quorum_of(node).glob("*.log"))


def history_of_node(node: "Node") -> MetadataHistory:
    (found,) = (read_metadata_log(files) for files in find_metadata_logs(find_inputs([node.home])))
    return found


def append(node: "Node", data: bytes) -> None:
    with log_of(node).open("ab") as file:
        file.write(data)


def recorded(name: str, fields: Mapping[str, object] | Callable[["Node"], Mapping[str, object]]) -> Edit:
    """Append a record to the metadata log."""

    def edit(node: "Node") -> None:

        history = history_of_node(node)
        record = metadata_record(name, dict(fields(node) if callable(fields) else fields))
        append(node, metadata_batch(history.end_offset, [record], epoch=history.last_epoch))

    return edit


def _of_metadata() -> Mapping[str, Edit]:
    def feature(name: str, level: int) -> Edit:
        return recorded("FeatureLevelRecord", {"name": name, "feature_level": level})

    def before_4(node: "Node") -> None:
        if parse_version(node.kafka) < (4, 0):
            raise ValueError  # the records that are there can't be written in that level
        feature("metadata.version", 5)(node)

    def setting(kind: int, resource: str, name: str, value: str) -> Edit:
        return recorded(
            "ConfigRecord", {"resource_type": kind, "resource_name": resource, "name": name, "value": value}
        )

    def unknown(node: "Node") -> None:

        history = history_of_node(node)
        append(node, metadata_batch(history.end_offset, [bytes([1, 99, 0, 0])], epoch=history.last_epoch))

    return {
        "metadata.version of a later release": feature("metadata.version", 60),
        "metadata.version of a release before": before_4,
        "a feature that nobody knows": feature("some.feature", 1),
        "transaction.version of a later release": feature("transaction.version", 9),
        "kraft.version of a later release": feature("kraft.version", 9),
        "group.version of a later release": feature("group.version", 9),
        "a record that nobody knows": unknown,
        "a topic whose segments are too small": setting(2, "orders0", "segment.bytes", "4000"),
        "a setting of the broker that is no number": setting(4, "1", "log.cleaner.threads", "many"),
        "the topic deleted": recorded("RemoveTopicRecord", lambda node: {"topic_id": topic_id_of(node, "orders0-0")}),
        "the partition of another broker": recorded(
            "PartitionChangeRecord",
            lambda node: {
                "partition_id": 0,
                "topic_id": topic_id_of(node, "orders0-0"),
                "replicas": (9,),
                "isr": (9,),
                "leader": 9,
            },
        ),
        "the broker unregistered": recorded(
            "UnregisterBrokerRecord", lambda node: {"broker_id": 1, "broker_epoch": epoch_of(node)}
        ),
    }


def topic_id_of(node: "Node", name: str) -> str:
    return next(
        at for at, topic in history_of_node(node).latest().topics.items() if topic.name == name.rpartition("-")[0]
    )


def epoch_of(node: "Node") -> int:

    found = history_of_node(node).latest().brokers[1].broker_epoch
    assert isinstance(found, int)
    return found


def place_of(node: "Node", name: str) -> Path:
    return next(one / name for one in node.log_dirs if (one / name).is_dir())


def _of_identity() -> Mapping[str, Edit]:
    def of_zookeeper(node: "Node") -> None:
        path = node.log_dirs[1] / _META
        path.write_text(path.read_text().replace("version=1", "version=0").replace("node.id", "broker.id"))

    def meta(key: str, value: str | None, *places: int) -> Edit:
        return lambda node: set_meta(node, key, value, places=places or (1,))

    def renumbered(node: "Node") -> None:
        set_meta(node, "node.id", "7", places=(0, 1))
        node.settings["node.id"] = 7
        if "controller" in node.roles:
            node.settings["controller.quorum.voters"] = f"7@127.0.0.1:{node.ports[1]}"

    def removed(name: str) -> Edit:
        def edit(node: "Node") -> None:
            for one in node.log_dirs:
                (one / name).unlink(missing_ok=True)

        return edit

    def marker(epoch: str, *places: int) -> Edit:
        def edit(node: "Node") -> None:
            for place in places:
                write_text(node.log_dirs[place] / ".kafka_cleanshutdown", epoch)

        return edit

    def bootstrap(change: Callable[[Path], None]) -> Edit:
        def edit(node: "Node") -> None:
            for one in node.log_dirs:
                if (one / "bootstrap.checkpoint").is_file():
                    change(one / "bootstrap.checkpoint")

        return edit

    return {
        "meta.properties of version 0 in one directory": of_zookeeper,
        "meta.properties of version 2": meta("version", "2", 0, 1),
        "no meta.properties in one directory": lambda node: (node.log_dirs[1] / _META).unlink(),
        "no meta.properties": removed(_META),
        "an empty meta.properties": lambda node: write_text(node.log_dirs[1] / _META, ""),
        "meta.properties without cluster.id": meta("cluster.id", None),
        "meta.properties without node.id": meta("node.id", None),
        "a node.id that is no number": meta("node.id", "one"),
        "another cluster.id in all directories": meta("cluster.id", OTHER_ID, 0, 1),
        "another node.id in all directories": meta("node.id", "7", 0, 1),
        "another node.id in all directories and the settings": renumbered,
        "another directory.id": meta("directory.id", "BBBBBBBBBBBBBBBBBBBBBB"),
        "no directory.id": meta("directory.id", None),
        "a reserved directory.id": meta("directory.id", "AAAAAAAAAAAAAAAAAAAAAQ"),
        "a directory.id that is none": meta("directory.id", "data-1"),
        "a marker of another epoch": marker('{"version":0,"brokerEpoch":9999}', 0, 1),
        "a marker of two epochs": marker('{"version":0,"brokerEpoch":9999}', 1),
        "an empty marker": marker("", 0, 1),
        "a marker in one directory": lambda node: (node.log_dirs[1] / ".kafka_cleanshutdown").unlink(),
        "no bootstrap.checkpoint": bootstrap(Path.unlink),
        "an empty bootstrap.checkpoint": bootstrap(lambda path: write_text(path, "")),
        "a damaged bootstrap.checkpoint": bootstrap(lambda path: flip(path, 0.5)),
        "roles of a broker alone": _setting("process.roles", lambda _: "broker"),
        "a migration from ZooKeeper by the settings": _setting("zookeeper.metadata.migration.enable", lambda _: "true"),
        "a role that nobody knows": _setting("process.roles", lambda _: "broker,observer"),
        "no listener of the controller": _setting("controller.listener.names", lambda _: ""),
        "a format before 0.11 by the settings": _setting("log.message.format.version", lambda _: "0.10.2"),
        "an older protocol by the settings": _setting("inter.broker.protocol.version", lambda _: "3.0"),
    }


def _of_disks() -> Mapping[str, Edit]:
    def places(node: "Node", name: str = "orders0-0") -> tuple[Path, Path]:
        mine = place_of(node, name)
        return mine, next(one for one in node.log_dirs if one != mine.parent)

    def future(node: "Node") -> None:
        mine, other = places(node)
        shutil.copytree(mine, other / f"{mine.name}.{'a' * 32}-future")

    def future_alone(node: "Node") -> None:
        mine, other = places(node)
        shutil.move(mine, other / f"{mine.name}.{'a' * 32}-future")

    def two_futures(node: "Node") -> None:
        future(node)
        mine, _ = places(node)
        shutil.copytree(mine, mine.with_name(f"{mine.name}.{'b' * 32}-future"))

    def promoted(node: "Node") -> None:
        mine, other = places(node)
        shutil.move(mine, other / mine.name)
        mine = mine.with_name(f"{mine.name}.{'a' * 32}-future")
        mine.mkdir()
        shutil.copy(other / "orders0-0" / "partition.metadata", mine)

    def moved(node: "Node") -> None:
        mine, other = places(node)
        shutil.move(mine, other / mine.name)

    def emptied(node: "Node") -> None:
        shutil.rmtree(node.log_dirs[1])
        node.log_dirs[1].mkdir()

    def formatted(node: "Node") -> None:
        kept = (node.log_dirs[1] / _META).read_text()
        emptied(node)
        write_text(node.log_dirs[1] / _META, kept)
        set_meta(node, "directory.id", "BBBBBBBBBBBBBBBBBBBBBB")

    def cleared(node: "Node") -> None:
        kept = (node.log_dirs[1] / _META).read_text()
        emptied(node)
        write_text(node.log_dirs[1] / _META, kept)

    def swapped(node: "Node") -> None:
        one, other = node.log_dirs
        one.rename(node.home / "aside")
        other.rename(one)
        (node.home / "aside").rename(other)

    def exchanged(node: "Node") -> None:
        one, other = place_of(node, "orders0-0"), place_of(node, "orders1-0")
        one.rename(node.home / "aside")
        other.rename(one)
        (node.home / "aside").rename(other)

    def elsewhere(node: "Node") -> None:
        node.settings["metadata.log.dir"] = node.log_dirs[1]

    def moved_metadata(node: "Node") -> None:
        shutil.move(quorum_of(node), node.log_dirs[1] / "__cluster_metadata-0")
        elsewhere(node)

    def named(node: "Node", *paths: Path) -> None:
        node.settings["log.dirs"] = ",".join(map(str, paths))

    def copied_metadata(node: "Node") -> None:
        shutil.copytree(quorum_of(node), node.log_dirs[1] / "__cluster_metadata-0")

    def further(node: "Node") -> None:
        named(node, *node.log_dirs, node.home / "data-2")
        (node.home / "data-2").mkdir()

    def as_file(node: "Node") -> None:
        shutil.rmtree(node.log_dirs[1])
        write_text(node.log_dirs[1], "")

    def linked(node: "Node") -> None:
        mine, _ = places(node)
        shutil.move(mine, node.home / "elsewhere")
        mine.symlink_to(node.home / "elsewhere")

    def ended(ending: str) -> Edit:
        def edit(node: "Node") -> None:
            mine, _ = places(node)
            mine.rename(mine.with_name(f"{mine.name}.{'a' * 32}-{ending}"))

        return edit

    def copied_stray(node: "Node") -> None:
        mine, other = places(node)
        shutil.copytree(mine, other / f"{mine.name}.{'a' * 32}-stray")

    def of_nobody(node: "Node") -> None:
        mine, other = places(node)
        shutil.copytree(mine, other / "other-0")

    def of_nobody_with_id(node: "Node") -> None:
        of_nobody(node)
        write_text(place_of(node, "other-0") / "partition.metadata", f"version: 0\ntopic_id: {OTHER_ID}")

    def shorter(node: "Node") -> None:
        """What a snapshot of the disk from before holds: the first batch of each log, and no checkpoints."""
        for path in node.log_dirs[1].glob("orders*/*.log"):
            os.truncate(path, path.stat().st_size // 3)

    return {
        "a future log": future,
        "a future log alone": future_alone,
        "two future logs": two_futures,
        "an empty future log in the assigned directory": promoted,
        "a log moved to the other disk": moved,
        "an empty disk": emptied,
        "a disk formatted anew": formatted,
        "a disk that lost its logs": cleared,
        "a disk that is not there": lambda node: shutil.rmtree(node.log_dirs[1]),
        "a file in place of a disk": as_file,
        "swapped disks": swapped,
        "swapped names of two logs": exchanged,
        "metadata.log.dir elsewhere": elsewhere,
        "the metadata log moved with metadata.log.dir": moved_metadata,
        "a metadata log in both directories": copied_metadata,
        "a log directory left out of the settings": lambda node: named(node, node.log_dirs[0]),
        "a further log directory that is not there": lambda node: named(node, *node.log_dirs, node.home / "data-2"),
        "a further log directory that is empty": further,
        "a log directory named twice": lambda node: named(node, *node.log_dirs, node.log_dirs[1]),
        "a linked log": linked,
        "a log that was being deleted": ended("delete"),
        "a log that is a stray": ended("stray"),
        "a stray beside its log": copied_stray,
        "a log of no topic": of_nobody,
        "a log of a topic that is gone": of_nobody_with_id,
        "a disk with shorter logs": shorter,
        "malformed log starts": lambda node: write_text(
            node.log_dirs[1] / "log-start-offset-checkpoint", "0\n3\norders0 0 5\n"
        ),
        "malformed recovery points of the metadata disk": lambda node: write_text(
            node.log_dirs[0] / "recovery-point-offset-checkpoint", "0\n3\norders0 0 5\n"
        ),
    }


_LOG = f"{0:020d}.log"


def _without_marker(node: "Node") -> None:
    for one in node.log_dirs:
        (one / ".kafka_cleanshutdown").unlink()


def _unclean(edit: Edit) -> Edit:
    def both(node: "Node") -> None:
        edit(node)
        _without_marker(node)

    return both


def _of_logs() -> Mapping[str, Edit]:
    def at(node: "Node", name: str = "orders0-0") -> Path:
        return place_of(node, name)

    def filed(name: str, data: bytes) -> Edit:
        def edit(node: "Node") -> None:
            (at(node) / name).write_bytes(data)

        return edit

    def flipped_last(node: "Node") -> None:
        flip(at(node) / _LOG, 0.95)

    def half_a_batch(node: "Node") -> None:
        data = (at(node) / _LOG).read_bytes()
        (at(node) / _LOG).write_bytes(data + data[:100])

    def copied_to(base: int) -> Edit:
        def edit(node: "Node") -> None:
            shutil.copy(at(node) / _LOG, at(node) / f"{base:020d}.log")

        return edit

    def copied_as(name: str) -> Edit:
        def edit(node: "Node") -> None:
            shutil.copy(at(node) / _LOG, at(node) / name)

        return edit

    def swapped_in(node: "Node") -> None:
        (at(node) / _LOG).rename(at(node) / f"{_LOG}.swap")

    def cleaned_away(node: "Node") -> None:
        (at(node) / _LOG).rename(at(node) / f"{_LOG}.deleted")

    def as_file(name: str) -> Edit:
        def edit(node: "Node") -> None:
            mine = at(node, name)
            shutil.rmtree(mine)
            write_text(mine, "")

        return edit

    def emptied(node: "Node") -> None:
        mine = at(node)
        shutil.rmtree(mine)
        mine.mkdir()

    def only_id(node: "Node") -> None:
        for one in at(node).iterdir():
            if one.name != "partition.metadata":
                one.unlink()

    def folder(name: str) -> Edit:
        return lambda node: (node.log_dirs[1] / name).mkdir()

    def topic_id(value: "Callable[[Node], str]") -> Edit:
        return lambda node: write_text(at(node) / "partition.metadata", f"version: 0\ntopic_id: {value(node)}")

    def of_other(node: "Node") -> str:
        text = (at(node, "orders1-0") / "partition.metadata").read_text()
        return text.partition("topic_id: ")[2].strip()

    def positions(node: "Node") -> None:
        (at(node) / f"{0:020d}.timeindex").write_bytes(bytes(24))

    def remade(node: "Node") -> None:
        """What a copy without ids leaves: the log in a directory of a name with a later partition."""
        shutil.copytree(at(node), at(node).with_name("orders0-1"))

    def epochs(text: str) -> Edit:
        return lambda node: write_text(at(node) / EPOCH_FILE, text)

    return {
        "an offset index of odd length": filed(f"{0:020d}.index", bytes(13)),
        "an offset index of odd length, without marker": _unclean(filed(f"{0:020d}.index", bytes(13))),
        "an offset index of noise": filed(f"{0:020d}.index", bytes(range(1, 81))),
        "an offset index of noise, without marker": _unclean(filed(f"{0:020d}.index", bytes(range(1, 81)))),
        "a time index of zeros": positions,
        "a flipped bit in the last batch": flipped_last,
        "a flipped bit in the last batch, without marker": _unclean(flipped_last),
        "half a batch at the end": half_a_batch,
        "half a batch at the end, without marker": _unclean(half_a_batch),
        "an empty segment": lambda node: os.truncate(at(node) / _LOG, 0),
        "an empty segment, without marker": _unclean(lambda node: os.truncate(at(node) / _LOG, 0)),
        "a segment twice, the second above the end": copied_to(500),
        "a segment twice, the second within": copied_to(3),
        "a segment twice, the second within, without marker": _unclean(copied_to(3)),
        "an unpadded name of a segment": copied_as("30.log"),
        "a copy of a segment with an ending": copied_as(f"{_LOG}.bak"),
        "a segment of a name that is no number": copied_as("copy.log"),
        "a segment to be swapped in": swapped_in,
        "a segment to be swapped in, without marker": _unclean(swapped_in),
        "a cleaned segment beside its log": copied_as(f"{_LOG}.cleaned"),
        "a segment to be swapped in beside its log": copied_as(f"{_LOG}.swap"),
        "a segment that was being deleted": cleaned_away,
        "no files but partition.metadata": only_id,
        "no files of a log": emptied,
        "no files of a log, without marker": _unclean(emptied),
        "a file in place of a log": as_file("orders0-0"),
        "a file in place of a log of the other directory": as_file("orders1-0"),
        "a snapshot of producers of noise": filed(f"{9:020d}.snapshot", bytes(range(80))),
        "an empty snapshot of producers": filed(f"{9:020d}.snapshot", b""),
        "the topic id of another topic": topic_id(of_other),
        "the topic id of no topic": topic_id(lambda _: OTHER_ID),
        "a topic id of zeros": topic_id(lambda _: "AAAAAAAAAAAAAAAAAAAAAA"),
        "a topic id that is none": topic_id(lambda _: "orders"),
        "a partition beyond the count": remade,
        "a leader epoch of 2147483647": epochs("0\n2\n0 0\n2147483647 3\n"),
        "a leader epoch that is too large": epochs("0\n1\n2147483648 0\n"),
        "an epoch file of version 1": epochs("1\n1\n0 0\n"),
        "an epoch above the end of the log": epochs("0\n2\n0 0\n7 5000\n"),
        "an epoch file of zeros": filed(EPOCH_FILE, bytes(20)),
        "an epoch file that was being written": filed(f"{EPOCH_FILE}.tmp", b"0\n1\n"),
        "a folder with no number": folder("backup"),
        "a folder of a file system's snapshots": folder(".snapshot"),
        "a folder of remote indexes": folder("remote-log-index-cache"),
        "a folder with an ending": folder("orders0-0.bak"),
        "an empty folder of a partition": folder("other-3"),
        "an empty folder to be deleted": folder(f"other-3.{'c' * 32}-delete"),
        "an empty folder of a future log": folder(f"orders0-0.{'c' * 32}-future"),
    }


def _of_checkpoints() -> Mapping[str, Edit]:
    def both(name: str, text: str) -> Edit:
        def edit(node: "Node") -> None:
            for one in node.log_dirs:
                write_text(one / name, text)

        return edit

    def without_points(node: "Node") -> None:
        for one in node.log_dirs:
            (one / points).unlink()

    points, starts, marks = (
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    )
    zeros = "\0" * 40
    return {
        "empty recovery points": both(points, ""),
        "recovery points of zeros": lambda node: write_text(node.log_dirs[1] / points, zeros),
        "recovery points of version 9": lambda node: write_text(node.log_dirs[1] / points, "9\n0\n"),
        "recovery points that are no numbers": lambda node: write_text(
            node.log_dirs[1] / points, "0\n1\norders0 0 many\n"
        ),
        "recovery points above the ends": both(points, "0\n2\norders0 0 900\norders1 0 900\n"),
        "recovery points above the ends, without marker": _unclean(
            both(points, "0\n2\norders0 0 900\norders1 0 900\n")
        ),
        "no recovery points, without marker": _unclean(without_points),
        "recovery points that were being written": both(f"{points}.tmp", "0\n9"),
        "log starts within the logs": both(starts, "0\n2\norders0 0 5\norders1 0 4\n"),
        "log starts above the ends": both(starts, "0\n2\norders0 0 900\norders1 0 900\n"),
        "log starts above the ends, without marker": _unclean(both(starts, "0\n2\norders0 0 900\norders1 0 900\n")),
        "negative log starts": both(starts, "0\n1\norders0 0 -5\n"),
        "empty high watermarks": both(marks, ""),
        "malformed high watermarks": both(marks, "0\n3\norders0 0 5\n"),
        "malformed high watermarks of one directory": lambda node: write_text(
            node.log_dirs[1] / marks, "0\n3\norders0 0 5\n"
        ),
        "high watermarks of version 9": lambda node: write_text(node.log_dirs[1] / marks, "9\n0\n"),
        "high watermarks that are no numbers": lambda node: write_text(
            node.log_dirs[1] / marks, "0\n1\norders0 0 many\n"
        ),
        "high watermarks above the ends": both(marks, "0\n2\norders0 0 900\norders1 0 900\n"),
        "high watermarks of zero": both(marks, "0\n2\norders0 0 0\norders1 0 0\n"),
        "malformed positions of the cleaner": both("cleaner-offset-checkpoint", "0\n3\norders0 0 5\n"),
        "an empty meta.properties that was being written": both("meta.properties.tmp", ""),
        "a marker of another version": both(".kafka_cleanshutdown", '{"version":7,"brokerEpoch":1}'),
        "a marker that is no JSON": both(".kafka_cleanshutdown", "clean"),
        "an empty high watermark file that was being written": both(f"{marks}.tmp", ""),
    }


def _of_settings() -> Mapping[str, Edit]:
    def exchanged(node: "Node") -> str:
        return ",".join(map(str, reversed(node.log_dirs)))

    given: Mapping[str, tuple[str, Callable[[Node], object]]] = {
        "log directories in the other order": ("log.dirs", exchanged),
        "log directories with blanks and slashes": (
            "log.dirs",
            lambda node: " , ".join(f"{one}/" for one in node.log_dirs),
        ),
        "no log directory": ("log.dirs", lambda _: ""),
        "no thread that recovers": ("num.recovery.threads.per.data.dir", lambda _: 0),
        "segments that are too small": ("log.segment.bytes", lambda _: 100_000),
        "a size that is no number": ("log.retention.bytes", lambda _: "1G"),
        "a policy that nobody knows": ("log.cleanup.policy", lambda _: "compress"),
        "a setting that nobody knows": ("log.message.format.wish", lambda _: "3"),
        "an older protocol that is no longer read": ("inter.broker.protocol.version", lambda _: "0.10.0"),
        "a protocol of a later release": ("inter.broker.protocol.version", lambda _: "9.9"),
        "a broker id beside it": ("broker.id", lambda _: 7),
        "another node id": ("node.id", lambda _: 7),
        "roles of a controller alone": ("process.roles", lambda _: "controller"),
        "no voters": ("controller.quorum.voters", lambda _: ""),
        "voters that are none": ("controller.quorum.voters", lambda _: "one@localhost"),
        "ZooKeeper beside the roles": ("zookeeper.connect", lambda node: f"127.0.0.1:{node.ports[1]}"),
        "a listener that nobody maps": ("listeners", lambda node: f"INSIDE://127.0.0.1:{node.ports[0]}"),
        "an advertised address of all": ("advertised.listeners", lambda node: f"PLAINTEXT://0.0.0.0:{node.ports[0]}"),
    }
    return {name: _setting(key, value) for name, (key, value) in given.items()}
