"""``apsvm eval`` of several systems: side by side, per query, with intervals and tests; metrics by name; grades."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from apsvm.metrics.evaluate import evaluate
from apsvm.metrics.significance import randomisation_test


@pytest.fixture(scope="module")
def ranked(tmp_path_factory, write_rows):
    """60 queries of 6 to 12 rows, grades 0 to 3, and the scores of two systems, the second the better one."""
    rng = np.random.default_rng(5)
    folder = tmp_path_factory.mktemp("systems")
    queries = np.repeat(np.arange(60), rng.integers(6, 13, 60))
    grades = rng.integers(0, 4, queries.size).astype(float)
    grades[queries == 0] = 2 + np.arange((queries == 0).sum()) % 2  # all relevant from 2 on, but to tell apart
    write_rows(folder / "data", rng.normal(size=(queries.size, 2)), grades, query_id=queries)
    scores = {}
    for name, strength in (("a", 0.3), ("b", 1.5)):
        scores[name] = np.round(rng.normal(size=queries.size) + strength * grades, 1)
        (folder / name).write_text("".join(f"{score}\n" for score in scores[name]))
    return folder, queries, grades, scores


NAMES = ["nDCG@3", "nDCG(exp)", "AP", "WMW", "WMW(0<3)", "RR"]
ASKED = [word for name in NAMES for word in ("-m", name.swapcase())]


def test_side_by_side(run, ranked):
    folder, queries, grades, scores = ranked
    arguments = (
        "eval",
        folder / "data",
        "--scores",
        folder / "a",
        "--scores",
        folder / "b",
        "--relevant-from",
        2,
        *ASKED,
    )
    found = json.loads(run(*arguments, "--json", "--per-query", "--compare", "--confidence", "0.9").stdout)["systems"]
    assert list(found) == [str(folder / "a"), str(folder / "b")]
    values = {}
    for name, system in zip("ab", found.values(), strict=True):
        expected = evaluate(NAMES, scores[name], grades, queries, relevant_from=2)
        assert system["metrics"] == pytest.approx(expected.values, rel=1e-12)
        assert list(system["metrics"]) == NAMES
        assert system["queries"] == 60
        assert (system["tied_rows"], system["positives"]) == (expected.tied_rows, int((grades >= 2).sum()))
        assert list(system["per_query"]) == [str(q) for q in range(60)]
        values[name] = {m: np.array([q[m] for q in system["per_query"].values()], dtype=float) for m in NAMES}
        for metric in NAMES:
            assert np.isnan(values[name][metric][0]) == (metric in ("AP", "RR", "WMW(0<3)"))
            np.testing.assert_array_equal(values[name][metric], expected.in_group[metric])
            low, high = system["intervals"][metric]
            assert low <= system["metrics"][metric] <= high < low + 0.2
    gains = [(grades[queries == q], scores["a"][queries == q]) for q in range(60)]
    expected = [ndcg_score([g], [s], k=3) for g, s in gains]
    assert found[str(folder / "a")]["metrics"]["nDCG@3"] == pytest.approx(np.mean(expected), rel=1e-12)
    assert "against_first" not in found[str(folder / "a")]
    for metric, against in found[str(folder / "b")]["against_first"].items():
        d = values["b"][metric] - values["a"][metric]
        d = d[~np.isnan(d)]
        assert against["effect"] == pytest.approx(d.mean(), rel=1e-12)
        assert against["low"] < against["effect"] < against["high"]
        assert against["p"] == randomisation_test(d, 10_000, np.random.default_rng(0))
        assert (against["better"], against["worse"]) == ((d > 0).sum(), (d < 0).sum())
    assert found[str(folder / "b")]["against_first"]["AP"]["p"] < 0.01


def test_models_side_by_side(run, digits, trained):
    models = [trained(digits, "-C", c) for c in ("1", "10")]
    found = json.loads(run("eval", digits.path, "--model", models[0], "--model", models[1], "--json").stdout)["systems"]
    for model in models:
        alone = json.loads(run("eval", digits.path, "--model", model, "--json").stdout)
        assert found[str(model)] == alone


def test_per_query_needs_queries(run, digits, trained):
    done = run("eval", digits.path, "--model", trained(digits), "--per-query", code=65)
    assert done.stderr.endswith(": --per-query needs queries, and its rows have none (qid:)\n")
