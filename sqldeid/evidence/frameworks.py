"""The headings of three frameworks, in their order, each with the facts of a run or marked as open.

Sources: 45 CFR 164.514(b)(1), with the guidance of the U.S. Department of Health and Human Services of 2012; EMA,
external guidance on the implementation of Policy 0070 (EMA/90915/2016), chapter 3; ISO/IEC 27559:2022, clauses 6 to 9.
The headings are told in our own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqldeid.evidence import facts
from sqldeid.evidence.blocks import Block, Fact, Heading, Open
from sqldeid.report.shape import kind_of
from sqldeid.report.words import odds
from sqldeid.result import Tree


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its evidence tells it.

    Parameters
    ----------
    result
        What `--json` wrote, without the policy's values.
    releases
        Its releases by name, each of the shape that reports read.
    inputs
        Hashes of what was given (`sqldeid.evidence.making`).
    """

    result: Tree
    releases: Mapping[str, Tree]
    inputs: Tree

    @property
    def rules(self) -> Sequence[Tree]:
        """The house rules that the job was held to."""
        return list(self.result.get("house_rules") or ())


def hipaa(run: Run) -> Iterator[Block]:
    """Expert determination."""
    yield Heading(2, "HIPAA expert determination, 45 CFR 164.514(b)(1)")
    yield Heading(3, "The expert")
    yield Open(
        "who determines the risk, and what knowledge and experience of generally accepted methods that rests on."
    )
    yield Heading(3, "Principles and methods that were applied")
    yield from _methods(run)
    yield Heading(3, "The anticipated recipient")
    yield Open("who receives the data, under which contract and controls, and what they may be expected to do with it.")
    yield Heading(3, "Other information that is reasonably available")
    yield from _known(run)
    yield Open(
        "which registers, publications and earlier releases a recipient can get, and whether they hold more columns."
    )
    yield Heading(3, "The risk")
    yield from _risks(run)
    yield Open("whether the risk is very small for this recipient and these circumstances, and why.")
    yield Heading(3, "Methods and results of the analysis, documented")
    yield Fact("This archive: the job, the result with every count, what attackers achieved, and the SHA-256 of each.")
    yield Heading(3, "How long the determination holds")
    yield Open("when it is to be looked at again, and by whom.")


def ema(run: Run) -> Iterator[Block]:
    """Anonymisation report under Policy 0070."""
    yield Heading(2, "EMA Policy 0070, anonymisation report")
    yield Fact(
        "The policy is of clinical reports; what stands here is of the data that sqldeid released, not of documents."
    )
    yield Heading(3, "Direct identifiers and quasi-identifiers")
    yield from _variables(run)
    yield Open("why each variable has its role, and what was done to identifiers in free text and in documents.")
    yield Heading(3, "Possible adversaries and plausible attacks")
    for name, release in run.releases.items():
        if release.get("attacks"):
            yield Fact(f"{name} was attacked by the program as readers could; what they achieve stands below.")
        else:
            yield Open(f"attacks on {name}: the program made none.")
    yield Open("who might attack, with what motive and capacity, in the setting of this disclosure.")
    yield Heading(3, "Usefulness of the data")
    yield from (facts.searched(name, one) for name, one in run.releases.items())
    yield Open("which analyses must remain possible, and whether they are.")
    yield Heading(3, "Threshold of the risk of re-identification")
    yield from _thresholds(run)
    yield Open("why this threshold is right for a disclosure of this kind.")
    yield Heading(3, "Risk of re-identification that was found")
    yield from _risks(run)
    yield Heading(3, "Methodology: techniques, and the reasons for them")
    yield from _methods(run)
    yield Open("why these techniques were chosen and not others.")
    yield Heading(3, "Singling out, linkability, inference")
    for name, release in run.releases.items():
        yield from facts.attacks(name, release)
    yield Open("whether each of the three is ruled out, or which risk is left and accepted.")
    yield Heading(3, "Conclusion")
    yield Open("the conclusion of whoever answers for the report.")


def iso(run: Run) -> Iterator[Block]:
    """Clauses 6 to 9 of ISO/IEC 27559."""
    yield Heading(2, "ISO/IEC 27559:2022")
    yield Heading(3, "6.2 Context: threats")
    yield Open(
        "security and privacy practices of recipients; their motives and capacity; deliberate and accidental threats."
    )
    yield Heading(3, "6.3 Context: transparency and impact")
    yield from _about(run)
    yield Open("who was told and asked, and which harms a re-identification could do.")
    yield Heading(3, "7.2 Data: features")
    yield from _variables(run)
    yield from (facts.counts(name, one) for name, one in run.releases.items())
    yield Heading(3, "7.3 Data: attacks that are modelled")
    yield from _models(run)
    yield Heading(3, "8.2 Identifiability: quantified, and tested as an adversary would")
    yield from _risks(run)
    yield Fact("What attackers achieved stands under singling out, linkability and inference above.")
    yield Heading(3, "8.3 Mitigation: the environment, the data, evaluated again")
    yield Open("which controls of the environment (access, contract, training) add to what was done to the data.")
    yield from _methods(run)
    yield Fact(
        "Before it was published, every release was read again and checked against its source by SQL of its own."
    )
    yield Heading(3, "9.2 Governance before data are made available")
    yield from _governed(run)
    yield Open("roles and responsibilities, and how stakeholders are told.")
    yield Heading(3, "9.3 Governance after data are made available")
    yield Open("how recipients, new data and new attacks are watched, and when the release is looked at again.")
    yield Heading(3, "9.4 Mitigation in case of an incident")
    yield Open("what is done, and by whom, if somebody is re-identified.")


def _methods(run: Run) -> Iterator[Block]:
    for name, release in run.releases.items():
        yield from facts.criteria(name, release)
        yield facts.searched(name, release)


def _known(run: Run) -> Iterator[Block]:
    for name, release in run.releases.items():
        known = facts.roles(release, "quasi-identifying")
        if known:
            yield Fact(f"{name}: a recipient is taken to know of a person {', '.join(known)}, and no other column.")
        elif kind_of(release) == "series":
            features = ", ".join(map(str, release["features"])) or "none"
            yield Fact(f"{name}: a recipient is taken to know the length of a series and its features ({features}).")
        elif kind_of(release) == "child":
            yield Fact(
                f"{name}: a recipient is taken to know {release['known']} of a person's items, and what is said of "
                f"{release['parent']}."
            )
        elif kind_of(release) == "events":
            yield Fact(
                f"{name}: what is promised of events is said with their method; it assumes no list of known values."
            )
    yield from _joinable(run)


def _joinable(run: Run) -> Iterator[Block]:
    for pair in run.result.get("joinable") or ():
        names = " and ".join(map(str, pair.get("releases", ())))
        yield Fact(f"{names} were compared with each other for columns by which they can be joined; see the findings.")


def _variables(run: Run) -> Iterator[Block]:
    for name, release in run.releases.items():
        yield facts.columns(name, release)
    yield Fact("Columns of the source that are not listed were not released. The roles are those that the job states.")


def _risks(run: Run) -> Iterator[Block]:
    for name, release in run.releases.items():
        if kind_of(release) in facts.CLASSED:
            yield from facts.risks(name, release)
        else:
            yield from facts.promises(release)


def _thresholds(run: Run) -> Iterator[Block]:
    for name, release in run.releases.items():
        asked = release.get("asked")
        k = next((c["asked"] for c in release.get("criteria") or () if c["name"] == "k-anonymity"), None)
        if kind_of(release) == "mondrian":
            k = asked
        if kind_of(release) == "child":
            yield Fact(
                f"{name}: k = {release['k']} was asked of a class for whoever knows {release['known']} of a person's "
                f"items: a greatest risk of {odds(1 / release['k'])} for a person known to have them."
            )
        elif k:
            yield Fact(f"{name}: k = {k:g} was asked: a greatest risk of {odds(1 / k)} for a person known to be in it.")
        elif isinstance(asked, Mapping):
            yield Fact(
                f"{name}: {asked['durations']} persons of each length and {asked['k']} of each class were asked."
            )
        else:
            yield Fact(f"{name}: no class size was asked; what is promised instead is said below.")


def _models(run: Run) -> Iterator[Block]:
    yield Fact("Maximum and average risk are both told. Classes are those of all quasi-identifying columns together.")
    for name, release in run.releases.items():
        risk = release.get("risk")
        alone = risk is None or risk["release"].get("journalist_is_prosecutor", True)
        told = (
            "against its sample alone: no population was given"
            if alone
            else "against the population that the job names"
        )
        yield Fact(f"{name}: attacks are modelled {told}.")


def _about(run: Run) -> Iterator[Block]:
    about = run.result.get("about") or {}
    for key, text in about.items():
        yield Fact(f"Recipients are told, as {key}: {text}")
    if not about:
        yield Fact("The job says nothing to recipients ([about]).")


def _governed(run: Run) -> Iterator[Block]:
    for rules in run.rules:
        version = f", version {rules['version']}" if rules.get("version") else ""
        yield Fact(
            f"The job met the house rules of {rules['organisation']}{version} ({rules['file']}, {rules['sha256']})."
        )
        for one in rules.get("exceptions", ()):
            yield Fact(_exception(one))
    if not run.rules:
        yield Open("by which rules of your organisation the criteria were chosen: the job was held to none.")


def _exception(one: Mapping[str, Any]) -> str:
    of = f" of {one['release']}" if one.get("release") else ""
    until = f" until {one['until']}" if one.get("until") else ""
    return (
        f"Exception: {one['key']}{of} is {one['value']}, by leave of {one['approved_by']} from {one['approved_on']}"
        f"{until}: {one['reason']}"
    )
