"""Outputs that are no plain files, streams that cannot be written, and signals that end a run."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

from tests.support.cli import JOB, PROGRAM, run, tree

ANONYMIZE = ("anonymize", "db.duckdb", "--job", "job.toml")
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="not applicable: this system has no /dev/full")


def shell(folder: Path, *arguments: str, to: str = "", before: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program as a line of bash; `to` is what follows it."""
    line = f"{before} {shlex.join([str(PROGRAM), *arguments])} {to}"
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("option", ["--json", "--public", "--certificate"])
def test_a_pipe_is_written_through_and_stays(option, folder, capsys):
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()
    ran = run(capsys, *ANONYMIZE, option, "pipe")
    reader.join(10)
    assert ran.code == 0, ran
    assert json.loads(read[0])
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


def test_a_link_stays_and_its_file_is_replaced(folder, capsys):
    (folder / "there").mkdir()
    real = folder / "there/result.json"
    real.write_text('{"audience": "the data holder"}')
    real.chmod(0o640)
    (folder / "link.json").symlink_to("there/result.json")
    (folder / "new.json").symlink_to("there/new.json")
    assert run(capsys, *ANONYMIZE, "--json", "link.json", "--public", "new.json").code == 0
    assert (folder / "link.json").is_symlink()
    assert (folder / "new.json").is_symlink()
    assert "people" in json.loads(real.read_text())["releases"]
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert json.loads((folder / "there/new.json").read_text())
    assert sorted(p.name for p in (folder / "there").iterdir()) == ["new.json", "result.json"]


def test_a_device_may_be_named_by_two_options(folder, capsys):
    ran = run(capsys, *ANONYMIZE, "--json", os.devnull, "--public", os.devnull)
    assert ran.code == 0, ran
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.deep
def test_open_descriptors_are_written(folder):
    done = shell(folder, *ANONYMIZE, "--json", "/dev/stdout", "--public", "/dev/fd/3", to="3> public.json > out.json")
    assert done.returncode == 0, done
    assert json.loads((folder / "out.json").read_text())["releases"].keys() == {"people", "all"}
    assert json.loads((folder / "public.json").read_text())
    assert "Done in" in done.stderr


def test_the_summary_gives_way_to_the_public_result(folder, capsys):
    ran = run(capsys, *ANONYMIZE, "--public", "-")
    assert (ran.code, ran.json["releases"].keys()) == (0, {"people", "all"})
    assert "Done in" in ran.err


def test_what_cannot_be_written_is_found_before_the_run(folder, capsys):
    (folder / "loop").symlink_to("loop")
    (folder / "astray").symlink_to("none/result.json")
    before = tree(folder)
    for option in ("--json", "--public", "--certificate"):
        for file, said in (("loop", "itself"), ("astray", "no folder"), ("/dev/fd/99", "not open")):
            ran = run(capsys, *ANONYMIZE, option, file)
            assert ran.code == 2, ran
            assert option in ran.err
            assert said in ran.err
    assert tree(folder) == before
    assert (folder / "loop").is_symlink()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="not applicable: root may write everything")
def test_a_protected_file_is_found_before_the_run(folder, capsys):
    (folder / "result.json").write_text("{}")
    (folder / "result.json").chmod(0o400)
    before = tree(folder)
    assert run(capsys, *ANONYMIZE, "--json", "result.json").code == 2
    assert tree(folder) == before


@pytest.mark.parametrize("other", ["-", "/dev/stdout", "/dev/fd/1"])
def test_two_results_do_not_share_standard_output(other, folder, capsys):
    before = tree(folder)
    ran = run(capsys, *ANONYMIZE, "--json", "-", "--public", other)
    assert ran.code == 2
    assert "--json and --public both name standard output" in ran.err
    assert tree(folder) == before


def test_a_hierarchy_is_built_to_standard_output(folder, capsys):
    given = ("hierarchy", "build", "bands=5,20", "--db", "db.duckdb", "--table", "main.people", "--column", "age")
    assert run(capsys, *given, "-o", "age.csv").code == 0
    ran = run(capsys, *given, "-o", "-")
    assert ran.code == 0, ran
    assert ran.out == (folder / "age.csv").read_text()
    assert "60 leaves" in ran.err
    assert not (folder / "-").exists()
    assert shell(folder, *given, "-o", "/dev/fd/3", "-q", to="3> again.csv").returncode == 0
    assert (folder / "again.csv").read_bytes() == (folder / "age.csv").read_bytes()


FULL = "Error: standard output cannot be written: No space left on device"


@needs_full
@pytest.mark.parametrize("command", ["schema", "--help"])
def test_a_full_device_is_one_line(command, folder):
    for unbuffered in ("", "PYTHONUNBUFFERED=1"):
        done = shell(folder, command, to="> /dev/full", before=unbuffered)
        assert (done.returncode, done.stderr) == (1, f"{FULL}\n")


@pytest.mark.deep
@needs_full
def test_a_full_device_after_the_releases_were_published(folder):
    done = shell(folder, *ANONYMIZE, "--json", "result.json", to="> /dev/full")
    assert (done.returncode, done.stderr) == (1, f"{FULL}; the releases were published\n")
    assert "releases" in json.loads((folder / "result.json").read_text()), "the failure took the result's place"
    done = shell(folder, "verify", *ANONYMIZE[1:], "-q", "--json", "-", to="> /dev/full")
    assert (done.returncode, done.stderr) == (1, f"{FULL}\n")


@pytest.mark.deep
def test_a_closed_standard_output_is_one_line(folder):
    done = shell(folder, *ANONYMIZE, to=">&-")
    assert done.returncode == 1
    said = "Error: standard output cannot be written: Bad file descriptor; the releases were published\n"
    assert done.stderr == said
    assert (folder / "out.duckdb").exists()
    assert shell(folder, *ANONYMIZE, to="> /dev/null 2>&-").returncode == 2  # the release exists already


@pytest.mark.deep
def test_a_reader_that_leaves_makes_no_noise(folder):
    """One line tells that the release stands all the same; there is no traceback."""
    done = shell(folder, *ANONYMIZE, to="| head -1")
    assert done.stderr == "Note: what reads standard output has left before the end; the releases were published\n"
    assert (folder / "out.duckdb").exists()


LEFT = {
    "help": ("--help",),
    "schema": ("schema",),
    "plan": (*ANONYMIZE, "--plan"),
    "plan as JSON": (*ANONYMIZE, "--plan", "--json", "-"),
    "assess": ("assess", *ANONYMIZE[1:]),
    "assess as JSON": ("assess", *ANONYMIZE[1:], "--json", "-"),
    "verify": ("verify", *ANONYMIZE[1:]),
    "verify as JSON, of no release": ("verify", *ANONYMIZE[1:], "--json", "-"),
    "explore": ("explore", "db.duckdb", "--table", "people"),
    "init": ("init", "db.duckdb", "people", "-o", "-"),
    "tradeoff": ("tradeoff", *ANONYMIZE[1:], "--only", "people"),
    "evaluate": ("evaluate", *ANONYMIZE[1:], "--only", "people", "--label", "illness"),
    "hierarchy show": ("hierarchy", "show", "adult/sex"),
    "hierarchy check": ("hierarchy", "check", "few.csv", "--db", "db.duckdb", "--table", "people", "--column", "sex"),
    "privacy": ("privacy", "plan", "--k", "5", "--population", "1000"),
    "completion": ("completion", "fish"),
    "doctor": ("doctor", "db.duckdb"),
    "evidence": ("evidence", "result.json", "-o", "evidence.zip"),
    "report": ("report", "result.json", "-o", "page.html"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("command", LEFT)
def test_a_command_whose_reader_leaves_ends_as_it_would_have(command, folder):
    """All but `anonymize` ended with 1; the reader is gone here before the first word."""
    (folder / "few.csv").write_text("f;*\n")
    if "verify" in command or command == "report":
        assert shell(folder, *ANONYMIZE, "-q", "--json", "result.json").returncode == 0
    if "of no release" in command:
        (folder / "out.duckdb").unlink()
    given = [str(PROGRAM), *LEFT[command]]
    read = subprocess.run(given, cwd=folder, capture_output=True, text=True, timeout=60)
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        left = subprocess.run(given, cwd=folder, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(theirs)
    assert read.returncode == (4 if "of no release" in command else read.returncode)
    assert (left.returncode, left.stderr) == (read.returncode, read.stderr)
    assert "usage" not in read.stderr.casefold()


def test_one_is_singular(folder, capsys):
    (folder / "two.csv").write_text("a;*\nb;*\n")
    assert "2 leaves; numbered with 1 bit (63 at most)\n" in run(capsys, "hierarchy", "show", "two.csv").out
    (folder / "twice.csv").write_text("a;x;*\nb;x;*\na;y;*\n")
    assert "1 line repeats a value" in run(capsys, "hierarchy", "show", "twice.csv").err


def test_too_many_threads_are_refused(folder, capsys):
    for n in ("-1", "0", "1025", "9" * 30):
        ran = run(capsys, *ANONYMIZE, f"--threads={n}")
        assert ran.code == 2
        assert "--threads" in ran.err
    assert run(capsys, *ANONYMIZE, "--threads", "2").code == 0


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A folder where a run takes seconds."""
    with duckdb.connect(tmp_path / "db.duckdb") as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(hash(i) % 90 AS INTEGER) AS age, "
            "CAST(hash(i + 1) % 100000 AS INTEGER) AS sex, 'x' || hash(i) AS illness, '' AS name "
            "FROM range(2000000) AS r(i)"
        )
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sent", [(signal.SIGTERM,), (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM)])
def test_other_signals_are_as_ctrl_c(sent, large):
    (large / "spill").mkdir()
    more = ("--json", "result.json", "-v", "--temp-dir", "spill")
    process = subprocess.Popen([str(PROGRAM), *ANONYMIZE, *more], cwd=large, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()  # the first step has begun
    time.sleep(0.3)
    for number in sent:
        os.kill(process.pid, number)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 130, err
    assert "nothing was published" in err
    assert "Traceback" not in err
    assert json.loads((large / "result.json").read_text())["error"]["kind"] == "interrupted"
    assert sorted(p.name for p in large.iterdir()) == ["db.duckdb", "job.toml", "result.json", "spill"]
    assert list((large / "spill").iterdir()) == []


@pytest.mark.deep
def test_nohup_keeps_its_promise(folder):
    nohup = ["bash", "-c", f"trap '' HUP; exec {shlex.join([str(PROGRAM), *ANONYMIZE, '-v'])}"]
    process = subprocess.Popen(nohup, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()
    os.kill(process.pid, signal.SIGHUP)
    err = process.communicate(timeout=120)[1]
    assert process.returncode == 0, err
    assert (folder / "out.duckdb").exists()


@pytest.mark.parametrize(
    ("broken", "said", "published"),
    [
        ("sqldeid.Job.load", "Interrupted; nothing was published", False),
        ("sqldeid.run.orchestrator.open_run", "Interrupted; nothing was published", False),
        ("sqldeid.cli.releases.print_result", "Interrupted; the releases were published", True),
    ],
)
def test_ctrl_c_between_statements_says_what_was_published(broken, said, published, folder, capsys, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(broken, stop)
    ran = run(capsys, *ANONYMIZE, "--json", "result.json")
    assert (ran.code, ran.err) == (130, f"{said}\n")
    assert (folder / "out.duckdb").exists() is published
    assert ("releases" in json.loads((folder / "result.json").read_text())) is published


def test_the_program_leaves_the_process_as_it_was(folder, capsys):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP), sys.stdout
    run(capsys, "schema")
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP), sys.stdout) == before
