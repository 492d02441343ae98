"""Codes by their structure: ICD with and without dots, ATC, ZIP codes, countries; held to a slow reading."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy import UncoveredValues, check, open_source, paths
from sqldeid.hierarchy.versions import refuse_versions
from tests.support.places import ROOT

HERE = Path("/nonexistent")
FOLDER = ROOT / "hierarchies"


def read(name: str, values: list[object]) -> dict[object, tuple[str | None, ...]]:
    bound = open_source(name, HERE).bind(pa.array(values), uncovered="top")
    return {row[0]: row[1:-1] for row in paths(bound)}


def ranges(name: str) -> list[list[str]]:
    with (FOLDER / f"{name}.ranges.csv").open(newline="") as file:
        return list(csv.reader(file))


def slowly(code: str, system: str) -> tuple[str, ...] | None:
    """Subcategory, category, section or block, and chapter of a code, read character by character."""
    text = code.strip().upper()
    width = 4 if system == "icd9" and text.startswith("E") else 3
    if "." in text:
        before, after = text.split(".", 1)
        before = before.zfill(3) if before.isdigit() else before
        if len(before) != width or "." in after:
            return None
        text = before + after
    looks = {"icd9": r"\d{3,5}|V\d{2,4}|E\d{3,4}", "icd10": r"([A-Z]\d[0-9A-Z]|QA\d)[0-9A-Z]{0,4}"}
    if not re.fullmatch(looks[system], text):
        return None
    category = text[:width]
    found = [
        next(
            (
                label
                for low, high, *rest in ranges(f"{system}/{file}")
                if len(low) == width and low <= category <= high
                for label in [rest[0] if rest else f"{low}-{high}"]
            ),
            None,
        )
        for file in (("diagnosis-sections" if system == "icd9" else "diagnosis-blocks"), "diagnosis-chapters")
    ]
    return None if None in found else (text[: width + 1], category, *map(str, found))


CODE = st.from_regex(r"\A ?[0-9A-Za-z]{1,5}(\.[0-9A-Za-z]{0,4})? ?\Z") | st.from_regex(
    r"\A(E[0-9]{2,4}|[0-9]{1,3}|[VSCMOQ][0-9][0-9A])(\.[0-9]{0,2}A?)?\Z"
)


@given(st.lists(CODE, min_size=1, max_size=30, unique=True), st.sampled_from(["icd9", "icd10"]))
def test_a_code_is_read_as_a_slow_reader_reads_it(codes: list[str], system: str) -> None:
    found = read(f"{system}/diagnoses", list(codes))
    for code in codes:
        assert found[code] == (slowly(code, system) or ("*",) * 4), code


def test_every_code_of_the_real_data_is_covered_with_and_without_its_dot(shared_data: Path) -> None:
    folder = shared_data / "mimic3demo"
    for file, name, width in (
        ("DIAGNOSES_ICD.csv", "icd9/diagnoses", 3),
        ("D_ICD_DIAGNOSES.csv.gz", "icd9/diagnoses", 3),
        ("PROCEDURES_ICD.csv", "icd9/procedures", 2),
    ):
        path = folder / file
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as rows:
            codes = {row["icd9_code"] for row in csv.DictReader(rows)} - {""}
        dotted = [c[: width + c.startswith("E")] + "." + c[width + c.startswith("E") :] for c in codes]
        for spelled in (sorted(codes), dotted):
            lost = check(name, HERE, pa.array(spelled)).uncovered
            assert lost <= 0.05 * len(codes), f"{name}: {lost} of {len(codes)}"
        plain, with_dot = read(name, sorted(codes)), read(name, dotted)
        for code, dot in zip(codes, dotted, strict=True):
            assert plain[code] == with_dot[dot]


FACTS = {
    "I50.9": ("I509", "I50", "I30-I52", "I00-I99 circulatory system"),
    "E1165": ("E116", "E11", "E08-E14", "E00-E90 endocrine, nutrition, metabolism"),
    "C4A.9": ("C4A9", "C4A", "C43-C44", "C00-D49 neoplasms"),
    "C80.1": ("C801", "C80", "C76-C80", "C00-D49 neoplasms"),
    "D3A00": ("D3A0", "D3A", "D3A", "C00-D49 neoplasms"),
    "s72.001A": ("S720", "S72", "S70-S79", "S00-T98 injury and poisoning"),
    "U07.1": ("U071", "U07", "U00-U49", "U00-U99 special purposes"),
    "O9A.11": ("O9A1", "O9A", "O94-O9A", "O00-O9A pregnancy and childbirth"),
    "QA0.0101": ("QA00", "QA0", "QA0", "Q00-QA0 congenital anomalies"),
    "Y36": ("Y36", "Y36", "Y35-Y38", "V00-Y99 external causes"),
}


def test_icd_10_is_read_by_its_chapters_and_blocks() -> None:
    assert read("icd10/diagnoses", [*FACTS]) == FACTS
    assert read("icd10/procedures", ["0DTJ4ZZ", "0dtj4zz"]) == dict.fromkeys(
        ["0DTJ4ZZ", "0dtj4zz"], ("0DTJ", "0DT", "0D", "0")
    )
    blocks, chapters = ranges("icd10/diagnosis-blocks"), ranges("icd10/diagnosis-chapters")
    for low, high, _ in blocks:
        assert sum(a <= low and high <= b for a, b, _ in chapters) == 1, f"{low}-{high} lies in one chapter"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("icd10/diagnoses", "4280"),
        ("icd10/diagnoses", "428.0"),
        ("icd10/diagnoses", "E950"),
        ("icd10/procedures", "36.01"),
        ("icd9/diagnoses", "I10"),
        ("icd9/procedures", "0DTJ4ZZ"),
    ],
)
def test_codes_of_the_other_version_refuse_the_column(name: str, code: str) -> None:
    version = "10" if "10" in name else "9"
    with pytest.raises(HierarchyError, match=f"icd_version = {version}") as refused:
        refuse_versions(open_source(name, HERE), pa.array([code, "E871"]))
    assert code not in refused.value.message.replace("icd_version = 10", "")


def test_a_dot_in_another_place_makes_it_another_code() -> None:
    assert read("icd9/diagnoses", ["E87.1", "E871.0"])["E87.1"] == ("*",) * 4
    assert read("icd10/diagnoses", ["E87.1", "E871.0"])["E871.0"] == ("*",) * 4
    assert read("icd9/diagnoses", ["8.8"])["8.8"] == read("icd9/diagnoses", ["0088"])["0088"]


def test_zip_codes_are_those_of_safe_harbor() -> None:
    small = "036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893".split()
    every = [f"{n:03d}01" for n in range(1000)]
    found = read("us/zip", every)
    assert {code[:3] for code in every if found[code][1] == "000"} == {*small, "000"}
    assert all(found[c][1:] == (c[:3], c[0]) for c in every if c[:3] not in small and c[:3] != "000")
    numbers = open_source("us/zip", HERE).bind(pa.array([2139, 3601, 501]))
    assert [row[1:4] for row in paths(numbers)] == [
        ("02139", "021", "0"),
        ("03601", "000", "000"),
        ("00501", "005", "0"),
    ]
    assert read("us/zip", ["02139-1234", "021391234"])["02139-1234"] == ("02139", "021", "0")
    with pytest.raises(UncoveredValues):
        open_source("us/zip", HERE).bind(pa.array(["D-69120"]))


def test_countries_have_regions_by_name_and_code() -> None:
    names = read("world/country", ["DE", "DEU", "Germany", "NA", "United States", "USA"])
    assert {names[c] for c in ("DE", "DEU", "Germany")} == {("Germany", "Western Europe", "Europe")}
    assert names["NA"] == ("Namibia", "Southern Africa", "Africa") and names["USA"] == names["United States"]
    tree = open_source("world/country", HERE).bind(pa.array([], pa.string()))
    assert [len(labels) for labels in tree.labels] == [782, 249, 23, 6, 1]


def test_drugs_are_read_by_the_places_of_atc() -> None:
    found = read("atc/substances", ["A10BA02", "a10b", "E01AA01"])
    assert found["A10BA02"] == ("A10BA", "A10B", "A10", "A") and found["a10b"] == ("A10B", "A10B", "A10", "A")
    assert found["E01AA01"] == ("*",) * 4
