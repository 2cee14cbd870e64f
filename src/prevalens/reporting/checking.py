"""The door of reporting: which results go into one table, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from prevalens.datasets.registry import names
from prevalens.records import Result
from prevalens.reporting.printed import TWINS, method_place
from prevalens.validation import InputError

__all__ = [
    "column_of",
    "in_order",
    "of_one_protocol",
    "ordered_columns",
    "ordered_datasets",
    "ordered_names",
    "twins_among",
]


def column_of(result: Result) -> str:
    """What a method is called in a table: its label, and its variant in brackets if it has one."""
    return f"{result.method} [{result.variant}]" if result.variant else result.method


def of_one_protocol(
    results: Iterable[Result], metric: str, protocol: str | None = None
) -> list[Result]:
    """Results of one protocol that can stand in one table, checked, in a fixed order."""
    found = list(results)
    protocols = sorted({result.protocol for result in found})
    if protocol is not None:
        found = [result for result in found if result.protocol == protocol]
    elif len(protocols) > 1:
        raise InputError(
            f"The results are under {len(protocols)} protocols, {', '.join(protocols)}; choose one "
            "with protocol=."
        )
    if not found:
        raise InputError(
            "There are no results to put into a table."
            if protocol is None
            else f"There are no results under the protocol {protocol!r}; "
            f"there are {', '.join(protocols) or 'none'}."
        )
    for result in found:
        _check_errors(result, metric)
    _check_distinct(found)
    return sorted(found, key=_identity)


def _identity(result: Result) -> tuple[str, str, int]:
    return result.dataset, column_of(result), result.seed


def _name(result: Result) -> str:
    return f"{column_of(result)} on {result.dataset}, seed {result.seed}"


def _check_errors(result: Result, metric: str) -> None:
    if metric not in result.errors:
        known = ", ".join(sorted(result.errors)) or "nothing"
        raise InputError(f"{_name(result)}, has no errors by {metric!r}; it has {known}.")
    errors, shift = result.errors[metric], result.shift
    if errors.shape != shift.shape or errors.ndim != 1:
        raise InputError(
            f"{_name(result)}, has errors of shape {errors.shape} but shifts of shape "
            f"{shift.shape}; there must be one of each per sample."
        )
    bad = ~(np.isfinite(errors) & np.isfinite(shift))
    if bad.any():
        raise InputError(
            f"{_name(result)}, has no finite {metric} or shift in sample {int(bad.argmax())}; "
            "run it again."
        )


def _check_distinct(results: Sequence[Result]) -> None:
    seen: dict[tuple[str, str, int], Result] = {}
    for result in results:
        other = seen.setdefault(_identity(result), result)
        if other is not result:
            raise InputError(
                f"There are two results for {_name(result)}: {other.expression!r} and "
                f"{result.expression!r}; give the results of one table at a time, or label them "
                "differently."
            )


def in_order(found: Iterable[str], wanted: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """Those of `found` that are wanted, in the order they are wanted in; all, if None."""
    known = tuple(found)
    if wanted is None:
        return known
    for name in wanted:
        if name not in known:
            raise InputError(f"There is no {what} {name!r} in the results; {_known(known)}.")
    return tuple(dict.fromkeys(wanted))


def _known(names_: Sequence[str]) -> str:
    return f"there are {', '.join(names_)}"


def ordered_columns(results: Iterable[Result]) -> tuple[str, ...]:
    """Columns of a table: the paper's methods in its order, then the others by name."""
    columns = {
        column_of(result): (method_place(result.method), result.variant) for result in results
    }
    return tuple(sorted(columns, key=columns.__getitem__))


def ordered_datasets(results: Iterable[Result]) -> tuple[str, ...]:
    """Datasets in the order of the registry, twins side by side, then the others by name."""
    return ordered_names(result.dataset for result in results)


def ordered_names(datasets: Iterable[str]) -> tuple[str, ...]:
    """Names of datasets in that order, each once."""
    places: dict[str, float] = {name: place for place, name in enumerate(names())}
    places |= {twin: places[name] + 0.5 for name, twin in TWINS.items()}
    return tuple(sorted(set(datasets), key=lambda name: (places.get(name, len(places)), name)))


def twins_among(datasets: Iterable[str]) -> list[str]:
    """Datasets that do not count in averages, as the same data are there as the paper had them."""
    found = set(datasets)
    return [name for name, twin in TWINS.items() if found >= {name, twin}]
