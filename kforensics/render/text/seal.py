"""The screen of `kforensics seal --check`, and the parts of its document."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from kforensics.commands.sealing.report import CheckedSeal, seal_sentence
from kforensics.commands.sealing.seal import SealCheck
from kforensics.commands.sealing.signature import CheckedSignature, SignatureState
from kforensics.damage import Absent
from kforensics.evidence.model import Problem
from kforensics.evidence.seal.manifest import ManifestHead
from kforensics.evidence.seal.state import Change, Difference, SealEntry
from kforensics.render.escape import escape_text
from kforensics.render.json.document import to_plain
from kforensics.render.text.screen import INDENT, Style, byte_count, counted, wrapped

_HEADINGS = {
    Change.CONTENT: "other content",
    Change.MISSING: "missing",
    Change.ADDED: "not sealed",
    Change.TIMES: "other times or permissions, same content",
}


def seal_screen(check: SealCheck, signature: CheckedSignature, *, width: int, verbose: bool) -> Iterator[Text]:
    """Yield the answer, who sealed the evidence and when, then the differences by kind."""
    yield from wrapped(_answer(check, signature), width=width, style=_style(check, signature))
    yield from wrapped(_sealed_words(check.head), width=width)
    yield from wrapped(_signature_words(signature), width=width)
    for change, heading in _HEADINGS.items():
        count = check.counts[change]
        if not count:
            continue
        if change is Change.TIMES and not verbose:
            yield from wrapped(f"{counted(count, 'entry', 'entries')} with {heading} (-v lists them).", width=width)
            continue
        yield Text()
        yield Text(heading, style=Style.HEADING)
        for one in check.named[change]:
            yield from wrapped(_difference_words(one, check.shown), width=width, first=INDENT, indent=INDENT * 2)
        if count > len(check.named[change]):
            yield Text(f"{INDENT}and {count - len(check.named[change]):,} more (--format json lists all)")
    yield from _problem_lines(check.problems, check.shown, width=width)


def _answer(check: SealCheck, signature: CheckedSignature) -> str:
    total = check.sealed.files + check.sealed.directories + check.sealed.others
    size = byte_count(check.sealed.bytes)
    differ = sum(check.counts[one] for one in (Change.CONTENT, Change.MISSING, Change.ADDED))
    if signature.state is SignatureState.BROKEN:
        return "The seal itself can't be trusted: its signature is invalid."
    if check.problems:
        return f"Not all of it can be compared with the seal: {counted(len(check.problems), 'problem')}."
    if not differ:
        return f"Nothing has changed since it was sealed: {counted(total, 'entry', 'entries')}, {size}."
    parts = [
        f"{check.counts[change]:,} {words}"
        for change, words in ((Change.CONTENT, "altered"), (Change.MISSING, "missing"), (Change.ADDED, "added"))
        if check.counts[change]
    ]
    return f"This is not what was sealed: {', '.join(parts)}; {check.held:,} of {counted(total, 'entry', 'entries')} {'is' if check.held == 1 else 'are'} unchanged."


def _style(check: SealCheck, signature: CheckedSignature) -> str:
    if signature.state is SignatureState.BROKEN or any(
        check.counts[one] for one in (Change.CONTENT, Change.MISSING, Change.ADDED)
    ):
        return Style.ANSWER_BAD
    return Style.ANSWER_WARNING if check.problems else Style.ANSWER_GOOD


def _sealed_words(head: ManifestHead) -> str:
    envelope = head.envelope
    by = "" if isinstance(envelope.operator, Absent) else f" by {escape_text(envelope.operator)}"
    case = "" if isinstance(envelope.case_id, Absent) else f", case {escape_text(envelope.case_id)}"
    return f"Sealed {escape_text(envelope.sealed_utc)}{by} with kforensics {escape_text(head.tool_version)}{case}."


def _signature_words(signature: CheckedSignature) -> str:
    match signature.state:
        case SignatureState.HOLDS:
            return f"The signature is valid; key {signature.key_id}."
        case SignatureState.BROKEN:
            return f"About the signature: {signature.reason}."
        case SignatureState.NOT_CHECKED:
            return "The signature was not checked: --public-key names the key to check it with."
    return "The manifest is not signed: anyone who can alter the evidence could have altered it too."


def _difference_words(one: Difference, shown: Sequence[str]) -> str:
    subject = one.subject
    where = escape_text(place(subject.input, subject.path, shown))
    if one.change is Change.CONTENT:
        return f"{where}: sealed {_content(one.sealed)}, found {_content(one.found)}"
    if one.change is Change.TIMES:
        return f"{where}: sealed {_times(one.sealed)}, found {_times(one.found)}"
    return f"{where} ({subject.kind})"


def _content(entry: SealEntry | Absent) -> str:
    if isinstance(entry, Absent):
        return "nothing"
    size = "" if isinstance(entry.length, Absent) else f" of {entry.length:,} bytes"
    return f"{entry.kind}{size} {escape_text(str(entry.sha256))[:12]}"


def _times(entry: SealEntry | Absent) -> str:
    return "nothing" if isinstance(entry, Absent) else escape_text(f"{entry.modified} mode {entry.mode}")


def place(number: int, path: str, shown: Sequence[str]) -> str:
    """Return the path of an entry below its input, as given."""
    return shown[number] if path == "." else f"{shown[number].rstrip('/')}/{path}"


def _problem_lines(problems: Sequence[Problem], shown: Sequence[str], *, width: int, most: int = 20) -> Iterator[Text]:
    if problems:
        yield Text()
        yield Text("could not be compared", style=Style.HEADING)
    for one in problems[:most]:
        words = f"{escape_text(place(one.input, one.path, shown))}: {escape_text(one.message)}"
        yield from wrapped(words, width=width, first=INDENT, indent=INDENT * 2)
    if len(problems) > most:
        yield Text(f"{INDENT}and {len(problems) - most:,} more")


def plain_seal(seal: CheckedSeal) -> Mapping[str, Any]:
    """Return the seal as a field of the document of a report."""
    return {
        "manifest_sha256": seal.manifest_sha256,
        "tool_version": seal.tool_version,
        **to_plain(seal.envelope),
        "holds": seal.holds,
        "sealed": seal.sealed,
        "held": seal.held,
        "changes": {change.value: seal.changes[change] for change in Change},
        "uncovered": seal.uncovered,
    }


def sealed_lines(seal: CheckedSeal, *, width: int) -> Iterator[Text]:
    """Yield the lines about the seal at the end of a report's screen."""
    style = Style.QUIET if seal.holds else Style.ANSWER_BAD
    yield Text()
    yield from wrapped(escape_text(seal_sentence(seal)), width=width, style=style)


def broken_seal_lines(width: int) -> Iterator[Text]:
    """Yield the warning before a report whose inputs differ from the sealed evidence."""
    words = "NOT WHAT WAS SEALED: the inputs differ from the manifest (`kforensics seal --check` lists where), and this report is about the inputs as they are now."
    yield from wrapped(words, width=width, style=Style.ANSWER_BAD)


def plain_difference(one: Difference) -> Mapping[str, Any]:
    """Return a difference as a field of the document; a side is absent if the entry does not exist there."""
    return {
        "input": one.subject.input,
        "path": one.subject.path,
        "change": one.change,
        "sealed": _plain_side(one.sealed),
        "found": _plain_side(one.found),
    }


def _plain_side(entry: SealEntry | Absent) -> object:
    if isinstance(entry, Absent):
        return entry
    return {
        "kind": entry.kind,
        "bytes": entry.length,
        "modified_utc": entry.modified,
        "mode": entry.mode,
        "sha256": entry.sha256,
    }
