"""Edits as operators make them: directories restored by half or with files of another moment, disks mixed up by scripts, and settings written by hand."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.protocol.loading.disk import EPOCH_FILE
from tests.oracle.loading.node_edits import newest_snapshot, place_of, quorum_of, write_text

if TYPE_CHECKING:
    from tests.oracle.loading.brokers import Node

Edit = Callable[["Node"], object]
_LOG, _INDEX, _TIMES = (f"{0:020d}.{kind}" for kind in ("log", "index", "timeindex"))
_ENDS, _POINTS, _STARTS = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
)
_MARKER, _META = ".kafka_cleanshutdown", "meta.properties"


def restored_edits() -> Mapping[str, Edit]:
    """Edits by name."""
    return {**_of_copies(), **_of_disks(), **_of_metadata(), **_of_settings_file()}


def _unmarked(node: "Node") -> None:
    for one in node.log_dirs:
        (one / _MARKER).unlink(missing_ok=True)


def _logs_of(node: "Node", place: int | None = None) -> list[Path]:
    return [
        path
        for at, one in enumerate(node.log_dirs)
        if place in {None, at}
        for path in sorted(one.iterdir())
        if path.is_dir() and not path.name.startswith("__cluster_metadata") and (path / _LOG).is_file()
    ]


def _first_batch(path: Path) -> int:
    return 12 + int.from_bytes(path.read_bytes()[8:12])


def _of_copies() -> Mapping[str, Edit]:
    def earlier(node: "Node") -> None:
        """An earlier copy of the segments below checkpoints of now."""
        for path in _logs_of(node, 1):
            os.truncate(path / _LOG, _first_batch(path / _LOG))

    def without(*names: str) -> Edit:
        def edit(node: "Node") -> None:
            for path in _logs_of(node, 1):
                for name in names:
                    for file in path.glob(name):
                        file.unlink()

        return edit

    def unmarked(edit: Edit) -> Edit:
        def both(node: "Node") -> None:
            edit(node)
            _unmarked(node)

        return both

    def zeroed(node: "Node") -> None:
        """All points are zero, as an earlier copy of the checkpoints has them."""
        for name in (_ENDS, _POINTS):
            path = node.log_dirs[1] / name
            rows = [line.rsplit(" ", 1)[0] + " 0" for line in path.read_text().splitlines()[2:]]
            path.write_text("\n".join(["0", str(len(rows)), *rows]) + "\n")

    def joined(node: "Node") -> None:
        for name in (_ENDS, _POINTS):
            text = (node.log_dirs[0] / name).read_text()
            (node.log_dirs[1] / name).write_text((node.log_dirs[1] / name).read_text() + text)

    def punched(node: "Node") -> None:
        data = bytearray((place_of(node, "orders0-0") / _LOG).read_bytes())
        at = _first_batch(place_of(node, "orders0-0") / _LOG)
        data[at : at + 100] = bytes(100)
        (place_of(node, "orders0-0") / _LOG).write_bytes(data)

    def of_another(name: str) -> Edit:
        def edit(node: "Node") -> None:
            source, to = place_of(node, "orders1-0"), place_of(node, "orders0-0")
            shutil.copy(source / name, to / name)

        return edit

    def behind(node: "Node") -> None:
        """The segment of another topic behind its own."""
        shutil.copy((place_of(node, "orders1-0") / _LOG), place_of(node, "orders0-0") / f"{9:020d}.log")

    def swapped_segments(node: "Node") -> None:
        one, other = (place_of(node, "orders0-0") / _LOG), (place_of(node, "aged-0") / _LOG)
        data = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(data)

    def packed(node: "Node") -> None:
        (place_of(node, "orders0-0") / _LOG).rename(place_of(node, "orders0-0") / f"{_LOG}.gz")

    def large_index(node: "Node") -> None:
        path = place_of(node, "orders0-0") / _INDEX
        os.truncate(path, 10 << 20)

    def full_disk(node: "Node") -> None:
        """A disk that was full: segments of no bytes beside indexes of full size."""
        for path in _logs_of(node, 1):
            os.truncate(path / _LOG, 0)
            os.truncate(path / _INDEX, 65_528)

    def renamed(to: str) -> Edit:
        return lambda node: place_of(node, "orders0-0").rename(place_of(node, "orders0-0").with_name(to))

    def lost_and_found(node: "Node") -> None:
        (place_of(node, "orders0-0") / "lost+found").mkdir()

    def older_rows(node: "Node") -> None:
        write_text(place_of(node, "orders0-0") / EPOCH_FILE, "0\n1\n0 2\n")

    def moved_segment(node: "Node") -> None:
        """Its only segment named as though retention had deleted what came before."""
        path = place_of(node, "orders0-0")
        for file in list(path.glob(f"{0:020d}.*")):
            file.rename(path / f"{4:020d}{file.suffix}")

    return {
        "segments of an earlier moment": earlier,
        "segments of an earlier moment, without marker": unmarked(earlier),
        "checkpoints of an earlier moment": zeroed,
        "checkpoints of an earlier moment, without marker": unmarked(zeroed),
        "only segments, without marker": unmarked(without("*.index", "*.timeindex", "*.snapshot", EPOCH_FILE)),
        "only segments": without("*.index", "*.timeindex", "*.snapshot", EPOCH_FILE),
        "only segments and topic ids, no other file": unmarked(
            without("*.index", "*.timeindex", "*.snapshot", EPOCH_FILE, "partition.metadata")
        ),
        "everything but segments": without("*.log"),
        "the checkpoints of both disks joined": joined,
        "a hole of zeros in a log": punched,
        "a hole of zeros in a log, without marker": unmarked(punched),
        "the segment of another topic": of_another(_LOG),
        "the segment of another topic, without marker": unmarked(of_another(_LOG)),
        "the epoch file of another topic": of_another(EPOCH_FILE),
        "the indexes of another topic": lambda node: (of_another(_INDEX)(node), of_another(_TIMES)(node)),
        "the topic id of another topic": of_another("partition.metadata"),
        "the segment of another topic behind its own": behind,
        "the segments of two topics exchanged": swapped_segments,
        "a packed segment": packed,
        "a larger index": large_index,
        "a full disk": full_disk,
        "a full disk, without marker": unmarked(full_disk),
        "a renamed topic": renamed("orders9-0"),
        "a partition with another number": renamed("orders0-1"),
        "lost+found in a log": lost_and_found,
        "an epoch file of later epochs": older_rows,
        "a segment named by a later offset": moved_segment,
        "a segment named by a later offset, without marker": unmarked(moved_segment),
    }


def _of_disks() -> Mapping[str, Edit]:
    def nested(node: "Node", *, keeps: bool) -> None:
        disk = node.log_dirs[1]
        inner = disk / disk.name
        shutil.copytree(disk, disk.with_name("aside"))
        if not keeps:
            shutil.rmtree(disk)
            disk.mkdir()
        disk.with_name("aside").rename(inner)

    def merged(node: "Node", *, leaves_old: bool) -> None:
        """All logs of the second disk in the first, which alone is named."""
        for path in _logs_of(node, 1):
            to = node.log_dirs[0] / path.name
            shutil.copytree(path, to) if leaves_old else path.rename(to)
        node.settings["log.dirs"] = str(node.log_dirs[0])

    def merged_both(node: "Node") -> None:
        for path in _logs_of(node, 1):
            path.rename(node.log_dirs[0] / path.name)

    def other_way(node: "Node") -> None:
        node.settings["log.dirs"] = ",".join(map(str, reversed(node.log_dirs)))

    def linked_logs(node: "Node") -> None:
        """The same files by hard links on the other disk."""
        path = _logs_of(node, 1)[0]
        shutil.copytree(path, node.log_dirs[0] / path.name, copy_function=os.link)

    def third(node: "Node") -> None:
        """A new disk to which a log was moved by hand."""
        new = node.home / "data-2"
        new.mkdir()
        path = _logs_of(node, 1)[0]
        path.rename(new / path.name)
        node.settings["log.dirs"] = ",".join(map(str, (*node.log_dirs, new)))

    def third_of_copies(node: "Node") -> None:
        """A new disk into which meta.properties was copied as well."""
        third(node)
        shutil.copy(node.log_dirs[1] / _META, node.home / "data-2" / _META)

    def backup(node: "Node") -> None:
        """A backup of the whole disk in a folder of it."""
        shutil.copytree(node.log_dirs[0], node.home / "aside")
        (node.home / "aside").rename(node.log_dirs[0] / "backup")

    def offsets_removed(node: "Node") -> None:
        shutil.rmtree(place_of(node, "orders0-0"))
        shutil.rmtree(place_of(node, "orders1-0"))

    return {
        "a disk within itself": lambda node: nested(node, keeps=False),
        "a copy of a disk within itself": lambda node: nested(node, keeps=True),
        "all logs moved to the first disk, which alone is named": lambda node: merged(node, leaves_old=False),
        "all logs copied to the first disk, which alone is named": lambda node: merged(node, leaves_old=True),
        "all logs moved to the first disk": merged_both,
        "the other order of disks": other_way,
        "a log on both disks by hard links": linked_logs,
        "a new disk with a log of another": third,
        "a new disk with a log and the identity of another": third_of_copies,
        "a backup of a disk within it": backup,
        "two logs removed by hand": offsets_removed,
    }


def _of_metadata() -> Mapping[str, Edit]:
    def aside(node: "Node") -> None:
        quorum_of(node).rename(quorum_of(node).with_name("__cluster_metadata-0.old"))

    def older_snapshot_only(node: "Node") -> None:
        """The snapshots but the oldest are gone, and so is what the log has behind the first batches."""
        for path in sorted(quorum_of(node).glob("*.checkpoint"))[1:]:
            path.unlink()

    def from_snapshot(node: "Node") -> None:
        """The newest snapshot as bootstrap.checkpoint."""
        shutil.copy(newest_snapshot(node), node.log_dirs[0] / "bootstrap.checkpoint")

    def on_both(node: "Node") -> None:
        shutil.copy(node.log_dirs[0] / "bootstrap.checkpoint", node.log_dirs[1] / "bootstrap.checkpoint")

    def renumbered(node: "Node") -> None:
        """The state of the quorum and the identity of node 9, as by `cp -a` from it."""
        path = quorum_of(node) / "quorum-state"
        path.write_text(path.read_text().replace('"leaderId":1', '"leaderId":9').replace('"votedId":1', '"votedId":9'))

    def marked_metadata(node: "Node") -> None:
        shutil.copytree(quorum_of(node), node.log_dirs[1] / "__cluster_metadata-0")
        (node.log_dirs[1] / "__cluster_metadata-0" / "quorum-state").unlink()

    return {
        "the metadata log moved aside": aside,
        "the oldest snapshot beside the whole metadata log": older_snapshot_only,
        "a snapshot as bootstrap.checkpoint": from_snapshot,
        "bootstrap.checkpoint on both disks": on_both,
        "the state of the quorum of another node": renumbered,
        "a metadata log on the other disk without its state": marked_metadata,
    }


def _of_settings_file() -> Mapping[str, Edit]:
    def written(change: Callable[[str], str]) -> Edit:
        def edit(node: "Node") -> None:
            node.rewritten = change

        return edit

    def line(text: str) -> Edit:
        return written(lambda found: f"{found}{text}\n")

    def dirs(change: Callable[[str], str]) -> Edit:
        def rewritten(found: str) -> str:
            lines = found.splitlines()
            at = next(at for at, one in enumerate(lines) if one.startswith("log.dirs="))
            lines[at] = f"log.dirs={change(lines[at].removeprefix('log.dirs='))}"
            return "\n".join(lines) + "\n"

        return written(rewritten)

    return {
        "settings with line ends of Windows": written(lambda found: found.replace("\n", "\r\n")),
        "settings with a byte order mark": written(lambda found: f"\ufeff{found}"),
        "settings with colons": written(lambda found: found.replace("=", ": ", found.count("\n"))),
        "settings with blanks around the equals signs": written(lambda found: found.replace("=", " = ")),
        "settings with blanks at the ends": written(lambda found: found.replace("\n", "  \n")),
        "settings with a last line that goes on": written(lambda found: found.rstrip("\n") + "\\"),
        "log.dirs in quotes": dirs(lambda found: f'"{found}"'),
        "log.dirs with a comment behind": dirs(lambda found: f"{found} # both disks"),
        "log.dirs with blanks behind commas": dirs(lambda found: found.replace(",", ", ")),
        "log.dirs that go on in the next line": dirs(lambda found: found.replace(",", ",\\\n    ")),
        "log.dirs with a variable": dirs(lambda found: found.replace("/data-1", "/${DISK}")),
        "log.dirs with two slashes": dirs(lambda found: found.replace("/data-1", "//data-1")),
        "log.dirs with a dot": dirs(lambda found: found.replace("/data-1", "/./data-1")),
        "log.dirs twice, the last with one disk": line("log.dirs=/nowhere/data-9"),
        "node.id twice": line("node.id=9"),
        "an empty node.id": line("node.id="),
        "no node.id": written(lambda found: found.replace("node.id=1\n", "").replace("node.id=2\n", "")),
        "a role in capitals": line("process.roles=Broker"),
        "an empty broker.id": line("broker.id="),
        "a setting that nobody knows": line("log.retention.hour=1"),
        "log.retention.hours of 0": line("log.retention.hours=0"),
        "settings of root alone": lambda node: node.settings.update({"log.dir": "/root/none"}),
    }
