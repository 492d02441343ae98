"""The data sets of the study: real ones where they are, else tables of the same size by a seeded generator.

A generated table is nobody's: rows belong to hidden groups, each with its own usual value in every column, and stray
from it. It has the rows and the levels per column of the set that it stands for, so the lattice is the source's; its
distributions are invented. Hierarchies merge three neighbours a level.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from sqldeid import demo

FILES = {
    "adult": ("adult.csv", "adult_hierarchy_{}.csv"),
    "wide": ("mach2019_int.csv", "mach2019_int_hierarchy_{}.csv"),
}
"""Real data: a folder of each name with the table and a hierarchy per column, `;` between cells."""

ADULT_ROWS = 30_162
ADULT_COLUMNS = (
    *("age", "education", "marital-status", "native-country", "occupation", "race"),
    *("relationship", "sex", "workclass"),
)
"""Those of the invented census that a hierarchy is shipped for."""

HABITS, STRAYING = 60, 0.25
"""Hidden groups of a generated table, and how many of a row's values do not come from its group."""


@dataclass(frozen=True)
class Shape:
    """A table of the source: its rows, and the levels of each of its columns."""

    name: str
    rows: int
    heights: tuple[int, ...]


CUP = Shape("like Cup", 63_441, (6, 5, 2, 3, 2, 5, 5, 5))
FARS = Shape("like Fars", 100_937, (6, 3, 4, 4, 2, 3, 4, 3))
SACS = Shape("like SS13ACS", 68_725, (4, 4, 6, 5, 3, 3, 3, 3, 3, 4, 3, 3, 3, 3, 3))


@dataclass(frozen=True, eq=False)
class Data:
    """A table to search.

    Parameters
    ----------
    name
        As tables show it.
    stands_for
        The source's name of it.
    database, table
        Where the rows are; column `id` is the person.
    hierarchies
        Per quasi-identifying column a file, or the name of a shipped hierarchy.
    """

    name: str
    stands_for: str
    database: Path
    table: str
    hierarchies: Mapping[str, str]


def sets(folder: Path | None, scratch: Path, seed: int, most: int) -> list[Data]:
    """The data of the study; generated tables have at most so many rows. The last one is the wide one."""
    generated = [_generated(shape, scratch, seed, most) for shape in (CUP, FARS)]
    if folder is not None:
        return [_real(folder, "adult", "Adult", scratch), *generated, _real(folder, "wide", "SS13ACS", scratch)]
    path = scratch / "census.duckdb"
    demo.adult(path, rows=min(ADULT_ROWS, most), seed=seed)
    census = {c: f"adult/{c}" for c in ADULT_COLUMNS}
    adult = Data("like Adult", "Adult", path, "main.adult", census)
    return [adult, *generated, _generated(SACS, scratch, seed, most)]


def _real(folder: Path, name: str, stands_for: str, scratch: Path) -> Data:
    table, hierarchy = FILES[name]
    file = folder / name / table
    with file.open(encoding="utf-8", newline="") as opened:
        columns = next(csv.reader(opened, delimiter=";"))
    path = scratch / f"{name}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE main.data AS SELECT row_number() OVER () AS id, * FROM read_csv(?, delim = ';', "
            "header = true, all_varchar = true)",
            [str(file)],
        )
    found = {c: str(folder / name / hierarchy.format(c)) for c in columns}
    return Data("Adult" if name == "adult" else "MACH-IV", stands_for, path, "main.data", found)


def _generated(shape: Shape, scratch: Path, seed: int, most: int) -> Data:
    """Draw a table of a shape and write its hierarchies."""
    rows, rng = min(shape.rows, most), np.random.default_rng([seed, len(shape.heights), shape.rows])
    habits = 1 / np.arange(1, HABITS + 1)
    group = rng.choice(HABITS, size=rows, p=habits / habits.sum())
    drawn, hierarchies = {"id": np.arange(rows)}, {}
    for j, height in enumerate(shape.heights):
        leaves = 3 ** (height - 1)
        usual = rng.integers(0, leaves, HABITS)[group] + np.round(rng.laplace(0, leaves / 16, rows))
        anywhere = rng.geometric(3 / (leaves + 2), rows) - 1
        values = np.where(rng.random(rows) < STRAYING, anywhere, usual)
        drawn[f"c{j + 1}"] = np.clip(values, 0, leaves - 1).astype(np.int64)
        hierarchies[f"c{j + 1}"] = str(_hierarchy(scratch / f"{shape.name}_{j + 1}.csv".replace(" ", "_"), height))
    path = scratch / f"{shape.name}.duckdb".replace(" ", "_")
    with duckdb.connect(str(path)) as connection:
        connection.register("drawn", pa.table(drawn))
        connection.execute("CREATE TABLE main.data AS SELECT * FROM drawn")
    return Data(shape.name, shape.name.removeprefix("like "), path, "main.data", hierarchies)


def _hierarchy(file: Path, height: int) -> Path:
    """Numbers, then bands of 3, of 9, …, then everything."""
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, delimiter=";", lineterminator="\n")
        for leaf in range(3 ** (height - 1)):
            bands = [f"{leaf // 3**x * 3**x}+{3**x}" for x in range(1, height - 1)]
            writer.writerow([leaf, *bands, "*"])
    return file
