"""The document of `logs`: kinds of lines, what happened in order of time, and an account of each file."""

from typing import Any

from kforensics.commands.logs import LogsView, Run
from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.formats.log_lines.table import Message, advice_of
from kforensics.reconcile.observed.clocks import Clock
from kforensics.render.json.explain import KINDS
from kforensics.render.json.shape import Document, Each, Field
from kforensics.units import TopicPartition


def _asked(body: LogsView) -> LogsView | None:
    return body if body.is_of_a_line else None


def _files(body: LogsView) -> tuple[tuple[LogFile, Clock], ...]:
    return tuple(zip(body.files, body.clocks, strict=True))


def _name(partition: TopicPartition | Absent) -> str | None:
    return None if isinstance(partition, Absent) else str(partition)


def _partition_of_message(message: Message) -> str | None:
    return _name(message.topic_partition)


def _partition_of_run(one: Run) -> str | None:
    return _name(one.first.event.topic_partition)


def _advice_of_message(message: Message) -> str:
    return advice_of(message.fields, message.row.number)


def _known(one: tuple[LogFile, Clock]) -> int:
    return sum(one[0].counts.values())


def _unknown(one: tuple[LogFile, Clock]) -> list[tuple[str, int]]:
    return [*one[0].unknown.items()]


LOGS = Document(
    "logs",
    LogsView,
    {
        "line": Field(
            _asked,
            "With `--line`: the line that was asked for.",
            {
                "text": "asked_line",
                "message": Field(
                    "message",
                    "What it says; null where it is not known.",
                    {
                        "kind": "row.section.kind",
                        "weight": "row.section.weight",
                        "meaning": ("row.section.meaning", "What such a line means."),
                        "advice": (_advice_of_message, "What to do about it; empty where it calls for nothing."),
                        "versions": ("row.versions", "The versions of Kafka that write it."),
                        "partition": _partition_of_message,
                        "node": "broker_id",
                        "detail": Field(
                            lambda one: dict(one.fields), "The values of the line by their names.", dict[str, Any]
                        ),
                    },
                ),
            },
        ),
        "kinds": Field(
            "kinds",
            "The known lines by their kind, causes first.",
            KINDS,
        ),
        "files": Field(
            _files,
            "An account of each log file.",
            Each(
                {
                    "input": "0.input",
                    "path": "0.path",
                    "node": "0.node_id",
                    "lines": "0.census.lines",
                    "not_searched": (
                        "0.not_searched",
                        "The lines outside of the time asked about, which were only counted.",
                    ),
                    "known": (_known, "The lines that are known."),
                    "first_ms": ("0.first_time_ms", "By its own clock."),
                    "last_ms": ("0.last_time_ms", "By its own clock."),
                    "shift_ms": "1.shift_ms",
                    "skew_ms": "1.skew_ms",
                    "clock": ("1.source", "What shows its time zone, as `source` of `clocks[]` in `explain`."),
                    "unknown": Field(
                        _unknown,
                        "The most frequent messages that are not known, without their numbers, as far as they were looked at.",
                        Each({"message": "0", "lines": "1"}),
                    ),
                }
            ),
        ),
        "outside": ("outside", "The files that were not read: all their lines are outside of the time asked about."),
        "failures": Field(
            "failures",
            "Nodes whose last start failed, whose process ended by itself, or of which log directories failed.",
            Each({"node": "node_id", "time_ms": "", "words": "", "citations": ""}),
        ),
        "events": Field(
            "runs",
            "What is not harmless, in order of time: lines of one kind by one node that follow each other.",
            Each(
                {
                    "kind": "section.kind",
                    "weight": "section.weight",
                    "time_ms": "first.time_ms",
                    "until_ms": ("", "The time of the last one."),
                    "lines": "",
                    "node": "first.node_id",
                    "partition": _partition_of_run,
                    "detail": Field(
                        lambda one: dict(one.first.event.fields),
                        "The values of the first line by their names.",
                        dict[str, Any],
                    ),
                    "citation": "first.citation",
                }
            ),
        ),
    },
)
