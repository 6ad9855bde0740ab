"""What stays open after all evidence: cuts without a cause, and records of which nothing tells whether they were committed."""

from kforensics.commands.explain import Explanation
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.observed.logged_truncations import METADATA_TOPICS
from kforensics.render.text.screen import counted


def unknowns(result: Explanation) -> list[str]:
    """A sentence for each question that the inputs do not answer."""
    stories = [story for story in result.stories if story.partition.topic not in METADATA_TOPICS]
    losses = [loss for story in stories for loss in story.losses]
    cuts = [cut for story in stories for cut in story.truncations]
    open_losses = [loss for loss in losses if loss.was_committed == "possible"]
    sentences = []
    if open_losses:
        records = counted(sum(loss.records for loss in open_losses), "record")
        sentences.append(f"Whether {records} that the final leaders do not hold had been committed.")
    unseen = [loss for loss in losses if not loss.held_by]
    if unseen:
        sentences.append(
            f"What {counted(sum(loss.records for loss in unseen), 'record')} said that only log lines tell of: no copy is among the inputs."
        )
    causeless = [cut for cut in cuts if cut.cause.name is CauseName.UNKNOWN]
    if causeless:
        names = ", ".join(sorted({str(cut.topic_partition) for cut in causeless})[:4])
        sentences.append(f"Why {counted(len(causeless), 'truncation')} happened ({names}).")
    unsure = [loss for loss in losses if loss.cause is CauseName.UNKNOWN]
    if unsure:
        names = ", ".join(sorted({str(loss.topic_partition) for loss in unsure})[:4])
        sentences.append(f"What took the records of {counted(len(unsure), 'run')} in the ledger ({names}).")
    return sentences
