"""Logs as the rules of the protocol see them."""

from itertools import pairwise

from kforensics.damage import Absent
from kforensics.protocol.epochs import Epochs
from kforensics.protocol.truncation import LogState
from kforensics.units import EpochEntry


def log_state(*entries, end, start=0, high_watermark=Absent.NOT_WRITTEN):
    """A log of these leader epochs, each with its first offset."""
    epochs = tuple(EpochEntry(*entry) for entry in entries)
    return LogState(epochs=epochs, log_start_offset=start, log_end_offset=end, high_watermark=high_watermark)


def are_rising(epochs: Epochs) -> bool:
    """Whether epochs and start offsets both rise strictly, as they do in every file written by 2.0.1 or later."""
    return all(
        first.leader_epoch < second.leader_epoch and first.start_offset < second.start_offset
        for first, second in pairwise(epochs)
    )
