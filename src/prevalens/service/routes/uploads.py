"""Files to look at first and use later."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from prevalens.service.requests import REFUSALS, StoredFile, body_of, read_files
from prevalens.service.schemas import UploadAnswer, UploadsAnswer
from prevalens.service.state import State, state_of
from prevalens.service.storage import Upload

__all__ = ["router"]

router = APIRouter(prefix="/v1/uploads", tags=["uploads"], responses=REFUSALS)

_FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary"}},
}


@router.post(
    "",
    status_code=201,
    response_model=UploadsAnswer,
    openapi_extra=body_of(("multipart/form-data", _FORM)),
)
async def add(request: Request) -> dict[str, Any]:
    """Keep one or more files for a while, and show their columns and first rows."""
    state = state_of(request)
    folder = state.storage.folder()
    try:
        form = await read_files(request, folder, state.limits)
        # All are looked at before any is kept: a refusal leaves nothing behind.
        previews = [await _look(state, file) for file in form.files]
        kept = [_keep(state, *one) for one in zip(form.files, previews, strict=True)]
    finally:
        state.storage.remove(folder)
    return {"uploads": [upload.shown() for upload in kept]}


async def _look(state: State, file: StoredFile) -> dict[str, Any]:
    return await state.quantify({"task": "preview", "path": str(file.path), "name": file.name})


def _keep(state: State, file: StoredFile, preview: dict[str, Any]) -> Upload:
    """Move a file to a folder of its own."""
    state.uploads.check_room(file.size)
    folder = state.storage.folder()
    path = file.path.rename(folder / file.path.name)
    state.metrics.add("prevalens_upload_bytes_total", file.size)
    return state.uploads.add(Upload(file.name, path, folder, file.size, preview))


@router.get("/{key}", response_model=UploadAnswer)
async def get(key: str, request: Request) -> dict[str, Any]:
    """Show an upload's columns and first rows."""
    return state_of(request).uploads.get(key).shown()


@router.delete("/{key}", status_code=204)
async def remove(key: str, request: Request) -> Response:
    """Remove an upload."""
    state_of(request).uploads.remove(key)
    return Response(status_code=204)
