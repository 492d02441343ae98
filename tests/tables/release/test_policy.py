"""A policy on later loads: coded as before, published by one check, refused where the criteria no longer hold."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import HierarchyError, JobError, VerificationError
from sqldeid.hierarchy import open_source
from sqldeid.hierarchy.model import UncoveredValues
from sqldeid.hierarchy.stored import StoredSource, pack, unpack
from tests.support.sources import SENSITIVE, job, qi, release

pytestmark = pytest.mark.usefixtures("stages")

ROWS = (
    "SELECT i AS id, CAST(20 + (i * 7) % 45 AS INTEGER) AS age, ['f', 'm'][1 + i % 2] AS sex, "
    "'0' || (1000 + (i * 11) % 40) AS zip, ['flu', 'gout', 'mumps'][1 + (i // 3) % 3] AS illness "
    "FROM RANGE(?, ?) AS r(i)"
)
COLUMNS = {"age": qi({"bands": [5, 20]}), "sex": qi(), "zip": qi({"mask": [1, 2, 3]}), "illness": SENSITIVE}


def asked(folder: Path, **more: object) -> sqldeid.Job:
    columns = more.pop("columns", COLUMNS)
    table = release(columns, source="people", person="id", k=5, limit=0.05, text=True, **more)  # type: ignore[arg-type]
    table["privacy"] |= {"l_diversity": {"column": "illness", "l": 2}}  # type: ignore[operator]
    return job({"into": "out.duckdb"}, folder, people=table)


def database(rows: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute(f"CREATE TABLE people AS {ROWS}", [0, rows])
    return connection


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """A folder with the first load's release, and its result as JSON holds it."""
    folder = tmp_path_factory.mktemp("first")
    with database(500) as connection:
        result = sqldeid.anonymize(asked(folder), connection)
    return folder, json.loads(json.dumps(result.to_dict()))


def again(folder: Path, policy: object, statement: str = "", **more: object) -> sqldeid.Result:
    with database(500) as connection:
        if statement:
            connection.execute(statement)
        options = sqldeid.Options(replace=True, policy=policy, without_ledger=True)  # type: ignore[arg-type]
        return sqldeid.anonymize(asked(folder, **more), connection, options=options)


def types(folder: Path) -> list[str]:
    with duckdb.connect(folder / "out.duckdb", read_only=True) as connection:
        return [str(row[1]) for row in connection.execute("DESCRIBE release.people").fetchall()]


@pytest.mark.duckdb14
def test_grown_data_is_coded_as_before_by_one_check(first: tuple[Path, dict]) -> None:
    folder, policy = first
    before, shown = policy["releases"]["people"], types(folder)
    grown = again(folder, policy, f"INSERT INTO people {ROWS.replace('?, ?', '500, 600')}").releases["people"]
    assert grown.node == before["node"]
    assert grown.rows == 600
    assert (grown.search.method, grown.search.checks, grown.search.optimal) == ("policy", 1, False)
    assert before["search"]["checks"] > 1
    assert types(folder) == shown == ["VARCHAR"] * 4
    assert any("the node is the policy's" in w for w in grown.warnings)


def test_the_same_data_gives_the_same_release_and_policy(first: tuple[Path, dict]) -> None:
    folder, policy = first
    result = again(folder, policy)
    before, after = policy["releases"]["people"], result.to_dict()["releases"]["people"]  # type: ignore[index]
    assert after["policy"] == before["policy"]
    assert after["loss"] == before["loss"]
    assert after["released"] == before["released"]
    assert "policy" not in json.dumps(result.to_public())


@pytest.mark.duckdb14
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM people WHERE id % 10 > 0", r"rows? in classes of fewer than 5"),
        ("UPDATE people SET illness = 'flu' WHERE sex = 'f'", "in classes that fail distinct l-diversity of illness"),
        ("DELETE FROM people WHERE id > 2", "k is 5, but people has only 3 rows"),
    ],
)
def test_what_breaks_the_criteria_is_refused_and_named(first: tuple[Path, dict], statement: str, words: str) -> None:
    folder, policy = first
    before = (folder / "out.duckdb").read_bytes()
    with pytest.raises(VerificationError, match=words) as error:
        again(folder, policy, statement)
    assert error.value.code == 4
    assert "Nothing was published" in error.value.message or "nothing was published" in error.value.message
    assert (folder / "out.duckdb").read_bytes() == before


def test_new_values_are_the_rules_and_then_uncovered_decides(first: tuple[Path, dict], tmp_path: Path) -> None:
    folder, policy = first
    new = "UPDATE people SET age = 97, zip = '01999' WHERE id < 30"
    with duckdb.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert again(folder, policy, new).releases["people"].rows == 500
    file = tmp_path / "sex.csv"
    file.write_text("f;*\nm;*\n")
    columns = COLUMNS | {"sex": qi(str(file))}
    with database(500) as connection:
        made = sqldeid.anonymize(asked(tmp_path, columns=columns), connection).to_dict()
    other = "UPDATE people SET sex = 'x' WHERE id < 20"
    with pytest.raises(HierarchyError, match=r"does not cover 1 value of people.sex \(20 rows\)"):
        again(tmp_path, made, other, columns=columns)
    top = columns | {"sex": qi(str(file), uncovered="top")}
    with pytest.raises(JobError, match=r"tables.people.columns.sex.uncovered: the job differs"):
        again(tmp_path, made, other, columns=top)
    file.write_text("f;*\nm;*\nx;*\n")
    assert again(tmp_path, made, other, columns=columns).releases["people"].rows == 500


def test_an_edited_file_is_told_for_known_values_stay_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "sex.csv"
    file.write_text("f;women;*\nm;men;*\n")
    columns = COLUMNS | {"sex": qi(str(file))}
    with database(500) as connection:
        made = sqldeid.anonymize(asked(tmp_path, columns=columns), connection).to_dict()

    def told() -> list[str]:
        warnings = again(tmp_path, made, columns=columns).releases["people"].warnings
        return [w for w in warnings if "of the first load otherwise by now" in w]

    assert not told()
    file.write_text("f;women;*\nm;men;*\nx;neither;*\n")
    assert not told(), "a line was added, which new values follow"
    for text in ("f;female;*\nm;men;*\n", "f;men;*\nm;women;*\n", "m;men;*\nf;men;*\n"):
        file.write_text(text)
        (warning,) = told()
        assert warning.startswith("tables.people.columns.sex: the hierarchy") and "search anew" in warning


def test_an_edited_rule_is_told_too(tmp_path: Path) -> None:
    """A file of a rule lists no values; it is asked about those of the data that the policy keeps."""
    file = tmp_path / "ages.toml"
    rule = 'edges = [[{}]]\ntails = true\nlabels = [["young", "middle", "old"]]\n'
    columns = COLUMNS | {"age": qi(str(file))}

    def told(edges: str) -> int:
        file.write_text(rule.format(edges))
        warnings = again(tmp_path, made, columns=columns).releases["people"].warnings
        return sum("ages.toml codes values of the first load otherwise by now" in w for w in warnings)

    file.write_text(rule.format("25, 50"))
    with database(500) as connection:
        made = sqldeid.anonymize(asked(tmp_path, columns=columns), connection).to_dict()
    assert [told(edges) for edges in ("25, 50", "25, 60", "25.0, 50")] == [0, 1, 0]


def test_another_job_is_refused_by_what_differs(first: tuple[Path, dict]) -> None:
    folder, policy = first
    with pytest.raises(JobError, match=r"tables.people.columns.age.hierarchy.bands: the job differs"):
        again(folder, policy, columns=COLUMNS | {"age": qi({"bands": [10, 20]})})
    searched = again(folder, policy, search={"method": "best-first"}, where="id >= 0")
    assert searched.releases["people"].node == policy["releases"]["people"]["node"]


@pytest.mark.deep
def test_what_is_no_policy_is_refused(first: tuple[Path, dict], tmp_path: Path) -> None:
    folder, policy = first
    for content, words in [
        ("{", "is not JSON"),
        ("[]", "holds no policy"),
        ('{"releases": {"people": {}}}', "holds no policy"),
    ]:
        file = tmp_path / "result.json"
        file.write_text(content)
        with pytest.raises(JobError, match=words):
            again(folder, file)
    with pytest.raises(JobError, match="cannot be read"):
        again(folder, tmp_path / "absent.json")
    for name, value in [("k", 0), ("node", {"age": -1}), ("asked", 3), ("hierarchies", {}), ("job_sha256", None)]:
        kept = policy["releases"]["people"]["policy"] | {name: value}
        if name != "job_sha256":
            with pytest.raises(JobError, match=r"damaged|other quasi-identifying"):
                again(folder, {"releases": {"people": {"policy": kept}}})
    age = policy["releases"]["people"]["policy"]["hierarchies"]["age"]
    for tree in ("", "!", age["tree"][:-8]):
        hierarchies = policy["releases"]["people"]["policy"]["hierarchies"] | {"age": age | {"tree": tree}}
        kept = policy["releases"]["people"]["policy"] | {"hierarchies": hierarchies}
        with pytest.raises(JobError, match="damaged"):
            again(folder, {"releases": {"people": {"policy": kept}}})


SPECS = ({"bands": [5, 10]}, {"mask": [1, 2]}, {"suppress": True}, {"keep_first": [2, 1]})
WORDS = st.sets(st.one_of(st.none(), st.integers(0, 99).map(lambda n: f"{n:02d}")), max_size=12)


@given(st.sampled_from(SPECS), WORDS, WORDS)
def test_a_kept_hierarchy_codes_as_the_rule_does(spec: dict, before: set, after: set) -> None:
    """Whatever came first: every value has on each level the label that the rule gives it."""
    source = open_source(spec, Path())
    numeric = "bands" in spec
    then = source.bind(pa.array(sorted(before, key=str), pa.string()), numeric=numeric)
    tree = unpack(json.loads(json.dumps(pack(then))))
    values = pa.array(sorted(after, key=str), pa.string())
    kept, fresh = (s.bind(values, numeric=numeric) for s in (StoredSource(tree, source), source))
    for level in range(1, source.height):
        for found, wanted in zip(_labels(kept, level), _labels(fresh, level), strict=True):
            assert found == wanted
    assert kept.leaves == len(before | after)


def _labels(hierarchy: object, level: int) -> list[object]:
    h = hierarchy
    return np.asarray(h.labels[level], dtype=object)[h.groups[level][h.leaf]].tolist()  # type: ignore[attr-defined]


def test_uncovered_values_of_a_kept_hierarchy_keep_their_places(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a;x;*\nb;y;*\n")
    source = open_source("h.csv", tmp_path)
    kept = StoredSource(unpack(pack(source.bind(pa.array(["a"])))), source)
    with pytest.raises(UncoveredValues) as error:
        kept.bind(pa.array(["b", "c", "a", "d"]))
    assert error.value.indices.tolist() == [1, 3]
    found = kept.bind(pa.array(["c", "a"]), uncovered="top")
    assert _labels(found, 1) == ["*", "x"]
    assert found.leaves == 3
