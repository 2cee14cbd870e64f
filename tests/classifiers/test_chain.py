import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.svm import LinearSVC

from prevalens.classifiers.chain import Chain, ChainEnsemble
from prevalens.response import offers
from prevalens.validation import InputError

LR = LogisticRegression(tol=1e-8, max_iter=2000)


def data(n=120, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    Y = np.zeros((n, n_labels), dtype=np.int8)
    for label in range(n_labels):
        Y[:, label] = X[:, label] + Y[:, :label].sum(axis=1) + rng.normal(size=n) > 0.8
    return X, Y


@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_chain_is_that_of_scikit_learn(order, form):
    X, Y = data()
    X_new = form(data(seed=1)[0])
    theirs = ClassifierChain(LR, order=order).fit(form(X), Y)
    ours = Chain(LR, order).fit(form(X), Y)
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new))
    np.testing.assert_allclose(ours.predict_proba(X_new), theirs.predict_proba(X_new))


def test_the_default_estimator_is_logistic_regression():
    X, Y = data()
    expected = Chain(LR).fit(X, Y)
    ours = Chain().fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X), expected.predict_proba(X), atol=1e-3)


def test_a_random_order_is_drawn_once_per_seed():
    X, Y = data()
    orders = [Chain(LR, "random", random_state=seed).fit(X, Y).order_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(np.sort(orders[0]), np.arange(4))
    np.testing.assert_array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])


def test_labels_may_be_trained_at_the_same_time():
    X, Y = data()
    np.testing.assert_array_equal(
        Chain(LR, n_jobs=2).fit(X, Y).predict_proba(X), Chain(LR).fit(X, Y).predict_proba(X)
    )


def test_constant_labels_stay_in_the_chain():
    X, Y = data()
    Y[:, 1] = 1
    posteriors = Chain(LR).fit(X, Y).predict_proba(X)
    assert np.all(posteriors[:, 1] == 1)
    assert posteriors[:, [0, 2, 3]].std() > 0


def test_an_ensemble_averages_its_chains():
    X, Y = data()
    model = ChainEnsemble(LR, 5, random_state=0).fit(X, Y)
    assert len({tuple(chain.order_) for chain in model.chains_}) > 1
    chains = [Chain(LR, chain.order_).fit(X, Y) for chain in model.chains_]
    np.testing.assert_allclose(
        model.predict_proba(X), np.mean([chain.predict_proba(X) for chain in chains], axis=0)
    )
    np.testing.assert_array_equal(
        model.predict(X), np.sum([chain.predict(X) for chain in chains], axis=0) >= 3
    )


def test_the_estimator_decides_what_is_offered():
    X, Y = data()
    for model in (Chain(LinearSVC()), ChainEnsemble(LinearSVC(), 2)):
        assert offers(model) == {"votes"}
        assert model.fit(X, Y).predict(X).shape == (120, 4)


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 2, 2], [1, 2, 3, 4], "sorted"])
def test_an_order_must_name_each_label_once(order):
    X, Y = data()
    with pytest.raises(InputError, match="name each of the 4 labels once"):
        Chain(LR, order).fit(X, Y)


def test_an_ensemble_needs_a_chain():
    X, Y = data()
    with pytest.raises(InputError, match="n_chains must be at least 1"):
        ChainEnsemble(LR, 0).fit(X, Y)
