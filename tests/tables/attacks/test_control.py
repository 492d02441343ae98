"""Singling out, linkability and inference equal the attacks made person by person, and find what was planted."""

from __future__ import annotations

import pytest

from sqldeid.tables.attacks.control import Drawn, attack_shown
from sqldeid.tables.attacks.known import part_persons
from tests.support.attacked_tables import (
    folded_table,
    known_table,
    people,
    persons_of,
    random_release,
    rows_of,
    slow_inference,
    slow_linkability,
    slow_singling_out,
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_attacks_equal_those_made_person_by_person(seed: int) -> None:
    with folded_table(people(20 + 10 * seed, seed)) as (engine, folded):
        known = known_table(engine, folded)
        parted = part_persons(known.rows, 0.3, seed=seed)
        people_ = known.split(parted)
        made = random_release(engine, folded, people_, seed, layers=1 + seed % 4)
        shown = engine.make(
            "tables/attacks/show_rows",
            "shown",
            people=people_,
            assigned=made.assigned,
            words=known.words,
            codes=known.codes,
        )
        found = attack_shown(Drawn(known, parted, people_), made, shown, 2)
        persons = persons_of(engine, folded, known, parted, made)
    rows = rows_of(persons)
    slow = {
        ("singling_out", ""): slow_singling_out(persons, rows, values=False),
        ("singling_out_with_values", ""): slow_singling_out(persons, rows, values=True),
        ("linkability", ""): slow_linkability(persons, rows),
        ("inference", "s"): slow_inference(persons, rows, 0),
        ("inference", "u"): slow_inference(persons, rows, 1),
    }
    assert {
        (s.attack, s.column): (s.main.value * s.main.of, s.control.value * s.control.of) for s in found.successes
    } == {name: pytest.approx(value) for name, value in slow.items()}
