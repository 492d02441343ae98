"""Several child tables of one parent: items of all of them are known together, and counted together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tomlkit

from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.job import Job
from sqldeid.report.page import public_page, report_page
from sqldeid.report.terminal import print_verified
from sqldeid.report.text import console
from sqldeid.run import Options, anonymize, verify
from sqldeid.tables.itemset import count
from tests.support.child_tables import PSEUDONYM, TREE, cuts, database, fewest, subsets, write_tree
from tests.support.cli import run
from tests.support.sources import INSENSITIVE, insert, qi

pytestmark = pytest.mark.usefixtures("stages")

Shown = dict[int, set[tuple[str, int, str]]]
"""By person the labels that are shown of her: the table, the level, the label."""

LETTERS = {f"{letter}{i}": (letter,) for letter in "pq" for i in range(2)}


@pytest.fixture(autouse=True)
def no_key_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLDEID_KEY", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tree(tmp_path)
    lines = [";".join((item, *above, "*")) for item, above in LETTERS.items()]
    (tmp_path / "letters.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def options(folder: Path, **more: Any) -> Options:
    return Options(key_file=folder / "key", **more)


def wanted(folder: Path, *, k: int = 2, known: int = 2, limit: float = 1.0, **more: Any) -> Job:
    parent = {
        **{"source": "people", "person": "id", "attacks": False, "privacy": {"k": k, "suppression_limit": 0.5}},
        "columns": {"id": PSEUDONYM, "group": qi(), "true_id": INSENSITIVE},
    }
    own = {"person": "id", "parent": "people", "items": "code", "known": known}
    privacy = {"k": k, "suppression_limit": limit}
    codes = {**own, "source": "codes", "columns": {"code": qi("items.csv")}, "privacy": privacy}
    drugs = {**own, "source": "drugs", "columns": {"code": qi("letters.csv")}, "privacy": privacy, **more}
    return Job.parse({"tables": {"people": parent, "codes": codes, "drugs": drugs}}, folder=folder)


def drawn(seed: int, persons: int = 10) -> tuple[duckdb.DuckDBPyConnection, dict[int, str], Mapping[int, list[str]]]:
    """People in two groups with some codes and drugs of some; the drugs by person."""
    rng = np.random.default_rng(seed)
    groups = {i: "fg"[i % 2] for i in range(persons)}

    def some(names: list[str], most: int) -> dict[int, list[str]]:
        return {i: [names[j] for j in rng.integers(0, len(names), rng.integers(0, most + 1))] for i in groups}

    c = database(groups, some(sorted(TREE), 3))
    drugs = some(sorted(LETTERS), 2)
    c.execute("CREATE TABLE drugs (id INTEGER, code VARCHAR)")
    rows = [(i, drug) for i, mine in drugs.items() for drug in mine]
    if rows:
        insert(c, "drugs", rows)
    return c, groups, drugs


def read(c: duckdb.DuckDBPyConnection, tables: tuple[str, ...] = ("codes", "drugs")) -> Shown:
    """What is shown of true persons; a label of one table is another one than its like in the other."""
    true = dict(c.execute("SELECT id, true_id FROM release.people").fetchall())
    shown: Shown = {person: set() for person in true.values()}
    for table in tables:
        for pseudonym, label, level in c.execute(f"SELECT id, code, code_level FROM release.{table}").fetchall():
            shown[true[pseudonym]].add((table, level, label))
    return shown


def least_beside(groups: Mapping[int, str], codes: Shown, drugs: Mapping[int, list[str]], k: int) -> float:
    """The least loss of the drugs beside what is shown of the codes, over all cuts and suppressions, for two items."""
    pairs = sorted({(p, drug) for p, mine in drugs.items() for drug in mine})
    leaves = sorted({drug for _, drug in pairs})
    best = 1.0
    for cut in cuts({drug: LETTERS[drug] for drug in leaves}):
        sizes = {node: [cut[leaf] for leaf in leaves].count(node) for node in set(cut.values())}
        cells = sorted({(groups[p], cut[drug]) for p, drug in pairs})
        for gone in chain.from_iterable(combinations(cells, n) for n in range(len(cells) + 1)):
            left = [(p, cut[drug]) for p, drug in pairs if (groups[p], cut[drug]) not in gone]
            shown: Shown = {p: set(labels) for p, labels in codes.items()}
            for p, (level, label) in left:
                shown[p].add(("drugs", level, label))
            low = fewest(groups, shown, 2)  # type: ignore[arg-type]
            if low is None or low >= k:
                lost = sum((sizes[node] - 1) / max(len(leaves) - 1, 1) for _, node in left)
                best = min(best, (lost + len(pairs) - len(left)) / len(pairs))
    return best


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("seed", "known"), [(s, 1 + s % 3) for s in range(18)])
def test_items_of_all_tables_are_counted_together(folder: Path, seed: int, known: int) -> None:
    c, groups, drugs = drawn(seed)
    job = wanted(folder, known=known)
    made = anonymize(job, c, options=options(folder)).releases
    shown = read(c)
    low = fewest(groups, shown, known)  # type: ignore[arg-type]
    assert low is None or low >= 2
    alone = fewest(groups, read(c, ("codes",)), known)  # type: ignore[arg-type]
    assert (made["codes"].fewest, made["drugs"].fewest) == (alone, low)
    if known == 2 and any(drugs.values()):
        best = least_beside(groups, read(c, ("codes",)), drugs, 2)
        assert made["drugs"].loss == pytest.approx(best)
        assert made["drugs"].optimal
    checked = verify(job, c, options=options(folder))
    assert (checked["drugs"].fewest, checked["drugs"].compared) == (low, True)


def test_a_pair_of_a_code_and_a_drug_that_one_person_has_is_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are common, and one person has them together; who counts each table alone lets that through."""
    groups = dict.fromkeys(range(9), "f")
    c = database(groups, {i: ["a1"] for i in range(5)})
    c.execute("CREATE TABLE drugs AS SELECT id, 'p0' AS code FROM people WHERE id >= 4")
    job = wanted(folder)
    made = anonymize(job, c, options=options(folder)).releases["drugs"]
    assert fewest(groups, read(c), 2) == 5  # type: ignore[arg-type]
    assert (made.suppressed, made.rows) == (5, 0)
    assert made.guarantee == (
        "Whoever knows a person's quasi-identifying values in people and any 2 items that the person has, in codes and "
        "drugs together, finds at least 2 persons who fit, or none."
    )
    assert made.to_public()["criteria"][0]["guarantee"] == made.guarantee  # type: ignore[index]
    c.execute("DROP SCHEMA release CASCADE")
    monkeypatch.setattr(count.Counter, "_hold", _alone(count.Counter._hold))
    with pytest.raises(VerificationError, match="1 persons of a class have a set of items, not 2"):
        anonymize(job, c, options=options(folder))
    assert c.execute("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'release'").fetchone() == (0,)


def _alone(hold: Any) -> Any:
    """A careless twin that forgets what the tables before show."""

    def careless(counter: count.Counter, *more: Any) -> Any:
        empty = counter.engine.put("nothing", count.dropped_rows(np.zeros(0, dtype=np.int64)))
        counter.engine.execute(f"ALTER TABLE {empty.sql('duckdb')} ADD COLUMN person INTEGER")
        return hold(replace(counter, before=empty) if counter.before is not None else counter, *more)

    return careless


def test_the_promise_is_told_of_both_and_held_by_the_note(folder: Path) -> None:
    c, *_ = drawn(4)
    result = anonymize(wanted(folder), c, options=options(folder))
    told = result.to_dict()
    for page in (report_page(told), public_page(told)):
        assert page.count("in codes and drugs together") >= 2
    tables = wanted(folder).model_dump(exclude_unset=True)["tables"]
    alone = Job.parse({"tables": {name: tables[name] for name in ("people", "codes")}}, folder=folder)
    with pytest.raises(VerificationError, match="made with other items or criteria"):
        verify(alone, c, options=options(folder))


def test_what_was_not_counted_with_the_others_fails_its_recheck(folder: Path) -> None:
    """A label that is shown of a person in the one table makes a rare pair with what the other shows."""
    groups = dict.fromkeys(range(8), "f")
    c = database(groups, {i: ["a1"] for i in range(4)})
    c.execute("CREATE TABLE drugs AS SELECT id, 'p0' AS code FROM people WHERE id >= 4")
    job = wanted(folder)
    anonymize(job, c, options=options(folder))
    c.execute(
        "UPDATE release.codes SET id = (SELECT MIN(id) FROM release.drugs) "
        "WHERE id = (SELECT MIN(id) FROM release.codes)"
    )
    with pytest.raises(VerificationError, match=r"tables\.drugs: .*1 persons of a class have a set of items"):
        verify(job, c)


@pytest.mark.parametrize("only", [("people", "codes"), ("people", "drugs"), ("drugs",)])
def test_a_family_is_released_together(folder: Path, only: tuple[str, ...]) -> None:
    c, *_ = drawn(1)
    with pytest.raises(JobError, match="give --only people --only codes --only drugs"):
        anonymize(wanted(folder), c, options=options(folder, only=only))


def test_a_limit_that_the_second_table_does_not_keep_names_it(folder: Path) -> None:
    groups = dict.fromkeys(range(9), "f")
    c = database(groups, {i: ["a1"] for i in range(5)})
    c.execute("CREATE TABLE drugs AS SELECT id, 'p0' AS code FROM people WHERE id >= 4")
    job = wanted(folder, privacy={"k": 2, "suppression_limit": 0.1})
    with pytest.raises(NoSolutionError, match=r"tables\.drugs\.privacy\.suppression_limit") as refused:
        anonymize(job, c, options=options(folder))
    assert "codes" in refused.value.message


@pytest.mark.deep
def test_three_tables_and_three_known_items(folder: Path) -> None:
    """The third is counted with both before it."""
    found = 0
    for seed in range(4):
        c, groups, _ = drawn(seed, persons=24)
        c.execute("CREATE TABLE more AS SELECT id, code FROM drugs WHERE id % 3 > 0 UNION SELECT id, 'q1' FROM codes")
        job = wanted(folder, known=3)
        tables = job.model_dump(exclude_unset=True)["tables"]
        job = Job.parse({"tables": {**tables, "more": {**tables["drugs"], "source": "more"}}}, folder=folder)
        made = anonymize(job, c, options=options(folder)).releases["more"]
        low = fewest(groups, read(c, ("codes", "drugs", "more")), 3)  # type: ignore[arg-type]
        assert made.fewest == low
        assert low is None or low >= 2
        found += made.rows > 0
        verify(job, c, options=options(folder))
    assert found


def test_the_cover_takes_own_cells_alone() -> None:
    """Every set keeps an own cell that is chosen, and what pairs weigh at least is never above the best choice."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        size, cells = int(rng.integers(2, 4)), int(rng.integers(2, 7))
        drawn_sets = {
            tuple(sorted({int(rng.integers(0, cells)), *_others(rng, cells, size - 1)}))
            for _ in range(rng.integers(1, 9))
        }
        sets = np.array([s for s in drawn_sets if len(s) == size], dtype=np.int64).reshape(-1, size)
        weights = rng.integers(0, 5, cells).astype(np.float64)
        chosen, bound = count._cover_own(sets, weights)
        assert all(set(row) & set(chosen.tolist()) for row in sets.tolist())
        assert (chosen < count.BEFORE).all()
        best = min(
            sum(weights[list(some)])
            for some in [(), *subsets(range(cells), cells)]
            if all(set(row) & set(some) for row in sets.tolist())
        )
        assert sum(weights[chosen]) >= best - 1e-9
        if size == 2:
            assert bound <= best + 1e-9


def _others(rng: np.random.Generator, cells: int, many: int) -> list[int]:
    return [int(rng.integers(0, cells)) + (count.BEFORE if rng.random() < 0.5 else 0) for _ in range(many)]


@pytest.mark.parametrize("gone", ["TRUE", "code_level < 2"])
def test_what_was_taken_out_beyond_the_limit_fails_its_recheck(folder: Path, gone: str) -> None:
    """Whole cells may be missing, as long as they are no more than the limit: an emptied table is not the release."""
    groups = dict.fromkeys(range(12), "f")
    c = database(groups, {i: ["a1", "b1"] for i in groups})
    c.execute("CREATE TABLE drugs AS SELECT id, 'p0' AS code FROM people")
    job = wanted(folder, limit=0.2)
    anonymize(job, c, options=options(folder))
    verify(job, c, options=options(folder))
    c.execute(f"DELETE FROM release.codes WHERE {gone}")
    with pytest.raises(VerificationError, match=r"100\.0 % of the pairs of person and item are missing, and supp"):
        verify(job, c, options=options(folder))


def test_verify_says_where_nothing_was_compared_with_the_source(folder: Path) -> None:
    c, *_ = drawn(4)
    job = wanted(folder)
    anonymize(job, c, options=options(folder))
    for how, told in (
        (None, "codes keeps its promise; the source was not compared"),
        (options(folder), "codes is what"),
    ):
        said = StringIO()
        print_verified(verify(job, c, options=how), console(said))
        assert told in said.getvalue()


def test_a_child_that_the_job_no_longer_has_is_told(folder: Path) -> None:
    """It stays where it was, with pseudonyms of then."""
    c, *_ = drawn(4)
    job = wanted(folder)
    anonymize(job, c, options=options(folder))
    tables = job.model_dump(exclude_unset=True)["tables"]
    fewer = Job.parse({"tables": {name: tables[name] for name in ("people", "codes")}}, folder=folder)
    told = anonymize(fewer, c, options=options(folder, replace=True)).warnings
    assert any("tables.people: drugs beside it was released from the same source by another job" in w for w in told)


def test_an_assessment_of_the_parent_says_that_items_are_not_in_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the parent's classes alone the risk is told too low for whoever knows items."""
    c, *_ = drawn(4, persons=60)
    c.execute(f"ATTACH '{folder / 'source.duckdb'}' AS kept")
    c.execute("COPY FROM DATABASE memory TO kept")
    c.execute("DETACH kept")
    text = tomlkit.dumps(wanted(folder).model_dump(mode="json", by_alias=True, exclude_unset=True))
    (folder / "job.toml").write_text(text)
    database, job = str(folder / "source.duckdb"), str(folder / "job.toml")
    made = run(capsys, "anonymize", database, "--job", job, "--key-file", str(folder / "key"))
    assert "the risk that is left from who knows none of the items" in " ".join(made.out.split())
    told = " ".join(run(capsys, "assess", database, "--job", job, "--release").out.split())
    for child in ("codes", "drugs"):
        assert f"tables.{child}: is a child table, and is not assessed: whoever knows 2 of a person's items" in told
    assert told.count("of the release they are 2 or more, or none") == 2
    source = run(capsys, "assess", database, "--job", job, "--json", "-")
    assert [w.partition(":")[0] for w in source.json["warnings"]] == ["tables.codes", "tables.drugs"]
