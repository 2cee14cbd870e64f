"""The catalogue: builds quantifiers from the names of methods.

``parse("stack(lr)+rq(pcc,svr)")`` gives the quantifier whose `name` is that text. The catalogue
knows every part by its short name; the grammar itself is in `expression`.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import inspect
import secrets
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, overload

from sklearn.base import ClassifierMixin, RegressorMixin

from prevalens import aggregators as agg
from prevalens import classifiers as clf
from prevalens.aggregators import Aggregator
from prevalens.expression import CODES, Call, Method, error_at, is_name, parse_method
from prevalens.quantifier import Quantifier
from prevalens.types import Classifier
from prevalens.validation import InputError, check_choice

#: Prefix of the name of a quantifier of QuaPy.
QUAPY = "quapy:"


@dataclass(frozen=True)
class CatalogueEntry:
    """One part by its short name.

    Attributes
    ----------
    code : str
    role : {"classifier", "aggregator", "regressor", "clusterer", "scheme", "quantifier"}
        A "quantifier" is a whole method; higher layers register these.
    make : callable
        The class, or a function that builds the part.
    build : callable, optional
        Builds the part from the arguments of an expression, if that is not `make`: for example a
        part that takes any number of other parts.
    """

    code: str
    role: str
    make: Callable[..., Any]
    build: Callable[..., Any] | None = None

    @property
    def summary(self) -> str:
        """The first line of the part's documentation."""
        return (inspect.getdoc(self.make) or "").split("\n", 1)[0]

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters by name."""
        return dict(inspect.signature(self.make).parameters)


def _entries(role: str, makers: Iterable[Any]) -> dict[str, CatalogueEntry]:
    return {make.code: CatalogueEntry(make.code, role, make) for make in makers}


def _auto(scores: clf.Given | None = None, *, time_budget: float = 600.0) -> Quantifier:
    """The automatic choice of classifiers and aggregator, by their error on shifted samples."""
    if scores is not None and not isinstance(scores, clf.Given):
        raise TypeError("auto chooses the classifier itself; only given scores can be named")
    return Quantifier(scores, time_budget=time_budget)


def _binary_relevance(estimator: Classifier | None = None) -> clf.PerLabel:
    """One copy of an estimator per label (binary relevance); without an estimator it is lr."""
    return clf.PerLabel(estimator)


#: Every part by its short name.
ENTRIES: dict[str, CatalogueEntry] = {
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
            clf.HOMER,
            clf.RankSVM,
            clf.MLTSVM,
            clf.MLMPM,
            clf.Funnelling,
            clf.MLARAM,
            clf.AdaBoostMH,
            clf.Given,
        ],
    ),
    "panel": CatalogueEntry(
        "panel", "classifier", clf.ClassifierEnsemble, clf.ClassifierEnsemble.of_members
    ),
    **_entries(
        "aggregator",
        [
            agg.CC,
            agg.PCC,
            agg.ACC,
            agg.PACC,
            agg.SLD,
            agg.RLLS,
            agg.EDy,
            agg.T50,
            agg.XThreshold,
            agg.MaxThreshold,
            agg.Friedman,
            agg.MedianSweep,
            agg.MedianSweep2,
            agg.KDEyML,
            agg.KDEyHD,
            agg.HDy,
            agg.DyS,
            agg.BayesianCC,
            agg.PQ,
            agg.PAV,
            agg.MulticalibratedPCC,
            agg.RQ,
            agg.LPQ,
            agg.ScenarioMixture,
            agg.HDx,
            agg.TrainingPrevalence,
        ],
    ),
    **_entries("regressor", agg.REGRESSORS),
    **_entries("clusterer", [agg.RandomClusters, agg.KMeansClusters, agg.BalancedClusters]),
    **_entries("scheme", [clf.CrossFit, clf.HoldOut]),
    "br": CatalogueEntry("br", "classifier", _binary_relevance),
    "auto": CatalogueEntry("auto", "quantifier", _auto),
}


#: Parameters of classifiers that are classifiers.
_INNER = frozenset({"estimator", "base", "meta", "classifier", "first", "second", "more"})


def parse(text: str, *, more: Mapping[str, CatalogueEntry] | None = None) -> Any:
    """Build the quantifier that an expression names.

    Parameters
    ----------
    text : str
        ``classifier+aggregator``, each with arguments in parentheses where wanted, then
        ``@scheme`` if it is not the default. `prevalens methods` lists the parts.
    more : mapping of name to CatalogueEntry, optional
        Further parts that the name may use.

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
    """Builds the parts of an expression; errors point into its text."""

    def __init__(self, text: str, entries: Mapping[str, CatalogueEntry]) -> None:
        self.text = text
        self.entries = entries

    def quantifier(self, method: Method) -> Any:
        entry = self.entries.get(method.aggregator.name)
        alone = method.classifier is None and method.scheme is None
        if alone and entry is not None and entry.role == "quantifier":
            return self.part(method.aggregator, "quantifier")
        first, last = method.classifier, method.scheme
        classifier = None if first is None else self.part(first, "classifier")
        aggregator = self.part(method.aggregator, "aggregator")
        scheme = None if last is None else self.part(last, "scheme")
        return Quantifier(classifier, aggregator, scheme=scheme)

    def part(self, call: Call, role: str | None = None) -> Any:
        if call.name.startswith(QUAPY):
            return self._checked(call, agg.QuapyPerLabel, (call.name.removeprefix(QUAPY),))
        entry = self._entry(call, role)
        self._check_arguments(call, entry)
        return self._checked(call, entry.build or entry.make)

    def _entry(self, call: Call, role: str | None) -> CatalogueEntry:
        """The entry of that name, if it has the role wanted."""
        entry = self.entries.get(call.name)
        if entry is None:
            raise error_at(self.text, call.position, self._unknown(call.name, role))
        if role is not None and entry.role != role:
            raise error_at(self.text, call.position, _misplaced(entry, role))
        return entry

    def _check_arguments(self, call: Call, entry: CatalogueEntry) -> None:
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
            return make(*args, **kwargs)
        except TypeError as error:
            reason = str(error).replace("__init__() ", "")
            sentence = f"{call.name} cannot take these arguments: {reason}."
            raise error_at(self.text, call.position, sentence) from error

    def value(self, value: object) -> Any:
        """A nested part or method built, a list item by item, anything else as it is.

        A bare word that is no part's name is a string, such as ``balanced``.
        """
        if isinstance(value, Method):
            return self.quantifier(value)
        if isinstance(value, list):
            return [self.value(entry) for entry in value]
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
    """The arguments of parameters that take classifiers; the last parameter may repeat."""
    placed = [(names[min(place, len(names) - 1)], value) for place, value in enumerate(call.args)]
    given: list[object] = []
    for name, value in [*placed, *call.kwargs.items()]:
        if name in _INNER:
            given += value if isinstance(value, list) else [value]
    return [inner for inner in given if isinstance(inner, Call)]


def _misplaced(entry: CatalogueEntry, role: str) -> str:
    there, wanted = (f"{'an' if word[0] in 'aeiou' else 'a'} {word}" for word in (entry.role, role))
    return (
        f"{entry.code!r} is {there}, but {wanted} belongs here; a method is "
        "classifier+aggregator, such as 'lr+pcc'."
    )


ROLES = ("classifier", "aggregator", "regressor", "clusterer", "scheme", "quantifier")

#: Roles that can be seen from what a class descends from.
_KINDS = {Aggregator: "aggregator", ClassifierMixin: "classifier", RegressorMixin: "regressor"}

_Part = TypeVar("_Part", bound=Callable[..., Any])
#: The entries that did not come with the package.
_own: dict[str, CatalogueEntry] = {}


@overload
def register(part: _Part, /, *, code: str = "", role: str = "") -> _Part: ...
@overload
def register(*, code: str = "", role: str = "") -> Callable[[_Part], _Part]: ...
def register(part: Any = None, /, *, code: str = "", role: str = "") -> Any:
    """Make a part known by a short name, for expressions, plans and the command line.

    Parameters
    ----------
    part : class, or function that builds a part
        May be left out, to be used as a decorator with arguments.
    code : str
        The name; by default the attribute `code` of the class.
    role : {"classifier", "aggregator", "regressor", "clusterer", "scheme", "quantifier"}
        What it is used as. By default seen from the class: an `Aggregator`; a classifier or
        regressor of scikit-learn; a "quantifier" if it has `quantify_many`.

    Returns
    -------
    class or function
        The part itself.

    Notes
    -----
    The names of the package's own parts are taken. A registered name may be registered again, so
    that a notebook cell can be run twice.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from prevalens import parse
    >>> from prevalens.classifiers import PerLabel
    >>> @register(code="bayes", role="classifier")
    ... def bayes():
    ...     return PerLabel(GaussianNB())
    >>> parse("bayes+pcc").name
    'br(<GaussianNB>)+pcc'
    >>> unregister("bayes")
    """
    if part is None:
        return lambda given: register(given, code=code, role=role)
    if not callable(part):
        raise InputError(f"register takes a class or a function that builds a part; got {part!r}.")
    name = code or getattr(part, "code", "")
    _check_name(name, part)
    entry = CatalogueEntry(name, _role(part, role), part)
    _own[name] = ENTRIES[name] = entry
    if inspect.isclass(part):
        CODES[part] = name
    return part


def unregister(code: str) -> None:
    """Remove a part that was registered."""
    if code not in _own:
        raise InputError(f"There is no part of your own called {code!r}.")
    CODES.pop(_own[code].make, None)  # type: ignore[call-overload]
    del _own[code], ENTRIES[code]


def _check_name(name: object, part: object) -> None:
    called = getattr(part, "__name__", repr(part))
    if not isinstance(name, str) or not name:
        raise InputError(
            f"{called} has no name to be known by; give it an attribute code, or say "
            "register(code=...)."
        )
    if not is_name(name):
        raise InputError(
            f"{name!r} cannot name {called} in expressions; use letters, digits and dashes."
        )
    if name in ENTRIES and name not in _own:
        raise InputError(f"{name!r} is the name of a part of prevalens; choose another.")


def _role(part: Any, role: str) -> str:
    if role:
        return check_choice(role, "role", ROLES)
    if hasattr(part, "quantify_many"):
        return "quantifier"
    for base, kind in _KINDS.items():
        if inspect.isclass(part) and issubclass(part, base):
            return kind
    raise InputError(
        f"What {part.__name__} is used as cannot be seen from it; say register(role=...), one of "
        f"{', '.join(ROLES)}."
    )


def load_parts(name: str) -> ModuleType:
    """Import a module that registers parts, by its name or as a file.

    Parameters
    ----------
    name : str
        ``my_package.methods``, installed or in the current folder; or ``folder/my_methods.py``.
        The folder is from then on searched for modules, so that processes started from here
        find it too.
    """
    path = Path(name).resolve()
    is_file = name.endswith(".py")
    if is_file and not path.is_file():
        raise InputError(f"There is no file {name}; name a Python file that registers parts.")
    folder = str(path.parent) if is_file else str(Path.cwd())
    if folder not in sys.path:
        # A file has precedence over other modules of the same name.
        sys.path.insert(0 if is_file else len(sys.path), folder)
    try:
        return importlib.import_module(path.stem if is_file else name)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name} cannot be imported: {type(error).__name__}: {error}.") from error


def own_types() -> tuple[str, ...]:
    """The full names of the classes that were registered."""
    made = [entry.make for entry in _own.values() if inspect.isclass(entry.make)]
    return tuple(sorted(f"{part.__module__}.{part.__qualname__}" for part in made))


def own_modules() -> tuple[str, ...]:
    """The modules that registered parts come from."""
    return tuple(sorted({entry.make.__module__ for entry in _own.values()}))


def fingerprints(names: Collection[str]) -> dict[str, str]:
    """The checksums of registered parts, by name; parts of the package have none.

    Examples
    --------
    >>> fingerprints(["lr", "pcc"])
    {}
    """
    chosen = sorted(set(names) & set(_own))
    return {name: stamp(_own[name].make.__module__) for name in chosen}


def stamp(module: str) -> str:
    """Checksum of the file of a module that registered parts; empty for any other."""
    return _checksum(module) if module in own_modules() else ""


@cache
def _checksum(module: str) -> str:
    """Once per process: what was imported does not change when the file does."""
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None:
        # Defined in a session, without a file: it may be another part the next time.
        return secrets.token_hex(8)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
