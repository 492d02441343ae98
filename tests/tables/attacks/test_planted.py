"""Attacks find what was planted in a release, and nothing in one that was drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sqldeid.engine.base import Engine
from sqldeid.tables.attacks.control import Drawn, attack_shown, attack_with_control
from sqldeid.tables.attacks.disclosure import disclose
from sqldeid.tables.attacks.known import Known, Released, part_persons
from sqldeid.tables.attacks.rates import Success
from sqldeid.tables.fold.fold import Folded
from tests.support.attacked_tables import folded_table, known_table, people

ROWS = 4000
COARSE, RAW = (2, 1, 0), (0, 0, 0)


def released_at(engine: Engine, folded: Folded, rows: Any, low: int) -> Released:
    """All combinations at one node, but those of at most `low` released persons, which are shown as they are."""
    names = [w.name for w in folded.words]
    listed = ", ".join(names)
    read = engine.query(f"SELECT {listed}, SUM(train) AS n FROM {rows.sql()} WHERE train > 0 GROUP BY {listed}")
    words = np.stack([read.column(n).to_numpy() for n in names])
    masks = np.array(folded.coding.masks(COARSE))[:, None]
    layer = np.where(read.column("n").to_numpy().astype(int) > low, 1, 2)
    shown = np.concatenate([np.where(layer == 1, words & masks, words), layer[None]])
    number = np.unique(shown, axis=1, return_inverse=True)[1].reshape(-1)
    columns = dict(zip(names, words, strict=True))
    return Released((COARSE, RAW), engine.put("assigned", pa.table({**columns, "layer": layer, "class": number})))


def attacked(engine: Engine, folded: Folded, known: Known, low: int = 0) -> dict[str, Success]:
    """The attacks on such a release."""

    def remake(rows: Any, persons: int) -> Released:
        return released_at(engine, folded, rows, low)

    found = attack_with_control(known, remake, 5)
    return {s.attack + s.column: s for s in found.successes}


def test_persons_whose_levels_are_too_low_are_singled_out() -> None:
    """Three persons have a combination of their own; shown as they are, those whom the draw releases stand out."""
    table = people(ROWS, 1)
    for i, a in enumerate((24, 25, 26)):
        table["a"][i], table["b"][i], table["c"][i] = a, "y0", "f"
    with folded_table(table) as (engine, folded):
        known = known_table(engine, folded)
        assert attacked(engine, folded, known)["singling_out"].main.value == 0
        found = attacked(engine, folded, known, low=1)["singling_out"]
    assert 1 <= round(found.main.value * found.main.of) <= 3
    assert found.control.value < found.main.value


def test_a_homogeneous_class_is_found() -> None:
    table = people(ROWS, 3)
    with folded_table(table) as (engine, folded):
        known = known_table(engine, folded)
        clean = {c.column: c for c in disclose(known, np.arange(len(known.rows)) % 7).columns}
    assert clean["s"].alike.value == 0 and clean["s"].positive_max < 1.5 and clean["s"].skewness_max < 0.2
    alike = {i for i in range(ROWS) if table["a"][i] == 3}
    table["s"] = ["v1" if i in alike else v for i, v in enumerate(table["s"])]
    with folded_table(table) as (engine, folded):
        known = known_table(engine, folded)
        a = folded.columns[0]
        read = engine.query(f"SELECT w{a.field.word} AS w FROM {known.cells.sql()} ORDER BY id")
        code = read.column("w").to_numpy() & a.field.mask(0)
        planted = {c.column: c for c in disclose(known, np.unique(code, return_inverse=True)[1]).columns}
    assert planted["s"].alike.value * ROWS == pytest.approx(len(alike))
    assert planted["u"].alike.value == 0


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_found_in_rows_that_were_drawn_anew(seed: int) -> None:
    """A release of which each column is drawn independently, of nobody: no risk beyond its interval."""
    with folded_table(people(ROWS, seed)) as (engine, folded):
        known = known_table(engine, folded)
        parted = part_persons(known.rows, seed=seed)
        rows = known.split(parted)
        with folded_table(people(ROWS, seed + 1000)) as (other_engine, other):
            drawn = other_engine.query(f"SELECT * EXCLUDE (id) FROM {known_table(other_engine, other).cells.sql()}")
        words = np.stack([drawn.column(w.name).to_numpy() for w in folded.words])
        masks = np.array(folded.coding.masks(COARSE))[:, None]
        number = np.unique(words & masks, axis=1, return_inverse=True)[1].reshape(-1)
        invented = drawn.append_column("layer", pa.array(np.ones(len(number), dtype=np.int64)))
        shown = engine.put("invented", invented.append_column("class", pa.array(number)))
        found = attack_shown(Drawn(known, parted, rows), Released((COARSE,), shown), shown, 5)
    for success in found.successes:
        assert not success.found, success
    assert len(found.successes) == 5


def test_rows_are_found_where_nothing_is_generalised() -> None:
    """The raw table as a release: who is alone is singled out, and held-out persons are not."""
    with folded_table(people(300, 5, spread=60)) as (engine, folded):
        known = known_table(engine, folded)
        found = attacked(engine, folded, known, low=10**6)
    assert found["singling_out"].found and found["singling_out"].risk.value > 0.2
    assert found["linkability"].main.value > found["linkability"].baseline.value
    assert found["inferences"].found
