"""`--policy` on a job that chooses by k: what the search told of the same rows, and a plain count of every class."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

import sqldeid
from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.tables.model.evaluation import allowed_rows
from tests.tables.rows.test_many_rows import HEIGHTS, Case, case, loaded

BEYOND = 0.9
"""`criteria_limit`: high, so that most of the random tables have a release."""


def drawn(seed: int, *, many: bool) -> Case:
    """A random table with a criterion beyond k; each row is a person of its own, or persons have many."""
    found = case(seed + 1 if seed % 8 == 0 else seed)
    if many:
        return found
    return replace(found, frame=found.frame.assign(person=[f"p{i}" for i in range(len(found.frame))]))


def by_k(asked: Case, *, many: bool, limit: float | None = None, beyond: float = BEYOND, **privacy: object) -> object:
    """The job of a case, its node chosen by k alone."""
    part = asked.job().model_dump(mode="json", by_alias=True, exclude_unset=True)
    table = part["tables"]["people"]
    table["search"] = {"choose": "by-k"}
    table["privacy"] |= {"criteria_limit": beyond, **privacy}
    table["privacy"] |= {} if limit is None else {"suppression_limit": limit}
    if not many:
        del table["rows"]
    return sqldeid.Job.parse(part)


def run(asked: Case, job: object, policy: object = None) -> sqldeid.Result:
    options = sqldeid.Options(replace=True, without_ledger=True, policy=policy)  # type: ignore[arg-type]
    with loaded(asked.frame) as connection:
        return sqldeid.anonymize(job, connection, options=options)  # type: ignore[arg-type]


def least(alone: Case) -> object:
    """The least loss by k alone over all nodes, cell by cell."""
    allowed = allowed_rows(alone.limit, len(alone.frame))
    nodes = list(product(*(range(h) for h in HEIGHTS.values())))
    return min(alone.loss(node) for node in nodes if alone.suppressed(node)[0] <= allowed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_a_policy_tells_what_the_search_told(seed: int, many: bool) -> None:
    asked = drawn(seed, many=many)
    alone, job = replace(asked, criterion=None), by_k(asked, many=many)
    try:
        first = run(asked, job)
    except NoSolutionError as error:
        refused = tuple(int(level) for _, level in re.findall(r"(\w) = (\d)", error.message))
        beyond = asked.suppressed(refused)[0] - alone.suppressed(refused)[0]
        assert beyond > allowed_rows(BEYOND, len(asked.frame))
        assert alone.loss(refused) == least(alone)
        return
    except JobError:
        return  # fewer persons than k, or values than l
    found = first.releases["people"]
    kept = json.loads(json.dumps(first.to_dict()))
    again = run(asked, job, kept).releases["people"]

    node = tuple(found.node[name] for name in HEIGHTS)
    few, lost = alone.suppressed(node)[0], asked.suppressed(node)[0]
    for release in (found, again):
        assert tuple(release.node[name] for name in HEIGHTS) == node
        assert (release.suppressed, release.search.suppressed_beyond_k) == (lost, lost - few)
        assert release.loss["loss"] == pytest.approx(float(asked.loss(node)))
        assert release.search.chosen_loss == pytest.approx(float(alone.loss(node)))
    assert found.search.chosen_loss == pytest.approx(float(least(alone)))
    assert again.search.chosen_loss == found.search.chosen_loss
    assert again.search.gap == again.search.chosen_loss, "nobody looked for a better node by k alone"
    assert (again.criteria, again.loss, again.risk) == (found.criteria, found.loss, found.risk)


@pytest.mark.deep
def test_a_policy_of_m_concealing_tells_what_the_search_told() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"person": [f"p{i}" for i in range(40)], "a": rng.integers(0, 8, 40), "b": "x", "c": rng.integers(0, 2, 40)}
    ).assign(s=rng.integers(0, 2, 40))
    asked = Case(frame, 2, 0.1, {"l": 2})
    job = by_k(asked, many=False, m_concealing={"m": 0.4, "known": {"s": 0.5}})
    first = run(asked, job)
    again = run(asked, job, first.to_dict()).releases["people"]
    found = first.releases["people"]
    assert found.search.suppressed_beyond_k, "m-concealing suppresses something"
    for name in ("chosen_loss", "suppressed_beyond_k"):
        assert getattr(again.search, name) == getattr(found.search, name)
    assert (again.node, again.loss, again.suppressed) == (found.node, found.loss, found.suppressed)


# ---- the shortfall --------------------------------------------------------------------------------------------------


def placed(classes: list[tuple[int, list[str], list[int]]]) -> pd.DataFrame:
    """Rows of classes that `a` tells apart: the value, and the person and the sensitive value of each row."""
    rows = [(p, a, "x", 0, s) for a, persons, values in classes for p, s in zip(persons, values, strict=True)]
    return pd.DataFrame(rows, columns=["person", "a", "b", "c", "s"])


FIRST = placed([(a, [f"{a}-{i % 6}" for i in range(12)], [0, 1] * 6) for a in (0, 2, 4, 6)])
"""Four classes of six persons with two rows each; nothing is suppressed."""

SINGLE = placed([(8, ["8-0"] * 4, [0, 1, 0, 1])])
"""Four rows of one person: by rows a class of four, by persons of one."""

ALIKE = placed([(8, [f"8-{i}" for i in range(6)], [0] * 6)])
"""Six persons with one value."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("more", "limit", "beyond", "told"),
    [
        (SINGLE, 0.0, 0.5, "4 rows of 52 would be suppressed, 4 more than .*4 rows in classes of fewer than 3 persons"),
        (
            SINGLE,
            0.05,
            0.5,
            "4 rows of 52 would be suppressed, 2 more than .*4 rows in classes of fewer than 3 persons",
        ),
        (ALIKE, 0.5, 0.0, "6 rows of 54 would be suppressed, 6 more than .*6 rows in classes that fail distinct"),
        (ALIKE, 0.5, 0.1, "6 rows of 54 would be suppressed, 1 more than .*6 rows in classes that fail distinct"),
    ],
)
def test_a_shortfall_counts_persons_and_each_limit(more: pd.DataFrame, limit: float, beyond: float, told: str) -> None:
    asked = Case(FIRST, 3, limit, {"l": 2})
    job = by_k(asked, many=True, beyond=beyond)
    kept = run(asked, job).to_dict()
    later = replace(asked, frame=pd.concat([FIRST, more], ignore_index=True))
    with pytest.raises(VerificationError, match=told) as error:
        run(later, job, kept)
    both = re.findall("classes of fewer|classes that fail", error.value.message.split("(")[1])
    assert len(both) == 1, "classes of too few persons are not told of as failing a criterion"


def test_a_shortfall_counts_persons_where_the_node_is_chosen_by_all() -> None:
    asked = Case(FIRST, 3, 0.0, {"l": 2})
    job = asked.job()
    kept = run(asked, job).to_dict()
    later = replace(asked, frame=pd.concat([FIRST, SINGLE], ignore_index=True))
    with pytest.raises(VerificationError, match=r"\(4 rows in classes of fewer than 3 persons\)"):
        run(later, job, kept)
