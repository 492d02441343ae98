"""Tables get from a study into a page and back, and a page without the place is refused."""

from __future__ import annotations

import pytest

from tests.support.places import EXAMPLES
from tests.support.studies import module_of

gallery = module_of(EXAMPLES / "gallery.py")


def test_a_table_is_put_where_its_name_stands_and_nowhere_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- s/one -->\nold\n<!-- end -->\nb\n<!-- s/two -->\n<!-- end -->\nc\n", encoding="utf-8")
    rows = [{"k": 5, "loss": 0.123456, "note": None}, {"k": 10, "of": "x"}]
    text = gallery.markdown(rows)
    assert text == "| k | loss | note | of |\n|---|---|---|---|\n| 5 | 0.123 |  |  |\n| 10 |  |  | x |"
    gallery.put(page, "s/one", text)
    gallery.put(page, "s/one", text)
    assert gallery.held(page, "s/one") == text and gallery.held(page, "s/two") == ""
    assert page.read_text(encoding="utf-8").endswith("<!-- end -->\nb\n<!-- s/two -->\n<!-- end -->\nc\n")
    with pytest.raises(ValueError, match="no place <!-- s/three -->"):
        gallery.put(page, "s/three", text)


def test_rows_come_back_from_a_file(tmp_path):
    gallery.write_rows(tmp_path / "deep" / "rows.csv", [{"a": 1}, {"a": 2, "b": "x"}])
    assert gallery.read_rows(tmp_path / "deep" / "rows.csv") == [{"a": "1", "b": ""}, {"a": "2", "b": "x"}]
