"""What the choice of a node tells: the attack on `by-all`, and that `by-k` chooses by no sensitive value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sqldeid
from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.report.page import public_page, report_page
from sqldeid.run.orchestrator import verify_certificates
from sqldeid.tables.model.loss import LOSSES
from sqldeid.tables.release.tradeoff import Asked
from tests.support.examples import examples
from tests.support.sources import insert

VALUES = ("HIV", "flu", "cold")
ZIP = {"role": "quasi-identifying", "hierarchy": "zip.csv"}
DIVERSE = {"l_diversity": {"column": "ill", "l": 2}}
BY_K = {"choose": "by-k"}

Rows = Sequence[tuple[str, str]]


def write(folder: Path, rows: Rows) -> Path:
    """A database of persons with a place and an illness."""
    (folder / "zip.csv").write_text("A;*\nB;*\n")
    path = folder / "people.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, zip VARCHAR, ill VARCHAR)")
        insert(connection, "people", [(i, *row) for i, row in enumerate(rows)])
    return path


def job_of(folder: Path, privacy: Mapping[str, object], search: Mapping[str, object], **columns: object) -> sqldeid.Job:
    named = {"zip": ZIP, "ill": {"role": "sensitive"}, **columns}
    table = {"source": "people", "person": "id", "columns": named, "privacy": privacy, "search": search}
    return sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=folder)


def seen(folder: Path, rows: Rows, privacy: Mapping[str, object], search: Mapping[str, object]) -> tuple[Any, ...]:
    """What a reader of the release sees: its node, and its rows."""
    job = job_of(folder, privacy, search)
    result = sqldeid.anonymize(job, write(folder, rows), options=sqldeid.Options(replace=True, without_ledger=True))
    with duckdb.connect(str(folder / "out.duckdb"), read_only=True) as connection:
        released = connection.execute("SELECT zip, ill FROM release.people").fetchall()
    return result.releases["people"].node["zip"], tuple(sorted(released))


def worlds(persons: Mapping[str, int]) -> list[Rows]:
    """Every way in which the persons of each place can be ill."""

    def counts(n: int) -> list[tuple[int, ...]]:
        return [c for c in product(range(n + 1), repeat=len(VALUES)) if sum(c) == n]

    found = []
    for split in product(*(counts(n) for n in persons.values())):
        found.append(
            [
                (place, value)
                for place, c in zip(persons, split, strict=True)
                for value, n in zip(VALUES, c, strict=True)
                for _ in range(n)
            ]
        )
    return found


TRUTH = [("A", "HIV")] * 5 + [("B", "flu")] * 3 + [("B", "cold")] * 3
PERSONS = {"A": 5, "B": 6}
"""What the attacker knows: who is in the table, and where they live."""


def possible(folder: Path, privacy: Mapping[str, object], search: Mapping[str, object]) -> set[tuple[str, ...]]:
    """The illnesses that the people of A may have, for whoever knows the algorithm and sees the release."""
    shown = seen(folder, TRUTH, privacy, search)
    ill = [value for _, value in shown[1]]
    found = set()
    for rows in worlds(PERSONS):
        every = [value for _, value in rows]
        if any(every.count(value) < ill.count(value) for value in VALUES):
            continue  # quick: more are released than there would be
        try:
            same = seen(folder, rows, privacy, search) == shown
        except NoSolutionError:
            same = False
        if same:
            found.add(tuple(sorted(value for place, value in rows if place == "A")))
    return found


@pytest.mark.deep
def test_the_node_of_all_criteria_gives_a_value_away(tmp_path: Path) -> None:
    left = possible(tmp_path, {"k": 5, **DIVERSE}, {})
    assert left == {("HIV",) * 5}, "the attack of the issue: everybody in A has HIV, with certainty"


@pytest.mark.deep
def test_the_node_of_k_alone_does_not(tmp_path: Path) -> None:
    left = possible(tmp_path, {"k": 5, **DIVERSE, "criteria_limit": 0.5}, BY_K)
    assert left == {(value,) * 5 for value in VALUES}, "that A is missing tells that it has one value, not which"


def test_a_limit_that_is_exceeded_ends_the_run(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"k": 5, **DIVERSE, "criteria_limit": 0.4}, BY_K)
    with pytest.raises(NoSolutionError, match=r"k alone chooses \(zip = 0\), 5 rows are .* 4 are allowed"):
        sqldeid.anonymize(job, write(tmp_path, TRUTH))
    assert not (tmp_path / "out.duckdb").exists()


# ---- the node is a function of quasi-identifying values -----------------------------------------------------------

CRITERIA: dict[str, Mapping[str, object]] = {
    "distinct": DIVERSE,
    "entropy": {"l_diversity": {"column": "ill", "l": 2, "kind": "entropy"}},
    "recursive": {"l_diversity": {"column": "ill", "l": 2, "kind": "recursive", "c": 1.5}},
    "t": {"t_closeness": {"column": "ill", "t": 0.2}},
    "m": {"m_concealing": {"m": 0.3, "known": {"ill": 0.5}}},
}
AGE = {"role": "quasi-identifying", "hierarchy": {"bands": [2, 4]}}


def node_of(folder: Path, persons: Rows, ill: Sequence[str], privacy: Mapping[str, object], search: object) -> object:
    """The node that is released, or that a refusal names."""
    path = folder / "random.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, zip VARCHAR, age INTEGER, ill VARCHAR)")
        rows = [(i, *person, value) for i, (person, value) in enumerate(zip(persons, ill, strict=True))]
        insert(connection, "people", rows)
    job = job_of(folder, privacy, search, age=AGE)  # type: ignore[arg-type]
    try:
        return dict(
            sqldeid.anonymize(job, path, options=sqldeid.Options(replace=True, without_ledger=True))
            .releases["people"]
            .node
        )
    except NoSolutionError as error:
        named = re.findall(r"(\w+) = (\d+)", error.message)
        assert named, error.message
        return {name: int(level) for name, level in named}


@pytest.mark.deep
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_other_sensitive_values_never_change_the_node(tmp_path: Path, data: st.DataObject) -> None:
    (tmp_path / "zip.csv").write_text("A;*\nB;*\n")
    persons = data.draw(
        st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 7)), min_size=4, max_size=14), label="persons"
    )
    n = len(persons) - 2
    one, other = (
        ["HIV", "flu", *data.draw(st.lists(st.sampled_from(VALUES), min_size=n, max_size=n), label=label)]
        for label in ("values", "other values")
    )
    criterion = data.draw(st.sampled_from(sorted(CRITERIA)))
    method = data.draw(st.sampled_from(["frontier", "best-first", "flash", "ola", "datafly", "igreedy"]))
    losses = LOSSES[1:] if method == "ola" else LOSSES
    search = {**BY_K, "method": method, "loss": data.draw(st.sampled_from(losses))}
    limit = data.draw(st.sampled_from([0.0, 0.2]))
    form = data.draw(st.sampled_from(["drop", "blank"]))
    privacy = {"k": 2, "suppression_limit": limit, "suppression": form, **CRITERIA[criterion], "criteria_limit": 0.9}
    nodes = [node_of(tmp_path, persons, ill, privacy, search) for ill in (one, other)]
    assert nodes[0] == nodes[1]


# ---- everything follows --------------------------------------------------------------------------------------------

MIXED = [("A", "HIV")] * 5 + [("B", "flu")] * 30 + [("B", "cold")] * 30
ALLOWED = {"k": 5, **DIVERSE, "criteria_limit": 0.2}


@pytest.mark.parametrize("suppression", ["drop", "blank"])
def test_what_is_checked_told_and_proven_follows(tmp_path: Path, suppression: str) -> None:
    database = write(tmp_path, MIXED)
    job = job_of(tmp_path, {**ALLOWED, "suppression": suppression}, BY_K)
    options = sqldeid.Options(certificate=True, explain=True)
    result = sqldeid.anonymize(job, database, options=options)
    release = result.releases["people"]
    assert (release.node["zip"], release.suppressed) == (0, 5)
    assert (release.search.choose, release.search.suppressed_beyond_k) == ("by-k", 5)
    assert release.search.optimal
    assert release.search.chosen_loss == 0 < release.loss["loss"]
    assert release.certificate is not None
    assert release.certificate["suppressed"] == 0
    assert release.certificate["choose"] == "by-k"
    verified = sqldeid.verify(job, database)["people"]
    assert (verified.suppressed, verified.k) == (5, 60)  # type: ignore[union-attr]
    proof = {"people": json.loads(json.dumps(release.certificate))}
    assert verify_certificates(job, database, proof)["people"].optimal
    assert sqldeid.assess(job, database, release=True)["people"].criteria[0].met
    public = result.to_public()["releases"]["people"]
    assert "k-anonymity alone" in public["choice"]
    assert "k-anonymity alone" in public_page(result.to_dict())
    assert "by k alone" in report_page(result.to_dict())


def test_a_release_says_what_its_node_tells(tmp_path: Path) -> None:
    database = write(tmp_path, TRUTH)
    result = sqldeid.anonymize(job_of(tmp_path, {"k": 5, **DIVERSE}, {}), database)
    assert "which lose less failed one" in result.to_public()["releases"]["people"]["choice"]
    assert "which lose less failed one" in public_page(result.to_dict())
    assert "which lose less failed one" in report_page(result.to_dict())


def test_the_way_to_choose_is_noted_and_compared(tmp_path: Path) -> None:
    database = write(tmp_path, MIXED)
    sqldeid.anonymize(job_of(tmp_path, ALLOWED, BY_K), database)
    with pytest.raises(VerificationError, match=r"search\.choose"):
        sqldeid.verify(job_of(tmp_path, {"k": 5, **DIVERSE, "suppression_limit": 0.2}, {}), database)


@pytest.mark.deep
def test_a_policy_is_held_to_both_limits_and_to_the_way_it_was_chosen(tmp_path: Path) -> None:
    job, database = job_of(tmp_path, ALLOWED, BY_K), write(tmp_path, MIXED)
    first = sqldeid.anonymize(job, database).to_dict()
    options = sqldeid.Options(replace=True, without_ledger=True, policy=first)
    assert sqldeid.anonymize(job, database, options=options).releases["people"].suppressed == 5
    with pytest.raises(JobError, match=r"search\.choose|tables\.people\.search"):
        sqldeid.anonymize(job_of(tmp_path, {"k": 5, **DIVERSE}, {}), database, options=options)
    worse = write(tmp_path, [("A", "HIV")] * 30 + [("B", "flu")] * 30 + [("B", "cold")] * 30)
    with pytest.raises(VerificationError, match=r"criteria_limit = 0\.2"):
        sqldeid.anonymize(job, worse, options=options)


def test_linked_tables_share_the_way_to_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLDEID_KEY", "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0")
    database = write(tmp_path, MIXED)
    person = {"id": {"role": "identifying", "pseudonym": True}}
    base = {"source": "people", "person": "id"}
    places = {**base, "columns": {**person, "zip": ZIP}, "privacy": {"k": 5, "criteria_limit": 0.3}, "search": BY_K}
    ills = {
        **base,
        "columns": {**person, "ill": {"role": "sensitive"}},
        "link": "places",
        "privacy": {"k": 5, **DIVERSE},
    }
    ills["columns"]["one"] = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}  # type: ignore[index]
    with duckdb.connect(str(database)) as connection:
        connection.execute("ALTER TABLE people ADD COLUMN one INTEGER DEFAULT 1")
    parsed = sqldeid.Job.parse(
        {"release": {"into": "out.duckdb"}, "tables": {"places": places, "ills": ills}}, folder=tmp_path
    )
    result = sqldeid.anonymize(parsed, database, options=sqldeid.Options(certificate=True))
    release = result.releases["places"]
    assert (release.node, release.suppressed) == ({"zip": 0}, 5)
    assert (release.search.choose, release.search.suppressed_beyond_k) == ("by-k", 5)
    assert sqldeid.verify(parsed, database)["ills"].suppressed == 5  # type: ignore[union-attr]
    proofs = {name: json.loads(json.dumps(r.certificate)) for name, r in result.releases.items()}
    assert verify_certificates(parsed, database, proofs)


def test_a_tradeoff_is_of_k_alone_and_says_so(tmp_path: Path) -> None:
    job = job_of(tmp_path, ALLOWED, BY_K)
    traded = sqldeid.tradeoff(job, write(tmp_path, MIXED), Asked((2, 5), (0.0,)))["people"]
    assert [p.loss for p in traded.points] == [0, 0]
    assert any("search.choose" in warning for warning in traded.warnings)


@pytest.mark.parametrize(
    ("privacy", "search", "named"),
    [
        ({"k": 5, **DIVERSE}, BY_K, "criteria_limit: missing"),
        ({"k": 5, **DIVERSE, "criteria_limit": 0.1}, {}, "criteria_limit: goes with"),
        ({"k": 5, "criteria_limit": 0.1}, BY_K, "search.choose: "),
        ({**ALLOWED}, {**BY_K, "method": "inverse-ola", "max_loss": 0.5}, "inverse-ola"),
        ({"k": 5}, {**BY_K, "method": "epsilon-safe", "epsilon_safe": {"beta": 0.5, "epsilon": 1.0}}, "draws its node"),
        ({**ALLOWED}, {**BY_K, "method": "mondrian"}, "mondrian"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, privacy: Mapping[str, object], search: Mapping[str, object], named: str
) -> None:
    with pytest.raises(JobError, match=re.escape(named)):
        job_of(tmp_path, privacy, search)
