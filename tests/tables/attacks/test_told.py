"""Of attacks nothing is public, and few persons are told as few."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.attacked import ATTACKS, none_made, percent
from sqldeid.job import Job
from sqldeid.report.attacked import NAMES, TITLE, WHAT
from sqldeid.report.attacked_shares import composed, hit
from sqldeid.report.attacked_shares import percent as percent_told
from sqldeid.report.page import public_page, report_page
from sqldeid.report.words import FEW


def table(**columns: Any) -> dict[str, Any]:
    asked = {"id": {"role": "identifying"}, "ill": {"role": "sensitive"}, **columns}
    return {
        "source": "p",
        "person": "id",
        "columns": asked,
        "privacy": {"k": 5, "l_diversity": {"column": "ill", "l": 2}},
    }


@pytest.mark.deep
@pytest.mark.usefixtures("control_groups")
def test_nothing_of_an_attack_is_public() -> None:
    """All attacks are made here, and each stands in the holder's page; in the public file and page there is none."""
    known = {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}}
    sex = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    with duckdb.connect() as c:
        c.execute(
            "CREATE TABLE p AS SELECT i AS id, i * 7 % 40 AS age, i * 3 % 23 AS los, i // 40 % 2 AS sex, "
            "i * i % 7 AS ill FROM RANGE(400) AS r(i)"
        )
        result = sqldeid.anonymize(Job.parse({"tables": {"a": table(age=known, sex=sex), "b": table(los=known)}}), c)
    told = result.releases["a"].attacks
    assert not {one.attack for one in told.left_out} & (set(ATTACKS) - {"downcoding"})
    found, public = json.dumps(result.to_dict(), default=str), json.dumps(result.to_public(), default=str)
    page, shown = report_page(json.loads(found)), public_page(result.to_public())
    for name in ATTACKS:
        assert f'"{name}"' in found and NAMES[name] in page
        assert f'"{name}"' not in public and NAMES[name] not in shown
    for words in (TITLE, WHAT):
        assert words in page and words not in shown and words not in public
    assert '"attacks"' in found and '"attacks"' not in public
    for line, words in told.facts():
        assert words not in public and words not in shown, line


def share(value: float, of: int, *, exact: bool = False) -> dict[str, Any]:
    return {"value": value, "low": value / 2, "high": value, "of": of, "exact": exact}


@pytest.mark.parametrize(
    ("hits", "of", "said"), [(3, 40, f"fewer than {FEW} persons"), (20, 40, "50.0 %"), (5, FEW - 1, "")]
)
def test_few_who_are_hit_are_told_as_few(hits: int, of: int, said: str) -> None:
    group = {"column": "sex", "value": "f", "attack": "singling_out", "main": share(hits / of, of)}
    told = [words for _, words in hit({"groups": [group]})]
    assert [words.startswith(said) for words in told] == ([True] if said else [])
    assert f"{100 * 3 / 40:.1f}" not in "".join(told)


def test_few_candidates_are_told_as_few() -> None:
    both = {"alone": share(3 / 400, 400, exact=True), "below": share(0.0, 400, exact=True)}
    found = {"beside": [{"release": "b", "persons": 400, "smallest": 1, **both, "columns": []}]}
    [alone, below] = composed(found)
    assert f"has fewer than {FEW}" in alone[0] and alone[1] == f"fewer than {FEW} rows" and below[1] == "none"


def test_where_nothing_is_attacked_one_line_says_why() -> None:
    most = "classes count persons, and the attacks count rows"
    none = none_made(most, {"composition": "no other table is made with it"})
    assert list(none.facts()) == [("Attacks", f"none made: {most}; no other table is made with it")]


def test_a_share_of_not_all_is_not_told_as_all() -> None:
    """Beside l = 2 stood that no value has more than 100 % of its class."""
    assert [percent(share) for share in (0, 5e-5, 0.07, 0.994, 1)] == ["0", "< 0.01", "7", "99", "100"]
    assert [percent(share) for share in (0.9951, 0.9996, 0.99999)] == ["99.5", "99.96", "> 99.99"]
    assert [percent_told(share) for share in (0.9951, 0.9996, 1)] == ["99.5 %", "more than 99.9 %", "100.0 %"]
