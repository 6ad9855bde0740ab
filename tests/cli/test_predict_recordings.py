"""Starts that lie in recordings: predicted from the snapshot before, and held against what the brokers logged when they loaded."""

import json
import re

import pytest

from kforensics.cli.app import run

LOADED = re.compile(
    r"Completed load of Log\(dir=(?P<dir>[^,]+),.*?logStartOffset=(?P<start>\d+), logEndOffset=(?P<end>\d+)\)"
)
STARTS = (
    ("power-loss-4.x", "03-after-power-loss-before-restart", (), 14),
    ("power-cut-2.8", "02-after-power-loss", ("--kafka", "2.8.2"), 7),
    ("unclean-election-2.8", "02-all-down-broker-1-was-alone", ("--kafka", "2.8.2"), 36),
    ("silent-divergence-4.x", "02-follower-stopped", (), 3),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "snapshot", "options", "count"), STARTS)
def test_logs_load_where_it_was_predicted(incident, capsys, name, snapshot, options, count):
    root = incident(name)
    run(["predict", str(root / "snapshots" / snapshot), *options, "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    compared = 0
    for log in document["logs"]:
        if log["start"] > 1 or "log_end_offset" not in log["after"]:
            continue
        broker = document["inputs"][log["input"]]["broker_id"]
        lines = [
            match
            for file in (root / "logs" / f"broker-{broker}").glob("*")
            if file.is_file()
            for match in LOADED.finditer(file.read_text(errors="replace"))
            if match["dir"].rpartition("/")[2] == log["path"].rpartition("/")[2]
        ]
        ends = {(int(match["start"]), int(match["end"])) for match in lines}
        assert (log["after"]["log_start_offset"], log["after"]["log_end_offset"]) in ends, log["path"]
        compared += 1

    assert compared == count
