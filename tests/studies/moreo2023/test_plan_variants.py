"""The paper's code where it differs from its text: each variant does what it is named for."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens import Quantifier, Samples
from prevalens.aggregators import PCC, SLD
from prevalens.classifiers import PerLabel, Stacked
from prevalens.datasets import synthetic
from prevalens.experiments.specs import parse
from prevalens.protocols import MLAPP, Natural
from prevalens.splits import stratified_holdout
from prevalens.studies.moreo2023.plan import PARTS, InOrder, RejoinedSearch, SeenItems, TwiceSLD

DATA = synthetic(n_train=400, n_test=300, n_labels=4, n_features=8, random_state=3)
X, Y = DATA.train.X, DATA.train.Y


def slow_em(posteriors: np.ndarray, prior: float, rounds: int = 5000) -> float:
    share = prior
    for _ in range(rounds):
        positive = posteriors * share / prior
        negative = (1 - posteriors) * (1 - share) / (1 - prior)
        share = float(np.mean(positive / (positive + negative)))
    return share


def test_twice_is_em_on_what_em_has_corrected() -> None:
    quantifier = Quantifier(PerLabel(), SLD())
    twice = TwiceSLD(quantifier).fit(X, Y)
    samples = Natural(size=60, n_samples=3).draw(DATA.test.Y, 0)
    estimated = twice.quantify_many(DATA.test.X, samples)
    posteriors = twice.quantifier_.score(DATA.test.X).values
    for label in range(4):
        prior = DATA.train.prevalence[label]
        pool = slow_em(posteriors[:, label], prior)
        positive = posteriors[:, label] * pool / prior
        negative = (1 - posteriors[:, label]) * (1 - pool) / (1 - prior)
        corrected = positive / (positive + negative)
        for number, rows in enumerate(samples):
            expected = slow_em(corrected[rows], prior)
            assert estimated[number, label] == pytest.approx(expected, abs=0.03)
    assert twice.name == "twice(lr+sld)"
    assert twice.group == "BC+BA"


def test_twice_differs_from_once_where_the_mix_has_moved() -> None:
    once = Quantifier(PerLabel(), SLD()).fit(X, Y)
    twice = TwiceSLD(Quantifier(PerLabel(), SLD())).fit(X, Y)
    samples = MLAPP(size=50, grid=5).draw(DATA.test.Y, 0)
    gap = np.abs(
        once.quantify_many(DATA.test.X, samples)
        - np.asarray(twice.quantify_many(DATA.test.X, samples))
    )
    assert gap.max() > 0.02


def test_seen_learns_on_items_the_quantifier_has_seen() -> None:
    seen = SeenItems(Quantifier(PerLabel(), PCC())).fit(X, Y)
    everything = Quantifier(PerLabel(), PCC()).fit(X, Y)
    whole = Samples.whole(DATA.test.n_items)
    base = everything.quantify_many(DATA.test.X, whole)
    expected = np.clip(seen.regressor_.predict(np.asarray(base)), 0, 1)
    np.testing.assert_allclose(seen.quantify_many(DATA.test.X, whole), expected, atol=1e-6)
    assert seen.regressor_.C in seen.Cs
    assert seen.name == "seen(lr+pcc,svr)"
    assert seen.group == "BC+MLA"
    np.testing.assert_allclose(seen.prevalence_, DATA.train.prevalence)


def test_rejoined_fits_the_winner_on_the_parts_in_turn() -> None:
    quantifier = Quantifier(Stacked(PerLabel(), PerLabel(), cv=InOrder()), PCC())
    grid = {"classifier__meta__C": [1.0]}
    search = RejoinedSearch(quantifier, grid, choose="together", order=2, progress=False)
    search.fit(X, Y)
    rows = np.concatenate(stratified_holdout(Y, 0.4, order=2, seed=0))
    expected = quantifier.fit(X[rows], Y[rows]).quantify(DATA.test.X)
    np.testing.assert_allclose(search.quantify(DATA.test.X), expected, atol=1e-6)
    unmoved = quantifier.fit(X, Y).quantify(DATA.test.X)
    assert np.abs(np.asarray(unmoved) - np.asarray(expected)).max() > 1e-5


def test_plans_call_the_variants_by_name() -> None:
    assert isinstance(parse("twice(tuned(lr+sld))", PARTS), TwiceSLD)
    assert isinstance(parse("seen(tuned(stack(lr,lr)+pcc,grid=stack-grid))", PARTS), SeenItems)
    search = parse("rejoined(stack(lr,lr,cv=in-order)+pcc)", PARTS)
    assert isinstance(search, RejoinedSearch)
    assert search.quantifier.classifier.cv.n_folds == 5
    corrected = parse("lr+rq(pcc,svr,protocol=coarse-app)", PARTS)
    assert corrected.aggregator.protocol.size == 100
