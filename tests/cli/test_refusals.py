"""Named inputs that can't be used, or do not belong together, stop every command before anything is said."""

import json
import re
import shlex
import shutil

import pytest

from kforensics.ask.questions import ask_of, command_of, options_of
from kforensics.cli.app import run
from kforensics.source.mapped import scan_directory
from tests.builders.directories import copied

COMMANDS = {
    "ls": ("ls",),
    "dump": ("dump",),
    "diff": ("diff",),
    "explain": ("explain",),
    "explain --before": ("explain",),
    "verify": ("verify",),
    "metadata": ("metadata",),
    "predict": ("predict",),
    "groups": ("groups",),
    "transactions": ("transactions",),
    "trace": ("trace", "--topic", "orders", "--offset", "5"),
    "salvage": ("salvage",),
    "capture": ("capture",),
}
WRITING = {"salvage": "out", "capture": "node.kfc"}
JUDGED_TOGETHER = ("diff", "explain", "explain --before", "metadata", "predict", "groups", "transactions", "trace")


@pytest.fixture(scope="module")
def broker(incident, tmp_path_factory):
    """A broker's directory, by itself."""
    source = incident("unclean-election-4.x") / "snapshots" / "99-final" / "broker-1"
    target = tmp_path_factory.mktemp("given") / "broker-1"
    copied(source, target)
    return target


@pytest.fixture(scope="module")
def stranger(incident):
    return incident("power-loss-4.x") / "snapshots" / "99-final" / "broker-1"


def arguments(name, good, bad, tmp_path):
    """A command line with a good path and a bad one."""
    more = ["--out", str(tmp_path / WRITING[name])] if name in WRITING else []
    between = ["--before"] if name == "explain --before" else []
    return [*COMMANDS[name], str(good), *between, str(bad), *more]


def refused(capsys, words):
    """The document and the words of a command line that must be refused, in text and in JSON."""
    assert 3 == run(words)
    text = capsys.readouterr()
    assert "" == text.out
    assert 3 == run([*words, "--format", "json"])
    written = capsys.readouterr()
    document = json.loads(written.out)
    assert written.err == text.err
    assert "kforensics/refusal/2" == document["schema"]
    assert "unknown" == document["answer"]["state"]
    assert 3 == document["exit_code"]
    assert document["problems"]
    assert [[], [], []] == [document[name] for name in ("partitions", "truncations", "losses")]
    return document, text.err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistyped_path_stops_every_command_and_names_the_nearest(name, broker, tmp_path, capsys):
    bad = broker.parent / "brokr-1"
    document, words = refused(capsys, arguments(name, broker, bad, tmp_path))

    assert f"{bad}: there is no such file or directory" in words
    assert f"did you mean {broker}?" in words
    assert [str(bad)] == [one["path"] for one in document["inputs"]]
    assert [] == [*tmp_path.glob("out/*"), *tmp_path.glob("*.kfc"), *tmp_path.glob("evidence/evidence.json")]


def test_a_mistyped_path_that_is_like_a_command_is_a_path(broker, monkeypatch, capsys):
    (broker.parent / "metadata-1").mkdir()
    monkeypatch.chdir(broker.parent.parent)

    assert run([f"{broker.parent.name}/metadata-2"]) == 3
    assert "there is no such file or directory" in capsys.readouterr().err


def bad_inputs(folder):
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("the cluster was slow on Monday\n")
    (folder / "deaf").mkdir()
    (folder / "deaf" / "meta.properties").write_text("version=1\n")
    return {
        "empty directory": folder / "empty",
        "text": folder / "notes.txt",
        "device": "/dev/null",
        "permission": folder / "deaf",
    }


SAID = {
    "empty directory": "an empty directory",
    "text": "",
    "device": "neither a file nor a directory",
    "permission": "Permission denied",
}


# An empty directory beside those of one broker is an empty disk of it, which a start takes.
NO_EVIDENCE = [(name, bad) for bad in SAID for name in COMMANDS if (name, bad) != ("predict", "empty directory")]


@pytest.mark.parametrize(("name", "bad"), NO_EVIDENCE)
@pytest.mark.some(12)
def test_a_path_that_can_be_no_evidence_stops_every_command(name, bad, broker, tmp_path, capsys, monkeypatch):
    path = bad_inputs(tmp_path)[bad]
    real = scan_directory

    def deny(folder):
        if str(folder).rstrip("/") == str(tmp_path / "deaf"):
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr("kforensics.source.walk.scan_directory", deny)

    document, words = refused(capsys, arguments(name, broker, path, tmp_path))

    assert str(path) in words
    assert SAID[bad] in words
    assert [str(path)] == [one["path"] for one in document["inputs"]]


@pytest.mark.parametrize("name", ["00000000000000000000.log", "leader-epoch-checkpoint"])
def test_a_file_of_a_partition_is_no_evidence_of_a_node(name, broker, tmp_path, capsys):
    out = tmp_path / "node.kfc"

    assert 3 == run(["capture", str(broker / "orders-0" / name), "--out", str(out)])

    assert "name its directory" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("bad", ["empty directory", "text", "junk", "device"])
def test_nothing_is_captured_where_there_is_no_evidence(bad, tmp_path, capsys):
    junk = tmp_path / "junk"
    junk.mkdir()
    (junk / "notes.txt").write_text("the cluster was slow on Monday\n")
    path = {**bad_inputs(tmp_path), "junk": junk}[bad]
    out = tmp_path / "node.kfc"

    assert 3 == run(["capture", str(path), "--out", str(out)])

    assert str(path) in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("name", ["diff", "verify", "capture"])
def test_a_link_that_leads_nowhere_is_named_with_where_it_leads(name, tmp_path, capsys):
    link = tmp_path / "broker-1"
    link.symlink_to("/gone\x1b[2J/kafka-logs")

    assert 3 == run([name, str(link), *(["--out", str(tmp_path / "x.kfc")] if name == "capture" else [])])

    words = capsys.readouterr().err
    assert f"{link}: a symbolic link to /gone\\x1b[2J/kafka-logs, which is not there" in words
    assert "\x1b" not in words
    assert "a mistyped path" not in words


@pytest.mark.parametrize("name", JUDGED_TOGETHER)
def test_directories_of_two_clusters_are_refused_with_whose_is_which(name, broker, stranger, tmp_path, capsys):
    document, words = refused(capsys, arguments(name, broker, stranger, tmp_path))

    ids = {one.partition(" is of cluster ")[2] or one for one in (str(p["message"]) for p in document["problems"])}
    assert {str(broker), str(stranger)} == {one["path"] for one in document["inputs"]}
    assert 2 == len(ids)
    assert "--cluster ID" in words


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(JUDGED_TOGETHER) - set(WRITING)))
def test_commands_that_look_at_one_directory_after_the_other_take_several_clusters(
    name, broker, stranger, tmp_path, capsys
):
    code = run([*arguments(name, broker, stranger, tmp_path), "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert code in {0, 1}
    assert "refusal" not in document["schema"]
    assert "quorum" not in document["answer"]["headline"]


@pytest.mark.parametrize("name", ["diff", "explain", "metadata"])
@pytest.mark.some(2)
def test_the_cluster_that_is_wanted_can_be_chosen(name, incident, stranger, capsys):
    own = incident("unclean-election-4.x")
    nodes = sorted(map(str, (own / "snapshots" / "99-final").iterdir()))
    logs = [] if name == "metadata" else [str(own / "logs")]
    assert run([name, *nodes, *logs, "--format", "json"]) in {0, 1}
    alone = json.loads(capsys.readouterr().out)
    cluster = next(one["cluster_id"] for one in alone["inputs"] if isinstance(one["cluster_id"], str))

    run([name, str(stranger), *nodes, *logs, "--cluster", cluster, "--format", "json"])

    # The command that it names has the paths and the cluster, too.
    out = capsys.readouterr().out.replace(f"{stranger} ", "").replace(f" --cluster {cluster}", "")
    assert alone == json.loads(out)
    assert 2 == run([name, *nodes, "--cluster", cluster.swapcase()])
    assert "no data directory among the inputs is of cluster" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["diff", "explain"])
@pytest.mark.some(1)
def test_log_files_whose_lines_name_another_cluster_are_refused(name, broker, incident, capsys):
    logs = incident("power-loss-4.x") / "logs"

    document, words = refused(capsys, [name, str(broker), str(logs)])

    assert any(str(logs) in one["path"] and ", line " in one["path"] for one in document["inputs"])
    assert "the inputs are of 2 clusters" in words


@pytest.mark.slow
def test_log_files_of_another_cluster_are_left_out_where_one_is_chosen(incident, capsys):
    own, other = incident("hw-loss-0.10"), incident("unclean-election-2.8")
    nodes = [str(own / "snapshots" / "99-final"), str(own / "logs")]
    run(["explain", *nodes, "--format", "json"])
    alone = json.loads(capsys.readouterr().out)
    log = next((own / "logs").rglob("server.log")).read_text()
    cluster = log.partition("Cluster ID = ")[2].split()[0]

    assert 3 == run(["explain", *nodes, str(other / "logs")])
    run(["explain", *nodes, str(other / "logs"), "--cluster", cluster, "--format", "json"])
    chosen = json.loads(capsys.readouterr().out)

    assert alone["truncations"] == chosen["truncations"]
    assert alone["timeline"] == chosen["timeline"]


def test_one_broker_twice_is_refused_where_no_disk_names_its_cluster(incident, tmp_path, capsys):
    snapshots = sorted((incident("hw-loss-0.10") / "snapshots").iterdir())
    first, last = (
        next(one for one in sorted(folder.iterdir()) if "1" in one.name) for folder in snapshots[:: len(snapshots) - 1]
    )

    document, words = refused(capsys, ["diff", str(first), str(last)])

    assert "given twice, so the inputs are of two clusters or of two moments" in words
    assert f"explain {last} --before {first}" in words
    assert {str(first), str(last)} == {one["path"] for one in document["inputs"]}
    assert run(["explain", str(last), "--before", str(first)]) != 2
    assert "two moments" not in capsys.readouterr().err


@pytest.mark.parametrize("chosen", [[], ["--cluster", "TKZzU9gkREuBwVbPJkyiQw"]])
def test_one_broker_at_two_moments_is_not_taken_as_its_present_state(incident, tmp_path, capsys, chosen):
    snapshots = incident("power-loss-4.x") / "snapshots"
    then, now = (str(snapshots / one / "broker-1") for one in ("02-killed-before-page-cache-loss", "99-final"))
    key = ["--topic", "ledger", "--key", "led-000261"]

    for line in (["trace", *key], ["groups"], ["transactions"]):
        assert run([*line, now, then, *chosen]) == 3
        said = capsys.readouterr().err
        assert "node 1 is given twice, so the inputs are of two moments" in said
        assert f"$ kforensics {line[0]} " in said
        assert ("--key led-000261" in said) is (line[0] == "trace")
        assert "kforensics explain" not in said
    assert run(["trace", *key, now, "--before", then, "--quiet", *chosen]) == 1
    assert capsys.readouterr().out.startswith("LOST")


def test_log_directories_of_a_broker_that_are_named_one_by_one_are_of_one_moment(tmp_path, capsys):
    for number, directory_id in enumerate(("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg")):
        (tmp_path / str(number) / "disk" / "orders-0").mkdir(parents=True)
        (tmp_path / str(number) / "disk" / "meta.properties").write_text(
            f"version=1\ncluster.id=TKZzU9gkREuBwVbPJkyiQw\nnode.id=1\ndirectory.id={directory_id}\n"
        )

    assert run(["groups", *(str(tmp_path / one / "disk") for one in "01")]) == 3
    assert "two moments" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["explain", "trace", "salvage"])
def test_a_broker_with_two_metadata_logs_is_there_twice_whatever_its_directory_ids(command, fixtures, tmp_path, capsys):
    """Of another cluster of the same id, formatted by the command of one tutorial."""
    other = copied(fixtures / "unclean-election" / "broker-1", tmp_path / "broker-1")
    meta = other / "meta.properties"
    meta.write_text(re.sub("directory.id=.*", "directory.id=AAAAAAAAAAAAAAAAAAAAAQ", meta.read_text()))
    more = {"trace": ["-t", "orders", "--offset", "60"], "salvage": ["-o", str(tmp_path / "out")]}.get(command, [])

    assert run([command, str(fixtures / "unclean-election"), str(other), *more]) == 3
    assert "given twice" in capsys.readouterr().err


def test_the_rest_is_analysed_where_that_is_asked_for(broker, tmp_path, capsys):
    code = run(["diff", str(broker), str(tmp_path / "gone"), "--keep-going", "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    assert 3 == code
    assert ["there is no such file or directory"] == [one["message"].partition(";")[0] for one in document["problems"]]
    assert 3 == run(["diff", str(tmp_path / "gone"), str(tmp_path / "gone too"), "--keep-going"])
    assert "--keep-going" not in capsys.readouterr().err


def test_a_seal_is_of_all_that_was_named(broker, tmp_path, capsys):
    code = run(["seal", str(broker), str(broker.parent / "brokr-1"), "--out", str(tmp_path / "seal.json")])

    assert 3 == code
    assert f"did you mean {broker}?" in capsys.readouterr().err
    assert not (tmp_path / "seal.json").exists()


def test_a_directory_of_logs_under_other_names_is_taken_by_what_they_hold(incident, tmp_path, capsys):
    root = incident("unclean-election-2.8")
    source = next((root / "logs").rglob("server.log"))
    shutil.copy(source, tmp_path / "first.broker")

    assert 1 == run(["explain", str(root / "snapshots" / "99-final"), str(tmp_path), "--format", "json"])
    assert "log-files" in {one["kind"] for one in json.loads(capsys.readouterr().out)["inputs"]}


def test_copies_of_several_moments_are_told_apart_by_what_they_hold(incident, tmp_path, capsys):
    given = tmp_path / "it's all"
    given.mkdir()
    for name, moment in (("first", "99-final"), ("last", "02-killed-before-page-cache-loss")):
        (given / name).symlink_to(incident("power-loss-4.x") / "snapshots" / moment)

    for command, options, again in (
        ("diff", [], ["explain"]),
        ("salvage", ["--offsets", "3..", "--plan"], ["salvage", "--offsets", "3..", "--plan"]),
        ("triage", ["--kafka", "4.1"], ["triage", "--kafka", "4.1"]),
        ("explain", ["--until", "2026-11-22"], ["explain", "--until", "2026-11-22T00:00:00.000Z"]),
    ):
        assert run([command, *options, *map(str, sorted(given.glob("*/*")))]) == 3
        shown = capsys.readouterr()
        assert "" == shown.out
        lines = shown.err.splitlines()
        assert "given twice, so the inputs are of two moments" in lines[0]
        assert 3 == len(lines)
        words = shlex.split(lines[2])
        assert ["$", "kforensics", *again, str(given / "first"), "--before", str(given / "last")] == words
    assert run([*words[2:], "--quiet"]) == 1
    assert "two moments" not in capsys.readouterr().err


def test_a_path_that_can_not_be_used_is_named_once_however_many_questions_are_asked(incident, tmp_path, capsys):
    missing = tmp_path / "nowhere"

    run(["triage", str(incident("unclean-election-4.x") / "snapshots" / "99-final"), str(missing), "--keep-going"])

    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith(f"INCOMPLETE, without {missing}: ")
    assert 1 == shown.count("INCOMPLETE")


def test_a_command_is_spelled_with_all_its_options():
    ask = ask_of(
        "trace",
        {"paths": ["-a b"], "topics": ["-x'y"], "key": "\udcff", "time_ms": "..2026-11-21T06:00Z", "header": "name=1"},
    )
    assert command_of("trace", ask, is_same=True) == (
        "kforensics trace '--topic=-x'\"'\"'y' --key $'\\377' --header name=1 --time ..2026-11-21T06:00:00.000Z './-a b'"
    )
    for command, options in (
        ("predict", {"settings": ["a=b", "c=d"], "without": ["f"], "now_ms": "2026-11-26T14:00Z"}),
        ("salvage", {"offsets": "3..", "what": "lost", "plan": True, "form": "kcat", "from_zero": False}),
        ("diff", {"replicas": "1,2"}),
        ("trace", {"topics": ["a"], "key_sha256": "ab" * 32}),
    ):
        ask = ask_of(command, {"paths": ["x"], **options})
        words = shlex.split(command_of(command, ask, is_same=True))
        told = {one.option.flags[0]: one.field for one in options_of(command) if one.option.flags}
        assert {told[word] for word in words if word.startswith("--")} == {
            field for field in options if getattr(ask, field)
        }
