"""SVG: elements as text, with everything escaped and numbers short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["document", "element", "label", "path", "polygon", "short"]

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def short(value: float) -> str:
    """A coordinate with at most one digit after the point.

    Examples
    --------
    >>> short(3.14159), short(2.0), short(-0.01)
    ('3.1', '2', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _attribute(name: str, value: object) -> str:
    text = short(value) if isinstance(value, float) else str(value)
    return f' {name.rstrip("_").replace("_", "-")}="{escape(text)}"'


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; underscores in names of attributes become dashes, None leaves one out.

    `content` is markup: other elements, or text that is already escaped.

    Examples
    --------
    >>> element("line", x1=0.0, x2=1.25, stroke_width=2)
    '<line x1="0" x2="1.2" stroke-width="2"/>'
    """
    given = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None
    )
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def label(words: str, x: float, y: float, **attributes: object) -> str:
    """A text at a place."""
    return element("text", escape(words), x=x, y=y, **attributes)


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{short(x)},{short(y)}" for x, y in points)


def path(points: Sequence[tuple[float, float]], **attributes: object) -> str:
    """A line through points."""
    return element("polyline", points=_points(points), fill="none", **attributes)


def polygon(points: Sequence[tuple[float, float]], **attributes: object) -> str:
    """A filled area around points."""
    return element("polygon", points=_points(points), **attributes)


def document(width: float, height: float, title: str, body: str) -> str:
    """A whole chart: scales with the place it is put in, and has a name for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {short(width)} {short(height)}" '
        f'width="{short(width)}" height="{short(height)}" role="img" '
        f'aria-label="{escape(title)}" fill="currentColor" font-family="{escape(_FONT)}" '
        f'font-size="12"><title>{escape(title)}</title>{body}</svg>'
    )
