"""What attackers achieve on Adult, by one node and by local recoding, and on the demo of MIMIC-III.

    python -m benchmarks.attacks                 prints the figures of docs/attacks.md
    python -m benchmarks.attacks --page PAGE     puts them at the end of a page, from "## Figures" on

The data are those of `make bench` (SQLDEID_TEST_DATA, else shared/data beside the checkout). Draws are seeded.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

import sqldeid
from benchmarks.sources import data_folder

ADULT = "sex age race marital-status education native-country workclass salary-class".split()
MIMIC = """CREATE TABLE patients AS
SELECT p.subject_id AS id, p.gender, CAST(YEAR(CAST(p.dob AS TIMESTAMP)) AS INTEGER) AS born, a.insurance, a.religion,
       a.marital_status, a.admission_type, a.hospital_expire_flag AS died
FROM read_csv('{0}/PATIENTS.csv') AS p
JOIN (SELECT *, ROW_NUMBER() OVER (PARTITION BY subject_id ORDER BY admittime, hadm_id) AS nth
      FROM read_csv('{0}/ADMISSIONS.csv')) AS a ON a.subject_id = p.subject_id AND a.nth = 1"""
KNOWN = ("gender", "insurance", "religion", "marital_status", "admission_type")
HEAD = """| release | attack | main | control | baseline | risk |
|---|---|---|---|---|---|"""

DISCLOSED = """| release | column | rows in classes of one value | times likelier, mean | skewness, mean |
|---|---|---|---|---|"""


def jobs(data: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What each release is called, its setup, and the table of its job."""
    adult = f"""CREATE TABLE adult AS SELECT ROW_NUMBER() OVER () AS id, *
        FROM read_csv('{data}/adult/adult.csv', delim = ';', header = true)"""
    columns: dict[str, Any] = {"occupation": {"role": "sensitive"}}
    for name in ADULT:
        columns[name] = _known(str(data / "adult" / f"adult_hierarchy_{name}.csv"))
    asked = {"source": "adult", "person": "id", "columns": columns, "privacy": {"k": 5, "suppression_limit": 0.05}}
    yield "Adult, one node", adult, asked
    yield "Adult, local", adult, {**asked, "search": {"method": "local"}}
    columns = {name: _known({"suppress": True}) for name in KNOWN}
    columns |= {"born": _known({"bands": [10, 20, 40, 80]}), "died": {"role": "sensitive"}}
    asked = {"source": "patients", "person": "id", "columns": columns, "privacy": {"k": 5, "suppression_limit": 0.1}}
    yield "MIMIC demo, one node", MIMIC.format(data / "mimic3demo"), asked
    yield "MIMIC demo, local", MIMIC.format(data / "mimic3demo"), {**asked, "search": {"method": "local"}}


def _known(hierarchy: object) -> dict[str, object]:
    return {"role": "quasi-identifying", "hierarchy": hierarchy}


def figures(data: Path) -> Iterator[str]:
    """The lines of the tables."""
    told = []
    yield HEAD
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, setup, asked) in enumerate(jobs(data)):
            source = Path(folder) / f"{number}.duckdb"
            with duckdb.connect(str(source)) as connection:
                connection.execute(setup)
            job = sqldeid.Job.parse({"release": {"schema": "out"}, "tables": {"r": asked}})
            attacks = sqldeid.anonymize(job, source).releases["r"].to_dict()["attacks"]
            assert isinstance(attacks, dict)
            yield from _controlled(name, attacks)
            told += list(_disclosed(name, attacks))
    yield f"\n{DISCLOSED}"
    yield from told


def _controlled(name: str, attacks: Mapping[str, Any]) -> Iterator[str]:
    if "singling_out" not in attacks:
        reason = next(x["reason"] for x in attacks["left_out"] if x["attack"] == "singling_out")
        yield f"| {name} | not attacked: {reason} | | | | |"
        return
    singled = attacks["singling_out"]
    found = {"singling out by class": singled["by_class"], "singling out with values": singled["with_values"]}
    found["linkability"] = attacks["linkability"]
    found |= {f"inference of {c['column']}": c for c in attacks["inference"]["columns"]}
    for attack, of in found.items():
        shares = [_percent(of[part]) for part in ("main", "control", "baseline", "risk")]
        yield f"| {name} | {attack} | {' | '.join(shares)} |"


def _disclosed(name: str, attacks: Mapping[str, Any]) -> Iterator[str]:
    for c in attacks["disclosure"]["columns"]:
        alike = f"{100 * c['alike']['value']:.2f} %"
        yield f"| {name} | {c['column']} | {alike} | {c['positive_mean']:.2f} | {c['skewness_mean']:.2f} |"


def _percent(found: Mapping[str, Any]) -> str:
    value = f"{100 * found['value']:.2f} %"
    return value if found["exact"] else f"{value} ({100 * found['low']:.2f} to {100 * found['high']:.2f})"


def main(arguments: list[str]) -> None:
    """Print the figures, or put them into a page."""
    said = "\n".join(figures(data_folder())) + "\n"
    if arguments[:1] != ["--page"]:
        sys.stdout.write(said)
        return
    page = Path(arguments[1])
    head, found, _ = page.read_text(encoding="utf-8").partition("\n## Figures\n")
    if not found:
        raise SystemExit(f"{page} has no section Figures")
    page.write_text(f"{head}{found}\n{BEFORE}\n\n{said}", encoding="utf-8")


BEFORE = "Printed by `python -m benchmarks.attacks`; k = 5, main and control of a release of 80 %, intervals of 95 %."

if __name__ == "__main__":
    main(sys.argv[1:])
