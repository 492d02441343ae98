"""Demo databases: made by a seeded generator, no real person.

The rows are drawn from rough numbers of our own; no record of a data set was used. They have the shape, the words
and the dependencies that the real ones have, so that what is learnt on them carries over.
"""

from __future__ import annotations

import os
from pathlib import Path

from sqldeid.demo.census import adult_rows
from sqldeid.demo.database import NOTICE, Demo, DemoTable, check_target, write_demo, write_placed
from sqldeid.demo.eicu import eicu_rows
from sqldeid.demo.hospital import mimic_rows
from sqldeid.demo.mimiciv import mimiciv_rows
from sqldeid.demo.omop import omop_rows
from sqldeid.demo.sequences import procedure_rows, transfer_rows
from sqldeid.errors import JobError

__all__ = ["NOTICE", "Demo", "DemoTable", "adult", "events", "mimic", "mimiciv", "omop"]

ADULT_ROWS_MOST = 1_000_000
MIMIC_PATIENTS_MOST = 100_000
SHARED_PERSONS_MOST = 100_000
EVENTS_PATIENTS_MOST = 500_000
WITH_PROCEDURES = 3_171 / 4_370
"""Patients with billed procedures for each with transfers (Shaked & Rokach 2016, table 1)."""


def adult(path: str | os.PathLike[str], rows: int = 30_000, seed: int = 1) -> Demo:
    """Write an Adult-shaped census: table ``main.adult``, one row per made person, and a job for it.

    Parameters
    ----------
    path
        The new DuckDB file; the job file gets its name, with ``.job.toml`` for its ending.
    rows
        Number of persons, 1 to 1,000,000.
    seed
        The same seed gives the same rows.

    Raises
    ------
    JobError
        If the folder is missing, a file exists already, or a number is out of range.
    EngineError
        If the database cannot be written.
    """
    _check("rows", rows, ADULT_ROWS_MOST, seed, Path(path))
    return write_demo(Path(path), "main", {"adult": adult_rows(rows, seed)}, "adult.job.toml")


def mimic(path: str | os.PathLike[str], patients: int = 300, seed: int = 1) -> Demo:
    """Write a MIMIC-III-shaped hospital: schema ``mimiciii`` with eight tables, and a job for it.

    Vital signs cover the first 72 hours of the first 20,000 ICU stays; the titles of ICD-9 codes are left out.

    Parameters
    ----------
    path
        The new DuckDB file; the job file gets its name, with ``.job.toml`` for its ending.
    patients
        Number of patients, 1 to 100,000.
    seed
        The same seed gives the same rows.

    Raises
    ------
    JobError
        If the folder is missing, a file exists already, or a number is out of range.
    EngineError
        If the database cannot be written.
    """
    _check("patients", patients, MIMIC_PATIENTS_MOST, seed, Path(path))
    return write_demo(Path(path), "mimiciii", mimic_rows(patients, seed), "mimic.job.toml")


def events(path: str | os.PathLike[str], patients: int = 4_370, seed: int = 1) -> Demo:
    """Write sequences of events: tables ``main.transfers`` (with times) and ``main.cptevents`` (an order), and a job.

    Parameters
    ----------
    path
        The new DuckDB file; the job file gets its name, with ``.job.toml`` for its ending.
    patients
        Number of patients with transfers, 1 to 500,000; about six events each. 73 % have procedures, about eight each.
    seed
        The same seed gives the same rows.

    Raises
    ------
    JobError
        If the folder is missing, a file exists already, or a number is out of range.
    EngineError
        If the database cannot be written.
    """
    _check("patients", patients, EVENTS_PATIENTS_MOST, seed, Path(path))
    billed = max(round(patients * WITH_PROCEDURES), 1)
    tables = {"transfers": transfer_rows(patients, seed), "cptevents": procedure_rows(billed, seed)}
    return write_demo(Path(path), "main", tables, "events.job.toml")


def omop(path: str | os.PathLike[str], persons: int = 1_000, seed: int = 1) -> Demo:
    """Write a database in the shape of OMOP CDM 5.4: schema ``cdm`` with all 39 tables, and no job: `init` writes it.

    Clinical concepts are invented, and so are their numbers; codes of the source are ICD-10-CM.

    Parameters
    ----------
    path
        The new DuckDB file.
    persons
        Number of persons, 1 to 100,000.
    seed
        The same seed gives the same rows.

    Raises
    ------
    JobError
        If the folder is missing, a file exists already, or a number is out of range.
    EngineError
        If the database cannot be written.
    """
    _check("persons", persons, SHARED_PERSONS_MOST, seed, Path(path))
    return write_placed(Path(path), omop_rows(persons, seed), preset="omop54")


def mimiciv(path: str | os.PathLike[str], persons: int = 1_000, seed: int = 1) -> Demo:
    """Write a database in the shape of MIMIC-IV 3: schemas ``mimiciv_hosp``, ``mimiciv_icu``; no job: `init` writes it.

    Parameters
    ----------
    path
        The new DuckDB file.
    persons
        Number of persons, 1 to 100,000.
    seed
        The same seed gives the same rows.

    Raises
    ------
    JobError
        If the folder is missing, a file exists already, or a number is out of range.
    EngineError
        If the database cannot be written.
    """
    _check("persons", persons, SHARED_PERSONS_MOST, seed, Path(path))
    return write_placed(Path(path), mimiciv_rows(persons, seed), preset="mimiciv")


def eicu(path: str | os.PathLike[str], persons: int = 1_000, seed: int = 1) -> Demo:
    """Write a database in the shape of eICU-CRD 2.0: schema ``eicu_crd``; no job: `init` writes it.

    Parameters
    ----------
    path
        The new DuckDB file.
    persons
        Number of persons, 1 to 100,000.
    seed
        The same seed gives the same rows.

    Raises
    ------
    JobError
        If the folder is missing, a file exists already, or a number is out of range.
    EngineError
        If the database cannot be written.
    """
    _check("persons", persons, SHARED_PERSONS_MOST, seed, Path(path))
    return write_placed(Path(path), eicu_rows(persons, seed), preset="eicu")


def _check(name: str, number: int, most: int, seed: int, path: Path) -> None:
    if not 1 <= number <= most:
        raise JobError(f"{name} is {number}; it must be 1 to {most:,}", key=name)
    if seed < 0:
        raise JobError(f"seed is {seed}; it must be 0 or more", key="seed")
    check_target(path)
