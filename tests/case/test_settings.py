"""What topics are created with counts where no metadata log says their settings."""

from types import SimpleNamespace
from typing import Any

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


def test_what_the_file_of_a_broker_says_is_no_setting_of_a_topic_that_is_not_here():
    found = Settings({}, Surroundings(None, (), ({"broker.id": "1", "log.retention.minutes": "5"},)), 1, 1)

    assert (300_000, False) == (found.retention("orders").policy.retention_ms, found.retention("orders").is_known)


def _settings(printed):
    history: Any = SimpleNamespace(
        start_offset=0,
        gaps=(),
        batches=(),
        problems=(),
        damage=(),
        configs=(),
        latest=lambda: SimpleNamespace(configs={}),
    )
    around = Surroundings(history, (), ({"node.id": "1", "log.retention.hours": "1"},), printed={"1": printed})
    return Settings({}, around, 1, 1)


def test_what_a_broker_printed_at_its_starts_is_what_it_had_then_and_its_file_is_that_of_today():
    found = _settings(
        [(50, {"log.retention.hours": "168"}), (90, {"log.retention.ms": "60000", "log.retention.hours": "168"})]
    ).retentions("orders")

    assert [(one.since_ms, one.policy.retention_ms, one.is_dated) for one in found] == [
        (0, 3_600_000, False),
        (50, WEEK_MS, True),
        (90, 60_000, True),
    ]
    assert [one.is_dated for one in _settings([]).retentions("orders")] == [False]
