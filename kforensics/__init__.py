"""Read-only log forensics over Kafka broker data directories: what was lost, was it committed, and who still has it.

Each command is a function here, which takes paths and the options of the command line by name, never writes below an input, and gives a
result: `answer` with its `state` and `headline`, `findings` with the gravest first, `problems` for what could not be read, `exit_code`, in `body` the command's own
value, `to_dict()` for its document and `to_arrow(...)` for rows. Only paths that can't be used at all raise an `EvidenceError`.

    result = kforensics.diff("broker-1", "broker-2", "broker-3")
    for finding in result.findings:
        print(finding.code, finding.statement, finding.citations)
"""

__version__ = "0.1.0"
_ERRORS = (
    "EvidenceError",
    "EvidenceNotFound",
    "EvidenceUnreadable",
    "InputsRefused",
    "KforensicsError",
    "MissingExtra",
    "NotADataDir",
    "UsageError",
)


def _functions() -> tuple[str, ...]:
    from kforensics.ask.commands import FUNCTIONS  # noqa: PLC0415 - whatever is loaded here delays the moment from which an interrupt is handled

    return FUNCTIONS


def __dir__() -> list[str]:
    """Return the names that are meant to be used."""
    return sorted(["__version__", *_ERRORS, *_functions()])


def __getattr__(name: str) -> object:
    """Return a function or an error, loaded when it is first asked for: `kforensics --help` imports this module too."""
    from importlib import import_module  # noqa: PLC0415 - as above

    if name in _ERRORS:
        found = getattr(import_module("kforensics.errors"), name)
    elif name == "__all__":
        found = __dir__()
    elif not name.startswith("_") and name in _functions():
        found = import_module("kforensics.library").function_of(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
