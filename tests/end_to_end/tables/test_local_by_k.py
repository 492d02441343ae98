"""Local recoding with levels chosen by k alone: the release by k, without its classes that fail another criterion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sqldeid import Asked, Options, anonymize, assess, plan, tradeoff, verify, verify_certificates
from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.job import Job
from sqldeid.report.page import public_page
from sqldeid.tables.local import remade
from sqldeid.tables.local.layers import Layers, layers_of
from sqldeid.tables.local.remade import put_assigned
from sqldeid.tables.peel import partition
from tests.support.local_tables import COLUMNS, NAMES, ROWS, SOURCE, histograms, local_job, released, shown, source
from tests.support.pages import text_of
from tests.support.sources import SENSITIVE

L = {"column": "illness", "l": 3}
BY_K = {"choose": "by-k"}


def by_k(folder: Path, into: str = "out.duckdb", limit: float = 0.5, **privacy: Any) -> Job:
    asked = {"k": 4, "l_diversity": L, "criteria_limit": limit, "suppression_limit": 0.05, **privacy}
    return local_job(folder, {"into": into}, privacy=asked, search=BY_K)


def alone(folder: Path, into: str = "out.duckdb") -> Job:
    return local_job(folder, {"into": into}, privacy={"k": 4, "suppression_limit": 0.05})


def labels(rows: Any) -> dict[str, tuple[str, ...]]:
    return {row.code: tuple(shown(row[n]) for n in NAMES) for _, row in rows.iterrows()}


def without_failing(rows: Any) -> dict[str, tuple[str, ...]]:
    """The rows whose class shows three illnesses, recounted in pandas."""
    good = {key for key, counted in histograms(rows, "illness").iterrows() if (counted > 0).sum() >= 3}
    return {code: key for code, key in labels(rows).items() if key in good}


def test_it_is_the_release_by_k_without_the_classes_that_fail(tmp_path: Path) -> None:
    there = source(tmp_path / "source.duckdb")
    whole = anonymize(alone(tmp_path), there).releases["people"]
    wanted = without_failing(released(tmp_path))
    again = Options(replace=True, certificate=True, without_ledger=True)
    result = anonymize(by_k(tmp_path), there, options=again)
    found = result.releases["people"]
    assert labels(released(tmp_path)) == wanted and 0 < len(wanted) < ROWS
    assert found.bound == whole.bound <= whole.loss["loss"] < found.loss["loss"]
    assert found.suppressed == ROWS - len(wanted) == whole.suppressed + found.search["suppressed_beyond_k"]
    assert found.criteria[1].achieved >= 3
    checked = verify(by_k(tmp_path), there)["people"]
    assert (checked.released, checked.suppressed, checked.k) == (len(wanted), found.suppressed, found.k)
    assert assess(by_k(tmp_path), there, release=True)["people"].class_sizes == found.risk["release"].class_sizes
    proven = verify_certificates(by_k(tmp_path), there, {"people": found.certificate})["people"]
    assert proven.bound == pytest.approx(found.bound)
    assert "levels were chosen by quasi-identifying values and k alone" in found.limits
    assert "chosen by quasi-identifying values and k alone" in text_of(public_page(result.to_public()))
    assert "suppressed_beyond_k" not in str(result.to_public())
    assert ("Levels", "by k alone; at most 50 % more for other criteria") in list(
        plan(by_k(tmp_path), there)[0].facts()
    )
    with pytest.raises(VerificationError, match="more rows are missing than may be suppressed"):
        verify(by_k(tmp_path, limit=0.01), there)


def test_levels_do_not_depend_on_sensitive_values(tmp_path: Path) -> None:
    """Whoever is released under two lists of illnesses has one label; by all criteria together that is not so."""
    found = []
    for job in (by_k, lambda folder: local_job(folder, privacy={"k": 4, "l_diversity": L, "suppression_limit": 0.05})):
        of_lists = []
        for change in ("i * i + i // 5", "i * 3 + i // 7"):
            folder = tmp_path / f"{len(found)}-{len(of_lists)}"
            folder.mkdir()
            anonymize(job(folder), source(folder / "source.duckdb", text=SOURCE.replace("i * i + i // 5", change)))
            of_lists.append(labels(released(folder)))
        both = of_lists[0].keys() & of_lists[1].keys()
        assert len(both) > ROWS / 4
        found.append(all(of_lists[0][code] == of_lists[1][code] for code in both))
    assert found == [True, False]


def test_what_fails_is_blanked_where_it_meets_all_criteria_together(tmp_path: Path) -> None:
    there = source(tmp_path / "source.duckdb")
    anonymize(by_k(tmp_path), there)
    dropped = labels(released(tmp_path))
    job = by_k(tmp_path, "blank.duckdb", suppression="blank")
    found = anonymize(job, there).releases["people"]
    with_blanks = labels(released_in(tmp_path, "blank.duckdb"))
    assert len(with_blanks) == ROWS and found.suppressed == 0
    assert {c: key for c, key in with_blanks.items() if c in dropped and key != ("*", "*", "*")} == {
        c: key for c, key in dropped.items() if key != ("*", "*", "*")
    }
    assert {with_blanks[c] for c in with_blanks.keys() - dropped.keys()} == {("*", "*", "*")}
    assert verify(job, there)["people"].released == ROWS


def released_in(folder: Path, name: str) -> Any:
    (folder / name).replace(folder / "out.duckdb")
    try:
        return released(folder)
    finally:
        (folder / "out.duckdb").replace(folder / name)


def test_more_than_the_limit_is_refused_and_so_is_a_ledger(tmp_path: Path) -> None:
    there = source(tmp_path / "source.duckdb")
    with pytest.raises(NoSolutionError, match="fail another criterion; 2 may be suppressed for that"):
        anonymize(by_k(tmp_path, limit=0.01), there)
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    held = Options(ledger=tmp_path / "ledger.duckdb", key_file=tmp_path / "key")
    with pytest.raises(JobError, match='with method = "local" all criteria decide who stays'):
        anonymize(by_k(tmp_path), there, options=held)
    assert not (tmp_path / "ledger.duckdb").exists()


def test_other_k_and_limits_are_told_by_k_alone(tmp_path: Path) -> None:
    there, asked = source(tmp_path / "source.duckdb"), Asked((4, 9), (0.0, 0.1))
    by, of_k = (tradeoff(job, there, asked)["people"] for job in (by_k(tmp_path), alone(tmp_path)))
    assert [(p.loss, p.bound, p.suppressed) for p in by.local] == [(p.loss, p.bound, p.suppressed) for p in of_k.local]
    told = anonymize(by_k(tmp_path), there, options=Options(explain=True)).releases["people"].tradeoff
    assert told.local and not any(p.loss is None for p in told.local)


def test_with_k_alone_there_is_nothing_to_choose(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"search.choose"):
        local_job(tmp_path, privacy={"k": 4}, search=BY_K, columns={**COLUMNS, "alive": SENSITIVE})


@pytest.mark.usefixtures("control_groups")
def test_the_release_that_is_attacked_is_made_by_k_alone_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes of k of those who were not held out, without those that show fewer than three illnesses."""
    made: list[Layers] = []

    def put(planned: Any, found: Any, layers: Layers, bench: Any) -> Any:
        made.append(layers)
        return put_assigned(planned, found, layers, bench)

    monkeypatch.setattr(remade, "put_assigned", put)
    anonymize(by_k(tmp_path, limit=0.7), source(tmp_path / "source.duckdb"))
    problem, layers = made[0].problem, made[0]
    assert problem.rows.sum() == round(0.8 * ROWS)
    chosen = layers_of(problem, partition(problem.k_alone), blank=False)
    expected, (judged,) = np.zeros_like(layers.released), problem.criteria
    for owner in range(chosen.owner.max() + 1):
        here = np.flatnonzero(chosen.owner == owner)
        expected[here] = len(np.unique(judged.value[np.isin(judged.combination, here)])) >= 3
    assert 0 < expected.sum() < len(expected)
    assert (layers.released == expected).all()
    assert (layers.levels[:, expected] == chosen.levels[:, expected]).all()
