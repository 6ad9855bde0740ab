"""Whether a node starts apart from its logs: settings, identity, metadata log, feature levels, registration, and which directories are strays.

Rules by version: `MetaPropertiesEnsemble.verify` (3.7), `BrokerMetadataCheckpoint` (2.4 to 3.6), `KafkaMetadataLog`, `LogManager.isStrayKraftReplica`
(3.7.1) and `BrokerMetadataPublisher.findStrayPartitions` (3.0 to 3.7.0); `KafkaConfig.configDef` of 0.10.2, 1.1, 2.8, 3.2 to 3.5, 3.9 and 4.1, `ConfigDef.parseType`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.checkpoint.json_files import QuorumState
from kforensics.formats.checkpoint.properties import LOST_DIRECTORY, REFUSED_DIRECTORY_IDS, RESERVED_DIRECTORY_IDS
from kforensics.protocol.loading.disk import LARGEST_INT32
from kforensics.protocol.versions import (
    METADATA_VERSION_LEVELS,
    KafkaVersion,
    least_version_of_level,
    level_name,
    renames_unnamed,
)

FIRST_KRAFT = (2, 8)
"""Before, every broker needs ZooKeeper, and refuses the meta.properties of one that does not."""
FIRST_WITHOUT_ZOOKEEPER = KafkaVersion(4, 0)
"""Every node runs without ZooKeeper (KIP-866)."""
LEVEL_OF_DIRECTORY_IDS = 17
"""metadata.version 3.7-IV2: registrations name directory ids (KIP-858)."""
LEAST_LEVEL_OF_4 = 7
"""metadata.version 3.3-IV3, the oldest that 4.x reads."""
LEAST_OF_BOOTSTRAP = 4
"""metadata.version 3.3-IV0, the oldest with which `bootstrap.checkpoint` is written (`BootstrapMetadata`)."""
_KNOWN_LEVELS = {(3, 7): 20, (3, 8): 21, (3, 9): 23, (4, 0): 26, (4, 1): 29, (4, 2): 30, (4, 3): 31, (4, 4): 34}
"""The newest level that a release reads, where it reads more than its own last one (`MetadataVersion`)."""
_PRODUCTION_LEVELS = {(3, 7): 19, (3, 8): 20, (3, 9): 21, (4, 0): 25, (4, 1): 27, (4, 2): 29, (4, 3): 30, (4, 4): 33}
"""The newest level that a node of the release says it supports: of those that it reads, the last one for production."""
_FEATURE_LEVELS: Mapping[str, tuple[tuple[KafkaVersion, int], ...]] = {
    "eligible.leader.replicas.version": ((KafkaVersion(4, 0), 1),),
    "group.version": ((KafkaVersion(4, 0), 1),),
    "kraft.version": ((KafkaVersion(3, 9), 1),),
    "share.version": ((KafkaVersion(4, 1), 1), (KafkaVersion(4, 4), 2)),
    "streams.version": ((KafkaVersion(4, 2), 1),),
    "transaction.version": ((KafkaVersion(4, 0), 2),),
}
"""The newest level of each other feature that nodes support, with the release that brought it (`QuorumFeatures` of 3.3 to 4.4)."""
UNREGISTERED = frozenset({"InvalidRegistrationException", "BrokerIdNotRegisteredException"})
"""The controller does not let a broker register, which waits for it until a timeout, and loads its logs in the meantime."""
NOT_MET = "requirement failed: "
UNKNOWN_LEVEL = "No MetadataVersion with feature level"
TWICE_NAMED = "Duplicate log directory found"
UNREADABLE_LEVEL = "IllegalArgumentException"
"""What applying a metadata.version throws that the release does not know (4.0)."""
FIRST_OF_QUORUM_STATE_1 = KafkaVersion(3, 8)
_FIRST_WITH_PREVOTE = KafkaVersion(4, 0)
"""The first release that reads `quorum-state` of data version 1, and holds it no longer against the configured voters (KIP-853)."""
FIRST_WITH_VOTERS_IN_LOG = KafkaVersion(3, 9)
"""The first release whose voters may be in the metadata log (KIP-853)."""
_MADE_WITHOUT = "Should not have ZK migrations enabled on a cluster"
_NO_CONTROLLER = "Received a fatal error while waiting for the controller to acknowledge that we are caught up"
_UNABLE_TO_REGISTER = "Shutting down because we were unable to register with the controller quorum"
"""What it says before 3.5."""
_UNSTABLE_LEVELS = {"streams.version": (KafkaVersion(4, 1), 1), "transaction.version": (KafkaVersion(3, 9), 2)}
"""Levels that releases before support where their settings let them use what is not for production."""


class NodeDirectory(NamedTuple):
    """The statements of a log directory about its node."""

    path: str
    has_file: bool
    """Whether it has a `meta.properties`."""
    is_readable: bool
    """Whether `MetaProperties` of Kafka takes it: since 3.7 a directory goes offline with one that it does not (KIP-858)."""
    version: int
    node_id: int | Absent
    cluster_id: str | Absent
    directory_id: str | Absent
    has_metadata_log: bool
    is_metadata_dir: bool | Absent = Absent.UNKNOWN
    """Whether the settings name it for the metadata log: `metadata.log.dir`, else the first of `log.dirs`."""
    properties: frozenset[tuple[str, str]] | Absent = frozenset()
    """All that its `meta.properties` says; unreadable where the file can't be opened."""

    def is_taken(self, version: KafkaVersion) -> bool:
        """Return whether the log directory is not offline for its `meta.properties`; since 3.7 it is for a version of the file that nobody knows, too."""
        return self.is_readable and (version < (3, 7) or self.version in {0, 1})


class Refusal(NamedTuple):
    """The reason why a node does not start; it has changed no log then."""

    exception: str
    reason: str

    @property
    def is_of_settings(self) -> bool:
        """Whether settings alone cause it."""
        return (
            self.exception == "ConfigException"
            or self.reason.startswith((NOT_MET, TWICE_NAMED, _MADE_WITHOUT))
            or "(server.properties)" in self.reason
        )

    @property
    def is_of_quorum(self) -> bool:
        """Whether the node only lacks a controller."""
        return self.reason.startswith((_NO_CONTROLLER, _UNABLE_TO_REGISTER))

    @property
    def is_of_metadata_log(self) -> bool:
        """Whether a file of the metadata log causes it."""
        return any(name in self.reason for name in (".checkpoint", "quorum-state", "__cluster_metadata-0"))

    @property
    def is_of_level(self) -> bool:
        """Whether a metadata.version that the release does not read causes it."""
        return self.exception == UNREADABLE_LEVEL and self.reason.startswith(UNKNOWN_LEVEL)


class Fate(StrEnum):
    """The fate of a partition directory at a start, apart from how its log loads."""

    KEPT = "kept"
    STRAY = "stray"
    """Renamed to `-stray`; never served, never deleted by the broker."""
    DELETED = "deleted"
    PROMOTED = "promoted"
    """A `-future` directory that becomes the partition's log (KAFKA-16082)."""
    EXITS = "exits"
    """The broker exits on it (3.7.0, KAFKA-16814)."""
    UNKNOWN = "unknown"


class Assignment(NamedTuple):
    """The assignment of partitions by the metadata: by topic id and partition."""

    replicas: tuple[int, ...]
    directories: tuple[str, ...]


class HeldLog(NamedTuple):
    """A directory as the search for strays sees it."""

    path: str
    topic_id: str | Absent
    """Absent where it has no readable `partition.metadata`."""
    partition: int
    ending: str
    """`-future`, `-stray`, `-delete`, or nothing."""
    directory_id: str | Absent


def refuse_without_controller(version: KafkaVersion) -> Refusal:
    """Return what ends a broker that no controller lets in."""
    since = "once initial.broker.registration.timeout.ms is over: no controller is elected"
    if version < (3, 5):
        return Refusal("CancellationException", f"{_UNABLE_TO_REGISTER} ({since})")
    return Refusal("RuntimeException", f"{_NO_CONTROLLER} ({since})")


def refuse_identity(
    directories: Sequence[NodeDirectory],
    version: KafkaVersion,
    *,
    is_kraft: bool,
    node_id: int | None = None,
    is_migrating: bool = False,
) -> Refusal | None:
    """Judge the `meta.properties` of a node's log directories as a start does.

    Args:
        is_migrating: a broker with ZooKeeper has `zookeeper.metadata.migration.enable`, and since 3.7 takes both versions.
    """
    is_ensemble = version >= (3, 7)
    is_kraft = is_kraft and version >= FIRST_KRAFT
    usual = "RuntimeException" if is_ensemble else "KafkaException"
    quorum = [one.path for one in directories if one.has_metadata_log]
    if len(quorum) > 1:
        return Refusal("KafkaException", f"Found unexpected metadata location in data directory {quorum[1]}")
    if is_kraft:
        elsewhere = next((one for one in directories if one.has_metadata_log and one.is_metadata_dir is False), None)
        if is_ensemble and not any(one.has_file and one.is_taken(version) for one in directories):
            return Refusal(usual, "No readable meta.properties files found.")
        for one in directories:
            is_lost = one.properties is Absent.UNREADABLE or (is_ensemble and not one.is_taken(version))
            if not one.has_file and is_ensemble and elsewhere is not None:
                break
            if not one.has_file:
                return Refusal(usual, f"No `meta.properties` found in {_place(one)}")
            if is_lost and (one.has_metadata_log or one.is_metadata_dir is True):
                return Refusal(usual, f"Error while reading meta.properties in metadata log directory {_place(one)}")
        if elsewhere is not None:
            return Refusal(
                "KafkaException", f"Found unexpected metadata location in data directory {_place(elsewhere)}"
            )
    opened = [one for one in directories if one.has_file and one.properties is not Absent.UNREADABLE]
    if (2, 8) <= version < ((3, 4) if is_kraft else (3, 7)):
        # The files are compared whole, with the ids that 3.7 has written (KAFKA-18442).
        said = [(one.version, one.node_id, one.cluster_id, one.directory_id, one.properties) for one in opened]
        for one, values in zip(opened, said, strict=True):
            if values != said[0]:
                return _inconsistent(one)
    unread = next((one for one in opened if not one.is_taken(version)), None)
    if is_kraft and not is_ensemble and unread is not None:
        return Refusal("RuntimeException", f"Failed to find required property in meta.properties of {_place(unread)}")
    known = [one for one in directories if one.has_file and one.is_taken(version)]
    for one in known:
        takes_both = version >= ((3, 4) if is_kraft else (3, 7)) and (is_kraft or is_migrating)
        if one.version not in ({0, 1} if takes_both else {1 if is_kraft else 0}):
            exception = "RuntimeException" if is_kraft else usual
            return Refusal(exception, f"Found unexpected version {one.version} in meta.properties of {_place(one)}")
    refusal = _mismatch(known, version, is_kraft=is_kraft, node_id=node_id)
    return refusal or (_without_identity(known, version) if is_kraft else None)


def _without_identity(known: Iterable[NodeDirectory], version: KafkaVersion) -> Refusal | None:
    """Judge files that lack what only version 1 must have, as empty ones do, which count as version 0."""
    for one in known:
        for what, value in (("cluster ID", one.cluster_id), ("node ID", one.node_id)):
            if isinstance(value, Absent):
                required = f"Failed to find required property of {_place(one)}: {what}"
                return Refusal(
                    "RuntimeException", f"Error: {what} not found in {_place(one)}" if version >= (3, 7) else required
                )
    return None


def _mismatch(
    known: Sequence[NodeDirectory], version: KafkaVersion, *, is_kraft: bool, node_id: int | None
) -> Refusal | None:
    is_ensemble = version >= (3, 7)
    clusters = [one for one in known if not isinstance(one.cluster_id, Absent)]
    for one in clusters[1:]:
        if one.cluster_id != clusters[0].cluster_id and version >= (2, 4):
            words = f"Invalid cluster.id in: {one.path}. Expected {clusters[0].cluster_id}, but read {one.cluster_id}"
            return Refusal("RuntimeException", words) if is_ensemble else _inconsistent(one)
    expected = node_id if is_ensemble else None
    for one in known:
        if isinstance(one.node_id, Absent):
            continue
        if expected is not None and one.node_id != expected:
            words = f"Stored node id {one.node_id} doesn't match previous node id {expected} in {_place(one)}"
            return Refusal("RuntimeException", words) if is_ensemble else _inconsistent(one)
        expected = one.node_id
    if not is_ensemble and node_id is not None and expected is not None and node_id != expected:
        kind = "node" if is_kraft else "broker"
        words = f"Configured {kind}.id {node_id} doesn't match stored {kind}.id {expected} in meta.properties"
        return Refusal(f"Inconsistent{kind.capitalize()}IdException", words)
    return _directory_ids(known) if is_ensemble and is_kraft else None


def _place(one: NodeDirectory) -> str:
    return one.path or "its log directory"


def _inconsistent(one: NodeDirectory) -> Refusal:
    return Refusal(
        "InconsistentBrokerMetadataException", f"BrokerMetadata is not consistent across log.dirs: {one.path}"
    )


def _directory_ids(known: Iterable[NodeDirectory]) -> Refusal | None:
    seen: dict[str, str] = {}
    for one in known:
        if isinstance(one.directory_id, Absent):
            continue
        if one.directory_id in REFUSED_DIRECTORY_IDS:
            return Refusal("RuntimeException", f"Invalid reserved directory ID {one.directory_id} in {_place(one)}")
        if one.directory_id in seen:
            words = f"Duplicate directory ID {one.directory_id} found. It was the ID of {seen[one.directory_id]}, but also of {one.path}"
            return Refusal("RuntimeException", words)
        seen[one.directory_id] = one.path
    return None


def refuse_quorum_state(
    state: QuorumState,
    configured: Mapping[str, str],
    version: KafkaVersion,
    *,
    node_id: int | Absent,
    is_controller: bool,
    last_epoch: int,
) -> Refusal | None:
    """Judge what a node knows of its quorum by the voters that it is configured with (`QuorumState.initialize`, 2.8).

    Args:
        last_epoch: of its metadata log; a `quorum-state` of an earlier one counts for nothing.
    """
    voters, stored = {int(one) for one in configured if is_voter_id(one)}, state.current_voters
    leader, epoch = state.leader_id, state.leader_epoch
    is_later = isinstance(epoch, int) and epoch >= last_epoch
    is_alone = is_later and len(configured) == 1 and voters == {node_id}
    if version >= FIRST_OF_QUORUM_STATE_1:
        if is_later and isinstance(leader, int) and leader < 0:
            return Refusal(
                "IllegalArgumentException", f"Illegal leader Id {leader}: must be non-negative (quorum-state)"
            )
    elif not configured or not all(map(is_voter_id, configured)):
        return None
    elif not isinstance(stored, Absent) and stored and set(stored) != voters:
        words = f"Configured voter set: [{', '.join(configured)}] is different from the voter set read from the state file: [{', '.join(map(str, stored))}]"
        return Refusal(
            "IllegalStateException",
            f"{words}. Check if the quorum configuration is up to date, or wipe out the local state file if necessary",
        )
    elif isinstance(state.voted_id, int) and isinstance(node_id, int) and node_id not in voters:
        words = f"Initialized quorum state with a voted candidate ({state.voted_id}), which indicates this node was previously a voter"
        return Refusal("IllegalStateException", f"{words}, but the local id {node_id} is not a voter")
    if is_alone and epoch == LARGEST_INT32:
        words = "Received invalid partition leader epoch entry: quorum-state has the greatest epoch, and the only voter elects itself in the next"
        return Refusal("IllegalArgumentException", words)
    if is_alone and state.voted_id == node_id != leader and version < _FIRST_WITH_PREVOTE:
        words = "Cannot transition to Candidate since this node is already a Leader"
        return Refusal("IllegalStateException", f"{words}: quorum-state has a vote of the only voter for itself")
    is_followed = isinstance(leader, int) and is_later
    if version >= FIRST_OF_QUORUM_STATE_1 or is_controller or not is_followed or leader in voters:
        return None
    words = f"key not found: {leader}: quorum-state names it as the leader, and the settings not as a voter"
    return Refusal("NoSuchElementException", words)


def is_voter_id(text: str) -> bool:
    """Whether Kafka reads a text as the id of a voter: one of its integers, of ten digits at most."""
    return text.isdecimal() and len(text) <= len(str(LARGEST_INT32)) and int(text) <= LARGEST_INT32


def migration_words(state: int, version: KafkaVersion, *, is_enabled: bool | None) -> str:
    """Return what a start of the controllers makes of a migration from ZooKeeper that is not complete (`ActivationRecordsGenerator`, 3.5 to 3.9); empty where there is none.

    Args:
        state: 2 begun, 1 under way.
        is_enabled: whether the settings of the controllers take part in it; None where they are not known, or differ.
    """
    if state not in {1, 2}:
        return ""
    if version >= FIRST_WITHOUT_ZOOKEEPER:
        return "By the metadata a migration from ZooKeeper is not complete, and Kafka 4.0 and later knows none: complete it with 3.9 first."
    if state == 2:
        return "A migration from ZooKeeper has begun, and is not done: the metadata log may hold a part of what ZooKeeper has, which still decides."
    if is_enabled:
        return "The controllers go on with the migration from ZooKeeper, which still gets all metadata."
    unless = "" if is_enabled is False else "Unless zookeeper.metadata.migration.enable is true in its settings, "
    return f"{unless}{'t' if unless else 'T'}he controller that leads completes the migration from ZooKeeper, to which there is no way back then."


def with_zookeeper_words(state: int, *, is_migrating: bool, controllers_migrate: bool | None) -> str:
    """Return what leaves it open by which metadata a broker runs that is started with ZooKeeper while there is a metadata log (`ClusterControlManager.registerBroker`, 3.4 to 3.9); empty where nothing does.

    Args:
        state: of the migration: 3 complete.
        controllers_migrate: None where their settings are not known.
    """
    if not is_migrating:
        words = "by the metadata the migration from ZooKeeper is complete, and it is started by what ZooKeeper had then"
        return words if state == 3 else ""
    words = "the controllers register no broker with ZooKeeper (BrokerIdNotRegisteredException), and it runs by what ZooKeeper has, which gets no metadata any more"
    if controllers_migrate is None and state == 3:
        return f"unless zookeeper.metadata.migration.enable is true in their settings {words}"
    return words if controllers_migrate is False else ""


_FIRST_LEVEL_THAT_MIGRATES = 8
"""That of 3.4-IV0."""


def refuse_migration(state: int, level: int | Absent, version: KafkaVersion) -> Refusal | None:
    """Judge `zookeeper.metadata.migration.enable` where a controller with metadata of its own becomes the active one, by how far a migration has come: a cluster that was made without ZooKeeper has none (3.6 to 3.9)."""
    if not (3, 6) <= version < FIRST_WITHOUT_ZOOKEEPER:
        return None
    if isinstance(level, Absent) or level < _FIRST_LEVEL_THAT_MIGRATES:
        named = "3.0-IV1" if isinstance(level, Absent) else level_name(level)
        return Refusal("RuntimeException", f"{_MADE_WITHOUT} running metadata.version {named}")
    return None if state else Refusal("RuntimeException", f"{_MADE_WITHOUT} that was created in KRaft mode.")


def refuse_bootstrap(levels: Sequence[int], version: KafkaVersion) -> Refusal | None:
    """Judge the metadata.version levels of `bootstrap.checkpoint`, which each start without ZooKeeper reads (3.3), whatever the metadata log holds since."""
    if not levels:
        words = "No FeatureLevelRecord for metadata.version was found in the bootstrap metadata"
        return Refusal("RuntimeException", f"{words} of bootstrap.checkpoint")
    least, newest = _levels(version)
    unknown = next((one for one in levels if not least <= one <= newest), None)
    if unknown is None and levels[-1] >= LEAST_OF_BOOTSTRAP:
        return None
    if unknown is None:
        words = f"Bootstrap metadata versions before {level_name(LEAST_OF_BOOTSTRAP)} are not supported"
        return Refusal("RuntimeException", f"{words}. Can't load metadata from bootstrap.checkpoint")
    words = f"{UNKNOWN_LEVEL} {unknown} ({level_name(unknown)}) of metadata.version"
    return Refusal(
        UNREADABLE_LEVEL,
        f"{words}, which bootstrap.checkpoint names. Valid feature levels are from {least} to {newest}.",
    )


def _levels(version: KafkaVersion) -> tuple[int, int]:
    """Return the oldest and the newest metadata.version that a release reads."""
    return LEAST_LEVEL_OF_4 if version >= FIRST_WITHOUT_ZOOKEEPER else 1, newest_level(version)


def newest_level(version: KafkaVersion) -> int:
    """Return the newest metadata.version that a release reads."""
    known = _KNOWN_LEVELS.get((version.major, version.minor))
    if known is not None:
        return known
    levels = [level for level in METADATA_VERSION_LEVELS if (least_version_of_level(level) or (0, 0)) <= version]
    return max(levels, default=0)


def refuse_level(
    level: int | Absent, version: KafkaVersion, *, is_controller: bool, is_unstable_enabled: bool = False
) -> Refusal | None:
    """Judge the cluster's metadata.version by the release that is started.

    Args:
        is_controller: the node reads the log as a controller, and exits. A broker alone is refused at its registration where the release knows the level, and
            before 4.0; where 4.0 or later does not, it can't apply the record, and neither exits nor loads a log.
        is_unstable_enabled: the settings let it use levels that are not for production in its release.
    """
    if isinstance(level, Absent) or (level < 1 and version < (3, 3)):
        return None
    least, known = _levels(version)
    newest = known if is_unstable_enabled else min(known, _PRODUCTION_LEVELS.get((version.major, version.minor), known))
    if least <= level <= newest:
        return None
    name = level_name(level)
    if version >= FIRST_WITHOUT_ZOOKEEPER and not least <= level <= known:
        words = f"{UNKNOWN_LEVEL} {level} ({name}). Valid feature levels are from {least} to {known}."
        never_serves = "" if is_controller else " The process goes on, tries again for ever, and never serves"
        return Refusal(UNREADABLE_LEVEL, words + never_serves)
    return _refuse_feature("metadata.version", f"{level} ({name})", f"{least}-{newest}", is_controller=is_controller)


def _refuse_feature(name: str, level: str, supported: str, *, is_controller: bool) -> Refusal:
    if is_controller:
        words = f"Tried to apply FeatureLevelRecord of {name} {level}, but this controller only supports versions {supported}"
        return Refusal("RuntimeException", words)
    words = f"Unable to register because the broker does not support finalized version {level} of {name}"
    return Refusal("UnsupportedVersionException", f"{words} (it supports {supported})")


def refuse_features(
    levels: Mapping[str, int], version: KafkaVersion, *, is_controller: bool, is_unstable_enabled: bool = False
) -> Refusal | None:
    """Judge the levels of features by the release that is started, as a controller does that replays them, or one with which a broker registers.

    Args:
        levels: of each feature but metadata.version.
        is_unstable_enabled: the settings may let it use levels that are not for production in its release.
    """
    for name, level in levels.items():
        known = _FEATURE_LEVELS.get(name, ())
        if is_unstable_enabled and name in _UNSTABLE_LEVELS:
            known = (*known, _UNSTABLE_LEVELS[name])
        newest = max((one for since, one in known if version >= since), default=0)
        if 0 <= level <= newest:
            continue
        supported = f"0-{newest}" if newest else "0"
        return _refuse_feature(name, f"{level}", supported, is_controller=is_controller)
    return None


def misassigned(assigned: Mapping[tuple[str, int], Assignment]) -> tuple[str, int] | None:
    """Return the first partition that has directories, and not one for each replica (`PartitionRegistration`, 3.7)."""
    found = (key for key, one in assigned.items() if one.directories and len(one.directories) != len(one.replicas))
    return min(found, default=None)


_FORMATS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "AccessControlEntryRecord": ((3, 2),),
    "RemoveAccessControlEntryRecord": ((3, 2),),
    "NoOpRecord": ((3, 3),),
    "ZkMigrationStateRecord": ((3, 4),),
    "RemoveUserScramCredentialRecord": ((3, 5),),
    "BeginTransactionRecord": ((3, 6),),
    "EndTransactionRecord": ((3, 6),),
    "AbortTransactionRecord": ((3, 6),),
    "RemoveDelegationTokenRecord": ((3, 6),),
    "RegisterControllerRecord": ((3, 7),),
    "ClearElrRecord": ((4, 0),),
    "UnregisterControllerRecord": ((4, 4),),
    "PartitionRecord": ((3, 0), (3, 7), (3, 7)),
    "RegisterBrokerRecord": ((3, 0), (3, 3), (3, 4), (3, 7), (4, 3)),
}
"""The release that brought each version of a metadata record (`MetadataRecordType`, 3.0 to 4.4); what only added tagged fields every release reads."""


def refuse_formats(formats: Mapping[tuple[str, int], tuple[str, int]], version: KafkaVersion) -> Refusal | None:
    """Judge the types and versions of records in a metadata log by the release that reads it (`MetadataRecordSerde`).

    Args:
        formats: file and offset of the last record of each.
    """
    for (name, number), (path, offset) in formats.items():
        if version < next(iter(_FORMATS.get(name, ())[number:]), version):
            words = f"offset {offset} of {path}: {name} of version {number} is of a newer release"
            return Refusal("MetadataParseException", words)
    return None


def contradiction(replicas: Sequence[int], isr: Collection[int], version: KafkaVersion | None = None) -> str:
    """Return what of the replicas that the metadata names of a partition contradicts itself, so that it is open what a controller makes of them: one of 3.7 to 4.4 lets no broker in or elects no leader (`PartitionChangeBuilder`); empty where nothing does."""
    if len(set(replicas)) < len(replicas):
        return "a broker twice among the replicas"
    if (version and version < FIRST_WITHOUT_ZOOKEEPER) or (replicas and set(isr) <= set(replicas)):
        return ""
    return "an in-sync replica that is none of the replicas" if replicas else "no replicas"


def is_displaced(directory: str, here: Collection[object]) -> bool:
    """Return whether the metadata place a replica that lies in one of its broker's log directories in another, which is not here: it is open whether it leads once its broker has corrected that (KIP-858)."""
    return directory == LOST_DIRECTORY or directory not in {*here, *RESERVED_DIRECTORY_IDS}


def refuse_kraft_version(level: int, version: KafkaVersion, *, is_controller: bool, has_voters: bool) -> Refusal | None:
    """Judge the kraft.version of a node's metadata log (`RecordsIterator.decodeControlRecord`, 3.5; `KRaftVersion.fromFeatureLevel`, 3.9).

    Args:
        level: -1 where no control record gives one.
        has_voters: the voters are in the log, too.
    """
    if level < 0 or version < (3, 5) or (3, 8) <= version < FIRST_WITH_VOTERS_IN_LOG:
        return None
    if version < (3, 8):
        never_serves = "" if is_controller else " The process goes on, and never serves"
        words = "Unknown control record type UNKNOWN: __cluster_metadata-0 has a kraft.version."
        return Refusal("IllegalArgumentException", words + never_serves)
    if level > max(one for _, one in _FEATURE_LEVELS["kraft.version"]):
        exception = "RuntimeException" if version < FIRST_WITHOUT_ZOOKEEPER else "IllegalArgumentException"
        return Refusal(exception, f"Unknown KRaft feature level: {level} (kraft.version in __cluster_metadata-0)")
    if level and is_controller and not has_voters:
        words = f"The kraft.version is KRAFT_VERSION_{level} but there is no voter set in the log or checkpoint of __cluster_metadata-0"
        return Refusal("IllegalStateException", words)
    return None


def refuse_registration(
    directories: Iterable[NodeDirectory],
    registered: Mapping[int, Sequence[str]],
    node_id: int | Absent,
    level: int | Absent,
    *,
    migration: int,
    version: KafkaVersion,
) -> Refusal | None:
    """Judge whether the controller lets a broker register: while a migration from ZooKeeper has only begun (2), and with its directories (metadata.version 3.7-IV2)."""
    if migration == 2 and (3, 7) <= version < FIRST_WITHOUT_ZOOKEEPER:
        words = "Controller is in pre-migration mode and cannot register KRaft brokers until the metadata migration is complete"
        return Refusal("BrokerIdNotRegisteredException", words)
    if isinstance(level, Absent) or level < LEVEL_OF_DIRECTORY_IDS:
        return None
    for one in directories:
        for other, ids in registered.items():
            if other != node_id and one.directory_id in ids:
                words = f"Broker {other} is already registered with directory {one.directory_id} ({_place(one)})"
                return Refusal("InvalidRegistrationException", words)
    return None


def unclean_for_controller(
    marker_epochs: Sequence[int | Absent], registered_epoch: int | Absent, version: KafkaVersion
) -> str:
    """Return why the controller takes the last stop as unclean when a broker registers, and takes it out of every ISR and ELR (KIP-966, 4.0).

    Args:
        marker_epochs: the broker epoch in the marker of each log directory; not written where it has no marker.

    Returns:
        The reason; empty where the stop counts as clean, or the version does not look.
    """
    if version < (4, 0) or not marker_epochs:
        return ""
    if any(isinstance(epoch, Absent) for epoch in marker_epochs):
        return "a log directory has no clean-shutdown marker with a broker epoch"
    if len(set(marker_epochs)) > 1:
        return "the markers of its log directories name several broker epochs"
    if not isinstance(registered_epoch, Absent) and marker_epochs[0] != registered_epoch:
        return f"the markers name broker epoch {marker_epochs[0]}, and it registered {registered_epoch} last"
    return ""


def fates(
    held: Sequence[HeldLog], assigned: Mapping[tuple[str, int], Assignment], node_id: int, version: KafkaVersion
) -> list[Fate]:
    """Decide what a broker without ZooKeeper does to directories that the metadata do not assign to it.

    Args:
        held: partition directories of the broker, the metadata log's left out.
        assigned: every partition that exists, by topic id and partition.
    """
    without_id = [one for one in held if isinstance(one.topic_id, Absent) and one.ending in {"", "-future"}]
    found = [_fate(one, assigned, node_id, version, is_any_without_id=bool(without_id)) for one in held]
    promoted = {(one.topic_id, one.partition) for one, fate in zip(held, found, strict=True) if fate is Fate.PROMOTED}
    if not promoted:
        return found
    # What it replaces is renamed to -delete, whatever it holds more (`LogManager.replaceCurrentWithFutureLog`).
    return [
        Fate.DELETED if fate is Fate.KEPT and not one.ending and (one.topic_id, one.partition) in promoted else fate
        for one, fate in zip(held, found, strict=True)
    ]


def _fate(
    one: HeldLog,
    assigned: Mapping[tuple[str, int], Assignment],
    node_id: int,
    version: KafkaVersion,
    *,
    is_any_without_id: bool,
) -> Fate:
    if one.ending == "-delete":
        return Fate.DELETED
    if one.ending == "-stray":
        return Fate.KEPT
    place = None if isinstance(one.topic_id, Absent) else assigned.get((one.topic_id, one.partition))
    is_stray = place is None or node_id not in place.replicas
    if version < (3, 7):
        # An exception at the first log without a topic id ends the search: no stray is deleted then.
        return Fate.DELETED if is_stray and not is_any_without_id and one.ending == "" else Fate.KEPT
    if not renames_unnamed(version):
        if is_any_without_id and one.ending == "":
            return Fate.EXITS if isinstance(one.topic_id, Absent) else Fate.KEPT
        return Fate.STRAY if is_stray and one.ending == "" else Fate.KEPT
    if is_stray:
        return Fate.STRAY
    if one.ending == "-future" and place is not None:
        own = dict(zip(place.replicas, place.directories, strict=False)).get(node_id, Absent.UNKNOWN)
        return Fate.PROMOTED if own == one.directory_id else Fate.KEPT
    return Fate.KEPT
