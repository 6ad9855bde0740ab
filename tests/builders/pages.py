"""Pages of explanations and of audits, and the elements of a page."""

import html.parser
from dataclasses import replace

from kforensics.commands.result import Conclusion, Result
from kforensics.render.emit import OutputFormat, emit
from kforensics.render.view import View


def page_of(explained, files=(), *, answer=None, exit_code=1, made_ms=None, is_redacted=False):
    """The page of an explanation."""
    found = Conclusion(answer or explained.answer, explained.findings, explained.problems, exit_code)
    body = replace(explained, files=files, is_redacted=is_redacted)
    result = Result(command="explain", inputs=body.inputs, body=body, concluded=found)
    return "".join(emit(result, OutputFormat.HTML, View(made_ms=made_ms)))


def audit_page_of(summary, answer, made_ms=None):
    """The page of an audit."""
    concluded = Conclusion(answer, summary.findings, summary.problems)
    result = Result(command="fleet audit", inputs=summary.inputs, body=summary, concluded=concluded)
    return "".join(emit(result, OutputFormat.HTML, View(made_ms=made_ms)))


class Outline(html.parser.HTMLParser):
    """The elements of a page, each with its attributes' names, and the values of those that can act."""

    ACTING = frozenset({"href", "src", "style", "class", "id", "http-equiv", "content", "role", "x", "y", "width", "d"})

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.words = []
        self.others = []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, [(name, value if name in self.ACTING else None) for name, value in attrs]))

    def handle_endtag(self, tag):
        self.elements.append(f"/{tag}")

    def handle_data(self, data):
        self.words.append(data)

    def handle_comment(self, data):
        self.others.append(data)

    handle_pi = unknown_decl = handle_comment


def outline(page):
    """The elements, words and comments of a page."""
    parser = Outline()
    parser.feed(page)
    parser.close()
    return parser
