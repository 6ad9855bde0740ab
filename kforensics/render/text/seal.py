"""The check of a seal as a screen."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from kforensics.commands.result import Result
from kforensics.commands.seal import CheckedManifest
from kforensics.commands.sealing.signature import CheckedSignature, SignatureState
from kforensics.damage import Absent
from kforensics.evidence.model import Problem
from kforensics.evidence.seal.manifest import ManifestHead
from kforensics.evidence.seal.state import Change, Difference, SealEntry
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import INDENT, Line, Words, hanging, section
from kforensics.render.text.whole import whole_screen
from kforensics.render.view import View
from kforensics.words import counted

_HEADINGS = {
    Change.CONTENT: "other content",
    Change.MISSING: "missing",
    Change.ADDED: "not sealed",
    Change.TIMES: "other times or permissions, same content",
}


@whole_screen
def write(result: Result[CheckedManifest], view: View) -> Iterator[Line]:
    """Yield who sealed when, then the differences by kind.

    Args:
        result: of `seal --check`, which is compared to its end here.
        view: of the screen, and whether all is listed.
    """
    check, signature = result.body.check, result.body.signature
    assert signature is not None  # once the answer is there, all has been compared
    yield Words(_sealed_words(check.head))
    yield Words(_signature_words(signature))
    for change, heading in _HEADINGS.items():
        count = check.counts[change]
        if not count:
            continue
        if change is Change.TIMES and not view.verbose:
            yield Words(f"{counted(count, 'entry', 'entries')} with {heading} (-v lists them).")
            continue
        yield from section(heading)
        for one in check.named[change]:
            yield hanging(_difference_words(one, check.shown))
        if count > len(check.named[change]):
            yield Text(f"{INDENT}and {count - len(check.named[change]):,} more (--format json lists all)")
    yield from _problem_lines(check.problems, check.shown)


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
    """Return the path of an entry below its input, as given.

    Args:
        number: of the input, from 0.
        path: relative to the input.
    """
    return shown[number] if path == "." else f"{shown[number].rstrip('/')}/{path}"


def _problem_lines(problems: Sequence[Problem], shown: Sequence[str], *, most: int = 20) -> Iterator[Line]:
    if problems:
        yield from section("could not be compared")
    for one in problems[:most]:
        words = f"{escape_text(place(one.input, one.path, shown))}: {escape_text(one.message)}"
        yield hanging(words)
    if len(problems) > most:
        yield Text(f"{INDENT}and {len(problems) - most:,} more")
