"""Adult as the source has it: its training part, its test part, the hierarchies of its appendix B."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sqldeid.engine.base import Engine
from sqldeid.engine.opening import Settings
from sqldeid.run import evaluate, reading
from sqldeid.tables.fold.fold import Folded, fold
from sqldeid.tables.model.evaluation import Evaluation, allowed_rows
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.plan import plan as planning
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.release.node import checker_of, find_node
from sqldeid.tables.release.release import Listener
from sqldeid.tables.search import Outcome, Problem, search
from tests.support.places import EXAMPLES
from tests.support.studies import module_of

LIMITS = (0, 0.01, 0.05, 0.1, 0.2, 0.5)
PREC = {
    5: (0.7222, 0.5185, 0.3889, 0.2778, 0.1852, 0.0370),
    25: (0.7778, 0.6667, 0.5185, 0.4444, 0.2963, 0.1296),
    100: (0.7778, 0.7407, 0.6296, 0.5556, 0.4074, 0.2222),
}
"""Computed by two other programs; figure 6.1 of the source."""
GREATEST = {0.2: (1, 2, 72), 0.5: (1, 47, 1650), 0.8: (218, 1873, 25621)}

pytestmark = pytest.mark.xdist_group("adult_study")


@pytest.fixture(scope="module")
def database(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adult") / "adult.duckdb"
    module_of(EXAMPLES / "adult_study" / "study.py").load(shared_data / "adult_uci", path)
    return path


@pytest.fixture(scope="module")
def folded(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TablePlan, Folded, object]]:
    """The training part, folded once."""
    module = module_of(EXAMPLES / "adult_study" / "study.py")
    study = module.Study(database, tmp_path_factory.mktemp("study"), (5,), (0.0,), (0.0,), ())
    job = study.job({"adult": module.quasi_identifying(study.table)}, "adult")
    with reading(database, database, Settings()) as engine:
        plan = planning.plan("adult", job.tables["adult"], engine, job.folder)
        yield plan, fold(plan, engine), engine


def best(folded: tuple[TablePlan, Folded, object], k: int, limit: float, **search: object) -> Outcome:
    plan, classes, engine = folded
    demands = replace(plan.demands, k=k, suppression_limit=limit)
    asked = replace(plan, demands=demands, search=replace(plan.search, **search))
    return find_node(asked, classes, checker_of(asked, classes, engine), Listener())[0]


@pytest.mark.deep
@pytest.mark.parametrize("k", PREC)
def test_the_least_prec_of_every_limit(folded, k):
    assert folded[0].lattice.size == 10_368 and folded[1].rows == 32_561
    found = [best(folded, k, limit, method="frontier", loss="prec") for limit in LIMITS]
    assert tuple(round(outcome.loss, 4) for outcome in found) == PREC[k]
    assert all(outcome.optimal for outcome in found)


@pytest.fixture(scope="module")
def histograms(folded: tuple[TablePlan, Folded, Engine]) -> Callable[..., list[Evaluation]]:
    """Every node's class sizes, which no limit changes, asked of the database once."""
    checker, known = checker_of(*folded), {}

    def evaluate(nodes: Sequence[Node], *, histogram: bool = False) -> list[Evaluation]:
        if fresh := [node for node in nodes if node not in known]:
            known.update(zip(fresh, checker(fresh, histogram=True), strict=True))
        return [known[node] for node in nodes]

    return evaluate


@pytest.mark.deep
@pytest.mark.parametrize("most", GREATEST)
def test_the_greatest_k_of_inverse_ola(folded, histograms, most):
    plan, classes, _ = folded
    marginals = [c.marginal for c in classes.columns]
    for limit, k in zip((0, 0.1, 0.5), GREATEST[most], strict=True):
        problem = Problem(
            lattice=plan.lattice,
            marginals=marginals,
            rows=classes.rows,
            allowed=allowed_rows(limit, classes.rows),
            loss=make_loss("prec", marginals, classes.rows),
            evaluate=histograms,
            max_loss=most,
        )
        assert search("inverse-ola", problem).k == k


@pytest.mark.deep
def test_accuracy_on_originals_and_on_the_coarsest_release(database, tmp_path):
    module = module_of(EXAMPLES / "adult_study" / "study.py")
    study = module.Study(database, tmp_path, (100,), (0.0,), (0.0,), ())
    job = study.job({"adult": module.asked(study.table, 100, 0, method="frontier", loss="prec")}, "prec")
    found = evaluate.classification(job, database, "income", test="main.adult_test")
    assert found.test == 16_281 and found.train == 32_561
    assert found.anonymised.accuracy > 0.78
    assert found.originals is not None and abs(found.originals.accuracy - 0.85) < 0.01
    assert found.originals.roc_auc is not None and found.originals.roc_auc > 0.88
