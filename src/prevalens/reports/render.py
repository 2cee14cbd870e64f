"""Grids as HTML tables: everything escaped, no styles of their own, readable aloud."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from prevalens.reports.grid import (
    MARK_SIGNS,
    MARK_WORDS,
    Grid,
    GridCell,
    GridGroup,
    GridLine,
    Heading,
)

__all__ = [
    "N_SHADES",
    "PACKAGES",
    "escape_latex",
    "escape_markdown",
    "latex_document",
    "to_html",
    "to_latex",
    "to_markdown",
]

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
        HTML that is also well-formed XML. It needs the style sheet of `prevalens.reports.page`.
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


def _group(group: GridGroup, columns: Sequence[str]) -> str:
    title = (
        f'<tr class="group"><th scope="rowgroup" colspan="{len(columns) + 1}">'
        f"<span>{escape(group.title)}</span></th></tr>"
        if group.title
        else ""
    )
    lines = "".join(_line(line, columns) for line in group.lines)
    return f"<tbody>{title}{lines}</tbody>"


def _line(line: GridLine, columns: Sequence[str]) -> str:
    cells = "".join(map(_html_entry, line.entries, columns))
    return f'<tr><th scope="row">{escape(line.name)}</th>{cells}</tr>'


def _html_entry(entry: GridCell, column: str) -> str:
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


#: What a document must load to use the tables.
PACKAGES = ("booktabs", "graphicx")

# No wider than the text and no higher than most of the page, and never enlarged.
_SHRINK = (
    r"\resizebox*{!}{\ifdim\totalheight>0.85\textheight 0.85\textheight\else\totalheight\fi}{%",
    r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
)
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",  # noqa: RUF001
    "−": r"\ensuremath{-}",  # noqa: RUF001
    "…": r"\dots{}",
    "≥": r"\ensuremath{\geq}",
    "≤": r"\ensuremath{\leq}",
    "×": r"\ensuremath{\times}",  # noqa: RUF001
    "±": r"\ensuremath{\pm}",
    "∞": r"\ensuremath{\infty}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
}
_PATTERN = re.compile("|".join(map(re.escape, _LATEX_SPECIAL)))


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    Examples
    --------
    >>> print(escape_latex("tmc2007_500 & 5 %"))
    tmc2007\_500 \& 5 \%
    """
    return _PATTERN.sub(lambda found: _LATEX_SPECIAL[found[0]], " ".join(text.split()))


def to_latex(grid: Grid, *, name: str = "") -> str:
    r"""A grid as a table environment.

    Parameters
    ----------
    grid : Grid
    name : str
        What to refer to it by, as in ``\ref{name}``; empty for no label.

    Notes
    -----
    The document must load `PACKAGES`. A table that is too wide or too high is shrunk to the page.
    """
    reference = [rf"\label{{{name}}}"] if name else []
    columns = "l" + "".join("l" if heading.words else "r" for heading in grid.headings[-1])
    tabular = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *_head(grid),
        *_latex_body(grid),
        r"\bottomrule",
        r"\end{tabular}%",
    ]
    notes = " ".join(map(escape_latex, grid.all_notes()))
    lines = [
        r"\begin{table}[tb]",
        r"\centering",
        rf"\caption{{{escape_latex(grid.caption)}}}",
        *reference,
        *_SHRINK,
        *tabular,
        "}}",
        *([rf"\par\smallskip\footnotesize {notes}"] if notes else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _head(grid: Grid) -> Iterator[str]:
    *upper, lowest = grid.headings
    for level in upper:
        cells = (
            rf"\multicolumn{{{heading.span}}}{{c}}{{{escape_latex(heading.text)}}}"
            for heading in level
        )
        yield " & ".join(["", *cells]) + r" \\"
        yield " ".join(_rules(level))
    names = (escape_latex(heading.text) for heading in lowest)
    yield " & ".join([escape_latex(grid.stub), *names]) + r" \\"


def _rules(level: Iterable[Heading]) -> Iterator[str]:
    column = 2
    for heading in level:
        yield rf"\cmidrule(lr){{{column}-{column + heading.span - 1}}}"
        column += heading.span


def _latex_body(grid: Grid) -> Iterator[str]:
    for group in grid.groups:
        yield r"\midrule"
        if group.title:
            width = grid.n_columns + 1
            yield rf"\multicolumn{{{width}}}{{l}}{{\textit{{{escape_latex(group.title)}}}}} \\"
        for line in group.lines:
            yield " & ".join([escape_latex(line.name), *map(_latex_entry, line.entries)]) + r" \\"


def _latex_entry(entry: GridCell) -> str:
    text = escape_latex(entry.text)
    if entry.bold:
        text = rf"\textbf{{{text}}}"
    if entry.flag:
        text = rf"\textit{{{text}}}"
    sign = escape_latex(MARK_SIGNS[entry.mark])
    return rf"{text}\textsuperscript{{{sign}}}" if sign else text


def latex_document(grids: Iterable[Grid]) -> str:
    """A document of its own with a table per grid.

    Parameters
    ----------
    grids : iterable of Grid
    """
    lines = [
        r"\documentclass{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[a4paper,margin=15mm]{geometry}",
        *(rf"\usepackage{{{package}}}" for package in PACKAGES),
        r"\begin{document}",
        *(to_latex(grid) + r"\clearpage" for grid in grids),
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


# What would begin a list at the beginning of a paragraph.
_BULLET = re.compile(r"^([-+]|\d+[.)])(?= )")
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(escape_markdown("tmc2007_500 | <b>"))
    tmc2007\_500 \| \<b\>
    """
    return _BULLET.sub(_no_bullet, _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split())))


def _no_bullet(found: re.Match[str]) -> str:
    return f"{found[1][:-1]}\\{found[1][-1]}"


def to_markdown(grid: Grid) -> str:
    """A grid as a Markdown table, with its caption above and its notes below.

    Parameters
    ----------
    grid : Grid
        Two levels of headings become one, as Markdown has no spans.
    """
    titled = any(group.title for group in grid.groups)
    names = [escape_markdown(grid.stub), *_headings(grid.headings)]
    align = ["---", *("---" if heading.words else "---:" for heading in grid.headings[-1])]
    if titled:
        names, align = ["", *names], ["---", *align]
    lines = [_row(names), _row(align), *_markdown_body(grid, titled)]
    notes = [f"- {escape_markdown(note)}" for note in grid.all_notes()]
    caption = f"**{escape_markdown(grid.caption)}**"
    return "\n".join([caption, "", *lines, *(["", *notes] if notes else [])]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _headings(levels: Sequence[Sequence[Heading]]) -> list[str]:
    """One name per column: the upper heading before the lower one."""
    spread = [
        [escape_markdown(heading.text) for heading in level for _ in range(heading.span)]
        for level in levels
    ]
    return [", ".join(filter(None, names)) for names in zip(*spread, strict=True)]


def _markdown_body(grid: Grid, titled: bool) -> Iterator[str]:
    for group in grid.groups:
        for number, line in enumerate(group.lines):
            # Only the first row of a group repeats its title.
            title = [escape_markdown(group.title) if number == 0 else ""] if titled else []
            yield _row([*title, escape_markdown(line.name), *map(_markdown_entry, line.entries)])


def _markdown_entry(entry: GridCell) -> str:
    text = escape_markdown(entry.text)
    if entry.bold and text:
        text = f"**{text}**"
    if entry.flag and text:
        text = f"*{text}*"
    return text + MARK_SIGNS[entry.mark]
