"""Computing a cell: the method is built, fitted and evaluated, and its costs are measured."""

from __future__ import annotations

import contextlib
import platform
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from prevalens._version import __version__
from prevalens.aggregators.external import without_intervals
from prevalens.crossfit import CrossFit
from prevalens.datasets import Dataset
from prevalens.evaluation import Evaluation, evaluate_samples
from prevalens.experiments.cache import CachedClassifier, ScoreCache
from prevalens.experiments.cells import Cell, open_dataset
from prevalens.experiments.specs import (
    MethodSpec,
    Parts,
    PlanTable,
    ProtocolSpec,
    parse,
    read_value,
)
from prevalens.expression import expression_of, to_text
from prevalens.metrics import HORIZON_NAMES, SHIFT_NAMES, horizon_bins, shift_bins
from prevalens.quantifier import Quantifier, set_seeds
from prevalens.records import Record, Result
from prevalens.response import HasMembers
from prevalens.samples import Samples
from prevalens.selection.grid_search import GridSearch
from prevalens.types import Floats, Times
from prevalens.uncertainty.drift import TimeAxis, as_numbers, mean_times
from prevalens.validation import InputError, check_rng

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_STATUS = Path("/proc/self/status")
#: Number of different warnings that are kept; a long fit may give very many.
_MOST_WARNINGS = 20
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Usage:
    """Time and memory that a cell took; stored apart from the results, as they vary.

    Attributes
    ----------
    fit_seconds, quantify_seconds : float
        Cells that share a fitted quantifier all name the time of its training.
    seconds : float
        Time from the start to the end of this cell, for the estimate of the remaining time.
    peak_megabytes : float
        Peak memory of the process meanwhile; 0 if the system does not report it.
    scores_reused, scores_computed : int
        Requests for scores that the cache answered, and those that were computed.
    warnings : tuple of str
    """

    fit_seconds: float
    quantify_seconds: float
    seconds: float
    peak_megabytes: float
    scores_reused: int = 0
    scores_computed: int = 0
    warnings: tuple[str, ...] = ()


@dataclass
class Meter:
    """Time and memory that a block took, set when it ends; fields as in `Usage`."""

    seconds: float = 0.0
    peak_megabytes: float = 0.0
    reused: int = 0
    computed: int = 0
    warnings: tuple[str, ...] = ()


@contextlib.contextmanager
def metered(cache: ScoreCache | None = None) -> Iterator[Meter]:
    """Measure time and memory of a block and collect its warnings.

    Examples
    --------
    >>> with metered() as meter:
    ...     warnings.warn("odd", stacklevel=1)
    >>> meter.warnings
    ('UserWarning: odd',)
    """
    meter, start = Meter(), time.perf_counter()
    hits, misses = (cache.hits, cache.misses) if cache is not None else (0, 0)
    # Reset the peak where the system can; elsewhere it is the peak of the whole process.
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5")
    with _caught_warnings() as caught:
        yield meter
    texts = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    meter.seconds = time.perf_counter() - start
    meter.peak_megabytes = _peak_memory()
    if cache is not None:
        meter.reused, meter.computed = cache.hits - hits, cache.misses - misses
    meter.warnings = tuple(dict.fromkeys(texts))[:_MOST_WARNINGS]


@contextlib.contextmanager
def _caught_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings, except in a thread: there it would change the filters of all threads."""
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def versions() -> dict[str, str]:
    """Versions of this package, the numerical libraries and Python."""
    libraries = {name: version(name) for name in _LIBRARIES}
    return {"prevalens": __version__, **libraries, "python": platform.python_version()}


def _peak_memory() -> float:
    """Most memory in use since the last reset, in megabytes."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = _STATUS.read_text().splitlines()
        line = next(line for line in lines if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    with contextlib.suppress(AttributeError):
        # Kilobytes, save on macOS.
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return 0.0


def build(
    method: MethodSpec,
    seed: int,
    cache: ScoreCache | None = None,
    parts: Parts | None = None,
    *,
    intervals: bool = False,
) -> Any:
    """Build the quantifier of a method's specification, ready to be fitted.

    Parameters
    ----------
    method : MethodSpec
    seed : int
        Every seed inside that has its default value becomes this one.
    cache : ScoreCache, optional
        Where the classifier's scores are kept.
    parts : mapping of str to CatalogueEntry, optional
        Parts that the method may name beside those of the catalogue.
    intervals : bool
        Whether calibrated intervals are prepared.
    """
    quantifier = parse(method.expression, parts)
    if not intervals:
        without_intervals(quantifier)
    for inner in _quantifiers(quantifier):
        if inner.scheme is None:
            inner.set_params(scheme=CrossFit())
    set_seeds(quantifier, seed)
    if cache is not None:
        for inner in _quantifiers(quantifier):
            _use_cache(inner, cache)
    if not method.grid:
        return quantifier
    grid = {name: [read_value(value) for value in values] for name, values in method.grid.items()}
    return GridSearch(
        quantifier, grid, random_state=seed, progress=False, **_options(method.selection)
    )


def _quantifiers(method: Any) -> list[Quantifier]:
    """The quantifiers in a method, at any depth."""
    parts = [method, *method.get_params(deep=True).values()]
    return [part for part in parts if isinstance(part, Quantifier)]


def _use_cache(quantifier: Quantifier, cache: ScoreCache) -> None:
    """Keep the scores of its classifier, if the aggregator reads scores and nothing else."""
    classifier, aggregator = quantifier.classifier, quantifier.aggregator
    # The members of an ensemble give more than its scores.
    if classifier is None or isinstance(classifier, HasMembers):
        return
    if aggregator is None or aggregator.consumes != "features":
        quantifier.set_params(classifier=CachedClassifier(classifier, cache))


def _options(selection: Mapping[str, Any]) -> dict[str, Any]:
    """The search's options, with the protocol built."""
    options = dict(selection)
    if isinstance(options.get("protocol"), Mapping):
        table = PlanTable(options["protocol"], "The plan", "selection.protocol")
        options["protocol"] = ProtocolSpec.read(table).protocol()
    return options


@dataclass(frozen=True, eq=False)
class CellResult:
    """The result of a cell.

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
    validation_loss : float or None
        Loss of the settings that the outermost search chose, on its validation samples.
    columns : dict of arrays, shape (n_samples,)
        One entry per sample: an error per metric and what is measured of intervals, the
        ``shift``, the ``size``, the ``target`` label (-1 if none) with the ``prevalence`` it was
        steered to, and its ``true`` and ``estimated`` prevalence; under a protocol by time also
        the ``horizon``.
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
    validation_loss: float | None = None

    def __len__(self) -> int:
        return len(self.columns["shift"])

    def result(self, cell: Cell | None = None) -> Result:
        """The errors per sample; another cell of the same key may give the names."""
        named = cell or self.cell
        return Result(
            dataset=named.dataset,
            protocol=named.protocol.name,
            method=named.method.label,
            expression=named.method.expression,
            variant=named.method.variant,
            seed=named.seed,
            shift=self.columns["shift"],
            errors={metric: self.columns[metric] for metric in self.cell.measures},
            by_label=dict(zip(self.labels["name"], self.labels["error"], strict=True)),
            version=self.versions["prevalens"],
            data_sha=self.data_sha,
            usage={} if self.usage is None else asdict(self.usage),
            validation_loss=self.validation_loss,
        )

    def records(self, cell: Cell | None = None) -> list[Record]:
        """Mean errors by shift regime, over all, and by horizon if known; names as in `result`."""
        named = cell or self.cell
        return [
            Record(
                dataset=named.dataset,
                method=named.method.name,
                protocol=named.protocol.name,
                seed=named.seed,
                shift=name,
                metric=metric,
                # A regime without samples has no mean.
                value=float(self.columns[metric][rows].mean(dtype=np.float64))
                if rows.any()
                else float("nan"),
                n_samples=int(rows.sum()),
                version=self.versions["prevalens"],
                data_sha=self.data_sha,
            )
            for metric in self.cell.measures
            for name, rows in self._classes().items()
        ]

    def _classes(self) -> dict[str, npt.NDArray[np.bool_]]:
        """Which samples belong to each shift regime, to all, and to each class of horizons."""
        regime = shift_bins(self.columns["shift"])
        chosen = {name: regime == number for number, name in enumerate(SHIFT_NAMES)}
        chosen["all"] = np.ones(len(self), dtype=bool)
        if "horizon" in self.columns:
            distance = horizon_bins(self.columns["horizon"])
            chosen |= {name: distance == number for number, name in enumerate(HORIZON_NAMES)}
        return chosen


@dataclass(frozen=True)
class Failure:
    """A cell that could not be computed, with the reason and the traceback."""

    cell: Cell
    sentence: str
    trace: str


def run_cell(cell: Cell, cache: ScoreCache | None = None, parts: Parts | None = None) -> CellResult:
    """Compute a cell; a function of its arguments and of the data alone.

    Parameters
    ----------
    cell : Cell
    cache : ScoreCache, optional
        Scores to be used again; they change the time and nothing else.
    parts : mapping of str to CatalogueEntry, optional
        Parts that the method may name beside those of the catalogue.
    """
    return _evaluate(cell, _fit(cell, cache, parts), cache)


def run_cells(
    cells: Sequence[Cell], cache: ScoreCache | None = None, parts: Parts | None = None
) -> Iterator[CellResult | Failure]:
    """Compute cells that share a fitted quantifier; one that fails does not stop the others."""
    try:
        fitted = _fit(cells[0], cache, parts)
    except Exception as error:
        yield from [failure_of(cell, error) for cell in cells]
        return
    for number, cell in enumerate(cells):
        try:
            outcome: CellResult | Failure = _evaluate(cell, fitted, cache, shared=number > 0)
        except Exception as error:
            outcome = failure_of(cell, error)
        yield outcome


def failure_of(cell: Cell, error: BaseException) -> Failure:
    """The failure of a cell that raised an error."""
    sentence = str(error).strip() or type(error).__name__
    return Failure(cell, sentence, "".join(traceback.format_exception(error)))


@dataclass(frozen=True)
class _Fitted:
    dataset: Dataset
    quantifier: Any
    meter: Meter


def _fit(cell: Cell, cache: ScoreCache | None, parts: Parts | None) -> _Fitted:
    dataset = open_dataset(cell.source)
    train = dataset.train
    timed = {"time": _needed_times(train.times, cell)} if cell.method.time else {}
    with metered(cache) as meter:
        calibrated = cell.interval is not None
        quantifier = build(cell.method, cell.seed, cache, parts, intervals=calibrated)
        quantifier.fit(train.X, train.Y, labels=train.labels, **timed)
    return _Fitted(dataset, quantifier, meter)


def _needed_times(times: Times | None, cell: Cell) -> Times:
    if times is None:
        raise InputError(
            f"The method {cell.method.name!r} is told the times of items, but the dataset "
            f"{cell.dataset!r} has none; skip it there by an override."
        )
    return times


def _evaluate(
    cell: Cell, fitted: _Fitted, cache: ScoreCache | None, *, shared: bool = False
) -> CellResult:
    dataset = fitted.dataset
    with metered(cache) as meter:
        protocol = cell.protocol.protocol(dataset).with_items(dataset.test.X)
        # The same seed and protocol give the same samples to every method.
        samples = protocol.draw(dataset.test.Y, check_rng(cell.seed))
        timed = cell.method.time
        compared = evaluate_samples(
            {cell.method.name: fitted.quantifier},
            dataset.test,
            samples,
            random_state=cell.seed,
            interval=cell.interval,
            time=mean_times(samples, _needed_times(dataset.test.times, cell)) if timed else None,
        )
        (evaluation,) = compared.values()
    return CellResult(
        cell=cell,
        key=cell.key(dataset.sha),
        data_sha=dataset.sha,
        versions=versions(),
        chosen=to_plain_values(_chosen(fitted.quantifier)),
        columns=_columns(evaluation, cell.measures) | _horizons(cell, dataset, samples),
        labels=_labels(evaluation),
        usage=_usage(fitted.meter, meter, shared=shared),
        validation_loss=_validation_loss(fitted.quantifier),
    )


def _columns(evaluation: Evaluation, metrics: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    target = evaluation.samples.target
    rows, columns = np.arange(len(target)), np.maximum(target, 0)
    steered = {
        "true": evaluation.true[rows, columns],
        "estimated": evaluation.estimated[rows, columns],
    }
    return {
        **{name: evaluation.errors(name).astype(np.float32) for name in metrics},
        # Not rounded: a sample on the border of a regime would change sides.
        "shift": evaluation.shift,
        "size": evaluation.samples.sizes.astype(np.int32),
        "target": target.astype(np.int32),
        "prevalence": evaluation.samples.prevalence.astype(np.float32),
        **{
            name: np.where(target < 0, np.nan, values).astype(np.float32)
            for name, values in steered.items()
        },
    }


def _horizons(cell: Cell, dataset: Dataset, samples: Samples) -> dict[str, Floats]:
    """The column of horizons of samples by time, if the training items have times."""
    training, test = dataset.train.times, dataset.test.times
    if training is None or test is None or not cell.protocol.is_temporal:
        return {}
    numbers, dates = as_numbers(training)
    later, _ = as_numbers(mean_times(samples, test))
    return {"horizon": TimeAxis.of(numbers, dates=dates).horizon(later)}


def _labels(evaluation: Evaluation) -> dict[str, list[Any]]:
    gap = evaluation.estimated - evaluation.true
    figures: dict[str, Floats] = {
        "training": evaluation.training,
        "error": np.abs(gap).mean(axis=0),
        "bias": gap.mean(axis=0),
    }
    rounded = {name: [round(v, 7) for v in values.tolist()] for name, values in figures.items()}
    return {"name": list(evaluation.labels), **rounded}


def _usage(fit: Meter, evaluation: Meter, *, shared: bool) -> Usage:
    counted = [evaluation] if shared else [fit, evaluation]
    return Usage(
        fit_seconds=round(fit.seconds, 4),
        quantify_seconds=round(evaluation.seconds, 4),
        seconds=round(sum(meter.seconds for meter in counted), 4),
        peak_megabytes=round(max(fit.peak_megabytes, evaluation.peak_megabytes), 1),
        scores_reused=sum(meter.reused for meter in counted),
        scores_computed=sum(meter.computed for meter in counted),
        warnings=tuple(dict.fromkeys(fit.warnings + evaluation.warnings)),
    )


def _chosen(part: BaseEstimator, path: str = "") -> dict[str, Any]:
    """What every search in a fitted method has chosen, by the path that leads to it."""
    chosen: dict[str, Any] = {}
    if isinstance(part, GridSearch):
        chosen = {f"{path}{name}": value for name, value in part.best_params_.items()}
    for name, inner in vars(part).items():
        # Attributes that `fit` has set.
        if name.endswith("_") and isinstance(inner, BaseEstimator):
            chosen |= _chosen(inner, f"{path}{name.removesuffix('_')}.")
    return chosen


def _validation_loss(quantifier: BaseEstimator) -> float | None:
    """The loss of the settings that a search has chosen, if the method is a search."""
    if not isinstance(quantifier, GridSearch) or not np.isfinite(quantifier.best_score_):
        return None
    return float(-quantifier.best_score_)


def to_plain_values(value: Any) -> Any:
    """Convert chosen parameters to values that JSON can hold; parts become expressions."""
    if isinstance(value, Mapping):
        return {str(name): to_plain_values(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [to_plain_values(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return to_text(expression_of(value)) if isinstance(value, BaseEstimator) else str(value)
