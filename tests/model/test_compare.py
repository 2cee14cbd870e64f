"""Comparison of methods: an order that is known, failures that do not stop it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens.datasets import synthetic
from prevalens.datasets.tickets import tickets, write_tickets
from prevalens.errors import InputError
from prevalens.model.compare import DEFAULT_METHODS, compare_files, compare_methods
from prevalens.model.progress import CancelledError, Step
from prevalens.quantifier import Quantifier


def test_the_correction_is_before_counting_and_both_before_nothing() -> None:
    data = synthetic(n_train=900, n_test=10, n_labels=4, signal=1.5)
    steps: list[Step] = []
    found = compare_methods(
        data.train.X,
        data.train.Y,
        "naive;lr+cc;lr+pacc",
        folds=3,
        n_samples=80,
        protocols="ml-app,label-tilt",
        progress=steps.append,
    )
    assert [one.method for one in found.places()] == ["lr+pacc", "lr+cc", "naive"]
    assert found.errors.shape == (3, 3, 2)
    assert np.isfinite(found.errors).all()
    assert found.places()[0].behind == 0
    stages = [step.stage for step in steps if not step.detail]
    assert stages == ["preparing", *(["naive", "lr+cc", "lr+pacc"] * 3)]
    assert steps[-1].detail == "fitting the aggregator"
    assert steps[-1].done == 8
    assert steps[-1].total == 9


def test_cancelling_within_a_fit_is_no_failure_of_the_method() -> None:
    data = synthetic(n_train=300, n_test=10, n_labels=3)
    steps: list[Step] = []

    def cancelled() -> bool:
        return bool(steps) and steps[-1].stage == "auto"

    with pytest.raises(CancelledError):
        compare_methods(
            data.train.X,
            data.train.Y,
            "naive;auto",
            progress=steps.append,
            cancelled=cancelled,
        )
    assert steps[-1] == Step("auto", 1, 10, 300)


def test_the_automatic_choice_is_compared_within_its_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "auto" in DEFAULT_METHODS
    data = synthetic(n_train=300, n_test=10, n_labels=3)
    budgets = []
    fit = Quantifier.fit

    def noting(self: Quantifier, *args: Any, **rest: Any) -> Quantifier:
        budgets.append(self.time_budget)
        return fit(self, *args, **rest)

    monkeypatch.setattr(Quantifier, "fit", noting)
    found = compare_methods(
        data.train.X,
        data.train.Y,
        "naive;auto;auto(time_budget=2)",
        folds=2,
        n_samples=30,
        time_budget=1.0,
    )
    assert found.best.startswith("auto")
    assert budgets[1::3] == [1.0, 1.0]
    assert budgets[2::3] == [2.0, 2.0]
    assert found.provenance["auto"] == "at most 1 s per fold"


def test_a_method_against_itself_is_a_tie() -> None:
    data = synthetic(n_train=300, n_test=10, n_labels=3)
    found = compare_methods(
        data.train.X, data.train.Y, ["lr+pcc", "lr(C=1)+pcc"], folds=2, n_samples=30
    )
    first, second = found.places()
    assert first.error == second.error
    assert second.tied


def test_sharing_the_training_changes_nothing() -> None:
    data = synthetic(n_train=300, n_test=10, n_labels=3)
    names = ("lr+acc", "lr+pacc", "lr+rq(pcc,ridge)", "lr+pacc@holdout")
    together = compare_methods(data.train.X, data.train.Y, names, folds=2, n_samples=30)
    for number, name in enumerate(names):
        alone = compare_methods(data.train.X, data.train.Y, name, folds=2, n_samples=30)
        np.testing.assert_array_equal(together.errors[number], alone.errors[0])


def test_the_same_seed_gives_the_same_errors() -> None:
    data = synthetic(n_train=300, n_test=10, n_labels=3)
    runs = [
        compare_methods(data.train.X, data.train.Y, "lr+pcc", folds=2, n_samples=30, seed=seed)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(runs[0].errors, runs[1].errors)
    assert not np.array_equal(runs[0].errors, runs[2].errors)


def test_a_failure_is_told_and_the_others_go_on() -> None:
    data = synthetic(n_train=200, n_test=10, n_labels=3)
    found = compare_methods(
        data.train.X, data.train.Y, "lr(C=-1)+pcc;lr+pcc", folds=2, n_samples=20
    )
    assert found.methods == ("lr+pcc",)
    assert list(found.failures) == ["lr(C=-1)+pcc"]
    with pytest.raises(InputError, match=r"No method could be trained; lr\(C=-1\)\+pcc: "):
        compare_methods(data.train.X, data.train.Y, "lr(C=-1)+pcc", folds=2, n_samples=20)


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [(" ; ", "Name at least one method"), ("lr+pc", "There is no aggregator called 'pc'")],
)
def test_no_method_and_an_unknown_one_are_refused(methods: str, sentence: str) -> None:
    data = synthetic(n_train=100, n_test=10, n_labels=2)
    with pytest.raises(InputError, match=sentence):
        compare_methods(data.train.X, data.train.Y, methods)


def test_files_are_compared_on_the_labels_that_occur(tmp_path: Path) -> None:
    write_tickets(tickets(300, 5, months=1), tmp_path, held_out=0.0)
    found = compare_files(
        tmp_path / "train.csv",
        "naive;lr+pacc",
        text="text",
        tags="tags",
        sep=";",
        folds=2,
        n_samples=30,
        min_positives=40,
    )
    assert found.n_items == 300
    assert 1 <= found.n_labels < 9
    assert found.provenance["labelled items"].endswith("train.csv")
    with pytest.raises(InputError, match="No label has 1000 positive items"):
        compare_files(tmp_path / "train.csv", text="text", tags="tags", sep=";", min_positives=1000)


@pytest.mark.filterwarnings("ignore")
def test_copies_of_an_item_do_not_help_when_they_are_one_group() -> None:
    rng = np.random.default_rng(0)
    # Noise without any signal, every item three times.
    X = np.repeat(rng.normal(size=(60, 5)), 3, axis=0)
    Y = np.repeat((rng.random((60, 2)) < 0.5).astype(np.int8), 3, axis=0)
    settings = {"folds": 3, "n_samples": 40, "protocols": "ml-app"}
    leaking = compare_methods(X, Y, "tree+cc", **settings).errors.mean()
    honest = compare_methods(X, Y, "tree+cc", groups=np.repeat(range(60), 3), **settings)
    assert honest.errors.mean() > 3 * leaking
