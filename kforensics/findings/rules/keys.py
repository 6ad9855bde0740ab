"""Where the records of a key are, against where producers put them."""

from collections.abc import Iterator, Mapping, Sequence

from kforensics.evidence.model import Citation
from kforensics.findings.model import Finding, Weight
from kforensics.findings.rule import Rule
from kforensics.protocol.coordinators import Placement
from kforensics.reconcile.trace.model import TracedCopy
from kforensics.units import TopicPartition
from kforensics.words import counted, form

KEY_ELSEWHERE = Rule(
    "KF310",
    Weight.NOTE,
    title="a key in a partition that the producer chose itself",
    meaning="Clients choose the partition of a key by its hash and by the number of partitions of that time. The producer named the partition, has a partitioner of its own, or wrote before partitions were added.",
    advice="Look for other records of the key in all partitions; their order across partitions is not that of their offsets.",
)


def misplaced_keys(
    found: Mapping[TopicPartition, int],
    copies: Mapping[TopicPartition, Sequence[TracedCopy]],
    placement: Placement | None,
) -> Iterator[Finding]:
    """Yield partitions in which no default partitioner puts the key."""
    if placement is None or not placement.is_recorded:
        return  # how many partitions there are decides; the highest one given is only a lower bound
    for partition, held in copies.items():
        if partition.partition not in {placement.murmur2, placement.crc32}:
            many, records = counted(placement.partitions, "partition"), counted(found[partition], "record")
            yield KEY_ELSEWHERE.states(
                f"{records} of the key {form(found[partition], 'is', 'are')} in {partition}: the producer chose the partition itself; of {many} the Java client takes {placement.murmur2}, librdkafka {placement.crc32}",
                topic_partition=partition,
                citations=tuple(Citation(input=copy.input, path=copy.path) for copy in held[:1]),
            )
