"""The paragraphs that explain a table of results."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from prevalens.metrics import MEASURES
from prevalens.records import Result
from prevalens.reports.layout import (
    explanations,
    measure_long,
    measure_short,
    measure_title,
)
from prevalens.reports.summarise import summarise
from prevalens.studies.moreo2023.printed import printed

Make = Callable[..., Result]


@pytest.mark.parametrize("metric", MEASURES)
def test_every_measure_is_explained(metric: str, make_result: Make) -> None:
    assert measure_long(metric) != metric
    first = explanations(summarise([make_result(metric=metric)], metric=metric))[0]
    assert first.startswith(measure_title(metric) + ": ")
    assert first.endswith("More is better." if metric == "concordance" else "Less is better.")


def test_an_unknown_measure_keeps_its_name(make_result: Make) -> None:
    assert measure_short("mine") == measure_long("mine") == "mine"
    first = explanations(summarise([make_result(metric="mine")], metric="mine"))[0]
    assert first == "Figures are mine. Less is better."


def test_the_number_of_samples_is_named(make_result: Make) -> None:
    single = summarise([make_result()])
    assert "test samples, 6 per dataset" in explanations(single)[1]
    two = summarise([make_result(), make_result(dataset="yeast", errors=[0, 1], shift=[0, 1])])
    assert "test samples, 2 to 6 per dataset" in explanations(two)[1]


def test_regimes_and_marks_are_explained(make_result: Make) -> None:
    _, _, regimes, marks, _ = explanations(summarise([make_result()]))
    assert "three equal parts" in regimes
    assert "Wilcoxon signed-rank" in marks
    assert ".001 < p < .05" in marks


def test_summaries_are_explained_as_far_as_there_are_any(make_result: Make) -> None:
    ours = explanations(summarise([make_result()]))[-1]
    assert ours.startswith("Average over samples")
    assert "; average over datasets counts every dataset once; average rank" in ours
    assert ours.endswith("1 for the best. They are over 1 dataset.")
    theirs = explanations(printed("mlc"))[-1]
    assert "average over datasets" not in theirs
    assert theirs.endswith("They are over 15 datasets.")
    assert len(explanations(summarise([make_result()], left_out=["scene"]))) == 4
