"""Presets of `sqldeid init`: published thresholds as k, and Safe Harbor's columns left out. None says that law is met.

HIPAA itself has two ways (45 CFR 164.514(b)). *Expert determination* asks that the risk be "very small" and names no
number; the numbers here are those that others publish for the size of cells or the highest risk of a person, 1/k.
*Safe Harbor* asks that 18 kinds of identifiers be absent, and that nobody knows that what is left identifies; which
columns hold them is guessed from names, types, looks and counts (`identifiers`), so a column may be missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqldeid.errors import JobError
from sqldeid.schemas import SCHEMAS

HARBOR = "hipaa-safe-harbor"


@dataclass(frozen=True, slots=True)
class Preset:
    """What a preset changes of a proposed job.

    Parameters
    ----------
    name
        As `--preset` has it.
    k
        The least size of a class; None leaves what `init` proposes.
    why
        Where that comes from, in half a sentence.
    harbor
        Whether columns of the 18 kinds are never released; ages are, from 90 on as 90.
    """

    name: str
    k: int | None
    why: str
    harbor: bool = False


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            HARBOR,
            None,
            "columns of Safe Harbor's 18 kinds are never released, ages from 90 on as 90",
            harbor=True,
        ),
        Preset("cms-11", 11, "11 is the least cell that the US Centers for Medicare & Medicaid Services let out"),
        Preset("risk-0.09", 12, "a highest risk of at most 0.09 (EMA Policy 0070, Health Canada): 1/12"),
    )
}
"""By name. Source: 45 CFR 164.514(b)(2)(i); CMS Cell Size Suppression Policy; EMA Policy 0070; Health Canada PRCI."""

CAUTION = (
    "A preset is a start, and does not say that law or policy is met: columns are known by name, type, look and "
    "counts, so one may be missed; read each line. HIPAA's expert determination names no number, and its Safe Harbor "
    "asks besides that nobody knows that what is left identifies a person."
)


def presets_of(names: str | Sequence[str] | None) -> tuple[Preset | None, str | None]:
    """The threshold and the shared schema that are named, each None where none is.

    Raises
    ------
    JobError
        For a name that no preset has, and for two of one kind.
    """
    named = [names] if isinstance(names, str) else list(names or ())
    for name in named:
        if name not in PRESETS and name not in SCHEMAS:
            known = ", ".join((*PRESETS, *SCHEMAS))
            raise JobError(f"--preset: there is none of that name; choose one of {known}", key="preset")
    begun, schemas = [n for n in named if n in PRESETS], [n for n in named if n in SCHEMAS]
    for kind in (begun, schemas):
        if len(set(kind)) > 1:
            raise JobError(f"--preset: {' and '.join(kind)} do not go together; choose one of them", key="preset")
    return (PRESETS[begun[0]] if begun else None), (schemas[0] if schemas else None)
