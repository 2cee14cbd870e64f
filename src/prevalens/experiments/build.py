"""From a method's specification to an unfitted quantifier, seeded, tuned and remembered."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from prevalens.classifiers.labelled import CrossFit
from prevalens.experiments.cache import ScoreCache
from prevalens.experiments.names import parse
from prevalens.experiments.remembered import Remembered
from prevalens.experiments.specs import MethodSpec, ProtocolSpec
from prevalens.experiments.tables import Table
from prevalens.experiments.values import read_value
from prevalens.model_selection import GridSearch
from prevalens.quantifier import Quantifier

__all__ = ["build"]

_SEEDS = ("random_state", "seed")


def build(method: MethodSpec, seed: int, cache: ScoreCache | None = None) -> Any:
    """The quantifier that a method's specification stands for, ready to be fitted.

    Parameters
    ----------
    method : MethodSpec
    seed : int
        Every seed inside that has its default value becomes this one.
    cache : ScoreCache, optional
        Where the classifier's scores are kept.
    """
    quantifier = parse(method.expression)
    for inner in _quantifiers(quantifier):
        if inner.scheme is None:
            inner.set_params(scheme=CrossFit())
    _sow(quantifier, seed)
    if cache is not None:
        _remember(quantifier, cache)
    if not method.grid:
        return quantifier
    grid = {name: [read_value(value) for value in values] for name, values in method.grid.items()}
    return GridSearch(quantifier, grid, seed=seed, progress=False, **_options(method.selection))


def _quantifiers(method: Any) -> list[Quantifier]:
    """The quantifiers in a method, at any depth."""
    parts = [method, *method.get_params(deep=True).values()]
    return [part for part in parts if isinstance(part, Quantifier)]


def _remember(method: Any, cache: ScoreCache) -> None:
    """Keep what classifiers say, wherever it is their scores that an aggregator reads."""
    for inner in _quantifiers(method):
        if _is_remembered(inner):
            inner.set_params(classifier=Remembered(inner.classifier, cache))


def _is_remembered(quantifier: Quantifier) -> bool:
    """Not without a classifier of its own, nor with a panel, whose views are more than scores."""
    classifier, aggregator = quantifier.classifier, quantifier.aggregator
    if classifier is None or hasattr(classifier, "views"):
        return False
    return aggregator is None or aggregator.consumes != "features"


def _sow(quantifier: Any, seed: int) -> None:
    """Give the seed to every part that takes one and was not told another."""
    parts = quantifier.get_params(deep=True)
    for path in parts:
        name = path.rpartition("__")[2]
        if name in _SEEDS:
            owner = parts.get(path.removesuffix(name).removesuffix("__"), quantifier)
            known = inspect.signature(type(owner).__init__).parameters
            if name in known and parts[path] == known[name].default:
                quantifier.set_params(**{path: seed})


def _options(selection: Mapping[str, Any]) -> dict[str, Any]:
    """The search's options, with the protocol built."""
    options = dict(selection)
    if isinstance(options.get("protocol"), Mapping):
        table = Table(options["protocol"], "The plan", "selection.protocol")
        options["protocol"] = ProtocolSpec.read(table).protocol()
    return options
