"""EDy: the mixture of positives and negatives at the least energy distance from the sample."""

from __future__ import annotations

import numpy as np

from prevalens.aggregators.adjusted import AdjustedTransform
from prevalens.types import Array, Floats, Ints, LabelMatrix

#: Most knots of the function of a label; with more different posteriors, at equal steps of rank.
_KNOTS = 4096


class EDy(AdjustedTransform):
    """Match the distribution of a sample's posteriors, in energy distance.

    Parameters
    ----------
    guard : float or None
        As in `ACC`, for the function below in place of votes; labels that are not adjusted are
        estimated by their mean posterior.

    Attributes
    ----------
    knots_ : list of (posteriors, values), one pair of arrays per label
        The function of each label; between the knots it is linear, outside constant.
    tpr_, fpr_, adjusted_ : arrays, shape (n_labels,)
        As in `ACC`, of that function.

    Notes
    -----
    The energy distance of a mixture from the sample is a square function of the share of
    positives. Its minimum is that of adjusted counting with the score ``e(x) = E|x - negative| -
    E|x - positive|``: the mean of e over the sample, between its means over negatives and over
    positives. So the estimate takes one mean per label, like `PACC`, and no bins
    or bandwidth. (e is scaled to [0, 1], which changes nothing.)
    O(n_items log n_items) per label to fit and to read.

    Fails where the posteriors hardly separate the classes: the noise of the mean is divided by
    the separation.

    References
    ----------
    Kawakubo, du Plessis, Sugiyama, "Computationally efficient class-prior estimation under class
    balance change using energy distance", IEICE Transactions E99.D, 2016.
    Castaño, Morán-Fernández, Alonso, Bolón-Canedo, Alonso-Betanzos, del Coz, "An analysis of
    quantification methods based on matching distributions", 2021.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.7], [0.3], [0.1]], kind="posteriors")
    >>> edy = EDy(guard=None).fit(posteriors, [[1], [1], [0], [0]])
    >>> samples = Samples.from_indices([[0, 1, 2, 3], [0, 1, 1, 2]], n_items=4)
    >>> edy.aggregate(posteriors, samples).round(3).tolist()
    [[0.5], [0.75]]
    """

    code = "edy"

    def __init__(self, guard: float | None = 4.0) -> None:
        super().__init__(guard)

    def _learn(self, values: Array, Y: LabelMatrix) -> None:
        self.knots_ = [_knots(values[:, j], Y[:, j] == 1) for j in range(self.n_labels_)]

    def _transform(self, values: Floats, labels: Ints) -> Floats:
        found = np.empty_like(values)
        for column, label in enumerate(labels.tolist()):
            found[:, column] = np.interp(values[:, column], *self.knots_[label])
        return found


def _knots(posteriors: Array, positive: Array) -> tuple[Floats, Floats]:
    """The function e of one label, scaled to [0, 1], at the labelled posteriors."""
    knots, place = np.unique(posteriors.astype(np.float64), return_inverse=True)
    near = [_mean_distances(knots, place[members]) for members in (~positive, positive)]
    values = (near[0] - near[1] + 1.0) / 2.0
    if len(knots) > _KNOTS:
        kept = np.linspace(0, len(knots) - 1, _KNOTS).round().astype(np.intp)
        knots, values = knots[kept], values[kept]
    return knots, values


def _mean_distances(knots: Floats, place: Ints) -> Floats:
    """Mean distance of each knot from the members, which are knots too; 0 without members."""
    number = np.bincount(place, minlength=len(knots)).astype(np.float64)
    below, mass = np.cumsum(number), np.cumsum(number * knots)
    distances = knots * (2.0 * below - len(place)) + mass[-1] - 2.0 * mass
    return distances / max(len(place), 1)
