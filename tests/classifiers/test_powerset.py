import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from skmultilearn.problem_transform import LabelPowerset

from prevalens.classifiers.powerset import Powerset
from prevalens.response import offers


def data(n=120, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, :n_labels] + rng.normal(size=(n, n_labels)) > 0).astype(np.int8)


def test_states_are_the_labelsets_of_training():
    X, Y = data()
    Y = Y[:, [0, 0, 1]]
    model = Powerset().fit(X, Y)
    assert model.states_.tolist() == [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]]
    assert model.states_.dtype == np.int8


def test_label_posteriors_are_sums_of_state_posteriors():
    X, Y = data()
    model = Powerset(LogisticRegression()).fit(X, Y)
    states = model.predict_state_proba(X)
    np.testing.assert_allclose(states.sum(axis=1), 1)
    for label in range(3):
        expected = states[:, model.states_[:, label] == 1].sum(axis=1)
        np.testing.assert_allclose(model.predict_proba(X)[:, label], expected)


def test_votes_are_the_most_probable_labelset():
    X, Y = data()
    model = Powerset(LogisticRegression()).fit(X, Y)
    best = model.predict_state_proba(X).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.states_[best])
    assert np.any(model.predict(X) != (model.predict_proba(X) > 0.5))


def test_it_agrees_with_scikit_multilearn():
    X, Y = data()
    theirs = LabelPowerset(LogisticRegression(), [False, True]).fit(X, Y)
    ours = Powerset(LogisticRegression()).fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X).toarray())
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X).toarray())


def test_the_default_is_a_multinomial_logistic_regression():
    X, Y = data()
    expected = Powerset(LogisticRegression(tol=1e-8, max_iter=1000)).fit(X, Y)
    np.testing.assert_allclose(
        Powerset().fit(X, Y).predict_proba(X), expected.predict_proba(X), atol=1e-3
    )


def test_a_single_labelset_needs_no_estimator():
    X, _ = data()
    Y = np.tile([1, 0, 1], (120, 1))
    model = Powerset().fit(X, Y)
    assert model.estimator_ is None
    np.testing.assert_array_equal(model.predict(X), Y)
    np.testing.assert_array_equal(model.predict_proba(X), Y)
    np.testing.assert_array_equal(model.predict_state_proba(X), np.ones((120, 1)))


def test_posteriors_are_offered_if_the_estimator_has_them():
    X, Y = data()
    model = Powerset(LinearSVC())
    assert offers(model) == {"votes"}
    assert not hasattr(model, "predict_state_proba")
    assert model.fit(X, Y).predict(X).shape == (120, 3)


@pytest.mark.parametrize("n_labels", [1, 3])
def test_a_tree_that_remembers_answers_the_labelsets_it_has_seen(n_labels):
    X, Y = data(n_labels=n_labels)
    np.testing.assert_array_equal(Powerset(DecisionTreeClassifier()).fit(X, Y).predict(X), Y)
