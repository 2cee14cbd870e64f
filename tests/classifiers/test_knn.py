import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from prevalens.classifiers.knn import MLkNN
from prevalens.datasets import load
from prevalens.validation import InputError


def data(n=60, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (X[:, :n_labels] + rng.normal(size=(n, n_labels)) > 0).astype(np.int8)


@given(k=st.integers(1, 20), s=st.floats(0.05, 5), seed=st.integers(0, 100))
def test_tables_are_probabilities(k, s, seed):
    X, Y = data(seed=seed)
    model = MLkNN(k, s).fit(X, Y)
    np.testing.assert_allclose(model.likelihood_.sum(axis=2), 1)
    assert np.all((model.prior_ > 0) & (model.prior_ < 1))
    posteriors = model.predict_proba(X)
    assert np.all((posteriors > 0) & (posteriors < 1))


def test_the_joint_output_divided_by_the_evidence_is_the_posterior():
    X, Y = data()
    posterior = MLkNN(3).fit(X, Y)
    joint = MLkNN(3, output="joint").fit(X, Y)
    counts = posterior._count(posterior.neighbours_.kneighbors(X, return_distance=False))
    labels = np.arange(4)
    evidence = (1 - joint.prior_) * joint.likelihood_[0][labels, counts]
    evidence += joint.prior_ * joint.likelihood_[1][labels, counts]
    np.testing.assert_allclose(joint.predict_proba(X) / evidence, posterior.predict_proba(X))
    np.testing.assert_array_equal(joint.predict(X), posterior.predict(X))
    assert joint.predict_proba(X).mean() < posterior.predict_proba(X).mean()


def test_an_item_is_not_its_own_neighbour_even_among_copies():
    # Three copies of each item: with k = 2 the neighbours of a copy are the other two.
    X = np.repeat(np.arange(4.0), 3)[:, np.newaxis]
    Y = np.tile([[1], [0], [0]], (4, 1))
    model = MLkNN(2).fit(X, Y)
    counts = model._count(model._search(X, 2)[1])
    np.testing.assert_array_equal(counts.ravel(), np.tile([0, 1, 1], 4))


def test_labels_are_scored_from_their_own_column_alone():
    X, Y = data()
    together = MLkNN(5).fit(X, Y).predict_proba(X)
    for label in range(4):
        alone = MLkNN(5).fit(X, Y[:, [label]]).predict_proba(X)
        np.testing.assert_array_equal(together[:, [label]], alone)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_sparse_items_have_the_same_neighbours(metric):
    X, Y = data()
    # Enough features that no two items are alike, or ties would be broken differently.
    X = np.hstack([X, X**2, X**3])
    X[X < 0.2] = 0
    dense = MLkNN(3, metric=metric).fit(X, Y)
    sparse = MLkNN(3, metric=metric).fit(sp.csr_matrix(X), Y)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_matrix(X)), dense.predict_proba(X))


def test_many_settings_are_trained_with_one_search_each_way():
    X, Y = data()
    settings = [
        {"k": 3},
        {"k": 7, "s": 0.5},
        {"k": 1, "exclude_self": False},
        {"k": 5, "metric": "cosine"},
        {"k": 7, "output": "joint"},
    ]
    together = list(MLkNN().fit_settings(settings, X, Y))
    for setting, model in zip(settings, together, strict=True):
        alone = MLkNN(**setting).fit(X, Y)
        assert model.get_params() == alone.get_params()
        np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
        np.testing.assert_array_equal(model.likelihood_, alone.likelihood_)
    assert together[0].neighbours_ is together[1].neighbours_ is together[4].neighbours_


def test_too_many_neighbours_are_refused():
    X, Y = data(n=6)
    with pytest.raises(InputError, match="k = 6 neighbours, but there are only 5"):
        MLkNN(6).fit(X, Y)
    assert MLkNN(6, exclude_self=False).fit(X, Y).predict(X).shape == (6, 4)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"k": 0}, "k must be at least 1"),
        ({"s": 0}, "s must be above 0"),
        ({"output": "log"}, "output must be one of 'posterior', 'joint'"),
    ],
)
def test_wrong_parameters_are_refused(parameters, sentence):
    X, Y = data()
    with pytest.raises(InputError, match=sentence):
        MLkNN(**parameters).fit(X, Y)


@pytest.mark.data
@pytest.mark.slow
def test_reuters_is_learnt_as_sparse_text():
    data = load("reuters21578")
    assert sp.issparse(data.train.X)
    votes = MLkNN(10, metric="cosine").fit(data.train.X, data.train.Y).predict(data.test.X)
    assert f1_score(data.test.Y, votes, average="micro") > 0.75
