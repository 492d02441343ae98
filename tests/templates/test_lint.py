"""Every template passes the lint."""

import pytest

from sqldeid.sql import template_names
from sqldeid.sql.lint import lint
from sqldeid.sql.templates import SUFFIX, folder


@pytest.mark.parametrize("name", template_names())
def test_template_passes_the_lint(name: str) -> None:
    assert lint(name, (folder() / f"{name}{SUFFIX}").read_text(encoding="utf-8")) == []


def test_there_are_templates() -> None:
    assert len(template_names()) > 40
