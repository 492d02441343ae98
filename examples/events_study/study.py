"""Table 1, figures 1 to 5 of Shaked & Rokach (2016): what epsilon, hashes and shingles do to sequences that are made.

    python study.py                          on invented hospitals of the source's size (4,370 and 3,171 objects)
    python study.py --csv FOLDER             on TRANSFERS.csv and CPTEVENTS.csv of MIMIC-III or its demo as well
    python study.py --full                   ten repetitions, as in the source, instead of one
    python study.py --quick                  one repetition, two epsilons, one number of hashes

Sequences end in two ways: by how long they last (`end = "duration"`, the source's) and as a state (ours). Writes
figure1.png to figure6.png (the source's way), state_figure2.png to state_figure6.png, both_figure2.svg, table_1.csv,
runs.csv, summary.csv and friedman.csv to the folder `--out`, and of differential privacy (`laplace`) private_runs.csv
and private_summary.csv; and prints the tables.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import click
import compare
import duckdb
import matplotlib
import numpy as np
import private

from sqldeid.demo.sequences import procedure_rows, transfer_rows
from sqldeid.engine.opening import open_connection
from sqldeid.events.evaluate import Source, evaluate
from sqldeid.events.fit import Ensemble, noised, prepare
from sqldeid.events.generate import Made
from sqldeid.events.plan import plan
from sqldeid.events.sequences import BIN_WIDTH, Gaps, Sequences, read_placed, sequence
from sqldeid.events.stage import put_batches
from sqldeid.job.events import Clusters, Events
from sqldeid.sql import render

sys.path.append(str(Path(__file__).resolve().parents[1]))
import gallery

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

Row = dict[str, object]
TRANSFERS: dict[str, Any] = {
    "source": "events",
    "object": "subject_id",
    "time": "intime",
    "order": "row_id",
    "state": ["curr_wardid", "eventtype"],
    "gap_hours": 16_800,
    "factors": ["weekday", "hour", "duration"],
}
PROCEDURES: dict[str, Any] = {
    "source": "events",
    "object": "subject_id",
    "order": ["hadm_id", "ticket_id_seq", "row_id"],
    "state": "cpt_cd",
}
ENDS = ("duration", "state")
"""How a sequence ends: the source's way, and ours."""
EPSILONS = (0.05, 0.35, 0.65, math.inf)
HASHES, SHINGLES = (100, 250, 500), (1, 2, 3)
COLOURS = {1: "#1b6ca8", 2: "#d1495b", 3: "#4f772d"}
MARKS = {100: "o", 250: "^", 500: "s"}


@dataclass(frozen=True)
class Dataset:
    """Events, and the section of a job that reads them."""

    name: str
    section: Mapping[str, Any]
    load: Callable[[duckdb.DuckDBPyConnection], None]


@dataclass(frozen=True)
class Run:
    """One release that was made and compared."""

    dataset: str
    end: str
    hashes: int
    shingle: int
    epsilon: float
    repetition: int
    similarity: float
    cover: float
    similarity_own: float
    cover_own: float
    top20: float
    tvd_2gram: float
    tvd_length: float
    tvd_gap: float
    mean_support: float
    suppressed_entries: float
    suppressed_records: float


def datasets(folder: Path | None, scale: float = 1.0) -> list[Dataset]:
    """The invented ones, and the real ones where a folder is given."""
    billed, moved = round(3_171 * scale), round(4_370 * scale)
    found = [
        Dataset("CPTEVENTS, invented", PROCEDURES, lambda c: put(c, procedure_rows(billed, 1))),
        Dataset("TRANSFERS, invented", TRANSFERS, lambda c: put(c, transfer_rows(moved, 1))),
    ]
    if folder is not None:
        found += [
            Dataset("CPTEVENTS, MIMIC-III", PROCEDURES, lambda c: read(c, folder / "CPTEVENTS.csv")),
            Dataset("TRANSFERS, MIMIC-III", TRANSFERS, lambda c: read(c, folder / "TRANSFERS.csv")),
        ]
    return found


def put(connection: duckdb.DuckDBPyConnection, rows: object) -> None:
    """Invented rows as the table `events`."""
    connection.register("invented", rows)
    connection.execute("CREATE TABLE events AS SELECT * FROM invented")
    connection.unregister("invented")


def read(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """A CSV file as the table `events`; codes stay text."""
    types = {"cpt_cd": "VARCHAR"} if "CPT" in file.name else {}
    connection.read_csv(str(file), dtype=types).create("events")


def study(
    data: Dataset, epsilons: tuple[float, ...], hashes: tuple[int, ...], repetitions: int
) -> tuple[list[Run], Gaps, Row]:
    """Every setting on one dataset; the threshold is the job's, the histogram shows it. Last its line of table 1."""
    connection = duckdb.connect()
    data.load(connection)
    runs: list[Run] = []
    with open_connection(connection) as engine:
        engine.neutralise()
        engine.begin()
        section = {**data.section, "privacy": {"method": "none"}}
        planned = plan("study", Events.model_validate(section), engine, Path())
        placed, _, counts = read_placed(planned, engine)
        found = sequence(planned, placed, counts, engine)
        source = Source("study", found.split, engine)
        for end, count, shingle in product(ENDS, hashes, SHINGLES):
            changed = {"clusters": Clusters(hashes=count, shingle=shingle), "end": end}
            chosen = planned.part.model_copy(update=changed)
            prepared = prepare(replace(planned, part=chosen), found, engine, lambda text: None)
            for epsilon in epsilons:
                fitted = prepared.privatise(None if math.isinf(epsilon) else epsilon, found.objects, engine)
                for repetition in range(repetitions):
                    figures = one(fitted, found, source, shingle, planned.timed, repetition)
                    runs.append(Run(data.name, end, count, shingle, epsilon, repetition, **figures))
            click.echo(f"{data.name}: end by {end}, {count} hashes, shingles of {shingle}", err=True)
        parts = connection.execute(f"SELECT COUNT(*) FROM {found.parts}").fetchall()[0][0]  # noqa: S608
    size = {"data": data.name, "objects": found.objects, "sequences": parts, "max records per object": found.most}
    return runs, found.gaps, size | {"records": found.events, "states": found.states}


def one(
    fitted: Ensemble, found: Sequences, source: Source, shingle: int, timed: bool, repetition: int
) -> dict[str, float]:
    """Make one release and compare it."""
    engine, rng = source.engine, np.random.default_rng([20_160_831, repetition])
    table = put_batches("study", fitted.generate(noised(found.objects, rng), rng, Made()), engine)
    split = engine.workbench("study_split")
    engine.execute(render("events/split_made", split=split, made=table, objects=2**62, timed=timed, whole=False))
    figures = asdict(evaluate("study", source, split, engine, shingle))
    for used in (table, split):
        engine.drop(used)
    support = fitted.support
    return figures | {
        "mean_support": support.mean,
        "suppressed_entries": support.suppressed_share,
        "suppressed_records": support.suppressed_records_share,
    }


def figure1(gaps: Mapping[str, Gaps], out: Path) -> None:
    """Transition times, and where sequences are split."""
    figure, axes = plt.subplots(1, len(gaps), figsize=(5.5 * len(gaps), 3.8), squeeze=False)
    for ax, (name, found) in zip(axes[0], gaps.items(), strict=True):
        edges = [math.exp(b * BIN_WIDTH) for b in found.histogram]
        widths = [e * (math.exp(BIN_WIDTH) - 1) for e in edges]
        ax.bar(edges, list(found.histogram.values()), width=widths, align="edge", color="#1b6ca8")
        low, high = min(edges), max(edges)
        ax.set(xscale="log", yscale="log", xlim=(low / 2, high * 4), ylim=(0.7, None), title=name)
        ax.set(xlabel="hours between two events", ylabel="transitions")
        if found.threshold_hours is not None:
            ax.axvline(found.threshold_hours, color="#d1495b", label=f"split above {found.threshold_hours:,.0f} h")
            ax.legend()
    save(figure, out / "figure1.png")


def panels(runs: list[Run], file: Path, measures: Mapping[str, Callable[[Run], float]]) -> None:
    """One panel per dataset and measure: means over the repetitions, by shingle (colour) and hashes (mark)."""
    names = list(dict.fromkeys(run.dataset for run in runs))
    shape = (len(measures), len(names))
    figure, axes = plt.subplots(*shape, figsize=(4.4 * shape[1], 3.5 * shape[0]), squeeze=False, sharey="row")
    for row, (label, value) in zip(axes, measures.items(), strict=True):
        for ax, name in zip(row, names, strict=True):
            panel(ax, [run for run in runs if run.dataset == name], value)
            ax.set(title=name, xlabel="epsilon")
        top = max(float(np.max(line.get_ydata())) for ax in row for line in ax.get_lines())
        row[0].set_ylim(0, 1.05 * top or 1)
        row[0].set_ylabel(label)
    lines = axes[0][0].get_legend_handles_labels()
    figure.legend(*lines, fontsize=7, ncol=3, loc="upper center", bbox_to_anchor=(0.5, 0.0))
    save(figure, file)


def panel(ax: Axes, runs: list[Run], value: Callable[[Run], float]) -> None:
    """Lines of one panel."""
    epsilons = sorted({run.epsilon for run in runs})
    for count, shingle in sorted({(run.hashes, run.shingle) for run in runs}):
        chosen = [run for run in runs if (run.hashes, run.shingle) == (count, shingle)]
        heights = [mean(value(run) for run in chosen if run.epsilon == epsilon) for epsilon in epsilons]
        look = {"color": COLOURS[shingle], "marker": MARKS[count], "linewidth": 1, "markersize": 4}
        ax.plot(range(len(epsilons)), heights, label=f"shingles of {shingle}, {count} hashes", **look)
    ax.set_xticks(range(len(epsilons)), ["∞" if math.isinf(e) else f"{e:g}" for e in epsilons])


def save(figure: Any, file: Path) -> None:
    """Write a figure."""
    figure.tight_layout()
    figure.savefig(file, dpi=130, bbox_inches="tight")
    plt.close(figure)


FIGURES: dict[int, dict[str, Callable[[Run], float]]] = {
    2: {
        "mean distance to the source": lambda run: 1 - run.similarity_own,
        "mean distance from the source": lambda run: 1 - run.cover_own,
    },
    3: {"top-20 2-grams in common": lambda run: run.top20},
    4: {
        "entries suppressed": lambda run: run.suppressed_entries,
        "records suppressed": lambda run: run.suppressed_records,
    },
    5: {"mean support": lambda run: run.mean_support},
    6: {
        "2-gram distance": lambda run: run.tvd_2gram,
        "length distance": lambda run: run.tvd_length,
    },
}
SHOWN = (
    "similarity",
    "cover",
    "top20",
    "tvd_2gram",
    "tvd_length",
    "mean_support",
    "suppressed_entries",
    "suppressed_records",
)


PRIVATE_SHOWN = ("similarity", "cover", "tvd_2gram", "tvd_length", "plain_2gram")


def summary(runs: Sequence[Run | private.Run], shown: Sequence[str], by: Sequence[str] = ("dataset",)) -> Iterator[Row]:
    """Means and standard deviations of all runs (repetitions, hashes, shingles) by dataset (and more) and epsilon."""
    keys = (*by, "epsilon")
    for key in dict.fromkeys(tuple(getattr(run, name) for name in keys) for run in runs):
        chosen = [r for r in runs if tuple(getattr(r, name) for name in keys) == key]
        row: Row = dict(zip(keys, key, strict=True))
        for measure in shown:
            values = [getattr(r, measure) for r in chosen]
            row |= {measure: round(mean(values), 4), f"{measure}_sd": round(pstdev(values), 4)}
        yield row


def shown_table(rows: Sequence[Mapping[str, object]], shown: Sequence[str]) -> str:
    """A summary as a table: mean ± standard deviation."""
    lines = []
    for row in rows:
        keys = {name: row[name] for name in ("dataset", "end", "epsilon") if name in row}
        lines.append(keys | {m: f"{float(str(row[m])):.3f} ± {float(str(row[f'{m}_sd'])):.2g}" for m in shown})
    return gallery.markdown(lines)


def every(folder: Path | None, scale: float, sizes: tuple[Any, ...], repetitions: int, out: Path) -> list[Run]:
    """All runs of the ratio test; figure 1 and table 1 on the way."""
    runs: list[Run] = []
    gaps: dict[str, Gaps] = {}
    lines: list[Row] = []
    for data in datasets(folder, scale):
        found, split, size = study(data, *sizes, repetitions)
        runs += found
        lines.append(size)
        if split.histogram:
            gaps[data.name] = split
    figure1(gaps, out)
    gallery.write_rows(out / "table_1.csv", lines)
    return runs


def run(folder: Path | None, out: Path, repetitions: int, scale: float, quick: bool) -> None:
    """All releases, into files and figures."""
    out.mkdir(exist_ok=True, parents=True)
    sizes = (EPSILONS[::3], HASHES[:1]) if quick else (EPSILONS, HASHES)
    runs = every(folder, scale, sizes, repetitions, out)
    for end, number in product(ENDS, FIGURES):
        before = "" if end == ENDS[0] else f"{end}_"
        panels([run for run in runs if run.end == end], out / f"{before}figure{number}.png", FIGURES[number])
    gallery.write_rows(out / "runs.csv", [asdict(run) for run in runs])
    gallery.write_rows(out / "summary.csv", list(summary(runs, SHOWN, ("dataset", "end"))))
    gallery.write_rows(out / "friedman.csv", compare.friedman([asdict(run) for run in runs]))
    epsilons = private.EPSILONS[1:2] if quick else private.EPSILONS
    made = private.all_runs(folder, scale, max(repetitions, 1 if quick else 3), epsilons)
    gallery.write_rows(out / "private_runs.csv", [asdict(run) for run in made])
    gallery.write_rows(out / "private_summary.csv", list(summary(made, PRIVATE_SHOWN)))


@click.command(help=__doc__)
@click.option("--csv", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("events_study"), show_default=True
)
@click.option("--page", type=click.Path(exists=True, path_type=Path), help="A page that the tables are put into.")
@click.option("--again", is_flag=True, help="Print and draw the results that are in --out; run nothing.")
@click.option("--repetitions", default=1, show_default=True)
@click.option("--scale", default=1.0, help="Size of the invented hospitals, 1 for the source's.")
@click.option("--full", is_flag=True)
@click.option("--quick", is_flag=True)
def main(
    folder: Path | None,
    out: Path,
    page: Path | None,
    again: bool,
    repetitions: int,
    scale: float,
    full: bool,
    quick: bool,
) -> None:
    """Run everything."""
    if not again:
        run(folder, out, 10 if full else repetitions, scale, quick)
    compare.both_ends(gallery.read_rows(out / "summary.csv"), out / "both_figure2.svg")
    gallery.tell(compare.tables(out, SHOWN, PRIVATE_SHOWN, shown_table), page)


if __name__ == "__main__":
    main()
