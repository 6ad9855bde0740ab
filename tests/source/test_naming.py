import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.source.naming import (
    DirectoryState,
    FileKind,
    FileName,
    FileSuffix,
    PartitionDirectoryName,
    parse_file_name,
    parse_partition_directory,
)

HEX = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("name", "topic", "partition", "state"),
    [
        ("orders-0", "orders", 0, DirectoryState.LIVE),
        ("t07-g-11", "t07-g", 11, DirectoryState.LIVE),
        ("a.b_c-D-2147483647", "a.b_c-D", 2**31 - 1, DirectoryState.LIVE),
        ("--1", "-", 1, DirectoryState.LIVE),
        ("...-0", "...", 0, DirectoryState.LIVE),
        ("__cluster_metadata-0", "__cluster_metadata", 0, DirectoryState.LIVE),
        ("@metadata-0", "@metadata", 0, DirectoryState.LIVE),
        (f"orders-0.{HEX}-delete", "orders", 0, DirectoryState.DELETED),
        (f"orders-0.{HEX}-future", "orders", 0, DirectoryState.FUTURE),
        (f"ord.ers-10.{HEX}-stray", "ord.ers", 10, DirectoryState.STRAY),
    ],
)
def test_partition_directories(name, topic, partition, state):
    parsed = parse_partition_directory(name)

    assert parsed is not None
    assert (topic, partition, state) == (parsed.topic, parsed.partition, parsed.state)
    assert (HEX if "." in name and HEX in name else Absent.NOT_APPLICABLE) == parsed.unique_id
    assert ("metadata" in name) == parsed.is_metadata
    assert f"{topic}-{partition}" == str(parsed.topic_partition)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "orders",
        "orders-",
        "-0",
        "orders-00",
        "orders-01",
        "orders--",
        "orders-2147483648",
        "orders-\u0663",
        "or ders-0",
        "orders-0\n",
        ".-0",
        "..-0",
        "@other-0",
        "lost+found",
        "remote-log-index-cache",
        f"orders-0.{HEX}-deleted",
        f"orders-0.{HEX[:-1]}-delete",
        f"orders-0.{HEX.upper()}-delete",
        f"orders.{HEX}-delete",
        "x" * 250 + "-0",
        "\udcff-0",
    ],
)
def test_what_is_no_partition_directory(name):
    assert parse_partition_directory(name) is None


def test_a_renamed_directory_has_what_the_broker_left_of_its_topic():
    # 249 characters of topic don't fit beside "-0." and 39 more: the broker keeps 255 - 41.
    cut = "x" * (255 - len(f"-0.{HEX}-delete"))

    deleted = parse_partition_directory(f"{cut}-0.{HEX}-delete")
    future = parse_partition_directory(f"{'x' * 249}-0.{HEX}-future")

    assert deleted is not None
    assert cut == deleted.topic
    assert future is not None
    assert future.topic == "x" * 249


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000042.log", FileName(kind=FileKind.SEGMENT, base_offset=42)),
        ("00000000000000000042.index", FileName(kind=FileKind.OFFSET_INDEX, base_offset=42)),
        ("00000000000000000042.timeindex", FileName(kind=FileKind.TIME_INDEX, base_offset=42)),
        ("00000000000000000042.txnindex", FileName(kind=FileKind.TXN_INDEX, base_offset=42)),
        ("00000000000000000042.snapshot", FileName(kind=FileKind.PRODUCER_SNAPSHOT, base_offset=42)),
        ("09223372036854775807.log", FileName(kind=FileKind.SEGMENT, base_offset=2**63 - 1)),
        (
            "00000000000000000042.log.deleted",
            FileName(kind=FileKind.SEGMENT, base_offset=42, suffix=FileSuffix.DELETED),
        ),
        (
            "00000000000000000042.log.cleaned",
            FileName(kind=FileKind.SEGMENT, base_offset=42, suffix=FileSuffix.CLEANED),
        ),
        (
            "00000000000000000042.index.swap",
            FileName(kind=FileKind.OFFSET_INDEX, base_offset=42, suffix=FileSuffix.SWAP),
        ),
        (
            "00000000000000000042.snapshot.tmp",
            FileName(kind=FileKind.PRODUCER_SNAPSHOT, base_offset=42, suffix=FileSuffix.TMP),
        ),
        (
            "00000000000000000098-0000000003.checkpoint",
            FileName(kind=FileKind.METADATA_SNAPSHOT, base_offset=98, leader_epoch=3),
        ),
        (
            "00000000000000000098-0000000003.checkpoint.deleted",
            FileName(kind=FileKind.METADATA_SNAPSHOT, base_offset=98, leader_epoch=3, suffix=FileSuffix.DELETED),
        ),
        (
            "00000000000000000098-0000000001-473585985759823707.checkpoint.part",
            FileName(kind=FileKind.METADATA_SNAPSHOT, base_offset=98, leader_epoch=1, suffix=FileSuffix.PART),
        ),
        (
            "210__P9KE8GjT06VWBIoDMmiUw.txnindex",
            FileName(kind=FileKind.TXN_INDEX, base_offset=210, remote_segment_id="_P9KE8GjT06VWBIoDMmiUw"),
        ),
        (
            "0_n_uRyimoTPSsvtnxijNPsA.index.deleted",
            FileName(
                kind=FileKind.OFFSET_INDEX,
                base_offset=0,
                remote_segment_id="n_uRyimoTPSsvtnxijNPsA",
                suffix=FileSuffix.DELETED,
            ),
        ),
        ("leader-epoch-checkpoint", FileName(kind=FileKind.LEADER_EPOCH_CHECKPOINT)),
        ("leader-epoch-checkpoint.tmp", FileName(kind=FileKind.LEADER_EPOCH_CHECKPOINT, suffix=FileSuffix.TMP)),
        ("replication-offset-checkpoint", FileName(kind=FileKind.OFFSET_CHECKPOINT)),
        ("recovery-point-offset-checkpoint.tmp", FileName(kind=FileKind.OFFSET_CHECKPOINT, suffix=FileSuffix.TMP)),
        ("log-start-offset-checkpoint", FileName(kind=FileKind.OFFSET_CHECKPOINT)),
        ("cleaner-offset-checkpoint", FileName(kind=FileKind.OFFSET_CHECKPOINT)),
        ("meta.properties", FileName(kind=FileKind.META_PROPERTIES)),
        ("partition.metadata", FileName(kind=FileKind.PARTITION_METADATA)),
        ("quorum-state.tmp", FileName(kind=FileKind.QUORUM_STATE, suffix=FileSuffix.TMP)),
        ("bootstrap.checkpoint", FileName(kind=FileKind.METADATA_SNAPSHOT)),
        (".kafka_cleanshutdown", FileName(kind=FileKind.CLEAN_SHUTDOWN)),
        (".lock", FileName(kind=FileKind.LOCK)),
        ("remote_log_snapshot", FileName(kind=FileKind.REMOTE_LOG_STATE)),
        ("_rlmm_committed_offsets", FileName(kind=FileKind.REMOTE_LOG_STATE)),
        ("server.log", FileName(kind=FileKind.LOG_FILE)),
        ("server.log.2026-11-21-06", FileName(kind=FileKind.LOG_FILE)),
        ("state-change.log", FileName(kind=FileKind.LOG_FILE)),
        ("kafkaServer.out", FileName(kind=FileKind.LOG_FILE)),
        ("server.properties", FileName(kind=FileKind.SERVER_PROPERTIES)),
    ],
)
def test_files(name, expected):
    assert expected == parse_file_name(name)
    assert (expected.suffix is not FileSuffix.NONE) == expected.is_transient


@pytest.mark.parametrize(
    "name",
    [
        "",
        "42.log",
        "0000000000000000042.log",
        "000000000000000000042.log",
        "99999999999999999999.log",
        "0000000000000000004x.log",
        "00000000000000000042.log.part",
        "00000000000000000042.log\n",
        "00000000000000000042.txt",
        "\u0660" * 20 + ".log",
        "00000000000000000098-0000000003-1.checkpoint",
        "00000000000000000098-0000000003.checkpoint.part",
        "00000000000000000098-0000000003.checkpoint.swap",
        "99999999999999999998-0000000003.checkpoint",
        "00000000000000000098-2147483648.checkpoint",
        "0_short.index",
        "00_n_uRyimoTPSsvtnxijNPsA.index",
        "0_n_uRyimoTPSsvtnxijNPsA.log",
        "meta.properties.swap",
        "leader-epoch-checkpoint.bak",
        "core.12345",
        "\udcff",
    ],
)
def test_what_no_broker_writes_is_unknown(name):
    assert FileName(kind=FileKind.UNKNOWN) == parse_file_name(name)


@given(st.text(max_size=300))
@example("server.log" + "-" * 240 + "!")
@example("-" * 255)
def test_any_name_is_read_without_failing(name):
    assert parse_file_name(name).kind in FileKind
    parse_partition_directory(name)


@given(
    topic=st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=100).filter(
        lambda t: t not in {".", ".."}
    ),
    partition=st.integers(0, 2**31 - 1),
    state=st.sampled_from(["", "-delete", "-future", "-stray"]),
)
def test_what_a_broker_names_is_read_back(topic, partition, state):
    name = f"{topic}-{partition}" + (f".{HEX}{state}" if state else "")

    parsed = parse_partition_directory(name)

    assert isinstance(parsed, PartitionDirectoryName)
    assert (topic, partition) == (parsed.topic, parsed.partition)
