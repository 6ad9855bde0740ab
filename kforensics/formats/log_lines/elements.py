"""Logs in XML, and the text of HTML: each element that is an event as an object on its first line, with as many lines as before.

    event = <name attribute="…"*> (text | <![CDATA[text]]> | element)* </name>      over one line or many

No document is parsed, so that any piece of one can be read: declarations and entities of its own are not.
"""

import json
import re
from collections import Counter
from html import unescape
from typing import Any

from kforensics.formats.log_lines.stamps import LEVEL, stamps_in

LONGEST_ELEMENT = 1 << 18
"""The most bytes of an element that is read as one."""

_HEAD_LENGTH = 1 << 16
_DEEPEST = 10
_BEGIN = re.compile(rb"<([A-Za-z][\w:.-]*)[^<>]*+(?<!/)>")
_PIECE = re.compile(
    rb"<!\[CDATA\[(?P<data>.*?)\]\]>|<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*)(?P<attributes>[^<>]*?)(?P<empty>/?)(?:>|$)|<[!?][^<>]*>|[^<]+|<",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(rb"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_TAG = re.compile(rb"</[A-Za-z][\w:.-]*\s*>|<br ?/?>|<!\[CDATA\[|\]\]>")
_ENTITY = re.compile(rb"&(?:[a-z]{2,8}|#\d{1,7}|#x[0-9a-f]{1,6});")
_IS_MARKUP = re.compile(rb"</[A-Za-z]|<br ?/?>|&(?:[lg]t|amp|quot|apos|#\d+);")


def markup_of(head: bytes) -> re.Pattern[bytes] | None:
    """Return what finds the events of XML or HTML, or the entities of a text without such; None for other text."""
    if _IS_MARKUP.search(head) is None:
        return None
    name = event_name(head[:_HEAD_LENGTH]) if head.lstrip()[:1] == b"<" else None
    if name is None:
        return _ENTITY
    return re.compile(
        b"<%b(?=[\\s>])(?:(?!<%b[\\s>]).){0,%d}?</%b\\s*>?" % (name, name, LONGEST_ELEMENT, name), re.DOTALL
    )


def of_elements(data: bytes, event: re.Pattern[bytes]) -> bytes:
    """Return a text with its events as objects, or with its entities as characters, and without tags that close others."""
    return _TAG.sub(b"", event.sub(_as_line, data))


def last_event_end(text: bytes, event: re.Pattern[bytes]) -> int:
    """Return where the last event of a text ends; -1 where none does near its end."""
    begin = max(0, len(text) - 2 * LONGEST_ELEMENT)
    return max((found.end() for found in event.finditer(text, begin)), default=-1)


def event_name(head: bytes) -> bytes | None:
    """Return the outermost element that comes again and again with a time or a level in it."""
    names = Counter(found[1] for found in _BEGIN.finditer(head))
    for name, count in names.items():
        parts = re.split(b"<%b(?=[\\s>])" % name, head)[1:]
        ends = [part.partition(b"</%b" % name) for part in parts]
        whole = [part for part, end, _ in ends if end]
        telling = sum(LEVEL.search(part) is not None or bool(stamps_in(part[:2_000])) for part in whole)
        if count > 1 and telling * 2 > len(whole):
            return name
    return None


def _as_line(found: re.Match[bytes]) -> bytes:
    if found[0][:1] == b"&":
        return unescape(_text(found[0])).replace("\n", " ").encode()
    value = _value(found[0])
    if not isinstance(value, dict):
        return _ENTITY.sub(_as_line, found[0])
    return json.dumps(value, ensure_ascii=False).encode() + b"\n" * found[0].count(b"\n")


def _value(text: bytes) -> Any:
    """Return an element as an object of its attributes and of what is in it; a text alone as such."""
    open_: list[tuple[str, dict[str, Any], list[str]]] = [("", {}, [])]
    for found in _PIECE.finditer(text):
        texts = open_[-1][2]
        if found["name"] is None:
            texts.append(
                _text(found["data"])
                if found["data"] is not None
                else ""
                if found[0][:2] in {b"<!", b"<?"}
                else unescape(_text(found[0]))
            )
        elif found["close"]:
            if len(open_) > 1:
                _close(open_)
        else:
            attributes = {
                _text(key): _number(unescape(_text(one or other)))
                for key, one, other in _ATTRIBUTE.findall(found["attributes"])
            }
            open_.append((_text(found["name"]).rpartition(":")[2], attributes, []))
            if found["empty"] or len(open_) > _DEEPEST:
                _close(open_)
    while len(open_) > 1:
        _close(open_)
    return next(iter(open_[0][1].values()), None)


def _close(open_: list[tuple[str, dict[str, Any], list[str]]]) -> None:
    name, inside, texts = open_.pop()
    text = "".join(texts).strip("\r\n")
    value: Any = inside
    if not inside:
        value = _number(text)
    elif text.strip():
        inside["text"] = text
    outer = open_[-1][1]
    if name in outer:
        before = outer[name]
        outer[name] = [*before, value] if isinstance(before, list) else [before, value]
    else:
        outer[name] = value


def _number(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
