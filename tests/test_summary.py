"""Summaries: they add exactly, in any order, and estimate what the items do."""

from __future__ import annotations

import time
import zipfile
from functools import cache, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens import Quantifier, datasets, parse
from prevalens.batches import FINE, VALUES, Products
from prevalens.errors import FormatError, InputError
from prevalens.estimate import PrevalenceEstimate
from prevalens.model import Model
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.summary import Summary

DATA = datasets.synthetic(n_train=300, n_test=600, n_labels=4, random_state=0)
X, MONTHS = DATA.test.X, np.arange(600) // 150
NAMES = (
    "lr+cc",
    "lr+pcc",
    "lr+pacc",
    "lr+sld",
    "lr+rq(pcc,ridge)",
    "lr+mixture",
    "lr+hdy",
    "lpq(pacc)",
)


@cache
def fitted(name: str) -> Quantifier:
    return parse(name).fit(DATA.train.X, DATA.train.Y)


@cache
def by_month(name: str) -> PrevalenceEstimate:
    return fitted(name).quantify_many(X, MONTHS, interval=0.9)


def parts(name: str, cuts: list[int]) -> list[Summary]:
    edges = [0, *sorted(cuts), len(X)]
    return [
        fitted(name).summarise(X[start:stop], MONTHS[start:stop])
        for start, stop in pairwise(edges)
        if stop > start
    ]


def in_order(summary: Summary) -> Summary:
    return summary[np.argsort(summary.names)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(1, 599), max_size=5), data=st.data())
def test_any_partition_in_any_order_gives_the_same_answer(
    name: str, cuts: list[int], data: Any
) -> None:
    quantifier = fitted(name)
    shuffled = data.draw(st.permutations(parts(name, cuts)))
    whole = quantifier.estimate(in_order(sum(shuffled)), 0.9)
    expected = by_month(name)
    for attribute in ("point", "lower", "upper", "band_lower", "band_upper"):
        found, wanted = getattr(whole, attribute), getattr(expected, attribute)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_those_of_the_items(name: str) -> None:
    quantifier = fitted(name)
    samples, _ = Samples.by_group(MONTHS)
    from_items = quantifier.aggregate(quantifier.score(X), samples, 0.9)
    summed = quantifier.estimate(in_order(sum(parts(name, [100, 350]))), 0.9)
    tolerance = 5e-4 if quantifier.aggregator_.statistic is FINE else 1e-9
    np.testing.assert_allclose(summed.point, from_items.point, rtol=0, atol=tolerance)
    width, expected = (each.upper - each.lower for each in (summed, from_items))
    # Named methods measure the noise of items by drawing them again, so widths vary a little.
    np.testing.assert_allclose(width, expected, rtol=0.2, atol=0.02)


def test_addition_keeps_what_rounding_cuts_off() -> None:
    scores = Scores(np.full((3, 1), 0.1))
    one = Summary.of(scores, Samples.whole(3), ["a"], [VALUES], fingerprint="x")
    total = reduce(lambda a, b: a + b, [one] * 20_000)
    assert total.n_items == 60_000
    assert total.mean(VALUES)[0, 0] == pytest.approx(one.mean(VALUES)[0, 0], rel=1e-15)


def test_the_automatic_choice_is_exact() -> None:
    quantifier = Quantifier(time_budget=5).fit(DATA.train.X, DATA.train.Y)
    halves = quantifier.summarise(X[:250]) + quantifier.summarise(X[250:])
    expected = quantifier.quantify(X, interval=0.9)
    found = quantifier.estimate(halves, 0.9).sample(0)
    np.testing.assert_allclose(found.upper, expected.upper, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.p_value, expected.p_value)


def test_times_give_the_horizon() -> None:
    times = np.datetime64("2020-01-01") + np.arange(300)
    quantifier = parse("lr+pcc").fit(DATA.train.X, DATA.train.Y, time=times)
    later = np.datetime64("2021-01-01") + np.arange(600)
    summary = quantifier.summarise(X[:300], time=later[:300])
    summary += quantifier.summarise(X[300:], time=later[300:])
    expected = quantifier.quantify(X, interval=0.9, time=later)
    found = quantifier.estimate(summary, 0.9).sample(0)
    np.testing.assert_allclose(found.lower, expected.lower, atol=1e-6)
    unknown = quantifier.estimate(quantifier.summarise(X), 0.9).sample(0)
    assert np.any(np.abs(unknown.lower - expected.lower) > 1e-4)
    with pytest.raises(InputError, match="fitted with dates"):
        quantifier.summarise(X, time=np.arange(600))


def test_a_file_holds_all_of_it_and_its_size_is_that_of_the_sums(tmp_path: Path) -> None:
    summary = sum(parts("lr+mixture", [200]))
    summary.save(tmp_path / "a.summary")
    again = Summary.load(tmp_path / "a.summary")
    assert repr(again) == repr(summary) == "Summary(4 batches, 600 items)"
    estimates = [fitted("lr+mixture").estimate(each, 0.9) for each in (summary, again)]
    np.testing.assert_array_equal(estimates[0].upper, estimates[1].upper)
    larger = reduce(lambda a, b: a + b, [summary] * 1000)
    larger.save(tmp_path / "b.summary")
    sizes = [(tmp_path / name).stat().st_size for name in ("a.summary", "b.summary")]
    assert larger.n_items == 600_000
    assert sizes[1] < 2 * sizes[0]


def test_a_file_is_the_same_whenever_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    (summary,) = parts("lr+pcc", [])
    before = summary.to_bytes()
    later = time.localtime(time.time() + 3600)
    monkeypatch.setattr(time, "localtime", lambda *_: later)
    assert summary.to_bytes() == before


def test_small_batches_are_left_out() -> None:
    summary = fitted("lr+pcc").summarise(X[:100], ["a"] * 95 + ["b"] * 5)
    assert summary.without_small(10).names == ("a",)
    with pytest.raises(InputError, match="No batch has 200 items"):
        summary.without_small(200)


def test_summaries_of_other_models_are_refused() -> None:
    mine, theirs = parts("lr+pcc", [])[0], parts("lr+pacc", [])[0]
    with pytest.raises(InputError, match="different models"):
        mine + theirs
    with pytest.raises(InputError, match="another model"):
        fitted("lr+pacc").estimate(mine)
    with pytest.raises(TypeError):
        mine + 1


def test_methods_that_read_the_items_are_refused() -> None:
    quantifier = parse("lpq(sld)").fit(DATA.train.X, DATA.train.Y)
    with pytest.raises(InputError, match="reads the items themselves"):
        quantifier.summarise(X)
    assert quantifier.quantify(X).point.shape == (4,)


@pytest.mark.parametrize("damage", ["cut", "text", "format", "array", "missing"])
def test_damaged_files_are_refused_in_a_sentence(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.summary"
    parts("lr+pcc", [])[0].save(path)
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "text":
        path.write_text("label,prevalence\n")
    else:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        if damage == "format":
            members["header.json"] = members["header.json"].replace(b'"format": 1', b'"format": 9')
        elif damage == "array":
            members["1-total.npy"] = members["sizes.npy"]
        else:
            del members["1-rest.npy"]
        with zipfile.ZipFile(path, "w") as archive:
            for name, member in members.items():
                archive.writestr(name, member)
    with pytest.raises(
        FormatError, match="summaries of format 9" if damage == "format" else "is no summary"
    ):
        Summary.load(path)


def test_a_fingerprint_is_that_of_the_fit_also_after_reading_it_from_a_file(tmp_path: Path) -> None:
    again = parse("lr+mixture").fit(DATA.train.X, DATA.train.Y)
    assert again.fingerprint_ == fitted("lr+mixture").fingerprint_
    other = parse("lr+mixture").fit(DATA.train.X, 1 - DATA.train.Y)
    assert other.fingerprint_ != again.fingerprint_
    model = Model.fit(DATA.train.X, DATA.train.Y, method="lr+pcc")
    model.save(tmp_path / "m.prevalens")
    summary = Model.load(tmp_path / "m.prevalens").summarise(X)
    np.testing.assert_allclose(
        model.quantifier.estimate(summary).point[0], model.quantify(X, interval=None).point
    )


@pytest.mark.parametrize("most", [0, 100])
def test_noise_has_the_covariances_of_the_items(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(Products, "most", most)
    rng = np.random.default_rng(0)
    values = rng.random((500, 1)) * 0.5 + rng.random((500, 3)) * 0.5
    summary = Summary.of(
        Scores(values), Samples.whole(500), [""], [VALUES, Products(VALUES)], fingerprint=""
    )
    white = rng.standard_normal((3, 200_000))
    found = np.cov(
        Products.scaled(white, summary.mean(Products(VALUES))[0], summary.mean(VALUES)[0])
    )
    expected = np.cov(values.T, bias=True)
    np.testing.assert_allclose(found, expected if most else np.diag(np.diag(expected)), atol=2e-3)
