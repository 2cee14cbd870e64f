"""Classes of targets of one dimension, and weights of classes, for the logistic regressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from prevalens.validation import InputError

__all__ = ["classes_of", "for_all_labels", "weights_of_classes"]


def classes_of(y: Any) -> npt.NDArray[Any]:
    """The distinct classes of `y`, which must be classes and not measurements."""
    check_classification_targets(y)
    return np.unique(np.asarray(y))


def weights_of_classes(class_weight: Any, classes: npt.NDArray[Any]) -> Any:
    """A dict of class weights as a list in the order of the classes."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise InputError(f"class_weight names {sorted(unknown)}, which y does not have.")
    return [float(class_weight.get(name, 1.0)) for name in classes.tolist()]


def for_all_labels(C: Any, class_weight: Any) -> bool:
    """Whether a setting is the same for all labels: one number C and one class weight."""
    return np.ndim(C) == 0 and isinstance(class_weight, (str, Mapping, type(None)))
