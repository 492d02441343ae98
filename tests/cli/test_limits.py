"""Files without an end, processes with little of everything, and signals at the worst moment: an orderly end."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqldeid.engine import opening
from sqldeid.engine.folder import PrivateFolder
from sqldeid.engine.settings import Settings
from sqldeid.engine.undisturbed import in_one_go, undisturbed
from sqldeid.engine.worker import Worker
from sqldeid.errors import Interrupted
from sqldeid.publish.places import FreshFile
from tests.support.cli import JOB, PROGRAM, run

EVENTS = """
[release]
into = "out.duckdb"
[events.moves]
source = "moves"
object = "id"
time = "at"
state = "state"
attacks = false
[events.moves.privacy]
method = "none"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with duckdb.connect(tmp_path / "db.duckdb") as c:
        c.execute(
            "CREATE TABLE people AS SELECT i AS id, 20 + i % 30 AS age, ['f', 'm'][1 + i % 2] AS sex, "
            "'flu' AS illness, 'n' || i AS name FROM range(60) r(i)"
        )
        c.execute("CREATE TABLE moves AS SELECT i AS id, now()::TIMESTAMP AS at, 'w' AS state FROM range(30) r(i)")
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "events.toml").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


ENDLESS = {
    "job": ["anonymize", "db.duckdb", "--job", "/dev/zero"],
    "hierarchy": ["hierarchy", "check", "/dev/zero"],
    "hierarchy in TOML": ["hierarchy", "check", "zero.toml"],
    "policy": ["anonymize", "db.duckdb", "--job", "job.toml", "--policy", "/dev/zero"],
    "key": ["anonymize", "db.duckdb", "--job", "job.toml", "--ledger", "l", "--key-file", "/dev/zero"],
    "certificate": ["verify", "db.duckdb", "--job", "job.toml", "--certificate", "/dev/zero"],
    "result": ["report", "/dev/zero", "-o", "x.html"],
    "keywords": ["explore", "db.duckdb", "--table", "people", "--text", "name", "--keywords", "/dev/zero"],
}


@pytest.mark.parametrize("what", ENDLESS)
def test_files_without_an_end_are_refused(folder: Path, capsys: Any, what: str) -> None:
    (folder / "zero.toml").symlink_to("/dev/zero")
    ran = run(capsys, *ENDLESS[what])
    assert ran.code == 2 and "Traceback" not in ran.err
    assert sorted(p.name for p in folder.iterdir()) == ["db.duckdb", "events.toml", "job.toml", "zero.toml"]


def test_a_job_without_tables_has_nothing_to_assess_or_to_prove(folder: Path, capsys: Any) -> None:
    made = run(capsys, "anonymize", "db.duckdb", "--job", "events.toml", "--certificate", "proof.json")
    assert made.code == 0 and "was not written" in made.err
    assert not (folder / "proof.json").exists()
    found = run(capsys, "assess", "db.duckdb", "--job", "events.toml", "--json", "-")
    assert found.code == 0 and json.loads(found.out)["releases"] == {}
    assert "Nothing to assess" in run(capsys, "assess", "db.duckdb", "--job", "events.toml").out
    (folder / "proof.json").write_text('{"certificates": {}}')
    checked = run(capsys, "verify", "db.duckdb", "--job", "events.toml", "--certificate", "proof.json")
    assert checked.code == 0 and "No certificate to check" in checked.out


def test_a_job_without_tables_has_nothing_to_trade_off_or_to_explore(folder: Path, capsys: Any) -> None:
    for command, named in (("tradeoff", "tradeoff"), ("explore", "explored")):
        asked = [command, "db.duckdb", "--job", "events.toml"]
        picture = {"tradeoff": ["--html", "t.html"], "explore": ["--plot", "t.png"]}[command]
        told = run(capsys, *asked, *picture)
        assert told.code == 0 and "Nothing to" in told.out and "was not written" in told.out
        found = run(capsys, *asked, "--json", "-")
        assert found.code == 0 and not json.loads(found.out)[named]
        assert run(capsys, *asked, "--only", "nobody").code == 2
    assert not list(folder.glob("t.*"))


def test_a_first_ledger_that_fails_leaves_no_lock(folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLDEID_KEY", "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0")
    (folder / "job.toml").write_text(JOB.replace("k = 3", "k = 3000"))
    ran = run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--ledger", "mine.ledger")
    assert ran.code in (2, 3), ran
    assert sorted(p.name for p in folder.iterdir()) == ["db.duckdb", "events.toml", "job.toml"]


def limited(folder: Path, *arguments: str, by: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *arguments], cwd=folder, preexec_fn=by, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", ["files 6", "addresses 300", "addresses 600", "addresses 900", "addresses 1200"])
def test_little_of_everything_is_told_in_order(folder: Path, limit: str) -> None:
    kind, number = limit.split()
    what, size = (resource.RLIMIT_NOFILE, int(number)) if kind == "files" else (resource.RLIMIT_AS, int(number) << 20)
    ran = limited(
        folder, "anonymize", "db.duckdb", "--job", "job.toml", by=lambda: resource.setrlimit(what, (size, size))
    )
    assert ran.returncode in (0, 1), ran
    assert ran.returncode == 0 or "ulimit" in ran.stderr, ran
    assert "internal error" not in ran.stderr and "Traceback" not in ran.stderr
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]


def test_what_is_cleared_up_after_an_interruption_does_not_hide_it() -> None:
    """A statement meets the transaction that the interruption aborted: it was told as an error of the database."""
    connection = duckdb.connect()
    worker = Worker(connection)

    def interrupted() -> None:
        raise KeyboardInterrupt

    def aborted() -> None:
        raise duckdb.TransactionException("TransactionContext Error: Current transaction is aborted (please ROLLBACK)")

    with pytest.raises(Interrupted):
        worker.run(interrupted)

    def fetched() -> None:
        raise RuntimeError("Query interrupted")

    for late in (aborted, fetched):
        with pytest.raises(Interrupted, match="nothing was published"):
            worker.run(late)
    worker.close()


def test_a_signal_while_a_database_is_opened_is_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB hears it itself in the main thread, and says so by an error of another kind."""
    said = "Query interrupted"

    def heard(*_: object) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(opening, "_pin", heard)
    monkeypatch.setattr(opening, "_refuse_macros", heard)
    user = duckdb.connect()
    for opened in (lambda: opening.own_instance(None, Settings()), lambda: opening.open_connection(user)):
        said = "Query interrupted"
        with pytest.raises(Interrupted, match="nothing was published"):
            opened()
        said = "something else"
        with pytest.raises(RuntimeError, match="something else"):
            opened()


def test_a_signal_waits_until_a_step_is_over(tmp_path: Path) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), in_one_go():
        os.kill(os.getpid(), signal.SIGINT)
        done.append(1)
    with undisturbed() as came:
        os.kill(os.getpid(), signal.SIGINT)
        done.append(2)
    assert done == [1, 2] and came == [signal.SIGINT]
    folder = PrivateFolder(tmp_path / "out")
    del folder  # as where a signal comes before anybody holds it
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_publishing_never_says_the_contrary(
    folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = FreshFile.publish

    def signalled(self: FreshFile) -> tuple[str, ...]:
        done = publish(self)
        os.kill(os.getpid(), signal.SIGINT)
        return done

    monkeypatch.setattr(FreshFile, "publish", signalled)
    ran = run(capsys, "anonymize", "db.duckdb", "--job", "job.toml")
    assert "nothing was published" not in ran.err and ran.code == 0, ran
    assert (folder / "out.duckdb").exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("command", ["anonymize db.duckdb --job job.toml", "init db.duckdb people"])
def test_a_working_folder_that_is_not_utf8(folder: Path, command: str) -> None:
    """Whatever is done there, it ends in order; a database there cannot be opened by DuckDB, and that is said."""
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/\xff"))
    odd.mkdir()
    for name in ("db.duckdb", "job.toml"):
        (folder / name).rename(odd / name)
    ran = subprocess.run(
        [str(PROGRAM), *shlex.split(command)], cwd=odd, capture_output=True, text=True, errors="replace", check=False
    )
    assert ran.returncode == 2 and "not UTF-8" in " ".join(ran.stderr.split()), ran
    given = [str(PROGRAM), "demo", "adult", "d.duckdb", "--rows", "50"]
    made = subprocess.run(given, cwd=odd, capture_output=True, text=True, check=False)
    assert made.returncode in (0, 2) and "internal" not in made.stderr, made
