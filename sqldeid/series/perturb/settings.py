"""How series are perturbed: the choices of a job, with Mazzone's (2020) values as defaults where there are any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from sqldeid.errors import JobError
from sqldeid.job.series import METHOD, Method

Fitness: TypeAlias = Literal["weighted", "annealing", "dampened", "capped"]
METHODS: tuple[Method, ...] = get_args(Method)
FITNESS: tuple[Fitness, ...] = ("weighted", "annealing", "dampened", "capped")

MOST_PARENTS = 4
"""Of a child; the ways to choose them are written out."""


@dataclass(frozen=True, slots=True)
class GeneticSettings:
    """The genetic algorithm's parameters (Mazzone 2020, §6.2; design of the population by ours).

    `fitness`: `weighted` (NA; the default), `annealing` (equation 4.4), `dampened` (DF), `capped` (CI). The last
    three are offered for comparison. `scale_variance` measures the variance's unfeasibility
    as that of the standard deviation, against Mazzone's observation that variance dominates. `parents`: the best of a
    tournament that a child is joined from, the first giving its first records (two in §4.2, two to four in §6.2).
    `local_search` (ours): of four children one mutates by a tenth of the step, one at about two records, one by and at
    both; Mazzone's way alone ends early, and farther off.
    """

    fitness: Fitness = "weighted"
    weight: float = 100.0
    dampening: float = 100.0
    cap: int = 300
    population: int = 24
    tournament: int = 5
    parents: int = 2
    mutation_sd: float = 3.0
    mutation_probability: float = 0.2
    local_search: bool = True
    initial_sd: float = 1.0
    idle_iterations: int = 300
    most_iterations: int = 6000
    scale_variance: bool = False

    def __post_init__(self) -> None:
        if self.fitness not in FITNESS:
            raise JobError.at("perturb.fitness", f"must be one of {', '.join(FITNESS)}")
        if not 2 <= self.tournament <= self.population:
            raise JobError.at("perturb.tournament", "must be from 2 to the population")
        if not 2 <= self.parents <= min(self.tournament, MOST_PARENTS):
            raise JobError.at("perturb.parents", f"must be from 2 to {MOST_PARENTS}, and at most tournament")
        if not 0 < self.mutation_probability <= 1:
            raise JobError("perturb.mutation_probability: must be above 0, at most 1", key="perturb")
        for name in ("weight", "dampening", "cap", "mutation_sd", "idle_iterations", "most_iterations"):
            if not getattr(self, name) > 0:
                raise JobError.at(f"perturb.{name}", "must be above 0")


@dataclass(frozen=True, slots=True)
class PerturbSettings:
    """What `sqldeid.series.perturb.perturb` does.

    Attributes
    ----------
    method
        `projection`: the exact one. `source`: its 50 iterations (§5.5). `genetic`: `genetic` holds its parameters.
        `shared`: the protecting option; nothing of a series' own shape is released (`sqldeid.series.perturb.shared`).
        The default of a job: it beats every attacker of `sqldeid.series.attacks`, for half as much distortion again and
        0.03 of a mortality model's ROC-AUC, where projection takes 0.01 (`examples/series_study`, five variables; it
        takes several times that of twelve: `docs/studies.md`), with the NULL mode `null-pattern`.
    iterations
        Of `source`.
    noise
        Of `shared`: the share of variance, 0…1, that is random rather than the class's own shape.
    resolution
        Of `shared`: released values are multiples of this (a device's resolution, in the variable's unit), by
        variable number; variables not named have no rounding.
    """

    method: Method = METHOD
    iterations: int = 50
    noise: float = 0.5
    resolution: tuple[tuple[int, float], ...] = ()
    genetic: GeneticSettings = GeneticSettings()

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise JobError.at("perturb.method", f"must be one of {', '.join(METHODS)}")
        if not 0 <= self.noise <= 1:
            raise JobError.at("perturb.noise", "must be between 0 and 1")
        if self.iterations < 1:
            raise JobError.at("perturb.iterations", "must be at least 1")
        if any(not step > 0 for _, step in self.resolution):
            raise JobError.at("perturb.resolution", "must be above 0")
