"""k-anonymity (Samarati and Sweeney 1998)."""

from __future__ import annotations

from dataclasses import dataclass

from sqldeid.errors import JobError


@dataclass(frozen=True, slots=True)
class KAnonymity:
    """At least `k` rows in every released equivalence class.

    Guarantee
        Who knows a person's quasi-identifying values finds at least `k` rows of the release that fit, or none.
    Assumes
        Rows are persons (a person key, checked; else by the job's word, and the promise is of rows); the attacker
        knows nothing but the quasi-identifying columns; no
        other release of the same persons exists.
    Does not protect
        Against sensitive values that a whole class shares (use l-diversity), against what suppression itself tells
        (Wong et al. 2007: a class that is missing had fewer than `k` rows), nor against columns that are insensitive
        in the job but identify in truth.
    Source
        Samarati 2001, §3. Inherited by generalisations, also with suppression: a merged class has at least the rows of
        each part, so it is its own monotone core.
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise JobError.at("privacy.k", f"k is {self.k}; it must be at least 1")

    @property
    def promise(self) -> str:
        """The guarantee in one sentence, for whoever reads the release."""
        return self.promise_for("person")

    def promise_for(self, unit: str) -> str:
        """The guarantee in one sentence, where k counts persons, or rows of which none knows whose they are."""
        of = "a person's quasi-identifying values" if unit == "person" else "the quasi-identifying values of a row"
        return f"Whoever knows {of} finds at least {self.k} rows that fit, or none."
