"""Charts in matplotlib and altair show the values they were given."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from prevalens.charts import Dots, Line, Lines, draw
from prevalens.errors import InputError

DOTS = Dots(
    ["spam", "ham"],
    np.array([0.2, 0.5]),
    np.array([0.1, 0.4]),
    np.array([0.3, 0.7]),
    np.array([0.25, 0.25]),
    title="One batch",
)
LINES = Lines(
    ["May", "June", "July"],
    [
        Line("spam", np.array([0.1, 0.2, 0.3]), np.zeros(3), np.full(3, 0.4)),
        Line("ham", np.array([0.3, 0.2, 0.1])),
    ],
    x_axis="month",
    y_axis="prevalence",
)
NUMBERED = Lines([0.1, 0.2], [Line("error", np.array([0.01, 0.02]))])


@pytest.fixture(autouse=True)
def _no_windows() -> None:
    pytest.importorskip("matplotlib").use("Agg")


def test_dots_in_matplotlib() -> None:
    ax = draw(DOTS)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), DOTS.values)
    np.testing.assert_allclose(ax.lines[1].get_xdata(), DOTS.reference)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["spam", "ham"]
    ends = np.array([path.vertices[:, 0] for path in ax.collections[0].get_paths()])
    np.testing.assert_allclose(ends, np.column_stack([DOTS.lower, DOTS.upper]))
    assert ax.get_title() == "One batch"
    ax.figure.canvas.draw()


def test_lines_in_matplotlib_on_given_axes() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    _, axes = pyplot.subplots()
    assert draw(LINES, ax=axes) is axes
    assert [line.get_label() for line in axes.lines] == ["spam", "ham"]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [0.3, 0.2, 0.1])
    assert len(axes.collections) == 1
    np.testing.assert_allclose(draw(NUMBERED).lines[0].get_xdata(), [0.1, 0.2])
    pyplot.close("all")


def test_dots_in_altair() -> None:
    pytest.importorskip("altair")
    spec = draw(DOTS, "altair").to_dict()
    kinds = [layer["mark"]["type"] for layer in spec["layer"]]
    assert kinds == ["bar", "point", "tick"]
    assert spec["title"] == "One batch"
    records = (
        spec["layer"][0]["data"]["values"] if "data" in spec["layer"][0] else spec["data"]["values"]
    )
    assert records[0] == {
        "name": "spam",
        "value": 0.2,
        "lower": 0.1,
        "upper": 0.3,
        "reference": 0.25,
    }


def test_lines_in_altair() -> None:
    pytest.importorskip("altair")
    spec = draw(LINES, "altair").to_dict()
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["area", "line"]
    numbered = draw(NUMBERED, "altair").to_dict()
    assert numbered["layer"][0]["encoding"]["x"]["type"] == "quantitative"


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(InputError, match=r'plot needs altair: pip install "prevalens\[plot\]"'):
        draw(DOTS, "altair")


def test_other_backends_and_strange_axes_are_refused() -> None:
    with pytest.raises(InputError, match="backend must be one of 'matplotlib', 'altair'"):
        draw(DOTS, "plotly")
    with pytest.raises(InputError, match="An ax is for matplotlib"):
        draw(DOTS, "altair", ax=object())
