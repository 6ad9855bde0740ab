"""Whether a node starts apart from its logs: identity, levels, registration and strays, by version."""

from functools import partial
from typing import Any

import pytest

from kforensics.damage import Absent
from kforensics.formats.checkpoint.json_files import QuorumState
from kforensics.formats.checkpoint.properties import configured_voters
from kforensics.protocol.loading.node import (
    Assignment,
    Fate,
    HeldLog,
    NodeDirectory,
    contradiction,
    fates,
    migration_words,
    newest_level,
    refuse_bootstrap,
    refuse_features,
    refuse_formats,
    refuse_identity,
    refuse_kraft_version,
    refuse_level,
    refuse_migration,
    refuse_quorum_state,
    refuse_registration,
    refuse_without_controller,
    unclean_for_controller,
    with_zookeeper_words,
)
from kforensics.protocol.loading.settings import refuse_topic_settings, refuse_values
from kforensics.protocol.versions import KafkaVersion

NEW, OLD = KafkaVersion(4, 1), KafkaVersion(3, 6, 2)
CLUSTER, TOPIC = "M", "T" * 22


def directory(path="a", **given):
    return NodeDirectory(
        **{
            "path": path,
            "has_file": True,
            "is_readable": True,
            "version": 1,
            "node_id": 1,
            "cluster_id": CLUSTER,
            "directory_id": f"id of {path}",
            "has_metadata_log": False,
            **given,
        }
    )


METADATA = directory(has_metadata_log=True)


def refusal(*directories, version=NEW, is_kraft=True, **given):
    found = refuse_identity(directories, version, is_kraft=is_kraft, **given)
    return None if found is None else (found.exception, found.reason)


@pytest.mark.parametrize(
    ("version", "is_kraft", "second", "exception"),
    [
        ((3, 3, 2), True, {"is_readable": False, "node_id": Absent.UNREADABLE}, "InconsistentBrokerMetadataException"),
        ((3, 3, 2), True, {"is_readable": False}, "RuntimeException"),
        ((3, 3, 2), True, {"version": 0}, "InconsistentBrokerMetadataException"),
        ((3, 3, 2), True, {"properties": frozenset({("rack", "a")})}, "InconsistentBrokerMetadataException"),
        ((2, 8, 1), False, {"properties": frozenset({("rack", "a")})}, "InconsistentBrokerMetadataException"),
        ((4, 1), True, {"properties": frozenset({("rack", "a")})}, None),
        ((3, 3, 2), True, {}, None),
        ((3, 3, 2), True, {"is_readable": False, "properties": Absent.UNREADABLE}, None),
        ((3, 3, 2), True, {"has_file": False}, "KafkaException"),
    ],
)
def test_up_to_3_3_the_files_of_a_node_say_the_same_or_it_ends(version, is_kraft, second, exception):
    same = {"directory_id": Absent.NOT_WRITTEN, "version": int(is_kraft)}
    found = refusal(
        directory(has_metadata_log=is_kraft, **same),
        directory("b", **{**same, **second}),
        version=KafkaVersion(*version),
        is_kraft=is_kraft,
    )
    assert (found and found[0]) == exception


def test_up_to_3_6_what_all_files_say_alike_is_held_against_the_settings():
    same = {"directory_id": Absent.NOT_WRITTEN}
    both = {"version": KafkaVersion(3, 3, 2), "node_id": 7}
    found = refusal(directory(**same), directory("b", **same), **both)
    assert found[0] == "InconsistentNodeIdException"
    found = refusal(directory(version=0, **same), is_kraft=False, **both)
    assert found[0] == "InconsistentBrokerIdException"
    found = refusal(directory(version=2, **same), directory("b", version=2, **same), **both)
    assert found[0] == "RuntimeException"
    lost = directory("a", is_readable=False, properties=Absent.UNREADABLE, is_metadata_dir=True)
    assert refusal(lost, directory("b", **same), **both)[0] == "KafkaException"


def test_a_node_needs_one_readable_file_and_its_metadata_log_where_settings_name_it():
    assert refusal(directory(is_readable=False), directory("b", has_file=False))[1] == (
        "No readable meta.properties files found."
    )
    elsewhere = directory("b", has_metadata_log=True, is_metadata_dir=False)
    assert refusal(directory(is_metadata_dir=True), elsewhere)[0] == "KafkaException"


def test_directories_of_one_node_are_in_order():
    assert refusal(METADATA, directory("b")) is None
    assert refusal(METADATA, directory("b"), version=OLD, node_id=1) is None
    assert refusal(METADATA, directory("b", version=2)) is None, "the directory is offline (measured: 4.4.0)"
    same = {"version": 0, "directory_id": Absent.NOT_WRITTEN}
    assert refusal(directory(**same), directory("b", **same), version=OLD, is_kraft=False) is None


@pytest.mark.parametrize(
    ("second", "version", "exception", "words"),
    [
        (directory("b", cluster_id="N"), NEW, "RuntimeException", "Invalid cluster.id in: b. Expected M, but read N"),
        (directory("b", cluster_id="N"), OLD, "InconsistentBrokerMetadataException", "not consistent"),
        (directory("b", node_id=2), NEW, "RuntimeException", "Stored node id 2 doesn't match previous node id 1 in b"),
        (directory("b", node_id=2), OLD, "InconsistentBrokerMetadataException", "not consistent"),
        (directory("b", directory_id="id of a"), NEW, "RuntimeException", "Duplicate directory ID id of a"),
        (directory("b", directory_id="A" * 22), NEW, "RuntimeException", "Invalid reserved directory ID"),
        (directory("b", has_file=False, is_readable=False), NEW, "RuntimeException", "No `meta.properties` found in b"),
        (directory("b", has_file=False, is_readable=False), OLD, "KafkaException", "No `meta.properties` found in b"),
        (directory("b", has_metadata_log=True), NEW, "KafkaException", "Found unexpected metadata location"),
    ],
)
def test_directories_that_contradict_each_other_end_the_start(second, version, exception, words):
    found = refusal(METADATA, second, version=version)

    assert found is not None
    assert found[0] == exception
    assert words in found[1]


def test_files_that_3_7_gave_directory_ids_differ_for_a_release_that_compares_them_whole():
    """Measured: 3.3.2 ends on what 3.9.1 left with two log directories, 3.6.2 starts on it."""
    zookeeper = directory(version=0), directory("b", version=0)
    for version, is_kraft, is_refused in (
        ((3, 3, 2), True, True),
        ((3, 4), True, False),
        ((3, 6, 2), True, False),
        ((3, 6, 2), False, True),
        ((3, 9), False, False),
        ((2, 7), False, False),
    ):
        found = refusal(
            *((METADATA, directory("b")) if is_kraft else zookeeper), version=KafkaVersion(*version), is_kraft=is_kraft
        )
        assert (found and found[0]) == ("InconsistentBrokerMetadataException" if is_refused else None), version
    assert refusal(METADATA, version=KafkaVersion(3, 3, 2)) is None, "one log directory differs from none"


def test_directory_ids_do_not_matter_before_3_7_nor_with_zookeeper():
    assert refusal(METADATA, directory("b", directory_id="id of a"), version=OLD) is None
    same = (directory(version=0), directory("b", version=0, directory_id="id of a"))
    assert refusal(*same, version=KafkaVersion(3, 9), is_kraft=False) is None


NOTHING = {"node_id": Absent.NOT_WRITTEN, "directory_id": Absent.NOT_WRITTEN, "cluster_id": Absent.NOT_WRITTEN}


def test_what_a_directory_does_not_say_contradicts_nothing():
    assert refusal(METADATA, directory("b", directory_id=Absent.NOT_WRITTEN)) is None
    silent = directory("b", version=0, **NOTHING)
    assert refusal(directory(version=0), silent, version=KafkaVersion(2, 0), is_kraft=False) is None


def test_a_file_without_ids_ends_a_start_without_zookeeper():
    """As an empty one, which a power loss leaves: it counts as version 0."""
    for version in (NEW, OLD):
        found = refusal(METADATA, directory("b", version=0, **NOTHING), version=version)
        assert found is not None
        assert found[0] == "RuntimeException"


def test_directories_of_both_versions_are_in_order_since_3_4():
    migrated = METADATA, directory("b", version=0)
    assert refusal(*migrated, version=KafkaVersion(3, 6)) is None
    assert refusal(*migrated, version=KafkaVersion(3, 3)) is not None


def test_the_configured_id_is_compared():
    found = refusal(METADATA, node_id=5)
    assert found is not None
    assert "Stored node id 1 doesn't match previous node id 5" in found[1]


def test_an_unreadable_file_matters_in_the_metadata_directory_alone():
    unreadable = {"is_readable": False, "node_id": Absent.UNREADABLE, "cluster_id": Absent.UNREADABLE}
    assert refusal(METADATA, directory("b", **unreadable)) is None
    found = refusal(directory(has_metadata_log=True, **unreadable), directory("b"))
    assert found is not None
    assert "Error while reading meta.properties" in found[1]
    found = refusal(METADATA, directory("b", **unreadable), version=OLD)
    assert found is not None, "before 3.7 what can't be parsed ends the start"


def test_a_broker_with_zookeeper_takes_an_unmounted_disk_as_its_own():
    assert refusal(directory(version=0), directory("b", has_file=False), version=OLD, is_kraft=False) is None


@pytest.mark.parametrize(
    ("version", "newest"),
    [
        ((3, 3), 7),
        ((3, 5), 11),
        ((3, 6), 14),
        ((3, 7), 20),
        ((3, 9), 23),
        ((4, 0), 26),
        ((4, 1), 29),
        ((4, 3), 31),
        ((4, 4), 34),
    ],
)
def test_the_newest_level_that_a_release_reads(version, newest):
    assert newest_level(KafkaVersion(*version)) == newest


LISTENERS = {"listeners": "PLAINTEXT://a:1,CONTROLLER://a:2", "controller.listener.names": "CONTROLLER"}
VOTERS = {"node.id": "1", "controller.quorum.voters": "1@a:9093,2@b:9093"}


def refusal_of(version, values):
    return refuse_values(version, values, 1)


@pytest.mark.parametrize(
    ("changed", "exception"),
    [
        ({"process.roles": "controller"}, None),
        ({"process.roles": "broker,controller"}, None),
        ({"process.roles": "broker", "node.id": "3"}, None),
        ({}, None),
        ({"process.roles": "controller", "node.id": "3"}, "IllegalArgumentException"),
        ({"process.roles": "broker"}, "IllegalArgumentException"),
        ({"process.roles": "broker,observer"}, "ConfigException"),
        ({"process.roles": "controller", "controller.listener.names": ""}, "IllegalArgumentException"),
        ({"process.roles": "controller", "broker.id": "7"}, "ConfigException"),
        ({"process.roles": "controller", "broker.id": "1"}, None),
        ({"process.roles": "controller", "controller.quorum.voters": ""}, "ConfigException"),
        ({"process.roles": "controller", "controller.quorum.voters": "one@a:1"}, "ConfigException"),
        (
            {
                "process.roles": "controller",
                "controller.quorum.voters": "",
                "controller.quorum.bootstrap.servers": "a:1",
            },
            None,
        ),
        ({**LISTENERS, "process.roles": "broker,controller"}, None),
        ({**LISTENERS, "process.roles": "controller"}, "IllegalArgumentException"),
        ({**LISTENERS, "process.roles": "controller", "listeners": "CONTROLLER://:2"}, None),
        (
            {**LISTENERS, "process.roles": "broker,controller", "listeners": "INSIDE://a:1,CONTROLLER://a:2"},
            "IllegalArgumentException",
        ),
        (
            {
                **LISTENERS,
                "process.roles": "broker,controller",
                "listeners": "INSIDE://a:1,CONTROLLER://a:2",
                "listener.security.protocol.map": "inside:SSL,CONTROLLER:SSL",
                "inter.broker.listener.name": "INSIDE",
            },
            None,
        ),
        (
            {**LISTENERS, "process.roles": "broker,controller", "listeners": "PLAINTEXT://0.0.0.0:1,CONTROLLER://a:2"},
            "IllegalArgumentException",
        ),
        (
            {**LISTENERS, "process.roles": "broker,controller", "listeners": "PLAINTEXT://:1,CONTROLLER://0.0.0.0:2"},
            None,
        ),
        ({**LISTENERS, "process.roles": "broker,controller", "listeners": "INSIDE://:1"}, "IllegalArgumentException"),
        (
            {**LISTENERS, "process.roles": "broker,controller", "listeners": "${env:ALL}", "config.providers": "env"},
            None,
        ),
        ({"process.roles": "controller", "zookeeper.metadata.migration.enable": "true"}, "ConfigException"),
        ({"process.roles": "broker", "controller.quorum.voters": "2147483648@c:9093"}, "ConfigException"),
        ({"process.roles": "broker", "controller.quorum.voters": "9" * 5_000 + "@c:9093"}, "ConfigException"),
        (
            {"process.roles": "controller", "zookeeper.metadata.migration.enable": "true", "zookeeper.connect": "z"},
            None,
        ),
    ],
)
def test_roles_and_voters_by_the_settings_are_held_against_each_other(changed, exception):
    found = refusal_of(KafkaVersion(3, 9), {**VOTERS, **changed})
    assert (found and found.exception) == exception


def test_a_list_that_must_not_be_empty_is_a_matter_of_its_definition_since_4_2():
    changed = {**VOTERS, "process.roles": "controller", "controller.listener.names": ""}
    found = [refusal_of(KafkaVersion(4, minor), changed) for minor in (1, 2)]
    assert [one and one.exception for one in found] == ["IllegalArgumentException", "ConfigException"]


def test_a_migration_is_nothing_since_4_0():
    migrating = {"process.roles": "controller", "zookeeper.metadata.migration.enable": "true"}
    assert refuse_values(NEW, {**VOTERS, **migrating}, 1) is None


@pytest.mark.parametrize(
    ("levels", "version", "exception"),
    [
        ([27], (4, 1), None),
        ([27], (3, 9), "IllegalArgumentException"),
        ([4], (4, 0), "IllegalArgumentException"),
        ([4], (3, 9), None),
        ([7, 3], (3, 3), "RuntimeException"),
        ([], (4, 1), "RuntimeException"),
    ],
)
def test_the_level_of_bootstrap_checkpoint_is_judged_by_each_start(levels, version, exception):
    found = refuse_bootstrap(levels, KafkaVersion(*version))
    assert (found and found.exception) == exception


def test_levels_that_a_release_does_not_read_refuse_it():
    assert refuse_level(21, KafkaVersion(3, 9), is_controller=True) is None
    assert refuse_level(Absent.UNKNOWN, KafkaVersion(3, 3), is_controller=True) is None
    assert refuse_level(0, KafkaVersion(3, 2), is_controller=True) is None
    assert refuse_level(0, KafkaVersion(3, 9), is_controller=True) is not None
    assert refuse_level(0, KafkaVersion(4, 1), is_controller=True) is not None
    newer = refuse_level(21, KafkaVersion(3, 7), is_controller=True)
    assert newer is not None
    assert newer.exception == "RuntimeException"
    assert "supports versions 1-19" in newer.reason
    broker = refuse_level(21, KafkaVersion(3, 7), is_controller=False)
    assert broker is not None
    assert "does not support finalized version 21 (3.9-IV0)" in broker.reason
    assert refuse_level(6, KafkaVersion(4, 0), is_controller=True) is not None
    assert refuse_level(6, KafkaVersion(3, 9), is_controller=True) is None


@pytest.mark.parametrize(
    ("level", "version", "is_controller", "exception"),
    [
        (0, (3, 7, 1), True, "RuntimeException"),
        (20, (3, 7, 1), True, "RuntimeException"),
        (20, (3, 7, 1), False, "UnsupportedVersionException"),
        (20, (3, 8), True, None),
        (28, (4, 1), True, "RuntimeException"),
        (30, (4, 2), True, "RuntimeException"),
        (28, (4, 1), False, "UnsupportedVersionException"),
        (30, (4, 1), False, "IllegalArgumentException"),
        (34, (4, 4), True, "RuntimeException"),
    ],
)
def test_a_level_that_a_release_reads_and_does_not_support_is_refused(level, version, is_controller, exception):
    """As 3.7 does after 3.8: its table has the level, its registration names the last one for production."""
    found = refuse_level(level, KafkaVersion(*version), is_controller=is_controller)
    assert (found and found.exception) == exception
    allowed = refuse_level(level, KafkaVersion(*version), is_controller=is_controller, is_unstable_enabled=True)
    assert (allowed is None) is (level > 0 and (level != 30 or version[1] > 1))


@pytest.mark.parametrize(
    ("levels", "version", "words"),
    [
        ({"share.version": 2, "group.version": 1}, (4, 4), None),
        ({"share.version": 2}, (4, 3), "share.version 2, but this controller only supports versions 0-1"),
        ({"share.version": 1}, (4, 0), "share.version 1, but this controller only supports versions 0"),
        ({"streams.version": 0, "kraft.version": 1}, (3, 9), None),
        ({"kraft.version": 1}, (3, 8), "kraft.version 1"),
        ({"some.feature": 1}, (4, 4), "some.feature 1"),
        ({"group.version": -1}, (3, 9), "group.version -1, but this controller only supports versions 0"),
    ],
)
def test_levels_of_other_features_are_held_against_what_the_release_supports(levels, version, words):
    found = refuse_features(levels, KafkaVersion(*version), is_controller=True)
    if words is None:
        assert found is None
        return
    assert found is not None
    assert found.exception == "RuntimeException"
    assert words in found.reason
    broker = refuse_features(levels, KafkaVersion(*version), is_controller=False)
    assert broker is not None
    assert broker.exception == "UnsupportedVersionException"


@pytest.mark.parametrize(
    ("level", "version", "exception"),
    [
        (-1, (3, 7), None),
        (7, (3, 3), None),  # batches of control records are passed over
        (0, (3, 7), "IllegalArgumentException"),
        (7, (3, 8), None),
        (1, (3, 9), "IllegalStateException"),
        (7, (3, 9), "RuntimeException"),
        (7, (4, 4), "IllegalArgumentException"),
    ],
)
def test_a_kraft_version_without_voters_is_judged_as_the_release_reads_control_records(level, version, exception):
    found = refuse_kraft_version(level, KafkaVersion(*version), is_controller=True, has_voters=False)
    assert (found and found.exception) == exception
    if level == 1:
        assert refuse_kraft_version(level, KafkaVersion(*version), is_controller=True, has_voters=True) is None
        assert refuse_kraft_version(level, KafkaVersion(*version), is_controller=False, has_voters=False) is None


@pytest.mark.parametrize(
    ("state", "is_migrating", "controllers_migrate", "words"),
    [
        (1, False, None, ""),  # what ZooKeeper has is all that there is
        (3, False, None, "by the metadata"),
        (1, True, True, ""),
        (1, True, None, ""),
        (1, True, False, "the controllers register"),
        (3, True, True, ""),
        (3, True, None, "unless"),
    ],
)
def test_a_broker_with_zookeeper_beside_a_metadata_log(state, is_migrating, controllers_migrate, words):
    found = with_zookeeper_words(state, is_migrating=is_migrating, controllers_migrate=controllers_migrate)
    assert found.startswith(words)
    assert bool(found) is bool(words)


@pytest.mark.parametrize(
    ("name", "since", "right", "wrong"),
    [
        ("unclean.leader.election.enable", (3, 3), ("true", "False", " true "), ("maybe", "1", "")),
        ("min.cleanable.dirty.ratio", (3, 3), ("0", "0.5", "1.0", "1e-3"), ("7", "-0.1", "half", "1.01")),
        ("compression.type", (3, 3), ("zstd", "producer"), ("rar", "ZSTD")),
        ("compression.gzip.level", (3, 8), ("-1", "9"), ("0", "10", "99")),
        ("compression.zstd.level", (3, 8), ("22", "-131072"), ("23",)),
        ("message.timestamp.type", (3, 3), ("CreateTime",), ("never",)),
        ("message.timestamp.before.max.ms", (3, 6), ("0",), ("-1",)),
        ("preallocate", (3, 3), ("TRUE",), ("1",)),
        ("leader.replication.throttled.replicas", (3, 3), ("*", "", "0:1,1:2", "0:1, 1:2"), ("1-2-3", "0:1,*")),
        ("remote.copy.lag.ms", (4, 4), ("-1",), ("-2",)),
    ],
)
def test_settings_of_topics_are_what_each_has_to_be(name, since, right, wrong):
    for value in (*right, *wrong):
        found = refuse_topic_settings(KafkaVersion(*since), {"orders": {name: value}})
        assert (found and found.exception) == ("ConfigException" if value in wrong else None), value
    if since > (3, 3):
        before = KafkaVersion(since[0], since[1] - 1)
        assert refuse_topic_settings(before, {"orders": {name: wrong[0]}}) is None, "nobody knows it before"


def test_levels_that_are_not_for_production_may_be_let_in_by_settings():
    for levels, version in (({"streams.version": 1}, (4, 1)), ({"transaction.version": 2}, (3, 9))):
        asked = KafkaVersion(*version)
        assert refuse_features(levels, asked, is_controller=True) is not None
        assert refuse_features(levels, asked, is_controller=True, is_unstable_enabled=True) is None
    assert refuse_features({"streams.version": 1}, KafkaVersion(4, 0), is_controller=True, is_unstable_enabled=True)


@pytest.mark.parametrize("is_controller", [True, False])
def test_going_back_to_a_release_that_does_not_know_the_level(is_controller):
    assert refuse_level(30, KafkaVersion(4, 3, 1), is_controller=is_controller) is None
    found = refuse_level(33, KafkaVersion(4, 3, 1), is_controller=is_controller)
    assert found is not None
    assert found.exception == "IllegalArgumentException"
    assert "feature level 33 (4.4-IV2). Valid feature levels are from 7 to 31." in found.reason
    # A controller exits; a broker alone goes on without logs.
    assert ("never serves" in found.reason) is not is_controller
    assert refuse_level(33, KafkaVersion(4, 4), is_controller=is_controller) is None
    newer = refuse_level(35, KafkaVersion(4, 4), is_controller=is_controller)
    assert newer is not None
    assert "35 (newer than 4.5-IV0)" in newer.reason


@pytest.mark.parametrize(
    ("version", "exception"),
    [((3, 3), "CancellationException"), ((3, 4), "CancellationException"), ((3, 5), "RuntimeException")],
)
def test_a_broker_that_no_controller_lets_in_ends_and_its_controllers_are_to_be_mended(version, exception):
    refusal = refuse_without_controller(KafkaVersion(*version))

    assert refusal.exception == exception
    assert refusal.is_of_quorum
    assert not refusal.is_of_settings


@pytest.mark.parametrize(
    ("migration", "version", "is_refused"), [(2, (3, 7, 1), True), (1, (3, 7, 1), False), (2, (4, 0), False)]
)
def test_controllers_let_no_broker_in_while_a_migration_has_only_begun(migration, version, is_refused):
    found = refuse_registration([], {}, 1, 19, migration=migration, version=KafkaVersion(*version))

    assert (found is not None and "pre-migration mode" in found.reason) == is_refused


def test_a_directory_of_another_broker_is_refused_at_registration():
    judge = partial(refuse_registration, migration=0, version=KafkaVersion(3, 9))
    registered = {1: ["mine"], 2: ["id of a"]}
    found = judge([directory()], registered, 1, 20)
    assert found is not None
    assert "Broker 2 is already registered with directory id of a" in found.reason
    assert judge([directory()], registered, 2, 20) is None
    assert judge([directory()], registered, 1, 16) is None
    assert judge([directory()], registered, 1, Absent.UNKNOWN) is None


def held(topic_id=TOPIC, partition=0, ending="", directory_id="d1"):
    return HeldLog("orders-0", topic_id, partition, ending, directory_id)


MINE = {(TOPIC, 0): Assignment((1, 2), ("d1", "d2")), (TOPIC, 1): Assignment((2, 3), ("x", "y"))}
NO_ID = held(Absent.NOT_WRITTEN)


@pytest.mark.parametrize(
    ("version", "logs", "expected"),
    [
        ((4, 1), [held(), held(partition=1), held("U" * 22), NO_ID], [Fate.KEPT, Fate.STRAY, Fate.STRAY, Fate.STRAY]),
        ((3, 7, 1), [held(partition=1), NO_ID], [Fate.STRAY, Fate.STRAY]),
        ((3, 7, 0), [held(), held(partition=1)], [Fate.KEPT, Fate.STRAY]),
        ((3, 7, 0), [held(partition=1), NO_ID], [Fate.KEPT, Fate.EXITS]),
        ((3, 6, 2), [held(), held(partition=1)], [Fate.KEPT, Fate.DELETED]),
        ((3, 6, 2), [held(partition=1), NO_ID], [Fate.KEPT, Fate.KEPT]),
        ((4, 1), [held(ending="-delete"), held("U" * 22, ending="-stray")], [Fate.DELETED, Fate.KEPT]),
        ((4, 1), [held(ending="-future"), held(ending="-future", directory_id="d9")], [Fate.PROMOTED, Fate.KEPT]),
        ((4, 1), [held(directory_id="d9"), held(ending="-future")], [Fate.DELETED, Fate.PROMOTED]),
        ((4, 1), [held("U" * 22), held(ending="-future")], [Fate.STRAY, Fate.PROMOTED]),
        ((3, 7, 1), [held("U" * 22, ending="-future")], [Fate.STRAY]),
    ],
)
def test_what_becomes_of_directories_that_the_metadata_do_not_assign(version, logs, expected):
    assert fates(logs, MINE, 1, KafkaVersion(*version)) == expected


@pytest.mark.parametrize("directories", [(), ("d2",), ("d2", "d1", "d1")])
def test_a_record_with_another_number_of_directories_than_replicas_promotes_no_future_log(directories):
    assigned = {(TOPIC, 0): Assignment((2, 1), directories)}
    is_named = directories[1:2] == ("d1",)

    assert fates([held(ending="-future")], assigned, 1, NEW) == [Fate.PROMOTED if is_named else Fate.KEPT]


@pytest.mark.parametrize(
    ("epochs", "registered", "version", "words"),
    [
        ((7, 7), 7, NEW, ""),
        ((7, Absent.NOT_APPLICABLE), 7, NEW, "no clean-shutdown marker"),
        ((7, 8), 7, NEW, "several broker epochs"),
        ((7, 7), 9, NEW, "it registered 9 last"),
        ((7, 7), Absent.UNKNOWN, NEW, ""),
        ((7, 8), 7, KafkaVersion(3, 9), ""),
        ((), 7, NEW, ""),
    ],
)
def test_what_the_controller_takes_for_an_unclean_stop(epochs, registered, version, words):
    found = unclean_for_controller(epochs, registered, version)
    assert (words in found) if words else not found


@pytest.mark.parametrize(
    ("stored", "configured", "version", "is_refused"),
    [
        ((0, 1, 2), "0@a:9093,1@b:9093,2@c:9093,3@d:9093", KafkaVersion(3, 4), True),
        ((0, 1, 2), "0@a:9093,1@b:9093", KafkaVersion(3, 7, 1), True),
        ((0, 1, 2), " 2@x:1, 1@b:9093,0@0.0.0.0:0", KafkaVersion(3, 4), False),
        ((0, 1, 2), "0@a:9093,1@b:9093", KafkaVersion(3, 8), False),
        ((), "0@a:9093", KafkaVersion(3, 4), False),
        (Absent.NOT_APPLICABLE, "0@a:9093", KafkaVersion(3, 4), False),
        ((0, 1, 2), "", KafkaVersion(3, 4), False),
        ((0, 1, 2), "${VOTERS}", KafkaVersion(3, 4), False),
        ((0, 1, 2), "9" * 5_000 + "@a:9093", KafkaVersion(3, 4), False),
    ],
)
def test_voters_other_than_those_of_the_state_file_end_a_start_up_to_3_7(stored, configured, version, is_refused):
    refusal = _refused_by_state(version, configured, current_voters=stored)

    assert (refusal is not None) == is_refused
    if refusal is not None:
        assert refusal.exception == "IllegalStateException"
        assert "voter set read from the state file: [0, 1, 2]" in refusal.reason


@pytest.mark.parametrize(
    ("version", "known", "is_controller", "exception"),
    [
        (KafkaVersion(3, 7, 1), {"voted_id": 9}, False, "IllegalStateException"),
        (KafkaVersion(2, 8), {"voted_id": 9, "leader_epoch": 1}, False, "IllegalStateException"),
        (KafkaVersion(3, 8), {"voted_id": 9}, False, ""),
        (KafkaVersion(3, 7, 1), {"leader_id": 9}, False, "NoSuchElementException"),
        (KafkaVersion(3, 7, 1), {"leader_id": 2}, False, ""),
        (KafkaVersion(3, 7, 1), {"leader_id": 9, "leader_epoch": 4}, False, ""),
        (KafkaVersion(3, 7, 1), {"leader_id": 9}, True, ""),
        (KafkaVersion(3, 3, 2), {"leader_id": 9}, False, "NoSuchElementException"),
        (KafkaVersion(3, 9), {"leader_id": 9}, False, ""),
        (KafkaVersion(3, 7, 1), {"voted_id": 2, "leader_epoch": 30, "node_id": 2}, True, "IllegalStateException"),
        (KafkaVersion(3, 7, 1), {"voted_id": 2, "leader_epoch": 4, "node_id": 2}, True, ""),
        (KafkaVersion(3, 9), {"voted_id": 2, "leader_epoch": 30, "node_id": 2}, True, "IllegalStateException"),
        (KafkaVersion(4, 0), {"voted_id": 2, "leader_epoch": 30, "node_id": 2}, True, ""),
        (KafkaVersion(3, 7), {"voted_id": 2, "leader_id": 2, "leader_epoch": 30, "node_id": 2}, True, ""),
        (KafkaVersion(4, 4), {"leader_epoch": 2**31 - 1, "node_id": 2}, True, "IllegalArgumentException"),
        (KafkaVersion(4, 4), {"leader_epoch": 2**31 - 1, "node_id": 1}, True, ""),
        (KafkaVersion(3, 9), {"leader_id": -5}, True, "IllegalArgumentException"),
        (KafkaVersion(3, 9), {"leader_id": -5, "leader_epoch": 4}, True, ""),
    ],
)
def test_a_vote_a_leader_or_an_epoch_that_a_node_can_t_go_on_from_ends_its_start(
    version, known, is_controller, exception
):
    refusal = _refused_by_state(version, "2@a:9093", is_controller=is_controller, **known)

    assert (refusal.exception if refusal else "") == exception


@pytest.mark.parametrize(
    ("state", "version", "is_enabled", "words"),
    [
        (0, KafkaVersion(3, 9), True, ""),
        (3, KafkaVersion(3, 9), False, ""),
        (1, KafkaVersion(4, 0), None, "complete it with 3.9 first"),
        (2, KafkaVersion(3, 9), True, "has begun, and is not done"),
        (1, KafkaVersion(3, 9), True, "go on with the migration"),
        (1, KafkaVersion(3, 9), False, "The controller that leads completes the migration"),
        (1, KafkaVersion(3, 9), None, "Unless zookeeper.metadata.migration.enable is true"),
    ],
)
def test_what_controllers_make_of_a_migration_that_is_not_complete(state, version, is_enabled, words):
    found = migration_words(state, version, is_enabled=is_enabled)
    assert (words in found) if words else not found


@pytest.mark.parametrize(
    ("state", "level", "version", "words"),
    [
        (0, 21, KafkaVersion(3, 9), "that was created in KRaft mode."),
        (0, 7, KafkaVersion(3, 9), "running metadata.version 3.3-IV3"),
        (1, 21, KafkaVersion(3, 9), ""),
        (3, 21, KafkaVersion(3, 7), ""),
        (0, 21, KafkaVersion(4, 0), ""),
        (0, Absent.NOT_WRITTEN, KafkaVersion(3, 6), "running metadata.version 3.0-IV1"),
        (0, 21, KafkaVersion(3, 5), ""),
    ],
)
def test_a_cluster_that_was_made_without_zookeeper_does_not_migrate(state, level, version, words):
    refusal = refuse_migration(state, level, version)
    assert refusal.reason.endswith(words) if refusal else not words


def _refused_by_state(version, configured, *, is_controller=False, node_id=1, **given):
    none = Absent.NOT_WRITTEN
    known: dict[str, Any] = {"data_version": 0, "leader_id": none, "leader_epoch": 5, "voted_id": none} | given
    return refuse_quorum_state(
        QuorumState(**known),
        configured_voters({"controller.quorum.voters": configured}),
        version,
        node_id=node_id,
        is_controller=is_controller,
        last_epoch=5,
    )


def test_an_in_sync_replica_that_is_none_matters_since_4_0():
    for version, is_told in (((3, 9), False), ((4, 0), True)):
        assert bool(contradiction((1, 2), (1, 9), KafkaVersion(*version))) is is_told
        assert not contradiction((1, 2), (1,), KafkaVersion(*version))


def test_a_record_of_a_newer_release_is_refused_unless_it_only_has_more_tagged_fields():
    for name, number, since in (
        ("ClearElrRecord", 0, (4, 0)),
        ("RegisterBrokerRecord", 4, (4, 3)),
        ("PartitionRecord", 1, (3, 7)),
        ("BrokerRegistrationChangeRecord", 3, (3, 0)),
    ):
        seen = {(name, number): ("a/00000000000000000000.log", 7)}
        assert refuse_formats(seen, KafkaVersion(*since)) is None
        if since > (3, 0):
            found = refuse_formats(seen, KafkaVersion(since[0] - (since[1] == 0), since[1] - 1 if since[1] else 9))
            assert found is not None
            assert found.exception == "MetadataParseException"
            assert found.is_of_metadata_log or "offset 7" in found.reason


def test_a_list_of_replicas_is_read_in_one_pass_whatever_is_in_it():
    """Where each comma could be told in two ways, 40 of them took for ever."""
    version, name = KafkaVersion(4, 1, 0), "leader.replication.throttled.replicas"

    assert refuse_topic_settings(version, {"t": {name: "1:1" + " , " * 40 + "x"}}) is not None
    for taken in ("*", "", "1:1 , 2:2", "1:1,,2:2"):
        assert refuse_topic_settings(version, {"t": {name: taken}}) is None
