"""Settings of a broker without the passwords in them."""

import re

_SECRET = re.compile(
    rb"(?im)^([^\S\n]*[^#!\s=:]*(?:password|secret|jaas|credential|token|\.key\b|private)[^\s=:]*[^\S\n]*[=:]?[^\S\n]*)((?:\\\r?\n|[^\n])*)"
)


def without_secrets(data: bytes) -> bytes:
    """Return properties with asterisks in the place of values that may be secret, so that every line stays where it was.

    Args:
        data: a `.properties` file.
    """
    return _SECRET.sub(lambda match: match[1] + re.sub(rb"[^\\\r\n]", b"*", match[2]), data)
