"""TREC runs: trec_eval's published outputs, and trec_eval itself (pytrec-eval-terrier) on random runs."""

import math

import numpy as np
import pytest
import pytrec_eval
from instances import evaluated as summarised

from apsvm.data.trec import Qrels, TrecRun, join, read_qrels, read_run
from apsvm.metrics.evaluate import Evaluation

#: trec_eval's measure → ours
MEASURES = {
    "map": "AP",
    "Rprec": "Rprec",
    "bpref": "bpref",
    "recip_rank": "RR",
    "ndcg": "nDCG",
    "set_F": "F1",
    "set_P": "Precision",
    "set_recall": "Recall",
    **{f"P_{k}": f"P@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"recall_{k}": f"R@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"ndcg_cut_{k}": f"nDCG@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
}


def evaluated(qrels: Qrels, run: TrecRun, names, relevant_from=1.0, complete=False) -> Evaluation:
    rows = join(qrels, run, complete=complete)
    found = summarised(
        list(names), rows.scores, rows.grades, rows.codes, "file", relevant_from=relevant_from,
        ranked=rows.ranked, judged=rows.judged, threshold=-math.inf,
    )  # fmt: skip
    assert found.n_groups == rows.queries.size
    return found


@pytest.mark.parametrize("file", ["out.test", "out.test.aq"])
def test_published_outputs(file, trec_samples):
    """To the four decimals that were published; rbp is trec_eval's RBP(0.9)."""
    qrels, run = read_qrels(trec_samples / "qrels.test"), read_run(trec_samples / "results.test")
    lines = map(str.split, (trec_samples / file).read_text().splitlines())
    published = {(query, measure): value for measure, query, value in lines}
    names = MEASURES | {"rbp": "RBP(0.9)"}
    found = evaluated(qrels, run, names.values())
    queries = [*join(qrels, run).queries.tolist()]
    assert queries == ["301", "302", "303"]
    compared = 0
    for (query, measure), value in published.items():
        if measure in names:
            name = names[measure]
            ours = found.values[name] if query == "all" else found.in_group[name][queries.index(query)]
            assert f"{ours:.4f}" == value, (query, measure)
            compared += 1
    assert compared == {"out.test": 13, "out.test.aq": 4 * len(names)}[file]
    assert run.name == published["all", "runid"]


def random_files(rng):
    """Graded, unjudged and pool-unjudged documents, tied scores, queries on one side only or without positives.

    A query with negative grades only is not drawn: trec_eval then reads counts of the query before.
    """
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for q in range(int(rng.integers(2, 9))):
        documents = [f"d{i}" for i in range(int(rng.integers(2, 40)))]
        if rng.random() < 0.9:
            chosen = rng.choice(documents, int(rng.integers(1, len(documents) + 1)), replace=False)
            low, high = (0, 1) if rng.random() < 0.1 else (-1, int(rng.integers(2, 5)))
            qrels[f"q{q}"] = {str(document): int(rng.integers(low, high)) for document in chosen}
            qrels[f"q{q}"][str(chosen[0])] = 0
        if rng.random() < 0.9:
            chosen = rng.choice(documents, int(rng.integers(1, len(documents) + 1)), replace=False)
            run[f"q{q}"] = {str(document): float(rng.integers(0, 8)) / 4 for document in chosen}
    return qrels, run


def as_bytes(table):
    return {q.encode(): {d.encode(): value for d, value in of_query.items()} for q, of_query in table.items()}


@pytest.mark.slow
@pytest.mark.parametrize("relevant_from", [1, 2])
def test_random_runs(relevant_from, rng):
    measures = {"map", "Rprec", "bpref", "recip_rank", "ndcg", "P", "recall", "ndcg_cut"}
    measures |= {"set_F", "set_P", "set_recall"}
    compared = without_positive = 0
    values = []
    for _ in range(150):
        qrels, run = random_files(rng)
        if not set(qrels) & set(run):
            continue
        judge = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=relevant_from)
        expected = judge.evaluate(run)
        found = evaluated(
            Qrels(as_bytes(qrels), "qrels"), TrecRun(as_bytes(run), "run", "run"), MEASURES.values(), relevant_from
        )
        for i, query in enumerate(sorted(set(qrels) & set(run))):
            without_positive += max(qrels[query].values()) < relevant_from
            for measure, name in MEASURES.items():
                ours = found.in_group[name][i]
                assert ours == pytest.approx(expected[query][measure], rel=1e-12, abs=1e-15), (measure, query)
                compared += 1
                values.append(ours)
    assert compared > 15000
    assert without_positive > 20
    assert np.unique(values).size > 500


def test_complete_counts_missing_queries_as_nought():
    qrels = Qrels({b"1": {b"a": 1, b"b": 0}, b"2": {b"a": 1}, b"3": {b"a": 2}}, "qrels")
    run = TrecRun({b"1": {b"a": 1.0, b"b": 0.5}, b"9": {b"a": 1.0}}, "run", "run")
    rows = join(qrels, run)
    assert (rows.missing_queries, rows.unjudged_queries, rows.queries.tolist()) == (2, 1, ["1"])
    assert evaluated(qrels, run, ["AP", "nDCG"]).values == {"AP": 1.0, "nDCG": 1.0}
    complete = evaluated(qrels, run, ["AP", "nDCG", "P@1", "RR", "bpref"], complete=True)
    assert complete.values == pytest.approx(dict.fromkeys(complete.values, 1 / 3))
    # what was not retrieved is tied, below everything that was
    assert evaluated(qrels, run, ["AUC"], complete=True).in_group["AUC"].tolist() == [1.0, 0.0, 0.0]
