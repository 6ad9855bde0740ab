"""Seals: evidence hashed now, and shown to be the same later."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics import __version__
from kforensics.ask.model import SIGNATURE_SUFFIX, Ask
from kforensics.case.processes import default_jobs
from kforensics.commands.result import Conclusion, Result, now_ms
from kforensics.commands.sealing import (
    ENVELOPE_LIMIT,
    CheckedSignature,
    SealCheck,
    SignatureState,
    check_capture,
    check_seal,
    check_signature,
    find_roots,
    load_private_key,
    load_public_key,
    read_envelope,
    seal_roots,
    sign,
)
from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.evidence.model import Input, Problem
from kforensics.evidence.seal import Change, Difference, Envelope, ManifestHead, SealCounts, manifest_pieces
from kforensics.findings.answers.copies import check_answer, manifest_answer
from kforensics.findings.rules.seal import seal_findings
from kforensics.source.capture import is_capture
from kforensics.source.mapped import open_evidence, open_named
from kforensics.words import utc_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MOST_KEY_LENGTH = 1 << 16
SEALED_KIND = "sealed"
"""Kind of an input of `seal`, which looks at no content."""


@dataclass(slots=True, kw_only=True)
class NewSeal:
    """A manifest, made while it is written."""

    pieces: Iterator[str]
    """The manifest as JSON lines; it can be read once."""
    key: "Ed25519PrivateKey | None"
    sha256: str = field(default="", init=False)
    """Complete once the manifest has been read to its end."""
    is_listed: bool = field(default=False, init=False)
    """A page or table of what it names is written, and not the manifest."""
    listed: str = field(default="", init=False)
    """The manifest, where its answer was asked for before it was written."""

    def signature(self, name: str) -> str:
        """Return the signature over the manifest as a DSSE envelope."""
        assert self.key is not None
        return sign(self.key, name=name, sha256=self.sha256, tool_version=__version__).decode()


@dataclass(slots=True, kw_only=True)
class CheckedManifest:
    """A manifest compared with what is there now."""

    check: SealCheck
    differences: Iterable[Difference]
    """Each difference, once, as it is met: a million of them need no memory."""
    signature: CheckedSignature | None = field(default=None, init=False)
    """Checked once the differences have been read to their end."""


def run(request: Ask, passphrase: Callable[[], bytes] = bytes) -> Result[NewSeal]:
    """Seal everything below the paths."""
    if not request.paths:
        raise UsageError("nothing to seal: name directories or files")
    key = signing_key(request.sign_with, passphrase) if request.sign_with else None
    roots = find_roots(request.paths)
    shown = tuple(str(path) for path in request.paths)
    head = ManifestHead(tool_version=__version__, envelope=_envelope(request.case_id, request.operator), inputs=shown)
    counts = SealCounts()

    def pieces() -> Iterator[str]:
        digest = hashlib.sha256()
        for piece in manifest_pieces(head, seal_roots(roots, jobs=request.jobs or default_jobs()), counts):
            digest.update(piece.encode())
            yield piece
        body.sha256 = digest.hexdigest()

    body = NewSeal(pieces=pieces(), key=key)

    def conclude() -> Conclusion:
        if not body.sha256:
            body.listed = "".join(body.pieces)
        sha256 = "" if body.is_listed else body.sha256
        return Conclusion(answer=manifest_answer(counts, sha256=sha256), problems=tuple(counts.problems))

    return Result(command="seal", shape="seal manifest", inputs=_inputs(shown), body=body, concluded=conclude)


def sign_file(path: Path, key: "Ed25519PrivateKey") -> str:
    """Return the signature over a file, as a DSSE envelope."""
    with open_evidence(path.resolve()) as file:
        return sign(key, name=path.name, sha256=file.sha256(), tool_version=__version__).decode()


def signing_key(path: Path, passphrase: Callable[[], bytes]) -> "Ed25519PrivateKey":
    """Return the Ed25519 private key of a PEM file."""
    return load_private_key(_read_key(path), passphrase)


def check(request: Ask) -> Result[CheckedManifest]:
    """Compare what is there now with a manifest."""
    manifest = request.check
    assert manifest is not None
    with ExitStack() as stack:
        if is_capture(manifest):
            if request.paths:
                raise UsageError("a capture is checked by its own manifest: name it alone")
            found = check_capture(manifest)
        else:
            file = stack.enter_context(open_named(manifest))
            found = check_seal(file, request.paths, jobs=request.jobs or default_jobs())
        is_open = stack.pop_all()

    def differences() -> Iterator[Difference]:
        with is_open:
            yield from found.differences()
        body.signature = _check_signature(request, found.manifest_sha256)
        _add_uncompared(found)

    body = CheckedManifest(check=found, differences=differences())

    def conclude() -> Conclusion:
        body.differences = [*body.differences]  # what was not written before the answer is asked for
        checked = body.signature
        assert checked is not None
        total = found.sealed.files + found.sealed.directories + found.sealed.others
        return Conclusion(
            answer=check_answer(
                found.counts,
                found.sealed,
                held=found.held,
                problems=len(found.problems),
                is_signature_broken=checked.state is SignatureState.BROKEN,
            ),
            findings=seal_findings(found.counts, found.named, sealed=total, broken_signature=checked.reason),
            problems=tuple(found.problems),
        )

    return Result(command="seal", shape="seal check", inputs=_inputs(found.shown), body=body, concluded=conclude)


def _inputs(shown: tuple[str, ...]) -> tuple[Input, ...]:
    return tuple(Input(path=path, kind=SEALED_KIND) for path in shown)


def _add_uncompared(result: SealCheck) -> None:
    """Entries without a hash on either side become problems: nothing was concluded about them."""
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


def _check_signature(request: Ask, sha256: str) -> CheckedSignature:
    path = request.signature or Path(f"{request.check}{SIGNATURE_SUFFIX}")
    if request.public_key is None:
        there = request.signature is not None or os.path.lexists(path)
        return CheckedSignature(state=SignatureState.NOT_CHECKED if there else SignatureState.NONE)
    key = load_public_key(_read_key(request.public_key))
    return check_signature(read_envelope(path, ENVELOPE_LIMIT), key, sha256=sha256)


def _envelope(case_id: str | None, operator: str | None) -> Envelope:
    sealed_ms = now_ms()
    return Envelope(
        sealed_ms=sealed_ms,
        sealed_utc=utc_text(sealed_ms),
        case_id=Absent.NOT_APPLICABLE if case_id is None else case_id,
        operator=Absent.NOT_APPLICABLE if operator is None else operator,
    )


def _read_key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_KEY_LENGTH)
    except OSError as error:
        raise UsageError(f"the key {path} can't be read: {error.strerror}") from error
