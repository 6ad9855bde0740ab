"""What the replicas of the partitions come to that a command is asked about: the comparison of `diff --depth tails`, which is quick at any size."""

from collections.abc import Collection

from kforensics.case.model import Case, fact_of_question, now_of, places_of
from kforensics.case.wanted import is_wanted
from kforensics.commands.result import Conclusion
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.discovery.inputs import belonging_together
from kforensics.findings.answers.graver import Graver, may_be_calmer, with_graver
from kforensics.findings.answers.model import exit_code
from kforensics.units import Depth


def no_calmer(command: str, found: Conclusion, case: Case, topics: Collection[str] | None = None) -> Conclusion:
    """Return the conclusion of a command, no calmer than the replicas of what it is about.

    Args:
        topics: that it is about; none for those that are asked about.
    """
    if case.is_weighed or not may_be_calmer(found.answer):
        return found
    code = exit_code(command, found.answer, found.findings, found.problems)
    return found._replace(answer=with_graver(found.answer, graver_of(case, topics), code=code))


def graver_of(case: Case, topics: Collection[str] | None = None) -> Graver | None:
    """Return how the replicas compare of the partitions that are asked about; None where no partition has two replicas here, or they can't be compared."""
    if topics is not None:
        case = case.asking(topics=frozenset(topics), partitions=frozenset())
    asked = by_ends_of(case)
    if asked is None:
        return None
    from kforensics.case.comparison import results_of  # noqa: PLC0415 - where there are several replicas
    from kforensics.commands.diff import compare  # noqa: PLC0415

    try:
        compared = compare(asked, found=results_of(asked))
    except (EvidenceError, UsageError):
        return None
    return Graver(
        answer=compared.answer,
        arguments=(*map(str, case.ask.paths), *(f"--topic={one}" for one in sorted(asked.ask.topics))),
    )


@fact_of_question
def by_ends_of(case: Case) -> Case | None:
    """Return the case that compares the ends of the replicas, as they are now, of what a case is asked about; None where none has another here, or they can't be compared."""
    now = now_of(case)
    brokers = {one.broker_id for one in now.inputs.described if not isinstance(one.broker_id, Absent)}
    if len(brokers) < 2:
        return None
    asked = now.asking(topics=case.ask.topics, partitions=case.ask.partitions, depth=Depth.TAILS)
    if not any(
        is_wanted(partition, asked.ask)
        and len({one.state.broker_id for one in group if one.directory_state == "live"}) > 1
        for partition, group in places_of(asked).by_partition.items()
    ):
        return None
    try:
        belonging_together(now.inputs, cluster=case.ask.cluster, is_of_one_moment=True)
    except (EvidenceError, UsageError):
        return None
    return asked
