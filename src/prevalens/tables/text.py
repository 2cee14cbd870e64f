"""Texts of any language as tf-idf weighted terms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from prevalens.tables.cells import shown
from prevalens.tables.preparation import CellError, Preparation, Unfamiliar
from prevalens.validation import InputError

#: Characters of scripts that do not put spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
_SEAMLESS = (
    r"\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
#: Each such character is a word of its own, so that pairs of neighbours are terms too; elsewhere a
#: word has two letters or more.
_WORD = rf"[{_SEAMLESS}]|[^\W{_SEAMLESS}]{{2,}}"
_SEAMLESS_ONE = re.compile(f"[{_SEAMLESS}]")
_DIGIT = re.compile(r"\d")
#: From this many texts on, terms are hashed: a vocabulary of all pairs would not fit in memory.
_HASH_FROM = 150_000
_HASHED = 2**18
#: Texts that are examined to detect the script, or unknown words.
_LOOKED_AT = 2000
_EXAMPLES = 10


def _normal(text: str) -> str:
    """Lower case, with every digit replaced by 0: 1987 and 2024 become the same word."""
    return _DIGIT.sub("0", text.lower())


class TextPreparation(Preparation):
    """Words and pairs of neighbouring words, weighted by tf-idf, rows of length 1.

    Works for any language: no stop words, no stemming; in scripts without spaces between words
    every character counts as a word, so that pairs and triples of characters are terms.

    Parameters
    ----------
    min_df : int, optional
        Least number of texts a term must occur in. Default: 1 below 200 texts, 2 below 2,000, 3
        below 20,000, else 5.
    max_terms : int
        Largest number of terms; the most frequent ones are kept.
    pairs : bool
        Whether pairs of neighbouring words are terms, too.

    Attributes
    ----------
    terms_ : list of str, or None if terms are hashed
    n_texts_with_ : array of int, shape (n_features,)
        In how many training texts each term occurs.
    idf_ : array of float32, shape (n_features,)

    Notes
    -----
    Linear in the length of the texts. From 150,000 training texts on, terms are hashed to 262,144
    columns: memory stays bounded, but terms have no names. Fails where the meaning is in word order
    beyond pairs, or in synonyms.

    Examples
    --------
    >>> prepared = TextPreparation().fit(["the printer is on fire", "the printer printed"])
    >>> prepared.transform(["the printer burns"]).nnz
    3
    >>> prepared.unfamiliar(["the printer burns"]).examples
    ('burns',)
    """

    kind = "text"

    def __init__(
        self, *, min_df: int | None = None, max_terms: int = 20_000, pairs: bool = True
    ) -> None:
        self.min_df = min_df
        self.max_terms = max_terms
        self.pairs = pairs

    terms_: list[str] | None

    def _learn(self, items: Any) -> Any:
        texts = check_texts(items)
        self.n_texts_ = len(texts)
        self.longest_ = self._longest(texts)
        if len(texts) >= _HASH_FROM:
            self.min_df_, self.terms_ = 1, None
            counts = self._counting().transform(texts)
        else:
            counts = self._learn_terms(texts)
        self.n_features_ = int(counts.shape[1])
        self.n_texts_with_ = np.bincount(counts.indices, minlength=self.n_features_)
        self.idf_ = (np.log((1 + len(texts)) / (1 + self.n_texts_with_)) + 1).astype(np.float32)
        # A word that only the least number of texts have would be unknown without them.
        self.usual_unfamiliar_ = self._unknown(texts, self.min_df_)[0]
        return self._weighted(counts)

    def _longest(self, texts: Sequence[str]) -> int:
        """Number of words of the longest term; 3 if every character counts as a word."""
        if not self.pairs:
            return 1
        sample = "".join(_some(texts))
        seamless = len(_SEAMLESS_ONE.findall(sample))
        return 3 if seamless > 0.3 * max(1, len(sample)) else 2

    def _learn_terms(self, texts: Sequence[str]) -> Any:
        self.min_df_ = self._least(len(texts))
        counter = CountVectorizer(
            **self._settings(), min_df=self.min_df_, max_features=self.max_terms
        )
        try:
            counts = counter.fit_transform(texts)
        except ValueError:
            raise InputError(
                f"No word occurs in {self.min_df_} or more of the {len(texts)} texts; the column "
                "may be empty, or not hold texts."
            ) from None
        self.terms_ = counter.get_feature_names_out().tolist()
        self._counter: Any = counter
        return counts

    def _least(self, n_texts: int) -> int:
        if self.min_df is not None:
            return self.min_df
        steps = ((200, 1), (2000, 2), (20_000, 3))
        return next((least for below, least in steps if n_texts < below), 5)

    def _settings(self) -> dict[str, Any]:
        return {
            "preprocessor": _normal,
            "token_pattern": _WORD,
            "ngram_range": (1, self.longest_),
            "dtype": np.float32,
        }

    def _counting(self) -> Any:
        """The counter of terms; after loading it is built when first needed."""
        if getattr(self, "_counter", None) is None:
            self._counter = (
                CountVectorizer(**self._settings(), vocabulary=self.terms_)
                if self.terms_ is not None
                else HashingVectorizer(
                    **self._settings(), n_features=_HASHED, alternate_sign=False, norm=None
                )
            )
        return self._counter

    def _transform(self, items: Any) -> Any:
        return self._weighted(self._counting().transform(check_texts(items)))

    def _weighted(self, counts: Any) -> Any:
        """Turn counts into (1 + log count) x idf, in place, with rows of length 1."""
        weights = (1 + np.log(counts.data)) * self.idf_[counts.indices]
        sizes = np.diff(counts.indptr)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        lengths = np.sqrt(np.bincount(rows, weights.astype(np.float64) ** 2, minlength=len(sizes)))
        counts.data = (weights / lengths[rows]).astype(np.float32)
        return counts

    def unfamiliar(self, items: Any) -> Unfamiliar:
        """The share of words, in a sample of the texts, that do not occur in the training."""
        share, unknown = self._unknown(check_texts(items), 0)
        examples = tuple(word for word, _ in unknown.most_common(_EXAMPLES))
        return Unfamiliar(share, self.usual_unfamiliar_, examples)

    def _unknown(self, texts: Sequence[str], at_most: int) -> tuple[float, Counter[str]]:
        """Share and counts of words that occur in no more than `at_most` training texts."""
        counts = Counter(_words(_some(texts)))
        rare = self._texts_with(list(counts)) <= at_most
        unknown = Counter({word: counts[word] for word in compress(counts, rare)})
        return unknown.total() / max(1, counts.total()), unknown

    def _texts_with(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """In how many training texts each word occurs, 0 if it is no term."""
        if self.terms_ is None:
            columns = [self._counting().transform([word]).indices for word in words]
            return np.array([self.n_texts_with_[terms].max(initial=0) for terms in columns])
        position = self._counting().vocabulary_ if words else {}
        places = np.array([position.get(word, -1) for word in words], dtype=np.int64)
        return np.where(places < 0, 0, self.n_texts_with_[places])

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """The terms, or their numbers if terms are hashed."""
        if self.terms_ is not None:
            return np.array(self.terms_, dtype=object)
        return np.array([f"term {number}" for number in range(self.n_features_)], dtype=object)

    def describe(self) -> str:
        """A short description for people."""
        what = "hashed" if self.terms_ is None else f"{self.n_features_:,}"
        return f"tf-idf of {what} terms of up to {self.longest_} words"

    def __getstate__(self) -> dict[str, Any]:
        """Store all terms as one text, which is read fast; the counter is not stored."""
        state = {**super().__getstate__()}
        state.pop("_counter", None)
        if state.get("terms_") is not None:
            state["terms_"] = "\n".join(state["terms_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("terms_"), str):
            state = {**state, "terms_": state["terms_"].split("\n")}
        super().__setstate__(state)


def _some(texts: Sequence[str]) -> Sequence[str]:
    return texts[:: max(1, len(texts) // _LOOKED_AT)]


def _words(texts: Sequence[str]) -> Iterator[str]:
    pattern = re.compile(_WORD)
    return (word for text in texts for word in pattern.findall(_normal(text)))


def check_texts(items: Any) -> Sequence[str]:
    """Texts as a list of str; missing ones become empty texts."""
    if isinstance(items, str):
        raise InputError("The items are a single string; give a list with one text per item.")
    texts = list(items)
    if all(type(text) is str for text in texts):
        return texts
    return [_text(row, cell) for row, cell in enumerate(texts)]


def _text(row: int, cell: Any) -> str:
    if isinstance(cell, str):
        return str(cell)
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    if isinstance(cell, (int, float, np.number)):
        return str(cell)
    raise CellError(row, f"expected a text, but here is {shown(cell)}.")
