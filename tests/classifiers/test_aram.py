import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from prevalens.classifiers import aram
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


@pytest.mark.parametrize("search", ["aram", "fam"])
def test_a_box_must_stay_below_the_limit(search):
    # At full vigilance the limit is 0, which a box of equal items reaches.
    X, Y = data(n=20)
    twice = MLARAM(1.0, search=search).fit(np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0))
    assert len(twice.boxes_.count) == 40
    halves = MLARAM(0.5, search=search).fit([[0.0], [0.5], [1.0]], [[1], [1], [1]])
    assert halves.boxes_.count.tolist() == [1, 1, 1]


def test_of_equally_active_boxes_the_first_learns():
    model = MLARAM(0.3).fit([[0.0], [1.0], [0.5]], [[1], [1], [1]])
    assert model.boxes_.upper.tolist() == [[0.5], [1.0]]
    assert model.boxes_.count.tolist() == [2, 1]


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


@pytest.mark.parametrize("seed", range(5))
def test_boxes_belong_to_the_narrowest_larger_box_that_holds_them(seed):
    X, Y = data(seed=seed)
    model = MLARAM(0.7, hierarchy=0.5).fit(X, Y)
    inner, outer = model.boxes_, model.clusters_
    width = (outer.upper - outer.lower).sum(axis=1)
    for low, high, cluster in zip(inner.lower, inner.upper, model.cluster_of_, strict=True):
        holds = np.all((outer.lower <= low) & (high <= outer.upper), axis=1)
        assert holds[cluster]
        assert width[cluster] == width[holds].min()


def test_items_are_answered_inside_the_most_active_larger_box():
    X, Y = data()
    new, _ = data(seed=1)
    model = MLARAM(hierarchy=0.5).fit(X, Y)
    found = model.predict_proba(new)
    # A larger box whose boxes all belong to narrower ones answers nothing.
    outer, filled = model.clusters_, np.unique(model.cluster_of_)
    width = (outer.upper - outer.lower).sum(axis=1)
    for x, posteriors in zip(new, found, strict=True):
        growth = np.maximum(outer.lower - x, 0) + np.maximum(x - outer.upper, 0)
        activity = 1 - growth.sum(axis=1) / (4 - width)
        best = min(filled, key=lambda j: (-activity[j].round(9), width[j]))
        inside = np.flatnonzero(model.cluster_of_ == best)
        np.testing.assert_allclose(posteriors, model._share(x[np.newaxis], inside)[0])


def test_larger_boxes_without_boxes_are_passed_over():
    X, Y = data()
    model = MLARAM(hierarchy=0.6).fit(X, Y)
    expected = model.predict_proba(X)
    # One more than before, in the first place, which is a point at the first item.
    point = model.clusters_.take(np.zeros(1, dtype=np.intp))
    point = aram.Boxes(X[:1], X[:1], point.state, point.count)
    model.clusters_ = aram._joined([point, model.clusters_])
    model.cluster_of_ = model.cluster_of_ + 1
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_boxes_do_not_depend_on_the_order_of_the_labels():
    X, Y = data()
    plain, moved = (MLARAM(hierarchy=0.6).fit(X, labels) for labels in (Y, 1 - Y[:, ::-1]))
    np.testing.assert_array_equal(moved.boxes_.lower, plain.boxes_.lower)
    np.testing.assert_array_equal(moved.cluster_of_, plain.cluster_of_)


def test_blocks_of_items_are_answered_as_all_at_once(monkeypatch):
    X, Y = data()
    model = MLARAM().fit(X, Y)
    expected = model.predict_proba(X)
    monkeypatch.setattr(aram, "_BLOCK", 7 * len(model.boxes_.count))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)


def test_posteriors_are_shares_up_to_one():
    X, Y = data(n=300)
    Y[:, 0] = 1
    # All boxes answer, and their weights are rounded.
    posteriors = MLARAM(1.0, 1.0).fit(X, Y).predict_proba(data(n=300, seed=1)[0])
    assert posteriors.max() <= 1
    np.testing.assert_allclose(posteriors[:, 0], 1)


def test_labels_of_half_the_items_are_not_voted_for():
    model = MLARAM().fit([[0.0], [0.0], [1.0], [1.0]], [[1, 0], [1, 1], [0, 0], [0, 1]])
    assert model.predict_proba([[0.0]]).tolist() == [[1.0, 0.5]]
    assert model.predict([[0.0]]).tolist() == [[1, 0]]


def test_features_are_scaled_to_their_range_in_every_form():
    # Without zeros, positive and negative; constant, with zeros and without; zeros at either end.
    X = np.array([[5.0, -2, 3, 0, 0, -0.2], [7, -4, 3, 0, 4, 0], [6, -3, 3, 0, 1, -0.1]])
    expected = [0.5, 0.5, 0, 0, 0.25, 5]
    for form in (np.asarray, sp.csr_array):
        np.testing.assert_allclose(MLARAM().fit(form(X), [[0], [1], [1]]).scale_, expected)


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


def test_features_of_one_sign_widen_sparse_boxes():
    # Lower bounds are zero in some columns and upper bounds in others.
    X, Y = data(n_labels=1)
    X = np.where(X < 0.5, 0, X) * [1, -1, 1, -1]
    forms = (np.array, sp.csr_array)
    dense, sparse = (MLARAM(0.0, hierarchy=0.7).fit(form(X), Y) for form in forms)
    assert (dense.boxes_.lower == 0).all(axis=0).any()
    assert (dense.boxes_.upper == 0).all(axis=0).any()
    np.testing.assert_allclose(sparse.clusters_.lower.toarray(), dense.clusters_.lower)
    np.testing.assert_allclose(sparse.clusters_.upper.toarray(), dense.clusters_.upper)


def test_a_second_layer_over_points_is_a_first_layer_without_labels():
    X, Y = data()
    outer = MLARAM(1.0, search="fam", hierarchy=0.6).fit(X, Y).clusters_
    alone = MLARAM(0.6).fit(X, np.ones((len(X), 1))).boxes_
    np.testing.assert_allclose(outer.lower, alone.lower)
    np.testing.assert_allclose(outer.upper, alone.upper)
    np.testing.assert_array_equal(outer.count, alone.count)


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
