"""`partition.metadata`, `quorum-state` and `.kafka_cleanshutdown`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent, DamageKind, Gravity
from kforensics.errors import FormatError, UnsupportedFormat
from kforensics.formats.checkpoint.json_files import (
    CleanShutdown,
    QuorumState,
    encode_clean_shutdown,
    encode_quorum_state,
    parse_clean_shutdown,
    parse_quorum_state,
)
from kforensics.formats.checkpoint.properties import (
    ZERO_UUID,
    PartitionMetadata,
    encode_partition_metadata,
    parse_partition_metadata,
)
from kforensics.formats.primitives.numbers import uuid_bytes, uuid_text
from kforensics.formats.primitives.text_lines import TEXT_FILE_LIMIT, beyond_limit
from kforensics.simulation.broker_files import METADATA_TOPIC_ID

UUIDS = st.binary(min_size=16, max_size=16).map(uuid_text)
NUMBERS = st.integers(0, 2**31 - 1)


@given(UUIDS.filter(lambda text: text != ZERO_UUID))
def test_partition_metadata_round_trip(topic_id):
    data = encode_partition_metadata(PartitionMetadata(version=0, topic_id=topic_id))
    assert not data.endswith(b"\n")
    for form in (data, data + b"\n"):
        assert parse_partition_metadata(form) == PartitionMetadata(version=0, topic_id=topic_id)
    assert uuid_text(uuid_bytes(topic_id)) == topic_id


@pytest.mark.parametrize("topic_id", [ZERO_UUID, "short", "AAAAAAAAAAAAAAAAAAAAAR", "", "AAAAAAAAAAAAAAAAAAAA=="])
def test_partition_metadata_with_an_id_that_is_none(topic_id):
    parsed = parse_partition_metadata(f"version: 0\ntopic_id: {topic_id}".encode())
    assert parsed.topic_id is Absent.UNREADABLE
    assert [place.found.startswith("line 2: ") for place in parsed.damage] == [True]


def test_partition_metadata_with_lines_missing_or_added():
    assert len(parse_partition_metadata(b"version: 0\n").damage) == 1
    assert len(parse_partition_metadata(f"topic_id: {METADATA_TOPIC_ID}".encode()).damage) == 1
    assert len(parse_partition_metadata(f"version: x\ntopic_id: {METADATA_TOPIC_ID}\n!".encode()).damage) == 2
    with pytest.raises(UnsupportedFormat):
        parse_partition_metadata(b"version: 1\n")
    with pytest.raises(FormatError):
        parse_partition_metadata(b"")


OPTIONAL = st.one_of(NUMBERS, st.just(Absent.NOT_WRITTEN))
VERSION_0 = st.builds(
    QuorumState,
    data_version=st.just(0),
    leader_id=OPTIONAL,
    leader_epoch=NUMBERS,
    voted_id=OPTIONAL,
    cluster_id=st.one_of(UUIDS, st.just(Absent.NOT_WRITTEN)),
    applied_offset=NUMBERS,
    current_voters=st.lists(NUMBERS, max_size=5).map(tuple),
)
VERSION_1 = st.builds(
    QuorumState,
    data_version=st.just(1),
    leader_id=OPTIONAL,
    leader_epoch=NUMBERS,
    voted_id=OPTIONAL,
    voted_directory_id=st.one_of(UUIDS.filter(lambda text: text != ZERO_UUID), st.just(Absent.NOT_WRITTEN)),
)


@given(st.one_of(VERSION_0, VERSION_1))
def test_quorum_state_round_trip(state):
    assert parse_quorum_state(encode_quorum_state(state)) == state


def test_quorum_state_as_recorded():
    data = b'{"clusterId":"","leaderId":100,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":100}],"data_version":0}'
    state = parse_quorum_state(data)
    assert (state.leader_id, state.leader_epoch, state.voted_id, state.current_voters) == (
        100,
        1,
        Absent.NOT_WRITTEN,
        (100,),
    )
    assert encode_quorum_state(state) == data


@pytest.mark.parametrize(
    "data",
    [b'{"data_version":1}', b'{"data_version":0,"leaderId":true,"leaderEpoch":-1,"votedId":"1","currentVoters":[1]}'],
)
def test_quorum_state_with_wrong_fields(data):
    state = parse_quorum_state(data)
    assert state.leader_epoch is Absent.UNREADABLE
    assert state.damage


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        bytes(40),
        b"\xff",
        b"[" * 10_000,
        b'{"data_version":2}',
        b'{"data_version":true}',
        b" " * 2_000_000,
    ],
)
def test_quorum_state_that_is_none(data):
    with pytest.raises(FormatError):
        parse_quorum_state(data)


@given(st.one_of(NUMBERS, st.sampled_from([Absent.NOT_APPLICABLE, Absent.NOT_WRITTEN])))
def test_clean_shutdown_round_trip(broker_epoch):
    marker = CleanShutdown(broker_epoch=broker_epoch)
    assert parse_clean_shutdown(encode_clean_shutdown(marker)) == marker


@pytest.mark.parametrize(
    "data", [b"x", b"{}", b'{"version":-1,"brokerEpoch":1}', b"[" * 5_000, b'{"version":0,"brokerEpoch":-2}']
)
def test_clean_shutdown_counts_whatever_it_holds(data):
    marker = parse_clean_shutdown(data)
    assert marker.broker_epoch is Absent.UNREADABLE
    assert [place.gravity for place in marker.damage] == [Gravity.STALE]


@given(st.binary(max_size=100))
def test_any_bytes(data):
    for parse in (parse_clean_shutdown, parse_quorum_state, parse_partition_metadata):
        try:
            parse(data)
        except FormatError:
            continue


def test_what_stands_behind_the_limit_of_a_text_file_is_named():
    (damage,) = beyond_limit(TEXT_FILE_LIMIT + 5)

    assert (damage.kind, damage.span) == (DamageKind.TOO_LARGE, (TEXT_FILE_LIMIT, 5))
    assert beyond_limit(TEXT_FILE_LIMIT) == ()
