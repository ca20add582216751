"""Lines and bars as SVG that stands in a page: no script, no font and no colour but those of the page."""

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 16, 40

Line = tuple[str, str, Sequence[tuple[float, float]]]  # its name, its class in the style sheet, its points; both axes from 0 to 1


def lines(title: str, drawn: Sequence[Line], *, below: str, mark: tuple[float, str] | None = None) -> str:
    """Curves over a scale from 0 to 1, with their names under them. `mark` is a place on the scale, and what it is called."""
    parts = [_frame(), *_scale([(n / 5, f"{n / 5:.1f}") for n in range(6)])]
    for number, (name, kind, points) in enumerate(drawn):
        path = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in points)
        parts.append(f'<polyline class="line {kind}" points="{path}"/>')
        at = LEFT + 12 + number * (WIDTH - LEFT - RIGHT) // 2
        parts.append(f'<line class="line {kind}" x1="{at}" x2="{at + 24}" y1="{HEIGHT + 16}" y2="{HEIGHT + 16}"/>')
        parts.append(_text(at + 32, HEIGHT + 20, name, "start"))
    if mark:
        x = _x(mark[0])
        parts.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(_text(x, TOP - 4, mark[1]))
    return _svg(title, parts, below, height=HEIGHT + 28)


def bars(title: str, heights: Sequence[float], *, below: str) -> str:
    """A bar for each height from 0 to 1, numbered from 1, with its share over it."""
    step = (WIDTH - LEFT - RIGHT) / max(1, len(heights))
    parts = [_frame()]
    for number, height in enumerate(heights):
        x, y = LEFT + step * number + step * 0.15, _y(height)
        parts.append(f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{step * 0.7:.1f}" height="{HEIGHT - BOTTOM - y:.1f}"/>')
        middle = LEFT + step * (number + 0.5)
        parts.append(_text(middle, y - 4, f"{height:.0%}"))
        parts.append(_text(middle, HEIGHT - BOTTOM + 16, str(number + 1)))
    return _svg(title, parts, below, height=HEIGHT)


def _x(x: float) -> float:
    return LEFT + x * (WIDTH - LEFT - RIGHT)


def _y(y: float) -> float:
    return HEIGHT - BOTTOM - y * (HEIGHT - BOTTOM - TOP)


def _svg(title: str, parts: Sequence[str], below: str, *, height: int) -> str:
    caption = _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, below)
    inside = "\n".join([f"<title>{escape(title)}</title>", *parts, caption])
    return f'<svg role="img" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg">\n{inside}\n</svg>'


def _frame() -> str:
    grid = [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(n / 4):.1f}" y2="{_y(n / 4):.1f}"/>' for n in range(5)]
    return "\n".join([*grid, *(_text(LEFT - 8, _y(n / 4) + 4, f"{n / 4:.0%}", "end") for n in range(5))])


def _scale(places: Sequence[tuple[float, str]]) -> list[str]:
    return [_text(_x(at), HEIGHT - BOTTOM + 16, name) for at, name in places]


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
