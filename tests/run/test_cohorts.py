"""Tables of one job whose cohorts differ by few persons: what whoever holds all could subtract is refused.

Against obvious code: classes as sets of persons in pandas, and every sum of classes.
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import JobError
from sqldeid.job import Job
from sqldeid.run import Options, anonymize
from sqldeid.run.subtracting import can_be_subtracted
from tests.support.charted_series import BASE, charted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

pytestmark = pytest.mark.duckdb14

PEOPLE = """CREATE TABLE p AS SELECT i AS seq, 1000 - i AS other, i AS age, 'x' || (i % 2) AS q, i % 3 AS los,
                   'd' || (i * 7 % 13) AS diag FROM range(60) AS r(i);"""
QI = {"role": "quasi-identifying", "hierarchy": {"keep_first": [1]}}
IDENTIFYING, SENSITIVE, SHOWN = {"role": "identifying"}, {"role": "sensitive"}, {"role": "insensitive"}
COLUMNS = {"seq": IDENTIFYING, "q": QI, "diag": SENSITIVE}


def part(where: str | None = None, k: int = 5, **more: Any) -> dict[str, Any]:
    found = {"source": "p", "person": "seq", "columns": COLUMNS, "privacy": {"k": k}}
    return found | ({} if where is None else {"where": where}) | more


def job_of(*parts: dict[str, Any]) -> Job:
    return Job.parse({"tables": dict(zip("abcdef", parts, strict=False))})


def make(*parts: dict[str, Any], sql: str = PEOPLE) -> sqldeid.Result:
    with duckdb.connect() as c:
        c.execute(sql)
        return anonymize(job_of(*parts), c)


def refusal(*parts: dict[str, Any], sql: str = PEOPLE) -> str:
    with duckdb.connect() as c, pytest.raises(JobError) as refused:
        c.execute(sql)
        try:
            anonymize(job_of(*parts), c)
        finally:
            assert not c.execute("SELECT * FROM duckdb_tables() WHERE schema_name = 'release'").fetchall()
    return str(refused.value).removeprefix("job: ")


def test_one_person_more_is_refused() -> None:
    """Subtract the rows of the one from those of the other: what is left is the row of the thirtieth person."""
    told = refusal(part("seq < 29"), part("seq < 30"))
    assert told.startswith("tables.b: beside tables.a, fewer than 5 persons of a class are in one and not in another")
    assert "never_with" in told and "29" not in told and "30" not in told


@pytest.mark.sampled(1)
@pytest.mark.parametrize("here", ["seq < 30", "seq < 29 OR seq > 40", "seq >= 10"])
def test_few_more_few_less_and_few_in_common_are_refused(here: str) -> None:
    """A person who is in both cohorts and hardly anybody else is known by the row that both show."""
    there = {"seq < 30": "seq >= 28", "seq < 29 OR seq > 40": "seq < 30 OR seq > 39", "seq >= 10": "seq >= 1"}[here]
    assert "subtract" in refusal(part(here), part(there))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "cohorts",
    [
        ("seq < 30", "seq >= 30"),
        ("seq < 30", "seq < 40"),
        ("seq < 30", "seq >= 20"),
        (None, None),
        ("seq < 20", "seq < 40", None),
    ],
)
def test_the_same_persons_none_or_enough_go_together(cohorts: tuple[str | None, ...]) -> None:
    assert len(make(*(part(where) for where in cohorts)).releases) == len(cohorts)


@pytest.mark.deep
def test_of_three_releases_each_two_may_differ_by_many() -> None:
    """The third holds both others, and one person more."""
    three = [part("seq < 20"), part("seq >= 20 AND seq < 49"), part("seq < 50")]
    for two in ((0, 1), (0, 2), (1, 2)):
        assert make(*(three[i] for i in two)).releases
    assert "tables.c: beside tables.a, tables.b" in refusal(*three)


def test_the_greater_k_of_those_that_show_a_person() -> None:
    assert make(part("seq < 30"), part("seq < 40")).releases
    assert "fewer than 6 persons" in refusal(part("seq < 30"), part("seq < 40", k=6))
    assert make(part("seq < 30", k=6), part("seq < 40")).releases


def test_a_suppressed_person_is_not_shown() -> None:
    """The coarser release of the same persons shows two whom the finer one suppresses."""
    sql = PEOPLE + "UPDATE p SET q = 'z' WHERE seq < 2"
    finer = {"k": 5, "suppression_limit": 0.1}
    coarse = COLUMNS | {"q": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}}
    both = part(privacy=finer), part(columns=coarse, privacy={"k": 31})
    assert "subtract" in refusal(*both, sql=sql)
    assert make(part(privacy=finer), part(privacy=finer), sql=sql).releases  # suppressed in both
    other = {"seq": IDENTIFYING, "q": coarse["q"], "los": SHOWN}
    assert make(both[0], part(columns=other, privacy={"k": 31}), sql=sql).releases  # nothing to subtract


def test_blanked_rows_are_a_class() -> None:
    sql = PEOPLE + "UPDATE p SET q = 'w' || seq WHERE seq % 10 < 1"
    blank = {"k": 5, "suppression_limit": 0.2, "suppression": "blank"}
    assert make(part(privacy=blank), part(privacy=blank), sql=sql).releases
    assert "subtract" in refusal(part(privacy=blank), part("seq != 0", privacy=blank), sql=sql)


def test_bands_of_other_edges_over_the_same_persons() -> None:
    """Ages 0 to 59 by tens, and by nines: the first ten less the first nine are one person."""
    tens, nines = ({"role": "quasi-identifying", "hierarchy": {"bands": [width]}} for width in (10, 9))
    columns = [{"seq": IDENTIFYING, "age": age, "diag": SENSITIVE} for age in (tens, nines)]
    assert "sums of their classes differ by fewer than 5 persons" in refusal(*(part(columns=c) for c in columns))
    sixes = {"role": "quasi-identifying", "hierarchy": {"bands": [20]}}
    assert make(part(columns=columns[0]), part(columns=columns[0] | {"age": sixes})).releases


def test_what_shows_quasi_identifying_columns_alone() -> None:
    """Who knows that the thirtieth is new learns the thirtieth's class."""
    columns = {"seq": IDENTIFYING, "q": QI}
    assert "sums of their classes" in refusal(part("seq < 29", columns=columns), part("seq < 30", columns=columns))
    assert make(part("seq < 29", columns=columns), part(columns=columns)).releases


def test_other_columns_of_others_tell_nothing_to_subtract() -> None:
    los = {"seq": IDENTIFYING, "los": SHOWN, "age": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}}
    assert make(part("seq < 29"), part("seq < 30", columns=los)).releases


@pytest.mark.deep
def test_criteria_beyond_k_are_not_known_of_a_part_of_a_class() -> None:
    diverse = {"k": 5, "l_diversity": [{"column": "diag", "l": 2}]}
    assert make(part("seq < 30"), part("seq < 40")).releases
    told = refusal(part("seq < 30"), part("seq < 40", privacy=diverse))
    assert "what tables.b asks beyond k" in told
    assert make(part("seq < 30", privacy=diverse), part("seq >= 30", privacy=diverse)).releases


def test_other_values_of_one_person() -> None:
    """The second release picks another row of one person: the two rows are what is left of both."""
    sql = PEOPLE + "CREATE TABLE n AS SELECT * REPLACE (CASE seq WHEN 7 THEN 'new' ELSE diag END AS diag) FROM p"
    assert "subtract" in refusal(part(), part(source="n"), sql=sql)
    sql = PEOPLE + "CREATE TABLE n AS SELECT * REPLACE ('new' || seq AS diag) FROM p"
    assert make(part(), part(source="n"), sql=sql).releases


def test_a_column_that_is_spelt_otherwise_hides_nobody() -> None:
    columns = COLUMNS | {"los": SHOWN}
    sql = PEOPLE + "CREATE TABLE n AS SELECT * REPLACE (' ' || los AS los) FROM p"
    told = refusal(part("seq < 29", columns=columns), part("seq < 30", columns=columns, source="n"), sql=sql)
    assert "subtract" in told
    sql = PEOPLE + "CREATE TABLE n AS SELECT * REPLACE (' ' || los AS los, ' ' || diag AS diag) FROM p"
    told = refusal(part("seq < 29", columns=columns), part("seq < 30", columns=columns, source="n"), sql=sql)
    assert "subtract" in told


@pytest.mark.deep
def test_without_a_person_key_rows_are_compared() -> None:
    def rows(where: str, **more: Any) -> dict[str, Any]:
        found = part(where, columns={"q": QI, "diag": SENSITIVE}, rows_are_persons=True, **more)
        del found["person"]
        return found

    assert "subtract" in refusal(rows("seq < 29"), rows("seq < 30", source="main.p"))
    assert "subtract" in refusal(part("seq < 29"), rows("seq < 30"))
    query = {"query": "SELECT q, diag FROM p WHERE seq < 30"}
    asked = rows("true", source=query)
    assert "subtract" in refusal(rows("seq < 29"), asked)
    assert make(rows("seq < 30"), rows("seq >= 30")).releases


def test_another_person_key_of_one_source() -> None:
    other = {"other": IDENTIFYING, "q": QI, "diag": SENSITIVE}
    assert "subtract" in refusal(part("seq < 29"), part("seq < 30", person="other", columns=other))


def test_views_and_queries_with_one_key() -> None:
    sql = PEOPLE + "CREATE VIEW w AS SELECT seq, q, diag FROM p WHERE seq < 30"
    assert "subtract" in refusal(part("seq < 29"), part(source="w"), sql=sql)
    assert "subtract" in refusal(part("seq < 29"), part(source={"query": "SELECT seq, q, diag FROM p WHERE seq < 30"}))


RENAMED = {"patient": IDENTIFYING, "q": QI, "diag": SENSITIVE}
VIEWS = """CREATE VIEW w AS SELECT seq AS patient, q, diag FROM p;
           CREATE VIEW x AS SELECT patient AS pid, patient, q, diag FROM w;
           CREATE VIEW y AS SELECT *, seq AS patient FROM p;
           CREATE TABLE copied AS FROM w"""


def test_a_view_that_renames_the_key_hides_nobody() -> None:
    """The key of either is in no column of the other: nobody can be looked up, and both read the same table."""
    renamed = {"person": "patient", "columns": RENAMED}
    for source in ("w", "x", {"query": "SELECT patient, q, diag FROM x"}):
        told = refusal(part("seq < 29"), part("patient < 30", source=source, **renamed), sql=PEOPLE + VIEWS)
        assert told.startswith("tables.b.person: has another name than in tables.a, and both read a common table")
    named = {"query": "SELECT patient AS seq, q, diag FROM w"}
    told = refusal(part("seq < 29"), part("seq < 30", source=named), sql=PEOPLE + VIEWS)
    assert "subtract" in told  # what the message advises: now they are compared
    assert make(part("seq < 30"), part("seq >= 30", source=named), sql=PEOPLE + VIEWS).releases
    free = part("patient < 30", source="w", never_with=["a"], **renamed)
    assert make(part("seq < 29"), free, sql=PEOPLE + VIEWS).releases
    other = part("patient < 30", source="copied", **renamed)  # a table of its own: the names are all that is known
    assert make(part("seq < 29"), other, sql=PEOPLE + VIEWS).releases


WARDS = """CREATE TABLE wards AS SELECT i AS ward, 'x' || i AS q FROM range(2) AS r(i);
           CREATE TABLE staff AS SELECT 500 + i AS pid, i % 2 AS ward, 'd' || (i % 7) AS diag FROM range(40) AS r(i);
           CREATE VIEW treated AS SELECT seq, wards.q, diag FROM p JOIN wards ON p.q = wards.q;
           CREATE VIEW employed AS SELECT pid, q, diag FROM staff JOIN wards USING (ward);
           CREATE VIEW w AS SELECT seq AS pid, p.q, diag FROM p JOIN wards ON p.q = wards.q"""
STAFF = {"source": "employed", "person": "pid", "columns": {"pid": IDENTIFYING, "q": QI, "diag": SENSITIVE}}


def test_other_persons_over_one_lookup_table_are_the_holders_word() -> None:
    """Staff and patients of the same wards; the rows of the patients themselves are never taken for others."""
    told = refusal(part(source="treated"), part(**STAFF), sql=PEOPLE + WARDS)
    assert "other_persons" in told
    for one, two in (({"other_persons": ["b"]}, {}), ({}, {"other_persons": ["a"]})):
        made = make(part(source="treated", **one), part(**STAFF, **two), sql=PEOPLE + WARDS)
        assert any("other_persons: the data holder states" in text for text in made.warnings)
    for source in ("w", {"query": "SELECT seq AS pid, q, diag FROM treated"}):
        other = {**STAFF, "source": source, "other_persons": ["a"]}
        assert "other_persons: is not believed of tables.a" in refusal(
            part(source="treated"), part(**other), sql=PEOPLE + WARDS
        )


def test_other_persons_do_not_end_a_comparison_by_a_common_key() -> None:
    """Whose key is a column of the other, too, are looked up by it, whatever the job says."""
    there = {"source": "y", "person": "patient", "columns": RENAMED | {"seq": IDENTIFYING}, "other_persons": ["a"]}
    assert "fewer than 5" in refusal(part("seq < 29"), part("seq < 30", **there), sql=PEOPLE + VIEWS)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"other_persons": ["c"]}, r"tables\.b\.other_persons: must name other table releases of this job; there: a"),
        ({"other_persons": ["b"]}, r"tables\.b\.other_persons: names its own release"),
        ({"other_persons": ["a"], "person": "seq"}, "names a release with the same person key, seq"),
        ({"other_persons": ["a"], "person": None, "rows_are_persons": True}, "needs a person key here and in tables.a"),
    ],
)
def test_other_persons_that_cannot_be(asked: dict[str, Any], told: str) -> None:
    found = {name: value for name, value in {**part(**STAFF), **asked}.items() if value is not None}
    with pytest.raises(JobError, match=told):
        job_of(part(), found)


def test_other_persons_in_two_runs_and_in_the_certificate() -> None:
    asked = job_of(part(source="treated", k=3), part(**STAFF, other_persons=["a"], k=3))
    with duckdb.connect() as c:
        c.execute(PEOPLE + WARDS)
        anonymize(asked, c, options=Options(only=("a",)))
        made = anonymize(asked, c, options=Options(only=("b",), certificate=True))
        proof = made.releases["b"].certificate
        assert proof["other_persons"] == ["a"]
        assert sqldeid.verify_certificates(asked, c, {"b": proof}, options=Options(only=("b",)))["b"].optimal
        unsaid = job_of(part(source="treated", k=3), part(**STAFF, k=3))
        with pytest.raises(JobError, match="in one run"):
            anonymize(unsaid, c, options=Options(only=("b",), replace=True))


def test_a_view_that_gives_the_key_a_second_name_is_compared() -> None:
    columns = RENAMED | {"seq": IDENTIFYING}
    there = {"source": "y", "person": "patient", "columns": columns}
    assert "fewer than 5" in refusal(part("seq < 29"), part("seq < 30", **there), sql=PEOPLE + VIEWS)
    assert make(part("seq < 30"), part("seq >= 30", **there), sql=PEOPLE + VIEWS).releases


def series_of(*parts: dict[str, Any], sql: str, **options: Any) -> sqldeid.Result:
    with duckdb.connect() as c:
        c.register("frame", charted())
        c.execute("CREATE TABLE charted AS FROM frame")
        c.execute(sql)
        job = Job.parse({"series": {name: {**BASE, **p} for name, p in zip("ab", parts, strict=True)}})
        return anonymize(job, c, options=Options(**options))


def test_series_over_a_view_that_renames_the_key() -> None:
    sql = "CREATE VIEW w AS SELECT stay AS patient, minute, item, value FROM charted"
    here, there = {"where": "stay < 79"}, {"where": "patient < 80", "source": "w", "person": "patient"}
    with pytest.raises(
        JobError, match=r"series\.b\.person: is patient, in series\.a stay, and both read a common table"
    ):
        series_of(here, there, sql=sql)
    assert len(series_of(here, there, sql=sql, without_ledger=True).releases) == 2
    with pytest.raises(JobError, match=r"series\.a has some of the same persons in other classes"):
        series_of(here, {"source": {"query": "SELECT patient AS stay, * FROM w WHERE patient < 80"}}, sql=sql)
    glucose = {"variables": {"Glu": {"items": [2]}}}
    heart = {"variables": {"HR": {"items": [1]}}}
    assert len(series_of(here | heart, there | glucose, sql=sql).releases) == 2  # nothing to subtract
    assert len(series_of(here, there, sql=sql.replace("VIEW", "TABLE")).releases) == 2


def test_another_run_over_a_view_that_renames_the_key() -> None:
    with duckdb.connect() as c:
        c.execute(PEOPLE + VIEWS)
        asked = job_of(part("seq < 29"), part("patient < 30", source="w", person="patient", columns=RENAMED))
        anonymize(asked, c, options=Options(only=["a"]))
        with pytest.raises(JobError, match=r"tables\.a: the release that is there is not added to"):
            anonymize(asked, c, options=Options(only=["b"]))


def test_keys_of_two_types_are_refused() -> None:
    sql = PEOPLE + "CREATE TABLE n AS SELECT * REPLACE ('0' || seq AS seq) FROM p"
    assert "tables.b.person: is of type text, in tables.a of type integer" in refusal(part(), part(source="n"), sql=sql)


def test_many_rows_of_a_person() -> None:
    """Forty persons with three rows each; the second release has one row more of one of them, or of twenty."""
    sql = """CREATE TABLE p AS SELECT i % 40 AS seq, i AS n, 'x' || (i % 2) AS q, 'd' || (i % 40 * 7 % 13) AS diag
             FROM range(120) AS r(i)"""
    many = {"rows": "many", "privacy": {"k": 5}}
    assert "subtract" in refusal(part("n < 80", **many), part("n < 81", **many), sql=sql)
    assert make(part("n < 80", **many), part("n < 100", **many), sql=sql).releases
    assert make(part("n < 80", **many), part("n < 80", **many), sql=sql).releases


@pytest.mark.deep
def test_mondrian() -> None:
    age = {"role": "quasi-identifying", "hierarchy": {"median": "range", "grid": 1}}
    asked = {"columns": {"seq": IDENTIFYING, "age": age, "diag": SENSITIVE}, "search": {"method": "mondrian"}}
    assert "subtract" in refusal(part("seq < 29", **asked), part("seq < 30", **asked))
    assert "subtract" in refusal(part("seq < 29"), part("seq < 30", **asked))
    assert make(part("seq < 30", **asked), part("seq >= 30", **asked)).releases
    assert make(part(**asked), part(**asked)).releases


def test_linked_tables_are_one_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLDEID_KEY", "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0")
    key = {"role": "identifying", "pseudonym": True}
    linked = [
        part("seq < 29", columns={"seq": key, "q": QI, "diag": SENSITIVE}),
        part("seq < 29", columns={"seq": key, "los": SHOWN, "q": QI}, link="a"),
    ]
    assert make(*linked).releases
    told = refusal(*linked, part("seq < 30"))
    assert told.startswith("tables.c: beside tables.a + tables.b")
    assert make(*linked, part("seq >= 29")).releases


def test_what_nobody_is_given_both_of() -> None:
    assert make(part("seq < 29"), part("seq < 30", never_with=["a"])).releases
    assert make(part("seq < 29", never_with=["b"]), part("seq < 30")).releases
    told = refusal(part("seq < 29"), part("seq < 30", never_with=["a"]), part("seq < 28"))
    assert "tables.c" in told
    with pytest.raises(JobError, match=r"tables\.a\.never_with: must name other table releases of this job; there: b"):
        job_of(part(never_with=["c"]), part())
    with pytest.raises(JobError, match=r"tables\.a\.never_with: names its own release"):
        job_of(part(never_with=["a"]), part())


def fewest(cells: list[tuple[int | None, int | None, int]]) -> float:
    """The fewest persons, but none, that a sum of classes is about, each taken or not: all of them are tried."""
    nodes = sorted({("a", c) for c, _, _ in cells if c is not None} | {("b", d) for _, d, _ in cells if d is not None})
    found = [
        sum(n for c, d, n in cells if (("a", c) in taken) != (("b", d) in taken))
        for r in range(len(nodes) + 1)
        for taken in map(set, combinations(nodes, r))
    ]
    return min((n for n in found if n), default=float("inf"))


SIDE = st.none() | st.integers(0, 3)


@given(st.dictionaries(st.tuples(SIDE, SIDE), st.integers(1, 9), max_size=12), st.integers(1, 12))
def test_sums_of_classes(cells: dict[tuple[int | None, int | None], int], k: int) -> None:
    listed = [(c, d, n) for (c, d), n in cells.items() if c is not None or d is not None]
    assert can_be_subtracted(listed, k) == (fewest(listed) < k)


def classes_of(people: pd.DataFrame, where: str, level: int, k: int) -> dict[str, set[int]]:
    """The released classes as sets of persons: by the whole value, its first letter, or all alike."""
    cohort = people.query(where)
    shown = cohort.q if level == 0 else cohort.q.str[:1] if level == 1 else pd.Series("*", cohort.index)
    return {value: set(of) for value, of in cohort.groupby(shown).seq if len(of) >= k}


def singles_out(releases: list[tuple[dict[str, set[int]], int]]) -> bool:
    """Whether the others part a class into less than its k, or a sum of two releases' classes is about fewer than k."""
    shown = [shown_of(of) for of, _ in releases]
    for number, (of, k) in enumerate(releases):
        for members in of.values():
            ways = pd.Series({p: tuple(p in s for i, s in enumerate(shown) if i != number) for p in members})
            if ways.value_counts().min() < k:
                return True
    return any(
        fewest(list(cells_of(here, there))) < min(k, other) for (here, k), (there, other) in combinations(releases, 2)
    )


def cells_of(here: dict[str, set[int]], there: dict[str, set[int]]) -> Iterator[tuple[int | None, int | None, int]]:
    for c, mine in enumerate(here.values()):
        yield c, None, len(mine - shown_of(there))
        yield from ((c, d, len(mine & its)) for d, its in enumerate(there.values()))
    yield from ((None, d, len(its - shown_of(here))) for d, its in enumerate(there.values()))


def shown_of(release: dict[str, set[int]]) -> set[int]:
    return set(chain(*release.values()))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_cohorts_as_sets_of_persons(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n = int(draw.integers(20, 60))
    people = pd.DataFrame({"seq": range(n), "q": draw.choice(["ax", "ay", "bx", "by"], n, p=[0.4, 0.3, 0.2, 0.1])})
    people["diag"] = draw.choice(["r", "s", "t"], n)
    parts, found = [], []
    for _ in range(int(draw.integers(2, 4))):
        low, high, k = (
            int(draw.integers(0, 2) * draw.integers(0, n // 3)),
            int(n - draw.integers(0, 8)),
            int(draw.integers(2, 5)),
        )
        asked = part(
            f"seq >= {low} AND seq < {high}", privacy={"k": k, "suppression_limit": float(draw.choice([0, 0.2]))}
        )
        with duckdb.connect() as c:
            c.execute("CREATE TABLE p AS SELECT * FROM people")
            node = anonymize(job_of(asked), c).releases["a"].node  # type: ignore[union-attr]
        parts.append(asked)
        found.append((classes_of(people, f"seq >= {low} and seq < {high}", node["q"], k), k))
    with duckdb.connect() as c:
        c.execute("CREATE TABLE p AS SELECT * FROM people")
        if singles_out(found):
            with pytest.raises(JobError, match="subtract"):
                anonymize(job_of(*parts), c)
        else:
            assert len(anonymize(job_of(*parts), c).releases) == len(parts)


@pytest.mark.deep
def test_in_postgres_as_in_duckdb(postgres: psycopg.Connection) -> None:
    postgres.execute(
        """CREATE TABLE p AS SELECT i AS seq, 'x' || (i % 2) AS q, 'd' || (i * 7 % 13) AS diag, '{"a": 1}'::json AS kept
           FROM generate_series(0, 59) AS r(i)"""
    )
    postgres.execute("DROP SCHEMA IF EXISTS release CASCADE")  # of another test of this cluster
    with pytest.raises(JobError, match=r"tables\.b: beside tables\.a, fewer than 5 persons of a class"):
        anonymize(job_of(part("seq < 29"), part("seq < 30")), postgres)
    keyless = part("seq < 30", columns={"q": QI, "diag": SENSITIVE}, rows_are_persons=True)
    del keyless["person"]
    with pytest.raises(JobError, match="subtract"):
        anonymize(job_of(keyless | {"where": "seq < 29"}, keyless), postgres)
    assert anonymize(job_of(part("seq < 30"), part("seq >= 30")), postgres).releases
    postgres.execute("DROP SCHEMA release CASCADE")


def test_local_recoding() -> None:
    local = {"search": {"method": "local"}}
    assert "subtract" in refusal(part("seq < 29", **local), part("seq < 30"))
    assert "subtract" in refusal(part("seq < 29", **local), part("seq < 30", **local))
    assert make(part("seq < 30", **local), part("seq >= 30", **local)).releases
