"""The attacks that compare with persons who were held out of the release: made once for a release, told by each.

What each of them does, and what its figure says, is in `sqldeid.tables.attacks.control`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqldeid.attacked import Achieved, percent
from sqldeid.errors import NoSolutionError
from sqldeid.sql.steps import as_needed
from sqldeid.stages import Step
from sqldeid.tables.attacks.base import HELD_BACK, Attack, Attacked
from sqldeid.tables.attacks.control import Controlled, GroupSuccess, attack_drawn, draw_persons
from sqldeid.tables.attacks.rates import Success

LEAST_PERSONS = 100
"""Persons below which nobody is held out: a fifth of fewer says nothing of an attack's success but that it is between
0 and a sixth, at best."""


def too_few(persons: int) -> bool:
    """Whether nobody of so many is held out."""
    return persons < LEAST_PERSONS


def control_of(attacked: Attacked) -> Controlled | str:
    """What the attacks with a control group achieve; or why they are not made."""
    if not attacked.anew:
        return "its levels are an earlier release's, which a release of fewer persons would not find"
    if not attacked.whole:
        return HELD_BACK
    if too_few(attacked.rows):
        return f"with fewer than {LEAST_PERSONS} persons a control group would be too small to compare with"
    if attacked.known is None:
        return "its classes are too many to be brought into the memory limit"
    if attacked.remake is None:
        return "beside a ledger nobody is held out of a release by local recoding"
    try:
        return attack_drawn(attacked.drawn or draw_persons(attacked.known()), attacked.remake, attacked.k)
    except NoSolutionError:
        return "there is no release of 80 % of the persons that meets the criteria"


@dataclass(frozen=True, slots=True)
class Held:
    """What one of these attacks achieves.

    Parameters
    ----------
    successes
        One, or one for each way or column.
    persons, held
        Who were released once more, and who were held out.
    sampled
        Whether these are drawn of more persons.
    """

    successes: tuple[Success, ...]
    persons: int
    held: int
    sampled: bool
    verb: str

    @property
    def said(self) -> str:
        """In a few words, for the summary: the attack that gains most, with its interval."""
        worst = max(self.successes, key=lambda s: (s.risk.value, s.main.value))
        shares = [percent(x) for x in (worst.risk.value, worst.risk.low, worst.risk.high or 0.0)]
        of = f" of {worst.column}" if worst.column else ""
        return f"{self.verb}{of}: risk {shares[0]} % ({shares[1]} to {shares[2]})"

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        found = {"persons": self.persons, "held_out": self.held, "sampled": self.sampled}
        if self.successes[0].attack.startswith("singling_out"):
            return {**found, **{_WAYS[s.attack]: s.to_dict() for s in self.successes}}
        if self.successes[0].attack == "linkability":
            return {**found, **self.successes[0].to_dict()}
        return {**found, "columns": [s.to_dict() for s in self.successes]}


_WAYS = {"singling_out": "by_class", "singling_out_with_values": "with_values"}
"""By what a person is singled out."""

_DONE = {
    "singling_out": "singling out by class finds",
    "singling_out_with_values": "singling out with values finds",
    "linkability": "linking finds",
}
"""What an attack without a column that it guesses does to a group."""


@dataclass(frozen=True, slots=True)
class Hit:
    """How the attacks succeed on groups of persons."""

    groups: tuple[GroupSuccess, ...]

    @property
    def said(self) -> str:
        """In a few words, for the summary: how far groups are apart; no data value."""
        apart: dict[tuple[str, str, str], list[float]] = {}
        for g in self.groups:
            apart.setdefault((g.attack, g.secret, g.column), []).append(g.main.value)
        (attack, secret, column), shares = max(apart.items(), key=lambda item: max(item[1]) - min(item[1]))
        low, high = percent(min(shares)), percent(max(shares))
        persons = f"{low} % of the persons" if low == high else f"{low} to {high} % of the persons, by {column}"
        return f"guesses of {secret} are right for {persons}" if secret else f"{_DONE[attack]} {persons}"

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return {"groups": [g.to_dict() for g in self.groups]}


def _left_out(attacked: Attacked, attacks: Sequence[str], nothing: str) -> str:
    found = attacked.control()
    if isinstance(found, str):
        return found
    return "" if found.of(*attacks) else nothing


def _make(attacked: Attacked, attacks: Sequence[str], verb: str) -> Achieved:
    found = attacked.control()
    if isinstance(found, str):
        raise ValueError(found)
    return Held(found.of(*attacks), found.persons, found.held, found.sampled, verb)


def left_out_groups(attacked: Attacked) -> str:
    """Why success is not told by group."""
    found = attacked.control()
    if isinstance(found, str):
        return found
    return "" if found.groups else "no value of a quasi-identifying column is shared by k persons"


def make_groups(attacked: Attacked) -> Achieved:
    """Success by group."""
    found = attacked.control()
    if isinstance(found, str):
        raise ValueError(found)
    return Hit(found.groups)


def drawing_steps() -> Iterator[Step]:
    """The statements that draw who is held out, and fold the others."""
    names = ("number_cells", "read_numbered", "split_persons", "keep_released", "read_part", "count_codes")
    yield from as_needed("tables/attacks/code_secret", "tables/fold/fold_classes")
    yield from as_needed(*(f"tables/attacks/{name}" for name in names), "tables/fold/spread_classes")


def comparing_steps() -> Iterator[Step]:
    """The statements of all these attacks on a release that was made once more."""
    names = (
        *("assign_node", "show_rows", "sign_persons", "number_lists", "gather_targets", "isolate_persons"),
        *("count_fitting", "guess_values", "sum_successes", "read_shown", "isolate_random", "match_random"),
    )
    yield from as_needed(*(f"tables/attacks/{name}" for name in names))


def held_out(name: str, attacks: Sequence[str], verb: str, nothing: str) -> Attack:
    """An attack with a control group; `drawing_steps` and `comparing_steps` tell the statements of all."""
    left_out = partial(_left_out, attacks=attacks, nothing=nothing)
    return Attack(name, left_out, partial(_make, attacks=attacks, verb=verb))
