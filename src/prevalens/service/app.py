"""The application: the page, health and metrics, all other routes, and one form for every error."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from prevalens._version import __version__
from prevalens.service.conditional import ConditionalAnswers
from prevalens.service.estimate_routes import job_router, quantify_router, upload_router
from prevalens.service.guard import BodyLimits, RequestGuard, refusal
from prevalens.service.metrics import CONTENT_TYPE, ObserveRequests
from prevalens.service.model_routes import router as model_router
from prevalens.service.problems import STATUS, Problem
from prevalens.service.requests import COMPONENTS, REFUSALS
from prevalens.service.schemas import (
    EvaluateBody,
    HealthAnswer,
    LabelsBody,
    NoBody,
    ProblemAnswer,
    QuantifyBody,
    QuantifyForm,
    ReadingBody,
    TrainBody,
    UploadForm,
)
from prevalens.service.settings import Settings
from prevalens.service.state import ServerState, state_of

_log = logging.getLogger("prevalens.service")

_ABOUT = "Estimate how frequent each label is in batches of items, with models trained before."
_KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: The files of the page, read once: no name from a client reaches the disk.
_FILES = {
    file.name: (file.read_bytes(), _KINDS[file.name.rpartition(".")[2]])
    for file in files("prevalens.service").joinpath("static").iterdir()
    if file.name.rpartition(".")[2] in _KINDS
}

_operations = APIRouter(tags=["operations"], responses=REFUSALS)
_page = APIRouter(include_in_schema=False)
_ROUTERS = (quantify_router, model_router, upload_router, job_router, _operations, _page)


@_operations.get("/healthz", response_model=HealthAnswer)
async def health() -> dict[str, str]:
    """Report that the server runs; needs no token."""
    return {"status": "ok", "version": __version__}


@_operations.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Counters in the text format of Prometheus."""
    return PlainTextResponse(state_of(request).metrics.text(), media_type=CONTENT_TYPE)


@_page.get("/")
async def page() -> Response:
    """The page."""
    return await static("index.html")


@_page.get("/docs")
async def docs() -> Response:
    """The description of the HTTP interface."""
    return await static("docs.html")


@_page.get("/favicon.ico")
async def icon() -> Response:
    """The icon of the page."""
    return await static("icon.svg")


@_page.get("/static/{name}")
async def static(name: str) -> Response:
    """A file of the page."""
    if name not in _FILES:
        raise Problem("not_found", "There is no such file.")
    content, kind = _FILES[name]
    # Browsers may keep it, but must ask again: the next version may have other files.
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})


def create_app(settings: Settings | None = None, *, state: ServerState | None = None) -> FastAPI:
    """Make an ASGI application.

    Parameters
    ----------
    settings : Settings, optional
    state : ServerState, optional
        A state that was started already, instead of settings.
    """
    state = ServerState(settings or Settings()) if state is None else state
    app = FastAPI(
        title="prevalens",
        version=__version__,
        description=_ABOUT,
        lifespan=_lifespan,
        # The pages that FastAPI brings load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        # Names of functions in a client that is generated from the description.
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.server = state
    for router in _ROUTERS:
        app.include_router(router)
    app.add_exception_handler(Problem, _answer)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _refuse_parameters)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _refuse_http)  # type: ignore[arg-type]
    app.add_exception_handler(ClientDisconnect, _abandon)
    app.add_exception_handler(Exception, _fail)
    _complete_description(app, secret=state.settings.token is not None)
    # The one added last sees a request first.
    app.add_middleware(ConditionalAnswers)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=3)
    app.add_middleware(BodyLimits, limits=state.limits, metrics=state.metrics)
    settings = state.settings
    app.add_middleware(
        RequestGuard, token=settings.token, hosts=settings.hosts, metrics=state.metrics
    )
    app.add_middleware(ObserveRequests, metrics=state.metrics)
    return app


#: Types that routes read or answer themselves, so that FastAPI does not see them.
_DESCRIBED = (
    *(EvaluateBody, LabelsBody, NoBody, QuantifyBody, QuantifyForm, ReadingBody, TrainBody),
    UploadForm,
    ProblemAnswer,
)


def _complete_description(app: FastAPI, *, secret: bool) -> None:
    """Add to the OpenAPI document the types of `_DESCRIBED`, and how the token is sent."""
    components = app.openapi()["components"]
    _, types = models_json_schema(
        [(model, "validation") for model in _DESCRIBED], ref_template=COMPONENTS
    )
    components["schemas"] = dict(sorted({**components["schemas"], **types["$defs"]}.items()))
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in app.openapi()["paths"].items():
        if path != "/healthz":
            for operation in operations.values():
                operation["security"] = [{"token": []}] if secret else [{}, {"token": []}]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: ServerState = app.state.server
    await state.start()
    try:
        yield
    finally:
        await state.close()


async def _answer(request: Request, problem: Problem) -> Response:
    return refusal(problem, state_of(request).metrics)


async def _refuse_parameters(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return await _answer(request, Problem("bad_input", f"{place}: {first['msg']}."))


async def _refuse_http(request: Request, error: HTTPException) -> Response:
    codes = {int(status): code for code, status in STATUS.items()}
    code = codes.get(error.status_code, "bad_request")
    sentences = {
        "not_found": "There is nothing at this address; /docs describes the interface.",
        "method": "This address does not take that method.",
    }
    headers = dict(error.headers or {})
    if code == "method":
        headers = {"allow": ", ".join(_methods(request.url.path))}
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=headers)
    return await _answer(request, Problem(code, sentences.get(code, f"{error.detail}."), headers))


def _methods(path: str) -> list[str]:
    """All methods that an address takes; a single route knows only its own."""
    routes = [r for router in _ROUTERS for r in router.routes if isinstance(r, Route)]
    found = {m for r in routes if r.path_regex.match(path) for m in r.methods or ()}
    return sorted(found | {"OPTIONS"} | ({"HEAD"} if "GET" in found else set()))


async def _abandon(request: Request, _: Exception) -> Response:
    """A client that went away in the middle of its request, which is no failure of the server."""
    return await _answer(request, Problem("bad_request", "The client closed the connection."))


async def _fail(request: Request, error: Exception) -> Response:
    # The log gets the details; a stranger gets no inner workings.
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return await _answer(request, Problem("internal", "The server failed; its log says more."))
