import numpy as np
import pytest

from prevalens import parse
from prevalens.classifiers.minimax import MLMPM
from prevalens.validation import InputError


def data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, :3] + 0.5 * rng.normal(size=(n, 3)) > 0.3).astype(np.int8)


def test_votes_are_right_at_least_as_often_as_the_bound_says():
    X, Y = data()
    model = MLMPM(1e-6, 0.0).fit(X, Y)
    votes = model.predict(X)
    for label in range(3):
        for side in (0, 1):
            rows = Y[:, label] == side
            # Training items are one of the distributions with their means and covariances.
            assert np.mean(votes[rows, label] == side) >= model.bound_[label] - 1e-9
    assert model.bound_.min() > 0.5


def test_coupling_brings_labels_together_that_occur_together():
    X, Y = data()
    Y = np.column_stack([Y[:, 0], Y[:, 0] | Y[:, 1], Y[:, 2]])

    def distance(coupling):
        scores = X @ MLMPM(coupling=coupling).fit(X, Y).coef_.T
        return np.var(scores[:, 0] - scores[:, 1])

    assert distance(10.0) < 0.5 * distance(0.0)


def test_labels_are_learnt_alone_without_coupling():
    X, Y = data()
    together = MLMPM(coupling=0.0, tol=1e-12).fit(X, Y)
    alone = MLMPM(coupling=0.0, tol=1e-12).fit(X, Y[:, [1]])
    np.testing.assert_allclose(together.coef_[1], alone.coef_[0], rtol=1e-4)


def test_items_without_any_difference_get_no_weights():
    Y = np.array([[1], [0]] * 10)
    model = MLMPM(cv=2).fit(np.ones((20, 2)), Y)
    np.testing.assert_array_equal(model.coef_, 0)
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 2))), 0.5)
    np.testing.assert_array_equal(model.bound_, 0)


def test_rounds_are_counted_and_limited():
    X, Y = data()
    assert MLMPM(max_iter=2, tol=0.0).fit(X, Y).n_iter_ == 2
    assert 1 < MLMPM().fit(X, Y).n_iter_ < 200


def test_rounds_end_when_the_sum_falls_by_less_than_its_share():
    rng = np.random.default_rng(0)
    # Labels that hardly depend on the features need large weights: the sum is far above 1.
    X, Y = rng.normal(size=(60, 4)), (rng.random((60, 6)) < 0.4).astype(np.int8)

    def deviations(rounds):
        model = MLMPM(0.5, 0.0, normalize=False, tol=0.0, max_iter=rounds, cv=2).fit(X, Y)
        for w, y in zip(model.coef_, Y.T, strict=True):
            for side in (0, 1):
                yield np.sqrt(np.var(X[y == side] @ w) + 0.5 * w @ w)

    sums = [sum(deviations(rounds)) for rounds in range(1, 4)]
    for before, after, more in zip(sums[:-1], sums[1:], (2, 3), strict=True):
        share = (before - after) / after
        assert after > 10
        for tol, expected in ((1.01 * share, True), (0.99 * share, False)):
            model = MLMPM(0.5, 0.0, normalize=False, tol=tol, cv=2).fit(X, Y)
            assert (model.n_iter_ <= more) is expected


@pytest.mark.parametrize("seed", range(5))
def test_a_side_without_any_spread_has_no_deviation(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(30) % 3 == 0
    X = np.where(y, rng.normal(1.0, 0.5, size=30), -1.0)[:, np.newaxis]
    model = MLMPM(1e-20, 0.0, cv=2).fit(X, y[:, np.newaxis])
    kappa = (X[y].mean() + 1) / X[y].std()
    np.testing.assert_allclose(model.bound_, kappa**2 / (1 + kappa**2), rtol=1e-6)
    np.testing.assert_allclose(model.decision_function([[-1.0]]), 0, atol=1e-6)


@pytest.mark.parametrize("name", ["ridge", "coupling", "max_iter"])
def test_wrong_parameters_are_named(name):
    with pytest.raises(InputError, match=name):
        MLMPM(**{name: -1}).fit(*data())


def test_names_lead_back():
    assert parse("mlmpm(ridge=0.5)+acc").name == "mlmpm(ridge=0.5)+acc"
