"""Fill the templates of pages. All text from evidence is escaped here, for every page."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kforensics import __version__
from kforensics.errors import MissingExtra
from kforensics.render.escape import escape_text
from kforensics.words import counted, utc_text

if TYPE_CHECKING:
    from jinja2 import Environment


def require_engine() -> None:
    """Check, before the work begins, that the template engine is installed."""
    if find_spec("jinja2") is None:
        raise MissingExtra("html", "--format html")


def fill_page(template: str, *, identity: Sequence[tuple[str, str]], made_ms: int | None, **values: Any) -> str:
    """Fill a template with values and return the page.

    Every value that a template writes is passed through `escape_text`, so that no control or bidi character reaches the page, and then through
    jinja's escaping of markup: a value can change neither elements nor attributes. A name that is not given is an error, never an empty text.
    """
    require_engine()
    rows = identity if made_ms is None else [*identity, ("Page made", utc_text(made_ms))]
    return str(_environment().get_template(template).render(tool_version=__version__, identity=rows, **values))


def hash_of(content: str) -> str:
    """Return the name under which the policy of a page allows a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - an extra, and slow to load

    made = Environment(
        # Finds the templates in a zip too, as spark-submit ships the package.
        loader=PackageLoader("kforensics.render.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    made.globals["counted"] = counted
    made.globals["hashed"] = hash_of
    return made


def _visible(value: Any) -> Any:
    # A macro of a template made this markup; its parts have been escaped before.
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return escape_text(value)
    return value
