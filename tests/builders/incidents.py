"""An explanation with everything that one can hold."""

from dataclasses import replace

from kforensics.commands.explanation import Explanation
from kforensics.damage import Absent, Span
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.model import Severity
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.bugs.evidence import BugTrace
from kforensics.reconcile.committed.judge import CommittedCounts
from kforensics.reconcile.history.causes import Cause, CauseName
from kforensics.reconcile.history.log_copies import LogOutline
from kforensics.reconcile.history.losses import Holder, Loss
from kforensics.reconcile.history.residuals import Residual, TornTransactions
from kforensics.reconcile.incident.model import ExplainedTruncation, GroupAtRisk, PartitionIncident
from kforensics.reconcile.incident.operations import Operation
from kforensics.reconcile.observed.clocks import Clock
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.leadership import Election, LeadershipAccount, Risk
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.units import EpochEntry, OffsetRange, TopicPartition
from kforensics.words import Prohibition
from tests.builders.findings import finding


def explanation(word):
    """An explanation in which `word` stands wherever a text can come from evidence: 20 fields."""
    partition = TopicPartition(f"topic{word}", 0)
    cited = Citation(input=0, path=f"dir/{word}.log", span=Span(3, 4))
    line = Citation(input=1, path=".", line=7)
    cause = Cause(name=CauseName.UNCLEAN_ELECTION, confidence="proven", reason=f"reason{word}", citations=(cited,))
    created = Leadership(
        leader=2,
        leader_epoch=0,
        isr=frozenset({2}),
        replicas=(1, 2, 3),
        unclean=False,
        recorded_at=10,
        time_ms=1_795_243_190_000,
        citation=Citation(input=1, path=".", line=3),
    )
    elected = replace(
        created,
        leader=1,
        leader_epoch=1,
        isr=frozenset({1}),
        unclean=True,
        recorded_at=20,
        time_ms=1_795_243_207_719,
        citation=Citation(input=1, path=".", line=5),
    )
    account = LeadershipAccount(
        partition=partition,
        states=(created, elected),
        elections=(
            Election(None, created, None, Absent.UNKNOWN),
            Election(created, elected, Risk.UNCLEAN, 2),
        ),
        gaps=(),
        source="metadata-log",
        assigned=frozenset({1, 2, 3}),
    )
    truncation = ExplainedTruncation(
        broker_id=1,
        topic_partition=partition,
        time_ms=1_795_243_212_042,
        from_offset=103,
        to_offset=60,
        protocol="kip-595",
        decided_by="epoch",
        leader=2,
        leader_epoch=1,
        expected_offset=60,
        agrees=True,
        steps=(f"step{word}",),
        is_logged=True,
        cause=cause,
        committed=CommittedCounts(certain=43, possible=0, no=0, markers=0),
        citations=(line, cited),
    )
    loss = Loss(
        topic_partition=partition,
        offsets=OffsetRange(60, 102),
        records=43,
        markers=1,
        committed="certain",
        was_committed="certain",
        is_replaced=True,
        leader_epoch=0,
        reason=f"because{word}",
        cause=CauseName.UNCLEAN_ELECTION,
        held_by=(Holder(input=0, path=f"held{word}", broker_id=1, is_final=False, in_use=False),),
        citations=(cited, elected.citation),
        confidence="proven",
    )

    def log(rank, end, epochs, *, broker_id=1):
        return LogOutline(
            input=0,
            path=f"held{word}",
            broker_id=broker_id,
            rank=rank,
            is_final=rank == 1,
            is_remnant=False,
            state=f"state{word}" if broker_id == 3 else "live",
            log_start_offset=0,
            log_end_offset=end,
            epochs=epochs,
            high_watermark=60,
        )

    incident = PartitionIncident(
        partition=partition,
        leader=2,
        log_start_offset=0,
        log_end_offset=93,
        leaderships=(created, elected),
        account=account,
        is_leader_known=True,
        state="lost",
        truncations=(truncation,),
        losses=(loss,),
        groups=(GroupAtRisk(group=f"group{word}", offset=120, kind="ahead", citation=cited),),
        torn_transactions=TornTransactions(),
        other_topics=(),
        copies=3,
        logs=(
            log(0, 103, (EpochEntry(0, 0),)),
            log(1, 93, (EpochEntry(0, 0), EpochEntry(1, 60))),
            log(1, 93, (EpochEntry(0, 0), EpochEntry(1, 60)), broker_id=3),
        ),
        residuals=(
            Residual(broker_id=3, offset=58, protocol=ProtocolName.KIP_595, old_format=False, citations=(cited,)),
        ),
    )
    entries = (
        TimelineEntry(
            kind=EventKind.BROKER_HALTED,
            time_ms=1_795_243_200_000,
            broker_id=1,
            detail={"reason": f"halt{word}"},
            citations=(line,),
        ),
        TimelineEntry(
            kind=EventKind.STRAY_LOG,
            time_ms=Absent.UNKNOWN,
            topic_partition=partition,
            detail={"directory": f"/var/{word}"},
            citations=(cited,),
        ),
    )
    return Explanation(
        inputs=(
            Input(path=f"input{word}", kind="broker", broker_id=1, cluster_id=f"cluster{word}"),
            Input(path=f"log{word}", kind="log-file", kafka_version_hint=f"version{word}"),
        ),
        timeline=entries,
        incidents=(incident,),
        partitions=1,
        clocks=((f"clock{word}", Clock(shift_ms=1000, source="assumed")),),
        answer=Answer(
            state=State.LOST,
            headline=f"43 records are lost from topic{word}.",
            now=(Prohibition(f"Do not start {word}."), f"Keep {word}."),
            unknown=(f"missing{word}",),
        ),
        conclusion=(f"43 records are lost from topic{word}.", f"more{word}"),
        advice=(f"Do not start {word}.", f"Keep {word}."),
        missing=(f"missing{word}",),
        notes=(f"note{word}",),
        findings=(
            finding(
                "KF301",
                severity=Severity.CRITICAL,
                statement=f"statement{word}",
                topic_partition=partition,
                citations=(cited,),
            ),
        ),
        problems=(Problem(input=0, path=f"bad{word}", message=f"message{word}"),),
        operations=(
            Operation(
                kind="reassignment",
                topic_partition=partition,
                time_ms=Absent.UNKNOWN,
                meaning=f"moved{word}",
                citations=(cited,),
            ),
        ),
        broker_bugs=(
            BugTrace(
                jira="KAFKA-13315",
                broker_id=1,
                confidence="likely",
                trace=f"trace{word}",
                citations=(line,),
            ),
        ),
    )
