"""Counts of weak labellers, corrected with a few hundred human labels, against the alternatives.

    pip install ppi-python
    PREVALENS_DATA=... python benchmarks/measure_own_scores.py > benchmarks/results/own_scores.md
    PREVALENS_DATA=... python benchmarks/measure_own_scores.py 300  # with 300 human labels only

The tables of docs/guides/labellers.md: three labellers each for GoEmotions and UN roll calls. They
look for the names of the labels, follow rules (the words of weak_labellers.toml), or are a small
model that was trained elsewhere, with balanced classes, so that it overcounts rare labels. Human
labels are drawn from the training period, the batches come after it. "With texts" learns from the
texts of the items with human labels, too. About ten minutes on one core.
"""

from __future__ import annotations

import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import ppi_py
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from prevalens import Quantifier, datasets
from prevalens.classifiers import Given
from prevalens.protocols import MLAPP, LabelsetWeights, LabelTilt, Natural
from prevalens.samples import Samples
from prevalens.tables import TextPreparation

WORDS = tomllib.loads(Path(__file__).with_name("weak_labellers.toml").read_text(encoding="utf-8"))
LEVEL = 0.9
HUMAN = (100, 300, 1000)
DRAWS = 4
SIZE = 200
#: Labels with fewer positive items among the human labels are left out, for all methods.
LEAST = 2
FAMILIES = ("ml-app", "label-tilt", "labelset-weights", "natural", "real")
TITLE = """\
# Counts of labellers, corrected

Made by `python benchmarks/measure_own_scores.py`. Mean absolute error in points; in parentheses \
the share of 90 % intervals that hold."""

Floats = npt.NDArray[np.float64]
Ends = tuple[Floats, Floats]
#: From batches to estimates, and the ends of their intervals if there are any.
Estimate = Callable[[Samples], tuple[Floats, Ends | None]]


class Items(NamedTuple):
    """Scores and texts of some items."""

    scores: Floats
    texts: npt.NDArray[np.object_]


@dataclass(frozen=True)
class Case:
    """A dataset with one labeller's answers: the training period, and what comes after it."""

    dataset: str
    labeller: str
    scores: Floats
    texts: npt.NDArray[np.object_]
    Y: npt.NDArray[np.int8]
    later_scores: Floats
    later_texts: npt.NDArray[np.object_]
    later_labels: npt.NDArray[np.int8]
    #: Family of shift to batches of the later items.
    batches: dict[str, Samples]


def by_words(texts: Any, words: list[list[str]]) -> Floats:
    lowered = [text.lower() for text in texts]
    votes = [[any(word in text for word in own) for own in words] for text in lowered]
    return np.array(votes, dtype=np.float64)


def small_model(texts: Any, Y: Any) -> Any:
    balanced = LogisticRegression(class_weight="balanced", max_iter=1000)
    model = make_pipeline(TfidfVectorizer(min_df=2), OneVsRestClassifier(balanced))
    return model.fit(texts, Y)


def drawn(Y: npt.NDArray[np.int8]) -> dict[str, Samples]:
    return {
        "ml-app": MLAPP(SIZE, more_than=39, max_samples=40).draw(Y, 1),
        "label-tilt": LabelTilt(SIZE, 40).draw(Y, 2),
        "labelset-weights": LabelsetWeights(SIZE, 40).draw(Y, 3),
        "natural": Natural(SIZE, 40).draw(Y, 4),
    }


def windows(n_items: int) -> Samples:
    starts = np.linspace(0, n_items - SIZE, 20).astype(int)
    return Samples.from_indices([np.arange(s, s + SIZE) for s in starts], n_items=n_items)


def cases() -> Iterator[Case]:
    for cut, before in (("1985-01-01", "1970-01-01"), ("1995-01-01", "1975-01-01")):
        data = datasets.load("un", text=True, cut=cut)
        elsewhere = np.asarray(data.train.times < np.datetime64(before))
        batches = {**drawn(data.test.Y), "real": windows(len(data.test.Y))}
        yield from labellers(f"un@{cut[:4]}", "un", data, elsewhere, batches)
    data = datasets.load("goemotions", text=True)
    elsewhere = np.arange(len(data.train.Y)) < 3000
    yield from labellers("goemotions", "goemotions", data, elsewhere, drawn(data.test.Y))


def labellers(
    name: str, dataset: str, data: Any, elsewhere: Any, batches: dict[str, Samples]
) -> Iterator[Case]:
    train, test = (np.asarray(part.X, dtype=object) for part in (data.train, data.test))
    own, Y = train[~elsewhere], data.train.Y[~elsewhere]
    model = small_model(train[elsewhere], data.train.Y[elsewhere])
    names = [label.lower().split(" and ") for label in data.train.labels]
    rules = [WORDS[dataset][label] for label in data.train.labels]
    answers: dict[str, Callable[[Any], Floats]] = {
        "names": lambda texts: by_words(texts, names),
        "rules": lambda texts: by_words(texts, rules),
        "small model": model.predict_proba,
    }
    for labeller, answer in answers.items():
        later = answer(test), test, data.test.Y
        yield Case(name, labeller, answer(own), own, Y, *later, batches)


def raw(labelled: Items, Y: Any, later: Items) -> Estimate:
    votes = (later.scores >= 0.5).astype(np.float64)
    return lambda samples: (samples.mean(votes), None)


def human(labelled: Items, Y: Any, later: Items) -> Estimate:
    share = Y.mean(axis=0)
    half = 1.645 * np.sqrt(share * (1 - share) / len(Y))

    def estimate(samples: Samples) -> tuple[Floats, Ends | None]:
        point, low, high = (
            np.tile(row, (len(samples), 1)) for row in (share, share - half, share + half)
        )
        return point, (low, high)

    return estimate


def prediction_powered(labelled: Items, Y: Any, later: Items) -> Estimate:
    def estimate(samples: Samples) -> tuple[Floats, Ends | None]:
        point, low, high = np.empty((3, len(samples), Y.shape[1]))
        for i, rows in enumerate(samples):
            given = (Y.astype(np.float64), labelled.scores, later.scores[rows])
            point[i] = np.ravel(ppi_py.ppi_mean_pointestimate(*given))
            low[i], high[i] = ppi_py.ppi_mean_ci(*given, alpha=1 - LEVEL)
        return np.clip(point, 0, 1), (low, high)

    return estimate


def corrected(labelled: Items, Y: Any, later: Items) -> Estimate:
    return fitted(Quantifier(Given()).fit(labelled.scores, Y), later.scores)


def with_texts(labelled: Items, Y: Any, later: Items) -> Estimate:
    # The terms too come from the texts with human labels alone.
    terms = TextPreparation().fit(labelled.texts)
    X, later_X = (
        sp.hstack([items.scores, terms.transform(items.texts)], format="csr")
        for items in (labelled, later)
    )
    return fitted(Quantifier(Given(n_labellers=1)).fit(X, Y), later_X)


def fitted(quantifier: Quantifier, later: Any) -> Estimate:
    scores = quantifier.score(later)

    def estimate(samples: Samples) -> tuple[Floats, Ends | None]:
        found = quantifier.aggregate(scores, samples, LEVEL)
        return found.point, (found.lower, found.upper)

    return estimate


METHODS: dict[str, Callable[[Items, Any, Items], Estimate]] = {
    "counts of the labeller": raw,
    "human labels alone": human,
    "ppi-python": prediction_powered,
    "prevalens": corrected,
    "prevalens with texts": with_texts,
}


def measured(case: Case, n_human: int) -> dict[str, dict[str, Floats]]:
    """Error and share of intervals that hold, by method and family, over draws of human labels."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in METHODS}
    rng = np.random.default_rng(n_human)
    for _ in range(DRAWS):
        rows = rng.choice(len(case.Y), n_human, replace=False)
        kept = np.flatnonzero(case.Y[rows].sum(axis=0) >= LEAST)
        labelled = Items(case.scores[rows][:, kept], case.texts[rows])
        later = Items(case.later_scores[:, kept], case.later_texts)
        for name, method in METHODS.items():
            estimate = method(labelled, case.Y[rows][:, kept], later)
            for family, samples in case.batches.items():
                truth = samples.mean(case.later_labels[:, kept].astype(np.float64))
                point, ends = estimate(samples)
                holds = np.nan
                if ends is not None:
                    # Shares as floats: an end that equals the truth may differ in the last digit.
                    holds = ((ends[0] <= truth + 1e-12) & (truth <= ends[1] + 1e-12)).mean()
                cell = (100 * np.abs(point - truth).mean(), float(holds))
                found[name].setdefault(family, []).append(cell)
    return {
        name: {family: np.mean(cells, axis=0) for family, cells in families.items()}
        for name, families in found.items()
    }


def row(case: Case, name: str, families: dict[str, Floats]) -> str:
    cells = [families.get(family) for family in FAMILIES]
    texts = ["" if cell is None else shown(cell) for cell in cells]
    mean = np.mean(list(families.values()), axis=0)
    return f"| {case.dataset} | {case.labeller} | {name} | {' | '.join(texts)} | {shown(mean)} |"


def shown(cell: Floats) -> str:
    error, holds = cell
    return f"{error:.1f}" if np.isnan(holds) else f"{error:.1f} ({holds:.2f})"


def main(human_labels: Sequence[int]) -> None:
    print(TITLE)
    everything = list(cases())
    header = f"| dataset | labeller | | {' | '.join(FAMILIES)} | mean |"
    means: dict[int, dict[str, list[Floats]]] = {}
    for n_human in human_labels:
        print(f"\n## {n_human} human labels\n\n{header}\n|{'---|' * (len(FAMILIES) + 4)}")
        for case in everything:
            if n_human > len(case.Y):
                continue
            for name, families in measured(case, n_human).items():
                print(row(case, name, families), flush=True)
                own = means.setdefault(n_human, {}).setdefault(name, [])
                own.append(np.mean(list(families.values()), axis=0))
    print("\n## Mean over datasets, labellers and families\n")
    print(f"| human labels | {' | '.join(METHODS)} |\n|{'---|' * (len(METHODS) + 1)}")
    for n_human, by_method in means.items():
        print(
            f"| {n_human} | {' | '.join(shown(np.mean(m, axis=0)) for m in by_method.values())} |"
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main([int(number) for number in sys.argv[1:]] or HUMAN)
