"""Write the table "which method when" from the records of the leaderboard.

python docs/draw_guide.py            # docs/methods.md and src/prevalens/cli/measured.toml
python docs/draw_guide.py --check    # fails if they are out of date
"""

from __future__ import annotations

import math
import sys
import tomllib
from pathlib import Path

from prevalens.catalogue import ENTRIES
from prevalens.expression import parse_method
from prevalens.reports.leaderboard import read_records

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "records" / "leaderboard.csv"
PAGE = ROOT / "docs" / "methods.md"
GUIDE = ROOT / "src" / "prevalens" / "cli" / "guide.toml"
MEASURED = ROOT / "src" / "prevalens" / "cli" / "measured.toml"
BEGIN, END = "<!-- guide: begin -->\n", "<!-- guide: end -->\n"
#: Families of shift that are drawn.
FAMILIES = (
    "ml-app",
    "natural",
    "labelset-weights",
    "label-tilt",
    "covariate-tilt",
    "two-labels",
)


def ratios() -> tuple[dict[str, dict[str, float]], int]:
    """AE by that of the best method, for methods over `lr`: method, family, geometric mean."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for record in read_records(RECORDS):
        if record.metric == "ae" and record.shift == "all":
            key = record.method, record.protocol, record.dataset
            values.setdefault(key, []).append(record.value)
    means = {key: sum(found) / len(found) for key, found in values.items()}
    methods = sorted({m for m, _, _ in means if m == "naive" or m.startswith("lr+")})
    datasets = [
        name
        for name in sorted({d for _, _, d in means})
        if all((m, f, name) in means for m in methods for f in FAMILIES)
    ]
    table: dict[str, dict[str, float]] = {method: {} for method in methods}
    for family in FAMILIES:
        best = {d: min(means[m, family, d] for m in methods) for d in datasets}
        for method in methods:
            logs = [math.log(means[method, family, d] / best[d]) for d in datasets]
            table[method][family] = math.exp(sum(logs) / len(logs))
    return table, len(datasets)


def measured_text(table: dict[str, dict[str, float]], n_datasets: int) -> str:
    """The figures that ``prevalens methods NAME`` shows."""
    lines = [
        "# Made by docs/draw_guide.py from docs/records/leaderboard.csv; do not edit by hand.",
        f"n_datasets = {n_datasets}",
    ]
    for method, row in table.items():
        lines += ["", f'[ratios."{method}"]', *(f"{k} = {v:.2f}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def page_text(table: dict[str, dict[str, float]], n_datasets: int) -> str:
    """The table of the page: a row per aggregator, with its figures where it was measured."""
    guide = tomllib.loads(GUIDE.read_text(encoding="utf-8"))
    of_code: dict[str, list[str]] = {}
    for method in table:
        of_code.setdefault(parse_method(method).aggregator.name, []).append(method)
    lines = [
        f"AE divided by that of the best method of this table, geometric mean over {n_datasets} "
        "datasets; 1 would be best everywhere. An empty row was not measured.",
        "",
        f"| aggregator | assumes | cost per batch and label | {' | '.join(FAMILIES)} |",
        "|---" * (3 + len(FAMILIES)) + "|",
    ]
    for code, entry in guide.items():
        assert ENTRIES[code].role == "aggregator", code
        for method in of_code.get(code, [code]):
            row = table.get(method, {})
            cells = [f"{row[f]:.2f}" if row else "" for f in FAMILIES]
            lines.append(
                f"| `{method}` | {entry['assumes']} | {entry['cost']} | {' | '.join(cells)} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write both files, or check them."""
    found = ratios()
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    wanted = {
        PAGE: before + BEGIN + page_text(*found) + END + after,
        MEASURED: measured_text(*found),
    }
    for path, text in wanted.items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is out of date; run: python docs/draw_guide.py")


if __name__ == "__main__":
    main()
