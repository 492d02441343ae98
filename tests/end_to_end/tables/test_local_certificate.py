"""The bound of a release by local recoding as a certificate: proven anew from the source, and refused when false."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import assume, given, settings

from sqldeid import Options, anonymize, verify_certificates
from sqldeid.errors import VerificationError
from sqldeid.tables.certificate.shares import Claimed, Leveled
from sqldeid.tables.peel import LocalProblem, partition
from tests.support.later import SAID
from tests.support.local_problems import price, problems
from tests.support.local_tables import COLUMNS, local_job, source
from tests.support.sources import SENSITIVE

ASKED: dict[str, dict[str, Any]] = {
    "k": {},
    "prec, weighted": {"search": {"loss": "prec", "weights": {"age": 2, "zip": 0.5}}},
    "l": {"privacy": {"l_diversity": {"column": "illness", "l": 3}}},
    "t": {"privacy": {"t_closeness": {"column": "alive", "t": 0.2, "distance": "ordered"}, "suppression_limit": 0.1}},
    "beta": {"privacy": {"beta_likeness": {"column": "illness", "beta": 1.0}}},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ASKED)
def test_the_bound_is_proven_anew_and_a_greater_one_refused(name: str, tmp_path: Path) -> None:
    there = source(tmp_path / "source.duckdb")
    job = local_job(tmp_path, columns={**COLUMNS, "alive": SENSITIVE}, **ASKED[name])
    found = anonymize(job, there, options=Options(certificate=True)).releases["people"]
    proof = found.certificate
    proven = verify_certificates(job, there, {"people": proof})["people"]
    assert proven.bound == pytest.approx(found.bound) and proven.combinations == len(proof["shares"][0])
    assert float(Fraction(proof["bound"])) > 0.005
    for wrong, said in _falsified(proof):
        with pytest.raises(VerificationError, match=said):
            verify_certificates(job, there, {"people": wrong})
    with pytest.raises(VerificationError, match=f"the certificate was {SAID}"):
        verify_certificates(job, there, {"people": {**proof, "format": 2}})
    with duckdb.connect(str(there)) as c:
        c.execute("DELETE FROM people WHERE id = 5")
    with pytest.raises(VerificationError, match="another number of rows"):
        verify_certificates(job, there, {"people": proof})


def _falsified(proof: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """A bound without shares; shares that are greater; one beyond suppression; a combination less; no numbers."""
    claims = []
    for change in (
        {"bound": "1/2"},
        {"shares": [[s + s // 10 + 1 for s in part] for part in proof["shares"]]},
        {"shares": [[10**12, *part[1:]] for part in proof["shares"]]},
        {"shares": [part[1:] for part in proof["shares"]]},
        {"parts": [[*part, part[0]] for part in proof["parts"]]},
        {"parts": []},
        {"shares": ["many"]},
        {"k": 3},
        {"method": "frontier"},
    ):
        claims.append({**deepcopy(proof), **change})
    rows = Fraction(proof["bound"]) * proof["rows"] / Fraction(proof["unit"])
    assert rows.denominator == 1
    said = "do not sum to|do not prove|other combinations|not a certificate|are not those of the job"
    return [(claim, said) for claim in claims]


@given(problems())
@settings(max_examples=60, deadline=None)
def test_shares_of_the_search_hold_and_those_that_ask_for_more_than_all_do_not(problem: LocalProblem) -> None:
    assume(problem.rows.sum() >= problem.k)
    found = partition(problem)
    assert found.parts == (tuple(range(len(problem.attributes))),)
    claimed = _claimed(problem, found.share[0].tolist(), found.unit)
    assert claimed.holds()
    top = [price(problem, tuple(a.height - 1 for a in problem.attributes), i) for i in range(len(problem.rows))]
    over = np.array([int(t * claimed.row) + 1 for t in top], dtype=np.int64)
    assert not replace(claimed, share=over, row=claimed.row + 1).holds()


def _claimed(problem: LocalProblem, share: list[int], unit: Fraction) -> Claimed:
    """The shares, priced row by row as fractions."""
    columns, own = [], int(1 / (unit * int(problem.rows.sum()))) if unit else 1
    weights = sum(a.weight for a in problem.attributes)
    for a, leaf in zip(problem.attributes, problem.leaf, strict=True):
        cost = []
        for x in range(a.height):
            if problem.loss == "prec":
                lost = [Fraction(x, max(a.height - 1, 1))] * len(leaf)
            else:
                lost = [Fraction(int(a.leaves[x][v]) - 1, max(int(a.leaves[-1][v]) - 1, 1)) for v in leaf]
            cost.append(np.array([int(one * a.weight / weights * own) for one in lost]))
        columns.append(Leveled(tuple(np.asarray(label)[leaf] for label in a.label), tuple(cost)))
    every = lambda members, first: np.ones(len(first), dtype=np.bool_)  # noqa: E731
    return Claimed(tuple(columns), problem.rows, np.array(share, dtype=np.int64), problem.k, own, every)
