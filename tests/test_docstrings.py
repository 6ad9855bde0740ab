"""Docstrings describe parameters that are there, and only where they say more than name and type do."""

import ast
import re
from functools import cache

from tests.conftest import ROOT

PACKAGE = ROOT / "kforensics"

SAYS_MORE = re.compile(
    r"`|\b(ms|milliseconds|seconds|bytes?|none|None|else|where|unless|empty|first|last|inclusive|included|excluded|exclusive|sorted|order|each|both|UTC|above|below|"
    r"-1|0|without|absent|unknown|position|negative|may|must|least|most|if|only|or|relative|called|asked|makes|gives|returns)\b|[0-9]"
)
"""A unit, a number, a condition, or what it is when there is none."""


@cache
def _functions():
    return [
        (str(path.relative_to(PACKAGE)), one)
        for path in sorted(PACKAGE.rglob("*.py"))
        if "    Args:\n" in (text := path.read_text(encoding="utf-8"))
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _described(function):
    section = (ast.get_docstring(function) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    for entry in re.split(r"\n(?=    \S)", section):
        name, _, words = entry.strip().partition(":")
        if words:
            yield name.strip("*"), " ".join(words.split())


def test_what_is_described_is_a_parameter():
    wrong, described = [], 0
    for path, function in _functions():
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        names = {one.arg for one in every if one is not None}
        found = dict(_described(function))
        described += len(found)
        wrong += [f"{path}: {function.name}: {name}" for name in found.keys() - names]

    assert described > 300
    assert wrong == []


def test_what_is_described_says_more_than_a_name():
    idle = [
        f"{path}: {function.name}: {name}: {words}"
        for path, function in _functions()
        for name, words in _described(function)
        if len(words.split()) < 6 and SAYS_MORE.search(words) is None
    ]

    assert idle == []
