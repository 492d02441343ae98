"""How unique are patients, and what hides them? Chapter 3 and tables 6.2 and 6.3 of Mazzone (2019) on MIMIC-III.

    python study.py DATA OUT                 DATA: a folder of MIMIC-III's CSV files, or a DuckDB database of them
    python study.py DATA OUT --patients 0    without the generated hospital of the real one's size
    python study.py --patients 2000          on a generated hospital alone; tables and plots into this folder

Nothing is written but tables and plots; ola.toml, chapters.toml and inverse_ola.toml beside this file say what is
released, and run by themselves.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import click
import duckdb
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from mimic_tables import for_page  # noqa: E402

import sqldeid  # noqa: E402
from sqldeid import demo  # noqa: E402
from sqldeid.report.charts import Bar, Line, Panel, bars, panels, render  # noqa: E402

TABLES = {
    "patients": "subject_id INTEGER, gender VARCHAR, dob TIMESTAMP",
    "admissions": "subject_id INTEGER, hadm_id INTEGER, admittime TIMESTAMP, insurance VARCHAR, language VARCHAR, "
    "religion VARCHAR, marital_status VARCHAR",
    "procedures_icd": "subject_id INTEGER, hadm_id INTEGER, seq_num INTEGER, icd9_code VARCHAR",
    "noteevents": "subject_id INTEGER, category VARCHAR, text VARCHAR",
}
"""What is read of MIMIC-III. Types are stated: guessed, codes would be numbers and lose their leading zeros."""

OPTIONAL = ("noteevents",)
DEMOGRAPHICS = ("gender", "insurance", "language", "religion", "marital_status")
FEW = ("gender", "year_of_birth")
MAX_LOSSES, LIMITS = (0.2, 0.5, 0.8), (0.0, 0.1, 0.5)
SOURCE_K = {
    "6.2": dict(zip(product(MAX_LOSSES, LIMITS), (1, 1, 1, 1, 8, 228, 313, 1009, 7003), strict=True)),
    "6.3": {(0.5, 0.1): 12, (0.5, 0.5): 104},
}
"""Greatest k of the source. Its table 6.3 has only the runs that keep something of a procedure at k > 1."""

YEARS = {"ages": "year of birth by age", "drawn": "years of birth drawn"}

PEOPLE = """CREATE TABLE mimiciii.people AS
    SELECT p.subject_id, p.gender, a.insurance, a.language, a.religion, a.marital_status,
           2008 - CASE WHEN a.age > 89 THEN 90 ELSE a.age END AS year_of_birth
    FROM mimiciii.patients AS p
    JOIN (SELECT a.*, EXTRACT(YEAR FROM a.admittime) - EXTRACT(YEAR FROM p.dob) AS age,
                 ROW_NUMBER() OVER (PARTITION BY a.subject_id ORDER BY a.admittime, a.hadm_id) AS visit
          FROM mimiciii.admissions AS a JOIN mimiciii.patients AS p USING (subject_id)) AS a
      ON a.subject_id = p.subject_id AND a.visit = 1
    ORDER BY p.subject_id"""
COMPLETE = """CREATE TABLE mimiciii.complete AS
    SELECT p.* EXCLUDE (subject_id), d.* EXCLUDE (subject_id)
    FROM mimiciii.people AS p JOIN mimiciii.drawn AS d USING (subject_id)
    WHERE language IS NOT NULL AND religion IS NOT NULL AND marital_status IS NOT NULL"""
DRAWN = """SELECT q.* REPLACE (d.normal_1 AS year_of_birth)
    FROM ({}) AS q JOIN mimiciii.drawn AS d ON d.subject_id = q.subject_id"""


@dataclass(frozen=True)
class Study:
    """One database that is studied.

    Parameters
    ----------
    name
        What tables and plots call it.
    folder
        Where releases are made; they are thrown away with it.
    draws
        How often years of birth are drawn.
    losses, limits
        Most Prec and suppression, of which every combination is run.
    """

    name: str
    database: Path
    folder: Path
    draws: int
    seed: int
    losses: tuple[float, ...] = MAX_LOSSES
    limits: tuple[float, ...] = LIMITS

    def release(self, table: Mapping[str, object], name: str) -> sqldeid.TableRelease:
        """A release into a file of its own, in a run of its own: those of one run are compared pair by pair.

        It is thrown away, so nobody attacks it.
        """
        asked = {"release": {"into": f"{name}.duckdb"}, "tables": {"patients": {**table, "attacks": False}}}
        job = sqldeid.Job.parse(asked, folder=self.folder, name=f"{name}.toml")
        return sqldeid.anonymize(job, self.database).releases["patients"]


@dataclass(frozen=True)
class Seen:
    """How unique one set of columns, or a pattern of procedures, makes its owners."""

    study: str
    what: str
    owners: float
    alone: float
    mean_size: float
    source: tuple[float | None, float | None, float | None] | None


@dataclass(frozen=True)
class Made:
    """One release.

    Parameters
    ----------
    years
        ``ages`` or ``drawn``.
    kept
        Levels of the procedures below their top, first to last.
    """

    study: str
    table: str
    years: str
    max_loss: float | None
    limit: float
    rows: int
    suppressed: int
    prec: float
    k: int
    levels: Mapping[str, int]
    tops: Mapping[str, int]

    @property
    def node(self) -> str:
        """Its levels as text."""
        return " ".join(map(str, self.levels.values()))

    @property
    def kept(self) -> int:
        """Procedures that are not generalised to the top."""
        return sum(x < self.tops[n] for n, x in self.levels.items() if n.startswith("procedure"))


# ---- chapter 3 -------------------------------------------------------------------------------------------------------


def look_at_people(study: Study) -> Iterator[Seen]:
    """Section 3.1: demographics, with the years of birth that the ages give, as drawn by the source, and without."""
    normal, uniform = ([f"{kind}_{i + 1}" for i in range(study.draws)] for kind in ("normal", "uniform"))
    sets = [(year, *DEMOGRAPHICS) for year in ("year_of_birth", *normal, *uniform)] + [DEMOGRAPHICS]
    found = sqldeid.explore(study.database, "mimiciii.complete", columns=sets)
    by_set = {frozenset(u.columns): u for u in found.sets}
    seen = [by_set[frozenset(s)] for s in sets]
    average = [np.mean([[u.alone, u.mean_size] for u in seen[1 + i * study.draws :][: study.draws]], 0) for i in (0, 1)]
    n = seen[0].persons
    yield Seen(study.name, "demographics, year of birth by age", n, seen[0].alone, seen[0].mean_size, None)
    yield Seen(
        study.name, "demographics, years drawn (normal)", n, *map(float, average[0]), (23236, 8254 / 23236, 1.91)
    )
    yield Seen(study.name, "demographics, ages drawn (uniform)", n, *map(float, average[1]), (None, 0.29, None))
    yield Seen(study.name, "demographics without ages", n, seen[-1].alone, seen[-1].mean_size, (23236, 0.0303, 15.7))


PATTERNS = {
    "first three procedures": (33044, 14745 / 33044, 1.88),
    "first two procedures": (42119, 0.15, None),
    "first and fifth procedure": (20434, 0.28, None),
    "first three as a set": (33044, 0.37, 2.18),
}
"""Section 3.2, with the source's figures: admissions with enough procedures, share singled out, mean class size."""


def look_at_procedures(study: Study) -> Iterator[Seen]:
    """Section 3.2: the procedures of an admission."""
    found = sqldeid.explore_sequences(
        study.database,
        "mimiciii.procedures_icd",
        per=["hadm_id"],
        value="icd9_code",
        order=["seq_num"],
        places=[(1, 2, 3), (1, 2), (1, 5)],
        unordered=[(1, 2, 3)],
    )
    for u, (what, source) in zip(found.patterns, PATTERNS.items(), strict=True):
        yield Seen(study.name, what, u.persons, u.alone, u.mean_size, source)  # type: ignore[arg-type]


def look_at_notes(study: Study) -> Iterator[str]:
    """Section 3.3: notes, where there are any."""
    with duckdb.connect(str(study.database), read_only=True) as connection:
        notes = connection.execute("SELECT COUNT(*) FROM mimiciii.noteevents").fetchone()
    if not notes or not notes[0]:
        yield f"{study.name}: no notes, so section 3.3 is left out (the source's: 49.5 % of the patients with notes are"
        yield "  found by the first 20 characters of one)"
        return
    found = sqldeid.explore_text(study.database, "mimiciii.noteevents", "text", first=(20,), person="subject_id")
    for u in found.prefixes:
        what = " ".join(u.columns)
        yield f"{study.name}: {u.alone:.1%} of {u.persons:,} patients are found by {what} of a note (49.5 %)"
    for group in found.keywords:
        yield f"  {group.group}: in {group.rows:,} notes"


# ---- chapter 6 -------------------------------------------------------------------------------------------------------


def table_of(name: str, years: str = "ages") -> dict[str, object]:
    """The release of a job file beside this one, with years of birth as asked for."""
    table: dict[str, object] = tomllib.loads((HERE / name).read_text(encoding="utf-8"))["tables"]["patients"]
    if years == "ages":
        return table
    columns = table["columns"] | {"year_of_birth": table["columns"]["year_of_birth"] | {"uncovered": "top"}}  # type: ignore
    return {**table, "source": {"query": DRAWN.format(table["source"]["query"])}, "columns": columns}  # type: ignore[index]


def inverse(study: Study, number: str, years: str) -> Iterator[Made]:
    """Table 6.2 or 6.3: the greatest k for every loss and limit."""
    base = table_of("inverse_ola.toml", years)
    if number == "6.3":
        base = {**base, "columns": {n: c for n, c in base["columns"].items() if n in FEW}}  # type: ignore[attr-defined]
    for i, (most, limit) in enumerate(product(study.losses, study.limits)):
        table = deepcopy(base)
        table["privacy"]["suppression_limit"] = limit  # type: ignore[index]
        table["search"]["max_loss"] = most  # type: ignore[index]
        yield made(study, number, years, most, limit, study.release(table, f"inverse {number} {years} {i}"))


def ola(study: Study) -> Iterator[Made]:
    """The two releases by Optimal Lattice Anonymization, as their files have them."""
    for file, words in (("ola.toml", "by first digit"), ("chapters.toml", "by chapters of ICD-9")):
        yield made(study, words, "ages", None, 0.1, study.release(table_of(file), words))


def made(study: Study, table: str, years: str, most: float | None, limit: float, release: sqldeid.TableRelease) -> Made:
    """What is reported about a release."""
    tops = {name: (column.height or 1) - 1 for name, column in release.columns.items()}
    k = int(release.criteria[0].asked)
    return Made(
        study.name,
        table,
        years,
        most,
        limit,
        release.rows,
        release.suppressed,
        release.loss["prec"],
        k,
        dict(release.node),
        tops,
    )


# ---- data ------------------------------------------------------------------------------------------------------------


def load(data: Path, database: Path) -> None:
    """Copy what is read of MIMIC-III into a new database; upper and lower case make no difference."""
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE SCHEMA mimiciii")
        if data.is_file():
            connection.execute(f"ATTACH '{str(data).replace(chr(39), chr(39) * 2)}' AS given (READ_ONLY)")
        for name, columns in TABLES.items():
            connection.execute(f"CREATE TABLE mimiciii.{name} ({columns})")
            names = ", ".join(c.split()[0] for c in columns.split(", "))
            source, values = find_csv(data, name) if data.is_dir() else (find_table(connection, data, name), [])
            if not source and name in OPTIONAL:
                continue
            if not source:
                raise click.ClickException(f"{data}: {name.upper()} is missing")
            try:
                connection.execute(f"INSERT INTO mimiciii.{name} SELECT {names} FROM {source}", values)  # noqa: S608
            except duckdb.Error:
                raise click.ClickException(
                    f"{data}: {name.upper()} is not this table of MIMIC-III, by its columns"
                ) from None


def find_csv(folder: Path, name: str) -> tuple[str, list[str]]:
    """A CSV file of a folder, gzipped or not, read as text."""
    for ending in (".csv", ".csv.gz"):
        for file in (folder / f"{name.upper()}{ending}", folder / f"{name}{ending}"):
            if file.exists():
                return "read_csv(?, header = true, all_varchar = true)", [str(file)]
    return "", []


def find_table(connection: duckdb.DuckDBPyConnection, data: Path, name: str) -> str:
    """A table of the attached database, in whatever schema."""
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'given' AND LOWER(table_name) = ?",
        [name],
    ).fetchall()
    if len(found) > 1:
        raise click.ClickException(
            f"{data}: has {len(found)} tables {name.upper()}, in different schemas; give one alone"
        )
    return f'given."{found[0][0]}"."{found[0][1]}"' if found else ""


def prepare(study: Study) -> None:
    """Add demographics at the first admission, and years of birth drawn as the source drew them."""
    with duckdb.connect(str(study.database)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS mimiciii.noteevents (subject_id INTEGER, text VARCHAR)")
        connection.execute(PEOPLE)
        people = [i for (i,) in connection.execute("SELECT subject_id FROM mimiciii.people ORDER BY 1").fetchall()]
        random = np.random.Generator(np.random.PCG64(study.seed))
        columns = {"subject_id": np.array(people, dtype=np.int64)}
        for i in range(study.draws):
            columns[f"normal_{i + 1}"] = np.rint(random.normal(1980, 33, len(people))).astype(np.int64)
            columns[f"uniform_{i + 1}"] = random.integers(0, 100, len(people))
        connection.register("drawn_now", columns)
        connection.execute("CREATE TABLE mimiciii.drawn AS SELECT * FROM drawn_now")
        connection.execute(COMPLETE)


# ---- tables and plots ------------------------------------------------------------------------------------------------


def show_seen(seen: Sequence[Seen]) -> Iterator[str]:
    """Chapter 3 as text."""
    yield "Chapter 3: who is alone, by what somebody may know (in brackets the source, on full MIMIC-III)"
    for study in dict.fromkeys(s.study for s in seen):
        yield f"\n{study}\n{'':38}{'owners':>18}{'alone':>18}{'mean class':>16}"
        for s in (s for s in seen if s.study == study):
            source = s.source or (None, None, None)
            cells = (
                (f"{s.owners:,.0f}", 18, source[0] and f"{source[0]:,.0f}"),
                (f"{s.alone:.1%}", 18, source[1] and f"{source[1]:.1%}"),
                (f"{s.mean_size:.2f}", 16, source[2] and f"{source[2]:g}"),
            )
            shown = ((text + (f" ({theirs})" if theirs else "")).rjust(width) for text, width, theirs in cells)
            yield f"  {s.what:36}" + "".join(shown)


def show_made(rows: Sequence[Made]) -> Iterator[str]:
    """Tables 6.2 and 6.3, and the releases by OLA, as text."""
    for study in dict.fromkeys(r.study for r in rows):
        for number, qis in (("6.2", "demographics"), ("6.3", "gender and year of birth")):
            found = [r for r in rows if (r.study, r.table) == (study, number)]
            yield f"\nTable {number}, {study} ({found[0].rows:,} patients): greatest k by Inverse OLA, Prec;"
            yield f"{qis} and three procedures quasi-identifying; k and procedures not at their top"
            yield f"max. loss  suppression  {YEARS['ages']:>22}  {YEARS['drawn']:>22}  source"
            for most, limit in dict.fromkeys((r.max_loss, r.limit) for r in found):
                one, two = (next(r for r in found if (r.years, r.max_loss, r.limit) == (y, most, limit)) for y in YEARS)
                theirs = SOURCE_K[number].get((most, limit), "")
                yield f"{most:9g}  {limit:11.0%}  {one.k:>20,} {one.kept}  {two.k:>20,} {two.kept}  {theirs:>6}"
        for r in (r for r in rows if r.study == study and r.max_loss is None):
            yield f"\nOLA, {study}, procedures {r.table}, k = {r.k}, limit {r.limit:.0%}: Prec {r.prec:.4f}, "
            yield f"{r.suppressed:,} of {r.rows:,} suppressed; levels " + ", ".join(
                f"{n} {x}" for n, x in r.levels.items()
            )


def draw_seen(seen: Sequence[Seen], file: Path) -> None:
    """Shares singled out, here and in the source."""
    rows = []
    for what in dict.fromkeys(s.what for s in seen):
        mine = [s for s in seen if s.what == what]
        rows += [Bar(f"{what} – {s.study}", (s.alone,)) for s in mine]
        rows += [Bar(f"{what} – source", (mine[0].source[1],))] if mine[0].source else []
    made_ = bars(rows, ["alone"], title="Who is alone (Mazzone 2019, ch. 3)", xlabel="alone in their class (%)")
    file.write_bytes(render(made_, "png"))


def draw_made(rows: Sequence[Made], number: str, file: Path) -> None:
    """Greatest k by limit; a panel for each data set and greatest loss."""
    shown = []
    for study, most in dict.fromkeys((r.study, r.max_loss) for r in rows if r.max_loss is not None):
        found = [r for r in rows if (r.study, r.table, r.max_loss) == (study, number, most)]
        lines = [
            Line(words, [100 * r.limit for r in found if r.years == years], [r.k for r in found if r.years == years])
            for years, words in YEARS.items()
        ]
        title, ticks = f"{study}: Prec at most {most:g}", tuple(dict.fromkeys(100 * r.limit for r in found))
        theirs = {x: k for (m, x), k in SOURCE_K[number].items() if m == most and 100 * x in ticks}
        lines += [Line("source", [100 * x for x in theirs], list(theirs.values()))] if theirs else []
        shown.append(
            Panel(
                title, "suppression allowed (% of rows)", "greatest k", tuple(lines), log_y=True, ticks=ticks, even=True
            )
        )
    columns = len(dict.fromkeys(r.max_loss for r in rows if r.max_loss is not None))
    file.write_bytes(render(panels(shown, columns=columns), "png"))


def write(file: Path, heading: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    """A table as CSV."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(heading)
        writer.writerows(rows)


def write_all(seen: Sequence[Seen], rows: Sequence[Made], into: Path) -> None:
    """Every number that was found, and the plots."""
    write(
        into / "chapter_3.csv",
        ["study", "what", "owners", "alone", "mean_class", "source_owners", "source_alone", "source_mean_class"],
        (
            (s.study, s.what, f"{s.owners:g}", f"{s.alone:.6f}", f"{s.mean_size:.4f}", *(s.source or ("", "", "")))
            for s in seen
        ),
    )
    heading = ["study", "table", "years", "max_loss", "limit", "rows", "suppressed", "prec", "k", "kept", "node"]
    write(
        into / "releases.csv",
        heading,
        (
            [r.study, r.table, r.years, r.max_loss, r.limit, r.rows, r.suppressed, f"{r.prec:.6f}", r.k, r.kept, r.node]
            for r in rows
        ),
    )
    draw_seen(seen, into / "chapter_3.png")
    draw_made(rows, "6.2", into / "table_6_2.png")
    draw_made(rows, "6.3", into / "table_6_3.png")


def run(study: Study) -> tuple[list[Seen], list[Made], list[str]]:
    """Everything, on one database."""
    prepare(study)
    seen = [*look_at_people(study), *look_at_procedures(study)]
    rows = [r for number, years in product(("6.2", "6.3"), YEARS) for r in inverse(study, number, years)]
    return seen, rows + list(ola(study)), list(look_at_notes(study))


def numbers(text: str) -> tuple[float, ...]:
    """A list of numbers from the command line."""
    try:
        return tuple(float(item) for item in text.split(","))
    except ValueError:
        raise click.UsageError("--losses and --limits are lists of numbers: 0.2,0.5,0.8") from None


@click.command()
@click.argument("data", type=click.Path(path_type=Path, exists=True), required=False)
@click.argument("out", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--patients", default=46_520, show_default=True, type=click.IntRange(0), help="Generated; 0: none.")
@click.option("--losses", default="0.2,0.5,0.8", show_default=True, help="Most Prec.")
@click.option("--limits", default="0,0.1,0.5", show_default=True, help="Most suppression, as a share of rows.")
@click.option("--draws", default=20, show_default=True, type=click.IntRange(1), help="Of years of birth.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the draws and the generator.")
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put the tables there.")
def main(
    data: Path | None,
    out: Path,
    patients: int,
    losses: str,
    limits: str,
    draws: int,
    seed: int,
    page: Path | None,
) -> None:
    """Redo chapter 3 and tables 6.2 and 6.3; releases are made in a temporary folder and thrown away."""
    if data is None and not patients:
        raise click.UsageError("name DATA, or a number of --patients to generate")
    out.mkdir(parents=True, exist_ok=True)
    seen, rows, notes = [], [], []
    for name in (["given"] if data else []) + (["generated"] if patients else []):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "mimic.duckdb"
            study = Study(name, path, path.parent, draws, seed, numbers(losses), numbers(limits))
            try:
                if name == "given" and data is not None:
                    load(data, study.database)
                else:
                    demo.mimic(study.database, patients=patients, seed=seed)
                found = run(study)
            except sqldeid.SqldeidError as error:
                raise click.ClickException(str(error)) from None
        seen, rows, notes = seen + found[0], rows + found[1], notes + found[2]
    click.echo("\n".join([*show_seen(seen), *show_made(rows), "", *notes]))
    write_all(seen, rows, out)
    for_page(seen, rows, SOURCE_K, out, page)


if __name__ == "__main__":
    main()
