"""Jinja2 templates of the package, and grids as HTML, LaTeX and Markdown tables."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from prevalens.reports.grid import MARK_MEANINGS, MARK_SIGNS, Grid

#: Steps of the colour scale from the best to the worst of a row; the style sheet has one each.
N_SHADES = 9
#: What a LaTeX document must load to use the tables.
PACKAGES = ("booktabs", "graphicx")

_ENVIRONMENT = Environment(
    loader=PackageLoader("prevalens.reports"),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def asset(name: str) -> str:
    """Return the text of a style sheet, script or data file of this package."""
    loader = _ENVIRONMENT.loader
    assert loader is not None
    return loader.get_source(_ENVIRONMENT, name)[0].strip()


def data(name: str) -> dict[str, Any]:
    """Return the content of a TOML file of this package."""
    return tomllib.loads(asset(name))


#: Captions, notes and sentences of tables, charts and pages, by page and name.
CAPTIONS = data("captions.toml")
_LATEX_SPECIAL = str.maketrans(data("latex.toml"))
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")
# A bullet or number that would begin a list at the beginning of a paragraph.
_BULLET = re.compile(r"^(?:(\d+)([.)])|([-+]))(?= )")


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    Examples
    --------
    >>> print(escape_latex("tmc2007_500 & 5 %"))
    tmc2007\_500 \& 5 \%
    """
    return " ".join(text.split()).translate(_LATEX_SPECIAL)


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(escape_markdown("tmc2007_500 | <b>"))
    tmc2007\_500 \| \<b\>
    """
    return _BULLET.sub(r"\1\\\2\3", _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split())))


_ENVIRONMENT.filters |= {"latex": escape_latex, "markdown": escape_markdown}
_ENVIRONMENT.globals |= {"mark_signs": MARK_SIGNS, "mark_meanings": MARK_MEANINGS}
_ENVIRONMENT.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
# The braces of LaTeX are not those of the templates.
_LATEX_ENVIRONMENT = _ENVIRONMENT.overlay(
    block_start_string="<%",
    block_end_string="%>",
    variable_start_string="<<",
    variable_end_string=">>",
    comment_start_string="<#",
    comment_end_string="#>",
)


def render(template: str, **values: object) -> Markup:
    """An HTML template of this package filled with values; whatever is not `Markup` is escaped."""
    return Markup(_ENVIRONMENT.get_template(template).render(values))


def render_text(template: str, **values: object) -> str:
    """A template of this package for plain text or Markdown, filled with values."""
    return _ENVIRONMENT.get_template(template).render(values)


def to_html(grid: Grid) -> Markup:
    """A grid as an HTML table in a box that scrolls sideways.

    Parameters
    ----------
    grid : Grid

    Returns
    -------
    Markup
        HTML that is also well-formed XML. It needs the style sheet of `prevalens.reports.page`.
    """
    return render("table.html", grid=grid, darkest=N_SHADES - 1)


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
    return _LATEX_ENVIRONMENT.get_template("table.tex").render(grid=grid, name=name) + "\n"


def latex_document(grids: Iterable[Grid]) -> str:
    """A LaTeX document with a table per grid.

    Parameters
    ----------
    grids : iterable of Grid
    """
    template = _LATEX_ENVIRONMENT.get_template("document.tex")
    return template.render(packages=PACKAGES, tables=map(to_latex, grids)) + "\n"


def to_markdown(grid: Grid) -> str:
    """A grid as a Markdown table, with its caption above and its notes below.

    Parameters
    ----------
    grid : Grid
        Two levels of headings become one, as Markdown has no spans.
    """
    return render_text("table.md", grid=grid)
