"""Assign the replicas of a new topic to brokers (`AdminUtils.assignReplicasToBrokers`)."""

from collections.abc import Collection, Mapping

from kforensics.errors import UsageError


def assign_in_turn(
    broker_ids: Collection[int], partitions: int, replication_factor: int
) -> tuple[tuple[int, ...], ...]:
    """Assign the replicas of each partition by the plain rule: replica j of partition i is on broker (i + j) mod n.

    Args:
        broker_ids: the brokers that may hold replicas.
        partitions: how many partitions the topic has.
        replication_factor: how many replicas each partition gets.

    Returns:
        The brokers of each partition, the preferred leader first.

    Raises:
        UsageError: more replicas than brokers.
    """
    brokers = _enough_brokers(broker_ids, replication_factor)
    return tuple(
        tuple(brokers[(partition + turn) % len(brokers)] for turn in range(replication_factor))
        for partition in range(partitions)
    )


def assign_replicas(
    broker_ids: Collection[int],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int = 0,
    shift: int = 0,
    racks: Mapping[int, str] | None = None,
) -> tuple[tuple[int, ...], ...]:
    """Assign the replicas of each partition as a controller does, the preferred leader first (`AdminUtils.assignReplicasToBrokers`).

    The assignment rotates over the brokers as `assign_in_turn` does, but starts at a random `start_index` and moves the followers by a
    `shift` that grows by one with every n partitions; with racks the brokers are first arranged so that neighbours are
    in different racks, and a rack or broker that is already used is skipped.

    Args:
        broker_ids: the brokers that may hold replicas.
        partitions: how many partitions the topic has.
        replication_factor: how many replicas each partition gets.
        start_index: the place of the first preferred leader among the brokers; a controller draws it.
        shift: how far the first followers are moved; a controller draws it too.
        racks: the rack of every broker; None, or an empty mapping, where racks do not count.

    Returns:
        The brokers of each partition, the preferred leader first.

    Raises:
        UsageError: more replicas than brokers, or a broker without a rack where others have one.
    """
    brokers = _enough_brokers(broker_ids, replication_factor)
    rack_of = dict(racks) if racks else {broker: str(broker) for broker in brokers}
    if any(broker not in rack_of for broker in brokers):
        raise UsageError("either every broker has a rack, or none")
    arranged = _alternate_racks(brokers, rack_of) if racks else brokers
    rack_count = len({rack_of[broker] for broker in brokers}) if racks else 1
    assignment = []
    for partition in range(partitions):
        if partition and partition % len(arranged) == 0:
            shift += 1
        first = (partition + start_index) % len(arranged)
        chosen = [arranged[first]]
        turn = 0
        while len(chosen) < replication_factor:
            broker = arranged[(first + 1 + (shift * rack_count + turn) % (len(arranged) - 1)) % len(arranged)]
            used_racks = {rack_of[member] for member in chosen}
            rack_is_free = not racks or rack_of[broker] not in used_racks or len(used_racks) == rack_count
            if rack_is_free and broker not in chosen:
                chosen.append(broker)
            turn += 1
        assignment.append(tuple(chosen))
    return tuple(assignment)


def _enough_brokers(broker_ids: Collection[int], replication_factor: int) -> list[int]:
    brokers = sorted(broker_ids)
    if not 0 < replication_factor <= len(brokers):
        raise UsageError(
            f"a replication factor of {replication_factor} needs as many brokers, there are {len(brokers)}"
        )
    return brokers


def _alternate_racks(brokers: list[int], rack_of: Mapping[int, str]) -> list[int]:
    racks = sorted({rack_of[broker] for broker in brokers})
    by_rack = [[broker for broker in brokers if rack_of[broker] == rack] for rack in racks]
    deepest = max(len(members) for members in by_rack)
    return [members[depth] for depth in range(deepest) for members in by_rack if depth < len(members)]
