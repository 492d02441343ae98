"""m-concealing by local recoding: risks recounted row by row, wrong twins refused, the bound proven anew."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sqldeid import Options, anonymize, plan, verify, verify_certificates
from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.job import Job
from sqldeid.run import explain
from sqldeid.tables.local import release as local
from sqldeid.tables.peel import LocalProblem, Partition
from sqldeid.tables.verify.judgement import Judgement
from tests.support.foreign import hold_listed, running
from tests.support.ledgers import KEY
from tests.support.local_tables import COLUMNS, NAMES, local_job, lost, people, released, shown, source
from tests.support.sources import SENSITIVE

M = {"m": 0.35, "known": {"illness": 0.5}}
ASKED: dict[str, dict[str, Any]] = {
    "one column": {"m_concealing": M},
    "two, one of them always": {"m_concealing": {"m": 0.6, "known": {"illness": 0.2, "alive": 1.0}}},
    "nothing known": {"m_concealing": {"m": 0.16}},
    "sampled": {"m_concealing": {**M, "inclusion": 0.5}},
    "some suppressed": {"m_concealing": {**M, "m": 0.25}, "suppression_limit": 0.1},
    "blank": {"m_concealing": M, "k": 5, "suppression": "blank", "suppression_limit": 0.1},
    "with l": {"m_concealing": M, "l_diversity": {"column": "illness", "l": 3}},
    "by k": {"m_concealing": M, "suppression_limit": 0.05, "criteria_limit": 0.95},
}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return source(tmp_path / "source.duckdb")


def asking(folder: Path, name: str = "one column", **more: Any) -> Job:
    search = {"choose": "by-k"} if name == "by k" else {}
    return local_job(folder, privacy=ASKED[name], columns={**COLUMNS, "alive": SENSITIVE}, search=search, **more)


def greatest_risk(rows: pd.DataFrame, asked: dict[str, Any]) -> Fraction:
    """The greatest risk of a released row: each row, each state, and a count of the rows that fit it."""
    known = {name: Fraction(repr(p)) for name, p in asked.get("known", {}).items()}
    found = Fraction(0)
    told = rows[[*NAMES, *known]].map(shown)
    for _, one in told.iterrows():
        risk = Fraction(0)
        for state in product((False, True), repeat=len(known)):
            chance, fit = Fraction(1), (told[list(NAMES)] == one[list(NAMES)]).all(axis=1)
            for (name, p), knows in zip(known.items(), state, strict=True):
                chance *= p if knows else 1 - p
                fit &= (told[name] == one[name]) if knows else True
            risk += chance / int(fit.sum())
        found = max(found, risk)
    return found * Fraction(repr(float(asked.get("inclusion", 1))))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ASKED)
def test_no_released_row_is_at_a_greater_risk(name: str, there: Path, tmp_path: Path) -> None:
    job, asked = asking(tmp_path, name), ASKED[name]["m_concealing"]
    [planned] = plan(job, there)
    with running() as ran:
        found = anonymize(job, there, options=Options(certificate=True)).releases["people"]
    assert ("M-concealing" in dict(planned.facts())) and found.criteria[-1].name == "m-concealing"
    hold_listed(explain(planned, job, there).statements or (), ran)
    rows = released(tmp_path)
    assert len(rows) == found.released and found.classes > 1
    counted = greatest_risk(rows, asked)
    assert counted <= Fraction(repr(asked["m"]))
    assert found.criteria[-1].achieved == pytest.approx(float(counted))
    assert found.loss["loss"] == pytest.approx(lost(rows, people(there)))
    assert 0 < found.bound <= found.loss["loss"]
    checked = verify(job, there)["people"]
    assert checked.criteria == found.criteria[1:] and checked.released == found.released
    proven = verify_certificates(job, there, {"people": found.certificate})["people"]
    assert proven.bound == pytest.approx(found.bound)
    greater = {**found.certificate, "shares": [[s + s // 10 + 1 for s in p] for p in found.certificate["shares"]]}
    with pytest.raises(VerificationError):
        verify_certificates(job, there, {"people": greater})


def test_it_loses_more_than_k_alone_and_its_bound_is_no_less(there: Path, tmp_path: Path) -> None:
    asked = anonymize(asking(tmp_path), there).releases["people"]
    alone = anonymize(local_job(tmp_path, {"into": "k.duckdb"}), there).releases["people"]
    assert alone.loss["loss"] < asked.loss["loss"]
    assert alone.bound <= asked.bound


def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that forms classes by k alone."""
    search = local.partition

    def erring(problem: LocalProblem) -> Partition:
        return search(problem.k_alone)

    monkeypatch.setattr(local, "partition", erring)


def test_a_release_with_rows_above_m_is_not_published(
    there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful(monkeypatch)
    with pytest.raises(VerificationError, match=r"failed its re-check: .*m-concealing"):
        anonymize(asking(tmp_path), there)
    assert not (tmp_path / "out.duckdb").exists()


def test_one_class_with_one_row_above_m_is_refused_once_it_is_published(
    there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the smallest m that the release meets is asked for as a little less, and nobody looks but `verify`."""
    found = anonymize(asking(tmp_path), there).releases["people"]
    rows, most = released(tmp_path), found.criteria[-1].achieved
    twin = {"m_concealing": {**M, "m": round(most - 1e-6, 9)}}
    job = local_job(tmp_path, privacy=twin, columns={**COLUMNS, "alive": SENSITIVE})
    search = local.partition

    def erring(problem: LocalProblem) -> Partition:
        assert problem.concealed is not None
        hidden = replace(problem.concealed, criterion=replace(problem.concealed.criterion, m=Fraction("0.35")))
        return search(replace(problem, concealed=hidden))

    with monkeypatch.context() as patched:
        patched.setattr(local, "partition", erring)
        with pytest.raises(VerificationError, match=r"re-check: \d+ class(es)? fails? m-concealing"):
            anonymize(job, there, options=Options(replace=True))
        patched.setattr(Judgement, "_concealed", lambda _: ())
        anonymize(job, there, options=Options(replace=True))
    assert released(tmp_path).equals(rows)
    with pytest.raises(VerificationError, match=r"re-check: \d+ class(es)? fails? m-concealing"):
        verify(job, there)


def test_what_no_class_can_meet_is_told(there: Path, tmp_path: Path) -> None:
    for m in (0.001, 0.0001):
        with pytest.raises(NoSolutionError):
            anonymize(local_job(tmp_path, privacy={"m_concealing": {"m": m}}), there)


def test_a_ledger_is_refused_before_classes_are_formed(
    there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "partition", None)
    (tmp_path / "key").write_text(KEY)
    with pytest.raises(JobError, match="m_concealing: the ledger does not keep it"):
        anonymize(
            asking(tmp_path), there, options=Options(ledger=tmp_path / "ledger.duckdb", key_file=tmp_path / "key")
        )


QIS = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]


@pytest.mark.deep
def test_what_adult_loses_is_what_the_page_says(shared_data: Path, tmp_path: Path) -> None:
    adult = shared_data / "adult"
    columns: dict[str, Any] = {"occupation": SENSITIVE}
    for name in QIS:
        columns[name] = {"role": "quasi-identifying", "hierarchy": str(adult / f"adult_hierarchy_{name}.csv")}
    asked = {"m": 0.1, "known": {"occupation": 0.5}}
    table = {
        "rows_are_persons": True,
        "source": "adult",
        "columns": columns,
        "privacy": {"k": 5, "suppression_limit": 0.05, "m_concealing": asked},
        "search": {"method": "local"},
        "attacks": False,
    }
    job = Job.parse({"release": {"into": "out.duckdb"}, "tables": {"adult": table}}, folder=tmp_path)
    found = anonymize(job, adult / "adult.csv").releases["adult"]
    page = (Path(__file__).parents[3] / "docs" / "local-recoding.md").read_text()
    loss, bound = f"{found.loss['loss']:.4f}", f"{found.bound:.4f}"
    assert f"probability 0.5) {loss} is lost" in page
    assert f"can lose less\nthan {bound};" in page
    assert not found.search["stopped"]
    rows = released(tmp_path, "release.adult")
    fit = rows.groupby(QIS, dropna=False).occupation.transform("size")
    fit_known = rows.groupby([*QIS, "occupation"], dropna=False).occupation.transform("size")
    assert (0.5 / fit + 0.5 / fit_known).max() <= 0.1 + 1e-12
    assert len(rows) >= 0.95 * found.rows
