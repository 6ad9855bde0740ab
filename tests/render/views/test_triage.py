"""The screen of triage where what to do takes most of it."""

import pytest

from kforensics import triage
from kforensics.render.emit import OutputFormat, emit
from kforensics.render.view import View


def shown(root, snapshot, **view):
    result = triage(root / "snapshots" / snapshot, root / "logs")
    return "".join(emit(result, OutputFormat.TEXT, View(**view)))


@pytest.mark.parametrize(
    ("name", "snapshot", "cause"),
    [
        (
            "consumer-ahead-4.x",
            "03-old-leader-down-live",
            "Broker 2 became leader of billing-0, billing-2 and derived-0 by unclean election at 2026-11-21 06:33:53 UTC",
        ),
        (
            "power-loss-4.x",
            "99-final",
            "Broker 1, the last in sync, lost the end of its logs of ledger-1 and ledger-3, as start-up recovery found at",
        ),
    ],
)
@pytest.mark.some(1)
def test_the_root_cause_stays_with_actor_and_time_however_much_is_to_do(incident, name, snapshot, cause):
    screen = shown(incident(name), snapshot)

    assert cause in " ".join(screen.split())
    assert len(screen.splitlines()) <= 30


@pytest.mark.slow
def test_of_much_to_do_what_forbids_copies_and_rescues_stays_and_the_rest_is_counted(incident):
    short = shown(incident("unclean-election-2.8"), "02-all-down-broker-1-was-alone")

    assert len(short.splitlines()) <= 30
    assert "Do not start brokers 1 and 2 before their directories are copied" in " ".join(short.split())
    assert short.count("$ cp -a ") == 2
    assert short.count("$ kforensics salvage ") == 2
    assert "kafka-transactions.sh" not in short
    assert "2 of them to do: -v shows all, --steps FILE writes a script." in short
    assert "Lost or at risk: 5 topics (-v lists them)" in short
    assert "held by" not in short

    whole = shown(incident("unclean-election-2.8"), "02-all-down-broker-1-was-alone", verbose=True)

    assert whole.count("$ kafka-transactions.sh ") == 2
    assert "held by" in whole
    assert "more point" not in whole
