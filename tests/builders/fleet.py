"""A summary of an audit with everything that one can hold."""

from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.findings.changes import Change, FindingChange
from kforensics.findings.fleet_summary import (
    AuditComparison,
    AuditTrend,
    BrokerHealth,
    DiskDamage,
    FleetSummary,
    LeaderShare,
    PartitionLine,
    TrendLine,
    TrimmedHistory,
)
from kforensics.findings.model import Severity
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.findings import finding


def fleet_summary(word=""):
    """A summary in which `word` stands wherever a text can come from evidence."""
    found = finding(
        "KF301",
        severity=Severity.CRITICAL,
        statement=f"statement{word}",
        topic_partition=TopicPartition(f"topic{word}", 0),
        citations=(),
    )
    damaged = finding(
        "KF101",
        severity=Severity.ERROR,
        statement=f"damaged{word}",
        topic_partition=TopicPartition(f"topic{word}", 0),
        offsets=OffsetRange(1_000, 1_049),
        citations=(Citation(input=0, path=f"topic{word}-0/00000000000000000000.log"),),
        advice=f"advice{word}",
    )
    return FleetSummary(
        inputs=(Input(path=f"input{word}", kind="broker", broker_id=1, cluster_id=f"cluster{word}"),),
        clusters=(f"cluster{word}",),
        nodes=2,
        replicas=3,
        segments=4,
        bytes=5_000,
        partition_count=2,
        verdicts={"lost": 1, "consistent": 1},
        states={"at-risk": 1, "agree": 1},
        states_by_cluster={f"cluster{word}": {"at-risk": 1, "agree": 1}},
        judged=(),
        brokers=(
            BrokerHealth(
                input=0,
                node_id=1,
                path=f"input{word}",
                kind="broker",
                rack=f"rack{word}",
                health="damaged",
                replicas=3,
                segments=4,
                bytes=5_000,
                damaged_places=1,
                grave_findings=1,
                problems=1,
            ),
        ),
        damage_by_disk=(
            DiskDamage(
                input=0,
                node_id=Absent.UNKNOWN,
                path=f"input{word}",
                log_dir=f"disk{word}",
                damaged_places=1,
                replicas=1,
            ),
        ),
        unclean_elections=1,
        stray_replicas=1,
        stray_bytes=10,
        deleted_replicas=0,
        deleted_bytes=0,
        missing_replicas=1,
        excess_replicas=0,
        under_replicated=1,
        offline=1,
        sharing_rack=0,
        leaders=(LeaderShare(cluster_id=f"cluster{word}", most=2, fewest=0, mean=1.0, busiest=1),),
        lost_certain=56,
        lost_possible=3,
        worst=(
            PartitionLine(
                cluster_id=f"cluster{word}",
                topic=f"topic{word}",
                partition=0,
                verdict="lost",
                state="at-risk",
                lost_certain=56,
                lost_possible=3,
                report="{}",
            ),
        ),
        not_consistent=1,
        findings=(found, damaged),
        finding_ids=(f"KF301/cluster{word}/topic{word}-0/-", f"KF101/cluster{word}/topic{word}-0/1"),
        finding_count=2,
        findings_by_severity={"critical": 1, "error": 1},
        findings_by_code={"KF301": 1, "KF101": 1},
        problems=(Problem(input=0, path=f"bad{word}", message=f"message{word}"),),
        problem_count=1,
        tables=f"tables{word}",
        read_bytes=5_000,
        reused_segments=0,
        audit_id=f"audit{word}",
        audited_ms=1_700_000_000_000,
        seconds={"plan": 0.5},
        findings_by_cluster={f"cluster{word}": {"critical": 1, "error": 1}},
        comparison=fleet_comparison(word),
        counts=((1_699_900_000_000, 1), (1_700_000_000_000, 2)),
    )


def fleet_comparison(word=""):
    """A comparison in which one finding of the summary is new."""
    nothing = ("severity_before", "first_offset_before", "last_offset_before", "statement_before")
    new = FindingChange(
        finding_id=f"KF101/cluster{word}/topic{word}-0/1",
        change=Change.NEW,
        code="KF101",
        cluster_id=f"cluster{word}",
        topic=f"topic{word}",
        partition=0,
        node_id=1,
        statement=f"damaged{word}",
        severity="error",
        severity_rank=2,
        first_offset=1_000,
        last_offset=1_049,
        **dict.fromkeys(nothing),
    )
    return AuditComparison(
        earlier=f"earlier{word}",
        later=f"tables{word}",
        earlier_audit=f"sunday{word}",
        later_audit=f"audit{word}",
        findings_by_change={"new": 1, "unchanged": 1},
        new_findings=(new,),
        worse_findings=(),
        changed_findings=(),
        better_findings=(),
        unchecked_findings=(),
        gone_findings=(),
        changes=(),
        new_nodes=(),
        gone_nodes=(),
        problem_count=0,
    )


def fleet_trend(word=""):
    """Three audits, with fewer findings each time."""
    lines = tuple(
        TrendLine(
            audit_id=f"audit-{number}{word}",
            audited_ms=1_700_000_000_000 + number * 86_400_000,
            clusters=(f"cluster{word}",),
            partition_count=2,
            states={"agree": 2},
            findings_by_severity={"critical": 3 - number, "warning": 4},
            compared_with=f"audit-{number - 1}{word}" if number else Absent.NOT_APPLICABLE,
            findings_by_change={"gone": 1, "unchanged": 6 - number} if number else {},
            gone_nodes=(),
            problem_count=0,
        )
        for number in range(3)
    )
    return AuditTrend(tables=(f"tables{word}",), audit_count=3, lines=lines)


def trimmed_history(word=""):
    """A history of which one audit was removed."""
    return TrimmedHistory(
        tables=f"history{word}",
        days=90,
        audits=(f"audit-1{word}", f"audit-2{word}"),
        trimmed_audits=(f"audit-0{word}",),
        removed_files=9,
        oldest_ms=1_700_086_400_000,
    )
