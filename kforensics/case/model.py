"""One run over some inputs: what is asked of them, in which order they were taken, and the facts that were found, each once.

A fact is a function of a case, and of a subject where it has one, that calls lower facts: who it is about is what it takes, and its type is what it gives.
The case has no methods for them, it remembers what they gave.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from kforensics.ask.model import Ask
from kforensics.case.processes import default_jobs
from kforensics.case.wanted import is_wanted
from kforensics.evidence.discovery.inputs import Inputs, ServerSettings, put_aside
from kforensics.evidence.discovery.partition_dirs import (
    LostDirectory,
    PartitionPlace,
    Places,
    find_places,
    list_ahead,
)
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.units import REMOTE_LOG_TOPIC, Depth, TopicPartition

if TYPE_CHECKING:
    from kforensics.evidence.remote_copies import Replayed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """The inputs of a run as they are now, those of earlier moments behind them, and what is known of them."""

    ask: Ask
    inputs: Inputs
    ranks: Mapping[int, int] = field(default_factory=dict)
    """The rank of each input of an earlier moment, by its index; those as they are now have none."""
    final_rank: int = 0
    notes: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    """Paths of earlier copies whose files are younger than those as they are now, and whose logs reach further."""
    metadata_ends: Mapping[int, int] = field(default_factory=dict)
    """The end of the longest metadata log of each moment, by rank."""
    logs_held: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """The number of logs that a node held at each moment, by rank and node."""
    unchanged: frozenset[tuple[int, int, int]] = frozenset()
    """An earlier rank, a later one and a node that had written nothing to any log in between."""
    rename_group: Callable[[str], str] = str
    """The function that gives the names of consumer groups in results."""
    is_weighed: bool = False
    """Whether what the replicas come to is said beside the answers to it, so that none of them has to."""
    only: frozenset[TopicPartition] | None = None
    """The partitions that alone are explained; all that the question is about where there are none."""
    whole: "Case | None" = None
    """The case that these inputs are a part of."""
    of_inputs: dict[Any, Any] = field(default_factory=dict, repr=False)
    """The facts that hold whatever is asked, by function and subject."""
    of_question: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Those that depend on it."""

    @property
    def jobs(self) -> int:
        """The processes to work with."""
        return self.ask.jobs or default_jobs()

    @property
    def depth(self) -> Depth:
        """How much of the logs is read."""
        return self.ask.depth or Depth.CONTENT

    def asked(self, ask: Ask) -> "Case":
        """Return the case with another question about the same inputs."""
        return replace(self, ask=ask, of_question={})

    def asking(self, **changes: Any) -> "Case":
        """Return the case with a question that differs in some options."""
        return self.asked(replace(self.ask, **changes))

    def for_facts(self) -> Inputs:
        """Return the inputs without earlier ones where the metadata log as it is now is among them: it holds all that older copies do."""
        if not self.ranks:
            return self.inputs
        found = tuple(put_aside(one) if at in self.ranks else one for at, one in enumerate(self.inputs.found))
        now = replace(self.inputs, found=found)
        return now if find_metadata_logs(now) or not find_metadata_logs(self.inputs) else self.inputs

    def explains(self, partition: TopicPartition) -> bool:
        """Whether a partition is one that is explained."""
        return partition in self.only if self.only is not None else is_wanted(partition, self.ask)

    def nodes_by_rank(self) -> dict[int, frozenset[int]]:
        """Return the nodes whose data directories there are of each moment."""
        nodes: dict[int, set[int]] = {}
        for at, one in enumerate(self.inputs.found):
            if one.log_dirs and isinstance(one.described.broker_id, int):
                nodes.setdefault(self.ranks.get(at, self.final_rank), set()).add(one.described.broker_id)
        return {rank: frozenset(members) for rank, members in nodes.items()}


Subject = ParamSpec("Subject")
Value = TypeVar("Value")
Fact = Callable[Concatenate[Case, Subject], Value]


def fact(make: Fact[Subject, Value]) -> Fact[Subject, Value]:
    """Let a case remember what a function finds of its inputs, whatever is asked of them."""

    @wraps(make)
    def known(case: Case, /, *subject: Subject.args, **named: Subject.kwargs) -> Value:
        return _once(case.of_inputs, make, case, *subject, **named)

    return known


def tell(case: Case, known: Callable[[Case], Value | None], value: Value) -> None:
    """Let a case remember what was found of its inputs by who read them before."""
    case.of_inputs[known.__wrapped__, ()] = value  # type: ignore[attr-defined]


def fact_of_question(make: Fact[Subject, Value]) -> Fact[Subject, Value]:
    """Let a case remember what a function finds, until something else is asked."""

    @wraps(make)
    def known(case: Case, /, *subject: Subject.args, **named: Subject.kwargs) -> Value:
        return _once(case.of_question, make, case, *subject, **named)

    return known


def _once(
    memory: dict[Any, Any],
    make: Fact[Subject, Value],
    case: Case,
    *subject: Subject.args,
    **named: Subject.kwargs,
) -> Value:
    key = (make, subject)
    if key not in memory:
        memory[key] = make(case, *subject, **named)
    found: Value = memory[key]
    return found


@fact
def _places(case: Case) -> Places:
    list_ahead(case.inputs, case.jobs)
    return find_places(case.inputs)


@fact
def recorded_copies(case: Case) -> "Replayed | None":
    """Return every copy on record in `__remote_log_metadata` as it is now; None where it is not among the inputs."""
    every = ((tp, place) for tp, group in _places(case).by_partition.items() for place in group)
    now = ((tp, place) for tp, place in every if place.is_live and place.state.input not in case.ranks)
    recorded = [place for tp, place in now if tp.topic == REMOTE_LOG_TOPIC]
    return copies_on_record(recorded, _places(case).lost) if recorded else None


def copies_on_record(places: Iterable[PartitionPlace], lost: Iterable[LostDirectory]) -> "Replayed":
    """Return every copy on record in the directories of `__remote_log_metadata`, which others may lack."""
    from kforensics.evidence.remote_copies import replayed  # noqa: PLC0415 - few clusters have remote storage

    ends = ((one.topic_partition, one.value.value) for one in lost)
    return replayed(places, {tp.partition: end for tp, end in ends if tp.topic == REMOTE_LOG_TOPIC})


def remote_starts_in(found: "Replayed") -> dict[TopicPartition, tuple[tuple[str, int], ...]]:
    """Return where the finished copies of each partition begin, by topic id."""
    out = {}
    for partition, by_id in found.segments.items():
        finished = ((one, copy) for one, copies in by_id.items() for copy in reversed(copies) if copy.is_finished)
        out[partition] = tuple({one: copy.offsets.first for one, copy in finished}.items())
    return out


@fact
def places_of(case: Case) -> Places:
    """Return the partition directories of the inputs, each with where its copies in remote storage begin, where that is asked of any."""
    places = _places(case)
    by_partition = dict(places.by_partition)
    if not any(partition.topic == REMOTE_LOG_TOPIC for partition in by_partition):
        return places
    from kforensics.evidence.remote_copies import may_begin_there  # noqa: PLC0415 - few clusters have remote storage

    is_asked = any(may_begin_there(one) for group in by_partition.values() for one in group)
    found = recorded_copies(case) if is_asked else None
    if found is None:
        return places
    for partition, starts in remote_starts_in(found).items():
        if partition in by_partition:
            by_partition[partition] = tuple(one._replace(remote_starts=starts) for one in by_partition[partition])
    return places._replace(by_partition=by_partition)


READ_WHOLE = 64 << 20
"""Bytes of all logs together up to which all content is read where no depth is asked for: it takes no second, and what is calm is then calm of content, too."""


@fact
def quick_depth(case: Case) -> Depth:
    """Return how much of the logs is read where no depth is asked for: all where that takes no time."""
    length = sum(place.length for group in places_of(case).by_partition.values() for place in group)
    return Depth.CONTENT if length <= READ_WHOLE else Depth.TAILS


@fact
def settings_of(case: Case) -> ServerSettings:
    """Return the settings in the configuration files among the inputs."""
    return ServerSettings(case.inputs)


@fact
def now_of(case: Case) -> Case:
    """Return the case of the inputs as they are now alone."""
    if not case.ranks:
        return case
    found = tuple(one for at, one in enumerate(case.inputs.found) if at not in case.ranks)
    inputs = replace(case.inputs, found=found)
    return Case(ask=case.ask, inputs=inputs, rename_group=case.rename_group, is_weighed=case.is_weighed, whole=case)
