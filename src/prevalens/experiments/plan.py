"""Plans: which methods to run on which datasets, with which seeds and under which protocols."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from prevalens.experiments.cells import Cell, DataSource
from prevalens.experiments.specs import MethodSpec, Parts, PlanTable, ProtocolSpec, suggestion
from prevalens.metrics import MEASURES
from prevalens.validation import FormatError, InputError


def to_toml(content: Mapping[str, Any]) -> str:
    """Text that ``tomllib.loads`` turns back into `content`; the standard library only reads TOML.

    Examples
    --------
    >>> print(to_toml({"name": "small", "methods": [{"grid": {"C": [1, 10]}}]}), end="")
    name = "small"
    methods = [
      {grid = {C = [1, 10]}},
    ]
    """
    lines = []
    for name, value in content.items():
        text = _toml_value(value)
        if isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
            # A table per line: a plan may have dozens of methods.
            text = "".join(["[\n", *(f"  {_toml_value(item)},\n" for item in value), "]"])
        lines.append(f"{_toml_key(name)} = {text}\n")
    return "".join(lines)


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml_value(name)


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_toml_key(name)} = {_toml_value(inner)}" for name, inner in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, (bool, str)):
        # JSON's escapes are TOML's too; only the delete character needs one more.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (int, float)):
        return repr(value)
    raise InputError(f"A plan holds texts, numbers, lists and tables; got {value!r}.")


_DEFAULT_PROTOCOL = {"name": "ml-app", "more_than": 10_000}


@dataclass(frozen=True)
class Plan:
    """A grid of experiments: every method on every dataset, with every seed and protocol.

    Parameters
    ----------
    name : str
        Letters, digits, dots, dashes and underscores; results go to a folder of that name.
    sources : tuple of DataSource
        The datasets.
    methods : tuple of MethodSpec
    protocols : tuple of ProtocolSpec
    seeds : tuple of int
    metrics : tuple of str
        The first one is shown at the end of a run.
    overrides : dict
        Changes by dataset, or by a pattern such as ``un@*``: seeds, parameters of protocols,
        expressions, grids and selections of methods, or the omission (``skip``) of either.
    interval : float or None
        Level of the intervals and bands that are measured in addition to the errors.
    limits : dict
        ``max_train`` and ``max_test``: most items of every dataset, as in
        `prevalens.datasets.load`.
    parts : mapping of str to CatalogueEntry
        Parts that its methods may name in addition to the catalogue. They are not written to the
        plan's file; workers import the modules that define them.

    Examples
    --------
    >>> methods = [{"expression": "lr+cc"}, {"expression": "lr+pcc"}]
    >>> plan = Plan.from_dict({"name": "small", "datasets": ["synthetic"], "methods": methods})
    >>> [str(cell) for cell in plan.cells()]
    ['synthetic, lr+cc, ml-app, seed 0', 'synthetic, lr+pcc, ml-app, seed 0']
    """

    name: str
    sources: tuple[DataSource, ...]
    methods: tuple[MethodSpec, ...]
    protocols: tuple[ProtocolSpec, ...]
    seeds: tuple[int, ...] = (0,)
    metrics: tuple[str, ...] = ("ae", "rae")
    overrides: Mapping[str, Any] = field(default_factory=dict)
    interval: float | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    parts: Parts = field(default_factory=dict)

    @classmethod
    def from_dict(
        cls,
        content: Mapping[str, Any],
        *,
        where: str = "The plan",
        folder: str | Path = ".",
        parts: Parts | None = None,
    ) -> Plan:
        """Read a plan from plain values.

        Parameters
        ----------
        content : dict
            As in the file.
        where : str
            Name of the plan in error messages.
        folder : str or Path
            Where relative paths start.
        parts : mapping of str to CatalogueEntry, optional
            Parts that the methods may name in addition to those of the catalogue.
        """
        parts = dict(parts or {})
        table = PlanTable(content, where)
        limits = _read_limits(table)
        plan = cls(
            name=_read_name(table),
            sources=_read_sources(table, Path(folder), limits),
            methods=tuple(MethodSpec.read(inner, parts) for inner in table.tables("methods")),
            protocols=tuple(map(ProtocolSpec.read, table.tables("protocols", [_DEFAULT_PROTOCOL]))),
            seeds=table.wholes("seeds", (0,)),
            metrics=_read_metrics(table),
            overrides=table.take("overrides", {}),
            interval=_read_interval(table),
            limits=limits,
            parts=parts,
        )
        table.close()
        _check_distinct(table, "methods", [method.name for method in plan.methods])
        _check_distinct(table, "protocols", [protocol.name for protocol in plan.protocols])
        _check_overrides(plan, table)
        return plan

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_dict`."""
        own = {source.name: source.to_table() for source in self.sources if source.train}
        content = {
            "name": self.name,
            "datasets": [source.name for source in self.sources],
            "seeds": list(self.seeds),
            "metrics": list(self.metrics),
            "protocols": [protocol.to_table() for protocol in self.protocols],
            "methods": [method.to_table() for method in self.methods],
        }
        further = {
            "intervals": self.interval,
            **self.limits,
            "sources": own,
            "overrides": dict(self.overrides),
        }
        return content | {name: value for name, value in further.items() if value}

    def to_toml(self) -> str:
        """The text of the plan's file."""
        return to_toml(self.to_dict())

    def cells(self) -> list[Cell]:
        """All cells, dataset by dataset; cells that share work are neighbours."""
        return [
            Cell(source, method, protocol, seed, self.metrics, self.interval)
            for source in self.sources
            for seed in self._override(source.name).get("seeds", self.seeds)
            for method in self._methods_on(source.name)
            for protocol in self._protocols_on(source.name)
        ]

    def _protocols_on(self, dataset: str) -> list[ProtocolSpec]:
        changes = self._override(dataset).get("protocols", {})
        protocols = []
        for spec in self.protocols:
            change = dict(changes.get(spec.name, {}))
            if not change.pop("skip", False):
                protocols.append(replace(spec, parameters={**spec.parameters, **change}))
        return protocols

    def _methods_on(self, dataset: str) -> list[MethodSpec]:
        changes = self._override(dataset).get("methods", {})
        methods = []
        for method in self.methods:
            # Changes of a variant take precedence over changes of its label.
            change = PlanTable(
                _merged(changes.get(method.label, {}), changes.get(method.name, {})), "The plan"
            )
            if not change.take("skip", False):
                methods.append(_changed(method, change, self.parts) if change.values else method)
        return methods

    def _override(self, dataset: str) -> dict[str, Any]:
        """The overrides of a dataset by its name and by patterns; later ones take precedence."""
        changes: dict[str, Any] = {}
        for pattern, override in self.overrides.items():
            if _fits(dataset, pattern):
                changes = _merged(changes, override)
        return changes


def _fits(dataset: str, pattern: str) -> bool:
    return dataset == pattern or fnmatchcase(dataset, pattern)


def read_plan(path: str | Path) -> Plan:
    """Read a plan from its TOML file; errors name the file, the key and the value."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"The plan {path} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FormatError(f"{path}: this is not a TOML file: {error}.") from error
    return Plan.from_dict(content, where=str(path), folder=path.parent.resolve())


def _changed(method: MethodSpec, change: PlanTable, parts: Parts) -> MethodSpec:
    """The method with an override applied."""
    merged = _merged(method.to_table(), change.options(("expression", "grid", "selection")))
    return MethodSpec.read(PlanTable(merged, change.where, change.key), parts)


def _merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables recursively; values of `change` take precedence."""
    merged = dict(base)
    for name, value in change.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merged(merged[name], value) if both else value
    return merged


def _read_name(table: PlanTable) -> str:
    name = table.text("name")
    if not re.fullmatch(r"[\w][\w.-]*", name):
        table.fail("name", f"must be letters, digits, dots, dashes and underscores; got {name!r}.")
    return name


def _read_limits(table: PlanTable) -> dict[str, int]:
    limits: dict[str, int] = table.options(("max_train", "max_test"))
    for name, value in limits.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            table.fail(name, f"must be a whole number of items, 1 or more; got {value!r}.")
    return limits


def _read_interval(table: PlanTable) -> float | None:
    level = table.take("intervals", None)
    if level is not None and not (isinstance(level, float) and 0 < level < 1):
        table.fail("intervals", f"must be a level between 0 and 1, such as 0.9; got {level!r}.")
    return level


def _read_sources(
    table: PlanTable, folder: Path, limits: Mapping[str, int]
) -> tuple[DataSource, ...]:
    own = table.table("sources")
    files = {name: DataSource.read(name, own.table(name), folder) for name in own.values}
    if files and limits:
        table.fail(next(iter(limits)), "cannot be used with sources of your own.")
    sources = []
    for name in table.texts("datasets"):
        try:
            own_files = files.pop(name) if name in files else None
            sources.append(own_files or DataSource.registered(name, limits))
        except InputError as error:
            table.fail("datasets", f"names {name!r}: {error}")
    for name in files:
        own.fail(name, "is not among the datasets of the plan.")
    return tuple(sources)


def _read_metrics(table: PlanTable) -> tuple[str, ...]:
    metrics = table.texts("metrics", ("ae", "rae"))
    for name in metrics:
        if name not in MEASURES:
            table.fail("metrics", f"names {name!r}; {suggestion(name, MEASURES)}")
    return metrics


def _check_distinct(table: PlanTable, key: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            table.fail(key, f"has {name!r} twice; give each another name or variant.")


def _check_overrides(plan: Plan, table: PlanTable) -> None:
    """Check that every override changes something that exists into something valid."""
    overrides = table.table("overrides")
    for dataset in overrides.values:
        names = [source.name for source in plan.sources]
        if not any(_fits(name, dataset) for name in names):
            _check_known(overrides, dataset, names)
        changes = overrides.table(dataset)
        changes.wholes("seeds", plan.seeds)
        _check_protocols(changes.table("protocols"), plan.protocols)
        _check_methods(changes.table("methods"), plan)
        changes.close()


def _check_protocols(changes: PlanTable, protocols: tuple[ProtocolSpec, ...]) -> None:
    by_name = {protocol.name: protocol for protocol in protocols}
    for name in changes.values:
        _check_known(changes, name, by_name)
        change = changes.table(name)
        _check_skip(change)
        for fixed in ("name", "kind"):
            if fixed in change.values:
                change.fail(fixed, "cannot be different on one dataset; only parameters can.")
        parameters = {key: value for key, value in change.values.items() if key != "skip"}
        merged = {**by_name[name].to_table(), **parameters}
        ProtocolSpec.read(PlanTable(merged, change.where, change.key))


def _check_methods(changes: PlanTable, plan: Plan) -> None:
    names = [name for method in plan.methods for name in (method.label, method.name)]
    known = list(dict.fromkeys(names))
    for label in changes.values:
        _check_known(changes, label, known)
        change = changes.table(label)
        _check_skip(change)
        for part in ("grid", "selection"):
            change.table(part)
        for method in plan.methods:
            if label in (method.label, method.name):
                _changed(method, change, plan.parts)
        change.close()


def _check_skip(change: PlanTable) -> None:
    if not isinstance(change.take("skip", False), bool):
        change.fail("skip", f"must be true or false; got {change.values['skip']!r}.")


def _check_known(table: PlanTable, name: str, known: Collection[str]) -> None:
    if name not in known:
        table.fail(name, f"is not in the plan; {suggestion(name, known)}")
