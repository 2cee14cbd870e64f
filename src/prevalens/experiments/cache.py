"""A cache of the scores of classifiers, so that no scores are computed twice.

An entry's name is a checksum of all that the scores depend on: the classifier and its parameters,
the items and labels it is trained on, the items it is asked about, and the versions of the
libraries. Entries hold arrays only, no pickled objects, and may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prevalens._version import __version__
from prevalens.catalogue import stamp
from prevalens.crossfit import TrainsTogether, trains_together
from prevalens.experiments.specs import canonical
from prevalens.files import make_folder, sweep, write_whole
from prevalens.response import is_joint, is_label_wise, offers, response, train
from prevalens.scores import Kind
from prevalens.types import LabelMatrix, Settings

#: Number of the format; goes up when a change of the package makes old scores wrong.
_FORMAT = 1
_VERSIONS = {
    "prevalens": __version__,
    **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
}
#: Parameters that change the time of a computation but not its result.
_WITHOUT_EFFECT = ("n_jobs", "verbose")
_LIMIT = 4 * 2**30


class ScoreCache:
    """Arrays in a folder, found by a checksum.

    Parameters
    ----------
    folder : Path
    limit : int
        Bytes that `trim` leaves at most; the least recently used entries are deleted first.

    Attributes
    ----------
    hits, misses : int
        How often an entry was found, and how often it was missing or damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     cache = ScoreCache(Path(folder))
    ...     cache.put("ab12", {"votes": np.ones(2)})
    ...     cache.get("ab12")["votes"].tolist(), cache.get("cd34")
    ([1.0, 1.0], None)
    """

    def __init__(self, folder: Path, *, limit: int = _LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self.hits = 0
        self.misses = 0

    def get(self, key: str) -> dict[str, npt.NDArray[Any]] | None:
        """The arrays of an entry, or None if it is not there or damaged."""
        path = self._path(key)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as entry:
                arrays = {name: entry[name] for name in entry.files}
            os.utime(path)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            self.misses += 1
            return None
        self.hits += 1
        return arrays

    def put(self, key: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keep arrays; a reader sees all of them or none."""
        content = BytesIO()
        np.savez(content, allow_pickle=False, **arrays)
        path = self._path(key)
        make_folder(path.parent)
        # If a power cut takes it, it is computed again; waiting for the disk costs more.
        write_whole(path, content.getvalue(), lasting=False)

    def trim(self) -> None:
        """Delete incomplete files, and old entries until the rest fits the limit."""
        for folder in self.folder.glob("*/"):
            sweep(folder)
        files = [(path, path.stat()) for path in self.folder.glob("*/*.npz")]
        excess = sum(stat.st_size for _, stat in files) - self.limit
        for path, stat in sorted(files, key=lambda file: file[1].st_mtime):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= stat.st_size

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"


def content_checksum(*parts: Any) -> str | None:
    """Checksum of texts, arrays, sparse matrices and lists of texts; None for anything else.

    Arrays of equal values that lie in memory in another order have another one.

    Examples
    --------
    >>> flat, wide = np.zeros(2), np.zeros((1, 2))
    >>> content_checksum(flat) == content_checksum(np.zeros(2)) != content_checksum(wide)
    True
    """
    total = hashlib.sha256()
    for part in (canonical({"format": _FORMAT, "versions": _VERSIONS}), *parts):
        if not _feed(total, part):
            return None
    return total.hexdigest()


def _feed(total: Any, part: Any) -> bool:
    if isinstance(part, str):
        content = part.encode()
        total.update(f"text {len(content)}\n".encode() + content)
        return True
    if sp.issparse(part) and part.format == "csr":
        total.update(f"{type(part).__name__} {part.shape}\n".encode())
        return all(_feed(total, array) for array in (part.data, part.indices, part.indptr))
    if not isinstance(part, np.ndarray):
        return False
    if part.dtype == object:
        total.update(f"list {len(part)}\n".encode())
        return part.ndim == 1 and all(isinstance(x, str) and _feed(total, x) for x in part)
    total.update(f"{part.dtype.str} {part.shape} {_layout(part)}\n".encode())
    total.update(np.ascontiguousarray(part).data if part.size else b"")
    return True


def _layout(array: npt.NDArray[Any]) -> str:
    """By rows, by columns, or with gaps: products of the same numbers differ in the last digit."""
    if array.flags.c_contiguous:
        return "rows"
    return "columns" if array.flags.f_contiguous else str(array.strides)


class _UnknownError(Exception):
    """Raised for a parameter whose value has no text that identifies it."""


def identity(part: Any) -> str | None:
    """A text that identifies an estimator and its parameters, or None if there is none.

    Lists and dicts of parameters have one too.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier as Tree
    >>> identity(Tree(random_state=0)) == identity(Tree(random_state=0)) != identity(Tree())
    True
    """
    try:
        return canonical({"part": _describe(part)})
    except _UnknownError:
        return None


def _describe(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return _describe(value.item())
    if isinstance(value, np.ndarray) and (text := content_checksum(value)) is not None:
        return {"array": text}
    if isinstance(value, (list, tuple)):
        return [_describe(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _describe(item) for name, item in value.items()}
    if inspect.isfunction(value) or inspect.isclass(value):
        return {"name": _name(value)}
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False).items()
        inside = {name: _describe(v) for name, v in parameters if name not in _WITHOUT_EFFECT}
        return {"class": _name(type(value)), "parameters": inside}
    raise _UnknownError


def _name(value: Any) -> str:
    """The full name of a class or function; local classes, functions and lambdas have none.

    For a part of one's own, the checksum of its file is appended.
    """
    if "<" in value.__qualname__:
        raise _UnknownError
    return f"{value.__module__}.{value.__qualname__}{stamp(value.__module__)}"


class CachedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose scores are kept in a cache, found by the content they depend on.

    `fit` only notes the training items. When scores of items are asked for, they come from the
    cache; if they are not there, the classifier is trained, and all kinds of scores it offers are
    kept. A further method with the same classifier then trains nothing. Parameters have the names
    of the classifier's, so that grids are the same with and without a cache.

    Parameters
    ----------
    classifier : multi-label classifier
    cache : ScoreCache

    Notes
    -----
    Costs one checksum over the items for every training and every request. A classifier
    with parameters that have no name (a random generator, a lambda), or items other than
    arrays, CSR matrices and texts, are not cached, and everything is computed as without.
    """

    def __init__(self, classifier: Any, cache: ScoreCache) -> None:
        self.classifier = classifier
        self.cache = cache

    def __sklearn_clone__(self) -> CachedClassifier:
        # A copy of the cache would keep a count of its own.
        return CachedClassifier(clone(self.classifier), self.cache)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the classifier."""
        parameters: dict[str, Any] = self.classifier.get_params(deep)
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the classifier."""
        self.classifier.set_params(**params)
        return self

    @property
    def joint(self) -> bool:
        """Whether the classifier looks at labels together."""
        return is_joint(self.classifier)

    @property
    def label_wise(self) -> bool:
        """Whether dividing the labels changes nothing."""
        return is_label_wise(self.classifier)

    def fit(self, X: Any, Y: LabelMatrix) -> Self:
        """Remember the training items; the classifier is trained when scores are not cached."""
        training = _Training(partial(_train_alone, self.classifier, X, Y))
        return self._note(training, 0, Y, content_checksum(X, Y))

    @available_if(lambda self: trains_together(self.classifier))  # type: ignore[untyped-decorator]
    def fit_settings(
        self, settings: Sequence[Settings], X: Any, Y: LabelMatrix
    ) -> Iterator[CachedClassifier]:
        """One classifier per setting; if one has to be trained, all are trained together."""
        training = _Training(partial(_train_together, self.classifier, settings, X, Y))
        # Solved together with others, a setting ends up at other last digits than alone.
        together = identity([dict(setting) for setting in settings])
        data = None if together is None else content_checksum(together, X, Y)
        for number, setting in enumerate(settings):
            yield clone(self).set_params(**setting)._note(training, number, Y, data)

    @available_if(lambda self: "votes" in offers(self.classifier))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Votes, shape (n_items, n_labels)."""
        return self._scores(X, "votes")

    @available_if(lambda self: "posteriors" in offers(self.classifier))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Posteriors, shape (n_items, n_labels)."""
        return self._scores(X, "posteriors")

    def _note(self, training: _Training, number: int, Y: LabelMatrix, data: str | None) -> Self:
        self.training_ = training
        self.number_ = number
        self.n_labels_ = Y.shape[1]
        known = identity(self.classifier)
        self.key_ = None if known is None or data is None else content_checksum(known, data)
        return self

    def _scores(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        check_is_fitted(self, "training_")
        key = None if self.key_ is None else content_checksum(self.key_, X)
        scores = None if key is None else self.cache.get(key)
        if scores is None or kind not in scores:
            scores = self._compute(X)
            if key is not None:
                self.cache.put(key, scores)
        return scores[kind]

    def _compute(self, X: Any) -> dict[str, npt.NDArray[Any]]:
        """Compute every kind of scores that the classifier offers, for other methods."""
        trained = self.training_.classifier(self.number_)
        return {
            kind: _kept(kind, response(trained, X, kind, self.n_labels_).values)
            for kind in offers(trained)
        }


def _kept(kind: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as they would come back from the cache: without gaps, and votes in a byte."""
    if kind == "votes":
        return values.astype(np.int8, order="C")
    return values if values.flags.forc else np.ascontiguousarray(values)


class _Training:
    """Trains some classifiers together when one of them is asked for the first time."""

    def __init__(self, trained: Callable[[], Sequence[Any]]) -> None:
        self._train = trained
        self._classifiers: Sequence[Any] = ()

    def classifier(self, number: int) -> Any:
        self._classifiers = self._classifiers or self._train()
        return self._classifiers[number]


def _train_alone(classifier: Any, X: Any, Y: LabelMatrix) -> list[Any]:
    return [train(classifier, X, Y)]


def _train_together(
    classifier: TrainsTogether, settings: Sequence[Settings], X: Any, Y: LabelMatrix
) -> list[Any]:
    return list(classifier.fit_settings(settings, X, Y))
