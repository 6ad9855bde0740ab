"""The audit of a fleet as one page, without script and without anything from elsewhere."""

from pathlib import Path

from kforensics.damage import Absent
from kforensics.errors import MissingExtra
from kforensics.pipeline.fleet_summary import FleetSummary
from kforensics.render.escape import escape_text
from kforensics.render.fleet import answer_lines, placement_words, totals_words
from kforensics.render.text import byte_count

MOST_FINDINGS = 1_000
MOST_PROBLEMS = 200

_TEMPLATES = Path(__file__).parent / "templates"


def fleet_html(summary: FleetSummary) -> str:
    """The page.

    Raises:
        MissingExtra: jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("html", "--format html") from error
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=False
    )
    _, head, rest = answer_lines(summary)
    findings = summary.findings[:MOST_FINDINGS]
    return environment.get_template("fleet.html").render(
        answer=head,
        advice=rest,
        totals=totals_words(summary),
        verdicts=[{"name": name, "count": count} for name, count in summary.verdicts.items()],
        worst=[
            {
                "name": escape_text(f"{one.topic}-{one.partition}"),
                "verdict": one.verdict,
                "lost_certain": one.lost_certain,
                "lost_possible": one.lost_possible,
            }
            for one in summary.worst
        ],
        more_partitions=summary.not_consistent - len(summary.worst),
        nodes=[
            {
                "node": _known(one.node_id),
                "health": one.health,
                "rack": escape_text(_known(one.rack)),
                "replicas": one.replicas,
                "bytes": byte_count(one.bytes),
                "findings": one.grave_findings,
                "damaged": one.damaged_places,
                "path": escape_text(one.path),
            }
            for one in summary.brokers
        ],
        disks=[
            {
                "path": escape_text(f"{one.path}/{one.log_dir}".rstrip("/")),
                "node": _known(one.node_id),
                "places": one.damaged_places,
                "replicas": one.replicas,
            }
            for one in summary.damage_by_disk
        ],
        placement=placement_words(summary),
        findings=[
            {
                "code": one.code,
                "severity": one.severity.value,
                "statement": escape_text(one.statement),
                "advice": escape_text(one.advice),
            }
            for one in findings
        ],
        more_findings=summary.finding_count - len(findings),
        problems=[
            escape_text(
                f"{summary.inputs[one.input].path if one.input < len(summary.inputs) else ''}/{one.path}: {one.message}"
            )
            for one in summary.problems[:MOST_PROBLEMS]
        ],
        tables=escape_text(summary.tables),
    )


def _known(value: object) -> str:
    return "?" if isinstance(value, Absent) else str(value)
