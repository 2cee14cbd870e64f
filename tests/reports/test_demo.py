"""The demo's story: truth and counts are those of the data it was told on."""

from __future__ import annotations

import numpy as np

from prevalens.datasets.tickets import month_names
from prevalens.model.progress import Step
from prevalens.reports.demo import tell


def test_the_truth_is_the_share_of_labels_in_each_month() -> None:
    steps: list[Step] = []
    story = tell(n_train=300, n_per_month=50, seed=3, progress=steps.append)
    months = np.array(month_names(story.data.test_times))
    assert story.result.groups == tuple(np.unique(months).tolist())
    assert story.result.ordered
    for row, month in enumerate(story.result.groups):
        np.testing.assert_allclose(story.true[row], story.data.test.Y[months == month].mean(axis=0))
    # Counts are whole numbers of tickets.
    np.testing.assert_allclose(story.counted * 50, np.round(story.counted * 50), atol=1e-9)
    errors = story.errors()["training prevalence"]
    naive = np.abs(story.model.prevalence - story.true).mean(axis=1)
    np.testing.assert_allclose(errors, naive)
    assert [step.stage for step in steps] == ["writing tickets", "training", "estimating"]


def test_the_page_shows_the_truth() -> None:
    story = tell(n_train=200, n_per_month=40)
    assert "dotted: the truth" in story.html()
