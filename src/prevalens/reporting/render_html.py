"""Grids as HTML tables: everything escaped, no styles of their own, readable aloud."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from prevalens.reporting.grid import MARK_SIGNS, MARK_WORDS, Entry, Grid, Group, Heading, Line

__all__ = ["N_SHADES", "to_html"]

#: Steps of the colour scale from the best to the worst of a row; the style sheet has one each.
N_SHADES = 9

_COLOURS = "Colours run from green, the best of its row and regime, to orange, the worst."


def to_html(grid: Grid) -> str:
    """A grid as an HTML table in a box that scrolls sideways.

    Parameters
    ----------
    grid : Grid

    Returns
    -------
    str
        HTML that is also well-formed XML. It needs the style sheet of `prevalens.reporting.page`.
    """
    columns = _columns(grid)
    rows = "".join(_head_row(grid, level, columns) for level in range(len(grid.headings)))
    body = "".join(_group(group, columns) for group in grid.groups)
    # A box that scrolls must be reachable by keyboard, and then needs a name.
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(grid.caption)}">'
        f"<table><caption><span>{escape(grid.caption)}</span></caption>"
        f"<thead>{rows}</thead>{body}</table></div>{_notes(grid)}"
    )


def _head_row(grid: Grid, level: int, columns: Sequence[str]) -> str:
    depth = len(grid.headings)
    stub = f'<th scope="col" rowspan="{depth}">{escape(grid.stub)}</th>' if level == 0 else ""
    scope = "col" if level == depth - 1 else "colgroup"
    cells = "".join(
        _heading(heading, scope, columns[first]) for heading, first in _placed(grid.headings[level])
    )
    return f"<tr>{stub}{cells}</tr>"


def _placed(headings: tuple[Heading, ...]) -> Iterator[tuple[Heading, int]]:
    """Each heading with the number of its first column."""
    column = 0
    for heading in headings:
        yield heading, column
        column += heading.span


def _columns(grid: Grid) -> list[str]:
    """Class names of each column: where words stand, and where an upper heading begins."""
    starts = {column for _, column in _placed(grid.headings[0])} if len(grid.headings) > 1 else ()
    return [
        " ".join(["start"] * (column in starts) + ["words"] * heading.words)
        for column, heading in enumerate(grid.headings[-1])
    ]


def _heading(heading: Heading, scope: str, column: str) -> str:
    span = f' colspan="{heading.span}"' if heading.span > 1 else ""
    return f'<th scope="{scope}"{span}{_class(column)}>{escape(heading.text)}</th>'


def _class(*names: str) -> str:
    given = " ".join(filter(None, names))
    return f' class="{given}"' if given else ""


def _group(group: Group, columns: Sequence[str]) -> str:
    title = (
        f'<tr class="group"><th scope="rowgroup" colspan="{len(columns) + 1}">'
        f"<span>{escape(group.title)}</span></th></tr>"
        if group.title
        else ""
    )
    lines = "".join(_line(line, columns) for line in group.lines)
    return f"<tbody>{title}{lines}</tbody>"


def _line(line: Line, columns: Sequence[str]) -> str:
    cells = "".join(map(_entry, line.entries, columns))
    return f'<tr><th scope="row">{escape(line.name)}</th>{cells}</tr>'


def _entry(entry: Entry, column: str) -> str:
    text = escape(entry.text)
    if entry.bold:
        text = f"<b>{text}</b>"
    if entry.flag:
        text = f"<i>{text}</i>"
    if entry.mark:
        words = escape(MARK_WORDS[entry.mark])
        text += f'<sup title="{words}">{MARK_SIGNS[entry.mark]}</sup>'
    shade = "" if entry.shade is None else f"shade-{round(entry.shade * (N_SHADES - 1))}"
    return f"<td{_class(column, shade, 'aside' if entry.aside else '')}>{text}</td>"


def _notes(grid: Grid) -> str:
    shaded = any(entry.shade is not None for line in grid.lines() for entry in line.entries)
    notes = [*([_COLOURS] if shaded else []), *grid.all_notes()]
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{items}</ul>' if items else ""
