"""Figures 1 to 5 of Shaked & Rokach (2016): what epsilon, hashes and shingles do to sequences that are made.

    python study.py                          on invented hospitals of the source's size (4,370 and 3,171 objects)
    python study.py --csv FOLDER             on TRANSFERS.csv and CPTEVENTS.csv of MIMIC-III or its demo as well
    python study.py --quick                  two repetitions, two epsilons, one number of hashes

Writes figure1.png to figure6.png, runs.csv and summary.csv to the folder `--out`, and the same of differential privacy
(`laplace`) as private_runs.csv and private_summary.csv; and prints both summaries.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import click
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

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

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
) -> tuple[list[Run], Gaps]:
    """Every setting on one dataset; the threshold is the job's, the histogram shows it."""
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
        for count, shingle in product(hashes, SHINGLES):
            chosen = planned.part.model_copy(update={"clusters": Clusters(hashes=count, shingle=shingle)})
            prepared = prepare(replace(planned, part=chosen), found, engine, lambda text: None)
            for epsilon in epsilons:
                fitted = prepared.privatise(None if math.isinf(epsilon) else epsilon, found.objects, engine)
                for repetition in range(repetitions):
                    figures = one(fitted, found, source, shingle, planned.timed, repetition)
                    runs.append(Run(data.name, count, shingle, epsilon, repetition, **figures))
            click.echo(f"{data.name}: {count} hashes, shingles of {shingle}", err=True)
    return runs, found.gaps


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


def panels(runs: list[Run], out: Path, number: int, measures: Mapping[str, Callable[[Run], float]]) -> None:
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
    save(figure, out / f"figure{number}.png")


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


def summary(runs: Sequence[Run | private.Run], shown: Sequence[str]) -> Iterator[dict[str, object]]:
    """Means and standard deviations of all runs (repetitions, hashes, shingles) by dataset and epsilon."""
    for name, epsilon in product(dict.fromkeys(r.dataset for r in runs), sorted({r.epsilon for r in runs})):
        chosen = [r for r in runs if (r.dataset, r.epsilon) == (name, epsilon)]
        row: dict[str, object] = {"dataset": name, "epsilon": epsilon}
        for measure in shown:
            values = [getattr(r, measure) for r in chosen]
            row |= {measure: round(mean(values), 4), f"{measure}_sd": round(pstdev(values), 4)}
        yield row


def tell(rows: list[dict[str, object]], shown: Sequence[str]) -> None:
    """Print a summary as a table: mean ± standard deviation."""
    heads = ("dataset", "epsilon", *shown)
    click.echo("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        cells = [f"{float(str(row[m])):.3g} ± {float(str(row[f'{m}_sd'])):.2g}" for m in shown]
        click.echo("| " + " | ".join([str(row["dataset"]), str(row["epsilon"]), *cells]) + " |")


def write_csv(file: Path, rows: list[dict[str, object]]) -> None:
    """Rows as CSV."""
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@click.command(help=__doc__)
@click.option("--csv", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("events_study"), show_default=True
)
@click.option("--repetitions", default=10, show_default=True)
@click.option("--scale", default=1.0, help="Size of the invented hospitals, 1 for the source's.")
@click.option("--quick", is_flag=True)
def main(folder: Path | None, out: Path, repetitions: int, scale: float, quick: bool) -> None:
    """Run everything."""
    out.mkdir(exist_ok=True, parents=True)
    epsilons, hashes = (EPSILONS[::3], HASHES[:1]) if quick else (EPSILONS, HASHES)
    repetitions = min(repetitions, 2) if quick else repetitions
    runs: list[Run] = []
    gaps: dict[str, Gaps] = {}
    for data in datasets(folder, scale):
        found, split = study(data, epsilons, hashes, repetitions)
        runs += found
        if split.histogram:
            gaps[data.name] = split
    figure1(gaps, out)
    for number, measures in FIGURES.items():
        panels(runs, out, number, measures)
    write_csv(out / "runs.csv", [asdict(run) for run in runs])
    rows = list(summary(runs, SHOWN))
    write_csv(out / "summary.csv", rows)
    tell(rows, SHOWN)
    made = private.all_runs(folder, scale, repetitions, private.EPSILONS[1:2] if quick else private.EPSILONS)
    write_csv(out / "private_runs.csv", [asdict(run) for run in made])
    rows = list(summary(made, PRIVATE_SHOWN))
    write_csv(out / "private_summary.csv", rows)
    tell(rows, PRIVATE_SHOWN)


if __name__ == "__main__":
    main()
