import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from prevalens.classifiers.powerset import Powerset, RAkEL
from prevalens.labelsets import RandomLabelsets, RandomPartition
from prevalens.response import offers
from prevalens.validation import InputError


def data(n=100, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ rng.normal(size=(4, n_labels)) + rng.normal(size=(n, n_labels)) > 0).astype(
        np.int8
    )


def test_disjoint_groups_are_powersets_of_their_own():
    X, Y = data()
    model = RAkEL(LogisticRegression(), random_state=3).fit(X, Y)
    assert sorted(len(labels) for labels in model.labelsets_) == [2, 3]
    for labels in model.labelsets_:
        alone = Powerset(LogisticRegression()).fit(X, Y[:, labels])
        np.testing.assert_array_equal(model.predict_proba(X)[:, labels], alone.predict_proba(X))
        np.testing.assert_array_equal(model.predict(X)[:, labels], alone.predict(X))


def test_overlapping_groups_are_averaged():
    X, Y = data()
    model = RAkEL(LogisticRegression(), RandomLabelsets(3), random_state=3).fit(X, Y)
    posteriors, votes = [[] for _ in range(5)], [[] for _ in range(5)]
    for labels in model.labelsets_:
        alone = Powerset(LogisticRegression()).fit(X, Y[:, labels])
        for position, label in enumerate(labels):
            posteriors[label].append(alone.predict_proba(X)[:, position])
            votes[label].append(alone.predict(X)[:, position])
    for label in range(5):
        assert len(posteriors[label]) > 1
        np.testing.assert_allclose(
            model.predict_proba(X)[:, label], np.mean(posteriors[label], axis=0)
        )
        np.testing.assert_array_equal(
            model.predict(X)[:, label], np.mean(votes[label], axis=0) > 0.5
        )


def test_one_group_of_all_labels_is_the_powerset():
    X, Y = data()
    powerset = Powerset(LogisticRegression()).fit(X, Y)
    for labelsets in ([range(5)], RandomPartition(9), RandomLabelsets(5), RandomPartition(3, 1)):
        model = RAkEL(LogisticRegression(), labelsets).fit(X, Y)
        np.testing.assert_array_equal(model.predict_proba(X), powerset.predict_proba(X))
        np.testing.assert_array_equal(model.predict(X), powerset.predict(X))


def test_groups_of_one_label_are_independent():
    X, Y = data()
    model = RAkEL(LogisticRegression(), RandomPartition(1)).fit(X, Y)
    for label in range(5):
        alone = LogisticRegression().fit(X, Y[:, label])
        np.testing.assert_allclose(model.predict_proba(X)[:, label], alone.predict_proba(X)[:, 1])


def test_groups_may_be_trained_at_the_same_time():
    X, Y = data()
    alone = RAkEL(LogisticRegression(), random_state=0).fit(X, Y)
    together = RAkEL(LogisticRegression(), n_jobs=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(alone.predict_proba(X), together.predict_proba(X))


def test_parameters_of_the_groups_can_be_set():
    model = RAkEL(labelsets=RandomLabelsets()).set_params(labelsets__size=2, labelsets__n_sets=7)
    X, Y = data()
    assert [len(labels) for labels in model.fit(X, Y).labelsets_] == [2] * 7


def test_the_estimator_decides_what_is_offered():
    assert offers(RAkEL(LinearSVC())) == {"votes"}


def test_given_groups_must_hold_every_label():
    X, Y = data()
    with pytest.raises(InputError, match="Label 4 stands in no labelset"):
        RAkEL(labelsets=[[0, 1], [2, 3]]).fit(X, Y)
