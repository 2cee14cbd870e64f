"""The story of the demo: labelled tickets, months of drift, and how close the estimates are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prevalens.datasets.dataset import Dataset
from prevalens.datasets.tickets import month_names, tickets
from prevalens.model.groups import ByTime
from prevalens.model.model import Model
from prevalens.model.progress import Progress, Watch
from prevalens.model.quantify import quantify_tables
from prevalens.model.result import BatchResult
from prevalens.reports.batch_page import report_html
from prevalens.response import response
from prevalens.samples import Samples
from prevalens.tables.formats import as_table
from prevalens.types import Floats

__all__ = ["METHOD", "Story", "tell"]

#: Good and quick on a thousand short texts.
METHOD = "lr(C=10)+rq(pcc,ridge)"


@dataclass(frozen=True)
class Story:
    """Months of tickets: the estimates, the truth, and what counting would have said.

    Attributes
    ----------
    data : Dataset
    model : Model
    result : BatchResult
    true, counted : array of float, shape (n_months, n_labels)
    """

    data: Dataset
    model: Model
    result: BatchResult
    true: Floats
    counted: Floats

    def errors(self) -> dict[str, Floats]:
        """Mean absolute error over labels in each month, of the three ways to answer."""
        answers: dict[str, Any] = {
            "estimate": self.result.estimate.point,
            "classify and count": self.counted,
            "training prevalence": self.model.prevalence,
        }
        return {name: np.abs(one - self.true).mean(axis=1) for name, one in answers.items()}

    def html(self) -> str:
        """The report, with the truth in its charts."""
        return report_html(
            self.result, self.model, true=self.true, title="Support tickets, month by month"
        )


def tell(
    *,
    n_train: int = 1200,
    n_per_month: int = 300,
    seed: int = 0,
    method: Any = METHOD,
    progress: Progress | None = None,
) -> Story:
    """Train on the tickets of one year, and estimate the months of the next.

    Parameters
    ----------
    n_train, n_per_month : int
        Tickets.
    seed : int
    method : str or Quantifier
    progress : callable, optional

    Examples
    --------
    >>> story = tell(n_train=300, n_per_month=60)
    >>> {name: len(errors) for name, errors in story.errors().items()}
    {'estimate': 8, 'classify and count': 8, 'training prevalence': 8}
    """
    watch = Watch(progress, None)
    watch.step("writing tickets", 0, 3)
    data = tickets(n_train, n_per_month, random_state=seed)
    watch.step("training", 1, 3, n_train)
    columns = {"text": list(data.train.X)}
    model = Model.fit(columns, data.train.Y, labels=data.train.labels, method=method, text="text")
    watch.step("estimating", 2, 3, n_train)
    months = month_names(data.test_times)  # type: ignore[arg-type]
    table = as_table({"text": list(data.test.X), "month": months})
    result = quantify_tables(model, [table], ByTime("month", "M"))
    samples, _ = Samples.by_group(months)
    X = model.preparation.transform(list(data.test.X))
    votes = response(model.quantifier.classifier_, X, "votes", len(model.labels)).values
    return Story(data, model, result, samples.mean(data.test.Y), samples.mean(votes))
