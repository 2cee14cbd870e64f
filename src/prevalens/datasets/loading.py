"""load(name): a dataset by name, prepared as in the paper, and its figures in the paper's table.

The rule that gives the printed figures: drop labels with fewer than five positive training items,
drop no item; count labelsets over training and test items together, the empty one included; divide
PUniq and PMax by the number of training items, although they count over all.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from prevalens.collection import Collection
from prevalens.datasets.dataset import Dataset, DatasetParts
from prevalens.datasets.formats.corpora import ohsumed_parts, rcv1_parts, reuters_parts
from prevalens.datasets.formats.matlab import matlab_parts
from prevalens.datasets.formats.mulan import mulan_parts
from prevalens.datasets.formats.svmlight import svmlight_parts
from prevalens.datasets.formats.timelines import goemotions_parts, timeline_parts
from prevalens.datasets.generated import synthetic
from prevalens.datasets.home import FoundFiles, acquire, data_home
from prevalens.datasets.registry import Figures, RegistryEntry, lookup, names
from prevalens.files import fingerprint, tree_digest
from prevalens.types import Ints
from prevalens.validation import FormatError, InputError, PrevalensWarning, check_int, check_rng

#: The word that replaces every number.
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
    """Preparation of texts as the paper's text has it: a scikit-learn pipeline, ``tfidf``.

    Texts become lower case; numbers are replaced by one word; terms are words of two letters or
    more that occur in at least `min_df` texts, without English stop words; weights are tf-idf, and
    rows have length 1. The pipeline can be cloned, pickled, and put before any classifier.

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
    "goemotions": goemotions_parts,
    "matlab": matlab_parts,
    "mulan": mulan_parts,
    "ohsumed": ohsumed_parts,
    "rcv1": rcv1_parts,
    "reuters": reuters_parts,
    "svmlight": svmlight_parts,
    "timeline": timeline_parts,
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
    cut: str | np.datetime64 | float | None = None,
    max_train: int | None = None,
    max_test: int | None = None,
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
        Least number of positive training items of a label that is kept. Some datasets ask for a
        share of the training items in addition (`DatasetDescription.min_share`).
    cut : str, datetime64, int or float, optional
        For a dataset with times: another origin than its own. Items before this date, or so many
        (or such a share) of the earliest items, are for training (see `Collection.cut`).
    max_train : int, optional
        Most training items; if there are more, a random part of them, always the same, is used.
    max_test : int, optional
        Most test items; if there are more, items evenly spread over time are used.
    download : bool
        Whether to download missing files.
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
        dataset = _GENERATORS[entry.name]()
    else:
        place = acquire(entry, data_home(home), download_missing=download, mirror=mirror)
        dataset = _read(entry, place)
    # Before labels and words are chosen: they follow from the training items that are used.
    dataset = _reduced(dataset if cut is None else _cut(dataset, cut), max_train, max_test)
    if raw:
        return dataset
    least = check_int(min_positives, "min_positives", minimum=0)
    chosen = _with_frequent_labels(dataset, max(least, entry.min_share * dataset.train.n_items))
    return chosen if text or not entry.text else _with_features(chosen)


def _read(entry: RegistryEntry, files: FoundFiles) -> Dataset:
    parts = _READERS[files.layout.format](**files.arguments())
    train, test = parts.train, parts.test
    if train.features != test.features or train.n_features != test.n_features:
        raise FormatError(f"The training and test files of {entry.name!r} have different features.")
    return Dataset(
        name=entry.name,
        description=entry.about,
        source=files.layout.origin or entry.origin,
        sha=_checked_sha(entry, files),
        **parts._asdict(),
    )


def _checked_sha(entry: RegistryEntry, files: FoundFiles) -> str:
    """One checksum for all files; a warning for those that are not the published ones."""
    checksums = []
    for file, path in zip(files.layout.files, files.paths, strict=True):
        checksums.append(tree_digest(path))
        if file.sha256 is not None and file.sha256 != checksums[-1]:
            warnings.warn(
                f"{path} is not the published file of {entry.name!r}: its checksum differs.",
                PrevalensWarning,
                stacklevel=4,
            )
    return fingerprint(checksums)


def _cut(dataset: Dataset, at: str | np.datetime64 | float) -> Dataset:
    if dataset.train.times is None or dataset.test.times is None:
        raise InputError(f"The dataset {dataset.name!r} has no times; leave out cut={at!r}.")
    train, test = Collection.stack(dataset.train, dataset.test).cut(at)
    return replace(dataset, train=train, test=test)


def _reduced(dataset: Dataset, max_train: int | None, max_test: int | None) -> Dataset:
    train, test = dataset.train, dataset.test
    if max_train is not None and check_int(max_train, "max_train", minimum=1) < len(train):
        rows = check_rng(0).choice(len(train), size=max_train, replace=False)
        train = train.take(np.sort(rows))
    if max_test is not None and check_int(max_test, "max_test", minimum=1) < len(test):
        test = test.take(_spread(test, max_test))
    return replace(dataset, train=train, test=test)


def _spread(items: Collection, number: int) -> Ints:
    """Rows of some items, evenly spread over time, or over the rows if there are no times."""
    order = np.arange(len(items)) if items.times is None else np.argsort(items.times, kind="stable")
    places = (np.arange(number) + 0.5) * len(items) / number
    return np.sort(order[places.astype(np.int64)])


def _with_frequent_labels(dataset: Dataset, min_positives: float) -> Dataset:
    keep = dataset.train.Y.sum(axis=0, dtype=int) >= min_positives
    if not keep.any():
        raise InputError(
            f"No label of {dataset.name!r} has {min_positives:g} positive training items; pass a "
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
    terms = pipeline.get_feature_names_out()
    return replace(
        dataset,
        train=dataset.train.with_X(train, features=terms),
        test=dataset.test.with_X(pipeline.transform(dataset.test.X), features=terms),
        vectoriser=pipeline,
    )


#: The columns of the table, by the names of `Figures`.
COLUMNS = {
    "classes": "#Classes",
    "train": "#Train",
    "test": "#Test",
    "features": "#Features",
    "card": "Card",
    "dens": "Dens",
    "div": "Div",
    "norm_div": "NormDiv",
    "puniq": "PUniq",
    "pmax": "PMax",
}


@dataclass(frozen=True)
class DatasetComparison:
    """Printed and recomputed figures of one dataset."""

    name: str
    printed: Figures
    computed: Figures

    @property
    def differences(self) -> tuple[str, ...]:
        """The columns in which the two differ as printed, that is to three decimals."""
        printed, computed = asdict(self.printed), asdict(self.computed)
        return tuple(
            column for column in printed if shown(printed[column]) != shown(computed[column])
        )

    @property
    def agreeing(self) -> int:
        """How many of the ten cells agree."""
        return len(fields(Figures)) - len(self.differences)


def shown(value: float) -> str:
    """A figure as the paper prints it."""
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def figures(dataset: Dataset) -> Figures:
    """The row of the table for a prepared dataset."""
    statistics = dataset.statistics()
    return Figures(
        classes=dataset.train.n_labels,
        train=dataset.train.n_items,
        test=dataset.test.n_items,
        features=dataset.train.n_features or 0,
        card=statistics.cardinality,
        dens=statistics.density,
        div=statistics.diversity,
        norm_div=statistics.normalised_diversity,
        puniq=statistics.puniq,
        pmax=statistics.pmax,
    )


def printed_names() -> tuple[str, ...]:
    """Names of the datasets for which the paper prints figures."""
    return tuple(name for name in names() if lookup(name).printed is not None)


def compare(
    name: str, *, home: str | Path | None = None, download: bool = True, mirror: str | None = None
) -> DatasetComparison:
    """Load a dataset and compare its figures with the printed ones.

    Parameters
    ----------
    name : str
        One of `printed_names`.
    home, download, mirror
        As for `load`.
    """
    entry = lookup(name)
    if entry.printed is None:
        raise InputError(f"The paper prints no figures for {entry.name!r}.")
    dataset = load(name, home=home, download=download, mirror=mirror)
    return DatasetComparison(entry.name, entry.printed, figures(dataset))
