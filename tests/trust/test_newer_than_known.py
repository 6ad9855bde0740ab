"""Whatever is one newer than the newest that kforensics knows is said to be so, by every command that it matters to.

It is never damage, nor taken for a release that is known; nothing that depends on it is calm, and a start that was to be inferred is unknown.
"""

import json
import re
import struct

import pytest

from kforensics.cli.app import run
from kforensics.formats.log.batch_table import CRC_COVERED_POSITION, CRC_POSITION, HEADER_UP_TO_MAGIC, NEWEST_MAGIC
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.control import CONTROL_TABLES, ControlType, encode_control_record
from kforensics.formats.messages.coordinators import GROUP_TABLES, SHARE_TABLES, TXN_TABLES
from kforensics.formats.messages.frame import FRAME_VERSION
from kforensics.formats.messages.metadata import METADATA_TABLES, encode_metadata_record
from kforensics.formats.primitives.checksum import crc32c
from kforensics.formats.primitives.numbers import Codec
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.protocol.versions import NEWEST_FEATURE_LEVELS
from kforensics.source.mapped import open_evidence
from tests.builders.directories import copied, with_short_indexes
from tests.builders.messages import encode_coordinator_record

CALM = {
    "agree",
    "behind",
    "same-ends",
    "nothing-lost",
    "no-setback",
    "none-open",
    "starts-unchanged",
    "starts-and-repairs",
}
NEWER = re.compile(r"newer than .{0,40}which kforensics knows|newer than kforensics knows")
NEWEST_RECORD = max(METADATA_TABLES)
MAGIC = HEADER_UP_TO_MAGIC - 1
JUDGING = ("diff", "explain", "predict")


@pytest.fixture(scope="session")
def cluster(incident, tmp_path_factory):
    """Brokers and controllers of 4.4.0 that were stopped cleanly, of which every command is calm."""
    root = tmp_path_factory.mktemp("newer") / "cluster"
    with_short_indexes(incident("controller-change-4.4") / "snapshots/99-final", root)
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return root


@pytest.fixture
def edited(cluster, tmp_path):
    return copied(cluster, tmp_path / "cluster")


def answer(capsys, command, *arguments):
    """The document of a command, and all that it says of it."""
    run([command, *map(str, arguments), "--format", "json"])
    out = capsys.readouterr().out
    return json.loads(out), out


def end_of(log):
    """The offset behind the last batch, where it ends, its leader epoch and its time."""
    with open_evidence(log) as file:
        tables = [window.batches for window in walk_segment(file, level=Level.CRC) if len(window.batches)]
    if not tables:
        return 0, 0, 0, 1_795_000_000_000
    last = tables[-1][-1]
    return (
        int(last["last_offset"]) + 1,
        int(last["position"] + last["length"]),
        int(last["partition_leader_epoch"]),
        int(last["max_timestamp"]),
    )


def append(logs, *records, attributes=0):
    """Append a batch of records, key and value of each, to copies of a log; the offset of the first in each."""
    for log in logs:
        offset, position, epoch, time = end_of(log)
        rows = [(time, key, value) for key, value in records]
        batch = build_record_batch(offset, rows, partition_leader_epoch=epoch, attributes=attributes)
        log.write_bytes(log.read_bytes()[:position] + encode_record_batch(batch))
        yield offset


def metadata_logs(root):
    """The last segment of the metadata log of each node that is not behind."""
    found = [max(folder.glob("*.log")) for folder in sorted(root.glob("*/__cluster_metadata-0"))]
    ends = [end_of(log)[0] for log in found]
    return [log for log, end in zip(found, ends, strict=True) if end == max(ends)]


def with_tag(value, tag):
    """A flexible message without tagged fields, with one behind it."""
    assert value[-1] == 0
    return value[:-1] + bytes((1, tag, 1, 0))


FEATURE = KEY = 12
PARTITION_CHANGE = 5
CHANGE = {"partition_id": 0, "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "isr": (11,)}
RECORDS = {
    "record type": bytes((FRAME_VERSION, NEWEST_RECORD + 1, 0)),
    "frame version": bytes((FRAME_VERSION + 1, 2, 0)) + b"\0",
    **{
        f"version of {table.name}": bytes((FRAME_VERSION, key, table.versions[-1] + 1)) + b"\0" * 40
        for key, table in METADATA_TABLES.items()
        if table.versions[-1] + 1 < 0x80
    },
    "tag of FeatureLevelRecord": with_tag(
        encode_metadata_record(FEATURE, 0, {"name": "group.version", "feature_level": 1}), 9
    ),
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.some("record type", "version of PartitionRecord", "tag of FeatureLevelRecord")
def test_records_of_the_metadata_log(edited, capsys, name):
    (offset, *_) = set(append(metadata_logs(edited), (None, RECORDS[name])))
    log = metadata_logs(edited)[0]

    for command in ("metadata", "diff", "explain", "predict"):
        document, said = answer(capsys, command, edited)
        assert document["answer"]["state"] not in CALM | {"will-not-start", "damaged", "lost", "at-risk"}, command
        assert NEWER.search(said), command
        assert f"offset {offset}" in said, command
    document, said = answer(capsys, "dump", log, "--records")
    assert document["answer"]["state"] == "unknown"
    assert NEWER.search(said)
    document, _ = answer(capsys, "verify", edited)
    assert document["answer"]["state"] != "damaged"


@pytest.mark.parametrize("feature", [*NEWEST_FEATURE_LEVELS, "brand.new.version"])
@pytest.mark.some("metadata.version", "brand.new.version")
def test_levels_of_features(edited, capsys, feature):
    if feature == "kraft.version":
        pytest.skip("no record of the metadata but a control record has it")
    level = NEWEST_FEATURE_LEVELS.get(feature, 0) + 1
    value = encode_metadata_record(FEATURE, 0, {"name": feature, "feature_level": level})
    list(append(metadata_logs(edited), (None, value)))

    document, said = answer(capsys, "predict", edited)
    assert document["answer"]["state"] == "unknown"
    assert (document["kafka"], document["starts"][0]["loads_logs"]) == ("4.4 or later", False)
    assert NEWER.search(document["answer"]["headline"])
    assert "4.3" not in said
    for command in ("diff", "explain"):
        document, said = answer(capsys, command, edited)
        assert document["answer"]["state"] == "unknown"
        assert NEWER.search(said)
    document, said = answer(capsys, "metadata", edited)
    assert (document["answer"]["state"], document["problems"]) == ("behind", [])
    assert f'"level": {level}' in said


def test_a_newer_level_is_refused_by_a_release_that_is_named(edited, capsys):
    level = NEWEST_FEATURE_LEVELS["metadata.version"] + 1
    value = encode_metadata_record(FEATURE, 0, {"name": "metadata.version", "feature_level": level})
    list(append(metadata_logs(edited), (None, value)))

    document, said = answer(capsys, "predict", edited, "--kafka", "4.4.0")
    assert (document["answer"]["state"], document["kafka"]) == ("will-not-start", "4.4.0")
    assert f"No MetadataVersion with feature level {level}" in said
    document, _ = answer(capsys, "metadata", edited)
    assert f"metadata.version {level} (newer than 4.5-IV0)" in document["answer"]["headline"]


def checkpoint(version):
    return f"{version}\n0\n".encode()


FILES = {
    "meta.properties": lambda data: data.replace(b"version=1", b"version=2"),
    "replication-offset-checkpoint": lambda _: checkpoint(1),
    "recovery-point-offset-checkpoint": lambda _: checkpoint(1),
    "log-start-offset-checkpoint": lambda _: checkpoint(1),
    "cleaner-offset-checkpoint": lambda _: checkpoint(1),
    ".kafka_cleanshutdown": lambda data: data.replace(b'"version":0', b'"version":1'),
    "registrations-0/leader-epoch-checkpoint": lambda _: checkpoint(1),
    "registrations-0/partition.metadata": lambda data: data.replace(b"version: 0", b"version: 1"),
    "registrations-0/*.snapshot": lambda data: struct.pack(">h", 2) + data[2:],
    "__cluster_metadata-0/quorum-state": lambda data: re.sub(rb'"data_version":\d', b'"data_version":2', data),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.some("meta.properties", "registrations-0/leader-epoch-checkpoint")
def test_versions_of_files(edited, capsys, name):
    (path,) = list((edited / "broker-11").glob(name))[-1:]
    before = path.read_bytes()
    path.write_bytes(FILES[name](before))
    assert path.read_bytes() != before

    for command, arguments in (("verify", [edited]), ("dump", [path])):
        document, said = answer(capsys, command, *arguments)
        assert document["answer"]["state"] == "unknown", command
        assert NEWER.search(said), command
    for command in ("ls", "metadata", "groups", "transactions"):
        document, _ = answer(capsys, command, edited)
        assert document["answer"]["state"] not in {"damaged", "will-not-start"}, command
    for command in JUDGING:
        document, said = answer(capsys, command, edited)
        assert document["answer"]["state"] not in {"damaged", "will-not-start", "lost", "at-risk"}, command
        if name not in UNREAD_BY_DIFF:
            assert command == "predict" or NEWER.search(said), command
    document, said = answer(capsys, "predict", edited / "broker-11")
    if name not in UNREAD_BY_A_START:
        assert document["answer"]["state"] == "unknown"
        assert NEWER.search(said)
        document, _ = answer(capsys, "predict", edited / "broker-11", "--kafka", "4.4.0")
        assert document["kafka"] == "4.4.0"


UNREAD_BY_DIFF = {
    ".kafka_cleanshutdown",
    "cleaner-offset-checkpoint",
    "meta.properties",
    "__cluster_metadata-0/quorum-state",
    "registrations-0/*.snapshot",
}
UNREAD_BY_A_START = {
    ".kafka_cleanshutdown",
    # Since 3.7 any version of it is read.
    "registrations-0/partition.metadata",
}


def coordinator_values(tables, fields):
    """Keys and values of one more than the newest record type, and each value in a version that is one more than the newest."""
    newest = max(tables.keys)
    yield f"record type {newest + 1}", struct.pack(">h", newest + 1) + b"\0\x01g", struct.pack(">h", 0) + bytes(8)
    for number, table in tables.values.items():
        if number in tables.keys and number not in UNUSED:
            version = table.versions[-1] + 1
            key = encode_coordinator_record(tables, number, fields(tables.keys[number]))[0]
            yield f"version {version} of {table.name}", key, struct.pack(">h", version) + bytes(40)


UNUSED = {0, 4, 7, 9, 13, 15, 16, 21, 23}
"""Types that say nothing of positions or members, whatever their values hold, and that of the oldest commits, whose values are read as of the next type, too."""


def key_fields(table):
    """Values for the fields of a key."""
    values = {"string": "g", "int32": 0, "uuid": "AAAAAAAAAAAAAAAAAAAAAQ"}
    return {field.name: values.get(str(field.type), "g") for field in table.fields}


OF_GROUPS = list(coordinator_values(GROUP_TABLES, key_fields))
OF_TRANSACTIONS = list(coordinator_values(TXN_TABLES, key_fields))
OF_SHARES = list(coordinator_values(SHARE_TABLES, key_fields))


@pytest.mark.parametrize(("name", "key", "value"), OF_GROUPS, ids=[name for name, *_ in OF_GROUPS])
@pytest.mark.some(3)
def test_records_of_consumer_groups(edited, capsys, name, key, value):
    logs = sorted(edited.glob("broker-*/__consumer_offsets-0/*.log"))
    list(append(logs, (key, value)))

    document, said = answer(capsys, "groups", edited)
    assert document["answer"]["state"] == "unknown"
    assert any(NEWER.search(line) for line in document["answer"]["unknown"]), said
    document, said = answer(capsys, "dump", logs[0], "--records")
    assert document["answer"]["state"] == "unknown"
    assert NEWER.search(said)


@pytest.mark.parametrize(
    ("command", "topic", "records"),
    [("transactions", "__transaction_state", OF_TRANSACTIONS), ("groups", "__share_group_state", OF_SHARES)],
)
@pytest.mark.some(1)
def test_records_of_other_coordinators(edited, capsys, command, topic, records):
    for _, key, value in records:
        for broker in ("broker-11", "broker-12"):
            folder = edited / broker / f"{topic}-0"
            folder.mkdir(exist_ok=True)
            batch = build_record_batch(0, [(1_795_000_000_000, key, value)], partition_leader_epoch=0)
            (folder / f"{0:020}.log").write_bytes(encode_record_batch(batch))
        document, _ = answer(capsys, command, edited)
        assert document["answer"]["state"] == "unknown"
        assert any(NEWER.search(line) for line in document["answer"]["unknown"])


def test_control_records_of_the_metadata_log(edited, capsys):
    number = max(CONTROL_TABLES) + 1
    key, value = struct.pack(">hh", 0, number), struct.pack(">h", 0) + b"\0"
    voters = encode_control_record(ControlType.KRAFT_VERSION, {"k_raft_version": 1})
    control = 0x20
    list(append(metadata_logs(edited), (key, value), voters, attributes=control))

    for command in ("metadata", "diff", "explain"):
        document, said = answer(capsys, command, edited)
        assert document["answer"]["state"] == "unknown" or command == "metadata"
        assert f"control type {number} is newer than" in said


def batches_of(log):
    with open_evidence(log) as file:
        return [
            (int(row["position"]), int(row["length"]))
            for window in walk_segment(file, level=Level.CRC)
            for row in window.batches
        ]


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.some(1)
def test_batches_of_another_magic(edited, capsys, first):
    for log in edited.glob("broker-*/registrations-0/*.log"):
        data = bytearray(log.read_bytes())
        for position, _ in batches_of(log)[first:]:
            data[position + MAGIC] = NEWEST_MAGIC + 1
        log.write_bytes(data)

    for command, arguments in (("verify", [edited]), ("ls", [edited]), ("dump", [log]), ("dump", [log, "--records"])):
        document, said = answer(capsys, command, *arguments)
        assert document["answer"]["state"] == "unknown", command
        assert NEWER.search(said), command
        assert document["exit_code"] == 3
    for command in ("diff", "explain"):
        document, said = answer(capsys, command, edited)
        assert document["answer"]["state"] not in CALM, command
        assert NEWER.search(said), command
    document, _ = answer(capsys, "predict", edited)
    assert document["answer"]["state"] != "will-not-start"


def test_a_flipped_bit_in_the_magic_of_one_batch_is_damage(edited, capsys):
    (log, *_) = edited.glob("broker-*/registrations-0/*.log")
    data = bytearray(log.read_bytes())
    data[batches_of(log)[-1][0] + MAGIC] ^= 1
    log.write_bytes(data)

    document, said = answer(capsys, "verify", edited)
    assert document["answer"]["state"] == "damaged"
    assert not NEWER.search(said)


def test_a_codec(edited, capsys):
    for log in edited.glob("broker-*/registrations-0/*.log"):
        data = bytearray(log.read_bytes())
        position, length = batches_of(log)[-1]
        data[position + CRC_COVERED_POSITION + 1] |= Codec.ZSTD + 1
        checksum = crc32c(bytes(data[position + CRC_COVERED_POSITION : position + length]))
        data[position + CRC_POSITION : position + CRC_POSITION + 4] = struct.pack(">I", checksum)
        log.write_bytes(data)

    for command, arguments in (("verify", [edited]), ("dump", [log])):
        document, said = answer(capsys, command, *arguments)
        assert document["answer"]["state"] == "unknown", command
        assert NEWER.search(said), command


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.some(1)
def test_an_identity_of_a_later_version(edited, capsys, place):
    path = sorted(edited.rglob("meta.properties"))[place]
    path.write_text(path.read_text().replace("version=1", "version=2"))

    for command in JUDGING:
        document, said = answer(capsys, command, edited)
        assert document["answer"]["state"] not in CALM or document["exit_code"] != 0, command
        assert NEWER.search(said), command
