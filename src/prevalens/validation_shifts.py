"""Validation under shift: samples of labelled items that a method was not fitted on.

Hyperparameters are chosen and intervals are calibrated on these samples. A single family of shifts
would favour the method that assumes it, so samples of several families are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from prevalens.metrics import shift_bins
from prevalens.protocols.families import draw_family
from prevalens.samples import Samples
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import check_rng

__all__ = [
    "FAMILY_WEIGHTS",
    "ShiftedSplit",
    "draw_shifts",
    "half_splits",
    "losses",
    "shifted_splits",
    "total_loss",
]

#: Items per sample where methods are compared, and where intervals are calibrated; a third of the
#: held-out items if that is less.
SIZE = 100
SIZES = (20, SIZE, 500, 2500)
#: Below this many items there are more folds and a second division.
FEW = 1500
#: Fewer labelled items than this cannot be divided and drawn from.
FEWEST = 45
#: The families of shifts, and the share of each in the loss.
FAMILY_WEIGHTS = {"ml-app": 0.4, "natural": 0.2, "label-tilt": 0.2, "labelset-weights": 0.2}
#: Options of the families while settings are compared.
_OPTIONS: dict[str, dict[str, Any]] = {"label-tilt": {"scale": 2.5}}
#: The families that intervals are calibrated on.
_CALIBRATION = ("natural", "ml-app", "label-tilt", "labelset-weights")
#: Sizes of their samples (several separate noise from errors that do not shrink with size), the
#: part of the pool that a sample may take, and how many are drawn: large samples take long.
_CALIBRATION_SIZES = ((SIZE, 2, 1.0), (20, 5, 1.0), (500, 2, 0.25), (2500, 2, 0.1))


@dataclass(frozen=True, eq=False)
class ShiftedSplit:
    """Samples drawn from one part of the labelled items, for a method fitted on the rest.

    Attributes
    ----------
    fold : int
        Which division of the items; the splits of one fold share `rest` and `held`.
    rest, held : array of int
        Rows to fit on, rows the samples are drawn from.
    family : str
        Name of the family of shifts.
    samples : Samples
        Bags of positions in `held`, all of one size.
    size : int
        Items per sample.
    true : array of float, shape (n_samples, n_labels)
        Prevalences of the samples.
    naive : array of float, shape (n_labels,)
        Prevalences of the rest.
    planned : int, optional
        Items per sample that all folds would have if they were equally large. Default: `size`.
    """

    fold: int
    rest: Ints
    held: Ints
    family: str
    samples: Samples
    size: int
    true: Floats
    naive: Floats
    planned: int = 0

    def __post_init__(self) -> None:
        if not self.planned:
            object.__setattr__(self, "planned", self.size)


def shifted_splits(
    Y: LabelMatrix,
    *,
    random_state: int = 0,
    n_samples: int = 150,
    groups: Any = None,
    sizes: Sequence[int] = (SIZE,),
) -> list[ShiftedSplit]:
    """Draw `n_samples` per family, fold and size; nothing if there are too few items.

    The folds are random, not stratified: they differ from the rest as a new pool of items does,
    above all in their rare labels, so that errors are as large as on new items.

    Parameters
    ----------
    Y : 0/1 array, shape (n_items, n_labels)
    random_state : int
    n_samples : int
    groups : array, shape (n_items,), optional
        Items with the same value share a fold.
    sizes : sequence of int
        Items per sample; sizes above a third of the held-out items become that third.
    """
    divisions = (5, 2) if len(Y) < FEW else (3, 1)
    return _divided(Y, divisions, n_samples, random_state, groups, sizes)


def half_splits(
    Y: LabelMatrix,
    *,
    random_state: int = 0,
    groups: Any = None,
    sizes: Sequence[int] = (SIZE,),
) -> list[ShiftedSplit]:
    """Draw samples from each half of the items, for a method fitted on the other half.

    Two random halves are two pools of the same size, as training and new items often are, and hold
    rare labels that a fifth of the items may lack. A method fitted on a half is worse than one
    fitted on all items.
    """
    divisions, n_samples = ((2, 4), 300) if len(Y) < 2 * FEW else ((2, 1), 150)
    return _divided(Y, divisions, n_samples, random_state, groups, sizes)


def _divided(
    Y: LabelMatrix,
    divisions: tuple[int, int],
    n_samples: int,
    random_state: int,
    groups: Any,
    sizes: Sequence[int],
) -> list[ShiftedSplit]:
    """Draw the splits of `divisions`, a number of folds and a number of divisions."""
    n_folds, n_divisions = divisions
    names, group_of = (None, None) if groups is None else np.unique(groups, return_inverse=True)
    if len(Y) < FEWEST or (names is not None and len(names) < n_folds):
        return []
    rng = check_rng(random_state)
    each = max(1, 3 * n_samples // (n_folds * n_divisions))
    planned = sorted({max(1, min(size, len(Y) // (3 * n_folds))) for size in sizes})
    splits: list[ShiftedSplit] = []
    for division in range(n_divisions):
        n_units = len(Y) if names is None else len(names)
        fold_of = rng.permutation(np.arange(n_units) % n_folds)
        fold_of = fold_of if group_of is None else fold_of[group_of]
        for fold in range(n_folds):
            number, in_fold = division * n_folds + fold, fold_of == fold
            splits.extend(_of_fold(Y, number, in_fold, each, rng, planned))
    return splits


def _of_fold(
    Y: LabelMatrix,
    fold: int,
    in_fold: Array,
    n_samples: int,
    rng: np.random.Generator,
    sizes: Sequence[int],
) -> Iterator[ShiftedSplit]:
    held, rest = np.flatnonzero(in_fold), np.flatnonzero(~in_fold)
    naive = Y[rest].mean(axis=0, dtype=np.float64)
    for planned, family in product(sizes, FAMILY_WEIGHTS):
        # Groups of many items may leave a fold with too few.
        size = max(1, min(planned, len(held) // 3))
        # Twice as many for ML-APP, whose samples differ most from each other.
        n_drawn = 2 * n_samples if family == "ml-app" else n_samples
        samples = draw_family(family, Y[held], size, n_drawn, rng, **_OPTIONS.get(family, {}))
        if samples is not None and len(samples):
            true = samples.mean(Y[held])
            yield ShiftedSplit(fold, rest, held, family, samples, size, true, naive, planned)


def losses(
    splits: Sequence[ShiftedSplit], estimate: Callable[[ShiftedSplit], Floats]
) -> dict[str, float]:
    """Mean absolute error by family, as a ratio to that of the training prevalence.

    The ratio is taken in three regimes of shift, as the paper reports them, and averaged:
    otherwise the many samples that moved little would dominate.
    """
    by_family: dict[str, list[Floats]] = {}
    for split in splits:
        error = np.abs(split.true - estimate(split)).mean(axis=1)
        constant = np.abs(split.true - split.naive).mean(axis=1)
        by_family.setdefault(split.family, []).append(np.vstack([error, constant]))
    return {family: _ratio(np.hstack(parts)) for family, parts in by_family.items()}


def _ratio(pairs: Floats) -> float:
    """Mean over regimes of (mean error / mean error of the training prevalence)."""
    error, constant = pairs
    regime = shift_bins(constant)
    members = [regime == number for number in np.unique(regime)]
    ratios = [
        error[inside].sum() / constant[inside].sum()
        for inside in members
        # A handful of samples says little about a regime.
        if inside.sum() >= 10 and constant[inside].sum() > 0
    ]
    return float(np.mean(ratios)) if ratios else 1.0


def total_loss(by_family: dict[str, float]) -> float:
    """Mean loss of the families, weighted by `FAMILY_WEIGHTS`."""
    weights = np.array([FAMILY_WEIGHTS[family] for family in by_family])
    return float(np.average(list(by_family.values()), weights=weights))


def draw_shifts(Y: LabelMatrix, n_each: int, rng: np.random.Generator) -> tuple[Samples, Ints]:
    """Draw samples without shift, with a label steered, labels tilted, label sets weighted.

    Parameters
    ----------
    Y : 0/1 array, shape (n_items, n_labels)
    n_each : int
        Samples per family of shifts and size; fewer of more than 100 items.
    rng : numpy Generator

    Returns
    -------
    samples : Samples
    family : array of int, shape (n_samples,)
        Family of each sample, in the order above.
    """
    parts, families = [], []
    for largest, share, amount in _CALIBRATION_SIZES:
        size = min(largest, max(1, len(Y) // share))
        # Large samples of a small pool would all be the same.
        if size < largest and largest > SIZE:
            continue
        for number, family in enumerate(_CALIBRATION):
            samples = draw_family(family, Y, size, max(1, round(amount * n_each)), rng)
            if samples is not None:
                parts.append(samples)
                families.append(np.full(len(samples), number, dtype=np.int64))
    return Samples.concat(parts), np.concatenate(families)
