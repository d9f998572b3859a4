"""The tables and pictures of the use cases are those of docs/figures/cases.json, and some of its figures are measured
again."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from command import script_module
from pages import ROOT

DOCS = ROOT / "docs"
FIGURES = json.loads((DOCS / "figures" / "cases.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def scripts():
    """The modules of scripts/ that draw and that measure."""
    return script_module("dev/draw_cases.py"), script_module("study/cases.py")


def test_tables_are_what_was_measured(scripts):
    drawer, _ = scripts
    tables = drawer.tables_of(FIGURES)
    assert set(tables) == set(FIGURES)
    tables |= drawer.benchmark_tables(DOCS / "figures")
    found = set()
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        found |= set(re.findall(r"<!-- table: (\w+) -->", text))
        assert drawer.with_tables(text, tables) == text, f"{page}: python scripts/dev/draw_cases.py"
    assert found == set(tables)


def test_pictures_are_what_was_measured(scripts):
    drawer, _ = scripts
    pictures = drawer.pictures_of(FIGURES)
    assert set(pictures) == {path.stem for path in (DOCS / "pictures").glob("case-*.svg")}
    for name, drawn in pictures.items():
        assert (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8") == drawn, name
        ElementTree.fromstring(drawn)


def test_the_picture_of_the_readme_is_what_was_measured():
    drawer = script_module("dev/draw_top_of_list.py")
    drawn = drawer.drawn(json.loads(drawer.FIGURES.read_text(encoding="utf-8")))
    assert drawer.PICTURE.read_text(encoding="utf-8") == drawn
    ElementTree.fromstring(drawn)


@pytest.mark.slow
def test_suggestions_measured_again(scripts):
    _, study = scripts
    X = study.read_svmlight(study.EXAMPLES / "imports.svm.gz").X
    known, hidden, _ = study.hide(study.liked_items(X), 0.2, np.random.default_rng(0))
    for name, fit in (("the most popular", study.popular), ("neighbours by cosine", study.cosine)):
        values = study.evaluate_lists(fit(known), known, hidden, study.LISTS).values
        assert values == pytest.approx(FIGURES["recommendation"]["methods"][name], abs=1e-9)


def test_what_the_pages_say_of_other_figures():
    """Sentences that are not tables."""
    fraud = FIGURES["fraud"]["methods"]
    start = (DOCS / "start.md").read_text(encoding="utf-8")
    for name in ("apsvm train", "logistic regression, tuned", "boosted trees"):
        assert f"{fraud[name]['of the first 100']}" in start
        assert f"{fraud[name]['of the first 200']}" in start
    bags = FIGURES["bags"]
    page = (DOCS / "bags.md").read_text(encoding="utf-8")
    assert f"in {100 * bags['methods']['apsvm train --latent']['right']:.0f} of 100 pages" in page.replace("\n", " ")
    assert f"{bags['pages']} pages" in page
    tags = FIGURES["tags"]["methods"]
    each = [tags[name]["AP"] for name in ("apsvm train --one-vs-rest", "logistic regression, tuned")]
    ahead = sum(each[0][tag] > each[1][tag] for tag in each[0])
    assert f"on {ahead} of {len(each[0])} tags" in (DOCS / "cases" / "tags.md").read_text(encoding="utf-8")
