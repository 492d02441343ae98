"""How well do releases of demographics hide people whose procedures may be known? Tables 6.2 to 6.8 of Mazzone (2019).

    python models.py                          on an invented hospital
    python models.py DATABASE                 on MIMIC-III (or its demo) in a schema mimiciii
    python models.py --csv FOLDER             on PATIENTS.csv, ADMISSIONS.csv and PROCEDURES_ICD.csv of MIMIC-III

Writes models.csv and models.png (--name another), and prints the tables; --page puts them and the figure into a page.
job.toml beside this file says what a row is.
"""

from __future__ import annotations

import csv
import math
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import click
import duckdb
import matplotlib

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import gallery  # noqa: E402

import sqldeid  # noqa: E402
from sqldeid import demo  # noqa: E402

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

FILES = ("PATIENTS", "ADMISSIONS", "PROCEDURES_ICD")
LOADS = {
    "PATIENTS": "COPY mimiciii.patients FROM ? (FORMAT csv, HEADER)",
    "ADMISSIONS": "COPY mimiciii.admissions FROM ? (FORMAT csv, HEADER)",
    "PROCEDURES_ICD": "COPY mimiciii.procedures_icd FROM ? (FORMAT csv, HEADER)",
}
WHERE = {
    (3, False): "procedures >= 3",
    (5, False): "procedures >= 5",
    (3, True): "procedures >= 3 AND complete",
    (5, True): "procedures >= 5 AND complete",
}
"""By number of procedures, and whether rows with missing demographics are dropped."""

LEAST = 5
"""The source reports a release whose 1/m is larger."""

MODELS: dict[str, tuple[float, ...]] = {
    "A": (0.01, 0.01, 0.01),
    "B": (0.05, 0.05, 0.05),
    "C": (0.05, 0.01, 0.01),
    "D": (0.01, 0.01, 0.01, 0.01, 0.01),
}
"""With what probability an attacker knows the first, second, … procedure."""

SOURCE_TABLE = {"A": "6.4", "B": "6.5", "C": "6.6", "D": "6.7"}
SOURCE_SETTINGS = ((0.2, 0.5), (0.5, 0.1), (0.5, 0.5), (0.8, 0.0), (0.8, 0.1), (0.8, 0.5))
SOURCE_HIDDEN = {
    "A": dict(zip(SOURCE_SETTINGS, (27.2, 27.4, 33.3, 33, 33.2, 33.5), strict=True)),
    "B": dict(zip(SOURCE_SETTINGS, (6.7, 6.7, 7, 7, 7, 7), strict=True)),
    "C": dict(zip(SOURCE_SETTINGS, (16.5, 17.1, 20.2, 20, 20.1, 22.5), strict=True)),
    "D": dict(zip(SOURCE_SETTINGS, (5.2, 5.2, 5.3, 5.3, 5.3, 5.3), strict=True)),
}
"""Tables 6.4 to 6.7 of the source: 1/m by max. loss and suppression, where it is above 5."""


@dataclass(frozen=True)
class Study:
    """What is run on what.

    Parameters
    ----------
    folder
        Where releases are made; they are thrown away with it.
    complete
        Whether rows with missing demographics are dropped.
    losses, limits
        Most Prec and suppression, of which every combination is run.
    """

    database: Path
    folder: Path
    complete: bool
    losses: tuple[float, ...]
    limits: tuple[float, ...]

    @property
    def settings(self) -> list[tuple[float, float]]:
        """Every combination."""
        return list(product(self.losses, self.limits))

    def job(self, tables: Mapping[str, object], into: str) -> sqldeid.Job:
        """A job that writes to a file of its own; the tables are thrown away: nobody is given two, or attacks one."""
        tables = {
            name: {**part, "attacks": False, "never_with": [other for other in tables if other != name]}
            for name, part in tables.items()
            if isinstance(part, Mapping)
        }
        return sqldeid.Job.parse({"release": {"into": into}, "tables": tables}, folder=self.folder, name="job.toml")


@dataclass(frozen=True)
class Row:
    """One release.

    Parameters
    ----------
    table
        Which table of the source it is compared with.
    max_loss
        Most Prec allowed; None where the least is sought.
    limit
        Share of rows that may be suppressed.
    """

    table: str
    max_loss: float | None
    limit: float
    rows: int
    suppressed: int
    prec: float
    k: int
    one_over_m: float | None
    levels: Mapping[str, int]

    @property
    def kept(self) -> int:
        """Procedures that are not generalised to the top."""
        return sum(level < 2 for name, level in self.levels.items() if name.startswith("procedure"))

    @property
    def hidden(self) -> str:
        """1/m as printed, marked where the source would report it."""
        return "  none " if self.one_over_m is None else f"{self.one_over_m:5.1f}" + " *"[self.one_over_m > LEAST] + " "


def key(max_loss: float, limit: float) -> str:
    """A release's name."""
    return f"loss {max_loss:g} limit {limit:g}".replace(".", "_")


def part(procedures: int, *, complete: bool) -> dict[str, object]:
    """A release as job.toml has it, with this many procedures, all sensitive."""
    base = deepcopy(tomllib.loads((HERE / "job.toml").read_text(encoding="utf-8"))["tables"]["patients"])
    names = [f"procedure_{i + 1}" for i in range(procedures)]
    columns = base["columns"] | {name: {"role": "sensitive"} for name in names}
    return {**base, "where": WHERE[procedures, complete], "columns": columns}


def quasi_identifying(table: dict[str, object], demographics: tuple[str, ...] = ()) -> dict[str, object]:
    """The same with procedures quasi-identifying, and of the demographics only some."""
    columns: dict[str, object] = {}
    for name, column in table["columns"].items():  # type: ignore[attr-defined]
        if name.startswith("procedure"):
            columns[name] = {"role": "quasi-identifying", "hierarchy": "mimic3/procedure"}
        elif not demographics or name in demographics:
            columns[name] = column
    return {**table, "columns": columns}


def inverse(table: dict[str, object], study: Study) -> dict[str, object]:
    """Inverse OLA as the source ran it: k-anonymity alone, Prec, every loss and limit."""
    return {
        key(most, limit): {
            **table,
            "privacy": {"k": 1, "suppression_limit": limit},
            "search": {"method": "inverse-ola", "loss": "prec", "max_loss": most},
        }
        for most, limit in study.settings
    }


def concealing(table: dict[str, object], model: str, m: float, limit: float) -> dict[str, object]:
    """m-concealing by a model, with Prec as small as it gets."""
    known = {f"procedure_{i + 1}": p for i, p in enumerate(MODELS[model])}
    privacy = {"k": 1, "suppression_limit": limit, "m_concealing": {"m": m, "known": known}}
    return {**table, "privacy": privacy, "search": {"method": "frontier", "loss": "prec"}}


def row_of(
    table: str, max_loss: float | None, limit: float, made: sqldeid.TableRelease, one_over_m: float | None
) -> Row:
    """What is reported about a release."""
    size = made.released
    return Row(
        table, max_loss, limit, made.rows, made.rows - size, made.loss["prec"], made.k, one_over_m, dict(made.node)
    )


def k_anonymous(study: Study) -> Iterator[Row]:
    """Tables 6.2 and 6.3: demographics and three procedures, all quasi-identifying."""
    whole = part(3, complete=study.complete)
    tables = {"6.2": quasi_identifying(whole), "6.3": quasi_identifying(whole, ("gender", "year_of_birth"))}
    for name, table in tables.items():
        made = sqldeid.anonymize(study.job(inverse(table, study), f"k{name}.duckdb"), study.database).releases
        for most, limit in study.settings:
            yield row_of(name, most, limit, made[key(most, limit)], None)


def measured(study: Study) -> Iterator[Row]:
    """Tables 6.4 to 6.7: releases of demographics by Inverse OLA; then 1/m of each, by every model."""
    for procedures in sorted({len(known) for known in MODELS.values()}):
        table, into = part(procedures, complete=study.complete), f"measured{procedures}.duckdb"
        made = sqldeid.anonymize(study.job(inverse(table, study), into), study.database).releases
        for model in (m for m, known in MODELS.items() if len(known) == procedures):
            asked = {key(p, s): concealing(table, model, 1.0, s) for p, s in study.settings}
            risks = sqldeid.assess(study.job(asked, into), study.database, release=True)
            for most, limit in study.settings:
                name = key(most, limit)
                yield row_of(SOURCE_TABLE[model], most, limit, made[name], risks[name].one_over_m)


def searched(study: Study) -> Iterator[Row]:
    """What the source leaves to be done: m-concealing inside the search, 1/m at least LEAST, with the least Prec."""
    for model, known in MODELS.items():
        table = part(len(known), complete=study.complete)
        for limit in study.limits:
            job = study.job({"patients": concealing(table, model, 1 / LEAST, limit)}, f"{model}{limit}.duckdb")
            try:
                made = sqldeid.anonymize(job, study.database).releases["patients"]
            except sqldeid.NoSolutionError:
                continue
            yield row_of(f"searched {model}", None, limit, made, made.one_over_m)


def load(folder: Path, database: Path) -> None:
    """Load three CSV files (gzipped or not) into a new database."""
    with duckdb.connect(str(database)) as connection:
        connection.execute((HERE / "tables.sql").read_text(encoding="utf-8"))
        for name in FILES:
            found = [file for file in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if file.exists()]
            if not found:
                raise click.ClickException(f"{folder}: {name}.csv (or {name}.csv.gz) is missing")
            try:
                connection.execute(LOADS[name], [str(found[0])])
            except duckdb.Error:
                raise click.ClickException(f"{found[0]}: is not this table of MIMIC-III, by its columns") from None


def floor(model: str) -> float:
    """1/m where every procedure betrays a person and none known hides them among endlessly many."""
    return 1 / (1 - math.prod(1 - p for p in MODELS[model]))


def show(rows: list[Row]) -> Iterator[str]:
    """The tables as text."""
    people = [next(r.rows for r in rows if r.table == SOURCE_TABLE[model]) for model in ("A", "D")]
    yield f"{people[0]} patients with three procedures, {people[1]} with five"
    for name, qis in (("6.2", "demographics"), ("6.3", "gender and year of birth")):
        yield f"\nTable {name}: greatest k by Inverse OLA, Prec; {qis} and three procedures quasi-identifying"
        yield "max. loss  max. suppression     k  procedures not at the top  suppressed"
        for r in (r for r in rows if r.table == name):
            yield f"{r.max_loss or 0:9g}  {r.limit:15.0%}  {r.k:>4}  {r.kept:25}  {r.suppressed:10}"
    for model, name in SOURCE_TABLE.items():
        chances = ", ".join(f"{p:g}" for p in MODELS[model])
        yield f"\nTable {name}: model {model}, procedures known with {chances}; demographics quasi-identifying"
        yield f"(* 1/m > {LEAST}; as classes grow it tends to {floor(model):.1f} or more, whatever the procedures are)"
        yield "max. loss  max. suppression     k    1/m   suppressed"
        for r in (r for r in rows if r.table == name):
            yield f"{r.max_loss or 0:9g}  {r.limit:15.0%}  {r.k:>4}  {r.hidden}  {r.suppressed:10}"
    yield f"\nm-concealing inside the search (new against the source): the least Prec with 1/m of at least {LEAST}"
    yield "model  max. suppression   Prec     k    1/m   suppressed"
    for r in (r for r in rows if r.max_loss is None):
        yield f"{r.table[-1]:>5}  {r.limit:15.0%}  {r.prec:5.3f}  {r.k:>4}  {r.hidden}  {r.suppressed:10}"


def hidden_rows(rows: list[Row]) -> Iterator[gallery.Row]:
    """Tables 6.4 to 6.7 for a page: k, and 1/m by every model; the source's in brackets."""
    by_model = {
        m: {(r.max_loss, r.limit): r for r in rows if r.table == SOURCE_TABLE[m] and r.max_loss is not None}
        for m in MODELS
    }
    people = {m: next(iter(by_model[m].values())).rows for m in ("A", "D")}
    for (most, limit), first in by_model["A"].items():
        cells = {}
        for model, mine in by_model.items():
            theirs = SOURCE_HIDDEN[model].get((most, limit))
            shown = f"{mine[most, limit].one_over_m:.1f}" + (f" ({theirs:g})" if theirs is not None else "")
            cells[f"1/m, {model}"] = shown
            if model == "C":
                cells[f"k, D ({people['D']:,} patients)"] = f"{by_model['D'][most, limit].k:,}"
        k = {f"k, A to C ({people['A']:,} patients)": f"{first.k:,}"}
        yield {"max. loss": f"{most:g}", "suppression": f"{limit:.0%}", **k, **cells}


def anonymous_rows(rows: list[Row]) -> Iterator[gallery.Row]:
    """Tables 6.2 and 6.3 for a page: greatest k, and how many procedures are not at their top."""
    whole, few = ({(r.max_loss, r.limit): r for r in rows if r.table == name} for name in ("6.2", "6.3"))
    for (most, limit), r in whole.items():
        yield {
            "max. loss": f"{most:g}",
            "suppression": f"{limit:.0%}",
            "all demographics: k (procedures kept)": f"{r.k:,} ({r.kept})",
            "gender and year of birth: k (procedures kept)": f"{few[most, limit].k:,} ({few[most, limit].kept})",
        }


def searched_rows(rows: list[Row]) -> Iterator[gallery.Row]:
    """m-concealing inside the search, for a page; beside it what the source's way has at any Prec."""
    for r in (r for r in rows if r.max_loss is None):
        model = r.table[-1]
        way = [s for s in rows if s.table == SOURCE_TABLE[model] and s.limit == r.limit and s.one_over_m is not None]
        enough = [s.prec for s in way if (s.one_over_m or 0) >= LEAST]
        yield {
            "model": model,
            "suppression": f"{r.limit:.0%}",
            "inside the search: Prec": f"{r.prec:.3f}",
            "1/m": f"{r.one_over_m:.2f}",
            f"k first, m after: least Prec with 1/m of {LEAST}": f"{min(enough):.3f}" if enough else "–",
            "its greatest 1/m": f"{max(s.one_over_m or 0 for s in way):.2f}",
        }


TABLES = {"hidden": hidden_rows, "anonymous": anonymous_rows, "searched": searched_rows}


def draw_models(rows: list[Row], settings: list[tuple[float, float]], file: Path) -> None:
    """1/m by loss and limit, a panel for each model, with k beside it."""
    figure, panels = plt.subplots(1, len(MODELS), figsize=(13, 3.8), sharey=True, layout="constrained")
    places = range(len(settings))
    for panel, (model, name) in zip(panels, SOURCE_TABLE.items(), strict=True):
        mine = [r for r in rows if r.table == name]
        panel.bar([i - 0.2 for i in places], [r.one_over_m or 0 for r in mine], 0.4, label="1/m", color="#31688e")
        panel.bar([i + 0.2 for i in places], [r.k for r in mine], 0.4, label="k (procedures unknown)", color="#b5b5b5")
        panel.set_yscale("log")
        panel.axhline(LEAST, color="black", linestyle=":", label=f"{LEAST}")
        panel.set_xticks(list(places), [f"{p:g}, {s:.0%}" for p, s in settings], rotation=60, ha="right")
        panel.set_title(f"model {model} (table {name})")
        panel.set_xlabel("max. loss, max. suppression")
    panels[0].set_ylabel("persons one hides among, at least")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def write_csv(rows: list[Row], file: Path) -> None:
    """Every release as a line."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(["table", "max_loss", "limit", "rows", "suppressed", "prec", "k", "one_over_m"])
        for r in rows:
            hidden = "" if r.one_over_m is None else f"{r.one_over_m:.4f}"
            most = "" if r.max_loss is None else r.max_loss
            writer.writerow([r.table, most, r.limit, r.rows, r.suppressed, f"{r.prec:.4f}", r.k, hidden])


def numbers(text: str) -> tuple[float, ...]:
    """A list of numbers from the command line."""
    try:
        return tuple(float(item) for item in text.split(","))
    except ValueError:
        raise click.UsageError("--losses and --limits are lists of numbers: 0.2,0.5,0.8") from None


@click.command()
@click.argument("database", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@click.option(
    "--csv", "folder", type=click.Path(path_type=Path, exists=True, file_okay=False), help="CSV of MIMIC-III."
)
@click.option("--drop-missing", is_flag=True, help="Drop rows with missing demographics, as the source does.")
@click.option("--losses", default="0.2,0.5,0.8", show_default=True, help="Most Prec.")
@click.option("--limits", default="0,0.1,0.5", show_default=True, help="Most suppression, as a share of rows.")
@click.option("--patients", default=2000, show_default=True, type=click.IntRange(1), help="Of the invented hospital.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the invented hospital.")
@click.option(
    "--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="Output folder."
)
@click.option("--name", default="models", show_default=True, help="Of the files, and of the tables' places on a page.")
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put the tables there.")
def main(
    database: Path | None,
    folder: Path | None,
    drop_missing: bool,
    losses: str,
    limits: str,
    patients: int,
    seed: int,
    into: Path,
    name: str,
    page: Path | None,
) -> None:
    """Redo tables 6.2 to 6.8; the releases are made in a temporary folder and thrown away."""
    if database is not None and folder is not None:
        raise click.UsageError("give a database or --csv, not both")
    with tempfile.TemporaryDirectory() as scratch:
        path = database or Path(scratch) / "mimic.duckdb"
        study = Study(path, Path(scratch), drop_missing, numbers(losses), numbers(limits))
        try:
            if folder is not None:
                load(folder, path)
            elif database is None:
                demo.mimic(path, patients=patients, seed=seed)
            rows = [row for step in (k_anonymous, measured, searched) for row in step(study)]
        except sqldeid.SqldeidError as error:
            raise click.ClickException(str(error)) from None
    click.echo("\n".join(show(rows)))
    write_csv(rows, into / f"{name}.csv")
    draw_models(rows, study.settings, into / f"{name}.png")
    for kind, table in TABLES.items():
        shown = list(table(rows))
        gallery.write_rows(into / f"{name}-{kind}.csv", shown)
        if page is not None:
            gallery.put(page, f"m_concealing/{name}-{kind}", gallery.markdown(shown))
    if page is not None:
        gallery.show_figure(page, into / f"{name}.png")


if __name__ == "__main__":
    main()
