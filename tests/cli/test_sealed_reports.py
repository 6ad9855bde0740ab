"""Reports that name the seal of what they are made of."""

import json
import shutil

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied

PREALLOCATED = shutil.ignore_patterns("*.index", "*.timeindex")
REPORTS = ("verify", "diff", "explain")


@pytest.fixture
def brokers(tmp_path, fixtures):
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    for name in ("broker-1", "broker-2"):
        copied(fixtures / "unclean-election" / name, evidence / name, ignore=PREALLOCATED)
    return [evidence / "broker-1", evidence / "broker-2"]


@pytest.fixture
def manifest(tmp_path, brokers):
    path = tmp_path / "case.json"
    assert run(["seal", *map(str, brokers), "--case-id", "INC-42", "--operator", "A\x1b[2J", "-o", str(path)]) == 0
    return path


@pytest.fixture
def report(capsys):
    def call(command, *arguments, output_format="json"):
        capsys.readouterr()
        code = run([command, *map(str, arguments), "--format", output_format])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize("command", REPORTS)
@pytest.mark.some(2)
def test_a_seal_that_holds_is_named_and_changes_no_answer(command, brokers, manifest, report, untouched):
    with untouched(brokers[0].parent):
        code, plain, _ = report(command, *brokers)
        sealed_code, out, _ = report(command, *brokers, "--seal", manifest)
    document = json.loads(out)
    seal = document.pop("seal")

    assert sealed_code == code
    assert document == json.loads(plain)
    assert (seal["holds"], seal["case_id"], seal["uncovered"]) == (True, "INC-42", [])
    assert seal["held"] == seal["sealed"] > 20
    assert len(seal["manifest_sha256"]) == 64
    assert set(seal["changes"].values()) == {0}


@pytest.mark.parametrize("command", REPORTS)
@pytest.mark.some(2)
def test_altered_evidence_is_a_finding_that_cites_it(command, brokers, manifest, report):
    segment = next(brokers[1].rglob("00000000000000000000.log"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"\xff")

    code, out, _ = report(command, *brokers, "--seal", manifest)
    document = json.loads(out)
    (broken,) = (one for one in document["findings"] if one["code"] == "KF511")

    assert code == 1 or document["problems"]
    assert document["seal"]["holds"] is False
    assert document["seal"]["changes"]["content"] == 1
    cited = broken["citations"][0]
    assert document["inputs"][cited["input"]]["path"] + "/" + cited["path"] == str(segment)


@pytest.mark.parametrize(("command", "output_format"), [*((name, "text") for name in REPORTS), ("explain", "html")])
@pytest.mark.some(2)
def test_the_seal_stands_in_what_people_read_without_what_steers_terminals(
    command, output_format, brokers, manifest, report
):
    _, out, _ = report(command, *brokers, "--seal", manifest, output_format=output_format)

    words = " ".join(out.split())
    assert "for case INC-42 by A" in words
    assert "entries hold." in words
    assert "\x1b[2J" not in out


@pytest.mark.parametrize("command", REPORTS)
@pytest.mark.some(2)
def test_a_broken_seal_is_the_first_thing_said(command, brokers, manifest, report):
    (brokers[1] / "added").touch()

    _, out, _ = report(command, *brokers, "--seal", manifest, output_format="text")

    assert out.startswith("NOT WHAT WAS SEALED: ")
    assert "this is not what was sealed" in " ".join(out.split())


@pytest.mark.parametrize("command", REPORTS)
@pytest.mark.some(2)
def test_jsonl_has_a_line_for_it(command, brokers, manifest, report):
    _, out, _ = report(command, *brokers, "--seal", manifest, output_format="jsonl")

    assert sum("manifest_sha256" in json.loads(line) for line in out.splitlines()) == 1


def test_a_parent_that_was_sealed_covers_all_of_its_nodes(tmp_path, brokers, report):
    manifest = tmp_path / "parent.json"
    parent = brokers[0].parent
    assert run(["seal", str(parent), "-o", str(manifest)]) == 0
    segment = next(brokers[1].rglob("00000000000000000000.log"))
    segment.unlink()

    _, out, _ = report("verify", parent, "--seal", manifest)
    document = json.loads(out)
    (missing,) = (one for one in document["findings"] if one["code"] == "KF512")

    assert document["inputs"][missing["citations"][0]["input"]]["path"] == str(brokers[1])


def test_inputs_that_were_not_sealed_are_named(tmp_path, brokers, report):
    manifest = tmp_path / "one.json"
    assert run(["seal", str(brokers[0]), "-o", str(manifest)]) == 0

    _, out, _ = report("diff", *brokers, "--seal", manifest)

    assert json.loads(out)["seal"]["uncovered"] == [str(brokers[1])]


def test_other_paths_and_what_is_no_manifest_are_refused(tmp_path, brokers, manifest, report):
    code, _, err = report("verify", brokers[0], "--seal", manifest)
    assert code == 2
    assert "the manifest seals 2 paths and 1 are given" in err

    (tmp_path / "other.json").write_text("{}")
    code, _, err = report("verify", *brokers, "--seal", tmp_path / "other.json")
    assert code == 3
    assert "manifest" in err
