"""Child tables from end to end: what is promised of them, recounted; what is tampered with; what is refused."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import sqldeid
from sqldeid.errors import HierarchyError, JobError, NoSolutionError, VerificationError
from sqldeid.report.page import public_page, report_page
from sqldeid.run import Options, anonymize, assess, plan, tradeoff, verify
from sqldeid.run.evaluating import classification
from sqldeid.run.orchestrator import explain
from sqldeid.tables.itemset import count, release, search
from sqldeid.tables.release.tradeoff import Asked
from tests.support.child_tables import (
    PSEUDONYM,
    TREE,
    attack,
    best_loss,
    child_job,
    database,
    fewest,
    read_release,
    write_tree,
)
from tests.support.sources import INSENSITIVE, SENSITIVE, insert, qi

pytestmark = pytest.mark.usefixtures("stages")


@pytest.fixture(autouse=True)
def no_key_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLDEID_KEY", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tree(tmp_path)


def options(folder: Path, **more: Any) -> Options:
    return Options(key_file=folder / "key", **more)


def drawn(seed: int, persons: int = 9, items: int = 3) -> tuple[dict[int, str], dict[int, list[str]]]:
    """People in two groups with some codes, some of them twice; somebody has none."""
    rng = np.random.default_rng(seed)
    groups = {i: "fg"[i % 2] for i in range(persons)}
    codes = sorted(TREE)
    return groups, {i: [codes[j] for j in rng.integers(0, len(codes), rng.integers(0, items + 1))] for i in groups}


def sets(items: Mapping[int, Sequence[str]]) -> dict[int, frozenset[str]]:
    return {person: frozenset(codes) for person, codes in items.items()}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("seed", "known", "limit"), [(s, 1 + s % 3, (0.0, 0.2, 0.5)[s // 3 % 3]) for s in range(18)])
def test_the_release_is_the_best_there_is_and_keeps_its_promise(
    folder: Path, seed: int, known: int, limit: float
) -> None:
    groups, items = drawn(seed)
    best = best_loss(groups, sets(items), k=2, known=known, limit=limit)
    c = database(groups, items)
    job = child_job(folder, known=known, limit=limit)
    if best is None:
        with pytest.raises(NoSolutionError, match="suppression_limit"):
            anonymize(job, c, options=options(folder))
        return
    made = anonymize(job, c, options=options(folder)).releases["codes"]
    shown_groups, shown = read_release(c)
    assert shown_groups == groups
    low = fewest(groups, shown, known)
    assert made.fewest == low
    assert low is None or low >= 2
    hit = attack(groups, shown, sets(items), known)
    assert hit is None or hit >= 2
    assert made.bound <= best + 1e-9
    if known <= 2:  # larger sets are broken one size after the other
        assert made.loss == pytest.approx(best)
        assert made.optimal
    else:
        assert made.loss >= best - 1e-9
    assert made.suppressed <= limit * made.pairs
    checked = verify(job, c, options=options(folder))["codes"]
    assert (checked.fewest, checked.compared) == (low, True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("few", [search.FEW_PAIRS, 0])
def test_a_search_that_does_not_try_all_cuts_keeps_the_promise_and_its_bound(
    folder: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Of few pairs, and of many, where the first cut is guessed."""
    monkeypatch.setattr(search, "ALL_CUTS", 0)
    monkeypatch.setattr(search, "FEW_PAIRS", few)
    found = 0
    for seed in range(3):
        groups, items = drawn(seed, persons=8)
        c = database(groups, items)
        made = anonymize(child_job(folder, limit=0.5), c, options=options(folder)).releases["codes"]
        best = best_loss(groups, sets(items), k=2, known=2, limit=0.5)
        _, shown = read_release(c)
        low = fewest(groups, shown, 2)
        assert low is None or low >= 2
        assert best is not None
        assert made.bound <= best + 1e-9 <= made.loss + 2e-9
        found += made.loss == pytest.approx(best)
    assert found >= 1


def test_a_pair_that_one_person_has_is_found_and_generalised(folder: Path) -> None:
    """Each of the two codes is common; both together are one person's."""
    groups = dict.fromkeys(range(12), "f")
    items = {i: ["a1"] if i < 6 else ["b1"] for i in groups} | {0: ["a1", "b1"]}
    c = database(groups, items)
    made = anonymize(child_job(folder, limit=0.0), c, options=options(folder)).releases["codes"]
    _, shown = read_release(c)
    assert shown[0] == shown[1] == shown[7] == {(2, "x")}
    assert made.suppressed == 0
    c = database(groups, items)
    anonymize(child_job(folder, known=1, limit=0.0), c, options=options(folder))
    _, shown = read_release(c)
    assert shown[0] == {(0, "a1"), (0, "b1")}, "who knows one item finds six others"


def test_sets_are_counted_within_classes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two persons have a pair, each alone in his class. Who counts the whole table would let both through."""
    groups = {i: "fg"[i % 2] for i in range(8)}
    items = {i: ["a1"] if i < 4 else ["b1"] for i in groups} | {0: ["a1", "b1"], 1: ["a1", "b1"]}
    c = database(groups, items)
    anonymize(child_job(folder, limit=0.0), c, options=options(folder))
    _, shown = read_release(c)
    assert fewest(groups, shown, 2) >= 2  # type: ignore[operator]
    assert shown[0] == {(2, "x")}

    twin = release.way_of

    def whole(planned: Any) -> Any:
        stages = list(twin(planned))

        def counting(draft: Any) -> None:
            make = type(draft.engine).make

            def careless(engine: Any, template: str, name: str, /, **asked: Any) -> Any:
                if template == "tables/itemset/list_pairs":
                    engine.execute(f"UPDATE {asked['persons'].sql('duckdb')} SET class = 1")
                return make(engine, template, name, **asked)

            with monkeypatch.context() as patched:
                patched.setattr(type(draft.engine), "make", careless)
                stages[0].act(draft)

        return (type(stages[0])(stages[0].said, counting, stages[0].statements), *stages[1:])

    monkeypatch.setattr(release, "way_of", whole)
    with pytest.raises(VerificationError, match="1 persons of a class have a set of items, not 2"):
        anonymize(child_job(folder, limit=0.0), database(groups, items), options=options(folder))


def test_persons_are_counted_and_not_rows(folder: Path) -> None:
    """Somebody has a code ten times: that is one person with it."""
    groups = dict.fromkeys(range(6), "f")
    items = {i: ["b1"] for i in groups} | {0: ["a1"] * 10 + ["b1"]}
    c = database(groups, items)
    made = anonymize(child_job(folder, k=3, limit=0.5), c, options=options(folder)).releases["codes"]
    _, shown = read_release(c)
    assert (made.pairs, made.rows) == (7, 6)
    assert all((0, "a1") not in labels for labels in shown.values())
    assert fewest(groups, shown, 2) == 6


def test_who_is_not_released_has_no_rows_and_who_has_none_stays(folder: Path) -> None:
    """Person 9 is suppressed in the parent; 3 has no items; 77 and NULL are in no parent row; NULL is no item."""
    groups = dict.fromkeys(range(9), "f") | {9: "g"}
    items: dict[int, list[str]] = {i: ["a1", "b1"] for i in groups if i != 3} | {77: ["c1"]}
    c = database(groups, items)
    c.execute("INSERT INTO codes VALUES (NULL, 'c1', 0), (3, NULL, 0), (1, NULL, 1)")
    made = anonymize(child_job(folder, limit=0.0), c, options=options(folder)).releases["codes"]
    shown_groups, shown = read_release(c)
    assert 9 not in shown_groups
    assert shown[3] == set()
    assert all(labels == {(0, "a1"), (0, "b1")} for person, labels in shown.items() if person != 3)
    assert (made.persons, made.parents, made.pairs, made.loss) == (8, 9, 16, 0.0)
    rows = c.execute("SELECT * FROM release.codes").fetchall()
    assert rows == sorted(rows), "the order is that of pseudonyms and labels"
    assert not c.execute("SELECT COUNT(*) FROM release.codes WHERE code = 'c1'").fetchone()[0]  # type: ignore[index]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("items", [{}, {0: ["a1"]}, {50: ["a1"]}])
def test_next_to_nothing_is_released_as_nothing(folder: Path, items: dict[int, list[str]]) -> None:
    c = database(dict.fromkeys(range(4), "f"), items)
    if not items:
        c.execute("INSERT INTO codes VALUES (0, NULL, 0)")
    job = child_job(folder, limit=1.0)
    made = anonymize(job, c, options=options(folder)).releases["codes"]
    assert c.execute("SELECT COUNT(*) FROM release.codes").fetchone() == (0,)
    assert (made.rows, made.fewest) == (0, None)
    assert verify(job, c, options=options(folder))["codes"].rows == 0


def released(folder: Path) -> tuple[duckdb.DuckDBPyConnection, sqldeid.Job]:
    groups = {i: "fg"[i % 2] for i in range(16)}
    items = {i: ["a1", "b1"] if i < 8 else ["c1"] for i in groups} | {3: ["a1"]}
    c, job = database(groups, items), child_job(folder, k=3)
    anonymize(job, c, options=options(folder))
    assert verify(job, c, options=options(folder))["codes"].compared
    return c, job


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("INSERT INTO release.codes SELECT * FROM release.codes LIMIT 1", "a row is there twice"),
        ("INSERT INTO release.codes VALUES (NULL, 'a1', 0)", "a row has a gap"),
        ("INSERT INTO release.codes VALUES ('00', 'a1', 0)", "persons who are not in people"),
        ("INSERT INTO release.codes SELECT id, 'c2', 0 FROM release.people LIMIT 1", "1 persons of a class"),
        ("DELETE FROM release.people WHERE true_id = 3", "persons who are not in people"),
        ("ALTER TABLE release.codes ADD COLUMN seq INTEGER", "its columns are not id, code, code_level"),
    ],
)
@pytest.mark.parametrize("keyed", [True, False])
def test_a_release_that_was_changed_is_refused(folder: Path, change: str, told: str, keyed: bool) -> None:
    c, job = released(folder)
    c.execute(change)
    chosen = options(folder) if keyed else Options()
    with pytest.raises(VerificationError, match=told if "DELETE" not in change else "re-check"):
        verify(job, c, options=chosen)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "DELETE FROM release.codes WHERE code = 'a1' AND id = (SELECT id FROM release.people WHERE true_id = 2)",
            "miss",
        ),
        (
            "INSERT INTO release.codes SELECT p.id, 'b1', 0 FROM release.people p WHERE p.true_id = 3",
            "not what the source gives",
        ),
        ("INSERT INTO release.codes SELECT id, 'a', 1 FROM release.codes WHERE code = 'a1'", "shown at two levels"),
        ("DELETE FROM codes WHERE code = 'c1' AND id = 9", "not what the source gives"),
    ],
)
def test_the_source_is_compared_where_there_is_a_key(folder: Path, change: str, told: str) -> None:
    c, job = released(folder)
    c.execute(change)
    with pytest.raises(VerificationError, match=told):
        verify(job, c, options=options(folder))


def test_a_release_of_another_job_is_refused(folder: Path) -> None:
    c, _ = released(folder)
    with pytest.raises(VerificationError, match="other items or criteria"):
        verify(child_job(folder, k=3, known=1), c, options=options(folder))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["table", "view", "parquet"])
def test_it_goes_wherever_releases_go(folder: Path, kind: str) -> None:
    groups = dict.fromkeys(range(8), "f")
    items = {i: ["a1", "b1"] for i in groups}
    path = folder / "source.duckdb"
    with database(groups, items) as c:
        c.execute(f"ATTACH '{path}' AS there; COPY FROM DATABASE memory TO there")
    into = {"into": "out" if kind == "parquet" else "out.duckdb", "as": kind}
    job = child_job(folder, release=into)
    made = anonymize(job, path, options=options(folder))
    assert len(made.releases["codes"].written) == 1
    found = verify(job, path, options=options(folder))["codes"]
    assert (found.rows, found.fewest) == (16, 8)
    anonymize(job, path, options=options(folder, replace=True))


def test_hostile_names_and_values(folder: Path) -> None:
    tree = {"it's": ("' --", "x"), "select": ("' --", "x"), "😀": ("(x", "x"), "y)": ("(x", "x")}
    write_tree(folder, tree)
    c = duckdb.connect()
    c.execute('CREATE TABLE "peo;ple" ("per son" BIGINT, "sel""ect" VARCHAR, "true" BIGINT)')
    c.execute('CREATE TABLE "co\'des" ("per son" BIGINT, "it\'s" VARCHAR)')
    c.execute("INSERT INTO \"peo;ple\" SELECT i, CASE WHEN i % 3 = 0 THEN NULL ELSE 'f' END, i FROM RANGE(24) r(i)")
    names = list(tree)
    rows = [(i, names[j]) for i in range(24) for j in range(4) if (i + j) % 2]
    insert(c, '"co\'des"', rows)
    job = sqldeid.Job.parse(
        {
            "tables": {
                "select": {
                    "source": '"peo;ple"',
                    "person": "per son",
                    "columns": {"per son": PSEUDONYM, 'sel"ect': qi(), "true": INSENSITIVE},
                    "privacy": {"k": 2, "suppression_limit": 0.1},
                },
                "ta;ble": {
                    "source": '"co\'des"',
                    "person": "per son",
                    "parent": "select",
                    "items": "it's",
                    "known": 2,
                    "columns": {"it's": qi("items.csv")},
                    "privacy": {"k": 2, "suppression_limit": 0.3},
                },
            }
        },
        folder=folder,
    )
    made = anonymize(job, c, options=options(folder)).releases["ta;ble"]
    assert [x[0] for x in c.execute('DESCRIBE release."ta;ble"').fetchall()] == ["per son", "it's", "it's_level"]
    assert made.fewest is not None
    assert made.fewest >= 2
    assert verify(job, c, options=options(folder))["ta;ble"].compared


def test_rows_that_say_nothing_of_a_released_person_are_told(folder: Path) -> None:
    c = database(dict.fromkeys(range(8), "f"), {i: ["a1"] for i in range(8)})
    c.execute("INSERT INTO codes VALUES (NULL, 'a1', 0), (NULL, NULL, 0), (1, NULL, 0), (99, 'a1', 0), (99, 'b1', 0)")
    made = anonymize(child_job(folder), c, options=options(folder)).releases["codes"]
    told = " ".join(made.warnings)
    assert "2 rows have no id: they are not released" in told
    assert "1 row has no code" in told
    assert "2 rows have the id of nobody in the release of people" in told
    c.execute("DELETE FROM codes WHERE id IS NOT NULL AND code IS NOT NULL")
    made = anonymize(child_job(folder), c, options=options(folder, replace=True, without_ledger=True)).releases["codes"]
    assert "tables.codes: the release is empty" in made.warnings


def test_items_that_differ_in_their_spelling_alone_are_told_by_counts(folder: Path) -> None:
    c = database(dict.fromkeys(range(12), "f"), {i: ["a1"] for i in range(12)})
    job = child_job(folder)
    assert not any("dots" in w for w in anonymize(job, c, options=options(folder)).releases["codes"].warnings)
    c.execute("INSERT INTO codes VALUES (0, 'A.1 ', 0), (1, 'A.1 ', 0), (2, ' a1', 0), (3, 'b1', 0)")
    held = options(folder, replace=True, without_ledger=True)
    covering = child_job(folder, child={"columns": {"code": qi({"keep_first": [1]})}})
    [told] = [w for w in anonymize(covering, c, options=held).releases["codes"].warnings if "dots" in w]
    assert "tables.codes.items: 3 different items of code (15 rows) would be one," in told


def test_a_code_that_the_hierarchy_does_not_cover_is_at_the_top(folder: Path) -> None:
    c = database(dict.fromkeys(range(8), "f"), {i: ["zz" if i % 2 else "yy"] for i in range(8)})
    job = child_job(folder, k=5, limit=0.0, child={"columns": {"code": qi("items.csv", uncovered="top")}})
    made = anonymize(job, c, options=options(folder)).releases["codes"]
    assert c.execute("SELECT DISTINCT code FROM release.codes").fetchall() == [("*",)]
    assert made.levels == {"*": 1.0}


def test_what_is_told(folder: Path) -> None:
    groups, items = drawn(4, persons=20)
    job = child_job(folder)
    c = database(groups, items)
    made = anonymize(job, c, options=options(folder))
    told = made.to_dict()
    page = report_page(told)
    coarse = c.execute("SELECT DISTINCT code FROM release.codes WHERE code_level > 0").fetchall()
    codes = made.to_public()["releases"]["codes"]["columns"]["code"].get("codes", ())  # type: ignore[index]
    assert {code["shown"] for code in codes} == {label for (label,) in coarse} and coarse
    assert all(
        "may be missing; how many are is not told" in text
        for text in (public_page(told), public_page(made.to_public()))
    )
    assert "this group: it and all that is below it" in public_page(told) or {"*"} == {x for (x,) in coarse}
    assert "finds at least 2 persons who fit" in page
    assert "pseudonymised, not anonymous" in str(made.to_public())
    for text in (str(made.to_public()), public_page(made.to_public()), public_page(told)):
        for secret in ("suppressed", "pairs of", "loss", "a1"):
            assert secret not in text.split("codes", 1)[1].lower() or secret == "suppressed", secret
    assert "a1" not in str(told["releases"]["codes"])  # type: ignore[index]


def test_the_plan_shows_what_runs(folder: Path) -> None:
    groups, items = drawn(1)
    c, job = database(groups, items), child_job(folder)
    unit = plan(job, c)[-1]
    told = explain(unit, job, c)
    assert told.content["parent"] == "people"
    assert told.statements is not None
    assert "tables/itemset/list_sets" in {s.template for s in told.statements}
    assert not told.may_be_proven


def test_the_parent_comes_first_and_both_together(folder: Path) -> None:
    groups, items = drawn(1)
    c, job = database(groups, items), child_job(folder)
    turned = sqldeid.Job.parse(
        {"tables": dict(reversed(list(job.model_dump(by_alias=True, exclude_unset=True)["tables"].items())))},
        folder=folder,
    )
    assert list(anonymize(turned, c, options=options(folder)).releases) == ["people", "codes"]
    for alone in ("people", "codes"):
        with pytest.raises(JobError, match="they are released together"):
            anonymize(job, c, options=options(folder, only=(alone,), replace=True))
        with pytest.raises(JobError, match="they are released together"):
            verify(job, c, options=options(folder, only=(alone,)))


def test_other_commands_leave_the_child_alone(folder: Path) -> None:
    groups, items = drawn(1)
    c, job = database(groups, items), child_job(folder)
    assert list(assess(job, c)) == ["people"]
    assert list(tradeoff(job, c, asked=Asked(ks=(2,), limits=(0.0,)))) == ["people"]
    with pytest.raises(JobError, match="one table release"):
        classification(job, c, label="group", options=Options(only=("codes",)))


def test_policies_ledgers_and_a_missing_key_are_refused(folder: Path) -> None:
    groups, items = drawn(1)
    c, job = database(groups, items), child_job(folder)
    with pytest.raises(JobError, match="--ledger"):
        anonymize(job, c, options=options(folder, ledger=folder / "ledger.duckdb"))
    with pytest.raises(JobError, match="needs a secret key"):
        anonymize(job, c)


def test_keys_of_other_types_and_unfit_items_are_refused(folder: Path) -> None:
    groups, items = drawn(1)
    c = database(groups, items)
    text = child_job(folder, child={"source": {"query": "SELECT CAST(id AS VARCHAR) AS id, code FROM codes"}})
    with pytest.raises(JobError, match="cast it in a source query"):
        anonymize(text, c, options=options(folder))
    floats = child_job(folder, child={"source": {"query": "SELECT id, CAST(seq AS DOUBLE) AS code FROM codes"}})
    with pytest.raises(JobError, match="items are text or whole numbers"):
        anonymize(floats, c, options=options(folder))
    c.execute("INSERT INTO codes VALUES (1, 'zz', 0)")
    with pytest.raises(HierarchyError, match="does not cover 1 value"):
        anonymize(child_job(folder), c, options=options(folder))
    top = child_job(folder, child={"columns": {"code": qi("items.csv", uncovered="top")}}, limit=1.0)
    anonymize(top, c, options=options(folder))
    assert verify(top, c, options=options(folder))["codes"].compared


def test_a_query_and_a_filter_are_read_as_they_are(folder: Path) -> None:
    groups = dict.fromkeys(range(8), "f")
    items = {i: ["a1", "b1", "c1"] for i in groups}
    child = {"source": {"query": "SELECT id, code, seq FROM codes"}, "where": "seq < 2"}
    c, job = database(groups, items), child_job(folder, child=child)
    anonymize(job, c, options=options(folder))
    _, shown = read_release(c)
    assert all(labels == {(0, "a1"), (0, "b1")} for labels in shown.values())
    assert verify(job, c, options=options(folder))["codes"].rows == 16


def test_too_many_failing_sets_give_a_cut_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "MOST_SETS", 0)
    groups = dict.fromkeys(range(12), "f")
    items = {i: ["a1"] if i < 6 else ["b1"] for i in groups} | {0: ["a1", "b1"]}
    c = database(groups, items)
    made = anonymize(child_job(folder, limit=0.5), c, options=options(folder)).releases["codes"]
    _, shown = read_release(c)
    assert shown[0] == {(2, "x")}
    assert made.bound <= made.loss


def test_what_is_sensitive_in_the_parent_stays_there(folder: Path) -> None:
    """Its values do not make classes: who shows the same quasi-identifying values is in one."""
    groups = dict.fromkeys(range(8), "f")
    parent = {"columns": {"id": PSEUDONYM, "group": qi(), "true_id": SENSITIVE}}
    c = database(groups, {i: ["a1"] for i in groups})
    anonymize(child_job(folder, parent=parent, limit=0.0), c, options=options(folder))
    assert c.execute("SELECT DISTINCT code, COUNT(*) FROM release.codes GROUP BY code").fetchall() == [("a1", 8)]


def test_sensitive_columns_leave_beside_the_items_that_are_shown(folder: Path) -> None:
    draw = random.Random(11)
    groups = {i: "xy"[i % 2] for i in range(40)}
    rows = [(i, draw.choice(list(TREE)), draw.choice([1.5, 2.0, None])) for i in range(40) for _ in range(4)]
    c = database(groups, {})
    c.execute('ALTER TABLE codes ADD COLUMN "do se" DOUBLE')
    c.executemany("INSERT INTO codes VALUES (?, ?, 0, ?)", [*rows, *rows[:20]])
    columns = {"code": qi("items.csv"), "do se": SENSITIVE}
    job = child_job(folder, k=4, limit=0.4, child={"columns": columns})
    made = anonymize(job, c, options=options(folder)).releases["codes"]
    assert [x[0] for x in c.execute("DESCRIBE release.codes").fetchall()] == ["id", "code", "code_level", "do se"]
    true = dict(c.execute("SELECT id, true_id FROM release.people").fetchall())
    shown = [(true[p], label, level, dose) for p, label, level, dose in c.execute("FROM release.codes").fetchall()]
    assert len(shown) == len(set(shown)) == made.rows
    # what is shown of an item of a person is every different row of the source, and nothing else
    chains = {item: [item, *above, "*"] for item, above in TREE.items()}
    cells = {(groups[person], label, level) for person, label, level, _ in shown}
    wanted = {
        (person, label, level, dose)
        for person, item, dose in rows
        for level, label in enumerate(chains[item])
        if (groups[person], label, level) in cells
    }
    assert set(shown) == wanted
    counted = Counter[tuple[object, ...]]()
    for person, group in groups.items():
        mine = sorted({(label, level) for p, label, level, _ in shown if p == person})
        counted.update((group, *some) for size in (1, 2) for some in combinations(mine, size))
    assert min(counted.values()) == made.fewest >= 4
    assert "leave as they are (do se)" in str(made.to_public()["limits"])
    told = anonymize(job, c, options=options(folder, replace=True)).to_dict()
    assert "Beside each item leave as they are: do se." in report_page(told)
    assert verify(job, c, options=options(folder))["codes"].compared
    for change, told in (
        ('UPDATE release.codes SET "do se" = 7 WHERE "do se" = 2', "not what the source gives"),
        (
            'DELETE FROM release.codes WHERE "do se" IS NULL AND (id, code, code_level) IN '
            '(SELECT (id, code, code_level) FROM release.codes WHERE "do se" = 2)',
            "rows of items that are shown are missing",
        ),
    ):
        c.execute("CREATE OR REPLACE TABLE kept AS FROM release.codes")
        c.execute(change)
        with pytest.raises(VerificationError, match=told):
            verify(job, c, options=options(folder))
        c.execute("DELETE FROM release.codes")
        c.execute("INSERT INTO release.codes FROM kept")


@pytest.mark.parametrize(
    "what",
    ["'title of ' || code", "ROW_NUMBER() OVER (ORDER BY id, code, seq)", "CASE WHEN id < 5 THEN 'x' ELSE code END"],
)
def test_a_column_that_tells_the_item_is_refused(folder: Path, what: str) -> None:
    groups, items = drawn(3, persons=12, items=4)
    source = {"query": f"SELECT id, code, {what} AS beside FROM codes"}
    job = child_job(folder, child={"source": source, "columns": {"code": qi("items.csv"), "beside": SENSITIVE}})
    c = database(groups, items)
    with pytest.raises(JobError, match=r"columns\.beside: more than half of its rows hold a value that goes with one"):
        anonymize(job, c, options=options(folder))
    assert c.execute("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'release'").fetchone() == (
        0,
    )


def test_what_one_person_alone_has_does_not_leave_beside_items(folder: Path) -> None:
    """A key under another name, and a moment that was cast to text."""
    groups = dict.fromkeys(range(12), "x")
    for what in ("id * 7", "'2020-01-01 07:' || (10 + id)"):
        source = {"query": f"SELECT id, code, {what} AS beside FROM codes"}
        job = child_job(folder, child={"source": source, "columns": {"code": qi("items.csv"), "beside": SENSITIVE}})
        with pytest.raises(
            JobError, match=r"columns\.beside: more than half .* hold a value that one person alone has"
        ):
            anonymize(job, database(groups, {i: ["a1", "b1"] for i in groups}), options=options(folder))
    one = child_job(folder, k=1, child={"source": source, "columns": {"code": qi("items.csv"), "beside": SENSITIVE}})
    made = anonymize(one, database({0: "x"}, {0: ["a1", "b1"]}), options=options(folder))
    assert made.releases["codes"].rows == 2, "of a single person nothing finds another one"


@pytest.mark.parametrize("kind", ["DATE '2020-01-01'", "TIMESTAMP '2020-01-01'", "[1]"])
def test_dates_and_lists_do_not_leave_beside_items(folder: Path, kind: str) -> None:
    groups, items = drawn(1)
    source = {"query": f"SELECT id, code, {kind} AS beside FROM codes"}
    job = child_job(folder, child={"source": source, "columns": {"code": qi("items.csv"), "beside": SENSITIVE}})
    with pytest.raises(JobError, match=r"dates of a person's rows find the person|cast it to text"):
        plan(job, database(groups, items))


def test_steps_since_the_first_row_leave_beside_items(folder: Path) -> None:
    groups = dict.fromkeys(range(12), "x")
    c = database(groups, {i: ["a1", "b1", "a1"] for i in range(12)})
    c.execute("ALTER TABLE codes ADD COLUMN charted DATE")
    c.execute("UPDATE codes SET charted = DATE '2020-01-01' + seq * 50 + id")
    query = """SELECT id, code, DATE_DIFF('day', MIN(charted) OVER (PARTITION BY id), charted) // 90 AS quarter
               FROM codes"""
    job = child_job(
        folder, child={"source": {"query": query}, "columns": {"code": qi("items.csv"), "quarter": SENSITIVE}}
    )
    made = anonymize(job, c, options=options(folder)).releases["codes"]
    assert c.execute("SELECT DISTINCT code, quarter FROM release.codes ORDER BY ALL").fetchall() == [
        ("a1", 0),
        ("a1", 1),
        ("b1", 0),
    ]
    assert made.rows == 36


def test_nothing_is_released_with_its_sensitive_columns(folder: Path) -> None:
    c = database({0: "x", 1: "x"}, {})
    c.execute("ALTER TABLE codes ADD COLUMN dose DOUBLE")
    job = child_job(folder, child={"columns": {"code": qi("items.csv"), "dose": SENSITIVE}})
    anonymize(job, c, options=options(folder))
    assert [x[:2] for x in c.execute("DESCRIBE release.codes").fetchall()][3] == ("dose", "DOUBLE")
    verify(job, c, options=options(folder))


@pytest.mark.parametrize("sensitive", [False, True])
def test_a_release_is_not_replaced_where_a_sensitive_value_has_changed(folder: Path, sensitive: bool) -> None:
    """Two releases of a source would tell whose value it was; what neither shows may change."""
    c = database(dict.fromkeys(range(6), "x"), {i: ["a1"] for i in range(6)})
    c.execute("ALTER TABLE codes ADD COLUMN dose INTEGER DEFAULT 1")
    columns = {"code": qi("items.csv")} | ({"dose": SENSITIVE} if sensitive else {})
    job = child_job(folder, child={"columns": columns})
    anonymize(job, c, options=options(folder))
    before = c.execute("FROM release.codes ORDER BY ALL").fetchall()
    c.execute("UPDATE codes SET dose = 2 WHERE id = 3")
    if sensitive:
        with pytest.raises(JobError, match="source has changed"):
            anonymize(job, c, options=options(folder, replace=True))
        assert c.execute("FROM release.codes ORDER BY ALL").fetchall() == before
    else:
        anonymize(job, c, options=options(folder, replace=True))


def test_a_type_that_parquet_does_not_hold_is_refused_beside_items(folder: Path) -> None:
    c = database({0: "x", 1: "x"}, {0: ["a1"], 1: ["a1"]})
    c.execute("ALTER TABLE codes ADD COLUMN dose BIT DEFAULT '101'")
    columns = {"code": qi("items.csv"), "dose": SENSITIVE}
    job = child_job(folder, child={"columns": columns}, release={"into": "out", "as": "parquet"})
    with pytest.raises(JobError, match=r"tables\.codes\.columns\.dose: .*Parquet"):
        plan(job, c, options=options(folder))
    assert not (folder / "out").exists()
