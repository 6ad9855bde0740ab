"""Disk images as further copies of partitions: their batches found, put together into logs, and named by the replicas that are given.

A chain that shares a batch with one replica, and with no other partition, is of that partition. Chains that share a batch with each other are copies of one log.
A chain continues where another one begins at the next offset, in no lower leader epoch: by the producer whose sequence goes on, or, where no producer shows it, if
there is only one such pair within a day. That is likely, and no proof of a name.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kforensics.commands.salvaging.folder import safe_name
from kforensics.commands.salvaging.model import PartitionPlan
from kforensics.damage import Absent
from kforensics.evidence.carving import CarvedReader, Chain, carve_image, identity_hashes
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, find_places
from kforensics.evidence.model import BUCKET_OFFSETS, BatchReader, Input, Lineage, Problem, Replica
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.evidence.replica.collect import collect_replica
from kforensics.reconcile.history.log_copies import LogCopy, copies_of
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.replicas.leader import choose_leader
from kforensics.source.naming import FileSuffix
from kforensics.units import TopicPartition

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CarvedLog:
    """Chains of one log."""

    chains: tuple[int, ...]
    """Their numbers, by offset."""
    partition: TopicPartition | None
    """Proven by a batch that a given replica of it holds, too."""
    likely: TopicPartition | None = None
    """The partition whose log it continues or precedes."""


def group_chains(chains: Sequence[Chain], named: dict[int, set[TopicPartition]]) -> tuple[CarvedLog, ...]:
    """Put chains together into logs: named ones by partition, then others by offset.

    Args:
        named: for each chain the partitions of given replicas that hold one of its batches.
    """
    names = {at: next(iter(found)) for at, found in named.items() if len(found) == 1}
    groups = _Groups(len(chains))
    by_name: dict[TopicPartition, int] = {}
    for at, name in names.items():
        groups.join(at, by_name.setdefault(name, at))
    by_sample: dict[int, int] = {}
    for at, chain in enumerate(chains):
        for sample in chain.samples:
            other = by_sample.setdefault(sample, at)
            if (at in names) == (other in names):
                groups.join(at, other)
    likely: dict[int, TopicPartition] = {}
    for before, after in _joints(chains, groups):
        if before in names and after in names:
            continue
        if before in names or after in names:
            stranger, name = (after, names[before]) if before in names else (before, names[after])
            likely.setdefault(groups.of(stranger), name)
        else:
            groups.join(before, after)
    members: dict[int, list[int]] = defaultdict(list)
    for at in range(len(chains)):
        members[groups.of(at)].append(at)
    out = []
    for number, those in members.items():
        those.sort(key=lambda at: (chains[at].first_offset, chains[at].first_epoch, at))
        proven = next((names[at] for at in those if at in names), None)
        guess = next((likely[root] for root in (number, *those) if root in likely), None) if proven is None else None
        out.append(CarvedLog(chains=tuple(those), partition=proven, likely=guess))
    return tuple(
        sorted(out, key=lambda log: (log.partition is None, log.partition or TopicPartition("", 0), log.chains[0]))
    )


class _Groups:
    """Disjoint sets of chains."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def of(self, at: int) -> int:
        """Return the number of the set."""
        while self._parents[at] != at:
            self._parents[at] = self._parents[self._parents[at]]
            at = self._parents[at]
        return at

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.of(one), self.of(other)))
        self._parents[second] = first


def _joints(chains: Sequence[Chain], groups: _Groups) -> Iterable[tuple[int, int]]:
    """Pairs of chains of which the second continues where the first ends."""
    begins: dict[int, list[int]] = defaultdict(list)
    for at, chain in enumerate(chains):
        begins[chain.first_offset].append(at)
    pairs = [
        (before, after)
        for before, chain in enumerate(chains)
        for after in begins.get(chain.last_offset + 1, ())
        if chains[after].first_epoch >= chain.last_epoch
    ]
    proven = [pair for pair in pairs if _sequence_continues(chains[pair[0]], chains[pair[1]])]
    yield from proven
    taken_before = {groups.of(before) for before, _ in proven}
    taken_after = {groups.of(after) for _, after in proven}
    rest = [
        (before, after)
        for before, after in pairs
        if groups.of(before) not in taken_before
        and groups.of(after) not in taken_after
        and not _has_producer(chains[before])
        and not _has_producer(chains[after])
        and abs(chains[after].first_timestamp_ms - chains[before].last_timestamp_ms) <= DAY_MS
    ]
    ends: dict[int, set[int]] = defaultdict(set)
    starts: dict[int, set[int]] = defaultdict(set)
    for before, after in rest:
        ends[groups.of(before)].add(groups.of(after))
        starts[groups.of(after)].add(groups.of(before))
    lone = [
        (before, after)
        for before, after in rest
        if len(ends[groups.of(before)]) == 1 and len(starts[groups.of(after)]) == 1
    ]
    yield from lone


def _has_producer(chain: Chain) -> bool:
    return chain.first_producer[0] >= 0


def _sequence_continues(before: Chain, after: Chain) -> bool:
    return before.last_producer[0] >= 0 and before.last_producer == after.first_producer


IMAGE_KIND = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carved:
    """What lies in the images."""

    inputs: tuple[Input, ...]
    """The given inputs, and then the images."""
    roots: tuple[Path, ...]
    """Where each of them really is."""
    chains: tuple[Chain, ...]
    logs: tuple[CarvedLog, ...]
    places: dict[TopicPartition, tuple[PartitionPlace, ...]]
    bytes_read: int
    first_image: int

    @property
    def images(self) -> dict[int, Path]:
        """Where each image is, by the index of its input."""
        return dict(enumerate(self.roots[self.first_image :], start=self.first_image))

    @property
    def batches(self) -> int:
        """Batches that were found, each as often as it lies there."""
        return sum(chain.batches for chain in self.chains)

    @property
    def records(self) -> int:
        """Records in them."""
        return sum(chain.records for chain in self.chains)

    @property
    def length(self) -> int:
        """Bytes of them."""
        return sum(chain.end - chain.start for chain in self.chains)

    @property
    def old_batches(self) -> int:
        """Batches of chains with messages of magic 0 or 1, which are proven by less."""
        return sum(chain.batches for chain in self.chains if min(chain.magics) < 2)


def carve(images: Sequence[Path], inputs: Inputs, problems: list[Problem]) -> Carved:
    """Read the images, and find out which partitions of the inputs their batches are of."""
    chains: list[Chain] = []
    size = 0
    for at, path in enumerate(images):
        length, found = carve_image(path, len(inputs.found) + at)
        chains += found
        size += length
    places = dict(find_places(inputs).by_partition) if inputs.found else {}
    named = _named(chains, places, inputs, problems)
    described = tuple(Input(path=str(path), kind=IMAGE_KIND) for path in images)
    return Carved(
        inputs=(*inputs.described, *described),
        roots=(*(one.root for one in inputs.found), *(path.resolve() for path in images)),
        chains=tuple(chains),
        logs=group_chains(chains, named),
        places=places,
        bytes_read=size,
        first_image=len(inputs.found),
    )


def _named(
    chains: Sequence[Chain],
    places: dict[TopicPartition, tuple[PartitionPlace, ...]],
    inputs: Inputs,
    problems: list[Problem],
) -> dict[int, set[TopicPartition]]:
    """For each chain the partitions that hold one of its sampled batches."""
    samples = np.array([sample for chain in chains for sample in chain.samples], dtype=np.uint64)
    owners = np.array([at for at, chain in enumerate(chains) for _ in chain.samples], dtype=np.int64)
    order = np.argsort(samples, kind="stable")
    samples, owners = samples[order], owners[order]
    named: dict[int, set[TopicPartition]] = defaultdict(set)
    if not len(samples):
        return named
    reader = FileBatchReader([one.root for one in inputs.found])
    for partition, group in places.items():
        for place in group:
            collected = collect_replica(place, left_over=(FileSuffix.DELETED, FileSuffix.SWAP))
            problems.extend(collected.problems)
            replica = collected.replica
            for part in (replica, replace(replica, segments=replica.deleted_segments)):
                for bucket in sorted({int(one) for segment in part.segments for one in segment.digests["bucket"]}):
                    first = bucket * BUCKET_OFFSETS
                    hashes = identity_hashes(reader.batches(part, first, first + BUCKET_OFFSETS - 1))
                    begin, end = np.searchsorted(samples, hashes, "left"), np.searchsorted(samples, hashes, "right")
                    for low, high in zip(begin[end > begin].tolist(), end[end > begin].tolist(), strict=True):
                        for at in owners[low:high].tolist():
                            named[at].add(partition)
    return named


def carved_copies(carved: Carved, partition: TopicPartition) -> tuple[list[LogCopy], dict[str, tuple[int, ...]]]:
    """Return what the images hold of a partition, an image each, and for `CarvedReader` where its chains begin."""
    copies: list[LogCopy] = []
    starts: dict[str, tuple[int, ...]] = {}
    for log in carved.logs:
        if log.partition == partition:
            members = [carved.chains[at] for at in log.chains]
            copies += _copies(partition, members, f"{safe_name(partition.topic)}-{partition.partition}", starts)
    return copies, starts


def carved_plans(
    carved: Carved, reader: BatchReader, *, with_named: bool = True
) -> Iterator[tuple[PartitionPlan, CarvedReader]]:
    """Yield a plan for each log: what the images hold of it and no given replica does."""
    number = 0
    for log in carved.logs:
        if log.partition is not None and not with_named:
            continue
        if log.partition is None:
            number += 1
        name = f"carved-{number:04d}"
        called = name if log.partition is None else f"{safe_name(log.partition.topic)}-{log.partition.partition}"
        partition = log.partition or TopicPartition(name, -1)
        members = [carved.chains[at] for at in log.chains]
        copies: list[LogCopy] = []
        leader = None
        if log.partition is not None:
            copies, leader = _given(carved.places.get(log.partition, ()))
        starts: dict[str, tuple[int, ...]] = {}
        copies += _copies(partition, members, called, starts)
        first = len(copies) - len(starts)
        for at in range(first, len(copies)):
            # Earlier images show what need not be taken from later ones.
            yield (
                PartitionPlan(
                    partition=partition,
                    topic_id=Absent.UNKNOWN,
                    copies=tuple(copies[: at + 1]),
                    leader=leader,
                    leader_source="" if leader is None else "guessed",
                    wanted=None,
                    only=at,
                    name=f"{called}.image-{at - first + 1}" if at > first else called,
                    is_named=log.partition is not None,
                    likely="" if log.likely is None else str(log.likely),
                ),
                CarvedReader(reader, carved.images, starts),
            )


def _given(places: Sequence[PartitionPlace]) -> tuple[list[LogCopy], LogCopy | None]:
    replicas = [collect_replica(place, left_over=(FileSuffix.DELETED, FileSuffix.SWAP)).replica for place in places]
    found = copies_of(replicas, (), topic_id=Absent.UNKNOWN, final_rank=0)
    choice = choose_leader([copy.view for copy in found.live], wanted=None, leaderships=())
    leader = next((copy for copy in found.copies if choice is not None and copy.view is choice.view), None)
    return sorted(found.copies, key=lambda copy: copy is not leader), leader


def _copies(
    partition: TopicPartition, chains: Sequence[Chain], called: str, starts: dict[str, tuple[int, ...]]
) -> Iterator[LogCopy]:
    """Yield the chains of a log as one copy an image, and note by its path where they begin."""
    for image in sorted({chain.image for chain in chains}):
        those = [chain for chain in chains if chain.image == image]
        path = f"{called}@{image}"
        starts[path] = tuple(chain.start for chain in those)
        yield _copy(partition, those, image, path)


def _copy(partition: TopicPartition, chains: Sequence[Chain], image: int, path: str) -> LogCopy:
    segments = tuple(chain.segment(".") for chain in chains)
    first, end = min(chain.first_offset for chain in chains), max(chain.last_offset for chain in chains) + 1
    replica = Replica(
        input=image,
        broker_id=Absent.UNKNOWN,
        path=path,
        log_dir="",
        topic_partition=partition,
        state="deleted",
        topic_id=Absent.UNKNOWN,
        segments=segments,
        lineage=Lineage(log_start_offset=first, log_end_offset=end),
        checkpoint_epochs=Absent.NOT_WRITTEN,
        high_watermark=Absent.NOT_WRITTEN,
        recovery_point=Absent.NOT_WRITTEN,
        log_start=Absent.NOT_WRITTEN,
        cleaner_point=Absent.NOT_WRITTEN,
        clean_shutdown=False,
    )
    view = LoadedLog(
        replica=replica,
        log_start_offset=first,
        content_start_offset=first,
        log_end_offset=end,
        truncated_by_recovery=None,
        segments=segments,
        epochs=(),
        batch_epochs=(),
        epochs_from="batches",
        scanned_epochs=(),
        high_watermark=first,
        cleaned_below=0,
        damaged=(),
        oldest_magic=min(min(chain.magics) for chain in chains),
    )
    return LogCopy(view=view, rank=-1, is_final=False, is_remnant=True, has_times=False)
