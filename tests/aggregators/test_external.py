from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from prevalens.aggregators.external import QuapyPerLabel, is_quapy, quapy_estimates
from prevalens.expression import expression_of, to_text
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError

quapy = pytest.importorskip("quapy")


def make_data(n_items=160, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 3))
    Y = (X @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(n_items, 3)) > 0.3).astype(int)
    return X, Y


def make_samples(n_items=160):
    rng = np.random.default_rng(1)
    return Samples.from_indices([rng.choice(n_items, 40) for _ in range(5)], n_items=n_items)


@pytest.mark.parametrize("name", ["CC", "PCC", "ACC", "EMQ", "HDy", "KDEyML", "DMx", "MS2"])
def test_any_of_them_by_name_is_quapys_own_answer_per_label(name):
    X, Y = make_data()
    items, samples = Scores(X, kind="features"), make_samples()
    ours = QuapyPerLabel(name).fit(items, Y).aggregate(items, samples)
    for j in range(3):
        quantifier = QuapyPerLabel(name).make().fit(X, Y[:, j])
        alone = [quantifier.predict(X[rows])[1] for rows in samples]
        np.testing.assert_allclose(ours[:, j], alone, atol=1e-6)


def test_by_object_which_stays_unfitted():
    X, Y = make_data()
    items, samples = Scores(X, kind="features"), make_samples()
    original = quapy.method.aggregative.PACC(LogisticRegression(C=5))
    by_object = QuapyPerLabel(original).fit(items, Y)
    by_name = QuapyPerLabel("PACC", LogisticRegression(C=5)).fit(items, Y)
    np.testing.assert_array_equal(
        by_object.aggregate(items, samples), by_name.aggregate(items, samples)
    )
    assert not hasattr(original.classifier, "coef_")
    assert clone(by_object).get_params()["classifier"] is None


def test_parameters_and_classifiers_reach_quapy():
    made = QuapyPerLabel("DyS", LogisticRegression(C=7), params={"n_bins": 5}).make()
    assert (made.n_bins, made.classifier.C) == (5, 7)
    assert type(QuapyPerLabel("DMx.HDx").make()).__name__ == "MedianEstimator"
    adopted = QuapyPerLabel(quapy.method.aggregative.CC()).with_classifier(LogisticRegression(C=3))
    assert adopted.make().classifier.C == 3


def test_names_for_the_catalogue():
    assert QuapyPerLabel("EMQ").code == "quapy:EMQ"
    assert QuapyPerLabel(quapy.method.aggregative.CC()).code == "quapy:CC"
    assert to_text(expression_of(QuapyPerLabel("KDEyML"))) == "quapy:KDEyML"
    with_classifier = QuapyPerLabel("PCC", LogisticRegression(C=2))
    assert to_text(expression_of(with_classifier)) == "quapy:PCC(<LogisticRegression>(C=2))"


def test_sparse_items():
    X, Y = make_data()
    dense, sparse = Scores(X, kind="features"), Scores(sp.csr_matrix(X), kind="features")
    np.testing.assert_allclose(
        QuapyPerLabel("PCC").fit(dense, Y).aggregate(dense, make_samples()),
        QuapyPerLabel("PCC").fit(sparse, Y).aggregate(sparse, make_samples()),
        atol=1e-3,
    )


def test_constant_labels_keep_their_constant():
    X, Y = make_data()
    Y[:, 0], Y[:, 1] = 0, 1
    items = Scores(X, kind="features")
    estimates = QuapyPerLabel("PCC").fit(items, Y).aggregate(items, make_samples())
    assert (estimates[:, 0] == 0).all()
    assert (estimates[:, 1] == 1).all()


def test_several_classes_for_the_powerset():
    X, Y = make_data()
    state = Y @ [1, 2, 4]
    samples = make_samples()
    emq = QuapyPerLabel("EMQ").make().fit(X, state)
    shares = quapy_estimates(emq, X, samples)
    assert shares.shape == (5, len(np.unique(state)))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_what_is_of_quapy():
    class Mine(quapy.method.aggregative.CC):
        pass

    assert is_quapy(Mine())
    assert not is_quapy(LogisticRegression())


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_refusals():
    X, Y = make_data()
    items = Scores(X, kind="features")
    with pytest.raises(InputError, match="QuaPy has no quantifier called 'EMC'"):
        QuapyPerLabel("EMC").fit(items, Y)
    with pytest.raises(InputError, match="no quantifier of QuaPy, nor the name of one"):
        QuapyPerLabel(LogisticRegression()).fit(items, Y)
    with pytest.raises(InputError, match=r"QuaPy's CC cannot be made: .*n_bins"):
        QuapyPerLabel("CC", params={"n_bins": 3}).fit(items, Y)
    Y[:, 0] = 0
    Y[0, 0] = 1
    with pytest.raises(InputError, match=r"quapy:ACC failed on label 0 \(1 positives of 160\)"):
        QuapyPerLabel("ACC").fit(items, Y)


def test_without_quapy_the_extra_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("prevalens.aggregators.external.importlib.import_module", missing)
    with pytest.raises(InputError, match=r'pip install "prevalens\[quapy\]"'):
        QuapyPerLabel("EMQ").make()
