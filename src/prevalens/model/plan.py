"""How many human labels are needed: the width of intervals against the number of labelled items."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone

from prevalens.classifiers import Given
from prevalens.errors import InputError
from prevalens.model.draw import draw_items
from prevalens.model.fit import fit_files
from prevalens.model.items import chunk_items, stacked
from prevalens.model.labelled import LabelledColumns, Labellers, read_labelled
from prevalens.model.model import Method, Model, quantifier_of
from prevalens.model.progress import Cancelled, Progress, Watch
from prevalens.model.quantify import model_columns
from prevalens.model.sample import LabelSheet, sheet_rows
from prevalens.quantifier import Quantifier
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.tables.labellers import match_scores, stems
from prevalens.tables.labels import label_columns
from prevalens.tables.opening import Reading, expand
from prevalens.tables.scores import ScorePreparation
from prevalens.tables.table import Chunk, Table
from prevalens.types import Floats, Ints, Items, LabelMatrix
from prevalens.uncertainty.drift import DEFAULT_DRIFT, check_drift, quantile
from prevalens.uncertainty.misclassification import Rate
from prevalens.validation import check_fraction, check_int, take_items

#: Numbers of labelled items that forecasts are given for.
SIZES = (50, 100, 200, 300, 500, 1000, 2000, 5000)
#: Parts of the pilot that methods are fitted on, and how often each.
_PARTS = ((0.3, 3), (0.4, 3), (0.55, 3), (0.75, 3))
#: Batches that widths are measured in, and the most items of each.
_BATCHES, _MOST_ITEMS = 5, 5000
#: Items of a batch, if there is none.
_BATCH_SIZE = 500
#: A label needs so many positive and negative items in a part of the pilot.
_FEWEST_POSITIVES = 3
_FEWEST_ITEMS = 40
#: What is assumed of a labeller without a pilot.
SENSITIVITY, SPECIFICITY = 0.8, 0.95


@dataclass(frozen=True)
class LabelPlan:
    """Forecast of interval widths by the number of labelled items.

    Attributes
    ----------
    labels : tuple of str
    level : float
        Of the intervals.
    target : float
        Width that is wanted, such as 0.05 for 5 points.
    batch_size : int
        Items of the batches that are to be estimated.
    limit, slope : array of float, shape (n_labels,)
        The squared width is ``limit + slope / n`` with n labelled items; NaN if the pilot has too
        few positive items of a label.
    measured : sequence of (int, array of float, shape (n_labels,))
        Numbers of labelled items, and the mean widths that were measured with them.
    positives : array of int, shape (n_labels,), or None
        In the pilot.
    basis : str
        What the forecast rests on, in sentences.
    """

    labels: tuple[str, ...]
    level: float
    target: float
    batch_size: int
    limit: Floats
    slope: Floats
    measured: Sequence[tuple[int, Floats]] = ()
    positives: Ints | None = None
    basis: str = ""

    def width(self, n: float) -> Floats:
        """Expected width with n labelled items, shape (n_labels,); at most 1."""
        return np.minimum(np.sqrt(self.limit + self.slope / n), 1.0)

    @property
    def needed(self) -> Floats:
        """Labelled items that the target needs, per label; infinite if no number is enough."""
        room = self.target**2 - self.limit
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.ceil(self.slope / room)
        return np.where(np.isnan(room), np.nan, np.where(room > 0, found, np.inf))

    @property
    def floor(self) -> Floats:
        """Width that no number of labels goes below."""
        return np.sqrt(self.limit)

    @property
    def headline(self) -> str:
        """How many labels are needed, in a sentence or two."""
        needed, points = self.needed, f"{100 * self.target:g} points"
        known = needed[~np.isnan(needed)]
        possible = known[np.isfinite(known)]
        text = ""
        if possible.size:
            which = "All" if possible.size == needed.size else f"{possible.size} of {needed.size}"
            text = (
                f"{which} labels get {100 * self.level:g} % intervals that are {points} wide or "
                f"narrower: half of these with about {_rounded(float(np.median(possible))):,} "
                f"labelled items, all with about {_rounded(float(possible.max())):,}. "
            )
        out = int(np.isinf(known).sum())
        if out:
            text += (
                f"For {out} of {len(self.labels)} labels no number of training labels is enough: "
                "drift, the size of the batch and what the scores do not tell leave wider "
                "intervals. Label items of the batch itself (prevalens sample), estimate larger "
                "batches, or use a better labeller. "
            )
        if np.isnan(needed).any():
            text += (
                f"{int(np.isnan(needed).sum())} labels have too few positive items in the pilot "
                "for a forecast."
            )
        return text.strip()

    def to_rows(self) -> list[dict[str, Any]]:
        """One row per label: positives, the number needed, the least width, widths by number."""
        widths = {n: self.width(n) for n in SIZES}
        needed = self.needed
        return [
            {
                "label": label,
                "positives": None if self.positives is None else int(self.positives[j]),
                "needed": int(needed[j]) if np.isfinite(needed[j]) else None,
                "least_width": _number(self.floor[j]),
                **{f"width_{n}": _number(width[j]) for n, width in widths.items()},
            }
            for j, label in enumerate(self.labels)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Rows, measured widths and basis, for JSON."""
        return {
            "rows": self.to_rows(),
            "interval": self.level,
            "target_width": self.target,
            "batch_size": self.batch_size,
            "measured": [
                {"n": n, "widths": [_number(width) for width in widths]}
                for n, widths in self.measured
            ],
            "headline": self.headline,
            "basis": self.basis,
        }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _rounded(value: float) -> int:
    """Two leading digits, upwards: a forecast is not more exact."""
    step = 10 ** max(int(np.floor(np.log10(max(value, 1.0)))) - 1, 0)
    return int(np.ceil(value / step) * step)


def plan_files(
    pilot: str | Path | Iterable[str | Path],
    *,
    batch: str | Path | Iterable[str | Path] | None = None,
    target_width: float = 0.05,
    batch_size: int | None = None,
    interval: float = 0.9,
    method: Method | None = None,
    drift: float | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    **columns: Unpack[LabelledColumns],
) -> tuple[LabelPlan, Model]:
    """Forecast the width of intervals from a pilot of labelled items.

    Parameters
    ----------
    pilot : path, pattern or folder, or several
        Labelled items, some hundred if possible.
    batch : the same, optional
        Items to be estimated; default: batches are drawn from the pilot.
    target_width : float
        Width of the intervals that is wanted, as a share: 0.05 is 5 points.
    batch_size : int, optional
        Items of the batches; default: those of `batch`, or 500.
    interval : float
        Level of the intervals.
    method : str or Quantifier, optional
        Default: ``lr+mixture``, or ``given+mixture`` for scores.
    drift : float, optional
        Standard deviation of the drift that intervals allow for, see `Quantifier`.
    random_state : int
    progress, cancelled : as in `fit_files`
    **columns
        Which columns are items and labels, as in `fit_files`.

    Returns
    -------
    LabelPlan, Model
        The forecast, and the model that was fitted on the whole pilot.

    Notes
    -----
    The method is fitted on random parts of the pilot, from a third to all of it, and the widths in
    several batches are measured. Independent errors add up in squares, and those that come from
    the training shrink with the number of its items, so ``width^2 = limit + slope / n`` is fitted,
    label by label. The limit has what more labels cannot change: the allowance for drift, the
    size of the batch, and what the scores do not tell. On generated data (three times 5 labels,
    pilots of 300 items) the forecast was 0.93 to 1.33 times the width that 800 and 2,000 items then
    gave, 1.12 times on average.

    Fails where the pilot was not drawn at random from what will be labelled.
    """
    level, target = check_fraction(interval, "interval"), check_fraction(target_width, "width")
    watch = Watch(progress, cancelled)
    scored = Labellers.of(columns.get("scores"), columns.get("scores_tags")) is not None
    named = method or ("given+mixture" if scored else "lr+mixture")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit_files(
            pilot,
            method=named,
            drift=drift,
            random_state=random_state,
            progress=progress,
            **columns,
        )
        data = read_labelled(pilot, **columns)
    Y = data.Y[:, [data.labels.index(name) for name in model.labels]]
    if len(Y) < _FEWEST_ITEMS:
        raise InputError(
            f"The pilot has {len(Y)} labelled items; at least {_FEWEST_ITEMS} are needed to see "
            "how widths shrink. Plan from scores alone (leave out the labels), or label some more."
        )
    X = _prepared(model, data.items)
    items = None if batch is None else _batch_items(model, batch, columns.get("reading"))
    size = _size(batch_size, None if items is None else items.shape[0])
    own = model.preparation if isinstance(model.preparation, ScorePreparation) else None
    unfitted = quantifier_of(named, None, random_state, drift=drift, scores=own)
    on_stage = watch.within("measuring widths", n_items=len(Y))
    rng = np.random.default_rng(random_state)
    measured = _measured(unfitted, X, Y, items, size, level, rng, on_stage)
    basis = (
        f"Measured with {model.summary.method} on parts of {len(Y):,} labelled items, in batches "
        f"of {size:,}. {model.drift.allowance}"
    )
    curve = (*_fitted_curve(measured), measured, Y.sum(axis=0, dtype=np.int64))
    return LabelPlan(model.labels, level, target, size, *curve, basis.strip()), model


def _size(given: int | None, own: int | None) -> int:
    if given is not None:
        return check_int(given, "batch_size", minimum=1)
    return _BATCH_SIZE if own is None else own


def _prepared(model: Model, chunk: Chunk) -> Items:
    """The rows of a chunk as the quantifier takes them."""
    own = chunk_items(chunk, model.preparation, model.columns or tuple(chunk.columns))
    return model.preparation.transform(own)


def _batch_items(model: Model, batch: Any, reading: Reading | None) -> Items:
    tables = [(reading or Reading()).open(path) for path in expand(batch)]
    columns = model_columns(model, tables)
    parts = [chunk for table in tables for chunk in table.chunks(columns)]
    if not sum(map(len, parts)):
        raise InputError(f"{tables[0].name} has a header but no rows.")
    return stacked([_prepared(model, part) for part in parts])


def _measured(
    quantifier: Any,
    X: Items,
    Y: LabelMatrix,
    batch: Items | None,
    size: int,
    level: float,
    rng: np.random.Generator,
    on_stage: Any,
) -> list[tuple[int, Floats]]:
    """Widths with parts of the pilot, one entry per part and repetition.

    Without a batch, those of items that a part does not have: scores of training items are too
    good.
    """
    found = []
    for share, repeats in _PARTS if batch is None else (*_PARTS, (1.0, 1)):
        for _ in range(repeats):
            n = round(share * len(Y))
            on_stage(f"{n:,} labelled items")
            order = rng.permutation(len(Y))
            target = take_items(X, order[n:]) if batch is None else batch
            count = target.shape[0]
            bags = rng.integers(0, count, (_BATCHES, min(size, _MOST_ITEMS)))
            samples = Samples.from_indices(bags, n_items=count)
            found.append((n, _widths(quantifier, X, Y, order[:n], target, samples, level)))
    return found


def _widths(
    quantifier: Any,
    X: Items,
    Y: LabelMatrix,
    rows: Ints,
    target: Items,
    samples: Samples,
    level: float,
) -> Floats:
    """Mean widths in samples of the target, with a method that is fitted on some rows."""
    widths = np.full(Y.shape[1], np.nan)
    positives = Y[rows].sum(axis=0, dtype=np.int64)
    enough = np.minimum(positives, len(rows) - positives) >= _FEWEST_POSITIVES
    usable = np.flatnonzero((positives > 0) & (positives < len(rows)))
    if not usable.size:
        return widths
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted: Quantifier = clone(quantifier)
        # Scores have a column per labeller and label, so that all labels are kept.
        kept = np.arange(Y.shape[1]) if isinstance(fitted.classifier, Given) else usable
        fitted.fit(take_items(X, rows), Y[rows][:, kept])
        estimate = fitted.aggregate(fitted.score(target), samples, level)
    (lower, upper), _ = estimate.ends
    widths[kept] = (upper - lower).mean(axis=0)
    return np.where(enough, widths, np.nan)


def _fitted_curve(measured: Sequence[tuple[int, Floats]]) -> tuple[Floats, Floats]:
    """Limit and slope of the squared width, per label, both at least 0."""
    sizes = np.array([n for n, _ in measured], dtype=np.float64)
    widths = np.array([width for _, width in measured])
    curves = np.full((2, widths.shape[1]), np.nan)
    for j, width in enumerate(widths.T):
        known = ~np.isnan(width)
        if len(set(sizes[known])) < 2:
            continue
        squares = width[known] ** 2
        # Relative errors count, so that wide intervals do not decide alone.
        design = np.column_stack([np.ones(known.sum()), 1.0 / sizes[known]]) / squares[:, None]
        scale = np.array([1.0, 1.0 / sizes.mean()])
        curves[:, j] = nnls(design / scale, np.ones(known.sum()))[0] / scale
    return curves[0], curves[1]


def plan_scores(
    batch: str | Path | Iterable[str | Path],
    *,
    scores: Sequence[str | Sequence[str]],
    sensitivity: Any = SENSITIVITY,
    specificity: Any = SPECIFICITY,
    target_width: float = 0.05,
    batch_size: int | None = None,
    interval: float = 0.9,
    drift: float | None = None,
    reading: Reading | None = None,
) -> LabelPlan:
    """Forecast the width of intervals from the scores of a labeller alone, without human labels.

    Parameters
    ----------
    batch : path, pattern or folder, or several
        Scored items.
    scores : as in `fit_files`
        Columns of one labeller.
    sensitivity, specificity : float or str
        Assumed of the labeller, for all labels.
    target_width, batch_size, interval, drift : as in `plan_files`
    reading : Reading, optional

    Notes
    -----
    The count of the labeller is taken to be corrected by its sensitivity and specificity, which are
    measured on n labelled items drawn at random: their variances, that of the count, and that of
    the drift add up. Human labels alone are never worse than that.
    """
    level, target = check_fraction(interval, "interval"), check_fraction(target_width, "width")
    se = Rate.parse(sensitivity, "The sensitivity").value
    sp = Rate.parse(specificity, "The specificity").value
    if se + sp <= 1:
        raise InputError("Sensitivity and specificity must sum to more than 1.")
    given = _ScoredBatch.read(batch, scores, reading or Reading())
    labels, n_items, counted = given.labels, len(given.scores), given.counted
    size = _size(batch_size, n_items)
    gain = se + sp - 1.0
    p = np.clip((counted + sp - 1.0) / gain, 0.5 / n_items, 1.0 - 0.5 / n_items)
    deviation = DEFAULT_DRIFT if drift is None else check_drift(drift)
    reach = (2.0 * quantile(level)) ** 2
    apparent = p * se + (1.0 - p) * (1.0 - sp)
    limit = apparent * (1.0 - apparent) / (size * gain**2) - p * (1.0 - p) / size
    limit = np.maximum(limit, 0.0) + 4.0 * deviation**2 * p * (1.0 - p)
    slope = (p * se * (1.0 - se) + (1.0 - p) * sp * (1.0 - sp)) / gain**2
    slope = np.minimum(slope, p * (1.0 - p))
    basis = (
        f"No pilot: a labeller of sensitivity {se:g} and specificity {sp:g} is assumed for every "
        f"label, and a batch of {size:,} items. A pilot of about 100 labelled items replaces these "
        "assumptions by measurements."
    )
    return LabelPlan(labels, level, target, size, reach * limit, reach * slope, basis=basis)


class _ScoredBatch(NamedTuple):
    """Items with the scores of one labeller, and no human labels."""

    tables: list[Table]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    scores: Floats

    @classmethod
    def read(
        cls, batch: Any, scores: Sequence[str | Sequence[str]], reading: Reading
    ) -> _ScoredBatch:
        labellers = Labellers.of(scores, None)
        if labellers is None or len(labellers.scores) != 1:
            raise InputError(
                "Without a pilot a plan needs the score columns of one labeller (`scores=`); with "
                "labelled rows, name their labels (`labels=`, `tags=`)."
            )
        patterns = labellers.scores[0]
        tables = [reading.open(path) for path in expand(batch)]
        own = stems(label_columns(tables[0], patterns), patterns)
        labels = tuple(own.values())
        matched, _ = match_scores(dict(zip(labels, labels, strict=True)), [own], [])
        preparation = ScorePreparation(*matched)
        parts = [chunk for table in tables for chunk in table.chunks(own)]
        if not sum(map(len, parts)):
            raise InputError(f"{tables[0].name} has a header but no rows.")
        X = np.vstack([np.asarray(preparation.fit_transform(part)) for part in parts])
        return cls(tables, labels, preparation.table_columns(), X)

    @property
    def counted(self) -> Floats:
        """Shares of the answers that name each label; 0 if there is no answer."""
        answered = ~np.isnan(self.scores)
        votes = np.where(answered, self.scores, 0.0) > 0.5
        return np.asarray(votes.sum(axis=0) / np.maximum(answered.sum(axis=0), 1))


def sheet_of_scores(
    batch: str | Path | Iterable[str | Path],
    n: int,
    *,
    scores: Sequence[str | Sequence[str]],
    stratified: bool = False,
    random_state: int = 0,
    reading: Reading | None = None,
) -> LabelSheet:
    """Draw the first items to label, of items that have the scores of a labeller alone.

    Parameters
    ----------
    batch, scores, reading : as in `plan_scores`
    n : int
    stratified : bool
        Draw items with unsure scores more often, and keep the weights.
    random_state : int
    """
    given = _ScoredBatch.read(batch, scores, reading or Reading())
    whole = Samples.whole(len(given.scores))
    # An item without an answer is as unsure as can be.
    unsure = Scores(np.nan_to_num(given.scores, nan=0.5), "posteriors") if stratified else None
    draw = draw_items(whole, n, scores=unsure, random_state=random_state)
    rows = sheet_rows(given.tables, given.columns, draw, given.labels, weighted=stratified)
    return LabelSheet(rows, len(given.scores), given.labels)
