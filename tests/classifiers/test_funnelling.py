"""Funnelling against its definition in plain scikit-learn, and on two generated languages."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from prevalens import Quantifier, parse
from prevalens.aggregators import PCC
from prevalens.classifiers.funnelling import Funnelling
from prevalens.classifiers.per_label import PerLabel
from prevalens.classifiers.stacked import Stacked
from prevalens.datasets import synthetic
from prevalens.splits import stratified_folds
from prevalens.validation import InputError

DATA = synthetic(400, 300, n_labels=4, n_features=10, languages=2)
LR = MultiOutputClassifier(LogisticRegression(C=1.0, tol=1e-9, max_iter=1000))


def posteriors(model, X):
    return np.column_stack([answer[:, 1] for answer in model.predict_proba(X)])


def definition(X, Y, X_new, training):
    """Each language's own columns, a first layer for each, and one second layer."""
    blocks = {0: slice(1, 11), 1: slice(11, 21)}
    second, new = np.empty(Y.shape), np.empty((len(X_new), Y.shape[1]))
    for language, columns in blocks.items():
        rows, new_rows = (np.flatnonzero(items[:, 0] == language) for items in (X, X_new))
        own, labels = X[rows, columns], Y[rows]
        whole = LR.fit(own, labels)
        new[new_rows] = posteriors(whole, X_new[new_rows, columns])
        second[rows] = posteriors(whole, own)
        if training == "kfcv":
            fold_of = stratified_folds(labels, 5, seed=0)
            for fold in range(5):
                model = LR.fit(own[fold_of != fold], labels[fold_of != fold])
                second[rows[fold_of == fold]] = posteriors(model, own[fold_of == fold])
    return posteriors(LR.fit(second, Y), new)


@pytest.mark.parametrize("training", ["kfcv", "tat"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_it_is_the_definition_with_each_languages_own_columns(training, form):
    train, test = DATA.train, DATA.test
    expected = definition(train.X, train.Y, test.X, training)
    model = Funnelling(language=0, training=training).fit(form(train.X), train.Y)
    np.testing.assert_allclose(model.predict_proba(form(test.X)), expected, atol=1e-4)


def test_one_language_is_a_stack_without_the_features():
    X, Y = DATA.train.X[:, 1:], DATA.train.Y
    stack = Stacked(passthrough=False).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(Funnelling().fit(X, Y).predict_proba(X), stack, atol=1e-9)


def test_the_second_layer_lends_the_labels_of_one_language_to_the_other():
    train, test = DATA.train, DATA.test
    # The second language has forty items only; how its labels depend on each other is in the first.
    few = np.flatnonzero((train.X[:, 0] == 0) | (np.arange(400) < 80))
    rows = np.flatnonzero(test.X[:, 0] == 1)
    alone = PerLabel().fit(train.X[few], train.Y[few]).predict_proba(test.X[rows])
    lent = Funnelling(language=0).fit(train.X[few], train.Y[few]).predict_proba(test.X[rows])
    losses = [np.mean((p - test.Y[rows]) ** 2) for p in (lent, alone)]
    assert losses[0] < losses[1]


def test_the_feature_may_be_named_and_anywhere():
    X, Y = DATA.train.X, DATA.train.Y
    expected = Funnelling(language=0).fit(X, Y).predict_proba(X)
    frame = pd.DataFrame(X, columns=["language", *(f"x{j}" for j in range(20))])
    moved = frame[[*frame.columns[1:], "language"]]
    model = Funnelling(language="language").fit(moved, Y)
    np.testing.assert_allclose(model.predict_proba(moved), expected, atol=1e-6)
    assert model.languages_.tolist() == [0, 1]
    assert len(model.bases_) == 2
    at_end = Funnelling(language=20).fit(moved.to_numpy(), Y)
    np.testing.assert_allclose(at_end.predict_proba(moved.to_numpy()), expected, atol=1e-6)


class Recorder(PerLabel):
    """Remembers the features on which it was trained."""

    def fit(self, X, Y):
        self.seen_ = X
        return super().fit(X, Y)


@pytest.mark.parametrize("cv", [2, 3])
@pytest.mark.parametrize("random_state", [0, 1])
def test_the_second_layer_learns_from_out_of_fold_posteriors_of_any_base(cv, random_state):
    # Three languages, numbered by any values.
    X, Y = DATA.train.X[:120, 1:], DATA.train.Y[:120]
    codes = np.resize([-1.5, 0.25, 0.75], 120)
    base = PerLabel(GaussianNB())
    model = Funnelling(base, Recorder(), language=0, cv=cv, random_state=random_state)
    model.fit(np.column_stack([codes, X]), Y)
    assert model.languages_.tolist() == [-1.5, 0.25, 0.75]
    for language in model.languages_:
        rows = np.flatnonzero(codes == language)
        fold_of = stratified_folds(Y[rows], cv, seed=random_state)
        for fold in range(cv):
            held, rest = rows[fold_of == fold], rows[fold_of != fold]
            expected = clone(base).fit(X[rest], Y[rest]).predict_proba(X[held])
            np.testing.assert_allclose(model.meta_.seen_[held], expected, atol=1e-9)


def test_the_second_layer_is_a_regression_of_labels_on_posteriors_whatever_the_base():
    X, Y = DATA.train.X[:, 1:], DATA.train.Y
    base = PerLabel(GaussianNB())
    found = Funnelling(base, training="tat").fit(X, Y)
    scores = clone(base).fit(X, Y).predict_proba(X)
    second = PerLabel().fit(scores, Y)
    np.testing.assert_allclose(found.predict_proba(X), second.predict_proba(scores), atol=1e-9)
    np.testing.assert_array_equal(found.predict(X), second.predict(scores))


def test_the_first_layers_do_not_see_the_language():
    X, Y = DATA.train.X, DATA.train.Y
    model = Funnelling(Recorder(), language=0, training="tat").fit(X, Y)
    for language, base in zip((0, 1), model.bases_, strict=True):
        np.testing.assert_array_equal(base.seen_, X[X[:, 0] == language, 1:])


def test_a_language_may_have_as_few_items_as_folds():
    X, Y = DATA.train.X, DATA.train.Y
    few = np.r_[np.flatnonzero(X[:, 0] == 0)[:40], np.flatnonzero(X[:, 0] == 1)[:20]]
    model = Funnelling(PerLabel(GaussianNB()), language=0, cv=20).fit(X[few], Y[few])
    assert np.isfinite(model.predict_proba(X)).all()
    with pytest.raises(InputError, match="A language has 20 items, too few for cv=21"):
        Funnelling(language=0, cv=21).fit(X[few], Y[few])


def test_training_again_forgets_the_first_layers():
    X, Y = DATA.train.X, DATA.train.Y
    model = Funnelling(language=0, training="tat").fit(X, Y)
    expected = model.predict_proba(X)
    model.fit(X, Y)
    assert len(model.bases_) == 2
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_items_of_one_language_alone_can_be_scored():
    X = DATA.train.X
    model = Funnelling(language=0).fit(X, DATA.train.Y)
    rows = X[:, 0] == 1
    np.testing.assert_allclose(model.predict_proba(X[rows]), model.predict_proba(X)[rows])


def test_it_serves_quantifiers():
    method = Quantifier(Funnelling(language=0), PCC()).fit(DATA.train.X, DATA.train.Y)
    estimate = method.quantify(DATA.test.X)
    np.testing.assert_allclose(estimate.point, DATA.test.prevalence, atol=0.08)
    name = "funnelling(language=0,training=tat)+pcc"
    assert parse(name).name == name


def test_wrong_languages_are_named():
    X, Y = DATA.train.X, DATA.train.Y
    with pytest.raises(InputError, match="A language has 1 items, too few for cv=5"):
        Funnelling(language=1).fit(X[X[:, 1] > 0], Y[X[:, 1] > 0])
    with pytest.raises(InputError, match="language=21 is beyond the 21 features"):
        Funnelling(language=21).fit(X, Y)
    with pytest.raises(InputError, match=r"no feature 'lang'.*without names"):
        Funnelling(language="lang").fit(X, Y)
    model = Funnelling(language=0).fit(X, Y)
    other = X[:5].copy()
    other[3, 0] = 7
    with pytest.raises(InputError, match=r"Row 3 has language 7.* 0, 1 only"):
        model.predict(other)
    other[3, 0] = 0.5
    with pytest.raises(InputError, match=r"Row 3 has language 0.5"):
        model.predict(other)


def test_wrong_parameters_are_named():
    X, Y = DATA.train.X, DATA.train.Y
    with pytest.raises(InputError, match="training"):
        Funnelling(training="other").fit(X, Y)
    with pytest.raises(InputError, match="LinearSVC offers only votes"):
        Funnelling(LinearSVC()).fit(X, Y)
    with pytest.raises(InputError, match="cv"):
        Funnelling(cv=1).fit(X, Y)


def test_labels_that_a_language_lacks_are_warned_of():
    X, Y = DATA.train.X, DATA.train.Y.copy()
    Y[X[:, 0] == 1, 2] = 0
    for training, n_layers in (("tat", 2), ("kfcv", 10)):
        with pytest.warns(UserWarning, match=rf"2 \(in {n_layers // 2} of {n_layers}\)"):
            model = Funnelling(language=0, training=training).fit(X, Y)
        assert np.isfinite(model.predict_proba(X)).all()
