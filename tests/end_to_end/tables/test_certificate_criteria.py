"""Certificates of jobs with criteria beyond k: counted anew class by class, and nothing altered passes."""

from __future__ import annotations

import copy
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import exp, log, prod
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import Settings
from sqldeid.run import reading
from sqldeid.tables.certificate.recount import Recount
from sqldeid.tables.check.check import Checker
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.plan.plan import TablePlan, plan
from sqldeid.tables.release.node import find_node
from sqldeid.tables.release.release import Listener
from sqldeid.tables.search import Outcome
from tests.support.sources import insert

ROWS = 240
BANDS = [[1, 5, 10, 20, 1000], [1, 1000]]
Row = tuple[int, int | None, str | None, int | None]

DIVERSE: dict[str, object] = {"l_diversity": {"column": "illness", "l": 3, "kind": "entropy"}}
CLOSE: dict[str, object] = {"t_closeness": {"column": "income", "t": 0.16, "distance": "ordered"}}
HIDDEN: dict[str, object] = {"m_concealing": {"m": 0.15, "known": {"illness": 0.2, "income": 0.05}}}
CRITERIA: dict[str, dict[str, object]] = {
    "distinct": {"l_diversity": {"column": "illness", "l": 3}},
    "entropy": DIVERSE,
    "recursive": {"l_diversity": {"column": "illness", "l": 2, "kind": "recursive", "c": 1.5}},
    "t": {"t_closeness": {"column": "illness", "t": 0.25}},
    "t ordered": CLOSE,
    "t stated order": {
        "t_closeness": {
            "column": "illness",
            "t": 0.2,
            "distance": "ordered",
            "order": ["none", "flu", "asthma", "cancer", "unseen"],
        }
    },
    "t by hierarchy": {
        "t_closeness": {"column": "illness", "t": 0.15, "distance": "hierarchical", "hierarchy": "illness.csv"}
    },
    "delta": {"delta_disclosure": {"column": "illness", "delta": 1.2}},
    "beta": {"beta_likeness": {"column": "illness", "beta": 0.8, "kind": "basic"}},
    "enhanced beta": {"beta_likeness": {"column": "illness", "beta": 1.5}},
    "m": HIDDEN,
    "m, nothing known": {"m_concealing": {"m": 0.21}},
    "all": {**DIVERSE, **CLOSE, **HIDDEN},
}


SIMILAR = {"none": "well", "flu": "lungs", "asthma": "lungs", "cancer": "other", "unseen": "other"}


def row_of(i: int) -> Row:
    illness = ["none", "flu", "flu", "asthma", None, "cancer", "none"][(i * i + i // 9) % 7]
    return (i * 37) % 60 + i % 5, None if i % 13 == 0 else (i * 7) % 4, illness, None if i % 17 == 3 else (i * i) % 11


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "people.duckdb"
    (tmp_path / "illness.csv").write_text("".join(f"{v};{up};*\n" for v, up in SIMILAR.items()))
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE people (id INTEGER, age INTEGER, ward INTEGER, illness VARCHAR, income INTEGER)"
        )
        insert(connection, "people", [(i, *row_of(i)) for i in range(ROWS)])
    return path


def job_of(folder: Path, criteria: dict[str, object], *, limit: float = 0.1, **search: object) -> sqldeid.Job:
    columns = {
        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}},
        "ward": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "illness": {"role": "sensitive"},
        "income": {"role": "sensitive"},
    }
    privacy = {"k": 4, "suppression_limit": limit, **criteria}
    table = {"source": "people", "person": "id", "columns": columns, "privacy": privacy, "search": search}
    return sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=folder)


def certificate(job: sqldeid.Job, database: Path) -> dict[str, object]:
    options = sqldeid.Options(certificate=True, replace=True, without_ledger=True)
    release = sqldeid.anonymize(job, database, options=options).releases["people"]
    assert not any("certificate" in warning for warning in release.warnings)
    found: dict[str, object] = json.loads(json.dumps(release.certificate))
    return found


def check(job: sqldeid.Job, database: Path, proof: object) -> object:
    return sqldeid.verify_certificates(job, database, {"people": proof})["people"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("loss", ["loss", "dm_star"])
def test_a_certificate_holds(database: Path, name: str, loss: str) -> None:
    job = job_of(database.parent, CRITERIA[name], loss=loss)
    proof = certificate(job, database)
    assert check(job, database, proof).optimal  # type: ignore[attr-defined]


def test_best_first_certifies_too(database: Path) -> None:
    job = job_of(database.parent, CRITERIA["all"], method="best-first")
    assert check(job, database, certificate(job, database)).optimal  # type: ignore[attr-defined]


@pytest.mark.deep
@pytest.mark.parametrize("criteria", [DIVERSE, CLOSE, HIDDEN], ids=["l", "t", "m"])
def test_every_altered_part_is_caught(database: Path, criteria: dict[str, object]) -> None:
    job = job_of(database.parent, criteria)
    proof = certificate(job, database)
    for i, (node, failing) in enumerate(proof["nodes"]):  # type: ignore[arg-type,var-annotated]
        for other in (failing + 1, failing - 1):
            wrong = copy.deepcopy(proof)
            wrong["nodes"][i] = [node, other]  # type: ignore[index]
            with pytest.raises(sqldeid.VerificationError):
                check(job, database, wrong)
    for i in range(len(proof["tree"])):  # type: ignore[arg-type]
        wrong = copy.deepcopy(proof)
        del wrong["tree"][i]  # type: ignore[attr-defined]
        with pytest.raises(sqldeid.VerificationError):
            check(job, database, wrong)
    for key, value in (("criteria", {}), ("suppressed", 0), ("k", 3), ("bound", "1/1000"), ("node", [0, 0])):
        assert proof[key] != value
        with pytest.raises(sqldeid.VerificationError):
            check(job, database, {**proof, key: value})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("criteria", [DIVERSE, CLOSE, HIDDEN], ids=["l", "t", "m"])
def test_the_criteria_are_part_of_the_claim(database: Path, criteria: dict[str, object]) -> None:
    proof = certificate(job_of(database.parent, criteria), database)
    stricter = {
        "l_diversity": {"column": "illness", "l": 4, "kind": "entropy"},
        "t_closeness": {"column": "income", "t": 0.12, "distance": "ordered"},
        "m_concealing": {"m": 0.15, "known": {"illness": 0.3, "income": 0.05}},
    }
    others: list[dict[str, object]] = [{name: stricter[name] for name in criteria}, {}]
    for other in others:
        with pytest.raises(sqldeid.VerificationError, match="criteria"):
            check(job_of(database.parent, other), database, proof)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("criteria", [DIVERSE, CLOSE, HIDDEN], ids=["l", "t", "m"])
def test_changed_sensitive_values_are_caught(database: Path, criteria: dict[str, object]) -> None:
    """Only the sensitive columns change: k-anonymity's counts all stay."""
    job = job_of(database.parent, criteria)
    proof = certificate(job, database)
    with duckdb.connect(str(database)) as connection:
        connection.execute("UPDATE people SET illness = 'flu', income = 3 WHERE age < 30")
    with pytest.raises(sqldeid.VerificationError):
        check(job, database, proof)


def rank(values: list[object], order: list[str] | None) -> tuple[dict[object, int], int]:
    """Place of each value, NULL last, and the number of places."""
    named: list[object] = list(order) if order else sorted({v for v in values if v is not None})  # type: ignore[type-var]
    places = {v: i for i, v in enumerate(named)} | ({None: len(named)} if None in values else {})
    return places, len(places)


def forced(rows: list[Row], every: list[Row], criteria: dict[str, object]) -> int:
    """Rows of a class that fail at every specialisation; 0 where it passes (soundness.md 9): all that cannot stay."""
    at, n = {"illness": 2, "income": 3}, len(rows)
    if n < 4:
        return n
    stay = [n]
    if (entry := criteria.get("l_diversity")) is not None:
        stay.append(diverse_part(Counter(r[at[entry["column"]]] for r in rows), entry))  # type: ignore[index,arg-type]
    if (entry := criteria.get("t_closeness")) is not None:
        j = at[entry["column"]]  # type: ignore[index]
        stay.append(close_part([r[j] for r in rows], [r[j] for r in every], entry))  # type: ignore[arg-type]
    if (entry := criteria.get("delta_disclosure")) is not None:
        factor, j = exp(entry["delta"]), at[entry["column"]]  # type: ignore[index,arg-type]
        stay.append(bounded_part([r[j] for r in rows], [r[j] for r in every], lambda share: (1 / factor, factor)))
    if (entry := criteria.get("beta_likeness")) is not None:
        beta, basic, j = entry["beta"], "kind" in entry, at[entry["column"]]  # type: ignore[index]
        own, whole = [r[j] for r in rows], [r[j] for r in every]
        stay.append(bounded_part(own, whole, lambda p: (0.0, 1 + (beta if basic else min(beta, -log(p))))))
    most = n - min(stay)
    if (entry := criteria.get("m_concealing")) is not None:
        most = max(most, risky(rows, entry, at))  # type: ignore[arg-type]
    judged = criteria.keys() - {"m_concealing"}
    return n if judged and most and n - most < 4 else most


def bounded_part(own: list[object], every: list[object], factors: Callable[[float], tuple[float, float]]) -> int:
    """The most rows of which each value can have its share."""
    counts, whole = Counter(own), Counter(every)
    bounds = {v: tuple(f * n / len(every) for f in factors(n / len(every))) for v, n in whole.items()}
    for x in range(len(own), 0, -1):
        enough = sum(min(counts[v], most * x) for v, (_, most) in bounds.items()) >= x - 1e-9
        if enough and all(counts[v] >= least * x - 1e-9 for v, (least, _) in bounds.items()):
            return x
    return 0


def diverse_part(values: Counter[object], entry: dict[str, object]) -> int:
    """Take a row of the most frequent value away until the rest is diverse."""
    counts, l = sorted(values.values(), reverse=True), int(str(entry["l"]))
    kind = entry.get("kind", "distinct")
    if kind == "distinct":
        return sum(counts) if len(counts) >= l else 0
    while counts:
        n = sum(counts)
        entropy = -sum(c / n * log(c / n) for c in counts)
        if entropy >= log(l) - 1e-9 if kind == "entropy" else counts[0] < Fraction(3, 2) * sum(counts[l - 1 :]):
            return n
        counts = sorted([c for c in [counts[0] - 1, *counts[1:]] if c], reverse=True)
    return 0


def close_part(own: list[object], every: list[object], entry: dict[str, object]) -> int:
    """The most rows that can be near enough, whichever go: each takes one from a surplus, or moves each cut by one."""
    places, m = rank(every, entry.get("order"))  # type: ignore[arg-type]
    n, t = len(own), Fraction(str(entry["t"]))
    share, count = [Fraction(0)] * m, [0] * m
    for v, c in Counter(every).items():
        share[places[v]] = Fraction(c, len(every))
    for v, c in Counter(own).items():
        count[places[v]] = c
    for x in range(n, 0, -1):
        if entry.get("distance") == "hierarchical":
            ups = {v: SIMILAR.get(v, "NULL") for v in places}
            far = sum((max(c - x * q, Fraction(0)) for c, q in zip(count, share, strict=True)), Fraction(0)) - (n - x)
            for up in set(ups.values()):
                mine = [places[v] for v in places if ups[v] == up]
                c, q = sum(count[i] for i in mine), sum((share[i] for i in mine), Fraction(0))
                far += max(c - x * q, Fraction(0))
            far = (far - (n - x)) / 2
        elif entry.get("distance") != "ordered":
            far = sum((max(c - x * q, Fraction(0)) for c, q in zip(count, share, strict=True)), Fraction(0)) - (n - x)
        else:
            cuts = [(sum(count[: i + 1]), x * sum(share[: i + 1], Fraction(0))) for i in range(m)]
            far = sum((max(a - n + x - b, b - a, Fraction(0)) for a, b in cuts), Fraction(0)) / max(m - 1, 1)
        if far <= t * x:
            return x
    return 0


def risky(rows: list[Row], entry: dict[str, object], at: dict[str, int]) -> int:
    known: dict[str, float] = entry.get("known", {})  # type: ignore[assignment]
    risk = Counter[Row]()
    for state in product([False, True], repeat=len(known)):
        chance = prod(p if k else 1 - p for p, k in zip(known.values(), state, strict=True))
        columns = [at[c] for c, k in zip(known, state, strict=True) if k]
        fitting = Counter(tuple(r[j] for j in columns) for r in rows)
        for r in set(rows):
            risk[r] += chance / fitting[tuple(r[j] for j in columns)]  # type: ignore[assignment]
    return sum(risk[r] > entry["m"] * (1 + 1e-12) for r in rows)  # type: ignore[operator]


def classes_of(node: tuple[int, ...]) -> dict[tuple[object, ...], list[Row]]:
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    widths = [BANDS[j][x] for j, x in enumerate(node)]
    for row in map(row_of, range(ROWS)):
        shown = zip(row, widths, strict=False)
        found[tuple(None if v is None and w < 1000 else (v or 0) // w for v, w in shown)].append(row)  # type: ignore[operator]
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CRITERIA)
def test_every_node_is_counted_as_by_hand(database: Path, name: str) -> None:
    """Failing rows, and rows forced out below, of every node of the lattice; no node is closed by k alone."""
    criteria = CRITERIA[name]
    job = job_of(database.parent, criteria, limit=0.999)
    every = [row_of(i) for i in range(ROWS)]
    with reading(database, database, Settings()) as engine:
        found = plan("people", job.tables["people"], engine, database.parent)
        evaluations = Recount.of(found, engine).evaluate(list(found.lattice))
    failing = 0
    for e in evaluations:
        classes = classes_of(e.node)
        out = {key: forced(rows, every, criteria) for key, rows in classes.items()}
        assert e.failing == sum(len(classes[key]) for key, f in out.items() if f)
        assert e.core_failing == sum(out.values())
        assert e.classes == len(classes)
        failing += e.failing > e.core_failing
    assert failing or name in ("distinct", "m, nothing known")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CRITERIA)
def test_ola_equals_exhaustive_search(database: Path, name: str) -> None:
    """At every limit that some node needs exactly: least prec or DM*, fewest suppressed rows, first node."""
    every, nodes = [row_of(i) for i in range(ROWS)], list(product(range(5), range(2)))
    classes = {x: classes_of(x).values() for x in nodes}
    failing = {x: sum(len(r) for r in classes[x] if forced(r, every, CRITERIA[name])) for x in nodes}
    losses: dict[str, dict[tuple[int, ...], Fraction]] = {
        "prec": {x: Fraction(x[0], 4) + x[1] for x in nodes},
        "dm_star": {x: Fraction(sum(len(r) ** 2 for r in classes[x])) for x in nodes},
    }
    with reading(database, database, Settings()) as engine:
        folded = None
        for allowed in sorted(set(failing.values()) - {ROWS}):
            for loss, by_node in losses.items():
                job = job_of(database.parent, CRITERIA[name], limit=(allowed + 0.5) / ROWS, method="ola", loss=loss)
                found = plan("people", job.tables["people"], engine, database.parent)
                folded = folded or fold(found, engine)  # which no limit and no loss changes
                outcome = search_of(found, folded, engine)
                assert outcome.optimal
                assert outcome.node == min((by_node[x], f, x) for x, f in failing.items() if f <= allowed)[2]


def search_of(found: TablePlan, folded: Folded, engine: DuckDBEngine) -> Outcome:
    k, allowed = found.demands.k, allowed_rows(found.demands.suppression_limit, ROWS)
    judge = Judge(engine, folded, k, found.criteria, found.name, found.concealing)
    return find_node(found, folded, Checker(engine, folded, k, allowed, found.name, judge), Listener())[0]


def test_ola_certifies_too(database: Path) -> None:
    job = job_of(database.parent, CRITERIA["all"], method="ola", loss="prec", limit=0.3)
    assert check(job, database, certificate(job, database)).optimal  # type: ignore[attr-defined]


@pytest.mark.parametrize("criteria", [DIVERSE, CLOSE], ids=["l", "t"])
def test_inverse_ola_says_what_it_does_not_know(tmp_path: Path, criteria: dict[str, object]) -> None:
    with pytest.raises(sqldeid.JobError, match="greatest k, or the least m of m_concealing, and knows no other"):
        job_of(tmp_path, criteria, method="inverse-ola", max_loss=0.5)
