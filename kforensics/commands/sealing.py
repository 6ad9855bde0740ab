"""Seals taken and checked: roots, hashes and manifests brought together, and signatures over them."""

import base64
import binascii
import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kforensics.damage import Absent, Span
from kforensics.errors import (
    EvidenceError,
    EvidenceNotFound,
    EvidenceUnreadable,
    FormatError,
    MissingExtra,
    UnsupportedFormat,
    UsageError,
    refuse,
)
from kforensics.evidence.model import Problem
from kforensics.evidence.seal import (
    LINE_LIMIT,
    Change,
    Difference,
    EntryKind,
    Envelope,
    ManifestHead,
    ManifestReader,
    SealCounts,
    SealEntry,
    compare_seals,
    seal_input,
)
from kforensics.formats.primitives.text_lines import parse_json_object
from kforensics.source.capture_file import MARKER, Capture, Part
from kforensics.source.discover import nearest_paths
from kforensics.source.mapped import WINDOW_LENGTH, EvidenceFile, open_evidence

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


# Seals taken and checked: roots, hashes and manifests brought together.


MOST_NAMED = 100
"""Differences of one kind that findings cite and screens list; the JSON has all."""


def find_roots(paths: Sequence[Path]) -> list[Path]:
    """Return the real places of the paths; a symbolic link is followed here, and only here.

    Raises:
        EvidenceError: one of them is not there; a seal of the others would not be that of what was named.
    """
    roots: list[Path] = []
    errors: list[EvidenceError] = []
    for path in paths:
        try:
            roots.append(path.resolve(strict=True))
        except FileNotFoundError:
            causes = ("a mistyped path",)
            words = "there is no such file or directory"
            errors.append(EvidenceNotFound(str(path), words, causes, nearest=nearest_paths(path)))
        except (OSError, ValueError, RuntimeError) as error:
            errors.append(EvidenceUnreadable(str(path), f"it can't be looked at: {error}"))
    refuse(errors, named=len(paths))
    return roots


def seal_roots(roots: Sequence[Path], *, jobs: int) -> Iterator[SealEntry | Problem]:
    """Yield everything below all roots, with hashes."""
    for number, root in enumerate(roots):
        yield from seal_input(number, root, jobs=jobs)


@dataclass(slots=True)
class SealCheck:
    """The result of a comparison with a manifest; complete when its differences have been read to the end."""

    head: ManifestHead
    shown: tuple[str, ...]
    """The inputs as named now, or as sealed where none were named."""
    sealed: SealCounts
    counts: dict[Change, int] = field(default_factory=lambda: dict.fromkeys(Change, 0))
    named: dict[Change, list[Difference]] = field(default_factory=lambda: {change: [] for change in Change})
    problems: list[Problem] = field(default_factory=list)
    held: int = 0
    manifest_sha256: str = ""
    _differences: Iterator[Difference] = field(default_factory=lambda: iter(()))

    def begin(self, differences: Iterator[Difference], sha256: Callable[[], str]) -> None:
        """Take the comparison, which is done as it is read, and then the sha256 of the manifest."""
        self._differences = self._counted(differences, sha256)

    def differences(self) -> Iterator[Difference]:
        """Return the differences, which can be read once."""
        return self._differences

    def _counted(self, differences: Iterator[Difference], sha256: Callable[[], str]) -> Iterator[Difference]:
        for one in differences:
            self.counts[one.change] += 1
            if len(self.named[one.change]) < MOST_NAMED:
                self.named[one.change].append(one)
            yield one
        self.manifest_sha256 = sha256()


def check_seal(manifest: EvidenceFile, paths: Sequence[Path], *, jobs: int, is_part: bool = False) -> SealCheck:
    """Compare what is there with a manifest as the differences are asked for; with `is_part` more paths may be there than were sealed."""
    digest = hashlib.sha256()
    try:
        reader = ManifestReader(_lines(manifest, digest))
    except FormatError as error:
        raise EvidenceUnreadable(str(manifest.path), f"no manifest that can be read: {error}") from error
    shown = tuple(str(path) for path in paths) or reader.head.inputs
    chosen = reader.head.inputs if is_part and set(reader.head.inputs) <= set(shown) else None
    chosen = chosen or _in_sealed_order(reader.head.inputs, shown)
    check = SealCheck(head=reader.head, shown=chosen, sealed=reader.counts)
    roots = find_roots([Path(path) for path in chosen])

    def compare() -> Iterator[Difference]:
        for one in compare_seals(reader.entries(), seal_roots(roots, jobs=jobs), check.problems):
            if isinstance(one, SealEntry):
                check.held += 1
            else:
                yield one

    check.begin(compare(), digest.hexdigest)
    return check


def _in_sealed_order(sealed: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    if len(sealed) != len(given):
        raise UsageError(
            f"the manifest seals {len(sealed)} paths and {len(given)} are given: give them in the same order, or none"
        )
    # Moved evidence is matched by its place on the command line, evidence at its old place by its path.
    return sealed if sorted(sealed) == sorted(given) else given


def _lines(file: EvidenceFile, digest: "hashlib._Hash") -> Iterator[bytes]:
    """Lines with their ends; one longer than the limit is given in its first part, for the reader to refuse."""
    carry = b""
    for window in file.windows(WINDOW_LENGTH):
        digest.update(window)
        pieces = (carry + window).split(b"\n")
        carry = pieces.pop()
        for piece in pieces:
            yield piece + b"\n"
        if len(carry) > LINE_LIMIT:
            yield carry
            return
    if carry:
        yield carry


def read_envelope(path: Path, limit: int) -> bytes:
    """Return the bytes of a detached signature."""
    with open_evidence(path) as file:
        return file.read_all(limit)


_MODE = "0644"


def check_capture(path: Path) -> SealCheck:
    """Compare the parts of a capture with its manifest; the work is done as the differences are asked for."""
    capture = Capture(path)
    parts = capture.parts()
    ended = str(capture.manifest.get("ended"))
    envelope = Envelope(
        sealed_ms=_milliseconds(ended),
        sealed_utc=ended,
        case_id=Absent.NOT_APPLICABLE,
        operator=Absent.NOT_APPLICABLE,
    )
    head = ManifestHead(tool_version=str(capture.manifest.get("tool_version")), envelope=envelope, inputs=(str(path),))
    sealed = SealCounts(files=len(parts), bytes=sum(one.length for one in parts))
    check = SealCheck(head=head, shown=(str(path),), sealed=sealed)

    def sha256() -> str:
        with open_evidence(path.resolve()) as file:
            return file.sha256()

    check.begin(_differences(capture, check), sha256)
    return check


def _differences(capture: Capture, check: SealCheck) -> Iterator[Difference]:
    there = _members(capture, check)
    for number, part in enumerate(capture.parts()):
        sealed = _entry(part.name, part.length, part.sha256)
        if there and part.name not in there:
            yield Difference(Change.MISSING, sealed, Absent.NOT_APPLICABLE)
            continue
        try:
            capture.part(number)
        except EvidenceError:
            yield Difference(Change.CONTENT, sealed, _found(capture, part))
        else:
            check.held += 1
    known = {one.name for one in capture.parts()} | {MARKER, "manifest.json"}
    for name in sorted(there - known):
        yield Difference(Change.ADDED, Absent.NOT_APPLICABLE, _entry(name, Absent.UNKNOWN, Absent.UNKNOWN))


def _members(capture: Capture, check: SealCheck) -> frozenset[str]:
    try:
        with zipfile.ZipFile(capture.path) as archive:
            return frozenset(archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        check.problems.append(Problem(input=0, path=".", message=f"its list of members can't be read: {error}"))
        return frozenset()


def _found(capture: Capture, part: Part) -> SealEntry:
    """Return the part as it is, as far as it can be inflated in bounds."""
    data = capture.salvaged(part)
    if data is None:
        return _entry(part.name, Absent.UNKNOWN, Absent.UNREADABLE)
    return _entry(part.name, len(data), hashlib.sha256(data).hexdigest())


def _entry(name: str, length: int | Absent, sha256: str | Absent) -> SealEntry:
    return SealEntry(0, name, EntryKind.FILE, length, Absent.NOT_APPLICABLE, Absent.NOT_APPLICABLE, _MODE, sha256)


def _milliseconds(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


# A detached signature over a file's stored bytes, with an Ed25519 key of the user's own.
#
# The envelope is DSSE v1: it carries a statement in the in-toto form that names the signed file and its sha256, and the
# signature covers `PAE(type, statement)` of the statement's stored bytes:
#
#     PAE   "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body        lengths in ASCII decimal
#
# Nothing is ever serialised again to be checked, and the signed file does not know of its signature.


PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:kforensics:seal:1"
ENVELOPE_LIMIT = 1 << 20
"""Bytes that an envelope may have; one with a signature has about 500."""


class SignatureState(StrEnum):
    """The state of a signature, as far as it is known."""

    HOLDS = "holds"
    BROKEN = "broken"
    NOT_CHECKED = "not-checked"
    """A signature is there, and no public key was given."""
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSignature:
    """The outcome of a check, with the reason where it does not hold."""

    state: SignatureState
    key_id: str = ""
    reason: str = ""


def load_private_key(data: bytes, passphrase: Callable[[], bytes]) -> "Ed25519PrivateKey":
    """Return the private key of a PEM file."""
    serialization, ed25519 = _library()
    try:
        try:
            key: Ed25519PrivateKey = serialization.load_pem_private_key(data, password=None)
        except TypeError:
            key = serialization.load_pem_private_key(data, password=passphrase())
    except Exception as error:
        raise UsageError(f"the private key can't be used: {error}") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise UsageError("the private key is not an Ed25519 one: openssl genpkey -algorithm ed25519 makes such a key")
    return key  # type: ignore[no-any-return]  # checked above


def load_public_key(data: bytes) -> "Ed25519PublicKey":
    """Return the public key of a PEM file."""
    serialization, ed25519 = _library()
    try:
        key: Ed25519PublicKey = serialization.load_pem_public_key(data)
    except Exception as error:
        raise UsageError(f"the public key can't be used: {error}") from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise UsageError("the public key is not an Ed25519 one")
    return key  # type: ignore[no-any-return]  # likewise


def key_id(key: "Ed25519PublicKey") -> str:
    """Return a short name of a key: the sha256 of its SubjectPublicKeyInfo, as DER."""
    serialization, _ = _library()
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(der).hexdigest()}"


def _pre_authentication_encoding(payload_type: str, body: bytes) -> bytes:
    """Return the bytes that are signed: unambiguous, whatever type and body are (DSSE v1)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)


def sign(key: "Ed25519PrivateKey", *, name: str, sha256: str, tool_version: str) -> bytes:
    """Return the DSSE envelope of a file."""
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"tool": "kforensics", "tool_version": tool_version},
    }
    body = json.dumps(statement).encode()
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(body).decode(),
        "signatures": [
            {
                "keyid": key_id(key.public_key()),
                "sig": base64.b64encode(key.sign(_pre_authentication_encoding(PAYLOAD_TYPE, body))).decode(),
            }
        ],
    }
    return json.dumps(envelope).encode() + b"\n"


def check_signature(envelope: bytes, key: "Ed25519PublicKey", *, sha256: str) -> CheckedSignature:
    """Return whether one of the envelope's signatures is of this key and speaks of a file with this hash."""
    _library()
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an optional package

    payload_type, body, signatures = _open_envelope(envelope)
    if payload_type != PAYLOAD_TYPE:
        raise UnsupportedFormat(
            Span(0, len(envelope)), expected=f"a payload of type {PAYLOAD_TYPE}", found=repr(payload_type)[:80]
        )
    message = _pre_authentication_encoding(payload_type, body)
    identity = key_id(key)
    for signed_by, signature in signatures:
        if signed_by != identity:
            continue
        try:
            key.verify(signature, message)
        except InvalidSignature:
            continue
        return _check_statement(body, sha256, identity)
    return CheckedSignature(
        state=SignatureState.BROKEN,
        key_id=identity,
        reason="no signature in the envelope was made with this key over what it says",
    )


def _check_statement(body: bytes, sha256: str, identity: str) -> CheckedSignature:
    statement = parse_json_object(body, expected="a statement in JSON")
    if statement.get("_type") != STATEMENT_TYPE or statement.get("predicateType") != PREDICATE_TYPE:
        raise UnsupportedFormat(
            Span(0, len(body)),
            expected=f"a statement of {PREDICATE_TYPE}",
            found=repr(statement.get("predicateType"))[:80],
        )
    subjects = statement.get("subject")
    digests = [_digest(one) for one in subjects] if isinstance(subjects, list) else []
    if sha256 in digests:
        return CheckedSignature(state=SignatureState.HOLDS, key_id=identity)
    return CheckedSignature(
        state=SignatureState.BROKEN, key_id=identity, reason="the signature is of a manifest with other bytes"
    )


def _digest(subject: Any) -> str | None:
    digest = subject.get("digest") if isinstance(subject, dict) else None
    found = digest.get("sha256") if isinstance(digest, dict) else None
    return found if isinstance(found, str) else None


def _open_envelope(envelope: bytes) -> tuple[str, bytes, list[tuple[str, bytes]]]:
    value = parse_json_object(envelope, expected="a signature in JSON")
    try:
        return (
            str(value["payloadType"]),
            _decode(value["payload"]),
            [(str(one["keyid"]), _decode(one["sig"])) for one in value["signatures"]],
        )
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise FormatError(
            Span(0, len(envelope)), expected="a DSSE envelope", found="an object that lacks a part of one"
        ) from error


def _decode(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:  # bits that carry nothing must not differ either
        raise ValueError(text)
    return data


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an optional package
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - an optional package
    except ImportError:
        raise MissingExtra("sign", "a signature") from None
    return serialization, ed25519
