"""What a view is made of: blocks, which each format renders in its own way.

Texts in blocks are as the evidence has them: every format escapes what it writes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kforensics.damage import Absent
from kforensics.units import EpochEntry, OffsetRange
from kforensics.words import utc_text

if TYPE_CHECKING:
    from kforensics.findings.answers.model import Answer


class Tone(StrEnum):
    """How words are meant; a format may show it by colour, never by colour alone."""

    PLAIN = "plain"
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Reference:
    """A citation in words; a page links it to the file of that number, from 1, in its list of cited files."""

    words: str
    file: int | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer: its first sentence, and what to do, whom to tell, what comes later and what can't be told."""

    command: str
    answer: "Answer"
    is_whole: bool = True
    """All content was read that the answer is about."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Room between what belongs together and what follows it."""


GAP = Gap()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading: of a part of the view at level 2, of one subject in it at level 3."""

    title: str
    aside: str = ""
    """Behind the title, in the same line."""
    mark: str = ""
    """At the right edge of the line."""
    level: int = 2
    anchor: str = ""
    """A name that other blocks and other pages link to."""
    link: str = ""
    """The anchor of another section that the title leads to."""
    lead: str = ""
    """What a page says below the heading."""


@dataclass(frozen=True, slots=True)
class Prose:
    """Sentences, which a format breaks into lines. One with a hang is an item of a list or, by its depth, of a tree."""

    text: str
    tone: Tone = Tone.PLAIN
    depth: int = 0
    hang: int = 0
    """How much deeper its further lines are."""
    references: tuple[Reference, ...] = ()


def item(
    text: str, tone: Tone = Tone.PLAIN, *, depth: int = 1, hang: int = 1, references: tuple[Reference, ...] = ()
) -> Prose:
    """Return an item of a list or, by its depth, of a tree."""
    return Prose(text, tone, depth, hang, references)


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and what it is here; those that follow each other are set below each other."""

    label: str
    text: str
    width: int = 12
    depth: int = 1
    hang: int = 0
    """Columns of further lines that go beyond the label, where labels differ in width."""
    references: tuple[Reference, ...] = ()


class FactsForm(StrEnum):
    """What a set of facts is to a reader of a page."""

    IDENTITY = "identity"
    FIGURES = "glance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts that belong together, above all else that the view shows: what it is about, or its figures."""

    name: str
    form: FactsForm
    rows: Sequence[tuple[str, str, Tone]]


@dataclass(frozen=True, slots=True)
class Steps:
    """Commands to be pasted, each whole on a line of its own."""

    commands: Sequence[str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    is_number: bool = False
    is_mono: bool = False
    on_pages_only: bool = False
    is_shortened: bool = False
    """Long cells are shortened where the line has no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of more than plain words: a mark, quiet words below, a list, sources."""

    text: str = ""
    badge: str = ""
    tone: Tone = Tone.PLAIN
    below: str = ""
    items: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    """Further items, which a page folds under `more_title`."""
    more_title: str = ""
    link: str = ""
    """The anchor of a section that the text leads to, or a page beside this one, which ends with `.html`."""
    references: tuple[Reference, ...] = ()
    shares: tuple[tuple[float, str], ...] = ()
    """Parts of a bar, of which the widest of the column is 1, drawn as losses are: certain, possible, no. The numbers are in other cells."""


Value = str | int | float | bool | Absent | Cell | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under typed columns; a row that is one text is a remark between the others."""

    name: str
    columns: Sequence[Column]
    rows: Iterable[Sequence[Value] | str]
    has_heading: bool = True
    """Whether a screen shows the titles of the columns."""
    least: Sequence[int] = ()
    """The least width of each column, so that tables below each other agree."""
    depth: int = 1
    is_ledger: bool = False
    """Whether a narrow page shows each row as a card."""
    row_anchor: str = ""
    """Rows can be linked to under this name and their number, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """An election at the offset where its leader epoch begins."""

    offset: int
    is_unclean: bool
    time: str = ""
    """The time of day, on the log of the leader that it elected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One log to scale, in offsets; ends are exclusive."""

    name: str = ""
    start: int = 0
    end: int = 0
    epochs: tuple[EpochEntry, ...] = ()
    truncated_from: int | None = None
    differs_from: int | None = None
    note: str = ""
    """Behind the lane."""
    instead: str = ""
    """Why nothing is drawn."""
    tone: Tone = Tone.PLAIN
    lost: tuple[tuple[OffsetRange, str], ...] = ()
    """What the leader lacks, and whether it was committed: certain, possible, no."""
    watermark: int | None = None
    elections: tuple[Election, ...] = ()
    records: tuple[tuple[int, str], ...] = ()
    """Records one by one, by offset, where the log is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A leader epoch in words: who began to lead in it, when."""

    epoch: int
    words: str
    time: str = ""
    is_unclean: bool = False
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Logs of one partition to one scale, at one moment or at several: snapshots, steps."""

    name: str
    moments: Sequence[tuple[str, Sequence[Lane]]]
    """The name of each moment, empty where there is one, and its lanes."""
    below: str = ""
    """What is true of the offsets below those that are drawn."""
    terms: Sequence[Term] = ()
    in_frames: bool = False
    """Moments stand beside each other, to be scrolled through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One row of a timeline, in UTC."""

    time_ms: int | Absent
    words: str
    source: str = ""
    """In a few words."""
    is_strong: bool = False
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Events in their order."""

    name: str
    events: Sequence[Event]


class Look(StrEnum):
    """How a stretch of time is drawn; its words say what it was."""

    LEADS = "leads"
    FOLLOWS = "follows"
    BEHIND = "behind"
    AWAY = "away"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What was so from one moment to another, in milliseconds since 1970 (UTC)."""

    begin_ms: int
    end_ms: int
    words: str
    look: Look = Look.FOLLOWS
    label: str = ""
    """In the picture, where it has room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What happened at a moment, in milliseconds since 1970 (UTC)."""

    time_ms: int
    words: str
    is_grave: bool = False
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The lane over time of one subject, such as a broker or a consumer group; it is blank where nothing is known."""

    name: str
    stretches: Sequence[Stretch] = ()
    moments: Sequence[Moment] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """Lanes over time, all on one scale from the first moment to the last that is in them."""

    name: str
    courses: Sequence[Course]
    legend: Sequence[tuple[Look, str]] = ()
    """What each look stands for, which a page says above the first of some pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Counts at moments, one after the other, as stacked bars; a screen has them in a table."""

    name: str
    kinds: Sequence[str]
    """What is counted, from the bottom of a bar to its top."""
    moments: Sequence[tuple[str, Sequence[int]]]
    """The name of each moment, and a count of each kind."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What follows each other in an order: a name, words below it, and its tone, each."""

    name: str
    links: Sequence[tuple[str, str, Tone]]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that are laid out and escaped already, in pieces with their line ends: listings of any length."""

    name: str
    pieces: Iterable[str]


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that a page folds."""

    title: str
    blocks: Sequence["Block"]
    is_bulk: bool = False
    """Left out of print."""


Block = (
    Headline
    | Gap
    | Section
    | Prose
    | Fact
    | Facts
    | Steps
    | Table
    | Lanes
    | OverTime
    | Timeline
    | Bars
    | Chain
    | Lines
    | Folded
)


def plain(value: Value) -> str:
    """Return a value of a table as people read it."""
    if isinstance(value, Cell):
        parts = [value.badge, value.text, value.below, *value.items, *value.more, *(r.words for r in value.references)]
        return "; ".join(part for part in parts if part)
    if value is None:
        return ""
    if isinstance(value, Absent):
        return "unreadable" if value is Absent.UNREADABLE else "-"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def known(value: Any) -> str:
    """Return a value in words: a number without separators, and what is not there as unknown."""
    return "unknown" if isinstance(value, Absent) else str(value)


def utc(time_ms: int | Absent | None) -> str:
    """Return a time, or that it is unknown."""
    return utc_text(time_ms) if isinstance(time_ms, int) and time_ms >= 0 else "time unknown"


def text_of(name: str | bytes) -> str:
    """Return a name as text; bytes that are not UTF-8 stay distinct."""
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
