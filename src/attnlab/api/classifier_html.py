"""The results of a fitted classifier in a notebook: a table and a link, with nothing loaded from elsewhere."""

from __future__ import annotations

from html import escape
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.report.page import results_table
from attnlab.runs import read_record


def results_html(run: Path) -> str:
    """Scores of a run, a link to its report, and a warning if it collapsed or is gone."""
    try:
        record = read_record(run)
    except UserError as error:
        return f'<p role="alert">{escape(str(error))}</p>'
    table = results_table(record)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    warning = f'<p role="alert">{escape(record["collapsed"])}</p>' if record.get("collapsed") else ""
    link = f'<a href="{escape((run / "report.html").as_uri())}">report</a>'
    return (
        f"{warning}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{link}: {escape(str(run))}</p>"
    )
