"""Numbers, times and lists as people read them, the same in a headline, on a screen and on a page."""

import re
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple, Self

_START = datetime(1970, 1, 1, tzinfo=UTC)


class Step(str):
    """A sentence of advice with the commands that follow it; in every other way the text that it is, `sentence: command; command`.

    A screen sets each command on a line of its own, whole, so that it can be pasted.
    """

    __slots__ = ("commands", "sentence")
    sentence: str
    commands: tuple[str, ...]

    def __new__(cls, sentence: str, commands: Iterable[str] = ()) -> Self:
        """Make a step of a sentence, without the colon before its commands, and shell commands."""
        given = tuple(commands)
        made = super().__new__(cls, f"{sentence.rstrip('.:')}: {'; '.join(given)}" if given else sentence)
        made.sentence, made.commands = sentence, given
        return made

    def __getnewargs__(self) -> tuple[str, tuple[str, ...]]:  # type: ignore[override]
        """Return what it is made of, for pickle and copy."""
        return self.sentence, self.commands


class Prohibition(Step):
    """A step that says what not to do."""

    __slots__ = ()


class Rescue(Step):
    """A step that gets records out of what holds them, or says where to look for them."""

    __slots__ = ()


MOST_WORDS = 30
"""Words of a sentence on a screen."""
SENTENCES = re.compile(r"(?<=[.!?]) +(?=[^a-z\s])")
"""What is between two sentences."""
_CLAUSES = re.compile(r"; (?![^(]*\))")


def in_short_sentences(text: str) -> str:
    """Return words with those sentences that are too long broken between their clauses, at a semicolon that is in no parentheses."""
    if ";" not in text:
        return text
    said = []
    for sentence in SENTENCES.split(text):
        if len(sentence.split()) <= MOST_WORDS:
            said.append(sentence)
            continue
        first, *clauses = _CLAUSES.split(sentence)
        parts = [first]
        for clause in clauses:
            if len(f"{parts[-1]} {clause}".split()) <= MOST_WORDS // 2:
                parts[-1] += f"; {clause}"
                continue
            word = clause.split(" ")[0]
            # A name of a topic, a file or a command stays as it is.
            parts.append(clause[:1].upper() + clause[1:] if word.rstrip(",:").isalpha() else clause)
        said.append(". ".join(parts))
    return " ".join(said)


SAFE = '"${SAFE:?}"'
"""A directory on another disk than the evidence, in a command: a shell refuses the command until it is set."""
EXPORT = "export SAFE=/path/on/another/disk"
"""The command before the first that copies there."""


def with_place(steps: Iterable[str]) -> tuple[str, ...]:
    """Return steps of which the first that makes a copy says where copies go.

    Args:
        steps: among them some whose commands have `SAFE` in them; those of several answers may say it, or make a copy, more than once.
    """
    out: list[str] = []
    made: set[str] = set()
    said: set[str] = set()
    steps = list(steps)
    every = [each for one in steps if isinstance(one, Step) for each in one.commands]
    whole = tuple(f"{source}/" for each in every if each.startswith(_COPIES) for source in copied_by(each))
    # What is below a directory that is copied is copied with it.
    made.update(
        each
        for each in every
        if each.startswith(_COPIES_PARTS) and all(source.startswith(whole) for source in copied_by(each))
    )
    is_first = True
    for one in steps:
        commands = tuple(each for each in one.commands if each != EXPORT) if isinstance(one, Step) else ()
        if not isinstance(one, Step) or not any(SAFE in each for each in commands):
            out.append(one)
            continue
        new = tuple(each for each in commands if each not in made)
        plain = one.sentence.rstrip(".:")
        asks_for_copies_alone = plain.startswith("Copy ")
        if not new and (plain in said or asks_for_copies_alone):
            continue
        said.add(plain)
        sentence = one.sentence if new else f"{one.sentence.rstrip('.:')}."
        out.append(type(one)(sentence, (EXPORT, *new) if new and is_first else new))
        is_first = is_first and not new
        made.update(new)
    return tuple(dict.fromkeys(out))


_COPIES, _COPIES_PARTS = "cp -a ", "mkdir -p "


def copied_by(command: str) -> tuple[str, ...]:
    """Return what a command copies; nothing for one that makes no copy."""
    words = shlex.split(command)
    return tuple(words[words.index("-a") + 1 : -1]) if "cp" in words and "-a" in words else ()


def copy_of(path: str) -> str:
    """Return the command that copies a directory."""
    return f"cp -a {quoted(path)} {place_of_copy(path)}"


def place_of_copy(path: str) -> str:
    """Return where the copy of a directory goes, in a command: a name of its own among the copies of several nodes."""
    pure = PurePosixPath(path)
    names = [one for one in (pure.parent.name, pure.name) if one not in {"", ".."}]
    return f"{SAFE}/{quoted('-'.join(names or ['data']))}"


def quoted(word: str) -> str:
    """Return a word as a shell takes it; one with a line break or another character that no screen shows in the form `$'…'`, which bash and zsh read, but not every shell."""
    if word.isprintable() and "\\" not in word:
        return shlex.quote(word)
    letters = (_escaped(one) if not one.isprintable() or one in "\\'" else one for one in word)
    return f"$'{''.join(letters)}'"


def _escaped(letter: str) -> str:
    # In octal digits: a screen would double a backslash before an x, as it does in what it escapes.
    of_a_name = "\udc80" <= letter <= "\udcff"  # how Python reads a byte of a name that is no UTF-8
    data = letter.encode("utf-8", "surrogateescape" if of_a_name else "replace")
    return "".join(f"\\{one:03o}" for one in data)


def command_line(words: Iterable[str]) -> str:
    """Return words as a command that can be pasted into a shell."""
    return " ".join(map(quoted, words))


def escaped_line(text: str) -> str:
    """Return text as one line without control characters, for a comment."""
    return "".join(one if one.isprintable() else " " for one in text)


class Count(NamedTuple):
    """A number of things; one that is a lower bound says so wherever it is read."""

    number: int
    is_at_least: bool = False

    def __str__(self) -> str:
        """Return it in words: `1,204`, `at least 23`."""
        return f"{'at least ' if self.is_at_least else ''}{self.number:,}"


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun, whose plural is given where it has not an s: `1 record`, `43 records`, `1,204 batches`."""
    return f"{count:,} {form(count, singular, plural)}"


def form(count: int, singular: str, plural: str | None = None) -> str:
    """Return the form of a noun or verb for so many: `form(2, "record")` is `records`, `form(2, "holds", "hold")` is `hold`."""
    return singular if count == 1 else plural or singular + "s"


def byte_count(count: int) -> str:
    """Return bytes for people, in units of 1024: `0 B`, `1.5 KB`, `10 MB`."""
    size = float(count)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}" if size < 10 else f"{size:.0f} {unit}"
        size /= 1024
    raise AssertionError


def listed(items: Sequence[str], *, most: int = 5) -> str:
    """Return items in a sentence: `1, 2 and 3`."""
    if len(items) > most:
        return ", ".join(items[:most]) + f" and {len(items) - most} more"
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + " and " + items[-1]


def id_list(ids: object) -> str:
    """Return ids as Kafka's logs print them, `[1, 2]`; `unknown` for what is no tuple of them."""
    return f"[{', '.join(map(str, ids))}]" if isinstance(ids, tuple) else "unknown"


def duration(length_ms: int) -> str:
    """Return a length of time in its largest whole unit: `7 days`, `90 minutes`, `1,500 ms`."""
    for unit, unit_ms in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
        if length_ms and length_ms % unit_ms == 0:
            return counted(length_ms // unit_ms, unit)
    return f"{length_ms:,} ms"


@lru_cache(maxsize=1024)
def utc_second(seconds: int) -> str | None:
    """Return a second as `2026-11-21T06:26:13`, none outside of the years 1 to 9999; it is cached, since consecutive records share their second."""
    try:
        moment = _START + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")


def utc_text(time_ms: int) -> str:
    """Return a time as `2026-11-21T06:26:13.332Z`, or as the number that it is where no calendar holds it."""
    text = utc_second(time_ms // 1000)
    return f"{time_ms} ms" if text is None else f"{text}.{time_ms % 1000:03d}Z"


def utc_words(time_ms: int) -> str:
    """Return a time for a sentence, `2026-11-21 06:26:13 UTC`, or the number that it is where no calendar holds it."""
    text = utc_second(time_ms // 1000)
    return f"{time_ms} ms" if text is None else f"{text.replace('T', ' ')} UTC"


def time_of_day(time_ms: int) -> str:
    """Return the time of a day, `06:26:13.332`, or the number that it is where no calendar holds it."""
    _, _, text = utc_text(time_ms).rstrip("Z").rpartition("T")
    return text


def shift_text(shift_ms: int) -> str:
    """Return what was added to a time to make it UTC, negative for a clock ahead: `-2:00:00`, `+0:00:01.500`."""
    seconds, millis = divmod(abs(shift_ms), 1000)
    text = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (f".{millis:03}" if millis else "")
    return f"{'-' if shift_ms < 0 else '+'}{text}"


def name_text(name: str | bytes) -> str:
    """Return a name as text for sentences and findings; bytes that are not UTF-8 become U+FFFD, since a JSON string can't hold them."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def joined_by_and(names: Iterable[str]) -> str:
    """Return brokers in a sentence, all of which are meant."""
    return joined_names(names, "and")


def joined_names(names: Iterable[str], word: str) -> str:
    """Return names in a sentence, those of one kind together: `brokers 1 and 2 and controller 100`."""
    every = sorted(dict.fromkeys(names), key=lambda name: (len(name), name))
    parts = []
    for kind in dict.fromkeys(name.rpartition(" ")[0] for name in every):
        numbers = [name.rpartition(" ")[2] for name in every if name.rpartition(" ")[0] == kind]
        kinds = "the nodes at" if kind == "the node at" else f"{kind}s"
        several = f"{kinds} {', '.join(numbers[:-1])} {word} {numbers[-1]}"
        parts.append(several if len(numbers) > 1 else f"{kind} {numbers[0]}".strip())
    return f" {word} ".join(parts)
