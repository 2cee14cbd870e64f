"""Charts in altair; the values are handed over as records, so that no frame library is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prevalens.charts.shapes import Dots, Lines

__all__ = ["altair_chart"]

_HUE = "#0067a5"


def altair_chart(altair: Any, chart: Dots | Lines) -> Any:
    """The chart, layered: intervals below, values above."""
    layers = _dots(altair, chart) if isinstance(chart, Dots) else _lines(altair, chart)
    drawn = altair.layer(*layers)
    return drawn.properties(title=chart.title) if chart.title else drawn


def _data(altair: Any, records: Sequence[dict[str, Any]]) -> Any:
    return altair.Data(values=list(records))


def _dots(altair: Any, chart: Dots) -> list[Any]:
    columns = {"value": chart.values, "lower": chart.lower, "upper": chart.upper}
    columns["reference"] = chart.reference
    given = {name: part for name, part in columns.items() if part is not None}
    records = [
        {"name": name, **{key: float(part[i]) for key, part in given.items()}}
        for i, name in enumerate(chart.names)
    ]
    base = altair.Chart(_data(altair, records)).encode(
        y=altair.Y("name:N", sort=None, title=None),
        tooltip=["name:N", *(f"{key}:Q" for key in given)],
    )
    layers = []
    if "lower" in given and "upper" in given:
        bar = base.mark_bar(height=6, cornerRadius=3, opacity=0.35, color=_HUE)
        layers.append(bar.encode(x=altair.X("lower:Q", title=chart.axis), x2="upper:Q"))
    layers.append(
        base.mark_point(filled=True, size=60, color=_HUE, opacity=1).encode(
            x=altair.X("value:Q", title=chart.axis)
        )
    )
    if "reference" in given:
        layers.append(base.mark_tick(thickness=2, color="black").encode(x="reference:Q"))
    return layers


def _lines(altair: Any, chart: Lines) -> list[Any]:
    records = []
    for line in chart.lines:
        for i, place in enumerate(chart.places):
            record = {"line": line.name, "value": float(line.values[i])}
            record["place"] = float(place) if chart.numeric else str(place)
            if line.lower is not None and line.upper is not None:
                record |= {"lower": float(line.lower[i]), "upper": float(line.upper[i])}
            records.append(record)
    kind = "Q" if chart.numeric else "N"
    base = altair.Chart(_data(altair, records)).encode(
        x=altair.X(f"place:{kind}", sort=None, title=chart.x_axis or None),
        color=altair.Color("line:N", title=None, sort=None),
    )
    layers = []
    if any(line.lower is not None for line in chart.lines):
        band = base.mark_area(opacity=0.15).encode(y="lower:Q", y2="upper:Q")
        layers.append(band)
    value = altair.Y("value:Q", title=chart.y_axis or None)
    layers.append(base.mark_line(point=True).encode(y=value, tooltip=["line:N", "value:Q"]))
    return layers
