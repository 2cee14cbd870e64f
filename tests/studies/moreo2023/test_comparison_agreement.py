from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from prevalens.records import Result
from prevalens.reports.summarise import summarise
from prevalens.studies.moreo2023.comparison import Comparison, agreement, compare
from prevalens.studies.moreo2023.printed import printed
from prevalens.validation import InputError

PaperLike = Callable[..., list[Result]]


@pytest.fixture
def comparison(paper_like: PaperLike) -> Comparison:
    """Emotions 10 % off, scene 20 % off, genbase 20 % off but by less than .0005."""
    near = paper_like(factor=1.1, datasets=("emotions",))
    far = paper_like(factor=1.2, datasets=("scene", "genbase"))
    return compare({"ours": summarise(near + far)}, printed("pcc_general"))


def test_cells_are_counted(comparison: Comparison) -> None:
    counts = agreement(comparison, "ours", within=0.15)
    assert (counts.n_agreeing, counts.n_cells) == (24, 36)
    assert counts.share == pytest.approx(2 / 3)
    assert agreement(comparison, "ours", within=0.21).share == 1.0


def test_cells_of_a_dataset_or_method(comparison: Comparison) -> None:
    assert agreement(comparison, "ours", dataset="scene").share == 0
    assert agreement(comparison, "ours", dataset="emotions").n_cells == 12
    assert agreement(comparison, "ours", method="BC+BA").n_cells == 9
    assert math.isnan(agreement(comparison, "ours", dataset="yeast").share)


def test_agreement_grows_with_the_threshold(comparison: Comparison) -> None:
    shares = [agreement(comparison, "ours", within=w / 20).share for w in range(10)]
    assert shares == sorted(shares)


def test_other_data_does_not_count(paper_like: PaperLike) -> None:
    results = paper_like(datasets=("tmc2007_500_paper",))
    own = [Result(**{**vars(result), "dataset": "tmc2007_500"}) for result in results]
    comparison = compare({"ours": summarise(results + own)}, printed("pcc_general"))
    assert agreement(comparison, "ours").n_cells == 12


def test_an_unknown_source_is_refused(comparison: Comparison) -> None:
    with pytest.raises(InputError, match="source must be one of 'ours'"):
        agreement(comparison, "theirs")
