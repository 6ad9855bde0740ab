"""Numbers and lists as people read them, the same in a headline, on a screen and on a page."""

from collections.abc import Sequence


class Prohibition(str):
    """A sentence of advice that says what not to do; in every other way the text that it is."""

    __slots__ = ()


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun: `1 record`, `43 records`, `1,204 batches`.

    Args:
        count: of 0 or more.
        singular: the noun for one.
        plural: the noun for all others; None for the singular with an s.
    """
    return f"{count:,} {form(count, singular, plural)}"


def form(count: int, singular: str, plural: str | None = None) -> str:
    """Return the form of a noun or verb for so many: `form(2, "record")` is `records`, `form(2, "holds", "hold")` is `hold`.

    Args:
        count: of 0 or more.
        singular: the form for one.
        plural: the form for all others; None for the singular with an s.
    """
    return singular if count == 1 else plural or singular + "s"


def byte_count(count: int) -> str:
    """Return bytes for people, in units of 1024: `0 B`, `1.5 KB`, `10 MB`.

    Args:
        count: in bytes, 0 or more.
    """
    size = float(count)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}" if size < 10 else f"{size:.0f} {unit}"
        size /= 1024
    raise AssertionError


def listed(items: Sequence[str], *, most: int = 5) -> str:
    """Return items in a sentence: `1, 2 and 3`.

    Args:
        items: in their order.
        most: how many are named; those above are only counted.
    """
    if len(items) > most:
        return ", ".join(items[:most]) + f" and {len(items) - most} more"
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + " and " + items[-1]


def id_list(ids: object) -> str:
    """Return ids as Kafka's logs print them, `[1, 2]`; `unknown` for what is no tuple of them.

    Args:
        ids: a tuple of node ids, or the reason why there is none.
    """
    return f"[{', '.join(map(str, ids))}]" if isinstance(ids, tuple) else "unknown"


def duration(length_ms: int) -> str:
    """Return a length of time in its largest whole unit: `7 days`, `90 minutes`, `1,500 ms`.

    Args:
        length_ms: in milliseconds.
    """
    for unit, unit_ms in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
        if length_ms and length_ms % unit_ms == 0:
            return counted(length_ms // unit_ms, unit)
    return f"{length_ms:,} ms"


def name_text(name: str | bytes) -> str:
    """Return a name as text for sentences and findings; bytes that are not UTF-8 become U+FFFD, since a JSON string can't hold them.

    Args:
        name: of a file, as text or as the bytes that a file system gave.
    """
    return name.decode(errors="replace") if isinstance(name, bytes) else name
