"""Exports of annotation tools as plain columns: Label Studio, Argilla and Prodigy.

An export nests the data of an item, what people answered and what models predicted. Here it becomes
columns: those of the item's data, ``labels`` with the list of labels that people gave, and
``predictions`` with a mapping of label to score. None means that nobody answered, or that no model
predicted anything; an empty list or mapping means that no label applies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from prevalens.files import damaged
from prevalens.tables.cells import finite, shown

#: The columns of what people answered and of what models predicted.
LABELS, PREDICTIONS = "labels", "predictions"
#: Columns whose names begin so belong to this package; they are never features.
RESERVED = "prevalens_"

Record: TypeAlias = Mapping[str, Any]


class _Answer(NamedTuple):
    """What one person answered: the labels by question.

    `rest` is the answer to questions that are not mentioned, None if they were not answered.
    """

    annotator: str
    labels: dict[str, list[str]]
    rest: list[str] | None = None

    def of(self, question: str) -> list[str] | None:
        return self.labels.get(question, self.rest)


@dataclass(frozen=True)
class _Item:
    """An item of an export.

    Attributes
    ----------
    data, others : dict
        Cells that describe the item, and cells that only accompany it.
    answers : list of _Answer
        Those who skipped the item are not among them.
    predicted : dict of (question, model) to scores by label
    models : set of str
        Models for which a question that is not in `predicted` means that no label applies.
    """

    data: dict[str, Any]
    others: dict[str, Any] = field(default_factory=dict)
    answers: list[_Answer] = field(default_factory=list)
    predicted: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)


class _UnexpectedError(Exception):
    """A part of a record is not what the schema of its tool says."""


class Export:
    """Turns the records of an export into cells of plain columns.

    Parameters
    ----------
    tool : str
        Name of the tool, for messages.
    decode : callable
        Reads one record.
    items : sequence of _Item
        Items whose questions, annotators and models decide which columns there are.

    Attributes
    ----------
    columns : tuple of str
    item_columns : tuple of str
        The columns of the items' data.

    Notes
    -----
    If there are several questions, each has its own column, ``labels.topic``; if several people
    answered for the same item, there is a column of each of them besides, ``labels@anna``; if there
    are several models, ``predictions@model``.
    """

    def __init__(self, tool: str, decode: Callable[[Record], _Item], items: Sequence[_Item]):
        self.tool, self._decode = tool, decode
        answers = [answer for item in items for answer in item.answers]
        pairs = [pair for item in items for pair in item.predicted]
        asked = [question for answer in answers for question in answer.labels]
        questions = list(dict.fromkeys([*asked, *(question for question, _ in pairs)]))
        # Everybody may have answered that no label applies.
        self._questions = questions or ([""] if answers else [])
        annotators = dict.fromkeys(answer.annotator for answer in answers)
        together = any(len({answer.annotator for answer in item.answers}) > 1 for item in items)
        self._annotators = list(annotators) if together else []
        models = list(dict.fromkeys(model for _, model in pairs))
        self._predicted = {pair: self._predictions(*pair, models) for pair in dict.fromkeys(pairs)}
        own = [name for question in self._questions for name in self._labels(question)]
        own += self._predicted.values()
        self._own = set(own)
        data = dict.fromkeys(self._named(name) for item in items for name in item.data)
        others = dict.fromkeys(self._named(name) for item in items for name in item.others)
        self.item_columns = tuple(name for name in data if not name.startswith(RESERVED))
        self.columns = tuple(dict.fromkeys([*data, *others, *own]))

    def _suffix(self, question: str) -> str:
        return f".{question}" if len(self._questions) > 1 else ""

    def _labels(self, question: str) -> list[str]:
        """The columns of a question: the answer of all, and of each annotator if several are."""
        column = LABELS + self._suffix(question)
        return [column, *(f"{column}@{annotator}" for annotator in self._annotators)]

    def _predictions(self, question: str, model: str, models: Sequence[str]) -> str:
        return PREDICTIONS + self._suffix(question) + (f"@{model}" if len(models) > 1 else "")

    def _named(self, name: str) -> str:
        """The column of a data field; one that is called like a column of labels is renamed."""
        return f"data.{name}" if name in self._own else name

    def row(self, record: Any, place: str) -> dict[str, Any]:
        """The cells of a record by column; `place` is named if it is damaged."""
        item = read_item(self.tool, self._decode, record, place)
        row = {self._named(name): cell for name, cell in {**item.others, **item.data}.items()}
        for question in self._questions:
            given = [(answer.annotator, answer.of(question)) for answer in item.answers]
            known = [labels for _, labels in given if labels is not None]
            column, *single = self._labels(question)
            row[column] = majority(known)
            for name, annotator in zip(single, self._annotators, strict=True):
                own = [labels for who, labels in given if who == annotator]
                row[name] = own[-1] if own else None
        for pair, name in self._predicted.items():
            row[name] = item.predicted.get(pair, {} if pair[1] in item.models else None)
        return row


def majority(answers: Sequence[Sequence[str]]) -> list[str] | None:
    """The labels that more than half of the answers have; None if there is no answer.

    A label that exactly half of them have counts as in the first answer, so that disagreement of
    two people makes labels neither rarer nor more frequent.

    Examples
    --------
    >>> majority([["a"], ["a", "b"], ["b", "c"]]), majority([["a"], ["b"]]), majority([])
    (['a', 'b'], ['a'], None)
    """
    if not answers:
        return None
    counts = Counter(label for labels in answers for label in dict.fromkeys(labels))
    return [
        label
        for label, count in counts.items()
        if 2 * count > len(answers) or (2 * count == len(answers) and label in answers[0])
    ]


def export_of(records: Sequence[Any], places: Iterable[str]) -> Export | None:
    """How the records of an annotation tool's export are read; None if they are plain rows.

    Parameters
    ----------
    records : sequence
        The first one decides which tool it is.
    places : iterable of str
        Where each record is, for messages.
    """
    first = records[0] if records else None
    if not isinstance(first, Mapping):
        return None
    for tool, fits, decode in _TOOLS:
        if fits(first):
            pairs = zip(records, places, strict=False)
            return Export(
                tool, decode, [read_item(tool, decode, record, place) for record, place in pairs]
            )
    return None


def read_item(tool: str, decode: Callable[[Record], _Item], record: Any, place: str) -> _Item:
    """One record; what is not as documented is refused with the tool's name and the place."""
    try:
        return decode(_as(Mapping, record, "the record"))
    except _UnexpectedError as error:
        raise damaged(place, f"this looks like an export of {tool}, but {error}.") from None


_WORDS: dict[type, str] = {Mapping: "an object", list: "a list", str: "a text"}


def _as(kind: type, value: Any, what: str) -> Any:
    if not isinstance(value, kind):
        raise _UnexpectedError(f"{what} is {shown(value)}, not {_WORDS[kind]}")
    return value


def _part(kind: type, record: Record, name: str) -> Any:
    """A part of a record, empty if it is missing or null."""
    value = record.get(name)
    return kind() if value is None else _as(kind, value, f"{name!r}")


def _object(record: Record, name: str) -> dict[str, Any]:
    value = record.get(name)
    return {} if value is None else dict(_as(Mapping, value, f"{name!r}"))


def _objects(record: Record, name: str) -> Iterator[Record]:
    for value in _part(list, record, name):
        yield _as(Mapping, value, f"an entry of {name!r}")


def _label(value: Any, what: str) -> str:
    """A label; a path of a taxonomy, from the root to the leaf, is joined by slashes."""
    if isinstance(value, list) and value:
        return "/".join(_label(part, what) for part in value)
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise _UnexpectedError(f"{what} holds {shown(value)}, which is no label")


def _score(value: Any, what: str) -> float:
    """A score; 1 for a label that is predicted without one."""
    number = 1.0 if value is None else finite(value)
    if number is None:
        raise _UnexpectedError(f"the score of {what} is {shown(value)}, not a number")
    return number


# Label Studio: {"data": {...}, "annotations": [{"result": [...]}], "predictions": [...]}.

_ANSWERED = ("annotations", "completions")
_TASK = {"id", "data", "meta", "annotations", "predictions", "completions"}


def _is_label_studio(record: Record) -> bool:
    if not isinstance(record.get("data"), Mapping):
        return False
    return any(name in record for name in (*_ANSWERED, "predictions")) or {*record} <= _TASK


def _label_studio(record: Record) -> _Item:
    data = dict(_as(Mapping, record.get("data"), "'data'"))
    predicted: dict[tuple[str, str], dict[str, float]] = {}
    models: set[str] = set()
    for prediction in _objects(record, "predictions"):
        model = str(prediction.get("model_version") or "")
        labels, others = _results(prediction, prediction.get("score"))
        predicted |= {(question, model): scores for question, scores in labels.items()}
        if labels or not others:
            models.add(model)
    given = [entry for name in _ANSWERED for entry in _objects(record, name)]
    answers = [
        _Answer(_person(entry.get("completed_by")), {name: list(labels) for name, labels in of}, [])
        for entry, of in _finished(given)
    ]
    return _Item(data, _object(record, "meta"), answers, predicted, models)


def _finished(given: Sequence[Record]) -> Iterator[tuple[Record, Iterable[tuple[str, Any]]]]:
    """The annotations that were not skipped; if some are marked as ground truth, only those."""
    kept = [entry for entry in given if not (entry.get("was_cancelled") or entry.get("skipped"))]
    true = [entry for entry in kept if entry.get("ground_truth")]
    for entry in true or kept:
        labels, others = _results(entry, None)
        # Boxes or spans alone do not say which labels the item has.
        if labels or not others:
            yield entry, labels.items()


def _results(entry: Record, overall: Any) -> tuple[dict[str, dict[str, float]], bool]:
    """Scores of the chosen labels by question, and whether there are results of other kinds."""
    chosen: dict[str, dict[str, float]] = {}
    others = False
    for result in _objects(entry, "result"):
        kind = result.get("type")
        if kind not in ("choices", "taxonomy"):
            others = True
            continue
        question = str(result.get("from_name", ""))
        values = _part(list, _object(result, "value"), kind)
        score = overall if result.get("score") is None else result["score"]
        labels = chosen.setdefault(question, {})
        for value in values:
            labels[_label(value, f"{kind!r}")] = _score(score, question)
    return chosen, others


def _person(value: Any) -> str:
    """The name of an annotator, whom some exports describe by an object."""
    if isinstance(value, Mapping):
        value = value.get("email") or value.get("username") or value.get("id")
    return "" if value is None else str(value)


# Label Studio, short form: {"text": ..., "id": 1, "topic": {"choices": [...]}, "annotator": 1}.


def _is_short_label_studio(record: Record) -> bool:
    return {"id", "annotator", "annotation_id", "lead_time"} <= {*record}


def _short_label_studio(record: Record) -> _Item:
    """The answers stand between the identifier and the annotator, the data before them."""
    names = list(record)
    first, last = names.index("id"), names.index("annotator")
    labels = {}
    for name in names[first + 1 : last]:
        value = record[name]
        parts = value if isinstance(value, list) else [value]
        values = [part for entry in parts for part in _short_values(entry)]
        if values or not parts:
            labels[name] = [_label(part, f"{name!r}") for part in values]
    data = {name: record[name] for name in names[:first]}
    return _Item(data, {}, [_Answer(_person(record["annotator"]), labels, [])])


def _short_values(entry: Any) -> list[Any]:
    if isinstance(entry, str):
        return [entry]
    if not isinstance(entry, Mapping):
        return []
    return [value for kind in ("choices", "taxonomy") for value in _part(list, entry, kind)]


# Argilla 2, nested: {"fields": {...}, "responses": {question: [...]}, "suggestions": {...}}.

#: Responses that are not finished, or of people who discarded the record.
_UNFINISHED = {"draft", "discarded", "pending"}


def _is_argilla(record: Record) -> bool:
    asked = any(name in record for name in ("responses", "suggestions"))
    return asked and isinstance(record.get("fields"), Mapping)


def _argilla(record: Record) -> _Item:
    people: dict[str, dict[str, list[str]]] = {}
    for question, responses in _object(record, "responses").items():
        for response in _as(list, responses, f"the responses to {question!r}"):
            entry = _as(Mapping, response, f"a response to {question!r}")
            if entry.get("status") not in _UNFINISHED:
                _add_response(people, entry.get("user_id"), question, entry.get("value"))
    predicted = {}
    for question, suggestion in _object(record, "suggestions").items():
        entry = _as(Mapping, suggestion, f"the suggestion for {question!r}")
        scores = _suggested(entry.get("value"), entry.get("score"), question)
        if scores is not None:
            predicted[question, str(entry.get("agent") or "")] = scores
    data = {**_object(record, "fields"), **_object(record, "vectors")}
    answers = [_Answer(*answer) for answer in people.items()]
    return _Item(data, _object(record, "metadata"), answers, predicted)


def _add_response(
    people: dict[str, dict[str, list[str]]], person: Any, question: str, value: Any
) -> None:
    labels = _texts(value)
    if labels is not None:
        people.setdefault(_person(person), {})[question] = labels


def _texts(value: Any) -> list[str] | None:
    """The labels of a response; None for ratings, rankings, spans and what is missing."""
    values = [value] if isinstance(value, str) else value
    if isinstance(values, list) and all(isinstance(part, str) for part in values):
        return [_label(part, "a response") for part in values]
    return None


def _suggested(value: Any, score: Any, question: str) -> dict[str, float] | None:
    labels = _texts(value)
    if labels is None:
        return None
    scores = score if isinstance(score, list) else [score] * len(labels)
    if len(scores) != len(labels):
        raise _UnexpectedError(
            f"the suggestion for {question!r} has {len(labels)} labels and {len(scores)} scores"
        )
    pairs = zip(labels, scores, strict=True)
    return {label: _score(number, f"{label!r}") for label, number in pairs}


# Argilla 2, flat, as `to_datasets` gives it: {"text": ..., "topic.responses": [...], ...}.

_RESPONSES, _SUGGESTION = ".responses", ".suggestion"
_ENDINGS = (".users", ".status", ".score", ".agent")


def _is_flat_argilla(record: Record) -> bool:
    # Other tables may have columns that end so, but not with what Argilla says about them.
    return any(
        name.endswith((_RESPONSES, _SUGGESTION))
        and any(f"{name}{ending}" in record for ending in _ENDINGS)
        for name in map(str, record)
    )


def _flat_argilla(record: Record) -> _Item:
    people: dict[str, dict[str, list[str]]] = {}
    predicted, data = {}, {}
    for name, cell in record.items():
        if name.endswith(_RESPONSES):
            question = name.removesuffix(_RESPONSES)
            values = _part(list, record, name)
            users = record.get(f"{name}.users") or [None] * len(values)
            states = record.get(f"{name}.status") or [None] * len(values)
            for value, user, state in zip(values, users, states, strict=False):
                if state not in _UNFINISHED:
                    _add_response(people, user, question, value)
        elif name.endswith(_SUGGESTION):
            question = name.removesuffix(_SUGGESTION)
            scores = _suggested(cell, record.get(f"{name}.score"), question)
            if scores is not None:
                predicted[question, str(record.get(f"{name}.agent") or "")] = scores
        elif name not in ("id", "status", "_server_id") and not name.endswith(_ENDINGS):
            data[name] = cell
    return _Item(data, {}, [_Answer(*answer) for answer in people.items()], predicted)


# Prodigy: {"text": ..., "options": [{"id": ..., "text": ...}], "accept": [...], "answer": ...}.

_STATES = ("accept", "reject", "ignore")
_CONTROL = {"options", "accept", "answer", "label", "config", "meta", "tokens", "spans", "html"}


def _is_prodigy(record: Record) -> bool:
    options = record.get("options")
    # Exams have options and an answer, too, but their options are texts.
    offered = isinstance(options, list) and any(
        isinstance(o, Mapping) and "id" in o for o in options
    )
    return "_task_hash" in record or (offered and record.get("answer") in (None, *_STATES))


def _prodigy(record: Record) -> _Item:
    data = {name: cell for name, cell in record.items() if not _is_control(name)}
    state = record.get("answer")
    if state is not None and state not in _STATES:
        raise _UnexpectedError(f"'answer' is {shown(state)}, not {', '.join(_STATES)}")
    answers = []
    person = _person(record.get("_annotator_id") or record.get("_session_id"))
    if "label" in record and "options" not in record:
        # One label is shown, and the person accepts or rejects it.
        label = _label(record["label"], "'label'")
        if state in ("accept", "reject"):
            answers.append(_Answer(person, {label: [label] if state == "accept" else []}))
    elif state == "accept":
        names = {entry.get("id"): entry.get("text") for entry in _objects(record, "options")}
        chosen = [_option(value, names) for value in _part(list, record, "accept")]
        answers.append(_Answer(person, {"": chosen}))
    return _Item(data, _object(record, "meta"), answers)


def _is_control(name: str) -> bool:
    return name in _CONTROL or name.startswith("_")


def _option(value: Any, names: Mapping[Any, Any]) -> str:
    """The label of a chosen option: its identifier, or its text if that is a number."""
    if isinstance(value, str):
        return _label(value, "'accept'")
    text = names.get(value) if isinstance(value, int) else None
    return _label(value if text is None else text, "'accept'")


_TOOLS: tuple[tuple[str, Callable[[Record], bool], Callable[[Record], _Item]], ...] = (
    ("Label Studio", _is_label_studio, _label_studio),
    ("Label Studio", _is_short_label_studio, _short_label_studio),
    ("Argilla", _is_argilla, _argilla),
    ("Argilla", _is_flat_argilla, _flat_argilla),
    ("Prodigy", _is_prodigy, _prodigy),
)
