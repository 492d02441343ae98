"""Clusters of parts by MinHash signatures and leaders, in SQL: deterministic, and fit for a million parts.

The different sets of shingles are ranked by frequency; the first K lead a cluster each, and every other set joins the
leader with the best agreement of signatures, which is looked for among those that share a band of the signature.

Source: Shaked & Rokach 2016, §2.2, definition 3; events.md, *Pipeline*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.job.events import Clusters as Asked
from sqldeid.sql import identifier

BAND_ROWS = (8, 5, 3, 1)
"""Rows of a band, round by round: near leaders are found first, far ones later."""


@dataclass(frozen=True, slots=True)
class Clustered:
    """Parts with their clusters.

    Parameters
    ----------
    clustered
        Table: part, set_number, cluster (template ``cluster_parts``).
    members, signed, ranked
        Tables of the different sets: what is in them, their signatures, their frequency.
    parts, sets, clusters
        How many there are.
    sizes
        Number of clusters by number of parts.
    """

    clustered: exp.Table
    members: exp.Table
    signed: exp.Table
    ranked: exp.Table
    parts: int
    sets: int
    clusters: int
    sizes: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Hash:
    name: exp.Identifier
    number: int


@dataclass(frozen=True, slots=True)
class _Band:
    number: int
    names: tuple[exp.Identifier, ...]


def cluster_parts(name: str, split: exp.Table, asked: Asked, engine: Engine) -> Clustered:
    """Cluster the parts of a table of ``split_events``."""
    run = _Run(name, engine)
    shingles = run.make("events/make_shingles", "shingles", split=split, later=list(range(1, asked.shingle)))
    coded = run.make("events/code_shingles", "coded", shingles=shingles)
    keyed = run.make("events/key_parts", "keyed", shingles=shingles, coded=coded)
    ranked = run.make("events/rank_sets", "ranked", keyed=keyed)
    members = run.make("events/list_members", "members", ranked=ranked, shingles=shingles, coded=coded)
    hashes = [_Hash(identifier(f"h{i}"), i) for i in range(asked.hashes)]
    hashed = run.make("events/hash_shingles", "hashed", coded=coded, hashes=hashes)
    names = tuple(h.name for h in hashes)
    signed = run.make("events/sign_sets", "signed", members=members, hashed=hashed, hashes=names)
    parts, sets = run.count(keyed), run.count(ranked)
    leaders = min(ceil(asked.share * parts), sets)
    clusters = run.make("events/start_clusters", "clusters", ranked=ranked, leaders=leaders)
    for rows in BAND_ROWS:
        if run.count(clusters) == sets:
            break
        _join_round(run, clusters, signed, names, leaders, rows)
    engine.run("events/join_rest", clusters=clusters, ranked=ranked)
    clustered = run.make("events/cluster_parts", "clustered", keyed=keyed, ranked=ranked, clusters=clusters)
    sizes = engine.rows("events/count_clusters", clustered=clustered)
    for table in (shingles, coded, keyed, hashed, clusters):
        engine.drop(table)
    return Clustered(
        clustered, members, signed, ranked, parts, sets, leaders, {row["size"]: row["clusters"] for row in sizes}
    )


def _join_round(
    run: _Run, clusters: exp.Table, signed: exp.Table, names: tuple[exp.Identifier, ...], leaders: int, rows: int
) -> None:
    bands = [_Band(b, names[b * rows : (b + 1) * rows]) for b in range(len(names) // rows)]
    banded = run.make("events/band_sets", "banded", signed=signed, clusters=clusters, leaders=leaders, bands=bands)
    run.engine.run(
        "events/join_clusters", clusters=clusters, banded=banded, signed=signed, leaders=leaders, hashes=names
    )
    run.engine.drop(banded)


@dataclass(frozen=True, slots=True)
class _Run:
    """The engine, and whose tables are made."""

    name: str
    engine: Engine

    def make(self, template: str, table: str, **parameters: object) -> exp.Table:
        """Make a temporary table of whose tables are made."""
        return self.engine.make(template, f"{self.name}_{table}", **parameters)

    def count(self, table: exp.Table) -> int:
        """Rows of a table."""
        rows: int = self.engine.row("engine/count_rows", table=table)["rows"]
        return rows
