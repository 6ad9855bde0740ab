"""What is known of log directories of a node beside those that were given to `predict`."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.words import form


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingDirectories:
    """What is known of log directories of a node beside those that were given."""

    node_id: int | Absent
    missing: Collection[str] = ()
    """Ids that it registered last and that none of its log directories has."""
    new: Collection[str] = ()
    """Ids of its log directories that it did not register."""
    configured: Collection[str] = ()
    """Directories that its `server.properties` names and that are not here."""
    empty: Collection[str] = ()
    """Folders beside its log directories that hold nothing."""
    blank: Collection[str] = ()
    """Log directories of it that hold nothing."""
    formats_blank: bool = True
    """Whether a start makes log directories of empty directories, as a broker with ZooKeeper does."""

    @property
    def is_grave(self) -> bool:
        """Whether the start may come to something else for it: a disk not mounted, or exchanged."""
        return bool(self.empty or (self.missing and self.new))

    def words(self) -> Iterator[str]:
        """Yield what is to be said of it."""
        if self.empty:
            yield (
                f"Next to the log directories of node {self.node_id} there is an empty folder ({', '.join(self.empty)}): if log.dirs names it, a disk is not "
                "mounted. A node without ZooKeeper does not start then; a broker with ZooKeeper creates empty replicas on it."
            )
        if self.blank:
            yield self._words_of_blank()
        if self.configured:
            yield (
                f"server.properties names log directories that are not known to be among those of node {self.node_id} here ({', '.join(self.configured)}): a start reads their "
                "meta.properties and logs too, and may fail on them. Give them."
            )
        if self.missing:
            count = len(self.missing)
            yield (
                f"Node {self.node_id} registered {form(count, 'a log directory', f'{count} log directories')} "
                f"({', '.join(sorted(self.missing))}) that {form(count, 'is', 'are')} not here: what they hold was not read, and partitions assigned "
                "there have no leader on this node until it is back or they are reassigned."
            )
        if self.missing and self.new:
            yield (
                f"Log directories here that node {self.node_id} did not register ({', '.join(sorted(self.new))}): where meta.properties was rewritten "
                "or a disk exchanged, the partitions on it stay without a leader where this node is their only replica."
            )

    def _words_of_blank(self) -> str:
        one = len(self.blank)
        named = (
            f"Whether {form(one, 'the disk', 'the disks')} of {', '.join(self.blank)} {form(one, 'is', 'are')} mounted: server.properties names "
            f"{form(one, 'it as a log directory', 'them as log directories')} of node {self.node_id}, and nothing is in {form(one, 'it', 'them')}."
        )
        does = (
            f"A broker with ZooKeeper takes {form(one, 'it for a new disk', 'them for new disks')}: it writes meta.properties, and creates empty replicas of "
            "partitions that it does not find. Before it is started,"
            if self.formats_blank
            else f"A node without ZooKeeper starts on no directory that is not formatted. Before kafka-storage.sh formats {form(one, 'it', 'them')},"
        )
        return (
            f"{named} {does} give the log directories of the other brokers and a metadata log to diff: an empty replica that is elected makes the others "
            "truncate theirs."
        )
