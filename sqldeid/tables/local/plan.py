"""What local recoding of a table will do: the plan of a table release, and what each class is released by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from sqldeid import job as jobfile
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.job.local_rules import HIERARCHIES, LAYERS, RECODING, ROLLED_UP
from sqldeid.tables.criteria import known
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.choosing import by_k
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.plan.plan import plan as plan_table

PROMISE = "each class at the lowest levels that its neighbours allow, with a proven bound of what must be lost"


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """A table release by local recoding, resolved against the catalogue.

    Parameters
    ----------
    table
        Columns, source and criteria, as those of every table release.
    layers
        Most nodes in use; None: as many as lose least.
    recoding
        Whether each row tells its layer.
    roll_up
        The common level of each column that a table beside the release has at one; empty where there is none.
    hierarchies
        Whether a table beside the release tells what its labels say at each level.
    """

    way: ClassVar[Literal["local"]] = "local"
    table: TablePlan
    layers: int | None = None
    recoding: bool = False
    roll_up: Mapping[str, int] = field(default_factory=dict)
    hierarchies: bool = False

    @property
    def name(self) -> str:
        """The release's name."""
        return self.table.name

    @property
    def key(self) -> str:
        """Where the job asks for it."""
        return self.table.key

    @property
    def layers_name(self) -> str:
        """What the table of layers is called, which stands beside the release where rows tell their layer."""
        return f"{self.name}{LAYERS}"

    @property
    def rolled_up_name(self) -> str:
        """What the table of rows at common levels is called."""
        return f"{self.name}{ROLLED_UP}"

    @property
    def hierarchies_name(self) -> str:
        """What the table is called that tells what labels say."""
        return f"{self.name}{HIERARCHIES}"

    @property
    def beside(self) -> tuple[str, ...]:
        """The tables that stand beside the release."""
        return (
            *((self.layers_name,) if self.recoding else ()),
            *((self.rolled_up_name,) if self.roll_up else ()),
            *((self.hierarchies_name,) if self.hierarchies else ()),
        )

    @property
    def released(self) -> list[str]:
        """Names of the released columns, in order."""
        return [*(c.name for c in self.table.released), *([RECODING] if self.recoding else [])]

    def typed(self, nodes: Sequence[Node]) -> list[bool]:
        """For each quasi-identifying column, whether it keeps its type: released as it is in all layers.

        Where levels are mixed, and where the job asks for text, labels are text on every level.
        """
        finest = [max((node[i] for node in nodes), default=0) == 0 for i in range(len(self.table.qis))]
        return [fine and q.typed and not self.table.text for fine, q in zip(finest, self.table.qis, strict=True)]

    def facts(self) -> Iterator[tuple[str, object]]:
        """What must hold, and how classes are found, line by line for `--plan`."""
        plan, demands, search = self.table, self.table.demands, self.table.search
        size = plan.lattice.size
        yield "Lattice", f"{size:,} node{'s' * (size != 1)}, of which each class takes the one that fits it"
        yield "K-anonymity", f"k = {demands.k}"
        for c in plan.criteria:
            yield known(c).name.capitalize(), f"{c.words.told}, of {c.column}"
        if (hidden := plan.concealing) is not None:
            stated = ", ".join(f"{name} ({p:g})" for name, p in hidden.known) or "nothing more"
            yield hidden.name.capitalize(), f"m = {hidden.asked:g}; known with probability: {stated}"
        yield "Suppression", f"at most {100 * demands.suppression_limit:g} % of the rows"
        if by_k(plan):
            yield "Levels", f"by k alone; at most {100 * (demands.criteria_limit or 0):g} % more for other criteria"
        limits = [
            *([f"at most {self.layers} layers"] if self.layers is not None else []),
            *([f"time limit {search.time_limit:g}"] if search.time_limit is not None else []),
        ]
        yield "Search", ", ".join([f"local, least {search.loss}", *limits])
        yield "Promise", PROMISE


def plan(name: str, part: jobfile.Table, engine: Engine, folder: Path) -> LocalPlan:
    """Resolve one release; no data is read.

    Raises
    ------
    JobError
        If a table, column or hierarchy is not there or not fit.
    """
    table = plan_table(name, part, engine, folder)
    levels = common_levels(part.roll_up, table.qis, table.key)
    planned = LocalPlan(table, part.search.layers, part.recoding, levels, part.hierarchies)
    stacked = [c.name for c in planned.table.released if c.name.casefold() == RECODING]
    if planned.recoding and stacked:
        key = f"{planned.key}.{RECODING}"
        raise JobError.at(key, f"the release has a column {RECODING} already; call it otherwise, or leave this key out")
    return planned


def common_levels(named: Mapping[str, int | str], qis: Sequence[QuasiIdentifier], key: str) -> dict[str, int]:
    """The common level of each column that the job names, by number or by the level's name.

    Raises
    ------
    JobError
        If a column is not quasi-identifying, or has no such level.
    """
    own = {q.name: q for q in qis}
    found = {}
    for name, level in named.items():
        if name not in own:
            raise JobError.at(f"{key}.roll_up.{name}", f"is no quasi-identifying column; it has {', '.join(own)}")
        names = own[name].hierarchy.level_names
        at = names.index(level) if level in names else level
        if not isinstance(at, int) or not 0 <= at < len(names):
            levels = ", ".join(f"{x} ({n})" for x, n in enumerate(names))
            raise JobError.at(f"{key}.roll_up.{name}", f"the hierarchy has no such level; it has {levels}")
        found[name] = at
    return found
