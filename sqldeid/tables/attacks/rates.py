"""Success of an attack beside a control group and a random guess, and the risk that is left. Pure.

Source: Giomi et al. 2022, §4; intervals by Wilson 1927 (`sqldeid.attacked.sampled`). They take persons as independent.
Those of one class succeed together, so they are too narrow where few large classes decide. A success that counts in
part varies less than one that is drawn, so there they are too wide.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqldeid.attacked import Estimate


@dataclass(frozen=True, slots=True)
class Success:
    """An attack beside its control group and a random guess.

    Parameters
    ----------
    attack
        `singling_out`, `singling_out_with_values`, `linkability` or `inference`.
    column
        What is inferred; empty for the other attacks.
    main, control
        Share of the persons on whom it succeeds: of those who are in the release, and who were held out of it. A guess
        among equally good ones counts as the share of them that is right.
    baseline
        Of random guesses on persons who are in the release.
    """

    attack: str
    column: str
    main: Estimate
    control: Estimate
    baseline: Estimate

    @property
    def risk(self) -> Estimate:
        """(main - control)/(1 - control), at least 0: what the release tells of its own persons beyond all others.

        The interval is of at least 95 %: by the ends of both intervals, each missed in 2.5 % on its side.
        """
        main, control = self.main, self.control
        most, least = 1.0 if main.high is None else main.high, 1.0 if control.high is None else control.high
        low, high = _risk(main.low, least), _risk(most, control.low)
        return Estimate(_risk(main.value, control.value), low, high, main.of)

    @property
    def found(self) -> bool:
        """Whether the risk is more than chance: its interval does not hold 0."""
        return self.risk.low > 0

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        column = {"column": self.column} if self.column else {}
        rates = {name: getattr(self, name).to_dict() for name in ("main", "control", "baseline", "risk")}
        return {**column, **rates}


def _risk(main: float, control: float) -> float:
    return max(0.0, (main - control) / (1 - control)) if control < 1 else 0.0
