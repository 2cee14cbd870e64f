"""The words of the reproduction speak of cells that the paper prints."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.datasets import load
from prevalens.splits import stratified_holdout
from prevalens.studies.moreo2023.plan import CoarseAPP
from prevalens.studies.moreo2023.printed import printed
from prevalens.studies.moreo2023.reproduction import _FIGURE, OBSERVATIONS, REASONS
from prevalens.types import LabelMatrix


@pytest.mark.parametrize("text", OBSERVATIONS)
def test_every_brace_is_a_figure_of_a_printed_table(text: str) -> None:
    figures = list(_FIGURE.finditer(text))
    assert len(figures) == text.count("{") == text.count("}")
    for figure in figures:
        table = printed(f"{figure['base'] or 'pcc'}_general")
        assert figure["method"] in {"BC+BA", "MLC+BA", "BC+MLA", "MLC+MLA"}
        assert figure["shift"] in {"low", "mid", "high"}
        assert figure["source"] in {"paper", "as printed", "as described", "with the guard"}
        assert figure["dataset"] in table.datasets


def nested_parts(name: str) -> tuple[LabelMatrix, LabelMatrix]:
    """The two parts of the 60 % of the training items that a search as printed divides again."""
    Y = np.asarray(load(name).train.Y)
    rest, _ = stratified_holdout(Y, 0.4, order=2, seed=0)
    first, second = stratified_holdout(Y[rest], 0.4, order=2, seed=0)
    return Y[rest][first], Y[rest][second]


@pytest.mark.data
@pytest.mark.parametrize(("name", "n_rare"), [("medical", 12), ("genbase", 7)])
def test_labels_that_keep_their_settings_are_counted(name: str, n_rare: int) -> None:
    text = "12 and 7 of their 18 labels have fewer than five positives"
    assert any(text in observation for observation in OBSERVATIONS)
    parts = nested_parts(name)
    assert parts[0].shape[1] == 18
    assert sum(min(counts) < 5 for counts in zip(*(Y.sum(axis=0) for Y in parts), strict=True)) == (
        n_rare
    )


@pytest.mark.data
def test_what_is_said_of_birds_enron_and_scene_is_in_their_data() -> None:
    assert "196 samples, drawn from 77 items" in REASONS["birds", "MLC+MLA"]
    _, items = nested_parts("birds")
    assert (len(items), len(CoarseAPP().draw(items, 0))) == (77, 196)
    assert any("features are not scaled and reach 90,000" in text for text in OBSERVATIONS)
    assert 90_000 < np.abs(load("birds").train.X).max() < 91_000
    assert REASONS["enron", "BC+BA"].startswith("28 of 45 labels have at most 20 positives")
    Y = np.asarray(load("enron").train.Y)
    assert (np.round(0.4 * Y.sum(axis=0)) <= 20).sum() == 28
    # In Scene, the first of five folds of neighbouring rows holds all positives of a label.
    Y = np.asarray(load("scene").train.Y)
    assert (Y[: len(Y) // 5 + 1].sum(axis=0) == Y.sum(axis=0)).any()
