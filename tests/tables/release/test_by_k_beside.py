"""A node chosen by k with a ledger, and under `evaluate`: the node, the loss and the rows that a plain count finds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import sqldeid
from sqldeid.errors import JobError, NoSolutionError
from tests.support.ledgers import KEY
from tests.tables.release.test_policy_by_k import by_k, drawn, least
from tests.tables.rows.test_many_rows import HEIGHTS, Case, loaded


def load(folder: Path, asked: Case, policy: object = None) -> sqldeid.Result:
    """One load against the folder's ledger."""
    options = sqldeid.Options(
        replace=True,
        ledger=folder / "ledger.duckdb",
        key_file=folder / "key",
        policy=policy,  # type: ignore[arg-type]
    )
    with loaded(asked.frame) as connection:
        return sqldeid.anonymize(by_k(asked, many=False), connection, options=options)  # type: ignore[arg-type]


def holds(release: object, asked: Case) -> None:
    """The node, losses and rows of a release with a ledger are those that a count of every class finds."""
    alone = replace(asked, criterion=None)
    node = tuple(release.node[name] for name in HEIGHTS)  # type: ignore[attr-defined]
    few, lost = alone.suppressed(node)[0], asked.suppressed(node)[0]
    assert release.search.chosen_loss == pytest.approx(float(alone.loss(node)))  # type: ignore[attr-defined]
    assert release.search.suppressed_beyond_k == lost - few  # type: ignore[attr-defined]
    assert release.suppressed == lost  # type: ignore[attr-defined]
    held = release.ledger["held_back"]  # type: ignore[attr-defined]
    assert release.released == len(asked.frame) - lost - held  # type: ignore[attr-defined]


@pytest.mark.deep
@pytest.mark.parametrize("seed", [2, 4, 6])
def test_a_ledger_leaves_the_node_and_its_account(tmp_path: Path, seed: int) -> None:
    (tmp_path / "key").write_text(KEY)
    asked = drawn(seed, many=False)
    first = load(tmp_path, asked)
    found = first.releases["people"]
    holds(found, asked)
    assert found.search.chosen_loss == pytest.approx(float(least(replace(asked, criterion=None))))
    new = asked.frame.tail(1).assign(person="new")
    later = replace(asked, frame=pd.concat([asked.frame, new], ignore_index=True))
    again = load(tmp_path, later, first.to_dict()).releases["people"]
    assert again.node == found.node
    holds(again, later)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [2, 4, 5])
def test_evaluate_measures_the_release_or_is_refused_as_it_is(seed: int) -> None:
    pytest.importorskip("sklearn")
    asked = drawn(seed, many=False)
    job = by_k(asked, many=False)
    seen: list[object] = []
    for command in ("anonymize", "evaluate"):
        with loaded(asked.frame) as connection:
            connection.execute("CREATE TABLE held AS SELECT * REPLACE ('held ' || person AS person) FROM people")
            try:
                seen.append(_measured(command, job, connection))
            except NoSolutionError as error:
                assert error.key == "tables.people.privacy.criteria_limit"
                assert re.search(r"Raise privacy\.criteria_limit or ask for less", error.message)
                seen.append(error.message)
            except JobError as error:
                assert error.key, error.message
                seen.append(error.message)
    assert seen[0] == seen[1]


def _measured(command: str, job: object, connection: duckdb.DuckDBPyConnection) -> object:
    if command == "anonymize":
        found = sqldeid.anonymize(job, connection).releases["people"]  # type: ignore[arg-type]
        return found.node, found.suppressed, found.k, found.loss
    told = sqldeid.evaluate(job, connection, "s", test="held", originals=False)  # type: ignore[arg-type]
    return told.node, told.suppressed, told.k, told.loss
