"""The statements of a release of series."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.publish.steps import putting
from sqldeid.series.plan import SeriesPlan
from sqldeid.sql.steps import as_needed, once, step
from sqldeid.stages import Step, Target

_PREPARED = (
    *("series/list_variables", "series/keep_members", "series/keep_stays", "series/keep_instants"),
    *("series/clean_benchmark", "series/find_persons", "series/measure_span", "series/bin_instants"),
    *("series/cut_persons", "series/fill_steps", "series/fill_points", "series/measure_lengths"),
    "series/read_records",
)

_LINKED = ("engine/count_rows", "series/join_classes", "series/read_joined", "series/name_members")

_CLASSES = (
    *("mondrian/list_values", "mondrian/measure_spans", "mondrian/start_parts", "mondrian/measure_cuts"),
    *("mondrian/measure_diversity", "mondrian/choose_cuts", "mondrian/read_cuts", "mondrian/find_torn"),
    *("mondrian/find_unfit", "mondrian/split_parts", "mondrian/count_parts", "mondrian/number_classes"),
    *("mondrian/read_parts", "series/read_classes"),
)


def deciding(planned: SeriesPlan) -> Iterator[Step]:
    """What prepares, shortens, measures and classifies series, and so decides who is released."""
    yield from as_needed(*_PREPARED, *(_LINKED if planned.part.link is not None else ()))
    yield from as_needed("series/name_people", "series/read_outcomes")
    yield step("series/cut_series")
    yield from as_needed("series/read_part")
    yield from once("series/measure_features", "series/read_features")
    yield from as_needed("series/measure_own", *_CLASSES)


def comparing() -> Iterator[Step]:
    """What compares a release with earlier ones, or with others of the same run."""
    return as_needed("series/name_people", "series/read_block")


def perturbing() -> Iterator[Step]:
    """What reads series block by block, and takes what they became."""
    yield step("series/create_released")
    yield from as_needed("series/read_block", "series/add_released")


def writing(planned: SeriesPlan, target: Target) -> Iterator[Step]:
    """What writes the release."""
    wide = planned.part.shape == "wide"
    yield from as_needed("series/read_part", "run/sum_columns")
    written = step("series/stage_wide" if wide else "series/stage_long")
    for each in putting(target.kind, 4, written):  # a wide release has a column of each variable that is found
        yield step(each.template, None) if each.template == "publish/comment_column" else each


def verifying(planned: SeriesPlan) -> Iterator[Step]:
    """What measures again what was written, and compares it with its targets."""
    yield step("series/unfold_wide" if planned.part.shape == "wide" else "series/unfold_long")
    yield from once("series/check_rows", "series/measure_written")
    yield from as_needed("series/compare_features", "series/compare_places", "series/count_classes")
    if planned.part.link is not None:
        yield step("series/compare_linked")


def attacking(planned: SeriesPlan) -> Iterator[Step]:
    """What measures the job's own features on what was written."""
    if planned.own:
        yield from as_needed("series/unfold_wide", "series/unfold_long", "series/measure_own", "series/read_part")
