"""What the commands do when something is wrong: exit code, one sentence, and nothing changed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.cli import JOB, Ran, finish, run, start, tree
from tests.support.files import write

SECRET = "person 17"


def anonymize(capsys: pytest.CaptureFixture[str], *more: object, db: str = "db.duckdb", job: str = "job.toml") -> Ran:
    return run(capsys, "anonymize", db, "--job", job, *more)


def change(folder: Path, old: str, new: str) -> None:
    assert old in JOB
    (folder / "job.toml").write_text(JOB.replace(old, new))


BAD_JOBS = {
    "unknown key": ("k = 3", "k = 3\nsupression_limit = 0.1", "suppression_limit"),
    "unknown role": ('"sensitive"', '"secret"', "sensitive"),
    "unknown column": ("illness =", "ilness =", "ilness"),
    "unknown table": ('"main.people"\nperson = "id"\n\n', '"main.persons"\nperson = "id"\n\n', "persons"),
    "k": ("k = 3", "k = 0", "k"),
    "k too large": ("k = 3", "k = 61", "61"),
    "limit": ("0.2", "1.2", "suppression_limit"),
    "syntax": ("[tables.people]", "[tables.people", "line"),
    "hierarchy": ("{ bands = [10, 50] }", '"ages.csv"', "ages.csv"),
    "shipped hierarchy": ("{ bands = [10, 50] }", '"adult/agee"', "adult/age"),
    "where": ("age >= 20", "age >= (SELECT MAX(x) FROM 'x.csv')", "where"),
    "person": ('person = "id"\n\n', 'person = "illness"\n\n', "person"),
}


@pytest.mark.parametrize("name", BAD_JOBS)
def test_a_bad_job_is_refused_and_nothing_changed(name, folder, capsys):
    old, new, said = BAD_JOBS[name]
    change(folder, old, new)
    before = tree(folder)
    ran = anonymize(capsys)
    assert ran.code == 2, ran
    assert ran.out == ""
    assert ran.err.startswith("Error: job.toml")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert tree(folder) == before
    assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == []


def test_other_exit_codes(folder, capsys):
    (folder / "text.duckdb").write_text("no database")
    assert anonymize(capsys, db="nothing.duckdb").code == 2
    assert anonymize(capsys, db="text.duckdb").code == 2
    assert anonymize(capsys, job="nothing.toml").code == 2
    ran = run(capsys, "verify", "db.duckdb", "--job", "job.toml")
    assert ran.code == 4
    missing = f"Error: job.toml: release.into: {folder / 'out.duckdb'} does not exist; nothing was released there"
    assert ran.err.startswith(missing)
    change(folder, "bands = [10, 50]", "bands = [10, 50], top = 3")
    assert anonymize(capsys).code == 2


@pytest.mark.parametrize("command", ["verify", "anonymize", "doctor"])
def test_places_are_told_without_the_way_to_them(command, folder, capsys, monkeypatch):
    """A job given as `../job.toml` that writes to `x/../out.duckdb` names the file as people would write it."""
    change(folder, '"out.duckdb"', '"beneath/../out.duckdb"')
    (folder / "beneath").mkdir()
    monkeypatch.chdir(folder / "beneath")
    if command != "verify":
        (folder / "out.duckdb").touch()
    ran = run(capsys, command, "../db.duckdb", "--job", "../job.toml")
    assert str(folder / "out.duckdb") in ran.err + ran.out or command == "doctor"
    assert "/.." not in (ran.err + ran.out).replace("../db.duckdb", "").replace("../job.toml", "")


def test_no_solution_is_three(folder, capsys):
    """Seven illnesses that are not equally frequent are less uncertain than seven that are, also at the top."""
    asked = 'l_diversity = { column = "illness", l = 7, kind = "entropy" }'
    change(folder, "k = 3\nsuppression_limit = 0.2", f"k = 3\n{asked}")
    ran = anonymize(capsys, "--only", "people", "--json", "result.json")
    assert ran.code == 3, ran
    assert "the nearest (age 3, sex 1) would suppress 60 rows, 0 are allowed" in ran.err
    assert json.loads((folder / "result.json").read_text())["error"]["kind"] == "no-solution"
    assert not (folder / "out.duckdb").exists()


def test_a_tampered_release_is_four(folder, capsys):
    assert anonymize(capsys).code == 0
    write(folder / "out.duckdb", "UPDATE release.people SET illness = 'illness 0'")
    ran = run(capsys, "verify", "db.duckdb", "--job", "job.toml", "--json", "-")
    assert ran.code == 4
    assert (ran.json["error"]["code"], ran.json["error"]["kind"]) == (4, "verification")


def test_a_locked_database_is_one(folder, capsys):
    hold = "import duckdb, sys; c = duckdb.connect('db.duckdb'); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        ran = anonymize(capsys)
        holder.communicate()
    assert ran.code == 1
    assert "in use" in ran.err


def test_json_tells_of_a_failure(folder, capsys):
    ran = anonymize(capsys, "--json", "-", db="nothing.duckdb")
    assert ran.code == 2
    assert ran.json["error"].keys() == {"code", "kind", "key", "message"}
    assert "nothing.duckdb" in ran.json["error"]["message"]


@pytest.mark.parametrize(
    "arguments", [["--jbo", "x"], ["--threads", "none"], ["--threads", "0"], ["--temp-dir", "none"], ["more"]]
)
def test_usage_errors_are_two_in_json_too(arguments, folder, capsys):
    ran = anonymize(capsys, "--json=-", *arguments)
    assert ran.code == 2
    assert ran.json["error"]["code"] == 2
    assert "Usage: sqldeid anonymize" in ran.err
    assert "--help" in ran.err


def test_unknown_command_and_none(capsys):
    assert run(capsys, "anonymise").code == 2
    assert "anonymize" in run(capsys, "anonymise").err
    assert "Commands:" in (run(capsys).out + run(capsys).err)


@pytest.mark.parametrize("option", ["--json", "--public"])
@pytest.mark.parametrize("file", ["none/result.json", "db.duckdb", "job.toml", ".", "out.duckdb"])
def test_outputs_are_looked_at_before_the_run(option, file, folder, capsys):
    before = tree(folder)
    ran = anonymize(capsys, option, file)
    assert ran.code == 2
    assert option in ran.err
    assert tree(folder) == before


def test_a_failure_never_overwrites_what_is_not_ours(folder, capsys):
    for file, more in (("db.duckdb", ["--nonsense"]), ("job.toml", []), ("db.duckdb", ["--only", "nobody"])):
        (folder / "job.toml").write_text("[tables")
        before = tree(folder)
        ran = anonymize(capsys, "--json", file, *more)
        assert ran.code == 2
        assert "was not written there" in ran.err
        assert tree(folder) == before


KEEPING = [
    ("there already", []),
    ("usage", ["--replace", "--nonsense"]),
    ("no such release", ["--replace", "--only", "nobody"]),
    ("its own policy", ["--replace", "--policy", "first.json"]),
    ("no job", ["--replace", "--job", "none.toml"]),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("more", [more for _, more in KEEPING], ids=[name for name, _ in KEEPING])
def test_a_failure_lies_beside_the_result_that_stands_there(more, folder, capsys):
    """The result is the policy of every later night."""
    assert anonymize(capsys, "--json", "first.json").code == 0
    before = tree(folder)
    ran = anonymize(capsys, "--json", "first.json", *more)
    after = tree(folder)
    assert ran.code == 2
    if "--policy" in more:  # told before the run: --json names what it reads
        assert "first.json is what the run reads; name another file" in ran.err and after == before
        return
    assert (
        "Note: first.json holds an earlier release's result and stays; this failure is in first.error.json" in ran.err
    )
    assert {name: found for name, found in after.items() if name != "first.error.json"} == before
    assert json.loads((folder / "first.error.json").read_text())["error"]["code"] == 2
    assert (folder / "first.error.json").stat().st_mode & 0o777 == 0o600
    assert anonymize(capsys, "--json", "first.json", "--replace", "--policy", "second.json").code == 2
    (folder / "first.json").rename(folder / "policy.json")
    assert anonymize(capsys, "--json", "first.json", "--replace", "--policy", "policy.json").code == 0
    assert not (folder / "first.error.json").exists(), "a failure lies there exactly where the last run failed"


OTHERS = {
    "verify": ["verify", "db.duckdb", "--job", "job.toml", "--json"],
    "assess": ["assess", "db.duckdb", "--job", "job.toml", "--json"],
    "plan": ["anonymize", "db.duckdb", "--job", "job.toml", "--plan", "--json"],
    "tradeoff": ["tradeoff", "db.duckdb", "--job", "job.toml", "--json"],
    "explore": ["explore", "db.duckdb", "--table", "people", "--json"],
    "privacy plan": ["privacy", "plan", "--json"],
    "public": ["anonymize", "db.duckdb", "--job", "job.toml", "--replace", "--public"],
    "certificate": ["anonymize", "db.duckdb", "--job", "job.toml", "--replace", "--certificate"],
    "doctor": ["doctor", "--json"],
    "report": ["report", "first", "-o"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OTHERS)
def test_no_other_finding_takes_the_place_of_a_result(name, folder, capsys):
    assert anonymize(capsys, "--json", "first.json").code == 0
    (folder / "first.json").rename(folder / "first")
    (folder / "second").write_bytes((folder / "first").read_bytes())
    before = tree(folder)
    ran = run(capsys, *OTHERS[name], "second")
    assert ran.code == 2 and "second holds the result of a release, which would be lost" in ran.err
    assert tree(folder) == before


MADE = ["anonymize", "db.duckdb", "--job", "job.toml", "--replace", "--json"]


@pytest.mark.parametrize("name", ["verify", "explore", "public", "certificate", "doctor", "report", "anonymize"])
def test_no_finding_takes_the_place_of_a_key(name, folder, capsys):
    """Also of one that the command does not read; without it pseudonyms and ledgers cannot be gone on with."""
    assert anonymize(capsys, "--json", "first.json").code == 0
    (folder / "first.json").rename(folder / "first")
    (folder / "key").write_text("0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0\n")
    before = tree(folder)
    ran = run(capsys, *OTHERS.get(name, MADE), "key")
    assert ran.code == 2 and "key holds a secret key, which would be lost" in ran.err
    assert tree(folder) == before


@pytest.mark.parametrize("name", ["verify", "explore", "public", "doctor", "anonymize"])
def test_no_other_finding_takes_the_place_of_a_certificate(name, folder, capsys):
    assert anonymize(capsys, "--certificate", "proof.json").code == 0
    before = tree(folder)
    ran = run(capsys, *OTHERS.get(name, MADE), "proof.json")
    assert ran.code == 2 and "proof.json holds the certificate of a release, which would be lost" in ran.err
    assert tree(folder) == before
    assert anonymize(capsys, "--replace", "--certificate", "proof.json").code == 0


LEDGER = ["anonymize", "db", "--job", "job", "--ledger", "led", "--key-file", "key"]
READ = {
    "doctor, the source": (["doctor", "db", "--json"], "db"),
    "doctor, the job": (["doctor", "db", "--job", "job", "--json"], "job"),
    "anonymize, the key": (["anonymize", "db", "--job", "job", "--key-file", "key", "--json"], "key"),
    "anonymize, the key as certificate": (
        ["anonymize", "db", "--job", "job", "--key-file", "key", "--certificate"],
        "key",
    ),
    "verify, the key": (["verify", "db", "--job", "job", "--key-file", "key", "--json"], "key"),
    "verify, the ledger": (["verify", "db", "--job", "job", "--ledger", "key", "--json"], "key"),
    "anonymize, the ledger's lock": ([*LEDGER, "--json"], "led.lock"),
    "anonymize, the ledger's mark": ([*LEDGER, "--certificate"], "led.pending"),
    "report, the job": (["report", "first", "--about", "job", "-o"], "job"),
}


@pytest.mark.parametrize("name", READ)
def test_nothing_that_is_read_is_written_over(name, folder, capsys):
    assert anonymize(capsys, "--json", "first.json").code == 0
    for old, new in (("first.json", "first"), ("db.duckdb", "db"), ("job.toml", "job")):
        (folder / old).rename(folder / new)
    (folder / "key").write_text("0123456789abcdef" * 4)
    before = tree(folder)
    arguments, file = READ[name]
    ran = run(capsys, *arguments, file)
    assert ran.code == 2 and f"{file} is what the run reads; name another file" in ran.err
    assert tree(folder) == before


def test_a_failure_takes_the_place_of_a_failure(folder, capsys):
    for only in ("nobody", "none"):
        assert anonymize(capsys, "--json", "first.json", "--only", only).code == 2
        assert only in json.loads((folder / "first.json").read_text())["error"]["message"]
    assert not (folder / "first.error.json").exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "content", ["mine", '{"audience": "x", "error": {}}', "[]", '{"error": "mine"}', '{"error": {"code": 1}}']
)
def test_a_file_of_anothers_beside_the_result_is_left(content, folder, capsys):
    assert anonymize(capsys, "--json", "first.json").code == 0
    (folder / "first.error.json").write_text(content)
    before = tree(folder)
    ran = anonymize(capsys, "--json", "first.json")
    assert ran.code == 2
    assert "first.error.json is not a failure of sqldeid; the failure was not written" in ran.err
    assert tree(folder) == before
    assert anonymize(capsys, "--json", "first.json", "--replace").code == 0
    assert (folder / "first.error.json").read_text() == content


@pytest.mark.sampled(1)
@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("file", ["first", "first.json", "a.b.json"])
def test_neither_ctrl_c_nor_a_bug_takes_a_results_place(raised, file, folder):
    (folder / file).write_text('{"audience": "data holder only", "releases": {}, "job_sha256": ""}')
    code = (
        "import sys, sqldeid\nfrom sqldeid.cli import main\n"
        f"def broken(*_, **__):\n    raise {raised.__name__}()\n"
        "sqldeid.anonymize = broken\nmain(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, "anonymize", "db.duckdb", "--job", "job.toml", "--json", file]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    kind, number = ("interrupted", 130) if raised is KeyboardInterrupt else ("internal", 1)
    aside = {"first": "first.error", "first.json": "first.error.json", "a.b.json": "a.b.error.json"}[file]
    assert done.returncode == number and "Traceback" not in done.stderr
    assert json.loads((folder / aside).read_text())["error"]["kind"] == kind
    assert json.loads((folder / file).read_text()).keys() == {"audience", "releases", "job_sha256"}


def test_a_failure_takes_the_place_of_what_can_be_found_again(folder, capsys):
    """Whoever reads the file of `verify` must not find that of yesterday; a certificate stays."""
    assert anonymize(capsys, "--certificate", "proof.json").code == 0
    asked = ("verify", "db.duckdb", "--job", "job.toml", "--json")
    assert run(capsys, *asked, "verified.json").code == 0
    write(folder / "out.duckdb", "UPDATE release.people SET illness = 'illness 0'")
    assert run(capsys, *asked, "verified.json").code == 4
    assert json.loads((folder / "verified.json").read_text())["error"]["kind"] == "verification"
    assert run(capsys, "verify", "db.duckdb", "--job", "none.toml", "--json", "proof.json").code == 2
    assert "certificates" in json.loads((folder / "proof.json").read_text())
    assert json.loads((folder / "proof.error.json").read_text())["error"]["kind"] == "job"
    assert not (folder / "verified.error.json").exists()


def test_json_is_not_written_into_a_parquet_release(folder, capsys):
    change(folder, 'into = "out.duckdb"', 'into = "out"\nas = "parquet"')
    assert anonymize(capsys).code == 0
    ran = anonymize(capsys, "--replace", "--json", "out/result.json")
    assert ran.code == 2
    assert "lies in the release" in ran.err
    assert sorted(p.name for p in (folder / "out").iterdir()) == ["all.parquet", "people.parquet"]


def test_control_characters_do_not_reach_the_terminal(folder, capsys):
    write(folder / "db.duckdb", 'ALTER TABLE people RENAME COLUMN sex TO "s\x1b[31mex"')
    (folder / "job.toml").write_text(JOB.replace("sex = {", '"s\\u001b[31mex" = {'))
    for more in ([], ["--plan", "-v", "--replace"]):
        ran = anonymize(capsys, *more)
        assert ran.code == 0
        assert "\x1b" not in ran.out
        assert "s\\x1b[31mex" in ran.out


def test_markup_in_a_name_is_text(folder, capsys):
    change(folder, "[tables.all]", '[tables."[red]"]')
    text = (folder / "job.toml").read_text().replace("tables.all.", 'tables."[red]".')
    (folder / "job.toml").write_text(text)
    assert "[red]" in anonymize(capsys).out


def test_a_bug_prints_its_type_alone(folder):
    code = (
        "import sys, sqldeid\nfrom sqldeid.cli import main\n"
        f"def broken(*_, **__):\n    raise ValueError(' '.join({SECRET.split()!r}))\n"  # as no line of code has it
        "sqldeid.anonymize = broken\nmain(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, "anonymize", "db.duckdb", "--job", "job.toml", "--json", "-"]
    plain, verbose = (
        subprocess.run([*command, *more], cwd=folder, capture_output=True, text=True) for more in ([], ["-v"])
    )
    for done in (plain, verbose):
        assert done.returncode == 1
        assert SECRET not in done.stderr + done.stdout
        assert "internal error (builtins.ValueError)" in done.stderr
        assert json.loads(done.stdout)["error"]["kind"] == "internal"
    assert len(plain.stderr.splitlines()) == 1
    assert "in broken" in verbose.stderr


def test_a_reader_that_leaves_early_is_no_traceback(folder):
    shell = f"{Path(sys.executable).with_name('sqldeid')} schema | head -c 10"
    done = subprocess.run(["bash", "-c", shell], cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""


@pytest.mark.deep
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_any_encoding_will_do(encoding, folder):
    (folder / "job.toml").write_text(
        JOB.replace("[tables.people", '[tables."Δ–€"').replace('"Δ–€"]', '"Δ–€"]').replace('"Δ–€".', '"Δ–€".')
    )
    for more in (["--plan"], ["--json", "-"]):
        ran = finish(start("anonymize", "db.duckdb", "--job", "job.toml", *more, cwd=folder, PYTHONIOENCODING=encoding))
        assert ran.code == 0, ran
    assert "Δ–€" in ran.json["releases"]


ENDLESS = """{ query = "SELECT a.* FROM people AS a, people AS b, people AS c, people AS d
    WHERE MD5(a.illness || b.illness || c.illness || d.illness) = 'never'" }""".replace("\n    ", " ")


def test_ctrl_c_ends_a_statement_that_would_take_days(tmp_path):
    write(
        tmp_path / "db.duckdb",
        "CREATE TABLE people AS SELECT i AS id, CAST(hash(i) % 90 AS INTEGER) AS age, "
        "CAST(hash(i + 1) % 100000 AS INTEGER) AS sex, 'x' || hash(i) AS illness, '' AS name "
        "FROM range(1000) AS r(i)",
    )
    (tmp_path / "job.toml").write_text(JOB.replace('"main.people"', ENDLESS))
    process = start(
        "anonymize", "db.duckdb", "--job", "job.toml", "--json", "-", "-v", cwd=tmp_path, PYTHONUNBUFFERED="1"
    )
    assert process.stderr is not None
    process.stderr.readline()  # the first step has begun
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    sent = time.monotonic()
    ran = finish(process)
    assert time.monotonic() - sent < 20
    assert ran.code == 130, ran
    assert ran.json["error"]["kind"] == "interrupted"
    assert "nterrupted" in ran.err
    assert "Traceback" not in ran.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["db.duckdb", "job.toml"]


LONG = "x" * 300
"""A name that no file system takes: it answers otherwise than that there is no such file."""


@pytest.mark.parametrize(
    "command",
    [
        ("anonymize", LONG, "--job", "job.toml"),
        ("init", LONG),
        ("explore", LONG, "--table", "people"),
        ("doctor", LONG),
        ("anonymize", "db.duckdb", "--job", "long.toml"),
        ("anonymize", "db.duckdb", "--job", "long.toml", "--plan"),
        ("verify", "db.duckdb", "--job", "long.toml"),
        ("anonymize", "db.duckdb", "--job", "job.toml", "--ledger", LONG, "--key-file", "key"),
    ],
    ids=lambda command: " ".join(word[:12] for word in command),
)
def test_a_path_that_the_system_does_not_take_is_named(command, folder, capsys):
    change(folder, '"out.duckdb"', f'"{LONG}"')
    (folder / "job.toml").rename(folder / "long.toml")
    (folder / "job.toml").write_text(JOB)
    (folder / "key").write_text("0123456789abcdef" * 4)
    before = tree(folder)
    ran = run(capsys, *command)
    assert ran.code == 2
    assert f"{LONG} cannot be looked up (File name too long)" in ran.err.replace(": cannot", " cannot")
    assert tree(folder) == before


def test_doctor_and_evidence_tell_of_such_a_path_as_well(folder, capsys):
    change(folder, '"out.duckdb"', f'"{LONG}"')
    ran = run(capsys, "doctor", "db.duckdb", "--job", "job.toml")
    assert "release.into" in ran.out and "File name too long" in ran.out
    command = [sys.executable, "-m", "sqldeid", "evidence", LONG, "-o", "evidence.zip"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "does not take a path" in done.stderr


def test_a_password_in_a_path_that_is_too_long_is_not_shown(capsys, folder):
    ran = run(capsys, "init", f"postgresql:/me:{SECRET}@host/{LONG}")
    assert ran.code == 2
    assert SECRET not in ran.err + ran.out
