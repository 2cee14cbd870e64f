"""Models: which there are, and new ones from labelled files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from prevalens.service.jobs import Job
from prevalens.service.models import ENDING, Entry
from prevalens.service.problems import Problem
from prevalens.service.requests import REFUSALS, body_of, read_json
from prevalens.service.schemas import JobAnswer, ModelAnswer, ModelsAnswer, NoBody, TrainBody
from prevalens.service.state import State, state_of
from prevalens.service.storage import Upload

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["models"], responses=REFUSALS)

_DEMO = "demo-tickets"


@router.get("/models", response_model=ModelsAnswer)
async def models(request: Request) -> dict[str, Any]:
    """List the models: those given at the start and those trained here."""
    return {"models": [entry.shown() for entry in state_of(request).models.all()]}


@router.get("/models/{name}", response_model=ModelAnswer)
async def model(name: str, request: Request) -> dict[str, Any]:
    """Tell what a model knows and what it needs."""
    return state_of(request).models.get(name).shown()


@router.get(
    "/models/{name}/file",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def model_file(name: str, request: Request) -> Response:
    """Hand out a model's file, for the command line or another server."""
    entry = state_of(request).models.get(name)
    return FileResponse(
        entry.path, media_type="application/octet-stream", filename=f"{entry.name}{ENDING}"
    )


@router.delete("/models/{name}", status_code=204)
async def remove(name: str, request: Request) -> Response:
    """Remove a model that was trained here, with its file."""
    state_of(request).models.remove(name).path.unlink(missing_ok=True)
    return Response(status_code=204)


@router.post(
    "/models",
    status_code=202,
    response_model=JobAnswer,
    openapi_extra=body_of(("application/json", TrainBody.model_json_schema())),
)
async def train(request: Request) -> dict[str, Any]:
    """Train a model from an upload; the answer is a job."""
    state = state_of(request)
    wanted = await read_json(request, TrainBody)
    upload = state.uploads.get(wanted.upload)
    _check_room(state)
    folder = state.storage.folder()
    task = {
        **wanted.model_dump(exclude={"upload", "name"}),
        "task": "train",
        "path": str(upload.path),
        "source": upload.name,
        "output": str(folder / f"model{ENDING}"),
    }
    name = wanted.name or Path(upload.name).name.partition(".")[0]

    async def work(job: Job) -> dict[str, Any]:
        about = await state.train(task, job.progress)
        return {"model": _take_in(state, folder, name, about).name}

    return state.jobs.start("train", work, folder=folder).shown()


@router.post(
    "/demo",
    status_code=202,
    response_model=JobAnswer,
    openapi_extra=body_of(("application/json", NoBody.model_json_schema())),
)
async def demo(request: Request) -> dict[str, Any]:
    """Train a model on built-in support tickets, and bring tickets to ask it about."""
    state = state_of(request)
    await read_json(request, NoBody)
    _check_room(state)
    folder = state.storage.folder()

    async def work(job: Job) -> dict[str, Any]:
        return await _demo(state, job, folder)

    return state.jobs.start("demo", work, folder=folder).shown()


async def _demo(state: State, job: Job, folder: Path) -> dict[str, Any]:
    known = _DEMO in state.models
    task = {"task": "demo", "folder": str(folder), "train": not known}
    made = await state.train({**task, "output": str(folder / f"model{ENDING}")}, job.progress)
    if not known:
        _take_in(state, folder, _DEMO, made["about"])
    uploads = [_bring(state, Path(one["path"]), one["preview"]) for one in made["files"]]
    return {"model": _DEMO, "uploads": [upload.shown() for upload in uploads]}


def _bring(state: State, path: Path, preview: dict[str, Any]) -> Upload:
    folder = state.storage.folder()
    moved = path.rename(folder / f"0{path.suffix}")
    size = moved.stat().st_size
    return state.uploads.add(Upload(path.name, moved, folder, size, preview))


def _check_room(state: State) -> None:
    if len(state.models.trained()) >= state.limits.kept_models:
        raise Problem(
            "storage",
            f"The server keeps {state.limits.kept_models} models trained here; remove one first.",
        )


def _take_in(state: State, folder: Path, wanted: str, about: dict[str, Any]) -> Entry:
    """Move a new model from its job to where models are kept."""
    name = state.models.free_name(wanted)
    keep = state.settings.keep
    place = state.storage.folder() / f"{name}{ENDING}" if keep is None else _unused(keep, name)
    shutil.move(folder / f"model{ENDING}", place)
    return state.models.add(Entry(name, place, "trained", about))


def _unused(folder: Path, name: str) -> Path:
    """A file that is not there yet: what somebody kept is never written over."""
    number, path = 1, folder / f"{name}{ENDING}"
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}{ENDING}"
    return path
