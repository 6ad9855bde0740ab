"""What was asked for: which partitions are wanted, and names that are nowhere in the inputs, since an answer about the rest is no answer about them."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Protocol

from kforensics.damage import Absent
from kforensics.errors import UsageError, did_you_mean, nearest_names
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.units import TopicPartition

MOST_LISTED = 8
"""Names that are listed where none is like the one that was asked for."""


class Filters(Protocol):
    """The topics and the numbers of partitions that were asked for; all where there are none."""

    @property
    def topics(self) -> frozenset[str]:
        """The names of topics."""

    @property
    def partitions(self) -> frozenset[int]:
        """The numbers of partitions."""


def is_wanted(partition: TopicPartition, filters: Filters) -> bool:
    """Whether the filters ask for the partition: without topics all are asked for, without numbers all of these topics."""
    if filters.topics and partition.topic not in filters.topics:
        return False
    return not filters.partitions or partition.partition in filters.partitions


def wanted_of(filters: Filters, inputs: Inputs) -> Callable[[TopicPartition], bool] | None:
    """Return the filters as a question about a partition; none where nothing is asked for.

    Raises:
        UsageError: no directory is of what is asked for.
    """
    if not filters.topics and not filters.partitions:
        return None
    check_wanted(filters, find_places(inputs).by_partition)
    return partial(is_wanted, filters=filters)


def check_wanted(
    filters: Filters,
    named: Iterable[TopicPartition],
    *,
    leader: int | None = None,
    known_brokers: Collection[int | Absent] = (),
) -> None:
    """Refuse filters that match nothing.

    Raises:
        UsageError: a topic, a partition or the leader is not there; it names the nearest that are.
    """
    every = tuple(named) if filters.topics or filters.partitions else ()
    missing = missing_filters(
        filters,
        known_topics={one.topic for one in every},
        known_partitions={one.partition for one in every if not filters.topics or one.topic in filters.topics},
        leader=leader,
        known_brokers=known_brokers,
    )
    for words in missing:
        raise UsageError(words)


def missing_filters(
    filters: Filters,
    *,
    known_topics: Collection[str],
    known_partitions: Collection[int],
    leader: int | None,
    known_brokers: Collection[int | Absent],
) -> Iterator[str]:
    """Yield a sentence for each filter that matches nothing, with the nearest names."""
    for topic in sorted(filters.topics - set(known_topics)):
        yield _with_nearest(f"no partition of topic {topic} is among the inputs (--topic)", topic, known_topics)
    for number in sorted(filters.partitions - set(known_partitions)):
        words = f"no partition {number} of the wanted topics is among the inputs (--partition)"
        yield _with_nearest(words, str(number), map(str, known_partitions))
    if leader is not None and leader not in known_brokers:
        words = f"broker {leader} holds no wanted partition among the inputs (--leader)"
        brokers = [str(one) for one in known_brokers if not isinstance(one, Absent)]
        yield _with_nearest(words, str(leader), brokers)


def not_there(words: str, wanted: str, known: Iterable[str]) -> UsageError:
    """Return the error about a name that nothing has, with the nearest names."""
    return UsageError(_with_nearest(words, wanted, known))


def _with_nearest(words: str, wanted: str, known: Iterable[str]) -> str:
    names = sorted(set(known), key=lambda one: (len(one) if one.isdecimal() else 0, one))
    hint = did_you_mean(() if wanted.isdecimal() else nearest_names(wanted, names))
    if not hint and names:
        more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
        hint = f"there is {', '.join(names[:MOST_LISTED])}{more}"
    return f"{words}; {hint}" if hint else words
