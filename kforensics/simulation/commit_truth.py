"""The facts of a simulated history that no broker knows: which records were committed, and which were acknowledged."""

from collections import deque
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
    """The records that wait to be committed, and the committed ones."""

    committed: list[NumberedRecord] = field(default_factory=list)
    acknowledged: list[NumberedRecord] = field(default_factory=list)
    on_whole_isr: set[NumberedRecord] = field(default_factory=set)
    """The records that every member of a large enough ISR held at one time, whether or not a high watermark covered them."""
    _pending: deque[NumberedRecord] = field(default_factory=deque)
    """Written with acks=all and not committed yet; offsets rise."""
    _copied_to: int = 0
    """The offset below which the whole ISR has held every record in this leader epoch."""
    _known: set[tuple[int, str]] = field(default_factory=set)

    def written(self, batch: SimulatedBatch, acks: Acks) -> None:
        """Note a batch that a leader has appended.

        Args:
            acks: of the request, which decides when the producer gets its acknowledgement.
        """
        for offset, record in enumerate(batch.records, start=batch.base_offset):
            if acks is Acks.ALL:
                self._pending.append(NumberedRecord(offset, record))
            elif is_acknowledged(acks, offset, leader_log_end_offset=batch.end_offset, high_watermark=0):
                self.acknowledged.append(NumberedRecord(offset, record))

    def raised(self, leader: SimulatedReplica, before: int) -> None:
        """Note that a leader's high watermark may have risen.

        Args:
            leader: with its high watermark of now.
        """
        end, high_watermark = leader.log_end_offset, leader.high_watermark
        while self._pending and is_acknowledged(
            Acks.ALL, self._pending[0].offset, leader_log_end_offset=end, high_watermark=high_watermark
        ):
            self.acknowledged.append(self._pending.popleft())
        for offset, record in leader.records_from(before).items() if high_watermark > before else ():
            if offset < high_watermark and (offset, record) not in self._known:
                self._known.add((offset, record))
                self.committed.append(NumberedRecord(offset, record))

    def copied(self, members: Sequence[SimulatedReplica]) -> None:
        """Note what all members of the ISR hold now.

        Args:
            members: the leader is the first of them.
        """
        if min(member.log_end_offset for member in members) <= self._copied_to:
            return
        first, *others = [member.records_from(self._copied_to) for member in members]
        for offset, record in first.items():
            if any(other.get(offset) != record for other in others):
                break
            self.on_whole_isr.add(NumberedRecord(offset, record))
            self._copied_to = offset + 1

    def elected(self) -> None:
        """Answer the requests that wait for the former leader with an error."""
        self._pending.clear()
        self._copied_to = 0


def missing_from(records: Mapping[int, str], wanted: Sequence[NumberedRecord]) -> list[NumberedRecord]:
    """Return the wanted records that a log does not hold at their offsets.

    Args:
        wanted: in any order.
    """
    return [numbered for numbered in wanted if records.get(numbered.offset) != numbered.record]
