"""Scores of labellers in tables: columns of numbers, or columns of answers that name labels."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from prevalens.errors import InputError, PrevalensWarning, counted
from prevalens.tables.answers import answer_scores, range_hint, separator_of_answers
from prevalens.tables.cells import number_of, shown
from prevalens.tables.columns import ColumnPreparation
from prevalens.tables.kinds import ColumnUse
from prevalens.tables.labellers import LabelNames, MatchedScores, listed
from prevalens.tables.preparation import CellError, Preparation
from prevalens.types import Array, Floats

#: Names and labels that a message shows.
_NAMED = 5


class UnknownLabelsWarning(PrevalensWarning):
    """Answers name labels that are not among those of the training.

    Attributes
    ----------
    counts : Counter of (column, label)
        Number of items.
    """

    def __init__(self, counts: Counter[tuple[str, str]]) -> None:
        self.counts = counts
        named = ", ".join(
            f"{label!r} ({counted(n, 'item')})" for (_, label), n in counts.most_common(_NAMED)
        )
        more = f" and {len(counts) - _NAMED} more" if len(counts) > _NAMED else ""
        columns = listed(dict.fromkeys(column for column, _ in counts))
        super().__init__(
            f"Answers in {columns} name {counted(len(counts), 'label')} without labels of people "
            f"in the training: {named}{more}; these are left out."
        )


@contextmanager
def unknown_labels_warned_once() -> Iterator[None]:
    """One warning of unknown labels for many chunks; also a decorator."""
    with unknown_labels_once() as sentences:
        yield
    for sentence in sentences:
        warnings.warn(sentence, PrevalensWarning, stacklevel=3)


@contextmanager
def unknown_labels_once() -> Iterator[list[str]]:
    """Collect the warnings of unknown labels of many chunks into one sentence.

    Yields
    ------
    list of str
        Empty until the end; then it holds the sentence, if there is one. Other warnings are given
        again at the end.
    """
    sentences: list[str] = []
    total: Counter[tuple[str, str]] = Counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    for warning in caught:
        if isinstance(warning.message, UnknownLabelsWarning):
            total += warning.message.counts
        else:
            place = (warning.category, warning.filename, warning.lineno)
            warnings.warn_explicit(warning.message, *place)
    if total:
        sentences.append(str(UnknownLabelsWarning(total)))


class ScorePreparation(Preparation):
    """Scores of one or several labellers, one column per labeller and label, and features.

    Parameters
    ----------
    labels : mapping of str to str
        The name of each label, and the part of it that labellers use (see `stems`).
    columns : sequence of mappings of label to column
        For each labeller with a column of scores per label, these columns. A label that the
        labeller does not know is left out; it never answers for it.
    tags : sequence of str
        For each labeller with one column of answers that name labels, this column.
    features : ColumnPreparation, optional
        Of further columns, such as that of the texts, which become features after the scores.

    Attributes
    ----------
    features_ : fitted ColumnPreparation, or None
    separators_ : dict of column to str
        What divides the labels of an answer, for columns of answers that are texts.
    counts_ : array of float, shape (n_labellers, n_labels)
        Share of the answers in training that voted for each label; NaN if there is none.
    counted_ : array of float, shape (n_labels,)
        The same of all labellers together, by the mean of their scores.
    answered_ : array of float, shape (n_labellers, n_labels)
        Share of the training items with an answer.
    human_ : array of float, shape (n_labels,), or None
        Share of the training items that people gave each label, if labels were given.

    Notes
    -----
    The matrix has shape (n_items, n_labellers * n_labels), with the labellers of `columns` first,
    and NaN where there is no answer; features follow, and it is then sparse if they are.
    `prevalens.classifiers.Given` reads it. A column of numbers is converted as a whole, a column of
    answers cell by cell.

    An answer is a text such as ``billing;login`` or ``billing:0.9;login:0.4``, a list of such
    texts, or a mapping of labels to scores; lists and mappings may be written as JSON. A label with
    no score counts as 1, one that is not named as 0. An empty answer names no label. A cell that
    is missing (null, NaN) or says ``refused`` is no answer.

    Examples
    --------
    >>> prepared = ScorePreparation({"billing": "billing", "login": "login"}, tags=["llm"])
    >>> prepared.fit_transform({"llm": ["billing:0.9;login", "", None, '{"login": 0.4}']}).tolist()
    [[0.9, 1.0], [0.0, 0.0], [nan, nan], [0.0, 0.4]]
    """

    kind = "scores"
    human_: Floats | None

    def __init__(
        self,
        labels: Mapping[str, str],
        columns: Sequence[Mapping[str, str]] = (),
        tags: Sequence[str] = (),
        features: ColumnPreparation | None = None,
    ) -> None:
        self.labels = labels
        self.columns = columns
        self.tags = tags
        self.features = features

    def fit_transform(self, items: Any, y: Any = None, **_: Any) -> Any:
        """Learn from the answers; the labels of people are only kept to compare counts with."""
        matrix = self._learn(items)
        self.human_ = None if y is None else np.asarray(y).mean(axis=0, dtype=np.float64)
        return matrix

    def _learn(self, items: Any) -> Any:
        self.human_ = None
        self.n_features_ = self.n_labellers * len(self.labels)
        names = LabelNames(self.labels)
        self.separators_ = {
            column: separator_of_answers(items[column], names) for column in self.tags
        }
        scores = self._scores(items)
        self._check_answers(scores)
        self.features_: ColumnPreparation | None = None
        if self.features is None:
            return scores
        self.features_ = clone(self.features)
        features = self.features_.fit_transform(items)
        self.n_features_ += self.features_.n_features_
        return _side_by_side(scores, features)

    def _transform(self, items: Any) -> Any:
        scores = self._scores(items)
        if self.features_ is None:
            return scores
        return _side_by_side(scores, self.features_.transform(items))

    @property
    def n_labellers(self) -> int:
        """Number of labellers."""
        return len(self.columns) + len(self.tags)

    def scores_in(self, X: Any) -> Floats:
        """The scores in a matrix of prepared items, without the features."""
        if self.features is None:
            return np.asarray(X)
        scores = X[:, : self.n_labellers * len(self.labels)]
        return np.asarray(scores.toarray() if sp.issparse(scores) else scores)

    def plain_columns(self) -> tuple[str, ...]:
        """The column of each label, if one labeller has one for each and there is nothing else."""
        alone = len(self.columns) == 1 and not self.tags and self.features is None
        own = [self.columns[0].get(label) for label in self.labels] if alone else []
        return tuple(name for name in own if name is not None) if None not in own else ()

    def _scores(self, items: Any) -> Floats:
        blocks, n_labels = [], len(self.labels)
        for columns in self.columns:
            n_items = len(items[next(iter(columns.values()))])
            # By columns, in which it is filled and calibrated.
            block = np.full((n_items, n_labels), np.nan, order="F")
            for j, label in enumerate(self.labels):
                if label in columns:
                    block[:, j] = column_scores(items[columns[label]], columns[label])
            blocks.append(block)
        # Without answers, no name is looked up.
        names = LabelNames(self.labels if self.tags else {})
        unknown = Counter[tuple[str, str]]()
        for column in self.tags:
            separator = self.separators_[column]
            block, others = answer_scores(items[column], column, names, n_labels, separator)
            blocks.append(block)
            unknown.update({(column, label): n for label, n in others.items()})
        if unknown:
            warnings.warn(UnknownLabelsWarning(unknown), stacklevel=3)
        return blocks[0] if len(blocks) == 1 else np.hstack(blocks)

    def _check_answers(self, scores: Floats) -> None:
        """Keep the counts of the labellers; refuse those who say nothing."""
        by_labeller = scores.reshape(len(scores), -1, len(self.labels))
        given = ~np.isnan(by_labeller)
        self.answered_ = given.mean(axis=0)
        for name, answered in zip(self.labellers, self.answered_, strict=True):
            if not answered.any():
                raise InputError(
                    f"No item has an answer in {name}; a labeller that never answers tells nothing."
                )
        with np.errstate(invalid="ignore"):
            self.counts_ = (by_labeller > 0.5).sum(axis=0) / given.sum(axis=0)
        sums = np.where(given, by_labeller, 0.0).sum(axis=1)
        votes = sums > 0.5 * given.sum(axis=1)
        self.counted_ = votes.sum(axis=0) / np.maximum(given.any(axis=1).sum(axis=0), 1)
        least = np.where(given, by_labeller, np.inf).min(axis=0)
        most = np.where(given, by_labeller, -np.inf).max(axis=0)
        constant = np.all((least >= most) & (given.all(axis=0) | ~given.any(axis=0)), axis=0)
        if constant.any():
            same = [label for label, flag in zip(self.labels, constant, strict=True) if flag]
            warnings.warn(
                f"The scores of {counted(len(same), 'label')} are the same for every item: "
                f"{listed(same)}; what is estimated of them comes from the other labels alone.",
                PrevalensWarning,
                stacklevel=2,
            )

    @property
    def labellers(self) -> list[str]:
        """Where the scores of each labeller are, for messages."""
        own = [listed(columns.values()) for columns in self.columns]
        return [f"the column{'s' * (', ' in name)} {name}" for name in own] + [
            f"the column {column!r}" for column in self.tags
        ]

    def for_labels(self, kept: Sequence[int]) -> ScorePreparation:
        """An unfitted copy for some of the labels, by their numbers."""
        return ScorePreparation(*self._matched.for_labels(kept), self.features)

    def table_columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        others = () if self.features is None else self.features.columns or ()
        return (*self._matched.table_columns(), *others)

    def score_columns(self) -> tuple[str, ...]:
        """See `Preparation`."""
        return self._matched.score_columns()

    @property
    def _matched(self) -> MatchedScores:
        return MatchedScores(dict(self.labels), list(self.columns), list(self.tags))

    def column_uses(self, columns: Sequence[str] | None) -> tuple[ColumnUse, ...]:  # noqa: ARG002
        """Whose scores each column holds, and what they count beside what people count."""
        names, uses = list(self.labels), []
        for k, own in enumerate(self.columns):
            for label, column in own.items():
                uses.append(ColumnUse(column, f"scores of {label}", self._count(k, [label])))
        for k, column in enumerate(self.tags, start=len(self.columns)):
            uses.append(ColumnUse(column, "answers", self._count(k, names)))
        features = () if self.features_ is None else self.features_.column_uses(None)
        return (*uses, *features)

    def _count(self, labeller: int, labels: Sequence[str]) -> str:
        """What a labeller counts, and people; of many labels those that differ most."""
        place = {label: j for j, label in enumerate(self.labels)}
        answered = self.answered_[labeller, [place[label] for label in labels]].mean()
        silent = f"; no answer for {1 - answered:.0%}" if answered < 1 else ""
        counts, human = self.counts_[labeller], self.human_
        if human is None:
            return silent.removeprefix("; ")
        order = sorted(labels, key=lambda name: -abs(counts[place[name]] - human[place[name]]))
        parts = [
            ("" if len(labels) == 1 else f"{name} ")
            + f"counts {counts[place[name]]:.0%}, people {human[place[name]]:.0%}"
            for name in order[:3]
        ]
        return "; ".join(parts) + silent

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """``column`` of a score, or ``column: label`` of an answer."""
        names = [
            own.get(label, f"(no column): {label}") for own in self.columns for label in self.labels
        ]
        names += [f"{column}: {label}" for column in self.tags for label in self.labels]
        if self.features_ is not None:
            names += self.features_.get_feature_names_out().tolist()
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """A short description for people."""
        scores = f"scores of {counted(self.n_labellers, 'labeller')} as given"
        return scores if self.features_ is None else f"{scores}; {self.features_.describe()}"


def _side_by_side(scores: Floats, features: Any) -> Any:
    if sp.issparse(features):
        return sp.hstack([sp.csr_matrix(scores), features], format="csr")
    return np.hstack([scores, features])


def column_scores(cells: Sequence[Any] | Array, column: str) -> Floats:
    """The scores of a column as numbers between 0 and 1; NaN where they are missing.

    Raises
    ------
    CellError
        At the first cell that is neither a score nor missing.

    Examples
    --------
    >>> column_scores(["0.25", "", "yes"], "p_spam").tolist()
    [0.25, nan, 1.0]
    """
    values = _numbers(cells, column)
    # The smallest and the largest number, whatever is missing.
    if not len(values) or not (np.fmin.reduce(values) < 0 or np.fmax.reduce(values) > 1):
        return values
    if np.isinf(values).any():
        row, hint = int(np.flatnonzero(np.isinf(values))[0]), range_hint(2e9)
    else:
        row = int(np.flatnonzero((values < 0) | (values > 1))[0])
        hint = range_hint(values[row])
    raise CellError(row, f"the score {column!r} is {shown(cells[row])}; {hint}.")


def _numbers(cells: Sequence[Any] | Array, column: str) -> Floats:
    if isinstance(cells, np.ndarray) and cells.dtype == np.float32:
        return cells
    try:
        # In the usual case all cells are numbers, or texts of numbers; None becomes NaN.
        return np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([_number(cells, row, column) for row in range(len(cells))])


def _number(cells: Sequence[Any] | Array, row: int, column: str) -> float:
    value = number_of(cells[row])
    if value is None:
        raise CellError(
            row,
            f"the score {column!r} is {shown(cells[row])}, which is no number; write a score "
            "between 0 and 1, or leave it empty if there is no answer. A column of answers that "
            "name labels is given with `scores_tags=`.",
        )
    return value
