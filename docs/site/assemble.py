"""Assemble the sources of the site: ``python docs/site/assemble.py FOLDER``; `make docs` does it.

Copies the pages of ``docs``, adds those that are stored elsewhere in the repository, and writes the
pages that follow from the code: public names, commands, the HTTP interface, and the gallery, whose
scripts it runs. Links that would lead out of the site become links to the repository.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import api_pages
import command_page
import gallery
import http_page

from prevalens.reports import theme
from prevalens.reports.leaderboard import leaderboard_page, read_records

SITE = Path(__file__).parent
ROOT = SITE.parents[1]
DOCS = ROOT / "docs"
SECTIONS = tomllib.loads((SITE / "sections.toml").read_text("utf-8"))
REPOSITORY = "https://github.com/prevalens/prevalens/blob/main/"
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(?=[)#])")
#: Figures whose colours follow the reader's setting.
_FIGURE = re.compile(r"!\[([^\]]*)\]\(([^)]*/figure-[a-z]+\.svg)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def places() -> dict[Path, str]:
    """Every file of the repository that is a page or a picture, and its place in the site."""
    kept = (".md", ".svg", ".png")
    found = {p: p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*") if p.suffix in kept}
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.md")):
        found[path] = f"benchmarks/{path.name}"
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        found[ROOT / name] = f"develop/{name.lower()}"
    return found


def main(target: Path) -> None:
    """Write all sources below a folder; what was there is removed."""
    shutil.rmtree(target, ignore_errors=True)
    found = places()
    for source, place in found.items():
        if source.suffix == ".md":
            write(target / place, with_links(source.read_text("utf-8"), source, found))
        else:
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / place)
    for place, content in generated(found).items():
        write(target / place, content)
    first = target / "index.md"
    write(
        first, first.read_text("utf-8") + toctree([f"{name}/index" for name in SECTIONS], "hidden:")
    )
    write(target / "colours" / "figures.css", colours())
    write(target / "extra" / "leaderboard.html", board())


def board() -> str:
    """The leaderboard as tables to search and sort."""
    records = read_records(DOCS / "records" / "leaderboard.csv")
    return leaderboard_page(
        records, command="prevalens bench leaderboard.toml", source="records/leaderboard.csv"
    )


def generated(found: dict[Path, str]) -> dict[str, str]:
    """Pages that follow from the code, and the first page of every section."""
    pages = {**api_pages.pages(), "reference/commands.md": command_page.page()}
    pages["reference/http.md"] = http_page.page()
    for path in sorted(gallery.SCRIPTS.glob("*.py")):
        source = REPOSITORY + path.relative_to(ROOT).as_posix()
        pages[f"gallery/{path.stem}.md"] = gallery.page(path, source)
    results = [Path(place).stem for place in found.values() if place.startswith("benchmarks/")]
    text = "Speed and quality, measured side by side in one run; `benchmarks/` has the programs."
    pages["benchmarks/index.md"] = section("Benchmarks", text, results)
    for name, content in SECTIONS.items():
        pages[f"{name}/index.md"] = section(content["title"], content["text"], content["pages"])
    return pages


def section(title: str, text: str, pages: list[str]) -> str:
    """The first page of a section, which lists its pages."""
    return f"# {title}\n\n{text}\n" + toctree(pages, "maxdepth: 1")


def toctree(pages: list[str], option: str) -> str:
    """The directive that lists pages."""
    return "\n".join(["", "```{toctree}", f":{option}", "", *pages, "```", ""])


def with_links(markdown: str, source: Path, found: dict[Path, str]) -> str:
    """The text of a page, with links for its place in the site; code stays as it is."""
    parts = _FENCE.split(markdown)
    for i in range(0, len(parts), 2):
        figures = _FIGURE.sub(lambda m: inline(source.parent / m[2], m[1]), parts[i])
        parts[i] = _LINK.sub(lambda m: new_link(m[1], source, found), figures)
    return "".join(parts)


def inline(path: Path, text: str) -> str:
    """A figure as part of the page, so that its colours follow the page's theme."""
    drawn = re.sub(r"<style>.*?</style>", "", path.read_text("utf-8")).strip()
    return re.sub(r'aria-label="[^"]*"', f'aria-label="{text}"', drawn, count=1)


def colours() -> str:
    """The style sheet that gives the colours of figures their values."""
    rules = {"light": theme.LIGHT, "dark": theme.DARK}
    return "".join(
        f'html[data-theme="{name}"] {{{theme.declarations(values)}}}\n'
        for name, values in rules.items()
    )


def new_link(link: str, source: Path, found: dict[Path, str]) -> str:
    """A link of a page: within the site, to the repository, or as it is, for Sphinx to refuse."""
    file = (source.parent / link).resolve()
    place = "gallery/index.md" if file == gallery.SCRIPTS else found.get(file)
    if place is not None:
        return os.path.relpath(place, Path(found[source]).parent)
    if file.exists() and file.is_relative_to(ROOT):
        return REPOSITORY + file.relative_to(ROOT).as_posix()
    return link


def write(path: Path, content: str) -> None:
    """Write a page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
