import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from prevalens.classifiers.aram import MLARAM
from prevalens.validation import InputError


def data(n=60, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    X[0], X[1] = 0, 1
    return X, (X[:, :n_labels] + 0.2 * rng.normal(size=(n, n_labels)) > 0.6).astype(np.int8)


@given(vigilance=st.floats(0, 1), search=st.sampled_from(["aram", "fam"]), seed=st.integers(0, 50))
def test_boxes_hold_their_items_and_stay_small(vigilance, search, seed):
    X, Y = data(seed=seed)
    model = MLARAM(vigilance, search=search).fit(X, Y)
    boxes = model.boxes_
    assert boxes.count.sum() == len(X)
    widths = (boxes.upper - boxes.lower).sum(axis=1)
    assert np.all((widths <= (1 - vigilance) * 4 + 1e-9) | (boxes.count == 1))
    for x, y in zip(X, Y, strict=True):
        inside = np.all((boxes.lower <= x) & (x <= boxes.upper), axis=1)
        assert np.any(inside & np.all(model.states_[boxes.state] == y, axis=1))


def test_full_vigilance_keeps_every_item_and_none_keeps_one_box_per_labelset():
    X, Y = data()
    assert len(MLARAM(1.0).fit(X, Y).boxes_.count) == len(X)
    assert len(MLARAM(0.0).fit(X, Y).boxes_.count) == len(np.unique(Y, axis=0))


def test_match_tracking_makes_no_fewer_boxes():
    X, Y = data(n=150)
    plain = MLARAM(0.6).fit(X, Y)
    tracked = MLARAM(0.6, search="fam").fit(X, Y)
    assert len(tracked.boxes_.count) > len(plain.boxes_.count)


def test_a_second_layer_of_points_asks_one_box_and_of_large_boxes_several():
    X, Y = data()
    new, _ = data(seed=1)
    points = MLARAM(hierarchy=1.0).fit(X, Y)
    assert len(points.clusters_.count) == len(points.boxes_.count)
    assert set(np.unique(points.predict_proba(new))) == {0.0, 1.0}
    between = MLARAM(hierarchy=0.6).fit(X, Y)
    assert 1 < len(between.clusters_.count) < len(between.boxes_.count)
    assert np.mean(between.predict(X) == Y) > 0.9


def test_larger_boxes_hold_their_boxes():
    X, Y = data()
    model = MLARAM(hierarchy=0.6).fit(X, Y)
    inner, outer = model.boxes_, model.clusters_
    assert np.all(outer.lower[model.cluster_of_] <= inner.lower)
    assert np.all(outer.upper[model.cluster_of_] >= inner.upper)


@pytest.mark.parametrize("search", ["aram", "fam"])
@pytest.mark.parametrize("hierarchy", [None, 0.6])
def test_sparse_items_make_the_same_boxes(search, hierarchy):
    X, Y = data()
    X = np.where(X < 0.5, 0, X - 0.7)
    dense = MLARAM(search=search, hierarchy=hierarchy).fit(X, Y)
    sparse = MLARAM(search=search, hierarchy=hierarchy).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.boxes_.lower.toarray(), dense.boxes_.lower)
    np.testing.assert_allclose(sparse.boxes_.upper.toarray(), dense.boxes_.upper)
    new = X[::-1] * 0.9
    np.testing.assert_allclose(
        sparse.predict_proba(sp.csr_array(new)), dense.predict_proba(new), atol=1e-9
    )


def test_an_item_far_from_everything_is_answered_with_the_training_mean():
    X, Y = data()
    far = MLARAM().fit(X, Y).predict_proba([[1e9] * 4])
    np.testing.assert_allclose(far[0], Y.mean(axis=0))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"vigilance": 2}, "vigilance"),
        ({"threshold": -1}, "threshold"),
        ({"search": "art"}, "search"),
        ({"hierarchy": 3}, "hierarchy"),
        ({"cut": "top"}, "cut"),
    ],
)
def test_wrong_parameters_are_named(parameters, words):
    with pytest.raises(InputError, match=words):
        MLARAM(**parameters).fit(*data())
