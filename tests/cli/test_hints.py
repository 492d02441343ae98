"""What a stranger gets wrong is told with what to do; what a program prints next can be run as it stands."""

from __future__ import annotations

import contextlib
import io
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.cli import main
from tests.support.cli import JOB, PROGRAM, run

ANONYMIZE = ("anonymize", "db.duckdb", "--job", "job.toml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SQLDEID_KEY", raising=False)
    with duckdb.connect("db.duckdb") as c:
        c.execute(
            "CREATE TABLE people AS SELECT i AS id, 20 + i % 40 AS age, CASE i % 2 WHEN 0 THEN 'F' ELSE 'M' END AS sex,"
            " 'ill' || i % 3 AS illness, 'n' || i AS name FROM RANGE(400) AS r(i)"
        )
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def test_evaluate_is_a_function(folder: Path) -> None:
    assert all(callable(getattr(sqldeid, name)) for name in sqldeid.__all__)
    job = sqldeid.Job.load("job.toml")
    options = sqldeid.Options(only=("people",))
    found = sqldeid.evaluate(job, "db.duckdb", "illness", options=options)
    assert found.anonymised == sqldeid.evaluate.classification(job, "db.duckdb", "illness", options=options).anonymised


@pytest.mark.parametrize("given", [None, 3, ["a"], object()])
def test_what_is_no_database_is_told_what_to_do(folder: Path, given: object) -> None:
    job = sqldeid.Job.load("job.toml")
    for command in (sqldeid.anonymize, sqldeid.verify, sqldeid.assess, sqldeid.plan):
        with pytest.raises(sqldeid.JobError, match=r"give a path, a URL or an open connection\. A data frame becomes"):
            command(job, given)  # type: ignore[operator]
    with pytest.raises(sqldeid.JobError, match="give a path, a URL or an open connection"):
        sqldeid.init(given, "people")  # type: ignore[arg-type]


def test_a_data_frame_works_as_told(folder: Path) -> None:
    with duckdb.connect("db.duckdb") as c:
        frame = c.sql("FROM people").df()
    connection = sqldeid.hold({"people": frame})
    assert sqldeid.anonymize(sqldeid.Job.load("job.toml"), connection).releases["people"].released == 400  # type: ignore[union-attr]


def test_python_m_runs_the_program(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "sqldeid", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.startswith("sqldeid")) == (0, True), done


@pytest.mark.deep
@pytest.mark.parametrize("more", ["", "--json -", "--plan"])
def test_a_reader_that_leaves_does_not_make_a_published_release_a_failure(folder: Path, more: str) -> None:
    shell = f"set -o pipefail; (sleep 2; exec {PROGRAM} {' '.join(ANONYMIZE)} {more}) | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done
    if more == "--plan":
        assert done.stderr == "" and not (folder / "out.duckdb").exists()
    else:
        note = "Note: what reads standard output has left before the end; the releases were published"
        assert done.stderr.splitlines()[-1] == note and (folder / "out.duckdb").exists()


def test_what_is_printed_next_can_be_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "the key").write_text("0123456789abcdef" * 4)
    text = JOB.replace('name = { role = "identifying" }', 'id = { role = "identifying", pseudonym = true }')
    (folder / "job.toml").write_text(text)
    more = ("--only", "people", "--key-file", "the key", "--ledger", "my ledger.duckdb")
    out = run(capsys, *ANONYMIZE, *more).out
    printed = [line.strip() for line in out.splitlines() if line.startswith("  sqldeid ")]
    assert printed[0] == (
        "sqldeid verify db.duckdb --job job.toml --only people --key-file 'the key' --ledger 'my ledger.duckdb'"
    )
    for line in printed:
        assert run(capsys, *shlex.split(line)[1:]).code == 0, line


def test_a_share_is_not_hinted_wrongly(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("--limit", "5%"), ("--max-loss", "x"), ("--k", "five")):
        err = run(capsys, "tradeoff", "db.duckdb", "--job", "job.toml", "--only", "people", *command).err
        like = err.split("like ")[1].split(";")[0].split()
        assert ("5 % is written 0.05" in err) == ("%" in command[1])
        assert run(capsys, "tradeoff", "db.duckdb", "--job", "job.toml", "--only", "people", *like).code == 0, like
    for command in (("--beta", "x"), ("--epsilon", "x"), ("--k", "x")):
        err = run(capsys, "privacy", "plan", *command).err
        assert run(capsys, "privacy", "plan", *err.split("like ")[1].split()).code == 0


@pytest.mark.parametrize("into", ["x.csv", "x.TSV", "x.parquet", "x.sqlite", "x.json", "x.xlsx", "x.pdf", "x.csv.gz"])
def test_a_database_is_not_written_under_another_formats_name(
    folder: Path, capsys: pytest.CaptureFixture[str], into: str
) -> None:
    (folder / "job.toml").write_text(JOB.replace("out.duckdb", into))
    ran = run(capsys, *ANONYMIZE)
    assert ran.code == 2 and "release.into" in ran.err and "ends in .duckdb" in ran.err
    assert not (folder / into).exists()


@pytest.mark.parametrize(
    "command",
    [
        (*ANONYMIZE, "--report", "x.pdf"),
        (*ANONYMIZE, "--report", "x.markdown"),
        (*ANONYMIZE, "--public", "x.pdf"),
        (*ANONYMIZE, "--public", "x.md"),
        (*ANONYMIZE, "--json", "x.yaml"),
        (*ANONYMIZE, "--json", "x.html"),
        (*ANONYMIZE, "--certificate", "x.csv"),
        ("verify", *ANONYMIZE[1:], "--json", "x.pdf"),
        ("assess", *ANONYMIZE[1:], "--json", "x.csv"),
        ("tradeoff", *ANONYMIZE[1:], "--html", "x.png"),
        ("evaluate", *ANONYMIZE[1:], "--label", "illness", "--json", "x.csv"),
        ("explore", "db.duckdb", "--table", "people", "--json", "x.xlsx"),
        ("report", "r.json", "-o", "x.pdf"),
        ("init", "db.duckdb", "people", "-o", "x.json"),
        ("hierarchy", "build", "adult/sex", "-o", "x.json"),
        ("privacy", "plan", "--json", "x.csv"),
        ("demo", "adult", "x.csv"),
    ],
)
def test_no_output_is_written_under_another_formats_name(
    folder: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    ran = run(capsys, *command)
    name = next(part for part in command if part.startswith("x."))
    assert ran.code == 2 and name in ran.err and "ends in" in ran.err, ran.err
    assert not (folder / name).exists() and not (folder / "out.duckdb").exists()


def test_the_page_is_told_how_to_be_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--public` writes a page or JSON: JSON under the name of a text would be taken for one."""
    ran = run(capsys, *ANONYMIZE, "--public", "about.md")
    said = "--public: what is written there ends in .html, for a page, or in .json; about.md does not."
    assert ran.code == 2 and said in ran.err, ran.err


def test_a_key_file_that_is_not_there_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (ANONYMIZE, (*ANONYMIZE, "--plan"), ("verify", *ANONYMIZE[1:])):
        ran = run(capsys, *command, "--key-file", "nokey")
        assert ran.code == 2 and "--key-file: nokey does not exist" in ran.err
    assert not (folder / "out.duckdb").exists()


@pytest.mark.parametrize(
    "line,where",
    [("1,2,3,4", "line 30002 has more or fewer fields"), ("1", "line 30002 ")],
)
def test_a_malformed_csv_is_told_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, where: str
) -> None:
    rows = "\n".join(f"{i},{i % 3}" for i in range(30_000))
    (folder / "bad.csv").write_text(f"a,b\n{rows}\n{line}\n3,4\n")
    ran = run(capsys, "explore", "bad.csv", "--table", "bad")
    assert ran.code == 2 and where in ran.err, ran.err


def test_dates_in_two_formats_are_told_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_text("id;d\n1;2001-02-03\n2;04.05.2001\n")
    ran = run(capsys, "init", "x.csv")
    assert ran.code == 2 and "dates in two formats" in ran.err and "04.05" not in ran.err


@pytest.mark.parametrize(
    "text,words",
    [
        ("a,b\n", "has a header line and no rows"),
        ("a,b\n1,2\n3,4,5,6\n7,8\n", "line 3 has more or fewer fields"),
    ],
)
@pytest.mark.parametrize("command", ["init", "explore", "anonymize"])
def test_a_csv_without_rows_or_with_ragged_ones_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, words: str, command: str
) -> None:
    (folder / "x.csv").write_text(text)
    more = {"init": (), "explore": ("--table", "x"), "anonymize": ("--job", "job.toml")}[command]
    ran = run(capsys, command, "x.csv", *more)
    assert ran.code == 2 and words in ran.err, ran


def test_a_header_with_a_quoted_separator_is_no_ragged_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.csv").write_text('"place, or ward"\nA\nB\nA\nB\nA\n')
    assert run(capsys, "explore", "x.csv", "--table", "x").code == 0


def test_verify_names_the_likely_cause(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *ANONYMIZE).code == 0
    with duckdb.connect("db.duckdb") as c:
        c.execute("UPDATE people SET age = age + 20, sex = 'M' WHERE id < 200")
    ran = run(capsys, "verify", *ANONYMIZE[1:])
    assert ran.code == 4 and "If the source has changed since, that is why: release it again with --replace" in ran.err
    refused = run(capsys, *ANONYMIZE, "--replace")
    assert refused.code == 2 and "its source has changed since. Whoever" in refused.err
    assert run(capsys, *ANONYMIZE, "--replace", "--without-ledger").code == 0, "as the message says"
    assert run(capsys, "verify", *ANONYMIZE[1:]).code == 0


def test_swapped_job_and_database(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("anonymize", "verify", "assess", "tradeoff"):
        ran = run(capsys, command, "job.toml", "--job", "db.duckdb")
        assert ran.code == 2 and "sqldeid COMMAND DB --job FILE" in ran.err, ran
    assert "sqldeid COMMAND DB --job FILE" in run(capsys, "anonymize", "job.toml", "--job", "job.toml").err


@pytest.mark.parametrize("url", ["jdbc:postgresql://u:pass@h/d", "JDBC:duckdb:db.duckdb"])
def test_jdbc_is_told_what_to_write(folder: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
    ran = run(capsys, "anonymize", url, "--job", "job.toml")
    assert ran.code == 2 and "write postgresql://user@host/database" in ran.err and "pass@" not in ran.err


def test_other_programs_files_are_told_apart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(sqlite3.connect("s.sqlite")) as c:
        c.execute("CREATE TABLE t (a)")
        c.commit()
    (folder / "s.xlsx").write_bytes(b"PK\x03\x04" + b"0" * 40)
    assert "SQLite database" in run(capsys, "init", "s.sqlite").err
    assert "save it as CSV" in run(capsys, "anonymize", "s.xlsx", "--job", "job.toml").err


def test_an_unquoted_value_in_where_is_hinted_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for where in ("sex = F", 'sex = \\"F\\"'):
        (folder / "job.toml").write_text(JOB.replace('where = "age >= 20"', f'where = "{where}"'))
        err = run(capsys, *ANONYMIZE).err
        assert "tables.all.where" in err and "stands in single quotes, as in sex = 'F'" in err


def test_the_command_line_takes_any_text_stream(folder: Path) -> None:
    for command, words in (
        (("--version",), "sqldeid"),
        ((*ANONYMIZE, "--plan"), "people"),
        (("schema",), "{"),
        (("init", "db.duckdb", "people", "-q"), "[tables.people]"),
        (("hierarchy", "build", "adult/sex", "-o", "-", "-q"), "Female"),
    ):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
            main(list(command))
        assert (end.value.code or 0, err.getvalue()) == (0, ""), err.getvalue()
        assert words in out.getvalue()
