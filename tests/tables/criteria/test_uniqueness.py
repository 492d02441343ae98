"""Estimators of how many are alone in a population: against sums over all partitions, their own models, and Adult."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import comb, log, log1p
from pathlib import Path

import numpy as np
import pytest

import sqldeid
from sqldeid.tables.criteria import uniqueness as estimators
from sqldeid.tables.criteria.uniqueness import expected_uniques, fitted, likelihood, shlosser, snb, uniqueness, zayatz
from tests.support.cli import run
from tests.tables.criteria.test_estimated_map import PUBLISH, block, example, study

__all__ = ["study"]  # the fixture


def partitions(total: int, most: int | None = None) -> Iterator[Counter[int]]:
    """All class sizes of so many rows: size → classes."""
    if total == 0:
        yield Counter()
        return
    for size in range(min(total, most or total), 0, -1):
        for rest in partitions(total - size, size):
            yield rest + Counter([size])


def seated(sizes: Counter[int], theta: float, alpha: float) -> float:
    """The probability of one way to make these classes, one row after the other joining a class or making one."""
    probability, rows = 1.0, 0
    for classes, size in enumerate(sizes.elements()):
        for have in range(size):
            weight = have - alpha if have else theta + classes * alpha
            probability *= 1.0 if rows == 0 else weight / (theta + rows)
            rows += 1
    return probability


def ways(sizes: Counter[int]) -> int:
    """In how many ways rows make classes of these sizes."""
    left, found = sum(sizes.elements()), Fraction(1)
    for size, classes in sizes.items():
        for turn in range(1, classes + 1):
            found *= Fraction(comb(left, size), turn)
            left -= size
    return int(found)


@pytest.mark.parametrize(("theta", "alpha"), [(0.5, 0.3), (4.0, 0.7), (-0.2, 0.5), (30.0, 0.05)])
def test_pitmans_formula_and_its_uniques_are_sums_over_all_partitions(theta: float, alpha: float) -> None:
    every = [(sizes, ways(sizes), seated(sizes, theta, alpha)) for sizes in partitions(9)]
    assert sum(n * p for _, n, p in every) == pytest.approx(1)
    assert sum(sizes[1] * n * p for sizes, n, p in every) == pytest.approx(expected_uniques(theta, alpha, 9))
    for sizes, _, probability in every:
        assert likelihood(sizes, theta, alpha) == pytest.approx(log(probability), abs=1e-9)


def drawn_of(theta: float, alpha: float, size: int, seed: int) -> list[int]:
    """The class of each person of a population of Pitman's model."""
    rng = np.random.default_rng(seed)
    classes, of = [1], [0]
    for n in range(1, size):
        if rng.random() < (theta + len(classes) * alpha) / (theta + n):
            classes.append(0)
            of.append(len(classes) - 1)
        else:  # a class as likely as its rows less alpha: take a row's, and refuse it with alpha's share
            while True:
                at = of[int(rng.integers(n))]
                if rng.random() >= alpha / classes[at]:
                    break
            of.append(at)
        classes[of[-1]] += 1
    return of


def found_in(of: list[int], rows: int, seed: int) -> Counter[int]:
    taken = np.random.default_rng(seed).choice(len(of), rows, replace=False)
    return Counter(Counter(of[i] for i in taken).values())


def test_pitman_finds_its_own_model() -> None:
    """Of 20 populations of the model its interval holds the true share for 18; that of another alpha does not."""
    right, twin = 0, 0
    for seed in range(20):
        of = drawn_of(50.0, 0.5, 4000, seed)
        true = sum(1 for n in Counter(of).values() if n == 1) / 4000
        sizes = found_in(of, 800, seed)
        answer = next(u for u in uniqueness(sizes, 4000) if u.estimator == "Pitman")
        right += answer.low <= true <= answer.high
        parameters = fitted(sizes)
        assert parameters is not None
        other = expected_uniques(parameters[0], min(parameters[1] + 0.25, 0.99), 4000) / 4000
        twin += answer.low <= other <= answer.high
    assert right >= 18
    assert twin == 0


def test_what_is_fitted_is_likelier_than_all_around() -> None:
    sizes = found_in(drawn_of(50.0, 0.5, 4000, 1), 800, 1)
    found = fitted(sizes)
    assert found is not None
    best = likelihood(sizes, *found)
    around = [(t, a) for t in np.geomspace(0.1, 1000, 60) for a in np.linspace(0.02, 0.98, 60)]
    assert best >= max(likelihood(sizes, t, a) for t, a in around) - 1e-6


def test_zayatz_is_the_rule_of_bayes() -> None:
    sizes, size = {1: 6, 2: 3, 4: 1}, 40
    rows = sum(n * c for n, c in sizes.items())

    def one(n: int) -> Fraction:
        return Fraction(n * comb(size - n, rows - 1), comb(size, rows))

    share = Fraction(6) * one(1) / sum(c * one(n) for n, c in sizes.items())
    assert zayatz(sizes, size) == pytest.approx(float(6 * share * size / rows))


def thinned(classes: float, alpha: float, beta: float, fraction: float, most: int = 400) -> dict[int, float]:
    """Expected classes of one row, two … in a Bernoulli sample, class size by class size."""
    chance, sizes = beta**alpha, {}
    for more in range(most):
        sizes[more + 1] = classes * chance
        chance *= (alpha + more) / (more + 1) * (1 - beta)
    found: dict[int, float] = {}
    for i in range(1, 60):
        f, g = fraction, 1 - fraction
        found[i] = sum(c * comb(n, i) * f**i * g ** (n - i) for n, c in sizes.items() if n >= i)
    return found


@pytest.mark.parametrize(("alpha", "beta"), [(0.4, 0.1), (1.5, 0.5), (0.1, 0.02)])
def test_snb_solves_its_own_equations(alpha: float, beta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the number of classes, the parameters by which a sample was counted have their number of uniques."""
    classes, fraction = 500_000.0, 0.2
    sizes = {n: round(c) for n, c in thinned(classes, alpha, beta, fraction).items() if round(c)}
    rows = sum(n * c for n, c in sizes.items())
    size = round(rows / fraction)
    monkeypatch.setattr(estimators, "shlosser", lambda sizes, fraction: classes)
    assert snb(sizes, size) == pytest.approx(classes * beta**alpha, rel=0.02)
    monkeypatch.setattr(estimators, "shlosser", lambda sizes, fraction: 1.3 * classes)
    assert snb(sizes, size) != pytest.approx(classes * beta**alpha, rel=0.02)


def test_shlosser_counts_by_its_formula() -> None:
    sizes, q = {1: 5, 2: 2, 7: 1}, Fraction(1, 4)
    more = sum(i * q**2 * (1 - q**2) ** (i - 1) * c for i, c in sizes.items())
    more /= sum((1 - q) ** i * ((1 + q) ** i - 1) * c for i, c in sizes.items())
    missed = sum((1 - q) ** i * c for i, c in sizes.items())
    missed /= sum(i * q * (1 - q) ** (i - 1) * c for i, c in sizes.items())
    assert shlosser(sizes, 0.25) == pytest.approx(float(8 + 5 * more * missed**2))


def test_without_a_lone_row_few_are_alone_and_of_all_persons_none() -> None:
    found = uniqueness({2: 50}, 1000)
    assert {u.share for u in found} == {0.0}
    assert found[0].high * 1000 == pytest.approx(log(0.025) / log1p(-0.1))
    assert (1 - 0.1) ** (found[0].high * 1000) == pytest.approx(0.025)
    assert {u.high for u in uniqueness({2: 50}, 100)} == {0.0}


@pytest.mark.parametrize("sizes", [{}, {1: 1}, {1: 1, 2: 1}, {1: 40}, {5000: 1, 1: 1}, {1: 3, 10**6: 2}])
def test_whatever_the_classes_are_shares_are_shares(sizes: dict[int, int]) -> None:
    rows = sum(n * c for n, c in sizes.items())
    for size in (max(rows - 1, 1), max(rows, 1), rows + 1, 3 * rows + 2, 10**9):
        for u in uniqueness(sizes, size):
            assert 0 <= u.low <= u.share <= u.high <= 1
            assert u == next(v for v in uniqueness(sizes, size) if v.estimator == u.estimator), "seeded"


def test_dankars_rule() -> None:
    of = drawn_of(50.0, 0.5, 4000, 3)
    small, large = (uniqueness(found_in(of, rows, 3), 4000) for rows in (400, 1200))
    assert small[-1].estimator == large[-1].estimator == "Dankar"
    assert small[-1].chosen == "Pitman"
    others = {u.estimator: u for u in large[:-1]}
    assert large[-1].share == min(others["SNB"].share, others["Zayatz"].share)


FIVE = ("age", "sex", "race", "marital-status", "education")


def test_on_adult_snb_holds_and_zayatz_finds_half_too_many(shared_data: Path) -> None:
    """Twenty seeded tenths, as the page tells them: who holds the true share, and how far the others are off."""
    with (shared_data / "adult" / "adult.csv").open(encoding="utf-8") as file:
        rows = [tuple(line[c] for c in FIVE) for line in csv.DictReader(file, delimiter=";")]
    true = sum(1 for n in Counter(rows).values() if n == 1) / len(rows)
    holds, shares = Counter[str](), dict[str, list[float]]()
    for seed in range(20):
        drawn = np.random.default_rng(seed).choice(len(rows), len(rows) // 10, replace=False)
        for u in uniqueness(Counter(Counter(rows[i] for i in drawn).values()), len(rows)):
            holds[u.estimator] += u.low <= true <= u.high
            shares.setdefault(u.estimator, []).append(u.share)
    assert (holds["SNB"], holds["Pitman"], holds["Dankar"], holds["Zayatz"]) == (19, 13, 13, 0)
    means = {name: round(float(np.mean(found)), 3) for name, found in shares.items()}
    assert (round(true, 3), means) == (0.106, {"Zayatz": 0.16, "Pitman": 0.123, "SNB": 0.098, "Dankar": 0.123})


def test_assess_tells_them_where_the_job_states_a_size(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = sqldeid.Job.parse(example())
    found = sqldeid.assess(job, study)["study"]
    assert found.uniqueness == uniqueness(dict(found.class_sizes), 3000)
    assert found.uniqueness[0].share > 0
    (tmp_path / "job.toml").write_text(block())
    ran = run(capsys, "assess", study, "--job", tmp_path / "job.toml")
    last = found.uniqueness[-1]
    assert f"Alone, Dankar, which took {last.chosen}" in ran.out
    assert f"{100 * last.share:.2f} % of the population, estimated (" in ran.out
    sqldeid.anonymize(job, study, options=PUBLISH)
    left = sqldeid.assess(job, study, release=True)["study"]
    assert {u.share for u in left.uniqueness} == {0.0}
