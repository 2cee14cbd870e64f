"""Links solved together against links solved one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from prevalens.classifiers.chain import Chain, solved_together, train_links
from prevalens.classifiers.logistic import BatchedLogistic


def data(n=150, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.7)
    Y = np.zeros((n, n_labels), dtype=np.int8)
    for label in range(n_labels):
        Y[:, label] = X[:, label % 4] + Y[:, :label].sum(axis=1) + rng.normal(size=n) > 0.8
    return X, Y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    "estimator",
    [BatchedLogistic(), BatchedLogistic(100.0, "balanced"), BatchedLogistic(fit_intercept=False)],
    ids=str,
)
def test_each_link_is_a_regression_on_the_items_and_the_labels_before(form, estimator):
    X, Y = data()
    links = train_links(estimator, form(X), Y, np.arange(5))
    for number, link in enumerate(links):
        features = form(np.hstack([X, Y[:, :number]]))
        alone = BatchedLogistic(**estimator.get_params()).fit(features, Y[:, [number]])
        assert link.n_features_in_ == 4 + number
        np.testing.assert_allclose(
            link.predict_proba(features), alone.predict_proba(features), atol=1e-3
        )


def test_constant_labels_are_certain_and_stay_features():
    X, Y = data()
    Y[:, 1] = 1
    links = train_links(BatchedLogistic(), X, Y, np.arange(5))
    assert links[1].predict_proba(np.hstack([X, Y[:, :1]])).min() == 1
    assert np.isfinite(links[2].intercept_).all()


def test_a_warning_names_the_label_not_its_place_in_the_chain():
    X, Y = data()
    model = Chain(BatchedLogistic(1000.0, max_iter=1), order=[3, 4, 0, 1, 2])
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    assert "label 3" in str(caught[0].message)


def test_only_one_setting_for_all_labels_is_solved_together():
    assert solved_together(BatchedLogistic(2.0, {1: 3.0}))
    assert not solved_together(BatchedLogistic([1.0]))
    assert not solved_together(BatchedLogistic(class_weight=["balanced"]))
    assert not solved_together(LogisticRegression())
