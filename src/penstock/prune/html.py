r"""What a notebook shows of plans, tables and advice: small tables in HTML.

Names and values come from anybody, so every text goes through `cell`: markup in it is text, a character that would not
simply be drawn is its escape, and nothing is endless. There is no script, no style sheet and no colour but a grey that
can be seen on white and on black: the notebook's own theme stays.

What `partitions()` gives is not shown here. It is Arrow's table, which cannot be subclassed; something around it would
no longer be one for Arrow's functions, pandas or DuckDB, and a formatter for all Arrow tables would change what others
see of theirs. `table.partitions().to_pandas()` shows it as a table.

>>> cell("<b>a</b>\u202e")
'&lt;b&gt;a&lt;/b&gt;\\u202e'
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import pyarrow as pa

from penstock.errors import printable
from penstock.predicate.types import type_name

_LONGEST = 300
_MOST_COLUMNS = 50
_WORD = 40  # a longer text may break anywhere, so that a path does not widen the table
_TABLE = '<table style="color:inherit">'
_LINE = "border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;white-space:pre-wrap"


def cell(text: str) -> str:
    """A text that is safe in HTML; of a long one both ends."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    return html.escape(printable(text))


def facts(lines: Iterable[tuple[str, str]]) -> str:
    """Lines with a head each."""
    rows = (f"<tr>{_th(head, 'row', 'white-space:nowrap')}{_td(text)}</tr>" for head, text in lines)
    return f"{_TABLE}{''.join(rows)}</table>"


def grid(names: Sequence[str], rows: Iterable[Sequence[str]], more: int = 0) -> str:
    """Rows under the names of their columns, and how many are not shown; nothing where there are none."""
    body = "".join(f"<tr>{''.join(map(_td, row))}</tr>" for row in rows)
    if not body:
        return ""
    head = "".join(_th(name, "col", _LINE) for name in names)
    left = f"<p>… and {more:,} more</p>" if more else ""
    return f"{_TABLE}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left}"


def columns(schema: pa.Schema) -> str:
    """The columns of a table with their types."""
    shown = [(field.name, type_name(field.type)) for field in list(schema)[:_MOST_COLUMNS]]
    return grid(("column", "type"), shown, more=len(schema) - len(shown))


def _th(text: str, scope: str, style: str) -> str:
    return f'<th scope="{scope}" style="{_CELL};{style}">{cell(text)}</th>'


def _td(text: str) -> str:
    wrap = ";overflow-wrap:anywhere" if len(text) > _WORD else ""
    return f'<td style="{_CELL}{wrap}">{cell(text)}</td>'
