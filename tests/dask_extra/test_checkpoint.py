"""``--checkpoint`` on a cluster: a driver that died at any moment is followed by one that comes to the same model."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from command import in_process
from shards import crew_of
from sklearn.datasets import dump_svmlight_file

import apsvm._support.checkpoint
from apsvm._support.checkpoint import Checkpoint
from apsvm._support.work import Strand
from apsvm.dask.data import ShardedData
from apsvm.dask.fitting import ShardedFit
from apsvm.data.labels import LabelOptions
from apsvm.trainers.base import Watch
from apsvm.trainers.fitting import FeatureOptions
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


def rows(rng, n=300):
    X = rng.normal(size=(n, 6))
    return X, (X[:, 0] + rng.normal(size=n) > 1.5).astype(float)


class DiedError(Exception):
    """What the driver died of."""


def trained(crew, trainer, strand, die_at=0):
    """The outcomes; the driver dies at its ``die_at``-th iteration."""
    iterations = 0

    def on_progress(progress):
        nonlocal iterations
        iterations += 1
        if iterations == die_at:
            raise DiedError

    fit = ShardedFit.of(ShardedData.of(crew, "the rows"), trainer, LabelOptions(), FeatureOptions(scale="maxabs"))
    return list(fit.outcomes(Watch(progress=on_progress, strand=strand))), iterations


def told(outcome):
    """Everything that the model says of it."""
    bounds = outcome.certificate
    return outcome.w.tobytes(), outcome.iterations, bounds.primal, bounds.dual, outcome.details, outcome.C


@pytest.mark.parametrize(
    ("solver", "queries"), [("line-search", False), ("line-search", True), ("cutting-plane", False)]
)
def test_the_next_driver_comes_to_the_same_bits(rng, tmp_path, solver, queries):
    X, y = rows(rng)
    columns = {"qid": np.arange(y.size) // 50} if queries else {}
    trainer = StructuredSVMTrainer("ap", StructuredSettings(C=(1.0, 50.0), solver=solver, epsilon=1e-4))

    def crew():
        return crew_of(X, y, (100, 150), **columns)

    plain, iterations = trained(crew(), trainer, Strand())
    assert iterations > 6
    path = tmp_path / "kept"
    for die_at in {2, iterations // 2, iterations}:
        with pytest.raises(DiedError):
            trained(crew(), trainer, Checkpoint(path, seconds=0.0).strand, die_at)
        resumed, left = trained(crew(), trainer, Checkpoint(path, seconds=0.0).strand)
        first_C = plain[0].iterations
        assert left == (iterations if die_at <= first_C else iterations - first_C)
        assert [told(outcome) for outcome in resumed] == [told(outcome) for outcome in plain]
        path.unlink(missing_ok=True)


def test_on_other_workers_the_certificate_is_the_same(rng, tmp_path):
    X, y = rows(rng)
    trainer = StructuredSVMTrainer("ap", StructuredSettings(C=(5.0, 50.0), epsilon=1e-5))
    (_, plain), iterations = trained(crew_of(X, y, (100, 150)), trainer, Strand())
    path = tmp_path / "kept"
    with pytest.raises(DiedError):
        trained(crew_of(X, y, (100, 150)), trainer, Checkpoint(path, seconds=0.0).strand, iterations - 1)
    (_, resumed), left = trained(crew_of(X, y, (60, 80, 250)), trainer, Checkpoint(path, seconds=0.0).strand)
    assert left < iterations
    assert resumed.certificate.reached
    # Both bracket the same optimum.
    assert resumed.certificate.dual <= plain.certificate.primal
    assert plain.certificate.dual <= resumed.certificate.primal


@pytest.fixture
def command(client, tmp_path, rng, monkeypatch):
    """Runs ``apsvm train`` on three parts of which each worker of the cluster reads some."""
    X, y = rows(rng)
    for part, which in enumerate(np.split(np.arange(y.size), 3)):
        dump_svmlight_file(X[which], 2 * y[which] - 1, str(tmp_path / f"part-{part}"), zero_based=False)

    def run(*options):
        words = ["train", "part-*", "m", "--scheduler", client.scheduler.address, "--checkpoint", "kept", *options]
        monkeypatch.chdir(tmp_path)
        done = in_process(words, env={"PATH": os.environ["PATH"]}, cwd=tmp_path)
        return done.returncode, done.stderr.decode()

    return run


@pytest.mark.slow
def test_the_command_goes_on_and_refuses_what_is_another_training(command, tmp_path, monkeypatch):
    contents = []

    def remembered(path, content):
        contents.append(content)
        Path(path).write_bytes(content)  # without the sync, which is what takes long

    monkeypatch.setattr(apsvm._support.checkpoint, "write_whole", remembered)
    options = ("-C", "1,10,100", "--checkpoint-seconds", "0")
    code, said = command(*options)
    assert code == 0, said
    kept = tmp_path / "kept"
    assert not kept.exists()
    names = ("m.C1", "m.C10", "m.C100")
    expected = [(tmp_path / name).read_bytes() for name in names]
    kept.write_bytes(contents[len(contents) // 2])
    code, said = command("-C", "1,10,100", "--scale", "maxabs")
    assert code == 65
    assert "--scale was auto and is maxabs" in said
    writes = len(contents)
    code, said = command(*options)
    assert code == 0, said
    assert "goes on from kept" in said
    assert len(contents) - writes < writes
    assert [(tmp_path / name).read_bytes() for name in names] == expected
    kept.write_bytes(contents[0])
    with open(tmp_path / "part-2", "a") as part:
        part.write("# one line more\n")
    code, said = command(*options)
    assert code == 65
    assert "the data's SHA-256 was" in said
