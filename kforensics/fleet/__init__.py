"""A whole fleet on Spark: its commands are functions here, as the others are of `kforensics`.

result = kforensics.fleet.audit(spark, "/mnt/broker-*", history="/mnt/audits")
result.to_spark("changes")        # any table of the audit as a DataFrame, or `to_arrow`
"""

_FUNCTIONS = ("audit", "history", "report", "trend")
__all__ = [*_FUNCTIONS]  # noqa: PLE0604 - names, too


def __getattr__(name: str) -> object:
    """Return a function, loaded when it is first asked for."""
    from importlib import import_module

    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = import_module("kforensics.library").function_of(f"fleet-{name}")
    return found
