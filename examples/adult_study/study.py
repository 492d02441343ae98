"""What suppression buys, what it costs a classifier, how many nodes are checked: chapter 6.1 of Mazzone (2019), Adult.

    python study.py                     on an invented census
    python study.py --data FOLDER       on adult.data and adult.test of UCI Adult
    python study.py --into RESULTS      a folder for tables and plots

Redoes figure 6.1 (least loss by suppression limit), table 6.1 and figure 6.2 (accuracy of a classifier), table 6.9
(nodes checked) and runs Inverse OLA. job.toml beside this file says what is released.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import click
import duckdb

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from gallery import Row, markdown, put, show_figure, write_rows  # noqa: E402

import sqldeid  # noqa: E402
from sqldeid import demo  # noqa: E402
from sqldeid.report.charts import Line, Panel, panels, render  # noqa: E402

NAMES = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
).split()
"""The columns of the UCI files, in their order."""

CREATE = {
    "adult": "CREATE TABLE main.adult AS SELECT row_number() OVER () AS id, * FROM read_csv(?, header = false, "
    "names = ?, skip = 0, delim = ', ', all_varchar = true)",
    "adult_test": "CREATE TABLE main.adult_test AS SELECT row_number() OVER () + (SELECT max(id) FROM main.adult) AS "
    "id, * REPLACE (rtrim(income, '.') AS income) FROM read_csv(?, header = false, names = ?, skip = 1, "
    "delim = ', ', all_varchar = true)",
}
NUMBERS = ("age", "capital-gain", "capital-loss", "hours-per-week")
INVENTED = (
    'CREATE TABLE main.renamed AS SELECT * RENAME ("salary-class" AS income, hours_per_week AS "hours-per-week") '
    "FROM main.adult",
    "DROP TABLE main.adult",
    "CREATE TABLE main.adult AS SELECT * FROM main.renamed WHERE id % 3 > 0",
    "CREATE TABLE main.adult_test AS SELECT * FROM main.renamed WHERE id % 3 = 0",
)

LOSSES = {"prec": "Prec", "dm_star": "DM*", "entropy": "Entropy"}
MAX_LOSSES, INVERSE_LIMITS = (0.2, 0.5, 0.8), (0.0, 0.1, 0.5)
SOURCE_ACCURACY = {
    (25, 0.0): (0.802, 0.8227, 0.8227),
    (25, 0.1): (0.8057, 0.8155, 0.8426),
    (25, 0.5): (0.8456, 0.8226, 0.8432),
    (100, 0.0): (0.802, 0.8215, 0.8052),
    (100, 0.1): (0.8058, 0.8136, 0.8136),
    (100, 0.5): (0.8315, 0.8049, 0.8255),
}
"""Table 6.1 of the source: by k and limit, the accuracy with Prec, DM* and Entropy."""

SOURCE_ORIGINALS = 0.8519

SOURCE_LIMITS = (0, 0.01, 0.05, 0.1, 0.2, 0.5)
SOURCE_CHECKS = {
    5: (127, 1267, 2418, 2058, 1303, 260),
    25: (98, 549, 1308, 2103, 1869, 773),
    100: (55, 215, 635, 1121, 1657, 1114),
}
"""Table 6.9 of the source: by k, the nodes that OLA checked at limits of 0, 1, 5, 10, 20 and 50 %."""


@dataclass(frozen=True)
class Study:
    """What is run on what.

    Parameters
    ----------
    folder
        Where releases are made; they are thrown away with it.
    limits
        Shares of the rows that may be suppressed; `trained` are those of them that a classifier is trained at.
    columns
        Quasi-identifying columns; all nine where empty.
    """

    database: Path
    folder: Path
    ks: tuple[int, ...]
    limits: tuple[float, ...]
    trained: tuple[float, ...]
    columns: tuple[str, ...]

    @property
    def table(self) -> dict[str, object]:
        """The release of job.toml, with the columns that the data has and that were asked for."""
        with duckdb.connect(str(self.database), read_only=True) as connection:
            there = {name for name, *_ in connection.execute("DESCRIBE main.adult").fetchall()}
        base = tomllib.loads((HERE / "job.toml").read_text(encoding="utf-8"))["tables"]["adult"]
        columns = {
            name: c
            for name, c in base["columns"].items()
            if name in there and (c["role"] != "quasi-identifying" or name in (self.columns or there))
        }
        return {**base, "columns": columns}

    def job(self, tables: Mapping[str, Mapping[str, object]], name: str) -> sqldeid.Job:
        """A job that writes to a file of its own."""
        unattacked = {table: {**part, "attacks": False} for table, part in tables.items()}  # nobody reads them
        asked = {"release": {"into": f"{name}.duckdb"}, "tables": unattacked}
        return sqldeid.Job.parse(asked, folder=self.folder, name="job.toml")

    def release(self, table: Mapping[str, object], name: str) -> sqldeid.TableRelease:
        """One release in a run of its own, since the releases of one run are compared pair by pair."""
        return sqldeid.anonymize(self.job({"adult": table}, name), self.database).releases["adult"]


@dataclass(frozen=True)
class Found:
    """One release: what was asked, and what came out."""

    method: str
    loss: str
    k: int
    limit: float
    value: float
    suppressed: float
    checks: int
    node: Mapping[str, int]


@dataclass(frozen=True)
class Trained:
    """One classifier, trained on a release of the training rows and tested on the test rows."""

    loss: str
    k: int
    limit: float
    value: float
    accuracy: float
    roc_auc: float


def asked(table: Mapping[str, object], k: int, limit: float, **search: object) -> dict[str, object]:
    """The release with this k and limit, found by this search."""
    return {**table, "privacy": {"k": k, "suppression_limit": limit}, "search": search}


def quasi_identifying(table: dict[str, object]) -> dict[str, object]:
    """The release without its other columns, which no loss speaks of."""
    columns: dict[str, dict[str, str]] = table["columns"]  # type: ignore[assignment]
    return {**table, "columns": {n: c for n, c in columns.items() if c["role"] == "quasi-identifying"}}


def value_of(made: sqldeid.TableRelease, loss: str) -> float:
    """A loss as the source shows it: Prec is 1 at the top, DM* is what it grew by."""
    return made.loss[loss] - (made.loss["dm_star_original"] if loss == "dm_star" else 0)


def released(study: Study, method: str, losses: Sequence[str]) -> Iterator[Found]:
    """The optimum for every k, limit and loss. OLA and the default search find the same; OLA checks more nodes."""
    table = quasi_identifying(study.table)
    for i, (loss, k, limit) in enumerate(product(losses, study.ks, study.limits)):
        r = study.release(asked(table, k, limit, method=method, loss=loss), f"{method} {i}")
        share = r.suppressed / r.rows
        yield Found(method, loss, k, limit, value_of(r, loss), share, r.search.checks, dict(r.node))


def trained(study: Study) -> tuple[sqldeid.Classification, list[Trained]]:
    """Classifiers: the first with the originals beside it, then one for every k, limit and loss."""
    first, found = None, []
    for k, limit, loss in product(study.ks, study.trained, LOSSES):
        job = study.job({"adult": asked(study.table, k, limit, method="frontier", loss=loss)}, "trained")
        made = sqldeid.evaluate(job, study.database, "income", test="main.adult_test", originals=first is None)
        first = first or made
        value = made.loss[loss] - (made.loss["dm_star_original"] if loss == "dm_star" else 0)
        found.append(Trained(loss, k, limit, value, made.anonymised.accuracy, made.anonymised.roc_auc or 0.5))
    if first is None:
        raise click.UsageError("--k and --trained name nothing to train on")
    return first, found


def inverse(study: Study) -> Iterator[tuple[float, Found]]:
    """The greatest k by Inverse OLA, for every loss and limit, with Prec."""
    table = quasi_identifying(study.table)
    for i, (most, limit) in enumerate(product(MAX_LOSSES, INVERSE_LIMITS)):
        r = study.release(asked(table, 1, limit, method="inverse-ola", loss="prec", max_loss=most), f"inverse {i}")
        k = int(r.criteria[0].asked)
        share = r.suppressed / r.rows
        yield most, Found("inverse-ola", "prec", k, limit, r.loss["prec"], share, r.search.checks, dict(r.node))


# ---- data ------------------------------------------------------------------------------------------------------------


def load(data: Path, database: Path) -> None:
    """Load the UCI files, as they are, into a new database."""
    files = {"adult": data / "adult.data", "adult_test": data / "adult.test"}
    with duckdb.connect(str(database)) as connection:
        for table, file in files.items():
            if not file.exists():
                raise click.ClickException(f"{data}: {file.name} is missing; it is one of the two files of UCI Adult")
            try:
                connection.execute(CREATE[table], [str(file), NAMES])
                for name in NUMBERS:
                    connection.execute(f'ALTER TABLE main.{table} ALTER "{name}" TYPE INTEGER')
            except duckdb.Error:
                raise click.ClickException(f"{file}: is not a file of UCI Adult, by its columns") from None


def invent(rows: int, seed: int, database: Path) -> None:
    """An invented census, two thirds of it to train on."""
    demo.adult(database, rows=rows, seed=seed)
    with duckdb.connect(str(database)) as connection:
        for statement in INVENTED:
            connection.execute(statement)


# ---- tables and plots ------------------------------------------------------------------------------------------------


def shown(limit: float) -> str:
    """A share in per cent."""
    return f"{100 * limit:g} %"


def show_losses(found: Sequence[Found], study: Study) -> Iterator[str]:
    """Figure 6.1 in numbers."""
    yield "Figure 6.1: least loss (Prec normalised, DM* less that of the originals)"
    for loss, label in LOSSES.items():
        yield f"  {label:8} k " + "".join(f"{shown(x):>12}" for x in study.limits)
        for k in study.ks:
            values = [f.value for f in found if (f.loss, f.k) == (loss, k)]
            numbers = (f"{v:.4f}" if loss == "prec" else f"{v:,.0f}" for v in values)
            yield f"  {k:10} " + "".join(f"{n:>12}" for n in numbers)


def show_accuracy(first: sqldeid.Classification, found: Sequence[Trained]) -> Iterator[str]:
    """Table 6.1, with the source's figures in brackets."""
    originals = first.originals
    if originals is not None and originals.roc_auc is not None:
        yield f"Table 6.1: accuracy; on the originals {originals.accuracy:.4f} (ROC-AUC {originals.roc_auc:.4f}),"
        yield f"  of always naming the most frequent class {first.baseline:.4f}"
    yield f"  {'k':>5} {'limit':>6}  " + "  ".join(f"{label:17}" for label in LOSSES.values())
    for k, limit in dict.fromkeys((f.k, f.limit) for f in found):
        mine = [f.accuracy for f in found if (f.k, f.limit) == (k, limit)]
        theirs = SOURCE_ACCURACY.get((k, limit))
        cells = [f"{a:.4f}" + (f" ({theirs[i]:.4f})" if theirs else "") for i, a in enumerate(mine)]
        yield f"  {k:5} {shown(limit):>6}  " + "  ".join(f"{c:17}" for c in cells)


def show_checks(found: Sequence[Found], study: Study) -> Iterator[str]:
    """Table 6.9: what OLA checks, what the default search checks, what OLA checked in the source."""
    yield "Table 6.9: nodes checked with Prec, by OLA / frontier (the source's OLA)"
    yield f"  {'k':>5} " + "".join(f"{shown(x):>18}" for x in study.limits)
    checks = {(f.method, f.k, f.limit): f.checks for f in found if f.loss == "prec"}
    for k in study.ks:
        theirs = dict(zip(SOURCE_LIMITS, () if study.columns else SOURCE_CHECKS.get(k, ()), strict=False))
        cells = (
            f"{checks['ola', k, x]} / {checks['frontier', k, x]}" + (f" ({theirs[x]})" if x in theirs else "")
            for x in study.limits
        )
        yield f"  {k:5} " + "".join(f"{c:>18}" for c in cells)


def show_inverse(found: Sequence[tuple[float, Found]]) -> Iterator[str]:
    """Inverse OLA: the greatest k."""
    yield "Inverse OLA: greatest k with Prec at most"
    yield f"  {'loss':>5} " + "".join(f"{shown(x):>8}" for x in INVERSE_LIMITS)
    for most in MAX_LOSSES:
        yield f"  {most:5} " + "".join(f"{f.k:8}" for m, f in found if m == most)


def lines(found: Sequence[Found], loss: str, study: Study) -> tuple[Line, ...]:
    """A line for each k."""
    return tuple(
        Line(f"k = {k}", [100 * x for x in study.limits], [f.value for f in found if (f.loss, f.k) == (loss, k)])
        for k in study.ks
    )


def draw_losses(found: Sequence[Found], study: Study, file: Path) -> None:
    """Figure 6.1."""
    ticks = tuple(100 * x for x in study.limits)
    limit = "suppression allowed (% of rows)"
    parts = [
        ("Prec", "prec", "loss (1 is the top)", False),
        ("DM*", "dm_star", "loss (rows²)", False),
        ("DM*, logarithmic", "dm_star", "loss (rows²)", True),
        ("Entropy", "entropy", "loss (bits)", False),
    ]
    made = [
        Panel(title, limit, unit, lines(found, loss, study), log_y=log, ticks=ticks, even=True)
        for title, loss, unit, log in parts
    ]
    file.write_bytes(render(panels(made, columns=2), "png"))


def draw_accuracy(first: sqldeid.Classification, found: Sequence[Trained], study: Study, file: Path) -> None:
    """Figure 6.2."""
    units = {"prec": "Prec (1 is the top)", "dm_star": "DM* (rows²)", "entropy": "Entropy (bits)"}
    made = []
    for loss, label in LOSSES.items():
        points = [
            Line(f"k = {k}", [f.value for f in mine], [f.accuracy for f in mine], joined=False)
            for k in study.ks
            if (mine := [f for f in found if (f.loss, f.k) == (loss, k)])
        ]
        level = ("originals", first.originals.accuracy) if first.originals else None
        made.append(Panel(label, f"loss, {units[loss]}", "accuracy (share of test rows)", tuple(points), level=level))
    file.write_bytes(render(panels(made), "png"))


def draw_checks(found: Sequence[Found], study: Study, file: Path) -> None:
    """Table 6.9 as a figure: the two searches, a panel for each k."""
    ticks = tuple(100 * x for x in study.limits)
    made = [
        Panel(
            f"k = {k}",
            "suppression allowed (% of rows)",
            "nodes checked",
            tuple(
                Line(label, list(ticks), [f.checks for f in found if (f.method, f.loss, f.k) == (method, "prec", k)])
                for method, label in (("ola", "OLA"), ("frontier", "frontier"))
            ),
            log_y=True,
            ticks=ticks,
            even=True,
        )
        for k in study.ks
    ]
    file.write_bytes(render(panels(made), "png"))


def accuracy_rows(first: sqldeid.Classification, found: Sequence[Trained]) -> Iterator[Row]:
    """Table 6.1 for a page: the originals, what needs no model, and every release; the source's in brackets."""
    if first.originals is not None:
        both = f"{first.originals.accuracy:.4f} ({SOURCE_ORIGINALS})"
        yield {"k": "originals", "suppressed": ""} | dict.fromkeys(LOSSES.values(), both)
    yield {"k": "most frequent class", "suppressed": ""} | dict.fromkeys(LOSSES.values(), f"{first.baseline:.4f}")
    for k, limit in dict.fromkeys((f.k, f.limit) for f in found):
        mine = {LOSSES[f.loss]: f"{f.accuracy:.4f}" for f in found if (f.k, f.limit) == (k, limit)}
        theirs = dict(zip(LOSSES.values(), SOURCE_ACCURACY.get((k, limit), ()), strict=False))
        cells = {loss: cell + (f" ({theirs[loss]:.4f})" if loss in theirs else "") for loss, cell in mine.items()}
        yield {"k": k, "suppressed": shown(limit), **cells}


def inverse_rows(found: Sequence[tuple[float, Found]]) -> Iterator[Row]:
    """The greatest k by Inverse OLA for a page: a line for each greatest Prec."""
    for most in dict.fromkeys(m for m, _ in found):
        yield {"max. loss": f"{most:g}", **{shown(f.limit): f"{f.k:,}" for m, f in found if m == most}}


def write(file: Path, heading: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table as CSV."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(heading)
        writer.writerows(rows)


def write_tables(
    optima: Sequence[Found],
    models: Sequence[Trained],
    greatest: Sequence[tuple[float, Found]],
    first: sqldeid.Classification,
    into: Path,
) -> None:
    """Every number that was found."""
    write(
        into / "figure_6_1.csv",
        ["method", "loss", "k", "limit", "value", "suppressed_share", "checks", "node"],
        (
            (f.method, f.loss, f.k, f.limit, f"{f.value:.6f}", f"{f.suppressed:.6f}", f.checks, levels(f))
            for f in optima
        ),
    )
    rows: list[Sequence[object]] = [
        (m.loss, m.k, m.limit, f"{m.value:.6f}", f"{m.accuracy:.6f}", f"{m.roc_auc:.6f}") for m in models
    ]
    if first.originals is not None:
        rows.insert(0, ("originals", "", "", "", f"{first.originals.accuracy:.6f}", f"{first.originals.roc_auc:.6f}"))
    write(into / "table_6_1.csv", ["loss", "k", "limit", "value", "accuracy", "roc_auc"], rows)
    write(
        into / "inverse_ola.csv",
        ["max_loss", "limit", "k", "prec", "suppressed_share", "checks", "node"],
        ((m, f.limit, f.k, f"{f.value:.6f}", f"{f.suppressed:.6f}", f.checks, levels(f)) for m, f in greatest),
    )


def levels(found: Found) -> str:
    """A node as text: the levels in the order of the job."""
    return " ".join(str(level) for level in found.node.values())


def numbers(text: str) -> tuple[float, ...]:
    """A list of numbers from the command line."""
    try:
        return tuple(float(item) for item in text.split(","))
    except ValueError:
        raise click.UsageError("--k, --limits and --trained are lists of numbers: 5,25,100") from None


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with adult.data and adult.test; without it a census is invented.",
)
@click.option("--k", "ks", default="5,25,100", show_default=True, help="Least class sizes.")
@click.option("--limits", default="0,0.01,0.05,0.1,0.2,0.5", show_default=True, help="Most suppression, as a share.")
@click.option("--trained", "at", default="0,0.1,0.5", show_default=True, help="Of these, where a model is trained.")
@click.option("--columns", default="", help="Quasi-identifying columns; all nine by default.")
@click.option("--rows", default=30_000, show_default=True, type=click.IntRange(30), help="Of the invented census.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the invented census.")
@click.option(
    "--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="Output folder."
)
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put table 6.1 there.")
def main(
    data: Path | None,
    ks: str,
    limits: str,
    at: str,
    columns: str,
    rows: int,
    seed: int,
    into: Path,
    page: Path | None,
) -> None:
    """Redo chapter 6.1's experiments on Adult; the releases are made in a temporary folder and thrown away."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "adult.duckdb"
        names = tuple(name for name in columns.split(",") if name)
        study = Study(path, Path(scratch), tuple(int(k) for k in numbers(ks)), numbers(limits), numbers(at), names)
        try:
            if data is not None:
                load(data, path)
            else:
                invent(rows, seed, path)
            optima = [*released(study, "frontier", list(LOSSES)), *released(study, "ola", ["prec"])]
            greatest = list(inverse(study))
            first, models = trained(study)
        except sqldeid.SqldeidError as error:
            raise click.ClickException(str(error)) from None
    best = [f for f in optima if f.method == "frontier"]
    for part in (
        show_losses(best, study),
        show_accuracy(first, models),
        show_checks(optima, study),
        show_inverse(greatest),
    ):
        click.echo("\n".join(line.rstrip() for line in part) + "\n")
    write_tables(optima, models, greatest, first, into)
    draw_losses(best, study, into / "figure_6_1.png")
    draw_accuracy(first, models, study, into / "figure_6_2.png")
    draw_checks(optima, study, into / "table_6_9.png")
    for name, table in (("accuracy", [*accuracy_rows(first, models)]), ("inverse", [*inverse_rows(greatest)])):
        write_rows(into / f"{name}.csv", table)
        if page is not None:
            put(page, f"adult_study/{name}", markdown(table))
    if page is not None:
        for figure in ("figure_6_1.png", "figure_6_2.png"):
            show_figure(page, into / figure)


if __name__ == "__main__":
    main()
