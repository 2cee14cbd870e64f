"""AdaBoost.MH: boosted decision stumps that ask one question for all labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import Matrix, check_int


class AdaBoostMH(MultiLabelClassifier):
    """Boosted stumps: each round asks whether one feature exceeds a threshold, for all labels.

    Items and labels have a common distribution of weights. A round chooses the question with the
    least Z, the sum over answers and labels of 2 sqrt(W+ W-), where W+ and W- are the weights of
    the positives and negatives with that answer; it then says ln((W+ + e) / (W- + e)) / 2 for each
    answer and label (real-valued AdaBoost.MH).

    Parameters
    ----------
    n_rounds : int
    n_thresholds : int
        Thresholds per feature: quantiles of its values that are not zero, besides zero itself.
        For counts of words, the publication asks only whether a word occurs.

    Attributes
    ----------
    feature_, threshold_ : array, shape (n_rounds,)
    yes_, no_ : array of float, shape (n_rounds, n_labels)
        What is added to the score of each label if the feature is above the threshold, and if not.

    Notes
    -----
    Posteriors are 1 / (1 + exp(-2 score)), as the exponential loss implies. O(n_rounds x n_labels x
    number of values that are not zero); sparse items stay sparse. Fails where labels depend on
    combinations of features, which a sum of stumps cannot express; with many rounds the posteriors
    are overconfident.

    References
    ----------
    Schapire and Singer, "BoosTexter: a boosting-based system for text categorization", Machine
    Learning 39(2), 2000. Friedman, Hastie and Tibshirani, "Additive logistic regression", Annals of
    Statistics 28(2), 2000.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [1.0], [1.1]], [[0, 1], [0, 1], [1, 1], [1, 0]]
    >>> AdaBoostMH(5).fit(X, Y).predict([[0.0], [1.1]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "adaboost"

    def __init__(self, n_rounds: int = 100, n_thresholds: int = 8) -> None:
        self.n_rounds = n_rounds
        self.n_thresholds = n_thresholds

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        n_rounds = check_int(self.n_rounds, "n_rounds", minimum=1)
        questions = _questions(X, check_int(self.n_thresholds, "n_thresholds", minimum=1))
        sign = 2.0 * Y - 1
        weight = np.full(Y.shape, 1 / Y.size)
        rounds = []
        for _ in range(n_rounds):
            chosen, yes, no = _best(questions, weight, Y, 1 / Y.size)
            above = _above(X, questions.feature[[chosen]], questions.threshold[[chosen]])
            weight = weight * np.exp(-sign * np.where(above, yes, no))
            weight /= weight.sum()
            rounds.append((chosen, yes, no))
        order = np.array([chosen for chosen, _, _ in rounds])
        self.feature_, self.threshold_ = questions.feature[order], questions.threshold[order]
        self.yes_ = np.array([yes for _, yes, _ in rounds])
        self.no_ = np.array([no for _, _, no in rounds])

    def _posteriors(self, X: Any) -> Floats:
        above = _above(X, self.feature_, self.threshold_).astype(np.float64)
        return np.asarray(expit(2 * (above @ (self.yes_ - self.no_) + self.no_.sum(axis=0))))


@dataclass(frozen=True)
class _Questions:
    """All questions, and the values of items sorted into the intervals between thresholds.

    Attributes
    ----------
    feature, threshold : array, shape (n_questions,)
        In ascending order of features, then of thresholds. The first is true of every item.
    entries : CSR matrix of 1, shape (n_questions + n_features, n_items)
        Row of a value that is not zero: the last threshold of its feature below it.
    rows : array of int, shape (n_questions,)
        Row of `entries` that belongs to a question.
    last : array of int, shape (n_questions,)
        Row of the largest threshold of the same feature.
    """

    feature: npt.NDArray[np.intp]
    threshold: Floats
    entries: Any
    rows: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]


def _questions(X: Matrix, n_thresholds: int) -> _Questions:
    """Thresholds of every feature, and where each value lies among them."""
    columns = sp.csc_array(X)
    columns.eliminate_zeros()
    feature, threshold, row_of, rows, last, n_rows = [0], [-np.inf], [], [0], [0], 1
    for j, (start, end) in enumerate(zip(columns.indptr[:-1], columns.indptr[1:], strict=True)):
        values = columns.data[start:end].astype(np.float64)
        cuts = np.unique(np.append(_quantiles(values, n_thresholds), 0.0))
        # One row more than thresholds: values that are above none of them.
        row_of.append(n_rows + np.searchsorted(cuts, values))
        feature += [j] * len(cuts)
        threshold += cuts.tolist()
        rows += range(n_rows + 1, n_rows + 1 + len(cuts))
        last += [n_rows + len(cuts)] * len(cuts)
        n_rows += len(cuts) + 1
    positions = (np.concatenate(row_of), columns.indices)
    entries = sp.csr_array((np.ones(columns.nnz), positions), shape=(n_rows, columns.shape[0]))
    return _Questions(
        np.array(feature), np.array(threshold), entries, np.array(rows), np.array(last)
    )


def _quantiles(values: Floats, n_thresholds: int) -> Floats:
    """Values at evenly spaced ranks, without the largest, above which there is nothing."""
    ordered = np.unique(values)
    ranks = np.linspace(0, len(ordered) - 1, n_thresholds + 1)[:-1].astype(np.intp)
    return ordered[ranks] if len(ordered) else ordered


def _best(
    questions: _Questions, weight: Floats, Y: LabelMatrix, smoothing: float
) -> tuple[int, Floats, Floats]:
    """The question with the least Z, and what its two answers say of each label."""
    mass = np.hstack([weight * Y, weight * (1 - Y)])
    total = mass.sum(axis=0)
    # Weights above a threshold: of the values that are not zero, from all rows beyond it; of zeros
    # (whatever is left), where the threshold is negative.
    sums = np.cumsum(np.vstack([np.zeros((1, mass.shape[1])), questions.entries @ mass]), axis=0)
    above = sums[questions.last + 1] - sums[questions.rows]
    first = np.searchsorted(questions.feature, questions.feature)
    start = np.where(first == 0, 1, questions.rows[first] - 1)
    stored = sums[questions.last + 1] - sums[start]
    above += np.where(questions.threshold[:, np.newaxis] < 0, total - stored, 0.0)
    above[0] = total
    above = np.clip(above, 0.0, total)
    below = total - above
    n_labels = Y.shape[1]
    Z = sum(np.sqrt(part[:, :n_labels] * part[:, n_labels:]).sum(axis=1) for part in (above, below))
    # Differences by rounding alone do not decide.
    chosen = int(np.flatnonzero(np.min(Z) + 1e-12 >= Z)[0])
    return chosen, *(
        np.log((part[:n_labels] + smoothing) / (part[n_labels:] + smoothing)) / 2
        for part in (above[chosen], below[chosen])
    )


def _above(X: Matrix, feature: npt.NDArray[np.intp], threshold: Floats) -> npt.NDArray[np.bool_]:
    """Answers of items to questions, shape (n_items, n_questions)."""
    used, place = np.unique(feature, return_inverse=True)
    values = X[:, used].toarray() if sp.issparse(X) else X[:, used]
    return np.asarray(values[:, place] > threshold)
