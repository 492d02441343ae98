"""A certificate holds on its own source alone: every part altered, and every change of the table, is caught."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

import sqldeid
from sqldeid.tables.model.loss import LOSSES
from tests.support.files import write

ROWS = 400


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return write(
        tmp_path / "people.duckdb",
        f"""CREATE TABLE people AS
            SELECT i AS id, (i * 37) % 80 + (i % 7) AS age,
                   CASE WHEN i % 11 = 0 THEN NULL WHEN i % 3 = 0 THEN 'F' ELSE 'M' END AS sex,
                   lpad(((i * i) % 97 * 31)::VARCHAR, 5, '0') AS zip
            FROM range({ROWS}) t(i)""",
    )


def job_of(folder: Path, *, k: int = 3, limit: float = 0.05, loss: str = "loss", **search: object) -> sqldeid.Job:
    return sqldeid.Job.parse(
        {
            "release": {"into": "out.duckdb"},
            "tables": {
                "people": {
                    "source": "people",
                    "person": "id",
                    "columns": {
                        "age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}},
                        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
                        "zip": {"role": "quasi-identifying", "hierarchy": {"mask": [1, 2, 3, 4]}},
                    },
                    "privacy": {"k": k, "suppression_limit": limit},
                    "search": {"loss": loss, **search},
                }
            },
        },
        folder=folder,
    )


def certificate(job: sqldeid.Job, database: Path) -> dict[str, object]:
    options = sqldeid.Options(certificate=True, replace=True, without_ledger=True)
    release = sqldeid.anonymize(job, database, options=options).releases["people"]
    assert release.warnings == ()
    found: dict[str, object] = json.loads(json.dumps(release.certificate))
    return found


def check(job: sqldeid.Job, database: Path, proof: object) -> object:
    return sqldeid.verify_certificates(job, database, {"people": proof})["people"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["frontier", "best-first", "flash"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_certificate_holds(database: Path, loss: str, method: str) -> None:
    job = job_of(database.parent, loss=loss, method=method)
    proof = certificate(job, database)
    proven = sqldeid.verify_certificates(job, database, {"people": proof})["people"]
    assert proven.optimal
    assert proven.bound == proven.value
    assert list(proven.node.values()) == proof["node"]


@pytest.mark.deep
def test_every_altered_part_is_caught(database: Path) -> None:
    job = job_of(database.parent)
    proof = certificate(job, database)
    altered = {
        "format": 2,
        "release": "others",
        "columns": {**proof["columns"], "age": {"hierarchy": "bands 5, 10, 20", "height": 4}},  # type: ignore[dict-item]
        "weights": {"age": "2", "sex": "1", "zip": "1"},
        "k": 2,
        "suppression_limit": 0.1,
        "loss": "prec",
        "rows": ROWS + 1,
        "node": [0, 0, 0],
        "suppressed": int(str(proof["suppressed"])) + 1,
        "value": "1/3",
        "bound": "1/1000",
        "optimal": False,
    }
    for key, value in altered.items():
        assert proof[key] != value
        if key == "optimal":  # a weaker claim than what is proven: it holds, and says less
            assert not check(job, database, {**proof, key: value}).optimal  # type: ignore[attr-defined]
            continue
        with pytest.raises(sqldeid.VerificationError):
            check(job, database, {**proof, key: value})
    for key in altered:
        without = {k: v for k, v in proof.items() if k != key}
        with pytest.raises(sqldeid.VerificationError):
            check(job, database, without)


@pytest.mark.deep
def test_every_altered_node_and_step_is_caught(database: Path) -> None:
    job = job_of(database.parent)
    proof = certificate(job, database)
    nodes: list[list[object]] = proof["nodes"]  # type: ignore[assignment]
    tree: list[list[object]] = proof["tree"]  # type: ignore[assignment]
    for i, (node, failing) in enumerate(nodes):
        wrong = copy.deepcopy(proof)
        wrong["nodes"][i] = [node, failing + 1]  # type: ignore[index,operator]
        with pytest.raises(sqldeid.VerificationError):
            check(job, database, wrong)
    for i in range(len(tree)):
        wrong = copy.deepcopy(proof)
        del wrong["tree"][i]  # type: ignore[attr-defined]
        with pytest.raises(sqldeid.VerificationError):
            check(job, database, wrong)
    for broken in (
        [],
        [["B", -1]],
        [["N", 0]],
        [[0, 99], ["B", -1], ["B", -1]],
        [["X", 0]],
        "tree",
        [[0]],
        [[0, None]],
    ):
        with pytest.raises(sqldeid.VerificationError):
            check(job, database, {**proof, "tree": broken})


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM people WHERE id = 5",
        "UPDATE people SET age = age + 20 WHERE id < 40",
        "UPDATE people SET sex = NULL WHERE id BETWEEN 20 AND 60",
        "UPDATE people SET zip = '00000' WHERE id % 9 = 0",
    ],
)
def test_a_changed_table_is_caught(database: Path, change: str) -> None:
    job = job_of(database.parent)
    proof = certificate(job, database)
    write(database, change)
    with pytest.raises(sqldeid.VerificationError):
        check(job, database, proof)


def test_a_limited_search_certifies_its_gap(database: Path) -> None:
    job = job_of(database.parent, checks_limit=2)
    options = sqldeid.Options(certificate=True, replace=True, without_ledger=True)
    release = sqldeid.anonymize(job, database, options=options).releases["people"]
    assert not release.search.optimal
    assert release.search.gap > 0
    proven = sqldeid.verify_certificates(job, database, {"people": json.loads(json.dumps(release.certificate))})
    assert not proven["people"].optimal
    assert proven["people"].value - proven["people"].bound == pytest.approx(release.search.gap, abs=1e-12)


def test_a_baseline_has_no_certificate(database: Path) -> None:
    job = job_of(database.parent, method="datafly")
    release = sqldeid.anonymize(job, database, options=sqldeid.Options(certificate=True)).releases["people"]
    assert release.certificate is None
    assert any("no certificate" in warning for warning in release.warnings)
