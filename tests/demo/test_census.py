"""The made census: the words of UCI Adult, plausible shares, dependencies, and one seed for one table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sqldeid.demo.census import adult_rows
from sqldeid.demo.census_weights import COUNTRIES, EDUCATIONS, MARITALS, OCCUPATIONS, RACE, RELATIONSHIPS, WORKCLASSES

WORDS = {
    "workclass": WORKCLASSES,
    "education": EDUCATIONS,
    "marital-status": MARITALS,
    "occupation": OCCUPATIONS,
    "relationship": RELATIONSHIPS,
    "race": tuple(RACE),
    "native-country": COUNTRIES,
}
SPOUSE = ("Married-civ-spouse", "Married-AF-spouse")
COLUMNS = [
    *("id", "age", "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex"),
    *("native-country", "hours_per_week", "salary-class"),
]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return adult_rows(30_000, 1).to_pandas()


def test_columns_and_types() -> None:
    schema = adult_rows(5, 1).schema
    assert schema.names == COLUMNS
    whole = {"id", "age", "hours_per_week"}
    assert [str(field.type) for field in schema] == ["int32" if name in whole else "string" for name in COLUMNS]


def test_every_word_but_the_rarest_occurs_and_no_other(people: pd.DataFrame) -> None:
    for column, words in WORDS.items():
        found = set(people[column])
        assert found <= set(words)
        assert len(found) >= len(words) - 1
    assert people.notna().all(axis=None)


def test_real_data_has_the_same_words(shared_data: Path) -> None:
    names = (shared_data / "adult_uci" / "adult.names").read_text().splitlines()
    for column, words in WORDS.items():
        line = next(text for text in names if text.startswith(f"{column}: "))
        assert set(words) - {"?"} == set(line.split(": ")[1].rstrip(". ").split(", "))


def test_same_seed_same_rows_and_another_seed_others() -> None:
    assert adult_rows(500, 7).equals(adult_rows(500, 7))
    assert not adult_rows(500, 7).equals(adult_rows(500, 8))


@pytest.mark.parametrize("rows", [1, 2, 17])
def test_small_sizes(rows: int) -> None:
    assert adult_rows(rows, 3).num_rows == rows


def test_shares_are_plausible(people: pd.DataFrame) -> None:
    def share(column: str, word: str) -> float:
        return float((people[column] == word).mean())

    assert people["id"].is_unique
    assert people["age"].between(17, 90).all()
    assert 37 < people["age"].mean() < 41
    assert people["hours_per_week"].between(1, 99).all()
    assert 0.2 < share("salary-class", ">50K") < 0.3
    assert 0.62 < share("sex", "Male") < 0.72
    assert 0.85 < share("native-country", "United-States") < 0.93
    assert 0.4 < share("marital-status", "Married-civ-spouse") < 0.5
    assert 0.65 < share("workclass", "Private") < 0.75
    assert 0.03 < share("occupation", "?") < 0.08


def test_relationship_fits_sex_and_marital_status(people: pd.DataFrame) -> None:
    husband, wife = people["relationship"] == "Husband", people["relationship"] == "Wife"
    assert (people.loc[husband, "sex"] == "Male").all()
    assert (people.loc[wife, "sex"] == "Female").all()
    assert people.loc[husband | wife, "marital-status"].isin(SPOUSE).all()
    assert not (people["marital-status"].isin(SPOUSE) & (people["relationship"] == "Unmarried")).any()


def test_work_fits(people: pd.DataFrame) -> None:
    idle = people["workclass"].isin(["?", "Never-worked"])
    assert ((people["occupation"] == "?") == idle).all()
    assert (people.loc[people["occupation"] == "Armed-Forces", "workclass"] == "Federal-gov").all()
    assert (people.loc[people["occupation"] == "Priv-house-serv", "workclass"] == "Private").all()


def test_age_schooling_and_marriage_tell_on_status_and_salary(people: pd.DataFrame) -> None:
    rich = people["salary-class"] == ">50K"
    single = people["marital-status"] == "Never-married"
    by_school = rich.groupby(people["education"]).mean()
    assert by_school["HS-grad"] < by_school["Some-college"] < by_school["Bachelors"] < by_school["Doctorate"]
    assert single[people["age"] < 25].mean() > 0.6 > 0.2 > single[people["age"] > 45].mean()
    assert rich[people["marital-status"].isin(SPOUSE)].mean() > 3 * rich[single].mean()
    professional = people["occupation"] == "Prof-specialty"
    assert professional[people["education"] == "Masters"].mean() > 5 * professional[people["education"] == "9th"].mean()
