"""The errors and warnings of the package; apart from the checks, so that they load at once."""

from __future__ import annotations

__all__ = ["FormatError", "InputError", "PrevalensError", "PrevalensWarning", "counted"]


class PrevalensError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(PrevalensError, ValueError):
    """Something handed in is not what it should be."""


class FormatError(InputError):
    """A file is not in the format it claims, or is damaged."""


class PrevalensWarning(UserWarning):
    """The result stands, but the user should know something about it."""


def counted(count: int, noun: str) -> str:
    """A number with its noun, for messages.

    Examples
    --------
    >>> counted(1, "item"), counted(2000, "batch")
    ('1 item', '2,000 batches')
    """
    ending = "" if count == 1 else "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{count:,} {noun}{ending}"
