"""Hostile databases and jobs from a seed: the same seed makes the same case, whatever ran before it.

A case is a folder with a source (DuckDB, CSV or Parquet), hierarchy files, a job and commands to run on them. What
must never leave the source holds the word `CANARY`. To have a new key of the job tried, add it to `TABLE_KEYS`,
`SERIES_KEYS`, `EVENTS_KEYS`, `CRITERIA`, `SEARCHES` or `DEMANDS`, and an option or a command to `commands.py`: a key
that the program does not know yet is refused, which is expected. Names, values and types are those of `hostile.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomlkit

from sqldeid.tables.model.loss import LOSSES
from tests.deep.commands import Case, story
from tests.deep.demands import DEMANDS, STORED
from tests.deep.hostile import CUT, FILES, JUNK, KEY, NAMES, Make, Random
from tests.deep.sources import Made, source

RULES: dict[str, Make] = {
    "suppress": lambda r: {"suppress": True},
    "bands": lambda r: {"bands": r.choice([[2], [5, 10], [1, 2, 4], [0], [3, 2], [10**30], [0.1, 0.2]])},
    "edges": lambda r: {"edges": r.choice([[[3, 6]], [[2, 4, 8], [4]], [[]], [[5, 1]]]), "tails": r.random() < 0.5},
    "mask": lambda r: {"mask": r.choice([[1], [1, 2, 3], [0], [9]])},
    "keep_first": lambda r: {"keep_first": r.choice([[2, 1], [1], [3]])},
    "dates": lambda r: {"dates": r.choice([["month", "year"], ["year", "decade"], ["quarter"], ["day"], ["week"]])},
    "file": lambda r: r.choice(
        ["tree.csv", "half.csv", "torn.csv", "empty.csv", "tree[1].csv", "bom.csv", "quote.csv", "wide.csv", "nul.csv"]
    ),
    "shipped": lambda r: r.choice(["adult/age", "adult/sex", "mimic3/gender", "icd9/diagnoses", "age/text"]),
    "none": lambda r: None,
    **STORED,
}
NUMBERS = ({"bands": [5, 10]}, {"bands": [2]}, {"edges": [[3, 6]]}, {"edges": [[2, 4, 8], [4]], "tails": True})
DATES = ({"dates": ["month", "year"]}, {"dates": ["day"]}, {"dates": ["quarter", "decade"]})
LETTERS = ({"mask": [1]}, {"mask": [1, 2, 3]}, {"keep_first": [2, 1]}, {"keep_first": [3]})
FITTING: dict[str, tuple[dict[str, Any], ...]] = {
    **dict.fromkeys(("INTEGER", "TINYINT", "UTINYINT", "DECIMAL", "DOUBLE", "BIGINT", "far BIGINT"), NUMBERS),
    **dict.fromkeys(("FLOAT", "far DOUBLE", "HUGEINT", "UBIGINT", "wide DECIMAL", "one value"), NUMBERS),
    **dict.fromkeys(("DATE", "TIMESTAMP", "far DATE", "far TIMESTAMP", "TIMESTAMPTZ", "far TIMESTAMPTZ"), DATES),
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_NS"), DATES),
    **dict.fromkeys(("VARCHAR", "many VARCHAR", "ENUM", "each its own", "only NULL"), LETTERS),
}
"""Rules that suit a type; others are suppressed."""

SOON = {"time_limit": 5}

CRITERIA: dict[str, Make] = {
    "l_diversity": lambda r: r.choice(
        [{"l": 2}, {"l": 2, "kind": "entropy"}, {"l": 2, "kind": "recursive", "c": 3}, {"l": 2, "scope": "joint"}]
    ),
    "t_closeness": lambda r: {
        "t": r.choice([0.4, 0.8, 0, 1]),
        **r.choice([{}, {"distance": "ordered"}, {"distance": "ordered", "order": ["flu", "cold", "HIV"]}]),
        **r.choice([{}, {}, {"distance": "hierarchical", "hierarchy": r.choice(["h.csv", "none.csv", "adult/age"])}]),
    },
    "delta_disclosure": lambda r: {"delta": r.choice([0.5, 2, 10, 1e-6, 0.1234567890123] if r.wild else [0.5, 2, 10])},
    "beta_likeness": lambda r: {"beta": r.choice([1, 4, 1000, 0.01]), "kind": r.choice(["basic", "enhanced"])},
    "m_concealing": lambda r: {"m": r.choice([0.5, 1]), "inclusion": r.choice([1.0, 0.9])},
}
SEARCHES: tuple[Make, ...] = (
    *(lambda r: {"method": r.choice(["frontier", "best-first", "flash", "ola", "datafly", "igreedy"])},) * 3,
    lambda r: {"method": "inverse-ola", "max_loss": r.choice([0.2, 0.7, 1.0])},
    lambda r: {"loss": r.choice(LOSSES)},
    lambda r: {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.5, "epsilon": 1.5, "population": 1000}},
    lambda r: {"checks_limit": r.choice([1, 5])},
    lambda r: {"time_limit": r.choice([1e-9, 60])},
    *(lambda r: {"method": "local", **r.choice([{}, {"layers": r.choice([1, 2, 5])}, {"loss": "prec"}, SOON])},) * 2,
)
TABLE_KEYS: dict[tuple[str, ...], Make] = {
    ("parent",): lambda r: r.choice(["one", "two", "", 1]),
    ("items",): lambda r: r.choice(["code", "age", "", []]),
    ("known",): lambda r: r.choice([0, 1, 2, 5, "2", 1.5]),
    ("never_with",): lambda r: r.choice([["one"], ["two", "one"], "one", [], [{}]]),
    ("other_persons",): lambda r: r.choice([["one"], ["two"], "one", [], [{}]]),
    ("where",): lambda r: r.choice(
        [
            "id IS NOT NULL",
            "1 = 1",
            "id = ",
            "1/0 > 0",
            "EXISTS (SELECT 1)",
            "FALSE",
            "illness <> 'HIV'",
            "random() < 2",
        ]
    ),
    ("rows",): lambda r: r.choice(["many", "one"]),
    ("rows_are_persons",): lambda r: r.random() < 0.5,
    ("text",): lambda r: True,
    ("view",): lambda r: r.choice(["computed", "snapshot"]),
    ("frozen",): lambda r: r.random() < 0.5,
    ("attacks",): lambda r: r.random() < 0.5,
    ("secrets",): lambda r: r.choice([[], [r.choice(NAMES)], NAMES[:2]]),
    ("link",): lambda r: r.choice(["one", "linked", ""]),
    ("privacy", "suppression"): lambda r: r.choice(["drop", "blank"]),
    ("privacy", "suppression_limit"): lambda r: r.choice([0.0, 0.05, 0.3, 0.9, 1]),
    ("privacy", "undecided"): lambda r: r.choice([["(5)-map"], [], "all"]),
    ("privacy", "criteria_limit"): lambda r: r.choice([0.0, 0.9]),
    ("search", "method"): lambda r: r.choice(
        [
            "frontier",
            "best-first",
            "flash",
            "ola",
            "inverse-ola",
            "datafly",
            "igreedy",
            "mondrian",
            "epsilon-safe",
            "local",
        ]
    ),
    ("search", "layers"): lambda r: r.choice([1, 3, 0]),
    ("recoding",): lambda r: True,
    ("roll_up",): lambda r: {r.choice(NAMES): r.choice([1, "year", 9])},
    ("search", "loss"): lambda r: r.choice(LOSSES),
    ("search", "blunt"): lambda r: r.choice([True, False, 0.2, 0.9, 1.0]),
    ("search", "max_loss"): lambda r: r.choice([0.2, 0.5, 1.0]),
    ("search", "choose"): lambda r: "by-k",
    ("privacy", "choose"): lambda r: "by-k",
    ("search", "checks_limit"): lambda r: r.choice([1, 5]),
    ("search", "heuristic"): lambda r: r.choice(["range", "diversity"]),
    ("search", "weights"): lambda r: {r.choice(NAMES): 2.0},
    ("search", "epsilon_safe"): lambda r: {
        **{"beta": 0.5, "epsilon": 1.5, "utility": r.choice(["score", "draw"])},
        **r.choice([{"population": 1000}, {"delta": 1e-3}, {}]),
    },
}
SERIES_KEYS: dict[tuple[str, ...], Make] = {
    ("shape",): lambda r: r.choice(["wide", "long"]),
    ("variables",): lambda r: {
        "HR": {"items": ["1"], "low": 20, "high": 300, **r.choice([{}, {"round": 0.5}, {"resolution": 0.1}])},
        r.choice(["x y", *NAMES]): {
            "items": ["2"],
            **r.choice([{}, {"factor": 2, "unit": "<b>"}, {"repair": "percent"}]),
        },
    },
    ("resample",): lambda r: r.choice(["mean", "point"]),
    ("step_hours",): lambda r: r.choice([1, 0.5, 24, 1e-3]),
    ("min_steps",): lambda r: r.choice([1, 2, 99]),
    ("where",): lambda r: r.choice(["value > 0", "item = '1'", "FALSE", "nonsense"]),
    ("durations",): lambda r: {"k": r.choice([2, 5, 50]), "method": r.choice(["optimal", "source"])},
    ("features",): lambda r: r.choice(
        [["mean", "variance", "min", "max"], {"1": [], "spread": "max(value) - min(value)"}, ["mean"], {"2": ["mean"]}]
    ),
    ("cohort",): lambda r: {
        "source": "people",
        "person": "id",
        "where": r.choice(["illness <> 'flu'", "TRUE", "1/0=1"]),
    },
    ("privacy", "nulls"): lambda r: r.choice(["null-aware", "null-strict", "null-pattern", "strict", "source"]),
    ("privacy", "targets"): lambda r: r.choice(["reachable", "source"]),
    ("privacy", "heuristic"): lambda r: r.choice(["range", "diversity"]),
    ("perturb",): lambda r: r.choice(
        [
            *({"method": m} for m in ("projection", "source", "shared")),
            *({"noise": 0.0}, {"noise": 1.0}, {"method": "genetic", "most_iterations": 5, "population": 6}),
        ]
    ),
    ("round",): lambda r: r.choice([0.1, 5, 1e9, {"HR": 1}, {"1": 0.5}, {"2": 1e-6}]),
    ("drop",): lambda r: r.choice([["1"], ["HR"], [{"x": 1}]]),
    ("labels",): lambda r: {
        "source": {"query": "SELECT id, illness = 'HIV' AS died FROM people"},
        **{"person": "id", "column": "died"},
    },
    ("disagreement",): lambda r: r.choice([{}, {"distance": "dtw", "band": 2, "persons": 5}]),
    ("link",): lambda r: r.choice(["one", ["one"], {}]),
}
EVENTS_KEYS: dict[tuple[str, ...], Make] = {
    ("time",): lambda r: "at",
    ("order",): lambda r: r.choice(["seq", ["seq", "state"]]),
    ("state",): lambda r: r.choice(["state", ["state", "seq"]]),
    ("where",): lambda r: r.choice(["seq < 2", "FALSE", "state = "]),
    ("gap_hours",): lambda r: r.choice(["auto", "none", 48]),
    ("end",): lambda r: r.choice(["state", "duration"]),
    ("clusters",): lambda r: {"share": r.choice([0.3, 1]), "hashes": 10},
    ("factors",): lambda r: r.choice([["weekday"], ["hour", "month"], ["seq % 2"], []]),
    ("privacy",): lambda r: r.choice([{"method": "none"}, {"method": "ratio", "epsilon": 0.65}, LAPLACE, GROUPED]),
    ("generate",): lambda r: {"objects": r.choice([1, 20]), "seed": 3},
    ("attacks",): lambda r: False,
}
LAPLACE = {
    **{"method": "laplace", "epsilon": 1.0, "states": "states.txt", "other": "OTHER", "length_bins": [1, 2, 4]},
    **{"time_range": ["2020-01-01", "2022-01-01"], "gap_bins_hours": [1, 24], "events_max": 4},
}
GROUPED = LAPLACE | {"groups": {"seq": ["0", "1", "é"]}}
ABOUT = {"title": "<script>alert(1)</script> {{ x }}", "contact": "a@b.c", "date": "2026-01-31", "text": "a\n\n<b>&"}
Part = dict[str, Any]


def case(seed: int, folder: Path, *, sound: bool = False) -> Case:
    """Make a case's files.

    Parameters
    ----------
    sound
        Whether the job should run: for kills and full disks.
    """
    r = Random(seed)
    r.wild = 0.0 if sound else r.choice([0.0, 0.0, 0.0, 0.0, 0.15, 0.15, 0.15, 1.0])
    made = source(r, folder, sound)
    job = _job(r, made, sound)
    (folder / "job.toml").write_text(tomlkit.dumps(job), encoding="utf-8", errors="replace")
    (folder / "key.txt").write_text(KEY)
    (folder / "lax.toml").write_text('organisation = "H"\n[tables]\n[series]\n[events]\n')
    (folder / "rules.toml").write_text('organisation = "H"\n[tables]\nleast_k = 2\nforbidden = ["blank"]\n[series]\n')
    found = Case(seed, folder, made, job)
    found.steps = [["anonymize", str(made.path), "--job", "job.toml"]] if sound else story(r, found)
    if any(isinstance(t, dict) and "parent" in t for t in _parts(job, "tables")) and (r.odd() or r.random() < 0.9):
        for step in found.steps:
            if isinstance(step, list) and step[0] in ("anonymize", "verify") and "--key-file" not in step:
                step += ["--key-file", "key.txt"]
    return found


def _parts(job: Part, wing: str) -> list[Any]:
    """The parts of a wing; a spoilt job may have anything there."""
    found = job.get(wing)
    return list(found.values()) if isinstance(found, dict) else []


def is_searched(made: Case) -> bool:
    """Whether its releases are tables with a lattice, which a ledger and a certificate are for."""
    tables = made.job.get("tables", {})
    return bool(tables) and not any(t.get("search", {}).get("method") in ("mondrian", "local") for t in tables.values())


def _job(r: Random, made: Made, sound: bool) -> Part:
    job: Part = {"release": _release(r, made, sound), "tables": {}}
    kinds = list(_PARTS) if made.database else ["table", "table", "mondrian"]
    kinds += ["table"] * 4 * made.database
    for name in ["one"] if r.random() < 0.75 or sound else ["one", r.choice(["two", *FILES, *NAMES])]:
        kind = r.choice(kinds if not sound else ["table", "local", "series", "events", "mondrian"])
        _PARTS[kind](r, job, name, made, sound)
    if not job["tables"]:
        del job["tables"]
    if r.often(0.3, 0.1) and not sound:
        job["about"] = ABOUT
    if r.often(0.5, 0):
        _spoil(r, job)
    return job


def _release(r: Random, made: Made, sound: bool) -> Part:
    if sound:
        return r.choice([{"into": "out.duckdb"}, {"into": "out", "as": "parquet"}, {"as": "view"}, {}])
    kind = r.choice(["table", "table", "view", "parquet"])
    into = r.choice(["out", "out.duckdb", *FILES, ""] if r.odd() else ["out", "out", "out.duckdb"])
    if not r.odd() and (not made.database or kind == "parquet"):
        into = into if kind == "parquet" and not into.endswith(".duckdb") else "out"
    elif kind != "parquet" and made.database and r.random() < 0.5:
        into = ""
    schema = {"schema": r.choice(NAMES)} if r.random() < 0.15 and (kind != "parquet" or r.odd()) else {}
    return {"as": kind, **({"into": into} if into else {}), **schema}


def _table(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    columns: Part = {"patient": {"role": "identifying"}, "note": {"role": "free-text"}}
    for n, type_ in made.types.items():
        columns[n] = {"role": "quasi-identifying", "hierarchy": {"suppress": True}} if sound else _role(r, type_)
    if not any(c["role"][0] == "q" for c in columns.values()) and not r.odd():
        columns[next(iter(made.types))] = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    columns["illness"] = {"role": "sensitive"}
    table: Part = {"source": made.table, "person": "id", "columns": columns, "privacy": {"k": r.choice([2, 2, 3, 10])}}
    if not sound:
        _asked(r, table)
        for path, make in TABLE_KEYS.items():
            if r.often(0.15, 0.008):
                _put(table, path, make(r))
        if r.often(0.1, 0):
            table.pop("person", None)
    job["tables"][name] = table


def _role(r: Random, type_: str) -> Part:
    """A role, and what goes with it; with a rule that suits the type, or any."""
    role = r.choice(["quasi-identifying"] * 3 + ["sensitive", "insensitive"])
    column: Part = {"role": role}
    if role[0] == "q":
        if r.odd() or r.random() < 0.06:
            rule = RULES[r.choice(list(RULES))](r)
        else:
            rule = r.choice([*FITTING.get(type_, ()), {"suppress": True}])
        column |= {"hierarchy": rule} if rule is not None else {}
        column |= {"uncovered": r.choice(["prefix", "top"])} if r.often(0.2, 0.0) or isinstance(rule, str) else {}
    elif type_ in ("DATE", "TIMESTAMP", "far DATE", "far TIMESTAMP", "TIMESTAMPTZ") and r.random() < 0.4:
        column |= r.choice([{"shift": "person"}, {"to": "week"}, {"shift": "person", "to": "month"}])
    if type_ in CUT and r.often(0.2, 0.05):
        column["top_code"] = r.choice([3, 5.5, 0, -1, 10**18])
    return column


def _asked(r: Random, table: Part) -> None:
    """Criteria, a search, and what a table's rows are, that go together in most cases."""
    columns, privacy = table["columns"], table["privacy"]
    sensitive = [n for n, c in columns.items() if c["role"] == "sensitive" and "shift" not in c]
    for asked in r.sample(list(CRITERIA), r.choice([0, 0, 1, 1, 2])):
        content = CRITERIA[asked](r)
        if asked == "m_concealing":
            content["known"] = {r.choice(sensitive): 0.1}
        else:
            content["column"] = r.choice(sensitive)
            content.pop("scope" if len(sensitive) < 2 else "", None)
        privacy[asked] = [content] if r.random() < 0.1 and asked != "m_concealing" else content
    if r.random() < 0.25:
        privacy |= r.choice(DEMANDS)(r)
    if any(c in privacy for c in CRITERIA) and r.random() < 0.4:
        table["search"] = {"choose": "by-k"}
        privacy["criteria_limit"] = r.choice([0.0, 0.5, 0.95])
    elif r.random() < 0.3:
        table["search"] = r.choice(SEARCHES)(r)
        if not r.odd() and table["search"].get("method") in ("epsilon-safe", "inverse-ola"):
            table["privacy"] = {c: v for c, v in privacy.items() if c not in CRITERIA}
    if r.random() < 0.4:
        table["privacy"]["suppression_limit"] = r.choice([0.05, 0.3, 0.9, 1])
    if table.get("search", {}).get("method") == "local":
        _local(r, table)
    _rows(r, table)


def _local(r: Random, table: Part) -> None:
    """What goes with classes that have levels of their own, in most cases."""
    if not r.odd():
        table["privacy"].pop("m_concealing", None)
        for content in (table["privacy"].get(c) for c in CRITERIA):
            for entry in content if isinstance(content, list) else [content or {}]:
                entry.pop("scope", None)
    if r.random() < 0.5:
        table["recoding"] = True
    ruled = [n for n, c in table["columns"].items() if c["role"][0] == "q"]
    if ruled and r.random() < 0.4:
        table["roll_up"] = dict.fromkeys(r.sample(ruled, r.randint(1, min(2, len(ruled)))), 1)


def _rows(r: Random, table: Part) -> None:
    """What becomes of rows that fail, and whose rows they are."""
    columns, drawn = table["columns"], table.get("search", {}).get("method") == "epsilon-safe"
    if r.random() < 0.12 and (r.odd() or not drawn):
        table["privacy"]["suppression"] = "blank"
    if drawn and not r.odd():
        table["columns"] = {n: c for n, c in columns.items() if c["role"] not in ("sensitive", "insensitive")}
    elif r.random() < 0.1:
        columns["id"] = {"role": "identifying", "pseudonym": True}
    elif r.random() < 0.1:
        table.pop("person", None)
        table["rows_are_persons"] = True
        for column in columns.values():
            column.pop("shift", None)


def _many(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    """Several rows of a person."""
    _table(r, job, name, made, sound)
    table = job["tables"][name]
    table |= {"source": r.choice(["stays", {"query": "SELECT * FROM stays"}]), "rows": "many", "person": "id"}
    table.pop("rows_are_persons", None)
    for n, column in table["columns"].items():
        if not r.odd():
            column.pop("shift", None)
            table["columns"][n] = column if column.get("role") != "insensitive" else {"role": "sensitive"}
    table["columns"] |= {
        "ward": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        **({"ending": {"role": "sensitive"}} if r.random() < 0.5 else {}),
        "stay": {"role": "identifying"},
    }
    if not r.odd():
        table["columns"].pop("id", None)
        table["privacy"] = {c: v for c, v in table["privacy"].items() if c not in ("suppression", "m_concealing")}


def _mondrian(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    """Cuts at medians."""
    _table(r, job, name, made, sound)
    table = job["tables"][name]
    for n, type_ in made.types.items():
        if type_ not in CUT and not r.odd() and not sound:
            table["columns"][n] = {"role": r.choice(["sensitive", "insensitive", "identifying"])}
            continue
        grid = r.choice([1, 0.5, 1e-6, 10**6, "day", "week", "month"]) if r.random() < 0.4 else None
        grid = 0.5 if grid is None and type_ in ("DOUBLE", "FLOAT", "far DOUBLE") else grid
        cut = {"median": r.choice(["range", "mean"]), **({"grid": grid} if grid is not None else {})}
        table["columns"][n] = {"role": "quasi-identifying", "hierarchy": cut}
    if sound:
        table["columns"] = {n: c for n, c in table["columns"].items() if n in ("q0", "q2", "q3", "patient")}
        for n in ("q0", "q2", "q3"):
            table["columns"][n] = {"role": "quasi-identifying", "hierarchy": {"median": "range"}}
    if not r.odd():
        table["privacy"] = {
            c: v for c, v in table["privacy"].items() if c in ("k", *CRITERIA) and c not in ("m_concealing",)
        }
        table["columns"].pop("id", None)
        for entry in (table["privacy"].get(c) for c in CRITERIA):
            for e in entry if isinstance(entry, list) else [entry or {}]:
                for key in ("scope", "distance", "order"):
                    e.pop(key, None)
    table["search"] = {"method": "mondrian", **r.choice([{}, {"heuristic": r.choice(["range", "diversity"])}])}


def _locally(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    """Each class at levels of its own; for a sound job with what stands beside."""
    _table(r, job, name, made, sound)
    table = job["tables"][name]
    table["search"] = {"method": "local"}
    _local(r, table)
    if sound:
        for n, rule in (("q0", {"bands": [5, 10]}), ("q1", {"mask": [1]}), ("q2", {"dates": ["month", "year"]})):
            table["columns"][n]["hierarchy"] = rule


def _stack(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    """Rows of a child table as columns."""
    _table(r, job, name, made, sound)
    how = r.choice(
        [{"first": 1}, {"first": 2}, {"items": [1, 3]}, {"first": 2, "unordered": True}, {"aggregate": "count"}]
        + [{"aggregate": a} for a in ("min", "max", "first", "last")]
    )
    job["tables"][name]["stack"] = {
        r.choice(["code", "code", *NAMES]): {
            **{"from": "visits", "on": "id", "value": "code", "order": "seq", "empty": r.choice(["keep", "drop"])},
            **how,
            **r.choice([{"role": "quasi-identifying", "hierarchy": {"suppress": True}}, {"role": "sensitive"}]),
        }
    }


def _linked(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    """Two tables with one pseudonym."""
    _table(r, job, name, made, sound)
    job["tables"][name] |= {"person": "id"}
    job["tables"][name].pop("rows_are_persons", None)
    job["tables"][name]["columns"]["id"] = {"role": "identifying", "pseudonym": True}
    job["tables"]["linked"] = {
        **{"source": {"query": "SELECT id, min(ward) AS ward FROM visits GROUP BY id"}, "person": "id", "link": name},
        "columns": {
            "id": {"role": "identifying", "pseudonym": True},
            "ward": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        },
        "privacy": {"k": 2},
    }


def _child(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    """Rows of which a person has many, below a table of the persons."""
    _table(r, job, name, made, sound)
    parent = job["tables"][name]
    parent["person"] = "id"
    parent.pop("rows_are_persons", None)
    parent["columns"]["id"] = {"role": "identifying", "pseudonym": True}
    if not r.odd():  # what a parent may not have
        few = r.sample(list(made.types), min(len(made.types), 1))
        parent["columns"] = {n: c for n, c in parent["columns"].items() if c["role"] != "quasi-identifying" or n in few}
        for n in few:
            parent["columns"][n] = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
        parent["privacy"] = {"k": parent["privacy"]["k"], "suppression_limit": 1.0}
        for key in ("stack", "sample", "link", "search", "rows", "stretches"):
            parent.pop(key, None)
    items = r.choice(["code", "code", "code", "ward", "seq"] if not r.odd() else ["code", *NAMES])
    rule = {"suppress": True} if items != "code" or r.random() < 0.5 else {"mask": [1]}
    source = [
        "visits",
        "visits",
        {"query": "SELECT * FROM visits WHERE seq > 0"},
        {"query": "SELECT id, code FROM visits"},
    ]
    empty = {"query": "SELECT id, CAST(NULL AS VARCHAR) AS code, seq, ward FROM visits"}
    child = {
        **{"source": r.choice([*source, empty]), "person": "id", "parent": name, "items": items},
        "known": r.choice([1, 2, 2, 3] if not r.odd() else [0, 1, 2, 3, 9]),
        "columns": {
            items: {"role": "quasi-identifying", "hierarchy": rule},
            **r.choice([{}, {}, {"ward": {"role": "sensitive"}}, {"seq": {"role": "sensitive"}}]),
        },
        "privacy": {"k": 2 if not r.odd() else r.choice([2, 3]), "suppression_limit": r.choice([0.0, 0.3, 1.0])},
        **r.choice([{}, {}, {"where": r.choice(["seq < 2", "FALSE", "code = "])}]),
    }
    job["tables"]["child of " + name if r.random() < 0.2 else "child"] = child
    if r.random() < 0.4:  # a second one, whose items are known beside those of the first
        other = {**child, "source": r.choice(source[:3]), "items": "ward", "where": "ward > 0"}
        other["columns"] = {"ward": {"role": "quasi-identifying", "hierarchy": r.choice([{"suppress": True}, rule])}}
        other["known"] = child["known"] if not r.odd() else 1
        job["tables"][r.choice(["select", "child 2"])] = other


def _wide(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    """Series of a table with a column for each variable."""
    _series(r, job, name, made, sound)
    part = job["series"][name]
    pivoted = "max(value) FILTER (item = '1') AS hr, max(value) FILTER (item = '2') AS \"select\""
    part["source"] = {"query": f"SELECT id, minute, {pivoted} FROM charted GROUP BY ALL"}
    part["wide"] = r.choice(
        [{"hr": "HR", "select": "1"}, {"hr": "HR"}, {"hr": "HR", r.choice(NAMES): "x"}] + [{}] * r.odd()
    )
    if not r.odd():
        for key in ("variable", "value", "variables", "drop"):
            part.pop(key, None)


def _series(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    part: Part = {
        **{"source": "charted", "person": "id", "time": "minute", "time_unit": "minutes", "variable": "item"},
        **{"value": "value", "durations": {"k": 3}, "privacy": {"k": 2}},
    }
    for path, make in SERIES_KEYS.items() if not sound else ():
        if r.often(0.25, 0.09):
            _put(part, path, make(r))
    if (
        not r.odd()
        and isinstance(part.get("features"), (list, dict))
        and part["features"] not in (["mean", "variance", "min", "max"],)
    ):
        part["perturb"] = {"method": "projection"}
    if part.get("link") == "one" and not r.odd():
        _table(r, job, "one", made, sound) if name != "one" and "one" not in job["tables"] else part.pop("link")
    job.setdefault("series", {})[name] = part


def _events(r: Random, job: Part, name: str, made: Made, sound: bool) -> None:
    part: Part = {"source": "moves", "object": "id", "time": "at", "state": "state", "privacy": {"method": "none"}}
    for path, make in EVENTS_KEYS.items() if not sound else ():
        if r.often(0.3, 0.15):
            _put(part, path, make(r))
    if part["privacy"] in (LAPLACE, GROUPED) and not r.odd():
        for key in ("gap_hours", "end", "clusters", "factors"):
            part.pop(key, None)
    job.setdefault("events", {})[name] = part


_PARTS = {
    "table": _table,
    "many": _many,
    "local": _locally,
    "mondrian": _mondrian,
    "stack": _stack,
    "linked": _linked,
    "child": _child,
    "wide": _wide,
    "series": _series,
    "events": _events,
}


def _put(mapping: Part, path: tuple[str, ...], value: Any) -> None:
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
