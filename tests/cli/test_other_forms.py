"""What a later version wrote in another form is refused in one line by every command, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqldeid.errors import JobError
from sqldeid.report import holders_page
from sqldeid.report.page import public_page
from sqldeid.run import Options, anonymize
from tests.support.cli import Ran, run, tree
from tests.support.later import MARKS, SAID, a_later_version

RUN = ("anonymize", "db.duckdb", "--job", "job.toml", "--replace", "--without-ledger")
VERIFY = ("verify", "db.duckdb", "--job", "job.toml")
READERS: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "report": (2, "r.json: the result was", ("report", "r.json", "-o", "page.html")),
    "public report": (2, "p.json: the result was", ("report", "p.json", "--public", "-o", "page.html")),
    "about": (2, "r.json: the result was", ("report", "r.json", "-o", "page.html", "--about", "job.toml")),
    "evidence": (2, "r.json: the result was", ("evidence", "r.json", "-o", "e.zip")),
    "proof": (2, "--certificate: c.json was", ("evidence", "sound.json", "-o", "e.zip", "--certificate", "c.json")),
    "policy": (2, "--policy: r.json was", (*RUN, "--only", "people", "--policy", "r.json")),
    "verify": (4, "tables.people: the certificate was", (*VERIFY, "--certificate", "c.json")),
}
"""Who reads what a run leaves: the exit code, how it is told, and the command."""


@pytest.fixture
def made(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a run, and all that it leaves."""
    left = ("--json", "r.json", "--certificate", "c.json", "--public", "p.json")
    assert run(capsys, *RUN[:4], *left).code == 0
    (folder / "sound.json").write_bytes((folder / "r.json").read_bytes())
    return folder


def mark(folder: Path, form: object) -> None:
    """Say that a later version wrote the results and the certificates of a folder."""
    for name in ("r.json", "p.json", "c.json"):
        content = json.loads((folder / name).read_text())
        for written in content["certificates"].values() if "certificates" in content else (content,):
            written["format"] = form
        (folder / name).write_text(json.dumps(content))


def refused(ran: Ran, code: int, told: str) -> None:
    error = " ".join(ran.err.split())
    assert (ran.code, ran.out) == (code, ""), error
    assert f"{told} {SAID}" in error and "Traceback" not in error


@pytest.mark.sampled(10)
@pytest.mark.parametrize("form", MARKS, ids=repr)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_of_another_form_is_refused(reader, form, made, capsys):
    mark(made, form)
    before = tree(made)
    code, told, command = READERS[reader]
    refused(run(capsys, *command), code, told)
    assert tree(made) == before


def test_the_first_form_may_be_said_and_no_other(made, capsys):
    for form in (1, 2):
        mark(made, form)
        codes = {reader: run(capsys, *command).code for reader, (_, _, command) in READERS.items()}
        assert codes == {reader: code if form == 2 else 0 for reader, (code, _, _) in READERS.items()}


def test_a_note_of_another_form_is_refused(made, capsys):
    with a_later_version():
        assert run(capsys, *RUN, "--only", "all").code == 0
    before = tree(made)
    told = "job.toml: tables.all: the release that is there was"
    refused(run(capsys, *VERIFY), 4, told)
    refused(run(capsys, "assess", "db.duckdb", "--job", "job.toml", "--release"), 4, told)
    for only in ((), ("--only", "people"), ("--only", "all")):
        refused(run(capsys, *RUN, *only), 2, told.removeprefix("job.toml: "))
    assert tree(made) == before


@pytest.mark.parametrize("kind", ["table", "child", "series", "events", "of tomorrow"])
@pytest.mark.parametrize("page", [holders_page, public_page])
def test_a_page_is_refused_whatever_kinds_the_result_has(page, kind):
    with pytest.raises(JobError, match=f"the result was {SAID}"):
        page({"format": 2, "releases": {"x": {"kind": kind}}})


def test_a_policy_that_a_program_gives_is_refused(made):
    import sqldeid

    given: dict[str, Any] = {**json.loads((made / "r.json").read_text()), "format": 2}
    with pytest.raises(JobError, match=f"--policy: the result was {SAID}"):
        anonymize(sqldeid.Job.load("job.toml"), "db.duckdb", options=Options(policy=given, replace=True))
