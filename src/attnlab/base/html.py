"""Small pieces of HTML for results that show themselves in a notebook: everything a user wrote is escaped."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from attnlab.base.figure_text import show_as_written

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def heading(text: str) -> str:
    return f"<p><strong>{escape(text)}</strong></p>"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows of text below a header."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def picture(figure: Figure, caption: str) -> str:
    """A drawing inside the page: nothing is loaded from elsewhere, and no script can be in it."""
    from matplotlib import style

    content = io.BytesIO()
    with style.context("default"):  # whatever a notebook sets
        show_as_written(figure).savefig(content, format="png", dpi=100)
    return image(content.getvalue(), caption)


def image(png: bytes, caption: str) -> str:
    source = "data:image/png;base64," + base64.b64encode(png).decode()
    return f'<img src="{source}" alt="{escape(caption)}" style="max-width: 100%">'
