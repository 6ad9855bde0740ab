"""The partitions of `__consumer_offsets` and `__transaction_state`: how many there are, which are here, and which is whose."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from kforensics.damage import Absent
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.protocol.coordinators import coordinator_hash, coordinator_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorTopic:
    """A topic of a coordinator, as far as the inputs show it."""

    name: str
    present: frozenset[int]
    """Partitions of which a live replica is here."""
    count: int | Absent
    """How many it has; 0 where the metadata shows that there is no such topic."""

    unread: Mapping[int, str] = field(default_factory=dict)
    """Partitions whose log is here in part, each with a clause that says why."""
    renamed: Mapping[str, str | bytes] = field(default_factory=dict)
    """The names that pseudonyms replace."""

    @property
    def lacks(self) -> Mapping[int, str]:
        """The partitions that are known to exist and whose log is not here as a whole, each with a clause that says why."""
        count = 0 if isinstance(self.count, Absent) else self.count
        missing = {one: "it is not among the inputs" for one in range(count) if one not in self.present}
        return dict(sorted({**missing, **self.unread}.items()))

    @property
    def is_complete(self) -> bool:
        """Whether every partition of the topic is known to be here, with all of its log."""
        return not isinstance(self.count, Absent) and not self.lacks

    def partition_of(self, name: str | bytes) -> int | Absent:
        """Return the partition that holds a group or a transactional id; unknown where the count of partitions is."""
        if isinstance(self.count, Absent) or not self.count:
            return Absent.UNKNOWN
        return coordinator_partition(self.renamed.get(name, name) if isinstance(name, str) else name, self.count)

    def may_lack(self, name: str | bytes) -> bool:
        """Whether the partition of a group or transactional id is not here as a whole, or can't be named; not where there is no such topic."""
        if self.count == 0 and not self.unread:
            return False
        partition = self.partition_of(name)
        return isinstance(partition, Absent) or partition not in self.present or partition in self.unread

    def reasons(self) -> Iterable[tuple[str, Sequence[str]]]:
        """Return the clauses that say why logs are not here as a whole, each with the partitions that it is said of."""
        by_reason: dict[str, list[str]] = {}
        for number, reason in self.lacks.items():
            by_reason.setdefault(reason, []).append(f"{self.name}-{number}")
        return by_reason.items()


def coordinator_topic(
    name: str,
    present: Collection[int],
    *,
    history: MetadataHistory | None,
    settings: Collection[int] = (),
    names: Iterable[tuple[str | bytes, int]] = (),
    unread: Mapping[int, str] | None = None,
    is_history_newest: bool = True,
) -> CoordinatorTopic:
    """Count the partitions of a coordinator's topic.

    The metadata log says it, else the setting that it was created with, else the names in it: where the partitions here are those from 0 on, and
    their number is the only one from there up under which every name hashes to the partition that holds it, that is their number.
    """
    return CoordinatorTopic(
        name=name,
        present=frozenset(present),
        count=_count(name, present, history, settings, names, is_history_newest=is_history_newest),
        unread=unread or {},
    )


def _count(
    name: str,
    present: Collection[int],
    history: MetadataHistory | None,
    settings: Collection[int],
    names: Iterable[tuple[str | bytes, int]],
    *,
    is_history_newest: bool,
) -> int | Absent:
    highest = max(present, default=-1) + 1
    if history is not None:
        topic_ids = {one.topic_id for one in history.topics_named(name) if isinstance(one.removed, Absent)}
        numbers = {number for topic_id, number in history.partitions if topic_id in topic_ids}
        if numbers or (not present and not history.gaps and is_history_newest):
            return max(len(numbers), highest)
    names = list(names)
    stated = set(settings)
    if (
        len(stated) == 1
        and highest <= (only := stated.pop())
        and all(coordinator_partition(one, only) == at for one, at in names)
    ):
        return only
    # A number fits all names where it divides each of these differences, and so what divides them all.
    divisor = gcd(*(coordinator_hash(one) - at for one, at in names))
    return highest if divisor and highest == len(set(present)) == divisor else Absent.UNKNOWN
