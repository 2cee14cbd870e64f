"""Grids as LaTeX tables with booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prevalens.reporting.grid import MARK_SIGNS, Entry, Grid, Heading

__all__ = ["PACKAGES", "escape_latex", "latex_document", "to_latex"]

#: What a document must load to use the tables.
PACKAGES = ("booktabs", "graphicx")

# No wider than the text and no higher than most of the page, and never enlarged.
_SHRINK = (
    r"\resizebox*{!}{\ifdim\totalheight>0.85\textheight 0.85\textheight\else\totalheight\fi}{%",
    r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
)
_SPECIAL = {
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
_PATTERN = re.compile("|".join(map(re.escape, _SPECIAL)))


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    Examples
    --------
    >>> print(escape_latex("tmc2007_500 & 5 %"))
    tmc2007\_500 \& 5 \%
    """
    return _PATTERN.sub(lambda found: _SPECIAL[found[0]], " ".join(text.split()))


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
        *_body(grid),
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


def _body(grid: Grid) -> Iterator[str]:
    for group in grid.groups:
        yield r"\midrule"
        if group.title:
            width = grid.n_columns + 1
            yield rf"\multicolumn{{{width}}}{{l}}{{\textit{{{escape_latex(group.title)}}}}} \\"
        for line in group.lines:
            yield " & ".join([escape_latex(line.name), *map(_entry, line.entries)]) + r" \\"


def _entry(entry: Entry) -> str:
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
