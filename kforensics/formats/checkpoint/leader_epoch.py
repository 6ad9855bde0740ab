"""`leader-epoch-checkpoint` of a partition directory: the leader epochs that the broker acts on.

    file  := version LF count LF (entry LF)*        version is 0
    entry := leader_epoch SP start_offset
    An empty file is an empty list. No checksum. Epochs rise strictly; start offsets rise strictly since 2.0.1 and
    2.1.0 (KAFKA-7415);
    0.11.0.0 to 2.0.0 wrote equal and even falling ones, so the parser does not check the order of start offsets.

Kafka: `LeaderEpochCheckpointFile`, `LeaderEpochFileCache` (0.11.0 and later).
"""

from typing import NamedTuple

from kforensics.damage import Damage, DamageKind, Span
from kforensics.formats.checkpoint.offset import encode_frame, parse_frame, split_fields
from kforensics.formats.primitives.text_lines import DamageList, TextLine, beyond_limit, parse_integer
from kforensics.units import EpochEntry


class LeaderEpochLine(NamedTuple):
    """One leader epoch, its start offset, and the number of its line, from 1."""

    leader_epoch: int
    start_offset: int
    line: int = 0
    position: int = 0
    length: int = 0

    @property
    def span(self) -> Span:
        """The span of the line in the file."""
        return Span(self.position, self.length)


class LeaderEpochCheckpoint(NamedTuple):
    """The content of the file, in its order."""

    lines: tuple[LeaderEpochLine, ...] = ()
    damage: tuple[Damage, ...] = ()

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """The epochs without their line numbers."""
        return tuple(EpochEntry(line.leader_epoch, line.start_offset) for line in self.lines)


def parse_leader_epoch_checkpoint(data: bytes | memoryview) -> LeaderEpochCheckpoint:
    """Parse a `leader-epoch-checkpoint` (`LeaderEpochCheckpointFile`) into its entries and damage.

    Args:
        data: the whole file; an empty one has no entries.

    Returns:
        The entries in the order of the file, those whose epoch does not rise included; a line that is no entry is damage only.

    Raises:
        FormatError: the file does not begin with a version; `UnsupportedFormat` where it is not 0.
    """
    damage = DamageList()
    lines: list[LeaderEpochLine] = []
    for line in parse_frame(data, damage):
        entry = _parse_line(line, damage)
        if entry is None:
            continue
        if lines and entry.leader_epoch <= lines[-1].leader_epoch:
            expected = f"a leader epoch above {lines[-1].leader_epoch}"
            damage.add_line(line, expected, DamageKind.ORDER)
        lines.append(entry)
    return LeaderEpochCheckpoint(lines=tuple(lines), damage=(*damage.as_tuple(), *beyond_limit(len(data))))


def encode_leader_epoch_checkpoint(checkpoint: LeaderEpochCheckpoint) -> bytes:
    """Encode the file as a broker writes it (`LeaderEpochCheckpointFile`).

    Args:
        checkpoint: its lines are written in their order and are not checked; damage is no content.
    """
    return encode_frame(f"{epoch} {start}" for epoch, start in checkpoint.entries)


def _parse_line(line: TextLine, damage: DamageList) -> LeaderEpochLine | None:
    fields = split_fields(line)
    epoch = parse_integer(fields[0], bits=32) if len(fields) == 2 else None
    start = parse_integer(fields[1], bits=64) if len(fields) == 2 else None
    if epoch is None or start is None or epoch < 0 or start < 0:
        damage.add_line(line, "a leader epoch and its start offset")
        return None
    return LeaderEpochLine(epoch, start, line.number, line.position, len(line.content))
