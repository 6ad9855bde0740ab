"""Map versions to rules: broker version, inter.broker.protocol.version and metadata.version decide how a follower truncates."""

import re
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.epochs import (
    CURRENT_RULES,
    RULES_BEFORE_1_0_2,
    RULES_BEFORE_2_0_1,
    RULES_BEFORE_2_6_1,
    EpochRules,
)
from kforensics.protocol.truncation import ProtocolName


class KafkaVersion(NamedTuple):
    """A release; up to 0.11 the first number says nothing and there are four."""

    major: int
    minor: int
    patch: int = 0
    fix: int = 0

    def __str__(self) -> str:
        numbers = self if self.major == 0 else self[:3]
        return ".".join(str(number) for number in numbers)


@dataclass(frozen=True, slots=True)
class ProtocolRules:
    """What is so of brokers that truncate by one protocol; of its releases the last counts."""

    first_version: tuple[int, ...]
    """The first release whose followers can truncate by it."""
    first_level: tuple[int, ...]
    """The first `inter.broker.protocol.version` at which they do."""
    _: KW_ONLY
    simulated_as: KafkaVersion
    """The release whose files and log lines a simulated cluster has."""
    keeps_epochs: bool = True
    """Brokers keep leader epochs, which followers compare, and batches carry them (magic 2)."""
    is_after_2_0_1: bool = True
    """A leader enters its epoch when it is elected (KAFKA-7415), and a follower joins the ISR only at its start (KAFKA-7128)."""
    epoch_rules: EpochRules = CURRENT_RULES
    """Of its last release, where the version is not known."""
    may_halt_out_of_range: bool = False
    """Up to 1.0 a broker whose log ends above its leader's may halt (`unclean.leader.election.enable=false`)."""
    leaves_divergence: str | None = None
    """The known bug by which logs stay divergent, where followers do not see it."""

    @property
    def is_kraft(self) -> bool:
        """Whether a simulated cluster runs without ZooKeeper (KIP-866)."""
        return self.simulated_as >= (4, 0)


class InterBrokerVersion(NamedTuple):
    """A protocol level: the release that brought it, and its -IV number, which a bare release leaves at its highest."""

    major: int
    minor: int
    patch: int
    internal: int


PROTOCOL_RULES = {
    ProtocolName.HW: ProtocolRules(
        (0,),
        (0,),
        simulated_as=KafkaVersion(0, 10, 2, 2),
        keeps_epochs=False,
        is_after_2_0_1=False,
        may_halt_out_of_range=True,
        leaves_divergence="KAFKA-1211",
    ),
    ProtocolName.KIP_101: ProtocolRules(
        (0, 11),
        (0, 11, 0, 2),
        simulated_as=KafkaVersion(1, 1, 1),
        is_after_2_0_1=False,
        epoch_rules=RULES_BEFORE_2_0_1,
        may_halt_out_of_range=True,
        leaves_divergence="KAFKA-6361",
    ),
    ProtocolName.KIP_279: ProtocolRules((2, 0), (2, 0, 0, 0), simulated_as=KafkaVersion(2, 6, 3)),
    # 2.7.0 has only the leader's side of truncation on fetch (KAFKA-10487), 2.8.0 also the follower's (KAFKA-10554).
    ProtocolName.KIP_595: ProtocolRules((2, 8), (2, 7, 0, 1), simulated_as=KafkaVersion(4, 1)),
}
"""Every protocol, the oldest first."""
NEWEST_PROTOCOL = list(ProtocolName)[-1]

NEWEST_KNOWN = KafkaVersion(4, 4)
"""The newest release whose files, records and rules are known here."""
_HIGHEST_INTERNAL = 99
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:\.(\d{1,4}))?")
_LEVEL = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:\.\d{1,4})?(?:-IV(\d{1,3}))?")

# metadata.version levels (MetadataVersion.java, 4.4): the first level of each release and their number.
_LEVELS_BY_RELEASE = (
    ((3, 0), 1, 1),
    ((3, 1), 0, 1),
    ((3, 2), 0, 1),
    ((3, 3), 0, 4),
    ((3, 4), 0, 1),
    ((3, 5), 0, 3),
    ((3, 6), 0, 3),
    ((3, 7), 0, 5),
    ((3, 8), 0, 1),
    ((3, 9), 0, 1),
    ((4, 0), 0, 4),
    ((4, 1), 0, 2),
    ((4, 2), 0, 2),
    ((4, 3), 0, 1),
    ((4, 4), 0, 3),
    ((4, 5), 0, 1),
)
METADATA_VERSION_LEVELS: dict[int, str] = dict(
    enumerate(
        (
            f"{major}.{minor}-IV{first + index}"
            for (major, minor), first, count in _LEVELS_BY_RELEASE
            for index in range(count)
        ),
        start=1,
    )
)
"""Feature level of metadata.version to its name; 1 is 3.0-IV1."""
NEWEST_LEVEL = max(METADATA_VERSION_LEVELS)

NEWEST_FEATURE_LEVELS = {
    "metadata.version": NEWEST_LEVEL,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 1,
    "share.version": 2,
    "streams.version": 1,
    "transaction.version": 2,
}
"""The newest level of each feature that is known (4.4)."""


def least_version_of_level(level: int) -> KafkaVersion | None:
    """Return the release that brought a metadata.version, which no broker of the cluster is older than (`MetadataVersion`, 4.4).

    Args:
        level: the feature level of metadata.version. One that `NEWEST_KNOWN` knows before its release, and one above all that are known
            here, demand at least `NEWEST_KNOWN`.

    Returns:
        The release; none below level 1.
    """
    if level < 1:
        return None
    return min(parse_version(METADATA_VERSION_LEVELS[min(level, NEWEST_LEVEL)]), NEWEST_KNOWN)


def renames_unnamed(version: KafkaVersion) -> bool:
    """Return whether a start of a broker without ZooKeeper takes a directory without a topic id for a stray and renames it (KAFKA-16814); before, it kept it, and 3.7.0 ended."""
    return version >= (3, 7, 1)


def level_name(level: int) -> str:
    """Return the name of a level of metadata.version in words, such as "4.4-IV2"."""
    name = METADATA_VERSION_LEVELS.get(level)
    if name is not None:
        return name
    return f"newer than {METADATA_VERSION_LEVELS[NEWEST_LEVEL]}" if level > NEWEST_LEVEL else "unknown"


def parse_version(text: str) -> KafkaVersion:
    """Return a release as in `AppInfo` lines and jar names, whatever follows the numbers; one that is missing is 0."""
    match = _VERSION.match(text)
    if match is None:
        raise ValueError(f"not a Kafka version: {text!r}")
    return KafkaVersion(*(int(number or 0) for number in match.groups()))


def parse_inter_broker_version(text: str) -> InterBrokerVersion:
    """Return a level as in `inter.broker.protocol.version`, such as 0.11.0-IV2, 2.7-IV1 or 3.6, which means the last level of the release."""
    match = _LEVEL.fullmatch(text)
    if match is None:
        raise ValueError(f"not an inter-broker protocol version: {text!r}")
    major, minor, patch, internal = match.groups()
    # A bare release means its last level; only 0.x levels have a third number that counts.
    third = int(patch or 0) if int(major) == 0 else 0
    return InterBrokerVersion(int(major), int(minor), third, _HIGHEST_INTERNAL if internal is None else int(internal))


def protocol_of(
    version: KafkaVersion, inter_broker_version: InterBrokerVersion | Absent = Absent.NOT_WRITTEN
) -> ProtocolName:
    """Return the protocol by which a broker of `version` truncates.

    Args:
        inter_broker_version: `inter.broker.protocol.version`; absent, and from 4.0 on in any case, the last level of the version itself.
    """
    if isinstance(inter_broker_version, Absent) or version.major >= 4:
        patch = version.patch if version.major == 0 else 0
        inter_broker_version = InterBrokerVersion(version.major, version.minor, patch, _HIGHEST_INTERNAL)
    return next(
        name
        for name in reversed(ProtocolName)
        if version >= PROTOCOL_RULES[name].first_version and inter_broker_version >= PROTOCOL_RULES[name].first_level
    )


def protocols_since(version: tuple[int, ...]) -> tuple[ProtocolName, ...]:
    """Return the protocols that brokers of a version and later have, the newest first."""
    rising = list(ProtocolName)
    until = [PROTOCOL_RULES[name].first_version for name in rising[1:]]
    return tuple(reversed([*(name for name, end in zip(rising, until, strict=False) if end > version), rising[-1]]))


def epoch_rules_of(version: KafkaVersion) -> EpochRules:
    """Return the rules of the epoch cache of a broker of `version`."""
    if version < (1, 0, 2) or (1, 1) <= version < (1, 1, 1):
        return RULES_BEFORE_1_0_2
    if version < (2, 0, 1):
        return RULES_BEFORE_2_0_1
    if version < (2, 6, 1):
        return RULES_BEFORE_2_6_1
    return CURRENT_RULES


def advances_only_at_min_isr(version: KafkaVersion) -> bool:
    """Return whether a leader's high watermark waits for min.insync.replicas: since 3.7.0 (KIP-966)."""
    return version >= (3, 7)
