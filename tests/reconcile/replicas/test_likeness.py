"""What is said of one partition whose replicas hold one sound log is what each partition like it would be told by itself."""

import random
from dataclasses import dataclass, replace

import pytest

from kforensics.ask.model import Ask
from kforensics.case.comparison import QUIET_STATES, QUIET_VERDICTS
from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue
from kforensics.evidence.replica.collect import ReplicaCopy
from kforensics.findings.answers.diff import judged_partition
from kforensics.findings.rules.replicas import partition_findings
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.observed.facts import ClusterFacts, GivenBroker, LoggedEnd
from kforensics.reconcile.replicas.likeness import likeness_of, not_compared_below
from kforensics.reconcile.replicas.partition import PartitionJudge
from kforensics.units import Depth, TopicPartition
from tests.builders.history import leadership
from tests.builders.logs import HERE, MemoryReader, batch, replica


@dataclass(frozen=True)
class Facts(ClusterFacts):
    states: tuple = ()
    is_kraft: bool = False
    logged_end: int = 0

    def logged_ends(self, partition):
        return {1: LoggedEnd(self.logged_end, 5, HERE)}

    def leaderships(self, partition, topic_id):
        return self.states

    def has_metadata_log(self):
        return self.is_kraft


OPTIONS = [
    Ask(),
    Ask(replicas=(1, 2, 3), is_stopped=True),
    Ask(protocol=ProtocolName.HW),
    Ask(protocol=ProtocolName.KIP_101, replicas=(1, 2), leader=2),
    Ask(protocol=ProtocolName.KIP_279, replicas=(1, 2, 3, 4)),
    Ask(is_stopped=True, leader=1),
]


GIVEN = {number: GivenBroker(broker_id=number, directory_ids=frozenset(), is_empty=False) for number in (1, 2, 3)}


def made_partition(made: random.Random, number: int):
    """Replicas that mostly hold the same log, and what is known of their leaders."""
    start = made.choice((0, 0, 7, 65_530, 1_000_000))
    ends = sorted({made.randrange(1, 200) for _ in range(made.randrange(1, 6))})
    epoch, magic = made.choice((0, 0, 3, 40)), made.choice((2,) * 10 + (1,))
    batches = []
    for first, end in zip((0, *ends), ends, strict=False):
        epoch += made.choice((0, 0, 1, 5))
        batches.append(batch(start + first, start + end - 1, epoch, magic=magic))
    middle = made.randrange(len(batches) + 1)
    logs = [one for one in (batches[:middle], batches[middle:]) if one] if made.random() < 0.4 else [batches]
    end = start + ends[-1]
    claimed = made.choice((None,) * 12 + (((epoch, start), (epoch + 1, end)), ((0, 0),), ()))
    named = TopicPartition(f"topic-{number}", number % 7)
    common = {
        "checkpoint": claimed,
        "recovery_point": made.choice((None, end, start)),
        "log_start": made.choice((None, None, start, start + 1)),
        "cleaned": made.choice((None, None, None, end)),
        "clean": made.choice((True, False)),
        "topic_id": made.choice((Absent.NOT_WRITTEN, "a")),
    }
    is_by_ends = number % 3 == 2  # no draw: the others stay as they are
    replicas = []
    for broker in range(1, made.choice((2, 3, 3, 3, 4))):
        odd = made.random()
        own = dict(common, high_watermark=made.choice((None, start, end - 1, end, end, end, end, end + 3)))
        held = [logs[0][:-1], *logs[1:]] if odd < 0.03 and len(logs[0]) > 1 else logs
        if odd > 0.97:
            own |= made.choice(({"state": "stray"}, {"topic_id": "b"}, {"clean": not own["clean"]}, {"checkpoint": ()}))
        one = replica(broker, *held, **own)
        if is_by_ends:
            segments = tuple(replace(each, unread_below=each.first_offset + 1) for each in one.segments)
            one = replace(one, segments=segments)
        replicas.append(replace(one, topic_partition=named, path=f"{named.topic}-{named.partition}"))
    if made.random() < 0.05:
        replicas = [replace(one, checkpoint_epochs=Absent.NOT_WRITTEN) for one in replicas]
    isr = {one.broker_id for one in replicas if made.random() < 0.9}
    known = leadership(made.choice((1, 1, 2, 5)), epoch + made.choice((0, 0, 1, -1)), isr)
    if made.random() < 0.5:
        known = replace(known, replicas=made.choice(((1, 2), (1, 2, 3))))
    earlier = leadership(1, 0, {1, 2})
    states = made.choice(((), (known,), (earlier, known)))
    return replicas, Facts(states=states, is_kraft=bool(states))


def said_of(judge):
    is_by_ends = any(one.unread_below for one in judge.replicas)
    judge.ask = replace(judge.ask, depth=Depth.TAILS if is_by_ends else Depth.CONTENT)
    report = judge.report()
    findings = tuple(partition_findings(report))
    judged = judged_partition(report)
    is_quiet = not findings and judged.state in QUIET_STATES and report.verdict in QUIET_VERDICTS
    return judged, report.verdict, is_quiet


def judges_of(made, number, options):
    """A partition, and the same with its first replica alone, beside copies of it where the others are such."""
    replicas, facts = made_partition(made, number)
    given = {broker: one for broker, one in GIVEN.items() if made.random() < 0.97}
    if made.random() < 0.3:
        lost = CheckpointValue(value=7, citation=HERE)
        given[3] = replace(GIVEN[3], named={replicas[0].topic_partition: lost})
    known = {"ask": options, "given": given}
    judge = PartitionJudge(replicas, MemoryReader({}), facts, **known)
    first, *others = replicas
    copies = [copied(one) for one in others if like(one, first)]
    alone = PartitionJudge([first], MemoryReader({}), facts, **known)
    return judge, alone, copies if len(copies) == len(others) else ()


def like(one, other):
    """Whether captures would say the same of both, high watermarks aside."""
    fields = (
        "state",
        "topic_id",
        "checkpoint_epochs",
        "recovery_point",
        "log_start",
        "cleaner_point",
        "clean_shutdown",
    )
    held = [[bytes(segment.batches) for segment in replica.segments] for replica in (one, other)]
    return held[0] == held[1] and all(getattr(one, name) == getattr(other, name) for name in fields)


def copied(one):
    recorded = one.high_watermark
    return ReplicaCopy(one.input, one.broker_id, recorded if isinstance(recorded, Absent) else recorded.value)


def check(options, count, seed):
    """Judge partitions by themselves and by others like them, and return how many were like another one, and like one by copies of its first replica."""
    made = random.Random(f"{seed} {options.protocol} {options.replicas} {options.is_stopped} {options.leader}")
    quiet: dict = {}
    met = short = 0
    for number in range(count):
        judge, alone, copies = judges_of(made, number, options)
        like, by_copies = likeness_of(judge), likeness_of(alone, copies) if copies else None
        judged, verdict, is_quiet = said_of(judge)
        assert by_copies in {None, like}, judge.replicas
        if like is None:
            continue
        like = (like, tuple(judge.given))  # the same in all of a comparison
        short += by_copies is not None
        if like in quiet:
            met += 1
            known, known_verdict = quiet[like]
            by_itself = (judged, verdict, is_quiet)
            assert (known.led_by(judge.account, not_compared_below(judge)), known_verdict, True) == by_itself, (
                judge.replicas
            )
            assert by_copies is None or alone.account == judge.account
        elif is_quiet:
            quiet[like] = judged, verdict
    return met, short


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
@pytest.mark.some(1)
def test_partitions_that_are_alike_are_judged_alike(options):
    met, short = check(options, count=400, seed=0)

    assert met
    assert short


def test_logs_that_end_before_a_logged_offset_are_like_no_others():
    logs = [replica(broker, [batch(0, 9, 0)], checkpoint=[(0, 0)]) for broker in (1, 2)]
    judges = [PartitionJudge(logs, MemoryReader({}), Facts(logged_end=end)) for end in (10, 11)]

    assert [True, False] == [likeness_of(judge) is not None for judge in judges]
