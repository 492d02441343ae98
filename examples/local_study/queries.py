"""Three questions of an epidemiologist, asked of originals, of one node for all rows, and of local recoding.

    python queries.py                    on the demo: 30,000 invented people, k = 5, in a few minutes
    python queries.py --rows 5000        on fewer
    python queries.py --page PAGE        put what is printed in the page's place for it, from "Loss: " on

Prints the tables that docs/local-recoding.md shows. Both releases are made by the demo's job; the second one by
`search.method = "local"` with `roll_up`, so that a table stands beside it in which columns are at one common level.
The figures of originals are statistics of the source: for invented people only.
"""

from __future__ import annotations

import io
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from math import exp
from pathlib import Path
from typing import Any

import click
import duckdb
import numpy as np

import sqldeid
from sqldeid import demo

LEVELS = {"age": 1, "sex": 0, "education": 1, "marital-status": 0}
"""The common levels: ages in tens, schooling in groups."""

WHERE = {
    "originals": "originals",
    "one node for all rows": "one_node",
    "local recoding": "local.release.census_rolled_up",
}
"""What is asked, each at the common levels, NULL where it cannot say."""

NAMED = {"one_node": "one node for all rows", "local": "local recoding"}
"""What the releases are called."""

RATE = """SELECT age, COUNT(*) AS n, AVG(CAST("salary-class" = '>50K' AS INTEGER)) AS rate
FROM {rows} WHERE age IS NOT NULL GROUP BY age"""
CROSS = """SELECT sex || ', ' || "marital-status" AS cell, COUNT(*) AS n
FROM {rows} WHERE sex IS NOT NULL AND "marital-status" IS NOT NULL GROUP BY ALL"""
COMPLETE = """SELECT age, sex, education, "salary-class" = '>50K' AS rich FROM {rows}
WHERE age IS NOT NULL AND sex IS NOT NULL AND education IS NOT NULL ORDER BY ALL"""


@click.command(help=__doc__)
@click.option("--rows", default=30_000, show_default=True)
@click.option("--page", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Page to put it in.")
def main(rows: int, page: Path | None) -> None:
    """Make the demo and both releases in a folder that goes again, and print what the questions give."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as name, redirect_stdout(said):
        folder = Path(name)
        made = release(folder, rows)
        with duckdb.connect() as connection:
            lay_out(connection, folder)
            ask(connection, made)
    if page is None:
        click.echo(said.getvalue(), nl=False)
        return
    head, found, _ = page.read_text(encoding="utf-8").partition("\nLoss: ")
    if not found:
        raise click.ClickException(f'{page} has no line that begins with "Loss: "')
    page.write_text(f"{head}\n{said.getvalue()}", encoding="utf-8")


def release(folder: Path, rows: int) -> dict[str, Any]:
    """Both releases of the demo."""
    demo.adult(folder / "demo.duckdb", rows=rows)
    content = tomllib.loads((folder / "demo.job.toml").read_text(encoding="utf-8"))
    table = content["tables"]["census"]
    ways = {"one_node": {}, "local": {"search": {"method": "local"}, "roll_up": LEVELS}}
    made = {}
    for name, way in ways.items():
        own = {"release": {"into": f"{name}.duckdb"}, "tables": {"census": {**table, "attacks": False, **way}}}
        found = sqldeid.anonymize(sqldeid.Job.parse(own, folder=folder), folder / "demo.duckdb")
        made[name] = found.releases["census"]
    return made


def lay_out(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Originals and the first release at the common levels; the second has a table of its own for that."""
    for name in ("demo", "one_node", "local"):
        connection.execute(f"ATTACH '{folder / name}.duckdb' AS {name} (READ_ONLY)")
    with duckdb.connect(str(folder / "demo.duckdb"), read_only=True) as source:
        said = {c: labels(source, c) for c in LEVELS}
    for name, rows in (("originals", "demo.main.adult"), ("one_node", "one_node.release.census")):
        columns = ", ".join(
            f"""MAP {{{", ".join(f"'{a}': '{b}'" for a, b in said[c].items())}}}[CAST("{c}" AS VARCHAR)] AS "{c}" """
            for c in LEVELS
        )
        connection.execute(f'CREATE TABLE {name} AS SELECT {columns}, "salary-class" FROM {rows}')  # noqa: S608  # its own names


def labels(source: duckdb.DuckDBPyConnection, column: str) -> dict[str, str]:
    """What each value says at the common level, and what each label at that level says of itself."""
    hierarchy = sqldeid.hierarchy.open_source(f"adult/{column}", Path())
    values = source.sql(f'SELECT DISTINCT "{column}" AS v FROM adult ORDER BY v').to_arrow_table()  # noqa: S608
    bound = hierarchy.bind(values.column("v").combine_chunks(), numeric=column == "age", uncovered="refuse")
    shown = bound.labels[LEVELS[column]][bound.groups[LEVELS[column]][bound.leaf]]
    own = {str(v): str(label) for v, label in zip(bound.values.to_pylist(), shown.tolist(), strict=True)}
    return {**own, **{label: label for label in own.values()}}


def ask(connection: duckdb.DuckDBPyConnection, made: Mapping[str, Any]) -> None:
    """Print what each question gives."""
    told = [f"{made[n].loss['loss']:.3f} and {made[n].suppressed:,} rows suppressed by {by}" for n, by in NAMED.items()]
    click.echo(f"Loss: {'; '.join(told)}, which cannot lose less than {made['local'].bound:.3f}.\n")
    total = {name: number(connection, f"SELECT COUNT(*) FROM {rows}") for name, rows in WHERE.items()}  # noqa: S608
    click.echo("### Share of people above 50K by age band\n")
    show(connection, RATE, "age", lambda row: f"{100 * row[2]:.1f} %", total)
    click.echo("\n### People by sex and marital status, in per cent of all that can be said\n")
    show(connection, CROSS, "cell", None, total)
    click.echo("\n### Odds of more than 50K, women against men, given age band and schooling\n")
    click.echo("| | rows | odds ratio |\n|---|---|---|")
    for name, rows in WHERE.items():
        found = connection.execute(COMPLETE.format(rows=rows)).fetchall()
        click.echo(f"| {name} | {len(found):,} of {total[name]:,} | {odds(found)} |")


def show(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    first: str,
    cell: Callable[[tuple[str, int, float]], str] | None,
    total: Mapping[str, int],
) -> None:
    """A table with a column for each source, and the rows that cannot say below it."""
    found = {name: connection.execute(query.format(rows=rows)).fetchall() for name, rows in WHERE.items()}
    counted = {name: sum(row[1] for row in rows) for name, rows in found.items()}
    click.echo(f"| {first} | {' | '.join(WHERE)} |\n|---|{'---|' * len(WHERE)}")
    for key in sorted({row[0] for rows in found.values() for row in rows}):
        cells = []
        for name, rows in found.items():
            row = next((r for r in rows if r[0] == key), None)
            share = f"{100 * row[1] / counted[name]:.1f} %" if row else "–"
            cells.append("–" if row is None else share if cell is None else cell(row))
        click.echo(f"| {key} | {' | '.join(cells)} |")
    left = [f"{total[name] - counted[name]:,} of {total[name]:,}" for name in WHERE]
    click.echo(f"| cannot say | {' | '.join(left)} |")


def odds(rows: list[tuple[str, str, str, bool]]) -> str:
    """Odds ratio of the second sex by the alphabet's first, of a logistic regression without a penalty."""
    if not rows:
        return "cannot say"
    from sklearn.linear_model import LogisticRegression

    columns = [[row[1] == "Female" for row in rows]]
    for place in (0, 2):
        columns += [[row[place] == value for row in rows] for value in sorted({row[place] for row in rows})[1:]]
    model = LogisticRegression(C=np.inf, max_iter=2000).fit(np.array(columns, dtype=float).T, [row[3] for row in rows])
    return f"{exp(model.coef_[0][0]):.3f}"


def number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    """The one number that a statement gives."""
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


if __name__ == "__main__":
    main()
