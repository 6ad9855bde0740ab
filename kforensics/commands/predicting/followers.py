"""What followers discard once the nodes have started: the comparison of their replicas, as `diff --depth tails` makes it."""

from collections.abc import Sequence

from kforensics.ask.model import Ask
from kforensics.commands.predicting.nodes import Node
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, UsageError
from kforensics.findings.answers.predict_cluster import ComparedReplicas
from kforensics.units import Depth


def compare_followers(request: Ask, nodes: Sequence[Node], *, jobs: int) -> ComparedReplicas | None:
    """Return how the replicas of several nodes compare; None where one node is given, one at several moments, or a state that is on no disk.

    Args:
        request: what `predict` is asked.
    """
    ids = [node.node_id for node in nodes]
    if request.without or len(ids) < 2 or len(set(ids)) < len(ids) or any(isinstance(one, Absent) for one in ids):
        return None
    from kforensics.commands.diff import run  # noqa: PLC0415 - for several nodes alone

    asked = Ask(
        paths=request.paths,
        topics=request.topics,
        partitions=request.partitions,
        keep_going=request.keep_going,
        jobs=jobs,
        depth=Depth.TAILS,
    )
    try:
        compared = run(asked, keep_quiet=False).body
    except (EvidenceError, UsageError):
        return None
    return ComparedReplicas(
        answer=compared.answer,
        open_kinds=frozenset(
            concern.kind
            for one in compared.partitions
            for concern in one.judged.concerns
            if concern.state is compared.answer.state
        ),
        paths=tuple(map(str, request.paths)),
    )
