"""Feature levels of a cluster that are newer than known: what its brokers do by them is not known."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kforensics.errors import newer_than_known
from kforensics.protocol.versions import NEWEST_FEATURE_LEVELS

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory
    from kforensics.evidence.metadata.state import FeatureChange


def newer_features(history: "MetadataHistory") -> "Iterator[tuple[FeatureChange, str]]":
    """Yield the levels in force that are newer than known, each with that in words."""
    for name, change in {change.name: change for change in history.features}.items():
        newest = NEWEST_FEATURE_LEVELS.get(name, 0)
        if change.level > newest:
            yield change, newer_than_known(name, change.level, newest)
