"""The files for distribution agree with ``pyproject.toml`` and with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from prevalens import __version__

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
REPOSITORY = PROJECT["project"]["urls"]["Source"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def load(name: str | Path) -> Any:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def minimum(requirement: str) -> tuple[str, str]:
    name, bound = re.fullmatch(r"([\w.-]+) ?>=([\w.]+)", requirement).groups()  # type: ignore[union-attr]
    return name, bound


def makefile_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))


def test_the_version_is_said_the_same_everywhere() -> None:
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/prevalens/_version.py"
    assert load("CITATION.cff")["version"] == __version__
    assert load("release/conda/recipe.yaml")["context"]["version"] == __version__
    assert f"\n## {__version__}" in read("CHANGELOG.md")


def test_the_conda_recipe_needs_what_the_wheel_needs() -> None:
    recipe = load("release/conda/recipe.yaml")
    run = [item for item in recipe["requirements"]["run"] if not item.startswith("python ")]
    assert sorted(map(minimum, run)) == sorted(map(minimum, PROJECT["project"]["dependencies"]))
    host = set(map(minimum, recipe["requirements"]["host"][2:]))
    assert host == set(map(minimum, PROJECT["build-system"]["requires"]))
    assert f">={recipe['context']['python_min']}" == PROJECT["project"]["requires-python"]
    entry = recipe["build"]["python"]["entry_points"]
    assert entry == [f"{name} = {place}" for name, place in PROJECT["project"]["scripts"].items()]


def test_extra_all_has_every_extra_but_spark() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    inside = re.fullmatch(r"prevalens\[(.*)\]", extras["all"][0])
    assert inside is not None
    assert set(inside[1].split(",")) == set(extras) - {"all", "spark"}


def test_the_image_is_built_from_files_that_are_there() -> None:
    lines = read("Dockerfile").replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    kept = [line[1:] for line in read(".dockerignore").splitlines() if line.startswith("!")]
    for words in (value.split() for step, value in steps if step == "COPY"):
        if not words[0].startswith("--from"):
            assert words[0] in kept
            assert words[0].startswith("dist/") or (ROOT / words[0]).is_file()
    last = dict(steps[max(i for i, (step, _) in enumerate(steps) if step == "FROM") :])
    assert last["USER"] != "root"
    assert "/healthz" in last["HEALTHCHECK"]
    assert last["EXPOSE"] in last["HEALTHCHECK"]
    assert not re.search(r"FROM \S+:latest|\bsudo\b|^ADD ", read("Dockerfile"), re.MULTILINE)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_and_scripts_that_are_there(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            command = step.get("run", "")
            assert set(re.findall(r"\bmake ([a-z-]+)", command)) <= makefile_targets()
            for script in re.findall(r"\S+/\S+\.py\b", command):
                assert (ROOT / script).is_file()
            assert "@" in step.get("uses", "@")


def test_ci_tests_every_supported_python() -> None:
    classifiers = PROJECT["project"]["classifiers"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    matrix = load(".github/workflows/test.yml")["jobs"]["newest"]["strategy"]["matrix"]
    assert matrix["python"] == supported
    for version in supported:
        assert f'"python{version}"' in read("release/try_wheel.py")


def test_a_release_needs_no_token() -> None:
    jobs = load(".github/workflows/release.yml")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "password" not in read(".github/workflows/release.yml")


def test_issue_forms_have_what_github_asks_for() -> None:
    forms = ROOT / ".github" / "ISSUE_TEMPLATE"
    for path in forms.glob("*.yml"):
        if path.name != "config.yml":
            form = load(path)
            assert {"name", "description", "body"} <= set(form)
            identifiers = [part["id"] for part in form["body"]]
            assert len(set(identifiers)) == len(identifiers)


def test_one_address_of_the_repository() -> None:
    home = REPOSITORY.removesuffix("/prevalens")
    names = ["README.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff", "pyproject.toml"]
    for name in [*names, "release/conda/recipe.yaml", ".github/ISSUE_TEMPLATE/config.yml"]:
        for address in re.findall(r"https://github\.com/[\w-]+/prevalens\b", read(name)):
            assert address.startswith(home)
