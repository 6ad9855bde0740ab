"""The events of an incident for Timesketch."""

import json
from datetime import datetime

import pytest

from kforensics.cli.app import run


@pytest.mark.parametrize("command", ["explain", "triage"])
@pytest.mark.some(1)
def test_each_dated_event_is_a_line_with_the_fields_that_timesketch_needs(command, fixtures, capsys):
    node = str(fixtures / "unclean-election")
    assert run([command, node, "--format", "timesketch"]) == 1
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert run(["explain", node, "--depth", "tails", "--format", "json"]) == 1
    timeline = json.loads(capsys.readouterr().out)["timeline"]

    assert len(events) == sum(one["time_ms"] is not None for one in timeline)
    assert all(one["message"] and one["timestamp_desc"] for one in events)
    assert all(
        int(datetime.fromisoformat(one["datetime"]).timestamp() * 1000) == one["timestamp"] // 1000 for one in events
    )
    (election, *_) = (one for one in events if one["data_type"] == "kafka:unclean-election")
    assert "unclean" in election["message"]
    assert election["source"][0].startswith(node)
    assert not any(value is None for one in events for value in one.values())


def test_names_of_the_evidence_control_no_screen(tmp_path, capsys):
    line = "[2026-11-21 06:26:11,000] INFO [Log partition=or\x1b[31mders-0, dir=/d] Truncating to 5 has no effect as the largest offset in the log is 4 (kafka.log.Log)\n"
    (tmp_path / "server.log").write_text(line)
    run(["explain", str(tmp_path), "--format", "timesketch"])

    assert "\x1b" not in capsys.readouterr().out
