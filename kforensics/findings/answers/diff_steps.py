"""What to do after a comparison, before any broker is started."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from kforensics.findings.answers.diff_concerns import MOST_NAMED, Concerns, Item, names_of, owners_of
from kforensics.findings.answers.model import State
from kforensics.findings.answers.partition_state import ConcernKind
from kforensics.words import Prohibition, Step, joined_by_and

MOST_COPIED = 20
"""Directories that one command copies by their names."""


def diff_steps(found: Concerns, paths: Sequence[str]) -> Iterator[str]:
    """Yield what to do, and what not to, before a broker is started.

    Args:
        paths: of the inputs, where their directories can be copied.
    """
    for owner, items in found.by_owners(found.of(ConcernKind.EMPTIED, State.AT_RISK, State.MAYBE_AT_RISK)):
        yield Prohibition(
            f"Do not start {owner}: elected with an empty log, it makes the other replicas truncate theirs to 0. Give it its former disk back, or let a broker that holds the records lead first."
        )
        yield f"The partitions: {names_of(items)}."
    losing = found.of(ConcernKind.DISCARD, State.AT_RISK, State.MAYBE_AT_RISK) + found.of(
        ConcernKind.PROTOCOL, State.MAYBE_AT_RISK
    )
    for owner, items in found.by_owners(losing):
        whose = "their directories are" if " and " in owner else "its directory is"
        yield Prohibition(f"Do not start {owner} before {whose} copied", _copy(paths, items))
    yield from _keep_sole_holders(found, paths, owners_of(losing))
    for owner, items in found.by_owners(found.of(ConcernKind.TAIL, State.MAYBE_AT_RISK)):
        yield Step(f"Copy the directory of {owner} before anything is started", _copy(paths, items))
    outside = found.of(ConcernKind.OUTSIDE, State.AT_RISK, State.MAYBE_AT_RISK, State.UNCOMMITTED_ONLY)
    if outside:
        owners = joined_by_and(owners_of(outside))
        is_deleted = any(path.endswith("-delete") for _, one in outside for _, path in one.places)
        fate = ", which deletes some of them," if is_deleted else ""
        yield Step(
            f"Copy these directories before {owners} {'start' if ' and ' in owners else 'starts'}{fate} or anything is done with them",
            _copy_places(paths, outside),
        )
    for owner, items in found.by_owners(found.of(ConcernKind.ELECTED, State.AT_RISK, State.MAYBE_AT_RISK)):
        yield Prohibition(f"Do not start {owner} before a broker that holds all of {names_of(items)} leads.")
    for owner, items in found.by_owners(found.of(ConcernKind.GONE, State.MAYBE_AT_RISK, State.UNKNOWN)):
        yield f"Look for the files of {names_of(items)} that {owner} lacks here, on its disk, in lost+found and in other copies, before it starts: without them it begins an empty log, or serves one with a hole."
    for owner, items in found.by_owners(found.of(ConcernKind.RECOVERY, State.MAYBE_AT_RISK)):
        yield Step(f"Copy the log of {owner} before it starts", _copy(paths, items))
    if found.of(ConcernKind.PAST_END, State.AT_RISK, State.MAYBE_AT_RISK):
        yield "Look for another replica or an earlier copy before anything is started."
    parted = found.of(ConcernKind.DIVERGENCE, State.DIVERGED)
    if any(not one.detail for _, one in parted):
        yield "Find out which content is right before a leader changes: readers get one or the other. Delete nothing."
    odd = [item for item in parted if item[1].detail]
    for owner, items in found.by_owners([item for item in odd if item[1].whole]):
        leaders = joined_by_and(dict.fromkeys(one.whole for _, one in items))
        yield Step(
            f"Have {leaders} lead {names_of(items)}, of which all is intact there, then let {owner} copy it again into an empty directory; keep the old one",
            _copy(paths, items),
        )
    for owner, items in found.by_owners([item for item in odd if not item[1].whole]):
        yield Step(
            f"Empty and delete no replica of {names_of(items)}: no other one given is known to hold all that {owner} {'hold' if ' and ' in owner else 'holds'} "
            f"({'; '.join(one.holds for _, one in items[:MOST_NAMED])}). Copy the directories first",
            _copy(paths, items),
        )
    again = found.of(ConcernKind.COPIED_AGAIN, State.UNCOMMITTED_ONLY)
    for leader in dict.fromkeys(one.leader for _, one in again):
        yield f"Keep {leader} up until its followers have caught up: what they truncate is on its disk alone meanwhile."


def _keep_sole_holders(found: Concerns, paths: Sequence[str], losing: frozenset[str]) -> Iterator[str]:
    """Yield how to keep what one replica alone holds, without an order of starts that other lines contradict; owners in `losing` are not started before their directories are copied, as is said already."""
    groups = found.by_owners(found.of(ConcernKind.SOLE, State.AT_RISK, State.MAYBE_AT_RISK))
    waiting = found.waiting()
    for owner, items in groups:
        is_copied = owners_of(items) <= losing
        is_replaced = any(one.is_replaced for _, one in items)
        # Of replicas that are not given another may lead: to start this one first could make it the leader.
        can_lead = all(one.state is State.AT_RISK or (one.leader == owner and not one.guess) for _, one in items)
        if len(groups) == 1 and can_lead and not is_replaced and not owners_of(items) & waiting:
            alone = f"Start {owner} first, and do not force an unclean election while it is down"
            yield Step(f"{alone}.") if is_copied else Step(f"{alone}; copy its directory before", _copy(paths, items))
            continue
        if not is_copied:
            yield Step(f"Copy the directory of {owner} before it starts", _copy(paths, items))
        if not is_replaced:
            yield Prohibition(f"Do not force an unclean election of {names_of(items)} while {owner} is down.")


def _copy(paths: Sequence[str], items: Sequence[Item]) -> list[str]:
    held = dict.fromkeys(paths[at] for _, one in items for at in one.inputs if at < len(paths))
    return [_copy_of(path) for path in held]


def _copy_of(path: str) -> str:
    return shlex.join(("cp", "-a", path, place_of_copy(path)))


def _copy_places(paths: Sequence[str], items: Sequence[Item]) -> list[str]:
    """Return the commands that copy single directories out of log directories, where a broker would not start with a copy among the others; of very many all that are beside them are copied, too."""
    by_input: dict[int, dict[str, None]] = {}
    for _, one in items:
        for at, path in one.places:
            by_input.setdefault(at, {})[path] = None
    commands = []
    for at, places in by_input.items():
        if at >= len(paths):
            continue
        source = paths[at].rstrip("/")
        if len(places) > MOST_COPIED:
            commands.append(_copy_of(source))
            continue
        target = place_of_copy(source)
        named = (f"{source}/{path}" for path in places)
        commands.append(f"{shlex.join(('mkdir', '-p', target))} && {shlex.join(('cp', '-a', *named, target))}")
    return commands


def place_of_copy(path: str) -> str:
    """Return a place for the copy of a directory that is not below its parent: whoever names the parent, or all in it, again does not name the copy too."""
    pure = PurePosixPath(path)
    parent = pure.parent
    is_inside = pure.is_absolute() or parent.name not in {"", ".."}
    names = [one for one in (parent.name if is_inside else "", pure.name) if one]
    return str((parent.parent if is_inside else parent / "..") / "-".join(["copy-of", *(names or ["data"])]))
