"""δ-presence (Nergiz 2007): of the population's persons in a class, the share in the research subset is bounded."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

NAME = "delta-presence"
LEAST = "delta-presence, least"
"""What results call its upper and its lower bound."""


@dataclass(frozen=True, slots=True)
class DeltaPresence:
    """Of each class of the population, at least the share `least` and at most `most` is in the research subset.

    The research subset is every row of the source, also the suppressed ones; a class of the population without any has
    the share 0. A node where one class is outside the bounds is not admissible: no suppression mends it.

    Parameters
    ----------
    least, most
        Shares, 0 … 1, least <= most.

    Guarantee
        Who knows the quasi-identifying values of every person of the population, and takes the persons of one class to
        be alike, believes of none of them with less than `least` or more than `most` that the source has a row of that
        person. It also holds of who learns how many rows were suppressed, and in which classes.
    Assumes
        The table of the population holds every person whom the attacker takes into account, each once, and all persons
        of the source. Before the release nothing tells the persons of a class apart: given how many of each class are
        in the source, each set of so many is as likely. No other release of these persons exists.
    Does not protect
        A person of whom more is known than the quasi-identifying columns say; a sensitive value that a class shares;
        what the choice of the node tells (that finer ones were not chosen tells of shares in parts of classes).
    Source
        Nergiz, Atzori and Clifton 2007, *Hiding the presence of individuals from shared databases*.

    Why suppressed rows count. What a reader sees is a function of the counts of all classes of the chosen node, and it
    comes about only where all shares are within the bounds. Given all counts, a person of a class with n rows of p
    persons is in the source with probability n/p, which is within them. What the reader believes who knows less is a
    mean of these over the counts that fit, so it is within them, too. Were a class with a share above `most` left out
    instead, the reader who knows the size of the study would count the rows that lack: of a population of classes of 3
    and 100 persons, 3 and 10 of them in the study, with most = 0.5, the class of 10 is shown, and three lack, who can
    only be those of the class of 3. Nor does it do to count all that is left out as one class: which counts are left
    out is known, and weighs them unequally (`tests/tables/criteria/test_delta_presence.py` enumerates both).

    Monotone: the share of a merged class is between the least and the greatest of its parts, so what a node meets every
    generalisation meets, whatever is suppressed; and where a node fails, every specialisation does. It is its own core.
    """

    least: Fraction
    most: Fraction

    @property
    def sql(self) -> dict[str, int]:
        """The bounds in whole numbers."""
        return {
            "least_num": self.least.numerator,
            "least_den": self.least.denominator,
            "most_num": self.most.numerator,
            "most_den": self.most.denominator,
        }

    @property
    def told(self) -> str:
        """What is asked, as a plan tells it."""
        return f"from {float(self.least):g} to {float(self.most):g} of each class of the population"

    @property
    def promise(self) -> str:
        """The upper bound in one sentence."""
        return (
            "Whoever knows the quasi-identifying values of all persons of the population believes of none with more "
            f"than {float(self.most):g} that the source has a row of that person."
        )

    @property
    def promise_of_least(self) -> str:
        """The lower bound in one sentence."""
        return (
            "Whoever knows the quasi-identifying values of all persons of the population believes of none with less "
            f"than {float(self.least):g} that the source has a row of that person."
        )

    def said(self) -> dict[str, object]:
        """As the job says it."""
        return {"delta_presence": {"least": float(self.least), "most": float(self.most)}}
