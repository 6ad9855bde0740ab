"""Commands compared with each other, a few subjects each time; `python -m tests.trust.contradictions` takes more, and prints figures.

More recordings of which evidence was taken away, as KFORENSICS_SEEDS=2000 pytest -m slow tests/trust/test_contradictions.py.
"""

import os
import shutil

import pytest

from tests.builders.directories import copied
from tests.conftest import FIXTURES
from tests.trust.contradictions import RELATIONS, Subject, contradictions, fixture_subject, recorded, simulated, taken
from tests.trust.taken_evidence import CHANGES

pytestmark = pytest.mark.usefixtures("read_once")

SEEDS = int(os.environ.get("KFORENSICS_SEEDS", "2"))


def test_the_commands_agree_on_the_cluster_of_the_readme():
    assert [] == list(contradictions(fixture_subject()))


@pytest.mark.parametrize("name", ["unclean-election-2.8", "late-return-2.4", "operator-actions-2.5"])
@pytest.mark.some("operator-actions-2.5")
def test_the_commands_agree_on_recordings(name):
    """Of these each shows something that two commands once told apart: aborted transactions, a lost directory, directories that wait for their deletion."""
    relations = ["salvage counts as explain does", "severity and state agree", "verify points to predict"]
    with recorded(name) as subject:
        assert [] == list(contradictions(subject, relations))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.some(1)
def test_the_commands_agree_on_simulated_histories(seed):
    with simulated(seed) as subject:
        assert [] == list(contradictions(subject, [name for name in RELATIONS if name != "a capture is its directory"]))


VERDICTS = ["all commands have one verdict", "all commands count alike", "no loss is called none"]


@pytest.mark.parametrize(
    ("recording", "kind", "seed"),
    [
        ("damaged-leader-2.8", "log-alone", 2),  # history was not asked of a log that is not here
        ("damage-unread-2.8", "nothing", 0),  # a start read the ends of logs alone
        (
            "damaged-leader-2.8",
            "node",
            1,
        ),  # segments that wait for their deletion beside a log that nothing is compared with
        ("consumer-ahead-4.x", "identity", 3),
    ],
)
@pytest.mark.some(1)
def test_the_commands_agree_on_what_is_left_of_recordings(recording, kind, seed):
    with taken(seed, recording, kind) as subject:
        assert [] == list(contradictions(subject, VERDICTS))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(max(SEEDS, 200)))
def test_the_commands_agree_whatever_is_taken_away(seed):
    with taken(seed) as subject:
        assert [] == list(contradictions(subject, VERDICTS))


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
def test_each_kind_of_evidence_can_be_taken_away(kind):
    """Else one that finds nothing to change would seem to be harmless."""
    names = []
    for seed in range(4):
        with taken(seed, "consumer-ahead-4.x", kind) as subject:
            names.append(subject.name.partition(" without ")[2])

    assert any(names)


def test_records_that_a_replica_and_its_earlier_copies_hold_are_counted_once():
    """A snapshot of broker 3 shares nothing with the log of the guessed leader, but begins as that of broker 3 does now."""
    with simulated(4553) as subject:
        assert [] == list(contradictions(subject, ["lost is not present", "salvage counts as explain does"]))


def test_a_broker_that_a_start_refuses_is_promised_nothing(tmp_path):
    """The recovery points have a line without its offset: every log directory of the broker fails."""
    root = tmp_path / "cluster"
    copied(FIXTURES / "unclean-election", root)
    (root / "broker-1" / "recovery-point-offset-checkpoint").write_text("0\n1\norders-0\n")
    subject = Subject("refused", root, tuple(sorted(root.iterdir())))

    answer = subject.diff()["answer"]
    assert "will-not-start" == subject.predict()["answer"]["state"]
    assert "at-risk" == answer["state"]
    assert "broker 1 will discard" not in answer["headline"]
    assert "does not start as it is" in answer["headline"]
    promised = [one for one in subject.diff()["findings"] if one["code"] == "KF201"]
    assert promised
    assert all("once the broker starts" in one["statement"] for one in promised)
    assert [] == list(contradictions(subject, ["predict is as grave as diff", "diff knows what a start refuses"]))


def test_what_a_start_of_the_other_brokers_does_is_as_before(tmp_path):
    root = tmp_path / "cluster"
    copied(FIXTURES / "unclean-election", root)
    shutil.rmtree(root / "broker-2")
    shutil.rmtree(root / "broker-3")
    subject = Subject("alone", root, (root / "broker-1",))

    answer = subject.predict()["answer"]
    assert "unknown" == answer["state"]
    assert "discards no record" in answer["headline"]
    assert any("discards as a follower depends on the log of its leader" in one for one in answer["unknown"])


def test_predict_is_as_grave_as_diff_in_any_layout(tmp_path):
    """The brokers lie in folders of other names, the controller is given last, and one broker holds nothing that others lack."""
    places = []
    for number, name in enumerate(("broker-2", "broker-1", "broker-3", "controller-100")):
        places.append(tmp_path / f"rack {number}" / "disk")
        copied(FIXTURES / "unclean-election" / name, places[-1])
    subject = Subject("racks", tmp_path, tuple(places))

    predicted = subject.predict()
    assert ("loses", 1) == (predicted["answer"]["state"], predicted["exit_code"])
    assert "broker 1 will discard 56 committed records" in predicted["answer"]["headline"]
    assert any(one.startswith("See what each replica truncates") for one in predicted["answer"]["now"])

    narrow = subject.run("predict", "-t", "payments", "--now", "2026-11-21T07:00:00Z")
    assert "will discard" not in narrow["answer"]["headline"]
