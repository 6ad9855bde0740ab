"""How long sentences are: of screens, as they are before they are broken into lines, and of the pages of the docs."""

import re
from pathlib import Path

from kforensics.render import screen as text_screen

MOST_ON_A_SCREEN, MOST_IN_DOCS = 30, 60

_END = re.compile(r"(?<=[.!?])[”\")]*\s+(?=[^a-z\s])")
_FENCED = re.compile(r"^ *(```|~~~).*?^ *\1", re.DOTALL | re.MULTILINE)
_PART = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)|\n(?=\||#|!!!)")
_ENUMERATED = re.compile(r"(?:,|;| and| or) (?=`)")
"""Between the names of an enumeration, such as the fields of a document, each of which is read by itself."""


def said_on_screens(monkeypatch):
    """Return a list that takes every text which a screen breaks into lines from now on."""
    said: list[str] = []

    def told(text, **layout):
        said.append(text)
        return wrapped(text, **layout)

    wrapped = text_screen.wrapped
    monkeypatch.setattr(text_screen, "wrapped", told)
    return said


def words_of(sentence: str) -> int:
    """Return how many words a sentence has; code, a path and a number are one each, and a mark is none."""
    sentence = re.sub(r"`[^`]*`", "code", sentence)
    sentence = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence)
    return sum(re.search(r"\w", one) is not None for one in sentence.split())


def too_long(texts, most):
    """Return the sentences of more words than that, each with how many it has."""
    every = {one for text in texts for one in _END.split(" ".join(text.split()))}
    return sorted((words_of(one), one) for one in every if words_of(one) > most)


def texts_of(page: Path):
    """Return the paragraphs, items and cells of a page in Markdown, without its screens and commands."""
    for whole in _PART.split(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        for part in re.split(r"(?<!\\)\|", whole) if whole.startswith("|") else (whole,):
            if not part.startswith("    "):
                yield from _ENUMERATED.split(part)
