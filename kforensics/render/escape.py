"""Make text from evidence safe for a terminal: no topic, key or file name may control the screen (CWE-150)."""

import unicodedata

REPLACED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, format characters (bidi among them), surrogates, unassigned ones, line and paragraph separators."""


def escape_text(text: str | bytes) -> str:
    r"""Escape every character that is not plainly visible, as `\x1b` or `\u202e`.

    Bytes are read as UTF-8, and what is not UTF-8 becomes `\xff`. A backslash is doubled where it could be taken for the beginning of an escape, so that
    the result is unambiguous; the paths of Windows stay legible.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="surrogateescape")
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_escape_character, text, (*text[1:], "\\")))


def _escape_character(character: str, following: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\" if following in "\\xuU" else character
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, as os.fsdecode keeps it
        return f"\\x{code - 0xDC00:02x}"
    if character == " " or (unicodedata.category(character) not in REPLACED_CATEGORIES and character.isprintable()):
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def shorten(text: str, width: int) -> str:
    """Return the text shortened to `width` columns: `…` replaces the middle, since both ends of a path or topic say more."""
    if len(text) <= width:
        return text
    if width < 2:
        return "…"[:width]
    head = (width - 1) // 2
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]
