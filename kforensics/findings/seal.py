"""The findings of the check of a seal: one for each kind of difference, however many files it is true of."""

from collections.abc import Iterator, Mapping, Sequence

from kforensics.evidence.model import Citation
from kforensics.evidence.seal.state import Change, Difference
from kforensics.findings.model import Finding, Severity, by_gravity, finding
from kforensics.words import form

_KINDS = {  # with what is said of one entry, and of many
    Change.CONTENT: (
        "KF511",
        Severity.ERROR,
        "differs in content from what was sealed",
        "differ in content from what was sealed",
    ),
    Change.MISSING: ("KF512", Severity.ERROR, "that was sealed is missing", "that were sealed are missing"),
    Change.ADDED: ("KF513", Severity.WARNING, "is here that was not sealed", "are here that were not sealed"),
    Change.TIMES: (
        "KF514",
        Severity.NOTE,
        "has other times or permissions than when sealed",
        "have other times or permissions than when sealed",
    ),
}


def seal_findings(
    counts: Mapping[Change, int], named: Mapping[Change, Sequence[Difference]], *, sealed: int, broken_signature: str
) -> tuple[Finding, ...]:
    """Return the findings of the check of a seal, the gravest first; each cites the first of the files it is about.

    Args:
        counts: how many files each kind of difference is true of.
        named: the first of them, which are cited.
        sealed: how many files the manifest names.
        broken_signature: why the signature does not hold; empty where it does, or where there is none.
    """
    found = list(_differences(counts, named, sealed))
    if broken_signature:
        found.append(
            finding("KF515", severity=Severity.ERROR, statement=f"the signature does not hold: {broken_signature}")
        )
    return by_gravity(tuple(found))


def _differences(
    counts: Mapping[Change, int], named: Mapping[Change, Sequence[Difference]], sealed: int
) -> Iterator[Finding]:
    for change, (code, severity, one, many) in _KINDS.items():
        count = counts[change]
        if not count:
            continue
        of = "" if change is Change.ADDED else f" of {sealed:,}"
        yield finding(
            code,
            severity=severity,
            statement=f"{count:,}{of} {form(1 if not of and count == 1 else 2, 'entry', 'entries')} {one if count == 1 else many}",
            citations=tuple(Citation(input=one.subject.input, path=one.subject.path) for one in named[change]),
        )
