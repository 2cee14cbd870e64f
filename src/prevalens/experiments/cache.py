"""Scores by content: what a classifier has said once need not be computed again.

An entry's name is a checksum of all that the scores depend on: the classifier and its parameters,
the items and labels it is trained on, the items it is asked about, and the versions of the
libraries. Entries hold arrays only, no pickled objects, and may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
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
from prevalens.crossfit import TrainsTogether
from prevalens.experiments.specs import canonical
from prevalens.files import make_folder, sweep, write_whole
from prevalens.response import is_joint, is_label_wise, offers, response, train
from prevalens.scores import Kind
from prevalens.types import LabelMatrix, Settings

__all__ = ["Remembered", "ScoreCache", "digest", "identity"]

#: Number of the format; goes up when a change of the package makes old scores wrong.
_FORMAT = 1
_VERSIONS = {
    "prevalens": __version__,
    **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
}
#: Parameters that change how long an answer takes and not what it is.
_WITHOUT_EFFECT = ("n_jobs", "verbose")
_LIMIT = 4 * 2**30


class ScoreCache:
    """Arrays in a folder, found by a checksum.

    Parameters
    ----------
    folder : Path
    limit : int
        Bytes that `trim` leaves at most; what has not been used for longest goes first.

    Attributes
    ----------
    hits, misses : int
        How often something was there, and how often not.

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
                found = {name: entry[name] for name in entry.files}
            os.utime(path)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            self.misses += 1
            return None
        self.hits += 1
        return found

    def put(self, key: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keep arrays; a reader sees all of them or none."""
        content = BytesIO()
        np.savez(content, allow_pickle=False, **arrays)
        path = self._path(key)
        make_folder(path.parent)
        # If a power cut takes it, it is computed again; waiting for the disk costs more.
        write_whole(path, content.getvalue(), lasting=False)

    def trim(self) -> None:
        """Delete what was left half-written, and old entries until the rest fits the limit."""
        for folder in self.folder.glob("*/"):
            sweep(folder)
        files = [(path, path.stat()) for path in self.folder.glob("*/*.npz")]
        excess = sum(stat.st_size for _, stat in files) - self.limit
        for path, stat in sorted(files, key=lambda one: one[1].st_mtime):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= stat.st_size

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"


def digest(*parts: Any) -> str | None:
    """Checksum of texts, arrays, sparse matrices and lists of texts; None for anything else.

    Arrays of equal values that lie in memory in another order have another one.

    Examples
    --------
    >>> digest(np.zeros(2)) == digest(np.zeros(2)), digest(np.zeros(2)) == digest(np.zeros((1, 2)))
    (True, False)
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
        return all(_feed(total, one) for one in (part.data, part.indices, part.indptr))
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
    """A parameter whose value cannot be told from others."""


def identity(part: Any) -> str | None:
    """A text that is the same for estimators that learn the same, or None if none can be made.

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
    if isinstance(value, np.ndarray):
        return {"array": _known(digest(value))}
    if isinstance(value, (list, tuple)):
        return [_describe(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): _describe(one) for name, one in value.items()}
    if inspect.isfunction(value) or inspect.isclass(value):
        return {"name": _name(value)}
    if hasattr(value, "get_params"):
        parameters = value.get_params(deep=False).items()
        inside = {k: _describe(one) for k, one in parameters if k not in _WITHOUT_EFFECT}
        return {"class": _name(type(value)), "parameters": inside}
    raise _UnknownError


def _name(value: Any) -> str:
    """The full name of a class or function; those made on the fly have none.

    A part of one's own is told by its file too.
    """
    if "<" in value.__qualname__:
        raise _UnknownError
    return f"{value.__module__}.{value.__qualname__}{stamp(value.__module__)}"


def _known(text: str | None) -> str:
    if text is None:
        raise _UnknownError
    return text


class Remembered(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Stands for a classifier and keeps its answers by content.

    `fit` only notes the training items. When the classifier is asked about items, the answer
    comes from the cache; if it is not there, the classifier is trained, and all kinds of
    scores it offers are kept. Adding a method with the same classifier then trains nothing.
    Names of parameters are those of the classifier, so that grids need not know.

    Parameters
    ----------
    classifier : multi-label classifier
    cache : ScoreCache

    Notes
    -----
    Costs one checksum over the items for every training and every question. A classifier
    with parameters that have no name (a random generator, a lambda), or items other than
    arrays, CSR matrices and texts, are not remembered, and everything is computed as without.
    """

    def __init__(self, classifier: Any, cache: ScoreCache) -> None:
        self.classifier = classifier
        self.cache = cache

    def __sklearn_clone__(self) -> Remembered:
        # A copy of the cache would keep a count of its own.
        return Remembered(clone(self.classifier), self.cache)

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
        """Note what to train on, should it be necessary."""
        return self._note(_One(self.classifier, X, Y), Y, digest(X, Y))

    @available_if(lambda self: isinstance(self.classifier, TrainsTogether))  # type: ignore[untyped-decorator]
    def fit_settings(
        self, settings: Sequence[Settings], X: Any, Y: LabelMatrix
    ) -> Iterator[Remembered]:
        """One for each setting; if one of them has to be trained, all are, together."""
        together = _Together(self.classifier, settings, X, Y)
        # Solved together with others, a setting ends up at other last digits than alone.
        company = identity([dict(setting) for setting in settings])
        data = None if company is None else digest(company, X, Y)
        for number, setting in enumerate(settings):
            one = clone(self).set_params(**setting)
            yield one._note(_OneOf(together, number), Y, data)

    @available_if(lambda self: "votes" in offers(self.classifier))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Votes, shape (n_items, n_labels)."""
        return self._scores(X, "votes")

    @available_if(lambda self: "posteriors" in offers(self.classifier))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Posteriors, shape (n_items, n_labels)."""
        return self._scores(X, "posteriors")

    def _note(self, training: Any, Y: LabelMatrix, data: str | None) -> Self:
        self.training_ = training
        self.n_labels_ = Y.shape[1]
        known = identity(self.classifier)
        self.key_ = None if known is None or data is None else digest(known, data)
        return self

    def _scores(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        check_is_fitted(self, "training_")
        key = None if self.key_ is None else digest(self.key_, X)
        found = None if key is None else self.cache.get(key)
        if found is None or kind not in found:
            found = self._ask(X)
            if key is not None:
                self.cache.put(key, found)
        return found[kind]

    def _ask(self, X: Any) -> dict[str, npt.NDArray[Any]]:
        """Every kind of scores, as another method may want the other one."""
        trained = self.training_.classifier()
        n_labels = self.n_labels_
        found = {kind: response(trained, X, kind, n_labels).values for kind in offers(trained)}
        return {kind: _kept(kind, values) for kind, values in found.items()}


def _kept(kind: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as they would come back from the cache: without gaps, and votes in a byte."""
    if kind == "votes":
        return values.astype(np.int8, order="C")
    return values if values.flags.forc else np.ascontiguousarray(values)


class _One:
    """A training that takes place when somebody asks for its classifier."""

    def __init__(self, classifier: Any, X: Any, Y: LabelMatrix) -> None:
        self._untrained, self._X, self._Y = classifier, X, Y
        self._trained: Any = None

    def classifier(self) -> Any:
        if self._trained is None:
            self._trained = train(self._untrained, self._X, self._Y)
        return self._trained


class _Together:
    """The same for several settings that are trained in one go."""

    def __init__(
        self, classifier: Any, settings: Sequence[Settings], X: Any, Y: LabelMatrix
    ) -> None:
        self._untrained, self._settings, self._X, self._Y = classifier, settings, X, Y
        self._trained: list[Any] = []

    def classifiers(self) -> list[Any]:
        if not self._trained:
            fitted = self._untrained.fit_settings(self._settings, self._X, self._Y)
            self._trained = list(fitted)
        return self._trained


class _OneOf:
    """One of several trained together."""

    def __init__(self, together: _Together, number: int) -> None:
        self._together, self._number = together, number

    def classifier(self) -> Any:
        return self._together.classifiers()[self._number]
