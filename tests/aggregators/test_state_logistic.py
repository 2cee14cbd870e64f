from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from prevalens.aggregators.state_logistic import StateLogistic
from prevalens.solvers.multinomial import MultinomialFit
from prevalens.validation import PrevalensWarning


def make_data(n_states, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    return X, (X @ rng.normal(size=(3, n_states)) + rng.gumbel(size=(150, n_states))).argmax(axis=1)


@pytest.mark.parametrize("n_states", [2, 3, 6])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_it_is_scikit_learns_logistic_regression(n_states, form):
    X, y = make_data(n_states)
    ours = StateLogistic(C=2.0).fit(form(X), y)
    theirs = LogisticRegression(C=2.0, tol=1e-8, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(form(X)), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(form(X)), theirs.predict(X))


def test_states_keep_their_numbers():
    X, y = make_data(3)
    model = StateLogistic().fit(X, 2 * y + 1)
    assert model.classes_.tolist() == [1, 3, 5]
    assert set(model.predict(X)) <= {1, 3, 5}


def test_features_of_any_scale():
    X, y = make_data(3)
    scale = np.array([1e-3, 1.0, 1e4])
    model = StateLogistic(C=1e3).fit(X * scale, y)
    assert (model.predict(X * scale) == y).mean() > 0.5


def test_a_fit_that_has_not_converged_is_named(monkeypatch):
    X, y = make_data(3)
    unfinished = MultinomialFit(np.zeros((3, 3)), np.zeros(3), 1.0, 100, False)
    monkeypatch.setattr(
        "prevalens.aggregators.state_logistic.fit_multinomial", lambda *a, **k: [unfinished]
    )
    with pytest.warns(PrevalensWarning, match="3 label states has not converged after 100"):
        StateLogistic().fit(X, y)
