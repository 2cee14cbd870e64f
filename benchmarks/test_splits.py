"""Our stratification against chance, iterative-stratification and scikit-multilearn-ng.

    PREVALENS_DATA=... pytest benchmarks/test_splits.py --benchmark-enable -p no:xdist

writes benchmarks/results/splits.md. Five folds of the training items of each dataset; seconds are
CPU seconds of one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens.datasets import DataNotFoundError, load
from prevalens.splits import stratified_folds

RESULTS = Path(__file__).parent / "results" / "splits.md"
N_FOLDS = 5
DATASETS = ("emotions", "yeast", "enron", "bibtex", "corel5k", "mediamill_discretized", "delicious")

HEAD = f"""# Five folds of multi-label training data

Per dataset and method, over {N_FOLDS} folds:

- label error: the label distribution measure of Sechidis et al. (2011), the mean absolute
  difference between the odds of a label in a fold and in all items;
- prevalence error: the same of prevalences; pair error: of prevalences of label pairs that occur;
- gaps: labels with at least {N_FOLDS} positives that a fold has none of, summed over folds;
- seconds: CPU time of one run.

scikit-multilearn-ng 0.0.8 shuffles the labels when it is given a seed but answers with positions
in the shuffled order, so that its seeded folds are no better than chance; without a seed
they are not repeatable. It is left out for delicious to keep this benchmark short.
"""


def by_chance(Y: np.ndarray) -> np.ndarray:
    return np.random.default_rng(0).permutation(len(Y)) % N_FOLDS


def ours(order: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda Y: stratified_folds(Y, N_FOLDS, order=order, seed=0)


def iterstrat(Y: np.ndarray) -> np.ndarray:
    stratifiers = pytest.importorskip("iterstrat.ml_stratifiers")
    splitter = stratifiers.MultilabelStratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    return numbered(len(Y), splitter.split(Y, Y))


def skmultilearn(order: int, seed: int | None) -> Callable[[np.ndarray], np.ndarray]:
    def folds(Y: np.ndarray) -> np.ndarray:
        selection = pytest.importorskip("skmultilearn.model_selection")
        splitter = selection.IterativeStratification(N_FOLDS, order=order, random_state=seed)
        return numbered(len(Y), splitter.split(Y, Y))

    return folds


def numbered(n_items: int, splits: Iterable[tuple[Any, Any]]) -> np.ndarray:
    folds = np.full(n_items, -1)
    for fold, (_, test) in enumerate(splits):
        folds[test] = fold
    assert folds.min() >= 0
    return folds


METHODS = {
    "chance": by_chance,
    "iterative-stratification": iterstrat,
    "scikit-multilearn-ng, order 1": skmultilearn(1, None),
    "scikit-multilearn-ng, order 1, seeded": skmultilearn(1, 0),
    "scikit-multilearn-ng, order 2": skmultilearn(2, None),
    "prevalens, order 1": ours(1),
    "prevalens, order 2": ours(2),
}


def part_means(Y: np.ndarray, folds: np.ndarray) -> list[np.ndarray]:
    return [Y[folds == fold].mean(axis=0, dtype=np.float64) for fold in range(N_FOLDS)]


def label_error(Y: np.ndarray, folds: np.ndarray) -> float:
    """LD of Sechidis et al., over labels that some items have and some do not."""
    Y = Y[:, (Y.min(axis=0) == 0) & (Y.max(axis=0) == 1)]
    whole = odds(Y.mean(axis=0, dtype=np.float64))
    return float(np.mean([np.abs(odds(part) - whole) for part in part_means(Y, folds)]))


def odds(prevalence: np.ndarray) -> np.ndarray:
    return prevalence / np.maximum(1 - prevalence, 1e-9)


def prevalence_error(Y: np.ndarray, folds: np.ndarray) -> float:
    whole = Y.mean(axis=0, dtype=np.float64)
    return float(np.mean([np.abs(part - whole) for part in part_means(Y, folds)]))


def pair_error(Y: np.ndarray, folds: np.ndarray) -> float:
    def together(rows: np.ndarray) -> np.ndarray:
        part = Y[rows].astype(np.float32)
        return (part.T @ part / len(part))[np.triu_indices(Y.shape[1], k=1)]

    whole = together(np.arange(len(Y)))
    parts = [together(np.flatnonzero(folds == fold)) for fold in range(N_FOLDS)]
    return float(np.mean([np.abs(part - whole)[whole > 0] for part in parts]))


def gaps(Y: np.ndarray, folds: np.ndarray) -> int:
    enough = Y[:, Y.sum(axis=0) >= N_FOLDS]
    return sum(int((~enough[folds == fold].any(axis=0)).sum()) for fold in range(N_FOLDS))


@pytest.fixture(scope="module")
def rows() -> Iterator[list[str]]:
    lines: list[str] = []
    yield lines
    if lines:
        columns = "| dataset | method | label error | prevalence error | pair error "
        columns += "| gaps | sizes | seconds |\n|---|---|---|---|---|---|---|---|\n"
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(f"{HEAD}\n{columns}" + "\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.filterwarnings("ignore")
def test_five_folds(benchmark: Any, rows: list[str], name: str, method: str) -> None:
    if name == "delicious" and method.startswith("scikit"):
        pytest.skip("takes too long")
    try:
        Y = load(name).train.Y
    except DataNotFoundError as error:
        pytest.skip(str(error))
    start = time.process_time()
    folds = benchmark.pedantic(METHODS[method], (Y,), rounds=1)
    seconds = time.process_time() - start
    sizes = np.bincount(folds, minlength=N_FOLDS)
    rows.append(
        f"| {name} | {method} | {label_error(Y, folds):.6f} | {prevalence_error(Y, folds):.6f} "
        f"| {pair_error(Y, folds):.6f} | {gaps(Y, folds)} | {sizes.min()} to {sizes.max()} "
        f"| {seconds:.2f} |"
    )
    if method.startswith("prevalens"):
        assert gaps(Y, folds) == 0
        assert np.ptp(sizes) <= 1
        assert seconds < 10
