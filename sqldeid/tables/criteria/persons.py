"""What criteria mean where a person may have many rows (`rows = "many"`): they count the persons of a class.

Guarantee
    Each released row lies in a class that holds rows of at least k different persons: who knows the quasi-identifying
    values of all rows of everybody still finds at least k persons whose row it may be. By l-diversity there are at
    least l values such that whichever l - 1 of them are ruled out, some person of the class has none of these: nobody
    who is known to be in a class has a value with certainty (l = 2), and so on for entropy and recursive, for every
    way to say of each person which one of its rows is meant. By t-closeness the share of the persons of a class who
    have a value differs from that in the whole table by at most t (in the criterion's distance).
Assumes
    The person key names persons, and equal keys are one person. Nothing that is released beside the quasi-identifying
    columns tells that two rows are one person's: no pseudonym and no shifted date is there, and a value of an
    insensitive column that only one person has, in several rows, is refused. The attacker knows no rows of others
    beyond the quasi-identifying columns, and no other release of the same persons exists.
Does not protect
    How many rows a person has. One person may have most rows of a class: who knows that picks a row of that person
    with the probability of its share, which the result tells as the greatest share, not with 1/k. Nor against a
    sensitive value that recurs in one person's rows alone, which shows that they are one person's (counted in a
    warning), nor against what suppression tells (Wong et al. 2007).
Source
    k: soundness.md 11. Distinct persons only grow when classes are merged, so k is its own monotone core: a class of
    fewer than k persons lies in the suppressed part at every specialisation, with all of its rows.
    l (Machanavajjhala et al. 2007, §4): let c_v be the persons of a class who have v, in falling order, and n its
    persons. A choice of one value for each person has at most c_v of v; the counts that fill up to n from the most
    frequent value on majorise every choice, and distinct, entropy and recursive l-diversity are Schur-concave, so what
    holds of them holds of every choice. For one row a person they are the counts themselves. Not inherited by
    generalisations: p: {a}, q: {b} in one class and p: {b}, q: {a} in another pass l = 2, merged everybody has a. So
    nothing but k is a core, and no bound rests on a class that fails another criterion.
    t (Li et al. 2007): of columns that have one value a person, else refused, for the shares of persons who have a
    value are then no distribution. Not inherited by generalisations either, as classes may share persons.
    The suppression limit and all losses count rows; the result tells the persons beside them.
"""

from __future__ import annotations


def promise_of_k(k: int) -> str:
    """k-anonymity in one sentence."""
    return (
        f"Whoever knows the quasi-identifying values of a person's row finds rows of at least {k} persons that fit, or "
        "none."
    )
