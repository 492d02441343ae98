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

WEIGHED = "k-map, by weights"
"""What results call it where persons are counted by the weights of a survey.

Guarantee
    The weights of the rows of each released class add up to k or more. That is the survey's estimate of the persons of
    the population who fit it, and no bound: a class may fit fewer.
Assumes
    Each weight is the number of persons for whom its row stands by the survey's design, rounded down; and what `NAME`
    assumes of the attacker.
Does not protect
    What `NAME` does not. A class of few rows rests on few weights, and the error of its estimate is great: `k` is what
    bounds the rows.
Source
    Sweeney 2002 for k-map; Horvitz and Thompson 1952 for the sum of weights. Weights are positive, so the sum of a
    merged class is at least that of each part, and it is its own monotone core.
"""


def promise_by_weights(k: int) -> str:
    """What holds by weights, in one sentence."""
    return f"By the survey's weights, each row fits an estimated {k} persons of the population or more: no bound."


def promise_of(k: int) -> str:
    """The guarantee in one sentence."""
    return (
        "Whoever knows a person's quasi-identifying values, but not that the release holds that person, finds at least "
        f"{k} persons of the population who fit each row."
    )
