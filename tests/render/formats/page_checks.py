"""What a page must be for every reader, found without a browser: structure, names, contrast, places."""

import base64
import hashlib
import html.parser
import re
from itertools import pairwise

VOID = frozenset({"meta", "br", "rect", "path", "circle", "line"})
LANDMARKS = frozenset({"main", "header", "footer", "nav"})


class Element:
    """One element, with its attributes, its parent and the text below it."""

    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children, self.words = [], []

    def get(self, name):
        return self.attributes.get(name)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def within(self, tag):
        element = self.parent
        while element is not None and element.tag != tag:
            element = element.parent
        return element


class Tree(html.parser.HTMLParser):
    """All elements of a page in order."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs), self.open[-1] if self.open else None)
        self.elements.append(element)
        if element.parent is not None:
            element.parent.children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop().tag == tag

    def handle_data(self, data):
        for element in self.open:
            element.words.append(data)

    def all(self, *tags):
        return [element for element in self.elements if element.tag in tags]


def complaints(page):
    """Everything that is wrong with the structure of a page, in words; empty where nothing is."""
    tree = Tree(page)
    ids = [element.get("id") for element in tree.elements if element.get("id") is not None]
    found = [f"id {one} is there twice" for one in set(ids) if ids.count(one) > 1]
    found += _of_document(tree)
    found += _of_headings(tree)
    found += _of_policy(page, tree)
    places = dict(_places(tree))
    for element in tree.elements:
        found += _of_names(element, set(ids))
        found += _of_places(element, places)
    for table in tree.all("table"):
        found += _of_table(tree, table)
    return found


def _of_document(tree):
    counts = {tag: len([one for one in tree.all(tag) if not one.within("svg")]) for tag in ("h1", "main", "title")}
    yield from (f"{tag} is there {count} times" for tag, count in counts.items() if count != 1)
    if tree.all("html")[0].get("lang") != "en":
        yield "the language is not stated"
    if not any(one.get("name") == "viewport" for one in tree.all("meta")):
        yield "a narrow screen is not thought of"
    outside = [one for one in tree.all("h1", "h2", "p", "table", "dl") if not any(one.within(tag) for tag in LANDMARKS)]
    yield from (f"{one.tag} “{one.text[:40]}” is in no landmark" for one in outside)


def _of_headings(tree):
    headings = tree.all("h1", "h2", "h3", "h4", "h5", "h6")
    levels = [int(one.tag[1]) for one in headings]
    if levels[:1] != [1]:
        yield "the first heading is not of level 1"
    yield from (
        f"“{headings[at + 1].text[:40]}” skips a level"
        for at, (one, following) in enumerate(pairwise(levels))
        if following > one + 1
    )
    yield from (f"{one.tag} is empty" for one in headings if not one.text)


def _of_names(element, ids):
    label, labelled_by = element.get("aria-label"), element.get("aria-labelledby")
    if labelled_by is not None and not set(labelled_by.split()) <= ids:
        yield f"{element.tag} is labelled by {labelled_by}, which is not there"
    is_named = bool(label) or labelled_by is not None
    if element.tag in {"section", "nav", "dl"} and not is_named and element.within("article") is None:
        yield f"{element.tag} has no name"
    if element.get("role") in {"img", "region", "group"} and not is_named:
        yield f"{element.get('role')} has no name"
    if element.get("tabindex") not in {None, "0"}:
        yield f"{element.tag} changes the order of the keyboard"
    if element.tag == "a" and not element.text:
        yield "a link has no words"
    if element.tag == "summary" and not element.text:
        yield "a summary has no words"
    if element.tag == "details" and (not element.children or element.children[0].tag != "summary"):
        yield "details do not begin with a summary"
    if "scroll" in (element.get("class") or "").split() and element.get("tabindex") != "0":
        yield "a part that scrolls can't be reached by keyboard"


def _of_places(element, places):
    """What is placed on a lane lies within it, in percent: so it fits every width."""
    if element.get("style"):
        yield f"{element.tag} has a style of its own, which the policy forbids"
    classes = (element.get("class") or "").split()
    placed = [places[name] for name in classes if name in places]
    for left, width in placed:
        if not (0 <= left <= 100 and 0 <= width <= 100) or left + width > 100.02:
            yield f"{left}, {width} leads out of its lane"
    is_lane = element.parent is not None and "track" in (element.parent.get("class") or "").split()
    if is_lane and not placed:
        yield f"{element.tag} has no place on its lane"


def _places(tree):
    """The places that the style of a page names, in percent."""
    style = "".join(one.text for one in tree.all("style"))
    for name, declared in re.findall(r"\.(p\d+)\s*\{(.*?)\}", style):
        parts = dict(part.strip().split(":") for part in declared.split(";"))
        if all(re.fullmatch(r"\d+\.\d\d%", value) for value in parts.values()):
            yield name, (float(parts["left"][:-1]), float(parts.get("width", "0%")[:-1]))


def _of_policy(page, tree):
    """The policy of a page allows its own style and script by their hashes, and nothing else."""
    (policy,) = (one.get("content") for one in tree.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    digests = {}
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digests[tag] = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    if policy != f"default-src 'none'; style-src 'sha256-{digests['style']}'; script-src 'sha256-{digests['script']}'":
        yield "the policy is not that of its style and script"


def _of_table(tree, table):
    if not any(one.tag == "caption" for one in table.children):
        yield "a table has no caption"
    heads = [one for one in tree.all("th") if one.within("table") is table]
    yield from ("a heading of a table names no scope" for one in heads if one.get("scope") not in {"col", "row"})
    columns = sum(one.get("scope") == "col" for one in heads)
    for row in (one for one in tree.all("tr") if one.within("table") is table):
        cells = sum(int(one.get("colspan") or 1) for one in row.children)
        if cells != columns:
            yield f"a row of “{table.text[:30]}” has {cells} cells of {columns}"


def channels(colour):
    """A colour as red, green and blue of linear light."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in values]


def contrast(one, other):
    """The contrast of two colours (WCAG 2.2, 1.4.3)."""
    low, high = sorted(
        sum(part * weight for part, weight in zip(channels(colour), (0.2126, 0.7152, 0.0722), strict=True))
        for colour in (one, other)
    )
    return (high + 0.05) / (low + 0.05)


# Machado, Oliveira, Fernandes 2009, severity 1.0.
SIGHTS = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def difference(one, other, sight):
    """How far two colours are apart for a kind of sight (CIE 1976 L*a*b*, D65)."""
    first, second = (
        _lab([sum(a * b for a, b in zip(row, channels(c), strict=True)) for row in SIGHTS[sight]]) for c in (one, other)
    )
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) ** 0.5


def _lab(light):
    red, green, blue = (min(1.0, max(0.0, one)) for one in light)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    x, y, z = (one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def colours(css):
    """The named colours of the pages by scheme: those of the dark one over those of the light one."""
    blocks = re.findall(r":root \{(.*?)\n\s*\}", css, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks)
    return {"light": light, "dark": {**light, **dark}}
