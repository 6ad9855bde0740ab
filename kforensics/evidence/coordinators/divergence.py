"""Where two copies of a log begin to differ, by their batches."""

import numpy as np

from kforensics.evidence.coordinators.replica_log import ReplicaLog
from kforensics.formats.log.batch_table import BatchTable

_COLUMNS = ["base_offset", "last_offset", "partition_leader_epoch", "crc", "max_timestamp"]


def batch_outline(log: ReplicaLog, *, deleted: bool = False, from_offset: int = 0) -> BatchTable:
    """Return offset, leader epoch, checksum and time of every sound batch of a log.

    Args:
        deleted: of the segments renamed `.deleted` in place of the log.
        from_offset: batches that end below are left out.
    """
    parts = [
        rows[rows["last_offset"] >= from_offset][_COLUMNS].copy()
        for _, rows, _ in log.batches(log.deleted if deleted else log.segments)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=[(name, "<i8") for name in _COLUMNS])


def first_difference(log: BatchTable, copy: BatchTable, *, from_offset: int) -> int | None:
    """Return the first offset of a copy whose batch is not in the log, none where the log holds all of it.

    Args:
        log: the batches of the log, as `batch_outline` gives them.
        from_offset: a cleaner passed over the batches below in one of them, so that they need not be the same.
    """
    theirs = copy[copy["base_offset"] >= from_offset]
    if not len(theirs):
        return None
    if not len(log):
        return int(theirs["base_offset"][0])
    own = log[np.argsort(log["base_offset"], kind="stable")]
    at = np.minimum(np.searchsorted(own["base_offset"], theirs["base_offset"]), len(own) - 1)
    is_held = (own["base_offset"][at] == theirs["base_offset"]) & (own["crc"][at] == theirs["crc"])
    missing = np.flatnonzero(~is_held)
    return int(theirs["base_offset"][missing[0]]) if len(missing) else None
