"""Jobs: how far they are, their results, and how to stop them."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from prevalens.service.jobs import Job
from prevalens.service.problems import Problem
from prevalens.service.requests import REFUSALS
from prevalens.service.schemas import JobAnswer, JobsAnswer, QuantifyAnswer
from prevalens.service.state import state_of

__all__ = ["MEDIA", "attachment", "router"]

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=REFUSALS)

MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
}
# A report brings its own scripts; as a page of this server it could use the server, so browsers
# are told to save it, and to give it an origin of its own should they show it.
_ISOLATED = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'"
)


@router.get("", response_model=JobsAnswer)
async def jobs(request: Request) -> dict[str, Any]:
    """List the jobs, oldest first."""
    return {"jobs": [job.shown() for job in state_of(request).jobs.all()]}


@router.get("/{key}", response_model=JobAnswer)
async def job(key: str, request: Request) -> dict[str, Any]:
    """Tell how far a job is."""
    return state_of(request).jobs.get(key).shown()


@router.delete("/{key}", response_model=JobAnswer)
async def cancel(key: str, request: Request) -> dict[str, Any]:
    """Stop a job that runs; remove one that is over, with its files."""
    all_jobs = state_of(request).jobs
    found = all_jobs.get(key)
    if found.over:
        all_jobs.forget(found)
    else:
        await all_jobs.cancel(key)
    return found.shown()


@router.get("/{key}/answer", response_model=QuantifyAnswer)
async def answer(key: str, request: Request) -> Response:
    """Hand out a finished estimate in the form in which a waiting request gets it."""
    return FileResponse(_finished(request, key).folder / "answer.json", media_type=MEDIA["json"])


@router.get(
    "/{key}/result.{ending}",
    response_class=FileResponse,
    responses={200: {"content": {kind.partition(";")[0]: {} for kind in MEDIA.values()}}},
)
async def result(key: str, ending: Literal["csv", "json", "html"], request: Request) -> Response:
    """Hand out a finished estimate as the file that the command line writes."""
    return attachment(_finished(request, key), ending)


def attachment(job: Job, ending: str) -> Response:
    """A file of a job, to be saved."""
    return FileResponse(
        job.folder / f"result.{ending}",
        media_type=MEDIA[ending],
        filename=f"prevalence.{ending}",
        headers={"content-security-policy": _ISOLATED},
    )


def _finished(request: Request, key: str) -> Job:
    found = state_of(request).jobs.get(key)
    if found.kind != "quantify":
        raise Problem("not_found", "This job has no estimates.")
    if found.problem is not None:
        raise found.problem
    if not found.over:
        raise Problem("conflict", "The job is not done yet.")
    return found
