"""How long the protocols take, and how much memory, for 100,000 samples of 100 of 12,000 items.

    pytest benchmarks/test_protocols.py --benchmark-enable -p no:xdist

writes benchmarks/results/protocols.md. Seconds are CPU seconds of one run on one core.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens.protocols import (
    MLAPP,
    ChronologicalWindows,
    CovariateTilt,
    LabelsetWeights,
    LabelTilt,
    Natural,
    Protocol,
    TwoLabels,
)

RESULTS = Path(__file__).parent / "results" / "protocols.md"
N_ITEMS, N_LABELS, SIZE, MANY, FEW = 12_000, 50, 100, 100_000, 1000

HEAD = f"""# Drawing samples

Samples of {SIZE} of {N_ITEMS:,} items with {N_LABELS} labels (prevalences 0.02 to 0.5). Peak
memory is what Python and numpy allocate beyond the labels; an index takes 4 bytes. The tilts
weigh every item for every sample, so their time grows with the size of the pool.

| protocol | samples | CPU seconds | peak bytes per index |
|---|---|---|---|
"""

#: Protocol, its number of samples, and the CPU seconds it may take.
CASES: list[tuple[Protocol, int, float]] = [
    (MLAPP(SIZE, more_than=MANY, max_samples=MANY), MANY, 5.0),
    (Natural(SIZE, n_samples=MANY), MANY, 5.0),
    (TwoLabels(SIZE, repeats=100, max_samples=MANY), MANY, 10.0),
    (ChronologicalWindows(size=SIZE, step=1), N_ITEMS - SIZE + 1, 5.0),
    (LabelsetWeights(SIZE, n_samples=FEW), FEW, 5.0),
    (LabelTilt(SIZE, n_samples=FEW), FEW, 5.0),
    (CovariateTilt(None, SIZE, n_samples=FEW), FEW, 5.0),
]


@pytest.fixture(scope="module")
def rows() -> Iterator[list[str]]:
    lines: list[str] = []
    yield lines
    if lines:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(("protocol", "n_samples", "limit"), CASES, ids=lambda case: str(case)[:12])
def test_drawing(
    benchmark: Any, rows: list[str], protocol: Protocol, n_samples: int, limit: float
) -> None:
    rng = np.random.default_rng(0)
    Y = (rng.random((N_ITEMS, N_LABELS)) < np.linspace(0.02, 0.5, N_LABELS)).astype(np.int8)
    protocol = protocol.with_items(rng.normal(size=(N_ITEMS, 100)))
    start = time.process_time()
    samples = benchmark.pedantic(protocol.draw, (Y, 0), rounds=1)
    seconds = time.process_time() - start
    tracemalloc.start()
    protocol.draw(Y, 0)
    peak = tracemalloc.get_traced_memory()[1] / len(samples.flat)
    tracemalloc.stop()
    rows.append(f"| {protocol.name} | {len(samples):,} | {seconds:.2f} | {peak:.1f} |")
    assert len(samples) == n_samples
    assert seconds < limit
