"""Methods that are tuned inside, by name."""

from __future__ import annotations

import pytest

from prevalens.catalogue import CatalogueEntry
from prevalens.experiments.specs import GRIDS, parse, tuned
from prevalens.selection.grid_search import GridSearch
from prevalens.validation import InputError


def test_a_search_inside_a_method() -> None:
    outer = parse("rq(tuned(lr+pcc,grid=lr-grid,choose=per-label),svr,scheme=holdout)")
    inner = outer.aggregator.base
    assert isinstance(inner, GridSearch)
    assert inner.grid == GRIDS["lr-grid"]
    assert inner.choose == "per-label"
    assert inner.quantifier.name == "lr+pcc"
    assert outer.aggregator.scheme.code == "holdout"


def test_a_whole_method_stands_alone() -> None:
    assert isinstance(parse("tuned(lr+pcc)"), GridSearch)
    inner = parse("tuned(lr+pcc,choose=binary-app,min_positives=5,order=2)")
    assert (inner.choose, inner.min_positives, inner.order) == ("binary-app", 5, 2)


def test_a_plan_s_own_part() -> None:
    parts = {"alone": CatalogueEntry("alone", "quantifier", tuned)}
    assert isinstance(parse("alone(lr+pcc)", parts), GridSearch)
    with pytest.raises(InputError, match="no aggregator called 'alone'"):
        parse("alone(lr+pcc)")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tuned(lr+pcc,grid=nosuch)", "grid must be one of 'lr-grid'"),
        ("lr+tuned(lr+pcc)", "'tuned' is a quantifier, but an aggregator belongs here"),
        ("tuned(lr+pcc,grids=1)", "tuned has no parameter 'grids'"),
    ],
)
def test_bad_names(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse(text)
