"""A result as a short summary for the custodian's terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sqldeid.report.text import cell, count, facts, number, plain, print_table, put, share, table
from sqldeid.report.words import binned, not_protected
from sqldeid.result import ColumnResult, Criterion, Measured, Persons, Result, Risk, TableRelease, Told

RELEASED = ("sensitive", "insensitive")
LONGEST_BAR = 30
HEAD = "For the data holder only: these counts are statistics about people."


def print_result(
    result: Result,
    to: Console,
    *,
    database: str,
    job: str,
    verbose: bool = False,
    given: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Print what was released, what it cost, and what to look at next.

    Parameters
    ----------
    database, job
        As the user named them, for the commands to run next.
    verbose
        Whether the promises are printed in words.
    given
        Options of the run that its checks need as well, with their values: `--only` for all, others for verify.
    """
    put(to, HEAD, style="dim")
    for release in result.releases.values():
        _print_head(release.name, release.written, to)
        if isinstance(release, TableRelease):
            _print_release(release, to, verbose)
        else:
            print_table(facts(release.facts()), to)
    print_warnings((*(w for r in result.releases.values() for w in r.warnings), *result.warnings), to)
    print_rules(result.house_rules, to)
    to.print()
    to.print(f"Done in {result.seconds:.1f} s. Next:")
    asked = [f"{option} {quote(plain(value))}" for option, values in (given or {}).items() for value in values]
    only = [option for option in asked if option.startswith("--only ")]
    source = f"{quote(plain(database))} --job {quote(plain(job))}"
    left = "the risk that is left"
    if any(release.kind == "child" for release in result.releases.values()):  # an assessment does not count items
        left += " from who knows none of the items"
    print_commands(
        [
            (" ".join(["sqldeid verify", source, *asked]), "check the release again, independently"),
            *([(" ".join(["sqldeid assess", source, *only, "--release"]), left)] if result.tables else []),
        ],
        to,
    )


def _print_head(name: str, written: Iterable[str], to: Console) -> None:
    to.print()
    put(to, Text(plain(name), style="bold"), " → ", plain(", ".join(written)))


def _print_release(release: TableRelease, to: Console, verbose: bool) -> None:
    print_table(_columns(release.columns), to)
    print_table(facts(list(_facts(release))), to)
    if release.released:
        k = next((int(c.asked) for c in release.criteria if c.name == "k-anonymity"), None)
        print_table(_sizes(release.risk["release"], k, to), to)
    if verbose:
        to.print()
        for criterion in release.criteria:
            put(to, f"{criterion.name}: {criterion.guarantee}", style="dim")


def _columns(columns: Mapping[str, ColumnResult]) -> Table:
    made = table("Column", "Level", "Shown as", "Loss", right=(3,))
    for name, c in columns.items():
        if c.level is not None and c.height is not None:
            loss = "" if c.loss is None else f"{c.loss:.3f}"
            made.add_row(cell(name), cell(f"{c.level} of {c.height - 1}"), cell(_level(c)), cell(loss))
        else:
            shown = c.shown or ("as in the source" if c.role in RELEASED else "not released")
            made.add_row(cell(name), cell("-", "dim"), cell(f"{shown} ({c.role})", "dim"), "")
    return made


def _sizes(risk: Risk, k: int | None, to: Console) -> Table:
    """Rows of the release by the size of their class, as bars; signs of plain text where they go to no terminal."""
    rows = [(b.label, b.rows) for b in binned(risk.class_sizes, k) if b.rows]
    total, most = sum(n for _, n in rows), max((n for _, n in rows), default=1)
    sign = "█" if to.is_terminal and to.encoding.startswith("utf") else "#"
    longest = max(4, min(LONGEST_BAR, to.width - 36))
    many = risk.rows is not None
    made = table(
        "Persons in a class" if many else "Rows in a class", "of them" if many else "of all rows", "", right=(1,)
    )
    for label, n in rows:
        made.add_row(
            cell(label), cell(f"{100 * n / total:.1f} %"), cell(sign * max(1, round(longest * n / most)), "cyan")
        )
    return made


def _level(c: ColumnResult) -> str:
    """What the values are now; `level 1` says no more than its number."""
    if c.height is not None and c.level == c.height - 1:
        return "one value (top)"
    named = not str(c.level_name).startswith("level ")
    level = str(c.level_name) if named else f"by {c.hierarchy}"
    if c.level and str(c.hierarchy).startswith("bands "):
        level = f"bands of {level}"
    return f"{level}, {c.shown}" if c.shown else level


def _facts(release: TableRelease) -> Iterable[tuple[str, object]]:
    search, source, left = release.search, release.risk["source"], release.risk["release"]
    if release.linked:
        others = ", ".join(plain(str(name)) for name in release.linked["with"])
        yield "Linked with", f"{others}: the criteria hold on the join, and all figures here are of it"
    if release.pseudonymised:
        yield "Status", "pseudonymised, not anonymous"
    yield from _criteria(release.criteria)
    classes = count(release.classes, "class", "classes")
    yield "Released", f"{release.released:,} of {count(release.rows, 'row')}, in {classes}"
    beyond = search.suppressed_beyond_k
    of_these = "" if beyond is None else f", {beyond:,} of them in classes of k and more"
    yield "Suppressed", f"{count(release.suppressed, 'row')} ({share(release.suppressed, release.rows)}){of_these}"
    yield from _persons(release.persons)
    if release.ledger is not None and "held_back" in release.ledger:
        yield "Held back", f"{count(int(str(release.ledger['held_back'])), 'row')} for a later load, by the ledger"
    if release.followed is not None:
        lost = f"{count(int(release.followed['lost_of_table']), 'row')} of persons without released series"
        series = f"series.{plain(str(release.followed['series']))}"
        yield "Lost to the link", f"{lost} ({series})"
        yield (
            "With its series",
            f"at least {release.followed['smallest']:,} persons share all that both show ({series})",
        )
        for c in release.followed.get("criteria", ()):
            of = f" of {plain(str(c['column']))}" if c["column"] else ""
            yield "With its series", f"{c['name']} {c['achieved']:,g}{of} ({series})"
    name = "Loss" if search.loss == "loss" else f"Loss ({search.loss})"
    counts = search.loss in ("loss", "payout")
    uncounted = "" if counts or not release.suppressed else "; suppressed rows are not counted in it"
    if search.chosen_loss is None:
        yield name, f"{number(release.loss[search.loss])}, {_proof(release)}{uncounted}"
    else:
        yield name, f"{number(release.loss[search.loss])}, with all that is suppressed"
        yield "Node", f"by k alone: loss {number(search.chosen_loss)}, {_proof(release)}"
    yield "Search", f"{search.checks:,} of {count(search.lattice_size, 'node')} checked ({search.method})"
    yield "Highest risk", f"{_odds(left.prosecutor)} for one {release.unit} (source: {_odds(source.prosecutor)})"
    yield "Average risk", f"{share(left.marketer, 1)} of all, by matching (source: {share(source.marketer, 1)})"
    if release.attacks is not None:
        yield from release.attacks.facts()


def _persons(found: Persons | None) -> Iterable[tuple[str, object]]:
    """The persons, where one may have many rows."""
    if found is None:
        return
    left = found.persons - found.lost
    yield (
        "Persons",
        f"{left:,} of {count(found.persons, 'person')} have a released row, {found.partly:,} not all of theirs",
    )
    if found.k:
        yield "Smallest class", f"rows of {count(found.k, 'person')}"
        yield "Greatest share", f"{share(found.greatest_share, 1)} of the rows of a class are one person's"


def _criteria(criteria: Iterable[Criterion]) -> Iterable[tuple[str, object]]:
    for criterion in criteria:
        if criterion.name == "epsilon-safe":
            yield criterion.name.capitalize(), f"epsilon {criterion.asked:,g}, delta {criterion.achieved:.3g}"
            continue
        column = f" of {plain(criterion.column)}" if criterion.column else ""
        against = _against(criterion.against_released)
        yield criterion.name.capitalize(), f"{criterion.achieved:,g}{column} (asked: {_asked(criterion)}){against}"


def _asked(criterion: Criterion | Measured) -> str:
    """The number asked for; of recursive l-diversity that is c, which the most frequent value stays below."""
    not_protected(criterion.name)  # a criterion that is not known here raises
    return f"{'below ' if 'recursive' in criterion.name else ''}{criterion.asked:,g}"


def _against(released: float | None) -> str:
    """t-closeness as a reader of the release sees it."""
    return "" if released is None else f"; {released:.4g} against the released rows"


def _odds(risk: float) -> str:
    """A risk that is one by a class size."""
    return f"1 in {round(1 / risk):,}" if risk else "none"


def _proof(release: TableRelease) -> str:
    if release.search.optimal:
        return "the least possible (proven)"
    if release.search.method == "epsilon-safe":
        return "of a node that was drawn"
    return f"not proven least: at most {number(release.search.gap)} too high"


def print_warnings(warnings: Iterable[str], to: Console) -> None:
    """Print each warning once."""
    found = list(dict.fromkeys(warnings))
    if found:
        to.print()
    for warning in found:
        put(to, Text("Warning: ", style="yellow"), plain(warning))


def print_commands(commands: Iterable[tuple[str, str]], to: Console) -> None:
    """Print commands to run next, whole on a line, so that they can be copied, and what each is for."""
    for command, purpose in commands:
        to.print(f"  {command}", soft_wrap=True)
        to.print(f"      {purpose}", style="dim")


def print_risk(found: Mapping[str, Risk], to: Console, *, released: bool) -> None:
    """Print class sizes and re-identification risk of sources or releases, by name."""
    put(to, HEAD, style="dim")
    for name, risk in found.items():
        rows = risk.rows or sum(size * classes for size, classes in risk.class_sizes)
        classes = sum(classes for _, classes in risk.class_sizes)
        to.print()
        put(to, Text(plain(name), style="bold"), ": the release" if released else ": the source")
        size = f"{rows:,} in {count(classes, 'class', 'classes')}"
        print_table(facts([("Rows", size), *_risk_facts(risk, rows), *_criteria_facts(risk)]), to)


def _risk_facts(risk: Risk, rows: int) -> Iterable[tuple[str, object]]:
    sizes, many = [size for size, _ in risk.class_sizes], risk.rows is not None
    of, one = (" persons" if many else ""), "row" if risk.counted == "rows" else "person"
    if sizes:
        yield "Class sizes", f"{min(sizes):,} to {max(sizes):,}{of}"
    for limit, n in risk.rows_below.items():
        alone = "Of one person" if many else "Unique rows"
        label = alone if limit == 2 else f"In classes < {limit}"
        yield label, f"{n:,} {'rows ' if many else ''}({share(n, rows)})"
    if risk.greatest_share is not None:
        yield "Greatest share", f"{share(risk.greatest_share, 1)} of the rows of a class are one person's"
    yield "Prosecutor", f"{_odds(risk.prosecutor)}: highest risk of a {one} known to be in the table"
    same = ", taken as the prosecutor's (no population table)" if risk.journalist_is_prosecutor else ""
    same += ", by the sum of weights, an estimate" if any("by weights" in c.name for c in risk.criteria) else ""
    yield "Journalist", f"{_odds(risk.journalist)}: highest risk of a {one} not known to be in it{same}"
    yield "Marketer", f"{share(risk.marketer, 1)} of the rows would be re-identified by matching everybody"
    for u in risk.uniqueness:
        by = u.estimator if u.chosen is None else f"{u.estimator}, which took {u.chosen}"
        chance = f"{share(u.low, 1)} to {share(u.high, 1)} by chance of sampling"
        yield f"Alone, {by}", f"{share(u.share, 1)} of the population, estimated ({chance})"


def _criteria_facts(risk: Risk) -> Iterable[tuple[str, object]]:
    """The job's criteria beyond k as a table achieves them."""
    for c in risk.criteria:
        of = f" of {plain(c.column)}" if c.column else ""
        achieved = "no figure" if c.achieved is None else f"{c.achieved:.4g}"
        met = "met" if c.met else "not met"
        yield c.name, f"{achieved}{of} (asked: {_asked(c)}; {met}){_against(c.against_released)}"
    if risk.one_over_m is not None:
        known = ", ".join(plain(name) for name in risk.worst_state)
        worst = f"who knows {known}, too, adds most" if known else "who knows no more columns adds most"
        yield "1/m", f"{risk.one_over_m:.5g}; to the highest risk, {worst}"


class Recheck(Protocol):
    """What a re-check counted: rows of the source, released and suppressed ones, smallest class, classes."""

    @property
    def rows(self) -> int:
        """Rows of the source."""

    @property
    def released(self) -> int:
        """Rows of the release."""

    @property
    def suppressed(self) -> int:
        """Rows of classes that fail."""

    @property
    def sampled(self) -> bool:
        """Whether a secret sample was released, so that nobody can say which rows it suppressed."""

    @property
    def linked(self) -> tuple[str, ...]:
        """The releases of whose join all is counted, where they are linked."""

    @property
    def k(self) -> int:
        """Size of the smallest released class."""

    @property
    def classes(self) -> int:
        """Released classes."""

    @property
    def persons(self) -> Persons | None:
        """Persons of source and release, where one may have many rows."""

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """The criteria beyond k, with what the release achieves."""


class Proof(Protocol):
    """What a checked certificate proves: no node loses less than `bound`; `optimal` decides ties, too."""

    @property
    def value(self) -> float:
        """Loss of the node."""

    @property
    def bound(self) -> float:
        """Loss that no node is below."""

    @property
    def optimal(self) -> bool:
        """Whether no node at all is better."""

    @property
    def nodes(self) -> int:
        """Listed nodes, each checked again."""

    @property
    def boxes(self) -> int:
        """Boxes that cover the lattice."""


def print_rules(met: Sequence[Mapping[str, Any]], to: Console) -> None:
    """Print which house rules a job meets, and by whose leave it does where they were lowered for it."""
    if met:
        to.print()
    for rules in met:
        put(to, f"House rules of {plain(rules['organisation'])} ({plain(rules['file'])}) are met")
        for one in rules["exceptions"]:
            of = f"of {plain(one['release'])} " if "release" in one else ""
            put(to, f"  but for {plain(one['key'])} {of}by leave of {plain(one['approved_by'])}")


def print_verified(found: Mapping[str, Recheck | Told], to: Console, proven: Mapping[str, Any] | None = None) -> None:
    """Print what an independent re-check of releases counted, and what their certificates prove."""
    put(to, HEAD, style="dim")
    for name, verified in found.items():
        to.print()
        compared = getattr(verified, "compared", True)
        said = " is what job and source say" if compared else " keeps its promise; the source was not compared"
        put(to, Text(plain(name), style="bold"), said)
        proof = (proven or {}).get(name)
        if isinstance(verified, Told):
            print_table(facts([*verified.facts(), *(() if proof is None else _proven(proof))]), to)
            continue
        released = f"{verified.released:,} of {count(verified.rows, 'row')}"
        suppressed = f"{count(verified.suppressed, 'row')} ({share(verified.suppressed, verified.rows)})"
        if verified.sampled:
            suppressed = "not told: what was released is a secret sample"
        others = ", ".join(plain(other) for other in verified.linked if other != name)
        rows: list[tuple[str, object]] = [("Linked with", f"{others}: counted on the join")] if others else []
        rows += [("K-anonymity", f"{verified.k:,}"), *_criteria(verified.criteria)]
        rows += [("Classes", f"{verified.classes:,}"), ("Released", released), ("Suppressed", suppressed)]
        held = 0 if verified.sampled else verified.rows - verified.released - verified.suppressed
        rows += [("Held back", f"{count(held, 'row')} ({share(held, verified.rows)})")] if held > 0 else []
        rows += _persons(verified.persons)
        print_table(facts([*rows, *(() if proof is None else _proven(proof))]), to)


def _proven(proof: Proof | Told) -> Iterable[tuple[str, object]]:
    if isinstance(proof, Told):
        yield from proof.facts()
    elif proof.optimal:
        yield "Proven", f"no node is better: loss {number(proof.value)}"
    else:
        gap = number(proof.value - proof.bound)
        yield "Proven", f"no node loses less than {number(proof.bound)}; this one is at most {gap} above"
    if not isinstance(proof, Told):
        yield "Certificate", f"{count(proof.nodes, 'node')} checked again, {count(proof.boxes, 'box', 'boxes')}"
