"""The trade-off's answers are those of a search for each pair alone, and its histograms those of pandas."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import sqldeid
from sqldeid.engine.base import Engine
from sqldeid.engine.opening import Settings
from sqldeid.errors import JobError, NoSolutionError
from sqldeid.job import Job
from sqldeid.report.tradeoff import print_tradeoff, tradeoff_of, tradeoff_page
from sqldeid.run import reading
from sqldeid.tables.check.thresholds import Thresholds
from sqldeid.tables.fold.fold import fold
from sqldeid.tables.local.plan import plan as plan_local
from sqldeid.tables.local.tradeoff import Pairs, trade_local
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release import tradeoff
from sqldeid.tables.release.node import checker_of
from sqldeid.tables.release.release import Listener
from sqldeid.tables.release.tradeoff import Asked, Trading, trade, trade_folded, with_k
from sqldeid.tables.search import Problem, search

KS, LIMITS = (1, 2, 4, 9), (0.0, 0.03, 0.2)


def made(folder: Path, seed: int, rows: int = 240) -> Path:
    random = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "id": range(rows),
            "age": random.integers(18, 70, rows),
            "select": random.choice(["a1", "a2", "b1", "b2", None], rows, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "sex": random.choice(["f", "m"], rows),
            "ill": random.choice(["x", "y", "z", None], rows, p=[0.5, 0.3, 0.15, 0.05]),
        }
    )
    path = folder / f"people{seed}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", people)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return path


def job(loss: str = "loss", **privacy: Any) -> Job:
    quasi = "quasi-identifying"
    return Job.parse(
        {
            "release": {"into": "out.duckdb"},
            "tables": {
                "people": {
                    "source": "people",
                    "person": "id",
                    "columns": {
                        "age": {"role": quasi, "hierarchy": {"bands": [5, 10, 40]}},
                        "select": {"role": quasi, "hierarchy": {"keep_first": [1]}},
                        "sex": {"role": quasi, "hierarchy": {"suppress": True}},
                        "ill": {"role": "sensitive"},
                    },
                    "privacy": {"k": 3, **privacy},
                    "search": {"loss": loss},
                }
            },
        }
    )


@contextmanager
def planned(path: Path, asked: Job) -> Iterator[tuple[TablePlan, Engine]]:
    with reading(path, path, Settings()) as engine:
        yield planning.plan("people", asked.tables["people"], engine, Path()), engine


def alone(plan: TablePlan, engine: Engine, k: int, limit: float) -> tuple[Node, float, int] | None:
    """One search for one pair, with nothing learnt before."""
    own = with_k(plan, k)
    folded = fold(own, engine)
    allowed = allowed_rows(limit, folded.rows)
    checker = checker_of(own, folded, engine)
    checker.allowed = allowed
    marginals = [c.marginal for c in folded.columns]
    loss = make_loss(plan.search.loss, marginals, folded.rows)
    try:
        outcome = search("frontier", Problem(plan.lattice, marginals, folded.rows, allowed, loss, checker))
    except NoSolutionError:
        return None
    return outcome.node, outcome.loss, outcome.evaluation.failing


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("seed", "loss", "privacy"),
    [
        (1, "loss", {}),
        (2, "prec", {}),
        (3, "dm_star", {}),
        (4, "entropy", {}),
        (5, "loss", {"l_diversity": {"column": "ill", "l": 2, "kind": "entropy"}}),
        (6, "loss", {"l_diversity": {"column": "ill", "l": 2}, "t_closeness": {"column": "ill", "t": 0.3}}),
    ],
)
def test_every_pair_is_what_a_search_alone_finds(tmp_path: Path, seed: int, loss: str, privacy: dict[str, Any]) -> None:
    with planned(made(tmp_path, seed), job(loss, **privacy)) as (plan, engine):
        traded = trade(plan, engine, Asked(KS, LIMITS), Listener())
        assert [(p.k, p.suppression_limit) for p in traded.points] == [(k, x) for k in KS for x in LIMITS]
        for point in traded.points:
            expected = alone(plan, engine, point.k, point.suppression_limit)
            found = point.node and (tuple(point.node.values()), point.loss, point.suppressed)
            assert found == expected and point.optimal
        assert traded.checks <= (1 if not privacy else len(KS)) * traded.lattice_size


def test_a_weaker_pair_never_loses_more_where_time_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tradeoff, "_share", lambda *_: 0.0)  # the least share, 10 ms, is enough on a quick machine
    with planned(made(tmp_path, 9, rows=2000), job()) as (plan, engine):
        trading = Trading(plan, fold(plan, engine), engine, Listener())
        points = trade_folded(trading, Asked(KS, LIMITS), seconds=1e-9).points
    assert not all(p.optimal for p in points)
    for p in points:
        stricter = [q.loss for q in points if q.k >= p.k and q.suppression_limit <= p.suppression_limit and q.loss]
        assert p.loss is not None and all(p.loss <= loss + 1e-12 for loss in stricter)
        assert p.bound is not None and p.bound <= p.loss


@pytest.mark.deep
def test_the_greatest_k_is_what_inverse_ola_finds(tmp_path: Path) -> None:
    path = made(tmp_path, 7)
    with planned(path, job()) as (plan, engine):
        traded = trade(plan, engine, Asked((2,), LIMITS, (0.1, 0.4, 1.0)), Listener())
    for found in traded.inverse:
        alone_ = job(suppression_limit=found.suppression_limit).model_dump(by_alias=True, exclude_unset=True)
        alone_["tables"]["people"]["privacy"]["k"] = 1
        alone_["tables"]["people"]["search"] = {"method": "inverse-ola", "max_loss": found.max_loss}
        result = sqldeid.anonymize(
            Job.parse(alone_, folder=tmp_path), path, options=sqldeid.Options(replace=True, without_ledger=True)
        )
        assert result.releases["people"].criteria[0].asked == found.k
        assert result.releases["people"].node == found.node


def test_one_histogram_answers_for_every_k(tmp_path: Path) -> None:
    path = made(tmp_path, 8)
    with duckdb.connect(str(path), read_only=True) as connection:
        people = connection.sql("SELECT * FROM people").df()
    with planned(path, job()) as (plan, engine):
        checker = replace(checker_of(plan, fold(plan, engine), engine), allowed=len(people))
        answers = Thresholds(checker, (2, 3, 50), len(people))
        node = (1, 0, 1)
        sizes = people.assign(band=people.age // 5).groupby(["band", "select"], dropna=False).size()
        for k in (2, 3, 50):
            found = answers.at(k, [node, plan.lattice.top, node])
            assert found[0] == found[2]
            assert (found[0].failing, found[0].classes) == (sizes[sizes < k].sum(), len(sizes))
            assert found[0].squares == (sizes**2).sum()
            assert found[:2] == replace(checker, k=k)([node, plan.lattice.top])
        assert answers.checks == 2


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (lambda: Asked((), (0.0,)), "--k"),
        (lambda: Asked((0,), (0.0,)), "--k"),
        (lambda: Asked((2,), (1.5,)), "--limit"),
        (lambda: Asked((2,), (float("nan"),)), "--limit"),
        (lambda: Asked((2,), (0.0,), (-1.0,)), "--max-loss"),
    ],
)
def test_pairs_that_cannot_be_are_refused(asked: Any, key: str) -> None:
    with pytest.raises(JobError) as refused:
        asked()
    assert refused.value.key == key


@pytest.mark.deep
def test_local_recoding_stands_beside_one_node_for_all(tmp_path: Path) -> None:
    """Each pair by local recoding is what a release loses, and its bound; the rest stays as it was."""
    path = made(tmp_path, 3)
    for own in ({}, {"l_diversity": {"column": "ill", "l": 2}}):
        asked = job(**own)
        alone = sqldeid.tradeoff(asked, path, Asked((3, 9), (0.0, 0.2)))["people"]
        both = sqldeid.tradeoff(asked, path, Asked((3, 9), (0.0, 0.2), local=True))["people"]
        assert alone.local == () and [p.loss for p in both.points] == [p.loss for p in alone.points]
        assert [(p.k, p.suppression_limit) for p in both.local] == [(3, 0.0), (3, 0.2), (9, 0.0), (9, 0.2)]
        for point, whole in zip(both.local, both.points, strict=True):
            content = asked.model_dump(mode="json", exclude_unset=True)
            table = content["tables"]["people"]
            table["privacy"] |= {"k": point.k, "suppression_limit": point.suppression_limit}
            table["search"] = {"method": "local"}
            content["release"] = {"into": f"{point.k}_{point.suppression_limit}_{len(own)}.duckdb"}
            found = sqldeid.anonymize(Job.parse(content, folder=tmp_path), path).releases["people"]
            assert point.bound == pytest.approx(found.bound)
            assert point.loss is not None and whole.loss is not None
            assert found.loss["loss"] - 1e-12 <= point.loss <= whole.loss + 1e-12
            if point.suppression_limit == 0.2:
                assert (point.loss, point.suppressed) == (pytest.approx(found.loss["loss"]), found.suppressed)


def test_local_recoding_is_compared_where_the_job_asks_for_it(tmp_path: Path) -> None:
    path, content = made(tmp_path, 4), job().model_dump(mode="json", exclude_unset=True)
    content["tables"]["people"]["search"] = {"method": "local"}
    found = sqldeid.tradeoff(Job.parse(content), path, Asked((4,), (0.05,)))["people"]
    assert len(found.local) == 1 and found.points[0].optimal
    with pytest.raises(JobError, match=r"search.loss: .*whole columns at one level"):
        sqldeid.tradeoff(job("entropy"), path, Asked((4,), (0.05,), local=True))


def test_both_families_are_shown_together(tmp_path: Path) -> None:
    found = sqldeid.tradeoff(job(), made(tmp_path, 5), Asked((3, 9), (0.0, 0.2), local=True))
    with io.StringIO() as written:
        print_tradeoff(found, Console(file=written, width=100))
        shown = written.getvalue()
    assert shown.count("full-domain") == 3 and shown.count("at least") == 3, "two rows of the table and what they mean"
    page = tradeoff_page(found)
    assert "k = 3, full-domain: " in page and "k = 3, local: " in page, "in the chart's text alternative"
    assert page.count("must be lost</td>") == 4 and "its points are what it reached" in page
    alone = sqldeid.tradeoff(job(), made(tmp_path, 4), Asked((3,), (0.0,)))
    assert "its points are what it reached" not in tradeoff_page(alone)
    tree = json.loads(json.dumps(asdict(found["people"])))
    assert tradeoff_of(tree).local == found["people"].local


def test_local_recoding_keeps_to_the_time_and_to_what_is_known(tmp_path: Path) -> None:
    """Where nearly no time is given each answer is one that holds; an answer that is known is not sought again."""
    path, asked = made(tmp_path, 11, rows=1500), job()
    content = asked.model_dump(mode="json", exclude_unset=True)
    content["tables"]["people"]["search"] = {"method": "local"}
    with reading(path, path, Settings()) as engine:
        local = plan_local("people", Job.parse(content).tables["people"], engine, Path())
        folded = fold(local.table, engine)
        free = trade_local(local, folded, Pairs((2, 5), (0.0, 0.1)), engine, Listener())
        short = trade_local(local, folded, Pairs((2, 5), (0.0, 0.1), 1e-9), engine, Listener())
        assert not any(p.stopped for p in free) and any(p.stopped for p in short)
        for p, q in zip(short, free, strict=True):
            assert p.bound is not None and p.loss is not None and q.loss is not None
            assert p.bound <= q.loss and q.bound <= p.loss <= 1 and p.suppressed <= 0.1 * folded.rows
        said: list[str] = []
        known = replace(free[2], suppressed=0, loss=0.75)
        heard = Listener(lambda _, text: said.append(text))
        found = trade_local(local, folded, Pairs((2, 5), (0.0, 0.1), known=known), engine, heard)
        assert [p.loss for p in found if p.k == 5] == [0.75, 0.75]
        assert [p.loss for p in found if p.k == 2] == [p.loss for p in free if p.k == 2]
        assert said and not any("k = 5" in text for text in said)
        some = replace(free[2], suppressed=3, suppression_limit=0.1, loss=0.75)
        found = trade_local(local, folded, Pairs((5,), (0.0, 0.1, 0.3), known=some), engine, Listener())
        assert found[1].loss == 0.75 and found[0].loss == free[2].loss != found[1].loss != found[2].loss
