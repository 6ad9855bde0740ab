"""What a start does not take of its settings, held against what `KafkaConfig` of real releases threw."""

import json
from pathlib import Path

import pytest

from kforensics.commands.capturing.redacting import without_secrets
from kforensics.damage import Absent
from kforensics.protocol.loading.settings import never_ready, refuse_topic_settings, refuse_values
from kforensics.protocol.versions import KafkaVersion
from tests.oracle.loading.settings import JUDGED_NODES, NAMES, OF_A_NODE, values_of

JUDGED = json.loads(Path(__file__).with_name("judged-settings.json").read_text())
"""The versions that threw, by setting, value and `CLASS: message`; written by `tests.oracle.loading.settings`."""
VERSIONS = sorted(
    {version for values in JUDGED.values() for thrown in values.values() for one in thrown.values() for version in one}
)
OLD_WORDS, WORDS = "equal or greater than", "greater than or equal to"
"""The same message, before and since 3.0."""


@pytest.mark.parametrize("version", VERSIONS)
def test_values_are_refused_as_kafka_refuses_them(version):
    different = []
    for name in NAMES:
        for value in values_of(name):
            thrown = JUDGED.get(name, {}).get(value, {})
            expected = next(
                (words.replace(OLD_WORDS, WORDS) for words, versions in thrown.items() if version in versions), None
            )
            found = refuse_values(KafkaVersion(*map(int, version.split("."))), {name: value})
            said = found and f"{found.exception}: {found.reason}"
            if said != expected:
                different.append((name, value, expected, said))

    assert different == []


def test_the_versions_that_judged_are_of_all_generations():
    assert {"0.10.2.2", "1.1.1", "2.8.1", "3.9.1", "4.1.0"} <= set(VERSIONS)


def test_a_value_that_is_replaced_from_elsewhere_is_in_order():
    values = {"log.retention.hours": "${env:HOURS}", "config.providers": "env"}

    assert refuse_values(KafkaVersion(4, 1), values) is None
    assert refuse_values(KafkaVersion(4, 1), {**values, "log.segment.bytes": "x"}) is not None


def test_a_value_that_a_capture_hides_is_in_order():
    hidden = without_secrets(b"delegation.token.max.lifetime.ms=604800000\nnode.id=1\n")
    values = dict(line.split("=") for line in hidden.decode().splitlines())
    pseudonym = {
        "compression.type": f"value-{'a' * 24}",
        "replica.lag.time.max.ms": "*",
        "process.roles": "broker",
        "node.id": "1",
    }
    assert refuse_values(KafkaVersion(4, 1), pseudonym) is None
    assert refuse_values(KafkaVersion(4, 1), {**pseudonym, "listeners": f"value-{'a' * 24}"}, 1) is None
    assert set(values["delegation.token.max.lifetime.ms"]) == {"*"}
    assert refuse_values(KafkaVersion(4, 1), values) is None
    assert refuse_values(KafkaVersion(4, 1), {"delegation.token.max.lifetime.ms": "0"}) is not None


def test_with_some_values_a_broker_never_gets_ready():
    assert never_ready({"broker.heartbeat.interval.ms": "0"}) == "broker.heartbeat.interval.ms=0"
    assert never_ready({"request.timeout.ms": "-1", "broker.heartbeat.interval.ms": "1"}) == "request.timeout.ms=-1"
    assert not never_ready({"request.timeout.ms": "0"})
    for asked in ((3, 9), (4, 4)):
        assert refuse_values(KafkaVersion(*asked), {"request.timeout.ms": "-1"}) is None, "it ends at no certain point"
        assert refuse_values(KafkaVersion(*asked), {"controller.quorum.fetch.timeout.ms": "-1"}) is not None


def test_the_first_of_three_retention_times_counts():
    assert refuse_values(KafkaVersion(4, 1), {"log.retention.ms": "5", "log.retention.hours": "0"}) is None
    assert refuse_values(KafkaVersion(4, 1), {"log.retention.minutes": "0", "log.retention.hours": "5"}) is not None


@pytest.mark.parametrize("value", ["1" * 5_000, "-" * 100, "٣", "0x10", "1 2"])
def test_what_is_no_number_is_refused_and_shown_in_short(value):
    found = refuse_values(KafkaVersion(4, 1), {"log.retention.hours": value})

    assert found
    assert found.exception == "ConfigException"
    assert len(found.reason) < 200


@pytest.mark.parametrize(
    ("version", "of_topics", "refused"),
    [
        ((3, 9), {"t": "4000"}, None),
        ((4, 0), {"t": "4000"}, None),
        ((4, 1), {"t": "1048576"}, None),
        (
            (3, 3),
            {"t": "13"},
            "Invalid value 13 for configuration segment.bytes: Value must be at least 14 (a setting of topic t)",
        ),
        (
            (4, 1),
            {"t": "4k"},
            "Invalid value 4k for configuration segment.bytes: Not a number of type INT (a setting of topic t)",
        ),
        (
            (4, 1),
            {"u": "9", "t": "4000"},
            "Invalid value 4000 for configuration segment.bytes: Value must be at least 1048576 (a setting of topic t and 1 more)",
        ),
    ],
)
def test_segments_of_topics_smaller_than_a_release_takes_end_its_start(version, of_topics, refused):
    found = refuse_topic_settings(
        KafkaVersion(*version), {topic: {"segment.bytes": one} for topic, one in of_topics.items()}
    )

    assert (found and found.reason) == refused
    assert (found and found.exception) == (refused and "ConfigException")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("cleanup.policy", "compress", "String must be one of: compact, delete"),
        ("cleanup.policy", "compact, delete", ""),
        ("retention.ms", "many", "Not a number of type LONG"),
        ("retention.ms", "-1", ""),
        ("max.message.bytes", "-1", "Value must be at least 0"),
        ("local.retention.ms", "-9", "Value must be at least -2"),
        ("retention.ms", "1" * 5_000, "Not a number of type LONG"),
        ("wish", "many", ""),
    ],
)
def test_a_setting_of_a_topic_that_kafka_does_not_take_ends_a_start(name, value, problem):
    found = refuse_topic_settings(KafkaVersion(3, 9), {"t": {name: value}})
    assert (found is not None) == bool(problem)
    assert found is None or problem in found.reason


def test_a_start_needs_a_log_directory_and_a_thread_that_recovers():
    for values, exception in (
        ({"log.dirs": " "}, "IllegalArgumentException"),
        ({"num.recovery.threads.per.data.dir": "0"}, "ConfigException"),
        ({"num.recovery.threads.per.data.dir": "1", "log.dirs": "/a"}, None),
    ):
        found = refuse_values(KafkaVersion(4, 1), values)
        assert (found and found.exception) == exception
    found = refuse_values(KafkaVersion(4, 4), {"log.dirs": ""})
    assert found is not None
    assert found.exception == "ConfigException"


def test_a_log_directory_that_is_named_twice_matters_to_a_broker_before_4_4():
    twice = {"log.dirs": "/a, /b,/a", "node.id": "1"}
    assert refuse_values(KafkaVersion(4, 4), twice) is None
    assert refuse_values(KafkaVersion(4, 1), {**twice, "process.roles": "controller"}) is None
    found = refuse_values(KafkaVersion(4, 1), {**twice, "process.roles": "broker"})
    assert found is not None
    assert found.reason == "Duplicate log directory found: /a"
    by_id = {"log.dirs": "/a,/a/"}
    assert [bool(refuse_values(KafkaVersion(3, minor), by_id)) for minor in (6, 7)] == [True, False]


@pytest.mark.parametrize("version", ["3.3.2", "3.7.1", "3.9.1", "4.1.0", "4.4.0"])
def test_settings_of_nodes_without_zookeeper_are_refused_as_kafka_refuses_them(version):
    different = []
    asked = KafkaVersion(*map(int, version.split(".")))
    for case in json.loads(JUDGED_NODES.read_text()):
        values = {name: value for name, value in {**OF_A_NODE, **case["given"]}.items() if value is not None}
        found = refuse_values(asked, values, 1)
        # What two names of one log directory do is no matter of `KafkaConfig`.
        said = "" if found is None or found.exception == "KafkaException" else found.exception
        if said != case["thrown"][version]:
            different.append((case, said, found))

    assert different == []


@pytest.mark.parametrize(
    ("given", "versions", "exception"),
    [
        ({}, "", ""),
        ({"listeners": "P://:9092"}, "1.1 2.8 3.3 3.9", "IllegalArgumentException"),
        ({"listeners": "P:9092"}, "1.1 2.8 3.3 3.9", "IllegalArgumentException"),
        ({"listeners": " "}, "1.1 2.8 3.3 3.9", "IllegalArgumentException"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "1.1 2.8 3.3 3.9", "IllegalArgumentException"),
        ({"listener.security.protocol.map": ""}, "1.1 2.8 3.3 3.9", "IllegalArgumentException"),
        ({"inter.broker.listener.name": "X"}, "1.1 2.8 3.3 3.9", "ConfigException"),
        ({"security.inter.broker.protocol": "SSL"}, "1.1 2.8 3.3 3.9", "IllegalArgumentException"),
        ({"control.plane.listener.name": "X"}, "2.8 3.3 3.9", "ConfigException"),
        ({"control.plane.listener.name": "PLAINTEXT"}, "2.8 3.3 3.9", "IllegalArgumentException"),
        ({"controller.quorum.voters": "one@h:1"}, "2.8 3.3 3.9", "ConfigException"),
        ({"controller.quorum.voters": "@h:1"}, "2.8 3.3 3.9", "ConfigException"),
        ({"controller.listener.names": "X"}, "3.3 3.9", "IllegalArgumentException"),
        ({"node.id": "2"}, "3.3 3.9", "ConfigException"),
        ({"zookeeper.metadata.migration.enable": "true"}, "3.9", "ConfigException"),
        ({"broker.id": "2000"}, "1.1 2.8 3.3 3.9", "IllegalArgumentException"),
        ({"broker.id": "-1"}, "", ""),
        ({"broker.id": "-1", "broker.id.generation.enable": "false"}, "1.1 2.8 3.3 3.9", "IllegalArgumentException"),
        ({"listeners": "P://:9092", "process.roles": ""}, "1.1 2.8 3.3 3.9", "IllegalArgumentException"),
        ({"listeners": "P://:9092", "zookeeper.connect": ""}, "", ""),
    ],
)
def test_a_broker_with_zookeeper_is_judged_by_its_listeners_and_ids_as_kafka_does(given, versions, exception):
    """As `KafkaConfig` of 1.1.1, 2.8.1, 3.3.2 and 3.9.1 did."""
    for version in ("1.1", "2.8", "3.3", "3.9"):
        asked = KafkaVersion(*map(int, version.split(".")))
        found = refuse_values(asked, {"zookeeper.connect": "h:1", "broker.id": "1", **given}, Absent.UNKNOWN)
        assert (found.exception if found else "") == (exception if version in versions.split() else "")
