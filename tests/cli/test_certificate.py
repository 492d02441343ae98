"""Certificates on the command line: written with a release, and checked again."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import sqldeid
from tests.support.cli import JOB, Ran, run, tree
from tests.support.files import write

GIVEN = ("db.duckdb", "--job", "job.toml")


def anonymize(capsys: pytest.CaptureFixture[str], *more: object) -> Ran:
    return run(capsys, "anonymize", *GIVEN, *more)


def verify(capsys: pytest.CaptureFixture[str], *more: object) -> Ran:
    return run(capsys, "verify", *GIVEN, *more)


def search(folder: Path, text: str) -> None:
    """Give the release `people` this search."""
    (folder / "job.toml").write_text(JOB.replace("[tables.all]", f"[tables.people.search]\n{text}\n\n[tables.all]"))


def test_a_certificate_is_written_and_holds(folder, capsys):
    ran = anonymize(capsys, "--certificate", "proof.json", "--json", "-")
    assert ran.code == 0, ran
    assert {r["search"]["certificate"] for r in ran.json["releases"].values()} == {"proof.json"}
    written = json.loads((folder / "proof.json").read_text())
    assert "data holder" in written["audience"]
    assert set(written["certificates"]) == {"people", "all"}
    assert stat.S_IMODE((folder / "proof.json").stat().st_mode) == 0o600
    before = tree(folder)
    plain, found = (
        verify(capsys, "--certificate", "proof.json"),
        verify(capsys, "--certificate", "proof.json", "--json", "-"),
    )
    assert (plain.code, found.code) == (0, 0)
    assert tree(folder) == before
    words = " ".join(plain.out.split())
    assert "no node is better: loss 0" in words
    for name, release in found.json["releases"].items():
        proof = release["certificate"]
        assert proof["optimal"] is True
        assert proof["node"] == release["node"] == ran.json["releases"][name]["node"]
        assert proof["value"] == proof["bound"] == ran.json["releases"][name]["loss"]["loss"]
        assert proof["boxes"] > 0
        assert f"{proof['nodes']} node" in words


def test_the_library_checks_the_same_file(folder, capsys):
    anonymize(capsys, "--certificate", "proof.json")
    certificates = json.loads((folder / "proof.json").read_text())["certificates"]
    proven = sqldeid.verify_certificates(sqldeid.Job.load("job.toml"), "db.duckdb", certificates)
    assert proven["people"].optimal


def test_without_the_option_there_is_none(folder, capsys):
    found = anonymize(capsys, "--json", "-").json["releases"]["people"]
    assert found["search"]["certificate"] is None
    assert "certificate" not in found


def test_a_limited_search_proves_its_gap(folder, capsys):
    search(folder, "checks_limit = 1\nloss = 'entropy'")
    ran = anonymize(capsys, "--only", "people", "--certificate", "proof.json", "--json", "result.json")
    assert ran.code == 0, ran
    gap = json.loads((folder / "result.json").read_text())["releases"]["people"]["search"]["gap"]
    assert gap > 0
    assert f"not proven least: at most {gap:.6g} too high" in " ".join(ran.out.split())
    words = " ".join(verify(capsys, "--only", "people", "--certificate", "proof.json").out.split())
    assert "no node loses less than" in words
    assert f"at most {gap:.6g} above" in words


def test_no_certificate_of_a_baseline(folder, capsys):
    search(folder, 'method = "datafly"')
    ran = anonymize(capsys, "--certificate", "proof.json")
    assert ran.code == 0
    assert "there is no certificate: datafly proves nothing" in " ".join(ran.out.split())
    assert set(json.loads((folder / "proof.json").read_text())["certificates"]) == {"all"}
    missing = verify(capsys, "--certificate", "proof.json")
    assert missing.code == 4
    assert "tables.people: datafly proves nothing, so there is no certificate to check" in missing.err
    assert verify(capsys, "--only", "all", "--certificate", "proof.json").code == 0


def test_a_certificate_that_does_not_hold_is_four(folder, capsys):
    anonymize(capsys, "--certificate", "proof.json")
    written = json.loads((folder / "proof.json").read_text())
    written["certificates"]["people"]["suppressed"] += 1
    (folder / "wrong.json").write_text(json.dumps(written))
    ran = verify(capsys, "--certificate", "wrong.json", "--json", "-")
    assert ran.code == 4
    assert ran.json["error"]["kind"] == "verification"
    assert "the certificate does not hold" in ran.err


def test_a_certificate_of_another_node_is_four(folder, capsys):
    """A true proof, but not of what was released."""
    anonymize(capsys, "--certificate", "proof.json")
    search(folder, "checks_limit = 1")
    other = anonymize(capsys, "--replace", "--json", "-").json["releases"]["people"]["node"]
    certificate = json.loads((folder / "proof.json").read_text())["certificates"]["people"]
    assert list(other.values()) != certificate["node"]
    (folder / "job.toml").write_text(JOB)
    ran = verify(capsys, "--certificate", "proof.json")
    assert ran.code == 4
    assert "the certificate is of another node than the release's" in ran.err


def test_a_changed_source_is_four(folder, capsys):
    anonymize(capsys, "--certificate", "proof.json")
    write(folder / "db.duckdb", "DELETE FROM people WHERE id = 7")
    assert verify(capsys, "--certificate", "proof.json").code == 4


def test_the_release_must_be_there_too(folder, capsys):
    """A proof alone is not a release: what `verify` says without the file stands."""
    anonymize(capsys, "--certificate", "proof.json")
    write(folder / "out.duckdb", "DROP TABLE release.people")
    ran = verify(capsys, "--certificate", "proof.json")
    assert ran.code == 4
    assert "people" in ran.err


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("no json", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a certificate"),
        ('{"certificates": []}', "is not a certificate"),
        ('{"releases": {}}', "is not a certificate"),
    ],
)
def test_what_is_no_certificate_is_two(content, said, folder, capsys):
    assert anonymize(capsys).code == 0
    if content is not None:
        (folder / "proof.json").write_text(content)
    ran = verify(capsys, "--certificate", "proof.json", "--json", "-")
    assert ran.code == 2
    assert said in ran.err
    assert (ran.json["error"]["key"], ran.json["error"]["kind"]) == ("--certificate", "job")


@pytest.mark.parametrize("content", ['{"certificates": {"people": 1}}', '{"certificates": {"people": {"node": [1]}}}'])
def test_a_broken_certificate_is_four(content, folder, capsys):
    assert anonymize(capsys).code == 0
    (folder / "proof.json").write_text(content)
    assert verify(capsys, "--certificate", "proof.json").code == 4


@pytest.mark.parametrize("file", ["none/proof.json", "db.duckdb", "job.toml", ".", "out.duckdb", "-"])
def test_the_file_is_looked_at_before_the_run(file, folder, capsys):
    before = tree(folder)
    ran = anonymize(capsys, "--certificate", file)
    assert ran.code == 2
    assert "--certificate" in ran.err
    assert tree(folder) == before


def test_one_file_cannot_be_two(folder, capsys):
    assert anonymize(capsys, "--certificate", "a.json", "--json", "a.json").code == 2
    anonymize(capsys, "--certificate", "proof.json")
    before = tree(folder)
    ran = verify(capsys, "--certificate", "proof.json", "--json", "proof.json")
    assert ran.code == 2
    assert tree(folder) == before


def test_the_plan_tells_what_checking_takes(folder, capsys):
    search(folder, 'method = "datafly"')
    before = tree(folder)
    ran = anonymize(capsys, "--plan", "--certificate", "proof.json")
    words = " ".join(ran.out.split())
    assert ran.code == 0
    assert "there will be no certificate: datafly proves nothing" in words
    assert "prove_fold" in words
    plan = anonymize(capsys, "--plan", "--certificate", "proof.json", "--json", "-").json["plan"]
    assert plan["people"]["certificate"] is None
    assert "tables/certificate/prove_nodes" in {s["template"] for s in plan["all"]["certificate"]}
    assert tree(folder) == before


CUT = """
[tables.cut]
source = "people"
person = "id"
columns = { age = { role = "quasi-identifying", hierarchy = { median = "range" } } }
privacy = { k = 2 }
search = { method = "mondrian" }
"""


def test_a_method_that_proves_nothing_has_none_beside_one_that_does(folder, capsys):
    (folder / "job.toml").write_text(JOB + CUT)
    ran = anonymize(capsys, "--certificate", "proof.json", "--json", "-")
    assert ran.code == 0, ran
    assert any("there is no certificate: mondrian" in w for w in ran.json["releases"]["cut"]["warnings"])
    asked = verify(capsys, "--certificate", "proof.json")
    assert asked.code == 4
    assert "mondrian proves nothing" in " ".join(asked.err.split()) and "--only" in asked.err
    assert verify(capsys, "--certificate", "proof.json", "--only", "people", "--only", "all").code == 0


CHANGES = {
    "for whom": (lambda proof: proof.update(audience="for everybody"), "audience"),
    "for whom, left out": (lambda proof: proof.pop("audience"), "audience"),
    "one key more": (lambda proof: proof.update(choose="by-k"), "has a key"),
    "a number as true": (lambda proof: proof.update(format=True), "in a form that this one cannot read"),
    "a number with a point": (lambda proof: proof.update(k=float(proof["k"])), "its k are not"),
    "columns in another order": (lambda proof: proof.update(columns=turned(proof["columns"])), "another order"),
    "an exponent": (lambda proof: proof.update(value="1e999999999"), "not a certificate"),
    "an exponent of the bound": (lambda proof: proof.update(bound="1E-999999999"), "not a certificate"),
    "a number for a fraction": (lambda proof: proof.update(bound=0), "not a certificate"),
}


def turned(columns: dict[str, object]) -> dict[str, object]:
    return dict(reversed(columns.items()))


@pytest.mark.parametrize("search_", ["", 'method = "local"'])
def test_no_change_of_a_certificate_passes(search_, folder, capsys):
    """Nor takes time: a fraction as a decimal with a great exponent would take all memory."""
    search(folder, search_)
    assert anonymize(capsys, "--certificate", "proof.json", "--only", "people").code == 0
    proof = json.loads((folder / "proof.json").read_text())["certificates"]["people"]
    job = sqldeid.Job.load("job.toml")
    for name, (change, said) in CHANGES.items():
        if name == "an exponent" and search_:
            continue
        wrong = json.loads(json.dumps(proof))
        change(wrong)
        with pytest.raises(sqldeid.VerificationError, match=said):
            sqldeid.verify_certificates(job, "db.duckdb", {"people": wrong}, options=sqldeid.Options(only=("people",)))


def test_a_certificate_that_two_readers_read_differently_is_refused(folder, capsys):
    anonymize(capsys, "--certificate", "proof.json")
    text = (folder / "proof.json").read_text()
    (folder / "proof.json").write_text(text.replace('"k": ', '"k": 100, "k": ', 1))
    ran = verify(capsys, "--certificate", "proof.json")
    assert ran.code == 2 and "holds a key twice" in ran.err
