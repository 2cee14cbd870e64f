"""Binary relevance: the default, any other classifier, and labels that never vary."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from prevalens.classifiers import MultinomialLogistic, PerLabel, Tree
from prevalens.datasets import synthetic
from prevalens.validation import InputError

DATA = synthetic(n_train=200, n_test=50, n_labels=4, n_features=6, random_state=1)
X, Y = DATA.train.X, DATA.train.Y


def test_the_default_is_one_logistic_regression_per_label() -> None:
    model = PerLabel().fit(X, Y)
    for label, y in enumerate(Y.T):
        alone = LogisticRegression(tol=1e-8, max_iter=5000).fit(X, y)
        np.testing.assert_allclose(
            model.predict_proba(DATA.test.X)[:, label],
            alone.predict_proba(DATA.test.X)[:, 1],
            atol=1e-3,
        )
    odds = model.decision_function(DATA.test.X)
    np.testing.assert_array_equal(model.predict(DATA.test.X), odds > 0)
    assert model.coef_.shape == (4, 6)
    assert model.intercept_.shape == (4,)


def test_a_classifier_of_several_labels_is_trained_on_each_alone() -> None:
    model = PerLabel(Tree(max_depth=3)).fit(X, Y)
    for label, y in enumerate(Y.T):
        alone = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
        np.testing.assert_array_equal(
            model.predict_proba(DATA.test.X)[:, label], alone.predict_proba(DATA.test.X)[:, 1]
        )
        np.testing.assert_array_equal(
            model.predict(DATA.test.X)[:, label], alone.predict(DATA.test.X)
        )


def test_any_other_classifier_is_cloned_per_label() -> None:
    model = PerLabel(GaussianNB()).fit(X, Y)
    for label, y in enumerate(Y.T):
        alone = GaussianNB().fit(X, y)
        np.testing.assert_allclose(
            model.predict_proba(DATA.test.X)[:, label], alone.predict_proba(DATA.test.X)[:, 1]
        )
        np.testing.assert_array_equal(
            model.predict(DATA.test.X)[:, label], alone.predict(DATA.test.X)
        )


def test_a_classifier_without_posteriors_has_none() -> None:
    model = PerLabel(LinearSVC()).fit(X, Y)
    assert not hasattr(model, "predict_proba")
    assert model.decision_function(DATA.test.X).shape == (50, 4)


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_labels_that_never_vary_are_answered_as_they_are(estimator: object) -> None:
    labels = Y.copy()
    labels[:, 0], labels[:, 1] = 0, 1
    posteriors = PerLabel(estimator).fit(X, labels).predict_proba(DATA.test.X)
    assert np.all(posteriors[:, 0] == 0)
    assert np.all(posteriors[:, 1] == 1)


def test_the_multiclass_counterpart_has_the_same_settings() -> None:
    made = PerLabel(C=7.0, class_weight="balanced").multiclass()
    assert isinstance(made, MultinomialLogistic)
    assert (made.C, made.class_weight) == (7.0, "balanced")
    assert isinstance(PerLabel(GaussianNB()).multiclass(), GaussianNB)
    with pytest.raises(InputError, match="no multiclass counterpart"):
        PerLabel(C=[1.0, 2.0]).multiclass()
