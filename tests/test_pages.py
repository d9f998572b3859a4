"""The commands and code on the pages run, and print what the pages show."""

from __future__ import annotations

import pytest
from pages import ROOT, assert_printed, follow, is_like

PAGES = [ROOT / "README.md", ROOT / "docs" / "start.md", *sorted((ROOT / "docs" / "cases").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_followed(page, tmp_path, monkeypatch, capfd):
    if page.stem in ("README", "start", "fraud", "recommendation"):
        pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    assert follow(page, tmp_path, capfd) >= 1


def test_what_is_printed_is_compared():
    assert is_like("AP  0.6536", "AP 0.653630")
    assert is_like("m1\t5679.5\t…", "m1\t5679.47\tnoise=2")
    assert not is_like("AP 0.6536", "AP 0.63")
    assert not is_like("AP 0.6536", "AUC 0.6536")
    assert not is_like("AP", "AP 0.6")
    assert_printed(["a", "…", "c"], "a\nb\nc\n")
    with pytest.raises(AssertionError, match="is not in"):
        assert_printed(["b", "a"], "a\nb\n")
