"""The findings of the check of a seal: one for each kind of difference, however many files it is true of."""

from collections.abc import Iterator, Mapping, Sequence

from kforensics.evidence.model import Citation
from kforensics.evidence.seal.state import Change, Difference
from kforensics.findings.model import Finding, Severity, by_gravity, finding

_KINDS = {
    Change.CONTENT: ("KF511", Severity.ERROR, "differ{s} in content from what was sealed"),
    Change.MISSING: ("KF512", Severity.ERROR, "that {was} sealed {is_} missing"),
    Change.ADDED: ("KF513", Severity.WARNING, "{is_} here that {was} not sealed"),
    Change.TIMES: ("KF514", Severity.NOTE, "{has} other times or permissions than when sealed"),
}


def seal_findings(
    counts: Mapping[Change, int], named: Mapping[Change, Sequence[Difference]], *, sealed: int, broken_signature: str
) -> tuple[Finding, ...]:
    """Return the gravest first; each cites the first of the files it is about."""
    found = list(_differences(counts, named, sealed))
    if broken_signature:
        found.append(
            finding("KF515", severity=Severity.ERROR, statement=f"the signature does not hold: {broken_signature}")
        )
    return by_gravity(tuple(found))


def _differences(
    counts: Mapping[Change, int], named: Mapping[Change, Sequence[Difference]], sealed: int
) -> Iterator[Finding]:
    for change, (code, severity, words) in _KINDS.items():
        count = counts[change]
        if not count:
            continue
        one = count == 1
        said = words.format(
            s="s" if one else "", was="was" if one else "were", is_="is" if one else "are", has="has" if one else "have"
        )
        of = "" if change is Change.ADDED else f" of {sealed:,}"
        yield finding(
            code,
            severity=severity,
            statement=f"{count:,}{of} {'entry' if one and not of else 'entries'} {said}",
            citations=tuple(Citation(input=one.subject.input, path=one.subject.path) for one in named[change]),
        )
