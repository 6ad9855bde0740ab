"""What is said of a metadata quorum that goes on without metadata that was committed, or that can elect no controller."""

from collections.abc import Collection, Iterator, Sequence

from kforensics.evidence.metadata.set_back import AffectedBroker, Forgotten, QuorumSetBack
from kforensics.protocol.versions import KafkaVersion, least_version_of_level
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.model import Holder, LossEntry
from kforensics.units import METADATA_TOPIC
from kforensics.words import Prohibition, counted, form, joined_by_and, listed

FIRST_THAT_RENAMES = KafkaVersion(3, 7)
"""The first release that renames a directory that the metadata does not name; those of KRaft before delete it."""
MOST_TOPICS = 3


def quorum_words(found: QuorumSetBack) -> str:
    """Return the sentences that say it first."""
    if found.is_stuck:
        return f"{_nobody_leads(found)} Until then no broker registers."
    if found.mixed:
        return " ".join([_two_quorums(found), *_what_follows(found)])
    return " ".join([_lacking(found), *_what_follows(found)])


def _nobody_leads(found: QuorumSetBack) -> str:
    names, count = _names(found.voters), len(found.voters)
    return (
        f"No controller can be elected: {names} {form(count, 'is no voter', 'are no voters')} any more, and {form(count, 'comes', 'come')} back with another directory id"
        f" than the one of {form(count, 'its', 'their')} vote."
    )


def _two_quorums(found: QuorumSetBack) -> str:
    one, names = len(found.mixed) == 1, _names(found.voters)
    return (
        f"{form(len(found.mixed), 'Node', 'Nodes')} {listed([str(each) for each in found.mixed])} {'holds' if one else 'hold'} records of two metadata quorums:"
        f" from offset {found.end} on {'it differs' if one else 'they differ'} from {names} within one leader epoch, which no truncation repairs."
        f" {names[0].upper()}{names[1:]} began anew, or came back with an earlier disk."
    )


def _names(controllers: Collection[int]) -> str:
    return f"{form(len(controllers), 'controller')} {listed([str(one) for one in controllers])}"


def _lacking(found: QuorumSetBack) -> str:
    names, many = listed([str(one) for one in found.voters]), len(found.voters) > 1
    who = f"Controllers {names}, a majority of the {found.voter_count} voters," if many else f"Controller {names}"
    who = f"{who}, the only voter," if found.voter_count == 1 else who
    hedge = (
        ""
        if found.is_emptied
        else " Only a copy that was made before the others, while the cluster ran, would explain that otherwise."
    )
    if found.by_settings:
        hedge = " They can lead where controller.quorum.voters is still in their settings; else no controller can be elected."
    return (
        f"{who} {form(len(found.voters), 'lacks', 'lack')} metadata that was committed: {'their logs end' if many else 'its log ends'} at or below offset"
        f" {found.end}, and {found.shown_by}.{hedge}"
    )


def _what_follows(found: QuorumSetBack) -> Iterator[str]:
    """Yield what the cluster forgets, and what becomes of the directories of brokers."""
    gone = found.forgotten
    holding = [one for one in found.brokers if one.directories]
    if gone is not None and gone.topics:
        topics = f"{form(len(gone.topics), 'topic')} {listed(list(gone.topics), most=MOST_TOPICS)}"
        forgets = "Their log of now does not know" if found.mixed else "A start forgets"
        yield f"{forgets} {topics} ({counted(gone.partitions, 'partition')})."
    if holding:
        who = f"{form(len(holding), 'broker')} {listed([str(one.node) for one in holding])}"
        yield f"{who[0].upper()}{who[1:]} then {_what_they_do(holding)}."


def _what_they_do(brokers: Collection[AffectedBroker]) -> str:
    """Return what becomes of the directories that brokers hold and that the metadata does not assign to them, by the releases that they run."""
    count, releases = len(brokers), [_release(one) for one in brokers]
    directories = counted(sum(len(one.directories) for one in brokers), "directory", "directories")
    deleting, renaming = form(count, "deletes", "delete"), form(count, "renames", "rename")
    if all(one is not None and one >= FIRST_THAT_RENAMES for one in releases):
        return f"{renaming} {directories} to -stray"
    if all(one is not None and one < FIRST_THAT_RENAMES for one in releases):
        return f"{deleting} {directories}"
    return f"{renaming} {directories} to -stray (3.7 and later) or {deleting} them (3.0 to 3.6)"


def _release(broker: AffectedBroker) -> KafkaVersion | None:
    """Return the release that a broker runs at least, by what it said when it registered."""
    return least_version_of_level(broker.newest_level) if isinstance(broker.newest_level, int) else None


def quorum_steps(found: QuorumSetBack) -> Iterator[str]:
    """Yield what not to do before it is mended, and how the metadata can be brought back."""
    names = _names(found.voters)
    if found.mixed:
        yield Prohibition(
            "Restart no node before it is decided which metadata goes on: a broker keeps, or sets aside, its partitions by what its own copy says by then."
        )
        yield (
            f"To go on with that of {names}: stop {form(len(found.mixed), 'node', 'nodes')} {listed([str(one) for one in found.mixed])}, move {METADATA_TOPIC}-0 there aside,"
            f" and start {form(len(found.mixed), 'it', 'them')}: the log is copied anew, and partitions that it does not name are set aside."
        )
        return
    from_whom = f" of node {found.holders[0]}" if found.holders else ""
    if found.is_stuck:
        known = {one.node: one.known_as for one in found.standings if one.known_as}
        ids = listed([f"controller {node} as {known[node]}" for node in found.voters if node in known], most=9)
        yield Prohibition(
            f"Format no other controller, and none of these again: a quorum that is begun anew (--standalone, --initial-controllers) forgets all topics. The voters know {ids}."
        )
        yield (
            f"Bring the former {form(len(found.voters), 'disk', 'disks')} of {names} back. Where they are lost, no tool of Kafka mends it: give"
            f" {form(len(found.voters), 'it', 'each')} the metadata log{from_whom} and its former directory.id in meta.properties (not supported; try it on copies)."
        )
        return
    yield Prohibition(
        f"Start no node of this cluster as it is: the quorum can go on from offset {found.end}, and nodes with more truncate their metadata, or mix it with the new."
        " Brokers then set aside, or delete, the partitions that it does not name."
        + ("" if found.source else f" Give {names} the metadata log{from_whom} first.")
    )
    if found.source is not None:
        path, end = found.source
        yield (
            f"Give {names} this metadata log first: {path}, which reaches to offset {end - 1}, as {METADATA_TOPIC}-0, without its quorum-state and owned by the user of Kafka."
            " Kafka has no tool for it, and does not support it: try it on copies."
        )


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


def quorum_tell(found: QuorumSetBack) -> Iterator[str]:
    """Yield whom to tell of it."""
    if found.forgotten is not None and found.forgotten.topics:
        topics = listed(list(found.forgotten.topics), most=MOST_TOPICS)
        yield f"Producers and consumers of {topics}: {form(len(found.forgotten.topics), 'the topic', 'the topics')} can be gone after the next start."


def forgotten_words(gone: Forgotten) -> Iterator[str]:
    """Yield what a quorum forgets, kind by kind."""
    if gone.topics:
        yield f"{form(len(gone.topics), 'topic')} {listed(list(gone.topics), most=8)}, and with them {counted(gone.partitions, 'partition')}"
    elif gone.partitions:
        yield counted(gone.partitions, "partition")
    if gone.configs:
        yield counted(gone.configs, "configuration")
    if gone.acls:
        yield counted(gone.acls, "ACL")
    if gone.brokers:
        yield f"the last registration of {form(len(gone.brokers), 'broker')} {listed([str(one) for one in gone.brokers], most=8)}"
    if gone.producer_ids is not None:
        first, end = gone.producer_ids
        yield f"which producer ids were given out: {first}..{end - 1} are given out again, and brokers that know them take new records for old ones"
    for name, before, after in gone.features:
        yield f"{name} {before}, which is {after or 'not set'} then"
    for partition, before, after in gone.epochs[:MOST_TOPICS]:
        yield f"leader epoch {before} of {partition}, which is {after} then"
    if len(gone.epochs) > MOST_TOPICS:
        yield f"leader epochs of {len(gone.epochs) - MOST_TOPICS} more partitions"


def broker_words(broker: AffectedBroker) -> str:
    """Return what a broker does once it follows the quorum."""
    parts = []
    if broker.truncates_to is not None:
        parts.append(
            f"truncates its metadata log to {broker.truncates_to}, or to where the new log ends in the same leader epoch by then, and mixes both"
        )
    if broker.directories:
        parts.append(f"{_what_they_do([broker])}: {listed(list(broker.directories), most=4)}")
    if broker.epochs is not None:
        marker, registered = broker.epochs
        known = f"knows broker epoch {registered}" if registered >= 0 else "does not know it"
        parts.append(f"registers anew: its clean stop names broker epoch {marker}, and the controller {known}")
    return "; ".join(parts) or "keeps what it has"
