"""What a plan names: protocols, methods and data, as plain values that can be read and compared."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prevalens.datasets import Dataset
from prevalens.experiments.names import parse
from prevalens.experiments.tables import Table, suggestion
from prevalens.experiments.values import read_value
from prevalens.model_selection import GridSearch
from prevalens.protocols import (
    MLAPP,
    ChronologicalWindows,
    CovariateTilt,
    LabelsetWeights,
    LabelTilt,
    Natural,
    Periods,
    Protocol,
    TwoLabels,
)
from prevalens.validation import InputError

__all__ = ["PROTOCOLS", "MethodSpec", "ProtocolSpec"]

PROTOCOLS: dict[str, type[Protocol]] = {
    kind.name: kind
    for kind in (
        MLAPP,
        Natural,
        TwoLabels,
        LabelsetWeights,
        LabelTilt,
        CovariateTilt,
        ChronologicalWindows,
        Periods,
    )
}
#: Parameters of protocols that the data fill in.
_FROM_DATA = ("X", "times")
#: Parameters of the search that the plan or the runner fills in.
_FROM_PLAN = ("self", "quantifier", "grid", "seed", "n_jobs", "refit", "progress")
_SELECTION = tuple(
    name for name in inspect.signature(GridSearch.__init__).parameters if name not in _FROM_PLAN
)


@dataclass(frozen=True)
class ProtocolSpec:
    """A protocol by name and parameters.

    Parameters
    ----------
    name : str
        What to call it in tables.
    kind : str
        Which protocol it is, one of `PROTOCOLS`.
    parameters : dict
        Its parameters, save those that come from the data.

    Examples
    --------
    >>> ProtocolSpec("shifted", "ml-app", {"size": 50}).protocol()
    MLAPP(size=50)
    """

    name: str
    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, table: Table) -> ProtocolSpec:
        """Read it from a table of a plan."""
        name = table.text("name", table.values.get("kind", "ml-app"))
        kind = table.text("kind", name)
        if kind not in PROTOCOLS:
            key = "kind" if "kind" in table.values else "name"
            table.fail(key, f"is {kind!r}, which is no protocol; {suggestion(kind, PROTOCOLS)}")
        known = inspect.signature(PROTOCOLS[kind]).parameters
        given = table.options(one for one in known if one not in _FROM_DATA)
        table.close()
        return cls(name, kind, given)

    def to_table(self) -> dict[str, Any]:
        """The table that it is read from."""
        kind = {} if self.kind == self.name else {"kind": self.kind}
        return {"name": self.name, **kind, **self.parameters}

    def protocol(self, dataset: Dataset | None = None) -> Protocol:
        """Build the protocol; one that goes by time is told the times of the test items."""
        made = PROTOCOLS[self.kind]
        parameters = dict(self.parameters)
        if dataset is not None and "times" in inspect.signature(made).parameters:
            if dataset.test_times is None:
                raise InputError(
                    f"The protocol {self.name!r} goes by time, but the dataset {dataset.name!r} "
                    "does not tell when its items came."
                )
            parameters["times"] = dataset.test_times
        return made(**parameters)


@dataclass(frozen=True)
class MethodSpec:
    """A method to be run: an expression, and how its parameters are chosen.

    Parameters
    ----------
    label : str
        What to call it in tables.
    expression : str
        The method in the words of the catalogue.
    grid : dict of lists
        Values to try for some of its parameters, each a number or a text in the grammar of
        expressions. Empty: nothing is searched.
    selection : dict
        Options of the search.
    variant : str
        Which of several ways to run the method, if there are several.
    """

    label: str
    expression: str
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    selection: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""

    @property
    def name(self) -> str:
        """The label, and the variant in brackets."""
        return f"{self.label} [{self.variant}]" if self.variant else self.label

    @classmethod
    def read(cls, table: Table) -> MethodSpec:
        """Read it from a table of a plan."""
        expression = table.text("expression")
        found = cls(
            label=table.text("label", expression),
            expression=expression,
            grid=_read_grid(table.table("grid")),
            selection=_read_selection(table.table("selection")),
            variant=table.text("variant", ""),
        )
        table.close()
        if found.selection and not found.grid:
            table.fail("selection", "is given, but there is no grid to select from.")
        _check_parameters(found, table)
        return found

    def to_table(self) -> dict[str, Any]:
        """The table that it is read from."""
        given = {
            "grid": {name: list(values) for name, values in self.grid.items()},
            "selection": dict(self.selection),
            "variant": self.variant,
        }
        head = {"label": self.label, "expression": self.expression}
        return head | {name: value for name, value in given.items() if value}


def _read_grid(table: Table) -> dict[str, tuple[Any, ...]]:
    grid: dict[str, tuple[Any, ...]] = {}
    for name in table.values:
        values = table.take(name)
        if not isinstance(values, (list, tuple)) or not values:
            table.fail(name, f"must be a list of values to try; got {values!r}.")
        for value in values:
            try:
                read_value(value)
            except InputError as error:
                table.fail(name, f"holds {value!r}, which is no value: {_first_line(error)}")
        grid[name] = tuple(values)
    return grid


def _read_selection(table: Table) -> dict[str, Any]:
    given = table.options(_SELECTION)
    table.close()
    if isinstance(given.get("protocol"), Mapping):
        given["protocol"] = ProtocolSpec.read(table.table("protocol")).to_table()
    return given


def _check_parameters(method: MethodSpec, table: Table) -> None:
    """The expression is one, and what the grid names are parameters of it."""
    try:
        known = parse(method.expression).get_params(deep=True)
    except InputError as error:
        sentence = f"is {method.expression!r}, which is no method: {_first_line(error)}"
        table.fail("expression", sentence)
    for name in method.grid:
        if name not in known:
            table.fail(
                f"grid.{name}",
                f"is no parameter of {method.expression!r}; {suggestion(name, known)}",
            )


def _first_line(error: InputError) -> str:
    """The sentence without the picture that points at the character."""
    return str(error).splitlines()[0]
