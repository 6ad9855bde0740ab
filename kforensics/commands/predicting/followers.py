"""What followers discard once the nodes have started: the comparison of their replicas, as `diff --depth tails` makes it."""

from collections.abc import Collection, Sequence
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.commands.predicting.nodes import Node
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, UsageError
from kforensics.findings.answers.predict_cluster import ComparedReplicas
from kforensics.units import Depth


def compare_followers(
    paths: Sequence[Path],
    nodes: Sequence[Node],
    *,
    topics: frozenset[str],
    partitions: frozenset[int],
    without: Collection[Path],
    keep_going: bool,
    jobs: int,
) -> ComparedReplicas | None:
    """Return how the replicas of several nodes compare; None where one node is given, one at several moments, or a state that is on no disk.

    Args:
        paths: as they were named.
        nodes: that are started.
        topics: that were asked for; all where empty.
        partitions: that were asked for; all where empty.
        without: what is taken as not there.
        keep_going: a path that can't be used is left out.
        jobs: the most processes to use.
    """
    ids = [node.node_id for node in nodes]
    if without or len(ids) < 2 or len(set(ids)) < len(ids) or any(isinstance(one, Absent) for one in ids):
        return None
    from kforensics.commands.diff import run  # noqa: PLC0415 - for several nodes alone

    request = Ask(
        paths=tuple(paths),
        topics=topics,
        partitions=partitions,
        keep_going=keep_going,
        jobs=jobs,
        depth=Depth.TAILS,
    )
    try:
        compared = run(request, keep_quiet=False).body
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
        paths=tuple(map(str, paths)),
    )
