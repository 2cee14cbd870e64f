"""Uploads, estimates and jobs: files or JSON in, prevalences out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import ValidationError

from prevalens.service.answers import read_examples, read_page
from prevalens.service.jobs import Job, Jobs
from prevalens.service.problems import Problem
from prevalens.service.requests import (
    NO_FILE,
    REFUSALS,
    body_of,
    declared_size,
    media_type,
    read_files,
    read_json,
    save_body,
)
from prevalens.service.schemas import (
    Encoding,
    EvaluateBody,
    ExamplesAnswer,
    JobAnswer,
    JobsAnswer,
    LabelsAnswer,
    LabelsBody,
    PageAnswer,
    QuantifyAnswer,
    QuantifyBody,
    QuantifyForm,
    ReadingBody,
    RequestAnswer,
    UploadAnswer,
    UploadForm,
    UploadsAnswer,
    refused,
)
from prevalens.service.state import SMALL, ServerState, state_of
from prevalens.service.storage import keep_reading
from prevalens.service.workers import Pool

upload_router = APIRouter(prefix="/v1/uploads", tags=["uploads"], responses=REFUSALS)
quantify_router = APIRouter(prefix="/v1/models", tags=["quantify"], responses=REFUSALS)
job_router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=REFUSALS)

#: The body of requests about items.
_ITEMS = body_of(("application/json", QuantifyBody), ("multipart/form-data", QuantifyForm))
#: Batches of a small request; each takes some milliseconds.
_FEW_BATCHES = 20
_MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
}
_FILES: dict[str, Any] = {"content": {kind.partition(";")[0]: {} for kind in _MEDIA.values()}}
# A report brings its own scripts; as a page of this server it could use the server, so browsers
# are told to save it, and to give it an origin of its own should they show it.
_ISOLATED = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'"
)


@upload_router.post(
    "",
    status_code=201,
    response_model=UploadsAnswer,
    openapi_extra=body_of(("multipart/form-data", UploadForm)),
)
async def add_uploads(
    request: Request,
    response: Response,
    encoding: Encoding | None = None,
    delimiter: Annotated[str | None, Query(min_length=1, max_length=1)] = None,
) -> dict[str, Any]:
    """Keep one or more files for a while, and show their columns and first rows.

    `encoding` and `delimiter` say how texts are to be read, if the files do not show it.
    ``Location`` is the address of the first.
    """
    state = state_of(request)
    folder = _folder(state, declared_size(request))
    try:
        form = await read_files(request, folder, state.limits, state.storage)
        for file in form.files:
            keep_reading(file.path, {"encoding": encoding, "delimiter": delimiter})
        # All are previewed before any is kept: a refusal leaves nothing behind.
        previews = [await state.preview(file.path, file.name) for file in form.files]
        state.storage.measure(folder)
        state.storage.check_room(0)
        kept = []
        for file, preview in zip(form.files, previews, strict=True):
            kept.append(state.uploads.add(file.name, file.path, preview))
            state.metrics.add("prevalens_upload_bytes_total", file.size)
    finally:
        state.storage.remove(folder)
    response.headers["location"] = f"/v1/uploads/{kept[0].id}"
    return {"uploads": [upload.shown() for upload in kept]}


@upload_router.get("", response_model=UploadsAnswer)
async def list_uploads(request: Request) -> dict[str, Any]:
    """List the uploads, oldest first."""
    return {"uploads": [upload.shown() for upload in state_of(request).uploads.all()]}


@upload_router.get("/{key}", response_model=UploadAnswer)
async def get_upload(key: str, request: Request) -> dict[str, Any]:
    """Show an upload's columns and first rows."""
    return state_of(request).uploads.get(key).shown()


@upload_router.post(
    "/{key}/reading",
    response_model=UploadAnswer,
    openapi_extra=body_of(("application/json", ReadingBody)),
)
async def read_upload_as(key: str, request: Request) -> dict[str, Any]:
    """Choose the encoding and the delimiter of an upload, and show it as it reads then."""
    state = state_of(request)
    upload = state.uploads.get(key)
    wanted = await read_json(request, ReadingBody)
    before = upload.preview["reading"]
    keep_reading(upload.path, wanted.model_dump())
    try:
        upload.preview = await state.preview(upload.path, upload.name)
    except Problem:
        keep_reading(upload.path, before)
        raise
    return upload.shown()


@upload_router.post(
    "/{key}/labels",
    response_model=LabelsAnswer,
    openapi_extra=body_of(("application/json", LabelsBody)),
)
async def count_labels(key: str, request: Request) -> dict[str, Any]:
    """Count in how many items of an upload each label occurs, as a training would find them."""
    state = state_of(request)
    upload = state.uploads.get(key)
    wanted = await read_json(request, LabelsBody)
    task = {**wanted.model_dump(), "task": "labels", "path": str(upload.path), "name": upload.name}
    with state.uploads.in_use([key]):
        return await state.quantify(task, pool=state.pool_for_files(upload.size))


@upload_router.delete("/{key}", status_code=204)
async def remove_upload(key: str, request: Request) -> Response:
    """Remove an upload."""
    state_of(request).uploads.remove(key)
    return Response(status_code=204)


def _folder(state: ServerState, declared: int) -> Path:
    """A folder for a body, if there is room for it and a worker to read it."""
    state.uploads.expire()
    state.storage.check_room(declared)
    state.pool_for_files(declared).check_room()
    return state.storage.folder()


@quantify_router.post(
    "/{name}/quantify",
    response_model=QuantifyAnswer,
    responses={200: _FILES, 202: {"model": JobAnswer, "description": "With wait=false: the job."}},
    openapi_extra=_ITEMS,
)
async def quantify(
    name: str,
    request: Request,
    wait: bool = True,
    format: Literal["json", "csv", "html"] = "json",
) -> Response:
    """Estimate how frequent each label is, in all items or in each batch of them.

    With ``wait=false`` the answer is a job. With ``format=csv`` or ``format=html`` it is the file
    that the command line writes.
    """
    state = state_of(request)
    formats = ["csv", "json", "html"] if not wait else [] if format == "json" else [format]
    asked = await _about_items(request, name, "quantify", with_folder=bool(formats))
    asked.task["formats"] = formats
    job = state.jobs.start("quantify", lambda job: _work(state, job, asked), folder=asked.folder)
    if not wait:
        return job_started(job)
    try:
        await _outcome(request, state.jobs, job)
        return _answer(job, format)
    finally:
        state.jobs.forget(job)


@quantify_router.post(
    "/{name}/sample",
    response_class=Response,
    responses={200: {"content": {"text/csv": {}}, "description": "The items as CSV."}},
    openapi_extra=_ITEMS,
)
async def sample(
    name: str,
    request: Request,
    n: Annotated[int, Query(ge=1, le=10_000, description="Items per batch.")] = 50,
    stratified: Annotated[
        bool, Query(description="Draw items with unsure scores more often; the file has weights.")
    ] = False,
    seed: Annotated[int, Query(ge=0, le=2**32 - 1)] = 0,
) -> Response:
    """Draw items to label by hand, uniformly at random unless `stratified` is set.

    The body is that of an estimate. The answer is a CSV file with an empty column per label; filled
    in with 0 and 1, it goes with the next estimate of the same items as `labelled`.
    """
    state = state_of(request)
    asked = await _about_items(request, name, "sample")
    task = {**asked.task, "n": n, "stratified": stratified, "seed": seed}
    try:
        with state.uploads.in_use(asked.uploads):
            await state.quantify(task, pool=asked.pool)
        content = Path(task["folder"], "to_label.csv").read_bytes()
    finally:
        state.storage.remove(asked.folder)
    return Response(content, media_type=_MEDIA["csv"], headers=_attached("to_label.csv"))


class _Asked(NamedTuple):
    """A request about items: the task, its folder, the workers for it, and uploads it may need."""

    task: dict[str, Any]
    folder: Path | None
    pool: Pool
    uploads: list[str]


async def _about_items(
    request: Request, name: str, kind: str, *, with_folder: bool = True
) -> _Asked:
    """Make a task of a request about items and a model; the caller removes its folder.

    A small JSON body stays in memory, and needs a folder only for what the worker writes.
    """
    state = state_of(request)
    entry = state.models.get(name)
    folder = None
    if with_folder or not _is_small(request):
        folder = _folder(state, declared_size(request))
    try:
        task, pool, named = await _received(request, state, folder)
        # Again, because the queue may have filled up while the body arrived.
        pool.check_room()
    except BaseException:
        state.storage.remove(folder)
        raise
    known = {upload.id: (str(upload.path), upload.name) for upload in state.uploads.all()}
    about = {"uploads": known, "task": kind, "model": str(entry.path), "name": entry.name}
    return _Asked({**task, **about, "folder": str(folder)}, folder, pool, named)


def _is_small(request: Request) -> bool:
    return media_type(request) == "application/json" and 0 < declared_size(request) <= SMALL


async def _received(
    request: Request, state: ServerState, folder: Path | None
) -> tuple[dict[str, Any], Pool, list[str]]:
    """What is to be read of the body, the workers that read it, and the uploads it may name."""
    if _is_small(request):
        body = await request.body()
        return {"body": body}, *_pool_for(state, body)
    assert folder is not None
    kind = media_type(request)
    if kind == "application/json":
        await save_body(request, folder / "body.json", state.storage)
        # A worker reads it later; until then any upload may be meant.
        every = [upload.id for upload in state.uploads.all()]
        return {}, state.pool_for_files((folder / "body.json").stat().st_size), every
    if kind == "multipart/form-data":
        form = await read_files(request, folder, state.limits, state.storage)
        given: dict[str, list[tuple[str, str]]] = {"files": [], "labelled": []}
        for file in form.files:
            part = "labelled" if file.part == "labelled" else "files"
            given[part].append((str(file.path), file.name))
        if not given["files"]:
            raise Problem("bad_input", NO_FILE)
        size = sum(file.size for file in form.files)
        return {**given, "fields": form.fields}, state.pool_for_files(size), []
    raise Problem("media_type", "Send application/json, or files as multipart/form-data.")


def _pool_for(state: ServerState, body: bytes) -> tuple[Pool, list[str]]:
    """Check a small body at once; one that names uploads or many batches is treated as a file."""
    try:
        asked = QuantifyBody.model_validate_json(body)
    except ValidationError as error:
        raise refused(error) from error
    named = [*(asked.uploads or ()), *(asked.labelled or ())]
    grouped = asked.by is not None or asked.by_time is not None
    if not named and not grouped and len(set(asked.groups or ())) <= _FEW_BATCHES:
        return state.small, named
    size = len(body) + sum(upload.size for upload in state.uploads.all() if upload.id in named)
    return state.pool_for_files(size), named


async def _work(state: ServerState, job: Job, asked: _Asked) -> dict[str, Any]:
    with state.uploads.in_use(asked.uploads):
        result = await state.quantify(asked.task, job.progress, pool=asked.pool)
    job.content = result.pop("content", b"")
    state.metrics.add("prevalens_items_total", result["n_items"])
    address = f"/v1/jobs/{job.id}"
    return {**result, "answer": f"{address}/answer", "batches": f"{address}/batches"}


async def _outcome(request: Request, jobs: Jobs, job: Job) -> None:
    """Wait for a job; if its client disconnects, cancel it."""
    assert job.task is not None
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({job.task, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not job.task.done():
            await jobs.cancel(job.id)
    if job.problem is not None:
        raise job.problem


def _answer(job: Job, format: str) -> Response:
    """Read the answer now, because the job's files are removed with it."""
    if job.folder is None or format == "json":
        return Response(job.content, media_type=_MEDIA["json"])
    content = (job.folder / f"result.{format}").read_bytes()
    return Response(content, media_type=_MEDIA[format], headers=_attached(f"prevalence.{format}"))


@quantify_router.post(
    "/{name}/evaluate",
    status_code=202,
    response_model=JobAnswer,
    openapi_extra=body_of(("application/json", EvaluateBody)),
)
async def evaluate(name: str, request: Request) -> Response:
    """Measure whether a model can be trusted on data like these labelled uploads.

    The answer is a job, whose result has the verdict with its reasons; its files are those that
    ``prevalens evaluate`` writes.
    """
    state = state_of(request)
    entry = state.models.get(name)
    wanted = await read_json(request, EvaluateBody)
    uploads = [state.uploads.get(key) for key in wanted.uploads]
    state.quantifying.check_room()
    folder = state.storage.folder()
    task = {
        **wanted.model_dump(exclude={"uploads"}),
        "task": "evaluate",
        "model": str(entry.path),
        "name": entry.name,
        "files": [(str(upload.path), upload.name) for upload in uploads],
        "folder": str(folder),
    }

    async def work(job: Job) -> dict[str, Any]:
        with state.uploads.in_use(wanted.uploads):
            return await state.quantify(task, job.progress, pool=state.quantifying)

    return job_started(state.jobs.start("evaluate", work, folder=folder))


def job_started(job: Job) -> Response:
    """The answer to a request that started a job."""
    return JSONResponse(job.shown(), status_code=202, headers={"location": f"/v1/jobs/{job.id}"})


@job_router.get("", response_model=JobsAnswer)
async def list_jobs(request: Request) -> dict[str, Any]:
    """List the jobs, oldest first."""
    return {"jobs": [job.shown() for job in state_of(request).jobs.all()]}


@job_router.get("/{key}", response_model=JobAnswer)
async def get_job(key: str, request: Request) -> dict[str, Any]:
    """Show the progress of a job."""
    return state_of(request).jobs.get(key).shown()


@job_router.delete("/{key}", response_model=JobAnswer)
async def cancel_job(key: str, request: Request) -> dict[str, Any]:
    """Stop a job that runs; remove one that is over, with its files."""
    all_jobs = state_of(request).jobs
    job = all_jobs.get(key)
    if job.over:
        all_jobs.forget(job)
    else:
        await all_jobs.cancel(key)
    return job.shown()


@job_router.get("/{key}/answer", response_model=QuantifyAnswer)
async def job_answer(key: str, request: Request) -> Response:
    """Download a finished estimate in the form that a waiting request gets."""
    return _file(request, key, "answer.json")


@job_router.get("/{key}/batches", response_model=PageAnswer)
async def job_batches(
    key: str,
    request: Request,
    page: Annotated[int | None, Query(ge=0, description="The last if in order of time.")] = None,
    find: Annotated[str, Query(max_length=200, description="Part of the batch's name.")] = "",
) -> Response:
    """Show a page of the batches of a finished estimate, with what concerns all of them."""
    folder = _answer_folder(request, key)
    return Response(read_page(folder, page, find), media_type=_MEDIA["json"])


@job_router.get("/{key}/examples", response_model=ExamplesAnswer)
async def job_examples(key: str, group: str, label: str, request: Request) -> dict[str, Any]:
    """Show the items of a batch that have the highest and the lowest scores of a label."""
    return read_examples(_answer_folder(request, key), group, label)


@job_router.get("/{key}/request", response_model=RequestAnswer)
async def job_request(key: str, request: Request) -> Response:
    """Show what a finished estimate was made from: the body of its request, with the model."""
    return _file(request, key, "request.json")


@job_router.get("/{key}/result.{ending}", response_class=FileResponse, responses={200: _FILES})
async def job_result(
    key: str, ending: Literal["csv", "json", "html"], request: Request
) -> Response:
    """Download a finished estimate or evaluation as the file that the command line writes."""
    return _file(request, key, f"result.{ending}", _attached(f"prevalence.{ending}"))


def _file(request: Request, key: str, name: str, headers: dict[str, str] | None = None) -> Response:
    path = _path(request, key, name)
    return FileResponse(path, media_type=_MEDIA[name.rpartition(".")[2]], headers=headers)


def _path(request: Request, key: str, name: str) -> Path:
    """A file of a job that is over."""
    job = state_of(request).jobs.get(key)
    if job.problem is not None:
        raise job.problem
    if not job.over:
        raise Problem("conflict", "The job is not done yet.")
    path = None if job.folder is None else job.folder / name
    if path is None or not path.exists():
        raise Problem("not_found", "This job has no such file.")
    return path


def _answer_folder(request: Request, key: str) -> Path:
    return _path(request, key, "index.json").parent


def _attached(name: str) -> dict[str, str]:
    return {
        "content-disposition": f'attachment; filename="{name}"',
        "content-security-policy": _ISOLATED,
    }
