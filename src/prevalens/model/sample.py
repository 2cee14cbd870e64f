"""Draw items of batches in files, to be labelled by hand."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prevalens.errors import InputError
from prevalens.files import write_whole, writing
from prevalens.model.draw import Draw, draw_items
from prevalens.model.groups import MIN_ITEMS, Grouping, grouping_of
from prevalens.model.items import chunk_items
from prevalens.model.labelling import ITEM, WEIGHT, ItemKey, Position
from prevalens.model.model import Model
from prevalens.model.progress import Cancelled, Progress, Watch
from prevalens.model.quantify import model_columns, prepared_chunk
from prevalens.model.rows import rows_bytes
from prevalens.model.tasks import TASK_ENDINGS, task_files
from prevalens.scores import Scores
from prevalens.tables.kinds import is_vector
from prevalens.tables.opening import Reading, expand
from prevalens.tables.table import Table
from prevalens.types import Items
from prevalens.validation import check_int


@dataclass(frozen=True)
class LabelSheet:
    r"""Drawn items with an empty column per label, for people to fill in.

    Attributes
    ----------
    rows : list of dict
        One per item, in the order of the draw: the columns of the batch, the labels, the weight
        if the draw was stratified, and which item it is. A column of the batch that is called
        like a label is left out.
    n_items : int
        Items of all batches.
    labels : tuple of str
        The labels of the model.
    texts : tuple of str
        The columns of texts that the model reads.

    Examples
    --------
    >>> sheet = LabelSheet([{"text": "printer on fire", "hardware": None}], n_items=80)
    >>> sheet.to_bytes(".jsonl")
    b'{"text": "printer on fire", "hardware": null}\n'
    """

    rows: list[dict[str, Any]]
    n_items: int
    labels: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def to_bytes(self, ending: str) -> bytes:
        """The content of a ``.csv``, ``.tsv``, ``.jsonl``, ``.json`` or ``.parquet`` file."""
        # By the mark, spreadsheets see that a text file is UTF-8, and keep the names of labels.
        mark = codecs.BOM_UTF8 if ending in (".csv", ".tsv") else b""
        return mark + rows_bytes(self.rows, ending)

    def write(self, path: str | Path) -> None:
        """Write the sheet, in the format of the path's ending."""
        content = self.to_bytes(Path(path).suffix.lower())
        with writing(path) as file:
            file.write(content)

    def write_tasks(self, path: str | Path, tool: str) -> list[Path]:
        """Write tasks that an annotation tool imports; return the paths of the files.

        Parameters
        ----------
        path : path
            A file of the tasks; what sets up the labels is written beside it, with another ending.
        tool : {"label-studio", "argilla", "doccano", "prodigy"}
        """
        paths = task_paths(path, tool)
        contents = task_files(tool, self.rows, self.labels, self.texts)
        for file, content in zip(paths, contents.values(), strict=True):
            write_whole(file, content)
        return paths


def task_paths(path: str | Path, tool: str) -> list[Path]:
    """The files that an annotation tool's tasks are written to; refuses a wrong ending."""
    if tool not in TASK_ENDINGS:
        raise InputError(f"Tasks are written for {', '.join(TASK_ENDINGS)}; got {tool!r}.")
    first, *others = TASK_ENDINGS[tool]
    path = Path(path)
    if path.suffix.lower() != first:
        raise InputError(f"Tasks for {tool} are written as {first}; got {str(path)!r}.")
    return [path, *(path.with_suffix(ending) for ending in others)]


def sample_files(
    model: Model | str | Path,
    paths: str | Path | Iterable[str | Path],
    n: int = 50,
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
    min_items: int = MIN_ITEMS,
    stratified: bool = False,
    random_state: int = 0,
    reading: Reading | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> LabelSheet:
    """Draw items of the batches in files, to be labelled by hand.

    Parameters
    ----------
    model : Model, or the path of one
    paths, by, by_time, freq, date_form, min_items : as in `quantify_files`
    n : int
        Items per batch; of a smaller batch, all are drawn.
    stratified : bool
        Draw items with unsure scores more often, and keep the weights. Default: uniformly, which
        is safe whatever the scores are worth.
    random_state : int
    reading, progress, cancelled : as in `quantify_files`

    Returns
    -------
    LabelSheet
        Written to a file and filled in, it is what `quantify_files` takes as `labelled`.
    """
    loaded = model if isinstance(model, Model) else Model.load(model)
    tables = [(reading or Reading()).open(path) for path in expand(paths)]
    grouping = grouping_of(tables, by, by_time, freq, date_form)
    return sample_tables(
        loaded,
        tables,
        grouping,
        n,
        min_items=min_items,
        stratified=stratified,
        random_state=random_state,
        watch=Watch(progress, cancelled),
    )


def sample_tables(
    model: Model,
    tables: Sequence[Table],
    grouping: Grouping,
    n: int = 50,
    *,
    min_items: int = MIN_ITEMS,
    stratified: bool = False,
    random_state: int = 0,
    watch: Watch | None = None,
) -> LabelSheet:
    """As `sample_files`, for tables that are open."""
    watch = watch or Watch(None, None)
    columns = model_columns(model, tables)
    for table in tables:
        table.check_columns([*columns, *grouping.columns])
    scores = _read(model, tables, grouping, columns, watch, stratified=stratified)
    grouping.fold(check_int(min_items, "min_items", minimum=0))
    samples, _ = grouping.samples()
    draw = draw_items(samples, n, scores=scores, random_state=random_state)
    found = dict(_picked(tables, columns, draw))
    names = dict.fromkeys(name for table in tables for name in table.columns)
    # Nobody reads vectors.
    vectors = {name for _, cells in found.values() for name in cells if is_vector(cells[name])}
    own = [name for name in names if name not in {*model.labels, *vectors, ITEM, WEIGHT}]
    rows = []
    for place, weight in enumerate(draw.weights.tolist()):
        key, cells = found[place]
        weights = {WEIGHT: round(weight, 6)} if stratified else {}
        item = {name: cells.get(name) for name in own}
        rows.append({**item, **dict.fromkeys(model.labels), **weights, ITEM: str(key)})
    return LabelSheet(rows, samples.n_items, model.labels, _texts(model, columns))


def _texts(model: Model, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of texts that a model reads."""
    if model.summary.kind == "text":
        return tuple(columns)
    return tuple(use.column for use in model.description.column_uses if use.use == "text")


def _read(
    model: Model,
    tables: Sequence[Table],
    grouping: Grouping,
    columns: Sequence[str],
    watch: Watch,
    *,
    stratified: bool,
) -> Scores | None:
    """Note the batch of every item; score the items if that is needed."""
    wanted = [*columns, *grouping.columns]

    def matrices() -> Iterator[Items]:
        for table, chunk in watch.over("scoring" if stratified else "reading", tables, wanted):
            grouping.add(table, chunk)
            if stratified:
                yield prepared_chunk(model, chunk_items(chunk, model.preparation, columns), chunk)

    if stratified:
        return model.score_prepared(matrices())
    for _ in matrices():
        pass
    return None


def _picked(
    tables: Sequence[Table], columns: Sequence[str], draw: Draw
) -> Iterator[tuple[int, tuple[ItemKey, dict[str, Any]]]]:
    """The places of the drawn items in the draw, with their keys and all their cells."""
    places = {row: place for place, row in enumerate(draw.rows.tolist())}
    position = Position()
    for table in tables:
        for chunk in table.chunks():
            start, first = position.next(table, chunk)
            for row in (row for row in range(len(chunk)) if first + row in places):
                key = ItemKey.of(table, chunk, row, start=start, columns=columns)
                cells = {name: chunk[name][row] for name in table.columns}
                yield places[first + row], (key, cells)
