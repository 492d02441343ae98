"""Tables of the benchmark: in the terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

Row = Mapping[str, Any]

HIDDEN = {"node", "steps", "engine_cpu", "moved", "cpu_s", "suppressed", "memory_limit", "time_limit"}
"""Only in the JSON."""

_WIDTH = 200
"""Columns of text where there is no terminal."""


def console() -> Console:
    """Standard output, wide enough for the tables where it is no terminal."""
    found = Console()
    return found if found.is_terminal else Console(width=_WIDTH)


def cell(key: str, value: object) -> str:
    """A value as it is shown under its heading."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _number(key, value)
    return str(value)


def _number(key: str, value: float) -> str:
    if key == "limit" or key.endswith("share"):
        return f"{100 * value:.3g} %"
    if key.endswith("_s") or not any(word in key for word in ("loss", "value", "gap")):
        return f"{value:.3f}" if value < 10 else f"{value:.1f}"
    return f"{value:.8g}"


def heading(key: str) -> str:
    """A key as a heading, with its unit."""
    name = key.replace("_s", " (s)") if key.endswith("_s") else key.replace("_mb", " (MB)")
    return {"value": "value of loss"}.get(name, name)


def show(screen: Console, title: str, rows: list[Row]) -> None:
    """Print one table."""
    keys = list(dict.fromkeys(key for row in rows for key in row if key not in HIDDEN))
    table = Table(title=title, title_style="bold", title_justify="left", header_style="bold")
    for key in keys:
        words = any(isinstance(row.get(key), str) for row in rows)
        table.add_column(heading(key), justify="left" if words else "right")
    for row in rows:
        failed = row.get("holds") is False
        table.add_row(*(Text(cell(key, row.get(key))) for key in keys), style="bold red" if failed else "")
    screen.print(table)
    screen.print()


def markdown(rows: list[Row]) -> str:
    """One table as Markdown."""
    keys = list(dict.fromkeys(key for row in rows for key in row if key not in HIDDEN))
    lines = [" | ".join(map(heading, keys)), " | ".join("---" for _ in keys)]
    lines += [" | ".join(cell(key, row.get(key)) for key in keys) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
