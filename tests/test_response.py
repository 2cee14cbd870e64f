import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from skmultilearn.problem_transform import LabelPowerset

from prevalens.classifiers.ensemble import ClassifierEnsemble
from prevalens.classifiers.knn import MLkNN
from prevalens.classifiers.per_label import PerLabel
from prevalens.classifiers.stacked import Stacked
from prevalens.classifiers.trees import Forest
from prevalens.response import is_joint, offers, response, takes_several_labels, weighted_prior
from prevalens.validation import InputError

LR = LogisticRegression()

#: Every way scikit-learn has of answering several labels.
FOREIGN = {
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "forest": RandomForestClassifier(10, random_state=0),
    "extra trees": ExtraTreesClassifier(10, random_state=0),
    "neighbours": KNeighborsClassifier(3),
    "perceptron": MLPClassifier((4,), solver="lbfgs", max_iter=2000, random_state=0),
    "multi-output": MultiOutputClassifier(LR),
    "one-vs-rest": OneVsRestClassifier(LR),
    "chain": ClassifierChain(LR),
    "pipeline": make_pipeline(StandardScaler(), OneVsRestClassifier(LR)),
    "search": GridSearchCV(OneVsRestClassifier(LR), {"estimator__C": [1.0]}, cv=2),
    "dummy": DummyClassifier(strategy="prior"),
}


def data(n_labels=3, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = (X[:, :n_labels] + 0.3 * rng.normal(size=(n, n_labels)) > 0).astype(np.int8)
    return X, Y


def positive_posteriors(classifier, X, n_labels):
    """What each label's posterior must be, written out by the shape of the answer."""
    answer = classifier.predict_proba(X)
    if isinstance(answer, list):
        return np.column_stack([label[:, 1] for label in answer])
    return answer if n_labels > 1 or answer.shape[1] == 1 else answer[:, 1:]


@pytest.mark.parametrize("name", FOREIGN)
def test_answers_of_several_labels_have_one_column_each(name):
    X, Y = data()
    classifier = FOREIGN[name].fit(X, Y)
    posteriors = response(classifier, X, "posteriors", 3)
    votes = response(classifier, X, "votes", 3)
    assert posteriors.kind == "posteriors"
    np.testing.assert_allclose(posteriors.values, positive_posteriors(classifier, X, 3))
    np.testing.assert_array_equal(votes.values, classifier.predict(X))


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_answers_of_a_single_label_have_one_column(name):
    X, Y = data(n_labels=1)
    classifier = FOREIGN[name].fit(X, Y)
    posteriors = response(classifier, X, "posteriors", 1).values
    votes = response(classifier, X, "votes", 1).values
    assert posteriors.shape == votes.shape == (60, 1)
    # The posterior of the positive class, not of the other: it goes with the vote.
    if name != "dummy":
        assert posteriors[votes == 1].mean() > posteriors[votes == 0].mean()
    np.testing.assert_array_equal(votes.ravel(), np.ravel(classifier.predict(X)))


@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.parametrize(
    "name", ["tree", "forest", "neighbours", "one-vs-rest", "perceptron", "dummy"]
)
@pytest.mark.filterwarnings("ignore:Label .* is present in all training examples")
def test_a_label_with_one_class_is_certain(name, constant):
    X, Y = data()
    Y[:, 1] = constant
    classifier = FOREIGN[name].fit(X, Y)
    values = response(classifier, X, "posteriors", 3).values
    tolerance = 0.1 if name == "perceptron" else 0
    np.testing.assert_allclose(values[:, 1], constant, atol=tolerance)
    np.testing.assert_allclose(
        response(classifier, X, "votes", 3).values[:, 1], constant, atol=tolerance
    )


@pytest.mark.parametrize("constant", [0, 1])
def test_a_single_label_with_one_class_is_certain(constant):
    X, _ = data()
    tree = DecisionTreeClassifier().fit(X, np.full(60, constant))
    np.testing.assert_array_equal(response(tree, X, "posteriors", 1).values, constant)
    np.testing.assert_array_equal(response(tree, X, "votes", 1).values, constant)


class WithoutClasses:
    """A list of answers, one label with a single class, and no word on which class that is."""

    def predict(self, X):
        return np.tile([1, 0, 1], (len(X), 1))

    def predict_proba(self, X):
        return [np.tile([0.2, 0.8], (len(X), 1)), np.ones((len(X), 1)), np.ones((len(X), 1))]


def test_a_class_that_is_not_named_is_taken_from_the_votes():
    values = response(WithoutClasses(), np.zeros((2, 1)), "posteriors", 3).values
    np.testing.assert_array_equal(values, [[0.8, 0, 1], [0.8, 0, 1]])


class Fixed:
    """Answers what it is given."""

    def __init__(self, posteriors=None, votes=None, decisions=None):
        if posteriors is not None:
            self.predict_proba = lambda X: posteriors
        if votes is not None:
            self.predict = lambda X: votes
        if decisions is not None:
            self.decision_function = lambda X: decisions


@pytest.mark.parametrize("sparse", [sp.csr_matrix, sp.lil_matrix, sp.csr_array])
def test_sparse_answers_become_dense(sparse):
    table = np.array([[0.0, 1.0], [1.0, 0.0]])
    classifier = Fixed(sparse(table), sparse(table))
    for kind in ("votes", "posteriors"):
        np.testing.assert_array_equal(response(classifier, None, kind, 2).values, table)


def test_three_dimensional_answers_are_read_label_by_label():
    stacked = np.array([[[0.9, 0.1]], [[0.3, 0.7]]])
    values = response(Fixed(stacked), None, "posteriors", 2).values
    np.testing.assert_array_equal(values, [[0.1, 0.7]])


def test_flat_posteriors_of_each_label_are_taken_as_they_are():
    values = response(Fixed([np.array([0.1, 0.2]), np.array([0.3, 0.4])]), None, "posteriors", 2)
    np.testing.assert_array_equal(values.values, [[0.1, 0.3], [0.2, 0.4]])


def test_a_decision_function_alone_gives_votes():
    classifier = Fixed(decisions=np.array([[-1.0, 2.0], [0.5, -0.1]]))
    assert offers(classifier) == {"votes"}
    np.testing.assert_array_equal(response(classifier, None, "votes", 2).values, [[0, 1], [1, 0]])


def test_votes_are_asked_of_the_classifier_and_not_cut_from_posteriors():
    classifier = Fixed(posteriors=np.array([[0.9, 0.9]]), votes=np.array([[0, 1]]))
    np.testing.assert_array_equal(response(classifier, None, "votes", 2).values, [[0, 1]])


def test_classes_may_stand_in_any_order():
    classifier = Fixed([np.array([[0.9, 0.1]]), np.array([[0.7, 0.3]])])
    classifier.classes_ = [np.array([1, 0]), np.array([0, 1])]
    np.testing.assert_array_equal(response(classifier, None, "posteriors", 2).values, [[0.9, 0.3]])


def test_rounding_beyond_the_range_is_put_back_and_more_is_refused():
    np.testing.assert_array_equal(
        response(Fixed(np.array([[1 + 1e-9, -1e-9]])), None, "posteriors", 2).values, [[1, 0]]
    )
    with pytest.raises(InputError, match=r"between 0 and 1; got 1\.1"):
        response(Fixed(np.array([[1.1, 0.0]])), None, "posteriors", 2)
    with pytest.raises(InputError, match="got nan"):
        response(Fixed(np.array([[np.nan, 0.0]])), None, "posteriors", 2)


def test_features_are_the_items_themselves():
    X, _ = data()
    assert response(None, X, "features", 3).values is X


def test_a_frozen_estimator_answers_as_what_it_holds():
    X, Y = data()
    forest = FOREIGN["forest"].fit(X, Y)
    frozen = FrozenEstimator(forest)
    for kind in ("votes", "posteriors"):
        np.testing.assert_array_equal(
            response(frozen, X, kind, 3).values, response(forest, X, kind, 3).values
        )


def test_texts_go_to_a_pipeline_as_they_are():
    texts = ["good cheap", "bad cheap", "good dear", "bad dear"] * 3
    Y = [[1, 0], [0, 0], [1, 1], [0, 1]] * 3
    pipeline = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LogisticRegression(C=100)))
    pipeline.fit(texts, Y)
    np.testing.assert_array_equal(response(pipeline, texts, "votes", 2).values, Y)


def test_scikit_multilearn_answers_are_read():
    X, Y = data()
    powerset = LabelPowerset(LogisticRegression(), [False, True]).fit(X, Y)
    values = response(powerset, X, "posteriors", 3).values
    np.testing.assert_allclose(values, powerset.predict_proba(X).toarray())


@pytest.mark.parametrize(
    ("classifier", "kinds"),
    [
        (LinearSVC(), {"votes"}),
        (OneVsRestClassifier(LinearSVC()), {"votes"}),
        (MultiOutputClassifier(RidgeClassifier()), {"votes"}),
        (make_pipeline(StandardScaler(), OneVsRestClassifier(LinearSVC())), {"votes"}),
        (OneVsRestClassifier(CalibratedClassifierCV(LinearSVC())), {"votes", "posteriors"}),
        (MultiOutputClassifier(LR), {"votes", "posteriors"}),
        (GridSearchCV(OneVsRestClassifier(LR), {}), {"votes", "posteriors"}),
        (MLkNN(), {"votes", "posteriors"}),
        (StandardScaler(), set()),
    ],
)
def test_offers_are_known_before_training(classifier, kinds):
    assert offers(classifier) == kinds


def test_what_is_not_offered_is_refused_with_a_way_out():
    X, Y = data()
    classifier = OneVsRestClassifier(LinearSVC()).fit(X, Y)
    with pytest.raises(InputError, match="only votes, no posteriors; wrap it in Calibrated"):
        response(classifier, X, "posteriors", 3)
    with pytest.raises(InputError, match="StandardScaler offers no votes; it is not a classifier"):
        response(StandardScaler(), X, "votes", 3)


@pytest.mark.parametrize("kind", ["votes", "posteriors"])
def test_a_wrong_number_of_labels_is_refused(kind):
    X, Y = data()
    classifier = OneVsRestClassifier(LR).fit(X, Y)
    with pytest.raises(InputError, match=r"shape \(60, 3\) for 4 labels"):
        response(classifier, X, kind, 4)


def test_a_wrong_number_of_answers_in_a_list_is_refused():
    X, Y = data()
    with pytest.raises(InputError, match="posteriors of 3 labels, but there are 2"):
        response(FOREIGN["tree"].fit(X, Y), X, "posteriors", 2)


@pytest.mark.parametrize(
    ("classifier", "joint"),
    [
        (LR, False),
        (OneVsRestClassifier(RandomForestClassifier()), False),
        (MultiOutputClassifier(LR), False),
        (RandomForestClassifier(), True),
        (ClassifierChain(LR), True),
        (KNeighborsClassifier(), True),
        (make_pipeline(StandardScaler(), MultiOutputClassifier(LR)), False),
        (make_pipeline(StandardScaler(), MLkNN()), True),
        (GridSearchCV(OneVsRestClassifier(LR), {}), False),
        (RandomizedSearchCV(RandomForestClassifier(), {}), True),
        (FrozenEstimator(MultiOutputClassifier(LR)), False),
    ],
)
def test_whether_labels_are_seen_together(classifier, joint):
    assert is_joint(classifier) is joint


@pytest.mark.parametrize(
    ("classifier", "several"),
    [
        (LR, False),
        (LinearSVC(), False),
        (make_pipeline(StandardScaler(), LR), False),
        (GridSearchCV(LR, {}), False),
        (GridSearchCV(OneVsRestClassifier(LR), {}), True),
        (OneVsRestClassifier(LR), True),
        (DecisionTreeClassifier(), True),
        (MLkNN(), True),
    ],
)
def test_whether_several_labels_can_be_learnt(classifier, several):
    assert takes_several_labels(classifier) is several


def test_a_pipeline_passes_the_posteriors_of_ensemble_members_on():
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = (X[:, :2] > 0).astype(np.int8)
    for steps in ([], [StandardScaler()]):
        pipeline = make_pipeline(
            *steps, ClassifierEnsemble(PerLabel(), Forest(5, random_state=0))
        ).fit(X, Y)
        scores = response(pipeline, X, "posteriors", 2)
        before = steps[0].transform(X) if steps else X
        np.testing.assert_array_equal(scores.members, pipeline[-1].member_posteriors(before))
        np.testing.assert_allclose(scores.values, pipeline.predict_proba(X))


BALANCED = LogisticRegression(class_weight="balanced")


@pytest.mark.parametrize(
    ("classifier", "prior"),
    [
        (PerLabel(), None),
        (PerLabel(class_weight="balanced"), [0.5, 0.5, 1.0]),
        (PerLabel(class_weight=[None, "balanced", None]), [0.25, 0.5, 1.0]),
        (PerLabel(class_weight={0: 1, 1: 9}), [0.75, 0.9, 1.0]),
        (PerLabel(BALANCED), [0.5, 0.5, 1.0]),
        (Stacked(PerLabel(class_weight="balanced"), PerLabel()), None),
        (Stacked(PerLabel(), PerLabel(class_weight="balanced")), [0.5, 0.5, 1.0]),
        (make_pipeline(StandardScaler(), OneVsRestClassifier(BALANCED)), [0.5, 0.5, 1.0]),
        (MultiOutputClassifier(CalibratedClassifierCV(BALANCED)), None),
        (Forest(10), None),
    ],
)
def test_class_weights_move_the_prior_of_posteriors(classifier, prior):
    Y = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1]])
    found = weighted_prior(classifier, Y)
    assert prior is None if found is None else found.tolist() == pytest.approx(prior)
