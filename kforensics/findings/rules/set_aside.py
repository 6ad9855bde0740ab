"""What is said of directories that brokers set aside because the metadata that they follow never named them."""

from collections.abc import Iterator, Sequence

from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.model import Holder, LossEntry
from kforensics.units import METADATA_TOPIC
from kforensics.words import counted, joined_by_and


def set_aside_words(losses: Sequence[LossEntry], named_at: tuple[str, int] | None) -> str:
    """Return who set directories aside of topics that the metadata never named, and where metadata is that names them; empty where none did.

    Args:
        named_at: path and end of the metadata log of the inputs that names them, None where none does.
    """
    holders = _set_aside(losses)
    if not holders:
        return ""
    owners = joined_by_and(dict.fromkeys(one.owner for one in holders))
    count = len({(one.input, one.path) for one in holders})
    where = (
        "No input holds metadata that names them."
        if named_at is None
        else f"Metadata that names them is at {named_at[0]}, up to offset {named_at[1] - 1}."
    )
    return f"{owners[0].upper()}{owners[1:]} set {counted(count, 'directory', 'directories')} aside. {where}"


def set_aside_steps(losses: Sequence[LossEntry], named_at: tuple[str, int] | None) -> Iterator[str]:
    """Yield how metadata can be brought back that names directories that were set aside."""
    if not _set_aside(losses):
        return
    if named_at is None:
        yield (
            f"Look for metadata that names these topics: {METADATA_TOPIC}-0 of a broker that was not started since, a former disk of a controller, a backup."
            " Without it no broker serves these directories: `kforensics salvage --what lost` takes the records out."
        )
        return
    yield (
        f"To bring the topics back, on copies of all disks: stop every node, give each controller {named_at[0]} as {METADATA_TOPIC}-0, without quorum-state,"
        f" and move {METADATA_TOPIC}-0 of each broker aside."
    )
    yield (
        "Then rename each directory back to TOPIC-PARTITION, one of each partition on a broker, and start the controllers first. Kafka has no tool for it and does not support it;"
        " what the metadata took up since is forgotten."
    )


def _set_aside(losses: Sequence[LossEntry]) -> list[Holder]:
    return [
        holder
        for loss in losses
        if loss.cause is CauseName.METADATA_SET_BACK
        for holder in loss.held_by
        if holder.is_stray or holder.is_vanishing
    ]
