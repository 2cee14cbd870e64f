import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from prevalens.response import VaryingLabels, constant_labels, offers, response, train
from prevalens.validation import InputError

X = np.arange(12.0)[:, np.newaxis]
Y = np.column_stack([X[:, 0] > 5, np.ones(12), X[:, 0] < 3, np.zeros(12)]).astype(np.int8)


def test_constant_labels_are_found_whatever_their_value():
    assert constant_labels(Y).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    "refusing",
    [MultiOutputClassifier(LogisticRegression()), ClassifierChain(LogisticRegression())],
)
def test_a_classifier_that_refuses_constant_labels_is_trained_on_the_others(refusing):
    with pytest.raises(ValueError, match="class"):
        clone(refusing).fit(X, Y)
    fitted = train(refusing, X, Y)
    alone = clone(refusing).fit(X, Y[:, [0, 2]])
    posteriors = response(fitted, X, "posteriors", 4).values
    np.testing.assert_array_equal(posteriors[:, [1, 3]], Y[:, [1, 3]])
    np.testing.assert_array_equal(posteriors[:, [0, 2]], response(alone, X, "posteriors", 2).values)
    np.testing.assert_array_equal(response(fitted, X, "votes", 4).values, Y)


def test_a_classifier_that_takes_constant_labels_is_left_alone():
    fitted = train(DecisionTreeClassifier(), X, Y)
    assert isinstance(fitted, DecisionTreeClassifier)
    np.testing.assert_array_equal(response(fitted, X, "votes", 4).values, Y)


def test_no_warning_of_scikit_learn_gets_through():
    # Warnings are errors here: one-vs-rest warns of constant labels, a tree of a column.
    assert response(train(OneVsRestClassifier(LogisticRegression()), X, Y), X, "votes", 4)
    assert response(train(DecisionTreeClassifier(), X, Y[:, [0]]), X, "votes", 1)
    assert response(train(LogisticRegression(), X, Y[:, [0]]), X, "votes", 1)


def test_the_classifier_handed_in_stays_untrained():
    classifier = DecisionTreeClassifier()
    train(classifier, X, Y)
    assert not hasattr(classifier, "tree_")


def test_labels_that_are_all_constant_need_no_classifier():
    fitted = VaryingLabels(MultiOutputClassifier(LogisticRegression())).fit(X, Y[:, [1, 3]])
    assert fitted.classifier_ is None
    np.testing.assert_array_equal(fitted.predict(X), Y[:, [1, 3]])
    np.testing.assert_array_equal(fitted.predict_proba(X), Y[:, [1, 3]])


def test_it_offers_and_sees_what_its_classifier_does():
    assert offers(VaryingLabels(MultiOutputClassifier(LinearSVC()))) == {"votes"}
    assert offers(VaryingLabels(DecisionTreeClassifier())) == {"votes", "posteriors"}
    assert VaryingLabels(DecisionTreeClassifier()).joint
    assert not VaryingLabels(MultiOutputClassifier(LinearSVC())).joint


def test_it_is_an_estimator():
    wrapped = clone(VaryingLabels(DecisionTreeClassifier(max_depth=2)))
    assert wrapped.get_params()["classifier__max_depth"] == 2
    with pytest.raises(NotFittedError):
        wrapped.predict(X)


def test_a_classifier_of_one_label_is_refused_with_a_way_out():
    with pytest.raises(InputError, match=r"wrap it: PerLabel\(LogisticRegression\(...\)\)"):
        train(LogisticRegression(), X, Y[:, [0, 2]])


def test_an_error_of_another_kind_is_the_classifiers_own():
    with pytest.raises(ValueError, match="max_depth"):
        train(DecisionTreeClassifier(max_depth=-1), X, Y)
