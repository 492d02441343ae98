"""Put the tables that a study prints into a page, between two comments, so that none is typed by hand.

A page holds ``<!-- study/table -->`` … ``<!-- end -->``. A study that is given ``--page docs/studies.md`` writes its
tables between them; a test compares the page with the results that the study recorded beside itself.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

END = "<!-- end -->"
Row = Mapping[str, object]


def markdown(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table; numbers to three significant digits, absent values empty."""
    heads = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(_cell(row.get(name, '')) for name in heads)} |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def put(page: Path, name: str, text: str) -> None:
    """Replace what stands under a name on a page.

    Raises
    ------
    ValueError
        If the page has no place of that name.
    """
    before, _, after = _parts(page, name)
    page.write_text(f"{before}\n{text.strip()}\n{after}", encoding="utf-8")


def tell(tables: Mapping[str, str], page: Path | None) -> None:
    """Print tables by name, and put them into a page where there is one."""
    for name, text in tables.items():
        print(f"\n{name}\n\n{text}")  # noqa: T201 - it is what the study prints
        if page is not None:
            put(page, name, text)


def show_figure(page: Path, file: Path) -> None:
    """Copy a PNG to the folder `figures` beside a page, in few colours, so that it is small."""
    from PIL import Image

    folder = page.parent / "figures"
    folder.mkdir(exist_ok=True)
    with Image.open(file) as image:
        image.convert("RGB").quantize(64).save(folder / file.name, optimize=True)


def held(page: Path, name: str) -> str:
    """What stands under a name on a page."""
    return _parts(page, name)[1].strip()


def _parts(page: Path, name: str) -> tuple[str, str, str]:
    whole, mark = page.read_text(encoding="utf-8"), f"<!-- {name} -->"
    before, found, rest = whole.partition(mark)
    text, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"{page} has no place {mark} … {END}")
    return before + mark, text, END + after


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """Rows as CSV."""
    heads = list(dict.fromkeys(name for row in rows for name in row))
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, heads, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(file: Path) -> list[dict[str, str]]:
    """Rows of a CSV file, as text."""
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))
