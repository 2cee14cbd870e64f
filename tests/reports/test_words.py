from __future__ import annotations

from collections.abc import Callable

import pytest

from prevalens.metrics import MEASURES
from prevalens.records import Result
from prevalens.reports import layout
from prevalens.reports.summarise import summarise
from prevalens.studies.moreo2023.printed import printed


@pytest.mark.parametrize("metric", MEASURES)
def test_every_measure_is_explained(metric: str) -> None:
    assert layout.measure_long(metric) != metric
    sentence = layout.measure_words(metric)
    assert sentence.startswith(layout.measure_title(metric) + ": ")
    assert sentence.endswith("is better.")


def test_an_unknown_measure_keeps_its_name() -> None:
    assert layout.measure_short("mine") == layout.measure_long("mine") == "mine"
    assert layout.measure_words("mine") == "Figures are mine. Less is better."


def test_the_number_of_samples_is_named(make_result: Callable[..., Result]) -> None:
    one = summarise([make_result()])
    assert "test samples, 6 per dataset" in layout.about_samples(one)
    two = summarise([make_result(), make_result(dataset="yeast", errors=[0, 1], shift=[0, 1])])
    assert "test samples, 2 to 6 per dataset" in layout.about_samples(two)


def test_summaries_are_explained_as_far_as_there_are_any(
    make_result: Callable[..., Result],
) -> None:
    ours = layout.about_summaries(summarise([make_result()]))
    assert "Average over samples" in ours
    assert "average over datasets" in ours
    assert ours.endswith("They are over 1 dataset.")
    theirs = layout.about_summaries(printed("mlc"))
    assert "average over datasets" not in theirs
    assert theirs.endswith("They are over 15 datasets.")
    nothing = summarise([make_result()], left_out=["scene"])
    assert layout.about_summaries(nothing) == ""


def test_marks_and_regimes_are_explained() -> None:
    assert "Wilcoxon signed-rank" in layout.about_marks()
    assert "three equal parts" in layout.about_shift()
