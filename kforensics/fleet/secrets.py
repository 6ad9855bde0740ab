"""Credentials that a user gave, and texts without them."""

import re
from collections.abc import Mapping

HIDDEN = "***"

_SECRET_NAME = re.compile(
    r"(?i)secret|token|passw|(access|account|api)[._-]?key|^key$|sas|signature|^sig$|userinfo|credential"
)
_IN_URI = re.compile(r"(?<=://)[^/@\s:]*:[^/@\s]*(?=@)")
_IN_QUERY = re.compile(r"([?&;]([\w.-]+)=)([^&\s'\"]+)")

_SHORTEST = 4
"""Characters of a value below which hiding it everywhere would hide ordinary words."""

_known: set[str] = set()


def _is_secret(name: str) -> bool:
    """Return whether an option of this name holds a credential."""
    return _SECRET_NAME.search(name) is not None


def hide(options: Mapping[str, str]) -> None:
    """Take note of the credentials among options; `redacted` leaves their values out from now on, in this process.

    Args:
        options: value by name; a name says whether its value is a credential.
    """
    _known.update(value for name, value in options.items() if _is_secret(name) and len(value) >= _SHORTEST)


def redacted(text: str) -> str:
    """Return the text without credentials: those that are known, those of a URI's user, and those in a query."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    text = _IN_URI.sub(HIDDEN, text)
    return _IN_QUERY.sub(lambda found: found[1] + (HIDDEN if _is_secret(found[2]) else found[3]), text)
