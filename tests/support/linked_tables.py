"""Linked tables that every engine holds, and jobs of them."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sqldeid import (
    Options,
)
from sqldeid.job import Job
from sqldeid.tables.disguise import disguise
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, job, qi, release

RUN = "00112233445566778899aabbccddeeff"


"""The public number of every publication here, so that pseudonyms can be compared."""


KEYS = "aBäC"


NAMES = ("people", "stays")


PERSON = {"per son": {**IDENTIFYING, "pseudonym": True}}


def keyed(number: int) -> str:
    """A person's key, which a language sorts otherwise than bytes."""
    return f"{KEYS[number % 4]}'{number}"


def tables() -> dict[str, pa.Table]:
    """Persons, stays of most of them and of others, and codes of stays, in no order."""
    persons, staying = range(160), [i * 7 % 180 for i in range(12, 180)]
    codes = [(keyed(i * 11 % 175), f"c{i * i % 3}", i) for i in range(500)]
    return {
        "people": pa.table(
            {
                "per son": [keyed(i) for i in persons],
                "a.ge": pa.array([None if i % 53 == 0 else 20 + i * 7 % 40 for i in persons], pa.int32()),
                "sex": ["m" if i % 2 else "f" for i in persons],
                "diagnosis": [["", "😀", "flu", None][i * i // 5 % 4] for i in persons],
                "true_row": pa.array(persons, pa.int64()),
            }
        ),
        "stays": pa.table(
            {
                "per son": [keyed(i) for i in staying],
                "ward": [f"w{i * i % 3}" if i % 61 else None for i in staying],
                "los": pa.array([i % 5 for i in staying], pa.int64()),
                "seen": [date(2020, 1, 1) + timedelta(days=i * 13 % 300) for i in staying],
                "remark": [None if i % 9 == 0 else f"r{i % 4}" for i in staying],
                "same": pa.array(staying, pa.int64()),
            }
        ),
        "codes": pa.table(
            {
                "per son": [key for key, _, _ in codes],
                "code": [code for _, code, _ in codes],
                "seq": pa.array([seq for _, _, seq in codes], pa.int64()),
            }
        ),
    }


PEOPLE = {
    **PERSON,
    "A.ge": qi({"bands": [10, 20]}),  # the catalogue spells it a.ge
    "sex": qi(),
    "diagnosis": SENSITIVE,
    "true_row": INSENSITIVE,
}


STAYS = {**PERSON, "ward": qi(), "los": SENSITIVE, "remark": INSENSITIVE, "same": INSENSITIVE}


STACK = {"code": {"from": "codes", "on": "per son", "value": "code", "order": "seq", "first": 1, **INSENSITIVE}}


QUERY = {"query": "SELECT s.*, CAST(s.ward AS CHAR(4)) AS unit FROM stays AS s WHERE s.same <> 30"}


UNIT = {("unit" if name == "ward" else name): role for name, role in STAYS.items() if name != "remark"}


def stacked(**target: Any) -> Job:
    """Tables as they stand, a column out of a third one; l-diversity of one, t-closeness of the other."""
    people = release(PEOPLE, source="people", k=4, limit=0.15, person="per son")
    people["privacy"] |= {"l_diversity": {"column": "diagnosis", "l": 2}}  # type: ignore[operator]
    stays = release(STAYS, source="stays", k=3, limit=0.2, person="per son", link="people", stack=STACK)
    stays["privacy"] |= {"t_closeness": {"column": "los", "t": 0.6}}  # type: ignore[operator]
    return job(target, people=people, stays=stays)


def blanked(**target: Any) -> Job:
    """One table filtered, the other a query; suppressed rows are blanked; k alone."""
    more = {"person": "per son", "suppression": "blank"}
    people = release(PEOPLE, source="people", k=4, limit=0.15, where="true_row <> 20", **more)
    return job(target, people=people, stays=release(UNIT, source=QUERY, k=6, limit=0.2, link="people", **more))


def with_key(folder: Path) -> Options:
    (folder / "key").write_text("0123456789abcdef" * 4)
    return Options(key_file=folder / "key")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """One number of publications."""
    monkeypatch.setattr(disguise, "fresh_run", lambda: RUN)
