"""Records of `__consumer_offsets`, with bytes that a 4.3 broker wrote."""

import pytest

from kforensics.formats.messages.coordinators import (
    GROUP_TABLES,
    parse_assignment,
    parse_group_record,
    parse_subscription,
)
from kforensics.formats.messages.schema import Decoded, Undecoded
from tests.builders.messages import encode_coordinator_record

MEMBER_KEY = b"\x00\x05\x00\x07etl-848\x00\x16mpOLOMDpT7uDIpP1onTguw"
MEMBER_VALUE = b"\x00\x00\x00\x00\x08rdkafka\x0b/127.0.0.1\x02\x0bcodec-zstd\x01\x00\x04\x93\xe0\x00\x01\x00\x01\x00"


def test_member_of_a_consumer_group() -> None:
    record = parse_group_record(MEMBER_KEY, MEMBER_VALUE)

    member = {"group_id": "etl-848", "member_id": "mpOLOMDpT7uDIpP1onTguw"}
    assert Decoded("ConsumerGroupMemberMetadataKey", 5, member) == record.key
    assert (
        Decoded(
            "ConsumerGroupMemberMetadataValue",
            0,
            {
                "instance_id": None,
                "rack_id": None,
                "client_id": "rdkafka",
                "client_host": "/127.0.0.1",
                "subscribed_topic_names": ("codec-zstd",),
                "subscribed_topic_regex": "",
                "rebalance_timeout_ms": 300_000,
                "server_assignor": None,
                "classic_member_metadata": None,
            },
        )
        == record.value
    )
    assert isinstance(record.key, Decoded)
    assert isinstance(record.value, Decoded)
    written = encode_coordinator_record(GROUP_TABLES, 5, record.key.fields, 0, record.value.fields)
    assert written == (MEMBER_KEY, MEMBER_VALUE)


def test_subscription_and_assignment_of_a_classic_member() -> None:
    subscribed = parse_subscription(
        b"\x00\x03\x00\x00\x00\x01\x00\tcodec-lz4\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00"
    )
    assigned = parse_assignment(
        b"\x00\x00\x00\x00\x00\x01\x00\tcodec-lz4\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"
    )

    assert isinstance(subscribed, Decoded)
    assert subscribed.fields["topics"] == ("codec-lz4",)
    assert subscribed.fields["generation_id"] == -1
    assert isinstance(assigned, Decoded)
    assert assigned.fields["assigned_partitions"] == ({"topic": "codec-lz4", "partitions": (0,)},)
    assert isinstance(parse_assignment(b""), Undecoded)


def test_tombstone() -> None:
    key, value = encode_coordinator_record(GROUP_TABLES, 1, {"group": "g", "topic": "t", "partition": 3})

    record = parse_group_record(key, value)

    assert Decoded("OffsetCommitKey", 1, {"group": "g", "topic": "t", "partition": 3}) == record.key
    assert record.value is None


@pytest.mark.parametrize("version", range(5))
def test_offset_commits_of_every_version(version: int) -> None:
    fields = {"offset": 90, "metadata": "m", "commit_timestamp": 1}
    record = parse_group_record(*encode_coordinator_record(GROUP_TABLES, 1, {"group": "g"}, version, fields))

    assert isinstance(record.value, Decoded)
    assert fields.items() <= record.value.fields.items()
    assert ("leader_epoch" in record.value.fields) == (version >= 3)
    assert ("expire_timestamp" in record.value.fields) == (version == 1)
    assert ("topic_id" in record.value.fields) == (version >= 4)


def test_legacy_key_with_a_newer_value() -> None:
    key, _ = encode_coordinator_record(GROUP_TABLES, 0, {"group": "g", "topic": "t", "partition": 0})
    _, value = encode_coordinator_record(GROUP_TABLES, 1, {}, 1, {"offset": 5})

    record = parse_group_record(key, value)

    assert (record.key.name, record.key.version) == ("LegacyOffsetCommitKey", 0)
    assert isinstance(record.value, Decoded)
    assert (record.value.name, record.value.version, record.value.fields["offset"]) == ("OffsetCommitValue", 1, 5)


@pytest.mark.parametrize("record_type", GROUP_TABLES.keys)
def test_every_type(record_type: int) -> None:
    if record_type not in GROUP_TABLES.values:
        key, _ = encode_coordinator_record(GROUP_TABLES, record_type, {})
        assert isinstance(parse_group_record(key, b"\x00\x00\x00").value, Undecoded)
        return
    record = parse_group_record(*encode_coordinator_record(GROUP_TABLES, record_type, {}, 0, {}))

    assert record_type == record.key.version
    assert isinstance(record.value, Decoded)
    assert record.value.trailing == 0


@pytest.mark.parametrize("key", [None, b"", b"\x00", b"\x00\x63", b"\x00\x01\x7f\xff"])
def test_keys_that_are_not_understood(key: bytes | None) -> None:
    record = parse_group_record(key, b"\x00")

    assert isinstance(record.key, Undecoded)
    assert isinstance(record.value, Undecoded)


def test_legacy_key_with_a_value_of_no_version() -> None:
    key, _ = encode_coordinator_record(GROUP_TABLES, 0, {"group": "g", "topic": "t", "partition": 0})

    assert parse_group_record(key, b"\x00\x63").value == Undecoded(
        "version 99 is newer than 0, which kforensics knows", "LegacyOffsetCommitValue", 99, is_newer=True
    )


def test_the_fields_that_4_4_added_to_streams_groups() -> None:
    fields = {"epoch": 3, "metadata_hash": 1, "stored_description_topology_epoch": 5}
    key, value = encode_coordinator_record(GROUP_TABLES, 17, {"group_id": "g"}, 0, fields)

    parsed = parse_group_record(key, value).value
    assert isinstance(parsed, Decoded)
    assert parsed.fields["stored_description_topology_epoch"] == 5
    assert parsed.fields["failed_description_topology_epoch"] == -1
    assert "unknown_tagged_fields" not in parsed.fields
