"""Rehearsals: samples of labelled items under a mix of shifts, held out from what is fitted.

Hyperparameters and intervals are set by how well they do here. One family of shifts alone would
favour the method that assumes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prevalens import protocols
from prevalens.metrics import shift_bins
from prevalens.protocols import MLAPP, LabelsetWeights, LabelTilt, Natural, Protocol
from prevalens.samples import Samples
from prevalens.splits import stratified_folds
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, check_rng

__all__ = [
    "FAMILIES",
    "Act",
    "draw_shifts",
    "drawn",
    "losses",
    "rehearse",
    "rehearse_halves",
    "total_loss",
]

SIZE = 100
#: Below this many items, more folds and a second division: a third of them teaches too little.
FEW = 1500
#: Fewer labelled items than this cannot be divided and drawn from.
FEWEST = 45
#: The families of shifts and what share of the loss each has.
FAMILIES = {"ml-app": 0.4, "natural": 0.2, "label-tilt": 0.2, "labelsets": 0.2}


@dataclass(frozen=True, eq=False)
class Act:
    """Samples drawn from one part of the labelled items, for what was fitted on the rest.

    Attributes
    ----------
    fold : int
        Which division of the items; the acts of one fold share `rest` and `held`.
    rest, held : array of int
        Rows to fit on, rows the samples are drawn from.
    family : str
    samples : Samples
        Bags of positions in `held`, all of one size.
    size : int
    true : array of float, shape (n_samples, n_labels)
    naive : array of float, shape (n_labels,)
        Prevalences of the rest.
    """

    fold: int
    rest: npt.NDArray[np.int64]
    held: npt.NDArray[np.int64]
    family: str
    samples: Samples
    size: int
    true: Floats
    naive: Floats


def rehearse(
    Y: LabelMatrix, *, seed: int = 0, n_samples: int = 150, stratified: bool = True
) -> list[Act]:
    """Draw `n_samples` per family and fold; nothing if there are too few items.

    Stratified folds make settings comparable. Folds by chance differ from the rest as a new pool of
    items does, above all in their rare labels: errors are as large as they will be.
    """
    divisions = (5, 2) if len(Y) < FEW else (3, 1)
    return _divided(Y, divisions, n_samples, seed=seed, stratified=stratified)


def rehearse_halves(Y: LabelMatrix, *, seed: int = 0) -> list[Act]:
    """Draw from one half of the items, for what was fitted on the other.

    Two halves by chance are two pools of items of one size, as training and new items often are,
    and hold the rare labels that a fifth of the items lacks. What is fitted on a half is worse than
    what all items will teach.
    """
    divisions, n_samples = ((2, 4), 300) if len(Y) < 2 * FEW else ((2, 1), 150)
    return _divided(Y, divisions, n_samples, seed=seed, stratified=False)


def _divided(
    Y: LabelMatrix,
    divisions: tuple[int, int],
    n_samples: int,
    *,
    seed: int,
    stratified: bool,
) -> list[Act]:
    """The acts of `divisions`: so many folds, so many times."""
    if len(Y) < FEWEST:
        return []
    rng = check_rng(seed)
    n_folds, n_divisions = divisions
    each = max(1, 3 * n_samples // (n_folds * n_divisions))
    acts: list[Act] = []
    for division in range(n_divisions):
        fold_of = (
            stratified_folds(Y, n_folds, seed=rng)
            if stratified
            else rng.permutation(np.arange(len(Y)) % n_folds)
        )
        for fold in range(n_folds):
            held, rest = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
            acts.extend(_acts(Y, division * n_folds + fold, rest, held, rng, each))
    return acts


def _acts(
    Y: LabelMatrix,
    fold: int,
    rest: npt.NDArray[np.int64],
    held: npt.NDArray[np.int64],
    rng: np.random.Generator,
    n_samples: int,
) -> Iterator[Act]:
    size = min(SIZE, len(held) // 3)
    naive = Y[rest].mean(axis=0, dtype=np.float64)
    for family, protocol in _protocols(size, n_samples).items():
        samples = drawn(protocol, Y[held], rng)
        if samples is not None and len(samples):
            yield Act(fold, rest, held, family, samples, size, samples.mean(Y[held]), naive)


def _protocols(size: int, n_samples: int) -> dict[str, protocols.Protocol]:
    # As many again for ML-APP, whose samples differ most from each other.
    return {
        "ml-app": protocols.MLAPP(size, more_than=2 * n_samples - 1, max_samples=2 * n_samples),
        "natural": protocols.Natural(size, n_samples),
        "label-tilt": protocols.LabelTilt(size, n_samples, scale=2.5),
        "labelsets": protocols.LabelsetWeights(size, n_samples),
    }


def drawn(protocol: protocols.Protocol, Y: LabelMatrix, rng: np.random.Generator) -> Samples | None:
    """Samples of a protocol; None if no label has items enough to be steered."""
    try:
        return protocol.draw(Y, rng)
    except InputError:
        return None


def losses(acts: Sequence[Act], estimate: Callable[[Act], Floats]) -> dict[str, float]:
    """Mean absolute error by family, as a ratio to that of the training prevalence.

    The ratio is taken in three regimes of shift, as the paper reports them, and averaged:
    otherwise the many samples that moved little would decide alone.
    """
    found: dict[str, list[Floats]] = {}
    for act in acts:
        error = np.abs(act.true - estimate(act)).mean(axis=1)
        constant = np.abs(act.true - act.naive).mean(axis=1)
        found.setdefault(act.family, []).append(np.vstack([error, constant]))
    return {family: _ratio(np.hstack(parts)) for family, parts in found.items()}


def _ratio(pairs: Floats) -> float:
    """Mean over regimes of (mean error / mean error of the training prevalence)."""
    error, constant = pairs
    regime = shift_bins(constant)
    ratios = [
        error[regime == number].sum() / constant[regime == number].sum()
        for number in np.unique(regime)
        # A handful of samples says little of a regime.
        if (regime == number).sum() >= 10 and constant[regime == number].sum() > 0
    ]
    return float(np.mean(ratios)) if ratios else 1.0


def total_loss(by_family: dict[str, float]) -> float:
    """The families' losses in one number, weighted by `FAMILIES`."""
    weights = np.array([FAMILIES[family] for family in by_family])
    return float(np.average(list(by_family.values()), weights=weights))


#: Samples of at most this many items; half of the pool if that is less.
_LARGE = 100
#: And smaller ones, a fifth of the pool at most, to tell noise from what does not fade with size.
_SMALL = 30


def draw_shifts(
    Y: LabelMatrix, n_each: int, rng: np.random.Generator
) -> tuple[Samples, npt.NDArray[np.int64]]:
    """Samples under no shift, one label steered, labels tilted, label sets weighted.

    Parameters
    ----------
    Y : 0/1 array, shape (n_items, n_labels)
    n_each : int
        Samples per kind of shift and size.
    rng : numpy Generator

    Returns
    -------
    samples : Samples
    family : array of int, shape (n_samples,)
        Which kind of shift each sample is of.
    """
    parts, families = [], []
    for size in (min(_LARGE, max(1, len(Y) // 2)), min(_SMALL, max(1, len(Y) // 5))):
        for number, protocol in enumerate(_calibration_protocols(size, n_each)):
            found = drawn(protocol, Y, rng)
            if found is not None:
                parts.append(found)
                families.append(np.full(len(found), number, dtype=np.int64))
    return Samples.concat(parts), np.concatenate(families)


def _calibration_protocols(size: int, n_each: int) -> list[Protocol]:
    return [
        Natural(size, n_each),
        MLAPP(size, more_than=n_each - 1, max_samples=n_each),
        LabelTilt(size, n_each),
        LabelsetWeights(size, n_each),
    ]
