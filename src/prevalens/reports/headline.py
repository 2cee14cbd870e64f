"""A result in sentences: its headline, the notices in plain words, and its method in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from prevalens.errors import InputError
from prevalens.expression import Call, Method, parse_method
from prevalens.model.result import FEWEST_FOR_VERDICT, BatchResult
from prevalens.reports import batches
from prevalens.reports.batch_charts import range_text, share_text
from prevalens.reports.grid import count
from prevalens.reports.render import CAPTIONS

#: Labels, and alarming batches, that a headline names.
_NAMED = 3
_TEXTS: dict[str, str] = CAPTIONS["headline"]
_PARTS: dict[str, str] = CAPTIONS["parts"]
#: A hint for the command line at the end of a sentence, and a p-value.
_COMMAND = re.compile(r"[:;] (prevalens \w+|--)[^.;]*(?=\.$|\. )| \(chance alone [^)]*\)")


@dataclass(frozen=True)
class Headline:
    """The most important sentences on a result.

    Attributes
    ----------
    alarm : str
        Which batches raise the alarm, alone or together, and what to do; empty if none does.
    text : str
        What has moved, for batches that get a verdict.
    is_alarm : bool
        Whether the alarm comes first: most batches raise it, or the one that is shown first.
    """

    alarm: str
    text: str
    is_alarm: bool

    def __str__(self) -> str:
        order = (self.alarm, self.text) if self.is_alarm else (self.text, self.alarm)
        return " ".join(part for part in order if part)


def headline(report: BatchResult) -> Headline:
    """What can be said of a result in a few sentences.

    Moves are those of `BatchResult.moved`; an estimate is never given without its band.

    Examples
    --------
    >>> result = BatchResult(
    ...     ["spam"], ["May"], [90], [[0.3]], [0.1], lower=[[0.2]], upper=[[0.4]], level=0.9
    ... )
    >>> print(headline(result))
    In May, 1 of 1 label has clearly moved since training: spam rose from 10.0 % to 30.0 % (20.0 \
to 40.0 %). In brackets: the 90 % band.
    """
    alarms, shown = report.unusual, batches.focus(report)
    most = 2 * int(alarms.sum()) > len(alarms)
    first = most or bool(alarms[shown])
    if first:
        # The batch to speak of besides the alarm: the latest, or largest, that gets a verdict.
        order = np.arange(len(alarms)) if report.ordered else report.sizes
        judged = np.flatnonzero(report.judged)
        text = "" if most or not judged.size else _statement(report, judged[order[judged].argmax()])
    else:
        text = _statement(report, shown)
        if not report.ordered and len(alarms) > 1:
            text = f"{_groups(report)} {text}".strip()
    return Headline(_alarm(report), text, first)


def _alarm(report: BatchResult) -> str:
    alarming = np.flatnonzero(report.unusual)
    if not alarming.size:
        return ""
    names = [report.batches[i] for i in alarming[::-1][:_NAMED]] if report.ordered else [
        report.batches[i] for i in alarming[np.argsort(-report.sizes[alarming])][:_NAMED]
    ]  # fmt: skip
    if len(alarming) == 1:
        return _TEXTS["alarm_one"].format(name=names[0])
    more = ", ..." if len(alarming) > _NAMED else ""
    return _TEXTS["alarm"].format(
        n=len(alarming), n_batches=len(report.batches), names=", ".join(names) + more
    )


def _groups(report: BatchResult) -> str:
    if report.lower is None:
        return ""
    n = int((report.moved != 0).any(axis=1).sum())
    judged = int(report.judged.sum())
    text = _TEXTS["groups"] if n else _TEXTS["groups_none"]
    return text.format(n=n, n_groups=judged, verb="has" if n == 1 else "have")


def _statement(report: BatchResult, batch: int) -> str:
    """What has moved in one batch."""
    names = {
        "batch": report.batches[batch],
        "n_items": count(int(report.sizes[batch])),
        "s": "" if report.sizes[batch] == 1 else "s",
        "fewest": FEWEST_FOR_VERDICT,
        "band": band_name(report),
    }
    if report.lower is None:
        return _TEXTS["no_intervals"].format(**names)
    if report.sizes[batch] < FEWEST_FOR_VERDICT:
        return _TEXTS["few_items"].format(**names)
    if not report.judged[batch]:
        return _TEXTS["drifting"].format(**names)
    kind = "time" if report.ordered or len(report.batches) == 1 else "group"
    moved = [j for j in batches.movers(report, batch) if report.moved[batch, j]]
    if not moved:
        return _TEXTS[f"{kind}_still"].format(**names)
    moves = [move_text(report, batch, label, kind) for label in moved[:_NAMED]]
    if len(moved) > _NAMED:
        moves.append(_TEXTS["more"].format(n=len(moved) - _NAMED))
    return _TEXTS[f"{kind}_moved"].format(
        n_moved=len(moved),
        n_labels=f"{len(report.labels)} label{'s' if len(report.labels) > 1 else ''}",
        verb=_TEXTS[f"{kind}_{'one' if len(moved) == 1 else 'several'}"],
        moves="; ".join(moves),
        **names,
    )


def band_name(report: BatchResult) -> str:
    """Such as ``90 % band over all labels``."""
    level = "" if report.level is None else f"{100 * report.level:g} % "
    return f"{level}band" + (" over all labels" if len(report.labels) > 1 else "")


def move_text(report: BatchResult, batch: int, label: int, kind: str = "time") -> str:
    """A supported move of one label: its training prevalence, its estimate, and the band."""
    lower, upper = report.bands
    assert lower is not None
    assert upper is not None
    up = report.moved[batch, label] > 0
    return _TEXTS[f"{kind}_{'up' if up else 'down'}"].format(
        label=report.labels[label],
        before=share_text(report.training[label]),
        now=share_text(report.point[batch, label]),
        range=range_text(lower[batch, label], upper[batch, label], "to"),
    )


def in_plain_words(report: BatchResult) -> tuple[Headline, list[str]]:
    """The headline and the notices, warnings first, without commands and p-values.

    Notices that say what the headline's alarm says are left out.
    """
    found = headline(report)
    notices = [n for n in report.notices if not (found.alarm and _ALARM in n.text)]
    notices.sort(key=lambda notice: notice.level != "warning")
    texts = dict.fromkeys(_COMMAND.sub("", notice.text) for notice in notices)
    return Headline(_COMMAND.sub("", found.alarm), found.text, found.is_alarm), list(texts)


#: Part of the sentence of an alarm; see `misfit_sentence`.
_ALARM = "from the training data in more than the label mix"


def method_in_words(method: str) -> str:
    """What a method does, for people who do not know its name.

    Examples
    --------
    >>> method_in_words("lr+pacc")
    'Logistic regression for each label; its probabilities averaged, corrected by its error rates'
    >>> method_in_words("panel(lr,forest)+mixture")[:72]
    'Several classifiers (logistic regression for each label, a random forest'
    """
    try:
        parsed = parse_method(method)
    except InputError:
        # Parts without a name in the catalogue.
        return method
    parts = [part for part in (parsed.classifier, parsed.aggregator) if part is not None]
    text = "; ".join(map(_part_in_words, parts))
    return text[:1].upper() + text[1:]


def _part_in_words(part: Call) -> str:
    inner = list(dict.fromkeys(_inner_words(part)))
    return _PARTS.get(part.name, part.name) + (f" ({', '.join(inner)})" if inner else "")


def _inner_words(part: Call) -> Iterator[str]:
    for value in part.args:
        calls = [value.classifier, value.aggregator] if isinstance(value, Method) else [value]
        for call in calls:
            if isinstance(call, Call) and call.name in _PARTS:
                yield _part_in_words(call)
