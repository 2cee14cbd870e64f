"""Draw items of batches to be labelled by hand: at random, or stratified by score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prevalens.errors import InputError
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Array, Floats

#: Strata of a batch; each gets two items at least, if there are enough.
_STRATA = 5
#: Share of the items that is drawn uniformly from all strata, should the scores mislead.
_UNIFORM = 0.5


@dataclass(frozen=True)
class Draw:
    """Items drawn to be labelled, batch by batch, those of a batch in random order.

    Any first part of a batch's items is a random sample, so that labelling can stop at any time.

    Attributes
    ----------
    rows : array of int, shape (n_drawn,)
    weights : array of float, shape (n_drawn,)
        How many items of the batch each stands for.

    Examples
    --------
    >>> draw = draw_items(Samples.whole(100), 4)
    >>> len(set(draw.rows.tolist())), draw.weights.tolist()
    (4, [25.0, 25.0, 25.0, 25.0])
    """

    rows: npt.NDArray[np.intp]
    weights: Floats


def draw_items(
    samples: Samples, n: int, *, scores: Scores | None = None, random_state: int = 0
) -> Draw:
    """Draw `n` items of every batch, or all of a smaller one, without replacement.

    Parameters
    ----------
    samples : Samples
        The batches.
    n : int
    scores : Scores, optional
        Posteriors of all items: the draw is then stratified by how unsure they are.
    random_state : int

    Notes
    -----
    A uniform draw is unbiased whatever the scores are worth, and needs no weights. A stratified
    draw takes items with unsure scores up to a few times more often, half of the items being
    divided by the size of the strata alone. It saves labels if the scores tell which items are
    hard, and the weights must be kept.

    The first items of a larger uniform draw are those of a smaller one, in the same order.
    """
    if n < 1:
        raise InputError(f"At least one item must be drawn; got n={n}.")
    generators = np.random.default_rng(random_state).spawn(len(samples))
    unsure = None if scores is None else _unsure(scores)
    pairs = zip(samples, generators, strict=True)
    parts = [_of_batch(bag, n, unsure, rng) for bag, rng in pairs]
    return Draw(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _unsure(scores: Scores) -> Floats:
    """Expected variance of the labels of each item, over all labels."""
    if scores.kind != "posteriors":
        raise InputError(
            f"A stratified sample needs posteriors; the method of this model reads {scores.kind}. "
            "Draw at random instead."
        )
    values = np.asarray(scores.values, dtype=np.float64)
    return np.asarray((values * (1.0 - values)).sum(axis=1))


def _of_batch(
    bag: Array, n: int, unsure: Floats | None, rng: np.random.Generator
) -> tuple[npt.NDArray[np.intp], Floats]:
    """Rows of a batch in random order, and their weights."""
    n = min(n, len(bag))
    if unsure is None:
        return rng.permutation(bag)[:n].astype(np.intp), np.full(n, len(bag) / n)
    order = bag[np.argsort(unsure[bag], kind="stable")]
    strata = np.array_split(order, max(1, min(_STRATA, n // 2)))
    sizes = np.array([len(stratum) for stratum in strata])
    spreads = np.sqrt([unsure[stratum].mean() for stratum in strata])
    counts = _allocation(sizes, spreads, n)
    rows = [rng.choice(part, k, replace=False) for part, k in zip(strata, counts, strict=True)]
    mixed = rng.permutation(n)
    return np.concatenate(rows).astype(np.intp)[mixed], np.repeat(sizes / counts, counts)[mixed]


def _allocation(sizes: npt.NDArray[np.intp], spreads: Floats, n: int) -> npt.NDArray[np.intp]:
    """Items per stratum: at least one, none more than it has, and the rest where it counts."""
    by_spread = sizes * spreads / max(float(sizes @ spreads), 1e-12)
    wanted = n * (_UNIFORM * sizes / sizes.sum() + (1.0 - _UNIFORM) * by_spread)
    counts = np.clip(np.floor(wanted), 1, sizes).astype(np.intp)
    while counts.sum() < n:
        counts[np.argmax(np.where(counts < sizes, wanted - counts, -np.inf))] += 1
    return counts
