"""`seal`: a manifest tells every later change of the evidence, and its signature every change of the manifest."""

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from kforensics.cli.app import run
from kforensics.errors import FormatError
from kforensics.evidence.seal import ManifestReader
from tests.builders.directories import copied
from tests.builders.repeating import times
from tests.opened import opened_path
from tests.schemas import reason

RECORDING = "power-cut-2.8"


@pytest.fixture
def evidence(incident, tmp_path):
    """A small copy that a test may alter."""
    source = incident(RECORDING) / "logs"
    return Path(copied(source, tmp_path / "evidence", symlinks=True))


@pytest.fixture
def manifest(evidence, tmp_path):
    target = tmp_path / "manifest.json"
    assert 0 == run(["seal", str(evidence), "-o", str(target), "--case-id", "C-1"])
    return target


def check(manifest, *arguments, capsys):
    capsys.readouterr()
    code = run(["seal", "--check", str(manifest), "--format", "json", *map(str, arguments)])
    return code, json.loads(capsys.readouterr().out)


def some_file(evidence):
    return next(path for path in sorted(evidence.rglob("*")) if path.is_file() and path.stat().st_size)


def test_a_manifest_is_json_with_every_file(evidence, manifest):
    document = json.loads(manifest.read_text())

    assert "kforensics/seal/2" == document["schema"]
    assert "C-1" == document["envelope"]["case_id"]
    assert [{"path": str(evidence)}] == document["inputs"]
    assert sorted(str(p.relative_to(evidence)) for p in evidence.rglob("*")) == sorted(
        e["path"] for e in document["entries"]
    )
    assert document["counts"]["files"] == sum(p.is_file() for p in evidence.rglob("*"))
    assert document["counts"]["bytes"] == sum(p.stat().st_size for p in evidence.rglob("*") if p.is_file())
    assert [] == document["problems"]


def test_untouched_evidence_holds(manifest, evidence, capsys, untouched):
    with untouched(evidence):
        code, document = check(manifest, capsys=capsys)

    assert 0 == code == document["exit_code"]
    assert [] == document["differences"] == document["findings"] == document["problems"]
    assert "none" == document["signature"]["state"]


@pytest.mark.parametrize(
    ("alter", "change", "finding", "expected"),
    [
        (
            lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
            "content",
            "KF511",
            1,
        ),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), "content", "KF511", 1),
        (lambda path: path.unlink(), "missing", "KF512", 1),
        (lambda path: (path.parent / "new").touch(), "added", "KF513", 1),
        (lambda path: (path.unlink(), path.symlink_to("/etc/passwd")), "content", "KF511", 1),
        (lambda path: (path.unlink(), path.mkdir()), "content", "KF511", 1),
        (lambda path: path.chmod(0o600), "times", "KF514", 0),
        (lambda path: os.utime(path, ns=(1, 1)), "times", "KF514", 0),
    ],
    ids=["bit", "longer", "missing", "added", "link", "directory", "mode", "time"],
)
def test_every_change_is_reported(manifest, evidence, capsys, alter, change, finding, expected):
    path = some_file(evidence)
    alter(path)

    code, document = check(manifest, capsys=capsys)

    assert expected == code == document["exit_code"]
    assert change in {one["change"] for one in document["differences"]}
    assert finding in {one["code"] for one in document["findings"]}


def test_a_copy_elsewhere_agrees_but_for_times(manifest, evidence, tmp_path, capsys):
    copy = copied(evidence, tmp_path / "copy")
    os.utime(some_file(Path(copy)), ns=(5, 5))

    code, document = check(manifest, copy, capsys=capsys)

    assert 0 == code
    assert {"times"} == {one["change"] for one in document["differences"]}


def test_the_screen_says_first_whether_it_holds(manifest, evidence, capsys):
    assert 0 == run(["seal", "--check", str(manifest)])
    assert capsys.readouterr().out.startswith("Nothing has changed since it was sealed")

    some_file(evidence).unlink()

    assert 1 == run(["seal", "--check", str(manifest)])
    assert capsys.readouterr().out.startswith("This is not what was sealed: 1 missing")


def test_what_is_no_file_is_sealed_by_what_it_is(tmp_path, capsys):
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    os.mkfifo(evidence / "pipe")
    (evidence / "link").symlink_to("/etc/passwd")
    (evidence / "loop").symlink_to(".")
    (evidence / os.fsdecode(b"caf\xe9\x1b[2J")).touch()
    os.mknod(evidence / "s", stat.S_IFSOCK | 0o600)  # binding one would limit the length of the path

    assert 0 == run(["seal", str(evidence)])
    document = json.loads(capsys.readouterr().out)

    kinds = {json.dumps(one["path"]): one["kind"] for one in document["entries"]}
    assert {
        '"pipe"': "special",
        '"link"': "symbolic-link",
        '"loop"': "symbolic-link",
        '"s"': "special",
    }.items() <= kinds.items()
    assert "file" == kinds['{"base64": "Y2Fm6RtbMko="}']


def test_several_inputs_are_matched_by_place_or_by_path(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    manifest = tmp_path / "manifest.json"
    assert 0 == run(["seal", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(manifest)])

    assert 0 == check(manifest, tmp_path / "b", tmp_path / "a", capsys=capsys)[0]
    (tmp_path / "a").rename(tmp_path / "c")
    assert 0 == check(manifest, tmp_path / "c", tmp_path / "b", capsys=capsys)[0]
    assert 2 == run(["seal", "--check", str(manifest), str(tmp_path / "b")])
    assert 3 == run(["seal", "--check", str(manifest)])


def test_a_single_file_can_be_sealed(tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("x")
    manifest = tmp_path / "manifest.json"

    assert 0 == run(["seal", str(file), "-o", str(manifest)])
    assert 0 == check(manifest, capsys=capsys)[0]
    file.write_text("y")
    assert 1 == check(manifest, capsys=capsys)[0]


def test_unreadable_files_make_the_seal_incomplete(tmp_path, capsys, monkeypatch):
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    (evidence / "a").write_text("x")
    real = os.open

    def refuse(path, *arguments, **options):
        if opened_path(path, options.get("dir_fd")).endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)

    assert 3 == run(["seal", str(evidence)])
    document = json.loads(capsys.readouterr().out)
    assert 3 == document["exit_code"]
    assert "unreadable" == reason(document["entries"][0], "sha256")
    assert ["a"] == [one["path"] for one in document["problems"]]


def test_threads_do_not_change_a_byte(evidence, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for jobs in ("1", "2", "5"):
        assert 0 == run(["seal", str(evidence), "-j", jobs, "-o", str(tmp_path / jobs)])

    assert 1 == len({(tmp_path / jobs).read_bytes() for jobs in ("1", "2", "5")})


def test_nothing_is_written_inside_the_evidence_or_over_a_file(evidence, manifest):
    before = manifest.read_bytes()

    assert 2 == run(["seal", str(evidence), "-o", str(evidence / "manifest.json")])
    assert 2 == run(["seal", str(evidence), "-o", str(manifest)])
    assert before == manifest.read_bytes()


@pytest.mark.parametrize("length", [0, 1, 100, -1, -2, -40, -400])
def test_a_manifest_cut_short_is_refused(manifest, tmp_path, length):
    data = manifest.read_bytes()
    short = tmp_path / "short"
    short.write_bytes(data[: length if length >= 0 else len(data) + length])

    assert (0 if length == -1 else 3) == run(["seal", "--check", str(short)])  # the last byte is a line break


def test_no_byte_of_a_signed_manifest_can_change(manifest, evidence, tmp_path, capsys):
    pytest.importorskip("cryptography")
    private, public = make_keys(tmp_path)
    signed = tmp_path / "signed.json"
    assert 0 == run(["seal", str(evidence), "-o", str(signed), "--sign-with", str(private)])
    signature = Path(f"{signed}.sig")
    verify = ["seal", "--check", str(signed), "--public-key", str(public)]
    assert 0 == run(verify)
    for target in (signed, signature):
        good = target.read_bytes()
        for position in range(0, len(good), max(len(good) // times(10, 40), 1)):
            target.write_bytes(good[:position] + bytes([good[position] ^ 0x20]) + good[position + 1 :])
            assert 0 != run(verify), (target.name, position)
        target.write_bytes(good)
    capsys.readouterr()
    assert 0 == run(verify)
    assert "The signature is valid" in capsys.readouterr().out


def test_another_key_does_not_hold(evidence, tmp_path, capsys):
    pytest.importorskip("cryptography")
    private, _ = make_keys(tmp_path, "one")
    _, other = make_keys(tmp_path, "other")
    signed = tmp_path / "signed.json"
    assert 0 == run(["seal", str(evidence), "-o", str(signed), "--sign-with", str(private)])

    code, document = check(signed, "--public-key", other, capsys=capsys)

    assert 1 == code
    assert "broken" == document["signature"]["state"]
    assert ["KF515"] == [one["code"] for one in document["findings"]]


def test_a_missing_signature_is_missing_evidence(manifest, tmp_path):
    pytest.importorskip("cryptography")
    _, public = make_keys(tmp_path)

    assert 3 == run(["seal", "--check", str(manifest), "--public-key", str(public)])


def test_an_encrypted_key_takes_its_passphrase_from_the_environment(evidence, tmp_path, monkeypatch):
    pytest.importorskip("cryptography")
    private, _ = make_keys(tmp_path, passphrase=b"secret")
    monkeypatch.setenv("KFORENSICS_KEY_PASSPHRASE", "wrong")
    assert 2 == run(["seal", str(evidence), "-o", str(tmp_path / "m"), "--sign-with", str(private)])
    monkeypatch.setenv("KFORENSICS_KEY_PASSPHRASE", "secret")
    assert 0 == run(["seal", str(evidence), "-o", str(tmp_path / "m"), "--sign-with", str(private)])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--check", "m", "--case-id", "x"],
        ["--public-key", "k", "."],
        [],
        ["--sign-with", "k", "."],
    ],
)
def test_options_that_do_not_go_together(arguments):
    assert 2 == run(["seal", *arguments])


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"{}\n"],
        [b'{"schema": "kforensics/seal/1", "entries": [\n'],
        [b'{"schema": "kforensics/seal/2", "entries": [\n'],
        [b"[" * 100_000 + b'"entries": [\n'],
        [b"\xff" * 3_000_000],
    ],
    ids=["nothing", "other", "version", "head", "nested", "long"],
)
def test_what_is_no_manifest_is_refused(lines):
    with pytest.raises(FormatError):
        list(ManifestReader(lines).entries())


def make_keys(folder, name="key", passphrase=None):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    protection = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection))
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public


def test_what_is_no_manifest_is_named_by_its_path(tmp_path, capsys):
    path = tmp_path / "noise"
    path.write_bytes(bytes(range(256)))

    assert run(["seal", "--check", str(path)]) == 3
    assert f"kforensics: {path}: no manifest that can be read" in capsys.readouterr().err


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_seal_of_nothing_says_so(tmp_path, capsys, is_empty):
    (tmp_path / "data").mkdir()
    if not is_empty:
        (tmp_path / "data" / "meta.properties").write_text("version=1\n")

    assert 0 == run(["seal", str(tmp_path / "data"), "-o", str(tmp_path / "manifest.json")])

    said = "nothing lies below the paths: is the volume mounted?" in capsys.readouterr().err
    assert said is is_empty


@pytest.mark.parametrize("form", ["html", "markdown", "csv"])
def test_what_a_manifest_names_is_a_page_too_and_no_manifest(evidence, tmp_path, capsys, untouched, form):
    page = tmp_path / "page"
    with untouched(evidence):
        assert run(["seal", str(evidence), "--format", form, "-o", str(page), "--case-id", "C-1"]) == 0

    headline = capsys.readouterr().err
    assert headline.startswith("Hashed ")
    assert "this is no manifest, and nothing can be compared with it." in headline
    text = page.read_text().replace("\\", "")
    for one in sorted(evidence.rglob("*")):
        if one.is_file():
            assert hashlib.sha256(one.read_bytes()).hexdigest() in text
    assert "manifest's sha256" not in text
    assert run(["seal", "--check", str(page)]) == 3


def test_no_signature_is_made_over_a_page(evidence, tmp_path, capsys):
    key, _ = make_keys(tmp_path)

    code = run(["seal", str(evidence), "--format", "html", "-o", str(tmp_path / "page"), "--sign-with", str(key)])

    assert (code, (tmp_path / "page").exists()) == (2, False)
    assert "--sign-with signs a manifest: it does not go with --format html" in capsys.readouterr().err
