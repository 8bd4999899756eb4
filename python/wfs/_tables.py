"""Tables of tensors and files, as text and as HTML for notebooks."""
from __future__ import annotations

import html as _html

MOST_ROWS = 20

Rows = list[tuple[str, ...]]
#: Heads, the first rows, and how many rows there are.
Table = tuple[list[str], Rows, int]


def escaped(text: str) -> str:
    return _html.escape(text)


def text(title: str, heads: list[str], rows: Rows, n_rows: int) -> str:
    """`rows` are the first of `n_rows`."""
    widths = [max(len(row[i]) for row in [tuple(heads), *rows]) for i in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    rest = [f"... {n_rows - len(rows)} more"] if n_rows > len(rows) else []
    return "\n".join([f"<{title}: {n_rows}>", *lines, *rest])


def html(heads: list[str], rows: Rows, n_rows: int) -> str:
    head = "".join(f"<th>{escaped(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    rest = f"<p>... {n_rows - len(rows)} more</p>" if n_rows > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
