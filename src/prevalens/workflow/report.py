"""report_of: a batch result with all the report shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from prevalens.model import Model, writing
from prevalens.reporting.batch_data import BatchReport, Drivers
from prevalens.reporting.batch_numbers import focus, movers
from prevalens.reporting.batch_page import batch_page
from prevalens.workflow.drivers import drivers_of
from prevalens.workflow.result import BatchResult

__all__ = ["report_html", "report_of", "write_page"]

_MOST_DRIVEN = 6


def report_of(
    result: BatchResult,
    model: Model | None = None,
    *,
    true: npt.ArrayLike | None = None,
    title: str = "Prevalence of labels",
) -> BatchReport:
    """What the report shows of a batch result.

    Parameters
    ----------
    result : BatchResult
    model : Model, optional
        The model that made it, for what drives the estimates.
    true : array of float, shape (n_groups, n_labels), optional
        The truth, where it is known.
    title : str
    """
    return BatchReport(
        labels=result.labels,
        batches=result.groups,
        sizes=result.sizes,
        point=result.estimate.point,
        training=result.training,
        lower=result.estimate.lower,
        upper=result.estimate.upper,
        level=result.estimate.level,
        p_value=result.estimate.p_value,  # type: ignore[arg-type]
        counted=result.counted,
        true=true,  # type: ignore[arg-type]
        ordered=result.ordered,
        drivers=_drivers(result, model),
        notices=result.notices,
        provenance=_provenance(result.provenance, model),
        title=title,
    )


def report_html(result: BatchResult, model: Model | None = None, **more: Any) -> str:
    """The report on a batch result as one HTML file; see `report_of`."""
    return batch_page(report_of(result, model, **more))


def write_page(path: str | Path, html: str) -> None:
    """Write a page, whole or not at all."""
    with writing(path) as file:
        file.write(html.encode())


def _drivers(result: BatchResult, model: Model | None) -> tuple[Drivers, ...]:
    if model is None or result.feature_means is None:
        return ()
    plain = BatchReport(
        result.labels,
        result.groups,
        result.sizes,
        result.estimate.point,
        result.training,
        lower=result.estimate.lower,
        upper=result.estimate.upper,
        ordered=result.ordered,
    )
    batch = focus(plain)
    return drivers_of(
        model,
        result.feature_means[batch],
        labels=movers(plain, batch, _MOST_DRIVEN),
        batch=result.groups[batch],
    )


def _provenance(given: Mapping[str, Any], model: Model | None) -> dict[str, str]:
    """The birth certificates of result and model, line by line."""
    lines = {}
    if model is not None:
        summary = model.summary
        lines = {
            "method": f"{summary.method} ({summary.group})",
            "preparation": summary.preparation,
            "training": f"{summary.n_items:,} items, {len(model.labels)} labels, "
            f"{summary.cardinality:.2f} labels per item",
            "model trained": str(model.provenance.get("created", "")),
        }
    own = {name: _words(value) for name, value in given.items() if name != "model"}
    own["estimated"] = own.pop("created", "")
    return {name: value for name, value in {**own, **lines}.items() if value}


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value["name"]) if "name" in value else ", ".join(map(_words, value.values()))
    if isinstance(value, (list, tuple)):
        shown = ", ".join(map(_words, value[:10]))
        return f"{shown} and {len(value) - 10} more" if len(value) > 10 else shown
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
