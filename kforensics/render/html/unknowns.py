"""The open questions: truncations without a known cause, and records that may or may not have been committed."""

from kforensics.commands.explanation import Explanation
from kforensics.reconcile.history.causes import CauseName
from kforensics.units import METADATA_TOPICS
from kforensics.words import counted


def unknowns(result: Explanation) -> list[str]:
    """Return a sentence for each question that the inputs do not answer.

    Args:
        result: the incidents of the metadata log are left out.
    """
    incidents = [incident for incident in result.incidents if incident.partition.topic not in METADATA_TOPICS]
    losses = [loss for incident in incidents for loss in incident.losses]
    truncations = [truncation for incident in incidents for truncation in incident.truncations]
    open_losses = [loss for loss in losses if loss.was_committed == "possible"]
    sentences = []
    if open_losses:
        records = counted(sum(loss.records for loss in open_losses), "record")
        sentences.append(f"Whether {records} that the final leaders do not hold had been committed.")
    logged_only = [loss for loss in losses if not loss.held_by]
    if logged_only:
        sentences.append(
            f"The content of {counted(sum(loss.records for loss in logged_only), 'record')} that only log lines show: no copy is among the inputs."
        )
    causeless = [truncation for truncation in truncations if truncation.cause.name is CauseName.UNKNOWN]
    if causeless:
        names = ", ".join(sorted({str(truncation.topic_partition) for truncation in causeless})[:4])
        sentences.append(f"Why {counted(len(causeless), 'truncation')} happened ({names}).")
    unsure = [loss for loss in losses if loss.cause is CauseName.UNKNOWN]
    if unsure:
        names = ", ".join(sorted({str(loss.topic_partition) for loss in unsure})[:4])
        sentences.append(f"What took the records of {counted(len(unsure), 'run')} in the ledger ({names}).")
    return sentences
