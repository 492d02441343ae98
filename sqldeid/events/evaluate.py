"""How much what was made looks like the source: for the data holder, nothing here is noised.

Definition 4's similarity is precision alone: one common sequence, repeated, scores 1. So cover goes with it, and
distances of what sequences are made of.

Source: Shaked & Rokach 2016, definition 4, §5; events.md, *Evaluation*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.events.sequences import BIN_WIDTH
from sqldeid.sql import render

Floats = npt.NDArray[np.float64]

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
class Sets:
    """Different sets of shingles as rows of a matrix of 0 and 1, with the number of parts that have each."""

    matrix: sparse.csr_matrix
    parts: Floats

    @property
    def sizes(self) -> Floats:
        """Shingles of each set."""
        found: Floats = np.asarray(self.matrix.sum(axis=1), dtype=np.float64).ravel()
        return found


def evaluate(name: str, source: exp.Table, made: exp.Table, shingle: int, engine: Engine) -> Evaluation:
    """Compare two tables of ``split_events`` or ``split_made``; `shingle` is the run's own."""
    similarity, cover = compare_sets(name, source, made, 1, engine)
    own = (similarity, cover) if shingle == 1 else compare_sets(name, source, made, shingle, engine)
    pairs = engine.query(render("events/compare_pairs", left_split=source, right_split=made, top=TOP)).to_pylist()[0]
    rows = engine.query(
        render("events/compare_lengths", left_split=source, right_split=made, width=BIN_WIDTH)
    ).to_pydict()
    what, left, right = (np.array(rows[n], dtype=np.float64) for n in ("what", "left_n", "right_n"))
    return Evaluation(
        similarity=similarity,
        cover=cover,
        similarity_own=own[0],
        cover_own=own[1],
        top20=pairs["shared"] / pairs["least_top"] if pairs["least_top"] else 1.0,
        tvd_2gram=float(pairs["distance"]),
        tvd_length=variation(left[what == 0], right[what == 0]),
        tvd_gap=variation(left[what == 1], right[what == 1]),
    )


def variation(left: Floats, right: Floats) -> float:
    """Total variation distance of two histograms over the same bins, 0 … 1; 1 where only one is empty."""
    if not left.sum() or not right.sum():
        return float(bool(left.sum()) != bool(right.sum()))
    return float(np.abs(left / left.sum() - right / right.sum()).sum() / 2)


def compare_sets(name: str, source: exp.Table, made: exp.Table, shingle: int, engine: Engine) -> tuple[float, float]:
    """Similarity of what was made, and cover of the source, by exact Jaccard of sets of shingles."""
    rng = np.random.default_rng(SEED)
    left, right = read_sets(name, source, made, shingle, engine)
    return mean_nearest(right, left, rng), mean_nearest(left, right, rng)


def read_sets(name: str, left: exp.Table, right: exp.Table, shingle: int, engine: Engine) -> tuple[Sets, Sets]:
    """The different sets of two tables of events, with common columns."""
    return _common_sets(name, left, right, shingle, engine)[:2]


def owners_of_sets(
    name: str, left: exp.Table, right: exp.Table, engine: Engine
) -> tuple[Sets, Sets, npt.NDArray[np.int64]]:
    """The same for sets of states, and the number (from 1) of the set of each part of `left`, by object."""
    return _common_sets(name, left, right, 1, engine, owners=True)


def _common_sets(
    name: str, left: exp.Table, right: exp.Table, shingle: int, engine: Engine, *, owners: bool = False
) -> tuple[Sets, Sets, npt.NDArray[np.int64]]:
    def make(template: str, table: str, **parameters: object) -> exp.Table:
        made = engine.workbench(f"{name}_{table}")
        engine.execute(render(template, **{table: made}, **parameters))
        tables.append(made)
        return made

    tables: list[exp.Table] = []
    later = list(range(1, shingle))
    shingles = [make("events/make_shingles", "shingles", split=s, later=later) for s in (left, right)]
    pooled = make("events/pool_shingles", "pooled", left_shingles=shingles[0], right_shingles=shingles[1])
    coded = make("events/code_shingles", "coded", shingles=pooled)
    found, owned = [], []
    for split, s in zip((left, right), shingles, strict=True):
        keyed = make("events/key_parts", "keyed", shingles=s, coded=coded)
        ranked = make("events/rank_sets", "ranked", keyed=keyed)
        members = make("events/list_members", "members", ranked=ranked, shingles=s, coded=coded)
        found.append(engine.query(render("events/read_sets", members=members, ranked=ranked)))
        owned.append(render("events/read_owners", split=split, keyed=keyed, ranked=ranked))
    numbers = engine.query(owned[0]).column("set_number").to_numpy() if owners else np.zeros(0, dtype=np.int64)
    width = max((int(f.column("code").to_numpy().max(initial=0)) for f in found), default=0) + 1
    for table in tables:
        engine.execute(render("engine/drop_table", table=table))
    return _sets(found[0], width), _sets(found[1], width), numbers


def _sets(rows: pa.Table, width: int) -> Sets:
    number, code, n = (rows.column(c).to_numpy() for c in ("set_number", "code", "n"))
    count = int(number.max(initial=0))
    matrix = sparse.csr_matrix((np.ones(len(number), dtype=np.float32), (number - 1, code)), shape=(count, width))
    parts = np.zeros(count)
    parts[number - 1] = n
    return Sets(matrix, parts)


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
    """Jaccard index of each set with the nearest of the others."""
    dense = queries.matrix.shape[1] <= 1024
    right = others.matrix.toarray().T if dense else others.matrix.T.tocsr()
    sizes, found = others.sizes, []
    for at in range(0, queries.matrix.shape[0], BLOCK):
        block = queries.matrix[at : at + BLOCK]
        common = block.toarray() @ right if dense else np.asarray((block @ right).todense())
        union = queries.sizes[at : at + BLOCK, None] + sizes[None, :] - common
        found.append((common / union).max(axis=1))
    return np.concatenate(found).astype(np.float64)
