"""Replace the requested m by the m that a search found; release and re-check go by this plan."""

from __future__ import annotations

from dataclasses import replace

from sqldeid.tables.plan.plan import TablePlan


def with_m(plan: TablePlan, m: float | None) -> TablePlan:
    """The plan whose m-concealing asks for `m`, the least that `inverse-ola` reached; as it is where there is none."""
    hidden = plan.part.privacy.m_concealing
    if m is None or hidden is None:
        return plan
    privacy = plan.part.privacy.model_copy(update={"m_concealing": hidden.model_copy(update={"m": m})})
    return replace(plan, part=plan.part.model_copy(update={"privacy": privacy}))
