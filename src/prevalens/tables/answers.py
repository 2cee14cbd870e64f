"""Answers of a labeller: cells that name labels, with scores or without."""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from prevalens.tables.cells import finite, shown
from prevalens.tables.labellers import LabelNames
from prevalens.tables.preparation import CellError
from prevalens.types import Floats

#: Texts of an answer that mean: the labeller named no label.
_NO_LABEL = {"", "none", "no label", "no labels", "-"}
#: Texts that mean: the labeller did not answer.
_NO_ANSWER = {
    "null", "nan", "na", "n/a", "<na>", "#n/a", "refused", "refusal", "<refused>", "[refused]",
    "no answer", "error", "timeout", "timed out",
}  # fmt: skip
#: Characters between the labels of an answer, tried in this order.
_SEPARATORS = (";", "|", ",", "\n", "\t")
#: Keys of objects such as {"label": "billing", "score": 0.9}.
_LABEL_KEYS, _SCORE_KEYS = ("label", "name", "tag"), ("score", "confidence", "probability")


def range_hint(value: float) -> str:
    """What to do about a score outside of its range."""
    hint = ", so divide percentages by 100" if 1 < value <= 100 else ""
    return f"scores lie between 0 and 1{hint}"


def answer_scores(
    cells: Sequence[Any], column: str, names: LabelNames, n_labels: int, separator: str
) -> tuple[Floats, Counter[str]]:
    """The scores of all labels in each answer, and how often labels are named that are not known.

    Parameters
    ----------
    cells : sequence
    column : str
        For messages.
    names : LabelNames
    n_labels : int
    separator : str
        What divides the labels of a text that is not JSON.

    Returns
    -------
    scores : array of float, shape (n_items, n_labels)
    unknown : Counter of str
    """
    scores, unknown = np.zeros((len(cells), n_labels)), Counter[str]()
    for row, cell in enumerate(cells):
        try:
            answer = _answer(cell, separator, names)
            if answer is None:
                scores[row] = np.nan
                continue
            for name, score in answer:
                place = names.find(name)
                if place is None:
                    unknown[name] += 1
                elif not score <= scores[row, place]:
                    # Also if the score is missing, which no comparison holds for.
                    scores[row, place] = score
        except _AnswerError as error:
            text = f"the answer {column!r} is {shown(cell)}; {error}."
            raise CellError(row, text) from None
    return scores, unknown


class _AnswerError(ValueError):
    """An answer cannot be read; the message says what to do."""


def _answer(cell: Any, separator: str, names: LabelNames) -> list[tuple[str, float]] | None:
    """The labels that an answer names, with their scores; None if there is no answer."""
    if isinstance(cell, str):
        cell = _parsed(cell, separator, names)
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, Mapping):
        return _of_mapping(cell)
    if isinstance(cell, (list, tuple, set, np.ndarray)):
        return [pair for entry in cell if entry is not None for pair in _of_entry(entry, names)]
    raise _AnswerError("expected labels, such as 'billing;login' or 'billing:0.9;login:0.4'")


def _parsed(text: str, separator: str, names: LabelNames) -> Any:
    """A text as a list of labels, a mapping, or None if it is no answer."""
    text = text.strip()
    if names.find(text) is not None:
        return [text]
    if text.casefold() in _NO_LABEL:
        return []
    if text.casefold() in _NO_ANSWER:
        return None
    if text[0] not in "[{":
        return [part for part in text.split(separator) if part.strip()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        # Lists that Python wrote have single quotes.
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise _AnswerError(
            "the JSON is broken or cut off; correct it, or write null if there is no answer"
        ) from None


def _of_mapping(cell: Mapping[Any, Any]) -> list[tuple[str, float]]:
    label = next((cell[key] for key in _LABEL_KEYS if isinstance(cell.get(key), str)), None)
    score = next((cell[key] for key in _SCORE_KEYS if key in cell), None)
    if label is not None and (score is not None or len(cell) == 1):
        return [(label, 1.0 if score is None else _confidence(score))]
    if isinstance(cell.get("labels"), list) and isinstance(cell.get("scores"), list):
        # As zero-shot pipelines of transformers answer.
        if len(cell["labels"]) != len(cell["scores"]):
            raise _AnswerError("there are not as many scores as labels")
        return [
            (str(name), _confidence(value))
            for name, value in zip(cell["labels"], cell["scores"], strict=True)
        ]
    return [(str(name).strip(), _confidence(value)) for name, value in cell.items()]


def _of_entry(entry: Any, names: LabelNames) -> list[tuple[str, float]]:
    """The label of one entry of a list: ``billing``, ``billing:0.9``, or an object."""
    if isinstance(entry, Mapping):
        return _of_mapping(entry)
    name, score = _divided(str(entry), names)
    return [(name, _confidence(score))] if name else []


def _divided(text: str, names: LabelNames) -> tuple[str, Any]:
    """The label and the score of a text such as ``billing:0.9``; 1 if there is no score."""
    text = text.strip()
    name, colon, score = text.rpartition(":")
    if not colon or names.find(text) is not None or finite(score) is None:
        return text, 1.0
    return name.strip(), score


def _confidence(value: Any) -> float:
    """The score of one label in an answer; NaN for null."""
    if value is None:
        return math.nan
    number = finite(value)
    if number is None:
        raise _AnswerError(f"{shown(value)} is no score between 0 and 1")
    if not 0 <= number <= 1:
        raise _AnswerError(f"the score {number:g} is outside; {range_hint(number)}")
    return number


def separator_of_answers(cells: Sequence[Any], names: LabelNames) -> str:
    """What divides the labels of texts: the character whose parts are most often known labels."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()[:1] not in "[{"]

    def known(separator: str) -> int:
        parts = (part for text in texts for part in text.split(separator))
        return sum(names.find(_divided(part, names)[0]) is not None for part in parts)

    return max(_SEPARATORS, key=known)
