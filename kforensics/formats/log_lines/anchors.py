"""The places of a text at which known messages begin, found for all rows of the table at once.

A message begins with a capital letter that follows a blank, a bracket, a quote or a mark. The first bytes of each such word
are looked up by their hash, and what is left is compared with the beginnings of messages (anchors), eight bytes of all
places at a time: Python sees only the places at which an anchor stands.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.log_lines.event import LogEventKind
from kforensics.formats.log_lines.table import KEY_LENGTHS, Row, keys, rows

COMPARED = 64
"""The most bytes of an anchor that are compared here; the rest is compared where the message is read."""

_TELLING = 12
"""The least bytes of an anchor by which a line is counted unread: fewer begin lines of other kinds, or of none that is known, too."""
_NAMES_WRITER = re.compile(r"^\S+ $|=$|on broker $")
"""An anchor that only says who speaks."""
_WORD = 8
_REACH = COMPARED + 2 * _WORD
_BLOCK = 1 << 17
_A, _LOWER, _LETTERS = np.uint8(ord("A")), np.uint8(0x20), np.uint8(26)
_SEPARATORS = np.isin(np.arange(256), np.frombuffer(b" \t\n\r\"'>|][:;=.,(", np.uint8))
"""What stands before a word."""
_FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(48)
_SLOTS = 18
"""The bits of the slots in which first bytes are looked up: so many that a factor without collisions is found at once."""
_SLOT_SHIFT = np.uint64(64 - _SLOTS)


class Places(NamedTuple):
    """Where anchors stand in a text, in order."""

    positions: NDArray[np.intp]
    anchors: NDArray[np.intp]
    """The longest anchor at each."""


class _Anchors(NamedTuple):
    """All anchors as arrays, those with the same first bytes one after another, the longest first."""

    texts: tuple[bytes, ...]
    words: NDArray[np.uint64]
    """The bytes of each anchor, eight at a time."""
    masks: NDArray[np.uint64]
    """Which of them count."""
    steps: NDArray[np.intp]
    """The words of each anchor."""
    shortest: np.uint64
    """The bytes that all have."""
    by_hash: NDArray[np.bool_]
    """Whether any anchor begins with bytes of this hash."""
    groups: tuple["_Groups", ...]
    """By the length of the first bytes, the longest first."""


class _Groups(NamedTuple):
    """Anchors by their first bytes."""

    mask: np.uint64
    factor: np.uint64
    """By which each of the first bytes has a hash of its own."""
    by_hash: NDArray[np.uint16]
    keys: NDArray[np.uint64]
    first: NDArray[np.intp]
    """The first anchor of each."""
    end: NDArray[np.intp]
    length: int
    """The number of these bytes; two words of them are looked up by one number, and compared after that."""


def places_of(text: bytes) -> Places:
    """Return where known messages may begin."""
    # Words are compared beyond the place at which they begin: the end is copied, with as many bytes behind it.
    middle = max(len(text) - _REACH, 0)
    first, last = _places(text, middle), _places(text[max(middle - 1, 0) :] + b"\n" * _REACH, len(text) - middle + 1)
    shift = max(middle - 1, 0)
    is_behind = last.positions + shift >= middle
    return Places(
        np.concatenate((first.positions, last.positions[is_behind] + shift)),
        np.concatenate((first.anchors, last.anchors[is_behind])),
    )


def _places(text: bytes, end: int) -> Places:
    """Return the places before a position, behind which the text goes on for `_REACH` bytes."""
    known = _anchors()
    found = _words(text, end)
    count = len(text) // _WORD
    words: NDArray[np.uint64] = np.lib.stride_tricks.as_strided(
        np.frombuffer(text, np.uint64, count), (max(count * _WORD - _WORD + 1, 0),), (1,), writeable=False
    )
    begun = words[found]
    maybe = np.flatnonzero(known.by_hash[((begun & known.shortest) * _FACTOR) >> _SHIFT])
    found, begun = found[maybe], begun[maybe]
    parts: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
    for group in known.groups:
        key = begun & group.mask if group.length <= _WORD else begun * _FACTOR + words[found + _WORD]
        at = group.by_hash[(key * group.factor) >> _SLOT_SHIFT]
        some = np.flatnonzero(group.keys[at] == key)
        anchors, ends = group.first[at[some]], group.end[at[some]]
        while len(some):
            begins = _begin(known, words, found[some], anchors, group.length // _WORD if group.length <= _WORD else 0)
            parts.append((some[begins], anchors[begins]))
            left = ~begins & (anchors + 1 < ends)
            some, anchors, ends = some[left], anchors[left] + 1, ends[left]
    longest = np.full(len(found), -1, np.intp)
    for some, anchors in reversed(parts):  # the longest come first
        longest[some] = anchors
    is_one = longest >= 0
    return Places(found[is_one], longest[is_one])


def _words(text: bytes, end: int) -> NDArray[np.intp]:
    """Return the positions of capitals at the beginnings of words, by blocks that a processor's cache holds."""
    content = np.frombuffer(text, np.uint8)
    found = [np.flatnonzero((content[:1] - _A) < _LETTERS)] if end > 0 else []
    for start in range(1, end, _BLOCK):
        stop = min(start + _BLOCK, end)
        begins = (content[start:stop] - _A) < _LETTERS
        before = content[start - 1 : stop - 1]
        begins &= ((before | _LOWER) - (_A | _LOWER)) >= _LETTERS
        found.append(np.flatnonzero(begins) + start)
    words = np.concatenate(found) if found else np.empty(0, np.intp)
    is_word: NDArray[np.bool_] = _SEPARATORS[content[words - 1]]
    is_word[: len(words) and int(words[0] == 0)] = True
    return words[is_word]


def _begin(
    known: _Anchors, words: NDArray[np.uint64], positions: NDArray[np.intp], anchors: NDArray[np.intp], step: int
) -> NDArray[np.bool_]:
    """Return whether an anchor stands at each position, by its words from one on."""
    begins = known.steps[anchors] <= step
    open_ = np.flatnonzero(~begins)
    positions, anchors = positions[open_], anchors[open_]
    while len(open_):
        is_same = ((words[positions + step * _WORD] ^ known.words[step][anchors]) & known.masks[step][anchors]) == 0
        step += 1
        is_last = known.steps[anchors] == step
        begins[open_[is_same & is_last]] = True
        left = np.flatnonzero(is_same & ~is_last)
        open_, positions, anchors = open_[left], positions[left], anchors[left]
    return begins


def _number(key: bytes) -> int:
    first, second = int.from_bytes(key[:_WORD], "little"), int.from_bytes(key[_WORD:], "little")
    return (first * int(_FACTOR) + second) % (1 << 64) if len(key) > _WORD else first


@cache
def _anchors() -> _Anchors:
    texts: list[bytes] = []
    groups = []
    shortest = np.uint64((1 << 8 * KEY_LENGTHS[-1]) - 1)
    by_hash = np.zeros(1 << 16, np.bool_)
    for length in KEY_LENGTHS:
        some = sorted((_number(key), key) for key in keys() if len(key) == length)
        first, end = [], []
        for _, key in some:
            first.append(len(texts))
            texts += sorted({row.anchor.encode()[:COMPARED] for row in keys()[key]}, key=len, reverse=True)
            end.append(len(texts))
        numbers = np.array([number for number, _ in some], np.uint64)
        begun = np.array([int.from_bytes(key[: KEY_LENGTHS[-1]], "little") for _, key in some], np.uint64)
        by_hash[(begun * _FACTOR) >> _SHIFT] = True
        mask = np.uint64((1 << 8 * min(length, _WORD)) - 1)
        factor = _FACTOR
        while len(np.unique((numbers * factor) >> _SLOT_SHIFT)) < len(numbers):
            factor += np.uint64(2)
        slots = np.zeros(1 << _SLOTS, np.uint16)
        slots[(numbers * factor) >> _SLOT_SHIFT] = np.arange(len(numbers))
        groups.append(_Groups(mask, factor, slots, numbers, np.array(first, np.intp), np.array(end, np.intp), length))
    words = np.frombuffer(b"".join(text.ljust(COMPARED, b"\0") for text in texts), np.uint64)
    masks = np.frombuffer(b"".join((b"\xff" * len(text)).ljust(COMPARED, b"\0") for text in texts), np.uint64)
    shape = len(texts), COMPARED // _WORD
    steps = np.array([-(-len(text) // _WORD) for text in texts], np.intp)
    words, masks = (np.ascontiguousarray(one.reshape(shape).T) for one in (words, masks))
    return _Anchors(tuple(texts), words, masks, steps, shortest, by_hash, tuple(groups))


@lru_cache(maxsize=8)
def counted_kinds(counted: frozenset[LogEventKind]) -> tuple[NDArray[np.intp], Sequence[LogEventKind]]:
    """Return for each anchor the number of its kind among those that follow, -1 where its lines are read.

    Args:
        counted: the kinds of which lines are counted and not read, as far as anchors tell them.
    """
    by_anchor: dict[bytes, list[Row]] = {}
    for row in rows():
        by_anchor.setdefault(row.anchor.encode()[:COMPARED], []).append(row)
    order = tuple(sorted(counted))
    return np.array([_kind(by_anchor[text], order) for text in _anchors().texts], np.intp), order


def _kind(of_anchor: list[Row], counted: Sequence[LogEventKind]) -> int:
    kind = of_anchor[0].section.kind
    anchor = of_anchor[0].anchor
    is_told = kind in counted and len(anchor) >= _TELLING and _NAMES_WRITER.search(anchor) is None
    # An exception of the same name says many things.
    is_told &= "exception" not in of_anchor[0].section.flags
    is_told &= not any(row.is_searched or row.section.kind is not kind for row in of_anchor)
    return counted.index(kind) if is_told else -1
