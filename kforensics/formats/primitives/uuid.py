"""Kafka's `Uuid`: 16 bytes, written as 22 characters of URL-safe base64 without padding."""

from base64 import urlsafe_b64decode
from binascii import b2a_base64
from functools import lru_cache

_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of a uuid.

    Args:
        text: its 22 characters.
    """
    return urlsafe_b64decode(text + "==")


@lru_cache(maxsize=65_536)
def uuid_text(raw: bytes) -> str:
    """Return the 22 characters of a uuid.

    Args:
        raw: the 16 bytes of the id.
    """
    return b2a_base64(raw, newline=False)[:22].translate(_TO_URL_SAFE).decode("ascii")
