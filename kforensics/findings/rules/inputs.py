"""What is true of the inputs as a whole: their clusters, nodes that are given twice, and brokers that do not start as they are."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, Inputs
from kforensics.evidence.model import Citation
from kforensics.findings.model import Confidence, Finding, Weight
from kforensics.findings.rule import Rule
from kforensics.findings.rules.replicas import OF_TRUNCATIONS

SEVERAL_CLUSTERS = Rule(
    "KF507",
    Weight.DAMAGE,
    title="the inputs belong to several clusters",
    meaning="Partitions of the same name in different clusters have nothing to do with each other.",
    advice="Give the directories of one cluster at a time.",
)

NODE_GIVEN_TWICE = Rule(
    "KF508",
    Weight.DAMAGE,
    title="one node is given more than once",
    meaning="Two states of one node, or a restored volume under a wrong id: they are not two replicas.",
    advice="Give one state of each node; earlier states belong to `explain --before`.",
)


def identity_findings(inputs: Inputs, in_parts: Collection[int] = ()) -> Iterator[Finding]:
    """Yield contradictions among the inputs as a whole: several clusters, or one node given twice."""
    clusters = sorted({str(i.cluster_id) for i in inputs.described if not isinstance(i.cluster_id, Absent)})
    if len(clusters) > 1:
        yield SEVERAL_CLUSTERS.states(
            f"the inputs belong to {len(clusters)} clusters: {', '.join(clusters)}",
        )
    seen: dict[int, list[str]] = {}
    for one in inputs.found:
        if one.log_dirs and isinstance(one.described.broker_id, int):
            seen.setdefault(one.described.broker_id, []).append(one.described.path)
    for node_id, places in sorted(seen.items()):
        if len(places) > 1 and node_id not in in_parts:
            yield NODE_GIVEN_TWICE.states(
                f"node {node_id} is given {len(places)} times, as it was at different times or under a wrong id: {', '.join(sorted(places))}",
                broker_id=node_id,
            )


REFUSED_START = Rule(
    "KF219",
    Weight.DAMAGE,
    title="a broker that does not start as it is",
    meaning="A file of its log directories is one that Kafka refuses. Until that is mended its logs are neither served nor truncated, and it is no replica that others can follow.",
    advice="See `kforensics predict` for what each start does, and `kforensics predict --ways-out` for what to change. Copy the directories before anything is changed or started.",
)


class RefusedStart(NamedTuple):
    """A broker that does not start as it is, or takes a log directory offline."""

    broker_id: int
    input: int
    path: str
    """The directory whose load fails; empty where none does."""
    exception: str
    reason: str
    is_whole: bool
    """It does not start at all."""
    kafka: str
    """The version that is started."""

    @property
    def words(self) -> str:
        """What becomes of its start, as a sentence without its end."""
        does = "does not start as it is" if self.is_whole else "starts without one of its log directories"
        where = f"{self.path}: " if self.path else ""
        return f"broker {self.broker_id} {does} (Kafka {self.kafka}, {self.exception}: {where}{self.reason.strip().rstrip(':.')})"


def with_refused_starts(findings: Iterable[Finding], refused: Sequence[RefusedStart]) -> Iterator[Finding]:
    """Yield findings, of which none promises the truncation of a broker that does not start, and those refusals."""
    whole = {one.broker_id for one in refused if one.is_whole}
    for item in findings:
        if item.code in OF_TRUNCATIONS and item.broker_id in whole:
            yield replace(item, statement=f"{item.statement}; once the broker starts, which it does not as it is")
        else:
            yield item
    for one in refused:
        yield REFUSED_START.states(
            confidence=Confidence.LIKELY,
            statement=one.words,
            broker_id=one.broker_id,
            citations=(Citation(input=one.input, path=one.path or WHOLE_INPUT),),
        )
