"""What some part does not know is refused there, never taken for what it knows: made-up criteria and made-up kinds."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from jinja2 import nodes
from rich.console import Console
from sqlglot import exp

import sqldeid
from sqldeid.errors import SqldeidError, UnknownKindError
from sqldeid.events.release import guarantee_of
from sqldeid.events.verify import _least
from sqldeid.hierarchy.sources import _make
from sqldeid.job import Privacy
from sqldeid.report.page import public_page, report_page
from sqldeid.report.terminal import print_result, print_risk, print_verified
from sqldeid.report.words import not_protected
from sqldeid.result import Criterion, Measured
from sqldeid.series.compare import _measure
from sqldeid.series.durations import assign
from sqldeid.series.perturb import _by_method
from sqldeid.sql import identifier, render, template_names
from sqldeid.sql.lists import grammar
from sqldeid.sql.templates import ENGINES, source_of
from sqldeid.tables.certificate.passing_rows import _largest
from sqldeid.tables.certificate.rejudge import Rejudge
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.check.passing_rows import Histograms, survivors
from sqldeid.tables.criteria import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctLDiversity,
    EntropyLDiversity,
    HierarchicalTCloseness,
    MConcealing,
    RecursiveLDiversity,
    TCloseness,
    class_criteria,
    others_of,
    terms_of,
)
from sqldeid.tables.fold.sensitive import _refuse_too_diverse
from sqldeid.tables.ledger.rules import rules_of
from sqldeid.tables.model.loss import make_loss
from sqldeid.tables.mondrian.criteria import _kind, _worst, checks_of, measure_written
from sqldeid.tables.release.planned import criteria
from sqldeid.tables.verify.judgement import Judgement, Split

TABLE = exp.to_table("t")
MADE_UP = "made-up"


@dataclass(frozen=True)
class MadeUp:
    """A criterion that somebody added in one place and forgot in the others; it has all that others have."""

    column: str = "ill"
    l: int = 2
    c: Fraction = Fraction(2)
    t: Fraction = Fraction(1, 5)
    distance: str = MADE_UP
    kind: str = MADE_UP
    others: tuple[str, ...] = ()
    name: str = "made-up diversity"
    asked: float = 2.0
    promise: str = "Nobody knows."


CRITERIA: list[Any] = [MadeUp(), TCloseness("ill", Fraction(1, 5), MADE_UP), BetaLikeness("ill", Fraction(1), MADE_UP)]  # type: ignore[arg-type]
COUNTS = np.array([[3, 1]])
HISTOGRAM = Histograms(np.array([0]), np.array([0, 1]), np.array([3, 1]))
COLUMN = SimpleNamespace(name="ill")
PLANNED: dict[str, Any] = {"name": "p", "key": "tables.p", "judged": (COLUMN,), "qis": (), "concealing": None}


def _plan_with(criterion: object) -> Any:
    return SimpleNamespace(**PLANNED, criteria=(criterion,), part=SimpleNamespace(privacy=SimpleNamespace(k=2)))


def _bench() -> Any:
    return SimpleNamespace(
        workbench=lambda _: TABLE,
        execute=lambda _: None,
        query=lambda _: pa.table({"of": [0], "code": [0], "n": [3]}),
        ask=lambda _, **__: pa.table({"of": [0], "code": [0], "n": [3]}),
    )


def _judge(criterion: Any) -> Judge:
    sensitive = SimpleNamespace(column=COLUMN, others=(), values=2, reference=TABLE)
    folded = SimpleNamespace(sensitive=[sensitive], words=(identifier("w0"),), rows=4)
    return Judge(_bench(), folded, 2, (criterion,), "p")  # type: ignore[arg-type]


def _judgement(criterion: Any) -> Judgement:
    engine = SimpleNamespace(bench=_bench())
    return Judgement(_plan_with(criterion), engine, TABLE, [], TABLE)  # type: ignore[arg-type]


def _split(criterion: Any) -> Split:
    return Split(COLUMN, (), (criterion,))  # type: ignore[arg-type]


def _rejudge(criterion: Any) -> object:
    made = object.__new__(Rejudge)
    values = {"plan": _plan_with(criterion), "engine": _bench(), "places": {"ill": identifier("p0")}, "folded": TABLE}
    for name, value in values.items():
        object.__setattr__(made, name, value)
    object.__setattr__(made, "ranked", {"ill": TABLE})
    return made._criterion(criterion, [{"id": 0, "columns": []}])


WHERE: dict[str, Callable[[Any], object]] = {
    "terms": terms_of,
    "the search's verdicts": lambda c: _judge(c)._parameters(c, TABLE),
    "the search's statistics": lambda c: _judge(c)._stats(("ill", ()), []),
    "the search's core": lambda c: survivors(
        c, Histograms(np.array([0]), np.array([0, 1]), np.array([3, 1])), COUNTS[0]
    ),
    "verify, failing classes": lambda c: _judgement(c)._failing(c, _split(c), TABLE, TABLE),
    "verify and assess, achieved": lambda c: _judgement(c)._achieved(c, _split(c), TABLE, TABLE),
    "certificate": _rejudge,
    "ledger, rules": lambda c: rules_of(_plan_with(c), 1),
    "ledger, what lasts": lambda c: _largest(c, COUNTS, COUNTS[0]),
    "Mondrian, checks": lambda c: checks_of([c], {"ill": identifier("x")}, TABLE, "p", _bench()),
    "Mondrian, kind": _kind,
    "Mondrian, re-check": lambda c: measure_written([c], TABLE, ["q"], _bench()),
    "Mondrian, worst class": lambda c: _worst(c, np.array([0]), np.array([0]), np.array([3])),
    "plan": lambda c: list(criteria(_plan_with(c))),
    "values": lambda c: _refuse_too_diverse(_plan_with(c), COLUMN, 1),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("criterion", CRITERIA, ids=["criterion", "distance", "kind"])
@pytest.mark.parametrize("where", WHERE)
def test_a_made_up_criterion_is_refused(where: str, criterion: Any) -> None:
    with pytest.raises(UnknownKindError) as raised:
        WHERE[where](criterion)
    assert (raised.value.code, raised.value.kind) == (1, "internal")


def test_others_of_a_made_up_criterion_are_refused() -> None:
    with pytest.raises(UnknownKindError):
        others_of(MadeUp())  # type: ignore[arg-type]


def test_the_error_names_the_kind() -> None:
    with pytest.raises(UnknownKindError, match=r"the criterion MadeUp is not known everywhere .* please report it"):
        terms_of(MadeUp())  # type: ignore[arg-type]
    assert issubclass(UnknownKindError, SqldeidError)


def test_a_made_up_kind_of_l_diversity_is_refused() -> None:
    asked = Privacy.model_validate({"k": 2, "l_diversity": {"column": "ill", "l": 2}})
    asked.l_diversity[0].__dict__["kind"] = MADE_UP
    with pytest.raises(UnknownKindError, match="kind of l-diversity"):
        class_criteria(asked, ["ill"])


# ---- what tells of criteria -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any]:
    """A release, its re-check and its risks."""
    path = tmp_path_factory.mktemp("made")
    with duckdb.connect(str(path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS id, i % 2 AS sex, i % 3 AS ill FROM range(60) t(i)")
    columns = {"sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}, "ill": {"role": "sensitive"}}
    privacy = {"k": 2, "l_diversity": {"column": "ill", "l": 2}}
    table = {"source": "people", "person": "id", "columns": columns, "privacy": privacy}
    job = sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=path)
    database = path / "people.duckdb"
    return sqldeid.anonymize(job, database), sqldeid.verify(job, database), sqldeid.assess(job, database)


def _unknown(results: Any, make: Any) -> Any:
    """The results' criteria replaced by one that nobody knows."""
    from dataclasses import replace

    return {name: replace(found, criteria=(make,)) for name, found in results.items()}


def test_summary_and_report_refuse_a_made_up_criterion(made: tuple[Any, Any, Any]) -> None:
    from dataclasses import replace

    result, verified, risks = made
    to = Console(file=io.StringIO())
    unknown = Criterion("made-up diversity", "ill", 2, 2, "Nobody knows.")
    told = replace(result, releases=_unknown(result.releases, unknown))
    with pytest.raises(UnknownKindError):
        print_result(told, to, database="d", job="j")
    with pytest.raises(UnknownKindError):
        print_verified(_unknown(verified, unknown), to)
    with pytest.raises(UnknownKindError):
        print_risk(_unknown(risks, Measured("made-up diversity", "ill", 2, 2, met=True)), to, released=True)
    with pytest.raises(SqldeidError, match="must be a criterion that this version knows"):
        public_page(told.to_dict())
    with pytest.raises(SqldeidError, match="must be a criterion that this version knows"):
        report_page(told.to_dict())
    with pytest.raises(UnknownKindError):
        not_protected("made-up diversity")


def test_every_criterion_says_what_it_does_not_protect() -> None:
    others = ("ward",)
    made: list[Any] = [
        *(kind("ill", 2, given) for kind in (DistinctLDiversity, EntropyLDiversity) for given in ((), others)),
        *(RecursiveLDiversity("ill", 2, Fraction(3), given) for given in ((), others)),
        DeltaDisclosure("ill", Fraction(1, 5)),
        *(BetaLikeness("ill", Fraction(1, 5), kind) for kind in ("basic", "enhanced")),
        *(TCloseness("ill", Fraction(1, 5), distance) for distance in ("equal", "ordered")),
        HierarchicalTCloseness("ill", Fraction(1, 5), ((0, 1, 2), (0, 0, 1))),
        MConcealing(Fraction(1, 5), (("ill", 0.5),)),
    ]
    assert all(not_protected(criterion.name) for criterion in made)


# ---- other kinds ------------------------------------------------------------------------------------------------


def test_other_made_up_kinds_are_refused() -> None:
    events: Any = SimpleNamespace(
        method=MADE_UP, part=SimpleNamespace(privacy=SimpleNamespace(epsilon=None)), unit="person"
    )
    with pytest.raises(UnknownKindError, match="privacy method of events"):
        guarantee_of(events)
    with pytest.raises(UnknownKindError, match="privacy method of events"):
        _least(events)
    with pytest.raises(UnknownKindError, match="method of perturbation"):
        names: Any = SimpleNamespace(person_number=0, variable_number=0)
        _by_method(np.ones((1, 2)), np.ones((1, 4)), SimpleNamespace(method=MADE_UP), 1, names, np.ones(1))  # type: ignore[arg-type]
    with pytest.raises(UnknownKindError, match="common lengths"):
        assign(np.array([3, 3]), 2, MADE_UP)  # type: ignore[arg-type]
    with pytest.raises(UnknownKindError, match="distance of series"):
        _measure(SimpleNamespace(distance=MADE_UP), np.ones((1, 2)), np.ones((1, 2)), np.array([0]))  # type: ignore[arg-type]
    with pytest.raises(UnknownKindError, match="hierarchy rule"):
        _make(MADE_UP, {MADE_UP: [1]}, "x", Path())
    with pytest.raises(SqldeidError, match="unknown loss"):
        make_loss(MADE_UP, [], 1)
    privacy = Privacy.model_validate({"k": 2})
    privacy.__dict__["suppression"] = MADE_UP
    with pytest.raises(UnknownKindError, match="form of suppression"):
        _ = privacy.blanks


# ---- templates --------------------------------------------------------------------------------------------------

Q = [identifier("q0")]
NODES = [{"id": 0, "columns": [{"name": Q[0], "group": Q[0]}], "groups": [], "spread": TABLE}]
SMALL = {"k": 2, "l": 2, "num": 1, "den": 2}
PARAMETERS: dict[str, dict[str, Any]] = {
    "tables/verify/fail_classes": {"failing": TABLE, "cells": TABLE, "columns": Q, "ranked": TABLE, **SMALL},
    "tables/verify/score_classes": {"scored": TABLE, "cells": TABLE, "ranked": TABLE, "columns": Q},
    "tables/write/measure_cells": {"cells": TABLE, "k": 2},
    "tables/verify/measure_classes": {"cells": TABLE, "ranked": TABLE, "columns": Q, "l": 2},
    "tables/certificate/prove_criterion": {
        "folded": TABLE,
        "place": Q[0],
        "ranked": TABLE,
        "nodes": NODES,
        "names": Q,
        **SMALL,
    },
    "tables/certificate/prove_joint": {
        "folded": TABLE,
        "place": Q[0],
        "others": Q,
        "nodes": NODES,
        "names": Q,
        **SMALL,
    },
    "tables/check/count_spread": {
        **{"stats": TABLE, "words": Q, "nodes": NODES, "most": 0, "reference": TABLE, "rows": 3, "last": 1},
        "entropy": False,
    },
    "tables/check/judge_classes": {"verdicts": TABLE, "words": Q, "k": 2, "beside": [], "several": False},
    "tables/rows/summarise_rows": {
        **{"stacked": TABLE, "relation": TABLE, "keys": [], "picked": None, "joins": [], "value": Q[0]},
        **{"counted": True, "result": Q[0]},
    },
    "mondrian/find_unfit": {
        **{"unfit": TABLE, "parts": TABLE, "values": TABLE, "cuts": TABLE, "marks": TABLE, "rows": TABLE, "total": 3},
        **SMALL,
    },
}
PARAMETERS["tables/rows/resummarise_rows"] = PARAMETERS["tables/rows/summarise_rows"]
CRITERION = {"stats": TABLE, "l": 2, "fewer": 1, "num": 1, "den": 2, "scale": 1, "joint": False, "k": 2}


def _compared(source: str) -> dict[str, set[str]]:
    """Names that a template compares with words, and the words."""
    tree, found = grammar().parse(source), {}
    for compare in tree.find_all(nodes.Compare):
        words = {c.value for c in compare.find_all(nodes.Const) if isinstance(c.value, str)}
        if words:
            of = compare.expr
            name = f"{of.node.name}.{of.attr}" if isinstance(of, nodes.Getattr) else of.name  # type: ignore[attr-defined]
            found.setdefault(name, set()).update(words)
    return found


BRANCHING = [(name, of, words) for name in template_names() for of, words in _compared(source_of(name) or "").items()]


@pytest.mark.parametrize(("name", "of", "words"), BRANCHING, ids=lambda part: part if isinstance(part, str) else "")
def test_a_template_refuses_a_made_up_kind(name: str, of: str, words: set[str]) -> None:
    template, _, dialect = name.partition(".")

    def given(kind: str) -> str:
        asked = {"criteria": [{**CRITERION, "kind": kind}]} if "." in of else {of: kind}
        return render(template, dialect if dialect in ENGINES else "duckdb", **PARAMETERS[template], **asked)

    assert all(given(word) for word in sorted(words))
    with pytest.raises(UnknownKindError):
        given(MADE_UP)


@pytest.mark.parametrize("name", ["tables/verify/flag_source", "engine/count_rows", "engine/list_relations"])
def test_an_engine_that_no_template_knows_is_refused(name: str) -> None:
    with pytest.raises(UnknownKindError, match="the engine mysql is not known"):
        render(name, "mysql")


def test_there_are_templates_that_branch() -> None:
    assert len(BRANCHING) >= 9
