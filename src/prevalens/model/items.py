"""Items in any of their forms, cut into chunks that a preparation takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from prevalens.errors import InputError
from prevalens.model.labelled import Labelled
from prevalens.tables.columns import ColumnPreparation
from prevalens.tables.formats import as_table
from prevalens.tables.preparation import ArrayPreparation, GivenPreparation, Preparation
from prevalens.tables.scores import ScorePreparation
from prevalens.tables.table import CHUNK_ROWS, Chunk, Table
from prevalens.tables.text import TextPreparation
from prevalens.types import Floats, Ints, Items
from prevalens.validation import count_items, is_texts, take_items


def stacked(blocks: Sequence[Items]) -> Items:
    """Matrices of consecutive items as one matrix."""
    if len(blocks) == 1:
        return blocks[0]
    return sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.concatenate(blocks)


def has_missing(X: Items) -> bool:
    """Whether a matrix has values that are missing; only given scores have some."""
    return bool(np.isnan(X.sum()))


def filled(X: Items) -> Items:
    """The matrix with the mean of its column in place of each missing value."""
    if not has_missing(X):
        return X
    if not sp.issparse(X):
        return np.where(np.isnan(X), column_means(X), X)
    full = X.copy()
    missing = np.isnan(full.data)
    full.data[missing] = column_means(X)[full.indices[missing]]
    return full


def column_means(X: Items) -> Floats:
    """Means of the columns of a matrix, over the values that are there; 0 if there is none."""
    if not has_missing(X):
        return np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    if sp.issparse(X):
        missing = np.isnan(X.data)
        known = np.bincount(X.indices, np.where(missing, 0.0, X.data), X.shape[1])
        return known / np.maximum(X.shape[0] - np.bincount(X.indices[missing], None, X.shape[1]), 1)
    given = ~np.isnan(X)
    sums = np.where(given, X, 0.0).sum(axis=0)
    return np.asarray(sums / np.maximum(given.sum(axis=0), 1))


def is_table(items: Items) -> bool:
    """Whether items have named columns: a Table, a frame, a mapping, a list of records."""
    if isinstance(items, (Table, Mapping, Chunk)):
        return True
    native = nw.from_native(items, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        return True
    return isinstance(items, Sequence) and len(items) > 0 and isinstance(items[0], Mapping)


def preparation_for(
    items: Items, columns: Sequence[str] | None, *, text: bool, given: Any = None
) -> Preparation:
    """The preparation or transformer that was given, or the preparation that suits the items."""
    if given is not None:
        return given if isinstance(given, Preparation) else GivenPreparation(given)
    if is_table(items):
        return TextPreparation() if text else ColumnPreparation(columns)
    return TextPreparation() if _looks_like_texts(items) else ArrayPreparation()


def labelled_preparation(
    data: Labelled,
    kept: Sequence[int],
    kinds: Mapping[str, str] | None = None,
    date_form: str | None = None,
) -> Preparation:
    """The preparation of labelled items from files, for the labels that are kept."""
    if data.only_texts:
        return TextPreparation()
    features = None
    if data.features:
        texts = {} if data.text is None else {data.text: "text"}
        how = {**texts, **(kinds or {})}
        features = ColumnPreparation(data.features, kinds=how, date_form=date_form)
    if data.scores is not None:
        return ScorePreparation(*data.scores.for_labels(kept), features)
    assert features is not None  # without scores there are features
    return features


def _looks_like_texts(items: Items) -> bool:
    if sp.issparse(items):
        return False
    if isinstance(nw.from_native(items, allow_series=True, pass_through=True), nw.Series):
        return True
    return is_texts(items) or (isinstance(items, np.ndarray) and items.ndim == 1)


def training_items(items: Items, preparation: Preparation, columns: Sequence[str] | None) -> Items:
    """All items at once, in the form the preparation takes."""
    if not is_table(items) or _is_own_frame(items, preparation, columns):
        return items
    chunk = items if isinstance(items, Chunk) else as_table(items).read(columns)
    return chunk_items(chunk, preparation, columns)


def _is_own_frame(items: Items, preparation: Preparation, columns: Sequence[str] | None) -> bool:
    """Whether items are a frame that a transformer of the user takes as it is."""
    given = isinstance(preparation, GivenPreparation) and columns is None
    return given and not isinstance(items, (Table, Mapping, Chunk, list, tuple))


def chunk_items(chunk: Chunk, preparation: Preparation, columns: Sequence[str] | None) -> Items:
    """The items of a chunk of rows, in the form the preparation takes."""
    names = tuple(chunk.columns) if columns is None else tuple(columns)
    if isinstance(preparation, (ColumnPreparation, ScorePreparation)):
        return {name: chunk[name] for name in names}
    if len(names) == 1:
        return chunk[names[0]]
    if isinstance(preparation, GivenPreparation):
        return _frame({name: list(chunk[name]) for name in names})
    raise InputError(f"The model reads one column; got {len(names)}.")


def _frame(columns: Mapping[str, Sequence[Any]]) -> Items:
    """A data frame, which transformers of scikit-learn need to know columns by name."""
    try:
        return nw.from_dict(columns, backend="pandas").to_native()
    except ImportError:
        raise InputError(
            "A transformer of several columns gets them as a data frame, for which pandas is "
            'needed: pip install "prevalens[frames]".'
        ) from None


def item_count(items: Items) -> int:
    """Number of items in any of their forms."""
    return sum(map(len, as_table(items).chunks())) if is_table(items) else count_items(items)


def chunks_of(
    items: Items, preparation: Preparation, columns: Sequence[str] | None
) -> Iterator[Items]:
    """Items in the form the preparation takes, some thousand at a time."""
    if is_table(items) and not _is_own_frame(items, preparation, columns):
        for chunk in as_table(items).chunks(columns):
            yield chunk_items(chunk, preparation, columns)
        return
    for start in range(0, count_items(items), CHUNK_ROWS):
        yield items[start : start + CHUNK_ROWS]


def refitted(items: Items, preparation: Preparation) -> Callable[[Ints, Ints], tuple[Items, Items]]:
    """A function that prepares two sets of rows by what the first set alone shows.

    Parameters
    ----------
    items : items in the form the preparation takes
        All training items.
    preparation : fitted Preparation
        It is copied.
    """

    def prepare(past: Ints, later: Ints) -> tuple[Items, Items]:
        own = preparation.unfitted()
        return own.fit_transform(take_rows(items, past)), own.transform(take_rows(items, later))

    return prepare


def take_rows(items: Items, rows: Ints) -> Items:
    """Some of the items, in the same form; items may be columns by name."""
    if isinstance(items, Mapping):
        return {name: take_items(cells, rows) for name, cells in items.items()}
    return take_items(items, rows)
