"""ML-APP: the artificial-prevalence protocol, one label steered at a time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from prevalens.protocols.base import Protocol, check_size
from prevalens.protocols.drawing import draw_from_groups, empty_indices, runs
from prevalens.protocols.grid import Grid, grid_points, positives_wanted, share_out
from prevalens.samples import Samples
from prevalens.types import Ints, LabelMatrix
from prevalens.validation import InputError, check_binary_matrix, check_int


@dataclass(frozen=True)
class Unreachable:
    """A grid point that the pool cannot serve for a label, and what it lacks.

    Parameters
    ----------
    label : int
        Column of `Y`.
    prevalence : Fraction
        The grid point.
    lacks : {"positives", "negatives"}
    needed, available : int
        How many items of that kind a sample would need, and how many the pool has.

    Examples
    --------
    >>> print(Unreachable(3, Fraction(2, 5), "positives", needed=40, available=12))
    label 3 at 0.4: 40 positives needed, 12 in the pool
    """

    label: int
    prevalence: Fraction
    lacks: str
    needed: int
    available: int

    def __str__(self) -> str:
        return (
            f"label {self.label} at {float(self.prevalence):g}: {self.needed} {self.lacks} needed, "
            f"{self.available} in the pool"
        )


class MLAPP(Protocol):
    """Steer each label in turn through a grid of prevalences; the other labels follow.

    For each label and each grid point g, samples of `size` items are drawn that hold exactly
    ceil(size * g) positives of the label. Positives and negatives are each drawn uniformly
    and without replacement; a grid point is used only if the pool has enough of both.

    Parameters
    ----------
    size : int
        Items per sample.
    grid : int or sequence of float
        A number of evenly spaced prevalences from 0 to 1 (101 gives 0, 0.01, ..., 1), or the
        prevalences themselves. Counted in exact arithmetic: 0.07 means 7/100.
    repeats : int
        Samples per label and grid point (m in the paper).
    more_than : int, optional
        Raise `repeats` to the smallest number that gives more than this many samples; the
        paper's test protocol is ``MLAPP(more_than=10_000)``.
    min_positives : int
        A label with fewer positives in the pool is not steered at all.
    max_samples : int, optional
        Draw at most this many, shared out evenly over labels and grid points. Comes last: it
        also caps what `more_than` asks for.

    Notes
    -----
    O(n_samples x size) time and memory, besides one pass over `Y`. Samples come label by
    label, in the order of the grid. Rare labels cannot be steered far: look at `unreachable`.
    The labels that are not steered move only as far as they are correlated with the one that is,
    so shifts in which many labels move freely are not covered; see `LabelTilt`.

    References
    ----------
    Moreo, Francisco and Sebastiani, "Multi-label quantification", ACM Transactions on Knowledge
    Discovery from Data 18, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 0], [0, 0]])
    >>> samples = MLAPP(size=2, grid=3).draw(Y, 0)
    >>> samples.target.tolist()
    [0, 0, 0, 1, 1]
    >>> samples.prevalence.tolist()
    [0.0, 0.5, 1.0, 0.0, 0.5]
    >>> samples.mean(Y)[:3, 0].tolist()
    [0.0, 0.5, 1.0]
    """

    name: ClassVar[str] = "ml-app"

    def __init__(
        self,
        size: int = 100,
        grid: Grid = 101,
        repeats: int = 1,
        *,
        more_than: int | None = None,
        min_positives: int = 0,
        max_samples: int | None = None,
    ) -> None:
        self.size = size
        self.grid = grid
        self.repeats = repeats
        self.more_than = more_than
        self.min_positives = min_positives
        self.max_samples = max_samples

    def repeats_for(self, Y: Any, more_than: int) -> int:
        """Return the smallest number of repeats that gives more than `more_than` samples."""
        return _repeats(self.reachable(Y), more_than)

    def reachable(self, Y: Any) -> npt.NDArray[np.bool_]:
        """Return which grid points the pool can serve, a mask of shape (n_labels, n_points)."""
        return self._served(check_binary_matrix(Y))

    def unreachable(self, Y: Any) -> list[Unreachable]:
        """List the labels and grid points for which no sample can be drawn, and why.

        A label that is left out by `min_positives` lacks positives at every grid point.
        """
        Y = check_binary_matrix(Y)
        points, needed, available = grid_points(self.grid), *self._supply(Y)
        report = []
        for label, point in np.argwhere((needed > available).any(axis=0)).tolist():
            # Positives are reported first if both are missing.
            kind = 0 if needed[0, label, point] > available[0, label, 0] else 1
            report.append(
                Unreachable(
                    label,
                    points[point],
                    ("positives", "negatives")[kind],
                    int(needed[kind, label, point]),
                    int(available[kind, label, 0]),
                )
            )
        return report

    def _supply(self, Y: LabelMatrix) -> tuple[Ints, Ints]:
        """Positives and negatives that samples need, and those that the pool has.

        Of shapes (2, n_labels, n_points) and (2, n_labels, 1).
        """
        size = check_size(self.size, len(Y))
        minimum = check_int(self.min_positives, "min_positives", minimum=0)
        wanted = positives_wanted(grid_points(self.grid), size)
        positives = Y.sum(axis=0, dtype=np.int64)[:, np.newaxis]
        needed = np.where(positives < minimum, np.maximum(wanted, minimum), wanted)
        negatives = np.broadcast_to(size - wanted, needed.shape)
        return np.stack([needed, negatives]), np.stack([positives, len(Y) - positives])

    def _served(self, Y: LabelMatrix) -> npt.NDArray[np.bool_]:
        needed, available = self._supply(Y)
        served = np.asarray((needed <= available).all(axis=0))
        if not served.any():
            raise InputError(
                f"No label of the pool can be steered to any of the {served.shape[1]} grid "
                f"points with samples of {self.size} items (pool: {len(Y)}, "
                f"min_positives={self.min_positives}); choose a finer grid or a smaller size."
            )
        return served

    def _shares(self, Y: LabelMatrix) -> Ints:
        """Number of samples for each label and grid point, shape (n_labels, n_points)."""
        served = self._served(Y)
        repeats = check_int(self.repeats, "repeats", minimum=1)
        if self.more_than is not None:
            repeats = max(repeats, _repeats(served, self.more_than))
        return share_out(served, repeats, self.max_samples)

    def _count(self, Y: LabelMatrix) -> int:
        return int(self._shares(Y).sum())

    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        shares = self._shares(Y)
        points = grid_points(self.grid)
        wanted = positives_wanted(points, self.size)
        drawn = empty_indices(int(shares.sum()), self.size, n_items=len(Y))
        # One label after the other, so that only the positives of one are listed at a time.
        for label, rows in enumerate(runs(shares.sum(axis=1))):
            if rows.start == rows.stop:
                continue
            positives = np.repeat(wanted, shares[label])
            groups = np.flatnonzero(Y[:, label] == 1), np.flatnonzero(Y[:, label] == 0)
            counts = np.column_stack([positives, self.size - positives])
            draw_from_groups(drawn[rows], groups, counts, rng)
        labels, places = np.nonzero(shares)
        times = shares[labels, places]
        return Samples.from_indices(
            drawn,
            n_items=len(Y),
            target=np.repeat(labels, times),
            prevalence=np.repeat(np.array(points, dtype=np.float64)[places], times),
        )


def _repeats(served: npt.NDArray[np.bool_], more_than: int) -> int:
    return check_int(more_than, "more_than", minimum=0) // int(served.sum()) + 1
