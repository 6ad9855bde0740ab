"""The findings of the check of a seal: one for each kind of difference, however many files it is true of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Problem
from kforensics.evidence.seal import Change, Difference, Envelope
from kforensics.findings.model import Finding, Weight, by_gravity
from kforensics.findings.rule import Rule
from kforensics.words import form

CONTENT_DIFFERS = Rule(
    "KF511",
    Weight.DAMAGE,
    title="content differs from the seal",
    meaning="The evidence was altered after it was sealed, or the seal is of something else.",
    advice="Conclude nothing from these files; take a copy that still agrees with the seal.",
)

SEALED_IS_MISSING = Rule(
    "KF512",
    Weight.DAMAGE,
    title="something sealed is missing",
    meaning="It was deleted, renamed or left out of the copy.",
    advice="Look for the original or another copy before anything is concluded from what is left.",
)

NOT_SEALED = Rule(
    "KF513",
    Weight.DECIDE,
    title="something is here that was not sealed",
    meaning="It was added after the evidence was sealed; nothing vouches for it.",
    advice="Find out where it comes from, and leave it out of conclusions.",
)

TIMES_DIFFER = Rule(
    "KF514",
    Weight.NOTE,
    title="times or permissions differ from the seal, the content does not",
    meaning="Usual after a copy that did not keep them.",
    advice="Nothing to do; rely on the sealed times, not on those of the copy.",
)


_KINDS = {  # with what is said of one entry, and of many
    Change.CONTENT: (
        CONTENT_DIFFERS,
        "differs in content from what was sealed",
        "differ in content from what was sealed",
    ),
    Change.MISSING: (SEALED_IS_MISSING, "that was sealed is missing", "that were sealed are missing"),
    Change.ADDED: (NOT_SEALED, "is here that was not sealed", "are here that were not sealed"),
    Change.TIMES: (
        TIMES_DIFFER,
        "has other times or permissions than when sealed",
        "have other times or permissions than when sealed",
    ),
}


BROKEN_SIGNATURE = Rule(
    "KF515",
    Weight.DAMAGE,
    title="the signature of a seal does not hold",
    meaning="The manifest or its signature was altered, or another key signed it.",
    advice="Do not rely on the manifest; get it and the public key again from who sealed the evidence.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSeal:
    """The contents of a manifest, and how much of it holds now."""

    manifest_sha256: str
    """The sha256 of the stored bytes of the manifest: what its maker wrote down or signed."""
    tool_version: str
    envelope: Envelope
    sealed: int
    """Entries of the manifest."""
    held: int
    changes: Mapping[Change, int]
    uncovered: tuple[str, ...]
    """Inputs of the report that the manifest does not seal."""
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]

    @property
    def holds(self) -> bool:
        """Whether all that was sealed is here with the same content, and nothing beside it."""
        altered = (Change.CONTENT, Change.MISSING, Change.ADDED, Change.UNREADABLE, Change.NOT_SEALED)
        return not self.problems and not any(self.changes[change] for change in altered)


def seal_sentence(seal: CheckedSeal) -> str:
    """Return what a report says of its seal; names in it are as the manifest has them, not yet made safe to show."""
    envelope = seal.envelope
    case = "" if isinstance(envelope.case_id, Absent) else f" for case {envelope.case_id}"
    by = "" if isinstance(envelope.operator, Absent) else f" by {envelope.operator}"
    said = f"Sealed {envelope.sealed_utc}{case}{by}; the manifest's sha256 is {seal.manifest_sha256}."
    if seal.holds:
        state = f" All {seal.sealed:,} entries hold."
    else:
        state = f" {seal.held:,} of {seal.sealed:,} entries hold: this is not what was sealed."
    if seal.uncovered:
        state += f" It does not cover {len(seal.uncovered)} of the inputs."
    return said + state


def seal_findings(
    counts: Mapping[Change, int], named: Mapping[Change, Sequence[Difference]], *, sealed: int, broken_signature: str
) -> tuple[Finding, ...]:
    """Return the findings of the check of a seal, the gravest first; each cites the first of the files it is about."""
    found = list(_differences(counts, named, sealed))
    if broken_signature:
        found.append(BROKEN_SIGNATURE.states(f"the signature does not hold: {broken_signature}"))
    return by_gravity(tuple(found))


def _differences(
    counts: Mapping[Change, int], named: Mapping[Change, Sequence[Difference]], sealed: int
) -> Iterator[Finding]:
    for change, (rule, one, many) in _KINDS.items():
        count = counts[change]
        if not count:
            continue
        of = "" if change is Change.ADDED else f" of {sealed:,}"
        yield rule.states(
            f"{count:,}{of} {form(1 if not of and count == 1 else 2, 'entry', 'entries')} {one if count == 1 else many}",
            citations=tuple(Citation(input=one.subject.input, path=one.subject.path) for one in named[change]),
        )
