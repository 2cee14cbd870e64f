"""The colours of pages and charts, for light and for dark screens.

Charts name colours as CSS variables, with the light colour behind each name, so that they follow
the page they stand in and are still readable without one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# On light and on dark ground. The series follow Okabe and Ito's idea of hues that colour-blind
# readers can tell apart, changed until each has a contrast of at least 3 to the ground.
_COLOURS = {
    "ground": ("#ffffff", "#14181d"),
    "raised": ("#f4f6f8", "#1d232a"),
    "text": ("#1b2128", "#e7ebef"),
    "muted": ("#55606d", "#a5b0bc"),
    "line": ("#d4dae1", "#37414c"),
    "link": ("#0a5aa8", "#7dbcff"),
    "plus": ("#c2500a", "#ff9d5c"),
    "minus": ("#0067a5", "#62b2f0"),
    "series-1": ("#0067a5", "#62b2f0"),
    "series-2": ("#c2500a", "#ff9d5c"),
    "series-3": ("#007d5f", "#4cc9a0"),
    "series-4": ("#b0408c", "#ee93cd"),
    "series-5": ("#7255c4", "#b6a2f7"),
    "series-6": ("#806600", "#dcbd45"),
    "series-7": ("#2f83ab", "#93d4ea"),
    "series-8": ("#5b6770", "#a9b4be"),
}
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
