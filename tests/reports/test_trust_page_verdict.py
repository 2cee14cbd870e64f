"""The verdict is as good as the worst of its reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from prevalens.model.trust import Trial, TrustReport
from prevalens.reports.trust_page import verdict


def make(
    *, error: float = 0.01, counted: float = 0.1, half: float = 0.05, **more: Any
) -> TrustReport:
    """All labels off by `error`; counting off by `counted`; intervals of half a width."""
    rng = np.random.default_rng(0)
    true = 0.3 + 0.4 * rng.random((200, 4))
    estimated = true + error
    trial = Trial(
        "ml-app",
        true,
        estimated,
        true + counted,
        np.arange(200),
        estimated - half,
        estimated + half,
    )
    given = {
        "method": "lr+pacc",
        "labels": ("a", "b", "c", "d"),
        "training": np.full(4, 0.2),
        "positives": np.full(4, 100),
        "n_items": 1000,
        "size": 100,
        "trials": (trial,),
        "level": 0.9,
    }
    return TrustReport(**{**given, **more})


def test_a_good_model_is_trusted() -> None:
    answer = verdict(make())
    assert answer.grade == "yes"
    assert answer.headline.startswith("Yes")
    assert all(reason.grade == "yes" for reason in answer.reasons)
    assert "off by 1.0 points" in answer.reasons[0].text


@pytest.mark.parametrize(
    ("report", "grade", "sentence"),
    [
        (
            make(error=0.3, counted=0.3, half=0.4, training=np.full(4, 0.5)),
            "no",
            "The model is no help there",
        ),
        (make(error=0.2, half=0.3), "with care", "follows the shift, but only in part"),
        (make(error=0.05, counted=0.01), "with care", "closer than this model"),
        (make(half=0.001), "with care", "much too narrow"),
        (make(seen=1.0), "no", "were in the training data"),
        (make(seen=0.2), "with care", "20 % of the labelled items"),
        (make(n_items=100), "with care", "only 100 labelled items"),
        (make(positives=np.array([5, 5, 5, 100])), "with care", "a, b, c: fewer than 20"),
    ],
)
def test_each_weakness_is_named(report: TrustReport, grade: str, sentence: str) -> None:
    answer = verdict(report)
    assert answer.grade == grade
    assert sentence in " ".join(reason.text for reason in answer.reasons if reason.grade == grade)


def test_labels_that_the_model_does_not_help_are_named() -> None:
    report = make()
    (trial,) = report.trials
    estimated = trial.estimated.copy()
    estimated[:, 2] = 1.0
    answer = verdict(replace(report, trials=(replace(trial, estimated=estimated),)))
    assert answer.grade == "with care"
    assert any("For c the training prevalence" in reason.text for reason in answer.reasons)


def test_the_most_serious_reason_stands_first() -> None:
    answer = verdict(make(seen=1.0, half=0.001))
    assert [reason.grade for reason in answer.reasons][:2] == ["no", "with care"]


def _with_natural(error: float, n_samples: int = 200) -> TrustReport:
    """A good model under shift that is off by `error` in samples without one."""
    report = make()
    rng = np.random.default_rng(1)
    true = np.clip(0.2 + rng.normal(0, 0.01, (n_samples, 4)), 0, 1)
    still = Trial("natural", true, true + error, true + 0.1)
    return replace(report, trials=(*report.trials, still))


def test_the_case_without_shift_counts() -> None:
    good = verdict(_with_natural(0.002))
    assert good.grade == "yes"
    assert any("in any of" in reason.text for reason in good.reasons)
    answer = verdict(_with_natural(0.05))
    assert answer.grade == "with care"
    assert answer.headline == (
        "With care: the training prevalence is closer than the estimates in natural samples and at "
        "low shift."
    )
    assert "in natural samples (5.0 points against 0.8)" in answer.reasons[0].text


def test_few_samples_do_not_decide() -> None:
    assert verdict(_with_natural(0.05, n_samples=20)).headline.startswith("Yes")


def test_a_family_of_shifts_in_which_the_model_is_worse_denies_trust() -> None:
    report = _with_natural(0.05)
    first, still = report.trials
    answer = verdict(replace(report, trials=(first, replace(still, protocol="label-tilt"))))
    assert answer.grade == "no"
    assert any("in label-tilt samples" in reason.text for reason in answer.reasons)


def test_intervals_that_fail_where_labels_move_far_are_named() -> None:
    report = make()
    (trial,) = report.trials
    true = trial.true.copy()
    true[:180] = 0.205
    estimated = true + 0.002
    lower, upper = estimated - 0.05, estimated + 0.05
    upper[180:] = estimated[180:] + 0.001
    lower[180:] = estimated[180:] - 0.001
    moved = replace(trial, true=true, estimated=estimated, lower=lower, upper=upper)
    (reason,) = (r for r in verdict(replace(report, trials=(moved,))).reasons if "wide" in r.text)
    assert reason.grade == "with care"
    assert "Where a label moved by 10 to 100 points, 0 %." in reason.text
    assert "much too narrow there" in reason.text
