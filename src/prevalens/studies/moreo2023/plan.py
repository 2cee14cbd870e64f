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
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from prevalens.experiments.plan import Plan
from prevalens.records import Result
from prevalens.studies.moreo2023.printed import resource
from prevalens.studies.moreo2023.variants import PARTS
from prevalens.validation import InputError

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
