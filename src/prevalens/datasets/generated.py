"""Generated multi-label data: numeric items or short texts, with a label mix that may shift."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import islice, product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from prevalens.collection import Collection
from prevalens.datasets.dataset import Dataset, content_sha
from prevalens.datasets.registry import lookup
from prevalens.types import Floats, LabelMatrix, Times
from prevalens.validation import InputError, check_choice, check_int

WORDS_PER_SUBJECT = 12

#: Words of texts, as strings divided by spaces; see the comments there.
_WORDS: Mapping[str, Any] = tomllib.loads(
    resources.files("prevalens.datasets").joinpath("generated.toml").read_text("utf-8")
)


def subjects(n: int) -> list[tuple[str, list[str]]]:
    """Name and words of `n` subjects; after the first twelve they are invented."""
    known = [(name, words.split()) for name, words in _WORDS["subjects"].items()]
    starts = _WORDS["starts"].split()
    invented = map("".join, product(starts, starts, starts, _WORDS["ends"].split()))
    while len(known) < n:
        words = list(islice(invented, WORDS_PER_SUBJECT))
        # When all combinations of syllables are used, further words are numbered.
        words += [f"word{len(known)}x{i}" for i in range(WORDS_PER_SUBJECT - len(words))]
        known.append((f"topic_{len(known) + 1}", words))
    return known[:n]


def everyday_words() -> list[str]:
    """Words that do not depend on the subject of a text, from frequent to rare."""
    return list(dict.fromkeys(_WORDS["everyday"].split()))


_RANK = 2
#: Share of a label's latent variable that it has in common with other labels.
_COMMON = 0.75
#: Prevalence of the most frequent label, and how fast the others fall off.
_TOP, _DECAY = 0.45, 0.9
#: Labelsets drawn per test item, to choose from with weights.
_CANDIDATES = 20
#: How far a label moves an item; the noise has length 1 in every direction.
_LENGTH = 0.8
_WORDS_PER_TEXT = 18
#: Weights of words of any subject and of a label's own subject; everyday words have weight 1.
_STRAY, _OWN = 0.03, 0.15
_NAMES = {"numeric": "synthetic", "text": "synthetic_text"}


def synthetic(
    n_train: int = 2000,
    n_test: int = 2000,
    *,
    n_labels: int = 12,
    n_features: int = 40,
    kind: Literal["numeric", "text"] = "numeric",
    languages: int = 1,
    shift: float = 0.0,
    periods: int = 1,
    signal: float = 1.0,
    random_state: int = 0,
) -> Dataset:
    """Generate a multi-label dataset whose test part may have another label mix.

    Parameters
    ----------
    n_train, n_test : int
        Number of items.
    n_labels : int
        Prevalences fall as a power law from about 0.45.
    n_features : int
        Number of numeric features; a quarter of them carry no information. Ignored for texts.
    kind : {"numeric", "text"}
        Whether items are vectors of numbers or short texts.
    languages : int
        If more than 1, numeric items are in that many languages, drawn at random: the first feature
        is the number of the language, and each language has `n_features` of its own, which are 0
        for the items of the others. Labels mean the same in all of them.
    shift : float
        How far the label mix of the test part is from that of training: the odds of every
        label move by a factor of about exp(shift), up for every second label and down for the
        others. 0 is no shift, 1 is strong, 2 is extreme.
    periods : int
        If more than 1, the test part consists of that many consecutive months, whose shift grows
        evenly from 0 in the first to `shift` in the last; `test.times` has the months.
    signal : float
        How strongly the items depend on their labels; 0 is not at all, 1 makes labels learnable but
        far from certain.
    random_state : int
        The same value gives the same dataset; the training part does not depend on `shift`.

    Returns
    -------
    Dataset

    Notes
    -----
    O(n_labels x (n_train + 20 n_test)) plus the size of X. With very few items a rare label may
    have no positive one.

    Examples
    --------
    >>> still, moved = synthetic(), synthetic(shift=1.5)
    >>> float(abs(still.test.prevalence - still.train.prevalence).mean().round(2))
    0.01
    >>> float(abs(moved.test.prevalence - moved.train.prevalence).mean().round(2))
    0.1
    """
    sizes = {"n_train": n_train, "n_test": n_test, "n_labels": n_labels, "n_features": n_features}
    for name, size in (sizes | {"periods": periods}).items():
        check_int(size, name, minimum=1)
    check_choice(kind, "kind", sorted(_NAMES))
    _check_finite(shift, "shift")
    _check_finite(signal, "signal", minimum=0)
    if check_int(languages, "languages", minimum=1) > 1 and kind != "numeric":
        raise InputError(f"Only numeric items come in several languages; got kind={kind!r}.")
    if periods > n_test:
        raise InputError(f"{n_test} test items cannot fill {periods} periods.")
    # Separate streams: what one part draws does not change the others.
    streams = np.random.SeedSequence(check_int(random_state, "random_state", minimum=0)).spawn(5)
    of_labels, of_items, of_train, of_shift, of_test = map(np.random.default_rng, streams)
    mix = _LabelMix.draw(of_labels, n_labels)
    items: _Numbers | _Texts | _Languages = _Texts(n_labels, signal)
    if kind == "numeric":
        shape = (n_labels, n_features)
        members = [_Numbers.draw(of_items, shape, signal) for _ in range(languages)]
        items = _Languages(members) if languages > 1 else members[0]
    train_Y = mix.labelsets(of_train, n_train)
    test_Y, test_times = _test_labels(mix, of_shift, n_test, shift, periods)
    train = items.collection(of_train, train_Y)
    test = items.collection(of_test, test_Y, test_times)
    return Dataset(
        name=_NAMES[kind],
        train=train,
        test=test,
        description=lookup(_NAMES[kind]).about,
        source="prevalens.datasets.synthetic",
        sha=content_sha(train, test),
    )


def _check_finite(value: float, name: str, minimum: float = -np.inf) -> None:
    if not (np.isfinite(value) and value >= minimum):
        least = f", at least {minimum}" if np.isfinite(minimum) else ""
        raise InputError(f"{name} must be a finite number{least}; got {value!r}.")


@dataclass(frozen=True)
class _LabelMix:
    """Joint distribution of the labels: loadings of the common factors, and cut points."""

    loadings: Floats
    cuts: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, n_labels: int) -> _LabelMix:
        directions = rng.normal(size=(n_labels, _RANK))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        prevalences = _TOP * np.arange(1, n_labels + 1) ** -_DECAY
        return cls(np.sqrt(_COMMON) * directions, ndtri(1 - prevalences))

    def labelsets(self, rng: np.random.Generator, n: int) -> LabelMatrix:
        common = rng.normal(size=(n, _RANK)) @ self.loadings.T
        own = np.sqrt(1 - _COMMON) * rng.normal(size=common.shape)
        return (common + own > self.cuts).astype(np.int8)

    def shifted(self, rng: np.random.Generator, n: int, shift: float) -> LabelMatrix:
        """Labelsets with the odds of every second label raised, and of the others lowered."""
        if shift == 0:
            return self.labelsets(rng, n)
        candidates = self.labelsets(rng, _CANDIDATES * n)
        # The odds of the most frequent label fall: raising them would outweigh all other labels.
        direction = np.where(np.arange(len(self.cuts)) % 2, 1.0, -1.0)
        tilt = shift * (candidates @ direction)
        weights = np.exp(tilt - tilt.max())
        return candidates[rng.choice(len(candidates), size=n, p=weights / weights.sum())]


def _test_labels(
    mix: _LabelMix, rng: np.random.Generator, n: int, shift: float, periods: int
) -> tuple[LabelMatrix, Times | None]:
    if periods == 1:
        return mix.shifted(rng, n, shift), None
    sizes = [len(part) for part in np.array_split(np.arange(n), periods)]
    shifts = np.linspace(0.0, shift, periods)
    Y = np.concatenate([mix.shifted(rng, m, s) for m, s in zip(sizes, shifts, strict=True)])
    months = np.datetime64("2025-01") + np.arange(periods)
    return Y, np.repeat(months, sizes).astype("datetime64[s]")


@dataclass(frozen=True)
class _Numbers:
    """A direction per label, weaker ones per pair of neighbours, and correlated noise."""

    directions: Floats
    pairs: Floats
    noise: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, shape: tuple[int, int], signal: float) -> _Numbers:
        n_features = shape[1]
        telling = np.arange(n_features) < max(1, round(0.75 * n_features))
        directions = rng.normal(size=shape) * telling
        directions *= _LENGTH * signal / np.linalg.norm(directions, axis=1, keepdims=True)
        pairs = rng.normal(size=shape) * telling * 0.15 * signal
        noise = np.eye(n_features) + 0.15 * rng.normal(size=(n_features, n_features))
        return cls(directions, pairs, noise)

    def collection(
        self, rng: np.random.Generator, Y: LabelMatrix, times: Times | None = None
    ) -> Collection:
        neighbours = Y * np.roll(Y, 1, axis=1)
        noise = rng.normal(size=(len(Y), len(self.noise))) @ self.noise
        X = Y @ self.directions + neighbours @ self.pairs + noise
        labels = [name for name, _ in subjects(Y.shape[1])]
        features = [f"x{j}" for j in range(X.shape[1])]
        return Collection(X, Y, labels, features=features, times=times)


@dataclass(frozen=True)
class _Languages:
    """Items of one of several languages, each with features of its own."""

    members: list[_Numbers]

    def collection(
        self, rng: np.random.Generator, Y: LabelMatrix, times: Times | None = None
    ) -> Collection:
        language = rng.integers(len(self.members), size=len(Y))
        in_all = [member.collection(rng, Y) for member in self.members]
        own = [
            np.where(language[:, np.newaxis] == code, part.X, 0) for code, part in enumerate(in_all)
        ]
        features = [
            f"{name}_{code}" for code, part in enumerate(in_all) for name in part.features or ()
        ]
        return Collection(
            np.column_stack([language, *own]),
            Y,
            in_all[0].labels,
            features=["language", *features],
            times=times,
        )


@dataclass(frozen=True)
class _Texts:
    """Words of the labels' subjects, between everyday words and stray words of any subject."""

    n_labels: int
    signal: float

    def collection(
        self, rng: np.random.Generator, Y: LabelMatrix, times: Times | None = None
    ) -> Collection:
        known = subjects(self.n_labels)
        words = [np.array(own, dtype=object) for _, own in known]
        words.append(np.array(everyday_words(), dtype=object))
        lengths = 6 + rng.poisson(_WORDS_PER_TEXT, size=len(Y))
        sources = self._sources(rng, Y, lengths)
        chosen = np.empty(len(sources), dtype=object)
        for source, own in enumerate(words):
            places = np.flatnonzero(sources == source)
            chosen[places] = own[_zipf(rng, len(own), len(places))]
        texts = [" ".join(text) for text in np.split(chosen, np.cumsum(lengths)[:-1])]
        return Collection(texts, Y, [name for name, _ in known], times=times)

    def _sources(
        self, rng: np.random.Generator, Y: LabelMatrix, lengths: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """For each word of all texts, the subject it comes from; the last one is everyday."""
        weights = np.column_stack([_STRAY + _OWN * self.signal * Y, np.ones(len(Y))])
        chances = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
        draws = rng.random(int(lengths.sum()))
        return (np.repeat(chances[:, :-1], lengths, axis=0) < draws[:, np.newaxis]).sum(axis=1)


def _zipf(rng: np.random.Generator, n_words: int, size: int) -> npt.NDArray[np.int64]:
    """Positions of words, the first ones more frequent."""
    shares = 1 / np.arange(2, n_words + 2)
    return rng.choice(n_words, size=size, p=shares / shares.sum())
