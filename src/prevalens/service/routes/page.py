"""The page and its files, which are read once: no name from a client reaches the disk."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from prevalens.service.problems import Problem

__all__ = ["router"]

router = APIRouter(include_in_schema=False)

_KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FILES = {
    one.name: (one.read_bytes(), _KINDS[one.name.rpartition(".")[2]])
    for one in files("prevalens.service").joinpath("static").iterdir()
    if one.name.rpartition(".")[2] in _KINDS
}
#: May be kept, but has to be asked for again: the next version may have other files.
_CACHING = {"cache-control": "no-cache"}


def _answer(name: str) -> Response:
    content, kind = _FILES[name]
    return Response(content, media_type=kind, headers=_CACHING)


@router.get("/")
async def page() -> Response:
    """The page."""
    return _answer("index.html")


@router.get("/docs")
async def docs() -> Response:
    """The HTTP interface, described."""
    return _answer("docs.html")


@router.get("/favicon.ico")
async def icon() -> Response:
    """The page's sign."""
    return _answer("icon.svg")


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """A file of the page."""
    if name not in _FILES:
        raise Problem("not_found", "There is no such file.")
    return _answer(name)
