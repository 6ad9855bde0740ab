"""A detached signature over a file's stored bytes, with an Ed25519 key of the user's own.

The envelope is DSSE v1: it carries a statement in the in-toto form that names the signed file and its sha256, and the
signature covers `PAE(type, statement)` of the statement's stored bytes:

    PAE   "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body        lengths in ASCII decimal

Nothing is ever serialised again to be checked, and the signed file does not know of its signature.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kforensics.damage import Span
from kforensics.errors import FormatError, MissingExtra, UnsupportedFormat, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

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
    """Return the private key of a PEM file.

    Args:
        passphrase: is asked only where the key is encrypted.

    Raises:
        UsageError: it is no Ed25519 key, or can't be decrypted.
        MissingExtra: the package `cryptography` is missing.
    """
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
    """Return the public key of a PEM file.

    Raises:
        UsageError: it is no Ed25519 key.
        MissingExtra: the package `cryptography` is missing.
    """
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
    """Return the DSSE envelope of a file.

    Args:
        name: of the file, as the statement has it.
        sha256: of the file, in hexadecimal digits.
    """
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
    """Return whether one of the envelope's signatures is of this key and speaks of a file with this hash.

    Args:
        sha256: of the file, in hexadecimal digits.

    Raises:
        FormatError: the envelope is none, or of another kind.
    """
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
    statement = _json(body)
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
    value = _json(envelope)
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


def _json(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(Span(0, len(data)), expected="a signature in JSON", found="something else") from error
    if not isinstance(value, dict):
        raise FormatError(Span(0, len(data)), expected="a JSON object", found=type(value).__name__)
    return value


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an optional package
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - an optional package
    except ImportError:
        raise MissingExtra("sign", "a signature") from None
    return serialization, ed25519
