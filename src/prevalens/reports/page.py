"""Pages: sections of text, tables and charts as one self-contained HTML or Markdown file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TypeAlias

from markupsafe import Markup

from prevalens._version import __version__
from prevalens.files import write_whole
from prevalens.reports.grid import Grid
from prevalens.reports.render import asset, escape_markdown, render, to_html, to_markdown
from prevalens.reports.theme import DARK, LIGHT, declarations, standalone

_LIGHT, _DARK = declarations(LIGHT), declarations(DARK)
_THEMES = (
    f":root{{{_LIGHT}}}"
    f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{_DARK}}}}}"
    f":root[data-theme=dark]{{{_DARK}}}"
    # Pages are printed on white paper, whatever the theme of the screen.
    f"@media print{{:root:root:root{{{_LIGHT}}}}}"
)


@dataclass(frozen=True)
class Figure:
    """A chart with a caption.

    Attributes
    ----------
    svg : str
        The output of a function of `prevalens.reports.charts`; it is not escaped.
    caption : str
    name : str
        File name without ending, for documents that cannot hold the chart themselves.
    wide : bool
        Whether the chart keeps its size on narrow screens and scrolls instead.
    """

    svg: str
    caption: str = ""
    name: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Gallery:
    """Charts side by side, as many as there is room for, with one caption."""

    figures: tuple[Figure, ...]
    caption: str = ""


#: Part of a section: a paragraph, table, chart or gallery, or HTML, which Markdown pages omit.
SectionPart: TypeAlias = str | Grid | Figure | Gallery | Markup


@dataclass(frozen=True)
class Section:
    """A heading and the parts below it.

    Attributes
    ----------
    title : str
    parts : tuple of str, Grid, Figure, Gallery or Markup
        A str is a paragraph of plain text.
    """

    title: str
    parts: tuple[SectionPart, ...]


def page(
    title: str, sections: Sequence[Section], *, lead: str | Markup = "", assets: Sequence[str] = ()
) -> str:
    """One self-contained HTML file.

    Parameters
    ----------
    title : str
    sections : sequence of Section
    lead : str or Markup
        A paragraph, or HTML, below the title.
    assets : sequence of str
        Style sheets with scripts of this package to add, by their names without ending.

    Returns
    -------
    str
        HTML with its styles and script inside. It loads nothing from other places; a content
        security policy prevents that. The same input gives the same bytes.

    Examples
    --------
    >>> page("Errors", [Section("PCC", ("All is well.",))])[:15]
    '<!DOCTYPE html>'
    """
    style, script = (
        "\n".join(asset(f"{name}.{ending}") for name in ("page", *assets))
        for ending in ("css", "js")
    )
    style = f"{_THEMES}\n{style}"
    return str(
        render(
            "page.html",
            title=title,
            lead=_html(lead) if lead else "",
            sections=_anchored(sections),
            html=_html,
            style=style,
            style_checksum=_checksum(style),
            script=script,
            script_checksum=_checksum(script),
            version=__version__,
        )
    )


def _checksum(text: str) -> str:
    """Checksum by which a content security policy allows a style sheet or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _anchored(sections: Sequence[Section]) -> dict[str, Section]:
    """The sections by distinct names made of their titles."""
    named: dict[str, Section] = {}
    for section in sections:
        base = re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-") or "section"
        numbered = (f"{base}-{number}" for number in count(2))
        named[next(name for name in chain([base], numbered) if name not in named)] = section
    return named


def _html(part: SectionPart) -> Markup:
    match part:
        case Grid():
            return to_html(part)
        case Figure() | Gallery():
            return render("figure.html", part=part)
        case Markup():
            return part
        case _:
            return Markup("<p>{}</p>").format(part)


def markdown_page(
    title: str, sections: Sequence[Section], *, lead: str = "", figures: str = ""
) -> str:
    """Sections as a Markdown document.

    Parameters
    ----------
    title : str
    sections : sequence of Section
    lead : str
        A paragraph below the title.
    figures : str
        Folder of the charts, relative to the document; `figure_files` gives the files
        ``NAME.svg``. If it is empty, charts are omitted. Charts without a name are always
        omitted, and so are sections that have no other parts.
    """
    blocks = [f"# {escape_markdown(title)}", escape_markdown(lead)]
    for section in sections:
        own = [block for part in section.parts for block in _blocks(part, figures)]
        if own or not section.parts:
            blocks += [f"## {escape_markdown(section.title)}", *own]
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def _blocks(part: SectionPart, folder: str) -> Iterator[str]:
    match part:
        case Grid():
            yield to_markdown(part)
        case Figure() if folder and part.name:
            yield f"![{escape_markdown(part.caption or part.name)}]({folder}/{part.name}.svg)"
        case Gallery() if folder:
            yield from (link for figure in part.figures for link in _blocks(figure, folder))
            yield escape_markdown(part.caption)
        case Figure() | Gallery() | Markup():
            return
        case _:
            yield escape_markdown(part)


def grids_of(sections: Sequence[Section]) -> list[Grid]:
    """The tables of sections, for example for a LaTeX document."""
    return [part for section in sections for part in section.parts if isinstance(part, Grid)]


def figure_files(sections: Sequence[Section], *, theme: str = "auto") -> dict[str, str]:
    """The charts of sections that have a name, by file name.

    Parameters
    ----------
    sections : sequence of Section
    theme : {"auto", "light", "dark"}
        As in `standalone`.
    """
    parts = [part for section in sections for part in section.parts]
    figures = [part for part in parts if isinstance(part, Figure)]
    figures += [figure for part in parts if isinstance(part, Gallery) for figure in part.figures]
    return {
        f"{figure.name}.svg": standalone(figure.svg, theme) for figure in figures if figure.name
    }


def write_page(path: str | Path, html: str) -> None:
    """Write a page completely, or leave the old file in place."""
    write_whole(Path(path), html.encode())
