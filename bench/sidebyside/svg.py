"""A picture of the results, as SVG."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

__all__ = ["picture"]

WIDTH, NAMES, BARS, LINE = 960, 330, 440, 22
HEADER, GAP = 34, 18
COLOURS = {"headrace": "#1f6feb", "bare": "#8b949e"}
OTHERS = "#d29922"
MOST_ROWS = 40


def picture(found: Mapping[str, Any]) -> str:
    """Bars of records per second (or, of latencies, of milliseconds), scenario by scenario, with their spread."""
    parts: list[str] = []
    top = 10
    for name, scenario in found["scenarios"].items():
        for figure, title in (
            ("records_per_s", "records/s"),
            ("p50_ms", "ms, p50"),
            ("worker_mb", "MB, largest Python"),
        ):
            rows = [row for row in scenario["rows"] if figure in row["figures"]]
            if rows and (figure != "worker_mb" or name == "memory"):
                parts += _block(f"{name}: {title}", rows[:MOST_ROWS], figure, top)
                top += HEADER + GAP + LINE * min(len(rows), MOST_ROWS)
                break
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}" '
        f'font-family="sans-serif" font-size="13">\n<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _block(title: str, rows: Sequence[Mapping[str, Any]], figure: str, top: int) -> Iterator[str]:
    yield f'<text x="10" y="{top + 18}" font-weight="bold">{escape(title)}</text>'
    most = max(row["figures"][figure]["high"] for row in rows) or 1.0
    for number, row in enumerate(rows):
        yield from _bar(row, row["figures"][figure], most, top + HEADER + number * LINE)


def _bar(row: Mapping[str, Any], spread: Mapping[str, float], most: float, top: int) -> Iterator[str]:
    label = f"{row['engine']} {row['case']}".strip()
    width, low, high = (BARS * spread[name] / most for name in ("median", "low", "high"))
    colour = next((value for word, value in COLOURS.items() if label.startswith(word)), OTHERS)
    middle = top + LINE // 2 - 2
    yield f'<text x="{NAMES - 8}" y="{top + 13}" text-anchor="end" fill="#24292f">{escape(label)}</text>'
    yield f'<rect x="{NAMES}" y="{top}" width="{width:.1f}" height="{LINE - 6}" fill="{colour}"/>'
    yield (
        f'<line x1="{NAMES + low:.1f}" y1="{middle}" x2="{NAMES + high:.1f}" y2="{middle}" stroke="#24292f"/>'
        f'<text x="{NAMES + high + 8:.1f}" y="{top + 13}" fill="#24292f">{_shown(spread["median"])}</text>'
    )


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits either way
