"""Grids and sections as Markdown, as GitHub understands it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from prevalens.reporting.grid import MARK_SIGNS, Entry, Grid, Heading

__all__ = ["escape_markdown", "to_markdown"]

# What would begin a list at the beginning of a paragraph.
_BULLET = re.compile(r"^([-+]|\d+[.)])(?= )")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(escape_markdown("tmc2007_500 | <b>"))
    tmc2007\_500 \| \<b\>
    """
    return _BULLET.sub(_no_bullet, _SPECIAL.sub(r"\\\1", " ".join(text.split())))


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
    lines = [_row(names), _row(align), *_body(grid, titled)]
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


def _body(grid: Grid, titled: bool) -> Iterator[str]:
    for group in grid.groups:
        for number, line in enumerate(group.lines):
            # Only the first row of a group repeats its title.
            title = [escape_markdown(group.title) if number == 0 else ""] if titled else []
            yield _row([*title, escape_markdown(line.name), *map(_entry, line.entries)])


def _entry(entry: Entry) -> str:
    text = escape_markdown(entry.text)
    if entry.bold and text:
        text = f"**{text}**"
    if entry.flag and text:
        text = f"*{text}*"
    return text + MARK_SIGNS[entry.mark]
