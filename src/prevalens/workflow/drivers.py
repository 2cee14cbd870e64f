"""What moves a label's scores: features whose mean has moved, times the label's weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.model import Model
from prevalens.preparation import guard_of
from prevalens.reporting.batch_data import Driver, Drivers

__all__ = ["drivers_of", "label_weights"]

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


def label_weights(model: Model) -> npt.NDArray[np.float64] | None:
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
