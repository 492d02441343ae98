"""What a release of series tells of itself. Everything but `to_public` is for the data holder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqldeid.series.durations import DurationReport

GUARANTEE = (
    "every released length is shared by at least {lengths} persons; the features {features} of every series lie within "
    "tau of targets that at least {k} persons of the same length share{but}"
)
LINKED = (
    "; {table} has the same person_number: every person is in both or neither, and at least {k} persons share the "
    "row's class there, the length and the targets"
)
SHARED_LIMITS = (
    "does not protect what the members of a class have in common, nor against the others of a class who pool what they "
    "know, nor hide that a person is in the data"
)
LIMITS = (
    "does not protect against whoever knows raw values, their order or the hours of measurement (perturb.method = "
    '"shared" does), nor classes whose members are alike'
)


@dataclass(frozen=True, slots=True)
class SeriesRelease:
    """One release of series (interface.md, *Result*).

    Attributes
    ----------
    persons, released
        With a plausible measurement; and in the release.
    records
        Values in the release.
    durations
        Lengths: what was cut, and how many persons lengths single out before and after.
    classes, k
        Feature classes released, and the smallest of them.
    withheld
        Series of a person and variable that are absent from the release, and their share of all records.
    tau
        Greatest distance of a released feature from its target, by feature, in the variable's unit (variance: squared).
    unfeasibility
        Mean over series of Σ |feature − target|: against the targets used, and against the class means.
    distortion
        Mean |x̃ − x| per record, over all variables whatever their units; `distortion_by` has each variable's own, with
        its unit.
    attacks
        Who is singled out, by attacker.
    features
        Made common in every series that is changed; empty where none is.
    as_they_are
        Variables that are shortened only.
    unit
        The person key: k counts its values, which may be stays of which one person has several.
    round
        The step of the public grid that targets are rounded to, by variable, in its unit.
    own_features
        Features of the job's own, by name: greatest (`tau`) and mean distance of released ones from the means of their
        class, and `before`, the mean distance of the originals; they are not steered towards.
    disagreement
        Where the job asks for it: how far off a guess by features is, before and after (`sqldeid.series.compare`).
    columns
        Each released column by name, for whoever reads it: `type`, `meaning`, `unit`, and of `variable` the words.
    moved
        Rows and bytes (as Arrow) that came out of the engine, and that were sent to one other than DuckDB.
    link
        With a linked table: its name, persons of each side and of both, and those lost to the link; else empty.
    ledger
        With a release ledger: how many persons it holds back for a later load, and their share; else empty.
    """

    name: str
    persons: int
    released: int
    records: int
    variables: tuple[str, ...]
    durations: DurationReport
    classes: int
    k: int
    nulls: str
    heuristic: str
    targets: str
    method: str
    withheld: Mapping[str, float]
    tau: Mapping[str, float]
    unfeasibility: Mapping[str, float]
    distortion: float
    attacks: Mapping[str, object]
    too_short: int
    features: tuple[str, ...]
    asked: Mapping[str, int]
    warnings: tuple[str, ...]
    seconds: Mapping[str, float]
    utility: Mapping[str, object] = field(default_factory=dict)
    as_they_are: tuple[str, ...] = ()
    own_features: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    round: Mapping[str, float | str] = field(default_factory=dict)
    disagreement: Mapping[str, Any] = field(default_factory=dict)
    link: Mapping[str, int | str] = field(default_factory=dict)
    moved: Mapping[str, int] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    kind: str = "series"
    ledger: Mapping[str, object] = field(default_factory=dict)
    distortion_by: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    unit: str = ""
    columns: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        found = asdict(self)
        del found["name"]
        for name in ("link", "ledger"):
            if not found[name]:
                del found[name]
        return {"kind": found.pop("kind"), **found, "guarantee": self.guarantee, "limits": self.limits}

    def to_public(self) -> dict[str, object]:
        """What may go with the release: what it is and what it promises; no count of anybody."""
        return {
            "kind": self.kind,
            "columns": {name: dict(told) for name, told in self.columns.items()},
            "variables": self._shown_variables(),
            "features": list(self.features),
            "criteria": [
                {"name": "duration k-anonymity", "asked": self.asked["durations"]},
                {"name": "feature k-anonymity", "asked": self.asked["k"], "nulls": self.nulls, "targets": self.targets},
            ],
            "method": self.method,
            "round": dict(self.round),
            **({"linked": self.link["table"]} if self.link else {}),
            **({"unit": f"per {self.unit}"} if self.unit else {}),
            "guarantee": self.guarantee,
            "tau": dict(self.tau),
            "limits": self.limits,
        }

    def _shown_variables(self) -> list[str]:
        """Those of which the release has rows; one with a column of its own stands there, too, though it is empty."""
        rows: Any = self.columns.get("variable")
        return list(self.variables) if rows is None else [str(code["shown"]) for code in rows["codes"]]

    @property
    def guarantee(self) -> str:
        """The promise in words."""
        but = ", but for a variable that fewer persons of a class have" if self.nulls == "source" else ""
        linked = LINKED.format(table=f"tables.{self.link['table']}", k=self.asked["k"]) if self.link else ""
        if not self.features:
            return f"every released length is shared by at least {self.asked['durations']} persons{linked}"
        if self.as_they_are:
            but += f", but for {', '.join(self.as_they_are)}, released unchanged"
        features = ", ".join(self.features)
        lengths, k = self.asked["durations"], self.asked["k"]
        return GUARANTEE.format(lengths=lengths, features=features, k=k, but=but) + linked

    @property
    def limits(self) -> str:
        """What is not promised, in words."""
        return SHARED_LIMITS if self.method == "shared" else LIMITS

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for the terminal."""
        d = self.durations
        return [
            ("Persons", f"{self.released:,} of {self.persons:,} released, {self.records:,} records"),
            *([("Counted", f"per {self.unit}: each value of it as a person")] if self.unit else []),
            (
                "Durations",
                f"k = {d.k}, {d.classes} length{'s' * (d.classes != 1)}, {d.moved:,} shortened, "
                f"{d.share_lost_mean:.2%} of steps lost",
            ),
            ("Feature classes", f"{self.classes:,}, smallest {self.k}"),
            *_link_facts(self.link),
            *_ledger_facts(self.ledger),
            ("Withheld", f"{self.withheld['series']:,.0f} series, {self.withheld['records_share']:.2%} of records"),
            ("Distance from targets", ", ".join(f"{n} {v:.3g}" for n, v in self.tau.items()) + " at most"),
            *((f"Own feature {n}", _own(f)) for n, f in self.own_features.items()),
            ("Unfeasibility", f"{self.unfeasibility['used']:.4g} (class means {self.unfeasibility['class_mean']:.4g})"),
            *_distortion_facts(self.distortion, self.distortion_by),
            *_attack_facts(self.attacks),
            *_disagreement_facts(self.disagreement),
            *_utility_facts(self.utility),
        ]


def _distortion_facts(overall: float, by: Mapping[str, Mapping[str, float | str]]) -> Iterator[tuple[str, object]]:
    """How far values moved: by variable, for their units differ; of one without names, over all."""
    if not by:
        yield "Distortion", f"{overall:.4g} per record"
        return
    told = [f"{name} {float(found['mean']):.3g} {found['unit']}".rstrip() for name, found in by.items()]
    yield "Distortion", "per record: " + ", ".join(told)


def _ledger_facts(ledger: Mapping[str, object]) -> list[tuple[str, object]]:
    """Who is held back for a later load."""
    if not ledger:
        return []
    held = int(str(ledger["held_back"]))
    return [("Held back", f"{held:,} {'person' if held == 1 else 'persons'} for a later load, by the ledger")]


def _link_facts(link: Mapping[str, int | str]) -> list[tuple[str, object]]:
    """What the link with a table release kept, and what it cost either side."""
    if not link:
        return []
    kept = f"tables.{link['table']}: {link['released']:,} persons in both"
    rows = f"{link['lost_of_table']:,} of {link['in_table']:,} rows"
    series = f"{link['lost_of_series']:,} of {link['in_series']:,} persons with series"
    return [
        ("Linked", f"{kept}, {link['combined_classes']:,} classes of both together, smallest {link['smallest']}"),
        ("Lost to the link", f"{rows}, {series}"),
    ]


def _disagreement_facts(found: Mapping[str, Any]) -> list[tuple[str, object]]:
    """A line a length: the median first disagreement and the mean Δ-AUC, before and after."""
    return [
        (
            f"Disagreement, {row['length']} steps",
            f"first {row['before']['first_median']:.3g} → {row['after']['first_median']:.3g} (median), "
            f"Δ-AUC {row['before']['delta_auc_mean']:.4g} → {row['after']['delta_auc_mean']:.4g} (mean)",
        )
        for row in found.get("by_length", ())
        if row["before"] and row["after"]
    ]


def _own(feature: Mapping[str, float]) -> str:
    return (
        f"{feature['mean_distance']:.3g} from the means of its class, {feature['tau']:.3g} at most "
        f"(originals {feature['before']:.3g})"
    )


def _utility_facts(utility: Mapping[str, object]) -> list[tuple[str, object]]:
    """The outcome model, a line a trust setting: scores on test data, and the change from original data."""
    if "not_measured" in utility:
        return [("Outcome model", f"not measured: {utility['not_measured']}")]
    settings = utility.get("settings")
    if not isinstance(settings, Mapping):
        return []
    return [
        (
            f"Outcome model {name}",
            f"ROC-AUC {s['test_roc_auc']:.3f} ({s['test_roc_auc_change']:+.3f} ± {s['test_roc_auc_change_sd']:.3f}), "
            f"PR-AUC {s['test_pr_auc']:.3f} ({s['test_pr_auc_change']:+.3f} ± {s['test_pr_auc_change_sd']:.3f})",
        )
        for name, s in settings.items()
    ]


def _attack_facts(attacks: Mapping[str, object]) -> list[tuple[str, object]]:
    """Who is singled out, a line an attacker: features by scale, raw points by number, others by name."""
    found: list[tuple[str, object]] = []
    for name, attack in attacks.items():
        if not isinstance(attack, Mapping):
            continue
        if name == "given_table_row":
            shown = {kind: attack[kind] for kind in ("feature", "raw_points", "raw_points_before", "all_values")}
            found += [(f"{label}, given the table row", said) for label, said in _attack_facts(shown)]
            continue
        if "sole" in attack:
            found.append((f"Attack by {name.replace('_', ' ')}", _shown(attack)))
        for kind, inner in attack.items():
            if isinstance(inner, Mapping):
                how = inner if "sole" not in inner else {"": inner}
                said = "; ".join(f"{m} {_shown(a)}".strip() for m, a in how.items() if isinstance(a, Mapping))
                found.append((f"Attack by {name.replace('_', ' ')}, {kind}", said))
    return found


def _shown(attack: Mapping[str, float]) -> str:
    worst = f" (worst length {attack['worst_sole']:.1%})" if "worst_sole" in attack else ""
    return f"sole {attack['sole']:.1%}{worst}, link {attack['link']:.1%}"


@dataclass(frozen=True, slots=True)
class SeriesVerified:
    """What a re-check of a published release counted."""

    persons: int
    released: int
    lengths: int
    smallest_length: int
    classes: int
    smallest_class: int
    tau: Mapping[str, float]
    linked: str = ""

    def facts(self) -> list[tuple[str, object]]:
        """Line by line, for the terminal."""
        link = [("Linked", f"tables.{self.linked}: the same persons in both, by person_number")] if self.linked else []
        return [
            ("Persons", f"{self.released:,} of {self.persons:,} released"),
            ("Lengths", f"{self.lengths}, the rarest of {self.smallest_length} persons"),
            ("Feature classes", f"{self.classes:,}, the smallest of {self.smallest_class} persons"),
            *link,
            ("Distance from targets", ", ".join(f"{n} {v:.3g}" for n, v in self.tau.items()) + " at most"),
        ]

    def to_dict(self) -> dict[str, object]:
        """The counts for JSON."""
        return asdict(self)
