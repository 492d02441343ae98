"""Evidence: the same inputs give the same bytes, every change is seen, and nothing is claimed."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import JobError, SqldeidError, VerificationError
from sqldeid.evidence import Given, archive, check, make, making
from sqldeid.evidence.blocks import OPEN
from tests.support.examples import examples
from tests.support.later import SAID
from tests.support.pages import ALERT
from tests.support.report_kinds import events, series

JOB = """
[release]
into = "out.duckdb"
[tables.people]
source = "main.people"
person = "id"
[tables.people.columns]
age = { role = "quasi-identifying", hierarchy = { bands = [10, 50] } }
sex = { role = "quasi-identifying", hierarchy = "sex.csv" }
race = { role = "quasi-identifying", hierarchy = "adult/race", uncovered = "top" }
illness = { role = "sensitive" }
[tables.people.privacy]
k = 3
suppression_limit = 0.2
"""
RULES = 'organisation = "House"\nversion = "7"\n[tables]\nleast_k = 3\n'


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and what it read and wrote."""
    folder = tmp_path_factory.mktemp("ran")
    with duckdb.connect(folder / "db.duckdb") as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(15 + i % 60 AS INTEGER) AS age, "
            "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, 'White' AS race, 'ill ' || (i % 7) AS illness "
            "FROM range(60) AS r(i)"
        )
    (folder / "sex.csv").write_text("f;*\nm;*\n")
    (folder / "job.toml").write_text(JOB)
    (folder / "rules.toml").write_text(RULES)
    options = sqldeid.Options(certificate=True, house_rules=folder / "rules.toml")
    result = sqldeid.anonymize(sqldeid.Job.load(folder / "job.toml"), folder / "db.duckdb", options=options)
    (folder / "result.json").write_text(json.dumps(result.to_dict(), default=str))
    proofs = {name: release.certificate for name, release in result.tables.items()}
    (folder / "proof.json").write_text(json.dumps({"certificates": proofs}))
    return folder


def given_in(folder: Path) -> Given:
    return Given(folder / "job.toml", folder / "proof.json", [folder / "rules.toml"], [folder / "out.duckdb"])


@pytest.fixture
def packed(ran: Path, tmp_path: Path) -> Path:
    """An archive of everything."""
    (tmp_path / "e.zip").write_bytes(make(ran / "result.json", given_in(ran)).archive)
    return tmp_path / "e.zip"


def members_of(file: Path) -> dict[str, bytes]:
    """By the standard library alone."""
    with zipfile.ZipFile(file) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def repacked(file: Path, change: Callable[[dict[str, bytes]], object], *, honest: bool = False) -> Path:
    """The archive with other members; `honest` writes their hashes into the manifest."""
    members = members_of(file)
    change(members)
    if honest:
        manifest = json.loads(members["manifest.json"])
        manifest["members"] = {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in members.items()
            if name != "manifest.json"
        }
        members["manifest.json"] = json.dumps(manifest).encode()
    file.write_bytes(archive.pack(members))
    return file


def test_every_hash_is_that_of_the_file(ran, packed):
    manifest = json.loads(members_of(packed)["manifest.json"])
    digest = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in ran.iterdir() if p.is_file()}
    inputs = manifest["inputs"]
    assert inputs["result"]["sha256"] == digest["result.json"]
    assert inputs["job"] == {"name": "job.toml", "sha256": digest["job.toml"], "given": True}
    assert inputs["certificate"]["sha256"] == digest["proof.json"]
    assert inputs["house_rules"] == [{"name": "rules.toml", "sha256": digest["rules.toml"], "given": True}]
    assert [(one["name"], one["sha256"]) for one in inputs["releases"]] == [("out.duckdb", digest["out.duckdb"])]
    of = {(one["key"], one["of"]): one["sha256"] for one in inputs["hierarchies"]}
    at = "tables.people.columns"
    assert of[f"{at}.sex.hierarchy", "file sex.csv"] == digest["sex.csv"]
    assert of[f"{at}.race.hierarchy", "shipped adult/race"]
    assert of[f"{at}.age.hierarchy", "rule in the job"] == hashlib.sha256(b'{"bands":[10,50]}').hexdigest()
    used = json.loads((ran / "result.json").read_text())["releases"]["people"]["policy"]["hierarchies"]["sex"]
    plain = json.dumps(used, sort_keys=True, separators=(",", ":")).encode()
    assert of[f"{at}.sex", "as the run used it"] == hashlib.sha256(plain).hexdigest()
    for name, told in manifest["members"].items():
        assert told["sha256"] == hashlib.sha256(members_of(packed)[name]).hexdigest()


def test_the_same_inputs_give_the_same_bytes(ran, packed, monkeypatch):
    monkeypatch.chdir(ran)
    again = make(
        Path("result.json"), Given(Path("job.toml"), Path("proof.json"), [Path("rules.toml")], [Path("out.duckdb")])
    )
    assert again.archive == packed.read_bytes()
    assert again.sha256 == hashlib.sha256(packed.read_bytes()).hexdigest()


def test_values_that_only_policies_use_are_not_taken_in(packed):
    members = members_of(packed)
    assert "policy" not in json.loads(members["findings.json"])["releases"]["people"]
    assert set(members) == {
        *("certificate.json", "evidence.html", "evidence.md", "findings.json", "house-rules-1.toml", "job.toml"),
        "manifest.json",
    }


def test_a_whole_archive_passes_with_its_files(ran, packed):
    found = check(
        packed, given_in(ran), result=ran / "result.json", expected=hashlib.sha256(packed.read_bytes()).hexdigest()
    )
    assert set(found.compared) == {"result.json", "job.toml", "proof.json", "rules.toml", "out.duckdb"}
    assert found.not_compared == ()
    assert check(packed, Given()).not_compared == ("result.json", "out.duckdb")


@pytest.mark.parametrize("option", ["job", "certificate", "house_rules", "releases", "result"])
def test_a_file_that_was_changed_is_seen(option, ran, packed, tmp_path):
    files = {"job": "job.toml", "certificate": "proof.json", "house_rules": "rules.toml", "releases": "out.duckdb"}
    other = tmp_path / files.get(option, "result.json")
    other.write_bytes((ran / other.name).read_bytes() + b" ")
    with pytest.raises(VerificationError, match="is not what the evidence was made of"):
        if option == "result":
            check(packed, Given(), result=other)
        else:
            check(packed, Given(**{option: [other] if option in ("house_rules", "releases") else other}))
    with pytest.raises(VerificationError, match="SHA-256 is another"):
        check(packed, Given(), expected="0" * 64)


@pytest.mark.parametrize("name", ["findings.json", "evidence.md", "evidence.html", "job.toml", "certificate.json"])
def test_a_member_that_was_changed_is_seen_even_with_a_new_hash(name, packed):
    whole = packed.read_bytes()

    def change(members: dict[str, bytes]) -> None:
        old = members[name]
        members[name] = old.replace(b"people", b"PEOPLE", 1) if b"people" in old else old[:-1] + b" \n"

    with pytest.raises(VerificationError, match=f"{name} in it was changed"):
        check(repacked(packed, change), Given())
    packed.write_bytes(whole)
    with pytest.raises(VerificationError):
        check(repacked(packed, change, honest=True), Given())


def test_a_figure_that_was_changed_is_seen_in_the_text(packed):
    def better(members: dict[str, bytes]) -> None:
        members["findings.json"] = members["findings.json"].replace(b'"achieved": 3', b'"achieved": 9')

    with pytest.raises(VerificationError, match="findings are others"):
        check(repacked(packed, better, honest=True), Given())


def test_a_figure_whose_hash_was_written_anew_is_seen_in_the_text(packed):
    def better(members: dict[str, bytes]) -> None:
        members["findings.json"] = members["findings.json"].replace(b'"achieved": 3', b'"achieved": 9')
        manifest = json.loads(members["manifest.json"])
        manifest["inputs"]["findings"]["sha256"] = hashlib.sha256(members["findings.json"]).hexdigest()
        members["manifest.json"] = json.dumps(manifest).encode()

    with pytest.raises(VerificationError, match="findings: it was changed, or another build of sqldeid"):
        check(repacked(packed, better, honest=True), Given())


BETTER = {
    "k": lambda release: release["criteria"][0].update(asked=9, achieved=9),
    "suppression_limit": lambda release: release.update(suppression_limit=0.01),
}


@pytest.mark.parametrize("key", BETTER)
def test_a_result_that_claims_that_more_was_asked_is_refused_with_its_job_or_proof(key, ran, tmp_path):
    result = json.loads((ran / "result.json").read_text())
    BETTER[key](result["releases"]["people"])
    (tmp_path / "result.json").write_text(json.dumps(result))
    with pytest.raises(JobError, match=f"privacy.{key} of .* is not what this result says"):
        make(tmp_path / "result.json", Given(job=ran / "job.toml"))
    with pytest.raises(JobError, match="k or suppression_limit are not this result's"):
        make(tmp_path / "result.json", Given(certificate=ran / "proof.json"))


@pytest.mark.parametrize("key", BETTER)
def test_an_archive_made_of_such_a_result_is_refused(key, ran, tmp_path, monkeypatch):
    result = json.loads((ran / "result.json").read_text())
    BETTER[key](result["releases"]["people"])
    (tmp_path / "result.json").write_text(json.dumps(result))
    with monkeypatch.context() as forged:
        forged.setattr(making, "differing", lambda job, result: "")
        made = make(tmp_path / "result.json", Given(job=ran / "job.toml"))
    (tmp_path / "e.zip").write_bytes(made.archive)
    with pytest.raises(VerificationError, match=f"privacy.{key} of the job in it is not what its findings say"):
        check(tmp_path / "e.zip", Given())


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"format": 1, "format": 2}'])
def test_a_manifest_that_cannot_be_read_is_refused_in_words(content, packed):
    with pytest.raises(VerificationError, match="manifest or findings are not what is written there"):
        check(repacked(packed, lambda m: m.update({"manifest.json": content})), Given())


@pytest.mark.parametrize("form", ["sqldeid evidence 2", "", 1, None, ["sqldeid evidence 1"]])
def test_an_archive_of_another_form_is_refused(form, packed):
    def say(members: dict[str, bytes]) -> None:
        members["manifest.json"] = json.dumps({**json.loads(members["manifest.json"]), "format": form}).encode()

    with pytest.raises(VerificationError, match=rf"e\.zip: it was {SAID}"):
        check(repacked(packed, say), Given())


def made_by(maker: str, page: bytes | None = None) -> Callable[[dict[str, bytes]], None]:
    """Name another maker in the manifest; and another page, by which no hash is wrong."""

    def change(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        manifest["made_by"]["sqldeid"] = maker
        members["manifest.json"] = json.dumps(manifest).encode()
        if page is not None:
            members["evidence.html"] = members["evidence.html"].replace(b"</body>", page + b"</body>")

    return change


def test_a_page_that_this_version_spells_otherwise_is_refused_with_what_to_do(packed):
    """The manifest can name any version: whoever forges a page could name another one, and nobody would compare it."""
    whole, own = packed.read_bytes(), sqldeid.__version__
    check(repacked(packed, made_by("9.9.9"), honest=True), Given())  # which writes the same
    for maker, why in {
        own: f"it was changed, or another build of sqldeid {own} made the archive; check it with that build",
        "9.9.9": "the archive names another version, sqldeid 9.9.9, as what made it, whose page cannot be compared; "
        "check it with that version",
    }.items():
        packed.write_bytes(whole)
        with pytest.raises(VerificationError) as refused:
            check(repacked(packed, made_by(maker, b"<p>1 in 9</p>"), honest=True), Given())
        told = f"{packed}: evidence.html in it is not what this version writes of its findings: {why}"
        assert refused.value.message == f"{told}, and do not use it until then"
        assert refused.value.code == 4


def test_members_that_are_missing_or_more_are_seen(packed):
    whole = packed.read_bytes()
    for change, told in (
        (lambda m: m.pop("evidence.md"), "missing"),
        (lambda m: m.pop("manifest.json"), "no manifest"),
        (lambda m: m.update({"more.txt": b"x"}), "not in its manifest"),
    ):
        packed.write_bytes(whole)
        with pytest.raises(VerificationError, match=told):
            check(repacked(packed, change), Given())
    packed.write_bytes(whole)
    with pytest.raises(VerificationError, match="other members"):
        check(repacked(packed, lambda m: m.update({"more.txt": b"x"}), honest=True), Given())
    packed.write_bytes(whole)
    with pytest.raises(VerificationError, match=r"other members|missing"):
        check(repacked(packed, lambda m: m.pop("job.toml"), honest=True), Given())


def odd(members: dict[str, bytes], kind: str) -> bytes:
    """An archive that `pack` would not make."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for name, content in sorted(members.items()):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o600 << 16
            if kind == "time":
                info.date_time = (2020, 1, 1, 0, 0, 0)
            if kind == "link":
                info.external_attr = 0o120777 << 16
            if kind == "packed":
                info.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(info, content)
        names = {"up": "../evil.txt", "root": "/etc/evil", "deep": "a/b.txt", "back": "..\\evil", "capital": "A.txt"}
        if kind in names:
            opened.writestr(names[kind], b"x")
        if kind == "twice":
            with pytest.warns(UserWarning, match="Duplicate"):
                opened.writestr("job.toml", b"x")
        if kind == "comment":
            opened.comment = b"x"
    return {"before": b"x" + made.getvalue(), "behind": made.getvalue() + b"x"}.get(kind, made.getvalue())


KINDS = ["up", "root", "deep", "back", "capital", "twice", "comment", "time", "link", "packed", "before", "behind"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_somebody_else_packed_is_refused(kind, packed):
    whole = packed.read_bytes()
    assert odd(members_of(packed), "") == whole
    packed.write_bytes(odd(members_of(packed), kind))
    assert packed.read_bytes() != whole
    with pytest.raises(VerificationError, match="not to be used"):
        check(packed, Given())


def test_no_archive_is_refused(tmp_path):
    for content in (b"", b"PK", b"no zip", b"PK\x05\x06" + bytes(18)):
        (tmp_path / "e.zip").write_bytes(content)
        with pytest.raises(VerificationError):
            check(tmp_path / "e.zip", Given())
    with pytest.raises(JobError, match="cannot be read"):
        check(tmp_path / "none.zip", Given())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(60))
@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_every_flipped_bit_is_seen(at, bit, packed, ran):
    whole = make(ran / "result.json", Given()).archive
    place = int(at * len(whole))
    packed.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
    digest = hashlib.sha256(whole).hexdigest()
    with pytest.raises(VerificationError):
        check(packed, Given(), expected=digest)
    try:
        check(packed, Given())
    except VerificationError:
        return
    # What only the manifest says of itself, such as the version that made it, is bound by the archive's own hash.
    assert members_of(packed)["findings.json"] in whole and b"manifest.json" in whole[place - 9000 : place]


def test_inputs_that_are_others_are_refused(ran, tmp_path):
    for name in ("job.toml", "rules.toml", "proof.json"):
        (tmp_path / name).write_bytes((ran / name).read_bytes() + b"\n# other\n")
    result = ran / "result.json"
    with pytest.raises(JobError, match="is not the job of this result"):
        make(result, Given(job=tmp_path / "job.toml"))
    with pytest.raises(JobError, match="not what the run was held to"):
        make(result, Given(house_rules=[tmp_path / "rules.toml"]))
    with pytest.raises(JobError, match="holds no certificate"):
        make(result, Given(certificate=tmp_path / "proof.json"))
    proofs = json.loads((ran / "proof.json").read_text())
    proofs["certificates"]["people"]["node"][0] += 1
    (tmp_path / "proof.json").write_text(json.dumps(proofs))
    with pytest.raises(JobError, match="of another run"):
        make(result, Given(certificate=tmp_path / "proof.json"))
    with pytest.raises(JobError, match="is not there"):
        make(result, Given(releases=[tmp_path / "none"]))


def test_what_the_run_did_not_write_is_no_release(ran, tmp_path, monkeypatch):
    result = ran / "result.json"
    moved = tmp_path / "db.duckdb"
    moved.write_bytes((ran / "db.duckdb").read_bytes())
    for source in (ran / "db.duckdb", moved):
        with pytest.raises(JobError) as refused:
            make(result, Given(releases=[source]))
        assert refused.value.message == (
            f"--release: {source} is the database that the run read, with its source; name what it wrote: out.duckdb"
        )
    linked = tmp_path / "out.duckdb"
    linked.symlink_to(ran / "db.duckdb")
    monkeypatch.chdir(ran)
    with pytest.raises(JobError, match="is the database that the run read"):
        make(result, Given(releases=[linked]))
    for name in ("job.toml", "result.json"):
        with pytest.raises(JobError, match=f"{name} is no file of DuckDB or Parquet, and no release; name what it wr"):
            make(result, Given(releases=[ran / name]))
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a")
    with pytest.raises(JobError, match="texts is a folder without a file of Parquet"):
        make(result, Given(releases=[tmp_path / "texts"]))
    linked.unlink()
    linked.write_bytes((ran / "out.duckdb").read_bytes())  # a copy of the release is one
    assert make(result, Given(releases=[linked])).archive


def test_a_release_beside_its_source_has_no_file(ran, tmp_path):
    content = json.loads((ran / "result.json").read_text())
    content["releases"]["people"]["written"] = ["db.main.people"]
    (tmp_path / "result.json").write_text(json.dumps(content))
    with pytest.raises(JobError, match="is the database that the run read, with its source; it wrote no file; leave"):
        make(tmp_path / "result.json", Given(releases=[ran / "db.duckdb"]))


def test_a_folder_is_told_by_its_files(ran, tmp_path):
    folder = tmp_path / "out"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.parquet").write_bytes(b"a")
    (folder / "deep" / "b.parquet").write_bytes(b"b")
    (tmp_path / "e.zip").write_bytes(make(ran / "result.json", Given(releases=[folder])).archive)
    assert check(tmp_path / "e.zip", Given(releases=[folder])).compared == ("out/a.parquet", "out/deep/b.parquet")
    (folder / "more").write_bytes(b"c")
    with pytest.raises(VerificationError, match="out/more is not what"):
        check(tmp_path / "e.zip", Given(releases=[folder]))
    (folder / "more").unlink()
    (folder / "a.parquet").unlink()
    with pytest.raises(VerificationError, match=r"out/a\.parquet is missing"):
        check(tmp_path / "e.zip", Given(releases=[folder]))
    (folder / "deep" / "b.parquet").unlink()
    (folder / "deep").rmdir()
    with pytest.raises(JobError, match="empty folder"):
        check(tmp_path / "e.zip", Given(releases=[folder]))


FRAMEWORKS = [
    "HIPAA expert determination, 45 CFR 164.514(b)(1)",
    "EMA Policy 0070, anonymisation report",
    "ISO/IEC 27559:2022",
]
CLAIMS = re.compile(
    r"\b(compliant|complies|certified|guarantees? anonymity|is anonymous|satisf|fulfil|conform)", re.IGNORECASE
)


def text_of(made: Any) -> str:
    with zipfile.ZipFile(io.BytesIO(made.archive)) as opened:
        return opened.read("evidence.md").decode()


def test_the_text_asks_in_order_leaves_open_and_claims_nothing(ran):
    made = make(ran / "result.json", given_in(ran))
    text = text_of(made)
    assert text.startswith("# Evidence on a de-identification\n\n> For the data holder only.")
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert headings == ["What was run", "What it rests on", *FRAMEWORKS]
    assert text.count(f"**{OPEN}:**") == made.still_open > 15
    assert not CLAIMS.search(text), CLAIMS.search(text)
    assert "house rules of House, version 7" in text
    bare = make(ran / "result.json", Given())
    assert bare.still_open == made.still_open + 4  # job, rules, release, certificate


def test_what_was_not_done_is_left_open(ran, tmp_path):
    result = json.loads((ran / "result.json").read_text())
    del result["house_rules"], result["releases"]["people"]["attacks"]
    (tmp_path / "r.json").write_text(json.dumps(result))
    text = text_of(make(tmp_path / "r.json", Given()))
    assert "attacks on people: the program made none" in text
    assert "the job was held to none" in text
    assert "was attacked by" not in text


@pytest.mark.parametrize("kind", ["mondrian", "local", "linked", "child"])
def test_other_tables_are_told(kind, tmp_path):
    table: dict[str, Any] = {
        "source": "people",
        "person": "id",
        "columns": {
            "age": {"role": "quasi-identifying", "hierarchy": {"bands": [10, 50]}},
            "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        },
        "privacy": {"k": 3, "suppression_limit": 0.3},
    }
    if kind == "mondrian":
        table["columns"] = {"age": {"role": "quasi-identifying", "hierarchy": {"median": "range"}}}
        table["search"], table["privacy"] = {"method": "mondrian"}, {"k": 3}
    if kind == "local":
        table["search"] = {"method": "local"}
    tables = {"people": table}
    options = sqldeid.Options(certificate=kind != "mondrian")
    if kind == "linked":
        (tmp_path / "key").write_text("0123456789abcdef" * 4)
        table["columns"]["id"] = {"role": "identifying", "pseudonym": True}
        tables["again"] = {**table, "link": "people", "columns": {k: table["columns"][k] for k in ("sex", "id")}}
        options = sqldeid.Options(certificate=True, key_file=tmp_path / "key")
    if kind == "child":
        (tmp_path / "key").write_text("0123456789abcdef" * 4)
        table["columns"]["id"] = {"role": "identifying", "pseudonym": True}
        item = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
        own = {"parent": "people", "items": "code", "known": 1, "columns": {"code": item}, "privacy": {"k": 2}}
        tables["visits"] = {"source": "visits", "person": "id", **own}
        options = sqldeid.Options(certificate=True, key_file=tmp_path / "key")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits AS SELECT i AS id, 'c' || (i % 3) AS code FROM range(90) AS r(i)")
    connection.execute(
        "CREATE TABLE people AS SELECT i AS id, CAST(15 + i % 60 AS INTEGER) AS age, "
        "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex FROM range(90) AS r(i)"
    )
    result = sqldeid.anonymize(sqldeid.Job.parse({"tables": tables}), connection, options=options)
    (tmp_path / "r.json").write_text(json.dumps(result.to_dict(), default=str))
    proofs = {n: r.certificate for n, r in result.releases.items() if getattr(r, "certificate", None)}
    given_proof = Given()
    if proofs:
        (tmp_path / "c.json").write_text(json.dumps({"certificates": proofs}))
        given_proof = Given(certificate=tmp_path / "c.json")
    made = make(tmp_path / "r.json", given_proof)
    (tmp_path / "e.zip").write_bytes(made.archive)
    assert check(tmp_path / "e.zip", Given())
    assert "k = 3 was asked" in text_of(made)
    assert ("visits: k = 2 was asked of a class for whoever knows 1" in text_of(made)) == (kind == "child")
    assert bool(proofs) == (kind != "mondrian")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["shared", "projection", "ratio", "laplace"])
def test_series_and_events_are_told_and_no_name_is_markup(method, tmp_path):
    result = series(method) if method in ("projection", "shared") else events(method, tmp_path)
    (tmp_path / "r.json").write_text(json.dumps(result.to_dict(), default=str))
    made = make(tmp_path / "r.json", Given())
    (tmp_path / "e.zip").write_bytes(made.archive)
    assert check(tmp_path / "e.zip", Given())
    text, page = text_of(made), members_of(tmp_path / "e.zip")["evidence.html"].decode()
    assert ALERT not in page and "&lt;" in page
    assert not CLAIMS.search(text)
    private = {"laplace": "it is differential privacy", "ratio": "it is not differential privacy"}
    assert private.get(method, "Promised:") in text


def leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Places of a JSON value."""
    if isinstance(value, dict):
        return [at, *(p for k, v in value.items() for p in leaves(v, (*at, k)))]
    if isinstance(value, list):
        return [at, *(p for i, v in enumerate(value[:3]) for p in leaves(v, (*at, i)))]
    return [at]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(200))
@given(data=st.data())
def test_a_result_that_was_changed_is_told_or_refused_in_words(data, ran, tmp_path):
    result = json.loads((ran / "result.json").read_text())
    result["releases"]["people"].pop("policy")
    place = data.draw(st.sampled_from([p for p in leaves(result) if p]))
    here = result
    for key in place[:-1]:
        here = here[key]
    here[place[-1]] = data.draw(st.sampled_from([None, -1, 1e300, "x\x1b[31m|`<b>", [], {}, True, [[]], {"a": None}]))
    (tmp_path / "r.json").write_text(json.dumps(result))
    try:
        made = make(tmp_path / "r.json", Given())
    except SqldeidError as error:
        assert isinstance(error, JobError)
        return
    assert "\x1b" not in text_of(made) and "<b>" not in text_of(made).replace("\\<b\\>", "")


def test_what_is_no_result_is_refused(tmp_path):
    for content in ("", "[]", "{}", '{"releases": {}}', '{"error": {}}', '{"releases": {"a": 1}, "job_sha256": "x"}'):
        (tmp_path / "r.json").write_text(content)
        with pytest.raises(JobError, match=r"r\.json"):
            make(tmp_path / "r.json", Given())


def test_form_and_file_names_stay():
    """An archive of today must be read by the versions of tomorrow."""
    assert (making.FORMAT, making.MANIFEST, making.FINDINGS) == ("sqldeid evidence 1", "manifest.json", "findings.json")
