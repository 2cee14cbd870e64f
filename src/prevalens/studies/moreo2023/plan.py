"""The paper's experiments as a plan: every table, as described and as printed.

As described is what the text of the paper says. As printed adds the behaviours of its code
without which the printed figures cannot be understood: settings chosen per label by samples that
steer that label alone, with the default settings for labels of fewer than five positives; folds
in the order of the file for the stacked classifier; few and coarse training samples for RQ, and
regressors trained on items that the stacked classifier has seen; ML-kNN without normalisation;
EM run twice for SLD; ACC and PACC that adjust by rates which can hardly be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from prevalens.experiments.plan import Plan
from prevalens.records import Result
from prevalens.studies.moreo2023.variants import PARTS
from prevalens.validation import InputError

__all__ = ["AT_HAND", "TABLES", "paper_plan", "table_results"]

BASES = ("cc", "pcc", "acc", "pacc", "sld")
#: The names of the paper's tables, as in its printed figures.
TABLES = (*(f"{base}_general" for base in BASES), "mlc", "mlq", "mlqreg")
#: The paper's datasets that were at hand at the paper's sizes, smallest first.
AT_HAND = (
    "emotions",
    "scene",
    "yeast",
    "birds",
    "genbase",
    "medical",
    "enron",
    "tmc2007_500_paper",
    "tmc2007_500",
    "reuters21578",
    "bibtex",
    "corel5k",
    "delicious",
)
DESCRIBED, PRINTED = "as described", "as printed"

_C = [0.1, 1, 10, 100, 1000]
_LR = {"classifier__C": [1, 10, 100, 1000, 0.1], "classifier__class_weight": ["balanced", "None"]}
_STACK = {
    "classifier__meta__C": [1, 10, 100, 1000, 0.1],
    "classifier__meta__class_weight": ["balanced", "None"],
    "classifier__normalize": ["True", "False"],
}
_SVR = {"aggregator__regressor__C": _C}
#: Parts of expressions, and what they become where there are very many labels.
_COARSE = (
    ("stack(lr,lr", "stack(lr,lr(tol=0.0001)"),
    ("grid=stack-grid))", "grid=stack-grid),tol=0.001)"),
    (",svr,", ",svr(tol=0.001),"),
)
_NEIGHBOURS = {"k": [1, 3, 5, 7, 9], "s": [0.5, 0.7, 1]}


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

    Some tables repeat columns of the PCC table; a dataset on which nothing else was run is not
    among the results of these.

    Parameters
    ----------
    results : iterable of Result
        Of a run of `paper_plan`.
    table : str
        One of `TABLES`.
    """
    wanted = {(method["label"], method["variant"]) for method in _table(table)}
    found = [result for result in results if (result.method, result.variant) in wanted]
    own = {result.dataset for result in found if _is_own(result.method, table)}
    return [
        replace(result, method=_printed_name(result.method, table))
        for result in found
        if result.dataset in own
    ]


def _is_own(label: str, table: str) -> bool:
    """Whether a method was run for this table and not for that of PCC, which others borrow from."""
    return label.startswith("pcc ") == (table == "pcc_general")


def _printed_name(label: str, table: str) -> str:
    """What the table calls a method; the groups of PCC stand in other tables by other names."""
    name = label.split(" ", 1)[-1]
    if table.endswith("_general"):
        return name
    other = {"MLC+BA": "SG", "BC+MLA": "SVR-RQ"}
    return other.get(name, name)


def _table(name: str) -> list[dict[str, Any]]:
    if name.endswith("_general"):
        return _groups(name.removesuffix("_general"))
    return {"mlc": _classifiers, "mlq": _aggregators, "mlqreg": _regressors}[name]()


def _method(
    label: str,
    variant: str,
    expression: str,
    grid: dict[str, Any] | None = None,
    **selection: Any,
) -> dict[str, Any]:
    found: dict[str, Any] = {"label": label, "variant": variant, "expression": expression}
    if grid:
        found["grid"] = grid
    if selection:
        found["selection"] = selection
    return found


def _groups(base: str) -> list[dict[str, Any]]:
    """The four groups with one base quantifier, both ways."""
    return _described_groups(base) + _printed_groups(base)


def _tail(base: str, guard: str = "") -> str:
    """ACC and PACC take their rates from items that were held out, as in the text."""
    return f"{base}{guard}@holdout" if base in ("acc", "pacc") else base


def _described_groups(base: str) -> list[dict[str, Any]]:
    single, stacked = f"lr+{_tail(base)}", f"stack(lr,lr)+{_tail(base)}"
    alone = f"tuned({single},grid=lr-grid,choose=per-label)"
    together = f"tuned({stacked},grid=stack-grid,choose=together)"
    return [
        _method(f"{base} BC+BA", DESCRIBED, single, _LR, choose="per-label"),
        _method(f"{base} MLC+BA", DESCRIBED, stacked, _STACK),
        _method(f"{base} BC+MLA", DESCRIBED, f"rq({alone},svr,scheme=holdout)", _SVR),
        _method(f"{base} MLC+MLA", DESCRIBED, f"rq({together},svr,scheme=holdout)", _SVR),
    ]


def _printed_groups(base: str) -> list[dict[str, Any]]:
    tail = _tail(base, "(guard=None)")
    single, stacked = f"lr+{tail}", f"stack(lr,lr,cv=in-order)+{tail}"
    alone = f"tuned({single},grid=lr-grid,choose=binary-app,min_positives=5,order=2)"
    together = f"rejoined({stacked},grid=stack-grid)"
    corrected = f"rq({alone},svr,protocol=coarse-app,scheme=holdout(order=2))"
    return [
        _method(f"{base} BC+BA", PRINTED, f"twice({alone})" if base == "sld" else alone),
        _method(f"{base} MLC+BA", PRINTED, together),
        _method(f"{base} BC+MLA", PRINTED, corrected, _SVR, order=2),
        _method(f"{base} MLC+MLA", PRINTED, f"seen({together})"),
    ]


def _prefixed(prefix: str, grid: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}{name}": values for name, values in grid.items()}


def _classifiers() -> list[dict[str, Any]]:
    """Other multi-label classifiers, with PCC."""
    inside = _prefixed("classifier__classifier__", _NEIGHBOURS)
    trees = {"classifier__regressor__n_estimators": [10, 20, 50]}
    clusters = {"classifier__n_clusters": [2, 3, 5, 10, 50]}
    described, printed = _described_groups("pcc"), _printed_groups("pcc")
    found = [
        *described[:2],
        *printed[:2],
        _method("DT", DESCRIBED, "tree+pcc", {"classifier__criterion": ["gini", "entropy"]}),
        _method("RF", DESCRIBED, "forest+pcc", {"classifier__n_estimators": [10, 100, 200]}),
        _method(
            "CChain",
            DESCRIBED,
            "chain(lr)+pcc",
            _prefixed("classifier__estimator__", {"C": _C, "class_weight": ["None", "balanced"]}),
        ),
    ]
    for variant, answer in ((DESCRIBED, ""), (PRINTED, "(output=joint,exclude_self=False)")):
        found += [
            _method(
                "ML-knn", variant, f"mlknn{answer}+pcc", _prefixed("classifier__", _NEIGHBOURS)
            ),
            _method("CLEMS", variant, f"clems(mlknn{answer},rf)+pcc", trees | inside),
        ]
    # In the code of LSC the neighbours' settings stay at k = 5, whatever is tried.
    fixed = "lsc(classifier=mlknn(5,output=joint,exclude_self=False))+pcc"
    found += [
        _method("LSC", DESCRIBED, "lsc(classifier=mlknn)+pcc", clusters | inside),
        _method("LSC", PRINTED, fixed, clusters),
    ]
    return found


def _aggregators() -> list[dict[str, Any]]:
    """Other multi-label aggregators, over logistic regression and PCC."""
    return [
        *_counted_alone(),
        _method("RakEL-LPQ", DESCRIBED, "lr+lpq(pcc,random)", _powersets([2, 5, 10, 50, 100])),
        _method("kMeans-LPQ", DESCRIBED, "lr+lpq(pcc,kmeans)", _powersets([5, 15, 50, 100])),
        *(method for method in _regressors() if method["label"] in ("Ridge-RQ", "RF-RQ")),
        *_corrected(),
    ]


def _counted_alone() -> list[dict[str, Any]]:
    """BC+BA with PCC, both ways."""
    return [_described_groups("pcc")[0], _printed_groups("pcc")[0]]


def _corrected() -> list[dict[str, Any]]:
    """BC+MLA with PCC, both ways."""
    return [_described_groups("pcc")[2], _printed_groups("pcc")[2]]


def _powersets(n_clusters: list[int]) -> dict[str, Any]:
    return _LR | {"aggregator__clusterer__n_clusters": n_clusters}


def _regressors() -> list[dict[str, Any]]:
    """Other regressors for RQ; C and class weight of the classifier are shared by all labels."""
    alphas = [0.001, 0.01, 0.1, 1, 10, 100, 1000]
    choices: dict[str, tuple[str, dict[str, Any]]] = {
        "Ridge-RQ": ("ridge", {"alpha": alphas}),
        "MultitaskLasso": ("lasso", {"alpha": alphas}),
        "RF-RQ": ("rf", {"n_estimators": [10, 100, 200]}),
        "StackedLinearSVR": ("stacked-svr", {"C": _C}),
        "ChainedLinearSVR": ("chained-svr", {"C": _C}),
    }
    return [
        *_counted_alone(),
        *(
            _method(
                label,
                DESCRIBED,
                f"lr+rq(pcc,{code})@holdout",
                _LR | _prefixed("aggregator__regressor__", grid),
                choose="together",
            )
            for label, (code, grid) in choices.items()
        ),
        *_corrected(),
    ]


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
