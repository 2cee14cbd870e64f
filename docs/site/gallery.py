"""The gallery: scripts of ``examples/gallery`` become pages with what their cells show.

A script has cells in the percent format, which editors and Jupytext open as notebooks. A cell that
begins with ``# %% [markdown]`` is text; of the others the page has the code, what it prints, the
value of its last line and the figures it draws. Every figure needs a description for readers who
do not see it: ``# %% alt="..."``. Names that the cell ``# %% tags=["parameters"]`` sets may be
replaced, so that a test can run a script with less data.
"""

from __future__ import annotations

import ast
import io
import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from prevalens.reports import theme

mpl.use("Agg")

SCRIPTS = Path(__file__).parents[2] / "examples" / "gallery"
#: Wide tables are scrolled, also by the keys.
_SHOWN = '<div class="shown" role="group" tabindex="0" aria-label="Output">'
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
_SERIES = [theme.LIGHT[f"series-{number + 1}"] for number in range(theme.N_SERIES)]
#: Colours of the reports. In a page they become variables, which follow its light or dark theme.
STYLE: dict[str, Any] = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), theme.LIGHT["text"]),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), theme.LIGHT["muted"]),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.prop_cycle": mpl.cycler(color=_SERIES),
    "grid.color": theme.LIGHT["line"],
    "font.size": 10.5,
    "figure.figsize": (7.0, 3.8),
    "figure.constrained_layout.use": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "prevalens",
}
#: The first name of a light colour; and black, which some charts have whatever the style.
_NAMES = {value: name for name, value in reversed(theme.LIGHT.items())} | {"#000000": "text"}


@dataclass(frozen=True)
class Cell:
    """A part of a script: what its first line says, and what follows it."""

    head: str
    source: str

    @property
    def is_text(self) -> bool:
        """Whether the cell is Markdown."""
        return "[markdown]" in self.head

    @property
    def markdown(self) -> str:
        """The text without the signs of comments."""
        return re.sub(r"^# ?", "", self.source, flags=re.MULTILINE)

    @property
    def alt(self) -> str:
        """What its figures show, in words."""
        return "".join(re.findall(r'alt="([^"]+)"', self.head))


@dataclass
class Output:
    """What a cell shows: printed lines, the value of its last line, figures as SVG."""

    text: str = ""
    html: str = ""
    figures: list[str] = field(default_factory=list)


def cells(path: Path) -> list[Cell]:
    """The cells of a script."""
    before, *parts = _CELL.split(path.read_text("utf-8"))
    if before.strip():
        raise ValueError(f"{path.name} has lines before its first cell.")
    return [Cell(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]


def run(path: Path, **parameters: Any) -> tuple[dict[str, Any], list[tuple[Cell, Output]]]:
    """Run a script, in a folder of its own that is removed afterwards.

    Parameters
    ----------
    path : Path
    **parameters
        Replace those of the script.

    Returns
    -------
    dict and list
        The names that the script leaves, and every cell with its output.
    """
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    done = []
    plt.close("all")
    with tempfile.TemporaryDirectory() as folder, chdir(folder), mpl.rc_context(STYLE):
        for cell in cells(path):
            done.append((cell, Output() if cell.is_text else execute(cell, names, path)))
            if 'tags=["parameters"]' in cell.head:
                if unknown := parameters.keys() - names:
                    raise ValueError(f"{path.name} has no parameter {', '.join(sorted(unknown))}.")
                names |= parameters
    return names, done


def execute(cell: Cell, names: dict[str, Any], path: Path) -> Output:
    """Run one cell in the names of the script."""
    body = ast.parse(cell.source)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    output, printed = Output(), io.StringIO()
    with redirect_stdout(printed):
        exec(compile(body, str(path), "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
            show(shown, output)
    output.text = printed.getvalue() + output.text
    output.figures = [drawn(number, path.stem, cell.alt) for number in plt.get_fignums()]
    plt.close("all")
    return output


def show(value: Any, output: Output) -> None:
    """Keep the value of a cell's last line as a notebook shows it; charts are kept as figures."""
    if value is None or isinstance(value, mpl.artist.Artist):
        return
    # The protocol of notebooks: what has no such method is shown as text.
    in_html = getattr(value, "_repr_html_", None)
    if in_html is None:
        output.text = f"{value!r}\n"
    else:
        output.html = in_html()


def drawn(number: int, page: str, alt: str) -> str:
    """A figure as an element of the page, in the colours of its theme."""
    if not alt:
        raise ValueError(f'A figure of {page} has no description: begin its cell # %% alt="...".')
    file = io.StringIO()
    plt.figure(number).savefig(file, format="svg", metadata={"Date": None})
    svg = file.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # Several figures of a page must not share names.
    prefix = f"{page}-{plt.figure(number).number}-{abs(hash(alt)) % 10**6}-"
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", svg)
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda match: variable(match[0]), svg)
    svg = re.sub(r'(?<=<svg )(.*?)height="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1).strip()


def variable(colour: str) -> str:
    """A colour of the palette as a variable; others as they are."""
    name = _NAMES.get(colour)
    return f"var(--pv-{name}, {colour})" if name else colour


def page(path: Path, source: str) -> str:
    """The page of a script, with a link to where its source is."""
    _, done = run(path)
    parts = [part for cell, output in done for part in markdown(cell, output)]
    return "\n\n".join([*parts, f"[This page as a script]({source})"]) + "\n"


def markdown(cell: Cell, output: Output) -> Iterator[str]:
    """A cell and its output as parts of a page."""
    if cell.is_text:
        yield cell.markdown.strip()
        return
    yield f"```python\n{cell.source.strip()}\n```"
    if output.text.strip():
        yield f"```text\n{output.text.rstrip()}\n```"
    for element in (output.html, *output.figures):
        if element:
            yield f"```{{raw}} html\n{_SHOWN}{element}</div>\n```"


def title(path: Path) -> str:
    """The first heading of a script."""
    return cells(path)[0].markdown.strip().partition("\n")[0].removeprefix("# ")
