"""Estimates: JSON or files in, prevalences out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from prevalens.service.jobs import Job
from prevalens.service.problems import Problem
from prevalens.service.requests import REFUSALS, body_of, media_type, outcome, read_files, save_body
from prevalens.service.routes.jobs import MEDIA, attachment
from prevalens.service.schemas import (
    JobAnswer,
    QuantifyAnswer,
    QuantifyBody,
    QuantifyForm,
    first_error,
)
from prevalens.service.state import State, state_of

__all__ = ["router"]

router = APIRouter(prefix="/v1/models", tags=["quantify"], responses=REFUSALS)

_SMALL = 200_000
_BODIES = body_of(
    ("application/json", QuantifyBody.model_json_schema()),
    ("multipart/form-data", QuantifyForm.model_json_schema()),
)
_FORMATS: dict[str, Any] = {kind.partition(";")[0]: {} for kind in MEDIA.values()}


@router.post(
    "/{name}/quantify",
    response_model=QuantifyAnswer,
    responses={
        200: {"content": {**_FORMATS}},
        202: {"model": JobAnswer, "description": "With wait=false: the job."},
    },
    openapi_extra=_BODIES,
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
    entry = state.models.get(name)
    state.quantifying.check_room()
    folder = state.storage.folder()
    try:
        task = await _received(request, state, folder)
    except BaseException:
        state.storage.remove(folder)
        raise
    task |= {"task": "quantify", "model": str(entry.path), "name": entry.name}
    task["formats"] = ["csv", "json", "html"] if not wait else [format]
    job = state.jobs.start("quantify", lambda job: _work(state, job, task), folder=folder)
    if not wait:
        return JSONResponse(job.shown(), status_code=202)
    try:
        await outcome(request, state.jobs, job)
        return _answer(job, format)
    finally:
        state.jobs.forget(job)


async def _received(request: Request, state: State, folder: Path) -> dict[str, Any]:
    """The body as files for the worker, which is the one to read them."""
    kind = media_type(request)
    known = {key: [str(one.path), one.name] for key, one in state.uploads.items()}
    task: dict[str, Any] = {"folder": str(folder), "uploads": known}
    if kind == "application/json":
        await save_body(request, folder / "body.json")
        _check_small(folder / "body.json")
        return task
    if kind == "multipart/form-data":
        form = await read_files(request, folder, state.limits)
        files = [[str(one.path), one.name] for one in form.files]
        return {**task, "files": files, "fields": form.fields}
    raise Problem("media_type", "Send application/json, or files as multipart/form-data.")


def _check_small(path: Path) -> None:
    """Refuse a bad body at once if that costs nothing; large ones are left to the worker."""
    if path.stat().st_size > _SMALL:
        return
    try:
        QuantifyBody.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise Problem("bad_input", first_error(error)) from error


async def _work(state: State, job: Job, task: dict[str, Any]) -> dict[str, Any]:
    found = await state.quantify(task, job.progress)
    state.uploads.touch(found.pop("used"))
    state.metrics.add("prevalens_items_total", found["n_items"])
    return {**found, "answer": f"/v1/jobs/{job.id}/answer"}


def _answer(job: Job, format: str) -> Response:
    """Read now, because the job's files go with it."""
    if format == "json":
        return Response((job.folder / "answer.json").read_bytes(), media_type=MEDIA["json"])
    sent = attachment(job, format)
    content = (job.folder / f"result.{format}").read_bytes()
    kept = {name: value for name, value in sent.headers.items() if name.startswith("content-")}
    return Response(content, headers=kept)
