"""Sentences of the use cases are those of docs/figures/cases.json, and some of its figures are measured again."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import script_module
from pages import ROOT

DOCS = ROOT / "docs"
FIGURES = json.loads((DOCS / "figures" / "cases.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_suggestions_measured_again():
    study = script_module("study/cases.py")
    X = study.read_svmlight(study.EXAMPLES / "imports.svm.gz").X
    known, hidden, _ = study.hide(study.liked_items(X), 0.2, np.random.default_rng(0))
    for name, fit in (("the most popular", study.popular), ("neighbours by cosine", study.cosine)):
        values = study.evaluate_lists(fit(known), known, hidden, study.LISTS).values
        assert values == pytest.approx(FIGURES["recommendation"]["methods"][name], abs=1e-9)


def test_what_the_pages_say_of_other_figures():
    """Sentences that are not tables."""
    page = (DOCS / "cases" / "fraud.md").read_text(encoding="utf-8")
    for figures in FIGURES["fraud"]["methods"].values():
        assert f"| {figures['of the first 200']} | {figures['beyond 1,000']} |" in page
    bags = FIGURES["bags"]
    page = (DOCS / "bags.md").read_text(encoding="utf-8")
    assert f"in {100 * bags['methods']['apsvm train --latent']['right']:.0f} of 100 pages" in page.replace("\n", " ")
    assert f"{bags['pages']} pages" in page
    tags = FIGURES["tags"]["methods"]
    each = [tags[name]["AP"] for name in ("apsvm train --one-vs-rest", "logistic regression, tuned")]
    ahead = sum(each[0][tag] > each[1][tag] for tag in each[0])
    assert f"on {ahead} of {len(each[0])} tags" in (DOCS / "cases" / "tags.md").read_text(encoding="utf-8")
