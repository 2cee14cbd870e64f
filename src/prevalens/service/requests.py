"""Reading what clients send: one way for small JSON bodies, one for large ones, one for forms."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from prevalens.service.forms import FormReader, read_form
from prevalens.service.jobs import Job, Jobs
from prevalens.service.problems import Problem
from prevalens.service.schemas import ErrorAnswer, first_error
from prevalens.service.settings import Limits

__all__ = [
    "REFUSALS",
    "body_of",
    "media_type",
    "outcome",
    "read_files",
    "read_json",
    "save_body",
]

#: How refusals look in the OpenAPI document.
REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request is refused; the message says why."},
    "5XX": {"model": ErrorAnswer, "description": "The server cannot do it, now or at all."},
}
_SMALL = 10**6

Body = TypeVar("Body", bound=BaseModel)


def media_type(request: Request) -> str:
    """What the body says it is, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def body_of(*kinds: tuple[str, Any]) -> dict[str, Any]:
    """How bodies that a route reads itself look in the OpenAPI document."""
    content = {kind: {"schema": schema} for kind, schema in kinds}
    return {"requestBody": {"required": True, "content": content}}


async def read_json(request: Request, kind: type[Body]) -> Body:
    """A small JSON body, checked."""
    if media_type(request) != "application/json":
        raise Problem("media_type", "Send JSON, with Content-Type: application/json.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _SMALL:
            raise Problem("too_large", "This request may have up to 1 MB.")
    try:
        return kind.model_validate_json(bytes(body))
    except ValidationError as error:
        raise Problem("bad_input", first_error(error)) from error


async def save_body(request: Request, path: Path) -> None:
    """Any body, to a file."""
    with path.open("xb") as file:
        async for chunk in request.stream():
            file.write(chunk)


async def read_files(request: Request, folder: Path, limits: Limits) -> FormReader:
    """A form with at least one file."""
    form = await read_form(
        request.headers.get("content-type", ""), request.stream(), folder, limits
    )
    if not form.files:
        raise Problem("bad_input", "The form brings no file; add one as the part 'file'.")
    return form


async def outcome(request: Request, jobs: Jobs, job: Job) -> None:
    """Wait for a job; if its client goes away, so does the job."""
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
