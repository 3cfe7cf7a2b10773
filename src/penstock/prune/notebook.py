r"""What a notebook shows of plans, tables and advice: small tables in HTML.

Names and values are untrusted, so every text goes through `cell`, which escapes markup and unprintable characters and
cuts long text. There is no script, no style sheet and no colour but a grey that is visible on white and on black: the
notebook's own theme stays.

What `partitions()` gives is Arrow's table, which cannot be subclassed; something around it would no longer be one for
Arrow's functions, pandas or DuckDB. So it carries a mark, and a notebook learns to show tables with that mark; all
others look there as they did before.

>>> cell("<b>a</b>\u202e")
'&lt;b&gt;a&lt;/b&gt;\\u202e'
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterable, Sequence

import pyarrow as pa

from penstock.errors import printable
from penstock.expr.kernels.zones import in_zone
from penstock.expr.types import type_name

_LONGEST = 300
_MOST_COLUMNS = _MOST_ROWS = 50
_GRID = b"penstock.grid"
_WORD = 40  # a longer text may break anywhere, so that a path does not widen the table
_TABLE = '<table style="color:inherit">'
_LINE = "border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = "vertical-align:top;padding:2px 12px 2px 0"
_NUMBER = re.compile(r"[\d,.]+( ([KMGT]i)?B|[×%]| %)?")


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
    shown = [(field.name, type_name(field.type)) for field in list(schema)[:_MOST_COLUMNS]]
    return grid(("column", "type"), shown, more=len(schema) - len(shown))


def as_grid(table: pa.Table, zone: str = "UTC") -> pa.Table:
    """The same table, which a notebook shows row by row, with the clock of a zone."""
    _teach_notebook()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _GRID: zone.encode()})


def _teach_notebook() -> None:
    """Where IPython runs, let it show marked tables; it is not imported for that."""
    running = sys.modules.get("IPython")
    shell = running.get_ipython() if running is not None else None
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["text/html"]
    before = formatter.type_printers.get(pa.Table)
    if getattr(before, "shows_grids", False):
        return

    def shown(table: pa.Table) -> str | None:
        if _GRID in (table.schema.metadata or {}):
            return _rows(table)
        return before(table) if before is not None else None

    shown.shows_grids = True  # type: ignore[attr-defined]
    formatter.for_type(pa.Table, shown)


def _rows(table: pa.Table) -> str:
    zone = table.schema.metadata[_GRID].decode()
    rows = [["NULL" if value is None else str(in_zone(value, zone)) for value in row.values()]
            for row in table.slice(0, _MOST_ROWS).to_pylist()]  # fmt: skip
    return grid(table.column_names, rows, more=max(0, table.num_rows - _MOST_ROWS))


def _th(text: str, scope: str, style: str) -> str:
    return f'<th scope="{scope}" style="{_CELL};text-align:left;{style}">{cell(text)}</th>'


def _td(text: str) -> str:
    styles = [_CELL, "white-space:pre-wrap", f"text-align:{'right' if _NUMBER.fullmatch(text) else 'left'}"]
    styles += ["overflow-wrap:anywhere"] if len(text) > _WORD else []
    styles += ["font-family:monospace"] if "  " in text else []  # columns that are made of spaces
    return f'<td style="{";".join(styles)}">{cell(text)}</td>'
