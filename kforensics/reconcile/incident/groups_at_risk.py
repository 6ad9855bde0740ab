"""Consumer groups whose committed offset refers to lost records."""

from collections.abc import Sequence

from kforensics.reconcile.incident.model import GroupAtRisk, LossEntry
from kforensics.reconcile.observed.facts import GroupCommit


def groups_at_risk(
    commits: Sequence[GroupCommit],
    losses: Sequence[LossEntry],
    *,
    log_end: int,
    earlier: Sequence[GroupCommit] = (),
) -> list[GroupAtRisk]:
    """Return the groups whose newest commit lies past the end of the leader's log or inside of offsets that hold other records now, or that committed later ones before.

    Args:
        commits: out of the consumer offsets as they are now.
        earlier: commits that any input shows, those of earlier snapshots among them.
    """
    newest: dict[str, GroupCommit] = {}
    for commit in commits:
        known = newest.get(commit.group)
        if known is None or _time(commit) >= _time(known):
            newest[commit.group] = commit
    out = []
    for commit in newest.values():
        inside = any(
            loss.is_replaced
            and loss.offsets.first < commit.offset <= loss.offsets.last + 1
            and commit.leader_epoch == loss.leader_epoch
            for loss in losses
        )
        if commit.offset > log_end or inside:
            kind = "ahead" if commit.offset > log_end else "replaced"
            out.append(GroupAtRisk(group=commit.group, offset=commit.offset, kind=kind, citation=commit.citation))
            continue
        later = [one for one in earlier if one.group == commit.group and _time(one) > _time(commit) > 0]
        furthest = max(later, key=lambda one: one.offset, default=None)
        if furthest is not None and furthest.offset > commit.offset:
            out.append(
                GroupAtRisk(
                    group=commit.group,
                    offset=commit.offset,
                    kind="set-back",
                    citation=commit.citation,
                    was_at=furthest.offset,
                )
            )
    return sorted(out, key=lambda one: one.group)


def _time(commit: GroupCommit) -> int:
    return commit.time_ms if isinstance(commit.time_ms, int) else 0
