"""Singling out, linkability and inference beside a control group that was held out of the release.

The release is made once more of 80 % of the persons, drawn at random. The attacker knows all quasi-identifying values
of a person. Of the persons who are in it (main) and of those who were held out (control) the same is asked:

- *singling out*: a predicate is read from each row of the release that no other row is like: "lies in this class" (and
  "has these values", for `singling_out_with_values`). It succeeds on a person who meets it while no other released
  person does. Of a held-out person it is asked whether nobody else would, had he gone into the release in exchange for
  another one. Counting persons and not predicates, groups of different size compare without a correction.
- *linkability*: the attacker has a person's quasi-identifying columns in two files, every other column in each, takes
  one row of the release that fits the one part and one that fits the other, and succeeds where it is the same row and
  the person's class.
- *inference*: of each attacked column the attacker guesses what most of the rows show in the classes that the person
  fits; where there are none, what most of the release shows.

A value fits a class where its label at the level of the class is the class's. The baseline guesses at random:
predicates whose columns are drawn independently, any two rows, the value of any row. The risk
(main - control)/(1 - control) is what the release tells of its own persons, beyond what it tells of everybody.

Does not say
    What follows from the distribution alone, which control persons share (`sqldeid.tables.attacks.disclosure`); what a
    reader gains who knows the algorithm. The release of all persons has larger classes than that of 80 % of them.

Source: Giomi et al. 2022 (the attacks' definitions), in code of its own; Wilson 1927 (intervals).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.attacked import Estimate, counted, sampled
from sqldeid.sql import identifier
from sqldeid.tables.attacks.known import SEED, Known, Parted, Released, Remake, masked, part_persons, put_layers
from sqldeid.tables.attacks.rates import Success

GUESSES = 1000
"""Random predicates of the baseline of singling out."""

FEW = 11
"""Persons below which a group is told together with others, as on the report's page."""

MOST_GROUPS = 50
"""Groups of a column that are told for each attack, those who are hit most: a column may have thousands of values."""

LOOKED_AT = 20_000_000
"""Cells by layers that random predicates are compared with, about; they keep to fewer layers where there are more."""


@dataclass(frozen=True, slots=True)
class GroupSuccess:
    """How an attack succeeds on those who share a value of a quasi-identifying column at its first level.

    Parameters
    ----------
    column, value
        The group; fewer than k persons, or `FEW`, of a value are told together, and left out where these are too few.
        Of more than `MOST_GROUPS` groups of a column those are told who are hit most, by their interval's lower end.
    attack, secret
        As `Success.attack` and `Success.column`.
    """

    column: str
    value: str
    attack: str
    secret: str
    main: Estimate

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        secret = {"secret": self.secret} if self.secret else {}
        return {
            "column": self.column,
            "value": self.value,
            "attack": self.attack,
            **secret,
            "main": self.main.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Controlled:
    """What the attacks with a control group achieve.

    Parameters
    ----------
    persons, held
        Who were released once more, and who were held out.
    sampled
        Whether these are drawn of more persons.
    """

    successes: tuple[Success, ...]
    groups: tuple[GroupSuccess, ...]
    persons: int
    held: int
    sampled: bool

    def of(self, *attacks: str) -> tuple[Success, ...]:
        """The successes of some attacks, by their names."""
        return tuple(s for s in self.successes if s.attack in attacks)


@dataclass(frozen=True, slots=True)
class _Attack:
    """An attack, where its success stands among the targets, and of what."""

    name: str
    secret: str
    number: int
    parameters: dict[str, object] = field(default_factory=dict)

    @property
    def rate(self) -> dict[str, exp.Identifier]:
        return {"main": identifier(f"p{self.number}"), "control": identifier(f"q{self.number}")}


@dataclass(frozen=True, slots=True)
class Drawn:
    """The persons of a source, some of them held out: how many of each cell, and as a table (`Known.split`)."""

    known: Known
    parted: Parted
    people: exp.Table


def attack_with_control(known: Known, remake: Remake, k: int, *, seed: int = SEED) -> Controlled:
    """Make the release once more without the control group, and attack it.

    Cost: the release once more, without reading the source; then about 15 statements over the cells.

    Raises
    ------
    NoSolutionError
        If there is no such release of 80 % of the persons.
    """
    return attack_drawn(draw_persons(known, seed), remake, k, seed)


def draw_persons(known: Known, seed: int = SEED) -> Drawn:
    """Draw who is held out."""
    parted = part_persons(known.rows, seed=seed)
    return Drawn(known, parted, known.split(parted))


def attack_drawn(drawn: Drawn, remake: Remake, k: int, seed: int = SEED) -> Controlled:
    """`attack_with_control` where persons are drawn; random guesses have the same seed."""
    known, people = drawn.known, drawn.people
    made = remake(people, drawn.parted.persons[0])
    shown = known.bench.make(
        "tables/attacks/show_rows",
        f"{known.name}_shown",
        people=people,
        assigned=made.assigned,
        words=known.words,
        codes=known.codes,
    )
    return attack_shown(drawn, made, shown, k, seed)


def attack_shown(drawn: Drawn, made: Released, shown: exp.Table, k: int, seed: int = SEED) -> Controlled:
    """Attack rows that a release shows (`tables/attacks/show_rows` says their form)."""
    known, (persons, held) = drawn.known, drawn.parted.persons
    layers = put_layers(known, made.nodes)
    lists, targets = _targets(drawn, shown, layers)
    attacks = list(_attacks(drawn, made, shown, lists, targets))
    found = _successes(known, targets, attacks)
    whole, baselines = found[-1][0], dict(_baselines(drawn, made, shown, layers, attacks, seed))
    successes = tuple(
        Success(
            a.name,
            a.secret,
            sampled(float(whole[f"p{a.number}"]), persons),
            sampled(float(whole[f"q{a.number}"]), held),
            baselines[a.number],
        )
        for a in attacks
    )
    groups = tuple(_groups(known, found, attacks, k))
    return Controlled(successes, groups, persons, held, persons + held < int(known.rows.sum()))


def _targets(drawn: Drawn, shown: exp.Table, layers: exp.Table) -> tuple[exp.Table, exp.Table]:
    """Lists of classes, and the persons by the list that they fit."""
    known, people = drawn.known, drawn.people
    bench, words = known.bench, known.words
    signed = bench.make(
        "tables/attacks/sign_persons",
        f"{known.name}_signed",
        people=people,
        shown=shown,
        layers=layers,
        words=masked(known),
    )
    lists = bench.make("tables/attacks/number_lists", f"{known.name}_lists", signed=signed)
    targets = bench.make(
        "tables/attacks/gather_targets",
        f"{known.name}_targets",
        people=people,
        signed=signed,
        words=words,
        codes=known.codes,
    )
    bench.drop(signed)
    return lists, targets


def _attacks(drawn: Drawn, made: Released, shown: exp.Table, lists: exp.Table, targets: exp.Table) -> Iterator[_Attack]:
    """Each attack with its table of successes."""
    known, number = drawn.known, 0
    bench = known.bench
    values = [s.code for s in known.secrets if s.released]
    for name, codes in (("singling_out", []), ("singling_out_with_values", values)):
        if name == "singling_out" or codes:
            isolated = bench.make(
                "tables/attacks/isolate_persons",
                f"{known.name}_isolated",
                shown=shown,
                lists=lists,
                targets=targets,
                codes=codes,
                persons=drawn.parted.persons[0],
            )
            yield _Attack(name, "", number, {"table": isolated, "alias": identifier(f"a{number}"), "codes": codes})
            number += 1
    if len(known.columns) > 1:
        parts = (None, range(0, len(known.columns), 2), range(1, len(known.columns), 2))
        tables = [_counted(drawn, made, shown, of) for of in parts]
        named = dict(zip(("table", "first", "second"), tables, strict=True))
        aliases = {name: identifier(f"{name}{number}") for name in ("both", "one", "other")}
        yield _Attack("linkability", "", number, {**named, **aliases})
        number += 1
    for secret in known.secrets:
        guessed = bench.make(
            "tables/attacks/guess_values", f"{known.name}_guessed", shown=shown, lists=lists, code=secret.code
        )
        alias = identifier(f"a{number}")
        yield _Attack("inference", secret.name, number, {"table": guessed, "alias": alias, "code": secret.code})
        number += 1


def _counted(drawn: Drawn, made: Released, shown: exp.Table, within: Sequence[int] | None) -> exp.Table:
    known = drawn.known
    layers = put_layers(known, made.nodes, within)
    counted = known.bench.make(
        "tables/attacks/count_fitting",
        f"{known.name}_counted",
        people=drawn.people,
        shown=shown,
        layers=layers,
        words=masked(known),
    )
    known.bench.drop(layers)
    return counted


_KINDS = {
    "singling_out": "singled",
    "singling_out_with_values": "singled",
    "linkability": "linked",
    "inference": "inferred",
}

Counted = dict[int, list[dict[str, float]]]


def _successes(known: Known, targets: exp.Table, attacks: Sequence[_Attack]) -> Counted:
    """Successes by column and value at its first level; -1 over all."""
    by_kind: dict[str, list[dict[str, object]]] = {kind: [] for kind in _KINDS.values()}
    for a in attacks:
        by_kind[_KINDS[a.name]].append({**a.rate, **a.parameters})
    groups: list[dict[str, object]] = [{"number": -1, "word": None, "mask": 0}]
    for i, c in enumerate(known.columns):
        mask = c.field.mask(min(1, c.hierarchy.height - 1))
        groups.append({"number": i, "word": known.words[c.field.word], "mask": mask})
    read = known.bench.rows(
        "tables/attacks/sum_successes",
        targets=targets,
        words=known.words,
        rates=[a.rate for a in attacks],
        groups=groups,
        **by_kind,
    )
    found: Counted = {}
    for row in read:
        found.setdefault(int(row["number"]), []).append(row)
    return found


def _groups(known: Known, found: Counted, attacks: Sequence[_Attack], k: int) -> Iterator[GroupSuccess]:
    """Success by value; what fewer than k persons, or `FEW`, have is told together, and not at all where it is few."""
    least = max(k, FEW)
    for i, c in enumerate(known.columns):
        level = min(1, c.hierarchy.height - 1)
        labels = dict(zip(c.prefixes(level).tolist(), c.qi.labels(c.hierarchy, level), strict=True))
        rows: dict[str, list[dict[str, float]]] = {}
        for row in sorted(found[i], key=lambda r: r["prefix"]):
            label = labels[int(row["prefix"])]
            shown = "NULL" if label is None else str(label)
            few = row["train"] < least
            rows.setdefault(f"(values of fewer than {least} persons)" if few else shown, []).append(row)
        told = {v: mine for v, mine in rows.items() if sum(r["train"] for r in mine) >= least}
        shares = [_rates(told, a) for a in attacks]
        hit = [_most_hit(of) for of in shares]
        for value in told:
            for a, of, most in zip(attacks, shares, hit, strict=True):
                if value in most:
                    yield GroupSuccess(c.qi.name, value, a.name, a.secret, of[value])


def _most_hit(shares: Mapping[str, Estimate]) -> set[str]:
    """The values whose persons an attack succeeds on most."""
    return set(sorted(shares, key=lambda value: (-shares[value].low, value))[:MOST_GROUPS])


def _rates(told: Mapping[str, Sequence[dict[str, float]]], attack: _Attack) -> dict[str, Estimate]:
    """How often an attack succeeds, by the value that persons share."""
    name = f"p{attack.number}"
    return {
        value: sampled(float(sum(r[name] for r in rows)), int(sum(r["train"] for r in rows)))
        for value, rows in told.items()
    }


def _baselines(
    drawn: Drawn, made: Released, shown: exp.Table, layers: exp.Table, attacks: Sequence[_Attack], seed: int
) -> Iterator[tuple[int, Estimate]]:
    """How often random guesses are right, by attack."""
    known = drawn.known
    read = known.bench.ask("tables/attacks/read_shown", shown=shown, names=[*known.words, *known.codes])
    of = {name: read.column(name).to_numpy().astype(np.int64) for name in read.column_names}
    rows, draw = int(of["n"].sum()), np.random.Generator(np.random.PCG64(seed + 1))
    for a in attacks:
        if a.name == "linkability":
            yield a.number, counted(1, rows)
        elif a.name == "inference":
            code = a.parameters["code"]
            row = known.bench.row("tables/attacks/match_random", people=drawn.people, shown=shown, code=code)
            yield a.number, counted(float(row["right"] or 0.0), int(row["tried"]))
        else:
            codes = a.parameters["codes"]
            names = [c.name for c in known.codes if isinstance(codes, list) and c in codes]
            yield (
                a.number,
                sampled(_random_predicates(drawn, made, layers, of, names, draw), GUESSES if rows else 0),
            )


def _random_predicates(
    drawn: Drawn,
    made: Released,
    layers: exp.Table,
    of: dict[str, Ints],
    codes: Sequence[str],
    draw: np.random.Generator,
) -> int:
    """How many of the random predicates exactly one released person meets."""
    known = drawn.known
    rows = int(of["n"].sum())
    if not rows:
        return 0
    until = np.cumsum(of["n"])

    def picked(size: int) -> Ints:
        return np.asarray(np.searchsorted(until, draw.integers(0, rows, size), side="right"))

    most = max(1, LOOKED_AT // max(len(known.rows), 1))
    places = of["layer"][picked(most)] if most < GUESSES else of["layer"][picked(GUESSES)]
    layer = places[draw.integers(0, len(places), GUESSES)]
    levels = np.array(made.nodes, dtype=np.int64).reshape(len(made.nodes), len(known.columns))[layer - 1]
    words = np.zeros((known.coding.words, GUESSES), dtype=np.int64)
    for i, c in enumerate(known.columns):
        masks = np.array([c.field.mask(x) for x in range(c.hierarchy.height)], dtype=np.int64)
        words[c.field.word] |= of[f"w{c.field.word}"][picked(GUESSES)] & masks[levels[:, i]]
    guesses = {"guess": np.arange(GUESSES), "layer": layer, **{f"w{i}": w for i, w in enumerate(words)}}
    guesses |= {name: of[name][picked(GUESSES)] for name in codes}
    put = known.bench.put(f"{known.name}_random", pa.table(guesses))
    row = known.bench.row(
        "tables/attacks/isolate_random",
        people=drawn.people,
        layers=layers,
        random=put,
        words=masked(known),
        codes=[identifier(name) for name in codes],
    )
    known.bench.drop(put)
    return int(row["isolated"])
