"""Every template passes the lint."""

from collections import Counter
from pathlib import Path

import pytest

from sqldeid.sql import template_names
from sqldeid.sql.lint import lint, lint_collection, lint_kept
from sqldeid.sql.templates import COLLECTION, KEPT_FILE, SUFFIX, folder, source_of

COLLECTIONS = sorted(folder().rglob(f"{COLLECTION}*{SUFFIX}"))


@pytest.mark.parametrize("name", template_names())
def test_template_passes_the_lint(name: str) -> None:
    short = not (folder() / f"{name}{SUFFIX}").is_file()
    assert lint(name, source_of(name) or "", short=short) == []


@pytest.mark.parametrize("path", COLLECTIONS, ids=lambda path: path.relative_to(folder()).as_posix())
def test_collection_passes_the_lint(path: Path) -> None:
    assert lint_collection(path.read_text(encoding="utf-8")) == []


def test_what_is_kept_passes_the_lint() -> None:
    assert lint_kept((folder() / KEPT_FILE).read_text(encoding="utf-8")) == []


def test_no_template_is_there_twice() -> None:
    assert [name for name, times in Counter(template_names()).items() if times > 1] == []


def test_there_are_templates() -> None:
    assert len(template_names()) > 40 and len(COLLECTIONS) > 10
