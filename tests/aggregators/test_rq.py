from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR

from prevalens.aggregators import rq as module
from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.counting import CC, PCC
from prevalens.aggregators.regressors import REGRESSORS, BatchedLinearSVR, NormalisedRidge
from prevalens.aggregators.rq import RQ
from prevalens.aggregators.sld import SLD
from prevalens.crossfit import CrossFit, HoldOut
from prevalens.protocols import MLAPP, Natural
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.splits import stratified_holdout
from prevalens.validation import InputError

FEW = MLAPP(size=20, grid=11)


class Identity(BaseEstimator):
    def fit(self, X, y):
        self.rows_ = X.shape, y.shape
        return self

    def predict(self, X):
        return X


def make_data(n_items=400, n_labels=3, seed=0):
    """Timid posteriors of correlated labels."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n_items, 1)) + rng.normal(size=(n_items, n_labels))
    Y = (hidden > np.linspace(0, 1, n_labels)).astype(np.int8)
    noisy = hidden + rng.normal(size=hidden.shape)
    return Scores(1 / (1 + np.exp(1.0 - noisy)), kind="posteriors"), Y


SCORES, Y = make_data()
TEST, Y_TEST = make_data(seed=1)
SAMPLES = MLAPP(size=50, grid=11).draw(Y_TEST, 0)
TRUE = SAMPLES.mean(Y_TEST)


@pytest.mark.parametrize("base", [CC(), PCC(), ACC(), PACC(), SLD()], ids=repr)
@pytest.mark.parametrize("scheme", [None, CrossFit(3)])
def test_with_an_identity_for_a_regressor_it_is_its_base(base, scheme):
    scores, test = (
        (Scores((s.values > 0.5) * 1.0, "votes") if base.consumes == "votes" else s)
        for s in (SCORES, TEST)
    )
    alone = clone(base).fit(scores, Y).aggregate(test, SAMPLES)
    wrapped = RQ(base, Identity(), protocol=FEW, scheme=scheme).fit(scores, Y)
    np.testing.assert_array_equal(wrapped.aggregate(test, SAMPLES), alone)


def test_it_is_the_papers_algorithm_written_out():
    """Hold out 40 %, fit the base on the rest, regress true prevalences on its estimates, clip."""
    scheme = HoldOut(0.4, random_state=7)
    ours = RQ(PACC(), Ridge(0.1), protocol=FEW, scheme=scheme, random_state=3).fit(SCORES, Y)

    rest, held = stratified_holdout(Y, 0.4, seed=7)
    quantifier = PACC().fit(SCORES.take(rest), Y[rest])
    estimated, true = [], []
    for rows in FEW.draw(Y[held], np.random.default_rng(3)):
        sample = Scores(SCORES.values[held][rows])
        estimated.append(quantifier.aggregate(sample, Samples.whole(len(rows)))[0])
        true.append(Y[held][rows].mean(axis=0))
    regressor = Ridge(0.1).fit(estimated, true)
    expected = [
        np.clip(regressor.predict(quantifier.aggregate(TEST, SAMPLES[i : i + 1]))[0], 0, 1)
        for i in range(len(SAMPLES))
    ]
    np.testing.assert_allclose(ours.aggregate(TEST, SAMPLES), expected, atol=1e-12)
    assert ours.n_training_samples_ == len(true)


def test_it_corrects_what_the_base_misses():
    base = np.abs(PCC().fit(SCORES, Y).aggregate(TEST, SAMPLES) - TRUE).mean()
    for maker in REGRESSORS:
        rq = RQ(PCC(), maker.code, protocol=MLAPP(repeats=3)).fit(SCORES, Y)
        assert np.abs(rq.aggregate(TEST, SAMPLES) - TRUE).mean() < 0.8 * base


class Spy(Aggregator):
    """Remembers which items it was fitted on and which it was asked about, by their values."""

    consumes = "posteriors"
    joint = False
    calls: list = []  # noqa: RUF012

    def _fit(self, scores, Y):
        self.known_ = set(scores.values[:, 0])
        self.calls.append(("fit", self.known_))

    def _aggregate(self, scores, samples):
        asked = set(scores.values[:, 0][samples.flat])
        self.calls.append(("ask", asked, self.known_))
        return samples.mean(scores.values)


@pytest.mark.parametrize("scheme", [None, CrossFit(4), HoldOut(0.4), HoldOut(0.3, refit=True)])
def test_base_and_regressor_learn_from_different_items(scheme):
    Spy.calls.clear()
    scores, truth = make_data(n_items=1000)
    RQ(Spy(), "ridge", scheme=scheme).fit(scores, truth)
    asked = [call for call in Spy.calls if call[0] == "ask"]
    assert asked
    for _, items, known in asked:
        assert not items & known
    everything = set(scores.values[:, 0])
    last = Spy.calls[-1] if Spy.calls[-1][0] == "fit" else Spy.calls[0]
    if isinstance(scheme, HoldOut):
        assert len(asked) == 1
        assert (last[1] == everything) == scheme.refit
    else:
        assert len(asked) == (5 if scheme is None else 4)
        assert set().union(*(items | known for _, items, known in asked)) == everything
        assert set().union(*(items for _, items, _ in asked)) == everything
        assert last[1] == everything


def test_a_base_that_learns_nothing_needs_no_division():
    recorder = RQ(PCC(), Identity()).fit(SCORES, Y)
    samples = MLAPP(more_than=4999, max_samples=5000).draw(Y, np.random.default_rng(0))
    assert recorder.regressor_.rows_ == ((5000, 3), (5000, 3))
    assert recorder.n_training_samples_ == len(samples)


@pytest.mark.parametrize(
    ("n_items", "n_folds", "size"), [(1500, 5, 100), (700, 3, 100), (391, 2, 97), (9, 2, 2)]
)
def test_small_collections_get_fewer_folds_and_smaller_samples(monkeypatch, n_items, n_folds, size):
    drawn = []

    class Watched(MLAPP):
        def draw(self, Y, rng=None):
            drawn.append((self.size, len(Y)))
            return super().draw(Y, rng)

    monkeypatch.setattr(module.protocols, "MLAPP", Watched)
    scores, truth = make_data(n_items=n_items)
    RQ(PACC(), "ridge").fit(scores, truth)
    assert len(drawn) == n_folds
    assert {n_drawn for n_drawn, _ in drawn} <= {size, size + 1}
    assert sum(rows for _, rows in drawn) == n_items


def test_any_protocol_draws():
    rq = RQ(PACC(), Identity(), protocol=Natural(n_samples=30, size=25), scheme=CrossFit(4))
    assert rq.fit(SCORES, Y).n_training_samples_ == 120


def test_unreachable_samples_are_refused_by_the_protocol():
    with pytest.raises(InputError, match="A sample of 500 items cannot be drawn"):
        RQ(PCC(), "ridge", protocol=MLAPP(size=500)).fit(SCORES, Y)


@pytest.mark.parametrize(
    "regressor",
    [
        LinearRegression(),
        make_pipeline(StandardScaler(), Ridge()),
        MultiOutputRegressor(LinearSVR(random_state=0)),
        "svr",
        None,
    ],
    ids=repr,
)
def test_regressors_of_any_origin(regressor):
    estimates = RQ(PCC(), regressor, protocol=FEW).fit(SCORES, Y).aggregate(TEST, SAMPLES)
    assert np.abs(estimates - TRUE).mean() < 0.15


def test_one_label_and_a_regressor_of_one_output():
    single = SCORES.labels([0])
    rq = RQ(PCC(), LinearSVR(random_state=0), protocol=FEW).fit(single, Y[:, :1])
    assert rq.aggregate(TEST.labels([0]), SAMPLES).shape == (len(SAMPLES), 1)
    with pytest.raises(InputError, match="LinearSVR answers a single output, but there are 3"):
        RQ(PCC(), LinearSVR(), protocol=FEW).fit(SCORES, Y)


def test_the_same_seed_gives_the_same_estimates():
    def run(seed):
        rq = RQ(PACC(), "ridge", protocol=FEW, random_state=seed)
        return rq.fit(SCORES, Y).aggregate(TEST, SAMPLES)

    np.testing.assert_array_equal(run(4), run(4))
    assert np.abs(run(4) - run(5)).max() > 0


class Counting(BaseEstimator):
    """A quantifier of its own kind, over texts: the share of items that hold each word."""

    def fit(self, X, Y):
        self.words_ = ["red", "fox"]
        return self

    def quantify(self, X):
        return [np.mean([word in text for text in X]) / 2 for word in self.words_]


def test_texts_and_any_quantifier_inside():
    texts = ["red fox", "red sea", "blue fox", "blue sea"] * 30
    truth = np.array([["red" in text, "fox" in text] for text in texts])
    items = Scores(texts, kind="features")
    rq = RQ(Counting(), "ridge", protocol=MLAPP(size=20, grid=21)).fit(items, truth)
    assert rq.consumes == "features"
    samples = Samples.from_indices([[0, 1, 4, 6]], n_items=120)
    np.testing.assert_allclose(rq.aggregate(items, samples), [[0.75, 0.75]], atol=0.05)


def test_quantifiers_of_quapy_inside():
    quapy = pytest.importorskip("quapy")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    items = Scores(X, kind="features")
    rq = RQ(quapy.method.aggregative.PCC(), "ridge", protocol=MLAPP(size=20, grid=5))
    estimates = rq.fit(items, X[:, :2] > 0).aggregate(items, Samples.whole(160))
    np.testing.assert_allclose(estimates, [(X[:, :2] > 0).mean(axis=0)], atol=0.1)


def test_what_cannot_be_a_base():
    for wrong in (3, "pcc", Counting):
        with pytest.raises(InputError, match="The base must be an aggregator such as PCC"):
            RQ(wrong).fit(SCORES, Y)


def test_what_it_reads_is_what_its_base_reads():
    assert RQ().consumes == "posteriors"
    assert RQ(CC()).consumes == "votes"
    assert RQ(Counting()).consumes == "features"
    assert RQ(RQ(ACC())).consumes == "votes"


def test_many_settings_are_fits_one_by_one():
    rq = RQ(PACC(), BatchedLinearSVR(tol=1e-7), protocol=FEW)
    settings = [
        {"regressor__C": 1.0},
        {"base__guard": None, "regressor__C": 10.0},
        {"regressor__C": 0.1},
        {"base__guard": None, "regressor": NormalisedRidge()},
    ]
    copies = list(rq.fit_settings(settings, SCORES, Y))
    for setting, fitted in zip(settings, copies, strict=True):
        alone = clone(rq).set_params(**setting).fit(SCORES, Y)
        assert repr(fitted.get_params()) == repr(alone.get_params())
        np.testing.assert_allclose(
            fitted.aggregate(TEST, SAMPLES), alone.aggregate(TEST, SAMPLES), atol=1e-4
        )
    assert not hasattr(rq, "base_")


@pytest.mark.parametrize("regressor", [BatchedLinearSVR(), LinearSVR(random_state=0)], ids=repr)
def test_many_settings_of_one_label(regressor):
    single, truth = SCORES.labels([0]), Y[:, :1]
    rq = RQ(PCC(), regressor, protocol=FEW)
    settings = [{"regressor__C": 0.1}, {"regressor__C": 10.0}]
    for setting, fitted in zip(settings, rq.fit_settings(settings, single, truth), strict=True):
        alone = clone(rq).set_params(**setting).fit(single, truth)
        np.testing.assert_allclose(
            fitted.aggregate(TEST.labels([0]), SAMPLES),
            alone.aggregate(TEST.labels([0]), SAMPLES),
            atol=1e-3,
        )


def test_settings_of_the_regressor_share_the_base():
    Spy.calls.clear()
    rq = RQ(Spy(), NormalisedRidge(), protocol=FEW, scheme=CrossFit(2))
    list(rq.fit_settings([{"regressor__alpha": a} for a in (0.1, 1.0, 10.0)], SCORES, Y))
    assert [call[0] for call in Spy.calls].count("fit") == 3


def test_refusals():
    with pytest.raises(InputError, match=r"The scheme must be CrossFit\(\) or HoldOut\(\)"):
        RQ(ACC(), scheme=0.4).fit(Scores(np.round(SCORES.values), "votes"), Y)
    with pytest.raises(InputError, match="The protocol must have a method draw; got 'ml-app'"):
        RQ(PCC(), protocol="ml-app").fit(SCORES, Y)
    with pytest.raises(InputError, match="RQ needs at least two labelled items"):
        RQ(PACC()).fit(SCORES.take([0]), Y[:1])


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(2, 60),
    n_labels=st.integers(1, 4),
    base=st.sampled_from([PCC(), PACC(), SLD()]),
)
def test_whatever_the_scores_the_answers_are_shares(seed, n_items, n_labels, base):
    """Constant labels, labels of one positive, ties: everything a small collection may hold."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n_items, n_labels)) < rng.choice([0, 0.05, 0.5, 1], n_labels)) * 1
    scores = Scores(np.round(rng.random((n_items, n_labels)), rng.integers(1, 4)))
    protocol = None if n_items > 40 else MLAPP(size=1, grid=2)
    rq = RQ(base, protocol=protocol, scheme=CrossFit(2)).fit(scores, truth)
    estimates = rq.aggregate(scores, Samples.whole(n_items))
    assert np.all((estimates >= 0) & (estimates <= 1))


@pytest.mark.data
@pytest.mark.parametrize("name", ["emotions"])
def test_on_emotions_it_beats_its_base(name):
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    from prevalens.datasets import load

    data = load(name)
    model = make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression()))
    labelled = CrossFit().fit(model, data.train.X, data.train.Y)
    test = Scores(labelled.classifier.predict_proba(data.test.X))
    samples = MLAPP(more_than=2000).draw(data.test.Y, 0)
    true = samples.mean(data.test.Y)
    truth = data.train.Y[labelled.rows]
    for base, regressor in ((SLD(), "ridge"), (PCC(), "svr")):
        alone = base.fit(labelled.scores, truth).aggregate(test, samples)
        rq = RQ(base, regressor).fit(labelled.scores, truth)
        better = np.abs(rq.aggregate(test, samples) - true).mean()
        assert better < np.abs(alone - true).mean()


@pytest.mark.parametrize(("base", "n_parts"), [(PACC(), 5), (PCC(), 1)])
def test_five_thousand_samples_are_divided_over_the_parts(base, n_parts):
    drawn = []

    class Counted(MLAPP):
        def draw(self, Y, rng=None):
            drawn.append(self.max_samples)
            return super().draw(Y, rng)

    scores, truth = make_data(1100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.protocols, "MLAPP", Counted)
        rq = RQ(base, "ridge").fit(scores, truth)
    assert drawn == [5000 // n_parts] * n_parts
    assert rq.n_training_samples_ == 5000


def test_groups_stay_on_one_side():
    scores, truth = make_data(402)
    groups = np.arange(402) // 3
    asked = []

    class Watched(PACC):
        def _fit(self, scores, Y):
            super()._fit(scores, Y)
            self.seen_ = set(scores.values[:, 0].tolist())

        def _aggregate(self, scores, samples):
            asked.append((self.seen_, set(scores.values[:, 0].tolist())))
            return super()._aggregate(scores, samples)

    RQ(Watched(), "ridge").fit(scores, truth, groups=groups)
    group_of = dict(zip(scores.values[:, 0].tolist(), groups.tolist(), strict=True))
    assert len(asked) == 2
    for seen, pool in asked:
        assert not {group_of[value] for value in seen} & {group_of[value] for value in pool}
    with pytest.raises(InputError, match="RQ needs at least two groups"):
        RQ(PACC(), "ridge").fit(scores, truth, groups=np.zeros(402))
