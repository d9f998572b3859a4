"""``apsvm cv`` against folds trained one by one, and what it writes and refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import numpy as np
import pytest
from over import over
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

from apsvm import load_model
from apsvm.data.labels import Target
from apsvm.data.rows import Rows
from apsvm.models.header import Labels
from apsvm.selection.folds import make_folds
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


@pytest.fixture
def hard(rng, write_rows, tmp_path):
    """300 rows that no ranker orders well, a sixth positive, features of different scales: (path, X, positive)."""
    X = np.round(rng.normal(size=(300, 6)) * np.array([1, 5, 0.2, 1, 3, 1]), 6)
    positive = X @ np.array([1, 0.2, 0, 0, 0, 0.5]) + 2 * rng.normal(size=300) > 2
    return write_rows(tmp_path / "hard.svm", X, np.where(positive, 1.0, -1.0)), X, positive


def test_every_fold_against_a_training_of_its_own(hard, run, tmp_path):
    path, X, positive = hard
    done = run(
        "cv", path, "--bound", "hinge", "--folds", 3,
        "-C", "0.1:100:log10", "--scale", "standard", "-m", "AP", "-m", "AUC", "-e", 1e-5,
        "--json", tmp_path / "j", "-o", tmp_path / "m", "--seed", 4,
    )  # fmt: skip
    found = json.loads((tmp_path / "j").read_text())
    assert [setting["C"] for setting in found["settings"]] == [0.1, 1.0, 10.0, 100.0]
    target = Target(Labels(), positive)
    folds = make_folds(target, None, 3, 4)
    for setting in found["settings"]:
        for at, fold in enumerate(folds):
            scaler = StandardScaler().fit(X[fold.training])
            data = TrainingSet(Rows(scaler.transform(X[fold.training])), target.of(fold.training))
            plan = StructuredSettings(C=(setting["C"],), epsilon=1e-5, bound="hinge")
            (outcome,) = StructuredSVMTrainer("ap", plan).train(data, Watch())
            w = outcome.w
            expected = average_precision_score(positive[fold.test], scaler.transform(X[fold.test]) @ w)
            assert setting["metrics"]["AP"]["folds"][at] == pytest.approx(expected, abs=0.005)
        values = np.array(setting["metrics"]["AUC"]["folds"])
        assert setting["metrics"]["AUC"]["mean"] == pytest.approx(values.mean())
        assert setting["metrics"]["AUC"]["deviation"] == pytest.approx(values.std(ddof=1))
        assert setting["states"] == ["converged"] * 3
    means = [setting["metrics"]["AP"]["mean"] for setting in found["settings"]]
    assert len(set(means)) > 1
    assert [setting["chosen"] for setting in found["settings"]] == [mean == max(means) for mean in means]

    chosen = next(setting for setting in found["settings"] if setting["chosen"])
    table = done.stdout.splitlines()
    assert len(table) == 6
    row = next(line for line in table if line.endswith("chosen"))
    assert row.split()[:4] == [
        f"{chosen['C']:g}", f"{chosen['metrics']['AP']['mean']:.4f}", "±", f"{chosen['metrics']['AP']['deviation']:.4f}"
    ]  # fmt: skip
    # The model is an ordinary one, of all rows.
    run(
        "train", "-q", "--bound", "hinge", path, tmp_path / "same", "-C", chosen["C"], "--scale", "standard",
        "-e", 1e-5, "--seed", 4,
    )  # fmt: skip
    model = load_model(tmp_path / "m")
    assert model.coef == pytest.approx(load_model(tmp_path / "same").coef, rel=1e-6, abs=1e-9)
    assert model.header.selection == {
        "folds": 3, "folds_of": "rows", "seed": 4, "metric": "AP", "settings": 4,
        "C": chosen["C"], "mean": chosen["metrics"]["AP"]["mean"], "deviation": chosen["metrics"]["AP"]["deviation"],
        "estimate": found["estimate"]["AP"],
    }  # fmt: skip
    assert run("predict", path, tmp_path / "m").stdout.count("\n") == 300


@pytest.mark.slow
def test_a_grid_whose_result_depends_on_no_thread(hard, run, tmp_path):
    path, _, _ = hard
    for jobs in (1, 3):
        run(
            "cv", path, "--folds", 3, "--loss", "ap,auc", "--bound", "hinge,tight", "-C", "0.1x:10x:log10", "-j", jobs,
            "--scale", "none", "-q", "--json", tmp_path / f"j{jobs}",
        )  # fmt: skip
    found = [json.loads((tmp_path / name).read_text())["settings"] for name in ("j1", "j3")]
    assert [(s["loss"], s["bound"], s["C"]) for s in found[0]] == [
        (loss, bound, C) for loss in ("ap", "auc") for bound in ("hinge", "tight") for C in ("0.1x", "1x", "10x")
    ]
    for one, other in zip(*found, strict=True):
        assert (one["metrics"], one["C_of_folds"]) == (other["metrics"], other["C_of_folds"])
    hinge, tight = (next(s for s in found[0] if s["bound"] == bound) for bound in ("hinge", "tight"))
    assert hinge["metrics"] != tight["metrics"]
    assert sum(setting["chosen"] for setting in found[0]) == 1
    # A multiple of what fits the fold's own rows.
    assert len(set(hinge["C_of_folds"])) == 3


@pytest.mark.slow
def test_several_trainers_side_by_side(hard, run, tmp_path):
    path, _, _ = hard
    done = run(
        "cv", path, "--folds", 2, "--loss", "ap,wmw,warp", "--bound", "hinge",
        "-C", "1,10", "-l", "0.1,0.01", "--tau", "p@5",
        "--learning-rate", "0.05,0.5", "--scale", "none",
        "--json", tmp_path / "j", "-o", tmp_path / "m",
    )  # fmt: skip
    results = json.loads((tmp_path / "j").read_text())
    assert [
        (one["loss"], *(one.get(name) for name in ("C", "regularisation", "tau", "learning_rate")))
        for one in results["settings"]
    ] == [
        ("ap", 1.0, None, None, None),
        ("ap", 10.0, None, None, None),
        ("wmw", None, 0.01, None, None),
        ("wmw", None, 0.1, None, None),
        ("warp", None, None, "p@5", 0.05),
        ("warp", None, None, "p@5", 0.5),
    ]
    assert results["along"] == {"ap": "C", "wmw": "regularisation", "warp": "learning_rate"}
    assert done.stdout.split("\n")[0].split() == ["loss", "C", "lambda", "learning-rate", "AP", "seconds"]
    chosen = next(one for one in results["settings"] if one["chosen"])
    header = load_model(tmp_path / "m").header
    assert header.loss == chosen["loss"]
    assert (header.selection["settings"], header.selection["mean"]) == (6, chosen["metrics"]["AP"]["mean"])
    name = results["along"][chosen["loss"]]
    assert header.selection[name] == chosen[name]
    assert header.settings[name] == chosen[name]


@over(
    "options, code, word",
    [
        ("--folds 1", 2, "--folds"),
        ("-m nonsense", 2, "'nonsense'"),
        ("--loss ap,ap", 2, "'ap,ap'"),
        ("--loss warp --rows-as-users", 2, "--loss warp"),
        ("--loss wmw -C 1", 2, "--C"),
        ("--loss wmw --lambda 1,1", 2, "1, 1"),
        ("--loss ap,warp --scale standard", 2, "--scale"),
        ("--loss ap,f1 --bound hinge,tight", 2, "--bound tight"),
        ("-C 1,1", 2, "1, 1"),
        ("-o m --json m", 2, "--json"),
        ("-o nowhere/m", 74, "nowhere/m"),
        ("--time-limit 0 -C 1e6", 3, ""),
    ],
)
def test_refused(options, code, word, hard, run, tmp_path):
    assert word in run("cv", hard[0], *options.split(), "-q", code=code, cwd=tmp_path).stderr
    assert not (tmp_path / "m").exists()


def test_configuration(hard, run, tmp_path):
    (tmp_path / "c.toml").write_text(
        'C = "1:10:log10"\nbound = "hinge"\n'
        'folds = 2\nmetric = ["AUC", "AP"]\nloss = "auc"\nfeatures = "linear,piecewise:2"\n'
    )  # fmt: skip
    done = run("cv", hard[0], "--config", tmp_path / "c.toml", "--json", "-", "-q")
    found = json.loads(done.stdout)
    assert (found["folds"], found["metric"]) == (2, "AUC")
    assert [(s["loss"], s["features"], s["C"], *s["metrics"]) for s in found["settings"]] == [
        ("auc", features, C, "AUC", "AP") for features in ("linear", "piecewise:2") for C in (1.0, 10.0)
    ]


@pytest.mark.slow
def test_interrupted(digits, command, environment, tmp_path):
    process = subprocess.Popen(
        [*command, "cv", "-v", digits.path, "--positive-label", "8", "-C", "10,1e9", "-e", "1e-13", "-j1", "-o", "m"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=environment(), cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        assert any("1,797 rows" in line for line in process.stderr)  # they have been read, and the first path begins
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "no model" in said or "nothing was finished" in said
    assert "Traceback" not in said
    assert os.listdir(tmp_path) == []
