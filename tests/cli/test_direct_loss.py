"""``--loss 'direct(ap)'`` and its kin: trained, validated, written, and refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from apsvm import load_model
from apsvm.models.reading import load_any_model
from apsvm.models.sets import RankerSet


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_train_predict_eval_info(cancer, here, tmp_path):
    model, log = tmp_path / "m", tmp_path / "log"
    done = here("train", "-v", "--loss", "Direct(AP)", cancer.path, model, "--epochs", 12, "--log", log)
    lines = done.stderr.splitlines()
    assert lines[1].split() == ["epoch", "rows", "updates", "bound", "seconds"]
    assert "12" in [line.split()[0] for line in lines if line[:6].strip().isdigit()]
    assert "apsvm: all epochs done after 12 epochs" in lines
    assert "certificate" not in done.stderr

    here("predict", cancer.path, model, tmp_path / "scores")
    scores = np.loadtxt(tmp_path / "scores")
    np.testing.assert_allclose(scores, cancer.X @ load_model(model).coef, rtol=1e-12)
    found = json.loads(here("eval", cancer.path, "--model", model, "--json").stdout)["metrics"]
    assert found["AP"] == pytest.approx(average_precision_score(cancer.positive, scores))
    assert found["AUC"] == pytest.approx(roc_auc_score(cancer.positive, scores))
    assert min(found["AP"], found["AUC"]) > 0.99
    assert f"training AP {found['AP']:.6f} (212 of 569 rows positive)" in done.stderr

    start, *epochs, end = records(log)
    keys = ("event", "loss", "update", "perturbation", "learning_rate", "step_rows", "n_rows")
    assert [start[key] for key in keys] == ["start", "direct(ap)", "positive", 0.03, 0.03, 4096, 569]
    assert [record["epoch"] for record in epochs] == list(range(1, 13))
    assert {record["draws"] for record in epochs} == {5690}
    assert (end["event"], end["state"], end["best_epoch"]) == ("end", "all epochs done", 12)
    header = load_model(model).header
    assert end["loss"] == header.epochs.estimated_loss == epochs[-1]["loss"] < epochs[0]["loss"]
    keys = ("update", "perturbation", "learning_rate", "l2")
    assert [header.settings[key] for key in keys] == ["positive", 0.03, 0.03, 1.0]
    assert (header.loss, header.epochs.count, header.epochs.validation) == ("direct(ap)", 12, None)
    assert header.certificate is None
    shown = here("info", model).stdout.split()
    assert "direct(ap)" in shown
    assert here("export", model, "--format", "svmlight").stdout


def test_a_seed_and_any_threads_give_the_same_file(cancer, here, tmp_path):
    options = ["-q", "--loss", "direct(ndcg)", cancer.path, "--epochs", 2, "--batch-rows", 100]
    for name, more in (("a", []), ("b", ["--threads", 1]), ("c", ["--threads", 2]), ("d", ["--seed", 1])):
        here("train", *options, tmp_path / name, *more)
    a, b, c, d = ((tmp_path / name).read_bytes() for name in "abcd")
    assert a == b == c
    assert not np.array_equal(load_model(tmp_path / "a").coef, load_model(tmp_path / "d").coef)
    assert a != d


@pytest.mark.parametrize("options", [
    ["--update", "negative", "--perturbation", "0.3", "--l2", "0.5"],
    ["--learning-rate", "0.2", "--dtype", "float32", "--scale", "maxabs"],
    ["--positive-label", "-1", "--batch-rows", "64"],
    ["--scale", "l2", "-B", "1"],
    ["--relevant-from", "1"],
])  # fmt: skip
@pytest.mark.parametrize("loss", ["auc", "rbp(0.8)"])
def test_options_are_heard(options, loss, cancer, here, tmp_path):
    here("train", "-q", "--loss", f"direct({loss})", cancer.path, tmp_path / "m", *options)
    found = json.loads(here("eval", cancer.path, "--model", tmp_path / "m", "--json").stdout)["metrics"]
    assert found["AUC"] > 0.97
    header = load_model(tmp_path / "m").header
    assert header.loss == f"direct({loss})"
    for option, value in zip(options[::2], options[1::2], strict=True):
        key = {"-B": "bias", "--batch-rows": "step_rows"}.get(option, option[2:].replace("-", "_"))
        if key != "dtype":
            features = {"scale": header.features.scale, "bias": header.features.bias}
            labels = {"positive_label": header.labels.positive, "relevant_from": header.labels.relevant_from}
            shown = {**header.settings, **features, **labels}[key]
            assert str(shown) in (value, f"{value}.0")


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_validation_keeps_the_best_epoch(scale, cancer, write_rows, here, tmp_path):
    rows = np.random.default_rng(0).permutation(569)
    fit = write_rows(tmp_path / "fit", cancer.X[rows[:400]], cancer.labels[rows[:400]])
    valid = write_rows(tmp_path / "valid", cancer.X[rows[400:]], cancer.labels[rows[400:]])
    options = ["--validation", valid, "--validation-metric", "ndcg", "--patience", 3, "--epochs", 60, "--scale", scale]
    log, model = tmp_path / "log", tmp_path / "m"
    done = here("train", "--loss", "direct(ap)", "--update", "negative", fit, model, *options, "--log", log)
    epochs = records(log)[1:-1]
    values = [record["validation"] for record in epochs]
    best = int(np.argmax(values)) + 1
    assert f"kept epoch {best}, ndcg {values[best - 1]:.6f}" in done.stderr
    assert f"mean of the steps of epoch {best}: {epochs[best - 1]['loss']:.6g}" in done.stderr
    assert len(values) <= best + 3
    header = load_model(model).header
    assert (header.epochs.best, header.epochs.validation.metric) == (best, "ndcg")
    found = json.loads(here("eval", valid, "--model", model, "--json").stdout)["metrics"]
    assert found["nDCG"] == pytest.approx(values[best - 1], abs=1e-9)


def test_queries_and_grades(here, tmp_path):
    rng = np.random.default_rng(0)
    grades = np.tile([0, 1, 2, 2], 30)
    path = tmp_path / "data"
    path.write_text(
        "".join(f"{g} qid:{i // 4} 1:{g + 0.1 * rng.normal():.3f} 2:{rng.normal():.3f}\n" for i, g in enumerate(grades))
    )
    for update in ("positive", "negative"):
        said = here("train", "--loss", "direct(ndcg)", "--update", update, path, tmp_path / update, "-v").stderr
        assert f"{path}: 120 rows, 90 positive, 2 features" in said
        model = load_model(tmp_path / update)
        assert (model.header.data.positives, model.header.data.queries) == (90, 30)
        assert model.coef[0] > 3 * abs(model.coef[1])
    here("train", "-q", "--loss", "direct(ap)", "--relevant-from", 2, path, tmp_path / "two")
    assert load_model(tmp_path / "two").header.data.positives == 60


def test_one_against_the_rest(here, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "data"
    path.write_text("".join(f"{i % 3} {i % 3 + 1}:{1 + rng.random():.3f} 4:{rng.random():.3f}\n" for i in range(90)))
    here("train", "-q", "--one-vs-rest", "--loss", "direct(ap)", path, tmp_path / "m")
    found = load_any_model(tmp_path / "m")
    assert isinstance(found, RankerSet)
    here("train", "-q", "--positive-label", 1, "--loss", "direct(ap)", path, tmp_path / "one")
    assert np.array_equal(found.coef[1], load_model(tmp_path / "one").coef)


def test_a_warm_start(cancer, here, tmp_path):
    here("train", "-q", "--loss", "ap", "-C", 10, cancer.path, tmp_path / "a")
    here(
        "train", "-q", "--loss", "direct(ap)", cancer.path, tmp_path / "b", "--warm-start", tmp_path / "a",
        "--epochs", 1, "--learning-rate", 1e-9,
    )  # fmt: skip
    a, b = load_model(tmp_path / "a").coef, load_model(tmp_path / "b").coef
    np.testing.assert_allclose(b / np.linalg.norm(b), a / np.linalg.norm(a), atol=1e-6)


def test_the_time_limit_is_an_early_stop(cancer, here, tmp_path):
    options = ["--epochs", 10**6, "--time-limit", 0.1]
    here("train", "-q", "--loss", "direct(ap)", cancer.path, tmp_path / "m", *options, code=3)
    assert load_model(tmp_path / "m").header.state == "time limit"


def test_a_loss_of_ones_own(cancer, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "TopHeavy.py").write_text(
        "import numpy as np\n"
        "class Reciprocal:\n"
        "    def weights(self, n_pos): return np.full(n_pos, 1.0 / n_pos)\n"
        "    def discount(self, n): return 1.0 / np.arange(1.0, n + 1)\n"
    )
    here("train", "-q", "--loss", "direct(TopHeavy:Reciprocal)", "--update", "negative", cancer.path, tmp_path / "m")
    assert load_model(tmp_path / "m").header.loss == "direct(TopHeavy:Reciprocal)"


@pytest.mark.parametrize(("options", "words"), [
    (["--loss", "direct"], "did you mean 'direct(loss)'?"),
    (["--loss", "direct(nothing)"], "unknown loss 'nothing'"),
    (["--loss", "direct(f1)"], "is for losses over rankings, and 'f1' is none"),
    (["--loss", "direct(p@5)", "--update", "negative"], "choose the positive update"),
    (["--loss", "direct(rbp(2))"], "--loss direct(rbp(2)): "),
    (["--loss", "direct(no.such:Loss)"], "cannot import 'no.such'"),
    (["--loss", "direct(ap)", "--update", "sideways"], "'sideways' is not one of 'positive', 'negative'"),
    (["--loss", "direct(ap)", "--learning-rate", "0"], "expected a finite number above 0, found '0'"),
    (["--loss", "direct(ap)", "--perturbation", "-1"], "a finite number of at least 1e-09 and of at most 1e+09, found"),
    (["--loss", "direct(ap)", "--batch-rows", "1"], "1 is not in the range x>=2"),
    (["--loss", "direct(ap)", "--patience", "2"], "--patience is for --validation FILE"),
    (["--loss", "direct(ap)", "--validation", "-"], "name a file"),
    (["--loss", "direct(ap)", "--validation", "x", "--validation-metric", "nothing"], "--validation-metric: "),
    (["--loss", "direct(ap)", "--max-iterations", "5"], "--max-iterations is not for --loss direct(ap)"),
    (["--loss", "direct(ap)", "-C", "5"], "--C is not for --loss direct(ap): it is for Structured SVM"),
    (["--loss", "direct(ap)", "--tau", "auc"], "--tau is not for --loss direct(ap): it is for Online learning"),
    (["--loss", "ap", "--epochs", "5"], "--epochs is not for --loss ap: it is for Online learning of the top"),
    (["--loss", "ap", "--l2", "5"], "and Direct loss minimisation"),
    (["--loss", "warp", "--update", "positive"], "--update is not for --loss warp: it is for Direct loss"),
])  # fmt: skip
def test_options_that_do_not_go_together(options, words, cancer, here, tmp_path):
    done = here("train", *options, cancer.path, tmp_path / "m", code=2)
    assert words in " ".join(done.stderr.split())
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(("text", "words"), [
    ("1 1:1\n1 1:2\n", ": there are no negative rows (2 positive, 0 negative); a ranking needs both"),
    ("0 1:1\n0 1:2\n", ": there are no positive rows (0 positive, 2 negative); a ranking needs both"),
    ("1 qid:1 1:1\n1 qid:1 1:2\n0 qid:2 1:3\n", ": no query has both a positive and a negative row"),
    ("1 1:1e200\n0 1:-1e200\n", ": the variances of the features are not finite: feature values or the learning rate "
     "are too large, scale them down"),
    ("", ": expected at least one row, found none"),
])  # fmt: skip
def test_bad_data(text, words, here, tmp_path):
    path = tmp_path / "data"
    path.write_text(text)
    done = here("train", "--loss", "direct(ap)", path, tmp_path / "m", code=65)
    assert done.stderr.endswith(f"{words}\n")
    assert not (tmp_path / "m").exists()


def test_bad_validation(cancer, here, tmp_path):
    path = tmp_path / "valid"
    path.write_text("0 1:1\n0 1:2\n")
    done = here("train", "-q", "--loss", "direct(ap)", cancer.path, tmp_path / "m", "--validation", path, code=65)
    assert str(path) in done.stderr
    here("train", "-q", "--loss", "direct(ap)", cancer.path, path, "--validation", path, code=2)
    assert path.read_text() == "0 1:1\n0 1:2\n"


def test_what_is_not_used_is_said(here, tmp_path):
    path = tmp_path / "data"
    path.write_text("1 cost:2 1:1\n0 cost:1 1:0\n1 cost:1 1:3\n")
    said = here("train", "--loss", "direct(ap)", "-B", 1, path, tmp_path / "m").stderr
    assert "a constant feature moves no ranking" in said
    assert "cost: is not used by this loss" in said
