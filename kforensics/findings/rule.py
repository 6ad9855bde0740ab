"""The register of rules: what each code means, what to do, and its weight; the functions that state it are beside it in `findings/rules/`."""

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Generic, ParamSpec, TypeVar

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.findings.model import Confidence, Finding, Weight
from kforensics.units import OffsetRange, TopicPartition

Facts = ParamSpec("Facts")
Stated = TypeVar("Stated")

_REGISTERED: "dict[str, Rule]" = {}


class ToldApartBy(Enum):
    """What distinguishes findings of one code about one replica."""

    NOTHING = "nothing"
    """There is one at most, however its offsets move."""
    FILE = "file"
    """The file or directory that is cited first."""
    PLACE = "place"
    """The file that is cited first, and the position in it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a code means, and the text of a finding that has no more precise words."""

    code: str
    """KF1xx files and formats, KF2xx replicas and truncation, KF3xx incidents and losses, KF4xx fleet and placement, KF5xx identity and inventory, KF6xx transactions and
    consumer groups; stable, never reused."""
    weight: Weight
    """Of what it states, unless that is known to weigh more or less."""
    title: str
    meaning: str
    advice: str
    references: tuple[str, ...] = ()
    """KIPs and JIRA numbers."""
    told_apart_by: ToldApartBy = ToldApartBy.NOTHING

    def __post_init__(self) -> None:
        """Register the rule under its code, which no other one has."""
        assert self.code not in _REGISTERED, f"{self.code} is taken by another rule"
        _REGISTERED[self.code] = self

    def states(
        self,
        statement: str,
        *,
        weight: Weight | None = None,
        confidence: Confidence = Confidence.PROVEN,
        meaning: str = "",
        advice: str = "",
        topic_partition: TopicPartition | Absent = Absent.NOT_APPLICABLE,
        broker_id: int | Absent = Absent.NOT_APPLICABLE,
        offsets: OffsetRange | Absent = Absent.NOT_APPLICABLE,
        citations: tuple[Citation, ...] = (),
    ) -> Finding:
        """Return a finding."""
        return Finding(
            code=self.code,
            severity=(self.weight if weight is None else weight).severity,
            confidence=confidence,
            statement=statement,
            meaning=meaning or self.meaning,
            advice=advice or self.advice,
            topic=topic_partition if isinstance(topic_partition, Absent) else topic_partition.topic,
            partition=topic_partition if isinstance(topic_partition, Absent) else topic_partition.partition,
            broker_id=broker_id,
            offsets=offsets,
            citations=citations,
            references=self.references,
        )


class RulesOf(Generic[Facts, Stated]):
    """The functions that make statements of one kind of fact, in the order in which they stand."""

    def __init__(self) -> None:
        self._functions: list[Callable[Facts, Iterator[Stated]]] = []

    def __call__(self, function: Callable[Facts, Iterator[Stated]]) -> Callable[Facts, Iterator[Stated]]:
        """Register a function."""
        self._functions.append(function)
        return function

    def of(self, *args: Facts.args, **kwargs: Facts.kwargs) -> Iterator[Stated]:
        """Yield what all of them state."""
        for function in self._functions:
            yield from function(*args, **kwargs)


def rule_of(code: str) -> Rule:
    """Return the rule of a code."""
    return _REGISTERED[code] if code in _REGISTERED else all_rules()[code]


@cache
def all_rules() -> Mapping[str, Rule]:
    """Return the rules of all files in `findings/rules/`, by code."""
    from kforensics.findings import rules  # noqa: PLC0415 - all of them load only where all are asked for

    for module in pkgutil.iter_modules(rules.__path__):
        import_module(f"{rules.__name__}.{module.name}")
    return dict(sorted(_REGISTERED.items()))
