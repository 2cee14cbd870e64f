"""Refusals: one exception, one JSON form."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

#: The media type of refusals.
PROBLEM_TYPE = "application/problem+json"
#: Every code a client can meet, and the HTTP status it comes with.
STATUS = {
    "bad_input": HTTPStatus.UNPROCESSABLE_ENTITY,
    "bad_request": HTTPStatus.BAD_REQUEST,
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "cancelled": HTTPStatus.CONFLICT,
    "conflict": HTTPStatus.CONFLICT,
    "forbidden": HTTPStatus.FORBIDDEN,
    "internal": HTTPStatus.INTERNAL_SERVER_ERROR,
    "media_type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "method": HTTPStatus.METHOD_NOT_ALLOWED,
    "misdirected": HTTPStatus.MISDIRECTED_REQUEST,
    "not_found": HTTPStatus.NOT_FOUND,
    "storage": HTTPStatus.INSUFFICIENT_STORAGE,
    "slow_client": HTTPStatus.REQUEST_TIMEOUT,
    "time_limit": HTTPStatus.GATEWAY_TIMEOUT,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "unauthorised": HTTPStatus.UNAUTHORIZED,
}


class Problem(Exception):  # noqa: N818 - most are refusals, not errors.
    """A refusal that is sent to the client.

    Parameters
    ----------
    code : str
        One of `STATUS`.
    message : str
        One sentence for people: what is wrong, where, and the way out.
    headers : dict, optional
        Further headers of the answer.

    Examples
    --------
    >>> Problem("not_found", "There is no model 'x'.").body()["detail"]
    "There is no model 'x'."
    """

    def __init__(self, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code if code in STATUS else "internal"
        self.message = message
        self.headers = headers or {}

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(STATUS[self.code])

    def error(self) -> dict[str, str]:
        """Code and message."""
        return {"code": self.code, "message": self.message}

    def body(self) -> dict[str, Any]:
        """The JSON form of every error: that of RFC 9457, with code and message as `error`."""
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.message,
            "error": self.error(),
        }
