"""Run a command in this process and hold it to what every command must keep."""

from __future__ import annotations

import gc
import hashlib
import io
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from sqldeid.cli import main
from tests.deep.generate import CANARY, KEY, Case

MOST_SECONDS = 60
CODES = {"anonymize": {0, 2, 3}, "verify": {0, 2, 4}, "report": {0, 2}, "hierarchy": {0, 2}}
OTHERS = {0, 2, 3, 4}
"""Exit codes where nothing is wrong with the machine; 1 would be the engine's or an internal error."""


class Hang(BaseException):
    """A command took longer than it may."""


@dataclass(frozen=True)
class Ran:
    """A command's end."""

    code: int
    out: str
    err: str


@dataclass
class Tally:
    """What ran, and what was found."""

    codes: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    @property
    def commands(self) -> int:
        """How many ran."""
        return sum(self.codes.values())

    def fail(self, seed: int, command: list[str], what: str) -> None:
        """Note a finding with what repeats it."""
        self.found.append(f"seed {seed}: sqldeid {' '.join(map(repr, command))}\n    {what}")


def run(command: list[str], folder: Path) -> Ran:
    """Run a command in `folder`; a traceback is an error of its own."""
    before, streams, hook = Path.cwd(), (sys.stdout, sys.stderr), sys.excepthook
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in range(2))
    old = signal.signal(signal.SIGALRM, _hang)
    os.environ["SQLDEID_KEY"] = KEY
    os.chdir(folder)
    sys.stdout, sys.stderr = out, err
    signal.alarm(MOST_SECONDS)
    try:
        main(command)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0) if not isinstance(end.code, str) else 1
    except Exception as error:  # noqa: BLE001 - the finding
        place = traceback.extract_tb(error.__traceback__)[-1]
        err.write(f"\nTraceback: {type(error).__name__}: {str(error)[:200]} at {place.filename}:{place.lineno}")
        code = 1
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
        sys.stdout, sys.stderr = streams
        sys.excepthook = hook
        os.chdir(before)
    return Ran(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    held = stream.buffer
    assert isinstance(held, io.BytesIO)
    return held.getvalue().decode(errors="replace")


def _hang(*_: object) -> None:
    raise Hang


def digest(source: Path, releases_there: bool) -> str:
    """The source's content: its bytes; where the release goes into it, the rows of its own tables."""
    if not releases_there:
        return hashlib.sha256(source.read_bytes()).hexdigest()
    tables = ("people", "visits", "charted", "moves")
    with opened(source) as c:
        return str([c.execute(f"SELECT count(*), bit_xor(hash(t)) FROM {t} AS t").fetchall() for t in tables])


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


def hold(case: Case, tally: Tally) -> None:
    """Run the commands of a case and note whatever is not as it must be."""
    target = case.job.get("release", {})  # a hostile job has a number or a list there
    in_place = not (isinstance(target, dict) and "into" in target) and case.source.suffix == ".duckdb"
    before = digest(case.source, in_place)
    made: int | None = None
    for command in case.commands:
        started = time.monotonic()
        try:
            ran = run(command, case.folder)
        except Hang:
            tally.fail(case.seed, command, f"took more than {MOST_SECONDS} s")
            return
        tally.codes[f"{command[0]} {ran.code}"] += 1
        _judge(case, command, ran, tally, made, time.monotonic() - started)
        if command[0] == "anonymize" and "--plan" not in command:
            made = ran.code if command is case.commands[0] else None
    if digest(case.source, in_place) != before:
        tally.fail(case.seed, case.commands[0], "the source changed")
    for what in [*leftovers(case.folder), *leaks(case)]:
        tally.fail(case.seed, case.commands[0], what)
    gc.collect(0)


def _judge(case: Case, command: list[str], ran: Ran, tally: Tally, made: int | None, seconds: float) -> None:
    said = (ran.err.strip().splitlines() or [""])[-1][:300]
    if ran.code not in CODES.get(command[0], OTHERS):
        tally.fail(case.seed, command, f"exit code {ran.code}: {said}")
    elif command[:1] == ["verify"] and made == 0 and ran.code == 4:
        plain = "--only" not in case.commands[0] and "--ledger" not in case.commands[0]
        if plain and "--certificate" not in command:
            tally.fail(case.seed, command, f"anonymize said 0, verify says {ran.code}: {said}")
    if CANARY in ran.out + ran.err:
        tally.fail(case.seed, command, "a canary was printed")
    if "Traceback" in ran.err or "internal error" in ran.err:
        tally.fail(case.seed, command, f"internal error: {said}")


def leftovers(folder: Path) -> list[str]:
    """Private folders and files aside that a run did not take with it."""
    return [f"left behind: {p.name}" for p in folder.rglob(".*") if ".sqldeid-" in p.name or p.name.startswith(".tmp")]


def leaks(case: Case) -> list[str]:
    """Files that hold a canary, among all that the commands wrote."""
    found = []
    for path in case.folder.rglob("*"):
        if path.is_dir() or path == case.source:
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


class Forked:
    """A command in a process of its own, forked from this one, which has imported everything: a tenth of the time.

    Parameters
    ----------
    limit
        Bytes that a file may have (RLIMIT_FSIZE); 0 for none.
    """

    def __init__(self, command: list[str], folder: Path, scratch: Path, *, limit: int = 0) -> None:
        context = multiprocessing.get_context("fork")
        self._said = scratch
        self.process = context.Process(target=_forked, args=(command, folder, scratch, limit))
        self.process.start()

    def end(self, signals: Sequence[tuple[float, signal.Signals]] = ()) -> Ran:
        """Wait for the end, with these signals, each after some seconds.

        Raises
        ------
        Hang
            If it takes longer than it may.
        """
        for after, sent in signals:
            self.process.join(after)
            if self.process.is_alive() and self.process.pid is not None:
                os.kill(self.process.pid, sent)
        self.process.join(MOST_SECONDS)
        if self.process.exitcode is None:
            self.process.kill()
            raise Hang
        out, err = (self._said.with_suffix(end) for end in (".out", ".err"))
        texts = [path.read_text(errors="replace") if path.exists() else "" for path in (out, err)]
        return Ran(self.process.exitcode, *texts)


def _forked(command: list[str], folder: Path, scratch: Path, limit: int) -> None:
    os.environ["SQLDEID_KEY"] = KEY
    os.chdir(folder)
    for end, stream in ((".out", 1), (".err", 2)):
        os.dup2(os.open(scratch.with_suffix(end), os.O_CREAT | os.O_WRONLY | os.O_TRUNC), stream)
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        main(command)
    except KeyboardInterrupt:  # before the program has begun: a process of its own would die of the signal
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
