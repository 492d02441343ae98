"""What every released class must meet, as pydantic models: the criteria of `[tables.….privacy]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sqldeid.errors import UnknownKindError
from sqldeid.job.criteria import PER_CLASS
from sqldeid.job.fields import Positive, Section, Text, Whole
from sqldeid.job.rules import Problem, few_digits


def diversity_problems(entry: Mapping[str, object]) -> Iterator[Problem]:
    """`c` belongs to the recursive kind."""
    recursive = entry.get("kind") == "recursive"
    if recursive and entry.get("c") is None:
        yield Problem(("c",), 'missing; kind = "recursive" needs c')
    if entry.get("c") is not None and not recursive:
        yield Problem(("c",), 'goes with kind = "recursive" alone; remove it or change kind')
    yield from few_digits("c", entry.get("c"))


def closeness_problems(entry: Mapping[str, object]) -> Iterator[Problem]:
    """An order belongs to the ordered distance and names each value once; a hierarchy belongs to the hierarchical."""
    order, hierarchical = entry.get("order"), entry.get("distance") == "hierarchical"
    if hierarchical and entry.get("hierarchy") is None:
        yield Problem(("hierarchy",), 'missing; distance = "hierarchical" needs a CSV file, or a shipped hierarchy')
    if entry.get("hierarchy") is not None and not hierarchical:
        yield Problem(("hierarchy",), 'goes with distance = "hierarchical" alone; remove it or change distance')
    if order is not None and entry.get("distance") != "ordered":
        yield Problem(("order",), 'goes with distance = "ordered" alone; remove it or change distance')
    if isinstance(order, list) and len({str(v) for v in order}) < len(order):
        yield Problem(("order",), "names a value twice")
    yield from few_digits("t", entry.get("t"))


def ratio_problems(entry: Mapping[str, object]) -> Iterator[Problem]:
    """Rules of a criterion on ratios of shares: its number, whichever it has."""
    for name in ("delta", "beta"):
        yield from few_digits(name, entry.get(name))


def _listed(value: object) -> object:
    """One table or a list of tables."""
    return [value] if isinstance(value, Mapping) else value


def _or_one(schema: dict[str, Any]) -> None:
    """The schema of a list, or of one of its items."""
    listed = {name: schema.pop(name) for name in ("type", "items", "minItems")}
    schema["anyOf"] = [dict(listed["items"]), listed]


class LDiversity(Section):
    """l-diversity of a sensitive column (Machanavajjhala et al. 2007)."""

    check = diversity_problems

    column: Text = Field(description="A sensitive column of this release.")
    l: Whole = Field(description="How many values: distinct, as entropy, or as the l of recursive (c,l).")
    kind: Literal["distinct", "entropy", "recursive"] = Field(
        default="distinct",
        description="distinct: l values in every class. entropy: as uncertain as l equally likely values. recursive: "
        "the most frequent value has fewer rows than c times those without the l - 1 most frequent.",
    )
    c: Positive | None = Field(default=None, description="With recursive, and always there: greater than 0.")
    scope: Literal["independent", "joint"] = Field(
        default="independent",
        description="independent: in every class. joint: also among the rows of a class that agree on every other "
        "sensitive column of the release, for who knows those values.",
    )


class TCloseness(Section):
    """t-closeness of a sensitive column (Li et al. 2007)."""

    check = closeness_problems

    column: Text = Field(description="A sensitive column of this release.")
    t: float = Field(ge=0, le=1, description="Greatest distance of a class from the whole table, 0 to 1.")
    distance: Literal["equal", "ordered", "hierarchical"] = Field(
        default="equal",
        description="equal: any two values are equally far. ordered: by rank; for numbers and dates, or by order. "
        "hierarchical: by the level at which a hierarchy first gives them one label, over its height.",
    )
    hierarchy: Text | None = Field(
        default=None,
        description="With hierarchical: a CSV file (original;level1;…;top, no header; relative to the job file) with a "
        "line for every value, or the name of a shipped one.",
    )
    order: list[str] | None = Field(
        default=None, min_length=1, description="With ordered: the values from low to high, where text has an order."
    )


class DeltaDisclosure(Section):
    """δ-disclosure privacy of a sensitive column (Brickell and Shmatikov 2008)."""

    check = ratio_problems

    column: Text = Field(description="A sensitive column of this release.")
    delta: float = Field(
        gt=0,
        le=10,
        description="Above 0 to 10: the share of every value in every class is that in the whole table but for a "
        "factor below e^delta; every value of the table must be in every class.",
    )


class BetaLikeness(Section):
    """β-likeness of a sensitive column (Cao and Karras 2012)."""

    check = ratio_problems

    column: Text = Field(description="A sensitive column of this release.")
    beta: float = Field(
        gt=0,
        le=1000,
        description="Above 0 to 1000: the share q of a value in a class exceeds its share p in the whole table by at "
        "most beta times p.",
    )
    kind: Literal["basic", "enhanced"] = Field(
        default="enhanced",
        description="enhanced: (q - p) / p is at most min(beta, -ln p), which bounds frequent values, too. basic: at "
        "most beta.",
    )


Probability = Annotated[float, Field(ge=0, le=1)]


class MConcealing(Section):
    """m-concealing (Mazzone 2019, §5.2): risk when sensitive columns may be known."""

    m: float = Field(
        gt=0,
        le=1,
        description="Greatest probability of picking a person's row, above 0 to 1; with inverse-ola the greatest "
        "accepted, and the least is sought.",
    )
    known: dict[Text, Probability] = Field(
        default_factory=dict,
        max_length=12,
        description="Sensitive columns that an attacker may know, and with what probability, 0 to 1; at most 12.",
    )
    inclusion: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Probability that a person is in the release at all; below 1 only for uniform, secret sampling.",
    )


class Population(Section):
    """All persons of whom the release holds some, by one of four keys; they are read, never released."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [key]} for key in ("table", "rest", "size", "weights")]},
    )

    table: Text | None = Field(
        default=None, description="With the quasi-identifying columns of the release, of the same names and types."
    )
    rest: Literal[True] | None = Field(
        default=None,
        description="true: the source without where, of which each person has one row. where names no "
        "quasi-identifying column then: who knows it would leave out of the population whom it leaves out.",
    )
    weights: Text | None = Field(
        default=None,
        description="A column of the source, of whole numbers from 1 on: how many persons of the population a row "
        "stands for, its own among them. Their sum estimates the persons who fit a class.",
    )
    size: Whole | None = Field(
        default=None, description="Persons of the population, where no table has them: k_map is then an estimate."
    )
    fraction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="With size, and always there: the greatest share of these persons that the source, a random "
        "sample of them, has rows of; more rows are refused.",
    )
    estimate: Literal["poisson", "zero-truncated-poisson"] = Field(
        default="zero-truncated-poisson",
        description="With size: how k_map is estimated. poisson: of all classes of the population that are too small. "
        "zero-truncated-poisson: of those that the source has a row of, which asks for greater classes.",
    )
    significance: float = Field(
        default=0.05,
        gt=0,
        le=0.5,
        description="With size: the share of too small classes that may be released, above 0 to 0.5.",
    )


class DeltaPresence(Section):
    """δ-presence (Nergiz 2007): the share of each class of the population that is in the source."""

    least: float = Field(default=0.0, ge=0, le=1, description="Least share, 0 to 1; above 0 no class may lack.")
    most: float = Field(gt=0, le=1, description="Greatest share, above 0 to 1.")


class Game(Section):
    """No attack pays (Wan et al. 2015, the no-attack variant): what attackers are paid for a success, and spend."""

    payout: float = Field(ge=0, description="What an attacker is paid for finding a person's row.")
    cost: float = Field(gt=0, description="What each attempt costs the attacker, above 0; in the same currency.")
    attacker: Literal["prosecutor", "journalist"] = Field(
        default="prosecutor",
        description="prosecutor: knows who is in the release; k must be above payout / cost. journalist: does not; "
        "k_map must be.",
    )


class AtRisk(Section):
    """Records at risk (El Emam 2013): how many released rows may lie in small classes."""

    threshold: float = Field(gt=0, le=1, description="A row is at risk where 1 / rows of its class exceeds this.")
    share: float = Field(ge=0, le=1, description="Greatest share of the released rows at risk, 0 to 1.")


class Privacy(Section):
    """What every released equivalence class must meet."""

    k: Whole = Field(description="k-anonymity: the least size of a released equivalence class, in rows.")
    suppression_limit: float = Field(
        default=0.0, ge=0, le=1, description="The greatest share of rows (0 to 1, not per cent) that may be suppressed."
    )
    criteria_limit: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description='With search.choose = "by-k", and always there: the greatest share of rows (0 to 1) that may be '
        "suppressed because their classes, of k rows and more, fail another criterion; beside suppression_limit.",
    )
    suppression: Literal["drop", "blank"] = Field(
        default="drop",
        description="Rows of classes that fail: leave them out, or keep them with every quasi-identifying column at "
        "its top.",
    )
    l_diversity: Annotated[list[LDiversity], BeforeValidator(_listed)] = Field(
        default_factory=list,
        min_length=1,
        description="l-diversity of sensitive columns: one table or a list of tables.",
        json_schema_extra=_or_one,
    )
    t_closeness: Annotated[list[TCloseness], BeforeValidator(_listed)] = Field(
        default_factory=list,
        min_length=1,
        description="t-closeness of sensitive columns: one table or a list of tables.",
        json_schema_extra=_or_one,
    )
    delta_disclosure: Annotated[list[DeltaDisclosure], BeforeValidator(_listed)] = Field(
        default_factory=list,
        min_length=1,
        description="δ-disclosure privacy of sensitive columns: one table or a list of tables.",
        json_schema_extra=_or_one,
    )
    beta_likeness: Annotated[list[BetaLikeness], BeforeValidator(_listed)] = Field(
        default_factory=list,
        min_length=1,
        description="β-likeness of sensitive columns: one table or a list of tables.",
        json_schema_extra=_or_one,
    )
    m_concealing: MConcealing | None = Field(
        default=None, description="m-concealing: greatest risk when sensitive columns may be known."
    )
    average_risk: float | None = Field(
        default=None, gt=0, le=1, description="Greatest mean of 1 / rows of a class over released rows, above 0 to 1."
    )
    k_map: Whole | None = Field(default=None, description="Persons of the population that each class fits, at least.")
    delta_presence: DeltaPresence | None = Field(default=None, description="Shares of the population's classes.")
    population: Population | None = Field(default=None, description="With k_map or delta_presence: the population.")
    at_risk: AtRisk | None = Field(default=None, description="How many released rows may lie in small classes.")
    game: Game | None = Field(
        default=None, description="No class in which an attack pays; the job states the k (or k_map) that this takes."
    )
    undecided: list[Text] | None = Field(
        default=None,
        min_length=1,
        description="Demands of another tool's project that were not taken, as sqldeid import-arx writes them. A job "
        "with this line is refused: write what is to hold instead, or decide that it need not, and remove the line.",
    )

    @property
    def per_class(self) -> dict[str, list[BaseModel]]:
        """What is asked of classes beyond k, by key, in the order of `criteria.PER_CLASS`."""
        return {key: list(getattr(self, key)) for key in PER_CLASS}

    @property
    def blanks(self) -> bool:
        """Whether rows of classes that fail stay, with every quasi-identifying column at its top.

        Raises
        ------
        UnknownKindError
            For a form of suppression that is neither of the two: dropping must not be what is left over.
        """
        match self.suppression:
            case "drop":
                return False
            case "blank":
                return True
            case unknown:
                raise UnknownKindError(unknown, "form of suppression")
