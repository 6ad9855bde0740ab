"""What an incident is about (cluster, versions, brokers, the time that the evidence covers), and what its evidence leaves open."""

from collections import defaultdict
from collections.abc import Iterable

from kforensics.commands.explanation import Explanation
from kforensics.damage import Absent
from kforensics.reconcile.history.causes import CauseName
from kforensics.units import METADATA_TOPICS
from kforensics.words import counted, form, listed, utc_text

MOST_NAMED = 12
_WITH_DIRECTORY = frozenset({"broker", "combined", "snapshot-before"})


def identity_of(result: Explanation) -> list[tuple[str, str]]:
    """Return the terms and what they are of this incident; what no input shows is said to be unknown."""
    return [
        ("Cluster", _clusters(result)),
        ("Kafka", _versions(result)),
        ("Brokers", _brokers(result)),
        ("Events", _window(result)),
    ]


def _clusters(result: Explanation) -> str:
    ids = sorted({one.cluster_id for one in result.inputs if not isinstance(one.cluster_id, Absent)})
    return listed(ids) if ids else "unknown: no input names its id"


def _versions(result: Explanation) -> str:
    nodes: dict[str, list[int]] = defaultdict(list)
    for node, version in result.versions:
        nodes[version].append(node)
    words = [f"{version} ({_nodes(of)})" for version, of in sorted(nodes.items())]
    if words:
        return "; ".join(words)
    if not isinstance(result.least_version, Absent):
        return f"{result.least_version} or later (metadata.version)"
    hints = sorted({one.kafka_version_hint for one in result.inputs if not isinstance(one.kafka_version_hint, Absent)})
    return "; ".join(hints) if hints else "unknown: no input names a version"


def _brokers(result: Explanation) -> str:
    controllers = {one.broker_id for one in result.inputs if one.kind == "controller"}
    given = {
        one.broker_id
        for one in result.inputs
        if one.kind in _WITH_DIRECTORY and isinstance(one.broker_id, int) and one.broker_id not in controllers
    }
    missing = {broker for incident in result.incidents for broker in incident.missing_replicas} - given
    words = _ids(given) if given else "no directory of a broker is given"
    return f"{words}; not given: {_ids(missing)}" if missing else words


def _window(result: Explanation) -> str:
    times = [entry.time_ms for entry in result.timeline if isinstance(entry.time_ms, int)]
    if not times:
        return "no input names a time"
    return f"{utc_text(min(times))} to {utc_text(max(times))}"


def _nodes(ids: Iterable[int | Absent]) -> str:
    chosen = sorted(one for one in ids if isinstance(one, int))
    return f"{form(len(chosen), 'node')} {_ids(chosen)}" if chosen else counted(0, "node")


def _ids(ids: Iterable[int]) -> str:
    return listed([str(one) for one in sorted(ids)], most=MOST_NAMED)


def unknowns(result: Explanation) -> list[str]:
    """Return a sentence for each question that the inputs do not answer.

    Args:
        result: the incidents of the metadata log are left out.
    """
    incidents = [incident for incident in result.incidents if incident.partition.topic not in METADATA_TOPICS]
    losses = [loss for incident in incidents for loss in incident.losses]
    truncations = [truncation for incident in incidents for truncation in incident.truncations]
    open_losses = [loss for loss in losses if loss.was_committed == "possible"]
    sentences = []
    if open_losses:
        records = counted(sum(loss.records for loss in open_losses), "record")
        sentences.append(f"Whether {records} that the final leaders do not hold had been committed.")
    logged_only = [loss for loss in losses if not loss.held_by]
    if logged_only:
        sentences.append(
            f"The content of {counted(sum(loss.records for loss in logged_only), 'record')} that only log lines show: no copy is among the inputs."
        )
    causeless = [truncation for truncation in truncations if truncation.cause.name is CauseName.UNKNOWN]
    if causeless:
        names = ", ".join(sorted({str(truncation.topic_partition) for truncation in causeless})[:4])
        sentences.append(f"Why {counted(len(causeless), 'truncation')} happened ({names}).")
    unsure = [loss for loss in losses if loss.cause is CauseName.UNKNOWN]
    if unsure:
        names = ", ".join(sorted({str(loss.topic_partition) for loss in unsure})[:4])
        sentences.append(f"What took the records of {counted(len(unsure), 'run')} in the ledger ({names}).")
    return sentences
