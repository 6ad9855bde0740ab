"""Lines of a broker that name offsets past the end of its log: verify and predict of that one broker use them, as explain does."""

import json

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied


@pytest.fixture
def say(capsys):
    def call(name, *arguments):
        now = ("--now", "2026-11-26T23:00:00Z") if name == "predict" else ()
        code = run([name, *map(str, arguments), *now, "--format", "json"])
        return json.loads(capsys.readouterr().out)["answer"], code

    return call


@pytest.fixture
def broker(incident, tmp_path):
    """One broker, of whose log of trades-1 the end is gone, with all that speaks of it but the broker's own lines."""
    root = incident("epoch-truncate-3.9")
    data = tmp_path / "broker-1"
    copied(root / "snapshots" / "99-final" / "broker-1", data)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        version, _, *entries = (data / name).read_text().split("\n")
        kept = [one for one in entries if one and not one.startswith("trades-1 ")]
        (data / name).write_text("\n".join([version, str(len(kept)), *kept, ""]))
    (data / ".kafka_cleanshutdown").unlink()
    for one in (data / "trades-1").iterdir():
        if one.suffix in {".index", ".timeindex", ".snapshot"}:
            one.unlink()
    log = data / "trades-1" / f"{0:020}.log"
    content, end = log.read_bytes(), 0
    while int.from_bytes(content[end : end + 8]) < 49:
        end += 12 + int.from_bytes(content[end + 8 : end + 12])
    log.write_bytes(content[:end])
    return data, root / "logs" / "broker-1"


@pytest.mark.parametrize("command", ["verify", "predict"])
@pytest.mark.some(1)
def test_what_lines_of_a_broker_show_of_its_log_stands_in_the_first_line(broker, say, command):
    data, logs = broker
    answer, code = say(command, data, logs)

    assert answer["headline"].startswith(
        "Suppose broker 1 leads (guessed by leader epoch and length). Then at least 47 records of clicks-1 and trades-0 that were possibly committed"
    )
    held = "What offsets 49 to 99 held, which no log given reaches; the log of broker 1 had reached offset 100"
    assert any(one.startswith(held) and one.endswith("(trades-1).") for one in answer["unknown"])
    # The statement of `explain` stands first, and the exit code is its own.
    explained, _ = say("explain", data, logs)
    assert (answer["state"], code) == ("maybe-lost", 1) == (explained["state"], 1)
    assert "at least 47 records of clicks-1 and trades-0 that were possibly committed" in explained["headline"]
    # Without its lines nothing shows it, and of a log that is whole they say nothing.
    assert "reached offset" not in say(command, data)[0]["headline"]
    answer, _ = say(command, data, logs, "--topic", "clicks")
    assert "reached offset" not in answer["headline"]
