"""Databases, files and hierarchies of a case."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tests.deep.hostile import CANARY, FILES, NAMES, TEXTS, TYPES, UNFIT, Random

OWN = ("people", "visits", "stays", "charted", "moves", "levels", "tree")
"""Tables of a database; a file holds `people` alone."""
PLAIN = "being-made"
"""What a file is called while hostile names do not matter."""


@dataclass
class Made:
    """A source: its file, and the columns of hostile names by name, with their types."""

    path: Path
    table: str
    types: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> bool:
        """Whether it is no file with one table."""
        return self.path.suffix == ".duckdb"


def source(r: Random, folder: Path, sound: bool) -> Made:
    """Make it, with hierarchies beside it."""
    _hierarchies(folder)
    rows = 200 if sound else r.choice([0, 1, 2, 30, 60, 60, 60, 120]) if r.wild else r.choice([30, 60, 60, 120])
    kind = "duckdb" if sound else r.choice(["duckdb"] * 6 + ["csv", "parquet", "csv.gz"])
    made = Made(folder / f"{'s' if sound else _file_name(r)}.{kind}", "people")
    plain = folder / PLAIN
    with duckdb.connect(":memory:" if kind != "duckdb" else str(plain)) as c:
        c.execute("SET TimeZone = 'UTC'")
        c.execute("CREATE TEMP MACRO h(a, b) AS CAST(hash(a, b) % 1000003 AS BIGINT)")
        types = ["INTEGER", "VARCHAR", "DATE", "INTEGER"] if sound else r.choices(list(TYPES), k=r.randint(1, 4))
        types = types if sound or r.odd() else [t for t in types if t not in UNFIT] or ["INTEGER"]
        made.types = dict(zip(_names(r, len(types), sound), types, strict=False))
        kept = ", ".join(_column(r, name, kind_, sound) for name, kind_ in made.types.items())
        key = r.choice([f"'{CANARY}p' || i", "i"]) if not sound else "i"
        c.execute(
            f"CREATE TABLE people AS SELECT {key} AS id, {kept}, '{CANARY} name ' || i AS patient, "
            f"'seen by {CANARY}' || i AS note, ['flu', 'HIV', 'cold'][1 + h(i, 99) % 3] AS illness FROM range({rows}) r(i)"
        )
        if kind == "duckdb":
            _children(r, c, key, rows, sound)
            _levels(c)
            if not sound and r.random() < 0.15:
                made.table = quoted(r.choice([n for n in NAMES if n.casefold() not in OWN]))
                c.execute(f"CREATE VIEW {made.table} AS SELECT * FROM people")
        else:
            made.table = quoted(made.path.name.split(".")[0])
            form = "(FORMAT PARQUET)" if kind == "parquet" else "(HEADER, FORMAT CSV"
            form += "" if kind == "parquet" else ", COMPRESSION GZIP)" if kind == "csv.gz" else ")"
            c.execute(f"COPY people TO '{plain}' {form}")
    plain.rename(made.path)
    return made


def change(path: Path, statement: str) -> None:
    """Change a source that is a database; a statement that does not fit it is left out."""
    plain = path.with_name(PLAIN)
    path.rename(plain)
    try:
        with duckdb.connect(str(plain)) as c:
            c.execute(statement)
    except duckdb.Error:
        pass
    finally:
        plain.rename(path)


def quoted(name: str) -> str:
    """As SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _file_name(r: Random) -> str:
    """A question mark and others are refused in a database's path, so tame names come more often."""
    return r.choice(FILES if r.odd() or r.random() < 0.3 else FILES[:1])


def _names(r: Random, number: int, sound: bool) -> list[str]:
    """Names that differ but for upper and lower case, also from those of the other columns."""
    chosen = {name.casefold(): name for name in r.sample(NAMES, number)}
    return [name if not sound else f"q{j}" for j, name in enumerate(chosen.values())]


def _column(r: Random, name: str, kind: str, sound: bool) -> str:
    texts = "abcdefghijklmnopqrs" if sound else r.sample(TEXTS, 19)
    value = TYPES[kind].format(
        n=r.randrange(1000),
        d=r.choice([2, 5, 19]),
        t="[" + ", ".join("'" + t.replace("'", "''") + "'" for t in texts) + "]",
    )
    if not sound and r.random() < 0.3:
        value = f"CASE WHEN i % {r.choice([2, 7, 29])} = 0 THEN NULL ELSE {value} END"
    return f"{value} AS {quoted(name)}"


def _children(r: Random, c: duckdb.DuckDBPyConnection, key: str, rows: int, sound: bool) -> None:
    c.execute(
        f"CREATE TABLE visits AS SELECT {key} AS id, 'c' || j % 4 AS code, j AS seq, j % 3 AS ward FROM range({rows}) r(i), range(3) s(j)"
    )
    c.execute(
        f"CREATE TABLE stays AS SELECT p.*, '{CANARY}stay' || p.id || s.seq AS stay, h(hash(p.id), s.seq) % 4 AS ward, "
        "['ok', 'dead', 'moved'][1 + h(hash(p.id), 7 * s.seq) % 3] AS ending "
        f"FROM people AS p, range({r.choice([1, 3])}) AS s(seq) WHERE s.seq = 0 OR hash(p.id) % 3 > 0"
    )
    bad = r.choice([*["FALSE THEN 0"] * 3, "i % 11 = 0 THEN 'nan'::DOUBLE", "i % 7 = 0 THEN 1e300", "j = 0 THEN NULL"])
    steps = max(r.choice([1, 3, 6]), 3 * sound)  # a first value may be missing, and one that is sound has others
    c.execute(
        f"CREATE TABLE charted AS SELECT {key} AS id, CAST(j * 60 AS INTEGER) AS minute, CAST(1 + h(i, j) % 2 AS VARCHAR) AS item, "
        f"CASE WHEN {bad} ELSE 80 + h(i + 31 * j, 5) % 40 / 4e0 END AS value FROM range({rows}) r(i), range({steps}) s(j)"
    )
    c.execute(
        f"CREATE TABLE moves AS SELECT {key} AS id, TIMESTAMP '2020-01-01' + to_hours(CAST(i + j * 20 AS BIGINT)) AS at, j AS seq, "
        f"'w' || h(i, j) % 3 AS state, '{CANARY}' || i AS nurse FROM range({rows}) r(i), range(3) s(j)"
    )


def _levels(c: duckdb.DuckDBPyConnection) -> None:
    """Hierarchies of whole numbers that stand in the database: as levels, and as children of two parents."""
    c.execute(
        "CREATE TABLE levels AS SELECT i AS value, CASE WHEN i < 10 THEN 'low' ELSE 'high' END AS label FROM range(60) r(i)"
    )
    c.execute(
        "CREATE TABLE tree AS SELECT CAST(i AS VARCHAR) AS child, 'p' || j AS parent FROM range(60) r(i), range(2) s(j) "
        "WHERE i % (j + 2) = 0"
    )


def _hierarchies(folder: Path) -> None:
    tree = "\n".join(f"{i};{'low' if i < 10 else 'high'};*" for i in range(60))
    crowd = "\n".join(f"{value!r};*".replace("'", "") for value in ("flu", "HIV", "cold"))
    for name, text in {
        **{"tree.csv": tree, "tree[1].csv": tree, "half.csv": "0;low;*\n1;low;*\n", "torn.csv": "0;a;x\n1;a;y\n"},
        **{"empty.csv": "", "states.txt": "w0\nw1\nw2\n", "ill.csv": crowd, "bom.csv": "\ufeff0;*\n1;*\n"},
        **{
            "quote.csv": '"0;*\n',
            "wide.csv": "0;a;b;*\n1;*\n",
            "nul.csv": "0;\0;*\n",
            "words.toml": 'sick = ["seen"]\n',
        },
    }.items():
        (folder / name).write_text(text)
