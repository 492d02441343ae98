"""What attacks are made of: a source folded with the attacked columns, its persons parted, and a release of them.

Persons with equal quasi-identifying values and equal attacked values are alike to every attack here, so that all of it
is computed on the cells of a fold, on the bench: which of them are held out is drawn as numbers per cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.sql import identifier
from sqldeid.tables.fold.fold import Coded, Folded
from sqldeid.tables.model.coding import Coding
from sqldeid.tables.model.lattice import Node

HELD_OUT = 0.2
"""Share of the persons that are held out: the control group of Giomi et al. 2022."""

MOST_PERSONS = 1_000_000
"""Persons who are attacked at most: of more, so many are drawn, and the release is made of these."""

SEED = 20_220_619
"""Of the draw. It protects nothing, and a fixed one lets a figure be repeated."""


@dataclass(frozen=True, slots=True)
class Secret:
    """An attacked column: its name, its codes among the cells, and whether the release shows it."""

    name: str
    code: exp.Identifier
    released: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """A source as attacks see it.

    Parameters
    ----------
    bench, name
        Where the tables lie, and a name for those that are made.
    cells
        id, words, codes, n: persons by quasi-identifying and attacked values.
    secrets
        The attacked columns, by their codes.
    rows
        Persons of each cell, by id.
    """

    bench: Engine
    name: str
    coding: Coding
    columns: tuple[Coded, ...]
    cells: exp.Table
    secrets: tuple[Secret, ...]
    rows: Ints

    @property
    def words(self) -> list[exp.Identifier]:
        """Names of the words."""
        return [identifier(f"w{i}") for i in range(self.coding.words)]

    @property
    def codes(self) -> list[exp.Identifier]:
        """Names of the attacked columns' codes."""
        return [s.code for s in self.secrets]

    def split(self, parted: Parted) -> exp.Table:
        """The persons of a draw: words, codes, train, held."""
        counts = pa.table({"id": np.arange(len(self.rows)), "train": parted.train, "held": parted.held})
        put = self.bench.put(f"{self.name}_parted", counts)
        names = [*self.words, *self.codes]
        people = self.bench.make(
            "tables/attacks/split_persons", f"{self.name}_people", cells=self.cells, parted=put, names=names
        )
        self.bench.drop(put)
        return people


def known_of(folded: Folded, table: exp.Table, secrets: Sequence[Secret], bench: Engine, name: str) -> Known:
    """Number the cells of a fold.

    Parameters
    ----------
    table
        Words, codes and n, on the bench; it may have several rows of one cell.

    Raises
    ------
    JobError
        If its rows are not those of `folded`: the source has changed meanwhile.
    """
    words = [identifier(f"w{i}") for i in range(folded.coding.words)]
    names = [*words, *(s.code for s in secrets)]
    cells = bench.make("tables/attacks/number_cells", f"{name}_cells", folded=table, names=names)
    read = bench.ask("tables/attacks/read_numbered", cells=cells, names=names)
    rows = read.column("n").to_numpy().astype(np.int64)
    if int(rows.sum()) != folded.rows or any(read.column("uncoded").to_pylist()):
        raise JobError.at(
            f"tables.{name}",
            "the source gave other values when it was read again for its attacks; a source must not "
            "change while it is read (a view over random or current values?)",
        )
    return Known(bench, name, folded.coding, folded.columns, cells, tuple(secrets), rows)


@dataclass(frozen=True, slots=True)
class Parted:
    """Persons of each cell who are released, and who are held out; both of shape (cells,)."""

    train: Ints
    held: Ints

    @property
    def persons(self) -> tuple[int, int]:
        """How many are released, and how many held out."""
        return int(self.train.sum()), int(self.held.sum())


def part_persons(rows: Ints, held_out: float = HELD_OUT, most: int = MOST_PERSONS, seed: int = SEED) -> Parted:
    """Draw who is held out: each set of so many persons is equally likely, first of `most` if there are more.

    Parameters
    ----------
    rows
        Persons of each cell.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    there = rows if int(rows.sum()) <= most else _drawn(draw, rows, most)
    held = _drawn(draw, there, round(held_out * int(there.sum())))
    return Parted(there - held, held)


def _drawn(draw: np.random.Generator, rows: Ints, wanted: int) -> Ints:
    """How many of the wanted persons each cell has, where all sets of them are equally likely."""
    return np.asarray(draw.multivariate_hypergeometric(rows, wanted, method="marginals"), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Released:
    """A release of some persons.

    Parameters
    ----------
    nodes
        Its layers; of full-domain recoding one.
    assigned
        Words, layer (from 1 on, its place among the nodes) and class: the combinations that are released. Combinations
        that show equal labels are one class.
    """

    nodes: tuple[Node, ...]
    assigned: exp.Table


Remake = Callable[[exp.Table, int], Released]
"""Makes the release of a plan once more, of the persons `train` of a table as `Known.split` gives it, and their number.

Raises
------
NoSolutionError
    If there is none.
"""


def put_layers(known: Known, nodes: Sequence[Node], within: Sequence[int] | None = None) -> exp.Table:
    """The layers of a release: layer, and a mask for each word, of some columns (by place) or all."""
    kept = [c.field.mask(0) if within is None or i in within else 0 for i, c in enumerate(known.columns)]
    masks: list[list[int]] = []
    for node in nodes:
        words = [0] * known.coding.words
        for c, level, of in zip(known.columns, node, kept, strict=True):
            words[c.field.word] |= c.field.mask(level) & of
        masks.append(words)
    columns: dict[str, object] = {"layer": np.arange(1, len(nodes) + 1, dtype=np.int64)}
    for w in range(known.coding.words):
        columns[f"m{w}"] = np.array([of[w] for of in masks], dtype=np.int64)
    return known.bench.put(f"{known.name}_layers", pa.table(columns))


def masked(known: Known) -> list[dict[str, exp.Identifier]]:
    """Each word with its mask among the layers, as templates take them."""
    return [{"name": w, "mask": identifier(f"m{i}")} for i, w in enumerate(known.words)]
