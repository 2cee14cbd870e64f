"""The join: halves that fit, halves that do not, and everything a user hands in."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from prevalens import Quantifier, Samples, parse
from prevalens.aggregators import ACC, CC, LPQ, PACC, PCC, RQ, SLD, HDx, TrainingPrevalence
from prevalens.batches import Batches
from prevalens.classifiers import CrossFit, HoldOut, PerLabel, Stacked
from prevalens.datasets import synthetic
from prevalens.estimate import Intervals
from prevalens.selection.automatic import choose
from prevalens.validation import InputError, PrevalensWarning

DATA = synthetic(n_train=400, n_test=300, n_labels=4, n_features=8, random_state=3)
TRAIN, TEST = DATA.train, DATA.test


def fit(*parts: object, **options: object) -> Quantifier:
    return Quantifier(*parts, **options).fit(TRAIN.X, TRAIN.Y, labels=TRAIN.labels)


def test_cc_is_the_share_of_votes_and_pcc_the_mean_posterior() -> None:
    counted, averaged = fit(PerLabel(), CC()), fit(PerLabel(), PCC())
    classifier = PerLabel().fit(TRAIN.X, TRAIN.Y)
    np.testing.assert_allclose(counted.quantify(TEST.X), classifier.predict(TEST.X).mean(axis=0))
    np.testing.assert_allclose(
        averaged.quantify(TEST.X), classifier.predict_proba(TEST.X).mean(axis=0)
    )


@pytest.mark.parametrize(
    "aggregator",
    [None, CC(), PCC(), ACC(), PACC(), SLD(), RQ(PCC(), "ridge"), RQ(ACC(), "svr")],
    ids=repr,
)
def test_every_aggregator_joins(aggregator: object) -> None:
    estimate = fit(PerLabel(), aggregator, uncertainty=None).quantify(TEST.X)
    assert estimate.labels == TRAIN.labels
    assert np.all((estimate >= 0) & (estimate <= 1))


@pytest.mark.parametrize("aggregator", [HDx(), TrainingPrevalence(), RQ(HDx(), "ridge")], ids=repr)
def test_without_a_classifier(aggregator: object) -> None:
    quantifier = fit(None, aggregator, uncertainty=None)
    assert quantifier.classifier_ is None
    assert quantifier.quantify(TEST.X).shape == (4,)
    assert quantifier.group in ("BA", "MLA")


def test_sld_with_a_weight_is_sld_on_repeated_positives() -> None:
    """A positive of weight 3 is three positives, for the classifier and for the prior."""
    X, y = np.asarray(TRAIN.X), TRAIN.Y[:, :1]
    thrice = np.repeat(np.arange(len(y)), np.where(y[:, 0] == 1, 3, 1))
    weighted = Quantifier(PerLabel(class_weight={0: 1, 1: 3}), SLD()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrevalensWarning)  # copies, on purpose
        repeated = Quantifier(PerLabel(), SLD()).fit(X[thrice], y[thrice])
    np.testing.assert_allclose(
        np.asarray(weighted.quantify(TEST.X)), np.asarray(repeated.quantify(TEST.X)), atol=1e-4
    )
    balanced = Quantifier(PerLabel(class_weight="balanced"), SLD()).fit(X, TRAIN.Y)
    assert balanced.aggregator_.prior_.tolist() == [0.5] * 4
    cross_fitted = CrossFit().fit(PerLabel(class_weight="balanced"), X, TRAIN.Y)
    assert cross_fitted.scores.prior.tolist() == [0.5] * 4


def test_naive_answers_the_training_prevalence() -> None:
    np.testing.assert_allclose(fit(None, TrainingPrevalence()).quantify(TEST.X), TRAIN.prevalence)


@pytest.mark.parametrize(
    "classifier",
    [
        OneVsRestClassifier(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
        DecisionTreeClassifier(max_depth=3, random_state=0),
        make_pipeline(OneVsRestClassifier(LogisticRegression())),
        FrozenEstimator(OneVsRestClassifier(LogisticRegression()).fit(TRAIN.X, TRAIN.Y)),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_scikit_learn_classifiers_work_as_they_are(classifier: object) -> None:
    for aggregator in (CC(), PACC()):
        estimate = fit(classifier, aggregator, uncertainty=None).quantify(TEST.X)
        assert estimate.shape == (4,)


def test_groups_follow_from_the_parts() -> None:
    assert Quantifier(PerLabel(), PCC()).group == "BC+BA"
    assert Quantifier(Stacked(), PCC()).group == "MLC+BA"
    assert Quantifier(PerLabel(), RQ(PCC())).group == "BC+MLA"
    assert Quantifier(Stacked(), RQ(PCC())).group == "MLC+MLA"
    assert Quantifier(PerLabel(), LPQ(PCC())).group == "BC+MLA"
    assert Quantifier(ClassifierChain(LogisticRegression()), CC()).group == "MLC+BA"
    assert Quantifier(OneVsRestClassifier(LogisticRegression()), CC()).group == "BC+BA"


def test_names_follow_from_the_parts() -> None:
    assert Quantifier(PerLabel(), PCC()).name == "lr+pcc"
    assert Quantifier(PerLabel(C=10, class_weight="balanced"), ACC()).name == (
        "lr(C=10,class_weight=balanced)+acc"
    )
    assert Quantifier(None, TrainingPrevalence()).name == "naive"
    assert Quantifier(PerLabel(), ACC(), scheme=HoldOut(0.3)).name == "lr+acc@holdout(fraction=0.3)"


def test_many_batches_are_the_batches_one_by_one() -> None:
    quantifier = fit(PerLabel(), PACC())
    months = np.array(["may", "june", "july"])[np.arange(TEST.n_items) % 3]
    many = quantifier.quantify_many(TEST.X, months)
    assert many.index == ["july", "june", "may"]
    for name, row in zip(many.index, many, strict=True):
        np.testing.assert_allclose(row, quantifier.quantify(TEST.X[months == name]), atol=1e-12)
    for series in (pd.Series(months), pl.Series(months)):
        np.testing.assert_array_equal(quantifier.quantify_many(TEST.X, series), many)
    samples = Samples.from_indices([np.flatnonzero(months == "may")], n_items=TEST.n_items)
    np.testing.assert_allclose(quantifier.quantify_many(TEST.X, samples)[0], many[2])


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, pd.DataFrame, np.asarray, list])
def test_every_form_of_items_gives_the_same(form: object) -> None:
    dense = fit(PerLabel(), PACC()).quantify(TEST.X)
    other = Quantifier(PerLabel(), PACC()).fit(form(TRAIN.X), TRAIN.Y).quantify(form(TEST.X))
    np.testing.assert_allclose(other, dense, atol=1e-4)


def test_label_names_from_a_frame_or_label_sets() -> None:
    frame = pd.DataFrame(TRAIN.Y, columns=TRAIN.labels)
    assert Quantifier(PerLabel(), PCC()).fit(TRAIN.X, frame).labels_ == TRAIN.labels
    sets = [{name for name, y in zip(TRAIN.labels, row, strict=True) if y} for row in TRAIN.Y]
    fitted = Quantifier(PerLabel(), PCC()).fit(TRAIN.X, sets, labels=TRAIN.labels)
    np.testing.assert_allclose(fitted.prevalence_, TRAIN.prevalence)


def test_texts_and_mixed_frames_through_a_pipeline() -> None:
    texts = ["red fox", "blue sea", "red sea", "blue fox"] * 30
    Y = [[int("red" in text), int("fox" in text)] for text in texts]
    text = make_pipeline(TfidfVectorizer(), PerLabel(C=100))
    estimate = Quantifier(text, PACC()).fit(texts, Y).quantify(["red fox"] * 3 + ["blue sea"])
    np.testing.assert_allclose(estimate, [0.75, 0.75], atol=0.05)
    frame = pd.DataFrame({"colour": [w.split()[0] for w in texts], "n": np.arange(120.0)})
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="drop")
    mixed = Quantifier(make_pipeline(columns, PerLabel()), CC()).fit(frame, Y)
    assert mixed.quantify(frame)[0] == 0.5


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            (OneVsRestClassifier(LinearSVC()), PACC()),
            "PACC needs posteriors; OneVsRestClassifier offers only votes. Use ACC, or wrap it in "
            "CalibratedClassifierCV",
        ),
        ((PerLabel(), PerLabel()), "The aggregator must be an Aggregator such as PCC"),
        (("lr", CC()), "The classifier must have a fit method; got 'lr'"),
        ((PerLabel(), HDx()), "HDx reads the items themselves and needs no classifier"),
    ],
)
def test_parts_that_do_not_fit_together(parts: tuple[object, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        fit(*parts)


def test_bad_items_and_batches() -> None:
    with pytest.raises(InputError, match="X has 400 rows but Y has 10"):
        Quantifier(PerLabel(), CC()).fit(TRAIN.X, TRAIN.Y[:10])
    with pytest.raises(InputError, match="nan at row 0, column 0"):
        Quantifier(PerLabel(), CC()).fit([[np.nan]], [[1]])
    quantifier = fit(PerLabel(), CC())
    with pytest.raises(InputError, match="X has no items"):
        quantifier.quantify(TEST.X[:0])
    with pytest.raises(InputError, match="X has 300 rows but groups has 3"):
        quantifier.quantify_many(TEST.X, [1, 2, 3])
    with pytest.raises(ValueError, match="features"):
        quantifier.quantify(TEST.X[:, :3])


def test_unfitted() -> None:
    with pytest.raises(NotFittedError):
        Quantifier(PerLabel(), CC()).quantify(TEST.X)


def test_clone_and_params() -> None:
    quantifier = Quantifier(PerLabel(C=3), RQ(PCC()), scheme=CrossFit(3))
    copy = clone(quantifier)
    assert copy.name == quantifier.name
    copy.set_params(classifier__C=5)
    assert (copy.classifier.C, quantifier.classifier.C) == (5, 3)


def test_one_item_and_one_label() -> None:
    assert fit(PerLabel(), PACC()).quantify(TEST.X[:1]).shape == (4,)
    single = Quantifier(PerLabel(), SLD()).fit(TRAIN.X, TRAIN.Y[:, :1])
    assert single.quantify(TEST.X).shape == (1,)


def test_the_scheme_decides_who_sees_what() -> None:
    held = fit(PerLabel(), ACC(), scheme=HoldOut(0.4))
    crossed = fit(PerLabel(), ACC())
    everything = PerLabel().fit(TRAIN.X, TRAIN.Y)
    np.testing.assert_allclose(crossed.classifier_.coef_, everything.coef_, atol=1e-4)
    assert np.abs(held.classifier_.coef_ - everything.coef_).max() > 1e-3


def test_intervals_on_demand() -> None:
    quantifier = fit(PerLabel(), PACC())
    plain, estimate = quantifier.quantify(TEST.X), quantifier.quantify(TEST.X, interval=0.9)
    assert (plain.level, plain.lower, estimate.level) == (None, None, 0.9)
    np.testing.assert_array_equal(estimate, plain)
    assert np.all((estimate.band_lower <= estimate.lower) & (estimate.lower < estimate.point))
    assert np.all((estimate.band_upper >= estimate.upper) & (estimate.upper > estimate.point))
    groups = np.repeat(["a", "b"], len(TEST.Y) // 2)
    many = quantifier.quantify_many(TEST.X, groups, interval=0.9)
    assert many.index == ["a", "b"]
    assert many.upper.shape == many.band_lower.shape == (2, 4)
    with pytest.raises(InputError, match="interval must lie strictly between 0 and 1"):
        quantifier.quantify(TEST.X, interval=90)


class _Knowing(PCC):
    """An aggregator that makes its own intervals, and doubts all but the first sample."""

    has_intervals = True

    def _estimate(self, batches: Batches, level: float) -> tuple[Any, Intervals | None]:
        point = self.read(batches)
        low, high = point * level, np.minimum(point / level, 1)
        p_value = np.r_[0.5, [1e-4] * (len(batches) - 1)]
        return point, Intervals(low, high, low, high, p_value)


def test_intervals_of_the_aggregator_and_the_warning_of_misfit() -> None:
    quantifier = fit(PerLabel(), _Knowing(), drift=0)
    estimate = quantifier.quantify(TEST.X, interval=0.5)
    assert estimate.p_value == 0.5
    np.testing.assert_allclose(estimate.lower, estimate.point / 2)
    wider = fit(PerLabel(), _Knowing()).quantify(TEST.X, interval=0.5)
    np.testing.assert_array_equal(wider, estimate)
    assert np.all((wider.lower < estimate.lower) & (estimate.upper < wider.upper))
    groups = np.arange(len(TEST.Y)) % 3
    with pytest.warns(PrevalensWarning, match="Batches 1, 2 differ from the training data"):
        many = quantifier.quantify_many(TEST.X, groups, interval=0.5)
    assert many.p_value.tolist() == [0.5, 1e-4, 1e-4]


class StopError(Exception):
    """The work is no longer wanted."""


def stop_at(message: str, messages: list[str]) -> object:
    """A progress that takes everything down and ends the work at these words."""

    def progress(now: str) -> None:
        messages.append(now)
        if now == message:
            raise StopError

    return progress


@pytest.mark.parametrize(
    ("quantifier", "stages"),
    [
        (Quantifier(PerLabel(), PCC(), uncertainty=None), ["training the classifier"]),
        (
            Quantifier(PerLabel(), PACC(), uncertainty=None),
            ["training the classifier", "fitting the aggregator"],
        ),
        (
            Quantifier(PerLabel(), PCC()),
            ["training the classifier", "fitting the aggregator", "preparing intervals"],
        ),
        (Quantifier(None, HDx()), ["fitting the aggregator", "preparing intervals"]),
        (Quantifier(None, HDx(), uncertainty=None), ["fitting the aggregator"]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_stages_are_told_in_order(quantifier: Quantifier, stages: list[str]) -> None:
    messages: list[str] = []
    quantifier.fit(TRAIN.X[:40], TRAIN.Y[:40, :2], progress=messages.append)
    assert messages == stages


def test_the_automatic_fit_reports_the_stages_of_the_choice() -> None:
    stages: list[str] = []
    messages: list[str] = []
    choose(TRAIN.X[:40], TRAIN.Y[:40, :2], progress=stages.append)
    Quantifier().fit(TRAIN.X[:40], TRAIN.Y[:40, :2], progress=messages.append)
    assert messages == stages
    assert "logistic regressions" in messages


@pytest.mark.parametrize("message", ["logistic regressions", "choosing"])
def test_what_progress_raises_ends_the_fit(message: str) -> None:
    messages: list[str] = []
    quantifier = Quantifier()
    with pytest.raises(StopError):
        quantifier.fit(TRAIN.X[:40], TRAIN.Y[:40, :2], progress=stop_at(message, messages))
    assert messages[-1] == message
    assert vars(quantifier) == quantifier.get_params(deep=False)


def test_a_stopped_fit_leaves_the_one_before() -> None:
    quantifier = fit(PerLabel(), PACC())
    before = quantifier.quantify(TEST.X)
    stop = stop_at("fitting the aggregator", [])
    with pytest.raises(StopError):
        quantifier.fit(TRAIN.X, TRAIN.Y[:, :2], progress=stop)
    assert quantifier.labels_ == TRAIN.labels
    np.testing.assert_array_equal(quantifier.quantify(TEST.X), before)


def test_a_choice_is_gone_when_the_parts_are_given() -> None:
    quantifier = Quantifier().fit(TRAIN.X[:40], TRAIN.Y[:40, :2])
    assert quantifier.choice_.name.endswith("mixture")
    quantifier.set_params(classifier=PerLabel(), aggregator=CC()).fit(TRAIN.X, TRAIN.Y)
    assert quantifier.choice_ is None


@pytest.mark.parametrize("routed", [False, True])
def test_progress_through_a_pipeline(routed: bool) -> None:
    messages: list[str] = []
    quantifier = Quantifier(PerLabel(), PCC(), uncertainty=None)
    with config_context(enable_metadata_routing=routed):
        # Nobody has to ask for what nobody gives.
        make_pipeline(StandardScaler(), clone(quantifier)).fit(TRAIN.X, TRAIN.Y)
        if routed:
            pipeline = make_pipeline(StandardScaler(), quantifier.set_fit_request(progress=True))
            pipeline.fit(TRAIN.X, TRAIN.Y, progress=messages.append)
        else:
            pipeline = make_pipeline(StandardScaler(), quantifier)
            pipeline.fit(TRAIN.X, TRAIN.Y, quantifier__progress=messages.append)
    assert messages == ["training the classifier"]
    assert "progress" not in quantifier.get_params()


@pytest.mark.parametrize("name", ["sld", "hdy", "kdey", "ms2", "pq", "rq(hdy,ridge)"])
def test_a_label_with_few_positives_is_warned_of_once(name: str) -> None:
    data = synthetic(n_train=80, n_test=20, n_labels=3, random_state=0)
    Y = data.train.Y.copy()
    Y[:, 0] = 0
    Y[7, 0] = 1
    with pytest.warns(PrevalensWarning) as found:
        parse(f"lr+{name}").set_params(uncertainty=None).fit(data.train.X, Y)
    told = [str(each.message) for each in found if "mostly chance" in str(each.message)]
    assert len(told) == 1
    assert told[0].startswith("1 of 3 labels have fewer than 5 positives, or negatives")


@pytest.mark.parametrize("name", ["pcc", "pacc", "sld"])
def test_no_positives_or_enough_are_no_reason_to_warn(name: str) -> None:
    data = synthetic(n_train=80, n_test=20, n_labels=3, random_state=0)
    Y = data.train.Y.copy()
    Y[:, 0] = 0
    Y[:5, 1], Y[5:, 1] = 1, 0
    if name != "sld":
        Y[7, 0] = 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?!.*mostly chance)")
        parse(f"lr+{name}").set_params(uncertainty=None).fit(data.train.X, Y)
