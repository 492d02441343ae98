"""Do heavy weights save something of the procedures? The experiment with weighted Prec of Mazzone (2019, §6.1.3).

    python weighted.py                     on a generated hospital
    python weighted.py DATA                DATA: a folder of MIMIC-III's CSV files, or a DuckDB database of them

Inverse OLA as in table 6.2, with Prec in which every procedure weighs so much more than a demographic column.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import product
from pathlib import Path

import click

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gallery import Row, markdown, put, write_rows  # noqa: E402
from study import Made, Study, load, made, numbers, prepare, table_of  # noqa: E402

import sqldeid  # noqa: E402
from sqldeid import demo  # noqa: E402

PROCEDURES = ("procedure_1", "procedure_2", "procedure_3")
WEIGHTS = (1.0, 3.0, 10.0, 100.0)
SOURCE = "at most the first digit of one procedure, whatever the weights"


def weighted(study: Study, weight: float, years: str) -> Iterator[Made]:
    """Table 6.2 with this weight of every procedure."""
    for i, (most, limit) in enumerate(product(study.losses, study.limits)):
        table = deepcopy(table_of("inverse_ola.toml", years))
        table["privacy"]["suppression_limit"] = limit  # type: ignore[index]
        table["search"] |= {"max_loss": most, "weights": dict.fromkeys(PROCEDURES, weight)}  # type: ignore[operator]
        name = f"weighted {weight:g} {i}"
        yield made(study, f"weight {weight:g}", years, most, limit, study.release(table, name))


def kept(release: Made) -> str:
    """The procedures that are not at their top: "code" where one is as it was, else its first digit."""
    levels = [release.levels[name] for name in PROCEDURES]
    words = [f"{levels.count(level)} × {word}" for level, word in ((0, "code"), (1, "digit")) if level in levels]
    return ", ".join(words) or "nothing"


def rows_of(found: Sequence[tuple[float, list[Made]]]) -> Iterator[Row]:
    """A row for each max. loss and suppression, a column for each weight: k, and what is kept of procedures."""
    for i, first in enumerate(found[0][1]):
        cells = {f"weight {weight:g}": f"k = {m[i].k:,}, {kept(m[i])}" for weight, m in found}
        yield {"max. loss": f"{first.max_loss:g}", "suppression": f"{first.limit:.0%}", **cells}


def summary(found: Sequence[tuple[float, list[Made]]]) -> Iterator[Row]:
    """By weight: how many releases with k above 1 keep anything of a procedure, and the greatest such k."""
    for weight, mine in found:
        hiding = [m for m in mine if m.k > 1]
        keeping = [m for m in hiding if kept(m) != "nothing"]
        best = max(keeping, key=lambda m: m.k, default=None)
        yield {
            "weight of a procedure": f"{weight:g}",
            "releases with k > 1": len(hiding),
            "of these, keep something of a procedure": len(keeping),
            "greatest k of them": "–" if best is None else f"{best.k:,} ({kept(best)})",
            "source": SOURCE if weight > 1 else "nothing",
        }


TABLES = {"weighted": rows_of, "weighted-summary": summary}


@click.command()
@click.argument("data", type=click.Path(path_type=Path, exists=True), required=False)
@click.option("--patients", default=10_000, show_default=True, type=click.IntRange(1), help="Generated, without DATA.")
@click.option("--losses", default="0.2,0.5,0.8", show_default=True, help="Most Prec.")
@click.option("--limits", default="0,0.1,0.5", show_default=True, help="Most suppression, as a share of rows.")
@click.option("--years", default="drawn", show_default=True, type=click.Choice(["drawn", "ages"]))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the draws and the generator.")
@click.option(
    "--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="Output folder."
)
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put the tables there.")
def main(
    data: Path | None, patients: int, losses: str, limits: str, years: str, seed: int, into: Path, page: Path | None
) -> None:
    """Run table 6.2 once for each weight; releases are made in a temporary folder and thrown away."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "mimic.duckdb"
        study = Study("given" if data else "generated", path, path.parent, 1, seed, numbers(losses), numbers(limits))
        try:
            if data is not None:
                load(data, path)
            else:
                demo.mimic(path, patients=patients, seed=seed)
            prepare(study)
            found = [(weight, list(weighted(study, weight, years))) for weight in WEIGHTS]
        except sqldeid.SqldeidError as error:
            raise click.ClickException(str(error)) from None
    click.echo(f"{found[0][1][0].rows:,} patients with three procedures, demographics and years of birth {years}\n")
    for name, table in TABLES.items():
        shown = list(table(found))
        click.echo(f"{markdown(shown)}\n")
        write_rows(into / f"{name}.csv", shown)
        if page is not None:
            put(page, f"mimic_study/{name}", markdown(shown))


if __name__ == "__main__":
    main()
