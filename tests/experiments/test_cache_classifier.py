from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from prevalens.aggregators import ACC, CC, PACC, PCC
from prevalens.classifiers import CrossFit, PerLabel
from prevalens.crossfit import fit_settings
from prevalens.datasets import synthetic
from prevalens.experiments.cache import CachedClassifier, ScoreCache
from prevalens.protocols import Natural
from prevalens.quantifier import Quantifier
from prevalens.response import is_joint, offers
from prevalens.samples import Samples
from prevalens.selection.grid_search import GridSearch

DATA = synthetic(n_train=120, n_test=60, n_labels=3, n_features=8, random_state=0)
X, Y = DATA.train.X, DATA.train.Y
SAMPLES = Samples.from_indices(np.arange(60).reshape(6, 10), n_items=60)


@pytest.fixture
def cache(tmp_path: Path) -> ScoreCache:
    return ScoreCache(tmp_path / "scores")


def estimates(classifier: Any, aggregator: Any) -> Any:
    quantifier = Quantifier(classifier, aggregator, scheme=CrossFit(3), uncertainty=None).fit(X, Y)
    return quantifier.quantify_many(DATA.test.X, SAMPLES).point


CLASSIFIERS = [
    PerLabel(),
    DecisionTreeClassifier(random_state=0),
    MultiOutputClassifier(LogisticRegression()),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("aggregator", [CC(), PCC(), ACC(), PACC()], ids=lambda a: a.code)
def test_figures_are_bit_for_bit_those_without_a_cache(
    classifier: Any, aggregator: Any, cache: ScoreCache
) -> None:
    plain = estimates(classifier, aggregator)
    first = estimates(CachedClassifier(classifier, cache), aggregator)
    misses = cache.misses
    second = estimates(CachedClassifier(classifier, cache), aggregator)
    np.testing.assert_array_equal(first, plain)
    np.testing.assert_array_equal(second, plain)
    assert misses > 0
    assert cache.misses == misses


class Counting(DecisionTreeClassifier):
    trained = 0

    def fit(self, X: Any, y: Any, **more: Any) -> Any:
        type(self).trained += 1
        return super().fit(X, y, **more)


def test_another_aggregator_trains_nothing(cache: ScoreCache) -> None:
    Counting.trained = 0
    estimates(CachedClassifier(Counting(random_state=0), cache), PACC())
    assert Counting.trained == 4
    hits = cache.hits
    estimates(CachedClassifier(Counting(random_state=0), cache), ACC())
    estimates(CachedClassifier(Counting(random_state=0), cache), CC())
    assert Counting.trained == 4
    assert cache.hits == hits + 4 + 1
    estimates(CachedClassifier(Counting(random_state=1), cache), CC())
    assert Counting.trained == 5


@pytest.mark.parametrize("what", ["X", "Y", "pool"])
def test_other_data_are_another_question(cache: ScoreCache, what: str) -> None:
    changed = {"X": X.copy(), "Y": Y.copy(), "pool": DATA.test.X.copy()}
    CachedClassifier(PerLabel(), cache).fit(X, Y).predict_proba(DATA.test.X)
    changed[what][0, 0] = 1 - changed[what][0, 0]
    classifier = CachedClassifier(PerLabel(), cache).fit(changed["X"], changed["Y"])
    posteriors = classifier.predict_proba(changed["pool"])
    assert (cache.hits, cache.misses) == (0, 2)
    plain = PerLabel().fit(changed["X"], changed["Y"])
    np.testing.assert_array_equal(posteriors, plain.predict_proba(changed["pool"]))


def test_the_same_items_in_another_order_of_memory_are_another_question(cache: ScoreCache) -> None:
    """Else a result would depend on which method happened to ask first."""
    columns = np.asfortranarray(X)
    for items in (X, columns):
        posteriors = CachedClassifier(PerLabel(), cache).fit(items, Y).predict_proba(DATA.test.X)
        expected = PerLabel().fit(items, Y).predict_proba(DATA.test.X)
        np.testing.assert_array_equal(posteriors, expected)
    assert (cache.hits, cache.misses) == (0, 2)


def test_it_looks_like_the_classifier(cache: ScoreCache) -> None:
    for classifier in (PerLabel(), DecisionTreeClassifier(), LinearSVC()):
        remembered = CachedClassifier(classifier, cache)
        assert is_joint(remembered) == is_joint(classifier)
        assert offers(remembered) == offers(classifier)
        assert remembered.get_params() == classifier.get_params()
        assert hasattr(remembered, "fit_settings") == hasattr(classifier, "fit_settings")
    tuned = clone(CachedClassifier(PerLabel(), cache)).set_params(C=7.0)
    assert tuned.classifier.C == 7.0
    assert tuned.cache is cache


def test_settings_are_trained_together_or_not_at_all(cache: ScoreCache) -> None:
    settings = [{"C": 0.1}, {"C": 10.0}]
    plain = [
        classifier.predict_proba(DATA.test.X)
        for classifier in fit_settings(PerLabel(), settings, X, Y)
    ]
    for _ in range(2):
        fitted = list(fit_settings(CachedClassifier(PerLabel(), cache), settings, X, Y))
        for classifier, expected in zip(fitted, plain, strict=True):
            np.testing.assert_array_equal(classifier.predict_proba(DATA.test.X), expected)
    assert (cache.hits, cache.misses) == (2, 2)


def test_a_setting_trained_in_company_does_not_stand_for_one_trained_alone(
    cache: ScoreCache,
) -> None:
    """The last digits differ, and a result must not depend on what was computed before it."""
    settings = [{"C": 0.1}, {"C": 1.0}]
    for classifier in fit_settings(CachedClassifier(PerLabel(), cache), settings, X, Y):
        classifier.predict_proba(DATA.test.X)
    alone = CachedClassifier(PerLabel(C=1.0), cache).fit(X, Y).predict_proba(DATA.test.X)
    assert cache.hits == 0
    np.testing.assert_array_equal(alone, PerLabel(C=1.0).fit(X, Y).predict_proba(DATA.test.X))


@pytest.mark.parametrize("choose", ["together", "per-label"])
def test_a_search_chooses_and_estimates_the_same(cache: ScoreCache, choose: str) -> None:
    def search(classifier: Any) -> Any:
        return GridSearch(
            Quantifier(classifier, PCC()),
            {"classifier__C": [0.01, 100.0], "classifier__class_weight": [None, "balanced"]},
            protocol=Natural(size=20, n_samples=10),
            choose=choose,
        ).fit(X, Y)

    plain, first, second = (
        search(classifier)
        for classifier in (PerLabel(), *[CachedClassifier(PerLabel(), cache)] * 2)
    )
    for fitted in (first, second):
        assert fitted.best_params_ == plain.best_params_
        np.testing.assert_array_equal(
            fitted.quantify_many(DATA.test.X, SAMPLES).point,
            plain.quantify_many(DATA.test.X, SAMPLES).point,
        )
    assert cache.hits >= 4


def test_a_classifier_without_identity_is_not_remembered(cache: ScoreCache) -> None:
    random = DecisionTreeClassifier(random_state=np.random.RandomState(0))
    fitted = CachedClassifier(random, cache).fit(X, Y)
    assert fitted.predict(DATA.test.X).shape == (60, 3)
    assert (cache.hits, cache.misses) == (0, 0)


def test_constant_labels_are_answered_by_their_value(cache: ScoreCache) -> None:
    constant = Y.copy()
    constant[:, 0] = 1
    refusing = MultiOutputClassifier(LogisticRegression())
    posteriors = CachedClassifier(refusing, cache).fit(X, constant).predict_proba(DATA.test.X)
    np.testing.assert_array_equal(posteriors[:, 0], 1.0)


def test_it_can_be_pickled_before_and_after_training(cache: ScoreCache) -> None:
    fitted = CachedClassifier(PerLabel(), cache).fit(X, Y)
    expected = fitted.predict_proba(DATA.test.X)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(DATA.test.X), expected)


def test_before_fit_it_says_so(cache: ScoreCache) -> None:
    with pytest.raises(NotFittedError):
        CachedClassifier(PerLabel(), cache).predict(X)
