"""The figures of docs/attacks.md are those that its command prints, on Adult and the demo of MIMIC-III."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.attacks import BEFORE, figures
from tests.support.places import ROOT

pytestmark = pytest.mark.usefixtures("control_groups")


@pytest.mark.deep
def test_the_page_shows_what_attackers_achieve(shared_data: Path) -> None:
    page = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    printed = "\n".join(figures(shared_data)) + "\n"
    assert page.endswith(f"\n## Figures\n\n{BEFORE}\n\n{printed}"), (
        "python -m benchmarks.attacks --page docs/attacks.md puts them there"
    )
