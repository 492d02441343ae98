"""Random tables, hierarchies and criteria: what is released is what plain loops say, and nothing passes for it."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.hierarchy import Hierarchy, open_source
from sqldeid.job import Job
from sqldeid.run import anonymize, verify
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.lattice import Node
from tests.support.examples import examples
from tests.support.oracle import Table, exhaustive
from tests.support.sources import insert

Rows = list[tuple[object, ...]]
HOSTILE = ['we"ird; DROP TABLE t; --', "select", "ünïcode", "n", "w0", "size", "q0", " "]
FEW = settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Kind:
    """A column's type, its values, and the rules that fit it."""

    type: str
    values: Sequence[object]
    rules: Sequence[dict[str, object]]


SUPPRESS: dict[str, object] = {"suppress": True}
KINDS = [
    Kind("INTEGER", [-7, 0, 1, 2, 5, 13, 2147483647], [SUPPRESS, {"bands": [5]}, {"bands": [2, 10]}]),
    Kind("BIGINT", [1, 3, 9, 27], [{"edges": [[2, 10], [10]], "tails": True}]),
    Kind("VARCHAR", ["", "a", "ab", "abc", "b'\"", "😀x", "*"], [SUPPRESS, {"keep_first": [1]}, {"mask": [1, 2]}]),
    Kind("BOOLEAN", [False, True], [SUPPRESS]),
    Kind("DATE", [datetime.date(2000, m, d) for m in (1, 2, 12) for d in (1, 28)], [{"dates": ["month", "year"]}]),
    Kind("DOUBLE", [0.5, 1.0, 2.5, float("inf")], [SUPPRESS]),
    Kind("TIMESTAMP", [datetime.datetime(2000, 1, d, 3) for d in (1, 2, 3)], [SUPPRESS, {"dates": ["month"]}]),
]


@dataclass(frozen=True)
class Case:
    """A table, what is asked of it, and where its quasi-identifiers end."""

    kinds: tuple[Kind, ...]
    rules: tuple[dict[str, object], ...]
    others: int
    rows: Rows
    k: int
    limit: float
    blank: bool

    @property
    def width(self) -> int:
        return len(self.kinds)

    def job(self, names: Sequence[str]) -> Job:
        columns = {
            n: {"role": "quasi-identifying", "hierarchy": rule} for n, rule in zip(names, self.rules, strict=False)
        }
        columns |= {n: {"role": "insensitive"} for n in names[self.width :]}
        privacy = {"k": self.k, "suppression_limit": self.limit, "suppression": "blank" if self.blank else "drop"}
        return Job.parse(
            {"tables": {"r": {"rows_are_persons": True, "source": "t", "columns": columns, "privacy": privacy}}}
        )

    def load(self, names: Sequence[str], rows: Rows) -> duckdb.DuckDBPyConnection:
        c = duckdb.connect()
        types = [kind.type for kind in self.kinds] + ["VARCHAR"] * self.others
        made = ", ".join(f"{quoted(n)} {t}" for n, t in zip(names, types, strict=True))
        c.execute(f"CREATE TABLE t ({made})")
        insert(c, "t", [list(r) for r in rows])
        return c

    def hierarchy(self, j: int) -> Hierarchy:
        distinct = list(dict.fromkeys(row[j] for row in self.rows))
        type_ = {"DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}
        text = pa.string() if self.kinds[j].type == "VARCHAR" else pa.int64()
        values = pa.array(distinct, type=type_.get(self.kinds[j].type, text), from_pandas=False)
        return open_source(self.rules[j], Path()).bind(values)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kinds = tuple(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)))
    rules = tuple(draw(st.sampled_from(kind.rules)) for kind in kinds)
    others = draw(st.integers(0, 2))
    cells = [st.one_of(st.none(), st.sampled_from(kind.values), st.sampled_from(kind.values[:2])) for kind in kinds]
    more = [st.sampled_from([None, "x", "y", "z"])] * others
    rows = draw(st.lists(st.tuples(*cells, *more), min_size=1, max_size=40))
    limit = draw(st.sampled_from([0.0, 0.1, 0.3, 0.6]))
    return Case(kinds, rules, others, rows, draw(st.integers(1, 5)), limit, draw(st.booleans()))


def expected_release(case: Case, node: Node, hierarchies: list[Hierarchy], texts: Rows) -> Counter[tuple[object, ...]]:
    """Row by row: generalise, count classes, then drop or blank what is smaller than k."""
    generalised = []
    for row, text in zip(case.rows, texts, strict=True):
        values: list[object] = []
        for j, (h, level) in enumerate(zip(hierarchies, node, strict=True)):
            position = h.values.to_pylist().index(row[j])
            label = h.labels[level][h.groups[level][h.leaf[position]]]
            values.append((text[j] if case.blank else row[j]) if level == 0 else label)
        generalised.append(tuple(values))
    sizes = Counter(generalised)
    top = tuple(h.labels[-1][0] for h in hierarchies)
    blanked = [v if sizes[v] >= case.k else top if case.blank else None for v in generalised]
    again = Counter(blanked)
    return Counter(
        (*v, *row[case.width :])
        for v, row in zip(blanked, case.rows, strict=True)
        if v is not None and again[v] >= case.k
    )


@FEW
@given(cases())
def test_the_release_is_the_oracles_and_its_node_the_best(case: Case) -> None:
    names = [f"c{j}" for j in range(case.width + case.others)]
    hierarchies = [case.hierarchy(j) for j in range(case.width)]
    position = [{repr(v): i for i, v in enumerate(h.values.to_pylist())} for h in hierarchies]
    table = Table(
        codes=tuple(
            tuple(int(h.leaf[position[j][repr(row[j])]]) for row in case.rows) for j, h in enumerate(hierarchies)
        ),
        groups=tuple(tuple(tuple(int(g) for g in level) for level in h.groups) for h in hierarchies),
        weights=(Fraction(1),) * case.width,
        sensitive=(0,) * len(case.rows),
        k=case.k,
    )
    allowed = allowed_rows(case.limit, len(case.rows))
    best = exhaustive(table, "loss", allowed)
    with case.load(names, case.rows) as c:
        if case.k > len(case.rows):
            with pytest.raises(JobError):
                anonymize(case.job(names), c)
            return
        if best is None:
            with pytest.raises(NoSolutionError):
                anonymize(case.job(names), c)
            return
        found = anonymize(case.job(names), c).releases["r"]
        assert tuple(found.node.values()) == best
        assert found.loss["loss"] == pytest.approx(float(table.loss("loss", best)), abs=1e-12)
        texts = c.execute(
            f"SELECT {', '.join(f'CAST({n} AS VARCHAR)' for n in names)} FROM t ORDER BY rowid"
        ).fetchall()
        released = c.execute("FROM release.r").fetchall()
        assert Counter(released) == expected_release(case, best, hierarchies, texts)
        assert found.released == len(released)
        assert found.suppressed == table.evaluation(best, allowed).failing
        again = verify(case.job(names), c)["r"]
        assert (again.released, again.k, again.classes) == (found.released, found.k, found.classes)
        assert not released or found.k >= case.k


@FEW
@given(cases(), st.randoms(use_true_random=False), st.permutations(HOSTILE))
def test_neither_names_nor_order_change_a_release(case: Case, random: object, hostile: list[str]) -> None:
    plain = [f"c{j}" for j in range(case.width + case.others)]
    shuffled = list(case.rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = []
    for names, rows in ((plain, case.rows), (hostile[: len(plain)], shuffled)):
        with case.load(names, rows) as c:
            try:
                done = anonymize(case.job(names), c).releases["r"]
            except (JobError, NoSolutionError) as error:
                found.append(type(error))
            else:
                found.append((tuple(done.node.values()), done.loss, c.execute("FROM release.r").fetchall()))
    assert found[0] == found[1]


def _drop(c: duckdb.DuckDBPyConnection, case: Case) -> None:
    c.execute("DELETE FROM release.r WHERE rowid = 0")


def _add(c: duckdb.DuckDBPyConnection, case: Case) -> None:
    c.execute("INSERT INTO release.r SELECT * FROM release.r WHERE rowid = 0")


def _swap_rows(c: duckdb.DuckDBPyConnection, case: Case) -> None:
    c.execute("INSERT INTO release.r SELECT * FROM release.r WHERE rowid = 0")
    c.execute("DELETE FROM release.r WHERE rowid = (SELECT MAX(rowid) - 1 FROM release.r)")


def _change_quasi_identifier(c: duckdb.DuckDBPyConnection, case: Case) -> None:
    c.execute("UPDATE release.r SET c0 = NULL WHERE rowid = 0")


def _copy_quasi_identifiers(c: duckdb.DuckDBPyConnection, case: Case) -> None:
    last = "(SELECT c{0} FROM release.r ORDER BY rowid DESC LIMIT 1)"
    given = ", ".join(f"c{j} = {last.format(j)}" for j in range(case.width))
    c.execute(f"UPDATE release.r SET {given} WHERE rowid = 0")


def _change_another(c: duckdb.DuckDBPyConnection, case: Case) -> None:
    c.execute(f"UPDATE release.r SET c{case.width} = 'w' WHERE rowid = 0")


def _swap_others(c: duckdb.DuckDBPyConnection, case: Case) -> None:
    """The values of another column change places between the first and the last row."""
    name = f"c{case.width}"
    first, last = (
        c.execute(f"SELECT {name} FROM release.r ORDER BY rowid {way} LIMIT 1").fetchall()[0][0] for way in ("", "DESC")
    )
    c.execute(f"UPDATE release.r SET {name} = ? WHERE rowid = 0", [last])
    c.execute(f"UPDATE release.r SET {name} = ? WHERE rowid = (SELECT MAX(rowid) FROM release.r)", [first])


TAMPERING: list[Callable[[duckdb.DuckDBPyConnection, Case], None]] = [
    _drop,
    _add,
    _swap_rows,
    _change_quasi_identifier,
    _copy_quasi_identifiers,
    _change_another,
    _swap_others,
]


@settings(FEW, max_examples=examples(30))
@given(st.sampled_from(TAMPERING), cases())
def test_a_changed_release_never_verifies(tamper: Callable[..., None], case: Case) -> None:
    """`verify` raises exactly if the rows are others than before."""
    names = [f"c{j}" for j in range(case.width + case.others)]
    with case.load(names, case.rows) as c:
        try:
            anonymize(case.job(names), c)
        except (JobError, NoSolutionError):
            return
        before = c.execute("FROM release.r").fetchall()
        if not before or (case.others == 0 and tamper in (_change_another, _swap_others)):
            return
        tamper(c, case)
        if Counter(before) == Counter(c.execute("FROM release.r").fetchall()):
            verify(case.job(names), c)
            return
        with pytest.raises(VerificationError):
            verify(case.job(names), c)
