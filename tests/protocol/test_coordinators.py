from hypothesis import given
from hypothesis import strategies as st

from kforensics.protocol.coordinators import TransactionStatus, coordinator_partition, is_late


def java_hash(text):
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (value * 31 + unit) % (1 << 32)
    return value - (1 << 32) if value >> 31 else value


def test_the_hash_is_that_of_java():
    assert coordinator_partition("abc", 50) == 96354 % 50
    assert coordinator_partition("console-consumer-58063", 50) == abs(java_hash("console-consumer-58063")) % 50
    # The hash of this is the smallest int, of which Utils.abs makes 0.
    assert java_hash("polygenelubricants") == -(1 << 31)
    assert coordinator_partition("polygenelubricants", 50) == 0
    assert coordinator_partition(b"caf\xc3\xa9", 7) == coordinator_partition("café", 7)


@given(text=st.text(max_size=12), count=st.integers(1, 60))
def test_every_name_has_a_partition(text, count):
    assert coordinator_partition(text, count) == (0 if java_hash(text) == -(1 << 31) else abs(java_hash(text)) % count)


def test_a_transaction_is_late_only_after_the_time_its_coordinator_may_take():
    assert not is_late(started_ms=0, timeout_ms=60_000, now_ms=360_000)
    assert is_late(started_ms=0, timeout_ms=60_000, now_ms=360_001)


def test_commits_are_decided_in_two_states():
    assert {one.name for one in TransactionStatus if one.commits} == {"PREPARE_COMMIT", "COMPLETE_COMMIT"}
    assert {one.name for one in TransactionStatus if one.is_complete} == {"COMPLETE_COMMIT", "COMPLETE_ABORT"}
