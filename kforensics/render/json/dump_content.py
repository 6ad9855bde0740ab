"""The content of files as a document and as lines."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from kforensics.commands.dump import DumpContent
from kforensics.commands.result import Result
from kforensics.damage import Damage
from kforensics.evidence.content.items import RecordItem
from kforensics.evidence.plain import to_plain
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.render.json.document import document
from kforensics.render.json.dump import dump_line, plain_item
from kforensics.render.json.record_lines import record_lines
from kforensics.render.view import View


@dataclass(frozen=True, slots=True)
class _Lines:
    """Makes the lines of the records of one file."""

    view: View
    label: str

    def records(self, chunk: RecordChunk) -> list[bytes]:
        return record_lines(chunk, show_payload=self.view.show_payload, as_text=self.view.as_text, label=self.label)

    def item(self, item: RecordItem | Damage) -> bytes:
        plain = plain_item(item, show_payload=self.view.show_payload, as_text=self.view.as_text)
        return dump_line(plain, self.label).encode()


def write(result: Result[DumpContent], view: View) -> Iterator[str]:
    """Yield one document, written as the content is read."""
    entries = (line.rstrip("\n") for line in _lines(result.body, view, None))
    return document(result, "dump", streams={"entries": entries})


def write_lines(result: Result[DumpContent], view: View) -> Iterator[str]:
    """Return an entry a line.

    Args:
        result: of `dump`; its files are read while the lines are written.
    """
    return _lines(result.body, view, view)


def _lines(content: DumpContent, view: View, direct: View | None) -> Iterator[str]:
    several = len(content) > 1
    for file in content.files():
        label = f', "file": {json.dumps(to_plain(file.shown))}' if several else ""
        if not file.is_plain:
            for item in file.items():
                plain = plain_item(item, show_payload=view.show_payload, as_text=view.as_text)
                yield dump_line(plain, label)
        elif direct is not None and direct.descriptor is not None:
            file.write_lines(_Lines(view, label), direct.descriptor())
        else:
            for some in file.lines(_Lines(view, label)):
                yield from (line.decode("ascii") for line in some)
