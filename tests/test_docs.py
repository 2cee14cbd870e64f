"""The documentation says what is there: its code runs, its names and links exist."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens import catalogue
from prevalens.__main__ import COMMANDS
from prevalens.catalogue import parse
from prevalens.cli.bench import command
from prevalens.experiments.plan import Plan
from prevalens.metrics import MEASURES
from prevalens.protocols.families import FAMILIES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDE = (DOCS / "experiments.md").read_text("utf-8")
PAGES = sorted(DOCS.rglob("*.md"))
#: Pages whose code needs nothing but generated data: it runs as it stands.
SELF_CONTAINED = (
    "concepts/groups.md",
    "develop/add-a-method.md",
    "start/five-minutes.md",
    "uncertainty.md",
)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_the_plan_can_be_read_and_names_all_protocols_and_measures() -> None:
    text = blocks("toml")[0]
    plan = Plan.from_dict(tomllib.loads(text))
    grids = {(c.dataset, c.method.label): c.method.grid for c in plan.cells()}
    assert grids["emotions", "PCC, tuned"]["classifier__C"] == (0.1, 1)
    assert grids["synthetic", "PCC, tuned"]["classifier__C"] == (0.1, 1, 10)
    assert all(name in text for name in (*FAMILIES, *MEASURES))


def test_files_of_ones_own_can_be_named() -> None:
    content = tomllib.loads(blocks("toml")[1])
    plan = Plan.from_dict({"name": "own", "methods": [{"expression": "lr+pcc"}], **content})
    assert plan.sources[0].options == {"text": "text", "tags": "tags"}


def test_cuts_of_timelines_can_be_named() -> None:
    plan = Plan.from_dict({"name": "cuts", **tomllib.loads(blocks("toml")[2])})
    names = [method.name for method in plan.methods]
    assert names == ["auto", "auto, time"]
    assert plan.sources[0].options == {"cut": "1970", "max_train": 4000, "max_test": 10_000}
    assert {cell.protocol.parameters["unit"] for cell in plan.cells()} == {"Y", "M"}


def test_the_options_are_there() -> None:
    known = {name for option in command.params for name in option.opts}
    for line in re.findall(r"prevalens bench plan.toml (.*)", GUIDE):
        assert set(re.findall(r"--[a-z-]+", line)) <= known


@pytest.mark.slow
def test_the_code_runs() -> None:
    names: dict[str, Any] = {}
    for block in blocks("python"):
        if "read_plan" not in block:  # that one needs a plan in the folder
            exec(compile(block, "experiments.md", "exec"), names)
    try:
        assert set(names["search"].best_params_) == {
            "classifier__meta__C",
            "aggregator__regressor__C",
        }
        data = names["data"]
        found = parse("lr+stretched(factor=0)").fit(data.train.X, data.train.Y)
        np.testing.assert_allclose(found.quantify(data.test.X), data.train.Y.mean(axis=0))
        assert parse("boosting(learning_rate=0.3)+pcc").classifier.estimator.learning_rate == 0.3
    finally:
        for code in ("stretched", "boosting"):
            catalogue.unregister(code)


def test_the_map_of_the_package_is_that_of_the_import_graph() -> None:
    script = Path(__file__).parents[1] / "docs" / "draw_rooms.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def code_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def without_code(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)


def slugs(page: Path) -> set[str]:
    """The anchors that GitHub and the site make of headings."""
    heads = re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", SELF_CONTAINED)
def test_code_runs_as_it_stands(name: str) -> None:
    names: dict[str, Any] = {}
    try:
        for block in code_of(DOCS / name):
            exec(compile(block, name, "exec"), names)
    finally:
        if "Straightened" in names:
            catalogue.unregister("straightened")
    assert names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_code_names_what_can_be_imported(page: Path) -> None:
    for block in code_of(page):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("prevalens"):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, alias.name) for alias in node.names)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(without_code(page)):
        if target.startswith("reference/") or "/reference/python.md" in target:
            continue  # made while the site is built, which checks them
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor[1:] in slugs(file), target + anchor


def test_every_extra_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (DOCS / "start" / "install.md").read_text("utf-8")
    explained = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(explained) == sorted(project["optional-dependencies"])


@pytest.fixture
def generators(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    return importlib.import_module("api_pages"), importlib.import_module("command_page")


def test_every_public_name_is_in_the_reference(generators: tuple[Any, Any]) -> None:
    api, _ = generators
    pages = api.pages()
    for path in [
        ROOT / "src" / "prevalens" / "metrics.py",
        *(ROOT / "src").glob("*/*/__init__.py"),
    ]:
        room = path.stem if path.name != "__init__.py" else path.parent.name
        module = importlib.import_module(f"prevalens.{room}")
        for name in getattr(module, "__all__", ()):
            assert f":: prevalens.{room}.{name}" in pages[f"reference/api/prevalens.{room}.md"]
    for name in api.public_names("prevalens"):
        assert f":: prevalens.{name}\n" in pages["reference/api/prevalens.md"]


def test_every_command_and_option_is_in_the_reference(generators: tuple[Any, Any]) -> None:
    text = generators[1].page()
    for name, (module, _) in COMMANDS.items():
        section = text.partition(f"## prevalens {name}\n")[2].partition("\n## ")[0]
        for option in importlib.import_module(module).command.params:
            if option.param_type_name == "option" and not option.hidden:
                assert option.opts[-1] in section


def test_figures_have_a_name_for_screen_readers() -> None:
    for page in PAGES:
        for text, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text("utf-8")):
            assert len(text) > 10, target
            if target.endswith(".svg"):
                assert 'role="img"' in (page.parent / target).read_text("utf-8")


def test_the_decision_tree_is_that_of_the_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    figures = importlib.import_module("draw_figures")
    drawn = (DOCS / "images" / "figure-choosing.svg").read_text("utf-8")
    assert drawn == figures.standalone(figures.choosing()) + "\n"
    said = (
        (DOCS / "guides" / "choosing.md").read_text("utf-8").partition("\nThe same as a table")[0]
    )
    for method in (*figures.QUESTIONS.values(), figures.OTHERWISE.partition(",")[0]):
        assert f"`{method}`" in said
        parse(method)


@pytest.mark.data
def test_the_figures_of_datasets_are_those_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    figures = importlib.import_module("draw_figures")
    for name in ("emotions", "genbase"):
        for figure, chart in figures.panels_of(name).items():
            drawn = (DOCS / "images" / f"figure-{figure}.svg").read_text("utf-8")
            assert chart in drawn
            # Most samples without shift have low shift, as the page says.
            shares = re.findall(r"\((\d+)% low\)", drawn)
            assert all(int(share) > 50 for share in shares)
            assert len(shares) == (len(figures.DATASETS) if figure == "shifts" else 0)


def test_the_guide_to_methods_is_that_of_the_records() -> None:
    script = Path(__file__).parents[1] / "docs" / "draw_guide.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
