from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from prevalens.reports.charts import prevalence_histogram, shift_distribution
from prevalens.validation import InputError

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_shares_of_labels(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(prevalence_histogram([0.0, 0.1, 0.2, 0.9], edges=[0, 0.2, 0.5, 1]))
    bars = root.findall(f"{SVG}rect")
    captions = [bar.find(f"{SVG}title").text for bar in bars]
    assert captions == ["0 to 0.2: 50.0%", "0.2 to 0.5: 25.0%", "0.5 to 1: 25.0%"]
    heights = [float(bar.attrib["height"]) for bar in bars]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.2)
    assert heights[1] == heights[2]


def test_a_label_that_always_occurs_has_a_place(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(prevalence_histogram([1.0]))
    last = root.findall(f"{SVG}rect")[-1]
    assert last.find(f"{SVG}title").text == "0.5 to 1: 100.0%"


def test_prevalences_are_checked() -> None:
    with pytest.raises(InputError, match="prevalences must lie between 0 and 1"):
        prevalence_histogram([1.5])


def test_distributions_lie_over_each_other(read_xml: Callable[[str], Any]) -> None:
    rng = np.random.default_rng(0)
    shifts = {"ML-APP": rng.random(500) * 0.3, "uniform & plain": rng.random(100) * 0.05}
    root = read_xml(shift_distribution(shifts, title="Scene", n_bins=10))
    assert len(root.findall(f"{SVG}polygon")) == 2
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"Scene", "ML-APP", "uniform & plain", "low", "mid", "high"} <= set(texts)


def test_regimes_are_thirds_of_the_first_range(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(shift_distribution({"a": [0.0, 0.3], "b": [0.0, 0.9]}))
    group = next(g for g in root.findall(f"{SVG}g") if g.attrib.get("stroke-dasharray"))
    first, second = (float(line.attrib["x1"]) for line in group)
    # 0.1 and 0.2 on an axis from 0 to 0.9, from 60 to 466.
    assert (first, second) == pytest.approx((60 + 406 / 9, 60 + 2 * 406 / 9), abs=0.1)


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputError, match="There are no shifts to draw"):
        shift_distribution({})
    with pytest.raises(InputError, match="The shift of a is empty"):
        shift_distribution({"a": []})
