"""Given scores: the answers of a labeller outside of prevalens, calibrated by labelled items."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.solvers.hierarchical import CoefficientPrior, fit_hierarchical
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, check_matrix, column_names

#: Added to a score and to its complement before taking log-odds, so that 0 and 1 are finite.
_SMOOTHING = 0.01
#: Log-odds of a score of 1, by which those of all scores are divided.
_LARGEST = float(np.log((1 + _SMOOTHING) / _SMOOTHING))
#: Coefficients of the constant, of the scaled log-odds of a score, and of a missing answer: their
#: means before any label is seen, the deviations of these means, and those between labels.
_CONSTANT = (-1.0, 2.0, 1.0)
_SLOPE = (2.0, 2.0, 1.0)
_MISSING = (0.0, 1.0, 0.5)


class Given(MultiLabelClassifier):
    """Scores that a labeller has given: a language model, a rule set, a vendor's service.

    The items are the answers themselves. Labelled items calibrate them: `predict_proba` is the
    probability that a person gives the label, if the labeller answered so.

    Parameters
    ----------
    separate : bool
        Whether aggregators that can weigh them read every labeller besides all of them together.
        With few labelled items, so many columns are more noise than help; the automatic choice
        tries both.

    Attributes
    ----------
    n_labellers_ : int
    coefficients_ : list of arrays of float, shape (n_labels, 3)
        Of each labeller alone: constant, slope of the scaled log-odds, missing answer. Only the
        `joint_coefficients_` if the labellers are not separate.
    joint_coefficients_ : array of float, shape (n_labels, 1 + 2 * n_labellers)
        Of all labellers together.

    Notes
    -----
    X has one column per labeller and label, shape (n_items, n_labellers * n_labels): all labels of
    the first labeller, then those of the second. A value is a probability between 0 and 1, or a
    vote, 0 or 1; NaN if the labeller did not answer. A missing answer is not a 0: what it says
    about a label is learnt.

    A label's calibration is a logistic regression on the log-odds of its scores and on whether they
    are missing. Its coefficients are drawn to those of the other labels, the more so the fewer
    positive items it has (see `prevalens.solvers.hierarchical`). So some hundred labelled items are
    enough, and a label with three positive items is not taken at its word.

    `predict` is what the labellers say: a label is voted for if the mean of the scores that were
    given is above one half; without any answer, against. `Quantifier(Given(), CC())` is therefore
    the count of the labellers, not corrected. Several labellers are members of an ensemble
    (`prevalens.response.HasMembers`): aggregators such as the mixture read all of them, counting
    reads the joint calibration.

    It fails where a labeller treats items with the same labels differently than in training: a new
    version of a language model needs new labelled items.

    Examples
    --------
    >>> scores = [[0.9, 0.2], [0.8, 0.1], [0.1, 0.9], [np.nan, np.nan]] * 10
    >>> Y = [[1, 0], [0, 0], [0, 1], [0, 0]] * 10
    >>> given = Given().fit(scores, Y)
    >>> given.predict([[0.9, 0.2], [np.nan, np.nan]]).tolist()
    [[1, 0], [0, 0]]
    >>> sure, unknown = given.predict_proba([[0.9, 0.2], [np.nan, np.nan]])[:, 0]
    >>> bool(sure > unknown > 0)
    True
    """

    code = "given"
    takes_missing = True

    def __init__(self, *, separate: bool = True) -> None:
        self.separate = separate

    def _check_items(self, X: Any, *, reset: bool) -> Floats:
        names = column_names(X)
        scores = check_scores(X)
        validate_data(self, X if names is not None else scores, skip_check_array=True, reset=reset)
        return scores

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        n_labels = Y.shape[1]
        if X.shape[1] % n_labels:
            raise InputError(
                f"X has {X.shape[1]} columns of scores for {n_labels} labels; give one column per "
                "labeller and label."
            )
        self.n_labellers_ = X.shape[1] // n_labels
        blocks = _features(scaled_log_odds(X), n_labels)
        self.joint_coefficients_ = _calibrated(blocks, Y)
        self.coefficients_ = [self.joint_coefficients_]
        if self.n_labellers_ > 1 and self.separate:
            self.coefficients_ = [_calibrated([block], Y) for block in blocks]

    def member_posteriors(self, X: Any) -> Floats:
        """Calibrated posteriors: of each labeller, and of all together if there are several.

        Shape (n_items, (n_labellers + 1) * n_labels), or (n_items, n_labels) for one labeller, or
        if they are not to be separate.
        """
        X = self._check_items(X, reset=False)
        if len(self.coefficients_) == 1:
            return self._posteriors(X)
        odds, n_labels = scaled_log_odds(X), self.n_labels_
        alone = [
            _posteriors(odds[:, k * n_labels : (k + 1) * n_labels], theta)
            for k, theta in enumerate(self.coefficients_)
        ]
        return np.hstack([*alone, _posteriors(odds, self.joint_coefficients_)])

    def mean_of(self, member_posteriors: Floats) -> Floats:
        """The posteriors of all labellers together, shape (n_items, n_labels)."""
        return member_posteriors[:, -self.n_labels_ :]

    def _posteriors(self, X: Any) -> Floats:
        return _posteriors(scaled_log_odds(X), self.joint_coefficients_)

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return raw_votes(X, self.n_labels_)


def check_scores(X: Any) -> Floats:
    """Scores as an array of numbers between 0 and 1, or NaN; shape (n_items, n_columns)."""
    scores = check_matrix(X.toarray() if sp.issparse(X) else X, "The scores", missing=True)
    # The smallest and the largest number, whatever is missing.
    if not (np.fmin.reduce(scores, axis=None) < 0 or np.fmax.reduce(scores, axis=None) > 1):
        return scores
    row, column = np.argwhere((scores < 0) | (scores > 1))[0]
    value = float(scores[row, column])
    hint = "; divide percentages by 100" if 1 < value <= 100 else ""
    raise InputError(
        f"Scores lie between 0 and 1, or are NaN where there is no answer; got {value:g} at row "
        f"{row}, column {column}{hint}."
    )


def raw_votes(X: Floats, n_labels: int) -> npt.NDArray[np.bool_]:
    """Whether the mean of the scores given for a label is above one half, (n_items, n_labels)."""
    if X.shape[1] == n_labels:
        return np.asarray(X > 0.5)
    scores = X.reshape(len(X), -1, n_labels)
    given = ~np.isnan(scores)
    sums = np.where(given, scores, 0.0).sum(axis=1)
    return np.asarray(sums > 0.5 * given.sum(axis=1))


def scaled_log_odds(X: Floats) -> Floats:
    """Log-odds of scores, from -1 for a score of 0 to 1 for a score of 1; NaN stays NaN."""
    odds = X + _SMOOTHING
    odds /= 1 + _SMOOTHING - X
    np.log(odds, out=odds)
    odds /= _LARGEST
    return odds


def _features(odds: Floats, n_labels: int) -> list[Floats]:
    """Log-odds, 0 if missing, and missing answers of each labeller, (n_labels, n_items, 2) each."""
    by_labeller = odds.reshape(len(odds), -1, n_labels).transpose(1, 2, 0)
    missing = np.isnan(by_labeller)
    known = np.where(missing, 0.0, by_labeller)
    return list(np.stack([known, missing.astype(np.float64)], axis=-1))


def _calibrated(blocks: list[Floats], Y: LabelMatrix) -> Floats:
    """Coefficients of a constant and of the features of some labellers, one row per label."""
    constant = np.ones((*blocks[0].shape[:2], 1))
    # Together the labellers say no more than one that knows everything.
    slope = (_SLOPE[0] / len(blocks), *_SLOPE[1:])
    prior = np.array([_CONSTANT, *[slope, _MISSING] * len(blocks)])
    features = np.concatenate([constant, *blocks], axis=-1)
    return fit_hierarchical(features, Y, CoefficientPrior(*prior.T))


def _posteriors(odds: Floats, coefficients: Floats) -> Floats:
    """Posteriors from the log-odds of some labellers; O(n_items x n_columns).

    In place, since new memory for each step takes longer than the step.
    """
    constant, slopes, missing = coefficients[:, 0], coefficients[:, 1::2], coefficients[:, 2::2]
    linear = odds * slopes.T.ravel()
    unknown = np.isnan(linear)
    if unknown.any():
        np.copyto(linear, missing.T.ravel(), where=unknown)
    if odds.shape[1] > len(coefficients):
        linear = linear.reshape(len(odds), -1, len(coefficients)).sum(axis=1)
    linear += constant
    # The logistic function, of whose steps NumPy does several numbers at once.
    np.negative(linear, out=linear)
    with np.errstate(over="ignore"):
        np.exp(linear, out=linear)
    linear += 1.0
    return np.reciprocal(linear, out=linear)
