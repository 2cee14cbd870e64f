"""ACC and PACC: the inverse is exact, and the guard is the test it says it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm, t
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.counting import CC, PCC
from prevalens.datasets import load
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError


def noisy_votes(rng: np.random.Generator, Y: np.ndarray, flip: float = 0.2) -> Scores:
    return Scores(np.where(rng.random(Y.shape) < flip, 1 - Y, Y), kind="votes")


def random_bags(rng: np.random.Generator, n_items: int) -> Samples:
    return Samples.from_indices(rng.integers(0, n_items, (20, 30)), n_items=n_items)


def test_a_perfect_classifier_makes_acc_equal_cc() -> None:
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (80, 3))
    votes, samples = Scores(Y, kind="votes"), random_bags(rng, 80)
    acc = ACC().fit(votes, Y)
    assert acc.adjusted_.all()
    np.testing.assert_allclose(
        acc.aggregate(votes, samples), CC().fit(votes, Y).aggregate(votes, samples), atol=1e-15
    )


def test_the_labelled_pool_gets_its_own_prevalence() -> None:
    rng = np.random.default_rng(1)
    Y = (rng.random((300, 4)) < [0.1, 0.3, 0.5, 0.9]).astype(np.int8)
    votes = noisy_votes(rng, Y)
    estimates = ACC().fit(votes, Y).aggregate(votes, Samples.whole(300))
    np.testing.assert_allclose(estimates[0], Y.mean(axis=0), atol=1e-12)


def test_any_sample_is_right_if_scores_depend_on_the_class_alone() -> None:
    rng = np.random.default_rng(2)
    Y = rng.integers(0, 2, (200, 3))
    posteriors = Scores(np.where(Y == 1, [0.6, 0.31, 0.9], [0.5, 0.3, 0.2]), kind="posteriors")
    samples = random_bags(rng, 200)
    estimates = PACC().fit(posteriors, Y).aggregate(posteriors, samples)
    np.testing.assert_allclose(estimates, samples.mean(Y), atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_plain_inversion_solves_the_two_equations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, (60, 3))
    Y[:2] = [[0, 0, 0], [1, 1, 1]]
    values = np.clip(rng.random((60, 3)) * 0.8 + 0.2 * Y, 0, 1)
    posteriors, samples = Scores(values, kind="posteriors"), random_bags(rng, 60)
    estimates = PACC(guard=None).fit(posteriors, Y).aggregate(posteriors, samples)
    for j in range(3):
        tpr, fpr = values[Y[:, j] == 1, j].mean(), values[Y[:, j] == 0, j].mean()
        rates = np.array([[1 - fpr, 1 - tpr], [fpr, tpr]])
        for i, bag in enumerate(samples):
            mean = values[bag, j].mean()
            exact = np.linalg.solve(rates, [1 - mean, mean])[1]
            assert estimates[i, j] == pytest.approx(np.clip(exact, 0, 1), abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1), guard=st.floats(0.1, 6))
def test_the_guard_is_welchs_test_with_smoothed_variances(seed: int, guard: float) -> None:
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, (50, 5))
    Y[:4] = [[0] * 5, [0] * 5, [1] * 5, [1] * 5]
    values = expit(rng.normal(size=(50, 5)) + Y * rng.normal(size=5))
    pacc = PACC(guard=guard).fit(Scores(values, kind="posteriors"), Y)
    for j in range(5):
        positives, negatives = values[Y[:, j] == 1, j], values[Y[:, j] == 0, j]
        spread = 4 * values[:, j].var(ddof=1)
        errors = [
            (len(part) * part.var() + spread) / (len(part) + 3) / len(part)
            for part in (positives, negatives)
        ]
        freedom = sum(errors) ** 2 / (
            errors[0] ** 2 / (len(positives) - 1) + errors[1] ** 2 / (len(negatives) - 1)
        )
        statistic = (positives.mean() - negatives.mean()) / np.sqrt(sum(errors))
        assert pacc.adjusted_[j] == (t.sf(statistic, freedom) < norm.sf(guard))
        assert pacc.tpr_[j] == pytest.approx(positives.mean())
        assert pacc.fpr_[j] == pytest.approx(negatives.mean())


def test_labels_that_are_not_adjusted_are_counted() -> None:
    rng = np.random.default_rng(3)
    Y = rng.integers(0, 2, (100, 3))
    posteriors = Scores(rng.random((100, 3)), kind="posteriors")
    samples = random_bags(rng, 100)
    pacc = PACC(guard=1e9).fit(posteriors, Y)
    assert not pacc.adjusted_.any()
    np.testing.assert_array_equal(
        pacc.aggregate(posteriors, samples),
        PCC().fit(posteriors, Y).aggregate(posteriors, samples),
    )


def test_noise_is_hardly_ever_adjusted() -> None:
    rng = np.random.default_rng(4)
    Y = rng.random((500, 2000)) < 0.3
    posteriors = Scores(rng.random((500, 2000)), kind="posteriors")
    assert PACC().fit(posteriors, Y).adjusted_.sum() <= 1


def test_two_positives_that_agree_by_chance_are_no_certainty() -> None:
    votes = np.concatenate([[1, 1], np.tile([0, 1], 15)])[:, np.newaxis]
    Y = np.concatenate([[1, 1], np.zeros(30, dtype=int)])[:, np.newaxis]
    assert not ACC().fit(Scores(votes, "votes"), Y).adjusted_[0]


@pytest.mark.parametrize("n_positives", [2, 3, 5, 10, 50])
@pytest.mark.parametrize("rate", [0.5, 0.2, 0.05])
def test_useless_votes_pass_as_rarely_as_the_docstring_says(n_positives: int, rate: float) -> None:
    rng = np.random.default_rng(n_positives)
    votes = (rng.random((n_positives + 60, 20_000)) < rate).astype(np.float64)
    Y = np.zeros(votes.shape, dtype=np.int8)
    Y[:n_positives] = 1
    passed = ACC().fit(Scores(votes, "votes"), Y).adjusted_.sum()
    assert passed <= (0 if n_positives <= 5 else 23e-5 * 20_000)


def test_five_positives_are_enough_for_a_perfect_classifier() -> None:
    for n_positives in (4, 5):
        Y = (np.arange(300) < n_positives).astype(int)[:, np.newaxis]
        assert ACC().fit(Scores(Y, "votes"), Y).adjusted_[0] == (n_positives == 5)


@pytest.mark.parametrize("guard", [None, 0, 4.0])
def test_a_label_that_is_constant_or_scored_constantly_is_never_adjusted(
    guard: float | None,
) -> None:
    rng = np.random.default_rng(5)
    Y = rng.integers(0, 2, (90, 3))
    Y[:, 0], Y[:, 1] = 0, 1
    values = rng.random((90, 3))
    values[:, 2] = 0.1 + 0.2  # Has rounding in its mean.
    pacc = PACC(guard=guard).fit(Scores(values, kind="posteriors"), Y)
    assert not pacc.adjusted_.any()
    assert np.isnan(pacc.tpr_[0])
    assert np.isnan(pacc.fpr_[1])


def test_one_positive_is_too_few_for_a_standard_error_only() -> None:
    votes, Y = Scores([[1], [0], [0], [1]], kind="votes"), [[1], [0], [0], [0]]
    assert not ACC(guard=0.1).fit(votes, Y).adjusted_[0]
    assert ACC(guard=0).fit(votes, Y).adjusted_[0]
    assert ACC(guard=None).fit(votes, Y).adjusted_[0]


def test_only_no_guard_at_all_inverts_a_classifier_that_is_wrong() -> None:
    Y = np.array([[1], [1], [0], [0]])
    votes = Scores(1 - Y, kind="votes")
    assert not ACC(guard=0).fit(votes, Y).adjusted_[0]
    plain = ACC(guard=None).fit(votes, Y)
    first = Samples.from_indices([[0, 1, 2]], n_items=4)
    assert plain.aggregate(votes, first)[0, 0] == pytest.approx(2 / 3)


@pytest.mark.parametrize("guard", [-1, "4", True, float("nan")])
def test_a_strange_guard_is_named(guard: object) -> None:
    votes = Scores([[1], [0]], kind="votes")
    with pytest.raises(InputError, match="guard must be a number of standard errors"):
        ACC(guard=guard).fit(votes, [[1], [0]])  # type: ignore[arg-type]


@pytest.mark.data
def test_the_guard_saves_the_rarest_label_of_yeast() -> None:
    data = load("yeast")
    rare = int(np.argmin(data.train.Y.sum(axis=0)))
    X, y = np.asarray(data.train.X), data.train.Y[:, rare]
    model = LogisticRegression(max_iter=500)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    held_out = cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, [1]]
    test = Scores(model.fit(X, y).predict_proba(np.asarray(data.test.X))[:, [1]])
    rng = np.random.default_rng(0)
    n_test = len(data.test.Y)
    bags = [rng.choice(n_test, 100, replace=False) for _ in range(200)]
    samples = Samples.from_indices(np.array(bags), n_items=n_test)
    truth = samples.mean(data.test.Y[:, [rare]])

    def error(pacc: PACC) -> float:
        fitted = pacc.fit(Scores(held_out), y[:, np.newaxis])
        return float(np.abs(fitted.aggregate(test, samples) - truth).mean())

    assert error(PACC()) < 0.02
    assert error(PACC(guard=None)) > 2 * error(PACC())
