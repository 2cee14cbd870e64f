"""The catalogue: names of methods to quantifiers, and back.

``parse("stack(lr)+rq(pcc,svr)")`` gives the quantifier whose `name` is that text. The catalogue
knows every part by its short name; the grammar itself is in `expression`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prevalens import aggregators as agg
from prevalens import classifiers as clf
from prevalens.expression import Call, Method, error_at, parse_method
from prevalens.quantifier import Quantifier

__all__ = ["ENTRIES", "Entry", "parse", "parse_value"]

#: What stands before the name of a quantifier of QuaPy.
QUAPY = "quapy:"


@dataclass(frozen=True)
class Entry:
    """One part by its short name.

    Attributes
    ----------
    code : str
    role : {"classifier", "aggregator", "regressor", "clusterer", "scheme", "quantifier"}
        A "quantifier" stands for a whole method; floors above add such.
    make : callable
        The class, or a function that builds the part.
    """

    code: str
    role: str
    make: Callable[..., Any]

    @property
    def summary(self) -> str:
        """The first line of the part's documentation."""
        return (inspect.getdoc(self.make) or "").split("\n", 1)[0]

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters by name."""
        return dict(inspect.signature(self.make).parameters)


def _entries(role: str, makers: Iterable[Any]) -> dict[str, Entry]:
    return {make.code: Entry(make.code, role, make) for make in makers}


def _auto(time_budget: float = 600.0) -> Quantifier:
    """The automatic choice of classifiers and aggregator, by rehearsed quantification loss."""
    return Quantifier(time_budget=time_budget)


#: Every part by its short name.
ENTRIES: dict[str, Entry] = {
    **_entries(
        "classifier",
        [
            clf.PerLabel,
            clf.Stacked,
            clf.Chain,
            clf.ChainEnsemble,
            clf.MLkNN,
            clf.Tree,
            clf.Forest,
            clf.ExtraTrees,
            clf.CLEMS,
            clf.LabelSpaceClusters,
            clf.Powerset,
            clf.RAkEL,
            clf.Panel,
        ],
    ),
    **_entries(
        "aggregator",
        [
            agg.CC,
            agg.PCC,
            agg.ACC,
            agg.PACC,
            agg.SLD,
            agg.HDy,
            agg.PAV,
            agg.RQ,
            agg.LPQ,
            agg.ScenarioMixture,
            agg.HDx,
            agg.TrainingPrevalence,
        ],
    ),
    **_entries("regressor", agg.REGRESSORS),
    **_entries("clusterer", [agg.RandomClusters, agg.KMeansClusters]),
    **_entries("scheme", [clf.CrossFit, clf.HoldOut]),
    "auto": Entry("auto", "quantifier", _auto),
}


#: Parameters of classifiers that are classifiers.
_INNER = frozenset({"estimator", "base", "meta", "classifier", "first", "second", "more"})


def parse(text: str, *, more: Mapping[str, Entry] | None = None) -> Any:
    """The quantifier that a name stands for.

    Parameters
    ----------
    text : str
        ``classifier+aggregator``, each with arguments in parentheses where wanted, then
        ``@scheme`` if not the default one. `prevalens methods` lists the parts.
    more : mapping of name to Entry, optional
        Further parts to know.

    Returns
    -------
    Quantifier
        Or what an entry of `more` with the role "quantifier" makes.

    Examples
    --------
    >>> parse("lr(C=10,class_weight=balanced)+pacc").name
    'lr(C=10,class_weight=balanced)+pacc'
    >>> parse("stack(lr)+rq(pcc,svr)").group
    'MLC+MLA'
    """
    return _Builder(text, ENTRIES | dict(more or {})).quantifier(parse_method(text))


def parse_value(text: str) -> Any:
    """One argument in the grammar of methods: a number, a word, None, a list, or a part.

    Examples
    --------
    >>> parse_value("0.1"), parse_value("balanced"), parse_value("None")
    (0.1, 'balanced', None)
    """
    return _Builder(text, ENTRIES).value(parse_method(f"x(v={text})").aggregator.kwargs["v"])


class _Builder:
    """Builds the parts of one text; the text is kept for errors that point into it."""

    def __init__(self, text: str, entries: Mapping[str, Entry]) -> None:
        self.text = text
        self.entries = entries

    def quantifier(self, method: Method) -> Any:
        if self._is_whole(method):
            return self.part(method.aggregator, "quantifier")
        roles = {
            "classifier": method.classifier,
            "aggregator": method.aggregator,
            "scheme": method.scheme,
        }
        parts = {role: call and self.part(call, role) for role, call in roles.items()}
        return Quantifier(parts["classifier"], parts["aggregator"], scheme=parts["scheme"])

    def _is_whole(self, method: Method) -> bool:
        entry = self.entries.get(method.aggregator.name)
        alone = method.classifier is None and method.scheme is None
        return alone and entry is not None and entry.role == "quantifier"

    def part(self, call: Call, role: str | None = None) -> Any:
        if call.name.startswith(QUAPY):
            return self._checked(call, agg.QuapyPerLabel, (call.name.removeprefix(QUAPY),))
        entry = self._entry(call, role)
        self._check_arguments(call, entry)
        return self._checked(call, entry.make)

    def _entry(self, call: Call, role: str | None) -> Entry:
        """The entry of that name, if it has the role wanted."""
        entry = self.entries.get(call.name)
        if entry is None:
            raise error_at(self.text, call.position, self._unknown(call.name, role))
        if role is not None and entry.role != role:
            raise error_at(self.text, call.position, _misplaced(entry, role))
        return entry

    def _check_arguments(self, call: Call, entry: Entry) -> None:
        for name in call.kwargs:
            if name not in entry.parameters:
                close = difflib.get_close_matches(name, entry.parameters, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                known = ", ".join(entry.parameters) or "none"
                sentence = f"{entry.code} has no parameter {name!r}; it has {known}.{hint}"
                raise error_at(self.text, call.position, sentence)
        if entry.role == "classifier":
            for inner in _inner_classifiers(call, list(entry.parameters)):
                self._entry(inner, "classifier")

    def _checked(self, call: Call, make: Callable[..., Any], first: tuple[Any, ...] = ()) -> Any:
        args = [*first, *(self.value(value) for value in call.args)]
        kwargs = {name: self.value(value) for name, value in call.kwargs.items()}
        try:
            # Parts that hold any number of others are not built by their constructor.
            return getattr(make, "of_members", make)(*args, **kwargs)
        except TypeError as error:
            reason = str(error).replace("__init__() ", "")
            sentence = f"{call.name} cannot take these arguments: {reason}."
            raise error_at(self.text, call.position, sentence) from error

    def value(self, value: Any) -> Any:
        """A nested part or method built, a list item by item, anything else as it is.

        A bare word that is no part's name is a string, such as ``balanced``.
        """
        if isinstance(value, Method):
            return self.quantifier(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if not isinstance(value, Call):
            return value
        known = value.name in self.entries or value.name.startswith(QUAPY)
        if not known and not value.args and not value.kwargs:
            return value.name
        return self.part(value)

    def _unknown(self, name: str, role: str | None) -> str:
        codes = [code for code, entry in self.entries.items() if role in (None, entry.role)]
        close = difflib.get_close_matches(name, codes, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else f" There are {', '.join(codes)}."
        return f"There is no {role or 'part'} called {name!r}.{hint}"


def _inner_classifiers(call: Call, names: list[str]) -> list[Call]:
    """What is given for parameters that are classifiers themselves; the last one may repeat."""
    placed = [(names[min(place, len(names) - 1)], value) for place, value in enumerate(call.args)]
    found: list[Any] = []
    for name, value in [*placed, *call.kwargs.items()]:
        if name in _INNER:
            found += value if isinstance(value, list) else [value]
    return [one for one in found if isinstance(one, Call)]


def _misplaced(entry: Entry, role: str) -> str:
    article = "an" if entry.role[0] in "aeiou" else "a"
    wanted = "an" if role[0] in "aeiou" else "a"
    return (
        f"{entry.code!r} is {article} {entry.role}, but {wanted} {role} belongs here; a method is "
        "classifier+aggregator, such as 'lr+pcc'."
    )
