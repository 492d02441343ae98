"""`search.method = "local"`: classes with levels of their own, recounted in pandas; what is false is refused."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from sqldeid import anonymize, assess, plan, verify
from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.job import Job
from sqldeid.run import Options
from sqldeid.tables.local.layers import layers_of
from sqldeid.tables.peel import LocalProblem, Partition
from tests.support.linked_series import SERIES
from tests.support.local_tables import (
    COLUMNS,
    LABELS,
    NAMES,
    ROWS,
    SOURCE,
    histograms,
    local_job,
    lost,
    people,
    released,
    shown,
    sizes,
    source,
    table,
)
from tests.support.sources import IDENTIFYING, INSENSITIVE, SENSITIVE, qi

L = {"column": "illness", "l": 3}
T = {"column": "illness", "t": 0.25}
PRIVACY: dict[str, dict[str, Any]] = {
    "k": {},
    "k, some suppressed": {"k": 7, "suppression_limit": 0.05},
    "blank": {"k": 5, "suppression": "blank", "suppression_limit": 0.1},
    "l": {"l_diversity": L},
    "l entropy": {"l_diversity": {**L, "l": 2, "kind": "entropy"}, "suppression_limit": 0.1},
    "l recursive": {"l_diversity": {**L, "l": 2, "kind": "recursive", "c": 2.0}},
    "t": {"t_closeness": T},
    "t ordered": {"t_closeness": {"column": "alive", "t": 0.2, "distance": "ordered"}},
    "t by hierarchy": {
        "t_closeness": {**T, "t": 0.2, "distance": "hierarchical", "hierarchy": "illness.csv"},
        "suppression_limit": 0.1,
    },
    "delta": {"delta_disclosure": {"column": "illness", "delta": 1.5}},
    "beta": {"beta_likeness": {"column": "illness", "beta": 1.0}},
}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    (tmp_path / "illness.csv").write_text("flu;lungs;*\ncold;lungs;*\n😀;other;*\n")
    return source(tmp_path / "source.duckdb")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PRIVACY)
def test_a_release_is_what_pandas_counts(name: str, there: Path, tmp_path: Path) -> None:
    privacy = {"k": 4, **PRIVACY[name]}
    job = local_job(tmp_path, privacy=privacy, columns={**COLUMNS, "alive": SENSITIVE})
    found = anonymize(job, there).releases["people"]
    rows, whole = released(tmp_path), people(there)
    assert list(rows.columns) == ["age", "sex", "zip", "illness", "code", "alive"]
    assert (found.rows, found.released, found.suppressed) == (ROWS, len(rows), ROWS - len(rows))
    assert found.suppressed <= ROWS * privacy.get("suppression_limit", 0)
    counted = sizes(rows)
    assert (counted.min(), len(counted)) == (found.k, found.classes)
    assert found.k >= privacy["k"]
    assert found.loss["loss"] == pytest.approx(lost(rows, whole))
    assert 0 <= found.bound <= found.loss["loss"] == pytest.approx(found.bound + found.gap)
    by_code = whole.set_index("code")
    assert rows.code.is_unique
    for _, row in rows.iterrows():
        person = by_code.loc[row.code]
        assert shown(person.illness) == shown(row.illness)
        levels = [[x for x, f in enumerate(LABELS[n]) if f(person[n]) == shown(row[n])] for n in NAMES]
        assert any(all(layer.node[n] in x for n, x in zip(NAMES, levels, strict=True)) for layer in found.layers)
    checked = verify(job, there)["people"]
    assert checked.to_dict()["criteria"] == tuple(asdict(c) for c in found.criteria[1:])
    assert (checked.k, checked.released, checked.suppressed) == (found.k, found.released, found.suppressed)
    assert assess(job, there, release=True)["people"].class_sizes == found.risk["release"].class_sizes
    _hold_criteria(privacy, rows, whole)


def _hold_criteria(privacy: dict[str, Any], rows: Any, whole: Any) -> None:
    of_class = histograms(rows, "illness")
    shares = of_class.div(of_class.sum(axis=1), axis=0)
    there = whole.illness.map(shown).value_counts(normalize=True)[of_class.columns]
    if "l_diversity" in privacy and privacy["l_diversity"].get("kind") is None:
        assert ((of_class > 0).sum(axis=1) >= 3).all()
    if "t_closeness" in privacy and "distance" not in privacy["t_closeness"]:
        assert (((shares - there).abs().sum(axis=1) / 2) <= 0.25 + 1e-12).all()
    if privacy.get("t_closeness", {}).get("distance") == "hierarchical":
        gap, lungs = shares - there, ["flu", "cold"]
        apart = gap.abs().sum(axis=1) + gap.drop(columns=lungs).abs().sum(axis=1) + gap[lungs].sum(axis=1).abs()
        assert (apart / 4 <= 0.2 + 1e-12).all()
    if "delta_disclosure" in privacy:
        assert (np.abs(np.log(shares / there)) < 1.5).all(axis=None)
    if "beta_likeness" in privacy:
        assert ((shares - there) / there <= np.minimum(1.0, -np.log(there)) + 1e-9).all(axis=None)


def test_neither_order_nor_sensitive_values_change_who_is_with_whom(there: Path, tmp_path: Path) -> None:
    wanted = None
    for number, change in enumerate(["id", "hash(id)", "code DESC"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        moved = source(folder / "source.duckdb", change, SOURCE.replace("i * i + i // 5", f"i * i * {number + 1}"))
        found = anonymize(local_job(folder), moved).releases["people"]
        rows = released(folder).sort_values("code")[["age", "sex", "zip", "code"]].to_numpy().tolist()
        told = (rows, [layer.node for layer in found.layers], found.loss, found.bound)
        assert wanted in (None, told)
        wanted = told


def test_a_column_that_is_finest_everywhere_keeps_its_type(tmp_path: Path) -> None:
    there = source(
        tmp_path / "source.duckdb", text=f"CREATE TABLE people AS SELECT i AS id, CAST(i % 3 AS SMALLINT) AS ward, "
        f"CAST(i % 4 AS DOUBLE) / 8 AS tall, i AS age FROM RANGE({ROWS}) AS r(i)"
    )  # fmt: skip
    columns = {"ward": qi(), "tall": qi(), "age": qi({"bands": [20, 40]})}
    job = local_job(tmp_path, columns=columns)
    found = anonymize(job, there).releases["people"]
    assert [found.columns[n].type for n in columns] == ["SMALLINT", "DOUBLE", "VARCHAR"]
    assert found.columns["ward"].levels == (1.0, 0.0)
    assert verify(job, there)["people"].k == found.k
    text = local_job(tmp_path, columns=columns, text=True, target={"into": "text.duckdb"})
    assert {c.type for c in anonymize(text, there).releases["people"].columns.values()} == {"VARCHAR"}
    assert verify(text, there)["people"].k == found.k


TAMPERED = {
    "a class of one row less than k": "DELETE FROM {t} WHERE rowid = (SELECT MIN(rowid) FROM {t} "
    "GROUP BY age, sex, zip HAVING COUNT(*) = 4 LIMIT 1)",
    "a level too low for one row": "UPDATE {t} SET zip = 'a00' WHERE rowid = (SELECT rowid FROM {t} "
    "WHERE zip LIKE '%*' ORDER BY rowid LIMIT 1)",
    "labels of another class": "UPDATE {t} SET (age, sex, zip) = (SELECT (o.age, o.sex, o.zip) FROM {t} AS o WHERE "
    "o.zip NOT LIKE '%*' AND o.age NOT LIKE '%*' AND o.sex <> '*' ORDER BY o.rowid DESC LIMIT 1) WHERE code = 'code 1'",
    "values of two classes change places": "UPDATE {t} SET code = CASE code WHEN 'code 1' THEN 'code 2' ELSE 'code 1' "
    "END WHERE code IN ('code 1', 'code 2')",
    "another value beside the labels": "UPDATE {t} SET illness = 'plague' WHERE code = 'code 1'",
    "a row twice": "INSERT INTO {t} SELECT * FROM {t} WHERE code = 'code 1'",
    "all rows of a class": "DELETE FROM {t} WHERE (age, sex, zip) IN (SELECT (age, sex, zip) FROM {t} LIMIT 1)",
    "a label of no layer": "UPDATE {t} SET sex = 'x' WHERE rowid = (SELECT MIN(rowid) FROM {t})",
    "a column less": "ALTER TABLE {t} DROP COLUMN illness",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_changed_is_refused(name: str, there: Path, tmp_path: Path) -> None:
    job = local_job(tmp_path)
    anonymize(job, there)
    assert verify(job, there)["people"].rows == ROWS
    with duckdb.connect(str(tmp_path / "out.duckdb")) as c:
        c.execute(TAMPERED[name].format(t="release.people"))
    with pytest.raises(VerificationError, match="failed its re-check"):
        verify(job, there)


def test_another_job_is_refused(there: Path, tmp_path: Path) -> None:
    anonymize(local_job(tmp_path), there)
    with pytest.raises(VerificationError, match="other privacy criteria"):
        verify(local_job(tmp_path, privacy={"k": 5}), there)
    with pytest.raises(VerificationError, match="other quasi-identifying columns or hierarchies"):
        verify(local_job(tmp_path, columns={**COLUMNS, "zip": qi({"mask": [2]})}), there)
    with pytest.raises(VerificationError):
        verify(local_job(tmp_path, search={"method": "frontier"}), there)


def test_what_cannot_be_met_is_told(there: Path, tmp_path: Path) -> None:
    with pytest.raises(NoSolutionError):
        anonymize(local_job(tmp_path, privacy={"l_diversity": {**L, "kind": "recursive", "c": 0.01}}), there)
    with pytest.raises(JobError, match="k is 999"):
        anonymize(local_job(tmp_path, privacy={"k": 999}), there)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another loss": ({"search": {"loss": "entropy"}}, "search.loss: .*whole columns at one level"),
    "checks": ({"search": {"checks_limit": 9}}, "search.checks_limit: .*checks no nodes one by one"),
    "greatest loss": ({"search": {"max_loss": 0.5}}, "search.max_loss"),
    "heuristic": ({"search": {"heuristic": "range"}}, "search.heuristic"),
    "medians": ({"columns": {"age": qi({"median": "range"})}}, "hierarchy.median"),
    "many rows": ({"rows": "many"}, "its classes and its bound count rows"),
    "computed": ({"view": "computed", "target": {"as": "view"}}, "view: does not go with"),
    "no layers": ({"search": {"layers": 0}}, "search.layers: must be a whole number"),
    "its own column": ({"recoding": True, "columns": {**COLUMNS, "Recoding": INSENSITIVE}}, "columns.Recoding"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_apply_is_refused_by_name(name: str, tmp_path: Path) -> None:
    changed, said = REFUSED[name]
    with pytest.raises(JobError, match=said):
        local_job(tmp_path, **changed)


def test_what_shares_one_node_is_refused_by_name(tmp_path: Path) -> None:
    """Linked tables and followed series, before anything is opened."""
    linked = {**table(), "link": "others"}
    other = {"source": "others", "person": "id", "columns": {"sex": qi()}, "privacy": {"k": 4}}
    with pytest.raises(JobError, match=r"local.*linked tables share the levels of one node"):
        Job.parse({"tables": {"people": linked, "others": other}}, folder=tmp_path)
    series = {**SERIES, "link": "people"}
    with pytest.raises(JobError, match=r'series.s.link: .*"local" keeps nowhere who is in which class'):
        Job.parse({"tables": {"people": table()}, "series": {"s": series}}, folder=tmp_path)


def test_a_joint_criterion_is_refused(tmp_path: Path) -> None:
    columns = {**COLUMNS, "alive": SENSITIVE}
    with pytest.raises(JobError, match=r"l_diversity.scope: .*one sensitive column at a time"):
        local_job(tmp_path, columns=columns, privacy={"l_diversity": {**L, "scope": "joint"}})


def test_what_only_local_recoding_reads_goes_with_it_alone(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"search.layers: goes with method = \"local\" alone"):
        local_job(tmp_path, search={"method": "frontier", "layers": 3})
    with pytest.raises(JobError, match="recoding: goes with"):
        local_job(tmp_path, search={"method": "frontier"}, recoding=True)


def test_a_plan_tells_what_will_be_done(there: Path, tmp_path: Path) -> None:
    [planned] = plan(local_job(tmp_path, columns={**COLUMNS, "id": IDENTIFYING}, search={"layers": 3}), there)
    told = dict(planned.facts())
    assert told["Search"] == "local, least loss, at most 3 layers"
    assert told["K-anonymity"] == "k = 4"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["table", "view", "parquet"])
def test_rows_tell_their_layer_where_that_is_asked_for(kind: str, there: Path, tmp_path: Path) -> None:
    target = {"as": kind, "into": "out" if kind == "parquet" else "out.duckdb"}
    job = local_job(tmp_path, target=target, recoding=True, search={"layers": 4})
    found = anonymize(job, there).releases["people"]
    assert [place.rpartition("people")[2] for place in found.written] == (
        [".parquet", "_layers.parquet"] if kind == "parquet" else ["", "_layers"]
    )
    with duckdb.connect() as c:
        if kind == "parquet":
            rows, layers = (c.execute(f"FROM '{tmp_path}/out/people{n}.parquet'").df() for n in ("", "_layers"))
        else:
            rows, layers = released(tmp_path), released(tmp_path, "release.people_layers")
    assert list(layers.columns) == ["recoding", *NAMES] and len(layers) == len(found.layers) <= 4
    assert [tuple(layer.node.values()) for layer in found.layers] == list(map(tuple, layers[list(NAMES)].to_numpy()))
    assert rows.groupby([rows[n].map(shown) for n in NAMES]).recoding.nunique().max() == 1
    by_code, levels = people(there).set_index("code"), layers.set_index("recoding")
    for _, row in rows.iterrows():
        person = by_code.loc[row.code]
        assert all(LABELS[n][levels.loc[row.recoding, n]](person[n]) == shown(row[n]) for n in NAMES)
    assert [layer.rows for layer in found.layers if layer.rows] == [
        n for n in rows.recoding.value_counts().sort_index() if n >= 4
    ]
    assert verify(job, there)["people"].layers == len(layers)
    again = Options(replace=True)
    anonymize(job, there, options=again)
    without = local_job(tmp_path, target=target)
    assert len(anonymize(without, there, options=again).releases["people"].written) == 1
    with pytest.raises(VerificationError, match=r"people_layers.* is not there"):
        verify(job, there)


def test_what_was_changed_in_the_layers_is_refused(there: Path, tmp_path: Path) -> None:
    job = local_job(tmp_path, recoding=True)
    anonymize(job, there)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as c:
        c.execute("UPDATE release.people_layers SET age = 3 - age WHERE recoding = 1")
    with pytest.raises(VerificationError, match="people_layers does not hold the layers"):
        verify(job, there)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as c:
        c.execute("UPDATE release.people_layers SET age = 3 - age WHERE recoding = 1")
        c.execute("UPDATE release.people SET recoding = 1")
    with pytest.raises(VerificationError, match=r"not of the levels of their layer|tell different layers"):
        verify(job, there)


def test_a_table_of_somebody_elses_is_not_written_over(tmp_path: Path) -> None:
    there = source(tmp_path / "source.duckdb")
    with duckdb.connect(str(there)) as c:
        c.execute("CREATE SCHEMA release; CREATE TABLE release.people_layers AS SELECT 1 AS mine")
    with pytest.raises(JobError, match=r"release.people_layers exists and was not made by sqldeid"):
        anonymize(local_job(tmp_path, target={"into": None}, recoding=True), there)


def test_a_release_in_its_source_beside_others(there: Path, tmp_path: Path) -> None:
    """Nothing of the layers is taken for a release of persons; what is replaced goes with its layers."""
    other = {"source": "people", "person": "id", "columns": {"sex": qi()}, "privacy": {"k": 2}}
    both = {"people": table(recoding=True), "others": other}
    job = Job.parse({"tables": both}, folder=tmp_path)
    anonymize(job, there)
    assert set(verify(job, there)) == {"people", "others"}
    anonymize(job, there, options=Options(replace=True, only=("others",)))
    anonymize(job, there, options=Options(replace=True, only=("people",)))
    assert set(verify(job, there)) == {"people", "others"}
    with pytest.raises(JobError, match=r"is what the table of layers of tables.people is called"):
        Job.parse({"tables": {**both, "People_Layers": other}}, folder=tmp_path)


def test_what_holds_releases_to_each_other_is_refused_before_anything_is_read(there: Path, tmp_path: Path) -> None:
    job = local_job(tmp_path)
    found = anonymize(job, there)
    with pytest.raises(JobError, match="mondrian, local and child tables have none: how a row is shown depends"):
        anonymize(job, there, options=Options(policy=found.to_dict(), replace=True))


def test_a_class_that_is_too_small_is_not_published(
    there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that errs: one combination of a class that is as small as may be goes to a layer of its own."""
    from sqldeid.tables.local import release as local

    search = local.partition

    def erring(problem: LocalProblem) -> Partition:
        found = search(problem)
        classes = layers_of(problem, found, blank=False).owner
        sizes = np.bincount(classes, weights=problem.rows)
        small = next(c for c in np.flatnonzero(sizes == problem.k) if (classes == c).sum() > 1)
        layer = found.layer.copy()
        layer[np.flatnonzero(classes == small)[0]] = len(found.nodes)
        return replace(found, nodes=(*found.nodes, (0,) * len(problem.attributes)), layer=layer)

    monkeypatch.setattr(local, "partition", erring)
    with pytest.raises(VerificationError, match="failed its re-check"):
        anonymize(local_job(tmp_path), there)
    assert not (tmp_path / "out.duckdb").exists()


@pytest.mark.parametrize("change", ["zip = 'a00'", "code = 'code 1'", "illness = 'plague'"])
def test_a_row_that_was_written_wrong_is_not_published(
    change: str, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row at a level too low for its class, another person's, or of nobody, once it is written."""
    from sqldeid.tables.local import release as local

    write = local.stage_layers

    def erring(*given: Any) -> Any:
        written = write(*given)
        row = f"(SELECT MAX(rowid) FROM {written.sql('duckdb')} WHERE zip LIKE '%*')"
        given[0].engine.execute(f"UPDATE {written.sql('duckdb')} SET {change} WHERE rowid = {row}")
        return written

    monkeypatch.setattr(local, "stage_layers", erring)
    with pytest.raises(VerificationError, match="failed its re-check"):
        anonymize(local_job(tmp_path), there)
    assert not (tmp_path / "out.duckdb").exists()


@pytest.mark.parametrize("suppression", ["drop", "blank"])
@pytest.mark.parametrize("recoding", [False, True])
def test_a_release_that_can_show_no_class_is_one(suppression: str, recoding: bool) -> None:
    """Where not even all rows together pass, each row is suppressed, as in a release of one node."""
    with duckdb.connect() as c:
        c.execute("CREATE TABLE p AS SELECT i AS age, i = 0 AS ill FROM RANGE(30) AS r(i)")
        privacy = {"k": 2, "suppression": suppression, "suppression_limit": 1.0}
        part = {"source": "p", "rows_are_persons": True, "columns": {"age": qi(), "ill": SENSITIVE}}
        part |= {"search": {"method": "local"}, "recoding": recoding, "attacks": False}
        part["privacy"] = privacy | {"l_diversity": {"l": 2, "kind": "entropy", "column": "ill"}}
        wanted = Job.parse({"tables": {"x": part}})
        found = anonymize(wanted, c).releases["x"]
        assert (found.released, found.suppressed) == (0, 30)
        assert verify(wanted, c)["x"].released == 0
        assert c.execute("SELECT COUNT(*) FROM release.x").fetchall() == [(0,)]


def test_more_columns_than_an_array_of_numpy_has_dimensions(tmp_path: Path) -> None:
    """A lattice of 40 columns was listed as a grid, of which NumPy 1 has 32 dimensions and NumPy 2 64."""
    columns = [f"c{i}" for i in range(70)]
    made = ", ".join(f"HASH(i * 71 + {j}) % 2 AS {name}" for j, name in enumerate(columns))
    with duckdb.connect(str(tmp_path / "wide.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT i AS id, {made} FROM RANGE(60) AS r(i)")
    asked = {
        "source": "t",
        "person": "id",
        "attacks": False,
        "columns": {name: qi() for name in columns},
        "privacy": {"k": 3},
        "search": {"method": "local", "time_limit": 2},
    }
    job = Job.parse({"release": {"into": str(tmp_path / "out.duckdb")}, "tables": {"t": asked}})
    assert anonymize(job, tmp_path / "wide.duckdb").releases["t"].k >= 3
    assert verify(job, tmp_path / "wide.duckdb")["t"].k >= 3
