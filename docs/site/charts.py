"""Make the pictures of docs/explanation/charts.md anew: python docs/site/charts.py (Chromium and the extra `report`).

Every picture comes from a command on a demo database, whose seed is fixed; the page names the command.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).resolve().parents[1]
FIGURES = DOCS / "figures"
PROGRAM = Path(sys.executable).with_name("sqldeid")
COMMANDS = (
    "demo adult census.duckdb",
    "demo events ward.duckdb",
    "demo mimic hospital.duckdb",
    "explore census.duckdb --table main.adult --columns age,sex,education,race --plot explore.png",
    "explore hospital.duckdb --table mimiciii.procedures_icd --per hadm_id --value icd9_code --order seq_num "
    "--plot sequences.png",
    "anonymize census.duckdb --job census.job.toml --report table.html",
    "anonymize ward.duckdb --job ward.job.toml --report events.html",
    "anonymize hospital.duckdb --job vitals.toml --report series.html",
    "tradeoff census.duckdb --job census.job.toml --html tradeoff.html",
)
REPORTS = ("table", "events", "series", "tradeoff")
JOBS = ("tutorial/series.md", "explanation/charts.md")
"""Pages whose blocks of TOML are together the job `vitals.toml`."""

LEFT_OUT = {("events", 3)}
"""It looks like the first of its report."""

WIDTH = 900


def main() -> None:
    """Run the commands in a folder of their own, and take the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = [(DOCS / page).read_text(encoding="utf-8") for page in JOBS]
        blocks = [re.search(r"^```toml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL) for page in pages]
        (folder / "vitals.toml").write_text("".join(block[1] for block in blocks if block), encoding="utf-8")
        for command in COMMANDS:
            words = [str(PROGRAM), *command.split()]
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own program
        for picture in ("explore", "sequences"):
            shutil.copy(folder / f"{picture}.png", FIGURES / f"charts-{picture}.png")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": 900})
            for report in REPORTS:
                page.goto((folder / f"{report}.html").as_uri())
                take(page, report)
            browser.close()


def take(page: Page, report: str) -> None:
    """A picture of each chart of a report."""
    for number, figure in enumerate(page.locator("figure").all(), 1):
        if (report, number) not in LEFT_OUT:
            figure.scroll_into_view_if_needed()
            figure.screenshot(path=FIGURES / f"charts-{report}-{number}.png")


if __name__ == "__main__":
    os.umask(0o022)
    main()
