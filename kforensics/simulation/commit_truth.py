"""What a simulated history knows and no broker does: which records were committed, and which producers were told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kforensics.protocol.visibility import Acks, is_acknowledged
from kforensics.simulation.replica import SimulatedBatch, SimulatedReplica


class NumberedRecord(NamedTuple):
    """A record and its offset."""

    offset: int
    record: str


@dataclass(slots=True)
class CommitTruth:
    """Records on their way to be committed, and those that were."""

    committed: list[NumberedRecord] = field(default_factory=list)
    acknowledged: list[NumberedRecord] = field(default_factory=list)
    _pending: list[tuple[NumberedRecord, Acks]] = field(default_factory=list)

    def written(self, batch: SimulatedBatch, acks: Acks) -> None:
        """A leader took a batch."""
        for offset, record in enumerate(batch.records, start=batch.base_offset):
            self._pending.append((NumberedRecord(offset, record), acks))

    def raised(self, leader: SimulatedReplica) -> None:
        """A leader's log end or high watermark moved."""
        end, high_watermark = leader.log_end_offset, leader.high_watermark
        still = []
        for numbered, acks in self._pending:
            told = is_acknowledged(acks, numbered.offset, leader_log_end_offset=end, high_watermark=high_watermark)
            if told:
                self.acknowledged.append(numbered)
            if numbered.offset < high_watermark:
                self.committed.append(numbered)
            else:
                still.append((numbered, Acks.NONE if told else acks))
        self._pending = still

    def elected(self, leader: SimulatedReplica) -> None:
        """What the new leader does not hold will never be committed."""
        if self._pending:
            records = leader.records
            self._pending = [
                (numbered, acks) for numbered, acks in self._pending if records.get(numbered.offset) == numbered.record
            ]


def missing_from(records: Mapping[int, str], wanted: Sequence[NumberedRecord]) -> list[NumberedRecord]:
    """Which of the wanted records a log does not hold at their offsets."""
    return [numbered for numbered in wanted if records.get(numbered.offset) != numbered.record]
