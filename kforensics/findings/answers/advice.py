"""What to do after an incident and what not to do, whom to tell, and which evidence would show more."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from kforensics.ask.model import Ask
from kforensics.ask.questions import command_of
from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.model import Input
from kforensics.findings.concern import copies_of_places
from kforensics.reconcile.history.losses import Holder, Loss
from kforensics.reconcile.incident.model import GroupAtRisk, PartitionIncident
from kforensics.reconcile.observed.clocks import Clock, clocks_that_disagree
from kforensics.units import TopicPartition
from kforensics.words import SAFE, Prohibition, Rescue, Step, counted, form, joined_by_and, listed

MOST_NAMED = 4
"""Partitions that are named one by one."""

_GROUP_WORDS = {
    "ahead": "The offset is past the log end, so they are reset by auto.offset.reset or skip what is written up to it",
    "replaced": "Records before the offset were replaced, and are never read without a reset",
    "set-back": "A later commit is lost, so records are read again",
}


class Holders(NamedTuple):
    """The brokers among the inputs, by what salvage can get of them."""

    without_records: tuple[str, ...] = ()
    """Of whom a capture without records is given."""
    others: int = 0
    paths: tuple[str, ...] = ()
    """The directories of brokers that are given as they are now."""


_SALVAGING = {
    "lost": "Get what is lost out of the copies that hold it",
    "at-risk": "Save the records that are at risk",
    "all": "Get back what was deleted of {topics}, where it should not have been",
}
"""What salvage takes, in words, by the value of `--what`."""


def how_to_salvage(ask: Ask, holders: Holders, *, is_lost: bool, is_held: bool, is_at_risk: bool) -> Iterator[Rescue]:
    """Yield how to get lost records out of what holds them, where else to look for them, and how to save those that a start would take."""
    if is_held:
        yield _salvage("lost", ask, holders)
    elif is_lost:
        yield Rescue(
            "Look for earlier copies and backups (--before) or disk images (`kforensics salvage --carve`): no input holds what is lost."
        )
    if is_at_risk:
        yield _salvage("at-risk", ask, holders)


def how_to_get_back(ask: Ask, holders: Holders, topics: Collection[str]) -> Iterator[Step]:
    """Yield how to get out of the inputs what was deleted of topics on request."""
    if topics:
        rescue = _salvage("all", replace(ask, topics=frozenset(topics)), holders)
        yield Step(rescue.sentence, rescue.commands)


def _salvage(what: str, ask: Ask, holders: Holders) -> Rescue:
    """Return the step that gets records out of what was asked about; those at risk are in the directories as they are now."""
    sentence = _SALVAGING[what].format(topics=listed(sorted(ask.topics), most=MOST_NAMED))
    if holders.without_records:
        whose = joined_by_and(holders.without_records)
        sentence += f", with the directories of {whose} themselves, as captures without --with-tail hold no records"
        if not holders.others:
            return Rescue(f"{sentence}: `kforensics salvage --what {what}` on them.")
    asked = replace(ask, before=()) if what == "at-risk" else ask
    return Rescue(sentence, (f"{command_of('salvage', asked, '--what', what)} -o {SAFE}/{what}",))


def advice_on_past_end(incidents: Sequence[PartitionIncident]) -> list[str]:
    """Return what to look for where high watermarks are past the end of every log."""
    if not any(incident.past_end for incident in incidents):
        return []
    return ["Look for another replica or an earlier snapshot of these partitions before anything is started."]


def advice_on_residuals(incidents: Sequence[PartitionIncident]) -> list[str]:
    """Return what to do about replicas that stay different from their leaders."""
    every = [one for incident in incidents for one in incident.residuals]
    if not every:
        return []
    if all(one.damaged_on for one in every):
        return [
            "Look at the damage with `kforensics verify`, copy the replicas that are sound, and replace the damaged one from them: Kafka does not."
        ]
    return [
        "Look at the differing replicas with `kforensics diff`, keep a copy of each, and decide which one is to be trusted."
    ]


def what_to_save(losses: Sequence[Loss], inputs: Sequence[Input]) -> list[str]:
    """Return what holds lost records and will not stay: renamed files and directories first, then those of brokers that are no replicas any more."""
    advice: list[str] = []
    lost = [loss for loss in losses if loss.was_committed != "no"]
    paths = [one.path for one in inputs]
    vanishing = _places(holder for loss in lost for holder in loss.held_by if holder.is_vanishing)
    if vanishing:
        many = len(vanishing) != 1
        advice.append(
            Step(
                f"Copy {f'these {len(vanishing)} directories' if many else 'this directory'} before any broker starts: files in {'them' if many else 'it'} that were renamed for"
                " deletion (.deleted, -delete) still hold lost records, and brokers remove them",
                copies_of_places(paths, vanishing),
            )
        )
    strays = _places(holder for loss in lost for holder in loss.held_by if holder.is_stray)
    if strays:
        advice.append(
            Step(
                f"Copy the -stray {form(len(strays), 'directory', 'directories')} that still {form(len(strays), 'holds', 'hold')} lost records",
                copies_of_places(paths, strays),
            )
        )
    return advice


def _places(holders: Iterable[Holder]) -> list[tuple[int, str]]:
    return sorted({(one.input, one.path) for one in holders})


def what_to_keep(losses: Sequence[Loss], incidents: Sequence[PartitionIncident], inputs: Sequence[Input]) -> list[str]:
    """Return which directories to copy before their brokers start, and whether snapshots hold lost records."""
    advice: list[str] = []
    paths = [one.path for one in inputs]
    kept = {(one.broker_id, incident.partition) for incident in incidents for one in incident.residuals}
    in_use: dict[str, set[int]] = {}
    for loss in losses:
        for holder in loss.in_use:
            # A replica that no rule truncates keeps what only it holds.
            if loss.was_committed != "no" and (holder.broker_id, loss.topic_partition) not in kept:
                in_use.setdefault(holder.owner, set()).add(holder.input)
    if in_use:
        owners, places = sorted(in_use), sorted(set().union(*in_use.values()))
        directory = form(len(places), "directory is", "directories are")
        why = "its {} copied: as a follower it will truncate what only it holds"
        if len(owners) > 1:
            why = "their {} copied: as followers they will truncate what only they hold"
        sentence = f"Do not start {joined_by_and(owners)} before {why.format(directory)}"
        advice.append(Prohibition(sentence, copies_of_places(paths, [(one, "") for one in places])))
    copied = [
        (loss, (holder.input, holder.path))
        for loss in losses
        if loss.was_committed != "no"
        for holder in loss.held_by
        if not holder.in_use and not holder.is_final
    ]
    gone = {place for loss, place in copied if not loss.in_use}
    held = gone or {place for _, place in copied}
    if held:
        what = "lost records" if gone else "records that a leader lacks"
        advice.append(
            f"Keep the snapshots: {counted(len(held), 'directory', 'directories')} in them still {form(len(held), 'holds', 'hold')} {what}."
        )
    return advice


def whom_to_tell(losses: Sequence[Loss]) -> list[str]:
    """Return whom to tell of records that are lost or may be."""
    lost = [loss for loss in losses if loss.was_committed != "no"]
    if lost and not any(loss.was_committed == "certain" for loss in lost):
        return ["Ask the producers of these offsets which of their records were acknowledged."]
    if lost:
        return [
            "Inform the producers of these offsets: those with acks=all may have got an acknowledgement of these records."
        ]
    if losses:
        return ["Inform producers with acks=1: some of these records may have been acknowledged to them."]
    return []


def on_consumers(incidents: Sequence[PartitionIncident]) -> list[str]:
    """Return what consumers meet that are stuck, skip records or read them twice."""
    sentences = []
    stuck = [(one.partition, one.stuck_at) for one in incidents if one.stuck_at is not None]
    for partition, (at, first) in stuck[:MOST_NAMED]:
        sentences.append(
            f"Consumers of {partition} with isolation.level=read_committed get nothing from offset {at} on until the transaction at {first} is ended, which no"
            " coordinator does. `kforensics transactions` of the same inputs says how."
        )
    if len(stuck) > MOST_NAMED:
        sentences.append(f"{len(stuck) - MOST_NAMED} more partitions have a last stable offset that is stuck.")
    for kind, words in _GROUP_WORDS.items():
        met = [(incident.partition, group) for incident in incidents for group in incident.groups if group.kind == kind]
        if met:
            names = listed([f"{group.group} ({partition} at {group.offset})" for partition, group in met])
            sentences.append(f"Inform {kind_of_groups(met)} {names}. {words}.")
    return sentences


def kind_of_groups(met: Sequence[tuple[TopicPartition, GroupAtRisk]]) -> str:
    """Return what groups are called together: consumer groups, share groups, or groups."""
    kinds = {"share " if group.is_share else "consumer " for _, group in met}
    return f"{kinds.pop() if len(kinds) == 1 else ''}{form(len({group.group for _, group in met}), 'group')}"


def missing_evidence(
    incidents: Sequence[PartitionIncident],
    log_files: Sequence[LogFile],
    inputs: Sequence[Input],
    clocks: Sequence[Clock],
) -> list[str]:
    """Return the inputs that would show more."""
    missing = []
    has_state_changes = any("state-change" in f"{file.path} {file.location}" for file in log_files)
    is_controller = any(one.kind in {"controller", "combined"} for one in inputs)
    if not is_controller and not has_state_changes and not any(incident.leaderships for incident in incidents):
        missing.append(
            "A controller's metadata log, or state-change.log, would show which broker led and which were in sync."
        )
    if not log_files:
        missing.append(
            "server.log, state-change.log and controller.log would show when logs were truncated, by which rule and to which offset."
        )
    if strange := [file for file in log_files if not file.is_understood]:
        named = listed(
            [file.path if file.path != "." else inputs[file.input].path for file in strange], most=MOST_NAMED
        )
        missing.append(f"Lines of {named} are in a layout that is not understood: nothing of them was read.")
    if not any(one.kind == "snapshot-before" for one in inputs):
        missing.append("A snapshot of the data directories from before (--before) would show what the logs held then.")
    with_logs = {file.node_id for file in log_files}
    brokers = {one.broker_id for one in inputs if isinstance(one.broker_id, int) and one.kind in {"broker", "combined"}}
    without = sorted(str(broker) for broker in brokers - with_logs)
    if log_files and without:
        nameless = sum(isinstance(file.node_id, Absent) for file in log_files)
        named = f"{form(len(without), 'broker')} {listed(without, most=MOST_NAMED)}"
        missing.append(
            f"No log file says that it is of {named}; {counted(nameless, 'log file')} {form(nameless, 'names', 'name')} no broker."
            if nameless
            else f"The log files of {named} are not among the inputs."
        )
    used = [clock for file, clock in zip(log_files, clocks, strict=True) if isinstance(file.first_time_ms, int)]
    if any(clock.source == "assumed" for clock in used):
        missing.append(
            "No input shows the time zone of the log files: their times are taken as UTC (--log-timezone sets it)."
        )
    for node, skew_ms in clocks_that_disagree(log_files, clocks).items():
        missing.append(
            f"The clock of node {node} differs by {abs(skew_ms) / 1000:.1f} s from the others; its times are corrected."
        )
    for incident in incidents:
        last = next(
            (one.leader for one in reversed(incident.leaderships) if isinstance(one.leader, int)), Absent.UNKNOWN
        )
        if isinstance(last, int) and isinstance(incident.leader, int) and last != incident.leader and incident.losses:
            missing.append(
                f"{incident.partition} was last led by broker {last}, whose log is not among the inputs;"
                f" the strongest there, of broker {incident.leader}, takes its place."
            )
    unread = [incident for incident in incidents if isinstance(incident.leader, Absent) and incident.truncations]
    if unread:
        missing.append(
            f"The logs of {listed([str(incident.partition) for incident in unread], most=MOST_NAMED)} are not among the inputs: whether records are lost is open."
        )
    return missing
