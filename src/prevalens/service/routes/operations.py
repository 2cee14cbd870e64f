"""Whether the server is there, and what it has done."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from prevalens._version import __version__
from prevalens.service.metrics import CONTENT_TYPE
from prevalens.service.requests import REFUSALS
from prevalens.service.schemas import HealthAnswer
from prevalens.service.state import state_of

__all__ = ["router"]

router = APIRouter(tags=["operations"], responses=REFUSALS)


@router.get("/healthz", response_model=HealthAnswer)
async def health() -> dict[str, str]:
    """Tell that the server is there; needs no token."""
    return {"status": "ok", "version": __version__}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Counters in the text format of Prometheus."""
    return PlainTextResponse(state_of(request).metrics.text(), media_type=CONTENT_TYPE)
