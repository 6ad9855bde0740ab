"""Edits that leave three things wrong, records that fit their schema and nothing else, and files that are whole in another format."""

import os
import shutil
import struct
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.protocol.loading.disk import EPOCH_FILE
from tests.builders.metadata_logs import metadata_batch, metadata_record
from tests.oracle.loading.node_edits import (
    OTHER_ID,
    Edit,
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
    write_text,
)

if TYPE_CHECKING:
    from tests.oracle.loading.brokers import Node

_LOG, _INDEX = f"{0:020d}.log", f"{0:020d}.index"
_MARKER = ".kafka_cleanshutdown"
_POINTS, _STARTS, _MARKS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
)
_OWN = "C" * 21 + "A"


def rare_edits(*, is_kraft: bool = True) -> Mapping[str, Edit]:
    """Edits by name; those of logs and checkpoints alone where the node needs ZooKeeper."""
    of_node = {**_of_levels(), **_of_registrations(), **_of_records(), **_of_quorum()} if is_kraft else {}
    return {**_of_checkpoints(), **_of_three(), **_of_files(), **of_node}


def _all(*edits: Edit) -> Edit:
    def edit(node: "Node") -> None:
        for one in edits:
            one(node)

    return edit


def _in_disk(name: str, text: str, *places: int) -> Edit:
    def edit(node: "Node") -> None:
        for place in places or (0, 1):
            (node.log_dirs[place] / name).write_bytes(text.encode("latin-1"))

    return edit


def _unmarked(*places: int) -> Edit:
    def edit(node: "Node") -> None:
        for place in places or (0, 1):
            (node.log_dirs[place] / _MARKER).unlink()

    return edit


def _on(change: Callable[[Path], object], name: str = "orders0-0") -> Edit:
    def edit(node: "Node") -> None:
        change(place_of(node, name))

    return edit


def _of_checkpoints() -> Mapping[str, Edit]:
    found: dict[str, Edit] = {}
    for words, name in (("recovery points", _POINTS), ("log starts", _STARTS), ("high watermarks", _MARKS)):
        texts = {
            "of version 1": "1\n1\norders0 0 5\n",
            "of version -1": "-1\n1\norders0 0 5\n",
            "of a version with a plus": "+0\n1\norders0 0 5\n",
            "of a version with a blank behind": "0 \n1\norders0 0 5\n",
            "cut within a name": "0\n2\norders0 0 5\norde",
            "cut within a row": "0\n2\norders0 0 5\norders1 0",
            "cut behind a blank": "0\n2\norders0 0 5\norders1 0 ",
            "cut behind the count": "0\n2\n",
            "cut within the count": "0\n",
            "without a line end": "0\n1\norders0 0 5",
            "with two blanks": "0\n1\norders0  0 5\n",
            "with a blank before": "0\n1\n orders0 0 5\n",
            "with a fourth column": "0\n1\norders0 0 5 7\n",
            "with more rows than the count": "0\n1\norders0 0 5\norders1 0 4\n",
            "with an empty line between": "0\n2\norders0 0 5\n\norders1 0 4\n",
            "of a partition that is too large": "0\n1\norders0 4294967296 5\n",
            "of a negative partition": "0\n1\norders0 -1 5\n",
            "with a negative offset": "0\n1\norders0 0 -5\n",
            "with an offset with a plus": "0\n1\norders0 0 +5\n",
            "with zeros before an offset": "0\n1\norders0 00 0005\n",
            "with Arabic digits": "0\n1\norders0 0 \u0665\n",
            "with old line ends of a Mac": "0\r1\rorders0 0 5\r",
            "with a byte order mark": "\xef\xbb\xbf0\n1\norders0 0 5\n",
            "of no count": "0\nmany\n",
            "with a count that is too large": "0\n4294967296\norders0 0 5\n",
        }
        for what, text in texts.items():
            found[f"{words} {what}"] = _written(name, text)
    epochs = {
        "an epoch file cut within a row": "0\n2\n0 0\n1",
        "an epoch file cut behind a blank": "0\n1\n0 ",
        "an epoch file without a line end": "0\n1\n0 0",
        "an epoch file with a third column": "0\n1\n0 0 7\n",
        "an epoch file with fewer rows than the count": "0\n3\n0 0\n",
        "an epoch file of epochs that fall": "0\n2\n4 0\n2 5\n",
        "an epoch file of offsets that fall": "0\n2\n0 5\n4 2\n",
        "an epoch file of an epoch twice": "0\n2\n0 0\n0 5\n",
        "an epoch file of a negative epoch": "0\n1\n-1 0\n",
        "an epoch file of a negative offset": "0\n1\n0 -5\n",
        "an epoch file of no rows": "0\n0\n",
    }
    return found | {name: _epochs(text) for name, text in epochs.items()}


def _epochs(text: str) -> Edit:
    return _on(lambda place: write_text(place / EPOCH_FILE, text))


def _written(name: str, text: str) -> Edit:
    def edit(node: "Node") -> None:
        for one in node.log_dirs:
            (one / name).write_bytes(text.encode("utf-8"))

    return edit


def _of_three() -> Mapping[str, Edit]:
    def zeros(place: Path) -> None:
        with (place / _LOG).open("ab") as file:
            file.write(bytes(200))

    flipped, no_index = _on(lambda place: flip(place / _LOG, 0.5)), _on(lambda place: (place / _INDEX).unlink())
    malformed, above = "0\n3\norders0 0 5\n", "0\n2\norders0 0 900\norders1 0 900\n"

    def without_snapshots(place: Path) -> None:
        for one in place.glob("*.snapshot"):
            one.unlink()

    no_snapshot = _on(without_snapshots)
    lost_found: Edit = lambda node: (node.log_dirs[1] / "lost+found").mkdir()  # noqa: E731

    def future(node: "Node") -> None:
        mine = place_of(node, "orders0-0")
        other = next(one for one in node.log_dirs if one != mine.parent)
        shutil.copytree(mine, other / f"{mine.name}.{'a' * 32}-future")

    return {
        "three: a flipped bit, no index, malformed recovery points": _all(
            flipped, no_index, _in_disk(_POINTS, malformed)
        ),
        "three: a flipped bit, no index, malformed recovery points, without marker": _all(
            flipped, no_index, _in_disk(_POINTS, malformed), _unmarked()
        ),
        "three: zeros, no snapshot of producers, log starts above the ends": _all(
            _on(zeros), no_snapshot, _in_disk(_STARTS, above)
        ),
        "three: zeros, no snapshot of producers, recovery points above the ends, without marker": _all(
            _on(zeros), no_snapshot, _in_disk(_POINTS, above), _unmarked()
        ),
        "three: a future log, malformed high watermarks, without marker": _all(
            future, _in_disk(_MARKS, malformed), _unmarked()
        ),
        "three: a future log, a flipped bit in its log, without one marker": _all(future, flipped, _unmarked(1)),
        "three: lost+found, malformed epochs, an empty partition.metadata": _all(
            lost_found,
            _on(lambda place: write_text(place / EPOCH_FILE, "0\n2\n0 0\n")),
            _on(lambda place: write_text(place / "partition.metadata", ""), "orders1-0"),
        ),
        "three: malformed epochs of one log of each of three kinds": _all(
            _on(lambda place: write_text(place / EPOCH_FILE, "0\n2\n0 0\n")),
            _on(lambda place: write_text(place / EPOCH_FILE, "1\n0\n"), "orders1-0"),
            _on(lambda place: write_text(place / "partition.metadata", ""), "orders2-0"),
        ),
        "three: log starts within the logs, no index, a flipped bit behind it": _all(
            _in_disk(_STARTS, "0\n2\norders0 0 5\norders1 0 4\n"),
            no_index,
            _on(lambda place: flip(place / _LOG, 0.9)),
        ),
        "three: log starts within the logs, epochs above, without marker": _all(
            _in_disk(_STARTS, "0\n1\norders0 0 5\n"),
            _on(lambda place: write_text(place / EPOCH_FILE, "0\n3\n0 0\n3 7\n5 9\n")),
            _unmarked(),
        ),
    }


def _of_files() -> Mapping[str, Edit]:
    def marker(text: str) -> Edit:
        return _in_disk(_MARKER, text)

    def linked_log(node: "Node") -> None:
        """The same log on both disks, one a link to the other."""
        mine = place_of(node, "orders0-0")
        other = next(one for one in node.log_dirs if one != mine.parent)
        (other / mine.name).symlink_to(mine)

    def linked_file(name: str) -> Edit:
        def edit(node: "Node") -> None:
            path = node.log_dirs[1] / name
            path.rename(node.home / f"moved-{name.strip('.')}")
            path.symlink_to(node.home / f"moved-{name.strip('.')}")

        return edit

    def long_stray(node: "Node") -> None:
        """A log whose name is as long as a topic's may be, with the id of a topic that is gone."""
        name = f"{'a' * 249}-0"
        shutil.copytree(place_of(node, "orders0-0"), node.log_dirs[1] / name)
        write_text(node.log_dirs[1] / name / "partition.metadata", f"version: 0\ntopic_id: {OTHER_ID}")

    def metadata(text: str) -> Edit:
        def edit(node: "Node") -> None:
            path = place_of(node, "orders0-0") / "partition.metadata"
            own = path.read_text().partition("topic_id: ")[2].strip()
            path.write_bytes(text.replace("ID", own).encode())

        return edit

    def batch(**more: object) -> Edit:
        def edit(node: "Node") -> None:
            made = build_record_batch(9, [(1_700_000_000_000, b"k", b"v")], partition_leader_epoch=0, **more)  # type: ignore[arg-type]
            with (place_of(node, "orders0-0") / _LOG).open("ab") as file:
                file.write(encode_record_batch(made))

        return edit

    found: dict[str, Edit] = {
        "a marker of no epoch": marker('{"version":0}'),
        "a marker of a negative epoch": marker('{"version":0,"brokerEpoch":-1}'),
        "a marker of a far epoch": marker('{"version":0,"brokerEpoch":9223372036854775807}'),
        "a marker of an epoch that is too large": marker('{"version":0,"brokerEpoch":9223372036854775808}'),
        "a marker of an epoch with a fraction": marker('{"version":0,"brokerEpoch":7.5}'),
        "a marker of version -1": marker('{"version":-1,"brokerEpoch":7}'),
        "a marker of a version in words": marker('{"version":"0","brokerEpoch":7}'),
        "a marker with more behind it": marker('{"version":0,"brokerEpoch":7} more'),
        "a marker that is null": marker("null"),
        "a marker with a byte order mark": marker('\xef\xbb\xbf{"version":0,"brokerEpoch":7}'),
        "a marker of a key twice": marker('{"version":0,"brokerEpoch":7,"brokerEpoch":8}'),
        "a link in place of a marker": linked_file(_MARKER),
        "a link in place of recovery points": linked_file(_POINTS),
        "a link in place of high watermarks": linked_file(_MARKS),
        "a link to a log on the other disk": linked_log,
        "a stray with a name as long as may be": long_stray,
        "partition.metadata of version -1": metadata("version: -1\ntopic_id: ID"),
        "partition.metadata of version 00": metadata("version: 00\ntopic_id: ID"),
        "partition.metadata of version +0": metadata("version: +0\ntopic_id: ID"),
        "partition.metadata of a version that is too large": metadata("version: 4294967296\ntopic_id: ID"),
        "partition.metadata without a blank": metadata("version:0\ntopic_id:ID"),
        "partition.metadata with two blanks": metadata("version:  0\ntopic_id:  ID"),
        "partition.metadata with an id twice": metadata("version: 0\ntopic_id: ID\ntopic_id: ID"),
        "partition.metadata with padding": metadata("version: 0\ntopic_id: ID=="),
        "partition.metadata with a plus in its id": metadata(f"version: 0\ntopic_id: {'+' * 22}"),
        "partition.metadata with the id of the metadata log": metadata(f"version: 0\ntopic_id: {'A' * 21}Q"),
        "partition.metadata in capitals": metadata("Version: 0\nTopic_Id: ID"),
        "partition.metadata with a byte order mark": metadata("\ufeffversion: 0\ntopic_id: ID"),
        "a batch of a later leader epoch": batch(),
        "a batch of a producer that is nobody's": batch(producer_id=77, producer_epoch=3, base_sequence=9),
        "a batch of an unfinished transaction": batch(
            producer_id=77, producer_epoch=3, base_sequence=0, attributes=0x10
        ),
        "a control batch of no producer": batch(attributes=0x30),
        "a batch of an attribute that nobody knows": batch(attributes=0x100),
    }
    return found


def _of_levels() -> Mapping[str, Edit]:
    def level(value: int) -> Edit:
        return recorded("FeatureLevelRecord", {"name": "metadata.version", "feature_level": value})

    def one_disk(node: "Node") -> None:
        """Leave one log directory, with all logs."""
        for path in node.log_dirs[1].iterdir():
            if path.is_dir():
                shutil.move(path, node.log_dirs[0] / path.name)
        shutil.rmtree(node.log_dirs[1])
        node.settings["log.dirs"] = node.log_dirs[0]

    down = {
        f"metadata.version {value}": level(value)
        for value in (1, 6, 7, 8, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 28, 29, 30, 31, 32)
    }
    alone = {f"metadata.version {value}, one disk": _all(one_disk, level(value)) for value in (7, 14, 16, 18, 21, 24)}
    return {**down, **alone}


def _of_registrations() -> Mapping[str, Edit]:
    def registered(broker: int = 1, **more: object) -> Edit:
        def fields(node: "Node") -> Mapping[str, object]:
            end_points = [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": node.ports[0], "security_protocol": 0}]
            features = [{"name": "metadata.version", "min_supported_version": 1, "max_supported_version": 33}]
            own = [meta_of(node, place).get("directory.id", OTHER_ID) for place in (0, 1)]
            epoch = history_of_node(node).end_offset
            found = {
                "broker_id": broker,
                "incarnation_id": OTHER_ID,
                "broker_epoch": epoch,
                "end_points": end_points,
                "features": features,
                "rack": None,
                "fenced": False,
                "in_controlled_shutdown": False,
                "log_dirs": own,
            }
            return found | {key: value(node) if callable(value) else value for key, value in more.items()}

        return recorded("RegisterBrokerRecord", fields)

    def marked(epoch: Callable[["Node"], int], *places: int) -> Edit:
        def edit(node: "Node") -> None:
            for place in places or (0, 1):
                write_text(node.log_dirs[place] / _MARKER, f'{{"version":0,"brokerEpoch":{epoch(node)}}}')

        return edit

    def unfenced(node: "Node") -> None:
        recorded("BrokerRegistrationChangeRecord", {"broker_id": 1, "broker_epoch": epoch_of(node), "fenced": -1})(node)

    return {
        "the broker registered by another incarnation": registered(),
        "the broker registered by another incarnation, fenced": registered(fenced=True),
        "the broker registered by another incarnation, in controlled shutdown": registered(in_controlled_shutdown=True),
        "the broker registered with other directories": registered(log_dirs=[OTHER_ID, _OWN]),
        "the broker registered with no directories": registered(log_dirs=[]),
        "the broker registered with one directory": registered(
            log_dirs=lambda node: [meta_of(node, 0)["directory.id"]]
        ),
        "the broker registered with a far epoch": registered(broker_epoch=1 << 40),
        "the broker registered with an epoch of zero": registered(broker_epoch=0),
        "another broker registered with its directories": registered(9),
        "another broker registered with one of its directories": registered(
            9, log_dirs=lambda node: [meta_of(node, 1)["directory.id"]]
        ),
        "another broker registered with its directories, fenced": registered(9, fenced=True),
        "another broker registered with its address": registered(9, log_dirs=[OTHER_ID, _OWN]),
        "the broker unfenced": unfenced,
        "the broker unfenced, markers of an earlier epoch": _all(unfenced, marked(lambda node: epoch_of(node) - 1)),
        "markers of an epoch before": marked(lambda node: epoch_of(node) - 1),
        "markers of an epoch beyond the end of the metadata log": marked(
            lambda node: history_of_node(node).end_offset + 100
        ),
        "markers of two epochs, both before": _all(
            marked(lambda node: epoch_of(node) - 1, 0), marked(lambda node: epoch_of(node) - 2, 1)
        ),
        "another controller registered": recorded(
            "RegisterControllerRecord",
            {
                "controller_id": 9,
                "incarnation_id": OTHER_ID,
                "zk_migration_ready": False,
                "end_points": [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 1, "security_protocol": 0}],
                "features": [],
            },
        ),
    }


def _of_records() -> Mapping[str, Edit]:
    def of_topic(**fields: object) -> Callable[["Node"], Mapping[str, object]]:
        return lambda node: {"partition_id": 0, "topic_id": topic_id_of(node, "orders0-0"), **fields}

    def setting(name: str, value: str | None, resource: str = "orders0", kind: int = 2) -> Edit:
        return recorded(
            "ConfigRecord", {"resource_type": kind, "resource_name": resource, "name": name, "value": value}
        )

    def raw(change: Callable[[bytes], bytes]) -> Edit:
        """Append a record that is changed after it was made."""

        def edit(node: "Node") -> None:
            history = history_of_node(node)
            record = change(metadata_record("NoOpRecord", {}))
            append(node, metadata_batch(history.end_offset, [record], epoch=history.last_epoch))

        return edit

    def batched(**more: object) -> Edit:
        """Append a batch that is not as controllers write them."""

        def edit(node: "Node") -> None:
            history = history_of_node(node)
            record = metadata_record("NoOpRecord", {})
            made = build_record_batch(
                history.end_offset,
                [(1_700_000_000_000, None, record)],
                partition_leader_epoch=history.last_epoch,
                **more,  # type: ignore[arg-type]
            )
            append(node, encode_record_batch(made))

        return edit

    def without_value(node: "Node") -> None:
        history = history_of_node(node)
        made = build_record_batch(
            history.end_offset, [(1_700_000_000_000, None, None)], partition_leader_epoch=history.last_epoch
        )
        append(node, encode_record_batch(made))

    topic_settings = {
        "a boolean": ("unclean.leader.election.enable", "maybe"),
        "a share": ("min.cleanable.dirty.ratio", "7"),
        "a share that is no number": ("min.cleanable.dirty.ratio", "half"),
        "a codec": ("compression.type", "rar"),
        "a level of gzip": ("compression.gzip.level", "99"),
        "a type of timestamps": ("message.timestamp.type", "never"),
        "a limit of timestamps": ("message.timestamp.before.max.ms", "-1"),
        "preallocation": ("preallocate", "1"),
        "throttled replicas": ("leader.replication.throttled.replicas", "1-2-3"),
        "an empty policy": ("cleanup.policy", ""),
        "a retention below -1": ("retention.ms", "-2"),
        "a local retention above retention": ("local.retention.ms", "99999999999999"),
        "no value": ("retention.ms", None),
        "tiered storage": ("remote.storage.enable", "true"),
        "a copy that is disabled without tiered storage": ("remote.log.copy.disable", "true"),
        "a segment of zero ms": ("segment.ms", "0"),
        "a lag of compaction above its most": ("min.compaction.lag.ms", "9223372036854775807"),
    }
    broker_settings = {
        "log.cleaner.dedupe.buffer.size": "1",
        "num.io.threads": "0",
        "log.retention.ms": "0",
        "log.segment.bytes": "5",
        "background.threads": "many",
        "listeners": "nothing",
        "unclean.leader.election.enable": "maybe",
        "log.cleaner.backoff.ms": "-1",
        "min.insync.replicas": "0",
    }
    return {
        **{f"of a topic, {words}": setting(*pair) for words, pair in topic_settings.items()},
        **{
            f"of all topics of the broker, {name}": setting(name, value, resource="", kind=4)
            for name, value in broker_settings.items()
        },
        **{
            f"of the broker alone, {name}": setting(name, value, resource="1", kind=4)
            for name, value in broker_settings.items()
        },
        "a partition of which it is twice a replica": recorded(
            "PartitionChangeRecord", of_topic(replicas=(1, 1), isr=(1, 1), directories=(OTHER_ID, OTHER_ID))
        ),
        "a partition without replicas": recorded(
            "PartitionChangeRecord", of_topic(replicas=(), isr=(), leader=-1, directories=())
        ),
        "a partition of a leader that is no replica": recorded("PartitionChangeRecord", of_topic(leader=9)),
        "a partition with an in-sync replica that is none": recorded("PartitionChangeRecord", of_topic(isr=(1, 9))),
        "a partition of fewer directories than replicas": recorded(
            "PartitionChangeRecord", of_topic(replicas=(1, 9), directories=(OTHER_ID,))
        ),
        "a partition in a directory that is not its own": recorded(
            "PartitionChangeRecord", of_topic(directories=(OTHER_ID,))
        ),
        "a partition in a lost directory": recorded("PartitionChangeRecord", of_topic(directories=(f"{'A' * 21}g",))),
        "a record of a type of 4.0": recorded("ClearElrRecord", {"topic_name": "orders0"}),
        "a record of a type of 4.4": recorded("UnregisterControllerRecord", {"controller_id": 77}),
        "a record with bytes behind it": raw(lambda record: record + b"\0\0\0"),
        "a record cut short": raw(lambda record: record[:-1]),
        "a record of a version that nobody knows": raw(lambda record: record[:2] + b"\x09" + record[3:]),
        "a record of a key only": raw(lambda record: record[:2]),
        "a record of no bytes": raw(lambda _: b""),
        "a record without a value": without_value,
        "a batch of the metadata log in gzip": batched(attributes=1),
        "a batch of the metadata log that is transactional": batched(
            attributes=0x10, producer_id=5, producer_epoch=0, base_sequence=0
        ),
        "a metadata transaction begun twice": _all(
            recorded("BeginTransactionRecord", {"name": "one"}), recorded("BeginTransactionRecord", {"name": "two"})
        ),
        "a metadata transaction that was aborted": _all(
            recorded("BeginTransactionRecord", {"name": "one"}),
            recorded("RemoveTopicRecord", lambda node: {"topic_id": topic_id_of(node, "orders0-0")}),
            recorded("AbortTransactionRecord", {"reason": "why not"}),
        ),
        "a metadata transaction that was ended": _all(
            recorded("BeginTransactionRecord", {"name": "one"}),
            recorded("NoOpRecord", {}),
            recorded("EndTransactionRecord", {}),
        ),
        "a metadata transaction aborted that none began": recorded("AbortTransactionRecord", {"reason": "x"}),
        "an ACL removed that is not there": recorded("RemoveAccessControlEntryRecord", {"id": OTHER_ID}),
        "an ACL twice": _all(
            *[
                recorded(
                    "AccessControlEntryRecord",
                    {
                        "id": OTHER_ID,
                        "resource_type": 2,
                        "resource_name": "a",
                        "pattern_type": 3,
                        "principal": "User:a",
                        "host": "*",
                        "operation": 3,
                        "permission_type": 3,
                    },
                )
            ]
            * 2
        ),
        "an ACL of a kind that nobody knows": recorded(
            "AccessControlEntryRecord",
            {
                "id": OTHER_ID,
                "resource_type": 99,
                "resource_name": "a",
                "pattern_type": 99,
                "principal": "a",
                "host": "*",
                "operation": 99,
                "permission_type": 99,
            },
        ),
        "a fence of a broker that is not there": recorded("FenceBrokerRecord", {"id": 77, "epoch": 1}),
        "producer ids below": recorded(
            "ProducerIdsRecord", lambda node: {"broker_id": 1, "broker_epoch": epoch_of(node), "next_producer_id": 0}
        ),
        "a quota of nobody": recorded(
            "ClientQuotaRecord",
            {"entity": [{"entity_type": "planet", "entity_name": "x"}], "key": "wish", "value": 1.0, "remove": False},
        ),
        "a SCRAM secret removed that is not there": recorded(
            "RemoveUserScramCredentialRecord", {"name": "nobody", "mechanism": 1}
        ),
    }


def _batches(data: bytes) -> list[bytes]:
    places = [0]
    while places[-1] < len(data):
        places.append(places[-1] + 12 + struct.unpack_from(">i", data, places[-1] + 8)[0])
    return [data[one:other] for one, other in pairwise(places)]


def _of_quorum() -> Mapping[str, Edit]:
    def split(share: float, leave_out: int, *, keeps_first: bool = True) -> Edit:
        """Leave two segments of the metadata log, with batches missing between them."""

        def edit(node: "Node") -> None:
            path = log_of(node)
            found = _batches(path.read_bytes())
            at = int(len(found) * share)
            rest = found[at + leave_out :]
            base = struct.unpack_from(">q", rest[0])[0]
            (path.parent / f"{base:020d}.log").write_bytes(b"".join(rest))
            path.write_bytes(b"".join(found[:at]))
            if not keeps_first:
                path.unlink()

        return edit

    def log_below_snapshot(node: "Node") -> None:
        """What a copy of the log from before the newest snapshot leaves."""
        end = int(newest_snapshot(node).name[:20])
        found = _batches(log_of(node).read_bytes())
        kept = [one for one in found if struct.unpack_from(">q", one)[0] < end - 20]
        log_of(node).write_bytes(b"".join(kept))

    def left_over(ending: str, *, above: bool = False) -> Edit:
        def edit(node: "Node") -> None:
            path = newest_snapshot(node)
            name = f"{int(path.name[:20]) + 700:020d}{path.name[20:]}" if above else path.name
            shutil.copy(path, path.parent / f"{name}{ending}")

        return edit

    def bootstrap(data: Callable[[bytes], bytes]) -> Edit:
        def edit(node: "Node") -> None:
            path = node.log_dirs[0] / "bootstrap.checkpoint"
            level = metadata_record("FeatureLevelRecord", {"name": "metadata.version", "feature_level": 14})
            whole = path.read_bytes() if path.is_file() else metadata_batch(0, [level])
            path.write_bytes(data(whole))

        return edit

    def changed(at: int) -> Callable[[bytes], bytes]:
        return lambda data: data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]

    def first_snapshot(at: int) -> Edit:
        def edit(node: "Node") -> None:
            path = min(quorum_of(node).glob("*.checkpoint"))
            path.write_bytes(changed(at)(path.read_bytes()))

        return edit

    def of_newest(change: Callable[[bytes], bytes]) -> Edit:
        def edit(node: "Node") -> None:
            newest_snapshot(node).write_bytes(change(newest_snapshot(node).read_bytes()))

        return edit

    def empty_segment(node: "Node") -> None:
        (quorum_of(node) / f"{history_of_node(node).end_offset:020d}.log").touch()

    def without_snapshots(node: "Node") -> None:
        for one in quorum_of(node).glob("*.checkpoint"):
            one.unlink()

    places = {"offset": 3, "length": 10, "magic": 16, "checksum": 18, "attributes": 22, "records": 70}
    return {
        "two segments of the metadata log": split(0.5, 0),
        "a hole between two segments of the metadata log": split(0.5, 3),
        "a hole between the last two segments of the metadata log": split(0.9, 1),
        "the first segment of the metadata log is gone": split(0.3, 0, keeps_first=False),
        "a late first segment of the metadata log is gone": split(0.97, 0, keeps_first=False),
        "an empty last segment of the metadata log": empty_segment,
        "a metadata log that ends below its newest snapshot": log_below_snapshot,
        "the newest snapshot once more, deleted": left_over(".deleted"),
        "the newest snapshot once more, unfinished": left_over(".part"),
        "a later snapshot, deleted": left_over(".deleted", above=True),
        "a later snapshot, unfinished": left_over(".part", above=True),
        **{
            f"bootstrap.checkpoint with a flipped bit in its {name}": bootstrap(changed(at))
            for name, at in places.items()
        },
        "bootstrap.checkpoint cut within a batch": bootstrap(lambda data: data[:40]),
        "bootstrap.checkpoint cut within a length": bootstrap(lambda data: data[:10]),
        "bootstrap.checkpoint of zeros": bootstrap(lambda data: bytes(len(data))),
        "bootstrap.checkpoint with zeros behind": bootstrap(lambda data: data + bytes(40)),
        "bootstrap.checkpoint twice": bootstrap(lambda data: data * 2),
        **{f"the first snapshot with a flipped bit in its {name}": first_snapshot(at) for name, at in places.items()},
        "the newest snapshot with zeros behind": of_newest(lambda data: data + bytes(80)),
        "the newest snapshot with its header alone": of_newest(lambda data: _batches(data)[0]),
        "the newest snapshot without its header": of_newest(lambda data: b"".join(_batches(data)[1:])),
        "the newest snapshot twice in its file": of_newest(lambda data: data * 2),
        "three: no quorum-state, no snapshots, another cluster.id": _all(
            lambda node: (quorum_of(node) / "quorum-state").unlink(),
            without_snapshots,
            lambda node: set_meta(node, "cluster.id", OTHER_ID, places=(0, 1)),
        ),
        "three: the metadata log cut short, no epoch file, a later quorum-state": _all(
            lambda node: os.truncate(log_of(node), log_of(node).stat().st_size * 2 // 3),
            lambda node: (quorum_of(node) / EPOCH_FILE).unlink(),
            lambda node: write_text(
                quorum_of(node) / "quorum-state",
                (quorum_of(node) / "quorum-state").read_text().replace('"leaderEpoch":', '"leaderEpoch":9'),
            ),
        ),
    }
