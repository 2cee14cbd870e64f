"""Uploads, estimates and jobs: files or JSON in, prevalences out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import ValidationError

from prevalens.service.jobs import Job, Jobs
from prevalens.service.problems import Problem
from prevalens.service.requests import (
    NO_FILE,
    REFUSALS,
    body_of,
    media_type,
    read_files,
    save_body,
)
from prevalens.service.schemas import (
    JobAnswer,
    JobsAnswer,
    QuantifyAnswer,
    QuantifyBody,
    QuantifyForm,
    UploadAnswer,
    UploadsAnswer,
    first_error,
)
from prevalens.service.state import ServerState, state_of

upload_router = APIRouter(prefix="/v1/uploads", tags=["uploads"], responses=REFUSALS)
quantify_router = APIRouter(prefix="/v1/models", tags=["quantify"], responses=REFUSALS)
job_router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=REFUSALS)

_UPLOAD_FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary"}},
}
#: The body of requests about items.
_ITEMS = body_of(
    ("application/json", QuantifyBody.model_json_schema()),
    ("multipart/form-data", QuantifyForm.model_json_schema()),
)
#: A JSON body up to this size is checked at once; the check of a larger one is left to the worker.
_SMALL = 200_000
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
    openapi_extra=body_of(("multipart/form-data", _UPLOAD_FORM)),
)
async def add(request: Request) -> dict[str, Any]:
    """Keep one or more files for a while, and show their columns and first rows."""
    state = state_of(request)
    folder = state.storage.folder()
    try:
        form = await read_files(request, folder, state.limits)
        # All are previewed before any is kept: a refusal leaves nothing behind.
        previews = [
            await state.quantify({"task": "preview", "path": str(file.path), "name": file.name})
            for file in form.files
        ]
        kept = []
        for file, preview in zip(form.files, previews, strict=True):
            state.uploads.check_room(file.size)
            kept.append(state.uploads.add(file.name, file.path, preview))
            state.metrics.add("prevalens_upload_bytes_total", file.size)
    finally:
        state.storage.remove(folder)
    return {"uploads": [upload.shown() for upload in kept]}


@upload_router.get("/{key}", response_model=UploadAnswer)
async def get(key: str, request: Request) -> dict[str, Any]:
    """Show an upload's columns and first rows."""
    return state_of(request).uploads.get(key).shown()


@upload_router.delete("/{key}", status_code=204)
async def remove(key: str, request: Request) -> Response:
    """Remove an upload."""
    state_of(request).uploads.remove(key)
    return Response(status_code=204)


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
    task, folder = await _about_items(request, name, "quantify")
    task["formats"] = ["csv", "json", "html"] if not wait else [format]
    job = state.jobs.start("quantify", lambda job: _work(state, job, task), folder=folder)
    if not wait:
        return JSONResponse(job.shown(), status_code=202)
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
    task, folder = await _about_items(request, name, "sample")
    task |= {"n": n, "stratified": stratified, "seed": seed}
    try:
        state.uploads.touch((await state.quantify(task))["used"])
        content = (folder / "to_label.csv").read_bytes()
    finally:
        state.storage.remove(folder)
    return Response(content, media_type=_MEDIA["csv"], headers=_attached("to_label.csv"))


async def _about_items(request: Request, name: str, kind: str) -> tuple[dict[str, Any], Path]:
    """Make a task of a request about items and a model; the caller removes its folder."""
    state = state_of(request)
    entry = state.models.get(name)
    state.quantifying.check_room()
    folder = state.storage.folder()
    try:
        task = await _received(request, state, folder)
    except BaseException:
        state.storage.remove(folder)
        raise
    return {**task, "task": kind, "model": str(entry.path), "name": entry.name}, folder


async def _received(request: Request, state: ServerState, folder: Path) -> dict[str, Any]:
    """Store the body as files, which the worker will read."""
    kind = media_type(request)
    known = {upload.id: (str(upload.path), upload.name) for upload in state.uploads.all()}
    task: dict[str, Any] = {"folder": str(folder), "uploads": known}
    if kind == "application/json":
        await save_body(request, folder / "body.json")
        _check_small(folder / "body.json")
        return task
    if kind == "multipart/form-data":
        form = await read_files(request, folder, state.limits)
        given: dict[str, list[tuple[str, str]]] = {"files": [], "labelled": []}
        for file in form.files:
            part = "labelled" if file.part == "labelled" else "files"
            given[part].append((str(file.path), file.name))
        if not given["files"]:
            raise Problem("bad_input", NO_FILE)
        return {**task, **given, "fields": form.fields}
    raise Problem("media_type", "Send application/json, or files as multipart/form-data.")


def _check_small(path: Path) -> None:
    if path.stat().st_size > _SMALL:
        return
    try:
        QuantifyBody.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise Problem("bad_input", first_error(error)) from error


async def _work(state: ServerState, job: Job, task: dict[str, Any]) -> dict[str, Any]:
    result = await state.quantify(task, job.progress)
    state.uploads.touch(result.pop("used"))
    state.metrics.add("prevalens_items_total", result["n_items"])
    return {**result, "answer": f"/v1/jobs/{job.id}/answer"}


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
    if format == "json":
        return Response((job.folder / "answer.json").read_bytes(), media_type=_MEDIA["json"])
    content = (job.folder / f"result.{format}").read_bytes()
    return Response(content, media_type=_MEDIA[format], headers=_attached(f"prevalence.{format}"))


@job_router.get("", response_model=JobsAnswer)
async def jobs(request: Request) -> dict[str, Any]:
    """List the jobs, oldest first."""
    return {"jobs": [job.shown() for job in state_of(request).jobs.all()]}


@job_router.get("/{key}", response_model=JobAnswer)
async def job(key: str, request: Request) -> dict[str, Any]:
    """Show the progress of a job."""
    return state_of(request).jobs.get(key).shown()


@job_router.delete("/{key}", response_model=JobAnswer)
async def cancel(key: str, request: Request) -> dict[str, Any]:
    """Stop a job that runs; remove one that is over, with its files."""
    all_jobs = state_of(request).jobs
    job = all_jobs.get(key)
    if job.over:
        all_jobs.forget(job)
    else:
        await all_jobs.cancel(key)
    return job.shown()


@job_router.get("/{key}/answer", response_model=QuantifyAnswer)
async def answer(key: str, request: Request) -> Response:
    """Download a finished estimate in the form that a waiting request gets."""
    return FileResponse(_finished(request, key).folder / "answer.json", media_type=_MEDIA["json"])


@job_router.get("/{key}/result.{ending}", response_class=FileResponse, responses={200: _FILES})
async def result(key: str, ending: Literal["csv", "json", "html"], request: Request) -> Response:
    """Download a finished estimate as the file that the command line writes."""
    path = _finished(request, key).folder / f"result.{ending}"
    return FileResponse(path, media_type=_MEDIA[ending], headers=_attached(f"prevalence.{ending}"))


def _attached(name: str) -> dict[str, str]:
    return {
        "content-disposition": f'attachment; filename="{name}"',
        "content-security-policy": _ISOLATED,
    }


def _finished(request: Request, key: str) -> Job:
    job = state_of(request).jobs.get(key)
    if job.kind != "quantify":
        raise Problem("not_found", "This job has no estimates.")
    if job.problem is not None:
        raise job.problem
    if not job.over:
        raise Problem("conflict", "The job is not done yet.")
    return job
