"""Draw many categories, counts and texts at once; the only source of chance is the generator passed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sqldeid.arrays import Flags, Floats, Ints


def weight_table(words: Sequence[str], rows: Sequence[Mapping[str, float]]) -> Floats:
    """Weights as a matrix, one line per row, one column per word; a word that a row leaves out weighs 0."""
    return np.array([[row.get(word, 0.0) for word in words] for row in rows], dtype=np.float64)


def draw_codes(rng: np.random.Generator, weights: Floats, line: Ints) -> Ints:
    """Draw one column number for each entry of `line`, by the weights of that line of `weights`."""
    steps = np.cumsum(weights, axis=1)
    steps = steps / steps[:, -1:]
    chance = rng.random(len(line))
    drawn = np.zeros(len(line), dtype=np.int64)
    for step in steps.T[:-1]:  # column by column: a matrix of all steps would be large
        drawn += chance >= step[line]
    return drawn


def band(values: Ints | Floats, edges: Sequence[float]) -> Ints:
    """The number of edges that a value has reached: 0 below the first edge."""
    reached: Ints = np.searchsorted(np.asarray(edges), values, side="right").astype(np.int64)
    return reached


def starts(counts: Ints) -> Ints:
    """Where each group begins when groups of these sizes are laid end to end."""
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)


def rank_in_group(counts: Ints) -> Ints:
    """0, 1, 2, … within each group when groups of these sizes are laid end to end."""
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts(counts), counts)


def text(words: Sequence[str], codes: Ints, null: Flags | None = None) -> pa.Array:
    """The words of these codes as an Arrow text column; NULL where `null` is set."""
    return pa.array(words, pa.string()).take(pa.array(codes, mask=null))


def integers(values: Ints, null: Flags | None = None, *, kind: pa.DataType | None = None) -> pa.Array:
    """An Arrow integer column (32 bits unless `kind` says otherwise); NULL where `null` is set."""
    return pa.array(values, mask=null).cast(kind or pa.int32())


def timestamps(seconds: Ints, null: Flags | None = None) -> pa.Array:
    """An Arrow timestamp column (microseconds, no zone) from seconds since 1970; NULL where `null` is set."""
    return pa.array(seconds * 1_000_000, mask=null).cast(pa.timestamp("us"))
