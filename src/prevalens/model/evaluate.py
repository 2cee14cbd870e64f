"""Evaluate a model: draw shifted samples of labelled items and compare estimates with the truth."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from prevalens.collection import label_matrix
from prevalens.errors import InputError, PrevalensWarning
from prevalens.model.items import chunks_of, filled, stacked
from prevalens.model.labelled import Labelled, read_labelled
from prevalens.model.model import Model
from prevalens.model.progress import Cancelled, Progress, Watch
from prevalens.model.trust import Trial, TrustReport
from prevalens.protocols import Protocol
from prevalens.protocols.families import FAMILIES, family_name, family_protocol
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.tables.opening import Reading
from prevalens.types import Items, LabelMatrix, Labels
from prevalens.validation import check_int, check_same_length

#: Fewer labelled items than this are too few to draw samples from.
FEWEST_ITEMS = 30
_USUAL_SIZE = 100

#: Parameters of a family that differ from its defaults here.
_SETTINGS: dict[str, dict[str, int]] = {"ml-app": {"grid": 21}}


def protocols_of(names: str | Sequence[str], *, size: int, n_samples: int) -> dict[str, Protocol]:
    """The protocols with these names, in their order.

    Parameters
    ----------
    names : str or sequence of str
        Families of shifts, such as ``"ml-app,natural,label-tilt"``.
    size : int
        Items per sample.
    n_samples : int
        Samples of each.
    """
    given = names.split(",") if isinstance(names, str) else names
    chosen = list(dict.fromkeys(family_name(name.strip()) for name in given if name.strip()))
    if not chosen:
        raise InputError(f"Name at least one protocol of {', '.join(FAMILIES)}.")
    check_int(n_samples, "The number of samples", minimum=1)
    return {
        name: family_protocol(name, size, n_samples, **_SETTINGS.get(name, {})) for name in chosen
    }


def sample_size(n_items: int, wanted: int | None) -> int:
    """Items per sample: `wanted`; by default 100, or a third of the items if that is less."""
    if n_items < FEWEST_ITEMS:
        raise InputError(
            f"{n_items} labelled items are too few to draw samples from; it takes at least "
            f"{FEWEST_ITEMS}, and some hundred for figures to rely on."
        )
    if wanted is None:
        return min(_USUAL_SIZE, n_items // 3)
    size = check_int(wanted, "The size of samples", minimum=2)
    if size > n_items:
        raise InputError(f"Samples of {size} items cannot be drawn from {n_items} labelled items.")
    return size


DEFAULT_PROTOCOLS = ("ml-app", "natural", "label-tilt")
#: Intervals are costly, and some hundred samples suffice to measure their coverage.
_MOST_INTERVALS = 100


def evaluate_files(
    model: Model | str | Path,
    paths: str | Path | Iterable[str | Path],
    *,
    labels: Sequence[str] | None = None,
    tags: str | None = None,
    sep: str = ",",
    reading: Reading | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    **settings: Any,
) -> TrustReport:
    """Evaluate a model on labelled items in files.

    Parameters
    ----------
    model : Model, or the path of one
    paths : path, pattern or folder, or several
    labels : sequence of str, optional
        Columns of 0/1. If neither these nor `tags` are named, the columns called like the
        model's labels, or the labels of an annotation tool's export.
    tags : str, optional
        The column that names the labels of each item, divided by `sep`.
    reading : Reading, optional
    progress, cancelled : callable, optional
        As in `fit_files`.
    **settings
        As in `evaluate_model`.
    """
    loaded = model if isinstance(model, Model) else Model.load(model)
    if loaded.columns is None:
        raise InputError(
            "The model was not trained on a table, so it does not know which columns to read; "
            "use evaluate_model."
        )
    data = read_labelled(
        paths,
        features=loaded.columns,
        labels=labels,
        tags=tags,
        known=loaded.labels,
        sep=sep,
        reading=reading,
        watch=Watch(progress, cancelled),
    )
    Y, notices = _aligned(data, loaded.labels)
    report = evaluate_model(
        loaded, data.items.columns, Y, progress=progress, cancelled=cancelled, **settings
    )
    return replace(
        report,
        seen=_seen(loaded, data),
        notices=notices,
        provenance={"labelled items": data.file_names, **report.provenance},
    )


def _aligned(data: Labelled, labels: Sequence[str]) -> tuple[LabelMatrix, tuple[str, ...]]:
    """Y in the order of the model's labels, and notes on labels that only one side has."""
    place = {name: j for j, name in enumerate(data.labels)}
    known = [name for name in labels if name in place]
    if not known:
        raise InputError(
            f"{data.items.source} has none of the model's {len(labels)} labels, such as "
            f"{labels[0]!r}; it has {', '.join(map(repr, data.labels[:5]))}."
        )
    Y = np.zeros((len(data.Y), len(labels)), dtype=np.int8)
    for j, name in enumerate(labels):
        if name in place:
            Y[:, j] = data.Y[:, place[name]]
    notices = []
    if len(known) < len(labels):
        notices.append(f"{len(labels) - len(known)} of the model's labels occur in no item.")
    others = [name for name in data.labels if name not in labels]
    if others:
        notices.append(f"{len(others)} labels that the model does not know were left out.")
    return Y, tuple(notices)


def _seen(model: Model, data: Labelled) -> float:
    """Share of the files that the model was trained on, by name and size."""
    trained = model.provenance.get("files", [])
    given = data.source["files"]
    return sum(file in trained for file in given) / len(given)


def evaluate_model(
    model: Model,
    items: Items,
    Y: Labels,
    *,
    protocols: str | Sequence[str] = DEFAULT_PROTOCOLS,
    interval: float | None = 0.9,
    size: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> TrustReport:
    """Draw samples whose label mix has moved from labelled items, and compare with the truth.

    Parameters
    ----------
    model : Model
    items : as `Model.quantify` takes them
        Items the model has not seen.
    Y : 0/1 matrix, data frame or list of label sets, one row per item
    protocols : str or sequence of str
        Families of shifts: ``ml-app``, ``natural``, ``label-tilt``, ``labelset-weights``,
        ``covariate-tilt``, ``two-labels``.
    interval : float, optional
        Level of the intervals whose coverage is measured; None leaves them out.
    size : int, optional
        Items per sample: 100, or a third of the items if they are fewer than 300.
    n_samples : int
        Samples per protocol.
    seed : int
    progress, cancelled : callable, optional
        As in `fit_files`.

    Returns
    -------
    TrustReport

    Notes
    -----
    Every item is scored once. Coverage is measured on the first hundred samples of each
    protocol, drawn in random order.

    Examples
    --------
    >>> from prevalens.datasets.tickets import tickets
    >>> data = tickets(300, 60, months=2)
    >>> model = Model.fit(data.train.X, data.train.Y, labels=data.train.labels, method="lr+pacc")
    >>> report = evaluate_model(model, data.test.X, data.test.Y, n_samples=50, interval=None)
    >>> [trial.protocol for trial in report.trials]
    ['ml-app', 'natural', 'label-tilt']
    """
    watch = Watch(progress, cancelled)
    Y, _ = label_matrix(Y, model.labels)
    size = sample_size(len(Y), size)
    chosen = protocols_of(protocols, size=size, n_samples=n_samples)
    check_int(seed, "seed", minimum=0)
    steps = len(chosen) + 1
    watch.step("scoring", 0, steps, len(Y))
    pool = _Pool(model, items, Y)
    trials = []
    for number, (name, protocol) in enumerate(chosen.items()):
        watch.step(name, number + 1, steps, len(Y))
        trials.append(pool.trial(protocol, interval, np.random.default_rng([seed, number])))
    return TrustReport(
        method=model.summary.method,
        labels=model.labels,
        training=model.prevalence,
        positives=Y.sum(axis=0, dtype=np.int64),
        n_items=len(Y),
        size=size,
        trials=tuple(trials),
        level=interval,
        provenance=_provenance(model, chosen, seed),
    )


class _Pool:
    """Labelled items that have been scored once, for the aggregator and for counting."""

    def __init__(self, model: Model, items: Items, Y: LabelMatrix) -> None:
        self.model, self.Y = model, Y
        chunks = chunks_of(items, model.preparation, model.columns)
        prepared = (model.preparation.transform(chunk) for chunk in chunks)
        blocks = list(model.guarded(prepared))
        if not blocks:
            raise InputError("There are no labelled items to evaluate on.")
        self.X = stacked(blocks)
        check_same_length(self.X.shape[0], "The items", len(Y), "Y")
        self.scores: Scores = model.quantifier.score(self.X)
        self.votes = model.votes(self.X)

    def trial(self, protocol: Protocol, interval: float | None, rng: np.random.Generator) -> Trial:
        samples = protocol.with_items(filled(self.X)).draw(self.Y, rng)
        rows = np.sort(rng.permutation(len(samples))[:_MOST_INTERVALS])
        lower, upper = self._intervals(samples[rows], interval)
        return Trial(
            protocol=protocol.name,
            true=samples.mean(self.Y),
            estimated=self.model.quantifier.aggregate(self.scores, samples).point,
            counted=None if self.votes is None else samples.mean(self.votes),
            rows=rows if lower is not None else rows[:0],
            lower=lower,
            upper=upper,
        )

    def _intervals(self, samples: Samples, level: float | None) -> tuple[Any, Any]:
        if level is None:
            return None, None
        with warnings.catch_warnings():
            # Samples far from training are the point here, not something to warn of.
            warnings.simplefilter("ignore", PrevalensWarning)
            estimate = self.model.aggregate(self.scores, samples, interval=level)
        return estimate.lower, estimate.upper


def _provenance(model: Model, protocols: dict[str, Protocol], seed: int) -> dict[str, str]:
    return {
        "method": model.summary.method,
        "preparation": model.summary.preparation,
        "training": f"{model.summary.n_items:,} items, {len(model.labels)} labels",
        "trained": str(model.provenance.get("created", "")),
        "protocols": ", ".join(protocols),
        "seed": str(seed),
        "prevalens": str(model.provenance.get("prevalens", "")),
    }
