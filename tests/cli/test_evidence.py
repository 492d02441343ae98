"""`sqldeid evidence` on the command line: from a run to its archive, and the check of it later."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from tests.support.cli import Ran, run, tree

MADE = ("--json", "result.json", "--certificate", "proof.json")
TAKEN = ("--job", "job.toml", "--certificate", "proof.json", "--release", "out.duckdb")


@pytest.fixture
def made(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a run."""
    assert run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", *MADE).code == 0
    return folder


def evidence(capsys: pytest.CaptureFixture[str], *more: object) -> Ran:
    return run(capsys, "evidence", *more)


def test_evidence_is_made_and_checked(made, capsys):
    before = tree(made)
    ran = evidence(capsys, "result.json", "-o", "evidence.zip", *TAKEN)
    assert (ran.code, ran.err) == (0, "")
    digest = hashlib.sha256((made / "evidence.zip").read_bytes()).hexdigest()
    assert ran.out.startswith("evidence.zip is for the data holder only.")
    assert f"SHA-256  {digest}\n" in ran.out
    assert stat.S_IMODE((made / "evidence.zip").stat().st_mode) == 0o600
    assert {k: v for k, v in tree(made).items() if k != "evidence.zip"} == before
    checked = evidence(capsys, "--check", "evidence.zip", *TAKEN, "--result", "result.json", "--sha256", digest)
    assert (checked.code, checked.err) == (0, "")
    assert "Same as given  result.json, job.toml, proof.json, out.duckdb" in " ".join(checked.out.split("\n"))
    assert evidence(capsys, "--check", "evidence.zip", "-q").out == ""


def test_what_was_changed_is_told_with_code_4(made, capsys):
    assert evidence(capsys, "result.json", "-o", "evidence.zip", *TAKEN, "-q").out == ""
    (made / "out.duckdb").write_bytes((made / "out.duckdb").read_bytes() + b"x")
    changed = evidence(capsys, "--check", "evidence.zip", "--release", "out.duckdb")
    assert (changed.code, changed.out) == (4, "")
    assert "out.duckdb is not what the evidence was made of" in changed.err
    assert evidence(capsys, "--check", "evidence.zip").code == 0
    assert evidence(capsys, "--check", "evidence.zip", "--sha256", "0" * 64).code == 4
    (made / "evidence.zip").write_bytes((made / "evidence.zip").read_bytes()[:-1])
    assert evidence(capsys, "--check", "evidence.zip").code == 4
    assert evidence(capsys, "--check", "result.json").code == 4


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("result.json",), "-o: is missing"),
        (("result.json", "-o", "-"), "is not printed"),
        (("result.json", "-o", "e.html"), "ends in .zip"),
        (("result.json", "-o", "nowhere/e.zip"), "there is no folder"),
        (("result.json", "-o", "."), "folder"),
        (("result.json", "-o", "result.json"), "-o"),
        (("result.json", "-o", "e.zip", "--release", "."), "lies in, what the evidence is made of"),
        (("result.json", "-o", "e.zip", "--result", "result.json"), "--result: goes with --check"),
        (("result.json", "-o", "e.zip", "--sha256", "0"), "--sha256: goes with --check"),
        (("none.json", "-o", "e.zip"), "cannot be read"),
        (("job.toml", "-o", "e.zip"), "is not JSON"),
        (("result.json", "-o", "e.zip", "--job", "none"), "--job: none cannot be read"),
        (("result.json", "-o", "e.zip", "--house-rules", "job.toml"), "is not what the run was held to"),
        (("--check", "e.zip", "-o", "e.zip"), "remove it"),
        (("--check", "result.json", "--sha256", "xyz"), "64 hexadecimal digits"),
        (("--check", "none.zip"), "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused(arguments, told, made, capsys):
    before = tree(made)
    ran = evidence(capsys, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert told in " ".join(ran.err.split())
    assert tree(made) == before


def test_rules_are_taken_in(folder, capsys):
    (folder / "rules.toml").write_text('organisation = "House"\n[tables]\nleast_k = 2\n')
    run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--house-rules", "rules.toml", *MADE)
    assert evidence(capsys, "result.json", "-o", "evidence.zip", "--house-rules", "rules.toml").code == 0
    assert "rules.toml" in evidence(capsys, "--check", "evidence.zip", "--house-rules", "rules.toml").out
    (folder / "rules.toml").write_text('organisation = "House"\n[tables]\nleast_k = 1\n')
    assert evidence(capsys, "--check", "evidence.zip", "--house-rules", "rules.toml").code == 4
