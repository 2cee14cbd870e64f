"""Many settings at once equal the settings one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from prevalens import Quantifier
from prevalens.aggregators import SLD
from prevalens.classifiers import CrossFit, HoldOut, MLkNN, PerLabel, Stacked, Tree
from prevalens.classifiers.settings import PerLabelSettings
from prevalens.crossfit import fit_settings
from prevalens.datasets import synthetic
from prevalens.response import weighted_prior
from prevalens.validation import InputError

DATA = synthetic(n_train=200, n_test=50, n_labels=3, n_features=6, random_state=0)
X, Y = DATA.train.X, DATA.train.Y
CASES: list[tuple[Any, list[dict[str, Any]]]] = [
    (
        PerLabel(),
        [{"C": c, "class_weight": w} for w in (None, "balanced") for c in (0.1, 10.0)],
    ),
    (PerLabel(), [{"C": 10.0}, {"C": 0.1}, {"C": 1.0}]),
    (PerLabel(), [{"tol": 1e-3}, {"C": 2.0}]),
    (Stacked(), [{"meta__C": c, "normalize": n} for c in (0.1, 10.0) for n in (False, True)]),
    (MLkNN(), [{"k": 3, "s": 0.5}, {"k": 7, "s": 1.0}]),
    (Tree(random_state=0), [{"criterion": "gini"}, {"criterion": "entropy"}]),
]
IDS = [f"{type(classifier).__name__}-{len(settings)}" for classifier, settings in CASES]


def test_each_label_has_the_prior_of_its_own_class_weights() -> None:
    plain, balanced = {"C": 2.0}, {"C": 0.5, "class_weight": "balanced"}
    mixed = PerLabelSettings(PerLabel(), [plain, balanced], choice=[1, 0, 1])
    prior = weighted_prior(mixed, Y)
    assert prior is not None
    np.testing.assert_allclose(prior, [0.5, Y[:, 1].mean(), 0.5])
    assert weighted_prior(PerLabelSettings(PerLabel(), [plain], choice=[0, 0, 0]), Y) is None
    estimates = {
        name: np.asarray(Quantifier(classifier, SLD(), uncertainty=None).fit(X, Y).quantify(X[:60]))
        for name, classifier in (
            ("mixed", mixed),
            ("plain", PerLabel(**plain)),
            ("balanced", PerLabel(**balanced)),
        )
    }
    both = np.where([True, False, True], estimates["balanced"], estimates["plain"])
    np.testing.assert_allclose(estimates["mixed"], both, atol=1e-6)


def complete(classifier: Any) -> Any:
    """The stack's second layer must be there for its parameters to be set."""
    return Stacked(meta=PerLabel()) if isinstance(classifier, Stacked) else classifier


@pytest.mark.parametrize(("classifier", "settings"), CASES, ids=IDS)
def test_together_is_one_by_one(classifier: Any, settings: list[dict[str, Any]]) -> None:
    classifier = complete(classifier)
    together = list(fit_settings(classifier, settings, X, Y))
    assert len(together) == len(settings)
    for setting, fitted in zip(settings, together, strict=True):
        alone = clone(classifier).set_params(**setting).fit(X, Y)
        np.testing.assert_allclose(
            fitted.predict_proba(DATA.test.X), alone.predict_proba(DATA.test.X), atol=2e-4
        )
        assert {k: v for k, v in fitted.get_params().items() if k in setting} == setting


@pytest.mark.parametrize("scheme", [CrossFit(3), HoldOut(0.3), HoldOut(0.3, refit=True)], ids=repr)
@pytest.mark.parametrize(("classifier", "settings"), CASES[:5], ids=IDS[:5])
def test_labelled_scores_are_the_schemes(
    scheme: Any, classifier: Any, settings: list[dict[str, Any]]
) -> None:
    classifier = complete(classifier)
    results = scheme.fit_settings(classifier, settings, X, Y, "posteriors")
    for setting, labelled in zip(settings, results, strict=True):
        plain = scheme.fit(clone(classifier).set_params(**setting), X, Y, "posteriors")
        np.testing.assert_array_equal(labelled.rows, np.sort(plain.rows))
        order = np.argsort(plain.rows)
        np.testing.assert_allclose(labelled.scores.values, plain.scores.values[order], atol=2e-4)
        np.testing.assert_allclose(
            labelled.classifier.predict_proba(DATA.test.X),
            plain.classifier.predict_proba(DATA.test.X),
            atol=2e-4,
        )


def test_each_label_its_setting() -> None:
    settings = [{"C": 0.01}, {"C": 100.0}]
    mixed = PerLabelSettings(PerLabel(), settings, choice=[1, 0, 1]).fit(X, Y)
    for label, number in enumerate([1, 0, 1]):
        alone = PerLabel(**settings[number]).fit(X, Y[:, [label]])
        np.testing.assert_allclose(
            mixed.predict_proba(DATA.test.X)[:, label],
            alone.predict_proba(DATA.test.X)[:, 0],
            atol=1e-4,
        )
        np.testing.assert_array_equal(
            mixed.predict(DATA.test.X)[:, label], alone.predict(DATA.test.X)[:, 0]
        )


def test_a_choice_per_label_is_needed() -> None:
    with pytest.raises(InputError, match=r"one setting per label \(3\)"):
        PerLabelSettings(PerLabel(), [{}], choice=[0]).fit(X, Y)
