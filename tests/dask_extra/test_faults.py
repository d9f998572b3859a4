"""Workers that are lost: their parts are read again elsewhere, and training goes on to the same model."""

from __future__ import annotations

import os
import re
import signal
from contextlib import nullcontext
from threading import Event

import numpy as np
import pytest
from command import in_process
from shards import crew_of

from apsvm.dask.crew import ClusterError, ShardLostError
from apsvm.dask.data import ShardedData
from apsvm.dask.fitting import ShardedFit
from apsvm.dask.recovery import repeated
from apsvm.dask.sources import ArrayPart
from apsvm.data.labels import LabelOptions
from apsvm.data.moments import Moments
from apsvm.trainers.base import Watch
from apsvm.trainers.fitting import FeatureOptions
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


def structured(**settings):
    return StructuredSVMTrainer("ap", StructuredSettings(bound="hinge", C=(50.0,), **settings))


def rows(rng, n=2000):
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + rng.normal(size=n) > 2.0).astype(float)


def fit_of(crew, trainer, scale="none"):
    return ShardedFit.of(ShardedData.of(crew, "the rows"), trainer, LabelOptions(), FeatureOptions(scale=scale))


def decided(crew, trainer):
    fit = fit_of(crew, trainer, scale="standard")
    (outcome,) = fit.outcomes(Watch())
    return fit.decided(outcome)


def trained(crew, trainer, on_progress=lambda progress: None):
    remarks = []
    (outcome,) = fit_of(crew, trainer).outcomes(Watch(progress=on_progress, remark=remarks.append))
    return outcome, remarks


class LosingCrew:
    """Makes a crew lose a shard before the rounds that are named."""

    def __init__(self, crew, at):
        self.rounds, self.at = 0, set(at)
        self._ask = crew._ask
        self._crew = crew
        crew._ask = self

    def __call__(self, call, programme):
        self.rounds += 1
        if self.rounds in self.at:
            self._crew.lose(self.rounds % len(self._crew))
        return self._ask(call, programme)


@pytest.mark.parametrize("solver", ["line-search", "cutting-plane"])
def test_a_shard_lost_at_any_round(rng, solver):
    X, y = rows(rng, 300)
    trainer = structured(solver=solver, epsilon=0.05)
    plain, _ = trained(crew_of(X, y, [200, 300]), trainer)
    counting = crew_of(X, y, [200, 300])
    rounds = LosingCrew(counting, ())
    trained(counting, trainer)
    assert rounds.rounds > 24
    for lost in (1, 2, 4, 7, 8, 9, 11, 12, 15, 19, rounds.rounds - 5, rounds.rounds - 1):
        crew = crew_of(X, y, [200, 300])
        LosingCrew(crew, [lost])
        outcome, remarks = trained(crew, trainer)
        assert crew.losses == 1
        assert outcome.iterations == plain.iterations
        assert outcome.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-10)
        assert outcome.certificate.dual == pytest.approx(plain.certificate.dual, rel=1e-10)
        np.testing.assert_allclose(outcome.w, plain.w, rtol=1e-6, atol=1e-9)
        assert all("worker was lost" in remark for remark in remarks)


def test_a_cluster_that_is_not_up_is_given_up(rng):
    crew = crew_of(*rows(rng), [200])
    data = ShardedData.of(crew, "the rows")

    attempts = []

    def never():
        attempts.append(crew)
        raise ShardLostError("gone")

    with pytest.raises(ClusterError, match=r"workers were lost 11 times .* the cluster is not up"):
        repeated(data.vectors, never)
    assert len(attempts) == 11


@pytest.mark.parametrize(
    ("method", "twist", "message"),
    [
        ("read", lambda said: 0, "worker 0: it does not answer 'read' as apsvm does, by None"),
        ("about", lambda said: said._replace(labels=said.labels.astype(str)), "'about' as apsvm does, by About"),
        ("about", lambda said: said._replace(first=None), "'about'"),
        ("about", lambda said: said._replace(rows=said.rows + 1), "worker 0: its counts of labels are not of its 291"),
        ("understand", lambda said: [*said], "by tuple.int, int."),
        ("understand", lambda said: (*said, 0), "'understand'"),
        ("understand", lambda said: (float(said[0]), said[1]), "'understand'"),
        ("understand", lambda said: (said[0] - 1, said[1]), "relevant rows and .* others of 300"),
        ("survey", lambda said: said._replace(counts=1), "by Survey"),
        ("combine", lambda said: None, "by NDArray"),
        ("combine", lambda said: said[1:], "sums of the workers differ in number: 3 and 4"),
        (
            "moments",
            lambda said: (said[0], Moments(said[1].mean[1:], said[1].variance)),
            "means and variances of",
        ),
        ("count_negatives", lambda said: (said[0][1:], said[1]), "counts of the workers differ in number: 19 and 20"),
        ("score_positives", lambda said: said.astype(np.float32), "by NDArray.* . None"),
        ("highest_below", lambda said: np.nan, "below .* nan is the highest"),
        ("highest_below", lambda said: 1e300, "below .* 1e.300 is the highest"),
        ("highest_below", lambda said: said - 2.0, "the workers count .* rows with scores from"),
    ],
)
def test_a_worker_that_answers_something_else(method, twist, message, rng):
    """Of another version, say, or hostile."""
    X, y = rows(rng, 300)
    crew = crew_of(X, y, [290])
    ask = crew._ask

    def twisted(call, programme):
        answers = ask(call, programme)
        return [(twist(answers[0][0]), 0.0), *answers[1:]] if call.method == method else answers

    crew._ask = twisted
    with pytest.raises((ClusterError, ValueError), match=message):
        decided(crew, structured(epsilon=0.1))


@pytest.mark.slow
def test_a_worker_that_is_killed(rng):
    """Processes, of which one is killed in the middle of a training."""
    from distributed import Client, LocalCluster

    from apsvm.dask.actors import ActorCrew

    parts = [ArrayPart(*rows(rng, 1000), number=number) for number in range(4)]
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=60
        ) as here,
        Client(here, set_as_default=False) as client,
    ):
        plain, _ = trained(ActorCrew(client, parts), structured())
        killed = []

        def kill_one(progress):
            if progress.number == 3 and not killed:
                address = sorted(client.nthreads())[0]
                killed.append(client.run(os.getpid, workers=[address])[address])
                os.kill(killed[0], signal.SIGKILL)

        crew = ActorCrew(client, parts)
        outcome, remarks = trained(crew, structured(), kill_one)
    assert killed
    assert crew.losses >= 1
    assert any("worker was lost" in remark for remark in remarks)
    assert outcome.iterations == plain.iterations
    assert outcome.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-10)
    np.testing.assert_allclose(outcome.w, plain.w, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train --one-vs-rest", "cv", "predict"])
def test_the_only_worker_is_gone(command, tmp_path, monkeypatch):
    """It leaves in the middle of a task: dask itself would wait for another one for ever."""
    from distributed import Client, LocalCluster, get_worker

    (tmp_path / "part-0").write_text("".join(f"{row % 3} 1:{row % 7} 2:{row % 5}\n" for row in range(60)))
    environment = {"PATH": os.environ["PATH"]}
    words = ["train", "part-0", "m.model", "-q", "-C", "1", "--relevant-from", "1"]
    assert in_process(words, env=environment, cwd=tmp_path).returncode == 0
    left, done = Event(), Event()

    def leave(*arguments, **options):
        done.wait(0.6)  # longer than is waited for workers that are gone
        worker = get_worker()
        left.set()
        worker.loop.add_callback(worker.close, executor_wait=False)
        done.wait(10.0)

    monkeypatch.setattr("apsvm.dask.actors.MOST_WAITING", 0.3)
    monkeypatch.setattr("apsvm.dask.actors.PATIENCE_OF_TASKS", 0.1)
    monkeypatch.setattr("apsvm.dask.classes._read", leave)
    monkeypatch.setattr("apsvm.dask.prediction.on_worker", leave)
    monkeypatch.setattr("apsvm.dask.folds._PREPARING", nullcontext())
    monkeypatch.setattr("apsvm.selection.cross_validation.CrossValidation.ready", leave)
    options = {"cv": ["--relevant-from", "1"], "predict": ["m.model", "out"]}.get(command, ["m.model"])
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=60
        ) as here,
        Client(here, set_as_default=False) as client,
    ):
        name, *flags = command.split()
        words = [name, "part-*", *options, *flags, "--scheduler", client.scheduler.address]
        result = in_process(words, env=environment, cwd=tmp_path)
        done.set()
    assert left.is_set()
    assert result.returncode == 66, result.stderr.decode()
    last = result.stderr.decode().splitlines()[-1]
    assert re.match("apsvm: error: (no worker of the cluster was there for 0.3 seconds|the workers were lost: )", last)
