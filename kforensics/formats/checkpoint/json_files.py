"""Small files of one JSON object: quorum-state of the metadata log, and .kafka_cleanshutdown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import FormatError, UnsupportedFormat, require_known
from kforensics.formats.checkpoint.properties import UUID_PATTERN
from kforensics.formats.primitives.text_lines import DamageList, integer_of, parse_json_object, shown

# `quorum-state` of the metadata log's directory: the vote and the leader that a KRaft node knows.
#
#     One JSON object in one line, no checksum.
#     data_version 0: clusterId, leaderId, leaderEpoch, votedId, appliedOffset, currentVoters [{voterId}]
#     data_version 1 (3.8 and later, kraft.version 1): leaderId, leaderEpoch, votedId, votedDirectoryId
#
# Kafka: `FileQuorumStateStore`, `QuorumStateData`. Its -1 for "no leader" and "no vote" become `NOT_WRITTEN`.


NEWEST_QUORUM_STATE = 1
NO_ID = -1
NO_DIRECTORY_ID = "A" * 22


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """The quorum state that the node wrote last; `NOT_WRITTEN` means "none", `NOT_APPLICABLE` "not in this version"."""

    data_version: int
    leader_id: int | Absent
    leader_epoch: int | Absent
    voted_id: int | Absent
    voted_directory_id: str | Absent = Absent.NOT_APPLICABLE
    cluster_id: str | Absent = Absent.NOT_APPLICABLE
    applied_offset: int | Absent = Absent.NOT_APPLICABLE
    current_voters: tuple[int, ...] | Absent = Absent.NOT_APPLICABLE
    damage: tuple[Damage, ...] = field(default=())


def parse_quorum_state(data: bytes | memoryview) -> QuorumState:
    """Parse `quorum-state`, the vote and the leader that a KRaft node knows (`FileQuorumStateStore`).

    Returns:
        The fields of its version; one that is missing or malformed is `UNREADABLE`, with damage, but that missing voters are none.

    Raises:
        FormatError: the bytes are no JSON object; `UnsupportedFormat` where its version is neither 0 nor 1.
    """
    fields = parse_json_object(data, expected="a JSON object of quorum state")
    whole = Span(0, len(data))
    version = integer_of(fields.get("data_version"))
    if version is None:
        found = f"data_version {fields.get('data_version')!r:.40}"
        raise UnsupportedFormat(whole, expected="data_version 0 or 1", found=found)
    require_known(whole, "data_version", found=version, newest=NEWEST_QUORUM_STATE)
    damage = DamageList()
    reader = _Reader(fields, whole, damage)
    old = version == 0
    return QuorumState(
        data_version=version,
        leader_id=reader.identifier("leaderId"),
        leader_epoch=reader.number("leaderEpoch", at_least=0),
        voted_id=reader.identifier("votedId"),
        voted_directory_id=Absent.NOT_APPLICABLE if old else reader.directory("votedDirectoryId"),
        cluster_id=reader.text("clusterId") if old else Absent.NOT_APPLICABLE,
        applied_offset=reader.number("appliedOffset", at_least=0) if old else Absent.NOT_APPLICABLE,
        current_voters=reader.voters("currentVoters") if old else Absent.NOT_APPLICABLE,
        damage=damage.as_tuple(),
    )


def encode_quorum_state(state: QuorumState) -> bytes:
    """Encode the file as a node writes it: an absent leader or vote as -1, absent voters of version 0 as none (`FileQuorumStateStore`)."""
    leader = {
        "leaderId": _sentinel(state.leader_id),
        "leaderEpoch": _sentinel(state.leader_epoch),
        "votedId": _sentinel(state.voted_id),
    }
    fields: dict[str, Any]
    if state.data_version == 0:
        voters = () if isinstance(state.current_voters, Absent) else state.current_voters
        fields = {
            "clusterId": "" if isinstance(state.cluster_id, Absent) else state.cluster_id,
            **leader,
            "appliedOffset": 0 if isinstance(state.applied_offset, Absent) else state.applied_offset,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
    else:
        directory = NO_DIRECTORY_ID if isinstance(state.voted_directory_id, Absent) else state.voted_directory_id
        fields = {**leader, "votedDirectoryId": directory, "data_version": state.data_version}
    return json.dumps(fields, separators=(",", ":")).encode()


def _sentinel(value: int | Absent) -> int:
    return NO_ID if isinstance(value, Absent) else value


class _Reader:
    def __init__(self, fields: Mapping[str, Any], whole: Span, damage: DamageList) -> None:
        self._fields = fields
        self._whole = whole
        self._damage = damage

    def number(self, name: str, *, at_least: int) -> int | Absent:
        value = integer_of(self._fields.get(name))
        if value is None or not at_least <= value < 1 << 63:
            return self._wrong(name, f"a number of {at_least} or more")
        return value

    def identifier(self, name: str) -> int | Absent:
        value = self.number(name, at_least=NO_ID)
        return Absent.NOT_WRITTEN if value == NO_ID else value

    def text(self, name: str) -> str | Absent:
        value = self._fields.get(name)
        if not isinstance(value, str):
            return self._wrong(name, "a text")
        return value or Absent.NOT_WRITTEN

    def directory(self, name: str) -> str | Absent:
        value = self._fields.get(name)
        if not isinstance(value, str) or not UUID_PATTERN.fullmatch(value):
            return self._wrong(name, "22 characters of URL-safe base64")
        return Absent.NOT_WRITTEN if value == NO_DIRECTORY_ID else value

    def voters(self, name: str) -> tuple[int, ...] | Absent:
        value = self._fields.get(name)
        if value is None:
            return ()
        voters = (
            [integer_of(item.get("voterId")) if isinstance(item, dict) else None for item in value]
            if isinstance(value, list)
            else [None]
        )
        known = tuple(voter for voter in voters if voter is not None)
        return known if len(known) == len(voters) else self._wrong(name, "a list of voterId")

    def _wrong(self, name: str, expected: str) -> Absent:
        found = f"{self._fields[name]!r:.60}" if name in self._fields else "no such field"
        self._damage.add(self._whole, DamageKind.TEXT, expected=f"{name}: {expected}", found=found)
        return Absent.UNREADABLE


# `.kafka_cleanshutdown` of a log directory: its presence says that the broker stopped cleanly.
#
#     0.8.0 to 3.6: an empty file; 3.7 and later: one JSON object `{"version":0,"brokerEpoch":N}`, N = -1 where it
#     is not known.
#
# Kafka: `CleanShutdownFileHandler`. The presence of the file decides; a broker that can't read the content only lacks the epoch.


NEWEST_CLEAN_SHUTDOWN = 0
NO_BROKER_EPOCH = -1


class CleanShutdown(NamedTuple):
    """The content of the file: the epoch is `NOT_APPLICABLE` in the empty file of old brokers, and `NOT_WRITTEN` if it is -1."""

    broker_epoch: int | Absent
    damage: tuple[Damage, ...] = ()


def parse_clean_shutdown(data: bytes | memoryview) -> CleanShutdown:
    """Parse `.kafka_cleanshutdown`; its presence shows a clean shutdown even if the content is malformed.

    Returns:
        The broker epoch; what can't be read of it is damage of gravity `stale`.

    Raises:
        NewerThanKnown: it is of a newer version.
    """
    if not len(data):
        return CleanShutdown(broker_epoch=Absent.NOT_APPLICABLE)
    try:
        fields = parse_json_object(data, expected="nothing, or a JSON object with brokerEpoch")
    except FormatError as error:
        return _unreadable(error.span, error.expected, error.found)
    version, epoch = integer_of(fields.get("version")), integer_of(fields.get("brokerEpoch"))
    if version is not None and version > NEWEST_CLEAN_SHUTDOWN:
        require_known(Span(0, len(data)), ".kafka_cleanshutdown version", found=version, newest=NEWEST_CLEAN_SHUTDOWN)
    if version != 0 or epoch is None or epoch < NO_BROKER_EPOCH:
        return _unreadable(Span(0, len(data)), "version 0 and a brokerEpoch", shown(data))
    return CleanShutdown(broker_epoch=Absent.NOT_WRITTEN if epoch == NO_BROKER_EPOCH else epoch)


def encode_clean_shutdown(marker: CleanShutdown) -> bytes:
    """Encode the file as a broker writes it, empty up to 3.6, where the epoch is `NOT_APPLICABLE`; any other absence is -1 (`CleanShutdownFileHandler`)."""
    if marker.broker_epoch is Absent.NOT_APPLICABLE:
        return b""
    epoch = NO_BROKER_EPOCH if isinstance(marker.broker_epoch, Absent) else marker.broker_epoch
    return json.dumps({"version": 0, "brokerEpoch": epoch}, separators=(",", ":")).encode()


def _unreadable(span: Span, expected: str, found: str) -> CleanShutdown:
    place = Damage(span=span, kind=DamageKind.TEXT, expected=expected, found=found, gravity=Gravity.STALE)
    return CleanShutdown(broker_epoch=Absent.UNREADABLE, damage=(place,))
