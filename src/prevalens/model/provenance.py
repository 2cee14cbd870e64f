"""The birth certificate of a model or a result."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy
import sklearn

from prevalens._version import __version__

__all__ = ["provenance"]


def provenance(method: str, source: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What made it, when, and from what."""
    return {
        "method": method,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "prevalens": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        **dict(source or {}),
    }
