from __future__ import annotations

import platform
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import prevalens
from prevalens.experiments.cache import ScoreCache
from prevalens.experiments.run import metered, versions


def test_time_is_measured() -> None:
    with metered() as meter:
        time.sleep(0.02)
    assert 0.02 <= meter.seconds < 10


@pytest.mark.skipif(sys.platform != "linux", reason="the peak starts anew on Linux only")
def test_peak_memory_is_that_of_the_block() -> None:
    with metered() as large:
        np.ones(2**24).sum()
    with metered() as small:
        np.ones(2**10).sum()
    assert large.peak_megabytes > small.peak_megabytes + 100 > 100


def test_warnings_are_kept_once_and_not_shown() -> None:
    with metered() as meter:
        for number in (1, 1, 2):
            warnings.warn(f"odd {number}", RuntimeWarning, stacklevel=1)
    assert meter.warnings == ("RuntimeWarning: odd 1", "RuntimeWarning: odd 2")


def test_questions_to_the_cache_are_counted(tmp_path: Path) -> None:
    cache = ScoreCache(tmp_path)
    cache.get("aa")
    with metered(cache) as meter:
        cache.get("bb")
        cache.put("bb", {"votes": np.zeros(1)})
        cache.get("bb")
    assert (meter.reused, meter.computed) == (1, 1)


def test_versions_name_what_computes() -> None:
    known = versions()
    assert known["prevalens"] == prevalens.__version__
    assert known["python"] == platform.python_version()
    assert known["numpy"] == np.__version__
    assert set(known) == {"prevalens", "numpy", "scipy", "scikit-learn", "python"}
