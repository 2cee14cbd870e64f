"""Texts as tf-idf features, prepared as in the paper."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from prevalens.datasets.dataset import Dataset, DatasetParts
from prevalens.datasets.formats.corpora import ohsumed_parts, rcv1_parts, reuters_parts
from prevalens.datasets.formats.matlab import matlab_parts
from prevalens.datasets.formats.mulan import mulan_parts
from prevalens.datasets.formats.svmlight import svmlight_parts
from prevalens.datasets.generated import synthetic
from prevalens.datasets.home import FoundFiles, acquire, data_home
from prevalens.datasets.registry import RegistryEntry, lookup
from prevalens.files import fingerprint, tree_digest
from prevalens.validation import FormatError, InputError, PrevalensWarning, check_int

__all__ = ["NUMBER", "load", "mask_numbers", "text_pipeline"]

#: The word every number becomes.
NUMBER = "numbermask"
_NUMBER = re.compile(r"\b[0-9][0-9.,-]*\b")


def mask_numbers(text: str) -> str:
    """Lower case, with every number replaced by the word `NUMBER`.

    Examples
    --------
    >>> mask_numbers("Up 3.5 pct in 1987")
    'up numbermask pct in numbermask'
    """
    return _NUMBER.sub(NUMBER, text.lower())


def text_pipeline(*, min_df: int | float = 5, sublinear_tf: bool = False) -> Pipeline:
    """The paper's preparation of texts, as a scikit-learn pipeline of one step, ``tfidf``.

    Lower case, numbers masked by one word, words of two letters and more (so punctuation
    goes), English stop words removed, words in at least `min_df` texts kept, tf-idf weights,
    rows of length 1. It can be cloned, pickled, and put before any classifier.

    Parameters
    ----------
    min_df : int or float
        Number (or share) of texts a word must occur in.
    sublinear_tf : bool
        Whether to use 1 + log(tf) instead of tf.

    Notes
    -----
    The paper says "terms appearing at least 5 times" and 8,250 features for Reuters-21578;
    counting texts gives 8,244, counting occurrences 9,950. The published code of the paper
    uses ``sublinear_tf=True`` and no stop words, against its text; this follows the text.
    Needs at least `min_df` texts; with fewer, pass a smaller `min_df`.

    References
    ----------
    Moreo, Francisco and Sebastiani, Multi-label quantification, ACM TKDD 2023.

    Examples
    --------
    >>> pipeline = text_pipeline(min_df=1).fit(["The printer printed 12 pages", "No pages"])
    >>> pipeline.get_feature_names_out().tolist()
    ['numbermask', 'pages', 'printed', 'printer']
    """
    vectoriser = TfidfVectorizer(
        preprocessor=mask_numbers, stop_words="english", min_df=min_df, sublinear_tf=sublinear_tf
    )
    return Pipeline([("tfidf", vectoriser)])


_READERS: dict[str, Callable[..., DatasetParts]] = {
    "matlab": matlab_parts,
    "mulan": mulan_parts,
    "ohsumed": ohsumed_parts,
    "rcv1": rcv1_parts,
    "reuters": reuters_parts,
    "svmlight": svmlight_parts,
}
_GENERATORS: dict[str, Callable[[], Dataset]] = {
    "synthetic": synthetic,
    "synthetic_text": lambda: synthetic(kind="text"),
}


def load(
    name: str,
    *,
    home: str | Path | None = None,
    raw: bool = False,
    text: bool = False,
    min_positives: int = 5,
    download: bool = True,
    mirror: str | None = None,
) -> Dataset:
    """Load a dataset by name.

    By default it is prepared as in the paper: labels with fewer than five positive training
    items are dropped, all items stay, and texts become tf-idf features whose words are chosen
    on the training texts.

    Parameters
    ----------
    name : str
        One of `names`.
    home : str or Path, optional
        The data home; else ``PREVALENS_DATA``, else the user's cache folder.
    raw : bool
        Everything as it is in the files: all labels, texts as texts.
    text : bool
        Texts as texts, with the paper's choice of labels.
    min_positives : int
        How many positive training items a label needs to stay.
    download : bool
        Whether to download what is missing.
    mirror : str, optional
        Address of a copy of the data home to download from; else ``PREVALENS_MIRROR``, else
        the public source.

    Returns
    -------
    Dataset

    Notes
    -----
    Files that are not the published ones give a warning. Nothing is cached in memory.

    Examples
    --------
    >>> data = load("synthetic")
    >>> data.train
    Collection(2000 items, 40 features, 12 labels)
    """
    entry = lookup(name)
    if text and not entry.text:
        raise InputError(
            f"The dataset {entry.name!r} has no texts, only features; leave out text=True."
        )
    if entry.name in _GENERATORS:
        found = _GENERATORS[entry.name]()
    else:
        place = acquire(entry, data_home(home), download_missing=download, mirror=mirror)
        found = _read(entry, place)
    if raw:
        return found
    chosen = _with_frequent_labels(found, check_int(min_positives, "min_positives", minimum=0))
    return chosen if text or not entry.text else _with_features(chosen)


def _read(entry: RegistryEntry, found: FoundFiles) -> Dataset:
    parts = _READERS[found.layout.format](**found.arguments())
    _check_features(entry, parts)
    return Dataset(
        name=entry.name,
        description=entry.about,
        source=found.layout.origin or entry.origin,
        sha=_checked_sha(entry, found),
        **parts._asdict(),
    )


def _check_features(entry: RegistryEntry, parts: DatasetParts) -> None:
    train, test = parts.train, parts.test
    if train.features != test.features or train.n_features != test.n_features:
        raise FormatError(f"The training and test files of {entry.name!r} have different features.")


def _checked_sha(entry: RegistryEntry, found: FoundFiles) -> str:
    """One checksum for all files; a warning for those that are not the published ones."""
    checksums = []
    for file, path in zip(found.layout.files, found.paths, strict=True):
        checksums.append(tree_digest(path))
        if file.sha256 is not None and file.sha256 != checksums[-1]:
            warnings.warn(
                f"{path} is not the published file of {entry.name!r}: its checksum differs.",
                PrevalensWarning,
                stacklevel=4,
            )
    return fingerprint(checksums)


def _with_frequent_labels(dataset: Dataset, min_positives: int) -> Dataset:
    keep = dataset.train.Y.sum(axis=0, dtype=int) >= min_positives
    if not keep.any():
        raise InputError(
            f"No label of {dataset.name!r} has {min_positives} positive training items; pass a "
            "smaller min_positives."
        )
    return replace(
        dataset, train=dataset.train.keep_labels(keep), test=dataset.test.keep_labels(keep)
    )


def _with_features(dataset: Dataset) -> Dataset:
    pipeline = text_pipeline()
    try:
        train = pipeline.fit_transform(dataset.train.X)
    except ValueError as error:
        raise InputError(
            f"No word occurs in enough training texts of {dataset.name!r}; use text=True and your "
            "own vectoriser."
        ) from error
    words = pipeline.get_feature_names_out()
    return replace(
        dataset,
        train=dataset.train.with_X(train, features=words),
        test=dataset.test.with_X(pipeline.transform(dataset.test.X), features=words),
        vectoriser=pipeline,
    )
