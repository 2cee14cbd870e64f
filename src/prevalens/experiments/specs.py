"""Specifications of methods and protocols, as the tables of a plan's file give them."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from prevalens import catalogue
from prevalens.catalogue import CatalogueEntry, parse_value
from prevalens.datasets import Dataset
from prevalens.expression import Call, Method, parse_method
from prevalens.protocols import Protocol
from prevalens.protocols.families import ALIASES, FAMILIES, family_name
from prevalens.selection.grid_search import GridSearch
from prevalens.validation import InputError, check_choice

_NOTHING: Any = object()


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the end of an error sentence: the closest known name, or all known names."""
    choices = sorted(known)
    close = difflib.get_close_matches(name, choices, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(choices)}."


class PlanTable:
    """A table of a plan's file, read key by key; unknown keys are refused by `close`.

    Parameters
    ----------
    values : mapping
    where : str
        Name of the file, or of the plan, in error messages.
    key : str
        Path of the table in the file, empty at the top.
    """

    def __init__(self, values: Any, where: str, key: str = "") -> None:
        self.where = where
        self.key = key
        if not isinstance(values, Mapping):
            raise InputError(f"{where}: {key or 'a plan'} must be a table; got {values!r}.")
        self.values = dict(values)
        self._asked: set[str] = set()

    def fail(self, name: str, sentence: str) -> NoReturn:
        """Refuse the value of a key."""
        raise InputError(f"{self.where}: {self.path(name)} {sentence}")

    def path(self, name: str) -> str:
        """The full path of a key."""
        return f"{self.key}.{name}" if self.key else name

    def take(self, name: str, default: Any = _NOTHING) -> Any:
        """The value of a key, unchecked."""
        self._asked.add(name)
        value = self.values.get(name, default)
        if value is _NOTHING:
            self.fail(name, "is missing.")
        return value

    def text(self, name: str, default: Any = _NOTHING) -> str:
        """A text that is not empty, unless the default is."""
        value = self.take(name, default)
        if not isinstance(value, str) or (name in self.values and not value.strip()):
            self.fail(name, f"must be a text; got {value!r}.")
        return value

    def texts(self, name: str, default: Any = _NOTHING) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._list(name, default, str, "texts"))

    def wholes(self, name: str, default: Any = _NOTHING) -> tuple[int, ...]:
        """A list of whole numbers, 0 or more."""
        values = self._list(name, default, int, "whole numbers")
        if any(value < 0 for value in values):
            self.fail(name, f"must hold no negative number; got {min(values)}.")
        return tuple(values)

    def table(self, name: str) -> PlanTable:
        """A table inside this one; empty if it is not there."""
        return PlanTable(self.take(name, {}), self.where, self.path(name))

    def tables(self, name: str, default: Any = _NOTHING) -> list[PlanTable]:
        """A list of tables."""
        values = self.take(name, default)
        if not isinstance(values, (list, tuple)) or not values:
            self.fail(name, f"must be a list of tables, as in [[{name}]]; got {values!r}.")
        return [
            PlanTable(value, self.where, f"{self.path(name)}[{position}]")
            for position, value in enumerate(values)
        ]

    def options(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of the given keys that are present, unchecked."""
        names = list(names)
        self._asked.update(names)
        return {name: self.values[name] for name in names if name in self.values}

    def close(self) -> None:
        """Refuse keys that were not read."""
        for name in self.values:
            if name not in self._asked:
                self.fail(name, f"is not known; {suggestion(name, self._asked)}")

    def _list(self, name: str, default: Any, kind: type, what: str) -> list[Any]:
        values = self.take(name, default)
        if not isinstance(values, (list, tuple)) or not values:
            self.fail(name, f"must be a list of {what}; got {values!r}.")
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool):
                self.fail(name, f"must be a list of {what}; it holds {value!r}.")
        repeated = [value for value in values if values.count(value) > 1]
        if repeated:
            self.fail(name, f"names {repeated[0]!r} twice.")
        return list(values)


def read_value(value: Any) -> Any:
    """Return the object that a value of a plan represents; the name of a part gives the part.

    Examples
    --------
    >>> read_value("None"), read_value("balanced"), read_value("0.1"), read_value(10)
    (None, 'balanced', 0.1, 10)
    """
    if isinstance(value, (list, tuple)):
        return [read_value(item) for item in value]
    value_tree(value)  # refuses what is not one value
    return parse_value(value) if isinstance(value, str) else value


def value_tree(value: Any) -> Any:
    """The content of a value, independent of how it is written.

    Numbers keep their kind: 1 and 1.0 mean different things to some estimators.

    Examples
    --------
    >>> value_tree("10"), value_tree(10), value_tree(" 10.0 ")
    (10, 10, 10.0)
    """
    if isinstance(value, (list, tuple)):
        return [value_tree(item) for item in value]
    if isinstance(value, (bool, int, float)):
        return value
    if not isinstance(value, str):
        raise InputError(f"A value is a number, a text or a list; got {value!r}.")
    call = parse_method(f"value({value})").aggregator
    if len(call.args) != 1 or call.kwargs:
        raise InputError(f"{value!r} is not one value.")
    return _tree(call.args[0])


def method_tree(expression: str) -> Any:
    """The content of an expression, independent of blanks and the order of named arguments."""
    return _tree(parse_method(expression))


def _tree(node: Any) -> Any:
    """A node of an expression without its place in the text."""
    if isinstance(node, Method):
        parts = {"classifier": node.classifier, "scheme": node.scheme}
        return {"aggregator": _tree(node.aggregator)} | {
            name: _tree(part) for name, part in parts.items() if part is not None
        }
    if isinstance(node, Call):
        kwargs = {name: _tree(arg) for name, arg in node.kwargs.items()}
        return {
            "name": node.name,
            "args": [_tree(arg) for arg in node.args],
            "kwargs": kwargs,
        }
    return [_tree(item) for item in node] if isinstance(node, list) else node


def names_in(content: Any) -> set[str]:
    """The names of all parts in the result of `method_tree` or `value_tree`, at any depth.

    Examples
    --------
    >>> sorted(names_in(method_tree("stack(lr)+rq(pcc,svr)")))
    ['lr', 'pcc', 'rq', 'stack', 'svr']
    """
    if isinstance(content, Mapping):
        own = {content["name"]} if {"name", "args", "kwargs"} <= set(content) else set()
        return own.union(*map(names_in, content.values()))
    if isinstance(content, (list, tuple)):
        return set().union(*map(names_in, content))
    return set()


def canonical(content: Mapping[str, Any]) -> str:
    """JSON text of a content, independent of the order of its keys."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of a content, independent of the order of its keys."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


#: The paper's range of C, and of class weights, in the order its code tries them.
_C = [1.0, 10.0, 100.0, 1000.0, 0.1]
_WEIGHTS = ["balanced", None]

#: Grids by name: the paper's for logistic regression and for its stacked classifier, and small
#: ones for a smoke run.
GRIDS: dict[str, dict[str, list[Any]]] = {
    "lr-grid": {"classifier__C": _C, "classifier__class_weight": _WEIGHTS},
    "stack-grid": {
        "classifier__meta__C": _C,
        "classifier__meta__class_weight": _WEIGHTS,
        "classifier__normalize": [True, False],
    },
    "lr-small": {"classifier__C": [1.0, 100.0]},
    "stack-small": {"classifier__meta__C": [1.0, 100.0]},
}


def tuned(
    quantifier: Any,
    grid: str = "lr-grid",
    choose: str = "auto",
    *,
    min_positives: int = 0,
    order: int = 1,
    random_state: int = 0,
) -> GridSearch:
    """Search over a named grid.

    Parameters
    ----------
    quantifier : Quantifier
    grid : str
        One of `GRIDS`.
    choose : {"auto", "together", "per-label", "binary-app"}
    min_positives, order, random_state : int
        As in `GridSearch`.
    """
    return GridSearch(
        quantifier,
        named_grid(grid),
        choose=choose,
        min_positives=min_positives,
        order=order,
        random_state=random_state,
        progress=False,
    )


def named_grid(name: str) -> dict[str, list[Any]]:
    """One of `GRIDS` by its name."""
    return GRIDS[check_choice(name, "grid", tuple(GRIDS))]


#: Parts that a plan knows in addition to those of the catalogue, by their short names.
Parts: TypeAlias = Mapping[str, CatalogueEntry]
_TUNED = {"tuned": CatalogueEntry("tuned", "quantifier", tuned)}


def parse(text: str, parts: Parts | None = None) -> Any:
    """Build the quantifier that a name stands for, with grid searches inside where it says so.

    Parameters
    ----------
    text : str
        A method in the grammar of the catalogue; ``tuned(...)`` stands for a grid search.
    parts : mapping of str to CatalogueEntry, optional
        Further parts, as a plan may bring them.

    Examples
    --------
    >>> parse("rq(tuned(lr+pcc,grid=lr-grid),svr)").aggregator.base.choose
    'auto'
    """
    return catalogue.parse(text, more={**_TUNED, **(parts or {})})


#: Parameters of protocols that the data fill in.
_FROM_DATA = ("X", "times", "groups")
#: Parameters of the search that the plan or the runner fills in.
_FROM_PLAN = ("self", "quantifier", "grid", "random_state", "n_jobs", "refit", "progress")
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
        Which protocol it is: a name of `prevalens.protocols.families`.
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
    def read(cls, table: PlanTable) -> ProtocolSpec:
        """Read it from a table of a plan."""
        name = table.text("name", table.values.get("kind", "ml-app"))
        kind = table.text("kind", name)
        if kind not in FAMILIES and kind not in ALIASES:
            key = "kind" if "kind" in table.values else "name"
            table.fail(key, f"is {kind!r}, which is no protocol; {suggestion(kind, FAMILIES)}")
        kind = family_name(kind)
        known = inspect.signature(FAMILIES[kind]).parameters
        given = table.options(parameter for parameter in known if parameter not in _FROM_DATA)
        table.close()
        return cls(name, kind, given)

    def to_table(self) -> dict[str, Any]:
        """The table of a plan that `read` turns back into this."""
        kind = {} if self.kind == self.name else {"kind": self.kind}
        return {"name": self.name, **kind, **self.parameters}

    @property
    def is_temporal(self) -> bool:
        """Whether samples follow the times of the items."""
        return "times" in inspect.signature(FAMILIES[self.kind]).parameters

    def protocol(self, dataset: Dataset | None = None) -> Protocol:
        """Build the protocol; a temporal protocol receives the times of the test items."""
        made = FAMILIES[self.kind]
        parameters = dict(self.parameters)
        if dataset is not None and self.is_temporal:
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
        The method in the grammar of the catalogue.
    grid : dict of lists
        Values to try for some of its parameters, each a number or a text in the grammar of
        expressions. Empty: nothing is searched.
    selection : dict
        Options of the search.
    variant : str
        Which of several ways to run the method, if there are several.
    time : bool
        Whether the method is told the times of the training items and of the samples.
    """

    label: str
    expression: str
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    selection: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    time: bool = False

    @property
    def name(self) -> str:
        """The label, and the variant in brackets."""
        return f"{self.label} [{self.variant}]" if self.variant else self.label

    @classmethod
    def read(cls, table: PlanTable, parts: Parts | None = None) -> MethodSpec:
        """Read it from a table of a plan that knows some parts of its own."""
        expression, time = table.text("expression"), table.take("time", False)
        if not isinstance(time, bool):
            table.fail("time", f"must be true or false; got {time!r}.")
        method = cls(
            label=table.text("label", f"{expression}, time" if time else expression),
            expression=expression,
            grid=_read_grid(table.table("grid")),
            selection=_read_selection(table.table("selection")),
            variant=table.text("variant", ""),
            time=time,
        )
        table.close()
        if method.time and method.grid:
            table.fail("time", "is true, but a search over a grid knows no times.")
        if method.selection and not method.grid:
            table.fail("selection", "is given, but there is no grid to select from.")
        _check_parameters(method, table, parts)
        return method

    def to_table(self) -> dict[str, Any]:
        """The table of a plan that `read` turns back into this."""
        given = {
            "grid": {name: list(values) for name, values in self.grid.items()},
            "selection": dict(self.selection),
            "variant": self.variant,
            "time": self.time,
        }
        head = {"label": self.label, "expression": self.expression}
        return head | {name: value for name, value in given.items() if value}


def _read_grid(table: PlanTable) -> dict[str, tuple[Any, ...]]:
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


def _read_selection(table: PlanTable) -> dict[str, Any]:
    given = table.options(_SELECTION)
    table.close()
    if isinstance(given.get("protocol"), Mapping):
        given["protocol"] = ProtocolSpec.read(table.table("protocol")).to_table()
    return given


def _check_parameters(method: MethodSpec, table: PlanTable, parts: Parts | None) -> None:
    """Check that the expression can be parsed and that the grid names its parameters."""
    try:
        known = parse(method.expression, parts).get_params(deep=True)
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
    """The first line of an error, without the lines that point at the character."""
    return str(error).splitlines()[0]
