from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.counting import CC, PCC
from prevalens.aggregators.external import QuapyPerLabel
from prevalens.aggregators.kernel_density import KDEyML
from prevalens.aggregators.lpq import LPQ
from prevalens.aggregators.matching import HDx, HDy
from prevalens.aggregators.multiclass import MulticlassPACC, StateQuantifier
from prevalens.aggregators.rq import RQ
from prevalens.aggregators.sld import SLD
from prevalens.labelsets import KMeansClusters, RandomClusters
from prevalens.protocols import MLAPP
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError


def make_data(n_items=300, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 4))
    hidden = X[:, :n_labels] + 0.5 * X[:, [0]] + 0.5 * rng.normal(size=(n_items, n_labels))
    return X, (hidden > 0.4).astype(np.int8)


X, Y = make_data()
ITEMS = Scores(X, kind="features")
X_TEST, Y_TEST = make_data(seed=1)
TEST = Scores(X_TEST, kind="features")
SAMPLES = MLAPP(size=40, grid=6).draw(Y_TEST, 0)
TRUE = SAMPLES.mean(Y_TEST)


class Answer(StateQuantifier):
    """Always answers the same shares."""

    consumes = "features"
    needs_labelled_scores = True

    def __init__(self, shares):
        self.shares = shares

    def estimate(self, values, samples):
        return np.tile(self.shares, (len(samples), 1))


def test_the_worked_example_of_the_paper():
    """Its figure gives the states in this order, and prints the answers for y1 and y3 swapped."""
    figure = {
        (0, 0, 0): 0.15,
        (1, 0, 0): 0.10,
        (0, 1, 0): 0.26,
        (1, 1, 0): 0.19,
        (0, 0, 1): 0.05,
        (1, 0, 1): 0.13,
        (0, 1, 1): 0.11,
        (1, 1, 1): 0.01,
    }
    seen = np.array(list(figure), dtype=np.int8)
    items = Scores(np.zeros((8, 1)), kind="features")
    in_order = [figure[state] for state in sorted(figure)]
    lpq = LPQ(Answer(in_order), [[0, 1, 2]]).fit(items, seen)
    assert [tuple(state) for state in lpq.states_[0].tolist()] == sorted(figure)
    np.testing.assert_allclose(
        lpq.aggregate(items, Samples.whole(8)), [[0.43, 0.57, 0.30]], atol=1e-12
    )


def test_over_pcc_it_is_pcc_of_the_powersets_label_marginals():
    classifier = LogisticRegression(C=0.5)
    lpq = LPQ(PCC(), RandomClusters(2), classifier=classifier).fit(ITEMS, Y)
    marginals = np.empty(Y.shape)
    for labels in lpq.clusters_:
        states, state_of = np.unique(Y[:, labels], axis=0, return_inverse=True)
        powerset = clone(classifier).fit(X, state_of.ravel())
        marginals[:, labels] = powerset.predict_proba(X_TEST) @ states
    expected = PCC().fit(Scores(np.clip(marginals, 0, 1)), Y_TEST)
    np.testing.assert_allclose(
        lpq.aggregate(TEST, SAMPLES),
        expected.aggregate(Scores(np.clip(marginals, 0, 1)), SAMPLES),
        atol=1e-12,
    )


def test_over_cc_it_is_cc_of_the_powersets_votes():
    lpq = LPQ(CC(), [[0, 1, 2, 3]], classifier=GaussianNB()).fit(ITEMS, Y)
    states, state_of = np.unique(Y, axis=0, return_inverse=True)
    votes = states[GaussianNB().fit(X, state_of.ravel()).predict(X_TEST)]
    np.testing.assert_allclose(lpq.aggregate(TEST, SAMPLES), SAMPLES.mean(votes), atol=1e-12)


def test_one_label_per_cluster_is_the_binary_method():
    """Two states, out-of-fold scores aside: PCC and SLD need none."""
    lone = [[0], [1], [2], [3]]
    posteriors = np.column_stack(
        [LogisticRegression().fit(X, y).predict_proba(X_TEST)[:, 1] for y in Y.T]
    )
    classifier = LogisticRegression()
    for base, atol in ((PCC(), 1e-12), (SLD(tol=1e-8), 1e-4)):
        lpq = LPQ(base, lone, classifier=classifier).fit(ITEMS, Y)
        alone = clone(base).fit(Scores(posteriors), Y).aggregate(Scores(posteriors), SAMPLES)
        np.testing.assert_allclose(lpq.aggregate(TEST, SAMPLES), alone, atol=atol)


@pytest.mark.parametrize(
    "base", [None, CC(), PCC(), ACC(), PACC(), SLD(), KDEyML(), HDy(bins=5)], ids=repr
)
@pytest.mark.parametrize("clusterer", [None, RandomClusters(2), KMeansClusters(9)], ids=repr)
def test_every_base_and_clusterer_knows_something(base, clusterer):
    estimates = LPQ(base, clusterer).fit(ITEMS, Y).aggregate(TEST, SAMPLES)
    assert np.all((estimates >= 0) & (estimates <= 1))
    naive = np.abs(Y.mean(axis=0) - TRUE).mean()
    assert np.abs(estimates - TRUE).mean() < 0.75 * naive


class Spy(LogisticRegression):
    trained: list = []  # noqa: RUF012

    def fit(self, X, y):
        self.known_ = {tuple(row) for row in X}
        self.trained.append(self.known_)
        return super().fit(X, y)

    def predict_proba(self, X):
        Spy.asked.append(({tuple(row) for row in X}, self.known_))
        return super().predict_proba(X)

    asked: list = []  # noqa: RUF012


def test_scores_that_a_base_learns_from_are_out_of_fold():
    Spy.trained.clear()
    Spy.asked.clear()
    LPQ(PACC(), [[0, 1], [2, 3]], classifier=Spy(), n_folds=4).fit(ITEMS, Y)
    assert len(Spy.trained) == 2 * (4 + 1)
    assert len(Spy.asked) == 2 * 4
    everything = {tuple(row) for row in X}
    for cluster in (Spy.asked[:4], Spy.asked[4:]):
        assert set().union(*(asked for asked, _ in cluster)) == everything
        assert all(not asked & known for asked, known in cluster)
    assert Spy.trained[4] == everything


def test_a_base_that_learns_nothing_costs_one_training_per_cluster():
    Spy.trained.clear()
    LPQ(PCC(), [[0, 1], [2, 3]], classifier=Spy()).fit(ITEMS, Y)
    assert len(Spy.trained) == 2


def test_states_seen_once_and_labels_that_never_vary():
    Y_odd = np.zeros((40, 3), dtype=np.int8)
    Y_odd[:20, 0] = 1
    Y_odd[0, 1] = 1
    items = Scores(X[:40], kind="features")
    for base in (PCC(), PACC(), ACC(), SLD()):
        lpq = LPQ(base, [[0, 1], [2]]).fit(items, Y_odd)
        estimates = lpq.aggregate(items, Samples.whole(40))
        assert (estimates[:, 2] == 0).all()
        assert np.all((estimates >= 0) & (estimates <= 1))


def test_the_join_hands_over_a_classifier():
    lpq = LPQ(PCC(), [[0, 1], [2, 3]])
    adopted = lpq.with_classifier(GaussianNB())
    assert lpq.classifier is None
    assert isinstance(adopted.classifier, GaussianNB)
    given = LPQ(PCC(), [[0, 1], [2, 3]], classifier=GaussianNB())
    np.testing.assert_array_equal(
        adopted.fit(ITEMS, Y).aggregate(TEST, SAMPLES), given.fit(ITEMS, Y).aggregate(TEST, SAMPLES)
    )


def test_sparse_items_and_texts():
    classifier = LogisticRegression()
    sparse = Scores(sp.csr_matrix(X), kind="features")
    np.testing.assert_allclose(
        LPQ(PACC(), classifier=classifier).fit(sparse, Y).aggregate(sparse, Samples.whole(300)),
        LPQ(PACC(), classifier=classifier).fit(ITEMS, Y).aggregate(ITEMS, Samples.whole(300)),
        atol=0.01,
    )
    texts = ["red fox", "red sea", "blue fox", "blue sea"] * 15
    truth = np.array([["red" in text, "fox" in text] for text in texts])
    words = Scores(texts, kind="features")
    model = make_pipeline(CountVectorizer(), LogisticRegression(C=100))
    lpq = LPQ(ACC(), [[0, 1]], classifier=model).fit(words, truth)
    sample = Samples.from_indices([[0, 1, 4, 6]], n_items=60)
    np.testing.assert_allclose(lpq.aggregate(words, sample), [[0.75, 0.75]], atol=0.02)


def test_quantifiers_without_a_classifier_over_states():
    estimates = LPQ(HDx(), [[0, 1], [2, 3]]).fit(ITEMS, Y).aggregate(TEST, SAMPLES)
    assert np.abs(estimates - TRUE).mean() < np.abs(Y.mean(axis=0) - TRUE).mean()


class Shares(BaseEstimator):
    """A multi-label quantifier of its own kind."""

    def fit(self, X, Y):
        self.answer_ = np.asarray(Y).mean(axis=0)
        return self

    def quantify(self, X):
        return self.answer_


def test_any_quantifier_over_states():
    estimates = LPQ(Shares(), [[0, 1], [2, 3]]).fit(ITEMS, Y).aggregate(TEST, SAMPLES)
    np.testing.assert_allclose(estimates, np.tile(Y.mean(axis=0), (len(SAMPLES), 1)))


@pytest.mark.parametrize("name", ["EMQ", "PCC", "MaximumLikelihoodPrevalenceEstimation", "SMM"])
def test_quantifiers_of_quapy_by_name(name):
    """SMM is for two classes only: one per state, then."""
    pytest.importorskip("quapy")
    common = (Y[:, :2] @ [2, 1]).astype(int)
    assert np.bincount(common).min() >= 5
    lpq = LPQ(QuapyPerLabel(name), [[0, 1], [2, 3]]).fit(ITEMS, Y)
    estimates = lpq.aggregate(TEST, SAMPLES)
    assert np.all((estimates >= 0) & (estimates <= 1))


def test_quantifiers_of_quapy_by_object_with_the_classifier_of_lpq():
    quapy = pytest.importorskip("quapy")
    lpq = LPQ(quapy.method.aggregative.PCC(), [[0, 1, 2, 3]], classifier=GaussianNB())
    ours = LPQ(PCC(), [[0, 1, 2, 3]], classifier=GaussianNB())
    np.testing.assert_allclose(
        lpq.fit(ITEMS, Y).aggregate(TEST, SAMPLES),
        ours.fit(ITEMS, Y).aggregate(TEST, SAMPLES),
        atol=1e-9,
    )


def test_inside_rq():
    rq = RQ(LPQ(PCC(), [[0, 1], [2, 3]]), "ridge", protocol=MLAPP(size=40, grid=11)).fit(ITEMS, Y)
    assert rq.consumes == "features"
    assert np.abs(rq.aggregate(TEST, SAMPLES) - TRUE).mean() < 0.12


def test_in_parallel_it_is_the_same():
    first = LPQ(PACC(), RandomClusters(2)).fit(ITEMS, Y).aggregate(TEST, SAMPLES)
    with parallel_config("threading"):
        second = LPQ(PACC(), RandomClusters(2), n_jobs=2).fit(ITEMS, Y).aggregate(TEST, SAMPLES)
    np.testing.assert_allclose(first, second, atol=1e-12)


def test_refusals():
    for wrong in (3, "pcc", Shares):
        with pytest.raises(InputError, match="The base must be an aggregator such as PCC"):
            LPQ(wrong).fit(ITEMS, Y)
    with pytest.raises(InputError, match=r"LinearSVC offers only votes\. Use LPQ"):
        LPQ(PCC(), classifier=LinearSVC()).fit(ITEMS, Y).aggregate(TEST, SAMPLES)
    with pytest.raises(InputError, match="each of the 4 labels"):
        LPQ(PCC(), [[0]]).fit(ITEMS, Y)
    with pytest.raises(InputError, match="n_folds must be at least 2"):
        LPQ(PACC(), n_folds=1).fit(ITEMS, Y)
    assert LPQ(CC(), classifier=LinearSVC()).fit(ITEMS, Y).aggregate(TEST, SAMPLES).max() <= 1


def test_parameters_reach_the_inside():
    lpq = LPQ(MulticlassPACC(), KMeansClusters(2))
    lpq.set_params(base__guard=7.0, clusterer__n_clusters=3)
    assert (lpq.base.guard, lpq.clusterer.n_clusters) == (7.0, 3)
    assert len(lpq.fit(ITEMS, Y).clusters_) == 3


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(2, 40),
    n_labels=st.integers(1, 5),
    base=st.sampled_from([CC(), PCC(), ACC(), PACC(), SLD()]),
)
def test_whatever_the_labels_the_answers_are_shares(seed, n_items, n_labels, base):
    rng = np.random.default_rng(seed)
    truth = (rng.random((n_items, n_labels)) < rng.choice([0, 0.1, 0.5, 1], n_labels)) * 1
    items = Scores(rng.normal(size=(n_items, 2)), kind="features")
    lpq = LPQ(base, RandomClusters(2), classifier=GaussianNB()).fit(items, truth)
    estimates = lpq.aggregate(items, Samples.whole(n_items))
    assert np.all((estimates >= 0) & (estimates <= 1))


@pytest.mark.data
def test_on_emotions():
    from sklearn.preprocessing import StandardScaler

    from prevalens.datasets import load

    pytest.importorskip("quapy")
    data = load("emotions")
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    train, test = (Scores(part.X, kind="features") for part in (data.train, data.test))
    samples = MLAPP(more_than=500).draw(data.test.Y, 0)
    true = samples.mean(data.test.Y)
    shift = np.abs(data.train.Y.mean(axis=0) - true).mean()
    for base in (PCC(), PACC(), QuapyPerLabel("EMQ"), QuapyPerLabel("PCC")):
        lpq = LPQ(base, KMeansClusters(2), classifier=model).fit(train, data.train.Y)
        assert np.abs(lpq.aggregate(test, samples) - true).mean() < shift
