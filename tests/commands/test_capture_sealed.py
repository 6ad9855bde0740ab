"""Captures checked by the manifest in them, and signed."""

import json
import shutil
import subprocess
import zipfile

import pytest

from kforensics.cli.app import run
from kforensics.source.capture import open_capture
from tests.captures import document, take


@pytest.fixture
def taken(tmp_path, small_cluster):
    return take([small_cluster / "broker-1"], tmp_path / "broker-1.kfc")


def _check(path, *options):
    return document("seal", ["--check", path], *options)


def test_a_sound_capture_is_unchanged(taken):
    found, code = _check(taken)

    assert 0 == code
    assert len(open_capture(taken).parts()) == found["counts"]["held"]
    assert [] == found["differences"] == found["problems"]
    assert {"state": "none", "key_id": "", "reason": ""} == found["signature"]


def test_a_part_that_changed_is_named(taken, tmp_path):
    part = next(one for one in open_capture(taken).parts() if one.name.endswith(".tar"))
    data = bytearray(taken.read_bytes())
    data[part.position + part.stored // 2] ^= 0x10
    altered = tmp_path / "altered.kfc"
    altered.write_bytes(data)
    found, code = _check(altered)

    assert 1 == code
    assert [(part.name, "content")] == [(one["path"], one["change"]) for one in found["differences"]]
    assert "KF511" in {one["code"] for one in found["findings"]}


def test_a_member_that_was_added_is_named(taken):
    with zipfile.ZipFile(taken) as archive:
        comment = archive.comment
    with zipfile.ZipFile(taken, "a") as archive:
        archive.writestr("note.txt", "trust me")
        archive.comment = comment
    found, code = _check(taken)

    assert 1 == code
    assert [("note.txt", "added")] == [(one["path"], one["change"]) for one in found["differences"]]


def test_a_capture_without_its_end_is_refused(taken, tmp_path):
    cut = tmp_path / "cut.kfc"
    cut.write_bytes(taken.read_bytes()[:-100])

    assert 3 == run(["seal", "--check", str(cut)])


def test_paths_do_not_go_with_it(taken, small_cluster):
    assert 2 == _check(taken, str(small_cluster / "broker-1"))[1]


@pytest.fixture
def keys(tmp_path):
    pytest.importorskip("cryptography")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    private, public = tmp_path / "examiner.pem", tmp_path / "examiner.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(private)], check=True)
    subprocess.run(["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public)], check=True)
    return private, public


def test_a_signed_capture_holds_until_a_byte_of_it_changes(keys, tmp_path, capsys, small_cluster):
    private, public = keys
    out = tmp_path / "signed.kfc"
    assert 0 == run(
        ["capture", str(small_cluster / "broker-1"), "-o", str(out), "--sign-with", str(private), "--normal-priority"]
    )
    capsys.readouterr()
    found, code = _check(out, "--public-key", str(public))

    assert (0, "holds") == (code, found["signature"]["state"])
    envelope = json.loads((tmp_path / "signed.kfc.sig").read_text())
    assert "application/vnd.in-toto+json" == envelope["payloadType"]
    data = bytearray(out.read_bytes())
    data[40] ^= 1  # in the name of a member, which no sha256 of a part covers
    out.write_bytes(data)
    found, code = _check(out, "--public-key", str(public))
    assert (1, "broken") == (code, found["signature"]["state"])


def test_a_key_that_can_not_be_used_is_refused_before_anything_is_read(tmp_path, small_cluster):
    key = tmp_path / "no-key.pem"
    key.write_text("no key")
    out = tmp_path / "out.kfc"

    assert 2 == run(
        ["capture", str(small_cluster / "broker-1"), "-o", str(out), "--sign-with", str(key), "--normal-priority"]
    )
    assert not out.exists()
