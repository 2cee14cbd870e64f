"""Tasks of the workers: describe models, preview files, train, and estimate prevalences."""

from __future__ import annotations

import json
import shlex
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from prevalens.cli.demo import METHOD
from prevalens.cli.evaluate import label_rows, verdict_fields
from prevalens.cli.results import write_results
from prevalens.datasets.tickets import SEPARATOR, tickets, write_tickets
from prevalens.errors import InputError, PrevalensWarning
from prevalens.model.evaluate import evaluate_files
from prevalens.model.examples import Examples
from prevalens.model.fit import fit_files
from prevalens.model.groups import Grouping, grouping_of
from prevalens.model.model import Model
from prevalens.model.progress import Progress, Step, Watch
from prevalens.model.quantify import quantify_tables
from prevalens.model.result import BatchResult
from prevalens.model.sample import sample_tables
from prevalens.model.trust import ESTIMATE, TRAINING, TrustReport
from prevalens.reports.batch_page import report_html
from prevalens.reports.batches import size_order
from prevalens.reports.headline import in_plain_words, method_in_words
from prevalens.reports.page import write_page
from prevalens.reports.trust_page import trust_page, verdict
from prevalens.service.answers import encoded, write_answer
from prevalens.service.problems import Problem
from prevalens.service.schemas import QuantifyBody, refused
from prevalens.service.screening import (
    ClientTable,
    guessed_encoding,
    opened,
    preview,
    too_many,
)
from prevalens.service.settings import Limits
from prevalens.service.storage import keep_reading, stored_reading
from prevalens.service.workers import TASKS, Report
from prevalens.tables.formats import as_table
from prevalens.tables.labels import (
    WHOLE_CELL,
    answered_rows,
    label_columns,
    labels_of_columns,
    tag_sets,
)
from prevalens.tables.opening import Reading
from prevalens.tables.table import Chunk, Table

Task = Mapping[str, Any]

#: Loaded models that a worker keeps.
_LOADED_MODELS = 4
#: As in `prevalens demo`.
_DEMO = {"text": "text", "tags": "tags", "sep": SEPARATOR, "method": METHOD}
#: A column that no client's table has.
_GROUPS = "\0group"
_FORM_FIELDS = ("by", "by_time", "freq", "columns", "min_items", "interval")
_FIT_OPTIONS = (
    *("text", "features", "labels", "tags", "sep", "id", "time", "date_form", "drift"),
    *("scores", "scores_tags", "method", "time_budget", "holdout"),
)
#: Labels that a summary of a file names.
_COUNTED = 100


@dataclass(frozen=True)
class _ClientReading(Reading):
    """Opens files of a client, within the limits and under the client's names for them."""

    names: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def open(self, path: str | Path) -> Table:
        return opened(Path(path), self.names[str(path)], self.limits)


def _load(path: str) -> Model:
    """Load a model, or take it from the cache if its file has not been written since."""
    try:
        written = Path(path).stat().st_mtime_ns
    except OSError:
        written = 0
    return _load_version(path, written)


@lru_cache(maxsize=_LOADED_MODELS)
def _load_version(path: str, written: int) -> Model:  # noqa: ARG001
    return Model.load(path)


def _progress(report: Report) -> Progress:
    """A callback for steps of the workflow that passes them on as stages and shares."""

    def progress(step: Step) -> None:
        share = min(1.0, step.done / step.total) if step.total else None
        items = f" {step.n_items:,} items" if step.n_items else ""
        report(step.detail or f"{step.stage}{items}", share)

    return progress


def _about(model: Model) -> dict[str, Any]:
    """The description of a model that clients get."""
    summary = model.summary.to_dict()
    return {
        "labels": list(model.labels),
        "training": dict(zip(model.labels, model.prevalence.tolist(), strict=True)),
        "n_items": summary.pop("n_items"),
        "method": summary.pop("method"),
        "method_in_words": method_in_words(model.summary.method),
        "kind": summary.pop("kind"),
        "columns": list(model.columns or ("text",)),
        "drift": model.drift.sentences,
        "summary": {**summary, "created": model.provenance.get("created")},
        "quality": _quality(model.holdout),
    }


def _describe(task: Task, report: Report) -> dict[str, Any]:
    report("reading the model")
    return _about(_load(task["model"]))


def _preview(task: Task, report: Report) -> dict[str, Any]:
    """Preview a file as it is to be read; the encoding of a text that is no UTF-8 is guessed."""
    report("reading")
    return _previewed(Path(task["path"]), task["name"], task["limits"])


def _previewed(path: Path, name: str, limits: Limits) -> dict[str, Any]:
    reading = stored_reading(path)
    guess = None if reading["encoding"] else guessed_encoding(path, name, limits)
    if guess is not None:
        reading["encoding"] = guess
        keep_reading(path, reading)
    shown = preview(opened(path, name, limits))
    return {**shown, "reading": {**reading, "guessed": guess is not None}}


def _count_labels(task: Task, report: Report) -> dict[str, Any]:
    """Count in how many items of a file each label occurs."""
    report("counting labels")
    table = opened(Path(task["path"]), task["name"], task["limits"])
    columns = label_columns(table, task["labels"] or ())
    tags, sep = _tag_column(task)
    counts, n_items, n_without = Counter[str](dict.fromkeys(columns, 0)), 0, 0
    for chunk in table.chunks(columns or [tags]):
        sets = _label_sets(chunk, columns, tags, sep)
        counts.update(label for labels in sets for label in labels)
        n_items += len(sets)
        n_without += sets.count(set())
    common = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_COUNTED])
    return {"n_items": n_items, "n_without": n_without, "n_labels": len(counts), "labels": common}


def _tag_column(task: Task) -> tuple[str, str]:
    """The column of tags and their separator; a category is a tag that nothing divides."""
    if task.get("category") is not None:
        return task["category"], WHOLE_CELL
    return task["tags"], task["sep"]


def _label_sets(chunk: Chunk, columns: Sequence[str], tags: str, sep: str) -> list[set[str]]:
    """The labels of each labelled row, from columns of 0 and 1 or else from one of tags."""
    if columns:
        Y = labels_of_columns(chunk, columns)
        return [{columns[j] for j in np.flatnonzero(row).tolist()} for row in Y]
    (rows,) = answered_rows([chunk], tags)
    return tag_sets(chunk.take(rows), tags, sep)


def _train(task: Task, report: Report) -> dict[str, Any]:
    asked: dict[str, Any] = {n: task[n] for n in _FIT_OPTIONS if task.get(n) is not None}
    if task.get("category") is not None:
        asked["tags"], asked["sep"] = _tag_column(task)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrevalensWarning)
        model = fit_files(
            task["path"],
            **asked,
            reading=_ClientReading(names={task["path"]: task["source"]}, limits=task["limits"]),
            progress=_progress(report),
        )
    report("saving")
    model.save(task["output"])
    about = _about(model)
    messages = [str(w.message) for w in caught if issubclass(w.category, PrevalensWarning)]
    about["summary"]["warnings"] = list(dict.fromkeys([*about["summary"]["warnings"], *messages]))
    return about


def _quality(tested: TrustReport | None) -> dict[str, Any] | None:
    """How good a model is in held-out shifted samples."""
    if tested is None:
        return None
    errors, naive = (tested.error(name, tested.moved).mean for name in (ESTIMATE, TRAINING))
    lines = tested.lines()
    return {
        **verdict_fields(verdict(tested)),
        "sentence": "In held-out samples whose label mix was shifted, estimates are off by "
        f"{100 * errors:.1f} points on average; the training prevalence is off by "
        f"{100 * naive:.1f}.",
        "tested": " ".join(tested.notices),
        "shifts": list(lines.places),
        "errors": {line.name: line.values.tolist() for line in lines.lines},
    }


def _demo(task: Task, report: Report) -> dict[str, Any]:
    """Write the built-in tickets as files; train on the labelled ones unless that was done."""
    report("writing tickets")
    folder = Path(task["folder"]) / "tickets"
    write_tickets(tickets(), folder)
    months = sorted((folder / "months").iterdir())
    about = None
    if task["train"]:
        train = folder / "train.csv"
        about = _train({**task, **_DEMO, "path": str(train), "source": train.name}, report)
    files = [
        {"path": str(path), "preview": _previewed(path, path.name, task["limits"])}
        for path in months
    ]
    return {"about": about, "files": files}


def _quantify(task: Task, report: Report) -> dict[str, Any]:
    return estimate(_load(task["model"]), task, _progress(report))


def _sample(task: Task, report: Report) -> dict[str, Any]:
    return draw_sheet(_load(task["model"]), task, _progress(report))


def _evaluate(task: Task, report: Report) -> dict[str, Any]:
    """Evaluate a model on labelled files, and write what `prevalens evaluate` writes."""
    files = dict(task["files"])
    tags, sep = _tag_column(task)
    found = evaluate_files(
        _load(task["model"]),
        list(files),
        tags=tags,
        sep=sep,
        **{name: task[name] for name in ("labels", "interval", "size", "n_samples")},
        reading=_ClientReading(names=files, limits=task["limits"]),
        progress=_progress(report),
    )
    answer = verdict_fields(verdict(found))
    folder = Path(task["folder"])
    for ending in ("csv", "json"):
        everything = {**answer, **found.to_dict()}
        write_results(folder / f"result.{ending}", label_rows(found), everything)
    write_page(folder / "result.html", trust_page(found))
    return {"model": task["name"], **answer}


TASKS.update(
    demo=_demo,
    describe=_describe,
    evaluate=_evaluate,
    labels=_count_labels,
    preview=_preview,
    quantify=_quantify,
    sample=_sample,
    train=_train,
)


def estimate(model: Model, task: Task, progress: Progress) -> dict[str, Any]:
    """Estimate prevalences as a client requested, and write the answers to the task's folder.

    Parameters
    ----------
    model : Model
    task : mapping
        ``body``, or ``folder`` with ``body.json``, or ``files`` and ``fields`` of a form;
        ``uploads`` by identifier; ``formats`` wanted, none for an answer without files;
        ``limits``; ``name`` of the model.
    progress : callable
    """
    asked, files, labelled = asked_for(task)
    tables = tables_of(model, asked, files, task["limits"])
    examples = Examples(model.labels) if task["formats"] else None
    result = quantify_tables(
        model,
        tables,
        _grouping(tables, asked),
        min_items=asked.min_items,
        interval=asked.interval,
        labelled=[opened(Path(path), name, task["limits"]) for path, name in labelled],
        watch=Watch(progress, None),
        examples=examples,
        with_provenance=bool(task["formats"]),
    )
    answer = answer_of(result, task["name"], model.summary.method)
    names = [[name for _, name in given] for given in (files, labelled)]
    answer["command"] = _command(task["name"], asked, *names)
    about = {"model": task["name"], "n_items": answer["n_items"]}
    if examples is None:
        return {**about, "content": encoded(answer)}
    folder = Path(task["folder"])
    write_answer(folder, answer, size_order(result), map(examples.of, result.batches))
    if "files" not in task:
        readings = [stored_reading(Path(path)) for path, _ in files]
        request = {"model": task["name"], **asked.model_dump(), "readings": readings}
        (folder / "request.json").write_text(json.dumps(request))
    for ending in task["formats"]:
        if ending == "html":
            write_page(folder / "result.html", report_html(result, model))
        else:
            result.write(folder / f"result.{ending}")
    return about


def _grouping(tables: Sequence[Table], asked: QuantifyBody) -> Grouping:
    by = _GROUPS if asked.groups is not None else asked.by
    freq = asked.freq if asked.by_time is not None else None
    return grouping_of(tables, by, asked.by_time, freq, None)


def draw_sheet(model: Model, task: Task, progress: Progress) -> dict[str, Any]:
    """Draw items that a client wants to label, and write them to the task's folder.

    Parameters
    ----------
    model : Model
    task : mapping
        As in `estimate`; ``n``, ``stratified`` and ``seed`` of the draw.
    progress : callable
    """
    asked, files, _ = asked_for(task)
    tables = tables_of(model, asked, files, task["limits"])
    sheet = sample_tables(
        model,
        tables,
        _grouping(tables, asked),
        task["n"],
        min_items=asked.min_items,
        stratified=task["stratified"],
        random_state=task["seed"],
        watch=Watch(progress, None),
    )
    rows = [{name: row[name] for name in row if name != _GROUPS} for row in sheet.rows]
    replace(sheet, rows=rows).write(Path(task["folder"]) / "to_label.csv")
    return {}


_Files = list[tuple[str, str]]


def asked_for(task: Task) -> tuple[QuantifyBody, _Files, _Files]:
    """The request, the files it is about, and files with labels, both as (path, name)."""
    try:
        if "files" in task:
            return _from_form(task["fields"]), task["files"], task.get("labelled", [])
        body = task["body"] if "body" in task else Path(task["folder"], "body.json").read_bytes()
        asked = QuantifyBody.model_validate_json(body)
    except ValidationError as error:
        raise refused(error) from error
    return asked, _uploaded(task, asked.uploads or ()), _uploaded(task, asked.labelled or ())


def _uploaded(task: Task, keys: Sequence[str]) -> _Files:
    for key in keys:
        if key not in task["uploads"]:
            raise Problem(
                "not_found", f"There is no upload {key}; unused ones are removed in time."
            )
    return [task["uploads"][key] for key in keys]


def _from_form(fields: Mapping[str, str]) -> QuantifyBody:
    """Check the fields of a form, which are texts.

    An empty field counts as left out, except `interval`, where empty means no interval.
    """
    unknown = sorted(set(fields) - set(_FORM_FIELDS))
    if unknown:
        raise Problem(
            "bad_input", f"There is no field {unknown[0]!r}; there are {', '.join(_FORM_FIELDS)}."
        )
    values: dict[str, Any] = {name: value for name, value in fields.items() if value}
    if "interval" in fields:
        values["interval"] = _number(fields, "interval", float) if fields["interval"] else None
    if "min_items" in values:
        values["min_items"] = _number(fields, "min_items", int)
    try:
        if "columns" in values:
            values["columns"] = json.loads(values["columns"])
    except (ValueError, RecursionError):
        raise Problem("bad_input", "The field 'columns' is not JSON.") from None
    # The files were stored already; one text stands for them in the check.
    return QuantifyBody.model_validate({**values, "texts": [""]})


def _number(fields: Mapping[str, str], name: str, kind: type) -> Any:
    try:
        return kind(fields[name])
    except ValueError:
        raise Problem("bad_input", f"The field {name!r} is not a number.") from None


def tables_of(
    model: Model,
    asked: QuantifyBody,
    files: Sequence[tuple[str, str]],
    limits: Limits,
) -> list[Table]:
    """The items as tables whose columns have the names that the model knows."""
    tables = [opened(Path(path), name, limits) for path, name in files]
    if asked.texts is not None and not files:
        column = _text_column(model)
        tables = [_in_memory([{column: text} for text in asked.texts], "texts", asked, limits)]
    elif not files:
        tables = [_in_memory(asked.rows or [], "rows", asked, limits)]
    unknown = [name for name in asked.columns if name not in (model.columns or ("text",))]
    if unknown:
        raise InputError(f"The model does not ask for a column {unknown[0]!r}.")
    _check_one_each(model.columns or ("text",), asked.columns)
    return [table.renamed(asked.columns) for table in tables]


def _check_one_each(wanted: Sequence[str], given: Mapping[str, str]) -> None:
    """Refuse a column of the items that stands for two of the model's."""
    of: dict[str, str] = {}
    for name in wanted:
        first = of.setdefault(given.get(name, name), name)
        if first != name:
            raise InputError(
                f"The column {given.get(name, name)!r} is named for {first!r} and for {name!r} of "
                "the model; each needs a column of its own."
            )


def _text_column(model: Model) -> str:
    if model.summary.kind != "text":
        raise InputError(
            f"The model reads the columns {', '.join(map(repr, model.columns or ()))}, not texts; "
            "send rows or files."
        )
    return (model.columns or ("text",))[0]


def _in_memory(
    rows: list[dict[str, Any]], name: str, asked: QuantifyBody, limits: Limits
) -> ClientTable:
    if len(rows) > limits.rows:
        raise too_many(name, len(rows), "rows", limits.rows)
    if not any(rows):
        raise InputError(f"The {name} have no columns.")
    if asked.groups is not None:
        if len(asked.groups) != len(rows):
            raise InputError(f"There are {len(rows)} {name} but {len(asked.groups)} groups.")
        rows = [{**row, _GROUPS: group} for row, group in zip(rows, asked.groups, strict=True)]
    return ClientTable(as_table(rows, name=name), limits)


def answer_of(result: BatchResult, name: str, method: str) -> dict[str, Any]:
    """The answer of the HTTP interface."""
    known = None if result.n_labelled is None else int(result.n_labelled.sum())
    more = [result.more_labels_of(i) or 0 for i in range(len(result.batches))] if known else [0]
    headline, messages = in_plain_words(result)
    return {
        "headline": vars(headline),
        "messages": messages,
        "model": name,
        "method": method_in_words(method),
        "n_items": int(result.sizes.sum()),
        "n_labelled": known or 0,
        "more_labels": max(more),
        "width": _mean_width(result),
        "level": result.level,
        "labels": list(result.labels),
        "training": dict(zip(result.labels, result.training.tolist(), strict=True)),
        "ordered": result.ordered,
        "groups": [
            {"name": row["group"], **{name: row[name] for name in row if name != "group"}}
            for row in result.batch_rows()
        ],
        "rows": [
            {**row, "moved": move}
            for row, move in zip(result.to_rows(), result.moved.ravel().tolist(), strict=True)
        ],
        "warnings": [vars(notice) for notice in result.notices],
    }


def _mean_width(result: BatchResult) -> float | None:
    if result.lower is None or result.upper is None:
        return None
    return float((result.upper - result.lower).mean())


def _command(
    name: str, asked: QuantifyBody, files: Sequence[str], labelled: Sequence[str]
) -> str | None:
    """The command line that does the same; None if there is none."""
    if not files or asked.columns:
        return None
    parts = ["prevalens", "quantify", f"{name}.prevalens", *files]
    if asked.by is not None:
        parts += ["--by", asked.by, "--min-items", str(asked.min_items)]
    if asked.by_time is not None:
        parts += ["--by-time", asked.by_time, "--freq", asked.freq]
    parts += ["--interval", f"{asked.interval or 0:g}"]
    parts += [word for file in labelled for word in ("--labelled", file)]
    return shlex.join([*parts, "-o", "prevalence.csv"])
