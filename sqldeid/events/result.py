"""What an events release returns (interface.md, *Result*); frozen, fields are only ever added.

Everything but `to_public` is for the data holder: counts of the source, evaluation and attacks are statistics about
people that nothing protects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

HOLDER = "for the data holder only: not noised"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is promised, and to whom.

    Parameters
    ----------
    unit
        Column of the source whose values are protected, each with all its events (`laplace`); ``event`` for `ratio`.
    """

    method: str
    epsilon: float | None
    unit: str
    differentially_private: bool
    text: str


@dataclass(frozen=True, slots=True)
class EventsRelease:
    """One release of event sequences.

    Parameters
    ----------
    objects, events, parts
        That were made.
    clusters
        Of the source's parts; 0 with `laplace`.
    ledger
        With `laplace`: every spend; they add up to epsilon.
    account
        What the objects have spent by now in all releases of the ledger of persons; None without one.
    source
        Objects, events, parts and states of the source, and how many rows are no events (`left_out`).
    gaps
        Threshold of splitting in hours, the rule by which it was found, and the histogram that shows it.
    columns
        Each released column by name, for whoever reads it: `type`, `meaning`, and of states the `codes` that rows show.
    evaluation, attacks
        Figures by name; empty where they could not be measured.
    """

    name: str
    objects: int
    events: int
    parts: int
    clusters: int
    guarantee: Guarantee
    ledger: tuple[Mapping[str, object], ...]
    source: Mapping[str, int]
    gaps: Mapping[str, object]
    cluster_sizes: Mapping[int, int]
    evaluation: Mapping[str, float]
    attacks: Mapping[str, object]
    verified: Mapping[str, object]
    moved: Mapping[str, int]
    warnings: tuple[str, ...]
    written: tuple[str, ...] = ()
    kind: str = "events"
    account: Mapping[str, object] | None = None
    columns: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        found = asdict(self)
        del found["name"]
        found["ledger"] = [dict(spend) for spend in self.ledger]
        found["account"] = None if self.account is None else dict(self.account)
        for name in ("source", "gaps", "cluster_sizes", "evaluation", "attacks", "verified"):
            found[name] = dict(found[name])
        found["audience"] = dict.fromkeys(
            ("source", "gaps", "cluster_sizes", "evaluation", "attacks", "moved", "account"), HOLDER
        )
        return {"kind": found.pop("kind"), **found}

    def to_public(self) -> dict[str, object]:
        """What may go with the release: promise and ledger; no figure that was not noised."""
        return {
            "kind": self.kind,
            "columns": {name: dict(told) for name, told in self.columns.items()},
            "guarantee": asdict(self.guarantee),
            "ledger": [dict(spend) for spend in self.ledger],
        }

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for a terminal."""
        lines: list[tuple[str, object]] = [
            ("Made", f"{self.objects:,} objects, {self.events:,} events"),
            ("Source", f"{self.source['objects']:,} objects, {self.source['events']:,} events (for the holder only)"),
            ("Guarantee", self.guarantee.text),
        ]
        if self.clusters:
            lines.append(("Clusters", f"{self.clusters:,} of {self.source['parts']:,} parts"))
        if self.ledger:
            spent = ", ".join(f"{s['statistic']} {s['epsilon']:g}" for s in self.ledger)
            lines.append(("Budget", spent))
        if self.account is not None:
            void = "; void: not all of its releases promise that" if self.account["void"] else ""
            lines.append(("Spent by now", f"ε = {self.account['epsilon_total']:g} of a person, by the ledger{void}"))
        if self.gaps.get("threshold_hours") is not None:
            lines.append(
                ("Split", f"at gaps of more than {self.gaps['threshold_hours']:,.6g} hours ({self.gaps['rule']})")
            )
        shown = {
            "similarity": "similarity",
            "cover": "cover",
            "top20": "top-20 2-grams",
            "tvd_2gram": "2-gram distance",
            "tvd_length": "length distance",
            "suppressed_entries": "entries suppressed",
            "suppressed_records": "records suppressed",
        }
        figures = [f"{text} {self.evaluation[n]:.3f}" for n, text in shown.items() if n in self.evaluation]
        if figures:
            lines.append(("Evaluation", "; ".join(figures) + " (for the holder only)"))
        lines += self._attack_lines()
        return lines

    def _attack_lines(self) -> list[tuple[str, object]]:
        lines: list[tuple[str, object]] = []
        member, canary = self.attacks.get("membership"), self.attacks.get("canary")
        if isinstance(member, Mapping):
            text = f"AUC {member['auc']:.3f}; a copy of the source {member['ceiling']:.3f}; {member['reading']}"
            lines.append(("Membership", text))
        if isinstance(canary, Mapping):
            seen = (
                f"{canary['seen_with']} with it and {canary['seen_without']} without it, of {canary['releases']} each"
            )
            lines.append(("One object", f"releases that show its pattern: {seen}; {canary['reading']}"))
        return lines


@dataclass(frozen=True, slots=True)
class EventsVerified:
    """What the re-check of a release found.

    Parameters
    ----------
    states
        Different states released, each allowed.
    pairs
        Different pairs of neighbouring states released that were checked against the source; 0 with `laplace`.
    """

    method: str
    objects: int
    events: int
    states: int
    pairs: int
    checks: tuple[str, ...]

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for a terminal."""
        return [
            ("Released", f"{self.objects:,} objects, {self.events:,} events, {self.states:,} states"),
            *(("Checked", text) for text in self.checks),
            ("Not checked", "whether these rows are those that were drawn: others that keep to all this pass, too"),
        ]
