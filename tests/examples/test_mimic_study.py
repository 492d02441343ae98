"""Chapter 3 and tables 6.2 and 6.3 of the source, on a generated hospital and on the MIMIC-III demo."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

import sqldeid
from sqldeid import demo
from tests.support.cli import run
from tests.support.places import EXAMPLES
from tests.support.studies import PNG, execute, lines_of, module_of, page_for, shown_on

FOLDER = EXAMPLES / "mimic_study"
STUDY = FOLDER / "study.py"
MISSING_CODES = {"3601", "3605", "458"}
"""Codes of the demo's procedures that its own dictionary lacks."""


@pytest.fixture(scope="module")
def study() -> ModuleType:
    return module_of(STUDY)


@pytest.fixture(scope="module")
def mimic(study: ModuleType, shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The MIMIC-III demo, as the study loads it."""
    path = tmp_path_factory.mktemp("mimic") / "mimic.duckdb"
    study.load(shared_data / "mimic3demo", path)
    return path


def unique(rows: list[tuple[object, ...]]) -> float:
    sizes = Counter(rows)
    return sum(1 for row in rows if sizes[row] == 1) / len(rows)


@pytest.mark.deep
def test_one_command_writes_tables_and_plots(tmp_path: Path) -> None:
    asked = ("--patients", "150", "--draws", "1", "--losses", "0.8", "--limits", "0.5")
    page = page_for(tmp_path, "mimic_study", ("alone", "table-6-2", "table-6-3", "ola"))
    done = execute(STUDY, tmp_path, *asked, "--page", str(page))
    assert done.returncode == 0, done.stderr
    for name in ("chapter_3.png", "table_6_2.png", "table_6_3.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
    assert "no notes, so section 3.3 is left out" in done.stdout
    rows = lines_of(tmp_path / "releases.csv")
    assert Counter(r["table"] for r in rows) == {"6.2": 2, "6.3": 2, "by first digit": 1, "by chapters of ICD-9": 1}
    k = {(r["table"], r["years"]): int(r["k"]) for r in rows}
    assert min(k.values()) > 1
    shown = shown_on(page, "mimic_study")
    assert shown == {name: lines_of(tmp_path / f"{name}.csv") for name in shown} and len(shown) == 4
    for number, source in (("6.2", "7,003"), ("6.3", "")):
        people, row = shown[f"table-{number.replace('.', '-')}"]
        assert people["source"] == "13,646" and row["source"] == source
        for years, head in (("ages", "generated, by age"), ("drawn", "generated, years drawn")):
            (r,) = (r for r in rows if (r["table"], r["years"]) == (number, years))
            assert people[head] == r["rows"] and row[head].partition(" ")[0] == r["k"]
            assert row[head].partition(" ")[2] == (f"({r['kept']})" if int(r["kept"]) else "")
    assert {f.name for f in (page.parent / "figures").iterdir()} == {"chapter_3.png", "table_6_2.png", "table_6_3.png"}
    path = demo.mimic(tmp_path / "mimic.duckdb", patients=150, seed=1).database
    seen = {r["what"]: r for r in lines_of(tmp_path / "chapter_3.csv")}
    with duckdb.connect(str(path), read_only=True) as c:
        people = c.execute("""
            SELECT gender, insurance, language, religion, marital_status FROM mimiciii.patients JOIN (
                SELECT DISTINCT ON (subject_id) * FROM mimiciii.admissions ORDER BY subject_id, admittime, hadm_id
            ) USING (subject_id)""").fetchall()
        codes = c.execute("SELECT LIST(icd9_code ORDER BY seq_num) FROM mimiciii.procedures_icd GROUP BY hadm_id")
        lists = [tuple(x) for (x,) in codes.fetchall()]
    complete = [p for p in people if None not in p]
    three = [x[:3] for x in lists if len(x) >= 3]
    expected = {
        "demographics without ages": complete,
        "first three procedures": three,
        "first and fifth procedure": [(x[0], x[4]) for x in lists if len(x) >= 5],
        "first three as a set": [tuple(sorted(x)) for x in three],
    }
    for what, owners in expected.items():
        assert int(float(seen[what]["owners"])) == len(owners), what
        assert float(seen[what]["alone"]) == pytest.approx(unique(owners), abs=1e-6), what
        (row,) = (r for r in shown["alone"] if r["known"] == what)
        assert row["generated"].startswith(f"{unique(owners):.1%} of {len(owners)} (")


def test_the_study_reads_csv_files_and_databases_alike(study: ModuleType, mimic: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied.duckdb"
    study.load(mimic, copied)
    for path in (mimic, copied):
        with duckdb.connect(str(path), read_only=True) as c:
            found = c.execute("""SELECT COUNT(*), COUNT(*) FILTER (WHERE icd9_code LIKE '0%'), MIN(LENGTH(icd9_code))
                                 FROM mimiciii.procedures_icd""").fetchone()
            assert found is not None and found[0] == 506 and found[1] > 20 and found[2] >= 2, "codes keep their zeros"
    missing = execute(STUDY, tmp_path, str(tmp_path), "out", "--patients", "0")
    assert missing.returncode == 1 and "PATIENTS is missing" in missing.stderr and "Traceback" not in missing.stderr


@pytest.mark.deep
@pytest.mark.parametrize("name", ["ola.toml", "inverse_ola.toml"])
def test_job_files_run_on_the_demo_of_mimic(name: str, mimic: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    (tmp_path / name).write_text((FOLDER / name).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for command in ("anonymize", "verify"):
        ran = run(capsys, command, str(mimic), "--job", name)
        assert ran.code == 0, ran


@pytest.mark.deep
def test_linked_tables_are_what_one_table_of_both_is(mimic: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    """Demographics and procedures apart but linked: node, loss and patients of the one table; no class below k."""
    results = {}
    for name in ("ola.toml", "linked.toml"):
        (tmp_path / name).write_text((FOLDER / name).read_text(encoding="utf-8"), encoding="utf-8")
        monkeypatch.setenv("SQLDEID_KEY", "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0")
        results[name] = sqldeid.anonymize(sqldeid.Job.load(tmp_path / name), mimic).tables
    one, both = results["ola.toml"]["patients"], results["linked.toml"]
    assert {**both["patients"].node, **both["procedures"].node} == dict(one.node)
    assert both["patients"].loss == one.loss and both["procedures"].suppressed == one.suppressed
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "verify", str(mimic), "--job", "linked.toml").code == 0
    with duckdb.connect("linked_release.duckdb", read_only=True) as c:
        joined = c.execute("FROM release.patients JOIN release.procedures USING (subject_id)").df()
    classes = joined.drop(columns="subject_id").groupby(list(one.node), dropna=False).size()
    assert len(joined) == one.released and classes.min() == one.k >= 5


def test_codes_keep_zeros_and_those_without_an_entry_go_by_prefix(
    study: ModuleType, mimic: Path, shared_data: Path, tmp_path: Path
) -> None:
    """Three codes are in no dictionary: chapters find them by their first digits, a dictionary's file by prefix."""
    with (shared_data / "mimic3demo" / "D_ICD_PROCEDURES.csv").open(encoding="utf-8") as file:
        codes = sorted({line.split(",")[1].strip('"') for line in file.readlines()[1:]})
    assert not MISSING_CODES & set(codes)
    lines = (f"{code};{code[:3]};{code[:2]};*\n" for code in codes)
    (tmp_path / "dictionary.csv").write_text("".join(lines), encoding="utf-8")
    for hierarchy, uncovered in (("icd9/procedures", "prefix"), ("dictionary.csv", "prefix"), ("dictionary.csv", None)):
        table = study.table_of("chapters.toml")
        stack = table["stack"]["procedure"] | {"hierarchy": hierarchy, "uncovered": uncovered, "first": 5}
        table["stack"]["procedure"] = {key: value for key, value in stack.items() if value is not None}
        del table["stack"]["procedure"]["pick"], table["stack"]["procedure"]["pick_order"]
        del table["stack"]["procedure"]["pick_then"]
        table["stack"]["procedure"]["order"] = ["admittime", "seq_num"]
        table["search"] = {"method": "datafly"}
        table["privacy"] = {"k": 1}
        job = sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"t": table}}, folder=tmp_path)
        if uncovered is None:
            with pytest.raises(sqldeid.HierarchyError, match=r'does not cover . value.* set uncovered = "prefix"'):
                sqldeid.anonymize(job, mimic, options=sqldeid.Options(replace=True, without_ledger=True))
            continue
        result = sqldeid.anonymize(job, mimic, options=sqldeid.Options(replace=True, without_ledger=True)).releases["t"]
        assert set(result.node.values()) == {0}, "k = 1 asks for nothing"
        with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as c:
            stacked = {x for row in c.execute("SELECT COLUMNS('procedure_.*') FROM release.t").fetchall() for x in row}
        assert {x for x in stacked if x and x.startswith("00")} and stacked & MISSING_CODES
