"""From a client's request to files with estimates."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prevalens.errors import InputError
from prevalens.model.groups import grouping_of
from prevalens.model.model import Model
from prevalens.model.progress import Progress, Watch
from prevalens.model.quantify import quantify_tables
from prevalens.model.result import BatchResult
from prevalens.reports.batches import report_html, write_page
from prevalens.service.problems import Problem
from prevalens.service.schemas import QuantifyBody, first_error
from prevalens.service.screening import ClientTable, opened, too_many
from prevalens.tables.formats import as_table
from prevalens.tables.table import Table

__all__ = ["answer_of", "asked_for", "estimate", "tables_of"]

#: A column that no client's table has.
_GROUPS = "\0group"
_FORM_FIELDS = ("by", "by_time", "freq", "columns", "interval")


def estimate(model: Model, task: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Do what a client asked for, and leave the answers in the task's folder.

    Parameters
    ----------
    model : Model
    task : mapping
        ``folder`` with ``body.json``, or ``files`` and ``fields`` of a form; ``uploads`` by
        identifier; ``formats`` wanted; ``limits``; ``name`` of the model.
    progress : callable
    """
    asked, files = asked_for(task)
    tables = tables_of(model, asked, files, task["limits"])
    by = _GROUPS if asked.groups is not None else asked.by
    freq = asked.freq if asked.by_time is not None else None
    result = quantify_tables(
        model,
        tables,
        grouping_of(tables, by, asked.by_time, freq, None),
        interval=asked.interval,
        watch=Watch(progress, None),
    )
    _write(Path(task["folder"]), result, model, task, asked, [name for _, name in files])
    return {
        "model": task["name"],
        "n_items": int(result.sizes.sum()),
        "used": asked.uploads or [],
    }


def asked_for(task: Mapping[str, Any]) -> tuple[QuantifyBody, list[tuple[str, str]]]:
    """The request, and the files it is about as (path, name)."""
    try:
        if "files" in task:
            return _from_form(task["fields"]), [tuple(one) for one in task["files"]]
        asked = QuantifyBody.model_validate_json((Path(task["folder"]) / "body.json").read_bytes())
    except ValidationError as error:
        raise Problem("bad_input", first_error(error)) from error
    uploads = asked.uploads or []
    for key in uploads:
        if key not in task["uploads"]:
            raise Problem(
                "not_found", f"There is no upload {key}; unused ones are removed in time."
            )
    return asked, [tuple(task["uploads"][key]) for key in uploads]


def _from_form(fields: Mapping[str, str]) -> QuantifyBody:
    """The fields of a form are texts; an empty one was left out, save that no interval is one."""
    unknown = sorted(set(fields) - set(_FORM_FIELDS))
    if unknown:
        raise Problem(
            "bad_input", f"There is no field {unknown[0]!r}; there are {', '.join(_FORM_FIELDS)}."
        )
    values: dict[str, Any] = {name: value for name, value in fields.items() if value}
    if "interval" in fields:
        values["interval"] = _number(fields["interval"])
    if "columns" in values:
        values["columns"] = _parsed(values["columns"])
    # The files are at hand already; one text stands for them in the check.
    return QuantifyBody.model_validate({**values, "texts": [""]})


def _number(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise Problem("bad_input", "The field 'interval' is not a number.") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Problem("bad_input", "The field 'columns' is not JSON.") from None


def tables_of(
    model: Model,
    asked: QuantifyBody,
    files: Sequence[tuple[str, str]],
    limits: Mapping[str, Any],
) -> list[Table]:
    """The items as tables whose columns are called as the model calls them."""
    if files:
        tables = [opened(Path(path), name, limits) for path, name in files]
    elif asked.texts is not None:
        tables = [_in_memory({_text_column(model): asked.texts}, "texts", asked, limits)]
    else:
        tables = [_in_memory(_columns(asked.rows or [], limits), "rows", asked, limits)]
    unknown = [name for name in asked.columns if name not in (model.columns or ("text",))]
    if unknown:
        raise InputError(f"The model does not ask for a column {unknown[0]!r}.")
    return [table.called(asked.columns) for table in tables]


def _columns(rows: Sequence[Mapping[str, Any]], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Rows as columns; counted before they are filled."""
    names = dict.fromkeys(name for row in rows for name in row)
    if len(names) > limits["columns"]:
        raise too_many("rows", len(names), "columns", limits["columns"])
    if not names:
        raise InputError("The rows have no columns.")
    return {name: [row.get(name) for row in rows] for name in names}


def _text_column(model: Model) -> str:
    if model.summary.kind != "text":
        raise InputError(
            f"The model reads the columns {', '.join(map(repr, model.columns or ()))}, not texts; "
            "send rows or files."
        )
    return (model.columns or ("text",))[0]


def _in_memory(
    columns: Mapping[str, Sequence[Any]],
    name: str,
    asked: QuantifyBody,
    limits: Mapping[str, Any],
) -> ClientTable:
    n_items = len(next(iter(columns.values())))
    if n_items > limits["rows"]:
        raise too_many(name, n_items, "rows", limits["rows"])
    cells = dict(columns)
    if asked.groups is not None:
        if len(asked.groups) != n_items:
            raise InputError(f"There are {n_items} {name} but {len(asked.groups)} groups.")
        cells[_GROUPS] = asked.groups
    return ClientTable(as_table(cells, name=name), limits)


def _write(
    folder: Path,
    result: BatchResult,
    model: Model,
    task: Mapping[str, Any],
    asked: QuantifyBody,
    names: Sequence[str],
) -> None:
    answer = answer_of(result, task["name"])
    answer["command"] = _command(task["name"], asked, names)
    (folder / "answer.json").write_text(json.dumps(answer, ensure_ascii=False), encoding="utf-8")
    for ending in task["formats"]:
        path = folder / f"result.{ending}"
        if ending == "html":
            write_page(path, report_html(result, model))
        else:
            result.write(path)


def answer_of(result: BatchResult, name: str) -> dict[str, Any]:
    """The answer of the HTTP interface."""
    sizes = result.sizes.tolist()
    return {
        "model": name,
        "n_items": sum(sizes),
        "level": result.estimate.level,
        "labels": list(result.labels),
        "training": dict(zip(result.labels, result.training.tolist(), strict=True)),
        "ordered": result.ordered,
        "groups": [
            {"name": group, "n_items": size}
            for group, size in zip(result.groups, sizes, strict=True)
        ],
        "rows": result.to_rows(),
        "warnings": [vars(one) for one in result.notices],
    }


def _command(name: str, asked: QuantifyBody, files: Sequence[str]) -> str | None:
    """What to type for the same; None where the command line has no word for it."""
    if not files or asked.columns:
        return None
    parts = ["prevalens", "quantify", f"{name}.prevalens", *files]
    if asked.by is not None:
        parts += ["--by", asked.by]
    if asked.by_time is not None:
        parts += ["--by-time", asked.by_time, "--freq", asked.freq]
    parts += ["--interval", f"{asked.interval or 0:g}"]
    return shlex.join([*parts, "-o", "prevalence.csv"])
