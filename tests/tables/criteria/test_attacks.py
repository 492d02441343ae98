"""Attacks on releases of Adult: which succeed against k-anonymity, and which criterion stops them.

The attacker of these tests has what an attacker has: the release, the hierarchies (they are public), and the
quasi-identifying values of everybody. The truth is only used to count how often the attacker is right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import sqldeid
from sqldeid.tables.criteria import DistinctLDiversity

QIS = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass"]
K = 5

Key = tuple[str, ...]


@dataclass(frozen=True)
class Known:
    """What is published, and what the attacker knows of everybody beside it.

    `classes` are the released sensitive values by class, `people` the true ones, by the class that the node puts them.
    """

    classes: Mapping[Key, list[str]]
    people: Mapping[Key, list[str]]


@pytest.fixture(scope="module")
def database(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adult") / "adult.duckdb"
    people = pa.Table.from_pandas(pd.read_csv(shared_data / "adult" / "adult.csv", sep=";", dtype=str))
    with duckdb.connect(path) as connection:
        connection.register("people", people)
        connection.execute("CREATE TABLE adult AS SELECT * FROM people")
    return path


def released(database: Path, data: Path, sensitive: str, privacy: dict[str, object], k: int = K) -> Known:
    """Release with these criteria, then read what was published as an attacker would."""
    files = {name: data / "adult" / f"adult_hierarchy_{name}.csv" for name in QIS}
    columns = {name: {"role": "quasi-identifying", "hierarchy": str(file)} for name, file in files.items()}
    into = database.with_name("out.duckdb")
    job = sqldeid.Job.parse(
        {
            "release": {"into": str(into)},
            "tables": {
                "adult": {
                    "rows_are_persons": True,
                    "source": "adult",
                    "columns": columns | {sensitive: {"role": "sensitive"}},
                    "privacy": {"k": k, "suppression_limit": 0.02, **privacy},
                }
            },
        }
    )
    result = sqldeid.anonymize(job, database, options=sqldeid.Options(replace=True, without_ledger=True)).releases[
        "adult"
    ]
    with duckdb.connect(into, read_only=True) as connection:
        shown = connection.execute("SELECT * FROM release.adult").fetchall()
    with duckdb.connect(database, read_only=True) as connection:
        names = ", ".join(f'"{name}"' for name in (*QIS, sensitive))
        everybody = connection.execute(f"SELECT {names} FROM adult").fetchall()
    labels = [_labels(files[name], level) for name, level in result.node.items()]
    people = [(*(label[v] for label, v in zip(labels, row, strict=False)), row[-1]) for row in everybody]
    return Known(_by_class(shown), _by_class(people))


def _labels(file: Path, level: int) -> dict[str, str]:
    lines = pd.read_csv(file, sep=";", dtype=str, header=None, keep_default_na=False)
    return dict(zip(lines[0], lines[level], strict=True))


def _by_class(rows: Sequence[tuple[str, ...]]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = defaultdict(list)
    for row in rows:
        found[row[:-1]].append(row[-1])
    return found


def homogeneous(known: Known) -> list[Key]:
    """Classes of one value: whoever is in one has it."""
    return [key for key, values in known.classes.items() if len(set(values)) == 1]


def with_background(known: Known) -> list[tuple[Key, str, str]]:
    """Classes of two values: of whoever does not have one (the attacker knows so much) the other is learnt."""
    found = []
    for key, values in known.classes.items():
        if len(two := sorted(set(values))) == 2:
            found += [(key, two[0], two[1]), (key, two[1], two[0])]
    return found


ATTACKED = {"occupation": 3, "salary-class": 5}
"""Sensitive column → the k of a release in which classes of one value are found."""


@pytest.mark.deep
@pytest.mark.parametrize("sensitive", ATTACKED)
def test_homogeneity_succeeds_against_k_anonymity(database: Path, shared_data: Path, sensitive: str) -> None:
    known = released(database, shared_data, sensitive, {}, ATTACKED[sensitive])
    assert min(map(len, known.classes.values())) >= ATTACKED[sensitive]
    found = homogeneous(known)
    assert found
    for key in found:  # what the attacker learns is true of everybody whom the class can be
        assert set(known.people[key]) == set(known.classes[key])


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("sensitive", "privacy"),
    [
        ("occupation", {"l_diversity": {"column": "occupation", "l": 2}}),
        ("occupation", {"l_diversity": {"column": "occupation", "l": 2, "kind": "entropy"}}),
        ("occupation", {"l_diversity": {"column": "occupation", "l": 2, "kind": "recursive", "c": 4}}),
        ("occupation", {"t_closeness": {"column": "occupation", "t": 0.5}}),
        ("salary-class", {"l_diversity": {"column": "salary-class", "l": 2}}),
        ("salary-class", {"t_closeness": {"column": "salary-class", "t": 0.2}}),
    ],
)
def test_homogeneity_fails_against_diversity_and_closeness(
    database: Path, shared_data: Path, sensitive: str, privacy: dict[str, object]
) -> None:
    assert homogeneous(released(database, shared_data, sensitive, privacy, ATTACKED[sensitive])) == []


@pytest.mark.deep
def test_background_knowledge_succeeds_against_k_anonymity_and_two_values(database: Path, shared_data: Path) -> None:
    two: dict[str, object] = {"l_diversity": {"column": "occupation", "l": 2}}
    for privacy in ({}, two):
        known = released(database, shared_data, "occupation", privacy)
        found = with_background(known)
        assert found
        right = [
            value == learnt for key, ruled_out, learnt in found for value in known.people[key] if value != ruled_out
        ]
        assert right and all(right)


@pytest.mark.deep
@pytest.mark.parametrize(
    "privacy",
    [
        {"l_diversity": {"column": "occupation", "l": 3}},
        {"l_diversity": {"column": "occupation", "l": 3, "kind": "entropy"}},
        {"t_closeness": {"column": "occupation", "t": 0.4}},
    ],
)
def test_background_knowledge_fails_against_three_values_and_closeness(
    database: Path, shared_data: Path, privacy: dict[str, object]
) -> None:
    known = released(database, shared_data, "occupation", privacy)
    assert with_background(known) == []
    assert homogeneous(known) == []


@pytest.mark.deep
def test_what_a_class_tells_is_bounded_by_t(database: Path, shared_data: Path) -> None:
    """Nobody's value becomes likelier by more than t over what the whole table says."""
    t = 0.4
    plain = released(database, shared_data, "occupation", {})
    known = released(database, shared_data, "occupation", {"t_closeness": {"column": "occupation", "t": t}})
    assert greatest_gain(plain) > t
    assert greatest_gain(known) <= t + 1e-12


def greatest_gain(known: Known) -> float:
    """By how much a class raises the share of a value over that in the whole table."""
    everybody = Counter(v for values in known.people.values() for v in values)
    total = sum(everybody.values())
    return max(
        n / len(values) - everybody[value] / total
        for values in known.classes.values()
        for value, n in Counter(values).items()
    )


@pytest.mark.deep
def test_the_minimality_attack_succeeds_against_two_values(database: Path, shared_data: Path) -> None:
    """Wong et al. 2007: suppression tells. A class of k or more that is missing failed l; with l = 2 it has one value.

    This is what *Does not protect* says, and with l = 3 the attacker no longer learns one value, but at most two.
    """
    known = released(database, shared_data, "salary-class", {"l_diversity": {"column": "salary-class", "l": 2}})
    missing = [key for key, values in known.people.items() if len(values) >= K and key not in known.classes]
    assert missing, "the attacker needs the quasi-identifying values of everybody and the published node alone"
    assert all(len(set(known.people[key])) == 1 for key in missing)
    wider = released(database, shared_data, "occupation", {"l_diversity": {"column": "occupation", "l": 3}})
    gone = [values for key, values in wider.people.items() if len(values) >= K and key not in wider.classes]
    assert gone
    assert all(len(set(values)) <= 2 for values in gone)
    assert any(len(set(values)) == 2 for values in gone)
    said = " ".join((DistinctLDiversity.__doc__ or "").partition("Does not protect")[2].split())
    assert "a class known to have had k persons but missing is homogeneous" in said
