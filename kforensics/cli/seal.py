"""`kforensics seal`: evidence hashed now, and shown to be the same later."""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kforensics.cli.options import (
    DocumentFormatOption,
    JobsOption,
    OutOption,
    OutputFormat,
    ReadRateOption,
    VerboseOption,
    apply_read_rate,
    require_format,
)
from kforensics.errors import UsageError

if TYPE_CHECKING:
    from kforensics.commands.sealing.seal import SealCheck
    from kforensics.commands.sealing.signature import CheckedSignature
    from kforensics.evidence.model import Problem
    from kforensics.evidence.seal.manifest import Envelope
    from kforensics.findings.model import Finding

    Conclusion = tuple[CheckedSignature, tuple[Finding, ...], int]

PASSPHRASE_VARIABLE = "KFORENSICS_KEY_PASSPHRASE"  # noqa: S105 - the name of a variable
SIGNATURE_SUFFIX = ".sig"


def seal(
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="Directories or files to seal, whatever is in them. With --check: the same in the same order, or none to look where they were sealed.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="MANIFEST", help="Compare with this manifest.", show_default=False),
    ] = None,
    case_id: Annotated[
        str | None, typer.Option("--case-id", metavar="ID", help="Write this into the manifest.", show_default=False)
    ] = None,
    operator: Annotated[
        str | None, typer.Option("--operator", metavar="NAME", help="Write this into the manifest.", show_default=False)
    ] = None,
    sign_with: Annotated[
        Path | None,
        typer.Option(
            "--sign-with",
            metavar="KEY",
            help=f"Sign the manifest with this Ed25519 private key (PEM); the signature goes to FILE{SIGNATURE_SUFFIX}. "
            f"The passphrase of an encrypted key is taken from {PASSPHRASE_VARIABLE}, or asked for.",
            show_default=False,
        ),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(
            "--public-key",
            metavar="KEY",
            help="With --check: the signature must be there and hold for this Ed25519 public key (PEM).",
            show_default=False,
        ),
    ] = None,
    signature: Annotated[
        Path | None,
        typer.Option(
            "--signature",
            metavar="FILE",
            help=f"With --check: the signature; MANIFEST{SIGNATURE_SUFFIX} where it is not given.",
            show_default=False,
        ),
    ] = None,
    output_format: DocumentFormatOption = OutputFormat.TEXT,
    out: OutOption = None,
    jobs: JobsOption = None,
    read_rate: ReadRateOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Seal evidence: a manifest with size, times and sha256 of everything below the paths, to show later that nothing changed.

    Without --check the manifest goes to standard output or to --out, and its own sha256 to standard error: write that
    down, or sign the manifest. With --check the exit code is 0 where everything is as it was sealed, 1 where something
    differs, is missing or was added, or the signature does not hold, and 3 where something can't be read.
    """
    from kforensics.commands.processes import default_jobs

    jobs = apply_read_rate(read_rate, jobs) or default_jobs()
    if check is None:
        if public_key or signature:
            raise UsageError("--public-key and --signature go with --check")
        if not paths:
            raise UsageError("nothing to seal: name directories or files")
        _take(paths, case_id=case_id, operator=operator, sign_with=sign_with, out=out, jobs=jobs)
    if case_id or operator or sign_with:
        raise UsageError("--case-id, --operator and --sign-with go with a new seal, not with --check")
    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON)
    assert check is not None
    _check(
        check,
        paths or [],
        public_key=public_key,
        signature=signature,
        as_json=output_format is OutputFormat.JSON,
        out=out,
        jobs=jobs,
        verbose=verbose,
    )


def _take(
    paths: list[Path], *, case_id: str | None, operator: str | None, sign_with: Path | None, out: Path | None, jobs: int
) -> None:
    from kforensics import __version__
    from kforensics.cli.exits import ExitCode
    from kforensics.cli.output import check_out, write_result
    from kforensics.commands.sealing.seal import find_roots, seal_roots
    from kforensics.commands.sealing.signature import load_private_key, sign
    from kforensics.evidence.seal.manifest import ManifestHead, SealCounts, manifest_pieces
    from kforensics.words import byte_count, counted

    check_out(out, paths)
    if sign_with is not None and out is None:
        raise UsageError("--sign-with needs --out: the signature is a file beside the manifest")
    signature_path = Path(f"{out}{SIGNATURE_SUFFIX}")
    key = None
    if sign_with is not None:
        check_out(signature_path, paths)
        key = load_private_key(_read_key(sign_with), _passphrase)
    roots = find_roots(paths)
    head = ManifestHead(
        tool_version=__version__, envelope=_envelope(case_id, operator), inputs=tuple(str(path) for path in paths)
    )
    counts = SealCounts()
    digest = hashlib.sha256()
    _write_or_remove(_hashed(manifest_pieces(head, seal_roots(roots, jobs=jobs), counts), digest), out)
    sha256 = digest.hexdigest()
    if key is not None and out is not None:
        write_result(sign(key, name=out.name, sha256=sha256, tool_version=__version__).decode(), signature_path)
    size = byte_count(counts.bytes)
    typer.echo(f"sealed {counted(counts.files, 'file')}, {size}; the manifest's sha256 is {sha256}", err=True)
    _say_problems(counts.problems, counts.incomplete, [str(path) for path in paths])
    raise typer.Exit(ExitCode.INCOMPLETE if counts.incomplete else ExitCode.NOTHING_FOUND)


def _check(
    manifest: Path,
    paths: list[Path],
    *,
    public_key: Path | None,
    signature: Path | None,
    as_json: bool,
    out: Path | None,
    jobs: int,
    verbose: bool,
) -> None:
    from kforensics.cli.exits import exit_code_of
    from kforensics.cli.output import check_out, write_result
    from kforensics.commands.sealing.seal import check_seal
    from kforensics.findings.seal import seal_findings
    from kforensics.render.text.screen import render_screen, screen_width, wants_colour
    from kforensics.render.text.seal import seal_screen
    from kforensics.source.mapped import open_evidence

    with open_evidence(manifest) as file:
        result = check_seal(file, paths, jobs=jobs)
        check_out(out, [Path(path) for path in result.shown])

        def conclude() -> "Conclusion":
            checked = _check_signature(manifest, public_key, signature, result.manifest_sha256)
            _add_uncompared(result)
            total = result.sealed.files + result.sealed.directories + result.sealed.others
            found = seal_findings(result.counts, result.named, sealed=total, broken_signature=checked.reason)
            return checked, found, int(exit_code_of(found, result.problems))

        if as_json:
            codes: list[int] = []
            write_result(_document(result, conclude, codes), out)
            raise typer.Exit(codes[0])
        for _ in result.differences():
            pass
        checked, _, code = conclude()
        lines = seal_screen(result, checked, width=screen_width(), verbose=verbose)
        write_result(render_screen(lines, colour=out is None and wants_colour(sys.stdout)), out)
        raise typer.Exit(code)


def _document(result: "SealCheck", conclude: "Callable[[], Conclusion]", codes: list[int]) -> Iterator[str]:
    """The document of a check; what differs goes out as it is met, so that a million differences need no memory."""
    import json

    from kforensics import __version__
    from kforensics.render.json.document import to_plain
    from kforensics.render.text.seal import plain_difference

    head = {
        "schema": "kforensics/seal-check/1",
        "tool_version": __version__,
        "inputs": [{"path": path, "kind": "sealed"} for path in result.shown],
        "sealed": {"tool_version": result.head.tool_version, **to_plain(result.head.envelope)},
    }
    yield json.dumps(to_plain(head))[:-1] + ', "differences": ['
    before = "\n"
    for one in result.differences():
        yield before + json.dumps(to_plain(plain_difference(one)))
        before = ",\n"
    checked, found, code = conclude()
    codes.append(code)
    foot = {
        "counts": {"held": result.held, **{str(change): count for change, count in result.counts.items()}},
        "manifest_sha256": result.manifest_sha256,
        "signature": checked,
        "findings": found,
        "problems": result.problems,
        "exit_code": code,
    }
    yield "\n], " + json.dumps(to_plain(foot))[1:] + "\n"


def _add_uncompared(result: "SealCheck") -> None:
    """Entries without a hash on either side become problems: nothing was concluded about them."""
    from kforensics.damage import Absent
    from kforensics.evidence.model import Problem
    from kforensics.evidence.seal.state import Change

    for change, words in (
        (Change.UNREADABLE, "it can't be read"),
        (Change.NOT_SEALED, "it was unreadable when it was sealed"),
    ):
        for one in result.named[change]:
            side = one.found if change is Change.UNREADABLE else one.sealed
            reason = Absent.UNKNOWN if isinstance(side, Absent) else side.problem
            result.problems.append(
                Problem(
                    input=one.subject.input,
                    path=one.subject.path,
                    message=words if isinstance(reason, Absent) else reason,
                )
            )


def _check_signature(
    manifest: Path, public_key: Path | None, signature: Path | None, sha256: str
) -> "CheckedSignature":
    from kforensics.commands.sealing.seal import read_envelope
    from kforensics.commands.sealing.signature import (
        ENVELOPE_LIMIT,
        CheckedSignature,
        SignatureState,
        check_signature,
        load_public_key,
    )

    path = signature or Path(f"{manifest}{SIGNATURE_SUFFIX}")
    if public_key is None:
        there = signature is not None or os.path.lexists(path)
        return CheckedSignature(state=SignatureState.NOT_CHECKED if there else SignatureState.NONE)
    return check_signature(read_envelope(path, ENVELOPE_LIMIT), load_public_key(_read_key(public_key)), sha256=sha256)


def _envelope(case_id: str | None, operator: str | None) -> "Envelope":
    from datetime import UTC, datetime

    from kforensics.damage import Absent
    from kforensics.evidence.seal.manifest import Envelope

    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now_ms = int(fixed) * 1000 if fixed.isdecimal() and len(fixed) < 12 else time.time_ns() // 1_000_000
    moment = datetime.fromtimestamp(now_ms // 1000, UTC)
    return Envelope(
        sealed_ms=now_ms,
        sealed_utc=f"{moment:%Y-%m-%dT%H:%M:%S}.{now_ms % 1000:03d}Z",
        case_id=Absent.NOT_APPLICABLE if case_id is None else case_id,
        operator=Absent.NOT_APPLICABLE if operator is None else operator,
    )


def _hashed(pieces: Iterable[str], digest: "hashlib._Hash") -> Iterator[str]:
    for piece in pieces:
        digest.update(piece.encode())
        yield piece


def _write_or_remove(pieces: Iterator[str], out: Path | None) -> None:
    """Write the manifest as it comes; one that was not finished is taken away, so that it is never mistaken for a seal."""
    from kforensics.cli.output import write_result

    if out is None:
        write_result(pieces)
        return
    try:
        with out.open("x", encoding="utf-8", newline="\n") as target:
            try:
                for piece in pieces:
                    target.write(piece)
                target.flush()
            except BaseException:
                out.unlink()
                raise
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}") from error


def _read_key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1 << 16)
    except OSError as error:
        raise UsageError(f"the key {path} can't be read: {error.strerror}") from error


def _passphrase() -> bytes:
    given = os.environ.get(PASSPHRASE_VARIABLE)
    if given is None:
        given = typer.prompt("passphrase of the private key", hide_input=True, err=True)
    return given.encode()


def _say_problems(problems: "list[Problem]", total: int, shown: list[str], *, most: int = 20) -> None:
    from kforensics.render.escape import escape_text
    from kforensics.render.text.seal import place

    named = problems[:most]
    for one in named:
        typer.echo(
            f"kforensics: {escape_text(place(one.input, one.path, shown))}: {escape_text(one.message)}", err=True
        )
    if total > len(named):
        typer.echo(f"kforensics: and {total - len(named):,} more (the manifest names them)", err=True)
