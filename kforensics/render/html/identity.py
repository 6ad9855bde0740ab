"""The identity of an incident, at the top of its page: cluster, versions, brokers, the time that the evidence covers, and when the page was made."""

from collections import defaultdict
from collections.abc import Iterable

from kforensics.commands.explanation import Explanation
from kforensics.damage import Absent
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
