"""Databases in the shapes that hospitals share, of any size and with something amiss: from `demo` to `verify`.

Every command ends with 0 or with a refusal that says why, and no release holds a key, a name or a note of the source.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from sqldeid.schemas import SCHEMAS, SharedSchema, shared_schema
from tests.deep.hostile import CANARY, KEY
from tests.deep.processes import Hang, Processes, Ran

pytestmark = pytest.mark.deep

DEMOS = {"omop54": "omop", "mimiciv": "mimiciv", "mimiciii": "mimic", "eicu": "eicu"}
SIZES = (-1, 0, 1, 2, 3, 4, 5, 6, 9, 20, 23, 99, 101, 250, 397)
FAR = 7_000_000_000_000
"""Added to every numeric key, so that none is like any other number."""
KEYS = re.compile(r"(?<![0-9a-f])7000[0-9]{9}(?![0-9a-f])")
CODES = {"demo": {0, 2}, "init": {0, 2}, "anonymize": {0, 2, 3}, "verify": {0, 2, 4}}
LEAST = 100
"""Persons from which on a database in which nothing is amiss is released."""


def test_shared_schemas(tmp_path: Path, fuzz: tuple[int, float, bool]) -> None:
    first, minutes, alone = fuzz
    codes: Counter[str] = Counter()
    found: list[str] = []
    end, seed = time.monotonic() + 60 * minutes, first
    with Processes(tmp_path / "said") as processes:
        while True:
            folder = tmp_path / str(seed)
            folder.mkdir()
            found += [f"seed {seed}: {what}" for what in hold(seed, folder, processes, codes)]
            if not alone:
                shutil.rmtree(folder)
            seed += 1
            if alone or time.monotonic() > end:
                break
    print(f"\n{seed - first} databases from seed {first}: {dict(sorted(codes.items()))}")
    assert not found, "\n".join(found)
    assert alone or codes["verify 0"] > 0


def hold(seed: int, folder: Path, processes: Processes, codes: Counter[str]) -> list[str]:
    """What is wrong with one database."""
    r = random.Random(seed)
    preset = r.choice(SCHEMAS)
    persons = r.choice(SIZES) if r.random() < 0.7 else r.randrange(1, 400)
    number = "--patients" if preset == "mimiciii" else "--persons"
    part = r.choice(["persons", *shared_schema(preset).parts])
    (folder / "key").write_text(KEY)
    (folder / "key").chmod(0o600)
    keyed = ["--key-file", "key"] if part == "diagnoses" or r.random() < 0.1 else []
    asked = [*(["--preset", preset] if r.random() < 0.8 else []), *r.choice([[], [], ["--preset", "cms-11"]])]
    asked += r.choice([[], [], ["--preset", "hipaa-safe-harbor"]]) if "cms-11" not in asked else []
    job = ["--job", "job.toml", *keyed]
    commands = [
        ["demo", DEMOS[preset], "h.duckdb", number, str(persons), "--seed", str(r.choice([0, 1, seed % 1000]))],
        ["init", "h.duckdb", *asked, "--part", part, "-o", "job.toml"],
        ["anonymize", "h.duckdb", *job],
        ["verify", "h.duckdb", *job],
    ]
    told, amiss, before = f"{preset}, {persons} persons, {part}", "", 0
    for command in commands:
        try:
            ran = processes.run(command, folder)
        except Hang as hang:
            return [f"{told}: hung: {hang}"]
        codes[f"{command[0]} {ran.code}"] += 1
        wrong = _wrong(command, ran, before)
        if not (wrong or amiss or ran.code == 0 or persons < LEAST or command[0] in ("demo", "init")):
            wrong = f"nothing is amiss, but it ends with {ran.code}: {ran.err.strip()[-300:]}"
        if wrong:
            return [f"{told}, {amiss or 'nothing'} amiss: {' '.join(command)}\n    {wrong}"]
        if command[0] == "demo" and ran.code == 0:
            amiss = _mark(folder / "h.duckdb", shared_schema(preset), r)
        elif ran.code != 0 and command[0] != "anonymize":
            break
        before = ran.code
    return [f"{told}, {amiss or 'nothing'} amiss: {leak}" for leak in _leaks(folder)]


def _wrong(command: list[str], ran: Ran, before: int) -> str:
    said = ran.err.strip()
    if ran.code not in CODES[command[0]] or "Traceback" in said or "internal error" in said:
        return f"ends with {ran.code}: {said[-400:]}"
    if CANARY in ran.out + ran.err or KEYS.search(ran.out + ran.err):
        return "a name or key was printed"
    if ran.code and not re.search(r"^(Error|Usage): .{20,}", said, flags=re.MULTILINE):
        return f"ends with {ran.code} and says no reason: {said[-400:]}"
    if command[0] == "verify" and (ran.code == 0) != (before == 0):
        return f"anonymize ended with {before}, verify with {ran.code}: {said[-300:]}"
    return ""


def _mark(database: Path, shared: SharedSchema, r: random.Random) -> str:
    """Make every key and name one that is found again, and something amiss in some databases: what."""
    with duckdb.connect(str(database)) as c:
        there = c.execute("SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
        placed = {t: f'"{s}"."{t}"' for s, t in there}
        for name, table in shared.tables.items():
            types = _columns(c, placed[name]) if name in placed and _rows(c, placed[name]) else {}
            for column in table.columns:
                secret = column.decision in ("identifying", "free-text")
                kind = types.get(column.name) if secret else None
                if kind in ("INTEGER", "BIGINT"):
                    c.execute(f'ALTER TABLE {placed[name]} ALTER "{column.name}" TYPE BIGINT')
                    c.execute(f'UPDATE {placed[name]} SET "{column.name}" = "{column.name}" + {FAR}')
                elif kind == "VARCHAR":
                    c.execute(f'UPDATE {placed[name]} SET "{column.name}" = \'{CANARY}\' || "{column.name}"')
        return _damage(c, placed, shared, r) if r.random() < 0.5 else ""


def _rows(c: duckdb.DuckDBPyConnection, at: str) -> int:
    return int(c.execute(f"SELECT count(*) FROM {at}").fetchall()[0][0])


def _columns(c: duckdb.DuckDBPyConnection, at: str) -> dict[str, str]:
    """Types by name."""
    return {row[0]: row[1] for row in c.execute(f"DESCRIBE {at}").fetchall()}


def _damage(c: duckdb.DuckDBPyConnection, placed: dict[str, str], shared: SharedSchema, r: random.Random) -> str:
    full = [t for t in shared.tables if t in placed and _rows(c, placed[t])]
    if not full:
        return "no rows"
    table = r.choice([shared.base, *full])
    at = placed[table]
    columns = list(_columns(c, at))
    column = r.choice([shared.person, *columns])
    column = column if column in columns else columns[0]
    done = r.choice(
        [
            f"DROP TABLE {at}",
            f"DELETE FROM {at}",
            f"DELETE FROM {at} WHERE rowid > 0",
            f'ALTER TABLE {at} DROP COLUMN "{column}"',
            f'UPDATE {at} SET "{column}" = NULL',
            f'UPDATE {at} SET "{column}" = NULL WHERE rowid % 3 = 0',
            f"INSERT INTO {at} SELECT * FROM {at}",
            f"INSERT INTO {at} SELECT * FROM {at} WHERE rowid % 5 = 0",
            f'ALTER TABLE {at} RENAME "{column}" TO "{column.upper()}"',
            f'ALTER TABLE {at} ALTER "{column}" TYPE VARCHAR',
        ]
    )
    c.execute(done)
    return done


def _leaks(folder: Path) -> list[str]:
    """What of the source's names and keys a release shows, in its bytes or in its rows and notes."""
    found = []
    for path in sorted(folder.glob("*_release.duckdb")):
        if CANARY.encode() in path.read_bytes():
            found.append(f"a name is in the bytes of {path.name}")
        with duckdb.connect(str(path), read_only=True) as c:
            tables = c.execute("SELECT schema_name, table_name, coalesce(comment, '') FROM duckdb_tables()").fetchall()
            texts = [note for *_, note in tables]
            for schema, table, _ in tables:
                texts += [str(row) for row in c.execute(f'FROM "{schema}"."{table}"').fetchall()]
        if any(CANARY in text or KEYS.search(text) for text in texts):
            found.append(f"a name or key is shown by {path.name}")
    return found


def test_a_key_that_is_released_is_seen(tmp_path: Path) -> None:
    """The detector itself: a key as a number, a note in a text, and a pseudonym that only looks alike."""
    for value, wrong in (
        (f"{FAR + 5}", True),
        (f"'a {CANARY} b'", True),
        ("'a7000123456789b'", False),
        ("'70'", False),
    ):
        path = tmp_path / "x_release.duckdb"
        with duckdb.connect(str(path)) as c:
            c.execute(f"CREATE TABLE t AS SELECT {value} AS x")
        assert bool(_leaks(tmp_path)) is wrong, value
        path.unlink()
