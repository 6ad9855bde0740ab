"""Edits of the small files of a node without ZooKeeper: syntax that Java reads otherwise than it looks, what backups and desktops leave, and markers beside logs that they don't fit."""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.protocol.loading.disk import EPOCH_FILE
from tests.oracle.loading.node_edits import (
    OTHER_ID,
    flip,
    history_of_node,
    log_of,
    newest_snapshot,
    place_of,
    quorum_of,
    set_meta,
    topic_id_of,
    write_text,
)

if TYPE_CHECKING:
    from tests.oracle.loading.brokers import Node

Edit = Callable[["Node"], object]
_LOG = f"{0:020d}.log"
_META, _MARKER = "meta.properties", ".kafka_cleanshutdown"
_CLEANED = "cleaner-offset-checkpoint"


def small_edits() -> Mapping[str, Edit]:
    """Edits by name."""
    return {**_of_properties(), **_of_topic_ids(), **_of_markers(), **_of_checkpoints(), **_of_quorum(), **_of_names()}


def _each(paths: Callable[["Node"], Iterable[Path]], change: Callable[[Path], object] = Path.unlink) -> Edit:
    """Change each of some files, or remove it."""

    def edit(node: "Node") -> None:
        for path in list(paths(node)):
            change(path)

    return edit


def _read_only(path: Path) -> None:
    path.chmod(0o444)


def _all(*edits: Edit) -> Edit:
    def edit(node: "Node") -> None:
        for one in edits:
            one(node)

    return edit


def _of_properties() -> Mapping[str, Edit]:
    def text(change: Callable[[str], str], *places: int) -> Edit:
        def edit(node: "Node") -> None:
            for place in places or (1,):
                path = node.log_dirs[place] / _META
                path.write_bytes(change(path.read_text()).encode("utf-8"))

        return edit

    def replaced(old: str, new: str, *places: int) -> Edit:
        return text(lambda found: found.replace(old, new), *places)

    def meta(key: str, value: str | None, *places: int) -> Edit:
        return lambda node: set_meta(node, key, value, places=places or (1,))

    def version_0(*, keeps_node_id: bool) -> Edit:
        to = "node.id=1\nbroker.id=1" if keeps_node_id else "broker.id=1"
        return text(lambda old: old.replace("version=1", "version=0").replace("node.id=1", to), 0, 1)

    def beside(name: str, data: str | None = None) -> Edit:
        """Leave another file of the identity, a copy where it has no text of its own."""
        return lambda node: write_text(
            node.log_dirs[1] / name, (node.log_dirs[1] / _META).read_text() if data is None else data
        )

    def other_disk(node: "Node") -> None:
        first, second = (one / _META for one in node.log_dirs)
        kept = first.read_text()
        first.write_text(second.read_text())
        second.write_text(kept)

    return {
        "meta.properties with a comment": text(lambda old: f"#node.id=7\n! cluster.id=x\n{old}"),
        "meta.properties with a line that goes on": replaced("node.id=1", "node.id=\\\n   1"),
        "meta.properties with a key that goes on": replaced("node.id=1", "node.\\\n   id=1"),
        "meta.properties with a last line that goes on": text(lambda old: old.rstrip("\n") + "\\"),
        "meta.properties in which a comment goes on": replaced("node.id=1", "# a comment\\\nnode.id=1"),
        "meta.properties with blanks before keys": text(lambda old: "".join(f" \t\f{line}\n" for line in old.split())),
        "meta.properties with a tab for an equals sign": replaced("node.id=1", "node.id\t1"),
        "meta.properties with two equals signs": replaced("node.id=1", "node.id==1"),
        "meta.properties with line ends of a Mac": replaced("\n", "\r"),
        "meta.properties with a blank behind the version": replaced("version=1", "version=1 "),
        "meta.properties of version 01": replaced("version=1", "version=01"),
        "meta.properties of version 1.0": replaced("version=1", "version=1.0"),
        "meta.properties of a negative version": replaced("version=1", "version=-1"),
        "meta.properties of a version that is too large": replaced("version=1", "version=4294967297"),
        "meta.properties of version 1 with broker.id alone": replaced("node.id=1", "broker.id=1", 0, 1),
        "meta.properties of version 0 in all directories": version_0(keeps_node_id=False),
        "meta.properties of version 0 with both ids": version_0(keeps_node_id=True),
        "meta.properties with an id in Arabic digits": replaced("node.id=1", "node.id=\u0661"),
        "meta.properties with an id of Arabic digits by escapes": replaced("node.id=1", "node.id=\\u0661"),
        "meta.properties with an empty id": replaced("node.id=1", "node.id="),
        "meta.properties with a blank behind cluster.id": text(
            lambda old: "".join(f"{one}{' ' if 'cluster' in one else ''}\n" for one in old.splitlines())
        ),
        "meta.properties with a padded cluster.id": text(
            lambda old: "".join(f"{one}{'==' if 'cluster' in one else ''}\n" for one in old.splitlines())
        ),
        "meta.properties with an empty cluster.id in all directories": meta("cluster.id", "", 0, 1),
        "meta.properties without cluster.id in all directories": meta("cluster.id", None, 0, 1),
        "a cluster.id that is no id in all directories": meta("cluster.id", "my cluster", 0, 1),
        "a padded directory.id": text(
            lambda old: "".join(f"{one}{'==' if 'directory' in one else ''}\n" for one in old.splitlines())
        ),
        "a directory.id of zeros": meta("directory.id", "A" * 22),
        "the directory.id of lost directories": meta("directory.id", "A" * 21 + "g"),
        "the last reserved directory.id": meta("directory.id", "A" * 20 + "Yw"),
        "the first directory.id that is not reserved": meta("directory.id", "A" * 20 + "ZA"),
        "a directory.id with a dash first": meta("directory.id", "-" + "B" * 20 + "A"),
        "exchanged meta.properties": other_disk,
        "no directory.id in the metadata disk, another in the other": _all(
            meta("directory.id", None, 0), meta("directory.id", "B" * 21 + "A")
        ),
        "meta.properties that was being written beside it": beside(f"{_META}.tmp"),
        "meta.properties that was being written, of another node": beside(f"{_META}.tmp", "version=1\nnode.id=7\n"),
        "a backup of meta.properties": beside(f"{_META}.bak"),
        "no meta.properties but one that was being written": lambda node: (node.log_dirs[1] / _META).rename(
            node.log_dirs[1] / f"{_META}.tmp"
        ),
        "no meta.properties in the metadata disk": lambda node: (node.log_dirs[0] / _META).unlink(),
        "an empty meta.properties in the metadata disk": lambda node: write_text(node.log_dirs[0] / _META, ""),
        "meta.properties in UTF-16": lambda node: (node.log_dirs[1] / _META).write_bytes(
            (node.log_dirs[1] / _META).read_text().encode("utf-16")
        ),
        "meta.properties with a byte order mark in the metadata disk": text(lambda old: f"\ufeff{old}", 0),
        "meta.properties with the cluster.id of each directory": _all(
            meta("cluster.id", OTHER_ID, 0), meta("cluster.id", "B" * 21 + "A", 1)
        ),
    }


def _of_topic_ids() -> Mapping[str, Edit]:
    def metadata(text: Callable[["Node", str], str], *names: str) -> Edit:
        def edit(node: "Node") -> None:
            for name in names or ("orders0-0",):
                path = place_of(node, name) / "partition.metadata"
                path.write_bytes(text(node, path.read_text().partition("topic_id: ")[2].strip()).encode("utf-8"))

        return edit

    def plain(text: str, *names: str) -> Edit:
        return metadata(lambda _, own: text.replace("ID", own), *names)

    def of_others(*names: str) -> Edit:
        return metadata(lambda node, _: f"version: 0\ntopic_id: {topic_id_of(node, 'orders1-0')}", *names)

    def without(name: str) -> Edit:
        return lambda node: (place_of(node, name) / "partition.metadata").unlink()

    def all_without(node: "Node") -> None:
        for one in node.log_dirs:
            for path in one.glob("orders*/partition.metadata"):
                path.unlink()

    every = tuple(f"orders{at}-0" for at in range(6))
    return {
        "partition.metadata with a line end": plain("version: 0\ntopic_id: ID\n"),
        "partition.metadata with noise behind it": plain("version: 0\ntopic_id: ID\n\0\0noise"),
        "partition.metadata with zeros behind the id": plain("version: 0\ntopic_id: ID\0\0"),
        "partition.metadata with an empty id": plain("version: 0\ntopic_id: "),
        "partition.metadata with half an id": plain("version: 0\ntopic_id: AAAA"),
        "partition.metadata of a version alone": plain("version: 0"),
        "partition.metadata of half a version": plain("version: "),
        "partition.metadata with a version twice": plain("version: 0\nversion: 0\ntopic_id: ID"),
        "partition.metadata with old line ends of a Mac": plain("version: 0\rtopic_id: ID"),
        "partition.metadata with tabs": plain("version:\t0\ntopic_id:\tID"),
        "partition.metadata with blanks before": plain("  version: 0\n  topic_id: ID"),
        "partition.metadata of version 1 alone of two": plain("version: 1\ntopic_id: ID", "orders0-0", "orders1-0"),
        "partition.metadata with a comment": plain("# mine\nversion: 0\ntopic_id: ID"),
        "partition.metadata with no topic's id, a log of it empty": _all(
            plain(f"version: 0\ntopic_id: {OTHER_ID}"),
            lambda node: os.truncate(place_of(node, "orders0-0") / _LOG, 0),
        ),
        "the topic ids of two logs exchanged": _all(
            metadata(lambda node, _: f"version: 0\ntopic_id: {topic_id_of(node, 'orders0-0')}", "orders1-0"),
            of_others("orders0-0"),
        ),
        "no partition.metadata of any topic of clients": all_without,
        "an empty partition.metadata of two logs": plain("", "orders0-0", "orders1-0"),
        "the topic ids of all logs are of no topic": plain(f"version: 0\ntopic_id: {OTHER_ID}", *every),
        "no partition.metadata but one that was being written": lambda node: (
            place_of(node, "orders0-0") / "partition.metadata"
        ).rename(place_of(node, "orders0-0") / "partition.metadata.tmp"),
        "no partition.metadata of a log with malformed epochs": _all(
            without("orders0-0"), lambda node: write_text(place_of(node, "orders0-0") / EPOCH_FILE, "0\n2\n0 0\n")
        ),
    }


def _of_markers() -> Mapping[str, Edit]:
    def marker(text: str, *places: int) -> Edit:
        def edit(node: "Node") -> None:
            for place in places or (0, 1):
                write_text(node.log_dirs[place] / _MARKER, text)

        return edit

    def unmarked(*places: int) -> Edit:
        def edit(node: "Node") -> None:
            for place in places or (0, 1):
                (node.log_dirs[place] / _MARKER).unlink()

        return edit

    def cut(by: int) -> Edit:
        return lambda node: os.truncate(
            place_of(node, "orders0-0") / _LOG, (place_of(node, "orders0-0") / _LOG).stat().st_size - by
        )

    def gone(pattern: str) -> Edit:
        def edit(node: "Node") -> None:
            for path in place_of(node, "orders0-0").glob(pattern):
                path.unlink()

        return edit

    def changed(name: str, data: bytes) -> Edit:
        return lambda node: (place_of(node, "orders0-0") / name).write_bytes(data)

    return {
        "a marker with a field that nobody knows": marker('{"version":0,"brokerEpoch":7,"more":1}'),
        "a marker with an epoch as a text": marker('{"version":0,"brokerEpoch":"7"}'),
        "a marker of one blank": marker(" "),
        "a marker cut short": marker('{"version":0,"broker'),
        "an empty marker in the metadata disk": marker("", 0),
        "an empty marker in the other disk": marker("", 1),
        "an empty marker in one disk, none in the other": _all(marker("", 0), unmarked(1)),
        "a marker in capitals": lambda node: (node.log_dirs[1] / _MARKER).rename(node.log_dirs[1] / _MARKER.upper()),
        "a marker within a log": _all(
            unmarked(), lambda node: write_text(place_of(node, "orders0-0") / _MARKER, '{"version":0,"brokerEpoch":7}')
        ),
        "a marker beside a batch cut short": cut(30),
        "a marker beside a batch cut within its header": cut(270),
        "a marker beside a log cut to nothing": lambda node: os.truncate(place_of(node, "orders0-0") / _LOG, 0),
        "a marker beside a log cut to ten bytes": lambda node: os.truncate(place_of(node, "orders0-0") / _LOG, 10),
        "a marker beside a log without indexes": gone("*index"),
        "a marker beside a log without a time index": gone("*.timeindex"),
        "a marker beside a log without its segment": gone("*.log"),
        "a marker beside a log without its segment and indexes": _all(gone("*.log"), gone("*index")),
        "a marker beside a log of noise": changed(_LOG, bytes(range(256)) * 3),
        "a marker beside a flipped bit, an index of zeros": _all(
            lambda node: flip(place_of(node, "orders0-0") / _LOG, 0.3), changed(f"{0:020d}.index", bytes(16))
        ),
        "a marker beside a batch cut short, no snapshot of producers": _all(cut(30), gone("*.snapshot")),
        "a marker in the metadata disk alone, batches cut short in both": _all(
            unmarked(1),
            *[
                lambda node, name=name: os.truncate(
                    place_of(node, name) / _LOG, (place_of(node, name) / _LOG).stat().st_size - 30
                )
                for name in ("orders0-0", "orders1-0", "orders2-0")
            ],
        ),
        "all files of a log are read-only": _each(lambda node: place_of(node, "orders0-0").iterdir(), _read_only),
    }


def _of_checkpoints() -> Mapping[str, Edit]:
    def cleaned(text: str, *places: int) -> Edit:
        def edit(node: "Node") -> None:
            for place in places or (0, 1):
                (node.log_dirs[place] / _CLEANED).write_bytes(text.encode("latin-1"))

        return edit

    def folder(node: "Node") -> None:
        (node.log_dirs[1] / _CLEANED).unlink(missing_ok=True)
        (node.log_dirs[1] / _CLEANED).mkdir()

    def dangling(node: "Node") -> None:
        (node.log_dirs[1] / _CLEANED).unlink(missing_ok=True)
        (node.log_dirs[1] / _CLEANED).symlink_to(node.home / "gone")

    def without(*names: str) -> Edit:
        def edit(node: "Node") -> None:
            for one in node.log_dirs:
                for name in names:
                    (one / f"{name}-checkpoint").unlink(missing_ok=True)

        return edit

    every = ("cleaner-offset", "log-start-offset", "recovery-point-offset", "replication-offset")

    def exchanged(node: "Node") -> None:
        """Leave each disk with the checkpoints of the other."""
        for name in every[1:]:
            first, second = (one / f"{name}-checkpoint" for one in node.log_dirs)
            kept = first.read_bytes()
            first.write_bytes(second.read_bytes())
            second.write_bytes(kept)

    def starts_of_marks(node: "Node") -> None:
        """Leave log starts that are the high watermarks: all that the logs hold lies below."""
        for one in node.log_dirs:
            shutil.copy(one / "replication-offset-checkpoint", one / "log-start-offset-checkpoint")

    return {
        "positions of the cleaner of version 1": cleaned("1\n1\norders0 0 5\n"),
        "positions of the cleaner of noise": cleaned("\x00\x01\x02\xff" * 20),
        "positions of the cleaner that are empty": cleaned(""),
        "positions of the cleaner of a negative offset": cleaned("0\n1\n__consumer_offsets 0 -5\n"),
        "positions of the cleaner beyond the ends": cleaned("0\n2\n__consumer_offsets 0 900\norders0 0 900\n"),
        "positions of the cleaner of partitions that are not there": cleaned("0\n1\nnobody 3 5\n"),
        "positions of the cleaner of a partition twice": cleaned("0\n2\norders0 0 1\norders0 0 2\n"),
        "positions of the cleaner of more rows than the count": cleaned("0\n1\norders0 0 1\norders1 0 2\n"),
        "positions of the cleaner that are no numbers": cleaned("0\n1\norders0 0 x\n", 1),
        "positions of the cleaner cut within a row in the metadata disk": cleaned("0\n2\norders0 0 1\norders1", 0),
        "a folder in place of positions of the cleaner": folder,
        "a link to nothing in place of positions of the cleaner": dangling,
        "no checkpoints": without(*every),
        "no log starts": without("log-start-offset"),
        "no high watermarks": without("replication-offset"),
        "the checkpoints of the disks exchanged": exchanged,
        "log starts that are the high watermarks": starts_of_marks,
        "no checkpoints, without marker": _all(
            without(*every), _each(lambda node: (one / _MARKER for one in node.log_dirs))
        ),
        "the checkpoints of the disks exchanged, without marker": _all(
            exchanged, _each(lambda node: (one / _MARKER for one in node.log_dirs))
        ),
    }


def _of_quorum() -> Mapping[str, Edit]:
    def state(change: Callable[["Node", dict[str, object]], object]) -> Edit:
        def edit(node: "Node") -> None:
            path = quorum_of(node) / "quorum-state"
            found = change(node, json.loads(path.read_text()))
            path.write_text(found if isinstance(found, str) else json.dumps(found))

        return edit

    def fields(**more: object) -> Edit:
        return state(lambda _, old: {**old, **more})

    def of_quorum(change: Callable[[Path], object]) -> Edit:
        return lambda node: change(quorum_of(node))

    def cut(by: int) -> Edit:
        return lambda node: os.truncate(log_of(node), log_of(node).stat().st_size - by)

    def epochs(text: Callable[[int, int], str]) -> Edit:
        """Write the epoch file of the metadata log, from the end of the log and its last epoch."""

        def edit(node: "Node") -> None:
            history = history_of_node(node)
            assert isinstance(history.last_epoch, int)
            write_text(quorum_of(node) / EPOCH_FILE, text(history.end_offset, history.last_epoch))

        return edit

    def renamed(offset: int, epoch: int) -> Edit:
        """Give the newest snapshot another end or epoch than it was written with."""

        def edit(node: "Node") -> None:
            end, _, at = newest_snapshot(node).stem.partition("-")
            name = f"{int(end) + offset:020d}-{int(at) + epoch:010d}.checkpoint"
            newest_snapshot(node).rename(quorum_of(node) / name)

        return edit

    def left(count: int) -> Edit:
        """Leave the oldest snapshots alone."""

        def edit(node: "Node") -> None:
            for path in sorted(quorum_of(node).glob("*.checkpoint"))[count:]:
                path.unlink()

        return edit

    def unfinished(node: "Node") -> None:
        newest_snapshot(node).rename(f"{newest_snapshot(node)}.part")

    def no_log(node: "Node") -> None:
        for path in quorum_of(node).glob("*.log"):
            path.unlink()

    def later_log(node: "Node") -> None:
        log_of(node).rename(quorum_of(node) / f"{history_of_node(node).end_offset:020d}.log")

    def reset(name: str) -> Edit:
        return of_quorum(lambda place: (place / name).write_bytes(b""))

    def noise(name: str) -> Edit:
        return of_quorum(lambda place: (place / name).write_bytes(bytes(range(1, 251)) * 2))

    places = {"offset": 3, "length": 10, "magic": 16, "checksum": 18, "attributes": 22, "records": 70}

    def snapshot_bit(at: int) -> Edit:
        def edit(node: "Node") -> None:
            path = newest_snapshot(node)
            data = bytearray(path.read_bytes())
            data[at] ^= 4
            path.write_bytes(data)

        return edit

    def log_bit(at: int) -> Edit:
        """Flip a bit in the first batch of the metadata log."""

        def edit(node: "Node") -> None:
            data = bytearray(log_of(node).read_bytes())
            data[at] ^= 4
            log_of(node).write_bytes(data)

        return edit

    return {
        "quorum-state of epoch 0": fields(leaderEpoch=0),
        "quorum-state of epoch 0 without a leader": fields(leaderEpoch=0, leaderId=-1),
        "quorum-state of a leader and a vote": fields(leaderId=1, votedId=1),
        "quorum-state of a vote for itself": fields(leaderId=-1, votedId=1),
        "quorum-state of a vote for another": fields(leaderId=-1, votedId=9),
        "quorum-state of the greatest epoch": fields(leaderEpoch=2147483647),
        "quorum-state of an unknown leader of the greatest epoch": fields(leaderEpoch=2147483647, leaderId=-1),
        "quorum-state of a negative leader": fields(leaderId=-5),
        "quorum-state of no leader and no vote by null": fields(leaderId=None, votedId=None),
        "quorum-state of a cluster that is null": fields(clusterId=None),
        "quorum-state of voters that are null": fields(currentVoters=None),
        "quorum-state of a voter of no id": fields(currentVoters=[{}]),
        "quorum-state of a voter twice": fields(currentVoters=[{"voterId": 1}, {"voterId": 1}]),
        "quorum-state with its fields in another order": state(lambda _, old: dict(reversed(old.items()))),
        "quorum-state on lines": state(lambda _, old: json.dumps(old, indent=2)),
        "quorum-state with a line end": state(lambda _, old: json.dumps(old) + "\n"),
        "quorum-state with an empty line before": state(lambda _, old: "\n" + json.dumps(old)),
        "quorum-state with a byte order mark": state(lambda _, old: "\ufeff" + json.dumps(old)),
        "quorum-state with a comment": state(lambda _, old: json.dumps(old)[:-1] + " /* x */}"),
        "quorum-state with a comma at the end": state(lambda _, old: json.dumps(old)[:-1] + ",}"),
        "quorum-state with single quotes": state(lambda _, old: json.dumps(old).replace('"', "'")),
        "quorum-state with an epoch twice": state(lambda _, old: json.dumps(old)[:-1] + ',"leaderEpoch":3}'),
        "quorum-state cut short": state(lambda _, old: json.dumps(old)[:-9]),
        "quorum-state of zeros": state(lambda _, old: "\0" * len(json.dumps(old))),
        "quorum-state with zeros behind": state(lambda _, old: json.dumps(old) + "\0" * 8),
        "quorum-state that was being written alone": of_quorum(
            lambda place: (place / "quorum-state").rename(place / "quorum-state.tmp")
        ),
        "quorum-state of an epoch beyond, the log cut short": _all(fields(leaderEpoch=50), cut(500)),
        "the metadata log cut within its last batch": cut(1),
        "the metadata log cut within the header of its last batch": cut(60),
        "the metadata log cut to its first bytes": lambda node: os.truncate(log_of(node), 5),
        "half a header behind the metadata log": lambda node: log_of(node).write_bytes(
            log_of(node).read_bytes() + log_of(node).read_bytes()[:30]
        ),
        **{
            f"a flipped bit in the first batch's {name} of the metadata log": log_bit(at) for name, at in places.items()
        },
        **{f"the newest snapshot with a flipped bit in its {name}": snapshot_bit(at) for name, at in places.items()},
        "an epoch file of the metadata log of a later epoch": epochs(
            lambda end, last: f"0\n2\n1 0\n{last + 9} {end - 3}\n"
        ),
        "an epoch file of the metadata log of an epoch behind its end": epochs(
            lambda end, last: f"0\n2\n1 0\n{last + 9} {end + 9}\n"
        ),
        "an epoch file of the metadata log of epoch 0 alone": epochs(lambda _end, _last: "0\n1\n0 0\n"),
        "an epoch file of the metadata log of no rows": epochs(lambda _end, _last: "0\n0\n"),
        "an epoch file of the metadata log of later starts": epochs(lambda end, last: f"0\n1\n{last} {end - 1}\n"),
        "an empty epoch file of the metadata log": reset(EPOCH_FILE),
        "an epoch file of zeros of the metadata log": of_quorum(
            lambda place: (place / EPOCH_FILE).write_bytes(bytes(8))
        ),
        "the newest snapshot of a later epoch": renamed(0, 1),
        "the newest snapshot of an earlier epoch": renamed(0, -1),
        "the newest snapshot named one offset later": renamed(1, 0),
        "the newest snapshot named one offset earlier": renamed(-1, 0),
        "the newest snapshot unfinished": unfinished,
        "the oldest snapshot alone": left(1),
        "the oldest snapshot alone, no segment of the metadata log": _all(left(1), no_log),
        "no snapshots, no segment of the metadata log": _all(left(0), no_log),
        "no segment of the metadata log, no epoch file": _all(
            no_log, _each(lambda node: [quorum_of(node) / EPOCH_FILE])
        ),
        "a damaged snapshot, no segment of the metadata log": _all(
            no_log, lambda node: flip(newest_snapshot(node), 0.5)
        ),
        "a damaged snapshot, the metadata log cut short": _all(cut(300), lambda node: flip(newest_snapshot(node), 0.5)),
        "the metadata log named by its end": later_log,
        "an empty offset index of the metadata log": reset(f"{0:020d}.index"),
        "a time index of noise of the metadata log": noise(f"{0:020d}.timeindex"),
        "no indexes of the metadata log": _each(lambda node: quorum_of(node).glob("*index")),
        "an index of transactions of noise of the metadata log": noise(f"{0:020d}.txnindex"),
        "no partition.metadata of the metadata log": _each(lambda node: [quorum_of(node) / "partition.metadata"]),
        "the metadata log is read-only": _each(lambda node: quorum_of(node).iterdir(), _read_only),
        "a marker beside the metadata log": of_quorum(lambda place: (place / _MARKER).write_bytes(b"")),
    }


def _of_names() -> Mapping[str, Edit]:
    def folder(name: str, *, place: int = 1, holds: str = "") -> Edit:
        def edit(node: "Node") -> None:
            path = node.log_dirs[place] / name
            path.mkdir()
            if holds:
                (path / holds).write_bytes(b"noise")

        return edit

    def copied(name: str, *, place: int = 1, leaves: bool = True) -> Edit:
        def edit(node: "Node") -> None:
            mine = place_of(node, "orders0-0")
            shutil.copytree(mine, node.log_dirs[place] / name)
            if not leaves:
                shutil.rmtree(mine)

        return edit

    def file(name: str) -> Edit:
        return lambda node: write_text(node.log_dirs[1] / name, "noise")

    def in_log(name: str, data: bytes | None = b"noise") -> Edit:
        def edit(node: "Node") -> None:
            place = place_of(node, "orders0-0")
            (place / name).write_bytes((place / _LOG).read_bytes() if data is None else data)

        return edit

    def moved_out(node: "Node") -> None:
        """Leave a link to a log on a disk that is no log directory."""
        mine = place_of(node, "orders0-0")
        mine.rename(node.home / "elsewhere")
        mine.symlink_to(node.home / "elsewhere")

    def folders_of_each(node: "Node") -> None:
        mine = place_of(node, "orders0-0")
        for ending in ("delete", "stray", "future"):
            shutil.copytree(mine, node.log_dirs[1] / f"orders1-0.{ending[0] * 2}0{'b' * 29}-{ending}")

    hexes = "ab" * 16
    return {
        **{
            f"a folder named {name}": folder(name, holds="file")
            for name in (
                "@eaDir",
                ".Trash-0",
                ".snapshot",
                ".zfs",
                "System Volume Information",
                "orders0-0~",
                "orders0-0.bak",
                "orders0-0 (copy)",
                "backup-2026",
                "backup-2026-11-28",
                "orders0-0.tar",
                "__cluster_metadata-0.bak",
                "remote-log-index-cache",
                "orders0-0.-delete",
                f"orders0-0.{hexes}-deleted",
                f"orders0-0.{hexes}-Delete",
                f"orders0.{hexes}-delete",
                f"orders0-x.{hexes}-delete",
                f"orders0-x.{hexes}-future",
                f"orders0-x.{hexes}-stray",
                f"orders0-0.{hexes.upper()}-future",
                "orders0-0.short-stray",
            )
        },
        "a folder of a date in the metadata disk": folder("backup-2026", place=0),
        "a filled folder of a date": folder("backup-2026", holds=_LOG),
        "lost+found with a file in it": folder("lost+found", holds="#12345"),
        "a copy of a log by another number": copied("orders0-9"),
        "a copy of a log of a date": copied("orders0-20261128"),
        "a copy of a log with a backup's ending": copied("orders0-0.bak"),
        "a log with a backup's ending alone": copied("orders0-0.old", leaves=False),
        "a log to be deleted alone": copied(f"orders0-0.{hexes}-delete", leaves=False),
        "a future log of which the log is a stray": _all(
            copied(f"orders0-0.{hexes}-future", place=0), copied(f"orders0-0.{hexes}-stray", leaves=False)
        ),
        "copies of another log with each ending": folders_of_each,
        "a link to a log that is elsewhere": moved_out,
        **{
            f"a file named {name}": file(name)
            for name in ("orders0-7", "core.123", "hs_err_pid7.log", "nohup.out", f"{0:020d}.log", "orders9-0.txt")
        },
        **{
            f"a file of a log named {name}": in_log(name)
            for name in (
                f"{_LOG}.gz",
                f"{_LOG}.bak",
                f"{_LOG}~",
                f".{_LOG}.swp",
                ".DS_Store",
                ".nfs0000000012",
                f"{0:020d} (1).log",
                f"{0:020d}-copy.log",
                f"Copy of {_LOG}",
                f"{5:020d}.checkpoint",
                f"{5:020d}.snapshot.part",
                "leader-epoch-checkpoint.bak",
                "thumbs.log.txt",
                f"{5:020d}.LOG",
                f"{5:020d}.index.deleted",
                f"{5:020d}.log.swap.bak",
            )
        },
        "a whole copy of a segment named by its middle": in_log(f"{4:020d}.log", None),
        "a whole copy of a segment named by its end": in_log(f"{9:020d}.log", None),
    }
