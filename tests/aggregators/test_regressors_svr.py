from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.multioutput import RegressorChain
from sklearn.svm import LinearSVR

from prevalens.aggregators.regressors import BatchedLinearSVR, ChainedSVR, StackedSVR
from prevalens.validation import InputError, PrevalensWarning


def pairs(n_rows=300, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.binomial(100, rng.beta(1, 4, size=(n_rows, n_labels))) / 100
    X = 0.2 + 0.5 * Y @ (np.eye(n_labels) + 0.2) + 0.02 * rng.standard_normal(Y.shape)
    return X, Y


def test_svr_is_scikit_learns_per_label():
    X, Y = pairs()
    ours = BatchedLinearSVR(tol=1e-8).fit(X, Y)
    for j in range(Y.shape[1]):
        rival = LinearSVR(tol=1e-6, max_iter=1_000_000, random_state=0).fit(X, Y[:, j])
        np.testing.assert_allclose(ours.predict(X)[:, j], rival.predict(X), atol=5e-4)


def test_svr_settings_along_a_path_are_fits_one_by_one():
    X, Y = pairs()
    settings = [{"C": 10.0}, {"C": 0.1}, {"C": 1.0}]
    svr = BatchedLinearSVR(tol=1e-7)
    for setting, fitted in zip(settings, svr.fit_settings(settings, X, Y), strict=True):
        alone = clone(svr).set_params(**setting).fit(X, Y)
        assert fitted.get_params() == alone.get_params()
        assert fitted.n_features_in_ == 4
        np.testing.assert_allclose(fitted.predict(X), alone.predict(X), atol=1e-4)
    assert not hasattr(svr, "coef_")


def test_svr_settings_of_other_kinds_are_fitted_one_by_one():
    X, Y = pairs()
    settings = [{"C": 10.0, "epsilon": 0.1}, {"epsilon": 0.0}]
    fitted = list(BatchedLinearSVR().fit_settings(settings, X, Y))
    assert [regressor.epsilon for regressor in fitted] == [0.1, 0.0]
    np.testing.assert_array_equal(fitted[1].coef_, BatchedLinearSVR().fit(X, Y).coef_)


def test_svr_says_when_it_was_stopped():
    X, Y = pairs()
    with pytest.warns(PrevalensWarning, match="targets stopped at max_iter=0 steps"):
        BatchedLinearSVR(C=1000.0, max_iter=0).fit(X, Y)


def test_the_second_round_of_stacking_sees_answers_to_rows_not_learnt_from():
    X, Y = pairs(n_rows=60)
    stacked = StackedSVR(C=10.0, random_state=0).fit(X, Y)
    assert stacked.second_.coef_.shape == (4, 8)
    first = BatchedLinearSVR(C=10.0).fit(X, Y)
    np.testing.assert_array_equal(stacked.first_.coef_, first.coef_)
    in_sample = BatchedLinearSVR(C=10.0).fit(np.hstack([X, first.predict(X)]), Y)
    assert np.abs(in_sample.coef_ - stacked.second_.coef_).max() > 1e-3


def test_the_chain_is_scikit_learns():
    X, Y = pairs()
    chain = RegressorChain(BatchedLinearSVR(3.0), order=[2, 0, 3, 1]).fit(X, Y)
    ours = ChainedSVR(3.0, order=[2, 0, 3, 1]).fit(X, Y)
    np.testing.assert_array_equal(ours.predict(X), chain.predict(X))


def test_one_row_cannot_be_divided():
    with pytest.raises(InputError, match="StackedSVR needs at least two rows"):
        StackedSVR().fit([[0.1, 0.2]], [[0.1, 0.2]])
