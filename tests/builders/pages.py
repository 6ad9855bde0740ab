"""The elements of an HTML page."""

import html.parser


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
