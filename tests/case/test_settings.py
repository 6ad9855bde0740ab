"""What topics are created with counts where no metadata log says their settings."""

import pytest

from kforensics.case.settings import WEEK_MS, Settings, Surroundings


@pytest.mark.parametrize(
    ("topic", "deletes", "retention_ms"),
    [
        ("__share_group_state", True, -1),
        ("__consumer_offsets", False, WEEK_MS),
        ("__transaction_state", False, WEEK_MS),
        ("orders", True, WEEK_MS),
    ],
)
def test_the_retention_of_a_topic_whose_settings_are_not_known(topic, deletes, retention_ms):
    found = Settings({}, Surroundings(None, (), ()), 1, 3).retention(topic)

    assert (deletes, retention_ms, False) == (found.policy.deletes, found.policy.retention_ms, found.is_known)
    given = Settings({"retention.ms": "5"}, Surroundings(None, (), ()), 1, 3).retention(topic)
    assert 5 == given.policy.retention_ms
