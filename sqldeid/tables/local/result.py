"""What a release by local recoding tells of itself. Everything but `to_public` is for the data holder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from sqldeid.attacked import Attacks
from sqldeid.result import HOLDERS_ONLY, Code, Criterion, Risk
from sqldeid.traded import Tradeoff

LIMITS = (
    "one value is recoded differently from row to row; k is counted on equal labels, never on overlapping ones; "
    "whoever knows that levels are as low as neighbours allow learns something of finer values"
)
"""What is not promised, of every such release."""

CRITERIA_LIMITS = (
    "classes were formed by sensitive values, too: levels that are higher than k asks for tell that a finer class "
    "failed another criterion, which can give a sensitive value to whoever knows who is in the table"
)
"""Of releases with criteria beyond k, beside `LIMITS`."""

BY_K_LIMITS = (
    "levels were chosen by quasi-identifying values and k alone; a class of k and more that is missing failed another "
    "criterion"
)
"""Of such releases whose levels were chosen by k alone, beside `LIMITS`."""


@dataclass(frozen=True, slots=True)
class LayerResult:
    """One layer: the level of each quasi-identifying column, and for the data holder its rows and classes.

    Parameters
    ----------
    number
        As the column `recoding` and the table of layers tell it, from 1 on.
    rows, classes
        None where fewer than k rows are of this layer alone.
    """

    number: int
    node: Mapping[str, int]
    rows: int | None
    classes: int | None


@dataclass(frozen=True, slots=True)
class LocalColumn:
    """A released column.

    Parameters
    ----------
    levels
        Share of the released rows at each level, from 0 (as in the source) to the top.
    level_names
        What the levels are called.
    loss
        Its part of the loss "loss", from 0 to 1, suppressed rows included; for the data holder.
    shown
        What became of its values beside that.
    codes, more_codes
        Labels between level 0 and the top that released rows show, the most frequent ones, and whether there are more.
    top
        The text that cells show at the top; None where no row is there.
    """

    role: str
    height: int | None = None
    level_names: tuple[str, ...] | None = None
    levels: tuple[float, ...] | None = None
    hierarchy: str | None = None
    loss: float | None = None
    shown: str | None = None
    type: str | None = None
    codes: tuple[Code, ...] | None = None
    more_codes: bool | None = None
    top: str | None = None


@dataclass(frozen=True, slots=True)
class LocalRelease:
    """A table release whose classes each have levels of their own.

    Parameters
    ----------
    rows, released, suppressed, k, classes, criteria, risk, warnings, written, moved
        As of every table release: rows of the source, of the release, and of no class; the smallest class.
    loss
        "loss" and "prec", in which a suppressed row counts 1 in every column, whatever was minimised.
    bound, gap
        What no recoding of this kind can lose less than, in the loss that was minimised (`search["loss"]`), and how
        much more is lost.
    layers
        The nodes in use, by number.
    columns
        Share of rows by level of each.
    search
        ``method``, ``loss`` (the name), ``lattice_size``, ``combinations``, ``stopped`` (whether the time was over
        before the search came to its end), ``choose`` and ``suppressed_beyond_k`` where levels are chosen by k alone
        (the bound is of k then), ``seconds``, ``certificate`` (the file that it was written to).
    ledger
        How many rows the release ledger holds back for a later load; they count in `rows`, and as lost.
    hierarchies
        What the table is called that tells what labels say at each level; None where there is none.
    certificate
        The claim that `verify --certificate` proves anew; None where none was asked for.
    tradeoff
        What other k and limits cost, by one node for all rows and by local recoding, where a report was asked for.
    attacks
        What attackers achieve on it; None where the job asks for none.
    """

    name: str
    rows: int
    released: int
    suppressed: int
    k: int
    classes: int
    criteria: tuple[Criterion, ...]
    loss: Mapping[str, float]
    bound: float
    gap: float
    layers: tuple[LayerResult, ...]
    columns: Mapping[str, LocalColumn]
    risk: Mapping[str, Risk]
    search: Mapping[str, object]
    warnings: tuple[str, ...]
    recoding: bool = False
    hierarchies: str | None = None
    pseudonymised: tuple[str, ...] = ()
    suppression_limit: float | None = None
    unit: str = "person"
    moved: Mapping[str, int] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    ledger: Mapping[str, object] | None = None
    certificate: Mapping[str, object] | None = None
    tradeoff: Tradeoff | None = None
    attacks: Attacks | None = None
    kind: str = "table"
    method: str = "local"

    @property
    def limits(self) -> str:
        """What is not promised."""
        if len(self.criteria) == 1:
            return LIMITS
        return f"{LIMITS}; {BY_K_LIMITS if self.search.get('choose') == 'by-k' else CRITERIA_LIMITS}"

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        found = asdict(replace(self, certificate=None, attacks=None))
        del found["name"], found["certificate"], found["attacks"]
        if self.attacks is not None:
            found["attacks"] = self.attacks.to_dict()
        for name in ("pseudonymised", "ledger", "hierarchies", "tradeoff"):
            if not found[name]:
                del found[name]
        found["columns"] = {n: _told(c) for n, c in self.columns.items()}
        return {"kind": found.pop("kind"), **found, "limits": self.limits}

    def to_public(self) -> dict[str, object]:
        """What may go with the release: columns, layers and promises; no count, no loss, no share of rows."""
        hidden = (*HOLDERS_ONLY, "levels")
        columns = {n: {k: v for k, v in _told(c).items() if k not in hidden} for n, c in self.columns.items()}
        found: dict[str, object] = {
            "kind": self.kind,
            "method": self.method,
            "columns": columns,
            "layers": [{"number": layer.number, "node": dict(layer.node)} for layer in self.layers],
            "criteria": [
                {"name": c.name, "column": c.column, "asked": c.asked, "guarantee": c.guarantee} for c in self.criteria
            ],
            "recoding": self.recoding,
            "limits": self.limits,
            **({} if self.suppression_limit is None else {"suppression_limit": self.suppression_limit}),
            **({} if (more := self.search.get("criteria_limit")) is None else {"criteria_limit": more}),
        }
        if self.hierarchies is not None:
            found["hierarchies"] = self.hierarchies
        if self.pseudonymised:
            found |= {"pseudonymised": list(self.pseudonymised), "status": "pseudonymised, not anonymous"}
        return found

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for the terminal."""
        return list(self._facts())

    def _facts(self) -> Iterator[tuple[str, object]]:
        loss, left, source = str(self.search["loss"]), self.risk["release"], self.risk["source"]
        if self.pseudonymised:
            yield "Status", "pseudonymised, not anonymous"
        yield from shown_criteria(self.criteria)
        yield "Released", f"{self.released:,} of {self.rows:,} rows, in {self.classes:,} classes"
        yield "Suppressed", f"{self.suppressed:,} rows ({100 * self.suppressed / max(self.rows, 1):.1f} %)"
        if "suppressed_beyond_k" in self.search:
            yield (
                "Of these",
                f"{self.search['suppressed_beyond_k']:,} in classes of k and more that fail another criterion",
            )
        if self.ledger is not None:
            yield "Held back", f"{self.ledger['held_back']:,} rows for a later load, by the ledger"
        yield "Loss", told_loss(self.loss[loss], self.bound, loss)
        yield "Layers", f"{len(self.layers):,} of {self.search['lattice_size']:,} nodes are in use"
        for name, c in self.columns.items():
            if c.levels is not None:
                yield name, told_levels(c.levels)
        yield "Highest risk", f"{_odds(left.prosecutor)} for one {self.unit} (source: {_odds(source.prosecutor)})"
        yield "Average risk", f"{100 * left.marketer:.2f} % of all, by matching (source: {100 * source.marketer:.2f} %)"
        if self.attacks is not None:
            yield from self.attacks.facts()
        yield "Note", self.limits


def told_loss(loss: float, bound: float, name: str) -> str:
    """What is lost, and what must be lost at least, in a sentence."""
    of = "" if name == "loss" else f" ({name})"
    least = f"no recoding of this kind can lose less than {bound:.4g}"
    return f"loses {loss:.4g}{of}; {least}"


def told_levels(levels: Sequence[float]) -> str:
    """Shares of rows by level in a sentence."""
    shares = [f"{100 * share:.3g} % at level {x}" for x, share in enumerate(levels) if share]
    return ", ".join(shares) or "no row"


def shown_criteria(criteria: Sequence[Criterion]) -> Iterator[tuple[str, object]]:
    """Each criterion with what was asked and achieved."""
    for c in criteria:
        of = f"{c.column}: " if c.column else ""
        yield c.name, f"{of}{c.achieved:.4g} in the worst class ({c.asked:g} asked)"


def _odds(risk: float) -> str:
    return f"1 in {round(1 / risk):,}" if risk else "none"


def _told(column: LocalColumn) -> dict[str, object]:
    return {name: value for name, value in asdict(column).items() if value is not None}


@dataclass(frozen=True, slots=True)
class LocalVerified:
    """What a re-check counted.

    Parameters
    ----------
    layers
        Layers that are noted on the release.
    """

    rows: int
    released: int
    suppressed: int
    k: int
    classes: int
    sizes: Mapping[int, int]
    layers: int
    criteria: tuple[Criterion, ...] = ()

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for the terminal."""
        return [
            ("Rows", f"{self.released:,} of {self.rows:,} released, {self.suppressed:,} suppressed"),
            ("Classes", f"{self.classes:,} in {self.layers:,} layers, smallest {self.k}"),
            *shown_criteria(self.criteria),
        ]

    def to_dict(self) -> dict[str, object]:
        """The counts for JSON."""
        return asdict(self)
