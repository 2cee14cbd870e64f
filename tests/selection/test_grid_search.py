"""Model selection: the right setting wins, for the right reason, and nothing is done twice."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from prevalens import Quantifier, Samples
from prevalens.aggregators import ACC, CC, LPQ, PACC, PCC, RQ
from prevalens.classifiers import CrossFit, HoldOut, MLkNN, PerLabel, Stacked
from prevalens.datasets import synthetic
from prevalens.evaluation import evaluate
from prevalens.metrics import ae
from prevalens.protocols import MLAPP, Natural
from prevalens.selection.grid_search import GridSearch
from prevalens.splits import stratified_holdout
from prevalens.validation import InputError

DATA = synthetic(n_train=400, n_test=200, n_labels=4, n_features=8, random_state=3)
X, Y = DATA.train.X, DATA.train.Y
PROTOCOL = MLAPP(size=40, grid=11)
GRID = {"classifier__C": [0.01, 1.0], "classifier__class_weight": [None, "balanced"]}


def search(quantifier: Quantifier, grid: dict[str, list[Any]], **options: Any) -> GridSearch:
    return GridSearch(quantifier, grid, protocol=PROTOCOL, **options).fit(X, Y)


def loss_by_hand(quantifier: Quantifier, seed: int = 0) -> np.ndarray:
    """The plain way: fit on the rest, draw from what was held, one error per sample and label."""
    rest, held = stratified_holdout(Y, 0.4, seed=seed)
    samples = PROTOCOL.draw(Y[held], seed)
    estimate = clone(quantifier).fit(X[rest], Y[rest]).quantify_many(X[held], samples)
    return np.abs(samples.mean(Y[held]) - np.asarray(estimate))


@pytest.mark.parametrize("aggregator", [CC(), PCC(), ACC(), RQ(PCC(), "ridge")], ids=repr)
def test_the_table_is_what_a_plain_loop_gives(aggregator: Any) -> None:
    tuned = search(Quantifier(PerLabel(), aggregator, uncertainty=None), GRID, choose="together")
    for params, score in zip(
        tuned.cv_results_["params"], tuned.cv_results_["mean_test_score"], strict=True
    ):
        quantifier = Quantifier(PerLabel(), aggregator, uncertainty=None).set_params(**params)
        assert -score == pytest.approx(loss_by_hand(quantifier).mean(), abs=2e-4)
    best = int(np.argmax(tuned.cv_results_["mean_test_score"]))
    assert tuned.best_params_ == tuned.cv_results_["params"][best]
    assert tuned.cv_results_["rank_test_score"][best] == 1


def test_per_label_choice_is_the_best_of_each_label() -> None:
    tuned = search(Quantifier(PerLabel(), PCC()), GRID)
    params = tuned.cv_results_["params"]
    table = [loss_by_hand(Quantifier(PerLabel(**_inner(p)), PCC())).mean(axis=0) for p in params]
    best = np.argmin(table, axis=0)
    assert tuned.best_params_["classifier__C"] == [params[i]["classifier__C"] for i in best]
    for label, setting in enumerate(best):
        alone = PerLabel(**_inner(params[setting])).fit(X, Y[:, [label]])
        expected = alone.predict_proba(DATA.test.X).mean()
        assert tuned.quantify(DATA.test.X)[label] == pytest.approx(expected, abs=1e-4)


def _inner(params: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("classifier__"): value for name, value in params.items()}


def test_binary_app_looks_only_at_the_samples_of_the_label() -> None:
    tuned = search(Quantifier(PerLabel(), PCC()), GRID, choose="binary-app")
    _, held = stratified_holdout(Y, 0.4, seed=0)
    target = PROTOCOL.draw(Y[held], 0).target
    params = tuned.cv_results_["params"]
    each = [loss_by_hand(Quantifier(PerLabel(**_inner(p)), PCC())) for p in params]
    for label in range(Y.shape[1]):
        mine = target == label
        assert mine.any()
        best = int(np.argmin([loss[mine, label].mean() for loss in each]))
        chosen = {name: tuned.best_params_[name][label] for name in tuned.best_params_}
        assert chosen == params[best]


def test_labels_that_are_too_rare_keep_the_settings_they_came_with() -> None:
    rest, held = stratified_holdout(Y, 0.4, order=2, seed=0)
    fewest = np.minimum(Y[rest].sum(axis=0), Y[held].sum(axis=0))
    limit = int(np.sort(fewest)[2])
    quantifier = Quantifier(PerLabel(C=7.0), PCC())
    tuned = search(quantifier, GRID, choose="binary-app", min_positives=limit, order=2)
    free = search(quantifier, GRID, choose="binary-app", order=2)
    for label in range(Y.shape[1]):
        own = {"classifier__C": 7.0, "classifier__class_weight": None}
        chosen = {name: free.best_params_[name][label] for name in free.best_params_}
        expected = own if fewest[label] < limit else chosen
        assert {n: tuned.best_params_[n][label] for n in tuned.best_params_} == expected
        alone = PerLabel(**_inner(expected)).fit(X, Y[:, [label]])
        share = alone.predict_proba(DATA.test.X).mean()
        assert tuned.quantify(DATA.test.X)[label] == pytest.approx(share, abs=1e-4)
    assert np.isnan(search(quantifier, GRID, min_positives=10**6).best_score_)


def test_refit_sees_every_item() -> None:
    tuned = search(Quantifier(PerLabel(), PCC()), {"classifier__C": [1.0]}, choose="together")
    everything = Quantifier(PerLabel(C=1.0), PCC()).fit(X, Y)
    np.testing.assert_allclose(
        tuned.quantify(DATA.test.X), everything.quantify(DATA.test.X), atol=1e-6
    )
    np.testing.assert_allclose(tuned.prevalence_, DATA.train.prevalence)


class Counting(ClassifierMixin, BaseEstimator):
    """Counts its trainings."""

    fits: ClassVar[Counter[float]] = Counter()

    def __init__(self, level: float = 0.5, pause: float = 0.0) -> None:
        self.level = level
        self.pause = pause

    def fit(self, X: Any, Y: Any) -> Counting:
        if self.level > 1:
            raise ValueError("level is too high")
        time.sleep(self.pause)
        Counting.fits[self.level] += 1
        self.n_labels_ = Y.shape[1]
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros((len(X), self.n_labels_))

    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), self.n_labels_), self.level)


def test_an_estimator_of_ones_own_is_searched_label_by_label() -> None:
    """Its settings cannot be solved together as those of the default can."""
    grid = {"classifier__estimator__var_smoothing": [1e-9, 1.0]}
    found = search(Quantifier(PerLabel(GaussianNB()), PCC()), grid, choose="together")
    assert list(found.cv_results_["failure"]) == ["", ""]
    assert len(set(found.cv_results_["mean_test_score"])) == 2


def test_aggregator_settings_do_not_train_the_classifier_again() -> None:
    Counting.fits.clear()
    search(
        Quantifier(Counting(), PACC(), scheme=HoldOut(0.5)),
        {"classifier__level": [0.2, 0.4], "aggregator__guard": [0.0, 1.0, 2.0]},
        refit=False,
    )
    assert Counting.fits == {0.2: 1, 0.4: 1}


def test_a_failing_setting_is_a_row_and_not_the_end() -> None:
    quantifier = Quantifier(Counting(), PCC())
    tuned = search(quantifier, {"classifier__level": [0.2, 7.0]}, choose="together")
    assert tuned.best_params_ == {"classifier__level": 0.2}
    assert "level is too high" in tuned.cv_results_["failure"][1]
    with pytest.raises(InputError, match=r"No setting could be fitted.*level is too high"):
        search(quantifier, {"classifier__level": [7.0]})


def test_a_slow_setting_is_out() -> None:
    tuned = search(
        Quantifier(Counting(), PCC()),
        {"classifier__pause": [0.0, 30.0]},
        time_limit=0.5,
        refit=False,
        choose="together",
    )
    assert tuned.best_params_ == {"classifier__pause": 0.0}
    assert "time limit" in tuned.cv_results_["failure"][1]


def test_parallel_is_the_same() -> None:
    grid = {"classifier__k": [1, 5], "classifier__s": [0.5, 1.0]}
    serial = search(Quantifier(MLkNN(), PCC()), grid)
    two = search(Quantifier(MLkNN(), PCC()), grid, n_jobs=2)
    np.testing.assert_array_equal(
        serial.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_some_at_random() -> None:
    grid = {"classifier__C": [0.01, 0.1, 1.0, 10.0, 100.0]}
    tuned = search(Quantifier(PerLabel(), PCC()), grid, n_candidates=2, random_state=4)
    again = search(Quantifier(PerLabel(), PCC()), grid, n_candidates=2, random_state=4)
    assert len(tuned.cv_results_["params"]) == 2
    assert tuned.cv_results_["params"] == again.cv_results_["params"]


def test_joint_parts_are_chosen_together() -> None:
    tuned = search(Quantifier(Stacked(), PCC()), {"classifier__normalize": [False, True]})
    assert tuned.best_params_["classifier__normalize"] in (False, True)
    assert (tuned.name, tuned.group) == ("tuned(stack+pcc)", "MLC+BA")


def test_the_default_protocol_runs_and_evaluates() -> None:
    tuned = GridSearch(Quantifier(PerLabel(), PCC()), {"classifier__C": [1.0]}).fit(X, Y)
    scores = evaluate(tuned, DATA.test, Natural(size=20, n_samples=5))
    expected = ae(scores.true, tuned.quantify_many(DATA.test.X, scores.samples).point)
    np.testing.assert_allclose(scores.errors(), expected)
    assert tuned.quantify_many(DATA.test.X, Samples.whole(200)).shape == (1, 4)


@pytest.mark.parametrize(
    ("grid", "options", "sentence"),
    [
        ({"C": [1]}, {}, "The grid names 'C'; a setting belongs to the classifier"),
        ({"classifier__D": [1]}, {}, r"lr\+pcc has no parameter 'classifier__D'"),
        ({"classifier__C": 1}, {}, "must be a list of values; got 1"),
        ({"classifier__C": []}, {}, "must be a list of values"),
        ({"classifier__C": "abc"}, {}, "must be a list of values; got 'abc'"),
        ({"classifier__C": [1]}, {"choose": "best"}, "choose must be one of"),
        ({"classifier__C": [1]}, {"loss": "f1"}, "loss must be one of"),
        ({"classifier__C": [1]}, {"validation": 1.5}, "validation must lie"),
        ([("classifier__C", 1)], {}, "grid must map parameter names to lists"),
    ],
)
def test_bad_searches(grid: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        search(Quantifier(PerLabel(), PCC()), grid, **options)


def test_per_label_needs_parts_that_treat_labels_alone() -> None:
    with pytest.raises(InputError, match="Use choose='together'"):
        search(Quantifier(Stacked(), PCC()), {"classifier__normalize": [True]}, choose="per-label")


def test_unfitted_and_clone() -> None:
    made = GridSearch(Quantifier(PerLabel(), PCC()), GRID)
    with pytest.raises(NotFittedError):
        made.quantify(X)
    assert clone(made).grid == GRID


def test_settings_of_a_classifier_that_the_aggregator_trains_count() -> None:
    quantifier = Quantifier(PerLabel(), LPQ(PCC(), [[0, 1], [2, 3]]))
    results = search(quantifier, GRID).cv_results_
    assert results["failure"] == [""] * 4
    by_hand = [
        loss_by_hand(clone(quantifier).set_params(**params)).mean() for params in results["params"]
    ]
    np.testing.assert_allclose(-results["mean_test_score"], by_hand)
    assert len(set(np.round(by_hand, 6))) == 4


def test_groups_are_never_on_both_sides_of_any_division() -> None:
    groups = np.arange(len(Y)) // 3
    seen: list[tuple[set[int], set[int]]] = []

    class Watching(CrossFit):
        def divide(self, Y: Any, groups: Any = None) -> Any:
            divisions = super().divide(Y, groups)
            seen.extend((set(groups[rest]), set(groups[held])) for rest, held in divisions)
            return divisions

    quantifier = Quantifier(PerLabel(), PACC(), scheme=Watching(3))
    tuned = GridSearch(quantifier, {"classifier__C": [0.1, 1.0]}, protocol=PROTOCOL)
    tuned.fit(X, Y, groups=groups)
    rest, held = tuned._divide(Y, groups)
    assert not set(groups[rest]) & set(groups[held])
    assert len(seen) == 6
    assert not any(left & right for left, right in seen)


@pytest.mark.parametrize("choose", ["together", "per-label"])
def test_a_fitted_search_is_saved_with_all_it_found(choose: str) -> None:
    tuned = search(Quantifier(PerLabel(), PACC()), GRID, choose=choose)
    again = pickle.loads(pickle.dumps(tuned))
    assert again.best_params_ == tuned.best_params_
    assert again.best_index_ == tuned.best_index_
    assert again.cv_results_["params"] == tuned.cv_results_["params"]
    np.testing.assert_array_equal(again.quantify(X), tuned.quantify(X))


def test_a_search_answers_as_the_quantifier_that_it_found() -> None:
    tuned = search(Quantifier(PerLabel(), PCC()), GRID, choose="together")
    scores, samples = tuned.score(X), Samples.from_indices([[0, 1, 2], [3, 4]], n_items=len(Y))
    best = tuned.best_quantifier_
    np.testing.assert_array_equal(
        tuned.aggregate(scores, samples, 0.9).upper, best.aggregate(scores, samples, 0.9).upper
    )
    np.testing.assert_array_equal(
        tuned.quantify(X, interval=0.9).lower, best.quantify(X, interval=0.9).lower
    )
    many = tuned.quantify_many(X, np.arange(len(Y)) % 2, interval=0.5)
    np.testing.assert_array_equal(
        many.upper, best.quantify_many(X, np.arange(len(Y)) % 2, interval=0.5).upper
    )
