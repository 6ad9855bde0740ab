"""Every public function describes its parameters."""

import ast
import gc
from collections.abc import Iterator
from functools import cache

from tests.conftest import ROOT

PACKAGE = ROOT / "kforensics"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _modules() -> dict[str, ast.Module]:
    gc.disable()  # the trees are kept, and looking through them again and again takes most of the time
    try:
        return {
            str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted(PACKAGE.rglob("*.py"))
        }
    finally:
        gc.enable()


def _parameters(function: Function) -> list[str]:
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [one.arg for one in every if one.arg not in {"self", "cls"} and not one.arg.startswith("_")]


def _is_property(function: Function) -> bool:
    names = {ast.unparse(one).rpartition(".")[2] for one in function.decorator_list}
    return bool(names & {"property", "cached_property", "overload"})


def _public(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, Function]]:
    for one in body:
        if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
            yield from _public(one.body, one.name)
        elif isinstance(one, Function) and not one.name.startswith("_") and not _is_property(one):
            yield owner, one


@cache
def _bases() -> dict[str, list[str]]:
    return {
        one.name: [ast.unparse(base).partition("[")[0] for base in one.bases]
        for module in _modules().values()
        for one in module.body
        if isinstance(one, ast.ClassDef)
    }


def _ancestors(name: str) -> list[str]:
    return [one for base in _bases().get(name, ()) for one in (base, *_ancestors(base))]


def _described(function: Function) -> set[str]:
    section = (ast.get_docstring(function) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    return {
        line.strip().partition(":")[0].partition(" (")[0]
        for line in section.splitlines()
        if line.startswith("    ") and not line.startswith("     ")
    }


def _is_command(function: Function) -> bool:
    """Whether typer shows the docstring as the help of a command, and each option's own help."""
    first = function.args.args[0].annotation if function.args.args else None
    return first is not None and ast.unparse(first) in {"Output", "typer.Context"}


def test_every_public_function_describes_its_parameters():
    functions = [(name, *one) for name, module in _modules().items() for one in _public(module.body)]
    methods = {(owner, function.name): _described(function) for _, owner, function in functions if owner}
    missing = []
    for name, owner, function in functions:
        if name.startswith("cli/") and _is_command(function):
            continue
        # What a base class of the package describes is not said again.
        inherited = (methods.get((one, function.name), set()) for one in _ancestors(owner))
        lacking = set(_parameters(function)) - _described(function).union(*inherited)
        if lacking:
            missing.append(f"{name}: {owner} {function.name}: {', '.join(sorted(lacking))}")

    assert len(functions) > 1_500
    assert missing == []
