from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from prevalens.records import Result
from prevalens.reports.charts import curves_of, error_against_shift
from prevalens.validation import InputError

SVG = "{http://www.w3.org/2000/svg}"


def test_a_line_goes_through_the_means(read_xml: Callable[[str], Any]) -> None:
    shift = np.repeat([0.0, 0.5, 1.0], 4)
    errors = np.tile([0.0, 0.2], 6) + shift
    root = read_xml(error_against_shift({"CC": (shift, errors)}, n_bins=3, band=None))
    (line,) = root.findall(f"{SVG}polyline")
    points = [tuple(map(float, p.split(","))) for p in line.attrib["points"].split()]
    heights = [y for _, y in points]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2)
    assert [x for x, _ in points] == pytest.approx([60, 263, 466], abs=0.1)


def test_bands_can_be_left_out() -> None:
    shift = np.linspace(0, 1, 50)
    curves = {"CC": (shift, shift), "PCC": (shift, shift / 2)}
    assert error_against_shift(curves).count("<polygon") == 2
    assert error_against_shift(curves, band=None).count("<polygon") == 0


def test_names_are_escaped(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(error_against_shift({"<b>": ([0, 1], [0, 1])}, title="a & b", y_name="<y>"))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"<b>", "a & b", "<y>"} <= set(texts)


def test_one_sample_is_enough(read_xml: Callable[[str], Any]) -> None:
    assert read_xml(error_against_shift({"CC": ([0.1], [0.0])})).tag == f"{SVG}svg"


def test_curves_of_results_join_seeds(make_result: Callable[..., Result]) -> None:
    given = [
        make_result("PCC", [0.2, 0.3], shift=[0, 1], seed=1),
        make_result("PCC", [0.1, 0.2], shift=[0, 2]),
        make_result("BC+BA", [0.5, 0.6], shift=[0, 1], variant="as printed"),
    ]
    curves = curves_of(given)
    assert list(curves) == ["BC+BA [as printed]", "PCC"]
    assert curves["PCC"][0].tolist() == [0, 2, 0, 1]
    assert curves["PCC"][1].tolist() == [0.1, 0.2, 0.2, 0.3]


def test_errors_are_checked() -> None:
    with pytest.raises(InputError, match="There are no curves to draw"):
        error_against_shift({})
    with pytest.raises(InputError, match="The error of CC has values that are not finite"):
        error_against_shift({"CC": ([0.1], [np.nan])})
