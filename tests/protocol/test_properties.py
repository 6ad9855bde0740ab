"""The rules against logs that are spelled out record by record: no look-up, no bisection, no cache."""

from itertools import groupby, product

from hypothesis import example, given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.protocol.election import (
    Acks,
    accepts_write,
    follower_high_watermark,
    is_acknowledged,
    is_in_sync_by_messages,
    is_in_sync_by_time,
    last_stable_offset,
    leader_high_watermark,
    may_join_isr,
)
from kforensics.protocol.epochs import (
    EpochEndOffset,
    Epochs,
    assign,
    end_offset_for_epoch,
    truncate_from_end,
    truncate_from_start,
)
from kforensics.protocol.loading.load import KnownSegment, load_known_log
from kforensics.protocol.truncation import (
    LogState,
    ProtocolName,
    TruncationRule,
    follower_truncation,
    leader_after_election,
    loaded_high_watermark,
    quorum_truncation,
    truncate_log,
)
from kforensics.units import EpochEntry
from tests.builders.epochs import are_rising

NOTHING = Absent.NOT_APPLICABLE


class SpelledLog:
    """The epoch of every record, and of the term that has written nothing yet."""

    def __init__(self):
        self.start = 0
        self.epochs = []
        self.idle_term = None
        self.newest = -1

    @property
    def end(self):
        return self.start + len(self.epochs)

    def elect(self, step):
        self.newest += step
        self.idle_term = self.newest

    def append(self, count):
        if self.newest >= 0:
            self.epochs += [self.newest] * count
            self.idle_term = None

    def truncation(self, offset):
        del self.epochs[offset - self.start :]
        self.idle_term = None

    def raise_start(self, offset):
        gone = self.epochs[: offset - self.start]
        del self.epochs[: offset - self.start]
        self.start = offset
        if not self.epochs and self.idle_term is None and gone:
            self.idle_term = gone[-1]

    def entries(self):
        found, offset = [], self.start
        for epoch, records in groupby(self.epochs):
            found.append((epoch, offset))
            offset += len(list(records))
        return found + ([] if self.idle_term is None else [(self.idle_term, self.end)])

    def end_of(self, requested):
        entries = self.entries()
        if not entries or requested > entries[-1][0]:
            return Absent.UNKNOWN
        known = [epoch for epoch, _start in entries if epoch <= requested]
        later = [start for epoch, start in entries if epoch > requested]
        return EpochEndOffset(known[-1] if known else requested, later[0] if later else self.end)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("elect"), st.integers(1, 2)),
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("cut"), st.integers(0, 4)),
        st.tuples(st.just("start"), st.integers(0, 4)),
    ),
    max_size=14,
)


@given(OPERATIONS)
def test_the_cache_is_what_the_records_say(operations):
    spelled = SpelledLog()
    log = LogState(epochs=(), log_start_offset=0, log_end_offset=0, high_watermark=0)
    for action, number in operations:
        match action:
            case "elect":
                spelled.elect(number)
                log = leader_after_election(log, spelled.newest)
            case "append" if spelled.newest >= 0:
                epochs = assign(log.epochs, spelled.newest, log.log_end_offset)
                spelled.append(number)
                log = LogState(
                    epochs=epochs,
                    log_start_offset=spelled.start,
                    log_end_offset=spelled.end,
                    high_watermark=spelled.end,
                )
            case "cut":
                target = max(spelled.end - number, spelled.start)
                spelled.truncation(target)
                log = truncate_log(log, target)
            case "start":
                target = min(spelled.start + number, spelled.end)
                spelled.raise_start(target)
                log = LogState(
                    epochs=truncate_from_start(log.epochs, target),
                    log_start_offset=target,
                    log_end_offset=spelled.end,
                    high_watermark=spelled.end,
                )
        assert list(log.epochs) == [EpochEntry(*entry) for entry in spelled.entries()]
        assert (log.log_start_offset, log.log_end_offset) == (spelled.start, spelled.end)
        assert log.high_watermark == spelled.end
        for requested in range(spelled.newest + 2):
            assert end_offset_for_epoch(log.epochs, log.log_end_offset, requested) == spelled.end_of(requested)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=12), st.integers(0, 50), st.integers(0, 10))
def test_assign_keeps_the_cache_rising_and_every_lookup_has_an_answer(terms, truncation, requested):
    entries: Epochs = ()
    for leader_epoch, start_offset in terms:
        entries = assign(entries, leader_epoch, start_offset)
        assert are_rising(entries)
        assert entries[-1].leader_epoch == leader_epoch
    shorter = truncate_from_end(entries, truncation)
    assert all(entry.start_offset < truncation for entry in shorter)
    assert are_rising(truncate_from_start(entries, truncation))
    answer = end_offset_for_epoch(entries, 60, requested)
    if not isinstance(answer, Absent):
        assert not isinstance(answer.leader_epoch, Absent)
        assert answer.leader_epoch <= requested
        assert answer.end_offset <= 60


@st.composite
def fenced_histories(draw, first_epoch=0):
    """Logs of three replicas under fenced leadership: only the leader of the newest epoch writes, followers align before they copy."""
    logs: list[list[tuple[int, int, int]]] = [[], [], []]
    leader_epoch = first_epoch
    leader = 0
    for _ in range(draw(st.integers(1, 20))):
        action = draw(st.sampled_from(["elect", "write", "write", "copy", "copy"]))
        if action == "elect":
            leader = draw(st.integers(0, 2))
            leader_epoch += 1
        elif action == "write":
            logs[leader].append((leader_epoch, len(logs[leader]), leader))
        else:
            follower = draw(st.integers(0, 2))
            if follower != leader:
                common = common_prefix(logs[follower], logs[leader])
                logs[follower][common:] = logs[leader][common : common + draw(st.integers(1, 3))]
    return logs, leader, leader_epoch + 1


def common_prefix(first, second):
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    return length


def state_of(log, *, high_watermark: int | Absent = 0, start=0):
    entries: Epochs = ()
    for offset, record in enumerate(log):
        entries = assign(entries, record[0], offset)
    return LogState(
        epochs=truncate_from_start(entries, start),
        log_start_offset=start,
        log_end_offset=len(log),
        high_watermark=high_watermark,
    )


def lagging(history):
    """Each follower, the leader after its election, and where their logs part."""
    logs, leader, new_epoch = history
    elected = leader_after_election(state_of(logs[leader]), new_epoch)
    for replica, log in enumerate(logs):
        if replica != leader:
            yield log, elected, common_prefix(log, logs[leader])


ALONE_IN_TURN = ([[(1, 0, 0), (3, 1, 0), (5, 2, 0)], [(2, 0, 1), (4, 1, 1), (6, 2, 1)], []], 1, 7)
"""Two brokers lead in turn, each without having followed the other: a round for every term."""


@given(fenced_histories())
@example(ALONE_IN_TURN)
def test_fenced_histories_are_truncated_at_the_longest_common_prefix(history):
    for log, elected, common in lagging(history):
        follower = state_of(log, high_watermark=common)
        for protocol in (ProtocolName.KIP_279, ProtocolName.KIP_595):
            outcome = follower_truncation(follower, elected, protocol=protocol)
            assert outcome.offset == (common if common < len(log) else NOTHING)
            assert outcome.after.log_end_offset == outcome.after.high_watermark == common
            assert not outcome.below_high_watermark
            assert not outcome.endless


@given(fenced_histories(), st.integers(1, 3))
def test_a_truncation_below_the_high_watermark_is_reported(history, more):
    for log, elected, common in lagging(history):
        follower = state_of(log, high_watermark=min(common + more, len(log)))
        for protocol in (ProtocolName.KIP_279, ProtocolName.KIP_595):
            outcome = follower_truncation(follower, elected, protocol=protocol)
            assert outcome.below_high_watermark == (common < len(log))


@given(fenced_histories(), st.integers(0, 9), st.integers(0, 9))
@example(([[(3, 0, 0)], [(2, 0, 1), (2, 1, 1), (2, 2, 1), (4, 3, 1)], []], 1, 5), 2, 0)
def test_what_retention_took_is_fetched_from_where_the_leader_begins(history, leader_start, follower_start):
    logs, leader, new_epoch = history
    leader_start = min(leader_start, len(logs[leader]))
    elected = leader_after_election(state_of(logs[leader], start=leader_start), new_epoch)
    for replica, log in enumerate(logs):
        start = min(follower_start, len(log))
        common = common_prefix(log, logs[leader])
        if replica == leader or common < start:
            continue
        follower = state_of(log, start=start, high_watermark=max(common, start))
        for protocol in (ProtocolName.KIP_279, ProtocolName.KIP_595):
            outcome = follower_truncation(follower, elected, protocol=protocol)
            after = outcome.after
            if common < leader_start:
                # What differs below the leader's start goes when the follower takes that start over.
                assert after.log_end_offset == leader_start
                assert after.log_start_offset in {start, leader_start}
                if protocol is ProtocolName.KIP_595 and len(log) < leader_start:
                    # Out of range, whether or not the epochs differ too (`Partition.readRecords`).
                    assert TruncationRule.DIVERGING_EPOCH not in {step.rule for step in outcome.steps}
            else:
                assert (after.log_start_offset, after.log_end_offset) == (start, common)


@given(fenced_histories(first_epoch=1))
@example(ALONE_IN_TURN)
def test_members_of_the_quorum_truncate_at_the_longest_common_prefix(history):
    for log, elected, common in lagging(history):
        outcome = quorum_truncation(state_of(log, high_watermark=Absent.UNKNOWN), elected)
        assert outcome.after.log_end_offset == common
        assert not outcome.endless


BATCHES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1), st.booleans()), max_size=4)


@given(
    st.lists(BATCHES, min_size=1, max_size=4),
    st.booleans(),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 30),
)
@example([[(1, 0, False), (1, 0, True)], [(1, 0, False)]], False, 1, 0, 0)
def test_recovery_keeps_what_is_sound_from_the_segment_of_the_recovery_point_on(
    drawn, clean, point, start, truncated_to
):
    """Batches are (records, whether a new epoch begins, whether it is damaged); segments follow each other."""
    segments, rows, offset, epoch = [], [], 0, 0
    for batches in [*filter(None, drawn[:-1]), drawn[-1]]:  # only the last may be empty: two of one base are one file
        here, base = [], offset
        for count, step, is_bad in batches:
            epoch += step
            here.append((offset, offset + count, epoch, is_bad))
            offset += count
        sound_end = next((first for first, _end, _epoch, is_bad in here if is_bad), offset)
        starts = [EpochEntry(number, next(rows)[0]) for number, rows in groupby(here, key=lambda row: row[2])]
        segments.append(
            KnownSegment(
                base_offset=base,
                end_offset=offset,
                recovered_end_offset=sound_end,
                is_torn=sound_end < offset,
                epochs=tuple(starts),
            )
        )
        rows.append(here)
    begins = max((at for at, one in enumerate(segments) if one.base_offset <= point), default=0)
    end, kept = offset, list(range(len(segments)))
    for at in range(begins, len(segments)) if not clean else ():
        bad = [first for first, _end, _epoch, is_bad in rows[at] if is_bad]
        if bad:
            end, kept = bad[0], list(range(at + 1))
            break
    is_wiped = end < start
    flushed: Epochs = ()
    for row in (row for at in range(len(segments) if clean else begins) for row in rows[at]):
        flushed = assign(flushed, row[2], row[0])
    if clean:
        # A file that was not rewritten after the log lost its end.
        flushed = (*flushed, EpochEntry(epoch + 1, offset + 1))
    outcome = load_known_log(
        segments, clean_shutdown=clean, recovery_point=point, log_start_offset=start, checkpoint_epochs=flushed
    )
    log_end = start if is_wiped else end
    assert (outcome.state.log_start_offset, outcome.state.log_end_offset) == (start, log_end)
    assert outcome.kept_count == (0 if is_wiped else len(kept))
    high_watermark = loaded_high_watermark(truncated_to, start, log_end)
    assert high_watermark == min(max(truncated_to, start), log_end)
    assert outcome.state.recovery_point == max(log_end if clean else min(point, log_end), start)
    if not is_wiped:
        held = [row for at in kept for row in rows[at] if start < row[1] and row[0] < end]
        expected = [(number, max(next(found)[0], start)) for number, found in groupby(held, key=lambda row: row[2])]
        assert [tuple(entry) for entry in outcome.state.epochs if entry.start_offset < end] == expected
        assert all(entry.start_offset <= end for entry in outcome.state.epochs)


FEW = range(5)


def test_committed_is_what_every_member_holds():
    for high_watermark, one, other, isr_size, needed, strict in product(FEW, FEW, FEW, (1, 2), (1, 2), (False, True)):
        ends = (one, other)[:isr_size]
        raised = leader_high_watermark(
            high_watermark, ends, isr_size=isr_size, min_insync_replicas=needed, strict_min_isr=strict
        )
        held_by_all = set(range(ends[0])).intersection(*(range(end) for end in ends))
        may_rise = not strict or isr_size >= needed
        assert raised == max(high_watermark, len(held_by_all) if may_rise else 0)
        assert accepts_write(Acks.ALL, isr_size=isr_size, min_insync_replicas=needed) == (needed <= isr_size)
        assert accepts_write(Acks.LEADER, isr_size=isr_size, min_insync_replicas=needed)


def test_a_record_is_read_below_what_bounds_it():
    for offset, first, second in product(FEW, FEW, FEW):
        both = offset in set(range(first)) & set(range(second))
        assert (offset < follower_high_watermark(first, second)) == both
        assert (offset < last_stable_offset(first, second)) == both
        assert is_acknowledged(Acks.ALL, offset, leader_log_end_offset=9, high_watermark=first) == (
            offset in range(first)
        )
        assert is_acknowledged(Acks.LEADER, offset, leader_log_end_offset=first, high_watermark=0) == (
            offset in range(first)
        )
        assert may_join_isr(offset, first, second, needs_epoch_start=True) == (
            set(range(first)) | set(range(second)) <= set(range(offset))
        )


def test_who_is_at_the_limit_is_in_sync():
    assert [is_in_sync_by_time(lag_ms=lag, lag_time_max_ms=10) for lag in (9, 10, 11)] == [True, True, False]
    assert [is_in_sync_by_messages(lag_messages=lag, lag_max_messages=10) for lag in (9, 10, 11)] == [True, True, False]
