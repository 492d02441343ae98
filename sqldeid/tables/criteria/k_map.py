"""k-map (Sweeney 2002): each released class fits k persons of a population, of whom the release holds some."""

from __future__ import annotations

NAME = "k-map"
"""What results call it.

Guarantee
    Who knows the quasi-identifying values of a person of the population, but not whether the release holds that person,
    finds at least k persons of the population for every released row that fits (journalist risk at most 1/k).
Assumes
    The table of the population holds every person whom the attacker takes into account, each once, with the values that
    the release has, and all persons of the release (a combination of which it has fewer is refused). The attacker does
    not know who is in the release, nor anything beyond the quasi-identifying columns. No other release of these persons
    exists.
Does not protect
    A person who is known to be in the release: against that attacker there is only the release's own k, which may be 1
    where the job says so. Nor against sensitive values that a class shares, nor against what suppression tells.
Source
    Sweeney 2002, *k-anonymity: a model for protecting privacy*, and 2001 (thesis) for k-map. Inherited by
    generalisations, also with suppression: a merged class has at least the population of each part, so it is its own
    monotone core, as class size is.
"""


def promise_of(k: int) -> str:
    """The guarantee in one sentence."""
    return (
        "Whoever knows a person's quasi-identifying values, but not that the release holds that person, finds at least "
        f"{k} persons of the population who fit each row."
    )
