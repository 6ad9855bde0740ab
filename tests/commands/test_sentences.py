"""The length of sentences of first answers to every recording that is here, with all that there is at the end of it."""

import pytest

from kforensics.cli.app import run
from tests.builders.repeating import OF_EACH_KIND
from tests.conftest import FIXTURES
from tests.sentences import MOST_ON_A_SCREEN, said_on_screens, too_long

pytestmark = pytest.mark.usefixtures("read_once")

RECORDINGS = sorted(path.name.removesuffix(".tar.xz") for path in (FIXTURES / "incidents").glob("*.tar.xz"))


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some(*OF_EACH_KIND)
def test_no_sentence_of_a_first_answer_is_too_long(incident, name, monkeypatch, capsys):
    said = said_on_screens(monkeypatch)
    root = incident(name)

    run(
        [
            "triage",
            str(max((root / "snapshots").iterdir())),
            *([str(root / "logs")] if (root / "logs").is_dir() else []),
        ]
    )

    capsys.readouterr()
    assert said
    assert [] == too_long(said, MOST_ON_A_SCREEN)


@pytest.mark.parametrize(
    ("name", "snapshot"),
    [
        ("late-return-2.4", "02-all-down"),
        ("acks1-tail-2.8", "01-leader-killed-live"),
        ("fast-failover-1.1", "01-in-sync-live"),
        ("unclean-election-2.8", "02-all-down-broker-1-was-alone"),
    ],
)
@pytest.mark.parametrize("command", ["triage", "diff", "explain"])
@pytest.mark.some(
    "triage-late-return-2.4-02-all-down",
    "explain-fast-failover-1.1-01-in-sync-live",
    "diff-acks1-tail-2.8-01-leader-killed-live",
)
def test_no_sentence_about_a_moment_in_the_middle_is_too_long(incident, name, snapshot, command, monkeypatch, capsys):
    """Directories of before what the logs name last: leaders are guessed, and ends lie behind what lines say."""
    said = said_on_screens(monkeypatch)
    root = incident(name)

    run([command, str(root / "snapshots" / snapshot), str(root / "logs")])

    capsys.readouterr()
    assert [] == too_long(said, MOST_ON_A_SCREEN)
