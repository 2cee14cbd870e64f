"""Classifiers by margins: RankSVM against its definition, and the calibration that all share."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from prevalens import parse
from prevalens.classifiers.margins import RankSVM, best_thresholds, rotated
from prevalens.crossfit import divisions_of
from prevalens.splits import stratified_folds
from prevalens.validation import InputError


def data(n=40, n_labels=3, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    latent = X @ rng.normal(size=(n_features, n_labels)) + 0.5 * rng.normal(size=(n, n_labels))
    return X, (latent > 0.3).astype(np.int8)


def ranking_loss(flat, X, Y, C):
    """The objective of Elisseeff and Weston, written out pair by pair."""
    weights = flat.reshape(Y.shape[1], -1)
    scores = np.column_stack([X, np.ones(len(X))]) @ weights.T
    total = 0.5 * np.sum(weights**2)
    for f, y in zip(scores, Y, strict=True):
        pairs = [(k, m) for k in np.flatnonzero(y) for m in np.flatnonzero(y == 0)]
        total += sum(C / len(pairs) * max(0, 1 - f[k] + f[m]) for k, m in pairs)
    return total


def slow_thresholds(scores, Y):
    found = []
    for f, y in zip(scores, Y, strict=True):
        ends = [max(f) + 1, *sorted(f, reverse=True), min(f) - 1]
        middles = [(a + b) / 2 for a, b in pairwise(ends)]
        found.append(min(middles, key=lambda t: (np.sum((f > t) != y), -t)))
    return np.array(found)


@pytest.mark.parametrize("seed", [0, 1])
def test_ranking_is_the_minimum_of_the_definition(seed):
    X, Y = data(n=15, n_features=2, seed=seed)
    model = RankSVM(2.0, tol=1e-7, max_iter=50_000)
    items = np.column_stack([X, np.ones(len(X))])
    weights = model._ranking(items, Y)
    least = ranking_loss(weights.ravel(), X, Y, 2.0)
    assert model.gap_ <= 1e-7
    start = weights.ravel() + 0.05
    found = minimize(ranking_loss, start, (X, Y, 2.0), method="Powell", options={"maxiter": 200})
    assert least <= found.fun + 1e-6
    assert found.fun == pytest.approx(least, rel=0.05)
    for shift in np.random.default_rng(0).normal(size=(50, weights.size)):
        assert ranking_loss(weights.ravel() + 1e-3 * shift, X, Y, 2.0) >= least - 1e-7


def test_thresholds_make_the_fewest_mistakes():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 5))
    Y = (rng.random((200, 5)) < 0.4).astype(np.int8)
    np.testing.assert_allclose(best_thresholds(scores, Y), slow_thresholds(scores, Y))


def test_margins_are_scores_above_a_threshold_by_least_squares():
    X, Y = data()
    model = RankSVM(normalize=False, tol=1e-8, max_iter=20_000).fit(X, Y)
    items = np.column_stack([X, np.ones(len(X))])
    scores = items @ model._ranking(items, Y).T
    design = np.column_stack([scores, np.ones(len(X))])
    threshold = design @ np.linalg.pinv(design) @ slow_thresholds(scores, Y)
    expected = scores - threshold[:, np.newaxis]
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), expected > 0)


def test_a_single_label_is_an_ordinary_support_vector_machine():
    X, Y = data(n_labels=1)
    items = np.column_stack([X, np.ones(len(X))])
    weights = RankSVM(2.0, tol=1e-8, max_iter=50_000)._ranking(items, np.hstack([Y, 1 - Y]))
    # The difference of the two vectors has half the penalty, so C is twice as large.
    svm = LinearSVC(C=4.0, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=10**6)
    svm.fit(items, Y[:, 0])
    np.testing.assert_allclose(weights[0] - weights[1], svm.coef_[0], rtol=1e-3)


def test_a_single_label_is_ranked_against_its_complement():
    X, Y = data(n_labels=1)
    alone = RankSVM(tol=1e-8, max_iter=20_000).fit(X, Y)
    both = RankSVM(tol=1e-8, max_iter=20_000).fit(X, np.hstack([Y, 1 - Y]))
    np.testing.assert_allclose(alone.coef_[0], both.coef_[0], rtol=1e-3)
    assert roc_auc_score(Y, alone.decision_function(X)) > 0.8


def test_items_with_all_labels_or_none_only_move_the_threshold():
    X, Y = data()
    full = (Y.sum(axis=1) == 0) | (Y.sum(axis=1) == 3)
    assert full.any()
    items = np.column_stack([X, np.ones(len(X))])
    model = RankSVM(tol=1e-8, max_iter=20_000)
    all_items, ranked = model._ranking(items, Y), model._ranking(items[~full], Y[~full])
    np.testing.assert_allclose(all_items, ranked, atol=1e-4)


@pytest.mark.parametrize("shape", [(10, 4), (6, 6), (6, 10)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("normalize", [False, True])
def test_rotated_items_keep_their_products_and_weights_lead_back(shape, form, normalize):
    rng = np.random.default_rng(0)
    X = rng.normal(3, [1.0] * (shape[1] - 1) + [20.0], size=shape)
    X[:, 0] = 5
    items, to_features = rotated(form(X), normalize=normalize)
    expected = StandardScaler().fit_transform(X) if normalize else X
    assert items.shape[1] <= min(shape)
    np.testing.assert_allclose(items @ items.T, expected @ expected.T, atol=1e-6)
    if shape[1] <= shape[0]:
        np.testing.assert_allclose(items, expected, atol=1e-9)
    weights, intercept = rng.normal(size=(3, items.shape[1])), rng.normal(size=3)
    coef, offset = to_features(weights, intercept)
    np.testing.assert_allclose(X @ coef.T + offset, items @ weights.T + intercept, atol=1e-8)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_directions_without_items_are_left_out_in_every_unit(unit):
    rng = np.random.default_rng(0)
    X = unit * rng.normal(size=(6, 2)) @ rng.normal(size=(2, 10))
    items, _ = rotated(X, normalize=False)
    assert items.shape == (6, 2)
    np.testing.assert_allclose(items @ items.T, X @ X.T, atol=1e-9 * unit**2)


def test_more_features_than_items_change_nothing():
    X, Y = data(n_features=3)
    # Each feature twenty times, shorter: the products of items are the same.
    wide = np.repeat(X, 20, axis=1) / np.sqrt(20)
    exact = {"normalize": False, "tol": 1e-8, "max_iter": 20_000}
    narrow = RankSVM(**exact).fit(X, Y).decision_function(X)
    found = RankSVM(**exact).fit(wide, Y).decision_function(wide)
    np.testing.assert_allclose(found, narrow, atol=1e-4)


def test_units_of_features_do_not_matter_unless_asked():
    X, Y = data()
    moved = X * [1, 10, 100, 0.01] + [0, 5, -300, 1]
    plain, other = (RankSVM().fit(items, Y).decision_function(items) for items in (X, moved))
    np.testing.assert_allclose(other, plain, atol=1e-6)
    raw = RankSVM(normalize=False).fit(moved, Y).decision_function(moved)
    assert np.abs(raw - plain).max() > 0.1


@pytest.mark.parametrize(("cv", "random_state"), [(3, 0), (2, 5)])
def test_posteriors_are_platt_scaling_of_out_of_fold_margins(cv, random_state):
    X, Y = data(n=200)
    model = RankSVM(cv=cv, random_state=random_state).fit(X, Y)
    margins = np.empty(Y.shape)
    for rest, held in divisions_of(stratified_folds(Y, cv, seed=random_state)):
        margins[held] = RankSVM().fit(X[rest], Y[rest]).decision_function(X[held])
    for label in range(3):
        positives = Y[:, label].sum()
        high, low = (positives + 1) / (positives + 2), 1 / (200 - positives + 2)
        target = np.where(Y[:, label] == 1, high, low)
        twice, sides = np.tile(margins[:, [label]], (2, 1)), np.repeat([1, 0], 200)
        line = LogisticRegression(C=np.inf, tol=1e-10)
        line.fit(twice, sides, np.concatenate([target, 1 - target]))
        expected = line.predict_proba(model.decision_function(X)[:, [label]])[:, 1]
        np.testing.assert_allclose(model.predict_proba(X)[:, label], expected, atol=1e-3)


def test_posteriors_are_near_the_shares_of_their_items():
    X, Y = data(n=2000, seed=3)
    fresh, truth = data(n=2000, seed=3)[0][1000:], Y[1000:]
    posteriors = RankSVM(cv=2).fit(X[:1000], Y[:1000]).predict_proba(fresh)
    np.testing.assert_allclose(posteriors.mean(axis=0), truth.mean(axis=0), atol=0.04)
    sure = posteriors > expit(1.5)
    assert truth[sure].mean() > 0.85


def test_constant_labels_have_infinite_margins():
    X, Y = data(n=200)
    Y[:, 0], Y[:, 1] = 1, 0
    margins = RankSVM().fit(X, Y).decision_function(X)
    assert np.all(margins[:, 0] == np.inf)
    assert np.all(margins[:, 1] == -np.inf)
    assert np.isfinite(margins[:, 2]).all()
    posteriors = RankSVM().fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(posteriors[:, :2], [[1, 0]] * len(X))
    assert 0 < posteriors[:, 2].min() < posteriors[:, 2].max() < 1


class NoMargins(RankSVM):
    """Every item is on every boundary."""

    def _learn(self, items, Y):
        return np.zeros((Y.shape[1], items.shape[1])), np.zeros(Y.shape[1])


def test_items_on_the_boundary_are_not_voted_for():
    X, Y = data()
    np.testing.assert_array_equal(NoMargins().fit(X, Y).predict(X), 0)


def test_fewer_items_than_folds_are_left_out_one_by_one():
    X, Y = data(n=10)
    many, each = (RankSVM(cv=cv).fit(X, Y).predict_proba(X) for cv in (99, 10))
    np.testing.assert_array_equal(many, each)


def test_stopping_is_proven_and_counted():
    X, Y = data()
    exact, short = RankSVM(tol=1e-6).fit(X, Y), RankSVM(tol=1e-12, max_iter=3).fit(X, Y)
    assert exact.gap_ <= 1e-6
    assert short.n_iter_ == 3
    assert short.gap_ > 1e-12


def test_wrong_parameters_are_named():
    X, Y = data()
    for parameters, name in (({"C": -1.0}, "C"), ({"cv": 1}, "cv"), ({"max_iter": 0}, "max_iter")):
        with pytest.raises(InputError, match=name):
            RankSVM(**parameters).fit(X, Y)


def test_names_lead_back():
    assert parse("ranksvm(C=10)+pcc").name == "ranksvm(C=10)+pcc"
