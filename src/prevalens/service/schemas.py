"""Types of requests and answers, for checks and for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from prevalens.service.problems import Problem

Identifier = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", description="Key of an upload.")]
ColumnName = Annotated[str, Field(min_length=1, max_length=1000)]
Cell = str | float | int | bool | None
Frequency = Literal["D", "W", "M", "Q", "Y"]


class _Strict(BaseModel):
    # A misspelt field must not be taken for one that was left out, nor "0.9" for a number.
    model_config = ConfigDict(extra="forbid", strict=True)


class NoBody(_Strict):
    """An empty object."""


class QuantifyBody(_Strict):
    """Items to estimate the prevalences of: texts, rows or uploads."""

    texts: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="The items of a model for texts."
    )
    rows: Annotated[list[dict[str, Cell]], Field(min_length=1)] | None = Field(
        None, description="The items, column by name."
    )
    uploads: Annotated[list[Identifier], Field(min_length=1, max_length=200)] | None = Field(
        None, description="Files that were uploaded before."
    )
    groups: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="For each text or row the name of its batch."
    )
    columns: dict[ColumnName, ColumnName] = Field(
        default_factory=dict,
        description="Names of the model's columns in these items, where they differ.",
    )
    by: ColumnName | None = Field(None, description="Column that names each item's batch.")
    by_time: ColumnName | None = Field(None, description="Column with each item's date or time.")
    freq: Frequency = Field("M", description="Length of a period of time: day, week, month, ...")
    min_items: Annotated[int, Field(ge=0, le=1_000_000_000)] = Field(
        1, description="Groups with fewer items become one batch, at the end; 1 keeps all apart."
    )
    interval: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        0.9, description="Coverage of the intervals; null for none."
    )
    labelled: Annotated[list[Identifier], Field(min_length=1, max_length=200)] | None = Field(
        None, description="Uploads that `sample` drew from these items, labelled by hand."
    )

    @model_validator(mode="after")
    def _one_source(self) -> QuantifyBody:
        if sum(source is not None for source in (self.texts, self.rows, self.uploads)) != 1:
            raise ValueError("give exactly one of texts, rows and uploads")
        if sum(way is not None for way in (self.groups, self.by, self.by_time)) > 1:
            raise ValueError("give at most one of groups, by and by_time")
        if self.groups is not None and self.uploads is not None:
            raise ValueError("groups go with texts or rows; for uploads name a column in by")
        return self


Files = Annotated[
    list[Annotated[str, Field(json_schema_extra={"format": "binary"})]], Field(min_length=1)
]


class UploadForm(_Strict):
    """Files to keep for a while; the part `file` may be repeated."""

    file: Files


class QuantifyForm(_Strict):
    """Files to estimate the prevalences of; the part `file` may be repeated."""

    file: Files
    columns: str = Field("", description="A JSON object, as in a JSON request.")
    by: str = Field("", description="Column that names each item's batch.")
    by_time: str = Field("", description="Column with each item's date or time.")
    freq: Frequency = "M"
    min_items: str = Field("1", description="As in a JSON request.", pattern=r"^\d{0,9}$")
    interval: str = Field(
        "0.9", description="Coverage of the intervals; empty for none.", pattern=r"^(0?\.\d+)?$"
    )
    labelled: Files | None = Field(
        None, description="Files that `sample` drew from these items, labelled by hand."
    )


Encoding = Literal[
    "utf-8", "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "iso-8859-15", "mac-roman",
    "utf-16", "shift_jis", "gb18030", "big5", "euc-kr",
]  # fmt: skip


class ReadingBody(_Strict):
    """How the text of an upload is to be read; null is what the file itself suggests."""

    encoding: Encoding | None = Field(None, description="Encoding of a text file.")
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        None, description="Sign between the columns of a CSV file."
    )


class LabelPlaces(_Strict):
    """Where the labels of a file are: in columns of 0 and 1, of tags, or of one label each."""

    labels: Annotated[list[ColumnName], Field(min_length=1)] | None = Field(
        None, description="Columns with 0 and 1."
    )
    tags: ColumnName | None = Field(None, description="Column with tags, instead of labels.")
    category: ColumnName | None = Field(
        None, description="Column with one label per item, instead of tags."
    )
    sep: Annotated[str, Field(min_length=1, max_length=5)] = Field(
        ",", description="Separator of the tags."
    )

    @property
    def n_places(self) -> int:
        """How many of the three places are named."""
        return sum(place is not None for place in (self.labels, self.tags, self.category))

    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        if self.n_places > 1:
            raise ValueError("give at most one of labels, tags and category")
        return self


class LabelsBody(LabelPlaces):
    """Where the labels of an upload are."""

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if not self.n_places:
            raise ValueError("give one of labels, tags and category")
        return self


class EvaluateBody(LabelPlaces):
    """Labelled items that the model has not seen, and how to draw samples from them.

    If the place of the labels is omitted, they are in columns named like the model's labels.
    """

    uploads: Annotated[list[Identifier], Field(min_length=1, max_length=200)]
    interval: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        0.9, description="Coverage of the intervals; null for none."
    )
    size: Annotated[int, Field(ge=2, le=1_000_000)] | None = Field(
        None, description="Items per sample: 100, or a third of the items if fewer than 300."
    )
    n_samples: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1000, description="Samples per family of shifts."
    )


class TrainBody(LabelPlaces):
    """A labelled file and the roles of its columns."""

    upload: Identifier
    name: str = Field(
        "",
        max_length=60,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$|^$",
        description="Name of the new model; made from the file's name if empty.",
    )
    text: ColumnName | None = Field(None, description="Column with texts.")
    features: Annotated[list[ColumnName], Field(min_length=1)] | None = Field(
        None, description="Columns with numbers or categories, instead of texts."
    )
    scores: list[ColumnName | list[ColumnName]] | None = Field(
        None,
        description="Columns with scores of a labeller, such as p_*; one entry per labeller. Texts "
        "and features are used besides these if they are named.",
    )
    scores_tags: list[ColumnName] | None = Field(
        None, description="Columns with a labeller's answers, such as billing:0.9;login."
    )
    id: ColumnName | None = Field(None, description="Identifier column; not used.")
    time: ColumnName | None = Field(
        None,
        description="Column that says when each item arose; a backtest then sets the intervals.",
    )
    date_form: Annotated[str, Field(min_length=2, max_length=60)] | None = Field(
        None, description="Format of the dates, such as %d/%m/%Y; detected if omitted."
    )
    drift: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Drift that intervals allow for, instead of `time`; 0 is none."
    )
    method: str = Field(
        "auto", max_length=200, description="`auto`, or an expression such as lr+pacc."
    )
    time_budget: Annotated[float, Field(ge=1, le=86400)] = Field(
        300.0, description="Seconds the choice of a method may take."
    )
    holdout: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="Share of the items to test with; the model's `quality` tells the result."
    )


class RequestAnswer(QuantifyBody):
    """What an estimate was made from: the body of its request, the model and the readings."""

    model: str
    readings: list[dict[str, str | None]] = Field(
        description="Encoding and delimiter of each upload, as they were chosen."
    )


class ErrorContent(BaseModel):
    """Code and message of an error."""

    code: str
    message: str


class ProblemAnswer(BaseModel):
    """The form of every error: problem details after RFC 9457."""

    type: str
    title: str
    status: int
    detail: str = Field(description="One sentence: what is wrong, where, and the way out.")
    error: ErrorContent


class HealthAnswer(BaseModel):
    """Status and version of the server."""

    status: Literal["ok"]
    version: str


class Quality(BaseModel):
    """How good a model is in samples of held-out items whose label mix was shifted."""

    verdict: Literal["yes", "with care", "no"]
    headline: str
    reasons: list[dict[str, str]]
    sentence: str = Field(description="The mean error where the label mix has moved.")
    tested: str = Field(description="What the test was made with.")
    shifts: list[float] = Field(description="Shift of the label mix, in percentage points.")
    errors: dict[str, list[float]] = Field(description="Mean errors at these shifts, in points.")


class ModelAnswer(BaseModel):
    """A model: its labels, its columns and its training."""

    id: str = Field(description="The name, which is part of the model's addresses.")
    name: str
    origin: Literal["given", "trained"]
    labels: list[str]
    training: dict[str, float]
    n_items: int
    method: str
    method_in_words: str
    kind: str
    columns: list[str]
    drift: str
    summary: dict[str, Any]
    quality: Quality | None = Field(
        None, description="How good it is in held-out shifted samples; null if that was not tested."
    )


class ModelsAnswer(BaseModel):
    """All models."""

    models: list[ModelAnswer]


class Column(BaseModel):
    """A column of a file and its detected kind."""

    name: str
    kind: Literal["text", "binary", "number", "time", "tags", "category", "id", "empty"]
    separator: str | None


class ReadingAnswer(BaseModel):
    """How the text of a file is read; null is what the file itself suggests."""

    encoding: str | None
    delimiter: str | None
    guessed: bool = Field(description="Whether the encoding is a guess: the file is no UTF-8.")


class UploadAnswer(BaseModel):
    """An uploaded file: its columns and first rows."""

    id: str
    name: str
    bytes: int
    columns: list[Column]
    rows: list[list[Any]]
    complete: bool
    reading: ReadingAnswer


class LabelsAnswer(BaseModel):
    """The labels of a file, and in how many of its items each occurs."""

    n_items: int
    n_without: int = Field(description="Items without any label.")
    n_labels: int
    labels: dict[str, int] = Field(description="The most frequent first; 100 at most.")


class UploadsAnswer(BaseModel):
    """Uploaded files."""

    uploads: list[UploadAnswer]


class JobAnswer(BaseModel):
    """A job and its progress."""

    id: str
    kind: Literal["train", "quantify", "evaluate", "demo"]
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    stage: str
    share: float | None
    seconds: float
    result: dict[str, Any] | None
    error: ErrorContent | None


class JobsAnswer(BaseModel):
    """All jobs."""

    jobs: list[JobAnswer]


class EstimateGroup(BaseModel):
    """A batch."""

    name: str
    n_items: int
    alarm: bool | None = Field(
        description="Whether the batch differs from the training data in more than its label mix; "
        "null if that was not checked."
    )
    p_value: float | None = Field(description="Of the alarm, which is raised below 0.01.")
    n_labelled: int
    more_labels: int | None = Field(
        description="How many more labels would halve the intervals: the median over labels."
    )
    notes: str = Field(description="The sentences of all warnings and notes on the batch.")


class Row(BaseModel):
    """The estimate of one label in one batch."""

    group: str
    label: str
    n_items: int
    prevalence: float
    lower: float | None
    upper: float | None
    band_lower: float | None = Field(description="Ends of the band that holds all labels at once.")
    band_upper: float | None
    level: float | None = Field(description="Coverage that intervals and bands aim at.")
    training: float
    moved: int = Field(description="1 or -1 where the band supports a move since training.")
    alarm: bool | None
    p_value: float | None
    n_labelled: int
    more_labels: int | None
    notes: str


class Warned(BaseModel):
    """A warning or note on the estimates."""

    text: str
    level: str
    batch: str
    batches: list[str] = Field(description="The batches it is about, if there are several.")


class HeadlineAnswer(BaseModel):
    """What can be said in a few sentences."""

    text: str = Field(description="What has clearly moved, with estimates and bands.")
    alarm: str = Field(description="Batches that differ in more than their label mix.")
    is_alarm: bool = Field(description="Whether the alarm is to be read first.")


class _Estimates(BaseModel):
    headline: HeadlineAnswer
    messages: list[str] = Field(description="Warnings and notes in plain words, worst first.")
    model: str
    method: str = Field(description="The model's method in words.")
    n_items: int
    n_labelled: int = Field(description="Items of all batches with a label by hand.")
    more_labels: int = Field(description="The largest `more_labels` of the groups; 0 if none.")
    width: float | None = Field(description="Mean width of the intervals.")
    level: float | None
    labels: list[str]
    training: dict[str, float]
    ordered: bool
    groups: list[EstimateGroup]
    rows: list[Row]
    command: str | None


class QuantifyAnswer(_Estimates):
    """Estimated prevalences."""

    warnings: list[Warned]


class PageAnswer(_Estimates):
    """A page of the batches of a finished estimate: of groups the largest first."""

    n_messages: int = Field(description="Of which at most 50 are in `messages`.")
    n_groups: int = Field(description="Batches of the whole estimate.")
    n_found: int = Field(description="Batches whose name contains the text looked for.")
    page: int
    n_pages: int
    first: int = Field(description="How many of the batches found come before this page.")


class Example(BaseModel):
    """An item and its score for a label."""

    score: float
    text: str = Field(description="The text, or the cells; at most 300 characters.")
    place: str = Field(description="File and line.")


class ExamplesAnswer(BaseModel):
    """Items of a batch by their scores for a label."""

    label: str
    highest: list[Example]
    lowest: list[Example]


def refused(error: ValidationError) -> Problem:
    """The refusal of a body: damaged JSON, or the first field that does not fit."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:200]
    what = first["msg"].removeprefix("Value error, ")
    sentence = f"{place}: {what}" if place else what
    code = "bad_request" if first["type"] == "json_invalid" else "bad_input"
    return Problem(code, sentence[:1].upper() + sentence[1:].rstrip(".") + ".")
