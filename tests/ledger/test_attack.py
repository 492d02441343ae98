"""Fifty nightly loads: whoever compares the naive releases singles people out; with the ledger nobody can."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import duckdb
import pandas as pd
import pytest

import sqldeid
from sqldeid.engine.opening import Settings
from tests.support.nights import Hospital, Released, lone_rows, smallest_difference, smallest_trace, steps_of

K, NIGHTS = 4, 50


class Nights(NamedTuple):
    """Released, said of the ledger, and released naively; one a night."""

    released: list[Released]
    accounts: list[dict]
    naive: list[Released]


KEY = "".join(f"{i:02x}" for i in range(7, 39))


def job(**privacy: object) -> sqldeid.Job:
    columns = {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [10, 20]}},
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "illness": {"role": "sensitive"},
        "mark": {"role": "insensitive"},
    }
    table = {
        "source": "main.people",
        "person": "id",
        "text": True,
        "columns": columns,
        "privacy": {"k": K, "suppression_limit": 0.1, **privacy},
    }
    return sqldeid.Job.parse({"tables": {"people": table}})


def nightly(folder: Path, hospital: Hospital, nights: int, **privacy: object) -> Nights:
    """Every night's release with policy and ledger, what the results say of the ledger, and the naive releases."""
    (folder / "key").write_text(KEY)
    asked, made = job(**privacy), Nights([], [], [])
    one = Settings(threads=1)
    options = sqldeid.Options(replace=True, ledger=folder / "ledger.duckdb", key_file=folder / "key", settings=one)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        for rows in hospital.nights(nights):
            connection.register("rows", rows)
            connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM rows")
            result = sqldeid.anonymize(asked, connection, options=options)
            options = replace(options, policy=options.policy or result.to_dict())
            found = connection.execute("SELECT mark, age, sex, illness FROM release.people").fetchall()
            people = result.releases["people"]
            made.released.append({mark: ((age, sex), illness) for mark, age, sex, illness in found})
            made.accounts.append(dict(people.ledger or {}))
            made.naive.append(naive_release(rows, people.node))
    return made


def naive_release(rows: pd.DataFrame, node: dict[str, int]) -> Released:
    """Every class of k, whatever was released before."""
    width = {0: 1, 1: 10, 2: 20, 3: 1000}[node["age"]]
    classes = [(age // width, sex if node["sex"] == 0 else "*") for age, sex in zip(rows.age, rows.sex, strict=True)]
    sizes = Counter(classes)
    rows_ = zip(rows.id, classes, rows.illness, strict=True)
    return {int(i): (c, illness) for i, c, illness in rows_ if sizes[c] >= K}


@pytest.fixture(scope="module")
def fifty(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    return nightly(tmp_path_factory.mktemp("nights"), Hospital(seed=1), NIGHTS)


@pytest.mark.deep
def test_the_naive_releases_single_people_out(fifty: Nights) -> None:
    naive = fifty.naive
    assert smallest_difference(naive[:10]) == 1
    assert smallest_trace(naive) == 1
    assert lone_rows(naive) > NIGHTS


@pytest.mark.deep
def test_no_two_releases_with_a_ledger_do(fifty: Nights) -> None:
    assert smallest_difference(fifty.released) >= K


@pytest.mark.deep
def test_nor_do_all_releases_together(fifty: Nights) -> None:
    assert smallest_trace(fifty.released) >= K
    assert lone_rows(fifty.released) == 0


@pytest.mark.deep
def test_what_is_held_back_is_counted_and_comes_later(
    fifty: Nights,
) -> None:
    ours, accounts, naive = fifty
    for mine, account, all_ in zip(ours, accounts, naive, strict=True):
        assert set(mine) <= set(all_)
        assert account["held_back"] == len(all_) - len(mine)
        assert account["held_back_share"] == pytest.approx(account["held_back"] / len(all_))
    assert [a["release"] for a in accounts] == list(range(1, NIGHTS + 1))
    arrived = {p for p, trace in steps_of(ours).items() if trace[0] is None}
    assert len(arrived) > 0.9 * (max(max(n) for n in naive) - 300)


if __name__ == "__main__":  # prints the share held back, night by night
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        for night, account in enumerate(nightly(Path(place), Hospital(seed=1), NIGHTS).accounts, start=1):
            print(f"{night:3d}  {account['held_back']:4d} rows  {account['held_back_share']:.3f}")
