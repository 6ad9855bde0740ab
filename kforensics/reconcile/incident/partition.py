"""The incident of a partition, built from its directories, earlier copies, log lines and what else is known."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from kforensics.damage import Absent, DamageKind
from kforensics.evidence.model import GroupCommit, Replica, owner_words
from kforensics.formats.log.batch_table import BATCH_DTYPE, BatchTable
from kforensics.formats.log.sequences import SequenceBreak, SequenceScan, WrittenAgain, told_breaks
from kforensics.reconcile.bugs.evidence import BugTrace, TraceEvidence
from kforensics.reconcile.bugs.traces import bug_traces
from kforensics.reconcile.history.causes import CauseEvidence
from kforensics.reconcile.history.log_copies import LogCopy, outline_of
from kforensics.reconcile.history.losses import Holder, Loss
from kforensics.reconcile.history.residuals import (
    Earlier,
    PastEnd,
    Residual,
    TornTransactions,
    find_torn_transactions,
    high_watermarks_past_end,
    residuals,
)
from kforensics.reconcile.incident.doubts import tiers_of
from kforensics.reconcile.incident.logs_over_time import LogsOverTime
from kforensics.reconcile.incident.losses import (
    batches_lost,
    candidates,
    explained_truncation,
    loss_entries,
    losses_shown,
    tails_of_copies,
    was_truncated,
)
from kforensics.reconcile.incident.model import (
    BrokenSequences,
    DeletedSince,
    DoubledOffsets,
    ExplainedTruncation,
    GroupAtRisk,
    PartitionIncident,
)
from kforensics.reconcile.incident.partition_doubts import partition_doubts
from kforensics.reconcile.logs.loaded_log import LoadedLog, are_loaded_alike
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.leadership import Election
from kforensics.reconcile.observed.own_evidence import lacked_epoch
from kforensics.units import METADATA_TOPICS
from kforensics.words import form, joined_by_and


def groups_at_risk(
    commits: Sequence[GroupCommit],
    losses: Sequence[Loss],
    *,
    log_end: int,
    earlier: Sequence[GroupCommit] = (),
) -> list[GroupAtRisk]:
    """Return the groups whose newest commit lies past the end of the leader's log or inside of offsets that hold other records now, or that committed later ones before."""
    newest: dict[str, GroupCommit] = {}
    for commit in commits:
        before = newest.get(commit.group)
        if before is None or _time(commit) >= _time(before):
            newest[commit.group] = commit
    out = []
    for commit in newest.values():
        inside = any(
            loss.is_replaced
            and loss.offsets.first < commit.offset <= loss.offsets.last + 1
            and commit.leader_epoch == loss.leader_epoch
            for loss in losses
        )
        later = [one for one in earlier if one.group == commit.group and _time(one) > _time(commit) > 0]
        known = commit.was_at if commit.is_share else max((one.offset for one in later), default=-1)
        if commit.offset > log_end or inside:
            kind = "ahead" if commit.offset > log_end else "replaced"
        elif isinstance(known, int) and known > commit.offset:
            kind = "set-back"
        else:
            continue
        out.append(
            GroupAtRisk(
                group=commit.group,
                offset=commit.offset,
                kind=kind,
                citation=commit.citation,
                was_at=known if kind == "set-back" else Absent.NOT_APPLICABLE,
                is_share=commit.is_share,
            )
        )
    return sorted(out, key=lambda one: one.group)


def _time(commit: GroupCommit) -> int:
    return commit.time_ms if isinstance(commit.time_ms, int) else 0


def explain_partition(known: LogsOverTime) -> PartitionIncident:
    """Return everything that the directories and lines of one partition prove together."""
    causes = _causes(known)
    differing = _residuals(known)
    truncations = tuple(explained_truncation(known, truncation, causes) for truncation in known.observed)
    lost = batches_lost(known)
    found = losses_shown(known, lost)
    losses = loss_entries(known, found, truncations, causes)
    bugs = _bugs(known, differing, truncations, [loss for loss, _ in found])
    truncations = tuple(
        replace(
            one,
            bugs=tuple(bug for bug in bugs if (bug.broker_id, bug.truncated_to) == (one.broker_id, one.to_offset)),
        )
        for one in truncations
    )
    doubts = partition_doubts(known, truncations, losses)
    view = known.leader.view if known.leader is not None else None
    return PartitionIncident(
        partition=known.partition,
        leader=known.leader.broker_id if known.leader is not None else Absent.UNKNOWN,
        log_start_offset=view.log_start_offset if view is not None else Absent.UNKNOWN,
        log_end_offset=view.log_end_offset if view is not None else Absent.UNKNOWN,
        deleted_since=_deleted_since(known),
        cleaned=None if view is None else _cleaned(view),
        leaderships=tuple(known.leaderships),
        truncations=tuple(filter(was_truncated, truncations)),
        losses=losses,
        groups=_groups_at_risk(known, losses),
        torn_transactions=find_torn_transactions(known.leader, lost, known.reader)
        if known.leader is not None
        else TornTransactions(),
        other_topics=tuple(_directory(replica) for replica in known.replicas_of_other_topics()),
        deleted_topics=tuple(_directory(replica) for replica in known.replicas_of_deleted_topics()),
        copies=len(known.copies) + sum(bool(one.view.replica.unread_files) for one in known.unread),
        is_deleted=known.is_deleted(),
        logs=tuple(outline_of(copy) for copy in sorted(known.copies, key=_moment)),
        residuals=differing,
        past_end=_past_end(known, losses),
        bugs=bugs,
        account=known.account,
        is_leader_known=known.is_leader_known,
        leader_basis=known.leader_basis,
        candidates=candidates(known),
        missing_replicas=known.missing_replicas,
        doubts=doubts.open,
        dispelled=doubts.dispelled,
        shortened=doubts.shortened,
        tails_of_copies=tails_of_copies(known, losses),
        unread_below=max((copy.view.replica.unread_below for copy in known.copies), default=0),
        is_unclean_election_allowed=_is_allowed(known, _unclean(known)[-1:]),
        forced_elections=_forced_elections(known),
        sequence_breaks=_sequence_breaks(known),
        lacked_epoch=lacked_epoch(known.account, known.held_epochs),
        doubled=tuple(_doubled(known)),
        tiers=tiers_of(known.leader, known.copies, known.evidence.moments.remote_copies),
    )


def _deleted_since(known: LogsOverTime) -> DeletedSince | None:
    """Return what is below the log start now of an earlier copy; else of segments that are renamed for deletion, where their timestamps are of before the topic."""
    start = known.log_start
    if start is None:
        return None
    before = [one.view.log_start_offset for one in known.copies if not one.is_final and not one.is_remnant]
    if before and (removal := start.removal(min(before))) is not None:
        return DeletedSince(min(before), removal)
    renamed = [
        one.view.content_start_offset
        for one in known.copies
        if one.is_remnant and not one.is_unstarted and one.view.log_end_offset <= start.offset
    ]
    if not renamed or isinstance(start.times.older_ms, Absent) or (removal := start.removal(min(renamed))) is None:
        return None
    return DeletedSince(min(renamed), removal, is_since_earlier=False)


def _cleaned(view: LoadedLog) -> tuple[int, int] | None:
    """Return how many offsets of the closed segments that a cleaner has been over hold no record, and where these end."""
    below = [one for one in view.segments if isinstance(one.last_offset, int) and one.last_offset < view.cleaned_below]
    held = sum(one.record_count for one in below)
    taken = view.cleaned_below - view.content_start_offset - held
    return (taken, view.cleaned_below) if taken > 0 and not view.replica.unread_below else None


def _doubled(known: LogsOverTime) -> Iterator[DoubledOffsets]:
    """Yield the first place of each log as it is now whose batches do not follow each other."""
    for copy in known.copies:
        if not copy.is_in_use:
            continue
        own = copy.view.replica
        places = (
            (segment.path, place)
            for segment in copy.view.segments
            for place in segment.damage
            if place.kind is DamageKind.ORDER
        )
        for path, place in islice(places, 1):
            is_leader = known.is_leader_known and copy is known.leader
            citation = own.cite(path.rpartition("/")[2], place.span)
            owner = owner_words(own.input, copy.broker_id)
            others = _beside_doubled(known, copy, place.span.position, path)
            yield DoubledOffsets(copy.broker_id, owner, is_leader, place, citation, others)


def _beside_doubled(known: LogsOverTime, own: LogCopy, position: int, path: str) -> str:
    """Return what the other logs in use hold at offsets that one holds twice, in sentences."""
    rows = _rows_of(own, path)
    second = rows[rows["position"] == position]
    if not len(second):
        return ""
    offset = int(second["base_offset"][0])
    before = rows[rows["position"] < position]
    firsts = before[(before["base_offset"] <= offset) & (before["last_offset"] >= offset)]
    below = {int(one["base_offset"]): int(one["crc"]) for one in before if one["last_offset"] < offset}
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for copy in known.copies:
        if copy is own or not copy.is_in_use:
            continue
        theirs = _rows_of(copy, path)
        crcs = {int(one["base_offset"]): int(one["crc"]) for one in theirs}
        if not crcs or any(crcs.get(base, crc) != crc for base, crc in below.items()):
            continue
        owner = owner_words(copy.view.replica.input, copy.broker_id)
        held = {int(one["crc"]) for one in theirs if one["last_offset"] >= offset}
        if not held:
            found[
                "ends below them, with the same batches up to there",
                "end below them, with the same batches up to there",
            ].append(owner)
        for which, those in (("first", firsts), ("second", second)):
            if held & {int(crc) for crc in those["crc"]}:
                found[f"holds the {which} of the two", f"hold the {which} of the two"].append(owner)
    said = (f"{joined_by_and(owners)} {form(len(owners), *words)}" for words, owners in found.items())
    return " ".join(f"{one[:1].upper()}{one[1:]}." for one in said)


def _rows_of(copy: LogCopy, path: str) -> BatchTable:
    name = path.rpartition("/")[2]
    found = (
        one.batches
        for one in copy.view.replica.segments
        if one.path.rpartition("/")[2] == name and not isinstance(one.batches, Absent)
    )
    return next(found, np.zeros(0, dtype=BATCH_DTYPE))


def _sequence_breaks(known: LogsOverTime) -> tuple[BrokenSequences, ...]:
    """Return where the sequences of producers break in the logs as they are now, by the batches that were kept of them."""
    found: dict[_Broken, list[LogCopy]] = defaultdict(list)
    plain: LoadedLog | None = None
    for copy in known.copies:
        if not copy.is_in_use or (plain is not None and are_loaded_alike((plain, copy.view))):
            continue
        own = _breaks_of(copy.view, known)
        found[own].append(copy)
        # No snapshot was read for it, which others may have otherwise.
        if not any(own) and copy.view.segments and isinstance(copy.view.segments[0].batches, Absent):
            plain = copy.view
    return tuple(
        BrokenSequences(
            breaks,
            again,
            tuple(dict.fromkeys(owner_words(one.view.replica.input, one.broker_id) for one in copies)),
            tuple(one.view.replica.cite() for one in copies),
            tuple(_whereabouts(known, breaks)),
        )
        for (breaks, again), copies in found.items()
        if breaks or again
    )


_Broken = tuple[tuple[SequenceBreak, ...], tuple[WrittenAgain, ...]]


def _whereabouts(known: LogsOverTime, breaks: Sequence[SequenceBreak]) -> Iterator[str]:
    """Yield where the first missing sequences of a log are, in a sentence."""
    one = next((each for each in breaks if not each.is_repeat), None)
    if one is None:
        return
    held: dict[str, list[np.void]] = {}
    is_read_whole = True
    for copy in known.copies:
        owner = owner_words(copy.view.replica.input, copy.broker_id)
        words = owner if copy.is_in_use else f"an earlier copy or a left-over directory of {owner}"
        for segment in copy.view.replica.segments:
            if isinstance(segment.batches, Absent) or segment.unread_below or segment.is_thinned:
                is_read_whole = False
            else:
                held.setdefault(words, []).extend(_batches_of(segment.batches, one))
    for owner, rows in held.items():
        if rows:
            count = sum(_overlap(row, one) for row in rows)
            which = "They are" if count >= one.length else "Some of them are"
            yield f"{which} in the log of {owner}, from offset {rows[0]['base_offset']} to {rows[-1]['last_offset']}."
            return
    if is_read_whole:
        is_whole = known.account is not None and known.is_leader_known and not known.missing_replicas
        yield "No replica holds them." if is_whole else "No log here holds them; another replica may."
    for copy in known.copies:
        replica = copy.view.replica
        for at, entries in known.evidence.producers(replica, replica.producer_snapshots).items():
            for entry in entries:
                is_same = (entry.producer_id, entry.producer_epoch) == (one.producer_id, one.producer_epoch)
                if is_same and one.first <= entry.last_sequence <= one.last:
                    owner = owner_words(copy.view.replica.input, copy.broker_id)
                    yield f"Producer snapshot {at} of {owner} names sequence {entry.last_sequence} at offset {entry.last_offset}: it had been appended there."
                    return
    first = one.after_offset + 1
    cut = next((each for each in known.observed if each.to_offset <= first < each.from_offset), None)
    if cut is not None:
        yield f"Broker {cut.broker_id} truncated its log from offset {cut.from_offset} to {cut.to_offset}, where they would come: they may have been there."
    elif is_read_whole and not known.observed:
        yield "No truncation of these logs is on record, and no producer snapshot here names them: nothing shows that they were ever appended."


def _overlap(row: np.void, one: SequenceBreak) -> int:
    first = int(row["base_sequence"])
    last = first + int(row["last_offset"]) - int(row["base_offset"])
    return max(min(last, one.last) - max(first, one.first) + 1, 0)


def _batches_of(rows: BatchTable, one: SequenceBreak) -> BatchTable:
    own = rows[(rows["producer_id"] == one.producer_id) & (rows["producer_epoch"] == one.producer_epoch)]
    last = own["base_sequence"] + own["last_offset"] - own["base_offset"]
    found: BatchTable = own[(own["base_sequence"] <= one.last) & (last >= one.first) & own["crc_valid"]]
    return found


def _breaks_of(log: LoadedLog, known: LogsOverTime) -> _Broken:
    """Return the places of one log and what was written again in it, none where damage or a cleaner explains them; segments of which no batch was kept part it."""
    if log.cleaned_below or any(one.damage or one.is_thinned for one in log.segments):
        return (), ()
    scans = [SequenceScan()]
    if log.segments and not isinstance(log.segments[0].batches, Absent):
        for entries in known.evidence.producers(log.replica, [log.segments[0].base_offset]).values():
            scans[0].begin(entries)
    for segment in log.segments:
        if isinstance(segment.batches, Absent) or segment.unread_below:
            scans.append(SequenceScan())
        if not isinstance(segment.batches, Absent):
            rows = segment.batches
            scans[-1].add(rows[rows["crc_valid"] & (rows["last_offset"] < log.log_end_offset)])
    if any(one.is_thinned for one in scans):
        return (), ()
    again = (each._replace(positions=(-1, -1)) for one in scans for each in one.again)  # one place in equal logs
    breaks = [place for one in scans for place in one.breaks]
    between = {at for one in breaks for at in log.replica.producer_snapshots if one.after_offset < at <= one.offset}
    snapshots = known.evidence.producers(log.replica, between)
    named = {at: {one.producer_id for one in entries} for at, entries in snapshots.items()}
    return told_breaks(breaks, named), tuple(again)


def _causes(known: LogsOverTime) -> CauseEvidence:
    return CauseEvidence(
        leaderships=(*known.elected_before, *known.leaderships),
        truncations=known.observed,
        incarnation=known.evidence.incarnation,
        account=known.account,
        started_clean=known.evidence.facts.started_clean,
        goes_on_without=known.evidence.facts.goes_on_without(),
        recovered={(one.broker_id, one.to_offset) for one in known.evidence.logged if one.rule == "recovery"},
        is_of_topic=lambda copy: known.leader is not None and any(copy is one for one in known.copies),
    )


def _groups_at_risk(known: LogsOverTime, losses: Sequence[Loss]) -> tuple[GroupAtRisk, ...]:
    if known.leader is None:
        return ()
    return tuple(
        groups_at_risk(
            known.evidence.commits,
            losses,
            log_end=known.leader.view.log_end_offset,
            earlier=known.evidence.facts.commits(known.partition) if known.is_every_node_given() else (),
        )
    )


def _forced_elections(known: LogsOverTime) -> tuple[Leadership, ...]:
    """Return unclean elections that the setting did not allow: someone asked for them."""
    return tuple(
        one.state
        for one in _unclean(known)
        # A topic's own setting shows in the metadata log only.
        if isinstance(one.state.recorded_at, int)
        and _is_allowed(known, [one]) is False
        and one.previous != one.state.leader
    )


def _unclean(known: LogsOverTime) -> list[Election]:
    return [one for one in known.account.elections if one.state.unclean]


def _is_allowed(known: LogsOverTime, elections: Sequence[Election]) -> bool | Absent:
    if not elections:
        return Absent.NOT_APPLICABLE
    return known.evidence.facts.allows_unclean_election(known.partition.topic, elections[-1].state.recorded_at)


def _past_end(known: LogsOverTime, losses: Sequence[Loss]) -> tuple[PastEnd, ...]:
    if known.partition.topic in METADATA_TOPICS:
        return ()
    return high_watermarks_past_end(
        known.copies,
        (loss.offsets for loss in losses),
        is_stopped=known.evidence.moments.is_stopped,
        is_recreated=bool(known.replicas_of_other_topics()),
        earlier=Earlier(
            is_same_log=known.is_same_log,
            doubted=known.doubted,
            is_order_sure=not known.evidence.is_order_in_doubt,
        ),
    )


def _residuals(known: LogsOverTime) -> tuple[Residual, ...]:
    if known.leader is None or known.partition.topic in METADATA_TOPICS:
        return ()
    return residuals(known.leader, known.copies, known.agreement, known.protocol_of)


def _bugs(
    known: LogsOverTime,
    differing: tuple[Residual, ...],
    truncations: Sequence[ExplainedTruncation],
    losses: Sequence[Loss],
) -> tuple[BugTrace, ...]:
    stale = {
        replica.broker_id: replica.cite("partition.metadata")
        for replica in known.other_topics
        if replica.is_live and isinstance(replica.broker_id, int)
    }
    evidence = TraceEvidence(
        versions=known.evidence.versions,
        copies=known.copies,
        leader=known.leader,
        leaderships=known.leaderships,
        truncations=known.observed,
        logged=known.evidence.logged,
        residuals=differing,
        ordinary_truncations=known.ordinary,
        agree_until=known.agreement.until,
        reader=known.reader,
        losses=losses,
        disagreeing=frozenset(
            (truncation.broker_id, truncation.to_offset) for truncation in truncations if truncation.agrees is False
        ),
        stale_directories=stale,
        signs=known.evidence.signs,
    )
    return bug_traces(evidence)


def _moment(copy: LogCopy) -> tuple[int, int, int, str, bool]:
    broker = copy.broker_id if isinstance(copy.broker_id, int) else -1
    return (copy.rank, broker, copy.view.replica.input, copy.view.replica.path, copy.is_remnant)


def _directory(replica: Replica) -> Holder:
    return Holder(input=replica.input, path=replica.path, broker_id=replica.broker_id, is_final=True, in_use=False)
