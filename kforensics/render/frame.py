"""What is around every view: the seal where it does not hold, the answer, the seal; on pages also what the answer rests on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kforensics.commands.cited import CitedCapture, CitedFile
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input, Problem, full_path
from kforensics.findings.model import Finding, by_gravity
from kforensics.render.blocks import (
    GAP,
    Block,
    Cell,
    Column,
    Headline,
    Prose,
    Reference,
    Section,
    Table,
    Tone,
    item,
    known,
)
from kforensics.render.view import View
from kforensics.units import Depth

Content = Callable[[Result[Any], View], Iterable[Block]]
"""What a command shows between its answer and what the answer rests on."""

ANSWER_PARTS = (("NOW", "now"), ("WHO TO TELL", "tell"), ("LATER", "later"), ("CAN'T TELL", "unknown"))
"""The parts of an answer behind its headline: their labels, and their fields."""

MOST_CITATIONS = 4

_BY_CAUSE = frozenset({"fleet audit", "fleet report"})
"""Shapes whose views have the findings by their causes, and the inputs with how they are."""

SEVERITY_TONES = {"critical": Tone.BAD, "error": Tone.BAD, "warning": Tone.WARNING}


class References:
    """Citations in words, linked to the files that are listed with their hashes."""

    def __init__(self, inputs: Sequence[Input], files: Sequence[CitedFile] = ()) -> None:
        self._inputs = inputs
        self._rows = {(file.input, file.path): number for number, file in enumerate(files, start=1)}

    def of(self, citations: Iterable[Citation], most: int = MOST_CITATIONS) -> tuple[Reference, ...]:
        """Return the first citations, and count the others."""
        every = [self._one(citation) for citation in dict.fromkeys(citations)]
        more = len(every) - most
        return (*every[:most], Reference(f"and {more} more")) if more > 0 else tuple(every)

    def _one(self, citation: Citation) -> Reference:
        names = full_path(self._inputs, citation.input, citation.path).rstrip("/").split("/")
        words = "/".join(names[-2:])
        if isinstance(citation.line, int):
            words += f":{citation.line}"
        elif not isinstance(citation.span, Absent):
            # The directory says more than the name of a segment; the link leads to the whole path.
            words = f"{names[-2 if len(names) > 1 else -1]} byte {citation.span.position}"
        return Reference(words, self._rows.get((citation.input, citation.path)))


def whole(result: Result[Any], view: View, content: Content) -> Iterator[Block]:
    """Yield what a result shows, the answer first."""
    seal, body = result.seal, result.body
    if seal is not None and not seal.holds:
        words = (
            "NOT WHAT WAS SEALED: the inputs differ from the manifest (`kforensics seal --check` lists where), "
            "and this report rests on them as they are now."
        )
        yield Prose(words, Tone.BAD)
    depth = getattr(body, "depth", Depth.CONTENT)
    yield Headline(result.command, result.answer, is_whole=depth is not Depth.TAILS)
    yield from content(result, view)
    if view.page:
        files = _cited_files(result)
        if result.shape not in _BY_CAUSE:
            yield from _findings(result.findings, References(result.inputs, files))
        yield from _not_read(result.problems, result.inputs)
        if result.shape not in _BY_CAUSE:
            yield from _evidence(result.inputs, files)
    if seal is not None:
        from kforensics.findings.rules.seal import seal_sentence  # noqa: PLC0415 - few reports name a seal

        yield GAP
        yield Prose(seal_sentence(seal), Tone.QUIET if seal.holds else Tone.BAD)


def _cited_files(result: Result[Any]) -> Sequence[CitedFile]:
    if result.command == "explain":
        files: Sequence[CitedFile] = result.body.files
        return files
    return result.body.erasure or () if result.command == "trace" else ()


def spoken(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems that the answer does not name."""
    return (one for one in problems if not one.is_silent)


def problem_items(problems: Iterable[Problem], inputs: Sequence[Input], view: View) -> Iterator[Block]:
    """Yield what could not be read, and why; a page has a section of its own for it."""
    for one in () if view.page else spoken(problems):
        what = "left out" if one.is_foreign else "not read"
        yield item(f"{what}: {one.place(inputs)}: {one.message}")


def who(one: Input) -> str:
    """Return the node of an input in words, or the path where none is known."""
    return one.path if isinstance(one.broker_id, Absent) else node_name(one.broker_id, (one,))


def node_name(node: int | Absent, inputs: Sequence[Input]) -> str:
    """Return a node in words: a controller where one of the inputs shows it as no broker."""
    is_controller = any(one.kind == "controller" and one.broker_id == node for one in inputs)
    return f"{'controller' if is_controller else 'broker'} {node}"


def _findings(findings: tuple[Finding, ...], references: References) -> Iterator[Block]:
    if not findings:
        return
    yield Section(title="Findings", anchor="findings")
    yield Table(
        name="Findings, gravest first",
        columns=[
            Column("Code"),
            Column("Severity"),
            Column("Statement and meaning"),
            Column("What to do"),
            Column("Evidence"),
        ],
        rows=[
            (
                one.code,
                Cell(
                    badge=one.severity.value,
                    tone=SEVERITY_TONES.get(one.severity.value, Tone.QUIET),
                    below=one.confidence.value,
                ),
                Cell(text=one.statement, below=one.meaning),
                one.advice,
                Cell(references=references.of(one.citations)),
            )
            for one in by_gravity(findings)
        ],
    )


def _not_read(problems: Sequence[Problem], inputs: Sequence[Input]) -> Iterator[Block]:
    problems = [*spoken(problems)]
    if not problems:
        return
    yield Section(title="Not read", anchor="not-read", lead="This makes the result incomplete.")
    yield Table(
        name="What could not be read",
        columns=[Column("Path", is_mono=True), Column("Why")],
        rows=[(one.place(inputs), one.message) for one in problems],
    )


def _evidence(inputs: Sequence[Input], files: Sequence[CitedFile]) -> Iterator[Block]:
    if not inputs:
        return
    yield Section(
        title="Evidence",
        anchor="evidence",
        lead="Nothing was written to the evidence. Anyone who has files with the same hashes can check every statement above."
        if files
        else "Nothing was written to the evidence.",
    )
    yield Table(
        name="Inputs",
        columns=[
            Column("Path", is_mono=True),
            Column("Kind"),
            Column("Node", is_number=True),
            Column("Cluster", is_mono=True),
            Column("Kafka"),
        ],
        rows=[
            (one.path, one.kind, known(one.broker_id), known(one.cluster_id), known(one.kafka_version_hint))
            for one in inputs
        ],
    )
    if files:
        yield Table(
            name="Files cited, with their hashes",
            columns=[Column("Path", is_mono=True), Column("Bytes", is_number=True), Column("SHA-256", is_mono=True)],
            rows=[
                (
                    one.path if isinstance(one, CitedCapture) else full_path(inputs, one.input, one.path),
                    "not readable" if isinstance(one.length, Absent) else one.length,
                    known(one.sha256),
                )
                for one in files
            ],
            row_anchor="file",
        )
