"""Events as sentences: one sentence for the same event of several partitions at one moment."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import words_of
from kforensics.evidence.model import Citation
from kforensics.reconcile.incident.model import ExplainedTruncation
from kforensics.reconcile.timeline.events import DetailValue, TimelineEntry
from kforensics.reconcile.timeline.metadata_events import WHOLE_TOPIC
from kforensics.units import TopicPartition
from kforensics.words import id_list

MOST_NAMES = 4
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{(\w+)\}")
_WITH_EPOCH = frozenset({"unclean-election", "leader-change"})


GRAVE = frozenset({"unclean-election", "broker-halted", "log-dir-failed", "truncation-refused", "segments-deleted"})
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


def sentences_of(entries: Iterable[TimelineEntry]) -> Iterator[Sentence]:
    """Yield a sentence for each entry; entries of one moment that differ only in their partition share a sentence.

    Args:
        entries: in the order of time.
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
        yield Sentence(group[0].time_ms, sentence(group[0], _names(group)), citations, offset, group[0].kind)


def truncation_sentence(truncation: ExplainedTruncation, arrow: str) -> str:
    """Describe a truncation with the log end offset before it.

    Args:
        truncation: of which the broker is known.
        arrow: from the old to the new log end offset, `→` where the terminal can show it.
    """
    return f"broker {truncation.broker_id} truncates {truncation.topic_partition} {truncation.from_offset} {arrow} {truncation.to_offset}"


def _names(group: Sequence[TimelineEntry]) -> str:
    names = list(
        dict.fromkeys(_name(one, one.topic_partition) for one in group if not isinstance(one.topic_partition, Absent))
    )
    rest = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + rest


def _are_many(names: str) -> bool:
    return ", " in names


def _name(entry: TimelineEntry, partition: TopicPartition | Absent) -> str:
    if isinstance(partition, Absent):
        return ""
    if partition.partition == WHOLE_TOPIC:
        return partition.topic
    return f"{partition} (epoch {entry.leader_epoch})" if entry.kind in _WITH_EPOCH else str(partition)


def sentence(entry: TimelineEntry, names: str) -> str:
    """Describe an entry of the timeline in a sentence.

    Args:
        entry: the entry.
        names: the names of the partitions that it concerns, empty if it concerns none.
    """
    words = _of_leaders(entry, names) or _of_brokers(entry) or _of_logs(entry, names) or _declared(entry, names)
    return words or _plain(entry, names)


def _of_leaders(entry: TimelineEntry, names: str) -> str:
    detail, broker = entry.detail, _broker(entry)
    match entry.kind:
        case "unclean-election":
            before = detail.get("isr_before")
            was = f"the ISR was {id_list(before)}" if before else "the ISR was empty"
            return f"{broker} becomes leader of {names} by unclean election: {was}"
        case "leader-change":
            return f"{broker} becomes leader of {names}"
        case "leader-lost":
            return f"{names} {'have' if _are_many(names) else 'has'} no leader"
        case "leader-recovered":
            return f"{broker} has recovered {names} after its unclean election"
        case "isr-shrink" | "isr-expand":
            verb = "shrinks" if entry.kind == "isr-shrink" else "grows"
            return f"the ISR of {names} {verb} from {id_list(detail.get('isr_before'))} to {id_list(detail.get('isr'))}"
        case "reassignment":
            return f"{names} {'are' if _are_many(names) else 'is'} reassigned from {id_list(detail.get('replicas_before'))} to {id_list(detail.get('replicas'))}"
        case "controller-change":
            return f"{broker} becomes the active controller"
    return ""


def _of_brokers(entry: TimelineEntry) -> str:
    detail, broker = entry.detail, _broker(entry)
    reason = detail.get("reason")
    because = f": {reason}" if isinstance(reason, str) else ""
    match entry.kind:
        case "broker-start":
            return f"{broker} has started"
        case "broker-stop":
            return f"{broker} has stopped cleanly"
        case "stop-requested":
            return f"{broker} begins to shut down{because}"
        case "broker-halted":
            return f"{broker} halts{because}"
        case "broker-fenced":
            return f"the controller fences {broker}{because}"
        case "broker-unfenced":
            return f"the controller unfences {broker}"
        case "broker-registered":
            return f"{broker} registers with the controller"
        case "broker-unregistered":
            return f"{broker} is unregistered from the cluster"
        case "log-dir-error":
            return f"{broker} meets an error in {_directory(entry)}{because}"
        case "log-dir-failed":
            return f"{broker} stops serving {_directory(entry)}, which failed"
        case "recovery":
            return f"{broker} recovers {_directory(entry)}: its last shutdown was unclean"
    return ""


def _of_logs(entry: TimelineEntry, names: str) -> str:
    detail, broker = entry.detail, _broker(entry)
    match entry.kind:
        case "topic-created" | "topic-deleted":
            subject = f"topics {names} are" if _are_many(names) else f"topic {names} is"
            return f"{subject} {entry.kind.removeprefix('topic-')}"
        case "config-change":
            whose = f" for {names}" if names else ""
            return f"{detail.get('name')} is set to {detail.get('value')}{whose}"
        case "segments-deleted":
            of = f" of {names}" if names else ""
            return f"{broker} deletes segments{of}" + _because(detail.get("reason"))
        case "log-created":
            return f"{broker} begins a log of {names}"
        case "log-discarded":
            return f"{broker} renames its log of {names} for deletion"
        case "log-start-moved":
            return f"{broker} moves the log start offset of {names} to {detail.get('log_start_offset')}" + _because(
                detail.get("reason")
            )
        case "truncation-refused":
            return f"{broker} stops instead of truncating {names} from {detail.get('log_end_offset')} to {detail.get('offset')}"
        case "truncation":
            effect = ", without effect" if detail.get("effect") is False else ""
            return f"{broker} truncates {names} to {detail.get('to_offset')}{effect}"
    return ""


def _declared(entry: TimelineEntry, names: str) -> str:
    """Return the sentence beside the kind of log line; a field that the line lacks takes its part of the sentence along."""
    known = {name: value for name, value in entry.detail.items() if not isinstance(value, Absent)}
    known |= {"broker": _broker(entry), **({"names": names} if names else {})}
    words = _OPTIONAL.sub(
        lambda part: part[1] if set(_FIELD.findall(part[1])) <= known.keys() else "", words_of(entry.kind)
    )
    return _FIELD.sub(lambda field: str(known.get(field[1], "unknown")), words)


def _because(reason: DetailValue | None) -> str:
    return f": {reason}" if isinstance(reason, str) else ""


def _plain(entry: TimelineEntry, names: str) -> str:
    subject_of = ", ".join(
        f"{name.replace('_', ' ')} {id_list(value) if isinstance(value, tuple) else value}"
        for name, value in entry.detail.items()
        if not isinstance(value, Absent) and (name, value) != ("broker", entry.broker_id)
    )
    subject = f" of {names}" if names else ""
    return f"{_broker(entry)}: {entry.kind.replace('-', ' ')}{subject}" + (f" ({subject_of})" if subject_of else "")


def _broker(entry: TimelineEntry) -> str:
    return f"broker {entry.broker_id}" if isinstance(entry.broker_id, int) else "a node"


def _directory(entry: TimelineEntry) -> str:
    return str(entry.detail.get("directory", "a log directory"))
