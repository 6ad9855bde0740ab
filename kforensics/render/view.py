"""What of a result is shown, and where."""

from collections.abc import Callable
from typing import NamedTuple


class View(NamedTuple):
    """The part of a result that is shown, and the terminal; nothing here changes a conclusion."""

    width: int = 80
    """Columns."""
    room: int | None = None
    """Lines that the answer leaves to the rest of a screen; None where all may be shown."""
    unicode: bool = False
    """Whether lines and marks beyond ASCII can be shown."""
    colour: bool = False
    verbose: bool = False
    """Also what is fine."""
    files: bool = False
    """Every single file, in a listing."""
    only_findings: bool = False
    """One line a finding, without the blocks."""
    steps: bool = False
    """Each request and answer of a protocol."""
    show_records: bool = False
    show_payload: bool = False
    """Keys, values and headers."""
    as_text: bool = False
    """Payloads as text where they are UTF-8."""
    has_pages: bool = False
    """Pages of the single clusters lie beside this one."""
    page: bool = False
    """All is laid out to be kept: pictures, sources, inputs, hashes, and nothing left out that a page has room for."""
    made_ms: int | None = None
    """When the result is written, which pages state; None where they do not."""
    descriptor: Callable[[], int] | None = None
    """Gives an open file that bytes may go to past the pieces that are written, once those before are written."""

    def most(self, count: int) -> int:
        """Return how many of something are shown: so many on a screen, all that is asked for with -v and on a page."""
        return 1 << 30 if self.verbose or self.page else count
