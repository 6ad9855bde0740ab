"""Two real brokers part, the truncation is predicted from copies of their directories, and the follower comes back."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kforensics.ask.model import Ask
from kforensics.commands.comparing import compare
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import parse_version, protocol_of
from kforensics.reconcile.replicas.report import ReplicaReport
from tests.builders.cases import case_of
from tests.oracle.cluster import BROKERS, CONTROLLER, TOPIC, Cluster, run_cluster
from tests.oracle.conftest import PROPERTY
from tests.oracle.histories import HISTORIES, History, Parted
from tests.oracle.jars import RELEASES, Release
from tests.oracle.witness import Entry, entries_of, first_difference, truncation_lines

pytestmark = pytest.mark.oracle


@dataclass(frozen=True, slots=True)
class Prediction:
    """What kforensics says of the follower before it comes back."""

    protocol: ProtocolName
    rule: str
    truncation: int | None
    """The new log end, none where nothing is cut."""
    steps: tuple[int, ...]
    """Each step's new log end."""
    stays_different_from: int | None
    """The first offset at which the logs will differ for good."""


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name.replace(" ", "-"))
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_brokers_truncate_where_predicted(
    release: Release, history: History, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with run_cluster(release, tmp_path / "cluster", mark_interval_ms=history.mark_interval_ms) as cluster:
        parted = history.play(cluster)
        copies = _copy(cluster, tmp_path / "copies")
        before = entries_of(cluster.data(parted.follower))
        prediction = _predict(copies, parted)

        position = cluster.server_log(parted.follower).stat().st_size
        cluster.start(parted.follower)
        cluster.wait_in_sync()
        for node in (parted.follower, parted.leader):
            cluster.stop(node)

        lines = truncation_lines(cluster.server_log(parted.follower), position)
        after = [entries_of(cluster.data(node)) for node in (parted.leader, parted.follower)]
    difference = first_difference(*after)
    record_property(PROPERTY, _row(release, history, prediction, lines, difference))
    assert prediction.protocol == protocol_of(parse_version(release.version))
    assert _effective(lines, before) == prediction.steps
    assert prediction.truncation == (prediction.steps[-1] if prediction.steps else None)
    assert difference == prediction.stays_different_from
    if prediction.truncation is not None:
        # Entries that were cut were written again by the leader, so only what lies below the cut is still the follower's own.
        kept = [entry for entry in before if entry.offset < prediction.truncation]
        assert after[1][: len(kept)] == kept


def _copy(cluster: Cluster, target: Path) -> list[Path]:
    """What an operator gathers: data and logs of every node."""
    nodes = (*BROKERS, CONTROLLER) if cluster.release.is_kraft else BROKERS
    for node in nodes:
        for source in (cluster.data(node), cluster.server_log(node).parent):
            shutil.copytree(source, target / f"broker-{node}" / source.name)
    return [target / f"broker-{node}" / name for node in nodes for name in ("data", "logs")]


def _predict(copies: list[Path], parted: Parted) -> Prediction:
    result = compare(
        case_of(find_inputs(copies, with_server_logs=True), Ask(topics=frozenset({TOPIC}))), keep_quiet=True
    )
    (report,) = result.reports
    assert report.leader is not None
    assert report.leader.view.replica.broker_id == parted.leader
    (follower,) = (one for one in report.replicas if one.view.replica.broker_id == parted.follower)
    assert follower.outcome is not None
    assert not isinstance(follower.protocol, Absent)
    truncation = follower.truncation.offset if follower.truncation is not None else None
    return Prediction(
        protocol=follower.protocol.name,
        rule=follower.outcome.rule.value,
        truncation=truncation,
        steps=tuple(step.truncate_to for step in follower.outcome.steps if isinstance(step.truncate_to, int)),
        stays_different_from=_difference_that_stays(follower, truncation),
    )


def _difference_that_stays(follower: ReplicaReport, truncation: int | None) -> int | None:
    if follower.divergence is None or (truncation is not None and truncation <= follower.divergence.offset):
        return None
    return follower.divergence.offset


def _effective(lines: list[int], before: list[Entry]) -> tuple[int, ...]:
    """The truncations that took something away; brokers also log those at the log end, such as the last round of KIP-279."""
    end = before[-1].offset + 1
    truncations = []
    for offset in lines:
        if offset < end:
            truncations.append(offset)
            end = offset
    return tuple(truncations)


def _row(
    release: Release, history: History, prediction: Prediction, lines: list[int], difference: int | None
) -> tuple[str, ...]:
    did = ", ".join(str(offset) for offset in lines) or "–"
    predicted = ", ".join(str(offset) for offset in prediction.steps) or "–"
    stays = ["–" if offset is None else str(offset) for offset in (prediction.stays_different_from, difference)]
    return (release.version, history.name, prediction.protocol.value, prediction.rule, predicted, did, *stays)
