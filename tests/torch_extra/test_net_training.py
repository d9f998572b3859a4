"""The training behind the estimators and ``--net``: its parts, and the command line."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from command import in_process
from over import over
from trainings import training_set

from apsvm import load_any_model, read_svmlight
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.rows import Rows
from apsvm.models.net import NetRanker
from apsvm.risk import NothingToRankError
from apsvm.torch import BlackboxAPLoss, DirectLoss, RankingHingeLoss, RankingRampLoss, SmoothAPLoss
from apsvm.torch.network import Adam, Network
from apsvm.torch.training import criterion_of, hold_out, queries_to_rank, train_net
from apsvm.trainers.base import Watch
from apsvm.trainers.nets.settings import NetLoss, NetSettings
from apsvm.trainers.nets.trainer import NetTrainer

CPU = torch.device("cpu")


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(300, 3))
    return X, X[:, 0] * X[:, 1] > 0.5


@pytest.fixture
def run(tmp_path):
    def call(*arguments, code=0, env=None):
        done = in_process([*map(str, arguments)], env=env or {}, cwd=tmp_path)
        assert done.returncode == code, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return done.stdout.decode(), done.stderr.decode()

    return call


@pytest.fixture
def data(rows, tmp_path):
    """A file of rows, and one with queries and grades."""
    X, relevant = rows
    for name, labels, qid in (("plain", np.where(relevant, 1, -1), ""), ("graded", relevant + (X[:, 2] > 1), "qid:{}")):
        lines = [
            f"{int(label)} {qid.format(row // 10)} " + " ".join(f"{j}:{value:.6f}" for j, value in enumerate(x, 1))
            for row, (label, x) in enumerate(zip(labels, X, strict=True))
        ]
        (tmp_path / f"{name}.svm").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_adam_is_that_of_torch():
    torch.manual_seed(0)
    a, b = torch.randn(3, 4), torch.randn(5)
    mine, theirs = ([one.clone().requires_grad_() for one in (a, b)] for _ in range(2))
    reference, optimiser = torch.optim.Adam(theirs, lr=0.02), Adam(mine, 0.02)

    def value(parameters):
        return (parameters[0].square().sum() - parameters[1].sin().sum()).exp().log1p()

    for _ in range(40):
        optimiser.step(value(mine))
        reference.zero_grad()
        value(theirs).backward()
        reference.step()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", [(3, 1), (3, 5, 1), (3, 5, 4, 1)])
def test_the_network_becomes_the_model(sizes, rows):
    X, _ = rows
    network = Network(sizes, CPU, torch.Generator().manual_seed(0))
    assert len(network.parameters) == 2 * (len(sizes) - 1)
    scaling = learn_scaling("standard", 5.0 + 3.0 * X)
    inside = torch.from_numpy(((5.0 + 3.0 * X - scaling.centre) / scaling.divisors).astype(np.float32))
    np.testing.assert_allclose(
        network.net(scaling).scores(Rows(5.0 + 3.0 * X)), network.scores(inside), rtol=0, atol=2e-6
    )


def test_snapshots_are_apart():
    network = Network((2, 3, 1), CPU, torch.Generator().manual_seed(0))
    before = network.snapshot()
    Adam(network.parameters, 0.1).step(network(torch.ones(4, 2)).sum())
    assert any(not torch.equal(one, other) for one, other in zip(before, network.parameters, strict=True))
    network.restore(before)
    assert all(torch.equal(one, other) for one, other in zip(before, network.parameters, strict=True))


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_what_is_held_out_has_its_share_of_both_classes(share, rows):
    X, relevant = rows
    kept, held = hold_out(training_set(X, relevant), share, np.random.default_rng(0))
    assert kept.n + held.n == 300
    for of_class in (True, False):
        assert (held.target.relevant == of_class).sum() == round(share * (relevant == of_class).sum())
    other = hold_out(training_set(X, relevant), share, np.random.default_rng(1))[1]
    assert not np.array_equal(held.rows.scores(np.ones(3)), other.rows.scores(np.ones(3)))


def test_queries_are_held_out_whole(rows):
    X, relevant = rows
    queries = np.arange(300) % 30
    kept, held = hold_out(training_set(X, relevant, queries), 0.2, np.random.default_rng(0))
    assert not set(kept.queries) & set(held.queries)
    worth_it = len(queries_to_rank(training_set(X, relevant, queries)))
    assert np.unique(held.queries).size == round(0.2 * worth_it)
    assert hold_out(training_set(X, relevant, np.arange(300) // 150), 0.2, np.random.default_rng(0)) is None
    assert hold_out(training_set(X[:4], np.array([True, True, False, False])), 0.2, np.random.default_rng(0)) is None


@pytest.mark.parametrize("loss", ["ap", "ndcg(linear)", "ramp(auc)", "direct(ap)", "smooth-ap", "blackbox-ap", "bce"])
def test_what_a_name_stands_for(loss):
    modules = {
        "ap": RankingHingeLoss("ap"),
        "ndcg(linear)": RankingHingeLoss("ndcg(linear)"),
        "ramp(auc)": RankingRampLoss("auc"),
        "direct(ap)": DirectLoss("ap"),
        "smooth-ap": SmoothAPLoss(tau=1.0),
        "blackbox-ap": BlackboxAPLoss(),
        "bce": lambda scores, target, qid: torch.nn.functional.binary_cross_entropy_with_logits(scores, target),
    }
    torch.manual_seed(1)
    scores, target, qid = torch.randn(40), (torch.rand(40) > 0.6).float(), torch.arange(40) // 10
    found = criterion_of(NetLoss.of(loss.upper()))(scores, target, qid)
    torch.testing.assert_close(found, modules[loss](scores, target, qid=qid))


def test_steps_of_whole_queries(rows):
    """Every batch has whole queries, and those with something to rank only."""
    X, relevant = rows
    queries = np.arange(300) // 12
    relevant = relevant & (queries != 4)
    data = training_set(X, relevant, queries)
    seen = []

    def watch_scores(scores, target, mask=None, qid=None, dim=-1):
        seen.append(np.bincount(qid.numpy(), minlength=25))
        return (scores * 0.0).sum()

    class Recorded:
        values_of = None
        __call__ = staticmethod(watch_scores)

    settings = NetSettings(net="4", net_epochs=2, bce_epochs=0, held_out=0.0, batch_rows=30)
    train_net(data, NetTrainer(Recorded(), settings), Watch())
    counts = np.array(seen)
    assert set(np.unique(counts)) == {0, 12}
    assert (counts.sum(axis=1) <= 36).all()
    to_rank = [0 < relevant[queries == query].sum() < 12 for query in range(25)]
    assert not to_rank[4]
    # Eight or so batches go through them all, and an epoch has ten steps: twice an epoch.
    np.testing.assert_array_equal(counts.sum(axis=0), np.where(to_rank, 12 * 2 * 2, 0))


def test_nothing_to_rank(rows):
    X, _ = rows
    data = training_set(X, np.zeros(300, dtype=bool), grades=np.zeros(300))
    with pytest.raises(NothingToRankError):
        train_net(data, NetTrainer("ndcg", NetSettings(net_epochs=2)), Watch())


def test_trouble_later_on_keeps_what_there_was(rows, monkeypatch):
    X, relevant = rows
    data = training_set(X, relevant)

    class Spoilt:
        values_of = None

        def __call__(self, scores, target, mask=None, qid=None, dim=-1):
            return (scores * float("nan")).sum()

    settings = NetSettings(net="4", net_epochs=6, bce_epochs=3)
    trained = train_net(data, NetTrainer(Spoilt(), settings), Watch())
    assert str(trained.ending) == "numerical trouble"
    assert (len(trained.epochs), trained.trouble is not None) == (3, True)
    assert np.isfinite(trained.net.scores(data.rows)).all()


def test_stopped_from_outside(rows):
    X, relevant = rows
    calls = iter(range(10**9))
    watch = Watch(should_stop=lambda: next(calls) > 40)
    trained = train_net(training_set(X, relevant), NetTrainer("ap", NetSettings(net="4", net_epochs=500)), watch)
    assert str(trained.ending) == "interrupted"
    assert 0 < len(trained.epochs) < 100


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ap", "bce", "smooth-ap", "ramp(mrr)", "direct(auc)"])
def test_the_command_line(loss, data, run):
    _, said = run("train", "--net", "8,4", "--loss", loss, "--epochs", 40, "plain.svm", "m.model")
    assert "kept epoch" in said
    model = load_any_model(data / "m.model")
    assert isinstance(model, NetRanker)
    assert model.net.units == [8, 4, 1]
    predicted, _ = run("predict", "plain.svm", "m.model")
    scores = model.score(read_svmlight(data / "plain.svm").X)
    np.testing.assert_array_equal([float(line) for line in predicted.split()], scores)
    evaluated, _ = run("eval", "--model", "m.model", "plain.svm", "--json")
    described, _ = run("info", "m.model")
    assert f"loss         {loss}" in described
    assert "8, 4 rectified linear units" in described
    again = data / "again.model"
    run("train", "--net", "8,4", "--loss", loss, "--epochs", 40, "plain.svm", again, "-q")
    assert again.read_bytes() == (data / "m.model").read_bytes()
    assert json.loads(evaluated)


@pytest.mark.slow
def test_grades_and_validation(data, run):
    _, said = run("train", "--net", "8", "--loss", "ndcg", "--epochs", 20, "graded.svm", "m.model")
    assert "on held out" in said
    options = ("--net", "8", "--loss", "ndcg", "--epochs", 20, "--validation", "graded.svm")
    _, said = run("train", *options, "graded.svm", "v.model")
    assert "on graded.svm" in said
    header = load_any_model(data / "v.model").header
    assert header.epochs.validation.file == "graded.svm"
    rows = read_svmlight(data / "graded.svm")
    apart = sum(np.ptp(rows.relevance[rows.groups == query]) > 0 for query in range(30))
    assert (header.data.queries, header.data.queries_skipped) == (apart, 30 - apart)
    assert 0 < apart < 30


@pytest.mark.slow
def test_a_run_and_its_report(data, run):
    run("train", "--net", "8", "--loss", "ap", "--epochs", 20, "--run-dir", "run", "plain.svm", "-q")
    records = [json.loads(line) for line in (data / "run" / "log.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in records if record["event"] == "epoch"] == list(range(1, 21))
    run("report", "run")
    (page,) = (data / "run").glob("*.html")
    assert "Layers" in page.read_text()


@pytest.mark.slow
def test_cross_validation(data, run):
    printed, _ = run(
        "cv", "--net", "8", "--loss", "ap", "--learning-rate", "0.001,0.01", "--epochs", 20, "--folds", 3,
        "plain.svm", "-o", "best.model",
    )  # fmt: skip
    assert "0.001" in printed
    model = load_any_model(data / "best.model")
    assert model.header.selection["folds"] == 3
    assert model.net.units == [8, 1]


@over(
    ("options", "says"),
    [
        (
            ("--net",),
            "--net takes a number of units, 1..65536, as in --net 32; or one for each of up to 16 hidden layers",
        ),
        (("--net", "8,"), "Found '8,'"),
        (("--net", "8", "--loss", "f1"), "'f1' is none"),
        (("--net", "8", "--loss", "wmw"), "wmw"),
        (("--net", "8", "--latent"), "--latent is not for --net"),
        (("--net", "8", "-C", "3"), "is not for --net"),
        (("--net", "8", "--layer-wise", "8"), "--layer-wise is not for --net"),
        (("--net", "8", "--one-vs-rest"), "--one-vs-rest does not apply: a network is trained for one ranking"),
        (("--loss", "bce", "--one-vs-rest"), "--one-vs-rest does not apply: a network is trained for one"),
        (("--net", "8", "--scale", "standard"), "--scale does not apply"),
        (("--net", "8", "--warm-start", "m.model"), "--warm-start does not apply"),
        (("--net", "8", "--device", "abacus"), "--device abacus: not there; choose cpu, cuda, cuda:N or mps"),
        (("--net", "8", "--device", "ve"), "--device ve: not there; choose cpu"),
        (("--net", "8", "--device", "cuda:x"), "--device cuda:x: Invalid device string"),
        (("--batch-rows", "8"), "--batch-rows is not for --loss ap"),
    ],
)
def test_refusals(options, says, data, run):
    """The first takes the data file's name as its value."""
    _, said = run("train", *options, "plain.svm", "m.model", code=2)
    assert says in said
    assert not (data / "m.model").exists()


def test_the_data_taken_for_the_units(data, run):
    """MODEL need not be named, and then it is DATA that is missing; of other values nothing is said."""
    _, said = run("train", "--net", "plain.svm", code=2)
    assert "Missing argument 'DATA'. --net has taken 'plain.svm'." in said
    _, said = run("train", "--net", "32", code=2)
    assert said.rstrip().endswith("Missing argument 'DATA'.")


def test_without_torch_the_extra_is_named(data, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for options in (("--net", "8"), ("--loss", "smooth-ap")):
        _, said = run("train", *options, "plain.svm", "m.model", code=69)
        assert said.splitlines()[-1].endswith("needs the package torch: pip install 'apsvm[torch]'")


def test_predicting_needs_no_torch(data, run, monkeypatch):
    run("train", "--net", "4", "--epochs", 5, "plain.svm", "m.model", "-q")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert len(run("predict", "plain.svm", "m.model")[0].split()) == 300
