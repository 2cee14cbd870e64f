"""The colours of pages and charts, for light and for dark screens.

Charts refer to colours as CSS variables with the light colour as the default, so that they follow
the theme of their page and are readable without a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from prevalens.reports.render import data

_COLOURS: dict[str, tuple[str, str]] = data("palette.toml")
LIGHT, DARK = ({name: pair[dark] for name, pair in _COLOURS.items()} for dark in (0, 1))
#: How many colours there are for lines and bars; more series repeat them with another dash.
N_SERIES = sum(name.startswith("series-") for name in _COLOURS)

_DARK_SCREEN = "@media (prefers-color-scheme:dark)"
_VARIABLE = re.compile(r"var\(--pv-([a-z0-9-]+), #[0-9a-f]{6}\)")


def colour(name: str) -> str:
    """A colour as a CSS value: the page's, or the light one where there is no page.

    Examples
    --------
    >>> colour("line")
    'var(--pv-line, #d4dae1)'
    """
    return f"var(--pv-{name}, {LIGHT[name]})"


def series(number: int) -> str:
    """The colour of a line or bar by its number, from 0."""
    return colour(f"series-{number % N_SERIES + 1}")


def declarations(colours: Mapping[str, str]) -> str:
    """The CSS declarations that give the colour names their values."""
    return "".join(f"--pv-{name}:{value};" for name, value in colours.items())


def _rule(colours: Mapping[str, str]) -> str:
    return f"svg{{color:{colours['text']};{declarations(colours)}}}"


def standalone(svg: str, theme: str = "auto") -> str:
    """A chart as an SVG file.

    Parameters
    ----------
    svg : str
        A chart of `prevalens.reports.charts`.
    theme : {"auto", "light", "dark"}
        ``auto`` follows the reader's setting, in browsers; the others have fixed colours, which
        every program understands.

    Examples
    --------
    >>> standalone('<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>', "light")[:16]
    '<svg color="#1b2'
    """
    if theme == "auto":
        end = svg.index(">") + 1
        return f"{svg[:end]}<style>{_rule(LIGHT)}{_DARK_SCREEN}{{{_rule(DARK)}}}</style>{svg[end:]}"
    colours = {"light": LIGHT, "dark": DARK}[theme]
    fixed = _VARIABLE.sub(lambda match: colours[match[1]], svg)
    return fixed.replace("<svg ", f'<svg color="{colours["text"]}" ', 1)
