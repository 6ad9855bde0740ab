"""Every rule of the protocol and of the published models, broken in one place: what the tests must notice."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One rule, broken: in `file`, `old` (which must occur once) becomes `new`."""

    name: str
    file: str
    old: str
    new: str


EPOCHS = "protocol/epochs.py"
TRUNCATION = "protocol/truncation.py"
VISIBILITY = "protocol/election.py"
ELECTION = "protocol/election.py"
LOAD = "protocol/loading/load.py"
STEPS = "protocol/loading/partition.py"
DISK = "protocol/loading/disk.py"
MODELS = "simulation/models.py"

MUTANTS = (
    Mutant(
        "the latest epoch is not known",
        EPOCHS,
        "if not epochs or requested > epochs[-1].leader_epoch:",
        "if not epochs or requested >= epochs[-1].leader_epoch:",
    ),
    Mutant(
        "an epoch ends where it begins",
        EPOCHS,
        "above = bisect_right(epochs, requested, key=_leader_epoch_of)",
        "above = max(bisect_right(epochs, requested - 1, key=_leader_epoch_of), 1)",
    ),
    Mutant(
        "the answer repeats the question",
        EPOCHS,
        "EpochEndOffset(epochs[above - 1].leader_epoch,",
        "EpochEndOffset(requested,",
    ),
    Mutant(
        "a truncation keeps the epoch that starts at it",
        EPOCHS,
        "return tuple(entry for entry in epochs if entry.start_offset < truncate_to)",
        "return tuple(entry for entry in epochs if entry.start_offset <= truncate_to)",
    ),
    Mutant(
        "the log start keeps an epoch too many",
        EPOCHS,
        "epochs[passed].start_offset <= log_start_offset",
        "epochs[passed].start_offset < log_start_offset",
    ),
    Mutant(
        "a new epoch leaves what it contradicts",
        EPOCHS,
        "epochs[keep - 1].start_offset >= start_offset",
        "epochs[keep - 1].start_offset > start_offset",
    ),
    Mutant(
        "an epoch below the latest stays known",
        EPOCHS,
        "epochs[keep - 1].leader_epoch >= leader_epoch or ",
        "",
    ),
    Mutant(
        "a truncation keeps the last epoch that starts at it",
        EPOCHS,
        "if truncate_to < 0 or not epochs or epochs[-1].start_offset < truncate_to:",
        "if truncate_to < 0 or not epochs or epochs[-1].start_offset <= truncate_to:",
    ),
    Mutant(
        "the epoch that holds the log start keeps its own start",
        EPOCHS,
        "return (EpochEntry(epochs[passed - 1].leader_epoch, log_start_offset), *epochs[passed:])",
        "return epochs[passed - 1 :]",
    ),
    Mutant(
        "an epoch below the first ends at the log end",
        EPOCHS,
        "return EpochEndOffset(requested, epochs[0].start_offset) if rules",
        "return EpochEndOffset(requested, log_end_offset) if rules",
    ),
    Mutant(
        "the leader's end alone decides",
        TRUNCATION,
        "target, done = min(own.end_offset, answer.end_offset), True",
        "target, done = answer.end_offset, True",
    ),
    Mutant(
        "the follower's end alone decides",
        TRUNCATION,
        "target, done = min(own.end_offset, answer.end_offset), True",
        "target, done = own.end_offset, True",
    ),
    Mutant(
        "one question is enough",
        TRUNCATION,
        "target, done = own.end_offset, False",
        "target, done = min(own.end_offset, answer.end_offset), True",
    ),
    Mutant(
        "a fetch does not compare epochs",
        TRUNCATION,
        "elif answer.leader_epoch != requested or answer.end_offset < before.log_end_offset:",
        "elif answer.end_offset < before.log_end_offset:",
    ),
    Mutant(
        "a fetch does not compare ends",
        TRUNCATION,
        "elif answer.leader_epoch != requested or answer.end_offset < before.log_end_offset:",
        "elif answer.leader_epoch != requested:",
    ),
    Mutant(
        "a leader does not enter its epoch",
        TRUNCATION,
        "    if not rules.enters_epoch_when_elected:\n        return leader\n",
        "    if new_epoch >= 0:\n        return leader\n",
    ),
    Mutant(
        "a truncation forgets the epochs",
        TRUNCATION,
        "        epochs=truncate_from_end(log.epochs, truncate_to),\n        log_start_offset",
        "        epochs=log.epochs,\n        log_start_offset",
    ),
    Mutant(
        "who is level with the leader is out of range",
        TRUNCATION,
        "self.leader.log_start_offset <= before.log_end_offset <= self.leader.log_end_offset",
        "self.leader.log_start_offset <= before.log_end_offset < self.leader.log_end_offset",
    ),
    Mutant(
        "who is at the leader's start is out of range",
        TRUNCATION,
        "self.leader.log_start_offset <= before.log_end_offset <= self.leader.log_end_offset",
        "self.leader.log_start_offset < before.log_end_offset <= self.leader.log_end_offset",
    ),
    Mutant(
        "who holds all of an epoch diverges",
        TRUNCATION,
        "elif answer.leader_epoch != requested or answer.end_offset < before.log_end_offset:",
        "elif answer.leader_epoch != requested or answer.end_offset <= before.log_end_offset:",
    ),
    Mutant(
        "who is below the leader's start may fetch",
        TRUNCATION,
        "if isinstance(answer, Absent) or before.log_end_offset < self.leader.log_start_offset:",
        "if isinstance(answer, Absent):",
    ),
    Mutant(
        "kip-101 does not ask",
        TRUNCATION,
        "self.truncation(min(answer.end_offset, self.log.log_end_offset), step)",
        "self.truncation(self.log.log_end_offset, step)",
    ),
    Mutant(
        "a truncation leaves the high watermark above the log",
        TRUNCATION,
        "min(log.high_watermark, truncate_to)",
        "log.high_watermark",
    ),
    Mutant(
        "a truncation below the high watermark is not reported",
        TRUNCATION,
        "and self.log.log_end_offset < min(self.start.high_watermark, self.start.log_end_offset),",
        "and self.log.log_end_offset < min(self.start.high_watermark, 0),",
    ),
    Mutant(
        "a truncation at the high watermark counts as below it",
        TRUNCATION,
        "and self.log.log_end_offset < min(self.start.high_watermark, self.start.log_end_offset),",
        "and self.log.log_end_offset <= min(self.start.high_watermark, self.start.log_end_offset),",
    ),
    Mutant(
        "a truncation keeps one record more",
        TRUNCATION,
        "        log_end_offset=truncate_to,\n",
        "        log_end_offset=truncate_to + 1,\n",
    ),
    Mutant(
        "a loaded high watermark may lie above the log end",
        TRUNCATION,
        "return max(log_start_offset, min(known, log_end_offset))",
        "return max(log_start_offset, known)",
    ),
    Mutant(
        "a quorum leader does not compare epochs",
        TRUNCATION,
        "if end.leader_epoch != last_fetched_epoch or end.end_offset < fetch_offset:",
        "if end.end_offset < fetch_offset:",
    ),
    Mutant(
        "a quorum leader does not compare ends",
        TRUNCATION,
        "if end.leader_epoch != last_fetched_epoch or end.end_offset < fetch_offset:",
        "if end.leader_epoch != last_fetched_epoch:",
    ),
    Mutant(
        "a quorum leader sends away who holds all of an epoch",
        TRUNCATION,
        "if end.leader_epoch != last_fetched_epoch or end.end_offset < fetch_offset:",
        "if end.leader_epoch != last_fetched_epoch or end.end_offset <= fetch_offset:",
    ),
    Mutant(
        "a quorum member truncates by the leader's end alone",
        TRUNCATION,
        "return min(own.end_offset, end.end_offset), own",
        "return end.end_offset, own",
    ),
    Mutant(
        "a quorum member truncates by its own end alone",
        TRUNCATION,
        "return min(own.end_offset, end.end_offset), own",
        "return own.end_offset, own",
    ),
    Mutant(
        "a follower believes the leader's high watermark",
        VISIBILITY,
        "return min(log_end_offset, leader_high_watermark_in_answer)",
        "return leader_high_watermark_in_answer",
    ),
    Mutant(
        "one replica of the ISR is enough",
        VISIBILITY,
        "max(high_watermark, min(log_end_offsets, default=high_watermark))",
        "max(high_watermark, max(log_end_offsets, default=high_watermark))",
    ),
    Mutant(
        "the high watermark falls",
        VISIBILITY,
        "return max(high_watermark, min(log_end_offsets, default=high_watermark))",
        "return min(log_end_offsets, default=high_watermark)",
    ),
    Mutant(
        "min.insync.replicas is not asked",
        VISIBILITY,
        "if strict_min_isr and isr_size < min_insync_replicas:",
        "if strict_min_isr and isr_size < 0:",
    ),
    Mutant(
        "who lags joins the ISR",
        VISIBILITY,
        "return follower_log_end_offset >= high_watermark and reached_epoch",
        "return reached_epoch",
    ),
    Mutant(
        "whoever lives leads",
        ELECTION,
        "        if replica in live and replica in partition.isr:\n            return _elected(partition, replica, ElectionKind.CLEAN",
        "        if replica in live:\n            return _elected(partition, replica, ElectionKind.CLEAN",
    ),
    Mutant(
        "an unclean leader keeps the ISR",
        ELECTION,
        "if kind in {ElectionKind.ELIGIBLE, ElectionKind.LAST_KNOWN, ElectionKind.UNCLEAN}:",
        "if kind in {ElectionKind.ELIGIBLE}:",
    ),
    Mutant(
        "a leader changes within an epoch",
        ELECTION,
        "            leader_epoch=partition.leader_epoch + 1,\n            partition_epoch=partition.partition_epoch + 1,\n            eligible",
        "            leader_epoch=partition.leader_epoch,\n            partition_epoch=partition.partition_epoch + 1,\n            eligible",
    ),
    Mutant(
        "a follower at the end of another term joins the ISR",
        VISIBILITY,
        "return follower_log_end_offset >= high_watermark and reached_epoch",
        "return follower_log_end_offset >= high_watermark",
    ),
    Mutant(
        "who has reached the high watermark must pass it to join",
        VISIBILITY,
        "return follower_log_end_offset >= high_watermark and reached_epoch",
        "return follower_log_end_offset > high_watermark and reached_epoch",
    ),
    Mutant(
        "an ISR of min.insync.replicas is too small to commit",
        VISIBILITY,
        "if strict_min_isr and isr_size < min_insync_replicas:",
        "if strict_min_isr and isr_size <= min_insync_replicas:",
    ),
    Mutant(
        "an ISR of min.insync.replicas is too small to take a write",
        VISIBILITY,
        "return acks is not Acks.ALL or isr_size >= min_insync_replicas",
        "return acks is not Acks.ALL or isr_size > min_insync_replicas",
    ),
    Mutant(
        "any ISR takes a write of acks=all",
        VISIBILITY,
        "return acks is not Acks.ALL or isr_size >= min_insync_replicas",
        "return True",
    ),
    Mutant(
        "the time limit itself is too late",
        VISIBILITY,
        "return lag_ms <= lag_time_max_ms",
        "return lag_ms < lag_time_max_ms",
    ),
    Mutant(
        "the message limit itself is too many",
        VISIBILITY,
        "return lag_messages <= lag_max_messages",
        "return lag_messages < lag_max_messages",
    ),
    Mutant(
        "the record at the high watermark is acknowledged",
        VISIBILITY,
        "return last_offset < high_watermark",
        "return last_offset <= high_watermark",
    ),
    Mutant(
        "the record behind the log end is acknowledged",
        VISIBILITY,
        "return last_offset < leader_log_end_offset",
        "return last_offset <= leader_log_end_offset",
    ),
    Mutant(
        "open transactions bound nothing",
        VISIBILITY,
        "return min(high_watermark, first_open_transaction_offset)",
        "return high_watermark",
    ),
    Mutant(
        "a leader outside of the ISR stays",
        ELECTION,
        "if partition.leader in live and partition.leader in partition.isr:",
        "if partition.leader in live:",
    ),
    Mutant(
        "a preferred leader need not be in sync",
        ELECTION,
        "or preferred not in live or preferred not in partition.isr:",
        "or preferred not in live:",
    ),
    Mutant(
        "whoever lives counts as eligible",
        ELECTION,
        "if replica in live and replica in partition.eligible_leader_replicas:",
        "if replica in live:",
    ),
    Mutant(
        "unclean elections are always allowed",
        ELECTION,
        "    if unclean_allowed:\n",
        "    if unclean_allowed or live:\n",
    ),
    Mutant(
        "who lost its page cache stays eligible",
        ELECTION,
        "for r in candidates if r not in unclean_shutdown and r not in isr)",
        "for r in candidates if r not in isr)",
    ),
    Mutant(
        "an ISR that commits keeps eligible replicas beside it",
        ELECTION,
        "return len(isr) >= min(min_insync_replicas, len(partition.replicas))",
        "return len(isr) > min(min_insync_replicas, len(partition.replicas))",
    ),
    Mutant(
        "recovery does not notice what is torn",
        LOAD,
        "any(one.is_torn or one.recovered_end_offset < one.end_offset for one in segments)",
        "any(one.recovered_end_offset < one.base_offset for one in segments)",
    ),
    Mutant(
        "a log that ends at its start is wiped",
        STEPS,
        "if end < self._start and not",
        "if end <= self._start and not",
    ),
    Mutant(
        "a log that ends below its start is kept",
        LOAD,
        "if end < max(log_start_offset, bases[-1])",
        "if end < bases[-1]",
    ),
    Mutant(
        "the recovery point stays above the log",
        DISK,
        "return log_end_offset if clean_shutdown else min(checkpointed, log_end_offset)",
        "return log_end_offset if clean_shutdown else checkpointed",
    ),
    Mutant(
        "loading keeps epochs above the log end",
        EPOCHS,
        "return truncate_from_start(truncate_from_end(epochs, log_end_offset), log_start_offset, rules)",
        "return truncate_from_start(epochs, log_start_offset, rules)",
    ),
    Mutant(
        "recovery continues behind a bad batch",
        STEPS,
        '                    self._mark_deleted(unflushed, "behind-corruption")\n                    break\n',
        "",
    ),
    Mutant(
        "recovery begins a segment late",
        DISK,
        "if base_offset <= recovery_point:",
        "if base_offset - 1 <= recovery_point:",
    ),
    Mutant(
        "kip-320 without the fence on fetches",
        MODELS,
        '"""Return whether both are in the same epoch."""\n        return shares_epoch(leader, follower)',
        '"""Return whether both are in the same epoch."""\n        return presumes(leader) and follows(follower, leader)',
    ),
    Mutant(
        "kip-320 without the fence on requests",
        MODELS,
        "return presumes(leader) and leader.replica.leader_epoch == leader_epoch",
        "return presumes(leader)",
    ),
    Mutant(
        "kip-320 lets followers join before the leader's epoch",
        MODELS,
        "return shares_epoch(leader, follower) and reaches and high_watermark_is_current(leader.replica)",
        "return shares_epoch(leader, follower) and reaches",
    ),
    Mutant(
        "a follower keeps what it should truncate",
        MODELS,
        "            log=follower.log[:truncate_to],\n            high_watermark=min(truncate_to",
        "            log=follower.log,\n            high_watermark=min(truncate_to",
    ),
    Mutant(
        "kip-101 truncates an epoch early",
        MODELS,
        "if record.leader_epoch > last_epoch)",
        "if record.leader_epoch >= last_epoch)",
    ),
)
