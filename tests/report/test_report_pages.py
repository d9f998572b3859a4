"""Pages of runs made by hand: their sections, the figures in them, the pictures with what they show, and escapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from html_reader import Reader

from apsvm._support import sparse as sp
from apsvm.data.dataset import Dataset, LabelSets, TableRows
from apsvm.data.features.piecewise import Piecewise
from apsvm.data.features.rules import Rules, Size
from apsvm.metrics.evaluate import evaluate
from apsvm.models.columns import Column, ColumnKind, Columns
from apsvm.models.components import ComponentRanker
from apsvm.models.header import (
    Bounds,
    Calibration,
    Data,
    Epochs,
    Features,
    Header,
    LabelKind,
    Labels,
    Threshold,
    Validation,
)
from apsvm.models.linear import LinearRanker
from apsvm.models.net import Layer, Net, NetRanker
from apsvm.models.sets import RankerSet
from apsvm.report.build import report
from apsvm.report.first_rows import FirstRows
from apsvm.report.pictures.base import Picture
from apsvm.report.reasons import Reasons
from apsvm.report.run import Run

#: Sections of a page of one ranker that was judged.
FIRST, LAST = ["The first rows", "Metrics"], ["Positive rows that stand lowest", "Data", "How it was trained"]


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    """The pictures of a page, in its order, each by the name of its class."""
    made = []

    def render(self, format, width):
        made.append(self)
        return f'<svg viewBox="0 0 1 1"><text>picture {len(made)}</text></svg>'.encode()

    monkeypatch.setattr(Picture, "render", render)
    return made


def kinds(pictures):
    return [type(one).__name__ for one in pictures]


X = np.array(
    [[4.0, 0, 1], [3, 1, 1], [2, 0, 1], [2, 0, 1], [1, 2, 1], [1, -1, 1], [0, 0, 1], [0, 3, 1], [-1, 0, 1], [-2, 5, 1]]
)
LABELS = np.array([1.0, -1, 1, -1, -1, 1, -1, -1, -1, -1])
LINES = np.array([2, 3, 5, 6, 7, 8, 11, 12, 13, 20])
RUN = {
    "event": "run", "data": "folder/rows.svm", "began": "2026-11-26T09:00:00Z", "seconds": 0.25, "rows": 1000,
    "features": 3, "values": 29, "versions": {"apsvm": "1.2", "numpy": "2"}, "machine": "2 cores",
    "options": {"positive_label": 1.0, "log_ranks": True, "quiet": True, "verbose": True, "C": [1.0, 10.0]},
}  # fmt: skip
START = {"event": "start", "loss": "ap", "C": 2.0, "epsilon": 0.01}
ENDS = {"seconds": {"reading": 0.25, "scores": 1.0, "oracle": 2.0, "gradient": 0.5, "qp": 75.0, "by score": 0.0}}


def iteration(number, **more):
    bounds = {"primal": 3.0 / number, "dual": 1.0 - 1 / number, "gap": 2.0 / number, "seconds": number / 4}
    spans = {"scores_wall_ns": 5e8, "qp_wall_ns": 2e9}
    return {"event": "iteration", "stage": "train", "C": 2.0, "iteration": number, **bounds, **spans, **more}


def oracle(number, ranks, **more):
    of = {"n_pos": 3, "n_neg": 7, "oracle": "qs", "oracle_wall_ns": 1e6 * number, "ranks": ranks}
    return {"event": "oracle", "stage": "train", "C": 2.0, "iteration": number, **of, **more}


LOG = [RUN, START, oracle(1, [[1, 7]]), iteration(1), oracle(2, [[1, 2], [2, 5]]), iteration(2)]
BOUNDS = Bounds(primal=1.5, dual=1.25, gap=0.25, tolerance=0.5)
HEADER = Header(
    family="structured-svm",
    loss="ap",
    metric="AP",
    labels=Labels(positive=1.0, negative=(-1.0,)),
    settings={"C": "10x", "epsilon": 0.25, "oracle": "auto", "max_iterations": 7, "threads": None},
    details={"oracle": "qs"},
    state="converged",
    iterations=12,
    C=2.0,
    certificate=BOUNDS,
    data=Data(file="rows.svm", rows=10, positives=3),
    versions={"apsvm": "1.2"},
)


def rows(X=X, labels=LABELS, groups=None, **more):
    labels = np.asarray(labels, dtype=np.float64)
    return Dataset(X, labels, groups, None, False, "folder/rows.svm", "0123456789abcdef" * 4, 0, **more)


def run_of(ranker, dataset, records=LOG, folder="a run", **more):
    return Run(folder, records, ranker, ENDS, dataset, more.pop("lines", None), more.pop("notes", []), **more)


def linear(header=HEADER, coef=(1.0, -0.25, 0.0), intercept=0.5, feature_map=None):
    return LinearRanker(np.array(coef), intercept, header, feature_map)


def two_classes():
    header = replace(
        HEADER,
        features=Features(scale="standard", bias=1.0, names=("size", "age <&>", "one")),
        seed=3,
        cautions=("It is a test.",),
        threshold=Threshold(value=0.5, rule="f1", held_out="5 folds", precision=0.5, recall=1.0),
        calibration=Calibration(
            method="platt", slope=2.0, offset=-1.0, lower=0.1, upper=0.9, held_out="5 folds", rows=9
        ),
    )
    return run_of(linear(header), rows(), lines=LINES, notes=["of a test"])


def test_two_classes(shown):
    run = two_classes()
    text = report(run)
    page = Reader(text)
    assert page.sections == [*FIRST, "What drives the score", *LAST]
    assert "age &lt;&amp;&gt;=<wbr>1" in text
    assert "<&>" not in text
    scores, relevant = X @ [1.0, -0.25, 0.0] + 0.5, LABELS > 0
    metrics = dict(page.table("metric", "value"))
    found = evaluate(list(metrics), scores, relevant, None).values
    assert metrics == {name: f"{value:.6f}" for name, value in found.items()}
    assert set(metrics) == {"AP", "AUC", "P@5", "P@10", "nDCG"}
    order = np.argsort(-scores, kind="stable")
    top = page.table("place", "line", "score", "label", "found so far")
    found_so_far = np.cumsum(relevant[order])
    assert [row[:5] for row in top] == [
        [f"{at + 1}", f"{LINES[row]}", f"{scores[row]:.6g}", f"{LABELS[row]:g}", f"{found_so_far[at]}"]
        for at, row in enumerate(order)
    ]
    assert top[1][5] == "size=3+3age <&>=1-0.25"
    assert "A usual row scores 0.5;" in page.all_text
    assert "share of positives 30 % the AP of a random order" in " ".join(page.all_text.split())
    places = np.flatnonzero(relevant[order]) + 1
    lowest = page.table("place", "line", "score", "label", "what put it there")
    assert [int(row[0]) for row in lowest] == sorted(places[places > 1], reverse=True)
    facts = {"C": "2", "C, times the default": "10", "oracle": "qs", "scaling": "standard", "constant feature": "1",
             "seed": "3", "options given": "--positive-label 1 --log-ranks --C 1,10", "versions": "apsvm 1.2",
             "file": "folder/rows.svm", "rows": "10", "positive rows": "3 (30\xa0%)"}  # fmt: skip
    assert facts.items() <= page.facts.items()
    assert page.facts["positive"].startswith("a score above 0.5 (f1 on rows held out, 5 folds)")
    assert page.facts["sha256"] == "0123456789abcdef…"
    assert page.table("feature", "weight", "share") == [["size", "+1", "80\xa0%"], ["age <&>", "−0.25", "20\xa0%"]]
    assert {"of a test", "It is a test."} <= {*page.text}
    curve, convergence = shown
    assert curve.curves[0].name == f"AP {found['AP']:.4f}"
    assert curve.curves[0].steps.recall.tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    assert curve.base_rate == 0.3
    assert [(line.name, line.points[:, 2].tolist()) for line in convergence.panels["objective / C"]] == [
        ("primal", [1.5, 0.75]), ("dual", [0.0, 0.25]),
    ]  # fmt: skip


def queries():
    header = replace(
        HEADER,
        loss="ndcg",
        metric="nDCG(exp)",
        labels=Labels(kind=LabelKind.GRADES),
        certificate=None,
        C=None,
        settings={"margin": 0.5},
        family="of somebody",
        epochs=Epochs(
            count=4, best=2, estimated_loss=0.5, validation=Validation(file="v", sha256="", metric="AP", value=0.75)
        ),
        state="time limit",
        as_asked=False,
        data=Data(queries=3, queries_skipped=1200, counts={"pairs": 1234, "users_skipped": 2, "likes": 3}),
    )
    labels = [0, 2, 1, 0, 2, 1, 1, 1, 0, 3]
    dataset = replace(rows(sp.csr_array(X), labels, np.array([7, 7, 7, 7, 9, 9, 5, 5, 9, 9])), costs=np.ones(10))
    epochs = [{"event": "epoch", "epoch": n, "loss": 1 / n, "validation": 0.5, "seconds": n} for n in (1, 2)]
    return run_of(linear(header), dataset, [RUN, START, *epochs], folder="queries")


def test_queries(shown):
    page = Reader(report(queries()))
    assert page.sections == [*FIRST, "What drives the score", *LAST]
    metrics = dict(page.table("metric", "value"))
    assert next(iter(metrics)) == "nDCG(exp)"
    assert "nDCG(exp)@10" in metrics
    assert [row[2] for row in page.table("place", "row", "query")] == [*"77779999", *"55"]
    facts = {"queries": "3", "rows a query": "2 to 4, median 4", "queries left out of the training": "1,200",
             "pairs of the preference graph": "1,234", "likes": "3", "cost:": "given"}  # fmt: skip
    assert facts.items() <= page.facts.items()
    assert "time limit" in page.text
    assert "AP 0.750000 on v" in page.all_text
    assert kinds(shown) == ["PrecisionRecall", "Convergence"]
    assert shown[1].panels["estimated loss"][0].points[:, 2].tolist() == [1.0, 0.5]


def classes():
    each = [
        linear(
            replace(
                HEADER,
                labels=Labels(kind=LabelKind.ONE_LABEL, positive=float(label)),
                state="converged" if label else "iteration limit",
                as_asked=bool(label),
                certificate=replace(BOUNDS, primal=1.5 + label / 10, gap=0.25 + label / 10),
            ),
            (np.cos(label), np.sin(label), 0.0),
        )
        for label in range(8)
    ]
    whole = RankerSet(each, Header(loss="ap", family="structured-svm"))
    records = [RUN, START, *(iteration(1, **{"class": float(label)}) for label in range(3))]
    return run_of(whole, rows(labels=[0, 1, 2, 3, 4, 5, 6, 6, 0, 0]), records, folder="classes", notes=["two", "notes"])


def test_classes(shown):
    """The worst first, of six all, and what cannot be judged is said."""
    page = Reader(report(classes()))
    rows = page.table("", "positives", "AP")
    *each, mean = [float(row[2]) for row in rows]
    assert each == sorted(each)
    assert mean == pytest.approx(np.mean(each), abs=1e-4)
    assert len(each) == 7
    assert page.sections.count("The first rows") == 6
    assert "class 7 cannot be judged on these rows" in page.all_text
    assert page.table("", "state", "C", "gap / C")[7] == ["class 7", "converged", "2", "0.47", "0.25"]
    assert page.table("", "state")[0][:2] == ["class 0", "iteration limit"]
    assert [curve.aside for curve in shown[0].curves] == [False] + [True] * 7


def test_labels_that_no_ranker_can_be_judged_on():
    page = Reader(report(run_of(linear(), rows(labels=np.ones(10)))))
    assert {"Metrics", "The first rows"}.isdisjoint(page.sections)
    assert "there are no negative rows (10 positive, 0 negative)" in page.all_text
    unknown = Reader(report(run_of(linear(), rows(labels=np.arange(10)))))
    assert unknown.sections == page.sections


def components(dataset):
    ranker = ComponentRanker(np.array([[1.0, 0.5, 0.0], [-1.0, -0.25, 0.0]]), np.array([0.5, 0.0]), HEADER)
    return run_of(ranker, dataset)


def test_components():
    page = Reader(report(components(rows())))
    assert page.sections == [*FIRST, "What drives the score", *LAST]
    assert "Component 2" in page.all_text
    assert [row[0] for row in page.table("place", "row")] == [f"{place}" for place in range(1, 11)]
    alone = Reader(report(components(None)))
    assert alone.sections == ["Data", "How it was trained"]
    assert alone.facts["rows"] == "1,000"


def test_a_net():
    net = Net(
        (Layer(np.array([[1.0, 0, 0], [0, 1, 0]]), np.array([0.5, 0])), Layer(np.array([[1.0, -1.0]]), np.zeros(1)))
    )
    header = replace(HEADER, certificate=replace(BOUNDS, layer=2))
    page = Reader(report(run_of(NetRanker(net, header), rows())))
    assert "in the weights of layer 2" in page.all_text


def feature_map(name):
    starts, ranges = np.array([0, 1, 3, 3]), np.array([[-2.0, -1, 1], [1, 1, 1], [4, 5, 1]])
    knots = Piecewise(3, np.array([1.5, -0.5, 2.0]), starts, ranges)
    if name == "piecewise":
        return knots
    nodes, thresholds = np.array([[0, 1, -1], [1, 0, 0]]), np.array([[1.5, 0.5, 0], [2.5, 0.5, 1]])
    kept, sums = np.array([[1, 1, 1, 0], [1, 0, 1, 0]]), np.array([[0.5], [-0.5], [0.25], [1], [-1]])
    return Rules(Size(2, 2), knots, np.full(6, 2.0), nodes, thresholds, kept, sums)


def curved(name, **more):
    learned = feature_map(name)
    header = replace(HEADER, features=Features(map=learned.name, names=("a", "b", "one"), **more))
    return linear(header, np.arange(1.0, learned.n_out + 1) / 8, 0.0, learned)


@pytest.mark.parametrize("name", ["piecewise", "rules"])
def test_curves(name, shown):
    ranker = curved(name)
    page = Reader(report(run_of(ranker, rows())))
    assert page.sections == [*FIRST, "What drives the score", *LAST]
    assert ("features give together is not drawn" in page.all_text) == (name == "rules")
    scores = ranker.score(X)
    assert [row[2] for row in page.table("place", "row")] == [f"{one:.6g}" for one in sorted(scores)[::-1]]
    (shapes,) = (one for one in shown if type(one).__name__ == "Shapes")
    for shape in shapes.shapes if name == "piecewise" else ():  # of a sum of curves alone
        j = ranker.header.features.names.index(shape.name)
        at = np.zeros((shape.x.size, 3))
        at[:, j] = shape.x
        rest = ranker.score(at) - shape.y
        np.testing.assert_allclose(rest, rest[0], atol=1e-12)
    assert len(shapes.surfaces) == (name == "rules")


def test_curves_of_rows_of_unit_length_in_queries():
    dataset = rows(labels=[0, 2, 1, 0, 1, 1, 1, 1, 0, 3], groups=np.arange(10) // 5)
    ranker = curved("piecewise", scale="l2")
    labels = Labels(kind=LabelKind.THRESHOLD, relevant_from=1.0)
    page = Reader(report(run_of(replace(ranker, header=replace(ranker.header, labels=labels)), dataset)))
    assert "What drives the score" in page.sections
    assert "divided by the length" in page.all_text
    assert page.facts["scaling"] == "l2"
    assert page.facts["labels"].startswith("1 and above are positive")


def test_rows_of_a_table():
    columns = Columns(
        features=(
            Column(name="size", fill=2.0, missing=True),
            Column(name="kind", kind=ColumnKind.CATEGORY, categories=("red", "wide"), other=True),
        ),
        label="fraud",
        label_words=("no", "yes"),
    )
    names = columns.feature_names()
    X = np.array([[4.0, 0, 1, 0, 0], [2, 1, 0, 1, 0], [2, 0, 0, 0, 1], [2, 0, 0, 0, 0], [1, 0, 1, 0, 0]])
    table = TableRows(columns, keys=np.array(["a", "b", "c", "d", "e <"], dtype=object), lines=np.arange(2, 7))
    header = replace(HEADER, features=Features(names=names, columns=columns))
    ranker = linear(header, (1.0, -3.0, 0.5, 0.25, -0.125))
    page = Reader(report(run_of(ranker, rows(X, [1, 0, 1, 0, 0], table=table), lines=table.lines)))
    top = page.table("place", "row", "line", "score", "label")
    assert [row[1:3] + row[4:5] for row in top] == [
        ["a", "2", "yes"], ["d", "5", "no"], ["c", "4", "yes"], ["e <", "6", "no"], ["b", "3", "no"],
    ]  # fmt: skip
    assert "A usual row scores 2.5;" in page.all_text
    assert top[0][6] == "size=4+2kind=red+0.5"
    assert top[4][6] == "size is missing-3kind=wide+0.25"


def test_rows_of_several_labels():
    sets = LabelSets.from_rows(np.array([1.0, 2, 3, 3]), np.array([1, 3, 3, 3, 4, 4, 4, 4, 4, 4]))
    each = [linear(replace(HEADER, labels=Labels(kind=LabelKind.ONE_LABEL, positive=label))) for label in (1.0, 2.0)]
    whole = RankerSet(each, Header(loss="ap", labels=Labels(kind=LabelKind.CLASSES, several=True)))
    page = Reader(report(run_of(whole, rows(labels=np.zeros(10), label_sets=sets))))
    assert [row[1] for row in page.table("", "positives")] == ["1", "1", ""]
    assert {row[3] for row in page.table("place", "row", "score", "label")} == {"yes", "no"}


@pytest.mark.parametrize("groups", [None, np.repeat([3, 8], [5, 5])], ids=["alone", "in-queries"])
def test_bags(groups):
    bags = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 4])
    labels = np.array([1.0, 1, -1, -1, -1, 1, -1, -1, -1, -1])
    ranker = linear(replace(HEADER, latent=True, certificate=replace(BOUNDS, stationary=True)))
    page = report(run_of(ranker, rows(labels=labels, groups=groups, bags=bags), lines=LINES))
    page = Reader(page)
    assert [row[1] for row in page.table("place", "line")] == ["2", "5", "8", "11", "13"]
    assert page.facts["positive bags"] == "2 (40\xa0%)"
    if groups is not None:
        assert page.facts["bags a query"] == "2 to 3, median 2.5"


@pytest.mark.parametrize("whole", [True, False])
def test_the_list_to_go_through(whole):
    reasons = [Reasons(0.5, [("size=4", 2.0), ("age <", -0.25)], 0.125), Reasons(0.0, [], None)]
    more = {"relevant": np.array([True, False]), "reasons": reasons} if whole else {"relevant": None, "reasons": None}
    of_queries = {"queries": None if whole else ["q1", "q <"], "answers": None if whole else ["yes\t0.5", "no\t0.25"]}
    first = FirstRows(
        np.array([1, 2]), ["a <", "b"], np.array([2.5, -1.0]), n_relevant=4, n_rows=1000, columns={"amount <": [7, 8]},
        **more, **of_queries,
    )  # fmt: skip
    text = first.page("a title <", [("model", "m"), ("rows", 1000)])
    page = Reader(text.split("<script>")[0] + "</body></html>")
    assert "<title>a title &lt;</title>" in text
    assert page.facts["rows"] == "1000"
    assert page.sections == ["The list"]
    if whole:
        assert {"found in the first 2", "of 4 positive rows", "0.500", "0.250"} <= {*page.text}
        assert [row[1:6] for row in page.table("place", "row", "amount <")] == [
            ["a <", "7", "2.5", "yes", "1"], ["b", "8", "-1", "no", "1"],
        ]  # fmt: skip
        assert {"base", "+0.5", "size=4", "+2", "age <", "-0.25", "rest", "+0.125"} <= {*page.text}
    else:
        assert [row[1:] for row in page.table("place", "row", "query", "amount <", "score")] == [
            ["a <", "q1", "7", "2.5", r"yes\t0.5"],
            ["b", "q <", "8", "-1", r"no\t0.25"],
        ]
