import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.classifiers.boosting import AdaBoostMH, _questions
from prevalens.validation import InputError


def data(n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 4)) < 0.4, 0, rng.normal(size=(n, 4))).round(2)
    return X, (X[:, :3] + 0.4 * rng.normal(size=(n, 3)) > 0.2).astype(np.int8)


def textbook_adaboost(X, Y, X_new, n_rounds, candidates):
    """Schapire and Singer 2000, real-valued AdaBoost.MH, one question and one label at a time."""
    n, n_labels = Y.shape
    weight = np.full((n, n_labels), 1 / (n * n_labels))
    score = np.zeros((len(X_new), n_labels))
    for _ in range(n_rounds):
        best = None
        for j, threshold in candidates:
            says, Z = np.zeros((2, n_labels)), 0.0
            for answer in (0, 1):
                rows = (X[:, j] > threshold) == answer
                for label in range(n_labels):
                    positive = weight[rows & (Y[:, label] == 1), label].sum()
                    negative = weight[rows & (Y[:, label] == 0), label].sum()
                    Z += 2 * np.sqrt(positive * negative)
                    smooth = 1 / (n * n_labels)
                    says[answer, label] = np.log((positive + smooth) / (negative + smooth)) / 2
            if best is None or best[0] - 1e-12 > Z:
                best = (Z, j, threshold, says)
        _, j, threshold, says = best
        weight *= np.exp(-(2.0 * Y - 1) * says[(X[:, j] > threshold).astype(int)])
        weight /= weight.sum()
        score += says[(X_new[:, j] > threshold).astype(int)]
    return 1 / (1 + np.exp(-2 * score))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_it_is_the_textbook_over_all_thresholds(seed, form):
    X, Y = data(seed=seed)
    X_new, _ = data(seed=7)
    candidates = [(j, t) for j in range(4) for t in np.unique(np.append(X[:, j], 0))]
    expected = textbook_adaboost(X, Y, X_new, 6, candidates)
    # As many thresholds as values: every value is one.
    model = AdaBoostMH(6, 1000).fit(form(X), Y)
    np.testing.assert_allclose(model.predict_proba(form(X_new)), expected, rtol=1e-9)


def test_few_thresholds_are_among_the_values():
    X, Y = data()
    model = AdaBoostMH(20, 3).fit(X, Y)
    for feature, threshold in zip(model.feature_, model.threshold_, strict=True):
        assert threshold in np.append(X[:, feature], 0)
    assert len(set(zip(model.feature_, model.threshold_, strict=True))) <= 4 * 4


def test_thresholds_are_the_values_at_evenly_spaced_ranks_and_zero():
    # Ranks 0, 2.25, 4.5 and 6.75 of the ten values, however often each occurs.
    column = np.array([[0, 3, 3, 3, 3, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10.0]]).T
    questions = _questions(column, 4)
    assert questions.threshold.tolist() == [-np.inf, 0, 1, 3, 5, 7]


def test_zeros_that_are_stored_are_zeros():
    X, Y = data()
    stored = sp.csr_array(np.ones_like(X))
    stored.data = X.ravel().copy()
    plain, other = (AdaBoostMH(20, 3).fit(form, Y) for form in (X, stored))
    np.testing.assert_array_equal(other.threshold_, plain.threshold_)
    np.testing.assert_allclose(other.predict_proba(stored), plain.predict_proba(X), rtol=1e-9)


def test_equal_questions_are_decided_by_order_and_others_by_z():
    X, Y = data()
    # A question about the negative of a feature has the same Z but for rounding.
    mirrored = AdaBoostMH(20, 1000).fit(np.hstack([X, -X]), Y)
    assert mirrored.feature_.max() < 4
    # The second feature is wrong for 300 of 1000 items, the first for one more.
    has = np.arange(1000) % 2
    wrong = has ^ (np.arange(1000) < 300)
    worse = wrong ^ (np.arange(1000) == 999)
    chosen = AdaBoostMH(1).fit(np.column_stack([worse, wrong]), has[:, np.newaxis])
    assert chosen.feature_.tolist() == [1]


def test_training_errors_fall_with_the_rounds():
    X, Y = data()
    errors = [np.mean(AdaBoostMH(n).fit(X, Y).predict(X) != Y) for n in (1, 10, 200)]
    assert errors[0] > errors[1] > errors[2]


def test_items_without_any_difference_get_the_training_share():
    Y = np.array([[1, 0]] * 30 + [[0, 0]] * 10)
    posteriors = AdaBoostMH(1).fit(np.zeros((40, 2)), Y).predict_proba([[5.0, 1.0]])
    np.testing.assert_allclose(posteriors[0], [0.75, 0.0], atol=0.03)


@pytest.mark.parametrize("name", ["n_rounds", "n_thresholds"])
def test_wrong_parameters_are_named(name):
    with pytest.raises(InputError, match=name):
        AdaBoostMH(**{name: 0}).fit(*data())
