"""Hostile databases and jobs from a seed: the same seed makes the same case, whatever ran before it.

A case is a folder with a source (DuckDB, CSV or Parquet), hierarchy files, a job and commands to run on them. What
must never leave the source holds the word `CANARY`. To have a new key of the job tried, add it to `TABLE_KEYS`,
`SERIES_KEYS`, `EVENTS_KEYS` or `OPTIONS`: a key that the program does not know yet is refused, which is expected.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import tomlkit

CANARY = "CANARY"
KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0"


class Random(random.Random):
    """A generator of one case."""

    wild = False
    """Whether anything goes; else most of what is asked fits together, so that jobs run."""

    def often(self, wildly: float, tamely: float) -> bool:
        """True in this share of cases."""
        return self.random() < (wildly if self.wild else tamely)


Make = Callable[[Random], Any]

NAMES = (
    *("age", "sex", "zip code", "sel;ect", 'qu"ote', "apo'strophe", "select", "naïve 患者", "a.b", "%s", "{x}", "[1]"),
    *("*", "-v", "new\nline", "tab\t", "__snapshot", "x" * 63, "ROWID", "Ünï", "$1", ":p", "null", "k=v", "🙂", "_"),
)
FILES = ("s", "a[1]", "p?", "*", "it's", "x;y", "naïve 患者", "-rf", "k=v", "s3:x", "%20", "a b", "new\nline", "{a,b}")
TEXTS = (
    "",
    " ",
    "a",
    "A",
    "ä",
    "*",
    "NULL",
    "0",
    "007",
    "'",
    '"',
    ";",
    "a,b",
    "\\",
    "\n",
    "患者",
    "1e5",
    "x" * 300,
    "nan",
)

TYPES: dict[str, str] = {
    "INTEGER": "CAST(h(i, {n}) % {d} AS INTEGER)",
    "BIGINT": "CAST(h(i, {n}) % {d} AS BIGINT) * 3000000000",
    "HUGEINT": "CAST(h(i, {n}) % {d} AS HUGEINT) * 300000000000000000000",
    "UTINYINT": "CAST(h(i, {n}) % {d} AS UTINYINT)",
    "DOUBLE": "CASE h(i, {n}) % {d} WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN 'inf'::DOUBLE ELSE h(i, {n}) % {d} / 7e0 END",
    "FLOAT": "CAST(h(i, {n}) % {d} / 3e0 AS FLOAT)",
    "DECIMAL": "CAST(h(i, {n}) % {d} / 8e0 AS DECIMAL(18, 3))",
    "VARCHAR": "({t})[1 + h(i, {n}) % {d}]",
    "DATE": "DATE '2000-01-01' + CAST(h(i, {n}) % {d} * 37 AS INTEGER)",
    "far DATE": "[DATE 'infinity', '-infinity', '0001-01-01', '5874897-12-31', '2020-02-29', '290000-01-01 (BC)'][1 + h(i, {n}) % 6]",
    "TIMESTAMP": "TIMESTAMP '2000-01-01' + to_hours(CAST(h(i, {n}) % {d} * 31 AS BIGINT))",
    "far TIMESTAMP": "[TIMESTAMP 'infinity', '-infinity', '0001-01-01', '9999-12-31', '2020-02-29', '290000-01-01'][1 + h(i, {n}) % 6]",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2000-01-01 00:00:00+00' + to_hours(CAST(h(i, {n}) % {d} * 31 AS BIGINT))",
    "TIME": "TIME '00:00:00' + to_minutes(CAST(h(i, {n}) % {d} AS BIGINT))",
    "TIMETZ": "CAST(TIME '00:00:00' + to_minutes(CAST(h(i, {n}) % {d} AS BIGINT)) AS TIMETZ)",
    "BOOLEAN": "h(i, {n}) % 2 = 0",
    "UUID": "CAST(md5(CAST(h(i, {n}) % {d} AS VARCHAR)) AS UUID)",
    "ENUM": "CAST(['lo', 'mid', 'hi'][1 + h(i, {n}) % 3] AS ENUM('lo', 'mid', 'hi', 'never'))",
    "BLOB": "CAST(chr(97 + CAST(h(i, {n}) % 9 AS INTEGER)) AS BLOB)",
    "INTERVAL": "to_days(CAST(h(i, {n}) % {d} AS INTEGER))",
    "LIST": "[h(i, {n}) % {d}, 1]",
    "STRUCT": "{{'a': h(i, {n}) % {d}}}",
    "BIT": "CAST('10' || CAST(h(i, {n}) % 2 AS VARCHAR) AS BIT)",
}

UNFIT = ("BLOB", "INTERVAL", "LIST", "STRUCT", "BIT")
"""Types that cannot be quasi-identifying."""

RULES: dict[str, Make] = {
    "suppress": lambda r: {"suppress": True},
    "bands": lambda r: {"bands": r.choice([[2], [5, 10], [1, 2, 4], [0], [3, 2], [10**30], [0.1, 0.2]])},
    "edges": lambda r: {"edges": r.choice([[[3, 6]], [[2, 4, 8], [4]], [[]], [[5, 1]]]), "tails": r.random() < 0.5},
    "mask": lambda r: {"mask": r.choice([[1], [1, 2, 3], [0], [9]])},
    "keep_first": lambda r: {"keep_first": r.choice([[2, 1], [1], [3]])},
    "dates": lambda r: {"dates": r.choice([["month", "year"], ["year", "decade"], ["week"], ["day"]])},
    "file": lambda r: r.choice(["tree.csv", "half.csv", "torn.csv", "empty.csv", "tree[1].csv"]),
    "shipped": lambda r: r.choice(["adult/age", "adult/sex", "mimic3/gender", "icd9/diagnoses"]),
    "none": lambda r: None,
}

CRITERIA: dict[str, dict[str, Any]] = {
    "l_diversity": {"column": "illness", "l": 2},
    "t_closeness": {"column": "illness", "t": 0.4},
    "m_concealing": {"m": 0.5, "known": {"illness": 0.1}},
}
TABLE_KEYS: dict[tuple[str, ...], Make] = {
    ("where",): lambda r: r.choice(["id IS NOT NULL", "1 = 1", "id = ", "1/0 > 0", "EXISTS (SELECT 1)", "FALSE"]),
    ("rows",): lambda r: r.choice(["many", "one"]),
    ("rows_are_persons",): lambda r: r.random() < 0.5,
    ("view",): lambda r: r.choice(["computed", "snapshot"]),
    ("frozen",): lambda r: r.random() < 0.5,
    ("privacy", "suppression"): lambda r: r.choice(["drop", "blank"]),
    ("privacy", "suppression_limit"): lambda r: r.choice([0.0, 0.05, 0.3, 0.9]),
    ("search", "method"): lambda r: r.choice(
        ["frontier", "best-first", "ola", "inverse-ola", "datafly", "igreedy", "mondrian", "epsilon-safe"]
    ),
    ("search", "loss"): lambda r: r.choice(["loss", "prec", "dm_star", "entropy"]),
    ("search", "max_loss"): lambda r: r.choice([0.2, 0.5, 1.0]),
    ("search", "choose"): lambda r: "by-k",
    ("privacy", "choose"): lambda r: "by-k",
    ("search", "checks_limit"): lambda r: r.choice([1, 5]),
    ("search", "weights"): lambda r: {r.choice(NAMES): 2.0},
    ("search", "epsilon_safe"): lambda r: {
        **{"beta": 0.5, "epsilon": 1.5, "utility": r.choice(["score", "draw"])},
        **r.choice([{"population": 1000}, {"delta": 1e-3}, {}]),
    },
}
SERIES_KEYS: dict[tuple[str, ...], Make] = {
    ("shape",): lambda r: r.choice(["wide", "long"]),
    ("variables",): lambda r: {"HR": {"items": ["1"], "low": 20, "high": 300}, "x y": {"items": ["2"]}},
    ("resample",): lambda r: r.choice(["mean", "point"]),
    ("step_hours",): lambda r: r.choice([1, 0.5, 24]),
    ("durations",): lambda r: {"k": r.choice([2, 5, 50]), "method": r.choice(["optimal", "source"])},
    ("features",): lambda r: r.choice([["mean"], ["mean", "min", "max"], {"spread": "max(value) - min(value)"}, []]),
    ("privacy", "nulls"): lambda r: r.choice(["null-aware", "strict", "source"]),
    ("privacy", "targets"): lambda r: r.choice(["reachable", "source"]),
    ("perturb",): lambda r: {"method": r.choice(["projection", "source", "shared"])},
    ("round",): lambda r: r.choice([0.1, {"HR": 1}]),
    ("drop",): lambda r: r.choice([["1"], [{"x": 1}]]),
    ("link",): lambda r: r.choice(["one", ["one"], {}]),
}
EVENTS_KEYS: dict[tuple[str, ...], Make] = {
    ("time",): lambda r: "at",
    ("order",): lambda r: "seq",
    ("gap_hours",): lambda r: r.choice(["auto", "none", 48]),
    ("end",): lambda r: r.choice(["state", "duration"]),
    ("clusters",): lambda r: {"share": 0.3, "hashes": 10},
    ("factors",): lambda r: r.choice([["weekday"], ["hour", "month"]]),
    ("privacy",): lambda r: r.choice([{"method": "none"}, {"method": "ratio", "epsilon": 0.65}, LAPLACE]),
    ("generate",): lambda r: {"objects": r.choice([1, 20]), "seed": 3},
    ("attacks",): lambda r: False,
}
LAPLACE = {
    **{"method": "laplace", "epsilon": 1.0, "states": "states.txt", "other": "OTHER", "length_bins": [1, 2, 4]},
    **{"time_range": ["2020-01-01", "2022-01-01"], "gap_bins_hours": [1, 24], "events_max": 4},
}
OPTIONS: dict[str, Make] = {
    "--only": lambda r: r.choice(["one", "two", "nobody"]),
    "--replace": lambda r: None,
    "--without-ledger": lambda r: None,
    "--json": lambda r: r.choice(["result.json", "-"]),
    "--public": lambda r: r.choice(["public.json", "public.html"]),
    "--certificate": lambda r: "proof.json",
    "--report": lambda r: "report.html",
    "--ledger": lambda r: "ledger.duckdb",
    "--key-file": lambda r: "key.txt",
    "--plan": lambda r: None,
    "-v": lambda r: None,
    "-q": lambda r: None,
    "--memory-limit": lambda r: r.choice(["1GB", "-5", "lots"]),
}
JUNK: tuple[Any, ...] = (
    [],
    {},
    -1,
    0,
    10**18,
    "",
    "x",
    1e308,
    float("inf"),
    float("nan"),
    True,
    [[]],
    {"x": 1},
    ["p"],
    "\u0007",
)


@dataclass
class Case:
    """What is run: `commands` are lists of arguments, after the program's name."""

    seed: int
    folder: Path
    source: Path
    job: dict[str, Any]
    commands: list[list[str]] = field(default_factory=list)


def case(seed: int, folder: Path, *, sound: bool = False) -> Case:
    """Make a case's files.

    Parameters
    ----------
    sound
        Whether the job should run: for kills and full disks.
    """
    r = Random(seed)
    r.wild = not sound and r.random() < 0.4
    source = _source(r, folder, sound)
    job = _job(r, source, folder, sound)
    (folder / "job.toml").write_text(tomlkit.dumps(job), encoding="utf-8", errors="replace")
    (folder / "key.txt").write_text(KEY)
    made = Case(seed, folder, source, job)
    made.commands = [["anonymize", str(source), "--job", "job.toml"]] if sound else _commands(r, made)
    return made


def is_searched(made: Case) -> bool:
    """Whether its releases are tables with a lattice, which a ledger and a certificate are for."""
    tables = made.job.get("tables", {})
    return bool(tables) and all(t.get("search", {}).get("method") != "mondrian" for t in tables.values())


def _names(r: Random, number: int, sound: bool) -> list[str]:
    chosen = r.sample(NAMES, number)
    return [name if not sound else f"q{j}" for j, name in enumerate(chosen)]


def _source(r: Random, folder: Path, sound: bool) -> Path:
    """Tables `people`, `visits`, `charted` and `moves` in a database, or `people` alone in a file."""
    rows = 200 if sound else r.choice([0, 2, 30, 60, 60, 120])
    kind = "duckdb" if sound else r.choice(["duckdb"] * 4 + ["csv", "parquet", "csv.gz"])
    source = folder / f"{'s' if sound else r.choice(FILES)}.{kind}"
    plain = folder / "being-made"
    with duckdb.connect(":memory:" if kind != "duckdb" else str(plain)) as c:
        c.execute("SET TimeZone = 'UTC'")
        c.execute("CREATE TEMP MACRO h(a, b) AS CAST(hash(a, b) % 1000003 AS BIGINT)")
        types = ["INTEGER", "VARCHAR", "DATE", "INTEGER"] if sound else r.choices(list(TYPES), k=r.randint(1, 4))
        types = types if r.wild else [t for t in types if t not in UNFIT] or ["INTEGER"]
        names = _names(r, len(types), sound)
        kept = ", ".join(_column(r, name, kind_, sound) for name, kind_ in zip(names, types, strict=True))
        key = r.choice([f"'{CANARY}p' || i", "i"]) if not sound else "i"
        c.execute(
            f"CREATE TABLE people AS SELECT {key} AS id, {kept}, '{CANARY} name ' || i AS patient, "
            f"'seen by {CANARY}' || i AS note, ['flu', 'HIV', 'cold'][1 + h(i, 99) % 3] AS illness FROM range({rows}) r(i)"
        )
        if kind == "duckdb":
            _children(r, c, key, rows)
        else:
            form = (
                "(FORMAT PARQUET)"
                if kind == "parquet"
                else "(HEADER, FORMAT CSV" + (", COMPRESSION GZIP)" if kind == "csv.gz" else ")")
            )
            c.execute(f"COPY people TO '{plain}' {form}")
    plain.rename(source)
    return source


def _column(r: Random, name: str, kind: str, sound: bool) -> str:
    texts = (
        "[" + ", ".join("'" + t.replace("'", "''") + "'" for t in (TEXTS if not sound else "abcdefghijklmnopqrs")) + "]"
    )
    value = TYPES[kind].format(n=r.randrange(1000), d=r.choice([2, 5, 19]), t=texts)
    if not sound and r.random() < 0.3:
        value = f"CASE WHEN i % 7 = 0 THEN NULL ELSE {value} END"
    return f'{value} AS "{name.replace(chr(34), chr(34) * 2)}"'


def _children(r: Random, c: duckdb.DuckDBPyConnection, key: str, rows: int) -> None:
    c.execute(
        f"CREATE TABLE visits AS SELECT {key} AS id, 'c' || j % 4 AS code, j AS seq, j % 3 AS ward FROM range({rows}) r(i), range(3) s(j)"
    )
    c.execute(
        f"CREATE TABLE charted AS SELECT {key} AS id, CAST(j * 60 AS INTEGER) AS minute, CAST(1 + h(i, j) % 2 AS VARCHAR) AS item, "
        f"80 + h(i + 31 * j, 5) % 40 / 4e0 AS value FROM range({rows}) r(i), range({r.choice([1, 3, 6])}) s(j)"
    )
    c.execute(
        f"CREATE TABLE moves AS SELECT {key} AS id, TIMESTAMP '2020-01-01' + to_hours(CAST(i + j * 20 AS BIGINT)) AS at, j AS seq, "
        f"'w' || h(i, j) % 3 AS state, '{CANARY}' || i AS nurse FROM range({rows}) r(i), range(3) s(j)"
    )


def _job(r: Random, source: Path, folder: Path, sound: bool) -> dict[str, Any]:
    _hierarchies(folder)
    names = _described(source) if source.suffix == ".duckdb" else _described_file(source, folder)
    job: dict[str, Any] = {"release": _release(r, source, sound), "tables": {}}
    kinds = (
        ["table"] if source.suffix != ".duckdb" else ["table"] * 4 + ["series", "events", "linked", "stack", "mondrian"]
    )
    for name in ["one"] if r.random() < 0.7 or sound else ["one", r.choice(["two", *FILES])]:
        kind = r.choice(kinds if not sound else ["table", "table", "series", "events", "mondrian"])
        _PARTS[kind](r, job, name, names, source, sound)
    if not job["tables"]:
        del job["tables"]
    if r.often(0.4, 0):
        _spoil(r, job)
    return job


def _release(r: Random, source: Path, sound: bool) -> dict[str, Any]:
    into = r.choice(["out", "out.duckdb", *(f for f in FILES if not sound), ""])
    kind = r.choice(["table", "table", "view", "parquet"])
    if not r.wild and (source.suffix != ".duckdb" or kind == "parquet"):
        into = into or "out"
    if kind != "parquet" and not r.wild and source.suffix == ".duckdb" and r.random() < 0.5:
        into = ""
    if sound:
        return r.choice([{"into": "out.duckdb"}, {"into": "out", "as": "parquet"}, {"as": "view"}, {}])
    return {"as": kind, **({"into": into} if into else {}), **({"schema": r.choice(NAMES)} if r.random() < 0.2 else {})}


def _table(r: Random, job: dict[str, Any], name: str, names: list[str], source: Path, sound: bool) -> None:
    columns: dict[str, Any] = {"patient": {"role": "identifying"}, "note": {"role": "free-text"}}
    for n in names:
        role = r.choice(["quasi-identifying"] * 3 + ["sensitive", "insensitive"])
        rule = RULES[r.choice(list(RULES)) if r.often(0.6, 0.1) else "suppress"](r)
        columns[n] = {"role": role, **({"hierarchy": rule} if rule is not None and role[0] == "q" else {})}
        if sound:
            columns[n] = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    if not r.wild and names:
        columns[names[0]] = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    columns["illness"] = {"role": "sensitive"}
    table = {
        "source": _table_name(source),
        "person": "id",
        "columns": columns,
        "privacy": {"k": r.choice([2, 2, 3, 10])},
    }
    if not sound:
        for path, make in TABLE_KEYS.items():
            if r.often(0.1, 0.015):
                _put(table, path, make(r))
        if r.random() < 0.25:
            asked, content = r.choice(list(CRITERIA.items()))
            table["privacy"][asked if r.often(0.8, 1) else "l_diversity"] = content
        if r.random() < 0.1:
            columns["id"] = {"role": "identifying", "pseudonym": True}
        if r.often(0.1, 0):
            del table["person"]
    job["tables"][name] = table


def _mondrian(r: Random, job: dict[str, Any], name: str, names: list[str], source: Path, sound: bool) -> None:
    _table(r, job, name, names, source, sound)
    table = job["tables"][name]
    for n in names:
        median = {
            "median": r.choice(["range", "mean"]),
            **({"grid": r.choice([1, 0.5, "month"])} if r.random() < 0.5 else {}),
        }
        table["columns"][n] = {"role": "quasi-identifying", "hierarchy": median}
    if sound:
        table["columns"] = {n: c for n, c in table["columns"].items() if n in ("q0", "q2", "q3", "patient")}
        for n in ("q0", "q2", "q3"):
            table["columns"][n] = {"role": "quasi-identifying", "hierarchy": {"median": "range"}}
    table["search"] = {"method": "mondrian"}


def _stack(r: Random, job: dict[str, Any], name: str, names: list[str], source: Path, sound: bool) -> None:
    _table(r, job, name, names, source, sound)
    job["tables"][name]["stack"] = {
        "code": {
            **{"from": "visits", "on": "id", "value": "code", "order": "seq", "first": r.choice([1, 2])},
            **r.choice([{"role": "quasi-identifying", "hierarchy": {"suppress": True}}, {"role": "sensitive"}]),
        }
    }


def _linked(r: Random, job: dict[str, Any], name: str, names: list[str], source: Path, sound: bool) -> None:
    _table(r, job, name, names, source, sound)
    job["tables"][name]["columns"]["id"] = {"role": "identifying", "pseudonym": True}
    job["tables"]["linked"] = {
        **{"source": {"query": "SELECT id, min(ward) AS ward FROM visits GROUP BY id"}, "person": "id", "link": name},
        "columns": {
            "id": {"role": "identifying", "pseudonym": True},
            "ward": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        },
        "privacy": {"k": 2},
    }


def _series(r: Random, job: dict[str, Any], name: str, names: list[str], source: Path, sound: bool) -> None:
    part: dict[str, Any] = {
        **{"source": "charted", "person": "id", "time": "minute", "time_unit": "minutes", "variable": "item"},
        **{"value": "value", "durations": {"k": 3}, "privacy": {"k": 2}},
    }
    for path, make in SERIES_KEYS.items() if not sound else ():
        if r.often(0.2, 0.07):
            _put(part, path, make(r))
    job.setdefault("series", {})[name] = part


def _events(r: Random, job: dict[str, Any], name: str, names: list[str], source: Path, sound: bool) -> None:
    part: dict[str, Any] = {
        "source": "moves",
        "object": "id",
        "time": "at",
        "state": "state",
        "privacy": {"method": "none"},
    }
    for path, make in EVENTS_KEYS.items() if not sound else ():
        if r.random() < 0.25:
            _put(part, path, make(r))
    job.setdefault("events", {})[name] = part


_PARTS = {
    "table": _table,
    "mondrian": _mondrian,
    "stack": _stack,
    "linked": _linked,
    "series": _series,
    "events": _events,
}


def _put(mapping: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        mapping = mapping.setdefault(step, {})
    mapping[path[-1]] = value


def _spoil(r: Random, job: Any) -> None:
    """Put something senseless somewhere, or take something away."""
    at = job
    while isinstance(at, dict) and at and r.random() < 0.8 and isinstance((below := at[r.choice(list(at))]), dict):
        at = below
    if isinstance(at, dict) and at:
        key = r.choice(list(at))
        if r.random() < 0.2:
            del at[key]
        else:
            at[key if r.random() < 0.8 else r.choice(NAMES)] = r.choice(JUNK)


def _hierarchies(folder: Path) -> None:
    tree = "\n".join(f"{i};{'low' if i < 10 else 'high'};*" for i in range(60))
    for name, text in {
        **{"tree.csv": tree, "tree[1].csv": tree, "half.csv": "0;low;*\n1;low;*\n", "torn.csv": "0;a;x\n1;a;y\n"},
        **{"empty.csv": "", "states.txt": "w0\nw1\nw2\n"},
    }.items():
        (folder / name).write_text(text)


def _table_name(source: Path) -> str:
    name = "people" if source.suffix == ".duckdb" else source.name.split(".")[0]
    return '"' + name.replace('"', '""') + '"'


def _described(source: Path) -> list[str]:
    plain = source.with_name("being-made")
    source.rename(plain)
    with duckdb.connect(str(plain), read_only=True) as c:
        names = [row[0] for row in c.execute("DESCRIBE people").fetchall()]
    plain.rename(source)
    return [n for n in names if n not in ("id", "patient", "note", "illness")]


def _described_file(source: Path, folder: Path) -> list[str]:
    plain = folder / ("being-made" + "".join(source.suffixes[-2:] if source.suffix == ".gz" else [source.suffix]))
    source.rename(plain)
    with duckdb.connect() as c:
        names = [row[0] for row in c.execute(f"DESCRIBE FROM '{plain}'").fetchall()]
    plain.rename(source)
    return [n for n in names if n not in ("id", "patient", "note", "illness")]


def _commands(r: Random, made: Case) -> list[list[str]]:
    source, found = str(made.source), ["--job", "job.toml"]
    given: list[str] = []
    for option, make in OPTIONS.items():
        if r.often(0.1, 0.05) and not (option == "--without-ledger" and not r.wild):
            value = make(r)
            given += [option] if value is None else [option, str(value)]
    table = _table_name(made.source)
    others = [
        ["verify", source, *found, *(["--certificate", "proof.json"] if r.random() < 0.3 else [])],
        ["assess", source, *found, *(["--release"] if r.random() < 0.5 else [])],
        ["explore", source, *r.choice([["--table", table], found])],
        ["init", source, table],
        ["tradeoff", source, *found, "--k", "2,3", "--limit", "0,0.1"],
        ["evaluate", source, *found, "--label", "illness"],
        ["report", "result.json", "-o", "again.html"],
        ["hierarchy", "check", r.choice(["tree.csv", "torn.csv", "adult/age", "nowhere"])],
        ["hierarchy", "show", r.choice(["tree.csv", "half.csv", "bands=5,10"])],
        [
            "hierarchy",
            "build",
            r.choice(["bands=5,10", "mask=1", "edges=1"]),
            "-o",
            "built.csv",
            "--db",
            source,
            "--table",
            table,
            "--column",
            "illness",
        ],
        ["anonymize", source, *found, "--replace"],
    ]
    commands = [["anonymize", source, *found, *given], ["verify", source, *found]]
    return [*commands, *r.sample(others, r.randint(0, 2))]
