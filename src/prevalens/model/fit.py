"""Fit a model from files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from sklearn.base import BaseEstimator, clone

from prevalens.cluster import computing_on_cluster
from prevalens.errors import FormatError, InputError, PrevalensWarning, counted
from prevalens.files import damaged
from prevalens.model.file import check_storable
from prevalens.model.holdout import Holdout
from prevalens.model.items import labelled_preparation
from prevalens.model.labelled import Labelled, LabelledColumns, read_labelled
from prevalens.model.model import Method, Model, quantifier_of
from prevalens.model.progress import Cancelled, Progress, Watch
from prevalens.quantifier import Quantifier
from prevalens.selection import GridSearch
from prevalens.tables.kinds import ColumnUse
from prevalens.tables.preparation import CellError
from prevalens.types import Ints
from prevalens.uncertainty.label_noise import LabelNoise
from prevalens.validation import check_int

#: Fewer items cannot be divided into useful folds.
_FEWEST_ITEMS = 10
_NAMED = 5


def fit_files(
    paths: str | Path | Iterable[str | Path],
    *,
    method: Method = "auto",
    preparation: Any = None,
    time: str | None = None,
    date_form: str | None = None,
    drift: float | None = None,
    time_budget: float | None = None,
    random_state: int = 0,
    min_positives: int | None = None,
    kinds: Mapping[str, str] | None = None,
    holdout: float | None = None,
    agreement: Any = None,
    kappa: Any = None,
    errors: str | None = None,
    trusted: Sequence[str] = (),
    scheduler: str | None = None,
    progress: Progress | None = None,
    on_columns: Callable[[tuple[ColumnUse, ...]], None] | None = None,
    cancelled: Cancelled | None = None,
    **columns: Unpack[LabelledColumns],
) -> Model:
    """Fit a model to labelled items in files.

    Parameters
    ----------
    paths : path, pattern or folder, or several
        CSV, TSV, JSON lines, JSON, Parquet or Excel, also compressed.
    method : str or Quantifier
        ``"auto"``, an expression such as ``"lr+pacc"``, or a quantifier.
    preparation : transformer, optional
        A transformer of scikit-learn; chosen by the items if omitted.
    time : str, optional
        Column that says when each item arose: dates, years or other numbers; no feature unless it
        is named as one. A backtest over time then sets the intervals, see `Quantifier.fit`.
    date_form : str, optional
        Format of the times, and of dates among the features, as in `datetime.strptime`; detected
        if omitted.
    drift : float, optional
        Standard deviation of the drift that intervals allow for, see `Quantifier`; 0 is none.
    time_budget : float, optional
        Seconds that all of it may take on an ordinary core, with ``"auto"`` or `time`;
        ten minutes if omitted.
    random_state : int
        Seed of all parts whose own seed is the default one.
    min_positives : int, optional
        Labels with fewer positive items are left out, with a warning. Default: 5 for tags (2 if
        there are fewer than 100 items); for label columns, a label that never occurs is refused.
    kinds : mapping of column to str, optional
        What feature columns become, instead of what their cells suggest: "number",
        "decimal-point", "decimal-comma", "category", "text", "date", "vector" or "drop"; see
        `prevalens.tables.ColumnPreparation`.
    holdout : float, optional
        Share of the items, such as 0.3, to test with: a model that is fitted on the others is
        evaluated on them, and ``model.holdout`` says how far it can be trusted. The items are drawn
        at random; with `time`, they are the latest. The model itself is fitted on all items.
        Takes about twice as long.
    agreement, kappa : float or str, optional
        In which share of their answers the people who labelled the items agree with others, such as
        0.95 or ``"0.95 (0.93-0.97)"``; or their Cohen's kappa. The model then estimates true labels
        (see `prevalens.uncertainty.LabelNoise`), as it does with `second_labels` or `second_tags`.
    errors : {"balanced", "symmetric", "misses"}, optional
        What is assumed about their errors; balanced if omitted.
    trusted : sequence of str
        Full names of types beyond those of prevalens and scikit-learn that the model may hold. A
        method that could not be saved with these is refused before it is trained.
    scheduler : str, optional
        Address of a Dask scheduler whose workers train the classifiers of the folds and the
        forests, or ``local`` for processes on this machine. The model is the same as that of one
        process with ``OMP_NUM_THREADS=1``.
    progress : callable, optional
        Called with every `Step`.
    on_columns : callable, optional
        Called with what each column became, a tuple of `ColumnUse`, before the training.
    cancelled : callable, optional
        The work stops with a `CancelledError` when this returns True; asked at every step, also
        within the fit.
    text : str, optional
        The column of texts.
    features : sequence of str, optional
        The columns of features, besides that of the texts. If neither is named, all columns that
        are not labels; of an annotation tool's export, those of the items' data.
    labels : sequence of str, optional
        Columns of 0/1, or patterns such as ``topic_*``.
    tags : str, optional
        The column that names the labels of each item. If neither `labels` nor `tags` is given, the
        column of an annotation tool's export; see `prevalens.model.labelled.read_labelled`.
    sep : str
        Separator of the tags; a comma if omitted.
    id : str, optional
        Identifier column; used neither as feature nor as label.
    group : str, optional
        Column that names the group of each item, such as its author or thread. No part is tested
        on items of a group that it was trained on.
    reading : Reading, optional
        Delimiter, encoding, sheet.
    second_labels, second_tags : as `labels` and `tags`, optional
        Answers of a second annotator, at least of some rows; cells are empty where there are none.
        In a column of tags, ``-`` means that there is no label.
    scores : sequence of str, or of sequences of str, optional
        Scores of labellers: for each labeller its columns, as a pattern such as ``p_*`` or several
        names. Texts and features are learnt from besides only if `text` or `features` names them.
    scores_tags : sequence of str, optional
        For each further labeller, the column of its answers, which name labels.
    """
    watch = Watch(progress, cancelled)
    # A method that is not understood is refused before any file is read.
    quantifier = quantifier_of(method, drift=drift, dated=time is not None)
    _check_savable(quantifier, preparation, trusted)
    if min_positives is not None:
        check_int(min_positives, "`min_positives=`", minimum=0)
    data = read_labelled(paths, time=time, date_form=date_form, watch=watch, **columns)
    _check_items(data)
    kept = _frequent(data, min_positives, from_tags=data.tags is not None)
    noise = _noise(data, kept, holdout, agreement=agreement, kappa=kappa, errors=errors)
    held = None if holdout is None else Holdout.of(data, holdout, random_state)
    settings: dict[str, Any] = {
        "method": method,
        "time_budget": time_budget,
        "random_state": random_state,
        "text": data.text if data.only_texts else None,
        "columns": data.columns,
        "preparation": _preparation(data, kept, preparation, kinds, date_form),
        "time_column": data.time,
        "drift": drift,
        "source": data.source,
    }
    with computing_on_cluster(scheduler, waiting=watch.check), _named_places(data):
        model = Model.fit(
            data.items,
            data.Y[:, kept],
            labels=[data.labels[j] for j in kept],
            groups=data.groups,
            time=data.times,
            noise=noise,
            progress=watch.within("fitting", n_items=len(data.items)),
            on_columns=on_columns,
            **settings,
        )
        if held is not None:
            on_stage = watch.within("fitting for the test", n_items=len(held.rest))
            trial = held.fit(data, kept, progress=on_stage, **settings)
            watching = {"progress": progress, "cancelled": cancelled}
            model.holdout = held.evaluate(trial, data, seed=random_state, **watching)
    return model


@contextmanager
def _named_places(data: Labelled) -> Iterator[None]:
    """Name the file, and the line if it is known, in errors about its items."""
    try:
        yield
    except CellError as error:
        raise damaged(data.items.place(error.row), error.what) from None
    except FormatError:
        raise
    except InputError as error:
        raise InputError(f"{data.items.source}: {error}") from error


def _check_savable(
    quantifier: Quantifier | GridSearch, preparation: Any, trusted: Sequence[str]
) -> None:
    """Refuse a method whose fitted objects no model file may hold.

    Parts of this package can always be saved. Others are fitted to a few made-up items first, since
    their state shows only then.
    """
    if preparation is not None:
        check_storable(preparation, trusted)
    parts = [quantifier, *quantifier.get_params(deep=True).values()]
    estimators = [part for part in parts if isinstance(part, BaseEstimator)]
    if all(type(part).__module__.startswith("prevalens.") for part in estimators):
        return
    check_storable(quantifier, trusted)
    rng = np.random.default_rng(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = clone(quantifier).fit(rng.random((40, 4)), np.tile([[0, 1], [1, 0]], (20, 1)))
    # A method may need other items than these.
    except Exception:
        return
    check_storable(trial, trusted)


def _preparation(
    data: Labelled,
    kept: Sequence[int],
    given: Any,
    kinds: Mapping[str, str] | None,
    date_form: str | None,
) -> Any:
    """The preparation; what has nothing to change is refused."""
    if data.scores is not None and (given is not None or (kinds and not data.features)):
        what = "`kinds=`" if given is None else "a preparation"
        raise InputError(f"Scores are read as they are, so that {what} has nothing to change.")
    if kinds and (given is not None or data.only_texts):
        other = "a preparation" if given is not None else "`text=`"
        raise InputError(f"`kinds=` is about feature columns, and with {other} there are none.")
    return labelled_preparation(data, kept, kinds, date_form) if given is None else given


def _check_items(data: Labelled) -> None:
    """Refuse too few items, and warn of empty texts."""
    if len(data.items) < _FEWEST_ITEMS:
        raise InputError(
            f"{data.items.source} has {counted(len(data.items), 'labelled item')}; at least "
            f"{_FEWEST_ITEMS} are needed, and some hundreds for estimates worth having."
        )
    texts = () if data.text is None else data.items[data.text]
    empty = sum(text is None or (isinstance(text, str) and not text.strip()) for text in texts)
    if empty:
        warnings.warn(
            f"{empty:,} of {counted(len(texts), 'item')} in {data.items.source} have an empty "
            "text; they are learnt from as items without words.",
            PrevalensWarning,
            stacklevel=3,
        )


def _frequent(data: Labelled, least: int | None, *, from_tags: bool) -> list[int]:
    """The labels that occur often enough."""
    positives = data.Y.sum(axis=0, dtype=np.int64)
    if least is None and not from_tags:
        _check_labels(data, positives)
        return list(range(len(data.labels)))
    fewest = (5 if len(data.Y) >= 100 else 2) if least is None else least
    kept = np.flatnonzero(positives >= fewest).tolist()
    rare = [data.labels[j] for j in np.flatnonzero(positives < fewest)]
    if not kept:
        raise InputError(
            f"No label has {counted(fewest, 'positive item')} in {data.items.source}; lower "
            "`min_positives=`."
        )
    if rare:
        more = f" and {len(rare) - _NAMED} more" if len(rare) > _NAMED else ""
        warnings.warn(
            f"{counted(len(rare), 'label')} with fewer than {counted(fewest, 'positive item')} "
            f"left out, see `min_positives=`: "
            f"{', '.join(map(repr, rare[:_NAMED]))}{more}.",
            PrevalensWarning,
            stacklevel=3,
        )
    return kept


def _check_labels(data: Labelled, positives: Ints) -> None:
    for name, count in zip(data.labels, positives.tolist(), strict=True):
        if count in (0, len(data.Y)):
            often = "no item" if count == 0 else "every item"
            raise InputError(
                f"In {data.items.source} {often} has the label {name!r}, so it cannot be learnt; "
                "leave it out, or let `min_positives=1` leave out what never occurs."
            )


def _noise(
    data: Labelled, kept: Sequence[int], holdout: float | None, **stated: Any
) -> LabelNoise | None:
    """The errors of annotators, from their answers or as stated; None if nothing is known."""
    Y, second = data.Y[:, kept], None if data.second is None else data.second[:, kept]
    given = {name: value for name, value in stated.items() if value is not None}
    errors = given.pop("errors", "balanced")
    if len(given) + (second is not None) > 1:
        raise InputError(
            "Errors of annotators are taken from a second annotator, from `agreement=` or from "
            "`kappa=`; give one of them."
        )
    if holdout is not None and (given or second is not None):
        raise InputError(
            "`holdout=` tests with the labels as they were given, and these have errors; leave it "
            "out, or leave out what corrects the errors."
        )
    if second is not None:
        return LabelNoise.from_second(Y, second, errors=errors)
    if "agreement" in given:
        return LabelNoise.from_agreement(Y, given["agreement"], errors=errors)
    if "kappa" in given:
        return LabelNoise.from_kappa(Y, given["kappa"], errors=errors)
    if stated.get("errors") is not None:
        raise InputError(
            "`errors=` is an assumption about annotators; name a second annotator, or state their "
            "agreement (`agreement=`, `kappa=`)."
        )
    return None
