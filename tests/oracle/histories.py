"""What is done to two brokers until their logs have something to settle: each history ends with a leader that runs and a follower that does not."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.oracle.cluster import BROKERS, Cluster

MARK_INTERVAL_MS = 1_000
NEVER_MS = 3_600_000
SETTLE_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Parted:
    """Who leads now, and who will come back to follow."""

    leader: int
    follower: int


@dataclass(frozen=True, slots=True)
class History:
    """A named way to part two logs."""

    name: str
    play: Callable[[Cluster], Parted]
    mark_interval_ms: int = MARK_INTERVAL_MS


def _other(node: int) -> int:
    return next(one for one in BROKERS if one != node)


def unclean_election(cluster: Cluster) -> Parted:
    """A follower that missed records is elected, and writes others in their place."""
    old = cluster.leader()
    new = _other(old)
    cluster.write(3, 3, 3, 3)
    cluster.stop(new)
    cluster.wait_in_sync((old,))
    cluster.write(3, 3)
    time.sleep(SETTLE_SECONDS)
    cluster.kill(old)
    cluster.start(new)
    cluster.wait_for_leader(new)
    cluster.write(3, 3, 3, 3)
    return Parted(leader=new, follower=old)


def _lead_in_turn(cluster: Cluster, elections: int) -> Parted:
    """Each broker comes back alone and leads without having followed the other, so many times after the first leader."""
    leader = cluster.leader()
    # One record a batch: a fetch at any offset then starts at a batch on either log.
    cluster.write(*[1] * 10)
    cluster.stop(_other(leader))
    cluster.wait_in_sync((leader,))
    cluster.write(*[1] * 5)
    for turn in range(elections):
        time.sleep(SETTLE_SECONDS)
        cluster.kill(leader)
        leader = _other(leader)
        cluster.start(leader)
        cluster.wait_for_leader(leader)
        cluster.write(*[1] * (4 + turn % 2))
    return Parted(leader=leader, follower=_other(leader))


def two_unclean_elections(cluster: Cluster) -> Parted:
    """One term on the follower that the leader knows nothing of: before KIP-279 it stays."""
    return _lead_in_turn(cluster, 2)


def four_unclean_elections(cluster: Cluster) -> Parted:
    """Two terms on the follower that the leader knows nothing of: they take two rounds to cut."""
    return _lead_in_turn(cluster, 4)


def old_high_watermark(cluster: Cluster) -> Parted:
    """A follower is killed whose high watermark on disk is far behind its log, which is the leader's own."""
    leader = cluster.leader()
    follower = _other(leader)
    cluster.write(3, 3, 3, 3)
    time.sleep(SETTLE_SECONDS)
    cluster.stop(follower)
    cluster.start(follower)
    cluster.wait_in_sync()
    cluster.write(3, 3)
    time.sleep(SETTLE_SECONDS)
    cluster.kill(follower)
    cluster.wait_in_sync((leader,))
    cluster.write(3, 3)
    return Parted(leader=leader, follower=follower)


HISTORIES = (
    History("unclean election", unclean_election),
    History("two unclean elections", two_unclean_elections),
    History("four unclean elections", four_unclean_elections),
    History("old high watermark", old_high_watermark, NEVER_MS),
)
