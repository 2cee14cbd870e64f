import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from prevalens import Quantifier
from prevalens.aggregators import ACC
from prevalens.crossfit import CrossFit, HoldOut, Scheme, warn_of_copies
from prevalens.response import response
from prevalens.splits import stratified_folds, stratified_holdout
from prevalens.validation import InputError, PrevalensWarning, check_items


def data(n=80, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = (X[:, :n_labels] + rng.normal(size=(n, n_labels)) > 0).astype(np.int8)
    return X, Y


BOTH = ("votes", "posteriors")
CLASSIFIER = MultiOutputClassifier(LogisticRegression())


def test_cross_fitted_scores_are_those_of_a_classifier_without_that_fold():
    X, Y = data()
    labelled = CrossFit(4, random_state=7).fit(CLASSIFIER, X, Y, BOTH)
    folds = stratified_folds(Y, 4, seed=7)
    for fold in range(4):
        rows = folds == fold
        other = clone(CLASSIFIER).fit(X[~rows], Y[~rows])
        for kind in BOTH:
            np.testing.assert_array_equal(
                labelled.by_kind[kind].values[rows], response(other, X[rows], kind, 3).values
            )
    np.testing.assert_array_equal(labelled.rows, np.arange(80))


def test_the_final_classifier_of_a_cross_fit_knows_all_items():
    X, Y = data()
    labelled = CrossFit(4).fit(CLASSIFIER, X, Y)
    everything = clone(CLASSIFIER).fit(X, Y)
    np.testing.assert_array_equal(
        response(labelled.classifier, X, "posteriors", 3).values,
        response(everything, X, "posteriors", 3).values,
    )


def test_held_out_scores_are_those_of_a_classifier_that_did_not_see_them():
    X, Y = data()
    labelled = HoldOut(0.3, random_state=5).fit(CLASSIFIER, X, Y)
    rest, held = stratified_holdout(Y, 0.3, seed=5)
    fitted = clone(CLASSIFIER).fit(X[rest], Y[rest])
    np.testing.assert_array_equal(labelled.rows, held)
    expected = response(fitted, X, "posteriors", 3).values
    np.testing.assert_array_equal(labelled.scores.values, expected[held])
    # Not trained again: the classifier is the one the scores come from.
    np.testing.assert_array_equal(
        response(labelled.classifier, X, "posteriors", 3).values, expected
    )


def test_a_hold_out_may_train_again_on_all_items():
    X, Y = data()
    plain = HoldOut(0.3).fit(CLASSIFIER, X, Y)
    again = HoldOut(0.3, refit=True).fit(CLASSIFIER, X, Y)
    everything = clone(CLASSIFIER).fit(X, Y)
    np.testing.assert_array_equal(again.scores.values, plain.scores.values)
    np.testing.assert_array_equal(
        response(again.classifier, X, "posteriors", 3).values,
        response(everything, X, "posteriors", 3).values,
    )


class Memory(ClassifierMixin, BaseEstimator):
    """Votes 1 on items it was trained on; counts its trainings."""

    trainings = 0

    def fit(self, X, Y):
        type(self).trainings += 1
        self.seen_ = set(X[:, 0].tolist())
        self.n_labels_ = Y.shape[1]
        return self

    def predict_proba(self, X):
        seen = np.array([x in self.seen_ for x in X[:, 0]], dtype=float)
        return np.tile(seen[:, np.newaxis], (1, self.n_labels_))

    def predict(self, X):
        return self.predict_proba(X)


@given(n_folds=st.integers(2, 7), seed=st.integers(0, 50), order=st.integers(1, 2))
def test_no_item_is_scored_by_a_classifier_that_trained_on_it(n_folds, seed, order):
    X, Y = data(n=30, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrevalensWarning)
        crossed = CrossFit(n_folds, random_state=seed, order=order).fit(Memory(), X, Y)
        held = HoldOut(1 / n_folds, random_state=seed, order=order).fit(Memory(), X, Y)
    assert not crossed.scores.values.any()
    assert not held.scores.values.any()
    assert crossed.classifier.predict(X).all()


def test_two_kinds_cost_no_more_training_than_one():
    X, Y = data()
    Memory.trainings = 0
    CrossFit(5).fit(Memory(), X, Y, "votes")
    n_first = Memory.trainings
    CrossFit(5).fit(Memory(), X, Y, BOTH)
    assert (n_first, Memory.trainings - n_first) == (6, 6)
    Memory.trainings = 0
    HoldOut().fit(Memory(), X, Y, BOTH)
    assert Memory.trainings == 1


@pytest.mark.parametrize("scheme", [CrossFit(3), HoldOut(0.5)])
def test_a_frozen_classifier_is_asked_about_all_items_and_not_trained(scheme):
    X, Y = data()
    forest = RandomForestClassifier(5, random_state=0).fit(*data(seed=1))
    labelled = scheme.fit(FrozenEstimator(forest), X, Y, BOTH)
    np.testing.assert_array_equal(labelled.rows, np.arange(80))
    for kind in BOTH:
        np.testing.assert_array_equal(
            labelled.by_kind[kind].values, response(forest, X, kind, 3).values
        )
    assert labelled.classifier.estimator is forest


def test_folds_in_parallel_give_the_same():
    X, Y = data()
    alone = CrossFit(3).fit(CLASSIFIER, X, Y, BOTH)
    together = CrossFit(3, n_jobs=2).fit(CLASSIFIER, X, Y, BOTH)
    for kind in BOTH:
        np.testing.assert_array_equal(alone.by_kind[kind].values, together.by_kind[kind].values)
    np.testing.assert_array_equal(alone.classifier.predict(X), together.classifier.predict(X))


@pytest.mark.parametrize("scheme", [CrossFit(3), HoldOut(0.4)])
def test_items_of_every_form_give_the_same(scheme):
    X, Y = data()
    expected = scheme.fit(CLASSIFIER, X, Y).scores.values
    for items in (sp.csr_matrix(X), sp.csr_array(X), pd.DataFrame(X), X.tolist()):
        actual = scheme.fit(CLASSIFIER, items, Y).scores.values
        np.testing.assert_allclose(actual, expected, atol=1e-4)


def test_data_frames_reach_the_classifier_with_their_names():
    X, Y = data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    labelled = CrossFit(3).fit(make_pipeline(StandardScaler(), CLASSIFIER), frame, Y)
    assert labelled.classifier.feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series])
def test_texts_work(form):
    texts = form(["good cheap", "bad cheap", "good dear", "bad dear"] * 5)
    Y = [[1, 0], [0, 0], [1, 1], [0, 1]] * 5
    pipeline = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression(C=100)))
    labelled = CrossFit(4).fit(pipeline, texts, Y, "votes")
    np.testing.assert_array_equal(labelled.scores.values, Y)


def rare():
    X, Y = data(n=40)
    Y[:, 1] = 0
    Y[3, 1] = 1
    return X, Y


@pytest.mark.parametrize(
    "classifier",
    [
        MultiOutputClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        DecisionTreeClassifier(random_state=0),
    ],
)
def test_a_label_missing_from_a_training_part_is_scored_as_missing_and_reported(classifier):
    X, Y = rare()
    with pytest.warns(PrevalensWarning, match=r"training part: 1 \(in 1 of 5\)"):
        labelled = CrossFit(5).fit(classifier, X, Y, BOTH)
    fold_of = stratified_folds(Y, 5)
    without = fold_of == fold_of[3]
    for kind in BOTH:
        assert not labelled.by_kind[kind].values[without, 1].any()
    assert labelled.by_kind["posteriors"].values[:, [0, 2]].std() > 0


def test_the_warning_uses_the_names_of_the_labels():
    X, Y = rare()
    named = pd.DataFrame(Y, columns=["sun", "eclipse", "rain"])
    with pytest.warns(PrevalensWarning, match=r"eclipse \(in 1 of 5\)"):
        CrossFit(5).fit(CLASSIFIER, X, named)


def test_many_constant_labels_are_named_in_part():
    X, Y = data()
    Y = np.hstack([Y, np.zeros((80, 15), dtype=np.int8)])
    with pytest.warns(PrevalensWarning, match=r"12 \(in 1 of 1\) and 5 more\."):
        HoldOut().fit(CLASSIFIER, X, Y)


def test_a_label_that_is_constant_everywhere_is_certain():
    X, Y = data()
    Y[:, 0] = 1
    with pytest.warns(PrevalensWarning, match=r"0 \(in 5 of 5\)"):
        labelled = CrossFit().fit(CLASSIFIER, X, Y, BOTH)
    for kind in BOTH:
        assert labelled.by_kind[kind].values[:, 0].all()
    assert response(labelled.classifier, X, "posteriors", 3).values[:, 0].all()


def test_a_single_label_works():
    X, Y = data(n_labels=1)
    for classifier in (LogisticRegression(), DecisionTreeClassifier(), CLASSIFIER):
        labelled = CrossFit(3).fit(classifier, X, Y, BOTH)
        assert labelled.by_kind["posteriors"].values.shape == (80, 1)


def test_scores_of_several_kinds_must_be_asked_for_by_kind():
    X, Y = data()
    labelled = HoldOut().fit(CLASSIFIER, X, Y, BOTH)
    with pytest.raises(InputError, match="votes and posteriors; use by_kind"):
        _ = labelled.scores


@pytest.mark.parametrize("scheme", [CrossFit(), HoldOut()])
def test_wrong_input_is_refused(scheme):
    X, Y = data()
    with pytest.raises(InputError, match="X has 80 rows but Y has 79"):
        scheme.fit(CLASSIFIER, X, Y[:-1])
    with pytest.raises(InputError, match="offers no posteriors, only votes"):
        scheme.fit(OneVsRestClassifier(LinearSVC()), X, Y, "posteriors")
    with pytest.raises(InputError, match="kinds must be one of"):
        scheme.fit(CLASSIFIER, X, Y, "features")
    with pytest.raises(InputError, match="wrap it: PerLabel"):
        scheme.fit(LogisticRegression(), X, Y)


def test_wrong_parameters_are_refused():
    X, Y = data()
    with pytest.raises(InputError, match="n_folds must be at least 2"):
        CrossFit(1).fit(CLASSIFIER, X, Y)
    with pytest.raises(InputError, match="fraction must lie strictly between"):
        HoldOut(1.0).fit(CLASSIFIER, X, Y)


def test_schemes_are_values_with_parameters():
    assert clone(CrossFit(3, order=2)).get_params() == {
        "n_folds": 3,
        "order": 2,
        "random_state": 0,
        "n_jobs": None,
    }
    assert repr(HoldOut(0.2)) == "HoldOut(fraction=0.2)"


def repeated(times: int = 4) -> tuple[Any, Any, Any]:
    """Noise with labels that have nothing to do with it, every item several times."""
    rng = np.random.default_rng(0)
    items, labels = rng.normal(size=(100, 5)), (rng.random((100, 2)) < 0.4).astype(np.int8)
    return np.tile(items, (times, 1)), np.tile(labels, (times, 1)), np.tile(np.arange(100), times)


@pytest.mark.parametrize("scheme", [CrossFit(5), HoldOut(0.4), HoldOut(0.4, refit=True)], ids=repr)
def test_items_of_a_group_are_never_on_both_sides(scheme: Scheme) -> None:
    _, labels, groups = repeated()
    for rest, held in scheme.divide(labels, groups):
        assert not set(groups[rest]) & set(groups[held])
        assert len(rest) + len(held) == len(labels)


def test_copies_make_a_useless_classifier_look_good_unless_they_are_grouped() -> None:
    X, Y, groups = repeated()
    nearest = KNeighborsClassifier(1)

    def gain(groups: Any) -> float:
        votes = CrossFit(5).fit(nearest, X, Y, "votes", groups=groups).scores.values
        return float(votes[Y == 1].mean() - votes[Y == 0].mean())

    assert gain(None) > 0.6
    assert abs(gain(groups)) < 0.15


def test_a_quantifier_keeps_groups_together() -> None:
    X, Y, groups = repeated()
    leaky = Quantifier(KNeighborsClassifier(1), ACC()).fit
    with pytest.warns(PrevalensWarning, match="300 of 400 items are exact copies"):
        assert np.all(leaky(X, Y).aggregator_.tpr_ > 0.6)
    honest = leaky(X, Y, groups=groups).aggregator_
    assert np.all(np.abs(honest.tpr_ - honest.fpr_) < 0.2)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: [str(x) for x in X]])
def test_a_warning_of_copies_in_every_form_of_items(form: Any) -> None:
    X, Y, _ = repeated(2)
    with pytest.warns(PrevalensWarning, match="100 of 200 items are exact copies"):
        warn_of_copies(check_items(form(X)), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_copies(check_items(form(X[:105])), Y[:105])
        # The same features with other labels are no copies.
        warn_of_copies(check_items(form(X)), np.vstack([Y[:100], 1 - Y[:100]]))


def test_groups_that_cannot_be_divided_are_refused() -> None:
    X, Y, groups = repeated()
    with pytest.raises(InputError, match="2 groups cannot be cut into 5 folds"):
        CrossFit(5).fit(KNeighborsClassifier(1), X, Y, "votes", groups=groups % 2)
    with pytest.raises(InputError, match="X has 400 rows but groups has 3"):
        Quantifier(KNeighborsClassifier(1), ACC()).fit(X, Y, groups=[1, 2, 3])


def test_folds_say_which_classifier_scored_each_item():
    X = np.arange(40.0)[:, np.newaxis]
    Y = np.column_stack([np.arange(40) % 2, np.arange(40) % 3 == 0]).astype(np.int8)
    labelled = CrossFit(4).fit(Memory(), X, Y)
    np.testing.assert_array_equal(labelled.rows, np.arange(40))
    np.testing.assert_array_equal(labelled.folds, stratified_folds(Y, 4))
