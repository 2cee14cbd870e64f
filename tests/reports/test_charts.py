from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from prevalens.reports.charts import bias, diagonal
from prevalens.validation import InputError

SVG = "{http://www.w3.org/2000/svg}"
TRUE = np.linspace(0, 1, 200).reshape(100, 2)


def points(line: Any) -> list[tuple[float, float]]:
    return [tuple(map(float, p.split(","))) for p in line.attrib["points"].split()]  # type: ignore[misc]


def test_perfect_estimates_lie_on_the_diagonal(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(diagonal({"perfect": (TRUE, TRUE)}))
    perfect = next(line for line in root.findall(f"{SVG}line") if line.get("stroke-dasharray"))
    x1, y1, x2, y2 = (float(perfect.attrib[key]) for key in ("x1", "y1", "x2", "y2"))
    (line,) = root.findall(f"{SVG}polyline")
    for x, y in points(line):
        assert y == pytest.approx(y1 + (x - x1) / (x2 - x1) * (y2 - y1), abs=0.2)


def test_several_methods_have_lines_and_bands(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(diagonal({"a": (TRUE, TRUE), "b": (TRUE, TRUE**2)}))
    assert len(root.findall(f"{SVG}polyline")) == len(root.findall(f"{SVG}polygon")) == 2


def test_boxes_show_the_bias_of_each_method_in_each_interval(
    read_xml: Callable[[str], Any],
) -> None:
    shift = np.linspace(0, 1, 100)
    inner = 0.25 + TRUE / 2
    estimates = {"low": (inner, inner - 0.1), "high": (inner, inner + 0.2)}
    root = read_xml(bias(estimates, shift, n_bins=4))
    captions = [title.text for title in root.iter(f"{SVG}title")][1:]
    assert len(captions) == 8
    assert captions[:4] == ["low: median -0.100, quartiles -0.100 and -0.100"] * 4
    assert captions[4:] == ["high: median +0.200, quartiles +0.200 and +0.200"] * 4


def test_boxes_do_not_overlap(read_xml: Callable[[str], Any]) -> None:
    shift = np.linspace(0, 1, 100)
    root = read_xml(bias(dict.fromkeys("abc", (TRUE, TRUE)), shift, n_bins=3))
    spans = sorted(
        (float(box.attrib["x"]), float(box.attrib["x"]) + float(box.attrib["width"]))
        for box in root.iter(f"{SVG}rect")
    )
    assert len(spans) == 9
    assert all(end < start for (_, end), (start, _) in pairwise(spans))


def test_empty_intervals_have_no_box(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(bias({"a": (TRUE[:2], TRUE[:2])}, [0.0, 1.0], n_bins=5))
    assert len(list(root.iter(f"{SVG}rect"))) == 2


@pytest.mark.parametrize("chart", [diagonal, lambda estimates: bias(estimates, np.zeros(100))])
def test_estimates_are_checked(chart: Callable[[Any], str]) -> None:
    with pytest.raises(InputError, match="There are no estimates"):
        chart({})
    with pytest.raises(InputError, match=r"The truth of a has shape \(100, 2\), its estimate"):
        chart({"a": (TRUE, TRUE[:, :1])})
    with pytest.raises(InputError, match="The estimate of a must lie between 0 and 1"):
        chart({"a": (TRUE, TRUE + 1)})


def test_there_is_a_shift_per_sample() -> None:
    with pytest.raises(InputError, match="There are 3 shifts but 100 samples of a"):
        bias({"a": (TRUE, TRUE)}, [0, 1, 2])
