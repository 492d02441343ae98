"""What study.py found, as tables for a page: chapter 3, and tables 6.2 and 6.3 with each data set beside the source."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from gallery import Row, markdown, put, show_figure, write_rows  # noqa: E402

if TYPE_CHECKING:
    from study import Made, Seen

FIGURES = ("chapter_3.png", "table_6_2.png", "table_6_3.png")
SourceK = Mapping[str, Mapping[tuple[float, float], int]]
YEARS = {"ages": "by age", "drawn": "years drawn"}
SOURCE_ROWS = "13,646"
"""Patients with three procedures and all demographics, in the source's table 6.2."""


def for_page(seen: Sequence[Seen], rows: Sequence[Made], source: SourceK, into: Path, page: Path | None) -> None:
    """The tables beside the source's figures, as files, and with the plots on a page where there is one."""
    found = {"alone": list(seen_rows(seen)), "ola": list(ola_rows(rows))}
    found |= {f"table-{n.replace('.', '-')}": list(made_rows(rows, n, ks)) for n, ks in source.items()}
    for name, table in found.items():
        write_rows(into / f"{name}.csv", table)
        if page is not None:
            put(page, f"mimic_study/{name}", markdown(table))
    if page is not None:
        for figure in FIGURES:
            show_figure(page, into / figure)


def seen_rows(seen: Sequence[Seen]) -> Iterator[Row]:
    """Chapter 3: the share of owners who are alone, and the mean class in brackets."""
    for what in dict.fromkeys(s.what for s in seen):
        mine = {s.study: s for s in seen if s.what == what}
        cells = {n: f"{s.alone:.1%} of {s.owners:,.0f} ({s.mean_size:.2f})" for n, s in mine.items()}
        yield {"known": what, **cells, "source": _source(next(iter(mine.values())).source)}


def _source(theirs: tuple[float | None, float | None, float | None] | None) -> str:
    owners, alone, mean = theirs or (None, None, None)
    if alone is None:
        return ""
    return f"{alone:.1%}" + (f" of {owners:,.0f}" if owners else "") + (f" ({mean:g})" if mean else "")


def made_rows(rows: Sequence[Made], number: str, source: Mapping[tuple[float, float], int]) -> Iterator[Row]:
    """Table 6.2 or 6.3: the greatest k, in brackets how many procedures are not at their top."""
    mine = {(r.study, r.years, r.max_loss, r.limit): r for r in rows if r.table == number}
    columns = list(dict.fromkeys((study, years) for study, years, *_ in mine))
    people = {_head(*c): f"{next(r.rows for k, r in mine.items() if k[:2] == c):,}" for c in columns}
    yield {"max. loss": "patients", "suppression": "", **people, "source": SOURCE_ROWS}
    for most, limit in dict.fromkeys((m, x) for *_, m, x in mine):
        cells = {_head(*c): _k(mine[(*c, most, limit)]) for c in columns}
        theirs = f"{source[most, limit]:,}" if (most, limit) in source else ""
        yield {"max. loss": f"{most:g}", "suppression": f"{limit:.0%}", **cells, "source": theirs}


def _head(study: str, years: str) -> str:
    return f"{study}, {YEARS[years]}"


def _k(release: Made) -> str:
    return f"{release.k:,}" + (f" ({release.kept})" if release.kept and release.k > 1 else "")


def ola_rows(rows: Sequence[Made]) -> Iterator[Row]:
    """The two releases by OLA, k = 5: procedures by their first digit, as the source's, and by chapters of ICD-9."""
    for r in (r for r in rows if r.max_loss is None):
        kept = {n: level for n, level in r.levels.items() if level < r.tops[n]}
        yield {
            "data": r.study,
            "procedures": r.table,
            "patients": f"{r.rows:,}",
            "suppressed": f"{r.suppressed:,}",
            "Prec": f"{r.prec:.3f}",
            "levels of columns below their top": ", ".join(f"{n} {level}" for n, level in kept.items()) or "none",
        }
