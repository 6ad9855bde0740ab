"""Cases of inputs that were found already."""

from dataclasses import replace

from kforensics.ask.model import Ask
from kforensics.case.model import Case
from kforensics.evidence.discovery.inputs import Inputs


def case_of(inputs: Inputs, ask: Ask | None = None, *, jobs: int = 1) -> Case:
    """The case of inputs of one moment, looked at in one process."""
    return Case(ask=replace(ask or Ask(), jobs=jobs), inputs=inputs)
