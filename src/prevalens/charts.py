"""Charts of estimates and errors for notebooks: in matplotlib, in altair, or as a table.

Results such as `PrevalenceEstimate` describe a chart as `Dots` or `Lines`; `draw` and `table` show
it. The pages of `prevalens.reports` have their own charts, which need no library.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from markupsafe import Markup

from prevalens.types import Floats
from prevalens.validation import InputError, check_choice

#: Axes of matplotlib, or a chart of altair.
Drawing: TypeAlias = Any

_HUE, _TABLE_HUE = "#0067a5", "#2f83ab"
#: Maximum number of names at an axis.
_MOST_TICKS = 12
#: Size of a bar in a table, and the room at its ends.
_WIDTH, _HEIGHT, _MARGIN = 160, 18, 5
#: Rows of a table in a notebook.
MOST_ROWS = 200
_MODULES = {"matplotlib": "matplotlib.pyplot", "altair": "altair"}


@dataclass(frozen=True)
class Dots:
    """A value per name, with an optional interval and an optional reference value.

    Attributes
    ----------
    names : sequence of str
    values : array of float, shape (n,)
    lower, upper : array of float, shape (n,), or None
        Ends of the intervals.
    reference : array of float, shape (n,), or None
        Drawn as a mark, such as the training prevalence.
    axis : str
        What the values are.
    reference_name : str
    title : str
    """

    names: Sequence[str]
    values: Floats
    lower: Floats | None = None
    upper: Floats | None = None
    reference: Floats | None = None
    axis: str = "prevalence"
    reference_name: str = "training"
    title: str = ""

    @property
    def top(self) -> float:
        """The largest value to be shown; never 0."""
        parts = [self.values, self.upper, self.reference]
        return max((float(np.max(part)) for part in parts if part is not None), default=0.0) or 1.0

    @property
    def columns(self) -> dict[str, Floats]:
        """Values, ends of the intervals and reference by their names; missing ones are left out."""
        names = ("values", "lower", "upper", "reference")
        parts = {name: vars(self)[name] for name in names}
        return {name: part for name, part in parts.items() if part is not None}


@dataclass(frozen=True)
class Line:
    """Values over an axis, with an optional band around them."""

    name: str
    values: Floats
    lower: Floats | None = None
    upper: Floats | None = None

    @property
    def band(self) -> tuple[Floats, Floats] | None:
        """Both ends of the band, if there is one."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)


@dataclass(frozen=True)
class Lines:
    """Several lines over the same places.

    Attributes
    ----------
    places : sequence
        Numbers, or names in their order.
    lines : sequence of Line
    x_axis, y_axis : str
    title : str
    """

    places: Sequence[object]
    lines: Sequence[Line]
    x_axis: str = ""
    y_axis: str = ""
    title: str = ""

    @property
    def numeric(self) -> bool:
        """Whether the places are numbers."""
        return all(isinstance(place, (int, float, np.number)) for place in self.places)


def frame(columns: Mapping[str, Sequence[object]], backend: str = "pandas") -> Any:
    """A frame of columns.

    Parameters
    ----------
    columns : mapping of name to sequence
    backend : {"pandas", "polars"}

    Examples
    --------
    >>> frame({"label": ["spam"], "prevalence": [0.5]}).shape
    (1, 2)
    """
    check_choice(backend, "backend", ("pandas", "polars"))
    return _library(backend, "A frame", backend, "frames").DataFrame(dict(columns))


def draw(chart: Dots | Lines, backend: str = "matplotlib", *, ax: Drawing | None = None) -> Drawing:
    """Draw a chart.

    Parameters
    ----------
    chart : Dots or Lines
    backend : {"matplotlib", "altair"}
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.

    Returns
    -------
    matplotlib Axes, or altair Chart
    """
    check_choice(backend, "backend", tuple(_MODULES))
    if ax is not None and backend != "matplotlib":
        raise InputError(f"An ax is for matplotlib; {backend} makes a chart of its own.")
    library = _library(_MODULES[backend], "plot", backend, "plot")
    if backend == "altair":
        layers = _altair_dots if isinstance(chart, Dots) else _altair_lines
        drawn = library.layer(*layers(library, chart))  # type: ignore[arg-type]
        return drawn.properties(title=chart.title) if chart.title else drawn
    if ax is None:
        height = 1.2 + 0.28 * len(chart.names) if isinstance(chart, Dots) else 4.0
        ax = library.subplots(figsize=(7, height), layout="constrained")[1]
    if isinstance(chart, Dots):
        _matplotlib_dots(ax, chart)
    else:
        _matplotlib_lines(ax, chart)
    if chart.title:
        ax.set_title(chart.title)
    return ax


def _library(module: str, what: str, name: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(f'{what} needs {name}: pip install "prevalens[{extra}]".') from error


def _altair_dots(altair: Any, chart: Dots) -> list[Any]:
    """Intervals below, values above, references on top."""
    # Tooltips show one value at a time.
    columns = {"value" if key == "values" else key: part for key, part in chart.columns.items()}
    records = [
        {"name": name, **{key: float(part[i]) for key, part in columns.items()}}
        for i, name in enumerate(chart.names)
    ]
    base = altair.Chart(altair.Data(values=records)).encode(
        y=altair.Y("name:N", sort=None, title=None),
        tooltip=["name:N", *(f"{key}:Q" for key in columns)],
    )
    layers = []
    if "lower" in columns and "upper" in columns:
        # An outline of full colour has the contrast that a light filling lacks.
        outline = {"stroke": _HUE, "strokeWidth": 1}
        bar = base.mark_bar(height=6, cornerRadius=3, fillOpacity=0.35, color=_HUE, **outline)
        layers.append(bar.encode(x=altair.X("lower:Q", title=chart.axis), x2="upper:Q"))
    point = base.mark_point(filled=True, size=60, color=_HUE, opacity=1)
    layers.append(point.encode(x=altair.X("value:Q", title=chart.axis)))
    if "reference" in columns:
        layers.append(base.mark_tick(thickness=2, color="black").encode(x="reference:Q"))
    return layers


def _altair_lines(altair: Any, chart: Lines) -> list[Any]:
    records = []
    for line in chart.lines:
        for i, place in enumerate(chart.places):
            record: dict[str, object] = {"line": line.name, "value": float(line.values[i])}
            record["place"] = float(place) if chart.numeric else str(place)  # type: ignore[arg-type]
            if line.band is not None:
                record |= {"lower": float(line.band[0][i]), "upper": float(line.band[1][i])}
            records.append(record)
    kind = "Q" if chart.numeric else "N"
    base = altair.Chart(altair.Data(values=records)).encode(
        x=altair.X(f"place:{kind}", sort=None, title=chart.x_axis or None),
        color=altair.Color("line:N", title=None, sort=None),
    )
    value = altair.Y("value:Q", title=chart.y_axis or None)
    layers = [base.mark_line(point=True).encode(y=value, tooltip=["line:N", "value:Q"])]
    if any(line.band is not None for line in chart.lines):
        layers.insert(0, base.mark_area(opacity=0.15).encode(y="lower:Q", y2="upper:Q"))
    return layers


def _matplotlib_dots(ax: Drawing, chart: Dots) -> None:
    rows = np.arange(len(chart.names))
    if chart.lower is not None and chart.upper is not None:
        ax.hlines(rows, chart.lower, chart.upper, color="C0", alpha=0.35, linewidth=6)
        # A thin line of full colour has the contrast that the light one lacks.
        ax.hlines(rows, chart.lower, chart.upper, color="C0", linewidth=1)
    ax.plot(chart.values, rows, "o", color="C0", label=chart.axis)
    if chart.reference is not None:
        ax.plot(chart.reference, rows, "|", color="black", markersize=12, markeredgewidth=2)
        ax.lines[-1].set_label(chart.reference_name)
        ax.legend(frameon=False)
    ax.set_yticks(rows, list(chart.names))
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel(chart.axis)
    ax.grid(axis="x", alpha=0.3)


def _matplotlib_lines(ax: Drawing, chart: Lines) -> None:
    places = list(chart.places) if chart.numeric else list(range(len(chart.places)))
    for number, line in enumerate(chart.lines):
        hue = f"C{number % 10}"
        if line.band is not None:
            ax.fill_between(places, *line.band, color=hue, alpha=0.15, linewidth=0)
        ax.plot(places, line.values, marker="o", markersize=3, color=hue, label=line.name)
    if not chart.numeric:
        every = -(-len(places) // _MOST_TICKS)
        names = [str(name) for name in chart.places[::every]]
        ax.set_xticks(places[::every], names, rotation=30, ha="right")
    ax.set_ylim(bottom=0)
    ax.set_xlabel(chart.x_axis)
    ax.set_ylabel(chart.y_axis)
    ax.legend(frameon=False)
    ax.grid(axis="y", alpha=0.3)


def table(chart: Dots, *, most: int = MOST_ROWS) -> str:
    """An HTML table with the name, value, interval and a small chart of each entry.

    Parameters
    ----------
    chart : Dots
    most : int
        Rows to show; the others are counted below.

    Examples
    --------
    >>> import numpy as np
    >>> table(Dots(["<spam>"], np.array([0.5])))[:7]
    '<table>'
    """
    titles = {"values": chart.axis, "reference": chart.reference_name}
    heads = ["", *(titles.get(name, name) for name in chart.columns), ""]
    rows = [_row(chart, i) for i in range(min(most, len(chart.names)))]
    return html_table(heads, rows, caption=chart.title, hidden=len(chart.names) - len(rows))


def html_table(
    heads: Sequence[object],
    rows: Sequence[Sequence[object]],
    *,
    foot: Sequence[object] = (),
    caption: str = "",
    hidden: int = 0,
) -> str:
    """A table for notebooks; all cells are escaped but those that are `Markup`, such as charts.

    Parameters
    ----------
    heads : sequence
    rows : sequence of sequences
        The first cell of a row is its name.
    foot : sequence
        A last row.
    caption : str
    hidden : int
        How many rows are not shown; said below the table.
    """
    head = Markup().join(Markup("<th>{}</th>").format(name) for name in heads)
    body = Markup().join(map(_html_row, rows))
    parts = [Markup("<caption>{}</caption>").format(caption)] if caption else []
    parts += [Markup("<thead><tr>{}</tr></thead><tbody>{}</tbody>").format(head, body)]
    parts += [Markup("<tfoot>{}</tfoot>").format(_html_row(foot))] if foot else []
    more = Markup("<p>and {} more</p>").format(hidden) if hidden > 0 else ""
    return str(Markup("<table>{}</table>{}").format(Markup().join(parts), more))


def _html_row(cells: Sequence[object]) -> Markup:
    first, *others = (f"{cell:.4f}" if isinstance(cell, float) else cell for cell in cells)
    columns = Markup().join(Markup("<td>{}</td>").format(cell) for cell in others)
    return Markup("<tr><th>{}</th>{}</tr>").format(first, columns)


def _row(chart: Dots, i: int) -> list[object]:
    return [chart.names[i], *(float(part[i]) for part in chart.columns.values()), _bar(chart, i)]


def _bar(chart: Dots, i: int) -> Markup:
    def x(value: float) -> float:
        share = min(max(value / chart.top, 0.0), 1.0)
        return round(_MARGIN + share * (_WIDTH - 2 * _MARGIN), 1)

    middle = _HEIGHT / 2
    parts = [
        f'<line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{middle}" y2="{middle}" '
        'stroke="currentColor" stroke-opacity="0.25"/>'
    ]
    if chart.lower is not None and chart.upper is not None:
        low, high = x(chart.lower[i]), x(chart.upper[i])
        parts.append(
            f'<rect x="{low}" y="{middle - 3}" width="{max(high - low, 1):.1f}" height="6" rx="3" '
            f'fill="{_TABLE_HUE}" fill-opacity="0.4" stroke="{_TABLE_HUE}"/>'
        )
    parts.append(f'<circle cx="{x(chart.values[i])}" cy="{middle}" r="4" fill="{_TABLE_HUE}"/>')
    if chart.reference is not None:
        at = x(chart.reference[i])
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="2" y2="{_HEIGHT - 2}" stroke="currentColor" '
            'stroke-width="2"/>'
        )
    return _picture(_HEIGHT, parts)


def small_chart(
    line: Line, *, top: float, reference: float | None = None, connected: bool = True
) -> Markup:
    """A line of values as a picture for a cell of a table, whose other cells have the figures.

    Parameters
    ----------
    line : Line
    top : float
        The largest value of all charts that are to be compared.
    reference : float, optional
        Drawn as a dashed line.
    connected : bool
        Whether to connect the values; dots otherwise.
    """
    places = np.linspace(_MARGIN, _WIDTH - _MARGIN, len(line.values))
    points = [_corner(x, y) for x, y in zip(places, _heights(line.values, top), strict=True)]
    parts = []
    if line.band is not None and connected:
        low, high = (_heights(part, top) for part in line.band)
        outline = zip(np.r_[places, places[::-1]], np.r_[low, high[::-1]], strict=True)
        corners = " ".join(_corner(x, y) for x, y in outline)
        parts.append(f'<polygon points="{corners}" fill="{_TABLE_HUE}" fill-opacity="0.3"/>')
    if reference is not None:
        y = float(_heights(np.array(reference), top))
        parts.append(
            f'<line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="currentColor" stroke-dasharray="3 3"/>'
        )
    if connected:
        corners = " ".join(points)
        parts.append(f'<polyline points="{corners}" fill="none" stroke="{_TABLE_HUE}"/>')
    for at in points:
        cx, cy = at.split(",")
        parts.append(f'<circle cx="{cx}" cy="{cy}" r="2" fill="{_TABLE_HUE}"/>')
    return _picture(2 * _HEIGHT, parts)


def _heights(values: Floats, top: float) -> Floats:
    """Distances from the upper end of a small chart."""
    share = np.clip(values / (top or 1.0), 0.0, 1.0)
    return np.asarray(_MARGIN + (1 - share) * 2 * (_HEIGHT - _MARGIN))


def _corner(x: float, y: float) -> str:
    return f"{x:.1f},{y:.1f}"


def _picture(height: int, parts: Sequence[str]) -> Markup:
    """Shapes as an element of a page; hidden from screen readers, which read the figures."""
    return Markup(
        f'<svg width="{_WIDTH}" height="{height}" aria-hidden="true">{"".join(parts)}</svg>'
    )
