"""Progress of a command, as a bar on terminals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

from prevalens.workflow.progress import Step

__all__ = ["shown_steps"]


@contextmanager
def shown_steps() -> Iterator[Callable[[Step], None]]:
    """A bar on standard error for as long as the work takes; nothing where nobody looks."""
    with tqdm(
        total=1,
        disable=not sys.stderr.isatty(),
        leave=False,
        bar_format="{desc} |{bar}| {elapsed}",
        delay=1,
    ) as bar:

        def show(step: Step) -> None:
            words = f"{step.stage}: {step.detail}" if step.detail else step.stage
            bar.set_description_str(words, refresh=False)
            # Of unknown length: an empty bar, not that of the stage before.
            bar.total, bar.n = (step.total, step.done) if step.total else (1, 0)
            bar.refresh()

        yield show
