"""The parts of a job as pydantic models. Their field descriptions are the reference of the job file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from sqldeid.job import rules
from sqldeid.job.fields import (
    MAX_WHOLE,
    Hierarchy,
    HierarchyRule,
    Number,
    Positive,
    Query,
    Section,
    Source,
    Text,
    Whole,
)
from sqldeid.job.privacy import Privacy
from sqldeid.job.rules import Role
from sqldeid.job.stack import Stack

__all__ = ["MAX_WHOLE", "HierarchyRule", "Number", "Positive", "Query", "Section", "Source", "Text", "Whole"]


class Column(Section):
    """What a column of the source is, and how it may be generalised. A column that is not named is not released."""

    check = rules.column_problems
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"role": {"const": "quasi-identifying"}}},
            "then": {"required": ["hierarchy"]},
            "else": {"properties": {"hierarchy": False, "uncovered": False, "version": False}},
        }
    )

    role: Role = Field(
        description="quasi-identifying: known to an attacker, generalised. sensitive, insensitive: released as it is. "
        "identifying, free-text: never released."
    )
    hierarchy: Hierarchy | None = Field(
        default=None,
        description="Of a quasi-identifying column: a CSV file (original;level1;…;top, no header; relative to the job "
        "file), the name of a shipped hierarchy, or a rule.",
    )
    uncovered: Literal["refuse", "prefix", "top"] = Field(
        default="refuse",
        description="A value that the hierarchy does not cover: refuse the run, use the longest prefix that is "
        "covered, or go straight to the top.",
    )
    version: Text | None = Field(
        default=None,
        description="With a hierarchy of one version of codes (icd9/…, icd10/…): the column of the source that tells "
        "each row's version (icd_version). Rows of another one are refused, with their number. With icd/…, which reads "
        "both, each code is read by its version.",
    )
    pseudonym: Literal[True] | None = Field(
        default=None,
        description="Of an identifying column: released as a keyed hash, fresh in every release; the key comes from "
        "--key-file or the environment variable SQLDEID_KEY. Such a release is pseudonymised, not anonymous.",
    )
    shift: Literal["person", "birth"] | None = Field(
        default=None,
        description="Of a sensitive or insensitive date or timestamp: moved by a secret number of days, the same for "
        "all of a person's shifted columns. birth: likewise, and NULL where the others tell of an age over 89.",
    )
    to: Literal["day", "week", "month"] | None = Field(
        default=None,
        description="Of a sensitive or insensitive date or timestamp: the first moment of its day, week (from Monday) "
        "or month; after the shift where there is one, of which finer times let less be known.",
    )
    top_code: Number | None = Field(
        default=None,
        description="Of a released number: greater values become this one, before anything else (ages over 89: 90). "
        "The labels of a quasi-identifying column say so on every level: ≥ 90.",
    )


class EpsilonSafeSettings(Section):
    """Parameters of epsilon-safe (Mazzone 2019, §4.5): a random sample, a node drawn at random, classes of k."""

    beta: float = Field(gt=0, lt=1, description="Probability with which each row is sampled, between 0 and 1.")
    epsilon: float = Field(gt=0, description="The epsilon promised, above -ln(1 - beta).")
    delta: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="The most that delta may be; the proven one is compared with it. Absent: below one in population, "
        "which is stated then.",
    )
    penalty: Literal["k-anonymity", "suppression"] = Field(
        default="k-anonymity", description="What is punished: more suppressed rows than the limit, or their share."
    )
    penalty_factor: float = Field(default=0.5, gt=0, description="How much it is punished, in units of prec.")
    utility: Literal["score", "reciprocal"] = Field(
        default="score", description="score: proven. reciprocal: the source's, for comparison; not proven private."
    )
    population: Whole | None = Field(
        default=None,
        description="A public number of persons, never the number of rows: for limits and shares, and for delta where "
        "that is not stated.",
    )
    seed: int | None = Field(
        default=None, ge=0, description="Repeats the draw; then nothing is proven private. For tests only."
    )


PROVING = frozenset({"frontier", "best-first", "flash", "ola", "local"})
"""Methods that prove how little must be lost, so that there can be a certificate."""


LossName = Literal[
    "loss", "prec", "dm_star", "entropy", "height", "ambiguity", "normalised_entropy", "class_size", "payout"
]
"""What a search can make least."""


TableMethod = Literal[
    "frontier",
    "best-first",
    "flash",
    "ola",
    "inverse-ola",
    "datafly",
    "igreedy",
    "epsilon-safe",
    "mondrian",
    "local",
]
"""How the node of a table, or of each class, is found."""


class Search(Section):
    """How the least lossy admissible node is found."""

    check = rules.search_problems

    method: TableMethod = Field(
        default="frontier",
        description="frontier, best-first, flash: exact. ola: exact for losses before suppression. inverse-ola: "
        "greatest k (with m_concealing: least m) within max_loss. datafly, igreedy: baselines for comparison. "
        "epsilon-safe: a drawn node on a sample. mondrian: cuts at medians. local: each class has levels of its own, "
        "with a proven bound of what must be lost.",
    )
    loss: LossName = Field(
        default="loss",
        description="What is made least; loss, prec, normalised_entropy, class_size, payout lie between 0 and 1. "
        "Suppressed rows count in loss and payout; the others are of the node before suppression. height: sum of "
        "levels. ambiguity: log2 of the combinations that a row could be, on average. class_size: 1 - 1/s of classes "
        "of s. payout: share of a publisher's greatest payout that is lost, where nobody attacks.",
    )
    choose: Literal["by-all", "by-k"] = Field(
        default="by-all",
        description="by-all: the least lossy node that meets all criteria; which node that is can tell sensitive "
        "values. by-k: the least lossy node by k alone, of which classes that fail another criterion are suppressed.",
    )
    weights: dict[str, Annotated[float, Field(ge=1e-6, le=1e6)]] = Field(
        default_factory=dict,
        description="Weights of quasi-identifying columns, 0.000001 to 1000000; 1 where a column is not named. Not "
        "with dm_star, entropy, class_size and payout.",
    )
    heuristic: Literal["range", "diversity"] | None = Field(
        default=None,
        description="With mondrian: which column is cut: the widest (range, the default), or the one that leaves "
        "classes most diverse.",
    )
    time_limit: float | None = Field(
        default=None, gt=0, description="Seconds; then the best node so far is taken, with its proven gap."
    )
    checks_limit: Whole | None = Field(
        default=None, description="Number of nodes checked; then the best node so far is taken, with its proven gap."
    )
    epsilon_safe: EpsilonSafeSettings | None = Field(
        default=None, description='Parameters of method = "epsilon-safe", and always there.'
    )
    layers: Whole | None = Field(
        default=None,
        description="With local: at most so many nodes are used, so that a reader has as many plain tables; absent: "
        "as many as lose least.",
    )
    blunt: bool | Annotated[float, Field(gt=0, lt=1)] = Field(
        default=False,
        description="true, or a number between 0 and 1 (true is 0.5): levels are drawn in secret among nearly as good "
        "ones, so that who knows how they are chosen is certain of nothing finer. It costs some loss.",
    )
    max_loss: float | None = Field(
        default=None,
        ge=0,
        description="With inverse-ola, and always there: the greatest loss accepted, before suppression, in its unit.",
    )


class Table(Section):
    """One table release."""

    check = rules.table_problems

    source: Source = Field(description='A table of the database ("schema.table"), or { query = "SELECT …" }.')
    person: Text | None = Field(
        default=None,
        description="Column that names the person: at most one row each (but with rows), checked, never released.",
    )
    rows: Literal["one", "many"] = Field(
        default="one",
        description='How many rows a person has: "one" refuses a person who repeats. "many": k, l and t count the '
        "different persons of a class, and nothing released links the rows of one.",
    )
    rows_are_persons: Literal[True] | None = Field(
        default=None,
        description="Of a table without person: true states that each row is another person; rows are counted.",
    )
    where: Text | None = Field(default=None, description="One SQL expression; rows for which it holds are the input.")
    parent: Text | None = Field(
        default=None,
        description="Of a child table, of many rows per person: the table release of this job that has its persons, "
        "their classes and their pseudonyms. Of each person the different items leave, and sensitive columns beside.",
    )
    items: Text | None = Field(
        default=None,
        description="With parent, and always there: the column of items (codes), quasi-identifying with a hierarchy.",
    )
    known: Annotated[int, Field(ge=1, le=4)] | None = Field(
        default=None,
        description="With parent, and always there: how many items of a person others may know, 1 to 4. Whatever so "
        "many a person has, k persons of the class have, or none.",
    )
    sample: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Share of the persons who are released, above 0 and below 1: chosen at random by the secret key "
        "(--key-file), the same ones in all tables and runs by that key. Criteria hold of the sample.",
    )
    link: Text | None = Field(
        default=None,
        description="Another table release of this job with the same person key, of which both release the pseudonym: "
        "the same in both, so that they can be joined. The criteria then hold on the join, of persons that both have.",
    )
    never_with: list[Text] = Field(
        default_factory=list,
        description="Other table releases of this job that nobody is ever given beside this one: they are not held to "
        "each other. Without it, releases that could be subtracted down to fewer than k persons are refused.",
    )
    other_persons: list[Text] = Field(
        default_factory=list,
        description="Other table releases of this job that hold no person of this one (staff beside patients), though "
        "both read a common table and their person keys have two names, by which nobody can be looked up. Nothing "
        "checks it; each must read a table that the other does not.",
    )
    text: bool = Field(
        default=False,
        description="true makes every quasi-identifying column text at every level, so that the types of a nightly "
        "release never change.",
    )
    recoding: bool = Field(
        default=False,
        description='With search.method = "local": true adds a column recoding, the number of the layer that tells '
        "each row's levels, and a table NAME_layers, the level of each column by layer.",
    )
    hierarchies: bool = Field(
        default=False,
        description='With search.method = "local": true adds a table NAME_hierarchies: what each label that rows '
        "show says at each level that is no finer, so that readers bring columns to a level of their choice.",
    )
    roll_up: dict[Text, Annotated[int, Field(ge=0)] | Text] = Field(
        default_factory=dict,
        description='With search.method = "local": a table NAME_rolled_up beside the release with the same rows, in '
        "which each column named here is at this level (its number, or its name), and NULL where a row's label is "
        "coarser and cannot say.",
    )
    attacks: bool = Field(
        default=True,
        description="Attack what was written as its readers could, and tell the data holder what succeeds; false "
        "leaves it out.",
    )
    secrets: list[Text] = Field(
        default_factory=list,
        description="Released columns whose values attackers try to infer, beside the sensitive ones.",
    )
    view: Literal["snapshot", "computed"] = Field(
        default="snapshot",
        description='Of release.as = "view": over a frozen copy, or computed from the source at each reading.',
    )
    frozen: bool = Field(
        default=False,
        description='With view = "computed": the custodian states that the source never changes; verify checks it.',
    )
    columns: dict[str, Column] = Field(
        description="Column name to role and hierarchy; at least one is quasi-identifying. Others are not released."
    )
    stack: dict[str, Stack] = Field(
        default_factory=dict, description="Columns made of the rows that a person has in other tables, by name."
    )
    privacy: Privacy = Field(description="The criteria; k is mandatory.")
    search: Search = Field(default_factory=Search, description="Method, loss and limits of the search.")

    @property
    def many(self) -> bool:
        """Whether a person may have many rows, so that criteria count the different persons of a class."""
        return self.rows == "many"

    @property
    def every_column(self) -> dict[str, Column]:
        """Column name to role and hierarchy: those of `columns`, then those that stacks make and it does not name."""
        made = {
            name: Column.model_validate(stack.settings()) for y, stack in self.stack.items() for name in stack.names(y)
        }
        return self.columns | {name: column for name, column in made.items() if name not in self.columns}


class Release(Section):
    """Where the releases of a job go."""

    check = rules.release_problems

    into: Text | None = Field(
        default=None,
        description="Database file to write, relative to the job file, or the folder for parquet; absent: the source "
        "database.",
    )
    schema_name: Text = Field(
        default="release", alias="schema", description="Schema that holds the releases; of Parquet only on Spark."
    )
    kind: Literal["view", "table", "parquet"] = Field(
        default="table", alias="as", description="What each release becomes."
    )
