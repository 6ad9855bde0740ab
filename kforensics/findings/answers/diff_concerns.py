"""The concerns of the partitions that were compared, as the sentences of an answer need them: by kind, and by whom they are about."""

from collections.abc import Collection, Iterable, Sequence

from kforensics.findings.answers.model import State
from kforensics.findings.answers.partition_state import OTHER_DISKS, Concern, ConcernKind, JudgedPartition
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import counted, joined_by_and

Item = tuple[TopicPartition, Concern]

MOST_NAMED = 5


class Concerns:
    """What gives reason for concern in some partitions, by state and kind.

    Args:
        among: the number of all partitions that were compared.
        not_starting: brokers that do not start as they are.
    """

    def __init__(
        self,
        judged: Sequence[JudgedPartition],
        state: State,
        *,
        among: int,
        not_starting: Collection[int] = (),
    ) -> None:
        self.judged = judged
        self.state = state
        self.not_starting = frozenset(f"broker {broker}" for broker in not_starting)
        self.among = counted(among, "partition")
        self.count = among
        self.is_metadata_alone = among == sum(one.partition.topic in METADATA_TOPICS for one in judged)
        self.by_kind: dict[tuple[State, ConcernKind], list[Item]] = {}
        for one in judged:
            for concern in one.concerns:
                self.by_kind.setdefault((concern.state, concern.kind), []).append((one.partition, concern))

    def of(self, kind: ConcernKind, *states: State) -> list[Item]:
        """Return the concerns of a kind, in some states or in that of the whole.

        Args:
            states: any; that of the whole where none is named.
        """
        return [item for state in states or (self.state,) for item in self.by_kind.get((state, kind), ())]

    def agreeing(self) -> int:
        """Return the number of partitions whose assigned replicas are all given and agree, content compared."""
        listed = [one for one in self.judged if not one.is_deleted]
        return self.count - len(listed) + sum(one.state is State.AGREE for one in listed)

    def by_owners(self, items: Sequence[Item]) -> list[tuple[str, list[Item]]]:
        """Return the concerns by whom they are about, those with most committed records first."""
        groups: dict[str, list[Item]] = {}
        for item in items:
            groups.setdefault(joined_by_and(item[1].owners), []).append(item)
        return sorted(
            groups.items(), key=lambda group: (-sum_of(group[1], "certain"), -sum_of(group[1], "possible"), group)
        )

    def waiting(self) -> frozenset[str]:
        """Return the owners that are not to start first: what they hold, or others do, could be discarded then."""
        risky = [State.AT_RISK, State.MAYBE_AT_RISK]
        # Where another one is known to lead, to start first makes it discard what it holds.
        follows = [item for item in self.of(ConcernKind.DISCARD, *risky) if not item[1].guess]
        waiting = owners_of(follows + self.of(ConcernKind.EMPTIED, *risky) + self.of(ConcernKind.ELECTED, *risky))
        # One that may lack the end of its log makes those that hold it truncate, once it leads.
        unsure = self.of(ConcernKind.TAIL, *risky) + [
            item for item in self.of(ConcernKind.DISCARD, *risky) if item[1].guess
        ]
        waiting |= {one.leader for _, one in unsure if one.leader and one.leader not in one.owners}
        # A log directory that is not given may be empty, and what it should hold is led by its broker then.
        missing = owners_of(self.of(ConcernKind.MISSING, State.UNKNOWN))
        return waiting | {owner.removeprefix(OTHER_DISKS) for owner in missing if owner.startswith(OTHER_DISKS)}


def owners_of(items: Sequence[Item]) -> frozenset[str]:
    """Return whom concerns are about."""
    return frozenset(owner for _, one in items for owner in one.owners)


def sum_of(items: Sequence[Item], name: str) -> int:
    """Return the sum of a number of records over concerns."""
    return sum(getattr(one, name) for _, one in items)


def records_of(certain: int, possible: int) -> str:
    """Return how many records are committed, and how many may be.

    Args:
        possible: that of others that may have been committed.
    """
    if certain and possible:
        return f"{counted(certain, 'committed record')} and {possible:,} that may have been committed"
    if certain:
        return counted(certain, "committed record")
    return f"{counted(possible, 'record')} that may have been committed"


def partitions_of(items: Sequence[Item]) -> str:
    """Return how many partitions concerns are about."""
    return counted(len({partition for partition, _ in items}), "partition")


def names_of(items: Sequence[Item]) -> str:
    """Return the partitions that concerns are about, the first ones by name."""
    return first_ones(dict.fromkeys(str(partition) for partition, _ in items))


def topics_of(items: Sequence[Item]) -> str:
    """Return the topics that concerns are about, the first ones by name."""
    return first_ones(dict.fromkeys(partition.topic for partition, _ in items), " topics")


def first_ones(names: Iterable[str], others: str = "") -> str:
    """Return the first of some names, and how many others there are.

    Args:
        names: in their order.
        others: what follows the number of the others.
    """
    each = list(names)
    more = f" and {len(each) - MOST_NAMED} more{others}" if len(each) > MOST_NAMED else ""
    return ", ".join(each[:MOST_NAMED]) + more
