"""Labellers in tables: which columns are whose scores, and of which label, by their names."""

from __future__ import annotations

import fnmatch
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from prevalens.errors import InputError, PrevalensWarning, counted

#: Where the common part of column names may end.
_BOUNDARY = re.compile(r"[\W_]")
_SAME = re.compile(r"[\s_\-]+")
#: Names that a message shows.
_NAMED = 5


def _normal(name: str) -> str:
    """A name as it is compared: without case, with one kind of space."""
    return _SAME.sub(" ", name.strip().casefold())


class LabelNames:
    """Finds labels by their names, or by what distinguishes these, however they are written."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._place = {label: j for j, label in enumerate(labels)}
        for j, stem in enumerate(labels.values()):
            self._place.setdefault(stem, j)
        normal: dict[str, set[int]] = {}
        for name, j in self._place.items():
            normal.setdefault(_normal(name), set()).add(j)
        # Names that differ only in how they are written are told apart by that alone.
        self._normal = {name: places.pop() for name, places in normal.items() if len(places) == 1}

    def find(self, name: str) -> int | None:
        """The number of the label, or None."""
        place = self._place.get(name)
        return self._normal.get(_normal(name)) if place is None else place


def listed(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(repr, names[:_NAMED])) + more


def stems(columns: Sequence[str], patterns: Sequence[str]) -> dict[str, str]:
    """What distinguishes each column: the part that a pattern leaves open.

    Columns that no pattern with one ``*`` matches lose what all of them start or end with, up to
    a character that is neither letter nor digit.

    Examples
    --------
    >>> stems(["p_billing", "p_bugs"], ["p_*"])
    {'p_billing': 'billing', 'p_bugs': 'bugs'}
    >>> stems(["billing (llm)", "bugs (llm)"], ["billing (llm)", "bugs (llm)"])
    {'billing (llm)': 'billing', 'bugs (llm)': 'bugs'}
    """
    found: dict[str, str] = {}
    for pattern in patterns:
        start, star, end = pattern.partition("*")
        if not star or set("*?[") & set(end) or set("?[") & set(start):
            continue
        for column in columns:
            if fnmatch.fnmatchcase(column, pattern):
                found.setdefault(column, column[len(start) : len(column) - len(end)].strip())
    others = [column for column in columns if column not in found]
    start, end = _common(others), _common([column[::-1] for column in others])[::-1]
    for column in others:
        stem = column.removeprefix(start).removesuffix(end).strip()
        found[column] = stem or column
    return found


def _common(names: Sequence[str]) -> str:
    """What all names start with, up to the last boundary of a word; empty for a single name."""
    if len(names) < 2:
        return ""
    # What the first and the last name in order have in common, all between them have too.
    first, last = min(names), max(names)
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    ends = [match.end() for match in _BOUNDARY.finditer(first[:shared])]
    return first[: ends[-1]] if ends else ""


class MatchedScores(NamedTuple):
    """The columns of scores of each label; see `prevalens.tables.scores.ScorePreparation`."""

    labels: dict[str, str]
    columns: Sequence[Mapping[str, str]]
    tags: list[str]

    def for_labels(self, kept: Sequence[int]) -> MatchedScores:
        """Of some of the labels, by their numbers."""
        names = list(self.labels)
        labels = {names[j]: self.labels[names[j]] for j in kept}
        columns = [
            {label: column for label, column in own.items() if label in labels}
            for own in self.columns
        ]
        return MatchedScores(labels, [own for own in columns if own], self.tags)

    def table_columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*self.score_columns(), *self.tags)

    def score_columns(self) -> tuple[str, ...]:
        """Those of them that hold a score per item, not answers that name labels."""
        return tuple(column for columns in self.columns for column in columns.values())


def match_scores(
    labels: Mapping[str, str],
    scores: Sequence[Mapping[str, str]],
    tags: Sequence[str],
) -> tuple[MatchedScores, list[int]]:
    """Find the score columns of each label, by name.

    Parameters
    ----------
    labels : mapping of str to str
        Names of the labels, and what distinguishes these; see `stems`.
    scores : sequence of mappings of str to str
        Of each labeller: its columns of scores, and what distinguishes these.
    tags : sequence of str
        Columns of answers.

    Returns
    -------
    matched : MatchedScores
        Of the labels that have scores.
    kept : list of int
        The numbers of these labels. A warning names the others, and columns of scores without
        a label.
    """
    matched = [_matched(labels, own) for own in scores]
    known = {label for own in matched for label in own}
    kept = [j for j, label in enumerate(labels) if label in known or tags]
    without = [label for j, label in enumerate(labels) if j not in kept]
    if without:
        warnings.warn(
            f"{counted(len(without), 'label')} of people without scores left out: "
            f"{listed(without)}; without scores nothing shows how frequent they are in a batch.",
            PrevalensWarning,
            stacklevel=3,
        )
    for own, columns in zip(matched, scores, strict=True):
        _warn_of_unmatched(labels, own, columns, {*without})
    return MatchedScores(dict(labels), matched, list(tags)).for_labels(kept), kept


def check_distinct(columns: Sequence[str], labels: Sequence[str]) -> None:
    """Refuse a column of scores that is named twice, or is a column of labels as well."""
    for column, count in Counter(columns).items():
        if count > 1:
            raise InputError(
                f"The column {column!r} is named twice among the scores; name it once."
            )
        if column in labels:
            raise InputError(
                f"The column {column!r} cannot be a score and a label of people at once; name "
                "other columns or another pattern."
            )


def _matched(labels: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, str]:
    """The column of each label that a labeller has scores of."""
    if len(labels) == len(columns) == 1:
        # There is nothing to confuse.
        return dict(zip(labels, columns, strict=True))
    finder, names, found = LabelNames(labels), list(labels), dict[str, str]()
    for column, stem in columns.items():
        place = finder.find(stem)
        if place is None:
            continue
        if names[place] in found:
            raise InputError(
                f"The columns {found[names[place]]!r} and {column!r} are both scores of the label "
                f"{names[place]!r} by one labeller; name them as two labellers, or only one."
            )
        found[names[place]] = column
    if not found:
        raise InputError(
            f"No column of scores ({listed(columns)}) has the name of a label "
            f"({listed(labels)}); apart from what all of them start or end with, they must be "
            "called alike."
        )
    return found


def _warn_of_unmatched(
    labels: Mapping[str, str], own: Mapping[str, str], columns: Mapping[str, str], out: set[str]
) -> None:
    spare = [column for column in columns if column not in own.values()]
    if spare:
        warnings.warn(
            f"{counted(len(spare), 'column')} of scores left out, since people labelled no item "
            f"with them: {listed(spare)}.",
            PrevalensWarning,
            stacklevel=4,
        )
    absent = [label for label in labels if label not in own and label not in out]
    if absent:
        warnings.warn(
            f"The labeller of {listed(own.values())} has no scores of "
            f"{counted(len(absent), 'label')}: {listed(absent)}; only other labellers tell these.",
            PrevalensWarning,
            stacklevel=4,
        )
