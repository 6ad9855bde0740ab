"""Why a cleaner stands still: what the broker's own lines, its settings and the other logs of its disk show of the cause of `KF121`."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kforensics.case.cluster import cluster_of
from kforensics.case.model import Case, fact, places_of
from kforensics.case.settings import Settings, settings_by_node
from kforensics.case.wanted import is_wanted
from kforensics.commands.graver import replicas_now
from kforensics.damage import Absent
from kforensics.errors import InputsRefused
from kforensics.evidence.discovery.partition_dirs import (
    PartitionPlace,
    checkpoint_value,
    cleaner_lag,
    cleaner_lag_of,
    files_of,
    left_by_cleaning,
    live_segments,
)
from kforensics.evidence.model import CheckpointValue, Citation, owner_words
from kforensics.findings.answers.graver import SENTENCES
from kforensics.findings.answers.model import Answer
from kforensics.findings.model import Confidence, Finding
from kforensics.findings.rules.upkeep import CLEANER_STANDS, TWICE_BELOW_CLEANER, cleaner_finding, unfinished_findings
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.protocol.coordinators import CREATED_WITH, created_policy
from kforensics.reconcile.logs.compacted_keys import CompactedLog, keys_of_log
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds
from kforensics.source.naming import LARGEST_OFFSET
from kforensics.units import OFFSETS_TOPIC, TopicPartition
from kforensics.words import counted, form, utc_words

_MAP_TOO_SMALL = re.compile(r"offset map can fit only (\d+)")


class _Why(NamedTuple):
    words: str
    """A sentence."""
    citations: tuple[Citation, ...] = ()
    is_proven: bool = False
    advice: str = ""


def with_causes(case: Case, findings: Sequence[Finding], *, reads_records: bool = False) -> tuple[Finding, ...]:
    """Return findings, those about a cleaner that stands still with why it does, and by `reads_records` what waits for it in a log that is not too long; those of topics that are known not to be compacted are left out."""
    found: list[Finding] = []
    for one in findings:
        if one.code != CLEANER_STANDS.code or isinstance(one.topic, Absent) or isinstance(one.partition, Absent):
            found.append(one)
            continue
        partition = TopicPartition(one.topic, one.partition)
        try:
            settings = _settings(case, one.broker_id)
            if _is_known_compacted(settings, partition.topic) is False:
                continue
            stated = _with_cause(one, next(_causes(case, settings, partition, one.broker_id), None))
            dirt = _dirt(case, partition, one.broker_id) if reads_records else ""
            found.append(replace(stated, meaning=f"{dirt}{stated.meaning}"))
        except InputsRefused:
            found.append(one)  # of several clusters: whose lines and settings count is not known
    return tuple(found)


def standing_cleaners(
    case: Case,
    topic: str | None = None,
    *,
    by_path: bool = False,
    told: Collection[Finding] = (),
    reads_records: bool = False,
) -> tuple[Finding, ...]:
    """Return the findings about logs of what is asked about, or of a topic, that no cleaner has come to for long, by its checkpoints, the settings of topics and lines, with why it has not.

    Args:
        by_path: whether statements name a log by its directory, not by its partition and broker.
        told: findings, about some logs of which nothing more is to be said.
        reads_records: whether records are read for what waits in a log, as `with_causes` does it.
    """
    found: list[Finding] = []
    known = {(one.topic, one.partition, one.broker_id) for one in told if one.code == CLEANER_STANDS.code}
    for partition, place in replicas_now(case, topic):
        broker_id = place.state.broker_id
        if (partition.topic, partition.partition, broker_id) in known:
            continue
        point = checkpoint_value(place.state, "cleaner_point", partition)
        value = point.value if isinstance(point, CheckpointValue) else point
        try:
            is_compacted = isinstance(value, int) or partition.topic == OFFSETS_TOPIC
            if not is_compacted and not _is_known_compacted(_settings(case, broker_id), partition.topic):
                continue
            is_stopped = _stop(case, partition, broker_id) is not None
        except InputsRefused:
            continue  # of several clusters: whose settings count is not known
        lag = cleaner_lag(
            partition.topic,
            files_of(place),
            value if isinstance(value, int) else 0,
            root=place.state.listings.root,
            is_stopped=is_stopped,
        )
        if lag is not None:
            found.append(
                cleaner_finding(
                    lag._replace(cleaner_point=value),
                    where=place.path if by_path else f"{partition} on {owner_words(place.state.input, broker_id)}",
                    partition=partition,
                    broker_id=broker_id,
                    citation=Citation(input=place.state.input, path=place.path),
                )
            )
    return with_causes(case, found, reads_records=reads_records)


def with_cleaners(answer: Answer, findings: Sequence[Finding]) -> Answer:
    """Return an answer whose headline names the first of the logs that no cleaner comes to, and what to do."""
    standing = [one for one in findings if one.code == CLEANER_STANDS.code and one.is_grave]
    if not standing or standing[0].statement in answer.headline:
        return answer
    first, *others = standing
    why = SENTENCES.split(first.meaning)[0]
    because = "" if why in {_NOT_SHOWN, SENTENCES.split(CLEANER_STANDS.meaning)[0]} else f" {why}"
    is_of_all = all((one.broker_id, SENTENCES.split(one.meaning)[0]) == (first.broker_id, why) for one in others)
    waiting = f"{counted(len(others), 'more log')}{' of this broker' * is_of_all} {form(len(others), 'waits', 'wait')}"
    reason = "for the same reason" if because and is_of_all else "for a cleaner, too"
    more = f" {waiting} {reason}." if others else ""
    return replace(
        answer,
        headline=f"{answer.headline} {first.statement}.{because}{more}",
        now=tuple(dict.fromkeys((*answer.now, first.advice))),
    )


_NOT_SHOWN = "No line and no setting among the inputs says why."


def _with_cause(finding: Finding, why: _Why | None) -> Finding:
    if why is None:
        return replace(finding, meaning=f"{_NOT_SHOWN} {finding.meaning}")
    return replace(
        finding,
        meaning=f"{why.words} {finding.meaning}",
        advice=why.advice or finding.advice,
        confidence=Confidence.PROVEN if why.is_proven else finding.confidence,
        citations=tuple(dict.fromkeys((*finding.citations, *why.citations))),
    )


def _settings(case: Case, broker_id: int | Absent) -> Settings:
    return _by_node(case)(broker_id)


@fact
def _by_node(case: Case) -> Callable[[int | Absent], Settings]:
    return settings_by_node(case, [])


def _causes(case: Case, settings: Settings, partition: TopicPartition, broker_id: int | Absent) -> Iterator[_Why]:
    """Yield the causes that the inputs show, the surest first."""
    yield from _by_lines(case, partition, broker_id)
    if settings.in_file.get("log.cleaner.enable", "").strip().lower() == "false":
        yield _Why(
            "log.cleaner.enable is false in the broker's server.properties: it compacts nothing.",
            is_proven=True,
            advice="Set log.cleaner.enable=true, which is the default, and restart the broker.",
        )
    lag_ms = settings.number(partition.topic, "min.compaction.lag.ms", 0)
    if lag_ms >= max(_LONG_MS, _waited_ms(case, partition, broker_id)):
        yield _Why(
            f"min.compaction.lag.ms of the topic is {lag_ms:,}: no record is compacted before it is so old.",
            advice="Lower min.compaction.lag.ms where the log has become too large.",
        )
    ratio, _ = settings.of_topic(partition.topic, "min.cleanable.dirty.ratio")
    # Past max.compaction.lag.ms a log is cleaned whatever its ratio.
    is_hurried = settings.number(partition.topic, "max.compaction.lag.ms", LARGEST_OFFSET) < LARGEST_OFFSET
    if ratio is not None and not is_hurried and (share := _share(ratio)) is not None and share > _USUAL_RATIO:
        yield _Why(
            f"min.cleanable.dirty.ratio of the topic is {ratio.strip()}: the cleaner waits until that share of the log is dirty.",
            advice="Lower min.cleanable.dirty.ratio where the log has become too large.",
        )
    yield from _by_others(case, partition, broker_id)


def _waited_ms(case: Case, partition: TopicPartition, broker_id: int | Absent) -> int:
    """Return how old the oldest segment was that waits for the cleaner when the log was written last; 0 where that is not known."""
    place = next(_live(case, partition, broker_id), None)
    lag = None if place is None else cleaner_lag_of(place, is_stopped=True)
    return 0 if place is None or lag is None else live_segments(files_of(place))[-1][2] - lag.since_ms


def _is_known_compacted(settings: Settings, topic: str) -> bool | None:
    """Whether a topic is compacted by its settings; none where these are not known: a broker's default says nothing of a topic that a cleaner was at work on."""
    policy, _ = settings.of_topic(topic, "cleanup.policy")
    if policy is None or "compact" not in policy:
        return ("compact" in (policy or created_policy(topic))) if settings.are_topics_known else None
    return True


def _is_compacted(case: Case, place: PartitionPlace) -> bool:
    """Whether a log is compacted: by its settings, else by its cleaner's checkpoint, else by what brokers create its topic with."""
    topic = place.topic_partition.topic
    try:
        found = _is_known_compacted(_settings(case, place.state.broker_id), topic)
    except InputsRefused:
        found = None  # of several clusters: whose settings count is not known
    if found is None:
        point = checkpoint_value(place.state, "cleaner_point", place.topic_partition)
        return isinstance(point, CheckpointValue) or created_policy(topic) == "compact"
    return found


def unfinished_cleanings(case: Case) -> Iterator[Finding]:
    """Yield what cleanings left in the compacted logs that a case is asked about, as they are now."""
    for partition, group in places_of(case).by_partition.items():
        for place in group if is_wanted(partition, case.ask) else ():
            if not place.is_live or place.state.input in case.ranks or not _is_compacted(case, place):
                continue
            about: dict[str, Any] = {
                "topic_partition": partition,
                "broker_id": place.state.broker_id,
                "citations": (Citation(input=place.state.input, path=place.path),),
            }
            where = f"{partition} on {owner_words(place.state.input, place.state.broker_id)}"
            yield from unfinished_findings(left_by_cleaning(files_of(place)), where=where, about=about)


_LONG_MS = 3_600_000
_USUAL_RATIO = 0.5


def _share(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


_OF_CLEANERS = frozenset({LogEventKind.CLEANER_STARTED, LogEventKind.CLEANER_STOPPED, LogEventKind.BROKER_STARTED})


def _stop(case: Case, partition: TopicPartition, broker_id: int | Absent) -> LoggedEvent | None:
    """Return the broker's last line by which it compacts a log no more, unless it was started anew after it, or goes on with another thread."""
    marked: list[LoggedEvent] = []
    dead: dict[object, LoggedEvent] = {}
    earlier: int | None = None
    for one in of_kinds(cluster_of(case).events, _OF_CLEANERS):
        if one.node_id != broker_id:
            continue
        kind = one.event.kind
        if kind is LogEventKind.CLEANER_STARTED:
            # Settings that change while it runs give it new threads, which leave out what was marked.
            dead, earlier = {}, len(marked)
        elif kind is LogEventKind.BROKER_STARTED:
            # The cleaner begins before the broker says that it has started, and may stop before it, too.
            dead = {} if earlier is None else dead
            marked, earlier = marked[earlier:] if earlier is not None else [], None
        elif kind is LogEventKind.CLEANER_STOPPED:
            if isinstance(one.event.topic_partition, Absent):
                dead[one.event.fields.get("number")] = one  # in a copy of its log the line stands again
            elif one.event.topic_partition == partition:
                marked.append(one)
    if marked:
        return marked[-1]
    return [*dead.values()][-1] if len(dead) >= _threads(case, broker_id) else None


_LONGEST_INT = 10
"""The digits from which on a number need not be one of Kafka's integers."""


def _threads(case: Case, broker_id: int | Absent) -> int:
    given = _settings(case, broker_id).in_file.get("log.cleaner.threads", "").strip()
    return max(int(given), 1) if given.isdecimal() and len(given) < _LONGEST_INT else 1


def _by_lines(case: Case, partition: TopicPartition, broker_id: int | Absent) -> Iterator[_Why]:
    """Yield what the broker's last line about it says."""
    last = _stop(case, partition, broker_id)
    if last is None:
        return
    cause = last.event.fields.get("cause")
    why = f": {_cause(cause)}" if isinstance(cause, str) else ""
    when = f"At {utc_words(last.time_ms)} " if isinstance(last.time_ms, int) else ""
    is_of_one = last.event.topic_partition == partition
    threads = _threads(case, broker_id)
    lost = "its cleaner thread, which" if threads == 1 else f"the last of its {threads} cleaner threads, and"
    what = "marked this log as uncleanable" if is_of_one else f"lost {lost} compacts none of its logs any more"
    is_map = isinstance(cause, str) and _MAP_TOO_SMALL.search(cause) is not None
    yield _Why(
        f"{when}the broker {what}{why}.",
        (last.citation,),
        is_proven=True,
        advice=_LARGER_MAP if is_map else "",
    )


_LARGER_MAP = "Raise log.cleaner.dedupe.buffer.size, or lower log.cleaner.threads, and restart the broker: it then tries again. Delete no segment by hand."


def _cause(words: str) -> str:
    """Return the cause that the broker's exception names, in words where it is one of settings."""
    found = _MAP_TOO_SMALL.search(words)
    if found is None:
        return words
    return f"one segment holds more records than its map has room for, which are {found[1]} (log.cleaner.dedupe.buffer.size for each of log.cleaner.threads)"


def _by_others(case: Case, partition: TopicPartition, broker_id: int | Absent) -> Iterator[_Why]:
    """Yield what the other logs of the same log directory show: that the cleaner went on with them, or that it stands before all of them."""
    for place in _live(case, partition, broker_id):
        waiting = cleaner_lag_of(place, is_stopped=True)
        others = [
            (other, each)
            for other, group in places_of(case).by_partition.items()
            if other != partition
            for each in group
            if each.state is place.state and each.is_live
        ]
        for other, each in others:
            point = None if waiting is None else _cleaned_to_the_end(each, waiting.since_ms)
            if point is not None:
                yield _Why(
                    f"The cleaner of the same log directory has been over {other} up to its active segment, records written after that too: it ran, and has left this log out.",
                    (point,),
                )
                return
        behind = sum(cleaner_lag_of(each) is not None for _, each in others)
        if behind:
            yield _Why(
                f"{counted(behind, 'more compacted log')} of the same log directory {form(behind, 'waits', 'wait')} for it, and none was compacted since: a thread that died stops all of them."
            )


def _live(case: Case, partition: TopicPartition, broker_id: int | Absent) -> Iterator[PartitionPlace]:
    for place in places_of(case).by_partition.get(partition, ()):
        if place.state.broker_id == broker_id and place.state.input not in case.ranks and place.is_live:
            yield place


_MOST_TOGETHER = 256 << 20
"""Bytes of all logs together of which the keys are counted where nothing is amiss."""


def compacted_logs(case: Case) -> tuple[tuple[CompactedLog, ...], int]:
    """Count the records by their keys of the logs that are compacted, those of coordinators and, with their number, those left out that are too long: what they hold twice waits for their cleaner."""
    found: list[CompactedLog] = []
    left, left_out = _MOST_TOGETHER, 0
    for partition, group in places_of(case).by_partition.items():
        if partition.topic in CREATED_WITH or not is_wanted(partition, case.ask):
            continue
        for place in group:
            is_own = place.is_live and place.state.input not in case.ranks and place.state.store.holds_bytes
            if not is_own or not _is_compacted(case, place):
                continue
            left -= place.length
            one = keys_of_log(place) if left >= 0 else None
            left_out += left < 0
            if one is not None:
                found.append(one)
    return tuple(found), left_out


def twice_findings(logs: Iterable[CompactedLog]) -> Iterator[Finding]:
    """Yield the finding about each log with keys that are twice below its cleaner's point."""
    for one in logs:
        if one.twice is not None:
            number = f"{'about ' if one.is_estimate else ''}{counted(one.superseded_below, 'record')}"
            yield TWICE_BELOW_CLEANER.states(
                f"{one.partition} on {owner_words(one.citation.input, one.broker_id)}: below the cleaner's point, offset {one.cleaner_point},"
                f" {number} {form(one.superseded_below, 'has', 'have')} a later one of the key, offsets {one.twice.first} and {one.twice.last} the first",
                confidence=Confidence.PROVEN,
                topic_partition=one.partition,
                broker_id=one.broker_id,
                offsets=one.twice,
                citations=(one.citation,),
            )


def _dirt(case: Case, partition: TopicPartition, broker_id: int | Absent) -> str:
    """Return how many records of the log a cleaner would remove, in a sentence; empty where it is too long to be read for that, or can't be."""
    place = next(_live(case, partition, broker_id), None)
    found = None if place is None else keys_of_log(place)
    if found is None:
        return ""
    words = f"Of {counted(found.records, 'record')} with a key {found.superseded_words()} are superseded by a later one of the key"
    return f"{words}{', and ' if found.tombstones else ''}{found.tombstone_words()}. "


def _cleaned_to_the_end(place: PartitionPlace, since_ms: int) -> Citation | None:
    """Return the line of the checkpoint by which a log of several segments is compacted up to its active one, and one of them was written after a time; cleaning leaves these times."""
    point = checkpoint_value(place.state, "cleaner_point", place.topic_partition)
    if not isinstance(point, CheckpointValue) or not point.value:
        return None
    live = live_segments(files_of(place))
    is_cleaned = len(live) > 1 and live[-1][0] <= point.value and live[-2][2] >= since_ms
    return point.citation if is_cleaned else None
