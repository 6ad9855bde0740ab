"""Partitions that a checkpoint names and that have no directory, against what the metadata log says of them."""

from collections.abc import Sequence

from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.discovery.partition_dirs import LostDirectory


def unexplained(lost: Sequence[LostDirectory], inputs: Inputs) -> tuple[LostDirectory, ...]:
    """Return those that the newest metadata log among the inputs assigns to their broker, or never knew though it begins at 0; all of them where there is none.

    Args:
        inputs: whose metadata logs are read only where something is lost.
    """
    if not lost:
        return ()
    from kforensics.evidence.metadata.files import find_metadata_logs  # noqa: PLC0415 - 20 ms, where nothing is lost
    from kforensics.evidence.metadata.log import read_metadata_log  # noqa: PLC0415
    from kforensics.evidence.metadata.quorum import newest_log  # noqa: PLC0415

    newest = newest_log([read_metadata_log(files) for files in find_metadata_logs(inputs)])
    if newest is None:
        return tuple(lost)
    state = newest.latest()
    out = []
    for one in lost:
        known = state.partition(*one.topic_partition)
        is_unknown = not newest.start_offset and not newest.topics_named(one.topic_partition.topic)
        if is_unknown or (known is not None and one.broker_id in known.replicas):
            out.append(one)
    return tuple(out)
