"""`init` proposes jobs that run as they are, on tables of every sort, and never writes a data value into one."""

from __future__ import annotations

import re
import tomllib
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid import demo
from sqldeid.engine.base import Column
from sqldeid.errors import JobError
from sqldeid.insight.fitting import bands
from sqldeid.insight.identifiers import KINDS, named, words_of
from sqldeid.insight.profile import ColumnFacts
from tests.support.files import read, write

WIDE = ", ".join(
    f"(i * {k} + 7) % {k + 2} AS c{k}" if k % 3 else f"'x' || i * {k} % {k + 3} AS c{k}" for k in range(200)
)
RUNNING = {
    "hostile names": """CREATE TABLE "sel""ect; --" AS SELECT i AS "from", 'v' || i % 3 AS "sel""ect", i % 7 AS "a.b",
        'it''s' || i % 4 AS "naïve 😀", i % 3 = 0 AS "new\nline", DATE '1950-01-01' + CAST(i % 9 AS INT) AS "dob\t\x7f",
        i % 5 AS "# comment = 1", 'w' || i % 2 AS "[tables]", i % 4 AS "]\nprivacy.k = 1" FROM RANGE(200) AS r(i)""",
    "all NULL": "CREATE TABLE t AS SELECT CAST(NULL AS INTEGER) AS a, CAST(NULL AS VARCHAR) AS b FROM RANGE(50)",
    "two rows": "CREATE TABLE t AS SELECT i AS id, 'a' || i AS sex, 33 + i AS age FROM RANGE(2) AS r(i)",
    "200 columns": f"CREATE TABLE t AS SELECT i AS id, {WIDE} FROM RANGE(500) AS r(i)",
    "one column": "CREATE TABLE t AS SELECT i % 3 AS x FROM RANGE(100) AS r(i)",
    "only dates": "CREATE TABLE t AS SELECT i AS id, DATE '2020-01-01' + CAST(i AS INT) AS a FROM RANGE(100) AS r(i)",
    "types": """CREATE TABLE t AS SELECT i AS id, CAST(i % 30 AS DECIMAL(9, 2)) AS dec, i * 1.5e0 AS f, [i] AS li,
        {'a': i} AS st, CAST('x' AS BLOB) AS b, TIME '10:00' AS tm, CAST(['a', 'b'][1 + i % 2] AS ENUM('a', 'b')) AS en,
        CAST(i AS HUGEINT) AS h, INTERVAL (i) DAY AS iv, CAST('2020-01-01' AS TIMESTAMP_NS) AS ns, 1e300 * i AS huge,
        CASE WHEN i = 3 THEN 'nan'::DOUBLE WHEN i = 4 THEN 'inf'::DOUBLE ELSE i % 40 END AS weird, i % 2 = 0 AS flag,
        CASE WHEN i = 1 THEN DATE 'infinity' ELSE DATE '1960-01-01' + CAST(i AS INT) END AS born, i % 120 AS age,
        '0' || 1000 + i % 50 AS plz, 10001 + i % 77 AS zip, i % 100 / 7e0 AS los, 'diag' || i % 4 AS diagnosis,
        CAST(TIMESTAMP '2020-01-01' + TO_HOURS(CAST(i AS INT)) AS TIMESTAMPTZ) AS tz FROM RANGE(400) AS r(i)""",
}


@pytest.mark.parametrize(("first", "told"), [("anna,x1,flu", True), ("name,years,illness", False)])
def test_a_first_line_that_may_be_data_is_told(tmp_path, first, told):
    values = "n{i},x{i},flu" if told else "n{i},{i},flu"
    rows = "".join(values.format(i=i) + "\n" for i in range(40))
    (tmp_path / "t.csv").write_text(f"{first}\n{rows}")
    assert ("a header or a row of data" in sqldeid.init(tmp_path / "t.csv").replace("\n# ", " ")) is told


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "value", "hierarchy"),
    [
        ("zip", "LPAD(CAST(501 + i % 60 AS VARCHAR), 5, '0')", "us/zip"),
        ("home_zip_code", "10000 + i % 60", "us/zip"),
        ("zip", "CASE WHEN i % 9 = 0 THEN 'SW1A 1AA' ELSE '10001' END", {"mask": [1, 2, 3, 4]}),
        ("zip", "100000 + i % 60", {"mask": [1, 2, 3, 4]}),
        ("plz", "LPAD(CAST(1067 + i % 60 AS VARCHAR), 5, '0')", {"mask": [1, 2, 3, 4]}),
    ],
)
def test_codes_of_the_united_states_get_their_hierarchy_others_stars(tmp_path, name, value, hierarchy):
    """By name, and where nothing in the column looks otherwise: in Germany postal codes have five digits, too."""
    source = database(
        tmp_path / "d.duckdb", f'CREATE TABLE t AS SELECT i AS id, {value} AS "{name}" FROM RANGE(300) AS r(i)'
    )
    text = sqldeid.init(source)
    assert tomllib.loads(text)["tables"]["t"]["columns"][name]["hierarchy"] == hierarchy
    assert run(text, source).released > 250


def database(path: Path, sql: str) -> Path:
    return write(path, sql)


def run(text: str, source: Path, *, replace: bool = False) -> sqldeid.TableRelease:
    """Write the job as it is, run it, check it; the release."""
    file = source.with_suffix(".job.toml")
    file.write_text(text, encoding="utf-8")
    job = sqldeid.Job.load(file)
    [found] = sqldeid.anonymize(
        job, source, options=sqldeid.Options(replace=replace, without_ledger=replace)
    ).releases.values()
    sqldeid.verify(job, source)
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", RUNNING)
def test_the_printed_job_runs(tmp_path: Path, name: str) -> None:
    source = database(tmp_path / "d.duckdb", RUNNING[name])
    text = sqldeid.init(source)
    assert text == sqldeid.init(source), "the same each time"
    found = run(text, source)
    assert found.released > 0.9 * found.rows and found.k >= min(5, found.rows)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("birth", "moment"),
    [("Birth date", "admitted DATE"), ("o'''dob \"x\"", ""), ("geburtsdatum", "seen TIMESTAMP"), ("DOB", "")],
)
def test_the_age_that_is_offered_for_a_birth_date_is_the_age(tmp_path: Path, birth: str, moment: str) -> None:
    """The two lines are put where the comment says; every released age is that of a calendar."""
    source = tmp_path / "my people.duckdb"
    quoted = '"' + birth.replace('"', '""') + '"'
    with duckdb.connect(source) as c:
        c.execute(f'CREATE TABLE "my people" (id INTEGER, {quoted} DATE{", " + moment if moment else ""})')
        for i in range(300):
            born = date(1920, 1, 1) + timedelta(days=i * 97 + i % 3)
            at = [born + timedelta(days=365 * 20 + i * 41)] if moment else []
            values = [i, None if i % 50 == 7 else born, *at]
            c.execute(f'INSERT INTO "my people" VALUES (?, ?{", ?" if moment else ""})', values)
        day = moment.split(" ")[0] or f"DATE '{date.today().year}-01-01'"
        rows = c.execute(f'SELECT {quoted}, CAST({day} AS DATE) FROM "my people"').fetchall()
    text = sqldeid.init(source)
    assert "An age in the place of" in text and text == sqldeid.init(source)
    release = tomllib.loads(text)["tables"]["my people"]
    lines = [line[6:] for line in text.splitlines() if re.match(r"#     (source|age) = ", line)]
    offered = tomllib.loads("\n".join(lines))
    assert offered["age"] == {"role": "quasi-identifying", "hierarchy": "age/5-10-20", "top_code": 90}
    seen = {"role": "quasi-identifying", "hierarchy": {"suppress": True}, "top_code": 90}
    release |= {"source": offered["source"], "columns": {"age": seen}, "privacy": {"k": 1}}
    job = sqldeid.Job.parse({"release": {"into": "aged.duckdb"}, "tables": {"aged": release}}, folder=tmp_path)
    assert sqldeid.anonymize(job, source).releases["aged"].released == 300
    ages = [None if b is None else at.year - b.year - ((at.month, at.day) < (b.month, b.day)) for b, at in rows]
    released = sorted(str(a) for (a,) in read(tmp_path / "aged.duckdb", "SELECT age FROM release.aged"))
    assert released == sorted("None" if a is None else "≥ 90" if a >= 90 else str(a) for a in ages)


def test_no_age_is_offered_beside_an_age_or_of_another_date(tmp_path: Path) -> None:
    made = "CREATE TABLE t AS SELECT i AS id, DATE '1950-01-01' + CAST(i AS INT) AS {}, i % 70 AS {} FROM RANGE(9) r(i)"
    for one, two in (("birth_date", "age"), ("admitted", "x"), ('"dob\t"', "x")):
        source = database(tmp_path / f"{two}{len(one)}.duckdb", made.format(one, two))
        assert "An age in the place of" not in sqldeid.init(source)


def test_levels_by_k_alone_are_offered_beside_l_diversity(tmp_path: Path) -> None:
    source = database(
        tmp_path / "d.duckdb",
        "CREATE TABLE t AS SELECT i AS id, i % 40 AS age, 'd' || i // 40 AS diagnosis, "
        "['f', 'm', 'd'][1 + i % 3] AS sex FROM RANGE(600) AS r(i)",
    )
    text = sqldeid.init(source)
    assert 'choose = "by-k"' in text and 'its top, for all values at once, is called "Gender"' in text
    asked = text.replace("#     criteria_limit", "criteria_limit").replace("time_limit", 'choose = "by-k"\ntime_limit')
    assert run(asked, source).search.choose == "by-k"


def test_an_empty_table_says_so(tmp_path: Path) -> None:
    source = database(
        tmp_path / "d.duckdb", "CREATE TABLE t (id INTEGER, sex VARCHAR, age INTEGER, d DATE, l INTEGER[])"
    )
    text = sqldeid.init(source)
    assert "no rows now" in text
    with pytest.raises(JobError, match="has no rows"):
        run(text, source)


@pytest.mark.parametrize("columns", ["i AS id", "[i] AS x", "i AS id, 'n' || i AS name, '030 123-' || 1000 + i AS x"])
def test_what_cannot_be_generalised_is_refused(tmp_path: Path, columns: str) -> None:
    source = database(tmp_path / "d.duckdb", f"CREATE TABLE t AS SELECT {columns} FROM RANGE(100) AS r(i)")
    with pytest.raises(JobError, match="every column identifies by itself"):
        sqldeid.init(source)


@pytest.mark.parametrize("rows", [1, 3])
def test_nothing_of_a_single_person_is_released(tmp_path: Path, rows: int) -> None:
    """k = 1 would publish every value as it is, and whoever runs a proposal unread has not asked for that."""
    made = f"CREATE TABLE t AS SELECT 'p' AS patient, 'a' || i AS stay, 33 AS age FROM RANGE({rows}) AS r(i)"
    source = database(tmp_path / "d.duckdb", made)
    text = sqldeid.init(source)
    assert "\nk = 2 " in text and "nothing is released" in text
    assert "refused until the table has more persons" in " ".join(text.replace("#", "").split())
    assert "runs as it is" not in text
    with pytest.raises(JobError, match="k is 2, but"):
        run(text, source)
    assert not list(tmp_path.glob("*_release.duckdb"))


def test_which_table(tmp_path: Path) -> None:
    source = database(tmp_path / "d.duckdb", "CREATE TABLE a AS SELECT 1 AS x; CREATE TABLE b AS SELECT 1 AS x")
    with pytest.raises(JobError, match=r"name the table.*main\.a, main\.b"):
        sqldeid.init(source)
    with pytest.raises(JobError, match="no table or view c"):
        sqldeid.init(source, "c")
    assert 'source = "main.b"' in sqldeid.init(source, "B")


def test_no_data_value_is_in_the_job(tmp_path: Path) -> None:
    """Every value is distinctive, also those at the ends of ranges."""
    sql = """CREATE TABLE t AS SELECT 770000 + i AS patient_id, 'ZEBRA' || i % 9 AS sex, 66600 + i % 333 AS score_x,
        'QUAGGA' || i % 5 AS diagnosis, DATE '1777-07-07' + CAST(i AS INT) AS dob, 77.25 + i % 70 AS weight,
        7000 + i % 88 AS year, TIMESTAMP '2077-07-07 07:17:27' + TO_HOURS(CAST(i AS INT)) AS seen,
        LPAD(CAST(54321 + i % 40 AS VARCHAR), 5, '0') AS zip FROM RANGE(700) AS r(i)"""
    source = database(tmp_path / "d.duckdb", sql)
    text = sqldeid.init(source)
    table = read(source, "SELECT * FROM t")
    numbers = set(re.findall(r"[0-9][0-9.]*", text))
    values = {str(value) for row in table for value in row}
    assert not numbers & values
    assert not [word for word in ("ZEBRA", "QUAGGA", "1777", "2077", "5432", "666", "7700") if word in text]
    run(text, source)


def test_roles_and_reasons(tmp_path: Path) -> None:
    sql = """CREATE TABLE people AS SELECT i AS patient_id, 'N' || i AS last_name, 20 + i % 90 AS age,
        ['Male', 'Female'][1 + i % 2] AS sex, 10000 + i % 60 AS zip, DATE '1990-01-01' + CAST(i AS INT) AS admitted,
        'D' || i % 6 AS diagnosis, 'seen at the ward, ' || REPEAT('slept well ', 9) || i AS remarks, i % 4 AS ward,
        'm' || i || '@example.org' AS contact FROM RANGE(400) AS r(i)"""
    source = database(tmp_path / "d.duckdb", sql)
    text = sqldeid.init(source)
    table = tomllib.loads(text)["tables"]["people"]
    assert table["person"] == "patient_id" and table["privacy"]["k"] == 5
    assert table["privacy"]["l_diversity"] == {"column": "diagnosis", "l": 2}
    columns = table["columns"]
    assert {name: c["role"] for name, c in columns.items()} == {
        **dict.fromkeys(["patient_id", "last_name", "contact"], "identifying"),
        **dict.fromkeys(["age", "sex", "zip", "ward"], "quasi-identifying"),
        "admitted": "insensitive",
        "diagnosis": "sensitive",
        "remarks": "free-text",
    }
    assert columns["age"]["top_code"] == 90 and columns["admitted"]["shift"] == "person"
    assert columns["sex"]["hierarchy"] == "adult/sex" and columns["zip"]["hierarchy"] == "us/zip"
    assert "Safe Harbor itself leaves three digits at most" in " ".join(text.replace("\n#", "").split())
    assert "Safe Harbor (F) electronic mail addresses: all of its values look like it" in text
    found = run(text, source)
    assert found.columns["admitted"].shown == "shifted by person"
    harbor = {f.column: (f.letter, f.role) for f in sqldeid.safe_harbor(source, "people")}
    assert harbor == {
        "patient_id": ("R", "identifying"),
        "last_name": ("A", "identifying"),
        "age": ("C", "quasi-identifying"),
        "zip": ("B", "quasi-identifying"),
        "admitted": ("C", "quasi-identifying"),
        "remarks": ("", "free-text"),
        "contact": ("F", "identifying"),
    }


LOOKS = {
    "B": ["10115", "SW1A 1AA", "02139-1234"],
    "C": ["1970-02-03", "3.2.1970", "02/03/70"],
    "D": ["(617) 555-0123", "+49 30 1234567", "030/1234567", "617-555-0123"],
    "F": ["a.b+c@example.org"],
    "G": ["078-05-1120"],
    "J": ["DE89370400440532013000"],
    "M": ["00:1B:44:11:3A:B7"],
    "N": ["https://example.org/x?y=1", "www.example.org"],
    "O": ["192.168.1.1", "2001:db8::8a2e:370:7334"],
    "R": ["123e4567-e89b-12d3-a456-426614174000"],
}
NAMES = {
    "A": ["name", "LastName", "FIRST_NAME", "patient name", "Nachname"],
    "B": ["zip", "postal-code", "home_city", "latitude", "street"],
    "D": ["phone", "mobile_phone", "TELEFON"],
    "E": ["fax"],
    "F": ["email", "e-mail", "homeEMail"],
    "G": ["ssn", "social_security_no"],
    "H": ["mrn", "medical_record_number"],
    "I": ["member_id", "policy number"],
    "J": ["account", "credit_card"],
    "K": ["license_no", "passport"],
    "L": ["vin", "number_plate"],
    "M": ["device_id", "serial"],
    "N": ["homepage", "url"],
    "O": ["ip", "ip_address"],
    "P": ["fingerprint"],
    "Q": ["photo"],
    "R": ["subject_id", "uuid", "StayId"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("type_", ["TIMESTAMPTZ", "TIMESTAMP_NS", "TIMESTAMP_S", "TIMESTAMP_MS"])
@pytest.mark.parametrize("every", [1, 40])
def test_moments_of_every_type_are_dates(tmp_path: Path, type_: str, every: int) -> None:
    sql = f"""CREATE TABLE people AS SELECT i AS patient_id, ['f', 'm'][1 + i % 2] AS sex,
        CAST(TIMESTAMP '2020-01-01 10:00:00' + TO_HOURS(CAST(i // {every} AS INT)) AS {type_}) AS came,
        DATE '1990-01-01' + CAST(i AS INT) AS went FROM RANGE(120) AS r(i)"""
    source = database(tmp_path / "d.duckdb", sql)
    assert {f.column: f.letter for f in sqldeid.safe_harbor(source)}["came"] == "C"
    run(sqldeid.init(source), source)


def test_there_are_eighteen_kinds() -> None:
    assert "".join(kind.letter for kind in KINDS) == "ABCDEFGHIJKLMNOPQR"


def test_the_finder_knows_each_look_and_each_name(tmp_path: Path) -> None:
    asked = [(letter, value) for letter, values in LOOKS.items() for value in values]
    looks = ", ".join(f"'{value}' AS x{i}" for i, (_, value) in enumerate(asked))
    source = database(tmp_path / "d.duckdb", f"CREATE TABLE t AS SELECT {looks}")
    found = {f.column: f.letter for f in sqldeid.safe_harbor(source)}
    assert found == {f"x{i}": letter for i, (letter, _) in enumerate(asked)}
    for letter, names in NAMES.items():
        table = ", ".join(f"'a' || i % 3 AS \"{name}\"" for name in names)
        with duckdb.connect() as c:
            c.execute(f"CREATE TABLE t AS SELECT {table} FROM RANGE(50) AS r(i)")
            found = {f.column: f.letter for f in sqldeid.safe_harbor(c)}
        assert found == dict.fromkeys(names, letter)


@pytest.mark.parametrize(
    "name", ["drug_name", "hospitalName", "username_count_flag", "shipping", "colour", "message", "stage"]
)
def test_what_only_sounds_like_one_is_none(name: str) -> None:
    with duckdb.connect() as c:
        c.execute(f"CREATE TABLE t AS SELECT i % 2 = 0 AS \"{name}\", 'a' || i % 3 AS drug_name FROM RANGE(50) AS r(i)")
        assert sqldeid.safe_harbor(c) == ()


def test_words_of_names() -> None:
    assert (
        words_of("dateOfBirth") == words_of("DATE_OF_BIRTH") == words_of("date of-birth 2") == ("date", "of", "birth")
    )
    assert named("License-Plate2", ("plate", "license plate")) == "license plate"


@pytest.mark.parametrize("kind", ["integer", "float"])
def test_bands_are_round_and_few(kind: str) -> None:
    for low, high in [(0, 100), (-5, 1e6), (37, 41), (0.001, 0.002), (0, 1e14), (5, 5), (0, float("1e-30"))]:
        found = bands(ColumnFacts(Column("x", "", kind), 9, 9, 9, float(low), float(high)))
        if found:
            assert re.fullmatch(r"[125]0*", f"{found[0] * 10**9:.0f}")
            assert [w / found[0] for w in found] == pytest.approx([1, 2, 4])
            assert (high - low) / found[0] <= 30.001
    assert bands(ColumnFacts(Column("x", "", kind), 9, 9, 9, None, None)) == []


@pytest.mark.deep
def test_real_tables(shared_data: Path, tmp_path: Path) -> None:
    """Adult finds its shipped hierarchies; the tables of MIMIC-III run."""
    text = sqldeid.init(shared_data / "adult" / "adult.csv")
    shipped = {name: c.get("hierarchy") for name, c in tomllib.loads(text)["tables"]["adult"]["columns"].items()}
    assert shipped == {name: f"adult/{name}" for name in shipped if name != "salary-class"} | {"salary-class": None}
    uci = tmp_path / "uci.csv"
    names = (
        "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,gain,loss,hours,"
    )
    rows = "\n".join((shared_data / "adult_uci" / "adult.data").read_text().replace(", ", ",").split("\n")[:6000])
    uci.write_text(f"{names}native-country,income\n{rows}\n")
    found = run(sqldeid.init(uci), uci)
    assert found.search.optimal and found.search.lattice_size == 10_368
    for name in ("ADMISSIONS",):
        copy = tmp_path / f"{name}.csv"
        copy.write_bytes((shared_data / "mimic3demo" / f"{name}.csv").read_bytes())
        assert run(sqldeid.init(copy), copy).k >= 5


@pytest.mark.deep
def test_demo_databases(tmp_path: Path) -> None:
    demo.adult(tmp_path / "adult.duckdb", rows=500)
    demo.mimic(tmp_path / "mimic.duckdb", patients=20)
    assert run(sqldeid.init(tmp_path / "adult.duckdb"), tmp_path / "adult.duckdb").k >= 5
    for name in ("mimiciii.patients", "mimiciii.procedures_icd"):
        assert run(sqldeid.init(tmp_path / "mimic.duckdb", name), tmp_path / "mimic.duckdb").k >= 5


ADMITTED = """CREATE TABLE admissions AS SELECT i AS hadm_id, i % 130 AS subject_id, 20 + (i * 7) % 60 AS age,
    ['Male', 'Female'][1 + i % 2] AS sex, TIMESTAMP '2020-01-01' + TO_DAYS(CAST(i AS INT)) AS admittime,
    'D' || (i * 31) % 6 AS diagnosis FROM RANGE(400) AS r(i)"""


def test_a_person_key_that_repeats_makes_a_job_of_many_rows(tmp_path: Path) -> None:
    """It was counted in rows, and told as persons; the job that picks one row of each stands beside it."""
    source = database(tmp_path / "d.duckdb", ADMITTED)
    text = sqldeid.init(source)
    table = tomllib.loads(text)["tables"]["admissions"]
    assert (table["person"], table["rows"]) == ("subject_id", "many")
    assert not any(c.get("shift") or c.get("pseudonym") for c in table["columns"].values())
    found = run(text, source)
    assert found.persons is not None and found.persons.persons == 130 and found.k == found.persons.k >= 5
    kept = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# source = ")]
    other = "\n".join(
        kept[0] if line.startswith("source = ") else line
        for line in text.splitlines()
        if not line.startswith("rows = ")
    )
    one = run(other, source, replace=True)
    assert one.rows == 130 and one.persons is None


BY_COUNTS = ADMITTED.replace("AS hadm_id", "AS id").replace("1 + i % 2", "1 + CAST(HASH(i % 130) % 2 AS INTEGER)")


def test_a_person_key_that_repeats_is_counted_whatever_its_name(tmp_path: Path) -> None:
    """`id` has a value of its own in each row and was taken for the person, of whom there are fewer."""
    query = BY_COUNTS.replace("AS subject_id", "AS kennung")
    source = database(tmp_path / "d.duckdb", query)
    text = sqldeid.init(source)
    table = tomllib.loads(text)["tables"]["admissions"]
    assert (table["person"], table["rows"]) == ("kennung", "many")
    found = run(text, source)
    assert found.persons is not None and found.persons.persons == 130


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "other",
    ["(i * 7) % 131", "'Z' || i // 3", "i % 11", "400 - i", "CASE WHEN i % 9 > 0 THEN i // 2 * 3 END"],
    ids=["of both sexes", "of three rows in turn", "a code", "of each row", "of pairs in turn"],
)
def test_what_repeats_but_is_of_several_sexes_is_no_person(tmp_path: Path, other: str) -> None:
    query = BY_COUNTS.replace("i % 130 AS subject_id", f"{other} AS zipped")
    source = database(tmp_path / "d.duckdb", query)
    table = tomllib.loads(sqldeid.init(source))["tables"]["admissions"]
    assert table["person"] == "id" and "rows" not in table


def test_of_keys_that_repeat_the_coarsest_is_the_person(tmp_path: Path) -> None:
    """A stay has one sex, too: the person has several."""
    rows = BY_COUNTS.replace("i % 130 AS subject_id", "i % 260 AS fall, i % 130 AS pat_k")
    source = database(tmp_path / "d.duckdb", rows)
    table = tomllib.loads(sqldeid.init(source))["tables"]["admissions"]
    assert (table["person"], table["rows"]) == ("pat_k", "many")


MEASURED = """CREATE TABLE long AS SELECT i % 130 AS "{name}", i // 130 AS minute, ['HR', 'RR'][1 + i % 2] AS parameter,
    i % 37 AS itemid, i % 50 AS hospital_id, 50 + (i * 7) % 60 AS value FROM RANGE(2600) AS r(i)"""


@pytest.mark.parametrize("name", ["recordid", "id", "RecordID", "link_key", "icustay_id", "patientunitstayid"])
def test_a_key_that_repeats_in_a_long_table_is_the_person(tmp_path: Path, name: str) -> None:
    """Each measurement was taken for another person, and k counted measurements."""
    source = database(tmp_path / "d.duckdb", MEASURED.format(name=name))
    text = sqldeid.init(source)
    table = tomllib.loads(text)["tables"]["long"]
    assert (table["person"], table["rows"]) == (name, "many")
    found = run(text, source)
    assert found.persons is not None and found.persons.persons == 130


@pytest.mark.parametrize("name", ["patient_id", "recordid"])
def test_a_key_that_pandas_made_a_float_is_the_person(tmp_path: Path, name: str) -> None:
    """Each row was taken for another person, for numbers of which some are missing are no integers there."""
    made = MEASURED.format(name=name).replace("i % 130 AS", "CASE WHEN i % 9 > 0 THEN CAST(i % 130 AS DOUBLE) END AS")
    source = database(tmp_path / "d.duckdb", made)
    text = sqldeid.init(source)
    table = tomllib.loads(text)["tables"]["long"]
    assert (table["person"], table["rows"]) == (name, "many")
    found = run(text, source)
    assert found.persons is not None and found.persons.persons == 130


@pytest.mark.parametrize("name", ["provider_id", "concept_id", "wardid", "ethnicity_id", "minutes", "batch key"])
def test_a_key_of_what_persons_share_is_no_person(tmp_path: Path, name: str) -> None:
    source = database(tmp_path / "d.duckdb", MEASURED.format(name=name))
    table = tomllib.loads(sqldeid.init(source))["tables"]["long"]
    assert table["rows_are_persons"] is True and "person" not in table


@pytest.mark.parametrize(("name", "person"), [("patientunitstayid", "name"), ("link_id", "lab_id")])
def test_a_persons_key_that_repeats_comes_before_a_number_of_rows(tmp_path: Path, name: str, person: str) -> None:
    query = MEASURED.format(name=name).replace("SELECT", "SELECT i AS lab_id,")
    table = tomllib.loads(sqldeid.init(database(tmp_path / "d.duckdb", query)))["tables"]["long"]
    assert (table["person"], table.get("rows")) == ((name, "many") if person == "name" else (person, None))


def test_real_measurements_are_of_their_record(shared_data: Path, tmp_path: Path) -> None:
    source = tmp_path / "set_a.parquet"
    source.symlink_to(shared_data / "physionet2012" / "set-a.parquet")
    table = tomllib.loads(sqldeid.init(source))["tables"]["set_a"]
    assert (table["person"], table["rows"]) == ("recordid", "many")


def test_rows_without_a_person_are_left_out_of_the_job(tmp_path: Path) -> None:
    query = ADMITTED.replace("i % 130 AS subject_id", "CASE WHEN i % 9 > 0 THEN i % 130 END AS subject_id")
    source = database(tmp_path / "d.duckdb", query)
    text = sqldeid.init(source)
    assert tomllib.loads(text)["tables"]["admissions"]["where"] == '"subject_id" IS NOT NULL'
    assert run(text, source).rows < 400


def test_a_value_that_everybody_has_is_no_reason_for_l(tmp_path: Path) -> None:
    """With several values a person, one may be had by all: no class could pass."""
    query = ADMITTED.replace("'D' || (i * 31) % 6", "CASE WHEN i < 130 THEN 'D' ELSE 'D' || i % 3 END")
    source = database(tmp_path / "d.duckdb", query)
    text = sqldeid.init(source)
    assert "l_diversity" not in tomllib.loads(text)["tables"]["admissions"]["privacy"]
    run(text, source)


def test_under_safe_harbor_nothing_that_is_found_goes_out_but_ages(tmp_path: Path) -> None:
    """The release is looked at again: what is found there is the age, from 90 on as 90."""
    sql = """CREATE TABLE people AS SELECT i AS patient_id, 'N' || i AS last_name, 20 + i % 90 AS age,
        ['Male', 'Female'][1 + i % 2] AS sex, 10000 + i % 60 AS zip, DATE '1990-01-01' + CAST(i AS INT) AS admitted,
        1940 + i % 60 AS birth_year, DATE '1940-01-01' + CAST(i AS INT) AS dob, 'town' || i % 5 AS city,
        'D' || i % 6 AS diagnosis, i % 4 AS ward, 'm' || i || '@example.org' AS contact FROM RANGE(400) AS r(i)"""
    source = database(tmp_path / "d.duckdb", sql)
    text = sqldeid.init(source, preset="hipaa-safe-harbor")
    assert "does not say that law or policy is met" in " ".join(text.replace("\n#", "").split())
    columns = tomllib.loads(text)["tables"]["people"]["columns"]
    released = {name: c for name, c in columns.items() if c["role"] not in ("identifying", "free-text")}
    assert set(released) == {"age", "sex", "diagnosis", "ward"}
    assert released["age"]["top_code"] == 90
    assert "admitted" not in released and columns["admitted"] == {"role": "identifying"}
    plain = tomllib.loads(sqldeid.init(source))["tables"]["people"]["columns"]
    assert {"zip", "admitted"} <= {n for n, c in plain.items() if c["role"] not in ("identifying", "free-text")}
    run(text, source)
    found = sqldeid.safe_harbor(tmp_path / "people_release.duckdb", "release.people")
    assert {f.column for f in found} <= {"age"}
    told = read(tmp_path / "people_release.duckdb", "SELECT CAST(age AS VARCHAR) FROM release.people")
    assert not [a for (a,) in told if re.fullmatch(r"9[1-9]|1[0-9][0-9]", a or "")]


def test_what_safe_harbor_leaves_out_is_not_taken_in_again_for_want_of_others(tmp_path: Path) -> None:
    """Of name and ZIP nothing is left: no job, rather than one that releases ZIP codes."""
    sql = "CREATE TABLE t AS SELECT 'N' || i AS last_name, 10000 + i % 60 AS zip FROM RANGE(400) AS r(i)"
    source = database(tmp_path / "d.duckdb", sql)
    assert tomllib.loads(sqldeid.init(source))["tables"]["t"]["columns"]["zip"]["role"] == "quasi-identifying"
    with pytest.raises(JobError, match="nothing to generalise"):
        sqldeid.init(source, preset="hipaa-safe-harbor")


@pytest.mark.parametrize(("name", "k", "risk"), [("cms-11", 11, 1 / 11), ("risk-0.09", 12, 0.09)])
def test_a_preset_has_its_k_whatever_the_table_holds(tmp_path: Path, name: str, k: int, risk: float) -> None:
    assert 1 / k <= risk
    for rows in (200, 8):
        sql = f"CREATE TABLE t AS SELECT i AS id, ['f', 'm'][1 + i % 2] AS sex FROM RANGE({rows}) AS r(i)"
        text = sqldeid.init(database(tmp_path / f"{rows}.duckdb", sql), preset=name)
        assert tomllib.loads(text)["tables"]["t"]["privacy"]["k"] == k
    assert "refused until the table has more persons" in text
    with pytest.raises(JobError, match="choose one of hipaa-safe-harbor"):
        sqldeid.init(tmp_path / "8.duckdb", preset="hipaa")


def test_births_are_by_years_beside_shifted_dates(tmp_path: Path) -> None:
    """Their months would tell the shift, and the run would be refused."""
    sql = """CREATE TABLE people AS SELECT i AS patient_id, ['Male', 'Female'][1 + i % 2] AS sex,
        DATE '1960-01-01' + CAST(i * 11 AS INT) AS birth_date {} FROM RANGE(400) AS r(i)"""
    admitted = ", DATE '2019-01-01' + CAST(i AS INT) AS admitted"
    for more, units in ((admitted, ["year", "decade"]), ("", ["month", "year", "decade"])):
        source = database(tmp_path / f"d{len(more)}.duckdb", sql.format(more))
        text = sqldeid.init(source)
        columns = tomllib.loads(text)["tables"]["people"]["columns"]
        assert columns["birth_date"]["hierarchy"] == {"dates": units}
        assert ("months would tell the shift" in " ".join(text.replace("\n#", "").split())) == bool(more)
        if more:
            run(text, source)
