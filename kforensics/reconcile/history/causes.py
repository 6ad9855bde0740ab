"""Why a log was truncated: the election that changed the lineage, what the new leader itself had lost before, and the protocol in force.

recovery had emptied a segment that it could not read      recovery
recovery had truncated a metadata log at its start         recovery
the leader came back with another disk                     disk replaced
the log had lost what had been flushed                     disk restored
the metadata of now never named the topic                  metadata set back
the leader had lost its own tail, and had been in sync     last replica standing (KIP-966)
the leader had lost its own tail, and had not              power loss
the leader's recovery had met damage inside of its log     damage
the leader had truncated its log to a high watermark       high-watermark truncation
the leader was elected from outside of the ISR             unclean election
the rule itself was the high watermark                     high-watermark truncation (KIP-101)
a clean election                                           the tail was never replicated: nothing committed is lost
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Citation
from kforensics.protocol.epochs import epoch_at
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import PROTOCOL_RULES
from kforensics.reconcile.committed.proofs import FILE_TIME_SLACK_MS
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.topic_incarnations import Incarnation
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.observed.broker_lives import LINES_OF_A_START_MS
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.leadership import LeadershipAccount, Risk
from kforensics.units import METADATA_TOPICS


class CauseName(StrEnum):
    """The cause of a truncation."""

    UNCLEAN_ELECTION = "unclean-election"
    POWER_LOSS = "power-loss"
    HIGH_WATERMARK = "hw-truncation"
    UNCOMMITTED_TAIL = "uncommitted-tail"
    LAST_REPLICA_STANDING = "last-replica-standing"
    DAMAGE = "damage"
    RECOVERY = "recovery"
    RECREATED_TOPIC = "recreated-topic"
    DISK_REPLACED = "disk-replaced"
    DISK_RESTORED = "disk-restored"
    METADATA_SET_BACK = "metadata-set-back"
    RETENTION = "early-retention"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause with its confidence and the reason for it."""

    name: CauseName
    confidence: str
    """`proven`, `likely` or `possible`."""
    reason: str
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseEvidence:
    """The evidence by which causes are judged."""

    leaderships: Sequence[Leadership]
    truncations: Sequence[ObservedTruncation]
    """Every truncation of the partition, this one included."""
    incarnation: Incarnation
    """What log lines say of the creation of the partition."""
    account: LeadershipAccount | None = None
    """The account of how each leader came to lead, where that is known."""
    started_clean: Callable[[int, int], bool] = lambda _broker, _since: False
    """As `ClusterFacts.started_clean`: a broker that started so had lost nothing in a power loss."""
    recovered: Collection[tuple[int | Absent, int]] = ()
    """Brokers whose lines say that start-up recovery truncated their log, each with the offset, also where none says where it had ended."""
    goes_on_without: int | Absent = Absent.UNKNOWN
    """As `ClusterFacts.goes_on_without`."""
    is_of_topic: Callable[[LogCopy], bool] = lambda _copy: False
    """Whether the batches of a copy show that it is of the topic as it is now, whatever the clock says that its file was written by."""

    def risk_of(self, election: Leadership | None) -> Risk | None:
        """Return the reason why an election may have lost committed records, None where the account of leadership shows none."""
        if self.account is None or election is None:
            return None
        term = (election.leader, election.leader_epoch)
        return next(
            (one.risk for one in self.account.risky if (one.state.leader, one.state.leader_epoch) == term), None
        )


def cause_of(
    truncation: ObservedTruncation,
    evidence: CauseEvidence,
    *,
    protocol: ProtocolName,
    none_committed: bool,
    is_by_protocol: bool,
    some_committed: bool = False,
    is_out_of_range: bool = False,
) -> Cause:
    """Name the cause of a truncation.

    Args:
        is_out_of_range: the follower truncated to its leader's end, which was below its own and its high watermark, and compared nothing.
    """
    is_metadata = truncation.topic_partition.topic in METADATA_TOPICS
    if truncation.empties_segment or (truncation.rule == "recovery" and (truncation.is_inside or not is_metadata)):
        return _of_recovery(truncation, evidence)
    if is_metadata:
        return _of_metadata_log(truncation, evidence, none_committed=none_committed, some_committed=some_committed)
    before = truncation.before
    is_of_topic = before is not None and evidence.is_of_topic(before)
    if not is_of_topic and _is_of_earlier_topic(truncation, evidence.incarnation):
        reason = "the directory held an earlier topic of the same name, created again while the broker was away"
        return Cause(CauseName.RECREATED_TOPIC, "likely", reason)
    election = election_behind(truncation, evidence.leaderships)
    if election is not None and evidence.risk_of(election) is Risk.OTHER_DISK:
        return _other_disk(election)
    exchanged = _exchanged_disk(truncation, evidence)
    if exchanged is not None:
        return exchanged
    of_lost_end = _of_lost_end(truncation, election, evidence, is_by_protocol=is_by_protocol)
    if of_lost_end is not None:
        return of_lost_end
    if election is not None and election.leader == truncation.broker_id and not truncation.is_logged:
        return _of_own_return(election, none_committed=none_committed)
    lost_before = _leaders_own_truncation(truncation, election, evidence)
    if lost_before is not None:
        found = _because_of_leader(lost_before, election, evidence, protocol)
        if found.name is not CauseName.UNKNOWN or not none_committed:
            return found
    if election is not None and _wrote_it_all(truncation, election, evidence.leaderships):
        return _of_own_writes(truncation, election, evidence)
    if election is not None and election.unclean:
        return _of_unclean_election(truncation, election, evidence)
    if not is_out_of_range and (not PROTOCOL_RULES[protocol].keeps_epochs or truncation.rule == "high-watermark"):
        reason = "the follower truncated to its own high watermark, which lags behind what was committed (KIP-101)"
        return Cause(CauseName.HIGH_WATERMARK, "likely", reason)
    if election is None:
        if none_committed:
            return Cause(CauseName.UNCOMMITTED_TAIL, "likely", "no discarded record had been committed")
        return Cause(CauseName.UNKNOWN, "possible", "no evidence shows which election changed the log")
    return _of_takeover(truncation, election, evidence, none_committed=none_committed, some_committed=some_committed)


def _of_recovery(truncation: ObservedTruncation, evidence: CauseEvidence) -> Cause:
    if truncation.empties_segment:
        reason = (
            f"start-up recovery could not read through the segment that begins at offset {truncation.to_offset} (batches out of order or, since 4.0,"
            " any I/O error such as a full disk) and emptied it, sound batches included"
        )
        return Cause(CauseName.RECOVERY, "proven", reason, truncation.citations)
    if truncation.is_inside:
        reason = f"start-up recovery met damage at offset {truncation.to_offset}, inside of the log, and discarded all behind it, sound segments too"
        return Cause(CauseName.DAMAGE, "likely", reason, truncation.citations)
    if _was_loaded_after_a_clean_stop(truncation, evidence):
        reason = f"broker {truncation.broker_id} started with the marker of a clean stop, and loaded its log shorter than it had been: its disk was put back to an earlier state"
        return Cause(CauseName.DISK_RESTORED, "likely", reason, truncation.citations)
    reason = (
        "start-up recovery found the end of the log missing or torn; earlier evidence shows that it had been written"
    )
    return Cause(CauseName.POWER_LOSS, "likely", reason, truncation.citations)


def _was_loaded_after_a_clean_stop(truncation: ObservedTruncation, evidence: CauseEvidence) -> bool:
    broker, time_ms = truncation.broker_id, truncation.time_ms
    return (
        isinstance(broker, int)
        and isinstance(time_ms, int)
        and evidence.started_clean(broker, time_ms - LINES_OF_A_START_MS)
    )


def _of_lost_end(
    truncation: ObservedTruncation, election: Leadership | None, evidence: CauseEvidence, *, is_by_protocol: bool
) -> Cause | None:
    """Return the cause where a log has lost its end and no line reports it; none where the broker may have truncated it as a follower."""
    if truncation.is_logged:
        return None
    if (election is None and truncation.replacement is None) or (truncation.is_shortened and not is_by_protocol):
        if _was_restored(truncation, election, evidence):
            return _restored(truncation, evidence, "possible")
        reason = "the log ends earlier than a snapshot before shows, and no log line reports a truncation"
        return Cause(CauseName.POWER_LOSS, "possible", reason, truncation.citations)
    if (
        election is not None
        and election.leader == truncation.broker_id
        and not _may_have_followed(truncation, evidence.leaderships)
    ):
        if _was_restored(truncation, election, evidence):
            return _restored(truncation, evidence, "likely")
        if _began_anew(truncation):
            return _emptied(truncation)
        reason = "the broker itself led when other records took the place of these: a leader truncates nothing, so its log had lost its end"
        return Cause(CauseName.POWER_LOSS, "likely", reason, truncation.citations)
    return None


def _may_have_followed(truncation: ObservedTruncation, leaderships: Sequence[Leadership]) -> bool:
    """Whether another broker led between the last discarded record and what took its place: a follower of it truncates, and loses nothing in a crash."""
    written_in = _epoch_of_last(truncation)
    until = None if truncation.replacement is None else truncation.replacement.epoch
    return isinstance(written_in, int) and any(
        isinstance(state.leader, int)
        and state.leader != truncation.broker_id
        and written_in < state.leader_epoch
        and (until is None or state.leader_epoch <= until)
        for state in leaderships
    )


def _of_own_return(election: Leadership, *, none_committed: bool) -> Cause:
    """Return the cause where a broker led without records that it had held, after others had led, and no line tells whether it truncated them as a follower."""
    name = CauseName.UNCLEAN_ELECTION if election.unclean else CauseName.UNKNOWN
    reason = (
        f"broker {election.leader} led in leader epoch {election.leader_epoch} without these records, after another leader:"
        " it truncated them as a follower of that, or lost them in a crash; no log line shows which"
    )
    return Cause(
        CauseName.UNCOMMITTED_TAIL if none_committed else name,
        "possible",
        reason,
        (election.citation, *election.recovering),
    )


def _of_own_writes(truncation: ObservedTruncation, election: Leadership, evidence: CauseEvidence) -> Cause:
    """Return the cause where the elected broker had written the records itself and led again without them."""
    led_again = f"its log ended at {truncation.to_offset} when it led again{_in_epoch(truncation, election)}"
    wrote = f"broker {election.leader} had written these records itself"
    if evidence.risk_of(election) is Risk.RESTART:
        name, words = _disk_of(truncation)
        reason = f"{wrote} and had stopped cleanly, which flushes a log, and {led_again}: {words}"
        return Cause(name, "likely", reason, (election.citation,))
    was_last = _was_in_sync(election, evidence.leaderships)
    name = CauseName.LAST_REPLICA_STANDING if was_last else CauseName.POWER_LOSS
    return Cause(name, "likely", f"{wrote}, and {led_again}: it had lost them", (election.citation,))


def _of_unclean_election(truncation: ObservedTruncation, election: Leadership, evidence: CauseEvidence) -> Cause:
    reason, confidence = _was_not_in_sync(election)
    if truncation.replacement is None and _led_before(election, evidence.leaderships):
        reason += "; it had led before, so it may have written these records itself and lost them since"
        confidence = "possible"
    elif (election.leader, truncation.to_offset) in evidence.recovered:
        reason += "; start-up recovery had truncated its own log there, so it may have held these records and lost them"
        confidence = "possible"
    return Cause(CauseName.UNCLEAN_ELECTION, confidence, reason, (election.citation, *election.recovering))


def _of_takeover(
    truncation: ObservedTruncation,
    election: Leadership,
    evidence: CauseEvidence,
    *,
    none_committed: bool,
    some_committed: bool,
) -> Cause:
    """Return the cause where the elected broker, which no evidence calls out of sync, led without the records."""
    is_clean = _is_known_clean(election, evidence.leaderships)
    returned = None if none_committed else _unclean_return(truncation, election, evidence)
    if returned is not None:
        reason = (
            f"broker {returned.leader} led after an unclean shutdown in leader epoch {returned.leader_epoch}: it may have lost the end of its log then"
            + ("" if some_committed else ", or may never have had these records")
            + ("" if is_clean else f"; {_WHY_WITHOUT[False]}")
        )
        name = CauseName.POWER_LOSS if is_clean else CauseName.UNKNOWN
        return Cause(name, "possible", reason, (returned.citation,))
    took_over = (
        f"broker {election.leader} took over{' cleanly' if is_clean else ''} in leader epoch {election.leader_epoch}"
    )
    if some_committed:
        reason = f"{took_over} without records that had been committed: {_WHY_WITHOUT[is_clean]}"
        return Cause(CauseName.UNKNOWN, "possible", reason, (election.citation,))
    if not none_committed and not is_clean:
        return Cause(CauseName.UNKNOWN, "possible", f"{took_over}; {_WHY_WITHOUT[False]}", (election.citation,))
    confidence = "proven" if none_committed else "possible"
    reason = f"{took_over}; the tail had not reached it"
    return Cause(CauseName.UNCOMMITTED_TAIL, confidence, reason, (election.citation,))


def _in_epoch(truncation: ObservedTruncation, election: Leadership) -> str:
    """Return words for the epoch in which an elected broker's log goes on: elected again since, it may have lost its end later."""
    goes_on = election.leader_epoch if truncation.replacement is None else truncation.replacement.epoch
    if goes_on == election.leader_epoch:
        return f" in leader epoch {goes_on}"
    return f", and goes on in leader epoch {goes_on}"


def _of_metadata_log(
    truncation: ObservedTruncation, evidence: CauseEvidence, *, none_committed: bool, some_committed: bool
) -> Cause:
    if truncation.rule == "recovery":
        reason = f"every start reads the whole metadata log again, and recovery truncated it at {truncation.to_offset}, where a batch fails"
        return Cause(CauseName.RECOVERY, "likely", reason, truncation.citations)
    if not truncation.is_logged and _started_clean(truncation, evidence):
        return _restored(truncation, evidence, "possible")
    voters = evidence.leaderships[-1].replicas if evidence.leaderships else Absent.UNKNOWN
    is_observer = isinstance(voters, tuple) and truncation.broker_id not in voters
    if not truncation.is_logged and (some_committed or truncation.is_shortened):
        who = f"{'broker' if is_observer else 'node'} {truncation.broker_id}"
        what = "a majority of the voters holds" if some_committed else "nothing took the place of"
        reason = f"the metadata log of {who} lacks records that {what}, and no line reports a truncation: its disk was put back to an earlier state, or emptied and filled again"
        return Cause(CauseName.DISK_RESTORED, "likely" if some_committed else "possible", reason, truncation.citations)
    who = "a broker, which only observes the quorum," if is_observer else "a quorum member"
    if isinstance(evidence.goes_on_without, int) and truncation.to_offset >= evidence.goes_on_without:
        reason = (
            f"{who} follows a quorum that was begun anew or put back, and discards what the former one had committed"
        )
        return Cause(CauseName.METADATA_SET_BACK, "likely", reason)
    reason = f"{who} discards what its leader had not replicated to a majority"
    if not truncation.is_logged and not none_committed:
        # Only an earlier copy shows it, so the disk may have been put back, too.
        return Cause(CauseName.UNCOMMITTED_TAIL, "possible", reason)
    return Cause(CauseName.UNCOMMITTED_TAIL, "likely", reason)


def _other_disk(state: Leadership) -> Cause:
    reason = f"broker {state.leader} led again in leader epoch {state.leader_epoch} with another disk than before, or an emptied one: its log was gone"
    return Cause(CauseName.DISK_REPLACED, "likely", reason, (state.citation,))


def _began_anew(truncation: ObservedTruncation) -> bool:
    return truncation.before is not None and truncation.to_offset <= truncation.before.view.content_start_offset


def _emptied(truncation: ObservedTruncation) -> Cause:
    reason = (
        f"the log of broker {truncation.broker_id} began anew when it led, and no line reports why: its disk was exchanged or emptied,"
        " or a power loss took a log that had never been flushed"
    )
    return Cause(CauseName.DISK_REPLACED, "possible", reason, truncation.citations)


def _was_not_in_sync(election: Leadership) -> tuple[str, str]:
    reason = f"broker {election.leader} was elected in leader epoch {election.leader_epoch} without being in sync"
    return reason, "proven" if election.is_stated else "likely"


def _unclean_return(truncation: ObservedTruncation, election: Leadership, evidence: CauseEvidence) -> Leadership | None:
    """Return the state in which the elected broker led after an unclean shutdown, in that election or a later one before the records were replaced."""
    until = None if truncation.replacement is None else truncation.replacement.epoch
    risky = () if evidence.account is None else evidence.account.risky
    return next(
        (
            one.state
            for one in risky
            if one.risk is Risk.UNCLEAN_RESTART
            and one.state.leader == election.leader
            and election.leader_epoch <= one.state.leader_epoch
            and (until is None or one.state.leader_epoch <= until)
        ),
        None,
    )


def _exchanged_disk(truncation: ObservedTruncation, evidence: CauseEvidence) -> Cause | None:
    """Return the cause of a log that ends or begins again where its leader came back with another disk, or an earlier state of it; none where it was otherwise."""
    if evidence.account is None:
        return None
    written_in = _epoch_of_last(truncation)
    for one in evidence.account.risky:
        state = one.state
        is_its = not truncation.is_logged or state.leader != truncation.broker_id
        is_later = not isinstance(written_in, int) or state.leader_epoch > written_in
        # A broker that led on keeps its leader epoch, and wrote the last records in it.
        is_later |= state.leader_epoch == written_in and one.previous == state.leader
        since = one.restart.time_ms if one.restart is not None else Absent.UNKNOWN
        in_time = not isinstance(since, int) or not isinstance(truncation.time_ms, int) or since <= truncation.time_ms
        if not (is_its and is_later and in_time):
            continue
        if one.risk is Risk.OLDER_DISK and isinstance(one.loaded_end, int) and truncation.to_offset >= one.loaded_end:
            reason = (
                f"broker {state.leader} loaded its log up to offset {one.loaded_end}, though its clean stop had left it longer, and led again in leader epoch {state.leader_epoch}:"
                " its disk was put back to an earlier state"
            )
            return Cause(CauseName.DISK_RESTORED, "likely", reason, (state.citation,))
        if one.risk is Risk.OTHER_DISK and not truncation.to_offset:
            return _other_disk(state)
    return None


def _was_restored(truncation: ObservedTruncation, election: Leadership | None, evidence: CauseEvidence) -> bool:
    """Whether a power loss can't have taken the records: they had been flushed, by the recovery point or by a clean stop, before the broker led without them."""
    if truncation.before is None:
        return False
    if _was_flushed(truncation) or _started_clean(truncation, evidence):
        return True
    return (
        election is not None and evidence.risk_of(election) is Risk.RESTART and election.leader == truncation.broker_id
    )


def _was_flushed(truncation: ObservedTruncation) -> bool:
    flushed = truncation.before.view.replica.recovery_point if truncation.before is not None else Absent.UNKNOWN
    return isinstance(flushed, CheckpointValue) and flushed.value > truncation.to_offset


def _started_clean(truncation: ObservedTruncation, evidence: CauseEvidence) -> bool:
    """Whether the first start since the records were written found the marker of a clean stop, which a power loss leaves none of."""
    written = truncation.before.taken_ms if truncation.before is not None else Absent.UNKNOWN
    if not isinstance(truncation.broker_id, int) or not isinstance(written, int):
        return False
    return evidence.started_clean(truncation.broker_id, written)


def _disk_of(truncation: ObservedTruncation) -> tuple[CauseName, str]:
    """Return what became of a disk that lacks flushed records: one that holds nothing of the log was emptied or exchanged as likely as put back."""
    if truncation.to_offset:
        return CauseName.DISK_RESTORED, "its disk was put back to an earlier state"
    return CauseName.DISK_REPLACED, "its disk was emptied, exchanged, or put back to before the first record"


def _restored(truncation: ObservedTruncation, evidence: CauseEvidence, confidence: str) -> Cause:
    name, words = _disk_of(truncation)
    if not _was_flushed(truncation) and _started_clean(truncation, evidence):
        reason = (
            f"broker {truncation.broker_id} started with the marker of a clean stop, which no power loss leaves, and its log continues without the records from offset"
            f" {truncation.to_offset} on: {words}"
        )
    else:
        reason = (
            f"broker {truncation.broker_id} had flushed records from offset {truncation.to_offset} on, which no power loss takes, and its log continues without them:"
            f" {words}"
        )
    return Cause(name, confidence, reason, truncation.citations)


def _is_of_earlier_topic(truncation: ObservedTruncation, incarnation: Incarnation) -> bool:
    created_ms = incarnation.created_ms
    if not isinstance(created_ms, int):
        return False
    stale_end = incarnation.stale_ends.get(truncation.broker_id) if isinstance(truncation.broker_id, int) else None
    if stale_end is not None and truncation.is_logged and truncation.from_offset <= stale_end:
        return isinstance(truncation.time_ms, int) and truncation.time_ms > created_ms
    written = truncation.before.taken_ms if truncation.before is not None else Absent.UNKNOWN
    if not isinstance(written, int) or not isinstance(truncation.time_ms, int):
        return False
    # The snapshot that shows the log before the truncation was written before the partition was created.
    return written + FILE_TIME_SLACK_MS < created_ms < truncation.time_ms


def election_behind(truncation: ObservedTruncation, leaderships: Sequence[Leadership]) -> Leadership | None:
    """Return the election that replaced the lineage of the discarded records: after the leader epoch of the last of them, an unclean one first.

    None is later than the epoch that took their place, where a log shows that.

    Returns:
        The state that the election led to, or None where no recorded one fits.
    """
    elections = [
        state
        for before, state in zip((None, *leaderships), leaderships, strict=False)
        if isinstance(state.leader, int)
        and (before is None or state.leader_epoch != before.leader_epoch)
        # A leader truncates nothing of its own log.
        and not (truncation.is_logged and truncation.rule != "recovery" and state.leader == truncation.broker_id)
    ]
    written_in = _epoch_of_last(truncation)
    if truncation.replacement is not None:
        kept = written_in if isinstance(written_in, int) else truncation.replacement.kept
        between = [state for state in elections if kept < state.leader_epoch <= truncation.replacement.epoch]
        unclean = next((state for state in between if state.unclean), None)
        if unclean is None and not any(state.leader_epoch == truncation.replacement.epoch for state in leaderships):
            # No input names the leader that wrote what took the place: those before it may have held the records.
            return None
        if between:
            return unclean or between[0]
    if isinstance(written_in, int):
        later = [state for state in elections if state.leader_epoch > written_in]
        return later[0] if later else None
    if isinstance(truncation.leader_epoch, int):
        same = [state for state in elections if state.leader_epoch == truncation.leader_epoch]
        if same:
            return same[0]
    return _last_election_before(truncation, elections)


def _last_election_before(truncation: ObservedTruncation, elections: Sequence[Leadership]) -> Leadership | None:
    """Return the last election that was recorded before a truncation, None where the log was truncated under another leader or nothing preceded the election."""
    if not isinstance(truncation.time_ms, int):
        return None
    # Lines of many layouts name no milliseconds: they are of any moment in the second.
    until_ms = truncation.time_ms + (999 if truncation.time_ms % 1000 == 0 else 0)
    earlier = [s for s in elections if isinstance(s.time_ms, int) and s.time_ms <= until_ms]
    in_second = [s for s in earlier if isinstance(s.time_ms, int) and s.time_ms > truncation.time_ms]
    if len(in_second) > 1:
        return None
    if not earlier or earlier[-1].leader_epoch == 0:
        return None
    followed = truncation.leader
    if isinstance(followed, int) and followed not in {truncation.broker_id, earlier[-1].leader}:
        return None
    return earlier[-1]


def _epoch_of_last(truncation: ObservedTruncation) -> int | Absent:
    if truncation.before is None or truncation.before.view.log_end_offset < truncation.from_offset:
        return Absent.UNKNOWN
    return epoch_at(truncation.before.view.batch_epochs, truncation.from_offset - 1)


def _wrote_it_all(truncation: ObservedTruncation, election: Leadership, leaderships: Sequence[Leadership]) -> bool:
    """Whether the broker that lacked the records afterwards had led every term in which they can have been written."""
    if truncation.replacement is None or truncation.replacement.kept < 0 or truncation.broker_id == election.leader:
        return False
    if election.leader_epoch < truncation.replacement.epoch and isinstance(_epoch_of_last(truncation), Absent):
        # They may be of the term that the election began, and a later leader may never have had them.
        return False
    terms = [
        state
        for state in leaderships
        if truncation.replacement.kept <= state.leader_epoch < election.leader_epoch and isinstance(state.leader, int)
    ]
    known = {state.leader_epoch for state in leaderships}
    if not known.issuperset(range(election.leader_epoch, truncation.replacement.epoch + 1)):
        # What took the place of the records may be of a leader that no input names.
        return False
    starts_with_first = bool(terms) and terms[0].leader_epoch == truncation.replacement.kept
    return starts_with_first and all(state.leader == election.leader for state in terms)


def _led_before(election: Leadership, leaderships: Sequence[Leadership]) -> bool:
    """Whether the elected broker was the last leader before."""
    earlier = [state.leader for state in leaderships if state.leader_epoch < election.leader_epoch]
    return next((leader for leader in reversed(earlier) if isinstance(leader, int)), None) == election.leader


def _leaders_own_truncation(
    truncation: ObservedTruncation, election: Leadership | None, evidence: CauseEvidence
) -> ObservedTruncation | None:
    """Return a truncation of the new leader's own log, at or below this one and no later."""
    until = None if truncation.replacement is None else truncation.replacement.epoch
    leader = (
        truncation.leader
        # Where no line says whom it followed, the last that it says is that it led itself.
        if isinstance(truncation.leader, int) and truncation.leader != truncation.broker_id
        else (election.leader if election is not None else Absent.UNKNOWN)
    )
    own = [
        other
        for other in evidence.truncations
        if other is not truncation
        and not _is_after_its_terms(other, election, evidence.leaderships, until)
        and other.broker_id == leader
        and other.broker_id != truncation.broker_id
        and other.to_offset <= truncation.to_offset
        and _is_no_later(other, truncation)
        and (other.rule in {"recovery", "high-watermark"} or not other.is_logged or isinstance(other.leader_epoch, int))
    ]
    return own[0] if own else None


def _is_after_its_terms(
    truncation: ObservedTruncation, election: Leadership | None, leaderships: Sequence[Leadership], until: int | None
) -> bool:
    """Whether the truncated records were written in the term that the election began, or later, and their broker has not led since, up to a leader epoch."""
    written_in = _epoch_of_last(truncation)
    if election is None or not isinstance(written_in, int) or written_in < election.leader_epoch:
        return False
    return not any(
        state.leader == truncation.broker_id
        and written_in < state.leader_epoch
        and (until is None or state.leader_epoch <= until)
        for state in leaderships
    )


def _is_no_later(one: ObservedTruncation, other: ObservedTruncation) -> bool:
    if not isinstance(one.time_ms, int):
        return not one.is_logged
    return not isinstance(other.time_ms, int) or one.time_ms <= other.time_ms


def _because_of_leader(
    lost: ObservedTruncation, election: Leadership | None, evidence: CauseEvidence, protocol: ProtocolName
) -> Cause:
    if lost.empties_segment:
        reason = f"start-up recovery of broker {lost.broker_id} had emptied the segment that begins at offset {lost.to_offset} before it led again"
        return Cause(CauseName.RECOVERY, "likely", reason, lost.citations)
    if lost.is_inside:
        reason = f"the recovery of broker {lost.broker_id} had met damage inside of its log and discarded all from {lost.to_offset} on before it led again"
        return Cause(CauseName.DAMAGE, "likely", reason, lost.citations)
    if not lost.is_logged and _was_restored(lost, election, evidence):
        return _restored(lost, evidence, "likely")
    if not lost.is_logged and _began_anew(lost):
        return _emptied(lost)
    if lost.rule == "recovery" and _was_loaded_after_a_clean_stop(lost, evidence):
        reason = f"broker {lost.broker_id} had loaded its log up to offset {lost.to_offset} after a clean stop that had left it longer, and led again: its disk was put back to an earlier state"
        return Cause(CauseName.DISK_RESTORED, "likely", reason, lost.citations)
    if lost.rule == "recovery" or not (lost.is_logged or _may_have_followed(lost, evidence.leaderships)):
        was_last = election is not None and _was_in_sync(election, evidence.leaderships)
        name = CauseName.LAST_REPLICA_STANDING if was_last else CauseName.POWER_LOSS
        reason = (
            f"broker {lost.broker_id} had lost its log from {lost.to_offset} on in an unclean shutdown and led again"
        )
        return Cause(name, "likely", reason + (": it was the last in sync" if was_last else ""), lost.citations)
    if not PROTOCOL_RULES[protocol].keeps_epochs or lost.rule == "high-watermark":
        reason = f"broker {lost.broker_id} had truncated its own log to its high watermark {lost.to_offset} before it led (KIP-101)"
        return Cause(CauseName.HIGH_WATERMARK, "likely", reason, lost.citations)
    if election is not None and election.unclean:
        reason, confidence = _was_not_in_sync(election)
        return Cause(CauseName.UNCLEAN_ELECTION, confidence, reason, (election.citation, *election.recovering))
    reason = f"broker {lost.broker_id} had truncated its own log to {lost.to_offset} before it led"
    return Cause(CauseName.UNKNOWN, "possible", reason, lost.citations)


_WHY_WITHOUT = {
    True: "it had lost them before, and its own log and log lines would show how",
    False: "no input shows whether it was in sync",
}


def _is_known_clean(election: Leadership, leaderships: Sequence[Leadership]) -> bool:
    """Whether the election is on record as clean: by a metadata record, or by lines that name the leader in the ISR of the leader epoch just before.

    A metadata log that begins with a snapshot names the first leader that it knows, and not how it was elected.
    """
    if election.leader_epoch and not any(state.leader_epoch < election.leader_epoch for state in leaderships):
        return False
    if election.unclean or isinstance(election.recorded_at, int):
        return not election.unclean
    before = next((state for state in reversed(leaderships) if state.leader_epoch < election.leader_epoch), None)
    if before is None or before.leader_epoch != election.leader_epoch - 1 or not election.is_next(before):
        return False
    return isinstance(before.isr, frozenset) and election.leader in before.isr


def _was_in_sync(election: Leadership, leaderships: Sequence[Leadership]) -> bool:
    """Whether the new leader was in the last ISR before the election that was not empty."""
    for state in reversed(leaderships):
        if state.leader_epoch < election.leader_epoch and isinstance(state.isr, frozenset) and state.isr:
            return election.leader in state.isr
    return False
