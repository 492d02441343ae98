"""Compare generated events with the source. Nothing here is noised, so it is for the data holder.

Definition 4's similarity is precision alone: one common sequence, repeated, scores 1. So cover goes with it, and
distances of what sequences are made of.

Source: Shaked & Rokach 2016, definition 4, §5; events.md, *Evaluation*.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse
from sqlglot import exp

from sqldeid.arrays import Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.events.sequences import BIN_WIDTH

TOP = 20
SETS_MOST = 4_000
"""Different sets whose nearest neighbour is looked for; of more, a random part. They are compared with all others."""

OBJECTS_MOST = 50_000
"""Objects that were made, of which the first so many are looked at: they are drawn alike."""

BLOCK = 256
SEED = 20_160_831


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was made against the source.

    Parameters
    ----------
    similarity
        Mean over parts that were made of the Jaccard index with the nearest part of the source; of sets of states.
    cover
        Mean over parts of the source of the Jaccard index with the nearest part that was made.
    similarity_own, cover_own
        The same with the shingles of the run.
    top20
        Share of the 20 most frequent 2-grams of the source that are among those of what was made.
    tvd_2gram, tvd_length, tvd_gap
        Total variation distance of 2-grams, of lengths of parts, and of gaps by bins of ln(hours), 0 … 1.
    """

    similarity: float
    cover: float
    similarity_own: float
    cover_own: float
    top20: float
    tvd_2gram: float
    tvd_length: float
    tvd_gap: float


@dataclass(frozen=True, slots=True)
class Shingled:
    """The different sets of shingles of a data set.

    Parameters
    ----------
    number, shingle
        One entry per set (0, 1, …) and shingle in it.
    parts
        Of each set: the number of parts that have it.
    members
        Of each set: how many of the parts are of objects that were asked for; empty where nobody asked.
    """

    number: Ints
    shingle: pa.Array
    parts: Floats
    members: Ints


@dataclass(frozen=True, slots=True)
class Sets:
    """Different sets of shingles as rows of a matrix of 0 and 1, with the number of parts that have each."""

    matrix: sparse.csr_matrix
    parts: Floats

    @property
    def sizes(self) -> Floats:
        """Shingles of each set."""
        found: Floats = np.diff(self.matrix.indptr).astype(np.float64)
        return found


@dataclass(frozen=True, slots=True)
class Source:
    """What is compared with: its sets are read once, however many releases are compared.

    Parameters
    ----------
    split
        Table of ``split_events``.
    """

    name: str
    split: exp.Table
    engine: Engine
    known: dict[int, Shingled] = field(default_factory=dict)

    def sets(self, shingle: int) -> Shingled:
        """Its sets of shingles."""
        if shingle not in self.known:
            self.known[shingle] = read_sets(self.name, self.split, shingle, self.engine)
        return self.known[shingle]


def evaluate(name: str, source: Source, made: exp.Table, engine: Engine, shingle: int = 1) -> Evaluation:
    """Compare what was made, a table of ``split_made``, with the source; `shingle` is the run's own."""
    similarity, cover = compare_sets(source.sets(1), read_sets(name, made, 1, engine))
    own = (similarity, cover)
    if shingle != 1:
        own = compare_sets(source.sets(shingle), read_sets(name, made, shingle, engine))
    pairs = engine.ask("events/compare_pairs", left_split=source.split, right_split=made, top=TOP)
    found = pairs.to_pylist()[0]
    rows = engine.ask("events/compare_lengths", left_split=source.split, right_split=made, width=BIN_WIDTH).to_pydict()
    what, left, right = (np.array(rows[n], dtype=np.float64) for n in ("what", "left_n", "right_n"))
    return Evaluation(
        similarity=similarity,
        cover=cover,
        similarity_own=own[0],
        cover_own=own[1],
        top20=found["shared"] / found["least_top"] if found["least_top"] else 1.0,
        tvd_2gram=float(found["distance"]),
        tvd_length=variation(left[what == 0], right[what == 0]),
        tvd_gap=variation(left[what == 1], right[what == 1]),
    )


def variation(left: Floats, right: Floats) -> float:
    """Total variation distance of two histograms over the same bins, 0 … 1; 1 where only one is empty."""
    if not left.sum() or not right.sum():
        return float(bool(left.sum()) != bool(right.sum()))
    return float(np.abs(left / left.sum() - right / right.sum()).sum() / 2)


def compare_sets(source: Shingled, made: Shingled) -> tuple[float, float]:
    """Similarity of what was made, and cover of the source, by exact Jaccard of sets of shingles."""
    rng = np.random.default_rng(SEED)
    left, right = common_sets(source, made)
    return mean_nearest(right, left, rng), mean_nearest(left, right, rng)


def read_sets(
    name: str, split: exp.Table, shingle: int, engine: Engine, *, members: exp.Table | None = None
) -> Shingled:
    """The different sets of a table of ``split_events`` or ``split_made``, with how many objects of another have each.

    Sets and counts come out of the engine, and which part has which set does not.
    """

    def make(template: str, table: str, **parameters: object) -> exp.Table:
        tables.append(engine.make(template, f"{name}_{table}", **parameters))
        return tables[-1]

    tables: list[exp.Table] = []
    shingles = make("events/make_shingles", "shingles", split=split, later=list(range(1, shingle)))
    coded = make("events/code_shingles", "coded", shingles=shingles)
    keyed = make("events/key_parts", "keyed", shingles=shingles, coded=coded)
    ranked = make("events/rank_sets", "ranked", keyed=keyed)
    content = make("events/list_members", "members", ranked=ranked, shingles=shingles, coded=coded)
    rows = engine.ask("events/read_sets", members=content, ranked=ranked, coded=coded)
    asked = None
    if members is not None:
        asked = engine.ask("events/count_owners", split=split, keyed=keyed, ranked=ranked, members=members)
    for table in tables:
        engine.drop(table)
    number, n = (rows.column(c).to_numpy() for c in ("set_number", "n"))
    parts = np.zeros(int(number.max(initial=0)))
    parts[number - 1] = n
    counted = np.zeros(len(parts) if asked is not None else 0, dtype=np.int64)
    if asked is not None:
        counted[asked.column("set_number").to_numpy() - 1] = asked.column("n").to_numpy()
    return Shingled(number - 1, rows.column("shingle").combine_chunks(), parts, counted)


def common_sets(left: Shingled, right: Shingled) -> tuple[Sets, Sets]:
    """Two data sets as matrices with common columns."""
    pooled = pa.concat_arrays([left.shingle, right.shingle]).dictionary_encode()
    column, width = pooled.indices.to_numpy(), max(len(pooled.dictionary), 1)

    def matrix(sets: Shingled, code: npt.NDArray[np.int32]) -> Sets:
        ones = np.ones(len(sets.number), dtype=np.float32)
        return Sets(sparse.csr_matrix((ones, (sets.number, code)), shape=(len(sets.parts), width)), sets.parts)

    return matrix(left, column[: len(left.number)]), matrix(right, column[len(left.number) :])


def mean_nearest(queries: Sets, others: Sets, rng: np.random.Generator) -> float:
    """Mean over parts of the Jaccard index with the nearest of the other sets; 0 where there are none."""
    if not len(queries.parts) or not len(others.parts):
        return 0.0
    chosen = np.arange(len(queries.parts))
    if len(chosen) > SETS_MOST:
        chosen = np.sort(rng.choice(chosen, SETS_MOST, replace=False))
    best = nearest(Sets(queries.matrix[chosen], queries.parts[chosen]), others)
    return float((best * queries.parts[chosen]).sum() / queries.parts[chosen].sum())


def nearest(queries: Sets, others: Sets) -> Floats:
    """Jaccard index of each set with the nearest of the others.

    The nearest has the greatest share of common shingles in the sum of both sizes, which needs one division a pair.
    """
    right = others.matrix.T.tocsr()
    sizes, widths, found = queries.sizes, others.sizes.astype(np.float32), []
    for at in range(0, queries.matrix.shape[0], BLOCK):
        block, size = queries.matrix[at : at + BLOCK], sizes[at : at + BLOCK]
        common = (block @ right).toarray()
        best = (common / (size.astype(np.float32)[:, None] + widths)).argmax(axis=1)
        shared = common[np.arange(len(best)), best].astype(np.float64)
        found.append(shared / (size + others.sizes[best] - shared))
    return np.concatenate(found)
