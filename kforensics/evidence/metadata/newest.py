"""The metadata log that is ahead of the others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory


def newest_log(histories: "Sequence[MetadataHistory]") -> "MetadataHistory | None":
    """Return the log that a new controller would have to hold: highest last epoch, then the longest; a voter's before a copy.

    Args:
        histories: the metadata logs of several nodes; without any there is none.
    """
    return max(histories, key=lambda one: (one.last_epoch, one.end_offset, one.is_of_voter), default=None)
