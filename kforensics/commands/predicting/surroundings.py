"""What a start depends on beside the logs: the metadata that the controllers hold, and the settings that are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.discovery.server_settings import read_server_properties
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.log import read_metadata_logs
from kforensics.evidence.metadata.quorum import QuorumSetBack, newest_log, quorum_set_back
from kforensics.evidence.metadata.state import MetadataState
from kforensics.evidence.metadata.unrelated import refuse_two_clusters
from kforensics.evidence.model import Problem
from kforensics.protocol.loading.node import Assignment
from kforensics.source.naming import FileKind

TOPIC, BROKER = 2, 4
"""Resource types of configurations."""


@dataclass(frozen=True)
class Surroundings:
    """The newest metadata log among the inputs, server logs, and the `server.properties` of each node."""

    history: MetadataHistory | None
    log_files: tuple[LogFile, ...]
    properties: Sequence[Mapping[str, str]]
    is_of_one_moment: bool = True
    """No node is among the inputs twice: metadata of one moment say nothing of a node at another."""
    quorum: QuorumSetBack | None = None
    """The voters that can go on without metadata that was committed."""

    @cached_property
    def state(self) -> MetadataState | None:
        """The metadata at the end of the newest log; none where there is none, or where part of it can't be read."""
        history = self.history
        if history is None or history.gaps or history.problems or not self.is_of_one_moment:
            return None
        return None if any(damage.hides_content for _, damage in history.damage) else history.latest()

    @cached_property
    def assigned(self) -> Mapping[tuple[str, int], Assignment] | None:
        """Every partition of the metadata, by topic id and partition; none where they are not known."""
        if self.state is None:
            return None
        return {
            key: Assignment(tuple(one.replicas), tuple(one.directories)) for key, one in self.state.partitions.items()
        }

    @cached_property
    def registered(self) -> Mapping[int, Sequence[str]]:
        """The directory ids that each broker registered last."""
        return {} if self.state is None else {key: one.log_dirs for key, one in self.state.brokers.items()}

    @property
    def level(self) -> int | Absent:
        """The feature level of metadata.version."""
        return Absent.UNKNOWN if self.state is None else self.state.metadata_version

    def configured_id(self, node_count: int) -> int | None:
        """Return the id that the only `server.properties` gives the only node, None where there are several of either."""
        if node_count != 1 or len(self.properties) != 1:
            return None
        value = node_id_of(self.properties[0])
        return int(value) if value.isdecimal() and len(value) < 10 else None


def look_around(
    inputs: Inputs, log_files: Sequence[LogFile], problems: list[Problem], *, is_of_one_moment: bool = True
) -> Surroundings:
    """Read the newest metadata log and the settings among the inputs.

    Args:
        problems: what can't be read is added here.
        is_of_one_moment: no node is among the inputs twice.
    """
    histories = read_metadata_logs(inputs)
    refuse_two_clusters(histories, inputs)
    return Surroundings(
        newest_log(histories),
        tuple(log_files),
        server_properties(inputs, problems),
        is_of_one_moment,
        quorum_set_back(histories, inputs) if is_of_one_moment else None,
    )


def server_properties(inputs: Inputs, problems: list[Problem]) -> tuple[Mapping[str, str], ...]:
    """Return the settings of each node that has a `server.properties` among the inputs.

    Files of one input are of one node, unless they name several.

    Args:
        problems: what can't be read is added here.
    """
    found: list[Mapping[str, str]] = []
    for number, one in enumerate(inputs.found):
        if one.described.kind not in {"log-files", FileKind.SERVER_PROPERTIES.value}:
            continue
        by_id: dict[str, dict[str, str]] = {}
        for path, settings in read_server_properties(one):
            if isinstance(settings, EvidenceError):
                problems.append(Problem(input=number, path=path, message=settings.problem))
            else:
                by_id.setdefault(node_id_of(settings), {}).update(settings)
        without_id = by_id.pop("", {})
        found += by_id.values() if len(by_id) > 1 else [without_id | one for one in by_id.values()] or [without_id]
    return tuple(one for one in found if one)


def node_id_of(properties: Mapping[str, str]) -> str:
    """Return the id that a `server.properties` gives its node, as text; empty where it gives none.

    Args:
        properties: value by name; `node.id` counts before `broker.id`.
    """
    return properties.get("node.id", properties.get("broker.id", ""))
