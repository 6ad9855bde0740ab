"""Whether a scheduled audit fails: by the gravity of its findings or by what became of them, apart from those that somebody has accepted until a day."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

import yaml

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.exits import ExitCode
from kforensics.findings.changes import NOT_BETTER, Change
from kforensics.findings.model import Severity
from kforensics.findings.rule import all_rules
from kforensics.words import counted, form

MOST_NAMED = 100
"""Findings that a gate names."""


class FailOn(StrEnum):
    """What makes a scheduled audit fail."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEW = "new"
    """A finding of severity `warning` or above that the earlier audit does not have."""
    WORSE = "worse"
    """Such a finding, or one that is worse, or other, than it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Findings that somebody answers for until a day."""

    finding: str
    """The id of a finding, or a pattern of `*`, `?` and `[…]` for ids."""
    who: str
    until: str
    """The last day on which it holds, in UTC, as `2026-11-22`."""
    why: str
    at_most: Severity | Absent = Absent.NOT_APPLICABLE
    """A finding that is graver is not accepted."""

    def covers(self, finding_id: str, severity: Severity) -> bool:
        """Return whether a finding is accepted by this, as long as it holds."""
        is_graver = not isinstance(self.at_most, Absent) and severity.rank > self.at_most.rank
        return not is_graver and (self.finding == finding_id or fnmatchcase(finding_id, self.finding))


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedFinding:
    """What a gate looks at: a finding of the audit, and what became of it."""

    finding_id: str
    severity: Severity
    change: Change = Change.NEW
    """`NEW` where there is no earlier audit: nothing shows that it was there before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The decision on an audit, and what it rests on."""

    fail_on: tuple[FailOn, ...]
    compared_with: str | Absent
    """The id of the earlier audit."""
    failing: int
    failing_ids: tuple[str, ...]
    """The first of them, the gravest first."""
    accepted: int
    """Findings that would fail it and are accepted."""
    expired: tuple[Acceptance, ...]
    """Acceptances that no longer hold and would cover findings of this audit."""
    unused: tuple[Acceptance, ...]
    """Acceptances that hold and cover no finding of this audit."""
    exit_code: int

    def sentences(self) -> tuple[str, ...]:
        """Say what was decided, and why."""
        rules = " or ".join(self.fail_on)
        accepted = f"; {counted(self.accepted, 'finding')} accepted" if self.accepted else ""
        if self.failing:
            decided = f"{counted(self.failing, 'finding')} {form(self.failing, 'fails', 'fail')} the rule --fail-on {rules}{accepted}."
        elif self.exit_code:
            decided = f"No finding fails the rule --fail-on {rules}{accepted}, but not everything is known: the exit code is {self.exit_code}."
        else:
            decided = f"No finding fails the rule --fail-on {rules}{accepted}."
        return (
            decided,
            *(
                f"The acceptance of {one.finding} by {one.who} ended on {one.until} ({one.why}): findings that it covers count again."
                for one in self.expired
            ),
            *(f"The acceptance of {one.finding} by {one.who} covers none of these findings." for one in self.unused),
        )


def decide(
    findings: Iterable[GatedFinding],
    rules: Sequence[FailOn],
    acceptances: Sequence[Acceptance],
    *,
    today: date,
    is_incomplete: bool,
    compared_with: str | Absent,
) -> Gate:
    """Decide whether an audit fails; where something could not be read, judged or compared, what no finding fails is not calm."""
    failing: list[GatedFinding] = []
    accepted = 0
    used: set[int] = set()
    for one in findings:
        covering = [at for at, own in enumerate(acceptances) if own.covers(one.finding_id, one.severity)]
        used.update(covering)
        if not any(_fails(one, rule) for rule in rules):
            continue
        if any(acceptances[at].until >= today.isoformat() for at in covering):
            accepted += 1
        else:
            failing.append(one)
    failing.sort(key=lambda one: (-one.severity.rank, one.finding_id))
    return Gate(
        fail_on=tuple(rules),
        compared_with=compared_with,
        failing=len(failing),
        failing_ids=tuple(one.finding_id for one in failing[:MOST_NAMED]),
        accepted=accepted,
        expired=tuple(one for at, one in enumerate(acceptances) if at in used and one.until < today.isoformat()),
        unused=tuple(one for at, one in enumerate(acceptances) if at not in used and one.until >= today.isoformat()),
        exit_code=ExitCode.FINDINGS if failing else ExitCode.INCOMPLETE if is_incomplete else ExitCode.NOTHING_FOUND,
    )


def _fails(item: GatedFinding, rule: FailOn) -> bool:
    if rule is FailOn.NEW:
        return item.change is Change.NEW and item.severity.rank >= Severity.WARNING.rank
    if rule is FailOn.WORSE:
        return item.change in NOT_BETTER and item.severity.rank >= Severity.WARNING.rank
    return item.severity.rank >= Severity(rule.value).rank


# ---------------------------------------------------------------- the file of acceptances

_REQUIRED = frozenset({"finding", "who", "until", "why"})
_OPTIONAL = frozenset({"severity"})
_ANY_FINDING = "-/-/-"
"""An id without its code, of a finding of which nothing else is known."""


def parse_acceptances(text: str, name: str) -> tuple[Acceptance, ...]:
    """Read a file of acceptances: a list of `finding`, `who`, `until`, `why`, and where wanted `severity`, the gravest that is accepted."""
    try:
        document = yaml.safe_load(text)
    except (
        yaml.YAMLError,
        ValueError,
        RecursionError,
    ) as error:  # a date that is none, and lists that are nested without end
        raise UsageError(f"{name} is no YAML: {' '.join(str(error).split())}") from error
    if document is None:
        return ()
    if not isinstance(document, list):
        raise UsageError(f"{name}: expected a list of acceptances with {', '.join(sorted(_REQUIRED))}")
    return tuple(_acceptance(one, f"{name}, entry {number}") for number, one in enumerate(document, 1))


def _acceptance(entry: Any, where: str) -> Acceptance:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where}: expected {', '.join(sorted(_REQUIRED))}, found {entry!r}")
    lacking = sorted(one for one in _REQUIRED if entry.get(one) in (None, ""))
    unknown = sorted(str(one) for one in entry.keys() - _REQUIRED - _OPTIONAL)
    if lacking or unknown:
        words = f"lacks {', '.join(lacking)}" if lacking else f"has unknown keys: {', '.join(unknown)}"
        raise UsageError(f"{where} {words}")
    for name in ("finding", "who", "why", "severity"):
        if isinstance(entry.get(name), (Mapping, list)):
            raise UsageError(f"{where}: expected text for {name}, found {entry[name]!r}")
    until = entry["until"]
    try:
        until = until if isinstance(until, date) else date.fromisoformat(str(until))
    except ValueError:
        raise UsageError(f"{where}: expected a day such as 2026-12-01 for until, found {until!r}") from None
    try:
        at_most = Severity(entry["severity"]) if entry.get("severity") else Absent.NOT_APPLICABLE
    except ValueError:
        known = ", ".join(Severity)
        raise UsageError(f"{where}: expected one of {known} for severity, found {entry['severity']!r}") from None
    if all(fnmatchcase(f"{code}/{_ANY_FINDING}", str(entry["finding"])) for code in all_rules()):
        raise UsageError(f"{where}: the pattern {entry['finding']} would accept every finding; name at least a code")
    return Acceptance(
        finding=str(entry["finding"]),
        who=str(entry["who"]),
        until=until.isoformat()[:10],
        why=str(entry["why"]),
        at_most=at_most,
    )
