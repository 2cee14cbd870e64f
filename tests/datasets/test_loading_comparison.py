from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from prevalens.datasets.generated import synthetic
from prevalens.datasets.loading import DatasetComparison, compare, figures, printed_names, shown
from prevalens.datasets.registry import lookup
from prevalens.validation import InputError

ALL_CELLS = [
    "emotions",
    "scene",
    "yeast",
    "birds",
    "genbase",
    "medical",
    "enron",
    "bibtex",
    "corel5k",
    "delicious",
    "tmc2007_500_paper",
]


@pytest.mark.data
@pytest.mark.parametrize("name", ALL_CELLS)
def test_all_ten_cells_agree_with_the_paper(data_home: Path, name: str) -> None:
    found = compare(name, home=data_home, download=False)
    assert found.differences == ()
    assert found.agreeing == 10


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "differences"),
    [
        # The paper's figures come from the other release of this dataset.
        ("tmc2007_500", ("card", "dens", "div", "norm_div", "puniq", "pmax")),
        # 8,244 words by the recipe in the paper's text, 8,250 in its table.
        ("reuters21578", ("features",)),
        ("mediamill_discretized", ("train", "test", "card", "div", "norm_div")),
    ],
)
def test_known_differences_from_the_paper(
    data_home: Path, name: str, differences: tuple[str, ...]
) -> None:
    found = compare(name, home=data_home, download=False)
    assert found.differences == differences
    if name == "reuters21578":
        assert found.computed.features == 8244


def test_figures_of_a_dataset() -> None:
    data = synthetic(60, 40, n_features=7)
    found, expected = figures(data), data.statistics()
    assert (found.classes, found.train, found.test, found.features) == (12, 60, 40, 7)
    assert found.puniq == expected.puniq
    assert found.div == expected.diversity


def test_cells_are_compared_as_printed() -> None:
    printed = lookup("yeast").printed
    assert printed is not None
    near = replace(printed, card=printed.card + 4e-4)
    assert DatasetComparison("yeast", printed, near).differences == ()
    far = replace(printed, card=printed.card + 6e-4, div=199)
    assert DatasetComparison("yeast", printed, far).differences == ("card", "div")
    assert DatasetComparison("yeast", printed, far).agreeing == 8


def test_shown_as_in_the_paper() -> None:
    assert shown(27) == "27"
    assert shown(1 / 3) == "0.333"
    assert shown(4.5) == "4.500"


def test_every_paper_dataset_has_printed_figures() -> None:
    assert len(printed_names()) == 17
    with pytest.raises(InputError, match="prints no figures for 'ohsumed_f'"):
        compare("ohsumed_f")
