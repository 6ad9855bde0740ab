"""Spark's Arrow functions without pandas.

PySpark asks for pandas before it makes any vectorised function, also those that only ever see Arrow and run on workers
that never import it. Where pandas is missing that one question is left out.
"""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def map_in_arrow(frame: Any, function: Callable[..., Any], schema: str) -> Any:
    """`DataFrame.mapInArrow`."""
    with _without_asking_for_pandas():
        return frame.mapInArrow(function, schema)


def apply_in_arrow(grouped: Any, function: Callable[..., Any], schema: str) -> Any:
    """`GroupedData.applyInArrow`."""
    with _without_asking_for_pandas():
        return grouped.applyInArrow(function, schema)


@contextmanager
def _without_asking_for_pandas() -> Iterator[None]:
    from pyspark.sql.pandas import functions

    name = "require_minimum_pandas_version"
    asks = getattr(functions, name, None)
    if asks is None or importlib.util.find_spec("pandas") is not None:
        yield
        return
    setattr(functions, name, lambda: None)
    try:
        yield
    finally:
        setattr(functions, name, asks)
