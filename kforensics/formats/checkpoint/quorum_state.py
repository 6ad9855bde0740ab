"""`quorum-state` of the metadata log's directory: the vote and the leader that a KRaft node knows.

    One JSON object in one line, no checksum.
    data_version 0: clusterId, leaderId, leaderEpoch, votedId, appliedOffset, currentVoters [{voterId}]
    data_version 1 (3.8 and later, kraft.version 1): leaderId, leaderEpoch, votedId, votedDirectoryId

Kafka: `FileQuorumStateStore`, `QuorumStateData`. Its -1 for "no leader" and "no vote" become `NOT_WRITTEN`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kforensics.damage import Absent, Damage, DamageKind, Span
from kforensics.errors import UnsupportedFormat, require_known
from kforensics.formats.checkpoint.meta_properties import UUID_PATTERN
from kforensics.formats.primitives.json_line import integer_of, parse_json_object
from kforensics.formats.primitives.text_lines import DamageList

NEWEST_VERSION = 1
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

    Args:
        data: the whole file, one JSON object.

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
    require_known(whole, "data_version", found=version, newest=NEWEST_VERSION)
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
    """Encode the file as a node writes it, in the order of its fields (`FileQuorumStateStore`).

    Args:
        state: an absent leader or vote is written as -1, as Kafka does; of version 0, absent voters as none.
    """
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
