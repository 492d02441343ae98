"""Reports as a browser shows them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import sqldeid

if TYPE_CHECKING:
    from playwright.sync_api import Page

QI = "quasi-identifying"


ALERT = "<script>alert(1)</script>"


ROWS = 6_000


SOURCE = f"""CREATE TABLE "{ALERT}" AS
    SELECT 'PERSONKEY' || i AS person, 'CANARYNAME' || i AS name, 'CANARYNOTE' || i AS note,
           CASE WHEN i % 1500 = 7 THEN 'CANARYRARE' || i WHEN i % 3 = 0 THEN 'common {ALERT}'
                ELSE 'frequent' END AS city,
           CAST(20 + HASH(i) % 60 AS INTEGER) AS age, CASE WHEN HASH(i + 1) % 2 = 0 THEN 'f' ELSE 'm' END AS sex,
           'ill' || HASH(i * 7) % 5 AS "{ALERT}"
    FROM RANGE({ROWS}) AS r(i)"""


def job(folder: Path, **more: Any) -> sqldeid.Job:
    return sqldeid.Job.parse(
        {
            "release": {"into": "out.duckdb"},
            "tables": {
                ALERT.replace("/", "|"): {
                    "source": f'"{ALERT}"',
                    "person": "person",
                    "columns": {
                        "name": {"role": "identifying"},
                        "note": {"role": "free-text"},
                        "city": {"role": QI, "hierarchy": {"keep_first": [2]}},
                        "age": {"role": QI, "hierarchy": {"bands": [5, 10, 30]}},
                        "sex": {"role": QI, "hierarchy": {"suppress": True}},
                        ALERT: {"role": "sensitive"},
                    },
                    "privacy": {"k": 5, "suppression_limit": 0.01, "l_diversity": {"column": ALERT, "l": 2}, **more},
                }
            },
        },
        folder=folder,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[sqldeid.Result, str]:
    folder = tmp_path_factory.mktemp("report")
    path = folder / "source.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SOURCE)
    result = sqldeid.anonymize(job(folder), path, options=sqldeid.Options(explain=True))
    return result, result.to_html()


def text_of(page: str) -> str:
    """What stands in a page beside the charts' library."""
    head, _, rest = page.partition("<script>")
    return head + rest.partition("</script>")[2]


@pytest.fixture(scope="module")
def browser_page() -> Iterator[Page]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium: not installed (apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(
            executable_path=chromium, args=[*quiet, "--disable-component-update", "--disable-sync"]
        )
        yield browser.new_page()
        browser.close()
