"""The figures of the main job on real data: Adult, the UCI files, the MIMIC-III demo."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest

from sqldeid.run import anonymize, verify
from tests.support.real_data import ADULT, FIRST_ADMISSIONS, MIMIC_TABLES
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, job, qi, release

UCI = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()


@pytest.fixture(scope="module")
def adult(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adult") / "adult.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute(
            "CREATE TABLE adult AS SELECT ROW_NUMBER() OVER () AS id, * FROM read_csv(?, delim = ';', header = true)",
            [str(shared_data / "adult/adult.csv")],
        )
    return path


@pytest.mark.parametrize(
    ("limit", "node", "loss", "suppressed", "classes"),
    [
        (0.05, (0, 3, 0, 0, 2, 1, 1, 2, 0), 0.269634662789, 1346, 397),
        (0.0, None, 0.635543846704, 0, None),
    ],
)
def test_adult(
    adult: Path,
    shared_data: Path,
    tmp_path: Path,
    limit: float,
    node: tuple[int, ...] | None,
    loss: float,
    suppressed: int,
    classes: int | None,
) -> None:
    columns = {c: qi(str(shared_data / f"adult/adult_hierarchy_{c}.csv")) for c in ADULT}
    wanted = job(
        {"into": str(tmp_path / "out.duckdb")}, adult=release(columns, source="adult", k=5, limit=limit, person="id")
    )
    found = anonymize(wanted, adult).releases["adult"]
    assert found.loss["loss"] == pytest.approx(loss, abs=1e-12)
    assert (found.suppressed, found.released) == (suppressed, 30162 - suppressed)
    assert found.search.optimal
    if node is not None:
        assert tuple(found.node.values()) == node
        assert found.classes == classes
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as plain:
        by = ", ".join(f'"{c}"' for c in ADULT)
        sizes = plain.execute(f"SELECT COUNT(*) FROM release.adult GROUP BY {by}").fetchall()
    assert sum(n for (n,) in sizes) == found.released
    assert min(sizes)[0] == found.k >= 5
    assert len(sizes) == found.classes
    assert verify(wanted, adult)["adult"].k == found.k


@pytest.fixture(scope="module")
def uci(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both UCI files, blanks after commas stripped, the dot after test labels too; `?` as a value and as NULL."""
    folder = tmp_path_factory.mktemp("uci")
    for name in ("adult.data", "adult.test"):
        with (shared_data / "adult_uci" / name).open() as file, (folder / name).open("w", newline="") as out:
            rows = ([cell.strip().rstrip(".") for cell in row] for row in csv.reader(file) if len(row) == len(UCI))
            csv.writer(out).writerows(rows)
    columns = ", ".join(f"'{c}': '{'INTEGER' if c in ('age', 'fnlwgt') else 'VARCHAR'}'" for c in UCI)
    with duckdb.connect(str(folder / "uci.duckdb")) as c:
        for table, null in (("as_value", ""), ("as_null", ", nullstr = '?'")):
            c.execute(
                f"""CREATE TABLE {table} AS SELECT ROW_NUMBER() OVER () AS id, * FROM read_csv(
                    ['{folder}/adult.data', '{folder}/adult.test'], header = false, columns = {{{columns}}}{null})"""
            )
    return folder / "uci.duckdb"


@pytest.mark.parametrize("table", ["as_value", "as_null"])
def test_uci_with_shipped_hierarchies(uci: Path, tmp_path: Path, table: str) -> None:
    names = "sex age race marital-status education native-country workclass occupation relationship".split()
    columns = {c: qi(f"adult/{c}") for c in names} | {"income": SENSITIVE}
    part = release(columns, source=table, k=5, limit=0.05, person="id")
    wanted = job({"into": str(tmp_path / "out.duckdb")}, uci=part)
    found = anonymize(wanted, uci).releases["uci"]
    assert found.rows == 48842
    assert found.k >= 5
    assert found.suppressed <= 0.05 * found.rows
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as plain:
        by = ", ".join(f'"{c}"' for c in names)
        least, rows = plain.execute(
            f"SELECT MIN(n), SUM(n) FROM (SELECT COUNT(*) AS n FROM release.uci GROUP BY {by})"
        ).fetchall()[0]
    assert (least, rows) == (found.k, found.released)


def test_question_marks_generalise_alike(uci: Path, tmp_path: Path) -> None:
    """A missing value is a value, whether it is spelled `?` or NULL: the same node, the same classes."""
    found = {}
    for table in ("as_value", "as_null"):
        columns = {c: qi(f"adult/{c}") for c in ("workclass", "occupation", "sex")}
        wanted = job(
            {"into": str(tmp_path / f"{table}.duckdb")},
            uci=release(columns, source=table, k=50, limit=0.01, person="id"),
        )
        r = anonymize(wanted, uci).releases["uci"]
        found[table] = (r.rows, r.suppressed, r.classes, r.k, tuple(r.node.values()))
    assert found["as_value"] == found["as_null"]


@pytest.fixture(scope="module")
def mimic(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo twice: schema `mimiciii` with lower-case names, schema `main` with upper-case ones."""
    path = tmp_path_factory.mktemp("mimic") / "mimic3.db"
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE SCHEMA mimiciii")
        for name, columns in MIMIC_TABLES.items():
            for table, cased in ((f"mimiciii.{name.lower()}", columns), (f'"{name}"', columns.upper())):
                c.execute(f"CREATE TABLE {table} ({cased})")
                c.execute(f"COPY {table} FROM '{shared_data}/mimic3demo/{name}.csv' (HEADER true)")
    return path


@pytest.mark.parametrize("upper", [False, True])
def test_mimic_first_admissions(mimic: Path, tmp_path: Path, upper: bool) -> None:
    names = {n.split("_")[0].lower(): n if upper else f"mimiciii.{n.lower()}" for n in MIMIC_TABLES}
    columns = {
        "subject_id": IDENTIFYING,
        "gender": qi("mimic3/gender"),
        "dob_year": qi("mimic3/dob_year"),
        "insurance": qi("mimic3/insurance"),
        "language": qi("mimic3/language"),
        "religion": qi("mimic3/religion"),
        "marital_status": qi("mimic3/marital_status"),
        "procedure_code": qi("icd9/procedures", uncovered="prefix"),
        "admission_type": INSENSITIVE,
    }
    query = FIRST_ADMISSIONS.format(**names)
    part = release(columns, source={"query": query}, k=3, limit=0.1, person="subject_id")
    wanted = job({"into": str(tmp_path / "out.duckdb"), "as": "view"}, patients=part)
    found = anonymize(wanted, mimic).releases["patients"]
    assert found.rows == 100
    assert found.k >= 3
    assert found.suppressed <= 10
    assert verify(wanted, mimic)["patients"].released == found.released
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as plain:
        assert plain.execute("SELECT COUNT(*) FROM release.patients").fetchall() == [(found.released,)]
        assert plain.execute("SELECT COUNT(*) FROM duckdb_views() WHERE view_name = 'patients'").fetchall() == [(1,)]


def test_names_in_any_case_give_the_same_release(mimic: Path, tmp_path: Path) -> None:
    rows = []
    for i, (source, name) in enumerate(
        [("mimiciii.patients", "gender"), ("PATIENTS", "GENDER"), ("Patients", "Gender")]
    ):
        wanted = job(
            {"into": str(tmp_path / f"{i}.duckdb")},
            r=release({name: qi()}, source=source, k=3, person="subject_id"),
        )
        anonymize(wanted, mimic)
        with duckdb.connect(str(tmp_path / f"{i}.duckdb"), read_only=True) as plain:
            rows.append(plain.execute("FROM release.r").fetchall())
    assert rows[0] == rows[1] == rows[2]
    assert len(rows[0]) == 100


def test_released_view_from_the_command_line(mimic: Path, tmp_path: Path) -> None:
    shell = shutil.which("duckdb")
    if shell is None:
        pytest.skip("not applicable: no duckdb command line on PATH")
    part = release({"gender": qi()}, source="mimiciii.patients", k=3, person="subject_id")
    anonymize(job({"into": str(tmp_path / "out.duckdb"), "as": "view"}, r=part), mimic)
    done = subprocess.run(
        [shell, "-csv", "-noheader", str(tmp_path / "out.duckdb"), "SELECT COUNT(*) FROM release.r"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "100"


def test_views_in_the_source_database(mimic: Path, tmp_path: Path) -> None:
    """A view in place reads its snapshot, also where the file has another name and alias."""
    copied = tmp_path / "another name.duckdb"
    shutil.copy(mimic, copied)
    part = release({"gender": qi()}, source="mimiciii.patients", k=3, person="subject_id")
    anonymize(job({"as": "view"}, r=part), copied)
    moved = copied.rename(tmp_path / "moved.db")
    with duckdb.connect(str(moved)) as plain:
        plain.execute("DELETE FROM mimiciii.patients")
        assert plain.execute("SELECT COUNT(*) FROM release.r").fetchall() == [(100,)]
    with duckdb.connect() as other:
        other.execute(f"ATTACH '{moved}' AS x (READ_ONLY)")
        assert other.execute("SELECT COUNT(*) FROM x.release.r").fetchall() == [(100,)]
