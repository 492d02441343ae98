"""The statements of a release of event sequences."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.events.plan import EventsPlan
from sqldeid.publish.steps import putting
from sqldeid.sql.steps import as_needed, once, step
from sqldeid.stages import Step, Target

_SPLIT = ("events/count_gaps", "events/measure_gaps", "events/split_events", "events/build_parts")

_SETS = (
    *("events/make_shingles", "events/code_shingles", "events/key_parts", "events/rank_sets"),
    "events/list_members",
)

_CLUSTERS = (
    *(*_SETS, "events/hash_shingles", "events/sign_sets", "events/start_clusters", "events/band_sets"),
    *("events/join_clusters", "engine/count_rows", "events/join_rest", "events/cluster_parts"),
    "events/count_clusters",
)

_LINKS = (
    *("events/link_starts", "events/link_values", "events/pair_states", "events/pair_clusters", "events/link_events"),
    *("events/link_parts", "events/count_links", "events/count_days", "events/measure_steps", "events/judge_links"),
    *("events/sum_links", "events/read_links"),
)

_BOUNDS = (
    *("events/bound_steps", "events/bound_states", "events/bound_lengths", "events/bound_factors"),
    *("events/bound_gaps", "events/bound_starts", "events/bound_groups", "events/bound_group_steps"),
)


def ordering(plan: EventsPlan) -> Iterator[Step]:
    """What orders the source's events, numbers their states and splits sequences."""
    yield step("events/order_events")
    yield step("events/list_states" if plan.domain is None else "events/map_states")
    yield from once("events/place_events", "events/count_source")
    yield from as_needed(*_SPLIT)
    if plan.domain is None:
        yield step("engine/count_rows")


def fitting(plan: EventsPlan) -> Iterator[Step]:
    """What counts that from which objects are made."""
    return as_needed(*(_BOUNDS if plan.domain is not None else (*_CLUSTERS, *_LINKS)))


def writing(plan: EventsPlan, target: Target) -> Iterator[Step]:
    """What writes the objects that were made."""
    yield step("run/sum_columns", None)
    columns = 1 + (plan.time is not None) + plan.placed + len(plan.states) + len(plan.grouped)
    yield from putting(target.kind, columns, step("events/write_events"))


def verifying() -> Iterator[Step]:
    """What verifies what was written, and reads what its rows show."""
    return as_needed(
        *("events/check_numbers", "events/check_states", "events/check_pairs", "events/fence_gaps"),
        "events/check_groups",
        "tables/write/list_shown",
    )


def comparing() -> Iterator[Step]:
    """What compares the objects that were made with the source."""
    yield from as_needed("events/split_made", "events/compare_pairs", "events/compare_lengths", *_SETS)
    yield from as_needed("events/read_sets", "events/count_owners")


def attacking(plan: EventsPlan) -> Iterator[Step]:
    """What attacks a release, and makes others without an object, or with one that was planted."""
    yield from as_needed("events/count_objects", "events/take_objects", "events/list_pairs", "events/plant_object")
    yield from as_needed("events/split_made", *_SPLIT, *_SETS, "events/read_sets", "events/count_owners")
    yield from fitting(plan)


def spending() -> Iterator[Step]:
    """What reads whose budget is spent."""
    return once("events/list_objects")
