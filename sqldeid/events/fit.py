"""Fit the model that objects are generated from, by `ratio`, `none` or `laplace`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, UnknownKindError
from sqldeid.events import clusters, generate, markov
from sqldeid.events.markov import Counted, Support
from sqldeid.events.model import Model
from sqldeid.events.plan import EventsPlan
from sqldeid.events.privacy.ratio import Ratio
from sqldeid.events.sequences import Sequences
from sqldeid.events.synthesize import Private, fit_private

Step = Callable[[str], None]


class Fitted(Protocol):
    """What objects are made from."""

    @property
    def objects(self) -> int:
        """As many as the source has, noised."""

    def generate(self, objects: int, rng: np.random.Generator, made: generate.Made) -> Iterator[pa.RecordBatch]:
        """Batches of events, as in ``generate.SCHEMA``; `made` counts them."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The source's ensemble of Markov models.

    Parameters
    ----------
    source_objects
        Objects of the source, not noised: for the data holder.
    """

    model: Model
    support: Support
    parts: int
    sets: int
    clusters: int
    sizes: Mapping[int, int]
    objects: int

    def generate(self, objects: int, rng: np.random.Generator, made: generate.Made) -> Iterator[pa.RecordBatch]:
        """Batches of events."""
        return generate.generate(self.model, objects, rng, made)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Counts that every epsilon can be tried on: what depends on neither epsilon nor chance."""

    plan: EventsPlan
    sequences: Sequences
    found: clusters.Clustered
    counted: Counted

    def privatise(self, epsilon: float | None, objects: int, engine: Engine) -> Ensemble:
        """Test the counts; None keeps everything."""
        bound = Ratio(epsilon).bound if epsilon is not None else None
        model, support = markov.privatise(self.plan, self.sequences, self.counted, bound, engine)
        found = self.found
        return Ensemble(model, support, found.parts, found.sets, found.clusters, found.sizes, objects)


def prepare(plan: EventsPlan, sequences: Sequences, engine: Engine, step: Step) -> Prepared:
    """Cluster and count."""
    step("clustering the parts of sequences")
    found = clusters.cluster_parts(plan.name, sequences.split, plan.part.clusters, engine)
    for table in (found.members, found.signed, found.ranked):
        engine.drop(table)
    step("counting states, times and transitions")
    return Prepared(plan, sequences, found, markov.count(plan, sequences, found.clustered, engine))


def fit_ensemble(
    plan: EventsPlan, sequences: Sequences, rng: np.random.Generator, engine: Engine, step: Step
) -> Ensemble:
    """The ensemble of `ratio` and `none`."""
    prepared = prepare(plan, sequences, engine, step)
    epsilon = plan.part.privacy.epsilon
    if epsilon is None and plan.method != "none":
        raise UnknownKindError(plan.method, "privacy method of events")
    step("testing what may be used")
    fitted = prepared.privatise(float(epsilon) if epsilon is not None else None, noised(sequences.objects, rng), engine)
    for table in (*prepared.counted.tables, prepared.found.clustered):
        engine.drop(table)
    return fitted


def noised(objects: int, rng: np.random.Generator) -> int:
    """A count with discrete Laplace noise of scale 1, at least 1; with `ratio` it carries no guarantee."""
    share = 1 - np.exp(-1.0)
    return max(int(objects + rng.geometric(share) - rng.geometric(share)), 1)


def fit_laplace(plan: EventsPlan, placed: exp.Table, engine: Engine, step: Step) -> Private:
    """Noised tables over public domains."""
    if plan.domain is None:
        raise JobError.at(f"{plan.key}.privacy", "laplace needs public domains")
    step("counting over public domains")
    return fit_private(plan.name, plan.domain, plan.epsilon, placed, engine, step)
