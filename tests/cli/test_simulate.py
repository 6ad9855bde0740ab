"""`kforensics simulate`: its screens, its JSON, its page, and its exit codes."""

import json
import re

import pytest

from kforensics.cli.app import run


@pytest.fixture
def simulate(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments):
        code = run(["simulate", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_list(simulate):
    code, out, _err = simulate("--list")
    assert code == 0
    assert "one-produce" in out
    listed = json.loads(simulate("--list", "--format", "json")[1])["scenarios"]
    assert {"name", "title"} == set(listed[0])
    needed = {"one-produce", "hw-loss", "hw-divergence", "unclean-election", "fast-failover", "isr-lag", "acks-1"}
    assert needed <= {scenario["name"] for scenario in listed}


def test_a_scenario_as_json(simulate):
    code, out, _err = simulate("hw-divergence", "--protocol", "hw", "--format", "json")
    document = json.loads(out)
    assert code == document["exit_code"] == 0
    assert document["schema"] == "kforensics/simulate/2"
    assert (document["scenario"], document["protocol"]) == ("hw-divergence", "hw")
    assert document["outcome"] == {
        "lost_committed": [{"offset": 1, "record": "m1"}],
        "lost_acknowledged": [{"offset": 1, "record": "m1"}],
        "diverged_at": 1,
        "logs": {"1": ["m0", "m2"], "2": ["m0", "m1"]},
    }
    assert document["steps"][-1]["replicas"][0]["records"][1] == {"offset": 1, "record": "m1"}
    first = document["steps"][0]
    assert (first["event"], first["leader_leo"], first["remote_leo"], first["follower_hw"]) == (
        "producer writes",
        1,
        0,
        0,
    )


def test_every_protocol_side_by_side(simulate):
    document = json.loads(simulate("hw-loss", "--format", "json")[1])
    assert [one["protocol"] for one in document["protocols"]] == ["hw", "kip-101", "kip-279", "kip-595"]
    _code, out, _err = simulate("hw-loss")
    assert out.startswith("hw-loss: committed records are lost under hw.\n")
    assert "\nkip-101, kip-279 and kip-595\n" in out
    assert max(len(line) for line in out.splitlines()) <= 84


def test_three_brokers_have_a_column_each(simulate):
    _code, out, _err = simulate("last-replica-standing", "--protocol", "kip-595")
    assert "b1 LEO/HW  b2 LEO/HW  b3 LEO/HW" in out
    assert "1/0 down" in out


def test_html_is_one_page(simulate):
    code, out, _err = simulate("fast-failover", "--format", "html")
    assert code == 0
    assert out.startswith("<!doctype html>")
    assert 1 == out.count("<script")
    assert out.count('<div class="track" role="img" aria-label="broker ') > 40
    assert all(f"<b>{record}</b>" in out for record in ("m0", "m1", "m2", "m3"))


def test_html_of_a_long_log_is_a_bar_an_epoch(simulate):
    _code, out, _err = simulate("isr-lag", "--protocol", "kip-595", "--format", "html")
    frames = out.split("<figure>")
    assert frames[1].count('<span class="epoch ') == 10
    assert frames[-1].count('<span class="epoch ') == 2
    assert "<b>m1</b>" in frames[1]
    assert "<b>m1</b>" not in frames[-1]


@pytest.mark.parametrize(
    ("arguments", "headline"),
    [
        (("--list",), "10 scenarios built in."),
        (("--explore", "kip-320"), "kip-320: nothing breaks in any reachable state."),
    ],
)
def test_lists_and_explored_models_are_pages_too(simulate, arguments, headline):
    code, out, _err = simulate(*arguments, "--format", "html")
    assert code == 0
    said = re.search(r'<h1 id="answer">(.*?)</h1>', out)
    assert said
    assert re.sub(r"</?span[^>]*>", "", said[1]) == headline
    assert 1 == out.count("<script")


def test_text_of_a_scenario_is_escaped(simulate, tmp_path):
    incident = tmp_path / "story.yaml"
    incident.write_text(
        'name: "x\\e[2J"\ntitle: <script>\nbrokers: [1]\nsteps:\n- produce: {records: ["\\e]0;x"]}\n- say: "<b>\\e"\n'
    )
    for output_format in ("text", "json", "html"):
        code, out, _err = simulate(str(incident), "--format", output_format)
        assert code == 0
        assert "\x1b" not in out
    assert out.count("<script>") == (output_format == "html")


def test_a_broken_scenario_file_names_the_line(simulate, tmp_path):
    incident = tmp_path / "story.yaml"
    incident.write_text("name: x\nbrokers: [1, 2]\nsteps:\n  - start: 2\n")
    code, _out, err = simulate(str(incident))
    assert code == 2
    assert f"{incident}:4: start can't happen here: broker 2 is already running" in err
    incident.write_bytes(b"name: x\nbrokers: \xff")
    code, _out, err = simulate(str(incident))
    assert code == 2
    assert f"{incident}:2: expected UTF-8, found byte 0xff" in err


def test_explore_finds_the_shortest_story(simulate):
    code, out, _err = simulate("--explore", "hw", "--invariant", "WeakIsr", "--format", "json")
    document = json.loads(out)
    assert code == document["exit_code"] == 1
    assert document["complete"] is False
    assert (document["violation"]["invariant"], document["violation"]["states"]) == ("WeakIsr", 9)
    assert len(document["violation"]["trace"]) == 9
    assert document["violation"]["trace"][0]["state"]["replicas"][0]["leader"] is None
    code, out, _err = simulate("--explore", "hw", "--invariant", "WeakIsr")
    assert code == 1
    assert out.startswith("hw breaks WeakIsr: the shortest way has 9 states.\n")


def test_explore_a_sound_model(simulate):
    code, out, _err = simulate("--explore", "kip-320", "--invariant", "StrongIsr", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert (document["model"], document["complete"], document["distinct_states"], document["depth"]) == (
        "kip-320",
        True,
        957,
        15,
    )
    assert document["violation"] is None
    assert "nothing breaks in any reachable state" in simulate("--explore", "kip-320")[1]


def test_explore_stops_at_its_limit(simulate):
    code, out, _err = simulate("--explore", "kip-320", "--max-states", "100")
    assert code == 3
    assert "the search stopped at its limit" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "one of NAME, --list, --explore, --random and --bytes is needed"),
        (("hw-loss", "--list"), "one of NAME, --list, --explore, --random and --bytes is needed"),
        (("--random",), "--random and --bytes go with --write DIR"),
        (("hw-loss", "--seed", "3"), "--seed needs --random"),
        (("hw-loss", "--steps", "3"), "--steps needs NAME and --write"),
        (("nope",), "no scenario 'nope'"),
        (("hw-loss", "--protocol", "kip-1"), "no protocol 'kip-1'"),
        (("--explore", "kip-1"), "no model 'kip-1'"),
        (("--explore", "hw", "--invariant", "Truth"), "no invariant 'Truth'"),
        (("--explore", "hw", "--format", "csv"), "--format csv is not offered"),
        (("--list", "--format", "sarif"), "--format sarif is not offered"),
        (("hw-loss", "--format", "timesketch"), "--format timesketch is not offered"),
    ],
)
def test_usage(simulate, arguments, words):
    code, _out, err = simulate(*arguments)
    assert code == 2
    assert words in err
