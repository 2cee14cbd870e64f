"""page: sections of text, tables and charts as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import TypeAlias

from prevalens._version import __version__
from prevalens.reports.grid import Grid
from prevalens.reports.render import escape_markdown, to_html, to_markdown
from prevalens.reports.theme import DARK, LIGHT, declarations, standalone

__all__ = [
    "Figure",
    "Gallery",
    "Markup",
    "Section",
    "SectionPart",
    "figure_files",
    "grids_of",
    "markdown_page",
    "page",
]


@dataclass(frozen=True)
class Figure:
    """A chart with a caption.

    Attributes
    ----------
    svg : str
        As a function of `prevalens.reports.charts` gives it; it is put into the page as it is.
    caption : str
    name : str
        File name without ending, for documents that cannot hold the chart themselves.
    """

    svg: str
    caption: str = ""
    name: str = ""


@dataclass(frozen=True)
class Gallery:
    """Charts side by side, as many as there is room for, with one caption."""

    figures: tuple[Figure, ...]
    caption: str = ""


@dataclass(frozen=True)
class Markup:
    """HTML that is put into the page as it is, and left out of other documents.

    Whoever makes it escapes what comes from outside.
    """

    html: str


#: What a section is made of: a paragraph, a table, charts, or HTML.
SectionPart: TypeAlias = str | Grid | Figure | Gallery | Markup


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it.

    Attributes
    ----------
    title : str
    parts : tuple of str, Grid, Figure, Gallery or Markup
        A str is a paragraph of plain text.
    """

    title: str
    parts: tuple[SectionPart, ...]


def page(
    title: str, sections: Sequence[Section], *, lead: str | Markup = "", asset: str = ""
) -> str:
    """One self-contained HTML file.

    Parameters
    ----------
    title : str
    sections : sequence of Section
    lead : str or Markup
        A paragraph, or HTML, below the title.
    asset : str
        Name of a style sheet and a script of this package to add, without ending.

    Returns
    -------
    str
        HTML with its styles and script inside. It asks for nothing from elsewhere, and a content
        security policy keeps it from doing so. The same input gives the same bytes.

    Examples
    --------
    >>> page("Errors", [Section("PCC", ("All is well.",))])[:15]
    '<!DOCTYPE html>'
    """
    style, script = _style(), _asset("page.js")
    if asset:
        style, script = f"{style}\n{_asset(asset + '.css')}", f"{script}\n{_asset(asset + '.js')}"
    names = _anchors([section.title for section in sections])
    body = "".join(map(_section, sections, names))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f'<meta name="color-scheme" content="light dark"/>\n<title>{escape(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1>"
        '<button id="theme" type="button" hidden="hidden">Dark</button></header>\n'
        f"<main>\n{_part(lead) if lead else ''}{_contents(sections, names)}{body}</main>\n"
        f"<footer>Made with prevalens {escape(__version__)}.</footer>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


@cache
def _asset(name: str) -> str:
    return resources.files("prevalens.reports").joinpath(name).read_text("utf-8").strip()


@cache
def _style() -> str:
    light, dark = declarations(LIGHT), declarations(DARK)
    return (
        f":root{{{light}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}"
        # Paper is white, whatever the screen.
        f"@media print{{:root:root:root{{{light}}}}}\n{_asset('page.css')}"
    )


def _policy(style: str, script: str) -> str:
    """Allow this style sheet and this script by their checksums, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_checksum(style)}'; script-src '{_checksum(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _checksum(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _anchors(titles: Sequence[str]) -> list[str]:
    """A distinct name for each section, made of its title."""
    found: list[str] = []
    for title in titles:
        base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        name, number = base, 2
        while name in found:
            name, number = f"{base}-{number}", number + 1
        found.append(name)
    return found


def _contents(sections: Sequence[Section], names: Sequence[str]) -> str:
    if len(sections) < 2:
        return ""
    links = "".join(
        f'<li><a href="#{name}">{escape(section.title)}</a></li>'
        for section, name in zip(sections, names, strict=True)
    )
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n'


def _section(section: Section, name: str) -> str:
    parts = "\n".join(map(_part, section.parts))
    return f'<section id="{name}">\n<h2>{escape(section.title)}</h2>\n{parts}\n</section>\n'


def _part(part: SectionPart) -> str:
    if isinstance(part, Grid):
        return to_html(part)
    if isinstance(part, Figure):
        return _figure(part)
    if isinstance(part, Gallery):
        charts = "".join(map(_figure, part.figures))
        return f'<figure class="gallery">{charts}{_caption(part.caption)}</figure>'
    if isinstance(part, Markup):
        return part.html
    return _paragraph(part)


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>\n"


def _figure(figure: Figure) -> str:
    return f"<figure>{figure.svg}{_caption(figure.caption)}</figure>"


def _caption(text: str) -> str:
    return f"<figcaption>{escape(text)}</figcaption>" if text else ""


def markdown_page(
    title: str, sections: Sequence[Section], *, lead: str = "", figures: str = ""
) -> str:
    """The same as a Markdown document.

    Parameters
    ----------
    title : str
    sections : sequence of Section
    lead : str
        A paragraph below the title.
    figures : str
        Folder, seen from the document, in which the charts lie as ``NAME.svg``; empty leaves
        charts out. Charts without a name are left out in any case. `figure_files` makes them.
        A section of which nothing is left is left out too.
    """
    blocks = [f"# {escape_markdown(title)}", *([escape_markdown(lead)] if lead else [])]
    for section in sections:
        own = [block for part in section.parts for block in _blocks(part, figures)]
        if own or not section.parts:
            blocks += [f"## {escape_markdown(section.title)}", *own]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _blocks(part: SectionPart, folder: str) -> Iterator[str]:
    if isinstance(part, Grid):
        yield to_markdown(part)
    elif isinstance(part, Gallery):
        if folder:
            yield from (link for figure in part.figures for link in _blocks(figure, folder))
            yield escape_markdown(part.caption)
    elif isinstance(part, Figure):
        if folder and part.name:
            yield f"![{escape_markdown(part.caption or part.name)}]({folder}/{part.name}.svg)"
    elif isinstance(part, Markup):
        return
    else:
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
    return {f"{one.name}.svg": standalone(one.svg, theme) for one in figures if one.name}
