"""Read a file of house rules: TOML in UTF-8, with every problem of it named."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from sqldeid.errors import JobError
from sqldeid.files import read_limited
from sqldeid.house_rules.model import HouseRules, schema
from sqldeid.job.problems import refusal, translate
from sqldeid.job.reading import read_toml

VARIABLE = "SQLDEID_HOUSE_RULES"
"""The environment variable that names a file which every run must meet."""

_MOST = 1 << 22
"""Bytes of a file of house rules."""


def load(path: Path) -> HouseRules:
    """The rules of a file.

    Raises
    ------
    JobError
        If it cannot be read, is not TOML, or holds what is not known; one line for each problem.
    """
    try:
        content = read_limited(path, _MOST)
    except OSError as error:
        raise JobError.at("--house-rules", f"{path}: cannot be read ({error.strerror}); nothing runs") from None
    except ValueError:
        raise JobError.at("--house-rules", "is not a path; it holds a NUL character") from None
    rules = parse(read_toml(content, path.name), path.name)
    rules._sha256 = hashlib.sha256(content).hexdigest()
    return rules


def parse(data: Mapping[str, object], name: str) -> HouseRules:
    """Take rules from a mapping of the file's shape.

    Raises
    ------
    JobError
        If it holds what is not known; one line for each problem.
    """
    try:
        rules = HouseRules.model_validate(dict(data))
    except ValidationError as error:
        raise refusal(name, translate(error, schema())) from None
    rules._name = name
    return rules
