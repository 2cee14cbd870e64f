"""Funnelling: a second layer that all languages share, over a first layer for each language."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.classifiers.base import CompositeClassifier
from prevalens.classifiers.per_label import PerLabel
from prevalens.crossfit import Division, divisions_of, out_of_fold, warn_of_constant_labels
from prevalens.response import offers, response, train
from prevalens.scores import Kind
from prevalens.splits import stratified_folds
from prevalens.types import Floats, Ints, LabelMatrix
from prevalens.validation import InputError, Matrix, check_choice, check_int, count_items

_TRAINING = ("kfcv", "tat")


class Funnelling(CompositeClassifier):
    """A second layer that all languages share, over a first layer for each language.

    The first layer of a language reads the features of its items and gives posteriors of all
    labels. The second layer reads these alone, so it learns from the items of all languages how
    labels depend on each other, and need not know the language.

    Parameters
    ----------
    base : multi-label classifier with posteriors, optional
        The first layer, trained for each language. Default: ``PerLabel()``. Its posteriors should
        be calibrated, so that they mean the same in every language.
    meta : multi-label classifier, optional
        The second layer. Default: ``PerLabel()``.
    language : int or str, optional
        Position or name of the feature that numbers the languages. The first layers do not see it.
        Features that belong to one language are 0 for the items of the others. Default: there is
        one language.
    training : {"kfcv", "tat"}
        Posteriors on which the second layer is trained: of items in folds that the first layer was
        not trained on (Fun-KFCV), or of its own training items (Fun-TAT, "train and test").
    cv : int
        Folds per language for "kfcv".
    random_state : int or None
        Of the folds.

    Attributes
    ----------
    languages_ : array of float, shape (n_languages,)
        The values of the feature `language`.
    bases_ : list of fitted classifiers, one per language
    meta_ : fitted classifier

    Notes
    -----
    Costs cv + 1 trainings of the first layer on the items of each language ("tat": one), and one of
    the second on all items. Fails where labels mean different things in different languages, and
    where a language has few items, whose posteriors are then poor; with "tat" the second layer
    trusts posteriors that are too certain.

    References
    ----------
    Esuli, Moreo and Sebastiani, "Funnelling: a new ensemble method for heterogeneous transfer
    learning and its application to cross-lingual text classification", ACM TOIS 37(3), 2019.

    Examples
    --------
    Two languages: the first feature is the language, the others are words, two of each.

    >>> X = [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 0, 0, 1]] * 5
    >>> Y = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> model = Funnelling(language=0).fit(X, Y)
    >>> model.predict([[0, 1, 0, 0, 0], [1, 0, 0, 0, 1]]).tolist()
    [[1, 0], [0, 1]]
    """

    code = "funnelling"
    part = "meta"

    def __init__(
        self,
        base: Any = None,
        meta: Any = None,
        *,
        language: int | str | None = None,
        training: str = "kfcv",
        cv: int = 5,
        random_state: int | None = 0,
    ) -> None:
        self.base = base
        self.meta = meta
        self.language = language
        self.training = training
        self.cv = cv
        self.random_state = random_state

    def _fit(self, X: Matrix, Y: LabelMatrix) -> None:
        base = PerLabel() if self.base is None else self.base
        if "posteriors" not in offers(base):
            raise InputError(
                f"Funnelling needs posteriors; {type(base).__name__} offers only votes. Wrap it in "
                "CalibratedClassifierCV."
            )
        check_choice(self.training, "training", _TRAINING)
        codes, X = self._separate(X)
        self.languages_ = np.unique(codes)
        rows_of = [np.flatnonzero(codes == language) for language in self.languages_]
        posteriors = np.empty(Y.shape)
        self.bases_: list[Any] = []
        folds_of = [self._folds(Y[rows]) for rows in rows_of]
        self._warn(Y, rows_of, folds_of)
        for rows, folds in zip(rows_of, folds_of, strict=True):
            posteriors[rows] = self._first_layer(base, X[rows], Y[rows], folds)
        self.meta_ = train(PerLabel() if self.meta is None else self.meta, posteriors, Y)

    def _first_layer(
        self, base: Any, X: Matrix, Y: LabelMatrix, folds: list[Division]
    ) -> npt.NDArray[Any]:
        """Train the first layer of a language; return the posteriors for the second layer."""
        if folds:
            labelled = out_of_fold(base, X, Y, folds)[0]
            self.bases_.append(labelled.classifier)
            return labelled.scores.values
        self.bases_.append(train(base, X, Y))
        return response(self.bases_[-1], X, "posteriors", Y.shape[1]).values

    def _folds(self, Y: LabelMatrix) -> list[Division]:
        """The folds of a language, none for "tat"."""
        n_folds = check_int(self.cv, "cv", minimum=2)
        if self.training == "tat":
            return []
        if len(Y) < n_folds:
            raise InputError(
                f"A language has {len(Y)} items, too few for cv={n_folds} folds; lower cv, use "
                "training='tat', or see that `language` is the feature that numbers the languages."
            )
        return divisions_of(stratified_folds(Y, n_folds, seed=self.random_state))

    def _warn(self, Y: LabelMatrix, rows_of: list[Ints], folds_of: list[list[Division]]) -> None:
        """Warn of labels that are constant where a first layer is trained."""
        divisions = [
            (rows[rest], rows[held])
            for rows, folds in zip(rows_of, folds_of, strict=True)
            for rest, held in folds or [(np.arange(len(rows)), np.arange(0))]
        ]
        warn_of_constant_labels(Y, divisions)

    def _separate(self, X: Matrix) -> tuple[Floats, Matrix]:
        """The language of each item, and the other features."""
        if self.language is None:
            return np.zeros(count_items(X)), X
        place = self._place(X.shape[1])
        others = np.flatnonzero(np.arange(X.shape[1]) != place)
        codes = X[:, [place]]
        codes = codes if isinstance(codes, np.ndarray) else codes.toarray()
        return codes[:, 0].astype(np.float64), X[:, others]

    def _place(self, n_features: int) -> int:
        names = list(getattr(self, "feature_names_in_", ()))
        if isinstance(self.language, str):
            if self.language not in names:
                known = ", ".join(names[:5]) + (" and more" if names[5:] else "")
                raise InputError(
                    f"There is no feature {self.language!r} that could number the languages; there "
                    f"are {known or 'features without names: give language as a position'}."
                )
            return names.index(self.language)
        place = check_int(self.language, "language", minimum=0)
        if place >= n_features:
            raise InputError(
                f"language={place} is beyond the {n_features} features; positions begin at 0."
            )
        return place

    def respond(self, X: Matrix, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""
        codes, X = self._separate(X)
        unknown = np.flatnonzero(~np.isin(codes, self.languages_))
        if len(unknown):
            known = ", ".join(f"{language:g}" for language in self.languages_)
            raise InputError(
                f"Row {unknown[0]} has language {codes[unknown[0]]:g}; there were training items "
                f"of {known} only."
            )
        posteriors = np.empty((len(codes), self.n_labels_))
        for language, base in zip(self.languages_, self.bases_, strict=True):
            rows = np.flatnonzero(codes == language)
            if len(rows):
                scores = response(base, X[rows], "posteriors", self.n_labels_)
                posteriors[rows] = scores.values
        return response(self.meta_, posteriors, kind, self.n_labels_).values
