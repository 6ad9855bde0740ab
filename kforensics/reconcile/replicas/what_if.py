"""What each possible leader of a partition would lose: the truncations of the others, and the records that it does not hold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kforensics.damage import Absent
from kforensics.evidence.model import Lineage, Replica
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts, count_runs
from kforensics.reconcile.logs.divergence import damage_at
from kforensics.reconcile.logs.loaded_log import LoadedLog, load_log
from kforensics.reconcile.replicas.leader import ExpectedTruncation, follower_outcome
from kforensics.reconcile.replicas.report import EmptiedReplica, SoleHolder, Verdict, WhatIf, distinct_counts
from kforensics.units import OffsetRange

if TYPE_CHECKING:
    from kforensics.reconcile.replicas.partition import PartitionJudge


@dataclass(frozen=True)
class LeaderChoices:
    """The replicas of one partition as its leader, one after the other.

    Args:
        partition: the replicas, compared with each other.
        epoch: the leader epoch that the leader would have.
        emptied: brokers that hold none of it and can be elected all the same.
    """

    partition: "PartitionJudge"
    judge: CommitJudge
    epoch: int
    emptied: Sequence[EmptiedReplica]

    def nothing_to_lose(self) -> tuple[tuple[SoleHolder, ...], tuple[WhatIf, ...]] | None:
        """Return what is held alone, and what each leader would lose, where all replicas hold the same log and none truncates, whichever leads.

        That is so of nearly all partitions: nothing else has to be looked at then.

        Returns:
            None where it is not so, or not seen at first sight.
        """
        first = self.partition.live[0] if self.partition.live else None
        if (
            first is None
            or len(self.partition.live) < 2
            or self.partition.is_quorum
            or any(one.is_electable for one in self.emptied)
        ):
            return None
        log = first.state_without_high_watermark
        known: set[tuple[int, ProtocolName]] = set()
        for at, view in enumerate(self.partition.live):
            other = self.partition.live[at - 1]
            if (
                view.state_without_high_watermark != log
                or view.content_start_offset != first.content_start_offset
                or view.lost_ranges
                or self._differs(view, first, at)
            ):
                return None
            protocol = self.partition.protocol_of(view)
            if (view.high_watermark, protocol.name) in known:
                continue  # the outcome is that of the log before, which is the same
            outcome = follower_outcome(view, other, protocol=protocol, new_epoch=self.epoch)
            if not isinstance(outcome.offset, Absent):
                return None
            known.add((view.high_watermark, protocol.name))
        return (), tuple(
            WhatIf(leader=view) for view in sorted(self.partition.live, key=lambda one: order_of(one.replica))
        )

    def _differs(self, view: LoadedLog, first: LoadedLog, at: int) -> bool:
        """Whether a log differs from any of those before it; logs of the same digests are equal to one another."""
        if view.digest_bytes == first.digest_bytes and not (view.replica.unread_below or first.replica.unread_below):
            return False
        return any(self.partition.compared.divergence(view, one) is not None for one in self.partition.live[:at])

    def what_if(self) -> tuple[WhatIf, ...]:
        """Return what becomes of the others if each replica leads that can; none where there is no choice."""
        if not self.partition.live:
            return ()
        empty = [
            load_log(_empty_replica(self.partition.live[0].replica, one.broker_id))
            for one in self.emptied
            if one.is_electable
        ]
        if len(self.partition.live) + len(empty) < 2:
            return ()
        # Of the metadata quorum its members alone lead it, where they are known.
        electable = self.partition.electable() if self.partition.is_quorum else frozenset()
        voters = frozenset() if isinstance(electable, Absent) else electable
        choices = [
            self._if_led_by(candidate)
            for candidate in self.partition.live
            if not voters or candidate.replica.broker_id in voters
        ]
        choices += [self._if_led_by(candidate)._replace(is_emptied=True) for candidate in empty]
        return tuple(sorted(choices, key=lambda choice: order_of(choice.leader.replica)))

    def _if_led_by(self, candidate: LoadedLog) -> WhatIf:
        truncations: list[tuple[LoadedLog, ExpectedTruncation]] = []
        discarded: list[tuple[LoadedLog, int, int]] = []
        lost: list[tuple[LoadedLog, int, int]] = []
        others: list[tuple[LoadedLog, int, int]] = []
        truncated: list[tuple[LoadedLog, int, int]] = []
        kept = 0
        is_tail = True
        for view in self.partition.live:
            if view is candidate:
                continue
            report = self.partition.judge_replica(view, candidate, self.epoch, self.judge)
            first = max(self.partition.compared.held_until(view, candidate), view.content_start_offset)
            lacked = self.partition.compared.lacked_by(candidate, view)
            if report.truncation is not None:
                truncations.append((view, report.truncation))
                truncated.append((view, report.truncation.offset, first))
                start = report.truncation.offset
                gone = [(view, max(one.first, start), one.last + 1) for one in lacked if one.last >= start]
                is_tail = is_tail and (report.is_tail_of_a_copy or not gone)
                discarded += gone
            lost += [(view, one.first, one.last + 1) for one in lacked]
            others.append((view, view.content_start_offset, first))
            kept += report.verdict is Verdict.SILENT_DIVERGENCE
        in_all = distinct_counts(lost, self.partition.compared, self.judge) + self._unreadable_on(candidate, others)
        return WhatIf(
            leader=candidate,
            truncations=tuple(sorted(truncations, key=lambda item: order_of(item[0].replica))),
            discarded=distinct_counts(discarded, self.partition.compared, self.judge)
            + self._unreadable_on(candidate, truncated),
            lost_certain=in_all.certain,
            lost_possible=in_all.possible,
            kept_divergent=kept,
            is_tail_of_a_copy=bool(discarded) and is_tail,
        )

    def _unreadable_on(self, candidate: LoadedLog, others: Sequence[tuple[LoadedLog, int, int]]) -> CommittedCounts:
        """Return records in damaged ranges of a leader that another replica holds, each range by one of those that do.

        Args:
            others: each with the offset to begin at, and that from which on its records are counted anyway.
        """
        total = CommittedCounts()
        for lost in candidate.lost_ranges:
            for view, begin, counted_from in others:
                last = min(lost.last, counted_from - 1, view.log_end_offset - 1)
                start = max(lost.first, begin)
                if start <= last and damage_at(start, view) is None:
                    runs = self.judge.runs(view, OffsetRange(start, last))
                    total += CommittedCounts.of(count_runs(runs, view, self.partition.reader))
                    break
        return total


def _empty_replica(like: Replica, broker_id: int) -> Replica:
    """Return the replica that a broker makes at its start where it holds no directory of a partition."""
    return replace(
        like,
        broker_id=broker_id,
        path="",
        log_dir="",
        segments=(),
        lineage=Lineage(log_start_offset=0, log_end_offset=0),
        checkpoint_epochs=Absent.NOT_WRITTEN,
        high_watermark=Absent.NOT_WRITTEN,
        recovery_point=Absent.NOT_WRITTEN,
        log_start=Absent.NOT_WRITTEN,
        cleaner_point=Absent.NOT_WRITTEN,
        producer_snapshots=(),
        orphan_indexes=(),
        deleted_segments=(),
        damage={},
    )


def order_of(replica: Replica) -> tuple[int, str]:
    """Return the place of a replica among others: by broker, then by path."""
    return (-1 if isinstance(replica.broker_id, Absent) else replica.broker_id, replica.path)
