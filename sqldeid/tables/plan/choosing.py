"""Choose the node by every criterion (`by-all`), or by k-anonymity alone (`by-k`), so that it tells nothing more.

With `by-all` the published node says that each node which loses less failed a criterion. Where such a node is
k-anonymous, whoever knows who is in the table knows that one of its classes fails another criterion, and that can give
a sensitive value with certainty (the minimality attack of Wong et al. 2007, on the node).

With `by-k` the lattice is searched as if k alone were asked for; then classes of the node that fail another criterion
are suppressed, up to `criteria_limit`.

Guarantee
    The node is a function of the quasi-identifying values, the job and the limits of the search, of no sensitive value
    (proof: the search is given the plan of `choosing`, which has no criterion about one, and the classes of the fold,
    which are counted without them). Whether there is a release depends on sensitive values only by the number of rows
    suppressed beyond k, which whoever knows the quasi-identifying values reads from the release anyway.
Does not protect
    Against what suppression tells: a class of k rows and more that is missing failed another criterion; with `blank`
    its values are among those of the blanked rows. Nor where a refused run is repeated with other settings: who changes
    them because of the refusal chooses by sensitive values.
Source
    Wong et al. 2007, *Minimality Attack in Privacy Preserving Data Publishing*; soundness.md 20.
"""

from __future__ import annotations

from dataclasses import replace

from sqldeid.errors import UnknownKindError
from sqldeid.tables.model.evaluation import allowed_rows
from sqldeid.tables.plan.plan import TablePlan


def by_k(plan: TablePlan) -> bool:
    """Whether the node is chosen by k alone though more is asked for.

    Raises
    ------
    UnknownKindError
        For a way to choose that is neither of the two.
    """
    match plan.search.choose:
        case "by-all":
            return False
        case "by-k":
            return bool(plan.criteria) or plan.concealing is not None
        case unknown:
            raise UnknownKindError(unknown, "way to choose a node")


def chosen_by(plan: TablePlan) -> str:
    """As the job names the way that a release's node was chosen; by k alone there is one way only."""
    return "by-k" if by_k(plan) else "by-all"


def choosing(plan: TablePlan) -> TablePlan:
    """The plan by which the node is searched, its optimum proven and other nodes are compared."""
    return replace(plan, demands=plan.demands.k_alone()) if by_k(plan) else plan


def allowed_of(plan: TablePlan, rows: int) -> int:
    """Most rows that may be suppressed in all; with `by-k` those for k and those for the other criteria together."""
    return min(rows, allowed_rows(plan.demands.suppression_limit, rows) + allowed_beyond(plan, rows))


def allowed_beyond(plan: TablePlan, rows: int) -> int:
    """Most rows of classes of k and more that may be suppressed, where they have a limit of their own."""
    limit = plan.demands.criteria_limit
    return allowed_rows(limit, rows) if by_k(plan) and limit is not None else 0


def within(plan: TablePlan, rows: int, few: int, failing: int) -> bool:
    """Whether a node is admissible.

    Parameters
    ----------
    few, failing
        Rows in classes of fewer than k, and in classes that fail any criterion.
    """
    if not by_k(plan):
        return failing <= allowed_of(plan, rows)
    return few <= allowed_rows(plan.demands.suppression_limit, rows) and failing - few <= allowed_beyond(plan, rows)
