"""House rules on the command line: a job that breaks them is refused before anything runs, whoever names them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import sqldeid
from tests.support.cli import JOB, run, tree

ON = ("db.duckdb", "--job", "job.toml")
LAX = 'organisation = "Example Hospital"\nversion = "7"\n[tables]\nleast_k = 2\n'
STRICT = 'organisation = "Example Hospital"\n[tables]\nleast_k = 3\nsensitive_needs = ["l_diversity"]\n'
COMMANDS = [("anonymize", *ON), ("anonymize", *ON, "--plan"), ("verify", *ON)]


@pytest.fixture
def rules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with lax and with strict rules."""
    monkeypatch.delenv("SQLDEID_HOUSE_RULES", raising=False)
    (folder / "lax.toml").write_text(LAX)
    (folder / "strict.toml").write_text(STRICT)
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_job_that_breaks_rules_is_refused_before_anything_runs(command, rules, capsys):
    before = tree(rules)
    ran = run(capsys, *command, "--house-rules", "strict.toml")
    assert (ran.code, ran.out) == (2, "")
    assert tree(rules) == before
    told = " ".join(ran.err.split())
    assert "job.toml: tables.people.columns.illness: is sensitive, and must be under l_diversity" in told
    assert "job.toml: tables.all.privacy.k: must be at least 3 (house rules strict.toml: tables.least_k)" in told
    assert "have an exception approved" in told


def test_only_the_releases_that_are_made_are_looked_at(rules, capsys):
    (rules / "strict.toml").write_text(STRICT.replace('sensitive_needs = ["l_diversity"]', ""))
    assert run(capsys, "anonymize", *ON, "--house-rules", "strict.toml", "--only", "people").code == 0
    assert run(capsys, "anonymize", *ON, "--house-rules", "strict.toml", "--only", "all", "--replace").code == 2


def test_a_trade_off_is_held_to_all_but_what_it_varies(rules, capsys):
    asked = ("tradeoff", *ON, "--k", "2", "--limit", "0", "--only", "all")
    assert run(capsys, *asked, "--house-rules", "strict.toml").code == 0  # k = 2 is asked for in any case
    (rules / "strict.toml").write_text(STRICT + 'forbidden_roles = ["quasi-identifying"]\n')
    assert "tables.all.columns.sex.role" in run(capsys, *asked, "--house-rules", "strict.toml").err


def test_the_result_tells_that_rules_were_met_and_the_public_one_nothing(rules, capsys):
    asked = ("--house-rules", "lax.toml", "--json", "result.json", "--public", "public.json")
    ran = run(capsys, "anonymize", *ON, *asked)
    assert ran.code == 0, ran.err
    assert "House rules of Example Hospital (lax.toml) are met" in ran.out
    assert "sqldeid verify db.duckdb --job job.toml --house-rules lax.toml" in ran.out
    (told,) = json.loads((rules / "result.json").read_text())["house_rules"]
    digest = hashlib.sha256((rules / "lax.toml").read_bytes()).hexdigest()
    assert told == {
        "file": "lax.toml",
        "organisation": "Example Hospital",
        "version": "7",
        "sha256": digest,
        "met": True,
        "exceptions": [],
    }
    public = (rules / "public.json").read_text()
    assert digest not in public
    assert "house_rules" not in public
    checked = run(capsys, "verify", *ON, "--house-rules", "lax.toml", "--json", "-")
    assert checked.json["house_rules"] == [told]


def test_an_exception_is_told_wherever_the_rules_are(rules, capsys):
    digest = hashlib.sha256(JOB.encode()).hexdigest()
    (rules / "lax.toml").write_text(
        LAX.replace("2", "3")
        + '[approvers]\n"A. Board" = ["tables.least_k"]\n[[exceptions]]\n'
        + f'job_sha256 = "{digest}"\nrelease = "all"\nkey = "tables.least_k"\nvalue = 2\nreason = "sex alone"\n'
        + 'approved_by = "A. Board"\napproved_on = 2020-01-31\n'
    )
    ran = run(capsys, "anonymize", *ON, "--house-rules", "lax.toml", "--json", "result.json")
    assert ran.code == 0, ran.err
    assert "but for tables.least_k of all by leave of A. Board" in " ".join(ran.out.split())
    (told,) = json.loads((rules / "result.json").read_text())["house_rules"]
    (one,) = told["exceptions"]
    assert (one["value"], one["reason"], one["approved_on"]) == (2, "sex alone", "2020-01-31")
    (rules / "job.toml").write_text(JOB + "\n# touched\n")
    assert run(capsys, "verify", *ON, "--house-rules", "lax.toml").code == 2


def test_the_environment_binds_whatever_else_is_named(rules, capsys, monkeypatch):
    monkeypatch.setenv("SQLDEID_HOUSE_RULES", "strict.toml")
    assert run(capsys, "anonymize", *ON).code == 2
    assert run(capsys, "anonymize", *ON, "--house-rules", "lax.toml").code == 2
    with pytest.raises(sqldeid.JobError, match="house rules"):
        sqldeid.anonymize(sqldeid.Job.load("job.toml"), "db.duckdb")
    monkeypatch.setenv("SQLDEID_HOUSE_RULES", str(rules / "lax.toml"))
    ran = run(capsys, "anonymize", *ON, "--house-rules", "lax.toml", "--json", "-")
    assert len(ran.json["house_rules"]) == 1  # one file by two names


@pytest.mark.parametrize("named", ["", " ", "nowhere.toml", "."])
def test_rules_that_are_not_there_are_not_taken_for_none(named, rules, capsys, monkeypatch):
    monkeypatch.setenv("SQLDEID_HOUSE_RULES", named)
    before = tree(rules)
    for command in COMMANDS:
        assert run(capsys, *command).code == 2
    assert tree(rules) == before


def test_a_run_is_held_to_its_options_and_a_plan_is_not(rules, capsys):
    (rules / "lax.toml").write_text(LAX + '[run]\nrequired_options = ["certificate"]\n')
    named = ("--house-rules", "lax.toml")
    refused = run(capsys, "anonymize", *ON, *named)
    assert (refused.code, "--certificate: must be given" in refused.err) == (2, True)
    assert run(capsys, "anonymize", *ON, *named, "--plan").code == 0
    assert run(capsys, "anonymize", *ON, *named, "--certificate", "proof.json").code == 0
    assert run(capsys, "verify", *ON, *named).code == 0


def test_no_output_takes_the_place_of_the_rules(rules, capsys):
    for command in (("anonymize", *ON), ("verify", *ON), ("tradeoff", *ON)):
        ran = run(capsys, *command, "--house-rules", "lax.toml", "--json", "lax.toml")
        assert ran.code == 2
    assert (rules / "lax.toml").read_text() == LAX
