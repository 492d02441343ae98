"""The hierarchies that come with the package, against the real data where it is there."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from sqldeid.hierarchy import Hierarchy, check, named_level, open_source, paths, shipped

HERE = Path("/nonexistent")
HEIGHTS = {
    "adult/age": 4,
    "adult/education": 3,
    "adult/marital-status": 3,
    "adult/native-country": 4,
    "adult/occupation": 3,
    "adult/race": 2,
    "adult/relationship": 2,
    "adult/sex": 2,
    "adult/workclass": 3,
    "age/text": 5,
    "age/5-10-20": 5,
    "atc/substances": 6,
    "date/month-year-decade": 5,
    "icd9/diagnoses": 6,
    "icd9/procedures": 5,
    "icd/diagnoses": 6,
    "icd/procedures": 6,
    "icd10/diagnoses": 6,
    "icd10/procedures": 6,
    "mimic3/dob_year": 3,
    "mimic3/gender": 2,
    "mimic3/insurance": 3,
    "mimic3/language": 2,
    "mimic3/marital_status": 3,
    "mimic3/procedure": 3,
    "mimic3/religion": 2,
    "us/zip": 5,
    "world/country": 5,
}


def column(path: Path, name: str) -> pa.Array:
    """Distinct values of a CSV column; the empty field is NULL."""
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
        return pa.array(dict.fromkeys(row[name] or None for row in csv.DictReader(file)), pa.string())


def by_value(hierarchy: Hierarchy) -> dict[str | None, tuple[str | None, ...]]:
    return {row[0]: row[1:] for row in paths(hierarchy)}


def test_all_are_listed_open_and_have_their_height() -> None:
    assert {name: open_source(name, HERE).height for name in shipped()} == HEIGHTS
    assert all(not check(name, HERE).problems for name in shipped())


@pytest.mark.parametrize("name", sorted(n.removeprefix("adult/") for n in HEIGHTS if n.startswith("adult/")))
def test_adult_equals_appendix_b(shared_data: Path, name: str) -> None:
    expected = open_source(f"{name}.csv", shared_data / "adult_uci" / "hierarchies").bind(pa.array([], pa.string()))
    ours = open_source(f"adult/{name}", HERE).bind(pa.array([], pa.string()))
    assert by_value(ours) == by_value(expected)
    assert len(by_value(ours)) == ours.leaves == expected.leaves


def test_adult_covers_its_data_as_text_and_as_numbers(shared_data: Path) -> None:
    names = ["age", "workclass", "", "education", "", "marital-status", "occupation", "relationship", "race", "sex"]
    names += ["", "", "", "native-country"]
    with (shared_data / "adult_uci" / "adult.data").open(newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    for at, name in enumerate(names):
        values = list(dict.fromkeys(row[at] for row in rows))
        if name:
            assert check(f"adult/{name}", HERE, pa.array(values)).problems == (), name
    ages = pa.array(dict.fromkeys(int(row[0]) for row in rows))
    assert check("adult/age", HERE, ages).problems == ()


@pytest.mark.parametrize(
    ("name", "file", "field"),
    [
        ("mimic3/language", "ADMISSIONS.csv", "language"),
        ("mimic3/religion", "ADMISSIONS.csv", "religion"),
        ("mimic3/insurance", "ADMISSIONS.csv", "insurance"),
        ("mimic3/marital_status", "ADMISSIONS.csv", "marital_status"),
        ("mimic3/gender", "PATIENTS.csv", "gender"),
        ("mimic3/procedure", "PROCEDURES_ICD.csv", "icd9_code"),
        ("icd9/procedures", "PROCEDURES_ICD.csv", "icd9_code"),
        ("icd9/procedures", "D_ICD_PROCEDURES.csv", "icd9_code"),
        ("icd9/diagnoses", "DIAGNOSES_ICD.csv", "icd9_code"),
        ("icd9/diagnoses", "D_ICD_DIAGNOSES.csv.gz", "icd9_code"),
    ],
)
def test_mimic_is_covered(shared_data: Path, name: str, file: str, field: str) -> None:
    values = column(shared_data / "mimic3demo" / file, field)
    report = check(name, HERE, values)
    assert (report.problems, report.values) == ((), len(values))


def test_procedures_equal_the_code_system(shared_data: Path) -> None:
    """Leading zeros included; the chapter's label begins with its range."""
    with (shared_data / "icd9" / "icd9_proc_hierarchy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ours = by_value(open_source("icd9/procedures", HERE).bind(pa.array([row["code"] for row in rows])))
    chapters = {}
    for row in rows:
        sub3, category, chapter, top = ours[row["code"]]
        assert (sub3, category, top) == (row["sub3"], row["category2"], "*")
        assert chapter is not None and chapter.split(" ")[0] == row["chapter_range"]
        chapters[row["chapter"]] = chapter
    assert len(chapters) == len(set(chapters.values())) == 18


def test_procedures_that_the_dictionary_lacks_have_a_place(shared_data: Path) -> None:
    known = set(column(shared_data / "mimic3demo" / "D_ICD_PROCEDURES.csv", "icd9_code").to_pylist())
    lacking = [code for code in ("3601", "3605", "458") if code not in known]
    assert lacking == ["3601", "3605", "458"]
    ours = by_value(open_source("icd9/procedures", HERE).bind(pa.array(lacking)))
    assert ours["3601"][:2] == ours["3605"][:2] == ("360", "36")
    assert ours["458"][:2] == ("458", "45")


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("0031", ("0031", "003", "001-009", "001-139 infections and parasites")),
        ("4019", ("4019", "401", "401-405", "390-459 circulatory system")),
        ("25000", ("2500", "250", "249-259", "240-279 endocrine, nutrition, metabolism, immunity")),
        ("042", ("042", "042", "042", "001-139 infections and parasites")),
        ("E8791", ("E8791", "E879", "E878-E879", "E000-E999 external causes")),
        ("V5867", ("V586", "V58", "V50-V59", "V01-V91 factors influencing health")),
    ],
)
def test_diagnoses(code: str, path: tuple[str, ...]) -> None:
    got = by_value(open_source("icd9/diagnoses", HERE).bind(pa.array([code])))[code]
    assert got == (*path, "*")


def test_mimic_groups() -> None:
    insurance = by_value(open_source("mimic3/insurance", HERE).bind(pa.array([None, "Self Pay"], pa.string())))
    assert insurance["Self Pay"] == ("Not public", "Insurance") and insurance[None] == ("?", "Insurance")
    marital = by_value(open_source("mimic3/marital_status", HERE).bind(pa.array([None], pa.string())))
    assert marital[None] == marital["UNKNOWN (DEFAULT)"] == ("?", "Marital status")
    assert marital["LIFE PARTNER"] == ("Has partner", "Marital status")
    assert by_value(open_source("mimic3/gender", HERE).bind(pa.array(["F"]))) == {"F": ("Gender",)}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1800, 1950, 1951, 1980, 1981, 2000, 2001, 2120]),
        pa.array([dt.date(y, m, 1) for y, m in ((1800, 1), (1950, 12), (1951, 1), (1980, 12), (1981, 1), (2000, 12))]),
    ],
)
def test_generations_by_year_of_birth(values: pa.Array) -> None:
    hierarchy = open_source("mimic3/dob_year", HERE).bind(values)
    got = hierarchy.labels[1][hierarchy.groups[1][hierarchy.leaf]].tolist()
    generations = ["Silent generation", "Baby boomer", "Millennial", "Generation Z"]
    assert got == [g for g in generations for _ in range(2)][: len(values)]
    assert hierarchy.labels[2].tolist() == ["Date of birth"]


def test_a_level_is_told_by_what_cells_hold() -> None:
    education, bands = open_source("adult/education", Path()), open_source({"bands": [10]}, Path())
    assert [named_level(education, x) for x in range(3)] == [" (original)", "", " (one value: Education)"]
    assert [named_level(bands, x) for x in range(3)] == [" (original)", " (bands of 10)", " (one value: *)"]
