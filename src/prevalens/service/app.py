"""The application: routes, checks before them, and one form for every error."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from prevalens._version import __version__
from prevalens.service.guard import Bodies, Guard
from prevalens.service.metrics import Observe
from prevalens.service.problems import STATUS, Problem
from prevalens.service.routes import jobs, models, operations, page, quantify, uploads
from prevalens.service.settings import Settings
from prevalens.service.state import State, state_of

__all__ = ["create_app"]

_log = logging.getLogger("prevalens.service")

_PARTS: tuple[Any, ...] = (quantify, models, uploads, jobs, operations, page)
_ABOUT = "Estimate how frequent each label is in batches of items, with models trained before."


def create_app(settings: Settings | None = None, *, state: State | None = None) -> FastAPI:
    """An ASGI application.

    Parameters
    ----------
    settings : Settings, optional
    state : State, optional
        One that was started already, instead of settings.
    """
    state = State(settings or Settings()) if state is None else state
    app = FastAPI(
        title="prevalens",
        version=__version__,
        description=_ABOUT,
        lifespan=_lifespan,
        # The pages that FastAPI brings load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.server = state
    for part in _PARTS:
        app.include_router(part.router)
    app.add_exception_handler(Problem, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_parameters)
    app.add_exception_handler(HTTPException, _refuse_http)
    app.add_exception_handler(Exception, _fail)
    # The last one added is the first one asked.
    app.add_middleware(Bodies, limits=state.limits)
    app.add_middleware(Guard, token=state.settings.token, hosts=state.settings.hosts)
    app.add_middleware(Observe, metrics=state.metrics)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: State = app.state.server
    await state.start()
    try:
        yield
    finally:
        await state.close()


def _answer(request: Request, problem: Problem) -> JSONResponse:
    state_of(request).metrics.add("prevalens_problems_total", code=problem.code)
    return JSONResponse(problem.body(), status_code=problem.status, headers=problem.headers)


async def _refuse(request: Request, problem: Any) -> JSONResponse:
    return _answer(request, problem)


async def _refuse_parameters(request: Request, error: Any) -> JSONResponse:
    found = error.errors()[0]
    place = ".".join(str(part) for part in found["loc"])
    return _answer(request, Problem("bad_input", f"{place}: {found['msg']}."))


async def _refuse_http(request: Request, error: Any) -> JSONResponse:
    codes = {int(status): code for code, status in STATUS.items()}
    code = codes.get(error.status_code, "bad_request")
    sentences = {
        "not_found": "There is nothing at this address; /docs describes the interface.",
        "method": "This address does not take that method.",
    }
    message = sentences.get(code, f"{error.detail}.")
    headers = dict(error.headers or {})
    if code == "method":
        headers = {"allow": ", ".join(_methods(request.url.path))}
    return _answer(request, Problem(code, message, headers))


def _methods(path: str) -> list[str]:
    """What an address takes, over all routes to it; a route by itself knows only its own."""
    routes = [route for part in _PARTS for route in part.router.routes]
    fitting = [route for route in routes if route.path_regex.match(path)]
    return sorted({method for route in fitting for method in route.methods})


async def _fail(request: Request, error: Exception) -> JSONResponse:
    # What went wrong is for the log; a stranger gets no inner workings.
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _answer(request, Problem("internal", "The server failed; its log says more."))
