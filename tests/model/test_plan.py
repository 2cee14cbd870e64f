"""Plans: the forecast against widths that are then reached, the curve, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from prevalens import parse
from prevalens.datasets import synthetic
from prevalens.errors import InputError
from prevalens.model import LabelPlan, plan_files, plan_scores
from prevalens.model.plan import _fitted_curve
from prevalens.samples import Samples

FAST = "lr+pcc"


def write(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    made = synthetic(n_train=1200, n_test=10, n_labels=3, n_features=8, signal=1.5, random_state=0)
    return np.asarray(made.train.X), np.asarray(made.train.Y)


def test_the_forecast_is_near_the_width_that_more_labels_give(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, Y = data
    names = [*(f"x{k}" for k in range(8)), *(f"y{k}" for k in range(3))]
    rows = [[*x, *y] for x, y in zip(X[:240].tolist(), Y[:240].tolist(), strict=True)]
    pilot = write(tmp_path / "pilot.csv", names, rows)
    plan, model = plan_files(pilot, labels=["y*"], method=FAST, batch_size=300)
    assert model.summary.n_items == 240
    assert plan.positives is not None
    assert plan.positives.tolist() == Y[:240].sum(axis=0).tolist()
    fitted = parse(FAST).fit(X[:900], Y[:900])
    bags = np.random.default_rng(0).integers(900, 1200, (5, 300))
    scores = fitted.score(X)
    (lower, upper), _ = fitted.aggregate(scores, Samples.from_indices(bags, n_items=1200), 0.9).ends
    assert plan.width(900).mean() == pytest.approx((upper - lower).mean(), rel=0.35)
    assert np.all(plan.width(5000) <= plan.width(100))


def test_the_curve_is_found_again() -> None:
    limit, slope = np.array([0.001, 0.0, 0.004]), np.array([0.5, 2.0, 0.0])
    measured = [(n, np.sqrt(limit + slope / n)) for n in (50, 100, 200)]
    found = _fitted_curve(measured)
    assert found[0] == pytest.approx(limit, abs=1e-6)
    assert found[1] == pytest.approx(slope, abs=1e-4)
    rare = [(n, np.array([0.3, np.nan])) for n in (50, 100)]
    assert np.isnan(_fitted_curve(rare)[0]).tolist() == [False, True]


def test_the_number_needed_reaches_the_target() -> None:
    labels = ("easy", "hard", "rare")
    curve = {"limit": np.array([0.0016, 0.01, np.nan]), "slope": np.array([0.9, 0.9, np.nan])}
    plan = LabelPlan(labels, 0.9, 0.05, 500, **curve)
    assert plan.needed[0] == 1000
    assert plan.width(1000)[0] == pytest.approx(0.05)
    assert np.isinf(plan.needed[1])
    rows = plan.to_rows()
    assert [row["needed"] for row in rows] == [1000, None, None]
    assert rows[1]["least_width"] == pytest.approx(0.1)
    assert rows[2]["width_100"] is None
    assert "1 of 3 labels get 90 % intervals that are 5 points wide" in plan.headline
    assert "For 1 of 3 labels no number" in plan.headline
    assert "too few positive items" in plan.headline


def test_scores_alone_follow_the_assumptions(tmp_path: Path) -> None:
    """The widths are those of simulated studies in which the assumptions hold."""
    rng = np.random.default_rng(0)
    p, se, sp, size, n = 0.3, 0.8, 0.95, 4000, 400
    truth = rng.random(size) < p
    votes = np.where(truth, rng.random(size) < se, rng.random(size) >= sp).astype(int)
    file = write(
        tmp_path / "batch.csv", ["id", "v_a", "v_b"], [[i, v, v] for i, v in enumerate(votes)]
    )
    plan = plan_scores(file, scores=["v_*"], drift=0.0)
    assert plan.labels == ("a", "b")
    estimates = []
    for _ in range(400):
        rows = rng.permutation(size)[:n]
        hit = votes[rows][truth[rows]].mean()
        alarm = votes[rows][~truth[rows]].mean()
        estimates.append((votes.mean() - alarm) / (hit - alarm))
    assert plan.width(n)[0] == pytest.approx(2 * 1.645 * np.std(estimates), rel=0.2)
    better = plan_scores(file, scores=["v_*"], drift=0.0, sensitivity=0.95, specificity=0.99)
    assert np.all(better.width(n) < plan.width(n))
    allowed = plan_scores(file, scores=["v_*"])
    assert np.all(allowed.floor > plan.floor)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    tiny = write(tmp_path / "tiny.csv", ["x", "y"], [[i, i % 2] for i in range(20)])
    with pytest.raises(InputError, match="at least 40 are needed"):
        plan_files(tiny, labels=["y"], method=FAST)
    scored = write(tmp_path / "scored.csv", ["p_a", "p_b"], [[0.1, 0.2]] * 5)
    with pytest.raises(InputError, match="sum to more than 1"):
        plan_scores(scored, scores=["p_*"], sensitivity=0.4, specificity=0.5)
    with pytest.raises(InputError, match="one labeller"):
        plan_scores(scored, scores=["p_a", "p_b"])
    with pytest.raises(InputError, match="must lie"):
        plan_scores(scored, scores=["p_*"], target_width=5.0)
