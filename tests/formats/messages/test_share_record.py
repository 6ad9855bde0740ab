"""Records of `__share_group_state`."""

import pytest

from kforensics.formats.messages.coordinators import SHARE_TABLES, parse_share_record
from kforensics.formats.messages.schema import Decoded
from tests.builders.messages import encode_coordinator_record


@pytest.mark.parametrize(("record_type", "name"), [(0, "ShareSnapshot"), (1, "ShareUpdate")])
def test_round_trip(record_type: int, name: str) -> None:
    key = {"group_id": "share-1", "topic_id": "VeQ1JIcjQjGfATFHgFcNog", "partition": 2}
    batches = ({"first_offset": 1, "last_offset": 4, "delivery_state": 2, "delivery_count": 1},)
    value = {"snapshot_epoch": 4, "start_offset": 9, "state_batches": batches}
    record = parse_share_record(*encode_coordinator_record(SHARE_TABLES, record_type, key, 0, value))

    assert Decoded(f"{name}Key", record_type, key) == record.key
    assert isinstance(record.value, Decoded)
    assert f"{name}Value" == record.value.name
    assert value.items() <= record.value.fields.items()
    assert record.value.fields["delivery_complete_count"] == -1
