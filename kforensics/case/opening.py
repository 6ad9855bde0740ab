"""The inputs of a case: what is now, and earlier snapshots in the order in which they were taken, whatever order they came in."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.ask.questions import command_of
from kforensics.case.model import Case
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, MomentsMixed, refuse
from kforensics.evidence.discovery.inputs import (
    FoundInput,
    Inputs,
    belonging_together,
    find_inputs,
    inputs_at,
    of_several_clusters,
    put_aside,
    require_one_redaction,
    why_not_compared,
    without_emptied,
)
from kforensics.evidence.metadata.files import with_roles
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.progress import read_progress
from kforensics.reconcile.history.snapshot_order import (
    Grade,
    SnapshotNodes,
    in_order,
    is_same,
    order_of,
    seems_later,
    unchanged_nodes,
    went_back_alone,
)
from kforensics.source.discover import Shape
from kforensics.source.walk import join
from kforensics.units import METADATA_TOPICS, Depth

SNAPSHOT_KIND = "snapshot-before"
"""Kind of an input that is an earlier snapshot."""

UNUSED_KIND = "not-used"
"""Kind of an input that was put aside; a note says why."""


@dataclass(slots=True)
class _Group:
    """All inputs that one path names, at one moment."""

    path: Path
    found: list[FoundInput]
    problems: list[Problem]
    moment: SnapshotNodes = field(init=False)

    def __post_init__(self) -> None:
        self.moment = SnapshotNodes(
            nodes=tuple(read_progress(one) for one in self.found if one.log_dirs or _is_place(one))
        )

    @property
    def clusters(self) -> frozenset[str]:
        return frozenset(node.cluster_id for node in self.moment.nodes if not isinstance(node.cluster_id, Absent))


def _is_place(found: FoundInput) -> bool:
    return found.shape is Shape.PARTITION


def open_case(ask: Ask, *, rename_group: Callable[[str], str] = str, again: str | None = None) -> Case:
    """Return the case of the inputs that are named; snapshots are put in the order in which they were taken, by what they hold.

    What does not fit is named in the notes and put aside: a path given twice, a snapshot of a few nodes that is younger than what is
    given as it is now. A snapshot of all nodes that is younger changes places with it.

    Args:
        again: the command that is named, with its options, where nodes are given at several moments; without it `explain`.

    Raises:
        EvidenceError: a path can't be used, or with `keep_going` none can; or they are not of one cluster, or not of one moment.
        UsageError: no input is of the cluster that was asked for.
    """
    paths, before, cluster = ask.paths, ask.before, ask.cluster
    only = Case(ask=ask, inputs=Inputs(found=()), rename_group=rename_group)
    errors: list[EvidenceError] = []
    given_now = inputs_at(paths, errors, with_server_logs=True, why_not=why_not_compared)
    snapshots = [(path, inputs_at([path], errors, why_not=why_not_compared)) for path in before]
    every = [*given_now.found, *(one for _, inputs in snapshots for one in inputs.found)]
    require_one_redaction(every)
    errors = without_emptied(errors, every)
    refuse(errors, named=len(paths) + len(before), keep_going=ask.keep_going and len(errors) < len(paths) + len(before))
    inputs = of_one_moment(given_now, ask, again)
    found, problems = list(inputs.found), list(inputs.problems)
    if not before:
        return _with_moments(only, inputs, found, problems, [], [])
    now = _Group(Path(), found, problems)
    groups = [_Group(path, list(one.found), list(one.problems)) for path, one in snapshots]
    notes: list[str] = []
    own = _of_one_cluster(groups, now, cluster, notes)
    used = [group for group in own if _belongs(group, now, own, notes)]
    given = now
    now, used = _with_newest_last(now, used, notes)
    if now is not given and ask.seal is None:  # a seal can go by the order in which paths are named
        only = replace(only, ask=_exchanged(ask, given, now))
    order = in_order([group.moment for group in used])
    notes += _order_notes(used, order)
    notes += _of_others(now, used)
    kept = {id(one) for group in (*used, now) for one in group.found}
    aside = [group for group in groups if not any(id(one) in kept for one in group.found)]
    later = tuple(str(group.path) for group in used if seems_later(now.moment, group.moment))
    ordered = [used[at] for at in order]
    only = replace(only, notes=tuple(notes), later=later)
    return _with_moments(only, inputs, now.found, now.problems, ordered, aside)


def of_one_moment(inputs: Inputs, ask: Ask, again: str | None = None) -> Inputs:
    """Return what is given as it is now, of one cluster and each node once.

    Raises:
        MomentsMixed: a node is given several times; the command that says which is the newest is its advice.
        InputsRefused: data directories are of several clusters.
        UsageError: no input is of the cluster that was asked for.
    """
    try:
        return with_roles(belonging_together(inputs, cluster=ask.cluster, is_of_one_moment=True))
    except MomentsMixed as error:
        raise MomentsMixed(
            error.problem, error.errors, (f"{error.advice[0]}:", f"$ {_told_apart(inputs, ask, again)}")
        ) from error


def _told_apart(inputs: Inputs, ask: Ask, again: str | None) -> str:
    """Return the command that names the newest state of each node, by what it holds, and earlier ones after --before."""
    places: dict[Path, list[FoundInput]] = {}
    for one in inputs.found:
        if one.log_dirs:
            places.setdefault(Path(one.described.path).parent, []).append(one)
    if any(len({one.described.broker_id for one in group}) < len(group) for group in places.values()):
        places = {Path(one.described.path): [one] for group in places.values() for one in group}
    groups = [_Group(path, group, []) for path, group in places.items()]
    ordered = [groups[at] for at in in_order([group.moment for group in groups])]
    newest = {one.described.broker_id: one for group in ordered for one in group.found}
    now = set(map(id, newest.values())) | {id(one) for one in inputs.found if not one.log_dirs}
    others = _Group(Path(), [one for one in inputs.found if not one.log_dirs], [])
    named = [
        path
        for group in (*reversed(ordered), others)
        for path in _named([one for one in group.found if id(one) in now])
    ]
    earlier = [path for group in ordered for path in _named([one for one in group.found if id(one) not in now])]
    # All content is what most commands read where nothing else is asked for.
    depth = None if ask.depth is Depth.CONTENT else ask.depth
    asked = replace(ask, before=(*ask.before, *map(Path, earlier)), depth=depth)
    return command_of(again or "explain", asked, paths=named, is_same=again is not None)


def _named(some: Sequence[FoundInput]) -> list[str]:
    """Return the paths that name some inputs: their directory, where it holds them and nothing else."""
    paths = list(dict.fromkeys(one.described.path for one in some))
    parents = {Path(path).parent for path in paths}
    if len(paths) > 1 and len(parents) == 1:
        (parent,) = parents
        try:
            there = {one.root for one in find_inputs([parent], with_server_logs=True).found}
        except EvidenceError:
            return paths
        if there == {one.root for one in some}:
            return [str(parent)]
    return paths


def _of_one_cluster(groups: Sequence[_Group], now: _Group, cluster: str | None, notes: list[str]) -> list[_Group]:
    """Return the snapshots, all of one cluster together with what is now; where one was asked for, those of others are left out."""
    wanted = {cluster} if cluster is not None else now.clusters
    named = [
        (one.described.path, one.described.cluster_id)
        for group in (now, *groups)
        for one in group.found
        if not isinstance(one.described.cluster_id, Absent)
    ]
    if cluster is None and len({name for _, name in named}) > 1:
        raise of_several_clusters(named)
    of_others = [group for group in groups if group.clusters and wanted and not group.clusters & wanted]
    notes += [f"{group.path} is of cluster {', '.join(sorted(group.clusters))}; it is not used." for group in of_others]
    return [group for group in groups if not any(group is one for one in of_others)]


def _with_moments(
    case: Case,
    whole: Inputs,
    now: list[FoundInput],
    met: list[Problem],
    ordered: Sequence[_Group],
    aside: Sequence[_Group],
) -> Case:
    found, problems, ranks = list(now), list(met), {}
    ends: dict[int, int] = {}
    held: dict[tuple[int, int], int] = {}
    for rank, group in enumerate(ordered):
        reached = [
            log.log_end_offset
            for node in group.moment.nodes
            for partition, log in node.logs.items()
            if partition.topic in METADATA_TOPICS
        ]
        if reached:
            ends[rank] = max(reached)
        held.update(
            {(rank, node.node_id): len(node.logs) for node in group.moment.nodes if isinstance(node.node_id, int)}
        )
        problems += [replace(problem, input=problem.input + len(found)) for problem in group.problems]
        ranks.update(dict.fromkeys(range(len(found), len(found) + len(group.found)), rank))
        found += [_as(SNAPSHOT_KIND, one) for one in group.found]
    for group in aside:
        found += [put_aside(_as(UNUSED_KIND, one)) for one in group.found]
    problems += _unknown_nodes(found)
    return replace(
        case,
        inputs=replace(whole, found=tuple(found), problems=tuple(problems)),
        ranks=ranks,
        final_rank=len(ordered),
        metadata_ends=ends,
        logs_held=held,
        unchanged=frozenset(_unchanged(ordered)),
    )


def _unchanged(ordered: Sequence[_Group]) -> Iterator[tuple[int, int, int]]:
    for rank, group in enumerate(ordered):
        for earlier, other in enumerate(ordered[:rank]):
            for node in sorted(unchanged_nodes(other.moment, group.moment)):
                yield earlier, rank, node


def _as(kind: str, one: FoundInput) -> FoundInput:
    if one.described.kind == "unreadable":
        return one
    return replace(one, described=replace(one.described, kind=kind))


def _belongs(group: _Group, now: _Group, groups: Sequence[_Group], notes: list[str]) -> bool:
    """Whether a snapshot can be used; if not, a note says why."""
    roots = [one.root for one in group.found]
    earlier = groups[: next(at for at, one in enumerate(groups) if one is group)]
    if roots and any(roots == [one.root for one in other.found] for other in earlier):
        notes.append(f"{group.path} is given twice with --before; it is used once.")
        return False
    if roots and all(root in {one.root for one in now.found} for root in roots):
        notes.append(f"{group.path} is given with --before and as it is now; it is taken for what is now.")
        return False
    same = next((other for other in (*earlier, now) if is_same(group.moment, other.moment)), None)
    if same is not None:
        name = "what is now" if same is now else str(same.path)
        notes.append(f"{group.path} shows the same moment as {name}: it adds nothing.")
    return True


def _with_newest_last(now: _Group, used: list[_Group], notes: list[str]) -> tuple[_Group, list[_Group]]:
    """Exchange what is now with a snapshot that is proven to be younger and shows the same nodes; others that are younger are put aside."""
    younger = []
    for group in used:
        order = order_of(now.moment, group.moment)
        if order.later <= 0 or order.grade is not Grade.PROVEN:
            continue
        if went_back_alone(now.moment, group.moment):
            notes.append(
                f"{group.path} is given with --before, and by some nodes it is younger than what is now ({order.reason}), while the others wrote nothing in between: their disks"
                " were put back to an earlier state, or the inputs are exchanged."
            )
            continue
        younger.append((group, order.reason))
    if not younger:
        return now, used
    newest = younger[-1][0] if len(younger) == 1 else _last([group for group, _ in younger])
    reason = next(reason for group, reason in younger if group is newest)
    if not newest.moment.node_ids >= now.moment.node_ids:
        for group, why in younger:
            notes.append(
                f"{group.path} is given with --before and is younger than what is now ({why}); it is not used."
            )
        return now, [group for group in used if not any(group is one for one, _ in younger)]
    notes.append(
        f"{newest.path} is given with --before and is younger than what is given as it is now ({reason}): they change places."
    )
    old, old_problems = _part(now, lambda one: bool(one.log_dirs) or _is_place(one))
    others, met = _part(now, lambda one: not one.log_dirs and not _is_place(one))
    problems = [*newest.problems, *(replace(one, input=one.input + len(newest.found)) for one in met)]
    return _Group(newest.path, [*newest.found, *others], problems), [
        _Group(Path(now.found[0].described.path) if now.found else now.path, old, old_problems),
        *(group for group in used if group is not newest),
    ]


def _exchanged(ask: Ask, given: _Group, now: _Group) -> Ask:
    """Return what is asked with paths that changed places: a command that knows no earlier ones would read them as they were named."""
    kept = {id(one) for one in now.found}
    others = _named([one for one in given.found if id(one) in kept])
    earlier = _named([one for one in given.found if id(one) not in kept])
    before = (*map(Path, earlier), *(path for path in ask.before if path != now.path))
    return replace(ask, paths=(now.path, *map(Path, others)), before=before)


def _part(group: _Group, belongs: Callable[[FoundInput], bool]) -> tuple[list[FoundInput], list[Problem]]:
    """Return some inputs of a group with the problems that were met in them."""
    places = [at for at, one in enumerate(group.found) if belongs(one)]
    numbers = {at: number for number, at in enumerate(places)}
    problems = [replace(one, input=numbers[one.input]) for one in group.problems if one.input in numbers]
    return [group.found[at] for at in places], problems


def _last(groups: Sequence[_Group]) -> _Group:
    return groups[in_order([group.moment for group in groups])[-1]]


def _order_notes(used: Sequence[_Group], order: Sequence[int]) -> Iterator[str]:
    """Whether the order is another than that given or than that of the files' times."""
    for one, other in combinations(order, 2):
        if (found := order_of(used[one].moment, used[other].moment)).later < 0:
            why = f" ({found.reason})" if found.reason else ""
            yield f"The evidence for the order of the snapshots contradicts itself: {used[one].path} may be later than {used[other].path}{why}."
    by_times = sorted(range(len(used)), key=lambda at: (used[at].moment.written_ms, at))
    if list(order) == list(range(len(used))):
        if by_times != list(order) and len({used[at].moment.written_ms for at in by_times}) == len(used):
            yield "The times of the snapshots' files contradict what they hold; they are taken in the order of what they hold."
        return
    reasons = [
        found.reason
        for one, other in pairwise(order)
        if (found := order_of(used[one].moment, used[other].moment)).reason
    ]
    if reasons:
        yield (
            f"The snapshots were not given in the order in which they were taken; they are put in order by what they hold ({reasons[0]})."
        )
    else:
        yield "The snapshots were not given in the order of their files' times; they are taken in that order."


def _of_others(now: _Group, used: Sequence[_Group]) -> Iterator[str]:
    """Snapshots of nodes of which nothing is known now."""
    known = now.moment.node_ids
    for group in used:
        others = sorted(group.moment.node_ids - known)
        if known and others:
            names = ", ".join(map(str, others))
            yield f"{group.path} shows node {names}, whose directory as it is now is not among the inputs."


def _unknown_nodes(found: Sequence[FoundInput]) -> Iterator[Problem]:
    """Identity files that can't be read: whose log directory it is stays open, and with it much of what could be known."""
    for number, one in enumerate(found):
        for log_dir in one.log_dirs:
            if log_dir.meta is Absent.UNREADABLE:
                path = join(log_dir.path, "meta.properties")
                yield Problem(input=number, path=path, message="it can't be read: which node this is stays unknown")
