"""Methods that are tuned inside, by name."""

from __future__ import annotations

import pytest

from prevalens.experiments.specs import GRIDS, parse
from prevalens.selection.grid_search import GridSearch
from prevalens.studies.moreo2023.variants import RejoinedSearch, SeenItems, TwiceSLD
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
    assert isinstance(parse("twice(tuned(lr+sld))"), TwiceSLD)
    assert isinstance(parse("rejoined(stack(lr,lr,cv=in-order)+pcc)"), RejoinedSearch)
    assert isinstance(parse("seen(tuned(stack(lr,lr)+pcc,grid=stack-grid))"), SeenItems)


def test_parts_of_the_variants() -> None:
    inner = parse("tuned(lr+pcc,choose=binary-app,min_positives=5,order=2)")
    assert (inner.choose, inner.min_positives, inner.order) == ("binary-app", 5, 2)
    stacked = parse("rejoined(stack(lr,lr,cv=in-order)+pcc)").quantifier.classifier
    assert stacked.cv.n_folds == 5
    assert parse("lr+rq(pcc,svr,protocol=coarse-app)").aggregator.protocol.size == 100


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
