"""What few trials and small groups may be said to show: tests at a stated level, and a worst that is the worst."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import fisher_exact

from sqldeid.events.attacks import CANARY_RELEASES, LEVEL, by_chance
from sqldeid.job.series import Perturb, SeriesPrivacy
from sqldeid.report.events import _canary
from sqldeid.series.attack_report import SMALLEST_NAMED, merged, shares_of
from sqldeid.series.attacks import Attack
from sqldeid.series.perturb import GeneticSettings, PerturbSettings


@pytest.mark.parametrize("releases", [5, CANARY_RELEASES])
def test_the_chance_of_what_was_seen_is_fishers(releases: int) -> None:
    for one in range(releases + 1):
        for other in range(releases + 1):
            table = [[one, releases - one], [other, releases - other]]
            wanted = fisher_exact(table, alternative="greater").pvalue
            assert by_chance(one, other, releases) == pytest.approx(wanted)


def test_three_of_five_against_one_of_five_give_nothing_away() -> None:
    few = {"seen_with": 3, "seen_without": 1, "releases": 5, "p_value": by_chance(3, 1, 5)}
    assert "gives away" not in _canary(few)
    assert "gives away" not in _canary({k: v for k, v in few.items() if k != "p_value"})  # of an older result
    clear = {"seen_with": 10, "seen_without": 0, "releases": 10, "p_value": by_chance(10, 0, 10)}
    assert "gives away" in _canary(clear)


def test_the_sentence_is_wrong_at_most_as_often_as_its_level_says() -> None:
    rng = np.random.default_rng(1)
    for rate in (0.1, 0.3, 0.5, 0.9):
        one, other = rng.binomial(CANARY_RELEASES, rate, (2, 4000))
        wrong = np.mean([by_chance(int(a), int(b), CANARY_RELEASES) <= LEVEL for a, b in zip(one, other, strict=True)])
        assert wrong <= LEVEL + 0.01


def attack(persons: int, sole: int) -> Attack:
    found = object.__new__(Attack)
    for name in Attack.__slots__:
        object.__setattr__(found, name, {"persons": persons, "sole": sole}.get(name, 0.0))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_worst_length_is_never_better_than_all_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.choice([3, 7, 12, 19, 25, 60], int(rng.integers(1, 9)))
    attacks = {int(length): attack(int(n), int(rng.integers(0, n + 1))) for length, n in enumerate(sizes)}
    found = shares_of(attacks)
    assert found["worst_sole"] >= found["sole"] - 1e-12
    groups = merged(attacks)
    assert sum(g.persons for g in groups) == sizes.sum()
    small = sizes[sizes < SMALLEST_NAMED].sum()
    assert all(g.persons >= SMALLEST_NAMED for g in groups) or 0 < small < SMALLEST_NAMED


def test_lengths_of_few_persons_are_not_skipped() -> None:
    """One length of 300 with 4.5 %, and thirty of eight with a third each: the worst was told as 4.5 %."""
    attacks = {0: attack(300, 13), **{i: attack(8, 3) for i in range(1, 31)}}
    found = shares_of(attacks)
    assert found["sole"] == pytest.approx(103 / 540) and found["worst_sole"] == pytest.approx(0.375)


def test_what_a_job_says_of_defaults_is_what_is_done() -> None:
    assert PerturbSettings().method == Perturb().method
    settings = {**vars_of(GeneticSettings()), **vars_of(PerturbSettings())}
    checked = 0
    for name, asked in Perturb.model_fields.items():
        told = re.search(r"\(([\w.]+)\)\.$", asked.description or "")
        if told is None:
            continue
        value = settings[name]
        assert str(value).casefold() == told[1] or float(told[1]) == value, name
        checked += 1
    assert checked >= 12
    assert SeriesPrivacy(k=2).nulls == "null-pattern"


def vars_of(found: object) -> dict[str, object]:
    return {name: getattr(found, name) for name in type(found).__slots__}  # type: ignore[attr-defined]
