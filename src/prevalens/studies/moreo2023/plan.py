"""The paper's experiments as a plan: every table, as described and as printed.

As described is what the text of the paper says. As printed adds the behaviours of its code
without which the printed figures cannot be understood: settings chosen per label by samples that
steer that label alone, with the default settings for labels of fewer than five positives; folds
in the order of the file for the stacked classifier; few and coarse training samples for RQ, and
regressors trained on items that the stacked classifier has seen; ML-kNN without normalisation;
EM run twice for SLD, from the training prevalence whatever the class weights; regressors other
than SVR over classifiers whose settings all labels share.

ACC and PACC invert their two rates wherever these differ, as the text has it. A third way, with the
guard, is the same as described with the library's guard against rates that differ by chance.

Parts that draw folds and training samples, and train regressors, as the paper's code does where its
text differs, are in `PARTS`; the study's plans know them in addition to those of the catalogue.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold

from prevalens.aggregators import SLD
from prevalens.aggregators.regressors import BatchedLinearSVR
from prevalens.catalogue import CatalogueEntry
from prevalens.collection import label_matrix
from prevalens.estimate import PrevalenceEstimate
from prevalens.experiments.plan import Plan
from prevalens.experiments.specs import named_grid
from prevalens.metrics import ae
from prevalens.protocols import MLAPP, Protocol
from prevalens.protocols.drawing import distinct
from prevalens.records import Result
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.selection.grid_search import GridSearch, TunableQuantifier
from prevalens.splits import stratified_holdout
from prevalens.studies.moreo2023.printed import resource
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, take_items

BASES = ("cc", "pcc", "acc", "pacc", "sld")
#: The table of classifiers that the paper discusses without figures, next to those it has.
DISCUSSED = "discussed"
#: The names of the paper's tables, as in its printed figures, and of ours.
TABLES = (*(f"{base}_general" for base in BASES), "mlc", "mlq", "mlqreg", DISCUSSED)
DESCRIBED, PRINTED, GUARDED = "as described", "as printed", "with the guard"

#: Parts of expressions, and what they become where there are very many labels.
_COARSE = (
    ("stack(lr,lr", "stack(lr,lr(tol=0.0001)"),
    ("grid=stack-grid))", "grid=stack-grid),tol=0.001)"),
    (",svr,", ",svr(tol=0.001),"),
)
#: The methods by table, as in the file; `general` has those of all base quantifiers.
_METHODS: dict[str, Any] = tomllib.loads(resource("methods.toml"))
#: The paper's datasets that are available at the paper's sizes, smallest first.
AT_HAND: tuple[str, ...] = tuple(_METHODS["datasets"])


def paper_plan(
    tables: Sequence[str] = TABLES,
    datasets: Sequence[str] = AT_HAND,
    *,
    fast: bool = False,
    seeds: Sequence[int] = (0,),
) -> Plan:
    """The plan of some of the paper's tables.

    Parameters
    ----------
    tables : list of str
        Names of `TABLES`.
    datasets : list of str
    fast : bool
        Small grids and about 1,000 test samples: a smoke run whose figures mean little.
    seeds : list of int

    Examples
    --------
    >>> [str(cell) for cell in paper_plan(["pcc_general"], ["emotions"]).cells()][0]
    'emotions, pcc BC+BA [as described], ml-app, seed 0'
    """
    for table in tables:
        if table not in TABLES:
            raise InputError(f"There is no table {table!r}; there are {', '.join(TABLES)}.")
    methods = {method["label"] + method["variant"]: method for t in tables for method in _table(t)}
    content: dict[str, Any] = {
        "name": "paper-fast" if fast else "paper",
        "datasets": list(datasets),
        "seeds": list(seeds),
        "protocols": [{"name": "ml-app", "more_than": 1_000 if fast else 10_000}],
        "methods": [_small(method) if fast else method for method in methods.values()],
    }
    if "delicious" in datasets:
        coarse = {
            name: change for method in content["methods"] for name, change in _coarser(method)
        }
        content["overrides"] = {
            "delicious": {"protocols": {"ml-app": {"grid": 21}}, "methods": coarse}
        }
    return Plan.from_dict(content, parts=PARTS)


def table_results(results: Iterable[Result], table: str) -> list[Result]:
    """The results that belong to one of the paper's tables, with the methods' names in it.

    Some tables repeat columns of others; a dataset on which nothing else was run is not among the
    results of these.

    Parameters
    ----------
    results : iterable of Result
        Of a run of `paper_plan`.
    table : str
        One of `TABLES`.
    """
    wanted = {(method["label"], method["variant"]) for method in _table(table)}
    chosen = [result for result in results if (result.method, result.variant) in wanted]
    own = {result.dataset for result in chosen if _is_own(result.method, table)}
    return [
        replace(result, method=_printed_name(result.method, table))
        for result in chosen
        if result.dataset in own
    ]


def _is_own(label: str, table: str) -> bool:
    """Tell whether a method of a table is not repeated from another."""
    if table == DISCUSSED:
        return label in {method["label"] for method in _METHODS[DISCUSSED]}
    return label.startswith("pcc ") == (table == "pcc_general")


def _printed_name(label: str, table: str) -> str:
    """Return the name of a method in a table; other tables have other names for the PCC groups."""
    name = label.split(" ", 1)[-1]
    others = {"MLC+BA": "SG", "BC+MLA": "SVR-RQ"}
    return name if table.endswith("_general") else others.get(name, name)


def shared_columns(table: str) -> dict[str, str]:
    """The groups of the PCC table that are columns of another table, with their names there.

    Examples
    --------
    >>> shared_columns("mlc")
    {'BC+BA': 'BC+BA', 'MLC+BA': 'SG'}
    """
    if table.endswith("_general"):
        return {}
    labels = dict.fromkeys(m["label"] for m in _table(table) if m["label"].startswith("pcc "))
    return {label.removeprefix("pcc "): _printed_name(label, table) for label in labels}


def _table(name: str) -> list[dict[str, Any]]:
    """The methods of a table; some tables begin and end with columns of the PCC table."""
    if name.endswith("_general"):
        return _groups(name.removesuffix("_general"))
    pcc = {(method["label"], method["variant"]): method for method in _groups("pcc")}
    single, stacked, corrected = (
        [pcc[f"pcc {group}", way] for way in (DESCRIBED, PRINTED)]
        for group in ("BC+BA", "MLC+BA", "BC+MLA")
    )
    own = {table: [_method(method, {}) for method in _METHODS[table]] for table in TABLES[-4:]}
    if name == "mlc":
        return [single[0], stacked[0], single[1], stacked[1], *own["mlc"]]
    if name == DISCUSSED:
        described = [method for method in own["mlc"] if method["variant"] == DESCRIBED]
        return [single[0], stacked[0], *described, *own[DISCUSSED]]
    regressors = own["mlqreg"]
    if name == "mlq":
        shared = [method for method in regressors if method["label"] in ("Ridge-RQ", "RF-RQ")]
        return [*single, *own["mlq"], *shared, *corrected]
    return [*single, *regressors, *corrected]


def _groups(base: str) -> list[dict[str, Any]]:
    """The four groups with one base quantifier, in all ways."""
    if base in ("acc", "pacc"):
        plain = f"{base}(guard=None)@holdout"
        guarded = [
            _method(method, {"base": base, "tail": f"{base}@holdout"}) | {"variant": GUARDED}
            for method in _METHODS["general"]
            if method["variant"] == DESCRIBED
        ]
        return [*_both_ways(base, plain, plain), *guarded]
    if base != "sld":
        return _both_ways(base, base, base)
    methods = _both_ways(base, base, "sld(prior=training)")
    for method in methods:
        if (method["label"], method["variant"]) == ("sld BC+BA", PRINTED):
            method["expression"] = f"twice({method['expression']})"
    return methods


def _both_ways(base: str, tail: str, coded: str) -> list[dict[str, Any]]:
    names = {"base": base, "tail": tail, "coded": coded}
    return [_method(method, names) for method in _METHODS["general"]]


def _method(entry: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A method of the plan, with some names filled in and its grids joined."""
    method = {name: value for name, value in entry.items() if name not in ("grids", "grid")}
    for name in ("label", "expression"):
        method[name] = method[name].format(**names)
    grids = [*(_METHODS["grids"][name] for name in entry.get("grids", ())), entry.get("grid", {})]
    grid = {name: values for part in grids for name, values in part.items()}
    return method | ({"grid": grid} if grid else {})


def _coarser(method: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The change, if any, that lets the solvers of a method stop earlier.

    With 983 labels, stacked logistic regressions and support vector regressions to the last digit
    would take days. The paper's solvers stop earlier still.
    """
    expression = method["expression"]
    for exact, coarse in _COARSE:
        expression = expression.replace(exact, coarse)
    if expression != method["expression"]:
        yield f"{method['label']} [{method['variant']}]", {"expression": expression}


def _small(method: dict[str, Any]) -> dict[str, Any]:
    """The method with the first two values of each part of its grids."""
    expression = method["expression"].replace("lr-grid", "lr-small")
    expression = expression.replace("stack-grid", "stack-small")
    grid = {name: values[:2] for name, values in method.get("grid", {}).items()}
    return method | {"expression": expression} | ({"grid": grid} if grid else {})


class InOrder(BaseEstimator):  # type: ignore[misc]
    """Folds of consecutive items, in the order of the file.

    Parameters
    ----------
    n_folds : int

    Notes
    -----
    On data that is sorted by label a fold may hold all positives of a label, so that the
    classifier that scores it has seen none.
    """

    code = "in-order"

    def __init__(self, n_folds: int = 5) -> None:
        self.n_folds = n_folds

    def split(self, X: Any, Y: Any = None) -> Iterator[tuple[Any, Any]]:
        """Rows to train on and rows to score, fold by fold."""
        return KFold(self.n_folds).split(X, Y)


class CoarseAPP(Protocol):
    """ML-APP as the paper's code draws it to train RQ: 21 prevalences, few samples.

    Every label with at least five positives is steered to 0, .05, ..., as far as its positives
    suffice; each point has 5,000 / (21 x labels) samples, at least one. If there are too few
    negatives, they are repeated.

    Parameters
    ----------
    size : int
        Items per sample.
    """

    name: ClassVar[str] = "coarse-app"
    points: ClassVar[int] = 21
    n_samples: ClassVar[int] = 5_000
    min_positives: ClassVar[int] = 5

    def __init__(self, size: int = 100) -> None:
        self.size = size

    def _wanted(self, Y: LabelMatrix) -> list[npt.NDArray[np.int64]]:
        """How many positives each sample of a label has, label by label."""
        positives = Y.sum(axis=0, dtype=np.int64)
        repeats = max(self.n_samples // (self.points * Y.shape[1]), 1)
        counts = np.arange(self.points) * self.size // (self.points - 1)
        reached = [
            counts[counts <= n] if n >= self.min_positives else counts[:0] for n in positives
        ]
        return [np.repeat(points, repeats) for points in reached]

    def _count(self, Y: LabelMatrix) -> int:
        return sum(map(len, self._wanted(Y)))

    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        wanted = self._wanted(Y)
        drawn = [
            self._draw_label(y, counts, rng)
            for y, counts in zip(Y.T, wanted, strict=True)
            if len(counts)
        ]
        if not drawn:
            raise InputError(
                f"No label of the pool has {self.min_positives} positives, so none can be steered."
            )
        sizes = np.array([len(counts) for counts in wanted])
        return Samples.from_indices(
            np.concatenate(drawn),
            n_items=len(Y),
            target=np.repeat(np.arange(len(sizes)), sizes),
            prevalence=np.concatenate(wanted) / self.size,
        )

    def _draw_label(
        self, y: LabelMatrix, counts: npt.NDArray[np.int64], rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        positives, negatives = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
        drawn = np.empty((len(counts), self.size), dtype=np.int64)
        for row, n_positives in zip(drawn, counts, strict=True):
            row[:n_positives] = _take(positives, n_positives, rng)
            row[n_positives:] = _take(negatives, self.size - n_positives, rng)
        return drawn


def _take(
    items: npt.NDArray[np.int64], number: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw some of the items, without replacement if there are enough."""
    if number > len(items):
        return rng.choice(items, number)
    return items[distinct(len(items), np.array([number]), rng)]


#: Share of the items held out, as in the paper.
_HELD = 0.4
#: The paper's code also balances pairs of labels when it divides items.
_ORDER = 2
#: Items of a sample, as in the paper.
_SIZE = 100


class _Variant(BaseEstimator):  # type: ignore[misc]
    """Base of the variants: attributes of the wrapped quantifier."""

    quantifier: Any

    @property
    def prevalence_(self) -> Floats:
        """Prevalences in the training items."""
        return np.asarray(self.quantifier_.prevalence_)

    @property
    def group(self) -> str:
        """The group of the quantifier inside."""
        return str(self.quantifier.group)

    def _estimate(self, point: Floats) -> PrevalenceEstimate:
        return PrevalenceEstimate(point, self.quantifier_.labels_)


class TwiceSLD(_Variant):
    """SLD on posteriors that an SLD over the whole pool has already corrected.

    Parameters
    ----------
    quantifier : Quantifier or GridSearch
        With SLD as its aggregator; it is chosen and fitted with SLD run once.
    """

    code = "twice"

    def __init__(self, quantifier: Any) -> None:
        self.quantifier = quantifier

    @property
    def name(self) -> str:
        """The name of the quantifier inside, marked."""
        return f"twice({self.quantifier.name})"

    def fit(self, X: Any, Y: Any, *, labels: Any = None) -> Self:
        """Fit the quantifier inside."""
        self.quantifier_ = clone(self.quantifier).fit(X, Y, labels=labels)
        return self

    def quantify_many(self, X: Any, groups: Samples) -> PrevalenceEstimate:
        """Correct all posteriors by the prevalences of all items, then run SLD per sample."""
        scores = self.quantifier_.score(X)
        Y = np.zeros((2, scores.values.shape[1]), dtype=np.int8)
        prior = np.clip(self.prevalence_, 1e-6, 1 - 1e-6)
        sld = SLD(prior=prior, method="em").fit(Scores(Y, "posteriors"), Y)
        pool = sld.aggregate(scores, Samples.whole(scores.n_items))[0]
        corrected = Scores(_move_prior(scores.values, prior, pool), "posteriors")
        return self._estimate(sld.aggregate(corrected, groups))


def _move_prior(posteriors: npt.NDArray[Any], old: Floats, new: Floats) -> Floats:
    """Convert posteriors under the prior `old` to posteriors under the prior `new`."""
    positive = posteriors * (new / old)
    negative = (1 - posteriors) * ((1 - new) / (1 - old))
    total = positive + negative
    return np.divide(positive, total, out=np.array(posteriors, dtype=float), where=total > 0)


class SeenItems(_Variant):
    """RQ whose regressor learns, and is chosen, on items that the quantifier inside has seen.

    Parameters
    ----------
    quantifier : Quantifier or GridSearch
        Fitted on all items first.
    Cs : list of float
        Settings of the support vector regression to choose from.
    random_state : int
    tol : float
        Relative duality gap at which a regression is finished.

    Notes
    -----
    A classifier is more certain on its training items than on new items, so the regressor learns
    too small a correction.
    """

    code = "seen"

    def __init__(
        self,
        quantifier: Any,
        Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0),
        *,
        random_state: int = 0,
        tol: float = 1e-4,
    ) -> None:
        self.quantifier = quantifier
        self.Cs = Cs
        self.random_state = random_state
        self.tol = tol

    @property
    def name(self) -> str:
        """The method as an expression."""
        return f"seen({self.quantifier.name},svr)"

    @property
    def group(self) -> str:
        """The classifier's half of the quantifier's group, and MLA."""
        return f"{str(self.quantifier.group).split('+', maxsplit=1)[0]}+MLA"

    def fit(self, X: Any, Y: Any, *, labels: Any = None) -> Self:
        """Fit the quantifier on all items, the regressor on some of them, chosen on others."""
        Y, names = label_matrix(Y, labels)
        self.quantifier_ = clone(self.quantifier).fit(X, Y, labels=names)
        rest, validation = stratified_holdout(Y, _HELD, order=_ORDER, seed=self.random_state)
        _, training = stratified_holdout(Y[rest], _HELD, order=_ORDER, seed=self.random_state)
        learned = self._pairs(X, Y, rest[training], CoarseAPP())
        size = _SIZE if len(validation) >= _SIZE else max(1, len(validation) // 2)
        judged = self._pairs(X, Y, validation, MLAPP(size, repeats=5 if Y.shape[1] < 90 else 1))
        self.regressor_ = self._best_regressor(learned, judged)
        return self

    def _pairs(self, X: Any, Y: LabelMatrix, rows: Any, protocol: Protocol) -> Any:
        """Estimated and true prevalences of samples of some items."""
        samples = protocol.draw(Y[rows], self.random_state)
        estimated = self.quantifier_.quantify_many(take_items(X, rows), samples)
        return np.asarray(estimated), samples.mean(Y[rows])

    def _best_regressor(self, learned: Any, judged: Any) -> Any:
        settings = [{"C": C} for C in self.Cs]
        fitted = list(BatchedLinearSVR(tol=self.tol).fit_settings(settings, *learned))
        estimated, true = judged
        losses = [ae(true, np.clip(fit.predict(estimated), 0, 1)).mean() for fit in fitted]
        return fitted[int(np.argmin(losses))]

    def quantify_many(self, X: Any, groups: Samples) -> PrevalenceEstimate:
        """Estimates of the quantifier, corrected by the regressor."""
        estimated = np.asarray(self.quantifier_.quantify_many(X, groups))
        return self._estimate(np.clip(self.regressor_.predict(estimated), 0, 1))


class RejoinedSearch(GridSearch):
    """A search that fits its winner on the training part followed by the held-out part.

    Parameters are those of `GridSearch`. The order matters if folds are consecutive items.
    """

    def _fit_on_all(
        self, quantifier: TunableQuantifier, X: Any, Y: LabelMatrix, labels: Any, groups: Any
    ) -> TunableQuantifier:
        rows = np.concatenate(self._divide(Y, groups))
        groups = None if groups is None else groups[rows]
        return quantifier.fit(take_items(X, rows), Y[rows], labels=labels, groups=groups)


def rejoined(
    quantifier: Any, grid: str = "stack-grid", *, order: int = 2, random_state: int = 0
) -> RejoinedSearch:
    """Search over a named grid, all labels together, with `RejoinedSearch`.

    Parameters
    ----------
    quantifier : Quantifier
    grid : str
        A name of `prevalens.experiments.specs.GRIDS`.
    order, random_state : int
        As in `GridSearch`.
    """
    return RejoinedSearch(
        quantifier,
        named_grid(grid),
        choose="together",
        order=order,
        random_state=random_state,
        progress=False,
    )


#: The study's own parts by the names that its plans call them.
PARTS: dict[str, CatalogueEntry] = {
    "rejoined": CatalogueEntry("rejoined", "quantifier", rejoined),
    TwiceSLD.code: CatalogueEntry(TwiceSLD.code, "quantifier", TwiceSLD),
    SeenItems.code: CatalogueEntry(SeenItems.code, "quantifier", SeenItems),
    InOrder.code: CatalogueEntry(InOrder.code, "folds", InOrder),
    CoarseAPP.name: CatalogueEntry(CoarseAPP.name, "protocol", CoarseAPP),
}
