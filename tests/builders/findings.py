"""Findings of any rule."""

from kforensics.findings.model import Finding, Severity
from kforensics.findings.rule import rule_of


def finding(code: str, *, severity: Severity, statement: str, **more) -> Finding:
    """A finding of a code, as grave as it is to be."""
    return rule_of(code).states(statement, weight=severity.weight, **more)
