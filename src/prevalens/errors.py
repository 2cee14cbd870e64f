"""The errors and warnings of the package; apart from the checks, so that they load at once."""

from __future__ import annotations

__all__ = ["FormatError", "InputError", "PrevalensError", "PrevalensWarning"]


class PrevalensError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(PrevalensError, ValueError):
    """Something handed in is not what it should be."""


class FormatError(InputError):
    """A file is not in the format it claims, or is damaged."""


class PrevalensWarning(UserWarning):
    """The result stands, but the user should know something about it."""
