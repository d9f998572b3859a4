"""Pages of runs made by hand, compared whole; a picture on them stands for what it shows."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import expected
import numpy as np
import pytest

from apsvm._support import sparse as sp
from apsvm.data.dataset import Dataset, LabelSets, TableRows
from apsvm.data.features.piecewise import Piecewise
from apsvm.data.features.rules import Rules, Size
from apsvm.models.columns import Column, ColumnKind, Columns
from apsvm.models.components import ComponentRanker
from apsvm.models.header import (
    Bounds,
    Calibration,
    Data,
    Epochs,
    Features,
    Gradient,
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
from apsvm.report.comparison import comparison
from apsvm.report.first_rows import FirstRows
from apsvm.report.pictures.base import Picture
from apsvm.report.reasons import Reasons
from apsvm.report.run import Finished, Run


@pytest.fixture(autouse=True)
def data_for_pictures(monkeypatch):
    def render(self, format, size):
        return f'<svg viewBox="0 0 1 1">{html.escape(expected.plain(self))}</svg>'.encode()

    monkeypatch.setattr(Picture, "render", render)
    monkeypatch.setattr("apsvm.report.shapes.POINTS", 7)
    monkeypatch.setattr("apsvm.report.shapes.CELLS", 4)


def check(name, page):
    """A line an element, without the style."""
    page = re.sub(r"<style>.*</style>", "", page, flags=re.DOTALL)
    expected.check(
        f"report-{name}.html", re.sub(r"(?=<(?:section|tr|td|p|h\d|div|figure|dl|details|main)\b)", "\n", page)
    )


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
    return Dataset(
        X,
        np.asarray(labels, dtype=np.float64),
        groups,
        None,
        False,
        "folder/rows.svm",
        "0123456789abcdef" * 4,
        0,
        **more,
    )


def run_of(rankers, dataset, records=LOG, folder="a run", **more):
    named = [Finished(name, ranker, ENDS) for name, ranker in rankers.items()]
    return Run(folder, records, named, dataset, more.pop("lines", None), more.pop("notes", []), **more)


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
    return run_of({"": linear(header)}, rows(), lines=LINES, top=4, notes=["of a test"])


def test_two_classes():
    check("two-classes", report(two_classes()))


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
    return run_of({"": linear(header)}, dataset, [RUN, START, *epochs], folder="queries")


def test_queries():
    check("queries", report(queries()))


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
    whole = RankerSet.of(each, Header(loss="ap", family="structured-svm"))
    records = [RUN, START, *(iteration(1, **{"class": float(label)}) for label in range(3))]
    return run_of(
        {"": whole}, rows(labels=[0, 1, 2, 3, 4, 5, 6, 6, 0, 0]), records, folder="classes", notes=["two", "notes"]
    )


def test_classes():
    check("classes", report(classes()))


def path_of_C():
    headers = [
        replace(HEADER, C=C, certificate=replace(BOUNDS, bound="tight", stationary=True, gap=C / 8), iterations=int(C))
        for C in (1.0, 10.0)
    ]
    rankers = {f"C = {header.C:g}": linear(header, (1.0, -header.C, 0.0)) for header in headers}
    return run_of(rankers, rows(), [RUN, {**START, "C": [1.0, 10.0]}, iteration(1, C=1.0), iteration(1, C=10.0)], top=3)


def test_a_path_of_C():
    check("path-of-C", report(path_of_C()))


def test_models_with_other_evidence():
    headers = [
        replace(
            HEADER,
            certificate=None,
            epochs=Epochs(count=4, best=4, estimated_loss=0.5),
        ),
        replace(HEADER, certificate=None, gradient=Gradient(value=1.0, gradient_norm=0.5, target=0.1), iterations=None),
    ]
    check("other-evidence", report(run_of({f"m{at}": linear(one) for at, one in enumerate(headers)}, rows())))


def test_labels_that_no_ranker_can_be_judged_on():
    check("not-judged", report(run_of({"": linear(), "other": linear()}, rows(labels=np.ones(10)), top=2)))
    check("of-unknown-labels", report(run_of({"": linear()}, rows(labels=np.arange(10)))))


def components(dataset):
    ranker = ComponentRanker(np.array([[1.0, 0.5, 0.0], [-1.0, -0.25, 0.0]]), np.array([0.5, 0.0]), HEADER)
    return run_of({"": ranker, **({} if dataset else {"second": linear()})}, dataset)


@pytest.mark.parametrize("with_rows", [True, False])
def test_components(with_rows):
    check(f"components-{with_rows}", report(components(rows() if with_rows else None)))


def test_a_net():
    net = Net(
        (Layer(np.array([[1.0, 0, 0], [0, 1, 0]]), np.array([0.5, 0])), Layer(np.array([[1.0, -1.0]]), np.zeros(1)))
    )
    header = replace(HEADER, certificate=replace(BOUNDS, layer=2))
    check("net", report(run_of({"": NetRanker(net, header)}, rows())))
    check("net-alone", report(run_of({"": NetRanker(net, header)}, None)))


def test_a_run_that_was_killed():
    check("killed", report(run_of({}, rows(), LOG[:-1], lines=LINES)))
    check("killed-alone", report(run_of({}, None, [{"event": "start", "loss": "ap"}])))


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
def test_curves(name):
    check(name, report(run_of({"": curved(name)}, rows())))


def test_curves_of_rows_of_unit_length_in_queries():
    dataset = rows(labels=[0, 2, 1, 0, 1, 1, 1, 1, 0, 3], groups=np.arange(10) // 5)
    ranker = curved("piecewise", scale="l2")
    labels = Labels(kind=LabelKind.THRESHOLD, relevant_from=1.0)
    check("unit-rows", report(run_of({"": replace(ranker, header=replace(ranker.header, labels=labels))}, dataset)))


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
    check("table", report(run_of({"": ranker}, rows(X, [1, 0, 1, 0, 0], table=table), lines=table.lines)))


def test_rows_of_several_labels():
    sets = LabelSets.from_rows(np.array([1.0, 2, 3, 3]), np.array([1, 3, 3, 3, 4, 4, 4, 4, 4, 4]))
    each = [linear(replace(HEADER, labels=Labels(kind=LabelKind.ONE_LABEL, positive=label))) for label in (1.0, 2.0)]
    whole = RankerSet.of(each, Header(loss="ap", labels=Labels(kind=LabelKind.CLASSES, several=True)))
    check("several-labels", report(run_of({"": whole}, rows(labels=np.zeros(10), label_sets=sets))))


@pytest.mark.parametrize("groups", [None, np.repeat([3, 8], [5, 5])], ids=["alone", "in-queries"])
def test_bags(groups):
    bags = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 4])
    labels = np.array([1.0, 1, -1, -1, -1, 1, -1, -1, -1, -1])
    ranker = linear(replace(HEADER, latent=True, certificate=replace(BOUNDS, stationary=True)))
    page = report(run_of({"": ranker}, rows(labels=labels, groups=groups, bags=bags), lines=LINES, top=2))
    check("bags" if groups is None else "bags-in-queries", page)


def test_runs_side_by_side():
    path = replace(path_of_C(), folder="path", top=4)
    check(
        "comparison",
        comparison([two_classes(), replace(two_classes(), folder="again"), path, replace(classes(), top=4)]),
    )
    check("comparison-of-others", comparison([queries(), run_of({}, None, LOG, folder="killed")]))
    check("comparison-of-none", comparison([run_of({}, None, [START], folder=name) for name in "ab"]))


@pytest.mark.parametrize("whole", [True, False])
def test_the_list_to_go_through(whole):
    reasons = [Reasons(0.5, [("size=4", 2.0), ("age <", -0.25)], 0.125), Reasons(0.0, [], None)]
    more = {"relevant": np.array([True, False]), "reasons": reasons} if whole else {"relevant": None, "reasons": None}
    of_queries = {"queries": None if whole else ["q1", "q <"], "answers": None if whole else ["yes\t0.5", "no\t0.25"]}
    first = FirstRows(
        np.array([1, 2]), ["a <", "b"], np.array([2.5, -1.0]), n_relevant=4, n_rows=1000, **more, **of_queries
    )
    check(f"first-rows-{whole}", first.page("a title <", [("model", "m"), ("rows", 1000)]))
