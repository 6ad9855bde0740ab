"""Voters of the metadata quorum that came back with empty disks: no command is calm, and none says that nothing was committed."""

import json
import re
import shutil

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied

pytestmark = pytest.mark.usefixtures("read_once")

CALM = {"nothing-lost", "agree", "behind", "same-ends", "starts-unchanged", "starts-and-repairs", "complete"}
COMMANDS = (
    ("explain",),
    ("diff",),
    ("predict", "--now", "2026-11-26T12:00:00Z"),
    ("predict", "--order"),
    ("metadata",),
)


@pytest.fixture
def cluster(incident, tmp_path):
    return copied(incident("kraft-quorum-3x") / "snapshots" / "99-final", tmp_path / "cluster")


def told(capsys, name, *arguments):
    code = run([name, *map(str, arguments), "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def format_anew(node, *, has_log):
    """What is left of a controller once its directory was formatted, before or after its first start."""
    log = node / "__cluster_metadata-0"
    shutil.rmtree(log)
    (node / "bootstrap.checkpoint").touch()
    if has_log:
        log.mkdir()
        (log / "00000000000000000000.log").touch()
        (log / "leader-epoch-checkpoint").write_text("0\n0\n")


@pytest.mark.parametrize("has_log", [True, False])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_majority_of_voters_without_metadata_may_elect_one_of_them(cluster, capsys, command, has_log):
    for name in ("controller-101", "controller-102"):
        format_anew(cluster / name, has_log=has_log)
    code, document = told(capsys, command[0], cluster, *command[1:])
    answer = document["answer"]

    assert code in {1, 3}
    assert answer["state"] not in CALM
    assert "Controllers 101 and 102, a majority of the 3 voters, lack metadata that was committed" in answer["headline"]
    assert answer["now"][0].startswith("Start no node of this cluster as it is")
    assert not any("first, then" in step for step in answer["now"])
    said = json.dumps(document)
    assert "fewer than 2 of the 3 voters hold it" not in said
    assert "loads all" not in answer["headline"]
    assert not [loss for loss in document.get("losses", ()) if loss["committed"] == "no"]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_one_emptied_voter_of_three_can_not_win(cluster, capsys, command):
    format_anew(cluster / "controller-102", has_log=True)
    _, document = told(capsys, command[0], cluster, *command[1:])

    assert "lack metadata" not in json.dumps(document["answer"])


@pytest.mark.parametrize("names", [("controller-101",), ("controller-102", "controller-103")])
def test_an_emptied_voter_is_given_and_its_directory_not_asked_for(cluster, capsys, names):
    for name in names:
        format_anew(cluster / name, has_log=False)
    _, document = told(capsys, "diff", cluster)
    answer = document["answer"]

    assert "not among the inputs" not in answer["headline"]
    assert re.search("none of (its|their) log directories among the inputs does", answer["headline"])
    assert any(one.startswith("What is on other log directories of controller") for one in answer["unknown"])


def test_voters_that_are_not_given_are_not_taken_as_empty(cluster, capsys):
    format_anew(cluster / "controller-102", has_log=True)
    shutil.rmtree(cluster / "controller-101")
    _, document = told(capsys, "explain", cluster)

    assert "lack metadata" not in document["answer"]["headline"]


def test_the_only_voter_that_was_formatted_anew_knows_none_of_the_topics(fixtures, tmp_path, capsys):
    cluster = copied(fixtures / "unclean-election", tmp_path / "cluster")
    format_anew(cluster / "controller-100", has_log=True)
    code, document = told(capsys, "diff", cluster)

    assert 0 != code
    assert "Controller 100, the only voter, lacks metadata that was committed" in document["answer"]["headline"]


def test_voters_that_are_behind_may_elect_one_of_them_and_make_others_truncate(incident, capsys):
    _, document = told(capsys, "diff", incident("kraft-quorum-3x") / "snapshots" / "02-active-controller-killed")

    headline = document["answer"]["headline"]
    assert "unless a majority of the voters elects one that lacks uncommitted metadata" in headline
    assert "controllers 102 and 103 lack records" in headline
