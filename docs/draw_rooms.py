"""Draw the map of the package from its import graph: ``python docs/draw_rooms.py``.

Reads the sources below ``src`` and the layers in ``pyproject.toml``; writes
``docs/images/rooms.svg`` and the table between the two markers of ``docs/architecture.md``.
``--check`` writes nothing and fails if either is out of date; the tests run it.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "prevalens"
SVG = ROOT / "docs" / "images" / "rooms.svg"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: begin -->", "<!-- rooms: end -->"

WIDTH, ROW, BOX, GAP = 1180, 84, 38, 14

Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Dotted name of every module of the package, and its file."""
    found = {}
    for path in sorted((ROOT / "src" / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def room_of(module: str) -> str:
    """The part of a module's name that stands for its room; the package itself has none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports_of(path: Path, known: set[str]) -> set[str]:
    """The modules of the package that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in known else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found & known


def rooms() -> tuple[Graph, dict[str, list[Path]]]:
    """Which room imports which, and the files of each."""
    files = modules()
    graph: Graph = defaultdict(set)
    members: dict[str, list[Path]] = defaultdict(list)
    for module, path in files.items():
        room = room_of(module)
        if not room:
            continue
        members[room].append(path)
        targets = {room_of(name) for name in imports_of(path, set(files))}
        graph[room] |= targets - {room, "", "_version"}
    return graph, members


def layers() -> list[list[str]]:
    """The rooms from top to bottom, as the import linter has them."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [
        [name.strip(" ()").removeprefix(f"{PACKAGE}.") for name in row.split("|")] for row in rows
    ]


def reduced(graph: Graph) -> Graph:
    """Only the imports that no chain of other imports implies."""
    below: Graph = {}

    def reach(room: str) -> set[str]:
        if room not in below:
            below[room] = set(graph[room]).union(*map(reach, graph[room]))
        return below[room]

    return {
        room: {
            target
            for target in graph[room]
            if not any(target in reach(other) for other in graph[room] - {target})
        }
        for room in list(graph)
    }


def draw(graph: Graph, members: dict[str, list[Path]]) -> str:
    """The map: a row per layer, a box per room, a line per import that no other implies."""
    rows = [[room for room in row if room in members] for row in layers()]
    places: dict[str, tuple[float, float, float]] = {}
    boxes = []
    for number, row in enumerate(rows):
        width = min(200.0, (WIDTH - GAP) / len(row) - GAP)
        left = (WIDTH - len(row) * (width + GAP) + GAP) / 2
        for place, room in enumerate(row):
            x, y = left + place * (width + GAP), 10 + number * ROW
            places[room] = x, y, width
            count = len(members[room])
            size = f"{count} modules" if count > 1 else "1 module"
            boxes.append(
                f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="6"/>'
                f'<text x="{x + width / 2:.0f}" y="{y + 16}" class="room">{escape(room)}</text>'
                f'<text x="{x + width / 2:.0f}" y="{y + 31}" class="size">{size}</text>'
            )
    edges = []
    for room, targets in sorted(reduced(graph).items()):
        for target in sorted(targets & set(places)):
            (x, y, width), (to_x, to_y, to_width) = places[room], places[target]
            start, end = x + width / 2, to_x + to_width / 2
            edges.append(
                f'<path d="M{start:.0f} {y + BOX} C{start:.0f} {y + BOX + 30} '
                f'{end:.0f} {to_y - 30} {end:.0f} {to_y}"/>'
            )
    height = 10 + len(rows) * ROW
    style = (
        "rect{fill:#eef3f8;stroke:#35608c}path{fill:none;stroke:#9bb0c4}"
        "text{font-family:sans-serif;text-anchor:middle;fill:#1b2733}"
        ".room{font-size:13px;font-weight:600}.size{font-size:10px}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img"><title>Rooms of prevalens and their imports'
        f'</title><style>{style}</style><rect width="{WIDTH}" height="{height}" '
        f'style="fill:#fff;stroke:none"/>{"".join(edges)}{"".join(boxes)}</svg>\n'
    )


def purpose(room: str) -> str:
    """The first sentence of a room's docstring."""
    base = ROOT / "src" / PACKAGE / room
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    doc = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return doc.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def table(graph: Graph, members: dict[str, list[Path]]) -> str:
    """The rooms from top to bottom, what each is for and what it imports."""
    lines = ["| room | what is there | imports |", "|---|---|---|"]
    for row in layers():
        for room in row:
            if room in members:
                targets = ", ".join(f"`{name}`" for name in sorted(graph[room])) or "nothing"
                lines.append(f"| `{room}` | {purpose(room)} | {targets} |")
    return "\n".join(lines)


def main() -> int:
    """Write both files, or only compare them."""
    graph, members = rooms()
    unplaced = set(members) - {room for row in layers() for room in row} - {"_version"}
    if unplaced:
        print(f"No layer in pyproject.toml names {', '.join(sorted(unplaced))}.")
        return 1
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = {
        SVG: draw(graph, members),
        PAGE: f"{before}{BEGIN}\n{table(graph, members)}\n{END}{after}",
    }
    stale = [
        path
        for path, text in wanted.items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date; run: python docs/draw_rooms.py")
        return int(bool(stale))
    for path in stale:
        path.write_text(wanted[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
