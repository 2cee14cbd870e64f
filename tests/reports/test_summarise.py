from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

from prevalens.records import Result
from prevalens.reports.summarise import summarise
from prevalens.reports.table import ResultTable, TableRow, mark
from prevalens.validation import InputError

Make = Callable[..., Result]


def values(row: TableRow | None) -> list[float | None]:
    assert row is not None
    return [None if cell is None else cell.value for cell in row.cells]


@pytest.fixture
def by_hand(make_result: Make) -> ResultTable:
    """Two datasets: six samples on scene, one of them low; on yeast four, two of them low."""
    yeast: dict[str, Any] = {"dataset": "yeast", "shift": [0, 0.01, 0.5, 1.0]}
    return summarise(
        [
            make_result("CC", [0.1, 0.3, 0.2, 0.2, 0.5, 0.7]),
            make_result("PCC", [0.1, 0.1, 0.3, 0.5, 0.6, 0.6]),
            make_result("CC", [0.4, 0.6, 0.9, 0.8], **yeast),
            make_result("PCC", [0.2, 0.2, 0.3, 0.9], **yeast),
        ]
    )


def test_means_by_dataset_and_regime(by_hand: ResultTable) -> None:
    assert by_hand.columns == ("CC", "PCC")
    assert [(row.dataset, row.shift) for row in by_hand.rows] == [
        (dataset, shift) for dataset in ("scene", "yeast") for shift in ("low", "mid", "high")
    ]
    computed = [values(row) for row in by_hand.rows]
    # Of shifts in [0, 0.3], 0.1 and 0.2 begin the second and third interval.
    scene = [[0.1, 0.1], [0.7 / 3, 0.3], [0.6, 0.6]]
    yeast = [[0.5, 0.2], [0.9, 0.3], [0.8, 0.9]]
    assert np.allclose(np.array(computed, dtype=float), scene + yeast)


def test_numbers_of_samples(by_hand: ResultTable) -> None:
    counts = [row.cells[0].n_samples for row in by_hand.rows if row.cells[0]]
    assert counts == [1, 3, 2, 2, 1, 1]


def test_the_pooled_average_is_over_samples(by_hand: ResultTable) -> None:
    assert values(by_hand.summary("pooled", "low")) == pytest.approx([1.1 / 3, 0.5 / 3])
    assert values(by_hand.summary("pooled", "mid")) == pytest.approx([1.6 / 4, 1.2 / 4])


def test_the_mean_of_rows_is_over_datasets(by_hand: ResultTable) -> None:
    assert values(by_hand.summary("mean", "low")) == pytest.approx([0.3, 0.15])
    assert values(by_hand.summary("mean", "high")) == pytest.approx([0.7, 0.75])


def test_mean_ranks(by_hand: ResultTable) -> None:
    # Low: a tie on scene, PCC better on yeast.
    assert values(by_hand.summary("rank", "low")) == [1.75, 1.25]
    assert values(by_hand.summary("rank", "mid")) == [1.5, 1.5]
    row = by_hand.summary("rank", "low")
    assert row is not None
    assert [cell.best for cell in row.cells if cell] == [False, True]


def test_equal_means_are_all_best(by_hand: ResultTable) -> None:
    row = by_hand.row("scene", "low")
    assert row is not None
    assert [cell.best for cell in row.cells if cell] == [True, True]


def test_empty_regimes_have_no_value(make_result: Make) -> None:
    table = summarise([make_result(errors=[0.1, 0.2], shift=[0, 1])])
    assert values(table.row("scene", "mid")) == [None]
    assert table.summary("pooled", "mid") is None


def test_all_samples_are_a_regime_too(make_result: Make) -> None:
    table = summarise([make_result(errors=[0, 1, 2, 3, 4, 5])], regimes=["all", "low"])
    assert table.regimes == ("all", "low")
    assert values(table.row("scene", "all")) == [2.5]
    with pytest.raises(InputError, match="regimes must be one of 'low', 'mid', 'high', 'all'"):
        summarise([make_result()], regimes=["lower"])


def test_marks_are_those_of_a_test_on_paired_samples(make_result: Make) -> None:
    rng = np.random.default_rng(0)
    shift = rng.random(600)
    best = rng.random(600) * 0.1
    others = {f"m{i}": best + 0.0002 * i + rng.normal(0, 0.01, 600) for i in range(15)}
    given_results = [make_result("best", best - 0.0005, shift=shift)]
    given_results += [make_result(name, errors, shift=shift) for name, errors in others.items()]
    table = summarise(given_results, regimes=["all"])
    reference = table.cell("scene", "all", "best")
    assert reference is not None
    assert (reference.best, reference.mark, reference.p_value) == (True, "", None)
    marks = set()
    for name, errors in others.items():
        cell = table.cell("scene", "all", name)
        assert cell is not None
        assert cell.p_value == pytest.approx(wilcoxon(best - 0.0005 - errors).pvalue)
        assert cell.mark == mark(cell.p_value)
        marks.add(cell.mark)
    assert marks == {"", "dagger", "ddagger"}


def test_other_samples_are_not_tested_and_a_note_says_so(make_result: Make) -> None:
    table = summarise(
        [make_result("CC", [0.1] * 6), make_result("PCC", [0.2, 0.2], shift=[0.05, 0.1])]
    )
    cell = table.cell("scene", "low", "PCC")
    assert cell is not None
    assert (cell.mark, cell.p_value) == ("untested", None)
    assert table.notes[0].startswith("2 of the results could not be tested against the best")


def test_seeds_are_averaged_and_their_spread_kept(make_result: Make) -> None:
    table = summarise(
        [make_result(errors=[0.1] * 6), make_result(errors=[0.3] * 6, seed=1)], regimes=["all"]
    )
    cell = table.cell("scene", "all", "PCC")
    assert cell is not None
    assert cell.by_seed == pytest.approx((0.1, 0.3))
    assert cell.value == pytest.approx(0.2)
    assert cell.spread == pytest.approx(0.02**0.5)
    assert cell.n_samples == 12


def test_more_seeds_give_a_dataset_no_more_weight(make_result: Make) -> None:
    few = [make_result(errors=[0.1] * 6), make_result(errors=[0.5] * 6, dataset="yeast")]
    more = [*few, make_result(errors=[0.1] * 6, seed=1), make_result(errors=[0.1] * 6, seed=2)]
    for given_results in (few, more):
        table = summarise(given_results, regimes=["all"])
        assert values(table.summary("pooled", "all")) == pytest.approx([0.3])


def test_averages_are_over_datasets_that_every_method_has(make_result: Make) -> None:
    table = summarise(
        [
            make_result("CC", [0.1] * 6),
            make_result("PCC", [0.2] * 6),
            make_result("CC", [0.9] * 6, dataset="yeast"),
        ]
    )
    assert values(table.row("yeast", "low")) == pytest.approx([0.9, None])
    assert values(table.summary("mean", "low")) == pytest.approx([0.1, 0.2])
    assert table.notes == ("Not in averages and ranks, as not every method has a result: Yeast.",)


def test_datasets_can_be_left_out_of_averages(make_result: Make) -> None:
    given_results = [make_result(errors=[0.1] * 6), make_result(errors=[0.9] * 6, dataset="yeast")]
    table = summarise(given_results, left_out=["yeast"])
    assert values(table.summary("pooled", "low")) == pytest.approx([0.1])
    assert table.notes == ("Shown, but left out of averages and ranks: Yeast.",)


def test_more_can_be_better(make_result: Make) -> None:
    table = summarise(
        [
            make_result("CC", [0.9] * 6, metric="concordance"),
            make_result("PCC", [0.5] * 6, metric="concordance"),
        ],
        metric="concordance",
    )
    for row in (table.row("scene", "low"), table.summary("rank", "low")):
        assert row is not None
        assert [cell.best for cell in row.cells if cell] == [True, False]
    assert values(table.summary("rank", "low")) == [1, 2]


def test_rows_and_columns_can_be_chosen(make_result: Make) -> None:
    given_results = [
        make_result(method, dataset=name) for method in ("A", "B") for name in ("scene", "yeast")
    ]
    table = summarise(given_results, methods=["B"], datasets=["yeast"])
    assert (table.columns, table.datasets) == (("B",), ("yeast",))
    with pytest.raises(InputError, match="no dataset 'birds' in the results"):
        summarise(given_results, datasets=["birds"])


def test_the_order_of_the_results_does_not_matter(paper_like: Callable[..., list[Result]]) -> None:
    given_results = paper_like(seeds=(0, 1))
    table = summarise(given_results)
    random.Random(0).shuffle(given_results)
    assert summarise(given_results) == table


# Exact p-values of a dozen samples with ties take their time.
@settings(max_examples=12)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(3, 30), st.integers(0, 2**32 - 1))
def test_identities(n_methods: int, n_datasets: int, n_samples: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_results = []
    for d in range(n_datasets):
        shift = rng.random(n_samples)
        given_results += [
            Result(f"d{d}", "p", f"m{m}", "", 0, shift, {"ae": rng.integers(0, 9, n_samples) / 9})
            for m in range(n_methods)
        ]
    table = summarise(given_results, regimes=["all"])
    matrix = np.array([values(row) for row in table.rows], dtype=float)
    errors = [result.errors["ae"] for result in given_results]
    for m in range(n_methods):
        own = np.concatenate(errors[m::n_methods])
        pooled = table.summary("pooled", "all")
        assert values(pooled)[m] == pytest.approx(own.mean())
    for row, means in zip(table.rows, matrix, strict=True):
        assert [cell.best for cell in row.cells if cell] == (means == means.min()).tolist()
    assert values(table.summary("mean", "all")) == pytest.approx(matrix.mean(axis=0).tolist())
    computed = values(table.summary("rank", "all"))
    assert computed == pytest.approx(rankdata(matrix, axis=1).mean(axis=0).tolist())
    assert sum(v for v in computed if v) == pytest.approx(n_methods * (n_methods + 1) / 2)
