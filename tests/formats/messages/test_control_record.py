"""Control records, against bytes that brokers wrote."""

import pytest

from kforensics.formats.messages.control import CONTROL_TABLES, ControlType, encode_control_record, parse_control_record
from kforensics.formats.messages.schema import Decoded, Undecoded


def test_transaction_markers() -> None:
    record = parse_control_record(b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x07")

    assert ControlType.COMMIT is record.type
    assert Decoded("EndTxnMarker", 0, {"version": 0, "coordinator_epoch": 7}) == record.value
    assert ControlType.ABORT is parse_control_record(b"\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00\x07").type


def test_leader_change_carries_its_own_version() -> None:
    voter = {"voter_id": 100, "voter_directory_id": "LSvLnuonRtygLtodZdMKvg"}
    for version in (0, 1):
        voters = ({key: value for key, value in voter.items() if version or key == "voter_id"},)
        fields = {"version": version, "leader_id": 100, "voters": voters, "granting_voters": voters}

        record = parse_control_record(*encode_control_record(ControlType.LEADER_CHANGE, fields))

        assert record.type is ControlType.LEADER_CHANGE
        assert Decoded("LeaderChangeMessage", version, fields) == record.value


@pytest.mark.parametrize("kind", [kind for kind, _ in CONTROL_TABLES.values()])
def test_every_type_round_trips(kind: ControlType) -> None:
    record = parse_control_record(*encode_control_record(kind, {}))

    assert kind is record.type
    assert isinstance(record.value, Decoded)
    assert record.value.trailing == 0


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (None, None, ControlType.UNKNOWN),
        (b"\x00", b"", ControlType.UNKNOWN),
        (b"\x00\x00\x00\x63", b"\x00\x00", ControlType.UNKNOWN),
        (b"\x00\x00\x00\x02", None, ControlType.LEADER_CHANGE),
        (b"\x00\x00\x00\x02", b"\x00\x09\x00", ControlType.LEADER_CHANGE),
        (b"\x00\x00\x00\x01", b"\x00\x00\x00", ControlType.COMMIT),
    ],
)
def test_what_is_not_understood_is_named(key: bytes | None, value: bytes | None, kind: ControlType) -> None:
    record = parse_control_record(key, value)

    assert kind is record.type
    assert isinstance(record.value, Undecoded)
