"""The table of what was predicted and what was done, at the end of a run."""

import pytest

PROPERTY = "oracle"
HEADINGS = (
    "Kafka",
    "history",
    "protocol",
    "rule",
    "predicted",
    "brokers did",
    "differs from, predicted",
    "differs from",
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    rows = [value for report in reports for name, value in report.user_properties if name == PROPERTY]
    if not rows:
        return
    terminalreporter.section("predicted, and what brokers did")
    for row in (HEADINGS, ("---",) * len(HEADINGS), *rows):
        terminalreporter.write_line("| " + " | ".join(row) + " |")
