"""Hold the commands of a case to what every command must keep."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tests.deep.commands import Between, Case, Damage
from tests.deep.hostile import CANARY
from tests.deep.processes import Hang, Processes, Ran
from tests.deep.sources import OWN

NEW = 0.04
"""Share of commands that run in a process that is truly new; the others are forked from one that has imported all."""
MOST_END = 0.7
"""Share of cases that end where the first command is refused: there is little to do with what is not there."""
CODES = {"anonymize": {0, 2, 3}, "verify": {0, 2, 4}, "report": {0, 2}, "evidence": {0, 2, 4}, "hierarchy": {0, 2}}
OTHERS = {0, 2, 3, 4}
"""Exit codes where nothing is wrong with the machine; 1 would be the engine's or an internal error."""


@dataclass
class Tally:
    """What ran, and what was found."""

    codes: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    new: int = 0
    spent: float = 0.0
    most: float = 0.0

    @property
    def commands(self) -> int:
        """How many ran."""
        return sum(self.codes.values())

    def note(self, command: list[str], ran: Ran, *, new: bool) -> None:
        """Count a command that ended."""
        self.codes[f"{command[0]} {ran.code}"] += 1
        self.new += new
        self.spent += ran.cpu
        self.most = max(self.most, ran.cpu)

    def __str__(self) -> str:
        per = f"{self.spent:.0f} s of a processor, {self.most:.1f} s at most for one"
        return f"{self.commands} commands ({self.new} in new processes; {per}): {dict(sorted(self.codes.items()))}"

    def fail(self, seed: int, command: list[str], what: str) -> None:
        """Note a finding with what repeats it."""
        self.found.append(f"seed {seed}: sqldeid {' '.join(map(repr, command))}\n    {what}")
        print(self.found[-1], flush=True)  # a long run is read while it goes on


def digest(source: Path, releases_there: bool) -> str:
    """The source's content: its bytes; where the release goes into it, the rows of its own tables."""
    if not releases_there:
        return hashlib.sha256(source.read_bytes()).hexdigest()
    with opened(source) as c:
        there = {
            row[0] for row in c.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
        }
        asked = [t for t in OWN if t in there]
        return str([c.execute(f"SELECT count(*), bit_xor(hash(t)) FROM {t} AS t").fetchall() for t in asked])


@contextmanager
def opened(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A copy under a plain name, so that hostile names do not matter here."""
    plain = Path(tempfile.gettempdir()) / f"opened-{os.getpid()}.duckdb"
    shutil.copyfile(database, plain)
    try:
        with duckdb.connect(str(plain), read_only=True) as c:
            yield c
    finally:
        plain.unlink(missing_ok=True)


def hold(case: Case, tally: Tally, processes: Processes) -> None:
    """Take the steps of a case and note whatever is not as it must be."""
    target = case.job.get("release", {})  # a hostile job has a number or a list there
    in_place = not (isinstance(target, dict) and "into" in target) and case.made.database
    r, first, before = random.Random(case.seed), case.commands[0], digest(case.source, in_place)
    made: int | None = None
    for step in case.steps:
        if isinstance(step, Between):
            step.do(case)
            before, made = digest(case.source, in_place), None
            continue
        new = r.random() < NEW
        try:
            ran = processes.run(step, case.folder, new=new)
        except Hang as hang:
            tally.fail(case.seed, step, f"hung: {hang}")
            return
        tally.note(step, ran, new=new)
        _judge(case, step, ran, tally, made)
        if step[0] == "anonymize" and "--plan" not in step:
            made = ran.code if step is first else None
        if step is first and ran.code == 2 and r.random() < MOST_END:
            break
    if digest(case.source, in_place) != before:
        tally.fail(case.seed, first, "the source changed")
    for what in [*leftovers(case.folder), *leaks(case)]:
        tally.fail(case.seed, first, what)


def _judge(case: Case, command: list[str], ran: Ran, tally: Tally, made: int | None) -> None:
    said = (ran.err.strip().splitlines() or [""])[-1][:300]
    expected = CODES.get(command[0], OTHERS) | ({4} if {"--policy", "--ledger"} & set(command) else set())
    if ran.code not in expected:
        tally.fail(case.seed, command, f"exit code {ran.code}: {said}")
    elif (
        command[0] == "verify"
        and made == 0
        and ran.code == 4
        and _same(command, case.commands[0])
        and "proves nothing" not in ran.err
    ):
        tally.fail(case.seed, command, f"anonymize said 0, verify says {ran.code}: {said}")
    if CANARY in ran.out + ran.err:
        tally.fail(case.seed, command, "a canary was printed")
    if "Traceback" in ran.err or "internal error" in ran.err:
        tally.fail(case.seed, command, f"internal error: {said}")


def _same(verified: list[str], made: list[str]) -> bool:
    """Whether what is verified is what was made: all of it, with its ledger and proof."""
    proven = "--certificate" not in verified or "--certificate" in made
    return "--only" not in made and ("--ledger" in verified) == ("--ledger" in made) and proven


def leftovers(folder: Path) -> list[str]:
    """Private folders and files aside that a run did not take with it."""
    return [f"left behind: {p.name}" for p in folder.rglob(".*") if ".sqldeid-" in p.name or p.name.startswith(".tmp")]


def leaks(case: Case) -> list[str]:
    """Files that hold a canary, among all that the commands wrote."""
    found, damaged = [], {step.name for step in case.steps if isinstance(step, Damage)}
    for path in case.folder.rglob("*"):
        if path.is_dir() or path == case.source or (path.name in damaged and _is_unreadable(path)):
            continue
        with path.open("rb") as file:
            head = file.read(16)
        if head[8:12] == b"DUCK":
            found += [f"a canary is in {path.name}"] if _in_database(path) else []
        elif head[:4] == b"PAR1":
            found += [f"a canary is in {path.name}"] if _in_parquet(path) else []
        elif CANARY.encode() in path.read_bytes():
            found.append(f"a canary is in {path.name}")
    if case.source.suffix == ".duckdb":
        found += ["a canary is in a release in place"] if _in_database(case.source, own=True) else []
    return found


def _is_unreadable(path: Path) -> bool:
    """Whether somebody has damaged a database so that not even DuckDB reads it."""
    try:
        _in_database(path)
    except duckdb.Error:
        return True
    return False


def _in_database(path: Path, *, own: bool = False) -> bool:
    with opened(path) as c:
        tables = c.execute(
            "SELECT schema_name, table_name, coalesce(comment, '') FROM duckdb_tables() UNION ALL "
            "SELECT schema_name, view_name, coalesce(comment, '') FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
        mine = [(s, t) for s, t, comment in tables if not own or "sqldeid" in comment]
        quoted = [".".join('"' + part.replace('"', '""') + '"' for part in names) for names in mine]
        return any(_holds(c, q) for q in quoted)


def _in_parquet(path: Path) -> bool:
    plain = Path(tempfile.gettempdir()) / f"opened-{os.getpid()}.parquet"
    shutil.copyfile(path, plain)
    try:
        with duckdb.connect() as c:
            return _holds(c, f"parquet_kv_metadata('{plain}')") or _holds(c, f"read_parquet('{plain}')")
    finally:
        plain.unlink()


def _holds(c: duckdb.DuckDBPyConnection, relation: str) -> bool:
    question = f"SELECT bool_or(contains(CAST(t AS VARCHAR), '{CANARY}')) FROM {relation} AS t"
    return bool(c.execute(question).fetchall()[0][0])
