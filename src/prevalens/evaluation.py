"""Evaluation: score the pool once, estimate all samples as one matrix, compare with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from prevalens._version import __version__
from prevalens.charts import Dots, Drawing, Line, Lines, draw, table
from prevalens.collection import Collection
from prevalens.estimate import PrevalenceEstimate
from prevalens.metrics import MEASURES, SHIFT_NAMES, interval_measures, shift, shift_bins
from prevalens.protocols import Protocol
from prevalens.records import Record
from prevalens.samples import Samples
from prevalens.selection import SampleQuantifier
from prevalens.types import Array, Floats
from prevalens.validation import InputError, check_choice, check_rng


@dataclass(frozen=True)
class Evaluation:
    """True and estimated prevalences of many samples.

    Attributes
    ----------
    method, protocol : str
    true, estimated : array of float, shape (n_samples, n_labels)
    training : array of float, shape (n_labels,)
        Prevalences the quantifier was trained on.
    samples : Samples
    labels : tuple of str
    seed : int or None
    intervals : dict of array of float, shape (n_samples,)
        What `prevalens.metrics.interval_measures` gives, if intervals were asked for; else empty.
    """

    method: str
    protocol: str
    true: Floats
    estimated: Floats
    training: Floats
    samples: Samples
    labels: tuple[str, ...]
    seed: int | None = None
    intervals: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.samples)

    def errors(self, metric: str = "ae") -> Floats:
        """One error, or one measure of the intervals, per sample, shape (n_samples,)."""
        if metric in self.intervals:
            return self.intervals[metric]
        check_choice(metric, "metric", (*MEASURES, *self.intervals))
        return MEASURES[metric](self.true, self.estimated, self.samples.sizes)

    @property
    def shift(self) -> Floats:
        """How far each sample has moved from the training prevalences, shape (n_samples,)."""
        return shift(self.training, self.true)

    def by_shift(self, metric: str = "ae") -> dict[str, tuple[float, int]]:
        """Mean error and number of samples in each shift regime, and over all.

        A regime without samples has the mean NaN.
        """
        errors, bins = self.errors(metric), shift_bins(self.shift)
        regimes = {name: _mean(errors[bins == i]) for i, name in enumerate(SHIFT_NAMES)}
        return regimes | {"all": _mean(errors)}

    def by_label(self) -> dict[str, float]:
        """Mean absolute error of each label over all samples."""
        means = np.abs(self.true - self.estimated).mean(axis=0)
        return dict(zip(self.labels, means.tolist(), strict=True))

    def by_target(self, metric: str = "ae") -> dict[str, tuple[float, int]]:
        """Mean error over the samples that steered a label, for each label that was steered."""
        errors, target = self.errors(metric), self.samples.target
        return {self.labels[j]: _mean(errors[target == j]) for j in np.unique(target) if j >= 0}

    def by_prevalence(self, metric: str = "ae", *, n_bins: int = 10) -> list[dict[str, float]]:
        """Mean error by the prevalence that the target label was steered to.

        One row per non-empty bin of [0, 1]: ``low``, ``high``, ``value``, ``n_samples``.
        """
        errors, steered = self.errors(metric), self.samples.prevalence
        edges = np.linspace(0, 1, n_bins + 1)
        bins = np.clip(np.searchsorted(edges, steered, side="right") - 1, 0, n_bins - 1)
        bins[np.isnan(steered)] = -1
        rows = []
        for number in np.unique(bins[bins >= 0]):
            value, count = _mean(errors[bins == number])
            low, high = float(edges[number]), float(edges[number + 1])
            rows.append({"low": low, "high": high, "value": value, "n_samples": count})
        return rows

    def plot(
        self,
        backend: str = "matplotlib",
        *,
        metric: str = "ae",
        n_bins: int = 12,
        ax: Drawing | None = None,
    ) -> Drawing:
        """Draw the mean error by shift, with the middle 80 % of the samples as a band.

        Parameters
        ----------
        backend : {"matplotlib", "altair"}
        metric : str
        n_bins : int
            Intervals of shift.
        ax : matplotlib Axes, optional
        """
        errors, bins = self.errors(metric), shift_bins(self.shift, n_bins)
        groups = [errors[bins == number] for number in np.unique(bins)]
        low, high = np.array([np.quantile(group, [0.1, 0.9]) for group in groups]).T
        line = Line(self.method, np.array([group.mean() for group in groups]), low, high)
        places = [float(self.shift[bins == number].mean()) for number in np.unique(bins)]
        chart = Lines(places, [line], "shift since training", metric.upper(), self.protocol)
        return draw(chart, backend, ax=ax)

    def __repr__(self) -> str:
        means = ", ".join(
            f"{regime} {mean:.4f}" for regime, (mean, count) in self.by_shift().items() if count
        )
        about = f"{self.method}, {self.protocol}, {len(self)} samples"
        return f"Evaluation({about}; mean absolute error by shift: {means})"

    def _repr_html_(self) -> str:
        errors = np.array(list(self.by_label().values()))
        title = f"{self.method}, {self.protocol}, {len(self)} samples"
        return table(Dots(self.labels, errors, axis="mean absolute error", title=title))

    def records(
        self, dataset: str, *, metrics: Sequence[str] = ("ae", "rae"), data_sha: str = ""
    ) -> list[Record]:
        """The figures of this evaluation with their provenance, by shift regime and over all."""
        return [
            Record(
                dataset=dataset,
                method=self.method,
                protocol=self.protocol,
                seed=-1 if self.seed is None else self.seed,
                shift=regime,
                metric=metric,
                value=value,
                n_samples=count,
                version=__version__,
                data_sha=data_sha,
            )
            for metric in metrics
            for regime, (value, count) in self.by_shift(metric).items()
        ]


def _mean(values: Floats) -> tuple[float, int]:
    return (float(values.mean()) if values.size else float("nan")), int(values.size)


def evaluate(
    quantifier: SampleQuantifier, pool: Collection, protocol: Protocol, *, random_state: object = 0
) -> Evaluation:
    """Draw samples from a labelled pool and compare estimates with the truth.

    Parameters
    ----------
    quantifier : fitted quantifier
    pool : Collection
        Labelled items the quantifier has not seen.
    protocol : Protocol
        How samples are drawn, for example ``MLAPP(repeats=25)``.
    random_state : int or Generator
        The same number gives the same samples to every method.

    Notes
    -----
    Every item is scored once, whatever the number of samples.

    Examples
    --------
    >>> from prevalens import Quantifier
    >>> from prevalens.datasets import synthetic
    >>> from prevalens.protocols import Natural
    >>> data = synthetic(n_train=300, n_test=200, n_labels=4, random_state=0)
    >>> quantifier = Quantifier().fit(data.train.X, data.train.Y)
    >>> evaluation = evaluate(quantifier, data.test, Natural(size=50, n_samples=20), random_state=0)
    >>> len(evaluation)
    20
    """
    samples = protocol.with_items(pool.X).draw(pool.Y, check_rng(random_state))
    return evaluate_samples(
        {"": quantifier}, pool, samples, protocol=protocol, random_state=random_state
    )[""]


def evaluate_samples(
    quantifiers: Mapping[str, SampleQuantifier],
    pool: Collection,
    samples: Samples,
    *,
    protocol: Protocol | str = "given",
    random_state: object = None,
    interval: float | None = None,
    time: Array | None = None,
) -> dict[str, Evaluation]:
    """Compare several fitted quantifiers on the same samples.

    Parameters
    ----------
    quantifiers : mapping of name to fitted Quantifier
        An empty name is replaced by the quantifier's own name.
    pool : Collection
    samples : Samples
        Bags of rows of the pool.
    protocol : Protocol or str
        For the record only.
    random_state : int, optional
        For the record only.
    interval : float, optional
        Level of intervals and bands whose coverage and width are measured.
    time : array, shape (n_samples,), optional
        The mean time of each sample, for quantifiers that were fitted with times.
    """
    true = samples.mean(pool.Y)
    number = int(random_state) if isinstance(random_state, (int, np.integer)) else None
    evaluations = {}
    for name, quantifier in quantifiers.items():
        estimate = _estimates(quantifier, pool, samples, interval=interval, time=time)
        evaluations[name] = Evaluation(
            method=name or quantifier.name,
            protocol=protocol if isinstance(protocol, str) else protocol.name,
            true=true,
            estimated=estimate.point,
            training=quantifier.prevalence_,
            samples=samples,
            labels=pool.labels,
            seed=number,
            intervals={} if interval is None else _measured(true, estimate, interval),
        )
    return evaluations


def _measured(true: Floats, estimate: PrevalenceEstimate, level: float) -> dict[str, Floats]:
    return interval_measures(true, estimate.point, *estimate.ends, level=level)


def _estimates(
    quantifier: SampleQuantifier,
    pool: Collection,
    samples: Samples,
    *,
    interval: float | None,
    time: Array | None,
) -> PrevalenceEstimate:
    # Variants of a study give points alone, and other quantifiers may know no times.
    if interval is None and time is None:
        estimate = quantifier.quantify_many(pool.X, samples)
    else:
        timed = {} if time is None else {"time": time}
        estimate = quantifier.aggregate(quantifier.score(pool.X), samples, interval, **timed)
    if estimate.shape[1] != pool.n_labels:
        raise InputError(
            f"The quantifier knows {estimate.shape[1]} labels, but the pool has {pool.n_labels}."
        )
    return estimate
