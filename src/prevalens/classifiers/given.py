"""Given scores: the answers of a labeller outside of prevalens, calibrated by labelled items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.classifiers.calibration import (
    calibrated_columns,
    calibrated_sums,
    scaled_log_odds,
)
from prevalens.classifiers.logistic import BatchedLogistic
from prevalens.classifiers.per_label import PerLabel
from prevalens.crossfit import CrossFit, Division, out_of_fold
from prevalens.response import response
from prevalens.solvers.hierarchical import CoefficientPrior, fit_hierarchical
from prevalens.solvers.logistic import fit_logistic_folds
from prevalens.solvers.score_counts import ScoreCounts
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, check_int, check_matrix, column_names

#: Coefficients of the constant, of the scaled log-odds of a score, and of a missing answer: their
#: means before any label is seen, the deviations of these means, and those between labels.
_CONSTANT = (-1.0, 2.0, 1.0)
_SLOPE = (2.0, 2.0, 1.0)
_MISSING = (0.0, 1.0, 0.5)
#: Folds in which the learner scores the items that its calibration is learnt from.
_FOLDS = 5
#: The learner if none is named: balanced classes raise the scores of rare labels above the noise,
#: and what they distort the calibration corrects.
_REGRESSION: dict[str, Any] = {"C": 10.0, "class_weight": "balanced", "tol": 1e-4}
#: Up to so many items, the regressions of all folds are solved together; and directions with less
#: than this share of the largest square are left out.
_FEW_ITEMS, _LEAST_SQUARE = 2000, 1e-9


class Given(MultiLabelClassifier):
    """Scores that a labeller has given: a language model, a rule set, a vendor's service.

    The items are the answers themselves. Labelled items calibrate them: `predict_proba` is the
    probability that a person gives the label, if the labeller answered so. Features of the items,
    such as the words of their texts, may follow the answers as further evidence.

    Parameters
    ----------
    learner : classifier, optional
        What learns the labels from the features, if there are any. Default: one logistic regression
        per label with balanced classes, ``PerLabel(C=10, class_weight="balanced")``.
    n_labellers : int, optional
        Labellers whose scores are the first columns; the others are features. Default: all columns
        are scores.
    separate : bool
        Whether aggregators that can weigh them read every labeller besides all of them together.
        With few labelled items, so many columns are more noise than help; the automatic choice
        tries both.

    Attributes
    ----------
    n_labellers_ : int
    learner_ : fitted classifier, or None if there are no features
    coefficients_ : list of arrays of float, shape (n_labels, 1 + 2 * number of labellers)
        Constant, and for each labeller the slope of the scaled log-odds and that of a missing
        answer: of each labeller alone, or, if there are features and the labellers are not
        separate, of all labellers without the features. Empty if only all together are read.
    joint_coefficients_ : array of float, shape (n_labels, 1 + 2 * n_labellers)
        Of all labellers together, with the learner as the last of them.

    Notes
    -----
    X has one column per labeller and label, shape (n_items, n_labellers * n_labels): all labels of
    the first labeller, then those of the second; with `n_labellers`, features follow. A score is a
    probability between 0 and 1, or a vote, 0 or 1; NaN if the labeller did not answer. A missing
    answer is not a 0: what it says about a label is learnt.

    A label's calibration is a logistic regression on the log-odds of its scores and on whether they
    are missing. Its coefficients are drawn to those of the other labels, the more so the fewer
    positive items it has (see `prevalens.solvers.hierarchical`). So some hundred labelled items are
    enough, and a label with three positive items is not taken at its word.

    The learner is one more labeller: its scores of the labelled items are made out of fold, and
    calibrated together with the others. Aggregators that can weigh them read the posteriors with
    and without it: the labellers know what they were told of a label, the learner what the items
    of the label look like, and with few labelled items both are noisy.

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
    >>> features = [[1.0], [0.0], [0.0], [0.0]] * 10  # as good as a label
    >>> both = Given(n_labellers=1).fit(np.hstack([scores, features]), Y)
    >>> with_feature, without = both.predict_proba([[0.9, 0.2, 1.0], [0.9, 0.2, 0.0]])[:, 0]
    >>> bool(with_feature > sure > without)
    True
    """

    code = "given"
    takes_missing = True

    def __init__(
        self, learner: Any = None, *, n_labellers: int | None = None, separate: bool = True
    ) -> None:
        self.learner = learner
        self.n_labellers = n_labellers
        self.separate = separate

    def _check_items(self, X: Any, *, reset: bool) -> Any:
        names = column_names(X)
        if self.n_labellers is None:
            items = check_scores(X)
        else:
            # Which columns are scores is known with the number of labels, see `_divided`.
            items = check_matrix(X, "The scores and features", missing=True)
        validate_data(self, X if names is not None else items, skip_check_array=True, reset=reset)
        return items

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        n_labels = Y.shape[1]
        scores, features = self._divided(X)
        if scores.shape[1] % n_labels:
            raise InputError(
                f"X has {X.shape[1]} columns of scores for {n_labels} labels; give one column per "
                "labeller and label, and the number of labellers if features follow (n_labellers=)."
            )
        self.n_labellers_ = scores.shape[1] // n_labels
        blocks = _features(scaled_log_odds(scores), n_labels)
        alone = [[block] for block in blocks] if self.separate else [blocks]
        self.learner_ = None
        if features is not None:
            self.learner_, learnt = self._learn(features, Y)
            blocks = [*blocks, *_features(scaled_log_odds(learnt), n_labels)]
        self.joint_coefficients_ = _calibrated(blocks, Y)
        # What is the same as all together need not be read twice.
        alone = [own for own in alone if len(own) < len(blocks)]
        self.coefficients_ = [_calibrated(own, Y) for own in alone]

    def _divided(self, X: Any) -> tuple[Floats, Any]:
        """The scores, and the features or None, of checked items."""
        if self.n_labellers is None:
            return X, None
        n_scores = check_int(self.n_labellers, "n_labellers", minimum=1) * self.n_labels_
        if X.shape[1] <= n_scores:
            raise InputError(
                f"X has {X.shape[1]} columns, but the scores of {self.n_labellers} labellers for "
                f"{self.n_labels_} labels alone are {n_scores}; leave n_labellers out if no "
                "features follow the scores."
            )
        return check_scores(X[:, :n_scores]), X[:, n_scores:]

    def _learn(self, features: Any, Y: LabelMatrix) -> tuple[Any, Floats]:
        """The learner, trained on all items, and scores that it gives items it has not seen."""
        divisions = CrossFit(min(_FOLDS, len(Y))).divide(Y)
        if self.learner is None and len(Y) <= _FEW_ITEMS:
            return _regressions(features, Y, divisions)
        learner = PerLabel(**_REGRESSION) if self.learner is None else self.learner
        labelled = out_of_fold(learner, features, Y, divisions)[0]
        return labelled.classifier, labelled.scores.values

    def _log_odds(self, X: Any) -> Floats:
        """Scaled log-odds of the scores of all labellers, the learner last."""
        scores, features = self._divided(X)
        if features is None:
            return scaled_log_odds(scores)
        learnt = response(self.learner_, features, "posteriors", self.n_labels_).values
        return scaled_log_odds(np.hstack([scores, learnt]))

    def member_posteriors(self, X: Any) -> Floats:
        """Calibrated posteriors of what is separate, and of all together, side by side.

        Shape (n_items, (n_labellers + 1) * n_labels) for several labellers or one with features,
        or (n_items, n_labels) for one without. Labellers that are not separate count as one.
        """
        X = self._check_items(X, reset=False)
        if not self.coefficients_:
            return self._posteriors(X)
        odds = self._log_odds(X)
        parts, start = [], 0
        for theta in self.coefficients_:
            end = start + theta.shape[1] // 2 * self.n_labels_
            parts.append(_posteriors(odds[:, start:end], theta))
            start = end
        return np.hstack([*parts, _posteriors(odds, self.joint_coefficients_)])

    def mean_of(self, member_posteriors: Floats) -> Floats:
        """The posteriors of all labellers together, shape (n_items, n_labels)."""
        return member_posteriors[:, -self.n_labels_ :]

    def _posteriors(self, X: Any) -> Floats:
        if self.learner_ is None and self.n_labellers_ == 1 and X.flags.f_contiguous:
            return calibrated_columns(X, self.joint_coefficients_)
        return _posteriors(self._log_odds(X), self.joint_coefficients_)

    def posterior_sums(self, scores: ScoreCounts) -> tuple[Floats, Floats]:
        """Sums of the posteriors of items and of their squares, shape (n_labels,) each.

        Of one labeller without features, and without the posteriors of each item.
        """
        return calibrated_sums(scores, self.joint_coefficients_)

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return raw_votes(self._divided(X)[0], self.n_labels_)


def _regressions(
    features: Any, Y: LabelMatrix, divisions: Sequence[Division]
) -> tuple[BatchedLogistic, Floats]:
    """As `PerLabel` with the settings of the learner, all folds and all items in one solution.

    A penalised regression is a weighted sum of the items that it is trained on. With fewer items
    than features, it is solved in the coordinates of the items in their own span.
    """
    gram = features @ features.T
    gram = gram.toarray() if sp.issparse(gram) else gram
    squares, directions = np.linalg.eigh(np.asarray(gram, dtype=np.float64))
    kept = squares > _LEAST_SQUARE * max(squares[-1], _LEAST_SQUARE)
    lengths, directions = np.sqrt(squares[kept]), directions[:, kept]
    coordinates = directions * lengths if kept.any() else np.zeros((len(Y), 1))
    rest = [rows for rows, _ in divisions]
    strength, *stopping = (_REGRESSION[name] for name in ("C", "class_weight", "tol"))
    every = np.arange(len(Y))
    *folds, whole = fit_logistic_folds(
        coordinates, Y, [*rest, every], Cs=[strength], class_weight=stopping[0], tol=stopping[1]
    )
    scores = np.empty(Y.shape)
    for fit, (_, held) in zip(folds, divisions, strict=True):
        scores[held] = BatchedLogistic().set_solution(fit[0]).predict_proba(coordinates[held])
    weights = (whole[0].coef / lengths) @ directions.T if kept.any() else np.zeros(Y.shape[::-1])
    final = replace(whole[0], coef=np.asarray(weights @ features))
    return BatchedLogistic(**_REGRESSION).set_solution(final), scores


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
