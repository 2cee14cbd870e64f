"""leaderboard_page: a comparison of methods as one HTML file."""

from __future__ import annotations

from prevalens.reporting.formatting import count, number
from prevalens.reporting.grid import Entry, Grid, Group, Heading, Line
from prevalens.reporting.page import Figure, Part, Section, page
from prevalens.reporting.plots.frame import Scale, nice_ticks
from prevalens.reporting.plots.svg import document, element, label
from prevalens.reporting.theme import colour, series
from prevalens.reporting.trust_leaderboard import Leaderboard, Place
from prevalens.reporting.trust_page import protocol_words

__all__ = ["leaderboard_grid", "leaderboard_page", "leaderboard_sentence"]

_WIDTH, _ROW = 480.0, 24.0


def leaderboard_page(found: Leaderboard) -> str:
    """A comparison of methods as one self-contained HTML file."""
    figure = Figure(
        _chart(found),
        "Mean absolute error over kinds of shift and folds, with one standard deviation over the "
        "folds to either side; less is better.",
        name="leaderboard",
    )
    sections = [
        Section("Leaderboard", (figure, leaderboard_grid(found))),
        Section("How this was measured", _measured(found)),
    ]
    return page(found.title, sections, lead=leaderboard_sentence(found), asset="batch_report")


def leaderboard_sentence(found: Leaderboard) -> str:
    """The result in a sentence or two."""
    first, *others = found.places()
    tied = [one.method for one in others if one.tied]
    words = (
        f"{first.method} has the smallest error on this data, {100 * first.error:.2f} points on "
        "average."
    )
    if tied:
        words += f" {', '.join(tied)} cannot be told from it with this much data."
    return words


def leaderboard_grid(found: Leaderboard) -> Grid:
    """The methods from best to worst."""
    heads = (
        "error",
        "spread",
        *(protocol_words(name, short=True) for name in found.protocols),
        "behind the first",
        "seconds",
    )
    lines = tuple(_line(found, one) for one in found.places())
    notes = [
        "Mean absolute error of the estimated prevalences in percentage points; spread: standard "
        "deviation over the folds.",
        "≈ cannot be told from the first: the difference is within two standard errors, corrected "
        "for folds that share training items (Nadeau and Bengio 2003).",
        *(f"{name} could not be trained: {why}" for name, why in found.failures.items()),
    ]
    return Grid(
        "Methods, the best first",
        "method",
        (tuple(map(Heading, heads)),),
        (Group(lines),),
        tuple(notes),
    )


def _line(found: Leaderboard, one: Place) -> Line:
    best = {name: min(p.by_protocol[name] for p in found.places()) for name in found.protocols}
    behind = "" if one.rank == 1 else f"{'≈ ' if one.tied else ''}{number(100 * one.behind, 2)}"
    entries = (
        Entry(number(100 * one.error, 2), bold=one.rank == 1),
        Entry(number(100 * one.spread, 2)),
        *(
            Entry(number(100 * value, 2), bold=value == best[name])
            for name, value in one.by_protocol.items()
        ),
        Entry(behind),
        Entry(f"{one.seconds:.1f}"),
    )
    return Line(one.method, entries)


def _chart(found: Leaderboard) -> str:
    places = found.places()
    top = max(one.error + one.spread for one in places)
    x = Scale(0.0, top * 1.05, 190.0, _WIDTH - 14)
    bottom = 34 + _ROW * len(places)
    ticks = nice_ticks(0.0, x.high, 4)
    grid = "".join(element("line", x1=x(at), x2=x(at), y1=28, y2=bottom) for at in ticks)
    texts = "".join(label(f"{100 * at:.3g}", x(at), bottom + 16) for at in ticks)
    rows = [_row(one, x, 34 + _ROW * (one.rank - 1) + 12) for one in places]
    title = "Mean absolute error, points"
    body = [
        label(title, 0, 16, font_size=14, font_weight=600),
        element("g", grid, stroke=colour("line")),
        element("g", texts, text_anchor="middle"),
        *rows,
    ]
    return document(_WIDTH, bottom + 28, title, "".join(body))


def _row(one: Place, x: Scale, y: float) -> str:
    name = one.method if len(one.method) <= 26 else one.method[:25] + "…"
    low, high = x(max(one.error - one.spread, 0.0)), x(one.error + one.spread)
    return (
        label(name, 182, y + 4, text_anchor="end")
        + element("line", x1=low, x2=high, y1=y, y2=y, stroke=series(0), stroke_width=2)
        + element("circle", cx=x(one.error), cy=y, r=5, fill=series(0))
    )


def _measured(found: Leaderboard) -> tuple[Part, ...]:
    n_folds = found.errors.shape[1]
    words = (
        f"{count(found.n_items)} labelled items with {found.n_labels} labels were cut into "
        f"{n_folds} folds. Each method was trained on all folds but one; from that one, samples of "
        f"{found.size} items were drawn whose label mix has moved, and the estimates compared with "
        "the truth. All methods see the same folds and samples. The preparation of the items, "
        "which sees no labels, was fitted once on all items."
    )
    lines = tuple(Line(name, (Entry(value),)) for name, value in found.provenance.items())
    heads = ((Heading("value", words=True),),)
    return (words, Grid("Provenance", "what", heads, (Group(lines),))) if lines else (words,)
