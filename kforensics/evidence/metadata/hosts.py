"""Hosts that brokers and controllers registered."""

from collections.abc import Iterator, Sequence

from kforensics.evidence.metadata.history import MetadataHistory


def listening_hosts(histories: Sequence[MetadataHistory]) -> Iterator[str]:
    """Yield the hosts where the brokers and controllers listen, as they registered.

    Args:
        histories: the metadata logs of several nodes; a host may be yielded for each.
    """
    for history in histories:
        points = {point for brokers in history.brokers.values() for one in brokers for point in one.end_points}
        points |= {point for group in history.controllers.values() for one in group for point in one.end_points}
        yield from {point.rpartition("//")[2].rpartition(":")[0].strip("[]") for point in points}
