from __future__ import annotations

from collections.abc import Callable

import pytest

from prevalens.records import Result
from prevalens.reports.summarise import summarise
from prevalens.studies.moreo2023.comparison import Order, compare, orders
from prevalens.studies.moreo2023.printed import printed

PaperLike = Callable[..., list[Result]]
ALL = printed("pcc_general").datasets


def test_the_same_values_give_the_same_order(paper_like: PaperLike) -> None:
    comparison = compare({"ours": summarise(paper_like(datasets=ALL))}, printed("pcc_general"))
    ranked = orders(comparison)
    assert [(ranking.source, ranking.shift) for ranking in ranked] == [
        (source, shift) for shift in ("low", "mid", "high") for source in ("ours", "printed")
    ]
    for ours, theirs in zip(ranked[::2], ranked[1::2], strict=True):
        assert ours.n_datasets == theirs.n_datasets == 15
        assert ours.agrees_with(theirs)
        assert ours.order[0] == theirs.order[0]


def test_the_paper_s_ranks_are_near_the_ones_it_prints(paper_like: PaperLike) -> None:
    comparison = compare({"ours": summarise(paper_like(datasets=ALL))}, printed("pcc_general"))
    low = next(ranking for ranking in orders(comparison) if ranking.source == "printed")
    expected = {"BC+BA": 3.6, "MLC+BA": 1.7, "BC+MLA": 2.9, "MLC+MLA": 1.8}
    assert low.ranks == pytest.approx(expected, abs=0.06)
    assert low.order == ("MLC+BA", "MLC+MLA", "BC+MLA", "BC+BA")


def test_all_sources_are_ranked_on_the_same_datasets(paper_like: PaperLike) -> None:
    ours = {
        "one": summarise(paper_like(datasets=("emotions", "scene"))),
        "two": summarise(paper_like(datasets=("scene", "yeast"))),
    }
    ranked = orders(compare(ours, printed("pcc_general")))
    assert len(ranked) == 9
    assert {order.n_datasets for order in ranked} == {1}


def test_methods_that_a_source_has_not_run_are_not_ranked(paper_like: PaperLike) -> None:
    ours = {
        "one": summarise(paper_like()),
        "two": summarise(paper_like(methods=("BC+BA", "MLC+MLA"))),
    }
    for order in orders(compare(ours, printed("pcc_general"))):
        assert set(order.ranks) == {"BC+BA", "MLC+MLA"}


def test_nothing_complete_gives_no_orders(paper_like: PaperLike) -> None:
    ours = {
        "one": summarise(paper_like(datasets=("emotions",))),
        "two": summarise(paper_like(datasets=("scene",))),
    }
    assert orders(compare(ours, printed("pcc_general"))) == []


def test_ties_contradict_nothing() -> None:
    paper = Order("printed", "low", {"a": 1.0, "b": 2.0, "c": 2.0}, 3)
    same = Order("ours", "low", {"a": 1.0, "b": 2.5, "c": 1.5}, 3)
    other = Order("ours", "low", {"a": 3.0, "b": 1.0, "c": 2.0}, 3)
    assert same.agrees_with(paper)
    assert not other.agrees_with(paper)
    assert other.order == ("b", "c", "a")
