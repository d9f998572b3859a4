"""From an open plan to its outcome: where the descent of a loss of the top begins, that it never ends above that, what
becomes of a hinge that ends in nothing, and what the model keeps of the choice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from instances import LABELLING_LOSSES, RANKING_LOSSES, TWO_ARRAY_LOSSES
from judge import definition, loss_of_order
from over import over
from sklearn.metrics import average_precision_score
from trainings import make_risk, training_set

from apsvm.data.component_rows import scores_of_weights
from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.losses.base import LossError, RankingLoss
from apsvm.oracles import make_oracle
from apsvm.risk import Ramp
from apsvm.selection import completion, quick
from apsvm.selection.completion import train_plan
from apsvm.selection.quick import classes_compared
from apsvm.solvers.state import State
from apsvm.trainers.base import Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.structured_svm.default_c import DESCENT, default_C, default_C_at
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

TOP_LOSSES = [name for name in RANKING_LOSSES if make_loss(name).starts_from is not None]


def long_list(rng, n=600, graded=False):
    """One list, a tenth of it positive and half of those hard to find."""
    relevant = rng.random(n) < 0.1
    found = relevant & (rng.random(n) < 0.5)
    X = rng.normal(size=(n, 6)) + 1.5 * found[:, None] * np.array([1, 0.5, 0.3, 0, 0, 0])
    grades = np.where(relevant, rng.integers(1, 4, size=n), 0).astype(float) if graded else None
    return training_set(X, relevant, grades=grades)


def settings(**more):
    """One C for the start, which is not what is tested here."""
    return StructuredSettings(threads=1, epsilon=1e-2, **more)


def start_of(data, loss, **more):
    """The model of the loss that this one starts from, by itself."""
    (outcome,) = train_plan(StructuredSVMTrainer(loss.starts_from, settings(**more)), data, Watch())
    return outcome


def lost(name, data, w):
    """Δ of the order by score, by the metric's definition; no two scores are equal."""
    scores = data.rows.scores(w)
    assert np.unique(scores).size == scores.size
    return loss_of_order(definition(name), data.target.relevant[np.argsort(-scores)])


@dataclass
class Arrays:
    """A loss of somebody's own: the two arrays of another."""

    loss: RankingLoss

    def weights(self, n_pos):
        return self.loss.weights(n_pos)

    def discount(self, n):
        return self.loss.discount(n)


class AtTen:
    """A weighted precision at 10."""

    def weights(self, n_pos):
        return np.full(n_pos, 1.0 / self.discount(n_pos).sum())

    def discount(self, n):
        return np.maximum(0.0, 10.0 - np.arange(n))


class AtTenFromNothing(AtTen):
    starts_from = None


@over("name", TWO_ARRAY_LOSSES)
def test_two_arrays_say_where_they_start(name):
    """That of grades is the class's to say."""
    assert make_loss(Arrays(make_loss(name))).starts_from == (None if make_loss(name).starts_from is None else "ap")


def test_a_loss_of_the_top_may_say_that_it_starts_from_nothing():
    assert make_loss(AtTen).starts_from == "ap"
    assert make_loss(AtTenFromNothing).starts_from is None


@pytest.mark.parametrize(("start", "message"), [("app", "app"), (7, "found 7")])
def test_a_start_that_is_no_loss_is_refused_before_there_are_rows(start, message):
    class Own(AtTen):
        starts_from = start

    with pytest.raises(LossError, match=f"loss 'Own': .*starts_from.*{message}"):
        make_loss(Own)


def test_a_loss_too_large_for_float64_starts_from_nothing():
    class Huge(AtTen):
        def weights(self, n_pos):
            return np.full(n_pos, 1e307)

    assert make_loss(Huge()).starts_from is None


def altered(monkeypatch, change):
    """Every structured SVM with all settings named ends in ``change(trainer, outcome)``."""
    original = StructuredSVMTrainer.train

    def train(self, data, watch, **more):
        return (change(self, outcome) for outcome in original(self, data, watch, **more))

    monkeypatch.setattr(StructuredSVMTrainer, "train", train)


def ends_in_nothing(monkeypatch):
    """Every hinge that is not of a candidate ends at w = 0."""
    altered(monkeypatch, lambda plan, one: replace(one, w=0.0 * one.w) if plan.bound == "hinge" else one)


@pytest.mark.parametrize("loss", ["ap", AtTenFromNothing], ids=["ap", "own"])
def test_a_hinge_that_ends_in_nothing_gives_way_to_the_tight_bound(loss, monkeypatch):
    """Where the candidate ranked the rows held out; with the C of the tight bound, and no threshold of the hinge's."""
    rng = np.random.default_rng(1)
    relevant = rng.random(200) < 0.45
    data = training_set(rng.normal(size=(200, 6)) + 1.1 * relevant[:, None], relevant)
    (before,) = train_plan(StructuredSVMTrainer(loss, settings()), data, Watch())
    assert (before.certificate.bound, before.threshold is None) == ("hinge", False)
    ends_in_nothing(monkeypatch)
    (outcome,) = train_plan(StructuredSVMTrainer(loss, settings()), data, Watch())
    tight = [one for one in outcome.details["choice"]["candidates"] if one["bound"] == "tight"]
    assert outcome.w.any()
    assert (outcome.certificate.bound, outcome.as_asked, outcome.threshold) == ("tight", True, None)
    factor = float(tight[0]["C"].removesuffix("x")) if tight else 1.0
    wanted = factor * default_C(data, make_loss(loss), "tight")
    assert wanted == pytest.approx(outcome.C)
    assert "the hinge is least where all rows have the same score: this is the tight bound" in " ".join(outcome.notes)
    assert any(f"C = {outcome.C:.6g}, " in note for note in outcome.notes)
    # What was cut short has none either.
    monkeypatch.undo()
    (short,) = train_plan(StructuredSVMTrainer(loss, settings(max_iterations=1)), data, Watch())
    assert (short.as_asked, short.threshold) == (False, None)
    # Named, the hinge is what it is.
    ends_in_nothing(monkeypatch)
    (named,) = train_plan(StructuredSVMTrainer(loss, settings(bound="hinge")), data, Watch())
    assert not named.w.any()


@pytest.mark.slow
@over("name", TOP_LOSSES)
def test_never_worse_than_where_it_begins(name, rng):
    data, loss = long_list(rng), make_loss(name)
    start = start_of(data, loss)
    before = lost(name, data, start.w)
    (outcome,) = train_plan(StructuredSVMTrainer(name, settings()), data, Watch())
    assert outcome.as_asked
    assert outcome.w.any()
    assert lost(name, data, outcome.w) <= before < 1.0
    assert 0.0 < outcome.C < np.inf
    assert outcome.certificate.bound == "tight" or outcome.certificate.loss == loss.starts_from
    assert outcome.details["choice"]["candidates"]


def ramp_of(data, name):
    loss = make_loss(name)
    return Ramp(make_risk(data.rows, data.target.relevant, loss, make_oracle("auto", loss), grades=data.target.grades))


def value(ramp, scores):
    return ramp.tangent(scores, np.empty(ramp.n_scores)).value


def turned_round(monkeypatch, **more):
    """The descent of a loss of the top ends with its rows upside down."""

    def change(plan, outcome):
        return outcome if plan.loss.starts_from is None else replace(outcome, w=-outcome.w, **more)

    altered(monkeypatch, change)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "base"), [("p@3", "ap"), ("mrr", "ap"), ("rbp(0.8)", "ap"), ("ndcg@3", "ndcg")])
def test_a_descent_that_ends_worse_leaves_the_start(name, base, rng, monkeypatch):
    """With the certificate of the start's own problem, and its name."""
    data = long_list(rng, 400)
    start = start_of(data, make_loss(name))
    turned_round(monkeypatch)
    (outcome,) = train_plan(StructuredSVMTrainer(name, settings()), data, Watch())
    np.testing.assert_array_equal(outcome.w, start.w)
    bounds = outcome.certificate
    assert (bounds.loss, outcome.C, outcome.as_asked) == (base, start.C, True)
    assert f"this is the model of {base}" in " ".join(outcome.notes)
    ramp = ramp_of(data, base)
    scores = ramp.scores(outcome.w)
    at = value(ramp if bounds.bound == "tight" else ramp.hinge, scores)
    assert bounds.primal == pytest.approx(0.5 * outcome.w @ outcome.w + outcome.C * at, rel=1e-9)
    assert bounds.gap <= bounds.tolerance == pytest.approx(1e-2 * outcome.C)


@pytest.mark.slow
def test_a_descent_that_is_interrupted_leaves_the_start(rng, monkeypatch):
    data = long_list(rng, 400)
    start = start_of(data, make_loss("mrr"))
    turned_round(monkeypatch, state=State.INTERRUPTED, as_asked=False, interrupted=True)
    (outcome,) = train_plan(StructuredSVMTrainer("mrr", settings()), data, Watch())
    np.testing.assert_array_equal(outcome.w, start.w)
    assert (outcome.interrupted, outcome.as_asked) == (True, False)


@pytest.mark.slow
def test_grades_start_from_grades(rng):
    """ndcg@k of grades from ndcg of grades: its own graded loss on the training rows is no worse."""
    data, loss = long_list(rng, 600, graded=True), make_loss("ndcg@5")
    start = start_of(data, loss)
    (outcome,) = train_plan(StructuredSVMTrainer("ndcg@5", settings()), data, Watch())

    def dcg(grades):
        return float(((np.exp2(grades[:5]) - 1.0) / np.log2(np.arange(2, 7))).sum())

    def graded(w):
        return dcg(data.target.grades[np.argsort(-data.rows.scores(w))]) / dcg(-np.sort(-data.target.grades))

    assert graded(outcome.w) >= graded(start.w) - 1e-12
    assert graded(outcome.w) > 0.3


@pytest.mark.parametrize("name", ["p@3", "mrr", "ndcg@100", "rbp(0.99)"])
def test_the_default_C_is_where_the_ramp_has_fallen_by_a_tenth(name, rng):
    """Along the start, ½t²‖w₀‖² + C·r(t·w₀) has a stationary point t where r has lost φ of what there is to lose."""
    data, loss = long_list(rng), make_loss(name)
    w = np.array([1.0, 0.5, 0.3, 0.0, 0.0, 0.0])
    C, origin = default_C_at(data, loss, "auto", w, "ap", DESCENT)
    assert origin == "set so that the ap model has its best length where the ramp has fallen by 10 % of its range"
    ramp = ramp_of(data, name)
    scores = ramp.scores(w)
    none, reached = value(ramp, 0.0 * scores), lost(name, data, w)
    lengths = np.geomspace(1e-4, 1e4, 4000)
    fallen = np.array([none - value(ramp, length * scores) for length in lengths]) / (none - reached)
    near = (fallen > 0.7 * DESCENT) & (fallen < 1.5 * DESCENT)
    assert near.any()
    # d/dt of both parts, across a twentieth of t: r is piecewise linear.
    t = lengths[near]
    slopes = np.array([(value(ramp, 1.025 * x * scores) - value(ramp, 0.975 * x * scores)) / (0.05 * x) for x in t])
    wanted = -t * (w @ w) / np.minimum(slopes, -1e-300)
    assert wanted.min() / 1.3 < C < wanted.max() * 1.3
    # In other units of the features the ranking is the same, and so is what C does to it.
    longer, origin = default_C_at(data, loss, "auto", 8.0 * w, "", DESCENT)
    assert longer == pytest.approx(C, rel=0.2)
    assert origin.startswith("set so that the given model has its best length")


def test_a_start_that_ranks_no_better_than_nothing_has_the_features_C(rng):
    data, loss = long_list(rng, 300), make_loss("p@1")
    w = -np.array([5.0, 5.0, 0.0, 0.0, 0.0, 0.0])  # the negatives first
    assert lost("p@1", data, w) == 1.0
    by_features = (default_C(data, loss, "tight"), "set by the scale of the features")
    assert default_C_at(data, loss, "auto", w, "", DESCENT) == by_features
    assert default_C_at(data, loss, "auto", np.zeros(6), "", DESCENT) == by_features


def test_two_thirds_of_the_time_are_for_the_start(rng, monkeypatch):
    """None is left over: the descent has a time limit too, and the model is the start at least."""
    data = long_list(rng, 400)
    limits = []

    def change(plan, outcome):
        limits.append(plan.settings.time_limit)
        return outcome

    altered(monkeypatch, change)
    (outcome,) = train_plan(StructuredSVMTrainer("mrr", settings(time_limit=300.0)), data, Watch())
    of_start, *of_descents = limits
    assert of_start <= 200.0
    assert of_descents
    assert all(of_start < limit <= 300.0 for limit in of_descents)
    assert of_descents == sorted(of_descents, reverse=True)
    assert outcome.settings.time_limit == 300.0


OVER_SETS = [name for name in LABELLING_LOSSES if make_loss(name).ranks_like is not None]


@pytest.mark.slow
@pytest.mark.parametrize("name", OVER_SETS)
def test_a_loss_over_sets_ranks_no_worse_than_where_the_rankings_loss_would(name, rng):
    """By default the better of the hinge's minimiser and the model of the whole list; with the evidence of which."""
    data, loss = long_list(rng, 400), make_loss(name)
    start = start_of(data, loss)
    (outcome,) = train_plan(StructuredSVMTrainer(name, settings()), data, Watch())
    (hinge,) = train_plan(StructuredSVMTrainer(name, settings(bound="hinge")), data, Watch())
    assert hinge.certificate.loss is None
    losses = {lost(loss.ranks_like, data, w) for w in (start.w, hinge.w) if w.any()}
    assert lost(loss.ranks_like, data, outcome.w) == pytest.approx(min(losses), abs=1e-12)
    if outcome.certificate.loss is None:
        np.testing.assert_array_equal(outcome.w, hinge.w)
    else:
        assert outcome.certificate.loss == loss.starts_from
        np.testing.assert_array_equal(outcome.w, start.w)
        assert "ranks the training rows worse than" in " ".join(outcome.notes)


ONE_THREAD = StructuredSettings(threads=1)


def payments(rng, n):
    """One in a hundred is fraud: a third large for what it is, a third at night with a new card, a third as others."""
    amount, age = np.exp(rng.normal(3.3, 1.1, n)), rng.integers(1, 3000, n).astype(float)
    hour, recent, shop = rng.integers(0, 24, n), rng.poisson(0.6, n), rng.integers(0, 10, n)
    fraud, kind = rng.random(n) < 0.01, rng.integers(0, 3, n)
    large, at_night = fraud & (kind == 0), fraud & (kind == 1)
    amount[large] *= 5
    recent[large] += rng.poisson(2, large.sum())
    shop[large] = 0
    age[at_night], hour[at_night] = rng.integers(1, 60, at_night.sum()), rng.integers(0, 5, at_night.sum())
    return np.column_stack([amount, age, hour, recent, shop[:, None] == np.arange(10)]), fraud


@pytest.mark.slow
@pytest.mark.parametrize(("named", "components"), [(frozenset({"components"}), 1), (frozenset(), 2)])
def test_the_threshold_is_where_the_model_s_own_scores_lie(named, components):
    """Rankers of a part of rare, partly hopeless positives have scores of another shape than one of all rows."""
    rng = np.random.default_rng(2)
    data, (new, _) = training_set(*payments(rng, 8000)), payments(rng, 30_000)
    (outcome,) = train_plan(StructuredSVMTrainer("ap", ONE_THREAD, named), data, Watch())
    assert outcome.settings.components == components
    assert outcome.threshold.held_out == "5 folds of rows"
    called = (scores_of_weights(Rows(new), outcome.w) > outcome.threshold.value).mean()
    assert called == pytest.approx(outcome.threshold.called, rel=0.3)


def classes(rng, counts=(60, 40, 30)):
    """The rows of a fit of one against the rest: as many of each class, each shifted along a feature of its own."""
    labels = rng.permutation(np.repeat(np.arange(float(len(counts))), counts))
    X = rng.normal(size=(labels.size, len(counts))) + 1.5 * np.eye(len(counts))[labels.astype(int)]
    return Dataset(X, labels, None, None, False, "made", "0" * 64, 0)


def one_vs_rest(data, loss="ap", **more):
    plan = OneVsRestTrainer(StructuredSVMTrainer(loss, settings(**more)))
    return plan, Fit.of(data, plan, LabelOptions(), FeatureOptions()).prepared().training_set()


class Clock:
    """A second passes with each look at it."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("loss", ["ap", "mrr"])
def test_classes_share_the_time_that_the_choice_leaves(loss, rng, monkeypatch):
    limits = []

    def change(plan, outcome):
        limits.append(plan.settings.time_limit)
        return outcome

    altered(monkeypatch, change)
    monkeypatch.setattr(completion, "time", Clock())
    (outcome,) = train_plan(*one_vs_rest(classes(rng), loss, time_limit=31.0), Watch())
    assert outcome.seconds["choosing"] == 1.0
    assert 0.0 < limits[0] <= 10.0
    assert outcome.classes[0][1].details["choice"]["bound"] in ("hinge", "tight")


def test_of_many_classes_some_choose_for_all(rng, monkeypatch):
    """Evenly from the rarest to the most frequent; one too rare to be held out has no say."""
    monkeypatch.setattr(quick, "MOST_CLASSES", 3)
    plan, data = one_vs_rest(classes(rng, (50, 3, 40, 20, 30)))
    assert classes_compared(data) == [0.0, 1.0, 4.0]
    (outcome,) = train_plan(plan, data, Watch())
    assert outcome.classes[0][1].details["choice"]["held_out"] == "5 folds of rows, of 2 classes"
    parts = dict(outcome.classes)
    assert {label for label, part in parts.items() if part.held_out is not None} == {0.0, 4.0}
    assert len({part.certificate.bound for part in parts.values()}) == 1
    assert len({part.C for part in parts.values()}) == 1  # the rule's C is the same for all


def test_classes_that_are_all_rare_choose_nothing(rng):
    (outcome,) = train_plan(*one_vs_rest(classes(rng, (5, 4))), Watch())
    choice = outcome.classes[0][1].details["choice"]
    assert choice["held_out"] == "4 rows of one class are too few to hold any out"
    assert [part.certificate.bound for _, part in outcome.classes] == ["hinge", "hinge"]


def test_a_start_of_two_components_is_gone_on_from_with_both(rng):
    data = long_list(rng, 200)
    (outcome,) = train_plan(StructuredSVMTrainer("p@10", settings(components=2, C=(10.0,))), data, Watch())
    assert outcome.w.shape == (2, data.rows.dimension + 1)
    assert np.unique(outcome.w, axis=0).shape[0] == 2
    assert " then " in outcome.details["oracle"]
    assert "choice" not in outcome.details  # components begin by the tight bound


def test_ap_of_held_out_rows_is_free_of_the_choice(rng):
    """On noise no setting ranks new rows, and the best on held-out rows hardly seems to."""
    relevant = np.arange(80) < 16
    by_chance = np.mean([average_precision_score(relevant, rng.random(80)) for _ in range(2000)])
    values = []
    for _ in range(30):
        data = training_set(rng.normal(size=(80, 6)), relevant)
        (outcome,) = train_plan(StructuredSVMTrainer("ap", StructuredSettings(threads=1)), data, Watch())
        values.append(outcome.details["held_out"]["AP"]["value"])
    assert np.mean(values) < by_chance + 0.03
