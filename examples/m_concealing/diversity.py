"""What would l-diversity with probability-weighted knowledge buy? Mazzone (2019, §7.3) names it as future work.

    python diversity.py                     on an invented census
    python diversity.py --data FOLDER       on adult.data and adult.test of UCI Adult

As m-concealing weighs the risk of being found by how probably an attacker knows a sensitive column, a weighted l would
weigh 1/l. Its two ends are there: l of each column by itself (nobody knows another, p = 0), and joint l (everybody
knows all others, p = 1). This measures both ends, and what the releases of the lower one tell to who does know the
other. Rows without an occupation ("?") are left out: who has no workclass has none, which would count as telling.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import duckdb

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "adult_study")]

from gallery import Row, markdown, put, write_rows  # noqa: E402
from study import invent, load  # noqa: E402

import sqldeid  # noqa: E402

QIS = ("age", "sex", "race", "marital-status", "education")
TARGET, KNOWN = "occupation", "workclass"
"""The column that is to be diverse, and the one that the attacker may know."""

LS, K, LIMIT, P = (2, 3, 4), 5, 0.05, 0.05
"""`P` is how probably the attacker knows the other column: model B of the source."""


def released(database: Path, folder: Path, l: int, scope: str) -> tuple[sqldeid.TableRelease, Path]:
    """A release with distinct l-diversity of `TARGET`, and the file that it is in."""
    into = folder / f"{scope} {l}.duckdb"
    columns = {c: {"role": "quasi-identifying", "hierarchy": f"adult/{c}"} for c in QIS}
    sensitive = {c: {"role": "sensitive"} for c in (TARGET, KNOWN)}
    table = {
        "source": "main.adult",
        "person": "id",
        "where": f"{TARGET} <> '?'",
        "attacks": False,
        "columns": columns | sensitive,
        "privacy": {
            "k": K,
            "suppression_limit": LIMIT,
            "l_diversity": {"column": TARGET, "l": l, "scope": scope},
        },
    }
    job = sqldeid.Job.parse({"release": {"into": str(into)}, "tables": {"census": table}}, name="diversity.py")
    return sqldeid.anonymize(job, database).releases["census"], into


def told(file: Path) -> tuple[float, float]:
    """Of a release: the share of rows whose value is certain to who knows the other column; the worst weighted 1/l.

    The weighted 1/l of a row is (1 − p)/l of its class, plus p/l of those of the class with its value of the other
    column.
    """
    qis = ", ".join(f'"{c}"' for c in QIS)
    with duckdb.connect(str(file), read_only=True) as connection:
        (schema,) = connection.execute("SELECT table_schema FROM information_schema.tables").fetchone() or ("main",)
        row = connection.execute(
            f"""
            WITH groups AS (
                SELECT {qis}, "{KNOWN}", COUNT(*) AS n, COUNT(DISTINCT "{TARGET}") AS l
                FROM "{schema}".census GROUP BY ALL
            ),
            classes AS (SELECT {qis}, COUNT(DISTINCT "{TARGET}") AS l FROM "{schema}".census GROUP BY ALL)
            SELECT SUM(g.n) FILTER (g.l = 1) / SUM(g.n), MAX({1 - P} / c.l + {P} / g.l)
            FROM groups AS g JOIN classes AS c USING ({qis})
            """  # noqa: S608
        ).fetchone()
    certain, weighted = row or (None, None)
    return float(certain or 0), float(weighted or 1)


def rows_of(database: Path, folder: Path) -> Iterator[Row]:
    """A row for each l: the least loss at both ends, and what is told."""
    for l in LS:
        made = {}
        for scope in ("independent", "joint"):
            try:
                made[scope] = released(database, folder, l, scope)
            except sqldeid.NoSolutionError:
                made[scope] = None
        ends = {
            f"least loss, {words}": "no solution" if made[scope] is None else f"{made[scope][0].loss['loss']:.4f}"
            for scope, words in (("independent", "p = 0"), ("joint", "p = 1"))
        }
        row: dict[str, object] = {"l": l, **ends}
        if made["independent"] is not None:
            certain, weighted = told(made["independent"][1])
            row |= {
                "p = 0: rows certain to who knows the other column": f"{certain:.1%}",
                f"p = 0: worst weighted 1/l, p = {P}": f"{weighted:.3f} (asked {1 / l:.3f})",
            }
        yield row


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with adult.data and adult.test; without it a census is invented.",
)
@click.option("--rows", default=30_000, show_default=True, type=click.IntRange(30), help="Of the invented census.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the invented census.")
@click.option(
    "--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="Output folder."
)
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put the table there.")
def main(data: Path | None, rows: int, seed: int, into: Path, page: Path | None) -> None:
    """Measure both ends of a weighted l-diversity; releases are made in a temporary folder and thrown away."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "adult.duckdb"
        try:
            if data is not None:
                load(data, path)
            else:
                invent(rows, seed, path)
            found = list(rows_of(path, Path(scratch)))
        except sqldeid.SqldeidError as error:
            raise click.ClickException(str(error)) from None
    click.echo(markdown(found))
    write_rows(into / "diversity.csv", found)
    if page is not None:
        put(page, "m_concealing/diversity", markdown(found))


if __name__ == "__main__":
    main()
