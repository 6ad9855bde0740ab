"""Files that an interrupted deletion, cleaning or split has left (`LogLoader.removeTempFilesAndCollectSwapFiles` and the passes behind it, 3.3 to 4.4)."""

from kforensics.protocol.loading.disk import Disk
from kforensics.protocol.loading.names import (
    CLEANED,
    DELETED,
    INDEX,
    INDEXES,
    LOG,
    QUORUM_SNAPSHOT_DELETED,
    SWAP,
    offset_of,
    padded,
)
from kforensics.protocol.loading.segments import Segment
from kforensics.protocol.loading.values import LoadingError, LoadSettings, NotModelledError
from kforensics.protocol.loading.versions import LoadingRules


def put_right(disk: Disk, settings: LoadSettings, rules: LoadingRules) -> list[str]:
    """Delete what is left of deletions and cleanings, and put swapped files in place (KAFKA-6264, KAFKA-12520).

    Where the name of a `.cleaned` file holds no number, loading ends there; which `.deleted` files it has removed by then depends on the order in which
    the file system lists them. Here it is by name.

    Args:
        disk: the partition directory, which is changed.

    Returns:
        Logs that are still to be swapped in once the segments are loaded (before 3.0).

    Raises:
        LoadingError: what Kafka throws, as at a name that holds no number.
        NeedError: a segment that is to be swapped in has to be read, and was not given yet.
    """
    if not rules.renames_swaps:
        return _collect_swaps(disk, rules)
    swapped = _remove_temporary(disk, rules)
    bounds: list[tuple[int, int]] = []
    for name in swapped:
        if name.removesuffix(SWAP).endswith(LOG):
            segment = Segment(disk, offset_of(name), settings, rules, suffix=SWAP)
            bounds.append((segment.base_offset, segment.next_offset()))
    if bounds:
        lowest, end = min(base for base, _ in bounds), max(after for _, after in bounds)
        for name in disk.names():
            offset = None if name.endswith(SWAP) else _offset_or_none(name)
            if offset is not None and lowest <= offset < end:
                disk.delete(name, "replaced-by-swap")
    for name in disk.names():
        if name.endswith(SWAP):
            disk.rename(name, name.removesuffix(SWAP), "swap-completed")
    return []


def _collect_swaps(disk: Disk, rules: LoadingRules) -> list[str]:
    """Collect the swapped logs as Kafka before 3.0 does: their indexes are deleted, the logs are returned for later."""
    cleaned: list[str] = []
    swapped: list[str] = []
    lowest: int | None = None
    swapped_indexes: tuple[str, ...] = INDEXES if rules.removes_swapped_indexes else ()
    if not rules.knows_magic_2:
        swapped_indexes = (INDEX,)
    for name in disk.names():
        if name not in disk.files:
            continue
        if name.endswith(DELETED):
            disk.delete(name, "deleted-suffix")
        elif name.endswith(CLEANED) and rules.completes_every_swap:
            disk.delete(name, "cleaning-not-finished")
        elif name.endswith(CLEANED):
            offset = offset_of(name)
            lowest = offset if lowest is None else min(lowest, offset)
            cleaned.append(name)
        elif name.endswith(SWAP) and name.removesuffix(SWAP).endswith(swapped_indexes):
            disk.delete(name, "deleted-suffix")
        elif name.endswith(SWAP) and name.removesuffix(SWAP).endswith((LOG, *INDEXES) if rules.knows_magic_2 else LOG):
            _delete_indexes(disk, offset_of(name), "", INDEXES if rules.knows_magic_2 else (INDEX,))
            if name.removesuffix(SWAP).endswith(LOG):
                swapped.append(name)
    invalid = [name for name in swapped if lowest is not None and offset_of(name) >= lowest]
    for name in invalid:
        _delete_indexes(disk, offset_of(name), SWAP)
        disk.delete(name, "cleaning-not-finished")
    for name in cleaned:
        disk.delete(name, "cleaning-not-finished")
    left = [name for name in swapped if name not in invalid]
    if len(left) > 1:
        raise NotModelledError("several segments to be swapped in, which is done in the order of the file system")
    return left


def _delete_indexes(disk: Disk, offset: int, suffix: str, endings: tuple[str, ...] = INDEXES) -> None:
    for ending in endings:
        name = f"{padded(offset)}{ending}{suffix}"
        if name in disk.files:
            disk.delete(name, "index-beside-swap" if not suffix else "cleaning-not-finished")
        elif disk.exists(name):
            raise NotModelledError(f"{name} is a directory, which is deleted where it is empty")


def _remove_temporary(disk: Disk, rules: LoadingRules) -> list[str]:
    cleaned: list[str] = []
    swapped: list[str] = []
    lowest: int | None = None
    for name in disk.names():
        is_kept = name.endswith(QUORUM_SNAPSHOT_DELETED) and rules.keeps_deleted_quorum_snapshots
        if name.endswith(DELETED) and not is_kept:
            disk.delete(name, "deleted-suffix")
        elif name.endswith(CLEANED):
            offset = offset_of(name)
            lowest = offset if lowest is None else min(lowest, offset)
            cleaned.append(name)
        elif name.endswith(SWAP):
            swapped.append(name)
    invalid = [name for name in swapped if lowest is not None and offset_of(name) >= lowest]
    for name in swapped:
        offset_of(name)
    for name in (*invalid, *cleaned):
        disk.delete(name, "cleaning-not-finished")
    return [name for name in swapped if name not in invalid]


def _offset_or_none(name: str) -> int | None:
    if "." not in name:
        return None
    try:
        return offset_of(name)
    except LoadingError:
        return None
