"""Flash, best-first and the stores behind them: tables 2, 4 and 5 and figures 5 to 7 of Prasser et al. (2016), redone.

    python study.py                     on generated tables of the source's sizes
    python study.py --data FOLDER       with Adult and MACH-IV (in place of SS13ACS) from FOLDER/adult, FOLDER/wide

Searches are cut short after so many checks (`--checks`), not after a time: checks are the same on every machine.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gallery import Row, markdown, put, show_figure, write_rows  # noqa: E402
from runs import Counted, Run, folded  # noqa: E402
from sets import Data, sets  # noqa: E402

import sqldeid  # noqa: E402
from sqldeid.report.charts import Line, Panel, panels, render  # noqa: E402
from sqldeid.tables.search import STRATEGIES, Outcome, search  # noqa: E402
from sqldeid.tables.search.best_first import best_first  # noqa: E402
from sqldeid.tables.search.flash import flash  # noqa: E402

FLASH_STORES = ("insufficient protection ↓", "sufficient protection ↑", "insufficient quality ↑")
"""Flash's stores, in the order that it makes them; the second is of its first phase alone."""

SOURCE_2 = {
    "Adult": ("12,960", "1,180 (9.10 %)", (887, 15.37, 93.01), (1062, 74.69, 73.54)),
    "Cup": ("45,000", "1,524 (3.39 %)", (1172, 24.75, 96.84), (1435, 80.93, 76.31)),
    "Fars": ("20,736", "1,342 (6.47 %)", (752, 10.81, 88.43), (1161, 75.44, 61.84)),
}
"""Table 2: transformations, checked, and of each property inserts, hits and largest antichain in per cent."""

SOURCE_4 = {
    3: (96, 12, 4, 17.39, 75.00),
    4: (480, 50, 18, 20.87, 55.56),
    5: (1_440, 89, 34, 22.84, 44.12),
    6: (4_320, 177, 61, 25.13, 36.07),
    7: (12_960, 449, 157, 28.06, 31.85),
    8: (38_880, 820, 284, 29.99, 24.65),
    9: (116_640, 3_872, 1_187, 34.26, 22.16),
    10: (466_560, 15_858, 4_486, 36.80, 22.78),
    11: (1_399_680, 32_507, 10_119, 37.70, 20.43),
    12: (4_199_040, 76_679, 25_211, 38.36, 18.84),
    13: (12_597_120, 265_762, 85_303, 38.74, 19.59),
    14: (37_791_360, 626_383, 199_747, 39.15, 20.75),
    15: (113_374_080, 1_634_751, 514_863, 39.31, 20.17),
}
"""Table 4: by attributes, transformations, checked, inserts, hits and largest antichain in per cent."""

SOURCE_5 = {
    "Adult": (0.00, 1.92, 7.69),
    "Cup": (0.04, 1.42, 2.38),
    "Fars": (0.00, 1.36, 6.70),
    "SS13ACS": (0.00, 1.74, 6.04),
}
"""Table 5: least, mean and greatest gain in quality over IGreedy, in per cent."""


TIMES = (1, 2, 4, 8)
"""So many times the checks of IGreedy, after which best-first is compared with it."""


@dataclass(frozen=True)
class Searched:
    """The searches of one data set with its first so many columns; None where a search was not made.

    `within` is the loss that the default search finds with as many checks as IGreedy takes; None where it finds none.
    """

    data: Data
    wide: bool
    attributes: int
    lattice: int
    best_first: Run
    flash: Run | None
    explicit: Run | None
    frontier: Outcome | None
    greedy: Outcome
    within: float | None


def searched(data: Data, attributes: int, checks: int, *, wide: bool, last: Searched | None) -> Searched:
    """Search one data set. What was cut short with fewer columns is left out; best-first is always run."""
    with folded(data, attributes) as inside:
        small = last is None or (last.flash is not None and last.flash.outcome.optimal)
        implicit = inside.run(flash, "counted", checks_limit=checks) if small else None
        greedy = search("igreedy", inside.problem())
        within = search("frontier", inside.problem(checks_limit=greedy.checks)).loss
        proven = last is None or (last.frontier is not None and last.frontier.optimal)
        return Searched(
            data,
            wide,
            attributes,
            inside.plan.lattice.size,
            inside.run(best_first, "counted", checks_limit=checks),
            implicit,
            inside.run(flash, "flags", checks_limit=checks) if implicit is not None and wide else None,
            inside.run(STRATEGIES["frontier"], checks_limit=checks).outcome if proven else None,
            greedy,
            within if within < 1 else None,
        )


# ---- tables ----------------------------------------------------------------------------------------------------------


def share(part: float, whole: float) -> str:
    """Per cent."""
    return f"{100 * part / whole:.2f} %" if whole else "–"


def whole(run: Outcome) -> str:
    """Checks, or that there were not enough of them."""
    return f"{run.checks:,}" if run.optimal else f"not finished after {run.checks:,}"


def of_store(store: Counted) -> Row:
    """What a store was asked, as the source shows it."""
    return {
        "inserts": f"{store.inserts:,}",
        "hits": share(store.hits, store.queries),
        "antichain": share(store.largest, store.inserts),
    }


def table_2(found: Sequence[Searched]) -> Iterator[Row]:
    """Flash on the low-dimensional data sets, all columns."""
    for data in dict.fromkeys(s.data for s in found if not s.wide):
        last = [s for s in found if s.data == data and s.flash is not None][-1]
        size, checked, *stores = SOURCE_2[data.stands_for]
        theirs = dict(zip((FLASH_STORES[0], FLASH_STORES[2]), stores, strict=True))
        run = last.flash
        for name, store in zip(FLASH_STORES, run.stores, strict=True):
            source = theirs.get(name)
            yield {
                "data": data.name,
                "columns": last.attributes,
                "nodes (source)": f"{last.lattice:,} ({size})",
                "checked": f"{whole(run.outcome)} ({share(run.outcome.checks, last.lattice)})",
                "source": checked,
                "property": name,
                **of_store(store),
                "source: inserts, hits, antichain": f"{source[0]:,}, {source[1]:.2f} %, {source[2]:.2f} %"
                if source
                else "–",
            }


def table_4(found: Sequence[Searched]) -> Iterator[Row]:
    """Best-first on the wide data, column by column."""
    for s in found:
        if not s.wide:
            continue
        run, source = s.best_first.outcome, SOURCE_4.get(s.attributes)
        yield {
            "attributes": s.attributes,
            "nodes": f"{s.lattice:,}",
            "checked": whole(run),
            "share": share(run.checks, s.lattice) if run.optimal else "",
            **of_store(s.best_first.stores[1]),
            "gap left": "" if run.optimal else f"{run.gap:.4f}",
            "frontier checks": "" if s.frontier is None else whole(s.frontier),
            "source: nodes, checked": f"{source[0]:,}, {source[1]:,} ({share(source[1], source[0])})" if source else "",
            "source: inserts, hits, antichain": f"{source[2]:,}, {source[3]:.2f} %, {source[4]:.2f} %"
            if source
            else "",
        }


def gain(loss: float, greedy: Outcome) -> float:
    """By how much the quality, 1 less the loss, is better than IGreedy's, in per cent."""
    return 100 * ((1 - loss) / (1 - greedy.loss) - 1)


def after(run: Run, checks: int) -> float | None:
    """The least loss that a search held after so many checks; None while it knew the top alone, if that."""
    losses = [p.loss for p in run.trace if p.checks <= checks and p.loss < 1]
    return min(losses, default=None)


def table_5(found: Sequence[Searched]) -> Iterator[Row]:
    """Best-first after the checks of IGreedy, and after several times as many, and frontier, against IGreedy."""
    for data in dict.fromkeys(s.data for s in found):
        mine = [s for s in found if s.data == data]
        for method, times in (*(("best-first", n) for n in TIMES), ("frontier", 1)):
            losses = [
                after(s.best_first, times * s.greedy.checks) if method == "best-first" else s.within for s in mine
            ]
            gains = [gain(x, s.greedy) for x, s in zip(losses, mine, strict=True) if x is not None]
            least, mean, most = SOURCE_5[data.stands_for]
            yield {
                "data": data.name,
                "columns": f"{mine[0].attributes} to {mine[-1].attributes}",
                "method": method,
                "checks": f"{times} ×",
                "nothing found": losses.count(None),
                "worse": sum(g < -1e-9 for g in gains),
                "same": sum(abs(g) <= 1e-9 for g in gains),
                "better": sum(g > 1e-9 for g in gains),
                "gain: least, mean, most": "–"
                if not gains
                else f"{min(gains):.2f} %, {sum(gains) / len(gains):.2f} %, {max(gains):.2f} %",
                "source: least, mean, most": f"{least:.2f} %, {mean:.2f} %, {most:.2f} %"
                if (method, times) == ("best-first", 1)
                else "",
            }


def table_5_wide(found: Sequence[Searched]) -> Iterator[Row]:
    """Table 5 on the wide data, one line for each number of columns."""
    for s in found:
        if s.wide:
            losses = {f"best-first, {n} ×": after(s.best_first, n * s.greedy.checks) for n in TIMES}
            losses["frontier, 1 ×"] = s.within
            yield {
                "attributes": s.attributes,
                "checks of igreedy": f"{s.greedy.checks:,}",
                "igreedy loss": f"{s.greedy.loss:.4f}",
                **{name: "–" if x is None else f"{x:.4f}" for name, x in losses.items()},
            }


def figures_5_and_6(found: Sequence[Searched]) -> Iterator[Row]:
    """Bytes of Flash's stores, and CPU seconds of each search, on the wide data; a flag a node and store is counted."""
    for s in found:
        if not s.wide:
            continue
        yield {
            "attributes": s.attributes,
            "explicit (MiB)": f"{len(FLASH_STORES) * s.lattice / 2**20:.3f}",
            "implicit (MiB)": _mib(s.flash),
            "flash explicit (CPU s)": _seconds(s.explicit),
            "flash implicit (CPU s)": _seconds(s.flash),
            "best-first (CPU s)": _seconds(s.best_first),
        }


def _mib(run: Run | None) -> str:
    return "" if run is None else f"{sum(store.memory for store in run.stores) / 2**20:.3f}"


def _seconds(run: Run | None) -> str:
    return "" if run is None else f"{run.seconds:.2f}" + ("" if run.outcome.optimal else " (not finished)")


def held(s: Searched) -> int:
    """The checks after which best-first first held the loss that it ended with."""
    run = s.best_first
    return next((p.checks for p in run.trace if p.loss <= run.outcome.loss), run.outcome.checks)


def figure_7(found: Sequence[Searched]) -> Iterator[Row]:
    """After which share of its checks best-first first held the optimum, of searches that ended."""
    for s in found:
        run = s.best_first
        if run.outcome.optimal:
            at = held(s)
            yield {
                "data": s.data.name,
                "attributes": s.attributes,
                "checks": run.outcome.checks,
                "optimum after": at,
                "share": share(at, run.outcome.checks),
            }


TABLES: dict[str, tuple[str, Callable[[Sequence[Searched]], Iterator[Row]]]] = {
    "table-2": ("Table 2: what Flash checks, and what its stores are asked", table_2),
    "table-4": ("Table 4: what best-first checks as columns are added; its store of insufficient quality", table_4),
    "table-5": ("Table 5: quality gained over IGreedy, by checks", table_5),
    "table-5-wide": ("Table 5 on the wide data, by number of columns", table_5_wide),
    "figures-5-6": ("Figures 5 and 6: memory of Flash's stores, and CPU time", figures_5_and_6),
    "figure-7": ("Figure 7a: when best-first holds the optimum", figure_7),
}


# ---- figures ---------------------------------------------------------------------------------------------------------


def _points(found: Sequence[Searched], value: Callable[[Searched], float]) -> tuple[list[float], list[float]]:
    return [float(s.attributes) for s in found], [value(s) for s in found]


def draw(found: Sequence[Searched], file: Path) -> None:
    """Figures 5, 6, 7a and 7b as four panels."""
    wide = [s for s in found if s.wide]
    stored = [s for s in wide if s.flash is not None]
    memory = [
        Line("Flash, explicit", *_points(wide, lambda s: len(FLASH_STORES) * s.lattice / 2**20)),
        Line("Flash, implicit", *_points(stored, lambda s: sum(b.memory for b in s.flash.stores) / 2**20)),
    ]
    times = [
        Line(label, [float(s.attributes) for s in wide if run(s)], [max(run(s).seconds, 1e-3) for s in wide if run(s)])
        for label, run in (
            ("Flash, explicit", lambda s: s.explicit),
            ("Flash, implicit", lambda s: s.flash),
            ("best-first", lambda s: s.best_first if s.best_first.outcome.optimal else None),
        )
    ]
    ended = [s for s in found if s.best_first.outcome.optimal]
    firsts = [
        Line(
            name,
            *_points([s for s in ended if s.data.name == name], lambda s: 100 * held(s) / s.best_first.outcome.checks),
        )
        for name in dict.fromkeys(s.data.name for s in found)
    ]
    last = {s.data.name: s.best_first for s in found}
    quality = [
        Line(n, [float(p.checks) for p in run.trace], [100 * (1 - p.loss) for p in run.trace])
        for n, run in last.items()
    ]
    columns = "columns of the wide data"
    shown = [
        Panel("Figure 5: memory of Flash's stores", columns, "MiB", tuple(memory), log_y=True),
        Panel("Figure 6: CPU time", columns, "s", tuple(times), log_y=True),
        Panel("Figure 7a: best-first holds the optimum", "columns", "% of its checks", tuple(firsts)),
        Panel("Figure 7b: best-first, all columns", "checks", "quality (%)", tuple(quality)),
    ]
    file.write_bytes(render(panels(shown, columns=2), file.suffix[1:]))


# ---- command ---------------------------------------------------------------------------------------------------------


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with adult/ and wide/; without it all tables are generated.",
)
@click.option("--checks", default=3_000, show_default=True, type=click.IntRange(2), help="Most checks of one search.")
@click.option("--full", is_flag=True, help="100,000 checks of one search: hours.")
@click.option("--attributes", default=15, show_default=True, type=click.IntRange(3), help="Most columns of a table.")
@click.option("--rows", default=10**7, type=click.IntRange(30), help="Most rows of a generated table.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the generated tables.")
@click.option(
    "--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="Output folder."
)
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put the tables there.")
def main(
    data: Path | None, checks: int, full: bool, attributes: int, rows: int, seed: int, into: Path, page: Path | None
) -> None:
    """Redo tables 2, 4 and 5 and figures 5 to 7; everything but the tables and one figure is thrown away."""
    found: list[Searched] = []
    with tempfile.TemporaryDirectory() as scratch:
        try:
            every = sets(data, Path(scratch), seed, rows)
            for one in every:
                for n in range(3, min(attributes, len(one.hierarchies)) + 1):
                    last = found[-1] if found and found[-1].data == one else None
                    found.append(searched(one, n, 100_000 if full else checks, wide=one is every[-1], last=last))
                    click.echo(f"{one.name}, {n} columns", err=True)
        except (sqldeid.SqldeidError, OSError) as error:
            raise click.ClickException(str(error)) from None
    for name, (title, rows_of) in TABLES.items():
        table = list(rows_of(found))
        click.echo(f"{title}\n\n{markdown(table)}\n")
        write_rows(into / f"{name}.csv", table)
        if page is not None:
            put(page, f"prune_study/{name}", markdown(table))
    draw(found, into / "prune.png")
    if page is not None:
        show_figure(page, into / "prune.png")


if __name__ == "__main__":
    main()
