"""Items to label as tasks that annotation tools import: Label Studio, Argilla, doccano, Prodigy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from xml.sax.saxutils import quoteattr

from prevalens.model.labelling import ITEM
from prevalens.model.rows import json_bytes
from prevalens.tables.annotations import LABELS, RESERVED

#: What is shown to people if the items are not the texts of one column.
_SHOWN = f"{RESERVED}text"


@dataclass(frozen=True)
class _ShownItem:
    """An item to label.

    Attributes
    ----------
    text : str
        What is shown.
    cells : dict
        The columns of the batch.
    own : dict
        Columns of this package, by which the item is found again.
    """

    text: str
    cells: dict[str, Any]
    own: dict[str, Any]

    def others(self, *names: str | None) -> dict[str, Any]:
        """The columns of the batch that have a value and are not named."""
        return {
            name: cell if isinstance(cell, (int, float)) else str(cell)
            for name, cell in self.cells.items()
            if cell is not None and name not in names
        }


_ShownItems: TypeAlias = Sequence[_ShownItem]


def task_files(
    tool: str, rows: Sequence[Mapping[str, Any]], labels: Sequence[str], texts: Sequence[str]
) -> dict[str, bytes]:
    """The content of the files for a tool, by their endings; the tasks come first.

    Parameters
    ----------
    tool : one of `TOOLS`
    rows : sequence of mapping
        The rows of a `LabelSheet`.
    labels : sequence of str
        The labels to choose from.
    texts : sequence of str
        The columns of texts, which are shown; all columns if there is none.

    Notes
    -----
    What the model says about the items is not written: people who see it agree with it too often.
    """
    tasks = [_task(row, labels, texts) for row in rows]
    return TOOLS[tool](tasks, labels, texts[0] if len(texts) == 1 else None)


def _task(row: Mapping[str, Any], labels: Sequence[str], texts: Sequence[str]) -> _ShownItem:
    own = {name: cell for name, cell in row.items() if name.startswith(RESERVED)}
    cells = {name: cell for name, cell in row.items() if name not in {*own, *labels}}
    if len(texts) == 1:
        return _ShownItem(_text(cells.get(texts[0])), cells, own)
    lines = [f"{name}: {_text(cells.get(name))}" for name in texts or cells]
    return _ShownItem("\n".join(lines), cells, own)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _label_studio(
    tasks: _ShownItems, labels: Sequence[str], column: str | None
) -> dict[str, bytes]:
    """Tasks, and the labelling configuration that shows them."""
    shown = column if column is not None and column.isidentifier() else _SHOWN
    data = [{"data": {**task.others(), shown: task.text, **task.own}} for task in tasks]
    choices = "".join(f"    <Choice value={quoteattr(label)}/>\n" for label in labels)
    config = (
        f'<View>\n  <Text name="text" value="${shown}"/>\n'
        f'  <Choices name="{LABELS}" toName="text" choice="multiple">\n'
        f"{choices}  </Choices>\n</View>\n"
    )
    return {".json": json_bytes(data), ".xml": config.encode()}


def _argilla(tasks: _ShownItems, labels: Sequence[str], column: str | None) -> dict[str, bytes]:  # noqa: ARG001
    """Records; the labels are part of the settings of a dataset, which has no file."""
    field = column or "text"
    records = [
        {
            "id": task.own[ITEM],
            "fields": {field: task.text},
            "metadata": {**task.others(field), **task.own},
            "suggestions": {},
            "responses": {},
            "vectors": {},
        }
        for task in tasks
    ]
    return {".json": json_bytes(records)}


def _doccano(tasks: _ShownItems, labels: Sequence[str], column: str | None) -> dict[str, bytes]:
    """Examples, and the types of labels."""
    examples = [
        {"text": task.text, "label": [], **task.others(column, "text", "label", "id"), **task.own}
        for task in tasks
    ]
    return {".jsonl": _lines(examples), ".json": json_bytes([{"text": name} for name in labels])}


def _prodigy(tasks: _ShownItems, labels: Sequence[str], column: str | None) -> dict[str, bytes]:
    options = [{"id": label, "text": label} for label in labels]
    questions = [
        {"text": task.text, "options": options, "meta": task.others(column), **task.own}
        for task in tasks
    ]
    return {".jsonl": _lines(questions)}


def _lines(records: Sequence[Any]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


#: The tools by name, and what makes their files.
TOOLS: dict[str, Callable[[_ShownItems, Sequence[str], str | None], dict[str, bytes]]] = {
    "label-studio": _label_studio,
    "argilla": _argilla,
    "doccano": _doccano,
    "prodigy": _prodigy,
}
#: The ending of each tool's tasks, and of a second file that sets up its labels, if any.
TASK_ENDINGS: dict[str, tuple[str, ...]] = {
    "label-studio": (".json", ".xml"),
    "argilla": (".json",),
    "doccano": (".jsonl", ".json"),
    "prodigy": (".jsonl",),
}
