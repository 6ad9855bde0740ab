"""One name for one event, in every document; in `event` and in `kind`."""

import json

import pytest

from kforensics.cli.app import run
from kforensics.evidence.event_kinds import EventKind


@pytest.fixture(scope="module")
def recording(incident):
    return incident("unclean-election-4.x")


def test_a_setting_has_one_name_in_explain_and_in_metadata(recording, capsys):
    node = str(recording / "snapshots" / "99-final" / "controller-100")
    run(["metadata", node, "--format", "json"])
    metadata = json.loads(capsys.readouterr().out)["events"]
    run(["explain", node, "--format", "json"])
    timeline = json.loads(capsys.readouterr().out)["timeline"]
    changed = {one["detail"]["name"] for one in metadata if one["event"] == "config-change"}
    set_then = [one for one in timeline if one["event"] == "config-change"]

    assert set_then
    assert {one["detail"]["name"] for one in set_then} <= changed
    assert all(one["kind"] == one["event"] for one in (*metadata, *timeline))


def test_every_event_of_a_timeline_is_of_the_list(recording, capsys):
    run(["explain", str(recording / "snapshots" / "99-final"), str(recording / "logs"), "--format", "json"])
    timeline = json.loads(capsys.readouterr().out)["timeline"]

    assert {one["event"] for one in timeline} <= set(EventKind)
    assert "controller-change" in {one["kind"] for one in timeline}
