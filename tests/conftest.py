"""Fixtures that several rooms share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from prevalens.records import Result
from prevalens.studies.moreo2023.printed import printed

# Runs are repeatable and do not fail because the machine is slow today. As they repeat the same
# examples, many of them would find nothing new: HYPOTHESIS_PROFILE=thorough looks at others.
_ANY_MACHINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repo", derandomize=True, max_examples=40, **_ANY_MACHINE)
settings.register_profile("thorough", max_examples=500, **_ANY_MACHINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repo"))


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder with the public datasets; tests that need it are skipped without."""
    home = os.environ.get("PREVALENS_DATA")
    if not home or not Path(home).is_dir():
        pytest.skip("PREVALENS_DATA does not name the folder of the public datasets")
    return Path(home)


@pytest.fixture(autouse=True)
def _needs_data(request: pytest.FixtureRequest) -> None:
    """A test marked `data` is skipped where the public datasets are not at hand."""
    if request.node.get_closest_marker("data"):
        request.getfixturevalue("data_home")


@pytest.fixture
def parquet_sources(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What Arrow is asked to read from, as the test goes on.

    Reading from a Python file, one run in fifty was aborted when it ended
    (https://github.com/apache/arrow/issues/34314, /33975, /50482).
    """
    parquet = pytest.importorskip("pyarrow.parquet")
    sources: list[object] = []
    opened = parquet.ParquetFile

    def noted(source: object, *args: object, **named: object) -> object:
        sources.append(source)
        return opened(source, *args, **named)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("read_table leaves threads behind; use ParquetFile")

    monkeypatch.setattr(parquet, "ParquetFile", noted)
    monkeypatch.setattr(parquet, "read_table", refused)
    return sources


@pytest.fixture
def make_result() -> Callable[..., Result]:
    """A result from errors by sample; by default six samples, 1 low, 3 mid, 2 high."""

    def make(
        method: str = "PCC",
        errors: Any = (0.01,) * 6,
        *,
        dataset: str = "scene",
        shift: Any = (0.0, 0.1, 0.15, 0.19, 0.2, 0.3),
        seed: int = 0,
        variant: str = "",
        metric: str = "ae",
        protocol: str = "ml-app",
        **more: Any,
    ) -> Result:
        given = {"expression": f"lr+{method.lower()}", "version": "0.1.0", **more}
        return Result(
            dataset=dataset,
            protocol=protocol,
            method=method,
            seed=seed,
            variant=variant,
            shift=np.asarray(shift, dtype=np.float64),
            errors={metric: np.asarray(errors, dtype=np.float64)},
            **given,
        )

    return make


@pytest.fixture(scope="session")
def paper_like() -> Callable[..., list[Result]]:
    """Results whose means by regime are the printed ones times a factor, with noise in pairs."""

    def make(
        table: str = "pcc_general",
        *,
        datasets: tuple[str, ...] = ("emotions", "scene", "genbase"),
        factor: float = 1.0,
        variant: str = "",
        seeds: tuple[int, ...] = (0,),
        methods: tuple[str, ...] | None = None,
    ) -> list[Result]:
        reference = printed(table)
        shift = np.repeat([0.05, 0.15, 0.25], 40) + np.tile(np.linspace(-0.04, 0.04, 40), 3)
        # Noise of mean zero in each regime.
        noise = 1 + 0.2 * np.tile([1.0, -1.0], 60)
        found = []
        for dataset in datasets:
            for method in methods or reference.columns:
                cells = [reference.cell(dataset, regime, method) for regime in reference.regimes]
                means = np.repeat([cell.value for cell in cells if cell], 40)
                found += [
                    Result(
                        dataset=dataset,
                        protocol="ml-app",
                        method=method,
                        expression=f"lr+{method}",
                        seed=seed,
                        variant=variant,
                        shift=shift,
                        errors={reference.metric: factor * means * noise},
                        version="0.1.0",
                        data_sha="0123456789abcdef",
                        usage={"seconds": 1.5},
                    )
                    for seed in seeds
                ]
        return found

    return make


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_api.sync_playwright() as driver:
        # Pages of one site share a process, which the second one need not start.
        running = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--process-per-site"]
        )
        yield running
        running.close()


@pytest.fixture(scope="module")
def contexts(browser: Any) -> Iterator[Callable[..., Any]]:
    """A browser context for each set of settings; to start one takes longer than most tests.

    It is called with the address of a page that stays open, so that its process stays, too.
    """
    made: dict[str, Any] = {}

    def context(home: str, **settings: Any) -> Any:
        key = repr(sorted(settings.items()))
        if key not in made:
            made[key] = browser.new_context(accept_downloads=True, **settings)
            made[key].new_page().goto(home)
        return made[key]

    yield context
    for one in made.values():
        one.close()


@pytest.fixture
def open_tab(contexts: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Open an empty tab of a shared context; it is closed, and what it stored removed."""
    used: list[Any] = []

    def tab(
        home: str,
        *,
        viewport: dict[str, int] | None = None,
        color_scheme: str | None = None,
        **settings: Any,
    ) -> Any:
        used.append(contexts(home, **settings))
        page = used[-1].new_page()
        if viewport is not None:
            page.set_viewport_size(viewport)
        if color_scheme is not None:
            page.emulate_media(color_scheme=color_scheme)
        return page

    yield tab
    for context in used:
        idle, *pages = context.pages
        for page in pages:
            page.close()
        idle.evaluate("localStorage.clear()")


@pytest.fixture(scope="session")
def faint() -> Callable[[Any, dict[str, str]], list[tuple[str, float]]]:
    """What of a page has a contrast below 3 to what is behind it.

    It is called with the page and, by selector, the property whose colour has to stand out.
    """

    def look(page: Any, parts: dict[str, str]) -> list[tuple[str, float]]:
        found = page.evaluate(_COLOURS, parts)
        assert {name for name, *_ in found} == set(parts), "some parts are not on the page"
        ratios = [(name, round(_contrast(*map(_rgb, colours)), 2)) for name, *colours in found]
        return [(name, ratio) for name, ratio in ratios if ratio < 3]

    return look


#: Selector, colour and ground of all parts that are visible.
_COLOURS = """parts => Object.entries(parts).flatMap(([selector, property]) =>
  [...document.querySelectorAll(selector)].filter(n => n.getClientRects().length).map(n => {
    let behind = n.parentElement;
    const ground = m => getComputedStyle(m).backgroundColor;
    while (/, 0\\)$|transparent/.test(ground(behind))) behind = behind.parentElement;
    return [selector, getComputedStyle(n)[property], ground(behind)];
  }))"""


def _rgb(colour: str) -> np.ndarray[Any, Any]:
    numbers = colour[colour.index("(") + 1 : -1].replace(",", " ").split()
    assert len(numbers) == 3 or float(numbers[3]) == 1, "a see-through colour has no contrast"
    return np.array(list(map(float, numbers[:3])))


def _contrast(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> float:
    """Contrast ratio of the web content accessibility guidelines."""

    def luminance(colour: np.ndarray[Any, Any]) -> float:
        part = colour / 255
        linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)
