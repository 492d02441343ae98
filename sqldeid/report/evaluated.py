"""What `evaluate` found, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from sqldeid.findings import Classification, Scores
from sqldeid.report.levels import mixed_levels
from sqldeid.report.terminal import HEAD, print_warnings
from sqldeid.report.text import cell, count, facts, plain, print_table, put, share, table


def print_classification(found: Classification, to: Console) -> None:
    """Print accuracy and area under the ROC curve, beside those of the originals, and what was compared."""
    put(to, HEAD, style="dim")
    to.print()
    put(to, Text(plain(found.release), style="bold"), f": how well a model tells {plain(found.label)}")
    made = table("Trained on", "Rows", "Accuracy", "ROC-AUC", right=(1, 2, 3))
    if found.originals is not None:
        made.add_row("the originals", *map(cell, _scores(found.originals)))
    made.add_row("a release of the part", *map(cell, _scores(found.anonymised)))
    made.add_row("nothing", cell(""), cell(f"{found.baseline:.4f}"), cell("0.5000"))
    print_table(made, to)
    print_table(facts(list(_facts(found))), to)
    print_warnings(found.warnings, to)


def _scores(scores: Scores) -> tuple[str, str, str]:
    area = "none" if scores.roc_auc is None else f"{scores.roc_auc:.4f}"
    return f"{scores.rows:,}", f"{scores.accuracy:.4f}", area


def _facts(found: Classification) -> Iterable[tuple[str, object]]:
    yield "Model", f"{found.model} regression, {count(found.classes, 'class', 'classes')}"
    split = "a table of its own" if found.seed is None else f"held out by seed {found.seed}"
    shown = "as they were" if found.indicators == "ancestors" else "generalised by the same node, none suppressed"
    yield "Tested on", f"{count(found.test, 'row')} ({split}), {shown}"
    if found.indicators == "ancestors":
        yield (
            "Labels",
            "each tells the model itself and all its ancestors, one indicator for each: of a row at 20-29 that its age "
            "is in 20-29 and in 0-49, of a row at 23 that it is 23, too",
        )
    yield (
        "Suppressed",
        f"{count(found.suppressed, 'row')} ({share(found.suppressed, found.train)}) of the training part",
    )
    yield "K-anonymity", f"{found.k:,} in the released training part"
    yield "Release", f"made of the training part for this, by the job; {_published(found)}"
    if found.node:
        yield "Levels", ", ".join(f"{plain(name)} {level}" for name, level in found.node.items())
    for name, levels in found.levels.items():
        yield f"Levels of {plain(name)}", mixed_levels(levels)
    yield "Nothing", "always names the most frequent class"


def _published(found: Classification) -> str:
    """Why it is not the published release that is measured."""
    if found.seed is None:
        return "the published one is the same where source and job are, and no ledger or policy came between"
    return "the published one holds the test rows; its levels need not be these"
