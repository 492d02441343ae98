"""What a report tells of a release of series: lengths, targets, who is singled out by which knowledge, the price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqldeid.report.codebook import column_sections
from sqldeid.report.disagreement import disagreement_sections
from sqldeid.report.linked import linked_sections, linked_words
from sqldeid.report.sections import Chart, Grid, Section, grid, people, percent, told
from sqldeid.result import Tree

SHAPES, FEATURES = "shared", "common features"
"""The method that takes a series' own shape away; and what protects against who knows features."""

MANY, SOME = 0.2, 0.05
"""Shares of people singled out from which an attack succeeds, and below which it hardly does."""

NOT_PROTECTED = {
    "durations": "Whoever knows more than a length.",
    "features": "A class whose members are much alike: then their common features are about everybody's own. All but "
    "one member of a class together, who can work out the last one's share in a mean. Hours without measurement.",
    "shape": "Whoever knows a few measured values, their order, or when measurements were made: a series keeps its ups "
    'and downs. perturb.method = "shared" protects against that.',
    "shared": "What the class's common shape tells about all of its members.",
}
METHODS = {
    "projection": "each series is moved and stretched, no further than it must, until it has the features of its class",
    "source": "each series is moved towards the features of its class as the published algorithm does it",
    "genetic": "each series is changed by trial and error until its features are near those of its class",
    "shared": "each series is replaced by a shape that its class has in common, with the features of the class",
}
SETTINGS = {
    "orig. / orig.": "originals, tested on originals",
    "de-id. / de-id.": "the release, tested on the release",
    "orig. / de-id.": "originals, tested on the release",
    "de-id. / orig.": "the release, tested on originals",
}


@dataclass(frozen=True, slots=True)
class Attacker:
    """One attack with what came of it, shares 0 … 1."""

    name: str
    knows: str
    stopped_by: str
    sole: float
    link: float
    worst: float | None
    before: float | None = None


def series_sections(release: Tree, prefix: str) -> list[Section]:
    """The sections of one release for the data holder, in the order of a committee's questions."""
    attacks = release.get("attacks") or {}
    attackers = list(_attackers(attacks))
    given = [
        replace(a, knows=f"{a.knows}, with the table row") for a in _attackers(attacks.get("given_table_row") or {})
    ]
    return [
        Section("In short", answers=tuple(_short(release, [*attackers, *given]))),
        Section("What protects the people in it?", words=_promised(release), grids=(_criteria(release),)),
        _durations(release["durations"]),
        _targets(release),
        _disagreement(release, attackers),
        *disagreement_sections(release.get("disagreement"), f"{prefix}-disagreement"),
        _singled_out(attackers, release, prefix),
        *linked_sections(release, given),
        _lost(release),
        _utility(release.get("utility") or {}, prefix),
    ]


def public_series(release: Tree) -> list[Section]:
    """What may be published: variables, promises, what is not protected."""
    rows: list[tuple[str, ...]] = [
        ("Variables", ", ".join(map(str, release["variables"]))),
        ("Features that are shared", ", ".join(map(str, release["features"])) or "none"),
        ("How series were changed", METHODS.get(release["method"], str(release["method"]))),
    ]
    what = grid("The release", ("What", "Answer"), rows)
    protects = Section(
        "What protects the people in it?",
        words=(*_promised(release), *linked_words(release)),
        grids=(_criteria(release, public=True),),
    )
    return [Section("What is it?", grids=(what,)), *column_sections(release.get("columns") or {}), protects]


def _asked(release: Tree) -> Mapping[str, int]:
    """The two k, from a result for the holder or for the public."""
    if "asked" in release:
        return {"durations": int(release["asked"]["durations"]), "k": int(release["asked"]["k"])}
    durations, features = release["criteria"]
    return {"durations": int(durations["asked"]), "k": int(features["asked"])}


def _criteria(release: Tree, *, public: bool = False) -> Grid:
    """Both criteria; what was achieved is for the holder."""
    asked = _asked(release)
    shape = NOT_PROTECTED["shared" if release["method"] == SHAPES else "shape"]
    features = ", ".join(map(str, release["features"])) or "none"
    own = (
        "but a variable that fewer members of a class have keeps its own features"
        if _nulls(release) == "source"
        else "a variable that too few of a class have is left out"
    )
    lengths = "Every length of a released series is shared by at least so many people."
    shared = (
        f"At least so many people of the same length (a feature class) share the same target for {features}; {own}."
    )
    names = ("Common lengths (k-anonymity of durations)", "Common features (k-anonymity of features)")
    numbers: list[tuple[str, ...]] = [(told(asked["durations"]),), (told(asked["k"]),)]
    if not public:
        numbers = [(*numbers[0], "holds"), (*numbers[1], told(release["k"]))]
    rows = [
        (names[0], *numbers[0], lengths, NOT_PROTECTED["durations"]),
        (names[1], *numbers[1], shared, f"{NOT_PROTECTED['features']} {shape}"),
    ]
    achieved = () if public else ("Achieved",)
    headings = ("Criterion", "People asked for", *achieved, "What it promises", "What it does not protect")
    return grid("Criteria", headings, rows, range(1, 2 + len(achieved)))


def _promised(release: Tree) -> tuple[str, ...]:
    """The promise as the release itself words it, exceptions included."""
    words = str(release["guarantee"])
    return (f"{words[:1].upper()}{words[1:]}. Tau is the greatest distance that any feature has from its target.",)


def _nulls(release: Tree) -> str:
    return str(release.get("nulls") or release["criteria"][1].get("nulls", ""))


def _short(release: Tree, attackers: list[Attacker]) -> Iterable[str]:
    asked = _asked(release)
    worst = max(attackers, key=lambda a: a.sole, default=None)
    held = f"lengths are shared by {asked['durations']} people, features by {asked['k']} (both counted again)"
    if worst is None:
        yield f"Is it safe to publish? What was promised holds ({held}); no attack was tried, so no more is known."
    elif worst.sole >= MANY:
        yield (
            f"Is it safe to publish? Not if anybody can know single measured values or their times. What was promised "
            f"holds ({held}), but it covers these features alone."
        )
    else:
        yield (
            f"Is it safe to publish? What was promised holds ({held}), and of all attackers that were tried none "
            f"singled out more than {percent(worst.sole)} of the people. Others are not covered."
        )
    if open_ := release.get("as_they_are"):
        yield f"Not protected but for their length: {', '.join(map(str, open_))} are released as they are."
    if worst is not None:
        yield f"Worst risk: who {worst.knows} picks out {percent(worst.sole)} of the people for certain."
    yield "Cannot be studied any more: " + "; ".join(_gone(release)) + "."
    yield f"{people(release['released'], 'people')} of {people(release['persons'])} are in the release."


def _gone(release: Tree) -> Iterable[str]:
    durations = release["durations"]
    yield "single people's values (how far each is off on average, in its variable's unit, stands below)"
    yield "extreme averages and spreads, which were drawn to those of a group"
    if durations["moved"]:
        yield "the time before the cut, in series that were shortened"
    if release["withheld"]["series"]:
        yield "rarely measured variables of small groups"
    if release["method"] == SHAPES:
        yield "the course of a single series, which is its group's"


def _durations(d: Tree) -> Section:
    before, after = d["before"], d["after"]
    rows = [
        ("Different lengths", told(before["lengths"]), told(after["lengths"])),
        ("People alone with their length", people(before["alone"]), told(after["alone"])),
        (f"People whose length fewer than {d['k']} share", people(before["below_k"]), told(after["below_k"])),
    ]
    cost = [
        ("People whose series was shortened", people(d["moved"])),
        ("People left out for their length", people(d["dropped"])),
        ("Steps cut, per person", f"{told(float(d['steps_lost_mean']))} on average (standard deviation "
         f"{told(float(d['steps_lost_sd']))})"),
        ("Share of a person's steps cut", f"{percent(d['share_lost_mean'])} on average (standard deviation "
         f"{percent(d['share_lost_sd'])})"),
    ]  # fmt: skip
    how = "with the least loss that is possible" if d["method"] == "optimal" else "by the published algorithm"
    return Section(
        "What was cut to make lengths common?",
        words=(f"A rare length gives a person away, so series were shortened in front, {how}.",),
        grids=(
            grid("Lengths, before and after", ("What", "Source", "Release"), rows, (1, 2)),
            grid("What it cost", ("What", "Value"), cost, (1,)),
        ),
    )


def _targets(release: Tree) -> Section:
    rows = [(name, told(float(value))) for name, value in release["tau"].items()]
    used, mean = release["unfeasibility"]["used"], release["unfeasibility"]["class_mean"]
    return Section(
        "Were the targets met?",
        words=(
            f"Everybody of a feature class has the same target features. {_sentence(release['method'])}. There are "
            f"{told(release['classes'])} classes; the smallest has {told(release['k'])} people.",
            f"Unfeasibility is what is still missing, summed over features and averaged over series: "
            f"{told(float(used))} from the targets that were used, and {told(float(mean))} from the plain means of the "
            "classes, which not every series can reach.",
        ),
        grids=(
            grid("Farthest that any released feature is from its target", ("Feature", "Distance (unit of the variable; "
                 "variance: squared)"), rows, (1,)),
            *_own(release.get("own_features") or {}),
        ),
    )  # fmt: skip


def _own(features: Tree) -> Iterable[Grid]:
    """Features of the job's own: measured, not steered towards."""
    rows = [(n, *(told(float(f[key])) for key in ("tau", "mean_distance", "before"))) for n, f in features.items()]
    title = "Features of the job's own: they form the classes, and are not made common. Distance from the class's mean"
    if rows:
        yield grid(title, ("Feature", "Farthest", "On average", "Originals, on average"), rows, (1, 2, 3))


def _sentence(method: str) -> str:
    words = METHODS.get(method, f"series were changed by the method {method}")
    return words[0].upper() + words[1:]


def _attackers(attacks: Tree) -> Iterable[Attacker]:
    """Every attacker of the result, weakest knowledge first."""
    feature = attacks.get("feature") or {}
    scales = {"raw": "as they are", "standardised": "each on its own scale"}
    for scale, words in scales.items():
        if scale in feature:
            knows = f"knows a person's original features (mean, variance, extremes) and compares them {words}"
            yield _attacker(f"Features, {scale}", knows, FEATURES, feature[scale])
    others = {
        "own_features": (
            "Features of the job's own",
            "knows these features of a person's original series and compares them each on its own scale",
            "leaving the shape to the class (shared shapes)",
        ),
        "null_pattern": (
            "Absence",
            "knows in which hours each variable was not measured",
            "null-pattern with shared shapes",
        ),
        "measurement_times": ("Measurement times", "knows in which hours measurements were made", "shared shapes"),
        "extreme_times": ("Times of extremes", "knows in which hours values were highest and lowest", "shared shapes"),
    }
    for key, (name, knows, by) in others.items():
        if key in attacks:
            yield _attacker(name, knows, by, attacks[key])
    before = attacks.get("raw_points_before") or {}
    for m, found in (attacks.get("raw_points") or {}).items():
        for how, words in (("nearest", "looks for the nearest series"), ("affine", "looks for the same ups and downs")):
            if how in found:
                knows = f"knows {m} measured values of one variable with their hours and {words}"
                yield _attacker(f"{m} values, {how}", knows, "shared shapes", found[how], before.get(m, {}).get(how))
    whole = {
        "rank_order": ("Order", "knows which values of a variable were higher than which", "shared shapes"),
        "all_values": ("All values", "has a copy of the person's whole original record", "shared shapes"),
    }
    for key, (name, knows, by) in whole.items():
        if key in attacks:
            yield _attacker(name, knows, by, attacks[key])


def _attacker(name: str, knows: str, stopped_by: str, found: Tree, before: Tree | None = None) -> Attacker:
    return Attacker(
        name,
        knows,
        stopped_by,
        float(found["sole"]),
        float(found["link"]),
        float(found["worst_sole"]) if "worst_sole" in found else None,
        float(before["sole"]) if before else None,
    )


def _disagreement(release: Tree, attackers: list[Attacker]) -> Section:
    rows = [(a.name, percent(a.before), percent(a.sole)) for a in attackers if a.before is not None]
    words = (
        "Disagreement means that an attacker's best guess is not the right person. Below: how often the guess is "
        "right, if the originals were published with their numbers hidden, and with this release. Less is better.",
    )
    grids = [grid("People singled out by a few known values", ("Attacker knows", "Originals", "Release"), rows, (1, 2))]
    return Section("Disagreement, before and after", words=words, grids=tuple(grids[: len(rows)]))


def _singled_out(attackers: list[Attacker], release: Tree, prefix: str) -> Section:
    title = "Who is singled out, by whom?"
    if not attackers:
        return Section(title, words=("No attack was made in this run. That is no evidence of privacy.",))
    rows = [
        (
            a.name,
            a.knows,
            percent(a.sole),
            percent(a.link),
            "" if a.worst is None else percent(a.worst),
            _verdict(a, release),
        )
        for a in attackers
    ]
    headings = ("Attacker", "What the attacker does", "Singled out", "Chance", "Worst length", "Protected?")
    return Section(
        title,
        words=(
            "Each attacker knows something of a person's original series, searches everybody of the same length, and "
            "names the release that fits best. Singled out: the person's own release is the only best fit. Chance: to "
            "name the right one, ties drawn by lot. Worst length: singled out in the length where it is worst.",
            'Shared shapes are the job\'s perturb.method = "shared"; null-pattern is its privacy.nulls.',
        ),
        chart=_attack_chart(attackers, prefix),
        grids=(grid("Attackers", headings, rows, (2, 3, 4)),),
    )


def _verdict(a: Attacker, release: Tree) -> str:
    if a.sole >= MANY:
        done = release["method"] == SHAPES or a.stopped_by == FEATURES
        return "no" if done else f"no; {a.stopped_by} would protect"
    return "in part" if a.sole >= SOME else "yes, as far as tried"


def _attack_chart(attackers: list[Attacker], prefix: str) -> Chart:
    from sqldeid.report.interactive import bars, embed

    groups = [("singled out", [100 * a.sole for a in attackers]), ("chance", [100 * a.link for a in attackers])]
    figure = bars([a.name for a in attackers], groups, across="attacker", up="people (%)", lying=True)
    return Chart(
        embed(figure, f"{prefix}-attacks"), "Share of people that each attacker finds. The numbers stand below."
    )


def _lost(release: Tree) -> Section:
    withheld = release["withheld"]
    rows = [
        ("Values in the release", told(release["records"])),
        ("Series of a person and variable left out, as too few had one", people(withheld["series"])),
        ("Share of all values that these had", percent(withheld["records_share"])),
        ("People whose series were too short", people(release.get("too_short", 0))),
        *_left_without(release),
        *_moved(release),
    ]
    return Section("What was lost?", grids=(grid("Loss", ("What", "Value"), rows, (1,)),))


def _left_without(release: Tree) -> list[tuple[str, str]]:
    """Who is left out for another reason than a length; a link and a ledger leave people out as well, and tell so."""
    if release.get("link") or release.get("ledger"):
        return []
    lengths = release["durations"]["dropped"] + release.get("too_short", 0)
    return [
        ("People of whom no variable could be released", people(release["persons"] - release["released"] - lengths))
    ]


def _moved(release: Tree) -> list[tuple[str, str]]:
    """How far values moved by variable; an older result has one figure for all, whose units differ."""
    by = release.get("distortion_by") or {}
    if not by:
        words = "How far a value moved, on average over all variables, whatever their units"
        return [(words, told(float(release["distortion"])))]
    return [
        (f"How far a value of {name} moved, on average", f"{told(float(found['mean']))} {found['unit']}".rstrip())
        for name, found in by.items()
    ]


def _utility(utility: Tree, prefix: str) -> Section:
    title = "What is it still good for?"
    if "settings" not in utility:
        why = utility.get("not_measured")
        said = f"Not measured: {why}." if why else "Not measured: the job names no outcome (labels)."
        return Section(title, words=(said,))
    settings = [(SETTINGS.get(name, name), s) for name, s in utility["settings"].items()]
    rows = [(name, *_scores(s)) for name, s in settings]
    words = (
        f"A model was trained to tell the outcome from the series ({people(utility['persons'], 'people')}, "
        f"{told(utility['splits'])} splits into training and test). ROC-AUC: how often it ranks somebody with the "
        "outcome above somebody without (0.5 is guessing, 1 is always). PR-AUC: the same where outcomes are rare. "
        "Change: against originals, ± standard deviation over splits."
    )
    return Section(
        title,
        words=(words,),
        chart=_utility_chart(settings, prefix),
        grids=(grid("Model", ("Trained on", "ROC-AUC", "Change", "PR-AUC", "Change"), rows, (1, 2, 3, 4)),),
    )


def _scores(s: Tree) -> tuple[str, ...]:
    found = []
    for name in ("test_roc_auc", "test_pr_auc"):
        found += [f"{s[name]:.3f}", f"{s[f'{name}_change']:+.3f} ± {s[f'{name}_change_sd']:.3f}"]
    return tuple(found)


def _utility_chart(settings: list[tuple[str, Tree]], prefix: str) -> Chart:
    from sqldeid.report.interactive import bars, embed

    names = [name for name, _ in settings]
    groups = [
        (title, [s[key] for _, s in settings])
        for title, key in (("ROC-AUC", "test_roc_auc"), ("PR-AUC", "test_pr_auc"))
    ]
    figure = bars(names, groups, across="trained on", up="score (0 to 1)", lying=True)
    return Chart(embed(figure, f"{prefix}-utility"), "How well a model tells the outcome. The numbers stand below.")
