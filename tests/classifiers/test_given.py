"""Scores that were given by labellers."""

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens import Quantifier, parse
from prevalens.aggregators import CC, PCC
from prevalens.classifiers import Given, PerLabel
from prevalens.classifiers.given import raw_votes
from prevalens.errors import InputError

PREVALENCE = np.array([0.3, 0.15, 0.4])


def _labelled(n_items, rng, *, hits=0.75, false_alarms=0.1, missing=0.0, prevalence=PREVALENCE):
    """Labels, and votes with these rates; a share of the items has no answer."""
    Y = (rng.random((n_items, len(prevalence))) < prevalence).astype(int)
    votes = np.where(Y == 1, rng.random(Y.shape) < hits, rng.random(Y.shape) < false_alarms)
    scores = votes.astype(float)
    scores[rng.random(n_items) < missing] = np.nan
    return scores, Y


def test_votes_become_the_frequencies_of_the_labels_behind_them():
    scores, Y = _labelled(4000, np.random.default_rng(0))
    posteriors = Given().fit(scores, Y).predict_proba(scores)
    for label in range(3):
        for vote in (0, 1):
            rows = scores[:, label] == vote
            expected = Y[rows, label].mean()
            assert posteriors[rows, label] == pytest.approx(expected, abs=0.02)


def test_a_missing_answer_is_a_value_of_its_own_and_not_a_zero():
    rng = np.random.default_rng(1)
    scores, Y = _labelled(3000, rng)
    # The labeller refuses items of the first label more often.
    refused = rng.random(3000) < np.where(Y[:, 0] == 1, 0.6, 0.1)
    scores[refused] = np.nan
    given = Given().fit(scores, Y)
    silent, no = given.predict_proba([[np.nan] * 3, [0.0] * 3])[:, 0]
    assert silent == pytest.approx(Y[refused, 0].mean(), abs=0.03)
    assert no < silent / 3
    assert given.predict([[np.nan] * 3]).tolist() == [[0, 0, 0]]


def test_probabilities_that_are_right_stay_as_they_are():
    rng = np.random.default_rng(2)
    scores = rng.beta(0.5, 1.5, size=(5000, 2))
    Y = (rng.random(scores.shape) < scores).astype(int)
    posteriors = Given().fit(scores, Y).predict_proba(scores)
    assert np.abs(posteriors - scores).mean() < 0.02


def test_few_positive_items_are_not_taken_at_their_word():
    rng = np.random.default_rng(3)
    prevalence = np.array([0.3, 0.3, 0.3, 0.02])
    scores, Y = _labelled(150, rng, prevalence=prevalence)
    # All votes for the rare label happen to be right.
    Y[:, 3] = 0
    Y[:3, 3] = 1
    scores[:, 3] = Y[:, 3]
    sure = Given().fit(scores, Y).predict_proba([[0, 0, 0, 1.0]])[0, 3]
    assert 0.1 < sure < 0.95


def test_several_labellers_are_members_and_together_better_than_each():
    rng = np.random.default_rng(4)
    Y = (rng.random((2000, 2)) < 0.3).astype(int)
    labellers = [
        np.where(Y == 1, rng.random(Y.shape) < 0.7, rng.random(Y.shape) < 0.2) for _ in range(3)
    ]
    X = np.hstack(labellers).astype(float)
    given = Given().fit(X, Y)
    members = given.member_posteriors(X)
    assert members.shape == (2000, 4 * 2)
    assert np.array_equal(given.mean_of(members), given.predict_proba(X))
    losses = np.square(members.reshape(2000, 4, 2) - Y[:, None]).mean(axis=(0, 2))
    assert losses[3] < 0.9 * losses[:3].min()
    assert members[:, :2] == pytest.approx(Given().fit(X[:, :2], Y).predict_proba(X[:, :2]))


def test_votes_are_those_of_the_labellers_that_answered():
    nan = np.nan
    X = np.array([[0.9, 0.2, 0.4, 0.9], [nan, 0.2, 1.0, nan], [nan, nan, nan, nan]])
    assert raw_votes(X, 2).tolist() == [[True, True], [True, False], [False, False]]


def test_counting_given_votes_does_not_correct_them():
    scores, Y = _labelled(300, np.random.default_rng(5), false_alarms=0.3)
    batch, _ = _labelled(400, np.random.default_rng(6))
    counted = Quantifier(Given(), CC()).fit(scores, Y).quantify(batch)
    assert counted.point == pytest.approx(batch.mean(axis=0))
    corrected = Quantifier(Given(), PCC()).fit(scores, Y).quantify(scores)
    assert np.abs(corrected.point - Y.mean(axis=0)).max() < 0.01
    assert np.abs(scores.mean(axis=0) - Y.mean(axis=0)).max() > 0.03


def test_the_automatic_choice_takes_scores_with_missing_answers():
    scores, Y = _labelled(200, np.random.default_rng(7), missing=0.2)
    quantifier = Quantifier(Given()).fit(scores, Y, labels=["a", "b", "c"])
    assert quantifier.name == "auto(given)"
    assert parse(quantifier.name).is_automatic
    assert quantifier.choice_.name.startswith("given+")
    moved = _labelled(1500, np.random.default_rng(8), missing=0.2, prevalence=PREVALENCE[::-1])
    estimate = quantifier.quantify(moved[0], interval=0.9)
    truth = moved[1].mean(axis=0)
    assert np.abs(estimate.point - truth).mean() < 0.5 * np.abs(PREVALENCE - truth).mean()


def _with_features(n_items, rng, *, n_features=30, prevalence=PREVALENCE):
    """Weak votes, and features of which one per label tells it better than the votes do."""
    scores, Y = _labelled(n_items, rng, hits=0.3, missing=0.1, prevalence=prevalence)
    features = rng.normal(size=(n_items, n_features))
    features[:, : Y.shape[1]] += 3.0 * Y
    return scores, features, Y


def test_features_besides_the_scores_make_the_posteriors_sharper():
    scores, features, Y = _with_features(400, np.random.default_rng(11))
    later_scores, later_features, later = _with_features(2000, np.random.default_rng(12))
    alone = Given().fit(scores, Y).predict_proba(later_scores)
    both = Given(n_labellers=1).fit(np.hstack([scores, features]), Y)
    items = np.hstack([later_scores, later_features])
    posteriors = both.predict_proba(items)
    assert np.square(posteriors - later).mean() < 0.7 * np.square(alone - later).mean()
    members = both.member_posteriors(items)
    assert members[:, :3] == pytest.approx(alone)
    assert np.array_equal(both.mean_of(members), posteriors)
    assert np.array_equal(both.predict(items), Given().fit(scores, Y).predict(later_scores))


def test_features_that_tell_nothing_hardly_change_the_posteriors():
    rng = np.random.default_rng(13)
    scores, Y = _labelled(400, rng)
    noise = rng.normal(size=(400, 20))
    alone = Given().fit(scores, Y).predict_proba(scores)
    both = Given(n_labellers=1).fit(np.hstack([scores, noise]), Y)
    other = np.hstack([scores, rng.normal(size=(400, 20))])
    assert np.abs(both.predict_proba(other) - alone).mean() < 0.03


@pytest.mark.parametrize("n_features", [5, 200])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_learner_by_default_is_the_regression_that_its_docstring_names(n_features, sparse):
    scores, features, Y = _with_features(120, np.random.default_rng(14), n_features=n_features)
    X = np.hstack([scores, features])
    named = PerLabel(C=10.0, class_weight="balanced")
    expected = Given(named, n_labellers=1).fit(X, Y).predict_proba(X)
    items = sp.csr_array(X) if sparse else X
    found = Given(n_labellers=1).fit(items, Y).predict_proba(items)
    assert found == pytest.approx(expected, abs=0.01)


def test_features_without_any_variation_are_no_evidence():
    scores, Y = _labelled(60, np.random.default_rng(15))
    both = Given(n_labellers=1).fit(np.hstack([scores, np.zeros((60, 2))]), Y)
    posteriors = both.predict_proba(np.hstack([scores, np.zeros((60, 2))]))
    assert np.abs(posteriors - Given().fit(scores, Y).predict_proba(scores)).max() < 0.05


def test_several_labellers_with_features_are_separate_or_together():
    scores, features, Y = _with_features(150, np.random.default_rng(16))
    X = np.hstack([scores, 1 - scores, features])
    separate = Given(n_labellers=2).fit(X, Y).member_posteriors(X)
    together = Given(n_labellers=2, separate=False).fit(X, Y).member_posteriors(X)
    assert separate.shape == (150, 3 * 3)
    assert together.shape == (150, 2 * 3)
    assert np.array_equal(separate[:, 6:], together[:, 3:])
    both = np.hstack([scores, 1 - scores])
    assert together[:, :3] == pytest.approx(Given().fit(both, Y).predict_proba(both))


def test_the_automatic_choice_follows_a_shift_better_with_features():
    scores, features, Y = _with_features(200, np.random.default_rng(17))
    moved = _with_features(600, np.random.default_rng(18), prevalence=PREVALENCE[::-1] + 0.2)
    truth = moved[2].mean(axis=0)
    alone = Quantifier(Given()).fit(scores, Y).quantify(moved[0]).point
    both = Quantifier(Given(n_labellers=1)).fit(np.hstack([scores, features]), Y)
    assert both.name == "auto(given(n_labellers=1))"
    assert parse(both.name).get_params()["classifier__n_labellers"] == 1
    assert both.choice_.name.startswith("given(n_labellers=1)+mixture")
    estimate = both.quantify(np.hstack(moved[:2]), interval=0.9)
    assert np.abs(estimate.point - truth).mean() < 0.5 * np.abs(alone - truth).mean()
    assert np.all((estimate.lower <= truth) & (truth <= estimate.upper))


@pytest.mark.parametrize(
    ("n_labellers", "X", "says"),
    [
        (1, [[0.5, 0.5]], "leave n_labellers out"),
        (0, [[0.5, 0.5, 1.0]], "n_labellers must be at least 1"),
        (1, [[0.5, 1.5, 1.0]], r"Scores lie between 0 and 1.*got 1.5 at row 0, column 1"),
        (1, [[0.5, 0.5, np.inf]], "infinite|inf"),
    ],
)
def test_scores_and_features_that_do_not_fit_are_refused_in_a_sentence(n_labellers, X, says):
    Y = [[0, 1], [1, 0]] * 5
    with pytest.raises(InputError, match=says):
        Given(n_labellers=n_labellers).fit(np.repeat(X, 10, axis=0), Y)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_scores_by_column_and_by_row_have_the_same_posteriors(missing):
    scores, Y = _labelled(200, np.random.default_rng(19), missing=missing)
    given = Given().fit(scores, Y)
    expected = given.predict_proba(np.ascontiguousarray(scores))
    by_column = given.predict_proba(np.asfortranarray(scores))
    np.testing.assert_allclose(by_column, expected, rtol=1e-12)
    assert given.predict_proba(np.asfortranarray(scores, dtype=np.float32)).dtype == np.float64


def test_other_methods_still_refuse_missing_values():
    scores, Y = _labelled(50, np.random.default_rng(9), missing=0.2)
    with pytest.raises(InputError, match="fill or drop missing"):
        parse("lr+pcc").fit(scores, Y)


@pytest.mark.parametrize(
    ("X", "says"),
    [
        ([[0.5, 85.0], [0.1, 0.2]], "got 85 at row 0, column 1; divide percentages by 100"),
        ([[0.5, -0.1], [0.1, 0.2]], "got -0.1 at row 0, column 1"),
        ([[0.5, np.inf], [0.1, 0.2]], "inf at row 0, column 1"),
        ([[0.5, 0.2, 0.1], [0.1, 0.2, 0.4]], "3 columns of scores for 2 labels"),
        ([["a", "b"], ["c", "d"]], "must hold numbers"),
    ],
)
def test_what_are_no_scores_is_refused(X, says):
    with pytest.raises(InputError, match=says):
        Given().fit(X, [[0, 1], [1, 0]])


def test_only_given_scores_can_be_named_in_the_automatic_choice():
    with pytest.raises(InputError, match="only given scores"):
        parse("auto(lr)")


def test_labellers_that_are_not_separate_give_one_posterior_per_label():
    rng = np.random.default_rng(10)
    Y = (rng.random((100, 2)) < 0.4).astype(int)
    X = np.hstack([np.clip(Y + rng.normal(0, 0.4, Y.shape), 0, 1) for _ in range(2)])
    together, separate = Given(separate=False).fit(X, Y), Given().fit(X, Y)
    assert together.member_posteriors(X) == pytest.approx(separate.predict_proba(X))
    choice = Quantifier(Given()).fit(X, Y).choice_
    tried = {candidate.name.split("+")[0] for candidate in choice.candidates}
    assert tried >= {"given", "given(separate=False)"}


def test_sparse_votes_are_dense_ones() -> None:
    rng = np.random.default_rng(3)
    votes, Y = rng.integers(0, 2, (2, 60, 3))
    dense, sparse = Given().fit(votes, Y), Given().fit(sp.csr_matrix(votes), Y)
    expected = dense.predict_proba(votes)
    np.testing.assert_array_equal(sparse.predict_proba(sp.csr_matrix(votes)), expected)
