"""The explanation of an incident: inputs as they are now, earlier snapshots and broker logs in; timeline, truncations and losses out."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.case.account import (
    Account,
    Accounts,
    accounts_of,
    explain_all,
    is_eventful,
    with_returned_doubts,
)
from kforensics.case.broker_logs import roles_of
from kforensics.case.cluster import Cluster, cluster_of, newest_time, unread_commits, unread_offsets
from kforensics.case.comparison import comparison_of, known_partitions, tell_results
from kforensics.case.disks import misnamed_directories, refused_ids, stuck_and_doubled
from kforensics.case.leaders import leaders_of
from kforensics.case.model import Case, places_of
from kforensics.case.opening import open_case
from kforensics.case.processes import Progress
from kforensics.case.wanted import check_wanted, is_wanted
from kforensics.commands.cleaning import unfinished_cleanings
from kforensics.commands.explanation import Explanation
from kforensics.commands.graver import by_ends_of, no_calmer, no_calmer_than_cleaners, no_calmer_than_order
from kforensics.commands.redaction.pseudonyms import pseudonyms_of
from kforensics.commands.result import Conclusion, Result
from kforensics.commands.seal_of_report import seal_of
from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.discovery.log_spans import LogSpan
from kforensics.evidence.metadata.history import MetadataHistory, listening_hosts
from kforensics.evidence.metadata.state import PartitionState, newest_log
from kforensics.evidence.model import Input, Problem, full_path
from kforensics.findings.answers.advice import Holders
from kforensics.findings.answers.conclusion import conclude
from kforensics.findings.answers.explain import Scope, explain_answer, incident_state
from kforensics.findings.answers.graver import with_disks
from kforensics.findings.model import Finding, by_gravity
from kforensics.findings.rules.losses import STAMPED_LONG_AGO, TOLD_BESIDE, explain_findings
from kforensics.findings.rules.tiers import OF_TIERS
from kforensics.reconcile.bugs.traces import broker_bugs
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.doubts import Doubt, DoubtKind
from kforensics.reconcile.incident.model import HangingTransaction, PartitionIncident
from kforensics.reconcile.incident.operations import operations
from kforensics.reconcile.observed.broker_log_facts import BrokerLogFacts
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation
from kforensics.reconcile.observed.metadata_facts import recorded_unclean_elections
from kforensics.reconcile.observed.node_failures import failure_steps, failure_words, node_failures
from kforensics.reconcile.timeline.events import TimelineEntry, build_timeline, cluster_entries, election_entries
from kforensics.reconcile.timeline.logged_operations import logged_operations, retention_entries
from kforensics.source.capture import split_at_capture
from kforensics.source.store import store_of
from kforensics.source.walk import join
from kforensics.units import METADATA_TOPICS, TRANSACTIONS_TOPIC, TopicPartition
from kforensics.words import byte_count, counted, form, utc_words

MOST_STATES = 50_000
"""States of partitions without a directory among the inputs that are all shown in the timeline; of more only the unclean elections are."""
UNCLEAN_ONLY = "Of {:,} partitions without a directory among the inputs the timeline has the unclean elections only; --topic shows all of a topic."

UNREAD_OFFSETS = (
    "Where groups stand: the logs of their coordinators are {} and were not read whole; `kforensics groups` reads them."
)

NO_LOGS = "no log of any wanted partition is among the inputs: what was lost is unknown"


def run(
    request: Ask,
    progress: Progress | None = None,
    *,
    case: Case | None = None,
    beside: Case | None = None,
    hash_files: bool = False,
) -> Result[Explanation]:
    """Explain what happened to every partition below the paths.

    Args:
        beside: a case of the inputs as they are now, whose replicas are compared by what is read of them here.

    Raises:
        EvidenceError: a path can't be used.
        UsageError: the seal is of other paths, no such zone, or the times are in the wrong order.
    """
    from kforensics.commands.cited import cited_files  # noqa: PLC0415 - few runs hash files or replace names
    from kforensics.commands.redaction.values import redact_cited_files, redact_explanation  # noqa: PLC0415

    if request.since_ms is not None and request.until_ms is not None and request.since_ms > request.until_ms:
        raise UsageError("--since is later than --until")
    pseudonyms = pseudonyms_of(request)
    if case is None:
        case = open_case(request, rename_group=pseudonyms.group if pseudonyms else str, again="explain")
    else:
        case = case.asked(request)
    seal = seal_of(case)
    result = explain(case, progress, beside=beside)
    concluded = Conclusion(answer=result.answer, findings=result.findings, problems=result.problems)
    concluded = no_calmer_than_cleaners(no_calmer("explain", concluded, case), case)
    result = replace(result, answer=no_calmer_than_order(concluded.answer, case), findings=concluded.findings)
    if seal is not None:
        # The findings of the seal are redacted with the others.
        found, problems = (*result.findings, *seal.findings), (*result.problems, *seal.problems)
        result = replace(result, findings=by_gravity(found), problems=problems)
        seal = replace(seal, findings=(), problems=())
    if hash_files:
        result = replace(result, files=cited_files(result.citations(), case.inputs))
    if pseudonyms is not None:
        files = redact_cited_files(result.files, result, pseudonyms)
        result = replace(redact_explanation(replace(result, files=()), pseudonyms), files=files, is_redacted=True)
    return Result(
        command="explain",
        inputs=result.inputs,
        body=result,
        concluded=Conclusion(answer=result.answer, findings=result.findings, problems=result.problems),
        seal=seal,
        case=case,
    )


def explain(case: Case, progress: Progress | None = None, *, beside: Case | None = None) -> Explanation:
    """Explain what happened to every partition that a case is asked about."""
    inputs, options, places, gathered = case.inputs, case.ask, places_of(case), cluster_of(case)
    clocks, events = gathered.clocks, gathered.events
    shared = accounts_of(case)
    recorded = {TopicPartition(state.topic, state.partition) for state in _partition_states(gathered.histories)}
    if isinstance(gathered.facts, BrokerLogFacts):
        recorded |= set(gathered.facts.by_partition)
    named = {*places.by_partition, *recorded, *shared.logged}
    if named:
        check_wanted(options, named)
    results = _accounts_beside(shared, beside or (None if case.is_weighed else by_ends_of(case)), progress)
    stuck = _hanging(shared)
    incidents = tuple(
        replace(one, hanging=held) if (held := stuck.get((one.partition, one.leader))) else one
        for one in with_returned_doubts([one.incident for one in results])
    )
    window, doubts = _window(gathered, incidents, options)
    if doubts:
        incidents = tuple(replace(one, doubts=(*one.doubts, *doubts)) for one in incidents)
    given = {incident.partition: incident.leaderships for incident in incidents}
    others = sorted(partition for partition in recorded - given.keys() if case.explains(partition))
    is_whole = _states_of(others, gathered) <= MOST_STATES
    leaderships = {**(_recorded(gathered, others) if is_whole else {}), **given}
    entries = () if is_whole else _unclean_elections(gathered, set(others))
    timeline = _timeline(events, shared.truncations, leaderships, gathered.histories, options, more=entries)
    met = (*places.problems, *gathered.problems, *(problem for one in results for problem in one.problems))
    problems = list(dict.fromkeys(met))
    topics = {tp.topic for tp in (*places.by_partition, *leaderships, *others, *shared.logged)}
    amiss = {
        one.partition for one in incidents if one.losses or any(doubt.kind is DoubtKind.DISK for doubt in one.doubts)
    }
    disks = (*stuck_and_doubled(case), *misnamed_directories(case, amiss))
    refused = refused_ids(case)
    findings = by_gravity((*disks, *refused, *explain_findings(incidents, timeline), *unfinished_cleanings(case)))
    done = operations(timeline, incidents, looked=case.nodes_by_rank())
    bugs = broker_bugs(shared.signs_of_brokers, gathered.versions)
    failures = node_failures(events)
    words = conclude(
        incidents,
        timeline,
        operations=done,
        broker_bugs=bugs,
        log_files=gathered.log_files,
        inputs=inputs.described,
        clocks=clocks,
        ask=options,
        holders=holders_of(inputs.described),
    )
    answer = explain_answer(
        incidents,
        words,
        Scope(
            not_given=_not_given(case, {incident.partition for incident in incidents}),
            window=window,
            problems=problems,
            below=inputs.below_named(problems),
            quorum=gathered.quorum,
            named_at=_named_at(incidents, gathered, inputs),
            beside=(
                *_beside(findings, incidents),
                *(f"S{one.meaning[1:]}" for one in done if one.kind == "setting-changed"),
            ),
            failures=failure_words(failures),
            mending=failure_steps(failures),
        ),
    )
    answer = with_disks(answer, disks, refused)
    if (length := unread_offsets(case)) and not case.is_weighed:  # triage says it of the question itself
        answer = replace(answer, unknown=(*answer.unknown, UNREAD_OFFSETS.format(byte_count(length))))
    answer = replace(answer, unknown=(*answer.unknown, *unread_commits(case)))
    problems += gathered.left_out
    shown = (one for one in incidents if one.copies or one.is_deleted)
    if all(one.partition.topic in METADATA_TOPICS for one in shown):
        problems.append(Problem(input=0, path=".", message=NO_LOGS))
    return Explanation(
        inputs=inputs.described,
        answer=answer,
        timeline=timeline,
        incidents=tuple(replace(one, state=incident_state(one).value) for one in incidents if is_eventful(one)),
        partitions=len(shared.groups),
        clocks=tuple((file.path, clock) for file, clock in zip(gathered.log_files, clocks, strict=True)),
        conclusion=words.conclusion,
        advice=words.advice,
        missing=words.missing,
        notes=(
            *case.notes,
            *([] if is_whole else [UNCLEAN_ONLY.format(len(others))]),
            *_logs_not_read(inputs, gathered, options.until_ms),
        ),
        findings=findings,
        problems=tuple(problems),
        operations=done,
        broker_bugs=bugs,
        versions=tuple((node, str(version)) for node, version in sorted(gathered.versions.by_broker.items())),
        least_version=Absent.UNKNOWN if gathered.versions.at_least is None else str(gathered.versions.at_least),
        hosts=tuple(sorted(listening_hosts(gathered.histories))),
        topics=tuple(sorted(topics | options.topics)),
        depth=case.depth,
        controllers=tuple(sorted(node for node, role in roles_of(events).items() if role == "controller")),
    )


def _named_at(incidents: Sequence[PartitionIncident], gathered: Cluster, inputs: Inputs) -> tuple[str, int] | None:
    """Return where metadata is that names topics whose directories were set aside because that of now never did."""
    causes = [(one.partition.topic, loss.cause) for one in incidents for loss in one.losses]
    topics = {topic for topic, cause in causes if cause is CauseName.METADATA_SET_BACK}
    if not topics:
        return None
    from kforensics.evidence.metadata.log import read_metadata_logs  # noqa: PLC0415 - few clusters set directories aside
    from kforensics.evidence.metadata.set_back import metadata_naming  # noqa: PLC0415 - likewise

    # The copies of an earlier moment, too, by which the cluster of now is not judged.
    return metadata_naming(topics, gathered.histories, inputs) or metadata_naming(
        topics, read_metadata_logs(inputs), inputs
    )


def _accounts_beside(shared: Accounts, compared: Case | None, progress: Progress | None) -> list[Account]:
    """Return the account of each partition, while replicas are compared by what is read for it: the logs are not read again for that."""
    if compared is None:
        return explain_all(shared, progress)
    comparison = comparison_of(compared)._replace(keep_quiet=False, reader=shared.reader)
    results = explain_all(replace(shared, comparison=comparison), progress)
    found = [one.compared for one in results if one.compared is not None]
    if len(found) == len(comparison.groups):
        tell_results(compared, found)
    return results


def _zone_doubt(gathered: Cluster) -> tuple[Doubt, ...]:
    """Return the doubt about when the log lines were written, where records contradict what is assumed of it."""
    used = (clock for file, clock in zip(gathered.log_files, gathered.clocks, strict=True) if file.events)
    found = None
    if gathered.log_files:
        from kforensics.reconcile.observed.clocks import zone_words  # noqa: PLC0415 - where there are broker logs

        found = zone_words(used)
    if found is None:
        return ()
    return (Doubt(kind=DoubtKind.ACCOUNT, words=found[0], settled_by=found[1], is_input=False),)


def _not_given(case: Case, given: set[TopicPartition]) -> frozenset[TopicPartition]:
    """Partitions that exist by the metadata and of which no directory is among the inputs."""
    histories = cluster_of(case).histories
    newest = newest_log(histories)
    if newest is None:
        return frozenset()
    known = known_partitions(newest, places_of(case).lost, histories)
    return frozenset(one for one in known.keys() - given if case.explains(one))


def _window(gathered: Cluster, incidents: Sequence[PartitionIncident], options: Ask) -> tuple[str, tuple[Doubt, ...]]:
    """Return the time that the answer is about in words, and the doubts where it is none: a begin that comes after the end, or one in an unknown zone."""
    doubts = _zone_doubt(gathered)
    since_ms, (end_ms, end) = _since_ms(gathered, incidents, options), _up_to(gathered, incidents)
    if not doubts and since_ms is not None and end_ms is not None and since_ms > end_ms:
        words = f"anything of the time since {utc_words(since_ms)}: the evidence ends before, at {utc_words(end_ms)} ({end})"
        doubts = (Doubt(kind=DoubtKind.ACCOUNT, words=words, settled_by="directories and log files of that time"),)
    if doubts:
        return "", doubts
    begin = f" since {utc_words(since_ms)}" if since_ms is not None else ""
    if options.until_ms is not None and (
        any(span.first_ms > options.until_ms for span in gathered.logs_not_read.values())
        or any(file.not_searched_later for file in gathered.log_files)
    ):
        begin += f"{' and' if begin else ''} before {utc_words(options.until_ms)}"
    begin = begin or " in what the inputs show"
    return f"{begin}" + (f", by evidence up to {utc_words(end_ms)} ({end})" if end_ms is not None else ""), ()


def _since_ms(gathered: Cluster, incidents: Sequence[PartitionIncident], options: Ask) -> int | None:
    """Return when the window begins: with `--since`, else at the oldest moment that any input shows."""
    if options.since_ms is not None:
        return options.since_ms
    times = [item.time_ms for item in gathered.events[:1] if isinstance(item.time_ms, int)]
    times += [
        state.time_ms
        for one in incidents
        for state in one.leaderships[:1]
        if isinstance(state.time_ms, int) and state.time_ms > 0
    ]
    return min(times, default=None)


def _up_to(gathered: Cluster, incidents: Sequence[PartitionIncident]) -> tuple[int | None, str]:
    """Return up to which moment the evidence holds, and what shows it: no log tells of anything later, nor does what shows who led.

    Disks that were all put back to an earlier state, the metadata log with them, agree on that state.
    """
    records = [
        log.newest_ms
        for one in incidents
        for log in one.logs
        if log.is_final and log.state == "live" and isinstance(log.newest_ms, int) and log.newest_ms > 0
        if one.partition.topic not in METADATA_TOPICS
    ]
    led = {"the last log line": [item.time_ms for item in gathered.events if isinstance(item.time_ms, int)]}
    led["the last metadata record"] = [
        end for one in gathered.histories if isinstance(end := newest_time(one), int) and end > 0
    ]
    ends = {words: max(times) for words, times in led.items() if times}
    last = max(ends, key=ends.__getitem__, default="")
    if records and (not last or max(records) <= ends[last]):
        return max(records), "the newest record"
    return (ends[last], last) if last else (None, "")


def _logs_not_read(inputs: Inputs, gathered: Cluster, until_ms: int | None) -> Iterator[str]:
    """Name the log files that are outside of the time asked about, by directory, and those of which lines are."""
    folders: dict[tuple[int, str, str], list[tuple[LogSpan, str]]] = defaultdict(list)
    for place, span in gathered.logs_not_read.items():
        folder, _, name = place.path.rpartition("/")
        option = "--until" if until_ms is not None and span.first_ms > until_ms else "--since"
        folders[place.input, folder, option].append((span, name))
    for (number, folder, option), files in folders.items():
        names = [name for _, name in sorted(files, key=lambda one: one[0].first_ms)]
        where = join(inputs.found[number].described.path, folder) if folder else inputs.found[number].described.path
        which = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        number_of = counted(len(names), "log file")
        yield f"{number_of} in {where} {form(len(names), 'was', 'were')} not read, because of {option}: {which}."
    for file in gathered.log_files:
        path = full_path(inputs.described, file.input, file.path)
        for lines, option in (
            (file.not_searched - file.not_searched_later, "--since"),
            (file.not_searched_later, "--until"),
        ):
            if lines:
                yield f"{counted(lines, 'line')} of {path} {form(lines, 'was', 'were')} not searched, because of {option}."


def _beside(findings: Iterable[Finding], incidents: Iterable[PartitionIncident]) -> list[str]:
    """Return what logs show beside losses and has to be decided, in clauses; not what is counted as lost anyway, nor what is an open question already."""
    lost = {one.partition for one in incidents for loss in one.losses if loss.cause is CauseName.RETENTION}
    return [
        # A name of a topic keeps its case.
        f"{one.statement[:1].upper()}{one.statement[1:]}" if one.code == STAMPED_LONG_AGO.code else one.statement
        for one in findings
        if one.code in TOLD_BESIDE - OF_TIERS
        and one.is_grave
        and not (one.code == STAMPED_LONG_AGO.code and (one.topic, one.partition) in lost)
    ]


def _hanging(shared: Accounts) -> dict[tuple[TopicPartition, int | Absent], tuple[HangingTransaction, ...]]:
    from kforensics.commands.transaction_state_log import stuck_replicas  # noqa: PLC0415 - few clusters have transactions

    given = leaders_of(shared.case)
    if not given.live(TRANSACTIONS_TOPIC):
        return {}
    asked = {partition for partition, _ in shared.groups}
    wanted = {partition: held for partition, held in given.live().items() if partition in asked}
    return {
        (one.topic_partition, one.replica.place.state.broker_id): tuple(
            HangingTransaction(
                producer_id=each.open.producer_id,
                first_offset=each.open.first_offset,
                last_stable_offset=one.last_stable_offset,
                verdict=each.judgement.verdict.value,
                confidence=each.judgement.confidence,
                # It names the transactional id.
                reason=each.judgement.reason if shared.case.rename_group is str else "no coordinator ends it",
                citations=each.judgement.citations,
            )
            for each in one.open
            if each.judgement.holds_back
        )
        for one in stuck_replicas(given, wanted)
    }


def _recorded(gathered: Cluster, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Sequence[Leadership]]:
    """Return the leaders of partitions whose logs are not among the inputs: the metadata and the log lines may still name them."""
    return {
        partition: gathered.facts.leaderships(partition, gathered.facts.topic_id(partition.topic))
        for partition in partitions
    }


def _states_of(partitions: Sequence[TopicPartition], gathered: Cluster) -> int:
    """How many states of the partitions the metadata log has."""
    newest = newest_log(gathered.histories)
    return 0 if newest is None else sum(len(newest.partition_states(*partition)) for partition in partitions)


def _unclean_elections(gathered: Cluster, partitions: Collection[TopicPartition]) -> Iterator[TimelineEntry]:
    newest = newest_log(gathered.histories)
    for partition, before, state in recorded_unclean_elections(newest) if newest is not None else ():
        if partition in partitions:
            yield from election_entries(partition, before, state)


def _partition_states(histories: Sequence[MetadataHistory]) -> Iterator[PartitionState]:
    newest = newest_log(histories)
    for states in newest.partitions.values() if newest is not None else ():
        yield states[-1]


def _timeline(
    events: Sequence[LoggedEvent],
    truncations: Sequence[LoggedTruncation],
    leaderships: Mapping[TopicPartition, Sequence[Leadership]],
    histories: Sequence[MetadataHistory],
    options: Ask,
    *,
    more: Iterable[TimelineEntry] = (),
) -> tuple[TimelineEntry, ...]:
    newest = newest_log(histories)
    more = [
        *more,
        *logged_operations(events),
        *retention_entries(events),
        *(cluster_entries(newest) if newest is not None else ()),
    ]
    entries = build_timeline(events, truncations, leaderships, more=more)
    return tuple(entry for entry in entries if _is_in_view(entry, options))


def _is_in_view(entry: TimelineEntry, options: Ask) -> bool:
    if not isinstance(entry.topic_partition, Absent) and not is_wanted(entry.topic_partition, options):
        return False
    if not isinstance(entry.time_ms, int):
        return True
    after = options.since_ms is None or entry.time_ms >= options.since_ms
    return after and (options.until_ms is None or entry.time_ms < options.until_ms)


def holders_of(inputs: Sequence[Input]) -> Holders:
    """Return whose records are among the inputs: not those of a capture that was taken without."""
    bare: dict[str, None] = {}
    others = 0
    now = tuple(one.path for one in inputs if one.kind in {"broker", "combined"})
    for one in inputs:
        if one.kind not in {"broker", "combined", "snapshot-before"}:
            continue
        place = split_at_capture(Path(one.path))
        capture = None if place is None else store_of(place).capture
        if capture is None or capture.holds_records:
            others += 1
        else:
            bare[one.path if isinstance(one.broker_id, Absent) else f"broker {one.broker_id}"] = None
    return Holders(tuple(bare), others, now)
