"""Classes and preference graphs."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from sklearn.datasets import load_diabetes

from apsvm.trainers.rank_ncg.preferences import (
    GRAPHS,
    GraphError,
    PreferenceGraph,
    classes_by_label,
    cut_into_classes,
    from_edges,
    read_graph,
)


def edges(graph: PreferenceGraph) -> set[tuple[int, int]]:
    below = {(i, j) for j in range(graph.n_classes) for i in graph.below.of(j)}
    above = {(i, j) for i in range(graph.n_classes) for j in graph.above.of(i)}
    assert below == above
    assert len(below) == graph.n_edges
    return below


@pytest.mark.parametrize("n_classes", [1, 2, 3, 7])
def test_named_graphs(n_classes):
    everything = {(i, j) for j in range(n_classes) for i in range(j)}
    assert edges(GRAPHS["full"](n_classes)) == everything
    assert edges(GRAPHS["adjacent"](n_classes)) == {(i, j) for i, j in everything if j == i + 1}
    assert edges(GRAPHS["bipartite"](n_classes)) == {(i, j) for i, j in everything if i == 0}
    assert all(make(n_classes).cycle() is None for make in GRAPHS.values())


def test_edges_are_kept_as_they_are(rng):
    for _ in range(200):
        n_classes = int(rng.integers(1, 8))
        wanted = {(i, j) for i in range(n_classes) for j in range(n_classes) if i != j and rng.random() < 0.4}
        assert edges(from_edges(n_classes, wanted)) == wanted


def test_cycles_are_found_and_are_cycles(rng):
    found = 0
    for _ in range(400):
        n_classes = int(rng.integers(2, 8))
        wanted = {(i, j) for i in range(n_classes) for j in range(n_classes) if i != j and rng.random() < 0.2}
        # A graph has no cycle where its adjacency matrix is nilpotent.
        power = matrix = np.zeros((n_classes, n_classes), dtype=int)
        for edge in wanted:
            matrix[edge] = 1
        for _ in range(n_classes):
            power = np.minimum(power @ matrix, 1)
        cycle = from_edges(n_classes, wanted).cycle()
        assert (cycle is None) == (not power.any())
        if cycle is not None:
            found += 1
            assert all(step in wanted for step in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
            assert len(set(cycle)) == len(cycle)
    assert 50 < found < 350


NAMES = np.array([-1.0, 0.5, 2.0, 3.0])


def test_graph_file(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("# low high\n-1 2.0\n\n0.5 3 # a comment\n3 0.5\n")
    graph = read_graph(path, NAMES)
    assert edges(graph) == {(0, 2), (1, 3), (3, 1)}
    assert graph.name == str(path)
    assert graph.cycle() in ([1, 3], [3, 1])


@over(
    ("text", "message"),
    [
        ("-1 2\n1 2\n", r":2: there is no class 1: the classes are -1, 0.5, 2, 3"),
        ("-1 nan\n", r":1: there is no class nan"),
        ("2 2\n", r":1: a class cannot be preferred to itself: '2 2'"),
        ("2 2.0\n", r":1: a class cannot be preferred to itself"),
        ("2 3\n\n2 3.0\n", r":3: the edge '2 3.0' is in line 1 already"),
        ("2\n", r":1: expected two classes, the preferred one last, found '2'"),
        ("2 3 -1\n", r":1: expected two classes"),
        ("two 3\n", r":1: expected two classes"),
        ("# nothing\n\n", r"no edge: expected lines 'i j', class j preferred to class i"),
    ],
)
def test_bad_graph_files(tmp_path, text, message):
    path = tmp_path / "graph.txt"
    path.write_text(text)
    with pytest.raises(GraphError, match=message) as error:
        read_graph(path, NAMES)
    assert str(error.value).startswith(str(path))


def test_classes_by_label():
    classes = classes_by_label(np.array([2.0, -1.0, 2.0, 0.5]))
    assert classes.of_row.tolist() == [2, 0, 2, 1]
    assert classes.names.tolist() == [-1.0, 0.5, 2.0]
    assert classes.cuts is None


def test_equal_frequency():
    classes = cut_into_classes(load_diabetes().target, 3, "frequency")
    assert np.bincount(classes.of_row).tolist() == [147, 147, 148]
    assert classes.names.tolist() == [1.0, 2.0, 3.0]


def test_cut_classes_hold_what_their_cuts_say(rng):
    for by in ("frequency", "width"):
        for n_classes in (2, 3, 5, 40):
            targets = np.round(rng.exponential(size=60), 1)
            classes = cut_into_classes(targets, n_classes, by)
            assert classes.cuts is not None
            low = np.append(-np.inf, classes.cuts)[classes.of_row]
            high = np.append(classes.cuts, np.inf)[classes.of_row]
            assert ((low <= targets) & (targets < high)).all()
            assert np.unique(classes.of_row).tolist() == list(range(classes.names.size))
            assert classes.cuts.size == classes.names.size - 1 <= n_classes - 1
    widths = cut_into_classes(np.array([0.0, 1.0, 2.0, 9.0]), 3, "width")
    assert widths.of_row.tolist() == [0, 0, 0, 1]  # nothing between 3 and 6


def test_targets_that_are_all_the_same_are_one_class():
    for by in ("frequency", "width"):
        assert cut_into_classes(np.full(5, 2.0), 3, by).names.size == 1
