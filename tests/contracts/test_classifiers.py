"""Every classifier of the package through one suite."""

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from prevalens.classifiers import (
    CLEMS,
    HOMER,
    MLARAM,
    MLMPM,
    MLTSVM,
    AdaBoostMH,
    Chain,
    ChainEnsemble,
    ClassifierEnsemble,
    CrossFit,
    ExtraTrees,
    Forest,
    Funnelling,
    LabelSpaceClusters,
    MLkNN,
    PerLabel,
    Powerset,
    RAkEL,
    RankSVM,
    Stacked,
    Tree,
    is_joint,
    offers,
    response,
)
from prevalens.labelsets import RandomClusters, RandomLabelsets
from prevalens.validation import InputError

CLASSIFIERS = {
    "PerLabel": PerLabel(),
    "PerLabel(tree)": PerLabel(DecisionTreeClassifier(max_depth=3, random_state=0)),
    "Stacked": Stacked(cv=3),
    "Stacked(normalize)": Stacked(cv=3, normalize=True),
    "Chain": Chain(),
    "ChainEnsemble": ChainEnsemble(n_chains=3, random_state=0),
    "MLkNN": MLkNN(k=3),
    "Tree": Tree(random_state=0),
    "Forest": Forest(8, random_state=0),
    "ExtraTrees": ExtraTrees(8, random_state=0),
    "CLEMS": CLEMS(MLkNN(k=3), RandomForestRegressor(5, max_features=0.3, random_state=0)),
    "CLEMS(f1)": CLEMS(MLkNN(k=3), LinearRegression(), cost="f1", passthrough=False),
    "LabelSpaceClusters": LabelSpaceClusters(2, MLkNN(k=3), random_state=0),
    "LabelSpaceClusters(Tree)": LabelSpaceClusters(2, Tree(random_state=0), random_state=0),
    "Powerset": Powerset(),
    "ClassifierEnsemble": ClassifierEnsemble(PerLabel(), Forest(8, random_state=0)),
    "RAkEL": RAkEL(random_state=0),
    "RAkEL(overlapping)": RAkEL(None, RandomLabelsets(2), random_state=0),
    "HOMER": HOMER(),
    "HOMER(random)": HOMER(MLkNN(k=3), RandomClusters(2)),
    "MLARAM": MLARAM(),
    "Funnelling": Funnelling(),
    "Funnelling(tat)": Funnelling(training="tat"),
    "RankSVM": RankSVM(),
    "MLTSVM": MLTSVM(),
    "MLMPM": MLMPM(),
    "AdaBoostMH": AdaBoostMH(20),
    "MLARAM(hierarchy)": MLARAM(hierarchy=0.7),
}
ALONE = {"PerLabel", "PerLabel(tree)"}
#: Whose answers depend on where a label stands, by definition.
ORDERED = {"Chain", "ChainEnsemble", "RAkEL", "RAkEL(overlapping)", "HOMER(random)"}
#: Whose answers jump when a feature moves by a rounding error.
JUMPY = {"Tree", "Forest", "ExtraTrees", "PerLabel(tree)", "LabelSpaceClusters(Tree)"}
JUMPY |= {"CLEMS", "CLEMS(f1)", "AdaBoostMH"}


@pytest.fixture(params=list(CLASSIFIERS))
def name(request):
    return request.param


@pytest.fixture
def model(name):
    return clone(CLASSIFIERS[name])


def data(n=90, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.maximum(rng.normal(size=(n, 12)), 0)
    latent = X[:, :n_labels] - X[:, n_labels : 2 * n_labels] + 0.2 * rng.normal(size=(n, n_labels))
    return X, (latent > 0.2).astype(np.int8)


def test_parameters_can_be_read_set_and_cloned(model):
    # Only what is set in the constructor: nothing is converted, nothing is checked.
    parameters = model.get_params(deep=False)
    copy = type(model)().set_params(**parameters)
    assert repr(copy) == repr(model)
    for key, value in parameters.items():
        assert getattr(model, key) is value
        assert getattr(clone(model), key) is value or hasattr(value, "get_params")


def test_answers_have_one_column_per_label(model):
    X, Y = data()
    model.fit(X, Y)
    votes, posteriors = model.predict(X), model.predict_proba(X)
    assert votes.shape == posteriors.shape == (90, 4)
    assert set(np.unique(votes)) <= {0, 1}
    assert votes.dtype.kind == "i"
    assert posteriors.dtype == np.float64
    assert posteriors.min() >= 0
    assert posteriors.max() <= 1
    assert model.n_labels_ == 4


def test_something_is_learnt(model):
    X, Y = data(n=200)
    X_new, Y_new = data(n=200, seed=1)
    model.fit(X, Y)
    guess = np.mean(Y_new == (Y.mean(axis=0) > 0.5))
    assert np.mean(model.predict(X_new) == Y_new) > guess + 0.04
    posteriors = model.predict_proba(X_new)
    assert posteriors[Y_new == 1].mean() > posteriors[Y_new == 0].mean() + 0.1


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.coo_array])
def test_sparse_items_are_answered_as_dense_ones(name, model, form):
    X, Y = data()
    X_new = data(seed=1)[0]
    dense = clone(model).fit(X, Y).predict_proba(X_new)
    sparse = model.fit(form(X), Y).predict_proba(form(X_new))
    difference = np.abs(sparse - dense)
    assert difference.mean() < (0.05 if name in JUMPY else 1e-3)
    assert name in JUMPY or difference.max() < 1e-3


def test_single_precision_is_answered_as_double(name, model):
    X, Y = data()
    double = clone(model).fit(X, Y).predict_proba(X)
    single = model.fit(X.astype(np.float32), Y).predict_proba(X.astype(np.float32))
    assert single.dtype == np.float64
    difference = np.abs(single - double)
    assert np.mean(difference > 1e-3) <= (0.05 if name in JUMPY else 0)


def test_texts_are_taken_through_a_pipeline(model):
    rng = np.random.default_rng(0)
    words = np.array(["sun", "rain", "wind", "snow", "fog", "hail"])
    present = rng.random((60, 6)) < 0.5
    texts = [" ".join(words[row]) or "none" for row in present]
    Y = present[:, :3].astype(int)
    pipeline = make_pipeline(TfidfVectorizer(), model).fit(texts, Y)
    assert np.mean(pipeline.predict(texts) == Y) > 0.8
    assert offers(pipeline) == {"votes", "posteriors"}
    assert is_joint(pipeline) is is_joint(model)


def test_the_same_training_gives_the_same_answers(model):
    X, Y = data()
    X_before, Y_before = X.copy(), Y.copy()
    first, second = clone(model).fit(X, Y), clone(model).fit(X, Y)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    np.testing.assert_array_equal(first.predict(X), first.predict(X))
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(Y, Y_before)


def test_training_again_forgets_the_first_time(model):
    X, Y = data()
    other_X, other_Y = data(n_labels=3, seed=5)
    again = clone(model).fit(other_X[:, :9], other_Y).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), model.fit(X, Y).predict_proba(X))


def test_items_are_answered_one_by_one(model):
    X, Y = data()
    model.fit(X, Y)
    together = model.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X[5:6]), together[5:6], atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X[::-1]), together[::-1], atol=1e-9)


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name not in ORDERED])
def test_labels_may_stand_in_any_order(name, model):
    X, Y = data()
    order = [2, 0, 3, 1]
    plain = clone(model).fit(X, Y)
    moved = clone(model).fit(X, Y[:, order])
    difference = np.abs(moved.predict_proba(X) - plain.predict_proba(X)[:, order])
    assert np.mean(difference > 2e-3) <= (0.05 if name in JUMPY else 0)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.filterwarnings("ignore:Labels without both::prevalens")
def test_a_constant_label_is_answered_as_it_is(model, value):
    X, Y = data()
    Y[:, 1] = value
    model.fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], value, atol=0.1)
    np.testing.assert_array_equal(model.predict(X)[:, 1], value)
    assert model.predict_proba(X)[:, [0, 2, 3]].std() > 0


@pytest.mark.filterwarnings("ignore:Labels without both::prevalens")
def test_nothing_but_constant_labels(model):
    X, _ = data()
    Y = np.tile([1, 0, 0], (90, 1))
    np.testing.assert_array_equal(model.fit(X, Y).predict(X), Y)


def test_a_single_label(model):
    X, Y = data(n_labels=1)
    model.fit(X, Y)
    assert model.predict(X).shape == model.predict_proba(X).shape == (90, 1)
    assert np.mean(model.predict(X) == Y) > 0.7


def test_names_of_features_are_remembered_and_checked(model):
    X, Y = data()
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    labels = pd.DataFrame(Y, columns=list("abcd"))
    posteriors = clone(model).fit(X, Y).predict_proba(X)
    model.fit(frame, labels)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_allclose(model.predict_proba(frame), posteriors, atol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"f0": "g0"}))
    with pytest.raises(ValueError, match=r"(?s)feature names .*same order"):
        model.predict(frame[frame.columns[::-1]])


def test_items_and_labels_are_taken_in_every_form(model):
    X, Y = data()
    expected = clone(model).fit(X, Y).predict_proba(X)
    polars = pl.DataFrame(X, schema=[f"f{j}" for j in range(12)])
    forms = [
        (X.tolist(), Y.tolist()),
        (polars, pl.DataFrame(Y, schema=list("abcd"))),
        (np.asfortranarray(X), sp.csr_array(Y)),
        (X, np.asfortranarray(Y == 1)),
    ]
    for items, labels in forms:
        posteriors = model.fit(items, labels).predict_proba(items)
        np.testing.assert_allclose(posteriors, expected, atol=1e-9)


def test_before_training_it_says_so(model):
    X, _ = data()
    for method in (model.predict, model.predict_proba):
        with pytest.raises(NotFittedError):
            method(X)


def test_wrong_input_is_refused_with_its_place(model):
    X, Y = data()
    holed = X.copy()
    holed[4, 2] = np.nan
    with pytest.raises(InputError, match="nan at row 4, column 2"):
        clone(model).fit(holed, Y)
    with pytest.raises(InputError, match="X has 90 rows but Y has 89"):
        clone(model).fit(X, Y[:-1])
    with pytest.raises(InputError, match=r"Y must be 0 or 1 everywhere; got .*2.* at row 0, col"):
        clone(model).fit(X, Y + 1 + (Y == 0))
    with pytest.raises(InputError, match=r"For one label use Y.reshape\(-1, 1\)"):
        clone(model).fit(X, Y[:, 0])
    model.fit(X, Y)
    with pytest.raises(ValueError, match="12 features"):
        model.predict(X[:, :7])
    with pytest.raises(InputError, match="nan at row 4, column 2"):
        model.predict_proba(holed)


def test_it_can_be_saved(model):
    X, Y = data()
    model.fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


def test_it_says_whether_labels_are_seen_together(name, model):
    assert model.joint is (name not in ALONE)
    assert is_joint(model) is model.joint


def test_it_has_a_short_name(model):
    assert type(model).code.isidentifier()


def test_short_names_are_different():
    kinds = {type(model) for model in CLASSIFIERS.values()}
    assert len({kind.code for kind in kinds}) == len(kinds)


def test_responses_are_its_own_answers(model):
    X, Y = data()
    assert offers(model) == {"votes", "posteriors"}
    model.fit(X, Y)
    np.testing.assert_array_equal(response(model, X, "votes", 4).values, model.predict(X))
    np.testing.assert_array_equal(
        response(model, X, "posteriors", 4).values, model.predict_proba(X)
    )


def test_it_can_be_cross_fitted(model):
    X, Y = data()
    labelled = CrossFit(2).fit(model, X, Y, ("votes", "posteriors"))
    assert labelled.by_kind["votes"].values.shape == (90, 4)
    assert np.mean(labelled.by_kind["votes"].values == Y) > 0.55


def test_tools_of_scikit_learn_take_it(model):
    X, Y = data()
    assert is_classifier(model)
    posteriors = cross_val_predict(model, X, Y, cv=KFold(2), method="predict_proba")
    assert posteriors.shape == (90, 4)
    search = GridSearchCV(model, {}, cv=KFold(2)).fit(X, Y)
    assert 0 <= search.best_score_ <= 1
    assert search.predict_proba(X).shape == (90, 4)


class DensifiedError(AssertionError):
    """A sparse matrix of items was made dense."""


def test_sparse_items_are_never_made_dense(model, monkeypatch):
    rng = np.random.default_rng(0)
    n_items, n_features = 500, 10_000
    X = sp.random(n_items, n_features, density=1e-3, format="csr", random_state=rng)
    Y = (rng.random((n_items, 2)) < 0.4).astype(np.int8)
    dense_bytes = 8 * n_items * n_features
    for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array, sp.coo_matrix):
        for method in ("toarray", "todense"):
            monkeypatch.setattr(kind, method, _guarded(getattr(kind, method), n_features))
    tracemalloc.start()
    try:
        model.fit(X, Y).predict_proba(X)
        model.predict(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Not by a method of scipy and not by any other way: the memory would show.
    assert peak < dense_bytes / 2


def _guarded(method, n_features):
    def guarded(self, *args, **kwargs):
        if self.shape[1] >= n_features:
            raise DensifiedError(f"{self.shape} was made dense.")
        return method(self, *args, **kwargs)

    return guarded


ZERO_ONE = (
    "labels are 0 and 1 in two dimensions; this check hands in other classes or one dimension"
)
SENTENCE = "refused as it should be, in this package's own sentence"
#: What scikit-learn's checks ask of classifiers and cannot be had here, and why.
EXPECTED = {
    "check_class_weight_classifiers": ZERO_ONE,
    "check_classifier_data_not_an_array": ZERO_ONE,
    "check_classifier_not_supporting_multiclass": ZERO_ONE,
    "check_classifiers_classes": ZERO_ONE,
    "check_classifiers_one_label": ZERO_ONE,
    "check_classifiers_regression_target": ZERO_ONE,
    "check_classifiers_train": "a single label is answered as a column, not as a flat array",
    "check_estimator_sparse_array": ZERO_ONE,
    "check_estimator_sparse_matrix": ZERO_ONE,
    "check_estimators_dtypes": ZERO_ONE,
    "check_fit2d_1feature": ZERO_ONE,
    "check_complex_data": SENTENCE,
    "check_dtype_object": SENTENCE,
    "check_estimators_empty_data_messages": SENTENCE,
    "check_fit2d_predict1d": SENTENCE,
}
CERTAIN = {
    "check_classifiers_multilabel_output_format_predict_proba": "posteriors may be exactly 0 or 1"
}
MARGINS = {
    "check_classifier_multioutput": "votes are signs of margins, not posteriors above one half",
    "check_decision_proba_consistency": ZERO_ONE,
}
#: The same for single classifiers.
EXPECTED_OF = {
    Forest: CERTAIN,
    MLARAM: CERTAIN,
    Funnelling: {"check_fit2d_1sample": SENTENCE},
    RankSVM: MARGINS,
    MLTSVM: MARGINS,
    MLMPM: MARGINS,
    ExtraTrees: CERTAIN,
    PerLabel: {
        "check_decision_proba_consistency": ZERO_ONE,
        "check_non_transformer_estimators_n_iter": "the steps are those of `classifier_`",
        "check_sample_weights_pandas_series": ZERO_ONE,
        "check_sample_weights_not_an_array": ZERO_ONE,
        "check_sample_weights_shape": ZERO_ONE,
        "check_sample_weights_not_overwritten": ZERO_ONE,
        "check_sample_weight_equivalence_on_dense_data": ZERO_ONE,
        "check_sample_weight_equivalence_on_sparse_data": ZERO_ONE,
        "check_classifiers_one_label_sample_weights": ZERO_ONE,
    },
    Stacked: {"check_fit2d_1sample": SENTENCE},
    Tree: CERTAIN,
}


def expected_failures(model):
    failures = EXPECTED | EXPECTED_OF.get(type(model), {})
    if not hasattr(model, "class_weight"):
        del failures["check_class_weight_classifiers"]
    if model.takes_texts:
        # What is no matrix of numbers is handed on.
        del failures["check_dtype_object"]
    return failures


CHECKED = [
    PerLabel(),
    Stacked(cv=2),
    Chain(),
    ChainEnsemble(n_chains=2),
    MLkNN(k=3),
    Tree(),
    Forest(5),
    ExtraTrees(5),
    CLEMS(MLkNN(k=3)),
    LabelSpaceClusters(2, MLkNN(k=3)),
    Powerset(),
    RAkEL(),
    HOMER(),
    Funnelling(cv=2),
    RankSVM(),
    MLTSVM(),
    MLMPM(),
    MLARAM(),
    AdaBoostMH(5),
]


def checks_of_scikit_learn(*, declared):
    """Each check that is, or is not, declared to fail, bound to its classifier."""
    found = []
    for model in CHECKED:
        failures = expected_failures(model)
        for estimator, check in estimator_checks_generator(model, legacy=True, mark=None):
            name = getattr(check, "func", check).__name__
            if (name in failures) == declared:
                label = f"{type(model).__name__}-{name}{getattr(check, 'keywords', None) or ''}"
                found.append(pytest.param(partial(check, estimator), id=label))
    return found


@pytest.mark.parametrize("check", checks_of_scikit_learn(declared=False))
@pytest.mark.filterwarnings("ignore:Labels without both::prevalens")
def test_checks_of_scikit_learn(check):
    check()


@pytest.mark.parametrize("check", checks_of_scikit_learn(declared=True))
def test_what_is_declared_to_fail_fails(check):
    with pytest.raises((AssertionError, AttributeError, TypeError, ValueError)):
        check()
