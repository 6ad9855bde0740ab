"""Events as sentences: one sentence for the same event of several partitions at one moment; and which entries of a timeline a reader needs, alike on a screen and on a page."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import words_of
from kforensics.evidence.model import Citation, Input
from kforensics.reconcile.incident.model import ExplainedTruncation, PartitionIncident
from kforensics.reconcile.observed.line_kinds import LineKind
from kforensics.reconcile.timeline.events import WHOLE_TOPIC, TimelineEntry, set_to
from kforensics.render.frame import node_name
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import counted, form, id_list, listed, time_of_day

MOST_NAMES = 4
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{(\w+)\}")
_WITH_EPOCH = frozenset({"unclean-election", "leader-change"})

_SENTENCES = {
    "unclean-election": "{broker} becomes leader of {names} by unclean election: the ISR was {was}",
    "leader-change": "{broker} becomes leader of {names}",
    "leader-lost": "{names} {have} no leader",
    "leader-recovered": "{broker} has recovered {names} after its unclean election",
    "isr-shrink": "the ISR of {names} shrinks from {isr_before} to {isr}",
    "isr-expand": "the ISR of {names} grows from {isr_before} to {isr}",
    "reassignment": "{names} {are} reassigned from {replicas_before} to {replicas}",
    "controller-change": "{broker} becomes the active controller",
    "broker-start": "{broker} has started",
    "broker-stop": "{broker} has stopped cleanly",
    "stop-requested": "{broker} begins to shut down[: {reason}]",
    "broker-halted": "{broker} halts[: {reason}][ ({cause})]",
    "broker-fenced": "the controller fences {broker}[: {reason}]",
    "broker-unfenced": "the controller unfences {broker}",
    "broker-registered": "{broker} registers with the controller",
    "broker-unregistered": "{broker} is unregistered from the cluster",
    "log-dir-error": "{broker} meets an error in {log_dir}[: {reason}][: {cause}]",
    "log-dir-failed": "{broker} stops serving {log_dir}, which failed",
    "recovery": "{broker} recovers {log_dir}: its last shutdown was unclean",
    "topic-created": "{topics} {names} {are} created",
    "topic-deleted": "{topics} {names} {are} deleted",
    "config-change": "{name} is {set_to}[ for {names}]",
    "segments-deleted": "{broker} deletes segments[ of {names}][: {reason}]",
    "log-created": "{broker} begins a log of {names}",
    "log-discarded": "{broker} renames its log of {names} for deletion",
    "log-start-moved": "{broker} moves the log start offset of {names} to {log_start_offset}[: {reason}]",
    "truncation-refused": "{broker} stops instead of truncating {names} from {log_end_offset} to {offset}",
    "truncation": "{broker} truncates {names} to {to_offset}[{without_effect}]",
}
"""The sentence of each kind of entry; a field that the entry lacks takes its part in brackets along. Kinds of log lines have theirs in `evidence.event_kinds`."""


GRAVE = frozenset(
    {
        "unclean-election",
        "broker-halted",
        "log-dir-failed",
        "truncation-refused",
        "segments-deleted",
        "start-failed",
        "fatal-fault",
    }
)
"""The kinds of entries after which an incident is not over."""


class Sentence(NamedTuple):
    """A sentence, its time (UTC), and the citations that show it."""

    time_ms: int | Absent
    words: str
    citations: tuple[Citation, ...]
    metadata_offset: int | Absent
    """The offset of the metadata record that shows it."""
    kind: str
    """The kind of the entries."""


_OF_PARTITIONS = frozenset({"isr-shrink", "isr-expand", "leader-lost"})


def sentences_of(entries: Iterable[TimelineEntry], inputs: Sequence[Input]) -> Iterator[Sentence]:
    """Yield a sentence for each entry; entries of one moment that differ only in their partition share a sentence.

    Args:
        inputs: which show the nodes that are controllers.
    """
    groups: dict[tuple[object, ...], list[TimelineEntry]] = {}
    for entry in entries:
        alike = tuple(
            item for item in entry.detail.items() if item[0] not in {"metadata_offset", "leader", "leader_before"}
        )
        broker = None if entry.kind in _OF_PARTITIONS else entry.broker_id
        where = entry.topic_partition if isinstance(entry.topic_partition, Absent) else None
        groups.setdefault((entry.time_ms, entry.kind, broker, where, alike), []).append(entry)
    for group in groups.values():
        citations = tuple(dict.fromkeys(citation for one in group for citation in one.citations))
        at = group[0].detail.get("metadata_offset")
        is_recorded = isinstance(at, int) and not any(isinstance(one.line, int) for one in citations)
        offset = at if is_recorded and isinstance(at, int) else Absent.NOT_APPLICABLE
        yield Sentence(group[0].time_ms, sentence(group[0], _names(group), inputs), citations, offset, group[0].kind)


def truncation_sentence(truncations: Sequence[ExplainedTruncation], arrow: str, inputs: Sequence[Input]) -> str:
    """Describe truncations of one broker: a single one with the log end offset before it, several with how many records they took at most and at least.

    Args:
        truncations: by time, at least one; of which the broker is known.
        arrow: from the old to the new log end offset, `→` where the terminal can show it.
        inputs: which show the nodes that are controllers.
    """
    first, last = truncations[0], truncations[-1]
    if first is last:
        node = _node_name(first.broker_id, inputs, is_of_quorum=_is_metadata(first.topic_partition))
        return f"{node} truncates {first.topic_partition} {first.from_offset} {arrow} {first.to_offset}"
    sizes = sorted(one.from_offset - one.to_offset for one in truncations)
    size = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    names = listed([str(one.topic_partition) for one in truncations], most=MOST_NAMES)
    until = (
        f", until {time_of_day(last.time_ms)}"
        if isinstance(last.time_ms, int) and last.time_ms != first.time_ms
        else ""
    )
    return f"broker {first.broker_id} truncates {len(truncations)} logs by {size} offsets each{until}: {names}"


def _names(group: Sequence[TimelineEntry]) -> str:
    names = list(
        dict.fromkeys(_name(one, one.topic_partition) for one in group if not isinstance(one.topic_partition, Absent))
    )
    rest = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + rest


def _name(entry: TimelineEntry, partition: TopicPartition | Absent) -> str:
    if isinstance(partition, Absent):
        return ""
    if partition.partition == WHOLE_TOPIC:
        return partition.topic
    return f"{partition} (epoch {entry.leader_epoch})" if entry.kind in _WITH_EPOCH else str(partition)


def sentence(entry: TimelineEntry, names: str, inputs: Sequence[Input] = ()) -> str:
    """Describe an entry of the timeline in a sentence."""
    known = _known_fields(entry, names, inputs)
    words = _OPTIONAL.sub(
        lambda part: part[1] if set(_FIELD.findall(part[1])) <= known.keys() else "",
        _SENTENCES.get(entry.kind) or words_of(entry.kind),
    )
    return _FIELD.sub(lambda field: str(known.get(field[1], "unknown")), words) or _plain(entry, names, inputs)


def _known_fields(entry: TimelineEntry, names: str, inputs: Sequence[Input]) -> dict[str, object]:
    detail, many = entry.detail, ", " in names
    known: dict[str, object] = {
        name: id_list(value) if isinstance(value, tuple) else value
        for name, value in detail.items()
        if not isinstance(value, Absent)
    }
    before = detail.get("isr_before")
    return known | {
        "broker": _broker(entry, inputs),
        "set_to": set_to(detail.get("value")),
        **({"names": names} if names else {}),
        "are": "are" if many else "is",
        "have": "have" if many else "has",
        "topics": "topics" if many else "topic",
        "was": id_list(before) if before else "empty",
        "log_dir": detail.get("directory", "a log directory"),
        **({"without_effect": ", without effect"} if detail.get("effect") is False else {}),
    }


def _plain(entry: TimelineEntry, names: str, inputs: Sequence[Input]) -> str:
    subject_of = ", ".join(
        f"{name.replace('_', ' ')} {id_list(value) if isinstance(value, tuple) else value}"
        for name, value in entry.detail.items()
        if not isinstance(value, Absent) and (name, value) != ("broker", entry.broker_id)
    )
    subject = f" of {names}" if names else ""
    return f"{_broker(entry, inputs)}: {entry.kind.replace('-', ' ')}{subject}" + (
        f" ({subject_of})" if subject_of else ""
    )


def _is_metadata(partition: TopicPartition | Absent) -> bool:
    return not isinstance(partition, Absent) and partition.topic in METADATA_TOPICS


_OF_CONTROLLERS = frozenset({"controller-change", "controller-unregistered"})


def _broker(entry: TimelineEntry, inputs: Sequence[Input]) -> str:
    if not isinstance(entry.broker_id, int):
        return "a node"
    is_of_quorum = _is_metadata(entry.topic_partition) or entry.kind in _OF_CONTROLLERS
    if is_of_quorum and entry.kind == "leader-change":
        return f"controller {entry.broker_id}"
    return _node_name(entry.broker_id, inputs, is_of_quorum=is_of_quorum)


def _node_name(node: int | Absent, inputs: Sequence[Input], *, is_of_quorum: bool) -> str:
    name = node_name(node, inputs)
    # Brokers hold copies of the metadata log, too, and with ZooKeeper one of them is the controller.
    return name.replace("broker", "node") if is_of_quorum else name


# What decides something in an incident; the rest is shown with -v. Of elections those count that were unclean, or after which a log was truncated,
# and of an ISR that shrinks that only one replica is left in it.
_SHOWN = frozenset(
    {
        "broker-stop",
        "broker-halted",
        "start-failed",
        "fatal-fault",
        "retention",
        "broker-fenced",
        "recovery",
        "unclean-election",
        "isr-shrink",
        "log-dir-failed",
        "truncation-refused",
        "segments-deleted",
        "topic-deleted",
    }
)

AFTERMATH_MS = 1_000
"""How long after the last grave event the timeline continues."""


_SHOWN_ALONE = frozenset(
    {"retention", "start-failed", "fatal-fault", "broker-halted", "log-dir-error", "log-dir-failed"}
)
"""Kinds that are shown also where nothing happened to a partition: records that were deleted, and nodes that ended."""


def shown_entries(
    timeline: Sequence[TimelineEntry], incidents: Sequence[PartitionIncident], *, verbose: bool
) -> list[TimelineEntry]:
    """Return the entries that a person needs to follow the incident, not those of partitions that lost or truncated nothing: none where nothing happened, all where `verbose`."""
    if verbose:
        return list(timeline)
    eventful = {
        incident.partition
        for incident in incidents
        if incident.truncations or incident.losses or incident.counts_at_least
    }
    if not eventful:
        return [entry for entry in timeline if not entry.is_quiet and entry.kind in _SHOWN_ALONE]
    truncations = [one for incident in incidents for one in incident.truncations]
    cited = {citation for one in truncations for citation in one.citations}
    decided = {(one.topic_partition, one.leader_epoch) for one in truncations}
    about = [
        entry
        for entry in timeline
        if not entry.is_quiet
        and _decides(entry, decided)
        and (entry.kind != "truncation" or not cited.intersection(entry.citations))
        and (isinstance(entry.topic_partition, Absent) or entry.topic_partition in eventful)
    ]
    times = [one.time_ms for one in truncations if isinstance(one.time_ms, int)]
    times += [entry.time_ms for entry in about if entry.kind in GRAVE and isinstance(entry.time_ms, int)]
    end = max(times, default=None)
    begin = _first_creation(incidents)
    return [entry for entry in about if _is_within(entry, begin, end)]


def _decides(entry: TimelineEntry, elections: Collection[tuple[TopicPartition, int | Absent]]) -> bool:
    """Whether an entry decided something: of the elections those by whose leader epochs logs were truncated."""
    if entry.kind == "leader-change":
        return (entry.topic_partition, entry.leader_epoch) in elections and entry.leader_epoch != 0
    if entry.kind == "isr-shrink":
        isr = entry.detail.get("isr")
        return not isinstance(isr, tuple) or len(isr) < 2
    return entry.kind in _SHOWN or is_of_unknown_end(entry)


def is_of_unknown_end(entry: TimelineEntry) -> bool:
    """Whether an entry is a truncation that is among none that are explained, as nothing shows how far the log had reached."""
    return entry.kind == "truncation" and not entry.is_quiet and isinstance(entry.detail.get("effect"), Absent)


def _is_within(entry: TimelineEntry, begin: int, end: int | None) -> bool:
    if not isinstance(entry.time_ms, int):
        return True
    return begin <= entry.time_ms and (end is None or entry.time_ms <= end + AFTERMATH_MS)


def _first_creation(incidents: Sequence[PartitionIncident]) -> int:
    """When the first of the partitions that something happened to was made, 0 where that is not known: before, the cluster came up."""
    first = [
        incident.leaderships[0]
        for incident in incidents
        if (incident.truncations or incident.losses) and incident.leaderships
    ]
    made = [state.time_ms for state in first if state.leader_epoch == 0 and isinstance(state.time_ms, int)]
    return min(made) if len(made) == len(first) and made else 0


MOST_STEPS = 2
"""Things to do about lines of one kind that are shown."""
_MOST_NODES = 4
_MOST_PARTITIONS = 2


def to_do(kind: LineKind, now: Sequence[str]) -> Sequence[str]:
    """Return what to do about lines of a kind, without what the answer says already."""
    return [one for one in kind.advice if one not in now][:MOST_STEPS]


def kind_words(kind: LineKind) -> str:
    """Return what the lines of a kind are, how many, whose and of what, in one line: `Registration refused (cause, 2 lines, node 3)`."""
    parts = [kind.weight.value, counted(kind.lines, "line")]
    if kind.nodes:
        nodes = listed(list(map(str, sorted(kind.nodes))), most=_MOST_NODES)
        parts.append(f"{form(len(kind.nodes), 'node', 'nodes')} {nodes}")
    if kind.partitions:
        parts.append(listed([one for one, _ in kind.partitions.most_common()], most=_MOST_PARTITIONS))
    return f"{kind_title(kind)} ({', '.join(parts)})"


def kind_title(kind: LineKind) -> str:
    """Return a kind of lines as a title."""
    words = kind.section.words
    return words[0].upper() + words[1:]
