from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.aggregators import matching as module
from prevalens.aggregators.matching import HDx
from prevalens.aggregators.rq import RQ
from prevalens.protocols import MLAPP
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError


def make_data(n_items=300, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n_items, 2)) + rng.normal(size=(n_items, 1))
    Y = (hidden > [0.0, 0.8]).astype(np.int8)
    X = np.hstack([hidden + rng.normal(size=(n_items, 2)), np.round(2 * rng.random((n_items, 1)))])
    return X, Y


X, Y = make_data()
X_TEST, Y_TEST = make_data(seed=1)
SAMPLES = MLAPP(size=60, grid=6).draw(Y_TEST, 0)
TRUE = SAMPLES.mean(Y_TEST)


def features(X):
    return Scores(X, kind="features")


def slow_hdx(X, y, sample, bins, grid=101):
    """Feature by feature and prevalence by prevalence, with numpy's histograms."""
    shares = np.linspace(0, 1, grid)
    distances = np.zeros(grid)
    for f in range(X.shape[1]):
        values = np.unique(X[:, f])
        if len(values) <= bins:
            edges = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])
        else:
            edges = np.linspace(values[0], values[-1], bins + 1)
            edges[0], edges[-1] = -np.inf, np.inf
        edges = np.nan_to_num(edges, neginf=-1e9, posinf=1e9)
        pos, neg, test = (
            np.histogram(part, edges)[0] / len(part)
            for part in (X[y == 1, f], X[y == 0, f], sample[:, f])
        )
        for i, share in enumerate(shares):
            mixture = share * pos + (1 - share) * neg
            squares = np.square(np.sqrt(mixture) - np.sqrt(test)).sum()
            distances[i] += np.sqrt(squares / 2)
    return shares[np.argmax(distances <= distances.min() + 1e-9)]


@pytest.mark.parametrize("bins", [4, 10])
def test_it_is_the_slow_loop(bins):
    estimates = HDx(bins).fit(features(X), Y).aggregate(features(X_TEST), SAMPLES)
    for j in range(2):
        slow = [slow_hdx(X, Y[:, j], X_TEST[rows], bins) for rows in SAMPLES]
        np.testing.assert_allclose(estimates[:, j], slow, atol=1e-9)


def test_it_is_quapys_with_its_grid():
    """QuaPy drops values beyond the training range; here they count for the ends."""
    quapy = pytest.importorskip("quapy")
    numbers = X[:, :2]
    within = np.clip(X_TEST[:, :2], numbers.min(axis=0), numbers.max(axis=0))
    ours = HDx(8, grid=100).fit(features(numbers), Y).aggregate(features(within), SAMPLES)
    for j in range(2):
        rival = quapy.method.non_aggregative.DMx(nbins=8, search="linear_search")
        rival.fit(numbers, Y[:, j].astype(int))
        theirs = [rival.predict(within[rows])[1] for rows in SAMPLES]
        np.testing.assert_allclose(ours[:, j], theirs, atol=1e-6)


def test_several_numbers_of_bins_give_the_median():
    several = HDx([4, 7, 10]).fit(features(X), Y).aggregate(features(X_TEST), SAMPLES)
    each = [
        HDx(bins).fit(features(X), Y).aggregate(features(X_TEST), SAMPLES) for bins in (4, 7, 10)
    ]
    np.testing.assert_array_equal(several, np.median(each, axis=0))


def test_it_follows_a_shift():
    estimates = HDx().fit(features(X), Y).aggregate(features(X_TEST), SAMPLES)
    assert np.abs(estimates - TRUE).mean() < 0.6 * np.abs(Y.mean(axis=0) - TRUE).mean()


def test_a_feature_that_is_the_label_gives_the_truth():
    estimates = HDx().fit(features(Y), Y).aggregate(features(Y_TEST), SAMPLES)
    for j in range(2):
        alone = HDx().fit(features(Y[:, [j]]), Y[:, [j]])
        exact = alone.aggregate(features(Y_TEST[:, [j]]), SAMPLES)
        np.testing.assert_allclose(exact[:, 0], TRUE[:, j], atol=0.0051)
    assert np.abs(estimates - TRUE).mean() < 0.1


def test_sparse_features_are_present_or_absent():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.3 + 0.7 * Y[:, [0, 1, 0, 1]])
    sparse = HDx().fit(features(sp.csr_matrix(counts * 0.37)), Y)
    dense = HDx().fit(features((counts > 0) * 1.0), Y)
    fresh = rng.poisson(0.3 + 0.7 * Y_TEST[:, [0, 1, 0, 1]])
    for form in (sp.csr_matrix, sp.csr_array):
        np.testing.assert_allclose(
            sparse.aggregate(features(form(fresh * 0.37)), SAMPLES),
            dense.aggregate(features((fresh > 0) * 1.0), SAMPLES),
            atol=1e-12,
        )


def test_sparse_features_with_stored_zeros():
    stored = sp.csr_matrix(([0.0, 1.0, 1.0, 0.0], ([0, 1, 2, 3], [0, 0, 0, 0])), shape=(4, 1))
    truth = [[0], [1], [1], [0]]
    estimates = HDx().fit(features(stored), truth).aggregate(features(stored), Samples.whole(4))
    np.testing.assert_allclose(estimates, [[0.5]])
    assert stored.nnz == 4


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_blocks_change_nothing(monkeypatch, form):
    train, test = features(form(np.maximum(X, 0))), features(form(np.maximum(X_TEST, 0)))
    whole = HDx().fit(train, Y).aggregate(test, SAMPLES)
    monkeypatch.setattr(module, "_HDX_BLOCK", 1)
    pieces = HDx().fit(train, Y).aggregate(test, SAMPLES)
    np.testing.assert_array_equal(whole, pieces)


def test_sparse_samples_of_different_sizes():
    rng = np.random.default_rng(2)
    counts = sp.csr_matrix(rng.poisson(0.2 + Y[:, [0, 1, 0]]))
    hdx = HDx(grid=21).fit(features(counts), Y)
    bags = Samples.from_indices([[0], [1, 2, 3], np.arange(50), [7, 7, 8]], n_items=300)
    together = hdx.aggregate(features(counts), bags)
    for i in range(4):
        alone = hdx.aggregate(features(counts), bags[i : i + 1])
        np.testing.assert_array_equal(together[i], alone[0])


def test_constant_labels_keep_their_constant():
    truth = Y.copy()
    truth[:, 0], truth[:, 1] = 0, 1
    estimates = HDx().fit(features(X), truth).aggregate(features(X_TEST), SAMPLES)
    assert (estimates == [0.0, 1.0]).all()


def test_features_that_say_nothing_answer_the_smallest_prevalence():
    nothing = np.ones((300, 1))
    estimates = HDx().fit(features(nothing), Y).aggregate(features(nothing), SAMPLES)
    assert (estimates == 0).all()


def test_values_beyond_the_training_range_count_for_the_ends():
    items = features(np.linspace(0, 1, 40).reshape(-1, 1))
    hdx = HDx(4).fit(items, items.values > 0.5)
    far = features(np.array([[-100.0], [100.0], [100.0], [100.0]]))
    near = features(np.array([[0.0], [1.0], [1.0], [1.0]]))
    whole = Samples.whole(4)
    np.testing.assert_array_equal(hdx.aggregate(far, whole), hdx.aggregate(near, whole))


def test_frames():
    frame = pd.DataFrame(X)
    np.testing.assert_array_equal(
        HDx().fit(features(frame), Y).aggregate(features(pd.DataFrame(X_TEST)), SAMPLES),
        HDx().fit(features(X), Y).aggregate(features(X_TEST), SAMPLES),
    )


def test_inside_rq_it_gets_better():
    alone = HDx().fit(features(X), Y).aggregate(features(X_TEST), SAMPLES)
    rq = RQ(HDx(), "ridge", protocol=MLAPP(size=60, grid=21)).fit(features(X), Y)
    better = rq.aggregate(features(X_TEST), SAMPLES)
    assert np.abs(better - TRUE).mean() < np.abs(alone - TRUE).mean()


def test_refusals():
    with pytest.raises(InputError, match="HDx reads numbers, not texts"):
        HDx().fit(features(["a", "b"]), [[0], [1]])
    with pytest.raises(InputError, match="bins must be at least 2; got 1"):
        HDx(1).fit(features(X), Y)
    with pytest.raises(InputError, match="bins must name at least one"):
        HDx([]).fit(features(X), Y)
    hdx = HDx().fit(features(X), Y)
    with pytest.raises(InputError, match="fitted on 3 features; these items have 2"):
        hdx.aggregate(features(X_TEST[:, :2]), SAMPLES)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    bins=st.integers(2, 12),
    digits=st.integers(0, 3),
    n_items=st.integers(1, 30),
)
def test_whatever_the_features_the_answers_are_shares(seed, bins, digits, n_items):
    rng = np.random.default_rng(seed)
    items = features(np.round(rng.normal(size=(n_items, 3)), digits))
    truth = rng.random((n_items, 2)) < rng.random(2)
    estimates = HDx(bins, grid=11).fit(items, truth).aggregate(items, Samples.whole(n_items))
    assert np.all((estimates >= 0) & (estimates <= 1))


@pytest.mark.data
def test_on_emotions():
    from prevalens.datasets import load

    data = load("emotions")
    train, test = features(data.train.X), features(data.test.X)
    samples = MLAPP(more_than=1000).draw(data.test.Y, 0)
    true = samples.mean(data.test.Y)
    shift = np.abs(data.train.Y.mean(axis=0) - true).mean()
    rq = RQ(HDx(), "ridge", protocol=MLAPP(grid=21, more_than=999)).fit(train, data.train.Y)
    assert np.abs(rq.aggregate(test, samples) - true).mean() < 0.75 * shift
