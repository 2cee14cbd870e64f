"""The two estimators around the batched solvers: targets as users give them, and the warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from prevalens.classifiers.logistic import BatchedLogistic
from prevalens.datasets import synthetic
from prevalens.solvers.multinomial import MultinomialLogistic
from prevalens.validation import InputError

DATA = synthetic(n_train=200, n_test=50, n_labels=8, n_features=6, random_state=1)
X, Y = DATA.train.X, DATA.train.Y
X_TEST = DATA.test.X
WORDS = np.array(["no", "yes"])[Y[:, 0]]
THREE = np.array(["a", "b", "c"])[Y[:, 0] + Y[:, 1]]


def theirs(y: Any, **arguments: Any) -> LogisticRegression:
    return LogisticRegression(tol=1e-8, max_iter=5000, **arguments).fit(X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"no": 1.0, "yes": 5.0}])
def test_one_target_of_two_classes_is_answered_in_its_own_words(class_weight: Any) -> None:
    ours = BatchedLogistic(C=3.0, class_weight=class_weight).fit(X, WORDS)
    best = theirs(WORDS, C=3.0, class_weight=class_weight)
    np.testing.assert_array_equal(ours.classes_, best.classes_)
    np.testing.assert_array_equal(ours.predict(X_TEST), best.predict(X_TEST))
    np.testing.assert_allclose(ours.predict_proba(X_TEST), best.predict_proba(X_TEST), atol=1e-3)
    np.testing.assert_allclose(
        ours.decision_function(X_TEST), best.decision_function(X_TEST), atol=1e-2
    )


def test_one_target_of_one_class_is_certain() -> None:
    model = BatchedLogistic().fit(X, np.full(len(X), "same"))
    assert set(model.predict(X_TEST)) == {"same"}
    np.testing.assert_array_equal(model.predict_proba(X_TEST), np.ones((len(X_TEST), 1)))


def test_three_classes_are_another_estimators() -> None:
    with pytest.raises(InputError, match=r"y has 3\. Use MultinomialLogistic"):
        BatchedLogistic().fit(X, THREE)


@pytest.mark.parametrize("model", [BatchedLogistic, MultinomialLogistic])
def test_a_weight_for_an_unknown_class_is_refused(model: Any) -> None:
    with pytest.raises(InputError, match=r"class_weight names \['maybe'\]"):
        model(class_weight={"maybe": 2.0}).fit(X, WORDS)


def test_each_label_its_own_settings() -> None:
    mixed = BatchedLogistic(C=[0.1, 10.0], class_weight=["balanced", {0: 1.0, 1: 3.0}])
    mixed.fit(X, Y[:, :2])
    for label, (C, weight) in enumerate([(0.1, "balanced"), (10.0, {0: 1.0, 1: 3.0})]):
        best = theirs(Y[:, label], C=C, class_weight=weight)
        np.testing.assert_allclose(
            mixed.predict_proba(X_TEST)[:, label], best.predict_proba(X_TEST)[:, 1], atol=1e-3
        )


@pytest.mark.parametrize("model", [BatchedLogistic(), MultinomialLogistic()])
def test_a_weight_is_a_repeated_row(model: Any) -> None:
    times = np.random.default_rng(0).integers(1, 4, size=len(X))
    y = Y if isinstance(model, BatchedLogistic) else THREE
    weighted = model.fit(X, y, sample_weight=times).predict_proba(X_TEST)
    repeated = model.fit(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))
    np.testing.assert_allclose(weighted, repeated.predict_proba(X_TEST), atol=1e-4)


def test_settings_of_one_target_are_fitted_one_by_one() -> None:
    fitted = list(BatchedLogistic().fit_settings([{"C": 0.1}, {"C": 10.0}], X, WORDS))
    for C, model in zip([0.1, 10.0], fitted, strict=True):
        np.testing.assert_array_equal(model.predict(X_TEST), theirs(WORDS, C=C).predict(X_TEST))


def test_the_warning_counts_the_labels() -> None:
    with pytest.warns(ConvergenceWarning, match="of label 0, 1, 2, 3, 4 and 3 more did not"):
        BatchedLogistic(C=1000.0, max_iter=1).fit(X, Y)


def test_the_warning_names_the_labels() -> None:
    named = pd.DataFrame(Y[:, :2], columns=["sea", "sky"])
    with pytest.warns(ConvergenceWarning, match="label sea, sky did not converge in 1 Newton"):
        BatchedLogistic(C=1000.0, max_iter=1).fit(X, named)


def test_the_warning_of_a_single_target() -> None:
    with pytest.warns(ConvergenceWarning, match="of y did not converge in 1 Newton steps"):
        MultinomialLogistic(C=1000.0, max_iter=1).fit(X, THREE)


@pytest.mark.parametrize("y", [WORDS, THREE], ids=["two", "three"])
@pytest.mark.parametrize("sparse", [False, True])
def test_multinomial_is_scikit_learns(y: Any, sparse: bool) -> None:
    items = sp.csr_matrix(X) if sparse else X
    ours, best = MultinomialLogistic(C=2.0).fit(items, y), theirs(y, C=2.0)
    np.testing.assert_array_equal(ours.classes_, best.classes_)
    assert ours.coef_.shape == best.coef_.shape
    assert ours.intercept_.shape == best.intercept_.shape
    np.testing.assert_array_equal(ours.predict(X_TEST), best.predict(X_TEST))
    np.testing.assert_allclose(ours.predict_proba(X_TEST), best.predict_proba(X_TEST), atol=1e-3)
    np.testing.assert_allclose(
        ours.decision_function(X_TEST), best.decision_function(X_TEST), atol=1e-2
    )


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 1.0, "b": 2.0, "c": 5.0}])
def test_multinomial_class_weights_are_scikit_learns(class_weight: Any) -> None:
    ours = MultinomialLogistic(class_weight=class_weight).fit(X, THREE)
    best = theirs(THREE, class_weight=class_weight)
    np.testing.assert_allclose(ours.predict_proba(X_TEST), best.predict_proba(X_TEST), atol=1e-3)


def test_multinomial_of_a_single_class_is_certain() -> None:
    model = MultinomialLogistic().fit(X, np.full(len(X), "same"))
    assert set(model.predict(X_TEST)) == {"same"}
    np.testing.assert_array_equal(model.predict_proba(X_TEST), np.ones((len(X_TEST), 1)))


def test_posteriors_out_of_fold_are_those_of_a_fit_without_the_fold() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), (rng.random((40, 2)) < 0.4).astype(np.int8)
    rows = np.arange(40)
    divisions = [(rows[rows % 4 != fold], rows[rows % 4 == fold]) for fold in range(4)]
    model = BatchedLogistic(class_weight="balanced", tol=1e-10)
    found = model.out_of_fold([0.1, 1.0], X, Y, divisions)
    for C, posteriors in zip([0.1, 1.0], found, strict=True):
        for rest, held in divisions:
            fitted = clone(model).set_params(C=C).fit(X[rest], Y[rest])
            np.testing.assert_allclose(posteriors[held], fitted.predict_proba(X[held]), atol=1e-5)
