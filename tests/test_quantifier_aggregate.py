"""`Quantifier.aggregate` is the one way to estimates: nothing is checked or computed twice."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import prevalens
from prevalens import Quantifier, Samples, validation
from prevalens.aggregators import ACC, PACC, PCC, ScenarioMixture
from prevalens.aggregators.mixture.scenarios import ScenarioModel
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic
from prevalens.scores import Scores
from prevalens.uncertainty import Bootstrap
from prevalens.validation import InputError

DATA = synthetic(n_train=400, n_test=300, n_labels=4, n_features=8, random_state=3)
TRAIN, TEST = DATA.train, DATA.test


def fit(*parts: Any, **options: Any) -> Quantifier:
    return Quantifier(*parts, **options).fit(TRAIN.X, TRAIN.Y, labels=TRAIN.labels)


def calls(target: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the calls of a function or method from now on, wherever it was imported."""
    counts: Counter[str] = Counter()
    original = getattr(target, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        counts[name] += 1
        return original(*args, **kwargs)

    monkeypatch.setattr(target, name, counted)
    for module in list(sys.modules.values()):
        if module.__name__.startswith("prevalens") and vars(module).get(name) is original:
            monkeypatch.setattr(module, name, counted)
    return counts


@pytest.mark.parametrize("aggregator", [PACC(), ACC(), PCC(), ScenarioMixture()], ids=repr)
@pytest.mark.parametrize("interval", [None, 0.9])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_items_are_validated_once_and_scores_wrapped_once(
    aggregator: Any, interval: float | None, form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantifier = Quantifier(PerLabel(), aggregator).fit(form(TRAIN.X), TRAIN.Y)
    validated = calls(validation, "check_matrix", monkeypatch)
    wrapped = calls(Scores, "__post_init__", monkeypatch)
    quantifier.quantify(form(TEST.X), interval=interval)
    assert validated["check_matrix"] == 1
    assert wrapped["__post_init__"] == 1


def test_the_posterior_of_the_mixture_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    quantifier = fit(PerLabel(), ScenarioMixture())
    plain = quantifier.quantify(TEST.X)
    computed = calls(ScenarioModel, "posterior", monkeypatch)
    with_interval = quantifier.quantify(TEST.X, interval=0.9)
    assert computed["posterior"] == 1
    np.testing.assert_allclose(with_interval, plain, rtol=1e-12)


def test_with_an_interval_the_estimate_itself_is_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quantifier = fit(PerLabel(), PACC(), uncertainty=Bootstrap(replicas=3, resamples=4))
    scores, samples = quantifier.score(TEST.X), Samples.whole(len(TEST.Y))
    seen: list[Any] = []
    original = PACC.aggregate

    def watched(self: PACC, scores: Scores, given: Samples) -> Any:
        seen.append((self, given))
        return original(self, scores, given)

    monkeypatch.setattr(PACC, "aggregate", watched)
    estimate = quantifier.aggregate(scores, samples, 0.9)
    whole = [given for made, given in seen if made is quantifier.aggregator_ and given is samples]
    assert len(whole) == 1
    np.testing.assert_array_equal(estimate, original(quantifier.aggregator_, scores, samples))


def test_aggregate_is_what_quantify_and_quantify_many_answer() -> None:
    quantifier = fit(PerLabel(), PACC())
    scores = quantifier.score(TEST.X)
    groups = np.arange(len(TEST.Y)) % 3
    samples, names = Samples.by_group(groups)
    many = quantifier.aggregate(scores, samples, 0.8, index=names.tolist())
    expected = quantifier.quantify_many(TEST.X, groups, interval=0.8)
    np.testing.assert_allclose(many, expected, rtol=1e-12)
    # The noise of items is drawn from the items here, from their covariances there.
    np.testing.assert_allclose(many.upper, expected.upper, atol=0.03)
    assert many.index == [0, 1, 2]
    whole = quantifier.aggregate(scores, Samples.whole(len(TEST.Y)), 0.8)
    estimate = quantifier.quantify(TEST.X, interval=0.8)
    np.testing.assert_allclose(whole.sample(0), estimate, rtol=1e-12)
    np.testing.assert_allclose(whole.sample(0).lower, estimate.lower, atol=0.03)


def test_wrong_items_are_still_refused_by_the_classifier() -> None:
    quantifier = fit(PerLabel(), PACC())
    with pytest.raises(ValueError, match="X has 7 features, but PerLabel is expecting 8"):
        quantifier.quantify(TEST.X[:, :7])


def test_quantify_crosses_at_most_ten_modules() -> None:
    quantifier = fit(PerLabel(), PACC())
    home = str(Path(prevalens.__file__).parent)
    crossed: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(home):
            crossed.add(frame.f_code.co_filename.removeprefix(home))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        quantifier.quantify(TEST.X)
    finally:
        sys.setprofile(before)
    assert len(crossed) <= 10, sorted(crossed)


def test_nobody_else_reaches_into_the_fitted_aggregator() -> None:
    home = Path(prevalens.__file__).parent
    reaching = [
        path.name
        for room in ("model", "experiments", "selection", "studies", "service", "cli", "reports")
        for path in (home / room).rglob("*.py")
        if ".aggregator_" in path.read_text("utf8")
    ]
    assert reaching == []


def test_an_interval_that_is_asked_for_is_calibrated_or_refused() -> None:
    for mixture in (
        fit(PerLabel(), ScenarioMixture(), uncertainty=each) for each in (None, "auto")
    ):
        assert mixture.has_intervals
    assert fit(PerLabel(), PCC(), uncertainty=Bootstrap(resamples=2)).has_intervals
    default = fit(PerLabel(), PCC())
    assert default.has_intervals
    assert default.uncertainty_.get_params() == Bootstrap().get_params()
    without = fit(PerLabel(), PCC(), uncertainty=None)
    assert not without.has_intervals
    np.testing.assert_allclose(without.quantify(TEST.X), default.quantify(TEST.X), atol=1e-3)
    with pytest.raises(InputError, match=r"lr\+pcc was fitted with uncertainty=None.*leave"):
        without.quantify(TEST.X, interval=0.9)
    with pytest.raises(InputError, match="uncertainty must be one of"):
        fit(PerLabel(), PCC(), uncertainty="none")
