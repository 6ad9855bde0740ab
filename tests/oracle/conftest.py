"""The table of what was predicted and what was done, at the end of a run."""

import pytest

ROWS = pytest.StashKey[list[tuple[str, ...]]]()
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


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


@pytest.fixture
def rows(request: pytest.FixtureRequest) -> list[tuple[str, ...]]:
    """Rows of the table, in the order of `HEADINGS`."""
    return request.config.stash[ROWS]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(ROWS, [])
    if not rows:
        return
    terminalreporter.section("predicted, and what brokers did")
    for row in (HEADINGS, ("---",) * len(HEADINGS), *rows):
        terminalreporter.write_line("| " + " | ".join(row) + " |")
