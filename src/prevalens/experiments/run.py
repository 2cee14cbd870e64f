"""From a cell to its result: load, train, draw, estimate, compare."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.datasets import Dataset
from prevalens.evaluation import Evaluation, evaluate_samples
from prevalens.experiments.build import build
from prevalens.experiments.cache import ScoreCache
from prevalens.experiments.cells import Cell
from prevalens.experiments.data import open_dataset
from prevalens.experiments.usage import Meter, Usage, metered, versions
from prevalens.expression import expression_of, to_text
from prevalens.metrics import SHIFT_NAMES, shift_bins
from prevalens.records import Record, Result
from prevalens.validation import check_rng

__all__ = ["CellResult", "Failure", "run_cell", "run_cells"]


#: Where fitted methods keep the methods they are made of.
_INSIDE = ("quantifier_", "best_quantifier_", "aggregator_", "base_")


@dataclass(frozen=True, eq=False)
class CellResult:
    """What came out of a cell.

    Attributes
    ----------
    cell : Cell
    key : str
        Checksum of the cell and its data.
    data_sha : str
        Checksum of the data.
    versions : dict
        Of the libraries that computed it.
    chosen : dict
        Parameters that searches chose; empty without a grid.
    columns : dict of arrays, shape (n_samples,)
        One entry per sample: an error per metric, the ``shift``, the ``size``, the ``target``
        label (-1 if none) with the ``prevalence`` it was steered to, and its ``true`` and
        ``estimated`` prevalence.
    labels : dict of lists, length n_labels
        ``name``, ``training`` prevalence, mean absolute ``error`` and ``bias`` (estimated minus
        true) over all samples.
    usage : Usage or None
        Time and memory; None if they are not known.
    """

    cell: Cell
    key: str
    data_sha: str
    versions: Mapping[str, str]
    chosen: Mapping[str, Any]
    columns: Mapping[str, npt.NDArray[Any]]
    labels: Mapping[str, Sequence[Any]]
    usage: Usage | None = None

    def __len__(self) -> int:
        return len(self.columns["shift"])

    def result(self, cell: Cell | None = None) -> Result:
        """For tables and pictures; another cell of the same key may give the names."""
        named = self.cell if cell is None else cell
        return Result(
            dataset=named.dataset,
            protocol=named.protocol.name,
            method=named.method.label,
            expression=named.method.expression,
            variant=named.method.variant,
            seed=named.seed,
            shift=self.columns["shift"],
            errors={metric: self.columns[metric] for metric in self.cell.metrics},
            by_label=dict(zip(self.labels["name"], self.labels["error"], strict=True)),
            version=self.versions["prevalens"],
            data_sha=self.data_sha,
            usage={} if self.usage is None else asdict(self.usage),
        )

    def records(self, cell: Cell | None = None) -> list[Record]:
        """Mean errors by shift regime and over all; names as in `result`."""
        named = self.cell if cell is None else cell
        regime = shift_bins(self.columns["shift"])
        chosen = {name: regime == number for number, name in enumerate(SHIFT_NAMES)}
        chosen["all"] = np.ones(len(self), dtype=bool)
        return [
            Record(
                dataset=named.dataset,
                method=named.method.name,
                protocol=named.protocol.name,
                seed=named.seed,
                shift=name,
                metric=metric,
                value=_mean(self.columns[metric][rows]),
                n_samples=int(rows.sum()),
                version=self.versions["prevalens"],
                data_sha=self.data_sha,
            )
            for metric in self.cell.metrics
            for name, rows in chosen.items()
        ]


@dataclass(frozen=True)
class Failure:
    """A cell that could not be computed, the sentence that says why, and where it happened."""

    cell: Cell
    sentence: str
    trace: str


def run_cell(cell: Cell, cache: ScoreCache | None = None) -> CellResult:
    """Compute a cell; a function of its arguments and of the data alone.

    Parameters
    ----------
    cell : Cell
    cache : ScoreCache, optional
        Scores to be used again; they change the time and nothing else.
    """
    return _evaluate(cell, _fit(cell, cache), cache)


def run_cells(
    cells: Sequence[Cell], cache: ScoreCache | None = None
) -> Iterator[CellResult | Failure]:
    """Compute cells that share a fitted quantifier; one that fails does not stop the others."""
    try:
        fitted = _fit(cells[0], cache)
    except Exception as error:
        yield from [_failure(cell, error) for cell in cells]
        return
    for number, cell in enumerate(cells):
        try:
            found: CellResult | Failure = _evaluate(cell, fitted, cache, shared=number > 0)
        except Exception as error:
            found = _failure(cell, error)
        yield found


def _failure(cell: Cell, error: Exception) -> Failure:
    sentence = str(error).strip() or type(error).__name__
    return Failure(cell, sentence, "".join(traceback.format_exception(error)))


@dataclass(frozen=True)
class _Fitted:
    dataset: Dataset
    quantifier: Any
    meter: Meter


def _fit(cell: Cell, cache: ScoreCache | None) -> _Fitted:
    dataset = open_dataset(cell.source)
    train = dataset.train
    with metered(cache) as meter:
        quantifier = build(cell.method, cell.seed, cache)
        quantifier.fit(train.X, train.Y, labels=train.labels)
    return _Fitted(dataset, quantifier, meter)


def _evaluate(
    cell: Cell, fitted: _Fitted, cache: ScoreCache | None, *, shared: bool = False
) -> CellResult:
    dataset = fitted.dataset
    with metered(cache) as meter:
        protocol = cell.protocol.protocol(dataset).with_items(dataset.test.X)
        # The same seed and protocol give the same samples to every method.
        samples = protocol.draw(dataset.test.Y, check_rng(cell.seed))
        compared = evaluate_samples(
            {cell.method.name: fitted.quantifier}, dataset.test, samples, seed=cell.seed
        )
        (found,) = compared.values()
    return CellResult(
        cell=cell,
        key=cell.key(dataset.sha),
        data_sha=dataset.sha,
        versions=versions(),
        chosen=_plain(_chosen(fitted.quantifier)),
        columns=_columns(found, cell.metrics),
        labels=_labels(found),
        usage=_usage(fitted.meter, meter, shared=shared),
    )


def _columns(found: Evaluation, metrics: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    target = found.samples.target
    rows, columns = np.arange(len(target)), np.maximum(target, 0)
    steered = {"true": found.true[rows, columns], "estimated": found.estimated[rows, columns]}
    return {
        **{name: found.errors(name).astype(np.float32) for name in metrics},
        # Not rounded: a sample on the border of a regime would change sides.
        "shift": found.shift,
        "size": found.samples.sizes.astype(np.int32),
        "target": target.astype(np.int32),
        "prevalence": found.samples.prevalence.astype(np.float32),
        **{
            name: np.where(target < 0, np.nan, values).astype(np.float32)
            for name, values in steered.items()
        },
    }


def _labels(found: Evaluation) -> dict[str, list[Any]]:
    gap = found.estimated - found.true
    return {
        "name": list(found.labels),
        "training": _rounded(found.training),
        "error": _rounded(np.abs(gap).mean(axis=0)),
        "bias": _rounded(gap.mean(axis=0)),
    }


def _rounded(values: npt.NDArray[np.float64]) -> list[float]:
    return [round(value, 7) for value in values.tolist()]


def _usage(fit: Meter, evaluation: Meter, *, shared: bool) -> Usage:
    counted = [evaluation] if shared else [fit, evaluation]
    return Usage(
        fit_seconds=round(fit.seconds, 4),
        quantify_seconds=round(evaluation.seconds, 4),
        seconds=round(sum(one.seconds for one in counted), 4),
        peak_megabytes=round(max(fit.peak_megabytes, evaluation.peak_megabytes), 1),
        scores_reused=sum(one.reused for one in counted),
        scores_computed=sum(one.computed for one in counted),
        warnings=tuple(dict.fromkeys(fit.warnings + evaluation.warnings)),
    )


def _chosen(part: Any, path: str = "") -> dict[str, Any]:
    """What every search in a fitted method has chosen, by the way that leads to it."""
    found = {f"{path}{name}": value for name, value in getattr(part, "best_params_", {}).items()}
    for name in _INSIDE:
        if hasattr(part, name):
            found |= _chosen(getattr(part, name), f"{path}{name.removesuffix('_')}.")
    return found


def _plain(value: Any) -> Any:
    """Chosen parameters as values that can be written down; parts by their names."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return to_text(expression_of(value)) if hasattr(value, "get_params") else str(value)


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean(dtype=np.float64)) if values.size else float("nan")
