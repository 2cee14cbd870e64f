"""The families of shifts: the name of each, its accepted aliases, and its protocol.

Validation samples, calibrated intervals, trials of a model and plans of experiments all use these
names.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from prevalens.protocols.base import Protocol
from prevalens.protocols.ml_app import MLAPP
from prevalens.protocols.simplex import DirichletLabelsets
from prevalens.protocols.temporal import ChronologicalWindows, Periods
from prevalens.protocols.tilts import CovariateTilt, LabelsetWeights, LabelTilt, Natural
from prevalens.protocols.two_labels import TwoLabels
from prevalens.samples import Samples
from prevalens.types import LabelMatrix
from prevalens.validation import InputError, PrevalensWarning

#: Every protocol by its name.
FAMILIES: dict[str, type[Protocol]] = {
    protocol.name: protocol
    for protocol in (
        MLAPP,
        Natural,
        TwoLabels,
        LabelsetWeights,
        DirichletLabelsets,
        LabelTilt,
        CovariateTilt,
        ChronologicalWindows,
        Periods,
    )
}
#: Accepted aliases and the names they stand for.
ALIASES = {
    "uniform": Natural.name,
    "tilt": LabelTilt.name,
    "labelset": LabelsetWeights.name,
    "covariate": CovariateTilt.name,
}


def family_name(name: str) -> str:
    """Return the name of a family of shifts; an alias is accepted with a warning.

    Examples
    --------
    >>> family_name("label-tilt")
    'label-tilt'
    """
    if name in ALIASES:
        warnings.warn(
            f"The shift {name!r} is called {ALIASES[name]!r}; please use that name.",
            PrevalensWarning,
            stacklevel=2,
        )
        return ALIASES[name]
    if name not in FAMILIES:
        raise InputError(f"There is no protocol {name!r}; there are {', '.join(FAMILIES)}.")
    return name


def family_protocol(name: str, size: int, n_samples: int, **options: Any) -> Protocol:
    """Return the protocol that draws about `n_samples` samples of `size` items of a family.

    Parameters
    ----------
    name : str
        A name or alias of a family that draws at random.
    size : int
        Items per sample.
    n_samples : int
        ML-APP draws exactly as many, however many labels and prevalences there are.
    **options
        Further parameters of the protocol.

    Examples
    --------
    >>> family_protocol("label-tilt", 50, 10, scale=2.0)
    LabelTilt(n_samples=10, scale=2.0, size=50)
    """
    kind = FAMILIES[family_name(name)]
    if kind is MLAPP:
        return MLAPP(size, more_than=n_samples - 1, max_samples=n_samples, **options)
    if kind is TwoLabels:
        return TwoLabels(size, max_samples=n_samples, **options)
    if kind in (ChronologicalWindows, Periods):
        raise InputError(f"The protocol {name!r} goes by time; samples of it are not drawn.")
    return kind(size=size, n_samples=n_samples, **options)


def draw_family(
    name: str, Y: LabelMatrix, size: int, n_samples: int, rng: np.random.Generator, **options: Any
) -> Samples | None:
    """Draw samples of a family, as `family_protocol` does; None if `Y` cannot serve any.

    ML-APP needs a label with enough positives or negatives to steer.
    """
    try:
        return family_protocol(name, size, n_samples, **options).draw(Y, rng)
    except InputError:
        return None
