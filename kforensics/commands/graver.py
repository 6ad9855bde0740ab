"""What the replicas of the partitions come to that a command is asked about: the comparison of `diff --depth tails`, which is quick at any size."""

from collections.abc import Collection

from kforensics.case.model import Case, now_of, places_of
from kforensics.case.wanted import is_wanted
from kforensics.commands.result import Conclusion
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.discovery.inputs import belonging_together
from kforensics.findings.answers.graver import Graver, may_be_calmer, with_graver
from kforensics.findings.answers.model import exit_code
from kforensics.units import Depth, TopicPartition


def no_calmer(command: str, found: Conclusion, case: Case, topics: Collection[str] | None = None) -> Conclusion:
    """Return the conclusion of a command, no calmer than the replicas of what it is about.

    Args:
        command: a key of `STATES`.
        topics: that it is about; none for those that are asked about.
    """
    if case.is_weighed or not may_be_calmer(found.answer):
        return found
    code = exit_code(command, found.answer, found.findings, found.problems)
    return found._replace(answer=with_graver(found.answer, graver_of(case, topics), code=code))


def graver_of(case: Case, topics: Collection[str] | None = None) -> Graver | None:
    """Return how the replicas compare of the partitions that are asked about; None where no partition has two replicas here, or they can't be compared.

    Args:
        topics: other ones than those that are asked about.
    """
    now = now_of(case)
    brokers = {one.broker_id for one in now.inputs.described if not isinstance(one.broker_id, Absent)}
    if len(brokers) < 2:
        return None
    asked = now.asking(
        topics=case.ask.topics if topics is None else frozenset(topics),
        partitions=case.ask.partitions if topics is None else frozenset(),
        depth=Depth.TAILS,
    )
    if not any(_has_replicas(partition, asked) for partition in places_of(asked).by_partition):
        return None
    from kforensics.commands.diff import compare  # noqa: PLC0415 - where there are several replicas

    try:
        belonging_together(now.inputs, cluster=case.ask.cluster, is_of_one_moment=True)
        compared = compare(asked)
    except (EvidenceError, UsageError):
        return None
    return Graver(
        answer=compared.answer,
        arguments=(*map(str, case.ask.paths), *(f"--topic={one}" for one in sorted(asked.ask.topics))),
    )


def _has_replicas(partition: TopicPartition, asked: Case) -> bool:
    group = places_of(asked).by_partition[partition]
    return (
        is_wanted(partition, asked.ask)
        and len({one.state.broker_id for one in group if one.directory_state == "live"}) > 1
    )
