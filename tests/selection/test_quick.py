"""``bound="auto"``: what is held out, what is tried on it, which candidate is taken."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from over import over
from trainings import training_set

from apsvm.losses import make_loss
from apsvm.selection import folds, quick
from apsvm.selection.folds import affordable_folds
from apsvm.selection.quick import LOSS, choose
from apsvm.trainers.base import Watch
from apsvm.trainers.settings import AUTO_MULTIPLE, Multiple
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

#: The small multiples that are tried with the hinge.
SMALL = (0.001, 0.01, 0.1)
EVERYTHING = [(bound, 10.0**k) for bound in ("hinge", "tight") for k in range(-3, 5)]


def plan(loss="ap", **settings):
    return StructuredSVMTrainer(loss, StructuredSettings(threads=1, **settings))


def numbered(relevant, queries=None, d=2, **more):
    """Rows whose first feature is their number."""
    X = np.ones((relevant.size, d))
    X[:, 0] = np.arange(relevant.size)
    return training_set(X, relevant, queries, **more)


def figures(candidate):
    return candidate.choice["bound"], candidate.choice["C"], candidate.mean(LOSS)


def factors(candidates, bound):
    """The multiples of the default C at which a bound was tried, ascending."""
    return sorted(one.choice["C"].factor for one in candidates if one.choice["bound"] == bound)


class Recorded:
    """Stands in for training and for judging, so that what is left is the choice: keeps which rows each candidate is
    trained on and judged by, and gives it the loss that ``loss_of(bound, C)`` says."""

    def __init__(self, monkeypatch, loss_of=lambda bound, C: 0.5):
        self.trained, self.judged, self.starts, self._loss_of = [], [], [], loss_of
        monkeypatch.setattr(quick, "train", self._train)
        monkeypatch.setattr(quick, "loss_of_order", self._judge)

    def _train(self, plan, data, watch, risk=None):
        settings, start = plan.settings, plan.start
        assert plan.is_rough
        w = np.zeros(data.rows.dimension)
        w[0] = 1.0  # scores are the rows' numbers
        self.starts.append((settings.bound, settings.C, None if start is None else start.copy()))
        for C in settings.C:
            self.trained.append((settings.bound, C, data.rows.scores(w).astype(int).tolist()))
            yield SimpleNamespace(w=w, C=1.0)

    def _judge(self, data, loss, w):
        self.judged.append(data.rows.scores(w).astype(int).tolist())
        bound, C, _ = self.trained[-1]
        return self._loss_of(bound, C.factor if isinstance(C, Multiple) else C)

    @property
    def splits(self):
        """The different ones, as sets of row numbers, in the order of their use."""
        pairs = ((tuple(rows), tuple(test)) for (_, _, rows), test in zip(self.trained, self.judged, strict=True))
        return [(set(rows), set(test)) for rows, test in dict.fromkeys(pairs)]


def splits_of(affordable):
    """The folds as sets of row numbers."""
    return [(set(fold.training.tolist()), set(fold.test.tolist())) for fold in affordable.folds]


@pytest.mark.parametrize(
    ("n", "n_folds", "how"),
    [
        (300, 5, "5 folds of rows"),
        (10_000, 5, "5 folds of rows"),
        (40_000, 1, "17,272 rows, trained on 22,728 others"),
        (100_000, 1, "45,454 rows, trained on 22,727 others"),
    ],
)
def test_each_row_is_held_out_or_trained_on(n, n_folds, how, rng):
    """Fewer folds the longer a pass takes; of each class as many in each."""
    relevant = rng.random(n) < 0.1
    affordable = affordable_folds(numbered(relevant), 0)
    assert affordable.how == how
    splits = splits_of(affordable)
    assert len(splits) == n_folds
    positives = set(np.flatnonzero(relevant).tolist())
    for training, test in splits:
        assert not training & test
        assert (training | test == set(range(n))) == (n < 100_000)
        held_out = len(test & positives)
        if n_folds > 1:
            assert abs(held_out - len(positives) / 5) < 1
            assert abs(len(test) - held_out - (n - len(positives)) / 5) < 1
        else:  # as many of each class
            assert len(training & positives) == pytest.approx(0.1 * len(training), rel=0.1)
            assert held_out == pytest.approx(0.1 * len(test), rel=0.1)
    if n_folds > 1:
        assert set(Counter(row for _, test in splits for row in test).values()) == {1}
    assert (affordable.alike is None) == (n_folds > 1)


@pytest.mark.parametrize(("n", "tried"), [(300, 9), (40_000, 8)])
def test_each_candidate_is_trained_and_judged_once_on_each_fold(n, tried, rng, monkeypatch):
    """On a single split the hinge is not tried at the highest C."""
    data = numbered(rng.random(n) < 0.1)
    recorded = Recorded(monkeypatch)
    choice = choose(plan(seed=3), data, Watch())
    assert recorded.splits == splits_of(affordable_folds(data, 3))
    times = Counter((bound, C) for bound, C, _ in recorded.trained)
    assert set(times.values()) == {len(recorded.splits)}
    assert len(times) == len(choice.candidates) == tried


def test_rare_positives_are_trained_on_rather_than_held_out(rng):
    relevant = rng.permutation(np.arange(700_000) < 600)
    affordable = affordable_folds(numbered(relevant, d=1), 0)
    ((training, test),) = splits_of(affordable)
    positives = set(np.flatnonzero(relevant).tolist())
    assert len(training & positives) == 400
    assert len(test & positives) == 200
    assert len(training) == pytest.approx(2 / 3 / 4 * 7e5, rel=0.01)  # four times more of them than there are
    assert len(test) == pytest.approx(1 / 3 / 4 * 7e5, rel=0.01)
    # F1 depends on how rare they are: the threshold is chosen on rows of which as many are positive as of all.
    alike = set(affordable.alike[0].tolist())
    assert len(alike & positives) == 200
    assert len(alike) == pytest.approx(7e5 / 3, rel=0.01)
    assert not alike & training


def test_of_few_positives_each_is_held_out_by_one_of_three_parts(rng):
    relevant = rng.permutation(np.arange(700_000) < 300)
    affordable = affordable_folds(numbered(relevant, d=1), 0)
    assert affordable.how == "3 times 58,408 rows, trained on 116,817 others"
    splits, positives = splits_of(affordable), set(np.flatnonzero(relevant).tolist())
    assert set().union(*(test & positives for _, test in splits)) == positives
    assert {len(training & positives) for training, _ in splits} == {200}
    # The rows alike are all rows once, but for a remainder, and none that its ranker was trained on.
    alike = np.concatenate(affordable.alike)
    assert alike.size == np.unique(alike).size >= 699_997
    assert not any(training & set(alike) for (training, _), alike in zip(splits, affordable.alike, strict=True))


def test_of_few_positives_each_is_held_out(rng):
    relevant = rng.permutation(np.arange(40_000) < 400)
    affordable = affordable_folds(numbered(relevant), 0)
    assert affordable.how == "3 folds of rows"
    splits = splits_of(affordable)
    assert set().union(*(test for _, test in splits)) == set(range(40_000))
    for training, test in splits:
        assert not training & test
        assert len(test & set(np.flatnonzero(relevant).tolist())) in (133, 134)


def test_queries_stay_whole_and_each_fold_has_something_to_rank(rng):
    queries = rng.permutation(np.repeat(np.arange(40) * 3 - 7, rng.integers(1, 9, size=40)))
    mixed = rng.permutation(np.unique(queries))[:7]
    relevant = np.isin(queries, rng.permutation(np.unique(queries))[:5])
    for query in mixed:
        rows = np.flatnonzero(queries == query)
        if rows.size == 1:
            queries = np.append(queries, query)
            relevant = np.append(relevant, False)
            rows = np.append(rows, queries.size - 1)
        relevant[rows] = np.arange(rows.size) == 0
    affordable = affordable_folds(numbered(relevant, queries), 0)
    assert affordable.how == "3 folds of queries"
    for training, test in splits_of(affordable):
        assert training | test == set(range(queries.size))
        inside, outside = set(queries[list(training)].tolist()), set(queries[list(test)].tolist())
        assert not inside & outside
        assert len(outside & set(mixed.tolist())) in (2, 3)


def test_a_fold_is_judged_by_a_number_of_queries(rng, monkeypatch):
    """Whole ones with something to rank; it is trained on all others."""
    monkeypatch.setattr(folds, "MOST_JUDGED", 4)
    queries = np.repeat(np.arange(60), 5)
    relevant = (np.arange(300) % 5 == 0) & (queries < 50)
    for training, test in splits_of(affordable_folds(numbered(relevant, queries), 0)):
        judging = set(queries[list(test)].tolist())
        assert (len(judging), len(test), len(training)) == (4, 20, 240)
        assert max(judging) < 50


@pytest.mark.parametrize(
    ("relevant", "queries", "why"),
    [
        (np.arange(50) < 5, None, "5 rows of one class are too few"),
        (np.arange(50) >= 5, None, "5 rows of one class are too few"),
        (np.arange(50) % 5 == 0, np.arange(50) // 10, "5 queries with something to rank are too few"),
        (
            (np.arange(300) % 10 == 0) & (np.arange(300) < 50),
            np.arange(300) // 10,
            "5 queries with something to rank are too few",
        ),
    ],
    ids=["positives", "negatives", "queries", "queries of two classes"],
)
def test_too_little_to_hold_out_is_the_hinge(relevant, queries, why, monkeypatch):
    recorded = Recorded(monkeypatch)
    choice = choose(plan(), numbered(relevant, queries), Watch())
    assert (choice.bound, choice.C, choice.candidates, choice.start()) == ("hinge", (AUTO_MULTIPLE,), (), None)
    assert why in choice.how
    assert not recorded.trained


@pytest.fixture
def some_rows(rng):
    return numbered(rng.random(60) < 0.3)


@over(
    ("losses", "bound", "C"),
    [
        ({("tight", 1.0): 0.1, ("tight", 0.1): 0.2, ("hinge", 0.1): 0.2}, "tight", 1.0),
        ({("tight", 0.1): 0.2, ("hinge", 0.1): 0.1}, "hinge", 0.1),
        ({("tight", 0.1): 0.1, ("hinge", 0.01): 0.1}, "hinge", 0.01),
        ({("hinge", 0.01): 0.1, ("hinge", 0.1): 0.1}, "hinge", 0.01),
        ({("hinge", 0.01): 0.101, ("hinge", 0.1): 0.0981}, "hinge", 0.1),
        ({("tight", 10.0): 0.1, ("tight", 0.1): 0.1, ("tight", 1.0): 0.1}, "tight", 0.1),
        ({("tight", 1.0): 0.1, ("tight", 0.1): 0.1005, ("hinge", 0.1): 0.2}, "tight", 1.0),
        ({("tight", 10.0): 0.0995, ("hinge", 0.1): 0.1}, "hinge", 0.1),
    ],
)
def test_the_lowest_loss_is_taken(losses, bound, C, some_rows, monkeypatch):
    """Among equals the hinge and the smaller C win; the winner is listed first."""
    Recorded(monkeypatch, lambda bound, C: losses.get((bound, C), 0.5))
    choice = choose(plan(), some_rows, Watch())
    assert (choice.bound, choice.C) == (bound, (Multiple(C),))
    assert figures(choice.candidates[0]) == (bound, Multiple(C), pytest.approx(losses[bound, C]))
    assert choice.loss == pytest.approx(losses[bound, C])
    values = [one.mean(LOSS) for one in choice.candidates[1:]]
    assert values == sorted(values)


def test_a_C_that_somebody_named_is_kept(some_rows, monkeypatch):
    """However good it looks at the edge."""
    for C in ((7.0,), (0.5, 7.0), (Multiple(3.0),)):
        recorded = Recorded(monkeypatch, lambda bound, C: 1.0 / C + (bound == "hinge"))
        choice = choose(plan(C=C), some_rows, Watch())
        assert (choice.bound, choice.C) == ("tight", C)
        assert {one.choice["C"] for one in choice.candidates} == set(C)
        assert {C for _, C, _ in recorded.starts} == {C}


class Clock:
    """A second passes with each look at it."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1.0
        return self.now


def test_a_third_of_the_time_is_for_the_choice(some_rows, monkeypatch):
    """Only what was tried on every fold counts."""
    numbers = []
    for limit in (0.0, 30.0, 75.0, 150.0, 1e6):
        recorded = Recorded(monkeypatch, lambda bound, C: 0.1 if bound == "hinge" else 0.2)
        clock = Clock()
        monkeypatch.setattr(quick, "time", clock)
        choice = choose(plan(C=(5.0,), time_limit=limit), some_rows, Watch())
        assert clock.now <= limit / 3.0 + 15.0  # what follows are looks at the clock
        times = Counter(bound for bound, _, _ in recorded.trained)
        assert {one.choice["bound"] for one in choice.candidates} == {bound for bound, n in times.items() if n == 5}
        numbers.append(len(choice.candidates))
        assert choice.bound == "hinge"
        if not choice.candidates:
            assert (choice.C, choice.how) == ((5.0,), "there was no time to compare")
    assert numbers == [0, 0, 1, 2, 2]


def test_what_is_stopped_half_way_is_no_candidate(some_rows, monkeypatch):
    recorded = Recorded(monkeypatch)
    choice = choose(plan(), some_rows, Watch(should_stop=lambda: len(recorded.trained) > 12))
    assert 12 < len(recorded.trained) <= 15
    assert choice.how == "there was no time to compare"


@pytest.mark.parametrize(("n", "d", "grows"), [(3000, 400, True), (60_000, 3, False)])
def test_a_C_chosen_on_a_part_grows_with_the_root_of_the_rows(n, d, grows, rng, monkeypatch):
    """Where columns are many the default C grows faster; elsewhere the multiple is the same."""
    monkeypatch.setattr(folds, "AFFORDABLE", 300_000)
    relevant = rng.random(n) < 0.3
    data = training_set(rng.normal(size=(n, d)) + 0.1 * relevant[:, None], relevant)
    choice = choose(plan(), data, Watch())
    best, (C,) = choice.candidates[0], choice.C
    part = best.folds[0].C / best.choice["C"].factor
    whole = default_C(data, make_loss("ap"), choice.bound)
    growth = np.sqrt(n / choice.race.folds[0].training.size)
    assert (whole > 1.2 * growth * part) == grows
    assert C.factor * whole == pytest.approx(growth * best.folds[0].C, rel=0.1)
    assert (best.choice["C"] == C) != grows
