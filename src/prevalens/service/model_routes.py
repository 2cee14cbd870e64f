"""Models: list them, download their files, and train new models from labelled files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from prevalens.service.estimate_routes import job_started
from prevalens.service.jobs import Job
from prevalens.service.problems import Problem
from prevalens.service.requests import REFUSALS, body_of, read_json
from prevalens.service.schemas import JobAnswer, ModelAnswer, ModelsAnswer, NoBody, TrainBody
from prevalens.service.state import ServerState, state_of
from prevalens.service.storage import ENDING, ModelEntry, unused_path

router = APIRouter(prefix="/v1", tags=["models"], responses=REFUSALS)

_DEMO = "demo-tickets"


@router.get("/models", response_model=ModelsAnswer)
async def list_models(request: Request) -> dict[str, Any]:
    """List the models: those given at the start and those trained here."""
    return {"models": [entry.shown() for entry in state_of(request).models.all()]}


@router.get("/models/{name}", response_model=ModelAnswer)
async def get_model(name: str, request: Request) -> dict[str, Any]:
    """Describe a model: its labels, its columns and its training."""
    return state_of(request).models.get(name).shown()


@router.get(
    "/models/{name}/file",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def download_model(name: str, request: Request) -> Response:
    """Download a model's file, for the command line or another server."""
    entry = state_of(request).models.get(name)
    return FileResponse(
        entry.path, media_type="application/octet-stream", filename=f"{entry.name}{ENDING}"
    )


@router.delete("/models/{name}", status_code=204)
async def remove_model(name: str, request: Request) -> Response:
    """Remove a model that was trained here; for an hour it can be restored."""
    state = state_of(request)
    earlier = state.models.removed.get(name)
    entry = state.models.remove(name)
    if earlier is not None:
        state.storage.remove(earlier[0].path.parent)
    # Out of the folder of kept models: the next server must not find it there.
    folder = state.storage.folder()
    _move(entry, folder / entry.path.name)
    state.storage.measure(folder)
    return Response(status_code=204)


@router.post("/models/{name}/restore", response_model=ModelAnswer)
async def restore_model(name: str, request: Request) -> dict[str, Any]:
    """Restore a model that was removed; if its name was taken meanwhile, under another one."""
    state = state_of(request)
    _check_models(state)
    entry = state.models.restore(name)
    trash = entry.path.parent
    _move(entry, unused_path(state.settings.keep or state.storage.folder(), entry.name))
    state.storage.remove(trash)
    return entry.shown()


def _move(entry: ModelEntry, path: Path) -> None:
    shutil.move(entry.path, path)
    entry.path = path


@router.post(
    "/models",
    status_code=202,
    response_model=JobAnswer,
    openapi_extra=body_of(("application/json", TrainBody)),
)
async def train_model(request: Request) -> Response:
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
        with state.uploads.in_use([upload.id]):
            about = await state.train(task, job.progress)
        return {"model": _keep(state, folder, name, about).name}

    return job_started(state.jobs.start("train", work, folder=folder))


@router.post(
    "/demo",
    status_code=202,
    response_model=JobAnswer,
    openapi_extra=body_of(("application/json", NoBody)),
)
async def train_demo(request: Request) -> Response:
    """Train a model on built-in support tickets, and upload unlabelled tickets to try it on."""
    state = state_of(request)
    await read_json(request, NoBody)
    _check_room(state)
    folder = state.storage.folder()

    async def work(job: Job) -> dict[str, Any]:
        known = _DEMO in state.models
        task = {"task": "demo", "folder": str(folder), "train": not known}
        made = await state.train({**task, "output": str(folder / f"model{ENDING}")}, job.progress)
        if not known:
            _keep(state, folder, _DEMO, made["about"])
        files = [(Path(file["path"]), file["preview"]) for file in made["files"]]
        uploads = [state.uploads.add(path.name, path, preview) for path, preview in files]
        return {"model": _DEMO, "uploads": [upload.shown() for upload in uploads]}

    return job_started(state.jobs.start("demo", work, folder=folder))


def _check_room(state: ServerState) -> None:
    state.training.check_room()
    _check_models(state)


def _check_models(state: ServerState) -> None:
    # Models in training count: there must be room for them when they are done.
    training = sum(job.kind in ("train", "demo") for job in state.jobs.unfinished)
    if len(state.models.trained()) + training >= state.limits.kept_models:
        raise Problem(
            "storage",
            f"The server keeps {state.limits.kept_models} models trained here; remove one first.",
        )


def _keep(state: ServerState, folder: Path, wanted: str, about: dict[str, Any]) -> ModelEntry:
    """Move a new model from its job's folder to where models are kept."""
    name = state.models.free_name(wanted)
    path = unused_path(state.settings.keep or state.storage.folder(), name)
    shutil.move(folder / f"model{ENDING}", path)
    return state.models.add(ModelEntry(name, path, "trained", about))
