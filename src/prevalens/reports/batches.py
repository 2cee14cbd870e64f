"""What moves a label's scores: features whose mean has moved, times the label's weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.files import writing
from prevalens.model.model import Model
from prevalens.model.result import BatchReport, BatchResult, Driver, Drivers
from prevalens.reports.batch_page import batch_page, focus, movers
from prevalens.tables.column_guard import guard_of
from prevalens.types import Floats

__all__ = ["drivers_of", "label_weights", "report_html", "report_of", "write_page"]

_MOST_FEATURES = 10


def drivers_of(
    model: Model,
    means: npt.NDArray[np.floating[Any]],
    *,
    labels: Sequence[int],
    batch: str,
    most: int = _MOST_FEATURES,
) -> tuple[Drivers, ...]:
    """The features that push the scores of some labels up or down in a batch.

    Parameters
    ----------
    model : Model
    means : array of float, shape (n_features,)
        Means of the batch's prepared items, as the classifier sees them.
    labels : sequence of int
    batch : str
    most : int
        Features per label.

    Returns
    -------
    tuple of Drivers
        Empty if the classifier is not linear, or the features have no names.

    Notes
    -----
    The pushes of all features add up to the move of the label's mean log-odds since training.
    That is not yet the move of its estimate: posteriors are not linear in log-odds, and the
    aggregator corrects them.
    """
    weights, names = label_weights(model), getattr(model.preparation, "terms_", None)
    if weights is None or names is None:
        return ()
    moved = np.asarray(means, dtype=np.float64) - model.feature_means
    return tuple(
        Drivers(
            model.labels[label],
            batch,
            tuple(
                Driver(names[j], float(push[j]), float(model.feature_means[j]), float(means[j]))
                for j in np.argsort(-np.abs(push), kind="stable")[:most]
                if push[j] != 0
            ),
        )
        for label in labels
        for push in [weights[label] * moved]
    )


def label_weights(model: Model) -> Floats | None:
    """Weights of the features for each label, shape (n_labels, n_features); None if not linear."""
    try:
        weights = np.asarray(_behind_guard(model.quantifier.classifier_).coef_, dtype=np.float64)
    except AttributeError:
        return None
    fits = weights.shape == (len(model.labels), len(model.feature_means))
    return weights if fits else None


def _behind_guard(classifier: Any) -> Any:
    """The classifier itself, where only a guard of its columns stands before it."""
    is_pair = guard_of(classifier) is not None and len(classifier) == 2
    return classifier[-1] if is_pair else classifier


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
