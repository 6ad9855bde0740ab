"""What each command says where a directory below a named path can't be listed."""

import json

import pytest

from kforensics.cli.app import run
from kforensics.source.mapped import scan_directory
from tests.builders.directories import copied

REFUSED = "the directory can't be listed: Permission denied"


@pytest.fixture
def cluster(incident, tmp_path):
    for broker in ("broker-1", "broker-2", "broker-3"):
        copied(incident("unclean-election-4.x") / "snapshots" / "99-final" / broker, tmp_path / "evidence" / broker)
    return tmp_path / "evidence"


@pytest.fixture
def deny(monkeypatch):
    """Refuse the listing of directories, as a system does to a user without permission."""
    real = scan_directory
    denied: list[str] = []

    def refuse(path):
        if str(path) in denied:
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("kforensics.source.walk.scan_directory", refuse)
    return lambda *paths: denied.extend(map(str, paths))


def said(capsys, *arguments):
    code = run([*map(str, arguments)])
    captured = capsys.readouterr()
    return int(code), " ".join(f"{captured.out} {captured.err}".split())


@pytest.mark.parametrize("command", ["ls", "diff", "explain", "verify", "predict", "groups", "transactions"])
@pytest.mark.some(2)
def test_a_directory_beside_the_others_is_named_as_a_person_would(command, cluster, deny, capsys):
    deny(cluster / "broker-2")

    code, screen = said(capsys, command, "-v", cluster)

    assert 3 == code
    assert f"{cluster}/broker-2: {REFUSED}" in screen
    assert ".." not in screen.split("not read: ")[-1]


@pytest.mark.parametrize("name", ["broker-2", "broker-2/__cluster_metadata-0"])
def test_metadata_that_may_be_newer_leaves_the_answer_open(name, cluster, deny, capsys):
    assert 0 == said(capsys, "metadata", cluster)[0]

    deny(cluster / name)
    code, screen = said(capsys, "metadata", cluster)

    assert 3 == code
    assert screen.startswith("Incomplete, with 1 problem: Metadata log of node 1 (the newest of 2 logs)")
    assert 1 == screen.count(f"{cluster}/{name}: {REFUSED}")


def test_a_partition_that_metadata_does_not_need_is_no_problem_of_it(cluster, deny, capsys):
    deny(cluster / "broker-2" / "orders-1")

    code, screen = said(capsys, "metadata", cluster)

    assert 0 == code
    assert REFUSED not in screen


@pytest.mark.parametrize("command", ["diff", "explain"])
def test_the_first_line_counts_what_could_not_be_read_once(command, cluster, deny, capsys):
    deny(cluster / "broker-2", cluster / "broker-1" / "orders-1")

    _, screen = said(capsys, command, "-v", cluster)

    headline = screen.split(" NOW ")[0]
    assert "Incomplete: 2 things could not be read." in headline
    assert 2 == screen.count("not read: ")


def test_the_first_line_names_what_was_named_and_counts_the_rest(cluster, deny, capsys):
    deny(cluster / "broker-1" / "orders-1")
    _, screen = said(capsys, "explain", "--keep-going", cluster, cluster / "nosuch")

    assert screen.startswith(f"INCOMPLETE, without {cluster}/nosuch: ")
    assert "Incomplete: 1 thing could not be read." in screen


@pytest.mark.parametrize("kafka", ["3.7.0", "4.1.0"])
def test_a_start_is_not_foretold_of_a_directory_that_is_not_listed(kafka, cluster, deny, capsys):
    deny(cluster / "broker-1" / "orders-1")

    code = run(["predict", str(cluster / "broker-1"), "--kafka", kafka, "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    log = next(one for one in document["logs"] if one["path"] == "orders-1")
    assert (log["outcome"], log["message"], log["files"]) == ("unknown", REFUSED, [])
    assert ("unknown", []) == (log["becomes"], [one for one in document["logs"] if one["becomes"] == "exits"])
    assert 0 != code
