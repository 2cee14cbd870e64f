"""What a computation used: time, memory, versions of the libraries."""

from __future__ import annotations

import contextlib
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from prevalens._version import __version__
from prevalens.experiments.cache import ScoreCache

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["Meter", "Usage", "metered", "versions"]

_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_STATUS = Path("/proc/self/status")
#: A long fit may repeat itself; so many different warnings are kept.
_MOST_WARNINGS = 20
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Usage:
    """What one cell cost; it differs from run to run and is kept apart from the results.

    Attributes
    ----------
    fit_seconds, quantify_seconds : float
        Cells that share a fitted quantifier all name the time of its training.
    seconds : float
        Time from the start to the end of this cell, for the estimate of what is left.
    peak_megabytes : float
        Most memory the process had in use meanwhile; 0 if the system does not tell.
    scores_reused, scores_computed : int
        Questions to the classifier that were answered from the cache, or not.
    warnings : tuple of str
    """

    fit_seconds: float
    quantify_seconds: float
    seconds: float
    peak_megabytes: float
    scores_reused: int = 0
    scores_computed: int = 0
    warnings: tuple[str, ...] = ()


@dataclass
class Meter:
    """What a block used; filled in when it ends. Fields as in `Usage`."""

    seconds: float = 0.0
    peak_megabytes: float = 0.0
    reused: int = 0
    computed: int = 0
    warnings: tuple[str, ...] = ()


@contextlib.contextmanager
def metered(cache: ScoreCache | None = None) -> Iterator[Meter]:
    """Measure a block, and keep its warnings from the screen.

    Examples
    --------
    >>> with metered() as meter:
    ...     warnings.warn("odd", stacklevel=1)
    >>> meter.warnings
    ('UserWarning: odd',)
    """
    meter, before, start = Meter(), _questions(cache), time.perf_counter()
    _reset_peak_memory()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield meter
    after = _questions(cache)
    texts = [f"{one.category.__name__}: {one.message}" for one in caught]
    meter.seconds = time.perf_counter() - start
    meter.peak_megabytes = _peak_memory()
    meter.reused, meter.computed = after[0] - before[0], after[1] - before[1]
    meter.warnings = tuple(dict.fromkeys(texts))[:_MOST_WARNINGS]


def _questions(cache: ScoreCache | None) -> tuple[int, int]:
    return (0, 0) if cache is None else (cache.hits, cache.misses)


def versions() -> dict[str, str]:
    """Versions of this package, of what it computes with, and of Python."""
    libraries = {name: version(name) for name in _LIBRARIES}
    return {"prevalens": __version__, **libraries, "python": platform.python_version()}


def _reset_peak_memory() -> None:
    """Let the peak start anew, where the system can; elsewhere it is that of the process."""
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5")


def _peak_memory() -> float:
    """Most memory in use since the last reset, in megabytes."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = _STATUS.read_text().splitlines()
        line = next(one for one in lines if one.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    with contextlib.suppress(AttributeError):
        # Kilobytes, save on macOS.
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return 0.0
