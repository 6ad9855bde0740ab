"""What the check of a seal shows: who sealed when, then the differences by kind."""

from collections.abc import Iterator, Sequence

from kforensics.commands.result import Result
from kforensics.commands.seal import CheckedManifest
from kforensics.commands.sealing import CheckedSignature, SignatureState
from kforensics.damage import Absent
from kforensics.evidence.model import Problem
from kforensics.evidence.seal import Change, Difference, ManifestHead, SealEntry
from kforensics.render.blocks import Block, Prose, Section, item
from kforensics.render.view import View
from kforensics.words import counted

MOST_PROBLEMS = 20

_HEADINGS = {
    Change.CONTENT: "other content",
    Change.MISSING: "missing",
    Change.ADDED: "not sealed",
    Change.TIMES: "other times or permissions, same content",
}


def blocks(result: Result[CheckedManifest], view: View) -> Iterator[Block]:
    """Yield who sealed when, then the differences by kind."""
    check, signature = result.body.check, result.body.signature
    assert signature is not None  # once the answer is there, all has been compared
    yield Prose(_sealed_words(check.head))
    yield Prose(_signature_words(signature))
    for change, heading in _HEADINGS.items():
        count = check.counts[change]
        if not count:
            continue
        if change is Change.TIMES and not (view.verbose or view.page):
            yield Prose(f"{counted(count, 'entry', 'entries')} with {heading} (-v lists them).")
            continue
        yield Section(title=heading)
        for one in check.named[change]:
            yield item(_difference_words(one, check.shown))
        if count > len(check.named[change]):
            yield Prose(f"and {count - len(check.named[change]):,} more (--format json lists all)", depth=1)
    yield from _problems(check.problems, check.shown, view)


def _sealed_words(head: ManifestHead) -> str:
    envelope = head.envelope
    by = "" if isinstance(envelope.operator, Absent) else f" by {envelope.operator}"
    case = "" if isinstance(envelope.case_id, Absent) else f", case {envelope.case_id}"
    return f"Sealed {envelope.sealed_utc}{by} with kforensics {head.tool_version}{case}."


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
    where = place(subject.input, subject.path, shown)
    if one.change is Change.CONTENT:
        return f"{where}: sealed {_content(one.sealed)}, found {_content(one.found)}"
    if one.change is Change.TIMES:
        return f"{where}: sealed {_times(one.sealed)}, found {_times(one.found)}"
    return f"{where} ({subject.kind})"


def _content(entry: SealEntry | Absent) -> str:
    if isinstance(entry, Absent):
        return "nothing"
    size = "" if isinstance(entry.length, Absent) else f" of {entry.length:,} bytes"
    return f"{entry.kind}{size} {str(entry.sha256)[:12]}"


def _times(entry: SealEntry | Absent) -> str:
    return "nothing" if isinstance(entry, Absent) else f"{entry.modified} mode {entry.mode}"


def place(number: int, path: str, shown: Sequence[str]) -> str:
    """Return the path of an entry below its input, as given."""
    return shown[number] if path == "." else f"{shown[number].rstrip('/')}/{path}"


def _problems(problems: Sequence[Problem], shown: Sequence[str], view: View) -> Iterator[Block]:
    most = MOST_PROBLEMS if not view.page else len(problems)
    if problems:
        yield Section(title="could not be compared")
    for one in problems[:most]:
        yield item(f"{place(one.input, one.path, shown)}: {one.message}")
    if len(problems) > most:
        yield Prose(f"and {len(problems) - most:,} more", depth=1)
